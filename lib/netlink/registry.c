/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What is served: handlers, kinds and families, filled in by constructors and constant after that.
 */

#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <rte_common.h>
#include <rte_debug.h>
#include <string.h>

#include "netlink/server.h"

#define TYPES_MAX 256

static struct netlink_handler *handlers[NETLINK_PROTOCOLS][TYPES_MAX];
static STAILQ_HEAD(, netlink_action_kind) action_kinds = STAILQ_HEAD_INITIALIZER(action_kinds);
static STAILQ_HEAD(, netlink_filter_kind) filter_kinds = STAILQ_HEAD_INITIALIZER(filter_kinds);
static struct netlink_family *families[NETLINK_FAMILIES_MAX];
static unsigned int n_families;

int
netlink_protocol_index(int protocol)
{
	if (protocol == NETLINK_ROUTE)
		return 0;
	return protocol == NETLINK_XFRM ? 1 : -1;
}

void
netlink_handler_register(struct netlink_handler *handler)
{
	int p = netlink_protocol_index(handler->protocol);

	RTE_VERIFY(p >= 0 && handler->type < TYPES_MAX && handlers[p][handler->type] == NULL);
	handlers[p][handler->type] = handler;
}

const struct netlink_handler *
netlink_handler_find(int protocol, uint16_t type)
{
	int p = netlink_protocol_index(protocol);

	return p >= 0 && type < TYPES_MAX ? handlers[p][type] : NULL;
}

void
netlink_action_kind_register(struct netlink_action_kind *kind)
{
	RTE_VERIFY(netlink_action_kind_find(kind->ops->kind) == NULL);
	STAILQ_INSERT_TAIL(&action_kinds, kind, next);
}

const struct netlink_action_kind *
netlink_action_kind_find(const char *name)
{
	const struct netlink_action_kind *kind;

	STAILQ_FOREACH (kind, &action_kinds, next)
		if (strcmp(kind->ops->kind, name) == 0)
			return kind;
	return NULL;
}

const struct netlink_action_kind *
netlink_action_kind_of(const struct action_ops *ops)
{
	const struct netlink_action_kind *kind;

	STAILQ_FOREACH (kind, &action_kinds, next)
		if (kind->ops == ops)
			return kind;
	return NULL;
}

const struct netlink_action_kind *
netlink_action_kind_next(const struct netlink_action_kind *kind)
{
	return kind == NULL ? STAILQ_FIRST(&action_kinds) : STAILQ_NEXT(kind, next);
}

void
netlink_filter_kind_register(struct netlink_filter_kind *kind)
{
	RTE_VERIFY(netlink_filter_kind_find(kind->name) == NULL);
	STAILQ_INSERT_TAIL(&filter_kinds, kind, next);
}

const struct netlink_filter_kind *
netlink_filter_kind_find(const char *name)
{
	const struct netlink_filter_kind *kind;

	STAILQ_FOREACH (kind, &filter_kinds, next)
		if (strcmp(kind->name, name) == 0)
			return kind;
	return NULL;
}

const struct netlink_filter_kind *
netlink_filter_kind_of(enum classifier_kind which)
{
	const struct netlink_filter_kind *kind;

	STAILQ_FOREACH (kind, &filter_kinds, next)
		if (kind->kind == which)
			return kind;
	return NULL;
}

void
netlink_family_register(struct netlink_family *family)
{
	RTE_VERIFY(n_families < NETLINK_FAMILIES_MAX);
	family->id = n_families;
	families[n_families++] = family;
}

void *
netlink_family_state(struct netlink_server *server, const struct netlink_family *family)
{
	return server->state[family->id];
}

int
netlink_families_create(struct netlink_server *server)
{
	unsigned int i;
	int err;

	for (i = 0; i < n_families; i++) {
		if (families[i]->create == NULL)
			continue;
		if ((err = families[i]->create(server, &server->state[i])) != 0)
			goto unwind;
	}
	return 0;
unwind:
	while (i-- > 0)
		if (families[i]->destroy != NULL)
			families[i]->destroy(server, server->state[i]);
	return err;
}

void
netlink_families_destroy(struct netlink_server *server)
{
	for (unsigned int i = n_families; i-- > 0;)
		if (families[i]->destroy != NULL)
			families[i]->destroy(server, server->state[i]);
}

void
netlink_families_dev_gone(struct netlink_server *server, uint32_t ifindex)
{
	for (unsigned int i = 0; i < n_families; i++)
		if (families[i]->dev_gone != NULL)
			families[i]->dev_gone(server, server->state[i], ifindex);
}

/* For refusals: people know messages by name. */
#define NAME(type) \
	{ \
		type, #type \
	}
