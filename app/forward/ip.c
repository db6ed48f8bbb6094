/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Mode ip on the workers: RFC 1812 section 5 for a burst. */

#include <string.h>

#include <rte_ip_frag.h>
#include <rte_jhash.h>
#include <rte_ring_elem.h>

#include "forward/ip_burst.h"
#include "forward/ip_esp.h"

#define MAC_MASK UINT64_C(0x0000ffffffffffff) /* of eight bytes loaded, little-endian */
#define HEADERS_MIN (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr)) /* that are written to */
#define REPLIES_BURST 32
#define FRAGMENTS_MAX 64 /* of one packet: 64 KiB by 1 KiB */

static void __rte_noinline
drop_all(struct burst *b)
{
	while (b->dropped != 0) {
		uint8_t why = b->why[__builtin_ctzll(b->dropped)];
		uint64_t mask = 0;
		unsigned int i;

		packet_mask_for_each (i, b->dropped)
			if (b->why[i] == why)
				mask |= UINT64_C(1) << i;
		drop_mask(&b->worker->drops, (enum drop_reason)why, b->pkts, mask);
		b->dropped &= ~mask;
	}
}

void
ip_slow(struct worker *worker, const struct ip_item *item)
{
	struct rte_mbuf *m = item->m;

	if (rte_ring_enqueue_elem(worker->app->ip->slow, (void *)(uintptr_t)item, sizeof(*item)) !=
		0)
		drop(&worker->drops, DROP_IP_SLOW_FULL, &m, 1);
}

void
ip_burst_slow(struct burst *b, unsigned int i, enum ip_why why)
{
	struct ip_item item = { .m = b->pkts[i], .why = (uint8_t)why };

	item.m->port = b->rx_port;
	ip_slow(b->worker, &item);
}

void
ip_burst_too_big(struct burst *b, unsigned int i, uint32_t mtu)
{
	struct ip_item item = { .m = b->pkts[i],
		.why = WHY_TOO_BIG,
		.mtu = (uint16_t)RTE_MIN(mtu, (uint32_t)UINT16_MAX) };

	item.m->port = b->rx_port;
	ip_slow(b->worker, &item);
}

/* --- what came in --- */

static inline uint64_t
frame_dst(const struct rte_mbuf *m)
{
	uint64_t first;

	/* One load; DPDK's unaligned types are aligned ones on x86. */
	memcpy(&first, rte_pktmbuf_mtod(m, const void *), sizeof(first));
	return first & MAC_MASK;
}

/* ICMPv6 to a multicast group of the link. */
static bool
is_neighbour_discovery(const struct burst *b, unsigned int i)
{
	const struct packet_view *view = &b->views[i];
	uint8_t buf[2];
	const uint8_t *dst;

	if (view->l3 != PACKET_L3_IPV6 || view->n_vlan > 0 || view->stop != PACKET_STOP_NONE ||
		view->l4_proto != IPPROTO_ICMPV6)
		return false;
	dst = packet_read(b->pkts[i], view->l3_off + 24, sizeof(buf), buf);
	return dst != NULL && dst[0] == 0xff && (dst[1] & 0x0f) == 2;
}

/* Not for the port's own address. */
static void
not_ours(struct burst *b, unsigned int i)
{
	const struct rte_mbuf *m = b->pkts[i];

	if (m->data_len < RTE_ETHER_HDR_LEN)
		burst_drop(b, DROP_NOT_IP, i);
	else if ((*rte_pktmbuf_mtod(m, const uint8_t *) & 1) == 0)
		burst_drop(b, DROP_NOT_FOR_US, i);
	else if (b->views[i].l3 == PACKET_L3_ARP && b->views[i].n_vlan == 0)
		ip_burst_slow(b, i, WHY_ARP);
	else if (is_neighbour_discovery(b, i))
		ip_burst_slow(b, i, WHY_LOCAL);
	else
		burst_drop(b, DROP_IP_MULTICAST, i);
}

