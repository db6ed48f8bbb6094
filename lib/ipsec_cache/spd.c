/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The policies: by selector and by index for those who change them, in order for dumps. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_jhash.h>

#include "ipsec_cache/selector.h"
#include "ipsec_cache/spd.h"

#define TUPLES 1024 /* buckets */
#define PERIOD_MS 1000

int
spd_policy_compare(const struct ipsec_cache_policy *a, const struct ipsec_cache_policy *b)
{
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}
RB_GENERATE(spd_tree, ipsec_cache_policy, order, spd_policy_compare)

static uint32_t
selector_hash(const struct ipsec_cache_policy_spec *spec)
{
	return rte_jhash_3words(rte_jhash(&spec->info.sel, sizeof(spec->info.sel), spec->info.dir),
		spec->if_id, spec->mark.v, spec->mark.m);
}

static uint32_t
index_hash(uint32_t index)
{
	return rte_jhash_1word(index, 0);
}

int
ipsec_spd_create(struct ipsec_cache *ic)
{
	if ((ic->spd = calloc(1, sizeof(*ic->spd))) == NULL)
		return -ENOMEM;
	RB_INIT(&ic->spd->order);
	return 0;
}

static void
tables_destroy(struct ipsec_spd *spd)
{
	ipsec_links_destroy(&spd->nodes);
	ipsec_links_destroy(&spd->by_selector);
	ipsec_links_destroy(&spd->by_index);
	ipsec_links_destroy(&spd->tuples);
}

/* With the first policy: workers look into `nodes` only where a list leads them. */
static int
tables_create(struct ipsec_cache *ic)
{
	uint32_t n = ic->conf.max_policies;
	struct ipsec_spd *spd = ic->spd;

	if (spd->tuples.buckets != NULL)
		return 0;
	if (ipsec_workers_start(ic) != 0)
		return -ENOMEM;
	if (ipsec_links_create(&spd->nodes, n, ic->conf.socket) == 0 &&
		ipsec_links_create(&spd->by_selector, n, ic->conf.socket) == 0 &&
		ipsec_links_create(&spd->by_index, n, ic->conf.socket) == 0 &&
		ipsec_links_create(&spd->tuples, TUPLES, ic->conf.socket) == 0)
		return 0;
	tables_destroy(spd);
	return -ENOMEM;
}

static void
policy_free(struct rcu_head *head)
{
	free(RTE_PTR_SUB(head, offsetof(struct ipsec_cache_policy, rcu)));
}

void
ipsec_spd_destroy(struct ipsec_cache *ic)
{
	struct ipsec_cache_policy *p, *next;

	if (ic->spd == NULL)
		return;
	RB_FOREACH_SAFE (p, spd_tree, &ic->spd->order, next)
		spd_remove(ic, p);
	rcu_barrier(ic->conf.rcu);
	/* the last policy of a direction leaves an empty list */
	for (unsigned int dir = 0; dir < SPD_DIRS; dir++)
		for (unsigned int af = 0; af < RTE_DIM(ic->spd->lists[dir]); af++)
			free(atomic_load_explicit(&ic->spd->lists[dir][af], memory_order_relaxed));
	tables_destroy(ic->spd);
	free(ic->spd);
	ic->spd = NULL;
}

unsigned int
ipsec_spd_count(const struct ipsec_cache *ic)
{
	return ic->spd->n;
}

/* Finding. */

static struct ipsec_cache_policy *
index_find(const struct ipsec_spd *spd, uint32_t index)
{
	uint32_t hash = index_hash(index);
	struct ipsec_link *l;

	IPSEC_LINKS_FOREACH(l, &spd->by_index, hash)
	{
		struct ipsec_cache_policy *p =
			RTE_PTR_SUB(l, offsetof(struct ipsec_cache_policy, by_index));

		if (p->spec.info.index == index)
			return p;
	}
	return NULL;
}

static bool
same_mark(const struct ipsec_cache_policy_spec *a, const struct ipsec_cache_policy_spec *b)
{
	return a->if_id == b->if_id && a->mark.v == b->mark.v && a->mark.m == b->mark.m;
}

/* `which` with a normal selector. */
static struct ipsec_cache_policy *
selector_find(const struct ipsec_spd *spd, const struct ipsec_cache_policy_spec *which)
{
	uint32_t hash = selector_hash(which);
	struct ipsec_link *l;

	IPSEC_LINKS_FOREACH(l, &spd->by_selector, hash)
	{
		struct ipsec_cache_policy *p =
			RTE_PTR_SUB(l, offsetof(struct ipsec_cache_policy, by_selector));

		if (p->spec.info.dir == which->info.dir && same_mark(&p->spec, which) &&
			memcmp(&p->spec.info.sel, &which->info.sel, sizeof(which->info.sel)) == 0)
			return p;
	}
	return NULL;
}

