/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The look-up structures: rte_fib (DIR-24-8) and rte_fib6 (a trie). They have a fixed size: small
 * at first, and copied into one eight times as large when full, which takes a moment once in a
 * while.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_fib.h>
#include <rte_fib6.h>

#include "internal.h"

#define FIB_ROUTES_FIRST 8192
#define FIB_TBL8S_FIRST 2048
#define FIB_TBL8S_FIRST6 8192
#define FIB_GROWTH 8
#define FIB_ROUTES_MAX (8192 << 12)

void
route_fib_free(struct route_fib *fib)
{
	rte_fib_free(fib->v4);
	rte_fib6_free(fib->v6);
	free(fib);
}

static void
fib_free_rcu(struct rcu_head *head)
{
	route_fib_free(RTE_PTR_SUB(head, offsetof(struct route_fib, rcu)));
}

static struct route_fib *
fib_create(struct route_table *t, uint8_t family, uint32_t routes, uint32_t tbl8s)
{
	struct route_fib *fib = calloc(1, sizeof(*fib));
	char name[32];

	if (fib == NULL)
		return NULL;
	fib->routes = routes;
	fib->tbl8s = tbl8s;
	snprintf(name, sizeof(name), "r%x_%u", (unsigned int)(uintptr_t)t, t->fibs_made++);
	if (family == AF_INET) {
		struct rte_fib_conf conf = { .type = RTE_FIB_DIR24_8,
			.max_routes = (int)routes,
			.dir24_8 = { .nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = tbl8s } };

		fib->v4 = rte_fib_create(name, t->conf.socket, &conf);
	} else {
		struct rte_fib6_conf conf = { .type = RTE_FIB6_TRIE,
			.max_routes = (int)routes,
			.trie = { .nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = tbl8s } };

		fib->v6 = rte_fib6_create(name, t->conf.socket, &conf);
	}
	if (fib->v4 == NULL && fib->v6 == NULL) {
		free(fib);
		return NULL;
	}
	return fib;
}

static uint32_t
host_order(const uint8_t *dst)
{
	uint32_t be;

	memcpy(&be, dst, sizeof(be));
	return rte_be_to_cpu_32(be);
}

static int
fib_write(struct route_fib *fib, const uint8_t *dst, uint8_t len, uint32_t id)
{
	/*
	 * Relaxed and a release fence: whoever sees any of the stores below, and looks at the
	 * counter after an acquire fence, sees it moved.
	 */
	atomic_store_explicit(&fib->changes,
		atomic_load_explicit(&fib->changes, memory_order_relaxed) + 1,
		memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	if (fib->v4 != NULL)
		return id != 0 ? rte_fib_add(fib->v4, host_order(dst), len, id)
			       : rte_fib_delete(fib->v4, host_order(dst), len);
	return id != 0 ? rte_fib6_add(fib->v6, dst, len, id) : rte_fib6_delete(fib->v6, dst, len);
}

/* The heads of all prefixes but the one that is about to be put in. */
static int
fib_fill(struct route_table *t, uint8_t family, struct route_fib *fib, const uint8_t *but,
	uint8_t len)
{
	struct route_family *f = route_family(t, family);
	struct route *r, *last = NULL;
	int ret;

	RB_FOREACH (r, route_tree, &f->routes) {
		bool same = last != NULL && last->len == r->len &&
			memcmp(last->dst, r->dst, sizeof(r->dst)) == 0;

		last = r;
		if (same || (r->len == len && memcmp(r->dst, but, sizeof(r->dst)) == 0))
			continue;
		if ((ret = fib_write(fib, r->dst, r->len, r->set->id)) != 0)
			return ret;
	}
	return 0;
}

static int
fib_grow(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len, uint32_t id)
{
	struct route_family *f = route_family(t, family);
	struct route_fib *old = atomic_load_explicit(&f->fib, memory_order_relaxed), *fib;
	uint32_t routes = old == NULL ? FIB_ROUTES_FIRST : old->routes * FIB_GROWTH;
	uint32_t tbl8s = old != NULL ? old->tbl8s * FIB_GROWTH
		: family == AF_INET6 ? FIB_TBL8S_FIRST6
				     : FIB_TBL8S_FIRST;

	if (routes > FIB_ROUTES_MAX)
		return -ENOMEM;
	if ((fib = fib_create(t, family, routes, tbl8s)) == NULL)
		return -ENOMEM;
	if (fib_fill(t, family, fib, dst, len) != 0 || fib_write(fib, dst, len, id) != 0) {
		route_fib_free(fib);
		return -ENOMEM;
	}
	/* Release: a worker that loads the pointer sees the table filled. */
	atomic_store_explicit(&f->fib, fib, memory_order_release);
	if (old != NULL)
		rcu_defer(t->conf.rcu, &old->rcu, fib_free_rcu);
	return 0;
}

int
route_fib_set(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len, uint32_t id)
{
	struct route_fib *fib =
		atomic_load_explicit(&route_family(t, family)->fib, memory_order_relaxed);

	int ret = 0;

	if (fib == NULL || fib_write(fib, dst, len, id) != 0)
		ret = fib_grow(t, family, dst, len, id);
	if (ret == 0)
		route_moved(t);
	return ret;
}

void
route_fib_unset(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len)
{
	struct route_fib *fib =
		atomic_load_explicit(&route_family(t, family)->fib, memory_order_relaxed);

	if (fib == NULL)
		return;
	(void)fib_write(fib, dst, len, 0);
	route_moved(t);
}
