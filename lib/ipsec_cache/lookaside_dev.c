/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Crypto devices, and how a session begins and ends there; lookaside.h says why in that order.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cryptodev.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "ipsec_cache/device.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/sad.h"

#define SESSIONS_MAX 4096 /* of a device */

LIST_HEAD(session_list, ipsec_session);

struct ipsec_lookaside {
	struct ipsec_crypto *devs[IPSEC_CRYPTOS_MAX];
	unsigned int n;
	struct session_list live;
	struct session_list dying; /* out of use; may have packets inside */
	struct session_list lost; /* without an SA: the device lost packets of theirs */
	uint64_t n_live, n_dying, n_stuck;
};

int
ipsec_lookaside_create(struct ipsec_cache *ic)
{
	return (ic->lookaside = calloc(1, sizeof(*ic->lookaside))) != NULL ? 0 : -ENOMEM;
}

struct ipsec_crypto *
ipsec_lookaside_dev(const struct ipsec_cache *ic, unsigned int i)
{
	return i < ic->lookaside->n ? ic->lookaside->devs[i] : NULL;
}

/* --- devices --- */

static void
dev_free(struct ipsec_crypto *dev)
{
	unsigned int i;

	for (i = 0; i < dev->conf.n_queue_pairs; i++)
		rte_free(dev->lanes[i]);
	rte_mempool_free(dev->op_pool);
	rte_mempool_free(dev->sym_pool);
	rte_mempool_free(dev->security_pool);
	rte_free(dev);
}

static struct ipsec_lane *
lane_create(struct ipsec_crypto *dev, uint16_t qp, int socket)
{
	struct ipsec_lane *lane =
		rte_zmalloc_socket("ipsec_lane", sizeof(*lane), RTE_CACHE_LINE_SIZE, socket);
	unsigned int i;

	if (lane == NULL ||
		rte_crypto_op_bulk_alloc(dev->op_pool, RTE_CRYPTO_OP_TYPE_SYMMETRIC, lane->free,
			IPSEC_LANE_OPS) != IPSEC_LANE_OPS) {
		rte_free(lane);
		return NULL;
	}
	for (i = 0; i < IPSEC_LANE_OPS; i++)
		memset(ipsec_slot_of(lane->free[i]), 0, sizeof(struct ipsec_slot));
	lane->n_free = IPSEC_LANE_OPS;
	lane->dev = dev;
	lane->qp = qp;
	return lane;
}

static int
pools_create(struct ipsec_crypto *dev, int socket)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint8_t id = dev->conf.dev_id;

	snprintf(name, sizeof(name), "ipsec_ops_%u", id);
	dev->op_pool = rte_crypto_op_pool_create(name, RTE_CRYPTO_OP_TYPE_SYMMETRIC,
		dev->conf.n_queue_pairs * (unsigned int)IPSEC_LANE_OPS, 0,
		sizeof(struct ipsec_slot), socket);
	snprintf(name, sizeof(name), "ipsec_sym_%u", id);
	dev->sym_pool = rte_cryptodev_sym_session_pool_create(name, SESSIONS_MAX - 1,
		rte_cryptodev_sym_get_private_session_size(id), 0, 0, socket);
	if (dev->op_pool == NULL || dev->sym_pool == NULL)
		return -ENOMEM;
	if (dev->ctx == NULL)
		return 0;
	snprintf(name, sizeof(name), "ipsec_sec_%u", id);
	dev->security_pool = rte_mempool_create(name, SESSIONS_MAX - 1,
		rte_security_session_get_size(dev->ctx), 0, 0, NULL, NULL, NULL, NULL, socket, 0);
	return dev->security_pool != NULL ? 0 : -ENOMEM;
}

