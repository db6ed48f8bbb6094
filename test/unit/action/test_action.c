/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <rte_rcu_qsbr.h>

#include "action/action.h"
#include "support.h"

#define WORKERS 2
#define N 8

struct fixture {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *table;
	struct rte_mempool *pool;
	struct rte_mbuf *pkts[N];
	struct action_burst burst;
};

static struct rte_mempool *the_pool;
static unsigned int params_freed;

/* A kind whose verdict may differ by packet: those in `set` get `other`. */
struct test_params {
	struct action_params base;
	uint64_t set;
	int32_t other;
	uint32_t flags; /* agrees with the verdict in test A28 */
};

static int32_t
test_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct test_params *p = (const struct test_params *)params;
	bool differ = (mask & p->set) != 0 && (mask & ~p->set) != 0;

	(void)action;
	for (unsigned int i = 0; i < N; i++) {
		int32_t v = (p->set >> i & 1) != 0 ? p->other : p->base.verdict;

		if ((mask >> i & 1) == 0)
			continue;
		*drops += v == TC_ACT_SHOT;
		*overlimits += v == TC_ACT_SHOT;
		if (differ)
			burst->verdict[i] = v;
	}
	if (differ)
		return ACTION_MIXED;
	return (mask & p->set) != 0 ? p->other : p->base.verdict;
}

static void
test_params_free(struct action_params *params)
{
	params_freed++;
	free(params);
}

static const struct action_ops test_ops = {
	.kind = "test", .id = 60, .run = test_run, .params_free = test_params_free
};
static const struct action_ops other_ops = {
	.kind = "other", .id = 61, .run = test_run, .params_free = test_params_free
};

/* Kinds whose parameters may be moved, and then shared or not. */
static const struct action_ops shared_ops = {
	.kind = "shared", .id = 62, .run = test_run, .params_size = sizeof(struct test_params)
};
static const struct action_ops moved_ops = { .kind = "moved",
	.id = 63,
	.run = test_run,
	.params_size = sizeof(struct test_params),
	.params_change = true };

static struct action_params *
params(int32_t verdict, uint64_t set, int32_t other)
{
	struct test_params *p = calloc(1, sizeof(*p));

	p->base.verdict = verdict;
	p->set = set;
	p->other = other;
	return &p->base;
}

static struct action *
make(struct fixture *f, uint32_t index, int32_t verdict, uint64_t set, int32_t other)
{
	struct action *a = NULL;

	assert_int_equal(
		action_create(f->table, &test_ops, index, params(verdict, set, other), &a), 0);
	return a;
}

static struct action_list *
list_of(uint32_t n, struct action *const *actions)
{
	struct action_list *list = calloc(1, action_list_size(n));

	action_list_init(list, actions, n);
	return list;
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char data[128] = { 0 };

	params_freed = 0;
	f->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(WORKERS));
	rte_rcu_qsbr_init(f->qsbr, WORKERS);
	f->rcu = rcu_create(f->qsbr);
	f->table = action_table_create(f->rcu, WORKERS);
	f->pool = the_pool;
	for (unsigned int i = 0; i < N; i++)
		f->pkts[i] = test_frame(f->pool, data, 60 + i, 0);
	f->burst.pkts = f->pkts;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	rte_pktmbuf_free_bulk(f->pkts, N);
	assert_true(test_pool_full(f->pool));
	rte_rcu_qsbr_thread_offline(f->qsbr, 0);
	action_table_destroy(f->table);
	rcu_destroy(f->rcu);
	free(f->qsbr);
	free(f);
	return 0;
}

