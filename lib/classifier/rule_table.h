/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_RULE_TABLE_H
#define CLASSIFIER_RULE_TABLE_H

/*
 * Inside lib/classifier: the hash table of one flower mask, from a 32-bit hash to rules. It grows
 * to millions while workers look in it, and no call ever takes long: a table twice the size is
 * filled bucket by bucket, one for each insertion, and what it replaces is freed chunk by chunk.
 *
 * A bucket is a cache line: seven entries and a pointer to one more such line. An entry is a rule's
 * address with the upper 16 bits of its hash in the bits that user addresses leave free; the lower
 * bits of the hash choose the bucket. So a look-up touches one line and one rule, and growth needs
 * no look at rules while there are 64 Ki buckets or more.
 *
 * While a table grows, buckets of the old size below `cursor` have moved; the others are still
 * valid where they are. A worker that read an older cursor, or an older table, finds what was there
 * when it did: old buckets are left as they are until nobody can stand in them.
 *
 * Thread safety: one control thread changes; workers look, between two quiescent reports.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "action/slab.h"
#include "rcu/rcu.h"

struct classifier_rule;

#define BUCKET_ENTRIES 7
#define BUCKET_CHUNK_BITS 10
#define BUCKET_CHUNK (1u << BUCKET_CHUNK_BITS)
#define ENTRY_TAG_SHIFT 48
#define ENTRY_ADDRESS ((UINT64_C(1) << ENTRY_TAG_SHIFT) - 1)

struct bucket {
	_Atomic uint64_t entry[BUCKET_ENTRIES]; /* 0: empty */
	_Atomic(struct bucket *) more;
} __rte_cache_aligned;
static_assert(sizeof(struct bucket) == 64, "a bucket is a cache line");

struct bucket_chunk {
	struct rcu_head rcu;
	uint32_t n;
	struct bucket bucket[];
};
static_assert(sizeof(struct bucket_chunk) + BUCKET_CHUNK * sizeof(struct bucket) <= SLAB_SIZE_MAX,
	"it is from the slab");

/* A table of one size. */
struct buckets {
	uint32_t mask; /* number of buckets, a power of two, less one */
	_Atomic uint32_t cursor; /* this many of prev have moved here */
	_Atomic(struct buckets *) prev; /* half the size; NULL once all have moved */
	struct rcu_head rcu;
	struct bucket_chunk *chunk[]; /* set before a bucket in it is reached */
};

/*
 * Room for a table of one bucket, which most masks never outgrow: beside the mask it costs no
 * further allocation, and no further page.
 */
struct rule_table_first {
	uint8_t buckets[RTE_CACHE_LINE_SIZE];
	uint8_t chunk[sizeof(struct bucket_chunk) + sizeof(struct bucket)];
} __rte_cache_aligned;
static_assert(sizeof(struct buckets) + sizeof(struct bucket_chunk *) <= RTE_CACHE_LINE_SIZE,
	"a small table is in one line");

struct rule_table {
	struct rcu *rcu;
	struct slab *slab;
	uint64_t count;
	/* The hash of a rule, for small tables that grow. */
	uint32_t (*hash_of)(const struct classifier_rule *rule);
	/* workers: last, so that it may begin a line that nothing else is written in */
	_Atomic(struct buckets *) buckets;
};

/*
 * `slab` is where its memory comes from, but for `first`: zeroed, and to be freed after the table,
 * in a reclaim that was deferred after the last insertion.
 */
void rule_table_init(struct rule_table *table, struct rule_table_first *first, struct rcu *rcu,
	struct slab *slab, uint32_t (*hash_of)(const struct classifier_rule *rule));
/*
 * Frees up to n chunks of 64 KiB at once: no worker may come here any more. True when all is freed;
 * until then call it again.
 */
bool rule_table_fini(struct rule_table *table, unsigned int n);

/* 0 or -ENOMEM. */
int rule_table_insert(struct rule_table *table, uint32_t hash, struct classifier_rule *rule);
/* Both know the rule to be there. */
void rule_table_remove(struct rule_table *table, uint32_t hash, const struct classifier_rule *rule);
void rule_table_swap(struct rule_table *table, uint32_t hash, const struct classifier_rule *old,
	struct classifier_rule *rule);

static inline struct bucket *
buckets_at(const struct buckets *buckets, uint32_t at)
{
	return &buckets->chunk[at >> BUCKET_CHUNK_BITS]->bucket[at & (BUCKET_CHUNK - 1)];
}

/* The bucket where rules with that hash are. */
static inline struct bucket *
rule_table_bucket(const struct rule_table *table, uint32_t hash)
{
	/* Acquire, three times: what is reached through them was written before. */
	const struct buckets *buckets = atomic_load_explicit(&table->buckets, memory_order_acquire);
	const struct buckets *prev = atomic_load_explicit(&buckets->prev, memory_order_acquire);

	if (__builtin_expect(prev != NULL, 0) &&
		(hash & prev->mask) >= atomic_load_explicit(&buckets->cursor, memory_order_acquire))
		return buckets_at(prev, hash & prev->mask);
	return buckets_at(buckets, hash & buckets->mask);
}

static inline uint64_t
entry_tag(uint32_t hash)
{
	return hash >> 16;
}

static inline struct classifier_rule *
entry_rule(uint64_t entry)
{
	return (struct classifier_rule *)(uintptr_t)(entry & ENTRY_ADDRESS);
}

#endif /* CLASSIFIER_RULE_TABLE_H */
