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
 * Thread safety: one control thread takes, frees and reads; worker w alone adds to array w.
 */

#include <stdatomic.h>
#include <stdint.h>

#include <rte_common.h>

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
	unsigned int n_workers;
	uint32_t next; /* ids from here on were never taken */
	uint32_t first_free; /* of those given back, COUNTER_NONE for none */
	uint32_t used; /* taken now */
	struct counter_worker *workers[];
};

/* NULL and rte_errno: EINVAL, ENOMEM. */
struct counter_table *counter_table_create(unsigned int n_workers);
void counter_table_destroy(struct counter_table *table);

/*
 * Takes a slot that reads as zero for all workers. COUNTER_NONE when memory or ids are out.
 * An id may be freed only after a grace period: then it may be handed out again.
 */
uint32_t counter_take(struct counter_table *table);
void counter_free(struct counter_table *table, uint32_t id);

/* Sums slot `id` over the workers. */
void counter_read(const struct counter_table *table, uint32_t id, uint64_t *a, uint64_t *b);

/* The slot that worker `worker` counts in under `id`. */
static inline struct counter_slot *
counter_slot_of(const struct counter_table *table, unsigned int worker, uint32_t id)
{
	/* Relaxed: the chunk's pointer was written before the id was published. */
	struct counter_slot *chunk = atomic_load_explicit(
		&table->workers[worker]->chunk[id >> COUNTER_CHUNK_BITS], memory_order_relaxed);

	return &chunk[id & (COUNTER_CHUNK - 1)];
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
