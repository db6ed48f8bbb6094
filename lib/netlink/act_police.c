/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* police: one verdict within a rate, another beyond it. */

#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <rte_errno.h>
#include <string.h>

#include "classifier/police.h"
#include "netlink/tc.h"

#define TICK_SHIFT 6 /* a tick of tc is 64 ns (/proc/net/psched) */
#define CELLS 255 /* of a rate table: without an mtu it is the largest packet the table knows */

static const struct netlink_attr_policy police_policy[] = {
	{ TCA_POLICE_TBF, "TCA_POLICE_TBF", NETLINK_ATTR_BINARY, sizeof(struct tc_police),
		sizeof(struct tc_police) },
	{ TCA_POLICE_RATE, "TCA_POLICE_RATE", NETLINK_ATTR_BINARY, TC_RTAB_SIZE, TC_RTAB_SIZE },
	{ TCA_POLICE_PEAKRATE, "TCA_POLICE_PEAKRATE", NETLINK_ATTR_BINARY, TC_RTAB_SIZE,
		TC_RTAB_SIZE },
	{ TCA_POLICE_AVRATE, "TCA_POLICE_AVRATE", NETLINK_ATTR_REFUSED },
	{ TCA_POLICE_RESULT, "TCA_POLICE_RESULT", NETLINK_ATTR_U32 },
	{ TCA_POLICE_RATE64, "TCA_POLICE_RATE64", NETLINK_ATTR_U64 },
	{ TCA_POLICE_PEAKRATE64, "TCA_POLICE_PEAKRATE64", NETLINK_ATTR_U64 },
	{ TCA_POLICE_PKTRATE64, "TCA_POLICE_PKTRATE64", NETLINK_ATTR_U64 },
	{ TCA_POLICE_PKTBURST64, "TCA_POLICE_PKTBURST64", NETLINK_ATTR_U64 },
	/* what a dump says beside */
	{ TCA_POLICE_TM, "TCA_POLICE_TM", NETLINK_ATTR_IGNORED },
	{ TCA_POLICE_PAD, "TCA_POLICE_PAD", NETLINK_ATTR_IGNORED },
};

/* A rate in bytes a second. tc's rate tables are of no use here: the division is done. */
static int
police_rate(struct netlink_request *req, const struct nlattr *tbf, const struct tc_ratespec *spec,
	const struct nlattr *rate64, uint64_t *rate)
{
	if (spec->overhead != 0 || spec->mpu != 0 ||
		(spec->linklayer & TC_LINKLAYER_MASK) > TC_LINKLAYER_ETHERNET)
		return netlink_fail(req, -EOPNOTSUPP, tbf,
			"police: overhead, mpu and linklayer atm are not supported");
	*rate = spec->rate;
	if (spec->rate != 0 && rate64 != NULL)
		*rate = mnl_attr_get_u64(rate64);
	return 0;
}

static int
police_rates(struct netlink_request *req, const struct nlattr **tb, const struct tc_police *parm,
	struct police_conf *conf)
{
	const struct nlattr *tbf = tb[TCA_POLICE_TBF];
	const struct nlattr *pps = tb[TCA_POLICE_PKTRATE64], *burst = tb[TCA_POLICE_PKTBURST64];
	int ret;

	if ((ret = police_rate(req, tbf, &parm->rate, tb[TCA_POLICE_RATE64], &conf->rate)) != 0 ||
		(ret = police_rate(req, tbf, &parm->peakrate, tb[TCA_POLICE_PEAKRATE64],
			 &conf->peakrate)) != 0)
		return ret;
	conf->burst_ns = (uint64_t)parm->burst << TICK_SHIFT;
	conf->mtu = parm->mtu;
	if (conf->mtu == 0 && conf->rate != 0 && parm->rate.cell_log < 24)
		conf->mtu = (uint32_t)CELLS << parm->rate.cell_log;
	if ((pps == NULL) != (burst == NULL))
		return netlink_fail(req, -EINVAL, pps != NULL ? pps : burst,
			"Both or neither packet-per-second burst and rate must be provided");
	if (pps == NULL)
		return 0;
	if (conf->rate != 0)
		return netlink_fail(req, -EINVAL, pps,
			"packet-per-second and byte-per-second rate limits not allowed in same "
			"action");
	conf->pkt_rate = mnl_attr_get_u64(pps);
	conf->pkt_burst_ns = mnl_attr_get_u64(burst) << TICK_SHIFT;
	if (conf->pkt_rate == 0 || conf->pkt_burst_ns == 0)
		return netlink_fail(
			req, -EINVAL, pps, "A packet-per-second rate and its burst are at least 1");
	return 0;
}

