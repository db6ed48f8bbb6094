/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What is decided about a packet, which SA is found, what becomes of SAs by themselves. The
 * gateway here is 192.0.2.1 with 10.1.0.0/16 behind it, its peer 198.51.100.2 with 10.2.0.0/16.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "ipsec_cache/sad.h"
#include "ipsec_cache/spd.h"
#include "world.h"

#define LOCAL "192.0.2.1"
#define PEER "198.51.100.2"
#define WORKERS 2

static struct world world;
static bool no_route; /* to 10/8 */

static void
resolve(void *arg, uint8_t family, const void *dst, uint32_t hash, struct ipsec_cache_hop *hop)
{
	world_resolve(arg, family, dst, hash, hop);
	if (no_route && family == AF_INET && *(const uint8_t *)dst == 10)
		hop->kind = IPSEC_CACHE_HOP_NONE;
}

/* Policies. */

static struct ipsec_cache_policy_spec
policy(uint8_t dir, const char *from, const char *to)
{
	struct ipsec_cache_policy_spec spec;

	memset(&spec, 0, sizeof(spec));
	spec.info.dir = dir;
	spec.info.sel.family = AF_INET;
	inet_pton(AF_INET, from, &spec.info.sel.saddr);
	inet_pton(AF_INET, to, &spec.info.sel.daddr);
	spec.info.sel.prefixlen_s = spec.info.sel.prefixlen_d = 16;
	return spec;
}

static struct ipsec_cache_policy_spec
tunnel(uint8_t dir, const char *from, const char *to, const char *saddr, const char *daddr)
{
	struct ipsec_cache_policy_spec spec = policy(dir, from, to);
	struct xfrm_user_tmpl *tmpl = &spec.tmpl[0];

	spec.n_tmpl = 1;
	tmpl->family = AF_INET;
	tmpl->mode = XFRM_MODE_TUNNEL;
	tmpl->id.proto = IPPROTO_ESP;
	tmpl->reqid = 7;
	inet_pton(AF_INET, saddr, &tmpl->saddr);
	inet_pton(AF_INET, daddr, &tmpl->id.daddr);
	return spec;
}

static void
add(const struct ipsec_cache_policy_spec *spec)
{
	const char *why = "";

	if (ipsec_cache_policy_add(world.ic, spec, false, &why) != 0)
		fail_msg("%s", why);
}

static struct ipsec_cache_sa_spec
sa_spec(const char *src, const char *dst, uint32_t spi)
{
	struct ipsec_cache_sa_spec spec = world_spec(src, dst, spi);

	spec.info.reqid = 7;
	return spec;
}

static void
add_both_ways(void)
{
	struct ipsec_cache_policy_spec spec;

	spec = tunnel(XFRM_POLICY_OUT, "10.1.0.0", "10.2.0.0", LOCAL, PEER);
	add(&spec);
	spec = tunnel(XFRM_POLICY_FWD, "10.2.0.0", "10.1.0.0", PEER, LOCAL);
	add(&spec);
	spec = tunnel(XFRM_POLICY_IN, "10.2.0.0", "10.1.0.0", PEER, LOCAL);
	add(&spec);
}

/* Flows. */

static struct ipsec_flow
flow(const char *from, const char *to)
{
	struct ipsec_flow f;

	memset(&f, 0, sizeof(f));
	f.family = AF_INET;
	f.proto = IPPROTO_UDP;
	f.in_ifindex = 1;
	inet_pton(AF_INET, from, f.saddr);
	inet_pton(AF_INET, to, f.daddr);
	return f;
}

static struct ipsec_cache_decision
decide(const struct ipsec_flow *f, const struct ipsec_cache_rt *by)
{
	struct ipsec_cache_decision d;

	ipsec_decide(world.ic, 0, f, by, &d);
	return d;
}

