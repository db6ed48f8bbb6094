/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* One client: its requests in, its answers out, neither waiting for the other clients. */

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netlink/ctl.h"
#include "netlink/server.h"

/* Datagrams taken from one client before the others have their turn. */
#define CLIENT_BUDGET 16
/* Answers and notifications that the kernel keeps for a client which does not read. */
#define CLIENT_SNDBUF (512 * 1024)

int
netlink_client_create(struct netlink_server *server, int fd)
{
	struct netlink_client *client;
	struct epoll_event event = { .events = EPOLLIN };
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	const int sndbuf = CLIENT_SNDBUF;

	if ((client = calloc(1, sizeof(*client))) == NULL)
		return -ENOMEM;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		cred.pid = 0;
	client->server = server;
	client->fd = fd;
	client->side = -1;
	client->protocol = -1;
	client->events = event.events;
	client->pid = cred.pid;
	client->uid = cred.uid;
	STAILQ_INIT(&client->queue);
	event.data.ptr = client;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		free(client);
		return -errno;
	}
	LIST_INSERT_HEAD(&server->clients, client, next);
	server->n_clients++;
	server->stats.accepted++;
	netlink_log(server, "control client: pid %d uid %u came", (int)client->pid,
		(unsigned int)client->uid);
	return 0;
}

void
netlink_client_kill(struct netlink_client *client)
{
	client->dead = true;
	client->server->any_dead = true;
}

