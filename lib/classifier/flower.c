/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What the control thread does with flower rules. */

#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_prefetch.h>
#include <rte_random.h>

#include "classifier/flower_mask.h"

/* Chunks of a big table that are freed in one go. */
#define FINI_CHUNKS 8

static int
refuse(const char **why, const char *sentence)
{
	*why = sentence;
	return -EINVAL;
}

static bool
all_zero(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++)
		any |= p[i];
	return any == 0;
}

static int
compile_range(const struct flower_range *range, rte_be16_t mask, uint8_t bit,
	struct flower_pattern *pattern, const char **why)
{
	unsigned int shift = bit == RANGED_SRC ? 0 : 32;

	if (range->max == 0) {
		if (range->min != 0)
			return refuse(why, "Port range ends before it begins");
		return 0;
	}
	if (range->min > range->max)
		return refuse(why, "Port range ends before it begins");
	if (mask != 0)
		return refuse(why, "Both a port and a range of ports");
	pattern->ranged |= bit;
	pattern->range |= ((uint64_t)range->max << 16 | range->min) << shift;
	return 0;
}

/* The header that the addresses ask for. */
static int
compile_addresses(const struct flower_match *match, const struct flower_key *mask,
	uint16_t *present, const char **why)
{
	static const uint16_t asks[] = { [FLOWER_IPV4] = FLOWER_HAS_IPV4,
		[FLOWER_IPV6] = FLOWER_HAS_IPV6,
		[FLOWER_ARP] = FLOWER_HAS_ARP };
	static const uint16_t type[] = {
		[FLOWER_IPV4] = ETH_P_IP, [FLOWER_IPV6] = ETH_P_IPV6, [FLOWER_ARP] = ETH_P_ARP
	};
	static const size_t used[] = { [FLOWER_NO_ADDRESSES] = 0,
		[FLOWER_IPV4] = sizeof(mask->a.ip4),
		[FLOWER_IPV6] = sizeof(mask->a.ip6),
		[FLOWER_ARP] = sizeof(mask->a.arp) };
	unsigned int a = (unsigned int)match->addresses;

	if (a > FLOWER_ARP)
		return refuse(why, "Unknown kind of addresses");
	if (!all_zero((const uint8_t *)&mask->a + used[a], sizeof(mask->a) - used[a]))
		return refuse(why, "Addresses that are not of the kind given");
	if (a == FLOWER_NO_ADDRESSES || all_zero(&mask->a, sizeof(mask->a)))
		return 0;
	/* RARP has ARP's form; Linux takes it for ARP as well. */
	if (mask->eth_type == UINT16_MAX && rte_be_to_cpu_16(match->key.eth_type) != type[a] &&
		!(a == FLOWER_ARP && match->key.eth_type == rte_cpu_to_be_16(ETH_P_RARP)))
		return refuse(why, "Addresses do not fit the EtherType");
	*present |= asks[a];
	return 0;
}

static int
compile_headers(const struct flower_match *match, const struct flower_pattern *pattern,
	const struct flower_key *mask, uint16_t *present, const char **why)
{
	uint8_t proto = match->key.ip_proto;
	bool ports = mask->src_port != 0 || mask->dst_port != 0 || pattern->ranged != 0;
	bool icmp = mask->icmp_type != 0 || mask->icmp_code != 0;

	if (mask->ip_proto != 0 || mask->ip_tos != 0 || mask->ip_ttl != 0)
		*present |= FLOWER_HAS_IP;
	if (ports)
		*present |= FLOWER_HAS_PORTS;
	if (mask->tcp_flags != 0)
		*present |= FLOWER_HAS_TCP;
	if (icmp)
		*present |= FLOWER_HAS_ICMP;
	if (mask->vlan_tci != 0 || mask->vlan_tpid != 0)
		*present |= FLOWER_HAS_VLAN;
	if (mask->cvlan_tci != 0 || (match->key.cvlan_tpid & mask->cvlan_tpid) != 0)
		*present |= FLOWER_HAS_CVLAN;
	if (icmp && (ports || mask->tcp_flags != 0))
		return refuse(why, "Keys of ICMP and of ports in one rule");
	if (mask->ip_proto != UINT8_MAX)
		return 0;
	if (mask->tcp_flags != 0 && proto != IPPROTO_TCP)
		return refuse(why, "TCP flags of another IP protocol");
	if (icmp && proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6)
		return refuse(why, "ICMP keys of another IP protocol");
	if (ports && (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6))
		return refuse(why, "Ports of an IP protocol without ports");
	return 0;
}