static void
expect_drop(const struct ipsec_flow *f, const struct ipsec_cache_rt *by, uint8_t error)
{
	struct ipsec_cache_decision d = decide(f, by);

	assert_int_equal(d.action, IPSEC_CACHE_DROP);
	assert_int_equal(d.error, error);
}

static void
expect_route(const struct ipsec_flow *f, const struct ipsec_cache_rt *by)
{
	struct ipsec_cache_decision d = decide(f, by);

	assert_int_equal(d.action, IPSEC_CACHE_ROUTE);
}

/* Decisions. */

static void
esp_D21_no_policy_follows_the_default(void **state)
{
	struct xfrm_userpolicy_default def = { .fwd = XFRM_USERPOLICY_BLOCK };
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1"), here = flow("10.2.0.1", "10.1.0.9");
	struct ipsec_cache_policy_spec spec;

	(void)state;
	world_local(&world, "10.1.0.9");
	expect_route(&f, NULL);
	expect_route(&here, NULL);
	ipsec_cache_default_set(world.ic, &def);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_BLOCK);
	expect_route(&here, NULL);
	f.in_ifindex = 0; /* our own has no forward policy */
	expect_route(&f, NULL);
	def = (struct xfrm_userpolicy_default){ .in = XFRM_USERPOLICY_BLOCK,
		.fwd = XFRM_USERPOLICY_ACCEPT,
		.out = XFRM_USERPOLICY_BLOCK };
	ipsec_cache_default_set(world.ic, &def);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_BLOCK);
	expect_drop(&here, NULL, IPSEC_CACHE_POLICY_BLOCK);
	/* an explicit word beats the default */
	spec = policy(XFRM_POLICY_OUT, "10.1.0.0", "10.2.0.0");
	add(&spec);
	expect_route(&f, NULL);
	spec.info.action = XFRM_POLICY_BLOCK;
	spec.info.sel.proto = IPPROTO_UDP;
	spec.info.priority = 1;
	add(&spec);
	expect_route(&f, NULL); /* the first by priority */
}

static void
esp_D21_protected_or_not_at_all(void **state)
{
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1"), other = flow("10.1.0.1", "10.3.0.1");
	struct ipsec_cache_sa_spec sa = sa_spec(LOCAL, PEER, 0x1000);
	struct ipsec_cache_decision d;
	struct ipsec_cache_rt *rt;

	(void)state;
	add_both_ways();
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	expect_route(&other, NULL);
	rt = world_sa(&world, &sa);
	d = decide(&f, NULL);
	assert_int_equal(d.action, IPSEC_CACHE_PROTECT);
	assert_ptr_equal(d.rt, rt);
	assert_ptr_equal(d.hop, &world);
	assert_int_equal(d.mtu, ipsec_rt_mtu(rt, WORLD_MTU));
	assert_in_range(d.mtu, 1400, 1460);
	/* the far end is not reached: by no route, or by being here */
	no_route = true;
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_ROUTE);
	no_route = false;
	world_local(&world, PEER);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_ROUTE);
}

