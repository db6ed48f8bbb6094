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

/*
 * A reader that looks again (lookup.c) meets the change as a whole only if what rte_fib wrote first
 * is seen first: a second-level table before the entry that links it. x86 promises that of plain
 * stores.
 */
#if !defined(RTE_ARCH_X86)
#error "lib/route leans on stores becoming visible in program order within rte_fib, as on x86"
#endif

#define FIB_ROUTES_FIRST 8192
#define FIB_TBL8S_FIRST 2048
#define FIB_TBL8S_FIRST6 8192
#define FIB_GROWTH 8
#define FIB_DRIFT_MIN 64 /* changes beyond those that filled it */
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
	/* by way of void: bytes in DPDK 22.11, a structure around them later */
	return id != 0 ? rte_fib6_add(fib->v6, (const void *)dst, len, id)
		       : rte_fib6_delete(fib->v6, (const void *)dst, len);
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

/* The table anew, of that size, with one more route. */
static int
fib_renew(struct route_table *t, uint8_t family, uint32_t routes, uint32_t tbl8s,
	const uint8_t *dst, uint8_t len, uint32_t id)
{
	struct route_family *f = route_family(t, family);
	struct route_fib *old = atomic_load_explicit(&f->fib, memory_order_relaxed), *fib;

	if (routes > FIB_ROUTES_MAX || (fib = fib_create(t, family, routes, tbl8s)) == NULL)
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

/*
 * rte_fib6 counts the second-level tables that it may need by what stands around a prefix when it
 * comes and when it goes; where that differs, its count drifts, below zero too, and then there is
 * no room for anything. Copied, it has counted right. Only what does not fit then needs a larger
 * one.
 */
static bool
may_have_drifted(const struct route_family *f, const struct route_fib *fib)
{
	/* Relaxed: this thread alone writes it. */
	uint64_t changes = atomic_load_explicit(&fib->changes, memory_order_relaxed);

	return fib->v6 != NULL && f->n_routes < fib->routes &&
		changes > f->n_routes + FIB_DRIFT_MIN;
}

static int
fib_grow(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len, uint32_t id)
{
	struct route_family *f = route_family(t, family);
	struct route_fib *old = atomic_load_explicit(&f->fib, memory_order_relaxed);
	uint32_t tbl8s = family == AF_INET6 ? FIB_TBL8S_FIRST6 : FIB_TBL8S_FIRST;

	if (old == NULL)
		return fib_renew(t, family, FIB_ROUTES_FIRST, tbl8s, dst, len, id);
	if (may_have_drifted(f, old) &&
		fib_renew(t, family, old->routes, old->tbl8s, dst, len, id) == 0)
		return 0;
	return fib_renew(
		t, family, old->routes * FIB_GROWTH, old->tbl8s * FIB_GROWTH, dst, len, id);
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