int
ipsec_cache_crypto_add(struct ipsec_cache *ic, const struct ipsec_cache_crypto *conf)
{
	struct ipsec_lookaside *l = ic->lookaside;
	uint16_t n = (uint16_t)RTE_MIN(conf->n_queue_pairs, ic->conf.n_workers), i;
	int socket = rte_cryptodev_socket_id(conf->dev_id);
	struct rte_cryptodev_info info = { 0 };
	struct ipsec_crypto *dev;

	rte_cryptodev_info_get(conf->dev_id, &info);
	if ((info.feature_flags & RTE_CRYPTODEV_FF_SYMMETRIC_CRYPTO) == 0 || n == 0)
		return -ENOTSUP;
	if (l->n == IPSEC_CRYPTOS_MAX)
		return -ENOSPC;
	dev = rte_zmalloc_socket(
		"ipsec_crypto", sizeof(*dev) + n * sizeof(dev->lanes[0]), 0, socket);
	if (dev == NULL)
		return -ENOMEM;
	dev->conf = *conf;
	dev->conf.n_queue_pairs = n;
	dev->patience = rte_get_tsc_hz() * IPSEC_FAILED_MS / 1000;
	dev->sgl = (info.feature_flags & RTE_CRYPTODEV_FF_IN_PLACE_SGL) != 0;
	dev->ctx = rte_cryptodev_get_sec_ctx(conf->dev_id);
	if (pools_create(dev, socket) != 0)
		goto fail;
	for (i = 0; i < n; i++)
		if ((dev->lanes[i] = lane_create(dev, i, socket)) == NULL)
			goto fail;
	l->devs[l->n++] = dev;
	return 0;
fail:
	dev_free(dev);
	return -ENOMEM;
}

/* --- the beginning --- */

static void *
crypto_open(
	struct ipsec_crypto *dev, const struct ipsec_cache_rt *rt, bool in, const char **missing)
{
	struct rte_cryptodev_info info = { 0 };
	struct ipsec_want want;

	ipsec_want_fill(&want, rt, RTE_SECURITY_ACTION_TYPE_NONE, in);
	rte_cryptodev_info_get(dev->conf.dev_id, &info);
	if (!ipsec_capability_crypto(info.capabilities, &want, missing))
		return NULL;
	if (rt->iv_len != 0)
		want.xform[0].aead.iv.offset = IPSEC_SLOT_OFFSET + offsetof(struct ipsec_slot, iv);
	*missing = ipsec_no_session;
	return rte_cryptodev_sym_session_create(dev->conf.dev_id, want.xform, dev->sym_pool);
}

static void *
protocol_open(struct ipsec_cache *ic, struct ipsec_crypto *dev, const struct ipsec_cache_rt *rt,
	bool in, uint64_t start, const char **missing)
{
	struct ipsec_want want;

	*missing = "its driver has no rte_security";
	if (dev->ctx == NULL || (*missing = ipsec_session_unlike(rt, in)) != NULL)
		return NULL;
	/* or the CPU of a worker without one would give out numbers beside it */
	*missing = "it has no queue pair for each worker";
	if (dev->conf.n_queue_pairs < ic->conf.n_workers)
		return NULL;
	ipsec_want_fill(&want, rt, RTE_SECURITY_ACTION_TYPE_LOOKASIDE_PROTOCOL, in);
	if (ipsec_capability_find(dev->ctx, &want, missing) == NULL)
		return NULL;
	want.conf.ipsec.esn.value = start;
	*missing = ipsec_no_session;
	return rte_security_session_create(dev->ctx, &want.conf, dev->security_pool);
}

struct ipsec_session *
ipsec_lookaside_session(struct ipsec_cache *ic, struct ipsec_crypto *dev, struct ipsec_cache_rt *rt,
	enum ipsec_session_kind kind, bool in, uint64_t start, const char **missing)
{
	struct ipsec_session *s;

	*missing = "it failed";
	if (ipsec_load(&dev->failed))
		return NULL;
	*missing = ipsec_no_room;
	if (dev->n_sessions >= SESSIONS_MAX || (s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->in_flight = calloc(dev->conf.n_queue_pairs, sizeof(*s->in_flight));
	s->security = s->in_flight == NULL ? NULL
		: kind == IPSEC_SESSION_LOOKASIDE_CRYPTO
		? crypto_open(dev, rt, in, missing)
		: protocol_open(ic, dev, rt, in, start, missing);
	if (s->security == NULL) {
		free(s->in_flight);
		free(s);
		return NULL;
	}
	s->ic = ic;
	s->rt = rt;
	s->crypto = dev;
	s->kind = (uint8_t)kind;
	s->in = in;
	s->start = start;
	atomic_init(&s->reached, start);
	dev->n_sessions++;
	rt->held++;
	ic->lookaside->n_live++;
	LIST_INSERT_HEAD(&ic->lookaside->live, s, link);
	return s;
}

void
ipsec_lookaside_publish(struct ipsec_session *s)
{
	/* release: whoever finds the session finds what it was made with */
	atomic_store_explicit(&s->rt->session, s, memory_order_release);
	if (s->in)
		ipsec_rt_by_set(s->rt, IPSEC_BY_LOOKASIDE, true);
}

/* --- the end --- */

/* The device's session ends: nothing that it has names it. */
static void
close_session(struct ipsec_session *s)
{
	struct ipsec_lookaside *l = s->ic->lookaside;
	int err;

	err = ipsec_session_is_protocol(s)
		? rte_security_session_destroy(s->crypto->ctx, s->security)
		: rte_cryptodev_sym_session_free(s->crypto->conf.dev_id, s->security);
	if (err != 0)
		l->n_stuck++;
	l->n_dying--;
	s->crypto->n_sessions--;
	LIST_REMOVE(s, link);
	free(s->in_flight);
	free(s);
}

static void
let_go(struct ipsec_session *s)
{
	s->rt->held--;
	s->rt = NULL;
}

static uint64_t
count(const struct ipsec_session *s, bool lost)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < s->crypto->conf.n_queue_pairs; i++)
		/* acquire: who left is done with session and SA */
		n += atomic_load_explicit(lost ? &s->in_flight[i].lost : &s->in_flight[i].inside,
			memory_order_acquire);
	return n;
}

