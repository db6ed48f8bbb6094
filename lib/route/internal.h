/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ROUTE_INTERNAL_H
#define ROUTE_INTERNAL_H

/* What the files of lib/route share. */

#include <bsd/sys/tree.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "route/route.h"

struct rte_fib;
struct rte_fib6;

#define NEIGH_BUCKETS 4096

/* One rte_fib. Replaced by a larger one when it is full. */
struct route_fib {
	_Atomic uint64_t changes; /* bumped before each change: see route.h */
	struct rte_fib *v4;
	struct rte_fib6 *v6;
	uint32_t routes, tbl8s; /* room for */
	struct rcu_head rcu;
};

/* Several routes with the same next hops share one set, and so one hop number. */
struct route_set {
	RB_ENTRY(route_set) tree;
	LIST_ENTRY(route_set) of_neigh;
	struct route_table *table;
	uint32_t id; /* hop number */
	uint32_t refs;
	uint8_t kind; /* ROUTE_CONNECTED stands for unicast: what it is depends on the path */
	uint8_t family;
	uint32_t mtu; /* of the routes, which is at most the device's; 0: the device's */
	struct route_neigh *neigh; /* one path with a gateway: whose hop is ours */
	struct route_set **members; /* several paths: a set for each */
	struct rcu_head rcu;
	unsigned int n_paths;
	struct route_path paths[]; /* the key, with kind, family and mtu */
};
RB_HEAD(route_sets, route_set);

/* An own hop of a set: not the one of its neighbour. */
struct route_own_hop {
	struct route_hop hop;
	struct rcu_head rcu;
	uint32_t buckets[]; /* of a group */
};

struct route {
	RB_ENTRY(route) tree;
	uint8_t dst[ROUTE_ADDR_LEN];
	uint8_t len;
	uint8_t family, type, protocol, scope;
	bool local, has_prefsrc;
	int64_t seq; /* among those with the same destination and metric */
	uint32_t metric;
	uint32_t advmss;
	uint8_t prefsrc[ROUTE_ADDR_LEN];
	struct route_set *set;
};
RB_HEAD(route_tree, route);

struct route_neigh {
	/* Workers read these. */
	_Atomic(struct route_neigh *) next; /* in its bucket */
	_Atomic(struct route_own_hop *) hop;
	uint32_t ifindex;
	uint8_t family;
	uint8_t addr[ROUTE_ADDR_LEN];
	_Atomic uint8_t used;

	/* Control thread only. */
	bool linked; /* in its bucket and the list */
	uint16_t state;
	uint8_t flags, protocol;
	bool has_lladdr;
	uint8_t lladdr[6];
	uint32_t probes;
	uint32_t refs; /* sets with it as their gateway */
	uint64_t number; /* grows with each new one: the order of dumps */
	uint64_t timer, confirmed, last_used, updated; /* ms */
	unsigned int n_waiting;
	void *waiting[ROUTE_WAITING_MAX];
	LIST_HEAD(, route_set) sets;
	TAILQ_ENTRY(route_neigh) all;
	struct rcu_head rcu;
};

struct route_device {
	struct route_dev dev;
	TAILQ_ENTRY(route_device) next;
};

struct route_address_entry {
	struct route_address address;
	TAILQ_ENTRY(route_address_entry) next;
};

struct route_family {
	_Atomic(struct route_fib *) fib; /* workers read it; NULL: no route yet */
	struct route_tree routes;
	uint32_t n_routes;
	uint32_t n_prefixes; /* in the fib */
	uint32_t by_len[129]; /* routes of each length: which are worth looking at */
};

struct route_table {
	/* Workers read these. */
	_Atomic(const struct route_hop *) hops[ROUTE_HOPS_MAX];
	_Atomic(struct route_neigh *) neigh_buckets[NEIGH_BUCKETS];
	struct route_family families[2]; /* IPv4, IPv6: the fib */

