/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "classifier/flower_mask.h"

/* Rules of a removed priority that are freed at once, and then after each further grace period. */
#define REAP_AT_ONCE 1024
#define REAP_EACH 2048
/* Priorities of a flushed chain, and rules of each, that are freed at once or in one go. */
#define FLUSH_PRIOS 64
#define FLUSH_RULES 32
/* Linux: the first automatic priority, and where its search begins. */
#define PRIO_AUTO_FIRST 0xc000
#define PRIO_AUTO_FROM 0x8000

struct classifier_chain *
chain_find(const struct classifier_block *block, uint32_t index)
{
	return index_map_find(&block->chains, index);
}

struct classifier_chain *
chain_make(struct classifier_block *block, uint32_t index)
{
	struct classifier_chain *chain = slab_alloc(block->classifier->slab, sizeof(*chain));

	if (chain != NULL) {
		chain->block = block;
		chain->index = index;
	}
	return chain;
}

void
chain_free_unpublished(struct classifier_chain *chain)
{
	if (chain->prios != chain->only)
		free(chain->prios);
	free(chain->template);
	slab_free(chain);
}

int
chain_publish(struct classifier_chain *chain)
{
	return index_map_set(&chain->block->chains, chain->index, chain);
}

static void
chain_reclaim(struct rcu_head *head)
{
	chain_free_unpublished(RTE_PTR_SUB(head, offsetof(struct classifier_chain, rcu)));
}

void
chain_release(struct classifier_chain *chain)
{
	if (chain->n_prios != 0 || chain->explicit)
		return;
	index_map_del(&chain->block->chains, chain->index);
	rcu_defer(chain->block->classifier->rcu, &chain->rcu, chain_reclaim);
}

