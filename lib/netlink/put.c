/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Answers are written straight into the datagram that will be sent. */

#include <errno.h>
#include <string.h>

#include "netlink/server.h"

bool
netlink_put_begin(struct netlink_request *req, struct netlink_put *put, uint16_t type,
	uint16_t flags, const void *header, size_t header_len)
{
	struct netlink_server *server = req->server;
	size_t used = server->tx_len, limit = used == 0 ? sizeof(server->tx) : server->tx_limit;
	size_t need = NLMSG_ALIGN(NLMSG_HDRLEN + header_len);
	struct netlink_dump *dump = req->client->dump;

	if (used >= limit || limit - used < need)
		return false;
	if (dump != NULL && req == &dump->req)
		flags |= NLM_F_MULTI | (req->interrupted ? NLM_F_DUMP_INTR : 0);
	put->nlh = (struct nlmsghdr *)(void *)(server->tx + used);
	put->room = limit - used;
	put->overflowed = false;
	put->bare = req->bare;
	memset(put->nlh, 0, need);
	put->nlh->nlmsg_len = (uint32_t)need;
	put->nlh->nlmsg_type = type;
	put->nlh->nlmsg_flags = flags;
	put->nlh->nlmsg_seq = req->nlh->nlmsg_seq;
	put->nlh->nlmsg_pid = req->portid;
	memcpy(put->nlh + 1, header, header_len);
	return true;
}

bool
netlink_put_end(struct netlink_request *req, struct netlink_put *put)
{
	if (put->overflowed)
		return false;
	req->server->tx_len += NLMSG_ALIGN(put->nlh->nlmsg_len);
	return true;
}

/* Room for an attribute with `len` bytes of payload, its header and padding written. */
static void *
put_attr(struct netlink_put *put, uint16_t type, size_t len)
{
	size_t used = put->nlh->nlmsg_len, need = NLA_ALIGN(NLA_HDRLEN + len);
	struct nlattr *attr = (struct nlattr *)(void *)((uint8_t *)put->nlh + used);

	if (put->overflowed || len > UINT16_MAX - NLA_HDRLEN || need > put->room - used) {
		put->overflowed = true;
		return NULL;
	}
	if (need > NLA_HDRLEN + len)
		memset((uint8_t *)attr + need - NLA_ALIGNTO, 0, NLA_ALIGNTO);
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	put->nlh->nlmsg_len = (uint32_t)(used + need);
	return attr + 1;
}

void
netlink_put_data(struct netlink_put *put, uint16_t type, const void *data, size_t len)
{
	void *to = put_attr(put, type, len);

	if (to != NULL && len > 0)
		memcpy(to, data, len);
}

void
netlink_put_u8(struct netlink_put *put, uint16_t type, uint8_t value)
{
	netlink_put_data(put, type, &value, sizeof(value));
}

void
netlink_put_u16(struct netlink_put *put, uint16_t type, uint16_t value)
{
	netlink_put_data(put, type, &value, sizeof(value));
}

void
netlink_put_u32(struct netlink_put *put, uint16_t type, uint32_t value)
{
	netlink_put_data(put, type, &value, sizeof(value));
}

void
netlink_put_u64(struct netlink_put *put, uint16_t type, uint64_t value)
{
	netlink_put_data(put, type, &value, sizeof(value));
}

void
netlink_put_string(struct netlink_put *put, uint16_t type, const char *value)
{
	netlink_put_data(put, type, value, strlen(value) + 1);
}

struct nlattr *
netlink_put_nest(struct netlink_put *put, uint16_t type)
{
	uint8_t *payload = put_attr(put, type, 0);

	return payload == NULL ? NULL : (struct nlattr *)(void *)(payload - NLA_HDRLEN);
}

void
netlink_put_nest_end(struct netlink_put *put, struct nlattr *nest)
{
	size_t len;

	if (nest == NULL || put->overflowed)
		return;
	len = put->nlh->nlmsg_len - (size_t)((uint8_t *)nest - (uint8_t *)put->nlh);
	if (len > UINT16_MAX)
		put->overflowed = true;
	else
		nest->nla_len = (uint16_t)len;
}

static size_t
extack_attr(uint8_t *to, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (struct nlattr *)(void *)to;

	memset(to, 0, NLA_ALIGN(NLA_HDRLEN + len));
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy(attr + 1, data, len);
	return NLA_ALIGN(attr->nla_len);
}

size_t
netlink_put_extack(uint8_t *to, const struct netlink_request *req, size_t message_len, int err)
{
	size_t n = 0;

	if (req == NULL || (req->client->options & NETLINK_CLIENT_EXT_ACK) == 0)
		return 0;
	if (req->why[0] != '\0')
		n += extack_attr(to, NLMSGERR_ATTR_MSG, req->why, strlen(req->why) + 1);
	if (err != 0 && req->bad_offset != 0 && req->bad_offset < message_len)
		n += extack_attr(to + n, NLMSGERR_ATTR_OFFS, &req->bad_offset, sizeof(uint32_t));
	return n;
}

void
netlink_put_flush(struct netlink_request *req)
{
	struct netlink_server *server = req->server;
	size_t len = server->tx_len;

	server->tx_len = 0;
	if (len > 0)
		netlink_client_send(req->client, server->tx, len);
	netlink_wipe(req->client->protocol, server->tx, len);
}
