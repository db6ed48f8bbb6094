/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Neighbours: the states of RFC 4861 section 7.3, which Linux uses for ARP too. Packets meet only
 * the neighbour's hop; all else is the control thread's.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "internal.h"
#include "neigh_hash.h"

/* Milliseconds; Linux's defaults (net/ipv4/neigh/default). */
#define REACHABLE_MS 30000
#define DELAY_MS 5000
#define RETRANS_MS 1000
#define PROBES_MAX 3
#define UNUSED_MS 60000 /* until one that nobody uses is forgotten */
#define HARD_STATES (NUD_PERMANENT | NUD_NOARP)
#define VALID_STATES (HARD_STATES | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)

static struct route_neigh *
neigh_lookup(const struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	struct route_neigh *n;

	/* Relaxed: only this thread writes. */
	n = atomic_load_explicit(
		&t->neigh_buckets[neigh_hash(ifindex, family, addr)], memory_order_relaxed);
	while (n != NULL &&
		(n->ifindex != ifindex || n->family != family ||
			!route_addr_equal(family, n->addr, addr)))
		n = atomic_load_explicit(&n->next, memory_order_relaxed);
	return n;
}

static void
neigh_rewrite(const struct route_neigh *n, const struct route_device *d, struct route_hop *hop)
{
	uint16_t type =
		rte_cpu_to_be_16(n->family == AF_INET6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);

	memcpy(hop->rewrite + 2, n->lladdr, 6);
	memcpy(hop->rewrite + 8, d->dev.mac, 6);
	memcpy(hop->rewrite + 14, &type, 2);
}

/* Makes the neighbour's hop anew and shows it to packets and to the routes by way of it. */
static int
neigh_publish(struct route_table *t, struct route_neigh *n)
{
	struct route_own_hop *own = route_hop_alloc(t, 0);
	struct route_own_hop *old = atomic_load_explicit(&n->hop, memory_order_relaxed);
	const struct route_device *d = route_device_find(t, n->ifindex);
	struct route_set *set;
	int ret = 0;

	if (own == NULL)
		return -ENOMEM;
	own->hop.kind = ROUTE_RESOLVE;
	own->hop.family = n->family;
	own->hop.ifindex = n->ifindex;
	own->hop.used = &n->used;
	memcpy(own->hop.nexthop, n->addr, sizeof(own->hop.nexthop));
	if (d != NULL) {
		own->hop.port = d->dev.port;
		own->hop.mtu = d->dev.mtu;
		if ((n->state & VALID_STATES) != 0 && n->has_lladdr) {
			own->hop.kind = ROUTE_FORWARD;
			neigh_rewrite(n, d, &own->hop);
		}
	}
	/* Release: complete before it can be found. */
	atomic_store_explicit(&n->hop, own, memory_order_release);
	LIST_FOREACH (set, &n->sets, of_neigh) {
		if (route_set_follow(t, set, own) != 0)
			ret = -ENOMEM;
	}
	route_hop_retire(t, old);
	return ret;
}

static struct route_neigh *
neigh_create(struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	struct route_neigh *n;
	uint32_t bucket = neigh_hash(ifindex, family, addr);

	if (t->n_neighs >= ROUTE_NEIGH_MAX || (n = calloc(1, sizeof(*n))) == NULL)
		return NULL;
	n->ifindex = ifindex;
	n->family = family;
	memcpy(n->addr, addr, route_addr_len(family));
	n->number = ++t->neigh_number;
	n->updated = n->last_used = n->confirmed = t->now;
	LIST_INIT(&n->sets);
	if (neigh_publish(t, n) != 0) {
		free(n);
		return NULL;
	}
	atomic_init(
		&n->next, atomic_load_explicit(&t->neigh_buckets[bucket], memory_order_relaxed));
	/* Release: filled in before it is linked. */
	atomic_store_explicit(&t->neigh_buckets[bucket], n, memory_order_release);
	TAILQ_INSERT_TAIL(&t->neighs, n, all);
	n->linked = true;
	t->n_neighs++;
	return n;
}

void
route_neigh_free_now(struct route_neigh *n)
{
	free(n);
}

static void
neigh_free_rcu(struct rcu_head *head)
{
	free(RTE_PTR_SUB(head, offsetof(struct route_neigh, rcu)));
}

