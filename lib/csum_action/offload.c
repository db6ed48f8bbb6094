/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <rte_ethdev.h>

#include "csum_action/handle.h"
#include "csum_action/update.h"

void
csum_action_offload_set(struct csum_action *csum, uint64_t tx_offloads)
{
	/* relaxed: nothing else is published with it */
	atomic_store_explicit(&csum->tx_offloads,
		tx_offloads &
			(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
				RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_SCTP_CKSUM),
		memory_order_relaxed);
}

/* The sums that a NIC with `tx_offloads` does not complete as the packet stands. */
static uint32_t
missing(uint64_t ol_flags, uint64_t tx_offloads)
{
	static const uint64_t offers[4] = {
		[RTE_MBUF_F_TX_TCP_CKSUM >> 52] = RTE_ETH_TX_OFFLOAD_TCP_CKSUM,
		[RTE_MBUF_F_TX_SCTP_CKSUM >> 52] = RTE_ETH_TX_OFFLOAD_SCTP_CKSUM,
		[RTE_MBUF_F_TX_UDP_CKSUM >> 52] = RTE_ETH_TX_OFFLOAD_UDP_CKSUM,
	};
	uint32_t flags = 0;

	if (csum_is_pending_l4(ol_flags) &&
		(offers[(ol_flags & RTE_MBUF_F_TX_L4_MASK) >> 52] & tx_offloads) == 0)
		flags |= CSUM_FLAGS_L4;
	if (csum_is_pending_ip(ol_flags) &&
		((ol_flags & RTE_MBUF_F_TX_IP_CKSUM) == 0 ||
			(tx_offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) == 0))
		flags |= TCA_CSUM_UPDATE_FLAG_IPV4HDR;
	return flags;
}

/* The sums that are pending, whoever is to complete them. */
static uint32_t
pending(uint64_t ol_flags)
{
	return (csum_is_pending_l4(ol_flags) ? CSUM_FLAGS_L4 : 0) |
		(csum_is_pending_ip(ol_flags) ? (uint32_t)TCA_CSUM_UPDATE_FLAG_IPV4HDR : 0);
}

/* Tags or headers may have come or gone since a sum was left: then the lengths are not true any
 * more. */
static bool
lengths_hold(const struct rte_mbuf *m, const struct packet_view *view)
{
	return m->l2_len == view->l3_off && m->l2_len + m->l3_len == view->l4_off;
}

uint64_t
csum_action_complete(struct csum_action *csum, unsigned int worker, struct rte_mbuf **pkts,
	uint16_t n, uint64_t tx_offloads)
{
	uint64_t incomplete = 0;
	uint16_t i;

	for (i = 0; i < n; i++) {
		uint32_t flags = pending(pkts[i]->ol_flags);
		struct packet_view view;

		if (likely(flags == 0) || (pkts[i]->ol_flags & CSUM_MARKED) != 0)
			continue;
		packet_view_parse(pkts[i], &view);
		if (missing(pkts[i]->ol_flags, tx_offloads) == 0 && lengths_hold(pkts[i], &view))
			continue;
		csum_update(csum->impl, &pkts[i], &view, flags, tx_offloads);
		if (missing(pkts[i]->ol_flags, tx_offloads) == 0) {
			csum_count(csum, worker, CSUM_ACTION_COMPLETED, 1);
		} else {
			csum_count(csum, worker, CSUM_ACTION_INCOMPLETE, 1);
			incomplete |= UINT64_C(1) << i;
		}
	}
	return incomplete;
}
