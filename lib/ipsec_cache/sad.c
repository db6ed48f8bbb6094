/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The SAs: found by workers through two hash tables, kept in order for dumps. What is removed stays
 * whole for those who found it before, until a grace period is over.
 */

#include <errno.h>
#include <linux/ipsec.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <rte_jhash.h>
#include <rte_random.h>

#include "ipsec_cache/offload.h"
#include "ipsec_cache/rt.h"
#include "ipsec_cache/sad.h"
#include "ipsec_cache/selector.h"
#include "ipsec_cache/vault.h"

int
sad_compare(const struct sad_entry *a, const struct sad_entry *b)
{
	return a->sa.serial < b->sa.serial ? -1 : a->sa.serial > b->sa.serial;
}
RB_GENERATE(sad_tree, sad_entry, order, sad_compare)

/* An address as hashes and comparisons want it: of either family 16 bytes. */
static void
addr_words(const void *addr, uint16_t family, uint32_t words[4])
{
	memset(words, 0, 16);
	memcpy(words, addr, ipsec_addr_len(family));
}

static uint32_t
id_hash(__be32 spi, uint16_t family, const void *daddr)
{
	uint32_t words[6];

	addr_words(daddr, family, words);
	words[4] = spi;
	words[5] = family;
	return rte_jhash_32b(words, RTE_DIM(words), 0);
}

static uint32_t
peer_hash(const void *daddr, uint16_t family, uint32_t reqid, uint8_t mode, uint8_t proto)
{
	uint32_t words[6];

	addr_words(daddr, family, words);
	words[4] = reqid;
	words[5] = (uint32_t)family << 16 | (uint32_t)mode << 8 | proto;
	return rte_jhash_32b(words, RTE_DIM(words), 0);
}

static uint32_t
spec_peer_hash(const struct xfrm_usersa_info *i)
{
	return peer_hash(&i->id.daddr, i->family, i->reqid, i->mode, i->id.proto);
}

int
ipsec_sad_create(struct ipsec_cache *ic)
{
	if ((ic->sad = calloc(1, sizeof(*ic->sad))) == NULL)
		return -ENOMEM;
	RB_INIT(&ic->sad->order);
	return 0;
}

/* What packets look at is made with the first SA, before any worker can look: see `n`. */
static int
tables_create(struct ipsec_cache *ic)
{
	struct ipsec_sad *sad = ic->sad;

	if (sad->by_peer.buckets != NULL)
		return 0;
	if (ipsec_workers_start(ic) != 0)
		return -ENOMEM;
	if (ipsec_links_create(&sad->by_id, ic->conf.max_sas, ic->conf.socket) != 0)
		return -ENOMEM;
	if (ipsec_links_create(&sad->by_peer, ic->conf.max_sas, ic->conf.socket) == 0) {
		/* Release: who is told that there are tables finds them (ipsec_sad_lookup). */
		atomic_store_explicit(&sad->ready, true, memory_order_release);
		return 0;
	}
	ipsec_links_destroy(&sad->by_id);
	return -ENOMEM;
}

static void
entry_free(struct sad_entry *e)
{
	if (e->sa.rt != NULL)
		ipsec_rt_free(e->sa.rt);
	ipsec_vault_free(e->ic->vault, e, sizeof(*e));
}

/* Packets may be inside a crypto device, and will be gone on with by the SA (lookaside.h). */
static bool
is_held(const struct sad_entry *e)
{
	return e->sa.rt != NULL && e->sa.rt->held != 0;
}

static void
entry_free_deferred(struct rcu_head *head)
{
	struct sad_entry *e = RTE_PTR_SUB(head, offsetof(struct sad_entry, rcu));

	if (!is_held(e)) {
		entry_free(e);
		return;
	}
	e->next = e->ic->sad->held;
	e->ic->sad->held = e;
}

void
sad_free_held(struct ipsec_cache *ic)
{
	struct sad_entry **at = &ic->sad->held, *e;

	while ((e = *at) != NULL) {
		if (is_held(e)) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		entry_free(e);
	}
}

void
ipsec_sad_destroy(struct ipsec_cache *ic)
{
	struct sad_entry *e, *next;

	if (ic->sad == NULL)
		return;
	RB_FOREACH_SAFE (e, sad_tree, &ic->sad->order, next) {
		RB_REMOVE(sad_tree, &ic->sad->order, e);
		entry_free(e);
	}
	sad_free_held(ic);
	ipsec_links_destroy(&ic->sad->by_id);
	ipsec_links_destroy(&ic->sad->by_peer);
	free(ic->sad);
	ic->sad = NULL;
}

