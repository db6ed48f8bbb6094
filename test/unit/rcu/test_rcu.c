/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"
#include "support.h"

#define READERS 4

struct object {
	struct rcu_head rcu;
	struct fixture *fixture;
	unsigned int number;
	unsigned int again; /* times its function defers it once more */
};

struct fixture {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	unsigned int freed;
	unsigned int last; /* number of the object freed last */
	bool disorder;
};

static void
object_free(struct rcu_head *head)
{
	struct object *o = (struct object *)head;

	if (o->again > 0) {
		o->again--;
		rcu_defer(o->fixture->rcu, head, object_free);
		return;
	}
	o->fixture->disorder |= o->number < o->fixture->last;
	o->fixture->last = o->number;
	o->fixture->freed++;
	free(o);
}

static void
defer(struct fixture *f, unsigned int number, unsigned int again)
{
	struct object *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->fixture = f;
	o->number = number;
	o->again = again;
	rcu_defer(f->rcu, &o->rcu, object_free);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(READERS));
	assert_int_equal(rte_rcu_qsbr_init(f->qsbr, READERS), 0);
	f->rcu = rcu_create(f->qsbr);
	assert_non_null(f->rcu);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned int t = 0; t < READERS; t++)
		rte_rcu_qsbr_thread_offline(f->qsbr, t);
	rcu_destroy(f->rcu);
	free(f->qsbr);
	free(f);
	return 0;
}

static void
reader_comes(struct fixture *f, unsigned int id)
{
	assert_int_equal(rte_rcu_qsbr_thread_register(f->qsbr, id), 0);
	rte_rcu_qsbr_thread_online(f->qsbr, id);
}

static void
rcu_C6_not_freed_before_the_grace_period(void **state)
{
	struct fixture *f = *state;

	reader_comes(f, 0);
	reader_comes(f, 1);
	defer(f, 1, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	assert_int_equal(f->freed, 0);
	assert_int_equal(rcu_pending(f->rcu), 1);
	rte_rcu_qsbr_quiescent(f->qsbr, 1);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(f->freed, 1);
	assert_int_equal(rcu_pending(f->rcu), 0);
}

static void
rcu_a_report_before_the_defer_frees_nothing(void **state)
{
	struct fixture *f = *state;

	reader_comes(f, 0);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	defer(f, 1, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	defer(f, 2, 0);
	/* The report lies between the two. */
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(f->last, 1);
}

static void
rcu_an_offline_reader_holds_nothing_up(void **state)
{
	struct fixture *f = *state;

	reader_comes(f, 0);
	rte_rcu_qsbr_thread_offline(f->qsbr, 0);
	defer(f, 1, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
}

static void
rcu_C6_unbounded_and_in_order(void **state)
{
	struct fixture *f = *state;
	const unsigned int n = 1000000;

	reader_comes(f, 0);
	for (unsigned int i = 1; i <= n; i++)
		defer(f, i, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	assert_int_equal(rcu_pending(f->rcu), n);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 10), 10);
	assert_int_equal(f->last, 10);
	assert_int_equal(rcu_reclaim(f->rcu, 0), n - 10);
	assert_int_equal(f->freed, n);
	assert_false(f->disorder);
	assert_int_equal(rcu_deferred(f->rcu), n);
}

/* Each new token costs every reader a cache line: a thousand objects take one. */
static void
rcu_objects_deferred_together_share_a_token(void **state)
{
	struct fixture *f = *state;
	uint64_t before = f->qsbr->token;

	reader_comes(f, 0);
	for (unsigned int i = 1; i <= 1000; i++)
		defer(f, i, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	/* While those wait, later ones do too, without another token. */
	for (unsigned int i = 1001; i <= 2000; i++) {
		defer(f, i, 0);
		assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	}
	assert_int_equal(f->qsbr->token, before + 1);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1000);
	assert_int_equal(f->qsbr->token, before + 2);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1000);
	assert_false(f->disorder);
}

static void
rcu_a_function_may_defer_again(void **state)
{
	struct fixture *f = *state;

	reader_comes(f, 0);
	defer(f, 1, 2);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	for (unsigned int round = 0; round < 2; round++) {
		rte_rcu_qsbr_quiescent(f->qsbr, 0);
		assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
		/* Deferred anew: another grace period. */
		assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
		assert_int_equal(f->freed, 0);
	}
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(f->freed, 1);
}

static void
rcu_barrier_and_destroy_leave_nothing(void **state)
{
	struct fixture *f = *state;

	defer(f, 1, 1);
	defer(f, 2, 0);
	rcu_barrier(f->rcu);
	assert_int_equal(f->freed, 2);
	assert_int_equal(rcu_pending(f->rcu), 0);
	defer(f, 3, 3); /* for rcu_destroy(): a leak checker would see it */
}

static void
rcu_refuses_no_qsbr(void **state)
{
	(void)state;
	assert_null(rcu_create(NULL));
	assert_int_equal(rte_errno, EINVAL);
	rcu_destroy(NULL);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(rcu_C6_not_freed_before_the_grace_period),
		T(rcu_a_report_before_the_defer_frees_nothing),
		T(rcu_an_offline_reader_holds_nothing_up),
		T(rcu_C6_unbounded_and_in_order),
		T(rcu_objects_deferred_together_share_a_token),
		T(rcu_a_function_may_defer_again),
		T(rcu_barrier_and_destroy_leave_nothing),
		T(rcu_refuses_no_qsbr),
	};

	test_eal_init("rcu", "0");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
