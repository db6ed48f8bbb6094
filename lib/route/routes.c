/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Routes as they were given: a tree by destination, length, table, metric and order of arrival. The
 * first of a destination and length is the one that packets meet.
 */

#include <errno.h>
#include <stdlib.h>

#include "internal.h"

int
route_compare(const struct route *a, const struct route *b)
{
	int order = memcmp(a->dst, b->dst, sizeof(a->dst));

	if (order != 0)
		return order;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	if (a->local != b->local)
		return a->local ? -1 : 1;
	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	return (a->seq > b->seq) - (a->seq < b->seq);
}

RB_GENERATE(route_tree, route, tree, route_compare);

static bool
same_prefix(const struct route *r, const uint8_t *dst, uint8_t len)
{
	return r != NULL && r->len == len && memcmp(r->dst, dst, sizeof(r->dst)) == 0;
}

static struct route_family *
family_of(const struct route_table *t, uint8_t family)
{
	return (struct route_family *)(uintptr_t)&t->families[family == AF_INET6];
}

struct route *
route_head(const struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len)
{
	struct route key = { .len = len, .local = true, .seq = INT64_MIN }, *r;

	memcpy(key.dst, dst, sizeof(key.dst));
	r = RB_NFIND(route_tree, &family_of(t, family)->routes, &key);
	return same_prefix(r, dst, len) ? r : NULL;
}

struct route *
route_match(const struct route_table *t, uint8_t family, const void *dst,
	bool (*fits)(const struct route *route, void *arg), void *arg)
{
	struct route_family *f = family_of(t, family);

	for (int len = (int)route_addr_len(family) * 8; len >= 0; len--) {
		uint8_t masked[ROUTE_ADDR_LEN];
		struct route *r;

		if (f->by_len[len] == 0)
			continue;
		route_mask(family, dst, (uint8_t)len, masked);
		r = route_head(t, family, masked, (uint8_t)len);
		for (; same_prefix(r, masked, (uint8_t)len); r = RB_NEXT(route_tree, &f->routes, r))
			if (fits == NULL || fits(r, arg))
				return r;
	}
	return NULL;
}

/* Makes packets meet what is first now. */
static int
prefix_refresh(struct route_table *t, uint8_t family, const uint8_t *dst, uint8_t len)
{
	const struct route *head = route_head(t, family, dst, len);

	if (head != NULL)
		return route_fib_set(t, family, dst, len, head->set->id);
	route_fib_unset(t, family, dst, len);
	return 0;
}

static void
unlink_route(struct route_table *t, struct route *r)
{
	struct route_family *f = route_family(t, r->family);

	RB_REMOVE(route_tree, &f->routes, r);
	f->n_routes--;
	f->by_len[r->len]--;
}

void
route_remove(struct route_table *t, struct route *r)
{
	uint8_t dst[ROUTE_ADDR_LEN];

	memcpy(dst, r->dst, sizeof(dst));
	unlink_route(t, r);
	/* Shrinking needs no memory. */
	(void)prefix_refresh(t, r->family, dst, r->len);
	route_changed(t, ROUTE_EVENT_ROUTE_DEL, r);
	route_set_put(t, r->set);
	free(r);
}

static int
insert_route(struct route_table *t, struct route *r)
{
	struct route_family *f = route_family(t, r->family);
	int ret;

	RB_INSERT(route_tree, &f->routes, r);
	f->n_routes++;
	f->by_len[r->len]++;
	if ((ret = prefix_refresh(t, r->family, r->dst, r->len)) != 0)
		unlink_route(t, r);
	return ret;
}

/* --- adding --- */

static int
refuse(const char **why, int err, const char *text)
{
	*why = text;
	return err;
}

struct gateway_fit {
	uint32_t ifindex;
};

/* Routes that reach a gateway: those without one of their own. */
static bool
reaches_gateway(const struct route *r, void *arg)
{
	const struct gateway_fit *fit = arg;
	const struct route_set *set = r->set;

	if (set->n_paths != 1 || set->paths[0].has_gateway)
		return set->kind != ROUTE_FORWARD;
	return fit->ifindex == 0 || set->paths[0].ifindex == fit->ifindex;
}

static bool
is_link_local(uint8_t family, const uint8_t *addr)
{
	return family == AF_INET6 && addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}