/* Readers. */

static const struct sad_entry *
id_walk(const struct ipsec_sad *sad, const struct ipsec_cache_sa_id *id)
{
	uint32_t hash = id_hash(id->spi, id->family, &id->daddr);
	const struct ipsec_link *l;

	IPSEC_LINKS_FOREACH(l, &sad->by_id, hash)
	{
		const struct sad_entry *e = RTE_PTR_SUB(l, offsetof(struct sad_entry, by_id));
		const struct xfrm_usersa_info *i = &e->sa.spec.info;

		if (l->hash == hash && i->id.spi == id->spi && i->family == id->family &&
			i->id.proto == id->proto &&
			ipsec_addr_equal(&i->id.daddr, &id->daddr, id->family) &&
			(id->mark & e->sa.spec.mark.m) == e->sa.spec.mark.v)
			return e;
	}
	return NULL;
}

static const struct sad_entry *
id_find(const struct ipsec_sad *sad, const struct ipsec_cache_sa_id *id)
{
	const struct sad_entry *e;
	uint64_t before;

	do {
		before = ipsec_links_removals(&sad->by_id);
	} while ((e = id_walk(sad, id)) == NULL &&
		unlikely(before != ipsec_links_removals(&sad->by_id)));
	return e;
}

static bool
sad_ready(const struct ipsec_sad *sad)
{
	return atomic_load_explicit(&sad->ready, memory_order_acquire);
}

struct ipsec_cache_rt *
ipsec_sad_lookup(const struct ipsec_cache *ic, __be32 spi, uint8_t family, const uint8_t daddr[16],
	uint32_t mark)
{
	struct ipsec_cache_sa_id id = {
		.spi = spi, .family = family, .proto = IPPROTO_ESP, .mark = mark
	};
	const struct sad_entry *e;

	if (!sad_ready(ic->sad))
		return NULL;
	memcpy(&id.daddr, daddr, sizeof(id.daddr));
	e = id_find(ic->sad, &id);
	return e != NULL ? e->sa.rt : NULL;
}

static bool
fits_template(const struct ipsec_cache_sa_spec *spec, const struct ipsec_cache_policy_spec *policy)
{
	const struct xfrm_user_tmpl *tmpl = &policy->tmpl[0];
	const struct xfrm_usersa_info *i = &spec->info;

	return i->family == tmpl->family && i->reqid == tmpl->reqid && i->mode == tmpl->mode &&
		i->id.proto == tmpl->id.proto && (tmpl->id.spi == 0 || i->id.spi == tmpl->id.spi) &&
		ipsec_addr_equal(&i->id.daddr, &tmpl->id.daddr, tmpl->family) &&
		(ipsec_addr_any(&tmpl->saddr, tmpl->family) ||
			ipsec_addr_equal(&i->saddr, &tmpl->saddr, tmpl->family)) &&
		(policy->mark.v & policy->mark.m & spec->mark.m) == spec->mark.v &&
		policy->if_id == spec->if_id;
}

/* Can that worker send this flow by it? */
static bool
fits_flow(const struct ipsec_cache_sa *sa, const struct ipsec_flow *flow, uint32_t out_ifindex,
	unsigned int worker)
{
	const struct ipsec_cache_sa_spec *spec = &sa->spec;
	const struct xfrm_selector *sel = &spec->info.sel;

	if (spec->dir == SAD_DIR_IN || (spec->has_pcpu && spec->pcpu != worker) ||
		ipsec_addr_any(&spec->info.saddr, spec->info.family))
		return false;
	return sel->family == 0 ||
		(sel->family == flow->family && ipsec_selector_match(sel, flow, out_ifindex));
}

static bool
is_better(const struct ipsec_cache_sa *a, const struct ipsec_cache_sa *b)
{
	bool a_dying = atomic_load_explicit(&a->dying, memory_order_relaxed);
	bool b_dying = atomic_load_explicit(&b->dying, memory_order_relaxed);

	if (a->spec.has_pcpu != b->spec.has_pcpu)
		return a->spec.has_pcpu;
	if (a_dying != b_dying)
		return b_dying;
	return a->serial > b->serial;
}

