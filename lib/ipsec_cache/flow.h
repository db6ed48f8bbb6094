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

/* The usual packet: whole, in one segment, of TCP or UDP where ports count. Its ports in *ports, or
 * 0 where they do not. */
static inline bool
ipsec_flow_is_plain(
	const struct rte_mbuf *m, const struct packet_view *view, uint32_t uses, uint32_t *ports)
{
	*ports = 0;
	if (unlikely(RTE_BYTE_ORDER != RTE_LITTLE_ENDIAN || view->stop != PACKET_STOP_NONE ||
		    m->data_len < view->l4_off + 4u || view->l3_end < view->l4_off + 4u))
		return false;
	if ((uses & IPSEC_USES_PORTS) == 0)
		return true;
	memcpy(ports, rte_pktmbuf_mtod_offset(m, const uint8_t *, view->l4_off), sizeof(*ports));
	return view->l4_proto == IPPROTO_UDP || view->l4_proto == IPPROTO_TCP;
}

/* The flow of a plain IPv4 packet in brief, to be compared with that of the packet before. */
struct ipsec_flow_brief {
	uint64_t ends; /* source, destination */
	uint64_t rest; /* ports, protocol */
	uint64_t by, where;
};
#define IPSEC_FLOW_NOT_BRIEF UINT64_MAX /* no packet's `rest` */

static inline bool
ipsec_flow_brief(struct ipsec_flow_brief *brief, const struct rte_mbuf *m,
	const struct packet_view *view, uint64_t by, uint64_t where, uint32_t uses)
{
	uint32_t ports;

	if (view->l3 != PACKET_L3_IPV4 || !ipsec_flow_is_plain(m, view, uses, &ports))
		return false;
	memcpy(&brief->ends, rte_pktmbuf_mtod_offset(m, const uint8_t *, view->l3_off + 12), 8);
	brief->rest = ports | (uint64_t)view->l4_proto << 40;
	brief->by = by;
	brief->where = where;
	return true;
}

static inline bool
ipsec_flow_brief_same(const struct ipsec_flow_brief *a, const struct ipsec_flow_brief *b)
{
	return ((a->ends ^ b->ends) | (a->rest ^ b->rest) | (a->by ^ b->by) |
		       (a->where ^ b->where)) == 0;
}

/*
 * A flow as the words that it is in memory: one made field by field and then read by words would
 * wait for its bytes to arrive in the cache.
 */
static inline void
ipsec_flow_words4(uint64_t w[IPSEC_FLOW_WORDS], const struct ipsec_flow_brief *brief)
{
	w[0] = (uint32_t)brief->ends;
	w[1] = 0;
	w[2] = brief->ends >> 32;
	w[3] = 0;
	w[4] = brief->by;
	w[5] = brief->where;
	w[6] = brief->rest | (uint64_t)AF_INET << 32;
}

/* The same for a plain IPv6 packet. False: it is none, ask ipsec_flow_fill(). */
static inline bool
ipsec_flow_words6(uint64_t w[IPSEC_FLOW_WORDS], const struct rte_mbuf *m,
	const struct packet_view *view, uint64_t by, uint64_t where, uint32_t uses)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, view->l3_off);
	uint32_t ports;

	if (view->l3 != PACKET_L3_IPV6 || !ipsec_flow_is_plain(m, view, uses, &ports))
		return false;
	memcpy(&w[0], ip + 8, 8);
	memcpy(&w[1], ip + 16, 8);
	memcpy(&w[2], ip + 24, 8);
	memcpy(&w[3], ip + 32, 8);
	w[4] = by;
	w[5] = where;
	w[6] = ports | (uint64_t)AF_INET6 << 32 | (uint64_t)view->l4_proto << 40;
	return true;
}

#endif /* IPSEC_CACHE_FLOW_H */
