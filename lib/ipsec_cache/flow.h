/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_FLOW_H
#define IPSEC_CACHE_FLOW_H

/* The flow of a packet, as Linux's xfrm_decode_session() sees it. */

#include <netinet/in.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include "ipsec_cache/internal.h"

/* What of a packet its view does not know. */
struct ipsec_flow_from {
	uint64_t by; /* serial of the SA it came by */
	uint32_t mark;
	uint32_t in_ifindex;
};

/*
 * Fills in the flow of an IP packet whose view is filled; `uses` says which fields count
 * (IPSEC_USES_*), the others are 0, except that in_ifindex still tells our own packets from others.
 * Ports that are not there (a fragment, a cut header) make `fragment` 1. False: there is an IPv6
 * header chain that cannot be followed to its end, so that no policy can be found for what is
 * behind it.
 */
bool ipsec_flow_fill(struct ipsec_flow *flow, const struct rte_mbuf *m,
	const struct packet_view *view, const struct ipsec_flow_from *from, uint32_t uses);

#define IPSEC_FLOW_WORDS (sizeof(struct ipsec_flow) / 8)

/* The word of it that has mark and in_ifindex: most often the same for all of a burst. */
static inline uint64_t
ipsec_flow_where(const struct ipsec_flow_from *from, uint32_t uses)
{
	return ((uses & IPSEC_USES_MARK) != 0 ? from->mark : 0) |
		(uint64_t)((uses & IPSEC_USES_IFINDEX) != 0 ? from->in_ifindex
							    : from->in_ifindex != 0)
		<< 32;
}

/*
 * The same flow, as the words that it is in memory, for the usual packet: whole, in one segment,
 * of TCP or UDP where ports count. False: ask ipsec_flow_fill(). A flow made field by field and
 * then read by words would wait for its bytes to arrive in the cache.
 */
static inline bool
ipsec_flow_words(uint64_t w[IPSEC_FLOW_WORDS], const struct rte_mbuf *m,
	const struct packet_view *view, uint64_t by, uint64_t where, uint32_t uses)
{
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, view->l3_off);
	uint32_t ports = 0, from4, to4;

	if (unlikely(view->stop != PACKET_STOP_NONE || m->data_len < view->l4_off + 4u ||
		    view->l3_end < view->l4_off + 4u))
		return false;
	if ((uses & IPSEC_USES_PORTS) != 0) {
		if (view->l4_proto != IPPROTO_UDP && view->l4_proto != IPPROTO_TCP)
			return false;
		memcpy(&ports, rte_pktmbuf_mtod_offset(m, const uint8_t *, view->l4_off),
			sizeof(ports));
	}
	w[0] = w[1] = w[2] = w[3] = 0;
	if (likely(view->l3 == PACKET_L3_IPV4)) {
		memcpy(&from4, ip + 12, sizeof(from4));
		memcpy(&to4, ip + 16, sizeof(to4));
		w[0] = from4;
		w[2] = to4;
		w[6] = (uint64_t)AF_INET << 32;
	} else {
		memcpy(&w[0], ip + 8, 8);
		memcpy(&w[1], ip + 16, 8);
		memcpy(&w[2], ip + 24, 8);
		memcpy(&w[3], ip + 32, 8);
		w[6] = (uint64_t)AF_INET6 << 32;
	}
	w[4] = by;
	w[5] = where;
	w[6] |= ports | (uint64_t)view->l4_proto << 40;
	return true;
#else
	return false;
#endif
}

#endif /* IPSEC_CACHE_FLOW_H */
