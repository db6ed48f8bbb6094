/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What workers call. */

#include <rte_branch_prediction.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_jhash.h>

#include "internal.h"
#include "neigh_hash.h"

#define BURST 64

/*
 * Acquire pairs with the release store that published the hop: its fields are complete. An id from
 * the table stands for this hop until a grace period after the last route that held it was gone.
 */
static inline const struct route_hop *
hop_of(const struct route_table *t, uint64_t id)
{
	return atomic_load_explicit(&t->hops[id], memory_order_acquire);
}

/* Did the table change since? The fence keeps the look-up's loads before this one. */
static inline bool
changed_since(const struct route_fib *fib, uint64_t before)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&fib->changes, memory_order_relaxed) != before;
}

void
route_lookup4(const struct route_table *t, const uint32_t *dst, const struct route_hop **hops,
	unsigned int n)
{
	struct route_fib *fib = atomic_load_explicit(&t->families[0].fib, memory_order_acquire);
	uint64_t ids[BURST], before;

	if (unlikely(fib == NULL)) {
		for (unsigned int i = 0; i < n; i++)
			hops[i] = &t->none.hop;
		return;
	}
	do {
		before = atomic_load_explicit(&fib->changes, memory_order_acquire);
		rte_fib_lookup_bulk(fib->v4, (uint32_t *)(uintptr_t)dst, ids, (int)n);
	} while (unlikely(changed_since(fib, before)));
	for (unsigned int i = 0; i < n; i++)
		hops[i] = hop_of(t, ids[i]);
}

void
route_lookup6(const struct route_table *t, uint8_t dst[][ROUTE_ADDR_LEN],
	const struct route_hop **hops, unsigned int n)
{
	struct route_fib *fib = atomic_load_explicit(&t->families[1].fib, memory_order_acquire);
	uint64_t ids[BURST], before;

	if (unlikely(fib == NULL)) {
		for (unsigned int i = 0; i < n; i++)
			hops[i] = &t->none.hop;
		return;
	}
	do {
		before = atomic_load_explicit(&fib->changes, memory_order_acquire);
		rte_fib6_lookup_bulk(fib->v6, (void *)dst, ids, (int)n); /* as in fib.c */
	} while (unlikely(changed_since(fib, before)));
	for (unsigned int i = 0; i < n; i++)
		hops[i] = hop_of(t, ids[i]);
}

const struct route_hop *
route_hop_select(const struct route_table *t, const struct route_hop *group, uint32_t hash)
{
	return hop_of(t, group->buckets[hash % ROUTE_BUCKETS]);
}

const struct route_hop *
route_neigh_lookup(const struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	const struct route_neigh *n;
	const struct route_own_hop *own;

	/* Acquire, here and for next: a neighbour is filled in before it is linked. */
	n = atomic_load_explicit(
		&t->neigh_buckets[neigh_hash(ifindex, family, addr)], memory_order_acquire);
	for (; n != NULL; n = atomic_load_explicit(&n->next, memory_order_acquire)) {
		if (n->ifindex == ifindex && n->family == family &&
			route_addr_equal(family, n->addr, addr)) {
			own = atomic_load_explicit(&n->hop, memory_order_acquire);
			return own == NULL ? NULL : &own->hop;
		}
	}
	return NULL;
}
