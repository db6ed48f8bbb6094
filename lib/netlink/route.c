/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Routes: RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE, of tables main and local. */

#include <errno.h>
#include <linux/icmpv6.h>
#include <linux/lwtunnel.h>
#include <string.h>

#include "netlink/routing.h"

#define METRIC6_DEFAULT 1024 /* IP6_RT_PRIO_USER */
#define MTU_MAX (65535u - 15)
#define ADVMSS_MAX (65535u - 40)
#define MTU4_MIN 68 /* RFC 791 */
#define MTU6_MIN 1280 /* RFC 8200 5 */

static const struct netlink_attr_policy route_policy[] = {
	{ RTA_DST, "RTA_DST", NETLINK_ATTR_BINARY, 4, 16 },
	{ RTA_SRC, "RTA_SRC", NETLINK_ATTR_REFUSED },
	{ RTA_IIF, "RTA_IIF", NETLINK_ATTR_REFUSED },
	{ RTA_OIF, "RTA_OIF", NETLINK_ATTR_U32 },
	{ RTA_GATEWAY, "RTA_GATEWAY", NETLINK_ATTR_BINARY, 4, 16 },
	{ RTA_PRIORITY, "RTA_PRIORITY", NETLINK_ATTR_U32 },
	{ RTA_PREFSRC, "RTA_PREFSRC", NETLINK_ATTR_BINARY, 4, 16 },
	{ RTA_METRICS, "RTA_METRICS", NETLINK_ATTR_NESTED },
	{ RTA_MULTIPATH, "RTA_MULTIPATH", NETLINK_ATTR_BINARY, sizeof(struct rtnexthop), 0 },
	{ RTA_FLOW, "RTA_FLOW", NETLINK_ATTR_REFUSED },
	{ RTA_CACHEINFO, "RTA_CACHEINFO", NETLINK_ATTR_IGNORED }, /* what flush sends back */
	{ RTA_TABLE, "RTA_TABLE", NETLINK_ATTR_U32 },
	{ RTA_MARK, "RTA_MARK", NETLINK_ATTR_REFUSED },
	{ RTA_VIA, "RTA_VIA", NETLINK_ATTR_REFUSED },
	{ RTA_PREF, "RTA_PREF", NETLINK_ATTR_U8 },
	{ RTA_ENCAP_TYPE, "RTA_ENCAP_TYPE", NETLINK_ATTR_REFUSED },
	{ RTA_ENCAP, "RTA_ENCAP", NETLINK_ATTR_REFUSED },
	{ RTA_EXPIRES, "RTA_EXPIRES", NETLINK_ATTR_REFUSED },
	{ RTA_UID, "RTA_UID",
		NETLINK_ATTR_IGNORED }, /* a lookup's: rules look at it, we have none */
	{ RTA_TTL_PROPAGATE, "RTA_TTL_PROPAGATE", NETLINK_ATTR_REFUSED },
	{ RTA_IP_PROTO, "RTA_IP_PROTO", NETLINK_ATTR_REFUSED },
	{ RTA_SPORT, "RTA_SPORT", NETLINK_ATTR_REFUSED },
	{ RTA_DPORT, "RTA_DPORT", NETLINK_ATTR_REFUSED },
	{ RTA_NH_ID, "RTA_NH_ID", NETLINK_ATTR_REFUSED },
};

static const struct netlink_attr_policy path_policy[] = {
	{ RTA_GATEWAY, "RTA_GATEWAY", NETLINK_ATTR_BINARY, 4, 16 },
	{ RTA_FLOW, "RTA_FLOW", NETLINK_ATTR_REFUSED },
	{ RTA_VIA, "RTA_VIA", NETLINK_ATTR_REFUSED },
	{ RTA_ENCAP_TYPE, "RTA_ENCAP_TYPE", NETLINK_ATTR_REFUSED },
	{ RTA_ENCAP, "RTA_ENCAP", NETLINK_ATTR_REFUSED },
};