static const struct {
	uint16_t type;
	const char *name;
} route_names[] = {
	NAME(RTM_NEWLINK), NAME(RTM_DELLINK), NAME(RTM_GETLINK), NAME(RTM_SETLINK),
	NAME(RTM_NEWADDR), NAME(RTM_DELADDR), NAME(RTM_GETADDR), NAME(RTM_NEWROUTE),
	NAME(RTM_DELROUTE), NAME(RTM_GETROUTE), NAME(RTM_NEWNEIGH), NAME(RTM_DELNEIGH),
	NAME(RTM_GETNEIGH), NAME(RTM_NEWRULE), NAME(RTM_DELRULE), NAME(RTM_GETRULE),
	NAME(RTM_NEWQDISC), NAME(RTM_DELQDISC), NAME(RTM_GETQDISC), NAME(RTM_NEWTCLASS),
	NAME(RTM_DELTCLASS), NAME(RTM_GETTCLASS), NAME(RTM_NEWTFILTER), NAME(RTM_DELTFILTER),
	NAME(RTM_GETTFILTER), NAME(RTM_NEWACTION), NAME(RTM_DELACTION), NAME(RTM_GETACTION),
	NAME(RTM_NEWPREFIX), NAME(RTM_GETMULTICAST), NAME(RTM_GETANYCAST),
	NAME(RTM_NEWNEIGHTBL), NAME(RTM_GETNEIGHTBL), NAME(RTM_SETNEIGHTBL),
	NAME(RTM_NEWADDRLABEL), NAME(RTM_DELADDRLABEL), NAME(RTM_GETADDRLABEL),
	NAME(RTM_GETDCB), NAME(RTM_SETDCB), NAME(RTM_NEWNETCONF), NAME(RTM_DELNETCONF),
	NAME(RTM_GETNETCONF), NAME(RTM_NEWMDB), NAME(RTM_DELMDB), NAME(RTM_GETMDB),
	NAME(RTM_NEWNSID), NAME(RTM_DELNSID), NAME(RTM_GETNSID), NAME(RTM_NEWSTATS),
	NAME(RTM_GETSTATS), NAME(RTM_NEWCHAIN), NAME(RTM_DELCHAIN), NAME(RTM_GETCHAIN),
	NAME(RTM_NEWNEXTHOP), NAME(RTM_DELNEXTHOP), NAME(RTM_GETNEXTHOP), NAME(RTM_NEWLINKPROP),
	NAME(RTM_DELLINKPROP), NAME(RTM_GETLINKPROP), NAME(RTM_NEWVLAN), NAME(RTM_DELVLAN),
	NAME(RTM_GETVLAN), NAME(RTM_NEWNEXTHOPBUCKET), NAME(RTM_DELNEXTHOPBUCKET),
	NAME(RTM_GETNEXTHOPBUCKET),
}, xfrm_names[] = {
	NAME(XFRM_MSG_NEWSA), NAME(XFRM_MSG_DELSA), NAME(XFRM_MSG_GETSA), NAME(XFRM_MSG_NEWPOLICY),
	NAME(XFRM_MSG_DELPOLICY), NAME(XFRM_MSG_GETPOLICY), NAME(XFRM_MSG_ALLOCSPI),
	NAME(XFRM_MSG_ACQUIRE), NAME(XFRM_MSG_EXPIRE), NAME(XFRM_MSG_UPDPOLICY),
	NAME(XFRM_MSG_UPDSA), NAME(XFRM_MSG_POLEXPIRE), NAME(XFRM_MSG_FLUSHSA),
	NAME(XFRM_MSG_FLUSHPOLICY), NAME(XFRM_MSG_NEWAE), NAME(XFRM_MSG_GETAE),
	NAME(XFRM_MSG_REPORT), NAME(XFRM_MSG_MIGRATE), NAME(XFRM_MSG_NEWSADINFO),
	NAME(XFRM_MSG_GETSADINFO), NAME(XFRM_MSG_NEWSPDINFO), NAME(XFRM_MSG_GETSPDINFO),
	NAME(XFRM_MSG_MAPPING), NAME(XFRM_MSG_SETDEFAULT), NAME(XFRM_MSG_GETDEFAULT),
};
#undef NAME

const char *
netlink_type_name(int protocol, uint16_t type)
{
	if (protocol == NETLINK_ROUTE) {
		for (size_t i = 0; i < RTE_DIM(route_names); i++)
			if (route_names[i].type == type)
				return route_names[i].name;
	} else {
		for (size_t i = 0; i < RTE_DIM(xfrm_names); i++)
			if (xfrm_names[i].type == type)
				return xfrm_names[i].name;
	}
	return NULL;
}
