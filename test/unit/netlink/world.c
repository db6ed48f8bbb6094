/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "world.h"

unsigned int world_accepted;
uint32_t world_last_seq;

static bool
no_dev(void *arg, uint32_t after, struct netlink_dev *dev)
{
	(void)arg;
	(void)after;
	(void)dev;
	return false;
}

static const struct netlink_dev_ops dev_ops = { .next = no_dev };

/* link.c's part, for dev_changed() and dev_gone(). */
void
netlink_link_notify(
	struct netlink_server *server, struct netlink_request *req, uint16_t type, uint32_t ifindex)
{
	struct ifinfomsg ifi = { .ifi_index = (int)ifindex };
	struct netlink_put put;

	if (!netlink_notify_begin(server, req, &put, type, 0, &ifi, sizeof(ifi)))
		return;
	netlink_notify_end(server, req, &put, NETLINK_ROUTE, WORLD_GROUP);
}

static bool
put_object(struct netlink_request *req, uint32_t i, uint32_t size)
{
	static const uint8_t filler[65536];
	struct netlink_put put;

	if (!netlink_put_begin(req, &put, RTM_NEWLINK, 0, &i, sizeof(i)))
		return false;
	netlink_put_data(&put, 1, filler, size);
	return netlink_put_end(req, &put);
}

static int
get_doit(struct netlink_request *req)
{
	const struct world_header *h = (const struct world_header *)(req->nlh + 1);

	for (uint32_t i = 0; i < h->count; i++)
		if (!put_object(req, i, h->size))
			return netlink_fail(req, -EMSGSIZE, NULL, "too much");
	return h->error;
}

static int
get_dump(struct netlink_request *req)
{
	const struct world_header *h = (const struct world_header *)(req->nlh + 1);

	if ((h->flags & WORLD_CHANGE) != 0 && req->cursor[0] > 0)
		req->interrupted = true;
	for (; req->cursor[0] < h->count; req->cursor[0]++) {
		if (h->error != 0 && req->cursor[0] >= h->count / 2)
			return netlink_fail(req, h->error, NULL, "half way");
		if (!put_object(req, (uint32_t)req->cursor[0], h->size))
			return 1;
	}
	return 0;
}

#define POLICY(t, w, lo, hi) \
	{ \
		.type = t, .name = #t, .what = NETLINK_ATTR_##w, .min = lo, .max = hi \
	}
static const struct netlink_attr_policy policy[] = {
	POLICY(WORLD_U8, U8, 0, 0),
	POLICY(WORLD_U16, U16, 0, 0),
	POLICY(WORLD_U32, U32, 0, 0),
	POLICY(WORLD_U64, U64, 0, 0),
	POLICY(WORLD_BINARY, BINARY, 2, 6),
	POLICY(WORLD_STRING, STRING, 1, 8),
	POLICY(WORLD_NESTED, NESTED, 0, 0),
	POLICY(WORLD_FLAG, FLAG, 0, 0),
	POLICY(WORLD_REFUSED, REFUSED, 0, 0),
	POLICY(WORLD_IGNORED, IGNORED, 0, 0),
};

static int
new_doit(struct netlink_request *req)
{
	const struct world_header *h = (const struct world_header *)(req->nlh + 1);
	const struct nlattr *tb[WORLD_MAX], *in[WORLD_MAX];
	struct netlink_put put;
	int err;

	if ((err = netlink_parse(req, sizeof(*h), policy, RTE_DIM(policy), tb, WORLD_MAX)) != 0)
		return err;
	for (const struct nlattr *nest = tb[WORLD_NESTED]; nest != NULL; nest = in[WORLD_NESTED])
		if ((err = netlink_parse_nested(
			     req, nest, policy, RTE_DIM(policy), in, WORLD_MAX)) != 0)
			return err;
	if (h->error != 0)
		return netlink_fail(req, h->error, tb[WORLD_U32], "refused as asked");
	world_accepted++;
	world_last_seq = req->nlh->nlmsg_seq;
	if (netlink_notify_begin(req->server, req, &put, RTM_NEWLINK, 0, h, sizeof(*h))) {
		for (uint32_t i = 0; i < h->count; i++)
			netlink_put_u32(&put, 1, i);
		netlink_notify_end(req->server, req, &put, NETLINK_ROUTE, WORLD_GROUP);
	}
	return 0;
}

static struct netlink_handler get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETLINK,
	.header = sizeof(struct world_header),
	.doit = get_doit,
	.dump = get_dump,
};
NETLINK_REGISTER_HANDLER(get_handler);

static struct netlink_handler new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWLINK,
	.header = sizeof(struct world_header),
	.doit = new_doit,
};
NETLINK_REGISTER_HANDLER(new_handler);

static struct netlink_handler only_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETADDR,
	.header = sizeof(struct world_header),
	.doit = get_doit,
};
NETLINK_REGISTER_HANDLER(only_get_handler);

static struct netlink_handler only_dump_handler = {
	.protocol = NETLINK_XFRM,
	.type = 0x12,
	.header = 0,
	.dump = get_dump,
};
NETLINK_REGISTER_HANDLER(only_dump_handler);

struct netlink_server *
world_create(const char *path)
{
	struct netlink_conf conf = { .path = path, .group = (gid_t)-1, .dev_ops = &dev_ops };
	struct netlink_server *server;
	char error[256];

	world_accepted = 0;
	if ((server = netlink_server_create(&conf, error, sizeof(error))) == NULL) {
		fprintf(stderr, "%s\n", error);
		abort();
	}
	return server;
}

