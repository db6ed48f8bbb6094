/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "fixture.h"

#include <linux/tc_act/tc_mirred.h>

#include "classifier/mirred.h"

/* A matchall rule at prio 1 with these actions, which it then alone holds. */
static void
rule_with(struct fixture *f, uint32_t prio, uint32_t n, const struct action_ops *const *ops,
	struct action_params *const *params)
{
	struct classifier_rule_conf conf = { .place = { .prio = prio, .protocol = ETH_P_ALL },
		.n_actions = n };

	for (uint32_t i = 0; i < n; i++) {
		assert_non_null(params[i]);
		assert_int_equal(
			action_create(f->actions, ops[i], 0, params[i], &conf.actions[i]), 0);
	}
	assert_int_equal(classifier_rule_set(f->block, &conf, CLASSIFIER_CREATE, NULL, &f->why), 0);
	for (uint32_t i = 0; i < n; i++)
		action_put(conf.actions[i], false);
}

static void
rule_with_one(struct fixture *f, const struct action_ops *ops, struct action_params *params)
{
	rule_with(f, 1, 1, &ops, &params);
}

static void
mirred_redirect_names_the_port(void **state)
{
	struct fixture *f = *state;

	rule_with_one(
		f, &mirred_action_ops, mirred_params_create(TC_ACT_STOLEN, TCA_EGRESS_REDIR, 7));
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.redirected, 3);
	assert_int_equal(f->result.target[0], 7);
	assert_int_equal(f->result.target[1], 7);
	assert_int_equal(f->n_mirrored, 0);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	rule_with_one(
		f, &mirred_action_ops, mirred_params_create(TC_ACT_STOLEN, TCA_INGRESS_REDIR, 7));
	run(f);
	assert_int_equal(f->result.target[1], 7 | MIRRED_TARGET_INGRESS);
}

static void
mirred_mirror_copies_and_goes_on(void **state)
{
	struct fixture *f = *state;
	const struct action_ops *ops[] = { &mirred_action_ops, &mirred_action_ops,
		&gact_action_ops };
	struct action_params *params[] = { mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_MIRROR, 3),
		mirred_params_create(TC_ACT_PIPE, TCA_INGRESS_MIRROR, 4),
		gact_params_create(TC_ACT_SHOT) };

	rule_with(f, 1, 3, ops, params);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 3);
	assert_int_equal(f->n_mirrored, 2);
	assert_int_equal(f->mirrored[0].ifindex, 3);
	assert_false(f->mirrored[0].ingress);
	assert_int_equal(f->mirrored[0].mask, 3);
	assert_int_equal(f->mirrored[1].ifindex, 4);
	assert_true(f->mirrored[1].ingress);
}

static void
mirred_redirect_that_goes_on_is_a_copy(void **state)
{
	struct fixture *f = *state;

	rule_with_one(
		f, &mirred_action_ops, mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_REDIR, 3));
	put_ether(f, ETH_P_IP);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(f->n_mirrored, 1);
}

static void
mirred_refuses_what_is_not_a_port(void **state)
{
	(void)state;
	assert_null(mirred_params_create(TC_ACT_PIPE, 0, 3));
	assert_null(mirred_params_create(TC_ACT_PIPE, 5, 3));
	assert_null(mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_REDIR, 0));
	assert_null(mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_REDIR, 0x80000001));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(mirred_redirect_names_the_port),
		FIXTURE_TEST(mirred_mirror_copies_and_goes_on),
		FIXTURE_TEST(mirred_redirect_that_goes_on_is_a_copy),
		FIXTURE_TEST(mirred_refuses_what_is_not_a_port),
	};

	return fixture_main("classifier_actions", tests, RTE_DIM(tests));
}
