/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ip.h>

#include "csum_action/update.h"

#define L4_HDR_MIN 8 /* of ICMP, ICMPv6, IGMP, UDP and UDP-Lite */
#define TCP_HDR_MIN 20
#define SCTP_HDR 12
#define FIELD_MAX 4
#define L2_LEN_MAX 127 /* what the mbuf's fields hold */
#define L3_LEN_MAX 511
#define MEMORY_FLAGS ((uint64_t)(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL))

/* Bytes that are to stand at a frame offset. */
struct edit {
	uint32_t off;
	uint32_t len;
	uint8_t bytes[FIELD_MAX];
};

static const uint8_t stop_reasons[PACKET_STOP_MAX] = {
	[PACKET_STOP_NONE] = CSUM_ACTION_COMPUTED,
	[PACKET_STOP_NOT_IP] = CSUM_ACTION_NOT_IP,
	[PACKET_STOP_CUT_L2] = CSUM_ACTION_CUT_L2,
	[PACKET_STOP_VLAN_DEPTH] = CSUM_ACTION_VLAN_DEPTH,
	[PACKET_STOP_MALFORMED_L3] = CSUM_ACTION_MALFORMED_L3,
	[PACKET_STOP_FRAGMENT] = CSUM_ACTION_FRAGMENT,
	[PACKET_STOP_MALFORMED_EXT] = CSUM_ACTION_MALFORMED_EXT,
	[PACKET_STOP_EXT_LIMIT] = CSUM_ACTION_EXT_LIMIT,
	[PACKET_STOP_OPAQUE] = CSUM_ACTION_OPAQUE,
	[PACKET_STOP_CUT_L4] = CSUM_ACTION_CUT_L4,
};

static uint16_t
get_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_16(v);
}

/* The 32-bit word whose first two bytes in memory are those of h. */
static uint32_t
from_half(uint16_t h)
{
	uint32_t v = 0;

	memcpy(&v, &h, sizeof(h));
	return v;
}

/* The flag that asks for this protocol's sum; 0 if it has none. */
static uint32_t
proto_flag(uint8_t l3, uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return TCA_CSUM_UPDATE_FLAG_TCP;
	case IPPROTO_UDP:
		return TCA_CSUM_UPDATE_FLAG_UDP;
	case IPPROTO_UDPLITE:
		return TCA_CSUM_UPDATE_FLAG_UDPLITE;
	case IPPROTO_SCTP:
		return TCA_CSUM_UPDATE_FLAG_SCTP;
	case IPPROTO_ICMP:
		return l3 == PACKET_L3_IPV4 ? TCA_CSUM_UPDATE_FLAG_ICMP : 0;
	case IPPROTO_IGMP:
		return l3 == PACKET_L3_IPV4 ? TCA_CSUM_UPDATE_FLAG_IGMP : 0;
	case IPPROTO_ICMPV6:
		return l3 == PACKET_L3_IPV6 ? TCA_CSUM_UPDATE_FLAG_ICMP : 0;
	default:
		return 0;
	}
}

static bool
find_tcp(const struct rte_mbuf *m, uint32_t off, uint32_t len, struct csum_l4 *l4)
{
	uint8_t buf[TCP_HDR_MIN];
	const uint8_t *h;
	uint32_t hlen;

	if (len < TCP_HDR_MIN || (h = packet_read(m, off, TCP_HDR_MIN, buf)) == NULL)
		return false;
	hlen = (h[12] >> 4) * 4u;
	l4->field = off + 16;
	l4->pseudo = true;
	return hlen >= TCP_HDR_MIN && hlen <= len;
}

/*
 * The UDP length must be what IP has, for the pseudo-header names it; a jumbogram's is 0 (RFC 2675,
 * 4). UDP-Lite has its coverage there (RFC 3828, 3.1): 0 for all.
 */
static bool
find_udp(const struct rte_mbuf *m, const struct packet_view *view, uint32_t len, struct csum_l4 *l4)
{
	uint8_t buf[L4_HDR_MIN];
	const uint8_t *h;
	uint32_t length;

	if (len < L4_HDR_MIN || (h = packet_read(m, view->l4_off, L4_HDR_MIN, buf)) == NULL)
		return false;
	length = get_be16(h + 4);
	l4->field = view->l4_off + 6u;
	l4->pseudo = true;
	l4->ones = true;
	if (view->l4_proto == IPPROTO_UDPLITE) {
		if (length == 0)
			length = len;
		l4->end = view->l4_off + length;
		return length >= L4_HDR_MIN && length <= len;
	}
	l4->none = view->l3 == PACKET_L3_IPV4 && get_be16(h + 6) == 0;
	return length == len || (length == 0 && len > UINT16_MAX);
}

