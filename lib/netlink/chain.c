/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Chains of filters: RTM_NEWCHAIN, RTM_DELCHAIN, RTM_GETCHAIN. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <string.h>

#include "classifier/flower.h"
#include "netlink/tc.h"

static const struct netlink_attr_policy chain_policy[] = {
	/* of a template */
	{ TCA_KIND, "TCA_KIND", NETLINK_ATTR_STRING, 1, TC_KIND_MAX },
	{ TCA_OPTIONS, "TCA_OPTIONS", NETLINK_ATTR_NESTED },
	{ TCA_CHAIN, "TCA_CHAIN", NETLINK_ATTR_U32 },
};

struct chain_request {
	const struct tcmsg *tcm;
	const struct nlattr *tb[TCA_MAX + 1];
	struct tc_block *at;
	uint32_t index;
};

static int
request_parse(struct netlink_request *req, struct chain_request *r)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->tcm = mnl_nlmsg_get_payload(req->nlh);
	ret = netlink_parse(
		req, sizeof(*r->tcm), chain_policy, RTE_DIM(chain_policy), r->tb, TCA_MAX + 1);
	if (ret != 0)
		return ret;
	if (r->tb[TCA_CHAIN] != NULL)
		r->index = mnl_attr_get_u32(r->tb[TCA_CHAIN]);
	return 0;
}

static int
request_find(struct netlink_request *req, struct chain_request *r)
{
	int ret;

	if ((ret = request_parse(req, r)) != 0 ||
		(ret = tc_block_find(req, r->tcm, false, &r->at)) != 0)
		return ret;
	if (r->index > TC_ACT_EXT_VAL_MASK)
		return netlink_fail(req, -EINVAL, r->tb[TCA_CHAIN],
			"Specified chain index exceeds upper limit");
	return 0;
}

/* Only a new chain has a use for one. */
static int
refuse_template(struct netlink_request *req, const struct chain_request *r)
{
	const struct nlattr *attr = r->tb[TCA_KIND] != NULL ? r->tb[TCA_KIND] : r->tb[TCA_OPTIONS];

	if (attr == NULL)
		return 0;
	return netlink_fail(
		req, -EOPNOTSUPP, attr, "TCA_KIND: a chain is named by its index alone");
}

static struct tcmsg
chain_header(const struct tc_block *at)
{
	struct tcmsg tcm = { 0 };

	tcm.tcm_family = AF_UNSPEC;
	tcm.tcm_ifindex = (int)at->ifindex;
	tcm.tcm_parent = at->shared != NULL ? at->parent : TC_H_MAJ(at->parent);
	return tcm;
}

/* Templates are flower's: no other kind of Linux has them. */
static void
chain_fill(struct netlink_server *server, struct netlink_put *put, uint32_t index,
	const struct flower_match *template)
{
	const struct netlink_filter_kind *kind = netlink_filter_kind_of(CLASSIFIER_FLOWER);
	struct nlattr *options;

	netlink_put_u32(put, TCA_CHAIN, index);
	if (template == NULL)
		return;
	netlink_put_string(put, TCA_KIND, kind->name);
	options = netlink_put_nest(put, TCA_OPTIONS);
	kind->put_template(server, put, template);
	netlink_put_nest_end(put, options);
}

static void
chain_notify(struct netlink_request *req, uint16_t type, uint16_t flags, const struct tc_block *at,
	uint32_t index, const struct flower_match *template)
{
	struct tcmsg tcm = chain_header(at);
	struct netlink_put put;

	if (!netlink_notify_wanted(req->server, req, NETLINK_ROUTE, RTNLGRP_TC) ||
		!netlink_notify_begin(req->server, req, &put, type, flags, &tcm, sizeof(tcm)))
		return;
	chain_fill(req->server, &put, index, template);
	netlink_notify_end(req->server, req, &put, NETLINK_ROUTE, RTNLGRP_TC);
}

