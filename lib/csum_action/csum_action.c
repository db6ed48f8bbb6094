/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "csum_action/handle.h"
#include "csum_action/impl.h"
#include "csum_action/update.h"

static const char *const reason_names[] = {
#define X(id, name, text) [CSUM_ACTION_##id] = name,
	CSUM_ACTION_REASON_LIST(X)
#undef X
};

static const char *const reason_texts[] = {
#define X(id, name, text) [CSUM_ACTION_##id] = text,
	CSUM_ACTION_REASON_LIST(X)
#undef X
};

const char *
csum_action_reason_name(unsigned int reason)
{
	return reason < CSUM_ACTION_REASON_MAX ? reason_names[reason] : "?";
}

const char *
csum_action_reason_text(unsigned int reason)
{
	return reason < CSUM_ACTION_REASON_MAX ? reason_texts[reason] : "?";
}

struct csum_action *
csum_action_create(unsigned int n_workers)
{
	struct csum_action *csum;
	size_t size = sizeof(*csum) + n_workers * sizeof(csum->workers[0]);

	if (n_workers == 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((csum = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(size, RTE_CACHE_LINE_SIZE))) ==
		NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	memset(csum, 0, size);
	csum->impl = csum_impl_best();
	csum->n_workers = n_workers;
	return csum;
}

void
csum_action_destroy(struct csum_action *csum)
{
	free(csum);
}

uint64_t
csum_action_count(const struct csum_action *csum, unsigned int reason)
{
	uint64_t sum = 0;
	unsigned int i;

	if (reason >= CSUM_ACTION_REASON_MAX)
		return 0;
	/* relaxed: each counter only grows, and nothing is concluded from one about another */
	for (i = 0; i < csum->n_workers; i++)
		sum += atomic_load_explicit(
			&csum->workers[i].reasons[reason], memory_order_relaxed);
	return sum;
}

struct action_params *
csum_action_params_create(uint32_t update_flags, int32_t verdict)
{
	struct csum_action_params *params;

	if ((update_flags & ~(uint32_t)CSUM_ACTION_FLAGS) != 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((params = calloc(1, sizeof(*params))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	params->base.verdict = verdict;
	params->base.goto_chain = (uint32_t)verdict & TC_ACT_EXT_VAL_MASK;
	params->update_flags = update_flags;
	params->impl = csum_impl_best();
	return &params->base;
}

void
csum_action_params_attach(struct action_params *params, struct csum_action *csum)
{
	((struct csum_action_params *)params)->csum = csum;
}

static int32_t
csum_run(const struct action *action, const struct action_params *base, struct action_burst *burst,
	uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct csum_action_params *params = (const struct csum_action_params *)base;
	struct csum_action *csum = params->csum;
	uint64_t others = mask, tx_offloads = 0;
	struct rte_mbuf **pkts = burst->pkts;
	unsigned int i;

	(void)action;
	(void)overlimits;
	/* as Linux does: nobody will see the sums of a packet that is dropped */
	if (unlikely(base->verdict == TC_ACT_SHOT)) {
		*drops += (uint64_t)__builtin_popcountll(mask);
		return TC_ACT_SHOT;
	}
	/* relaxed: csum_action_complete() makes up for a port that cannot do what is left to it */
	if (csum != NULL)
		tx_offloads = atomic_load_explicit(&csum->tx_offloads, memory_order_relaxed);
	if (tx_offloads == 0) {
		others = params->impl->plain(burst, mask, params->update_flags);
		if (others != mask)
			csum_count(csum, burst->worker, CSUM_ACTION_COMPUTED,
				(uint64_t)__builtin_popcountll(mask & ~others));
	}
	packet_mask_for_each (i, others) {
		enum csum_action_reason reason = csum_update(params->impl, &pkts[i],
			&burst->vector->views[i], params->update_flags, tx_offloads);

		burst->vector->pkts[i] = pkts[i];
		csum_count(csum, burst->worker, reason, 1);
	}
	return base->verdict;
}

const struct action_ops csum_action_ops = {
	.kind = "csum",
	.id = TCA_ID_CSUM,
	.needs_views = true,
	.run = csum_run,
	.params_size = sizeof(struct csum_action_params),
};
