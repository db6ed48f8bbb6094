/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ACTION_COUNTER_H
#define ACTION_COUNTER_H

/*
 * Millions of pairs of counters, each counted by every worker without a shared cache line.
 *
 * An id names a 16-byte slot in an array of each worker. Arrays grow by chunks; the control thread
 * allocates a chunk for all workers when the first id inside it is taken. A worker that got the id
 * through a published rule therefore finds its chunk: the rule's release store orders both.
 *
 * Who counts one thing only takes half a slot: eight bytes, under an id of another numbering.
 *
 * Thread safety: one control thread takes, frees and reads; worker w alone adds to array w.
 */

#include <stdatomic.h>
#include <stdint.h>

#include <rte_common.h>

#include "action/slab.h"

#define COUNTER_CHUNK_BITS 12
#define COUNTER_CHUNK (1u << COUNTER_CHUNK_BITS)
#define COUNTER_CHUNKS 8192 /* 32 M slots */
#define COUNTER_NONE UINT32_MAX

struct counter_slot {
	_Atomic uint64_t a; /* packets, or drops */
	_Atomic uint64_t b; /* bytes, or overlimits */
};

/* What one worker counts in. */
struct counter_worker {
	struct counter_slot *_Atomic chunk[COUNTER_CHUNKS];
} __rte_cache_aligned;

struct counter_table {
	struct slab *slab;
	uint32_t **links; /* by chunk: for each slot that is free, the next that is */
	uint32_t next; /* ids from here on were never taken */
	uint32_t first_free; /* of those given back, COUNTER_NONE for none */
	uint32_t first_half; /* of those of which a half is free; what was halved once stays so */
	uint32_t used; /* taken now, whole or half */
	/* workers, who would miss what stands before with each slot that comes or goes */
	unsigned int n_workers __rte_cache_aligned;
	struct counter_worker *workers[];
};

/* `slab`, which must outlive it, is where its memory comes from. NULL and rte_errno: EINVAL,
 * ENOMEM. */
struct counter_table *counter_table_create(struct slab *slab, unsigned int n_workers);
void counter_table_destroy(struct counter_table *table);

/*
 * Takes a slot that reads as zero for all workers. COUNTER_NONE when memory or ids are out.
 * An id may be freed only after a grace period: then it may be handed out again.
 */
uint32_t counter_take(struct counter_table *table);
void counter_free(struct counter_table *table, uint32_t id);

/* The same for half slots. */
uint32_t counter_take_half(struct counter_table *table);
void counter_free_half(struct counter_table *table, uint32_t half);

/* Sums slot `id` over the workers; a half slot. */
void counter_read(const struct counter_table *table, uint32_t id, uint64_t *a, uint64_t *b);
uint64_t counter_read_half(const struct counter_table *table, uint32_t half);

/* The slot that worker `worker` counts in under `id`. */
static inline struct counter_slot *
counter_slot_of(const struct counter_table *table, unsigned int worker, uint32_t id)
{
	/* Relaxed: the chunk's pointer was written before the id was published. */
	struct counter_slot *chunk = atomic_load_explicit(
		&table->workers[worker]->chunk[id >> COUNTER_CHUNK_BITS], memory_order_relaxed);

	return &chunk[id & (COUNTER_CHUNK - 1)];
}

static inline _Atomic uint64_t *
counter_half_of(const struct counter_table *table, unsigned int worker, uint32_t half)
{
	struct counter_slot *s = counter_slot_of(table, worker, half / 2);

	return half % 2 == 0 ? &s->a : &s->b;
}

/* Adds to a half slot, as below. */
static inline void
counter_add_half(struct counter_table *table, unsigned int worker, uint32_t half, uint64_t n)
{
	_Atomic uint64_t *c = counter_half_of(table, worker, half);

	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Adds to a slot. Worker `worker` only; one writer a slot, so relaxed loads and stores do. */
static inline void
counter_add(struct counter_table *table, unsigned int worker, uint32_t id, uint64_t a, uint64_t b)
{
	struct counter_slot *s = counter_slot_of(table, worker, id);

	atomic_store_explicit(
		&s->a, atomic_load_explicit(&s->a, memory_order_relaxed) + a, memory_order_relaxed);
	atomic_store_explicit(
		&s->b, atomic_load_explicit(&s->b, memory_order_relaxed) + b, memory_order_relaxed);
}

#endif /* ACTION_COUNTER_H */