static void
esp_D21_in_by_the_right_sa(void **state)
{
	struct ipsec_flow f = flow("10.2.0.1", "10.1.0.1"), here = flow("10.2.0.1", "10.1.0.9");
	struct ipsec_flow stray = flow("10.3.0.1", "10.1.0.1");
	struct ipsec_cache_sa_spec spec;
	struct ipsec_cache_rt *right, *reqid, *peer, *inner;

	(void)state;
	world_local(&world, "10.1.0.9");
	add_both_ways();
	spec = sa_spec(PEER, LOCAL, 0x2000);
	right = world_sa(&world, &spec);
	spec = sa_spec(PEER, LOCAL, 0x2001);
	spec.info.reqid = 8;
	reqid = world_sa(&world, &spec);
	spec = sa_spec("198.51.100.9", LOCAL, 0x2002);
	peer = world_sa(&world, &spec);
	spec = sa_spec(PEER, LOCAL, 0x2003);
	spec.info.flags = 0;
	spec.info.sel.family = AF_INET;
	inet_pton(AF_INET, "10.2.9.0", &spec.info.sel.saddr);
	spec.info.sel.prefixlen_s = 24;
	inner = world_sa(&world, &spec);
	expect_route(&f, right);
	expect_route(&here, right);
	/* in clear, or by another SA, where the policy wants its own */
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_CLEAR);
	expect_drop(&here, NULL, IPSEC_CACHE_POLICY_CLEAR);
	expect_drop(&f, reqid, IPSEC_CACHE_POLICY_CLEAR);
	expect_drop(&f, peer, IPSEC_CACHE_POLICY_CLEAR);
	/* what was inside does not fit the SA's selector */
	expect_drop(&f, inner, IPSEC_CACHE_ESP_SELECTOR);
	/* no policy for what came by an SA */
	expect_drop(&stray, right, IPSEC_CACHE_POLICY_NONE);
	expect_route(&stray, NULL);
}

static void
optional_template(void **state)
{
	struct ipsec_cache_policy_spec spec =
		tunnel(XFRM_POLICY_FWD, "10.2.0.0", "10.1.0.0", PEER, LOCAL);
	struct ipsec_flow f = flow("10.2.0.1", "10.1.0.1");
	struct ipsec_cache_sa_spec sa = sa_spec(PEER, LOCAL, 0x2000);
	struct ipsec_cache_rt *right, *wrong;

	(void)state;
	spec.tmpl[0].optional = 1;
	add(&spec);
	right = world_sa(&world, &sa);
	sa = sa_spec(PEER, LOCAL, 0x2001);
	sa.info.reqid = 8;
	wrong = world_sa(&world, &sa);
	expect_route(&f, NULL);
	expect_route(&f, right);
	expect_drop(&f, wrong, IPSEC_CACHE_POLICY_CLEAR);
}

/* A tunnel's packet meets an allowing policy without templates: Linux drops it. */
static void
tunnel_meets_plain_policy(void **state)
{
	struct ipsec_cache_policy_spec spec = policy(XFRM_POLICY_FWD, "10.2.0.0", "10.1.0.0");
	struct ipsec_flow f = flow("10.2.0.1", "10.1.0.1");
	struct ipsec_cache_sa_spec sa = sa_spec(PEER, LOCAL, 0x2000);
	struct ipsec_cache_rt *rt = world_sa(&world, &sa);

	(void)state;
	add(&spec);
	expect_route(&f, NULL);
	expect_drop(&f, rt, IPSEC_CACHE_POLICY_NONE);
}

static void
fragments_of_unknown_ports(void **state)
{
	struct ipsec_cache_policy_spec spec =
		tunnel(XFRM_POLICY_OUT, "10.1.0.0", "10.2.0.0", LOCAL, PEER);
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1");

	(void)state;
	spec.info.sel.dport = htons(80);
	spec.info.sel.dport_mask = UINT16_MAX;
	spec.info.priority = 5;
	add(&spec);
	f.dport = htons(81);
	expect_route(&f, NULL);
	f.dport = htons(80);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	f.dport = 0;
	f.fragment = 1;
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_FRAGMENT);
	/* one that allows and stands in front decides; with ports it cannot */
	spec = policy(XFRM_POLICY_OUT, "10.1.0.0", "10.2.0.0");
	spec.info.sel.sport = htons(9);
	spec.info.sel.sport_mask = UINT16_MAX;
	add(&spec);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_FRAGMENT);
	spec = policy(XFRM_POLICY_OUT, "10.1.0.0", "10.2.0.0");
	spec.info.sel.proto = IPPROTO_UDP;
	add(&spec);
	expect_route(&f, NULL);
}

