/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "netlink/ctl.h"
#include "nlsock.h"
#include "real.h"
#include "socket_path.h"

/* Private descriptors stand above those that a program counts on. */
#define PRIVATE_FD_MIN 768
#define PRIVATE ((struct nlsock *)1)

/* The owner: a child of vfork() shares our memory and must leave the table alone. */
static pid_t owner;
static _Atomic(struct nlsock *) table[NLSOCK_FD_MAX];
static struct nlsock *unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;
/* One question and its answer at a time. */
static pthread_mutex_t side_lock = PTHREAD_MUTEX_INITIALIZER;

static void
before_fork(void)
{
	pthread_mutex_lock(&side_lock);
	pthread_mutex_lock(&unused_lock);
}

static void
after_fork_parent(void)
{
	pthread_mutex_unlock(&unused_lock);
	pthread_mutex_unlock(&side_lock);
}

static void
after_fork_child(void)
{
	owner = getpid();
	after_fork_parent();
}

static void __attribute__((constructor)) nlsock_init(void)
{
	owner = getpid();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static bool
in_vfork_child(void)
{
	return owner != 0 && getpid() != owner;
}

const char *
nlsock_path(void)
{
	return getenv(EXEC_ENV_SOCKET);
}

bool
nlsock_wanted(int protocol)
{
	const char *only = getenv(EXEC_ENV_ONLY);

	if (nlsock_path() == NULL)
		return false;
	if (protocol == NETLINK_ROUTE)
		return only == NULL || strcmp(only, "route") == 0;
	if (protocol == NETLINK_XFRM)
		return only == NULL || strcmp(only, "xfrm") == 0;
	return false;
}

static struct nlsock *
sock_alloc(void)
{
	struct nlsock *sock;

	pthread_mutex_lock(&unused_lock);
	if ((sock = unused) != NULL)
		unused = sock->next;
	pthread_mutex_unlock(&unused_lock);
	if (sock == NULL && (sock = malloc(sizeof(*sock))) == NULL)
		return NULL;
	memset(sock, 0, sizeof(*sock));
	atomic_init(&sock->side, -1);
	return sock;
}

static void
sock_put(struct nlsock *sock)
{
	int side;

	/* Acquire and release: who puts last sees what the others did to it. */
	if (atomic_fetch_sub_explicit(&sock->refs, 1, memory_order_acq_rel) != 1)
		return;
	side = atomic_exchange(&sock->side, -1);
	if (side >= 0) {
		atomic_store(&table[side], NULL);
		real()->close(side);
	}
	pthread_mutex_lock(&unused_lock);
	sock->next = unused;
	unused = sock;
	pthread_mutex_unlock(&unused_lock);
}

static struct nlsock *
entry(int fd)
{
	/* Acquire: the socket's fields were written before it was put there. */
	return fd >= 0 && fd < NLSOCK_FD_MAX
		? atomic_load_explicit(&table[fd], memory_order_acquire)
		: NULL;
}

struct nlsock *
nlsock_find(int fd)
{
	struct nlsock *sock = entry(fd);

	return sock == PRIVATE ? NULL : sock;
}

bool
nlsock_is_private(int fd)
{
	return entry(fd) == PRIVATE;
}

unsigned int
nlsock_next_private(unsigned int fd)
{
	for (; fd < NLSOCK_FD_MAX; fd++)
		if (entry((int)fd) == PRIVATE)
			return fd;
	return NLSOCK_FD_MAX;
}

void
nlsock_share(int fd, struct nlsock *sock)
{
	if (fd < 0 || fd >= NLSOCK_FD_MAX || in_vfork_child())
		return;
	atomic_fetch_add_explicit(&sock->refs, 1, memory_order_relaxed);
	/* Release: pairs with entry(). */
	sock = atomic_exchange_explicit(&table[fd], sock, memory_order_acq_rel);
	if (sock != NULL && sock != PRIVATE)
		sock_put(sock);
}

void
nlsock_forget(int fd)
{
	struct nlsock *sock = nlsock_find(fd);

	if (sock == NULL || in_vfork_child())
		return;
	sock = atomic_exchange_explicit(&table[fd], NULL, memory_order_acq_rel);
	if (sock != NULL && sock != PRIVATE)
		sock_put(sock);
}

/* Gives a private descriptor a high number and marks it. Consumes fd. */
static int
hide(int fd)
{
	int high = real()->fcntl(fd, F_DUPFD_CLOEXEC, PRIVATE_FD_MIN);

	if (high >= 0) {
		real()->close(fd);
		fd = high;
	}
	if (fd >= NLSOCK_FD_MAX) {
		real()->close(fd);
		errno = EMFILE;
		return -1;
	}
	atomic_store(&table[fd], PRIVATE);
	return fd;
}

int
nlsock_move_private(int fd)
{
	int copy;

	if (in_vfork_child())
		return 0;
	for (int i = 0; i < NLSOCK_FD_MAX; i++) {
		struct nlsock *sock = nlsock_find(i);

		if (sock == NULL || atomic_load(&sock->side) != fd)
			continue;
		if ((copy = real()->fcntl(fd, F_DUPFD_CLOEXEC, PRIVATE_FD_MIN)) < 0)
			return -1;
		if ((copy = hide(copy)) < 0)
			return -1;
		atomic_store(&sock->side, copy);
		break;
	}
	atomic_store(&table[fd], NULL);
	return 0;
}

static void
ctl_init(struct netlink_ctl *ctl, uint16_t type, uint32_t arg0, uint32_t arg1, uint32_t arg2)
{
	memset(ctl, 0, sizeof(*ctl));
	ctl->nlh.nlmsg_len = sizeof(*ctl);
	ctl->nlh.nlmsg_type = type;
	ctl->nlh.nlmsg_flags = NLM_F_REQUEST;
	ctl->arg[0] = arg0;
	ctl->arg[1] = arg1;
	ctl->arg[2] = arg2;
}

static int
send_ctl(int fd, const struct netlink_ctl *ctl, int flags)
{
	ssize_t n;

	while ((n = real()->send(fd, ctl, sizeof(*ctl), flags | MSG_NOSIGNAL)) < 0 &&
		errno == EINTR)
		;
	return n < 0 ? -1 : 0;
}

/* Waits for events on one or two descriptors, whatever signals come. */
static int
wait_for(struct pollfd *fds, nfds_t n, int timeout)
{
	int r;

	while ((r = poll(fds, n, timeout)) < 0 && errno == EINTR)
		;
	return r;
}

int
nlsock_tell(int fd, uint16_t type, uint32_t arg0, uint32_t arg1)
{
	struct netlink_ctl ctl;

	ctl_init(&ctl, type, arg0, arg1, 0);
	while (send_ctl(fd, &ctl, 0) != 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (errno != EAGAIN || wait_for(&p, 1, -1) < 0)
			return -1;
	}
	return 0;
}

static int
hello(int fd, int protocol)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct netlink_ctl ctl;
	struct iovec iov = { .iov_base = &ctl, .iov_len = sizeof(ctl) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int side = -1, err;
	ssize_t n;

	ctl_init(&ctl, NETLINK_CTL_HELLO, NETLINK_CTL_VERSION, (uint32_t)protocol,
		(uint32_t)getpid());
	if (send_ctl(fd, &ctl, 0) != 0 && errno != EPIPE)
		return -1;
	memset(&ctl, 0, sizeof(ctl));
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	while ((n = real()->recvmsg(fd, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(ctl)) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (msg.msg_controllen >= CMSG_LEN(sizeof(int)) && control.hdr.cmsg_type == SCM_RIGHTS)
		memcpy(&side, CMSG_DATA(&control.hdr), sizeof(int));
	err = -(int)ctl.arg[0];
	if (err == 0 && side >= 0)
		return side;
	if (side >= 0)
		real()->close(side);
	errno = err > 0 ? err : EPROTO;
	return -1;
}

static int
connect_server(int flags)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = nlsock_path();
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if ((fd = real()->socket(AF_UNIX, SOCK_SEQPACKET | flags, 0)) < 0)
		return -1;
	while ((err = real()->connect(fd, (struct sockaddr *)&addr, sizeof(addr))) != 0 &&
		errno == EINTR)
		;
	if (err == 0)
		return fd;
	err = errno;
	real()->close(fd);
	errno = err == ENOENT ? ECONNREFUSED : err;
	return -1;
}

int
nlsock_open(int type, int protocol)
{
	int flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK), fd, side = -1, err;
	struct nlsock *sock;

	type &= ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (type != SOCK_RAW && type != SOCK_DGRAM) {
		errno = ESOCKTNOSUPPORT;
		return -1;
	}
	if ((fd = connect_server(flags & SOCK_CLOEXEC)) < 0)
		return -1;
	if (fd >= NLSOCK_FD_MAX) {
		errno = EMFILE;
		goto fail;
	}
	if ((side = hello(fd, protocol)) < 0 || (side = hide(side)) < 0)
		goto fail;
	if ((flags & SOCK_NONBLOCK) != 0 &&
		real()->fcntl(fd, F_SETFL, real()->fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
		goto fail;
	if ((sock = sock_alloc()) == NULL)
		goto fail;
	sock->protocol = protocol;
	sock->type = type;
	atomic_store(&sock->side, side);
	nlsock_share(fd, sock);
	return fd;
fail:
	err = errno;
	if (side >= 0) {
		atomic_store(&table[side], NULL);
		real()->close(side);
	}
	real()->close(fd);
	errno = err;
	return -1;
}

int
nlsock_bind(int fd, struct nlsock *sock, uint32_t portid, uint32_t groups)
{
	struct netlink_ctl ctl;
	int side = atomic_load(&sock->side), err = 0;
	ssize_t n;

	pthread_mutex_lock(&side_lock);
	if (nlsock_tell(fd, NETLINK_CTL_BIND, portid, groups) != 0) {
		err = errno;
		goto out;
	}
	/* Answers to a SYNC that nobody waited for any more may come first. */
	do {
		struct pollfd p[2] = { { .fd = side, .events = POLLIN }, { .fd = fd } };

		/* The second is there for its hangup. */
		if (wait_for(p, 2, -1) < 0) {
			err = errno;
			goto out;
		}
		n = real()->recv(side, &ctl, sizeof(ctl), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && (errno != EAGAIN || p[1].revents != 0))) {
			err = ECONNREFUSED;
			goto out;
		}
	} while (n != (ssize_t)sizeof(ctl) || ctl.nlh.nlmsg_type != NETLINK_CTL_BIND);
	if ((err = -(int)ctl.arg[0]) == 0) {
		atomic_store(&sock->portid, ctl.arg[1]);
		atomic_store(&sock->groups,
			(atomic_load(&sock->groups) & ~UINT64_C(0xffffffff)) | groups);
	}
out:
	pthread_mutex_unlock(&side_lock);
	errno = err;
	return err == 0 ? 0 : -1;
}

/* True: answered. */
static bool
await_sync(int fd, int side, uint32_t token)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = side, .events = POLLIN } };
	struct netlink_ctl ctl;

	/* The timeout is for two processes that share the socket and took each other's answer. */
	while (wait_for(p, 2, 2000) > 0) {
		if ((p[1].revents & POLLIN) != 0 &&
			real()->recv(side, &ctl, sizeof(ctl), MSG_DONTWAIT) ==
				(ssize_t)sizeof(ctl) &&
			ctl.nlh.nlmsg_type == NETLINK_CTL_SYNC && ctl.arg[1] == token)
			return true;
		if (p[0].revents != 0 || (p[1].revents & ~POLLIN) != 0)
			return false;
	}
	return false;
}

bool
nlsock_sync(int fd, struct nlsock *sock)
{
	uint32_t sent = atomic_load(&sock->sent), token;
	struct netlink_ctl ctl;
	int saved = errno;

	if (sent == atomic_load(&sock->synced))
		return false;
	pthread_mutex_lock(&side_lock);
	token = atomic_fetch_add(&sock->token, 1) + 1;
	ctl_init(&ctl, NETLINK_CTL_SYNC, token, 0, 0);
	if (send_ctl(fd, &ctl, MSG_DONTWAIT) == 0) {
		if (await_sync(fd, atomic_load(&sock->side), token))
			atomic_store(&sock->synced, sent);
	} else {
		/* When the server takes no more, it waits for us to read what it sent. */
		struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };

		wait_for(&p, 1, 2000);
	}
	pthread_mutex_unlock(&side_lock);
	errno = saved;
	return true;
}