static void
action_indexes_are_per_kind_lowest_first(void **state)
{
	struct fixture *f = *state;
	struct action *a = make(f, 0, TC_ACT_OK, 0, 0), *b = make(f, 0, TC_ACT_OK, 0, 0), *c, *d;
	struct action_params *p = params(TC_ACT_OK, 0, 0);

	assert_int_equal(a->index, 1);
	assert_int_equal(b->index, 2);
	assert_int_equal(action_create(f->table, &test_ops, 2, p, &c), -EEXIST);
	assert_int_equal(action_create(f->table, &other_ops, 2, p, &c), 0);
	assert_ptr_equal(action_find(f->table, &test_ops, 2), b);
	assert_ptr_equal(action_find(f->table, &other_ops, 2), c);
	assert_null(action_find(f->table, &other_ops, 1));
	action_put(a, false);
	d = make(f, 0, TC_ACT_OK, 0, 0);
	assert_int_equal(d->index, 1);
	d = make(f, UINT32_MAX, TC_ACT_OK, 0, 0);
	assert_ptr_equal(action_next(f->table, &test_ops, 3), d);
	assert_int_equal(action_count(f->table, &test_ops), 3);
}

static void
action_references_count_as_linux_shows_them(void **state)
{
	struct fixture *f = *state;
	struct action *a = make(f, 5, TC_ACT_OK, 0, 0);
	uint32_t n;

	/* tc actions add: ref 1 bind 0; a rule: ref 2 bind 1 */
	assert_int_equal(a->refs, 1);
	assert_int_equal(a->binds, 0);
	action_get(a, true);
	assert_int_equal(a->refs, 2);
	assert_int_equal(a->binds, 1);
	assert_int_equal(action_del(a), -EPERM);
	assert_int_equal(action_flush(f->table, &test_ops, &n), -EPERM);
	assert_int_equal(n, 0);
	assert_int_equal(a->refs, 2);
	action_put(a, true);
	assert_int_equal(action_del(a), 0);
	assert_null(action_find(f->table, &test_ops, 5));
}

static void
action_flush_stops_at_the_first_bound(void **state)
{
	struct fixture *f = *state;
	struct action *a;
	uint32_t n;

	for (uint32_t i = 1; i <= 5; i++) {
		a = make(f, i, TC_ACT_OK, 0, 0);
		if (i == 3)
			action_get(a, true);
	}
	assert_int_equal(action_flush(f->table, &test_ops, &n), -EPERM);
	assert_int_equal(n, 2);
	assert_int_equal(action_count(f->table, &test_ops), 3);
	action_put(action_find(f->table, &test_ops, 3), true);
	assert_int_equal(action_flush(f->table, &test_ops, &n), 0);
	assert_int_equal(n, 3);
}

static void
action_a_flush_of_many_is_one_step(void **state)
{
	struct fixture *f = *state;
	struct action *a;
	uint32_t n, most = 0;

	for (uint32_t i = 1; i <= 20000; i++)
		make(f, 0, TC_ACT_OK, 0, 0);
	/* One that is held twice keeps Linux's way. */
	a = action_find(f->table, &test_ops, 15000);
	action_get(a, false);
	assert_int_equal(action_flush(f->table, &test_ops, &n), 0);
	assert_int_equal(action_count(f->table, &test_ops), 1);
	action_put(a, false);
	assert_null(action_find(f->table, &test_ops, 15000));
	rcu_barrier(f->rcu);
	params_freed = 0;
	for (uint32_t i = 1; i <= 20000; i++)
		make(f, 0, TC_ACT_OK, 0, 0);
	rte_rcu_qsbr_thread_register(f->qsbr, 0);
	rte_rcu_qsbr_thread_online(f->qsbr, 0);
	assert_int_equal(action_flush(f->table, &test_ops, &n), 0);
	assert_int_equal(n, 20000);
	assert_int_equal(action_count(f->table, &test_ops), 0);
	/* The indexes are free at once. */
	a = make(f, 1, TC_ACT_OK, 0, 0);
	while (rcu_pending(f->rcu) != 0) {
		rte_rcu_qsbr_quiescent(f->qsbr, 0);
		n = rcu_reclaim(f->rcu, 0);
		most = RTE_MAX(most, n);
	}
	assert_int_equal(params_freed, 20000);
	assert_in_range(most, 1, 5000);
	assert_ptr_equal(action_find(f->table, &test_ops, 1), a);
}

