/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Mode ip on the workers: what IPsec does to a burst, between the check of its headers and the
 * routes. ESP for us is opened, every packet's policy is asked, and what has to be protected
 * becomes ESP with a hop of its own; the rest is left to be routed.
 */

#include <netinet/in.h>

#include <rte_ip_frag.h>
#include <rte_ring_elem.h>
#include <rte_udp.h>

#include "forward/ip_burst.h"
#include "forward/ip_esp.h"
#include "protect.h"

#define NATT_PORT 4500 /* RFC 3948 */
#define FRAGMENTS_MAX PACKET_VECTOR_MAX
#define POLL_BURST 32

static inline void
drop_for(struct burst *b, unsigned int i, uint8_t error)
{
	burst_drop(b, (enum drop_reason)(DROP_ESP_NO_SA + error), i);
}

static void
hand_over(struct burst *b, unsigned int i, unsigned int home, enum ip_reply_kind kind)
{
	struct ip_reply reply = { .m = b->pkts[i], .port = b->rx_port, .kind = (uint8_t)kind };

	if (rte_ring_enqueue_elem(b->worker->app->ip->replies[home], &reply, sizeof(reply)) != 0)
		burst_drop(b, DROP_HAND_OVER_FULL, i);
}

/* --- in --- */

static bool
is_udp_4500(const struct burst *b, unsigned int i)
{
	const struct packet_view *view = &b->views[i];
	uint16_t buf;
	const uint16_t *port;

	if (view->stop != PACKET_STOP_NONE || view->l4_proto != IPPROTO_UDP ||
		view->l3_end - view->l4_off < sizeof(struct rte_udp_hdr))
		return false;
	port = packet_read(b->pkts[i], view->l4_off + 2u, sizeof(buf), &buf);
	return port != NULL && *port == RTE_BE16(NATT_PORT);
}

bool
ip_esp_is(const struct burst *b, unsigned int i)
{
	return (b->views[i].stop == PACKET_STOP_OPAQUE && b->views[i].l4_proto == IPPROTO_ESP) ||
		is_udp_4500(b, i);
}

static uint64_t
esp_of(const struct burst *b, uint64_t mask)
{
	uint64_t esp = 0;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		if (ip_esp_is(b, i))
			esp |= UINT64_C(1) << i;
	}
	return esp;
}

/* What came out of a tunnel is a packet like any other; but see ip_ipsec_quote(). */
static void
check_inner(struct burst *b, unsigned int i)
{
	uint64_t bit = UINT64_C(1) << i;

	b->pkts[i]->ol_flags |= b->worker->app->opened;
	if (b->views[i].l3 == PACKET_L3_IPV4) {
		if (ip4_check(b, i))
			b->v4 |= bit;
	} else if (ip6_check(b, bit) != 0) {
		b->v6 |= bit;
	}
}

static void
open_all(struct burst *b, struct packet_vector *vector, uint64_t esp, struct ipsec_cache_rt **by)
{
	struct ipsec_cache_result r;
	unsigned int i;

	/* What a crypto device gives back says nothing else of where it came in; tc may have moved
	 * it since the driver wrote that, and not every driver does. */
	packet_mask_for_each (i, esp)
		b->pkts[i]->port = b->rx_port;
	ipsec_cache_open(b->worker->ipsec, vector, esp, &r);
	esp &= ~r.not_ours;
	b->v4 &= ~esp;
	b->v6 &= ~esp;
	packet_mask_for_each (i, r.done) {
		by[i] = r.rt[i];
		check_inner(b, i);
	}
	packet_mask_for_each (i, r.drop)
		drop_for(b, i, r.error[i]);
	packet_mask_for_each (i, r.hand_over)
		hand_over(b, i, r.home[i], REPLY_OPEN);
}

/* --- out --- */