static int
check_device(const struct route_table *t, uint32_t ifindex, const char **why)
{
	const struct route_device *d = route_device_find(t, ifindex);

	if (d == NULL)
		return refuse(why, -ENODEV, "Nexthop has no device");
	if (!d->dev.up)
		return refuse(why, -ENETDOWN, "Device for nexthop is not up");
	return 0;
}

static int
check_gateway(const struct route_table *t, uint8_t family, struct route_path *path,
	unsigned int flags, const char **why)
{
	struct gateway_fit fit = { path->ifindex };
	const struct route *r;

	if (path->onlink || is_link_local(family, path->gateway) ||
		((flags & ROUTE_AS_IT_WAS) != 0 && path->ifindex != 0)) {
		if (path->ifindex == 0)
			return refuse(why, -EINVAL, "Nexthop has no device");
		return check_device(t, path->ifindex, why);
	}
	if ((r = route_match(t, family, path->gateway, reaches_gateway, &fit)) == NULL)
		return refuse(why, family == AF_INET6 ? -EHOSTUNREACH : -ENETUNREACH,
			"Nexthop has invalid gateway");
	if (r->set->kind != ROUTE_FORWARD)
		return refuse(why, -EINVAL, "Nexthop has invalid gateway");
	path->ifindex = r->set->paths[0].ifindex;
	return check_device(t, path->ifindex, why);
}

static int
check_paths(
	const struct route_table *t, struct route_spec *spec, unsigned int flags, const char **why)
{
	int ret;

	for (unsigned int i = 0; i < spec->n_paths; i++) {
		struct route_path *path = &spec->paths[i];

		if (path->weight == 0 || path->weight > ROUTE_WEIGHT_MAX)
			return refuse(why, -EINVAL, "Nexthop weight must be 1 to 256");
		ret = path->has_gateway ? check_gateway(t, spec->family, path, flags, why)
					: check_device(t, path->ifindex, why);
		if (ret != 0)
			return ret;
	}
	/* One way has no weight, so that sets are shared. */
	if (spec->n_paths == 1)
		spec->paths[0].weight = 1;
	return 0;
}

static enum route_kind
kind_of(uint8_t type)
{
	switch (type) {
	case RTN_UNICAST:
		return ROUTE_FORWARD;
	case RTN_LOCAL:
		return ROUTE_LOCAL;
	case RTN_BROADCAST:
		return ROUTE_BROADCAST;
	case RTN_BLACKHOLE:
		return ROUTE_BLACKHOLE;
	case RTN_UNREACHABLE:
		return ROUTE_UNREACHABLE;
	case RTN_PROHIBIT:
		return ROUTE_PROHIBIT;
	}
	return ROUTE_NONE;
}

static int
check_spec(
	const struct route_table *t, struct route_spec *spec, unsigned int flags, const char **why)
{
	uint8_t masked[ROUTE_ADDR_LEN];
	enum route_kind kind = kind_of(spec->type);

	if (kind == ROUTE_NONE)
		return refuse(why, -EINVAL, "Route type is not supported");
	if (spec->len > route_addr_len(spec->family) * 8)
		return refuse(why, -EINVAL, "Invalid prefix length");
	route_mask(spec->family, spec->dst, spec->len, masked);
	if (!route_addr_equal(spec->family, masked, spec->dst))
		return refuse(why, -EINVAL, "Invalid prefix for given prefix length");
	memcpy(spec->dst, masked, sizeof(spec->dst));
	if (kind == ROUTE_FORWARD && spec->n_paths == 0)
		return refuse(why, -ENODEV, "Nexthop has no device or gateway");
	if (kind >= ROUTE_BLACKHOLE && spec->n_paths > 0)
		return refuse(why, -EINVAL, "Routes of this type have no nexthop");
	if (spec->n_paths > ROUTE_PATHS_MAX)
		return refuse(why, -EINVAL, "Too many nexthops");
	for (unsigned int i = 0; i < spec->n_paths; i++) {
		if (spec->mtu != 0 && !spec->paths[i].has_gateway)
			return refuse(why, -EOPNOTSUPP,
				"The MTU of a route without a gateway is its device's");
	}
	if (spec->has_prefsrc && route_address_find(t, 0, spec->family, spec->prefsrc) == NULL)
		return refuse(why, -EINVAL, "Invalid prefsrc address");
	return check_paths(t, spec, flags, why);
}

