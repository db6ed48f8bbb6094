/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * A control server with a few devices made up, for programs run through millrace-exec:
 *
 *	exec_server SOCKET [DEVICES]
 *
 * Prints "ready" when it serves, ends when its standard input does, and then says how many requests
 * it had and what processor time they took.
 */

#include <bsd/string.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <rte_rcu_qsbr.h>

#include "action/action.h"
#include "classifier/classifier.h"
#include "netlink/netlink.h"
#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"
#include "support.h"

#define DEVICES_MAX 4096

struct device {
	struct netlink_dev dev;
	struct classifier_hook ingress, egress;
	struct sched_nolock *sched;
};

struct world {
	struct device *devices;
	unsigned int n;
};

static bool
dev_next(void *arg, uint32_t after, struct netlink_dev *dev)
{
	const struct world *w = arg;

	if (after >= w->n)
		return false;
	*dev = w->devices[after].dev;
	return true;
}

static int
dev_stats(void *arg, uint32_t ifindex, struct netlink_dev_stats *stats)
{
	(void)arg;
	*stats = (struct netlink_dev_stats){ .rx_packets = ifindex, .tx_packets = 2 * ifindex };
	return 0;
}

static int
dev_change(void *arg, uint32_t ifindex, const struct netlink_dev_change *change, const char **why)
{
	struct netlink_dev *dev = &((struct world *)arg)->devices[ifindex - 1].dev;

	if ((change->set & NETLINK_SET_MTU) != 0 && change->mtu > dev->mtu_max) {
		*why = "mtu greater than the device allows";
		return -EINVAL;
	}
	if ((change->set & NETLINK_SET_UP) != 0)
		dev->up = dev->carrier = change->up;
	if ((change->set & NETLINK_SET_MTU) != 0)
		dev->mtu = change->mtu;
	if ((change->set & NETLINK_SET_TXQUEUELEN) != 0)
		dev->txqueuelen = change->txqueuelen;
	if ((change->set & NETLINK_SET_ADDRESS) != 0)
		memcpy(dev->address, change->address, sizeof(dev->address));
	if ((change->set & NETLINK_SET_NAME) != 0)
		strlcpy(dev->name, change->name, sizeof(dev->name));
	return 0;
}

static uint16_t
no_tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	(void)pkts;
	return n;
}

static void
no_drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	(void)pkts;
	(void)n;
}

static void
make_devices(struct world *w, unsigned int n, struct rcu *rcu)
{
	struct sched_nolock_conf conf;

	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = 1;
	conf.tx = no_tx;
	conf.drop = no_drop;
	conf.rcu = rcu;
	w->n = n;
	if ((w->devices = calloc(n, sizeof(*w->devices))) == NULL)
		err(1, NULL);
	for (unsigned int i = 0; i < n; i++) {
		struct device *d = &w->devices[i];

		if (i < 16 && (d->sched = sched_nolock_create(&conf)) == NULL)
			errx(1, "sched_nolock_create: %s", rte_strerror(rte_errno));
		d->dev = (struct netlink_dev){ .ifindex = i + 1,
			.driver = "net_null",
			.address = { 2, 0, 0, 0, (uint8_t)(i >> 8), (uint8_t)i },
			.permanent = { 2, 0, 0, 0, (uint8_t)(i >> 8), (uint8_t)i },
			.mtu = 1500,
			.mtu_min = 68,
			.mtu_max = 9000,
			.txqueuelen = 1000,
			.n_rxq = 1,
			.n_txq = d->sched != NULL,
			.up = true,
			.carrier = true,
			.ingress = &d->ingress,
			.egress = &d->egress,
			.sched = &d->sched };
		snprintf(d->dev.name, sizeof(d->dev.name), "p%u", i);
	}
}

static void
serve(struct netlink_server *server, struct rcu *rcu)
{
	struct pollfd p[2] = { { .fd = netlink_server_fd(server), .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN } };
	char byte;

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		if (p[0].revents != 0)
			netlink_server_dispatch(server);
		if (p[1].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0)
			return;
		rcu_reclaim(rcu, 64);
	}
}

static void
say_line(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "%s\n", line);
}

static void
report(const struct netlink_server *server, const struct rusage *before)
{
	struct netlink_server_stats stats;
	struct rusage now;
	double us;

	netlink_server_stats(server, &stats);
	getrusage(RUSAGE_SELF, &now);
	us = (double)(now.ru_utime.tv_sec + now.ru_stime.tv_sec - before->ru_utime.tv_sec -
		     before->ru_stime.tv_sec) *
			1e6 +
		(double)(now.ru_utime.tv_usec + now.ru_stime.tv_usec - before->ru_utime.tv_usec -
			before->ru_stime.tv_usec);
	printf("requests %lu errors %lu accepted %lu overruns %lu cpu_us %.0f us_per_request "
	       "%.2f\n",
		stats.requests, stats.errors, stats.accepted, stats.overruns, us,
		stats.requests > 0 ? us / (double)stats.requests : 0);
}

int
main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 3;
	struct rte_rcu_qsbr *qsbr = aligned_alloc(64, rte_rcu_qsbr_get_memsize(1));
	struct netlink_conf conf = { .group = (gid_t)-1 };
	static const struct netlink_dev_ops ops = { dev_next, dev_stats, dev_change };
	struct netlink_server *server;
	struct world world;
	struct rusage before;
	char error[256];

	if (argc < 2 || n < 1 || n > DEVICES_MAX)
		errx(1, "usage: exec_server SOCKET [DEVICES]");
	test_eal_init("exec_server", "0");
	if (qsbr == NULL || rte_rcu_qsbr_init(qsbr, 1) != 0 ||
		(conf.rcu = rcu_create(qsbr)) == NULL ||
		(conf.actions = action_table_create(conf.rcu, 1)) == NULL ||
		(conf.classifier = classifier_create(conf.rcu, conf.actions)) == NULL)
		errx(1, "%s", rte_strerror(rte_errno));
	make_devices(&world, n, conf.rcu);
	conf.path = argv[1];
	conf.dev_ops = &ops;
	conf.dev_arg = &world;
	conf.log = getenv("EXEC_SERVER_LOG") != NULL ? say_line : NULL;
	if ((server = netlink_server_create(&conf, error, sizeof(error))) == NULL)
		errx(1, "%s", error);
	getrusage(RUSAGE_SELF, &before);
	puts("ready");
	fflush(stdout);
	serve(server, conf.rcu);
	report(server, &before);
	netlink_server_destroy(server);
	classifier_destroy(conf.classifier);
	for (unsigned int i = 0; i < world.n; i++)
		if (world.devices[i].sched != NULL)
			sched_nolock_destroy(world.devices[i].sched);
	action_table_destroy(conf.actions);
	rcu_destroy(conf.rcu);
	free(world.devices);
	free(qsbr);
	return 0;
}
