/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_ROUTING_H
#define NETLINK_ROUTING_H

/* What the messages of addresses, routes and neighbours share. */

#include "netlink/message.h"
#include "route/route.h"

/*
 * The table, with `req` noted as who asked for the changes that follow; NULL with the request
 * failed if this program routes nothing.
 */
struct route_table *routing_begin(struct netlink_request *req);
/* Returns `ret`. */
int routing_end(struct netlink_request *req, int ret);

/* AF_INET and AF_INET6 pass; others fail. */
int routing_family(struct netlink_request *req, uint8_t family);
/* An address of the family: 4 or 16 bytes, `out` filled up with zeros. */
int routing_addr(struct netlink_request *req, const struct nlattr *attr, const char *name,
	uint8_t family, uint8_t out[ROUTE_ADDR_LEN]);
size_t routing_addr_len(uint8_t family);
void routing_put_addr(struct netlink_put *put, uint16_t type, uint8_t family, const uint8_t *addr);
/* NLM_F_* of a request as ROUTE_*. */
unsigned int routing_flags(const struct netlink_request *req);

/* Each tells its group's subscribers. req may be NULL. */
void address_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	const struct route_address *address);
void route_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	uint16_t flags, const struct route *route);
void neigh_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	const struct route_neigh *neigh);

#endif /* NETLINK_ROUTING_H */
