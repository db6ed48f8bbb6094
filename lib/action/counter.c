/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "action/counter.h"

/* A multiple of a line, so that workers share none even at a chunk's ends. */
#define CHUNK_SIZE (COUNTER_CHUNK * sizeof(struct counter_slot))

struct counter_table *
counter_table_create(struct slab *slab, unsigned int n_workers)
{
	struct counter_table *table;
	unsigned int w;

	if (n_workers == 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table) + n_workers * sizeof(table->workers[0]));
	if (table == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	table->slab = slab;
	table->n_workers = n_workers;
	table->first_free = table->first_half = COUNTER_NONE;
	for (w = 0; w < n_workers; w++) {
		table->workers[w] =
			aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(struct counter_worker));
		if (table->workers[w] == NULL) {
			counter_table_destroy(table);
			rte_errno = ENOMEM;
			return NULL;
		}
		memset(table->workers[w], 0, sizeof(struct counter_worker));
	}
	return table;
}

static void
chunk_free(struct counter_table *table, uint32_t chunk)
{
	for (unsigned int w = 0; w < table->n_workers; w++) {
		slab_free(atomic_load_explicit(
			&table->workers[w]->chunk[chunk], memory_order_relaxed));
		atomic_store_explicit(&table->workers[w]->chunk[chunk], NULL, memory_order_relaxed);
	}
}

void
counter_table_destroy(struct counter_table *table)
{
	if (table == NULL)
		return;
	for (unsigned int w = 0; w < table->n_workers && table->workers[w] != NULL; w++) {
		for (uint32_t c = 0; c <= table->next >> COUNTER_CHUNK_BITS && c < COUNTER_CHUNKS;
			c++)
			slab_free(atomic_load_explicit(
				&table->workers[w]->chunk[c], memory_order_relaxed));
		free(table->workers[w]);
	}
	free(table);
}

/*
 * Relaxed stores do: a worker adds to this chunk only after it acquired a rule or an action that
 * was released after them.
 */
static bool
chunk_alloc(struct counter_table *table, uint32_t chunk)
{
	for (unsigned int w = 0; w < table->n_workers; w++) {
		struct counter_slot *s = slab_alloc(table->slab, CHUNK_SIZE);

		if (s == NULL) {
			chunk_free(table, chunk);
			return false;
		}
		atomic_store_explicit(&table->workers[w]->chunk[chunk], s, memory_order_relaxed);
	}
	return true;
}

uint32_t
counter_take(struct counter_table *table)
{
	uint32_t id = table->first_free;

	if (id != COUNTER_NONE) {
		/* The id of the next free one lies in worker 0's slot: nobody counts there. */
		struct counter_slot *s = counter_slot_of(table, 0, id);

		table->first_free = (uint32_t)atomic_load_explicit(&s->a, memory_order_relaxed);
		atomic_store_explicit(&s->a, 0, memory_order_relaxed);
		table->used++;
		return id;
	}
	id = table->next;
	if (id >> COUNTER_CHUNK_BITS >= COUNTER_CHUNKS)
		return COUNTER_NONE;
	if ((id & (COUNTER_CHUNK - 1)) == 0 && !chunk_alloc(table, id >> COUNTER_CHUNK_BITS))
		return COUNTER_NONE;
	table->next++;
	table->used++;
	return id;
}

void
counter_free(struct counter_table *table, uint32_t id)
{
	if (id == COUNTER_NONE)
		return;
	for (unsigned int w = 0; w < table->n_workers; w++) {
		struct counter_slot *s = counter_slot_of(table, w, id);

		atomic_store_explicit(&s->a, w == 0 ? table->first_free : 0, memory_order_relaxed);
		atomic_store_explicit(&s->b, 0, memory_order_relaxed);
	}
	table->first_free = id;
	table->used--;
}

/* The number of the next free one lies where worker 0 counts. */
static void
half_clear(struct counter_table *table, uint32_t half, uint32_t next)
{
	for (unsigned int w = 0; w < table->n_workers; w++)
		atomic_store_explicit(
			counter_half_of(table, w, half), w == 0 ? next : 0, memory_order_relaxed);
}

uint32_t
counter_take_half(struct counter_table *table)
{
	uint32_t half = table->first_half, id;
	_Atomic uint64_t *c;

	if (half != COUNTER_NONE) {
		c = counter_half_of(table, 0, half);
		table->first_half = (uint32_t)atomic_load_explicit(c, memory_order_relaxed);
		atomic_store_explicit(c, 0, memory_order_relaxed);
		table->used++;
		return half;
	}
	if ((id = counter_take(table)) == COUNTER_NONE)
		return COUNTER_NONE;
	half = 2 * id;
	half_clear(table, half + 1, COUNTER_NONE);
	table->first_half = half + 1;
	return half;
}

void
counter_free_half(struct counter_table *table, uint32_t half)
{
	if (half == COUNTER_NONE)
		return;
	half_clear(table, half, table->first_half);
	table->first_half = half;
	table->used--;
}

uint64_t
counter_read_half(const struct counter_table *table, uint32_t half)
{
	uint64_t sum = 0;

	for (unsigned int w = 0; half != COUNTER_NONE && w < table->n_workers; w++)
		sum += atomic_load_explicit(counter_half_of(table, w, half), memory_order_relaxed);
	return sum;
}

void
counter_read(const struct counter_table *table, uint32_t id, uint64_t *a, uint64_t *b)
{
	*a = *b = 0;
	if (id == COUNTER_NONE)
		return;
	for (unsigned int w = 0; w < table->n_workers; w++) {
		const struct counter_slot *s = counter_slot_of(table, w, id);

		*a += atomic_load_explicit(&s->a, memory_order_relaxed);
		*b += atomic_load_explicit(&s->b, memory_order_relaxed);
	}
}
