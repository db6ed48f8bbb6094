/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ACTION_TABLE_H
#define ACTION_TABLE_H

/* Inside lib/action: what action.c and exec.c share. */

#include "action/action.h"
#include "action/index_map.h"

struct action_table {
	struct rcu *rcu;
	struct counter_table *counters;
	struct index_map kinds[ACTION_ID_MAX]; /* by ops->id, then by index */
	struct rcu_head head;
};

#endif /* ACTION_TABLE_H */
