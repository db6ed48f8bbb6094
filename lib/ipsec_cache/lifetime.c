/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What becomes of SAs by themselves: soft and hard lifetimes, notes of their replay numbers, peers
 * that moved behind their NAT.
 *
 * Each SA is looked at about once a second, a part of them in each tick, so that a tick takes no
 * longer than the number of SAs divided by the ticks in a second. What must not wait for that, the
 * last packet of a hard limit, workers see by themselves.
 */

#include <string.h>

#include "ipsec_cache/offload.h"
#include "ipsec_cache/sad.h"
#include "ipsec_cache/selector.h"

#define PERIOD_MS 1000

void
sad_expire(struct ipsec_cache *ic, struct sad_entry *e, bool hard)
{
	if (!hard) {
		e->soft_told = true;
		if (!atomic_exchange_explicit(&e->sa.dying, true, memory_order_relaxed))
			ipsec_bump(ic); /* another may be preferred now */
		ipsec_notify(ic, IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT, &e->sa);
		return;
	}
	if (e->sa.rt != NULL)
		ipsec_rt_expire(e->sa.rt);
	sad_remove(ic, e);
	ic->generation++;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_SA_EXPIRE_HARD, &e->sa);
}

static bool
hard_over(
	const struct ipsec_cache *ic, const struct sad_entry *e, const struct ipsec_rt_usage *usage)
{
	const struct xfrm_lifetime_cfg *lft = &e->sa.spec.info.lft;

	return usage->exhausted || ipsec_is_over(ic, e->added_ms, lft->hard_add_expires_seconds) ||
		(e->used && ipsec_is_over(ic, e->used_ms, lft->hard_use_expires_seconds));
}

static bool
soft_over(
	const struct ipsec_cache *ic, const struct sad_entry *e, const struct ipsec_rt_usage *usage)
{
	const struct xfrm_lifetime_cfg *lft = &e->sa.spec.info.lft;
	const struct xfrm_lifetime_cur *behind = &e->sa.spec.info.curlft;

	return usage->packets + behind->packets >= lft->soft_packet_limit ||
		usage->bytes + behind->bytes >= lft->soft_byte_limit ||
		ipsec_is_over(ic, e->added_ms, lft->soft_add_expires_seconds) ||
		(e->used && ipsec_is_over(ic, e->used_ms, lft->soft_use_expires_seconds));
}

/* Linux's xfrm_replay_notify(): the numbers moved far enough, or moved and it is long ago. */
static void
tell_numbers(struct ipsec_cache *ic, struct sad_entry *e, const struct ipsec_rt_usage *usage)
{
	uint64_t moved = RTE_MAX(usage->oseq - e->ae_oseq, usage->seq - e->ae_seq);
	uint64_t age = ic->now_ms - e->ae_ms;

	if (moved == 0)
		return;
	if ((e->sa.spec.replay_maxdiff == 0 || moved < e->sa.spec.replay_maxdiff) &&
		(e->sa.spec.replay_maxage == 0 || age < e->sa.spec.replay_maxage * UINT64_C(100)))
		return;
	e->ae_oseq = usage->oseq;
	e->ae_seq = usage->seq;
	e->ae_ms = ic->now_ms;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_AE, &e->sa);
}

static void
tell_mapping(struct ipsec_cache *ic, struct sad_entry *e, const struct ipsec_rt_usage *usage)
{
	struct ipsec_cache_mapping mapping = {
		.sa = &e->sa, .saddr = usage->saddr, .sport = usage->sport
	};

	if (!usage->moved ||
		(e->moved_told && e->moved_sport == usage->sport &&
			ipsec_addr_equal(&e->moved_saddr, &usage->saddr, e->sa.spec.info.family)))
		return;
	e->moved_told = true;
	e->moved_saddr = usage->saddr;
	e->moved_sport = usage->sport;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_MAPPING, &mapping);
}

static void
look_at(struct ipsec_cache *ic, struct sad_entry *e)
{
	struct ipsec_rt_usage usage;

	memset(&usage, 0, sizeof(usage));
	if (e->sa.rt != NULL)
		ipsec_rt_usage(e->sa.rt, &usage);
	if (!e->used && usage.first_used != 0) {
		/* within a second: it was not used when it was looked at last */
		e->used = true;
		e->used_ms = (int64_t)ic->now_ms;
	}
	if (hard_over(ic, e, &usage)) {
		sad_expire(ic, e, true);
		return;
	}
	if (!e->soft_told && soft_over(ic, e, &usage))
		sad_expire(ic, e, false);
	if (e->sa.rt != NULL) {
		tell_numbers(ic, e, &usage);
		tell_mapping(ic, e, &usage);
		ipsec_offload_look(ic, e);
	}
}

void
ipsec_sad_tick(struct ipsec_cache *ic)
{
	struct ipsec_sad *sad = ic->sad;
	uint64_t passed = ic->now_ms - sad->checked_ms, n, share;
	struct sad_entry *e;

	if (passed == 0)
		return;
	sad->checked_ms = ic->now_ms;
	/* Of the number at the round's begin: many may end in one. */
	n = RTE_MAX(sad->n, sad->round);
	share = passed >= PERIOD_MS ? n : (n * passed + PERIOD_MS - 1) / PERIOD_MS;
	while (share-- > 0) {
		if ((e = sad_after(sad, sad->cursor)) == NULL) {
			sad->round = sad->n;
			e = sad_after(sad, 0);
		}
		if (e == NULL)
			break;
		sad->cursor = e->sa.serial;
		look_at(ic, e);
	}
}
