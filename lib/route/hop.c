/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Sets of next hops, their numbers and the hops behind them. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <rte_jhash.h>
#include <rte_malloc.h>

#include "internal.h"

static_assert(sizeof(struct route_path) == ROUTE_ADDR_LEN + 8, "a key has no padding");

int
route_set_compare(const struct route_set *a, const struct route_set *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	if (a->mtu != b->mtu)
		return a->mtu < b->mtu ? -1 : 1;
	if (a->n_paths != b->n_paths)
		return a->n_paths < b->n_paths ? -1 : 1;
	return memcmp(a->paths, b->paths, a->n_paths * sizeof(a->paths[0]));
}

RB_GENERATE(route_sets, route_set, tree, route_set_compare);

struct route_own_hop *
route_hop_alloc(struct route_table *t, size_t buckets)
{
	return rte_zmalloc_socket("route_hop",
		sizeof(struct route_own_hop) + buckets * sizeof(uint32_t), RTE_CACHE_LINE_SIZE,
		t->conf.socket);
}

void
route_hop_free_now(struct route_own_hop *hop)
{
	rte_free(hop);
}

static void
hop_free_rcu(struct rcu_head *head)
{
	rte_free(RTE_PTR_SUB(head, offsetof(struct route_own_hop, rcu)));
}

void
route_hop_retire(struct route_table *t, struct route_own_hop *hop)
{
	if (hop == NULL)
		return;
	route_moved(t);
	rcu_defer(t->conf.rcu, &hop->rcu, hop_free_rcu);
}

void
route_hop_publish(struct route_table *t, uint32_t id, const struct route_hop *hop)
{
	/* Release: the hop is complete before it can be found. */
	atomic_store_explicit(&t->hops[id], hop, memory_order_release);
	route_moved(t);
}

/* Its hop is that of a neighbour, not a copy with an MTU of its own. */
static bool
set_borrows(const struct route_set *set)
{
	return set->n_paths == 1 && set->paths[0].has_gateway && set->mtu == 0;
}

/* The set's own hop, if that is not its neighbour's. */
static struct route_own_hop *
set_own(struct route_table *t, const struct route_set *set)
{
	const struct route_hop *hop = atomic_load_explicit(&t->hops[set->id], memory_order_relaxed);

	if (set_borrows(set) || hop == &t->none.hop)
		return NULL;
	return (struct route_own_hop *)(uintptr_t)hop;
}

/* How much a bucket wants to be this path's: highest random weight, in proportion to `weight`. */
static double
bucket_score(const struct route_path *path, uint32_t bucket)
{
	uint32_t gateway[sizeof(path->gateway) / sizeof(uint32_t)], hash;
	double u;

	memcpy(gateway, path->gateway, sizeof(gateway));
	hash = rte_jhash_32b(gateway, sizeof(gateway) / sizeof(gateway[0]),
		rte_jhash_2words(bucket, path->ifindex, 0x6d696c6c));
	u = (hash + 1.0) / 4294967297.0;

	return -(double)path->weight / log(u);
}

static bool
path_alive(const struct route_table *t, const struct route_path *path)
{
	const struct route_device *d = route_device_find(t, path->ifindex);

	return d != NULL && d->dev.up;
}

/*
 * Each bucket goes to the member that wants it most, whoever else is there: one that leaves gives
 * up its own buckets and moves no other flow.
 */
static void
fill_buckets(struct route_table *t, const struct route_set *set, uint32_t *buckets)
{
	for (uint32_t b = 0; b < ROUTE_BUCKETS; b++) {
		double best = 0;

		buckets[b] = 0;
		for (unsigned int i = 0; i < set->n_paths; i++) {
			double score = bucket_score(&set->paths[i], b);

			if (!path_alive(t, &set->paths[i]) || score <= best)
				continue;
			best = score;
			buckets[b] = set->members[i]->id;
		}
	}
}

static int
set_build(struct route_table *t, struct route_set *set)
{
	struct route_own_hop *old = set_own(t, set), *own;
	const struct route_device *d;

	if (set->neigh != NULL)
		return 0;
	if ((own = route_hop_alloc(t, set->n_paths > 1 ? ROUTE_BUCKETS : 0)) == NULL)
		return -ENOMEM;
	own->hop.family = set->family;
	own->hop.kind = set->kind == ROUTE_FORWARD ? ROUTE_CONNECTED : set->kind;
	if (set->n_paths > 1) {
		own->hop.kind = ROUTE_GROUP;
		own->hop.buckets = own->buckets;
		fill_buckets(t, set, own->buckets);
	} else if (set->n_paths == 1) {
		own->hop.ifindex = set->paths[0].ifindex;
		if ((d = route_device_find(t, set->paths[0].ifindex)) != NULL) {
			own->hop.port = d->dev.port;
			own->hop.mtu = d->dev.mtu;
		}
	}
	route_hop_publish(t, set->id, &own->hop);
	route_hop_retire(t, old);
	return 0;
}

