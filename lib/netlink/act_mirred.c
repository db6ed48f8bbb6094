/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* mirred: packets, or copies of them, out of or into another port. */

#include <errno.h>
#include <linux/tc_act/tc_mirred.h>
#include <rte_errno.h>
#include <string.h>

#include "classifier/mirred.h"
#include "netlink/tc.h"

static const struct netlink_attr_policy mirred_policy[] = {
	{ TCA_MIRRED_PARMS, "TCA_MIRRED_PARMS", NETLINK_ATTR_BINARY, sizeof(struct tc_mirred),
		sizeof(struct tc_mirred) },
	/* what a dump says beside */
	{ TCA_MIRRED_TM, "TCA_MIRRED_TM", NETLINK_ATTR_IGNORED },
	{ TCA_MIRRED_PAD, "TCA_MIRRED_PAD", NETLINK_ATTR_IGNORED },
};

/* ifindex 0 in a replace leaves the port as it was. */
static int
mirred_port(struct netlink_request *req, const struct nlattr *attr, const struct action_params *old,
	uint32_t *ifindex)
{
	struct netlink_dev dev;
	int ret;

	if (*ifindex == 0 && old != NULL)
		*ifindex = ((const struct mirred_params *)old)->ifindex;
	if (*ifindex == 0)
		return netlink_fail(req, -EINVAL, attr, "Specified device does not exist");
	if ((ret = netlink_dev_by_index(req, *ifindex, &dev)) == 0)
		*ifindex = dev.ifindex;
	else if (req->devmap != NULL && req->devmap->own)
		ret = 0; /* it is put back as it was: its port is gone */
	return ret;
}

static int
mirred_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_MIRRED_MAX + 1];
	struct tc_mirred parm;
	int ret;

	ret = netlink_parse_nested(
		req, options, mirred_policy, RTE_DIM(mirred_policy), tb, TCA_MIRRED_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_MIRRED_PARMS] == NULL)
		return netlink_fail(req, -EINVAL, options, "Missing required mirred parameters");
	memcpy(&parm, mnl_attr_get_payload(tb[TCA_MIRRED_PARMS]), sizeof(parm));
	if (parm.eaction < TCA_EGRESS_REDIR || parm.eaction > TCA_INGRESS_MIRROR)
		return netlink_fail(req, -EINVAL, tb[TCA_MIRRED_PARMS], "Unknown mirred option");
	*index = parm.index;
	/* the first look does not know what is there; an index without a port may be a reference */
	if (old != NULL || parm.ifindex != 0 || *index == 0 ||
		action_find(req->conf->actions, &mirred_action_ops, *index) == NULL) {
		ret = mirred_port(req, tb[TCA_MIRRED_PARMS], old, &parm.ifindex);
		if (ret != 0)
			return ret;
	}
	*params = mirred_params_create(
		parm.action, parm.eaction, parm.ifindex != 0 ? parm.ifindex : 1);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, options, "mirred: %s", strerror(rte_errno));
	return 0;
}

static void
mirred_put(struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct mirred_params *mirred = (const struct mirred_params *)params;
	struct tc_mirred parm = { 0 };

	parm.index = action->index;
	parm.action = params->verdict;
	parm.refcnt = (int)action->refs;
	parm.bindcnt = (int)action->binds;
	parm.eaction = mirred->eaction;
	parm.ifindex = mirred->ifindex;
	netlink_put_data(put, TCA_MIRRED_PARMS, &parm, sizeof(parm));
}

static struct netlink_action_kind mirred_kind = {
	.ops = &mirred_action_ops,
	.parse = mirred_parse,
	.put = mirred_put,
	.tm_type = TCA_MIRRED_TM,
};

static void __attribute__((constructor)) mirred_register(void)
{
	netlink_action_kind_register(&mirred_kind);
}
