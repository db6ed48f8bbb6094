/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "action/counter.h"

/* A multiple of a line, so that workers share none even at a chunk's ends. */
#define CHUNK_SIZE (COUNTER_CHUNK * sizeof(struct counter_slot))

/* In the link of a slot that was halved. */
#define LINK_ID ((UINT32_C(1) << 26) - 1)
#define LINK_END LINK_ID
#define LINK_FIRST_FREE (UINT32_C(1) << 30)
#define LINK_SECOND_FREE (UINT32_C(1) << 31)
static_assert((uint64_t)COUNTER_CHUNKS * COUNTER_CHUNK < LINK_END, "a link names every slot");

struct counter_table *
counter_table_create(struct slab *slab, unsigned int n_workers)
{
	struct counter_table *table;
	unsigned int w;

	if (n_workers == 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	table = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL(sizeof(*table) + n_workers * sizeof(table->workers[0]),
			RTE_CACHE_LINE_SIZE));
	if (table == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	*table = (struct counter_table){ .slab = slab,
		.first_free = COUNTER_NONE,
		.first_half = LINK_END,
		.n_workers = n_workers,
		.links = calloc(COUNTER_CHUNKS, sizeof(table->links[0])) };
	for (w = 0; w < n_workers; w++) {
		table->workers[w] =
			aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(struct counter_worker));
		if (table->workers[w] == NULL || table->links == NULL) {
			table->n_workers = w + 1;
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
	slab_free(table->links[chunk]);
	table->links[chunk] = NULL;
}

void
counter_table_destroy(struct counter_table *table)
{
	uint32_t n;

	if (table == NULL)
		return;
	n = (table->next + COUNTER_CHUNK - 1) >> COUNTER_CHUNK_BITS;
	for (uint32_t chunk = 0; chunk < n; chunk++)
		chunk_free(table, chunk);
	for (unsigned int w = 0; w < table->n_workers; w++)
		free(table->workers[w]);
	free(table->links);
	free(table);
}

/*
 * Relaxed stores do: a worker adds to this chunk only after it acquired a rule or an action that
 * was released after them.
 */
static bool
chunk_alloc(struct counter_table *table, uint32_t chunk)
{
	table->links[chunk] = slab_alloc(table->slab, COUNTER_CHUNK * sizeof(uint32_t));
	if (table->links[chunk] == NULL)
		return false;
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

/* Where the number of the next free slot lies. Workers' slots are left alone. */
static uint32_t *
link_of(const struct counter_table *table, uint32_t id)
{
	return &table->links[id >> COUNTER_CHUNK_BITS][id & (COUNTER_CHUNK - 1)];
}

/* Makes it zero for the next. What never counted is not written: its line is full of what does. */
static void
half_clear(struct counter_table *table, uint32_t half)
{
	for (unsigned int w = 0; w < table->n_workers; w++) {
		_Atomic uint64_t *c = counter_half_of(table, w, half);

		if (atomic_load_explicit(c, memory_order_relaxed) != 0)
			atomic_store_explicit(c, 0, memory_order_relaxed);
	}
}

uint32_t
counter_take(struct counter_table *table)
{
	uint32_t id = table->first_free;

	if (id != COUNTER_NONE) {
		table->first_free = *link_of(table, id);
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
	half_clear(table, 2 * id);
	half_clear(table, 2 * id + 1);
	*link_of(table, id) = table->first_free;
	table->first_free = id;
	table->used--;
}

/* A slot of which a half is free, or both, is in a list of its own; its link says which are. */
static uint32_t
half_bit(uint32_t half)
{
	return half % 2 == 0 ? LINK_FIRST_FREE : LINK_SECOND_FREE;
}

uint32_t
counter_take_half(struct counter_table *table)
{
	uint32_t id = table->first_half, half, *link;

	if (id == LINK_END) {
		if ((id = counter_take(table)) == COUNTER_NONE)
			return COUNTER_NONE;
		table->used--;
		*link_of(table, id) = LINK_FIRST_FREE | LINK_SECOND_FREE | LINK_END;
		table->first_half = id;
	}
	link = link_of(table, id);
	half = 2 * id + ((*link & LINK_FIRST_FREE) == 0);
	*link &= ~half_bit(half);
	if ((*link & ~LINK_ID) == 0)
		table->first_half = *link;
	table->used++;
	return half;
}

void
counter_free_half(struct counter_table *table, uint32_t half)
{
	uint32_t *link;

	if (half == COUNTER_NONE)
		return;
	half_clear(table, half);
	link = link_of(table, half / 2);
	if ((*link & ~LINK_ID) == 0) {
		*link = table->first_half;
		table->first_half = half / 2;
	}
	*link |= half_bit(half);
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
