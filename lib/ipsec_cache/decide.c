/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The slow way to a decision: what Linux does with a packet that it forwards, in that order. The
 * inbound or forward policy of how it came (__xfrm_policy_check()), then the outbound policy of
 * where it goes (xfrm_lookup()).
 */

#include <netinet/in.h>
#include <string.h>

#include <rte_jhash.h>

#include "ipsec_cache/rt.h"
#include "ipsec_cache/selector.h"
#include "ipsec_cache/session.h"
#include "ipsec_cache/spd.h"

static void
drop(struct ipsec_cache_decision *d, enum ipsec_cache_error error)
{
	d->action = IPSEC_CACHE_DROP;
	d->error = (uint8_t)error;
}

static bool
blocks_by_default(const struct ipsec_cache *ic, uint8_t dir)
{
	return atomic_load_explicit(&ic->default_action[dir], memory_order_relaxed) ==
		XFRM_USERPOLICY_BLOCK;
}

/* Linux's xfrm_state_ok(): is that the SA that a template means? Of the far end, where it came
 * from. */
static bool
came_by(const struct xfrm_user_tmpl *tmpl, const struct ipsec_cache_sa_spec *sa)
{
	const struct xfrm_usersa_info *i = &sa->info;

	return i->id.proto == tmpl->id.proto && (tmpl->id.spi == 0 || tmpl->id.spi == i->id.spi) &&
		(tmpl->reqid == 0 || tmpl->reqid == i->reqid) && i->mode == tmpl->mode &&
		i->family == tmpl->family &&
		(ipsec_addr_any(&tmpl->saddr, tmpl->family) ||
			ipsec_addr_equal(&tmpl->saddr, &i->saddr, tmpl->family));
}

/* The packet that was inside: one that its SA may carry? */
static bool
fits_sa(const struct ipsec_cache_sa_spec *sa, const struct ipsec_flow *flow)
{
	const struct xfrm_selector *sel = &sa->info.sel;

	if (sel->family != 0 && sel->family != flow->family)
		return false;
	return ipsec_selector_match(sel, flow, flow->in_ifindex);
}

/* May it come in that way? Else the decision is to drop it. */
static bool
check_in(const struct ipsec_cache *ic, uint8_t dir, const struct ipsec_flow *flow,
	const struct ipsec_cache_sa_spec *sa, struct ipsec_cache_decision *d)
{
	const struct ipsec_cache_policy *p;
	bool uncertain;

	if (sa != NULL && !fits_sa(sa, flow)) {
		drop(d, IPSEC_CACHE_ESP_SELECTOR);
		return false;
	}
	p = ipsec_spd_lookup(ic, dir, flow, flow->in_ifindex, &uncertain);
	if (uncertain) {
		drop(d, IPSEC_CACHE_POLICY_FRAGMENT);
		return false;
	}
	if (p == NULL) {
		if (!blocks_by_default(ic, dir) && sa == NULL)
			return true;
		drop(d, sa != NULL ? IPSEC_CACHE_POLICY_NONE : IPSEC_CACHE_POLICY_BLOCK);
		return false;
	}
	ipsec_spd_used(p);
	if (p->spec.info.action == XFRM_POLICY_BLOCK) {
		drop(d, IPSEC_CACHE_POLICY_BLOCK);
		return false;
	}
	if (p->spec.n_tmpl == 0      ? sa == NULL
			: sa != NULL ? came_by(&p->spec.tmpl[0], sa)
				     : p->spec.tmpl[0].optional != 0)
		return true;
	drop(d, p->spec.n_tmpl == 0 ? IPSEC_CACHE_POLICY_NONE : IPSEC_CACHE_POLICY_CLEAR);
	return false;
}

/* The session of the device that a packet leaves by, if that has one; or of one beside its way. */
static struct ipsec_session *
session_for(const struct ipsec_cache_rt *rt, const struct ipsec_cache_hop *outer)
{
	/* acquire: what a session was made with is seen with it */
	struct ipsec_session *s = atomic_load_explicit(&rt->session, memory_order_acquire);

	if (s == NULL || s->in)
		return NULL;
	if (ipsec_session_is_lookaside(s))
		return s;
	return s->ifindex == outer->ifindex && !outer->waits ? s : NULL;
}

