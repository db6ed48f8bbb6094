/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The rules of a scheduler that one thread can show; stepped.c and the stress test show the rest.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "nic.h"

static void
make(const struct sched_nolock_conf *conf)
{
	bed.sched = sched_nolock_create(conf);
	assert_non_null(bed.sched);
}

static void
finish(void)
{
	assert_true(bed_balanced());
	sched_nolock_destroy(bed.sched);
	rcu_barrier(bed.rcu);
	assert_true(test_pool_full(bed.pool));
}

static struct sched_nolock_stats
stats(void)
{
	struct sched_nolock_stats st;

	sched_nolock_stats(bed.sched, &st);
	return st;
}

static void
sent_are(unsigned int from, unsigned int n, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		assert_int_equal(bed.nic.ids[from + i], id + i);
}

static void
bad_configurations_are_refused(void **state)
{
	struct sched_nolock_conf good = bed_conf(), conf;

	(void)state;
	for (int i = 0; i < 6; i++) {
		conf = good;
		conf.bands = i == 0 ? 0 : i == 1 ? 17 : 3;
		conf.priomap[15] = i == 2 ? 3 : 1;
		conf.n_workers = i == 3 ? 0 : 1;
		conf.tx = i == 4 ? NULL : nic_tx;
		conf.drop = i == 5 ? NULL : nic_drop;
		rte_errno = 0;
		assert_null(sched_nolock_create(&conf));
		assert_int_equal(rte_errno, EINVAL);
	}
	make(&good);
	assert_int_equal(sched_nolock_change(bed.sched, 0, good.priomap, 10), -EINVAL);
	assert_int_equal(sched_nolock_change(bed.sched, 2, good.priomap, 10), -EINVAL);
	assert_int_equal(sched_nolock_set_exclusive(bed.sched, 4), -EINVAL);
	assert_int_equal(sched_nolock_conf(bed.sched)->bands, 3);
	assert_int_equal(sched_nolock_conf(bed.sched)->limit, SCHED_NOLOCK_LIMIT_DEFAULT);
	finish();
}

static void
sched_B3_bypass_needs_everything_empty(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	make(&conf);
	assert_int_equal(bed_send(0, 0, 8, 0), 8);
	assert_int_equal(stats().bypassed, 8);
	/* Held packets forbid it, for every worker. */
	bed.nic.room = 0;
	assert_int_equal(bed_send(0, 8, 1, 0), 1);
	assert_int_equal(stats().held, 1);
	bed.nic.room = 1000;
	assert_int_equal(bed_send(1, 9, 1, 0), 1);
	assert_int_equal(stats().bypassed, 8);
	assert_int_equal(stats().dequeued, 2);
	assert_int_equal(bed_send(1, 10, 1, 0), 1);
	assert_int_equal(stats().bypassed, 9);
	sent_are(0, 11, 0);
	finish();
}

static void
sched_B4_budget_spent_leaves_the_rest_to_the_next_drain(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	conf.budget = 4;
	conf.bypass = false;
	make(&conf);
	bed.nic.room = 0;
	assert_int_equal(bed_send(0, 0, 10, 0), 10);
	bed.nic.room = 1000;
	assert_int_equal(sched_nolock_drain(bed.sched, 2), 4);
	assert_int_equal(sched_nolock_drain(bed.sched, 3), 4);
	assert_false(sched_nolock_empty(bed.sched));
	assert_int_equal(sched_nolock_drain(bed.sched, 2), 2);
	assert_int_equal(sched_nolock_drain(bed.sched, 2), 0);
	assert_true(sched_nolock_empty(bed.sched));
	sent_are(0, 10, 0);
	finish();
}

static void
sched_B5_refused_packets_go_first_and_nobody_spins(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	unsigned int calls;

	(void)state;
	make(&conf);
	/* A bypass refused half way. */
	bed.nic.room = 3;
	assert_int_equal(bed_send(0, 0, 8, 0), 8);
	assert_int_equal(stats().held, 5);
	assert_int_equal(stats().requeues, 5);
	calls = bed.nic.calls;
	/* More urgent ones come: still behind the held ones; one driver call a visit. */
	assert_int_equal(bed_send(1, 8, 4, 6), 4);
	assert_int_equal(bed.nic.calls, calls + 1);
	assert_int_equal(sched_nolock_drain(bed.sched, 0), 0);
	assert_int_equal(bed.nic.calls, calls + 2);
	bed.nic.room = 2;
	assert_int_equal(sched_nolock_drain(bed.sched, 0), 2);
	assert_int_equal(stats().held, 3);
	bed.nic.room = 1000;
	assert_int_equal(sched_nolock_drain(bed.sched, 0), 7);
	sent_are(0, 12, 0);
	finish();
}

