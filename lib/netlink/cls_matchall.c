/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* matchall: every packet. */

#include <errno.h>
#include <linux/pkt_cls.h>

#include "netlink/tc.h"

static const struct netlink_attr_policy matchall_policy[] = {
	{ TCA_MATCHALL_CLASSID, "TCA_MATCHALL_CLASSID", NETLINK_ATTR_U32 },
	{ TCA_MATCHALL_ACT, "TCA_MATCHALL_ACT", NETLINK_ATTR_NESTED },
	{ TCA_MATCHALL_FLAGS, "TCA_MATCHALL_FLAGS", NETLINK_ATTR_U32 },
	/* what a dump says beside */
	{ TCA_MATCHALL_PCNT, "TCA_MATCHALL_PCNT", NETLINK_ATTR_IGNORED },
	{ TCA_MATCHALL_PAD, "TCA_MATCHALL_PAD", NETLINK_ATTR_IGNORED },
};

static int
matchall_parse(struct netlink_request *req, const struct nlattr *options,
	struct classifier_rule_conf *conf, struct flower_match *match)
{
	const struct nlattr *tb[TCA_MATCHALL_MAX + 1];
	int ret;

	(void)match;
	ret = netlink_parse_nested(
		req, options, matchall_policy, RTE_DIM(matchall_policy), tb, TCA_MATCHALL_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_MATCHALL_FLAGS] != NULL &&
		(ret = tc_filter_flags_parse(req, tb[TCA_MATCHALL_FLAGS], &conf->flags)) != 0)
		return ret;
	if (tb[TCA_MATCHALL_CLASSID] != NULL)
		conf->classid = mnl_attr_get_u32(tb[TCA_MATCHALL_CLASSID]);
	if (tb[TCA_MATCHALL_ACT] != NULL)
		return tc_actions_parse(req, tb[TCA_MATCHALL_ACT], conf->actions, &conf->n_actions);
	return 0;
}

static void
matchall_put(
	struct netlink_server *server, struct netlink_put *put, const struct classifier_rule *rule)
{
	const struct classifier_rule_conf *conf = classifier_rule_conf(rule);
	struct tc_matchall_pcnt pcnt = { .rhit = classifier_rule_hits(rule) };

	(void)server;
	if (conf->classid != 0)
		netlink_put_u32(put, TCA_MATCHALL_CLASSID, conf->classid);
	netlink_put_u32(put, TCA_MATCHALL_FLAGS, conf->flags | TCA_CLS_FLAGS_NOT_IN_HW);
	if (!put->bare)
		netlink_put_data(put, TCA_MATCHALL_PCNT, &pcnt, sizeof(pcnt));
	tc_actions_put(put, TCA_MATCHALL_ACT, conf->actions, conf->n_actions, 0);
}

static struct netlink_filter_kind matchall_kind = {
	.name = "matchall",
	.kind = CLASSIFIER_MATCHALL,
	.actions_type = TCA_MATCHALL_ACT,
	.parse = matchall_parse,
	.put = matchall_put,
};

static void __attribute__((constructor)) matchall_register(void)
{
	netlink_filter_kind_register(&matchall_kind);
}