/* Sealed packets are sent; whose neighbour is not known waits for it. */
static void
send_sealed(struct burst *b, const struct route_hop *hop, unsigned int i)
{
	const struct packet_view *view = &b->views[i];
	uint8_t *l3 = rte_pktmbuf_mtod_offset(b->pkts[i], uint8_t *, view->l3_off);
	struct packet_meta *meta = packet_meta(b->pkts[i], b->worker->meta_offset);

	b->pkts[i]->ol_flags &= ~b->worker->app->opened;
	/* Rule B8: all packets of an SA wait in one band of one queue. */
	meta->priority = 0;
	meta->queue = meta->classid = 0;
	b->hops[i] = hop;
	if (unlikely(hop->kind != ROUTE_FORWARD)) {
		/* Who waits is nobody's to protect (hop.waits), and will not be asked again. */
		if (!protect_one(b->worker, b->pkts[i]))
			drop_for(b, i, IPSEC_CACHE_ESP_DEVICE);
		else
			ip_burst_resolve(b, i, l3 + (view->l3 == PACKET_L3_IPV4 ? 16 : 24));
		return;
	}
	burst_send(b, i, l3, hop);
}

static void
seal_all(struct burst *b, struct packet_vector *vector, uint64_t mask,
	const struct ipsec_cache_decision *const *d)
{
	struct ipsec_cache_result r;
	unsigned int i;

	/* D22: nobody completes a sum inside ESP. */
	packet_mask_for_each (i, mask) {
		if (unlikely(csum_action_pending(&b->pkts[i], 1)))
			csum_action_complete(
				b->worker->app->csum, b->worker->id, &b->pkts[i], 1, 0);
	}
	ipsec_cache_seal(b->worker->ipsec, vector, mask, d, &r);
	packet_mask_for_each (i, r.done)
		send_sealed(b, d[i]->hop, i);
	packet_mask_for_each (i, r.drop)
		drop_for(b, i, r.error[i]);
	packet_mask_for_each (i, r.hand_over)
		hand_over(b, i, r.home[i], REPLY_OWN); /* its TTL is decremented */
}

/*
 * RFC 4301 8.1: what does not fit and may be fragmented is, before it is sealed; all parts by the
 * decision of the whole. The packet is gone then.
 */
static void
seal_fragments(struct burst *b, unsigned int i, const struct ipsec_cache_decision *decision)
{
	const struct ipsec_cache_decision *d[FRAGMENTS_MAX];
	struct rte_mbuf *parts[FRAGMENTS_MAX], *m = b->pkts[i];
	struct packet_view views[FRAGMENTS_MAX];
	struct packet_vector vector = { .pkts = parts, .views = views, .parsed = true };
	struct burst sub;
	int n;

	burst_begin(&sub, b->worker, b->rx_port, &vector);
	sub.own = b->own;
	burst_trim(m, b->views[i].l3_end);
	rte_pktmbuf_adj(m, b->views[i].l3_off);
	n = rte_ipv4_fragment_packet(m, parts, FRAGMENTS_MAX, decision->mtu, m->pool, m->pool);
	if (n <= 0) {
		burst_drop(b, DROP_IP_NOBUF, i);
		return;
	}
	for (int k = 0; k < n; k++) {
		if (!burst_fragment_frame(&sub, parts[k], m)) {
			drop(&b->worker->drops, DROP_IP_NOBUF, &parts[k], 1);
			continue;
		}
		parts[vector.n] = parts[k];
		d[vector.n++] = decision;
	}
	rte_pktmbuf_free(m); /* its fragments hold on to its bytes */
	packet_view_parse_burst(parts, views, vector.n);
	seal_all(&sub, &vector, packet_vector_mask(&vector), d);
	ip_burst_finish(&sub, &vector);
}

static inline void
decrement(const struct burst *b, const struct packet_view *view, uint8_t *l3)
{
	if (unlikely(b->own))
		return;
	if (likely(view->l3 == PACKET_L3_IPV4))
		ip4_decrement_ttl((struct rte_ipv4_hdr *)l3);
	else
		l3[7]--;
}

/* It does not fit the tunnel: fragmented, or its sender is told. */
static void __rte_noinline
too_long(struct burst *b, unsigned int i, const struct ipsec_cache_decision *d, uint8_t *l3)
{
	const struct packet_view *view = &b->views[i];

	if (view->l3 == PACKET_L3_IPV6 || (l3[6] & RTE_IPV4_HDR_DF_FLAG >> 8) != 0) {
		ip_burst_too_big(b, i, d->mtu);
		return;
	}
	decrement(b, view, l3);
	seal_fragments(b, i, d);
}

