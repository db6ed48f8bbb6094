/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Packets that are to be protected become ESP packets (RFC 4303, 3.3), in passes over a burst:
 * numbers, headers and trailers, while keys are fetched ahead, after which the NIC that a frame
 * leaves by can have it; texts, encrypted one after the other, or put into a crypto device. What
 * does ESP itself gets the packets as they are.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_prefetch.h>
#include <rte_udp.h>

#include "ipsec_cache/inline.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/mbuf.h"

#define IPV4_DF 0x40 /* of the header's seventh byte */
#define FLOW_LABEL RTE_BE32(0x000fffff)
#define TRAILER_MIN 2 /* number of padding bytes, next header */
#define TRAILER_STORE 8 /* a trailer with up to 3 bytes of padding is written at once */
#define WHOLE_TAIL \
	32 /* bytes behind a packet for a trailer and check value that a device makes \
	    */
#define HEAD_MIN 64 /* bytes behind the frame's L2 header that are looked at: an IP header */
/* What a NIC was to do, or did, with the frame this was. */
#define SETTLED_FLAGS \
	(RTE_MBUF_F_TX_OFFLOAD_MASK | RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK | \
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED | IPSEC_CACHE_RX_FLAGS)

/* What the outer header takes from the inner one. */
struct inner {
	uint32_t len; /* bytes of the packet */
	uint32_t label; /* IPv6's flow label, as it lies there; else 0 */
	uint8_t tos;
	uint8_t df; /* IPV4_DF, or 0 */
	uint8_t proto; /* IPPROTO_IPIP or IPPROTO_IPV6 */
};

static inline struct inner
look_inside(const uint8_t *ip, const struct packet_view *view)
{
	struct inner in = { .len = view->l3_end - view->l3_off };
	uint32_t first;

	if (likely(view->l3 == PACKET_L3_IPV4)) {
		in.tos = ip[1];
		in.df = ip[6] & IPV4_DF;
		in.proto = IPPROTO_IPIP;
	} else {
		memcpy(&first, ip, sizeof(first));
		in.label = first & FLOW_LABEL;
		in.tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
		in.df = IPV4_DF; /* routers do not fragment IPv6 */
		in.proto = IPPROTO_IPV6;
	}
	return in;
}

static inline uint16_t
fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

/*
 * What the packets of a run have in common. By value, and nowhere by address: a byte that is stored
 * to a packet might be one of the SA's as far as a compiler knows, which then reads it again. (And
 * htons() is one instruction, which rte_cpu_to_be_16() of some versions is not.)
 */
struct mould {
	const uint8_t *header; /* the template */
	const struct packet_view *view; /* of the outer packet */
	uint64_t iv_mask;
	uint32_t checksum;
	uint32_t header_len; /* outer IP .. IV */
	uint32_t esp_len; /* ESP's header and IV */
	uint32_t icv_len;
	rte_be16_t type; /* of the frame */
	uint8_t tos_mask, df_mask;
	bool v4, udp, iv, tfc;
};

/*
 * The outer header before `ip`, the inner packet: the template, and what each packet changes in it.
 * It is written with one store of 64 bytes that ends where the packet begins, so IPSEC_HEADER_ROOM
 * bytes before that are spent. `len`: of the outer packet. Returns its first byte.
 */
static inline uint8_t *
put_header(struct ipsec_cache_worker *w, const struct mould *mould, uint8_t *ip,
	const struct inner *in, uint32_t len, uint64_t seq)
{
	uint8_t *outer = ip - mould->header_len, *esp = ip - mould->esp_len;
	uint32_t low = htonl((uint32_t)seq), word;
	uint64_t iv = seq ^ mould->iv_mask;
	uint16_t id, sum, n;
	uint8_t tos = in->tos & mould->tos_mask, df;

	memcpy(ip - IPSEC_HEADER_ROOM, mould->header, IPSEC_HEADER_ROOM);
	if (likely(mould->v4)) {
		df = in->df & mould->df_mask;
		/* an ID tells fragments apart: where there are none it is 0, as Linux's (RFC 6864)
		 */
		id = df != 0 ? 0 : ++w->ip_id;
		n = htons((uint16_t)len);
		outer[1] = tos;
		memcpy(outer + 2, &n, sizeof(n));
		memcpy(outer + 4, &id, sizeof(id));
		outer[6] = df;
		/* the template's sum, and what was 0 in it (RFC 1624 without its subtraction) */
		sum = (uint16_t)~fold(
			mould->checksum + n + id + htons(tos) + htons((uint16_t)(df << 8)));
		memcpy(outer + 10, &sum, sizeof(sum));
	} else {
		word = htonl(6u << 28 | (uint32_t)tos << 20) | in->label;
		memcpy(outer, &word, sizeof(word));
		n = htons((uint16_t)(len - IPSEC_IPV6_HEADER));
		memcpy(outer + 4, &n, sizeof(n));
	}
	if (unlikely(mould->udp)) {
		n = htons((uint16_t)(len - (uint32_t)(esp - IPSEC_UDP_HEADER - outer)));
		memcpy(esp - 4, &n, sizeof(n));
	}
	memcpy(esp + 4, &low, sizeof(low));
	if (likely(mould->iv))
		memcpy(esp + IPSEC_ESP_HEADER, &iv, sizeof(iv));
	return outer;
}

