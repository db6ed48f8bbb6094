/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The decisions of a burst, from the worker's cache where they are there. */

#include <string.h>

#include <rte_prefetch.h>
#include <rte_vect.h>

#include "ipsec_cache/flow.h"
#include "ipsec_cache/worker.h"

#define EVICT_ONE_IN 8 /* misses, where a set is full of valid entries */

static const struct ipsec_cache_decision decision_route = { .action = IPSEC_CACHE_ROUTE };
static const struct ipsec_cache_decision decision_unknown = {
	.action = IPSEC_CACHE_DROP,
	.error = IPSEC_CACHE_POLICY_FRAGMENT,
};

/* Ways of a set whose tag it is, as a mask. */
static inline unsigned int
ways_of(const struct ipsec_tags *tags, uint16_t tag)
{
#ifdef RTE_ARCH_X86
	__m128i same = _mm_cmpeq_epi16(
		_mm_load_si128((const __m128i *)(const void *)tags), _mm_set1_epi16((short)tag));

	return (unsigned int)_mm_movemask_epi8(_mm_packs_epi16(same, _mm_setzero_si128()));
#else
	unsigned int i, ways = 0;

	for (i = 0; i < IPSEC_TAGS; i++)
		ways |= (unsigned int)(tags->tag[i] == tag) << i;
	return ways;
#endif
}

/* The entry of a flow, stale ones too. */
static inline struct ipsec_entry *
find(struct ipsec_tables *t, const struct ipsec_flow *flow, uint64_t hash)
{
	unsigned int set = ipsec_hash_set(t, hash);
	unsigned int ways = ways_of(&t->tags[set], ipsec_hash_tag(hash));

	for (; ways != 0; ways &= ways - 1) {
		struct ipsec_entry *e =
			&t->entries[set * IPSEC_TAGS + (unsigned int)__builtin_ctz(ways)];

		if (likely(ipsec_flow_same(&e->flow, flow)))
			return e;
	}
	return NULL;
}

static uint32_t
next_random(struct ipsec_cache_worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 17;
	w->random ^= w->random << 5;
	return w->random;
}

/*
 * Where a new entry goes: a way that is free or stale. Where all are valid one of them gives way to
 * one miss in eight, whichever: so flows that go round and round and are more than the cache holds
 * leave most of it alone and hit what is there, where the oldest entry would always be the next to
 * be asked for (E7), and a flow that stays gets in soon.
 */
static struct ipsec_entry *
victim(struct ipsec_cache_worker *w, uint64_t hash)
{
	struct ipsec_tables *t = w->tables;
	unsigned int set = ipsec_hash_set(t, hash), way;
	struct ipsec_entry *entries = &t->entries[set * IPSEC_TAGS];
	uint32_t dice;

	for (way = 0; way < IPSEC_TAGS; way++)
		if (t->tags[set].tag[way] == 0 || entries[way].epoch != w->epoch)
			break;
	if (way == IPSEC_TAGS) {
		dice = next_random(w);
		if (dice % EVICT_ONE_IN != 0)
			return NULL;
		way = dice / EVICT_ONE_IN % IPSEC_TAGS;
		ipsec_add(&w->evictions, 1);
	}
	t->tags[set].tag[way] = ipsec_hash_tag(hash);
	return &entries[way];
}

/* A packet and what is asked about it. */
struct question {
	const struct rte_mbuf *m;
	const struct packet_view *view;
	const struct ipsec_cache_rt *by;
	struct ipsec_flow_from from;
};

static inline struct question
ask(const struct ipsec_cache_worker *w, const struct packet_vector *v, unsigned int i,
	struct ipsec_cache_rt *const *by, uint32_t in_ifindex)
{
	struct question q = {
		.m = v->pkts[i],
		.view = &v->views[i],
		.by = by != NULL ? by[i] : NULL,
		.from.in_ifindex = in_ifindex,
	};

	if (q.by != NULL)
		q.from.by = q.by->serial;
	if ((w->uses & IPSEC_USES_MARK) != 0)
		q.from.mark = packet_meta(q.m, w->ic->conf.meta_offset)->mark;
	return q;
}

/* Decides by all that is known of the packet; its mark too, which `uses` may not have asked for. */
static void
decide_slowly(struct ipsec_cache_worker *w, struct question *q, struct ipsec_cache_decision *d)
{
	struct ipsec_flow flow;

	q->from.mark = packet_meta(q->m, w->ic->conf.meta_offset)->mark;
	ipsec_flow_fill(&flow, q->m, q->view, &q->from, UINT32_MAX);
	ipsec_decide(w->ic, w->id, &flow, q->by, d);
}