void
world_pump(struct netlink_server *server)
{
	struct pollfd p = { .fd = netlink_server_fd(server), .events = POLLIN };

	/* A client with a full socket is never ready: this ends. */
	for (int i = 0; i < 100000 && poll(&p, 1, 0) > 0; i++)
		netlink_server_dispatch(server);
}

int
client_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		perror(path);
		abort();
	}
	return fd;
}

static void
tell(int fd, uint16_t type, uint32_t arg0, uint32_t arg1, uint32_t arg2)
{
	struct netlink_ctl ctl = { .nlh = { .nlmsg_len = sizeof(ctl), .nlmsg_type = type },
		.arg = { arg0, arg1, arg2 } };

	if (send(fd, &ctl, sizeof(ctl), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(ctl))
		perror("tell");
}

void
client_tell(const struct client *c, uint16_t type, uint32_t arg0, uint32_t arg1)
{
	tell(c->fd, type, arg0, arg1, 0);
}

bool
client_aside(const struct client *c, uint16_t type, int *error, uint32_t *value)
{
	struct netlink_ctl ctl;

	if (recv(c->side, &ctl, sizeof(ctl), MSG_DONTWAIT) != (ssize_t)sizeof(ctl) ||
		ctl.nlh.nlmsg_type != type)
		return false;
	*error = (int)ctl.arg[0];
	*value = ctl.arg[1];
	return true;
}

struct client
client_open(struct netlink_server *server, const char *path, int protocol)
{
	struct client c = { .fd = client_connect(path), .side = -1 };
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct netlink_ctl ctl;
	struct iovec iov = { .iov_base = &ctl, .iov_len = sizeof(ctl) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	int error;

	tell(c.fd, NETLINK_CTL_HELLO, NETLINK_CTL_VERSION, (uint32_t)protocol, (uint32_t)getpid());
	world_pump(server);
	if (recvmsg(c.fd, &msg, MSG_DONTWAIT) != (ssize_t)sizeof(ctl)) {
		c.hello = -EPIPE;
		return c;
	}
	c.hello = (int)ctl.arg[0];
	if (c.hello != 0)
		return c;
	memcpy(&c.side, CMSG_DATA(&control.hdr), sizeof(int));
	client_tell(&c, NETLINK_CTL_BIND, 0, 0);
	world_pump(server);
	if (!client_aside(&c, NETLINK_CTL_BIND, &error, &c.portid) || error != 0)
		abort();
	return c;
}

void
client_close(struct client *c)
{
	close(c->fd);
	if (c->side >= 0)
		close(c->side);
}

struct nlmsghdr *
message_init(struct message *m, uint16_t type, uint16_t flags, uint32_t seq,
	const struct world_header *header)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)(void *)m->data;

	memset(m, 0, sizeof(*m));
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = flags;
	nlh->nlmsg_seq = seq;
	nlh->nlmsg_len = NLMSG_LENGTH(sizeof(*header));
	if (header != NULL)
		memcpy(nlh + 1, header, sizeof(*header));
	return nlh;
}

void
message_attr(struct message *m, uint16_t type, const void *data, size_t len)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)(void *)m->data;
	struct nlattr *attr = (struct nlattr *)(void *)(m->data + nlh->nlmsg_len);

	assert(nlh->nlmsg_len + NLA_ALIGN(NLA_HDRLEN + len) <= sizeof(m->data));
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	if (len > 0)
		memcpy(attr + 1, data, len);
	nlh->nlmsg_len += NLA_ALIGN(attr->nla_len);
}

size_t
client_recv(const struct client *c, void *buf, size_t size)
{
	ssize_t n = recv(c->fd, buf, size, MSG_DONTWAIT | MSG_TRUNC);

	return n > 0 ? (size_t)n : 0;
}

static void
read_extack(const uint8_t *data, size_t len, char why[256], uint32_t *offset)
{
	while (len >= sizeof(struct nlattr)) {
		const struct nlattr *attr = (const struct nlattr *)(const void *)data;

		assert(attr->nla_len >= sizeof(*attr) && attr->nla_len <= len);
		if (attr->nla_type == NLMSGERR_ATTR_MSG)
			snprintf(why, 256, "%s", (const char *)(attr + 1));
		else if (attr->nla_type == NLMSGERR_ATTR_OFFS && offset != NULL)
			memcpy(offset, attr + 1, sizeof(*offset));
		data += NLA_ALIGN(attr->nla_len);
		len -= NLA_ALIGN(attr->nla_len);
	}
}

int
client_talk(struct netlink_server *server, const struct client *c, const void *data, size_t len,
	char why[256], uint32_t *offset)
{
	static _Alignas(8) uint8_t buf[65536];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)(void *)buf;
	const struct nlmsgerr *e = (const struct nlmsgerr *)(nlh + 1);
	size_t n, at;

	why[0] = '\0';
	if (offset != NULL)
		*offset = 0;
	if (send(c->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len)
		return -EPIPE;
	world_pump(server);
	do {
		if ((n = client_recv(c, buf, sizeof(buf))) == 0)
			return -ENODATA;
	} while (nlh->nlmsg_type != NLMSG_ERROR);
	assert(n == nlh->nlmsg_len);
	at = sizeof(*nlh) + sizeof(*e);
	if ((nlh->nlmsg_flags & NLM_F_CAPPED) == 0)
		at += NLMSG_ALIGN(e->msg.nlmsg_len) - sizeof(e->msg);
	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) != 0)
		read_extack(buf + at, n - at, why, offset);
	return e->error;
}
