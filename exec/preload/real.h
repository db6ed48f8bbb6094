/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef PRELOAD_REAL_H
#define PRELOAD_REAL_H

/* libc's own functions, behind the ones that this library puts before them. */

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define REAL_LIST(X) \
	X(socket) \
	X(bind) \
	X(connect) \
	X(close) \
	X(closefrom) \
	X(close_range) \
	X(dup) \
	X(dup2) \
	X(dup3) \
	X(getsockname) \
	X(getpeername) \
	X(setsockopt) \
	X(getsockopt) \
	X(send) \
	X(sendto) \
	X(sendmsg) \
	X(sendmmsg) \
	X(recv) \
	X(recvfrom) \
	X(recvmsg) \
	X(recvmmsg) \
	X(read) \
	X(write) \
	X(writev) \
	X(if_nametoindex) \
	X(if_indextoname) \
	X(if_nameindex) \
	X(getifaddrs)

struct real {
#define X(name) __typeof__(&name) name;
	REAL_LIST(X)
#undef X
	int (*fcntl)(int fd, int cmd, ...);
	int (*ioctl)(int fd, unsigned long request, ...);
};

/* Looked up on the first call: it may come before this library's own constructors. */
const struct real *real(void);

#endif /* PRELOAD_REAL_H */
