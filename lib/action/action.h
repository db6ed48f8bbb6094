/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ACTION_ACTION_H
#define ACTION_ACTION_H

/*
 * What every tc action has: an index within its kind, references (rules bound, and the one an
 * explicit `tc actions add` holds), a cookie, statistics, and parameters that a packet sees whole.
 *
 * An action is a shared object. Its parameters are one immutable snapshot, verdict included, which
 * a replace swaps for another (release store) and frees after a grace period; action_exec() loads
 * it once for each vector of packets. Linux behaviour: net/sched/act_api.c.
 *
 * Statistics are per worker: an id into per-worker arrays of slots (counter.h), so that millions of
 * actions cost no cache line each and no two workers share one.
 *
 * Thread safety: one control thread creates, changes, dumps and deletes. Workers call only
 * action_exec(), on lists they reached between two of their quiescent reports.
 */

#include <assert.h>
#include <linux/pkt_cls.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "action/counter.h"
#include "action/slab.h"
#include "rcu/rcu.h"

struct rte_mbuf;
struct packet_vector;
struct action;
struct action_table;

/* At most this many actions in one list (Linux: TCA_ACT_MAX_PRIO). */
#define ACTION_LIST_MAX 32
/* Bytes in a cookie (Linux: TC_COOKIE_MAX_SIZE). */
#define ACTION_COOKIE_MAX 16
/* Packets in a vector: a subset of them is a uint64_t. */
#define ACTION_VECTOR_MAX 64

/*
 * A verdict is Linux's int: TC_ACT_OK, _SHOT, _PIPE, _RECLASSIFY, _UNSPEC (continue), _STOLEN,
 * TC_ACT_REDIRECT (to burst->target[i]), TC_ACT_GOTO_CHAIN | chain, TC_ACT_JUMP | n.
 * ACTION_MIXED stands for "packets differ: see burst->verdict[]".
 */
#define ACTION_MIXED INT32_MIN

/* The packets that a list of actions is run on, and what came of them. One a worker, on its stack.
 */
struct action_burst {
	struct packet_vector
		*vector; /* views of the packets; actions with needs_views find them parsed */
	struct rte_mbuf **pkts; /* the same packets; an action may put another mbuf in a place */
	unsigned int worker; /* who runs: 0 .. n_workers - 1 */
	/*
	 * Sends copies of the packets in `mask` out of, or into, the port `ifindex`. The callee
	 * copies; it neither frees nor keeps pkts. Never NULL.
	 */
	void (*mirror)(void *arg, unsigned int worker, uint32_t ifindex, bool ingress,
		struct rte_mbuf *const *pkts, uint64_t mask);
	void *mirror_arg;
	int32_t verdict[ACTION_VECTOR_MAX]; /* valid where action_exec() returned ACTION_MIXED */
	uint32_t target[ACTION_VECTOR_MAX]; /* ifindex for TC_ACT_REDIRECT; bit 31: into its ingress
					     */
	int meta_offset; /* of struct packet_meta in the mbuf, from packet_meta_register() */
};

/*
 * A snapshot of parameters: immutable once published. A kind embeds it first in a struct of its
 * own, made by malloc() and freed by ops->params_free after a grace period. Actions that say the
 * same may share one: what lies before `verdict` is this library's.
 */
struct action_params {
	struct rcu_head rcu;
	const struct action_ops *ops; /* set when published */
	uint32_t refs; /* actions that have it, of those that workers can come to */
	bool in_slab; /* not from malloc() */
	uint32_t flags; /* TCA_ACT_FLAGS_* as asked (no_percpu); those now are the action's */
	int32_t verdict; /* TC_ACT_*, with the chain for goto */
	uint32_t goto_chain; /* = verdict & TC_ACT_EXT_VAL_MASK, for the dump; set when published */
	uint8_t cookie_len; /* 0: no cookie */
	uint8_t cookie[ACTION_COOKIE_MAX];
	uint32_t hw_stats; /* TCA_ACT_HW_STATS_* as asked; 0: any */
};

/* A kind of action. Constant; one object for each kind. */
struct action_ops {
	const char *kind; /* TCA_ACT_KIND: "csum" */
	uint32_t id; /* TCA_ID_*: 16; below ACTION_ID_MAX */
	bool needs_views; /* run() reads burst->vector->views */
	bool rewrites; /* run() may change what filters match on: headers, tags */
	/*
	 * Acts on pkts[i] for each bit i of mask (never 0). Returns the one verdict of all of them,
	 * or ACTION_MIXED with burst->verdict[i] set for each bit of mask. Adds to *drops the
	 * packets it gave TC_ACT_SHOT, to *overlimits those beyond a rate; packets and bytes are
	 * counted for it. Worker; must not block, allocate, print or free a packet.
	 */
	int32_t (*run)(const struct action *action, const struct action_params *params,
		struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits);
	/* Frees a snapshot that was never published or whose grace period is over. NULL: free(). */
	void (*params_free)(struct action_params *params);
	/*
	 * False if run() with these parameters never adds to *drops or *overlimits: millions of
	 * such actions then need no slots for them. NULL: it may.
	 */
	bool (*may_drop)(const struct action_params *params);
	/*
	 * Bytes of a snapshot that may be moved before it is published: all of them have one size,
	 * nothing points into them, params_free is NULL. They then cost less memory. 0: none of
	 * that.
	 */
	size_t params_size;
	bool params_change; /* run() writes into them: no two actions may share any */
};
#define ACTION_ID_MAX 64

