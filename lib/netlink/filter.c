/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Filters: RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER. The checks stand in the order of Linux's
 * tc_new_tfilter() and its siblings.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <string.h>

#include "classifier/flower.h"
#include "netlink/tc.h"

static const struct netlink_attr_policy filter_policy[] = {
	{ TCA_KIND, "TCA_KIND", NETLINK_ATTR_STRING, 1, TC_KIND_MAX },
	{ TCA_OPTIONS, "TCA_OPTIONS", NETLINK_ATTR_NESTED },
	{ TCA_CHAIN, "TCA_CHAIN", NETLINK_ATTR_U32 },
	{ TCA_RATE, "TCA_RATE", NETLINK_ATTR_REFUSED },
	{ TCA_DUMP_FLAGS, "TCA_DUMP_FLAGS", NETLINK_ATTR_BINARY, sizeof(struct nla_bitfield32),
		sizeof(struct nla_bitfield32) },
};

struct filter_request {
	const struct tcmsg *tcm;
	const struct nlattr *tb[TCA_MAX + 1];
	const char *kind; /* NULL: not given */
	uint32_t chain, prio;
	uint16_t protocol; /* host order */
	struct tc_block *at;
	struct classifier_rule *first; /* of (chain, prio), or NULL */
	bool terse;
};

int
tc_filter_flags_parse(struct netlink_request *req, const struct nlattr *attr, uint32_t *flags)
{
	uint32_t value = mnl_attr_get_u32(attr);

	/* said by our own dumps, and true */
	value &= ~(uint32_t)TCA_CLS_FLAGS_NOT_IN_HW;
	if ((value & TCA_CLS_FLAGS_SKIP_SW) != 0)
		return netlink_fail(
			req, -EOPNOTSUPP, attr, "skip_sw: filters are not offloaded to devices");
	if ((value & ~(uint32_t)(TCA_CLS_FLAGS_SKIP_HW | TCA_CLS_FLAGS_VERBOSE)) != 0)
		return netlink_fail(req, -EINVAL, attr, "Filter flags 0x%x are not known", value);
	*flags = value;
	return 0;
}

static int
request_parse(struct netlink_request *req, struct filter_request *r)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->tcm = mnl_nlmsg_get_payload(req->nlh);
	ret = netlink_parse(
		req, sizeof(*r->tcm), filter_policy, RTE_DIM(filter_policy), r->tb, TCA_MAX + 1);
	if (ret != 0)
		return ret;
	if (r->tb[TCA_KIND] != NULL)
		r->kind = mnl_attr_get_str(r->tb[TCA_KIND]);
	if (r->tb[TCA_CHAIN] != NULL)
		r->chain = mnl_attr_get_u32(r->tb[TCA_CHAIN]);
	r->prio = TC_H_MAJ(r->tcm->tcm_info) >> 16;
	r->protocol = ntohs((uint16_t)TC_H_MIN(r->tcm->tcm_info));
	return 0;
}

/* The first rule of (chain, prio): tells kind and protocol of all of them. */
static struct classifier_rule *
first_of(struct classifier_block *block, uint32_t chain, uint32_t prio)
{
	struct classifier_place at = { .chain = chain, .prio = prio };
	struct classifier_rule *rule = classifier_rule_next(block, &at);

	return rule != NULL && at.chain == chain && at.prio == prio ? rule : NULL;
}

static int
request_find_block(struct netlink_request *req, struct filter_request *r)
{
	int ret;

	if ((ret = tc_block_find(req, r->tcm, false, &r->at)) != 0)
		return ret;
	if (r->chain > TC_ACT_EXT_VAL_MASK)
		return netlink_fail(req, -EINVAL, r->tb[TCA_CHAIN],
			"Specified chain index exceeds upper limit");
	if (r->prio != 0)
		r->first = first_of(r->at->block, r->chain, r->prio);
	return 0;
}

/* What stands at (chain, prio) must be of the protocol and kind that the request says, if it says.
 */
