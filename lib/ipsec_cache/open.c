/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * ESP packets to addresses of ours become the packets inside them (RFC 4303, 3.4), in passes over a
 * burst: which they are, and whose; numbers looked at, while keys are fetched ahead; texts
 * decrypted one after the other, but for those that a NIC has or a crypto device will; check
 * values, numbers, padding, inner packets. What a NIC that does ESP by itself has opened is looked
 * at at once.
 */

#include <linux/udp.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "ipsec_cache/ecn.h"
#include "ipsec_cache/inline.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/mbuf.h"

#define PAD_MAX 255
#define HEAD_ROOM 80 /* UDP, ESP, IV and the inner header behind where ESP begins, and more */
/* What a NIC said of the outer frame. */
#define OUTER_FLAGS \
	(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK | RTE_MBUF_F_RX_VLAN | \
		RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_TX_OFFLOAD_MASK | IPSEC_CACHE_RX_FLAGS)

enum kind {
	KIND_OTHER,
	KIND_ESP, /* job: off, len, encap, and with that sport */
	KIND_DROP, /* for `error`, if it is for us */
};

/* ESP in UDP, IKE, or a keepalive (RFC 3948, 2.2 and 2.3; Linux: xfrm4_udp_encap_rcv()). */
static enum kind
look_at_udp(const struct rte_mbuf *m, const struct packet_view *view, struct ipsec_job *job,
	enum ipsec_cache_error *error)
{
	uint8_t buf[IPSEC_UDP_HEADER + IPSEC_ESP_HEADER];
	uint32_t left = view->l3_end - view->l4_off, n = RTE_MIN(left, sizeof(buf)), first;
	uint16_t port, len;
	const uint8_t *p;

	if (n < IPSEC_UDP_HEADER || (p = packet_read(m, view->l4_off, n, buf)) == NULL)
		return KIND_OTHER;
	memcpy(&port, p + 2, sizeof(port));
	if (port != RTE_BE16(IPSEC_NATT_PORT))
		return KIND_OTHER;
	memcpy(&len, p + 4, sizeof(len));
	len = rte_be_to_cpu_16(len);
	*error = IPSEC_CACHE_ESP_MALFORMED;
	if (len < IPSEC_UDP_HEADER || len > left)
		return KIND_DROP;
	job->off = view->l4_off + (uint32_t)IPSEC_UDP_HEADER;
	job->len = len - (uint32_t)IPSEC_UDP_HEADER;
	job->encap = UDP_ENCAP_ESPINUDP;
	memcpy(&job->sport, p, sizeof(job->sport));
	if (len == IPSEC_UDP_HEADER + 1 && p[IPSEC_UDP_HEADER] == 0xff) {
		*error = IPSEC_CACHE_ESP_KEEPALIVE;
		return KIND_DROP;
	}
	if (len <= IPSEC_UDP_HEADER + IPSEC_ESP_HEADER)
		return KIND_OTHER;
	memcpy(&first, p + IPSEC_UDP_HEADER, sizeof(first));
	return first == 0 ? KIND_OTHER : KIND_ESP;
}

static inline enum kind
look(const struct rte_mbuf *m, const struct packet_view *view, struct ipsec_job *job,
	enum ipsec_cache_error *error)
{
	bool l3 = (view->flags & PACKET_F_L3) != 0;

	if (likely(view->l4_proto == IPPROTO_ESP && view->stop == PACKET_STOP_OPAQUE && l3)) {
		*error = IPSEC_CACHE_ESP_MALFORMED;
		if (view->rest_off == 0 || (view->flags & PACKET_F_CUT) != 0)
			return KIND_DROP;
		job->off = view->rest_off;
		job->len = view->l3_end - view->rest_off;
		job->encap = 0;
		return KIND_ESP;
	}
	if (!l3)
		return KIND_OTHER;
	if (view->stop == PACKET_STOP_NONE && view->l4_proto == IPPROTO_UDP)
		return look_at_udp(m, view, job, error);
	*error = IPSEC_CACHE_ESP_FRAGMENT;
	return view->l4_proto == IPPROTO_ESP && view->stop == PACKET_STOP_FRAGMENT ? KIND_DROP
										   : KIND_OTHER;
}

/* The outer addresses of a packet, as its SA has them. False: the frame lacks them. */
struct ends {
	uint64_t saddr[2], daddr[2];
	uint8_t family;
	uint8_t tos;
};

static inline void
look_outside(const struct rte_mbuf *m, const struct packet_view *view, struct ends *ends)
{
	uint8_t buf[40];
	const uint8_t *p;

	if (view->l3 == PACKET_L3_IPV4) {
		p = packet_read(m, view->l3_off, 20, buf);
		ends->family = AF_INET;
		ends->tos = p[1];
		ipsec_addr4(ends->saddr, p + 12);
		ipsec_addr4(ends->daddr, p + 16);
	} else {
		p = packet_read(m, view->l3_off, 40, buf);
		ends->family = AF_INET6;
		ends->tos = (uint8_t)(p[0] << 4 | p[1] >> 4);
		ipsec_addr6(ends->saddr, p + 8);
		ipsec_addr6(ends->daddr, p + 24);
	}
}

