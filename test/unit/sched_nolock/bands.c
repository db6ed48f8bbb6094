/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Lanes and sets of lanes by themselves. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched_nolock/bands.h"
#include "support.h"

static const uint8_t one_band[SCHED_NOLOCK_PRIO_MAX];
static struct rte_mbuf mbufs[20000];

static struct bands *
make(unsigned int n_workers, unsigned int n, uint32_t limit)
{
	struct bands *bands = bands_create(n_workers, n, one_band, limit, SOCKET_ID_ANY);

	assert_non_null(bands);
	return bands;
}

/* Posts mbufs[from .. from + n). Returns how many fitted. */
static unsigned int
post(struct bands *bands, unsigned int w, unsigned int band, unsigned int from, unsigned int n)
{
	struct rte_mbuf *pkts[1024];
	unsigned int i, took;

	for (i = 0; i < n; i++)
		pkts[i] = &mbufs[from + i];
	if ((took = bands_post(bands, w, band, pkts, n)) > 0)
		bands_publish(bands, w);
	return took;
}

static void
take(struct bands *bands, struct bands *oldest, unsigned int self, struct batch *batch)
{
	memset(batch, 0, sizeof(*batch));
	bands_take(bands, oldest, self, batch, BATCH_MAX);
}

static void
a_worker_s_newer_packets_wait_for_its_older_ones(void **state)
{
	struct bands *old = make(2, 1, 100), *new = make(2, 2, 100);
	struct batch batch;

	(void)state;
	atomic_store(&old->newer, new);
	/* The owner has found the old set empty; then come a post there, a change, a post here. */
	take(old, old, 2, &batch);
	assert_int_equal(batch.n, 0);
	post(old, 0, 0, 0, 1);
	post(new, 0, 1, 1, 1);
	post(new, 1, 1, 2, 1);
	take(new, old, 2, &batch);
	assert_int_equal(batch.n, 1);
	assert_ptr_equal(batch.pkts[0], &mbufs[2]);
	assert_true(batch.again);
	assert_false(bands_empty(new));
	take(old, old, 2, &batch);
	assert_int_equal(batch.n, 1);
	assert_ptr_equal(batch.pkts[0], &mbufs[0]);
	take(new, old, 2, &batch);
	assert_int_equal(batch.n, 1);
	assert_ptr_equal(batch.pkts[0], &mbufs[1]);
	assert_true(bands_empty(new));
	bands_free(old);
	bands_free(new);
}

static void
a_lane_grows_and_keeps_order(void **state)
{
	struct bands *bands = make(1, 1, 0);
	struct batch batch;
	unsigned int in = 0, out = 0, i, burst;

	(void)state;
	for (burst = 1; in + 2 * burst < RTE_DIM(mbufs); burst = burst * 3 % 1000 + 1) {
		assert_int_equal(post(bands, 0, 0, in, burst), burst);
		in += burst;
		if (burst % 2 == 0)
			continue;
		take(bands, bands, 1, &batch);
		for (i = 0; i < batch.n; i++)
			assert_ptr_equal(batch.pkts[i], &mbufs[out++]);
	}
	assert_true(in > 4 * SEGMENT_FIRST);
	while (!bands_empty(bands)) {
		take(bands, bands, 1, &batch);
		for (i = 0; i < batch.n; i++)
			assert_ptr_equal(batch.pkts[i], &mbufs[out++]);
	}
	assert_int_equal(in, out);
	bands_free(bands);
}

static void
nothing_is_empty_while_a_batch_was_full(void **state)
{
	struct bands *bands = make(1, 2, 100);
	struct batch batch;

	(void)state;
	post(bands, 0, 0, 0, BATCH_MAX);
	take(bands, bands, 1, &batch);
	assert_int_equal(batch.n, BATCH_MAX);
	/* All are taken, but that was not seen: no bypass is granted on it. */
	assert_false(bands_empty(bands));
	take(bands, bands, 1, &batch);
	assert_int_equal(batch.n, 0);
	assert_true(bands_empty(bands));
	bands_free(bands);
}

static void
own_packets_first_but_priority_before_all(void **state)
{
	struct bands *bands = make(2, 2, 1000);
	struct batch batch;
	unsigned int i;

	(void)state;
	post(bands, 0, 1, 0, 4);
	post(bands, 1, 1, 10, 4);
	take(bands, bands, 1, &batch);
	assert_int_equal(batch.n, 4);
	assert_ptr_equal(batch.pkts[0], &mbufs[10]);
	assert_true(batch.left);
	/* The other's band 0 goes before one's own band 1. */
	post(bands, 0, 0, 20, 2);
	post(bands, 1, 1, 30, 2);
	take(bands, bands, 1, &batch);
	assert_true(batch.n >= 4);
	assert_ptr_equal(batch.pkts[0], &mbufs[20]);
	/* Far ahead, one is no longer first. */
	for (i = 0; i < 10; i++) {
		post(bands, 1, 1, 100, BATCH_MAX);
		take(bands, bands, 1, &batch);
		if (batch.pkts[0] < &mbufs[100])
			break;
	}
	assert_int_not_equal(i, 10);
	bands_free(bands);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_s_newer_packets_wait_for_its_older_ones),
		cmocka_unit_test(a_lane_grows_and_keeps_order),
		cmocka_unit_test(nothing_is_empty_while_a_batch_was_full),
		cmocka_unit_test(own_packets_first_but_priority_before_all),
	};

	test_eal_init("sched_nolock_bands", "0");
	return cmocka_run_group_tests_name("sched_nolock bands", tests, NULL, NULL);
}
