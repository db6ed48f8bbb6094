/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Fragments for our own addresses, put together: RFC 791 3.2 and RFC 8200 4.5, with RFC 5722 for
 * both families: fragments that overlap take their whole packet with them. Bounded in packets, in
 * mbufs and in time; when there is no room the oldest packet makes it. librte_ip_frag is not used:
 * it takes eight fragments a packet, and knows IPv4 packets apart without their protocol.
 */

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_jhash.h>

#include "app.h"
#include "compat.h"
#include "forward/ip_burst.h"
#include "forward/ip_icmp6.h"

#define DATAGRAMS_MAX 256 /* under way */
#define FRAGMENTS_MAX 1024 /* mbufs that wait */
#define BUCKETS 256
#define TIMEOUT4_MS 30000 /* Linux: ipfrag_time */
#define TIMEOUT6_MS 60000 /* RFC 8200 4.5 */
#define IPV6_FRAGMENT_LEN 8

/* What fragments of one packet have in common. No padding: it is hashed and compared as bytes. */
struct key {
	uint8_t src[16], dst[16];
	uint32_t id;
	uint16_t link; /* link-local addresses are a port's; else 0 */
	uint8_t family, proto;
};
static_assert(sizeof(struct key) == 40, "a key has no padding");

/* Bytes [begin, end) of the payload of a packet. */
struct fragment {
	TAILQ_ENTRY(fragment) next; /* by begin; or in the list of those that are free */
	struct rte_mbuf *m;
	uint32_t begin, end;
	uint32_t header; /* bytes of the frame in front of them */
};
TAILQ_HEAD(fragments, fragment);

struct datagram {
	TAILQ_ENTRY(datagram) next; /* oldest first; or in the list of those that are free */
	LIST_ENTRY(datagram) bucket;
	struct key key;
	uint64_t deadline; /* ms */
	struct fragments fragments;
	uint32_t got, end; /* bytes; `end` is the whole once `last` was seen */
	uint8_t ecn; /* mask of the codepoints seen */
	bool last;
};
TAILQ_HEAD(datagrams, datagram);

struct reassembly {
	uint32_t n_mbufs, mbufs_max;
	struct datagrams waiting, unused;
	struct fragments spare;
	LIST_HEAD(, datagram) buckets[BUCKETS];
	struct datagram datagrams[DATAGRAMS_MAX];
	struct fragment fragments[FRAGMENTS_MAX];
};

/* One fragment on its way in. */
struct arrival {
	struct key key;
	uint32_t begin, end, header;
	bool more;
	uint8_t ecn;
};

/* --- life --- */

/* A quarter of a small pool at most: the ports receive into it. */
static uint32_t
mbufs_max(const struct app *a)
{
	uint32_t max = FRAGMENTS_MAX;

	for (unsigned int i = 0; i < RTE_MAX_NUMA_NODES; i++) {
		if (a->pool[i] != NULL)
			max = RTE_MIN(max, a->pool[i]->size / 4);
	}
	return max;
}

static struct reassembly *
table_get(struct router *ip)
{
	struct reassembly *t = ip->fragments;

	if (t != NULL || (t = calloc(1, sizeof(*t))) == NULL)
		return t;
	t->mbufs_max = mbufs_max(ip->app);
	TAILQ_INIT(&t->waiting);
	TAILQ_INIT(&t->unused);
	TAILQ_INIT(&t->spare);
	for (unsigned int i = 0; i < DATAGRAMS_MAX; i++)
		TAILQ_INSERT_TAIL(&t->unused, &t->datagrams[i], next);
	for (unsigned int i = 0; i < FRAGMENTS_MAX; i++)
		TAILQ_INSERT_TAIL(&t->spare, &t->fragments[i], next);
	return ip->fragments = t;
}

static uint32_t
key_hash(const struct key *key)
{
	uint32_t words[sizeof(*key) / sizeof(uint32_t)];

	memcpy(words, key, sizeof(words));
	return rte_jhash_32b(words, RTE_DIM(words), 0) % BUCKETS;
}

