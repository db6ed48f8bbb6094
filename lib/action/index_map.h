/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ACTION_INDEX_MAP_H
#define ACTION_INDEX_MAP_H

/*
 * From a 32-bit number to a pointer: action indexes, rule handles, chains. What a dump and the
 * kernel's numbering ask of it, hash tables do not have: the next entry in order, and the lowest
 * free number; and it grows without ever moving what it holds.
 *
 * A radix tree of 64-way nodes, at most six deep, each with a bitmap of what is present and one of
 * what is full. Every call takes at most six steps whatever the number of entries. A map with one
 * entry costs no node (chains and priorities with one rule are many), unless it has readers.
 *
 * Thread safety: one control thread calls everything. A map made with an rcu may be read by
 * workers between two of their quiescent reports, through index_map_read() alone.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "action/slab.h"
#include "rcu/rcu.h"

struct index_node;

/* Zeroed memory is an empty map without readers or a slab. */
struct index_map {
	_Atomic(struct index_node *) root;
	struct rcu *rcu; /* not NULL: it has readers */
	struct slab *slab; /* where nodes are from; NULL: malloc() */
	void *single; /* the one entry, while there is no root and no reader */
	uint32_t single_index;
	uint32_t count;
};

/* Makes `map` empty. `rcu` NULL: no readers. Maps of millions take memory from a slab. */
void index_map_init(struct index_map *map, struct rcu *rcu, struct slab *slab);

/* Forgets all entries, and frees what the map itself used (after a grace period where it has
 * readers). */
void index_map_clear(struct index_map *map);

/* The entry, or NULL. */
void *index_map_find(const struct index_map *map, uint32_t index);

/* The same for a worker: sees an entry whole, with what was written before index_map_set(). */
void *index_map_read(const struct index_map *map, uint32_t index);

/* Puts `entry` (not NULL) at `index`, in place of what was there. 0 or -ENOMEM (nothing changed).
 */
int index_map_set(struct index_map *map, uint32_t index, void *entry);

/* Takes the entry out; returns it, or NULL if there was none. */
void *index_map_del(struct index_map *map, uint32_t index);

/* The entry with the lowest index >= *index, which is then that; NULL if there is none. */
void *index_map_next(const struct index_map *map, uint32_t *index);

/* The lowest index >= *index and <= max without an entry. 0 or -ENOSPC. */
int index_map_lowest_free(const struct index_map *map, uint32_t max, uint32_t *index);

#endif /* ACTION_INDEX_MAP_H */
