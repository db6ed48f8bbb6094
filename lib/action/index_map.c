/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <rte_common.h>

#include "action/index_map.h"

#define BITS 6
#define FAN (1u << BITS)
#define NO_SLOT FAN

struct index_node {
	struct rcu_head rcu;
	uint64_t present; /* slots that are not NULL */
	uint64_t full; /* slots below which no index is free */
	uint32_t shift;
	bool in_slab;
	_Atomic(void *) slot[FAN]; /* nodes; entries where shift is 0 */
};

static void
node_give_back(struct index_node *node)
{
	if (node->in_slab)
		slab_free(node);
	else
		free(node);
}

static void
node_reclaim(struct rcu_head *head)
{
	node_give_back(RTE_PTR_SUB(head, offsetof(struct index_node, rcu)));
}

static void
node_free(const struct index_map *map, struct index_node *node)
{
	if (map->rcu != NULL)
		rcu_defer(map->rcu, &node->rcu, node_reclaim);
	else
		node_give_back(node);
}

static struct index_node *
node_alloc(const struct index_map *map, unsigned int shift)
{
	struct index_node *node;

	node = map->slab != NULL ? slab_alloc(map->slab, sizeof(*node)) : calloc(1, sizeof(*node));
	if (node == NULL)
		return NULL;
	node->shift = shift;
	node->in_slab = map->slab != NULL;
	return node;
}

static struct index_node *
root_of(const struct index_map *map)
{
	return atomic_load_explicit(&map->root, memory_order_relaxed);
}

static unsigned int
slot_of(const struct index_node *node, uint32_t index)
{
	return (index >> node->shift) & (FAN - 1);
}

/* True if `index` lies within what the node can name. */
static bool
node_covers(const struct index_node *node, uint32_t index)
{
	return (uint64_t)index >> node->shift < FAN;
}

/* The lowest slot >= from with its bit set in `bits`, or NO_SLOT. */
static unsigned int
lowest(uint64_t bits, unsigned int from)
{
	if (from >= FAN || (bits >>= from) == 0)
		return NO_SLOT;
	return from + (unsigned int)__builtin_ctzll(bits);
}

void
index_map_init(struct index_map *map, struct rcu *rcu, struct slab *slab)
{
	atomic_init(&map->root, NULL);
	map->rcu = rcu;
	map->slab = slab;
	map->single = NULL;
	map->single_index = 0;
	map->count = 0;
}

static void
clear_node(struct index_map *map, struct index_node *node)
{
	unsigned int s;

	if (node->shift != 0)
		for (s = 0; (s = lowest(node->present, s)) != NO_SLOT; s++)
			clear_node(map, atomic_load_explicit(&node->slot[s], memory_order_relaxed));
	node_free(map, node);
}

void
index_map_clear(struct index_map *map)
{
	struct index_node *root = root_of(map);

	/* Relaxed: NULL says nothing about other memory. */
	atomic_store_explicit(&map->root, NULL, memory_order_relaxed);
	if (root != NULL)
		clear_node(map, root);
	map->single = NULL;
	map->count = 0;
}

/* The orders are of no cost on x86; acquire pairs with the release of node_set() for workers. */
void *
index_map_read(const struct index_map *map, uint32_t index)
{
	struct index_node *node = atomic_load_explicit(&map->root, memory_order_acquire);

	if (node == NULL || !node_covers(node, index))
		return NULL;
	while (node != NULL && node->shift != 0)
		node = atomic_load_explicit(
			&node->slot[slot_of(node, index)], memory_order_acquire);
	if (node == NULL)
		return NULL;
	return atomic_load_explicit(&node->slot[slot_of(node, index)], memory_order_acquire);
}

void *
index_map_find(const struct index_map *map, uint32_t index)
{
	if (map->single != NULL)
		return map->single_index == index ? map->single : NULL;
	return index_map_read(map, index);
}

static void
node_set(struct index_node *node, unsigned int s, void *entry, bool full)
{
	node->present |= UINT64_C(1) << s;
	if (full)
		node->full |= UINT64_C(1) << s;
	/* Release: whoever reaches the entry sees what was written into it. */
	atomic_store_explicit(&node->slot[s], entry, memory_order_release);
}

static void
node_unset(struct index_node *node, unsigned int s)
{
	node->present &= ~(UINT64_C(1) << s);
	node->full &= ~(UINT64_C(1) << s);
	atomic_store_explicit(&node->slot[s], NULL, memory_order_relaxed);
}

/* Takes the entry out and prunes nodes that became empty. True if `node` itself is empty now. */
static bool
remove_below(struct index_map *map, struct index_node *node, uint32_t index, void **entry)
{
	unsigned int s = slot_of(node, index);
	void *below = atomic_load_explicit(&node->slot[s], memory_order_relaxed);

	if (below != NULL && node->shift == 0) {
		*entry = below;
		node_unset(node, s);
	} else if (below != NULL && remove_below(map, below, index, entry)) {
		node_unset(node, s);
		node_free(map, below);
	} else if (*entry != NULL) {
		node->full &= ~(UINT64_C(1) << s);
	}
	return node->present == 0;
}

void *
index_map_del(struct index_map *map, uint32_t index)
{
	struct index_node *root = root_of(map);
	void *entry = NULL;

	if (map->single != NULL) {
		if (map->single_index != index)
			return NULL;
		entry = map->single;
		map->single = NULL;
		map->count = 0;
		return entry;
	}
	if (root == NULL || !node_covers(root, index))
		return NULL;
	if (remove_below(map, root, index, &entry)) {
		atomic_store_explicit(&map->root, NULL, memory_order_relaxed);
		node_free(map, root);
	}
	if (entry != NULL)
		map->count--;
	return entry;
}

