/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_HANDLE_H
#define CSUM_ACTION_HANDLE_H

/* What stands behind struct csum_action. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "csum_action/csum_action.h"

/* Written by one worker, read by anyone. */
struct csum_worker {
	_Atomic uint64_t reasons[CSUM_ACTION_REASON_MAX];
} __rte_cache_aligned;

struct csum_action {
	const struct csum_impl *impl;
	_Atomic uint64_t tx_offloads; /* written by the control thread, loaded once a vector */
	unsigned int n_workers;
	struct csum_worker workers[];
};

/* Relaxed load and store: this worker is the only writer, and readers conclude nothing from order.
 */
static inline void
csum_count(struct csum_action *csum, unsigned int worker, unsigned int reason, uint64_t n)
{
	_Atomic uint64_t *c;

	if (csum == NULL)
		return;
	c = &csum->workers[worker].reasons[reason];
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif /* CSUM_ACTION_HANDLE_H */
