/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_LINK_H
#define IPSEC_CACHE_LINK_H

/*
 * A hash table whose members carry their own links: adding never allocates, and adding and removing
 * touch one pointer that workers read.
 *
 * Thread safety: the control thread changes it, workers walk it at the same time. What was removed
 * keeps its link until it is freed after a grace period, so that a walk that stands on it goes on.
 * A walk beside changes sees every member that was there all the while. It may miss both of two of
 * which one came before the other went: who has to know whether there is none at all asks again if
 * `removals` has grown.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_malloc.h>

struct ipsec_link {
	_Atomic(struct ipsec_link *) next;
	_Atomic(struct ipsec_link *) *at; /* what points to it: control thread only */
	uint32_t hash;
};

struct ipsec_links {
	_Atomic uint64_t removals; /* grows before each */
	uint32_t mask; /* buckets - 1 */
	_Atomic(struct ipsec_link *) *buckets;
};

/* 0 or -ENOMEM. */
static inline int
ipsec_links_create(struct ipsec_links *t, uint32_t n, int socket)
{
	n = rte_align32pow2(RTE_MAX(n, 64u));
	t->buckets = rte_zmalloc_socket(
		"ipsec_links", n * sizeof(*t->buckets), RTE_CACHE_LINE_SIZE, socket);
	t->mask = n - 1;
	return t->buckets != NULL ? 0 : -ENOMEM;
}

static inline void
ipsec_links_destroy(struct ipsec_links *t)
{
	rte_free(t->buckets);
	t->buckets = NULL;
}

/* Acquire: what a link points to was filled in before it was published. */
static inline struct ipsec_link *
ipsec_links_first(const struct ipsec_links *t, uint32_t hash)
{
	return atomic_load_explicit(&t->buckets[hash & t->mask], memory_order_acquire);
}

static inline struct ipsec_link *
ipsec_link_next(const struct ipsec_link *link)
{
	return atomic_load_explicit(&link->next, memory_order_acquire);
}

#define IPSEC_LINKS_FOREACH(link, table, hash) \
	for ((link) = ipsec_links_first(table, hash); (link) != NULL; \
		(link) = ipsec_link_next(link))

/* In front of the others of its bucket. */
static inline void
ipsec_links_add(struct ipsec_links *t, struct ipsec_link *link, uint32_t hash)
{
	_Atomic(struct ipsec_link *) *bucket = &t->buckets[hash & t->mask];
	struct ipsec_link *first = atomic_load_explicit(bucket, memory_order_relaxed);

	link->hash = hash;
	link->at = bucket;
	if (first != NULL)
		first->at = &link->next;
	atomic_store_explicit(&link->next, first, memory_order_relaxed);
	/* Release: the member is whole when it can be found. */
	atomic_store_explicit(bucket, link, memory_order_release);
}

static inline void
ipsec_links_remove(struct ipsec_links *t, struct ipsec_link *link)
{
	struct ipsec_link *next = atomic_load_explicit(&link->next, memory_order_relaxed);

	/* Release: whoever sees this number sees what was added before. */
	atomic_fetch_add_explicit(&t->removals, 1, memory_order_release);
	if (next != NULL)
		next->at = link->at;
	/*
	 * Release: whoever walks on without the member sees that there was a removal; and the next
	 * one may have been published by this thread only just before.
	 */
	atomic_store_explicit(link->at, next, memory_order_release);
}

/* Before a walk, and again behind it: equal numbers say that it missed nothing. */
static inline uint64_t
ipsec_links_removals(const struct ipsec_links *t)
{
	/*
	 * Acquire: what had been added before the removals that it counts is seen by the walk. The
	 * look behind a walk comes after its loads, which acquire too.
	 */
	return atomic_load_explicit(&t->removals, memory_order_acquire);
}

#endif /* IPSEC_CACHE_LINK_H */