struct ipsec_cache_policy *
ipsec_cache_policy_find(struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *which)
{
	struct ipsec_cache_policy_spec spec;
	struct ipsec_cache_policy *p;

	if (ic->spd->n == 0)
		return NULL;
	if (which->info.index != 0) {
		p = index_find(ic->spd, which->info.index);
		return p != NULL && p->spec.info.dir == which->info.dir &&
				same_mark(&p->spec, which)
			? p
			: NULL;
	}
	spec = *which;
	ipsec_selector_normalize(&spec.info.sel);
	return selector_find(ic->spd, &spec);
}

/* Changing. */

static bool
is_mortal(const struct ipsec_cache_policy *p)
{
	const struct xfrm_lifetime_cfg *lft = &p->spec.info.lft;

	return (lft->soft_add_expires_seconds | lft->hard_add_expires_seconds |
		       lft->soft_use_expires_seconds | lft->hard_use_expires_seconds) != 0;
}

static uint32_t
policy_uses(const struct ipsec_cache_policy *p)
{
	return ipsec_selector_uses(&p->spec.info.sel) | (p->spec.mark.m != 0 ? IPSEC_USES_MARK : 0);
}

/* A new index: its last three bits are the direction, as everywhere. */
static uint32_t
index_new(struct ipsec_spd *spd, uint8_t dir)
{
	uint32_t index;

	do {
		index = (spd->next_index += 8) | dir;
	} while (index < 8 || index_find(spd, index) != NULL);
	return index;
}

static int
policy_link(struct ipsec_cache *ic, struct ipsec_cache_policy *p)
{
	struct ipsec_spd *spd = ic->spd;
	uint32_t uses = policy_uses(p);
	int err;

	ipsec_uses_add(ic, uses);
	if ((err = spd_place(ic, p)) != 0) {
		ipsec_uses_del(ic, uses);
		return err;
	}
	ipsec_links_add(&spd->by_selector, &p->by_selector, selector_hash(&p->spec));
	ipsec_links_add(&spd->by_index, &p->by_index, index_hash(p->spec.info.index));
	RB_INSERT(spd_tree, &spd->order, p);
	spd->n++;
	spd->n_dir[p->spec.info.dir]++;
	spd->n_mortal += is_mortal(p);
	return 0;
}

void
spd_remove(struct ipsec_cache *ic, struct ipsec_cache_policy *p)
{
	struct ipsec_spd *spd = ic->spd;

	spd_unplace(ic, p);
	ipsec_links_remove(&spd->by_selector, &p->by_selector);
	ipsec_links_remove(&spd->by_index, &p->by_index);
	RB_REMOVE(spd_tree, &spd->order, p);
	spd->n--;
	spd->n_dir[p->spec.info.dir]--;
	spd->n_mortal -= is_mortal(p);
	ipsec_uses_del(ic, policy_uses(p));
	ipsec_changed(ic);
	rcu_defer(ic->conf.rcu, &p->rcu, policy_free);
}

static struct ipsec_cache_policy *
policy_create(struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *spec)
{
	struct ipsec_cache_policy *p = calloc(1, sizeof(*p));
	struct xfrm_lifetime_cur *cur;

	if (p == NULL)
		return NULL;
	p->spec = *spec;
	ipsec_selector_normalize(&p->spec.info.sel);
	cur = &p->spec.info.curlft;
	memset(cur, 0, sizeof(*cur));
	cur->add_time = (uint64_t)time(NULL);
	p->serial = ++ic->next_serial;
	p->added_ms = (int64_t)ic->now_ms;
	return p;
}

int
ipsec_cache_policy_add(struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *spec,
	bool update, const char **why)
{
	struct ipsec_cache_policy *p, *old;
	uint32_t wish = spec->info.index;
	int err;

	if ((err = spd_check(spec, why)) != 0)
		return err;
	if (tables_create(ic) != 0 || (p = policy_create(ic, spec)) == NULL)
		return ipsec_refuse(-ENOMEM, why, "There is no memory for another policy");
	old = selector_find(ic->spd, &p->spec);
	if (old != NULL && !update)
		err = ipsec_refuse(-EEXIST, why,
			"There is a policy with this selector, direction, mark and if_id already");
	else if (old == NULL && ic->spd->n >= ic->conf.max_policies)
		err = ipsec_refuse(-ENOSPC, why, "There is no room for another policy");
	if (err != 0) {
		free(p);
		return err;
	}
	if (old != NULL)
		p->spec.info.index = old->spec.info.index;
	else if (wish == 0 || index_find(ic->spd, wish) != NULL)
		p->spec.info.index = index_new(ic->spd, spec->info.dir);
	if (policy_link(ic, p) != 0) {
		free(p);
		return ipsec_refuse(-ENOMEM, why, "There is no memory for another policy");
	}
	/* The new one is found before the old one goes: no packet misses both. */
	if (old != NULL)
		spd_remove(ic, old);
	else
		ipsec_changed(ic);
	ic->generation++;
	ipsec_notify(
		ic, update ? IPSEC_CACHE_EVENT_POLICY_UPDATE : IPSEC_CACHE_EVENT_POLICY_ADD, p);
	return 0;
}

