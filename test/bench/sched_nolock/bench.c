/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What the scheduler costs on net_null, beside a bare rte_eth_tx_burst and beside locks. All ways
 * run in one process in short windows that take turns; medians are printed and written as JSON.
 * bench EAL-options -- [-r rounds] [-o file.json]
 */

#include <err.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <bsd/stdlib.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_rcu_qsbr.h>

#include "peers.h"
#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"

#define N_WORKERS 2
#define ROUNDS_MAX 400
#define TRIES_MAX 20 /* for a window in which nobody was preempted */
#define N_BURSTS 3

static const unsigned int bursts[N_BURSTS] = { 1, 8, 32 };

enum way {
	BARE,
	OWN,
	SHAREABLE,
	QUEUED,
	SHARED,
	SPIN,
	RING,
	BUSY,
	N_WAYS
};

static const char *const way_names[N_WAYS] = {
	"bare rte_eth_tx_burst",
	"sched, own queue (exclusive)",
	"sched, shareable, bypass",
	"sched, shareable, always queued",
	"sched, shared",
	"(a) spinlocked FIFO",
	"(b) rte_ring and trylock",
	"(c) enqueue lock, queue lock",
};

struct result {
	double cycles[ROUNDS_MAX]; /* a packet, all workers together */
	double jain[ROUNDS_MAX];
};

struct bench {
	uint16_t ports[N_WORKERS];
	struct rte_mempool *pool;
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct sched_nolock *sched[N_WAYS][N_WORKERS]; /* SHARED: the first one */
	struct peer_spin spin;
	struct peer_ring ring;
	struct peer_busy busy;
	unsigned int n_workers, rounds;
	unsigned int disturbed; /* windows thrown away */
	/* One window. */
	enum way way;
	unsigned int burst;
	uint64_t start, end; /* TSC */
	_Atomic unsigned int ready;
	uint64_t packets[N_WORKERS]; /* taken from each */
	uint64_t sent; /* by the schedulers */
	long preempted[N_WORKERS]; /* times in this window */
	uint64_t cycles[N_WORKERS];
	struct result results[2][N_WAYS][N_BURSTS];
};

static struct bench bench;

static uint16_t
tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_burst((uint16_t)(uintptr_t)arg, 0, pkts, n);
}

static void
drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(pkts, n);
}

static inline uint16_t
send_by(enum way way, unsigned int worker, struct rte_mbuf **pkts, uint16_t n)
{
	struct sched_nolock *sched;
	uint16_t took;

	switch (way) {
	case BARE:
		return rte_eth_tx_burst(bench.ports[worker], 0, pkts, n);
	case SPIN:
		return peer_spin_enqueue(&bench.spin, bench.ports[0], pkts, n);
	case RING:
		return peer_ring_enqueue(&bench.ring, bench.ports[0], pkts, n);
	case BUSY:
		return peer_busy_enqueue(&bench.busy, bench.ports[0], pkts, n);
	default:
		sched = bench.sched[way][way == SHARED ? 0 : worker];
		took = sched_nolock_enqueue(sched, worker, pkts, n);
		/* Each serves its own queue, worker 0 a shared one. */
		if (way != SHARED || worker == 0)
			sched_nolock_drain(sched, worker);
		return took;
	}
}

static inline void
window(enum way way, unsigned int worker, unsigned int burst)
{
	struct rte_mbuf *pkts[32];
	uint64_t packets = 0, start;
	struct rusage before, after;
	uint16_t took;
	unsigned int i;

	getrusage(RUSAGE_THREAD, &before);
	while (rte_rdtsc() < bench.start)
		rte_pause();
	start = rte_rdtsc();
	do {
		for (i = 0; i < 64; i++) {
			if (rte_pktmbuf_alloc_bulk(bench.pool, pkts, burst) != 0)
				break;
			took = send_by(way, worker, pkts, (uint16_t)burst);
			packets += took;
			if (took < burst)
				rte_pktmbuf_free_bulk(pkts + took, burst - took);
		}
		rte_rcu_qsbr_quiescent(bench.qsbr, worker);
	} while (rte_rdtsc() < bench.end);
	bench.packets[worker] = packets;
	bench.cycles[worker] = rte_rdtsc() - start;
	getrusage(RUSAGE_THREAD, &after);
	/* Coming late is as bad. */
	bench.preempted[worker] =
		after.ru_nivcsw - before.ru_nivcsw + (start > bench.start + 20000);
}

