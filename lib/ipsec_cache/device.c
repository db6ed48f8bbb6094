/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Ports with rte_security: how a session begins and ends there.
 *
 * A device is not trusted to know what it was told. It names a session by the id that it was given,
 * which is looked up in a table; what is not there, or not any more, is nobody's. A session that it
 * does not give up is asked for again with each tick, and counted.
 */

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mempool.h>

#include "ipsec_cache/device.h"
#include "ipsec_cache/lookaside.h"

#define DEVICES_MAX 32
#define SESSIONS_MAX 16384 /* of all devices; a power of two */
#define DEVICE_SESSIONS_MAX 4096
#define TRIES_MAX 100 /* to destroy a session, before it counts as stuck */

struct ipsec_devices {
	struct ipsec_device devs[DEVICES_MAX];
	unsigned int n;
	_Atomic(struct ipsec_session *) *slots; /* by the low half of an id; workers read */
	_Atomic uint64_t *events; /* by slot: the high half of an id, and bits of its events */
	_Atomic bool happened; /* some event is new */
	uint32_t *generations; /* by slot: the high half of its next id */
	uint32_t *free; /* slots; a stack */
	unsigned int n_free;
	struct ipsec_session *dying; /* after their grace period */
	uint64_t n_live, n_dying, n_stuck;
};

int
ipsec_devices_create(struct ipsec_cache *ic)
{
	return (ic->devices = calloc(1, sizeof(*ic->devices))) != NULL ? 0 : -ENOMEM;
}

static void
table_free(struct ipsec_devices *d)
{
	free(d->generations);
	free(d->free);
	free((void *)(uintptr_t)d->events);
	free((void *)(uintptr_t)d->slots);
	d->generations = d->free = NULL;
	d->events = NULL;
	d->slots = NULL;
}

/* The table of ids, with the first device. */
static int
table_create(struct ipsec_devices *d)
{
	uint32_t i;

	if (d->slots != NULL)
		return 0;
	d->generations = calloc(SESSIONS_MAX, sizeof(*d->generations));
	d->free = calloc(SESSIONS_MAX, sizeof(*d->free));
	d->events = calloc(SESSIONS_MAX, sizeof(*d->events));
	d->slots = calloc(SESSIONS_MAX, sizeof(*d->slots));
	if (d->generations == NULL || d->free == NULL || d->events == NULL || d->slots == NULL) {
		table_free(d);
		return -ENOMEM;
	}
	for (i = 0; i < SESSIONS_MAX; i++)
		d->free[d->n_free++] = SESSIONS_MAX - 1 - i;
	return 0;
}

bool
ipsec_devices_any(const struct ipsec_cache *ic)
{
	return ic->devices->n != 0;
}

static struct ipsec_device *
device_of(const struct ipsec_devices *d, uint32_t ifindex)
{
	unsigned int i;

	for (i = 0; i < DEVICES_MAX; i++)
		if (d->devs[i].ctx != NULL && d->devs[i].conf.ifindex == ifindex)
			return (struct ipsec_device *)(uintptr_t)&d->devs[i];
	return NULL;
}

struct ipsec_device *
ipsec_device_find(const struct ipsec_cache *ic, uint32_t ifindex)
{
	struct ipsec_device *dev = device_of(ic->devices, ifindex);

	return dev != NULL && !dev->gone ? dev : NULL;
}

static struct rte_mempool *
pool_create(const struct ipsec_cache *ic, const struct ipsec_device *dev)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	/* a name that no other instance uses */
	snprintf(name, sizeof(name), "esp_%" PRIxPTR "_%u", (uintptr_t)ic, dev->conf.ifindex);
	return rte_mempool_create(name, DEVICE_SESSIONS_MAX - 1,
		rte_security_session_get_size(dev->ctx), 0, 0, NULL, NULL, NULL, NULL,
		rte_eth_dev_socket_id(dev->conf.port_id), 0);
}

