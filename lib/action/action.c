/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "action/action.h"
#include "action/index_map.h"
#include "action/table.h"

/* Flushed actions that are freed after each grace period. */
#define FLUSH_EACH 2048

static uint32_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)ts.tv_sec;
}

struct action_table *
action_table_create(struct rcu *rcu, unsigned int n_workers)
{
	struct action_table *table;

	if (rcu == NULL || n_workers == 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((table = calloc(1, sizeof(*table))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	table->rcu = rcu;
	if ((table->slab = slab_create(table)) == NULL) {
		free(table);
		rte_errno = ENOMEM;
		return NULL;
	}
	for (unsigned int id = 0; id < ACTION_ID_MAX; id++)
		index_map_init(&table->kinds[id].actions, NULL, table->slab);
	if ((table->counters = counter_table_create(table->slab, n_workers)) == NULL) {
		slab_destroy(table->slab);
		free(table);
		return NULL;
	}
	return table;
}

/* Waits for flushes that are under way: they still give slots back. */
static void
table_reclaim(struct rcu_head *head)
{
	struct action_table *table = RTE_PTR_SUB(head, offsetof(struct action_table, head));

	if (table->flushes != 0) {
		rcu_defer(table->rcu, head, table_reclaim);
		return;
	}
	counter_table_destroy(table->counters);
	slab_destroy(table->slab);
	free(table);
}

static struct action_kind *
kind_of(const struct action *action)
{
	return &action->table->kinds[action->ops->id];
}

static void
params_reclaim(struct rcu_head *head)
{
	params_free(RTE_PTR_SUB(head, offsetof(struct action_params, rcu)));
}

static void
action_reclaim(struct rcu_head *head)
{
	struct action *action = RTE_PTR_SUB(head, offsetof(struct action, rcu));

	if (action->last)
		params_free(atomic_load_explicit(&action->params, memory_order_relaxed));
	counter_free(action->table->counters, action->counter);
	counter_free(action->table->counters, action->drops);
	slab_free(action);
}

/* Slots, parameters and memory go after a grace period. */
static void
action_defer(struct action *action)
{
	struct action_table *table = action->table;

	action->last =
		params_drop(table, atomic_load_explicit(&action->params, memory_order_relaxed));
	rcu_defer(table->rcu, &action->rcu, action_reclaim);
}

static void
action_remove(struct action *action)
{
	index_map_del(&kind_of(action)->actions, action->index);
	action_defer(action);
}

/* The table itself is deferred last: actions and rules before it give their slots back to it. */
void
action_table_destroy(struct action_table *table)
{
	struct action *action;
	uint32_t index;

	if (table == NULL)
		return;
	for (unsigned int id = 0; id < ACTION_ID_MAX; id++) {
		index = 0;
		while ((action = index_map_next(&table->kinds[id].actions, &index)) != NULL)
			action_remove(action);
	}
	rcu_defer(table->rcu, &table->head, table_reclaim);
}

struct counter_table *
action_table_counters(struct action_table *table)
{
	return table->counters;
}

struct slab *
action_table_slab(struct action_table *table)
{
	return table->slab;
}

/* Completes a snapshot, and has the action own a slot for drops if it can ever need one. */
static int
params_prepare(struct action *action, struct action_params *params)
{
	const struct action_ops *ops = action->ops;

	params->ops = ops;
	params->goto_chain = TC_ACT_EXT_CMP(params->verdict, TC_ACT_GOTO_CHAIN)
		? (uint32_t)params->verdict & TC_ACT_EXT_VAL_MASK
		: 0;
	if (action->drops == COUNTER_NONE && (ops->may_drop == NULL || ops->may_drop(params)) &&
		(action->drops = counter_take(action->table->counters)) == COUNTER_NONE)
		return -ENOMEM;
	return 0;
}

/* Frees one that was never published; parameters are still the caller's. */
static void
action_unmake(struct action *action)
{
	counter_free(action->table->counters, action->counter);
	counter_free(action->table->counters, action->drops);
	slab_free(action);
}

/* All but its parameters and its place. */
static struct action *
action_make(struct action_table *table, const struct action_ops *ops, uint32_t index,
	struct action_params *params)
{
	struct action *action = slab_alloc(table->slab, sizeof(*action));

	if (action == NULL)
		return NULL;
	action->ops = ops;
	action->table = table;
	action->index = index;
	action->refs = 1;
	action->flags = (uint16_t)params->flags;
	action->created = now();
	action->drops = COUNTER_NONE;
	if ((action->counter = counter_take(table->counters)) == COUNTER_NONE ||
		params_prepare(action, params) != 0) {
		action_unmake(action);
		return NULL;
	}
	return action;
}

int
action_create(struct action_table *table, const struct action_ops *ops, uint32_t index,
	struct action_params *params, struct action **out)
{
	struct index_map *map;
	struct action *action;
	int rc;

	if (ops == NULL || ops->id >= ACTION_ID_MAX || params == NULL)
		return -EINVAL;
	map = &table->kinds[ops->id].actions;
	if (index == 0) {
		index = 1;
		if (index_map_lowest_free(map, UINT32_MAX, &index) != 0)
			return -ENOSPC;
	} else if (index_map_find(map, index) != NULL) {
		return -EEXIST;
	}
	if ((action = action_make(table, ops, index, params)) == NULL)
		return -ENOMEM;
	if ((rc = index_map_set(map, index, action)) != 0) {
		action_unmake(action);
		return rc;
	}
	if ((params = params_keep(table, params)) == NULL) {
		index_map_del(map, index);
		action_unmake(action);
		return -ENOMEM;
	}
	atomic_init(&action->params, params);
	table->kinds[ops->id].refs++;
	*out = action;
	return 0;
}

struct action *
action_find(struct action_table *table, const struct action_ops *ops, uint32_t index)
{
	return index_map_find(&table->kinds[ops->id].actions, index);
}

/*
 * Without memory the change is made all the same: drops are then not counted, and the parameters
 * stay where they are.
 */
void
action_replace(struct action *action, struct action_params *params)
{
	struct action_params *old = atomic_load_explicit(&action->params, memory_order_relaxed),
			     *kept;

	(void)params_prepare(action, params);
	action->flags = (uint16_t)params->flags;
	if ((kept = params_keep(action->table, params)) != NULL)
		params = kept;
	else
		params->refs = 1;
	/* Release: a worker that loads the new pointer sees the whole snapshot, and action->drops.
	 */
	atomic_store_explicit(&action->params, params, memory_order_release);
	if (params_drop(action->table, old))
		rcu_defer(action->table->rcu, &old->rcu, params_reclaim);
}

const struct action_params *
action_params(const struct action *action)
{
	return atomic_load_explicit(&action->params, memory_order_relaxed);
}

void
action_flags_add(struct action *action, uint32_t flags)
{
	action->flags |= (uint16_t)flags;
}

void
action_get(struct action *action, bool bind)
{
	struct action_kind *kind = kind_of(action);

	action->refs++;
	kind->refs++;
	if (bind && action->binds++ == 0)
		kind->bound++;
}

void
action_put(struct action *action, bool bind)
{
	struct action_kind *kind = kind_of(action);

	kind->refs--;
	if (bind && --action->binds == 0)
		kind->bound--;
	if (--action->refs == 0)
		action_remove(action);
}

int
action_del(struct action *action)
{
	if (action->binds != 0)
		return -EPERM;
	action_put(action, false);
	return 0;
}

/* Actions that were flushed all at once, on their way out. */
struct flushed {
	struct rcu_head rcu;
	struct action_table *table;
	struct index_map actions;
};

static void
flushed_reclaim(struct rcu_head *head)
{
	struct flushed *flushed = RTE_PTR_SUB(head, offsetof(struct flushed, rcu));
	struct action_table *table = flushed->table;
	struct action *action;
	uint32_t index = 0;

	/* Not in the round that defers the last ones: the table must outlive them. */
	if (flushed->actions.count == 0) {
		table->flushes--;
		free(flushed);
		return;
	}
	for (unsigned int n = 0; n < FLUSH_EACH; n++) {
		if ((action = index_map_next(&flushed->actions, &index)) == NULL)
			break;
		index_map_del(&flushed->actions, index);
		action_defer(action);
	}
	rcu_defer(table->rcu, head, flushed_reclaim);
}

/* Takes all actions of a kind that only explicit owners hold out of the table in one step. */
static bool
flush_whole(struct action_table *table, struct action_kind *kind)
{
	struct flushed *flushed = malloc(sizeof(*flushed));

	if (flushed == NULL)
		return false;
	flushed->table = table;
	flushed->actions = kind->actions;
	index_map_init(&kind->actions, NULL, table->slab);
	kind->refs = 0;
	table->flushes++;
	rcu_defer(table->rcu, &flushed->rcu, flushed_reclaim);
	return true;
}

int
action_flush(struct action_table *table, const struct action_ops *ops, uint32_t *n)
{
	struct action_kind *kind = &table->kinds[ops->id];
	struct action *action;
	uint32_t index = 0;

	*n = kind->actions.count;
	if (*n > FLUSH_EACH && kind->bound == 0 && kind->refs == *n && flush_whole(table, kind))
		return 0;
	for (*n = 0; (action = index_map_next(&kind->actions, &index)) != NULL; (*n)++) {
		if (action->binds != 0)
			return -EPERM;
		action_put(action, false);
		if (index++ == UINT32_MAX)
			break;
	}
	return 0;
}

/*
 * What a read notes about the time of the last packet is the only change: the action is const to
 * those who only look.
 */
static void
note_use(const struct action *action, uint64_t packets)
{
	struct action *a = (struct action *)(uintptr_t)action;

	if (packets != a->seen) {
		a->seen = packets;
		a->used = now();
	}
}

void
action_stats_get(const struct action *action, struct action_stats *stats)
{
	const struct counter_table *counters = action->table->counters;
	uint32_t time = now();

	counter_read(counters, action->counter, &stats->packets, &stats->bytes);
	counter_read(counters, action->drops, &stats->drops, &stats->overlimits);
	stats->install_s = stats->lastuse_s = 0;
	if (action->refs == 0)
		return;
	note_use(action, stats->packets);
	stats->install_s = time - action->created;
	stats->lastuse_s = action->used != 0 ? time - action->used : stats->install_s;
}

struct action *
action_next(struct action_table *table, const struct action_ops *ops, uint32_t index)
{
	return index_map_next(&table->kinds[ops->id].actions, &index);
}

uint32_t
action_count(const struct action_table *table, const struct action_ops *ops)
{
	return table->kinds[ops->id].actions.count;
}

size_t
action_list_size(uint32_t n)
{
	return sizeof(struct action_list) + n * sizeof(struct action *);
}

void
action_list_init(struct action_list *list, struct action *const *actions, uint32_t n)
{
	list->n = n;
	list->needs_views = list->rewrites = false;
	for (uint32_t i = 0; i < n; i++) {
		list->actions[i] = actions[i];
		list->needs_views |= actions[i]->ops->needs_views;
		list->rewrites |= actions[i]->ops->rewrites;
	}
}