/* True if the packet is ready to be sealed now; else it has gone another way. */
static inline bool
ready_to_seal(struct burst *b, unsigned int i, const struct ipsec_cache_decision *d)
{
	const struct packet_view *view = &b->views[i];
	uint8_t *l3 = rte_pktmbuf_mtod_offset(b->pkts[i], uint8_t *, view->l3_off);

	if (unlikely(l3[view->l3 == PACKET_L3_IPV4 ? 8 : 7] <= 1 && !b->own)) {
		ip_burst_slow(b, i, WHY_TTL);
		return false;
	}
	if (unlikely(view->l3_end - view->l3_off > d->mtu)) {
		too_long(b, i, d, l3);
		return false;
	}
	burst_trim(b->pkts[i], view->l3_end);
	decrement(b, view, l3);
	return true;
}

/* by: the SA that each was decrypted by; NULL: none was. */
static void
ask_policy(struct burst *b, struct packet_vector *vector, struct ipsec_cache_rt *const *by,
	uint32_t in_ifindex)
{
	const struct ipsec_cache_decision *d[PACKET_VECTOR_MAX], *last = NULL;
	uint64_t all = b->v4 | b->v6, ours = 0, seal = 0;
	unsigned int i, home = 0;

	ipsec_cache_decide(b->worker->ipsec, vector, all, by, in_ifindex, d);
	packet_mask_for_each (i, all) {
		uint64_t bit = UINT64_C(1) << i;

		if (d[i]->action == IPSEC_CACHE_ROUTE)
			continue;
		ours |= bit;
		if (unlikely(d[i]->action == IPSEC_CACHE_DROP)) {
			drop_for(b, i, d[i]->error);
			continue;
		}
		if (d[i] != last)
			home = ipsec_cache_home(b->worker->ipsec, d[i]);
		last = d[i];
		if (unlikely(home != b->worker->id))
			hand_over(b, i, home, b->own ? REPLY_OWN : REPLY_SEAL);
		else if (likely(ready_to_seal(b, i, d[i])))
			seal |= bit;
	}
	b->v4 &= ~ours;
	b->v6 &= ~ours;
	if (seal != 0)
		seal_all(b, vector, seal, d);
}

static void
open_and_ask(struct burst *b, struct packet_vector *vector, uint64_t esp, uint32_t in_ifindex)
{
	struct ipsec_cache_rt *by[PACKET_VECTOR_MAX] = { NULL };

	open_all(b, vector, esp, by);
	/* A NIC may still have opened something after the last SA is gone. */
	if ((b->v4 | b->v6) != 0 && ipsec_cache_active(b->worker->app->ipsec))
		ask_policy(b, vector, by, in_ifindex);
}

void
ip_esp_burst(struct burst *b, struct packet_vector *vector, uint32_t in_ifindex)
{
	uint64_t all = b->v4 | b->v6, esp = esp_of(b, all) | b->opened;

	ipsec_cache_begin(b->worker->ipsec);
	if (esp != 0)
		open_and_ask(b, vector, esp, in_ifindex);
	else if (all != 0)
		ask_policy(b, vector, NULL, in_ifindex);
}

/* --- from elsewhere --- */

/* What answers or quotes what was decrypted, and lost the policy that it was handed over for. */
static void
keep_in(struct burst *b)
{
	unsigned int i;

	packet_mask_for_each (i, b->v4 | b->v6) {
		if ((b->pkts[i]->ol_flags & b->worker->app->opened) == 0)
			continue;
		b->v4 &= ~(UINT64_C(1) << i);
		b->v6 &= ~(UINT64_C(1) << i);
		burst_drop(b, DROP_POLICY_NONE, i);
	}
}