static int
chain_put(struct netlink_request *req, uint16_t flags, const struct tc_block *at, uint32_t index)
{
	struct tcmsg tcm = chain_header(at);
	struct netlink_put put;

	if (!netlink_put_begin(req, &put, RTM_NEWCHAIN, flags, &tcm, sizeof(tcm)))
		return -EMSGSIZE;
	chain_fill(req->server, &put, index, classifier_chain_template(at->block, index));
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static int
template_parse(
	struct netlink_request *req, const struct chain_request *r, struct flower_match *match)
{
	const struct nlattr *name = r->tb[TCA_KIND], *options = r->tb[TCA_OPTIONS];
	const struct netlink_filter_kind *kind;

	if (name == NULL)
		return netlink_fail(req, -EINVAL, options, "TCA_OPTIONS needs TCA_KIND");
	if ((kind = netlink_filter_kind_find(mnl_attr_get_str(name))) == NULL)
		return netlink_fail(req, -ENOENT, name,
			"TC classifier not found: \"%s\" is not supported", mnl_attr_get_str(name));
	if (kind->parse_template == NULL)
		return netlink_fail(req, -EOPNOTSUPP, name,
			"Chain templates are not supported with specified classifier");
	if (options == NULL)
		return netlink_fail(
			req, -EINVAL, name, "A template of \"%s\" needs keys", kind->name);
	return kind->parse_template(
		req, options, ntohs((uint16_t)TC_H_MIN(r->tcm->tcm_info)), match);
}

static int
chain_add(struct netlink_request *req, const struct chain_request *r)
{
	struct classifier_block *block = r->at->block;
	struct flower_match match = { 0 };
	const char *why = NULL;
	int ret;

	if (r->tb[TCA_KIND] == NULL && r->tb[TCA_OPTIONS] == NULL)
		ret = classifier_chain_add(block, r->index, &why);
	else if ((ret = template_parse(req, r, &match)) != 0)
		return ret;
	else
		ret = classifier_chain_add_template(block, r->index, &match, &why);
	if (ret != 0)
		return netlink_fail(req, ret, NULL, "%s", why != NULL ? why : strerror(-ret));
	return 0;
}

static int
chain_new(struct netlink_request *req)
{
	struct chain_request r;
	int ret;

	if ((ret = request_find(req, &r)) != 0)
		return ret;
	if (classifier_chain_exists(r.at->block, r.index))
		return netlink_fail(req, -EEXIST, NULL, "Filter chain already exists");
	if ((req->nlh->nlmsg_flags & NLM_F_CREATE) == 0)
		return netlink_fail(req, -ENOENT, NULL,
			"Need both RTM_NEWCHAIN and NLM_F_CREATE to create a new chain");
	if ((ret = chain_add(req, &r)) != 0)
		return ret;
	chain_notify(req, RTM_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, r.at, r.index,
		classifier_chain_template(r.at->block, r.index));
	return 0;
}

static int
chain_del(struct netlink_request *req)
{
	const struct flower_match *template;
	struct flower_match gone;
	struct chain_request r;
	const char *why = NULL;
	int ret;

	if ((ret = request_find(req, &r)) != 0 || (ret = refuse_template(req, &r)) != 0)
		return ret;
	if (!classifier_chain_exists(r.at->block, r.index))
		return netlink_fail(req, -EINVAL, NULL, "Cannot find specified filter chain");
	/* subscribers are told of it when it is gone */
	if ((template = classifier_chain_template(r.at->block, r.index)) != NULL)
		gone = *template;
	tc_chain_flush_notify(req, r.at, r.index);
	if ((ret = classifier_chain_del(r.at->block, r.index, &why)) != 0)
		return netlink_fail(req, ret, NULL, "%s", why != NULL ? why : strerror(-ret));
	tc_changed(req->server);
	chain_notify(req, RTM_DELCHAIN, 0, r.at, r.index, template != NULL ? &gone : NULL);
	return 0;
}

static int
chain_get(struct netlink_request *req)
{
	struct chain_request r;
	int ret;

	if ((ret = request_find(req, &r)) != 0 || (ret = refuse_template(req, &r)) != 0)
		return ret;
	if (!classifier_chain_exists(r.at->block, r.index))
		return netlink_fail(req, -EINVAL, NULL, "Cannot find specified filter chain");
	return chain_put(req, 0, r.at, r.index);
}

/* cursor[0]: the next index to look at; cursor[1]: started */
static int
chain_dump(struct netlink_request *req)
{
	struct chain_request r;
	uint32_t index;
	int ret;

	if ((ret = request_parse(req, &r)) != 0 || (ret = refuse_template(req, &r)) != 0)
		return ret;
	if (tc_block_find(req, r.tcm, true, &r.at) != 0) {
		req->interrupted |= req->cursor[1] != 0;
		return 0;
	}
	if (req->cursor[1] == 0) {
		req->cursor[0] = r.index;
		req->cursor[1] = 1;
		req->generation = classifier_block_generation(r.at->block);
	}
	req->interrupted |= req->generation != classifier_block_generation(r.at->block);
	while (req->cursor[0] <= TC_ACT_EXT_VAL_MASK) {
		index = (uint32_t)req->cursor[0];
		if (!classifier_chain_next(r.at->block, &index) ||
			(r.tb[TCA_CHAIN] != NULL && index != r.index))
			break;
		if (chain_put(req, NLM_F_MULTI, r.at, index) != 0)
			return 1;
		req->cursor[0] = (uint64_t)index + 1;
	}
	return 0;
}

static struct netlink_handler chain_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWCHAIN,
	.header = sizeof(struct tcmsg),
	.doit = chain_new,
};
NETLINK_REGISTER_HANDLER(chain_new_handler);

static struct netlink_handler chain_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELCHAIN,
	.header = sizeof(struct tcmsg),
	.doit = chain_del,
};
NETLINK_REGISTER_HANDLER(chain_del_handler);

static struct netlink_handler chain_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETCHAIN,
	.header = sizeof(struct tcmsg),
	.doit = chain_get,
	.dump = chain_dump,
};
NETLINK_REGISTER_HANDLER(chain_get_handler);
