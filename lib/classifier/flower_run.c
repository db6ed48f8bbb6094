/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Looking packets up in flower's tables: for each mask all packets together, so that the cache
 * misses of one hide behind those of the others.
 */

#include <rte_byteorder.h>
#include <rte_prefetch.h>

#include "classifier/flower_mask.h"

static inline bool
in_range(rte_be16_t port, uint32_t range)
{
	uint16_t p = rte_be_to_cpu_16(port);

	return p >= (uint16_t)range && p <= range >> 16;
}

static bool
ranges_match(
	const struct flower_mask *mask, const struct classifier_rule *rule, const uint64_t *words)
{
	uint64_t range = rule->words[mask->n_words];
	struct flower_key key;

	memcpy(&key, words, sizeof(key));
	if ((mask->ranged & RANGED_SRC) != 0 && !in_range(key.src_port, (uint32_t)range))
		return false;
	return (mask->ranged & RANGED_DST) == 0 || in_range(key.dst_port, (uint32_t)(range >> 32));
}

static inline bool
key_matches(const struct flower_mask *mask, const struct classifier_rule *rule, const uint64_t *key)
{
	return flower_matches(mask, rule, key) &&
		(mask->ranged == 0 || ranges_match(mask, rule, key));
}

/* What took the place of a replaced rule, if the packet matches that; else NULL. */
static const struct classifier_rule *
follow(const struct classifier_rule *rule, const uint64_t *key)
{
	/* Acquire: pairs with the release of lead_to(). It may be replaced in turn: still whole. */
	rule = atomic_load_explicit(&rule_lead(rule)->rule, memory_order_acquire);
	return rule != NULL && key_matches(rule_mask(rule), rule, key) ? rule : NULL;
}

static inline bool
is_live(const struct classifier_rule *rule)
{
	/* Acquire: pairs with the release that ended its life, for what it then leads to. */
	return __builtin_expect(
		atomic_load_explicit(&rule->state, memory_order_acquire) == RULE_LIVE, 1);
}

/*
 * Looks at every entry. Where ranges let several match, the lowest handle is it. A replaced rule
 * counts only where no live one matches.
 */
static __attribute__((noinline)) const struct classifier_rule *
search(const struct flower_mask *mask, const struct bucket *b, uint32_t hash, const uint64_t *key)
{
	const struct classifier_rule *best = NULL, *led = NULL, *rule;

	for (; b != NULL; b = atomic_load_explicit(&b->more, memory_order_acquire)) {
		for (unsigned int e = 0; e < BUCKET_ENTRIES; e++) {
			/* Acquire: pairs with the release that published the rule. */
			uint64_t entry = atomic_load_explicit(&b->entry[e], memory_order_acquire);

			if (entry >> ENTRY_TAG_SHIFT != entry_tag(hash) ||
				(rule = entry_rule(entry)) == NULL || !key_matches(mask, rule, key))
				continue;
			if (!is_live(rule))
				led = follow(rule, key);
			else if (mask->ranged == 0)
				return rule;
			else if (best == NULL || rule->handle < best->handle)
				best = rule;
		}
	}
	return best != NULL ? best : led;
}

/*
 * A rule of the line whose entry has the hash's tag, or NULL. Empty entries have tag 0: where that
 * is the hash's too, NULL says nothing.
 */
static inline const struct classifier_rule *
candidate(const struct bucket *b, uint32_t hash)
{
	uint64_t tag = entry_tag(hash);
	unsigned int found = 1u << BUCKET_ENTRIES;

#pragma GCC unroll 7
	for (unsigned int e = 0; e < BUCKET_ENTRIES; e++)
		found |= (unsigned int)(atomic_load_explicit(&b->entry[e], memory_order_relaxed) >>
					 ENTRY_TAG_SHIFT ==
				 tag)
			<< e;
	if ((found & ((1u << BUCKET_ENTRIES) - 1)) == 0)
		return NULL;
	/* Acquire: pairs with the release that published the rule. */
	return entry_rule(
		atomic_load_explicit(&b->entry[__builtin_ctz(found)], memory_order_acquire));
}

/* True if a rule with that hash may be there although candidate() found none. */
static inline bool
may_be_elsewhere(const struct bucket *b, uint32_t hash)
{
	/* Relaxed: whoever goes there acquires it. */
	return atomic_load_explicit(&b->more, memory_order_relaxed) != NULL || entry_tag(hash) == 0;
}

/* One mask. Packets in `mask` are tried; returns those that match. */
static uint64_t
lookup_mask(const struct flower_mask *fm, uint64_t (*keys)[FLOWER_WORDS], uint64_t mask,
	const struct classifier_rule **rule)
{
	const struct bucket *bucket[PACKET_VECTOR_MAX];
	const struct classifier_rule *maybe[PACKET_VECTOR_MAX];
	uint32_t hash[PACKET_VECTOR_MAX];
	uint64_t matched = 0;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		hash[i] = flower_hash(fm, keys[i]);
		bucket[i] = rule_table_bucket(&fm->table, hash[i]);
		rte_prefetch0(bucket[i]);
	}
	packet_mask_for_each (i, mask) {
		maybe[i] = candidate(bucket[i], hash[i]);
		rte_prefetch0(maybe[i]);
		/* As a number: there may be none. */
		rte_prefetch0((const void *)((uintptr_t)maybe[i] + RTE_CACHE_LINE_SIZE));
	}
	packet_mask_for_each (i, mask) {
		const struct classifier_rule *found = maybe[i];

		/* Perhaps another entry has the tag, or one in a further line. */
		if (found == NULL ? may_be_elsewhere(bucket[i], hash[i])
				  : fm->ranged != 0 || !flower_matches(fm, found, keys[i]) ||
					!is_live(found))
			found = search(fm, bucket[i], hash[i], keys[i]);
		rule[i] = found;
		matched |= (uint64_t)(found != NULL) << i;
	}
	return matched;
}

uint64_t
flower_lookup(const struct flower *flower, struct flower_keys *keys,
	const struct packet_vector *vector, uint64_t mask, const struct classifier_rule **rule)
{
	const struct flower_mask *fm;
	uint64_t matched = 0, here;

	/* Acquire: pairs with the release of mask_publish(). */
	for (fm = atomic_load_explicit(&flower->first, memory_order_acquire);
		fm != NULL && mask != 0;
		fm = atomic_load_explicit(&fm->next, memory_order_acquire)) {
		flower_keys_ensure(keys, vector, mask, fm->parts);
		here = lookup_mask(fm, keys->key, mask, rule);
		matched |= here;
		mask &= ~here;
	}
	return matched;
}