static const struct ipsec_cache_sa *
peer_walk(const struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *policy,
	const struct ipsec_flow *flow, uint32_t out_ifindex, unsigned int worker)
{
	const struct xfrm_user_tmpl *tmpl = &policy->tmpl[0];
	const struct ipsec_cache_sa *best = NULL;
	const struct ipsec_link *l;
	uint32_t hash;

	hash = peer_hash(&tmpl->id.daddr, tmpl->family, tmpl->reqid, tmpl->mode, tmpl->id.proto);
	IPSEC_LINKS_FOREACH(l, &ic->sad->by_peer, hash)
	{
		const struct sad_entry *e = RTE_PTR_SUB(l, offsetof(struct sad_entry, by_peer));

		if (l->hash != hash || e->sa.rt == NULL || !fits_template(&e->sa.spec, policy) ||
			!fits_flow(&e->sa, flow, out_ifindex, worker))
			continue;
		if (best == NULL || is_better(&e->sa, best))
			best = &e->sa;
	}
	return best;
}

struct ipsec_cache_rt *
ipsec_sad_find(const struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *policy,
	const struct ipsec_flow *flow, uint32_t out_ifindex, unsigned int worker)
{
	const struct ipsec_links *table = &ic->sad->by_peer;
	const struct ipsec_cache_sa *sa;
	uint64_t before;

	if (!sad_ready(ic->sad))
		return NULL;
	/* A rekey beside this must not look as if there were no SA. */
	do {
		before = ipsec_links_removals(table);
	} while ((sa = peer_walk(ic, policy, flow, out_ifindex, worker)) == NULL &&
		unlikely(before != ipsec_links_removals(table)));
	return sa != NULL ? sa->rt : NULL;
}

/* The control thread: in and out. */

static uint32_t
sa_uses(const struct ipsec_cache_sa_spec *spec)
{
	return ipsec_selector_uses(&spec->info.sel) | (spec->mark.m != 0 ? IPSEC_USES_SA_MARK : 0);
}

static void
entry_link(struct ipsec_cache *ic, struct sad_entry *e)
{
	struct ipsec_sad *sad = ic->sad;
	const struct xfrm_usersa_info *i = &e->sa.spec.info;

	ipsec_uses_add(ic, sa_uses(&e->sa.spec));
	if (i->id.spi != 0)
		ipsec_links_add(
			&sad->by_id, &e->by_id, id_hash(i->id.spi, i->family, &i->id.daddr));
	ipsec_links_add(&sad->by_peer, &e->by_peer, spec_peer_hash(i));
	RB_INSERT(sad_tree, &sad->order, e);
	sad->n++;
	sad->n_larval += e->sa.rt == NULL;
	ipsec_changed(ic);
}

void
sad_remove(struct ipsec_cache *ic, struct sad_entry *e)
{
	struct ipsec_sad *sad = ic->sad;

	ipsec_offload_end(e);
	if (e->sa.spec.info.id.spi != 0)
		ipsec_links_remove(&sad->by_id, &e->by_id);
	ipsec_links_remove(&sad->by_peer, &e->by_peer);
	RB_REMOVE(sad_tree, &sad->order, e);
	sad->n--;
	sad->n_larval -= e->sa.rt == NULL;
	ipsec_uses_del(ic, sa_uses(&e->sa.spec));
	/* The bump before the grace period begins: no burst that begins in it uses the SA. */
	ipsec_changed(ic);
	rcu_defer(ic->conf.rcu, &e->rcu, entry_free_deferred);
}

/* Selectors and addresses are compared as bytes: nothing stands where nothing belongs. */
static void
normalize(struct xfrm_usersa_info *info)
{
	xfrm_address_t a;

	if (info->sel.family == 0 && (info->flags & XFRM_STATE_AF_UNSPEC) == 0)
		info->sel.family = info->family;
	ipsec_selector_normalize(&info->sel);
	a = info->id.daddr;
	memset(&info->id.daddr, 0, sizeof(a));
	memcpy(&info->id.daddr, &a, ipsec_addr_len(info->family));
	a = info->saddr;
	memset(&info->saddr, 0, sizeof(a));
	memcpy(&info->saddr, &a, ipsec_addr_len(info->family));
}

/* Its age: what it brings along from elsewhere counts. */
static void
set_age(const struct ipsec_cache *ic, struct sad_entry *e)
{
	uint64_t now = (uint64_t)time(NULL);
	struct xfrm_lifetime_cur *cur = &e->sa.spec.info.curlft;

	e->added_ms = (int64_t)ic->now_ms;
	if (cur->add_time == 0 || cur->add_time > now)
		cur->add_time = now;
	e->added_ms -= (int64_t)(now - cur->add_time) * 1000;
	if (cur->use_time > now)
		cur->use_time = now;
	if (cur->use_time != 0) {
		e->used = true;
		e->used_ms = (int64_t)ic->now_ms - (int64_t)(now - cur->use_time) * 1000;
	}
}