#define VIEW(v4, udp) \
	{ \
		.l3_off = RTE_ETHER_HDR_LEN, \
		.l4_off = (udp) \
			? RTE_ETHER_HDR_LEN + ((v4) ? IPSEC_IPV4_HEADER : IPSEC_IPV6_HEADER) \
			: 0, \
		.rest_off = (udp) \
			? 0 \
			: RTE_ETHER_HDR_LEN + ((v4) ? IPSEC_IPV4_HEADER : IPSEC_IPV6_HEADER), \
		.src_off = RTE_ETHER_HDR_LEN + ((v4) ? 12 : 8), \
		.dst_off = RTE_ETHER_HDR_LEN + ((v4) ? 16 : 24), \
		.ether_type = (v4) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6, \
		.l3 = (v4) ? PACKET_L3_IPV4 : PACKET_L3_IPV6, \
		.stop = (udp) ? PACKET_STOP_NONE : PACKET_STOP_OPAQUE, .flags = PACKET_F_L3, \
		.l4_proto = (udp) ? IPPROTO_UDP : IPPROTO_ESP, \
	}

static inline struct mould
mould_of(const struct ipsec_cache_rt *rt)
{
	static const struct packet_view views[2][2] = {
		{ VIEW(true, false), VIEW(true, true) },
		{ VIEW(false, false), VIEW(false, true) },
	};
	bool v4 = rt->family == AF_INET, udp = (rt->flags & IPSEC_RT_UDP) != 0;

	return (struct mould){
		.header = rt->header,
		.view = &views[!v4][udp],
		.iv_mask = rt->iv_mask,
		.checksum = rt->checksum,
		.header_len = rt->header_len,
		.esp_len = IPSEC_ESP_HEADER + (uint32_t)rt->iv_len,
		.icv_len = rt->icv_len,
		.type = v4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6),
		.tos_mask = rt->tos_mask,
		.df_mask = rt->copy_df ? IPV4_DF : 0,
		.v4 = v4,
		.udp = udp,
		.iv = rt->iv_len != 0,
		.tfc = rt->tfcpad != 0,
	};
}

/* The frame is what put_header() made of it, behind room for its Ethernet header; its fields and
 * its view say so too.
 */
static inline void
put_frame(const struct mould *mould, struct rte_mbuf *m, struct packet_view *view, uint8_t *outer)
{
	memcpy(outer - sizeof(mould->type), &mould->type, sizeof(mould->type));
	m->packet_type = 0;
	m->ol_flags &= ~(uint64_t)SETTLED_FLAGS;
	*view = *mould->view;
	view->l3_end = m->pkt_len;
}

static inline uint32_t
padding(uint32_t len)
{
	return -(len + TRAILER_MIN) & (IPSEC_PAD_ALIGN - 1);
}

/* Padding 1, 2, 3, their number, next header (RFC 4303, 2.4), in the low bytes of a word. */
static inline uint64_t
trailer(uint32_t pad, uint8_t proto)
{
	static const uint64_t bytes[IPSEC_PAD_ALIGN] = { 0, 0x0101, 0x020201, 0x03030201 };

	return rte_cpu_to_le_64(bytes[pad] | (uint64_t)proto << 8 * (pad + 1));
}

/* What is to be encrypted, in one piece. */
struct text {
	uint8_t *at;
	uint32_t len;
};

/* The usual frame: one segment with room on both sides. *text: what is to be encrypted. False: it
 * is another kind. */
