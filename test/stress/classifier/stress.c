/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Rules are inserted, deleted, replaced and flushed as fast as one thread can, beside workers that
 * look packets up. What must hold in every vector:
 *
 *   C4  the packets of a rule that is replaced again and again, under other masks and the same,
 *       always match it: a rule at a later priority that catches what falls through never sees one;
 *   C3  permanent rules are found while others of their mask come, go and make the table grow;
 *   A29 a packet is in exactly one of passed, redirected and the drops.
 *
 * At the end every slot has come back. Meant for TSan and ASan as well as by itself.
 *
 * stress [seconds]; MILLRACE_STRESS_SECONDS does the same.
 */

#include <err.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "classifier/classifier.h"
#include "classifier/flower.h"
#include "classifier/gact.h"
#include "support.h"

#define WORKERS 2
#define BURST 32
#define REPLACED 8 /* packets 0 .. 7 */
#define PERMANENT 8 /* packets 8 .. 15 */
#define CHURNED 8 /* packets 16 .. 23 */
#define CHURN 3000 /* rules that come and go */
#define SURE ((UINT64_C(1) << (REPLACED + PERMANENT)) - 1)

struct stress {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct classifier_block *block;
	struct rte_mempool *pool;
	int meta_offset;
	struct classifier_hook hook;
	struct classifier_rule *churn[CHURN];
	uint64_t changes;
	atomic_bool stop;
	atomic_ulong vectors, lost, torn;
};

struct worker {
	struct stress *s;
	unsigned int id;
	pthread_t thread;
	uint64_t churn_hits;
};

static uint32_t
address_of(unsigned int packet)
{
	return 0xc6120000u + packet;
}

static struct rte_mbuf *
make_packet(struct stress *s, uint32_t src)
{
	uint8_t frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0,
		64, IPPROTO_UDP };

	src = htonl(src);
	memcpy(frame + 26, &src, 4);
	return test_frame(s->pool, frame, sizeof(frame), 0);
}

static void
no_mirror(void *arg, unsigned int worker, uint32_t ifindex, bool ingress,
	struct rte_mbuf *const *pkts, uint64_t mask)
{
	(void)arg, (void)worker, (void)ifindex, (void)ingress, (void)pkts, (void)mask;
}

static void
check(struct stress *s, struct worker *w, const struct classifier_result *r)
{
	uint64_t sum = r->passed, twice = sum & r->redirected;

	sum |= r->redirected;
	for (unsigned int i = 0; i < CLASSIFIER_DROP_MAX; i++) {
		twice |= sum & r->dropped[i];
		sum |= r->dropped[i];
	}
	if (twice != 0 || sum != (UINT64_C(1) << BURST) - 1)
		atomic_fetch_add_explicit(&s->torn, 1, memory_order_relaxed);
	if ((r->dropped[CLASSIFIER_DROP_SHOT] & SURE) != SURE)
		atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
	w->churn_hits += (uint64_t)__builtin_popcountll(r->dropped[CLASSIFIER_DROP_SHOT] & ~SURE);
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct stress *s = w->s;
	struct classifier_worker cw = {
		.worker = w->id, .meta_offset = s->meta_offset, .mirror = no_mirror
	};
	struct rte_mbuf *pkts[BURST];
	struct packet_view views[BURST];
	struct classifier_result result;
	struct classifier_block *block;
	uint64_t n = 0;

	for (unsigned int i = 0; i < BURST; i++)
		pkts[i] = make_packet(s, address_of(i));
	rte_rcu_qsbr_thread_register(s->qsbr, w->id);
	rte_rcu_qsbr_thread_online(s->qsbr, w->id);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		struct packet_vector vector = { .pkts = pkts, .views = views, .n = BURST };

		block = classifier_hook_block(&s->hook);
		classifier_run(block, &cw, 1, &vector, &result);
		check(s, w, &result);
		n++;
		rte_rcu_qsbr_quiescent(s->qsbr, w->id);
	}
	rte_rcu_qsbr_thread_offline(s->qsbr, w->id);
	rte_pktmbuf_free_bulk(pkts, BURST);
	atomic_fetch_add(&s->vectors, n);
	return NULL;
}

