/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Policies as workers find them, against a list that is looked through from its begin. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <rte_random.h>

#include "ipsec_cache/selector.h"
#include "ipsec_cache/spd.h"
#include "world.h"

#define POLICIES 400

static struct world world;

static uint32_t
roll(uint32_t n)
{
	return (uint32_t)rte_rand_max(n);
}

/* Few values, so that prefixes nest, ports meet and flows hit. */
static void
random_address(uint8_t family, uint8_t out[16])
{
	memset(out, 0, 16);
	out[0] = 10;
	out[1] = (uint8_t)roll(3);
	out[2] = (uint8_t)(roll(2) * 128);
	out[3] = (uint8_t)roll(2);
	if (family == AF_INET6) {
		out[0] = 0x20;
		out[15] = (uint8_t)roll(2);
	}
}

static void
random_policy(struct ipsec_cache_policy_spec *spec)
{
	static const uint8_t v4_len[] = { 0, 8, 15, 16, 17, 24, 32 };
	static const uint8_t v6_len[] = { 0, 8, 16, 17, 64, 127, 128 };
	struct xfrm_selector *sel = &spec->info.sel;
	uint8_t family = roll(4) == 0 ? AF_INET6 : AF_INET;
	const uint8_t *len = family == AF_INET ? v4_len : v6_len;

	memset(spec, 0, sizeof(*spec));
	sel->family = family;
	random_address(family, (uint8_t *)&sel->saddr);
	random_address(family, (uint8_t *)&sel->daddr);
	sel->prefixlen_s = len[roll(RTE_DIM(v4_len))];
	sel->prefixlen_d = len[roll(RTE_DIM(v4_len))];
	sel->proto = roll(3) == 0 ? IPPROTO_UDP : roll(4) == 0 ? IPPROTO_TCP : 0;
	if (roll(4) == 0) {
		sel->sport = htons((uint16_t)roll(3));
		sel->sport_mask = roll(4) == 0 ? htons(1) : UINT16_MAX;
	}
	if (roll(4) == 0) {
		sel->dport = htons((uint16_t)roll(3));
		sel->dport_mask = UINT16_MAX;
	}
	sel->ifindex = roll(6) == 0 ? (int)roll(2) + 1 : 0;
	if (roll(5) == 0) {
		spec->mark.m = 3;
		spec->mark.v = roll(4);
	}
	spec->if_id = roll(10) == 0;
	spec->info.dir = (uint8_t)roll(3);
	spec->info.priority = roll(5);
	spec->info.action = roll(4) == 0 ? XFRM_POLICY_BLOCK : XFRM_POLICY_ALLOW;
	if (spec->info.action == XFRM_POLICY_ALLOW && roll(2) == 0) {
		spec->n_tmpl = 1;
		spec->tmpl[0].family = AF_INET;
		spec->tmpl[0].id.proto = IPPROTO_ESP;
		spec->tmpl[0].mode = XFRM_MODE_TUNNEL;
		spec->tmpl[0].id.daddr.a4 = htonl(0xc6336402);
	}
}

static void
random_flow(struct ipsec_flow *flow)
{
	memset(flow, 0, sizeof(*flow));
	flow->family = roll(4) == 0 ? AF_INET6 : AF_INET;
	random_address(flow->family, flow->saddr);
	random_address(flow->family, flow->daddr);
	if (flow->family == AF_INET) {
		memset(flow->saddr + 4, 0, 12);
		memset(flow->daddr + 4, 0, 12);
	}
	flow->proto = roll(2) == 0 ? IPPROTO_UDP : IPPROTO_TCP;
	flow->mark = roll(8);
	flow->fragment = roll(4) == 0;
	if (flow->fragment == 0) {
		flow->sport = htons((uint16_t)roll(4));
		flow->dport = htons((uint16_t)roll(4));
	}
}