/* What has no route to go by is not let through in clear if one comes a moment later. */
static void
no_route_is_no_way_out(void **state)
{
	struct ipsec_cache_policy_spec spec = policy(XFRM_POLICY_FWD, "10.3.0.0", "10.4.0.0");
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1"), blocked = flow("10.3.0.1", "10.4.0.1");

	(void)state;
	no_route = true;
	add_both_ways();
	spec.info.action = XFRM_POLICY_BLOCK;
	add(&spec);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_ROUTE);
	expect_drop(&blocked, NULL, IPSEC_CACHE_POLICY_BLOCK);
	f = flow("10.7.0.1", "10.8.0.1");
	expect_route(&f, NULL);
}

/* SAs. */

static struct ipsec_cache_rt *
found(const struct ipsec_flow *f, unsigned int worker)
{
	struct ipsec_cache_policy_spec spec =
		tunnel(XFRM_POLICY_OUT, "10.1.0.0", "10.2.0.0", LOCAL, PEER);

	return ipsec_sad_find(world.ic, &spec, f, 2, worker);
}

static void
sa_of_several(void **state)
{
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1");
	struct ipsec_cache_sa_spec spec = sa_spec(LOCAL, PEER, 0x1000);
	struct ipsec_cache_sa_id id;
	struct ipsec_cache_rt *first, *second, *own;
	uint64_t epoch;

	(void)state;
	assert_null(found(&f, 0));
	first = world_sa(&world, &spec);
	assert_ptr_equal(found(&f, 0), first);
	spec = sa_spec(LOCAL, PEER, 0x1001);
	second = world_sa(&world, &spec);
	assert_ptr_equal(found(&f, 0), second); /* the newest */
	sad_id(&spec, &id);
	epoch = atomic_load(&world.ic->epoch);
	assert_int_equal(ipsec_cache_sa_expire(world.ic, &id, false), 0);
	assert_true(atomic_load(&world.ic->epoch) > epoch);
	assert_ptr_equal(found(&f, 0), first); /* rather than a dying one */
	/* one of a worker's own comes first, for that worker alone */
	spec = sa_spec(LOCAL, PEER, 0x1002);
	spec.dir = SAD_DIR_OUT;
	spec.replay_window = 0;
	spec.has_pcpu = true;
	spec.pcpu = 1;
	own = world_sa(&world, &spec);
	assert_ptr_equal(found(&f, 1), own);
	assert_ptr_equal(found(&f, 0), first);
}

static void
sa_that_does_not_fit(void **state)
{
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1");
	struct ipsec_cache_sa_spec spec;

	(void)state;
	spec = sa_spec(LOCAL, PEER, 0x1000);
	spec.info.reqid = 8;
	(void)world_sa(&world, &spec);
	spec = sa_spec("192.0.2.9", PEER, 0x1001);
	(void)world_sa(&world, &spec);
	spec = sa_spec(LOCAL, PEER, 0x1002);
	spec.if_id = 1;
	(void)world_sa(&world, &spec);
	spec = sa_spec(LOCAL, PEER, 0x1003);
	spec.mark.v = spec.mark.m = 1;
	assert_null(world_sa(&world, &spec)); /* not found without its mark */
	spec = sa_spec(LOCAL, PEER, 0x1004);
	spec.info.flags = 0;
	spec.info.sel.family = AF_INET6; /* an IPv6 selector, and an IPv4 flow */
	(void)world_sa(&world, &spec);
	spec = sa_spec(LOCAL, PEER, 0x1005);
	spec.dir = SAD_DIR_IN;
	(void)world_sa(&world, &spec);
	spec = sa_spec(LOCAL, PEER, 0x1006);
	spec.info.flags = 0;
	spec.info.sel.family = AF_INET;
	spec.info.sel.dport_mask = UINT16_MAX; /* port 0: a fragment's are not known */
	(void)world_sa(&world, &spec);
	f.fragment = 1;
	assert_null(found(&f, 0));
	f.fragment = 0;
	assert_non_null(found(&f, 0));
}

