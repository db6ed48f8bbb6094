/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Policies as workers find them: tuples, and the list of tuples by their best policy. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_hash_crc.h>

#include "ipsec_cache/selector.h"
#include "ipsec_cache/spd.h"

#define KIND_WHOLE 1
#define KIND_UNCERTAIN 2

int
spd_node_compare(const struct spd_node *a, const struct spd_node *b)
{
	uint32_t x = a->policy->spec.info.priority, y = b->policy->spec.info.priority;

	if (x != y)
		return x < y ? -1 : 1;
	return a->policy->serial < b->policy->serial ? -1 : a->policy->serial > b->policy->serial;
}
RB_GENERATE(spd_nodes, spd_node, order, spd_node_compare)

static unsigned int
af_index(uint16_t family)
{
	return family == AF_INET6;
}

static uint32_t
key_hash(const struct spd_key *key)
{
	uint32_t hash = 0;

	for (unsigned int i = 0; i < RTE_DIM(key->words); i++)
		hash = rte_hash_crc_8byte(key->words[i], hash);
	return hash;
}

static bool
key_equal(const struct spd_key *a, const struct spd_key *b)
{
	return memcmp(a->words, b->words, sizeof(a->words)) == 0;
}

static void
key_mask(const struct spd_key *key, const struct spd_tuple *tuple, struct spd_key *out)
{
	for (unsigned int i = 0; i < RTE_DIM(key->words); i++)
		out->words[i] = key->words[i] & tuple->mask.words[i];
	out->tuple = tuple->number;
}

/* Readers. */

static void
flow_key(const struct ipsec_flow *flow, uint32_t ifindex, struct spd_key *key)
{
	memset(key, 0, sizeof(*key));
	memcpy(key->saddr, flow->saddr, sizeof(key->saddr));
	memcpy(key->daddr, flow->daddr, sizeof(key->daddr));
	key->mark = flow->mark;
	key->ifindex = ifindex;
	key->sport = flow->sport;
	key->dport = flow->dport;
	key->proto = flow->proto;
}

static const struct ipsec_cache_policy *
tuple_find(const struct ipsec_spd *spd, const struct spd_tuple *tuple, const struct spd_key *flow)
{
	const struct ipsec_cache_policy *best = NULL;
	const struct ipsec_link *l;
	struct spd_key key;
	uint32_t hash;

	key_mask(flow, tuple, &key);
	hash = key_hash(&key);
	IPSEC_LINKS_FOREACH(l, &spd->nodes, hash)
	{
		const struct spd_node *node = RTE_PTR_SUB(l, offsetof(struct spd_node, link));
		const struct ipsec_cache_policy *p = node->policy;

		if (l->hash != hash || !key_equal(&node->key, &key))
			continue;
		if (best == NULL ||
			spd_before(p->spec.info.priority, p->serial, best->spec.info.priority,
				best->serial))
			best = p;
	}
	return best;
}

static const struct ipsec_cache_policy *
spd_walk(const struct ipsec_cache *ic, uint8_t dir, const struct ipsec_flow *flow,
	uint32_t out_ifindex, bool *uncertain)
{
	const struct ipsec_spd *spd = ic->spd;
	const struct ipsec_cache_policy *best = NULL, *p;
	/* Acquire: the list and its tuples were whole when it was published. */
	const struct spd_list *list = atomic_load_explicit(
		&spd->lists[dir][af_index(flow->family)], memory_order_acquire);
	struct spd_key key;

	*uncertain = false;
	if (list == NULL)
		return NULL;
	flow_key(flow, out_ifindex, &key);
	for (unsigned int i = 0; i < list->n; i++) {
		const struct spd_tuple *tuple = list->at[i].tuple;

		if (best != NULL &&
			spd_before(best->spec.info.priority, best->serial, list->at[i].priority,
				list->at[i].serial))
			break;
		if (flow->fragment != 0 ? tuple->ports : tuple->uncertain)
			continue;
		if ((p = tuple_find(spd, tuple, &key)) == NULL ||
			(best != NULL &&
				!spd_before(p->spec.info.priority, p->serial,
					best->spec.info.priority, best->serial)))
			continue;
		best = p;
		*uncertain = tuple->uncertain;
	}
	return best;
}

const struct ipsec_cache_policy *
ipsec_spd_lookup(const struct ipsec_cache *ic, uint8_t dir, const struct ipsec_flow *flow,
	uint32_t out_ifindex, bool *uncertain)
{
	const struct ipsec_cache_policy *p;
	uint64_t before;

	/* One that was replaced meanwhile must not look as if it were not there (D21). */
	do {
		before = ipsec_links_removals(&ic->spd->nodes);
		p = spd_walk(ic, dir, flow, out_ifindex, uncertain);
	} while (unlikely(before != ipsec_links_removals(&ic->spd->nodes)));
	return p;
}