static int
work(void *arg)
{
	unsigned int worker = (unsigned int)(uintptr_t)arg, burst = bench.burst;

	/* A copy of the loop for each way: nothing is chosen inside it. */
#define WAY(w) \
	case w: \
		window(w, worker, burst); \
		break
	switch (bench.way) {
		WAY(BARE);
		WAY(OWN);
		WAY(SHAREABLE);
		WAY(QUEUED);
		WAY(SHARED);
		WAY(SPIN);
		WAY(RING);
		WAY(BUSY);
	default:
		break;
	}
	return 0;
}

/* Packets that the schedulers of a way have given to the driver. */
static uint64_t
sent_by(enum way way)
{
	struct sched_nolock_stats st;
	uint64_t sent = 0;
	unsigned int w;

	for (w = 0; w < N_WORKERS; w++)
		if (bench.sched[way][w] != NULL) {
			sched_nolock_stats(bench.sched[way][w], &st);
			sent += st.bypassed + st.dequeued;
		}
	return sent;
}

static void
settle(enum way way)
{
	unsigned int w;

	for (w = 0; w < N_WORKERS; w++)
		while (bench.sched[way][w] != NULL && !sched_nolock_empty(bench.sched[way][w]))
			sched_nolock_drain(bench.sched[way][w], w);
}

/* One window. Returns false if a worker was preempted in it. */
static bool
run_once(unsigned int n)
{
	unsigned int w, lcore, next = 1;
	uint64_t sent = sent_by(bench.way);

	bench.start = rte_rdtsc() + rte_get_tsc_hz() / 10000;
	bench.end = bench.start + rte_get_tsc_hz() / 1000;
	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (next < n)
			rte_eal_remote_launch(work, (void *)(uintptr_t)next++, lcore);
	}
	work((void *)(uintptr_t)0);
	rte_eal_mp_wait_lcore();
	bench.sent = sent_by(bench.way) - sent;
	settle(bench.way);
	for (w = 0; w < n; w++)
		if (bench.preempted[w] != 0)
			return false;
	return true;
}

static void
run(unsigned int n, enum way way, unsigned int b, unsigned int round)
{
	struct result *res = &bench.results[n - 1][way][b];
	double sum = 0, squares = 0, rate;
	unsigned int w, tries;
	uint64_t taken = 0;

	bench.way = way;
	bench.burst = bursts[b];
	for (tries = 0; tries < TRIES_MAX && !run_once(n); tries++)
		bench.disturbed++;
	for (w = 0; w < n; w++) {
		rate = (double)bench.packets[w] / (double)bench.cycles[w];
		sum += rate;
		squares += rate * rate;
		taken += bench.packets[w];
	}
	res->jain[round] = sum * sum / (n * squares);
	/* What still waits at the end was not sent. */
	if (bench.sched[way][0] != NULL)
		sum *= (double)bench.sent / (double)taken;
	res->cycles[round] = 1 / sum;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(const double *values, unsigned int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(values[0]));
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	return sorted[n / 2];
}

static double
cycles(unsigned int n, enum way way, unsigned int b)
{
	return median(bench.results[n - 1][way][b].cycles, bench.rounds);
}

/* The median of the differences within a round: what drifts from round to round falls out. */
static double
added(enum way way, unsigned int b)
{
	double diff[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < bench.rounds; i++)
		diff[i] = bench.results[0][way][b].cycles[i] - bench.results[0][BARE][b].cycles[i];
	return median(diff, bench.rounds);
}

