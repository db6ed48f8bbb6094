/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Actions as attributes: lists of them in filters and in action messages. */

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_cls.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/tc.h"

#define USER_HZ 100 /* the unit of struct tcf_t */
#define HW_STATS_ANY (TCA_ACT_HW_STATS_IMMEDIATE | TCA_ACT_HW_STATS_DELAYED)

/* clang-format off */
#define TAB(n) { n, "action " #n, NETLINK_ATTR_NESTED }
static const struct netlink_attr_policy list_policy[ACTION_LIST_MAX] = {
	TAB(1), TAB(2), TAB(3), TAB(4), TAB(5), TAB(6), TAB(7), TAB(8),
	TAB(9), TAB(10), TAB(11), TAB(12), TAB(13), TAB(14), TAB(15), TAB(16),
	TAB(17), TAB(18), TAB(19), TAB(20), TAB(21), TAB(22), TAB(23), TAB(24),
	TAB(25), TAB(26), TAB(27), TAB(28), TAB(29), TAB(30), TAB(31), TAB(32),
};
/* clang-format on */
#undef TAB

static const struct netlink_attr_policy action_policy[] = {
	{ TCA_ACT_KIND, "TCA_ACT_KIND", NETLINK_ATTR_STRING, 1, TC_KIND_MAX },
	{ TCA_ACT_OPTIONS, "TCA_ACT_OPTIONS", NETLINK_ATTR_NESTED },
	{ TCA_ACT_INDEX, "TCA_ACT_INDEX", NETLINK_ATTR_U32 },
	{ TCA_ACT_COOKIE, "TCA_ACT_COOKIE", NETLINK_ATTR_BINARY, 1, ACTION_COOKIE_MAX },
	{ TCA_ACT_FLAGS, "TCA_ACT_FLAGS", NETLINK_ATTR_BINARY, sizeof(struct nla_bitfield32),
		sizeof(struct nla_bitfield32) },
	{ TCA_ACT_HW_STATS, "TCA_ACT_HW_STATS", NETLINK_ATTR_BINARY, sizeof(struct nla_bitfield32),
		sizeof(struct nla_bitfield32) },
	/* what a dump says beside: Linux takes it back without a look */
	{ TCA_ACT_STATS, "TCA_ACT_STATS", NETLINK_ATTR_IGNORED },
	{ TCA_ACT_PAD, "TCA_ACT_PAD", NETLINK_ATTR_IGNORED },
	{ TCA_ACT_USED_HW_STATS, "TCA_ACT_USED_HW_STATS", NETLINK_ATTR_IGNORED },
	{ TCA_ACT_IN_HW_COUNT, "TCA_ACT_IN_HW_COUNT", NETLINK_ATTR_IGNORED },
};

int
tc_action_list_parse(struct netlink_request *req, const struct nlattr *list,
	const struct nlattr *entries[ACTION_LIST_MAX], uint32_t *n)
{
	const struct nlattr *tb[ACTION_LIST_MAX + 1];
	int ret;

	ret = netlink_parse_nested(
		req, list, list_policy, RTE_DIM(list_policy), tb, ACTION_LIST_MAX + 1);
	if (ret != 0)
		return ret;
	for (*n = 0; *n < ACTION_LIST_MAX && tb[*n + 1] != NULL; (*n)++)
		entries[*n] = tb[*n + 1];
	for (uint32_t i = *n; i < ACTION_LIST_MAX; i++)
		if (tb[i + 1] != NULL)
			return netlink_fail(req, -EINVAL, tb[i + 1],
				"Actions are numbered from 1 on without a gap: %u is missing",
				*n + 1);
	return 0;
}

int
tc_verdict_check(
	struct netlink_request *req, const struct nlattr *attr, int32_t verdict, bool goto_allowed)
{
	uint32_t opcode = (uint32_t)TC_ACT_EXT_OPCODE(verdict);

	if (verdict == TC_ACT_UNSPEC)
		return 0;
	if (opcode == 0 ? verdict > TC_ACT_TRAP : opcode > TC_ACT_GOTO_CHAIN)
		return netlink_fail(req, -EINVAL, attr, "invalid control action");
	if (verdict == TC_ACT_REDIRECT || verdict == TC_ACT_REPEAT)
		return netlink_fail(req, -EOPNOTSUPP, attr,
			"Control action %d (%s) is not supported", verdict,
			verdict == TC_ACT_REPEAT ? "repeat" : "redirect");
	if (opcode == TC_ACT_GOTO_CHAIN && !goto_allowed)
		return netlink_fail(req, -EINVAL, attr, "can't goto NULL proto/chain");
	return 0;
}