static const struct netlink_attr_policy metrics_policy[] = {
	{ RTAX_LOCK, "RTAX_LOCK", NETLINK_ATTR_REFUSED },
	{ RTAX_MTU, "RTAX_MTU", NETLINK_ATTR_U32 },
	{ RTAX_WINDOW, "RTAX_WINDOW", NETLINK_ATTR_REFUSED },
	{ RTAX_RTT, "RTAX_RTT", NETLINK_ATTR_REFUSED },
	{ RTAX_RTTVAR, "RTAX_RTTVAR", NETLINK_ATTR_REFUSED },
	{ RTAX_SSTHRESH, "RTAX_SSTHRESH", NETLINK_ATTR_REFUSED },
	{ RTAX_CWND, "RTAX_CWND", NETLINK_ATTR_REFUSED },
	{ RTAX_ADVMSS, "RTAX_ADVMSS", NETLINK_ATTR_U32 },
	{ RTAX_REORDERING, "RTAX_REORDERING", NETLINK_ATTR_REFUSED },
	{ RTAX_HOPLIMIT, "RTAX_HOPLIMIT", NETLINK_ATTR_REFUSED },
	{ RTAX_INITCWND, "RTAX_INITCWND", NETLINK_ATTR_REFUSED },
	{ RTAX_FEATURES, "RTAX_FEATURES", NETLINK_ATTR_REFUSED },
	{ RTAX_RTO_MIN, "RTAX_RTO_MIN", NETLINK_ATTR_REFUSED },
	{ RTAX_INITRWND, "RTAX_INITRWND", NETLINK_ATTR_REFUSED },
	{ RTAX_QUICKACK, "RTAX_QUICKACK", NETLINK_ATTR_REFUSED },
	{ RTAX_CC_ALGO, "RTAX_CC_ALGO", NETLINK_ATTR_REFUSED },
	{ RTAX_FASTOPEN_NO_COOKIE, "RTAX_FASTOPEN_NO_COOKIE", NETLINK_ATTR_REFUSED },
};

/* --- showing --- */

static void
put_path(struct netlink_put *put, const struct route_spec *spec, const struct route_path *path)
{
	if (path->has_gateway)
		routing_put_addr(put, RTA_GATEWAY, spec->family, path->gateway);
	if (path->ifindex != 0)
		netlink_put_u32(put, RTA_OIF, path->ifindex);
}

static void
put_multipath(struct netlink_put *put, const struct route_spec *spec)
{
	uint8_t room[ROUTE_PATHS_MAX * (sizeof(struct rtnexthop) + NLA_HDRLEN + 16)];
	size_t n = 0;

	for (unsigned int i = 0; i < spec->n_paths; i++) {
		const struct route_path *path = &spec->paths[i];
		struct rtnexthop nh = {
			.rtnh_len = sizeof(nh),
			.rtnh_flags = path->onlink ? RTNH_F_ONLINK : 0,
			.rtnh_hops = (uint8_t)(path->weight - 1),
			.rtnh_ifindex = (int)path->ifindex,
		};
		size_t len = routing_addr_len(spec->family);
		struct nlattr attr = { .nla_len = (uint16_t)(NLA_HDRLEN + len),
			.nla_type = RTA_GATEWAY };

		if (path->has_gateway) {
			memcpy(room + n + sizeof(nh), &attr, sizeof(attr));
			memcpy(room + n + sizeof(nh) + sizeof(attr), path->gateway, len);
			nh.rtnh_len = (uint16_t)(nh.rtnh_len + attr.nla_len);
		}
		memcpy(room + n, &nh, sizeof(nh));
		n += nh.rtnh_len;
	}
	netlink_put_data(put, RTA_MULTIPATH, room, n);
}

static void
put_metrics(struct netlink_put *put, const struct route_spec *spec)
{
	struct nlattr *nest = netlink_put_nest(put, RTA_METRICS);

	if (spec->mtu != 0)
		netlink_put_u32(put, RTAX_MTU, spec->mtu);
	if (spec->advmss != 0)
		netlink_put_u32(put, RTAX_ADVMSS, spec->advmss);
	netlink_put_nest_end(put, nest);
}

