/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What the control server's transport costs: processor time of the serving process a request, which
 * a real handler's comes on top of (here: a parse of two attributes and nothing else).
 *
 * netlink_replay [-n requests] [-r rounds] [-o file.json]
 *
 * Clients are children that replay one request on connections of their own: a request and its ack
 * in turn, as tc -b does, or sixteen a datagram. The server serves them in its own process as an
 * application does: poll, then dispatch. Medians of the rounds; the rate is by the wall clock and
 * shares the machine with the clients.
 */

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/median.h"
#include "world.h"

#define ROUNDS_MAX 101

struct row {
	const char *name;
	unsigned int clients;
	unsigned int batch; /* messages a datagram */
	uint16_t flags;
	uint32_t dump; /* objects of a dump, 0: requests */
};

static const struct row rows[] = {
	{ "lockstep_1", 1, 1, NLM_F_ACK, 0 },
	{ "lockstep_10", 10, 1, NLM_F_ACK, 0 },
	{ "lockstep_64", 64, 1, NLM_F_ACK, 0 },
	{ "datagram_16_ack", 1, 16, NLM_F_ACK, 0 },
	{ "datagram_16", 1, 16, 0, 0 },
	{ "dump_objects", 1, 1, NLM_F_DUMP, 100000 },
};

static double
seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t
build(uint8_t *to, const struct row *row)
{
	struct world_header h = { .count = row->dump, .size = 128 };
	uint32_t value = 7;
	struct message m;
	size_t n = 0;

	for (unsigned int i = 0; i < row->batch; i++) {
		struct nlmsghdr *nlh = message_init(&m, row->dump != 0 ? RTM_GETLINK : RTM_NEWLINK,
			NLM_F_REQUEST | row->flags, i, &h);

		if (row->dump == 0) {
			message_attr(&m, WORLD_U32, &value, sizeof(value));
			message_attr(&m, WORLD_STRING, "abc", 4);
		}
		memcpy(to + n, nlh, nlh->nlmsg_len);
		n += nlh->nlmsg_len;
	}
	return n;
}

/* Reads what a datagram of requests is answered with. */
static void
await(int fd, const struct row *row)
{
	static _Alignas(8) uint8_t buf[65536];
	unsigned int acks = (row->flags & NLM_F_ACK) != 0 ? row->batch : 0;
	bool done = row->dump == 0;

	for (unsigned int i = 0; i < acks; i++)
		if (recv(fd, buf, sizeof(buf), 0) <= 0)
			errx(1, "the server left");
	while (!done) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		struct nlmsghdr *nlh = (struct nlmsghdr *)(void *)buf;

		if (n <= 0)
			errx(1, "the server left");
		for (; NLMSG_OK(nlh, n) && !done; nlh = NLMSG_NEXT(nlh, n))
			done = nlh->nlmsg_type == NLMSG_DONE;
	}
}

static pid_t
start_client(const struct client *c, const struct row *row, unsigned int datagrams, const int go[2])
{
	static _Alignas(8) uint8_t data[65536];
	size_t len = build(data, row);
	pid_t pid = fork();
	char byte;

	if (pid != 0)
		return pid;
	close(go[1]);
	/* Ends when the parent closes the pipe: all start together. */
	if (read(go[0], &byte, 1) != 0)
		_exit(1);
	for (unsigned int i = 0; i < datagrams; i++) {
		if (send(c->fd, data, len, 0) != (ssize_t)len)
			_exit(1);
		await(c->fd, row);
	}
	if ((row->flags & NLM_F_ACK) == 0 && row->dump == 0) {
		struct netlink_ctl ctl;

		client_tell(c, NETLINK_CTL_SYNC, 0, 0);
		(void)recv(c->side, &ctl, sizeof(ctl), 0);
	}
	_exit(0);
}

/* Serves until all children ended. */
static void
serve(struct netlink_server *server, unsigned int children)
{
	struct pollfd p = { .fd = netlink_server_fd(server), .events = POLLIN };

	while (children > 0) {
		int r = poll(&p, 1, 1), status;

		if (r > 0)
			netlink_server_dispatch(server);
		else if (waitpid(-1, &status, WNOHANG) > 0) {
			if (status != 0)
				errx(1, "a client failed");
			children--;
		}
	}
}

static void
run(const struct row *row, unsigned int requests, double *cpu, double *wall)
{
	const char *path = "/tmp/millrace-replay.sock";
	unsigned int each = requests / row->clients / row->batch;
	static struct client c[64];
	struct netlink_server *server;
	char where[64];
	int go[2];
	double units;

	snprintf(where, sizeof(where), "%s.%d", path, (int)getpid());
	server = world_create(where);
	if (row->dump != 0)
		each = requests / row->dump + 1;
	if (pipe(go) != 0)
		err(1, "pipe");
	for (unsigned int i = 0; i < row->clients; i++) {
		c[i] = client_open(server, where, NETLINK_ROUTE);
		client_tell(&c[i], NETLINK_CTL_RCVBUF, 32768, 0);
	}
	for (unsigned int i = 0; i < row->clients; i++)
		if (start_client(&c[i], row, each, go) < 0)
			err(1, "fork");
	world_pump(server);
	*cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	*wall = seconds(CLOCK_MONOTONIC);
	close(go[0]);
	close(go[1]);
	serve(server, row->clients);
	units = (double)each * row->clients * (row->dump != 0 ? row->dump : row->batch);
	*cpu = (seconds(CLOCK_PROCESS_CPUTIME_ID) - *cpu) / units;
	*wall = units / (seconds(CLOCK_MONOTONIC) - *wall);
	for (unsigned int i = 0; i < row->clients; i++)
		client_close(&c[i]);
	netlink_server_destroy(server);
}

int
main(int argc, char **argv)
{
	double cpu[ROUNDS_MAX], wall[ROUNDS_MAX];
	unsigned int requests = 100000, rounds = 5;
	FILE *json = NULL;
	int c;

	while ((c = getopt(argc, argv, "n:r:o:")) != -1) {
		if (c == 'n')
			requests = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			rounds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'o') {
			if ((json = fopen(optarg, "w")) == NULL)
				err(1, "%s", optarg);
		} else
			errx(1, "usage: netlink_replay [-n requests] [-r rounds] [-o file.json]");
	}
	if (rounds < 1 || rounds > ROUNDS_MAX)
		errx(1, "-r: 1 to %d", ROUNDS_MAX);
	printf("%-20s %12s %12s\n", "row", "cpu ns each", "each second");
	if (json != NULL)
		fprintf(json, "{\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned int r = 0; r < rounds; r++)
			run(&rows[i], requests, &cpu[r], &wall[r]);
		median_sort(cpu, rounds);
		median_sort(wall, rounds);
		printf("%-20s %12.0f %12.0f\n", rows[i].name, cpu[rounds / 2] * 1e9,
			wall[rounds / 2]);
		fflush(stdout);
		if (json != NULL)
			fprintf(json, "%s\t\"%s_cpu_ns\": %.1f,\n\t\"%s_per_second\": %.0f",
				i > 0 ? ",\n" : "", rows[i].name, cpu[rounds / 2] * 1e9,
				rows[i].name, wall[rounds / 2]);
	}
	if (json != NULL) {
		fprintf(json, "\n}\n");
		if (fclose(json) != 0)
			err(1, "json");
	}
	return 0;
}
