/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "classifier/rule_table.h"

/* Rules for each bucket from which a table grows. */
#define LOAD_MAX 5
#define BUCKETS_MAX (1u << 28)
/* From this size on the tag holds the bit of the hash that tells the halves of a bucket apart. */
#define TAG_DECIDES (1u << 16)

static uint64_t
entry_of(uint32_t hash, const struct classifier_rule *rule)
{
	return entry_tag(hash) << ENTRY_TAG_SHIFT | (uint64_t)(uintptr_t)rule;
}

static uint64_t
entry_load(const struct bucket *b, unsigned int e)
{
	/* Relaxed: the control thread reads what it wrote itself. */
	return atomic_load_explicit(&b->entry[e], memory_order_relaxed);
}

static struct bucket *
more_of(const struct bucket *b)
{
	return atomic_load_explicit(&b->more, memory_order_relaxed);
}

static struct bucket_chunk *
chunk_make(struct rule_table *table, uint32_t n)
{
	struct bucket_chunk *chunk =
		slab_alloc(table->slab, sizeof(*chunk) + n * sizeof(chunk->bucket[0]));

	if (chunk != NULL)
		chunk->n = n;
	return chunk;
}

static void
more_free(struct bucket *b)
{
	struct bucket *more = more_of(b), *next;

	for (; more != NULL; more = next) {
		next = more_of(more);
		slab_free(more);
	}
	atomic_store_explicit(&b->more, NULL, memory_order_relaxed);
}

static void
chunk_free(struct bucket_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->n; i++)
		more_free(&chunk->bucket[i]);
	/* The one of the first table is part of that. */
	if (chunk->n != 1)
		slab_free(chunk);
}

static void
chunk_reclaim(struct rcu_head *head)
{
	chunk_free(RTE_PTR_SUB(head, offsetof(struct bucket_chunk, rcu)));
}

static uint32_t
n_chunks(const struct buckets *buckets)
{
	return (buckets->mask >> BUCKET_CHUNK_BITS) + 1;
}

/* A small table is in one line. */
static size_t
buckets_size(uint32_t n)
{
	size_t chunks = n <= BUCKET_CHUNK ? 1 : n >> BUCKET_CHUNK_BITS;

	return RTE_ALIGN_CEIL(sizeof(struct buckets) + chunks * sizeof(struct bucket_chunk *),
		RTE_CACHE_LINE_SIZE);
}

/* A table of n buckets without any chunk. */
static struct buckets *
buckets_make(const struct rule_table *table, uint32_t n)
{
	size_t size = buckets_size(n);
	struct buckets *buckets =
		size == RTE_CACHE_LINE_SIZE ? slab_alloc(table->slab, size) : calloc(1, size);

	if (buckets != NULL)
		buckets->mask = n - 1;
	return buckets;
}

static void
buckets_unmake(struct buckets *buckets)
{
	/* The first table stands beside its mask. */
	if (buckets->mask == 0)
		return;
	if (buckets_size(buckets->mask + 1) == RTE_CACHE_LINE_SIZE)
		slab_free(buckets);
	else
		free(buckets);
}

static void
buckets_reclaim(struct rcu_head *head)
{
	buckets_unmake(RTE_PTR_SUB(head, offsetof(struct buckets, rcu)));
}

/* Makes sure of the chunk that bucket `at` is in. */
static int
chunk_ensure(struct rule_table *table, struct buckets *buckets, uint32_t at)
{
	struct bucket_chunk **chunk = &buckets->chunk[at >> BUCKET_CHUNK_BITS];

	if (*chunk == NULL)
		*chunk = chunk_make(table, RTE_MIN(buckets->mask + 1, BUCKET_CHUNK));
	return *chunk != NULL ? 0 : -ENOMEM;
}

void
rule_table_init(struct rule_table *table, struct rule_table_first *first, struct rcu *rcu,
	struct slab *slab, uint32_t (*hash_of)(const struct classifier_rule *rule))
{
	struct buckets *buckets = (void *)first->buckets;

	table->rcu = rcu;
	table->slab = slab;
	table->count = 0;
	table->hash_of = hash_of;
	buckets->chunk[0] = (void *)first->chunk;
	buckets->chunk[0]->n = 1;
	atomic_init(&table->buckets, buckets);
}

static struct buckets *
buckets_of(const struct rule_table *table)
{
	return atomic_load_explicit(&table->buckets, memory_order_relaxed);
}

static struct buckets *
prev_of(const struct buckets *buckets)
{
	return atomic_load_explicit(&buckets->prev, memory_order_relaxed);
}

/* Frees chunks from `first` on (those before are deferred already), then the rest. */
static bool
buckets_free(struct buckets *buckets, uint32_t first, unsigned int *n)
{
	for (uint32_t i = first; i < n_chunks(buckets); i++) {
		if (buckets->chunk[i] == NULL)
			continue;
		if (*n == 0)
			return false;
		(*n)--;
		chunk_free(buckets->chunk[i]);
		buckets->chunk[i] = NULL;
	}
	buckets_unmake(buckets);
	return true;
}

bool
rule_table_fini(struct rule_table *table, unsigned int n)
{
	struct buckets *buckets = buckets_of(table), *prev = prev_of(buckets);
	uint32_t moved = atomic_load_explicit(&buckets->cursor, memory_order_relaxed);

	if (prev != NULL) {
		if (!buckets_free(prev, moved >> BUCKET_CHUNK_BITS, &n))
			return false;
		atomic_store_explicit(&buckets->prev, NULL, memory_order_relaxed);
	}
	return buckets_free(buckets, 0, &n);
}