static void
drop_answers(struct netlink_client *client)
{
	struct netlink_datagram *d;

	while ((d = STAILQ_FIRST(&client->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&client->queue, next);
		freezero(d, sizeof(*d) + d->len);
	}
	client->overrun = false;
}

void
netlink_client_destroy(struct netlink_client *client)
{
	struct netlink_server *server = client->server;

	netlink_log(server, "control client: pid %d uid %u left", (int)client->pid,
		(unsigned int)client->uid);
	netlink_client_leave_all(client);
	LIST_REMOVE(client, next);
	server->n_clients--;
	drop_answers(client);
	netlink_dump_free(client);
	freezero(client->rest, client->rest_len);
	/*
	 * Explicitly: a child between fork() and exec() still has the socket open, so that closing
	 * it here would leave it in the epoll set, with events that name a freed client.
	 */
	epoll_ctl(server->epoll, EPOLL_CTL_DEL, client->fd, NULL);
	close(client->fd);
	if (client->side >= 0)
		close(client->side);
	free(client);
}

/*
 * Nobody reads the answers any more. What was asked before is served all the same: with the kernel
 * it was done when send() returned. A dump stays until nobody can be inside it.
 */
static void
go_deaf(struct netlink_client *client)
{
	client->deaf = true;
	drop_answers(client);
	netlink_client_leave_all(client);
}

void
netlink_client_watch(struct netlink_client *client)
{
	struct epoll_event event = { .data.ptr = client };

	if (client->dead)
		return;
	if (STAILQ_EMPTY(&client->queue) && client->rest == NULL)
		event.events |= EPOLLIN;
	if (!STAILQ_EMPTY(&client->queue) || client->rest != NULL || client->dump != NULL ||
		client->overrun)
		event.events |= EPOLLOUT;
	if (event.events == client->events)
		return;
	client->events = event.events;
	if (epoll_ctl(client->server->epoll, EPOLL_CTL_MOD, client->fd, &event) != 0)
		netlink_client_kill(client);
}

/* 0: sent or nobody there any more, -EAGAIN: no room. */
static int
try_send(struct netlink_client *client, const void *data, size_t len)
{
	if (client->deaf || client->dead)
		return 0;
	while (send(client->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
			return -EAGAIN;
		go_deaf(client);
		break;
	}
	return 0;
}

void
netlink_client_send(struct netlink_client *client, const void *data, size_t len)
{
	struct netlink_datagram *d;

	netlink_acks_flush(client);
	client->answered = true;
	if (STAILQ_EMPTY(&client->queue) && try_send(client, data, len) == 0)
		return;
	if ((d = malloc(sizeof(*d) + len)) == NULL) {
		netlink_log(client->server,
			"control client: pid %d cut off: no memory for its answer",
			(int)client->pid);
		netlink_client_kill(client);
		return;
	}
	d->len = len;
	memcpy(d->data, data, len);
	STAILQ_INSERT_TAIL(&client->queue, d, next);
	netlink_client_watch(client);
}

void
netlink_client_notify(struct netlink_client *client, const void *data, size_t len)
{
	netlink_acks_flush(client);
	if (!client->overrun && STAILQ_EMPTY(&client->queue) && try_send(client, data, len) == 0)
		return;
	if ((client->options & NETLINK_CLIENT_NO_ENOBUFS) != 0 || client->overrun)
		return;
	client->overrun = true;
	client->server->stats.overruns++;
	netlink_log(client->server,
		"control client: pid %d does not read fast enough, notifications lost",
		(int)client->pid);
	netlink_client_watch(client);
}

static int
fail_type(struct netlink_request *req, int err, const char *what)
{
	uint16_t type = req->nlh->nlmsg_type;
	const char *name = netlink_type_name(req->client->protocol, type);

	return name != NULL ? netlink_fail(req, err, NULL, "%s %s", name, what)
			    : netlink_fail(req, err, NULL, "Message type %u %s", type, what);
}

/* 0 or -errno; 1: a dump has begun, which ends with an answer of its own. */
static int
serve(struct netlink_request *req)
{
	struct netlink_client *client = req->client;
	const struct nlmsghdr *nlh = req->nlh;
	const struct netlink_handler *handler =
		netlink_handler_find(client->protocol, nlh->nlmsg_type);
	bool dump = (nlh->nlmsg_flags & NLM_F_DUMP) != 0;
	int err;

	if (handler == NULL)
		return fail_type(req, -EOPNOTSUPP, "is not supported");
	if (dump && handler->dump != NULL)
		return netlink_dump_start(client, handler, nlh, req);
	/* Only in a get do those two bits ask for a dump: RTM_GET* is 2 modulo 4. */
	if (handler->doit == NULL ||
		(dump && client->protocol == NETLINK_ROUTE && (nlh->nlmsg_type & 3) == 2))
		return fail_type(
			req, -EOPNOTSUPP, dump ? "cannot be dumped" : "is only served as a dump");
	if (nlh->nlmsg_len < NLMSG_HDRLEN + handler->header)
		return fail_type(req, -EINVAL, "is shorter than its header");
	req->server->tx_len = 0;
	req->server->tx_limit = sizeof(req->server->tx);
	if ((err = handler->doit(req)) == 0)
		netlink_put_flush(req);
	req->server->tx_len = 0;
	return err;
}

static void
handle_message(struct netlink_client *client, const struct nlmsghdr *nlh)
{
	struct netlink_request req;
	int err = 0;

	if (nlh->nlmsg_type >= NETLINK_CTL_FIRST) {
		netlink_acks_flush(client);
		netlink_control(client, nlh);
		return;
	}
	memset(&req, 0, offsetof(struct netlink_request, why));
	req.why[0] = '\0';
	req.bad_offset = 0;
	req.server = client->server;
	req.conf = &client->server->conf;
	req.client = client;
	req.nlh = nlh;
	req.strict = (client->options & NETLINK_CLIENT_STRICT) != 0;
	if (client->protocol < 0)
		err = netlink_fail(&req, -EPROTO, NULL, "The control socket expects a hello first");
	else {
		if (client->portid == 0)
			netlink_client_autobind(client);
		req.portid = client->portid;
		if ((nlh->nlmsg_flags & NLM_F_REQUEST) != 0 && nlh->nlmsg_type >= NLMSG_MIN_TYPE) {
			client->server->stats.requests++;
			err = serve(&req);
		}
	}
	if (err < 0)
		client->server->stats.errors++;
	if (err < 0 || (err == 0 && (nlh->nlmsg_flags & NLM_F_ACK) != 0))
		netlink_client_ack(client, &req, nlh, nlh->nlmsg_len, err);
}

static void
refuse_length(struct netlink_client *client, const struct nlmsghdr *nlh, size_t left, int err)
{
	struct netlink_request req = { .server = client->server,
		.conf = &client->server->conf,
		.client = client,
		.nlh = nlh };

	client->server->stats.errors++;
	netlink_fail(&req, err, NULL,
		"Message length %u does not fit its datagram, which has %zu bytes left",
		nlh->nlmsg_len, left);
	netlink_client_ack(client, &req, nlh, left, err);
}

/* Handles messages while their answers find room. Returns how many bytes are done with. */
static size_t
handle_all(struct netlink_client *client, const uint8_t *data, size_t len)
{
	size_t off = 0;

	while (off < len && !client->dead && STAILQ_EMPTY(&client->queue)) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)(data + off);
		size_t left = len - off;

		if (left < sizeof(*nlh)) {
			/* Not even a sequence number to answer to. */
			client->server->stats.errors++;
			return len;
		}
		/* ip address flush sends its dump request with zeros behind it. */
		if (nlh->nlmsg_len == 0 && off > 0)
			return len;
		if (nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > left) {
			refuse_length(client, nlh, left, -EINVAL);
			return len;
		}
		handle_message(client, nlh);
		off += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	return off < len ? off : len;
}

static size_t
handle_messages(struct netlink_client *client, const uint8_t *data, size_t len)
{
	size_t done = handle_all(client, data, len);

	netlink_acks_flush(client);
	return done;
}

static void
handle_datagram(struct netlink_client *client, const uint8_t *data, size_t len)
{
	size_t done = handle_messages(client, data, len);

	if (done == len || client->dead)
		return;
	if ((client->rest = malloc(len - done)) == NULL) {
		netlink_log(client->server,
			"control client: pid %d cut off: no memory for its requests",
			(int)client->pid);
		netlink_client_kill(client);
		return;
	}
	memcpy(client->rest, data + done, len - done);
	client->rest_len = len - done;
	client->rest_off = 0;
}

static void
handle_rest(struct netlink_client *client)
{
	if (client->rest == NULL)
		return;
	client->rest_off += handle_messages(
		client, client->rest + client->rest_off, client->rest_len - client->rest_off);
	if (client->rest_off < client->rest_len)
		return;
	freezero(client->rest, client->rest_len);
	client->rest = NULL;
}

bool
netlink_client_readable(struct netlink_client *client)
{
	struct netlink_server *server = client->server;
	bool found = false;

	client->answered = false;
	for (unsigned int i = 0; i < CLIENT_BUDGET; i++) {
		ssize_t n;

		/* Who got an answer reads it first: another look would find nothing, as a rule. */
		if (client->dead || !STAILQ_EMPTY(&client->queue) || client->rest != NULL ||
			(client->answered && !client->deaf))
			break;
		n = recv(client->fd, server->rx, sizeof(server->rx), MSG_DONTWAIT | MSG_TRUNC);
		found = found || n >= 0 || errno == ECONNRESET;
		if (n > 0 && (size_t)n > sizeof(server->rx))
			refuse_length(client, (const struct nlmsghdr *)(const void *)server->rx,
				sizeof(server->rx), -EMSGSIZE);
		else if (n > 0) {
			handle_datagram(client, server->rx, (size_t)n);
			netlink_wipe(client->protocol, server->rx, (size_t)n);
		} else if (n == 0)
			netlink_client_kill(client);
		else if (errno == ECONNRESET)
			/* It left answers unread; its last requests are still to come. */
			go_deaf(client);
		else if (errno != EINTR) {
			if (errno != EAGAIN)
				netlink_client_kill(client);
			break;
		}
	}
	netlink_client_watch(client);
	return found || client->dead;
}

static void
send_overrun(struct netlink_client *client)
{
	struct netlink_ctl ctl = { .nlh = { .nlmsg_len = sizeof(ctl),
					   .nlmsg_type = NETLINK_CTL_OVERRUN } };

	if (try_send(client, &ctl, sizeof(ctl)) == 0)
		client->overrun = false;
}

void
netlink_client_writable(struct netlink_client *client)
{
	struct netlink_datagram *d;

	while ((d = STAILQ_FIRST(&client->queue)) != NULL) {
		if (try_send(client, d->data, d->len) != 0)
			break;
		/* Sending to one who left empties the queue. */
		if (client->deaf)
			break;
		STAILQ_REMOVE_HEAD(&client->queue, next);
		freezero(d, sizeof(*d) + d->len);
	}
	if (STAILQ_EMPTY(&client->queue) && client->overrun)
		send_overrun(client);
	if (STAILQ_EMPTY(&client->queue) && client->dump != NULL)
		netlink_dump_continue(client);
	if (STAILQ_EMPTY(&client->queue))
		handle_rest(client);
	netlink_client_watch(client);
}

void
netlink_client_hangup(struct netlink_client *client)
{
	if (!client->deaf)
		go_deaf(client);
	netlink_dump_free(client);
	handle_rest(client);
	netlink_client_readable(client);
}