static struct sad_entry *
entry_create(
	struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, int *err, const char **why)
{
	struct sad_entry *e;

	if (ic->sad->n >= ic->conf.max_sas) {
		*err = -ENOSPC;
		*why = "There is no room for another SA";
		return NULL;
	}
	if (tables_create(ic) != 0 || (e = ipsec_vault_alloc(ic->vault, sizeof(*e))) == NULL) {
		*err = -ENOMEM;
		*why = "There is no memory for another SA";
		return NULL;
	}
	e->ic = ic;
	e->sa.spec = *spec;
	normalize(&e->sa.spec.info);
	e->sa.serial = ++ic->next_serial;
	set_age(ic, e);
	return e;
}

void
sad_id(const struct ipsec_cache_sa_spec *spec, struct ipsec_cache_sa_id *id)
{
	*id = (struct ipsec_cache_sa_id){
		.daddr = spec->info.id.daddr,
		.spi = spec->info.id.spi,
		.family = spec->info.family,
		.proto = spec->info.id.proto,
		.mark = spec->mark.v & spec->mark.m,
	};
}

static bool
is_larval_of(const struct sad_entry *e, const struct ipsec_cache_sa_spec *spec)
{
	const struct xfrm_usersa_info *a = &e->sa.spec.info, *b = &spec->info;

	return e->sa.rt == NULL && a->id.spi == 0 && a->family == b->family &&
		a->reqid == b->reqid && a->mode == b->mode && a->id.proto == b->id.proto &&
		e->sa.spec.if_id == spec->if_id && e->sa.spec.mark.v == spec->mark.v &&
		e->sa.spec.mark.m == spec->mark.m &&
		ipsec_addr_equal(&a->id.daddr, &b->id.daddr, a->family) &&
		ipsec_addr_equal(&a->saddr, &b->saddr, a->family);
}

struct sad_entry *
sad_find_larval(struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec)
{
	uint32_t hash = spec_peer_hash(&spec->info);
	struct ipsec_link *l;

	if (ic->sad->n_larval == 0)
		return NULL;
	IPSEC_LINKS_FOREACH(l, &ic->sad->by_peer, hash)
	{
		struct sad_entry *e = RTE_PTR_SUB(l, offsetof(struct sad_entry, by_peer));

		if (l->hash == hash && is_larval_of(e, spec))
			return e;
	}
	return NULL;
}

struct sad_entry *
sad_add_larval(
	struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, int *err, const char **why)
{
	struct sad_entry *e = entry_create(ic, spec, err, why);

	if (e == NULL)
		return NULL;
	e->sa.spec.info.lft = (struct xfrm_lifetime_cfg){
		.soft_byte_limit = XFRM_INF,
		.hard_byte_limit = XFRM_INF,
		.soft_packet_limit = XFRM_INF,
		.hard_packet_limit = XFRM_INF,
		.hard_add_expires_seconds = IPSEC_LARVAL_SECONDS,
	};
	entry_link(ic, e);
	return e;
}

static int
update_working(struct ipsec_cache *ic, struct sad_entry *old,
	const struct ipsec_cache_sa_spec *spec, const char **why)
{
	int err;

	if ((err = sad_check_update(&old->sa.spec, spec, why)) != 0)
		return err;
	old->sa.spec.info.lft = spec->info.lft;
	ipsec_rt_limit(old->sa.rt, &old->sa.spec);
	old->soft_told = false;
	if (atomic_exchange_explicit(&old->sa.dying, false, memory_order_relaxed))
		ipsec_bump(ic); /* others were preferred to it */
	ipsec_notify(ic, IPSEC_CACHE_EVENT_SA_UPDATE, &old->sa);
	return 0;
}

static void
defaults(struct ipsec_cache_sa_spec *spec)
{
	if (spec->replay_maxdiff == 0)
		spec->replay_maxdiff = IPSEC_AE_MAXDIFF;
	if (spec->replay_maxage == 0)
		spec->replay_maxage = IPSEC_AE_MAXAGE;
}