static void
sa_by_id(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(PEER, LOCAL, 0x1000);
	uint8_t daddr[16] = { 192, 0, 2, 1 }, other[16] = { 192, 0, 2, 2 };
	struct ipsec_cache_rt *rt;
	struct ipsec_cache_sa_id id;
	const char *why;

	(void)state;
	assert_null(ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, daddr, 0));
	spec.mark.v = 2;
	spec.mark.m = 0xf;
	assert_null(world_sa(&world, &spec));
	rt = ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, daddr, 0x12);
	assert_non_null(rt);
	assert_null(ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, daddr, 3));
	assert_null(ipsec_sad_lookup(world.ic, htonl(0x1001), AF_INET, daddr, 2));
	assert_null(ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, other, 2));
	assert_null(ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET6, daddr, 2));
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EEXIST);
	spec.mark.v = 3;
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), 0);
	sad_id(&spec, &id);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), -ESRCH);
	assert_ptr_equal(ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, daddr, 2), rt);
	assert_int_equal(ipsec_cache_sa_flush(world.ic, IPPROTO_AH), -ESRCH);
	assert_int_equal(ipsec_cache_sa_flush(world.ic, IPPROTO_ESP), 0);
	assert_null(ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, daddr, 2));
	assert_false(ipsec_cache_active(world.ic));
}

/* E4: what was removed stays whole until the readers of that time are gone. */
static void
esp_E4_freed_after_a_grace_period(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(PEER, LOCAL, 0x1000);
	struct ipsec_cache_rt *rt = world_sa(&world, &spec);
	struct ipsec_cache_sa_id id;
	uint64_t epoch = atomic_load(&world.ic->epoch);

	(void)state;
	rte_rcu_qsbr_thread_online(world.qsbr, 0);
	sad_id(&spec, &id);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
	assert_true(atomic_load(&world.ic->epoch) > epoch);
	assert_int_equal(rcu_reclaim(world.rcu, 0), 0);
	assert_int_equal(ipsec_rt_sa(rt)->spec.aead.key[1], spec.aead.key[1]);
	rte_rcu_qsbr_quiescent(world.qsbr, 0);
	assert_int_equal(rcu_reclaim(world.rcu, 0), 1);
	rte_rcu_qsbr_thread_offline(world.qsbr, 0);
}

static void
sa_table_full(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(LOCAL, PEER, 0x1000);
	const char *why = "";

	(void)state;
	world.ic->conf.max_sas = 1;
	(void)world_sa(&world, &spec);
	spec.info.id.spi = htonl(0x1001);
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -ENOSPC);
	assert_string_equal(why, "There is no room for another SA");
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1);
}

/* Events. */

static struct heard {
	unsigned int n[IPSEC_CACHE_EVENT_MAPPING + 1];
	bool tell;
	struct xfrm_selector sel;
	uint32_t seq;
} heard;

static void
hear(void *arg, enum ipsec_cache_event event, const void *object)
{
	struct heard *h = arg;

	h->n[event]++;
	if (event == IPSEC_CACHE_EVENT_ACQUIRE) {
		const struct ipsec_cache_acquire *a = object;

		h->sel = a->sel;
		h->seq = a->seq;
		*a->told = h->tell;
	}
}

static void
lifetime_in_packets(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(LOCAL, PEER, 0x1000);
	struct ipsec_cache_rt *rt;

	(void)state;
	spec.info.curlft.packets = 10; /* are behind it */
	spec.info.lft.soft_packet_limit = 15;
	spec.info.lft.hard_packet_limit = 20;
	rt = world_sa(&world, &spec);
	ipsec_cache_tick(world.ic, 1000);
	ipsec_rt_count(rt, 4, 400, 1);
	ipsec_cache_tick(world.ic, 2000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT], 0);
	ipsec_rt_count(rt, 1, 100, 1);
	ipsec_cache_tick(world.ic, 3000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT], 1);
	ipsec_rt_count(rt, 4, 100, 1);
	ipsec_cache_tick(world.ic, 4000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT], 1);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 0);
	ipsec_rt_count(rt, 1, 100, 1);
	ipsec_cache_tick(world.ic, 5000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 1);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_DEL], 0);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 0);
}