static void
action_table_goes_while_a_flush_is_under_way(void **state)
{
	struct fixture *f = *state;
	struct action_table *table = action_table_create(f->rcu, 1);
	struct action *a;
	uint32_t n;

	for (uint32_t i = 1; i <= 10000; i++)
		assert_int_equal(
			action_create(table, &test_ops, 0, params(TC_ACT_OK, 0, 0), &a), 0);
	assert_int_equal(action_flush(table, &test_ops, &n), 0);
	action_table_destroy(table);
	rcu_barrier(f->rcu);
	assert_int_equal(params_freed, 10000);
}

static void
action_A30_freed_after_last_rule_and_grace_period(void **state)
{
	struct fixture *f = *state;
	struct action *a = make(f, 0, TC_ACT_OK, 0, 0);
	struct action_list *list = list_of(1, &a);

	rte_rcu_qsbr_thread_register(f->qsbr, 0);
	rte_rcu_qsbr_thread_online(f->qsbr, 0);
	action_get(a, true);
	action_put(a, false);
	assert_int_equal(rcu_pending(f->rcu), 0);
	assert_int_equal(action_exec(list, &f->burst, 0xff), TC_ACT_OK);
	action_put(a, true);
	assert_null(action_find(f->table, &test_ops, 1));
	/* A worker that is still under way may run it. */
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	assert_int_equal(params_freed, 0);
	assert_int_equal(action_exec(list, &f->burst, 0xff), TC_ACT_OK);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(params_freed, 1);
	free(list);
}

static void
action_replace_frees_the_old_parameters_later(void **state)
{
	struct fixture *f = *state;
	struct action *a = make(f, 0, TC_ACT_OK, 0, 0);
	struct action_list *list = list_of(1, &a);

	rte_rcu_qsbr_thread_register(f->qsbr, 0);
	rte_rcu_qsbr_thread_online(f->qsbr, 0);
	action_replace(a, params(TC_ACT_GOTO_CHAIN | 42, 0, 0));
	assert_int_equal(action_params(a)->goto_chain, 42);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	assert_int_equal(params_freed, 0);
	assert_int_equal(action_exec(list, &f->burst, 1), TC_ACT_GOTO_CHAIN | 42);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(params_freed, 1);
	free(list);
}

static void
action_A29_every_packet_counts(void **state)
{
	struct fixture *f = *state;
	struct action *a = make(f, 0, TC_ACT_OK, 0x0f, TC_ACT_SHOT);
	struct action_list *list = list_of(1, &a);
	struct action_stats s;

	assert_int_equal(action_exec(list, &f->burst, 0), TC_ACT_PIPE);
	action_stats_get(a, &s);
	assert_int_equal(s.packets, 0);
	assert_int_equal(action_exec(list, &f->burst, 0xff), ACTION_MIXED);
	f->burst.worker = 1;
	assert_int_equal(action_exec(list, &f->burst, 0x11), ACTION_MIXED);
	action_stats_get(a, &s);
	assert_int_equal(s.packets, 10);
	assert_int_equal(s.bytes, 8 * 60 + 28 + 60 + 64);
	assert_int_equal(s.drops, 5);
	assert_int_equal(s.overlimits, 5);
	free(list);
}

static void
action_list_runs_on_those_with_pipe(void **state)
{
	struct fixture *f = *state;
	struct action *a[3] = {
		make(f, 0, TC_ACT_PIPE, 0x01, TC_ACT_SHOT),
		make(f, 0, TC_ACT_PIPE, 0x02, TC_ACT_UNSPEC),
		make(f, 0, TC_ACT_PIPE, 0x04, TC_ACT_GOTO_CHAIN | 9),
	};
	struct action_list *list = list_of(3, a);
	struct action_stats s;

	assert_int_equal(action_exec(list, &f->burst, 0xff), ACTION_MIXED);
	assert_int_equal(f->burst.verdict[0], TC_ACT_SHOT);
	assert_int_equal(f->burst.verdict[1], TC_ACT_UNSPEC);
	assert_int_equal(f->burst.verdict[2], TC_ACT_GOTO_CHAIN | 9);
	for (unsigned int i = 3; i < 8; i++)
		assert_int_equal(f->burst.verdict[i], TC_ACT_PIPE);
	for (unsigned int i = 0; i < 3; i++) {
		action_stats_get(a[i], &s);
		assert_int_equal(s.packets, 8 - i);
	}
	/* Without those that differ it is uniform again. */
	assert_int_equal(action_exec(list, &f->burst, 0xf8), TC_ACT_PIPE);
	assert_int_equal(action_exec(list, &f->burst, 0x02), TC_ACT_UNSPEC);
	free(list);
}

