/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Look-ups beside changes: one thread adds, replaces and deletes nested routes of both families,
 * makes neighbours move, lets the tables grow, while others look up what lies below them. What a
 * look-up says must have been right at some moment of it: if no route above the destination changed
 * meanwhile, exactly the longest one that is there; else one that covers the destination. A hop's
 * bytes are of one piece.
 *
 * stress [-s seconds] [-r seed] [-w readers]; ROUTE_STRESS_SECONDS as -s
 */

#include <err.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>

#include <bsd/stdlib.h>
#include <rte_byteorder.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"
#include "route/route.h"
#include "route_stubs.h"
#include "stress/heap.h"
#include "support.h"

#define READERS_MAX 8
#define TREES 24 /* of nested prefixes, a family */
#define DEPTH 5 /* of a tree; the first is always there */
#define GATEWAYS 60
#define BURST 32

/* One prefix, and what the writer has put there. */
struct prefix {
	_Atomic uint32_t version; /* odd: being changed */
	_Atomic uint32_t gateway; /* 0: no such route */
};

static struct prefix prefixes[2][TREES][DEPTH];
static const uint32_t fill_max[2] = { 20000, 4000 }; /* routes that make the tables grow */
static const uint8_t lengths[2][DEPTH] = { { 12, 16, 22, 26, 32 }, { 32, 48, 56, 64, 128 } };
static struct route_table *table;
static struct rte_rcu_qsbr *qsbr;
static _Atomic bool stop;

struct reader {
	pthread_t thread;
	unsigned int id;
	uint64_t rng, exact, loose;
};

static uint64_t
next_random(uint64_t *rng)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return *rng;
}

/*
 * The address of a tree whose first `level` levels are on the way: 10.T.L2.. with a bit set behind
 * each shorter prefix, so that deeper prefixes lie in the shallower ones.
 */
static void
address_of(unsigned int family, unsigned int tree, unsigned int level, uint8_t addr[16])
{
	unsigned int bytes = family == 0 ? 4 : 16;

	memset(addr, 0, 16);
	addr[0] = family == 0 ? 10 : 0x20;
	/* The tree's number stands in the bits of the shortest prefix. */
	addr[1] = (uint8_t)(tree << 4);
	if (family == 0)
		addr[0] = (uint8_t)(10 + (tree >> 4));
	else
		addr[2] = (uint8_t)tree;
	for (unsigned int k = 1; k <= level; k++) {
		unsigned int bit = lengths[family][k] - 1u;

		addr[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	}
	if (level < DEPTH - 1 && level > 0)
		addr[bytes - 1] |= 2; /* no deeper one */
}

/* --- readers --- */

static unsigned int
gateway_of(const struct route_hop *hop)
{
	unsigned int version;

	if (hop->kind == ROUTE_FORWARD) {
		/* The MAC address: 02, four times the version of the moment, the gateway. */
		version = hop->rewrite[3];
		if (hop->rewrite[4] != version || hop->rewrite[5] != version ||
			hop->rewrite[6] != version)
			errx(1, "a torn hop");
		if (hop->rewrite[7] != hop->nexthop[hop->family == AF_INET ? 3 : 15])
			errx(1, "a hop with the address of another");
	} else if (hop->kind != ROUTE_RESOLVE) {
		return 0;
	}
	return hop->nexthop[hop->family == AF_INET ? 3 : 15];
}

struct look {
	unsigned int family, tree, level;
	uint32_t version[DEPTH], gateway[DEPTH];
};

static void
look_begin(struct look *look, unsigned int family, uint64_t *rng)
{
	look->family = family;
	look->tree = (unsigned int)(next_random(rng) % TREES);
	look->level = (unsigned int)(next_random(rng) % DEPTH);
	for (unsigned int k = 0; k <= look->level; k++) {
		const struct prefix *p = &prefixes[family][look->tree][k];

		/* Acquire: what is written before the version is even is seen by the look-up. */
		look->version[k] = atomic_load_explicit(&p->version, memory_order_acquire);
		look->gateway[k] = atomic_load_explicit(&p->gateway, memory_order_acquire);
	}
}

/* Gateways carry the level in their number: which prefix it was is seen from it. */
static void
look_end(struct reader *r, const struct look *look, const struct route_hop *hop)
{
	unsigned int got = gateway_of(hop), want = 0;
	bool still = true;

	/* The look-up's loads come before those. */
	atomic_thread_fence(memory_order_acquire);
	for (unsigned int k = 0; k <= look->level; k++) {
		const struct prefix *p = &prefixes[look->family][look->tree][k];

		if (look->version[k] % 2 != 0 ||
			atomic_load_explicit(&p->version, memory_order_relaxed) != look->version[k])
			still = false;
		else if (look->gateway[k] != 0)
			want = look->gateway[k];
	}
	if (got == 0 || got % DEPTH > look->level)
		errx(1, "family %u, tree %u, level %u: a hop that was never right: gateway %u",
			look->family, look->tree, look->level, got);
	if (still && got != want)
		errx(1, "family %u, tree %u, level %u: gateway %u, not %u, and nothing changed",
			look->family, look->tree, look->level, got, want);
	r->exact += still;
	r->loose += !still;
}

static void
read_burst(struct reader *r, unsigned int family)
{
	const struct route_hop *hops[BURST];
	uint8_t dst[BURST][ROUTE_ADDR_LEN];
	struct look looks[BURST];
	uint32_t dst4[BURST];

	for (unsigned int i = 0; i < BURST; i++) {
		look_begin(&looks[i], family, &r->rng);
		address_of(family, looks[i].tree, looks[i].level, dst[i]);
		memcpy(&dst4[i], dst[i], 4);
		dst4[i] = rte_be_to_cpu_32(dst4[i]);
	}
	if (family == 0)
		route_lookup4(table, dst4, hops, BURST);
	else
		route_lookup6(table, dst, hops, BURST);
	for (unsigned int i = 0; i < BURST; i++)
		look_end(r, &looks[i], hops[i]);
}

static void *
reader_main(void *arg)
{
	struct reader *r = arg;

	rte_rcu_qsbr_thread_online(qsbr, r->id);
	/* Relaxed: ends the loop, orders nothing. */
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		read_burst(r, 0);
		read_burst(r, 1);
		rte_rcu_qsbr_quiescent(qsbr, r->id);
	}
	rte_rcu_qsbr_thread_offline(qsbr, r->id);
	return NULL;
}