static int
request_agrees(struct netlink_request *req, const struct filter_request *r)
{
	struct classifier_place place = classifier_rule_place(r->first);
	const struct netlink_filter_kind *kind = netlink_filter_kind_of(place.kind);

	if (r->protocol != 0 && r->protocol != place.protocol)
		return netlink_fail(
			req, -EINVAL, NULL, "Filter with specified priority/protocol not found");
	if (r->kind != NULL && strcmp(r->kind, kind->name) != 0)
		return netlink_fail(req, -EINVAL, r->tb[TCA_KIND],
			"Specified filter kind does not match existing one");
	return 0;
}

/* Messages. */

static struct tcmsg
filter_header(const struct tc_block *at, const struct classifier_place *place, uint32_t handle)
{
	struct tcmsg tcm = { 0 };

	tcm.tcm_family = AF_UNSPEC;
	tcm.tcm_ifindex = (int)at->ifindex;
	tcm.tcm_parent = at->parent;
	tcm.tcm_handle = handle;
	tcm.tcm_info = TC_H_MAKE(place->prio << 16, htons(place->protocol));
	return tcm;
}

/* rule NULL: the priority as such, which Linux puts before its rules */
static void
filter_put(struct netlink_server *server, struct netlink_put *put,
	const struct classifier_place *place, const struct classifier_rule *rule, bool terse)
{
	const struct netlink_filter_kind *kind = netlink_filter_kind_of(place->kind);
	struct nlattr *options;

	netlink_put_string(put, TCA_KIND, kind->name);
	netlink_put_u32(put, TCA_CHAIN, place->chain);
	if (rule == NULL)
		return;
	options = netlink_put_nest(put, TCA_OPTIONS);
	if (terse)
		kind->put_terse(put, rule);
	else
		kind->put(server, put, rule);
	netlink_put_nest_end(put, options);
}

static void
filter_notify(struct netlink_request *req, uint16_t type, const struct tc_block *at,
	const struct classifier_place *place, const struct classifier_rule *rule)
{
	struct tcmsg tcm = filter_header(at, place, rule != NULL ? place->handle : 0);
	struct netlink_put put;

	/* with the request's flags: `tc monitor` tells added from replaced by them */
	if (!netlink_notify_wanted(req->server, req, NETLINK_ROUTE, RTNLGRP_TC) ||
		!netlink_notify_begin(
			req->server, req, &put, type, req->nlh->nlmsg_flags, &tcm, sizeof(tcm)))
		return;
	filter_put(req->server, &put, place, rule, false);
	netlink_notify_end(req->server, req, &put, NETLINK_ROUTE, RTNLGRP_TC);
}

