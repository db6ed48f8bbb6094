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

#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "csum_action/update.h"

#define PLAIN_RX_SUMS (RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK)
#define PLAIN_NEVER \
	(CSUM_MARKED | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | \
		RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)
#define PLAIN_AHEAD 2

static __rte_always_inline uint64_t
plain_word(const uint8_t *p)
{
	uint32_t w;

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

/* Layer 4 of one packet whose addresses begin `addresses` bytes before it. False: not plain,
 * untouched. */
static __rte_always_inline PLAIN_TARGET bool
plain_l4(uint8_t *l4, uint32_t len, uint32_t addresses, uint8_t proto)
{
	uint8_t *field;
	uint64_t sum;
	uint16_t value;

	if (proto == IPPROTO_UDP) {
		field = l4 + 6;
		if (unlikely(len < 8 || rte_be_to_cpu_16(plain_half(l4 + 4)) != len ||
			    plain_half(field) == 0))
			return false;
	} else {
		field = l4 + 16;
		if (unlikely(len < 20 || (l4[12] >> 4) * 4u < 20 || (l4[12] >> 4) * 4u > len))
			return false;
	}
	/* the field itself goes in and comes out again; the pseudo-header keeps the rest from being
	 * 0 */
	sum = PLAIN_SUM(l4 - addresses, len + addresses) + (uint16_t)~plain_half(field);
	sum += rte_cpu_to_be_16(proto) + (uint64_t)rte_cpu_to_be_16((uint16_t)len);
	value = (uint16_t)~csum_fold(sum);
	if (proto == IPPROTO_UDP && value == 0)
		value = 0xffff;
	plain_store(field, value);
	return true;
}

static __rte_always_inline void
plain_ipv4_header(uint8_t *ip)
{
	uint64_t sum = plain_word(ip) + plain_word(ip + 4) + plain_word(ip + 12) +
		plain_word(ip + 16) + plain_half(ip + 8);

	plain_store(ip + 10, (uint16_t)~csum_fold(sum));
}

/* One packet. False: not plain, untouched. */
static __rte_always_inline PLAIN_TARGET bool
plain_packet(struct rte_mbuf *m, const struct packet_view *view, uint32_t flags)
{
	uint32_t l4_len = view->l3_end - view->l4_off, asked;
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, view->l3_off);

	if (unlikely(view->stop != PACKET_STOP_NONE || view->flags != PACKET_F_L3 ||
		    m->nb_segs != 1 || rte_mbuf_refcnt_read(m) != 1 ||
		    (m->ol_flags & PLAIN_NEVER) != 0))
		return false;
	if (view->l4_proto == IPPROTO_UDP)
		asked = flags & TCA_CSUM_UPDATE_FLAG_UDP;
	else if (view->l4_proto == IPPROTO_TCP)
		asked = flags & TCA_CSUM_UPDATE_FLAG_TCP;
	else
		return false;
	if (view->l3 == PACKET_L3_IPV4) {
		if (unlikely(view->l4_off - view->l3_off != 20 || asked == 0 ||
			    !plain_l4(ip + 20, l4_len, 8, view->l4_proto)))
			return false;
		if ((flags & TCA_CSUM_UPDATE_FLAG_IPV4HDR) != 0)
			plain_ipv4_header(ip);
	} else {
		if (unlikely(view->l4_off - view->l3_off != 40 || asked == 0 ||
			    l4_len > UINT16_MAX || !plain_l4(ip + 40, l4_len, 32, view->l4_proto)))
			return false;
	}
	if ((m->ol_flags & PLAIN_RX_SUMS) != 0) {
		m->ol_flags &= ~(uint64_t)RTE_MBUF_F_RX_L4_CKSUM_MASK;
		if ((flags & TCA_CSUM_UPDATE_FLAG_IPV4HDR) != 0)
			m->ol_flags &= ~(uint64_t)RTE_MBUF_F_RX_IP_CKSUM_MASK;
	}
	return true;
}

static PLAIN_TARGET uint64_t
plain(const struct action_burst *burst, uint64_t mask, uint32_t flags)
{
	const struct packet_view *views = burst->vector->views;
	uint64_t others = 0;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		if (unlikely(!plain_packet(burst->pkts[i], &views[i], flags)))
			others |= UINT64_C(1) << i;
	}
	return others;
}
