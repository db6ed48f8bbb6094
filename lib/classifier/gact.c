/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <linux/tc_act/tc_gact.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_random.h>

#include "classifier/gact.h"
#include "packet/packet.h"

static uint64_t
popcount(uint64_t mask)
{
	return (uint64_t)__builtin_popcountll(mask);
}

/* The packets of mask that get the other verdict. */
static uint64_t
chosen(const struct action *action, const struct gact_params *gact, unsigned int worker,
	uint64_t mask)
{
	const struct counter_slot *count;
	uint64_t set = 0, seen;
	unsigned int i;

	if (gact->random == PGACT_NETRAND) {
		packet_mask_for_each (i, mask)
			if (rte_rand_max(gact->value) == 0)
				set |= UINT64_C(1) << i;
		return set;
	}
	/* determ: what the worker counted before this vector is the number of its packets so far.
	 */
	count = counter_slot_of(action_table_counters(action->table), worker, action->counter);
	seen = atomic_load_explicit(&count->a, memory_order_relaxed);
	packet_mask_for_each (i, mask)
		if (++seen % gact->value == 0)
			set |= UINT64_C(1) << i;
	return set;
}

static int32_t
run_random(const struct action *action, const struct gact_params *gact, struct action_burst *burst,
	uint64_t mask, uint64_t *drops)
{
	uint64_t other = chosen(action, gact, burst->worker, mask);
	unsigned int i;

	*drops += gact->base.verdict == TC_ACT_SHOT ? popcount(mask & ~other) : 0;
	*drops += gact->other == TC_ACT_SHOT ? popcount(other) : 0;
	if (other == 0)
		return gact->base.verdict;
	if (other == mask)
		return gact->other;
	packet_mask_for_each (i, mask)
		burst->verdict[i] = (other >> i & 1) != 0 ? gact->other : gact->base.verdict;
	return ACTION_MIXED;
}

static int32_t
gact_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct gact_params *gact = (const struct gact_params *)params;

	(void)overlimits;
	if (gact->random != PGACT_NONE && gact->value != 0)
		return run_random(action, gact, burst, mask, drops);
	if (params->verdict == TC_ACT_SHOT)
		*drops += popcount(mask);
	return params->verdict;
}

static bool
gact_may_drop(const struct action_params *params)
{
	const struct gact_params *gact = (const struct gact_params *)params;

	return params->verdict == TC_ACT_SHOT ||
		(gact->random != PGACT_NONE && gact->other == TC_ACT_SHOT);
}

const struct action_ops gact_action_ops = {
	.kind = "gact",
	.id = TCA_ID_GACT,
	.run = gact_run,
	.may_drop = gact_may_drop,
	.params_size = sizeof(struct gact_params),
};

struct action_params *
gact_params_create_random(int32_t verdict, uint16_t random, uint16_t value, int32_t other)
{
	struct gact_params *gact;

	if (random >= MAX_RAND) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((gact = calloc(1, sizeof(*gact))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	gact->base.verdict = verdict;
	gact->random = random;
	gact->value = value;
	gact->other = other;
	return &gact->base;
}

struct action_params *
gact_params_create(int32_t verdict)
{
	return gact_params_create_random(verdict, PGACT_NONE, 0, TC_ACT_OK);
}