/* A number may be given out again when no worker can hold it from a look-up any more. */
static void
set_free_rcu(struct rcu_head *head)
{
	struct route_set *set = RTE_PTR_SUB(head, offsetof(struct route_set, rcu));
	struct route_table *t = set->table;

	route_hop_free_now(set_own(t, set));
	atomic_store_explicit(&t->hops[set->id], &t->none.hop, memory_order_relaxed);
	t->free_ids[t->n_free_ids++] = set->id;
	free(set->members);
	free(set);
}

void
route_set_put(struct route_table *t, struct route_set *set)
{
	if (--set->refs > 0)
		return;
	RB_REMOVE(route_sets, &t->sets, set);
	for (unsigned int i = 0; set->members != NULL && i < set->n_paths; i++) {
		if (set->members[i] != NULL)
			route_set_put(t, set->members[i]);
	}
	if (set->neigh != NULL) {
		/*
		 * Workers that have its number go on to find the neighbour's hop as it is now: that
		 * one dies, if it does, a grace period from now at the earliest.
		 */
		LIST_REMOVE(set, of_neigh);
		route_neigh_unref(t, set->neigh);
		set->neigh = NULL;
	}
	rcu_defer(t->conf.rcu, &set->rcu, set_free_rcu);
}

static int
set_members(struct route_table *t, struct route_set *set)
{
	if ((set->members = calloc(set->n_paths, sizeof(*set->members))) == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < set->n_paths; i++) {
		struct route_path path = set->paths[i];

		path.weight = 1;
		set->members[i] = route_set_get(t, set->kind, set->family, set->mtu, &path, 1);
		if (set->members[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
route_set_follow(struct route_table *t, struct route_set *set, const struct route_own_hop *neigh)
{
	struct route_own_hop *old = set_own(t, set), *copy;

	if (set->mtu == 0) {
		route_hop_publish(t, set->id, &neigh->hop);
		return 0;
	}
	if ((copy = route_hop_alloc(t, 0)) == NULL)
		return -ENOMEM;
	memcpy(&copy->hop, &neigh->hop, sizeof(copy->hop));
	copy->hop.mtu = RTE_MIN(set->mtu, neigh->hop.mtu);
	route_hop_publish(t, set->id, &copy->hop);
	route_hop_retire(t, old);
	return 0;
}

static int
set_gateway(struct route_table *t, struct route_set *set)
{
	const struct route_path *path = &set->paths[0];
	struct route_own_hop *own;

	set->neigh = route_neigh_ref(t, path->ifindex, set->family, path->gateway);
	if (set->neigh == NULL)
		return -ENOMEM;
	LIST_INSERT_HEAD(&set->neigh->sets, set, of_neigh);
	own = atomic_load_explicit(&set->neigh->hop, memory_order_relaxed);
	return route_set_follow(t, set, own);
}

static struct route_set *
set_create(struct route_table *t, const struct route_set *key)
{
	size_t size = sizeof(*key) + key->n_paths * sizeof(key->paths[0]);
	struct route_set *set;
	int ret;

	if (t->n_free_ids == 0 || (set = calloc(1, size)) == NULL)
		return NULL;
	memcpy(set, key, size);
	set->table = t;
	set->refs = 1;
	set->id = t->free_ids[--t->n_free_ids];
	RB_INSERT(route_sets, &t->sets, set);
	if (set->n_paths > 1)
		ret = set_members(t, set);
	else
		ret = set->n_paths == 1 && set->paths[0].has_gateway ? set_gateway(t, set) : 0;
	if (ret == 0 && set_build(t, set) == 0)
		return set;
	route_set_put(t, set);
	return NULL;
}

struct route_set *
route_set_get(struct route_table *t, uint8_t kind, uint8_t family, uint32_t mtu,
	const struct route_path *paths, unsigned int n_paths)
{
	union {
		struct route_set set;
		uint8_t room[sizeof(struct route_set) +
			ROUTE_PATHS_MAX * sizeof(struct route_path)];
	} key = { 0 };
	struct route_set *set;

	key.set.kind = kind;
	key.set.family = family;
	key.set.mtu = mtu;
	key.set.n_paths = n_paths;
	memcpy(key.room + offsetof(struct route_set, paths), paths, n_paths * sizeof(*paths));
	if ((set = RB_FIND(route_sets, &t->sets, &key.set)) != NULL) {
		set->refs++;
		return set;
	}
	return set_create(t, &key.set);
}

int
route_sets_refresh(struct route_table *t, uint32_t ifindex)
{
	struct route_set *set;
	int ret = 0;

	RB_FOREACH (set, route_sets, &t->sets) {
		for (unsigned int i = 0; i < set->n_paths; i++) {
			if (set->paths[i].ifindex != ifindex)
				continue;
			if (set_build(t, set) != 0)
				ret = -ENOMEM;
			break;
		}
	}
	return ret;
}
