/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "action/counter.h"

/* Lines of cache apart, so that workers share none even at a chunk's ends. */
#define CHUNK_SIZE (COUNTER_CHUNK * sizeof(struct counter_slot))

struct counter_table *
counter_table_create(unsigned int n_workers)
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
	table->n_workers = n_workers;
	table->first_free = COUNTER_NONE;
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
		free(atomic_load_explicit(&table->workers[w]->chunk[chunk], memory_order_relaxed));
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
			free(atomic_load_explicit(
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
		struct counter_slot *s = aligned_alloc(RTE_CACHE_LINE_SIZE, CHUNK_SIZE);

		if (s == NULL) {
			chunk_free(table, chunk);
			return false;
		}
		memset(s, 0, CHUNK_SIZE);
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
