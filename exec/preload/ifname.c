/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* if_nametoindex(3) and its kin: libc asks the kernel from inside, where nobody can step between.
 */

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "nlsock.h"
#include "query.h"
#include "real.h"

struct link {
	unsigned int index;
	char name[IF_NAMESIZE];
};

static bool
read_link(const struct nlmsghdr *nlh, struct link *link)
{
	const struct ifinfomsg *ifi = (const struct ifinfomsg *)(nlh + 1);
	const char *name;
	size_t len;

	if (nlh->nlmsg_type != RTM_NEWLINK || nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) ||
		(name = query_attr(nlh, sizeof(*ifi), IFLA_IFNAME, &len)) == NULL || len == 0)
		return false;
	memset(link, 0, sizeof(*link));
	memcpy(link->name, name, len < sizeof(link->name) ? len : sizeof(link->name) - 1);
	link->index = (unsigned int)ifi->ifi_index;
	return true;
}

static bool
take_one(void *arg, const struct nlmsghdr *nlh)
{
	if (read_link(nlh, arg))
		return true;
	errno = EPROTO;
	return false;
}

EXPORT unsigned int
if_nametoindex(const char *name)
{
	struct link link = { 0 };

	if (!nlsock_wanted(NETLINK_ROUTE))
		return real()->if_nametoindex(name);
	if (strlen(name) >= IF_NAMESIZE) {
		errno = ENODEV;
		return 0;
	}
	return query(RTM_GETLINK, 0, name, take_one, &link) == 0 ? link.index : 0;
}

EXPORT char *
if_indextoname(unsigned int index, char name[IF_NAMESIZE])
{
	struct link link = { 0 };

	if (!nlsock_wanted(NETLINK_ROUTE))
		return real()->if_indextoname(index, name);
	if (index == 0 || query(RTM_GETLINK, index, NULL, take_one, &link) != 0) {
		if (index == 0 || errno == ENODEV)
			errno = ENXIO;
		return NULL;
	}
	memcpy(name, link.name, IF_NAMESIZE);
	return name;
}

struct list {
	struct if_nameindex *entries;
	size_t n;
};

/* Room for one more and the terminator. */
static bool
append(void *arg, const struct nlmsghdr *nlh)
{
	struct list *list = arg;
	struct if_nameindex *more;
	struct link link;

	if (!read_link(nlh, &link))
		return true;
	if ((more = realloc(list->entries, (list->n + 2) * sizeof(*more))) == NULL)
		return false;
	list->entries = more;
	if ((more[list->n].if_name = strdup(link.name)) == NULL)
		return false;
	more[list->n++].if_index = link.index;
	memset(&more[list->n], 0, sizeof(*more));
	return true;
}

/* Freed by libc's if_freenameindex(): the names, then the array. */
EXPORT struct if_nameindex *
if_nameindex(void)
{
	struct list list = { 0 };
	int err;

	if (!nlsock_wanted(NETLINK_ROUTE))
		return real()->if_nameindex();
	if ((list.entries = calloc(1, sizeof(*list.entries))) == NULL)
		return NULL;
	if (query(RTM_GETLINK, 0, NULL, append, &list) == 0)
		return list.entries;
	err = errno;
	for (size_t i = 0; i < list.n; i++)
		free(list.entries[i].if_name);
	free(list.entries);
	errno = err;
	return NULL;
}
