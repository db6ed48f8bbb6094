/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_LINK_H
#define IPSEC_CACHE_LINK_H

/*
 * A hash table whose members carry their own links: adding never allocates, and removing touches
 * one pointer.
 *
 * Thread safety: the control thread changes it, workers walk it at the same time. What was removed
 * keeps its link until it is freed after a grace period, so that a walk that stands on it goes on.
 * A walk that runs beside an add or a remove may or may not see that one member, and sees all
 * others: members never move.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_malloc.h>

struct ipsec_link {
	_Atomic(struct ipsec_link *) next;
	uint32_t hash;
};

struct ipsec_links {
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

	link->hash = hash;
	atomic_store_explicit(&link->next, atomic_load_explicit(bucket, memory_order_relaxed),
		memory_order_relaxed);
	/* Release: the member is whole when it can be found. */
	atomic_store_explicit(bucket, link, memory_order_release);
}

static inline void
ipsec_links_remove(struct ipsec_links *t, struct ipsec_link *link)
{
	_Atomic(struct ipsec_link *) *at = &t->buckets[link->hash & t->mask];
	struct ipsec_link *l;

	while ((l = atomic_load_explicit(at, memory_order_relaxed)) != link)
		at = &l->next;
	/* Release: the next one may have been published by this thread only just before. */
	atomic_store_explicit(
		at, atomic_load_explicit(&link->next, memory_order_relaxed), memory_order_release);
}

#endif /* IPSEC_CACHE_LINK_H */
