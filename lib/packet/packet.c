/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "packet/packet.h"

#define ETHER_TYPE_QINQ_OLD 0x9100 /* before 802.1ad */
#define ETHER_TYPE_MIN 0x0600 /* below: a length, LLC follows */
#define IPV4_HDR_MIN 20
#define IPV4_MORE 0x2000
#define IPV4_OFFSET_MASK 0x1fff
#define IPV6_HDR 40
#define IPV4_OPTION_END 0
#define IPV4_OPTION_NOP 1
#define IPV4_OPTION_LSRR 131
#define IPV4_OPTION_SSRR 137
#define IPV6_OPTION_PAD1 0
#define IPV6_OPTION_JUMBO 0xc2
#define IPV6_OPTION_HOME 201 /* RFC 6275, 6.3 */
#define IPV6_EXT_MAX 2048 /* bytes of one extension header: 8 + 8 * 255 */
#define ROUTING_TYPE_SOURCE 0
#define ROUTING_TYPE_MOBILE 2
#define ROUTING_TYPE_SEGMENT 4
#define PREFETCH_AHEAD 4

/* What a chain of IPv6 extension headers leaves behind for the ones after it. */
struct walk {
	const struct rte_mbuf *m;
	struct packet_view *view;
	uint32_t off; /* of the header being looked at */
	uint8_t proto; /* what it is */
	bool jumbo; /* a valid jumbo payload option was seen */
};

static uint16_t
get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_16(v);
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_32(v);
}

static bool
is_vlan(uint16_t type)
{
	return type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ ||
		type == ETHER_TYPE_QINQ_OLD;
}

/* Reads Ethernet and the tags. False, with view->stop set, if there is no layer 3 to look at. */
static bool
parse_l2(const struct rte_mbuf *m, struct packet_view *view)
{
	uint32_t off = RTE_ETHER_HDR_LEN;
	const uint8_t *p;
	uint8_t buf[4];

	view->stop = PACKET_STOP_CUT_L2;
	if ((p = packet_read(m, off - 2, 2, buf)) == NULL)
		return false;
	view->ether_type = get16(p);
	while (is_vlan(view->ether_type)) {
		if (view->n_vlan == PACKET_VLAN_MAX) {
			view->stop = PACKET_STOP_VLAN_DEPTH;
			return false;
		}
		if ((p = packet_read(m, off, 4, buf)) == NULL)
			return false;
		view->ether_type = get16(p + 2);
		view->n_vlan++;
		off += 4;
	}
	view->l3_off = (uint16_t)off;
	view->l3_end = m->pkt_len;
	view->stop = PACKET_STOP_NOT_IP;
	return view->ether_type >= ETHER_TYPE_MIN;
}

/*
 * Looks through IPv4 options for a source route that has addresses left (RFC 791, 3.1). False if
 * an option lies about its length.
 */
static bool
parse_ipv4_options(const struct rte_mbuf *m, struct packet_view *view, uint32_t hlen)
{
	uint8_t buf[60];
	const uint8_t *o;
	uint32_t i, n = hlen - IPV4_HDR_MIN, olen;
	bool seen = false;

	if ((o = packet_read(m, view->l3_off + IPV4_HDR_MIN, n, buf)) == NULL)
		return false;
	for (i = 0; i < n && o[i] != IPV4_OPTION_END; i += olen) {
		if (o[i] == IPV4_OPTION_NOP) {
			olen = 1;
			continue;
		}
		if (n - i < 2 || (olen = o[i + 1]) < 2 || olen > n - i)
			return false;
		if (o[i] != IPV4_OPTION_LSRR && o[i] != IPV4_OPTION_SSRR)
			continue;
		/* type, length, pointer (from 1, to the next address), addresses */
		if (seen || olen < 3 || olen % 4 != 3 || o[i + 2] < 4 || o[i + 2] % 4 != 0)
			return false;
		seen = true;
		if (o[i + 2] > olen)
			continue;
		view->dst_off = (uint16_t)(view->l3_off + IPV4_HDR_MIN + i + olen - 4);
		view->flags |= PACKET_F_ROUTED;
	}
	return true;
}

