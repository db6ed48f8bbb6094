/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_UNIT_NETLINK_FAMILIES_H
#define TEST_UNIT_NETLINK_FAMILIES_H

/*
 * A control server in this process with two devices that exist in memory only: p0 with one Tx queue
 * and p1 with two, over real schedulers, actions and filters. Tests talk to it by messages of
 * their own or through the real `tc` and `ip`.
 */

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "action/action.h"
#include "classifier/classifier.h"
#include "netlink/netlink.h"
#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"

struct ipsec_cache;
struct rte_rcu_qsbr;

#define FAMILIES_DEVS 2
#define FAMILIES_QUEUES 2
#define FAMILIES_WORKERS 2

struct families_dev {
	struct netlink_dev dev;
	struct classifier_hook ingress, egress, root[FAMILIES_QUEUES];
	struct sched_nolock *sched[FAMILIES_QUEUES];
	struct netlink_dev_stats stats;
	bool present;
	int refuse; /* error of the next change(), 0 for none */
};

struct families {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct ipsec_cache *ipsec; /* of FAMILIES_WORKERS workers; every destination is behind p0 */
	struct families_dev devs[FAMILIES_DEVS];
	struct netlink_server *server;
	char path[64];
	int fd; /* a client's socket, after HELLO */
	uint32_t seq;
	char error[256]; /* text of the last extended ack */
};

struct families *families_create(const char *name);
/* Checks that nothing is left over: actions, deferred objects. */
void families_destroy(struct families *f);

/* Another client's socket of NETLINK_ROUTE; groups as in sockaddr_nl. */
int families_connect(struct families *f, uint32_t groups);
/* The same for another protocol; f->fd may be set to it. */
int families_connect_to(struct families *f, int protocol, uint32_t groups);

/* Starts a request in buf with a header of `len` bytes, zeroed. */
struct nlmsghdr *
families_message(struct families *f, void *buf, uint16_t type, uint16_t flags, size_t len);
/*
 * Sends it, serves it and returns the error of its ack (0 or -errno), or 1 if there was an answer
 * that is no ack, which is then in answer[0..*answer_len). A dump's answers are put one after the
 * other.
 */
int families_talk(struct families *f, const struct nlmsghdr *nlh, void *answer, size_t size,
	size_t *answer_len);
/* The same for a request that is answered by an ack alone. */
int families_request(struct families *f, const struct nlmsghdr *nlh);

/* Everything that can be dumped, without times and sequence numbers, in a buffer of malloc(). */
void *families_snapshot(struct families *f, size_t *len);

/*
 * Runs a command line by /bin/sh through millrace-exec, serving it meanwhile. Returns its exit
 * status; what it wrote is in out, terminated.
 */
int families_run(struct families *f, char *out, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* True if the tools are there; else the test is to be skipped. */
bool families_tools(void);

#endif /* TEST_UNIT_NETLINK_FAMILIES_H */
