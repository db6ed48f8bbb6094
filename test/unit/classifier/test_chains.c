/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "fixture.h"

static void
classifier_an_empty_block_passes(void **state)
{
	struct fixture *f = *state;

	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.passed, 3);
	drop_frames(f);
	run(f); /* no packets at all */
}

static void
classifier_priorities_in_order(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *first, *second;

	second = add_matchall(f, 0, 20, ETH_P_ALL, TC_ACT_SHOT);
	first = add_matchall(f, 0, 10, ETH_P_ALL, TC_ACT_OK);
	put_ether(f, ETH_P_IP);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(classifier_rule_hits(first), 1);
	assert_int_equal(classifier_rule_hits(second), 0);
	classifier_rule_del(first);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
	assert_int_equal(classifier_rule_hits(second), 1);
}

static void
classifier_protocol_is_the_outermost_type(void **state)
{
	struct fixture *f = *state;
	uint8_t llc[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0, 46, 0x42, 0x42 };

	add_matchall(f, 0, 1, ETH_P_IP, TC_ACT_SHOT);
	add_matchall(f, 0, 2, ETH_P_8021Q, TC_ACT_STOLEN);
	add_matchall(f, 0, 3, ETH_P_802_2, TC_ACT_SHOT);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	put_ether(f, ETH_P_8021Q);
	put_frame(f, llc, sizeof(llc));
	put_frame(f, llc, 13); /* too short to have one */
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0x09);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 0x04);
	assert_int_equal(f->result.passed, 0x12);
}

static void
classifier_continue_goes_to_the_next_priority(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *last;

	add_matchall(f, 0, 1, ETH_P_ALL, TC_ACT_UNSPEC);
	last = add_matchall(f, 0, 2, ETH_P_ALL, TC_ACT_UNSPEC);
	put_ether(f, ETH_P_IP);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(classifier_rule_hits(last), 1);
}

static void
classifier_pipe_at_the_end_passes(void **state)
{
	struct fixture *f = *state;

	add_matchall(f, 0, 1, ETH_P_ALL, TC_ACT_PIPE);
	add_matchall(f, 0, 2, ETH_P_ALL, TC_ACT_SHOT);
	put_ether(f, ETH_P_IP);
	run(f);
	assert_int_equal(f->result.passed, 1);
}

static void
classifier_goto_chain(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *in_chain;

	add_matchall(f, 0, 1, ETH_P_IP, TC_ACT_GOTO_CHAIN | 7);
	add_matchall(f, 0, 2, ETH_P_ALL, TC_ACT_STOLEN);
	in_chain = add_matchall(f, 7, 5, ETH_P_ALL, TC_ACT_SHOT);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 2);
	assert_int_equal(classifier_rule_hits(in_chain), 1);
	/* A miss in the other chain passes; it does not come back to this one. */
	add_matchall(f, 7, 1, ETH_P_ARP, TC_ACT_OK);
	classifier_rule_del(in_chain);
	run(f);
	assert_int_equal(f->result.passed, 1);
}

static void
classifier_C9_goto_a_missing_chain_is_a_counted_drop(void **state)
{
	struct fixture *f = *state;

	add_matchall(f, 0, 1, ETH_P_IP, TC_ACT_GOTO_CHAIN | 7);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_GOTO_MISSING], 1);
	assert_int_equal(f->result.passed, 2);
	assert_int_equal(classifier_chain_add(f->block, 7, &f->why), 0);
	run(f);
	assert_int_equal(f->result.passed, 3);
}

static void
classifier_C9_loops_end_in_a_counted_drop(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *self = add_matchall(f, 0, 1, ETH_P_IP, TC_ACT_RECLASSIFY);
	struct classifier_rule *a, *b;

	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_LOOP], 1);
	assert_int_equal(f->result.passed, 2);
	/* Linux: 16 times anew after the first. */
	assert_int_equal(classifier_rule_hits(self), 17);
	classifier_rule_del(self);
	a = add_matchall(f, 0, 1, ETH_P_ALL, TC_ACT_GOTO_CHAIN | 5);
	b = add_matchall(f, 5, 1, ETH_P_ALL, TC_ACT_GOTO_CHAIN | 0);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_LOOP], 3);
	assert_int_equal(classifier_rule_hits(a) + classifier_rule_hits(b), 34);
	classifier_rule_del(a);
	add_matchall(f, 0, 1, ETH_P_ALL, TC_ACT_GOTO_CHAIN | 0);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_LOOP], 3);
}

