/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* A dump: many messages in as many datagrams as they need, each made when the client has room for
 * it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/server.h"

#define DONE_MAX 400 /* NLMSG_DONE with its extended ack */

int
netlink_dump_start(struct netlink_client *client, const struct netlink_handler *handler,
	const struct nlmsghdr *nlh, struct netlink_request *req)
{
	size_t header = handler->dump_bare ? 0 : handler->header;
	size_t len = nlh->nlmsg_len, full = NLMSG_HDRLEN + header;
	struct netlink_dump *dump;

	if (client->dump != NULL)
		return netlink_fail(req, -EBUSY, NULL, "A dump is under way on this socket");
	if (len <= NLMSG_HDRLEN && header > 0)
		return netlink_fail(req, -EINVAL, NULL, "The dump request has no address family");
	if (full < len)
		full = len;
	if ((dump = calloc(1, sizeof(*dump))) == NULL || (dump->nlh = calloc(1, full)) == NULL) {
		free(dump);
		return -ENOMEM;
	}
	memcpy(dump->nlh, nlh, len);
	dump->nlh->nlmsg_len = (uint32_t)full;
	dump->handler = handler;
	dump->req = *req;
	dump->req.nlh = dump->nlh;
	client->dump = dump;
	netlink_dump_continue(client);
	return 1;
}

void
netlink_dump_free(struct netlink_client *client)
{
	if (client->dump == NULL)
		return;
	free(client->dump->nlh);
	free(client->dump);
	client->dump = NULL;
}

static size_t
dump_limit(const struct netlink_client *client)
{
	if (client->rcvbuf <= NETLINK_DUMP_SMALL_BUFFER)
		return NETLINK_DUMP_SMALL;
	return client->rcvbuf < NETLINK_MESSAGE_MAX ? client->rcvbuf : NETLINK_MESSAGE_MAX;
}

static void
put_done(struct netlink_dump *dump, int err)
{
	struct netlink_server *server = dump->req.server;
	struct nlmsghdr *nlh;
	uint8_t *end;
	size_t n;

	if (server->tx_len > 0 && server->tx_len + DONE_MAX > server->tx_limit)
		netlink_put_flush(&dump->req);
	nlh = (struct nlmsghdr *)(void *)(server->tx + server->tx_len);
	memset(nlh, 0, sizeof(*nlh));
	nlh->nlmsg_type = NLMSG_DONE;
	nlh->nlmsg_flags = NLM_F_MULTI | (dump->req.interrupted ? NLM_F_DUMP_INTR : 0);
	nlh->nlmsg_seq = dump->nlh->nlmsg_seq;
	nlh->nlmsg_pid = dump->req.portid;
	end = (uint8_t *)(nlh + 1);
	memcpy(end, &err, sizeof(err));
	end += sizeof(err);
	n = netlink_put_extack(end, &dump->req, dump->nlh->nlmsg_len, err);
	if (n > 0)
		nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
	nlh->nlmsg_len = (uint32_t)(sizeof(*nlh) + sizeof(err) + n);
	server->tx_len += nlh->nlmsg_len;
}

void
netlink_dump_continue(struct netlink_client *client)
{
	struct netlink_dump *dump = client->dump;
	struct netlink_server *server = client->server;
	int rc;

	server->tx_len = 0;
	server->tx_limit = dump_limit(client);
	rc = dump->handler->dump(&dump->req);
	if (rc > 0 && server->tx_len == 0)
		rc = netlink_fail(
			&dump->req, -EMSGSIZE, NULL, "An object does not fit into a message");
	if (rc <= 0) {
		if (rc < 0)
			server->stats.errors++;
		put_done(dump, rc);
	}
	netlink_put_flush(&dump->req);
	if (rc <= 0 || client->deaf)
		netlink_dump_free(client);
}