static void
parse_ipv4(const struct rte_mbuf *m, struct packet_view *view)
{
	uint32_t hlen, total, left = m->pkt_len - view->l3_off;
	uint8_t buf[IPV4_HDR_MIN];
	const uint8_t *p;
	uint16_t frag;

	view->l3 = PACKET_L3_IPV4;
	view->stop = PACKET_STOP_MALFORMED_L3;
	view->l3_end = view->l3_off;
	if ((p = packet_read(m, view->l3_off, IPV4_HDR_MIN, buf)) == NULL || p[0] >> 4 != 4)
		return;
	hlen = (p[0] & 0xf) * 4;
	total = get16(p + 2);
	if (hlen < IPV4_HDR_MIN || total < hlen || left < hlen)
		return;
	view->flags = PACKET_F_L3;
	if (total > left) {
		view->flags |= PACKET_F_CUT;
		total = left;
	}
	view->l3_end = view->l3_off + total;
	view->src_off = view->l3_off + 12;
	view->dst_off = view->l3_off + 16;
	frag = get16(p + 6);
	view->l4_proto = p[9];
	if (hlen > IPV4_HDR_MIN && !parse_ipv4_options(m, view, hlen)) {
		view->stop = PACKET_STOP_MALFORMED_EXT;
		view->l4_proto = 0;
		return;
	}
	if ((frag & (IPV4_MORE | IPV4_OFFSET_MASK)) != 0) {
		view->stop = PACKET_STOP_FRAGMENT;
		view->flags |= PACKET_F_FRAGMENT;
		if ((frag & IPV4_OFFSET_MASK) == 0) {
			view->flags |= PACKET_F_FIRST_FRAG;
			if (hlen < total)
				view->rest_off = (uint16_t)(view->l3_off + hlen);
		}
	} else if (hlen == total) {
		view->stop = PACKET_STOP_CUT_L4;
		view->l4_proto = 0;
	} else if (view->l4_proto == IPPROTO_ESP || view->l4_proto == IPPROTO_AH) {
		view->stop = PACKET_STOP_OPAQUE;
		view->rest_off = (uint16_t)(view->l3_off + hlen);
	} else {
		view->stop = PACKET_STOP_NONE;
		view->l4_off = (uint16_t)(view->l3_off + hlen);
	}
}

/*
 * A jumbo payload option, `at` bytes into a hop-by-hop header (RFC 2675): it makes L longer. False
 * if it is malformed.
 */
static bool
walk_jumbo(struct walk *w, const uint8_t *h, uint32_t at)
{
	struct packet_view *view = w->view;
	uint32_t length;

	if (w->jumbo || h[at + 1] != 4 || at % 4 != 2 || view->l3_end != w->off)
		return false;
	length = get32(h + at + 2);
	if (length <= UINT16_MAX || length > w->m->pkt_len - view->l3_off - IPV6_HDR)
		return false;
	w->jumbo = true;
	view->l3_end = view->l3_off + IPV6_HDR + length;
	return true;
}

/* Options of a hop-by-hop or destination header of `len` bytes (RFC 8200, 4.2). False if one lies.
 */
static bool
walk_options(struct walk *w, uint32_t len)
{
	uint8_t buf[IPV6_EXT_MAX];
	const uint8_t *h;
	uint32_t i, olen;

	if ((h = packet_read(w->m, w->off, len, buf)) == NULL)
		return false;
	for (i = 2; i < len; i += olen) {
		if (h[i] == IPV6_OPTION_PAD1) {
			olen = 1;
			continue;
		}
		if (len - i < 2 || (olen = 2u + h[i + 1]) > len - i)
			return false;
		if (h[i] == IPV6_OPTION_JUMBO && w->proto == IPPROTO_HOPOPTS) {
			if (!walk_jumbo(w, h, i))
				return false;
		} else if (h[i] == IPV6_OPTION_HOME && w->proto == IPPROTO_DSTOPTS) {
			if (olen != 18 || (w->view->flags & PACKET_F_HOME) != 0 ||
				w->off + i + 2 > UINT16_MAX)
				return false;
			w->view->src_off = (uint16_t)(w->off + i + 2);
			w->view->flags |= PACKET_F_HOME;
		}
	}
	return true;
}