static bool
is_local(const struct ipsec_cache_worker *w, const struct ends *ends)
{
	struct ipsec_cache_hop hop = { 0 };

	w->ic->conf.resolve(w->ic->conf.arg, ends->family, ends->daddr, 0, &hop);
	return hop.kind == IPSEC_CACHE_HOP_LOCAL;
}

static inline bool
is_to(const struct ipsec_cache_rt *rt, const struct ends *ends)
{
	return rt->family == ends->family && rt->daddr[0] == ends->daddr[0] &&
		rt->daddr[1] == ends->daddr[1];
}

/* The way of a set that has the SA, or -1. */
static inline int
find_in(const struct ipsec_in_set *set, uint64_t epoch, const struct ends *ends, __be32 spi,
	uint32_t mark)
{
	unsigned int i;

	for (i = 0; i < IPSEC_IN_WAYS; i++) {
		/* the epoch first: with an old one the SA may be gone */
		if (set->epoch[i] == epoch && set->spi[i] == spi && set->mark[i] == mark &&
			set->rt[i] != NULL && is_to(set->rt[i], ends))
			return (int)i;
	}
	return -1;
}

/* What the cache said last in a burst: packets of one SA come in trains. */
struct train {
	struct ipsec_cache_rt *rt; /* NULL: nothing yet */
	uint32_t mark;
};

/* The SA of a packet for us; NULL: none, and *ours says if it is for us at all. */
static inline struct ipsec_cache_rt *
find_sa(struct ipsec_cache_worker *w, const struct rte_mbuf *m, const struct ends *ends, __be32 spi,
	struct train *train, bool *ours)
{
	struct ipsec_cache_rt *rt = train->rt;
	struct ipsec_in_set *set = NULL;
	uint32_t mark = 0;
	int way;

	*ours = true;
	if (unlikely((w->uses & IPSEC_USES_SA_MARK) != 0))
		mark = packet_meta(m, w->ic->conf.meta_offset)->mark;
	if (likely(rt != NULL && rt->spi == spi && train->mark == mark && is_to(rt, ends))) {
		ipsec_add(&w->in_hits, 1);
		return rt;
	}
	if (likely(w->tables != NULL)) {
		set = &w->tables->in[ipsec_in_hash(w->tables, spi, ends->daddr) >>
			w->tables->in_shift];
		if (likely((way = find_in(set, w->epoch, ends, spi, mark)) >= 0)) {
			ipsec_add(&w->in_hits, 1);
			*train = (struct train){ set->rt[way], mark };
			return train->rt;
		}
	}
	ipsec_add(&w->in_misses, 1);
	if (!is_local(w, ends)) {
		*ours = false;
		return NULL;
	}
	rt = ipsec_sad_lookup(w->ic, spi, ends->family, (const uint8_t *)ends->daddr,
		packet_meta(m, w->ic->conf.meta_offset)->mark);
	/* as in cache.h: a mark that counts now was not asked for when the burst began */
	if (rt == NULL || set == NULL ||
		atomic_load_explicit(&w->ic->uses, memory_order_acquire) != w->uses)
		return rt;
	way = (int)(set->next++ % IPSEC_IN_WAYS);
	set->rt[way] = rt;
	set->spi[way] = spi;
	set->mark[way] = mark;
	set->epoch[way] = w->epoch;
	*train = (struct train){ rt, mark };
	return rt;
}

/* A valid packet of an SA in UDP came from elsewhere than its peer: written down for the tick. */
static void __rte_noinline
note_move(const struct ipsec_job *job)
{
	struct ipsec_cache_rt *rt = job->rt;
	uint32_t count = ipsec_load(&rt->moved);
	const uint64_t *saddr = job->saddr;

	if (count != 0 && saddr[0] == ipsec_load(&rt->moved_saddr[0]) &&
		saddr[1] == ipsec_load(&rt->moved_saddr[1]) &&
		job->sport == ipsec_load(&rt->moved_sport))
		return;
	ipsec_store(&rt->moved, count + 1);
	/* keeps the address behind the odd count: a reader that sees new words sees it too */
	atomic_thread_fence(memory_order_release);
	ipsec_store(&rt->moved_saddr[0], saddr[0]);
	ipsec_store(&rt->moved_saddr[1], saddr[1]);
	ipsec_store(&rt->moved_sport, job->sport);
	/* release: the even count vouches for all of it */
	atomic_store_explicit(&rt->moved, count + 2, memory_order_release);
}

static inline void
count_window(struct ipsec_cache_rt *rt, enum ipsec_window_verdict verdict)
{
	ipsec_add(verdict == IPSEC_WINDOW_SEEN ? &rt->bad_seen : &rt->bad_old, 1);
}

