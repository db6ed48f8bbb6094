/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * SAs and policies in a saved state (save.h).
 *
 * An SA goes on sending behind the numbers that it may have used after it was saved: how many, no
 * file knows. So its next number is far ahead of the saved one, which a peer takes as packets that
 * were lost. What it received: all up to the saved number counts as seen. Packets that came after
 * it was saved can come again; who cannot have that rekeys.
 */

#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "netlink/save.h"
#include "netlink/xfrm.h"

/* Packets: of half a minute at ten million a second, and of days; a state just taken is of now. */
#define AHEAD (UINT32_C(1) << 28)
#define AHEAD_ESN (UINT64_C(1) << 40)
#define AHEAD_OWN (UINT32_C(1) << 20)

struct xfrm_saver {
	int (*each)(void *arg, struct nlmsghdr *nlh);
	void *arg;
	_Alignas(8) uint8_t message[NETLINK_MESSAGE_MAX];
};

bool
netlink_xfrm_is_part(uint16_t type)
{
	return type == NETLINK_SAVE_XFRM + XFRM_MSG_NEWSA ||
		type == NETLINK_SAVE_XFRM + XFRM_MSG_NEWPOLICY ||
		type == NETLINK_SAVE_XFRM + XFRM_MSG_SETDEFAULT;
}

bool
netlink_xfrm_is_default(uint16_t type)
{
	return type == NETLINK_SAVE_XFRM + XFRM_MSG_SETDEFAULT;
}

static const struct nlattr *
attr_find(const struct nlmsghdr *nlh, size_t header, uint16_t type)
{
	const char *end = mnl_nlmsg_get_payload_tail(nlh);
	const struct nlattr *attr = mnl_nlmsg_get_payload_offset(nlh, header);

	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

/* Saving. */

static int
save_message(void *arg, const struct nlmsghdr *nlh)
{
	struct xfrm_saver *s = arg;
	struct nlmsghdr *to = (struct nlmsghdr *)(void *)s->message;
	int ret;

	/* A larval SA waits for an IKE daemon that will not be told. */
	if (nlh->nlmsg_type == XFRM_MSG_NEWSA &&
		attr_find(nlh, sizeof(struct xfrm_usersa_info), XFRMA_ALG_AEAD) == NULL &&
		attr_find(nlh, sizeof(struct xfrm_usersa_info), XFRMA_ALG_CRYPT) == NULL &&
		attr_find(nlh, sizeof(struct xfrm_usersa_info), XFRMA_ALG_AUTH) == NULL)
		return 0;
	memset(to + 1, 0, NLMSG_ALIGN(nlh->nlmsg_len) - sizeof(*to));
	memcpy(to, nlh, nlh->nlmsg_len);
	to->nlmsg_len = NLMSG_ALIGN(nlh->nlmsg_len);
	to->nlmsg_type = (uint16_t)(NETLINK_SAVE_XFRM +
		(nlh->nlmsg_type == XFRM_MSG_GETDEFAULT ? XFRM_MSG_SETDEFAULT : nlh->nlmsg_type));
	to->nlmsg_flags = NLM_F_MULTI;
	to->nlmsg_pid = 0;
	ret = s->each(s->arg, to);
	explicit_bzero(s->message, NLMSG_ALIGN(nlh->nlmsg_len)); /* keys */
	return ret;
}

static int
save_dump(struct netlink_server *server, uint16_t type, struct xfrm_saver *s,
	char why[NETLINK_WHY_MAX])
{
	_Alignas(8) uint8_t buffer[64];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);

	nlh->nlmsg_type = type;
	return netlink_local_dump_of(server, NETLINK_XFRM, nlh, save_message, s, why);
}