static void
take_spec(struct route *r, const struct route_spec *spec, struct route_set *set)
{
	r->family = spec->family;
	r->type = spec->type;
	r->protocol = spec->protocol;
	r->scope = spec->scope;
	r->advmss = spec->advmss;
	r->has_prefsrc = spec->has_prefsrc;
	memcpy(r->prefsrc, spec->prefsrc, sizeof(r->prefsrc));
	r->set = set;
}

static int
replace_route(struct route_table *t, struct route *r, const struct route_spec *spec,
	struct route_set *set)
{
	struct route old = *r;
	int ret;

	take_spec(r, spec, set);
	if ((ret = prefix_refresh(t, r->family, r->dst, r->len)) != 0) {
		*r = old;
		return ret;
	}
	route_changed(t, ROUTE_EVENT_ROUTE_REPLACE, r);
	route_set_put(t, old.set);
	return 0;
}

/* The first route with that destination, table and metric, or NULL. */
static struct route *
first_alike(const struct route_table *t, const struct route_spec *spec)
{
	struct route key = {
		.len = spec->len, .local = spec->local, .metric = spec->metric, .seq = INT64_MIN
	};
	struct route *r;

	memcpy(key.dst, spec->dst, sizeof(key.dst));
	r = RB_NFIND(route_tree, &family_of(t, spec->family)->routes, &key);
	return same_prefix(r, spec->dst, spec->len) && r->local == spec->local &&
			r->metric == spec->metric
		? r
		: NULL;
}

/* 0 and the place among those alike, or -EEXIST if the very same is there. */
static int
place_alike(const struct route_table *t, const struct route_spec *spec, const struct route_set *set,
	bool append, int64_t *seq)
{
	struct route *r = first_alike(t, spec);

	*seq = r == NULL ? 0 : r->seq - 1;
	for (; same_prefix(r, spec->dst, spec->len) && r->local == spec->local &&
		r->metric == spec->metric;
		r = RB_NEXT(route_tree, &f->routes, r)) {
		if (r->set == set && r->type == spec->type && r->scope == spec->scope)
			return -EEXIST;
		if (append)
			*seq = r->seq + 1;
	}
	return 0;
}

static int
add_route(struct route_table *t, const struct route_spec *spec, struct route_set *set, bool append)
{
	struct route *r = calloc(1, sizeof(*r));
	int ret;

	if (r == NULL)
		return -ENOMEM;
	memcpy(r->dst, spec->dst, sizeof(r->dst));
	r->len = spec->len;
	r->local = spec->local;
	r->metric = spec->metric;
	take_spec(r, spec, set);
	if ((ret = place_alike(t, spec, set, append, &r->seq)) != 0 ||
		(ret = insert_route(t, r)) != 0) {
		free(r);
		return ret;
	}
	route_changed(t, ROUTE_EVENT_ROUTE_ADD, r);
	return 0;
}

/* IPv6 appends ways to the route that is there (RFC 2991 as Linux does it). */
static int
merge_paths(const struct route *r, struct route_spec *spec)
{
	struct route_spec both = *spec;

	if (spec->type != RTN_UNICAST || r->type != RTN_UNICAST)
		return -EEXIST;
	if (r->set->n_paths + spec->n_paths > ROUTE_PATHS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < r->set->n_paths; i++) {
		for (unsigned int k = 0; k < spec->n_paths; k++) {
			if (memcmp(&r->set->paths[i], &spec->paths[k], sizeof(spec->paths[k])) == 0)
				return -EEXIST;
		}
	}
	memcpy(both.paths, r->set->paths, r->set->n_paths * sizeof(both.paths[0]));
	memcpy(both.paths + r->set->n_paths, spec->paths, spec->n_paths * sizeof(both.paths[0]));
	both.n_paths = r->set->n_paths + spec->n_paths;
	*spec = both;
	return 0;
}