/*
 * A routing header of `len` bytes, whose first 8 are h: finds the final destination while segments
 * are left (RFC 8200, 4.4; RFC 6275, 6.4; RFC 8754, 2).
 */
static enum packet_stop
walk_routing(struct walk *w, const uint8_t *h, uint32_t len)
{
	uint32_t left = h[3], last = h[4], at;

	if (left == 0)
		return PACKET_STOP_NONE;
	switch (h[2]) {
	case ROUTING_TYPE_SOURCE:
		if (len % 16 != 8 || left > len / 16)
			return PACKET_STOP_MALFORMED_EXT;
		at = w->off + len - 16;
		break;
	case ROUTING_TYPE_MOBILE:
		if (len != 24 || left != 1)
			return PACKET_STOP_MALFORMED_EXT;
		at = w->off + 8;
		break;
	case ROUTING_TYPE_SEGMENT:
		/* a reduced header leaves the first segment out of its list: last + 1 may be left
		 */
		if (8 + 16 * (last + 1) > len || left > last + 1)
			return PACKET_STOP_MALFORMED_EXT;
		at = w->off + 8;
		break;
	default:
		return PACKET_STOP_OPAQUE;
	}
	if (at > UINT16_MAX)
		return PACKET_STOP_EXT_LIMIT;
	w->view->dst_off = (uint16_t)at;
	w->view->flags |= PACKET_F_ROUTED;
	return PACKET_STOP_NONE;
}

/* A fragment header; h is all of it. NONE for an atomic fragment (RFC 6946). */
static enum packet_stop
walk_fragment(struct walk *w, const uint8_t *h)
{
	uint16_t frag = get16(h + 2);

	if (w->jumbo)
		return PACKET_STOP_MALFORMED_EXT;
	if ((frag & 0xfff9) == 0)
		return PACKET_STOP_NONE;
	w->view->flags |= PACKET_F_FRAGMENT;
	w->view->l4_proto = h[0];
	if ((frag & 0xfff8) == 0)
		w->view->flags |= PACKET_F_FIRST_FRAG;
	return PACKET_STOP_FRAGMENT;
}

static bool
is_extension(uint8_t proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
		proto == IPPROTO_DSTOPTS || proto == IPPROTO_AH || proto == IPPROTO_ESP ||
		proto == IPPROTO_NONE;
}

/* Steps over the extension header at w->off. NONE: w->off and w->proto are the next one's. */
static enum packet_stop
walk_step(struct walk *w)
{
	enum packet_stop stop = PACKET_STOP_NONE;
	uint32_t len, end = w->view->l3_end;
	uint8_t buf[8];
	const uint8_t *h;

	/* with a payload length of 0 the jumbo option that says what L is lies beyond L so far */
	if (w->proto == IPPROTO_HOPOPTS && w->off == end)
		end = w->m->pkt_len;
	if (end - w->off < 8 || (h = packet_read(w->m, w->off, 8, buf)) == NULL)
		return PACKET_STOP_MALFORMED_EXT;
	len = w->proto == IPPROTO_FRAGMENT ? 8 : 8 + 8u * h[1];
	if (len > end - w->off)
		return PACKET_STOP_MALFORMED_EXT;
	switch (w->proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_DSTOPTS:
		if (!walk_options(w, len) || len > w->view->l3_end - w->off)
			stop = PACKET_STOP_MALFORMED_EXT;
		break;
	case IPPROTO_ROUTING:
		stop = walk_routing(w, h, len);
		break;
	case IPPROTO_FRAGMENT:
		stop = walk_fragment(w, h);
		break;
	}
	if (stop != PACKET_STOP_NONE && stop != PACKET_STOP_FRAGMENT)
		return stop;
	w->proto = h[0];
	w->off += len;
	return stop;
}

