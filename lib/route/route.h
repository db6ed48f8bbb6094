/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ROUTE_ROUTE_H
#define ROUTE_ROUTE_H

/*
 * Addresses, routes, next hops and neighbours of one router, IPv4 and IPv6.
 *
 * What packets need is a hop: one cache line with the 14 bytes of the Ethernet header that goes in
 * front of the packet, the port and its MTU, or the reason why there is none. Hops are immutable:
 * a change makes a new one, publishes it and frees the old one after a grace period, so that no
 * packet ever sees half of an address.
 *
 *   destination --rte_fib--> hop number --array--> struct route_hop
 *
 * The numbers are what the 500 k entries of a table hold; a neighbour that moves changes one
 * pointer.
 *
 * Why rte_fib may change in place under readers: it writes each entry whole and fills a
 * second-level table before it links it. The one hazard is a second-level table that is given back
 * and used again for another prefix between a reader's two loads. A counter is bumped before each
 * change; a reader that sees it moved during its burst looks up again. A writer that is preempted
 * delays nobody. (This leans on stores becoming visible in program order within rte_fib, as on
 * x86.)
 *
 * Thread safety: workers call route_lookup4(), route_lookup6(), route_hop_select() and
 * route_neigh_lookup() between two reports of quiescence, and keep no pointer beyond. All else is
 * for the one control thread. Addresses are in network byte order unless said otherwise; IPv4 ones
 * stand in the first four bytes.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "rcu/rcu.h"

#define ROUTE_ADDR_LEN 16
#define ROUTE_PATHS_MAX 32 /* next hops of one route */
#define ROUTE_WEIGHT_MAX 256
#define ROUTE_BUCKETS 256 /* of a group of next hops */
#define ROUTE_HOPS_MAX 65536 /* distinct next hops and groups */
#define ROUTE_NEIGH_MAX 8192 /* neighbours, both families */
#define ROUTE_INCOMPLETE_MAX 256 /* ... that are being looked for at a time */
#define ROUTE_WAITING_MAX 3 /* packets that wait for one neighbour */

/* What happens to a packet. */
enum route_kind {
	ROUTE_NONE, /* no route */
	ROUTE_FORWARD, /* rewrite is valid */
	ROUTE_RESOLVE, /* the neighbour `nexthop` is not known yet */
	ROUTE_CONNECTED, /* the destination is a neighbour on the device: route_neigh_lookup() */
	ROUTE_GROUP, /* several: route_hop_select() */
	ROUTE_LOCAL, /* an address of ours */
	ROUTE_BROADCAST, /* of a subnet of ours */
	ROUTE_BLACKHOLE, /* dropped without a word */
	ROUTE_UNREACHABLE, /* host unreachable */
	ROUTE_PROHIBIT, /* administratively prohibited */
};

struct route_hop {
	/*
	 * Two bytes of nothing, then destination, source and type: one 16-byte store that ends
	 * where layer 3 begins.
	 */
	uint8_t rewrite[16];
	uint8_t nexthop[ROUTE_ADDR_LEN]; /* gateway */
	uint8_t kind; /* enum route_kind */
	uint8_t family;
	uint16_t port;
	uint32_t ifindex;
	uint32_t mtu;
	_Atomic uint8_t *used; /* workers set the neighbour's mark; NULL: none */
	const uint32_t *buckets; /* ROUTE_GROUP: hop numbers, ROUTE_BUCKETS of them */
} __rte_cache_aligned;
static_assert(sizeof(struct route_hop) == 64, "a hop is one cache line");

struct route_table;
struct route_neigh;
struct route;

/* Devices: the caller's ports. */
struct route_dev {
	uint32_t ifindex;
	uint16_t port;
	uint8_t mac[6];
	uint32_t mtu;
	bool up;
};

/* What changed, for those who listen (netlink's monitor groups). */
enum route_event {
	ROUTE_EVENT_ADDRESS_ADD,
	ROUTE_EVENT_ADDRESS_DEL,
	ROUTE_EVENT_ROUTE_ADD,
	ROUTE_EVENT_ROUTE_REPLACE,
	ROUTE_EVENT_ROUTE_DEL,
	ROUTE_EVENT_NEIGH_CHANGE,
	ROUTE_EVENT_NEIGH_DEL,
};

struct route_conf {
	struct rcu *rcu;
	int socket; /* NUMA socket of the tables, or -1 */
	/* All are called by the control thread, from within the calls below. */
	void *arg;
	/* Ask the wire for the neighbour's link address; `unicast`: at the one it is known to have.
	 */
	void (*solicit)(void *arg, const struct route_neigh *neigh, bool unicast);
	/*
	 * Packets that waited for a neighbour: it is there, or (`failed`) is not, or they had to
	 * make room. Takes them over.
	 */
	void (*release)(void *arg, const struct route_neigh *neigh, void *const *pkts,
		unsigned int n, bool failed);
	/*
	 * What look-ups say has changed, for those who keep hops beyond a burst: called after the
	 * change is published and before what it replaced is handed to rcu_defer(). May be NULL.
	 */
	void (*moved)(void *arg);
};

