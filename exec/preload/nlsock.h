/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef PRELOAD_NLSOCK_H
#define PRELOAD_NLSOCK_H

/*
 * The netlink sockets of this process that are connected to millrace, by file descriptor.
 * Descriptors made by dup() share one. A child of fork() has the table too; exec() loses it.
 */

#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NLSOCK_FD_MAX 65536

/* Memory of these is never used for anything else: a late user finds a closed one, not garbage. */
struct nlsock {
	struct nlsock *next; /* while unused */
	atomic_uint refs;
	int protocol;
	int type; /* SOCK_RAW or SOCK_DGRAM, as asked for */
	atomic_int side; /* descriptor that BIND and SYNC are answered on */
	atomic_uint portid; /* 0: not bound */
	_Atomic uint64_t groups;
	atomic_uint options; /* bit n: option n of SOL_NETLINK is on */
	atomic_uint told; /* receive buffer the server was told of */
	atomic_uint sent; /* requests sent ... */
	atomic_uint synced; /* ... and of those, how many were certainly handled */
	atomic_uint token; /* of the last SYNC */
	atomic_bool passcred;
};

/* Is that family redirected? */
bool nlsock_wanted(int protocol);
/* The control socket. */
const char *nlsock_path(void);

/* A connected socket as a new descriptor, or -1 and errno. */
int nlsock_open(int type, int protocol);
/* The socket behind a descriptor, or NULL: not ours. Does not touch errno. */
struct nlsock *nlsock_find(int fd);
/* Makes `fd`, already a duplicate in the kernel, another name of the socket. */
void nlsock_share(int fd, struct nlsock *sock);
/* Forgets the descriptor, which is about to be closed. */
void nlsock_forget(int fd);
/* Is it one of the private descriptors? The program does not know them, so it cannot mean them. */
bool nlsock_is_private(int fd);
/* Moves a private descriptor out of the way of a dup2(). 0 or -1 and errno. */
int nlsock_move_private(int fd);
/* The lowest private descriptor >= fd, or NLSOCK_FD_MAX. */
unsigned int nlsock_next_private(unsigned int fd);

/* Tells the server something that has no answer. 0 or -1 and errno. */
int nlsock_tell(int fd, uint16_t type, uint32_t arg0, uint32_t arg1);
/* Binds to a port id (0: any) and the first 32 groups. 0 or -1 and errno. */
int nlsock_bind(int fd, struct nlsock *sock, uint32_t portid, uint32_t groups);
/*
 * Waits until the server has handled all that was sent, or there is something to read.
 * True if it is worth reading again.
 */
bool nlsock_sync(int fd, struct nlsock *sock);

#endif /* PRELOAD_NLSOCK_H */