static void
neigh_release(struct route_table *t, struct route_neigh *n, bool failed)
{
	void *pkts[ROUTE_WAITING_MAX];
	unsigned int count = n->n_waiting;

	if (count == 0)
		return;
	memcpy(pkts, n->waiting, sizeof(pkts));
	n->n_waiting = 0;
	t->conf.release(t->conf.arg, n, pkts, count, failed);
}

static void
neigh_unlink(struct route_table *t, struct route_neigh *n)
{
	uint32_t bucket = neigh_hash(n->ifindex, n->family, n->addr);
	_Atomic(struct route_neigh *) *at = &t->neigh_buckets[bucket];
	struct route_neigh *here;

	while ((here = atomic_load_explicit(at, memory_order_relaxed)) != n)
		at = &here->next;
	/* Release: what stands behind it was complete already. */
	atomic_store_explicit(
		at, atomic_load_explicit(&n->next, memory_order_relaxed), memory_order_release);
	TAILQ_REMOVE(&t->neighs, n, all);
	if (t->neigh_at == n)
		t->neigh_at = NULL;
	t->n_neighs--;
	route_hop_retire(t, atomic_load_explicit(&n->hop, memory_order_relaxed));
	rcu_defer(t->conf.rcu, &n->rcu, neigh_free_rcu);
}

/* Changes the state; what packets see changes only when they would. */
static void
neigh_state(struct route_table *t, struct route_neigh *n, uint16_t state)
{
	uint16_t old = n->state;

	if (old == state)
		return;
	t->n_incomplete += (state == NUD_INCOMPLETE) - (old == NUD_INCOMPLETE);
	n->state = state;
	n->probes = 0;
	n->updated = t->now;
	if (state == NUD_NONE || state == NUD_FAILED)
		n->has_lladdr = false;
	if (((old & VALID_STATES) != 0) != ((state & VALID_STATES) != 0))
		(void)neigh_publish(t, n);
	if (state != NUD_NONE)
		route_changed(t, ROUTE_EVENT_NEIGH_CHANGE, n);
}

static void
neigh_lladdr(struct route_table *t, struct route_neigh *n, const uint8_t lladdr[6])
{
	if (n->has_lladdr && memcmp(n->lladdr, lladdr, 6) == 0)
		return;
	memcpy(n->lladdr, lladdr, 6);
	n->has_lladdr = true;
	n->updated = t->now;
	(void)neigh_publish(t, n);
}

static void
neigh_solicit(struct route_table *t, struct route_neigh *n)
{
	n->probes++;
	n->timer = t->now + RETRANS_MS;
	t->conf.solicit(t->conf.arg, n, n->state == NUD_PROBE);
}

/* Forgets what is known. It stays, unseen, as long as a route goes by way of it. */
static void
neigh_forget(struct route_table *t, struct route_neigh *n)
{
	bool seen = n->state != NUD_NONE;

	neigh_release(t, n, true);
	n->flags = 0;
	n->protocol = 0;
	if (seen) {
		neigh_state(t, n, NUD_NONE);
		route_changed(t, ROUTE_EVENT_NEIGH_DEL, n);
	}
	if (n->refs == 0)
		neigh_unlink(t, n);
}

struct route_neigh *
route_neigh_ref(struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	struct route_neigh *n = neigh_lookup(t, ifindex, family, addr);

	if (n == NULL && (n = neigh_create(t, ifindex, family, addr)) == NULL)
		return NULL;
	n->refs++;
	return n;
}

void
route_neigh_unref(struct route_table *t, struct route_neigh *n)
{
	if (--n->refs == 0 && n->state == NUD_NONE)
		neigh_unlink(t, n);
}

int
route_neighs_refresh(struct route_table *t, uint32_t ifindex)
{
	struct route_neigh *n;
	int ret = 0;

	TAILQ_FOREACH (n, &t->neighs, all) {
		if (n->ifindex == ifindex && neigh_publish(t, n) != 0)
			ret = -ENOMEM;
	}
	return ret;
}