/* A bitfield whose value lies within its selector and both within `valid`. */
static int
bitfield_parse(struct netlink_request *req, const struct nlattr *attr, const char *name,
	uint32_t valid, uint32_t *value)
{
	struct nla_bitfield32 bf;

	memcpy(&bf, mnl_attr_get_payload(attr), sizeof(bf));
	if (((bf.selector | bf.value) & ~valid) != 0 || (bf.value & ~bf.selector) != 0)
		return netlink_fail(req, -EINVAL, attr, "%s has bits that are not known", name);
	*value = bf.value;
	return 0;
}

/* What every kind of action has, from the attributes beside TCA_ACT_OPTIONS. */
static int
common_parse(struct netlink_request *req, const struct nlattr **tb, struct action_params *params)
{
	uint32_t hw_stats = 0;
	int ret;

	if (tb[TCA_ACT_COOKIE] != NULL) {
		params->cookie_len = (uint8_t)mnl_attr_get_payload_len(tb[TCA_ACT_COOKIE]);
		memcpy(params->cookie, mnl_attr_get_payload(tb[TCA_ACT_COOKIE]),
			params->cookie_len);
	}
	if (tb[TCA_ACT_FLAGS] != NULL) {
		ret = bitfield_parse(req, tb[TCA_ACT_FLAGS], "TCA_ACT_FLAGS",
			TCA_ACT_FLAGS_NO_PERCPU_STATS | TCA_ACT_FLAGS_SKIP_HW |
				TCA_ACT_FLAGS_SKIP_SW,
			&params->flags);
		if (ret != 0)
			return ret;
		if ((params->flags & TCA_ACT_FLAGS_SKIP_SW) != 0)
			return netlink_fail(req, -EOPNOTSUPP, tb[TCA_ACT_FLAGS],
				"skip_sw: actions are not offloaded to devices");
	}
	if (tb[TCA_ACT_HW_STATS] != NULL) {
		ret = bitfield_parse(
			req, tb[TCA_ACT_HW_STATS], "TCA_ACT_HW_STATS", HW_STATS_ANY, &hw_stats);
		if (ret != 0)
			return ret;
		params->hw_stats = hw_stats | TC_HW_STATS_ASKED;
	}
	return 0;
}

/* On replacing: what Linux leaves as it was unless the request says it anew. */
static void
common_keep(const struct nlattr **tb, const struct action *existing, struct action_params *params)
{
	const struct action_params *old = action_params(existing);

	if (tb[TCA_ACT_COOKIE] == NULL) {
		params->cookie_len = old->cookie_len;
		memcpy(params->cookie, old->cookie, sizeof(params->cookie));
	}
	params->flags = existing->flags;
}

void
tc_action_conf_free(struct tc_action_conf *conf)
{
	if (conf->params == NULL)
		return;
	if (conf->kind->ops->params_free != NULL)
		conf->kind->ops->params_free(conf->params);
	else
		free(conf->params);
	conf->params = NULL;
}

int
tc_action_kind_parse(struct netlink_request *req, const struct nlattr *entry,
	const struct nlattr *tb[TCA_ACT_MAX + 1], const struct netlink_action_kind **kind)
{
	const char *name;
	int ret;

	ret = netlink_parse_nested(
		req, entry, action_policy, RTE_DIM(action_policy), tb, TCA_ACT_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_ACT_KIND] == NULL)
		return netlink_fail(req, -EINVAL, entry, "TC action kind must be specified");
	name = mnl_attr_get_str(tb[TCA_ACT_KIND]);
	if ((*kind = netlink_action_kind_find(name)) == NULL)
		return netlink_fail(req, -ENOENT, tb[TCA_ACT_KIND],
			"Failed to load TC action module: \"%s\" is not supported", name);
	return 0;
}

int
tc_action_conf_parse(struct netlink_request *req, const struct nlattr *entry, bool bind,
	struct tc_action_conf *conf)
{
	const struct nlattr *tb[TCA_ACT_MAX + 1];
	const struct action_params *old = NULL;
	uint32_t index = 0;
	int ret;