static struct rtmsg
route_header(const struct route_spec *spec)
{
	return (struct rtmsg){
		.rtm_family = spec->family,
		.rtm_dst_len = spec->len,
		.rtm_table = spec->local ? RT_TABLE_LOCAL : RT_TABLE_MAIN,
		.rtm_protocol = spec->protocol,
		.rtm_scope = spec->scope,
		.rtm_type = spec->type,
		.rtm_flags = spec->n_paths == 1 && spec->paths[0].onlink ? RTNH_F_ONLINK : 0,
	};
}

static void
route_put(struct netlink_put *put, const struct route_spec *spec)
{
	netlink_put_u32(put, RTA_TABLE, spec->local ? RT_TABLE_LOCAL : RT_TABLE_MAIN);
	if (spec->len > 0)
		routing_put_addr(put, RTA_DST, spec->family, spec->dst);
	if (spec->metric != 0)
		netlink_put_u32(put, RTA_PRIORITY, spec->metric);
	if (spec->mtu != 0 || spec->advmss != 0)
		put_metrics(put, spec);
	if (spec->has_prefsrc)
		routing_put_addr(put, RTA_PREFSRC, spec->family, spec->prefsrc);
	if (spec->n_paths == 1)
		put_path(put, spec, &spec->paths[0]);
	else if (spec->n_paths > 1)
		put_multipath(put, spec);
	if (spec->family == AF_INET6)
		netlink_put_u8(put, RTA_PREF, ICMPV6_ROUTER_PREF_MEDIUM);
}

void
route_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	uint16_t flags, const struct route *route)
{
	struct route_spec spec;
	struct netlink_put put;
	unsigned int group;
	struct rtmsg rtm;

	route_describe(route, &spec);
	group = spec.family == AF_INET6 ? RTNLGRP_IPV6_ROUTE : RTNLGRP_IPV4_ROUTE;
	if (!netlink_notify_wanted(server, req, NETLINK_ROUTE, group))
		return;
	rtm = route_header(&spec);
	if (!netlink_notify_begin(server, req, &put, type, flags, &rtm, sizeof(rtm)))
		return;
	route_put(&put, &spec);
	netlink_notify_end(server, req, &put, NETLINK_ROUTE, group);
}

/* --- parsing --- */

static int
parse_device(struct netlink_request *req, uint32_t theirs, uint32_t *ours)
{
	struct netlink_dev dev;
	int ret = netlink_dev_by_index(req, theirs, &dev);

	if (ret == 0)
		*ours = dev.ifindex;
	return ret;
}

static int
parse_gateway(struct netlink_request *req, const struct nlattr *attr, uint8_t family,
	struct route_path *path)
{
	if (attr == NULL)
		return 0;
	path->has_gateway = true;
	return routing_addr(req, attr, "RTA_GATEWAY", family, path->gateway);
}

static int
parse_nexthop(struct netlink_request *req, const struct nlattr *whole, const struct rtnexthop *nh,
	struct route_spec *spec)
{
	struct route_path *path = &spec->paths[spec->n_paths];
	const struct nlattr *tb[RTA_MAX + 1] = { NULL };
	/* The attributes of a next hop, dressed up as a nest. */
	uint8_t room[256];
	struct nlattr *nest = (struct nlattr *)(void *)room;
	size_t len = nh->rtnh_len - sizeof(*nh);
	int ret;

	if (len > sizeof(room) - sizeof(*nest))
		return netlink_fail(req, -EINVAL, whole, "RTA_MULTIPATH: a nexthop is too long");
	nest->nla_type = RTA_MULTIPATH;
	nest->nla_len = (uint16_t)(sizeof(*nest) + len);
	memcpy(nest + 1, nh + 1, len);
	if ((ret = netlink_parse_nested(
		     req, nest, path_policy, RTE_DIM(path_policy), tb, RTA_MAX + 1)) != 0 ||
		(ret = parse_gateway(req, tb[RTA_GATEWAY], spec->family, path)) != 0)
		return ret;
	if (nh->rtnh_ifindex != 0 &&
		(ret = parse_device(req, (uint32_t)nh->rtnh_ifindex, &path->ifindex)) != 0)
		return ret;
	if ((nh->rtnh_flags & ~(RTNH_F_ONLINK | RTNH_F_LINKDOWN | RTNH_F_DEAD)) != 0)
		return netlink_fail(req, -EOPNOTSUPP, whole,
			"RTA_MULTIPATH: nexthop flags 0x%x are not supported", nh->rtnh_flags);
	path->onlink = (nh->rtnh_flags & RTNH_F_ONLINK) != 0;
	path->weight = (uint16_t)(nh->rtnh_hops + 1);
	spec->n_paths++;
	return 0;
}

