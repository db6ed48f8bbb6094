/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* getifaddrs(3): one entry for each link and each of its addresses. */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "nlsock.h"
#include "query.h"
#include "real.h"

union address {
	struct sockaddr sa;
	struct sockaddr_ll ll;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct entry {
	struct ifaddrs ifa; /* first: what the caller sees */
	unsigned int index;
	char name[IF_NAMESIZE];
	union address addr, mask, other;
};

/* One block, for libc's freeifaddrs() is free(). */
struct list {
	struct entry *entries;
	size_t n;
};

static struct entry *
grow(struct list *list)
{
	struct entry *more = realloc(list->entries, (list->n + 1) * sizeof(*more));

	if (more == NULL)
		return NULL;
	list->entries = more;
	memset(&more[list->n], 0, sizeof(*more));
	return &more[list->n++];
}

/* Pointers become right when the block has stopped moving; until then they only say "present". */
#define PRESENT(entry) ((struct sockaddr *)(entry))

static bool
add_link(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = (const struct ifinfomsg *)(nlh + 1);
	const void *name, *mac;
	struct entry *e;
	size_t len, mac_len = 0;

	if (nlh->nlmsg_type != RTM_NEWLINK || nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) ||
		(name = query_attr(nlh, sizeof(*ifi), IFLA_IFNAME, &len)) == NULL)
		return true;
	if ((e = grow(arg)) == NULL)
		return false;
	memcpy(e->name, name, len < sizeof(e->name) ? len : sizeof(e->name) - 1);
	e->index = (unsigned int)ifi->ifi_index;
	e->ifa.ifa_flags = ifi->ifi_flags;
	e->ifa.ifa_addr = PRESENT(e);
	e->addr.ll.sll_family = AF_PACKET;
	e->addr.ll.sll_ifindex = ifi->ifi_index;
	e->addr.ll.sll_hatype = ifi->ifi_type;
	if ((mac = query_attr(nlh, sizeof(*ifi), IFLA_ADDRESS, &mac_len)) != NULL &&
		mac_len <= sizeof(e->addr.ll.sll_addr)) {
		e->addr.ll.sll_halen = (unsigned char)mac_len;
		memcpy(e->addr.ll.sll_addr, mac, mac_len);
	}
	return true;
}

static bool
set_address(union address *to, int family, const void *from, size_t len, unsigned int scope)
{
	if (from == NULL || (family == AF_INET && len != 4) || (family == AF_INET6 && len != 16))
		return false;
	to->sa.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		memcpy(&to->in.sin_addr, from, len);
		return true;
	}
	memcpy(&to->in6.sin6_addr, from, len);
	if (IN6_IS_ADDR_LINKLOCAL(&to->in6.sin6_addr))
		to->in6.sin6_scope_id = scope;
	return true;
}

static void
set_mask(union address *to, int family, unsigned int bits)
{
	uint8_t mask[16] = { 0 };

	for (unsigned int i = 0; i < bits && i < 128; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	set_address(to, family, mask, family == AF_INET ? 4 : 16, 0);
}

static bool
add_address(void *arg, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = (const struct ifaddrmsg *)(nlh + 1);
	const size_t header = sizeof(*ifa);
	struct list *list = arg;
	const void *local, *peer, *bcast;
	size_t local_len = 0, peer_len = 0, bcast_len = 0, at;
	struct entry *e;

	if (nlh->nlmsg_type != RTM_NEWADDR || nlh->nlmsg_len < NLMSG_LENGTH(header) ||
		(ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6))
		return true;
	for (at = 0; at < list->n && list->entries[at].index != ifa->ifa_index; at++)
		;
	if (at == list->n)
		return true;
	if ((e = grow(list)) == NULL)
		return false;
	memcpy(e->name, list->entries[at].name, sizeof(e->name));
	e->ifa.ifa_flags = list->entries[at].ifa.ifa_flags;
	peer = query_attr(nlh, header, IFA_ADDRESS, &peer_len);
	if ((local = query_attr(nlh, header, IFA_LOCAL, &local_len)) == NULL) {
		local = peer;
		local_len = peer_len;
	}
	bcast = query_attr(nlh, header, IFA_BROADCAST, &bcast_len);
	if (!set_address(&e->addr, ifa->ifa_family, local, local_len, ifa->ifa_index)) {
		list->n--;
		return true;
	}
	e->ifa.ifa_addr = PRESENT(e);
	set_mask(&e->mask, ifa->ifa_family, ifa->ifa_prefixlen);
	e->ifa.ifa_netmask = PRESENT(e);
	if ((bcast != NULL &&
		    set_address(&e->other, ifa->ifa_family, bcast, bcast_len, ifa->ifa_index)) ||
		(peer_len == local_len && memcmp(peer, local, local_len) != 0 &&
			set_address(&e->other, ifa->ifa_family, peer, peer_len, ifa->ifa_index)))
		e->ifa.ifa_broadaddr = PRESENT(e);
	return true;
}

static struct ifaddrs *
link_up(struct list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct entry *e = &list->entries[i];

		e->ifa.ifa_next = i + 1 < list->n ? &list->entries[i + 1].ifa : NULL;
		e->ifa.ifa_name = e->name;
		if (e->ifa.ifa_addr != NULL)
			e->ifa.ifa_addr = &e->addr.sa;
		if (e->ifa.ifa_netmask != NULL)
			e->ifa.ifa_netmask = &e->mask.sa;
		if (e->ifa.ifa_broadaddr != NULL)
			e->ifa.ifa_broadaddr = &e->other.sa;
	}
	return list->n > 0 ? &list->entries[0].ifa : NULL;
}

EXPORT int
getifaddrs(struct ifaddrs **out)
{
	struct list list = { 0 };
	int err;

	if (!nlsock_wanted(NETLINK_ROUTE))
		return real()->getifaddrs(out);
	if (query(RTM_GETLINK, 0, NULL, add_link, &list) != 0)
		goto fail;
	/* A millrace without addresses has links all the same. */
	if (query(RTM_GETADDR, 0, NULL, add_address, &list) != 0 && errno != EOPNOTSUPP)
		goto fail;
	*out = link_up(&list);
	return 0;
fail:
	err = errno;
	free(list.entries);
	errno = err;
	return -1;
}
