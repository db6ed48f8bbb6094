/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* vlan: pops, pushes and changes tags. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/tc_act/tc_vlan.h>
#include <rte_errno.h>
#include <string.h>

#include "classifier/vlan.h"
#include "netlink/tc.h"

#define VID_MAX 4094
#define PRIORITY_MAX 7

static const struct netlink_attr_policy vlan_policy[] = {
	{ TCA_VLAN_PARMS, "TCA_VLAN_PARMS", NETLINK_ATTR_BINARY, sizeof(struct tc_vlan),
		sizeof(struct tc_vlan) },
	{ TCA_VLAN_PUSH_VLAN_ID, "TCA_VLAN_PUSH_VLAN_ID", NETLINK_ATTR_U16 },
	{ TCA_VLAN_PUSH_VLAN_PROTOCOL, "TCA_VLAN_PUSH_VLAN_PROTOCOL", NETLINK_ATTR_U16 },
	{ TCA_VLAN_PUSH_VLAN_PRIORITY, "TCA_VLAN_PUSH_VLAN_PRIORITY", NETLINK_ATTR_U8 },
	{ TCA_VLAN_PUSH_ETH_DST, "TCA_VLAN_PUSH_ETH_DST", NETLINK_ATTR_REFUSED },
	{ TCA_VLAN_PUSH_ETH_SRC, "TCA_VLAN_PUSH_ETH_SRC", NETLINK_ATTR_REFUSED },
	/* what a dump says beside */
	{ TCA_VLAN_TM, "TCA_VLAN_TM", NETLINK_ATTR_IGNORED },
	{ TCA_VLAN_PAD, "TCA_VLAN_PAD", NETLINK_ATTR_IGNORED },
};

static int
vlan_tag(struct netlink_request *req, const struct nlattr *options, const struct nlattr **tb,
	struct vlan_params *like)
{
	const struct nlattr *protocol = tb[TCA_VLAN_PUSH_VLAN_PROTOCOL];
	const struct nlattr *priority = tb[TCA_VLAN_PUSH_VLAN_PRIORITY];

	if (tb[TCA_VLAN_PUSH_VLAN_ID] == NULL)
		return netlink_fail(req, -EINVAL, options, "vlan needs TCA_VLAN_PUSH_VLAN_ID");
	like->vid = mnl_attr_get_u16(tb[TCA_VLAN_PUSH_VLAN_ID]);
	if (like->vid > VID_MAX)
		return netlink_fail(req, -ERANGE, tb[TCA_VLAN_PUSH_VLAN_ID],
			"A VLAN id is at most %d", VID_MAX);
	like->protocol = protocol != NULL ? mnl_attr_get_u16(protocol) : htons(ETH_P_8021Q);
	if (like->protocol != htons(ETH_P_8021Q) && like->protocol != htons(ETH_P_8021AD))
		return netlink_fail(
			req, -EPROTONOSUPPORT, protocol, "A tag is of 802.1Q or 802.1ad");
	like->priority_given = priority != NULL || like->v_action == TCA_VLAN_ACT_PUSH;
	like->priority = priority != NULL ? mnl_attr_get_u8(priority) : 0;
	if (like->priority > PRIORITY_MAX)
		return netlink_fail(
			req, -EINVAL, priority, "A VLAN priority is at most %d", PRIORITY_MAX);
	return 0;
}

static int
vlan_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_VLAN_MAX + 1];
	struct vlan_params like = { .protocol = htons(ETH_P_8021Q) };
	struct tc_vlan parm;
	int ret;

	(void)old;
	ret = netlink_parse_nested(
		req, options, vlan_policy, RTE_DIM(vlan_policy), tb, TCA_VLAN_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_VLAN_PARMS] == NULL)
		return netlink_fail(req, -EINVAL, options, "vlan needs TCA_VLAN_PARMS");
	memcpy(&parm, mnl_attr_get_payload(tb[TCA_VLAN_PARMS]), sizeof(parm));
	*index = parm.index;
	like.v_action = parm.v_action;
	switch (parm.v_action) {
	case TCA_VLAN_ACT_POP:
		break;
	case TCA_VLAN_ACT_PUSH:
	case TCA_VLAN_ACT_MODIFY:
		if ((ret = vlan_tag(req, options, tb, &like)) != 0)
			return ret;
		break;
	case TCA_VLAN_ACT_POP_ETH:
	case TCA_VLAN_ACT_PUSH_ETH:
		return netlink_fail(req, -EOPNOTSUPP, tb[TCA_VLAN_PARMS],
			"vlan pop_eth and push_eth are not supported");
	default:
		return netlink_fail(req, -EINVAL, tb[TCA_VLAN_PARMS], "vlan has no operation %d",
			parm.v_action);
	}
	*params = vlan_params_create(parm.action, &like);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, options, "vlan: %s", strerror(rte_errno));
	return 0;
}

static void
vlan_put(struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct vlan_params *p = (const struct vlan_params *)params;
	struct tc_vlan parm = { 0 };

	parm.index = action->index;
	parm.action = params->verdict;
	parm.refcnt = (int)action->refs;
	parm.bindcnt = (int)action->binds;
	parm.v_action = p->v_action;
	netlink_put_data(put, TCA_VLAN_PARMS, &parm, sizeof(parm));
	if (p->v_action == TCA_VLAN_ACT_POP)
		return;
	netlink_put_u16(put, TCA_VLAN_PUSH_VLAN_ID, p->vid);
	netlink_put_u16(put, TCA_VLAN_PUSH_VLAN_PROTOCOL, p->protocol);
	if (p->priority_given)
		netlink_put_u8(put, TCA_VLAN_PUSH_VLAN_PRIORITY, p->priority);
}

static struct netlink_action_kind vlan_kind = {
	.ops = &vlan_action_ops,
	.parse = vlan_parse,
	.put = vlan_put,
	.tm_type = TCA_VLAN_TM,
};

static void __attribute__((constructor)) vlan_register(void)
{
	netlink_action_kind_register(&vlan_kind);
}