static int
parse_multipath(struct netlink_request *req, const struct nlattr *attr, struct route_spec *spec)
{
	const uint8_t *at = mnl_attr_get_payload(attr);
	size_t left = mnl_attr_get_payload_len(attr);
	int ret;

	while (left > 0) {
		struct rtnexthop nh;
		size_t step;

		if (left >= sizeof(nh))
			memcpy(&nh, at, sizeof(nh));
		if (left < sizeof(nh) || nh.rtnh_len < sizeof(nh) || nh.rtnh_len > left)
			return netlink_fail(req, -EINVAL, attr,
				"RTA_MULTIPATH: Invalid nexthop configuration - no length");
		if (spec->n_paths == ROUTE_PATHS_MAX)
			return netlink_fail(req, -EINVAL, attr,
				"RTA_MULTIPATH: more than %u nexthops", ROUTE_PATHS_MAX);
		ret = parse_nexthop(req, attr, (const struct rtnexthop *)(const void *)at, spec);
		if (ret != 0)
			return ret;
		step = NLMSG_ALIGN(nh.rtnh_len);
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return 0;
}

static int
parse_table(struct netlink_request *req, const struct rtmsg *rtm, const struct nlattr **tb,
	struct route_spec *spec)
{
	uint32_t table = tb[RTA_TABLE] != NULL ? mnl_attr_get_u32(tb[RTA_TABLE]) : rtm->rtm_table;

	if (table == RT_TABLE_LOCAL) {
		spec->local = true;
		return netlink_fail(req, -EOPNOTSUPP, tb[RTA_TABLE],
			"Routes of table local come with addresses");
	}
	if (table != RT_TABLE_UNSPEC && table != RT_TABLE_MAIN)
		return netlink_fail(req, -EOPNOTSUPP, tb[RTA_TABLE],
			"Routing table %u: only main is supported", table);
	return 0;
}

static int
parse_header(struct netlink_request *req, const struct rtmsg *rtm, struct route_spec *spec)
{
	int ret;

	if ((ret = routing_family(req, rtm->rtm_family)) != 0)
		return ret;
	if (rtm->rtm_dst_len > routing_addr_len(rtm->rtm_family) * 8)
		return netlink_fail(req, -EINVAL, NULL, "Invalid prefix length");
	if (rtm->rtm_src_len != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "Routes by source are not supported");
	if (rtm->rtm_tos != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "Routes by TOS are not supported");
	if ((rtm->rtm_flags & ~(unsigned int)(RTNH_F_ONLINK | RTNH_F_LINKDOWN | RTNH_F_DEAD)) != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "Route flags 0x%x are not supported",
			rtm->rtm_flags);
	spec->family = rtm->rtm_family;
	spec->len = rtm->rtm_dst_len;
	spec->type = rtm->rtm_type;
	spec->protocol = rtm->rtm_protocol;
	spec->scope = rtm->rtm_scope;
	return 0;
}

static int
parse_ways(struct netlink_request *req, const struct rtmsg *rtm, const struct nlattr **tb,
	struct route_spec *spec)
{
	int ret;

	if (tb[RTA_MULTIPATH] != NULL) {
		if (tb[RTA_GATEWAY] != NULL)
			return netlink_fail(req, -EINVAL, tb[RTA_GATEWAY],
				"Nexthop configuration: gateway and multipath together");
		return parse_multipath(req, tb[RTA_MULTIPATH], spec);
	}
	if (tb[RTA_GATEWAY] == NULL && tb[RTA_OIF] == NULL)
		return 0;
	spec->paths[0].weight = 1;
	spec->paths[0].onlink = (rtm->rtm_flags & RTNH_F_ONLINK) != 0;
	if (tb[RTA_OIF] != NULL &&
		(ret = parse_device(req, mnl_attr_get_u32(tb[RTA_OIF]), &spec->paths[0].ifindex)) !=
			0)
		return ret;
	spec->n_paths = 1;
	return parse_gateway(req, tb[RTA_GATEWAY], spec->family, &spec->paths[0]);
}

/* Values beyond what a packet can have are taken for the largest, as by Linux; 0 asks for nothing.
 */
static int
parse_metrics(struct netlink_request *req, const struct nlattr *attr, struct route_spec *spec)
{
	const uint32_t least = spec->family == AF_INET6 ? MTU6_MIN : MTU4_MIN;
	const struct nlattr *tb[RTAX_MAX + 1] = { NULL };
	int ret;

	if (attr == NULL)
		return 0;
	if ((ret = netlink_parse_nested(
		     req, attr, metrics_policy, RTE_DIM(metrics_policy), tb, RTAX_MAX + 1)) != 0)
		return ret;
	if (tb[RTAX_MTU] != NULL)
		spec->mtu = RTE_MIN(mnl_attr_get_u32(tb[RTAX_MTU]), MTU_MAX);
	if (tb[RTAX_ADVMSS] != NULL)
		spec->advmss = RTE_MIN(mnl_attr_get_u32(tb[RTAX_ADVMSS]), ADVMSS_MAX);
	if (spec->mtu != 0 && spec->mtu < least)
		return netlink_fail(req, -EINVAL, tb[RTAX_MTU],
			"RTAX_MTU: %u is less than %u, the least", spec->mtu, least);
	return 0;
}

static int
route_parse(struct netlink_request *req, struct route_spec *spec)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[RTA_MAX + 1];
	int ret;

	memset(spec, 0, sizeof(*spec));
	if ((ret = netlink_parse(req, sizeof(*rtm), route_policy, RTE_DIM(route_policy), tb,
		     RTA_MAX + 1)) != 0 ||
		(ret = parse_header(req, rtm, spec)) != 0 ||
		(ret = parse_table(req, rtm, tb, spec)) != 0 ||
		(ret = parse_metrics(req, tb[RTA_METRICS], spec)) != 0)
		return ret;
	if (tb[RTA_DST] != NULL &&
		(ret = routing_addr(req, tb[RTA_DST], "RTA_DST", spec->family, spec->dst)) != 0)
		return ret;
	if (tb[RTA_PRIORITY] != NULL)
		spec->metric = mnl_attr_get_u32(tb[RTA_PRIORITY]);
	if (tb[RTA_PREFSRC] != NULL) {
		spec->has_prefsrc = true;
		if ((ret = routing_addr(req, tb[RTA_PREFSRC], "RTA_PREFSRC", spec->family,
			     spec->prefsrc)) != 0)
			return ret;
	}
	if (tb[RTA_PREF] != NULL && mnl_attr_get_u8(tb[RTA_PREF]) != ICMPV6_ROUTER_PREF_MEDIUM)
		return netlink_fail(req, -EOPNOTSUPP, tb[RTA_PREF],
			"RTA_PREF: preferences of routers are not supported");
	return parse_ways(req, rtm, tb, spec);
}

