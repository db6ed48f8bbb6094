/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The packet path: tcf_classify() for a vector. Packets that stand in the same chain are taken
 * through its priorities together; a goto or reclassify puts them aside, to be taken up from there
 * with all others that go to the same chain.
 */

#include <linux/if_ether.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "classifier/flower_mask.h"

/* Linux: max_reclassify_loop. */
#define LOOPS_MAX 16
#define ETHER_TYPE_OFF 12

/* Packets to be taken up at the start of a chain. */
struct waiting {
	uint64_t mask;
	uint32_t chain;
	uint32_t loops; /* times they were sent somewhere so far */
};

struct run {
	struct classifier_block *block;
	const struct classifier_worker *worker;
	struct classifier_result *result;
	struct packet_vector *vector;
	uint32_t loops; /* of the packets under way */
	uint32_t n_waiting; /* at most one entry a packet */
	uint64_t protocols; /* packets whose protocol[] is known */
	struct action_burst burst;
	struct waiting waiting[PACKET_VECTOR_MAX];
	uint16_t protocol[PACKET_VECTOR_MAX];
	struct flower_keys keys;
};

/* skb->protocol: the outermost type, host order; ETH_P_802_3 or _2 where a length stands. */
static uint16_t
frame_protocol(const struct rte_mbuf *m)
{
	uint8_t buf[4];
	const uint8_t *p = rte_pktmbuf_read(m, ETHER_TYPE_OFF, sizeof(buf), buf);
	uint16_t type;

	if (p == NULL)
		return 0;
	type = (uint16_t)(p[0] << 8 | p[1]);
	if (type >= ETH_P_802_3_MIN)
		return type;
	return p[2] == 0xff && p[3] == 0xff ? ETH_P_802_3 : ETH_P_802_2;
}

/* Those of `mask` whose protocol it is. */
static uint64_t
with_protocol(struct run *run, uint64_t mask, uint16_t protocol)
{
	uint64_t unknown = mask & ~run->protocols, found = 0;
	unsigned int i;

	packet_mask_for_each (i, unknown)
		run->protocol[i] = frame_protocol(run->vector->pkts[i]);
	run->protocols |= unknown;
	packet_mask_for_each (i, mask)
		found |= (uint64_t)(run->protocol[i] == protocol) << i;
	return found;
}

/* Puts packets aside that go to the start of `chain`. */
static void
send_to_chain(struct run *run, uint32_t chain, uint64_t mask)
{
	uint32_t i;

	if (run->loops >= LOOPS_MAX) {
		run->result->dropped[CLASSIFIER_DROP_LOOP] |= mask;
		return;
	}
	for (i = 0; i < run->n_waiting; i++) {
		struct waiting *w = &run->waiting[i];

		if (w->chain == chain && w->loops == run->loops + 1) {
			w->mask |= mask;
			return;
		}
	}
	run->waiting[run->n_waiting++] =
		(struct waiting){ .mask = mask, .chain = chain, .loops = run->loops + 1 };
}

static void
note_redirect(struct run *run, uint64_t mask)
{
	unsigned int i;

	run->result->redirected |= mask;
	packet_mask_for_each (i, mask)
		run->result->target[i] = run->burst.target[i];
}

static void
note_class(struct run *run, uint32_t classid, uint64_t mask)
{
	unsigned int i;

	run->result->classed |= mask;
	packet_mask_for_each (i, mask)
		packet_meta(run->vector->pkts[i], run->worker->meta_offset)->classid =
			(uint16_t)classid;
}

/* Does what the verdict says. Returns those of `mask` that go on to the next priority. */
static uint64_t
settle(struct run *run, const struct classifier_rule *rule, int32_t verdict, uint64_t mask)
{
	struct classifier_result *result = run->result;

	switch (verdict) {
	case TC_ACT_SHOT:
		result->dropped[CLASSIFIER_DROP_SHOT] |= mask;
		return 0;
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		result->dropped[CLASSIFIER_DROP_STOLEN] |= mask;
		return 0;
	case TC_ACT_REDIRECT:
		note_redirect(run, mask);
		return 0;
	case TC_ACT_RECLASSIFY:
		send_to_chain(run, 0, mask);
		return 0;
	default:
		break;
	}
	if (verdict < 0)
		return mask;
	if (TC_ACT_EXT_CMP(verdict, TC_ACT_GOTO_CHAIN))
		send_to_chain(run, (uint32_t)verdict & TC_ACT_EXT_VAL_MASK, mask);
	else if (rule->classid != 0)
		note_class(run, rule->classid, mask);
	return 0;
}