void
ipsec_spd_used(const struct ipsec_cache_policy *policy)
{
	struct ipsec_cache_policy *p = (struct ipsec_cache_policy *)(uintptr_t)policy;

	/* Relaxed: a date by itself. */
	atomic_store_explicit(&p->used, (uint64_t)time(NULL), memory_order_relaxed);
}

/* The control thread: lists. */

static void
list_free(struct rcu_head *head)
{
	free(RTE_PTR_SUB(head, offsetof(struct spd_list, rcu)));
}

static void
tuple_free(struct rcu_head *head)
{
	free(RTE_PTR_SUB(head, offsetof(struct spd_tuple, rcu)));
}

static void
list_set(struct spd_list *list, unsigned int i, const struct spd_tuple *tuple,
	const struct ipsec_cache_policy *best)
{
	list->at[i].tuple = tuple;
	list->at[i].priority = best->spec.info.priority;
	list->at[i].serial = best->serial;
}

void
spd_hide(struct ipsec_cache *ic)
{
	struct ipsec_spd *spd = ic->spd;

	spd->hidden = true;
	/* Whoever is under way asks again, and finds nothing. */
	atomic_fetch_add_explicit(&spd->nodes.removals, 1, memory_order_release);
	for (unsigned int dir = 0; dir < SPD_DIRS; dir++)
		for (unsigned int af = 0; af < 2; af++) {
			struct spd_list *old = atomic_exchange_explicit(
				&spd->lists[dir][af], NULL, memory_order_release);

			if (old != NULL)
				rcu_defer(ic->conf.rcu, &old->rcu, list_free);
		}
}

static struct spd_list *
list_now(struct ipsec_cache *ic, const struct spd_tuple *tuple)
{
	return atomic_load_explicit(&ic->spd->lists[tuple->dir][tuple->af], memory_order_relaxed);
}

static void
list_publish(struct ipsec_cache *ic, const struct spd_tuple *tuple, struct spd_list *list)
{
	struct spd_list *old = list_now(ic, tuple);

	/* Release: its contents before it. */
	atomic_store_explicit(&ic->spd->lists[tuple->dir][tuple->af], list, memory_order_release);
	if (old != NULL)
		rcu_defer(ic->conf.rcu, &old->rcu, list_free);
}

/* A list with `tuple` where `best` (NULL: nowhere) puts it. NULL: no memory. */
static struct spd_list *
list_make(struct ipsec_cache *ic, const struct spd_tuple *tuple,
	const struct ipsec_cache_policy *best)
{
	const struct spd_list *old = list_now(ic, tuple);
	unsigned int n = old != NULL ? old->n : 0, to = 0;
	struct spd_list *list = malloc(sizeof(*list) + (n + 1) * sizeof(list->at[0]));
	bool placed = best == NULL;

	if (list == NULL)
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		if (old->at[i].tuple == tuple)
			continue;
		if (!placed &&
			spd_before(best->spec.info.priority, best->serial, old->at[i].priority,
				old->at[i].serial)) {
			list_set(list, to++, tuple, best);
			placed = true;
		}
		list->at[to++] = old->at[i];
	}
	if (!placed)
		list_set(list, to++, tuple, best);
	list->n = to;
	return list;
}

/* The control thread: tuples. */

static uint32_t
tuple_hash(const struct spd_key *mask, uint8_t dir, uint8_t af)
{
	return key_hash(mask) ^ (uint32_t)dir << 1 ^ af;
}

static struct spd_tuple *
tuple_get(struct ipsec_cache *ic, const struct spd_key *mask, uint8_t dir, uint8_t af)
{
	uint32_t hash = tuple_hash(mask, dir, af);
	struct spd_tuple *tuple;
	struct ipsec_link *l;

	IPSEC_LINKS_FOREACH(l, &ic->spd->tuples, hash)
	{
		tuple = RTE_PTR_SUB(l, offsetof(struct spd_tuple, link));
		if (tuple->dir == dir && tuple->af == af && key_equal(&tuple->mask, mask))
			return tuple;
	}
	if ((tuple = calloc(1, sizeof(*tuple))) == NULL)
		return NULL;
	tuple->mask = *mask;
	tuple->number = ++ic->spd->next_tuple;
	tuple->dir = dir;
	tuple->af = af;
	tuple->ports = mask->sport != 0 || mask->dport != 0;
	tuple->uncertain = mask->tuple == KIND_UNCERTAIN;
	RB_INIT(&tuple->nodes);
	ipsec_links_add(&ic->spd->tuples, &tuple->link, hash);
	return tuple;
}

/* Forgets a tuple without policies, which is in no list any more. */
static void
tuple_put(struct ipsec_cache *ic, struct spd_tuple *tuple)
{
	if (!RB_EMPTY(&tuple->nodes))
		return;
	ipsec_links_remove(&ic->spd->tuples, &tuple->link);
	rcu_defer(ic->conf.rcu, &tuple->rcu, tuple_free);
}

