/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Replay numbers and lifetimes of an SA as events: XFRM_MSG_GETAE, XFRM_MSG_NEWAE. A NEWAE sets
 * thresholds; the numbers of an SA that works are set when it is added, and then are its own.
 */

#include <bsd/string.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "netlink/xfrm.h"

#define NUMBERS \
	(XFRM_BIT(XFRMA_REPLAY_VAL) | XFRM_BIT(XFRMA_REPLAY_ESN_VAL) | XFRM_BIT(XFRMA_LTIME_VAL))
#define THRESHOLDS (XFRM_BIT(XFRMA_REPLAY_THRESH) | XFRM_BIT(XFRMA_ETIMER_THRESH))

void
xfrm_ae_header(const struct ipsec_cache_sa_spec *spec, uint32_t flags, struct xfrm_aevent_id *id)
{
	memset(id, 0, sizeof(*id));
	xfrm_sa_id_of(spec, &id->sa_id);
	id->saddr = spec->info.saddr;
	id->reqid = spec->info.reqid;
	id->flags = flags;
}

void
xfrm_ae_put(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec, uint32_t flags)
{
	xfrm_replay_put(put, spec);
	netlink_put_data(put, XFRMA_LTIME_VAL, &spec->info.curlft, sizeof(spec->info.curlft));
	if ((flags & XFRM_AE_RTHR) != 0)
		netlink_put_u32(put, XFRMA_REPLAY_THRESH, spec->replay_maxdiff);
	if ((flags & XFRM_AE_ETHR) != 0)
		netlink_put_u32(put, XFRMA_ETIMER_THRESH, spec->replay_maxage);
	xfrm_sa_put_tail(put, spec);
}

/* The SA that such a message names, and its attributes. */
static int
ae_find(struct netlink_request *req, struct ipsec_cache *ic, uint64_t allowed,
	const struct nlattr *tb[XFRM_ATTRS], struct xfrm_aevent_id *ae,
	struct ipsec_cache_sa_id *id)
{
	struct xfrm_mark mark;
	int ret;

	xfrm_header(req, ae, sizeof(*ae));
	if ((ret = xfrm_parse(req, sizeof(*ae), allowed | XFRM_BIT(XFRMA_MARK), tb)) != 0)
		return ret;
	xfrm_mark(tb[XFRMA_MARK], &mark);
	*id = (struct ipsec_cache_sa_id){
		.daddr = ae->sa_id.daddr,
		.spi = ae->sa_id.spi,
		.family = ae->sa_id.family,
		.proto = ae->sa_id.proto,
		.mark = mark.v & mark.m,
	};
	if (ipsec_cache_sa_find(ic, id) != NULL)
		return 0;
	return netlink_fail(req, -ESRCH, NULL,
		"There is no SA with SPI 0x%08x, this destination and mark", ntohl(id->spi));
}

static bool
ae_answer(struct netlink_request *req, const struct ipsec_cache_sa *sa, uint32_t flags)
{
	struct ipsec_cache_sa_spec spec;
	struct xfrm_aevent_id id;
	struct netlink_put put;
	bool ok;

	ipsec_cache_sa_describe(sa, &spec);
	xfrm_ae_header(&spec, flags, &id);
	ok = netlink_put_begin(req, &put, XFRM_MSG_NEWAE, 0, &id, sizeof(id));
	if (ok) {
		xfrm_ae_put(&put, &spec, flags);
		ok = netlink_put_end(req, &put);
	}
	explicit_bzero(&spec, sizeof(spec));
	return ok;
}

static int
ae_get(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	const struct nlattr *tb[XFRM_ATTRS];
	struct ipsec_cache_sa_id id;
	struct xfrm_aevent_id ae;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	if ((ret = ae_find(req, ic, 0, tb, &ae, &id)) == 0 &&
		!ae_answer(req, ipsec_cache_sa_find(ic, &id), ae.flags))
		ret = -EMSGSIZE;
	return xfrm_end(req, ret);
}

static int
ae_set(struct netlink_request *req, struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id,
	const struct nlattr *const tb[XFRM_ATTRS])
{
	struct ipsec_cache_sa_spec spec;
	int ret;

	if (tb[XFRMA_REPLAY_VAL] != NULL || tb[XFRMA_REPLAY_ESN_VAL] != NULL ||
		tb[XFRMA_LTIME_VAL] != NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL,
			"The numbers of an SA that works cannot be set; delete it and add it with "
			"them");
	if ((req->nlh->nlmsg_flags & NLM_F_REPLACE) == 0)
		return netlink_fail(
			req, -EINVAL, NULL, "XFRM_MSG_NEWAE without NLM_F_REPLACE does nothing");
	if (tb[XFRMA_REPLAY_THRESH] == NULL && tb[XFRMA_ETIMER_THRESH] == NULL)
		return netlink_fail(req, -EINVAL, NULL, "XFRM_MSG_NEWAE sets no threshold");
	ipsec_cache_sa_describe(ipsec_cache_sa_find(ic, id), &spec);
	if (tb[XFRMA_REPLAY_THRESH] != NULL)
		spec.replay_maxdiff = xfrm_u32(tb[XFRMA_REPLAY_THRESH]);
	if (tb[XFRMA_ETIMER_THRESH] != NULL)
		spec.replay_maxage = xfrm_u32(tb[XFRMA_ETIMER_THRESH]);
	ret = ipsec_cache_sa_thresholds(ic, id, spec.replay_maxdiff, spec.replay_maxage);
	explicit_bzero(&spec, sizeof(spec));
	return ret == 0 ? 0
			: netlink_fail(req, ret, NULL, "SA 0x%08x has no key yet", ntohl(id->spi));
}

static int
ae_new(struct netlink_request *req)
{
	struct ipsec_cache *ic = xfrm_begin(req);
	const struct nlattr *tb[XFRM_ATTRS];
	struct ipsec_cache_sa_id id;
	struct xfrm_aevent_id ae;
	int ret;

	if (ic == NULL)
		return -EOPNOTSUPP;
	if ((ret = ae_find(req, ic, NUMBERS | THRESHOLDS, tb, &ae, &id)) == 0)
		ret = ae_set(req, ic, &id, tb);
	return xfrm_end(req, ret);
}

static struct netlink_handler ae_get_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_GETAE,
	.header = sizeof(struct xfrm_aevent_id),
	.doit = ae_get,
};
NETLINK_REGISTER_HANDLER(ae_get_handler);

static struct netlink_handler ae_new_handler = {
	.protocol = NETLINK_XFRM,
	.type = XFRM_MSG_NEWAE,
	.header = sizeof(struct xfrm_aevent_id),
	.doit = ae_new,
};
NETLINK_REGISTER_HANDLER(ae_new_handler);
