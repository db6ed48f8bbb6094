/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Actions as objects of their own: RTM_NEWACTION, RTM_DELACTION (delete and flush), RTM_GETACTION.
 * Linux behaviour: net/sched/act_api.c, except that a list is all or nothing.
 */

#include <errno.h>
#include <linux/pkt_cls.h>
#include <string.h>

#include "netlink/tc.h"

#define ROOT_FLAGS (TCA_ACT_FLAG_LARGE_DUMP_ON | TCA_ACT_FLAG_TERSE_DUMP)

static const struct netlink_attr_policy root_policy[] = {
	{ TCA_ROOT_TAB, "TCA_ROOT_TAB", NETLINK_ATTR_NESTED },
	{ TCA_ROOT_FLAGS, "TCA_ROOT_FLAGS", NETLINK_ATTR_BINARY, sizeof(struct nla_bitfield32),
		sizeof(struct nla_bitfield32) },
	{ TCA_ROOT_TIME_DELTA, "TCA_ROOT_TIME_DELTA", NETLINK_ATTR_U32 },
	/* what a dump says beside */
	{ TCA_ROOT_COUNT, "TCA_ROOT_COUNT", NETLINK_ATTR_IGNORED },
};

struct action_request {
	const struct nlattr *tb[TCA_ROOT_MAX + 1];
	const struct nlattr *entries[ACTION_LIST_MAX];
	uint32_t n;
	struct tc_action_conf confs[ACTION_LIST_MAX];
	struct action *actions[ACTION_LIST_MAX];
};

static int
request_parse(struct netlink_request *req, struct action_request *r)
{
	int ret;

	memset(r, 0, sizeof(*r));
	ret = netlink_parse(req, sizeof(struct tcamsg), root_policy, RTE_DIM(root_policy), r->tb,
		TCA_ROOT_MAX + 1);
	if (ret != 0)
		return ret;
	if (r->tb[TCA_ROOT_TAB] == NULL)
		return netlink_fail(req, -EINVAL, NULL, "Netlink action attributes missing");
	return tc_action_list_parse(req, r->tb[TCA_ROOT_TAB], r->entries, &r->n);
}

static void
list_notify(struct netlink_request *req, uint16_t type, uint16_t flags,
	struct action *const *actions, uint32_t n, uint32_t ref)
{
	struct tcamsg tcam = { .tca_family = AF_UNSPEC };
	struct netlink_put put;

	if (!netlink_notify_wanted(req->server, req, NETLINK_ROUTE, RTNLGRP_TC) ||
		!netlink_notify_begin(req->server, req, &put, type, flags, &tcam, sizeof(tcam)))
		return;
	tc_actions_put(&put, TCA_ROOT_TAB, actions, n, ref);
	netlink_notify_end(req->server, req, &put, NETLINK_ROUTE, RTNLGRP_TC);
}

/* Adding and replacing. */

static int
new_parse(struct netlink_request *req, struct action_request *r)
{
	bool replace = (req->nlh->nlmsg_flags & NLM_F_REPLACE) != 0;
	int ret;

	for (uint32_t i = 0; i < r->n; i++) {
		struct tc_action_conf *conf = &r->confs[i];

		if ((ret = tc_action_conf_parse(req, r->entries[i], false, conf)) != 0)
			return ret;
		if (conf->existing != NULL && !replace)
			return netlink_fail(req, -EEXIST, r->entries[i],
				"Action \"%s\" index %u exists", conf->kind->ops->kind,
				conf->index);
	}
	return 0;
}

/* Makes those that are new, all or none; replacing the others cannot fail. */
static int
new_commit(struct netlink_request *req, struct action_request *r)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < r->n && ret == 0; i++) {
		if (r->confs[i].existing == NULL)
			ret = tc_action_conf_create(req, &r->confs[i], &r->actions[i]);
		else
			r->actions[i] = r->confs[i].existing;
	}
	if (ret != 0) {
		/* the last one failed */
		for (i--; i-- > 0;)
			if (r->confs[i].existing == NULL)
				action_put(r->actions[i], false);
		return ret;
	}
	for (i = 0; i < r->n; i++) {
		if (r->confs[i].existing == NULL)
			continue;
		action_replace(r->actions[i], r->confs[i].params);
		r->confs[i].params = NULL;
	}
	return 0;
}

static int
action_new(struct netlink_request *req)
{
	struct action_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0)
		return ret;
	if ((ret = new_parse(req, &r)) == 0)
		ret = new_commit(req, &r);
	for (uint32_t i = 0; i < r.n; i++)
		tc_action_conf_free(&r.confs[i]);
	if (ret != 0)
		return ret;
	tc_changed(req->server);
	list_notify(req, RTM_NEWACTION, req->nlh->nlmsg_flags, r.actions, r.n, 0);
	return 0;
}

/* Getting and deleting. */