int
flower_compile(const struct flower_match *match, struct flower_pattern *pattern, const char **why)
{
	struct flower_key key, mask;
	uint16_t present = 0;
	int rc;

	if (match == NULL)
		return refuse(why, "Filter without a key");
	*pattern = (struct flower_pattern){ 0 };
	key = match->key;
	mask = match->mask;
	if ((rc = compile_range(&match->src_ports, mask.src_port, RANGED_SRC, pattern, why)) != 0 ||
		(rc = compile_range(&match->dst_ports, mask.dst_port, RANGED_DST, pattern, why)) !=
			0 ||
		(rc = compile_addresses(match, &mask, &present, why)) != 0 ||
		(rc = compile_headers(match, pattern, &mask, &present, why)) != 0)
		return rc;
	key.present = mask.present = present;
	memcpy(pattern->key, &key, sizeof(key));
	memcpy(pattern->mask, &mask, sizeof(mask));
	for (unsigned int w = 0; w < FLOWER_WORDS; w++)
		pattern->key[w] &= pattern->mask[w];
	return 0;
}

struct flower_match *
flower_copy(const struct flower_match *match)
{
	struct flower_match *copy = malloc(sizeof(*copy));

	if (copy != NULL)
		*copy = *match;
	return copy;
}

/* IPv4 and IPv6 share their room in Linux's key as they do here; ARP has a place of its own there.
 */
static bool
addresses_fit(enum flower_addresses addresses, enum flower_addresses within)
{
	if (addresses == FLOWER_NO_ADDRESSES || addresses == within)
		return true;
	return within != FLOWER_NO_ADDRESSES && (addresses == FLOWER_ARP) == (within == FLOWER_ARP);
}

bool
flower_fits(const struct flower_match *match, const struct flower_match *within)
{
	uint64_t inner[FLOWER_WORDS], outer[FLOWER_WORDS];

	memcpy(inner, &match->mask, sizeof(inner));
	memcpy(outer, &within->mask, sizeof(outer));
	for (unsigned int w = 0; w < FLOWER_WORDS; w++)
		if ((inner[w] & ~outer[w]) != 0)
			return false;
	return addresses_fit(match->addresses, within->addresses) &&
		(match->src_ports.max == 0 || within->src_ports.max != 0) &&
		(match->dst_ports.max == 0 || within->dst_ports.max != 0);
}

uint32_t
flower_n_words(const struct flower_pattern *pattern)
{
	uint32_t n = pattern->ranged != 0;

	for (unsigned int w = 0; w < FLOWER_WORDS; w++)
		n += pattern->mask[w] != 0;
	return n;
}

void
flower_init(struct classifier_prio *prio)
{
	atomic_init(&prio->flower.first, NULL);
	prio->flower.last = NULL;
	index_map_init(&prio->flower.by_hash, NULL, NULL);
}

static uint32_t
pattern_hash(const struct flower_pattern *pattern)
{
	uint64_t h = pattern->ranged;

	for (unsigned int w = 0; w < FLOWER_WORDS; w++)
		h = hash_word(h + 1, pattern->mask[w]);
	return hash_end(h);
}

static struct flower_mask *
mask_find(const struct flower *flower, const struct flower_pattern *pattern, uint32_t hash)
{
	struct flower_mask *mask = index_map_find(&flower->by_hash, hash);

	while (mask != NULL &&
		(mask->ranged != pattern->ranged ||
			memcmp(mask->full, pattern->mask, sizeof(mask->full)) != 0))
		mask = mask->same_hash;
	return mask;
}

/* The hash of a rule's words: flower_hash() of a key that it matches. */
static uint32_t
rule_hash(const struct classifier_rule *rule)
{
	const struct flower_mask *mask = rule_mask(rule);
	uint64_t h = mask->seed;

	for (unsigned int w = 0; w < mask->n_words; w++)
		h = hash_word(h, rule->words[w]);
	return hash_end(h);
}