static bool
type_settable(uint8_t type)
{
	return type == RTN_UNICAST || type == RTN_BLACKHOLE || type == RTN_UNREACHABLE ||
		type == RTN_PROHIBIT;
}

static int
route_new(struct netlink_request *req)
{
	struct route_spec spec;
	struct route_table *t;
	const char *why = NULL;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = route_parse(req, &spec)) != 0)
		return routing_end(req, ret);
	if (!type_settable(spec.type))
		return routing_end(req,
			netlink_fail(req, -EOPNOTSUPP, NULL,
				"Route type %u: only unicast, blackhole, unreachable and prohibit "
				"are supported",
				spec.type));
	/* IPv6 names a device with routes that lead nowhere. */
	if (spec.type != RTN_UNICAST)
		spec.n_paths = 0;
	if (spec.family == AF_INET6 && spec.metric == 0)
		spec.metric = METRIC6_DEFAULT;
	/* A restored route was good when it was made, whatever became of the way to its gateway. */
	ret = route_add(
		t, &spec, routing_flags(req) | (req->devmap != NULL ? ROUTE_AS_IT_WAS : 0u), &why);
	if (ret != 0 && why != NULL)
		ret = netlink_fail(req, ret, NULL, "%s", why);
	return routing_end(req, ret);
}

