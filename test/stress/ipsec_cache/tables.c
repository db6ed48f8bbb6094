/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Policies and SAs are changed as fast as one thread can, beside workers that look them up. What
 * must hold in every look-up:
 *
 *   D21 what a policy blocks is blocked while that policy is replaced, in place (UPDPOLICY) and by
 *       another one that comes before it goes, under the same mask and others;
 *   E3  a rekey that adds before it deletes never looks as if there were no SA;
 *       what stays is found while others of its bucket come and go.
 *
 * For TSan and ASan as well as by itself.
 *
 * ipsec_tables [seconds]; MILLRACE_STRESS_SECONDS does the same.
 */

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "ipsec_cache/sad.h"
#include "ipsec_cache/spd.h"
#include "unit/ipsec_cache/world.h"

#define WORKERS 2
#define CHURN 64

static struct world world;
static atomic_bool stop;
static atomic_ulong looks, lost_policy, lost_sa, lost_id;

static struct ipsec_flow
test_flow(void)
{
	struct ipsec_flow f;

	memset(&f, 0, sizeof(f));
	f.family = AF_INET;
	f.proto = IPPROTO_UDP;
	f.in_ifindex = 1;
	inet_pton(AF_INET, "10.1.0.1", f.saddr);
	inet_pton(AF_INET, "10.2.0.1", f.daddr);
	return f;
}

static struct ipsec_cache_policy_spec
policy(uint8_t prefix, uint32_t priority, uint8_t action)
{
	struct ipsec_cache_policy_spec spec;

	memset(&spec, 0, sizeof(spec));
	spec.info.dir = XFRM_POLICY_FWD;
	spec.info.sel.family = AF_INET;
	inet_pton(AF_INET, "10.1.0.1", &spec.info.sel.saddr);
	inet_pton(AF_INET, "10.2.0.1", &spec.info.sel.daddr);
	spec.info.sel.prefixlen_s = spec.info.sel.prefixlen_d = prefix;
	spec.info.priority = priority;
	spec.info.action = action;
	return spec;
}

static struct ipsec_cache_policy_spec
tunnel(void)
{
	struct ipsec_cache_policy_spec spec = policy(16, 0, XFRM_POLICY_ALLOW);

	spec.n_tmpl = 1;
	spec.tmpl[0].family = AF_INET;
	spec.tmpl[0].mode = XFRM_MODE_TUNNEL;
	spec.tmpl[0].id.proto = IPPROTO_ESP;
	inet_pton(AF_INET, "198.51.100.2", &spec.tmpl[0].id.daddr);
	return spec;
}

static void *
work(void *arg)
{
	unsigned int id = (unsigned int)(uintptr_t)arg;
	const struct ipsec_cache_policy_spec tmpl = tunnel();
	const struct ipsec_flow flow = test_flow();
	const uint8_t daddr[16] = { 198, 51, 100, 2 };

	rte_thread_register();
	rte_rcu_qsbr_thread_online(world.qsbr, id);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (unsigned int i = 0; i < 32; i++) {
			const struct ipsec_cache_policy *p;
			struct ipsec_cache_decision d;
			bool uncertain;

			p = ipsec_spd_lookup(world.ic, XFRM_POLICY_FWD, &flow, 1, &uncertain);
			if (p == NULL || p->spec.info.action != XFRM_POLICY_BLOCK)
				atomic_fetch_add(&lost_policy, 1);
			if (ipsec_sad_find(world.ic, &tmpl, &flow, 1, id) == NULL)
				atomic_fetch_add(&lost_sa, 1);
			if (ipsec_sad_lookup(world.ic, htonl(0x1000), AF_INET, daddr, 0) == NULL)
				atomic_fetch_add(&lost_id, 1);
			ipsec_decide(world.ic, id, &flow, NULL, &d);
			if (d.action != IPSEC_CACHE_DROP || d.error != IPSEC_CACHE_POLICY_BLOCK)
				atomic_fetch_add(&lost_policy, 1);
		}
		atomic_fetch_add_explicit(&looks, 32, memory_order_relaxed);
		rte_rcu_qsbr_quiescent(world.qsbr, id);
	}
	rte_rcu_qsbr_thread_offline(world.qsbr, id);
	rte_thread_unregister();
	return NULL;
}