/* The control thread: nodes. */

static void
selector_mask(const struct ipsec_cache_policy_spec *spec, bool with_ports, struct spd_key *mask)
{
	const struct xfrm_selector *sel = &spec->info.sel;
	static const uint8_t ones[16] = { [0 ... 15] = 0xff };

	memset(mask, 0, sizeof(*mask));
	ipsec_addr_mask(ones, sel->family, sel->prefixlen_s, mask->saddr);
	ipsec_addr_mask(ones, sel->family, sel->prefixlen_d, mask->daddr);
	mask->mark = spec->mark.m;
	mask->ifindex = sel->ifindex != 0 ? UINT32_MAX : 0;
	mask->proto = sel->proto != 0 ? UINT32_MAX : 0;
	if (with_ports) {
		mask->sport = sel->sport_mask;
		mask->dport = sel->dport_mask;
	}
	mask->tuple = with_ports ? KIND_WHOLE : KIND_UNCERTAIN;
}

static void
selector_key(const struct ipsec_cache_policy_spec *spec, struct spd_key *key)
{
	const struct xfrm_selector *sel = &spec->info.sel;

	memset(key, 0, sizeof(*key));
	memcpy(key->saddr, &sel->saddr, sizeof(key->saddr));
	memcpy(key->daddr, &sel->daddr, sizeof(key->daddr));
	key->mark = spec->mark.v;
	key->ifindex = (uint32_t)sel->ifindex;
	key->sport = sel->sport;
	key->dport = sel->dport;
	key->proto = sel->proto;
}

static int
node_add(struct ipsec_cache *ic, struct ipsec_cache_policy *policy, struct spd_node *node,
	bool with_ports)
{
	const struct ipsec_cache_policy_spec *spec = &policy->spec;
	struct spd_list *list = NULL;
	struct spd_tuple *tuple;
	struct spd_key mask, key;

	selector_mask(spec, with_ports, &mask);
	tuple = tuple_get(ic, &mask, spec->info.dir, (uint8_t)af_index(spec->info.sel.family));
	if (tuple == NULL)
		return -ENOMEM;
	node->policy = policy;
	RB_INSERT(spd_nodes, &tuple->nodes, node);
	if (RB_MIN(spd_nodes, &tuple->nodes) == node &&
		(list = list_make(ic, tuple, policy)) == NULL) {
		RB_REMOVE(spd_nodes, &tuple->nodes, node);
		tuple_put(ic, tuple);
		return -ENOMEM;
	}
	selector_key(spec, &key);
	key_mask(&key, tuple, &node->key);
	node->tuple = tuple;
	ipsec_links_add(&ic->spd->nodes, &node->link, key_hash(&node->key));
	if (list != NULL)
		list_publish(ic, tuple, list);
	return 0;
}

static void
node_del(struct ipsec_cache *ic, struct spd_node *node)
{
	struct spd_tuple *tuple = node->tuple;
	const struct spd_node *best;
	struct spd_list *list;
	bool was_best;

	if (tuple == NULL)
		return;
	was_best = RB_MIN(spd_nodes, &tuple->nodes) == node;
	ipsec_links_remove(&ic->spd->nodes, &node->link);
	RB_REMOVE(spd_nodes, &tuple->nodes, node);
	node->tuple = NULL;
	if (ic->spd->hidden)
		tuple_put(ic, tuple); /* in no list already */
	if (ic->spd->hidden || !was_best)
		return;
	best = RB_MIN(spd_nodes, &tuple->nodes);
	list = list_make(ic, tuple, best != NULL ? best->policy : NULL);
	/*
	 * Without memory the old list stays: it puts the tuple too far in front, or asks one that
	 * has no policies any more, which is kept then. Either costs time and decides nothing.
	 */
	if (list == NULL)
		return;
	list_publish(ic, tuple, list);
	tuple_put(ic, tuple);
}

int
spd_place(struct ipsec_cache *ic, struct ipsec_cache_policy *policy)
{
	const struct ipsec_cache_policy_spec *spec = &policy->spec;
	bool takes = spec->info.action == XFRM_POLICY_BLOCK || spec->n_tmpl > 0;
	int err;

	/* Packets have no if_id: no device here is an XFRM interface. */
	if (spec->if_id != 0)
		return 0;
	if ((err = node_add(ic, policy, &policy->whole, true)) != 0)
		return err;
	if (!takes || !ipsec_selector_has_ports(&spec->info.sel))
		return 0;
	if ((err = node_add(ic, policy, &policy->fragment, false)) != 0)
		node_del(ic, &policy->whole);
	return err;
}

void
spd_unplace(struct ipsec_cache *ic, struct ipsec_cache_policy *policy)
{
	node_del(ic, &policy->whole);
	node_del(ic, &policy->fragment);
}
