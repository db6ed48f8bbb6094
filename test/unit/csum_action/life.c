/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Rule A30: an action in use is freed after its last rule and a grace period, not before. */

#include "../classifier/fixture.h"
#include "csum_action/csum_action.h"
#include "reference.h"

#define FLAGS (TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_UDP)

/* IPv4, UDP, 14 bytes of payload; both sums are wrong. */
static const uint8_t wrong[] = { 0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0, 0x45, 0,
	0, 0x2a, 0x12, 0x34, 0, 0, 0x40, 0x11, 0x77, 0, 192, 0, 2, 1, 198, 51, 100, 7, 0x03, 0xe8,
	0x07, 0xd0, 0, 0x16, 0x77, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

static void
assert_summed(const struct fixture *f, bool summed)
{
	uint8_t expected[sizeof(wrong)];

	memcpy(expected, wrong, sizeof(wrong));
	if (summed)
		reference_update(expected, sizeof(expected), FLAGS);
	assert_memory_equal(rte_pktmbuf_mtod(f->pkts[0], const void *), expected, sizeof(expected));
}

static struct classifier_rule *
add_rule(struct fixture *f, struct action *action, uint32_t prio)
{
	struct classifier_rule_conf conf = { .place = { .prio = prio, .protocol = ETH_P_ALL },
		.n_actions = 1,
		.actions = { action } };
	struct classifier_rule *rule = NULL;

	assert_int_equal(
		classifier_rule_set(f->block, &conf, CLASSIFIER_CREATE, &rule, &f->why), 0);
	return rule;
}

/* A frame of its own through the block. */
static void
send_one(struct fixture *f)
{
	drop_frames(f);
	put_frame(f, wrong, sizeof(wrong));
	run(f);
	assert_int_equal(f->result.passed, 1);
}

/* What a worker does that found the rule before it was deleted, and has not reported since. */
static void
send_one_under_way(struct fixture *f, const struct action_list *list)
{
	struct action_burst burst = { .vector = &f->vector, .pkts = f->pkts };

	drop_frames(f);
	put_frame(f, wrong, sizeof(wrong));
	packet_vector_parse(&f->vector);
	assert_int_equal(action_exec(list, &burst, 1), TC_ACT_PIPE);
}

static void
csum_A30_freed_after_its_last_rule_and_a_grace_period(void **state)
{
	struct fixture *f = *state;
	struct action_params *params = csum_action_params_create(FLAGS, TC_ACT_PIPE);
	struct action_list *list = malloc(action_list_size(1));
	struct classifier_rule *first, *last;
	struct action *action = NULL;
	struct action_stats stats;

	assert_int_equal(action_create(f->actions, &csum_action_ops, 5, params, &action), 0);
	action_list_init(list, &action, 1);
	first = add_rule(f, action, 1);
	last = add_rule(f, action, 2);
	/* No one but the two rules holds it. */
	action_put(action, false);
	grace_period(f);
	send_one(f);
	assert_summed(f, true);

	/* One rule goes, and its grace period too: the action stays. */
	classifier_rule_del(first);
	grace_period(f);
	assert_ptr_equal(action_find(f->actions, &csum_action_ops, 5), action);
	send_one(f);
	assert_summed(f, true);
	action_stats_get(action, &stats);
	assert_int_equal(stats.packets, 2);

	/* The last rule goes: nobody finds the action any more, but who has it may run it. */
	classifier_rule_del(last);
	assert_null(action_find(f->actions, &csum_action_ops, 5));
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	assert_int_not_equal(action_table_counters(f->actions)->used, 0);
	send_one_under_way(f, list);
	assert_summed(f, true);
	action_stats_get(action, &stats);
	assert_int_equal(stats.packets, 3);

	/* The worker has reported: now it is freed, and gave its slots back. */
	grace_period(f);
	assert_int_equal(action_table_counters(f->actions)->used, 0);
	assert_int_equal(rcu_pending(f->rcu), 0);
	send_one(f);
	assert_summed(f, false);
	free(list);
}

/* The snapshot that a worker has loaded outlives its replacement likewise. */
static void
csum_A30_replaced_parameters_outlive_who_uses_them(void **state)
{
	struct fixture *f = *state;
	struct action *action = NULL;
	const struct action_params *old;
	uint64_t freed;

	assert_int_equal(action_create(f->actions, &csum_action_ops, 0,
				 csum_action_params_create(FLAGS, TC_ACT_PIPE), &action),
		0);
	add_rule(f, action, 1);
	action_put(action, false);
	grace_period(f);
	old = action_params(action);
	freed = rcu_deferred(f->rcu) - rcu_pending(f->rcu);
	action_replace(action, csum_action_params_create(0, TC_ACT_PIPE));
	assert_int_equal(rcu_reclaim(f->rcu, 0), 0);
	assert_int_equal(((const struct csum_action_params *)old)->update_flags, FLAGS);
	send_one(f);
	assert_summed(f, false);
	rte_rcu_qsbr_quiescent(f->qsbr, 0);
	assert_int_equal(rcu_reclaim(f->rcu, 0), 1);
	assert_int_equal(rcu_deferred(f->rcu) - rcu_pending(f->rcu), freed + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(csum_A30_freed_after_its_last_rule_and_a_grace_period),
		FIXTURE_TEST(csum_A30_replaced_parameters_outlive_who_uses_them),
	};

	return fixture_main("csum_life", tests, RTE_DIM(tests));
}
