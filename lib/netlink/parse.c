/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Requests are strict: what is not understood is refused by name, never ignored. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "netlink/server.h"

int
netlink_fail(struct netlink_request *req, int err, const struct nlattr *attr, const char *fmt, ...)
{
	const uint8_t *at = (const uint8_t *)attr, *start = (const uint8_t *)req->nlh;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(req->why, sizeof(req->why), fmt, ap);
	va_end(ap);
	req->bad_offset = 0;
	if (attr != NULL && at > start && at < start + req->nlh->nlmsg_len)
		req->bad_offset = (uint32_t)(at - start);
	return err;
}

static bool
policy_is(const struct netlink_attr_policy *policy, unsigned int type)
{
	return policy->type == type && policy->name != NULL;
}

/*
 * Short policies are sorted by type as a rule, so entry i has a type of at least i: the one for
 * `type` is at most that far in, and in a dense policy just there. In a long one each entry stands
 * at its type, with holes in between.
 */
static const struct netlink_attr_policy *
policy_find(const struct netlink_attr_policy *policy, size_t n, unsigned int type)
{
	size_t i = type < n ? type : n - 1;

	if (n == 0)
		return NULL;
	while (i > 0 && policy[i].type > type)
		i--;
	if (policy_is(&policy[i], type))
		return &policy[i];
	for (i = 0; i < n; i++)
		if (policy_is(&policy[i], type))
			return &policy[i];
	return NULL;
}

/* Do the attributes in [at, at + left) fit it? Their meaning is checked where they are parsed. */
static bool
attrs_fit(const uint8_t *at, size_t left)
{
	while (left > 0) {
		const struct nlattr *attr = (const struct nlattr *)(const void *)at;
		size_t step;

		if (left < sizeof(*attr) || attr->nla_len < sizeof(*attr) || attr->nla_len > left)
			return false;
		step = NLA_ALIGN(attr->nla_len);
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return true;
}

static int
fail_length(struct netlink_request *req, const struct nlattr *attr,
	const struct netlink_attr_policy *p, size_t len, size_t want)
{
	return netlink_fail(
		req, -EINVAL, attr, "%s has %zu bytes instead of %zu", p->name, len, want);
}

static int
check_string(struct netlink_request *req, const struct nlattr *attr,
	const struct netlink_attr_policy *p, const char *value, size_t len)
{
	size_t n = strnlen(value, len);

	if (n == len)
		return netlink_fail(req, -EINVAL, attr, "%s is not terminated", p->name);
	if (p->max != 0 && n + 1 > p->max)
		return netlink_fail(
			req, -EINVAL, attr, "%s is longer than %u characters", p->name, p->max - 1);
	if (n < p->min)
		return netlink_fail(
			req, -EINVAL, attr, "%s is shorter than %u characters", p->name, p->min);
	return 0;
}

static int
check_value(
	struct netlink_request *req, const struct nlattr *attr, const struct netlink_attr_policy *p)
{
	static const uint8_t size[] = { [NETLINK_ATTR_U8] = 1,
		[NETLINK_ATTR_U16] = 2,
		[NETLINK_ATTR_U32] = 4,
		[NETLINK_ATTR_U64] = 8 };
	size_t len = attr->nla_len - sizeof(*attr);
	const void *value = attr + 1;

	if (p->what != NETLINK_ATTR_IGNORED && p->what != NETLINK_ATTR_REFUSED &&
		p->what != NETLINK_ATTR_NESTED && (attr->nla_type & NLA_F_NESTED) != 0)
		return netlink_fail(
			req, -EINVAL, attr, "%s is marked as nested, which it is not", p->name);
	switch (p->what) {
	case NETLINK_ATTR_U8:
	case NETLINK_ATTR_U16:
	case NETLINK_ATTR_U32:
	case NETLINK_ATTR_U64:
		return len == size[p->what] ? 0 : fail_length(req, attr, p, len, size[p->what]);
	case NETLINK_ATTR_FLAG:
		return len == 0 ? 0 : fail_length(req, attr, p, len, 0);
	case NETLINK_ATTR_BINARY:
		if (len < p->min)
			return netlink_fail(req, -EINVAL, attr,
				"%s has %zu bytes, at least %u are needed", p->name, len, p->min);
		if (p->max != 0 && len > p->max)
			return netlink_fail(req, -EINVAL, attr,
				"%s has %zu bytes, at most %u are allowed", p->name, len, p->max);
		return 0;
	case NETLINK_ATTR_STRING:
		return check_string(req, attr, p, value, len);
	case NETLINK_ATTR_NESTED:
		if (!attrs_fit(value, len))
			return netlink_fail(req, -EINVAL, attr,
				"an attribute inside %s does not fit into it", p->name);
		return 0;
	case NETLINK_ATTR_REFUSED:
		return netlink_fail(req, -EOPNOTSUPP, attr, "%s is not supported", p->name);
	case NETLINK_ATTR_IGNORED:
		return 0;
	}
	return -EINVAL;
}

static int
parse(struct netlink_request *req, const uint8_t *at, size_t left,
	const struct netlink_attr_policy *policy, size_t n_policy, const struct nlattr **tb,
	size_t n_tb)
{
	memset(tb, 0, n_tb * sizeof(*tb));
	while (left > 0) {
		const struct nlattr *attr = (const struct nlattr *)(const void *)at;
		const struct netlink_attr_policy *p;
		unsigned int type;
		size_t step;
		int err;

		if (left < sizeof(*attr))
			return netlink_fail(req, -EINVAL, attr,
				"%zu bytes are left over after the attributes at byte %zu", left,
				(size_t)(at - (const uint8_t *)req->nlh));
		if (attr->nla_len < sizeof(*attr) || attr->nla_len > left)
			return netlink_fail(req, -EINVAL, attr,
				"the attribute at byte %zu has length %u where %zu are left",
				(size_t)(at - (const uint8_t *)req->nlh), attr->nla_len, left);
		type = attr->nla_type & NLA_TYPE_MASK;
		p = policy_find(policy, n_policy, type);
		if (p == NULL || type >= n_tb)
			return netlink_fail(
				req, -EOPNOTSUPP, attr, "attribute %u is not supported", type);
		if (tb[type] != NULL)
			return netlink_fail(req, -EINVAL, attr, "%s is given twice", p->name);
		if ((err = check_value(req, attr, p)) != 0)
			return err;
		tb[type] = attr;
		step = NLA_ALIGN(attr->nla_len);
		if (step >= left)
			break;
		at += step;
		left -= step;
	}
	return 0;
}

int
netlink_parse(struct netlink_request *req, size_t header, const struct netlink_attr_policy *policy,
	size_t n_policy, const struct nlattr **tb, size_t n_tb)
{
	size_t off = NLMSG_HDRLEN + NLMSG_ALIGN(header), len = req->nlh->nlmsg_len;

	/* A message may end with its unpadded header. */
	return parse(req, (const uint8_t *)req->nlh + off, len > off ? len - off : 0, policy,
		n_policy, tb, n_tb);
}

int
netlink_parse_nested(struct netlink_request *req, const struct nlattr *nest,
	const struct netlink_attr_policy *policy, size_t n_policy, const struct nlattr **tb,
	size_t n_tb)
{
	return parse(req, (const uint8_t *)(nest + 1), nest->nla_len - sizeof(*nest), policy,
		n_policy, tb, n_tb);
}