int
route_add(struct route_table *t, const struct route_spec *wanted, unsigned int flags,
	const char **why)
{
	struct route_spec spec = *wanted;
	struct route *first;
	struct route_set *set;
	int ret;

	*why = NULL;
	if ((ret = check_spec(t, &spec, flags, why)) != 0)
		return ret;
	first = first_alike(t, &spec);
	if (first != NULL && (flags & ROUTE_EXCL) != 0)
		return -EEXIST;
	if (first == NULL && (flags & ROUTE_CREATE) == 0)
		return -ENOENT;
	if (first != NULL && spec.family == AF_INET6 && (flags & ROUTE_APPEND) != 0) {
		if ((ret = merge_paths(first, &spec)) != 0)
			return ret;
		flags |= ROUTE_REPLACE;
	}
	set = route_set_get(
		t, (uint8_t)kind_of(spec.type), spec.family, spec.mtu, spec.paths, spec.n_paths);
	if (set == NULL)
		return t->n_free_ids == 0
			? refuse(why, -ENOSPC, "There are too many different nexthops")
			: -ENOMEM;
	if (first != NULL && (flags & ROUTE_REPLACE) != 0)
		ret = replace_route(t, first, &spec, set);
	else
		ret = add_route(t, &spec, set, (flags & ROUTE_APPEND) != 0);
	if (ret != 0)
		route_set_put(t, set);
	return ret;
}

/* --- removing --- */

static bool
path_fits(const struct route_path *path, const struct route_path *want, uint8_t family)
{
	if (want->ifindex != 0 && want->ifindex != path->ifindex)
		return false;
	if (want->has_gateway &&
		(!path->has_gateway || !route_addr_equal(family, path->gateway, want->gateway)))
		return false;
	return true;
}

static bool
route_fits(const struct route *r, const struct route_spec *spec)
{
	if ((spec->type != 0 && spec->type != r->type) ||
		(spec->protocol != 0 && spec->protocol != r->protocol) ||
		(spec->scope != RT_SCOPE_NOWHERE && spec->scope != r->scope) ||
		(spec->metric != 0 && spec->metric != r->metric) ||
		(spec->mtu != 0 && spec->mtu != r->set->mtu) ||
		(spec->advmss != 0 && spec->advmss != r->advmss) || spec->local != r->local)
		return false;
	if (spec->has_prefsrc &&
		(!r->has_prefsrc || !route_addr_equal(spec->family, r->prefsrc, spec->prefsrc)))
		return false;
	if (spec->n_paths == 0)
		return true;
	if (spec->n_paths > 1 && spec->n_paths != r->set->n_paths)
		return false;
	for (unsigned int i = 0; i < spec->n_paths; i++) {
		if (i >= r->set->n_paths ||
			!path_fits(&r->set->paths[i], &spec->paths[i], spec->family))
			return false;
	}
	return true;
}

/* IPv6: one way of several is taken away. 0, or -ESRCH if it is none of them. */
static int
remove_path(struct route_table *t, struct route *r, const struct route_path *want)
{
	struct route_spec spec;
	struct route_set *set;
	unsigned int i = 0;
	int ret;

	route_describe(r, &spec);
	while (i < spec.n_paths && !path_fits(&spec.paths[i], want, spec.family))
		i++;
	if (i == spec.n_paths)
		return -ESRCH;
	memmove(&spec.paths[i], &spec.paths[i + 1], (spec.n_paths - i - 1) * sizeof(spec.paths[0]));
	if (--spec.n_paths == 1)
		spec.paths[0].weight = 1;
	set = route_set_get(t, r->set->kind, r->family, spec.mtu, spec.paths, spec.n_paths);
	if (set == NULL)
		return -ENOMEM;
	if ((ret = replace_route(t, r, &spec, set)) != 0)
		route_set_put(t, set);
	return ret;
}

int
route_del(struct route_table *t, const struct route_spec *spec)
{
	uint8_t dst[ROUTE_ADDR_LEN];
	struct route *r;

	if (spec->len > route_addr_len(spec->family) * 8)
		return -EINVAL;
	route_mask(spec->family, spec->dst, spec->len, dst);
	r = route_head(t, spec->family, dst, spec->len);
	for (; same_prefix(r, dst, spec->len);
		r = RB_NEXT(route_tree, &route_family(t, spec->family)->routes, r)) {
		if (spec->family == AF_INET6 && spec->n_paths == 1 && r->set->n_paths > 1 &&
			remove_path(t, r, &spec->paths[0]) == 0)
			return 0;
		if (route_fits(r, spec)) {
			route_remove(t, r);
			return 0;
		}
	}
	return -ESRCH;
}

void
route_flush(struct route_table *t, uint8_t family)
{
	struct route *r, *next;

	RB_FOREACH_SAFE (r, route_tree, &route_family(t, family)->routes, next) {
		if (!r->local)
			route_remove(t, r);
	}
}

