/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The packet path itself, stepped: workers are coroutines that stop at the points where the code
 * says SCHED_NOLOCK_STEP, and every order in which they can go on is tried. Plus, by hand, the
 * order that showed each of the bugs of rules B1 to B5 in Linux.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ucontext.h>

enum point {
	START,
	OWN,
	BYPASS,
	TAKEN,
	FOUND_NOTHING,
	BUDGET,
	POSTED,
	LOST,
	MISSED_SET,
	END
};

static void step(enum point point);

#define SCHED_NOLOCK_STEP(point) step(point)

#include "nic.h"
#include "sched_nolock/sched_nolock.c"

#define WORKERS 3
#define STACK 65536
#define CHOICES_MAX 256

struct worker {
	ucontext_t context;
	char *stack;
	enum point at;
	unsigned int sends, drains; /* what it does: packets one by one, then drains */
	uint32_t next;
};

static struct worker workers[WORKERS];
static struct worker *running;
static ucontext_t scheduler_context;

static void
step(enum point point)
{
	if (running == NULL)
		return;
	running->at = point;
	swapcontext(&running->context, &scheduler_context);
}

static void
worker_main(int id)
{
	struct worker *w = &workers[id];
	unsigned int i;

	for (i = 0; i < w->sends; i++)
		bed_send((unsigned int)id, (uint32_t)id << 16 | w->next++, 1, 0);
	for (i = 0; i < w->drains; i++)
		sched_nolock_drain(bed.sched, (unsigned int)id);
	w->at = END;
}

static void
worker_start(unsigned int id, unsigned int sends, unsigned int drains)
{
	struct worker *w = &workers[id];

	if (w->stack == NULL)
		w->stack = malloc(STACK);
	assert_non_null(w->stack);
	getcontext(&w->context);
	w->context.uc_stack.ss_sp = w->stack;
	w->context.uc_stack.ss_size = STACK;
	w->context.uc_link = &scheduler_context;
	w->at = START;
	w->sends = sends;
	w->drains = drains;
	w->next = 1;
	makecontext(&w->context, (void (*)(void))worker_main, 1, (int)id);
}

/* Lets a worker go on to its next point. */
static void
go(unsigned int id)
{
	running = &workers[id];
	swapcontext(&scheduler_context, &running->context);
	running = NULL;
}

static void
go_to(unsigned int id, enum point point)
{
	do {
		assert_int_not_equal(workers[id].at, END);
		go(id);
	} while (workers[id].at != point);
}

static void
make(unsigned int budget)
{
	struct sched_nolock_conf conf = bed_conf();

	conf.n_workers = WORKERS;
	conf.limit = 8;
	conf.budget = budget;
	bed.sched = sched_nolock_create(&conf);
	assert_non_null(bed.sched);
}

/*
 * Whoever left packets left MISSED, so that a worker that serves the queue gets them out; each
 * producer's leave in order; the books balance.
 */
static void
finish(unsigned int sent)
{
	uint32_t last[WORKERS] = { 0 }, id;
	unsigned int i;

	bed.nic.room = UINT32_MAX;
	for (i = 0; i < 8; i++)
		sched_nolock_drain(bed.sched, 0);
	assert_true(sched_nolock_empty(bed.sched));
	assert_int_equal(atomic_load(&bed.sched->state), 0);
	assert_int_equal(bed.nic.n, sent);
	for (i = 0; i < bed.nic.n; i++) {
		id = bed.nic.ids[i];
		assert_int_equal(id & 0xffff, last[id >> 16] + 1);
		last[id >> 16]++;
	}
	assert_true(bed_balanced());
	sched_nolock_destroy(bed.sched);
}

/* A decision: which of the workers that can go on does. */
static struct {
	unsigned int of, taken;
} choices[CHOICES_MAX];
static unsigned int n_choices;

static unsigned int
choose(unsigned int depth, unsigned int of)
{
	assert_true(depth < CHOICES_MAX);
	if (depth == n_choices) {
		choices[n_choices].taken = 0;
		n_choices++;
	}
	choices[depth].of = of;
	return choices[depth].taken;
}

/* The next way through the choices; false after the last. */
static bool
next_way(void)
{
	while (n_choices > 0) {
		if (++choices[n_choices - 1].taken < choices[n_choices - 1].of)
			return true;
		n_choices--;
	}
	return false;
}

