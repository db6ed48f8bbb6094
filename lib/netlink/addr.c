/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Addresses: RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR. */

#include <net/if.h>

#include <bsd/string.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <string.h>

#include "netlink/routing.h"

/* Flags of a request: what is always so, and what can be asked for. */
#define FLAGS_TAKEN (IFA_F_PERMANENT | IFA_F_NODAD | IFA_F_NOPREFIXROUTE | IFA_F_SECONDARY)

static const struct netlink_attr_policy addr_policy[] = {
	{ IFA_ADDRESS, "IFA_ADDRESS", NETLINK_ATTR_BINARY, 4, 16 },
	{ IFA_LOCAL, "IFA_LOCAL", NETLINK_ATTR_BINARY, 4, 16 },
	{ IFA_LABEL, "IFA_LABEL", NETLINK_ATTR_STRING, 1, IFNAMSIZ },
	{ IFA_BROADCAST, "IFA_BROADCAST", NETLINK_ATTR_BINARY, 4, 4 },
	{ IFA_ANYCAST, "IFA_ANYCAST", NETLINK_ATTR_REFUSED },
	{ IFA_CACHEINFO, "IFA_CACHEINFO", NETLINK_ATTR_BINARY, sizeof(struct ifa_cacheinfo), 0 },
	{ IFA_MULTICAST, "IFA_MULTICAST", NETLINK_ATTR_REFUSED },
	{ IFA_FLAGS, "IFA_FLAGS", NETLINK_ATTR_U32 },
	{ IFA_RT_PRIORITY, "IFA_RT_PRIORITY", NETLINK_ATTR_REFUSED },
	{ IFA_TARGET_NETNSID, "IFA_TARGET_NETNSID", NETLINK_ATTR_REFUSED },
	{ IFA_PROTO, "IFA_PROTO", NETLINK_ATTR_U8 },
};

static uint32_t
addr_flags(const struct route_address *a)
{
	return IFA_F_PERMANENT | (a->secondary ? IFA_F_SECONDARY : 0u) |
		(a->no_prefix_route ? IFA_F_NOPREFIXROUTE : 0u);
}

static struct ifaddrmsg
addr_header(const struct route_address *a)
{
	return (struct ifaddrmsg){
		.ifa_family = a->family,
		.ifa_prefixlen = a->len,
		.ifa_flags = (uint8_t)addr_flags(a),
		.ifa_scope = a->scope,
		.ifa_index = a->ifindex,
	};
}

static void
addr_put(struct netlink_put *put, const struct route_address *a)
{
	struct ifa_cacheinfo info = { .ifa_prefered = UINT32_MAX, .ifa_valid = UINT32_MAX };

	routing_put_addr(put, IFA_ADDRESS, a->family, a->addr);
	if (a->family == AF_INET)
		routing_put_addr(put, IFA_LOCAL, a->family, a->addr);
	if (a->has_broadcast)
		netlink_put_data(put, IFA_BROADCAST, a->broadcast, 4);
	if (a->label[0] != '\0')
		netlink_put_string(put, IFA_LABEL, a->label);
	if (a->protocol != 0)
		netlink_put_u8(put, IFA_PROTO, a->protocol);
	netlink_put_u32(put, IFA_FLAGS, addr_flags(a));
	netlink_put_data(put, IFA_CACHEINFO, &info, sizeof(info));
}

void
address_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	const struct route_address *a)
{
	unsigned int group = a->family == AF_INET6 ? RTNLGRP_IPV6_IFADDR : RTNLGRP_IPV4_IFADDR;
	struct ifaddrmsg ifa = addr_header(a);
	struct netlink_put put;

	if (!netlink_notify_wanted(server, req, NETLINK_ROUTE, group) ||
		!netlink_notify_begin(server, req, &put, type, 0, &ifa, sizeof(ifa)))
		return;
	addr_put(&put, a);
	netlink_notify_end(server, req, &put, NETLINK_ROUTE, group);
}