static inline bool
shape_plain(struct ipsec_cache_worker *w, const struct mould *mould, struct rte_mbuf *m,
	struct packet_view *view, uint64_t seq, struct text *text)
{
	uint32_t from = m->data_off + (uint32_t)view->l3_off, pad, len;
	uint8_t *ip = (uint8_t *)m->buf_addr + from, *outer;
	struct inner in;
	uint64_t end;

	if (unlikely(!ipsec_mbuf_plain(m) || mould->tfc ||
		    from < IPSEC_HEADER_ROOM + RTE_ETHER_HDR_LEN ||
		    m->buf_len < m->data_off + view->l3_end + TRAILER_STORE + IPSEC_ICV_MAX))
		return false;
	in = look_inside(ip, view);
	pad = padding(in.len);
	end = trailer(pad, in.proto);
	memcpy(ip + in.len, &end, TRAILER_STORE);
	text->at = ip;
	text->len = in.len + pad + TRAILER_MIN;
	len = mould->header_len + text->len + mould->icv_len;
	outer = put_header(w, mould, ip, &in, len, seq);
	m->data_off = (uint16_t)(from - mould->header_len - RTE_ETHER_HDR_LEN);
	m->data_len = (uint16_t)(RTE_ETHER_HDR_LEN + len);
	m->pkt_len = RTE_ETHER_HDR_LEN + len;
	put_frame(mould, m, view, outer);
	return true;
}

/* Zeros that hide the packet's length (RFC 4303, 2.7), as far as the route's MTU allows. */
static uint32_t
tfc_padding(const struct ipsec_cache_rt *rt, const struct ipsec_cache_decision *d, uint32_t len)
{
	uint32_t to = RTE_MIN(rt->tfcpad, d->mtu);

	return len < to ? to - len : 0;
}

/* Any frame: cut, shared, in many segments, to be padded. False: no mbuf, or they are too small. */
static bool __rte_noinline
shape_any(struct ipsec_cache_worker *w, struct ipsec_job *job, struct packet_vector *v,
	const struct ipsec_cache_decision *d)
{
	const struct ipsec_cache_rt *rt = job->rt;
	const struct mould mould = mould_of(rt);
	struct packet_view *view = &v->views[job->at];
	uint32_t pad, tfc, more, i;
	struct rte_mbuf *m;
	struct inner in;
	uint8_t *ip, *outer, *end;

	m = ipsec_mbuf_own(v->pkts[job->at], IPSEC_HEADER_ROOM, view->l3_off + HEAD_MIN);
	if (m == NULL)
		return false;
	v->pkts[job->at] = m;
	ipsec_mbuf_cut(m, view->l3_end);
	ip = rte_pktmbuf_mtod_offset(m, uint8_t *, view->l3_off);
	in = look_inside(ip, view);
	tfc = tfc_padding(rt, d, in.len);
	pad = padding(in.len + tfc);
	more = tfc + pad + TRAILER_MIN + mould.icv_len;
	if (mould.header_len + in.len + more > UINT16_MAX)
		return false;
	if ((end = ipsec_mbuf_extend(m, more)) == NULL)
		return false;
	memset(end, 0, tfc);
	end += tfc;
	for (i = 1; i <= pad; i++)
		*end++ = (uint8_t)i;
	*end++ = (uint8_t)pad;
	*end++ = in.proto;
	job->m = m;
	job->text = NULL;
	job->icv = end;
	job->len = in.len + tfc + pad + TRAILER_MIN;
	outer = put_header(w, &mould, ip, &in, mould.header_len + in.len + more, job->seq);
	ipsec_job_nonce(job, rt, ip - mould.esp_len, job->seq ^ mould.iv_mask);
	i = (uint32_t)(rte_pktmbuf_mtod(m, uint8_t *) - (outer - RTE_ETHER_HDR_LEN));
	m->data_off = (uint16_t)(m->data_off - i);
	m->data_len = (uint16_t)(m->data_len + i);
	m->pkt_len += i;
	job->off = RTE_ETHER_HDR_LEN + mould.header_len;
	put_frame(&mould, m, view, outer);
	return true;
}

/*
 * Numbers for the packets of an SA that lcores share: one addition for all of them. A number beyond
 * the last one is given as 0. Returns which they are.
 */