/* Walks from the IPv6 header to layer 4 or to what stops it. */
static void
walk_ipv6(struct walk *w)
{
	struct packet_view *view = w->view;
	enum packet_stop stop = PACKET_STOP_NONE;
	unsigned int n;

	for (n = 0; is_extension(w->proto); n++) {
		if (w->proto == IPPROTO_AH || w->proto == IPPROTO_ESP || w->proto == IPPROTO_NONE) {
			stop = PACKET_STOP_OPAQUE;
			break;
		}
		/* hop-by-hop options stand first or nowhere */
		if (w->proto == IPPROTO_HOPOPTS && n != 0)
			stop = PACKET_STOP_MALFORMED_EXT;
		else if (n == PACKET_EXT_MAX)
			stop = PACKET_STOP_EXT_LIMIT;
		else
			stop = walk_step(w);
		if (stop != PACKET_STOP_NONE)
			break;
	}
	if (stop == PACKET_STOP_NONE && w->off >= view->l3_end)
		stop = PACKET_STOP_CUT_L4;
	if (stop == PACKET_STOP_NONE && w->off > UINT16_MAX)
		stop = PACKET_STOP_EXT_LIMIT;
	view->stop = stop;
	if (stop == PACKET_STOP_NONE) {
		view->l4_off = (uint16_t)w->off;
		view->l4_proto = w->proto;
	} else if (stop == PACKET_STOP_OPAQUE) {
		view->rest_off = w->off <= UINT16_MAX ? (uint16_t)w->off : 0;
		view->l4_proto = w->proto;
	} else if ((view->flags & PACKET_F_FIRST_FRAG) != 0 && !is_extension(w->proto) &&
		w->off < view->l3_end && w->off <= UINT16_MAX) {
		view->rest_off = (uint16_t)w->off;
	}
}

static void
parse_ipv6(const struct rte_mbuf *m, struct packet_view *view)
{
	struct walk w = { .m = m, .view = view };
	uint32_t length, left = m->pkt_len - view->l3_off;
	uint8_t buf[IPV6_HDR];
	const uint8_t *p;

	view->l3 = PACKET_L3_IPV6;
	view->stop = PACKET_STOP_MALFORMED_L3;
	view->l3_end = view->l3_off;
	if ((p = packet_read(m, view->l3_off, IPV6_HDR, buf)) == NULL || p[0] >> 4 != 6)
		return;
	length = IPV6_HDR + get16(p + 4);
	view->flags = PACKET_F_L3;
	if (length > left) {
		view->flags |= PACKET_F_CUT;
		length = left;
	}
	view->l3_end = view->l3_off + length;
	view->src_off = view->l3_off + 8;
	view->dst_off = view->l3_off + 24;
	w.proto = p[6];
	w.off = view->l3_off + IPV6_HDR;
	walk_ipv6(&w);
}

static void __rte_noinline
parse_any(const struct rte_mbuf *m, struct packet_view *view)
{
	memset(view, 0, sizeof(*view));
	if (!parse_l2(m, view))
		return;
	switch (view->ether_type) {
	case RTE_ETHER_TYPE_IPV4:
		parse_ipv4(m, view);
		break;
	case RTE_ETHER_TYPE_IPV6:
		parse_ipv6(m, view);
		break;
	case RTE_ETHER_TYPE_ARP:
		view->l3 = PACKET_L3_ARP;
		break;
	}
}

/* The common frame: untagged, whole, in one segment as far as its headers go. False: look closely.
 */