/* For us, but not plain IPv4. */
static void
not_ipv4(struct burst *b, unsigned int i)
{
	const struct packet_view *view = &b->views[i];

	if (view->n_vlan > 0)
		burst_drop(b, DROP_IP_VLAN, i);
	else if (view->l3 == PACKET_L3_ARP)
		ip_burst_slow(b, i, WHY_ARP);
	else if (view->l3 == PACKET_L3_IPV6 && (view->flags & PACKET_F_L3) != 0)
		b->v6 |= UINT64_C(1) << i;
	else if (view->l3 == PACKET_L3_IPV4 || view->l3 == PACKET_L3_IPV6)
		burst_drop(b, DROP_IP_MALFORMED, i);
	else
		burst_drop(b, DROP_NOT_IP, i);
}

bool __rte_noinline
burst_make_writable(struct burst *b, unsigned int i, uint32_t need)
{
	struct rte_mbuf *m = b->pkts[i], *copy;

	if ((copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX)) == NULL) {
		burst_drop(b, DROP_IP_NOBUF, i);
		return false;
	}
	*packet_meta(copy, b->worker->meta_offset) = *packet_meta(m, b->worker->meta_offset);
	copy->port = m->port;
	rte_pktmbuf_free(m);
	b->pkts[i] = copy;
	if (copy->data_len >= RTE_MIN(copy->pkt_len, need))
		return true;
	burst_drop(b, DROP_IP_NOBUF, i);
	return false;
}

static inline struct rte_ipv4_hdr *
ipv4(const struct burst *b, unsigned int i)
{
	return rte_pktmbuf_mtod_offset(b->pkts[i], struct rte_ipv4_hdr *, b->views[i].l3_off);
}

/* RFC 1812 5.3.7: 0/8, 127/8 and all from 224/4 on neither send nor are forwarded to. */
static inline bool
is_martian(uint32_t addr)
{
	uint32_t top = addr >> 24;

	return top - 1 >= 223 || top == 127;
}

/* A header with options, which may lie in several segments. */
static bool __rte_noinline
options_checksum_is_good(const struct rte_mbuf *m, const struct rte_ipv4_hdr *h)
{
	uint32_t off = (uint32_t)((const uint8_t *)h - rte_pktmbuf_mtod(m, const uint8_t *));
	uint8_t len = rte_ipv4_hdr_len(h), buf[60];
	const void *whole = packet_read(m, off, len, buf);

	return whole != NULL && rte_raw_cksum(whole, len) == 0xffff;
}

