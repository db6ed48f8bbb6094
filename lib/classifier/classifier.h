/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_CLASSIFIER_H
#define CLASSIFIER_CLASSIFIER_H

/*
 * tc's classifier: hooks that packets pass, blocks of chains, chains of filters by priority, and
 * in each priority the rules of one kind (matchall, flower). Linux behaviour: net/sched/cls_api.c.
 *
 *   hook -> block -> chain 0 -> (priority, protocol) -> rules -> action list -> verdict
 *
 * Rules, masks and priorities stand in lists and tables that change in place behind RCU. A rule is
 * published complete and valid, or not at all; a change of one is a single step for packets. What
 * is taken out is freed after a grace period, large amounts a little at a time. doc/classifier.md
 * tells the order of evaluation and where it differs from Linux.
 *
 * Thread safety: one control thread calls everything but classifier_hook_block() and
 * classifier_run(), which workers call between two of their quiescent reports. A refused call
 * changed nothing.
 */

#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "action/action.h"
#include "packet/packet.h"
#include "rcu/rcu.h"

struct classifier;
struct classifier_block;
struct classifier_rule;
struct flower_match;

/* Where packets meet rules: embed one for each port and direction. Zero is "no block: everything
 * passes". */
struct classifier_hook {
	_Atomic(struct classifier_block *) block;
};

/* Why the classifier dropped a packet. Index of a drop counter of the caller's. */
#define CLASSIFIER_DROP_LIST(X) \
	X(SHOT, "tc_shot", "dropped by a tc action") \
	X(GOTO_MISSING, "tc_goto_missing", "goto chain to a chain that does not exist") \
	X(LOOP, "tc_loop", "reclassify or goto chain without end") \
	X(STOLEN, "tc_stolen", "verdict stolen, queued or trap: no one here takes such packets")

enum classifier_drop {
#define X(id, name, text) CLASSIFIER_DROP_##id,
	CLASSIFIER_DROP_LIST(X)
#undef X
	CLASSIFIER_DROP_MAX
};

/*
 * What became of a vector: masks over its positions, together all of it and disjoint.
 * Packets in `dropped` are the caller's to count and free, those in `redirected` to send to
 * target[i] (an ifindex; bit 31: into its ingress).
 */
struct classifier_result {
	uint64_t passed;
	uint64_t redirected;
	uint64_t classed; /* whose packet_meta got the class of a rule */
	uint64_t dropped[CLASSIFIER_DROP_MAX];
	uint32_t target[PACKET_VECTOR_MAX];
};

/* What classifier_run() needs beside the packets; constant for a worker. */
struct classifier_worker {
	unsigned int worker; /* 0 .. n_workers - 1 */
	int meta_offset; /* of struct packet_meta, from packet_meta_register() */
	void (*mirror)(void *arg, unsigned int worker, uint32_t ifindex, bool ingress,
		struct rte_mbuf *const *pkts, uint64_t mask); /* see struct action_burst */
	void *mirror_arg;
};

/* True if packets of this hook have to be run; a worker's one load when there are no filters. */
static inline struct classifier_block *
classifier_hook_block(const struct classifier_hook *hook)
{
	return atomic_load_explicit(&hook->block, memory_order_acquire);
}

/*
 * Runs the vector through `block` (from classifier_hook_block(), not NULL), whose filters see
 * `ifindex` as the packets' incoming device; 0: that of each packet, in packet_meta. Parses views
 * only if a rule or action needs them. Worker.
 */
void classifier_run(struct classifier_block *block, const struct classifier_worker *worker,
	uint32_t ifindex, struct packet_vector *vector, struct classifier_result *result);

/*
 * Makes an empty classifier for the actions of `actions`. Both handles must outlive it.
 * NULL and rte_errno: EINVAL, ENOMEM.
 */
struct classifier *classifier_create(struct rcu *rcu, struct action_table *actions);
void classifier_destroy(struct classifier *classifier);

/*
 * Blocks. A new block has no chain and one reference. Publishing it in a hook and taking it out
 * again are release stores by the caller through classifier_hook_set(); put frees rules and block
 * after a grace period. -ENOMEM.
 */
int classifier_block_create(struct classifier *classifier, struct classifier_block **out);
void classifier_block_get(struct classifier_block *block);
void classifier_block_put(struct classifier_block *block);
void classifier_hook_set(struct classifier_hook *hook, struct classifier_block *block);

/*
 * Chains. A chain is there while it has rules or was added here (`tc chain add`). A packet sent to
 * a chain that is not there is dropped and counted.
 *
 * add: 0, -EEXIST (there already), -EINVAL (beyond TC_ACT_EXT_VAL_MASK), -ENOMEM. del: with all its
 * rules; 0 or -EINVAL if there is none, as Linux says. next: the first chain with an index >=
 * *index, which is then that; false at the end. exists: by its index.
 */