int
ipsec_cache_policy_del(struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *which)
{
	struct ipsec_cache_policy *p = ipsec_cache_policy_find(ic, which);

	if (p == NULL)
		return -ENOENT;
	spd_remove(ic, p);
	ic->generation++;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_POLICY_DEL, p); /* freed later */
	return 0;
}

int
ipsec_cache_policy_flush(struct ipsec_cache *ic)
{
	struct ipsec_cache_policy *p, *next;

	if (ic->spd->n == 0)
		return -ESRCH;
	spd_hide(ic);
	RB_FOREACH_SAFE (p, spd_tree, &ic->spd->order, next)
		spd_remove(ic, p);
	ic->spd->hidden = false;
	ic->generation++;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_POLICY_FLUSH, NULL);
	return 0;
}

static struct ipsec_cache_policy *
policy_after(struct ipsec_spd *spd, uint64_t after)
{
	struct ipsec_cache_policy key = { .serial = after + 1 };

	return RB_NFIND(spd_tree, &spd->order, &key);
}

struct ipsec_cache_policy *
ipsec_cache_policy_next(struct ipsec_cache *ic, uint64_t *after)
{
	struct ipsec_cache_policy *p = policy_after(ic->spd, *after);

	if (p != NULL)
		*after = p->serial;
	return p;
}

void
ipsec_cache_policy_describe(
	const struct ipsec_cache_policy *policy, struct ipsec_cache_policy_spec *spec)
{
	*spec = policy->spec;
	/* Linux counts neither bytes nor packets of a policy. */
	spec->info.curlft.use_time = atomic_load_explicit(&policy->used, memory_order_relaxed);
}

unsigned int
ipsec_cache_policy_count(const struct ipsec_cache *ic, uint8_t dir)
{
	return dir < SPD_DIRS ? ic->spd->n_dir[dir] : 0;
}

unsigned int
ipsec_cache_policy_buckets(const struct ipsec_cache *ic)
{
	return ic->spd->nodes.buckets != NULL ? ic->spd->nodes.mask + 1 : 0;
}

/* Lifetimes: a policy has them by time only, as in Linux. */

static void
policy_expire(struct ipsec_cache *ic, struct ipsec_cache_policy *p, bool hard)
{
	if (!hard) {
		p->soft_told = true;
		ipsec_notify(ic, IPSEC_CACHE_EVENT_POLICY_EXPIRE_SOFT, p);
		return;
	}
	spd_remove(ic, p);
	ic->generation++;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_POLICY_EXPIRE_HARD, p);
}

int
ipsec_cache_policy_expire(
	struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *which, bool hard)
{
	struct ipsec_cache_policy *p = ipsec_cache_policy_find(ic, which);

	if (p == NULL)
		return -ENOENT;
	policy_expire(ic, p, hard);
	return 0;
}

static void
look_at(struct ipsec_cache *ic, struct ipsec_cache_policy *p)
{
	const struct xfrm_lifetime_cfg *lft = &p->spec.info.lft;

	if (!p->was_used && atomic_load_explicit(&p->used, memory_order_relaxed) != 0) {
		p->was_used = true;
		p->used_ms = (int64_t)ic->now_ms;
	}
	if (ipsec_is_over(ic, p->added_ms, lft->hard_add_expires_seconds) ||
		(p->was_used && ipsec_is_over(ic, p->used_ms, lft->hard_use_expires_seconds)))
		policy_expire(ic, p, true);
	else if (!p->soft_told &&
		(ipsec_is_over(ic, p->added_ms, lft->soft_add_expires_seconds) ||
			(p->was_used &&
				ipsec_is_over(ic, p->used_ms, lft->soft_use_expires_seconds))))
		policy_expire(ic, p, false);
}

void
ipsec_spd_tick(struct ipsec_cache *ic)
{
	struct ipsec_spd *spd = ic->spd;
	uint64_t passed = ic->now_ms - spd->checked_ms, n, share;
	struct ipsec_cache_policy *p;

	spd->checked_ms = ic->now_ms;
	if (spd->n_mortal == 0 || passed == 0)
		return;
	n = RTE_MAX(spd->n, spd->round); /* many may end in one round */
	share = passed >= PERIOD_MS ? n : (n * passed + PERIOD_MS - 1) / PERIOD_MS;
	while (share-- > 0) {
		if ((p = policy_after(spd, spd->cursor)) == NULL) {
			spd->round = spd->n;
			p = policy_after(spd, 0);
		}
		if (p == NULL)
			break;
		spd->cursor = p->serial;
		look_at(ic, p);
	}
}