static void
add(const struct ipsec_cache_policy_spec *spec, bool update)
{
	const char *why = "";

	if (ipsec_cache_policy_add(world.ic, spec, update, &why) != 0)
		errx(1, "%s", why);
}

static void
del(const struct ipsec_cache_policy_spec *spec)
{
	if (ipsec_cache_policy_del(world.ic, spec) != 0)
		errx(1, "a policy was not there");
}

static void
sa_add(uint32_t spi, uint32_t reqid)
{
	struct ipsec_cache_sa_spec spec = world_spec("192.0.2.1", "198.51.100.2", spi);

	spec.info.reqid = reqid;
	(void)world_sa(&world, &spec);
}

static void
sa_del(uint32_t spi)
{
	struct ipsec_cache_sa_id id = {
		.spi = htonl(spi), .family = AF_INET, .proto = IPPROTO_ESP
	};

	inet_pton(AF_INET, "198.51.100.2", &id.daddr);
	if (ipsec_cache_sa_del(world.ic, &id) != 0)
		errx(1, "an SA was not there");
}

/* One round of changes; every one is made before the one that it stands for is taken back. */
static void
change(unsigned int round)
{
	static const uint8_t prefixes[] = { 8, 16, 24, 32 };
	struct ipsec_cache_policy_spec old =
		policy(prefixes[round % 4], round % 3, XFRM_POLICY_BLOCK);
	struct ipsec_cache_policy_spec new =
		policy(prefixes[(round + 1) % 4], (round + 1) % 3, XFRM_POLICY_BLOCK);
	struct ipsec_cache_policy_spec other;

	/* in place, with another priority */
	for (unsigned int i = 0; i < 4; i++) {
		old.info.priority = i % 3;
		add(&old, true);
	}
	add(&new, false);
	del(&old);
	/* others of that mask */
	other = policy(32, 9, XFRM_POLICY_ALLOW);
	other.info.sel.daddr.a4 = htonl(0x0a090000 + round % CHURN);
	add(&other, true);
	if (round % 7 == 0)
		del(&other);
	/* rekeys: the same peer, and another reqid in the same table */
	sa_add(0x2000 + round + 1, 0);
	sa_del(0x2000 + round);
	sa_add(0x1001, 5);
	sa_del(0x1001);
	rcu_reclaim(world.rcu, 0);
}

int
main(int argc, char *argv[])
{
	const char *env = getenv("MILLRACE_STRESS_SECONDS");
	double seconds = strtod(argc > 1 ? argv[1] : env != NULL ? env : "5", NULL);
	struct ipsec_cache_policy_spec spec;
	pthread_t thread[WORKERS];
	unsigned int round = 0;
	uint64_t end;

	test_eal_init("ipsec-tables", "0");
	world_create(&world, WORKERS, 0, false);
	spec = policy(0, 8, XFRM_POLICY_ALLOW);
	add(&spec, false);
	spec = policy(8, 0, XFRM_POLICY_BLOCK);
	add(&spec, false);
	sa_add(0x1000, 9);
	sa_add(0x2000, 0);
	for (uintptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i) != 0)
			errx(1, "pthread_create");
	end = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());
	while (rte_rdtsc() < end)
		change(round++);
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	printf("%u rounds of 13 changes beside %lu look-ups of each kind; lost: policy %lu, SA "
	       "%lu, "
	       "SPI %lu\n",
		round, (unsigned long)looks, (unsigned long)lost_policy, (unsigned long)lost_sa,
		(unsigned long)lost_id);
	world_destroy(&world);
	if (round < 10 || looks == 0)
		errx(1, "hardly anything was done");
	return lost_policy + lost_sa + lost_id == 0 ? 0 : 1;
}