static int
addr_parse_local(struct netlink_request *req, const struct nlattr **tb, struct route_address *a)
{
	const struct nlattr *local = tb[IFA_LOCAL] != NULL ? tb[IFA_LOCAL] : tb[IFA_ADDRESS];
	uint8_t peer[ROUTE_ADDR_LEN];
	int ret;

	if (local == NULL)
		return netlink_fail(req, -EINVAL, NULL, "No address is given");
	if ((ret = routing_addr(req, local, "IFA_LOCAL", a->family, a->addr)) != 0)
		return ret;
	if (tb[IFA_ADDRESS] == NULL)
		return 0;
	if ((ret = routing_addr(req, tb[IFA_ADDRESS], "IFA_ADDRESS", a->family, peer)) != 0)
		return ret;
	if (memcmp(peer, a->addr, sizeof(peer)) != 0)
		return netlink_fail(req, -EOPNOTSUPP, tb[IFA_ADDRESS],
			"IFA_ADDRESS: peer addresses are not supported");
	return 0;
}

static int
addr_parse_flags(struct netlink_request *req, const struct ifaddrmsg *ifa, const struct nlattr **tb,
	struct route_address *a)
{
	uint32_t flags = tb[IFA_FLAGS] != NULL ? mnl_attr_get_u32(tb[IFA_FLAGS]) : ifa->ifa_flags;

	if ((flags & ~(uint32_t)FLAGS_TAKEN) != 0)
		return netlink_fail(req, -EOPNOTSUPP, tb[IFA_FLAGS],
			"Address flags 0x%x are not supported", flags & ~(uint32_t)FLAGS_TAKEN);
	a->no_prefix_route = (flags & IFA_F_NOPREFIXROUTE) != 0;
	return 0;
}

static int
addr_parse_lifetime(struct netlink_request *req, const struct nlattr *attr)
{
	struct ifa_cacheinfo info;

	if (attr == NULL)
		return 0;
	memcpy(&info, mnl_attr_get_payload(attr), sizeof(info));
	if (info.ifa_valid != UINT32_MAX || info.ifa_prefered != UINT32_MAX)
		return netlink_fail(req, -EOPNOTSUPP, attr,
			"IFA_CACHEINFO: lifetimes other than forever are not supported");
	return 0;
}

static int
addr_parse(struct netlink_request *req, struct route_address *a)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[IFA_MAX + 1];
	struct netlink_dev dev;
	int ret;

	memset(a, 0, sizeof(*a));
	a->family = ifa->ifa_family;
	a->len = ifa->ifa_prefixlen;
	a->scope = ifa->ifa_scope;
	if ((ret = routing_family(req, a->family)) != 0 ||
		(ret = netlink_parse(req, sizeof(*ifa), addr_policy, RTE_DIM(addr_policy), tb,
			 IFA_MAX + 1)) != 0 ||
		(ret = netlink_dev_by_index(req, ifa->ifa_index, &dev)) != 0 ||
		(ret = addr_parse_local(req, tb, a)) != 0 ||
		(ret = addr_parse_flags(req, ifa, tb, a)) != 0 ||
		(ret = addr_parse_lifetime(req, tb[IFA_CACHEINFO])) != 0)
		return ret;
	a->ifindex = dev.ifindex;
	if (a->len > routing_addr_len(a->family) * 8)
		return netlink_fail(req, -EINVAL, NULL, "Invalid prefix length");
	if (tb[IFA_PROTO] != NULL)
		a->protocol = mnl_attr_get_u8(tb[IFA_PROTO]);
	if (a->family == AF_INET)
		strlcpy(a->label,
			tb[IFA_LABEL] != NULL ? mnl_attr_get_str(tb[IFA_LABEL]) : dev.name,
			sizeof(a->label));
	if (tb[IFA_BROADCAST] != NULL && a->family == AF_INET) {
		memcpy(a->broadcast, mnl_attr_get_payload(tb[IFA_BROADCAST]), 4);
		a->has_broadcast = true;
	}
	/* Linux gives link-local addresses their scope whatever was asked. */
	if (a->family == AF_INET6)
		a->scope = a->addr[0] == 0xfe && (a->addr[1] & 0xc0) == 0x80 ? RT_SCOPE_LINK
									     : RT_SCOPE_UNIVERSE;
	return 0;
}

