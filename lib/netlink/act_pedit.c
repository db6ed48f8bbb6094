/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* pedit: edits words of headers. */

#include <errno.h>
#include <linux/tc_act/tc_pedit.h>
#include <rte_errno.h>
#include <string.h>

#include "classifier/pedit.h"
#include "netlink/tc.h"

#define SEL_MAX (sizeof(struct tc_pedit_sel) + PEDIT_KEYS_MAX * sizeof(struct tc_pedit_key))

static const struct netlink_attr_policy pedit_policy[] = {
	{ TCA_PEDIT_PARMS, "TCA_PEDIT_PARMS", NETLINK_ATTR_BINARY, sizeof(struct tc_pedit_sel),
		SEL_MAX },
	{ TCA_PEDIT_PARMS_EX, "TCA_PEDIT_PARMS_EX", NETLINK_ATTR_BINARY,
		sizeof(struct tc_pedit_sel), SEL_MAX },
	{ TCA_PEDIT_KEYS_EX, "TCA_PEDIT_KEYS_EX", NETLINK_ATTR_NESTED },
	/* what a dump says beside */
	{ TCA_PEDIT_TM, "TCA_PEDIT_TM", NETLINK_ATTR_IGNORED },
	{ TCA_PEDIT_PAD, "TCA_PEDIT_PAD", NETLINK_ATTR_IGNORED },
};

static const struct netlink_attr_policy key_policy[] = {
	{ TCA_PEDIT_KEY_EX_HTYPE, "TCA_PEDIT_KEY_EX_HTYPE", NETLINK_ATTR_U16 },
	{ TCA_PEDIT_KEY_EX_CMD, "TCA_PEDIT_KEY_EX_CMD", NETLINK_ATTR_U16 },
};

static int
parse_key_ex(struct netlink_request *req, const struct nlattr *entry, struct pedit_key *key)
{
	const struct nlattr *tb[TCA_PEDIT_KEY_EX_MAX + 1];
	uint16_t header, command;
	int ret;

	if (mnl_attr_get_type(entry) != TCA_PEDIT_KEY_EX)
		return netlink_fail(
			req, -EINVAL, entry, "TCA_PEDIT_KEYS_EX holds TCA_PEDIT_KEY_EX only");
	ret = netlink_parse_nested(
		req, entry, key_policy, RTE_DIM(key_policy), tb, TCA_PEDIT_KEY_EX_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_PEDIT_KEY_EX_HTYPE] == NULL || tb[TCA_PEDIT_KEY_EX_CMD] == NULL)
		return netlink_fail(
			req, -EINVAL, entry, "Pedit missing required HTYPE and CMD of a key");
	header = mnl_attr_get_u16(tb[TCA_PEDIT_KEY_EX_HTYPE]);
	command = mnl_attr_get_u16(tb[TCA_PEDIT_KEY_EX_CMD]);
	if (header > TCA_PEDIT_HDR_TYPE_MAX || command > TCA_PEDIT_CMD_MAX)
		return netlink_fail(req, -EINVAL, entry, "Pedit key is malformed");
	key->header = (uint8_t)header;
	key->command = (uint8_t)command;
	return 0;
}

/* One entry for each key; all have the same type, so that netlink_parse_nested() does not fit. */
static int
parse_keys_ex(
	struct netlink_request *req, const struct nlattr *list, struct pedit_key *keys, uint32_t n)
{
	const char *end = (const char *)mnl_attr_get_payload(list) + mnl_attr_get_payload_len(list);
	const struct nlattr *entry = mnl_attr_get_payload(list);
	uint32_t i = 0;
	int ret;

	for (; mnl_attr_ok(entry, (int)(end - (const char *)entry)); entry = mnl_attr_next(entry)) {
		if (i == n)
			return netlink_fail(req, -EINVAL, entry,
				"Can't parse more extended keys than requested");
		if ((ret = parse_key_ex(req, entry, &keys[i++])) != 0)
			return ret;
	}
	if (i < n)
		return netlink_fail(
			req, -EINVAL, list, "Not enough extended keys to parse: %u of %u", i, n);
	return 0;
}

