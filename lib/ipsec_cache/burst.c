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
find(struct ipsec_tables *t, const uint64_t *flow, uint64_t hash)
{
	unsigned int set = ipsec_hash_set(t, hash);
	unsigned int ways = ways_of(&t->tags[set], ipsec_hash_tag(hash));

	for (; ways != 0; ways &= ways - 1) {
		struct ipsec_entry *e =
			&t->entries[set * IPSEC_TAGS + (unsigned int)__builtin_ctz(ways)];

		if (likely(ipsec_flow_same(e->flow, flow)))
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
 * Where a new entry goes: its first way, or another that is free or stale. Where all are valid one
 * of them gives way to one miss in eight, whichever: so flows that go round and round and are more
 * than the cache holds leave most of it alone and hit what is there, where the oldest entry would
 * always be the next to be asked for (E7), and a flow that stays gets in soon.
 */
static struct ipsec_entry *
victim(struct ipsec_cache_worker *w, uint64_t hash)
{
	struct ipsec_tables *t = w->tables;
	unsigned int set = ipsec_hash_set(t, hash), first = ipsec_hash_way(hash), n, way = first;
	struct ipsec_entry *entries = &t->entries[set * IPSEC_TAGS];
	uint32_t dice;

	for (n = 0; n < IPSEC_TAGS; n++) {
		way = (first + n) % IPSEC_TAGS;
		if (t->tags[set].tag[way] == 0 || entries[way].epoch != w->epoch)
			break;
	}
	if (n == IPSEC_TAGS) {
		dice = next_random(w);
		if (dice % EVICT_ONE_IN != 0)
			return NULL;
		way = dice / EVICT_ONE_IN % IPSEC_TAGS;
		ipsec_add(&w->evictions, 1);
	}
	t->tags[set].tag[way] = ipsec_hash_tag(hash);
	return &entries[way];
}

/* A burst that is being decided. */
struct question {
	const struct packet_vector *v;
	struct ipsec_cache_rt *const *by; /* or NULL */
	uint32_t in_ifindex;
};

/* What a packet's view and bytes do not say of it: the SA that it came by, its mark. */
static inline uint64_t
by_of(const struct question *q, unsigned int i)
{
	return q->by[i] != NULL ? q->by[i]->serial : 0;
}

static inline uint32_t
mark_of(const struct ipsec_cache_worker *w, const struct question *q, unsigned int i)
{
	return packet_meta(q->v->pkts[i], w->ic->conf.meta_offset)->mark;
}

/* Decides by all that is known of a packet, whatever `uses` asks for. */
static void
decide_slowly(struct ipsec_cache_worker *w, const struct question *q, unsigned int i,
	struct ipsec_cache_decision *d)
{
	struct ipsec_flow_from from = {
		.by = q->by != NULL ? by_of(q, i) : 0,
		.mark = mark_of(w, q, i),
		.in_ifindex = q->in_ifindex,
	};
	struct ipsec_flow flow;

	if (ipsec_flow_fill(&flow, q->v->pkts[i], &q->v->views[i], &from, UINT32_MAX))
		ipsec_decide(w->ic, w->id, &flow, q->by != NULL ? q->by[i] : NULL, d);
	else
		*d = decision_unknown;
}

/*
 * Packet i's flow was not found, or only with an older epoch: it is decided, and kept. False:
 * another packet may only seem to have the same flow.
 */
static bool __rte_noinline
miss(struct ipsec_cache_worker *w, const struct question *q, unsigned int i,
	struct ipsec_entry *stale, struct ipsec_cache_decision *d)
{
	struct ipsec_entry *e;

	ipsec_add(&w->misses, 1);
	decide_slowly(w, q, i, d);
	/* acquire: not older than what the look-up saw, which was published after it */
	if (atomic_load_explicit(&w->ic->uses, memory_order_acquire) != w->uses)
		return false;
	if (stale != NULL)
		ipsec_add(&w->stale, 1);
	if ((e = stale != NULL ? stale : victim(w, w->hashes[i])) == NULL)
		return true;
	memcpy(e->flow, w->flows[i], sizeof(e->flow));
	e->decision = *d;
	e->epoch = w->epoch;
	return true;
}

static inline struct ipsec_cache_decision *
next_decision(struct ipsec_cache_worker *w)
{
	return &w->decisions[w->n_decisions++ % IPSEC_CACHE_DECISIONS_MAX];
}

static inline void
count_drop(struct ipsec_cache_worker *w, const struct ipsec_cache_decision *d, unsigned int n)
{
	if (unlikely(d->action == IPSEC_CACHE_DROP))
		ipsec_add(&w->errors[d->error], n);
}

/* Packets of a burst by what is known of their flows. */
struct flows {
	uint64_t look; /* to be looked up */
	uint64_t same; /* as the flow of the one looked up before them, as in a train */
	uint64_t unknown; /* a chain of headers that cannot be followed */
	uint64_t foreign; /* no IP: none of our business */
};

enum flow_kind {
	FLOW_KNOWN,
	FLOW_UNKNOWN,
	FLOW_FOREIGN,
};

/* The flow of a packet that cannot be told in brief. */
static inline enum flow_kind
look_closely(uint64_t words[IPSEC_FLOW_WORDS], const struct rte_mbuf *m,
	const struct packet_view *view, const struct ipsec_flow_from *from, uint64_t where,
	uint32_t uses)
{
	struct ipsec_flow odd;

	if (likely(ipsec_flow_words6(words, m, view, from->by, where, uses)))
		return FLOW_KNOWN;
	if ((view->flags & PACKET_F_L3) == 0)
		return FLOW_FOREIGN;
	if (!ipsec_flow_fill(&odd, m, view, from, uses))
		return FLOW_UNKNOWN;
	memcpy(words, &odd, sizeof(odd));
	return FLOW_KNOWN;
}

/* First pass: flows, their hashes, and the entries where they most likely are on their way here. */
static inline struct flows
look_at_flows(struct ipsec_cache_worker *w, const struct question *q, uint64_t mask)
{
	static const uint64_t none[IPSEC_FLOW_WORDS]; /* no flow's: its family is 0 */
	struct ipsec_flow_brief before = { .rest = IPSEC_FLOW_NOT_BRIEF };
	struct ipsec_tables *t = w->tables;
	const uint64_t *last = none;
	const uint32_t uses = w->uses;
	struct ipsec_flow_from from = { .in_ifindex = q->in_ifindex };
	uint64_t where = ipsec_flow_where(&from, uses);
	struct flows flows = { 0 };
	unsigned int i, k;

	packet_mask_for_each (i, mask) {
		const struct packet_view *view = &q->v->views[i];
		const struct rte_mbuf *m = q->v->pkts[i];
		uint64_t words[IPSEC_FLOW_WORDS], bit = UINT64_C(1) << i;
		struct ipsec_flow_brief brief;
		enum flow_kind kind;

		if (q->by != NULL)
			from.by = by_of(q, i);
		if (unlikely((uses & IPSEC_USES_MARK) != 0)) {
			from.mark = mark_of(w, q, i);
			where = ipsec_flow_where(&from, uses);
		}
		if (likely(ipsec_flow_brief(&brief, m, view, from.by, where, uses))) {
			if (ipsec_flow_brief_same(&brief, &before)) {
				flows.same |= bit;
				continue;
			}
			before = brief;
			ipsec_flow_words4(words, &brief);
		} else {
			before.rest = IPSEC_FLOW_NOT_BRIEF;
			kind = look_closely(words, m, view, &from, where, uses);
			if (unlikely(kind != FLOW_KNOWN)) {
				flows.foreign |= kind == FLOW_FOREIGN ? bit : 0;
				flows.unknown |= kind == FLOW_UNKNOWN ? bit : 0;
				continue;
			}
			if (ipsec_flow_same(words, last)) {
				flows.same |= bit;
				continue;
			}
		}
		for (k = 0; k < IPSEC_FLOW_WORDS; k++)
			w->flows[i][k] = words[k];
		w->flows[i][k] = w->epoch;
		last = w->flows[i];
		w->hashes[i] = ipsec_flow_hash(t, words);
		w->entries[i] = ipsec_hash_entry(t, w->hashes[i]);
		rte_prefetch0(w->entries[i]);
		rte_prefetch0(&w->entries[i]->decision);
		flows.look |= bit;
	}
	return flows;
}

/* Second pass, for one packet that is not like the one before it. */
enum found {
	FOUND,
	FOUND_SLOWLY, /* decided anew */
	FOUND_ALONE, /* likewise, and other packets of the flow may need another decision */
};

static inline enum found
look_up(struct ipsec_cache_worker *w, const struct question *q, unsigned int i,
	struct ipsec_cache_decision *d)
{
	struct ipsec_entry *e = w->entries[i];

	if (unlikely(!ipsec_entry_hit(e, w->flows[i]))) {
		e = find(w->tables, w->flows[i], w->hashes[i]);
		if (e == NULL || e->epoch != w->epoch)
			return miss(w, q, i, e, d) ? FOUND_SLOWLY : FOUND_ALONE;
	}
	*d = e->decision;
	if (d->rt != NULL && d->rt != w->fetched) {
		rte_prefetch0(d->rt);
		rte_prefetch0(d->rt->header);
		rte_prefetch0(&d->rt->oseq);
		ipsec_prefetch_key(d->rt);
		w->fetched = d->rt;
	}
	return FOUND;
}

static void
decide_cached(struct ipsec_cache_worker *w, const struct question *q, uint64_t mask,
	const struct ipsec_cache_decision **decisions)
{
	struct flows flows = look_at_flows(w, q, mask);
	uint64_t look, train, hits = 0;
	struct ipsec_cache_decision *d;
	enum found found;
	unsigned int i, k;

	for (look = flows.look; look != 0;) {
		i = (unsigned int)__builtin_ctzll(look);
		look &= look - 1;
		/* what is behind it, up to the next that is looked up */
		train = flows.same & UINT64_MAX << i;
		if (look != 0)
			train &= (look & -look) - 1;
		decisions[i] = d = next_decision(w);
		found = look_up(w, q, i, d);
		count_drop(w, d, 1);
		hits += found == FOUND;
		if (train == 0)
			continue;
		if (unlikely(found == FOUND_ALONE)) {
			packet_mask_for_each (k, train) {
				decisions[k] = d = next_decision(w);
				decide_slowly(w, q, k, d);
				count_drop(w, d, 1);
			}
			continue;
		}
		packet_mask_for_each (k, train)
			decisions[k] = d;
		k = (unsigned int)__builtin_popcountll(train);
		hits += k;
		count_drop(w, d, k);
	}
	packet_mask_for_each (i, flows.unknown) {
		decisions[i] = &decision_unknown;
		count_drop(w, &decision_unknown, 1);
	}
	packet_mask_for_each (i, flows.foreign)
		decisions[i] = &decision_route;
	ipsec_add(&w->hits, hits);
}

void
ipsec_cache_decide(struct ipsec_cache_worker *w, const struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_rt *const *by, uint32_t in_ifindex,
	const struct ipsec_cache_decision **decisions)
{
	const struct question q = { .v = v, .by = by, .in_ifindex = in_ifindex };
	struct ipsec_cache_decision *d;
	unsigned int i;

	if (likely(w->tables != NULL)) {
		decide_cached(w, &q, mask, decisions);
		return;
	}
	packet_mask_for_each (i, mask) {
		if (unlikely((v->views[i].flags & PACKET_F_L3) == 0)) {
			decisions[i] = &decision_route;
			continue;
		}
		decisions[i] = d = next_decision(w);
		decide_slowly(w, &q, i, d);
		count_drop(w, d, 1);
	}
}
