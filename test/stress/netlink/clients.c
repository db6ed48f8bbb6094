/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Sixty-four clients that behave as badly as they can, at random: they ask and do not read, dump
 * and die, send half messages, subscribe and sleep. Two well-behaved ones are served promptly
 * meanwhile: one gets each ack at once, the other each notification or word of an overrun. What the
 * server keeps for all of them stays bounded, and at the end nothing is left of them.
 *
 * clients [SECONDS [SEED]]
 */

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "netlink/server.h"
#include "world.h"

#define CLIENTS 64
/* One message may be answered by so much before the next has to wait. */
#define KEPT_MAX (3 * NETLINK_MESSAGE_MAX)

static char path[64];
static struct netlink_server *server;
static struct client clients[CLIENTS];
static _Alignas(8) uint8_t buf[65536];

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort(); \
		} \
	} while (0)

static uint32_t
below(uint32_t n)
{
	return (uint32_t)random() % n;
}

/* A datagram of one to eight messages, now and then cut or with a length that lies. */
static void
send_something(struct client *c)
{
	static _Alignas(8) uint8_t data[8 * 512];
	size_t len = 0;
	struct message m;

	for (uint32_t n = 1 + below(8); n > 0; n--) {
		struct world_header h = { .count = below(3) * below(300),
			.size = below(200),
			.error = below(10) == 0 ? -EINVAL : 0 };
		uint16_t type = below(2) ? RTM_NEWLINK : RTM_GETLINK;
		struct nlmsghdr *nlh = message_init(&m, type,
			NLM_F_REQUEST | (below(2) ? NLM_F_ACK : 0) | (below(2) ? NLM_F_ECHO : 0) |
				(type == RTM_GETLINK && below(4) == 0 ? NLM_F_DUMP : 0),
			n, &h);

		if (below(20) == 0)
			nlh->nlmsg_len = below(200);
		memcpy(data + len, m.data, sizeof(m.data));
		len += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	if (below(20) == 0)
		len = 1 + below((uint32_t)len + 8);
	/* Nothing at all would be its end. */
	if (len == 0)
		len = 1;
	(void)send(c->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
misbehave(struct client *c)
{
	switch (below(10)) {
	case 0:
		client_close(c);
		*c = client_open(server, path, NETLINK_ROUTE);
		CHECK(c->hello == 0);
		break;
	case 1:
		client_tell(c, below(2) ? NETLINK_CTL_JOIN : NETLINK_CTL_LEAVE, WORLD_GROUP, 0);
		break;
	case 2:
		client_tell(c, NETLINK_CTL_RCVBUF, below(65536), 0);
		break;
	case 3:
		client_tell(c, NETLINK_CTL_SYNC, below(100), 0);
		break;
	case 4:
		for (uint32_t n = below(50); n > 0 && client_recv(c, buf, sizeof(buf)) > 0; n--)
			;
		break;
	case 5:
		client_tell(c, NETLINK_CTL_SETSOCKOPT, below(14), below(2));
		break;
	default:
		send_something(c);
		break;
	}
}

static void
check_kept(void)
{
	const struct netlink_client *c;
	const struct netlink_datagram *d;

	LIST_FOREACH (c, &server->clients, next) {
		size_t n = 0;

		STAILQ_FOREACH (d, &c->queue, next)
			n += d->len;
		CHECK(n <= KEPT_MAX);
		CHECK(c->rest == NULL || c->rest_len <= sizeof(server->rx));
	}
}

/* One request, whose ack is there after a few turns whatever the others do. */
static void
ask_promptly(struct client *c, uint32_t seq)
{
	static const struct world_header plain;
	const struct nlmsghdr *ack = (const struct nlmsghdr *)(void *)buf;
	struct message m;
	struct nlmsghdr *nlh =
		message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, seq, &plain);

	CHECK(send(c->fd, &m, nlh->nlmsg_len, MSG_DONTWAIT) == (ssize_t)nlh->nlmsg_len);
	for (int turns = 0; client_recv(c, buf, sizeof(buf)) == 0; turns++) {
		CHECK(turns < 2 * CLIENTS);
		netlink_server_dispatch(server);
	}
	CHECK(ack->nlmsg_type == NLMSG_ERROR && ack->nlmsg_seq == seq);
}

/* It has heard of the change with that number, or that it missed some. */
static void
listen_promptly(struct client *c, uint32_t seq)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)(void *)buf;
	bool heard = false;

	/* Word of an overrun comes when there is room again. */
	for (int turns = 0; turns < 2 && !heard; turns++) {
		while (client_recv(c, buf, sizeof(buf)) > 0)
			heard |= nlh->nlmsg_type == NETLINK_CTL_OVERRUN ||
				(nlh->nlmsg_type == RTM_NEWLINK && nlh->nlmsg_seq == seq);
		netlink_server_dispatch(server);
	}
	CHECK(heard);
}

int
main(int argc, char **argv)
{
	time_t limit = argc > 1 ? (time_t)strtonum(argv[1], 1, 86400, NULL) : 10;
	unsigned int seed = argc > 2 ? (unsigned int)strtonum(argv[2], 0, UINT32_MAX, NULL)
				     : (unsigned int)time(NULL);
	struct rlimit files = { .rlim_cur = 1024, .rlim_max = 1024 };
	struct netlink_server_stats stats;
	struct client good, ear;
	time_t end = time(NULL) + limit;
	uint32_t rounds = 0;

	printf("seed %u\n", seed);
	fflush(stdout);
	srandom(seed);
	setrlimit(RLIMIT_NOFILE, &files);
	snprintf(path, sizeof(path), "/tmp/millrace-stress-%d.sock", (int)getpid());
	server = world_create(path);
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = client_open(server, path, NETLINK_ROUTE);
	good = client_open(server, path, NETLINK_ROUTE);
	ear = client_open(server, path, NETLINK_ROUTE);
	client_tell(&ear, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	do {
		for (uint32_t n = below(CLIENTS); n > 0; n--)
			misbehave(&clients[below(CLIENTS)]);
		for (uint32_t n = below(4); n > 0; n--)
			netlink_server_dispatch(server);
		check_kept();
		ask_promptly(&good, ++rounds);
		if (below(4) == 0)
			listen_promptly(&ear, rounds);
	} while (time(NULL) < end);
	netlink_server_stats(server, &stats);
	printf("rounds %u requests %lu errors %lu accepted %lu overruns %lu\n", rounds,
		stats.requests, stats.errors, stats.accepted, stats.overruns);
	CHECK(stats.clients == CLIENTS + 2 && stats.overruns > 0);
	for (int i = 0; i < CLIENTS; i++)
		client_close(&clients[i]);
	client_close(&good);
	client_close(&ear);
	world_pump(server);
	netlink_server_stats(server, &stats);
	CHECK(stats.clients == 0);
	netlink_server_destroy(server);
	return 0;
}