/* The new one in place of what stands there, which is NULL or larval. */
static int
entry_publish(struct ipsec_cache *ic, struct sad_entry *e, struct sad_entry *old, bool update,
	const char **why)
{
	struct sad_entry *larval = sad_find_larval(ic, &e->sa.spec);
	int err;

	defaults(&e->sa.spec);
	if ((e->sa.rt = ipsec_rt_create(ic, &e->sa, &err, why)) == NULL ||
		(err = ipsec_offload_begin(ic, e, why)) != 0)
		return err;
	e->ae_oseq = e->sa.spec.oseq;
	e->ae_seq = e->sa.spec.seq;
	e->ae_ms = ic->now_ms;
	entry_link(ic, e);
	if (old != NULL)
		sad_remove(ic, old);
	if (larval != NULL && larval != old)
		sad_remove(ic, larval); /* traffic asked for it, and here it is */
	ic->generation++;
	ipsec_notify(ic, update ? IPSEC_CACHE_EVENT_SA_UPDATE : IPSEC_CACHE_EVENT_SA_ADD, &e->sa);
	return 0;
}

static int
add_checked(struct ipsec_cache *ic, struct sad_entry *e, bool update, bool *used, const char **why)
{
	struct ipsec_cache_sa_id id;
	struct sad_entry *old;
	int err;

	if ((err = sad_check(ic, &e->sa.spec, why)) != 0)
		return err;
	sad_id(&e->sa.spec, &id);
	old = (struct sad_entry *)(uintptr_t)id_find(ic->sad, &id);
	if (old != NULL && !update)
		return ipsec_refuse(
			-EEXIST, why, "There is an SA with this SPI, destination and mark already");
	if (old == NULL && update)
		return ipsec_refuse(
			-ESRCH, why, "There is no SA with this SPI, destination and mark");
	if (old != NULL && old->sa.rt != NULL)
		return update_working(ic, old, &e->sa.spec, why);
	if ((err = entry_publish(ic, e, old, update, why)) == 0)
		*used = true;
	return err;
}

int
ipsec_cache_sa_add(struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, bool update,
	const char **why)
{
	struct sad_entry *e;
	bool used = false;
	int err;

	if ((e = entry_create(ic, spec, &err, why)) == NULL)
		return err;
	err = add_checked(ic, e, update, &used, why);
	if (!used)
		entry_free(e);
	return err;
}

struct ipsec_cache_sa *
ipsec_cache_sa_find(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id)
{
	const struct sad_entry *e = sad_ready(ic->sad) ? id_find(ic->sad, id) : NULL;

	return e != NULL ? (struct ipsec_cache_sa *)(uintptr_t)&e->sa : NULL;
}

int
ipsec_cache_sa_del(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id)
{
	struct ipsec_cache_sa *sa = ipsec_cache_sa_find(ic, id);

	if (sa == NULL)
		return -ESRCH;
	sad_remove(ic, sad_entry(sa));
	ic->generation++;
	ipsec_notify(
		ic, IPSEC_CACHE_EVENT_SA_DEL, sa); /* freed at the next reclaim at the earliest */
	return 0;
}

int
ipsec_cache_sa_flush(struct ipsec_cache *ic, uint8_t proto)
{
	struct sad_entry *e, *next;
	bool any = false;

	RB_FOREACH_SAFE (e, sad_tree, &ic->sad->order, next) {
		if (proto != 0 && proto != IPSEC_PROTO_ANY && proto != e->sa.spec.info.id.proto)
			continue;
		sad_remove(ic, e);
		any = true;
	}
	if (!any)
		return -ESRCH;
	ic->generation++;
	ipsec_notify(ic, IPSEC_CACHE_EVENT_SA_FLUSH, &proto);
	return 0;
}

struct sad_entry *
sad_after(const struct ipsec_sad *sad, uint64_t after)
{
	struct sad_entry key = { .sa.serial = after + 1 };

	return RB_NFIND(sad_tree, &((struct ipsec_sad *)(uintptr_t)sad)->order, &key);
}

struct ipsec_cache_sa *
ipsec_cache_sa_next(struct ipsec_cache *ic, uint64_t *after)
{
	struct sad_entry *e = sad_after(ic->sad, *after);

	if (e == NULL)
		return NULL;
	*after = e->sa.serial;
	return &e->sa;
}

void
ipsec_cache_sa_describe(const struct ipsec_cache_sa *sa, struct ipsec_cache_sa_spec *spec)
{
	*spec = sa->spec;
	if (sa->rt != NULL)
		ipsec_rt_describe(sa->rt, spec);
}

unsigned int
ipsec_cache_sa_count(const struct ipsec_cache *ic)
{
	return ic->sad->n;
}

unsigned int
ipsec_cache_sa_buckets(const struct ipsec_cache *ic)
{
	return sad_ready(ic->sad) ? ic->sad->by_id.mask + 1 : 0;
}

