/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Random frames, valid, bent and cut, against the bytewise reference: bytes and reason, with each
 * implementation in turn, flat and in random segments. A million by default.
 *
 * usage: csum_random [FRAMES [SEED]]; a failure prints the seed and number of its frame.
 */

#include <inttypes.h>

#include "generator.h"
#include "harness.h"
#include "reference.h"
#include "support.h"

#define CUTS_MAX 6

static void
dump(const char *what, const uint8_t *p, uint32_t len)
{
	uint32_t i;

	fprintf(stderr, "%s ", what);
	for (i = 0; i < len; i++)
		fprintf(stderr, "%02x", p[i]);
	fprintf(stderr, "\n");
}

/* Ascending offsets in a frame of len bytes; returns how many. */
static unsigned int
random_cuts(struct generator *g, uint32_t len, uint32_t *cuts)
{
	unsigned int i, n = generator_below(g, CUTS_MAX + 1);

	for (i = 0; i < n; i++)
		cuts[i] = (i == 0 ? 0 : cuts[i - 1]) +
			generator_below(g, (len - (i == 0 ? 0 : cuts[i - 1])) / (n - i) + 1);
	return n;
}

int
main(int argc, char *argv[])
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000, i, seen[32] = { 0 };
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 4;
	uint8_t in[GENERATOR_MAX], want[GENERATOR_MAX];
	unsigned int n_impls = 0, reason, n_cuts;
	struct generator g = { .state = seed };
	uint32_t len, flags, cuts[CUTS_MAX];
	struct rte_mempool *pool;
	struct harness harness;
	const char *why;

	test_eal_init("csum-random", "0");
	pool = test_pool("random", 63);
	harness_open(&harness);
	while (csum_impl_get(n_impls) != NULL)
		n_impls++;
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m;

		len = generator_frame(&g, in);
		flags = generator_below(&g, 2) == 0 ? CSUM_ACTION_FLAGS : generator_below(&g, 128);
		n_cuts = generator_below(&g, 2) == 0 ? 0 : random_cuts(&g, len, cuts);
		m = harness_chain(pool, in, len, cuts, n_cuts);
		memcpy(want, in, len);
		why = reference_update(want, len, flags);
		reason = harness_run(&harness, csum_impl_get(i % n_impls), flags, &m);
		if (reason < RTE_DIM(seen))
			seen[reason]++;
		if (!harness_equal(m, want, len) ||
			strcmp(why, csum_action_reason_name(reason)) != 0) {
			fprintf(stderr,
				"frame %" PRIu64 " of seed %" PRIu64 ", flags 0x%x, %s: ", i, seed,
				flags, csum_impl_get(i % n_impls)->name);
			fprintf(stderr, "reference says %s, action %s\n", why,
				csum_action_reason_name(reason));
			dump("in  ", in, len);
			dump("want", want, len);
			return 1;
		}
		rte_pktmbuf_free(m);
	}
	for (reason = 0; reason < CSUM_ACTION_REASON_MAX; reason++)
		if (seen[reason] != 0)
			printf("%10" PRIu64 " %s\n", seen[reason], csum_action_reason_name(reason));
	if (!test_pool_full(pool)) {
		fprintf(stderr, "mbufs are missing\n");
		return 1;
	}
	harness_close(&harness);
	return 0;
}
