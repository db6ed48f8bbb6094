/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Addresses of devices and the routes that come with them: Linux's fib_add_ifaddr(). */

#include <errno.h>
#include <linux/if_addr.h>
#include <stdlib.h>

#include "internal.h"

static bool
assignable(uint8_t family, const uint8_t *addr)
{
	static const uint8_t none[ROUTE_ADDR_LEN];

	if (family == AF_INET6)
		return addr[0] != 0xff && memcmp(addr, none, sizeof(none)) != 0;
	return addr[0] != 0 && addr[0] < 224;
}

static bool
is_loopback(uint8_t family, const uint8_t *addr)
{
	return family == AF_INET && addr[0] == 127;
}

/* The route that an address brings: adds it, or takes it away. */
static int
own_route(struct route_table *t, const struct route_address *a, bool add, uint8_t type,
	const uint8_t *dst, uint8_t len)
{
	struct route_spec spec = { .family = a->family,
		.len = len,
		.type = type,
		.protocol = RTPROT_KERNEL,
		.scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK,
		.local = type != RTN_UNICAST,
		.has_prefsrc = a->family == AF_INET,
		.n_paths = 1,
		.paths[0] = { .ifindex = a->ifindex, .weight = 1 } };
	const char *why;
	int ret;

	if (a->family == AF_INET6) {
		spec.scope = RT_SCOPE_UNIVERSE;
		spec.metric = type == RTN_UNICAST ? 256 : 0;
	}
	route_mask(a->family, dst, len, spec.dst);
	memcpy(spec.prefsrc, a->addr, sizeof(spec.prefsrc));
	if (!add)
		return route_del(t, &spec);
	ret = route_add(t, &spec, ROUTE_CREATE | ROUTE_APPEND, &why);
	return ret == -EEXIST ? 0 : ret;
}

static bool
is_needed(const struct route_table *t, const struct route_address *a, const uint8_t *broadcast)
{
	const struct route_address_entry *e;

	TAILQ_FOREACH (e, &t->addresses, next) {
		const struct route_address *o = &e->address;

		if (o == a || o->family != AF_INET || o->ifindex != a->ifindex)
			continue;
		if (o->len == a->len && route_in_prefix(AF_INET, o->addr, a->addr, a->len))
			return true;
		if (o->has_broadcast && memcmp(o->broadcast, broadcast, 4) == 0)
			return true;
	}
	return false;
}

static int
broadcast_routes(struct route_table *t, const struct route_address *a, bool add)
{
	uint8_t last[ROUTE_ADDR_LEN] = { 0 };
	int ret = 0;

	if (a->has_broadcast && (add || !is_needed(t, a, a->broadcast))) {
		memcpy(last, a->broadcast, 4);
		ret = own_route(t, a, add, RTN_BROADCAST, last, 32);
	}
	if (a->len >= 31 || ret != 0)
		return add ? ret : 0;
	route_mask(AF_INET, a->addr, a->len, last);
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int bits = a->len <= i * 8 ? 0 : RTE_MIN(8u, a->len - i * 8u);

		last[i] |= (uint8_t)(0xffu >> bits);
	}
	return add || !is_needed(t, a, last) ? own_route(t, a, add, RTN_BROADCAST, last, 32) : 0;
}

/* Does another address of the device keep the subnet connected? */
static bool
subnet_kept(const struct route_table *t, const struct route_address *a)
{
	const struct route_address_entry *e;

	TAILQ_FOREACH (e, &t->addresses, next) {
		const struct route_address *o = &e->address;

		if (o != a && o->family == a->family && o->ifindex == a->ifindex &&
			o->len == a->len && !o->no_prefix_route &&
			route_in_prefix(a->family, o->addr, a->addr, a->len))
			return true;
	}
	return false;
}

static void
routes_remove(struct route_table *t, const struct route_address *a)
{
	const uint8_t max = (uint8_t)(route_addr_len(a->family) * 8);

	if (!a->no_prefix_route && !a->secondary && (a->len < max || a->family == AF_INET6) &&
		(a->family == AF_INET || !subnet_kept(t, a)))
		(void)own_route(t, a, false, RTN_UNICAST, a->addr, a->len);
	if (a->family == AF_INET)
		(void)broadcast_routes(t, a, false);
	(void)own_route(t, a, false, RTN_LOCAL, a->addr, max);
}

static int
routes_add(struct route_table *t, const struct route_address *a)
{
	const uint8_t max = (uint8_t)(route_addr_len(a->family) * 8);
	int ret = own_route(t, a, true, RTN_LOCAL, a->addr, max);

	/* A /32 has no subnet beside itself. */
	if (ret == 0 && !a->no_prefix_route && !a->secondary &&
		(a->len < max || a->family == AF_INET6))
		ret = own_route(t, a, true, RTN_UNICAST, a->addr, a->len);
	if (ret == 0 && a->family == AF_INET)
		ret = broadcast_routes(t, a, true);
	if (ret != 0)
		routes_remove(t, a);
	return ret;
}

static struct route_address_entry *
entry_find(const struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr,
	uint8_t len)
{
	struct route_address_entry *e;

	TAILQ_FOREACH (e, &t->addresses, next) {
		if (e->address.family == family &&
			(ifindex == 0 || e->address.ifindex == ifindex) &&
			(len == 0 || e->address.len == len) &&
			route_addr_equal(family, e->address.addr, addr))
			return e;
	}
	return NULL;
}