void
route_neighs_flush(struct route_table *t, uint32_t ifindex, bool all)
{
	struct route_neigh *n, *next;

	for (n = TAILQ_FIRST(&t->neighs); n != NULL; n = next) {
		next = TAILQ_NEXT(n, all);
		if (n->ifindex == ifindex && (all || (n->state & NUD_PERMANENT) == 0))
			neigh_forget(t, n);
	}
}

/* --- what the wire says and packets ask --- */

void
route_neigh_heard(struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr,
	const uint8_t lladdr[6], unsigned int flags)
{
	struct route_neigh *n = neigh_lookup(t, ifindex, family, addr);
	bool known, other;

	if (n == NULL &&
		((flags & ROUTE_HEARD_CREATE) == 0 ||
			(n = neigh_create(t, ifindex, family, addr)) == NULL))
		return;
	if ((n->state & HARD_STATES) != 0)
		return;
	known = (n->state & VALID_STATES) != 0;
	if (!known && n->state != NUD_INCOMPLETE && (flags & ROUTE_HEARD_CREATE) == 0)
		return;
	other = known && memcmp(n->lladdr, lladdr, 6) != 0;
	if (other && (flags & ROUTE_HEARD_OVERRIDE) == 0)
		return;
	neigh_lladdr(t, n, lladdr);
	if ((flags & ROUTE_HEARD_SOLICITED) != 0) {
		n->confirmed = t->now;
		n->timer = t->now + REACHABLE_MS;
		neigh_state(t, n, NUD_REACHABLE);
	} else if (!known || other) {
		neigh_state(t, n, NUD_STALE);
	}
	neigh_release(t, n, false);
}

/* The oldest makes room, as in Linux. */
static void
neigh_keep(struct route_table *t, struct route_neigh *n, void *pkt)
{
	if (n->n_waiting == ROUTE_WAITING_MAX) {
		void *oldest = n->waiting[0];

		memmove(n->waiting, n->waiting + 1, sizeof(n->waiting) - sizeof(n->waiting[0]));
		n->n_waiting--;
		t->conf.release(t->conf.arg, n, &oldest, 1, true);
	}
	n->waiting[n->n_waiting++] = pkt;
}

int
route_neigh_wait(
	struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr, void *pkt)
{
	struct route_neigh *n = neigh_lookup(t, ifindex, family, addr);

	if (route_device_find(t, ifindex) == NULL)
		return -ENODEV;
	if ((n == NULL || (n->state & (VALID_STATES | NUD_INCOMPLETE)) == 0) &&
		t->n_incomplete >= ROUTE_INCOMPLETE_MAX)
		return -ENOBUFS;
	if (n == NULL && (n = neigh_create(t, ifindex, family, addr)) == NULL)
		return -ENOMEM;
	neigh_keep(t, n, pkt);
	if ((n->state & VALID_STATES) != 0) {
		neigh_release(t, n, false);
	} else if (n->state != NUD_INCOMPLETE) {
		neigh_state(t, n, NUD_INCOMPLETE);
		neigh_solicit(t, n);
	}
	return 0;
}

/* --- timers --- */

static void
neigh_ask_again(struct route_table *t, struct route_neigh *n)
{
	if (n->probes < PROBES_MAX) {
		neigh_solicit(t, n);
		return;
	}
	neigh_state(t, n, NUD_FAILED);
	neigh_release(t, n, true);
}

static void
neigh_tick(struct route_table *t, struct route_neigh *n)
{
	/* Relaxed: see route_hop_use(). */
	bool used = atomic_load_explicit(&n->used, memory_order_relaxed) != 0;

	if (used) {
		atomic_store_explicit(&n->used, 0, memory_order_relaxed);
		n->last_used = t->now;
	}
	switch (n->state) {
	case NUD_INCOMPLETE:
	case NUD_PROBE:
		if (t->now >= n->timer)
			neigh_ask_again(t, n);
		break;
	case NUD_REACHABLE:
		if (t->now >= n->timer)
			neigh_state(t, n, NUD_STALE);
		break;
	case NUD_STALE:
		if (used) {
			n->timer = t->now + DELAY_MS;
			neigh_state(t, n, NUD_DELAY);
		} else if (t->now >= RTE_MAX(n->last_used, n->updated) + UNUSED_MS) {
			neigh_forget(t, n);
		}
		break;
	case NUD_DELAY:
		if (t->now >= n->timer) {
			neigh_state(t, n, NUD_PROBE);
			neigh_solicit(t, n);
		}
		break;
	case NUD_FAILED:
		if (t->now >= n->updated + UNUSED_MS)
			neigh_forget(t, n);
		break;
	default:
		break;
	}
}