static void
action_empty_list_passes(void **state)
{
	struct fixture *f = *state;
	struct action_list *list = list_of(0, NULL);

	assert_int_equal(action_exec(list, &f->burst, 0xff), TC_ACT_OK);
	free(list);
}

static void
action_jump_goes_to_the_numbered_action(void **state)
{
	struct fixture *f = *state;
	struct action *a[4] = {
		make(f, 0, TC_ACT_PIPE, 0x01, TC_ACT_JUMP | 2),
		make(f, 0, TC_ACT_SHOT, 0, 0),
		make(f, 0, TC_ACT_PIPE, 0, 0),
		make(f, 0, TC_ACT_OK, 0, 0),
	};
	struct action_list *list = list_of(4, a);
	struct action_stats s;

	assert_int_equal(action_exec(list, &f->burst, 0x03), ACTION_MIXED);
	assert_int_equal(f->burst.verdict[0], TC_ACT_OK);
	assert_int_equal(f->burst.verdict[1], TC_ACT_SHOT);
	action_stats_get(a[3], &s);
	assert_int_equal(s.packets, 1);
	free(list);
}

static void
action_C9_jump_and_repeat_for_ever_end(void **state)
{
	struct fixture *f = *state;
	struct action *a[2] = {
		make(f, 0, TC_ACT_PIPE, 0, 0),
		make(f, 0, TC_ACT_JUMP | 1, 0, 0),
	};
	struct action *r = make(f, 0, TC_ACT_REPEAT, 0, 0);
	struct action_list *jumps = list_of(2, a), *repeats = list_of(1, &r);
	struct action_stats s;

	assert_int_equal(action_exec(jumps, &f->burst, 0xff), TC_ACT_OK);
	action_stats_get(a[1], &s);
	assert_int_equal(s.packets, 32 * 8);
	assert_int_equal(action_exec(repeats, &f->burst, 0x0f), TC_ACT_OK);
	action_stats_get(r, &s);
	assert_int_equal(s.packets, 32 * 4);
	/* Nowhere: the list ends. */
	action_replace(a[1], params(TC_ACT_JUMP | 7, 0, 0));
	assert_int_equal(action_exec(jumps, &f->burst, 0xff), TC_ACT_OK);
	free(jumps);
	free(repeats);
}

static void
counter_slots_come_back_as_zero(void **state)
{
	struct fixture *f = *state;
	struct counter_table *t = action_table_counters(f->table);
	uint32_t id[3 * COUNTER_CHUNK];
	uint64_t x, y;

	for (unsigned int i = 0; i < 3 * COUNTER_CHUNK; i++) {
		id[i] = counter_take(t);
		counter_add(t, i % WORKERS, id[i], i, 2 * i);
	}
	for (unsigned int i = 0; i < 3 * COUNTER_CHUNK; i++) {
		counter_read(t, id[i], &x, &y);
		assert_int_equal(x, i);
		assert_int_equal(y, 2 * i);
		counter_free(t, id[i]);
	}
	for (unsigned int i = 0; i < 3 * COUNTER_CHUNK; i++) {
		id[i] = counter_take(t);
		assert_true(id[i] < 3 * COUNTER_CHUNK);
		counter_read(t, id[i], &x, &y);
		assert_int_equal(x, 0);
		assert_int_equal(y, 0);
	}
	for (unsigned int i = 0; i < 3 * COUNTER_CHUNK; i++)
		counter_free(t, id[i]);
	assert_int_equal(t->used, 0);
}