/* Takes the mbuf out of it. */
static struct rte_mbuf *
fragment_free(struct reassembly *t, struct datagram *d, struct fragment *f)
{
	TAILQ_REMOVE(&d->fragments, f, next);
	TAILQ_INSERT_HEAD(&t->spare, f, next);
	t->n_mbufs -= f->m->nb_segs;
	return f->m;
}

/* It holds no fragment any more. */
static void
datagram_free(struct reassembly *t, struct datagram *d)
{
	LIST_REMOVE(d, bucket);
	TAILQ_REMOVE(&t->waiting, d, next);
	TAILQ_INSERT_HEAD(&t->unused, d, next);
}

static void
datagram_drop(struct router *ip, struct datagram *d, enum drop_reason reason)
{
	struct fragment *f;

	while ((f = TAILQ_FIRST(&d->fragments)) != NULL)
		ip_drop(ip, reason, fragment_free(ip->fragments, d, f));
	datagram_free(ip->fragments, d);
}

static struct datagram *
datagram_find(struct router *ip, const struct key *key)
{
	struct reassembly *t = ip->fragments;
	uint32_t bucket = key_hash(key);
	struct datagram *d;

	LIST_FOREACH (d, &t->buckets[bucket], bucket) {
		if (memcmp(&d->key, key, sizeof(*key)) == 0)
			return d;
	}
	if (TAILQ_EMPTY(&t->unused))
		datagram_drop(ip, TAILQ_FIRST(&t->waiting), DROP_FRAG_LIMIT);
	d = TAILQ_FIRST(&t->unused);
	TAILQ_REMOVE(&t->unused, d, next);
	*d = (struct datagram){ .key = *key,
		.deadline = ip->now + (key->family == AF_INET6 ? TIMEOUT6_MS : TIMEOUT4_MS) };
	TAILQ_INIT(&d->fragments);
	TAILQ_INSERT_TAIL(&t->waiting, d, next);
	LIST_INSERT_HEAD(&t->buckets[bucket], d, bucket);
	return d;
}

/* --- what a fragment says --- */

static bool
arrival4(struct router *ip, struct rte_mbuf *m, const struct packet_view *view, struct arrival *a)
{
	const struct rte_ipv4_hdr *h =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, view->l3_off);
	uint16_t frag = rte_be_to_cpu_16(h->fragment_offset);
	uint32_t ihl = rte_ipv4_hdr_len(h), len = view->l3_end - view->l3_off - ihl;

	memcpy(a->key.src, &h->src_addr, 4);
	memcpy(a->key.dst, &h->dst_addr, 4);
	a->key.id = h->packet_id;
	a->key.proto = h->next_proto_id;
	a->begin = (frag & RTE_IPV4_HDR_OFFSET_MASK) * RTE_IPV4_HDR_OFFSET_UNITS;
	a->end = a->begin + len;
	a->header = view->l3_off + ihl;
	a->more = (frag & RTE_IPV4_HDR_MF_FLAG) != 0;
	a->ecn = (uint8_t)(1 << (h->type_of_service & 3));
	if (len != 0 && (!a->more || len % 8 == 0) && ihl + a->end <= UINT16_MAX)
		return true;
	ip_drop(ip, DROP_IP_MALFORMED, m);
	return false;
}

/* Where the fragment header is, and the byte that says so; 0: beyond what is looked at. */
static uint32_t
fragment_header(const struct rte_mbuf *m, const struct packet_view *view, uint32_t *says)
{
	uint32_t off = view->l3_off + sizeof(struct rte_ipv6_hdr);
	uint8_t buf[2], next;
	const uint8_t *p;

	*says = view->l3_off + offsetof(struct rte_ipv6_hdr, proto);
	next = *rte_pktmbuf_mtod_offset(m, const uint8_t *, *says);
	for (unsigned int i = 0; next != IPPROTO_FRAGMENT; i++) {
		if (i == PACKET_EXT_MAX || (p = packet_read(m, off, sizeof(buf), buf)) == NULL)
			return 0;
		*says = off;
		next = p[0];
		off += 8 + 8u * p[1];
	}
	return off;
}

