/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_CLASSIFIER_FIXTURE_H
#define TEST_CLASSIFIER_FIXTURE_H

/* A classifier with one block, a reader that can hold grace periods up, and a vector of packets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/if_ether.h>
#include <rte_rcu_qsbr.h>

#include "classifier/classifier.h"
#include "classifier/gact.h"
#include "support.h"

#define WORKERS 2
#define MIRRORS_MAX 64

struct mirrored {
	uint32_t ifindex;
	bool ingress;
	uint64_t mask;
};

struct fixture {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct classifier_block *block;
	struct classifier_worker worker;
	struct rte_mbuf *pkts[PACKET_VECTOR_MAX];
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector vector;
	struct classifier_result result;
	struct mirrored mirrored[MIRRORS_MAX];
	unsigned int n_mirrored;
	const char *why;
	uint32_t ifindex; /* that packets come in by; 0: as packet_meta says */
};

static struct rte_mempool *the_pool;
static int the_meta_offset;

static inline void
fixture_mirror(void *arg, unsigned int worker, uint32_t ifindex, bool ingress,
	struct rte_mbuf *const *pkts, uint64_t mask)
{
	struct fixture *f = arg;

	(void)worker;
	(void)pkts;
	assert_true(f->n_mirrored < MIRRORS_MAX);
	f->mirrored[f->n_mirrored++] =
		(struct mirrored){ .ifindex = ifindex, .ingress = ingress, .mask = mask };
}

static inline int
fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(WORKERS));
	rte_rcu_qsbr_init(f->qsbr, WORKERS);
	rte_rcu_qsbr_thread_register(f->qsbr, 0);
	rte_rcu_qsbr_thread_online(f->qsbr, 0);
	f->rcu = rcu_create(f->qsbr);
	f->actions = action_table_create(f->rcu, WORKERS);
	f->classifier = classifier_create(f->rcu, f->actions);
	assert_int_equal(classifier_block_create(f->classifier, &f->block), 0);
	f->worker.meta_offset = the_meta_offset;
	f->ifindex = 1;
	f->worker.mirror = fixture_mirror;
	f->worker.mirror_arg = f;
	f->vector.pkts = f->pkts;
	f->vector.views = f->views;
	*state = f;
	return 0;
}

/* Puts a frame at the end of the vector. */
static inline struct rte_mbuf *
put_frame(struct fixture *f, const void *data, uint32_t len)
{
	struct rte_mbuf *m = test_frame(the_pool, data, len, 0);

	memset(packet_meta(m, the_meta_offset), 0, sizeof(struct packet_meta));
	f->pkts[f->vector.n++] = m;
	f->vector.parsed = false;
	return m;
}

static inline void
drop_frames(struct fixture *f)
{
	rte_pktmbuf_free_bulk(f->pkts, f->vector.n);
	f->vector.n = 0;
	f->vector.parsed = false;
}

static inline void
put_ether(struct fixture *f, uint16_t type)
{
	uint8_t data[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, (uint8_t)(type >> 8),
		(uint8_t)type };

	put_frame(f, data, sizeof(data));
}

/* Runs the vector, and checks that the result's masks are disjoint and whole. */
static inline void
run(struct fixture *f)
{
	uint64_t sum = f->result.passed, all = packet_vector_mask(&f->vector);

	memset(&f->result, 0xff, sizeof(f->result));
	classifier_run(f->block, &f->worker, f->ifindex, &f->vector, &f->result);
	sum = f->result.passed;
	assert_int_equal(sum & f->result.redirected, 0);
	sum |= f->result.redirected;
	for (unsigned int i = 0; i < CLASSIFIER_DROP_MAX; i++) {
		assert_int_equal(sum & f->result.dropped[i], 0);
		sum |= f->result.dropped[i];
	}
	assert_int_equal(sum, all);
}

static inline void
grace_period(struct fixture *f)
{
	/* Some things are deferred more than once. */
	for (unsigned int i = 0; i < 8; i++) {
		rte_rcu_qsbr_quiescent(f->qsbr, 0);
		rcu_reclaim(f->rcu, 0);
	}
}

static inline int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	drop_frames(f);
	assert_true(test_pool_full(the_pool));
	rte_rcu_qsbr_thread_offline(f->qsbr, 0);
	classifier_block_put(f->block);
	rcu_barrier(f->rcu);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 0);
	/* Every slot came back: no rule and no action is lost. */
	assert_int_equal(action_table_counters(f->actions)->used, 0);
	classifier_destroy(f->classifier);
	action_table_destroy(f->actions);
	rcu_destroy(f->rcu);
	free(f->qsbr);
	free(f);
	return 0;
}

/* A gact that only its rule will hold. */
static inline struct action *
gact(struct fixture *f, int32_t verdict)
{
	struct action *a = NULL;

	assert_int_equal(
		action_create(f->actions, &gact_action_ops, 0, gact_params_create(verdict), &a), 0);
	return a;
}

/* Sets a rule with one action of its own, as netlink does. The error, or 0. */
static inline int
set_rule(struct fixture *f, struct classifier_rule_conf *conf, unsigned int flags, int32_t verdict,
	struct classifier_rule **rule)
{
	struct action *a = gact(f, verdict);
	int rc;

	conf->n_actions = 1;
	conf->actions[0] = a;
	rc = classifier_rule_set(f->block, conf, flags, rule, &f->why);
	action_put(a, false);
	return rc;
}

static inline struct classifier_rule *
add_matchall(struct fixture *f, uint32_t chain, uint32_t prio, uint16_t protocol, int32_t verdict)
{
	struct classifier_rule_conf conf = { .place = { .chain = chain,
						     .prio = prio,
						     .protocol = protocol,
						     .kind = CLASSIFIER_MATCHALL } };
	struct classifier_rule *rule = NULL;

	assert_int_equal(
		set_rule(f, &conf, CLASSIFIER_CREATE | CLASSIFIER_EXCL, verdict, &rule), 0);
	assert_non_null(rule);
	return rule;
}

static inline int
fixture_main(const char *name, const struct CMUnitTest *tests, size_t n)
{
	test_eal_init(name, "0");
	the_pool = test_pool(name, 1024);
	the_meta_offset = packet_meta_register();
	if (the_meta_offset < 0)
		return 1;
	return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}

#define FIXTURE_TEST(t) cmocka_unit_test_setup_teardown(t, fixture_setup, fixture_teardown)

#endif /* TEST_CLASSIFIER_FIXTURE_H */