/* --- the writer --- */

static void
gateway_address(unsigned int family, unsigned int gateway, uint8_t addr[16])
{
	static const uint8_t nets[2][16] = { { 198, 18 }, { 0x20, 0x01, 0x0d, 0xb8 } };

	memcpy(addr, nets[family], 16);
	addr[family == 0 ? 3 : 15] = (uint8_t)gateway;
}

static void
spec_fill(struct route_spec *spec, unsigned int family, unsigned int gateway)
{
	memset(spec, 0, sizeof(*spec));
	spec->family = family == 0 ? AF_INET : AF_INET6;
	spec->type = RTN_UNICAST;
	spec->scope = RT_SCOPE_NOWHERE; /* a deletion asks for any */
	if (gateway == 0)
		return;
	spec->scope = RT_SCOPE_UNIVERSE;
	spec->n_paths = 1;
	spec->paths[0].has_gateway = true;
	spec->paths[0].weight = 1;
	gateway_address(family, gateway, spec->paths[0].gateway);
}

/* gateway 0: deletes. */
static void
change(unsigned int family, unsigned int tree, unsigned int level, unsigned int gateway)
{
	struct prefix *p = &prefixes[family][tree][level];
	uint32_t version = atomic_load_explicit(&p->version, memory_order_relaxed);
	struct route_spec spec;
	const char *why;
	int ret;

	spec_fill(&spec, family, gateway);
	spec.len = lengths[family][level];
	address_of(family, tree, level, spec.dst);
	if (level > 0 && level < DEPTH - 1)
		spec.dst[family == 0 ? 3 : 15] &= (uint8_t)~2;
	atomic_store_explicit(&p->version, version + 1, memory_order_relaxed);
	/* Release: who sees the route changed, or half so, sees the version odd. */
	atomic_thread_fence(memory_order_release);
	ret = gateway == 0 ? route_del(table, &spec)
			   : route_add(table, &spec, ROUTE_CREATE | ROUTE_REPLACE, &why);
	if (ret != 0)
		errx(1, "family %u, tree %u, level %u: %s", family, tree, level, strerror(-ret));
	atomic_store_explicit(&p->gateway, gateway, memory_order_relaxed);
	/* Release: the change before its end. */
	atomic_store_explicit(&p->version, version + 2, memory_order_release);
}

static void
move_neighbour(unsigned int family, unsigned int gateway, uint8_t version)
{
	struct route_neigh_info info = { .ifindex = 1,
		.family = family == 0 ? AF_INET : AF_INET6,
		.state = version % 8 == 0 ? NUD_FAILED : NUD_REACHABLE,
		.has_lladdr = true,
		.lladdr = { 2, version, version, version, version, (uint8_t)gateway } };

	gateway_address(family, gateway, info.addr);
	if (route_neigh_set(table, &info, ROUTE_CREATE | ROUTE_REPLACE) != 0)
		errx(1, "a neighbour cannot be set");
}