	/* Control thread only. */
	struct route_conf conf;
	struct route_sets sets;
	uint32_t *free_ids;
	uint32_t n_free_ids;
	uint32_t fibs_made; /* for names */
	uint64_t generation, now;
	TAILQ_HEAD(, route_device) devices;
	TAILQ_HEAD(, route_address_entry) addresses;
	TAILQ_HEAD(route_neigh_list, route_neigh) neighs;
	uint32_t n_neighs, n_incomplete;
	uint64_t neigh_number;
	const struct route_neigh *neigh_at; /* what route_neigh_next() returned last, or NULL */
	void (*listener)(void *arg, enum route_event event, const void *object);
	void *listener_arg;
	struct route_own_hop none; /* hop number 0 */
};

static inline unsigned int
route_addr_len(uint8_t family)
{
	return family == AF_INET6 ? 16 : 4;
}

static inline struct route_family *
route_family(struct route_table *t, uint8_t family)
{
	return &t->families[family == AF_INET6];
}

static inline bool
route_addr_equal(uint8_t family, const void *a, const void *b)
{
	return memcmp(a, b, route_addr_len(family)) == 0;
}

/* table.c */
void route_changed(struct route_table *t, enum route_event event, const void *object);
/* Look-ups say something else from now on: see struct route_conf. */
static inline void
route_moved(const struct route_table *t)
{
	if (t->conf.moved != NULL)
		t->conf.moved(t->conf.arg);
}
struct route_device *route_device_find(const struct route_table *t, uint32_t ifindex);
/* addr with the bits behind `len` cleared, the rest of the 16 bytes too. */
void route_mask(uint8_t family, const void *addr, uint8_t len, uint8_t out[ROUTE_ADDR_LEN]);
bool route_in_prefix(uint8_t family, const void *addr, const void *prefix, uint8_t len);

/* fib.c: what packets look up. A full one grows. 0, -ENOMEM. */
int
route_fib_set(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len, uint32_t id);
void route_fib_unset(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len);
void route_fib_free(struct route_fib *fib);

/* hop.c */
int route_set_compare(const struct route_set *a, const struct route_set *b);
RB_PROTOTYPE(route_sets, route_set, tree, route_set_compare);
struct route_set *route_set_get(struct route_table *t, uint8_t kind, uint8_t family, uint32_t mtu,
	const struct route_path *paths, unsigned int n_paths);
/* The set's neighbour has a new hop: makes it the set's too. 0 or -ENOMEM, the old one stays. */
int
route_set_follow(struct route_table *t, struct route_set *set, const struct route_own_hop *neigh);
void route_set_put(struct route_table *t, struct route_set *set);
/* Makes the hops of a device's sets anew: it changed. */
int route_sets_refresh(struct route_table *t, uint32_t ifindex);
void route_hop_publish(struct route_table *t, uint32_t id, const struct route_hop *hop);
struct route_own_hop *route_hop_alloc(struct route_table *t, size_t buckets);
void route_hop_retire(struct route_table *t, struct route_own_hop *hop);
void route_hop_free_now(struct route_own_hop *hop);

/* routes.c */
int route_compare(const struct route *a, const struct route *b);
RB_PROTOTYPE(route_tree, route, tree, route_compare);
/* The one that counts for exactly this prefix, or NULL. */
struct route *
route_head(const struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len);
/* The longest match on which `fits` agrees; NULL: none. */
struct route *route_match(const struct route_table *t, uint8_t family, const void *dst,
	bool (*fits)(const struct route *route, void *arg), void *arg);
void route_remove(struct route_table *t, struct route *r);
/* Routes whose every way is through that device. */
void routes_flush_dev(struct route_table *t, uint32_t ifindex, bool local_too);

/* address.c */
int route_addresses_up(struct route_table *t, uint32_t ifindex);
void route_addresses_flush(struct route_table *t, uint32_t ifindex);

/* neigh.c */
/* A neighbour that a set needs: made if it is new. */
struct route_neigh *
route_neigh_ref(struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr);
void route_neigh_unref(struct route_table *t, struct route_neigh *n);
int route_neighs_refresh(struct route_table *t, uint32_t ifindex);
/* With `all` even those that were set by hand. */
void route_neighs_flush(struct route_table *t, uint32_t ifindex, bool all);
void route_neighs_tick(struct route_table *t);
void route_neigh_free_now(struct route_neigh *n);

#endif /* ROUTE_INTERNAL_H */