/* Neighbours in a slot neither see each other nor what was there before. */
static void
counter_halves_are_apart_and_come_back_as_zero(void **state)
{
	struct fixture *f = *state;
	struct counter_table *t = action_table_counters(f->table);
	static uint32_t half[3 * COUNTER_CHUNK];
	uint32_t whole = counter_take(t);
	uint64_t x, y;

	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 3 * COUNTER_CHUNK; i++) {
			half[i] = counter_take_half(t);
			assert_int_equal(counter_read_half(t, half[i]), 0);
			for (unsigned int w = 0; w < WORKERS; w++)
				counter_add_half(t, w, half[i], i + w);
		}
		for (unsigned int i = 0; i < 3 * COUNTER_CHUNK; i++) {
			assert_int_equal(counter_read_half(t, half[i]), 2 * i + 1);
			counter_free_half(t, half[i]);
		}
	}
	/* Two a slot. */
	assert_true(t->next <= 3 * COUNTER_CHUNK / 2 + 1);
	counter_read(t, whole, &x, &y);
	assert_int_equal(x | y, 0);
	counter_free(t, whole);
	counter_free_half(t, COUNTER_NONE);
	assert_int_equal(counter_read_half(t, COUNTER_NONE), 0);
	assert_int_equal(t->used, 0);
}

/*
 * A28: parameters alternate between {A, pass} and {B, drop} while a worker runs the action. The
 * kind looks at both halves of the snapshot at different times; no packet may see one of each.
 */
static atomic_bool stop;
static atomic_uint torn, ran[2];

static int32_t
whole_run(const struct action *action, const struct action_params *p, struct action_burst *burst,
	uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct test_params *t = (const struct test_params *)p;
	uint32_t flags = t->flags;

	(void)action, (void)burst, (void)mask, (void)drops, (void)overlimits;
	for (volatile int i = 0; i < 20; i++)
		;
	if ((flags == 0xB) != (p->verdict == TC_ACT_SHOT))
		atomic_fetch_add(&torn, 1);
	atomic_fetch_add(&ran[p->verdict == TC_ACT_SHOT], 1);
	return p->verdict;
}

static const struct action_ops whole_ops = { .kind = "whole", .id = 59, .run = whole_run };

struct whole {
	struct fixture *f;
	struct action_list *list;
};

static void *
whole_worker(void *arg)
{
	struct whole *w = arg;
	struct rte_rcu_qsbr *qsbr = w->f->qsbr;

	while (!atomic_load(&stop)) {
		action_exec(w->list, &w->f->burst, 0xff);
		rte_rcu_qsbr_quiescent(qsbr, 0);
	}
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	return NULL;
}

static struct action_params *
whole_params(bool drop)
{
	struct action_params *p = params(drop ? TC_ACT_SHOT : TC_ACT_OK, 0, 0);

	((struct test_params *)p)->flags = drop ? 0xB : 0xA;
	return p;
}

static struct action *
make_of(struct fixture *f, const struct action_ops *ops, int32_t verdict, uint8_t cookie)
{
	struct action_params *p = params(verdict, 0, 0);
	struct action *a = NULL;

	p->cookie_len = cookie != 0;
	p->cookie[0] = cookie;
	p->flags = cookie;
	assert_int_equal(action_create(f->table, ops, 0, p, &a), 0);
	return a;
}

