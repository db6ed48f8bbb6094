/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_SERVER_H
#define NETLINK_SERVER_H

/* Inside the transport: what server.c, listen.c, client.c, put.c and notify.c share. */

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "netlink/message.h"
#include "netlink/netlink.h"

#define NETLINK_CLIENTS_MAX 256
#define NETLINK_GROUPS_MAX 64 /* RTNLGRP_* and XFRMNLGRP_* end well below */
#define NETLINK_PROTOCOLS 2

/* Largest request datagram; a longer one is refused whole. */
#define NETLINK_REQUEST_MAX (256 * 1024)
/* Dump datagrams until the client showed a larger buffer; programs read into 4 KiB. */
#define NETLINK_DUMP_SMALL 3584
#define NETLINK_DUMP_SMALL_BUFFER 4096

/* An answer that did not fit the client's socket yet. */
struct netlink_datagram {
	STAILQ_ENTRY(netlink_datagram) next;
	size_t len;
	uint8_t data[];
};

struct netlink_dump {
	struct netlink_request req;
	const struct netlink_handler *handler;
	struct nlmsghdr *nlh; /* a copy of the request, its header filled up with zeros */
};

/* Socket options, as bits. */
#define NETLINK_CLIENT_EXT_ACK 0x01
#define NETLINK_CLIENT_CAP_ACK 0x02
#define NETLINK_CLIENT_STRICT 0x04
#define NETLINK_CLIENT_NO_ENOBUFS 0x08

struct netlink_client {
	LIST_ENTRY(netlink_client) next;
	struct netlink_server *server;
	int fd;
	int side; /* answers to BIND and SYNC; -1 before HELLO */
	int protocol; /* -1 before HELLO */
	uint32_t portid; /* 0 before BIND or the first request */
	uint32_t wish; /* the port id it would like: its pid */
	uint64_t groups; /* bit g - 1: member of group g */
	unsigned int options; /* NETLINK_CLIENT_* */
	uint32_t rcvbuf; /* largest receive buffer it told of */
	uint32_t events; /* what epoll watches */
	bool answered; /* in this turn: it has something to read */
	bool deaf; /* it left; what it asked before is still served */
	bool dead; /* to be freed at the end of the dispatch */
	bool overrun; /* lost a notification and was not told yet */
	pid_t pid; /* SO_PEERCRED */
	uid_t uid;
	/* Answers that wait for room. While there are any, no further request of it is handled. */
	STAILQ_HEAD(, netlink_datagram) queue;
	/* The messages of a datagram that wait for that; NULL: none. */
	uint8_t *rest;
	size_t rest_len, rest_off;
	struct netlink_dump *dump; /* under way; one at a time, as in the kernel */
};

/*
 * Acks that say no more than "done", of the datagram under way: each is a datagram of its own as
 * the kernel's are, but they leave by one system call. No more than these are handled beyond what
 * the client's socket has room for.
 */
#define NETLINK_ACKS_MAX 16
struct netlink_acks {
	struct netlink_client *client; /* whose they are; its turn ends with none */
	unsigned int n;
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr err;
	} ack[NETLINK_ACKS_MAX];
};

struct netlink_server {
	struct netlink_conf conf;
	char *path;
	dev_t dev; /* of the socket file, to know it again */
	ino_t ino;
	int listener;
	int epoll;
	int spare; /* a descriptor to give up for refusing a client when there are no more */
	LIST_HEAD(, netlink_client) clients;
	unsigned int n_clients;
	unsigned int alone; /* dispatches in a row that looked at the only client */
	bool any_dead;
	uint32_t next_portid; /* counts down when the pid is taken */
	uint32_t members[NETLINK_PROTOCOLS][NETLINK_GROUPS_MAX + 1]; /* clients in each group */
	void *state[NETLINK_FAMILIES_MAX];
	struct netlink_server_stats stats;
	struct netlink_acks acks;
	/* The answer that the handler under way is putting together. */
	size_t tx_len, tx_limit;
	_Alignas(8) uint8_t tx[NETLINK_MESSAGE_MAX];
	/* The notification under way. */
	_Alignas(8) uint8_t note[NETLINK_MESSAGE_MAX];
	_Alignas(8) uint8_t rx[NETLINK_REQUEST_MAX];
};

/* NETLINK_ROUTE -> 0, NETLINK_XFRM -> 1, others -> -1 */
int netlink_protocol_index(int protocol);

/* listen.c: the socket file. 0 or -errno with a sentence in error[0..size). */
int netlink_listen(struct netlink_server *server, char *error, size_t size);
void netlink_listen_close(struct netlink_server *server);
/* Takes in one client: its descriptor, or -1 when there is none (left). */
int netlink_accept(struct netlink_server *server);

/* client.c: one client's requests, answers and dumps. */
int netlink_client_create(struct netlink_server *server, int fd);
/* Has it destroyed at the end of the dispatch under way, or in the next. */
void netlink_client_kill(struct netlink_client *client);
void netlink_client_destroy(struct netlink_client *client);
/* Reads and serves a few datagrams. False: there was none, and nobody left. */
bool netlink_client_readable(struct netlink_client *client);
void netlink_client_writable(struct netlink_client *client);
/* The other end is closed: serves what was sent before. */
void netlink_client_hangup(struct netlink_client *client);
/* Makes epoll watch what the client waits for. */
void netlink_client_watch(struct netlink_client *client);
/* Sends or queues a datagram. */
void netlink_client_send(struct netlink_client *client, const void *data, size_t len);
/* Sends a notification, or notes an overrun. */
void netlink_client_notify(struct netlink_client *client, const void *data, size_t len);

/* ack.c: acknowledges (err 0) or refuses the request. `room`: bytes of nlh that are there. */
void netlink_client_ack(struct netlink_client *client, const struct netlink_request *req,
	const struct nlmsghdr *nlh, size_t room, int err);
/* Sends what was kept, before anything else is sent to the client. */
void netlink_acks_flush(struct netlink_client *client);

/* control.c: private messages. */
void netlink_control(struct netlink_client *client, const struct nlmsghdr *nlh);
void netlink_client_autobind(struct netlink_client *client);
/* The answer to a hello, with a descriptor if aside >= 0. 0 or -errno. */
int netlink_send_hello(int fd, int err, int aside);
void netlink_client_leave_all(struct netlink_client *client);

/* dump.c */
int netlink_dump_start(struct netlink_client *client, const struct netlink_handler *handler,
	const struct nlmsghdr *nlh, struct netlink_request *req);
/* Sends the next datagram of the dump. */
void netlink_dump_continue(struct netlink_client *client);
void netlink_dump_free(struct netlink_client *client);

/* put.c: NLMSGERR_ATTR_* of `req` at `to`, at most 300 bytes; returns how many. */
size_t
netlink_put_extack(uint8_t *to, const struct netlink_request *req, size_t message_len, int err);
/* Sends what a doit has put. */
void netlink_put_flush(struct netlink_request *req);

/* registry.c */
int netlink_families_create(struct netlink_server *server);
void netlink_families_destroy(struct netlink_server *server);
void netlink_families_dev_gone(struct netlink_server *server, uint32_t ifindex);
const char *netlink_type_name(int protocol, uint16_t type);

/* Messages of NETLINK_XFRM have keys, which do not stay behind in buffers. */
static inline void
netlink_wipe(int protocol, void *buffer, size_t len)
{
	if (protocol == NETLINK_XFRM)
		explicit_bzero(buffer, len);
}

/* notify.c */
void netlink_log(const struct netlink_server *server, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* NETLINK_SERVER_H */
