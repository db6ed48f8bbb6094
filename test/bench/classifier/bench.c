/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What the classifier costs: look-ups by number of rules and masks, insertion, chains, memory.
 *
 * bench EAL-options -- [-n most-rules] [-r rounds] [-o file.json]
 *
 * Look-up: a loop over vectors of 32 frames whose addresses are set anew each time, so that rules
 * are hit at random all over the table; the same loop without the classifier is taken off. Short
 * rounds of both alternate; medians. A look-up includes the parse of the frame and the reading of
 * its key; rules share one action, as a drop list does, unless it says otherwise. Insertion is
 * timed by the thread's CPU clock.
 */

#include <err.h>
#include <linux/if_ether.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>

#include "bench/median.h"
#include "classifier/classifier.h"
#include "classifier/flower.h"
#include "classifier/gact.h"

#define BURST 32
#define VECTORS 8
#define LOOPS 64
#define ROUNDS_MAX 1001
#define MASKS_MAX 16
#define RESULTS_MAX 256
#define CHAINS 100000
#define PAUSE_ROUNDS 4

struct bench {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct classifier_block *block;
	struct classifier_worker worker;
	struct rte_mempool *pool;
	struct rte_mbuf *pkts[VECTORS][BURST];
	struct packet_view views[BURST];
	struct action *shared;
	unsigned int rounds;
	uint32_t most;
	struct result {
		char name[96];
		double value;
		const char *unit;
	} results[RESULTS_MAX];
	unsigned int n_results;
};

static void
say(struct bench *b, double value, const char *unit, const char *fmt, ...)
{
	struct result *r = &b->results[b->n_results++];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->name, sizeof(r->name), fmt, ap);
	va_end(ap);
	r->value = value;
	r->unit = unit;
	printf("%-60s %10.2f %s\n", r->name, value, unit);
	fflush(stdout);
}

static void
write_json(const struct bench *b, const char *path)
{
	FILE *out = fopen(path, "w");

	if (out == NULL) {
		warn("%s", path);
		return;
	}
	fprintf(out, "{\"bench\": \"classifier\", \"tsc_hz\": %lu, \"results\": [\n",
		rte_get_tsc_hz());
	for (unsigned int i = 0; i < b->n_results; i++)
		fprintf(out, "  {\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}%s\n",
			b->results[i].name, b->results[i].value, b->results[i].unit,
			i + 1 < b->n_results ? "," : "");
	fprintf(out, "]}\n");
	fclose(out);
}

static double
cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static size_t
memory(const struct bench *b)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd + slab_used(action_table_slab(b->actions));
}

/* Rule number i as a key: source, destination and ports all depend on it. */
static void
key_of(uint32_t i, uint32_t *src, uint32_t *dst, uint32_t *ports)
{
	*src = htonl(0xc6120000u + (i & 0x1ffff));
	*dst = htonl(0xc0000200u + (i >> 17));
	*ports = i * 2654435761u;
}

/* Masks differ in the length of the destination prefix and of the source port's mask. */
static void
match_of(uint32_t i, unsigned int mask, struct flower_match *m)
{
	uint32_t ports;

	*m = (struct flower_match){ .addresses = FLOWER_IPV4 };
	m->key.eth_type = htons(ETH_P_IP);
	m->mask.eth_type = UINT16_MAX;
	m->key.ip_proto = IPPROTO_UDP;
	m->mask.ip_proto = UINT8_MAX;
	key_of(i, &m->key.a.ip4.src, &m->key.a.ip4.dst, &ports);
	m->mask.a.ip4.src = UINT32_MAX;
	m->mask.a.ip4.dst = htonl(UINT32_MAX << mask % 4);
	memcpy(&m->key.src_port, &ports, 2);
	memcpy(&m->key.dst_port, (uint8_t *)&ports + 2, 2);
	m->mask.src_port = htons((uint16_t)(UINT16_MAX << mask / 4));
	m->mask.dst_port = UINT16_MAX;
}

static struct action *
make_action(struct bench *b, int32_t verdict)
{
	struct action_params *params = gact_params_create(verdict);
	struct action *action;

	if (params == NULL || action_create(b->actions, &gact_action_ops, 0, params, &action) != 0)
		errx(1, "no memory for an action");
	return action;
}

enum actions {
	NO_ACTION,
	SHARED_ACTION,
	OWN_ACTION,
};

static struct classifier_rule *
add_rule(struct bench *b, uint32_t chain, uint32_t prio, const struct flower_match *m,
	enum actions actions)
{
	struct classifier_rule_conf conf;
	struct classifier_rule *rule;
	const char *why;