/* The number of a packet, if it may come. */
static inline bool
check_number(struct ipsec_cache_rt *rt, uint32_t low, uint64_t *seq)
{
	enum ipsec_window_verdict verdict = IPSEC_WINDOW_OLD;

	*seq = low;
	if ((rt->flags & IPSEC_RT_ESN) == 0 || ipsec_window_extend(&rt->window, low, seq))
		verdict = ipsec_window_check(&rt->window, rt->words, *seq);
	if (likely(verdict == IPSEC_WINDOW_OK))
		return true;
	count_window(rt, verdict);
	return false;
}

static inline bool
is_marked(const struct rte_mbuf *m)
{
	return unlikely((m->ol_flags & IPSEC_CACHE_RX_FLAGS) != 0);
}

/* The session that was looked up last, of a burst: packets of one come in trains. */
struct tag {
	uint64_t id; /* 0: none */
	struct ipsec_session *session;
};

static inline struct ipsec_session *
session_of(const struct ipsec_cache *ic, struct tag *last, struct rte_mbuf *m)
{
	uint64_t id = ipsec_inline_tag(m);

	if (unlikely(id != last->id))
		*last = (struct tag){ id, ipsec_session_get(ic, id) };
	return last->session;
}

/*
 * A job whose text a NIC has looked at, and decrypted where it is right: its check value then is
 * believed. IPSEC_CACHE_ERROR_MAX: so it is.
 */
static inline enum ipsec_cache_error
believe(const struct ipsec_cache *ic, struct tag *last, struct ipsec_job *job)
{
	struct ipsec_cache_rt *rt = job->rt;
	/* a tag may be an older packet's, where a driver writes none: of its port's sessions only
	 */
	const struct ipsec_session *by = session_of(ic, last, job->m), *s;

	/* No NIC was asked to, or it did so for another SA. */
	if (unlikely((ipsec_load(&rt->by) & IPSEC_BY_INLINE) == 0))
		return IPSEC_CACHE_ESP_DEVICE;
	if (unlikely(by != NULL && by->in && by->rt != rt)) {
		s = atomic_load_explicit(&rt->session, memory_order_acquire);
		if (s != NULL && by->port == s->port)
			return IPSEC_CACHE_ESP_DEVICE;
	}
	if (unlikely((job->m->ol_flags & RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED) != 0)) {
		ipsec_add(&rt->bad_icv, 1);
		return IPSEC_CACHE_ESP_ICV;
	}
	job->believed = true;
	return IPSEC_CACHE_ERROR_MAX;
}

/*
 * Makes a job of an ESP packet: its frame one that may be written, its number and lengths looked
 * at. IPSEC_CACHE_ERROR_MAX: it is one.
 */
static inline enum ipsec_cache_error
prepare(const struct ipsec_cache_worker *w, struct tag *last, struct ipsec_job *job,
	struct packet_vector *v)
{
	struct ipsec_cache_rt *rt = job->rt;
	struct rte_mbuf *m;
	uint32_t around = IPSEC_ESP_HEADER + rt->iv_len, low;
	uint32_t len = job->len, text = len - around - rt->icv_len;
	uint8_t *p;
	uint64_t iv = 0;

	/* ESP's own header, and a text that has a trailer at least and ends where words do */
	if (unlikely(len < around + rt->icv_len + IPSEC_PAD_ALIGN || text % IPSEC_PAD_ALIGN != 0))
		return IPSEC_CACHE_ESP_MALFORMED;
	if (unlikely((m = ipsec_mbuf_ensure(&v->pkts[job->at], job->off + HEAD_ROOM)) == NULL))
		return IPSEC_CACHE_ESP_NOBUF;
	p = rte_pktmbuf_mtod_offset(m, uint8_t *, job->off);
	memcpy(&low, p + 4, sizeof(low));
	if (unlikely(!check_number(rt, rte_be_to_cpu_32(low), &job->seq)))
		return IPSEC_CACHE_ESP_REPLAY;
	job->m = m;
	job->off += around;
	job->len = text;
	job->text = NULL;
	job->believed = false;
	if (likely(m->nb_segs == 1)) {
		job->text = p + around;
		job->icv = job->text + job->len;
	}
	if (is_marked(m))
		return believe(w->ic, last, job);
	if (likely(rt->iv_len != 0))
		memcpy(&iv, p + IPSEC_ESP_HEADER, sizeof(iv));
	ipsec_job_nonce(job, rt, p, iv);
	return IPSEC_CACHE_ERROR_MAX;
}

/* The packet as it came, for a crypto device that does ESP and has the window. */
static enum ipsec_cache_error
prepare_whole(struct ipsec_job *job, struct packet_vector *v)
{
	const struct packet_view *view = &v->views[job->at];
	struct rte_mbuf *m;

	if (job->len < IPSEC_ESP_HEADER + (uint32_t)job->rt->iv_len + (uint32_t)job->rt->icv_len)
		return IPSEC_CACHE_ESP_MALFORMED;
	if ((m = ipsec_mbuf_ensure(&v->pkts[job->at], job->off + HEAD_ROOM)) == NULL)
		return IPSEC_CACHE_ESP_NOBUF;
	ipsec_mbuf_cut(m, view->l3_end);
	rte_pktmbuf_adj(m, view->l3_off);
	job->m = m;
	return IPSEC_CACHE_ERROR_MAX;
}