static void
sched_B5_a_burst_longer_than_a_batch_stays_in_order_when_refused(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	make(&conf);
	bed.nic.room = 100;
	assert_int_equal(bed_send(0, 0, 300, 0), 300);
	assert_int_equal(bed.nic.n, 100);
	bed.nic.room = 1000;
	while (sched_nolock_drain(bed.sched, 1) > 0)
		;
	assert_int_equal(bed.nic.n, 300);
	sent_are(0, 300, 0);
	finish();
}

static void
sched_B6_flush_and_deactivate_drop_once(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	make(&conf);
	bed.nic.room = 0;
	bed_send(0, 0, 200, 0);
	bed_send(1, 200, 10, 6);
	assert_int_equal(stats().queued + stats().held, 210);
	sched_nolock_flush(bed.sched);
	assert_int_equal(bed.nic.dropped, 210);
	assert_int_equal(stats().dropped, 210);
	assert_true(sched_nolock_empty(bed.sched));
	bed_send(0, 0, 20, 0);
	sched_nolock_deactivate(bed.sched);
	assert_int_equal(bed.nic.dropped, 230);
	bed.nic.room = 1000;
	bed.nic.calls = 0;
	assert_int_equal(bed_send(0, 0, 5, 0), 0);
	assert_int_equal(sched_nolock_drain(bed.sched, 0), 0);
	assert_int_equal(bed.nic.calls, 0);
	assert_int_equal(stats().dropped, 235);
	sched_nolock_activate(bed.sched);
	assert_int_equal(bed_send(0, 0, 5, 0), 5);
	assert_int_equal(bed.nic.n, 5);
	finish();
}

static void
sched_B7_the_books_balance_in_packets_and_bytes(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	uint64_t bytes = 0;
	unsigned int i, took = 0;

	(void)state;
	conf.limit = 50;
	make(&conf);
	for (i = 0; i < 40; i++) {
		bed.nic.room = i % 7;
		took += bed_send(i % 4, i * 10, 10, i);
		assert_true(bed_balanced());
	}
	for (i = 0; i < 400; i++)
		bytes += 60 + i % 100;
	assert_int_equal(stats().enqueued, 400);
	assert_int_equal(stats().enqueued_bytes, bytes);
	assert_int_equal(stats().dropped, 400 - took);
	assert_int_equal(stats().bypassed + stats().dequeued, bed.nic.n);
	assert_int_equal(stats().bypassed_bytes + stats().dequeued_bytes, bed.nic.bytes);
	sched_nolock_stats_clear(bed.sched);
	assert_true(bed_balanced());
	assert_int_equal(stats().enqueued, stats().queued + stats().held);
	bed.nic.room = 10000;
	while (!sched_nolock_empty(bed.sched))
		sched_nolock_drain(bed.sched, 0);
	assert_int_equal(stats().queued + stats().held, 0);
	assert_int_equal(stats().queued_bytes + stats().held_bytes, 0);
	finish();
}

static void
sched_B7_lengths_are_those_at_enqueue(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	struct rte_mbuf *m = bed_packet(0, 0, 100);

	(void)state;
	conf.bypass = false;
	make(&conf);
	bed.nic.room = 0;
	assert_int_equal(sched_nolock_enqueue(bed.sched, 0, &m, 1), 1);
	rte_pktmbuf_trim(m, 40);
	bed.nic.room = 1;
	sched_nolock_drain(bed.sched, 0);
	assert_int_equal(stats().dequeued_bytes, 100);
	finish();
}