	conf.place = (struct classifier_place){ .chain = chain,
		.prio = prio,
		.protocol = m != NULL ? ETH_P_IP : ETH_P_ALL,
		.kind = m != NULL ? CLASSIFIER_FLOWER : CLASSIFIER_MATCHALL };
	conf.classid = conf.flags = 0;
	conf.flower = m;
	conf.n_actions = actions != NO_ACTION;
	if (actions == OWN_ACTION)
		conf.actions[0] = make_action(b, TC_ACT_OK);
	else
		conf.actions[0] = b->shared;
	if (classifier_rule_set(
		    b->block, &conf, CLASSIFIER_CREATE | CLASSIFIER_EXCL, &rule, &why) != 0)
		errx(1, "rule: %s", why);
	if (actions == OWN_ACTION)
		action_put(conf.actions[0], false);
	return rule;
}

static void
flush(struct bench *b)
{
	uint32_t index = 0;
	const char *why;

	while (classifier_chain_next(b->block, &index)) {
		if (classifier_flush(b->block, index, 0, 0, &why) != 0)
			errx(1, "flush: %s", why);
		if (classifier_chain_exists(b->block, index))
			classifier_chain_del(b->block, index, &why);
	}
	rcu_barrier(b->rcu);
}

static void
make_frames(struct bench *b)
{
	uint8_t frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0,
		64, IPPROTO_UDP };

	frame[39] = 26;
	for (unsigned int v = 0; v < VECTORS; v++) {
		for (unsigned int i = 0; i < BURST; i++) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(b->pool);

			if (m == NULL)
				errx(1, "no mbuf");
			memcpy(rte_pktmbuf_append(m, sizeof(frame)), frame, sizeof(frame));
			b->pkts[v][i] = m;
		}
	}
}

/* Gives frame m the addresses of rule i. */
static inline void
address(struct rte_mbuf *m, uint32_t i)
{
	uint32_t src, dst, ports;

	key_of(i, &src, &dst, &ports);
	memcpy(rte_pktmbuf_mtod_offset(m, void *, 26), &src, 4);
	memcpy(rte_pktmbuf_mtod_offset(m, void *, 30), &dst, 4);
	memcpy(rte_pktmbuf_mtod_offset(m, void *, 34), &ports, 4);
}

/* Cycles a packet of one round. Frames get the addresses of rules first .. first + n - 1. */
static double
round_of(struct bench *b, bool classify, uint32_t first, uint32_t n, uint64_t *sum)
{
	struct classifier_result result = { 0 };
	uint64_t random = 88172645463325252u, start = rte_rdtsc();

	for (unsigned int l = 0; l < LOOPS; l++) {
		struct packet_vector vector = {
			.pkts = b->pkts[l % VECTORS], .views = b->views, .n = BURST
		};

		for (unsigned int i = 0; n != 0 && i < BURST; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			address(vector.pkts[i], first + (uint32_t)((random >> 32) * n >> 32));
		}
		if (classify)
			classifier_run(b->block, &b->worker, 1, &vector, &result);
		*sum += result.passed;
		__asm__ volatile("" ::: "memory");
	}
	return (double)(rte_rdtsc() - start) / (LOOPS * BURST);
}

/* Median cycles a packet that the classifier adds. */
static double
cost(struct bench *b, uint32_t first, uint32_t n)
{
	double with[ROUNDS_MAX], without[ROUNDS_MAX];
	uint64_t sum = 0;

	for (unsigned int r = 0; r < b->rounds + 1; r++) {
		double x = round_of(b, false, first, n, &sum),
		       y = round_of(b, true, first, n, &sum);

		/* The first round warms up. */
		if (r > 0) {
			without[r - 1] = x;
			with[r - 1] = y;
		}
	}
	return median(with, b->rounds) - median(without, b->rounds);
}

static void
bench_matchall(struct bench *b)
{
	say(b, cost(b, 0, 0), "cycles", "no rule at all");
	add_rule(b, 0, 1, NULL, NO_ACTION);
	say(b, cost(b, 0, 0), "cycles", "matchall without action");
	flush(b);
	add_rule(b, 0, 1, NULL, SHARED_ACTION);
	say(b, cost(b, 0, 0), "cycles", "matchall, gact pass");
	flush(b);
}