/*
 * prepare() of job n, of an SA that a device has a session for, or had a moment ago. What is a
 * crypto device's to open is added to *apart, with w->sessions[n].
 */
static enum ipsec_cache_error __rte_noinline
prepare_apart(struct ipsec_cache_worker *w, struct tag *last, unsigned int n,
	struct packet_vector *v, uint64_t *apart)
{
	struct ipsec_job *job = &w->jobs[n];
	struct ipsec_session *s = atomic_load_explicit(&job->rt->session, memory_order_acquire);
	enum ipsec_cache_error error;
	bool theirs = s != NULL && ipsec_session_is_lookaside(s) && ipsec_lookaside_usable(w, s) &&
		!is_marked(v->pkts[job->at]);

	error = theirs && ipsec_session_is_protocol(s) ? prepare_whole(job, v)
						       : prepare(w, last, job, v);
	if (error != IPSEC_CACHE_ERROR_MAX)
		return error;
	if (theirs) {
		w->sessions[n] = s;
		*apart |= UINT64_C(1) << n;
	}
	return IPSEC_CACHE_ERROR_MAX;
}

/* The check value that came with a packet is the right one; how it differs takes the same time. */
static inline bool
icv_right(const struct ipsec_job *job)
{
	uint8_t buf[IPSEC_ICV_MAX], differ = 0;
	const uint8_t *icv = job->icv;
	uint64_t a[2], b[2];
	unsigned int i;

	if (job->rt->icv_len == 0 || job->believed)
		return true;
	if (unlikely(job->text == NULL))
		icv = packet_read(job->m, job->off + job->len, job->rt->icv_len, buf);
	if (likely(job->rt->icv_len == IPSEC_ICV_MAX)) {
		memcpy(a, icv, sizeof(a));
		memcpy(b, job->tag, sizeof(b));
		return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
	}
	for (i = 0; i < job->rt->icv_len; i++)
		differ |= icv[i] ^ job->tag[i];
	return differ == 0;
}

/* What a decrypted text is. */
struct inner {
	uint32_t len; /* bytes of the inner packet */
	uint8_t proto;
};

/* Padding (RFC 4303, 2.4): 1, 2, 3 ... and how many there are. */
static inline bool
check_padding(const struct ipsec_job *job, struct inner *in)
{
	uint8_t buf[PAD_MAX + 2], last[2];
	const uint8_t *p;
	uint32_t pad, i;

	if (likely(job->text != NULL))
		p = job->text + job->len - 2;
	else
		p = packet_read(job->m, job->off + job->len - 2, 2, last);
	pad = p[0];
	in->proto = p[1];
	if (unlikely(pad + 2 > job->len))
		return false;
	in->len = job->len - 2 - pad;
	if (likely(job->text != NULL))
		p = job->text + in->len;
	else
		p = packet_read(job->m, job->off + in->len, pad, buf);
	for (i = 0; i < pad; i++)
		if (p[i] != i + 1)
			return false;
	return true;
}

/* The inner packet's own length, which leaves TFC padding out; false: it is no such packet. */
static inline bool
check_inner(const uint8_t *ip, struct inner *in)
{
	uint16_t total;
	uint32_t hlen;

	if (likely(in->proto == IPPROTO_IPIP)) {
		if (in->len < IPSEC_IPV4_HEADER || ip[0] >> 4 != 4)
			return false;
		memcpy(&total, ip + 2, sizeof(total));
		total = rte_be_to_cpu_16(total);
		hlen = (ip[0] & 0xfu) * 4;
		if (hlen < IPSEC_IPV4_HEADER || total < hlen || total > in->len)
			return false;
		in->len = total;
		return true;
	}
	if (in->proto != IPPROTO_IPV6 || in->len < IPSEC_IPV6_HEADER || ip[0] >> 4 != 6)
		return false;
	memcpy(&total, ip + 4, sizeof(total));
	if (IPSEC_IPV6_HEADER + (uint32_t)rte_be_to_cpu_16(total) > in->len)
		return false;
	in->len = IPSEC_IPV6_HEADER + (uint32_t)rte_be_to_cpu_16(total);
	return true;
}

/* A new TOS, and with IPv4 the checksum that goes with it (RFC 1624, eqn. 3). */
static void
set_tos(uint8_t *ip, bool v4, uint8_t tos)
{
	uint32_t sum;
	uint16_t check;

	if (!v4) {
		ip[0] = (uint8_t)(6 << 4 | tos >> 4);
		ip[1] = (uint8_t)(tos << 4 | (ip[1] & 0xf));
		return;
	}
	memcpy(&check, ip + 10, sizeof(check));
	sum = (uint16_t)~check + (uint32_t)(uint16_t)~rte_cpu_to_be_16(ip[1]) +
		rte_cpu_to_be_16(tos);
	sum = (sum & 0xffff) + (sum >> 16);
	check = (uint16_t) ~(sum + (sum >> 16));
	memcpy(ip + 10, &check, sizeof(check));
	ip[1] = tos;
}