unsigned int
ip_esp_handed(struct worker *worker, const struct ip_reply *replies, unsigned int n)
{
	const struct ip_reply *first = &replies[0];
	const struct port *port = port_get(worker->app, first->port);
	struct rte_mbuf *pkts[PACKET_VECTOR_MAX];
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector vector = { .pkts = pkts, .views = views };
	struct burst b;

	burst_begin(&b, worker, first->port, &vector);
	b.own = first->kind == REPLY_OWN;
	while (vector.n < RTE_MIN(n, (unsigned int)PACKET_VECTOR_MAX) &&
		replies[vector.n].kind == first->kind && replies[vector.n].port == first->port) {
		pkts[vector.n] = replies[vector.n].m;
		vector.n++;
	}
	if (first->kind == REPLY_OPEN && port == NULL) {
		drop(&worker->drops, DROP_NO_PORT, pkts, vector.n);
		return vector.n;
	}
	/* Their headers were checked by who handed them over. */
	packet_vector_parse(&vector);
	for (unsigned int i = 0; i < vector.n; i++) {
		if ((pkts[i]->ol_flags & IPSEC_CACHE_RX_FLAGS) != 0 && !ip_esp_is(&b, i))
			b.opened |= UINT64_C(1) << i;
		else if (views[i].l3 == PACKET_L3_IPV4)
			b.v4 |= UINT64_C(1) << i;
		else
			b.v6 |= UINT64_C(1) << i;
	}
	if (ipsec_cache_active(worker->app->ipsec) || b.opened != 0)
		ip_esp_burst(&b, &vector, first->kind == REPLY_OPEN ? port->ifindex : 0);
	if (b.own)
		keep_in(&b);
	ip_burst_finish(&b, &vector);
	return vector.n;
}

/* What a device failed at, or lost. */
static void
fail(struct worker *worker, const struct ipsec_cache_done *done)
{
	enum drop_reason reason = (enum drop_reason)(DROP_ESP_NO_SA + done->error);
	struct rte_mbuf *m = done->m;

	if (m != NULL)
		drop(&worker->drops, reason, &m, 1);
	else
		drop_count(&worker->drops, reason, 1, 0);
}

/* n packets that a device sealed, or that came in by one port and it opened. */
static void
go_on(struct worker *worker, const struct ipsec_cache_done *done, unsigned int n)
{
	struct rte_mbuf *pkts[POLL_BURST];
	struct packet_view views[POLL_BURST];
	struct ipsec_cache_rt *by[POLL_BURST];
	struct packet_vector vector = { .pkts = pkts, .views = views, .n = (uint16_t)n };
	const struct port *port = port_get(worker->app, done->m->port);
	struct burst b;

	for (unsigned int i = 0; i < n; i++) {
		pkts[i] = done[i].m;
		by[i] = done[i].rt;
	}
	if (!done->sealed && port == NULL) {
		drop(&worker->drops, DROP_NO_PORT, pkts, n);
		return;
	}
	burst_begin(&b, worker, done->m->port, &vector);
	packet_vector_parse(&vector);
	if (done->sealed) {
		for (unsigned int i = 0; i < n; i++)
			send_sealed(&b, done[i].hop, i);
	} else {
		for (unsigned int i = 0; i < n; i++)
			check_inner(&b, i);
		if ((b.v4 | b.v6) != 0)
			ask_policy(&b, &vector, by, port->ifindex);
	}
	ip_burst_finish(&b, &vector);
}

static inline bool
goes_with(const struct ipsec_cache_done *a, const struct ipsec_cache_done *b)
{
	return !b->failed && a->sealed == b->sealed && a->m->port == b->m->port;
}

unsigned int
ip_esp_poll(struct worker *worker)
{
	struct ipsec_cache_done done[POLL_BURST];
	unsigned int n, i, k, all = 0;

	do {
		ipsec_cache_begin(worker->ipsec);
		n = ipsec_cache_poll(worker->ipsec, done, POLL_BURST);
		for (i = 0; i < n; i = k) {
			k = i + 1;
			if (unlikely(done[i].failed)) {
				fail(worker, &done[i]);
				continue;
			}
			while (k < n && goes_with(&done[i], &done[k]))
				k++;
			go_on(worker, &done[i], k - i);
		}
		all += n;
	} while (n == POLL_BURST);
	return all;
}