/* Packets differ: settles them group by group. */
static __attribute__((noinline)) uint64_t
settle_mixed(struct run *run, const struct classifier_rule *rule, uint64_t mask)
{
	uint64_t go_on = 0, same;
	unsigned int i;

	for (; mask != 0; mask &= ~same) {
		int32_t verdict = run->burst.verdict[__builtin_ctzll(mask)];

		same = 0;
		packet_mask_for_each (i, mask)
			same |= (uint64_t)(run->burst.verdict[i] == verdict) << i;
		go_on |= settle(run, rule, verdict, same);
	}
	return go_on;
}

static void
count_hits(struct run *run, const struct classifier_rule *rule, uint64_t hits)
{
	counter_add_half(run->block->classifier->counters, run->worker->worker, rule->hits, hits);
}

/* Runs a rule's actions on packets that match it. Returns those that go on to the next priority. */
static uint64_t
run_actions(struct run *run, const struct classifier_rule *rule, uint64_t mask)
{
	const struct action_list *list = rule_actions(rule);
	int32_t verdict;

	if (list->needs_views)
		packet_vector_parse(run->vector);
	verdict = action_exec(list, &run->burst, mask);
	if (list->rewrites) {
		run->protocols &= ~mask;
		run->keys.valid &= ~mask;
	}
	return verdict == ACTION_MIXED ? settle_mixed(run, rule, mask)
				       : settle(run, rule, verdict, mask);
}

/* What run_rules() touches first. Rules may be spread over much memory. */
static void
prefetch_rules(const struct run *run, const struct classifier_rule *const *rule, uint64_t mask)
{
	const struct counter_table *counters = run->block->classifier->counters;
	const struct action_list *list;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		list = rule_actions(rule[i]);
		rte_prefetch0(counter_half_of(counters, run->worker->worker, rule[i]->hits));
		if (list->n != 0)
			rte_prefetch0(list->actions[0]);
	}
}

static void
prefetch_actions(const struct run *run, const struct classifier_rule *const *rule, uint64_t mask)
{
	const struct counter_table *counters = run->block->classifier->counters;
	const struct action_list *list;
	const struct action *action;
	unsigned int i;

	packet_mask_for_each (i, mask) {
		list = rule_actions(rule[i]);
		if (list->n == 0)
			continue;
		action = list->actions[0];
		rte_prefetch0(atomic_load_explicit(&action->params, memory_order_relaxed));
		rte_prefetch0(counter_slot_of(counters, run->worker->worker, action->counter));
	}
}

/* What two rules must have in common to be run together: the one action, or they are the same. */
static inline uintptr_t
does(const struct classifier_rule *rule)
{
	const struct action_list *list = rule_actions(rule);

	return (uintptr_t)(list->n == 1 ? (const void *)list->actions[0] : rule);
}

/*
 * Runs the rules' actions, those that do the same together: a list of a million addresses to drop
 * costs no more than one rule. Returns the packets that go on.
 */
static uint64_t
run_rules(struct run *run, const struct classifier_rule *const *rule, uint64_t mask)
{
	uint8_t seen[PACKET_VECTOR_MAX]; /* by a hash of what they do: the first packet of it */
	uint64_t same[PACKET_VECTOR_MAX], firsts = 0, go_on = 0;
	unsigned int i, slot;

	prefetch_rules(run, rule, mask);
	memset(seen, UINT8_MAX, sizeof(seen));
	packet_mask_for_each (i, mask) {
		uintptr_t what = does(rule[i]);

		count_hits(run, rule[i], 1);
		slot = (what >> 4 ^ what >> 11) % PACKET_VECTOR_MAX;
		if (seen[slot] != UINT8_MAX && does(rule[seen[slot]]) == what &&
			rule[seen[slot]]->classid == rule[i]->classid) {
			same[seen[slot]] |= UINT64_C(1) << i;
			continue;
		}
		seen[slot] = (uint8_t)i;
		same[i] = UINT64_C(1) << i;
		firsts |= UINT64_C(1) << i;
	}
	if ((firsts & (firsts - 1)) != 0)
		prefetch_actions(run, rule, firsts);
	packet_mask_for_each (i, firsts)
		go_on |= run_actions(run, rule[i], same[i]);
	return go_on;
}