static uint64_t
number_shared(struct ipsec_cache_worker *w, uint64_t mask,
	const struct ipsec_cache_decision *const *decisions, struct ipsec_cache_rt *rt)
{
	uint64_t seq, mine = 0;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		if (decisions[i]->rt == rt)
			mine |= UINT64_C(1) << i;
	}
	/* looked at first, so that those who come in vain do not add up to a wrap */
	seq = ipsec_load(&rt->oseq);
	if (seq < rt->oseq_max)
		seq = atomic_fetch_add_explicit(
			&rt->oseq, (uint64_t)__builtin_popcountll(mine), memory_order_relaxed);
	packet_mask_for_each (i, mine) {
		w->seqs[i] = seq < rt->oseq_max ? ++seq : 0;
	}
	return mine;
}

/* Packets of one SA that follow each other. What they change in it is written when they end. */
struct run {
	struct ipsec_cache_rt *rt;
	struct ipsec_session *session; /* of the device that protects them; NULL: the CPU does */
	struct mould mould;
	uint64_t seq, seq_max; /* last number that was given out, and that may be */
	uint64_t home; /* of the SA */
	uint64_t packets, bytes;
	uint64_t packets_left, bytes_left; /* at which its hard lifetime is over */
	uint64_t numbered; /* positions whose numbers number_shared() gave */
	bool nic, crypto, whole; /* whose work is the session's: inline.h, lookaside.h, all ESP */
	bool shared;
	bool odd; /* another lcore's, or with an end to its life in sight */
};

/* What is left of a hard lifetime when the run begins. False: there is no end to it. */
static inline bool
run_limits(struct run *run)
{
	const struct ipsec_cache_rt *rt = run->rt;
	uint64_t packets, bytes, most;

	run->packets_left = run->bytes_left = UINT64_MAX;
	if (unlikely(ipsec_load(&rt->expired))) {
		run->packets_left = 0;
		return true;
	}
	if (likely(!ipsec_load(&rt->limited)))
		return false;
	packets = ipsec_load(&rt->packets);
	most = ipsec_load(&rt->hard_packets);
	run->packets_left = most > packets ? most - packets : 0;
	bytes = ipsec_load(&rt->bytes);
	most = ipsec_load(&rt->hard_bytes);
	run->bytes_left = most > bytes ? most - bytes : 0;
	return true;
}

static inline void
run_end(struct run *run, uint32_t seconds)
{
	if (run->packets == 0)
		return;
	if (likely(!run->shared))
		ipsec_store(&run->rt->oseq, run->seq);
	if (unlikely(run->whole))
		ipsec_store(&run->session->reached, run->seq);
	ipsec_rt_count(run->rt, run->packets, run->bytes, seconds);
}

/* Can the session have the run's packets? */
static inline bool
session_usable(struct ipsec_cache_worker *w, const struct run *run, struct ipsec_session *s)
{
	if (ipsec_session_is_lookaside(s) && !ipsec_lookaside_usable(w, s))
		return false;
	/* who has no word in the numbers takes none */
	return run->shared || run->home != w->home || !ipsec_session_is_protocol(s) ||
		ipsec_inline_numbers(run->rt, s);
}

static inline void
run_begin(struct ipsec_cache_worker *w, struct run *run, uint64_t mask, unsigned int i,
	const struct ipsec_cache_decision *const *decisions)
{
	struct ipsec_cache_rt *rt = decisions[i]->rt;
	struct ipsec_session *s = decisions[i]->session;

	run->rt = rt;
	run->mould = mould_of(rt);
	run->home = w->home;
	run->shared = (rt->flags & IPSEC_RT_SHARED) != 0;
	if (likely(!run->shared))
		run->home = ipsec_worker_claim(w, rt);
	run->nic = run->crypto = run->whole = false;
	if (unlikely(s != NULL) && !session_usable(w, run, s))
		s = NULL;
	if (unlikely(s != NULL)) {
		run->whole = ipsec_session_is_protocol(s);
		run->crypto = !run->whole && ipsec_session_is_lookaside(s);
		run->nic = !run->whole && !run->crypto;
	}
	run->session = s;
	run->seq = ipsec_load(&rt->oseq);
	run->seq_max = rt->oseq_max;
	run->packets = run->bytes = 0;
	run->odd = run_limits(run) || run->home != w->home;
	if (unlikely(run->shared) && (run->numbered >> i & 1) == 0)
		run->numbered |= number_shared(w, mask & UINT64_MAX << i, decisions, rt);
}

