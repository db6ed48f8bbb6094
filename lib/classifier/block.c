/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "classifier/chain.h"

/* Chains of a block without users that are flushed at once, and then after each grace period. */
#define REAP_AT_ONCE 256
#define REAP_EACH 256

struct classifier *
classifier_create(struct rcu *rcu, struct action_table *actions)
{
	struct classifier *classifier;

	if (rcu == NULL || actions == NULL) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((classifier = slab_alloc(action_table_slab(actions), sizeof(*classifier))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	classifier->rcu = rcu;
	classifier->actions = actions;
	classifier->counters = action_table_counters(actions);
	classifier->slab = action_table_slab(actions);
	return classifier;
}

/* Rules deferred by now find the classifier until their grace period is over. */
void
classifier_destroy(struct classifier *classifier)
{
	if (classifier == NULL)
		return;
	rcu_barrier(classifier->rcu);
	slab_free(classifier);
}

int
classifier_block_create(struct classifier *classifier, struct classifier_block **out)
{
	struct classifier_block *block;

	if ((block = slab_alloc(classifier->slab, sizeof(*block))) == NULL)
		return -ENOMEM;
	block->classifier = classifier;
	block->refs = 1;
	index_map_init(&block->chains, classifier->rcu, NULL);
	*out = block;
	return 0;
}

void
classifier_block_get(struct classifier_block *block)
{
	block->refs++;
}

/* Flushes up to n chains. */
static void
block_reap(struct classifier_block *block, unsigned int n)
{
	struct classifier_chain *chain;
	uint32_t index = 0;

	for (; n > 0 && (chain = index_map_next(&block->chains, &index)) != NULL; n--) {
		chain->explicit = false;
		chain_flush(chain);
	}
}

static void
block_reclaim(struct rcu_head *head)
{
	struct classifier_block *block = RTE_PTR_SUB(head, offsetof(struct classifier_block, rcu));

	/* Chains flushed here are deferred once more before they go, so the block is too. */
	if (block->chains.count == 0) {
		slab_free(block);
		return;
	}
	block_reap(block, REAP_EACH);
	rcu_defer(block->classifier->rcu, head, block_reclaim);
}

void
classifier_block_put(struct classifier_block *block)
{
	if (block == NULL || --block->refs != 0)
		return;
	block_reap(block, REAP_AT_ONCE);
	rcu_defer(block->classifier->rcu, &block->rcu, block_reclaim);
}

/* Release: a worker that finds the block finds what was put into it before. */
void
classifier_hook_set(struct classifier_hook *hook, struct classifier_block *block)
{
	atomic_store_explicit(&hook->block, block, memory_order_release);
}

uint64_t
classifier_block_generation(const struct classifier_block *block)
{
	return block->generation;
}
