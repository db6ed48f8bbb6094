/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Neighbours: RTM_NEWNEIGH, RTM_DELNEIGH, RTM_GETNEIGH. */

#include <errno.h>
#include <linux/neighbour.h>
#include <string.h>

#include "netlink/routing.h"

/* What can be set by hand. */
#define STATES \
	(NUD_INCOMPLETE | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_FAILED | \
		NUD_NOARP | NUD_PERMANENT)
/* What neighbours may be marked with here; NTF_USE and the like ask for more. */
#define FLAGS (NTF_ROUTER | NTF_EXT_LEARNED)

static const struct netlink_attr_policy neigh_policy[] = {
	{ NDA_DST, "NDA_DST", NETLINK_ATTR_BINARY, 4, 16 },
	{ NDA_LLADDR, "NDA_LLADDR", NETLINK_ATTR_BINARY, 6, 6 },
	{ NDA_CACHEINFO, "NDA_CACHEINFO", NETLINK_ATTR_IGNORED }, /* what flush sends back */
	{ NDA_PROBES, "NDA_PROBES",
		NETLINK_ATTR_IGNORED }, /* likewise; Linux takes it for nothing */
	{ NDA_VLAN, "NDA_VLAN", NETLINK_ATTR_REFUSED },
	{ NDA_PORT, "NDA_PORT", NETLINK_ATTR_REFUSED },
	{ NDA_VNI, "NDA_VNI", NETLINK_ATTR_REFUSED },
	{ NDA_IFINDEX, "NDA_IFINDEX", NETLINK_ATTR_U32 },
	{ NDA_MASTER, "NDA_MASTER", NETLINK_ATTR_U32 },
	{ NDA_LINK_NETNSID, "NDA_LINK_NETNSID", NETLINK_ATTR_REFUSED },
	{ NDA_SRC_VNI, "NDA_SRC_VNI", NETLINK_ATTR_REFUSED },
	{ NDA_PROTOCOL, "NDA_PROTOCOL", NETLINK_ATTR_U8 },
	{ NDA_NH_ID, "NDA_NH_ID", NETLINK_ATTR_REFUSED },
	{ NDA_FDB_EXT_ATTRS, "NDA_FDB_EXT_ATTRS", NETLINK_ATTR_REFUSED },
	{ NDA_FLAGS_EXT, "NDA_FLAGS_EXT", NETLINK_ATTR_REFUSED },
};

static struct ndmsg
neigh_header(const struct route_neigh_info *info)
{
	return (struct ndmsg){
		.ndm_family = info->family,
		.ndm_ifindex = (int)info->ifindex,
		.ndm_state = info->state,
		.ndm_flags = info->flags,
		.ndm_type = RTN_UNICAST,
	};
}

static void
neigh_put(struct netlink_put *put, const struct route_neigh_info *info)
{
	/* Clock ticks are hundredths of a second. */
	struct nda_cacheinfo cache = {
		.ndm_confirmed = (uint32_t)(info->confirmed / 10),
		.ndm_used = (uint32_t)(info->used / 10),
		.ndm_updated = (uint32_t)(info->updated / 10),
		.ndm_refcnt = info->refs,
	};

	routing_put_addr(put, NDA_DST, info->family, info->addr);
	if (info->has_lladdr)
		netlink_put_data(put, NDA_LLADDR, info->lladdr, sizeof(info->lladdr));
	if (info->protocol != 0)
		netlink_put_u8(put, NDA_PROTOCOL, info->protocol);
	netlink_put_u32(put, NDA_PROBES, info->probes);
	netlink_put_data(put, NDA_CACHEINFO, &cache, sizeof(cache));
}

void
neigh_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	const struct route_neigh *neigh)
{
	struct route_neigh_info info;
	struct netlink_put put;
	struct ndmsg ndm;

	if (!netlink_notify_wanted(server, req, NETLINK_ROUTE, RTNLGRP_NEIGH))
		return;
	route_neigh_describe(netlink_server_conf(server)->route, neigh, &info);
	ndm = neigh_header(&info);
	if (!netlink_notify_begin(server, req, &put, type, 0, &ndm, sizeof(ndm)))
		return;
	neigh_put(&put, &info);
	netlink_notify_end(server, req, &put, NETLINK_ROUTE, RTNLGRP_NEIGH);
}

static int
neigh_parse(struct netlink_request *req, struct route_neigh_info *info)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[NDA_MAX + 1];
	struct netlink_dev dev;
	int ret;

	memset(info, 0, sizeof(*info));
	if ((ret = netlink_parse(req, sizeof(*ndm), neigh_policy, RTE_DIM(neigh_policy), tb,
		     NDA_MAX + 1)) != 0 ||
		(ret = routing_family(req, ndm->ndm_family)) != 0)
		return ret;
	if ((ndm->ndm_flags & NTF_PROXY) != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "Proxy entries are not supported");
	if (tb[NDA_DST] == NULL)
		return netlink_fail(req, -EINVAL, NULL, "Network address not specified");
	if (ndm->ndm_ifindex <= 0)
		return netlink_fail(req, -EINVAL, NULL, "Invalid device");
	if ((ret = netlink_dev_by_index(req, (uint32_t)ndm->ndm_ifindex, &dev)) != 0 ||
		(ret = routing_addr(req, tb[NDA_DST], "NDA_DST", ndm->ndm_family, info->addr)) != 0)
		return ret;
	info->ifindex = dev.ifindex;
	info->family = ndm->ndm_family;
	info->state = ndm->ndm_state;
	info->flags = ndm->ndm_flags;
	if (tb[NDA_PROTOCOL] != NULL)
		info->protocol = mnl_attr_get_u8(tb[NDA_PROTOCOL]);
	if (tb[NDA_LLADDR] != NULL) {
		memcpy(info->lladdr, mnl_attr_get_payload(tb[NDA_LLADDR]), sizeof(info->lladdr));
		info->has_lladdr = true;
	}
	return 0;
}

