/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What the messages of addresses, routes and neighbours share: the table, and who changed it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/routing.h"

/* The request whose change is under way; NULL: the change came from packets or timers. */
struct routing {
	struct netlink_server *server;
	struct netlink_request *req;
};

static void
changed(void *arg, enum route_event event, const void *object)
{
	struct routing *r = arg;

	switch (event) {
	case ROUTE_EVENT_ADDRESS_ADD:
		address_notify(r->server, r->req, RTM_NEWADDR, object);
		break;
	case ROUTE_EVENT_ADDRESS_DEL:
		address_notify(r->server, r->req, RTM_DELADDR, object);
		break;
	case ROUTE_EVENT_ROUTE_ADD:
		route_notify(r->server, r->req, RTM_NEWROUTE, NLM_F_CREATE, object);
		break;
	case ROUTE_EVENT_ROUTE_REPLACE:
		route_notify(r->server, r->req, RTM_NEWROUTE, NLM_F_REPLACE, object);
		break;
	case ROUTE_EVENT_ROUTE_DEL:
		route_notify(r->server, r->req, RTM_DELROUTE, 0, object);
		break;
	case ROUTE_EVENT_NEIGH_CHANGE:
		neigh_notify(r->server, r->req, RTM_NEWNEIGH, object);
		break;
	case ROUTE_EVENT_NEIGH_DEL:
		neigh_notify(r->server, r->req, RTM_DELNEIGH, object);
		break;
	}
}

static int
routing_create(struct netlink_server *server, void **state)
{
	const struct netlink_conf *conf = netlink_server_conf(server);
	struct routing *r;

	if (conf->route == NULL)
		return 0;
	if ((r = calloc(1, sizeof(*r))) == NULL)
		return -ENOMEM;
	r->server = server;
	*state = r;
	route_listen(conf->route, changed, r);
	return 0;
}

static void
routing_destroy(struct netlink_server *server, void *state)
{
	const struct netlink_conf *conf = netlink_server_conf(server);

	if (conf->route != NULL)
		route_listen(conf->route, NULL, NULL);
	free(state);
}

static struct netlink_family routing_family_state = {
	.create = routing_create,
	.destroy = routing_destroy,
};
NETLINK_REGISTER_FAMILY(routing_family_state);

struct route_table *
routing_begin(struct netlink_request *req)
{
	struct routing *r;

	if (req->conf->route == NULL) {
		(void)netlink_fail(req, -EOPNOTSUPP, NULL, "This program has no routing table");
		return NULL;
	}
	r = netlink_family_state(req->server, &routing_family_state);
	r->req = req;
	return req->conf->route;
}

int
routing_end(struct netlink_request *req, int ret)
{
	struct routing *r = netlink_family_state(req->server, &routing_family_state);

	r->req = NULL;
	return ret;
}

int
routing_family(struct netlink_request *req, uint8_t family)
{
	if (family == AF_INET || family == AF_INET6)
		return 0;
	return netlink_fail(req, -EAFNOSUPPORT, NULL, "Address family %u is not supported", family);
}

size_t
routing_addr_len(uint8_t family)
{
	return family == AF_INET6 ? 16 : 4;
}

int
routing_addr(struct netlink_request *req, const struct nlattr *attr, const char *name,
	uint8_t family, uint8_t out[ROUTE_ADDR_LEN])
{
	size_t len = mnl_attr_get_payload_len(attr), want = routing_addr_len(family);

	if (len != want)
		return netlink_fail(
			req, -EINVAL, attr, "%s has %zu bytes instead of %zu", name, len, want);
	memset(out, 0, ROUTE_ADDR_LEN);
	memcpy(out, mnl_attr_get_payload(attr), len);
	return 0;
}

void
routing_put_addr(struct netlink_put *put, uint16_t type, uint8_t family, const uint8_t *addr)
{
	netlink_put_data(put, type, addr, routing_addr_len(family));
}

unsigned int
routing_flags(const struct netlink_request *req)
{
	uint16_t flags = req->nlh->nlmsg_flags;

	return ((flags & NLM_F_CREATE) != 0 ? ROUTE_CREATE : 0u) |
		((flags & NLM_F_EXCL) != 0 ? ROUTE_EXCL : 0u) |
		((flags & NLM_F_REPLACE) != 0 ? ROUTE_REPLACE : 0u) |
		((flags & NLM_F_APPEND) != 0 ? ROUTE_APPEND : 0u);
}
