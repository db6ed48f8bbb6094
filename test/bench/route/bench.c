/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What look-ups and changes of routes cost.
 *
 *   look-ups  TSC cycles a destination, 32 at a time, destinations at random among 64 Ki: one
 * route, 500 k IPv4 routes (three of five a /24, the rest /16 to /23), 100 k IPv6 /48s changes
 * routes added, replaced and deleted a second, through the library beside    the IPv4 look-ups on
 * another CPU while 100,000 routes a second come and go, and while nothing changes, in turn
 *
 * Medians of windows, and the best one, are printed; medians written as JSON.
 *
 * usage: route_bench EAL-options -- [-n routes] [-w windows] [-o file.json]
 */

#include <err.h>
#include <getopt.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <bsd/stdlib.h>
#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "bench/median.h"
#include "rcu/rcu.h"
#include "route/route.h"
#include "route_stubs.h"
#include "support.h"

#define BURST 32
#define DESTINATIONS 65536
#define WINDOW 1024 /* bursts */
#define WINDOWS_MAX 1001
#define GATEWAYS 64
#define RATE 100000 /* changes a second beside look-ups */

static struct route_table *table;
static struct rte_rcu_qsbr *qsbr;
static struct rcu *rcu;
static FILE *json;
static bool json_first = true;
static unsigned int n_windows = 101;
static uint32_t dst4[DESTINATIONS];
static uint8_t dst6[DESTINATIONS][ROUTE_ADDR_LEN];

static void
report(const char *name, const char *unit, double *v, unsigned int n, bool more_is_better)
{
	double middle = median(v, n), best;

	best = more_is_better ? v[n - 1] : v[0];
	printf("%-28s %12.1f %12.1f %s\n", name, middle, best, unit);
	fflush(stdout);
	if (json != NULL)
		fprintf(json, "%s\t\"%s\": %.2f", json_first ? "" : ",\n", name, middle);
	json_first = false;
}

/* The nth of a fixed sequence. */
static uint32_t
scatter(uint32_t n)
{
	n ^= n >> 16;
	n *= 0x7feb352d;
	n ^= n >> 15;
	n *= 0x846ca68b;
	return n ^ n >> 16;
}

/* Distinct for distinct n: an odd multiplier permutes the prefixes of each length. */
static void
prefix4(uint32_t n, struct route_spec *spec)
{
	uint32_t be, addr;

	spec->len = n % 5 < 3 ? 24 : (uint8_t)(20 + n % 4);
	addr = (n * 2654435761u) >> (32 - spec->len) << (32 - spec->len);
	/* 16.0.0.0 to 127.255.255.255 */
	be = rte_cpu_to_be_32((addr >> 1 & 0x6fffffff) | 0x10000000);
	memcpy(spec->dst, &be, sizeof(be));
	addr = rte_be_to_cpu_32(be) >> (32 - spec->len) << (32 - spec->len);
	be = rte_cpu_to_be_32(addr);
	memcpy(spec->dst, &be, sizeof(be));
}

/* 25 /48s of each /32. */
static void
prefix6(uint32_t n, struct route_spec *spec)
{
	uint32_t top = scatter(n / 25);

	spec->len = 48;
	spec->dst[0] = (uint8_t)(0x20 | (top >> 24 & 0x1f));
	spec->dst[1] = (uint8_t)(top >> 16);
	spec->dst[2] = (uint8_t)(top >> 8);
	spec->dst[3] = (uint8_t)top;
	spec->dst[5] = (uint8_t)(n % 25);
}

static void
spec_make(uint8_t family, uint32_t n, unsigned int gateway, struct route_spec *spec)
{
	static const uint8_t net4[16] = { 198, 18 }, net6[16] = { 0x20, 0x01, 0x0d, 0xb8 };

	*spec = (struct route_spec){ .family = family, .type = RTN_UNICAST, .n_paths = 1 };
	(family == AF_INET ? prefix4 : prefix6)(n, spec);
	spec->paths[0].has_gateway = true;
	spec->paths[0].weight = 1;
	memcpy(spec->paths[0].gateway, family == AF_INET ? net4 : net6, 16);
	spec->paths[0].gateway[family == AF_INET ? 3 : 15] =
		(uint8_t)(2 + (n + gateway) % GATEWAYS);
}