static void
bench_lookup(struct bench *b)
{
	struct flower_match m;

	for (uint32_t n = 1000; n <= b->most;
		n = n * 10 > b->most && n < b->most ? b->most : n * 10) {
		for (uint32_t i = 0; i < n; i++) {
			match_of(i, 0, &m);
			add_rule(b, 0, 1, &m, SHARED_ACTION);
		}
		say(b, cost(b, 0, n), "cycles", "flower, 1 mask, %u rules, hit", n);
		say(b, cost(b, 1u << 28, n), "cycles", "flower, 1 mask, %u rules, miss", n);
		flush(b);
	}
	for (unsigned int masks = 1; masks <= MASKS_MAX; masks *= 2) {
		for (uint32_t i = 0; i < 1000 * masks; i++) {
			match_of(i, i / 1000, &m);
			add_rule(b, 0, 1, &m, SHARED_ACTION);
		}
		say(b, cost(b, 1000 * (masks - 1), 1000), "cycles",
			"flower, %u masks of 1000 rules, hit in the last", masks);
		say(b, cost(b, 1u << 28, 1000), "cycles", "flower, %u masks of 1000 rules, miss",
			masks);
		flush(b);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		match_of(i, 0, &m);
		add_rule(b, 0, 1, &m, OWN_ACTION);
	}
	say(b, cost(b, 0, 1000), "cycles", "flower, 1 mask, 1000 rules each with its action, hit");
	flush(b);
}

/* In random order. */
static void
delete_all(struct bench *b, struct classifier_rule *const *rule, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		classifier_rule_del(rule[(uint64_t)i * 1000003 % n]);
		if (i % 1024 == 0)
			rcu_reclaim(b->rcu, 0);
	}
}

/*
 * The longest insertion by the thread's CPU clock, which costs too much for the other figures; and
 * the longest but for what does not come again when the same rules are inserted anew, each time
 * after all were deleted at random: that clock runs on while a host, or an interrupt, has the CPU.
 */
static void
longest_insertion(struct bench *b, uint32_t n, enum actions actions, struct classifier_rule **rule,
	const char *name)
{
	float *took = malloc(n * sizeof(*took)), t;
	double worst = 0, again = 0, before, now;
	struct flower_match m;

	if (took == NULL)
		errx(1, "no memory");
	for (unsigned int round = 0; round < PAUSE_ROUNDS; round++) {
		before = cpu_time();
		for (uint32_t i = 0; i < n; i++) {
			match_of(i, 0, &m);
			rule[i] = add_rule(b, 0, 1, &m, actions);
			now = cpu_time();
			t = (float)(now - before);
			worst = RTE_MAX(worst, now - before);
			/* The first round finds the heap as others left it. */
			took[i] = round <= 1 ? t : RTE_MIN(t, took[i]);
			if (i % 1024 == 0)
				rcu_reclaim(b->rcu, 0);
			before = cpu_time();
		}
		delete_all(b, rule, n);
		rcu_barrier(b->rcu);
	}
	for (uint32_t i = 0; i < n; i++)
		again = RTE_MAX(again, (double)took[i]);
	free(took);
	say(b, worst * 1e6, "us", "longest insertion of %u, %s", n, name);
	say(b, again * 1e6, "us", "longest that comes again in each of %u rounds",
		PAUSE_ROUNDS - 1);
}

static void
bench_insert_kind(struct bench *b, uint32_t n, enum actions actions, const char *name)
{
	struct classifier_rule **rule = calloc(n, sizeof(*rule));
	struct flower_match m;
	double start;

	if (rule == NULL)
		errx(1, "no memory");
	start = cpu_time();
	for (uint32_t i = 0; i < n; i++) {
		match_of(i, 0, &m);
		rule[i] = add_rule(b, 0, 1, &m, actions);
		if (i % 1024 == 0)
			rcu_reclaim(b->rcu, 0);
	}
	say(b, n / (cpu_time() - start) / 1e6, "M/s", "insert %u rules, %s", n, name);
	start = cpu_time();
	delete_all(b, rule, n);
	say(b, n / (cpu_time() - start) / 1e6, "M/s", "delete %u rules, %s", n, name);
	rcu_barrier(b->rcu);
	longest_insertion(b, n, actions, rule, name);
	free(rule);
}

static void
bench_insert(struct bench *b)
{
	bench_insert_kind(b, b->most, SHARED_ACTION, "one shared action");
	bench_insert_kind(b, b->most / 5, OWN_ACTION, "each with its own action");
}

static void
bench_chains_kind(struct bench *b, bool flower)
{
	struct classifier_rule **rule = calloc(CHAINS, sizeof(*rule));
	const char *name = flower ? "flower" : "matchall";
	struct flower_match m;
	double start;

	start = cpu_time();
	for (uint32_t i = 0; i < CHAINS; i++) {
		match_of(i, 0, &m);
		rule[i] = add_rule(b, i, 1, flower ? &m : NULL, SHARED_ACTION);
	}
	say(b, (cpu_time() - start), "s", "%u chains with a %s rule each", CHAINS, name);
	start = cpu_time();
	for (uint32_t i = 0; i < CHAINS; i++) {
		classifier_rule_del(rule[(uint64_t)i * 61987 % CHAINS]);
		if (i % 1024 == 0)
			rcu_reclaim(b->rcu, 0);
	}
	say(b, (cpu_time() - start), "s", "deletion of them in random order, %s", name);
	rcu_barrier(b->rcu);
	free(rule);
}

