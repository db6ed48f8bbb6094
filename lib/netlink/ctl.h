/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_CTL_H
#define NETLINK_CTL_H

/*
 * What the preload library and the control server say to each other beside netlink messages. All of
 * it travels in order with them, as datagrams of one struct netlink_ctl, whose types start at
 * 0xFFF0: the kernel's families never come near.
 *
 * A client connects to the Unix SOCK_SEQPACKET socket and says HELLO. The answer to that comes on
 * the same socket and carries, as SCM_RIGHTS, a descriptor of its own for the answers to BIND and
 * SYNC: they must neither wait behind notifications nor make a poll() of the socket readable.
 *
 * Why SYNC: the kernel has handled a request when send() returns, and programs rely on it by
 * reading without blocking. A read that finds nothing asks the server to have handled all that was
 * sent, waits for the answer and looks again.
 */

#include <linux/netlink.h>
#include <stdint.h>

#define NETLINK_CTL_VERSION 1
#define NETLINK_CTL_FIRST 0xFFF0

enum netlink_ctl_type {
	NETLINK_CTL_HELLO =
		NETLINK_CTL_FIRST, /* arg: version, protocol, pid; answer: errno, version */
	NETLINK_CTL_BIND, /* arg: port id (0: choose), nl_groups; answer: errno, port id */
	NETLINK_CTL_JOIN, /* arg: group */
	NETLINK_CTL_LEAVE, /* arg: group */
	NETLINK_CTL_SETSOCKOPT, /* arg: option of SOL_NETLINK, value */
	NETLINK_CTL_RCVBUF, /* arg: bytes of the largest buffer it has read into */
	NETLINK_CTL_OVERRUN, /* to the client: notifications were lost */
	NETLINK_CTL_SYNC, /* arg: any; answer: 0, the same */
};

/* An answer has the type of the question. Unused fields are zero. Host byte order. */
struct netlink_ctl {
	struct nlmsghdr nlh; /* nlmsg_len = sizeof(struct netlink_ctl) */
	uint32_t arg[4];
};

#endif /* NETLINK_CTL_H */
