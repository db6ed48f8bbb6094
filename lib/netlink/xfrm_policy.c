/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Policies: XFRM_MSG_NEWPOLICY, UPDPOLICY, DELPOLICY, GETPOLICY, FLUSHPOLICY, POLEXPIRE.
 */

#include <errno.h>
#include <string.h>

#include "netlink/xfrm.h"

#define ID_ATTRS (XFRM_BIT(XFRMA_POLICY_TYPE) | XFRM_BIT(XFRMA_MARK) | XFRM_BIT(XFRMA_IF_ID))

/* What names a policy beside its header. */
static int
parse_attrs(struct netlink_request *req, size_t header, uint64_t allowed,
	const struct nlattr *tb[XFRM_ATTRS], struct ipsec_cache_policy_spec *spec)
{
	struct xfrm_userpolicy_type type;
	int ret;

	if ((ret = xfrm_parse(req, header, allowed, tb)) != 0 ||
		(ret = xfrm_selector(req, &spec->info.sel)) != 0)
		return ret;
	xfrm_mark(tb[XFRMA_MARK], &spec->mark);
	spec->if_id = xfrm_u32(tb[XFRMA_IF_ID]);
	if (tb[XFRMA_POLICY_TYPE] != NULL) {
		xfrm_payload(tb[XFRMA_POLICY_TYPE], &type, sizeof(type));
		spec->type = type.type;
	}
	if (spec->type != XFRM_POLICY_TYPE_MAIN)
		return netlink_fail(req, -EOPNOTSUPP, tb[XFRMA_POLICY_TYPE],
			"Policies of type sub are not supported");
	return 0;
}

static int
parse_templates(struct netlink_request *req, const struct nlattr *attr,
	struct ipsec_cache_policy_spec *spec)
{
	const uint8_t *p = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr), n = len / sizeof(struct xfrm_user_tmpl);

	if (len % sizeof(struct xfrm_user_tmpl) != 0)
		return netlink_fail(req, -EINVAL, attr,
			"XFRMA_TMPL has %zu bytes, which is no number of templates", len);
	if (n > IPSEC_CACHE_TEMPLATES_MAX)
		return netlink_fail(req, -EINVAL, attr, "A policy has at most %d templates",
			IPSEC_CACHE_TEMPLATES_MAX);
	spec->n_tmpl = (unsigned int)n;
	memcpy(spec->tmpl, p, len);
	for (size_t i = 0; i < n; i++)
		if (spec->tmpl[i].family == AF_UNSPEC)
			spec->tmpl[i].family = spec->info.sel.family;
	return 0;
}

static int
policy_new(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_policy_spec spec;
	const struct nlattr *tb[XFRM_ATTRS];
	const char *why = "";
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	memset(&spec, 0, sizeof(spec));
	xfrm_header(req, &spec.info, sizeof(spec.info));
	ret = parse_attrs(req, sizeof(spec.info), ID_ATTRS | XFRM_BIT(XFRMA_TMPL), tb, &spec);
	if (ret == 0 && tb[XFRMA_TMPL] != NULL)
		ret = parse_templates(req, tb[XFRMA_TMPL], &spec);
	if (ret == 0 &&
		(ret = ipsec_cache_policy_add(
			 ic, &spec, req->nlh->nlmsg_type == XFRM_MSG_UPDPOLICY, &why)) != 0)
		ret = xfrm_fail(req, ret, why);
	return xfrm_end(req, ret);
}

/* Which policy a message with a struct xfrm_userpolicy_id is about. */
static int
parse_id(struct netlink_request *req, struct ipsec_cache_policy_spec *which)
{
	const struct nlattr *tb[XFRM_ATTRS];
	struct xfrm_userpolicy_id id;

	memset(which, 0, sizeof(*which));
	xfrm_header(req, &id, sizeof(id));
	which->info.sel = id.sel;
	which->info.index = id.index;
	which->info.dir = id.dir;
	if (id.dir > XFRM_POLICY_FWD)
		return netlink_fail(req, -EINVAL, NULL, "A policy's direction is in, out or fwd");
	return parse_attrs(req, sizeof(id), ID_ATTRS, tb, which);
}

static int
fail_missing(struct netlink_request *req, const struct ipsec_cache_policy_spec *which)
{
	if (which->info.index != 0)
		return netlink_fail(req, -ENOENT, NULL,
			"There is no policy with index %u, this direction, mark and if_id",
			which->info.index);
	return netlink_fail(req, -ENOENT, NULL,
		"There is no policy with this selector, direction, mark and if_id");
}

static int
policy_del(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_policy_spec which;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	if ((ret = parse_id(req, &which)) == 0 && (ret = ipsec_cache_policy_del(ic, &which)) != 0)
		ret = fail_missing(req, &which);
	return xfrm_end(req, ret);
}