/* May the run's next packet go? */
static inline bool
run_admits(struct ipsec_cache_worker *w, const struct run *run, unsigned int i,
	struct ipsec_cache_result *result)
{
	/* over, or with what the run has so far */
	if (run->packets >= run->packets_left || run->bytes >= run->bytes_left) {
		ipsec_worker_fail(w, result, i, IPSEC_CACHE_ESP_EXPIRED);
		return false;
	}
	if (run->home != w->home) {
		result->hand_over |= UINT64_C(1) << i;
		result->home[i] = (uint8_t)run->home;
		return false;
	}
	return true;
}

/* UDP over IPv6 has a checksum (RFC 8200, 8.1), over the text as it is sent. */
static void
finish_udp6(struct rte_mbuf *m)
{
	const struct rte_ipv6_hdr *ip =
		rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(
		m, struct rte_udp_hdr *, RTE_ETHER_HDR_LEN + IPSEC_IPV6_HEADER);
	uint32_t off = RTE_ETHER_HDR_LEN + IPSEC_IPV6_HEADER, at = 0, sum;
	const struct rte_mbuf *seg;
	uint16_t part;

	udp->dgram_cksum = 0;
	sum = rte_ipv6_phdr_cksum(ip, 0);
	for (seg = m; seg != NULL; seg = seg->next, off = 0) {
		part = rte_raw_cksum(
			rte_pktmbuf_mtod_offset(seg, const uint8_t *, off), seg->data_len - off);
		/* what begins at an odd byte of the whole counts with its bytes exchanged */
		sum += at % 2 == 0 ? part : rte_bswap16(part);
		at += seg->data_len - off;
	}
	part = (uint16_t)~fold(sum);
	udp->dgram_cksum = part == 0 ? UINT16_MAX : part;
}

/* What lies behind layer 3's beginning, in a packet whose tags are gone. */
static inline uint16_t
moved(uint16_t off, uint16_t tags)
{
	return off == 0 ? 0 : (uint16_t)(off - tags);
}

/* The inner packet behind 14 bytes for an Ethernet header, for a NIC that does ESP by itself. */
static enum ipsec_cache_error
give_whole(struct ipsec_cache_worker *w, const struct ipsec_cache_rt *rt,
	const struct ipsec_session *s, struct packet_vector *v, unsigned int i)
{
	struct packet_view *view = &v->views[i];
	uint16_t tags = (uint16_t)(view->l3_off - RTE_ETHER_HDR_LEN);
	bool v4 = view->l3 == PACKET_L3_IPV4;
	const uint8_t *ip;
	struct rte_mbuf *m;

	if ((m = ipsec_mbuf_ensure(&v->pkts[i], view->l3_off + HEAD_MIN)) == NULL)
		return IPSEC_CACHE_ESP_NOBUF;
	ipsec_mbuf_cut(m, view->l3_end);
	rte_pktmbuf_adj(m, tags);
	ipsec_set_type(m, rt->family == AF_INET); /* what the outer header will be */
	m->packet_type = 0;
	m->ol_flags &= ~(uint64_t)SETTLED_FLAGS;
	ipsec_set_mark(w, rt, m);
	view->l3_off = RTE_ETHER_HDR_LEN;
	view->l4_off = moved(view->l4_off, tags);
	view->rest_off = moved(view->rest_off, tags);
	view->src_off = moved(view->src_off, tags);
	view->dst_off = moved(view->dst_off, tags);
	view->n_vlan = 0;
	view->l3_end = m->pkt_len;
	ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, RTE_ETHER_HDR_LEN);
	return ipsec_inline_give(
		       s, m, v4, v4 ? (uint16_t)((ip[0] & 0xf) * 4) : IPSEC_IPV6_HEADER, NULL)
		? IPSEC_CACHE_ERROR_MAX
		: IPSEC_CACHE_ESP_DEVICE;
}

/* The inner packet by itself, for a crypto device that does ESP. */
static enum ipsec_cache_error
put_whole(struct ipsec_cache_worker *w, struct ipsec_cache_rt *rt, struct ipsec_session *s,
	struct packet_vector *v, unsigned int i, struct ipsec_cache_result *result)
{
	const struct packet_view *view = &v->views[i];
	struct ipsec_job job = { .rt = rt, .m = v->pkts[i] };
	uint32_t room = IPSEC_HEADER_ROOM + RTE_ETHER_HDR_LEN;

