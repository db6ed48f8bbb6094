/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Running a list of actions on a vector: tcf_action_exec() for many packets at once. As long as all
 * packets get one verdict there is no work for each packet but adding up its length.
 */

#include <rte_mbuf.h>

#include "action/action.h"
#include "action/table.h"

/* Linux: jmp_ttl and repeat_ttl. */
#define JUMPS_MAX TCA_ACT_MAX_PRIO
#define REPEATS_MAX 32

static uint64_t
bytes_of(struct rte_mbuf *const *pkts, uint64_t mask)
{
	uint64_t bytes = 0;
	unsigned int i, n;

	if ((mask & (mask + 1)) == 0) {
		/* The first n packets: the usual case. */
		n = mask == UINT64_MAX ? 64 : (unsigned int)__builtin_ctzll(mask + 1);
		for (i = 0; i < n; i++)
			bytes += pkts[i]->pkt_len;
		return bytes;
	}
	for (; mask != 0; mask &= mask - 1)
		bytes += pkts[__builtin_ctzll(mask)]->pkt_len;
	return bytes;
}

/* Runs one action once, and counts. */
static int32_t
run_one(const struct action *action, struct action_burst *burst, uint64_t mask, uint64_t bytes)
{
	struct counter_table *counters = action->table->counters;
	uint64_t drops = 0, overlimits = 0;
	int32_t verdict;
	/* Acquire: pairs with the release in action_replace(). One load: verdict and all else
	 * agree. */
	const struct action_params *params =
		atomic_load_explicit(&action->params, memory_order_acquire);

	verdict = action->ops->run(action, params, burst, mask, &drops, &overlimits);
	counter_add(counters, burst->worker, action->counter, (uint64_t)__builtin_popcountll(mask),
		bytes);
	if ((drops | overlimits) != 0 && action->drops != COUNTER_NONE)
		counter_add(counters, burst->worker, action->drops, drops, overlimits);
	return verdict;
}

/* Packets that stand before the same action of the list. */
struct exec_state {
	const struct action_list *list;
	struct action_burst *burst;
	int32_t final[ACTION_VECTOR_MAX];
	uint8_t jumps[ACTION_VECTOR_MAX];
	uint8_t repeats[ACTION_VECTOR_MAX];
	uint64_t at[ACTION_LIST_MAX + 1];
};

/* What one packet does after action k gave it `verdict`. */
static void
step(struct exec_state *st, unsigned int i, uint32_t k, int32_t verdict)
{
	uint64_t bit = UINT64_C(1) << i;
	uint32_t to;

	if (verdict == TC_ACT_REPEAT) {
		if (++st->repeats[i] < REPEATS_MAX)
			st->at[k] |= bit;
		else
			st->final[i] = TC_ACT_OK;
		return;
	}
	st->repeats[i] = 0;
	if (verdict == TC_ACT_PIPE) {
		if (k + 1 < st->list->n)
			st->at[k + 1] |= bit;
		else
			st->final[i] = TC_ACT_PIPE;
	} else if (TC_ACT_EXT_CMP(verdict, TC_ACT_JUMP)) {
		/* To the action with that number from the start; nothing sensible there ends the
		 * list. */
		to = (uint32_t)verdict & TC_ACT_EXT_VAL_MASK;
		if (to == 0 || to >= st->list->n || ++st->jumps[i] >= JUMPS_MAX)
			st->final[i] = TC_ACT_OK;
		else
			st->at[to] |= bit;
	} else {
		st->final[i] = verdict;
	}
}

/* The first action k whose packets wait, or n. */
static uint32_t
first_waiting(const struct exec_state *st, uint32_t k)
{
	while (k < st->list->n && st->at[k] == 0)
		k++;
	return k;
}

static int32_t
collect(struct exec_state *st, uint64_t mask)
{
	int32_t first = st->final[__builtin_ctzll(mask)];
	bool uniform = true;

	for (uint64_t m = mask; m != 0; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(m);

		st->burst->verdict[i] = st->final[i];
		uniform = uniform && st->final[i] == first;
	}
	return uniform ? first : ACTION_MIXED;
}

/*
 * The general case: action k gave packets in `mask` `verdict`, not one that ends the list for all.
 * Every packet goes its own way; those before the same action are run together.
 */
static __attribute__((noinline)) int32_t
exec_mixed(const struct action_list *list, struct action_burst *burst, uint64_t mask, uint32_t k,
	int32_t verdict)
{
	struct exec_state st = { .list = list, .burst = burst };
	uint64_t now = mask;

	for (;;) {
		for (uint64_t m = now; m != 0; m &= m - 1) {
			unsigned int i = (unsigned int)__builtin_ctzll(m);

			step(&st, i, k, verdict == ACTION_MIXED ? burst->verdict[i] : verdict);
		}
		if ((k = first_waiting(&st, 0)) == list->n)
			break;
		now = st.at[k];
		st.at[k] = 0;
		verdict = run_one(list->actions[k], burst, now, bytes_of(burst->pkts, now));
	}
	return collect(&st, mask);
}

int32_t
action_exec(const struct action_list *list, struct action_burst *burst, uint64_t mask)
{
	uint64_t bytes = 0;
	int32_t verdict;

	if (mask == 0)
		return TC_ACT_PIPE;
	/* As Linux: a filter without actions passes. */
	if (list->n == 0)
		return TC_ACT_OK;
	bytes = bytes_of(burst->pkts, mask);
	for (uint32_t k = 0; k < list->n; k++) {
		verdict = run_one(list->actions[k], burst, mask, bytes);
		if (verdict == TC_ACT_PIPE) {
			if (list->rewrites)
				bytes = bytes_of(burst->pkts, mask);
			continue;
		}
		if (verdict == ACTION_MIXED || verdict == TC_ACT_REPEAT ||
			TC_ACT_EXT_CMP(verdict, TC_ACT_JUMP))
			return exec_mixed(list, burst, mask, k, verdict);
		return verdict;
	}
	return TC_ACT_PIPE;
}