/* NULL and rte_errno: ENOMEM. The tables for packets are made with the first address or route. */
struct route_table *route_table_create(const struct route_conf *conf);
/* After every reader has gone; NULL accepted. Packets that wait are released as failed. */
void route_table_destroy(struct route_table *table);
/* One listener: object is a struct route_address, route or route_neigh. NULL: none. */
void route_listen(struct route_table *table,
	void (*fn)(void *arg, enum route_event event, const void *object), void *arg);
/* Grows with each change of addresses, routes and neighbours. */
uint64_t route_generation(const struct route_table *table);
/* Timers: call some times a second with a clock in milliseconds. */
void route_tick(struct route_table *table, uint64_t now_ms);

/*
 * Adds or changes a device. Routes through a device that goes down go, its addresses stay and bring
 * their routes back when it comes up (Linux's fib_disable_ip()). 0 or -ENOMEM.
 */
int route_dev_set(struct route_table *table, const struct route_dev *dev);
/* Takes its addresses, routes and neighbours with it. */
void route_dev_del(struct route_table *table, uint32_t ifindex);
const struct route_dev *route_dev_find(const struct route_table *table, uint32_t ifindex);

/* --- packets --- */

/* Hops for n destinations (host order). Never NULL. n <= 64. */
void route_lookup4(const struct route_table *table, const uint32_t *dst,
	const struct route_hop **hops, unsigned int n);
/* The same for IPv6 destinations. */
void route_lookup6(const struct route_table *table, uint8_t dst[][ROUTE_ADDR_LEN],
	const struct route_hop **hops, unsigned int n);
/* The member of a group for a flow's hash: stable while the group's other members come and go. */
const struct route_hop *
route_hop_select(const struct route_table *table, const struct route_hop *group, uint32_t hash);
/* A neighbour's hop (FORWARD or RESOLVE), or NULL if nobody asked for it yet. */
const struct route_hop *route_neigh_lookup(
	const struct route_table *table, uint32_t ifindex, uint8_t family, const void *addr);

/* CONNECTED: the neighbour's hop, if somebody asked for it; else the same. dst: the destination. */
static inline const struct route_hop *
route_hop_near(const struct route_table *table, const struct route_hop *hop, uint8_t family,
	const void *dst)
{
	const struct route_hop *neigh = NULL;

	if (hop->kind == ROUTE_CONNECTED)
		neigh = route_neigh_lookup(table, hop->ifindex, family, dst);
	return neigh != NULL ? neigh : hop;
}

/* Says that packets go this way, which is what makes a stale neighbour be probed. */
static inline void
route_hop_use(const struct route_hop *hop)
{
	/* Relaxed: a mark that is seen late is seen in the next tick. */
	if (hop->used != NULL && atomic_load_explicit(hop->used, memory_order_relaxed) == 0)
		atomic_store_explicit(hop->used, 1, memory_order_relaxed);
}

/* --- addresses --- */

struct route_address {
	uint32_t ifindex;
	uint8_t family;
	uint8_t len;
	uint8_t scope; /* RT_SCOPE_* */
	uint8_t protocol; /* IFAPROT_* */
	bool has_broadcast;
	bool no_prefix_route; /* IFA_F_NOPREFIXROUTE */
	bool secondary; /* IPv4: another address of the device in its subnet came first */
	uint8_t addr[ROUTE_ADDR_LEN];
	uint8_t broadcast[4];
	char label[16]; /* IPv4; "" none */
};

/*
 * Adds an address with its routes: local, broadcasts and the connected subnet. 0, -EEXIST, -ENODEV,
 * -EADDRNOTAVAIL (not a host's address), -EINVAL (prefix length), -ENOMEM.
 */
int route_address_add(struct route_table *table, const struct route_address *address);
/* len 0: any. 0 or -EADDRNOTAVAIL. */
int route_address_del(
	struct route_table *table, uint32_t ifindex, uint8_t family, const void *addr, uint8_t len);
/* The nth, in the order they were added; NULL at the end. */
const struct route_address *route_address_nth(const struct route_table *table, unsigned int n);
/* The one with that address on any (ifindex 0) or that device, or NULL. */
const struct route_address *route_address_find(
	const struct route_table *table, uint32_t ifindex, uint8_t family, const void *addr);
/* A source address for packets that leave by that device towards dst, or NULL if there is none. */
const struct route_address *route_address_source(
	const struct route_table *table, uint32_t ifindex, uint8_t family, const void *dst);

/* --- routes --- */

struct route_path {
	uint8_t gateway[ROUTE_ADDR_LEN];
	uint32_t ifindex; /* 0: where the gateway is */
	uint16_t weight; /* 1..ROUTE_WEIGHT_MAX */
	bool has_gateway;
	bool onlink; /* the gateway is there though no subnet says so */
};