	memset(conf, 0, sizeof(*conf));
	if ((ret = tc_action_kind_parse(req, entry, tb, &conf->kind)) != 0)
		return ret;
	if (tb[TCA_ACT_OPTIONS] == NULL)
		return netlink_fail(req, -EINVAL, entry, "Action \"%s\" needs TCA_ACT_OPTIONS",
			conf->kind->ops->kind);
	/* the index stands inside the options, so what is replaced is known on the second look */
	ret = conf->kind->parse(req, tb[TCA_ACT_OPTIONS], NULL, &index, &conf->params);
	if (ret != 0)
		return ret;
	conf->index = index;
	if (index != 0)
		conf->existing = action_find(req->conf->actions, conf->kind->ops, index);
	if (conf->existing != NULL && !bind) {
		tc_action_conf_free(conf);
		old = action_params(conf->existing);
		ret = conf->kind->parse(req, tb[TCA_ACT_OPTIONS], old, &index, &conf->params);
		if (ret != 0)
			return ret;
	}
	ret = tc_verdict_check(req, tb[TCA_ACT_OPTIONS], conf->params->verdict, bind);
	if (ret == 0)
		ret = common_parse(req, tb, conf->params);
	if (ret == 0 && old != NULL)
		common_keep(tb, conf->existing, conf->params);
	if (ret != 0)
		tc_action_conf_free(conf);
	return ret;
}

int
tc_action_conf_create(
	struct netlink_request *req, struct tc_action_conf *conf, struct action **action)
{
	int ret = action_create(
		req->conf->actions, conf->kind->ops, conf->index, conf->params, action);

	if (ret != 0)
		return netlink_fail(req, ret, NULL, "Action \"%s\" index %u: %s",
			conf->kind->ops->kind, conf->index, strerror(-ret));
	conf->params = NULL;
	return 0;
}

/* One action of a rule: the one with that index as it is, or a new one. */
static int
rule_action_get(struct netlink_request *req, const struct nlattr *entry, struct action **action)
{
	struct tc_action_conf conf;
	int ret;

	if ((ret = tc_action_conf_parse(req, entry, true, &conf)) != 0)
		return ret;
	if (conf.existing != NULL) {
		action_get(conf.existing, false);
		*action = conf.existing;
	} else {
		ret = tc_action_conf_create(req, &conf, action);
	}
	tc_action_conf_free(&conf);
	return ret;
}

int
tc_actions_parse(struct netlink_request *req, const struct nlattr *list,
	struct action *actions[ACTION_LIST_MAX], uint32_t *n)
{
	const struct nlattr *entries[ACTION_LIST_MAX];
	uint32_t n_entries;
	int ret;

	*n = 0;
	if ((ret = tc_action_list_parse(req, list, entries, &n_entries)) != 0)
		return ret;
	for (; *n < n_entries; (*n)++) {
		if ((ret = rule_action_get(req, entries[*n], &actions[*n])) != 0) {
			tc_actions_release(actions, *n);
			*n = 0;
			return ret;
		}
	}
	return 0;
}

void
tc_actions_release(struct action *const *actions, uint32_t n)
{
	while (n-- > 0)
		action_put(actions[n], false);
}

/* Somebody else than filters holds it: beside those, only this request's list does. */
static bool
stands_alone(const struct action *action, struct action *const *actions, uint32_t n)
{
	uint32_t others = action->refs - action->binds;

	for (uint32_t i = 0; i < n; i++)
		others -= actions[i] == action;
	return others > 0;
}

int
tc_actions_check_flags(struct netlink_request *req, uint32_t filter_flags,
	struct action *const *actions, uint32_t n)
{
	bool skip = (filter_flags & TCA_CLS_FLAGS_SKIP_HW) != 0;

	/* A saved state was accepted once, and flags may have been added since. */
	if (req->devmap != NULL)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		bool has = (actions[i]->flags & TCA_ACT_FLAGS_SKIP_HW) != 0;

		if (skip != has && (has || stands_alone(actions[i], actions, n)))
			return netlink_fail(req, -EINVAL, NULL,
				"Mismatch between action and filter offload flags: \"%s\" index "
				"%u %s skip_hw, the filter %s",
				actions[i]->ops->kind, actions[i]->index, has ? "has" : "has no",
				skip ? "has" : "has not");
	}
	return 0;
}

