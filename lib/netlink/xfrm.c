/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What the messages of NETLINK_XFRM share: the instance, who changed it, attributes. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/xfrm.h"

/* The kernel takes longer payloads than it knows. */
#define AT_LEAST(type, size) \
	{ \
		type, #type, NETLINK_ATTR_BINARY, size, 0 \
	}
#define U32(type) \
	{ \
		type, #type, NETLINK_ATTR_U32 \
	}
#define REFUSED(type) \
	{ \
		type, #type, NETLINK_ATTR_REFUSED \
	}

static const struct netlink_attr_policy policy[] = {
	AT_LEAST(XFRMA_ALG_AUTH, sizeof(struct xfrm_algo)),
	AT_LEAST(XFRMA_ALG_CRYPT, sizeof(struct xfrm_algo)),
	REFUSED(XFRMA_ALG_COMP),
	AT_LEAST(XFRMA_ENCAP, sizeof(struct xfrm_encap_tmpl)),
	{ XFRMA_TMPL, "XFRMA_TMPL", NETLINK_ATTR_BINARY, 0, 0 },
	AT_LEAST(XFRMA_SA, sizeof(struct xfrm_usersa_info)),
	AT_LEAST(XFRMA_POLICY, sizeof(struct xfrm_userpolicy_info)),
	REFUSED(XFRMA_SEC_CTX),
	AT_LEAST(XFRMA_LTIME_VAL, sizeof(struct xfrm_lifetime_cur)),
	AT_LEAST(XFRMA_REPLAY_VAL, sizeof(struct xfrm_replay_state)),
	U32(XFRMA_REPLAY_THRESH),
	U32(XFRMA_ETIMER_THRESH),
	AT_LEAST(XFRMA_SRCADDR, sizeof(xfrm_address_t)),
	REFUSED(XFRMA_COADDR),
	{ XFRMA_LASTUSED, "XFRMA_LASTUSED", NETLINK_ATTR_U64 },
	AT_LEAST(XFRMA_POLICY_TYPE, sizeof(struct xfrm_userpolicy_type)),
	REFUSED(XFRMA_MIGRATE),
	AT_LEAST(XFRMA_ALG_AEAD, sizeof(struct xfrm_algo_aead)),
	REFUSED(XFRMA_KMADDRESS),
	AT_LEAST(XFRMA_ALG_AUTH_TRUNC, sizeof(struct xfrm_algo_auth)),
	AT_LEAST(XFRMA_MARK, sizeof(struct xfrm_mark)),
	U32(XFRMA_TFCPAD),
	AT_LEAST(XFRMA_REPLAY_ESN_VAL, sizeof(struct xfrm_replay_state_esn)),
	U32(XFRMA_SA_EXTRA_FLAGS),
	{ XFRMA_PROTO, "XFRMA_PROTO", NETLINK_ATTR_U8 },
	AT_LEAST(XFRMA_ADDRESS_FILTER, sizeof(struct xfrm_address_filter)),
	{ XFRMA_PAD, "XFRMA_PAD", NETLINK_ATTR_IGNORED }, /* it aligns what follows */
	AT_LEAST(XFRMA_OFFLOAD_DEV, sizeof(struct xfrm_user_offload)),
	U32(XFRMA_SET_MARK),
	U32(XFRMA_SET_MARK_MASK),
	U32(XFRMA_IF_ID),
	REFUSED(XFRMA_MTIMER_THRESH),
	{ XFRM_ATTR_SA_DIR, "XFRMA_SA_DIR", NETLINK_ATTR_U8 },
	{ XFRM_ATTR_NAT_KEEPALIVE, "XFRMA_NAT_KEEPALIVE_INTERVAL", NETLINK_ATTR_REFUSED },
	{ XFRM_ATTR_SA_PCPU, "XFRMA_SA_PCPU", NETLINK_ATTR_U32 },
};

/* The request whose change is under way; NULL: the change came from packets or timers. */
struct xfrm {
	struct netlink_server *server;
	struct netlink_request *req;
};

static void
changed(void *arg, enum ipsec_cache_event event, const void *object)
{
	struct xfrm *x = arg;

	xfrm_notify(x->server, x->req, event, object);
}

static int
xfrm_create(struct netlink_server *server, void **state)
{
	const struct netlink_conf *conf = netlink_server_conf(server);
	struct xfrm *x;

	if (conf->ipsec == NULL)
		return 0;
	if ((x = calloc(1, sizeof(*x))) == NULL)
		return -ENOMEM;
	x->server = server;
	*state = x;
	ipsec_cache_listen(conf->ipsec, changed, x);
	return 0;
}

static void
xfrm_destroy(struct netlink_server *server, void *state)
{
	const struct netlink_conf *conf = netlink_server_conf(server);

	if (conf->ipsec != NULL)
		ipsec_cache_listen(conf->ipsec, NULL, NULL);
	free(state);
}

static struct netlink_family xfrm_family_state = {
	.create = xfrm_create,
	.destroy = xfrm_destroy,
};
NETLINK_REGISTER_FAMILY(xfrm_family_state);

struct ipsec_cache *
xfrm_begin(struct netlink_request *req)
{
	struct xfrm *x;

	if (req->conf->ipsec == NULL) {
		(void)netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no IPsec");
		return NULL;
	}
	x = netlink_family_state(req->server, &xfrm_family_state);
	x->req = req;
	return req->conf->ipsec;
}

int
xfrm_end(struct netlink_request *req, int ret)
{
	struct xfrm *x = netlink_family_state(req->server, &xfrm_family_state);

	x->req = NULL;
	return ret;
}

static const char *
attr_name(unsigned int type)
{
	for (size_t i = 0; i < RTE_DIM(policy); i++)
		if (policy[i].type == type)
			return policy[i].name;
	return "?";
}

int
xfrm_parse(struct netlink_request *req, size_t header, uint64_t allowed,
	const struct nlattr *tb[XFRM_ATTRS])
{
	int ret = netlink_parse(req, header, policy, RTE_DIM(policy), tb, XFRM_ATTRS);

	if (ret != 0)
		return ret;
	for (unsigned int i = 0; i < XFRM_ATTRS; i++)
		if (tb[i] != NULL && i != XFRMA_PAD && (allowed & XFRM_BIT(i)) == 0)
			return netlink_fail(req, -EOPNOTSUPP, tb[i],
				"%s is not supported in this message", attr_name(i));
	return 0;
}

void
xfrm_header(const struct netlink_request *req, void *header, size_t len)
{
	memcpy(header, mnl_nlmsg_get_payload(req->nlh), len);
}

void
xfrm_payload(const struct nlattr *attr, void *to, size_t len)
{
	memcpy(to, mnl_attr_get_payload(attr), len);
}

uint32_t
xfrm_u32(const struct nlattr *attr)
{
	return attr != NULL ? mnl_attr_get_u32(attr) : 0;
}

void
xfrm_mark(const struct nlattr *attr, struct xfrm_mark *mark)
{
	memset(mark, 0, sizeof(*mark));
	if (attr != NULL)
		xfrm_payload(attr, mark, sizeof(*mark));
}

int
xfrm_fail(struct netlink_request *req, int err, const char *why)
{
	return netlink_fail(req, err, NULL, "%s", why);
}

int
xfrm_selector(struct netlink_request *req, struct xfrm_selector *sel)
{
	struct netlink_dev dev;
	int ret;

	if (sel->ifindex == 0)
		return 0;
	if ((ret = netlink_dev_by_index(req, (uint32_t)sel->ifindex, &dev)) == 0)
		sel->ifindex = (int)dev.ifindex;
	return ret;
}
