/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * libFuzzer: any bytes are a sequence of calls: rules set, changed, deleted, flushed, chains,
 * dumps, grace periods, and frames run through the block. What must hold: masks of a result are
 * disjoint and whole, what a rule shows can be set again (and is refused as there already), dumps
 * rise, a refused call changed nothing, and at the end every slot has come back.
 */

#include <linux/if_ether.h>
#include <stdlib.h>

#include <rte_rcu_qsbr.h>

#include "classifier/classifier.h"
#include "classifier/flower.h"
#include "classifier/gact.h"
#include "classifier/mirred.h"
#include "classifier/pedit.h"
#include "classifier/police.h"
#include "classifier/skbedit.h"
#include "classifier/vlan.h"
#include "support.h"

#define CALLS_MAX 400
#define PACKETS_MAX 8
#define FRAME_MAX 120

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rte_mempool *pool;
static struct rte_rcu_qsbr *qsbr;
static int meta_offset;

struct input {
	const uint8_t *data;
	size_t size;
};

struct target {
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct classifier_block *block;
};

static void
must(bool what)
{
	if (!what)
		abort();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	test_eal_init("classifier-fuzz", "0");
	pool = test_pool("fuzz", 2047);
	meta_offset = packet_meta_register();
	qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
	must(qsbr != NULL && rte_rcu_qsbr_init(qsbr, 1) == 0);
	rte_rcu_qsbr_thread_register(qsbr, 0);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	return 0;
}

static void
take(struct input *in, void *to, size_t n)
{
	memset(to, 0, n);
	n = RTE_MIN(n, in->size);
	if (n > 0)
		memcpy(to, in->data, n);
	in->data += n;
	in->size -= n;
}

static uint8_t
byte(struct input *in)
{
	uint8_t b;

	take(in, &b, 1);
	return b;
}

/* Few values, so that calls meet. */
static uint32_t
few(struct input *in, uint32_t n)
{
	return byte(in) % n;
}

static int32_t
verdict(struct input *in)
{
	static const int32_t verdicts[] = { TC_ACT_OK, TC_ACT_SHOT, TC_ACT_PIPE, TC_ACT_UNSPEC,
		TC_ACT_RECLASSIFY, TC_ACT_STOLEN, TC_ACT_REPEAT, TC_ACT_JUMP | 1, TC_ACT_JUMP | 2,
		TC_ACT_GOTO_CHAIN | 0, TC_ACT_GOTO_CHAIN | 1, TC_ACT_GOTO_CHAIN | 2, 12345, -7 };

	return verdicts[few(in, RTE_DIM(verdicts))];
}

/* Parameters of some kind, or NULL where they are refused. */
static struct action_params *
params(struct input *in, const struct action_ops **ops)
{
	struct skbedit_params skbedit = { 0 };
	struct vlan_params vlan = { 0 };
	struct police_conf police = { 0 };
	struct pedit_key keys[3];

	switch (few(in, 6)) {
	case 0:
		*ops = &mirred_action_ops;
		return mirred_params_create(verdict(in), (int32_t)few(in, 6), few(in, 3));
	case 1:
		*ops = &skbedit_action_ops;
		skbedit.set = byte(in);
		take(in, &skbedit.priority, 4);
		skbedit.queue = byte(in);
		return skbedit_params_create(verdict(in), &skbedit);
	case 2:
		*ops = &vlan_action_ops;
		vlan.v_action = (int32_t)few(in, 5);
		vlan.vid = byte(in);
		vlan.protocol = rte_cpu_to_be_16(few(in, 2) == 0 ? ETH_P_8021Q : ETH_P_8021AD);
		vlan.priority = (uint8_t)few(in, 9);
		vlan.priority_given = few(in, 2) != 0;
		return vlan_params_create(verdict(in), &vlan);
	case 3:
		*ops = &police_action_ops;
		take(in, &police, sizeof(police));
		police.conform = verdict(in);
		return police_params_create(verdict(in), &police);
	case 4:
		*ops = &pedit_action_ops;
		take(in, keys, sizeof(keys));
		for (unsigned int i = 0; i < RTE_DIM(keys); i++) {
			keys[i].header %= 7;
			keys[i].command %= 3;
			keys[i].off = (int8_t)keys[i].off * 4;
		}
		return pedit_params_create(verdict(in), 0, few(in, 4), keys);
	default:
		*ops = &gact_action_ops;
		return gact_params_create_random(
			verdict(in), (uint16_t)few(in, 4), (uint16_t)few(in, 4), verdict(in));
	}
}