static int
filter_put_one(struct netlink_request *req, uint16_t flags, const struct tc_block *at,
	const struct classifier_place *place, const struct classifier_rule *rule, bool terse)
{
	struct tcmsg tcm = filter_header(at, place, rule != NULL ? place->handle : 0);
	struct netlink_put put;

	if (!netlink_put_begin(req, &put, RTM_NEWTFILTER, flags, &tcm, sizeof(tcm)))
		return -EMSGSIZE;
	filter_put(req->server, &put, place, rule, terse);
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

/* Requests. */

static int
new_check(struct netlink_request *req, struct filter_request *r,
	const struct netlink_filter_kind **kind)
{
	bool create = (req->nlh->nlmsg_flags & NLM_F_CREATE) != 0;
	struct classifier_place place;
	int ret;

	if (r->first != NULL) {
		if ((ret = request_agrees(req, r)) != 0)
			return ret;
		place = classifier_rule_place(r->first);
		*kind = netlink_filter_kind_of(place.kind);
		r->protocol = place.protocol;
		return 0;
	}
	if (r->kind == NULL || r->protocol == 0)
		return netlink_fail(
			req, -EINVAL, NULL, "Filter kind and protocol must be specified");
	if (!create)
		return netlink_fail(req, -ENOENT, NULL,
			"Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter");
	if ((*kind = netlink_filter_kind_find(r->kind)) == NULL)
		return netlink_fail(req, -ENOENT, r->tb[TCA_KIND],
			"TC classifier not found: \"%s\" is not supported", r->kind);
	return 0;
}

/* Whether the rule is to be there already. */
static int
new_check_handle(struct netlink_request *req, const struct filter_request *r,
	const struct classifier_place *place)
{
	uint16_t flags = req->nlh->nlmsg_flags;
	bool exists = r->first != NULL && place->handle != 0 &&
		classifier_rule_find(r->at->block, place) != NULL;

	if (!exists && (flags & NLM_F_CREATE) == 0)
		return netlink_fail(req, -ENOENT, NULL,
			"Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter");
	if (exists && (flags & NLM_F_EXCL) != 0)
		return netlink_fail(req, -EEXIST, NULL, "Filter already exists");
	return 0;
}

static int
filter_set(struct netlink_request *req, struct filter_request *r,
	const struct classifier_rule_conf *conf, struct classifier_rule **rule)
{
	uint16_t nl = req->nlh->nlmsg_flags;
	unsigned int flags = 0;
	const char *why = NULL;
	int ret;

	if ((nl & NLM_F_CREATE) != 0)
		flags |= CLASSIFIER_CREATE;
	if ((nl & NLM_F_EXCL) != 0)
		flags |= CLASSIFIER_EXCL;
	ret = classifier_rule_set(r->at->block, conf, flags, rule, &why);
	if (ret != 0)
		return netlink_fail(req, ret, NULL, "%s", why != NULL ? why : strerror(-ret));
	return 0;
}

static int
filter_new(struct netlink_request *req)
{
	const struct netlink_filter_kind *kind;
	struct classifier_rule_conf conf = { 0 };
	struct flower_match match = { 0 };
	struct classifier_rule *rule = NULL;
	struct filter_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0)
		return ret;
	if (r.prio == 0 && (req->nlh->nlmsg_flags & NLM_F_CREATE) == 0)
		return netlink_fail(
			req, -ENOENT, NULL, "Invalid filter command with priority of zero");
	if ((ret = request_find_block(req, &r)) != 0 || (ret = new_check(req, &r, &kind)) != 0)
		return ret;
	conf.place.chain = r.chain;
	conf.place.prio = r.prio;
	conf.place.protocol = r.protocol;
	conf.place.handle = r.tcm->tcm_handle;
	conf.place.kind = kind->kind;
	if ((ret = new_check_handle(req, &r, &conf.place)) != 0)
		return ret;
	if (r.tb[TCA_OPTIONS] == NULL)
		return netlink_fail(
			req, -EINVAL, NULL, "Filter \"%s\" needs TCA_OPTIONS", kind->name);
	if ((ret = kind->parse(req, r.tb[TCA_OPTIONS], &conf, &match)) == 0)
		ret = tc_actions_check_flags(req, conf.flags, conf.actions, conf.n_actions);
	if (ret == 0 && (ret = filter_set(req, &r, &conf, &rule)) == 0)
		tc_actions_give_flags(conf.flags, conf.actions, conf.n_actions);
	tc_actions_release(conf.actions, conf.n_actions);
	if (ret != 0)
		return ret;
	tc_changed(req->server);
	conf.place = classifier_rule_place(rule);
	filter_notify(req, RTM_NEWTFILTER, r.at, &conf.place, rule);
	return 0;
}

void
tc_chain_flush_notify(struct netlink_request *req, const struct tc_block *at, uint32_t chain)
{
	struct classifier_place place = { .chain = chain };
	uint32_t prio = 0;

	if (!netlink_notify_wanted(req->server, req, NETLINK_ROUTE, RTNLGRP_TC))
		return;
	while (classifier_rule_next(at->block, &place) != NULL && place.chain == chain) {
		if (place.prio == prio)
			continue;
		prio = place.prio;
		filter_notify(req, RTM_DELTFILTER, at, &place, NULL);
	}
}