static void
classifier_packets_part_and_meet_again(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *met;

	/* IP: 0 -> 1 -> 3; IPv6: 0 -> 2 -> 3; others: 0 -> 3 */
	add_matchall(f, 0, 1, ETH_P_IP, TC_ACT_GOTO_CHAIN | 1);
	add_matchall(f, 0, 2, ETH_P_IPV6, TC_ACT_GOTO_CHAIN | 2);
	add_matchall(f, 0, 3, ETH_P_ALL, TC_ACT_GOTO_CHAIN | 3);
	add_matchall(f, 1, 1, ETH_P_ALL, TC_ACT_GOTO_CHAIN | 3);
	add_matchall(f, 2, 1, ETH_P_ALL, TC_ACT_GOTO_CHAIN | 3);
	met = add_matchall(f, 3, 1, ETH_P_ALL, TC_ACT_SHOT);
	for (unsigned int i = 0; i < PACKET_VECTOR_MAX; i++)
		put_ether(f, i % 3 == 0 ? ETH_P_IP : i % 3 == 1 ? ETH_P_IPV6 : ETH_P_ARP);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], UINT64_MAX);
	assert_int_equal(classifier_rule_hits(met), 64);
}

static void
classifier_every_packet_its_own_chain(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < PACKET_VECTOR_MAX; i++) {
		put_ether(f, (uint16_t)(0x4000 + i));
		add_matchall(
			f, 0, 1 + i, (uint16_t)(0x4000 + i), TC_ACT_GOTO_CHAIN | (int)(100 + i));
		if (i % 2 == 0)
			add_matchall(f, 100 + i, 1, ETH_P_ALL, TC_ACT_SHOT);
	}
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0x5555555555555555);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_GOTO_MISSING], 0xaaaaaaaaaaaaaaaa);
}

static void
classifier_a_class_goes_into_the_packet(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule_conf conf = { .place = { .prio = 1, .protocol = ETH_P_IP },
		.classid = 0x10002 };

	assert_int_equal(set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_OK, NULL), 0);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.passed, 3);
	assert_int_equal(packet_meta(f->pkts[0], the_meta_offset)->classid, 2);
	assert_int_equal(packet_meta(f->pkts[1], the_meta_offset)->classid, 0);
	/* A rule without actions passes, and classifies all the same. */
	conf.n_actions = 0;
	conf.classid = 0x10003;
	assert_int_equal(classifier_rule_set(f->block, &conf, CLASSIFIER_CREATE, NULL, &f->why), 0);
	run(f);
	assert_int_equal(packet_meta(f->pkts[0], the_meta_offset)->classid, 3);
}

static void
classifier_automatic_priorities_are_linux_s(void **state)
{
	struct fixture *f = *state;
	struct classifier_place at = { 0 };

	add_matchall(f, 0, 5, ETH_P_ALL, TC_ACT_OK);
	add_matchall(f, 0, 0, ETH_P_ALL, TC_ACT_OK);
	add_matchall(f, 0, 0, ETH_P_ALL, TC_ACT_OK);
	add_matchall(f, 0, 60000, ETH_P_ALL, TC_ACT_OK);
	assert_non_null(classifier_rule_next(f->block, &at));
	assert_int_equal(at.prio, 5);
	assert_int_equal(at.handle, 1);
	assert_non_null(classifier_rule_next(f->block, &at));
	assert_int_equal(at.prio, 49151);
	assert_non_null(classifier_rule_next(f->block, &at));
	assert_int_equal(at.prio, 49152);
	assert_non_null(classifier_rule_next(f->block, &at));
	assert_int_equal(at.prio, 60000);
	assert_null(classifier_rule_next(f->block, &at));
}

static void
classifier_the_last_automatic_priority(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule_conf conf = { .place = { .protocol = ETH_P_ALL } };

	add_matchall(f, 0, 0x8000, ETH_P_ALL, TC_ACT_OK);
	assert_int_equal(set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_OK, NULL), -ENOSPC);
	assert_non_null(f->why);
}

