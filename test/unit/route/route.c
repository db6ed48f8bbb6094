/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The table alone: look-ups against a naive reference, several next hops, growth. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <rte_byteorder.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>
#include <sys/socket.h>

#include "route/route.h"
#include "route_stubs.h"
#include "support.h"

#define MODEL_MAX 512

static struct rte_rcu_qsbr *qsbr;
static struct rcu *rcu;
static struct route_table *table;

static unsigned int n_moved;

static void
moved(void *arg)
{
	(void)arg;
	n_moved++;
}

static int
setup(void **state)
{
	struct route_conf conf = { .socket = -1,
		.solicit = route_stub_solicit,
		.release = route_stub_release,
		.moved = moved };
	struct route_dev dev = { .ifindex = 1, .port = 0, .mac = { 2 }, .mtu = 1500, .up = true };
	struct route_address address = {
		.ifindex = 1, .family = AF_INET, .len = 16, .addr = { 198, 18, 0, 1 }
	};

	(void)state;
	qsbr = rte_zmalloc("qsbr", rte_rcu_qsbr_get_memsize(1), RTE_CACHE_LINE_SIZE);
	assert_int_equal(rte_rcu_qsbr_init(qsbr, 1), 0);
	rcu = rcu_create(qsbr);
	conf.rcu = rcu;
	table = route_table_create(&conf);
	assert_non_null(table);
	assert_int_equal(route_dev_set(table, &dev), 0);
	assert_int_equal(route_address_add(table, &address), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	route_table_destroy(table);
	assert_int_equal(rcu_pending(rcu), 0);
	rcu_destroy(rcu);
	rte_free(qsbr);
	return 0;
}

static struct route_spec
spec_of(uint32_t dst, uint8_t len, uint8_t gateway)
{
	struct route_spec spec = { .family = AF_INET,
		.len = len,
		.type = RTN_UNICAST,
		.protocol = RTPROT_STATIC,
		.n_paths = 1,
		.paths[0] = {
			.has_gateway = true, .weight = 1, .gateway = { 198, 18, 1, gateway } } };
	uint32_t be = rte_cpu_to_be_32(dst);

	memcpy(spec.dst, &be, sizeof(be));
	return spec;
}

static uint32_t
mask_of(uint8_t len)
{
	return (uint32_t)(UINT64_C(0xffffffff) << (32 - len));
}

/* The gateway's last byte that packets to dst meet, or 0. */
static unsigned int
lookup(uint32_t dst)
{
	const struct route_hop *hop;

	route_lookup4(table, &dst, &hop, 1);
	return hop->kind == ROUTE_RESOLVE ? hop->nexthop[3] : 0;
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed ^ *seed >> 15;
}

/* Adds and removes at random beside a list that is searched from end to end. */
static void
longest_match_agrees_with_a_list(void **state)
{
	static struct {
		uint32_t dst;
		uint8_t len, gateway;
	} model[MODEL_MAX];
	unsigned int n = 0;
	uint32_t seed = 7;
	const char *why;

	(void)state;
	for (unsigned int step = 0; step < 20000; step++) {
		uint8_t len = (uint8_t)(next_random(&seed) % 33);
		/* Few distinct bits, so that prefixes nest. */
		uint32_t dst = (next_random(&seed) & 0x0a01030f) & mask_of(len);
		uint32_t probe = next_random(&seed) & 0x0a01030f;
		unsigned int i = 0, want = 0, best = 0;

		while (i < n && (model[i].dst != dst || model[i].len != len))
			i++;
		if (i < n && next_random(&seed) % 2 == 0) {
			struct route_spec spec = spec_of(dst, len, 0);

			spec.n_paths = 0;
			spec.scope = RT_SCOPE_NOWHERE;
			assert_int_equal(route_del(table, &spec), 0);
			model[i] = model[--n];
		} else if (i == n && n < MODEL_MAX) {
			struct route_spec spec =
				spec_of(dst, len, (uint8_t)(1 + next_random(&seed) % 250));

			assert_int_equal(
				route_add(table, &spec, ROUTE_CREATE | ROUTE_EXCL, &why), 0);
			model[n].dst = dst;
			model[n].len = len;
			model[n++].gateway = spec.paths[0].gateway[3];
		}
		for (i = 0; i < n; i++) {
			if ((probe & mask_of(model[i].len)) == model[i].dst &&
				model[i].len >= best) {
				best = model[i].len;
				want = model[i].gateway;
			}
		}
		assert_int_equal(lookup(probe), want);
		rcu_reclaim(rcu, 0);
	}
}

/* Which gateway each of 256 hashes goes to. */
static void
spread(uint32_t dst, uint8_t gateways[ROUTE_BUCKETS])
{
	const struct route_hop *hop;

	route_lookup4(table, &dst, &hop, 1);
	for (uint32_t hash = 0; hash < ROUTE_BUCKETS; hash++) {
		const struct route_hop *member =
			hop->kind == ROUTE_GROUP ? route_hop_select(table, hop, hash) : hop;

		assert_int_equal(member->kind, ROUTE_RESOLVE);
		gateways[hash] = member->nexthop[3];
	}
}

static void
a_hop_that_leaves_moves_only_its_own_flows(void **state)
{
	struct route_spec spec = spec_of(0x0a000000, 8, 1);
	uint8_t before[ROUTE_BUCKETS], after[ROUTE_BUCKETS];
	unsigned int share[5] = { 0 };
	const char *why;

	(void)state;
	spec.n_paths = 4;
	for (unsigned int i = 0; i < 4; i++) {
		spec.paths[i] = spec.paths[0];
		spec.paths[i].gateway[3] = (uint8_t)(i + 1);
		spec.paths[i].weight = i == 3 ? 3 : 1;
	}
	assert_int_equal(route_add(table, &spec, ROUTE_CREATE, &why), 0);
	spread(0x0a000001, before);
	for (unsigned int b = 0; b < ROUTE_BUCKETS; b++)
		share[before[b]]++;
	assert_in_range(share[1], 20, 70);
	assert_in_range(share[4], 90, 170);
	/* Gateway 2 leaves. */
	spec.paths[1] = spec.paths[3];
	spec.n_paths = 3;
	assert_int_equal(route_add(table, &spec, ROUTE_REPLACE, &why), 0);
	spread(0x0a000001, after);
	for (unsigned int b = 0; b < ROUTE_BUCKETS; b++) {
		assert_int_not_equal(after[b], 2);
		if (before[b] != 2)
			assert_int_equal(after[b], before[b]);
	}
}

/* Shorter prefixes go before the longer ones in them and come after them: rte_fib6 miscounts then.
 */
static void
ipv6_routes_come_and_go_in_any_order(void **state)
{
	static const uint8_t lens[] = { 32, 48, 56, 64, 128 },
			     types[] = { RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT };
	static const enum route_kind kinds[] = { ROUTE_BLACKHOLE, ROUTE_UNREACHABLE,
		ROUTE_PROHIBIT };
	bool there[8][RTE_DIM(lens)] = { 0 };
	uint32_t seed = 3;
	const char *why;

	(void)state;
	for (unsigned int step = 0; step < 150000; step++) {
		unsigned int tree = next_random(&seed) % 8, level = next_random(&seed) % 5;
		struct route_spec spec = { .family = AF_INET6,
			.len = lens[level],
			.type = types[level % 3],
			.dst = { 0x20, 0x01, (uint8_t)tree } };
		uint8_t dst[1][ROUTE_ADDR_LEN] = { { 0x20, 0x01, (uint8_t)tree } };
		const struct route_hop *hop;
		enum route_kind want = ROUTE_NONE;

		for (unsigned int k = 1; k < RTE_DIM(lens); k++)
			dst[0][(lens[k] - 1) / 8] |= (uint8_t)(0x80 >> (lens[k] - 1) % 8);
		for (unsigned int k = 1; k <= level; k++)
			spec.dst[(lens[k] - 1) / 8] |= (uint8_t)(0x80 >> (lens[k] - 1) % 8);
		if (there[tree][level])
			assert_int_equal(route_del(table, &spec), 0);
		else
			assert_int_equal(
				route_add(table, &spec, ROUTE_CREATE | ROUTE_EXCL, &why), 0);
		there[tree][level] = !there[tree][level];
		for (unsigned int k = 0; k < RTE_DIM(lens); k++)
			if (there[tree][k])
				want = kinds[k % 3];
		route_lookup6(table, dst, &hop, 1);
		assert_int_equal(hop->kind, want);
		rcu_reclaim(rcu, 0);
	}
}

/* A dump goes on where it was, whatever comes and goes meanwhile. */
static void
neighbours_are_walked_while_they_change(void **state)
{
	struct route_neigh_info info = { .ifindex = 1,
		.family = AF_INET,
		.addr = { 198, 18 },
		.state = NUD_PERMANENT,
		.has_lladdr = true,
		.lladdr = { 2 } };
	const struct route_neigh *n;
	unsigned int seen = 0;
	uint64_t at = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		info.addr[2] = (uint8_t)(i >> 8);
		info.addr[3] = (uint8_t)i;
		assert_int_equal(route_neigh_set(table, &info, ROUTE_CREATE), 0);
	}
	while ((n = route_neigh_next(table, &at)) != NULL) {
		route_neigh_describe(table, n, &info);
		assert_int_equal(info.addr[2] << 8 | info.addr[3], seen);
		seen++;
		/* Each third goes as soon as it was seen, and with it one behind it. */
		if (seen % 3 != 0 || seen >= 997)
			continue;
		assert_int_equal(route_neigh_del(table, 1, AF_INET, info.addr), 0);
		info.addr[2] = (uint8_t)(seen >> 8);
		info.addr[3] = (uint8_t)seen;
		assert_int_equal(route_neigh_del(table, 1, AF_INET, info.addr), 0);
		seen++;
	}
	assert_int_equal(seen, 1000);
	rcu_barrier(rcu);
}

