/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PROTECT_H
#define APP_PROTECT_H

/*
 * The last look at packets before they wait for a driver: nothing that ESP protects leaves in
 * clear, and no checksum that somebody else was to compute is missing. Workers.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "csum_action/csum_action.h"
#include "ipsec_cache/ipsec_cache.h"
#include "lcore.h"
#include "packet/packet.h"

struct port;

/* Left to a NIC, or opened by one and not seen by IPsec here since. */
#define PROTECT_FLAGS (RTE_MBUF_F_TX_SEC_OFFLOAD | IPSEC_CACHE_RX_FLAGS)

/* What any of the packets is marked with; ordinary ones have nothing of what is looked for. */
static inline uint64_t
protect_flags(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint64_t any = 0;

	for (uint16_t i = 0; i < n; i++)
		any |= pkts[i]->ol_flags;
	return any & (PROTECT_FLAGS | CSUM_ACTION_PENDING_FLAGS);
}

/*
 * Makes the vector fit to leave by `port`; any: protect_flags(), not 0. What was sealed for another
 * port's NIC is encrypted here, or dropped; what a NIC opened and nobody looked at is dropped.
 * Returns how many are left.
 */
uint16_t protect_finish(
	struct worker *worker, const struct port *port, struct packet_vector *vector, uint64_t any);

/*
 * Does here what a NIC was to do with a packet, which is copied, or goes elsewhere. False: that
 * cannot be done; it must not leave.
 */
static inline bool
protect_one(struct worker *worker, struct rte_mbuf *m)
{
	return likely((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) == 0) ||
		ipsec_cache_complete(worker->ipsec, m);
}

#endif /* APP_PROTECT_H */