static double
ratio(enum way slow, enum way fast, unsigned int n, unsigned int b)
{
	double r[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < bench.rounds; i++)
		r[i] = bench.results[n - 1][slow][b].cycles[i] /
			bench.results[n - 1][fast][b].cycles[i];
	return median(r, bench.rounds);
}

static double
mpps(unsigned int n, enum way way, unsigned int b)
{
	return (double)rte_get_tsc_hz() / cycles(n, way, b) / 1e6;
}

static void
print_table(void)
{
	static const char *const targets[N_WAYS][N_BURSTS] = {
		[OWN] = { "<= 5", "", "<= 1" },
		[SHAREABLE] = { "<= 45", "", "<= 3" },
	};
	unsigned int way, b, n;

	printf("1 worker: cycles added to a bare rte_eth_tx_burst, a packet\n%-34s", "burst");
	for (b = 0; b < N_BURSTS; b++)
		printf("%8u %-7s", bursts[b], b == 1 ? "" : "target");
	printf("\n%-34s", way_names[BARE]);
	for (b = 0; b < N_BURSTS; b++)
		printf("%8.1f %-7s", cycles(1, BARE, b), "");
	for (way = OWN; way < N_WAYS; way++) {
		printf("\n%-34s", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			printf("%8.1f %-7s", added(way, b),
				targets[way][b] != NULL ? targets[way][b] : "");
	}
	printf("\nbypass is %.2f times as fast as always queued at burst 1 (target 1.2)\n",
		ratio(QUEUED, SHAREABLE, 1, 0));
	printf("%u windows in which a worker was preempted were repeated\n", bench.disturbed);
	if (bench.n_workers < 2)
		return;
	printf("\nMpps a worker, own queues\n%-34s", "burst, workers");
	for (b = 0; b < N_BURSTS; b++)
		printf("%8u, 1 %8u, 2", bursts[b], bursts[b]);
	for (way = BARE; way <= QUEUED; way++) {
		printf("\n%-34s", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			for (n = 1; n <= 2; n++)
				printf("%11.1f", mpps(n, way, b) / n);
	}
	printf("\nbypass / always queued, burst 1: 1 worker %.2f, 2 workers %.2f "
	       "(Linux, own queues: 1.17, 1.21)\n",
		mpps(1, SHAREABLE, 0) / mpps(1, QUEUED, 0),
		mpps(2, SHAREABLE, 0) / mpps(2, QUEUED, 0));
	printf("\n2 workers, one queue: cycles a packet, both together (Jain's index)\n");
	for (way = SHARED; way < N_WAYS; way++) {
		printf("%-34s", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			printf("%8.1f (%.3f)", cycles(2, way, b),
				median(bench.results[1][way][b].jain, bench.rounds));
		printf("\n");
	}
	for (way = SPIN; way < N_WAYS; way++) {
		printf("%-24s / sched", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			printf("%8.2f %-7s", ratio(way, SHARED, 2, b),
				way == SPIN ? (b == 0 ? ">= 3" : ">= 1") : "");
		printf("\n");
	}
}

static void
write_json(const char *path)
{
	char *dir = strdup(path);
	unsigned int n, way, b;
	const char *comma = "";
	FILE *f;

	if (dir != NULL)
		mkdir(dirname(dir), 0777);
	free(dir);
	if ((f = fopen(path, "w")) == NULL)
		err(1, "%s", path);
	fprintf(f,
		"{ \"bench\": \"sched_nolock\", \"device\": \"net_null\", \"rounds\": %u, "
		"\"rows\": [",
		bench.rounds);
	for (n = 1; n <= bench.n_workers; n++)
		for (way = BARE; way < N_WAYS; way++)
			for (b = 0; b < N_BURSTS; b++) {
				fprintf(f,
					"%s\n\t{ \"way\": \"%s\", \"workers\": %u, \"burst\": %u, "
					"\"cycles\": %.2f, \"jain\": %.4f",
					comma, way_names[way], n, bursts[b], cycles(n, way, b),
					median(bench.results[n - 1][way][b].jain, bench.rounds));
				if (n == 1)
					fprintf(f, ", \"added\": %.2f", added(way, b));
				fprintf(f, " }");
				comma = ",";
			}
	fprintf(f, "\n] }\n");
	if (fclose(f) != 0)
		err(1, "%s", path);
}

static void
make_port(unsigned int i)
{
	struct rte_eth_conf conf = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "net_null%u", i);
	if (rte_eth_dev_get_port_by_name(name, &bench.ports[i]) != 0)
		errx(1, "no %s: pass --vdev %s", name, name);
	if (rte_eth_dev_configure(bench.ports[i], 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(bench.ports[i], 0, 512, SOCKET_ID_ANY, NULL, bench.pool) !=
			0 ||
		rte_eth_tx_queue_setup(bench.ports[i], 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(bench.ports[i]) != 0)
		errx(1, "%s does not start", name);
}

static struct sched_nolock *
make_sched(enum way way, unsigned int worker)
{
	struct sched_nolock_conf conf;
	struct sched_nolock *sched;

	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = N_WORKERS;
	conf.tx = tx;
	conf.tx_arg = (void *)(uintptr_t)bench.ports[worker];
	conf.drop = drop;
	conf.rcu = bench.rcu;
	conf.bypass = way != QUEUED;
	if ((sched = sched_nolock_create(&conf)) == NULL)
		errx(1, "no scheduler");
	if (way == OWN && sched_nolock_set_exclusive(sched, (int)worker) != 0)
		errx(1, "no exclusive queue");
	return sched;
}

static void
make(void)
{
	unsigned int way, w;

	bench.pool = rte_pktmbuf_pool_create(
		"bench", 16383, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (bench.pool == NULL)
		errx(1, "no pool");
	for (w = 0; w < N_WORKERS; w++)
		make_port(w);
	bench.qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(N_WORKERS), RTE_CACHE_LINE_SIZE);
	if (bench.qsbr == NULL || rte_rcu_qsbr_init(bench.qsbr, N_WORKERS) != 0 ||
		(bench.rcu = rcu_create(bench.qsbr)) == NULL)
		errx(1, "no rcu");
	for (way = OWN; way <= SHARED; way++)
		for (w = 0; w < (way == SHARED ? 1 : N_WORKERS); w++)
			bench.sched[way][w] = make_sched(way, w);
	bench.ring.ring = rte_ring_create("bench", 1024, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (bench.ring.ring == NULL)
		errx(1, "no ring");
}

int
main(int argc, char **argv)
{
	const char *json = NULL, *bad;
	unsigned int n, way, b, round;
	int used, ch;

	if ((used = rte_eal_init(argc, argv)) < 0)
		errx(1, "rte_eal_init");
	argc -= used;
	argv += used;
	bench.rounds = 50;
	while ((ch = getopt(argc, argv, "r:o:")) != -1)
		if (ch == 'o')
			json = optarg;
		else if (ch != 'r' ||
			(bench.rounds = (unsigned int)strtonum(optarg, 1, ROUNDS_MAX, &bad)) == 0)
			errx(1, "usage: bench EAL-options -- [-r 1..%u] [-o file]", ROUNDS_MAX);
	make();
	bench.n_workers = RTE_MIN(rte_lcore_count(), (unsigned int)N_WORKERS);
	for (round = 0; round < bench.rounds; round++)
		for (n = 1; n <= bench.n_workers; n++)
			for (b = 0; b < N_BURSTS; b++)
				for (way = BARE; way < N_WAYS; way++)
					run(n, way, b, round);
	print_table();
	if (json != NULL)
		write_json(json);
	for (way = OWN; way <= SHARED; way++)
		for (n = 0; n < N_WORKERS; n++)
			sched_nolock_destroy(bench.sched[way][n]);
	rcu_destroy(bench.rcu);
	rte_eal_cleanup();
	return 0;
}