int
ipsec_cache_dev_add(struct ipsec_cache *ic, const struct ipsec_cache_dev *conf)
{
	struct ipsec_devices *d = ic->devices;
	struct ipsec_device *dev = device_of(d, conf->ifindex);
	void *ctx = rte_eth_dev_get_sec_ctx(conf->port_id);
	unsigned int i;

	if (dev != NULL && !dev->gone)
		return -EEXIST;
	if (ctx == NULL)
		return -ENOTSUP;
	ic->arrivals++;
	if (dev != NULL) { /* it went and comes back, and was not stopped in between */
		dev->gone = false;
		return 0;
	}
	for (i = 0; i < DEVICES_MAX && d->devs[i].ctx != NULL; i++)
		;
	if (i == DEVICES_MAX)
		return -ENOSPC;
	if (table_create(d) != 0)
		return -ENOMEM;
	dev = &d->devs[i];
	*dev = (struct ipsec_device){ .conf = *conf, .ctx = ctx };
	if ((dev->pool = pool_create(ic, dev)) == NULL) {
		dev->ctx = NULL;
		return -ENOMEM;
	}
	d->n++;
	return 0;
}

struct ipsec_session *
ipsec_session_get(const struct ipsec_cache *ic, uint64_t id)
{
	struct ipsec_session *s;

	if (ic->devices->slots == NULL || (uint32_t)id >= SESSIONS_MAX)
		return NULL;
	/* acquire: what a session was made with is seen with it */
	s = atomic_load_explicit(&ic->devices->slots[(uint32_t)id], memory_order_acquire);
	return s != NULL && s->id == id ? s : NULL;
}

/* --- what steers packets to a session --- */