	if (!ipsec_mbuf_plain(job.m) || rte_pktmbuf_headroom(job.m) + view->l3_off < room) {
		if ((job.m = ipsec_mbuf_own(job.m, room, view->l3_off + HEAD_MIN)) == NULL)
			return IPSEC_CACHE_ESP_NOBUF;
		v->pkts[i] = job.m;
	}
	ipsec_mbuf_cut(job.m, view->l3_end);
	if (!ipsec_mbuf_tail(job.m, WHOLE_TAIL))
		return IPSEC_CACHE_ESP_NOBUF;
	rte_pktmbuf_adj(job.m, view->l3_off);
	job.m->packet_type = 0;
	job.m->tx_offload = 0;
	job.m->ol_flags &= ~(uint64_t)SETTLED_FLAGS;
	ipsec_set_mark(w, rt, job.m);
	if (!ipsec_lookaside_whole(w, &job, s, true))
		return IPSEC_CACHE_ESP_DEVICE_FULL;
	result->pending |= UINT64_C(1) << i;
	return IPSEC_CACHE_ERROR_MAX;
}

/* What does ESP by itself gets the packet as it is. False: the device knows of no such packet. */
static bool __rte_noinline
leave_whole(struct ipsec_cache_worker *w, struct ipsec_cache_rt *rt, struct ipsec_session *s,
	struct packet_vector *v, unsigned int i, struct ipsec_cache_result *result)
{
	enum ipsec_cache_error error;

	error = ipsec_session_is_lookaside(s) ? put_whole(w, rt, s, v, i, result)
					      : give_whole(w, rt, s, v, i);
	if (error == IPSEC_CACHE_ERROR_MAX)
		return true;
	ipsec_worker_fail(w, result, i, error);
	return false;
}

/* The NIC encrypts it. False: its driver does not take it. */
static inline bool
give(struct ipsec_cache_worker *w, const struct ipsec_session *s, struct rte_mbuf *m, bool v4,
	uint64_t seq)
{
	m->packet_type = RTE_PTYPE_TUNNEL_ESP; /* ipsec_cache_complete() looks for it */
	if (likely(ipsec_inline_give(s, m, v4, v4 ? IPSEC_IPV4_HEADER : IPSEC_IPV6_HEADER, &seq)))
		return true;
	m->packet_type = 0;
	ipsec_add(&w->completed, 1);
	return false;
}

static inline void
begin_job(struct ipsec_job *job, const struct run *run, uint64_t seq, unsigned int i)
{
	job->rt = run->rt;
	job->seq = seq;
	job->at = (uint8_t)i;
}

static inline void
put_text(struct ipsec_job *job, struct rte_mbuf *m, const struct text *text,
	const struct mould *mould)
{
	job->m = m;
	job->text = text->at;
	job->len = text->len;
	job->icv = text->at + text->len;
	ipsec_job_nonce(job, job->rt, text->at - mould->esp_len, job->seq ^ mould->iv_mask);
}

/*
 * Gives each packet its number, in order of position (D11, D12), and the shape of ESP; to NICs what
 * they encrypt. Returns how many jobs are left; *theirs: those of them that are crypto devices'.
 */
static unsigned int
shape(struct ipsec_cache_worker *w, struct packet_vector *v, uint64_t mask,
	const struct ipsec_cache_decision *const *decisions, struct ipsec_cache_result *result,
	uint64_t *theirs)
{
	const struct ipsec_cache_decision *last = NULL; /* a train has one */
	struct run run = { 0 };
	unsigned int i, n = 0;

	*theirs = 0;
	packet_mask_for_each (i, mask) {
		struct ipsec_job *job = &w->jobs[n];
		struct packet_view *view = &v->views[i];
		uint32_t len = view->l3_end - view->l3_off;
		struct text text;
		uint64_t seq;
		bool plain;

		if (decisions[i] != last) {
			if (last == NULL || decisions[i]->rt != last->rt ||
				decisions[i]->session != last->session) {
				run_end(&run, w->seconds);
				run_begin(w, &run, mask, i, decisions);
			}
			last = decisions[i];
		}
		if (unlikely(run.odd) && !run_admits(w, &run, i, result))
			continue;
		if (unlikely(run.shared))
			seq = w->seqs[i];
		else
			seq = likely(run.seq < run.seq_max) ? ++run.seq : 0;
		if (unlikely(seq == 0)) {
			ipsec_worker_fail(w, result, i, IPSEC_CACHE_ESP_SEQ); /* D11 */
			continue;
		}
		run.packets++;
		run.bytes += len;
		if (unlikely(run.whole)) {
			if (!leave_whole(w, run.rt, run.session, v, i, result)) {
				run.seq--;
				run.packets--;
				run.bytes -= len;
			}
			continue;
		}
		plain = shape_plain(w, &run.mould, v->pkts[i], view, seq, &text);
		if (unlikely(!plain)) {
			begin_job(job, &run, seq, i);
			if (!shape_any(w, job, v, decisions[i])) {
				ipsec_worker_fail(w, result, i, IPSEC_CACHE_ESP_NOBUF);
				continue;
			}
		}
		ipsec_set_mark(w, run.rt, v->pkts[i]);
		if (unlikely(run.nic) &&
			likely(give(w, run.session, v->pkts[i], run.mould.v4, seq)))
			continue;
		if (likely(plain)) {
			begin_job(job, &run, seq, i);
			put_text(job, v->pkts[i], &text, &run.mould);
		}
		if (unlikely(run.crypto)) {
			w->sessions[n] = run.session;
			*theirs |= UINT64_C(1) << n;
		}
		n++;
	}
	run_end(&run, w->seconds);
	return n;
}