enum csum_action_reason
csum_l4_find(const struct rte_mbuf *m, const struct packet_view *view, uint32_t flags,
	struct csum_l4 *l4)
{
	uint32_t flag, len = view->l3_end - view->l4_off;
	bool fits;

	if ((view->flags & PACKET_F_L3) == 0)
		return stop_reasons[view->stop];
	if ((flags & CSUM_FLAGS_L4) == 0)
		return CSUM_ACTION_UNASKED;
	flag = proto_flag(view->l3, view->l4_proto);
	if (view->stop != PACKET_STOP_NONE) {
		if (view->stop == PACKET_STOP_FRAGMENT && flag != 0 && (flag & flags) == 0)
			return CSUM_ACTION_UNASKED;
		return stop_reasons[view->stop];
	}
	if ((flag & flags) == 0)
		return CSUM_ACTION_UNASKED;
	*l4 = (struct csum_l4){ .end = view->l3_end };
	switch (view->l4_proto) {
	case IPPROTO_TCP:
		fits = find_tcp(m, view->l4_off, len, l4);
		break;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		fits = find_udp(m, view, len, l4);
		break;
	case IPPROTO_SCTP:
		l4->field = view->l4_off + 8u;
		l4->crc = true;
		fits = len >= SCTP_HDR;
		break;
	default: /* ICMP, ICMPv6, IGMP */
		l4->field = view->l4_off + 2u;
		l4->pseudo = view->l3 == PACKET_L3_IPV6;
		fits = len >= L4_HDR_MIN;
		break;
	}
	return fits ? CSUM_ACTION_COMPUTED : CSUM_ACTION_MALFORMED_L4;
}

uint16_t
csum_range(const struct csum_impl *impl, const struct rte_mbuf *m, uint32_t off, uint32_t end)
{
	uint32_t len = end - off, done = 0, n;
	uint64_t sum = 0;
	uint16_t part;

	for (; m != NULL && done < len; m = m->next) {
		if (off >= m->data_len) {
			off -= m->data_len;
			continue;
		}
		n = RTE_MIN(m->data_len - off, len - done);
		part = csum_fold(impl->sum(rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n));
		/* words of a piece that begins at an odd byte have their halves exchanged */
		sum += done % 2 == 0 ? part : rte_bswap16(part);
		done += n;
		off = 0;
	}
	return csum_fold(sum);
}

static uint32_t
crc_range(const struct csum_impl *impl, uint32_t crc, const struct rte_mbuf *m, uint32_t off,
	uint32_t end)
{
	uint32_t len = end - off, done = 0, n;

	for (; m != NULL && done < len; m = m->next) {
		if (off >= m->data_len) {
			off -= m->data_len;
			continue;
		}
		n = RTE_MIN(m->data_len - off, len - done);
		crc = impl->crc32c(crc, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n);
		done += n;
		off = 0;
	}
	return crc;
}

/* RFC 9260, 6.8: over the packet with 0 in the field, sent with its low byte first. */
static uint32_t
sctp_value(const struct csum_impl *impl, const struct rte_mbuf *m, const struct packet_view *view,
	const struct csum_l4 *l4)
{
	static const uint8_t zero[4];
	uint32_t crc;

	crc = crc_range(impl, UINT32_MAX, m, view->l4_off, l4->field);
	crc = impl->crc32c(crc, zero, sizeof(zero));
	crc = crc_range(impl, crc, m, l4->field + 4, l4->end);
	return rte_cpu_to_le_32(~crc);
}

/* Unfolded: addresses, protocol, length. The view vouches for the addresses. */
static uint64_t
pseudo_sum(const struct csum_impl *impl, const struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t size = view->l3 == PACKET_L3_IPV4 ? 4 : 16;
	uint64_t sum = rte_cpu_to_be_16(view->l4_proto);

	sum += csum_range(impl, m, view->src_off, view->src_off + size);
	sum += csum_range(impl, m, view->dst_off, view->dst_off + size);
	return sum + rte_cpu_to_be_32(view->l3_end - view->l4_off);
}

uint32_t
csum_l4_value(const struct csum_impl *impl, const struct rte_mbuf *m,
	const struct packet_view *view, const struct csum_l4 *l4)
{
	uint64_t sum;
	uint16_t value;

	if (l4->crc)
		return sctp_value(impl, m, view, l4);
	/* both pieces begin at even offsets from l4_off */
	sum = csum_range(impl, m, view->l4_off, l4->field);
	sum += csum_range(impl, m, l4->field + 2, l4->end);
	if (l4->pseudo)
		sum += pseudo_sum(impl, m, view);
	value = (uint16_t)~csum_fold(sum);
	return from_half(l4->ones && value == 0 ? UINT16_MAX : value);
}

