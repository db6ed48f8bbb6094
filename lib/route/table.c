/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The table as a whole, and the devices it knows. */

#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "internal.h"

struct route_table *
route_table_create(const struct route_conf *conf)
{
	struct route_table *t =
		rte_zmalloc_socket("route_table", sizeof(*t), RTE_CACHE_LINE_SIZE, conf->socket);

	if (t == NULL || (t->free_ids = calloc(ROUTE_HOPS_MAX, sizeof(*t->free_ids))) == NULL) {
		rte_free(t);
		rte_errno = ENOMEM;
		return NULL;
	}
	t->conf = *conf;
	TAILQ_INIT(&t->devices);
	TAILQ_INIT(&t->addresses);
	TAILQ_INIT(&t->neighs);
	RB_INIT(&t->sets);
	for (uint32_t id = ROUTE_HOPS_MAX - 1; id > 0; id--)
		t->free_ids[t->n_free_ids++] = id;
	for (uint32_t id = 0; id < ROUTE_HOPS_MAX; id++)
		atomic_init(&t->hops[id], &t->none.hop);
	return t;
}

void
route_table_destroy(struct route_table *t)
{
	struct route_device *d;

	if (t == NULL)
		return;
	t->listener = NULL;
	while ((d = TAILQ_FIRST(&t->devices)) != NULL)
		route_dev_del(t, d->dev.ifindex);
	for (unsigned int f = 0; f < 2; f++) {
		struct route *r, *next;

		RB_FOREACH_SAFE (r, route_tree, &t->families[f].routes, next)
			route_remove(t, r);
	}
	/* What was deferred names the table. */
	rcu_barrier(t->conf.rcu);
	for (unsigned int f = 0; f < 2; f++) {
		struct route_fib *fib =
			atomic_load_explicit(&t->families[f].fib, memory_order_relaxed);

		if (fib != NULL)
			route_fib_free(fib);
	}
	free(t->free_ids);
	rte_free(t);
}

void
route_listen(struct route_table *t,
	void (*fn)(void *arg, enum route_event event, const void *object), void *arg)
{
	t->listener = fn;
	t->listener_arg = arg;
}

void
route_changed(struct route_table *t, enum route_event event, const void *object)
{
	t->generation++;
	if (t->listener != NULL)
		t->listener(t->listener_arg, event, object);
}

uint64_t
route_generation(const struct route_table *t)
{
	return t->generation;
}

void
route_tick(struct route_table *t, uint64_t now_ms)
{
	t->now = now_ms;
	route_neighs_tick(t);
}

void
route_mask(uint8_t family, const void *addr, uint8_t len, uint8_t out[ROUTE_ADDR_LEN])
{
	unsigned int n = route_addr_len(family);
	uint8_t copy[ROUTE_ADDR_LEN] = { 0 };

	memcpy(copy, addr, n);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int bits = len <= i * 8 ? 0 : RTE_MIN(8u, len - i * 8u);

		copy[i] &= (uint8_t)(0xff00u >> bits);
	}
	memcpy(out, copy, sizeof(copy));
}

bool
route_in_prefix(uint8_t family, const void *addr, const void *prefix, uint8_t len)
{
	uint8_t a[ROUTE_ADDR_LEN], b[ROUTE_ADDR_LEN];

	route_mask(family, addr, len, a);
	route_mask(family, prefix, len, b);
	return memcmp(a, b, sizeof(a)) == 0;
}

struct route_device *
route_device_find(const struct route_table *t, uint32_t ifindex)
{
	struct route_device *d;

	TAILQ_FOREACH (d, &t->devices, next)
		if (d->dev.ifindex == ifindex)
			return d;
	return NULL;
}

const struct route_dev *
route_dev_find(const struct route_table *t, uint32_t ifindex)
{
	const struct route_device *d = route_device_find(t, ifindex);

	return d == NULL ? NULL : &d->dev;
}

int
route_dev_set(struct route_table *t, const struct route_dev *dev)
{
	struct route_device *d = route_device_find(t, dev->ifindex);
	struct route_dev old;

	if (d == NULL) {
		if ((d = calloc(1, sizeof(*d))) == NULL)
			return -ENOMEM;
		d->dev = *dev;
		TAILQ_INSERT_TAIL(&t->devices, d, next);
		return 0;
	}
	old = d->dev;
	d->dev = *dev;
	if (old.up && !dev->up) {
		routes_flush_dev(t, dev->ifindex, true);
		route_neighs_flush(t, dev->ifindex, false);
	}
	if (route_neighs_refresh(t, dev->ifindex) != 0 || route_sets_refresh(t, dev->ifindex) != 0)
		return -ENOMEM;
	return dev->up && !old.up ? route_addresses_up(t, dev->ifindex) : 0;
}

void
route_dev_del(struct route_table *t, uint32_t ifindex)
{
	struct route_device *d = route_device_find(t, ifindex);

	if (d == NULL)
		return;
	d->dev.up = false;
	routes_flush_dev(t, ifindex, true);
	route_addresses_flush(t, ifindex);
	route_neighs_flush(t, ifindex, true);
	TAILQ_REMOVE(&t->devices, d, next);
	free(d);
}
