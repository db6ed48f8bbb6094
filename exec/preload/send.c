/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Requests. The kernel handles one inside send(); we only note that one is under way. */

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "nlsock.h"
#include "real.h"

/* A blocked sender that does not read what the server has for it would wait for ever. */
#define SEND_PATIENCE_MS 5000

static int
check_destination(const void *addr, socklen_t len)
{
	const struct sockaddr_nl *nl = addr;

	if (addr == NULL || len == 0)
		return 0;
	if (len < sizeof(*nl) || nl->nl_family != AF_NETLINK) {
		errno = EINVAL;
		return -1;
	}
	/* No other process to talk to. */
	if (nl->nl_pid != 0) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (nl->nl_groups != 0) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

/* Blocks as the socket would, unless the server in turn waits for us to read. */
static int
wait_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int r;

	while ((r = poll(&p, 1, SEND_PATIENCE_MS)) == 0) {
		p.events = POLLIN;
		if (poll(&p, 1, 0) > 0) {
			errno = ENOBUFS;
			return -1;
		}
		p.events = POLLOUT;
	}
	return r < 0 ? -1 : 0;
}

static bool
is_nonblocking(int fd, int flags)
{
	return (flags & MSG_DONTWAIT) != 0 || (real()->fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static ssize_t
nl_sendmsg(int fd, struct nlsock *sock, const struct msghdr *msg, int flags)
{
	struct msghdr m = { .msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen };
	size_t len = 0;
	ssize_t n;

	if (check_destination(msg->msg_name, msg->msg_namelen) != 0)
		return -1;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	/* An empty datagram would read as the end. */
	if (len == 0)
		return 0;
	if (atomic_load(&sock->portid) == 0 &&
		nlsock_bind(fd, sock, 0, (uint32_t)atomic_load(&sock->groups)) != 0)
		return -1;
	while ((n = real()->sendmsg(fd, &m,
			(flags & ~(MSG_OOB | MSG_EOR)) | MSG_DONTWAIT | MSG_NOSIGNAL)) < 0) {
		if (errno == EPIPE || errno == ENOTCONN || errno == ECONNRESET) {
			errno = ECONNREFUSED;
			return -1;
		}
		if (errno != EAGAIN || is_nonblocking(fd, flags) || wait_writable(fd) != 0)
			return -1;
	}
	atomic_fetch_add(&sock->sent, 1);
	return n;
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct nlsock *sock = nlsock_find(fd);

	return sock == NULL ? real()->sendmsg(fd, msg, flags) : nl_sendmsg(fd, sock, msg, flags);
}

EXPORT int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	struct nlsock *sock = nlsock_find(fd);
	unsigned int i;

	if (sock == NULL)
		return real()->sendmmsg(fd, msgs, n, flags);
	for (i = 0; i < n; i++) {
		ssize_t len = nl_sendmsg(fd, sock, &msgs[i].msg_hdr, flags);

		if (len < 0)
			break;
		msgs[i].msg_len = (unsigned int)len;
	}
	return i > 0 || n == 0 ? (int)i : -1;
}

static ssize_t
nl_send(int fd, struct nlsock *sock, const void *data, size_t len, int flags, const void *to,
	socklen_t to_len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = to_len };

	return nl_sendmsg(fd, sock, &msg, flags);
}

EXPORT ssize_t
sendto(int fd, const void *data, size_t len, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_len)
{
	struct nlsock *sock = nlsock_find(fd);

	if (sock == NULL)
		return real()->sendto(fd, data, len, flags, to, to_len);
	return nl_send(fd, sock, data, len, flags, to.__sockaddr__, to_len);
}

EXPORT ssize_t
send(int fd, const void *data, size_t len, int flags)
{
	struct nlsock *sock = nlsock_find(fd);

	return sock == NULL ? real()->send(fd, data, len, flags)
			    : nl_send(fd, sock, data, len, flags, NULL, 0);
}

EXPORT ssize_t
write(int fd, const void *data, size_t len)
{
	struct nlsock *sock = nlsock_find(fd);

	return sock == NULL ? real()->write(fd, data, len)
			    : nl_send(fd, sock, data, len, 0, NULL, 0);
}

EXPORT ssize_t
writev(int fd, const struct iovec *iov, int n)
{
	struct nlsock *sock = nlsock_find(fd);
	struct msghdr msg = { 0 };

	if (sock == NULL || n < 0)
		return real()->writev(fd, iov, n);
	msg.msg_iov = (struct iovec *)(uintptr_t)iov;
	msg.msg_iovlen = (size_t)n;
	return nl_sendmsg(fd, sock, &msg, 0);
}