static void
one_way(unsigned int budget, unsigned int n, const unsigned int sends[], unsigned int drains)
{
	unsigned int depth = 0, alive[WORKERS], n_alive, i, sum = 0;

	for (i = 0; i < n; i++) {
		worker_start(i, sends[i], i == n - 1 ? drains : 0);
		sum += sends[i];
	}
	for (;;) {
		n_alive = 0;
		for (i = 0; i < n; i++)
			if (workers[i].at != END)
				alive[n_alive++] = i;
		if (n_alive == 0)
			break;
		i = n_alive == 1 ? 0 : choose(depth++, n_alive);
		go(alive[i]);
		if (bed.nic.inside > 1)
			fail_msg("two owners");
	}
	(void)budget;
	finish(sum);
}

static void
every_way(unsigned int budget, unsigned int room, unsigned int n, const unsigned int sends[],
	unsigned int drains)
{
	unsigned int ways = 0;

	n_choices = 0;
	do {
		make(budget);
		bed.nic.room = room;
		one_way(budget, n, sends, drains);
		ways++;
	} while (next_way() && ways < 30000);
	print_message("%u ways\n", ways);
	assert_true(ways > 10);
	rcu_barrier(bed.rcu);
	assert_true(test_pool_full(bed.pool));
}

static void
every_way_of_two_producers(void **state)
{
	(void)state;
	every_way(64, UINT32_MAX, 2, (const unsigned int[]){ 2, 2 }, 0);
}

static void
every_way_of_two_producers_and_a_server(void **state)
{
	(void)state;
	every_way(64, UINT32_MAX, 3, (const unsigned int[]){ 1, 1, 0 }, 2);
	every_way(1, UINT32_MAX, 3, (const unsigned int[]){ 2, 1, 0 }, 1);
}

static void
every_way_of_a_full_nic(void **state)
{
	unsigned int room;

	(void)state;
	for (room = 0; room < 3; room++)
		every_way(1 + room, room, 2, (const unsigned int[]){ 2, 2 }, 1);
}

static void
sched_B1_the_owner_lets_go_before_missed_is_set(void **state)
{
	(void)state;
	make(64);
	worker_start(0, 1, 0);
	worker_start(1, 1, 0);
	go_to(0, BYPASS);
	go_to(1, LOST);
	go_to(0, END);
	/* Nobody is the owner, and nobody will come: worker 1 must have tried once more. */
	go_to(1, END);
	assert_int_equal(bed.nic.n, 2);
	finish(2);
}

static void
sched_B1_missed_is_set_before_the_owner_lets_go(void **state)
{
	(void)state;
	make(64);
	worker_start(0, 1, 0);
	worker_start(1, 1, 0);
	go_to(0, BYPASS);
	go_to(1, END);
	assert_int_equal(bed.nic.n, 0);
	go_to(0, END);
	assert_int_equal(bed.nic.n, 2);
	finish(2);
}

static void
sched_B2_a_post_after_the_last_look_is_not_forgotten(void **state)
{
	(void)state;
	make(64);
	worker_start(0, 0, 0);
	worker_start(1, 1, 0);
	worker_start(2, 1, 0);
	go_to(1, BYPASS);
	go_to(2, END);
	/* Worker 1 looks again, finds nothing more; then another packet comes. */
	go_to(1, FOUND_NOTHING);
	worker_start(2, 1, 0);
	workers[2].next = 2;
	go_to(2, END);
	go_to(1, END);
	assert_int_equal(bed.nic.n, 3);
	finish(3);
}

static void
sched_B3_a_free_lock_is_no_leave_to_bypass(void **state)
{
	struct sched_nolock_stats stats;

	(void)state;
	make(64);
	bed.nic.room = 0;
	worker_start(0, 1, 0);
	go_to(0, END);
	/* Nobody is the owner, a packet is held: the next is not sent before it. */
	worker_start(1, 1, 0);
	bed.nic.room = 1;
	go_to(1, END);
	assert_int_equal(bed.nic.n, 1);
	assert_int_equal(bed.nic.ids[0], 1);
	sched_nolock_flush(bed.sched);
	sched_nolock_drain(bed.sched, 2);
	assert_int_equal(atomic_load(&bed.sched->state), 0);
	/* Posted among others, and its producer has not come to the state word yet. */
	bed.nic.n = 0;
	bed.nic.room = UINT32_MAX;
	worker_start(0, 1, 0);
	go_to(0, BYPASS);
	worker_start(1, 1, 0);
	go_to(1, POSTED);
	go_to(0, END);
	assert_int_equal(atomic_load(&bed.sched->state), 0);
	worker_start(2, 1, 0);
	go_to(2, END);
	sched_nolock_stats(bed.sched, &stats);
	assert_int_equal(stats.bypassed, 1);
	go_to(1, END);
	finish(3);
}