static int
filter_flush_chain(struct netlink_request *req, struct filter_request *r)
{
	const char *why = NULL;
	int ret;

	tc_chain_flush_notify(req, r->at, r->chain);
	ret = classifier_flush(r->at->block, r->chain, 0, 0, &why);
	tc_changed(req->server);
	/* a chain that is not there is as good as flushed */
	return ret == -ENOENT ? 0 : ret;
}

static int
filter_flush_prio(struct netlink_request *req, struct filter_request *r)
{
	struct classifier_place place = classifier_rule_place(r->first);
	const char *why = NULL;
	int ret;

	ret = classifier_flush(r->at->block, r->chain, r->prio, r->protocol, &why);
	if (ret != 0)
		return netlink_fail(req, ret, NULL, "%s", why != NULL ? why : strerror(-ret));
	tc_changed(req->server);
	filter_notify(req, RTM_DELTFILTER, r->at, &place, NULL);
	return 0;
}

/* The rule that prio and handle name: -errno as RTM_DELTFILTER (missing_chain -ENOENT) or GET
 * wants. */
static int
find_rule(struct netlink_request *req, struct filter_request *r, struct classifier_rule **rule)
{
	struct classifier_place place = classifier_rule_place(r->first);

	place.handle = r->tcm->tcm_handle;
	*rule = classifier_rule_find(r->at->block, &place);
	if (*rule == NULL)
		return netlink_fail(req, -ENOENT, NULL, "Specified filter handle not found");
	return 0;
}

static int
find_prio(struct netlink_request *req, struct filter_request *r, int chain_missing)
{
	if (!classifier_chain_exists(r->at->block, r->chain))
		return netlink_fail(req, chain_missing, NULL, "Cannot find specified filter chain");
	if (r->first == NULL)
		return netlink_fail(
			req, -ENOENT, NULL, "Filter with specified priority/protocol not found");
	return request_agrees(req, r);
}

static int
filter_del(struct netlink_request *req)
{
	struct classifier_rule *rule;
	struct filter_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0)
		return ret;
	if (r.prio == 0 && (r.protocol != 0 || r.tcm->tcm_handle != 0 || r.kind != NULL))
		return netlink_fail(req, -ENOENT, NULL,
			"Cannot flush filters with protocol, handle or kind set");
	if ((ret = request_find_block(req, &r)) != 0)
		return ret;
	if (r.prio == 0)
		return filter_flush_chain(req, &r);
	if ((ret = find_prio(req, &r, -ENOENT)) != 0)
		return ret;
	if (r.tcm->tcm_handle == 0)
		return filter_flush_prio(req, &r);
	if ((ret = find_rule(req, &r, &rule)) != 0)
		return ret;
	filter_notify(req, RTM_DELTFILTER, r.at, &classifier_rule_conf(rule)->place, rule);
	classifier_rule_del(rule);
	tc_changed(req->server);
	return 0;
}

static int
filter_get(struct netlink_request *req)
{
	struct classifier_rule *rule;
	struct filter_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0)
		return ret;
	if (r.prio == 0)
		return netlink_fail(
			req, -ENOENT, NULL, "Invalid filter command with priority of zero");
	if ((ret = request_find_block(req, &r)) != 0 || (ret = find_prio(req, &r, -EINVAL)) != 0 ||
		(ret = find_rule(req, &r, &rule)) != 0)
		return ret;
	return filter_put_one(req, 0, r.at, &classifier_rule_conf(rule)->place, rule, false);
}

/* Where a dump stands: the last rule that was put, and the priority that was announced. */
enum {
	CURSOR_CHAIN,
	CURSOR_PRIO,
	CURSOR_HANDLE,
	CURSOR_ANNOUNCED, /* 1 + chain << 16 | prio */
	CURSOR_STARTED,
};

static uint64_t
announced(const struct classifier_place *place)
{
	return 1 + ((uint64_t)place->chain << 16 | place->prio);
}

