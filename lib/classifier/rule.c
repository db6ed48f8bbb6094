/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <linux/if_ether.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "classifier/flower_mask.h"

static int
refuse(const char **why, int error, const char *sentence)
{
	*why = sentence;
	return error;
}

static void
rule_reclaim(struct rcu_head *head)
{
	struct classifier_rule *rule = RTE_PTR_SUB(head, offsetof(struct classifier_rule, rcu));

	counter_free_half(action_table_counters(slab_owner(rule)), rule->hits);
	flower_forget(rule);
	slab_free(rule);
}

/* Nobody comes to its new form by way of this replaced one any more. */
static void
rule_unlink(struct rcu_head *head)
{
	struct classifier_rule *rule = RTE_PTR_SUB(head, offsetof(struct classifier_rule, rcu));
	struct rcu *rcu;

	rcu = rule_mask(rule)->table.rcu;
	flower_unpublish(rule);
	rcu_defer(rcu, head, rule_reclaim);
}

static void
rule_unbind(struct classifier_rule *rule)
{
	const struct action_list *list = rule_actions(rule);

	for (uint32_t i = 0; i < list->n; i++)
		action_put(list->actions[i], true);
}

void
rule_retire(struct classifier_rule *rule)
{
	rule_unbind(rule);
	rcu_defer(rule->prio->classifier->rcu, &rule->rcu, rule_reclaim);
}

static void
rule_free_unpublished(struct classifier *classifier, struct classifier_rule *rule)
{
	counter_free_half(classifier->counters, rule->hits);
	slab_free(rule);
}

/* A complete rule that nobody sees; it has bound nothing yet. */
static struct classifier_rule *
rule_make(struct classifier *classifier, const struct classifier_rule_conf *conf, uint32_t n_words)
{
	struct classifier_rule *rule = slab_alloc(classifier->slab,
		sizeof(*rule) + n_words * sizeof(rule->words[0]) +
			action_list_size(conf->n_actions));

	if (rule == NULL)
		return NULL;
	if ((rule->hits = counter_take_half(classifier->counters)) == COUNTER_NONE) {
		slab_free(rule);
		return NULL;
	}
	rule->classid = conf->classid;
	rule->flags = (uint8_t)conf->flags;
	rule->handle = conf->place.handle;
	rule->n_words = (uint8_t)n_words;
	action_list_init(
		(struct action_list *)&rule->words[n_words], conf->actions, conf->n_actions);
	return rule;
}

static int
check_conf(const struct classifier_rule_conf *conf, unsigned int flags,
	struct flower_pattern *pattern, const char **why)
{
	const struct classifier_place *place = &conf->place;

	if (place->prio == 0 && (flags & CLASSIFIER_CREATE) == 0)
		return refuse(why, -ENOENT, "Invalid filter command with priority of zero");
	if (place->chain > TC_ACT_EXT_VAL_MASK)
		return refuse(why, -EINVAL, "Specified chain index exceeds upper limit");
	if (place->prio > CLASSIFIER_PRIO_MAX)
		return refuse(why, -EINVAL, "Priority exceeds upper limit");
	if (conf->n_actions > ACTION_LIST_MAX)
		return refuse(why, -EINVAL, "Too many actions");
	if (conf->flags > UINT8_MAX)
		return refuse(why, -EINVAL, "Unknown filter flags");
	if (place->kind == CLASSIFIER_FLOWER)
		return flower_compile(conf->flower, pattern, why);
	if (place->kind != CLASSIFIER_MATCHALL)
		return refuse(why, -EOPNOTSUPP, "Specified filter kind is not supported");
	return 0;
}

/* Where a rule goes: what is there already, and what has to be made for it. */
struct standing {
	struct classifier_chain *chain;
	struct classifier_prio *prio;
	struct classifier_rule *old;
	bool new_chain, new_prio;
	uint32_t number;
};