static void
expect_refused(struct fixture *f, struct classifier_rule_conf *conf, unsigned int flags, int error)
{
	uint64_t generation = classifier_block_generation(f->block);

	assert_int_equal(set_rule(f, conf, flags, TC_ACT_SHOT, NULL), error);
	assert_non_null(f->why);
	assert_int_equal(classifier_block_generation(f->block), generation);
	/* C1: a refused insert never matched a packet. */
	run(f);
	assert_int_equal(f->result.passed, packet_vector_mask(&f->vector));
}

static void
classifier_C1_refused_rules_match_nothing(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule_conf conf = { .place = { .prio = 0, .protocol = ETH_P_ALL } };

	put_ether(f, ETH_P_IP);
	expect_refused(f, &conf, 0, -ENOENT);
	conf.place.prio = 3;
	expect_refused(f, &conf, 0, -ENOENT);
	conf.place.prio = 65536;
	expect_refused(f, &conf, CLASSIFIER_CREATE, -EINVAL);
	conf.place.prio = 3;
	conf.place.chain = TC_ACT_EXT_VAL_MASK + 1;
	expect_refused(f, &conf, CLASSIFIER_CREATE, -EINVAL);
	conf.place.chain = 0;
	conf.place.protocol = 0;
	expect_refused(f, &conf, CLASSIFIER_CREATE, -EINVAL);
	conf.place.protocol = ETH_P_IP;
	add_matchall(f, 0, 3, ETH_P_ALL, TC_ACT_OK);
	expect_refused(f, &conf, CLASSIFIER_CREATE, -EINVAL);
	conf.place.protocol = ETH_P_ALL;
	expect_refused(f, &conf, CLASSIFIER_CREATE | CLASSIFIER_EXCL, -EEXIST);
	conf.place.handle = 9;
	expect_refused(f, &conf, CLASSIFIER_CREATE, -EEXIST);
	conf.place.kind = (enum classifier_kind)99;
	expect_refused(f, &conf, CLASSIFIER_CREATE, -EOPNOTSUPP);
}

static void
classifier_C4_replace_swaps_the_rule(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule_conf conf = { .place = { .prio = 3, .protocol = ETH_P_ALL } };
	struct classifier_rule *old, *new = NULL;

	put_ether(f, ETH_P_IP);
	old = add_matchall(f, 0, 3, ETH_P_ALL, TC_ACT_OK);
	assert_int_equal(set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_SHOT, &new), 0);
	assert_ptr_not_equal(old, new);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	/* The handle stays; change without create does as well. */
	conf.place.handle = 1;
	assert_int_equal(set_rule(f, &conf, 0, TC_ACT_OK, NULL), 0);
	run(f);
	assert_int_equal(f->result.passed, 1);
}

static void
classifier_A30_rule_and_action_live_for_a_grace_period(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *rule = add_matchall(f, 0, 3, ETH_P_ALL, TC_ACT_OK);
	uint32_t used = action_table_counters(f->actions)->used;

	classifier_rule_del(rule);
	rcu_reclaim(f->rcu, 0);
	assert_int_equal(action_table_counters(f->actions)->used, used);
	grace_period(f);
	assert_int_equal(action_table_counters(f->actions)->used, 0);
	assert_int_equal(rcu_pending(f->rcu), 0);
}

static void
classifier_a_shared_action_is_bound_by_each_rule(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule_conf conf = { .place = { .prio = 1, .protocol = ETH_P_ALL },
		.n_actions = 1 };
	struct action *shared = gact(f, TC_ACT_UNSPEC);
	struct action_stats stats;

	conf.actions[0] = shared;
	for (conf.place.prio = 1; conf.place.prio <= 3; conf.place.prio++)
		assert_int_equal(
			classifier_rule_set(f->block, &conf, CLASSIFIER_CREATE, NULL, &f->why), 0);
	assert_int_equal(shared->refs, 4);
	assert_int_equal(shared->binds, 3);
	put_ether(f, ETH_P_IP);
	run(f);
	action_stats_get(shared, &stats);
	assert_int_equal(stats.packets, 3);
	assert_int_equal(stats.bytes, 180);
	/* A change of the shared action is one for all its rules. */
	action_replace(shared, gact_params_create(TC_ACT_SHOT));
	run(f);
	action_stats_get(shared, &stats);
	assert_int_equal(stats.packets, 4);
	assert_int_equal(stats.drops, 1);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	assert_int_equal(shared->refs, 1);
	assert_int_equal(shared->binds, 0);
	assert_int_equal(action_del(shared), 0);
}