/* Routes that nobody looks up, most of them with second-level tables of their own. */
static void
fill(unsigned int family, uint32_t n)
{
	struct route_spec spec;
	const char *why;

	spec_fill(&spec, family, 1);
	spec.len = family == 0 ? 28 : 60;
	spec.dst[0] = family == 0 ? 172 : 0x30;
	spec.dst[1] = (uint8_t)(n >> 16);
	spec.dst[2] = (uint8_t)(n >> 8);
	spec.dst[3] = (uint8_t)(family == 0 ? n << 4 : n);
	if (family == 0)
		spec.dst[1] = (uint8_t)(n >> 12), spec.dst[2] = (uint8_t)(n >> 4);
	if (route_add(table, &spec, ROUTE_CREATE | ROUTE_REPLACE, &why) != 0)
		errx(1, "no room for route %u", n);
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint64_t
write_all(struct rcu *rcu, double seconds, uint64_t *rng)
{
	double end = now() + seconds;
	uint64_t n = 0;

	for (; n % 64 != 0 || now() < end; n++) {
		unsigned int family = (unsigned int)(next_random(rng) % 2);
		unsigned int tree = (unsigned int)(next_random(rng) % TREES);
		unsigned int level = (unsigned int)(next_random(rng) % DEPTH);
		unsigned int gateway =
			(unsigned int)(1 + next_random(rng) % (GATEWAYS / DEPTH - 1)) * DEPTH +
			level;
		uint32_t is = atomic_load_explicit(
			&prefixes[family][tree][level].gateway, memory_order_relaxed);

		change(family, tree, level,
			level > 0 && is != 0 && next_random(rng) % 2 == 0 ? 0 : gateway);
		if (n % 16 == 0)
			move_neighbour(family, gateway, (uint8_t)next_random(rng));
		if (n % 4 == 0 && n / 8 < fill_max[n / 4 % 2])
			fill(n / 4 % 2, (uint32_t)(n / 8));
		rcu_reclaim(rcu, 0);
	}
	return n;
}

static struct rcu *
world_create(void)
{
	struct route_conf conf = {
		.socket = -1, .solicit = route_stub_solicit, .release = route_stub_release
	};
	struct route_dev dev = { .ifindex = 1, .mac = { 2 }, .mtu = 1500, .up = true };
	struct route_address address = { .ifindex = 1, .len = 24 };

	qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(READERS_MAX), RTE_CACHE_LINE_SIZE));
	if (qsbr == NULL || rte_rcu_qsbr_init(qsbr, READERS_MAX) != 0 ||
		(conf.rcu = rcu_create(qsbr)) == NULL ||
		(table = route_table_create(&conf)) == NULL || route_dev_set(table, &dev) != 0)
		errx(1, "no memory");
	for (unsigned int family = 0; family < 2; family++) {
		address.family = family == 0 ? AF_INET : AF_INET6;
		address.len = family == 0 ? 24 : 64;
		gateway_address(family, 250, address.addr);
		if (route_address_add(table, &address) != 0)
			errx(1, "no address");
		for (unsigned int tree = 0; tree < TREES; tree++)
			change(family, tree, 0, DEPTH);
	}
	return conf.rcu;
}

int
main(int argc, char **argv)
{
	const char *seconds = getenv("ROUTE_STRESS_SECONDS");
	unsigned int n_readers = 2, c;
	struct reader readers[READERS_MAX];
	uint64_t seed = 1, changes, exact = 0, loose = 0;
	struct rcu *rcu;
	int opt;

	while ((opt = getopt(argc, argv, "s:r:w:")) != -1) {
		if (opt == 's')
			seconds = optarg;
		else if (opt == 'r')
			seed = strtoull(optarg, NULL, 10);
		else if (opt == 'w')
			n_readers = (unsigned int)strtonum(optarg, 1, READERS_MAX, NULL);
		if (opt == '?' || n_readers == 0 || seed == 0)
			errx(1, "usage: stress [-s seconds] [-r seed] [-w readers]");
	}
	test_eal_init_mb("route_stress", "0", 768);
	rcu = world_create();
	for (c = 0; c < n_readers; c++) {
		readers[c] = (struct reader){ .id = c, .rng = seed * 1000 + c };
		rte_rcu_qsbr_thread_register(qsbr, c);
		if (pthread_create(&readers[c].thread, NULL, reader_main, &readers[c]) != 0)
			errx(1, "no thread");
	}
	changes = write_all(rcu, seconds != NULL ? strtod(seconds, NULL) : 5, &seed);
	/* Relaxed: ends the loops. */
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (c = 0; c < n_readers; c++) {
		pthread_join(readers[c].thread, NULL);
		exact += readers[c].exact;
		loose += readers[c].loose;
	}
	printf("%ju changes, %u and %u routes; %ju look-ups while nothing changed above them, %ju "
	       "beside a "
	       "change\n",
		(uintmax_t)changes, route_count(table, AF_INET), route_count(table, AF_INET6),
		(uintmax_t)exact, (uintmax_t)loose);
	route_table_destroy(table);
	rcu_destroy(rcu);
	free(qsbr);
	return exact > 0 && loose > 0 ? 0 : 1;
}