static int
check_template(const struct classifier_chain *chain, const struct classifier_rule_conf *conf,
	const char **why)
{
	if (chain == NULL || chain->template == NULL)
		return 0;
	if (conf->place.kind != CLASSIFIER_FLOWER)
		return refuse(why, -EINVAL, "Chain template is set to a different filter kind");
	if (!flower_fits(conf->flower, chain->template))
		return refuse(why, -EINVAL, "Mask does not fit the template");
	return 0;
}

/* The order of the checks, and what they say, is that of Linux's tc_new_tfilter(). */
static int
find_standing(struct classifier_block *block, const struct classifier_rule_conf *conf,
	unsigned int flags, struct standing *at, const char **why)
{
	const struct classifier_place *place = &conf->place;

	at->number = place->prio;
	if ((at->chain = chain_find(block, place->chain)) != NULL && place->prio != 0)
		at->prio = prio_find(at->chain, place->prio);
	if (place->prio == 0 && (at->number = prio_automatic(at->chain)) == 0)
		return refuse(why, -ENOSPC, "No priority is free below the automatic ones");
	if (at->prio != NULL && place->protocol != 0 && at->prio->protocol != place->protocol)
		return refuse(why, -EINVAL, "Filter with specified priority/protocol not found");
	if (at->prio == NULL && place->protocol == 0)
		return refuse(why, -EINVAL, "Filter kind and protocol must be specified");
	if (at->prio != NULL && at->prio->kind != place->kind)
		return refuse(why, -EINVAL, "Specified filter kind does not match existing one");
	if (at->prio != NULL && place->handle != 0)
		at->old = index_map_find(&at->prio->rules, place->handle);
	else if (at->prio != NULL && place->kind == CLASSIFIER_MATCHALL)
		at->old = atomic_load_explicit(&at->prio->rule, memory_order_relaxed);
	if (at->old == NULL && (flags & CLASSIFIER_CREATE) == 0)
		return refuse(why, -ENOENT,
			"Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter");
	if (at->old != NULL && (flags & CLASSIFIER_EXCL) != 0)
		return refuse(why, -EEXIST, "Filter already exists");
	if (at->old == NULL && at->prio != NULL && place->kind == CLASSIFIER_MATCHALL)
		return refuse(why, -EEXIST, "Filter already exists");
	return check_template(at->chain, conf, why);
}

/* Makes the chain and the priority that are missing. They are published when the rule is. */
static int
make_standing(struct classifier_block *block, const struct classifier_rule_conf *conf,
	struct standing *at)
{
	if (at->chain == NULL) {
		if ((at->chain = chain_make(block, conf->place.chain)) == NULL)
			return -ENOMEM;
		at->new_chain = true;
	}
	if (at->prio == NULL) {
		at->prio = prio_make(at->chain, at->number, conf->place.protocol, conf->place.kind);
		if (at->prio == NULL || prio_reserve(at->chain) != 0)
			return -ENOMEM;
		at->new_prio = true;
	}
	return 0;
}

static void
unmake_standing(struct standing *at)
{
	if (at->new_prio || (at->prio != NULL && at->prio->rules.count == 0))
		prio_free_unpublished(at->prio);
	if (at->new_chain)
		chain_free_unpublished(at->chain);
}

static int
choose_handle(struct standing *at, struct classifier_rule *rule)
{
	if (rule->handle != 0)
		return 0;
	if (at->old != NULL)
		rule->handle = at->old->handle;
	else
		rule->handle = 1;
	if (at->old != NULL || at->prio->kind == CLASSIFIER_MATCHALL)
		return 0;
	return index_map_lowest_free(&at->prio->rules, INT32_MAX, &rule->handle);
}

static void
forget_handle(struct standing *at, struct classifier_rule *rule)
{
	/* Cannot fail: the place is there. */
	if (at->old != NULL)
		(void)index_map_set(&at->prio->rules, rule->handle, at->old);
	else
		index_map_del(&at->prio->rules, rule->handle);
}

