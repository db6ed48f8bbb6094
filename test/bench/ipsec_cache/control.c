/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What control costs: 60,000 SAs and 10,000 policies added, changed and taken away through the
 * library, and looked up the slow way that a cache miss goes.
 *
 *   load      microseconds an SA, a policy
 *   change    with all of them there, a policy replaced, a rekey (one added, one deleted): median,
 *             99th percentile and slowest, microseconds; a tick of 100 ms
 *   look-up   cycles of one slow decision for a flow that has an SA, with 1 .. 10,000 policies of
 *             1 and of 32 shapes, flows in turn
 *
 * usage: ipsec_control_bench EAL-options -- [-o file.json]
 */

#include <err.h>
#include <getopt.h>
#include <inttypes.h>

#include <rte_cycles.h>

#include "bench/median.h"
#include "unit/ipsec_cache/world.h"

#define SAS 60000
#define POLICIES 10000
#define CHANGES 5000
#define LOOKS 20000

static struct world world;
static FILE *json;
static bool json_first = true;
static double us; /* cycles of a microsecond */

static void
row(const char *group, const char *name, double value, const char *unit)
{
	printf("  %-44s %10.2f %s\n", name, value, unit);
	if (json == NULL)
		return;
	fprintf(json,
		"%s\n  {\"group\": \"%s\", \"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}",
		json_first ? "" : ",", group, name, value, unit);
	json_first = false;
}

/* Of tunnel i, the generation-th. */
static struct ipsec_cache_sa_spec
sa(uint32_t i, uint32_t generation)
{
	struct ipsec_cache_sa_spec spec =
		world_spec("192.0.2.1", "198.51.100.2", 0x1000 + i + generation * SAS);

	spec.info.id.daddr.a4 = htonl(0xc6120000 + i); /* 198.18/15 */
	spec.info.reqid = i;
	return spec;
}

/* Flow i's: protected by an SA of reqid i. Of 32 shapes the prefix lengths differ. */
static struct ipsec_cache_policy_spec
policy(uint32_t i, unsigned int shapes)
{
	struct ipsec_cache_policy_spec spec;

	memset(&spec, 0, sizeof(spec));
	spec.info.dir = XFRM_POLICY_OUT;
	spec.info.priority = i % 100;
	spec.info.sel.family = AF_INET;
	spec.info.sel.daddr.a4 = htonl(0x0a000000 + i);
	spec.info.sel.prefixlen_d = 32;
	spec.info.sel.saddr.a4 = htonl(0xac100000);
	spec.info.sel.prefixlen_s = (uint8_t)(shapes == 1 ? 16 : i % shapes);
	spec.n_tmpl = 1;
	spec.tmpl[0].family = AF_INET;
	spec.tmpl[0].mode = XFRM_MODE_TUNNEL;
	spec.tmpl[0].id.proto = IPPROTO_ESP;
	spec.tmpl[0].id.daddr.a4 = htonl(0xc6120000 + i);
	spec.tmpl[0].reqid = i;
	return spec;
}

static void
add_sa(uint32_t i, uint32_t generation)
{
	struct ipsec_cache_sa_spec spec = sa(i, generation);
	const char *why = "";

	if (ipsec_cache_sa_add(world.ic, &spec, false, &why) != 0)
		errx(1, "%s", why);
}

static void
del_sa(uint32_t i, uint32_t generation)
{
	struct ipsec_cache_sa_spec spec = sa(i, generation);
	struct ipsec_cache_sa_id id = { .daddr = spec.info.id.daddr,
		.spi = spec.info.id.spi,
		.family = AF_INET,
		.proto = IPPROTO_ESP };

	if (ipsec_cache_sa_del(world.ic, &id) != 0)
		errx(1, "no such SA");
}

static void
add_policy(uint32_t i, unsigned int shapes)
{
	struct ipsec_cache_policy_spec spec = policy(i, shapes);
	const char *why = "";

	if (ipsec_cache_policy_add(world.ic, &spec, true, &why) != 0)
		errx(1, "%s", why);
}

static void
print_changes(const char *name, double *cost, unsigned int n)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, median", name);
	row("change", text, median(cost, n), "us");
	snprintf(text, sizeof(text), "%s, 99th percentile", name);
	row("change", text, cost[n - 1 - n / 100], "us");
	snprintf(text, sizeof(text), "%s, slowest", name);
	row("change", text, cost[n - 1], "us");
}

static double
since(uint64_t start)
{
	return (double)(rte_rdtsc() - start) / us;
}

