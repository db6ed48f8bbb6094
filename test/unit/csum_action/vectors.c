/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Runs every line that vectors.py wrote through every implementation, and through the bytewise
 * reference in C, so that what reference.c says about random frames can be believed: one cmocka
 * test a name. Then all of them cut in two at every byte, with empty segments, and in segments of a
 * few bytes: rule A20.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <rte_ethdev.h>
#include <rte_net.h>

#include "harness.h"
#include "nic.h"
#include "reference.h"
#include "support.h"

#define CUT_ALL_BELOW 400 /* frames longer are cut in few ways only */
#define SEGMENT_MAX 2000
#define OFFERS_MAX 15 /* all ways to offer four sums */
#define ALL_SUMS \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_SCTP_CKSUM)

struct line {
	char name[64];
	uint32_t flags;
	uint8_t *in, *out;
	uint32_t len;
	char reason[32];
};

static struct harness harness;
static struct rte_mempool *pool;
static struct line *lines;
static size_t n_lines;
static unsigned int n_checks, n_offloaded;

static uint8_t *
from_hex(const char *hex, uint32_t *len)
{
	uint8_t *data;
	uint32_t i;

	if (strcmp(hex, "-") == 0)
		hex = "";
	*len = (uint32_t)strlen(hex) / 2;
	data = malloc(*len + 1);
	for (i = 0; i < *len; i++)
		sscanf(hex + 2 * (size_t)i, "%2hhx", &data[i]);
	return data;
}

static void
read_lines(const char *path)
{
	FILE *f = fopen(path, "r");
	char *in = NULL, *out = NULL;
	struct line l;
	uint32_t out_len;

	if (f == NULL) {
		perror(path);
		exit(1);
	}
	while (fscanf(f, "%63s %x %ms %ms %31s", l.name, &l.flags, &in, &out, l.reason) == 5) {
		l.in = from_hex(in, &l.len);
		l.out = from_hex(out, &out_len);
		free(in);
		free(out);
		if (l.len != out_len) {
			fprintf(stderr, "%s: a frame changed its length\n", l.name);
			exit(1);
		}
		lines = realloc(lines, (n_lines + 1) * sizeof(*lines));
		lines[n_lines++] = l;
	}
	fclose(f);
}

static void
check(const struct line *l, const struct csum_impl *impl, struct rte_mbuf *m, const char *how,
	uint32_t cut)
{
	unsigned int reason = harness_run(&harness, impl, l->flags, &m);

	n_checks++;
	if (!harness_equal(m, l->out, l->len))
		fail_msg("%s: wrong bytes (%s, %s %u)", l->name, impl->name, how, cut);
	if (strcmp(csum_action_reason_name(reason), l->reason) != 0)
		fail_msg("%s: counted %s, not %s (%s, %s %u)", l->name,
			csum_action_reason_name(reason), l->reason, impl->name, how, cut);
	rte_pktmbuf_free(m);
}

/*
 * A25: with every sum left to a NIC, prepared by DPDK, the same bytes leave; and likewise where the
 * NIC turns out to offer nothing.
 */
static void
check_offload(const struct line *l, const struct csum_impl *impl, uint64_t offers)
{
	struct rte_mbuf *m = harness_cut(pool, l->in, l->len, SEGMENT_MAX);
	unsigned int reason;

	csum_action_offload_set(harness.csum, ALL_SUMS);
	reason = harness_run(&harness, impl, l->flags, &m);
	csum_action_offload_set(harness.csum, 0);
	if (strcmp(reason == CSUM_ACTION_LEFT ? "computed" : csum_action_reason_name(reason),
		    l->reason) != 0)
		fail_msg("%s: offload counted %s", l->name, csum_action_reason_name(reason));
	if (csum_action_complete(harness.csum, 0, &m, 1, offers) != 0)
		fail_msg("%s: incomplete for a port with %" PRIx64, l->name, offers);
	harness_reason(&harness);
	if (rte_net_intel_cksum_prepare(m) != 0)
		fail_msg("%s: rte_eth_tx_prepare() refuses", l->name);
	if (!nic_send(m, offers))
		fail_msg("%s: asks for more than %" PRIx64, l->name, offers);
	if (!harness_equal(m, l->out, l->len))
		fail_msg("%s: wrong bytes from a port with %" PRIx64, l->name, offers);
	n_offloaded += reason == CSUM_ACTION_LEFT;
	rte_pktmbuf_free(m);
}