struct route_spec {
	uint8_t family;
	uint8_t len;
	uint8_t type; /* RTN_UNICAST, RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_LOCAL,
			 RTN_BROADCAST */
	uint8_t protocol; /* RTPROT_* */
	uint8_t scope; /* RT_SCOPE_* */
	bool local; /* of table local, not main */
	bool has_prefsrc;
	uint8_t dst[ROUTE_ADDR_LEN];
	uint8_t prefsrc[ROUTE_ADDR_LEN];
	uint32_t metric;
	uint32_t
		mtu; /* what is longer is fragmented or refused; 0: the device's, which bounds it */
	uint32_t advmss; /* kept and shown: nothing here speaks TCP; 0: none */
	unsigned int n_paths;
	struct route_path paths[ROUTE_PATHS_MAX];
};

/* How a route is put in: Linux's NLM_F_* of the same names. */
#define ROUTE_CREATE 0x1
#define ROUTE_EXCL 0x2
#define ROUTE_REPLACE 0x4
#define ROUTE_APPEND 0x8
/* Ours: gateways are taken as they are, with devices, whether a route leads to them or not. */
#define ROUTE_AS_IT_WAS 0x10

/*
 * Adds a route. 0 or -errno with *why a sentence (NULL: none), nothing changed: -EEXIST, -ENOENT
 * (REPLACE without CREATE), -EINVAL, -ENETUNREACH, -EHOSTUNREACH, -ENODEV, -ENETDOWN, -ENOSPC,
 * -ENOMEM.
 */
int route_add(struct route_table *table, const struct route_spec *spec, unsigned int flags,
	const char **why);
/*
 * Removes the first route that fits: destination, length and, unless 0, type, protocol, scope
 * (RT_SCOPE_NOWHERE: any), metric and paths. 0 or -ESRCH.
 */
int route_del(struct route_table *table, const struct route_spec *spec);

/* Removes all of table main. */
void route_flush(struct route_table *table, uint8_t family);

/* Its contents. */
void route_describe(const struct route *route, struct route_spec *spec);
/* The route behind `at` in the order family, destination, length; a zeroed one is before the first.
 */
struct route_at {
	uint64_t key[5];
};
const struct route *
route_next(const struct route_table *table, uint8_t family, struct route_at *at);
/*
 * The route that packets to dst take if they must leave by a device, and in *path its way there.
 */
const struct route *route_get_by_dev(const struct route_table *table, uint8_t family,
	const void *dst, uint32_t ifindex, struct route_path *path);
/*
 * The route that packets to dst take, and in *path (may be NULL) one way of it. NULL: none.
 */
const struct route *route_get(const struct route_table *table, uint8_t family, const void *dst,
	uint32_t hash, struct route_path *path);
unsigned int route_count(const struct route_table *table, uint8_t family);

/* --- neighbours --- */

struct route_neigh_info {
	uint32_t ifindex;
	uint8_t family;
	uint8_t addr[ROUTE_ADDR_LEN];
	uint16_t state; /* NUD_* */
	uint8_t flags; /* NTF_* */
	uint8_t protocol;
	bool has_lladdr;
	uint8_t lladdr[6];
	uint32_t probes;
	uint64_t confirmed, used, updated; /* ms since */
	uint32_t refs;
};

/* Sets a neighbour as `ip neigh` does; flags ROUTE_CREATE, EXCL, REPLACE. 0 or -errno. */
int
route_neigh_set(struct route_table *table, const struct route_neigh_info *info, unsigned int flags);
int route_neigh_del(struct route_table *table, uint32_t ifindex, uint8_t family, const void *addr);
/* NULL: not known. Those that nobody asked for are left out. */
const struct route_neigh *route_neigh_find(
	const struct route_table *table, uint32_t ifindex, uint8_t family, const void *addr);
/* The first whose number is greater than *after, which is set; NULL at the end. */
const struct route_neigh *route_neigh_next(struct route_table *table, uint64_t *after);
void route_neigh_describe(const struct route_table *table, const struct route_neigh *neigh,
	struct route_neigh_info *info);

/*
 * A packet needs that neighbour: keeps it (the release callback gives it back, at once if the
 * neighbour is there by now) and asks for the link address if nobody does. 0; -ENOBUFS: too many
 * are being looked for, -ENODEV, -ENOMEM: the packet is still the caller's.
 */
int route_neigh_wait(
	struct route_table *table, uint32_t ifindex, uint8_t family, const void *addr, void *pkt);

/* What the wire said about a neighbour. */
#define ROUTE_HEARD_CREATE 0x1 /* it asked us: learn it if it is new */
#define ROUTE_HEARD_SOLICITED 0x2 /* answered our question: it is reachable */
#define ROUTE_HEARD_OVERRIDE 0x4 /* a new link address replaces the one known */
void route_neigh_heard(struct route_table *table, uint32_t ifindex, uint8_t family,
	const void *addr, const uint8_t lladdr[6], unsigned int flags);

#endif /* ROUTE_ROUTE_H */
