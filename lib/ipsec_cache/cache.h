/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_CACHE_H
#define IPSEC_CACHE_CACHE_H

/*
 * The tables of a worker: decisions by flow, and inbound SAs by SPI and destination. They belong to
 * one lcore, hold no references and are never cleared: an entry counts while its epoch is the one
 * that the worker read when its burst began.
 *
 * Why no entry is wrong (E2). The reader loads the epoch (acquire) when its burst begins, looks up
 * the slow way after that, and notes that epoch with the result. The writer publishes a change,
 * bumps the epoch (release), and only then hands what it replaced to rcu_defer(). Take an entry
 * that names something replaced: its look-up missed the change, so its burst's load of the epoch
 * came before the bump, or it would have acquired what the bump released. The entry has an older
 * epoch than the bump's, and counts in no burst that reads the bumped one. Those are all bursts
 * that begin after the worker reported quiescence past the writer's token, since that report
 * acquires what the writer did before taking the token, the bump included; and until it did nothing
 * is freed. So an entry can be born stale, for a change that is under way; it never outlives it.
 *
 * The key leaves out fields that no policy and no SA uses, by `uses`, which is loaded after the
 * epoch and stored by writers before they publish one that needs more. A decision is always made
 * for the whole flow, so it is right for its packet; and it is kept for others only if `uses` is
 * still the same afterwards: had the look-up seen one that uses more, it would have seen the new
 * `uses` too.
 */

#include <assert.h>
#include <stddef.h>

#include <rte_vect.h>

#include "ipsec_cache/flow.h"
#include "ipsec_cache/internal.h"
#include "ipsec_cache/rt.h"

#define IPSEC_TAGS IPSEC_CACHE_WAYS
static_assert(IPSEC_TAGS == 8, "a set's tags are compared as one 16-byte vector");

struct ipsec_entry {
	uint64_t flow[IPSEC_FLOW_WORDS]; /* struct ipsec_flow, by words */
	uint64_t epoch;
	struct ipsec_cache_decision decision __rte_cache_aligned;
};
static_assert(sizeof(struct ipsec_entry) == 128, "an entry is a pair of cache lines");
static_assert(offsetof(struct ipsec_entry, epoch) == 56, "flow and epoch are compared as one line");

/* A set: tags are 0 where there is no entry. */
struct ipsec_tags {
	uint16_t tag[IPSEC_TAGS];
} __rte_aligned(16);

/* Inbound SAs for one of our addresses; rt NULL where there is none. */
#define IPSEC_IN_WAYS 4
struct ipsec_in_set {
	struct ipsec_cache_rt *rt[IPSEC_IN_WAYS];
	__be32 spi[IPSEC_IN_WAYS];
	uint32_t mark[IPSEC_IN_WAYS];
	uint64_t epoch[IPSEC_IN_WAYS];
	uint32_t next; /* to be replaced */
} __rte_aligned(2 * RTE_CACHE_LINE_SIZE);
static_assert(sizeof(struct ipsec_in_set) == 128, "a set is a pair of cache lines");

struct ipsec_tables {
	uint64_t keys[IPSEC_FLOW_WORDS]; /* random, odd: nobody can aim at a set */
	unsigned int shift, in_shift; /* 64 - bits of a set's number */
	unsigned int n_sets;
	struct ipsec_tags *tags;
	struct ipsec_entry *entries; /* set by set */
	struct ipsec_in_set *in;
};

/*
 * For `entries` decisions and as many SAs: sets are twice as many as would hold them if they spread
 * evenly, of which one in 4,000 then has more flows than ways. NULL: no memory.
 */
struct ipsec_tables *ipsec_tables_create(unsigned int entries, int socket);
void ipsec_tables_destroy(struct ipsec_tables *t); /* NULL accepted */

/* Both halves of a product. */
static inline uint64_t
ipsec_multiply(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * Products of pairs of words, each made unlike what an attacker can choose by a random number: who
 * does not know the numbers finds no flows that meet.
 */
static inline uint64_t
ipsec_flow_hash(const struct ipsec_tables *t, const uint64_t *w)
{
	const uint64_t *k = t->keys;
	uint64_t h = ipsec_multiply(w[0] ^ k[0], w[2] ^ k[2]) +
		ipsec_multiply(w[1] ^ k[1], w[3] ^ k[3]) + ipsec_multiply(w[4] ^ k[4], w[5] ^ k[5]);

	return ipsec_multiply(h ^ w[6], k[6]);
}

static inline bool
ipsec_flow_same(const uint64_t *a, const uint64_t *b)
{
	uint64_t differ = 0;
	unsigned int i;

	for (i = 0; i < IPSEC_FLOW_WORDS; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

/* An entry for that flow and epoch, which stand behind each other as in the entry. */
static inline bool
ipsec_entry_hit(const struct ipsec_entry *e, const uint64_t row[IPSEC_FLOW_WORDS + 1])
{
#ifdef RTE_ARCH_X86
	const __m128i *a = (const __m128i *)(const void *)e,
		      *b = (const __m128i *)(const void *)row;
	__m128i differ =
		_mm_or_si128(_mm_or_si128(_mm_xor_si128(a[0], b[0]), _mm_xor_si128(a[1], b[1])),
			_mm_or_si128(_mm_xor_si128(a[2], b[2]), _mm_xor_si128(a[3], b[3])));

	return _mm_testz_si128(differ, differ) != 0;
#else
	return e->epoch == row[IPSEC_FLOW_WORDS] && ipsec_flow_same(e->flow, row);
#endif
}

static inline unsigned int
ipsec_hash_set(const struct ipsec_tables *t, uint64_t hash)
{
	return (unsigned int)(hash >> t->shift);
}

/* The way that is tried first, before any tag is looked at. */
static inline unsigned int
ipsec_hash_way(uint64_t hash)
{
	return (unsigned int)(hash & (IPSEC_TAGS - 1));
}

static inline struct ipsec_entry *
ipsec_hash_entry(const struct ipsec_tables *t, uint64_t hash)
{
	return &t->entries[ipsec_hash_set(t, hash) * IPSEC_TAGS + ipsec_hash_way(hash)];
}

static inline uint16_t
ipsec_hash_tag(uint64_t hash)
{
	return (uint16_t)(hash >> 16) | 1; /* never 0 */
}

static inline uint64_t
ipsec_in_hash(const struct ipsec_tables *t, __be32 spi, const uint64_t daddr[2])
{
	return (spi + daddr[0] * t->keys[1]) * t->keys[0];
}

#endif /* IPSEC_CACHE_CACHE_H */