/* Returns whether the route was new; with sums of prefixes some are there already. */
static bool
add(uint8_t family, uint32_t n, unsigned int gateway, unsigned int flags)
{
	struct route_spec spec;
	const char *why;
	int ret;

	spec_make(family, n, gateway, &spec);
	ret = route_add(table, &spec, flags, &why);
	if (ret != 0 && ret != -EEXIST)
		errx(1, "route %u: %s%s%s", n, strerror(-ret), why != NULL ? ": " : "",
			why != NULL ? why : "");
	return ret == 0;
}

static bool
del(uint8_t family, uint32_t n)
{
	struct route_spec spec;

	spec_make(family, n, 0, &spec);
	spec.n_paths = 0;
	spec.scope = RT_SCOPE_NOWHERE;
	return route_del(table, &spec) == 0;
}

static void
destinations(uint32_t n_routes)
{
	for (uint32_t i = 0; i < DESTINATIONS; i++) {
		struct route_spec spec;
		uint32_t be;

		spec_make(AF_INET, scatter(i) % n_routes, 0, &spec);
		memcpy(&be, spec.dst, sizeof(be));
		dst4[i] = rte_be_to_cpu_32(be) | (scatter(i + 1) & (0xffffffffu >> spec.len));
		spec_make(AF_INET6, scatter(i) % RTE_MIN(n_routes, 100000u), 0, &spec);
		memcpy(dst6[i], spec.dst, sizeof(dst6[i]));
		dst6[i][15] = (uint8_t)i;
	}
}

/* Cycles a destination of one window. */
static double
window(uint8_t family, uint32_t *at)
{
	const struct route_hop *hops[BURST];
	uint64_t begin = rte_rdtsc(), sum = 0;

	for (unsigned int i = 0; i < WINDOW; i++) {
		*at = (*at + BURST) % DESTINATIONS;
		if (family == AF_INET)
			route_lookup4(table, &dst4[*at], hops, BURST);
		else
			route_lookup6(table, &dst6[*at], hops, BURST);
		for (unsigned int k = 0; k < BURST; k++)
			sum += hops[k]->kind;
		rte_rcu_qsbr_quiescent(qsbr, 0);
	}
	if (sum == 0)
		errx(1, "no route was met");
	return (double)(rte_rdtsc() - begin) / (WINDOW * BURST);
}

static void
lookups(const char *name, uint8_t family)
{
	double v[WINDOWS_MAX];
	uint32_t at = 0;

	(void)window(family, &at);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	for (unsigned int i = 0; i < n_windows; i++)
		v[i] = window(family, &at);
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	report(name, "cycles", v, n_windows, false);
}

enum change {
	ADD,
	REPLACE,
	DELETE
};

static void
changes(const char *name, uint8_t family, uint32_t n, enum change change)
{
	uint64_t begin = rte_rdtsc();
	double rate;

	for (uint32_t i = 0; i < n; i++) {
		if (change == DELETE)
			(void)del(family, i);
		else
			(void)add(family, i, change == REPLACE,
				ROUTE_CREATE | (change == ADD ? ROUTE_EXCL : ROUTE_REPLACE));
		if (i % 64 == 0)
			rcu_reclaim(rcu, 0);
	}
	rate = n / ((double)(rte_rdtsc() - begin) / (double)rte_get_tsc_hz());
	report(name, "a second", &rate, 1, true);
}

/* --- beside changes --- */

static _Atomic bool stop, changing;
static double calm[WINDOWS_MAX], busy[WINDOWS_MAX];
static unsigned int n_calm, n_busy;

static int
reader(void *arg)
{
	uint32_t at = 0;

	(void)arg;
	rte_rcu_qsbr_thread_online(qsbr, 0);
	/* Relaxed, all of these: they order nothing but the bench. */
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		bool before = atomic_load_explicit(&changing, memory_order_relaxed);
		double cycles = window(AF_INET, &at);

		if (before != atomic_load_explicit(&changing, memory_order_relaxed))
			continue;
		if (before && n_busy < WINDOWS_MAX)
			busy[n_busy++] = cycles;
		else if (!before && n_calm < WINDOWS_MAX)
			calm[n_calm++] = cycles;
	}
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	return 0;
}

/* RATE changes a second for so many milliseconds, or none. Returns how many were made. */
static uint32_t
change_for(uint32_t n_routes, unsigned int ms, bool really)
{
	uint64_t hz = rte_get_tsc_hz(), end = rte_rdtsc() + hz * ms / 1000, next = rte_rdtsc();
	static uint32_t i;
	uint32_t made = 0;

	atomic_store_explicit(&changing, really, memory_order_relaxed);
	while (rte_rdtsc() < end) {
		if (!really || rte_rdtsc() < next)
			continue;
		next += hz / RATE;
		if (i % 2 == 0)
			(void)del(AF_INET, i / 2 % n_routes);
		else
			(void)add(AF_INET, i / 2 % n_routes, 0, ROUTE_CREATE);
		made++;
		if (++i % 64 == 0)
			rcu_reclaim(rcu, 0);
	}
	return made;
}