void
route_neighs_tick(struct route_table *t)
{
	struct route_neigh *n, *next;

	for (n = TAILQ_FIRST(&t->neighs); n != NULL; n = next) {
		next = TAILQ_NEXT(n, all);
		neigh_tick(t, n);
	}
}

/* --- ip neigh --- */

static void
neigh_set_timer(struct route_table *t, struct route_neigh *n)
{
	n->timer = t->now;
	if (n->state == NUD_REACHABLE) {
		n->confirmed = t->now;
		n->timer += REACHABLE_MS;
	} else if (n->state == NUD_DELAY) {
		n->timer += DELAY_MS;
	}
}

int
route_neigh_set(struct route_table *t, const struct route_neigh_info *info, unsigned int flags)
{
	struct route_neigh *n = neigh_lookup(t, info->ifindex, info->family, info->addr);
	bool exists = n != NULL && n->state != NUD_NONE, silent;

	if (route_device_find(t, info->ifindex) == NULL)
		return -ENODEV;
	if (exists && (flags & ROUTE_EXCL) != 0)
		return -EEXIST;
	if (!exists && (flags & ROUTE_CREATE) == 0)
		return -ENOENT;
	if ((info->state & VALID_STATES) != 0 && !info->has_lladdr && (n == NULL || !n->has_lladdr))
		return -EINVAL;
	if (n == NULL && (n = neigh_create(t, info->ifindex, info->family, info->addr)) == NULL)
		return -ENOMEM;
	silent = n->state == info->state;
	n->flags = info->flags;
	n->protocol = info->protocol;
	if (info->has_lladdr && (!exists || (flags & ROUTE_REPLACE) != 0 || !n->has_lladdr))
		neigh_lladdr(t, n, info->lladdr);
	neigh_state(t, n, info->state);
	neigh_set_timer(t, n);
	if (silent)
		route_changed(t, ROUTE_EVENT_NEIGH_CHANGE, n);
	if ((n->state & VALID_STATES) != 0)
		neigh_release(t, n, false);
	else if ((n->state & (NUD_INCOMPLETE | NUD_PROBE)) != 0)
		neigh_solicit(t, n);
	return 0;
}

int
route_neigh_del(struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	struct route_neigh *n = neigh_lookup(t, ifindex, family, addr);

	if (n == NULL || n->state == NUD_NONE)
		return -ENOENT;
	neigh_forget(t, n);
	return 0;
}

const struct route_neigh *
route_neigh_find(const struct route_table *t, uint32_t ifindex, uint8_t family, const void *addr)
{
	const struct route_neigh *n = neigh_lookup(t, ifindex, family, addr);

	return n != NULL && n->state != NUD_NONE ? n : NULL;
}

const struct route_neigh *
route_neigh_next(struct route_table *t, uint64_t *after)
{
	const struct route_neigh *n = TAILQ_FIRST(&t->neighs);

	/* On from where the last call was, so that a dump is no square. */
	if (t->neigh_at != NULL && t->neigh_at->number == *after)
		n = TAILQ_NEXT(t->neigh_at, all);
	while (n != NULL && (n->number <= *after || n->state == NUD_NONE))
		n = TAILQ_NEXT(n, all);
	if ((t->neigh_at = n) != NULL)
		*after = n->number;
	return n;
}

void
route_neigh_describe(
	const struct route_table *t, const struct route_neigh *n, struct route_neigh_info *info)
{
	*info = (struct route_neigh_info){
		.ifindex = n->ifindex,
		.family = n->family,
		.state = n->state,
		.flags = n->flags,
		.protocol = n->protocol,
		.has_lladdr = n->has_lladdr,
		.probes = n->probes,
		.confirmed = t->now - n->confirmed,
		.used = t->now - n->last_used,
		.updated = t->now - n->updated,
		.refs = n->refs,
	};
	memcpy(info->addr, n->addr, sizeof(info->addr));
	memcpy(info->lladdr, n->lladdr, sizeof(info->lladdr));
}
