/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_FLOWER_MASK_H
#define CLASSIFIER_FLOWER_MASK_H

/*
 * Inside lib/classifier: rules of one flower mask in one hash table. A packet matches at most one
 * rule of a mask without ranges: look-up is one hash of the words that the mask touches.
 */

#include <stddef.h>
#include <string.h>

#include "classifier/chain.h"
#include "classifier/rule_table.h"

/* Parts of a packet's key, read from the frame only if some rule of the block needs them. */
enum key_part {
	KEY_LINK = 0x1, /* words 6, 7, 8 */
	KEY_NETWORK = 0x2, /* word 0, words 2 to 5 */
	KEY_TRANSPORT = 0x4 /* word 1 */
};

/* A match as the tables have it: words, key & mask, what the keys ask for added. */
struct flower_pattern {
	uint64_t key[FLOWER_WORDS], mask[FLOWER_WORDS];
	uint64_t range; /* source min and max, destination min and max, of 16 bits each from the
			   lowest */
	uint8_t ranged; /* RANGED_* */
};
#define RANGED_SRC 1
#define RANGED_DST 2

/* What workers read lies in lines that a change of a rule does not touch. */
struct flower_mask {
	/* control thread */
	struct flower_mask *prev, *same_hash;
	uint64_t number; /* rises along the list */
	struct classifier_prio *prio;
	struct rule_table table; /* workers: table.buckets, which ends it */
	/* workers */
	_Atomic(struct flower_mask *) next;
	uint64_t seed;
	uint8_t n_words;
	uint8_t ranged;
	uint8_t parts; /* KEY_*: what it looks at */
	uint8_t index[FLOWER_WORDS]; /* of words that are not 0 */
	uint64_t word[FLOWER_WORDS]; /* those words */
	/* control thread */
	uint64_t full[FLOWER_WORDS];
	struct rcu_head rcu;
	struct rule_table_first few; /* workers */
} __rte_cache_aligned;
static_assert(offsetof(struct flower_mask, table.buckets) == RTE_CACHE_LINE_SIZE &&
		offsetof(struct flower_mask, word[3]) <= 2 * RTE_CACHE_LINE_SIZE,
	"a mask of three words is one line for a look-up");

/* One step of the hash. */
static inline uint64_t
hash_word(uint64_t h, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(h ^ word) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t
hash_end(uint64_t h)
{
	return (uint32_t)(h ^ h >> 32);
}

/* The hash of a packet's key under a mask. */
static inline uint32_t
flower_hash(const struct flower_mask *mask, const uint64_t *key)
{
	uint64_t h = mask->seed;

	for (unsigned int w = 0; w < mask->n_words; w++)
		h = hash_word(h, key[mask->index[w]] & mask->word[w]);
	return hash_end(h);
}

/* True if the packet with that key matches the rule, a rule of `mask`. */
static inline bool
flower_matches(
	const struct flower_mask *mask, const struct classifier_rule *rule, const uint64_t *key)
{
	uint64_t differ = 0;

	for (unsigned int w = 0; w < mask->n_words; w++)
		differ |= (key[mask->index[w]] & mask->word[w]) ^ rule->words[w];
	return differ == 0;
}

/* What has become of a replaced rule. */
enum flower_old {
	FLOWER_OLD_GONE, /* no worker comes to it any more */
	FLOWER_OLD_LINGERS, /* it leads on: flower_unpublish() it after a grace period */
};

/* flower.c */
void flower_init(struct classifier_prio *prio);
/*
 * Frees what the tables of a priority take that no worker sees, a little at a time. True when all
 * is freed.
 */
bool flower_fini(struct classifier_prio *prio);
/* Has the caches fetch what that touches first: worth it a while before, not right before. */
void flower_fini_soon(const struct classifier_prio *prio);
/* -EINVAL with a sentence for what cannot match, or contradicts itself. */
int
flower_compile(const struct flower_match *match, struct flower_pattern *pattern, const char **why);
/* A copy for free(), or NULL. */
struct flower_match *flower_copy(const struct flower_match *match);
/* Whether all bits that `match` compares are among those of `within`. */
bool flower_fits(const struct flower_match *match, const struct flower_match *within);
/* Words that rules of this pattern keep. */
uint32_t flower_n_words(const struct flower_pattern *pattern);
/*
 * Publishes `rule` (complete but for its words and mask), in place of `old` if that is not NULL,
 * whose fate it tells.
 * -EEXIST: another rule has the same key. -ENOMEM. Nothing changed then.
 */
int flower_publish(struct classifier_prio *prio, const struct flower_pattern *pattern,
	struct classifier_rule *rule, struct classifier_rule *old, enum flower_old *fate);
/* Takes the rule out of where workers find it. */
void flower_unpublish(struct classifier_rule *rule);
/* Frees what else a rule has that is about to be freed. */
void flower_forget(struct classifier_rule *rule);
void flower_show(const struct classifier_rule *rule, struct flower_match *match);

/* flower_key.c */
/* The keys of a vector, read when a mask first needs them. */
struct flower_keys {
	uint64_t valid; /* packets whose key is read */
	uint32_t parts; /* KEY_* of them that are read */
	uint32_t ifindex; /* where all of them came in; 0: as their packet_meta says */
	int meta_offset;
	union {
		uint64_t key[PACKET_VECTOR_MAX][FLOWER_WORDS];
		struct flower_key fields[PACKET_VECTOR_MAX];
	};
};

/* Reads the keys of packets in `mask`, at least `parts` of them. Views are parsed. */
void flower_keys_read(struct flower_keys *keys, const struct packet_vector *vector, uint64_t mask,
	uint32_t parts);
uint32_t flower_key_parts(const struct flower_pattern *pattern);

/* Makes sure of them. */
static inline void
flower_keys_ensure(
	struct flower_keys *keys, const struct packet_vector *vector, uint64_t mask, uint32_t parts)
{
	if ((mask & ~keys->valid) != 0 || (parts & ~keys->parts) != 0)
		flower_keys_read(keys, vector, mask, parts);
}

/* flower_run.c */
/* The rules that packets in `mask` match, in rule[]; returns those that match any. */
uint64_t flower_lookup(const struct flower *flower, struct flower_keys *keys,
	const struct packet_vector *vector, uint64_t mask, const struct classifier_rule **rule);

#endif /* CLASSIFIER_FLOWER_MASK_H */