void
xfrm_policy_put(struct netlink_put *put, const struct ipsec_cache_policy_spec *spec)
{
	const struct xfrm_userpolicy_type type = { .type = spec->type };

	if (spec->n_tmpl > 0)
		netlink_put_data(put, XFRMA_TMPL, spec->tmpl, spec->n_tmpl * sizeof(spec->tmpl[0]));
	netlink_put_data(put, XFRMA_POLICY_TYPE, &type, sizeof(type));
	if (spec->mark.v != 0 || spec->mark.m != 0)
		netlink_put_data(put, XFRMA_MARK, &spec->mark, sizeof(spec->mark));
	if (spec->if_id != 0)
		netlink_put_u32(put, XFRMA_IF_ID, spec->if_id);
}

static bool
policy_answer(struct netlink_request *req, const struct ipsec_cache_policy *policy, uint16_t flags)
{
	struct ipsec_cache_policy_spec spec;
	struct netlink_put put;

	ipsec_cache_policy_describe(policy, &spec);
	if (req->bare)
		memset(&spec.info.curlft, 0, sizeof(spec.info.curlft));
	if (!netlink_put_begin(req, &put, XFRM_MSG_NEWPOLICY, flags, &spec.info, sizeof(spec.info)))
		return false;
	xfrm_policy_put(&put, &spec);
	return netlink_put_end(req, &put);
}

static int
policy_get(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	const struct ipsec_cache_policy *policy;
	struct ipsec_cache_policy_spec which;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	if ((ret = parse_id(req, &which)) != 0)
		return xfrm_end(req, ret);
	if ((policy = ipsec_cache_policy_find(ic, &which)) == NULL)
		ret = fail_missing(req, &which);
	else if (!policy_answer(req, policy, 0))
		ret = -EMSGSIZE;
	return xfrm_end(req, ret);
}

static int
policy_dump(struct netlink_request *req)
{
	struct ipsec_cache *ic = req->conf->ipsec;
	const struct ipsec_cache_policy *policy;
	uint64_t at = req->cursor[0];

	if (ic == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
	if (at == 0)
		req->generation = ipsec_cache_generation(ic);
	req->interrupted |= req->generation != ipsec_cache_generation(ic);
	while ((policy = ipsec_cache_policy_next(ic, &at)) != NULL) {
		if (!policy_answer(req, policy, NLM_F_MULTI))
			return 1;
		req->cursor[0] = at;
	}
	return 0;
}

static int
policy_flush(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_policy_spec spec;
	const struct nlattr *tb[XFRM_ATTRS];
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	memset(&spec, 0, sizeof(spec));
	if ((ret = parse_attrs(req, 0, XFRM_BIT(XFRMA_POLICY_TYPE), tb, &spec)) == 0)
		(void)ipsec_cache_policy_flush(ic); /* none to flush is no error */
	return xfrm_end(req, ret);
}

static int
policy_expire(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_policy_spec which;
	const struct nlattr *tb[XFRM_ATTRS];
	struct xfrm_user_polexpire expire;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	memset(&which, 0, sizeof(which));
	xfrm_header(req, &expire, sizeof(expire));
	which.info = expire.pol;
	ret = parse_attrs(req, sizeof(expire), ID_ATTRS | XFRM_BIT(XFRMA_TMPL), tb, &which);
	if (ret == 0 && (ret = ipsec_cache_policy_expire(ic, &which, expire.hard != 0)) != 0)
		ret = fail_missing(req, &which);
	return xfrm_end(req, ret);
}

static struct netlink_handler policy_new_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_NEWPOLICY,
	.header = sizeof(struct xfrm_userpolicy_info),
	.doit = policy_new,
};
NETLINK_REGISTER_HANDLER(policy_new_handler);

static struct netlink_handler policy_update_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_UPDPOLICY,
	.header = sizeof(struct xfrm_userpolicy_info),
	.doit = policy_new,
};
NETLINK_REGISTER_HANDLER(policy_update_handler);

static struct netlink_handler policy_del_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_DELPOLICY,
	.header = sizeof(struct xfrm_userpolicy_id),
	.doit = policy_del,
};
NETLINK_REGISTER_HANDLER(policy_del_handler);

static struct netlink_handler policy_get_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_GETPOLICY,
	.header = sizeof(struct xfrm_userpolicy_id),
	.doit = policy_get,
	.dump = policy_dump,
	.dump_bare = true,
};
NETLINK_REGISTER_HANDLER(policy_get_handler);

static struct netlink_handler policy_flush_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_FLUSHPOLICY,
	.header = 0,
	.doit = policy_flush,
};
NETLINK_REGISTER_HANDLER(policy_flush_handler);

static struct netlink_handler policy_expire_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_POLEXPIRE,
	.header = sizeof(struct xfrm_user_polexpire),
	.doit = policy_expire,
};
NETLINK_REGISTER_HANDLER(policy_expire_handler);