/* D11: the last sequence number is used up. */
static void
esp_D11_exhausted_is_told(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(LOCAL, PEER, 0x1000);

	(void)state;
	spec.has_replay = true;
	spec.oseq = UINT32_MAX;
	(void)world_sa(&world, &spec);
	ipsec_cache_tick(world.ic, 1000);
	ipsec_cache_tick(world.ic, 2000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 1);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 0);
}

static void
lifetime_since_first_use(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(LOCAL, PEER, 0x1000);
	struct ipsec_cache_rt *rt;

	(void)state;
	spec.info.lft.hard_use_expires_seconds = 3;
	rt = world_sa(&world, &spec);
	ipsec_cache_tick(world.ic, 1000);
	ipsec_cache_tick(world.ic, 100000);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1);
	ipsec_rt_count(rt, 1, 1, 12345);
	ipsec_cache_tick(world.ic, 101000);
	ipsec_cache_tick(world.ic, 103900);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1);
	ipsec_cache_tick(world.ic, 104900);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 0);
}

/* Each of many is looked at once a second, whatever the ticks. */
static void
lifetimes_of_many(void **state)
{
	struct ipsec_cache_sa_spec spec;

	(void)state;
	ipsec_cache_tick(world.ic, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		spec = sa_spec(LOCAL, PEER, 0x1000 + i);
		spec.info.lft.hard_add_expires_seconds = 2;
		(void)world_sa(&world, &spec);
	}
	for (uint64_t now = 1; now < 2001; now += 50)
		ipsec_cache_tick(world.ic, now);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1000);
	for (uint64_t now = 2001; now <= 3101; now += 50)
		ipsec_cache_tick(world.ic, now);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 0);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 1000);
}

static void
numbers_are_told(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(PEER, LOCAL, 0x1000);
	struct ipsec_cache_rt *rt;

	(void)state;
	spec.replay_maxdiff = 10;
	spec.replay_maxage = 50; /* tenths of a second */
	rt = world_sa(&world, &spec);
	ipsec_cache_tick(world.ic, 1000);
	ipsec_store(&rt->window.top, 9);
	ipsec_cache_tick(world.ic, 2000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_AE], 0);
	ipsec_store(&rt->window.top, 10);
	ipsec_cache_tick(world.ic, 3000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_AE], 1);
	ipsec_store(&rt->window.top, 11);
	ipsec_cache_tick(world.ic, 7900);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_AE], 1);
	ipsec_cache_tick(world.ic, 8900);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_AE], 2);
	ipsec_cache_tick(world.ic, 19900);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_AE], 2);
}

static void
acquire_once(void **state)
{
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1"), g = flow("10.1.0.2", "10.2.0.2");
	struct ipsec_cache_sa_spec spec = sa_spec(LOCAL, PEER, 0x1000);
	uint32_t daddr;

	(void)state;
	heard.tell = true;
	add_both_ways();
	ipsec_cache_tick(world.ic, 1000);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	expect_drop(&g, NULL, IPSEC_CACHE_POLICY_NO_SA);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_ACQUIRE], 0); /* workers tell nobody */
	ipsec_cache_tick(world.ic, 1100);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_ACQUIRE], 1);
	memcpy(&daddr, f.daddr, 4);
	assert_int_equal(heard.sel.daddr.a4, daddr);
	assert_int_equal(heard.sel.prefixlen_d, 32);
	assert_int_not_equal(heard.seq, 0);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1); /* larval */
	expect_drop(&g, NULL, IPSEC_CACHE_POLICY_NO_SA);
	ipsec_cache_tick(world.ic, 1200);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_ACQUIRE], 1);
	/* E6: the SA comes, the larval one goes */
	(void)world_sa(&world, &spec);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1);
	assert_int_equal(decide(&f, NULL).action, IPSEC_CACHE_PROTECT);
}