/* False if these bytes stand where others may read or own them. */
static bool
is_writable(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	for (; m != NULL && len > 0; m = m->next) {
		uint32_t n;

		if (off >= m->data_len) {
			off -= m->data_len;
			continue;
		}
		if (rte_mbuf_refcnt_read(m) != 1 || RTE_MBUF_CLONED(m) ||
			(RTE_MBUF_HAS_EXTBUF(m) && !RTE_MBUF_HAS_PINNED_EXTBUF(m)))
			return false;
		n = RTE_MIN(m->data_len - off, len);
		len -= n;
		off = 0;
	}
	return true;
}

static void
put(struct rte_mbuf *m, const struct edit *e)
{
	uint32_t off = e->off, done = 0;

	for (; m != NULL && done < e->len; m = m->next) {
		for (; off < m->data_len && done < e->len; off++, done++)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, off) = e->bytes[done];
		off = done == 0 ? off - m->data_len : 0;
	}
}

/* True if the bytes stand there already. */
static bool
stands(const struct rte_mbuf *m, const struct edit *e)
{
	uint8_t buf[FIELD_MAX];
	const void *p = packet_read(m, e->off, e->len, buf);

	return p != NULL && memcmp(p, e->bytes, e->len) == 0;
}

/* A copy in whole mbufs of the pool that the frame's own memory came from. NULL if there is none to
 * have. */
static struct rte_mbuf *
copy(const struct rte_mbuf *m)
{
	struct rte_mempool *pool = m->pool;

	if (RTE_MBUF_CLONED(m))
		pool = rte_mbuf_from_indirect((struct rte_mbuf *)(uintptr_t)m)->pool;
	if (rte_pktmbuf_data_room_size(pool) <= RTE_PKTMBUF_HEADROOM)
		return NULL;
	return rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
}