/* Is it to be protected on its way out? d: as it then has to be. */
static void
check_out(struct ipsec_cache *ic, unsigned int worker, const struct ipsec_flow *flow,
	const struct ipsec_cache_hop *inner, struct ipsec_cache_decision *d)
{
	const struct ipsec_cache_policy *p;
	const struct ipsec_cache_sa_spec *sa;
	struct ipsec_cache_rt *rt;
	struct ipsec_cache_hop outer;
	bool uncertain;

	p = ipsec_spd_lookup(ic, XFRM_POLICY_OUT, flow, inner->ifindex, &uncertain);
	if (uncertain) {
		drop(d, IPSEC_CACHE_POLICY_FRAGMENT);
		return;
	}
	if (p == NULL) {
		if (blocks_by_default(ic, XFRM_POLICY_OUT))
			drop(d, IPSEC_CACHE_POLICY_BLOCK);
		return;
	}
	ipsec_spd_used(p);
	if (p->spec.info.action == XFRM_POLICY_BLOCK) {
		drop(d, IPSEC_CACHE_POLICY_BLOCK);
		return;
	}
	if (p->spec.n_tmpl == 0)
		return;
	/* Linux asks for the route before the policy: what goes nowhere needs no SA. */
	if (inner->kind == IPSEC_CACHE_HOP_NONE) {
		drop(d, IPSEC_CACHE_POLICY_NO_ROUTE);
		return;
	}
	rt = ipsec_sad_find(ic, &p->spec, flow, inner->ifindex, worker);
	if (rt == NULL) {
		ipsec_acquire(ic, worker, p, flow);
		drop(d, IPSEC_CACHE_POLICY_NO_SA);
		return;
	}
	sa = &ipsec_rt_sa(rt)->spec;
	memset(&outer, 0, sizeof(outer));
	/* One path an SA: its packets stay in order. */
	ic->conf.resolve(ic->conf.arg, (uint8_t)sa->info.family, &sa->info.id.daddr,
		rte_jhash_1word(sa->info.id.spi, 0), &outer);
	if (outer.kind != IPSEC_CACHE_HOP_FORWARD) {
		drop(d, IPSEC_CACHE_POLICY_NO_ROUTE);
		return;
	}
	d->action = IPSEC_CACHE_PROTECT;
	d->rt = rt;
	d->session = session_for(rt, &outer);
	d->hop = outer.hop;
	d->mtu = ipsec_rt_mtu(rt, outer.mtu);
}

static void
decide(struct ipsec_cache *ic, unsigned int worker, const struct ipsec_flow *flow,
	const struct ipsec_cache_rt *by, struct ipsec_cache_decision *d)
{
	const struct ipsec_cache_sa_spec *sa = by != NULL ? &ipsec_rt_sa(by)->spec : NULL;
	struct ipsec_cache_hop hop;
	bool local;

	memset(d, 0, sizeof(*d));
	memset(&hop, 0, sizeof(hop));
	d->action = IPSEC_CACHE_ROUTE;
	ic->conf.resolve(ic->conf.arg, flow->family, flow->daddr,
		rte_jhash(flow->saddr, sizeof(flow->saddr), flow->proto), &hop);
	local = hop.kind == IPSEC_CACHE_HOP_LOCAL;
	/*
	 * What has no route is looked at as if it had one: a route may come before the packet is
	 * sent, and what a policy wants protected would leave in clear.
	 */
	if ((by != NULL || flow->in_ifindex != 0) &&
		!check_in(ic, local ? XFRM_POLICY_IN : XFRM_POLICY_FWD, flow, sa, d))
		return;
	if (!local)
		check_out(ic, worker, flow, &hop, d);
}

void
ipsec_decide(struct ipsec_cache *ic, unsigned int worker, const struct ipsec_flow *flow,
	const struct ipsec_cache_rt *by, struct ipsec_cache_decision *d)
{
	uint64_t epoch;

	/*
	 * A policy and its SA that were changed one after the other, the policy looked at before
	 * and the SA behind, would drop a packet that has a way before and after: once more.
	 * Acquire as for any look at the epoch; twice at most, for changes may never end.
	 */
	for (unsigned int i = 0; i < 2; i++) {
		epoch = atomic_load_explicit(&ic->epoch, memory_order_acquire);
		decide(ic, worker, flow, by, d);
		if (d->action != IPSEC_CACHE_DROP ||
			epoch == atomic_load_explicit(&ic->epoch, memory_order_acquire))
			break;
	}
}