/* Lets workers of an existing priority see the rule: the step that counts. */
static int
publish_rule(struct standing *at, const struct flower_pattern *pattern,
	struct classifier_rule *rule, enum flower_old *fate)
{
	if (at->prio->kind == CLASSIFIER_FLOWER)
		return flower_publish(at->prio, pattern, rule, at->old, fate);
	/* Release: a worker that loads the rule sees it whole. One store: this one or the old. */
	atomic_store_explicit(&at->prio->rule, rule, memory_order_release);
	*fate = FLOWER_OLD_GONE;
	return 0;
}

static void
retire_old(struct classifier_rule *old, enum flower_old fate)
{
	if (fate == FLOWER_OLD_GONE) {
		rule_retire(old);
		return;
	}
	rule_unbind(old);
	rcu_defer(old->prio->classifier->rcu, &old->rcu, rule_unlink);
}

/* Without a write to the workers' line if nothing is new. */
static void
note_parts(struct classifier_block *block, uint32_t parts)
{
	uint32_t known = atomic_load_explicit(&block->key_parts, memory_order_relaxed);

	if ((parts & ~known) != 0)
		atomic_store_explicit(&block->key_parts, known | parts, memory_order_relaxed);
}

/* The last steps, in the order in which failing is still possible. */
static int
publish(struct classifier_block *block, struct standing *at, const struct flower_pattern *pattern,
	struct classifier_rule *rule)
{
	const struct action_list *list = rule_actions(rule);
	enum flower_old fate;
	int rc;

	rule->prio = at->prio;
	if ((rc = choose_handle(at, rule)) != 0 ||
		(rc = index_map_set(&at->prio->rules, rule->handle, rule)) != 0)
		return rc;
	if (at->prio->kind == CLASSIFIER_FLOWER)
		note_parts(block, flower_key_parts(pattern));
	/* In a new priority nobody sees it yet. */
	if ((rc = publish_rule(at, pattern, rule, &fate)) != 0 ||
		(at->new_chain && (rc = chain_publish(at->chain)) != 0)) {
		forget_handle(at, rule);
		return rc;
	}
	for (uint32_t i = 0; i < list->n; i++)
		action_get(list->actions[i], true);
	if (at->new_prio)
		prio_publish(at->prio);
	if (at->old != NULL)
		retire_old(at->old, fate);
	return 0;
}

static const char *
trouble(int error)
{
	switch (error) {
	case -EEXIST:
		return "Filter already exists";
	case -ENOSPC:
		return "No handle is free";
	default:
		return "No memory for another filter";
	}
}

int
classifier_rule_set(struct classifier_block *block, const struct classifier_rule_conf *conf,
	unsigned int flags, struct classifier_rule **out, const char **why)
{
	struct flower_pattern pattern = { .ranged = 0 };
	struct standing at = { 0 };
	struct classifier_rule *rule;
	int rc;

	*why = NULL;
	if ((rc = check_conf(conf, flags, &pattern, why)) != 0 ||
		(rc = find_standing(block, conf, flags, &at, why)) != 0)
		return rc;
	rule = rule_make(block->classifier, conf, flower_n_words(&pattern));
	if (rule == NULL)
		return refuse(why, -ENOMEM, trouble(-ENOMEM));
	if ((rc = make_standing(block, conf, &at)) != 0 ||
		(rc = publish(block, &at, &pattern, rule)) != 0) {
		rule_free_unpublished(block->classifier, rule);
		unmake_standing(&at);
		return refuse(why, rc, trouble(rc));
	}
	block->generation++;
	if (out != NULL)
		*out = rule;
	return 0;
}

struct classifier_rule *
classifier_rule_find(struct classifier_block *block, const struct classifier_place *place)
{
	struct classifier_chain *chain = chain_find(block, place->chain);
	struct classifier_prio *prio = chain != NULL ? prio_find(chain, place->prio) : NULL;

	if (prio == NULL || (place->protocol != 0 && place->protocol != prio->protocol))
		return NULL;
	return index_map_find(&prio->rules, place->handle);
}