int
netlink_xfrm_save(struct netlink_server *server, int (*each)(void *arg, struct nlmsghdr *nlh),
	void *arg, char why[NETLINK_WHY_MAX])
{
	struct xfrm_saver s = { .each = each, .arg = arg };
	struct xfrm_userpolicy_default def;
	_Alignas(8) uint8_t buffer[64];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	int ret;

	if (server->conf.ipsec == NULL)
		return 0;
	if ((ret = save_dump(server, XFRM_MSG_GETPOLICY, &s, why)) != 0 ||
		(ret = save_dump(server, XFRM_MSG_GETSA, &s, why)) != 0)
		return ret;
	/* A default comes last: while a state is made, everything is blocked. */
	ipsec_cache_default_get(server->conf.ipsec, &def);
	if (def.in == XFRM_USERPOLICY_ACCEPT && def.fwd == XFRM_USERPOLICY_ACCEPT &&
		def.out == XFRM_USERPOLICY_ACCEPT)
		return 0;
	nlh->nlmsg_type = XFRM_MSG_GETDEFAULT;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct xfrm_userpolicy_default));
	if ((ret = netlink_local_request_of(server, NETLINK_XFRM, nlh, NULL, why)) == 0)
		ret = save_message(&s, (const struct nlmsghdr *)(const void *)server->tx);
	return ret;
}

/* Restoring. */

static void
set_defaults(struct ipsec_cache *ic, uint8_t action)
{
	const struct xfrm_userpolicy_default def = { action, action, action };

	ipsec_cache_default_set(ic, &def);
}

void
netlink_xfrm_clear(struct netlink_server *server)
{
	struct ipsec_cache *ic = server->conf.ipsec;

	if (ic == NULL)
		return;
	/* What the policies protect does not pass in clear while there are none (D21). */
	for (uint8_t dir = XFRM_POLICY_IN; dir <= XFRM_POLICY_FWD; dir++)
		if (ipsec_cache_policy_count(ic, dir) > 0)
			set_defaults(ic, XFRM_USERPOLICY_BLOCK);
	(void)ipsec_cache_policy_flush(ic);
	(void)ipsec_cache_sa_flush(ic, 0);
}

void
netlink_xfrm_finish(struct netlink_server *server)
{
	if (server->conf.ipsec != NULL)
		set_defaults(server->conf.ipsec, XFRM_USERPOLICY_ACCEPT);
}

/* The number that it goes on behind, in its message. */
static void
move_ahead(struct nlmsghdr *nlh, bool own)
{
	const struct nlattr *val =
		attr_find(nlh, sizeof(struct xfrm_usersa_info), XFRMA_REPLAY_VAL);
	const struct nlattr *esn =
		attr_find(nlh, sizeof(struct xfrm_usersa_info), XFRMA_REPLAY_ESN_VAL);
	const struct xfrm_usersa_info *info = mnl_nlmsg_get_payload(nlh);
	struct xfrm_replay_state_esn e;
	struct xfrm_replay_state v;
	uint64_t oseq;

	if (val != NULL && mnl_attr_get_payload_len(val) >= sizeof(v)) {
		xfrm_payload(val, &v, sizeof(v));
		oseq = (uint64_t)v.oseq + (own ? AHEAD_OWN : AHEAD);
		v.oseq = oseq > UINT32_MAX ? UINT32_MAX : (uint32_t)oseq;
		memcpy(mnl_attr_get_payload(val), &v, sizeof(v));
	}
	if (esn == NULL || mnl_attr_get_payload_len(esn) < sizeof(e))
		return;
	xfrm_payload(esn, &e, sizeof(e));
	oseq = (uint64_t)e.oseq_hi << 32 | e.oseq;
	if ((info->flags & XFRM_STATE_ESN) != 0) {
		oseq = UINT64_MAX - oseq < AHEAD_ESN ? UINT64_MAX
						     : oseq + (own ? AHEAD_OWN : AHEAD_ESN);
	} else {
		oseq += own ? AHEAD_OWN : AHEAD;
		oseq = RTE_MIN(oseq, (uint64_t)UINT32_MAX);
	}
	e.oseq = (uint32_t)oseq;
	e.oseq_hi = (uint32_t)(oseq >> 32);
	memcpy(mnl_attr_get_payload(esn), &e, sizeof(e));
}

int
netlink_xfrm_restore(struct netlink_server *server, struct nlmsghdr *nlh,
	const struct netlink_devmap *devmap, char why[NETLINK_WHY_MAX])
{
	uint16_t type = nlh->nlmsg_type;
	int ret;

	nlh->nlmsg_type = (uint16_t)(type - NETLINK_SAVE_XFRM);
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (nlh->nlmsg_type == XFRM_MSG_NEWSA)
		move_ahead(nlh, devmap->own);
	ret = netlink_local_request_of(server, NETLINK_XFRM, nlh, devmap, why);
	nlh->nlmsg_type = type;
	return ret;
}
