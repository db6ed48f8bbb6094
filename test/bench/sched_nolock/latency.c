/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <err.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_rcu_qsbr.h>

#include "latency.h"
#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"

#define TRIES 2000
#define N_BACKLOGS 6
#define BURST 8
#define BUSY_US 100

/* Packets that wait when silence begins; 0: what two busy workers left behind. */
static const unsigned int backlogs[N_BACKLOGS] = { 0, 1, 7, 31, 128, 500 };

struct latency {
	uint64_t cycles[TRIES];
	unsigned int loops[TRIES];
	unsigned int left[TRIES]; /* packets that waited */
	unsigned int n;
	unsigned int late; /* tries that took more loops than the bound */
};

static struct latency latency[N_BACKLOGS];

static struct {
	struct rte_mempool *pool;
	struct rte_rcu_qsbr *qsbr;
	struct sched_nolock *sched;
	uint16_t port;
	bool open; /* the NIC takes packets */
	uint64_t end; /* TSC: when the busy workers fall silent */
} bed;

static uint16_t
gate_tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	return bed.open ? rte_eth_tx_burst(bed.port, 0, pkts, n) : 0;
}

static void
gate_drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(pkts, n);
}

static void
send_burst(unsigned int worker, unsigned int n)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t took;

	if (rte_pktmbuf_alloc_bulk(bed.pool, pkts, n) != 0)
		errx(1, "latency: no packets");
	took = sched_nolock_enqueue(bed.sched, worker, pkts, (uint16_t)n);
	if (took < n)
		rte_pktmbuf_free_bulk(pkts + took, n - took);
}

static unsigned int
waiting(void)
{
	struct sched_nolock_stats st;

	sched_nolock_stats(bed.sched, &st);
	return (unsigned int)(st.queued + st.held);
}

/* Silence: the worker that serves the queue goes on with its loop. */
static void
serve(struct latency *l)
{
	unsigned int budget = SCHED_NOLOCK_BUDGET_DEFAULT, left = waiting(), loops = 0;
	uint64_t start = rte_rdtsc();

	while (!sched_nolock_empty(bed.sched)) {
		sched_nolock_drain(bed.sched, 0);
		loops++;
	}
	l->cycles[l->n] = rte_rdtsc() - start;
	l->loops[l->n] = loops;
	l->left[l->n] = left;
	l->late += loops > (left + budget - 1) / budget;
	l->n++;
}

static void
refused(struct latency *l, unsigned int backlog)
{
	bed.open = false;
	for (unsigned int n; backlog > 0; backlog -= n) {
		n = backlog < BURST ? backlog : BURST;
		send_burst(0, n);
		sched_nolock_drain(bed.sched, 0);
	}
	bed.open = true;
	serve(l);
}

static int
be_busy(void *arg)
{
	unsigned int worker = (unsigned int)(uintptr_t)arg;

	while (rte_rdtsc() < bed.end) {
		send_burst(worker, BURST);
		if (worker == 0)
			sched_nolock_drain(bed.sched, 0);
		rte_rcu_qsbr_quiescent(bed.qsbr, worker);
	}
	return 0;
}

static void
silenced(struct latency *l)
{
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);

	bed.end = rte_rdtsc() + rte_get_tsc_hz() / 1000000 * BUSY_US;
	rte_eal_remote_launch(be_busy, (void *)(uintptr_t)1, lcore);
	be_busy((void *)(uintptr_t)0);
	rte_eal_wait_lcore(lcore);
	serve(l);
}

void
latency_measure(struct rte_mempool *pool, struct rcu *rcu, struct rte_rcu_qsbr *qsbr, uint16_t port,
	unsigned int n_workers)
{
	struct sched_nolock_conf conf;

	bed.pool = pool;
	bed.qsbr = qsbr;
	bed.port = port;
	bed.open = true;
	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = 2;
	conf.tx = gate_tx;
	conf.drop = gate_drop;
	conf.rcu = rcu;
	if ((bed.sched = sched_nolock_create(&conf)) == NULL)
		errx(1, "latency: no scheduler");
	for (unsigned int t = 0; t < TRIES; t++)
		for (unsigned int i = 0; i < N_BACKLOGS; i++) {
			if (backlogs[i] > 0)
				refused(&latency[i], backlogs[i]);
			else if (n_workers > 1)
				silenced(&latency[i]);
		}
	sched_nolock_destroy(bed.sched);
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct figures {
	unsigned int left, loops; /* the largest */
	uint64_t median, p99; /* cycles */
};

static struct figures
figures_of(const struct latency *l)
{
	struct figures f = { 0 };
	uint64_t sorted[TRIES];

	memcpy(sorted, l->cycles, sizeof(sorted));
	qsort(sorted, l->n, sizeof(sorted[0]), by_value);
	for (unsigned int i = 0; i < l->n; i++) {
		f.left = RTE_MAX(f.left, l->left[i]);
		f.loops = RTE_MAX(f.loops, l->loops[i]);
	}
	f.median = sorted[l->n / 2];
	f.p99 = sorted[l->n * 99 / 100];
	return f;
}

static const char *
what(unsigned int i)
{
	return backlogs[i] > 0 ? "the NIC refused, and takes again" : "two workers fell silent";
}

void
latency_print(void)
{
	printf("\nsilence, until the last packet left (B11: loops <= packets / %u, rounded up)\n"
	       "%-34s%10s%8s%10s%12s%12s\n",
		SCHED_NOLOCK_BUDGET_DEFAULT, "", "packets", "loops", "too many", "cycles", "p99");
	for (unsigned int i = 0; i < N_BACKLOGS; i++) {
		struct figures f = figures_of(&latency[i]);

		if (latency[i].n > 0)
			printf("%-34s%10u%8u%10u%12ju%12ju\n", what(i), f.left, f.loops,
				latency[i].late, (uintmax_t)f.median, (uintmax_t)f.p99);
	}
}

void
latency_write(FILE *f)
{
	const char *comma = "";

	for (unsigned int i = 0; i < N_BACKLOGS; i++) {
		struct figures fig = figures_of(&latency[i]);

		if (latency[i].n == 0)
			continue;
		fprintf(f,
			"%s\n\t{ \"what\": \"%s\", \"packets\": %u, \"loops\": %u, "
			"\"too_many\": %u, \"cycles\": %ju, \"p99\": %ju }",
			comma, what(i), fig.left, fig.loops, latency[i].late, (uintmax_t)fig.median,
			(uintmax_t)fig.p99);
		comma = ",";
	}
}