static int
addr_new(struct netlink_request *req)
{
	struct route_table *t;
	struct route_address a;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = addr_parse(req, &a)) != 0)
		return routing_end(req, ret);
	ret = route_address_add(t, &a);
	if (ret == -EEXIST && (req->nlh->nlmsg_flags & NLM_F_EXCL) == 0)
		ret = 0; /* replaced by itself: nothing of it can differ but its label */
	else if (ret == -EEXIST)
		ret = netlink_fail(req, ret, NULL, "Address already assigned");
	else if (ret == -EADDRNOTAVAIL)
		ret = netlink_fail(req, ret, NULL, "Not an address that a host can have");
	else if (ret == -EINVAL)
		ret = netlink_fail(req, ret, NULL, "Invalid prefix length");
	return routing_end(req, ret);
}

static int
addr_del(struct netlink_request *req)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(req->nlh);
	struct route_table *t;
	struct route_address a;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = addr_parse(req, &a)) == 0 &&
		(ret = route_address_del(t, a.ifindex, a.family, a.addr, ifa->ifa_prefixlen)) != 0)
		ret = netlink_fail(req, ret, NULL, "Address not found");
	return routing_end(req, ret);
}

static int
addr_dump(struct netlink_request *req)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(req->nlh);
	struct route_table *t = req->conf->route;
	const struct route_address *a;
	uint32_t only = req->strict ? ifa->ifa_index : 0;
	struct netlink_put put;

	if (t == NULL)
		return 0;
	if (req->cursor[0] == 0)
		req->generation = route_generation(t);
	req->interrupted |= req->generation != route_generation(t);
	for (; (a = route_address_nth(t, (unsigned int)req->cursor[0])) != NULL; req->cursor[0]++) {
		struct ifaddrmsg header = addr_header(a);

		if ((ifa->ifa_family != AF_UNSPEC && ifa->ifa_family != a->family) ||
			(only != 0 && only != a->ifindex))
			continue;
		if (!netlink_put_begin(
			    req, &put, RTM_NEWADDR, NLM_F_MULTI, &header, sizeof(header)))
			return 1;
		addr_put(&put, a);
		if (!netlink_put_end(req, &put))
			return 1;
	}
	return 0;
}

static int
addr_get(struct netlink_request *req)
{
	const struct route_address *a;
	struct route_address want;
	struct netlink_put put;
	struct route_table *t;
	struct ifaddrmsg header;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = addr_parse(req, &want)) != 0)
		return routing_end(req, ret);
	if ((a = route_address_find(t, want.ifindex, want.family, want.addr)) == NULL)
		return routing_end(
			req, netlink_fail(req, -EADDRNOTAVAIL, NULL, "Address not found"));
	header = addr_header(a);
	if (!netlink_put_begin(req, &put, RTM_NEWADDR, 0, &header, sizeof(header)))
		return routing_end(req, -EMSGSIZE);
	addr_put(&put, a);
	return routing_end(req, netlink_put_end(req, &put) ? 0 : -EMSGSIZE);
}

static struct netlink_handler addr_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWADDR,
	.header = sizeof(struct ifaddrmsg),
	.doit = addr_new,
};
NETLINK_REGISTER_HANDLER(addr_new_handler);

static struct netlink_handler addr_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELADDR,
	.header = sizeof(struct ifaddrmsg),
	.doit = addr_del,
};
NETLINK_REGISTER_HANDLER(addr_del_handler);

static struct netlink_handler addr_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETADDR,
	.header = sizeof(struct ifaddrmsg),
	.doit = addr_get,
	.dump = addr_dump,
};
NETLINK_REGISTER_HANDLER(addr_get_handler);
