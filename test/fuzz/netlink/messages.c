/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * libFuzzer: datagrams to a control server with all its families. The first byte of an input says
 *how the rest becomes a datagram:
 *
 *	even	it is one, as it stands
 *	odd	two bytes of type, two of flags, then what follows a header, which is made to fit
 *	2, 3, 6, 7 ...	the same on a socket of NETLINK_XFRM
 *
 * Whatever comes, every answer is whole messages of whole attributes, and a request that wants an
 * ack with a header that fits gets exactly one end: an ack, or the end of its dump.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/xfrm.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "families.h"
#include "ipsec_cache/ipsec_cache.h"
#include "netlink/ctl.h"
#include "support.h"

/* Rules and actions pile up: now and then a new world, which also looks for leaks. */
#define WORLD_INPUTS 5000
#define DATAGRAM 65536

static struct families *world;
static int sockets[2]; /* NETLINK_ROUTE, NETLINK_XFRM */
static bool xfrm; /* which of them the input is for */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	test_eal_init("netlink_fuzz", "0");
	return 0;
}

static void
new_world(void)
{
	if (world != NULL) {
		close(sockets[0]);
		close(sockets[1]);
		families_destroy(world);
	}
	world = families_create("fuzz");
	sockets[0] = families_connect(world, 0);
	sockets[1] = families_connect_to(world, NETLINK_XFRM, UINT32_MAX);
}

static void
check(bool good)
{
	if (!good)
		abort();
}

static void
check_attributes(const uint8_t *at, size_t left)
{
	while (left > 0) {
		const struct nlattr *attr = (const struct nlattr *)(const void *)at;

		check(left >= sizeof(*attr) && attr->nla_len >= sizeof(*attr) &&
			attr->nla_len <= left);
		if (NLA_ALIGN(attr->nla_len) >= left)
			break;
		left -= NLA_ALIGN(attr->nla_len);
		at += NLA_ALIGN(attr->nla_len);
	}
}

static size_t
xfrm_header_length(uint16_t type)
{
	switch (type) {
	case XFRM_MSG_NEWSA:
	case XFRM_MSG_UPDSA:
		return sizeof(struct xfrm_usersa_info);
	case XFRM_MSG_DELSA:
		return sizeof(struct xfrm_usersa_id);
	case XFRM_MSG_NEWPOLICY:
	case XFRM_MSG_UPDPOLICY:
		return sizeof(struct xfrm_userpolicy_info);
	case XFRM_MSG_DELPOLICY:
		return sizeof(struct xfrm_userpolicy_id);
	case XFRM_MSG_EXPIRE:
		return sizeof(struct xfrm_user_expire);
	case XFRM_MSG_POLEXPIRE:
		return sizeof(struct xfrm_user_polexpire);
	case XFRM_MSG_NEWAE:
		return sizeof(struct xfrm_aevent_id);
	case XFRM_MSG_FLUSHPOLICY:
		return 0;
	case XFRM_MSG_FLUSHSA:
	case XFRM_MSG_GETDEFAULT:
	case XFRM_MSG_NEWSADINFO:
	case XFRM_MSG_NEWSPDINFO:
		return 4;
	default:
		check(false);
		return 0;
	}
}

static size_t
header_length(uint16_t type)
{
	if (xfrm)
		return xfrm_header_length(type);
	switch (type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return sizeof(struct ifinfomsg);
	case RTM_NEWACTION:
	case RTM_DELACTION:
	case RTM_GETACTION:
		return sizeof(struct tcamsg);
	case RTM_NEWNSID:
		return NLMSG_ALIGN(sizeof(struct rtgenmsg));
	default:
		return sizeof(struct tcmsg);
	}
}

/* Returns how many ends (acks, NLMSG_DONE) were among the messages. */
static unsigned int
check_datagram(const uint8_t *data, size_t left)
{
	unsigned int ends = 0;

	while (left > 0) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)data;

		check(left >= sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) &&
			nlh->nlmsg_len <= left);
		if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE)
			ends++;
		else if (nlh->nlmsg_type < NETLINK_CTL_FIRST) {
			size_t header = NLMSG_HDRLEN + header_length(nlh->nlmsg_type);

			check(nlh->nlmsg_len >= header);
			check_attributes(data + header, nlh->nlmsg_len - header);
		}
		if (NLMSG_ALIGN(nlh->nlmsg_len) >= left)
			break;
		left -= NLMSG_ALIGN(nlh->nlmsg_len);
		data += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	return ends;
}

static unsigned int
serve(void)
{
	struct pollfd p = { .fd = netlink_server_fd(world->server), .events = POLLIN };
	static _Alignas(8) uint8_t buf[DATAGRAM];
	unsigned int ends = 0;
	ssize_t n;

	do {
		while (poll(&p, 1, 0) > 0)
			netlink_server_dispatch(world->server);
		n = recv(sockets[xfrm], buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);
		check(n <= (ssize_t)sizeof(buf));
		if (n > 0)
			ends += check_datagram(buf, (size_t)n);
	} while (n > 0);
	rcu_reclaim(world->rcu, 0);
	return ends;
}

/* Datagram in `to`, its length returned. */
static size_t
with_header(uint8_t *to, const uint8_t *data, size_t size)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)(void *)to;

	if (size < 4)
		return 0;
	memset(nlh, 0, sizeof(*nlh));
	memcpy(&nlh->nlmsg_type, data, 2);
	memcpy(&nlh->nlmsg_flags, data + 2, 2);
	/* The types that there are, again and again. */
	nlh->nlmsg_type = 16 + nlh->nlmsg_type % (xfrm ? 24 : 104);
	nlh->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_len = (uint32_t)(sizeof(*nlh) + size - 4);
	memcpy(nlh + 1, data + 4, size - 4);
	return nlh->nlmsg_len;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) uint8_t buf[DATAGRAM];
	static unsigned int inputs;
	bool header = size > 0 && (data[0] & 1) != 0;
	unsigned int ends;

	if (size < 2 || size > DATAGRAM / 2)
		return 0;
	if (inputs++ % WORLD_INPUTS == 0)
		new_world();
	xfrm = (data[0] & 2) != 0;
	if (xfrm)
		ipsec_cache_tick(world->ipsec, inputs * 100);
	if (header)
		size = with_header(buf, data + 1, size - 1);
	else
		memcpy(buf, data + 1, --size);
	if (size == 0 || send(sockets[xfrm], buf, size, MSG_DONTWAIT) != (ssize_t)size)
		return 0;
	ends = serve();
	/* An answer to a get is its end too, and is followed by the ack that was asked for. */
	if (header)
		check(ends == 1);
	return 0;
}