/* A flow that was not found, or only with an older epoch; `d` is decided and kept. */
static void __rte_noinline
miss(struct ipsec_cache_worker *w, struct question *q, const struct ipsec_flow *flow, uint64_t hash,
	struct ipsec_entry *stale, struct ipsec_cache_decision *d)
{
	struct ipsec_entry *e;

	ipsec_add(&w->misses, 1);
	decide_slowly(w, q, d);
	/* acquire: not older than what the look-up saw, which was published after it */
	if (atomic_load_explicit(&w->ic->uses, memory_order_acquire) != w->uses)
		return;
	if (stale != NULL)
		ipsec_add(&w->stale, 1);
	if ((e = stale != NULL ? stale : victim(w, hash)) == NULL)
		return;
	e->flow = *flow;
	e->decision = *d;
	e->epoch = w->epoch;
}

static inline void
count_drop(struct ipsec_cache_worker *w, const struct ipsec_cache_decision *d)
{
	if (unlikely(d->action == IPSEC_CACHE_DROP))
		ipsec_add(&w->errors[d->error], 1);
}

/* Two passes: flows, hashes and prefetches of all packets, then entries. */
static void
decide_cached(struct ipsec_cache_worker *w, const struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_rt *const *by, uint32_t in_ifindex,
	const struct ipsec_cache_decision **decisions)
{
	struct ipsec_tables *t = w->tables;
	struct ipsec_entry *e;
	struct question q;
	uint64_t hits = 0;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		q = ask(w, v, i, by, in_ifindex);
		if (unlikely(!ipsec_flow_fill(&w->flows[i], q.m, q.view, &q.from, w->uses))) {
			decisions[i] = &decision_unknown;
			count_drop(w, &decision_unknown);
			mask &= ~(UINT64_C(1) << i);
			continue;
		}
		w->hashes[i] = ipsec_flow_hash(t, &w->flows[i]);
		rte_prefetch0(&t->tags[ipsec_hash_set(t, w->hashes[i])]);
	}
	packet_mask_for_each (i, mask) {
		unsigned int set = ipsec_hash_set(t, w->hashes[i]);
		unsigned int ways = ways_of(&t->tags[set], ipsec_hash_tag(w->hashes[i]));

		e = &t->entries[set * IPSEC_TAGS +
			(ways != 0 ? (unsigned int)__builtin_ctz(ways) : 0)];
		rte_prefetch0(e);
		rte_prefetch0(&e->decision);
	}
	packet_mask_for_each (i, mask) {
		struct ipsec_cache_decision *d =
			&w->decisions[w->n_decisions++ % IPSEC_CACHE_DECISIONS_MAX];

		decisions[i] = d;
		e = find(t, &w->flows[i], w->hashes[i]);
		if (likely(e != NULL && e->epoch == w->epoch)) {
			*d = e->decision;
			hits++;
		} else {
			q = ask(w, v, i, by, in_ifindex);
			miss(w, &q, &w->flows[i], w->hashes[i], e, d);
		}
		count_drop(w, d);
	}
	ipsec_add(&w->hits, hits);
}

void
ipsec_cache_decide(struct ipsec_cache_worker *w, const struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_rt *const *by, uint32_t in_ifindex,
	const struct ipsec_cache_decision **decisions)
{
	struct ipsec_flow flow;
	struct question q;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		if (unlikely((v->views[i].flags & PACKET_F_L3) == 0)) {
			decisions[i] = &decision_route; /* no IP: none of our business */
			mask &= ~(UINT64_C(1) << i);
		}
	}
	if (likely(w->tables != NULL)) {
		decide_cached(w, v, mask, by, in_ifindex, decisions);
		return;
	}
	packet_mask_for_each (i, mask) {
		struct ipsec_cache_decision *d =
			&w->decisions[w->n_decisions++ % IPSEC_CACHE_DECISIONS_MAX];

		q = ask(w, v, i, by, in_ifindex);
		if (!ipsec_flow_fill(&flow, q.m, q.view, &q.from, 0)) {
			decisions[i] = &decision_unknown;
			count_drop(w, &decision_unknown);
			continue;
		}
		decisions[i] = d;
		decide_slowly(w, &q, d);
		count_drop(w, d);
	}
}
