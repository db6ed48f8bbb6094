/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_SAVE_H
#define NETLINK_SAVE_H

/*
 * Inside netlink_save() and netlink_restore().
 *
 * A saved state is a file of netlink messages in host byte order, each aligned to 4 bytes:
 *
 *   NLMSG_NOOP    struct netlink_save_header
 *   RTM_NEWLINK   of each device: name, bus name, what can be set
 *   RTM_NEWADDR   of each address
 *   RTM_NEWROUTE  of each route of table main, those of the addresses too
 *   RTM_NEWNEIGH  of each neighbour that was set by hand
 *   RTM_NEWQDISC  of each qdisc that did not come with its device; roots before leaves
 *   RTM_NEWCHAIN  of each chain that `tc chain add` made
 *   RTM_NEWACTION of each action that `tc actions add` made, one a message
 *   RTM_NEWTFILTER of each filter, by rank (classifier_rule_rank()) within its priority
 *   XFRM_MSG_NEWPOLICY, XFRM_MSG_NEWSA of each policy and SA, then XFRM_MSG_SETDEFAULT if not all
 *                 is accepted; with NETLINK_SAVE_XFRM added to their types, which are rtnetlink's
 *   NLMSG_DONE    its absence says that the end is missing
 *
 * They are the answers of the dump handlers without what is not state: statistics, ages, carrier.
 * Equal states make equal files. nlmsg_seq counts from 1 at the first RTM_NEWLINK. The programs
 * that print such files print it: `tc monitor file FILE`.
 *
 * A restore gives each message to the handler that serves it to clients. There is no second parser
 * and no second printer.
 */

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "netlink/message.h"
#include "netlink/server.h"

#define NETLINK_SAVE_MAGIC "millrace" /* 8 bytes, without a NUL */
#define NETLINK_SAVE_VERSION 1
#define NETLINK_SAVE_XFRM 0x1000

struct netlink_save_header {
	char magic[8];
	uint32_t version;
	uint32_t zero;
};

/* Of neighbours, what was set by hand: what was learnt from the wire is learnt again. */
static inline bool
netlink_neigh_is_part(const struct ndmsg *ndm)
{
	return (ndm->ndm_state & (NUD_PERMANENT | NUD_NOARP)) != 0 ||
		(ndm->ndm_flags & NTF_EXT_LEARNED) != 0;
}

#define NETLINK_WHY_MAX 256 /* of struct netlink_request */

/*
 * Requests of the server's own (local.c): served as a client's are, at once, in between two
 * dispatches. `why` is the sentence for an error.
 */
struct netlink_local {
	struct netlink_request req;
	struct netlink_client client;
};
void netlink_local_init(struct netlink_local *local, struct netlink_server *server,
	const struct nlmsghdr *nlh, const struct netlink_devmap *devmap);
/* 0 or -errno. What was answered stands at server->tx until the next request. */
int netlink_local_request(struct netlink_server *server, const struct nlmsghdr *nlh,
	const struct netlink_devmap *devmap, char why[NETLINK_WHY_MAX]);
/* Calls each() for every message of a bare dump; it makes no request. 0 or -errno, also each()'s.
 */
int netlink_local_dump(struct netlink_server *server, const struct nlmsghdr *nlh,
	int (*each)(void *arg, const struct nlmsghdr *nlh), void *arg, char why[NETLINK_WHY_MAX]);

/* The same of another protocol than NETLINK_ROUTE. */
int netlink_local_request_of(struct netlink_server *server, int protocol,
	const struct nlmsghdr *nlh, const struct netlink_devmap *devmap, char why[NETLINK_WHY_MAX]);
int netlink_local_dump_of(struct netlink_server *server, int protocol, const struct nlmsghdr *nlh,
	int (*each)(void *arg, const struct nlmsghdr *nlh), void *arg, char why[NETLINK_WHY_MAX]);

/*
 * xfrm_save.c. save: each() gets every message as the file has it. restore: makes what one says.
 * clear: nothing is left; where there were policies everything is blocked until a SETDEFAULT, or
 * finish, which is for files without one.
 */
bool netlink_xfrm_is_part(uint16_t type);
bool netlink_xfrm_is_default(uint16_t type);
int netlink_xfrm_save(struct netlink_server *server, int (*each)(void *arg, struct nlmsghdr *nlh),
	void *arg, char why[NETLINK_WHY_MAX]);
void netlink_xfrm_clear(struct netlink_server *server);
int netlink_xfrm_restore(struct netlink_server *server, struct nlmsghdr *nlh,
	const struct netlink_devmap *devmap, char why[NETLINK_WHY_MAX]);
void netlink_xfrm_finish(struct netlink_server *server);

/* save.c: writes a saved state. *n: how many objects. 0 or -errno; `out` is flushed. */
int
netlink_save_to(struct netlink_server *server, FILE *out, uint32_t *n, char why[NETLINK_WHY_MAX]);

#endif /* NETLINK_SAVE_H */