static inline void
encrypt(struct ipsec_cache_worker *w, struct ipsec_job *job)
{
	if (likely(job->text != NULL))
		job->rt->encrypt(job->rt->key, &w->gcm, job->text, job->text, job->len, job->nonce,
			job->aad, job->aad_len, job->icv, job->rt->icv_len);
	else
		ipsec_job_chain(w, job, true);
	if (unlikely((job->rt->flags & IPSEC_RT_UDP) != 0 && job->rt->family == AF_INET6))
		finish_udp6(job->m);
}

/* A crypto device encrypts it, or it has no place for it. */
static void
put(struct ipsec_cache_worker *w, const struct ipsec_job *job, struct ipsec_session *s,
	struct ipsec_cache_result *result)
{
	if (likely(ipsec_lookaside_seal(w, job, s)))
		result->pending |= UINT64_C(1) << job->at;
	else
		ipsec_worker_fail(w, result, job->at, IPSEC_CACHE_ESP_DEVICE_FULL);
}

/* Those of `theirs` are crypto devices'. */
static void __rte_noinline
share_out(struct ipsec_cache_worker *w, unsigned int n, uint64_t theirs,
	struct ipsec_cache_result *result)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if ((theirs >> i & 1) == 0)
			encrypt(w, &w->jobs[i]);
		else
			put(w, &w->jobs[i], w->sessions[i], result);
	}
}

void
ipsec_cache_seal(struct ipsec_cache_worker *w, struct packet_vector *v, uint64_t mask,
	const struct ipsec_cache_decision *const *decisions, struct ipsec_cache_result *result)
{
	struct ipsec_job *job;
	uint64_t theirs;
	unsigned int n;

	result->drop = result->hand_over = result->not_ours = result->pending = 0;
	packet_vector_parse(v);
	n = shape(w, v, mask, decisions, result, &theirs);
	if (likely(theirs == 0)) {
		for (job = w->jobs; job < w->jobs + n; job++)
			encrypt(w, job);
	} else {
		share_out(w, n, theirs, result);
	}
	if (unlikely(result->pending != 0))
		ipsec_lookaside_flush(w);
	result->done = mask & ~(result->drop | result->hand_over | result->pending);
}

/* --- what crypto devices have done --- */

/* The outer packet that a device made: it is ESP of that SA, and not what was put in. */
static bool
is_sealed(const struct ipsec_cache_rt *rt, const struct rte_mbuf *m)
{
	bool v4 = rt->family == AF_INET;
	uint32_t esp = rt->header_len - (uint32_t)(IPSEC_ESP_HEADER + rt->iv_len);
	const uint8_t *ip = rte_pktmbuf_mtod(m, const uint8_t *);
	uint8_t proto = (rt->flags & IPSEC_RT_UDP) != 0 ? IPPROTO_UDP : IPPROTO_ESP;

	return m->data_len >= rt->header_len && ip[0] >> 4 == (v4 ? 4 : 6) &&
		ip[v4 ? 9 : 6] == proto &&
		memcmp(ip + (v4 ? 16 : 24), rt->daddr, v4 ? 4 : 16) == 0 &&
		memcmp(ip + esp, &rt->spi, sizeof(rt->spi)) == 0;
}