static void
parameter_problem(
	struct router *ip, struct rte_mbuf *m, const struct packet_view *view, uint32_t pointer)
{
	ip_icmp6_error(ip, m, view, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_HEADER, pointer);
	ip_drop(ip, DROP_IP_MALFORMED, m);
}

static bool
arrival6(struct router *ip, struct rte_mbuf *m, const struct packet_view *view, struct arrival *a)
{
	const struct rte_ipv6_hdr *h =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, view->l3_off);
	uint32_t says, off = fragment_header(m, view, &says), len;
	struct rte_ipv6_fragment_ext buf;
	const struct rte_ipv6_fragment_ext *ext = packet_read(m, off, sizeof(buf), &buf);
	uint16_t frag;

	if (off == 0 || ext == NULL || off + sizeof(*ext) >= view->l3_end) {
		ip_drop(ip, DROP_IP_MALFORMED, m);
		return false;
	}
	frag = rte_be_to_cpu_16(ext->frag_data);
	memcpy(a->key.src, &h->src_addr, 16);
	memcpy(a->key.dst, &h->dst_addr, 16);
	if (compat_ip6_src(h)[0] == 0xfe && (compat_ip6_src(h)[1] & 0xc0) == 0x80)
		a->key.link = m->port;
	a->key.id = ext->id;
	a->header = off + IPV6_FRAGMENT_LEN;
	len = view->l3_end - a->header;
	a->begin = frag & RTE_IPV6_EHDR_FO_MASK;
	a->end = a->begin + len;
	a->more = (frag & RTE_IPV6_EHDR_MF_MASK) != 0;
	a->ecn = (uint8_t)(1 << (rte_be_to_cpu_32(h->vtc_flow) >> 20 & 3));
	/* RFC 8200 4.5: these two are said. */
	if (a->more && len % 8 != 0)
		parameter_problem(ip, m, view, offsetof(struct rte_ipv6_hdr, payload_len));
	else if (off - view->l3_off - sizeof(*h) + a->end > UINT16_MAX)
		parameter_problem(ip, m, view,
			off - view->l3_off +
				(uint32_t)offsetof(struct rte_ipv6_fragment_ext, frag_data));
	else
		return true;
	return false;
}

/* --- into its place --- */

/* What is there already has all of [begin, end), in one run without a hole. */
static bool
is_covered(const struct fragment *f, uint32_t begin, uint32_t end)
{
	for (; f != NULL && f->begin <= begin; f = TAILQ_NEXT(f, next)) {
		if (f->end > begin)
			begin = f->end;
		if (begin >= end)
			return true;
	}
	return false;
}

/* The last that begins at or before `begin`, or NULL. In order, and in reverse, it is found at
 * once. */
static struct fragment *
find_before(const struct datagram *d, uint32_t begin)
{
	struct fragment *f = TAILQ_FIRST(&d->fragments);

	if (f == NULL || f->begin > begin)
		return NULL;
	f = TAILQ_LAST(&d->fragments, fragments);
	while (f->begin > begin)
		f = TAILQ_PREV(f, fragments, next);
	return f;
}

/* Does it fit to what the others say about the end of the packet? Notes what it says itself. */
static bool
end_agrees(struct datagram *d, const struct arrival *a)
{
	if (a->more ? d->last && a->end > d->end : a->end < d->end || (d->last && a->end != d->end))
		return false;
	d->end = RTE_MAX(d->end, a->end);
	d->last |= !a->more;
	return true;
}