static bool
only_through(const struct route_table *t, const struct route *r, uint32_t ifindex)
{
	bool through = false;

	for (unsigned int i = 0; i < r->set->n_paths; i++) {
		const struct route_device *d = route_device_find(t, r->set->paths[i].ifindex);

		if (r->set->paths[i].ifindex == ifindex)
			through = true;
		else if (d != NULL && d->dev.up)
			return false;
	}
	return through;
}

void
routes_flush_dev(struct route_table *t, uint32_t ifindex, bool local_too)
{
	for (unsigned int f = 0; f < 2; f++) {
		struct route *r, *next;

		RB_FOREACH_SAFE (r, route_tree, &t->families[f].routes, next) {
			if ((local_too || !r->local) && only_through(t, r, ifindex))
				route_remove(t, r);
		}
	}
}

/* --- showing --- */

void
route_describe(const struct route *r, struct route_spec *spec)
{
	*spec = (struct route_spec){
		.family = r->family,
		.len = r->len,
		.type = r->type,
		.protocol = r->protocol,
		.scope = r->scope,
		.local = r->local,
		.has_prefsrc = r->has_prefsrc,
		.metric = r->metric,
		.mtu = r->set->mtu,
		.advmss = r->advmss,
		.n_paths = r->set->n_paths,
	};
	memcpy(spec->dst, r->dst, sizeof(spec->dst));
	memcpy(spec->prefsrc, r->prefsrc, sizeof(spec->prefsrc));
	memcpy(spec->paths, r->set->paths, r->set->n_paths * sizeof(spec->paths[0]));
}

const struct route *
route_next(const struct route_table *t, uint8_t family, struct route_at *at)
{
	struct route key = { .len = (uint8_t)(at->key[2] >> 1),
		.local = (at->key[2] & 1) == 0,
		.metric = (uint32_t)at->key[3],
		/* Biased, so that zero comes before all: the next is at least one more. */
		.seq = (int64_t)(at->key[4] ^ (UINT64_C(1) << 63)) };
	const struct route *r;

	memcpy(key.dst, at->key, sizeof(key.dst));
	if ((r = RB_NFIND(route_tree, &family_of(t, family)->routes, &key)) == NULL)
		return NULL;
	memcpy(at->key, r->dst, sizeof(r->dst));
	at->key[2] = (uint64_t)r->len << 1 | (r->local ? 0 : 1);
	at->key[3] = r->metric;
	at->key[4] = ((uint64_t)r->seq ^ (UINT64_C(1) << 63)) + 1;
	return r;
}

const struct route *
route_get(const struct route_table *t, uint8_t family, const void *dst, uint32_t hash,
	struct route_path *path)
{
	const struct route *r = route_match(t, family, dst, NULL, NULL);
	const struct route_hop *hop;

	if (r == NULL || path == NULL || r->set->n_paths == 0)
		return r;
	*path = r->set->paths[0];
	if (r->set->n_paths == 1)
		return r;
	hop = atomic_load_explicit(&t->hops[r->set->id], memory_order_relaxed);
	for (unsigned int i = 0; i < r->set->n_paths; i++) {
		if (r->set->members[i]->id == hop->buckets[hash % ROUTE_BUCKETS])
			*path = r->set->paths[i];
	}
	return r;
}

/* One way of it is by that device; it leads nowhere at all; or it is an address of ours. */
static bool
leaves_by(const struct route *r, void *arg)
{
	const uint32_t *ifindex = arg;

	if (r->type != RTN_UNICAST)
		return true;
	for (unsigned int i = 0; i < r->set->n_paths; i++)
		if (r->set->paths[i].ifindex == *ifindex)
			return true;
	return false;
}

const struct route *
route_get_by_dev(const struct route_table *t, uint8_t family, const void *dst, uint32_t ifindex,
	struct route_path *path)
{
	const struct route *r = route_match(t, family, dst, leaves_by, &ifindex);

	for (unsigned int i = 0; r != NULL && i < r->set->n_paths; i++) {
		*path = r->set->paths[i];
		if (path->ifindex == ifindex)
			break;
	}
	return r;
}

unsigned int
route_count(const struct route_table *t, uint8_t family)
{
	return family_of(t, family)->n_routes;
}