static int
route_delete(struct netlink_request *req)
{
	struct route_spec spec;
	struct route_table *t;
	int ret;

	if ((t = routing_begin(req)) == NULL)
		return -EOPNOTSUPP;
	if ((ret = route_parse(req, &spec)) == 0) {
		if (spec.type != RTN_UNICAST && spec.type != RTN_UNSPEC)
			spec.n_paths = 0;
		/* IPv6 knows no scopes. */
		if (spec.family == AF_INET6)
			spec.scope = RT_SCOPE_NOWHERE;
		ret = route_del(t, &spec);
	}
	return routing_end(req, ret);
}

/* --- ip route get --- */

/* Linux's answers to a destination that no packet reaches. */
static int
get_error(struct netlink_request *req, const struct route_spec *spec)
{
	switch (spec->type) {
	case RTN_BLACKHOLE:
		return netlink_fail(req, -EINVAL, NULL, "A blackhole route leads there");
	case RTN_UNREACHABLE:
		return -EHOSTUNREACH;
	case RTN_PROHIBIT:
		return -EACCES;
	}
	return 0;
}

static const struct netlink_attr_policy get_policy[] = {
	{ RTA_DST, "RTA_DST", NETLINK_ATTR_BINARY, 4, 16 },
	{ RTA_SRC, "RTA_SRC", NETLINK_ATTR_BINARY, 4, 16 },
	{ RTA_IIF, "RTA_IIF", NETLINK_ATTR_U32 },
	{ RTA_OIF, "RTA_OIF", NETLINK_ATTR_U32 },
	{ RTA_TABLE, "RTA_TABLE", NETLINK_ATTR_REFUSED },
	{ RTA_MARK, "RTA_MARK", NETLINK_ATTR_REFUSED },
	{ RTA_UID, "RTA_UID", NETLINK_ATTR_IGNORED }, /* only rules look at it */
	{ RTA_IP_PROTO, "RTA_IP_PROTO", NETLINK_ATTR_REFUSED },
	{ RTA_SPORT, "RTA_SPORT", NETLINK_ATTR_REFUSED },
	{ RTA_DPORT, "RTA_DPORT", NETLINK_ATTR_REFUSED },
};

/* What is asked: a packet to dst, perhaps from src, that came in by iif or is to leave by oif. */
struct get {
	uint8_t dst[ROUTE_ADDR_LEN], src[ROUTE_ADDR_LEN];
	bool has_src;
	uint32_t iif, oif;
};

/* A packet of ours has an address of ours; one that came in has a source, as in Linux. */
static int
get_parse_source(
	struct netlink_request *req, const struct nlattr **tb, uint8_t family, struct get *get)
{
	int ret;

	if (tb[RTA_SRC] != NULL) {
		if ((ret = routing_addr(req, tb[RTA_SRC], "RTA_SRC", family, get->src)) != 0)
			return ret;
		get->has_src = true;
	}
	if (tb[RTA_IIF] != NULL &&
		(ret = parse_device(req, mnl_attr_get_u32(tb[RTA_IIF]), &get->iif)) != 0)
		return ret;
	if (tb[RTA_OIF] != NULL &&
		(ret = parse_device(req, mnl_attr_get_u32(tb[RTA_OIF]), &get->oif)) != 0)
		return ret;
	if (get->iif == 0 && get->has_src &&
		route_address_find(req->conf->route, 0, family, get->src) == NULL)
		return netlink_fail(req, -EINVAL, tb[RTA_SRC], "RTA_SRC: not an address of ours");
	if (get->iif != 0 && family == AF_INET && !get->has_src)
		return netlink_fail(
			req, -EINVAL, tb[RTA_IIF], "RTA_IIF: a packet that comes in has a source");
	if (get->iif != 0 && get->has_src &&
		route_address_find(req->conf->route, 0, family, get->src) != NULL)
		return netlink_fail(
			req, -EINVAL, tb[RTA_SRC], "RTA_SRC: an address of ours does not come in");
	return 0;
}