/* Makes the root cover `index`. */
static int
grow_root(struct index_map *map, uint32_t index)
{
	struct index_node *root = root_of(map), *above;

	if (root == NULL) {
		unsigned int shift = 0;

		while ((uint64_t)index >> shift >= FAN)
			shift += BITS;
		if ((above = node_alloc(map, shift)) == NULL)
			return -ENOMEM;
		atomic_store_explicit(&map->root, above, memory_order_release);
		return 0;
	}
	while (!node_covers(root, index)) {
		if ((above = node_alloc(map, root->shift + BITS)) == NULL)
			return -ENOMEM;
		node_set(above, 0, root, root->full == UINT64_MAX);
		atomic_store_explicit(&map->root, above, memory_order_release);
		root = above;
	}
	return 0;
}

/* True if everything below `node` is taken, in *full; -ENOMEM leaves nodes without entries. */
static int
set_below(const struct index_map *map, struct index_node *node, uint32_t index, void *entry,
	bool *full, bool *fresh)
{
	unsigned int s = slot_of(node, index);
	struct index_node *below;
	int rc;

	if (node->shift == 0) {
		*fresh = (node->present & UINT64_C(1) << s) == 0;
		node_set(node, s, entry, true);
		*full = node->full == UINT64_MAX;
		return 0;
	}
	below = atomic_load_explicit(&node->slot[s], memory_order_relaxed);
	if (below == NULL) {
		if ((below = node_alloc(map, node->shift - BITS)) == NULL)
			return -ENOMEM;
		node_set(node, s, below, false);
	}
	if ((rc = set_below(map, below, index, entry, full, fresh)) != 0)
		return rc;
	if (*full)
		node->full |= UINT64_C(1) << s;
	/* The last index of all is in a node that only part of the 32 bits fill: never full, never
	 * asked. */
	*full = node->full == UINT64_MAX;
	return 0;
}

static int
set_in_tree(struct index_map *map, uint32_t index, void *entry)
{
	bool full, fresh = false;
	int rc;

	if ((rc = grow_root(map, index)) == 0)
		rc = set_below(map, root_of(map), index, entry, &full, &fresh);
	if (rc != 0) {
		/* Prunes the empty nodes that the failed call made. */
		index_map_del(map, index);
		return rc;
	}
	if (fresh)
		map->count++;
	return 0;
}

int
index_map_set(struct index_map *map, uint32_t index, void *entry)
{
	void *single = map->single;
	int rc;

	if (map->rcu == NULL && root_of(map) == NULL &&
		(single == NULL || map->single_index == index)) {
		map->single = entry;
		map->single_index = index;
		map->count = 1;
		return 0;
	}
	if (single == NULL)
		return set_in_tree(map, index, entry);
	/* A second entry: both move into nodes. */
	map->single = NULL;
	map->count = 0;
	if ((rc = set_in_tree(map, map->single_index, single)) == 0 &&
		(rc = set_in_tree(map, index, entry)) == 0)
		return 0;
	index_map_clear(map);
	map->single = single;
	map->count = 1;
	return rc;
}

static void *
next_below(const struct index_node *node, uint32_t from, uint32_t base, uint32_t *index)
{
	unsigned int first = slot_of(node, from), s;

	for (s = first; (s = lowest(node->present, s)) != NO_SLOT; s++) {
		void *below = atomic_load_explicit(&node->slot[s], memory_order_relaxed);
		uint32_t start = base | (uint32_t)s << node->shift;

		if (node->shift == 0) {
			*index = start;
			return below;
		}
		below = next_below(below, s == first ? from : 0, start, index);
		if (below != NULL)
			return below;
	}
	return NULL;
}

void *
index_map_next(const struct index_map *map, uint32_t *index)
{
	const struct index_node *root = root_of(map);

	if (map->single != NULL) {
		if (map->single_index < *index)
			return NULL;
		*index = map->single_index;
		return map->single;
	}
	if (root == NULL || !node_covers(root, *index))
		return NULL;
	return next_below(root, *index, 0, index);
}

/* The lowest free index below `node` that is >= from, or UINT64_MAX. */
static uint64_t
free_below(const struct index_node *node, uint32_t from, uint64_t base)
{
	unsigned int first = slot_of(node, from), s;

	for (s = first; (s = lowest(~node->full, s)) != NO_SLOT; s++) {
		const struct index_node *below =
			atomic_load_explicit(&node->slot[s], memory_order_relaxed);
		uint32_t rest = s == first ? from & ((UINT32_C(1) << node->shift) - 1) : 0;
		uint64_t start = base + ((uint64_t)s << node->shift), found;

		if (node->shift == 0 || below == NULL)
			return start + rest;
		if ((found = free_below(below, rest, start)) != UINT64_MAX)
			return found;
	}
	return UINT64_MAX;
}

int
index_map_lowest_free(const struct index_map *map, uint32_t max, uint32_t *index)
{
	const struct index_node *root = root_of(map);
	uint64_t found = *index;

	if (map->single != NULL)
		found += map->single_index == *index;
	else if (root != NULL && node_covers(root, *index)) {
		found = free_below(root, *index, 0);
		if (found == UINT64_MAX)
			found = (uint64_t)FAN << root->shift;
	}
	if (found > max)
		return -ENOSPC;
	*index = (uint32_t)found;
	return 0;
}