/* What the outer header says of congestion, and with DECAP_DSCP of service. False: to be dropped.
 */
static inline bool
decapsulate_tos(const struct ipsec_cache_rt *rt, uint8_t *ip, bool v4, uint8_t outer)
{
	uint8_t inner = v4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4), tos = inner, ecn;

	if (likely((rt->tos_mask & IPSEC_ECN_MASK) != 0)) {
		if (unlikely((ecn = ipsec_ecn_decapsulate(inner, outer)) == IPSEC_ECN_DROP))
			return false;
		tos = (uint8_t)((tos & IPSEC_DSCP_MASK) | ecn);
	}
	if ((rt->flags & IPSEC_RT_DSCP_IN) != 0)
		tos = (uint8_t)((tos & IPSEC_ECN_MASK) | (outer & IPSEC_DSCP_MASK));
	if (unlikely(tos != inner))
		set_tos(ip, v4, tos);
	return true;
}

/* Makes the inner packet the frame's. */
static inline void
strip(struct ipsec_cache_worker *w, const struct ipsec_job *job, const struct inner *in, bool v4)
{
	struct rte_mbuf *m = job->m;
	uint32_t from = job->off - RTE_ETHER_HDR_LEN;

	if (likely(m->nb_segs == 1)) {
		m->data_off = (uint16_t)(m->data_off + from);
		m->data_len = (uint16_t)(RTE_ETHER_HDR_LEN + in->len);
		m->pkt_len = m->data_len;
	} else {
		rte_pktmbuf_adj(m, (uint16_t)from);
		ipsec_mbuf_cut(m, RTE_ETHER_HDR_LEN + in->len);
	}
	ipsec_set_type(m, v4);
	m->packet_type = 0;
	m->ol_flags &= ~(uint64_t)OUTER_FLAGS;
	ipsec_set_mark(w, job->rt, m);
}

/* What is inside, from job->off on, becomes the frame. */
static inline enum ipsec_cache_error
unwrap(struct ipsec_cache_worker *w, const struct ipsec_job *job, struct inner *in, bool tos)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(job->m, uint8_t *, job->off);
	bool v4;

	if (unlikely(!check_inner(ip, in)))
		return IPSEC_CACHE_ESP_INNER;
	v4 = in->proto == IPPROTO_IPIP;
	if (tos && unlikely(!decapsulate_tos(job->rt, ip, v4, job->outer_tos)))
		return IPSEC_CACHE_ESP_ECN;
	strip(w, job, in, v4);
	return IPSEC_CACHE_ERROR_MAX;
}

/* Its window is in a NIC, which let it through: nobody can
 * say whether it came before. */
static bool __rte_noinline
stray(const struct ipsec_cache_rt *rt)
{
	struct ipsec_session *s = atomic_load_explicit(&rt->session, memory_order_acquire);

	if (s == NULL || rt->window.size == 0)
		return false;
	ipsec_add(&s->strays, 1);
	return true;
}

/* Packets of one SA that follow each other. What they count in it is written when they end. */
struct run {
	struct ipsec_cache_rt *rt;
	uint64_t packets, bytes;
	bool limited; /* each counts at once */
	bool odd; /* or its window is not here */
};

static inline void
run_end(const struct run *run, uint32_t seconds)
{
	if (run->packets != 0)
		ipsec_rt_count(run->rt, run->packets, run->bytes, seconds);
}

static inline void
run_begin(struct run *run, struct ipsec_cache_rt *rt)
{
	run->rt = rt;
	run->packets = run->bytes = 0;
	run->limited = ipsec_load(&rt->limited) || ipsec_load(&rt->expired);
	run->odd = run->limited || (ipsec_load(&rt->by) & IPSEC_BY_PROTOCOL) != 0;
}

static inline void
run_count(struct run *run, uint32_t len, uint32_t seconds)
{
	if (unlikely(run->limited)) {
		ipsec_rt_count(run->rt, 1, len, seconds);
		return;
	}
	run->packets++;
	run->bytes += len;
}

