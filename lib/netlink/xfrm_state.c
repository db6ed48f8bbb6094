/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * SAs: XFRM_MSG_NEWSA, UPDSA, DELSA, GETSA, ALLOCSPI, FLUSHSA, EXPIRE, GETSADINFO.
 */

#include <bsd/string.h>
#include <errno.h>
#include <linux/ipsec.h>
#include <netinet/in.h>
#include <string.h>

#include "netlink/xfrm.h"

#define ID_ATTRS (XFRM_BIT(XFRMA_MARK) | XFRM_BIT(XFRMA_SRCADDR) | XFRM_BIT(XFRMA_IF_ID))

static int
state_new(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_sa_spec spec;
	const char *why = "No memory";
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	if ((ret = xfrm_sa_parse(req, &spec)) == 0 &&
		(ret = ipsec_cache_sa_add(
			 ic, &spec, req->nlh->nlmsg_type == XFRM_MSG_UPDSA, &why)) != 0)
		ret = xfrm_fail(req, ret, why);
	explicit_bzero(&spec, sizeof(spec)); /* keys */
	return xfrm_end(req, ret);
}

/* Which SA a message is about. */
static int
parse_id(struct netlink_request *req, size_t header, const struct xfrm_usersa_id *usersa,
	struct ipsec_cache_sa_id *id)
{
	const struct nlattr *tb[XFRM_ATTRS];
	struct xfrm_mark mark;
	int ret;

	if ((ret = xfrm_parse(req, header, ID_ATTRS, tb)) != 0)
		return ret;
	if (usersa->family != AF_INET && usersa->family != AF_INET6)
		return netlink_fail(req, -EINVAL, NULL, "An SA is of the IPv4 or the IPv6 family");
	xfrm_mark(tb[XFRMA_MARK], &mark);
	*id = (struct ipsec_cache_sa_id){
		.daddr = usersa->daddr,
		.spi = usersa->spi,
		.family = usersa->family,
		.proto = usersa->proto,
		.mark = mark.v & mark.m,
	};
	return 0;
}

static int
fail_missing(struct netlink_request *req, const struct ipsec_cache_sa_id *id)
{
	return netlink_fail(req, -ESRCH, NULL,
		"There is no SA with SPI 0x%08x, this destination and mark", ntohl(id->spi));
}

static int
state_del(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_sa_id id;
	struct xfrm_usersa_id usersa;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	xfrm_header(req, &usersa, sizeof(usersa));
	if ((ret = parse_id(req, sizeof(usersa), &usersa, &id)) == 0 &&
		(ret = ipsec_cache_sa_del(ic, &id)) != 0)
		ret = fail_missing(req, &id);
	return xfrm_end(req, ret);
}

static int
state_get(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct ipsec_cache_sa_id id;
	const struct ipsec_cache_sa *sa;
	struct xfrm_usersa_id usersa;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	xfrm_header(req, &usersa, sizeof(usersa));
	if ((ret = parse_id(req, sizeof(usersa), &usersa, &id)) != 0)
		return xfrm_end(req, ret);
	if ((sa = ipsec_cache_sa_find(ic, &id)) == NULL)
		ret = fail_missing(req, &id);
	else if (!xfrm_sa_answer(req, sa, 0))
		ret = -EMSGSIZE;
	return xfrm_end(req, ret);
}

/* Dumps. */

struct selection {
	const struct nlattr *proto;
	bool filtered;
	struct xfrm_address_filter filter;
};

/*
 * As the kernel: a dump's request is looked at as far as it has attributes. Some programs send a
 * header of rtnetlink's, which is none.
 */
static void
parse_selection(const struct netlink_request *req, struct selection *s)
{
	const char *end = mnl_nlmsg_get_payload_tail(req->nlh);
	const struct nlattr *attr = mnl_nlmsg_get_payload(req->nlh);

	memset(s, 0, sizeof(*s));
	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr)) {
		if (mnl_attr_get_type(attr) == XFRMA_PROTO && mnl_attr_get_payload_len(attr) >= 1)
			s->proto = attr;
		if (mnl_attr_get_type(attr) == XFRMA_ADDRESS_FILTER &&
			mnl_attr_get_payload_len(attr) >= sizeof(s->filter)) {
			xfrm_payload(attr, &s->filter, sizeof(s->filter));
			s->filtered = true;
		}
	}
}

static bool
in_prefix(const xfrm_address_t *addr, const xfrm_address_t *prefix, uint8_t len)
{
	const uint8_t *a = (const uint8_t *)addr, *p = (const uint8_t *)prefix;

	return memcmp(a, p, len / 8) == 0 &&
		(len % 8 == 0 || ((a[len / 8] ^ p[len / 8]) & (uint8_t)(0xff00 >> len % 8)) == 0);
}

static bool
is_selected(const struct selection *s, const struct xfrm_usersa_info *info)
{
	if (s->proto != NULL) {
		uint8_t proto = mnl_attr_get_u8(s->proto);

		if (proto != 0 && proto != IPSEC_PROTO_ANY && proto != info->id.proto)
			return false;
	}
	return !s->filtered ||
		((s->filter.family == AF_UNSPEC || s->filter.family == info->family) &&
			in_prefix(&info->saddr, &s->filter.saddr, s->filter.splen) &&
			in_prefix(&info->id.daddr, &s->filter.daddr, s->filter.dplen));
}

static int
check_selection(struct netlink_request *req, const struct selection *s)
{
	if (s->filtered && (s->filter.splen > 128 || s->filter.dplen > 128))
		return netlink_fail(req, -EINVAL, NULL,
			"A prefix of XFRMA_ADDRESS_FILTER is longer than an address");
	return 0;
}

