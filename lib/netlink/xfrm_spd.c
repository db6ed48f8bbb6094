/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The policies as a whole: XFRM_MSG_GETSPDINFO, NEWSPDINFO, GETDEFAULT, SETDEFAULT. The thresholds
 * of NEWSPDINFO tune a hash table of the kernel's; they are kept and shown, and there is no such
 * table here.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/xfrm.h"

struct thresholds {
	struct xfrmu_spdhthresh v4, v6;
};

static int
spd_create(struct netlink_server *server, void **state)
{
	struct thresholds *t = malloc(sizeof(*t));

	(void)server;
	if (t == NULL)
		return -ENOMEM;
	*t = (struct thresholds){ { 32, 32 }, { 128, 128 } }; /* the kernel's */
	*state = t;
	return 0;
}

static void
spd_destroy(struct netlink_server *server, void *state)
{
	(void)server;
	free(state);
}

static struct netlink_family spd_family = {
	.create = spd_create,
	.destroy = spd_destroy,
};
NETLINK_REGISTER_FAMILY(spd_family);

static int
spd_get_info(struct netlink_request *req)
{
	const struct ipsec_cache *ic = req->conf->ipsec;
	const struct thresholds *t = netlink_family_state(req->server, &spd_family);
	struct xfrmu_spdhinfo hash = { 0 };
	struct xfrmu_spdinfo info = { 0 };
	struct netlink_put put;
	uint32_t flags;

	if (ic == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
	xfrm_header(req, &flags, sizeof(flags));
	info.incnt = ipsec_cache_policy_count(ic, XFRM_POLICY_IN);
	info.outcnt = ipsec_cache_policy_count(ic, XFRM_POLICY_OUT);
	info.fwdcnt = ipsec_cache_policy_count(ic, XFRM_POLICY_FWD);
	hash.spdhcnt = hash.spdhmcnt = ipsec_cache_policy_buckets(ic);
	if (!netlink_put_begin(req, &put, XFRM_MSG_NEWSPDINFO, 0, &flags, sizeof(flags)))
		return -EMSGSIZE;
	netlink_put_data(&put, XFRMA_SPD_INFO, &info, sizeof(info));
	netlink_put_data(&put, XFRMA_SPD_HINFO, &hash, sizeof(hash));
	netlink_put_data(&put, XFRMA_SPD_IPV4_HTHRESH, &t->v4, sizeof(t->v4));
	netlink_put_data(&put, XFRMA_SPD_IPV6_HTHRESH, &t->v6, sizeof(t->v6));
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static const struct netlink_attr_policy spd_policy[] = {
	{ XFRMA_SPD_IPV4_HTHRESH, "XFRMA_SPD_IPV4_HTHRESH", NETLINK_ATTR_BINARY,
		sizeof(struct xfrmu_spdhthresh), 0 },
	{ XFRMA_SPD_IPV6_HTHRESH, "XFRMA_SPD_IPV6_HTHRESH", NETLINK_ATTR_BINARY,
		sizeof(struct xfrmu_spdhthresh), 0 },
};

static int
parse_thresholds(struct netlink_request *req, const struct nlattr *attr, unsigned int max,
	struct xfrmu_spdhthresh *to)
{
	struct xfrmu_spdhthresh value;

	if (attr == NULL)
		return 0;
	xfrm_payload(attr, &value, sizeof(value));
	if (value.lbits > max || value.rbits > max)
		return netlink_fail(req, -EINVAL, attr,
			"A prefix threshold is longer than an address of %u bits", max);
	*to = value;
	return 0;
}

static int
spd_set_info(struct netlink_request *req)
{
	struct thresholds *t = netlink_family_state(req->server, &spd_family), wanted = *t;
	const struct nlattr *tb[XFRMA_SPD_MAX + 1];
	int ret;

	if (req->conf->ipsec == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
	if ((ret = netlink_parse(req, sizeof(uint32_t), spd_policy, RTE_DIM(spd_policy), tb,
		     XFRMA_SPD_MAX + 1)) != 0 ||
		(ret = parse_thresholds(req, tb[XFRMA_SPD_IPV4_HTHRESH], 32, &wanted.v4)) != 0 ||
		(ret = parse_thresholds(req, tb[XFRMA_SPD_IPV6_HTHRESH], 128, &wanted.v6)) != 0)
		return ret;
	*t = wanted;
	return 0;
}

static int
default_get(struct netlink_request *req)
{
	const struct ipsec_cache *ic = req->conf->ipsec;
	struct xfrm_userpolicy_default def;
	struct netlink_put put;

	if (ic == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
	ipsec_cache_default_get(ic, &def);
	if (!netlink_put_begin(req, &put, XFRM_MSG_GETDEFAULT, 0, &def, sizeof(def)))
		return -EMSGSIZE;
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

/* What is neither block nor accept stays as it is, as in the kernel. Its notification, too. */
static int
default_set(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	const struct nlattr *tb[XFRM_ATTRS];
	struct xfrm_userpolicy_default def;
	struct netlink_put put;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	xfrm_header(req, &def, sizeof(def));
	if ((ret = xfrm_parse(req, sizeof(def), 0, tb)) != 0)
		return xfrm_end(req, ret);
	ipsec_cache_default_set(ic, &def);
	ipsec_cache_default_get(ic, &def);
	if (netlink_notify_wanted(req->server, req, NETLINK_XFRM, XFRMNLGRP_POLICY) &&
		netlink_notify_begin(
			req->server, req, &put, XFRM_MSG_GETDEFAULT, 0, &def, sizeof(def)))
		netlink_notify_end(req->server, req, &put, NETLINK_XFRM, XFRMNLGRP_POLICY);
	return xfrm_end(req, 0);
}

static struct netlink_handler spd_get_info_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_GETSPDINFO,
	.header = sizeof(uint32_t),
	.doit = spd_get_info,
};
NETLINK_REGISTER_HANDLER(spd_get_info_handler);

static struct netlink_handler spd_set_info_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_NEWSPDINFO,
	.header = sizeof(uint32_t),
	.doit = spd_set_info,
};
NETLINK_REGISTER_HANDLER(spd_set_info_handler);

static struct netlink_handler default_get_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_GETDEFAULT,
	.header = sizeof(struct xfrm_userpolicy_default),
	.doit = default_get,
};
NETLINK_REGISTER_HANDLER(default_get_handler);

static struct netlink_handler default_set_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_SETDEFAULT,
	.header = sizeof(struct xfrm_userpolicy_default),
	.doit = default_set,
};
NETLINK_REGISTER_HANDLER(default_set_handler);