/* True: it waits in its place. False: it was dropped, perhaps with all of its packet. */
static bool
insert(struct router *ip, struct datagram *d, const struct arrival *a, struct rte_mbuf *m)
{
	struct reassembly *t = ip->fragments;
	struct fragment *before = find_before(d, a->begin), *after, *f;

	if (is_covered(before, a->begin, a->end)) {
		ip_drop(ip, DROP_FRAG_DUPLICATE, m);
		return false;
	}
	after = before == NULL ? TAILQ_FIRST(&d->fragments) : TAILQ_NEXT(before, next);
	if ((before != NULL && before->end > a->begin) ||
		(after != NULL && after->begin < a->end) || !end_agrees(d, a)) {
		ip_drop(ip, DROP_FRAG_OVERLAP, m);
		datagram_drop(ip, d, DROP_FRAG_OVERLAP);
		return false;
	}
	f = TAILQ_FIRST(&t->spare);
	TAILQ_REMOVE(&t->spare, f, next);
	f->m = m;
	f->begin = a->begin;
	f->end = a->end;
	f->header = a->header;
	if (before == NULL)
		TAILQ_INSERT_HEAD(&d->fragments, f, next);
	else
		TAILQ_INSERT_AFTER(&d->fragments, before, f, next);
	t->n_mbufs += m->nb_segs;
	d->got += a->end - a->begin;
	d->ecn |= a->ecn;
	return true;
}

/* False: it has more segments than may wait. */
static bool
make_room(struct router *ip, const struct rte_mbuf *m)
{
	struct reassembly *t = ip->fragments;

	while (t->n_mbufs + m->nb_segs > t->mbufs_max || TAILQ_EMPTY(&t->spare)) {
		if (TAILQ_EMPTY(&t->waiting))
			return false;
		datagram_drop(ip, TAILQ_FIRST(&t->waiting), DROP_FRAG_LIMIT);
	}
	return true;
}

/* --- the whole --- */

/* Without its first n bytes, which it has. */
static struct rte_mbuf *
strip(struct rte_mbuf *m, uint32_t n)
{
	while (n >= m->data_len && m->next != NULL) {
		struct rte_mbuf *rest = m->next;

		n -= m->data_len;
		rest->pkt_len = m->pkt_len - m->data_len;
		rest->nb_segs = (uint16_t)(m->nb_segs - 1);
		m->next = NULL;
		m->nb_segs = 1;
		rte_pktmbuf_free_seg(m);
		m = rest;
	}
	rte_pktmbuf_adj(m, (uint16_t)n);
	return m;
}

/* The first fragment with the payload of the others behind it. */
static struct rte_mbuf *
join(struct reassembly *t, struct datagram *d)
{
	struct fragment *f = TAILQ_FIRST(&d->fragments);
	struct rte_mbuf *whole = fragment_free(t, d, f), *tail = rte_pktmbuf_lastseg(whole);

	while ((f = TAILQ_FIRST(&d->fragments)) != NULL) {
		uint32_t header = f->header;
		struct rte_mbuf *m = strip(fragment_free(t, d, f), header);

		tail->next = m;
		tail = rte_pktmbuf_lastseg(m);
		whole->nb_segs = (uint16_t)(whole->nb_segs + m->nb_segs);
		whole->pkt_len += m->pkt_len;
	}
	return whole;
}

/* RFC 3168 5.3: what all fragments together say; -1: they contradict each other. */
static int
ecn_of(uint8_t mask)
{
	if ((mask & 1) != 0)
		return mask == 1 ? 0 : -1;
	return (mask & 8) != 0 ? 3 : (mask & 4) != 0 ? 2 : 1;
}

static bool
header4(struct rte_mbuf *m, uint32_t l3_off, uint32_t header, uint8_t ecn)
{
	struct rte_ipv4_hdr *h;

	if (m->data_len < header && rte_pktmbuf_linearize(m) != 0)
		return false;
	h = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, l3_off);
	h->total_length = rte_cpu_to_be_16((uint16_t)(m->pkt_len - l3_off));
	h->fragment_offset = 0;
	h->type_of_service = (uint8_t)((h->type_of_service & 0xfc) | ecn);
	h->hdr_checksum = 0;
	h->hdr_checksum = rte_ipv4_cksum(h);
	return true;
}