static bool
matches_but_for_ports(
	const struct ipsec_cache_policy_spec *spec, const struct ipsec_flow *flow, uint32_t ifindex)
{
	struct xfrm_selector sel = spec->info.sel;
	struct ipsec_flow whole = *flow;

	whole.fragment = 0;
	sel.sport_mask = sel.dport_mask = 0;
	return sel.family == flow->family && spec->if_id == 0 &&
		(flow->mark & spec->mark.m) == spec->mark.v &&
		ipsec_selector_match(&sel, &whole, ifindex);
}

/* What Linux's list says, and what internal.h says of fragments. */
static const struct ipsec_cache_policy *
reference(uint8_t dir, const struct ipsec_flow *flow, uint32_t ifindex, bool *uncertain)
{
	const struct ipsec_cache_policy *best = NULL, *p;
	uint64_t after = 0;

	*uncertain = false;
	while ((p = ipsec_cache_policy_next(world.ic, &after)) != NULL) {
		const struct ipsec_cache_policy_spec *spec = &p->spec;
		bool ports = ipsec_selector_has_ports(&spec->info.sel), unsure = false;

		if (spec->info.dir != dir || !matches_but_for_ports(spec, flow, ifindex))
			continue;
		if (ports && flow->fragment != 0) {
			if (spec->info.action == XFRM_POLICY_ALLOW && spec->n_tmpl == 0)
				continue;
			unsure = true;
		} else if (ports && !ipsec_selector_match(&spec->info.sel, flow, ifindex)) {
			continue;
		}
		if (best != NULL && best->spec.info.priority <= spec->info.priority)
			continue; /* in order of age: the older wins */
		best = p;
		*uncertain = unsure;
	}
	return best;
}

static unsigned int
compare(unsigned int n)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct ipsec_cache_policy *is, *should;
		uint8_t dir = (uint8_t)roll(3);
		uint32_t ifindex = roll(3);
		struct ipsec_flow flow;
		bool unsure, unsure_should;

		random_flow(&flow);
		should = reference(dir, &flow, ifindex, &unsure_should);
		is = ipsec_spd_lookup(world.ic, dir, &flow, ifindex, &unsure);
		assert_ptr_equal(is, should);
		assert_int_equal(unsure, unsure_should);
		found += is != NULL;
	}
	return found;
}

static void
spd_against_a_list(void **state)
{
	struct ipsec_cache_policy_spec spec;
	unsigned int found = 0;
	const char *why;

	(void)state;
	for (unsigned int round = 0; round < 1500; round++) {
		unsigned int n = ipsec_spd_count(world.ic);
		int ret;

		random_policy(&spec);
		if (n >= POLICIES || (n > 0 && roll(3) == 0)) {
			uint64_t after = world.ic->next_serial -
				roll((uint32_t)(RTE_MIN(world.ic->next_serial, UINT64_C(500))));
			struct ipsec_cache_policy *p = ipsec_cache_policy_next(world.ic, &after);

			if (p != NULL) {
				ipsec_cache_policy_describe(p, &spec);
				assert_int_equal(ipsec_cache_policy_del(world.ic, &spec), 0);
			}
		} else {
			ret = ipsec_cache_policy_add(world.ic, &spec, roll(2) == 0, &why);
			assert_true(ret == 0 || ret == -EEXIST);
		}
		found += compare(40);
		rcu_reclaim(world.rcu, 0);
	}
	assert_true(found > 10000);
	assert_int_equal(ipsec_cache_policy_flush(world.ic), 0);
	assert_int_equal(compare(1000), 0);
	rcu_barrier(world.rcu);
	assert_int_equal(rcu_pending(world.rcu), 0);
}