static void
action_equal_parameters_are_shared(void **state)
{
	struct fixture *f = *state;
	struct action *a = make_of(f, &shared_ops, TC_ACT_SHOT, 0),
		      *b = make_of(f, &shared_ops, TC_ACT_SHOT, 0),
		      *other = make_of(f, &shared_ops, TC_ACT_OK, 0),
		      *cookie = make_of(f, &shared_ops, TC_ACT_SHOT, 1),
		      *same = make_of(f, &shared_ops, TC_ACT_SHOT, 1),
		      *moved = make_of(f, &moved_ops, TC_ACT_SHOT, 0),
		      *apart = make_of(f, &moved_ops, TC_ACT_SHOT, 0);
	struct action_list *list = list_of(1, &a);

	assert_ptr_equal(action_params(a), action_params(b));
	assert_ptr_not_equal(action_params(a), action_params(other));
	assert_ptr_not_equal(action_params(cookie), action_params(same));
	assert_ptr_not_equal(action_params(moved), action_params(apart));
	assert_int_equal(action_params(same)->cookie[0], 1);
	/* Flags are the action's own. */
	action_flags_add(a, TCA_ACT_FLAGS_SKIP_HW);
	assert_int_equal(a->flags, TCA_ACT_FLAGS_SKIP_HW);
	assert_int_equal(b->flags, 0);
	assert_int_equal(same->flags, 1);
	action_replace(a, params(TC_ACT_OK, 0, 0));
	assert_ptr_equal(action_params(a), action_params(other));
	assert_int_equal(a->flags, 0);
	assert_int_equal(action_params(b)->verdict, TC_ACT_SHOT);
	assert_int_equal(action_exec(list, &f->burst, 1), TC_ACT_OK);
	free(list);
}

/*
 * Who gives them up last keeps them for a grace period of its own: a worker may have come to them
 * by way of that action alone, after the others had gone.
 */
static void
action_A30_shared_parameters_outlive_all_who_had_them(void **state)
{
	struct fixture *f = *state;
	struct action *a = make_of(f, &shared_ops, TC_ACT_SHOT, 0),
		      *b = make_of(f, &shared_ops, TC_ACT_SHOT, 0);
	const struct action_params *held;
	size_t used;

	rte_rcu_qsbr_thread_register(f->qsbr, 0);
	rte_rcu_qsbr_thread_online(f->qsbr, 0);
	action_put(a, false);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	/* The report is before the load, and frees `a` alone. */
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	held = action_params(b);
	action_replace(b, params(TC_ACT_OK, 0, 0));
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(held->verdict, TC_ACT_SHOT);
	/* New actions do not take up what is on its way out. */
	a = make_of(f, &shared_ops, TC_ACT_SHOT, 0);
	assert_ptr_not_equal(action_params(a), held);
	used = slab_used(action_table_slab(f->table));
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(slab_used(action_table_slab(f->table)), used - sizeof(struct test_params));
}

static void
action_A28_verdict_and_flags_are_one_snapshot(void **state)
{
	struct fixture *f = *state;
	struct action *a;
	struct whole w = { .f = f };
	pthread_t thread;

	atomic_store(&stop, false);
	assert_int_equal(action_create(f->table, &whole_ops, 0, whole_params(false), &a), 0);
	w.list = list_of(1, &a);
	rte_rcu_qsbr_thread_register(f->qsbr, 0);
	rte_rcu_qsbr_thread_online(f->qsbr, 0);
	assert_int_equal(pthread_create(&thread, NULL, whole_worker, &w), 0);
	for (unsigned int i = 0; atomic_load(&ran[0]) < 2000 || atomic_load(&ran[1]) < 2000; i++) {
		action_replace(a, whole_params(i % 2 == 0));
		rcu_reclaim(f->rcu, 0);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&torn), 0);
	free(w.list);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(action_indexes_are_per_kind_lowest_first),
		T(action_references_count_as_linux_shows_them),
		T(action_flush_stops_at_the_first_bound),
		T(action_a_flush_of_many_is_one_step),
		T(action_table_goes_while_a_flush_is_under_way),
		T(action_A30_freed_after_last_rule_and_grace_period),
		T(action_replace_frees_the_old_parameters_later),
		T(action_A29_every_packet_counts),
		T(action_list_runs_on_those_with_pipe),
		T(action_empty_list_passes),
		T(action_jump_goes_to_the_numbered_action),
		T(action_C9_jump_and_repeat_for_ever_end),
		T(counter_slots_come_back_as_zero),
		T(counter_halves_are_apart_and_come_back_as_zero),
		T(action_equal_parameters_are_shared),
		T(action_A30_shared_parameters_outlive_all_who_had_them),
		T(action_A28_verdict_and_flags_are_one_snapshot),
	};

	test_eal_init("action", "0");
	the_pool = test_pool("action", 64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
