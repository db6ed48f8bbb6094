/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Traffic that wants an SA which is not there: workers say so by a ring each, the control thread
 * tells who listens and makes a larval SA, for which nothing is told again (Linux: the state that
 * xfrm_state_find() leaves behind).
 *
 * A decision that there is no SA is cached until something changes. So that traffic asks again, the
 * epoch is bumped when a larval SA ends, which its removal does, and once a second while there is
 * traffic that nobody listened for.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ipsec_cache/sad.h"
#include "ipsec_cache/selector.h"
#include "ipsec_cache/spd.h"

#define RING 64 /* requests; a full one loses more, which traffic makes again */
#define AGAIN_MS 1000

struct request {
	uint64_t serial; /* of the policy */
	uint32_t index;
	struct ipsec_flow flow;
};

/* One worker writes, the control thread reads. */
struct ring {
	_Atomic uint32_t head __rte_cache_aligned; /* the worker's */
	_Atomic uint32_t tail __rte_cache_aligned; /* the control thread's */
	struct request at[RING];
};

struct ipsec_acquires {
	uint32_t seq;
	bool again; /* nobody listened */
	uint64_t again_ms;
	struct ring *rings;
};

int
ipsec_acquire_create(struct ipsec_cache *ic)
{
	struct ipsec_acquires *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	ic->acquires = a;
	a->rings = rte_zmalloc_socket("ipsec_acquires", ic->conf.n_workers * sizeof(*a->rings),
		RTE_CACHE_LINE_SIZE, ic->conf.socket);
	return a->rings != NULL ? 0 : -ENOMEM;
}

void
ipsec_acquire_destroy(struct ipsec_cache *ic)
{
	if (ic->acquires == NULL)
		return;
	rte_free(ic->acquires->rings);
	free(ic->acquires);
	ic->acquires = NULL;
}

void
ipsec_acquire(struct ipsec_cache *ic, unsigned int worker, const struct ipsec_cache_policy *policy,
	const struct ipsec_flow *flow)
{
	struct ring *r = &ic->acquires->rings[worker];
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	/* Acquire: the control thread has read what stood in the places that it gave back. */
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	struct request *last = &r->at[(head - 1) % RING];

	if (head - tail == RING || (head != tail && last->serial == policy->serial))
		return;
	r->at[head % RING] = (struct request){
		.serial = policy->serial,
		.index = policy->spec.info.index,
		.flow = *flow,
	};
	/* Release: the request before its number. */
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* A selector of that flow alone. */
static void
flow_selector(const struct ipsec_flow *flow, struct xfrm_selector *sel)
{
	memset(sel, 0, sizeof(*sel));
	memcpy(&sel->saddr, flow->saddr, sizeof(sel->saddr));
	memcpy(&sel->daddr, flow->daddr, sizeof(sel->daddr));
	sel->family = flow->family;
	sel->prefixlen_s = sel->prefixlen_d = (uint8_t)(ipsec_addr_len(flow->family) * 8);
	sel->proto = flow->proto;
	if ((flow->sport | flow->dport) != 0) {
		sel->sport = flow->sport;
		sel->dport = flow->dport;
		sel->sport_mask = sel->dport_mask = UINT16_MAX;
	}
}

static void
larval_spec(const struct ipsec_cache_policy *policy, const struct ipsec_flow *flow, uint32_t seq,
	struct ipsec_cache_sa_spec *spec)
{
	const struct xfrm_user_tmpl *tmpl = &policy->spec.tmpl[0];
	struct xfrm_usersa_info *i = &spec->info;

	memset(spec, 0, sizeof(*spec));
	flow_selector(flow, &i->sel);
	i->id.daddr = tmpl->id.daddr;
	i->id.proto = tmpl->id.proto;
	i->saddr = tmpl->saddr;
	i->family = tmpl->family;
	i->mode = tmpl->mode;
	i->reqid = tmpl->reqid;
	i->seq = seq;
	spec->mark = policy->spec.mark;
	spec->if_id = policy->spec.if_id;
}

/* The policy, if it is still there. */
static const struct ipsec_cache_policy *
request_policy(struct ipsec_cache *ic, const struct request *rq)
{
	uint64_t after = rq->serial - 1;
	const struct ipsec_cache_policy *p = ipsec_cache_policy_next(ic, &after);

	return p != NULL && p->serial == rq->serial ? p : NULL;
}

static void
serve(struct ipsec_cache *ic, unsigned int worker, const struct request *rq)
{
	const struct ipsec_cache_policy *policy = request_policy(ic, rq);
	struct ipsec_acquires *a = ic->acquires;
	struct ipsec_cache_acquire acquire;
	struct ipsec_cache_sa_spec spec;
	const char *why;
	bool told = false;
	int err;

	if (policy == NULL || ipsec_sad_find(ic, &policy->spec, &rq->flow, 0, worker) != NULL)
		return;
	larval_spec(policy, &rq->flow, a->seq + 1, &spec);
	if (sad_find_larval(ic, &spec) != NULL)
		return;
	if (++a->seq == 0)
		a->seq = spec.info.seq = 1;
	acquire = (struct ipsec_cache_acquire){
		.policy = policy,
		.tmpl = &policy->spec.tmpl[0],
		.sel = spec.info.sel,
		.saddr = spec.info.saddr,
		.daddr = spec.info.id.daddr,
		.seq = spec.info.seq,
		.told = &told,
	};
	ipsec_notify(ic, IPSEC_CACHE_EVENT_ACQUIRE, &acquire);
	if (!told)
		a->again = true;
	else if (sad_add_larval(ic, &spec, &err, &why) != NULL)
		ic->generation++;
}

void
ipsec_acquire_tick(struct ipsec_cache *ic)
{
	struct ipsec_acquires *a = ic->acquires;

	for (unsigned int w = 0; w < ic->conf.n_workers; w++) {
		struct ring *r = &a->rings[w];
		uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
		/* Acquire: the requests up to that number are written. */
		uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);

		for (; tail != head; tail++)
			serve(ic, w, &r->at[tail % RING]);
		/* Release: they are read. */
		atomic_store_explicit(&r->tail, tail, memory_order_release);
	}
	if (a->again && ic->now_ms - a->again_ms >= AGAIN_MS) {
		a->again = false;
		a->again_ms = ic->now_ms;
		ipsec_bump(ic);
	}
}