static void
load(void)
{
	uint64_t start = rte_rdtsc();

	printf("load\n");
	for (uint32_t i = 0; i < SAS; i++)
		add_sa(i, 0);
	row("load", "an SA, of 60,000", since(start) / SAS, "us");
	start = rte_rdtsc();
	for (uint32_t i = 0; i < POLICIES; i++)
		add_policy(i, 32);
	row("load", "a policy, of 10,000 of 32 shapes", since(start) / POLICIES, "us");
}

static void
change(void)
{
	static double cost[CHANGES];
	uint64_t start;

	printf("change\n");
	for (uint32_t i = 0; i < CHANGES; i++) {
		start = rte_rdtsc();
		add_policy((i * 7919) % POLICIES, 32);
		cost[i] = since(start);
		rcu_reclaim(world.rcu, 0);
	}
	print_changes("a policy replaced", cost, CHANGES);
	for (uint32_t i = 0; i < CHANGES; i++) {
		start = rte_rdtsc();
		add_sa(i, 1);
		del_sa(i, 0);
		cost[i] = since(start);
		rcu_reclaim(world.rcu, 0);
	}
	print_changes("a rekey", cost, CHANGES);
	ipsec_cache_tick(world.ic, 1);
	for (uint32_t i = 0; i < 100; i++) {
		start = rte_rdtsc();
		ipsec_cache_tick(world.ic, 101 + i * 100);
		cost[i] = since(start);
	}
	print_changes("a tick of 100 ms", cost, 100);
}

static double
look(uint32_t n)
{
	struct ipsec_cache_decision d;
	struct ipsec_flow f;
	uint64_t start = rte_rdtsc();

	memset(&f, 0, sizeof(f));
	f.family = AF_INET;
	f.proto = IPPROTO_UDP;
	memcpy(f.saddr, (uint8_t[]){ 172, 16, 0, 1 }, 4);
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint32_t daddr = htonl(0x0a000000 + i * 7919 % n);

		memcpy(f.daddr, &daddr, 4);
		ipsec_decide(world.ic, 0, &f, NULL, &d);
		if (d.action != IPSEC_CACHE_PROTECT)
			errx(1, "flow %" PRIu32 " is not protected: %u", i * 7919 % n, d.error);
	}
	return (double)(rte_rdtsc() - start) / LOOKS;
}

static void
look_up(void)
{
	static const uint32_t sizes[] = { 1, 100, 1000, POLICIES };

	printf("look-up\n");
	for (unsigned int shapes = 1; shapes <= 32; shapes += 31)
		for (unsigned int s = 0; s < RTE_DIM(sizes); s++) {
			char name[64];
			double best = 0, cycles;

			(void)ipsec_cache_policy_flush(world.ic);
			rcu_reclaim(world.rcu, 0);
			for (uint32_t i = 0; i < sizes[s]; i++)
				add_policy(i, shapes);
			for (unsigned int i = 0; i < 5; i++)
				if ((cycles = look(sizes[s])) < best || i == 0)
					best = cycles;
			snprintf(name, sizeof(name), "%" PRIu32 " policies, %u shape%s", sizes[s],
				RTE_MIN(shapes, sizes[s]), shapes == 1 ? "" : "s");
			row("look-up", name, best, "cycles");
		}
}

static void
take_away(void)
{
	uint64_t start = rte_rdtsc();

	printf("take away\n");
	(void)ipsec_cache_sa_flush(world.ic, 0);
	row("flush", "an SA of a flush", since(start) / SAS, "us");
	start = rte_rdtsc();
	rcu_barrier(world.rcu);
	row("flush", "an SA wiped and freed", since(start) / SAS, "us");
}

int
main(int argc, char *argv[])
{
	int n = rte_eal_init(argc, argv), c;

	if (n < 0)
		errx(1, "rte_eal_init: %s", rte_strerror(rte_errno));
	argc -= n;
	argv += n;
	while ((c = getopt(argc, argv, "o:")) != -1) {
		if (c != 'o' || (json = fopen(optarg, "w")) == NULL)
			err(1, "%s", c == 'o' ? optarg : "usage: ... -- [-o file.json]");
		fprintf(json, "[");
	}
	us = (double)rte_get_tsc_hz() / 1e6;
	world_create(&world, 1, 0, false);
	load();
	change();
	look_up();
	take_away();
	world_destroy(&world);
	if (json != NULL) {
		fprintf(json, "\n]\n");
		if (fclose(json) != 0)
			err(1, "the file of figures");
	}
	return 0;
}
