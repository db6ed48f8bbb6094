/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * One policer, two workers that offer far more than its rate: together they get the rate, neither
 * more (a token spent twice) nor less (one lost between them), and every packet is counted once.
 *
 * police [SECONDS]
 */

#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "action/action.h"
#include "classifier/police.h"
#include "support.h"

#define WORKERS 2
#define BURST 32
#define RATE 12500000 /* bytes a second */
#define BURST_MS 2000 /* longer than a worker is usually kept from running */
/* Nobody ran for longer than that: tokens are lost. Two that take one token show as more than all.
 */
#define LEAST 0.05

struct worker {
	const struct action_list *list;
	unsigned int id;
	pthread_t thread;
	uint64_t offered, conform, conform_bytes;
};

static atomic_bool stop;

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct rte_mbuf mbufs[BURST], *pkts[BURST];
	struct action_burst burst = { .pkts = pkts, .worker = w->id };
	int32_t verdict;

	memset(mbufs, 0, sizeof(mbufs));
	for (unsigned int i = 0; i < BURST; i++) {
		mbufs[i].pkt_len = 64 + 40 * i + w->id;
		pkts[i] = &mbufs[i];
	}
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		verdict = action_exec(w->list, &burst, (UINT64_C(1) << BURST) - 1);
		for (unsigned int i = 0; i < BURST; i++) {
			if ((verdict == ACTION_MIXED ? burst.verdict[i] : verdict) != TC_ACT_OK)
				continue;
			w->conform++;
			w->conform_bytes += pkts[i]->pkt_len;
		}
		w->offered += BURST;
	}
	return NULL;
}

static struct action *
make_policer(struct action_table *actions)
{
	struct police_conf conf = {
		.rate = RATE, .burst_ns = BURST_MS * UINT64_C(1000000), .conform = TC_ACT_OK
	};
	struct action_params *params = police_params_create(TC_ACT_SHOT, &conf);
	struct action *action;

	if (params == NULL || action_create(actions, &police_action_ops, 0, params, &action) != 0)
		errx(1, "no memory");
	return action;
}

int
main(int argc, char **argv)
{
	const char *env = getenv("MILLRACE_STRESS_SECONDS");
	double seconds = argc > 1 ? atof(argv[1]) : env != NULL ? atof(env) : 3, most, ratio;
	struct worker worker[WORKERS] = { 0 };
	struct action_list *list = calloc(1, action_list_size(1));
	struct action_table *actions;
	struct action_stats stats;
	struct rte_rcu_qsbr *qsbr;
	struct action *action;
	uint64_t conform = 0, bytes = 0, offered = 0, start;
	struct rcu *rcu;
	cpu_set_t cpus;
	bool counted;

	/* EAL ties this thread, and so the workers, to one CPU. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	test_eal_init("police_stress", "0");
	sched_setaffinity(0, sizeof(cpus), &cpus);
	qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(WORKERS));
	rte_rcu_qsbr_init(qsbr, WORKERS);
	rcu = rcu_create(qsbr);
	actions = action_table_create(rcu, WORKERS);
	start = rte_rdtsc();
	action = make_policer(actions);
	action_list_init(list, &action, 1);
	for (unsigned int i = 0; i < WORKERS; i++) {
		worker[i] = (struct worker){ .list = list, .id = i };
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0)
			errx(1, "no thread");
	}
	rte_delay_us_sleep((unsigned int)(seconds * 1e6));
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WORKERS; i++) {
		pthread_join(worker[i].thread, NULL);
		offered += worker[i].offered;
		conform += worker[i].conform;
		bytes += worker[i].conform_bytes;
	}
	most = RATE * ((double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz() + BURST_MS / 1e3);
	ratio = (double)bytes / most;
	action_stats_get(action, &stats);
	counted = stats.packets == offered && stats.drops == offered - conform &&
		stats.overlimits == offered - conform;
	printf("%lu of %lu packets conform, %.4f of what the rate allows; %s\n",
		(unsigned long)conform, (unsigned long)offered, ratio,
		counted ? "all counted" : "counts differ");
	action_put(action, false);
	action_table_destroy(actions);
	rcu_barrier(rcu);
	rcu_destroy(rcu);
	free(list);
	free(qsbr);
	return !counted || ratio > 1 || ratio < LEAST || offered == conform;
}
