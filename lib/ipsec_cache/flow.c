/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>

#include "ipsec_cache/flow.h"

#define GRE_CHECKSUM 0x8000
#define GRE_KEY 0x2000

/* Upper layers whose first four bytes are two ports. */
static bool
has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE ||
		proto == IPPROTO_SCTP || proto == IPPROTO_DCCP;
}

/* The key of a GRE packet, its halves being the ports (Linux: xfrm_flowi_sport()). */
static void
fill_gre(struct ipsec_flow *flow, const struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t at = view->l4_off + 4u, key;
	const uint8_t *p;
	uint8_t buf[4];
	uint16_t flags;

	if (view->l3_end - view->l4_off < 4 || (p = packet_read(m, view->l4_off, 4, buf)) == NULL) {
		flow->fragment = 1;
		return;
	}
	memcpy(&flags, p, sizeof(flags));
	if ((flags & RTE_BE16(GRE_KEY)) == 0)
		return;
	if ((flags & RTE_BE16(GRE_CHECKSUM)) != 0)
		at += 4;
	if (view->l3_end < at + 4 || (p = packet_read(m, at, 4, buf)) == NULL) {
		flow->fragment = 1;
		return;
	}
	memcpy(&key, p, sizeof(key));
	key = rte_be_to_cpu_32(key);
	flow->sport = rte_cpu_to_be_16((uint16_t)(key >> 16));
	flow->dport = rte_cpu_to_be_16((uint16_t)key);
}

/* Ports, or what stands for them. */
static void
fill_ports(struct ipsec_flow *flow, const struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t need = has_ports(flow->proto) ? 4 : 2;
	const uint8_t *p;
	uint8_t buf[4];

	if (view->stop != PACKET_STOP_NONE) {
		/* with ports or without: nobody knows what a fragment's other part says */
		flow->fragment = view->stop == PACKET_STOP_FRAGMENT ||
			view->stop == PACKET_STOP_CUT_L4 || view->stop == PACKET_STOP_MALFORMED_EXT;
		return;
	}
	if (flow->proto == IPPROTO_GRE) {
		fill_gre(flow, m, view);
		return;
	}
	if (!has_ports(flow->proto) && flow->proto != IPPROTO_ICMP &&
		flow->proto != IPPROTO_ICMPV6 && flow->proto != IPPROTO_MH)
		return;
	if (view->l3_end - view->l4_off < need ||
		(p = packet_read(m, view->l4_off, need, buf)) == NULL) {
		flow->fragment = 1;
	} else if (need == 4) {
		memcpy(&flow->sport, p, sizeof(flow->sport));
		memcpy(&flow->dport, p + 2, sizeof(flow->dport));
	} else if (flow->proto == IPPROTO_MH) {
		/* the type is the header's third byte, which the two read here lack */
		if (view->l3_end - view->l4_off >= 3 &&
			(p = packet_read(m, view->l4_off + 2u, 1, buf)) != NULL)
			flow->sport = rte_cpu_to_be_16(p[0]);
		else
			flow->fragment = 1;
	} else {
		flow->sport = rte_cpu_to_be_16(p[0]);
		flow->dport = rte_cpu_to_be_16(p[1]);
	}
}

/* An IPv6 packet's upper layer is known; a fragment's may stand behind a header it does not have.
 */
static bool
chain_ends(const struct packet_view *view)
{
	if (view->stop == PACKET_STOP_FRAGMENT)
		return view->l4_proto != IPPROTO_HOPOPTS && view->l4_proto != IPPROTO_ROUTING &&
			view->l4_proto != IPPROTO_DSTOPTS && view->l4_proto != IPPROTO_FRAGMENT;
	return view->stop != PACKET_STOP_MALFORMED_EXT && view->stop != PACKET_STOP_EXT_LIMIT;
}

bool
ipsec_flow_fill(struct ipsec_flow *flow, const struct rte_mbuf *m, const struct packet_view *view,
	const struct ipsec_flow_from *from, uint32_t uses)
{
	const uint8_t *p;
	uint8_t buf[40];

	*flow = (struct ipsec_flow){ .by = from->by };
	if (view->l3 == PACKET_L3_IPV4) {
		if ((p = packet_read(m, view->l3_off, 20, buf)) == NULL)
			return false;
		flow->family = AF_INET;
		flow->proto = p[9];
		memcpy(flow->saddr, p + 12, 4);
		memcpy(flow->daddr, p + 16, 4);
	} else {
		if ((p = packet_read(m, view->l3_off, 40, buf)) == NULL)
			return false;
		flow->family = AF_INET6;
		flow->proto = view->l4_proto;
		memcpy(flow->saddr, p + 8, 16);
		memcpy(flow->daddr, p + 24, 16);
		if (!chain_ends(view))
			return false;
	}
	if ((uses & IPSEC_USES_MARK) != 0)
		flow->mark = from->mark;
	flow->in_ifindex =
		(uses & IPSEC_USES_IFINDEX) != 0 ? from->in_ifindex : from->in_ifindex != 0;
	if ((uses & IPSEC_USES_PORTS) != 0)
		fill_ports(flow, m, view);
	return true;
}