static struct flower_mask *
mask_make(struct classifier_prio *prio, const struct flower_pattern *pattern)
{
	struct flower_mask *mask = slab_alloc(prio->classifier->slab, sizeof(*mask));

	if (mask == NULL)
		return NULL;
	rule_table_init(
		&mask->table, &mask->few, prio->classifier->rcu, prio->classifier->slab, rule_hash);
	mask->prio = prio;
	mask->ranged = pattern->ranged;
	mask->parts = (uint8_t)flower_key_parts(pattern);
	mask->seed = rte_rand();
	memcpy(mask->full, pattern->mask, sizeof(mask->full));
	for (uint8_t w = 0; w < FLOWER_WORDS; w++) {
		if (pattern->mask[w] == 0)
			continue;
		mask->index[mask->n_words] = w;
		mask->word[mask->n_words++] = pattern->mask[w];
	}
	return mask;
}

static void
mask_free_unpublished(struct flower_mask *mask)
{
	while (!rule_table_fini(&mask->table, FINI_CHUNKS))
		;
	slab_free(mask);
}

/* At the end of the list: Linux tries masks in the order in which they came. */
static int
mask_publish(struct flower_mask *mask, uint32_t hash)
{
	struct flower *flower = &mask->prio->flower;

	mask->same_hash = index_map_find(&flower->by_hash, hash);
	if (index_map_set(&flower->by_hash, hash, mask) != 0)
		return -ENOMEM;
	mask->prev = flower->last;
	mask->number = mask->prev != NULL ? mask->prev->number + 1 : 0;
	/* Release: who finds the mask finds it whole. */
	atomic_store_explicit(mask->prev != NULL ? &mask->prev->next : &flower->first, mask,
		memory_order_release);
	flower->last = mask;
	return 0;
}

static void
mask_reclaim(struct rcu_head *head)
{
	struct flower_mask *mask = RTE_PTR_SUB(head, offsetof(struct flower_mask, rcu));

	/* A few chunks at a time: the tables of millions take milliseconds to free. */
	if (rule_table_fini(&mask->table, FINI_CHUNKS))
		slab_free(mask);
	else
		rcu_defer(mask->table.rcu, head, mask_reclaim);
}

static struct flower_mask *
next_of(const struct flower_mask *mask)
{
	return atomic_load_explicit(&mask->next, memory_order_relaxed);
}

static void
unlink_same_hash(struct flower *flower, struct flower_mask *mask)
{
	struct flower_pattern pattern = { .ranged = mask->ranged };
	struct flower_mask *before;
	uint32_t hash;

	memcpy(pattern.mask, mask->full, sizeof(pattern.mask));
	hash = pattern_hash(&pattern);
	before = index_map_find(&flower->by_hash, hash);
	if (before != mask) {
		while (before->same_hash != mask)
			before = before->same_hash;
		before->same_hash = mask->same_hash;
	} else if (mask->same_hash != NULL) {
		/* In place of one that is there: cannot fail. */
		(void)index_map_set(&flower->by_hash, hash, mask->same_hash);
	} else {
		index_map_del(&flower->by_hash, hash);
	}
}

/* A worker that stands on it goes on by its next pointer, as with priorities. */
static void
mask_unpublish(struct flower_mask *mask)
{
	struct flower *flower = &mask->prio->flower;
	struct flower_mask *next = next_of(mask);

	atomic_store_explicit(mask->prev != NULL ? &mask->prev->next : &flower->first, next,
		memory_order_release);
	if (next != NULL)
		next->prev = mask->prev;
	else
		flower->last = mask->prev;
	unlink_same_hash(flower, mask);
	rcu_defer(mask->table.rcu, &mask->rcu, mask_reclaim);
}