static void
acquire_again(void **state)
{
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1");
	uint64_t epoch;

	(void)state;
	add_both_ways();
	ipsec_cache_tick(world.ic, 1000);
	/* nobody listens: nothing is left behind, and traffic may ask again in a second */
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	epoch = atomic_load(&world.ic->epoch);
	ipsec_cache_tick(world.ic, 2000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_ACQUIRE], 1);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 0);
	assert_true(atomic_load(&world.ic->epoch) > epoch);
	epoch = atomic_load(&world.ic->epoch);
	ipsec_cache_tick(world.ic, 4000);
	assert_int_equal(atomic_load(&world.ic->epoch), epoch);
	/* somebody listens, and does nothing: after the larval SA's time traffic asks again */
	heard.tell = true;
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	ipsec_cache_tick(world.ic, 4100);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_ACQUIRE], 2);
	epoch = atomic_load(&world.ic->epoch);
	ipsec_cache_tick(world.ic, 4100 + IPSEC_LARVAL_SECONDS * 1000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 1);
	assert_true(atomic_load(&world.ic->epoch) > epoch);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	ipsec_cache_tick(world.ic, 4200 + IPSEC_LARVAL_SECONDS * 1000);
	assert_int_equal(heard.n[IPSEC_CACHE_EVENT_ACQUIRE], 3);
}

/* An acquire's larval SA gets its SPI by allocspi, which keeps the packet's selector. */
static void
acquire_then_spi(void **state)
{
	struct ipsec_flow f = flow("10.1.0.1", "10.2.0.1");
	const struct xfrm_mark none = { 0, 0 };
	struct xfrm_userspi_info info;
	struct ipsec_cache_sa *sa;
	const char *why;

	(void)state;
	heard.tell = true;
	add_both_ways();
	ipsec_cache_tick(world.ic, 1000);
	expect_drop(&f, NULL, IPSEC_CACHE_POLICY_NO_SA);
	ipsec_cache_tick(world.ic, 1100);
	memset(&info, 0, sizeof(info));
	info.info = sa_spec(LOCAL, PEER, 0).info;
	info.info.flags = 0;
	info.min = info.max = 0x3000;
	assert_int_equal(ipsec_cache_sa_alloc_spi(world.ic, &info, &none, 0, &sa, &why), 0);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 1);
	assert_int_equal(sa->spec.info.id.spi, htonl(0x3000));
	assert_int_equal(sa->spec.info.sel.prefixlen_d, 32);
	assert_int_equal(sa->spec.info.seq, heard.seq);
}

static int
setup(void **state)
{
	(void)state;
	no_route = false;
	memset(&heard, 0, sizeof(heard));
	world_create(&world, WORKERS, 0, false);
	world.ic->conf.resolve = resolve;
	ipsec_cache_listen(world.ic, hear, &heard);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_destroy(&world);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(esp_D21_no_policy_follows_the_default),
		T(esp_D21_protected_or_not_at_all),
		T(esp_D21_in_by_the_right_sa),
		T(optional_template),
		T(tunnel_meets_plain_policy),
		T(fragments_of_unknown_ports),
		T(no_route_is_no_way_out),
		T(sa_of_several),
		T(sa_that_does_not_fit),
		T(sa_by_id),
		T(esp_E4_freed_after_a_grace_period),
		T(sa_table_full),
		T(lifetime_in_packets),
		T(esp_D11_exhausted_is_told),
		T(lifetime_since_first_use),
		T(lifetimes_of_many),
		T(numbers_are_told),
		T(acquire_once),
		T(acquire_again),
		T(acquire_then_spi),
	};

	test_eal_init("ipsec-control", "0");
	return cmocka_run_group_tests_name("ipsec_control", tests, NULL, NULL);
}