/* Beyond the first size of the tables: they grow, and what was there stays. */
static void
table_grows(void **state)
{
	const unsigned int n = 20000;
	const char *why;

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		struct route_spec spec = spec_of(0x0a000000 + (i << 4), 28, (uint8_t)(1 + i % 200));

		assert_int_equal(route_add(table, &spec, ROUTE_CREATE | ROUTE_EXCL, &why), 0);
		rcu_reclaim(rcu, 0);
	}
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(lookup(0x0a000003 + (i << 4)), 1 + i % 200);
	/* Three of the address, and these. */
	assert_int_equal(route_count(table, AF_INET), n + 3);
}

/* Whoever keeps a hop beyond a burst is told when another would be found. */
static void
keepers_of_hops_are_told(void **state)
{
	struct route_neigh_info info = {
		.ifindex = 1,
		.family = AF_INET,
		.addr = { 198, 18, 0, 9 },
		.state = NUD_PERMANENT,
		.has_lladdr = true,
		.lladdr = { 2, 0, 0, 0, 0, 9 },
	};
	struct route_spec spec = spec_of(0x0a000000, 8, 9);
	const char *why;

	(void)state;
	n_moved = 0;
	assert_int_equal(route_add(table, &spec, ROUTE_CREATE, &why), 0);
	assert_int_not_equal(n_moved, 0);
	n_moved = 0;
	assert_int_equal(route_neigh_set(table, &info, ROUTE_CREATE | ROUTE_REPLACE), 0);
	assert_int_not_equal(n_moved, 0);
	n_moved = 0;
	info.lladdr[5] = 10;
	assert_int_equal(route_neigh_set(table, &info, ROUTE_CREATE | ROUTE_REPLACE), 0);
	assert_int_not_equal(n_moved, 0);
	n_moved = 0;
	assert_int_equal(route_del(table, &spec), 0);
	assert_int_not_equal(n_moved, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		T(longest_match_agrees_with_a_list),
		T(a_hop_that_leaves_moves_only_its_own_flows),
		T(ipv6_routes_come_and_go_in_any_order),
		T(neighbours_are_walked_while_they_change),
		T(table_grows),
		T(keepers_of_hops_are_told),
	};

	test_eal_init_mb("route", "0", 512);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
