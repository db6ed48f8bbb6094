/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* skbedit: priority, mark and Tx queue of a packet. */

#include <errno.h>
#include <linux/tc_act/tc_skbedit.h>
#include <rte_errno.h>
#include <string.h>

#include "classifier/skbedit.h"
#include "netlink/tc.h"

static const struct netlink_attr_policy skbedit_policy[] = {
	{ TCA_SKBEDIT_PARMS, "TCA_SKBEDIT_PARMS", NETLINK_ATTR_BINARY, sizeof(struct tc_skbedit),
		sizeof(struct tc_skbedit) },
	{ TCA_SKBEDIT_PRIORITY, "TCA_SKBEDIT_PRIORITY", NETLINK_ATTR_U32 },
	{ TCA_SKBEDIT_QUEUE_MAPPING, "TCA_SKBEDIT_QUEUE_MAPPING", NETLINK_ATTR_U16 },
	{ TCA_SKBEDIT_MARK, "TCA_SKBEDIT_MARK", NETLINK_ATTR_U32 },
	{ TCA_SKBEDIT_MASK, "TCA_SKBEDIT_MASK", NETLINK_ATTR_U32 },
	{ TCA_SKBEDIT_FLAGS, "TCA_SKBEDIT_FLAGS", NETLINK_ATTR_U64 },
	/* there is no host stack that would look at the packet's type */
	{ TCA_SKBEDIT_PTYPE, "TCA_SKBEDIT_PTYPE", NETLINK_ATTR_REFUSED },
	{ TCA_SKBEDIT_QUEUE_MAPPING_MAX, "TCA_SKBEDIT_QUEUE_MAPPING_MAX", NETLINK_ATTR_REFUSED },
	/* what a dump says beside */
	{ TCA_SKBEDIT_TM, "TCA_SKBEDIT_TM", NETLINK_ATTR_IGNORED },
	{ TCA_SKBEDIT_PAD, "TCA_SKBEDIT_PAD", NETLINK_ATTR_IGNORED },
};

static int
skbedit_fields(struct netlink_request *req, const struct nlattr **tb, struct skbedit_params *like)
{
	uint64_t flags = 0;

	if (tb[TCA_SKBEDIT_PRIORITY] != NULL) {
		like->set |= SKBEDIT_F_PRIORITY;
		like->priority = mnl_attr_get_u32(tb[TCA_SKBEDIT_PRIORITY]);
	}
	if (tb[TCA_SKBEDIT_QUEUE_MAPPING] != NULL) {
		like->set |= SKBEDIT_F_QUEUE_MAPPING;
		like->queue = mnl_attr_get_u16(tb[TCA_SKBEDIT_QUEUE_MAPPING]);
	}
	if (tb[TCA_SKBEDIT_MARK] != NULL) {
		like->set |= SKBEDIT_F_MARK;
		like->mark = mnl_attr_get_u32(tb[TCA_SKBEDIT_MARK]);
	}
	if (tb[TCA_SKBEDIT_MASK] != NULL) {
		if (tb[TCA_SKBEDIT_MARK] == NULL)
			return netlink_fail(req, -EINVAL, tb[TCA_SKBEDIT_MASK],
				"TCA_SKBEDIT_MASK needs TCA_SKBEDIT_MARK");
		like->set |= SKBEDIT_F_MASK;
		like->mask = mnl_attr_get_u32(tb[TCA_SKBEDIT_MASK]);
	}
	if (tb[TCA_SKBEDIT_FLAGS] != NULL)
		flags = mnl_attr_get_u64(tb[TCA_SKBEDIT_FLAGS]);
	if ((flags & ~(uint64_t)SKBEDIT_F_INHERITDSFIELD) != 0)
		return netlink_fail(req, -EOPNOTSUPP, tb[TCA_SKBEDIT_FLAGS],
			"TCA_SKBEDIT_FLAGS: only inheritdsfield is supported");
	like->set |= (uint32_t)flags;
	return 0;
}

static int
skbedit_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_SKBEDIT_MAX + 1];
	struct skbedit_params like = { 0 };
	struct tc_skbedit parm;
	int ret;

	(void)old;
	ret = netlink_parse_nested(
		req, options, skbedit_policy, RTE_DIM(skbedit_policy), tb, TCA_SKBEDIT_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_SKBEDIT_PARMS] == NULL)
		return netlink_fail(req, -EINVAL, options, "skbedit needs TCA_SKBEDIT_PARMS");
	memcpy(&parm, mnl_attr_get_payload(tb[TCA_SKBEDIT_PARMS]), sizeof(parm));
	if ((ret = skbedit_fields(req, tb, &like)) != 0)
		return ret;
	*index = parm.index;
	/* nothing but an index: a reference to one that is there */
	if (like.set == 0 && *index != 0 && old == NULL &&
		action_find(req->conf->actions, &skbedit_action_ops, *index) != NULL)
		like.set = SKBEDIT_F_PRIORITY;
	if (like.set == 0)
		return netlink_fail(req, -EINVAL, options, "skbedit has nothing to set");
	*params = skbedit_params_create(parm.action, &like);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, options, "skbedit: %s", strerror(rte_errno));
	return 0;
}

static void
skbedit_put(
	struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct skbedit_params *p = (const struct skbedit_params *)params;
	struct tc_skbedit parm = { 0 };

	parm.index = action->index;
	parm.action = params->verdict;
	parm.refcnt = (int)action->refs;
	parm.bindcnt = (int)action->binds;
	netlink_put_data(put, TCA_SKBEDIT_PARMS, &parm, sizeof(parm));
	if ((p->set & SKBEDIT_F_PRIORITY) != 0)
		netlink_put_u32(put, TCA_SKBEDIT_PRIORITY, p->priority);
	if ((p->set & SKBEDIT_F_QUEUE_MAPPING) != 0)
		netlink_put_u16(put, TCA_SKBEDIT_QUEUE_MAPPING, p->queue);
	if ((p->set & SKBEDIT_F_MARK) != 0)
		netlink_put_u32(put, TCA_SKBEDIT_MARK, p->mark);
	if ((p->set & SKBEDIT_F_MASK) != 0)
		netlink_put_u32(put, TCA_SKBEDIT_MASK, p->mask);
	if ((p->set & SKBEDIT_F_INHERITDSFIELD) != 0)
		netlink_put_u64(put, TCA_SKBEDIT_FLAGS, SKBEDIT_F_INHERITDSFIELD);
}

static struct netlink_action_kind skbedit_kind = {
	.ops = &skbedit_action_ops,
	.parse = skbedit_parse,
	.put = skbedit_put,
	.tm_type = TCA_SKBEDIT_TM,
};

static void __attribute__((constructor)) skbedit_register(void)
{
	netlink_action_kind_register(&skbedit_kind);
}