/* What ol_flags become once `ip` and `l4` sums are right in memory (rule A24). */
static uint64_t
flags_after(uint64_t ol_flags, bool ip, bool l4)
{
	if (ip)
		ol_flags &= ~(uint64_t)(RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_RX_IP_CKSUM_MASK);
	if (l4)
		ol_flags &= ~(uint64_t)(RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	if ((ol_flags &
		    (RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_SEC_OFFLOAD)) ==
		0)
		ol_flags &= ~(uint64_t)(RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6);
	return ol_flags;
}

/*
 * What a NIC may be left with: headers in one writable segment, no trailer (some sum to the end of
 * the frame), and a pseudo-header that rte_eth_tx_prepare() will compute as we do: no extension
 * headers, no source route. Lengths as wide as the mbuf's fields.
 */
static bool
can_leave(const struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t l3_len = view->l4_off - view->l3_off;

	return view->stop == PACKET_STOP_NONE && view->flags == PACKET_F_L3 &&
		(view->l3 == PACKET_L3_IPV4 || l3_len == sizeof(struct rte_ipv6_hdr)) &&
		view->l3_off <= L2_LEN_MAX && l3_len <= L3_LEN_MAX && m->pkt_len == view->l3_end &&
		m->data_len >= RTE_MIN(view->l4_off + (uint32_t)TCP_HDR_MIN, view->l3_end) &&
		is_writable(m, 0, m->data_len);
}

/* The Tx flag that leaves this protocol's sum to a NIC with `tx_offloads`; 0 if it does not do it.
 */
static uint64_t
leave_flag(uint8_t proto, uint64_t tx_offloads)
{
	if (proto == IPPROTO_TCP && (tx_offloads & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0)
		return RTE_MBUF_F_TX_TCP_CKSUM;
	if (proto == IPPROTO_UDP && (tx_offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0)
		return RTE_MBUF_F_TX_UDP_CKSUM;
	if (proto == IPPROTO_SCTP && (tx_offloads & RTE_ETH_TX_OFFLOAD_SCTP_CKSUM) != 0)
		return RTE_MBUF_F_TX_SCTP_CKSUM;
	return 0;
}

/* An update under way. */
struct update {
	struct edit edits[2];
	unsigned int n;
	uint64_t ol_flags; /* afterwards */
	uint64_t leave; /* Tx flags among them that leave a sum to the NIC */
};

static void
add_edit(struct update *u, const struct rte_mbuf *m, uint32_t off, uint32_t value, uint32_t len)
{
	struct edit *e = &u->edits[u->n];

	e->off = off;
	e->len = len;
	memcpy(e->bytes, &value,
		sizeof(e->bytes)); /* value lies in memory as it shall: first bytes count */
	if (!stands(m, e))
		u->n++;
}

static void
update_ipv4(struct update *u, const struct csum_impl *impl, const struct rte_mbuf *m,
	const struct packet_view *view, bool leave)
{
	uint32_t off = view->l3_off, field = off + 10;
	uint8_t buf;
	const uint8_t *p = packet_read(m, off, 1, &buf);
	uint16_t value = 0;
	uint64_t sum;

	if (p == NULL)
		return;
	if (leave) {
		u->leave |= RTE_MBUF_F_TX_IP_CKSUM;
	} else {
		sum = csum_range(impl, m, off, field);
		sum += csum_range(impl, m, field + 2, off + (*p & 0xf) * 4u);
		value = (uint16_t)~csum_fold(sum);
	}
	add_edit(u, m, field, from_half(value), 2);
}

static void
update_l4(struct update *u, const struct csum_impl *impl, const struct rte_mbuf *m,
	const struct packet_view *view, const struct csum_l4 *l4, uint64_t leave)
{
	uint32_t value = 0;

	u->leave |= leave;
	if (leave == 0)
		value = csum_l4_value(impl, m, view, l4);
	else if (!l4->crc)
		value = from_half(csum_fold(pseudo_sum(impl, m, view)));
	add_edit(u, m, l4->field, value, l4->crc ? 4 : 2);
}

/* Writes what was worked out, into a copy if need be. False if there is no copy to have. */
static bool
apply(struct rte_mbuf **pm, const struct packet_view *view, const struct update *u)
{
	struct rte_mbuf *m = *pm, *fresh;
	bool ours = u->ol_flags == m->ol_flags || rte_mbuf_refcnt_read(m) == 1;
	unsigned int i;

	for (i = 0; i < u->n; i++)
		ours = ours && is_writable(m, u->edits[i].off, u->edits[i].len);
	if (!ours) {
		if ((fresh = copy(m)) == NULL)
			return false;
		/* the copy's own flags say where its memory is */
		fresh->ol_flags = (fresh->ol_flags & MEMORY_FLAGS) | (u->ol_flags & ~MEMORY_FLAGS);
		rte_pktmbuf_free(m);
		*pm = m = fresh;
	} else if (u->ol_flags != m->ol_flags) {
		m->ol_flags = u->ol_flags;
	}
	for (i = 0; i < u->n; i++)
		put(m, &u->edits[i]);
	if (u->leave != 0) {
		m->l2_len = view->l3_off;
		m->l3_len = view->l4_off - view->l3_off;
	}
	return true;
}

enum csum_action_reason
csum_update(const struct csum_impl *impl, struct rte_mbuf **pm, const struct packet_view *view,
	uint32_t flags, uint64_t tx_offloads)
{
	struct rte_mbuf *m = *pm;
	struct update u = { .n = 0 };
	enum csum_action_reason reason;
	struct csum_l4 l4;
	bool ip, leave;

	if ((m->ol_flags & CSUM_MARKED) != 0)
		return CSUM_ACTION_MARKED;
	if ((view->flags & PACKET_F_CUT) != 0)
		return CSUM_ACTION_CUT_L3;
	reason = csum_l4_find(m, view, flags, &l4);
	ip = (flags & TCA_CSUM_UPDATE_FLAG_IPV4HDR) != 0 && view->l3 == PACKET_L3_IPV4 &&
		(view->flags & PACKET_F_L3) != 0;
	/* a 0 that waits for its sum does not say "none" */
	if (reason == CSUM_ACTION_COMPUTED && l4.none && !csum_is_pending_l4(m->ol_flags))
		reason = CSUM_ACTION_UDP_NONE;
	leave = tx_offloads != 0 && can_leave(m, view);
	if (ip)
		update_ipv4(&u, impl, m, view,
			leave && (tx_offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0);
	if (reason == CSUM_ACTION_COMPUTED)
		update_l4(&u, impl, m, view, &l4,
			leave ? leave_flag(view->l4_proto, tx_offloads) : 0);
	else if (!ip)
		return reason;
	u.ol_flags = flags_after(m->ol_flags, ip, reason == CSUM_ACTION_COMPUTED);
	if (reason == CSUM_ACTION_UNASKED)
		reason = CSUM_ACTION_COMPUTED;
	if (u.leave != 0) {
		u.ol_flags |= u.leave;
		u.ol_flags |= view->l3 == PACKET_L3_IPV4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
		if (reason == CSUM_ACTION_COMPUTED)
			reason = CSUM_ACTION_LEFT;
	}
	return apply(pm, view, &u) ? reason : CSUM_ACTION_NO_COPY;
}