static inline bool
checksum_is_good(const struct rte_mbuf *m, const struct rte_ipv4_hdr *h)
{
	const uint8_t *p = (const uint8_t *)h;
	uint64_t sum = 0;
	uint32_t word;

	/* Or it is not there yet, an action having left it to a NIC. */
	if ((m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD ||
		(m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0)
		return true;
	if (unlikely(h->version_ihl != 0x45))
		return options_checksum_is_good(m, h);
	for (unsigned int i = 0; i < sizeof(*h); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		sum += word;
	}
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/* An IPv4 header that may be written to; true if the packet is to be routed. */
static inline bool
check_header(struct burst *b, unsigned int i, uint32_t *dst)
{
	const struct packet_view *view = &b->views[i];
	const struct rte_ipv4_hdr *h = ipv4(b, i);
	uint32_t src;

	if (unlikely((view->flags & (PACKET_F_CUT | PACKET_F_ROUTED)) != 0)) {
		burst_drop(b,
			(view->flags & PACKET_F_CUT) != 0 ? DROP_IP_MALFORMED
							  : DROP_IP_SOURCE_ROUTE,
			i);
		return false;
	}
	if (unlikely(!checksum_is_good(b->pkts[i], h))) {
		burst_drop(b, DROP_IP_CHECKSUM, i);
		return false;
	}
	src = rte_be_to_cpu_32(h->src_addr);
	*dst = rte_be_to_cpu_32(h->dst_addr);
	if (unlikely(is_martian(src) || is_martian(*dst))) {
		burst_drop(b, DROP_IP_MARTIAN, i);
		return false;
	}
	return true;
}

bool
ip4_check(struct burst *b, unsigned int i)
{
	uint32_t dst;

	return burst_own(b, i, HEADERS_MIN) && check_header(b, i, &dst);
}

/* As burst_own(). What a NIC took ESP off is looked at by IPsec first: its headers may be anything.
 */
static bool __rte_noinline
make_plain(struct burst *b, unsigned int i)
{
	if ((b->pkts[i]->ol_flags & IPSEC_CACHE_RX_FLAGS) == 0 || ip_esp_is(b, i))
		return burst_own(b, i, HEADERS_MIN);
	b->opened |= UINT64_C(1) << i;
	return false;
}

/* Checks one frame; true if it is IPv4, for us, and to be routed. */
static inline bool
check(struct burst *b, unsigned int i, uint64_t mac, uint32_t *dst)
{
	const struct packet_view *view = &b->views[i];
	const struct rte_mbuf *m;

	if (unlikely(!burst_is_plain(
		    b->pkts[i], HEADERS_MIN, BURST_ELSEWHERE | IPSEC_CACHE_RX_FLAGS)) &&
		!make_plain(b, i))
		return false;
	m = b->pkts[i];
	if (unlikely(m->data_len < RTE_ETHER_HDR_LEN || frame_dst(m) != mac)) {
		not_ours(b, i);
		return false;
	}
	if (unlikely(view->l3 != PACKET_L3_IPV4 || (view->flags & PACKET_F_L3) == 0 ||
		    view->n_vlan > 0)) {
		not_ipv4(b, i);
		return false;
	}
	return check_header(b, i, dst);
}

/* The packets of b->v4, where they are and their destinations; n of them. */
struct routed {
	uint32_t dst[PACKET_VECTOR_MAX];
	uint8_t where[PACKET_VECTOR_MAX];
	unsigned int n;
};

static inline void
check_all(struct burst *b, unsigned int n, struct routed *r)
{
	/* Relaxed: an address that changes takes effect with one burst or the next. */
	uint64_t mac = atomic_load_explicit(&b->stream->rx_port->mac, memory_order_relaxed);

	r->n = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (likely(check(b, i, mac, &r->dst[r->n])))
			r->where[r->n++] = (uint8_t)i;
	}
}

/* --- where it goes --- */

/* What tells flows apart for several ways: addresses, protocol and ports where there are any. */
uint32_t
ip_burst_hash(const struct burst *b, unsigned int i)
{
	const struct packet_view *view = &b->views[i];
	uint32_t ports = 0, buf[8], len = view->l3 == PACKET_L3_IPV6 ? 32 : 8;
	const uint32_t *p;
	const void *addrs;

	if (view->stop == PACKET_STOP_NONE && view->l3_end - view->l4_off >= sizeof(ports) &&
		(view->l4_proto == IPPROTO_TCP || view->l4_proto == IPPROTO_UDP ||
			view->l4_proto == IPPROTO_SCTP) &&
		(p = packet_read(b->pkts[i], view->l4_off, sizeof(ports), &ports)) != NULL)
		memcpy(&ports, p, sizeof(ports));
	/* Source and destination stand side by side in either header. */
	addrs = packet_read(b->pkts[i], view->l3_off + (len == 32 ? 8u : 12u), len, buf);
	if (addrs == NULL)
		return 0;
	memmove(buf, addrs, len);
	return rte_jhash_1word(rte_jhash_32b(buf, len / 4, view->l4_proto), ports);
}

/* rte_pktmbuf_trim() cuts within the last segment only. */
void
ip_trim_segments(struct rte_mbuf *m, uint32_t end)
{
	while (m->pkt_len > end) {
		struct rte_mbuf *last = rte_pktmbuf_lastseg(m), *before = m;
		uint32_t surplus = m->pkt_len - end;

		if (last->data_len > surplus || last == m) {
			rte_pktmbuf_trim(m, (uint16_t)surplus);
			return;
		}
		while (before->next != last)
			before = before->next;
		m->pkt_len -= last->data_len;
		m->nb_segs--;
		before->next = NULL;
		rte_pktmbuf_free_seg(last);
	}
}

/* Sends one fragment, or hands it over to wait. */
static void
send_fragment(struct burst *b, unsigned int i, struct rte_mbuf *m, const void *dst)
{
	const struct route_hop *hop = b->hops[i];
	struct port *port = &b->worker->app->ports[hop->port];
	struct rte_mbuf *whole = b->pkts[i];
	struct packet_view view;
	struct packet_vector one = { .pkts = &m, .views = &view, .n = 1 };

	if (!burst_fragment_frame(b, m, whole)) {
		drop(&b->worker->drops, DROP_IP_NOBUF, &m, 1);
		return;
	}
	if (hop->kind != ROUTE_FORWARD) {
		b->pkts[i] = m;
		ip_burst_resolve(b, i, dst);
		b->pkts[i] = whole;
		return;
	}
	burst_rewrite(rte_pktmbuf_mtod_offset(m, void *, RTE_ETHER_HDR_LEN), hop);
	route_hop_use(hop);
	pipeline_send(b->worker, port, (uint16_t)(b->worker->id % port->n_txq), &one);
}

/*
 * RFC 791 fragmentation. False, with the packet as it was, if it must not be fragmented; else it is
 * gone: sent, or dropped by name.
 */
static bool
fragment(struct burst *b, unsigned int i, const void *to)
{
	struct rte_mbuf *m = b->pkts[i], *parts[FRAGMENTS_MAX];
	const struct packet_view *view = &b->views[i];
	struct rte_ipv4_hdr *h = ipv4(b, i);
	uint32_t dst;
	int n;

	if ((h->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG)) != 0)
		return false;
	memcpy(&dst, to, sizeof(dst));
	ip4_decrement_ttl(h);
	burst_trim(m, view->l3_end);
	rte_pktmbuf_adj(m, view->l3_off);
	n = rte_ipv4_fragment_packet(m, parts, FRAGMENTS_MAX,
		(uint16_t)RTE_MIN(b->hops[i]->mtu, (uint32_t)UINT16_MAX), m->pool, m->pool);
	for (int k = 0; k < n; k++)
		send_fragment(b, i, parts[k], &dst);
	if (n > 0)
		rte_pktmbuf_free(m); /* its fragments hold on to its bytes */
	else
		burst_drop(b, DROP_IP_NOBUF, i);
	return true;
}

void
ip_burst_resolve(struct burst *b, unsigned int i, const void *dst)
{
	const struct route_hop *hop = b->hops[i];
	struct ip_item item = {
		.m = b->pkts[i], .ifindex = hop->ifindex, .why = WHY_RESOLVE, .family = hop->family
	};

	if (hop->kind == ROUTE_CONNECTED)
		memcpy(item.nexthop, dst, hop->family == AF_INET6 ? 16 : 4);
	else
		memcpy(item.nexthop, hop->nexthop, sizeof(item.nexthop));
	item.m->port = b->rx_port;
	ip_slow(b->worker, &item);
}

/* True if the kind of its hop is the end of it. */
static bool
divert_by_kind(struct burst *b, unsigned int i)
{
	static const uint8_t said[] = { [ROUTE_NONE] = WHY_NO_ROUTE,
		[ROUTE_UNREACHABLE] = WHY_UNREACHABLE,
		[ROUTE_PROHIBIT] = WHY_PROHIBIT };

	switch (b->hops[i]->kind) {
	case ROUTE_LOCAL:
		ip_burst_slow(b, i, WHY_LOCAL);
		return true;
	case ROUTE_BROADCAST:
		burst_drop(b, DROP_IP_MULTICAST, i);
		return true;
	case ROUTE_BLACKHOLE:
		burst_drop(b, DROP_IP_BLACKHOLE, i);
		return true;
	case ROUTE_NONE:
	case ROUTE_UNREACHABLE:
	case ROUTE_PROHIBIT:
		/* Whatever its TTL, as Linux says it. */
		ip_burst_slow(b, i, (enum ip_why)said[b->hops[i]->kind]);
		return true;
	default:
		return false;
	}
}

void __rte_noinline
ip_burst_divert(struct burst *b, unsigned int i, uint8_t ttl, const void *dst)
{
	const struct packet_view *view = &b->views[i];

	if (divert_by_kind(b, i))
		return;
	if (ttl <= 1) {
		ip_burst_slow(b, i, WHY_TTL);
	} else if (view->l3_end - view->l3_off > b->hops[i]->mtu) {
		if (view->l3 == PACKET_L3_IPV6 || !fragment(b, i, dst))
			ip_burst_too_big(b, i, b->hops[i]->mtu);
	} else {
		if (view->l3 == PACKET_L3_IPV4)
			ip4_decrement_ttl(ipv4(b, i));
		else
			rte_pktmbuf_mtod_offset(b->pkts[i], uint8_t *, view->l3_off)[7]--;
		burst_trim(b->pkts[i], view->l3_end);
		ip_burst_resolve(b, i, dst);
	}
}

static inline void
forward_all(struct burst *b, const struct routed *r, unsigned int n)
{
	const struct route_hop *hops[PACKET_VECTOR_MAX];

	if (likely(r->n == n)) {
		route_lookup4(b->worker->app->route, r->dst, b->hops, n);
	} else {
		route_lookup4(b->worker->app->route, r->dst, hops, r->n);
		for (unsigned int k = 0; k < r->n; k++)
			b->hops[r->where[k]] = hops[k];
	}
	for (unsigned int k = 0; k < r->n; k++) {
		unsigned int i = r->where[k];
		const struct route_hop *hop = b->hops[i];
		struct rte_ipv4_hdr *h = ipv4(b, i);

		if (unlikely(hop->kind != ROUTE_FORWARD))
			hop = b->hops[i] =
				ip_burst_follow(b, i, hop, AF_INET, &ipv4(b, i)->dst_addr);
		if (unlikely(hop->kind != ROUTE_FORWARD || h->time_to_live <= 1 ||
			    b->views[i].l3_end - b->views[i].l3_off > hop->mtu)) {
			ip_burst_divert(b, i, h->time_to_live, &h->dst_addr);
			continue;
		}
		ip4_decrement_ttl(h);
		burst_trim(b->pkts[i], b->views[i].l3_end);
		burst_send(b, i, h, hop);
	}
}

/* --- out --- */

static uint16_t
queue_to(const struct burst *b, const struct port *port)
{
	if (b->stream != NULL && port == b->stream->tx_port)
		return b->stream->tx_queue;
	return (uint16_t)(b->worker->id % port->n_txq);
}

static void
send_port(struct burst *b, uint16_t id, uint64_t mask)
{
	struct rte_mbuf *pkts[PACKET_VECTOR_MAX];
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector vector = { .pkts = pkts, .views = views, .parsed = true };
	struct port *port = &b->worker->app->ports[id];
	unsigned int i;

	packet_mask_for_each (i, mask) {
		pkts[vector.n] = b->pkts[i];
		views[vector.n++] = b->views[i];
	}
	pipeline_send(b->worker, port, queue_to(b, port), &vector);
}

static uint64_t
mask_of_port(const struct burst *b, uint16_t id)
{
	uint64_t mask = 0;
	unsigned int i;

	packet_mask_for_each (i, b->forward)
		if (b->hops[i]->port == id)
			mask |= UINT64_C(1) << i;
	return mask;
}

static void
send_all(struct burst *b, struct packet_vector *vector)
{
	if (likely(b->last != NULL && !b->mixed && b->forward == packet_vector_mask(vector))) {
		struct port *port = &b->worker->app->ports[b->last->port];

		pipeline_send(b->worker, port, queue_to(b, port), vector);
		return;
	}
	while (b->forward != 0) {
		uint16_t id = b->hops[__builtin_ctzll(b->forward)]->port;
		uint64_t mask = mask_of_port(b, id);

		send_port(b, id, mask);
		b->forward &= ~mask;
	}
}

/* What b->v4 says. */
static void
collect(const struct burst *b, struct routed *r)
{
	unsigned int i;

	r->n = 0;
	packet_mask_for_each (i, b->v4) {
		r->dst[r->n] = rte_be_to_cpu_32(ipv4(b, i)->dst_addr);
		r->where[r->n++] = (uint8_t)i;
	}
}

static inline void
finish(struct burst *b, struct packet_vector *vector, const struct routed *r)
{
	if (likely(r->n > 0))
		forward_all(b, r, vector->n);
	if (unlikely(b->v6 != 0))
		ip6_route(b);
	if (unlikely(b->dropped != 0))
		drop_all(b);
	send_all(b, vector);
}

void
ip_burst_finish(struct burst *b, struct packet_vector *vector)
{
	struct routed r;

	collect(b, &r);
	finish(b, vector, &r);
}

static void __rte_noinline
ask_ipsec(struct burst *b, struct packet_vector *vector, struct routed *r)
{
	for (unsigned int k = 0; k < r->n; k++)
		b->v4 |= UINT64_C(1) << r->where[k];
	ip_esp_burst(b, vector, b->stream->rx_port->ifindex);
	collect(b, r);
}

static void
ip_forward(struct worker *worker, const struct stream *stream, struct packet_vector *vector)
{
	struct routed r;
	struct burst b;

	burst_begin(&b, worker, stream->rx_port->id, vector);
	b.stream = stream;
	packet_vector_parse(vector);
	check_all(&b, vector->n, &r);
	if (unlikely(b.v6 != 0))
		b.v6 = ip6_check(&b, b.v6);
	if (unlikely(ipsec_cache_active(worker->app->ipsec) || b.opened != 0))
		ask_ipsec(&b, vector, &r);
	finish(&b, vector, &r);
}

/* --- what the control thread and other workers hand over --- */

static void
send_frame(struct worker *worker, struct ip_reply *reply)
{
	struct packet_view view;
	struct packet_vector one = { .pkts = &reply->m, .views = &view, .n = 1 };
	struct port *port = port_get(worker->app, reply->port);

	if (port == NULL)
		drop(&worker->drops, DROP_NO_PORT, &reply->m, 1);
	else
		pipeline_send(worker, port, (uint16_t)(worker->id % port->n_txq), &one);
}

static unsigned int
ip_turn(struct worker *worker)
{
	struct rte_ring *ring = worker->app->ip->replies[worker->id];
	struct ip_reply replies[REPLIES_BURST];
	unsigned int n, back = 0;

	if (unlikely(ipsec_cache_busy(worker->ipsec)))
		back = ip_esp_poll(worker);
	if (likely(rte_ring_empty(ring)))
		return back;
	n = rte_ring_dequeue_burst_elem(ring, replies, sizeof(replies[0]), REPLIES_BURST, NULL);
	for (unsigned int i = 0; i < n;) {
		if (replies[i].kind == REPLY_FRAME)
			send_frame(worker, &replies[i++]);
		else
			i += ip_esp_handed(worker, &replies[i], n - i);
	}
	return back + n;
}

static bool
ip_busy(const struct worker *worker)
{
	return ipsec_cache_busy(worker->ipsec);
}

static struct forward_mode ip = {
	.name = "ip",
	.help = "routes IP packets that are addressed to the port",
	.forward = ip_forward,
	.turn = ip_turn,
	.busy = ip_busy,
};
FORWARD_REGISTER(ip);