static int
find_one(struct netlink_request *req, const struct nlattr *entry, struct action **action)
{
	const struct nlattr *tb[TCA_ACT_MAX + 1];
	const struct netlink_action_kind *kind;
	int ret;

	if ((ret = tc_action_kind_parse(req, entry, tb, &kind)) != 0)
		return ret == -ENOENT ? -EINVAL : ret;
	if (tb[TCA_ACT_INDEX] == NULL)
		return netlink_fail(req, -EINVAL, entry, "Invalid TC action index value");
	*action = action_find(req->conf->actions, kind->ops, mnl_attr_get_u32(tb[TCA_ACT_INDEX]));
	if (*action == NULL)
		return netlink_fail(req, -ENOENT, tb[TCA_ACT_INDEX],
			"TC action with specified index not found");
	return 0;
}

static int
find_all(struct netlink_request *req, struct action_request *r)
{
	int ret;

	for (uint32_t i = 0; i < r->n; i++)
		if ((ret = find_one(req, r->entries[i], &r->actions[i])) != 0)
			return ret;
	return 0;
}

static int
action_get_list(struct netlink_request *req)
{
	struct tcamsg tcam = { .tca_family = AF_UNSPEC };
	struct action_request r;
	struct netlink_put put;
	int ret;

	if ((ret = request_parse(req, &r)) != 0 || (ret = find_all(req, &r)) != 0)
		return ret;
	if (!netlink_put_begin(req, &put, RTM_GETACTION, 0, &tcam, sizeof(tcam)))
		return -EMSGSIZE;
	tc_actions_put(&put, TCA_ROOT_TAB, r.actions, r.n, 0);
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static int
delete_check(struct netlink_request *req, const struct action_request *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct action *a = r->actions[i];

		if (a->binds > 0)
			return netlink_fail(req, -EPERM, r->entries[i],
				"Failed to delete TC action: \"%s\" index %u is used by %u filters",
				a->ops->kind, a->index, a->binds);
		for (uint32_t j = 0; j < i; j++)
			if (r->actions[j] == a)
				return netlink_fail(req, -EINVAL, r->entries[i],
					"Action \"%s\" index %u is named twice", a->ops->kind,
					a->index);
	}
	return 0;
}

static void
flush_notify(struct netlink_request *req, const struct action_ops *ops, uint32_t n)
{
	struct tcamsg tcam = { .tca_family = AF_UNSPEC };
	struct nlattr *list, *entry;
	struct netlink_put put;

	if (!netlink_notify_wanted(req->server, req, NETLINK_ROUTE, RTNLGRP_TC) ||
		!netlink_notify_begin(
			req->server, req, &put, RTM_DELACTION, NLM_F_ROOT, &tcam, sizeof(tcam)))
		return;
	list = netlink_put_nest(&put, TCA_ROOT_TAB);
	entry = netlink_put_nest(&put, 0);
	netlink_put_string(&put, TCA_ACT_KIND, ops->kind);
	netlink_put_u32(&put, TCA_FCNT, n);
	netlink_put_nest_end(&put, entry);
	netlink_put_nest_end(&put, list);
	netlink_notify_end(req->server, req, &put, NETLINK_ROUTE, RTNLGRP_TC);
}

/* Up to the first that a filter uses: that is an error only if it is the very first. */
static int
flush_kind(struct netlink_request *req, const struct nlattr *entry)
{
	const struct nlattr *tb[TCA_ACT_MAX + 1];
	const struct netlink_action_kind *kind;
	uint32_t n = 0;
	int ret;

	if ((ret = tc_action_kind_parse(req, entry, tb, &kind)) != 0)
		return ret == -ENOENT ? -EINVAL : ret;
	ret = action_flush(req->conf->actions, kind->ops, &n);
	if (ret != 0 && n == 0)
		return netlink_fail(req, ret, entry,
			"Unable to flush TC actions: the first \"%s\" is used by a filter",
			kind->ops->kind);
	if (n > 0) {
		tc_changed(req->server);
		flush_notify(req, kind->ops, n);
	}
	return 0;
}

static int
action_delete(struct netlink_request *req)
{
	struct action_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0)
		return ret;
	if ((req->nlh->nlmsg_flags & NLM_F_ROOT) != 0) {
		if (r.n == 0)
			return netlink_fail(req, -EINVAL, NULL,
				"Invalid netlink attributes while flushing TC action");
		return flush_kind(req, r.entries[0]);
	}
	if ((ret = find_all(req, &r)) != 0 || (ret = delete_check(req, &r)) != 0)
		return ret;
	list_notify(req, RTM_DELACTION, 0, r.actions, r.n, 1);
	tc_changed(req->server);
	for (uint32_t i = 0; i < r.n; i++)
		action_del(r.actions[i]); /* unbound: cannot fail */
	return 0;
}

/* Dumps: messages with as many actions as fit, 32 without TCA_ACT_FLAG_LARGE_DUMP_ON. */

struct dump_filter {
	const struct netlink_action_kind *kind; /* NULL: none to show */
	uint32_t flags; /* TCA_ACT_FLAG_* */
	uint32_t since_ms; /* 0: all */
};

