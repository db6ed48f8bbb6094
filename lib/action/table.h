/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ACTION_TABLE_H
#define ACTION_TABLE_H

/* Inside lib/action: what action.c and exec.c share. */

#include "action/action.h"
#include "action/index_map.h"

/* All actions of a kind. */
struct action_kind {
	struct index_map actions; /* by index */
	uint64_t refs; /* of all of them together */
	uint32_t bound; /* actions with a binding */
};

/* Snapshots that new actions may share: so many, each where its hash says. */
#define PARAMS_RECENT 64

struct action_table {
	struct rcu *rcu;
	struct slab *slab;
	struct counter_table *counters;
	uint32_t flushes; /* under way */
	struct action_kind kinds[ACTION_ID_MAX]; /* by ops->id */
	struct action_params *recent[PARAMS_RECENT]; /* NULL: none */
	struct rcu_head head;
};

/* params.c */
/*
 * Takes over a snapshot with its ops set, and returns the one to publish: this, or a copy, or an
 * equal one of others. NULL: no memory, and it is still the caller's.
 */
struct action_params *params_keep(struct action_table *table, struct action_params *params);
/*
 * An action out of the workers' reach no longer counts. True if that was the last: params_free() it
 * after a grace period.
 */
bool params_drop(struct action_table *table, struct action_params *params);
void params_free(struct action_params *params);

#endif /* ACTION_TABLE_H */
