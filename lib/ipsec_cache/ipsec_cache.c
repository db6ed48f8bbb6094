/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* One instance: made, told what changed around it, destroyed. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_errno.h>

#include "ipsec_cache/device.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/offload.h"

#define SAS_MAX 131072
#define POLICIES_MAX 65536

static int
parts_create(struct ipsec_cache *ic)
{
	int err;

	if ((err = ipsec_workers_create(ic)) != 0 || (err = ipsec_devices_create(ic)) != 0 ||
		(err = ipsec_lookaside_create(ic)) != 0 || (err = ipsec_sad_create(ic)) != 0 ||
		(err = ipsec_spd_create(ic)) != 0)
		return err;
	return ipsec_acquire_create(ic);
}

struct ipsec_cache *
ipsec_cache_create(const struct ipsec_cache_conf *conf)
{
	struct ipsec_cache *ic;
	int err;

	if (conf->rcu == NULL || conf->resolve == NULL || conf->n_workers == 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	/* Not of rte_malloc(): what leak checkers cannot look into would hide what hangs on it. */
	if ((ic = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*ic))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	memset(ic, 0, sizeof(*ic));
	ic->conf = *conf;
	if (ic->conf.max_sas == 0)
		ic->conf.max_sas = SAS_MAX;
	if (ic->conf.max_policies == 0)
		ic->conf.max_policies = POLICIES_MAX;
	for (unsigned int i = 0; i < RTE_DIM(ic->default_action); i++)
		atomic_init(&ic->default_action[i], XFRM_USERPOLICY_ACCEPT);
	atomic_init(&ic->seconds, (uint32_t)time(NULL));
	atomic_init(&ic->epoch, 1); /* 0 is no epoch: an empty slot's */
	if ((err = parts_create(ic)) != 0) {
		ipsec_cache_destroy(ic);
		rte_errno = -err;
		return NULL;
	}
	return ic;
}

void
ipsec_cache_destroy(struct ipsec_cache *ic)
{
	if (ic == NULL)
		return;
	/* What was removed before and is not freed yet needs the vault. */
	rcu_barrier(ic->conf.rcu);
	ipsec_acquire_destroy(ic);
	ipsec_spd_destroy(ic);
	ipsec_devices_destroy(ic);
	ipsec_lookaside_destroy(ic);
	ipsec_sad_destroy(ic);
	ipsec_workers_destroy(ic);
	free(ic);
}

void
ipsec_uses_add(struct ipsec_cache *ic, uint32_t uses)
{
	for (unsigned int i = 0; i < IPSEC_USES_BITS; i++)
		if ((uses & 1u << i) != 0 && ic->users[i]++ == 0)
			/* Relaxed: whoever reads the epoch that is bumped after this sees it. */
			atomic_fetch_or_explicit(&ic->uses, 1u << i, memory_order_relaxed);
}

void
ipsec_uses_del(struct ipsec_cache *ic, uint32_t uses)
{
	for (unsigned int i = 0; i < IPSEC_USES_BITS; i++)
		if ((uses & 1u << i) != 0 && --ic->users[i] == 0)
			atomic_fetch_and_explicit(&ic->uses, ~(1u << i), memory_order_relaxed);
}

void
ipsec_changed(struct ipsec_cache *ic)
{
	bool active = ipsec_cache_sa_count(ic) > 0 || ipsec_spd_count(ic) > 0;

	for (unsigned int i = 0; i < RTE_DIM(ic->default_action); i++)
		active |= atomic_load_explicit(&ic->default_action[i], memory_order_relaxed) ==
			XFRM_USERPOLICY_BLOCK;
	/* Release: who is told to ask finds what there is to be asked about. */
	atomic_store_explicit(&ic->active, active, memory_order_release);
	ipsec_bump(ic);
}

bool
ipsec_cache_active(const struct ipsec_cache *ic)
{
	/* Acquire: see ipsec_changed(). */
	return atomic_load_explicit(&ic->active, memory_order_acquire);
}

void
ipsec_cache_invalidate(struct ipsec_cache *ic)
{
	ic->routes_changed = true;
	ipsec_bump(ic);
}

void
ipsec_cache_rehome(struct ipsec_cache *ic)
{
	/* Relaxed: no worker runs. */
	atomic_fetch_add_explicit(&ic->starts, 1, memory_order_relaxed);
	for (unsigned int i = 0; i < ic->conf.n_workers; i++)
		ipsec_lookaside_abandon(ic->workers[i]);
	ipsec_bump(ic);
}

void
ipsec_cache_tick(struct ipsec_cache *ic, uint64_t now_ms)
{
	/* Our own clock begins with the first tick: what is there already does not age by that. */
	if (ic->ticked_ms != 0 && now_ms > ic->ticked_ms)
		ic->now_ms += now_ms - ic->ticked_ms;
	ic->ticked_ms = now_ms;
	atomic_store_explicit(&ic->seconds, (uint32_t)time(NULL), memory_order_relaxed);
	ipsec_acquire_tick(ic);
	ipsec_offload_tick(ic);
	ipsec_lookaside_tick(ic);
	ipsec_sad_tick(ic);
	ipsec_spd_tick(ic);
}

uint64_t
ipsec_cache_generation(const struct ipsec_cache *ic)
{
	return ic->generation;
}

void
ipsec_cache_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats)
{
	ipsec_workers_stats(ic, stats);
	ipsec_devices_stats(ic, stats);
	ipsec_lookaside_stats(ic, stats);
	stats->fallbacks = ic->fallbacks;
}

void
ipsec_cache_listen(struct ipsec_cache *ic,
	void (*fn)(void *arg, enum ipsec_cache_event event, const void *object), void *arg)
{
	ic->listener = fn;
	ic->listener_arg = arg;
}

void
ipsec_cache_default_get(const struct ipsec_cache *ic, struct xfrm_userpolicy_default *def)
{
	def->in = atomic_load_explicit(&ic->default_action[XFRM_POLICY_IN], memory_order_relaxed);
	def->fwd = atomic_load_explicit(&ic->default_action[XFRM_POLICY_FWD], memory_order_relaxed);
	def->out = atomic_load_explicit(&ic->default_action[XFRM_POLICY_OUT], memory_order_relaxed);
}

/* Linux passes over what is neither. */
static void
set_default(struct ipsec_cache *ic, uint8_t dir, uint8_t action)
{
	if (action == XFRM_USERPOLICY_ACCEPT || action == XFRM_USERPOLICY_BLOCK)
		atomic_store_explicit(&ic->default_action[dir], action, memory_order_relaxed);
}

void
ipsec_cache_default_set(struct ipsec_cache *ic, const struct xfrm_userpolicy_default *def)
{
	set_default(ic, XFRM_POLICY_IN, def->in);
	set_default(ic, XFRM_POLICY_FWD, def->fwd);
	set_default(ic, XFRM_POLICY_OUT, def->out);
	ipsec_changed(ic);
}