static int
dump_parse(struct netlink_request *req, struct dump_filter *filter)
{
	const struct nlattr *tb[TCA_ACT_MAX + 1];
	struct nla_bitfield32 flags;
	struct action_request r;
	int ret;

	memset(filter, 0, sizeof(*filter));
	if ((ret = request_parse(req, &r)) != 0)
		return ret;
	if (r.n == 0)
		return netlink_fail(req, -EINVAL, NULL, "TC action kind must be specified");
	if (r.tb[TCA_ROOT_FLAGS] != NULL) {
		memcpy(&flags, mnl_attr_get_payload(r.tb[TCA_ROOT_FLAGS]), sizeof(flags));
		if ((flags.value & ~(uint32_t)ROOT_FLAGS) != 0)
			return netlink_fail(req, -EINVAL, r.tb[TCA_ROOT_FLAGS],
				"TCA_ROOT_FLAGS has bits that are not known");
		filter->flags = flags.value;
	}
	if (r.tb[TCA_ROOT_TIME_DELTA] != NULL)
		filter->since_ms = mnl_attr_get_u32(r.tb[TCA_ROOT_TIME_DELTA]);
	/* a kind that is not known has no actions: Linux shows nothing */
	ret = tc_action_kind_parse(req, r.entries[0], tb, &filter->kind);
	return ret == -ENOENT ? 0 : ret;
}

static bool
dump_wants(const struct dump_filter *filter, const struct action *action)
{
	struct action_stats stats;

	if (filter->since_ms == 0)
		return true;
	action_stats_get(action, &stats);
	return stats.lastuse_s * 1000 <= filter->since_ms;
}

/* Puts actions from `*index` on until the message is full. Returns how many; *index is the next
 * then. */
static uint32_t
dump_fill(struct netlink_request *req, const struct dump_filter *filter, struct netlink_put *put,
	uint64_t *index, bool *more)
{
	struct action *action;
	uint32_t n = 0;

	*more = true;
	while ((filter->flags & TCA_ACT_FLAG_LARGE_DUMP_ON) != 0 || n < ACTION_LIST_MAX) {
		uint32_t len = put->nlh->nlmsg_len;
		struct nlattr *entry;

		action = *index > UINT32_MAX
			? NULL
			: action_next(req->conf->actions, filter->kind->ops, (uint32_t)*index);
		if (action == NULL) {
			*more = false;
			break;
		}
		if (dump_wants(filter, action)) {
			entry = netlink_put_nest(put, (uint16_t)n);
			if ((filter->flags & TCA_ACT_FLAG_TERSE_DUMP) != 0)
				tc_action_put_terse(put, action, true);
			else
				tc_action_put(put, action, 0);
			netlink_put_nest_end(put, entry);
			if (put->overflowed) {
				put->overflowed = false;
				put->nlh->nlmsg_len = len;
				break;
			}
			n++;
		}
		*index = (uint64_t)action->index + 1;
	}
	return n;
}

/* One message. 0: that was all; 1: more to come; -EMSGSIZE: no room in this datagram. */
static int
dump_message(struct netlink_request *req, const struct dump_filter *filter)
{
	struct tcamsg tcam = { .tca_family = AF_UNSPEC };
	uint64_t index = req->cursor[0];
	struct netlink_put put;
	struct nlattr *list;
	uint32_t n, count;
	char *count_at;
	bool more;

	if (!netlink_put_begin(req, &put, RTM_GETACTION, NLM_F_MULTI, &tcam, sizeof(tcam)))
		return -EMSGSIZE;
	netlink_put_u32(&put, TCA_ROOT_COUNT, 0);
	count_at = (char *)put.nlh + put.nlh->nlmsg_len - sizeof(count);
	list = netlink_put_nest(&put, TCA_ROOT_TAB);
	n = dump_fill(req, filter, &put, &index, &more);
	netlink_put_nest_end(&put, list);
	if (n == 0)
		put.overflowed = true; /* nothing in it: taken back */
	else if ((filter->flags & TCA_ACT_FLAG_LARGE_DUMP_ON) != 0) {
		count = n;
		memcpy(count_at, &count, sizeof(count));
	}
	if (!netlink_put_end(req, &put) && more)
		return -EMSGSIZE;
	req->cursor[0] = index;
	return more ? 1 : 0;
}

static int
action_dump(struct netlink_request *req)
{
	struct dump_filter filter;
	int ret;

	if ((ret = dump_parse(req, &filter)) != 0)
		return ret;
	if (filter.kind == NULL)
		return 0;
	tc_dump_check(req);
	if (req->cursor[0] == 0)
		req->cursor[0] = 1;
	while ((ret = dump_message(req, &filter)) > 0)
		;
	return ret == -EMSGSIZE ? 1 : ret;
}

static struct netlink_handler action_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWACTION,
	.header = sizeof(struct tcamsg),
	.doit = action_new,
};
NETLINK_REGISTER_HANDLER(action_new_handler);

static struct netlink_handler action_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELACTION,
	.header = sizeof(struct tcamsg),
	.doit = action_delete,
};
NETLINK_REGISTER_HANDLER(action_del_handler);

static struct netlink_handler action_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETACTION,
	.header = sizeof(struct tcamsg),
	.doit = action_get_list,
	.dump = action_dump,
};
NETLINK_REGISTER_HANDLER(action_get_handler);