/* An IPv4 address whose subnet the device already has an address in is a secondary one. */
static bool
is_secondary(const struct route_table *t, const struct route_address *a)
{
	const struct route_address_entry *e;

	TAILQ_FOREACH (e, &t->addresses, next) {
		const struct route_address *o = &e->address;

		if (o != a && o->family == AF_INET && o->ifindex == a->ifindex &&
			o->len == a->len && !o->secondary &&
			route_in_prefix(AF_INET, o->addr, a->addr, a->len))
			return true;
	}
	return false;
}

int
route_address_add(struct route_table *t, const struct route_address *address)
{
	const struct route_device *d = route_device_find(t, address->ifindex);
	struct route_address_entry *e;
	int ret;

	if (d == NULL)
		return -ENODEV;
	if (address->len == 0 || address->len > route_addr_len(address->family) * 8)
		return -EINVAL;
	if (!assignable(address->family, address->addr) ||
		is_loopback(address->family, address->addr))
		return -EADDRNOTAVAIL;
	/* IPv4: the same address with another length is another one. */
	if (entry_find(t, address->ifindex, address->family, address->addr,
		    address->family == AF_INET ? address->len : 0) != NULL)
		return -EEXIST;
	if ((e = calloc(1, sizeof(*e))) == NULL)
		return -ENOMEM;
	e->address = *address;
	e->address.secondary = address->family == AF_INET && is_secondary(t, address);
	TAILQ_INSERT_TAIL(&t->addresses, e, next);
	if (d->dev.up && (ret = routes_add(t, &e->address)) != 0) {
		TAILQ_REMOVE(&t->addresses, e, next);
		free(e);
		return ret;
	}
	route_changed(t, ROUTE_EVENT_ADDRESS_ADD, &e->address);
	return 0;
}

/* The next address of the subnet takes the place of the first (Linux's promote_secondaries). */
static void
promote(struct route_table *t, const struct route_address *gone)
{
	const struct route_device *d = route_device_find(t, gone->ifindex);
	struct route_address_entry *e;

	TAILQ_FOREACH (e, &t->addresses, next) {
		struct route_address *o = &e->address;

		if (o->family != AF_INET || o->ifindex != gone->ifindex || !o->secondary ||
			o->len != gone->len ||
			!route_in_prefix(AF_INET, o->addr, gone->addr, o->len))
			continue;
		o->secondary = false;
		if (d != NULL && d->dev.up)
			(void)routes_add(t, o);
		route_changed(t, ROUTE_EVENT_ADDRESS_ADD, o);
		return;
	}
}

static bool
uses_prefsrc(const struct route *r, const struct route_address *a)
{
	return r->family == a->family && r->has_prefsrc && !r->local &&
		route_addr_equal(a->family, r->prefsrc, a->addr);
}

/* Routes that ask for a source address that is gone. */
static void
flush_prefsrc(struct route_table *t, const struct route_address *a)
{
	struct route *r, *next;

	if (route_address_find(t, 0, a->family, a->addr) != NULL)
		return;
	RB_FOREACH_SAFE (r, route_tree, &route_family(t, a->family)->routes, next) {
		if (uses_prefsrc(r, a))
			route_remove(t, r);
	}
}

static void
entry_remove(struct route_table *t, struct route_address_entry *e)
{
	routes_remove(t, &e->address);
	TAILQ_REMOVE(&t->addresses, e, next);
	if (e->address.family == AF_INET && !e->address.secondary)
		promote(t, &e->address);
	flush_prefsrc(t, &e->address);
	route_changed(t, ROUTE_EVENT_ADDRESS_DEL, &e->address);
	free(e);
}

int
route_address_del(
	struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr, uint8_t len)
{
	struct route_address_entry *e = entry_find(t, ifindex, family, addr, len);

	if (e == NULL)
		return -EADDRNOTAVAIL;
	entry_remove(t, e);
	return 0;
}

int
route_addresses_up(struct route_table *t, uint32_t ifindex)
{
	struct route_address_entry *e;
	int ret;

	TAILQ_FOREACH (e, &t->addresses, next) {
		if (e->address.ifindex == ifindex && (ret = routes_add(t, &e->address)) != 0)
			return ret;
	}
	return 0;
}

void
route_addresses_flush(struct route_table *t, uint32_t ifindex)
{
	struct route_address_entry *e, *next;

	for (e = TAILQ_FIRST(&t->addresses); e != NULL; e = next) {
		next = TAILQ_NEXT(e, next);
		if (e->address.ifindex == ifindex)
			entry_remove(t, e);
	}
}

const struct route_address *
route_address_nth(const struct route_table *t, unsigned int n)
{
	const struct route_address_entry *e = TAILQ_FIRST(&t->addresses);

	while (e != NULL && n-- > 0)
		e = TAILQ_NEXT(e, next);
	return e == NULL ? NULL : &e->address;
}

const struct route_address *
route_address_find(const struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	const struct route_address_entry *e = entry_find(t, ifindex, family, addr, 0);

	return e == NULL ? NULL : &e->address;
}

const struct route_address *
route_address_source(const struct route_table *t, uint32_t ifindex, uint8_t family, const void *dst)
{
	const struct route_address *best = NULL;
	const struct route_address_entry *e;

	TAILQ_FOREACH (e, &t->addresses, next) {
		const struct route_address *a = &e->address;

		if (a->family != family || (ifindex != 0 && a->ifindex != ifindex))
			continue;
		if (route_in_prefix(family, dst, a->addr, a->len))
			return a;
		if (best == NULL ||
			(best->scope != RT_SCOPE_UNIVERSE && a->scope == RT_SCOPE_UNIVERSE))
			best = a;
	}
	return best;
}