int classifier_chain_add(struct classifier_block *block, uint32_t index, const char **why);
int classifier_chain_del(struct classifier_block *block, uint32_t index, const char **why);
bool classifier_chain_next(struct classifier_block *block, uint32_t *index);
bool classifier_chain_exists(struct classifier_block *block, uint32_t index);
/* True if it was added here: it stays when its last rule goes. */
bool classifier_chain_explicit(struct classifier_block *block, uint32_t index);

/*
 * The template of a chain: it takes flower rules only, and of these only masks whose bits are all
 * in the template's; what the template's keys say does not matter. Linux behaviour:
 * fl_tmplt_create(), fl_mask_fits_tmplt().
 *
 * add: as classifier_chain_add(), with a copy of `match`, which goes when the chain goes; also
 * -EINVAL with a sentence for a match that no rule could have. template: that copy, or NULL if the
 * chain has none; valid until the chain goes.
 */
int classifier_chain_add_template(struct classifier_block *block, uint32_t index,
	const struct flower_match *match, const char **why);
const struct flower_match *
classifier_chain_template(const struct classifier_block *block, uint32_t index);

/* Kinds of filter. */
enum classifier_kind {
	CLASSIFIER_MATCHALL,
	CLASSIFIER_FLOWER,
};

/* Where a rule stands. */
struct classifier_place {
	uint32_t chain;
	uint32_t prio; /* 1 .. 65535 as tc's `pref`; 0 when adding: Linux's automatic choice */
	uint16_t protocol; /* ETH_P_* in host order; ETH_P_ALL: any */
	uint32_t handle; /* within the priority; 0 when adding: the next free one */
	enum classifier_kind kind;
};

/* What a rule is made of. `actions` are bound by the classifier on success (action_get(.., true)).
 */
struct classifier_rule_conf {
	struct classifier_place place;
	uint32_t classid; /* TCA_*_CLASSID, 0: none */
	uint32_t flags; /* TCA_CLS_FLAGS_* as asked (skip_hw), for the dump */
	/* CLASSIFIER_FLOWER: what to match, else NULL. Copied. */
	const struct flower_match *flower;
	uint32_t n_actions;
	struct action *actions[ACTION_LIST_MAX];
};

/* NLM_F_CREATE, NLM_F_EXCL and NLM_F_REPLACE as tc sends them, in Linux's meaning for filters. */
#define CLASSIFIER_CREATE 1
#define CLASSIFIER_EXCL 2

/*
 * Adds a rule, or changes the one at the place atomically (no packet misses both or sees neither).
 * On error `*why` names the trouble in a constant sentence (NULL: none); -EEXIST, -ENOENT, -EINVAL
 * (also for what the chain's template excludes), -ENOSPC, -ENOMEM as Linux's tc_new_tfilter().
 * *out (may be NULL) is the rule as it stands, its place filled in.
 */
int classifier_rule_set(struct classifier_block *block, const struct classifier_rule_conf *conf,
	unsigned int flags, struct classifier_rule **out, const char **why);

/* The rule at a place (prio and handle given; protocol must agree unless 0), or NULL. O(1). */
struct classifier_rule *
classifier_rule_find(struct classifier_block *block, const struct classifier_place *place);

/* Unpublishes the rule and frees it after a grace period. */
void classifier_rule_del(struct classifier_rule *rule);

/*
 * Deletes all rules of (chain, prio; protocol must agree unless 0) or, with prio 0, of the chain.
 * They match no packet any more when this returns; memory and bound actions of a large number of
 * rules come back over the next grace periods, so that nobody waits. As Linux: -ENOENT if there is
 * no such chain or priority, -EINVAL if its protocol is another; prio 0 with no such chain is 0.
 */
int classifier_flush(struct classifier_block *block, uint32_t chain, uint32_t prio,
	uint16_t protocol, const char **why);

/*
 * What a rule says of itself, unpacked into the classifier's one buffer: valid until the next call
 * that returns one.
 */
const struct classifier_rule_conf *classifier_rule_conf(const struct classifier_rule *rule);
/* Where it stands, which is less to ask for. */
struct classifier_place classifier_rule_place(const struct classifier_rule *rule);
/*
 * Who comes first where several rules of a priority match: the one with the lower rank, the lower
 * handle among equals. flower asks its masks in the order in which they came, so rules that are
 * added by rising rank are ranked as these are. O(1).
 */
uint64_t classifier_rule_rank(const struct classifier_rule *rule);
/* Packets that matched (TCA_MATCHALL_PCNT). */
uint64_t classifier_rule_hits(const struct classifier_rule *rule);

/*
 * Walks a block's rules in dump order (chain, prio, handle): the first after `*at`, whose fields
 * are then that rule's. A zeroed place begins. NULL at the end. A dump resumes by keeping `*at`.
 */
struct classifier_rule *
classifier_rule_next(struct classifier_block *block, struct classifier_place *at);

/* Changes with every change of the block: a dump that saw two values says NLM_F_DUMP_INTR. */
uint64_t classifier_block_generation(const struct classifier_block *block);

#endif /* CLASSIFIER_CLASSIFIER_H */