static void
classifier_flush_as_linux_deletes(void **state)
{
	struct fixture *f = *state;

	add_matchall(f, 0, 1, ETH_P_ALL, TC_ACT_SHOT);
	add_matchall(f, 0, 2, ETH_P_IP, TC_ACT_SHOT);
	add_matchall(f, 3, 2, ETH_P_IP, TC_ACT_SHOT);
	assert_int_equal(classifier_flush(f->block, 9, 0, 0, &f->why), 0);
	assert_int_equal(classifier_flush(f->block, 9, 1, 0, &f->why), -ENOENT);
	assert_int_equal(classifier_flush(f->block, 0, 7, 0, &f->why), -ENOENT);
	assert_int_equal(classifier_flush(f->block, 0, 2, ETH_P_ALL, &f->why), -EINVAL);
	assert_int_equal(classifier_flush(f->block, 0, 1, ETH_P_ALL, &f->why), 0);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_ARP);
	run(f);
	assert_int_equal(f->result.passed, 2);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	run(f);
	assert_int_equal(f->result.passed, 3);
	assert_true(classifier_chain_exists(f->block, 3));
	assert_false(classifier_chain_exists(f->block, 0));
}

static void
classifier_chains_stay_while_needed(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *rule = add_matchall(f, 4, 1, ETH_P_ALL, TC_ACT_OK);
	uint32_t index = 0;

	assert_int_equal(classifier_chain_add(f->block, 4, &f->why), -EEXIST);
	assert_int_equal(classifier_chain_add(f->block, 6, &f->why), 0);
	assert_int_equal(classifier_chain_add(f->block, 6, &f->why), -EEXIST);
	assert_int_equal(classifier_chain_add(f->block, TC_ACT_EXT_VAL_MASK + 1, &f->why), -EINVAL);
	assert_true(classifier_chain_next(f->block, &index));
	assert_int_equal(index, 4);
	index++;
	assert_true(classifier_chain_next(f->block, &index));
	assert_int_equal(index, 6);
	classifier_rule_del(rule);
	assert_false(classifier_chain_exists(f->block, 4));
	rule = add_matchall(f, 6, 1, ETH_P_ALL, TC_ACT_OK);
	classifier_rule_del(rule);
	assert_true(classifier_chain_exists(f->block, 6));
	add_matchall(f, 6, 1, ETH_P_ALL, TC_ACT_OK);
	assert_int_equal(classifier_chain_del(f->block, 6, &f->why), 0);
	assert_int_equal(classifier_chain_del(f->block, 6, &f->why), -EINVAL);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 0);
}

static void
classifier_C5_dump_while_deleting(void **state)
{
	struct fixture *f = *state;
	struct classifier_place at = { 0 };
	struct classifier_rule *rule;
	uint64_t generation;
	unsigned int seen = 0;

	for (uint32_t i = 0; i < 300; i++)
		add_matchall(f, i / 30, 1 + i % 30, ETH_P_ALL, TC_ACT_OK);
	generation = classifier_block_generation(f->block);
	while ((rule = classifier_rule_next(f->block, &at)) != NULL) {
		seen++;
		classifier_rule_del(rule);
		grace_period(f);
	}
	assert_int_equal(seen, 300);
	assert_int_not_equal(classifier_block_generation(f->block), generation);
	at = (struct classifier_place){ 0 };
	assert_null(classifier_rule_next(f->block, &at));
}

static void
classifier_C7_100k_chains_come_and_go(void **state)
{
	struct fixture *f = *state;
	const uint32_t n = 100000;

	for (uint32_t i = 0; i < n; i++)
		add_matchall(f, i * 7, 1, ETH_P_ALL, TC_ACT_SHOT);
	for (uint32_t i = 0; i < n; i++) {
		struct classifier_place place = {
			.chain = (uint32_t)((uint64_t)i * 61987 % n) * 7, .prio = 1, .handle = 1
		};
		struct classifier_rule *rule = classifier_rule_find(f->block, &place);

		assert_non_null(rule);
		classifier_rule_del(rule);
	}
	assert_int_equal(f->block != NULL, 1);
}