static void
sched_B4_what_the_budget_leaves_is_seen_by_the_next(void **state)
{
	(void)state;
	make(1);
	worker_start(0, 1, 0);
	worker_start(1, 2, 0);
	go_to(0, BYPASS);
	go_to(1, END);
	go_to(0, BUDGET);
	go_to(0, END);
	assert_true((atomic_load(&bed.sched->state) & (MISSED | OWNED)) == MISSED);
	finish(3);
}

static void
sched_B5_refused_is_before_posted(void **state)
{
	(void)state;
	make(64);
	bed.nic.room = 0;
	worker_start(0, 1, 0);
	worker_start(1, 1, 0);
	go_to(0, BYPASS);
	go_to(1, END);
	go_to(0, END);
	bed.nic.room = UINT32_MAX;
	while (!sched_nolock_empty(bed.sched))
		sched_nolock_drain(bed.sched, 2);
	assert_int_equal(bed.nic.ids[0], 1);
	finish(2);
}

/* A loop in which the worker posted and looked in vain is over: the next one sends. */
static void
sched_B11_a_look_in_vain_ends_the_loop_of_a_post(void **state)
{
	bool missed;

	(void)state;
	for (missed = false;; missed = true) {
		make(64);
		worker_start(1, 1, 0);
		go_to(1, BYPASS);
		worker_start(0, 1, 1);
		go_to(0, MISSED_SET);
		if (!missed)
			go_to(1, TAKEN); /* with worker 0's packet, and MISSED cleared */
		go_to(0, END); /* its drain found the owner still at it, or nothing missed */
		bed.nic.room = 0;
		go_to(1, END);
		bed.nic.room = UINT32_MAX;
		sched_nolock_drain(bed.sched, 0);
		assert_true(sched_nolock_empty(bed.sched));
		finish(2);
		if (missed)
			break;
	}
}

static void
sched_B12_a_preempted_producer_keeps_nobody_back(void **state)
{
	(void)state;
	make(64);
	worker_start(0, 1, 0);
	worker_start(1, 1, 0);
	worker_start(2, 3, 0);
	go_to(0, BYPASS);
	go_to(1, POSTED); /* and is preempted */
	go_to(2, END);
	go_to(0, END);
	assert_int_equal(bed.nic.n, 5);
	go_to(1, END);
	finish(5);
}

static void
a_lazy_worker_does_not_fill_its_lane(void **state)
{
	(void)state;
	make(64);
	bed.nic.room = 0;
	worker_start(0, 1, 0);
	worker_start(1, 1, 0);
	go_to(0, BYPASS);
	go_to(1, END); /* has seen somebody else be the owner */
	go_to(0, END); /* and left, the NIC being full */
	bed.nic.room = UINT32_MAX;
	/* The limit is 8 packets: if it were as lazy as with a long queue, it would lose some. */
	worker_start(1, 12, 0);
	workers[1].next = 2;
	go_to(1, END);
	finish(14);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_of_two_producers),
		cmocka_unit_test(every_way_of_two_producers_and_a_server),
		cmocka_unit_test(every_way_of_a_full_nic),
		cmocka_unit_test(sched_B1_the_owner_lets_go_before_missed_is_set),
		cmocka_unit_test(sched_B1_missed_is_set_before_the_owner_lets_go),
		cmocka_unit_test(sched_B2_a_post_after_the_last_look_is_not_forgotten),
		cmocka_unit_test(sched_B3_a_free_lock_is_no_leave_to_bypass),
		cmocka_unit_test(sched_B4_what_the_budget_leaves_is_seen_by_the_next),
		cmocka_unit_test(sched_B5_refused_is_before_posted),
		cmocka_unit_test(a_lazy_worker_does_not_fill_its_lane),
		cmocka_unit_test(sched_B11_a_look_in_vain_ends_the_loop_of_a_post),
		cmocka_unit_test(sched_B12_a_preempted_producer_keeps_nobody_back),
	};

	bed_init("sched_nolock_stepped");
	return cmocka_run_group_tests_name("sched_nolock stepped", tests, NULL, NULL);
}
