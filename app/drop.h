/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_DROP_H
#define APP_DROP_H

/*
 * Every packet that does not leave has one named reason, and drop() is the only place of the packet
 * path that frees one. Workers count in their own cache lines; the control thread has the last
 * slot.
 */

#include <assert.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "classifier/classifier.h"

#define DROP_LIST(X) \
	CLASSIFIER_DROP_LIST(X) \
	X(SCHED_FULL, "sched_full", "the band of the Tx queue was full") \
	X(SCHED_FLUSH, "sched_flush", "queued when the Tx queue was flushed, stopped or closed") \
	X(RX_DOWN, "rx_down", "came in on a port that is administratively down") \
	X(TX_DOWN, "tx_down", "sent to a port that is administratively down") \
	X(NO_PORT, "no_port", "redirected to a port that does not exist") \
	X(REDIRECT_LOOP, "redirect_loop", "redirected or mirrored too many times") \
	X(MIRROR_NOBUF, "mirror_nobuf", "no mbuf left for the copy that mirred wanted") \
	X(TX_INVALID, "tx_invalid", "the driver cannot send it (rte_eth_tx_prepare)") \
	X(RX_SINK, "rx_sink", "consumed by forward mode rxonly")

enum drop_reason {
#define X(id, name, text) DROP_##id,
	DROP_LIST(X)
#undef X
	DROP_MAX
};

/* The classifier's reasons come first, so that its index is ours. */
static_assert((int)DROP_SHOT == (int)CLASSIFIER_DROP_SHOT &&
		(int)CLASSIFIER_DROP_MAX == (int)DROP_SCHED_FULL,
	"the classifier's drops lead the list");

struct drop_info {
	const char *name, *text;
};
extern const struct drop_info drop_info[DROP_MAX];

struct drop_counters {
	_Atomic uint64_t packets[DROP_MAX];
	_Atomic uint64_t bytes[DROP_MAX];
} __rte_cache_aligned;

/* Counts the packets under the reason, then frees them. */
void drop(struct drop_counters *counters, enum drop_reason reason, struct rte_mbuf **pkts,
	unsigned int n);
/* The same for the packets of `mask` in a vector. */
void drop_mask(struct drop_counters *counters, enum drop_reason reason, struct rte_mbuf **pkts,
	uint64_t mask);
/* Counts packets that never had an mbuf (a copy that could not be made). */
void drop_count(
	struct drop_counters *counters, enum drop_reason reason, uint64_t packets, uint64_t bytes);

#endif /* APP_DROP_H */
