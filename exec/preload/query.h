/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef PRELOAD_QUERY_H
#define PRELOAD_QUERY_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for each message of an answer. False ends the query with errno as the function left it. */
typedef bool (*query_fn)(void *arg, const struct nlmsghdr *nlh);

/*
 * Asks millrace over a socket of its own: a dump (ifindex 0 and name NULL) of RTM_GETLINK or
 * RTM_GETADDR, or one link. 0, or -1 and errno.
 */
int query(uint16_t type, uint32_t ifindex, const char *name, query_fn fn, void *arg);

/* The payload of an attribute after a header of that size, its length in *len, or NULL. */
const void *query_attr(const struct nlmsghdr *nlh, size_t header, uint16_t type, size_t *len);

#endif /* PRELOAD_QUERY_H */