static int
neigh_check(struct netlink_request *req, const struct route_neigh_info *info)
{
	if ((info->state & ~STATES) != 0 || (info->state & (info->state - 1)) != 0 ||
		info->state == 0)
		return netlink_fail(req, -EINVAL, NULL, "Invalid neighbour state");
	if ((info->flags & ~FLAGS) != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL,
			"Neighbour flags 0x%x are not supported", info->flags & ~FLAGS);
	return 0;
}

static int
neigh_new(struct netlink_request *req)
{
	struct route_neigh_info info;
	struct route_table *t;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = neigh_parse(req, &info)) != 0 || (ret = neigh_check(req, &info)) != 0)
		return routing_end(req, ret);
	ret = route_neigh_set(t, &info, routing_flags(req));
	if (ret == -EINVAL)
		ret = netlink_fail(req, ret, NULL, "Link address is missing");
	return routing_end(req, ret);
}

static int
neigh_del(struct netlink_request *req)
{
	struct route_neigh_info info;
	struct route_table *t;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = neigh_parse(req, &info)) == 0)
		ret = route_neigh_del(t, info.ifindex, info.family, info.addr);
	return routing_end(req, ret);
}

static int
neigh_get(struct netlink_request *req)
{
	struct route_neigh_info info;
	const struct route_neigh *n;
	struct netlink_put put;
	struct route_table *t;
	struct ndmsg ndm;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = neigh_parse(req, &info)) != 0)
		return routing_end(req, ret);
	if ((n = route_neigh_find(t, info.ifindex, info.family, info.addr)) == NULL)
		return routing_end(
			req, netlink_fail(req, -ENOENT, NULL, "Neighbour entry not found"));
	route_neigh_describe(t, n, &info);
	ndm = neigh_header(&info);
	if (!netlink_put_begin(req, &put, RTM_NEWNEIGH, 0, &ndm, sizeof(ndm)))
		return routing_end(req, -EMSGSIZE);
	neigh_put(&put, &info);
	return routing_end(req, netlink_put_end(req, &put) ? 0 : -EMSGSIZE);
}

static bool
neigh_selected(const struct netlink_request *req, const struct route_neigh_info *info)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(req->nlh);

	return (ndm->ndm_family == AF_UNSPEC || ndm->ndm_family == info->family) &&
		(req->cursor[1] == 0 || req->cursor[1] == info->ifindex);
}

static int
neigh_dump_begin(struct netlink_request *req)
{
	const struct nlattr *tb[NDA_MAX + 1];
	int ret;

	req->generation = route_generation(req->conf->route);
	ret = netlink_parse(
		req, sizeof(struct ndmsg), neigh_policy, RTE_DIM(neigh_policy), tb, NDA_MAX + 1);
	if (ret != 0)
		return req->strict ? ret : 0;
	if (tb[NDA_IFINDEX] != NULL)
		req->cursor[1] = mnl_attr_get_u32(tb[NDA_IFINDEX]);
	if (tb[NDA_MASTER] != NULL && mnl_attr_get_u32(tb[NDA_MASTER]) != 0)
		return 1; /* no device has one */
	return 0;
}

static int
neigh_dump(struct netlink_request *req)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(req->nlh);
	struct route_table *t = req->conf->route;
	const struct route_neigh *n;
	uint64_t at = req->cursor[0];
	int ret;

	if (t == NULL || (ndm->ndm_flags & NTF_PROXY) != 0)
		return 0;
	if (at == 0 && (ret = neigh_dump_begin(req)) != 0)
		return ret < 0 ? ret : 0;
	req->interrupted |= req->generation != route_generation(t);
	while ((n = route_neigh_next(t, &at)) != NULL) {
		struct route_neigh_info info;
		struct netlink_put put;
		struct ndmsg header;

		route_neigh_describe(t, n, &info);
		header = neigh_header(&info);
		if (neigh_selected(req, &info)) {
			if (!netlink_put_begin(
				    req, &put, RTM_NEWNEIGH, NLM_F_MULTI, &header, sizeof(header)))
				return 1;
			neigh_put(&put, &info);
			if (!netlink_put_end(req, &put))
				return 1;
		}
		req->cursor[0] = at;
	}
	return 0;
}

static struct netlink_handler neigh_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWNEIGH,
	.header = sizeof(struct ndmsg),
	.doit = neigh_new,
};
NETLINK_REGISTER_HANDLER(neigh_new_handler);

static struct netlink_handler neigh_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELNEIGH,
	.header = sizeof(struct ndmsg),
	.doit = neigh_del,
};
NETLINK_REGISTER_HANDLER(neigh_del_handler);

static struct netlink_handler neigh_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETNEIGH,
	.header = sizeof(struct ndmsg),
	.doit = neigh_get,
	.dump = neigh_dump,
};
NETLINK_REGISTER_HANDLER(neigh_get_handler);