static void
sched_B8_priorities_are_strict_under_bypass_too(void **state)
{
	/* Priority 6 is band 0, 0 is band 1, 1 is band 2 (Linux's priomap). */
	static const uint32_t priorities[] = { 1, 0, 6, 1, 6, 0 };
	static const uint32_t want[] = { 2, 4, 1, 5, 0, 3 };
	struct sched_nolock_conf conf = bed_conf();
	struct rte_mbuf *pkts[6];
	unsigned int i;

	(void)state;
	make(&conf);
	for (i = 0; i < 6; i++)
		pkts[i] = bed_packet(i, priorities[i], 60);
	assert_int_equal(sched_nolock_enqueue(bed.sched, 0, pkts, 6), 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(bed.nic.ids[i], want[i]);
	/* And out of the bands, whoever queued first. */
	bed.nic.room = 0;
	bed_send(3, 99, 1, 6);
	bed_send(0, 200, 3, 1);
	bed_send(1, 100, 3, 0);
	bed_send(2, 0, 3, 7);
	bed.nic.room = 1000;
	sched_nolock_drain(bed.sched, 0);
	assert_int_equal(bed.nic.ids[6], 99);
	sent_are(7, 3, 0);
	sent_are(10, 3, 100);
	sent_are(13, 3, 200);
	finish();
}

static void
sched_B8_the_class_overrides_the_priority(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	struct rte_mbuf *pkts[3];
	unsigned int i;

	(void)state;
	make(&conf);
	for (i = 0; i < 3; i++) {
		pkts[i] = bed_packet(i, 6, 60);
		*RTE_MBUF_DYNFIELD(pkts[i], bed.class_offset, uint16_t *) = (uint16_t)(3 - i);
	}
	assert_int_equal(sched_nolock_enqueue(bed.sched, 0, pkts, 3), 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(bed.nic.ids[i], 2 - i);
	finish();
}

static void
sched_B9_a_limit_of_zero_is_no_limit(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	unsigned int i;

	(void)state;
	conf.limit = 0;
	make(&conf);
	bed.nic.room = 0;
	for (i = 0; i < 60; i++)
		assert_int_equal(bed_send(0, i * 500, 500, 0), 500);
	assert_int_equal(stats().queued + stats().held, 30000);
	assert_int_equal(stats().dropped, 0);
	bed.nic.room = UINT32_MAX;
	while (sched_nolock_drain(bed.sched, 0) > 0)
		;
	assert_int_equal(bed.nic.n, 30000);
	sent_are(0, 30000, 0);
	finish();
}

static void
sched_B9_a_full_band_refuses_the_rest_of_a_burst(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	conf.limit = 100;
	conf.bypass = false;
	make(&conf);
	bed.nic.room = 0;
	/* The first visit takes a batch of 64 out of the band and holds it. */
	assert_int_equal(bed_send(0, 0, 70, 0), 70);
	assert_int_equal(stats().held, 64);
	assert_int_equal(bed_send(0, 70, 200, 0), 94);
	assert_int_equal(stats().queued, 100);
	assert_int_equal(stats().overlimits, 1);
	assert_int_equal(stats().dropped, 106);
	/* Other bands have room; another worker has its share. */
	assert_int_equal(bed_send(0, 300, 10, 6), 10);
	assert_int_equal(bed_send(1, 300, 50, 0), 25);
	assert_int_equal(bed_send(1, 300, 50, 0), 0);
	finish();
}

static void
sched_B10_one_visit_sends_at_most_the_budget(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	conf.budget = 10;
	make(&conf);
	bed.nic.room = 0;
	bed_send(0, 0, 400, 0);
	bed.nic.room = 1000;
	/* Another producer comes by: it drains others' packets, ten of them, and is let go. */
	assert_int_equal(bed_send(1, 0, 1, 0), 1);
	assert_int_equal(bed.nic.n, 10);
	sched_nolock_flush(bed.sched);
	finish();
}

static void
sched_B11_a_backlog_leaves_within_its_loops(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	unsigned int i, backlog, loops;

	(void)state;
	conf.budget = 32;
	make(&conf);
	for (backlog = 1; backlog < 300; backlog += 7) {
		bed.nic.room = 0;
		for (i = 0; i < backlog; i++)
			bed_send(i % 4, i, 1, i);
		/* The loop that sent the last packet ends; the silence begins. */
		sched_nolock_drain(bed.sched, 0);
		bed.nic.room = UINT32_MAX;
		for (loops = 0; !sched_nolock_empty(bed.sched); loops++)
			sched_nolock_drain(bed.sched, 0);
		if (loops > (backlog + 31) / 32)
			fail_msg("%u packets took %u loops", backlog, loops);
	}
	finish();
}

static struct rte_mbuf *mirrored;

static uint16_t
mirroring_tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *m = mirrored;

	mirrored = NULL;
	if (m != NULL) {
		assert_int_equal(bed.nic.inside, 0);
		assert_int_equal(sched_nolock_enqueue(bed.sched, 0, &m, 1), 1);
	}
	return nic_tx(arg, pkts, n);
}

static void
sched_B13_a_mirror_into_the_same_scheduler_does_not_recurse(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	conf.tx = mirroring_tx;
	make(&conf);
	mirrored = bed_packet(1, 0, 60);
	assert_int_equal(bed_send(0, 0, 1, 0), 1);
	assert_int_equal(bed.nic.n, 2);
	sent_are(0, 2, 0);
	finish();
}

static void
sched_B13_nor_does_one_into_a_kept_queue(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	conf.tx = mirroring_tx;
	make(&conf);
	sched_nolock_set_exclusive(bed.sched, 0);
	sched_nolock_drain(bed.sched, 0);
	mirrored = bed_packet(1, 0, 60);
	assert_int_equal(bed_send(0, 0, 1, 0), 1);
	sched_nolock_drain(bed.sched, 0);
	sent_are(0, 2, 0);
	finish();
}

/* Who offers more, or comes first, gets no more of a NIC that is too slow for all. */
static void
equal_producers_share_a_full_nic(void **state)
{
	static const unsigned int offers[] = { 64, 8, 24 };
	struct sched_nolock_conf conf = bed_conf();
	unsigned int loop, w, i, got[3] = { 0 }, total = 0;
	double squares = 0;

	(void)state;
	conf.n_workers = 3;
	make(&conf);
	bed.nic.room = 0;
	for (loop = 0; loop < 3000; loop++) {
		for (w = 0; w < 3; w++) {
			bed.nic.room += 3;
			bed_send(w, w << 28, offers[w], 0);
		}
		sched_nolock_drain(bed.sched, 0);
	}
	for (i = bed.nic.n - 10000; i < bed.nic.n; i++)
		got[bed.nic.ids[i % NIC_MAX] >> 28]++;
	for (w = 0; w < 3; w++) {
		total += got[w];
		squares += (double)got[w] * got[w];
		assert_true(got[w] >= 9 * 10000 / 3 / 10);
	}
	assert_true((double)total * total / (3 * squares) >= 0.99);
	sched_nolock_flush(bed.sched);
	finish();
}

static void
a_change_keeps_order_and_loses_nothing(void **state)
{
	static const uint8_t one[SCHED_NOLOCK_PRIO_MAX];
	struct sched_nolock_conf conf = bed_conf();
	unsigned int i;

	(void)state;
	conf.bands = 1;
	memset(conf.priomap, 0, sizeof(conf.priomap));
	make(&conf);
	bed.nic.room = 0;
	for (i = 0; i < 8; i++) {
		bed_send(0, i * 10, 10, 0);
		assert_int_equal(sched_nolock_change(bed.sched, 1 + i % 3, one, 1000 + i), 0);
		assert_int_equal(sched_nolock_conf(bed.sched)->limit, 1000 + i);
		if (i == 4)
			rcu_barrier(bed.rcu);
	}
	bed.nic.room = 1000;
	while (sched_nolock_drain(bed.sched, 0) > 0)
		;
	assert_int_equal(bed.nic.n, 80);
	sent_are(0, 80, 0);
	rcu_barrier(bed.rcu);
	bed_send(0, 80, 10, 0);
	assert_int_equal(stats().bypassed, 10);
	sched_nolock_change(bed.sched, 2, one, 10);
	finish();
}

static void
the_limit_changes_under_a_backlog(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	conf.limit = 100;
	conf.n_workers = 1;
	make(&conf);
	bed.nic.room = 0;
	bed_send(0, 0, 1, 0);
	assert_int_equal(bed_send(0, 1, 150, 0), 100);
	assert_int_equal(sched_nolock_change(bed.sched, 3, conf.priomap, 200), 0);
	assert_int_equal(bed_send(0, 101, 150, 0), 100);
	assert_int_equal(sched_nolock_change(bed.sched, 3, conf.priomap, 20), 0);
	assert_int_equal(bed_send(0, 201, 10, 0), 0);
	assert_int_equal(sched_nolock_change(bed.sched, 3, conf.priomap, 0), 0);
	assert_int_equal(bed_send(0, 201, 500, 0), 500);
	bed.nic.room = 1000;
	while (sched_nolock_drain(bed.sched, 0) > 0)
		;
	sent_are(0, 701, 0);
	finish();
}

static void
the_exclusive_form_sends_without_state(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	make(&conf);
	assert_int_equal(sched_nolock_set_exclusive(bed.sched, 1), 0);
	assert_int_equal(sched_nolock_exclusive(bed.sched), 1);
	bed_send(1, 0, 1, 0);
	sched_nolock_drain(bed.sched, 1);
	bed_send(1, 1, 9, 0);
	assert_int_equal(bed.nic.n, 10);
	/* Another worker's packets wait for it, and the limit of budget still holds. */
	bed_send(0, 10, 5, 0);
	assert_int_equal(bed.nic.n, 10);
	assert_int_equal(sched_nolock_drain(bed.sched, 0), 0);
	assert_int_equal(sched_nolock_drain(bed.sched, 1), 5);
	/* Refused packets first, as ever. */
	bed.nic.room = 2;
	bed_send(1, 15, 5, 0);
	assert_int_equal(sched_nolock_drain(bed.sched, 1), 0);
	bed.nic.room = 1000;
	bed_send(1, 20, 5, 6);
	assert_int_equal(sched_nolock_drain(bed.sched, 1), 0);
	sent_are(0, 25, 0);
	assert_int_equal(stats().bypassed, 11);
	/* The keeper does not come by: taken from it after a grace period. */
	bed_send(0, 25, 1, 0);
	assert_int_equal(sched_nolock_set_exclusive(bed.sched, -1), 0);
	bed_send(0, 26, 2, 0);
	while (!sched_nolock_empty(bed.sched))
		sched_nolock_drain(bed.sched, 0);
	sent_are(0, 28, 0);
	assert_int_equal(sched_nolock_set_exclusive(bed.sched, 2), 0);
	bed_send(2, 28, 3, 0);
	bed_send(1, 31, 3, 0);
	sched_nolock_deactivate(bed.sched);
	assert_int_equal(bed_send(2, 0, 3, 0), 0);
	sched_nolock_activate(bed.sched);
	assert_int_equal(bed_send(2, 31, 3, 0), 3);
	sched_nolock_drain(bed.sched, 2);
	sent_are(0, 34, 0);
	finish();
}

static bool
passed(void)
{
	return sched_nolock_passed(bed.sched);
}

/* Lets the NIC take n more. */
static void
let_out(unsigned int n)
{
	bed.nic.room = n;
	while (sched_nolock_drain(bed.sched, 3) > 0)
		;
	bed.nic.room = 0;
}

static void
a_mark_passes_when_all_before_it_is_gone(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	make(&conf);
	sched_nolock_mark(bed.sched);
	assert_true(passed());
	bed_send(0, 0, 5, 0); /* bypasses, so has gone */
	sched_nolock_mark(bed.sched);
	assert_true(passed());
	bed.nic.room = 0;
	bed_send(0, 5, 70, 0); /* held and in a lane */
	bed_send(1, 75, 10, 0);
	assert_false(stats().held == 0 || stats().queued == 0);
	sched_nolock_mark(bed.sched);
	bed_send(1, 85, 20, 0); /* after the mark */
	assert_false(passed());
	let_out(40);
	assert_false(passed());
	let_out(0);
	assert_false(passed());
	/* Whatever order workers' packets leave in: not before the 80 are gone, and at the latest
	 * with all. */
	let_out(39);
	assert_false(passed());
	let_out(26);
	assert_true(sched_nolock_empty(bed.sched));
	assert_true(passed());
	finish();
}

/* One worker's packets leave in order: the mark passes exactly between two of them. */
static void
a_mark_passes_with_its_last_packet(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	for (unsigned int held = 0; held < 2; held++) {
		conf = bed_conf();
		make(&conf);
		bed.nic.room = 0;
		bed_send(0, 0, 100, 0);
		if (held != 0)
			sched_nolock_drain(bed.sched, 3); /* tries, and holds */
		sched_nolock_mark(bed.sched);
		bed_send(0, 100, 50, 0);
		for (unsigned int i = 0; i < 99; i++) {
			let_out(1);
			assert_false(passed());
		}
		let_out(1);
		/* The lanes may be beyond it only when what was taken with it is gone. */
		for (unsigned int i = 0; i < 50 && !passed(); i++)
			let_out(1);
		assert_true(passed());
		assert_true(bed.nic.n >= 100);
		assert_false(sched_nolock_empty(bed.sched));
		bed.nic.room = 1000;
		while (sched_nolock_drain(bed.sched, 3) > 0)
			;
		finish();
	}
}

static void
a_mark_waits_for_the_last_band(void **state)
{
	struct sched_nolock_conf conf = bed_conf();

	(void)state;
	make(&conf);
	bed.nic.room = 0;
	bed_send(0, 0, 1, 6); /* held */
	bed_send(0, 1, 3, 2); /* the last band */
	sched_nolock_mark(bed.sched);
	bed_send(1, 4, 200, 6); /* goes first */
	let_out(190);
	assert_false(passed());
	let_out(20);
	assert_true(passed());
	finish();
}

static void
a_mark_outlives_a_change_a_flush_and_a_stop(void **state)
{
	struct sched_nolock_conf conf = bed_conf();
	const uint8_t two[SCHED_NOLOCK_PRIO_MAX] = { 0 };

	(void)state;
	make(&conf);
	bed.nic.room = 0;
	bed_send(0, 0, 80, 0);
	sched_nolock_mark(bed.sched);
	assert_int_equal(sched_nolock_change(bed.sched, 2, two, 100), 0);
	bed_send(0, 80, 10, 0);
	assert_false(passed());
	rcu_barrier(bed.rcu);
	bed.nic.room = 1000;
	while (sched_nolock_drain(bed.sched, 3) > 0)
		;
	assert_true(passed());
	bed.nic.room = 0;
	bed_send(0, 0, 80, 0);
	sched_nolock_mark(bed.sched);
	assert_false(passed());
	sched_nolock_flush(bed.sched);
	assert_true(passed());
	bed_send(0, 0, 80, 0);
	sched_nolock_mark(bed.sched);
	assert_false(passed());
	sched_nolock_deactivate(bed.sched);
	assert_true(passed());
	sched_nolock_activate(bed.sched);
	/* The exclusive form: its worker keeps the ownership, and gets it back. */
	bed.nic.room = 1000;
	assert_int_equal(sched_nolock_set_exclusive(bed.sched, 1), 0);
	bed_send(1, 0, 1, 0);
	bed.nic.room = 0;
	bed_send(1, 1, 5, 0);
	sched_nolock_mark(bed.sched);
	assert_false(passed());
	bed.nic.room = 1000;
	bed_send(1, 6, 1, 0);
	assert_true(passed());
	finish();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_configurations_are_refused),
		cmocka_unit_test(sched_B3_bypass_needs_everything_empty),
		cmocka_unit_test(sched_B4_budget_spent_leaves_the_rest_to_the_next_drain),
		cmocka_unit_test(sched_B5_refused_packets_go_first_and_nobody_spins),
		cmocka_unit_test(sched_B5_a_burst_longer_than_a_batch_stays_in_order_when_refused),
		cmocka_unit_test(sched_B6_flush_and_deactivate_drop_once),
		cmocka_unit_test(sched_B7_the_books_balance_in_packets_and_bytes),
		cmocka_unit_test(sched_B7_lengths_are_those_at_enqueue),
		cmocka_unit_test(sched_B8_priorities_are_strict_under_bypass_too),
		cmocka_unit_test(sched_B8_the_class_overrides_the_priority),
		cmocka_unit_test(sched_B9_a_limit_of_zero_is_no_limit),
		cmocka_unit_test(sched_B9_a_full_band_refuses_the_rest_of_a_burst),
		cmocka_unit_test(sched_B10_one_visit_sends_at_most_the_budget),
		cmocka_unit_test(sched_B11_a_backlog_leaves_within_its_loops),
		cmocka_unit_test(sched_B13_a_mirror_into_the_same_scheduler_does_not_recurse),
		cmocka_unit_test(sched_B13_nor_does_one_into_a_kept_queue),
		cmocka_unit_test(equal_producers_share_a_full_nic),
		cmocka_unit_test(a_change_keeps_order_and_loses_nothing),
		cmocka_unit_test(the_limit_changes_under_a_backlog),
		cmocka_unit_test(the_exclusive_form_sends_without_state),
		cmocka_unit_test(a_mark_passes_when_all_before_it_is_gone),
		cmocka_unit_test(a_mark_passes_with_its_last_packet),
		cmocka_unit_test(a_mark_waits_for_the_last_band),
		cmocka_unit_test(a_mark_outlives_a_change_a_flush_and_a_stop),
	};

	bed_init("sched_nolock_rules");
	return cmocka_run_group_tests_name("sched_nolock", tests, NULL, NULL);
}