/* A flower priority. Returns those of `mask` that go on to the next. */
static __attribute__((noinline)) uint64_t
run_flower(struct run *run, const struct classifier_prio *prio, uint64_t mask)
{
	const struct classifier_rule *rule[PACKET_VECTOR_MAX];
	uint64_t matched;

	packet_vector_parse(run->vector);
	matched = flower_lookup(&prio->flower, &run->keys, run->vector, mask, rule);
	if (matched == 0)
		return mask;
	return (mask & ~matched) | run_rules(run, rule, matched);
}

/* Takes packets through the priorities of a chain. Those that none decides pass. */
static void
run_chain(struct run *run, const struct classifier_chain *chain, uint64_t mask)
{
	const struct classifier_prio *prio;
	const struct classifier_rule *rule;
	uint64_t matched;

	/* Acquire: pairs with the release that linked the priority in. */
	for (prio = atomic_load_explicit(&chain->first, memory_order_acquire);
		prio != NULL && mask != 0;
		prio = atomic_load_explicit(&prio->next, memory_order_acquire)) {
		matched = prio->protocol == ETH_P_ALL ? mask
						      : with_protocol(run, mask, prio->protocol);
		if (matched == 0)
			continue;
		if (prio->kind == CLASSIFIER_FLOWER) {
			mask = (mask & ~matched) | run_flower(run, prio, matched);
			continue;
		}
		/* Acquire: pairs with the release that published the rule. */
		rule = atomic_load_explicit(&prio->rule, memory_order_acquire);
		mask &= ~matched;
		count_hits(run, rule, (uint64_t)__builtin_popcountll(matched));
		mask |= run_actions(run, rule, matched);
	}
}

static __attribute__((noinline)) void
run_waiting(struct run *run)
{
	while (run->n_waiting != 0) {
		struct waiting w = run->waiting[--run->n_waiting];
		const struct classifier_chain *chain = index_map_read(&run->block->chains, w.chain);

		run->loops = w.loops;
		/* A reclassify comes back to chain 0, were it gone: then nothing matches. */
		if (chain != NULL)
			run_chain(run, chain, w.mask);
		else if (w.chain != 0)
			run->result->dropped[CLASSIFIER_DROP_GOTO_MISSING] |= w.mask;
	}
}

void
classifier_run(struct classifier_block *block, const struct classifier_worker *worker,
	uint32_t ifindex, struct packet_vector *vector, struct classifier_result *result)
{
	struct run run; /* most of it is written only where it is needed */
	const struct classifier_chain *chain;
	uint64_t all = packet_vector_mask(vector);

	result->redirected = result->classed = 0;
	for (unsigned int i = 0; i < CLASSIFIER_DROP_MAX; i++)
		result->dropped[i] = 0;
	result->passed = all;
	/* Acquire: pairs with the release of update_first(). */
	chain = atomic_load_explicit(&block->first, memory_order_acquire);
	if (chain == NULL || all == 0)
		return;
	run.block = block;
	run.worker = worker;
	run.result = result;
	run.vector = vector;
	run.loops = 0;
	run.n_waiting = 0;
	run.protocols = 0;
	run.keys.valid = 0;
	run.keys.ifindex = ifindex;
	run.keys.meta_offset = worker->meta_offset;
	/* Relaxed: what some rule needs besides, it has read when it is met. */
	run.keys.parts = atomic_load_explicit(&block->key_parts, memory_order_relaxed);
	run.burst.vector = vector;
	run.burst.pkts = vector->pkts;
	run.burst.worker = worker->worker;
	run.burst.meta_offset = worker->meta_offset;
	run.burst.mirror = worker->mirror;
	run.burst.mirror_arg = worker->mirror_arg;
	run_chain(&run, chain, all);
	if (run.n_waiting != 0)
		run_waiting(&run);
	all &= ~result->redirected;
	for (unsigned int i = 0; i < CLASSIFIER_DROP_MAX; i++)
		all &= ~result->dropped[i];
	result->passed = all;
}
