/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Making, naming and configuring a netlink socket. */

#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/ctl.h"
#include "nlsock.h"
#include "real.h"

#define GROUPS_MAX 64

EXPORT int
socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK || !nlsock_wanted(protocol))
		return real()->socket(domain, type, protocol);
	return nlsock_open(type, protocol);
}

/* The address, or NULL and errno. */
static const struct sockaddr_nl *
netlink_address(const void *addr, socklen_t len)
{
	const struct sockaddr_nl *nl = addr;

	if (len >= sizeof(*nl) && nl->nl_family == AF_NETLINK)
		return nl;
	errno = EINVAL;
	return NULL;
}

EXPORT int
bind(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct nlsock *sock = nlsock_find(fd);
	const struct sockaddr_nl *nl;

	if (sock == NULL)
		return real()->bind(fd, addr, len);
	if ((nl = netlink_address(addr.__sockaddr__, len)) == NULL)
		return -1;
	return nlsock_bind(fd, sock, nl->nl_pid, nl->nl_groups);
}

EXPORT int
connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct nlsock *sock = nlsock_find(fd);
	const struct sockaddr_nl *nl;

	if (sock == NULL)
		return real()->connect(fd, addr, len);
	if (len >= sizeof(sa_family_t) && addr.__sockaddr__->sa_family == AF_UNSPEC)
		return 0;
	if ((nl = netlink_address(addr.__sockaddr__, len)) == NULL)
		return -1;
	/* There is only the kernel to talk to. */
	if (nl->nl_pid != 0 || nl->nl_groups != 0) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (atomic_load(&sock->portid) != 0)
		return 0;
	return nlsock_bind(fd, sock, 0, (uint32_t)atomic_load(&sock->groups));
}

static int
give(void *to, socklen_t *len, const void *from, socklen_t size)
{
	if (len == NULL || (to == NULL && *len > 0)) {
		errno = EFAULT;
		return -1;
	}
	if (*len > 0)
		memcpy(to, from, *len < size ? *len : size);
	*len = size;
	return 0;
}

EXPORT int
getsockname(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	struct nlsock *sock = nlsock_find(fd);
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK };

	if (sock == NULL)
		return real()->getsockname(fd, addr, len);
	nl.nl_pid = atomic_load(&sock->portid);
	nl.nl_groups = (uint32_t)atomic_load(&sock->groups);
	return give(addr.__sockaddr__, len, &nl, sizeof(nl));
}

EXPORT int
getpeername(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK };

	if (nlsock_find(fd) == NULL)
		return real()->getpeername(fd, addr, len);
	return give(addr.__sockaddr__, len, &nl, sizeof(nl));
}

static int
set_membership(int fd, struct nlsock *sock, int group, bool member)
{
	uint64_t bit;

	if (group < 1 || group > GROUPS_MAX) {
		errno = EINVAL;
		return -1;
	}
	bit = UINT64_C(1) << (group - 1);
	if (member)
		atomic_fetch_or(&sock->groups, bit);
	else
		atomic_fetch_and(&sock->groups, ~bit);
	return nlsock_tell(fd, member ? NETLINK_CTL_JOIN : NETLINK_CTL_LEAVE, (uint32_t)group, 0);
}

static int
set_netlink_option(int fd, struct nlsock *sock, int option, const void *value, socklen_t len)
{
	int n;

	if (len < sizeof(n) || value == NULL) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&n, value, sizeof(n));
	switch (option) {
	case NETLINK_ADD_MEMBERSHIP:
	case NETLINK_DROP_MEMBERSHIP:
		return set_membership(fd, sock, n, option == NETLINK_ADD_MEMBERSHIP);
	case NETLINK_PKTINFO:
	case NETLINK_BROADCAST_ERROR:
	case NETLINK_LISTEN_ALL_NSID:
	case NETLINK_NO_ENOBUFS:
	case NETLINK_EXT_ACK:
	case NETLINK_CAP_ACK:
	case NETLINK_GET_STRICT_CHK:
		break;
	default:
		errno = ENOPROTOOPT;
		return -1;
	}
	if (n != 0)
		atomic_fetch_or(&sock->options, 1u << option);
	else
		atomic_fetch_and(&sock->options, ~(1u << option));
	return nlsock_tell(fd, NETLINK_CTL_SETSOCKOPT, (uint32_t)option, n != 0);
}

EXPORT int
setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct nlsock *sock = nlsock_find(fd);

	if (sock == NULL)
		return real()->setsockopt(fd, level, option, value, len);
	if (level == SOL_NETLINK)
		return set_netlink_option(fd, sock, option, value, len);
	if (level == SOL_SOCKET && option == SO_PASSCRED && len >= sizeof(int)) {
		/* The credentials would be the server's; the kernel's are all zero. */
		atomic_store(&sock->passcred, *(const int *)value != 0);
		return 0;
	}
	return real()->setsockopt(fd, level, option, value, len);
}

static int
get_netlink_option(const struct nlsock *sock, int option, void *value, socklen_t *len)
{
	uint64_t groups = atomic_load(&sock->groups);
	int on;

	switch (option) {
	case NETLINK_LIST_MEMBERSHIPS:
		return give(value, len, &groups, sizeof(groups));
	case NETLINK_PKTINFO:
	case NETLINK_BROADCAST_ERROR:
	case NETLINK_LISTEN_ALL_NSID:
	case NETLINK_NO_ENOBUFS:
	case NETLINK_EXT_ACK:
	case NETLINK_CAP_ACK:
	case NETLINK_GET_STRICT_CHK:
		on = (int)(atomic_load(&sock->options) >> option & 1);
		return give(value, len, &on, sizeof(on));
	default:
		errno = ENOPROTOOPT;
		return -1;
	}
}

EXPORT int
getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	struct nlsock *sock = nlsock_find(fd);
	int n;

	if (sock == NULL)
		return real()->getsockopt(fd, level, option, value, len);
	if (level == SOL_NETLINK)
		return get_netlink_option(sock, option, value, len);
	if (level != SOL_SOCKET)
		return real()->getsockopt(fd, level, option, value, len);
	switch (option) {
	case SO_DOMAIN:
		n = AF_NETLINK;
		break;
	case SO_PROTOCOL:
		n = sock->protocol;
		break;
	case SO_TYPE:
		n = sock->type;
		break;
	case SO_PASSCRED:
		n = atomic_load(&sock->passcred);
		break;
	default:
		return real()->getsockopt(fd, level, option, value, len);
	}
	return give(value, len, &n, sizeof(n));
}