static void
bench_chains(struct bench *b)
{
	const char *why;
	double start;

	bench_chains_kind(b, false);
	bench_chains_kind(b, true);
	start = cpu_time();
	for (uint32_t i = 0; i < CHAINS; i++)
		if (classifier_chain_add(b->block, i, &why) != 0)
			errx(1, "chain: %s", why);
	say(b, (cpu_time() - start) / CHAINS * 1e6, "us", "an empty chain");
	flush(b);
}

/* Tables with counters of so many workers, of which one counts. */
static void
make_tables(struct bench *b, unsigned int workers)
{
	if ((b->actions = action_table_create(b->rcu, workers)) == NULL ||
		(b->classifier = classifier_create(b->rcu, b->actions)) == NULL ||
		classifier_block_create(b->classifier, &b->block) != 0)
		errx(1, "no memory");
	b->shared = make_action(b, TC_ACT_OK);
}

static void
free_tables(struct bench *b)
{
	classifier_block_put(b->block);
	rcu_barrier(b->rcu);
	classifier_destroy(b->classifier);
	action_table_destroy(b->actions);
	rcu_barrier(b->rcu);
}

/* What n rules take in tables that never had any, with counters of so many workers. */
static double
memory_of(struct bench *b, uint32_t n, enum actions actions, unsigned int workers)
{
	struct flower_match m;
	size_t used;

	free_tables(b);
	make_tables(b, workers);
	used = memory(b);
	for (uint32_t i = 0; i < n; i++) {
		match_of(i, 0, &m);
		add_rule(b, 0, 1, &m, actions);
		if (i % 1024 == 0)
			rcu_reclaim(b->rcu, 0);
	}
	/* Tables that were outgrown are no part of it. */
	rcu_barrier(b->rcu);
	return (double)(memory(b) - used) / n;
}

static void
bench_memory(struct bench *b)
{
	static const struct {
		enum actions actions;
		const char *name;
	} kinds[] = { { SHARED_ACTION, "one shared action" },
		{ OWN_ACTION, "each with its own action" } };
	uint32_t n = b->most / 5;

	for (unsigned int k = 0; k < RTE_DIM(kinds); k++) {
		double one = memory_of(b, n, kinds[k].actions, 1),
		       three = memory_of(b, n, kinds[k].actions, 3);

		say(b, one, "bytes", "memory a rule of %u, %s, counters of 1 worker included", n,
			kinds[k].name);
		say(b, (three - one) / 2, "bytes", "the same for each further worker");
	}
}

static void
setup(struct bench *b)
{
	b->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
	if (b->qsbr == NULL || rte_rcu_qsbr_init(b->qsbr, 1) != 0 ||
		(b->rcu = rcu_create(b->qsbr)) == NULL)
		errx(1, "no memory");
	make_tables(b, 1);
	if ((b->worker.meta_offset = packet_meta_register()) < 0)
		errx(1, "packet_meta: %s", rte_strerror(rte_errno));
	b->pool = rte_pktmbuf_pool_create(
		"bench", VECTORS * BURST, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (b->pool == NULL)
		errx(1, "rte_pktmbuf_pool_create: %s", rte_strerror(rte_errno));
	make_frames(b);
}

int
main(int argc, char **argv)
{
	static struct bench b = { .rounds = 401, .most = 1000000 };
	const char *json = NULL;
	int n, ch;

	/* No pause for merging millions of small chunks: see doc/classifier.md. */
	mallopt(M_MXFAST, 0);
	if ((n = rte_eal_init(argc, argv)) < 0)
		errx(1, "rte_eal_init: %s", rte_strerror(rte_errno));
	argc -= n;
	argv += n;
	optind = 1;
	while ((ch = getopt(argc, argv, "n:o:r:")) != -1) {
		switch (ch) {
		case 'n':
			b.most = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'o':
			json = optarg;
			break;
		case 'r':
			b.rounds = RTE_MIN(
				(unsigned int)strtoul(optarg, NULL, 10), (unsigned int)ROUNDS_MAX);
			break;
		default:
			errx(1,
				"usage: bench EAL-options -- [-n rules] [-r rounds] [-o "
				"file.json]");
		}
	}
	setup(&b);
	bench_matchall(&b);
	bench_lookup(&b);
	bench_insert(&b);
	bench_chains(&b);
	bench_memory(&b);
	if (json != NULL)
		write_json(&b, json);
	return 0;
}
