/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Where snapshots of parameters are kept. A million rules that each have an action of their own
 * mostly say the same few things: such actions share a snapshot, which is in the worker's cache
 * then. The others are moved out of malloc()'s memory as far as they may be.
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

#include "action/table.h"

/* What is compared: from the verdict on. */
#define SAID offsetof(struct action_params, verdict)

/* Where one that says the same may be found, or NULL: it is nobody else's. */
static struct action_params **
place_of(struct action_table *table, const struct action_params *params)
{
	const struct action_ops *ops = params->ops;

	/* One with a cookie has hardly an equal, and would take the place of one that has. */
	if (ops->params_size == 0 || ops->params_change || params->cookie_len != 0)
		return NULL;
	return &table->recent[rte_jhash((const uint8_t *)params + SAID,
				      (uint32_t)(ops->params_size - SAID), ops->id) %
		PARAMS_RECENT];
}

static bool
say_the_same(const struct action_params *a, const struct action_params *b)
{
	return a->ops == b->ops &&
		memcmp((const uint8_t *)a + SAID, (const uint8_t *)b + SAID,
			a->ops->params_size - SAID) == 0;
}

struct action_params *
params_keep(struct action_table *table, struct action_params *params)
{
	struct action_params **place = place_of(table, params), *kept;

	if (place != NULL && *place != NULL && say_the_same(*place, params)) {
		kept = *place;
		kept->refs++;
		free(params);
		return kept;
	}
	if (params->ops->params_size == 0) {
		params->refs = 1;
		return params;
	}
	if ((kept = slab_alloc(table->slab, params->ops->params_size)) == NULL)
		return NULL;
	memcpy(kept, params, params->ops->params_size);
	free(params);
	kept->refs = 1;
	kept->in_slab = true;
	if (place != NULL)
		*place = kept;
	return kept;
}

bool
params_drop(struct action_table *table, struct action_params *params)
{
	struct action_params **place;

	if (--params->refs != 0)
		return false;
	place = place_of(table, params);
	if (place != NULL && *place == params)
		*place = NULL;
	return true;
}

void
params_free(struct action_params *params)
{
	if (params->in_slab)
		slab_free(params);
	else if (params->ops->params_free != NULL)
		params->ops->params_free(params);
	else
		free(params);
}