static enum ipsec_cache_error
finish_whole(const struct ipsec_slot *slot)
{
	if (!is_sealed(slot->rt, slot->m))
		return IPSEC_CACHE_ESP_DEVICE;
	if (rte_pktmbuf_prepend(slot->m, RTE_ETHER_HDR_LEN) == NULL)
		return IPSEC_CACHE_ESP_NOBUF;
	ipsec_set_type(slot->m, slot->rt->family == AF_INET);
	return IPSEC_CACHE_ERROR_MAX;
}

enum ipsec_cache_error
ipsec_seal_finish(const struct ipsec_slot *slot)
{
	if (unlikely(ipsec_session_is_protocol(slot->session)))
		return finish_whole(slot);
	if (unlikely((slot->rt->flags & IPSEC_RT_UDP) != 0 && slot->rt->family == AF_INET6))
		finish_udp6(slot->m);
	return IPSEC_CACHE_ERROR_MAX;
}

/* --- what was sealed for a NIC that it does not leave by --- */

/* The job that a frame was when it was given to a NIC. False: nobody's SA, or another frame. */
static bool
find_job(struct ipsec_cache_worker *w, struct rte_mbuf *m, struct ipsec_job *job)
{
	struct ipsec_cache_rt *rt;
	struct packet_view view;
	uint8_t daddr[16] = { 0 };
	uint32_t spi, low, off;
	const uint8_t *p;
	uint64_t iv = 0, oseq;

	packet_view_parse(m, &view);
	if ((view.flags & PACKET_F_L3) == 0)
		return false;
	memcpy(daddr, rte_pktmbuf_mtod_offset(m, uint8_t *, view.dst_off),
		view.l3 == PACKET_L3_IPV4 ? 4 : 16);
	off = view.l4_proto == IPPROTO_UDP ? view.l4_off + (uint32_t)IPSEC_UDP_HEADER
					   : view.rest_off;
	if (off == 0 || off + IPSEC_ESP_HEADER + sizeof(iv) > m->data_len)
		return false;
	p = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	memcpy(&spi, p, sizeof(spi));
	memcpy(&low, p + 4, sizeof(low));
	rt = ipsec_sad_lookup(w->ic, spi, view.l3 == PACKET_L3_IPV4 ? AF_INET : AF_INET6, daddr,
		packet_meta(m, w->ic->conf.meta_offset)->mark);
	if (rt == NULL || view.l3_end < off + IPSEC_ESP_HEADER + rt->iv_len + rt->icv_len)
		return false;
	if (rt->iv_len != 0)
		memcpy(&iv, p + IPSEC_ESP_HEADER, sizeof(iv));
	/* Its number is the one with that low half that is nearest to the last one, below it. */
	oseq = ipsec_load(&rt->oseq);
	job->rt = rt;
	job->m = m;
	job->seq = oseq - (uint32_t)((uint32_t)oseq - rte_be_to_cpu_32(low));
	/* or the frame is of another SA with that SPI, of another mark or gone: its IV says so, and
	 * without one, that no such number was given out */
	if (rt->iv_len != 0 ? iv != (job->seq ^ rt->iv_mask) : job->seq > oseq)
		return false;
	job->off = off + IPSEC_ESP_HEADER + rt->iv_len;
	job->len = view.l3_end - job->off - rt->icv_len;
	ipsec_job_nonce(job, rt, p, iv);
	return true;
}

bool
ipsec_cache_complete(struct ipsec_cache_worker *w, struct rte_mbuf *m)
{
	struct ipsec_job *job = &w->jobs[0];
	const uint8_t *icv;
	uint8_t buf[IPSEC_ICV_MAX];

	if ((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) == 0)
		return true;
	if (m->packet_type != RTE_PTYPE_TUNNEL_ESP || !find_job(w, m, job))
		return false;
	/* its check value lies in one piece, as it was made */
	icv = packet_read(m, job->off + job->len, job->rt->icv_len, buf);
	if (icv == buf)
		return false;
	job->icv = (uint8_t *)(uintptr_t)icv;
	job->text = m->nb_segs == 1 ? rte_pktmbuf_mtod_offset(m, uint8_t *, job->off) : NULL;
	m->ol_flags &= ~(uint64_t)SETTLED_FLAGS;
	m->packet_type = 0;
	ipsec_add(&w->completed, 1);
	encrypt(w, job);
	return true;
}