/* Number, padding, and what is inside, of a text of the run whose check value is right. */
static __rte_always_inline enum ipsec_cache_error
finish_right(struct ipsec_cache_worker *w, struct run *run, struct ipsec_job *job)
{
	struct ipsec_cache_rt *rt = job->rt;
	enum ipsec_window_verdict verdict;
	struct inner in;

	if (unlikely(run->odd) && (ipsec_load(&rt->by) & IPSEC_BY_PROTOCOL) != 0 && stray(rt))
		return IPSEC_CACHE_ESP_DEVICE;
	/* packets of this burst may have been marked since the first look (D7) */
	verdict = ipsec_window_check(&rt->window, rt->words, job->seq);
	if (unlikely(verdict != IPSEC_WINDOW_OK)) {
		count_window(rt, verdict);
		return IPSEC_CACHE_ESP_REPLAY;
	}
	if (unlikely(run->limited) && ipsec_rt_over(rt))
		return IPSEC_CACHE_ESP_EXPIRED;
	ipsec_window_mark(&rt->window, rt->words, job->seq);
	if (unlikely(job->moved))
		note_move(job);
	if (unlikely(!check_padding(job, &in)))
		return IPSEC_CACHE_ESP_PAD;
	run_count(run, in.len, w->seconds);
	if (unlikely(in.proto == IPPROTO_NONE))
		return IPSEC_CACHE_ESP_DUMMY;
	return unwrap(w, job, &in, true);
}

static __rte_always_inline enum ipsec_cache_error
finish(struct ipsec_cache_worker *w, struct run *run, struct ipsec_job *job)
{
	if (job->rt != run->rt) {
		run_end(run, w->seconds);
		run_begin(run, job->rt);
	}
	if (unlikely(!icv_right(job))) {
		ipsec_add(&job->rt->bad_icv, 1);
		return IPSEC_CACHE_ESP_ICV;
	}
	return finish_right(w, run, job);
}

/* --- what a NIC that does ESP by itself has opened --- */

/* Its numbers are the NIC's; each that comes counts as the next, so that fewer come again if the
 * CPU has to go on (inline protocol in doc/ipsec_cache.md). */
static void
count_whole(struct ipsec_cache_worker *w, struct ipsec_cache_rt *rt, uint32_t len)
{
	ipsec_window_mark(&rt->window, rt->words, ipsec_window_top(&rt->window) + 1);
	ipsec_rt_count(rt, 1, len, w->seconds);
}

/* The packet that was inside lies at job->off, behind room for an Ethernet header. */
static enum ipsec_cache_error
open_whole(struct ipsec_cache_worker *w, struct ipsec_job *job)
{
	struct inner in = { .len = job->m->pkt_len - job->off };

	if (ipsec_rt_over(job->rt))
		return IPSEC_CACHE_ESP_EXPIRED;
	if (job->m->data_len < job->off + IPSEC_IPV4_HEADER)
		return IPSEC_CACHE_ESP_INNER;
	in.proto = *rte_pktmbuf_mtod_offset(job->m, uint8_t *, job->off) >> 4 == 4 ? IPPROTO_IPIP
										   : IPPROTO_IPV6;
	/* counted as where a window is here: what an SA carried, good or not */
	count_whole(w, job->rt, in.len);
	return unwrap(w, job, &in, false);
}

static enum ipsec_cache_error
take_whole(struct ipsec_cache_worker *w, struct packet_vector *v, unsigned int i,
	struct ipsec_cache_rt *rt)
{
	const struct packet_view *view = &v->views[i];
	struct ipsec_job *job = &w->jobs[0];
	enum ipsec_cache_error error;

	if ((v->pkts[i]->ol_flags & RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED) != 0)
		return IPSEC_CACHE_ESP_DEVICE;
	job->rt = rt;
	/* or its type is what it was outside */
	job->off = (view->flags & PACKET_F_L3) != 0 ? view->l3_off : RTE_ETHER_HDR_LEN;
	if ((job->m = ipsec_mbuf_ensure(&v->pkts[i], job->off + HEAD_ROOM)) == NULL)
		return IPSEC_CACHE_ESP_NOBUF;
	if ((error = open_whole(w, job)) == IPSEC_CACHE_ERROR_MAX)
		packet_view_parse(job->m, &v->views[i]);
	return error;
}

/*
 * Packets of `mask` that a NIC marked, and that are not ESP any more. Returns those; the others are
 * to be opened here.
 */
static uint64_t __rte_noinline
take_all_whole(struct ipsec_cache_worker *w, struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_result *result)
{
	struct tag last = { 0 };
	uint32_t iif;
	enum ipsec_cache_error error;
	uint64_t taken = 0, home;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		struct rte_mbuf *m = v->pkts[i];
		struct ipsec_session *s;

		if ((m->ol_flags & IPSEC_CACHE_RX_FLAGS) == 0)
			continue;
		s = session_of(w->ic, &last, m);
		if (s == NULL || s->kind != IPSEC_SESSION_INLINE_PROTOCOL || !s->in)
			continue;
		/* a tag that another port's driver left in the mbuf is none */
		iif = packet_meta(m, w->ic->conf.meta_offset)->iif;
		if (iif != 0 && iif != s->ifindex)
			continue;
		taken |= UINT64_C(1) << i;
		if ((home = ipsec_worker_claim(w, s->rt)) != w->home) {
			result->hand_over |= UINT64_C(1) << i;
			result->home[i] = (uint8_t)home;
			continue;
		}
		if ((error = take_whole(w, v, i, s->rt)) != IPSEC_CACHE_ERROR_MAX)
			ipsec_worker_fail(w, result, i, error);
		result->rt[i] = s->rt;
	}
	return taken;
}