static bool
dump_wants(const struct filter_request *r, const struct classifier_place *place)
{
	return (r->tb[TCA_CHAIN] == NULL || place->chain == r->chain) &&
		(r->prio == 0 || place->prio == r->prio) &&
		(r->protocol == 0 || place->protocol == r->protocol);
}

static int
dump_rules(struct netlink_request *req, const struct filter_request *r)
{
	struct classifier_place at = {
		.chain = (uint32_t)req->cursor[CURSOR_CHAIN],
		.prio = (uint32_t)req->cursor[CURSOR_PRIO],
		.handle = (uint32_t)req->cursor[CURSOR_HANDLE],
	};
	struct classifier_rule *rule;

	while ((rule = classifier_rule_next(r->at->block, &at)) != NULL) {
		if (dump_wants(r, &at)) {
			if (req->cursor[CURSOR_ANNOUNCED] != announced(&at)) {
				if (filter_put_one(req, NLM_F_MULTI, r->at, &at, NULL, false) != 0)
					return 1;
				req->cursor[CURSOR_ANNOUNCED] = announced(&at);
			}
			if (r->terse && netlink_filter_kind_of(at.kind)->put_terse == NULL)
				return netlink_fail(req, -EOPNOTSUPP, r->tb[TCA_DUMP_FLAGS],
					"TCA_DUMP_FLAGS: there are no terse dumps of \"%s\"",
					netlink_filter_kind_of(at.kind)->name);
			if (filter_put_one(req, NLM_F_MULTI, r->at, &at, rule, r->terse) != 0)
				return 1;
		}
		req->cursor[CURSOR_CHAIN] = at.chain;
		req->cursor[CURSOR_PRIO] = at.prio;
		req->cursor[CURSOR_HANDLE] = at.handle;
	}
	return 0;
}

static int
dump_flags(struct netlink_request *req, struct filter_request *r)
{
	struct nla_bitfield32 flags;

	if (r->tb[TCA_DUMP_FLAGS] == NULL)
		return 0;
	memcpy(&flags, mnl_attr_get_payload(r->tb[TCA_DUMP_FLAGS]), sizeof(flags));
	if (((flags.value | flags.selector) & ~(uint32_t)TCA_DUMP_FLAGS_TERSE) != 0)
		return netlink_fail(req, -EINVAL, r->tb[TCA_DUMP_FLAGS],
			"TCA_DUMP_FLAGS has bits that are not known");
	r->terse = flags.value != 0;
	return 0;
}

static int
filter_dump(struct netlink_request *req)
{
	bool started = req->cursor[CURSOR_STARTED] != 0;
	struct filter_request r;
	uint64_t generation;
	int ret;

	if ((ret = request_parse(req, &r)) != 0 || (ret = dump_flags(req, &r)) != 0)
		return ret;
	/* no such qdisc: nothing to show, and nothing more if it went away meanwhile */
	if (tc_block_find(req, r.tcm, true, &r.at) != 0) {
		req->interrupted |= started;
		return 0;
	}
	generation = classifier_block_generation(r.at->block);
	if (!started) {
		req->cursor[CURSOR_STARTED] = 1;
		req->generation = generation;
		/* what comes before the chain asked for need not be walked */
		req->cursor[CURSOR_CHAIN] = r.chain;
	} else if (generation != req->generation) {
		req->interrupted = true;
	}
	return dump_rules(req, &r);
}

static struct netlink_handler filter_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWTFILTER,
	.header = sizeof(struct tcmsg),
	.doit = filter_new,
};
NETLINK_REGISTER_HANDLER(filter_new_handler);

static struct netlink_handler filter_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELTFILTER,
	.header = sizeof(struct tcmsg),
	.doit = filter_del,
};
NETLINK_REGISTER_HANDLER(filter_del_handler);

static struct netlink_handler filter_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETTFILTER,
	.header = sizeof(struct tcmsg),
	.doit = filter_get,
	.dump = filter_dump,
};
NETLINK_REGISTER_HANDLER(filter_get_handler);