/* Step 3: nobody has a packet of it. */
static void
after_last(struct rcu_head *head)
{
	struct ipsec_session *s = RTE_PTR_SUB(head, offsetof(struct ipsec_session, rcu));

	let_go(s);
	if (count(s, true) == 0) {
		close_session(s);
		return;
	}
	LIST_REMOVE(s, link);
	LIST_INSERT_HEAD(&s->ic->lookaside->lost, s, link);
}

/* Step 2 begins. */
static void
after_grace(struct rcu_head *head)
{
	struct ipsec_session *s = RTE_PTR_SUB(head, offsetof(struct ipsec_session, rcu));

	s->waits = true;
}

void
ipsec_lookaside_retire(struct ipsec_session *s)
{
	struct ipsec_cache *ic = s->ic;

	/* relaxed: the bump that follows is the release */
	atomic_store_explicit(&s->rt->session, NULL, memory_order_relaxed);
	if (s->in)
		ipsec_rt_by_set(s->rt, IPSEC_BY_LOOKASIDE, false);
	LIST_REMOVE(s, link);
	LIST_INSERT_HEAD(&ic->lookaside->dying, s, link);
	ic->lookaside->n_live--;
	ic->lookaside->n_dying++;
	ipsec_bump(ic);
	rcu_defer(ic->conf.rcu, &s->rcu, after_grace);
}

void
ipsec_lookaside_tick(struct ipsec_cache *ic)
{
	struct ipsec_session *s, *next;

	for (s = LIST_FIRST(&ic->lookaside->dying); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		if (!s->waits || count(s, false) != 0)
			continue;
		s->waits = false;
		rcu_defer(ic->conf.rcu, &s->rcu, after_last);
	}
	for (s = LIST_FIRST(&ic->lookaside->lost); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		if (count(s, true) == 0)
			close_session(s);
	}
	sad_free_held(ic);
}

/* The device was stopped: what it has is ours again. */
static void
reclaim(struct rte_mempool *pool, void *arg, void *op, unsigned int i)
{
	struct ipsec_slot *slot = ipsec_slot_of(op);

	RTE_SET_USED(pool);
	RTE_SET_USED(arg);
	RTE_SET_USED(i);
	if (slot->state != IPSEC_SLOT_FREE)
		rte_pktmbuf_free(slot->m);
	slot->state = IPSEC_SLOT_FREE;
}

void
ipsec_lookaside_destroy(struct ipsec_cache *ic)
{
	struct ipsec_lookaside *l = ic->lookaside;
	struct ipsec_session *s;
	unsigned int i;

	if (l == NULL)
		return;
	for (i = 0; i < l->n; i++)
		rte_mempool_obj_iter(l->devs[i]->op_pool, reclaim, NULL);
	while ((s = LIST_FIRST(&l->live)) != NULL)
		ipsec_lookaside_retire(s);
	rcu_barrier(ic->conf.rcu);
	while ((s = LIST_FIRST(&l->dying)) != NULL) {
		let_go(s);
		close_session(s);
	}
	while ((s = LIST_FIRST(&l->lost)) != NULL)
		close_session(s);
	for (i = 0; i < l->n; i++)
		dev_free(l->devs[i]);
	free(l);
	ic->lookaside = NULL;
}

void
ipsec_lookaside_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats)
{
	stats->sessions += ic->lookaside->n_live;
	stats->sessions_dying += ic->lookaside->n_dying;
	stats->sessions_stuck += ic->lookaside->n_stuck;
}