static struct action *
make_action(struct stress *s, int32_t verdict)
{
	struct action *a;

	if (action_create(s->actions, &gact_action_ops, 0, gact_params_create(verdict), &a) != 0)
		errx(1, "no action");
	return a;
}

/* Sets a rule with an action of its own. */
static struct classifier_rule *
set(struct stress *s, uint32_t chain, uint32_t prio, uint32_t handle, const struct flower_match *m,
	int32_t verdict)
{
	struct classifier_rule_conf conf = {
		.place = { .chain = chain,
			.prio = prio,
			.protocol = m != NULL ? ETH_P_IP : ETH_P_ALL,
			.handle = handle,
			.kind = m != NULL ? CLASSIFIER_FLOWER : CLASSIFIER_MATCHALL },
		.flower = m,
		.n_actions = 1,
	};
	struct classifier_rule *rule;
	const char *why;

	conf.actions[0] = make_action(s, verdict);
	if (classifier_rule_set(s->block, &conf, CLASSIFIER_CREATE, &rule, &why) != 0)
		errx(1, "rule: %s", why);
	action_put(conf.actions[0], false);
	s->changes++;
	return rule;
}

static void
match_src(struct flower_match *m, uint32_t src, uint32_t mask)
{
	*m = (struct flower_match){ .addresses = FLOWER_IPV4 };
	m->key.eth_type = htons(ETH_P_IP);
	m->mask.eth_type = UINT16_MAX;
	m->key.a.ip4.src = htonl(src);
	m->mask.a.ip4.src = htonl(mask);
}

/*
 * Packets 0 to 7 have one rule, handle 1, that covers them under any of these masks. What it covers
 * besides is of no use to anybody.
 */
static void
replace(struct stress *s, unsigned int *seed)
{
	struct flower_match m;
	unsigned int bits = (unsigned int)rand_r(seed) % 4;

	match_src(&m, address_of(0), ~UINT32_C(7));
	if ((bits & 1) != 0) {
		m.key.ip_proto = IPPROTO_UDP;
		m.mask.ip_proto = UINT8_MAX;
	}
	if ((bits & 2) != 0)
		m.mask.a.ip4.dst = htonl(0xff);
	set(s, 0, 1, 1, &m, TC_ACT_SHOT);
}

/* Rules under the mask of the permanent ones. */
static void
churn(struct stress *s, unsigned int *seed)
{
	unsigned int n = (unsigned int)rand_r(seed) % CHURN;
	struct flower_match m;

	if (s->churn[n] != NULL) {
		classifier_rule_del(s->churn[n]);
		s->churn[n] = NULL;
		s->changes++;
		return;
	}
	match_src(&m, n < CHURNED ? address_of(REPLACED + PERMANENT + n) : 0xcb007100u + n,
		UINT32_MAX);
	s->churn[n] = set(s, 0, 1, 0, &m, TC_ACT_SHOT);
}

/* The chain that packets 24 to 31 are sent to comes and goes, as does what sends them. */
static void
reroute(struct stress *s, unsigned int *seed)
{
	const char *why;
	struct flower_match m;

	switch (rand_r(seed) % 6) {
	case 0:
		classifier_flush(s->block, 7, 0, 0, &why);
		break;
	case 1:
		set(s, 7, 1 + (uint32_t)rand_r(seed) % 4, 0, NULL, TC_ACT_UNSPEC);
		break;
	case 2:
		set(s, 7, 9, 0, NULL, rand_r(seed) % 2 == 0 ? TC_ACT_RECLASSIFY : TC_ACT_SHOT);
		break;
	case 3:
		classifier_flush(s->block, 0, 5, 0, &why);
		break;
	case 4:
		(void)classifier_chain_add(s->block, 7, &why);
		break;
	default:
		match_src(&m, address_of(24), ~UINT32_C(7));
		set(s, 0, 5, 1, &m, TC_ACT_GOTO_CHAIN | 7);
		break;
	}
}