static struct action *
make_action(struct target *t, struct input *in)
{
	const struct action_ops *ops;
	struct action_params *p = params(in, &ops);
	struct action *a;
	uint32_t index = few(in, 4);

	if (p == NULL)
		return NULL;
	if ((a = action_find(t->actions, ops, index)) != NULL) {
		action_get(a, false);
		action_replace(a, p);
		return a;
	}
	must(action_create(t->actions, ops, index, p, &a) == 0);
	return a;
}

static void
read_match(struct input *in, struct flower_match *m)
{
	uint16_t bits;

	memset(m, 0, sizeof(*m));
	m->addresses = (enum flower_addresses)few(in, 5);
	take(in, &bits, 2);
	/* Whole words of the mask, or single bytes of it. */
	for (unsigned int w = 0; w < FLOWER_WORDS; w++) {
		if ((bits >> w & 1) == 0)
			continue;
		if ((bits >> 12 & 1) != 0)
			memset((uint8_t *)&m->mask + 8 * w, 0xff, 8);
		else
			((uint8_t *)&m->mask)[8 * w + (bits >> 13)] = 0xff;
		take(in, (uint8_t *)&m->key + 8 * w, 1);
	}
	m->key.present = m->mask.present = 0;
	if (few(in, 8) == 0) {
		take(in, &m->src_ports, 4);
		take(in, &m->dst_ports, 4);
	}
}

/* What a rule says of itself is what is there. */
static void
check_shown(struct target *t, const struct classifier_rule *rule)
{
	struct classifier_rule_conf again = *classifier_rule_conf(rule);
	struct flower_match m;
	const char *why;

	must(classifier_rule_find(t->block, &again.place) == rule);
	if (again.flower == NULL)
		return;
	m = *again.flower;
	again.flower = &m;
	again.n_actions = 0;
	again.place.handle = 0;
	must(classifier_rule_set(t->block, &again, CLASSIFIER_CREATE, NULL, &why) == -EEXIST);
}

static void
set_rule(struct target *t, struct input *in)
{
	struct classifier_rule_conf conf = { 0 };
	struct classifier_rule *rule = NULL;
	struct flower_match m;
	uint64_t generation = classifier_block_generation(t->block);
	uint32_t n = few(in, 4);
	const char *why;

	conf.place.chain = few(in, 3);
	conf.place.prio = few(in, 4);
	conf.place.protocol = few(in, 2) == 0 ? ETH_P_ALL : ETH_P_IP;
	conf.place.handle = few(in, 6);
	conf.place.kind = few(in, 3) == 0 ? CLASSIFIER_MATCHALL : CLASSIFIER_FLOWER;
	conf.classid = few(in, 2);
	read_match(in, &m);
	if (conf.place.kind == CLASSIFIER_FLOWER)
		conf.flower = &m;
	for (uint32_t i = 0; i < n; i++)
		if ((conf.actions[conf.n_actions] = make_action(t, in)) != NULL)
			conf.n_actions++;
	if (classifier_rule_set(t->block, &conf, few(in, 4), &rule, &why) != 0) {
		must(why != NULL);
		must(classifier_block_generation(t->block) == generation);
	} else {
		check_shown(t, rule);
	}
	for (uint32_t i = 0; i < conf.n_actions; i++)
		action_put(conf.actions[i], false);
}