static void
beside(uint32_t n_routes)
{
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0), turns = RTE_MAX(4u, n_windows / 5);
	double rate = 0;

	if (lcore >= RTE_MAX_LCORE || rte_eal_remote_launch(reader, NULL, lcore) != 0)
		return;
	for (unsigned int i = 0; i < turns; i++) {
		(void)change_for(n_routes, 20, false);
		rate += change_for(n_routes, 20, true) / 0.02 / turns;
	}
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	rte_eal_wait_lcore(lcore);
	if (n_calm == 0 || n_busy == 0)
		return;
	report("lookup4_calm", "cycles", calm, n_calm, false);
	report("lookup4_beside_changes", "cycles", busy, n_busy, false);
	report("changes_made", "a second", &rate, 1, true);
}

/* --- the whole --- */

static void
world_create(void)
{
	struct route_conf conf = {
		.socket = -1, .solicit = route_stub_solicit, .release = route_stub_release
	};
	struct route_dev dev = { .ifindex = 1, .mac = { 2 }, .mtu = 1500, .up = true };
	struct route_address four = {
		.ifindex = 1, .family = AF_INET, .len = 24, .addr = { 198, 18, 0, 1 }
	};
	struct route_address six = { .ifindex = 1,
		.family = AF_INET6,
		.len = 64,
		.addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };

	qsbr = rte_zmalloc("qsbr", rte_rcu_qsbr_get_memsize(1), RTE_CACHE_LINE_SIZE);
	if (qsbr == NULL || rte_rcu_qsbr_init(qsbr, 1) != 0 ||
		rte_rcu_qsbr_thread_register(qsbr, 0) != 0 ||
		(conf.rcu = rcu = rcu_create(qsbr)) == NULL ||
		(table = route_table_create(&conf)) == NULL || route_dev_set(table, &dev) != 0 ||
		route_address_add(table, &four) != 0 || route_address_add(table, &six) != 0)
		errx(1, "no memory");
}

static void
run(uint32_t n4, uint32_t n6)
{
	destinations(1);
	(void)add(AF_INET, 0, 0, ROUTE_CREATE);
	(void)add(AF_INET6, 0, 0, ROUTE_CREATE);
	lookups("lookup4_1", AF_INET);
	lookups("lookup6_1", AF_INET6);
	changes("add4", AF_INET, n4, ADD);
	changes("add6", AF_INET6, n6, ADD);
	changes("replace4", AF_INET, n4, REPLACE);
	changes("replace6", AF_INET6, n6, REPLACE);
	printf("%u and %u routes\n", route_count(table, AF_INET), route_count(table, AF_INET6));
	destinations(n4);
	lookups("lookup4_all", AF_INET);
	lookups("lookup6_all", AF_INET6);
	beside(n4);
	changes("delete4", AF_INET, n4, DELETE);
	changes("delete6", AF_INET6, n6, DELETE);
}

int
main(int argc, char **argv)
{
	uint32_t n = 500000;
	int ret, c;

	if ((ret = rte_eal_init(argc, argv)) < 0)
		errx(1, "rte_eal_init: %s", rte_strerror(rte_errno));
	argc -= ret;
	argv += ret;
	optind = 1;
	while ((c = getopt(argc, argv, "n:w:o:")) != -1) {
		if (c == 'n')
			n = (uint32_t)strtonum(optarg, 1, 1000000, NULL);
		else if (c == 'w')
			n_windows = (unsigned int)strtonum(optarg, 1, WINDOWS_MAX, NULL);
		else if (c == 'o' && (json = fopen(optarg, "w")) == NULL)
			err(1, "%s", optarg);
		if (c == '?' || n == 0 || n_windows == 0)
			errx(1,
				"usage: route_bench EAL-options -- [-n routes] [-w windows] [-o "
				"file]");
	}
	if (json != NULL)
		fprintf(json, "{\n");
	printf("%-28s %12s %12s\n", "row", "median", "best");
	world_create();
	run(n, n / 5);
	if (json != NULL && (fprintf(json, "\n}\n") < 0 || fclose(json) != 0))
		err(1, "json");
	route_table_destroy(table);
	rcu_destroy(rcu);
	rte_free(qsbr);
	return 0;
}
