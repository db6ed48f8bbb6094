/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Questions about interfaces that go around netlink. */

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "nlsock.h"
#include "real.h"

/*
 * Names and indexes are millrace's when its links are; settings would reach the kernel's interface
 * that happens to have the same name.
 */
static int
ifreq_ioctl(int fd, unsigned long request, struct ifreq *ifr)
{
	char name[IF_NAMESIZE];

	switch (request) {
	case SIOCGIFINDEX:
		memcpy(name, ifr->ifr_name, sizeof(name));
		name[sizeof(name) - 1] = '\0';
		if ((ifr->ifr_ifindex = (int)if_nametoindex(name)) > 0)
			return 0;
		errno = ENODEV;
		return -1;
	case SIOCGIFNAME:
		if (if_indextoname((unsigned int)ifr->ifr_ifindex, name) == NULL)
			return -1;
		memcpy(ifr->ifr_name, name, sizeof(name));
		return 0;
	case SIOCSIFFLAGS:
	case SIOCSIFADDR:
	case SIOCSIFDSTADDR:
	case SIOCSIFBRDADDR:
	case SIOCSIFNETMASK:
	case SIOCSIFMETRIC:
	case SIOCSIFMTU:
	case SIOCSIFNAME:
	case SIOCSIFHWADDR:
	case SIOCSIFHWBROADCAST:
	case SIOCSIFTXQLEN:
	case SIOCSIFMAP:
	case SIOCADDMULTI:
	case SIOCDELMULTI:
		errno = EOPNOTSUPP;
		return -1;
	default:
		return real()->ioctl(fd, request, ifr);
	}
}

EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request < SIOCADDRT || request > SIOCPROTOPRIVATE)
		return real()->ioctl(fd, request, arg);
	/* IKE daemons probe the kernel's interface for ESP offload: it is not what their SAs will
	 * meet. */
	if (request == SIOCETHTOOL &&
		(nlsock_wanted(NETLINK_XFRM) || nlsock_wanted(NETLINK_ROUTE))) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (arg == NULL || !nlsock_wanted(NETLINK_ROUTE))
		return real()->ioctl(fd, request, arg);
	return ifreq_ioctl(fd, request, arg);
}
