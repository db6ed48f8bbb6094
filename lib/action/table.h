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

struct action_table {
	struct rcu *rcu;
	struct counter_table *counters;
	uint32_t flushes; /* under way */
	struct action_kind kinds[ACTION_ID_MAX]; /* by ops->id */
	struct rcu_head head;
};

#endif /* ACTION_TABLE_H */