static int
parse_keys(struct netlink_request *req, const struct nlattr *selection,
	const struct nlattr *keys_ex, struct pedit_key keys[PEDIT_KEYS_MAX], uint32_t *n)
{
	const struct tc_pedit_sel *sel = mnl_attr_get_payload(selection);
	size_t len = mnl_attr_get_payload_len(selection);

	*n = sel->nkeys;
	if (*n == 0)
		return netlink_fail(req, -EINVAL, selection, "Pedit requires keys to be passed");
	if (*n > PEDIT_KEYS_MAX)
		return netlink_fail(
			req, -EINVAL, selection, "Pedit takes at most %d keys", PEDIT_KEYS_MAX);
	if (len != sizeof(*sel) + *n * sizeof(sel->keys[0]))
		return netlink_fail(req, -EINVAL, selection,
			"Length of TCA_PEDIT_PARMS or TCA_PEDIT_PARMS_EX pedit attribute is "
			"invalid");
	for (uint32_t i = 0; i < *n; i++) {
		struct tc_pedit_key key = sel->keys[i];

		if ((key.off & 3) != 0)
			return netlink_fail(
				req, -EINVAL, selection, "Offset must be on 32 bit boundaries");
		keys[i] = (struct pedit_key){
			.header = TCA_PEDIT_KEY_EX_HDR_TYPE_NETWORK,
			.command = TCA_PEDIT_KEY_EX_CMD_SET,
			.off = (int32_t)key.off,
			.mask = key.mask,
			.value = key.val,
			.at = key.at,
			.offmask = key.offmask,
			.shift = key.shift,
		};
	}
	return keys_ex != NULL ? parse_keys_ex(req, keys_ex, keys, *n) : 0;
}

static int
pedit_parse(struct netlink_request *req, const struct nlattr *options,
	const struct action_params *old, uint32_t *index, struct action_params **params)
{
	const struct nlattr *tb[TCA_PEDIT_MAX + 1], *selection;
	struct pedit_key keys[PEDIT_KEYS_MAX];
	const struct tc_pedit_sel *sel;
	uint32_t n;
	int ret;

	(void)old;
	ret = netlink_parse_nested(
		req, options, pedit_policy, RTE_DIM(pedit_policy), tb, TCA_PEDIT_MAX + 1);
	if (ret != 0)
		return ret;
	selection = tb[TCA_PEDIT_PARMS] != NULL ? tb[TCA_PEDIT_PARMS] : tb[TCA_PEDIT_PARMS_EX];
	if (selection == NULL)
		return netlink_fail(req, -EINVAL, options,
			"Pedit requires TCA_PEDIT_PARMS or TCA_PEDIT_PARMS_EX attribute");
	if ((ret = parse_keys(req, selection, tb[TCA_PEDIT_KEYS_EX], keys, &n)) != 0)
		return ret;
	sel = mnl_attr_get_payload(selection);
	*index = sel->index;
	*params = pedit_params_create(sel->action, sel->flags, n, keys);
	if (*params == NULL)
		return netlink_fail(req, -rte_errno, selection, "pedit: %s", strerror(rte_errno));
	return 0;
}

static bool
is_plain(const struct pedit_params *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->keys[i].header != TCA_PEDIT_KEY_EX_HDR_TYPE_NETWORK ||
			p->keys[i].command != TCA_PEDIT_KEY_EX_CMD_SET)
			return false;
	return true;
}

static void
put_keys_ex(struct netlink_put *put, const struct pedit_params *p)
{
	struct nlattr *list = netlink_put_nest(put, TCA_PEDIT_KEYS_EX), *entry;

	for (uint32_t i = 0; i < p->n; i++) {
		entry = netlink_put_nest(put, TCA_PEDIT_KEY_EX);
		netlink_put_u16(put, TCA_PEDIT_KEY_EX_HTYPE, p->keys[i].header);
		netlink_put_u16(put, TCA_PEDIT_KEY_EX_CMD, p->keys[i].command);
		netlink_put_nest_end(put, entry);
	}
	netlink_put_nest_end(put, list);
}

static void
pedit_put(struct netlink_put *put, const struct action *action, const struct action_params *params)
{
	const struct pedit_params *p = (const struct pedit_params *)params;
	_Alignas(struct tc_pedit_sel) char buf[SEL_MAX] = { 0 };
	struct tc_pedit_sel *sel = (void *)buf;
	bool plain = is_plain(p);

	sel->index = action->index;
	sel->action = params->verdict;
	sel->refcnt = (int)action->refs;
	sel->bindcnt = (int)action->binds;
	sel->nkeys = (unsigned char)p->n;
	sel->flags = p->flags;
	for (uint32_t i = 0; i < p->n; i++) {
		const struct pedit_key *key = &p->keys[i];

		sel->keys[i].mask = key->mask;
		sel->keys[i].val = key->value;
		sel->keys[i].off = (uint32_t)key->off;
		sel->keys[i].at = key->at;
		sel->keys[i].offmask = key->offmask;
		sel->keys[i].shift = key->shift;
	}
	if (!plain)
		put_keys_ex(put, p);
	netlink_put_data(put, plain ? TCA_PEDIT_PARMS : TCA_PEDIT_PARMS_EX, sel,
		sizeof(*sel) + p->n * sizeof(sel->keys[0]));
}

static struct netlink_action_kind pedit_kind = {
	.ops = &pedit_action_ops,
	.parse = pedit_parse,
	.put = pedit_put,
	.tm_type = TCA_PEDIT_TM,
};

static void __attribute__((constructor)) pedit_register(void)
{
	netlink_action_kind_register(&pedit_kind);
}