/* All that churns at once, many at a time, and another round of the same. */
static void
rebuild(struct stress *s)
{
	for (unsigned int i = 0; i < CHURN; i++) {
		if (s->churn[i] == NULL)
			continue;
		classifier_rule_del(s->churn[i]);
		s->churn[i] = NULL;
		s->changes++;
	}
}

static void
populate(struct stress *s)
{
	struct flower_match m;
	unsigned int seed = 1;

	replace(s, &seed);
	for (unsigned int i = 0; i < PERMANENT; i++) {
		match_src(&m, address_of(REPLACED + i), UINT32_MAX);
		set(s, 0, 1, 100000 + i, &m, TC_ACT_SHOT);
	}
	set(s, 0, 9, 0, NULL, TC_ACT_STOLEN);
}

static void
control(struct stress *s, double for_seconds)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(for_seconds * (double)rte_get_tsc_hz());
	unsigned int seed = 5;

	for (uint64_t i = 0; rte_rdtsc() < end; i++) {
		replace(s, &seed);
		for (unsigned int c = 0; c < 8; c++)
			churn(s, &seed);
		reroute(s, &seed);
		if (i % 4096 == 4095)
			rebuild(s);
		if (i % 16 == 0)
			rcu_reclaim(s->rcu, 256);
	}
}

static int
finish(struct stress *s)
{
	int bad = 0;

	classifier_hook_set(&s->hook, NULL);
	classifier_block_put(s->block);
	rcu_barrier(s->rcu);
	if (action_table_counters(s->actions)->used != 0 || rcu_pending(s->rcu) != 0)
		bad = 1;
	classifier_destroy(s->classifier);
	action_table_destroy(s->actions);
	rcu_destroy(s->rcu);
	if (!test_pool_full(s->pool))
		bad = 1;
	return bad;
}

int
main(int argc, char **argv)
{
	static struct stress s;
	const char *env = getenv("MILLRACE_STRESS_SECONDS");
	double for_seconds = argc > 1 ? atof(argv[1]) : env != NULL ? atof(env) : 5;
	struct worker worker[WORKERS] = { 0 };
	uint64_t churn_hits = 0;
	cpu_set_t cpus;
	int leaked;

	/* EAL ties this thread, and so the workers, to one CPU. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	test_eal_init("classifier_stress", "0");
	sched_setaffinity(0, sizeof(cpus), &cpus);
	s.pool = test_pool("stress", 256);
	s.meta_offset = packet_meta_register();
	s.qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(WORKERS));
	rte_rcu_qsbr_init(s.qsbr, WORKERS);
	s.rcu = rcu_create(s.qsbr);
	s.actions = action_table_create(s.rcu, WORKERS);
	s.classifier = classifier_create(s.rcu, s.actions);
	if (classifier_block_create(s.classifier, &s.block) != 0)
		errx(1, "no memory");
	populate(&s);
	classifier_hook_set(&s.hook, s.block);
	for (unsigned int i = 0; i < WORKERS; i++) {
		worker[i].s = &s;
		worker[i].id = i;
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0)
			errx(1, "no thread");
	}
	control(&s, for_seconds);
	atomic_store(&s.stop, true);
	for (unsigned int i = 0; i < WORKERS; i++) {
		pthread_join(worker[i].thread, NULL);
		churn_hits += worker[i].churn_hits;
	}
	leaked = finish(&s);
	free(s.qsbr);
	printf("%lu changes, %lu vectors, %lu hits of rules that come and go; lost %lu, torn %lu, "
	       "%s\n",
		(unsigned long)s.changes, (unsigned long)s.vectors, (unsigned long)churn_hits,
		(unsigned long)s.lost, (unsigned long)s.torn,
		leaked != 0 ? "leaked" : "nothing leaked");
	return s.lost != 0 || s.torn != 0 || leaked != 0 || churn_hits == 0 || s.vectors < 100;
}
