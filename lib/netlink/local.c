/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Requests that the server makes of itself: the same handlers, no socket. */

#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "netlink/save.h"

void
netlink_local_init(struct netlink_local *local, struct netlink_server *server,
	const struct nlmsghdr *nlh, const struct netlink_devmap *devmap)
{
	memset(local, 0, sizeof(*local));
	local->client.server = server;
	local->client.fd = local->client.side = -1;
	local->client.protocol = NETLINK_ROUTE;
	local->client.deaf = true; /* an echo goes nowhere */
	STAILQ_INIT(&local->client.queue);
	local->req.server = server;
	local->req.conf = &server->conf;
	local->req.client = &local->client;
	local->req.nlh = nlh;
	local->req.bare = true;
	local->req.devmap = devmap;
}

static int
say_why(const struct netlink_request *req, int err, char why[NETLINK_WHY_MAX])
{
	if (err < 0)
		strlcpy(why, req->why[0] != '\0' ? req->why : strerror(-err), NETLINK_WHY_MAX);
	return err;
}

int
netlink_local_request(struct netlink_server *server, const struct nlmsghdr *nlh,
	const struct netlink_devmap *devmap, char why[NETLINK_WHY_MAX])
{
	return netlink_local_request_of(server, NETLINK_ROUTE, nlh, devmap, why);
}

int
netlink_local_request_of(struct netlink_server *server, int protocol, const struct nlmsghdr *nlh,
	const struct netlink_devmap *devmap, char why[NETLINK_WHY_MAX])
{
	const struct netlink_handler *handler = netlink_handler_find(protocol, nlh->nlmsg_type);
	struct netlink_local local;
	int ret;

	netlink_local_init(&local, server, nlh, devmap);
	local.client.protocol = protocol;
	if (handler == NULL || handler->doit == NULL)
		ret = netlink_fail(&local.req, -EOPNOTSUPP, NULL, "Such messages are not served");
	else if (nlh->nlmsg_len < NLMSG_HDRLEN + handler->header)
		ret = netlink_fail(
			&local.req, -EINVAL, NULL, "The message is shorter than its header");
	else {
		server->tx_len = 0;
		server->tx_limit = sizeof(server->tx);
		ret = handler->doit(&local.req);
	}
	return say_why(&local.req, ret, why);
}

/* The messages that one step of a dump has put. */
static int
hand_over(struct netlink_server *server, int (*each)(void *arg, const struct nlmsghdr *nlh),
	void *arg)
{
	size_t off = 0;
	int ret = 0;

	while (ret == 0 && off < server->tx_len) {
		const struct nlmsghdr *nlh =
			(const struct nlmsghdr *)(const void *)(server->tx + off);

		ret = each(arg, nlh);
		off += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	return ret;
}

int
netlink_local_dump(struct netlink_server *server, const struct nlmsghdr *nlh,
	int (*each)(void *arg, const struct nlmsghdr *nlh), void *arg, char why[NETLINK_WHY_MAX])
{
	return netlink_local_dump_of(server, NETLINK_ROUTE, nlh, each, arg, why);
}

int
netlink_local_dump_of(struct netlink_server *server, int protocol, const struct nlmsghdr *nlh,
	int (*each)(void *arg, const struct nlmsghdr *nlh), void *arg, char why[NETLINK_WHY_MAX])
{
	const struct netlink_handler *handler = netlink_handler_find(protocol, nlh->nlmsg_type);
	struct netlink_local local;
	int more, ret;

	netlink_local_init(&local, server, nlh, NULL);
	local.client.protocol = protocol;
	do {
		server->tx_len = 0;
		server->tx_limit = sizeof(server->tx);
		more = handler->dump(&local.req);
		if (more > 0 && server->tx_len == 0)
			more = netlink_fail(&local.req, -EMSGSIZE, NULL,
				"An object does not fit into a message");
		if (more < 0)
			return say_why(&local.req, more, why);
		if ((ret = hand_over(server, each, arg)) != 0)
			return say_why(&local.req, ret, why);
	} while (more > 0);
	return 0;
}