/* Puts an entry where there is room in the bucket. */
static int
bucket_put(struct rule_table *table, struct bucket *b, uint64_t entry)
{
	struct bucket *more;

	for (;; b = more) {
		for (unsigned int e = 0; e < BUCKET_ENTRIES; e++) {
			if (entry_load(b, e) != 0)
				continue;
			/* Release: a worker that finds the rule sees it whole. */
			atomic_store_explicit(&b->entry[e], entry, memory_order_release);
			return 0;
		}
		if ((more = more_of(b)) == NULL)
			break;
	}
	if ((more = slab_alloc(table->slab, sizeof(*more))) == NULL)
		return -ENOMEM;
	atomic_store_explicit(&more->entry[0], entry, memory_order_relaxed);
	/* Release: as above, and the line itself. */
	atomic_store_explicit(&b->more, more, memory_order_release);
	return 0;
}

/* Where the entry is. */
static _Atomic uint64_t *
bucket_find(struct bucket *b, uint64_t entry)
{
	for (; b != NULL; b = more_of(b))
		for (unsigned int e = 0; e < BUCKET_ENTRIES; e++)
			if (entry_load(b, e) == entry)
				return &b->entry[e];
	return NULL;
}

static void
bucket_empty(struct bucket *b)
{
	more_free(b);
	for (unsigned int e = 0; e < BUCKET_ENTRIES; e++)
		atomic_store_explicit(&b->entry[e], 0, memory_order_relaxed);
}

/* True if the entry goes to the upper one of the two buckets that an old one of n becomes. */
static bool
goes_up(const struct rule_table *table, uint64_t entry, uint32_t n)
{
	if (n >= TAG_DECIDES)
		return (entry >> ENTRY_TAG_SHIFT << 16 & n) != 0;
	return (table->hash_of(entry_rule(entry)) & n) != 0;
}

static int
move_entries(struct rule_table *table, const struct bucket *from, struct bucket *low,
	struct bucket *high, uint32_t n)
{
	for (; from != NULL; from = more_of(from)) {
		for (unsigned int e = 0; e < BUCKET_ENTRIES; e++) {
			uint64_t entry = entry_load(from, e);

			if (entry != 0 &&
				bucket_put(table, goes_up(table, entry, n) ? high : low, entry) !=
					0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* The last bucket has moved: what is left of the old table goes. */
static void
finish_growth(struct rule_table *table, struct buckets *buckets, struct buckets *prev)
{
	/* Release: who sees no old table sees all that moved. */
	atomic_store_explicit(&buckets->prev, NULL, memory_order_release);
	rcu_defer(table->rcu, &prev->rcu, buckets_reclaim);
}

/* Moves one bucket of the old table, if there is one. Without memory it stays where it is. */
static void
grow_step(struct rule_table *table)
{
	struct buckets *buckets = buckets_of(table), *prev = prev_of(buckets);
	uint32_t at, n;
	struct bucket *low, *high;

	if (prev == NULL)
		return;
	n = prev->mask + 1;
	at = atomic_load_explicit(&buckets->cursor, memory_order_relaxed);
	if (chunk_ensure(table, buckets, at) != 0 || chunk_ensure(table, buckets, at + n) != 0)
		return;
	low = buckets_at(buckets, at);
	high = buckets_at(buckets, at + n);
	if (move_entries(table, buckets_at(prev, at), low, high, n) != 0) {
		/* Nobody has looked there yet. */
		bucket_empty(low);
		bucket_empty(high);
		return;
	}
	/* Release: who sees the new cursor sees the entries that moved. */
	atomic_store_explicit(&buckets->cursor, ++at, memory_order_release);
	if ((at & (BUCKET_CHUNK - 1)) == 0 || at == n)
		rcu_defer(table->rcu, &prev->chunk[(at - 1) >> BUCKET_CHUNK_BITS]->rcu,
			chunk_reclaim);
	if (at == n)
		finish_growth(table, buckets, prev);
}

/* Begins to grow. Without memory the table stays as it is, and is asked again. */
static void
grow_start(struct rule_table *table)
{
	struct buckets *buckets = buckets_of(table), *twice;
	uint32_t n = buckets->mask + 1;

	if (n >= BUCKETS_MAX || (twice = buckets_make(table, 2 * n)) == NULL)
		return;
	atomic_init(&twice->prev, buckets);
	/* Release: who finds the new table finds the old one through it. */
	atomic_store_explicit(&table->buckets, twice, memory_order_release);
}

int
rule_table_insert(struct rule_table *table, uint32_t hash, struct classifier_rule *rule)
{
	const struct buckets *buckets = buckets_of(table);
	int rc;

	if (((uint64_t)(uintptr_t)rule & ~ENTRY_ADDRESS) != 0)
		return -ENOMEM;
	if (prev_of(buckets) == NULL && table->count >= (uint64_t)LOAD_MAX * (buckets->mask + 1))
		grow_start(table);
	grow_step(table);
	if ((rc = bucket_put(table, rule_table_bucket(table, hash), entry_of(hash, rule))) == 0)
		table->count++;
	return rc;
}

void
rule_table_remove(struct rule_table *table, uint32_t hash, const struct classifier_rule *rule)
{
	_Atomic uint64_t *at = bucket_find(rule_table_bucket(table, hash), entry_of(hash, rule));

	/* Relaxed: a worker that still finds it may: it is freed a grace period later. */
	atomic_store_explicit(at, 0, memory_order_relaxed);
	table->count--;
}

void
rule_table_swap(struct rule_table *table, uint32_t hash, const struct classifier_rule *old,
	struct classifier_rule *rule)
{
	_Atomic uint64_t *at = bucket_find(rule_table_bucket(table, hash), entry_of(hash, old));

	/* Release, one store: a worker finds either, whole. */
	atomic_store_explicit(at, entry_of(hash, rule), memory_order_release);
}
