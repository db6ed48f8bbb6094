/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* csum: which checksums to recompute, and a verdict. */

#include <errno.h>
#include <rte_errno.h>
#include <string.h>

#include "csum_action/csum_action.h"
#include "netlink/tc.h"

static const struct netlink_attr_policy csum_policy[] = {
	{ TCA_CSUM_PARMS, "TCA_CSUM_PARMS", NETLINK_ATTR_BINARY, sizeof(struct tc_csum),
		sizeof(struct tc_csum) },
	/* what a dump says beside */
	{ TCA_CSUM_TM, "TCA_CSUM_TM", NETLINK_ATTR_IGNORED },
	{ TCA_CSUM_PAD, "TCA_CSUM_PAD", NETLINK_ATTR_IGNORED },
};

static int
csum_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_CSUM_MAX + 1];
	struct tc_csum parm;
	int ret;

	(void)old;
	ret = netlink_parse_nested(
		req, options, csum_policy, RTE_DIM(csum_policy), tb, TCA_CSUM_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_CSUM_PARMS] == NULL)
		return netlink_fail(req, -EINVAL, options, "csum needs TCA_CSUM_PARMS");
	memcpy(&parm, mnl_attr_get_payload(tb[TCA_CSUM_PARMS]), sizeof(parm));
	if ((parm.update_flags & ~(uint32_t)CSUM_ACTION_FLAGS) != 0)
		return netlink_fail(req, -EOPNOTSUPP, tb[TCA_CSUM_PARMS],
			"TCA_CSUM_PARMS: no checksum has update flag 0x%x",
			parm.update_flags & ~(uint32_t)CSUM_ACTION_FLAGS);
	*index = parm.index;
	*params = csum_action_params_create(parm.update_flags, parm.action);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, options, "csum: %s", strerror(rte_errno));
	csum_action_params_attach(*params, req->conf->csum);
	return 0;
}

static void
csum_put(struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct csum_action_params *csum = (const struct csum_action_params *)params;
	struct tc_csum parm = { 0 };

	parm.index = action->index;
	parm.action = params->verdict;
	parm.refcnt = (int)action->refs;
	parm.bindcnt = (int)action->binds;
	parm.update_flags = csum->update_flags;
	netlink_put_data(put, TCA_CSUM_PARMS, &parm, sizeof(parm));
}

static struct netlink_action_kind csum_kind = {
	.ops = &csum_action_ops,
	.parse = csum_parse,
	.put = csum_put,
	.tm_type = TCA_CSUM_TM,
};

static void __attribute__((constructor)) csum_register(void)
{
	netlink_action_kind_register(&csum_kind);
}
