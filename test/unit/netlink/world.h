/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_NETLINK_WORLD_H
#define TEST_NETLINK_WORLD_H

/* A control server in this process, with message types of its own, and clients on real sockets. */

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "netlink/ctl.h"
#include "netlink/message.h"
#include "netlink/netlink.h"

/* What the handlers of world.c read: every request starts with one. */
struct world_header {
	uint32_t count; /* dump: objects; doit of GETLINK: messages in the answer */
	uint32_t size; /* of each, in bytes of payload */
	int32_t error; /* to fail with, after half of a dump */
	uint32_t flags; /* WORLD_* */
};
#define WORLD_CHANGE 1 /* a dump that is changed under way */

#define WORLD_GROUP RTNLGRP_LINK

/* RTM_NEWLINK parses these. */
enum {
	WORLD_U8 = 1,
	WORLD_U16,
	WORLD_U32,
	WORLD_U64,
	WORLD_BINARY, /* 2 .. 6 bytes */
	WORLD_STRING, /* at most 8 with the NUL */
	WORLD_NESTED, /* of the same attributes */
	WORLD_FLAG,
	WORLD_REFUSED,
	WORLD_IGNORED,
	WORLD_MAX,
};

/* Requests that RTM_NEWLINK accepted, in order of arrival the last sequence number. */
extern unsigned int world_accepted;
extern uint32_t world_last_seq;

struct netlink_server *world_create(const char *path);
/* Serves until there is nothing left to do. */
void world_pump(struct netlink_server *server);

struct client {
	int fd;
	int side;
	uint32_t portid;
	int hello; /* errno of the answer */
};

/* Connects without a word; with hello and bind. */
int client_connect(const char *path);
struct client client_open(struct netlink_server *server, const char *path, int protocol);
void client_close(struct client *c);
void client_tell(const struct client *c, uint16_t type, uint32_t arg0, uint32_t arg1);
/* The next answer aside: its error and value. False: there is none. */
bool client_aside(const struct client *c, uint16_t type, int *error, uint32_t *value);

/* One message into buf; returns its length. */
struct message {
	_Alignas(8) uint8_t data[512];
};
struct nlmsghdr *message_init(struct message *m, uint16_t type, uint16_t flags, uint32_t seq,
	const struct world_header *header);
void message_attr(struct message *m, uint16_t type, const void *data, size_t len);

/* The next datagram, or 0: none there. */
size_t client_recv(const struct client *c, void *buf, size_t size);
/* Sends, serves, and returns the error of the one ack that came; its text, if any, in why. */
int client_talk(struct netlink_server *server, const struct client *c, const void *data, size_t len,
	char why[256], uint32_t *offset);

#endif /* TEST_NETLINK_WORLD_H */