/* A NIC opened it, and it is no ESP of ours: by a session that has gone, or it lies. */
static void __rte_noinline
drop_marked(struct ipsec_cache_worker *w, const struct packet_vector *v,
	struct ipsec_cache_result *result)
{
	uint64_t others = result->not_ours;
	unsigned int i;

	packet_mask_for_each (i, others) {
		if (!is_marked(v->pkts[i]))
			continue;
		result->not_ours &= ~(UINT64_C(1) << i);
		ipsec_worker_fail(w, result, i, IPSEC_CACHE_ESP_DEVICE);
	}
}

/* For us it is an error, to others it is none of our business. */
static void __rte_noinline
fail_if_ours(struct ipsec_cache_worker *w, const struct packet_vector *v,
	struct ipsec_cache_result *result, unsigned int i, enum ipsec_cache_error error)
{
	struct ends ends;

	look_outside(v->pkts[i], &v->views[i], &ends);
	if (is_local(w, &ends))
		ipsec_worker_fail(w, result, i, error);
	else
		result->not_ours |= UINT64_C(1) << i;
}

/* Finds the SA of ESP that a job says where it lies. False: there is no job for it. */
static inline bool
begin_job(struct ipsec_cache_worker *w, const struct packet_vector *v, struct ipsec_job *job,
	struct train *train, struct ipsec_cache_result *result)
{
	const struct rte_mbuf *m = v->pkts[job->at];
	const struct packet_view *view = &v->views[job->at];
	struct ipsec_cache_rt *rt;
	const uint8_t *p;
	struct ends ends;
	uint8_t buf[4];
	__be32 spi;
	bool ours;

	if (job->len < IPSEC_ESP_HEADER ||
		(p = packet_read(m, job->off, sizeof(buf), buf)) == NULL) {
		fail_if_ours(w, v, result, job->at, IPSEC_CACHE_ESP_MALFORMED);
		return false;
	}
	memcpy(&spi, p, sizeof(spi));
	look_outside(m, view, &ends);
	if (unlikely((rt = find_sa(w, m, &ends, spi, train, &ours)) == NULL)) {
		if (ours)
			ipsec_worker_fail(w, result, job->at, IPSEC_CACHE_ESP_NO_SA);
		else
			result->not_ours |= UINT64_C(1) << job->at;
		return false;
	}
	if (rt != w->fetched) {
		rte_prefetch0(&rt->oseq);
		ipsec_prefetch_key(rt);
		w->fetched = rt;
	}
	job->rt = rt;
	job->outer_tos = ends.tos;
	job->moved = false;
	if (unlikely(job->encap != 0)) {
		job->moved = job->sport != rt->sport || ends.saddr[0] != rt->saddr[0] ||
			ends.saddr[1] != rt->saddr[1];
		job->saddr[0] = ends.saddr[0];
		job->saddr[1] = ends.saddr[1];
	}
	return true;
}

/* Finds what is ESP for us, and by which SA. Returns how many jobs that is. */
static unsigned int
sort_out(struct ipsec_cache_worker *w, const struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_result *result)
{
	enum ipsec_cache_error error = IPSEC_CACHE_ESP_MALFORMED;
	struct train train = { 0 };
	unsigned int i, n = 0;

	packet_mask_for_each (i, mask) {
		struct ipsec_job *job = &w->jobs[n];

		switch (look(v->pkts[i], &v->views[i], job, &error)) {
		case KIND_ESP:
			job->at = (uint8_t)i;
			n += begin_job(w, v, job, &train, result);
			break;
		case KIND_DROP:
			fail_if_ours(w, v, result, i, error);
			break;
		case KIND_OTHER:
			result->not_ours |= UINT64_C(1) << i;
			break;
		}
	}
	return n;
}

/*
 * Makes the jobs ready for their ciphers. Those that are none leave; returns how many stay; *apart:
 * those of them that crypto devices are to decrypt by w->sessions[].
 */
static unsigned int
prepare_all(struct ipsec_cache_worker *w, struct packet_vector *v, unsigned int n,
	struct ipsec_cache_result *result, uint64_t *apart)
{
	const struct ipsec_cache_rt *last = NULL;
	struct tag tag = { 0 };
	enum ipsec_cache_error error;
	unsigned int i, kept = 0;
	bool over = false, beside = false;
	uint64_t home = 0;

	*apart = 0;
	for (i = 0; i < n; i++) {
		struct ipsec_job *job = &w->jobs[kept];

		if (unlikely(kept != i))
			*job = w->jobs[i];
		if (job->rt != last) {
			last = job->rt;
			home = ipsec_worker_claim(w, job->rt);
			if (likely(home == w->home))
				rte_prefetch0(last->words);
			over = ipsec_rt_over(last);
			beside = (ipsec_load(&last->by) & IPSEC_BY_LOOKASIDE) != 0;
		}
		if (unlikely(home != w->home)) {
			result->hand_over |= UINT64_C(1) << job->at;
			result->home[job->at] = (uint8_t)home;
			continue;
		}
		if (unlikely(over))
			error = IPSEC_CACHE_ESP_EXPIRED;
		else if (unlikely(last->encap != job->encap))
			error = IPSEC_CACHE_ESP_ENCAP;
		else if (likely(!beside))
			error = prepare(w, &tag, job, v);
		else
			error = prepare_apart(w, &tag, kept, v, apart);
		if (unlikely(error != IPSEC_CACHE_ERROR_MAX)) {
			ipsec_worker_fail(w, result, job->at, error);
			continue;
		}
		kept++;
	}
	return kept;
}