/* The fragment header goes; what stood in front of it moves up. */
static bool
header6(struct rte_mbuf *m, uint32_t l3_off, uint32_t header, uint8_t ecn)
{
	const struct packet_view view = { .l3_off = (uint16_t)l3_off };
	uint32_t says, off;
	struct rte_ipv6_hdr *h;
	uint8_t *p;

	if (m->data_len < header && rte_pktmbuf_linearize(m) != 0)
		return false;
	off = fragment_header(m, &view, &says);
	p = rte_pktmbuf_mtod(m, uint8_t *);
	p[says] = p[off];
	memmove(p + IPV6_FRAGMENT_LEN, p, off);
	rte_pktmbuf_adj(m, IPV6_FRAGMENT_LEN);
	h = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, l3_off);
	h->payload_len = rte_cpu_to_be_16((uint16_t)(m->pkt_len - l3_off - sizeof(*h)));
	h->vtc_flow = (h->vtc_flow & RTE_BE32(~(3u << 20))) | rte_cpu_to_be_32((uint32_t)ecn << 20);
	return true;
}

static struct rte_mbuf *
complete(struct router *ip, struct datagram *d, uint32_t l3_off)
{
	uint32_t header = TAILQ_FIRST(&d->fragments)->header, len = header - l3_off + d->end;
	int ecn = ecn_of(d->ecn);
	struct rte_mbuf *whole;
	bool good;

	if (d->key.family == AF_INET6)
		len -= sizeof(struct rte_ipv6_hdr) + IPV6_FRAGMENT_LEN;
	if (ecn < 0 || len > UINT16_MAX) {
		datagram_drop(ip, d, ecn < 0 ? DROP_FRAG_OVERLAP : DROP_IP_MALFORMED);
		return NULL;
	}
	whole = join(ip->fragments, d);
	good = d->key.family == AF_INET6 ? header6(whole, l3_off, header, (uint8_t)ecn)
					 : header4(whole, l3_off, header, (uint8_t)ecn);
	datagram_free(ip->fragments, d);
	whole->ol_flags &= ip->app->opened; /* see ip_ipsec_quote() */
	whole->tx_offload = 0;
	if (!good)
		ip_drop(ip, DROP_IP_NOBUF, whole);
	return good ? whole : NULL;
}

struct rte_mbuf *
ip_reassemble(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	bool v6 = view->l3 == PACKET_L3_IPV6;
	struct arrival a = { .key.family = v6 ? AF_INET6 : AF_INET };
	struct datagram *d;

	/* A frame is at least so long that its fixed header lies in the first segment. */
	if (!(v6 ? arrival6(ip, m, view, &a) : arrival4(ip, m, view, &a)))
		return NULL;
	if (table_get(ip) == NULL || !make_room(ip, m)) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return NULL;
	}
	ip_trim_segments(m, view->l3_end);
	d = datagram_find(ip, &a.key);
	if (!insert(ip, d, &a, m) || !d->last || d->got != d->end)
		return NULL;
	return complete(ip, d, view->l3_off);
}

/* Its sender hears of it if we have what an error quotes. */
static void
expire(struct router *ip, struct datagram *d)
{
	const struct fragment *f = TAILQ_FIRST(&d->fragments);
	struct packet_view view;

	if (f->begin == 0) {
		packet_view_parse(f->m, &view);
		if (d->key.family == AF_INET6)
			ip_icmp6_error(ip, f->m, &view, ICMP6_TIME_EXCEEDED,
				ICMP6_TIME_EXCEED_REASSEMBLY, 0);
		else
			ip_icmp_error(ip, f->m, &view, ICMP_TIME_EXCEEDED, ICMP_EXC_FRAGTIME, 0);
	}
	datagram_drop(ip, d, DROP_FRAG_EXPIRED);
}

void
ip_reassembly_tick(struct router *ip, uint64_t now_ms)
{
	struct datagram *d, *next;

	ip->now = now_ms;
	if (ip->fragments == NULL)
		return;
	for (d = TAILQ_FIRST(&ip->fragments->waiting); d != NULL; d = next) {
		next = TAILQ_NEXT(d, next);
		if (now_ms >= d->deadline)
			expire(ip, d);
	}
}

void
ip_reassembly_destroy(struct router *ip)
{
	struct datagram *d;

	if (ip->fragments == NULL)
		return;
	while ((d = TAILQ_FIRST(&ip->fragments->waiting)) != NULL)
		datagram_drop(ip, d, DROP_FRAG_EXPIRED);
	free(ip->fragments);
	ip->fragments = NULL;
}
