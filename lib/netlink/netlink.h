/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_NETLINK_H
#define NETLINK_NETLINK_H

/*
 * The control server: rtnetlink and xfrm messages in the kernel's own format, on a Unix
 * SOCK_SEQPACKET socket, served in turn by the one thread that owns every control object.
 *
 * The caller polls netlink_server_fd() and calls netlink_server_dispatch() when it is readable. The
 * devices are the caller's: it hands them over through struct netlink_dev_ops.
 *
 * Thread safety: one thread, the control thread, calls everything here.
 */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "action/action.h"
#include "classifier/classifier.h"
#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"

struct csum_action;
struct ipsec_cache;
struct route_table;
struct netlink_server;

#define NETLINK_ALIAS_MAX 256 /* IFALIASZ */
#define NETLINK_ADDR_LEN 6

/* A device as messages see it; a copy, filled by the caller on request. */
struct netlink_dev {
	uint32_t ifindex; /* from 1, never used again while the server lives */
	char name[IF_NAMESIZE];
	char alias[NETLINK_ALIAS_MAX]; /* "" for none */
	char driver[32]; /* "net_null": the parent device's bus address or name */
	uint8_t address[NETLINK_ADDR_LEN];
	uint8_t permanent[NETLINK_ADDR_LEN];
	uint32_t mtu, mtu_min, mtu_max;
	uint32_t txqueuelen;
	uint16_t n_rxq, n_txq;
	bool up; /* administratively */
	bool carrier; /* the driver reports a link */
	bool promisc, allmulti;
	uint32_t carrier_changes;
	/* What packets meet; valid until the device is gone. */
	struct classifier_hook *ingress, *egress;
	/*
	 * n_txq of them, run behind egress, right before the queue's scheduler: filters of prio,
	 * whose classid chooses the band. NULL: such filters are refused.
	 */
	struct classifier_hook *root;
	struct sched_nolock *const *sched; /* n_txq of them */
};

struct netlink_dev_stats {
	uint64_t rx_packets, rx_bytes, rx_errors, rx_dropped, rx_missed, rx_nombuf, multicast;
	uint64_t tx_packets, tx_bytes, tx_errors, tx_dropped;
};

/* What a SETLINK asks for, all of it or nothing. */
#define NETLINK_SET_UP 0x01
#define NETLINK_SET_MTU 0x02
#define NETLINK_SET_ADDRESS 0x04
#define NETLINK_SET_TXQUEUELEN 0x08
#define NETLINK_SET_PROMISC 0x10
#define NETLINK_SET_ALLMULTI 0x20
#define NETLINK_SET_NAME 0x40
#define NETLINK_SET_ALIAS 0x80

struct netlink_dev_change {
	unsigned int set; /* NETLINK_SET_*: which fields below are asked for */
	bool up, promisc, allmulti;
	uint32_t mtu, txqueuelen;
	uint8_t address[NETLINK_ADDR_LEN];
	char name[IF_NAMESIZE];
	char alias[NETLINK_ALIAS_MAX];
};

struct netlink_dev_ops {
	/* The device with the lowest ifindex > after. False if there is none. */
	bool (*next)(void *arg, uint32_t after, struct netlink_dev *dev);
	/* 0 or -errno. */
	int (*stats)(void *arg, uint32_t ifindex, struct netlink_dev_stats *stats);
	/* 0 or -errno with *why a sentence; nothing changed after an error. */
	int (*change)(void *arg, uint32_t ifindex, const struct netlink_dev_change *change,
		const char **why);
};

struct netlink_conf {
	const char *path; /* of the socket; a stale one is replaced, a live one is refused */
	gid_t group; /* owner group with mode 0660; (gid_t)-1: mode 0600 */
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct csum_action *csum; /* what csum actions count in; NULL: nothing */
	struct route_table *route; /* NULL: addresses, routes and neighbours are refused */
	struct ipsec_cache *ipsec; /* NULL: xfrm messages are refused */
	const struct netlink_dev_ops *dev_ops;
	void *dev_arg;
	/* One line for the operator's log (a client came, was cut off), without newline. May be
	 * NULL. */
	void (*log)(void *arg, const char *line);
	void *log_arg;
};

/*
 * Binds and listens. NULL, with one sentence that names the path in error[0..size) and rte_errno:
 * EADDRINUSE (another program serves it), EACCES, ENAMETOOLONG, ENOMEM and what bind(2) says.
 */
struct netlink_server *
netlink_server_create(const struct netlink_conf *conf, char *error, size_t size);

/* Disconnects clients, removes the socket file (if it is still ours), frees qdiscs and filters.
 * NULL accepted. */
void netlink_server_destroy(struct netlink_server *server);

/* An epoll descriptor that is readable when netlink_server_dispatch() has work. */
int netlink_server_fd(const struct netlink_server *server);

/* Serves what is ready, a bounded amount; never blocks. */
void netlink_server_dispatch(struct netlink_server *server);

/* Tells subscribers that a device came, changed (also by itself: carrier) or is about to go. */
void netlink_server_dev_changed(struct netlink_server *server, uint32_t ifindex);
void netlink_server_dev_gone(struct netlink_server *server, uint32_t ifindex);

/*
 * The whole control state as a file: what can be set of links, addresses, routes, neighbours that
 * were set by hand, qdiscs, chains, actions and filters with indexes, handles, priorities and
 * order, as netlink messages (save.h). Statistics are no part of it. Both take the control thread
 * for as long as that takes, some microseconds an object, and are called between two dispatches.
 *
 * save: the file has mode 0600 and replaces an old one whole, or not at all. restore: first removes
 * the addresses, routes, qdiscs, filters and actions that are there, then makes what the file says;
 * after an error the state before is put back, so that it is all or nothing but for statistics,
 * which begin anew. The file is read and its structure and devices are checked before anything is
 * touched. Its devices are ours with the same name, or else with the same bus name, which get their
 * name back. Devices that it does not know keep their settings.
 *
 * 0, or -errno with one sentence in saved->text.
 */
struct netlink_saved {
	uint32_t objects; /* in the file */
	uint32_t left; /* settings of links that a driver cannot change, left as they were */
	char text[768]; /* what went wrong, or which was the first setting left; "" for neither */
};
int netlink_save(struct netlink_server *server, const char *path, struct netlink_saved *saved);
int netlink_restore(struct netlink_server *server, const char *path, struct netlink_saved *saved);

struct netlink_server_stats {
	uint64_t clients, accepted, requests, errors, overruns;
};
void netlink_server_stats(const struct netlink_server *server, struct netlink_server_stats *stats);

#endif /* NETLINK_NETLINK_H */