static inline void
decrypt(struct ipsec_cache_worker *w, struct ipsec_job *job)
{
	if (unlikely(job->believed))
		return;
	if (likely(job->text != NULL))
		job->rt->decrypt(job->rt->key, &w->gcm, job->text, job->text, job->len, job->nonce,
			job->aad, job->aad_len, job->tag, job->rt->icv_len);
	else
		ipsec_job_chain(w, job, false);
}

/*
 * Decrypts but those of `apart`. What crypto devices are to decrypt is put there; the others stay:
 * returns how many.
 */
static unsigned int __rte_noinline
share_out(struct ipsec_cache_worker *w, unsigned int n, uint64_t apart,
	struct ipsec_cache_result *result)
{
	unsigned int i, kept = 0;

	for (i = 0; i < n; i++) {
		struct ipsec_job *job = &w->jobs[i];
		struct ipsec_session *s;

		if ((apart >> i & 1) == 0) {
			decrypt(w, job);
			if (kept != i)
				w->jobs[kept] = *job;
			kept++;
			continue;
		}
		s = w->sessions[i];
		if (likely(ipsec_session_is_protocol(s) ? ipsec_lookaside_whole(w, job, s, false)
							: ipsec_lookaside_open(w, job, s)))
			result->pending |= UINT64_C(1) << job->at;
		else
			ipsec_worker_fail(w, result, job->at, IPSEC_CACHE_ESP_DEVICE_FULL);
	}
	ipsec_lookaside_flush(w);
	return kept;
}

void
ipsec_cache_open(struct ipsec_cache_worker *w, struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_result *result)
{
	enum ipsec_cache_error error;
	uint64_t marked = 0, taken = 0, apart;
	struct run run = { 0 };
	struct ipsec_job *job;
	unsigned int i, n;

	result->drop = result->hand_over = result->not_ours = result->pending = 0;
	packet_vector_parse(v);
	packet_mask_for_each (i, mask)
		marked |= v->pkts[i]->ol_flags;
	if (unlikely((marked & IPSEC_CACHE_RX_FLAGS) != 0))
		taken = take_all_whole(w, v, mask, result);
	n = sort_out(w, v, mask & ~taken, result);
	n = prepare_all(w, v, n, result, &apart);
	if (likely(apart == 0)) {
		for (job = w->jobs; job < w->jobs + n; job++)
			decrypt(w, job);
	} else {
		n = share_out(w, n, apart, result);
	}
	for (job = w->jobs; job < w->jobs + n; job++) {
		if (unlikely((error = finish(w, &run, job)) != IPSEC_CACHE_ERROR_MAX)) {
			ipsec_worker_fail(w, result, job->at, error);
			continue;
		}
		result->rt[job->at] = job->rt;
		packet_view_parse(job->m, &v->views[job->at]);
	}
	run_end(&run, w->seconds);
	if (unlikely((marked & IPSEC_CACHE_RX_FLAGS) != 0))
		drop_marked(w, v, result);
	result->done =
		mask & ~(result->drop | result->hand_over | result->not_ours | result->pending);
}

/* --- what crypto devices have opened --- */

enum ipsec_cache_error
ipsec_open_finish(struct ipsec_cache_worker *w, const struct ipsec_slot *slot)
{
	struct ipsec_job *job = &w->jobs[0];
	enum ipsec_cache_error error;
	struct run run;

	job->rt = slot->rt;
	job->m = slot->m;
	if (unlikely(ipsec_session_is_protocol(slot->session))) {
		job->off = RTE_ETHER_HDR_LEN;
		if (rte_pktmbuf_prepend(job->m, RTE_ETHER_HDR_LEN) == NULL)
			return IPSEC_CACHE_ESP_NOBUF;
		return open_whole(w, job);
	}
	job->off = slot->off;
	job->len = slot->len;
	job->seq = slot->seq;
	job->outer_tos = slot->outer_tos;
	job->moved = slot->moved;
	job->sport = slot->sport;
	job->saddr[0] = slot->saddr[0];
	job->saddr[1] = slot->saddr[1];
	job->text = NULL;
	if (likely(job->m->nb_segs == 1)) {
		job->text = rte_pktmbuf_mtod_offset(job->m, uint8_t *, job->off);
		job->icv = job->text + job->len;
	}
	run_begin(&run, job->rt);
	error = finish_right(w, &run, job);
	run_end(&run, w->seconds);
	return error;
}
