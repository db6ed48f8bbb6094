/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_CHAIN_H
#define CLASSIFIER_CHAIN_H

/*
 * Inside lib/classifier: blocks, chains, priorities and rules as memory. Workers follow pointers
 * marked "workers"; all else is the control thread's.
 */

#include <stddef.h>

#include <rte_common.h>

#include "action/index_map.h"
#include "classifier/classifier.h"
#include "classifier/flower.h"

struct classifier {
	struct rcu *rcu;
	struct action_table *actions;
	struct counter_table *counters;
	struct slab *slab; /* its owner is `actions` */
	/* What classifier_rule_conf() returned last; workers read what stands before. */
	struct classifier_rule_conf shown __rte_cache_aligned;
	struct flower_match shown_match;
};

struct classifier_block {
	_Atomic(struct classifier_chain *) first; /* workers: chain 0, NULL if it has no priority */
	struct classifier *classifier; /* workers */
	_Atomic uint32_t
		key_parts; /* workers: enum key_part that any flower rule here ever needed */
	struct index_map chains; /* workers: by index, for goto */
	uint64_t generation __rte_cache_aligned; /* with each change: not in a line of workers */
	uint32_t refs;
	struct rcu_head rcu;
};

struct classifier_chain {
	_Atomic(struct classifier_prio *) first; /* workers: by rising priority */
	struct classifier_block *block;
	uint32_t index;
	bool explicit; /* by `tc chain add` */
	struct flower_match *template; /* what masks of rules must fit in; NULL: any rule may come
					*/
	/* The same priorities, sorted, for look-up. At most 65535, so that a move costs
	 * microseconds. */
	struct classifier_prio **prios __rte_cache_aligned; /* workers read none of these */
	uint32_t n_prios, room;
	struct classifier_prio *only[1]; /* prios, as long as one is enough */
	struct rcu_head rcu;
};

struct flower_mask;

/* The masks of a flower priority, in the order in which they came. */
struct flower {
	_Atomic(struct flower_mask *) first; /* workers */
	struct flower_mask *last;
	struct index_map by_hash; /* of the mask; those with one hash are linked by same_hash */
};

/* All rules of one priority: one protocol, one kind. */
struct classifier_prio {
	_Atomic(struct classifier_prio *) next; /* workers */
	uint16_t protocol; /* workers: host order, ETH_P_ALL: any */
	uint8_t kind; /* workers: enum classifier_kind */
	bool reaped; /* removed, and its rules have been deferred */
	uint32_t prio;
	union {
		_Atomic(struct classifier_rule *) rule; /* workers: matchall's one rule */
		struct flower flower;
	};
	struct classifier_chain *chain;
	struct classifier *classifier;
	struct index_map rules; /* by handle */
	struct rcu_head rcu;
} __rte_cache_aligned;
static_assert(offsetof(struct classifier_prio, rules) >= RTE_CACHE_LINE_SIZE,
	"changes with each rule: not in the line of workers");

/*
 * A change that moves a rule under another mask leaves the old one in its table for a grace period:
 * a worker that had passed the other mask before comes to it, and goes on to what took its place.
 */
enum rule_state {
	RULE_LIVE,
	RULE_REPLACED,
};

/* Where all replaced forms of one rule lead. */
struct rule_lead {
	_Atomic(struct classifier_rule *) rule; /* workers: its form now, NULL once it is deleted */
	uint32_t refs; /* forms that know of it */
};

/* One form of such a rule. */
struct rule_form {
	struct flower_mask *mask;
	struct rule_lead *lead;
};

/*
 * One allocation: what the control thread needs, what workers need, the words of a flower key, the
 * list of actions. Millions of these: 80 bytes for an IPv4 five-tuple with one action.
 */
struct classifier_rule {
	union {
		struct classifier_prio *prio; /* while it is in force */
		struct rcu_head rcu; /* thereafter */
	};
	/*
	 * Workers, behind a lead: its struct flower_mask; with RULE_FORM the struct rule_form that
	 * knows it, if it ever was under another mask. 0: matchall.
	 */
	_Atomic uintptr_t under;
	uint32_t handle; /* workers, of rules with ranges */
	uint8_t flags; /* TCA_CLS_FLAGS_* */
	bool unlinked; /* replaced, and its place in the table is taken already */
	_Atomic uint8_t state; /* workers: enum rule_state */
	uint8_t n_words; /* workers */
	uint32_t hits; /* workers: half a slot, packets that matched */
	uint32_t classid; /* workers */
	uint64_t words[]; /* workers; struct action_list follows */
};
static_assert(sizeof(struct classifier_rule) == 40, "rules are counted in millions");
#define RULE_FORM 1 /* a bit that addresses leave free */

#define CLASSIFIER_PRIO_MAX 65535

static inline struct rule_form *
under_form(uintptr_t under)
{
	return (under & RULE_FORM) != 0 ? (struct rule_form *)(under & ~(uintptr_t)RULE_FORM)
					: NULL;
}

/* NULL: it never was under another mask. */
static inline struct rule_form *
rule_form(const struct classifier_rule *rule)
{
	/* Acquire, here and below: pairs with the release that gave it a form. */
	return under_form(atomic_load_explicit(&rule->under, memory_order_acquire));
}

static inline struct rule_lead *
rule_lead(const struct classifier_rule *rule)
{
	const struct rule_form *form = rule_form(rule);

	return form != NULL ? form->lead : NULL;
}

/* NULL: matchall. */
static inline struct flower_mask *
rule_mask(const struct classifier_rule *rule)
{
	uintptr_t under = atomic_load_explicit(&rule->under, memory_order_acquire);
	const struct rule_form *form = under_form(under);

	return form != NULL ? form->mask : (struct flower_mask *)under;
}

static inline const struct action_list *
rule_actions(const struct classifier_rule *rule)
{
	return (const struct action_list *)&rule->words[rule->n_words];
}

/* chain.c */
struct classifier_chain *chain_find(const struct classifier_block *block, uint32_t index);
struct classifier_chain *chain_make(struct classifier_block *block, uint32_t index);
void chain_free_unpublished(struct classifier_chain *chain);
int chain_publish(struct classifier_chain *chain);
/* Takes the chain away if nothing keeps it. */
void chain_release(struct classifier_chain *chain);
void chain_flush(struct classifier_chain *chain);

struct classifier_prio *prio_find(const struct classifier_chain *chain, uint32_t prio);
/* The priority that Linux gives a rule without one, 0 if there is none left. */
uint32_t prio_automatic(const struct classifier_chain *chain);
/* The first with prio >= `prio`, or NULL. */
struct classifier_prio *prio_next(const struct classifier_chain *chain, uint32_t prio);
struct classifier_prio *prio_make(struct classifier_chain *chain, uint32_t prio, uint16_t protocol,
	enum classifier_kind kind);
void prio_free_unpublished(struct classifier_prio *prio);
/* Room for one more, so that prio_publish() cannot fail. */
int prio_reserve(struct classifier_chain *chain);
void prio_publish(struct classifier_prio *prio);
/* Unpublishes the priority and everything in it. */
void prio_remove(struct classifier_prio *prio);

/* rule.c */
/* Gives back what an unpublished rule holds, and defers its memory. */
void rule_retire(struct classifier_rule *rule);

#endif /* CLASSIFIER_CHAIN_H */