static void
check_short(const struct line *l, const struct csum_impl *impl)
{
	static const uint32_t few[] = { 1, 2, 3, 5, 7, 13 };
	uint32_t cuts[3], i;

	for (i = 0; i <= l->len; i++) {
		cuts[0] = cuts[1] = cuts[2] = i;
		check(l, impl, harness_chain(pool, l->in, l->len, cuts, 1), "cut at", i);
		if (i % 3 == 0)
			check(l, impl, harness_chain(pool, l->in, l->len, cuts, 3),
				"empty segments at", i);
	}
	for (i = 0; i < RTE_DIM(few); i++)
		check(l, impl, harness_cut(pool, l->in, l->len, few[i]), "segments of", few[i]);
}

static void
check_long(const struct line *l, const struct csum_impl *impl)
{
	static const uint32_t few[] = { 61, 127, 1000, 1999 };
	uint32_t i;

	for (i = 0; i < RTE_DIM(few); i++)
		check(l, impl, harness_cut(pool, l->in, l->len, few[i]), "segments of", few[i]);
}

static void
check_reference(const struct line *l)
{
	uint8_t *copy = malloc(l->len + 1);
	const char *reason;

	memcpy(copy, l->in, l->len);
	reason = reference_update(copy, l->len, l->flags);
	if (memcmp(copy, l->out, l->len) != 0 || strcmp(reason, l->reason) != 0)
		fail_msg("%s: the reference in C says %s, that in Python %s", l->name, reason,
			l->reason);
	free(copy);
}

/* *state names the first line of a rule; all lines of that name follow it. */
static void
rule(void **state)
{
	const struct line *l = *state, *first = l;
	const struct csum_impl *impl;
	unsigned int i;

	for (; l < lines + n_lines && strcmp(l->name, first->name) == 0; l++) {
		check_reference(l);
		for (i = 0; i <= OFFERS_MAX; i++)
			check_offload(l, csum_impl_get(0),
				(i & 1 ? RTE_ETH_TX_OFFLOAD_IPV4_CKSUM : 0) |
					(i & 2 ? RTE_ETH_TX_OFFLOAD_UDP_CKSUM : 0) |
					(i & 4 ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM : 0) |
					(i & 8 ? RTE_ETH_TX_OFFLOAD_SCTP_CKSUM : 0));
		for (i = 0; (impl = csum_impl_get(i)) != NULL; i++)
			check(l, impl, harness_cut(pool, l->in, l->len, SEGMENT_MAX), "segments of",
				SEGMENT_MAX);
	}
	assert_true(test_pool_full(pool));
}

static void
csum_A20_chains_are_as_flat_packets(void **state)
{
	const struct csum_impl *impl;

	(void)state;
	for (const struct line *l = lines; l < lines + n_lines; l++) {
		for (unsigned int i = 0; (impl = csum_impl_get(i)) != NULL; i++) {
			if (l->len < CUT_ALL_BELOW)
				check_short(l, impl);
			else
				check_long(l, impl);
		}
	}
	assert_true(test_pool_full(pool));
}

int
main(int argc, char *argv[])
{
	struct CMUnitTest *tests;
	size_t i, n = 0;
	int failed;

	if (argc != 2) {
		fprintf(stderr, "usage: csum_vectors FILE\n");
		return 2;
	}
	test_eal_init("csum-vectors", "0");
	pool = test_pool("vectors", 2047);
	harness_open(&harness);
	read_lines(argv[1]);
	tests = calloc(n_lines + 1, sizeof(*tests));
	for (i = 0; i < n_lines; i++)
		if (i == 0 || strcmp(lines[i].name, lines[i - 1].name) != 0)
			tests[n++] = (struct CMUnitTest){
				.name = lines[i].name, .test_func = rule, .initial_state = &lines[i]
			};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(csum_A20_chains_are_as_flat_packets);
	failed = _cmocka_run_group_tests("csum vectors", tests, n, NULL, NULL);
	printf("%zu frames, %u runs, %u sums left\n", n_lines, n_checks, n_offloaded);
	harness_close(&harness);
	return failed == 0 && n > 0 ? 0 : 1;
}