static void
spd_index_and_update(void **state)
{
	struct ipsec_cache_policy_spec spec, which;
	struct ipsec_cache_policy *p;
	const char *why;

	(void)state;
	random_policy(&spec);
	spec.info.index = 0x100 | spec.info.dir;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), 0);
	memset(&which, 0, sizeof(which));
	which.info.index = spec.info.index;
	which.info.dir = spec.info.dir;
	which.mark = spec.mark;
	which.if_id = spec.if_id;
	p = ipsec_cache_policy_find(world.ic, &which);
	assert_non_null(p);
	/* in its place another one, with the old index whatever it asks for */
	spec.info.index = 0;
	spec.info.priority = 77;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, true, &why), 0);
	p = ipsec_cache_policy_find(world.ic, &which);
	assert_non_null(p);
	assert_int_equal(p->spec.info.priority, 77);
	assert_int_equal(ipsec_spd_count(world.ic), 1);
	which.info.dir ^= 1;
	assert_null(ipsec_cache_policy_find(world.ic, &which));
	which.info.dir ^= 1;
	which.if_id = 99;
	assert_null(ipsec_cache_policy_find(world.ic, &which));
	assert_int_equal(ipsec_cache_policy_del(world.ic, &which), -ENOENT);
	assert_int_equal(ipsec_cache_policy_flush(world.ic), 0);
	assert_int_equal(ipsec_cache_policy_flush(world.ic), -ESRCH);
}

/* Flows carry what policies look at, no more: the cache would miss for nothing. */
static void
spd_uses(void **state)
{
	struct ipsec_cache_policy_spec spec;
	const char *why;
	uint64_t epoch;

	(void)state;
	assert_int_equal(atomic_load(&world.ic->uses), 0);
	memset(&spec, 0, sizeof(spec));
	spec.info.sel.family = AF_INET;
	epoch = atomic_load(&world.ic->epoch);
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), 0);
	assert_true(atomic_load(&world.ic->epoch) > epoch);
	assert_true(ipsec_cache_active(world.ic));
	assert_int_equal(atomic_load(&world.ic->uses), 0);
	spec.info.sel.sport_mask = 1;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), 0);
	assert_int_equal(atomic_load(&world.ic->uses), IPSEC_USES_PORTS);
	spec.mark.m = 1;
	spec.info.sel.ifindex = 1;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), 0);
	assert_int_equal(atomic_load(&world.ic->uses),
		IPSEC_USES_PORTS | IPSEC_USES_MARK | IPSEC_USES_IFINDEX);
	assert_int_equal(ipsec_cache_policy_del(world.ic, &spec), 0);
	assert_int_equal(atomic_load(&world.ic->uses), IPSEC_USES_PORTS);
	epoch = atomic_load(&world.ic->epoch);
	assert_int_equal(ipsec_cache_policy_flush(world.ic), 0);
	assert_int_equal(atomic_load(&world.ic->uses), 0);
	assert_true(atomic_load(&world.ic->epoch) > epoch);
	assert_false(ipsec_cache_active(world.ic));
}

static void
spd_full(void **state)
{
	struct ipsec_cache_policy_spec spec;
	const char *why = "";

	(void)state;
	world.ic->conf.max_policies = 2;
	memset(&spec, 0, sizeof(spec));
	spec.info.sel.family = AF_INET;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), 0);
	spec.info.dir = 1;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), 0);
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, true, &why), 0);
	spec.info.dir = 2;
	assert_int_equal(ipsec_cache_policy_add(world.ic, &spec, false, &why), -ENOSPC);
	assert_string_equal(why, "There is no room for another policy");
	assert_int_equal(ipsec_spd_count(world.ic), 2);
}

static int
setup(void **state)
{
	(void)state;
	world_create(&world, 1, 0, false);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_destroy(&world);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(spd_against_a_list, setup, teardown),
		cmocka_unit_test_setup_teardown(spd_index_and_update, setup, teardown),
		cmocka_unit_test_setup_teardown(spd_uses, setup, teardown),
		cmocka_unit_test_setup_teardown(spd_full, setup, teardown),
	};

	test_eal_init("ipsec-spd", "0");
	return cmocka_run_group_tests_name("ipsec_spd", tests, NULL, NULL);
}