static void
del_rule(struct target *t, struct input *in)
{
	struct classifier_place place = {
		.chain = few(in, 3), .prio = few(in, 4), .handle = few(in, 6)
	};
	struct classifier_rule *rule = classifier_rule_find(t->block, &place);

	if (rule != NULL)
		classifier_rule_del(rule);
}

static void
dump(struct target *t)
{
	struct classifier_place at = { 0 }, before = { 0 };

	while (classifier_rule_next(t->block, &at) != NULL) {
		must(at.chain > before.chain ||
			(at.chain == before.chain &&
				(at.prio > before.prio ||
					(at.prio == before.prio && at.handle > before.handle))));
		before = at;
	}
}

static void
mirror(void *arg, unsigned int worker, uint32_t ifindex, bool ingress, struct rte_mbuf *const *pkts,
	uint64_t mask)
{
	(void)arg, (void)worker, (void)ifindex, (void)ingress, (void)pkts, (void)mask;
}

static void
run(struct target *t, struct input *in)
{
	struct classifier_worker worker = { .meta_offset = meta_offset, .mirror = mirror };
	struct rte_mbuf *pkts[PACKETS_MAX];
	struct packet_view views[PACKETS_MAX];
	struct packet_vector vector = { .pkts = pkts, .views = views };
	struct classifier_result r;
	uint8_t frame[FRAME_MAX];
	uint64_t sum;

	vector.n = (uint16_t)few(in, PACKETS_MAX + 1);
	for (unsigned int i = 0; i < vector.n; i++) {
		uint32_t len = 1 + few(in, FRAME_MAX);

		take(in, frame, len);
		pkts[i] = test_frame(pool, frame, len, byte(in) % 32);
		memset(packet_meta(pkts[i], meta_offset), 0, sizeof(struct packet_meta));
	}
	classifier_run(t->block, &worker, 1 + few(in, 2), &vector, &r);
	must((r.passed & r.redirected) == 0);
	sum = r.passed | r.redirected;
	for (unsigned int i = 0; i < CLASSIFIER_DROP_MAX; i++) {
		must((sum & r.dropped[i]) == 0);
		sum |= r.dropped[i];
	}
	must(sum == packet_vector_mask(&vector));
	rte_pktmbuf_free_bulk(pkts, vector.n);
}

static void
call(struct target *t, struct input *in)
{
	const char *why;

	switch (few(in, 10)) {
	case 0:
	case 1:
	case 2:
		set_rule(t, in);
		break;
	case 3:
		del_rule(t, in);
		break;
	case 4:
		(void)classifier_flush(
			t->block, few(in, 3), few(in, 4), few(in, 2) == 0 ? 0 : ETH_P_IP, &why);
		break;
	case 5:
		if (few(in, 2) == 0)
			(void)classifier_chain_add(t->block, few(in, 3), &why);
		else
			(void)classifier_chain_del(t->block, few(in, 3), &why);
		break;
	case 6:
		dump(t);
		break;
	case 7:
		rte_rcu_qsbr_quiescent(qsbr, 0);
		rcu_reclaim(t->rcu, few(in, 8));
		break;
	default:
		run(t, in);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct target t;

	must((t.rcu = rcu_create(qsbr)) != NULL);
	must((t.actions = action_table_create(t.rcu, 1)) != NULL);
	must((t.classifier = classifier_create(t.rcu, t.actions)) != NULL);
	must(classifier_block_create(t.classifier, &t.block) == 0);
	for (unsigned int i = 0; i < CALLS_MAX && in.size > 0; i++)
		call(&t, &in);
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	classifier_block_put(t.block);
	rcu_barrier(t.rcu);
	must(action_table_counters(t.actions)->used == 0);
	classifier_destroy(t.classifier);
	action_table_destroy(t.actions);
	rcu_destroy(t.rcu);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	must(test_pool_full(pool));
	return 0;
}