static int
get_parse(struct netlink_request *req, struct get *get)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[RTA_MAX + 1];
	int ret;

	memset(get, 0, sizeof(*get));

	if ((ret = netlink_parse(
		     req, sizeof(*rtm), get_policy, RTE_DIM(get_policy), tb, RTA_MAX + 1)) != 0 ||
		(ret = routing_family(req, rtm->rtm_family)) != 0)
		return ret;
	if (tb[RTA_DST] == NULL)
		return netlink_fail(req, -EINVAL, NULL, "No destination is given");
	if (rtm->rtm_dst_len != 0 && rtm->rtm_dst_len != routing_addr_len(rtm->rtm_family) * 8)
		return netlink_fail(req, -EINVAL, NULL, "The destination must be one address");
	if ((ret = routing_addr(req, tb[RTA_DST], "RTA_DST", rtm->rtm_family, get->dst)) != 0)
		return ret;
	return get_parse_source(req, tb, rtm->rtm_family, get);
}

/* Turns the route into the one way that the packet takes. */
static void
get_narrow(struct route_table *t, const struct get *get, const struct route_path *path,
	struct route_spec *spec)
{
	const struct route_address *src;

	memcpy(spec->dst, get->dst, sizeof(spec->dst));
	spec->len = (uint8_t)(routing_addr_len(spec->family) * 8);
	if (spec->n_paths == 0)
		return;
	spec->n_paths = 1;
	spec->paths[0] = *path;
	if (get->iif != 0 || get->has_src)
		spec->has_prefsrc = false;
	if (spec->has_prefsrc || get->iif != 0 || get->has_src)
		return;
	src = route_address_source(
		t, path->ifindex, spec->family, path->has_gateway ? path->gateway : get->dst);
	if (src != NULL) {
		spec->has_prefsrc = true;
		memcpy(spec->prefsrc, src->addr, sizeof(spec->prefsrc));
	}
}

static int
route_lookup(struct netlink_request *req)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(req->nlh);
	struct route_table *t = req->conf->route;
	bool whole = (rtm->rtm_flags & RTM_F_FIB_MATCH) != 0;
	struct route_path path = { .ifindex = 0 };
	const struct route *r;
	struct route_spec spec;
	struct netlink_put put;
	struct rtmsg header;
	struct get get;
	int ret;

	if (t == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no routing table");
	if ((ret = get_parse(req, &get)) != 0)
		return ret;
	r = get.oif != 0 ? route_get_by_dev(t, rtm->rtm_family, get.dst, get.oif, &path)
			 : route_get(t, rtm->rtm_family, get.dst, 0, &path);
	if (r == NULL)
		return -ENETUNREACH;
	route_describe(r, &spec);
	if (!whole) {
		if ((ret = get_error(req, &spec)) != 0)
			return ret;
		get_narrow(t, &get, &path, &spec);
	}
	header = route_header(&spec);
	if (!whole) {
		header.rtm_flags |= RTM_F_CLONED;
		header.rtm_scope = RT_SCOPE_UNIVERSE;
		header.rtm_protocol = RTPROT_UNSPEC;
		if (get.has_src)
			header.rtm_src_len = (uint8_t)(routing_addr_len(spec.family) * 8);
	}
	if (!netlink_put_begin(req, &put, RTM_NEWROUTE, 0, &header, sizeof(header)))
		return -EMSGSIZE;
	route_put(&put, &spec);
	if (!whole && get.has_src)
		routing_put_addr(&put, RTA_SRC, spec.family, get.src);
	if (!whole && get.iif != 0)
		netlink_put_u32(&put, RTA_IIF, get.iif);
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

/* --- dumping --- */

/* What a strict dump asks for. cursor: 0 family, 1-5 place, 6 table and device. */
static int
dump_begin(struct netlink_request *req)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[RTA_MAX + 1];
	uint32_t table = rtm->rtm_table, oif = 0;
	int ret;

	req->generation = route_generation(req->conf->route);
	req->cursor[0] = rtm->rtm_family == AF_INET6 ? AF_INET6 : AF_INET;
	if (!req->strict)
		return 0;
	if ((ret = netlink_parse(
		     req, sizeof(*rtm), route_policy, RTE_DIM(route_policy), tb, RTA_MAX + 1)) != 0)
		return ret;
	if (tb[RTA_TABLE] != NULL)
		table = mnl_attr_get_u32(tb[RTA_TABLE]);
	if (tb[RTA_OIF] != NULL)
		oif = mnl_attr_get_u32(tb[RTA_OIF]);
	if (table != RT_TABLE_UNSPEC && table != RT_TABLE_MAIN && table != RT_TABLE_LOCAL)
		return netlink_fail(req, -ENOENT, NULL, "FIB table does not exist");
	req->cursor[6] = (uint64_t)table << 32 | oif;
	return 0;
}

