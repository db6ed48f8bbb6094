/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Mode ip on the workers: IPv6. */

#include "compat.h"
#include "forward/ip_burst.h"

#define HEADERS_MIN (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv6_hdr)) /* that are written to */

static inline struct rte_ipv6_hdr *
ipv6(const struct burst *b, unsigned int i)
{
	return rte_pktmbuf_mtod_offset(b->pkts[i], struct rte_ipv6_hdr *, b->views[i].l3_off);
}

static bool
is_link_local(const uint8_t *addr)
{
	return addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}

/* ::/64 and ::1: neither sends nor is forwarded to. */
static bool
is_unusable(const uint8_t *addr)
{
	static const uint8_t none[15];

	return memcmp(addr, none, sizeof(none)) == 0 && addr[15] <= 1;
}

static bool
check(struct burst *b, unsigned int i)
{
	const struct rte_ipv6_hdr *h;

	if ((b->views[i].flags & PACKET_F_CUT) != 0) {
		burst_drop(b, DROP_IP_MALFORMED, i);
		return false;
	}
	if (!burst_own(b, i, HEADERS_MIN))
		return false;
	h = ipv6(b, i);
	if (compat_ip6_src(h)[0] == 0xff || is_unusable(compat_ip6_src(h)) ||
		is_unusable(compat_ip6_dst(h))) {
		burst_drop(b, DROP_IP_MARTIAN, i);
		return false;
	}
	if (compat_ip6_dst(h)[0] == 0xff) {
		burst_drop(b, DROP_IP_MULTICAST, i);
		return false;
	}
	return true;
}

static void
forward(struct burst *b, unsigned int i)
{
	const struct route_hop *hop = b->hops[i] =
		ip_burst_follow(b, i, b->hops[i], AF_INET6, compat_ip6_dst(ipv6(b, i)));
	struct rte_ipv6_hdr *h = ipv6(b, i);

	/* Addresses of a link stay on it. */
	if (hop->kind != ROUTE_LOCAL &&
		(is_link_local(compat_ip6_src(h)) || is_link_local(compat_ip6_dst(h)))) {
		burst_drop(b, DROP_IP_MARTIAN, i);
		return;
	}
	if (hop->kind != ROUTE_FORWARD || h->hop_limits <= 1 ||
		b->views[i].l3_end - b->views[i].l3_off > hop->mtu) {
		ip_burst_divert(b, i, h->hop_limits, compat_ip6_dst(h));
		return;
	}
	h->hop_limits--;
	burst_trim(b->pkts[i], b->views[i].l3_end);
	burst_send(b, i, h, hop);
}

uint64_t
ip6_check(struct burst *b, uint64_t mask)
{
	unsigned int i;

	packet_mask_for_each (i, mask) {
		if (!check(b, i))
			mask &= ~(UINT64_C(1) << i);
	}
	return mask;
}

void
ip6_route(struct burst *b)
{
	const struct route_hop *hops[PACKET_VECTOR_MAX];
	uint8_t dst[PACKET_VECTOR_MAX][ROUTE_ADDR_LEN], where[PACKET_VECTOR_MAX];
	unsigned int i, n = 0;

	packet_mask_for_each (i, b->v6) {
		memcpy(dst[n], compat_ip6_dst(ipv6(b, i)), sizeof(dst[n]));
		where[n++] = (uint8_t)i;
	}
	route_lookup6(b->worker->app->route, dst, hops, n);
	for (unsigned int k = 0; k < n; k++) {
		b->hops[where[k]] = hops[k];
		forward(b, where[k]);
	}
}