void
classifier_rule_del(struct classifier_rule *rule)
{
	struct classifier_prio *prio = rule->prio;
	struct classifier_chain *chain = prio->chain;

	chain->block->generation++;
	if (prio->rules.count == 1) {
		prio_remove(prio);
		chain_release(chain);
		return;
	}
	/* matchall's rule is the only one of its priority: this is flower. */
	index_map_del(&prio->rules, rule->handle);
	flower_unpublish(rule);
	rule_retire(rule);
}

int
classifier_flush(struct classifier_block *block, uint32_t chain, uint32_t prio, uint16_t protocol,
	const char **why)
{
	struct classifier_chain *in = chain_find(block, chain);
	struct classifier_prio *found;

	*why = NULL;
	if (prio == 0) {
		if (in != NULL)
			chain_flush(in);
		return 0;
	}
	if (in == NULL)
		return refuse(why, -ENOENT, "Cannot find specified filter chain");
	found = prio_find(in, prio);
	if (found == NULL || (protocol != 0 && protocol != found->protocol))
		return refuse(why, found == NULL ? -ENOENT : -EINVAL,
			"Filter with specified priority/protocol not found");
	prio_remove(found);
	chain_release(in);
	return 0;
}

struct classifier_place
classifier_rule_place(const struct classifier_rule *rule)
{
	const struct classifier_prio *prio = rule->prio;

	return (struct classifier_place){ .chain = prio->chain->index,
		.prio = prio->prio,
		.protocol = prio->protocol,
		.handle = rule->handle,
		.kind = (enum classifier_kind)prio->kind };
}

const struct classifier_rule_conf *
classifier_rule_conf(const struct classifier_rule *rule)
{
	const struct classifier_prio *prio = rule->prio;
	const struct action_list *list = rule_actions(rule);
	struct classifier_rule_conf *conf = &prio->classifier->shown;

	conf->place = classifier_rule_place(rule);
	conf->classid = rule->classid;
	conf->flags = rule->flags;
	conf->flower = NULL;
	if (prio->kind == CLASSIFIER_FLOWER) {
		flower_show(rule, &prio->classifier->shown_match);
		conf->flower = &prio->classifier->shown_match;
	}
	conf->n_actions = list->n;
	for (uint32_t i = 0; i < list->n; i++)
		conf->actions[i] = list->actions[i];
	return conf;
}

uint64_t
classifier_rule_rank(const struct classifier_rule *rule)
{
	const struct flower_mask *mask = rule_mask(rule);

	return mask != NULL ? mask->number : 0;
}

uint64_t
classifier_rule_hits(const struct classifier_rule *rule)
{
	return counter_read_half(rule->prio->classifier->counters, rule->hits);
}

/* The first rule of the chain at or after (prio, handle), or NULL. */
static struct classifier_rule *
next_in_chain(const struct classifier_chain *chain, uint32_t prio, uint32_t handle)
{
	struct classifier_prio *p;
	struct classifier_rule *rule;
	uint32_t from;

	for (; (p = prio_next(chain, prio)) != NULL; prio = p->prio + 1) {
		from = p->prio == prio ? handle : 0;
		if ((rule = index_map_next(&p->rules, &from)) != NULL)
			return rule;
		handle = 0;
	}
	return NULL;
}

struct classifier_rule *
classifier_rule_next(struct classifier_block *block, struct classifier_place *at)
{
	struct classifier_chain *chain;
	struct classifier_rule *rule = NULL;
	uint32_t index = at->chain, prio = at->prio, handle = at->handle + 1;

	/* After the last handle comes the next priority. */
	if (handle == 0)
		prio++;
	for (; (chain = index_map_next(&block->chains, &index)) != NULL; index++) {
		if (index != at->chain)
			prio = handle = 0;
		if ((rule = next_in_chain(chain, prio, handle)) != NULL)
			break;
	}
	if (rule == NULL)
		return NULL;
	*at = classifier_rule_place(rule);
	return rule;
}