static int
police_conform(struct netlink_request *req, const struct nlattr *attr, int32_t *conform)
{
	*conform = TC_ACT_OK;
	if (attr == NULL)
		return 0;
	*conform = (int32_t)mnl_attr_get_u32(attr);
	if (TC_ACT_EXT_CMP(*conform, TC_ACT_GOTO_CHAIN))
		return netlink_fail(req, -EINVAL, attr, "goto chain not allowed on fallback");
	return tc_verdict_check(req, attr, *conform, false);
}

static int
police_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_POLICE_MAX + 1];
	struct police_conf conf = { 0 };
	struct tc_police parm;
	int ret;

	(void)old;
	ret = netlink_parse_nested(
		req, options, police_policy, RTE_DIM(police_policy), tb, TCA_POLICE_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_POLICE_TBF] == NULL)
		return netlink_fail(req, -EINVAL, options, "police needs TCA_POLICE_TBF");
	memcpy(&parm, mnl_attr_get_payload(tb[TCA_POLICE_TBF]), sizeof(parm));
	*index = parm.index;
	if ((ret = police_rates(req, tb, &parm, &conf)) != 0 ||
		(ret = police_conform(req, tb[TCA_POLICE_RESULT], &conf.conform)) != 0)
		return ret;
	*params = police_params_create(parm.action, &conf);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, options,
			rte_errno == EINVAL
				? "police: a rate needs a burst, a peakrate a rate and an mtu"
				: "police: no memory");
	return 0;
}

static void
put_rate(struct netlink_put *put, uint16_t type64, uint64_t rate, struct tc_ratespec *spec)
{
	if (rate == 0)
		return;
	spec->rate = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate;
	spec->linklayer = TC_LINKLAYER_ETHERNET;
	if (rate > UINT32_MAX)
		netlink_put_u64(put, type64, rate);
}

static void
police_put(struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct police_conf *conf = &((const struct police_params *)params)->conf;
	struct tc_police parm = { 0 };

	parm.index = action->index;
	parm.action = params->verdict;
	parm.refcnt = (int)action->refs;
	parm.bindcnt = (int)action->binds;
	parm.mtu = conf->mtu != 0 ? conf->mtu : UINT32_MAX;
	parm.burst = (uint32_t)(conf->burst_ns >> TICK_SHIFT);
	put_rate(put, TCA_POLICE_RATE64, conf->rate, &parm.rate);
	put_rate(put, TCA_POLICE_PEAKRATE64, conf->peakrate, &parm.peakrate);
	if (conf->pkt_rate != 0) {
		netlink_put_u64(put, TCA_POLICE_PKTRATE64, conf->pkt_rate);
		netlink_put_u64(put, TCA_POLICE_PKTBURST64, conf->pkt_burst_ns >> TICK_SHIFT);
	}
	netlink_put_data(put, TCA_POLICE_TBF, &parm, sizeof(parm));
	if (conf->conform != TC_ACT_OK)
		netlink_put_u32(put, TCA_POLICE_RESULT, (uint32_t)conf->conform);
}

static struct netlink_action_kind police_kind = {
	.ops = &police_action_ops,
	.parse = police_parse,
	.put = police_put,
	.tm_type = TCA_POLICE_TM,
};

static void __attribute__((constructor)) police_register(void)
{
	netlink_action_kind_register(&police_kind);
}