int
ipsec_cache_sa_expire(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id, bool hard)
{
	struct ipsec_cache_sa *sa = ipsec_cache_sa_find(ic, id);

	if (sa == NULL)
		return -ESRCH;
	sad_expire(ic, sad_entry(sa), hard);
	return 0;
}

int
ipsec_cache_sa_thresholds(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id,
	uint32_t maxdiff, uint32_t maxage)
{
	struct ipsec_cache_sa *sa = ipsec_cache_sa_find(ic, id);

	if (sa == NULL || sa->rt == NULL)
		return -ESRCH;
	sa->spec.replay_maxdiff = maxdiff;
	sa->spec.replay_maxage = maxage;
	return 0;
}

/* SPIs. */

static bool
spi_free(struct ipsec_cache *ic, struct ipsec_cache_sa_id *id, uint32_t spi)
{
	id->spi = htonl(spi);
	return id_find(ic->sad, id) == NULL;
}

/* One in [min, max] that no SA for the same destination has; 0: none. */
static uint32_t
spi_choose(struct ipsec_cache *ic, struct ipsec_cache_sa_id *id, uint32_t min, uint32_t max)
{
	uint64_t range = (uint64_t)max - min + 1, first;

	for (unsigned int i = 0; i < 64; i++) {
		uint32_t spi = min + (uint32_t)rte_rand_max(range);

		if (spi_free(ic, id, spi))
			return spi;
	}
	/* Of n + 1 in a row at least one is free. */
	first = rte_rand_max(range);
	for (uint64_t i = 0; i < range && i <= ic->sad->n; i++) {
		uint32_t spi = min + (uint32_t)((first + i) % range);

		if (spi_free(ic, id, spi))
			return spi;
	}
	return 0;
}

static int
check_spi_request(const struct xfrm_userspi_info *info, const char **why)
{
	if (info->info.family != AF_INET && info->info.family != AF_INET6)
		return ipsec_refuse(-EINVAL, why, "An SA is of the IPv4 or the IPv6 family");
	if (info->info.id.proto != IPPROTO_ESP)
		return ipsec_refuse(-EOPNOTSUPP, why,
			"Only ESP has SPIs here: AH and IPComp are not supported yet");
	/* whether it is a mode that SAs can have here is said when the SA is completed */
	if (info->info.mode >= XFRM_MODE_MAX)
		return ipsec_refuse(-EINVAL, why, "There is no such mode");
	if (info->min > info->max)
		return ipsec_refuse(-EINVAL, why, "The lowest SPI asked for is above the highest");
	if (info->min < 256)
		return ipsec_refuse(-EINVAL, why, "SPIs 0 to 255 are reserved (RFC 4303, 2.1)");
	if (ipsec_addr_any(&info->info.id.daddr, info->info.family))
		return ipsec_refuse(-EINVAL, why, "An SA needs the address that its packets go to");
	return 0;
}

int
ipsec_cache_sa_alloc_spi(struct ipsec_cache *ic, const struct xfrm_userspi_info *info,
	const struct xfrm_mark *mark, uint32_t if_id, struct ipsec_cache_sa **sa, const char **why)
{
	struct ipsec_cache_sa_spec spec = { .info = info->info, .mark = *mark, .if_id = if_id };
	struct ipsec_cache_sa_id id;
	struct sad_entry *e, *larval;
	uint32_t spi;
	int err;

	if ((err = check_spi_request(info, why)) != 0)
		return err;
	if (tables_create(ic) != 0)
		return ipsec_refuse(-ENOMEM, why, "There is no memory for another SA");
	spec.info.id.spi = 0;
	normalize(&spec.info);
	larval = sad_find_larval(ic, &spec);
	if (larval != NULL) /* what traffic asked for keeps the packet's selector and number */
		spec.info.sel = larval->sa.spec.info.sel;
	if (larval != NULL && spec.info.seq == 0)
		spec.info.seq = larval->sa.spec.info.seq;
	sad_id(&spec, &id);
	if ((spi = spi_choose(ic, &id, info->min, info->max)) == 0)
		return ipsec_refuse(-ENOENT, why, "Every SPI in that range is taken");
	spec.info.id.spi = htonl(spi);
	if ((e = sad_add_larval(ic, &spec, &err, why)) == NULL)
		return err;
	if (larval != NULL)
		sad_remove(ic, larval);
	ic->generation++;
	*sa = &e->sa;
	return 0;
}
