/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* gact: nothing but a verdict. */

#include <errno.h>
#include <linux/tc_act/tc_gact.h>
#include <rte_errno.h>
#include <string.h>

#include "classifier/gact.h"
#include "netlink/tc.h"

static const struct netlink_attr_policy gact_policy[] = {
	{ TCA_GACT_PARMS, "TCA_GACT_PARMS", NETLINK_ATTR_BINARY, sizeof(struct tc_gact),
		sizeof(struct tc_gact) },
	{ TCA_GACT_PROB, "TCA_GACT_PROB", NETLINK_ATTR_BINARY, sizeof(struct tc_gact_p),
		sizeof(struct tc_gact_p) },
	/* what a dump says beside */
	{ TCA_GACT_TM, "TCA_GACT_TM", NETLINK_ATTR_IGNORED },
	{ TCA_GACT_PAD, "TCA_GACT_PAD", NETLINK_ATTR_IGNORED },
};

static int
gact_prob_check(
	struct netlink_request *req, const struct nlattr *attr, const struct tc_gact_p *prob)
{
	if (prob->ptype >= MAX_RAND)
		return netlink_fail(req, -EINVAL, attr,
			"TCA_GACT_PROB: %u is no kind of randomness", prob->ptype);
	if (TC_ACT_EXT_CMP(prob->paction, TC_ACT_GOTO_CHAIN))
		return netlink_fail(req, -EINVAL, attr, "goto chain not allowed on fallback");
	return tc_verdict_check(req, attr, prob->paction, false);
}

/* Without TCA_GACT_PROB a replace leaves the randomness that was there, as Linux does. */
static int
gact_prob(struct netlink_request *req, const struct nlattr *attr, const struct action_params *old,
	struct tc_gact_p *prob)
{
	const struct gact_params *was = (const struct gact_params *)old;

	memset(prob, 0, sizeof(*prob));
	if (attr != NULL) {
		memcpy(prob, mnl_attr_get_payload(attr), sizeof(*prob));
		if (prob->pval == 0)
			prob->pval = 1;
		return gact_prob_check(req, attr, prob);
	}
	if (was != NULL) {
		prob->ptype = was->random;
		prob->pval = was->value;
		prob->paction = was->other;
	}
	return 0;
}

static int
gact_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_GACT_MAX + 1];
	struct tc_gact parm;
	struct tc_gact_p prob;
	int ret;

	ret = netlink_parse_nested(
		req, options, gact_policy, RTE_DIM(gact_policy), tb, TCA_GACT_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_GACT_PARMS] == NULL)
		return netlink_fail(req, -EINVAL, options, "gact needs TCA_GACT_PARMS");
	memcpy(&parm, mnl_attr_get_payload(tb[TCA_GACT_PARMS]), sizeof(parm));
	if ((ret = gact_prob(req, tb[TCA_GACT_PROB], old, &prob)) != 0)
		return ret;
	*index = parm.index;
	*params = prob.ptype == PGACT_NONE
		? gact_params_create(parm.action)
		: gact_params_create_random(parm.action, prob.ptype, prob.pval, prob.paction);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, options, "gact: %s", strerror(rte_errno));
	return 0;
}

static void
gact_put(struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct gact_params *gact = (const struct gact_params *)params;
	struct tc_gact parm = { 0 };
	struct tc_gact_p prob = { 0 };

	parm.index = action->index;
	parm.action = params->verdict;
	parm.refcnt = (int)action->refs;
	parm.bindcnt = (int)action->binds;
	netlink_put_data(put, TCA_GACT_PARMS, &parm, sizeof(parm));
	if (gact->random == PGACT_NONE)
		return;
	prob.ptype = gact->random;
	prob.pval = gact->value;
	prob.paction = gact->other;
	netlink_put_data(put, TCA_GACT_PROB, &prob, sizeof(prob));
}

static struct netlink_action_kind gact_kind = {
	.ops = &gact_action_ops,
	.parse = gact_parse,
	.put = gact_put,
	.tm_type = TCA_GACT_TM,
};

static void __attribute__((constructor)) gact_register(void)
{
	netlink_action_kind_register(&gact_kind);
}
