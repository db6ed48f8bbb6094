/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_CHAIN_H
#define CLASSIFIER_CHAIN_H

/*
 * Inside lib/classifier: blocks, chains, priorities and rules as memory. Workers follow pointers
 * marked "workers"; all else is the control thread's.
 */

#include "action/index_map.h"
#include "classifier/classifier.h"

struct classifier {
	struct rcu *rcu;
	struct action_table *actions;
	struct counter_table *counters;
	struct classifier_rule_conf shown; /* what classifier_rule_conf() returned last */
};

struct classifier_block {
	_Atomic(struct classifier_chain *) first; /* workers: chain 0, NULL if it has no priority */
	struct index_map chains; /* workers: by index, for goto */
	struct classifier *classifier;
	uint64_t generation;
	uint32_t refs;
	struct rcu_head rcu;
};

struct classifier_chain {
	_Atomic(struct classifier_prio *) first; /* workers: by rising priority */
	struct classifier_block *block;
	uint32_t index;
	bool explicit; /* by `tc chain add` */
	/* The same priorities, sorted, for look-up. At most 65535, so that a move costs
	 * microseconds. */
	struct classifier_prio **prios;
	uint32_t n_prios, room;
	struct rcu_head rcu;
};

/* All rules of one priority: one protocol, one kind. */
struct classifier_prio {
	_Atomic(struct classifier_prio *) next; /* workers */
	uint16_t protocol; /* workers: host order, ETH_P_ALL: any */
	uint8_t kind; /* workers: enum classifier_kind */
	uint32_t prio;
	_Atomic(struct classifier_rule *) rule; /* workers: matchall's one rule */
	struct classifier_chain *chain;
	struct classifier *classifier;
	struct index_map rules; /* by handle */
	struct rcu_head rcu;
};

struct classifier_rule {
	/* workers */
	uint32_t counter; /* packets and bytes that matched */
	uint32_t classid;
	/* control thread */
	uint32_t handle;
	uint32_t flags;
	struct classifier_prio *prio;
	struct rcu_head rcu;
	/* workers */
	struct action_list actions; /* ends in a flexible array */
};

#define CLASSIFIER_PRIO_MAX 65535

static inline const struct action_list *
rule_actions(const struct classifier_rule *rule)
{
	return &rule->actions;
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