static void
classifier_a_flush_of_many_priorities_is_one_step(void **state)
{
	struct fixture *f = *state;
	unsigned int n, most = 0;

	put_ether(f, ETH_P_IP);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t prio = 1; prio <= 10000; prio++)
			add_matchall(f, 0, prio, ETH_P_ALL, TC_ACT_UNSPEC);
		add_matchall(f, 0, 20000, ETH_P_ALL, TC_ACT_SHOT);
		run(f);
		assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
		assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
		run(f);
		assert_int_equal(f->result.passed, 1);
		assert_false(classifier_chain_exists(f->block, 0));
	}
	/* New rules beside the old ones on their way out. */
	add_matchall(f, 0, 5, ETH_P_ALL, TC_ACT_STOLEN);
	while (rcu_pending(f->rcu) != 0) {
		rte_rcu_qsbr_quiescent(f->qsbr, 0);
		n = rcu_reclaim(f->rcu, 0);
		most = RTE_MAX(most, n);
	}
	assert_in_range(most, 1, 2000);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 1);
}

static void
classifier_gact_random(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule *rule = add_matchall(f, 0, 1, ETH_P_ALL, TC_ACT_OK);
	struct action *a = classifier_rule_conf(rule)->actions[0];
	unsigned int dropped = 0;

	for (unsigned int i = 0; i < 10; i++)
		put_ether(f, ETH_P_IP);
	action_replace(a, gact_params_create_random(TC_ACT_OK, 2, 4, TC_ACT_SHOT));
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0x088);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0x222);
	action_replace(a, gact_params_create_random(TC_ACT_OK, 1, 2, TC_ACT_SHOT));
	for (unsigned int i = 0; i < 1000; i++) {
		run(f);
		dropped +=
			(unsigned int)__builtin_popcountll(f->result.dropped[CLASSIFIER_DROP_SHOT]);
	}
	assert_in_range(dropped, 4600, 5400);
	assert_null(gact_params_create_random(TC_ACT_OK, 3, 2, TC_ACT_SHOT));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(classifier_an_empty_block_passes),
		FIXTURE_TEST(classifier_priorities_in_order),
		FIXTURE_TEST(classifier_protocol_is_the_outermost_type),
		FIXTURE_TEST(classifier_continue_goes_to_the_next_priority),
		FIXTURE_TEST(classifier_pipe_at_the_end_passes),
		FIXTURE_TEST(classifier_goto_chain),
		FIXTURE_TEST(classifier_C9_goto_a_missing_chain_is_a_counted_drop),
		FIXTURE_TEST(classifier_C9_loops_end_in_a_counted_drop),
		FIXTURE_TEST(classifier_packets_part_and_meet_again),
		FIXTURE_TEST(classifier_every_packet_its_own_chain),
		FIXTURE_TEST(classifier_a_class_goes_into_the_packet),
		FIXTURE_TEST(classifier_automatic_priorities_are_linux_s),
		FIXTURE_TEST(classifier_the_last_automatic_priority),
		FIXTURE_TEST(classifier_C1_refused_rules_match_nothing),
		FIXTURE_TEST(classifier_C4_replace_swaps_the_rule),
		FIXTURE_TEST(classifier_A30_rule_and_action_live_for_a_grace_period),
		FIXTURE_TEST(classifier_a_shared_action_is_bound_by_each_rule),
		FIXTURE_TEST(classifier_flush_as_linux_deletes),
		FIXTURE_TEST(classifier_chains_stay_while_needed),
		FIXTURE_TEST(classifier_C5_dump_while_deleting),
		FIXTURE_TEST(classifier_C7_100k_chains_come_and_go),
		FIXTURE_TEST(classifier_a_flush_of_many_priorities_is_one_step),
		FIXTURE_TEST(classifier_gact_random),
	};

	return fixture_main("classifier_chains", tests, RTE_DIM(tests));
}