struct action {
	_Atomic(struct action_params *) params;
	const struct action_ops *ops;
	uint32_t counter; /* packets and bytes */
	uint32_t drops; /* drops and overlimits; COUNTER_NONE until one can happen */
	uint32_t index; /* 1 .. UINT32_MAX within the kind */
	uint32_t refs; /* rules bound + explicit owners: Linux's tcfa_refcnt */
	uint32_t binds; /* rules bound: Linux's tcfa_bindcnt */
	uint16_t flags; /* TCA_ACT_FLAGS_*: dumps show them, and no worker looks at them */
	bool last; /* on its way out, and nobody else has its parameters */
	struct action_table *table;
	union {
		struct {
			uint64_t seen;
			uint32_t created; /* seconds of CLOCK_MONOTONIC, as is the next */
			/* When a read of the statistics first saw `seen` packets; 0: none yet. */
			uint32_t used;
		};
		struct rcu_head rcu; /* once it is out of the table */
	};
};
static_assert(sizeof(struct action) == 64, "millions of them, each in a line");

/* A list in a rule: immutable, embedded in the rule or made by it. */
struct action_list {
	uint32_t n;
	bool needs_views; /* any of them does */
	bool rewrites; /* likewise */
	struct action *actions[];
};

/* Bytes of a list of n actions, and filling one in. Binds nothing. */
size_t action_list_size(uint32_t n);
void action_list_init(struct action_list *list, struct action *const *actions, uint32_t n);

struct action_stats {
	uint64_t packets, bytes, drops, overlimits;
	/*
	 * Ages in seconds. lastuse: since a read first saw the last count, for workers take no
	 * time; without any packet that is the age of the action.
	 */
	uint64_t install_s, lastuse_s;
};

/*
 * Makes an empty table of all kinds for workers 0 .. n_workers - 1. `rcu` must outlive it.
 * NULL and rte_errno: EINVAL, ENOMEM. Destroy: every action must be unbound; frees after a grace
 * period.
 */
struct action_table *action_table_create(struct rcu *rcu, unsigned int n_workers);
void action_table_destroy(struct action_table *table);
/* The slots that actions count in, for rules to take ids of their own. */
struct counter_table *action_table_counters(struct action_table *table);
/* The memory of all these; its owner is the table. */
struct slab *action_table_slab(struct action_table *table);

/*
 * Makes an action of kind `ops` with one reference and no binding, and takes over `params`, which
 * may be freed at once: action_params() says where they are. index 0: the lowest free one. 0 or
 * -EEXIST (index in use), -ENOSPC, -ENOMEM, -EINVAL; after an error params is still the caller's.
 */
int action_create(struct action_table *table, const struct action_ops *ops, uint32_t index,
	struct action_params *params, struct action **out);

/* The action with that index, or NULL. O(1). Takes no reference. */
struct action *
action_find(struct action_table *table, const struct action_ops *ops, uint32_t index);

/*
 * Publishes `params`, taken over as by action_create(), in place of the old snapshot, which is
 * freed after a grace period.
 */
void action_replace(struct action *action, struct action_params *params);

/* The current snapshot: for the control thread, valid until its next action_replace(). */
const struct action_params *action_params(const struct action *action);

/* Sets bits in its flags. Control thread. */
void action_flags_add(struct action *action, uint32_t flags);

/*
 * References, counted as Linux shows them ("ref 2 bind 1"): a rule gets and puts with bind, an
 * explicit owner without. The last put takes the action out of the table at once and frees it after
 * a grace period. So an action made inline for a rule is: action_create(), the rule binds it,
 * action_put(action, false): "ref 1 bind 1".
 */
void action_get(struct action *action, bool bind);
void action_put(struct action *action, bool bind);

/* `tc actions del`: puts the explicit owner's reference. -EPERM while rules are bound (nothing
 * changed). */
int action_del(struct action *action);

/*
 * `tc actions flush`: action_del() by rising index up to the first that is bound, as Linux does.
 * *n is how many are gone. 0, or -EPERM where a bound one was met.
 */
int action_flush(struct action_table *table, const struct action_ops *ops, uint32_t *n);

/*
 * Sums over workers. An unfinished packet of another worker may be missing; no value ever runs
 * backwards. An action without references, on its way out, has no ages any more.
 */
void action_stats_get(const struct action *action, struct action_stats *stats);

/*
 * Walks the actions of a kind by rising index, from `index` on: the first with an index >= `index`,
 * or NULL. For dumps that resume: call again with the last index + 1.
 */
struct action *
action_next(struct action_table *table, const struct action_ops *ops, uint32_t index);
/* How many of the kind exist. */
uint32_t action_count(const struct action_table *table, const struct action_ops *ops);

/*
 * Runs a list on the packets in `mask`, as tcf_action_exec() does: each action in turn on those
 * whose verdict so far is TC_ACT_PIPE. Returns the one verdict of all, or ACTION_MIXED with
 * burst->verdict[i] set for each bit of mask. A list that ends with PIPE returns TC_ACT_PIPE.
 * `mask` may be 0: then TC_ACT_PIPE and nothing counted. Worker.
 */
int32_t action_exec(const struct action_list *list, struct action_burst *burst, uint64_t mask);

#endif /* ACTION_ACTION_H */