static struct rte_flow *
rule_try(uint16_t port, const struct rte_flow_item *pattern, enum rte_flow_action_type with,
	void *security, bool *no_flows)
{
	struct rte_flow_action_queue queue = { .index = 0 };
	const struct rte_flow_attr attr = { .ingress = 1 };
	struct rte_flow_action actions[3] = {
		/* the session itself: what drivers take, whatever struct rte_flow_action_security
		   says */
		{ .type = RTE_FLOW_ACTION_TYPE_SECURITY, .conf = security },
		{ .type = with, .conf = with == RTE_FLOW_ACTION_TYPE_QUEUE ? &queue : NULL },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_error error = { 0 };
	int err = rte_flow_validate(port, &attr, pattern, actions, &error);

	*no_flows = err == -ENOSYS;
	return err == 0 ? rte_flow_create(port, &attr, pattern, actions, &error) : NULL;
}

/*
 * The rule by which a NIC finds the session of what comes in: by destination and SPI. A driver
 * without rte_flow finds it by itself. False: the driver takes no such rule.
 */
static bool
rule_create(struct ipsec_session *s)
{
	/* Drivers want one or another of these behind the action: nothing, or where it goes then.
	 */
	static const enum rte_flow_action_type fates[] = { RTE_FLOW_ACTION_TYPE_END,
		RTE_FLOW_ACTION_TYPE_PASSTHRU, RTE_FLOW_ACTION_TYPE_QUEUE };
	const struct ipsec_cache_rt *rt = s->rt;
	struct rte_flow_item_ipv4 ip4 = { 0 }, ip4_mask = { 0 };
	struct rte_flow_item_ipv6 ip6 = { 0 }, ip6_mask = { 0 };
	struct rte_flow_item_udp udp = { .hdr.dst_port = RTE_BE16(IPSEC_NATT_PORT) };
	struct rte_flow_item_udp udp_mask = { .hdr.dst_port = RTE_BE16(UINT16_MAX) };
	struct rte_flow_item_esp esp = { .hdr.spi = rt->spi };
	struct rte_flow_item_esp esp_mask = { .hdr.spi = RTE_BE32(UINT32_MAX) };
	struct rte_flow_item pattern[5] = { { .type = RTE_FLOW_ITEM_TYPE_ETH } };
	unsigned int n = 1, i;
	bool no_flows = false;

	memcpy(&ip4.hdr.dst_addr, rt->daddr, sizeof(ip4.hdr.dst_addr));
	memset(&ip4_mask.hdr.dst_addr, 0xff, sizeof(ip4_mask.hdr.dst_addr));
	memcpy(&ip6.hdr.dst_addr, rt->daddr, sizeof(ip6.hdr.dst_addr));
	memset(&ip6_mask.hdr.dst_addr, 0xff, sizeof(ip6_mask.hdr.dst_addr));
	if (rt->family == AF_INET)
		pattern[n++] = (struct rte_flow_item){
			.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ip4, .mask = &ip4_mask
		};
	else
		pattern[n++] = (struct rte_flow_item){
			.type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &ip6, .mask = &ip6_mask
		};
	if ((rt->flags & IPSEC_RT_UDP) != 0)
		pattern[n++] = (struct rte_flow_item){
			.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask
		};
	pattern[n++] = (struct rte_flow_item){
		.type = RTE_FLOW_ITEM_TYPE_ESP, .spec = &esp, .mask = &esp_mask
	};
	pattern[n] = (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_END };
	for (i = 0; i < RTE_DIM(fates) && s->flow == NULL && !no_flows; i++)
		s->flow = rule_try(s->port, pattern, fates[i], s->security, &no_flows);
	return s->flow != NULL || no_flows;
}

static bool
rule_destroy(struct ipsec_session *s)
{
	struct rte_flow_error error = { 0 };

	if (s->flow != NULL && rte_flow_destroy(s->port, s->flow, &error) != 0)
		return false;
	s->flow = NULL;
	return true;
}

/* --- the beginning --- */

static uint32_t
spi_bucket(const struct ipsec_cache_rt *rt)
{
	return ntohl(rt->spi) % RTE_DIM(((struct ipsec_device *)NULL)->dying);
}

static bool
session_open(struct ipsec_session *s, struct ipsec_want *want, const char **missing)
{
	s->security = rte_security_session_create(s->ctx, &want->conf, s->dev->pool);
	if (s->security == NULL) {
		*missing = ipsec_no_session;
		return false;
	}
	*missing = "its driver takes no rule that steers the SA's packets";
	return !s->in || rule_create(s);
}

const char *
ipsec_session_unlike(const struct ipsec_cache_rt *rt, bool in)
{
	if (!in && rt->tfcpad != 0)
		return "rte_security has no TFC padding";
	if ((rt->flags & IPSEC_RT_SHARED) != 0)
		return "lcores share the SA's numbers, which the device would give";
	if ((rt->flags & IPSEC_RT_WRAP) != 0)
		return "rte_security has no numbers that may wrap";
	return NULL;
}

/* What no capability says, and a NIC's packets would lack or a NIC cannot be asked. */
static const char *
unlike(const struct ipsec_cache_rt *rt, enum ipsec_session_kind kind, bool in)
{
	bool udp = (rt->flags & IPSEC_RT_UDP) != 0;

	if (kind == IPSEC_SESSION_INLINE_CRYPTO) {
		if (!in && udp && rt->family == AF_INET6)
			return "the UDP checksum over IPv6 is over what the NIC encrypts";
		return NULL;
	}
	if (!rte_security_dynfield_is_registered() && in)
		return "its driver does not tell which SA a packet came by";
	return ipsec_session_unlike(rt, in);
}

static struct ipsec_session *
session_alloc(struct ipsec_cache *ic, struct ipsec_device *dev, struct ipsec_cache_rt *rt)
{
	struct ipsec_devices *d = ic->devices;
	struct ipsec_session *s;
	uint32_t slot;

	if (d->n_free == 0 || (s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	slot = d->free[--d->n_free];
	s->id = (uint64_t)++d->generations[slot] << 32 | slot;
	s->ic = ic;
	s->dev = dev;
	s->ctx = dev->ctx;
	s->port = dev->conf.port_id;
	s->ifindex = dev->conf.ifindex;
	s->rt = rt;
	s->spi_bucket = spi_bucket(rt);
	return s;
}

static void
session_free(struct ipsec_session *s)
{
	struct ipsec_devices *d = s->ic->devices;

	d->free[d->n_free++] = (uint32_t)s->id;
	free(s);
}

struct ipsec_session *
ipsec_session_create(struct ipsec_cache *ic, struct ipsec_device *dev, struct ipsec_cache_rt *rt,
	enum ipsec_session_kind kind, bool in, uint64_t start, const char **missing)
{
	const struct rte_security_capability *c;
	struct ipsec_session *s;
	struct ipsec_want want;

	*missing = "its session of an SA with that SPI has not ended yet";
	if (in && dev->dying[spi_bucket(rt)] != 0)
		return NULL;
	ipsec_want_fill(&want, rt,
		kind == IPSEC_SESSION_INLINE_CRYPTO ? RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO
						    : RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL,
		in);
	if ((c = ipsec_capability_find(dev->ctx, &want, missing)) == NULL)
		return NULL;
	if ((*missing = unlike(rt, kind, in)) != NULL)
		return NULL;
	*missing = ipsec_no_room;
	if (dev->n_sessions >= DEVICE_SESSIONS_MAX || (s = session_alloc(ic, dev, rt)) == NULL)
		return NULL;
	s->kind = (uint8_t)kind;
	s->in = in;
	s->metadata = (c->ol_flags & RTE_SECURITY_TX_OLOAD_NEED_MDATA) != 0;
	s->tagged = rte_security_dynfield_is_registered();
	s->start = start;
	atomic_init(&s->reached, start);
	/* Packets that it opens may come before it is published. */
	if (in && kind == IPSEC_SESSION_INLINE_CRYPTO)
		ipsec_rt_by_set(rt, IPSEC_BY_INLINE, true);
	want.conf.ipsec.esn.value = start;
	want.conf.userdata = (void *)(uintptr_t)s->id;
	s->counted = c->ipsec.options.stats;
	want.conf.ipsec.options.stats = s->counted;
	dev->n_sessions++;
	ic->devices->n_live++;
	if (session_open(s, &want, missing)) {
		/* drivers with fast metadata do not all say that they need any */
		s->metadata |= s->tagged && rte_security_session_fast_mdata_get(s->security) != 0;
		return s;
	}
	ipsec_session_cancel(s);
	return NULL;
}

void
ipsec_session_publish(struct ipsec_session *s)
{
	if (ipsec_session_is_lookaside(s)) {
		ipsec_lookaside_publish(s);
		return;
	}
	/* release: whoever finds the session finds what it was made with */
	atomic_store_explicit(&s->ic->devices->slots[(uint32_t)s->id], s, memory_order_release);
	atomic_store_explicit(&s->rt->session, s, memory_order_release);
	if (s->in && s->kind == IPSEC_SESSION_INLINE_PROTOCOL)
		ipsec_rt_by_set(s->rt, IPSEC_BY_PROTOCOL, true);
}

/* --- the end --- */

/* It is out of use: asks the device to give it up, rule first. False: not yet. */
static bool
session_close(struct ipsec_session *s, bool last)
{
	struct ipsec_devices *d = s->ic->devices;
	bool gone = (rule_destroy(s) || last) &&
		(s->security == NULL || rte_security_session_destroy(s->ctx, s->security) == 0);

	if (!gone) {
		if (++s->tries == TRIES_MAX || (last && s->tries < TRIES_MAX))
			d->n_stuck++;
		if (!last)
			return false;
	} else if (s->tries >= TRIES_MAX) {
		d->n_stuck--;
	}
	if (s->in)
		s->dev->dying[s->spi_bucket]--;
	d->n_dying--;
	s->dev->n_sessions--;
	session_free(s);
	return true;
}

/* Nobody uses it: to be closed. */
static void
bury(struct ipsec_session *s)
{
	struct ipsec_devices *d = s->ic->devices;

	s->next = d->dying;
	d->dying = s;
}

static void
count_dying(struct ipsec_session *s)
{
	if (s->in)
		s->dev->dying[s->spi_bucket]++;
	s->ic->devices->n_live--;
	s->ic->devices->n_dying++;
}

void
ipsec_session_cancel(struct ipsec_session *s)
{
	count_dying(s);
	if (!session_close(s, false))
		bury(s);
}

static void
after_grace(struct rcu_head *head)
{
	struct ipsec_session *s = RTE_PTR_SUB(head, offsetof(struct ipsec_session, rcu));
	const struct ipsec_cache_conf *conf = &s->ic->conf;

	rule_destroy(s); /* now, or with the session */
	if (conf->tx_rounds != NULL && !s->in)
		s->rounds = conf->tx_rounds(conf->arg, s->ifindex) + 2;
	bury(s);
}

void
ipsec_session_retire(struct ipsec_session *s)
{
	struct ipsec_cache *ic = s->ic;

	if (ipsec_session_is_lookaside(s)) {
		ipsec_lookaside_retire(s);
		return;
	}
	/* relaxed: the bump that follows is the release */
	atomic_store_explicit(&s->rt->session, NULL, memory_order_relaxed);
	atomic_store_explicit(&ic->devices->slots[(uint32_t)s->id], NULL, memory_order_relaxed);
	if (s->in && s->kind == IPSEC_SESSION_INLINE_PROTOCOL)
		ipsec_rt_by_set(s->rt, IPSEC_BY_PROTOCOL, false);
	count_dying(s);
	ipsec_bump(ic);
	rcu_defer(ic->conf.rcu, &s->rcu, after_grace);
}

/* Ends those of `dev` (NULL: any) that may end; all of them if the device has stopped. */
static void
close_dying(struct ipsec_cache *ic, const struct ipsec_device *dev, bool stopped)
{
	const struct ipsec_cache_conf *conf = &ic->conf;
	struct ipsec_session **at = &ic->devices->dying, *s, *next;

	while ((s = *at) != NULL) {
		next = s->next;
		if ((dev == NULL || s->dev == dev) &&
			(stopped || s->rounds == 0 ||
				conf->tx_rounds(conf->arg, s->ifindex) >= s->rounds) &&
			session_close(s, stopped))
			*at = next;
		else
			at = &s->next;
	}
}

void
ipsec_devices_tick(struct ipsec_cache *ic)
{
	if (ic->devices->dying != NULL)
		close_dying(ic, NULL, false);
}

void
ipsec_devices_sessions(struct ipsec_cache *ic, void (*fn)(struct ipsec_session *s))
{
	struct ipsec_session *s;
	uint32_t i;

	for (i = 0; ic->devices->slots != NULL && i < SESSIONS_MAX; i++) {
		s = atomic_load_explicit(&ic->devices->slots[i], memory_order_relaxed);
		if (s != NULL)
			fn(s);
	}
}

static void
leave_gone(struct ipsec_session *s)
{
	if (s->dev->gone)
		ipsec_session_retire(s);
}

void
ipsec_cache_dev_gone(struct ipsec_cache *ic, uint32_t ifindex)
{
	struct ipsec_device *dev = ipsec_device_find(ic, ifindex);

	/* What decisions say of routes goes with the device, whatever it can do. */
	ipsec_bump(ic);
	if (dev == NULL)
		return;
	dev->gone = true;
	ipsec_devices_sessions(ic, leave_gone);
}

void
ipsec_cache_dev_stopped(struct ipsec_cache *ic, uint32_t ifindex)
{
	struct ipsec_device *dev = device_of(ic->devices, ifindex);

	if (dev == NULL)
		return;
	close_dying(ic, dev, true);
	rte_mempool_free(dev->pool);
	dev->ctx = NULL;
	ic->devices->n--;
}

void
ipsec_devices_destroy(struct ipsec_cache *ic)
{
	struct ipsec_devices *d = ic->devices;
	unsigned int i;

	if (d == NULL)
		return;
	for (i = 0; i < DEVICES_MAX; i++) {
		if (d->devs[i].ctx == NULL)
			continue;
		ipsec_cache_dev_gone(ic, d->devs[i].conf.ifindex);
		rcu_barrier(ic->conf.rcu);
		ipsec_cache_dev_stopped(ic, d->devs[i].conf.ifindex);
	}
	table_free(d);
	free(d);
	ic->devices = NULL;
}

void
ipsec_cache_dev_event(struct ipsec_cache *ic, unsigned int subtype, uint64_t metadata)
{
	struct ipsec_devices *d = ic->devices;
	uint32_t slot = (uint32_t)metadata;
	uint64_t now, then;

	if (d->events == NULL || slot >= SESSIONS_MAX || subtype >= 32)
		return;
	/*
	 * Whatever thread this is, it is no reader of ours: it touches the slot's word, which
	 * stays, and not the session. Bits of another generation are of a session that has gone,
	 * or are a lie: the last to come counts.
	 */
	now = atomic_load_explicit(&d->events[slot], memory_order_relaxed);
	do {
		then = now >> 32 == metadata >> 32 ? now : metadata & ~(uint64_t)UINT32_MAX;
		then |= UINT64_C(1) << subtype;
	} while (!atomic_compare_exchange_weak_explicit(
		&d->events[slot], &now, then, memory_order_relaxed, memory_order_relaxed));
	/* release: who sees that something happened sees what */
	atomic_store_explicit(&d->happened, true, memory_order_release);
}

void
ipsec_devices_events(struct ipsec_cache *ic, void (*fn)(struct ipsec_session *s, uint32_t events))
{
	struct ipsec_devices *d = ic->devices;
	struct ipsec_session *s;
	uint64_t word;
	uint32_t i;

	if (!atomic_exchange_explicit(&d->happened, false, memory_order_acquire))
		return;
	for (i = 0; i < SESSIONS_MAX; i++) {
		word = atomic_exchange_explicit(&d->events[i], 0, memory_order_relaxed);
		s = atomic_load_explicit(&d->slots[i], memory_order_relaxed);
		if ((uint32_t)word != 0 && s != NULL && s->id >> 32 == word >> 32)
			fn(s, (uint32_t)word);
	}
}

void
ipsec_devices_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats)
{
	stats->sessions = ic->devices->n_live;
	stats->sessions_dying = ic->devices->n_dying;
	stats->sessions_stuck = ic->devices->n_stuck;
}
