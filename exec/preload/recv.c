/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Answers and notifications. Two things differ from reading the Unix socket: a read that finds
 * nothing first lets the server handle what was sent, and an overrun is an error instead of a
 * message.
 */

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "netlink/ctl.h"
#include "nlsock.h"
#include "real.h"

/* Who asks for the length first can read anything. */
#define RCVBUF_ANY 32768

static size_t
iov_space(const struct msghdr *msg)
{
	size_t n = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		n += msg->msg_iov[i].iov_len;
	return n;
}

/* Dumps come in small datagrams until the server knows that larger ones would not be cut. */
static void
tell_rcvbuf(int fd, struct nlsock *sock, size_t space, int flags)
{
	const int peek = MSG_PEEK | MSG_TRUNC;

	if ((flags & peek) == peek || space > RCVBUF_ANY)
		space = RCVBUF_ANY;
	if (space <= atomic_load(&sock->told))
		return;
	if (nlsock_tell(fd, NETLINK_CTL_RCVBUF, (uint32_t)space, 0) == 0)
		atomic_store(&sock->told, (uint32_t)space);
}

static bool
is_overrun(int fd, const struct msghdr *msg, int flags, size_t got)
{
	struct netlink_ctl ctl;
	uint8_t *to = (uint8_t *)&ctl;
	size_t n = 0;

	if (got < sizeof(ctl) && (flags & MSG_TRUNC) != 0)
		return false;
	if ((flags & MSG_PEEK) != 0) {
		if (real()->recv(fd, &ctl, sizeof(ctl), MSG_PEEK | MSG_DONTWAIT) !=
			(ssize_t)sizeof(ctl))
			return false;
	} else {
		for (size_t i = 0; i < msg->msg_iovlen && n < sizeof(ctl.nlh); i++) {
			size_t part = msg->msg_iov[i].iov_len;

			if (part > sizeof(ctl.nlh) - n)
				part = sizeof(ctl.nlh) - n;
			memcpy(to + n, msg->msg_iov[i].iov_base, part);
			n += part;
		}
		if (n < sizeof(ctl.nlh) || got < n)
			return false;
	}
	return ctl.nlh.nlmsg_type == NETLINK_CTL_OVERRUN;
}

static void
put_cmsg(struct msghdr *msg, size_t *used, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *cmsg;

	if (msg->msg_control == NULL || *used + CMSG_SPACE(len) > msg->msg_controllen) {
		msg->msg_flags |= MSG_CTRUNC;
		return;
	}
	cmsg = (struct cmsghdr *)((uint8_t *)msg->msg_control + *used);
	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cmsg), data, len);
	*used += CMSG_SPACE(len);
}

static void
finish(const struct nlsock *sock, struct msghdr *msg, int msg_flags)
{
	const struct ucred kernel = { 0 };
	const struct nl_pktinfo info = { 0 };
	struct sockaddr_nl from = { .nl_family = AF_NETLINK };
	size_t used = 0;

	msg->msg_flags = msg_flags & MSG_TRUNC;
	if (msg->msg_name != NULL) {
		memcpy(msg->msg_name, &from,
			msg->msg_namelen < sizeof(from) ? msg->msg_namelen : sizeof(from));
		msg->msg_namelen = sizeof(from);
	}
	if (atomic_load(&sock->passcred))
		put_cmsg(msg, &used, SOL_SOCKET, SCM_CREDENTIALS, &kernel, sizeof(kernel));
	if ((atomic_load(&sock->options) >> NETLINK_PKTINFO & 1) != 0)
		put_cmsg(msg, &used, SOL_NETLINK, NETLINK_PKTINFO, &info, sizeof(info));
	msg->msg_controllen = used;
}

static ssize_t
nl_recvmsg(int fd, struct nlsock *sock, struct msghdr *msg, int flags)
{
	struct msghdr m = { .msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen };
	size_t space = iov_space(msg);
	struct netlink_ctl ctl;
	ssize_t n;

	tell_rcvbuf(fd, sock, space, flags);
	while ((n = real()->recvmsg(fd, &m, flags & ~MSG_CMSG_CLOEXEC)) < 0) {
		if (errno != EAGAIN || !nlsock_sync(fd, sock))
			return -1;
	}
	/* n is what was copied, or with MSG_TRUNC what there was. */
	if (n > 0 && is_overrun(fd, &m, flags, (size_t)n)) {
		if ((flags & MSG_PEEK) != 0)
			(void)real()->recv(fd, &ctl, sizeof(ctl), MSG_DONTWAIT);
		errno = ENOBUFS;
		return -1;
	}
	finish(sock, msg, m.msg_flags);
	return n;
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct nlsock *sock = nlsock_find(fd);

	return sock == NULL ? real()->recvmsg(fd, msg, flags) : nl_recvmsg(fd, sock, msg, flags);
}

EXPORT int
recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags, struct timespec *timeout)
{
	struct nlsock *sock = nlsock_find(fd);
	unsigned int i;

	if (sock == NULL)
		return real()->recvmmsg(fd, msgs, n, flags, timeout);
	for (i = 0; i < n; i++) {
		ssize_t len = nl_recvmsg(fd, sock, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);

		if (len < 0)
			break;
		msgs[i].msg_len = (unsigned int)len;
		if ((flags & MSG_WAITFORONE) != 0)
			flags |= MSG_DONTWAIT;
	}
	return i > 0 || n == 0 ? (int)i : -1;
}

static ssize_t
nl_recv(int fd, struct nlsock *sock, void *to, size_t size, int flags, void *from,
	socklen_t *from_len)
{
	struct iovec iov = { .iov_base = to, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (from != NULL && from_len != NULL) {
		msg.msg_name = from;
		msg.msg_namelen = *from_len;
	}
	n = nl_recvmsg(fd, sock, &msg, flags);
	if (n >= 0 && from != NULL && from_len != NULL)
		*from_len = msg.msg_namelen;
	return n;
}

EXPORT ssize_t
recvfrom(int fd, void *to, size_t size, int flags, __SOCKADDR_ARG from, socklen_t *from_len)
{
	struct nlsock *sock = nlsock_find(fd);

	if (sock == NULL)
		return real()->recvfrom(fd, to, size, flags, from, from_len);
	return nl_recv(fd, sock, to, size, flags, from.__sockaddr__, from_len);
}

EXPORT ssize_t
recv(int fd, void *to, size_t size, int flags)
{
	struct nlsock *sock = nlsock_find(fd);

	return sock == NULL ? real()->recv(fd, to, size, flags)
			    : nl_recv(fd, sock, to, size, flags, NULL, NULL);
}

EXPORT ssize_t
read(int fd, void *to, size_t size)
{
	struct nlsock *sock = nlsock_find(fd);

	return sock == NULL ? real()->read(fd, to, size)
			    : nl_recv(fd, sock, to, size, 0, NULL, NULL);
}

/* What a program built with _FORTIFY_SOURCE calls; `room` is the size of the object at `to`. */
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *from,
	socklen_t *from_len);
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);

EXPORT ssize_t
__recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
	if (size > room)
		__builtin_trap();
	return recv(fd, to, size, flags);
}

EXPORT ssize_t
__recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *from,
	socklen_t *from_len)
{
	if (size > room)
		__builtin_trap();
	return recvfrom(fd, to, size, flags, from, from_len);
}

EXPORT ssize_t
__read_chk(int fd, void *to, size_t size, size_t room)
{
	if (size > room)
		__builtin_trap();
	return read(fd, to, size);
}