void
tc_actions_give_flags(uint32_t filter_flags, struct action *const *actions, uint32_t n)
{
	for (uint32_t i = 0; (filter_flags & TCA_CLS_FLAGS_SKIP_HW) != 0 && i < n; i++)
		action_flags_add(actions[i], TCA_ACT_FLAGS_SKIP_HW);
}

/* Dumps. */

static void
bitfield_put(struct netlink_put *put, uint16_t type, uint32_t value, uint32_t selector)
{
	struct nla_bitfield32 bf = { .value = value, .selector = selector };

	netlink_put_data(put, type, &bf, sizeof(bf));
}

static void
tm_put(struct netlink_put *put, uint16_t type, const struct action_stats *stats)
{
	struct tcf_t tm = { 0 };

	tm.install = stats->install_s * USER_HZ;
	tm.lastuse = stats->lastuse_s * USER_HZ;
	netlink_put_data(put, type, &tm, sizeof(tm));
}

static void
stats_put(struct netlink_put *put, const struct action_stats *stats)
{
	struct tc_counts counts = { .packets = stats->packets, .bytes = stats->bytes };

	counts.queue.drops = (uint32_t)stats->drops;
	counts.queue.overlimits = (uint32_t)stats->overlimits;
	tc_stats_put(put, TCA_ACT_STATS, &counts);
}

void
tc_action_put(struct netlink_put *put, struct action *action, uint32_t ref)
{
	const struct netlink_action_kind *kind = netlink_action_kind_of(action->ops);
	const struct action_params *params = action_params(action);
	struct action shown = *action;
	struct action_stats stats;
	struct nlattr *nest;

	action_stats_get(action, &stats);
	shown.refs -= ref;
	netlink_put_string(put, TCA_ACT_KIND, action->ops->kind);
	if (!put->bare)
		stats_put(put, &stats);
	if (params->cookie_len > 0)
		netlink_put_data(put, TCA_ACT_COOKIE, params->cookie, params->cookie_len);
	if ((params->hw_stats & TC_HW_STATS_ASKED) != 0 &&
		(params->hw_stats & HW_STATS_ANY) != HW_STATS_ANY)
		bitfield_put(put, TCA_ACT_HW_STATS, params->hw_stats & HW_STATS_ANY, HW_STATS_ANY);
	if (action->flags != 0)
		bitfield_put(put, TCA_ACT_FLAGS, action->flags, action->flags);
	netlink_put_u32(put, TCA_ACT_IN_HW_COUNT, 0);
	nest = netlink_put_nest(put, TCA_ACT_OPTIONS);
	kind->put(put, &shown, params);
	if (!put->bare)
		tm_put(put, kind->tm_type, &stats);
	netlink_put_nest_end(put, nest);
}

void
tc_action_put_terse(struct netlink_put *put, const struct action *action, bool with_index)
{
	const struct action_params *params = action_params(action);
	struct action_stats stats;

	action_stats_get(action, &stats);
	netlink_put_string(put, TCA_ACT_KIND, action->ops->kind);
	stats_put(put, &stats);
	if (with_index)
		netlink_put_u32(put, TCA_ACT_INDEX, action->index);
	if (params->cookie_len > 0)
		netlink_put_data(put, TCA_ACT_COOKIE, params->cookie, params->cookie_len);
}

void
tc_actions_put(struct netlink_put *put, uint16_t type, struct action *const *actions, uint32_t n,
	uint32_t ref)
{
	struct nlattr *list, *entry;

	if (n == 0)
		return;
	list = netlink_put_nest(put, type);
	for (uint32_t i = 0; i < n; i++) {
		entry = netlink_put_nest(put, (uint16_t)(i + 1));
		tc_action_put(put, actions[i], ref);
		netlink_put_nest_end(put, entry);
	}
	netlink_put_nest_end(put, list);
}

void
tc_actions_put_terse(
	struct netlink_put *put, uint16_t type, struct action *const *actions, uint32_t n)
{
	struct nlattr *list, *entry;

	if (n == 0)
		return;
	list = netlink_put_nest(put, type);
	for (uint32_t i = 0; i < n; i++) {
		entry = netlink_put_nest(put, (uint16_t)(i + 1));
		tc_action_put_terse(put, actions[i], false);
		netlink_put_nest_end(put, entry);
	}
	netlink_put_nest_end(put, list);
}
