/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What a request is answered with that has no other answer. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/server.h"

/* A request up to this size is echoed whole in an error. */
#define ECHO_MAX (NETLINK_MESSAGE_MAX - 1024)

/* Returns how many went, which may be none. */
static unsigned int
send_together(struct netlink_client *client, struct netlink_acks *acks, unsigned int n)
{
	struct mmsghdr messages[NETLINK_ACKS_MAX];
	struct iovec parts[NETLINK_ACKS_MAX];
	int sent;

	if (n < 2 || client->deaf || client->dead || !STAILQ_EMPTY(&client->queue))
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		parts[i] = (struct iovec){ &acks->ack[i], sizeof(acks->ack[i]) };
		messages[i] =
			(struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i], .msg_iovlen = 1 } };
	}
	sent = sendmmsg(client->fd, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent <= 0)
		return 0;
	client->answered = true;
	return (unsigned int)sent;
}

void
netlink_acks_flush(struct netlink_client *client)
{
	struct netlink_acks *acks = &client->server->acks;
	unsigned int n = acks->n;

	if (n == 0 || acks->client != client)
		return;
	/* first: to send is to ask for this */
	acks->n = 0;
	/* What did not go has its trouble again, and is queued or dropped for that. */
	for (unsigned int i = send_together(client, acks, n); i < n; i++)
		netlink_client_send(client, &acks->ack[i], sizeof(acks->ack[i]));
	netlink_wipe(client->protocol, acks->ack, n * sizeof(acks->ack[0]));
}

static void
keep(struct netlink_client *client, const struct nlmsghdr *ack)
{
	struct netlink_acks *acks = &client->server->acks;

	if (acks->n == NETLINK_ACKS_MAX)
		netlink_acks_flush(client);
	acks->client = client;
	memcpy(&acks->ack[acks->n++], ack, sizeof(acks->ack[0]));
}

void
netlink_client_ack(struct netlink_client *client, const struct netlink_request *req,
	const struct nlmsghdr *nlh, size_t room, int err)
{
	struct netlink_server *server = client->server;
	struct nlmsghdr *ack = (struct nlmsghdr *)(void *)server->tx;
	struct nlmsgerr *error = (struct nlmsgerr *)(ack + 1);
	size_t echo = sizeof(*nlh), n;

	memset(ack, 0, NLMSG_HDRLEN);
	if (err == 0 || (client->options & NETLINK_CLIENT_CAP_ACK) != 0 || nlh->nlmsg_len > room ||
		nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > ECHO_MAX)
		ack->nlmsg_flags |= NLM_F_CAPPED;
	else
		echo = nlh->nlmsg_len;
	ack->nlmsg_type = NLMSG_ERROR;
	ack->nlmsg_seq = nlh->nlmsg_seq;
	ack->nlmsg_pid = client->portid;
	error->error = err;
	memcpy(&error->msg, nlh, echo);
	memset((uint8_t *)&error->msg + echo, 0, NLMSG_ALIGN(echo) - echo);
	n = NLMSG_HDRLEN + sizeof(error->error) + NLMSG_ALIGN(echo);
	ack->nlmsg_len = (uint32_t)n;
	n += netlink_put_extack(server->tx + n, req, nlh->nlmsg_len, err);
	if (n > ack->nlmsg_len)
		ack->nlmsg_flags |= NLM_F_ACK_TLVS;
	ack->nlmsg_len = (uint32_t)n;
	if (n == sizeof(server->acks.ack[0]))
		keep(client, ack);
	else
		netlink_client_send(client, ack, n);
	netlink_wipe(client->protocol, ack, n);
}
