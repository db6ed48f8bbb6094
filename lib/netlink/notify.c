/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Multicast: one message built once, sent to all who asked for its group. */

#include <stdio.h>
#include <string.h>

#include "netlink/server.h"

static bool
wants_echo(const struct netlink_request *req)
{
	return req != NULL && (req->nlh->nlmsg_flags & NLM_F_ECHO) != 0;
}

bool
netlink_notify_wanted(const struct netlink_server *server, const struct netlink_request *req,
	int protocol, unsigned int group)
{
	int p = netlink_protocol_index(protocol);

	if (wants_echo(req))
		return true;
	return p >= 0 && group > 0 && group <= NETLINK_GROUPS_MAX && server->members[p][group] > 0;
}

bool
netlink_notify_begin(struct netlink_server *server, struct netlink_request *req,
	struct netlink_put *put, uint16_t type, uint16_t flags, const void *header,
	size_t header_len)
{
	size_t need = NLMSG_ALIGN(NLMSG_HDRLEN + header_len);

	if (server->n_clients == 0 || need > sizeof(server->note))
		return false;
	put->nlh = (struct nlmsghdr *)(void *)server->note;
	put->room = sizeof(server->note);
	put->overflowed = false;
	put->bare = false;
	memset(put->nlh, 0, need);
	put->nlh->nlmsg_len = (uint32_t)need;
	put->nlh->nlmsg_type = type;
	put->nlh->nlmsg_flags = flags;
	put->nlh->nlmsg_seq = req != NULL ? req->nlh->nlmsg_seq : 0;
	put->nlh->nlmsg_pid = req != NULL ? req->portid : 0;
	memcpy(put->nlh + 1, header, header_len);
	return true;
}

void
netlink_notify_end(struct netlink_server *server, struct netlink_request *req,
	struct netlink_put *put, int protocol, unsigned int group)
{
	bool echo = wants_echo(req);
	struct netlink_client *client;
	uint64_t bit;

	if (put->overflowed || group == 0 || group > NETLINK_GROUPS_MAX ||
		!netlink_notify_wanted(server, req, protocol, group))
		return;
	bit = UINT64_C(1) << (group - 1);
	LIST_FOREACH (client, &server->clients, next) {
		/* The requester gets its echo once, as an answer that is never dropped. */
		if (client->dead || client->protocol != protocol || (client->groups & bit) == 0 ||
			(echo && client == req->client))
			continue;
		netlink_client_notify(client, server->note, put->nlh->nlmsg_len);
	}
	if (echo)
		netlink_client_send(req->client, server->note, put->nlh->nlmsg_len);
	netlink_wipe(protocol, server->note, put->nlh->nlmsg_len);
}

void
netlink_log(const struct netlink_server *server, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (server->conf.log == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	server->conf.log(server->conf.log_arg, line);
}