/* The place of the first priority >= prio. */
static uint32_t
prio_place(const struct classifier_chain *chain, uint32_t prio)
{
	uint32_t low = 0, high = chain->n_prios;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (chain->prios[middle]->prio < prio)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct classifier_prio *
prio_next(const struct classifier_chain *chain, uint32_t prio)
{
	uint32_t place = prio_place(chain, prio);

	return place < chain->n_prios ? chain->prios[place] : NULL;
}

struct classifier_prio *
prio_find(const struct classifier_chain *chain, uint32_t prio)
{
	struct classifier_prio *found = prio_next(chain, prio);

	return found != NULL && found->prio == prio ? found : NULL;
}

/* One below the lowest of the upper half, where automatic ones live. */
uint32_t
prio_automatic(const struct classifier_chain *chain)
{
	const struct classifier_prio *lowest =
		chain != NULL ? prio_next(chain, PRIO_AUTO_FROM) : NULL;

	if (lowest == NULL)
		return PRIO_AUTO_FIRST;
	return lowest->prio == PRIO_AUTO_FROM ? 0 : lowest->prio - 1;
}

struct classifier_prio *
prio_make(
	struct classifier_chain *chain, uint32_t prio, uint16_t protocol, enum classifier_kind kind)
{
	struct classifier_prio *made = slab_alloc(chain->block->classifier->slab, sizeof(*made));

	if (made == NULL)
		return NULL;
	made->prio = prio;
	made->protocol = protocol;
	made->kind = (uint8_t)kind;
	made->chain = chain;
	made->classifier = chain->block->classifier;
	index_map_init(&made->rules, NULL, made->classifier->slab);
	if (kind == CLASSIFIER_FLOWER)
		flower_init(made);
	return made;
}

void
prio_free_unpublished(struct classifier_prio *prio)
{
	while (prio->kind == CLASSIFIER_FLOWER && !flower_fini(prio))
		;
	index_map_clear(&prio->rules);
	slab_free(prio);
}

int
prio_reserve(struct classifier_chain *chain)
{
	struct classifier_prio **prios;

	if (chain->n_prios < chain->room)
		return 0;
	if (chain->room == 0) {
		chain->prios = chain->only;
		chain->room = 1;
		return 0;
	}
	prios = chain->prios != chain->only ? chain->prios : NULL;
	if ((prios = realloc(prios, 2 * chain->room * sizeof(*prios))) == NULL)
		return -ENOMEM;
	if (chain->prios == chain->only)
		prios[0] = chain->only[0];
	chain->prios = prios;
	chain->room *= 2;
	return 0;
}

/* What workers load to come to the priority that stands at `place`. */
static _Atomic(struct classifier_prio *) *
link_to(struct classifier_chain *chain, uint32_t place)
{
	return place == 0 ? &chain->first : &chain->prios[place - 1]->next;
}

/* Chain 0 is found without a look-up, and not at all while it is empty. */
static void
update_first(struct classifier_chain *chain)
{
	/* Release: a worker that finds the chain finds its first priority. */
	if (chain->index == 0)
		atomic_store_explicit(&chain->block->first, chain->n_prios != 0 ? chain : NULL,
			memory_order_release);
}

void
prio_publish(struct classifier_prio *prio)
{
	struct classifier_chain *chain = prio->chain;
	uint32_t place = prio_place(chain, prio->prio);
	_Atomic(struct classifier_prio *) *link = link_to(chain, place);

	/* Relaxed: nobody sees `prio` before the release that follows. */
	atomic_store_explicit(&prio->next, atomic_load_explicit(link, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(link, prio, memory_order_release);
	memmove(&chain->prios[place + 1], &chain->prios[place],
		(chain->n_prios - place) * sizeof(*chain->prios));
	chain->prios[place] = prio;
	chain->n_prios++;
	update_first(chain);
}

/* Retires up to n rules. True if none is left. */
static bool
reap(struct classifier_prio *prio, unsigned int n)
{
	struct classifier_rule *rule;
	uint32_t handle = 0;

	for (; (rule = index_map_next(&prio->rules, &handle)) != NULL; n--) {
		if (n == 0)
			return false;
		index_map_del(&prio->rules, handle);
		rule_retire(rule);
	}
	return true;
}

static void
prio_reclaim(struct rcu_head *head)
{
	struct classifier_prio *prio = RTE_PTR_SUB(head, offsetof(struct classifier_prio, rcu));

	/*
	 * A step each time: rules that are left; a round for replaced ones, which are deferred
	 * twice and know the priority till then; tables.
	 */
	if (prio->rules.count != 0)
		reap(prio, REAP_EACH);
	else if (!prio->reaped) {
		prio->reaped = true;
		if (prio->kind == CLASSIFIER_FLOWER)
			flower_fini_soon(prio);
	} else if (prio->kind != CLASSIFIER_FLOWER || flower_fini(prio)) {
		index_map_clear(&prio->rules);
		slab_free(prio);
		return;
	}
	rcu_defer(prio->classifier->rcu, head, prio_reclaim);
}

/*
 * A worker that stands on `prio` goes on through its next pointer, which keeps pointing into the
 * list: what it points to is freed no earlier than a grace period after it left the list in turn.
 */
void
prio_remove(struct classifier_prio *prio)
{
	struct classifier_chain *chain = prio->chain;
	uint32_t place = prio_place(chain, prio->prio);

	atomic_store_explicit(link_to(chain, place),
		atomic_load_explicit(&prio->next, memory_order_relaxed), memory_order_release);
	chain->n_prios--;
	memmove(&chain->prios[place], &chain->prios[place + 1],
		(chain->n_prios - place) * sizeof(*chain->prios));
	update_first(chain);
	chain->block->generation++;
	prio->chain = NULL;
	reap(prio, REAP_AT_ONCE);
	rcu_defer(prio->classifier->rcu, &prio->rcu, prio_reclaim);
}

/* Priorities of a flushed chain, on their way out. */
struct flushed {
	struct rcu_head rcu;
	struct rcu *list;
	struct classifier_prio **prios;
	uint32_t n;
};

/* No worker sees them any more: what is left is work, a bounded part of it each time. */
static void
flushed_reclaim(struct rcu_head *head)
{
	struct flushed *flushed = RTE_PTR_SUB(head, offsetof(struct flushed, rcu));

	for (unsigned int i = 0; i < FLUSH_PRIOS && flushed->n > 0; i++) {
		struct classifier_prio *prio = flushed->prios[--flushed->n];

		reap(prio, FLUSH_RULES);
		rcu_defer(flushed->list, &prio->rcu, prio_reclaim);
	}
	if (flushed->n > 0) {
		rcu_defer(flushed->list, head, flushed_reclaim);
		return;
	}
	free(flushed->prios);
	free(flushed);
}

/* Takes all priorities out of the chain in one step. */
static bool
flush_whole(struct classifier_chain *chain)
{
	struct flushed *flushed = malloc(sizeof(*flushed));

	if (flushed == NULL)
		return false;
	flushed->list = chain->block->classifier->rcu;
	flushed->prios = chain->prios;
	flushed->n = chain->n_prios;
	/* Relaxed: NULL says nothing about other memory. Who stands inside goes on to the end. */
	atomic_store_explicit(&chain->first, NULL, memory_order_relaxed);
	chain->prios = NULL;
	chain->n_prios = chain->room = 0;
	update_first(chain);
	chain->block->generation++;
	rcu_defer(flushed->list, &flushed->rcu, flushed_reclaim);
	return true;
}

void
chain_flush(struct classifier_chain *chain)
{
	if (chain->n_prios <= FLUSH_PRIOS || !flush_whole(chain))
		while (chain->n_prios != 0)
			prio_remove(chain->prios[chain->n_prios - 1]);
	chain_release(chain);
}

/* Adds the chain with a template, if `match` is not NULL. */
static int
chain_add(struct classifier_block *block, uint32_t index, const struct flower_match *match,
	const char **why)
{
	struct classifier_chain *chain;
	int rc;

	if (index > TC_ACT_EXT_VAL_MASK) {
		*why = "Specified chain index exceeds upper limit";
		return -EINVAL;
	}
	if (chain_find(block, index) != NULL) {
		*why = "Filter chain already exists";
		return -EEXIST;
	}
	*why = "Failed to create filter chain";
	if ((chain = chain_make(block, index)) == NULL)
		return -ENOMEM;
	chain->explicit = true;
	rc = match != NULL && (chain->template = flower_copy(match)) == NULL ? -ENOMEM : 0;
	if (rc != 0 || (rc = chain_publish(chain)) != 0) {
		chain_free_unpublished(chain);
		return rc;
	}
	block->generation++;
	*why = NULL;
	return 0;
}

int
classifier_chain_add(struct classifier_block *block, uint32_t index, const char **why)
{
	return chain_add(block, index, NULL, why);
}

int
classifier_chain_add_template(struct classifier_block *block, uint32_t index,
	const struct flower_match *match, const char **why)
{
	struct flower_pattern pattern;
	int rc;

	if ((rc = flower_compile(match, &pattern, why)) != 0)
		return rc;
	return chain_add(block, index, match, why);
}

const struct flower_match *
classifier_chain_template(const struct classifier_block *block, uint32_t index)
{
	const struct classifier_chain *chain = chain_find(block, index);

	return chain != NULL ? chain->template : NULL;
}

int
classifier_chain_del(struct classifier_block *block, uint32_t index, const char **why)
{
	struct classifier_chain *chain = chain_find(block, index);

	if (chain == NULL) {
		*why = "Cannot find specified filter chain";
		return -EINVAL;
	}
	chain->explicit = false;
	block->generation++;
	chain_flush(chain);
	*why = NULL;
	return 0;
}

bool
classifier_chain_next(struct classifier_block *block, uint32_t *index)
{
	return index_map_next(&block->chains, index) != NULL;
}

bool
classifier_chain_exists(struct classifier_block *block, uint32_t index)
{
	return chain_find(block, index) != NULL;
}

bool
classifier_chain_explicit(struct classifier_block *block, uint32_t index)
{
	const struct classifier_chain *chain = chain_find(block, index);

	return chain != NULL && chain->explicit;
}
