/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Private messages: what a netlink socket has beside its messages. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netlink/ctl.h"
#include "netlink/server.h"

static void
answer_init(struct netlink_ctl *ctl, uint16_t type, int err, uint32_t value)
{
	memset(ctl, 0, sizeof(*ctl));
	ctl->nlh.nlmsg_len = sizeof(*ctl);
	ctl->nlh.nlmsg_type = type;
	ctl->arg[0] = (uint32_t)err;
	ctl->arg[1] = value;
}

/* One answer is under way at a time; a client that asks more than it reads loses answers. */
static void
answer_aside(struct netlink_client *client, uint16_t type, int err, uint32_t value)
{
	struct netlink_ctl ctl;

	answer_init(&ctl, type, err, value);
	(void)send(client->side, &ctl, sizeof(ctl), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
netlink_send_hello(int fd, int err, int aside)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct netlink_ctl ctl;
	struct iovec iov = { .iov_base = &ctl, .iov_len = sizeof(ctl) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	answer_init(&ctl, NETLINK_CTL_HELLO, err, NETLINK_CTL_VERSION);
	if (aside >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), &aside, sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void
hello(struct netlink_client *client, const struct netlink_ctl *ctl)
{
	int err = 0, pair[2] = { -1, -1 };

	if (client->protocol >= 0)
		err = -EALREADY;
	else if (ctl->arg[0] != NETLINK_CTL_VERSION)
		err = -EPROTO;
	else if (netlink_protocol_index((int)ctl->arg[1]) < 0)
		err = -EPROTONOSUPPORT;
	else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		err = -errno;
	if (err == 0) {
		client->protocol = (int)ctl->arg[1];
		client->wish = ctl->arg[2];
		client->side = pair[0];
	}
	if (netlink_send_hello(client->fd, err, pair[1]) != 0)
		netlink_client_kill(client);
	if (pair[1] >= 0)
		close(pair[1]);
}

static bool
portid_taken(const struct netlink_client *client, uint32_t portid)
{
	const struct netlink_client *other;

	LIST_FOREACH (other, &client->server->clients, next)
		if (other->protocol == client->protocol && other->portid == portid)
			return true;
	return false;
}

/* As the kernel: the pid if it is free, else unique ones counting down from near the top. */
void
netlink_client_autobind(struct netlink_client *client)
{
	uint32_t portid = client->wish;

	while (portid == 0 || portid_taken(client, portid))
		portid = client->server->next_portid--;
	client->portid = portid;
}

static void
set_member(struct netlink_client *client, unsigned int group, bool member)
{
	uint64_t bit = UINT64_C(1) << (group - 1);
	uint32_t *count = &client->server->members[netlink_protocol_index(client->protocol)][group];

	if (((client->groups & bit) != 0) == member)
		return;
	client->groups ^= bit;
	*count += member ? 1 : UINT32_MAX;
}

void
netlink_client_leave_all(struct netlink_client *client)
{
	for (unsigned int group = 1; client->groups != 0; group++)
		set_member(client, group, false);
}

static int
bind_portid(struct netlink_client *client, uint32_t portid)
{
	if (client->portid != 0)
		return portid == 0 || portid == client->portid ? 0 : -EINVAL;
	if (portid == 0)
		netlink_client_autobind(client);
	else if (portid_taken(client, portid))
		return -EADDRINUSE;
	else
		client->portid = portid;
	return 0;
}

static void
bind_client(struct netlink_client *client, const struct netlink_ctl *ctl)
{
	int err = bind_portid(client, ctl->arg[0]);

	for (unsigned int group = 1; err == 0 && group <= 32; group++)
		set_member(client, group, (ctl->arg[1] >> (group - 1) & 1) != 0);
	answer_aside(client, NETLINK_CTL_BIND, err, client->portid);
}

static void
set_option(struct netlink_client *client, uint32_t option, bool on)
{
	unsigned int bit;

	switch (option) {
	case NETLINK_EXT_ACK:
		bit = NETLINK_CLIENT_EXT_ACK;
		break;
	case NETLINK_CAP_ACK:
		bit = NETLINK_CLIENT_CAP_ACK;
		break;
	case NETLINK_GET_STRICT_CHK:
		bit = NETLINK_CLIENT_STRICT;
		break;
	case NETLINK_NO_ENOBUFS:
		bit = NETLINK_CLIENT_NO_ENOBUFS;
		break;
	default:
		return;
	}
	client->options = on ? client->options | bit : client->options & ~bit;
}

void
netlink_control(struct netlink_client *client, const struct nlmsghdr *nlh)
{
	const struct netlink_ctl *ctl = (const struct netlink_ctl *)(const void *)nlh;

	if (nlh->nlmsg_len < sizeof(*ctl)) {
		client->server->stats.errors++;
		return;
	}
	if (nlh->nlmsg_type == NETLINK_CTL_HELLO) {
		hello(client, ctl);
		return;
	}
	if (client->protocol < 0)
		return;
	switch (nlh->nlmsg_type) {
	case NETLINK_CTL_BIND:
		bind_client(client, ctl);
		break;
	case NETLINK_CTL_JOIN:
	case NETLINK_CTL_LEAVE:
		if (ctl->arg[0] > 0 && ctl->arg[0] <= NETLINK_GROUPS_MAX)
			set_member(client, ctl->arg[0], nlh->nlmsg_type == NETLINK_CTL_JOIN);
		break;
	case NETLINK_CTL_SETSOCKOPT:
		set_option(client, ctl->arg[0], ctl->arg[1] != 0);
		break;
	case NETLINK_CTL_RCVBUF:
		if (ctl->arg[0] > client->rcvbuf)
			client->rcvbuf = ctl->arg[0];
		break;
	case NETLINK_CTL_SYNC:
		answer_aside(client, NETLINK_CTL_SYNC, 0, ctl->arg[0]);
		break;
	default:
		client->server->stats.errors++;
		break;
	}
}