static bool
dump_selects(const struct netlink_request *req, const struct route_spec *spec)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(req->nlh);
	uint32_t table = (uint32_t)(req->cursor[6] >> 32), oif = (uint32_t)req->cursor[6];

	if (!req->strict)
		return true;
	if ((table == RT_TABLE_MAIN && spec->local) || (table == RT_TABLE_LOCAL && !spec->local) ||
		(rtm->rtm_protocol != 0 && rtm->rtm_protocol != spec->protocol) ||
		(rtm->rtm_type != 0 && rtm->rtm_type != spec->type))
		return false;
	for (unsigned int i = 0; oif != 0 && i < spec->n_paths; i++) {
		if (spec->paths[i].ifindex == oif)
			return true;
	}
	return oif == 0;
}

/* One family. 1: no room left. */
static int
dump_family(struct netlink_request *req, uint8_t family)
{
	struct route_table *t = req->conf->route;
	struct route_spec spec;
	struct netlink_put put;
	const struct route *r;
	struct route_at at;
	struct rtmsg header;

	memcpy(at.key, &req->cursor[1], sizeof(at.key));
	while ((r = route_next(t, family, &at)) != NULL) {
		route_describe(r, &spec);
		if (dump_selects(req, &spec)) {
			header = route_header(&spec);
			if (!netlink_put_begin(
				    req, &put, RTM_NEWROUTE, NLM_F_MULTI, &header, sizeof(header)))
				return 1;
			route_put(&put, &spec);
			if (!netlink_put_end(req, &put))
				return 1;
		}
		memcpy(&req->cursor[1], at.key, sizeof(at.key));
	}
	return 0;
}

static int
route_dump(struct netlink_request *req)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(req->nlh);
	int ret;

	/* There is no route cache to show. */
	if (req->conf->route == NULL || (rtm->rtm_flags & RTM_F_CLONED) != 0 ||
		(rtm->rtm_family != AF_UNSPEC && rtm->rtm_family != AF_INET &&
			rtm->rtm_family != AF_INET6))
		return 0;
	if (req->cursor[0] == 0 && (ret = dump_begin(req)) != 0)
		return ret;
	req->interrupted |= req->generation != route_generation(req->conf->route);
	if ((ret = dump_family(req, (uint8_t)req->cursor[0])) != 0)
		return ret;
	if (rtm->rtm_family != AF_UNSPEC || req->cursor[0] == AF_INET6)
		return 0;
	req->cursor[0] = AF_INET6;
	memset(&req->cursor[1], 0, 5 * sizeof(req->cursor[0]));
	return dump_family(req, AF_INET6);
}

static struct netlink_handler route_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWROUTE,
	.header = sizeof(struct rtmsg),
	.doit = route_new,
};
NETLINK_REGISTER_HANDLER(route_new_handler);

static struct netlink_handler route_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELROUTE,
	.header = sizeof(struct rtmsg),
	.doit = route_delete,
};
NETLINK_REGISTER_HANDLER(route_del_handler);

static struct netlink_handler route_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETROUTE,
	.header = sizeof(struct rtmsg),
	.doit = route_lookup,
	.dump = route_dump,
};
NETLINK_REGISTER_HANDLER(route_get_handler);