void
flower_fini_soon(const struct classifier_prio *prio)
{
	const struct flower_mask *mask =
		atomic_load_explicit(&prio->flower.first, memory_order_relaxed);

	if (mask == NULL)
		return;
	rte_prefetch0(mask);
	rte_prefetch0(&mask->table.buckets);
	for (size_t at = 0; at < sizeof(mask->few); at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0((const uint8_t *)&mask->few + at);
}

bool
flower_fini(struct classifier_prio *prio)
{
	struct flower *flower = &prio->flower;
	struct flower_mask *mask = atomic_load_explicit(&flower->first, memory_order_relaxed),
			   *next;

	if (mask != NULL) {
		if (!rule_table_fini(&mask->table, FINI_CHUNKS))
			return false;
		next = next_of(mask);
		slab_free(mask);
		atomic_store_explicit(&flower->first, next, memory_order_relaxed);
		if (next != NULL)
			return false;
	}
	index_map_clear(&flower->by_hash);
	return true;
}

/*
 * The live rule with the same words as `rule`, or NULL; and a replaced form of what `lead` leads to
 * with those words, in *form.
 */
static struct classifier_rule *
find_equal(const struct flower_mask *mask, uint32_t hash, const struct classifier_rule *rule,
	const struct rule_lead *lead, struct classifier_rule **form)
{
	const struct bucket *b = rule_table_bucket(&mask->table, hash);

	for (; b != NULL; b = atomic_load_explicit(&b->more, memory_order_relaxed)) {
		for (unsigned int e = 0; e < BUCKET_ENTRIES; e++) {
			uint64_t entry = atomic_load_explicit(&b->entry[e], memory_order_relaxed);
			struct classifier_rule *there = entry_rule(entry);

			if (there == NULL || entry >> ENTRY_TAG_SHIFT != entry_tag(hash) ||
				memcmp(there->words, rule->words,
					rule->n_words * sizeof(rule->words[0])) != 0)
				continue;
			if (atomic_load_explicit(&there->state, memory_order_relaxed) == RULE_LIVE)
				return there;
			if (lead != NULL && rule_lead(there) == lead)
				*form = there;
		}
	}
	return NULL;
}

static void
fill_words(struct classifier_rule *rule, struct flower_mask *mask,
	const struct flower_pattern *pattern)
{
	atomic_init(&rule->under, (uintptr_t)mask);
	for (unsigned int w = 0; w < mask->n_words; w++)
		rule->words[w] = pattern->key[mask->index[w]];
	if (mask->ranged != 0)
		rule->words[mask->n_words] = pattern->range;
}

/* Makes it a form of what the lead leads to. */
static int
give_form(struct classifier_rule *rule, struct rule_lead *lead)
{
	struct rule_form *form = malloc(sizeof(*form));

	if (form == NULL)
		return -ENOMEM;
	form->mask = rule_mask(rule);
	form->lead = lead;
	lead->refs++;
	/* Release: who finds the form finds it whole. */
	atomic_store_explicit(&rule->under, (uintptr_t)form | RULE_FORM, memory_order_release);
	return 0;
}

/* Has `old`, and with it all its earlier forms, share a lead with `rule`. */
static int
share_lead(struct classifier_rule *old, struct classifier_rule *rule)
{
	struct rule_lead *lead = rule_lead(old);

	if (lead == NULL) {
		if ((lead = calloc(1, sizeof(*lead))) == NULL)
			return -ENOMEM;
		atomic_init(&lead->rule, old);
		if (give_form(old, lead) != 0) {
			free(lead);
			return -ENOMEM;
		}
	}
	return give_form(rule, lead);
}

static void
lead_to(struct rule_lead *lead, struct classifier_rule *rule)
{
	/* Release: who comes by way of a replaced form sees the rule whole. */
	if (lead != NULL)
		atomic_store_explicit(&lead->rule, rule, memory_order_release);
}

void
flower_forget(struct classifier_rule *rule)
{
	struct rule_form *form = rule_form(rule);

	if (form == NULL)
		return;
	/* Nobody else sees the rule. */
	atomic_store_explicit(&rule->under, (uintptr_t)form->mask, memory_order_relaxed);
	if (--form->lead->refs == 0)
		free(form->lead);
	free(form);
}

/* Both are in the same table, and a packet could match both: they change places. */
static bool
same_place(const struct classifier_rule *old, const struct classifier_rule *rule)
{
	const struct flower_mask *mask = rule_mask(rule);

	return rule_mask(old) == mask &&
		memcmp(old->words, rule->words, mask->n_words * sizeof(old->words[0])) == 0;
}

/* The new form is where workers find it: what becomes of the old one. */
static enum flower_old
put_aside(struct classifier_rule *old, struct classifier_rule *rule)
{
	struct flower_mask *mask = rule_mask(old);

	lead_to(rule_lead(rule), rule);
	if (mask == rule_mask(rule)) {
		/* No packet matches both. */
		rule_table_remove(&mask->table, rule_hash(old), old);
		return FLOWER_OLD_GONE;
	}
	/* Release: who sees the state sees the lead. */
	atomic_store_explicit(&old->state, RULE_REPLACED, memory_order_release);
	return FLOWER_OLD_LINGERS;
}

/*
 * Puts the rule into the table. `form`, a replaced form of it with the same key, gives way to it,
 * so that a table has at most one entry for each key of a rule, however often that changes.
 */
static int
place_rule(struct classifier_rule *rule, struct classifier_rule *old, struct classifier_rule *form,
	uint32_t hash, enum flower_old *fate)
{
	struct rule_table *table = &rule_mask(rule)->table;
	int rc;

	if (old != NULL && (rule_form(old) != NULL || rule_mask(old) != rule_mask(rule)) &&
		(rc = share_lead(old, rule)) != 0)
		return rc;
	if (old != NULL && same_place(old, rule)) {
		rule_table_swap(table, hash, old, rule);
		lead_to(rule_lead(rule), rule);
		*fate = FLOWER_OLD_GONE;
		return 0;
	}
	if (form != NULL) {
		rule_table_swap(table, hash, form, rule);
		form->unlinked = true;
	} else if ((rc = rule_table_insert(table, hash, rule)) != 0) {
		flower_forget(rule);
		return rc;
	}
	if (old != NULL)
		*fate = put_aside(old, rule);
	return 0;
}

int
flower_publish(struct classifier_prio *prio, const struct flower_pattern *pattern,
	struct classifier_rule *rule, struct classifier_rule *old, enum flower_old *fate)
{
	uint32_t mask_hash = pattern_hash(pattern), hash;
	struct flower_mask *mask = mask_find(&prio->flower, pattern, mask_hash), *fresh = NULL;
	struct classifier_rule *equal, *form = NULL;
	int rc = -ENOMEM;

	if (mask == NULL && (mask = fresh = mask_make(prio, pattern)) == NULL)
		return -ENOMEM;
	fill_words(rule, mask, pattern);
	hash = rule_hash(rule);
	equal = find_equal(mask, hash, rule, old != NULL ? rule_lead(old) : NULL, &form);
	if (equal != NULL && equal != old)
		return -EEXIST;
	if (fresh != NULL && (rc = mask_publish(fresh, mask_hash)) != 0) {
		mask_free_unpublished(fresh);
		return rc;
	}
	if ((rc = place_rule(rule, old, form, hash, fate)) != 0 && fresh != NULL)
		mask_unpublish(fresh);
	return rc;
}

void
flower_unpublish(struct classifier_rule *rule)
{
	struct flower_mask *mask = rule_mask(rule);

	if (rule->unlinked)
		return;
	if (atomic_load_explicit(&rule->state, memory_order_relaxed) == RULE_LIVE)
		lead_to(rule_lead(rule), NULL);
	rule_table_remove(&mask->table, rule_hash(rule), rule);
	if (mask->table.count == 0)
		mask_unpublish(mask);
}

void
flower_show(const struct classifier_rule *rule, struct flower_match *match)
{
	const struct flower_mask *mask = rule_mask(rule);
	uint64_t key[FLOWER_WORDS] = { 0 }, range;
	uint16_t present;

	for (unsigned int w = 0; w < mask->n_words; w++)
		key[mask->index[w]] = rule->words[w];
	*match = (struct flower_match){ 0 };
	memcpy(&match->key, key, sizeof(match->key));
	memcpy(&match->mask, mask->full, sizeof(match->mask));
	present = match->key.present;
	match->addresses = (present & FLOWER_HAS_IPV4) != 0 ? FLOWER_IPV4
		: (present & FLOWER_HAS_IPV6) != 0          ? FLOWER_IPV6
		: (present & FLOWER_HAS_ARP) != 0           ? FLOWER_ARP
							    : FLOWER_NO_ADDRESSES;
	match->key.present = match->mask.present = 0;
	if (mask->ranged == 0)
		return;
	range = rule->words[mask->n_words];
	match->src_ports = (struct flower_range){ (uint16_t)range, (uint16_t)(range >> 16) };
	match->dst_ports =
		(struct flower_range){ (uint16_t)(range >> 32), (uint16_t)(range >> 48) };
}
