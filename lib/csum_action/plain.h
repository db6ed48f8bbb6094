/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The common packet, for each implementation to include: it defines `plain`, given PLAIN_SUM, its
 * sum of contiguous bytes, and PLAIN_TARGET, the attribute of functions that may use its
 * instructions.
 *
 * Plain is TCP or UDP straight after an IPv4 header without options or an IPv6 header, in one
 * segment of memory that is ours alone, with nothing asked of a NIC. Source and destination stand
 * right before layer 4 then, so one run over both covers layer 4 and most of its pseudo-header.
 */

#include <assert.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "csum_action/update.h"

#define PLAIN_NEVER \
	(CSUM_MARKED | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | \
		RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

/* The bytes l3, stop, flags, l4_proto of a view that may be plain, read as one word. */
#define PLAIN_KIND(l3, proto) \
	RTE_BE32((uint32_t)(l3) << 24 | PACKET_STOP_NONE << 16 | PACKET_F_L3 << 8 | (proto))
static_assert(offsetof(struct packet_view, stop) == offsetof(struct packet_view, l3) + 1 &&
		offsetof(struct packet_view, flags) == offsetof(struct packet_view, l3) + 2 &&
		offsetof(struct packet_view, l4_proto) == offsetof(struct packet_view, l3) + 3,
	"PLAIN_KIND() is four fields in a row");

static __rte_always_inline uint64_t
plain_word(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

static __rte_always_inline uint16_t
plain_half(const uint8_t *p)
{
	uint16_t h;

	memcpy(&h, p, sizeof(h));
	return h;
}

static __rte_always_inline void
plain_store(uint8_t *p, uint16_t h)
{
	memcpy(p, &h, sizeof(h));
}

/* True if the lengths in layer 4 fit `len`, and a sum is wanted there. */
static __rte_always_inline bool
plain_fits(const uint8_t *l4, uint32_t len, uint8_t proto)
{
	if (proto == IPPROTO_UDP)
		return len >= 8 && plain_half(l4 + 4) == rte_cpu_to_be_16((uint16_t)len) &&
			len <= UINT16_MAX && plain_half(l4 + 6) != 0;
	return len >= 20 && len <= UINT16_MAX && l4[12] >> 4 >= 5 && (l4[12] >> 4) * 4u <= len;
}

static __rte_always_inline void
plain_ipv4_header(uint8_t *ip)
{
	uint64_t sum = plain_word(ip), addresses = plain_word(ip + 12), half = plain_half(ip + 8);

	/* carries come in again at the other end */
	sum += addresses;
	sum += sum < addresses;
	sum += half;
	sum += sum < half;
	plain_store(ip + 10, (uint16_t)~csum_fold(sum));
}

/*
 * A packet of one kind: `header` bytes of layer 3, `addresses` of them at its end. `ip`: the IPv4
 * header too. False: not plain, untouched.
 */
static __rte_always_inline PLAIN_TARGET bool
plain_packet(struct rte_mbuf *m, const struct packet_view *view, bool ip, uint32_t header,
	uint32_t addresses, uint8_t proto)
{
	const uint64_t rx_sums =
		RTE_MBUF_F_RX_L4_CKSUM_MASK | (ip ? RTE_MBUF_F_RX_IP_CKSUM_MASK : 0);
	const uint32_t field = proto == IPPROTO_UDP ? 6 : 16;
	uint32_t len = view->l3_end - view->l4_off;
	uint8_t *l4 = rte_pktmbuf_mtod_offset(m, uint8_t *, view->l4_off);
	uint64_t sum;
	uint16_t value;

	if (unlikely(view->l3_off + header != view->l4_off || m->nb_segs != 1 ||
		    rte_mbuf_refcnt_read(m) != 1 || (m->ol_flags & PLAIN_NEVER) != 0 ||
		    !plain_fits(l4, len, proto)))
		return false;
	/* the field itself goes in and comes out again; the pseudo-header keeps the rest from being
	 * 0 */
	sum = PLAIN_SUM(l4 - addresses, len + addresses);
	sum += (uint16_t)~plain_half(l4 + field);
	sum += RTE_BE16((uint16_t)proto) + (uint64_t)rte_cpu_to_be_16((uint16_t)len);
	value = (uint16_t)~csum_fold(sum);
	if (proto == IPPROTO_UDP && value == 0)
		value = UINT16_MAX;
	plain_store(l4 + field, value);
	if (ip)
		plain_ipv4_header(l4 - header);
	if (unlikely((m->ol_flags & rx_sums) != 0))
		m->ol_flags &= ~rx_sums;
	return true;
}

static __rte_always_inline PLAIN_TARGET bool
plain_one(struct rte_mbuf *m, const struct packet_view *view, bool ip, bool udp, bool tcp)
{
	uint32_t kind;

	memcpy(&kind, &view->l3, sizeof(kind));
	if (udp && likely(kind == PLAIN_KIND(PACKET_L3_IPV4, IPPROTO_UDP)))
		return plain_packet(m, view, ip, 20, 8, IPPROTO_UDP);
	if (tcp && likely(kind == PLAIN_KIND(PACKET_L3_IPV4, IPPROTO_TCP)))
		return plain_packet(m, view, ip, 20, 8, IPPROTO_TCP);
	if (udp && kind == PLAIN_KIND(PACKET_L3_IPV6, IPPROTO_UDP))
		return plain_packet(m, view, false, 40, 32, IPPROTO_UDP);
	if (tcp && kind == PLAIN_KIND(PACKET_L3_IPV6, IPPROTO_TCP))
		return plain_packet(m, view, false, 40, 32, IPPROTO_TCP);
	return false;
}

static PLAIN_TARGET uint64_t
plain(const struct action_burst *burst, uint64_t mask, uint32_t flags)
{
	const bool udp = (flags & TCA_CSUM_UPDATE_FLAG_UDP) != 0;
	const bool tcp = (flags & TCA_CSUM_UPDATE_FLAG_TCP) != 0;
	const bool ip = (flags & TCA_CSUM_UPDATE_FLAG_IPV4HDR) != 0;
	const struct packet_view *views = burst->vector->views;
	struct rte_mbuf *const *pkts = burst->pkts;
	uint64_t others = 0;

	for (; mask != 0; mask &= mask - 1) {
		size_t i = (size_t)__builtin_ctzll(mask);

		if (unlikely(!plain_one(pkts[i], &views[i], ip, udp, tcp)))
			others |= mask & -mask;
	}
	return others;
}
