/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_FORWARD_IP_BURST_H
#define APP_FORWARD_IP_BURST_H

/* A burst on its way through mode ip: what ip.c (all, and IPv4) and ip6.c share. */

#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "app.h"
#include "forward/forward.h"
#include "forward/ip.h"
#include "pipeline.h"

struct burst {
	struct worker *worker;
	const struct stream *stream; /* NULL: did not come from a queue just now */
	uint16_t rx_port; /* that they came in by, or IP_OWN */
	bool own; /* packets of ours: their TTL stays */
	struct rte_mbuf **pkts;
	struct packet_view *views;
	const struct route_hop *hops[PACKET_VECTOR_MAX];
	uint64_t v4; /* mask: IPv4, checked, to be routed */
	uint64_t v6; /* mask: IPv6, to be routed once ip6_check() has seen them */
	uint64_t opened; /* mask: NICs took ESP off them; nothing was checked yet */
	uint64_t forward; /* mask: to be sent */
	uint64_t dropped; /* mask: for why[i] */
	const struct route_hop *last; /* the hop of the last that is to be sent */
	bool mixed; /* they leave by more than one port */
	uint8_t why[PACKET_VECTOR_MAX]; /* enum drop_reason */
};
static_assert(DROP_MAX <= UINT8_MAX, "a reason is a byte");

/* Not an initializer: that would clear a kilobyte for each burst. */
static inline void
burst_begin(struct burst *b, struct worker *worker, uint16_t rx_port,
	const struct packet_vector *vector)
{
	b->worker = worker;
	b->stream = NULL;
	b->rx_port = rx_port;
	b->own = false;
	b->pkts = vector->pkts;
	b->views = vector->views;
	b->v4 = b->v6 = b->opened = b->forward = b->dropped = 0;
	b->last = NULL;
	b->mixed = false;
}

static inline void
burst_drop(struct burst *b, enum drop_reason reason, unsigned int i)
{
	b->why[i] = (uint8_t)reason;
	b->dropped |= UINT64_C(1) << i;
}

#define BURST_ELSEWHERE (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

/* Ethernet and an IP header that lie together in a segment that may be written to, and none of
 * those flags. */
static inline bool
burst_is_plain(const struct rte_mbuf *m, uint32_t need, uint64_t flags)
{
	return likely(m->data_len >= need && rte_mbuf_refcnt_read(m) == 1 &&
		(m->ol_flags & flags) == 0 && rte_pktmbuf_headroom(m) >= 2);
}

/* Copies it into one that is so. False: no mbuf, or it is too short: it is dropped by name. */
bool burst_make_writable(struct burst *b, unsigned int i, uint32_t need);

/* True if b->pkts[i], maybe another mbuf now, is so; else it is dropped by name. */
static inline bool
burst_own(struct burst *b, unsigned int i, uint32_t need)
{
	return likely(burst_is_plain(b->pkts[i], need, BURST_ELSEWHERE)) ||
		burst_make_writable(b, i, need);
}

/* Hands packet i over to the control thread. */
void ip_burst_slow(struct burst *b, unsigned int i, enum ip_why why);
/* The same for one whose neighbour is to be found. */
void ip_burst_resolve(struct burst *b, unsigned int i, const void *dst);
/* ... that is longer than `mtu` and must not be fragmented. */
void ip_burst_too_big(struct burst *b, unsigned int i, uint32_t mtu);
/* What is not forwarded, by the kind of its hop. */
void ip_burst_divert(struct burst *b, unsigned int i, uint8_t ttl, const void *dst);
/* The flow's hash, for several ways. */
uint32_t ip_burst_hash(const struct burst *b, unsigned int i);

/* The hop that says what happens, from one that says where to look; `dst` is the destination. */
static inline const struct route_hop *
ip_burst_follow(const struct burst *b, unsigned int i, const struct route_hop *hop, uint8_t family,
	const void *dst)
{
	const struct route_table *t = b->worker->app->route;

	if (hop->kind == ROUTE_GROUP)
		hop = route_hop_select(t, hop, ip_burst_hash(b, i));
	return route_hop_near(t, hop, family, dst);
}

/* RFC 1624: the TTL's byte is the high one of its word, so HC' = HC + 0x0100 with the carry. */
static inline void
ip4_decrement_ttl(struct rte_ipv4_hdr *h)
{
	uint32_t sum = (uint32_t)h->hdr_checksum + RTE_BE16(0x0100);

	h->hdr_checksum = (uint16_t)(sum + (sum >= 0xffff));
	h->time_to_live--;
}

/* ip_fragment_frame() of a fragment of `whole`. */
static inline bool
burst_fragment_frame(const struct burst *b, struct rte_mbuf *m, const struct rte_mbuf *whole)
{
	return ip_fragment_frame(
		m, b->rx_port, b->worker->meta_offset, packet_meta(whole, b->worker->meta_offset));
}

/* Routes b->v4 and b->v6, and sends or drops all that is left of the vector. */
void ip_burst_finish(struct burst *b, struct packet_vector *vector);

/*
 * ip.c: headers of b->v4's kind, of a frame for us. True if the packet is to be routed; else it is
 * dropped by name.
 */
bool ip4_check(struct burst *b, unsigned int i);
/* ip6.c: takes what is not to be routed out of `mask`. */
uint64_t ip6_check(struct burst *b, uint64_t mask);
/* Routes the packets of b->v6; those to be sent are in b->forward then. */
void ip6_route(struct burst *b);

/* rte_pktmbuf_trim() cuts within the last segment only. */
void ip_trim_segments(struct rte_mbuf *m, uint32_t end);

/* Cuts Ethernet's padding off, which is nobody's any more. */
static inline void
burst_trim(struct rte_mbuf *m, uint32_t end)
{
	if (likely(m->pkt_len == end))
		return;
	if (likely(m->nb_segs == 1))
		m->data_len = (uint16_t)(m->pkt_len = end);
	else
		ip_trim_segments(m, end);
}

/* Sixteen bytes that end where layer 3 begins: two of headroom, then the Ethernet header. */
static inline void
burst_rewrite(void *l3, const struct route_hop *hop)
{
	memcpy((uint8_t *)l3 - sizeof(hop->rewrite), hop->rewrite, sizeof(hop->rewrite));
}

/* Packet i, with its layer 3 at l3, is to be sent to that hop. */
static inline void
burst_send(struct burst *b, unsigned int i, void *l3, const struct route_hop *hop)
{
	burst_rewrite(l3, hop);
	b->forward |= UINT64_C(1) << i;
	if (likely(hop == b->last))
		return;
	route_hop_use(hop);
	b->mixed |= b->last != NULL && b->last->port != hop->port;
	b->last = hop;
}

#endif /* APP_FORWARD_IP_BURST_H */