static __rte_always_inline bool
parse_plain(const struct rte_mbuf *m, struct packet_view *view)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t end;
	uint16_t type, frag;
	uint8_t proto;

	if (unlikely(m->data_len < RTE_ETHER_HDR_LEN + IPV4_HDR_MIN))
		return false;
	memcpy(&type, p + 12, sizeof(type));
	memcpy(&frag, p + 20, sizeof(frag));
	if (likely(type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && p[14] == 0x45)) {
		proto = p[23];
		end = RTE_ETHER_HDR_LEN + get16(p + 16);
		if (unlikely((frag & RTE_BE16(IPV4_MORE | IPV4_OFFSET_MASK)) != 0 ||
			    end <= RTE_ETHER_HDR_LEN + IPV4_HDR_MIN || end > m->pkt_len ||
			    proto == IPPROTO_AH))
			return false;
		*view = (struct packet_view){
			.l3_end = end,
			.l3_off = RTE_ETHER_HDR_LEN,
			.l4_off = RTE_ETHER_HDR_LEN + IPV4_HDR_MIN,
			.src_off = RTE_ETHER_HDR_LEN + 12,
			.dst_off = RTE_ETHER_HDR_LEN + 16,
			.ether_type = RTE_ETHER_TYPE_IPV4,
			.l3 = PACKET_L3_IPV4,
			.stop = PACKET_STOP_NONE,
			.flags = PACKET_F_L3,
			.l4_proto = proto,
		};
		if (unlikely(proto == IPPROTO_ESP)) {
			view->stop = PACKET_STOP_OPAQUE;
			view->rest_off = view->l4_off;
			view->l4_off = 0;
		}
		return true;
	}
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && m->data_len > RTE_ETHER_HDR_LEN + IPV6_HDR) {
		proto = p[20];
		end = RTE_ETHER_HDR_LEN + IPV6_HDR + get16(p + 18);
		if (unlikely(p[14] >> 4 != 6 || is_extension(proto) ||
			    end <= RTE_ETHER_HDR_LEN + IPV6_HDR || end > m->pkt_len))
			return false;
		*view = (struct packet_view){
			.l3_end = end,
			.l3_off = RTE_ETHER_HDR_LEN,
			.l4_off = RTE_ETHER_HDR_LEN + IPV6_HDR,
			.src_off = RTE_ETHER_HDR_LEN + 8,
			.dst_off = RTE_ETHER_HDR_LEN + 24,
			.ether_type = RTE_ETHER_TYPE_IPV6,
			.l3 = PACKET_L3_IPV6,
			.stop = PACKET_STOP_NONE,
			.flags = PACKET_F_L3,
			.l4_proto = proto,
		};
		return true;
	}
	return false;
}

void
packet_view_parse(const struct rte_mbuf *m, struct packet_view *view)
{
	if (!parse_plain(m, view))
		parse_any(m, view);
}

void
packet_view_parse_burst(struct rte_mbuf *const *pkts, struct packet_view *views, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && i < PREFETCH_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], const void *));
	for (i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], const void *));
		if (unlikely(!parse_plain(pkts[i], &views[i])))
			parse_any(pkts[i], &views[i]);
	}
}

static const char *const stop_names[] = {
#define X(id, name, text) [PACKET_STOP_##id] = name,
	PACKET_STOP_LIST(X)
#undef X
};

static const char *const stop_texts[] = {
#define X(id, name, text) [PACKET_STOP_##id] = text,
	PACKET_STOP_LIST(X)
#undef X
};

const char *
packet_stop_name(unsigned int stop)
{
	return stop < PACKET_STOP_MAX ? stop_names[stop] : "?";
}

const char *
packet_stop_text(unsigned int stop)
{
	return stop < PACKET_STOP_MAX ? stop_texts[stop] : "?";
}

int
packet_meta_register(void)
{
	static const struct rte_mbuf_dynfield field = {
		.name = PACKET_META_NAME,
		.size = sizeof(struct packet_meta),
		.align = __alignof__(struct packet_meta),
	};

	return rte_mbuf_dynfield_register(&field);
}
