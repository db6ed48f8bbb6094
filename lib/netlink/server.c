/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The control server: made, polled, destroyed. */

#include <errno.h>
#include <fcntl.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netlink/server.h"

#define EVENTS 64
#define ACCEPT_BUDGET 16
/* Of clients served before the caller has its turn. */
#define ROUNDS 4
/* Dispatches in a row that only look at the one client there is; then who knocks has a chance. */
#define ALONE_MAX 64

struct netlink_server *
netlink_server_create(const struct netlink_conf *conf, char *error, size_t size)
{
	struct epoll_event event = { .events = EPOLLIN }; /* data.ptr NULL: the listener */
	struct netlink_server *server;
	int err;

	if ((server = calloc(1, sizeof(*server))) == NULL ||
		(server->path = strdup(conf->path)) == NULL) {
		free(server);
		snprintf(error, size, "%s: out of memory", conf->path);
		rte_errno = ENOMEM;
		return NULL;
	}
	server->conf = *conf;
	server->conf.path = server->path;
	server->listener = server->spare = -1;
	server->next_portid = (uint32_t)-4097;
	LIST_INIT(&server->clients);
	if ((server->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
		(server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
		err = -errno;
		snprintf(error, size, "%s: %s", conf->path, strerror(errno));
		goto fail;
	}
	if ((err = netlink_listen(server, error, size)) != 0)
		goto fail;
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event) != 0) {
		err = -errno;
		snprintf(error, size, "%s: %s", conf->path, strerror(errno));
		goto fail;
	}
	if ((err = netlink_families_create(server)) != 0) {
		snprintf(error, size, "%s: %s", conf->path, strerror(-err));
		goto fail;
	}
	return server;
fail:
	netlink_listen_close(server);
	if (server->spare >= 0)
		close(server->spare);
	if (server->epoll >= 0)
		close(server->epoll);
	free(server->path);
	free(server);
	rte_errno = -err;
	return NULL;
}

void
netlink_server_destroy(struct netlink_server *server)
{
	struct netlink_client *client;

	if (server == NULL)
		return;
	netlink_listen_close(server);
	while ((client = LIST_FIRST(&server->clients)) != NULL)
		netlink_client_destroy(client);
	netlink_families_destroy(server);
	close(server->spare);
	close(server->epoll);
	free(server->path);
	free(server);
}

int
netlink_server_fd(const struct netlink_server *server)
{
	return server->epoll;
}

const struct netlink_conf *
netlink_server_conf(const struct netlink_server *server)
{
	return &server->conf;
}

static void
accept_clients(struct netlink_server *server)
{
	for (unsigned int i = 0; i < ACCEPT_BUDGET; i++) {
		int fd = netlink_accept(server), err;

		if (fd < 0)
			return;
		err = server->n_clients < NETLINK_CLIENTS_MAX ? netlink_client_create(server, fd)
							      : -EUSERS;
		if (err == 0)
			continue;
		netlink_log(server, "control client refused: %s",
			err == -EUSERS ? "too many clients" : strerror(-err));
		netlink_send_hello(fd, err, -1);
		close(fd);
	}
}

static void
serve_client(struct netlink_client *client, uint32_t events)
{
	if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
		netlink_client_hangup(client);
		return;
	}
	if ((events & EPOLLOUT) != 0)
		netlink_client_writable(client);
	if ((events & EPOLLIN) != 0)
		netlink_client_readable(client);
}

/* A client dies in its own turn, or in another's that notified it: no event may name it any more.
 */
static void
bury_dead(struct netlink_server *server)
{
	struct netlink_client *client, *next;

	server->any_dead = false;
	for (client = LIST_FIRST(&server->clients); client != NULL; client = next) {
		next = LIST_NEXT(client, next);
		if (client->dead)
			netlink_client_destroy(client);
	}
}

/* Serves who is ready, once. Returns how many were. */
static int
serve_ready(struct netlink_server *server)
{
	struct epoll_event events[EVENTS];
	struct netlink_client *client;
	int n = epoll_wait(server->epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		if ((client = events[i].data.ptr) == NULL)
			accept_clients(server);
		else
			serve_client(client, events[i].events);
	}
	if (server->any_dead)
		bury_dead(server);
	return n;
}

/*
 * One client alone that waits for nothing but its next answer, as tc -b is: if anything is ready,
 * it is that, and reading it tells as much as asking epoll would. False: it was something else.
 */
static bool
serve_alone(struct netlink_server *server)
{
	struct netlink_client *client = LIST_FIRST(&server->clients);

	if (server->n_clients != 1 || client->events != EPOLLIN || server->alone++ == ALONE_MAX ||
		!netlink_client_readable(client)) {
		server->alone = 0;
		return false;
	}
	if (server->any_dead)
		bury_dead(server);
	return true;
}

void
netlink_server_dispatch(struct netlink_server *server)
{
	if (serve_alone(server))
		return;
	/* Where several ask, some have asked again by now; one alone is still reading its answer.
	 */
	for (unsigned int i = 0; i < ROUNDS && serve_ready(server) > 1; i++)
		;
}

void
netlink_server_dev_changed(struct netlink_server *server, uint32_t ifindex)
{
	netlink_link_notify(server, NULL, RTM_NEWLINK, ifindex);
}

void
netlink_server_dev_gone(struct netlink_server *server, uint32_t ifindex)
{
	netlink_link_notify(server, NULL, RTM_DELLINK, ifindex);
	netlink_families_dev_gone(server, ifindex);
}

void
netlink_server_stats(const struct netlink_server *server, struct netlink_server_stats *stats)
{
	*stats = server->stats;
	stats->clients = server->n_clients;
}