static int
state_dump(struct netlink_request *req)
{
	struct ipsec_cache *ic = req->conf->ipsec;
	uint64_t at = req->cursor[0];
	const struct ipsec_cache_sa *sa;
	struct ipsec_cache_sa_spec spec;
	struct selection s;
	int ret;

	if (ic == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
	parse_selection(req, &s);
	if ((ret = check_selection(req, &s)) != 0)
		return ret;
	if (at == 0)
		req->generation = ipsec_cache_generation(ic);
	req->interrupted |= req->generation != ipsec_cache_generation(ic);
	while ((sa = ipsec_cache_sa_next(ic, &at)) != NULL) {
		ipsec_cache_sa_describe(sa, &spec);
		ret = is_selected(&s, &spec.info) && !xfrm_sa_answer(req, sa, NLM_F_MULTI);
		explicit_bzero(&spec, sizeof(spec));
		if (ret != 0)
			return 1;
		req->cursor[0] = at;
	}
	return 0;
}

static int
state_flush(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	const struct nlattr *tb[XFRM_ATTRS];
	struct xfrm_usersa_flush flush;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	xfrm_header(req, &flush, sizeof(flush));
	if ((ret = xfrm_parse(req, sizeof(flush), 0, tb)) == 0)
		(void)ipsec_cache_sa_flush(ic, flush.proto); /* none to flush is no error */
	return xfrm_end(req, ret);
}

static int
state_alloc_spi(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	const struct nlattr *tb[XFRM_ATTRS];
	struct xfrm_userspi_info info;
	struct ipsec_cache_sa *sa;
	struct xfrm_mark mark;
	const char *why = "";
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	xfrm_header(req, &info, sizeof(info));
	if ((ret = xfrm_parse(req, sizeof(info),
		     XFRM_BIT(XFRMA_MARK) | XFRM_BIT(XFRMA_IF_ID) | XFRM_BIT(XFRM_ATTR_SA_DIR) |
			     XFRM_BIT(XFRM_ATTR_SA_PCPU),
		     tb)) != 0)
		return xfrm_end(req, ret);
	xfrm_mark(tb[XFRMA_MARK], &mark);
	ret = ipsec_cache_sa_alloc_spi(ic, &info, &mark, xfrm_u32(tb[XFRMA_IF_ID]), &sa, &why);
	if (ret != 0)
		ret = xfrm_fail(req, ret, why);
	else if (!xfrm_sa_answer(req, sa, 0))
		ret = -EMSGSIZE;
	return xfrm_end(req, ret);
}

/* An IKE daemon says that an SA's time is over. */
static int
state_expire(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	struct xfrm_user_expire expire;
	struct ipsec_cache_sa_id id;
	struct xfrm_usersa_id usersa;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	xfrm_header(req, &expire, sizeof(expire));
	usersa = (struct xfrm_usersa_id){
		.daddr = expire.state.id.daddr,
		.spi = expire.state.id.spi,
		.family = expire.state.family,
		.proto = expire.state.id.proto,
	};
	if ((ret = parse_id(req, sizeof(expire), &usersa, &id)) == 0 &&
		(ret = ipsec_cache_sa_expire(ic, &id, expire.hard != 0)) != 0)
		ret = fail_missing(req, &id);
	return xfrm_end(req, ret);
}

static int
state_info(struct netlink_request *req)
{
	struct ipsec_cache *ic = req->conf->ipsec;
	struct xfrmu_sadhinfo hash = { 0 };
	struct netlink_put put;
	uint32_t flags;

	if (ic == NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
	xfrm_header(req, &flags, sizeof(flags));
	hash.sadhcnt = hash.sadhmcnt = ipsec_cache_sa_buckets(ic);
	if (!netlink_put_begin(req, &put, XFRM_MSG_NEWSADINFO, 0, &flags, sizeof(flags)))
		return -EMSGSIZE;
	netlink_put_u32(&put, XFRMA_SAD_CNT, ipsec_cache_sa_count(ic));
	netlink_put_data(&put, XFRMA_SAD_HINFO, &hash, sizeof(hash));
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static struct netlink_handler state_new_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_NEWSA,
	.header = sizeof(struct xfrm_usersa_info),
	.doit = state_new,
};
NETLINK_REGISTER_HANDLER(state_new_handler);

static struct netlink_handler state_update_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_UPDSA,
	.header = sizeof(struct xfrm_usersa_info),
	.doit = state_new,
};
NETLINK_REGISTER_HANDLER(state_update_handler);

static struct netlink_handler state_del_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_DELSA,
	.header = sizeof(struct xfrm_usersa_id),
	.doit = state_del,
};
NETLINK_REGISTER_HANDLER(state_del_handler);

static struct netlink_handler state_get_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_GETSA,
	.header = sizeof(struct xfrm_usersa_id),
	.doit = state_get,
	.dump = state_dump,
	.dump_bare = true,
};
NETLINK_REGISTER_HANDLER(state_get_handler);

static struct netlink_handler state_flush_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_FLUSHSA,
	.header = sizeof(struct xfrm_usersa_flush),
	.doit = state_flush,
};
NETLINK_REGISTER_HANDLER(state_flush_handler);

static struct netlink_handler state_alloc_spi_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_ALLOCSPI,
	.header = sizeof(struct xfrm_userspi_info),
	.doit = state_alloc_spi,
};
NETLINK_REGISTER_HANDLER(state_alloc_spi_handler);

static struct netlink_handler state_expire_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_EXPIRE,
	.header = sizeof(struct xfrm_user_expire),
	.doit = state_expire,
};
NETLINK_REGISTER_HANDLER(state_expire_handler);

static struct netlink_handler state_info_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_GETSADINFO,
	.header = sizeof(uint32_t),
	.doit = state_info,
};
NETLINK_REGISTER_HANDLER(state_info_handler);
