/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What the scheduler costs on net_null and on net_ring, beside a bare rte_eth_tx_burst and beside
 * locks, and how long packets wait (latency.h). All ways run in one process in short windows that
 * take turns; medians are printed and written as JSON.
 * bench EAL-options -- [-r rounds] [-o file.json]
 *
 * On net_ring a packet counts when it has been read from the ring again, which the worker that
 * serves the queue does in its loop: half of its work is that, so net_null shows the scheduler
 * better. A ring is what really fills up.
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

#include "bench/median.h"
#include "latency.h"
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
	SHARED_QUEUED,
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
	"sched, shared, always queued",
	"(a) spinlocked FIFO",
	"(b) rte_ring and trylock",
	"(c) enqueue lock, queue lock",
};

enum device {
	NULLS,
	RINGS,
	N_DEVICES
};

static const char *const device_names[N_DEVICES] = { "net_null", "net_ring" };

struct result {
	double cycles[ROUNDS_MAX]; /* a packet, all workers together */
	double jain[ROUNDS_MAX];
};

struct bench {
	uint16_t ports[N_DEVICES][N_WORKERS];
	struct rte_mempool *pool;
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct sched_nolock *sched[N_DEVICES][N_WAYS][N_WORKERS]; /* shared: the first one */
	struct peer_spin spin;
	struct peer_ring ring;
	struct peer_busy busy;
	unsigned int n_workers, rounds;
	unsigned int disturbed; /* windows thrown away */
	/* One window. */
	enum device device;
	enum way way;
	unsigned int burst;
	uint64_t start, end; /* TSC */
	_Atomic unsigned int ready;
	uint64_t packets[N_WORKERS]; /* taken from each */
	uint64_t arrived[N_WORKERS]; /* read from a ring by each */
	uint64_t sent; /* by the schedulers */
	long preempted[N_WORKERS]; /* times in this window */
	uint64_t cycles[N_WORKERS];
	struct result results[N_DEVICES][N_WORKERS][N_WAYS][N_BURSTS];
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

/* All workers send to the first port. */
static inline bool
one_queue(enum way way)
{
	return way >= SHARED;
}

static inline uint16_t
send_by(enum device device, enum way way, unsigned int worker, struct rte_mbuf **pkts, uint16_t n)
{
	const uint16_t *ports = bench.ports[device];
	struct sched_nolock *sched;
	uint16_t took;

	switch (way) {
	case BARE:
		return rte_eth_tx_burst(ports[worker], 0, pkts, n);
	case SPIN:
		return peer_spin_enqueue(&bench.spin, ports[0], pkts, n);
	case RING:
		return peer_ring_enqueue(&bench.ring, ports[0], pkts, n);
	case BUSY:
		return peer_busy_enqueue(&bench.busy, ports[0], pkts, n);
	default:
		sched = bench.sched[device][way][one_queue(way) ? 0 : worker];
		took = sched_nolock_enqueue(sched, worker, pkts, n);
		/* Each serves its own queue, worker 0 a shared one. */
		if (!one_queue(way) || worker == 0)
			sched_nolock_drain(sched, worker);
		return took;
	}
}

/* Takes packets out of the ring behind a port: net_ring gives back what it was given. */
static inline unsigned int
read_ring(unsigned int worker)
{
	struct rte_mbuf *pkts[64];
	unsigned int n = rte_eth_rx_burst(bench.ports[RINGS][worker], 0, pkts, RTE_DIM(pkts));

	if (n > 0)
		rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static __rte_always_inline void
window(enum device device, enum way way, unsigned int worker, unsigned int burst)
{
	struct rte_mbuf *pkts[32] __rte_cache_aligned;
	uint64_t packets = 0, arrived = 0, start;
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
			took = send_by(device, way, worker, pkts, (uint16_t)burst);
			packets += took;
			if (took < burst)
				rte_pktmbuf_free_bulk(pkts + took, burst - took);
			if (device == RINGS && (!one_queue(way) || worker == 0))
				arrived += read_ring(worker);
		}
		rte_rcu_qsbr_quiescent(bench.qsbr, worker);
	} while (rte_rdtsc() < bench.end);
	bench.packets[worker] = packets;
	bench.arrived[worker] = arrived;
	bench.cycles[worker] = rte_rdtsc() - start;
	getrusage(RUSAGE_THREAD, &after);
	/* Coming late is as bad. */
	bench.preempted[worker] =
		after.ru_nivcsw - before.ru_nivcsw + (start > bench.start + 20000);
}

/* A loop of its own for each device and way: nothing is chosen inside it. */
#define WINDOW(device, way) \
	static __rte_noinline __rte_cache_aligned void window_##device##_##way( \
		unsigned int worker, unsigned int burst) \
	{ \
		window(device, way, worker, burst); \
	}
#define WINDOWS(device) \
	WINDOW(device, BARE) \
	WINDOW(device, OWN) \
	WINDOW(device, SHAREABLE) \
	WINDOW(device, QUEUED) \
	WINDOW(device, SHARED) \
	WINDOW(device, SHARED_QUEUED) \
	WINDOW(device, SPIN) \
	WINDOW(device, RING) \
	WINDOW(device, BUSY)
WINDOWS(NULLS)
WINDOWS(RINGS)

#define NAMES(device) \
	{ \
		window_##device##_BARE, window_##device##_OWN, window_##device##_SHAREABLE, \
			window_##device##_QUEUED, window_##device##_SHARED, \
			window_##device##_SHARED_QUEUED, window_##device##_SPIN, \
			window_##device##_RING, window_##device##_BUSY \
	}
static void (*const windows[N_DEVICES][N_WAYS])(unsigned int worker, unsigned int burst) = {
	NAMES(NULLS),
	NAMES(RINGS),
};

static int
work(void *arg)
{
	windows[bench.device][bench.way]((unsigned int)(uintptr_t)arg, bench.burst);
	return 0;
}

/* Packets that the schedulers under way have given to the driver. */
static uint64_t
sent_by_schedulers(void)
{
	struct sched_nolock *const *sched = bench.sched[bench.device][bench.way];
	struct sched_nolock_stats st;
	uint64_t sent = 0;
	unsigned int w;

	for (w = 0; w < N_WORKERS; w++)
		if (sched[w] != NULL) {
			sched_nolock_stats(sched[w], &st);
			sent += st.bypassed + st.dequeued;
		}
	return sent;
}

/* Empties schedulers, peers and rings for the next window. */
static void
settle(void)
{
	struct sched_nolock *const *sched = bench.sched[bench.device][bench.way];
	unsigned int w;

	for (w = 0; w < N_WORKERS; w++) {
		do {
			if (sched[w] != NULL)
				sched_nolock_drain(sched[w], w);
		} while ((bench.device == RINGS && read_ring(w) > 0) ||
			(sched[w] != NULL && !sched_nolock_empty(sched[w])));
	}
}

/* One window. Returns false if a worker was preempted in it. */
static bool
run_once(unsigned int n)
{
	unsigned int w, lcore, next = 1;
	uint64_t sent = sent_by_schedulers();

	bench.start = rte_rdtsc() + rte_get_tsc_hz() / 10000;
	bench.end = bench.start + rte_get_tsc_hz() / 1000;
	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (next < n)
			rte_eal_remote_launch(work, (void *)(uintptr_t)next++, lcore);
	}
	work((void *)(uintptr_t)0);
	rte_eal_mp_wait_lcore();
	bench.sent = sent_by_schedulers() - sent;
	settle();
	for (w = 0; w < n; w++)
		if (bench.preempted[w] != 0)
			return false;
	return true;
}

static void
run(enum device device, unsigned int n, enum way way, unsigned int b, unsigned int round)
{
	struct result *res = &bench.results[device][n - 1][way][b];
	double sum = 0, squares = 0, rate;
	uint64_t taken = 0, arrived = 0;
	unsigned int w, tries;

	bench.device = device;
	bench.way = way;
	bench.burst = bursts[b];
	for (tries = 0; tries < TRIES_MAX && !run_once(n); tries++)
		bench.disturbed++;
	for (w = 0; w < n; w++) {
		rate = (double)bench.packets[w] / (double)bench.cycles[w];
		sum += rate;
		squares += rate * rate;
		taken += bench.packets[w];
		arrived += bench.arrived[w];
	}
	res->jain[round] = sum * sum / (n * squares);
	/* What still waits at the end was not sent, what a full ring refused did not arrive. */
	if (device == RINGS)
		sum *= (double)arrived / (double)taken;
	else if (bench.sched[device][way][0] != NULL)
		sum *= (double)bench.sent / (double)taken;
	res->cycles[round] = 1 / sum;
}

/* Of rounds that keep their order. */
static double
middle(const double *values, unsigned int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(values[0]));
	return median(sorted, n);
}

static double
cycles(enum device device, unsigned int n, enum way way, unsigned int b)
{
	return middle(bench.results[device][n - 1][way][b].cycles, bench.rounds);
}

/* The median of the differences within a round: what drifts from round to round falls out. */
static double
added(enum device device, enum way way, unsigned int b)
{
	const struct result(*results)[N_BURSTS] = bench.results[device][0];
	double diff[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < bench.rounds; i++)
		diff[i] = results[way][b].cycles[i] - results[BARE][b].cycles[i];
	return middle(diff, bench.rounds);
}

static double
ratio(enum device device, enum way slow, enum way fast, unsigned int n, unsigned int b)
{
	const struct result(*results)[N_BURSTS] = bench.results[device][n - 1];
	double r[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < bench.rounds; i++)
		r[i] = results[slow][b].cycles[i] / results[fast][b].cycles[i];
	return middle(r, bench.rounds);
}

static double
mpps(enum device device, unsigned int n, enum way way, unsigned int b)
{
	return (double)rte_get_tsc_hz() / cycles(device, n, way, b) / 1e6;
}

static void
print_added(enum device device)
{
	static const char *const targets[N_WAYS][N_BURSTS] = {
		[OWN] = { "<= 5", "", "<= 1" },
		[SHAREABLE] = { "<= 45", "", "<= 3" },
	};
	unsigned int way, b;

	printf("%s, 1 worker: cycles added to a bare rte_eth_tx_burst, a packet\n%-34s",
		device_names[device], "burst");
	for (b = 0; b < N_BURSTS; b++)
		printf("%8u %-7s", bursts[b], b == 1 ? "" : "target");
	printf("\n%-34s", way_names[BARE]);
	for (b = 0; b < N_BURSTS; b++)
		printf("%8.1f %-7s", cycles(device, 1, BARE, b), "");
	for (way = OWN; way < N_WAYS; way++) {
		printf("\n%-34s", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			printf("%8.1f %-7s", added(device, way, b),
				targets[way][b] != NULL ? targets[way][b] : "");
	}
	printf("\nbypass is %.2f times as fast as always queued at burst 1 (target 1.2)\n\n",
		ratio(device, QUEUED, SHAREABLE, 1, 0));
}

static void
print_own(enum device device)
{
	unsigned int way, b, n;

	printf("%s, own queues: Mpps a worker\n%-34s", device_names[device], "burst, workers");
	for (b = 0; b < N_BURSTS; b++)
		printf("%8u, 1 %8u, 2", bursts[b], bursts[b]);
	for (way = BARE; way <= QUEUED; way++) {
		printf("\n%-34s", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			for (n = 1; n <= 2; n++)
				printf("%11.1f", mpps(device, n, way, b) / n);
	}
	printf("\n\n");
}

static void
print_shared(enum device device)
{
	unsigned int way, b;

	printf("%s, 2 workers, one queue: cycles a packet, both together (Jain's index)\n",
		device_names[device]);
	for (way = SHARED; way < N_WAYS; way++) {
		printf("%-34s", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			printf("%8.1f (%.3f)", cycles(device, 2, way, b),
				middle(bench.results[device][1][way][b].jain, bench.rounds));
		printf("\n");
	}
	for (way = SPIN; way < N_WAYS; way++) {
		printf("%-24s / sched", way_names[way]);
		for (b = 0; b < N_BURSTS; b++)
			printf("%8.2f %-7s", ratio(device, way, SHARED, 2, b),
				way == SPIN ? (b == 0 ? ">= 3" : ">= 1") : "");
		printf("\n");
	}
	printf("\n");
}

/* Figures of the Linux works, in kpps of all threads together, and ours for the same change. */
struct linux_row {
	const char *what;
	unsigned int threads;
	double before, after; /* 0: was not published for so few */
	enum way ours_before, ours_after;
};

static const struct linux_row linux_rows[] = {
	{ "bypass (2019), own queues", 1, 2465, 2889, QUEUED, SHAREABLE },
	{ "bypass (2019), own queues", 2, 4304, 5188, QUEUED, SHAREABLE },
	{ "bypass (2019), one queue", 1, 2556, 2827, SHARED_QUEUED, SHARED },
	{ "bypass (2019), one queue", 2, 2900, 2900, SHARED_QUEUED, SHARED },
	{ "no enqueue lock, one queue", 1, 0, 0, BUSY, SHARED },
	{ "no enqueue lock, one queue", 2, 0, 0, BUSY, SHARED },
};

static void
print_linux(enum device device)
{
	size_t i;

	printf("%s, bursts of 1: kpps of all threads together, beside the Linux works\n"
	       "%-30s%8s%20s%16s%22s%8s\n",
		device_names[device], "", "threads", "Linux before, after", "",
		"ours before, after", "");
	for (i = 0; i < RTE_DIM(linux_rows); i++) {
		const struct linux_row *r = &linux_rows[i];
		double before = mpps(device, r->threads, r->ours_before, 0) * 1000;
		double after = mpps(device, r->threads, r->ours_after, 0) * 1000;

		if (r->threads > bench.n_workers)
			continue;
		printf("%-30s%8u", r->what, r->threads);
		if (r->before != 0)
			printf("%11.0f%9.0f%7.2f times", r->before, r->after, r->after / r->before);
		else
			printf("%33s", "");
		printf("%13.0f%11.0f%8.2f times\n", before, after, after / before);
	}
	printf("the enqueue lock itself (2010), one queue, many threads: 200 -> 1070, 5.35 "
	       "times\n\n");
}

static void
print_tables(void)
{
	unsigned int device;

	for (device = 0; device < N_DEVICES; device++) {
		print_added(device);
		if (bench.n_workers > 1) {
			print_own(device);
			print_shared(device);
		}
		print_linux(device);
	}
	printf("%u windows in which a worker was preempted were repeated\n", bench.disturbed);
}

static void
write_rows(FILE *f, enum device device, const char **comma)
{
	unsigned int n, way, b;

	for (n = 1; n <= bench.n_workers; n++)
		for (way = BARE; way < N_WAYS; way++)
			for (b = 0; b < N_BURSTS; b++) {
				fprintf(f,
					"%s\n\t{ \"device\": \"%s\", \"way\": \"%s\", "
					"\"workers\": %u, \"burst\": %u, \"cycles\": %.2f, "
					"\"jain\": %.4f",
					*comma, device_names[device], way_names[way], n, bursts[b],
					cycles(device, n, way, b),
					middle(bench.results[device][n - 1][way][b].jain,
						bench.rounds));
				if (n == 1)
					fprintf(f, ", \"added\": %.2f", added(device, way, b));
				fprintf(f, " }");
				*comma = ",";
			}
}

static void
write_json(const char *path)
{
	char *dir = strdup(path);
	const char *comma = "";
	unsigned int device;
	FILE *f;

	if (dir != NULL)
		mkdir(dirname(dir), 0777);
	free(dir);
	if ((f = fopen(path, "w")) == NULL)
		err(1, "%s", path);
	fprintf(f, "{ \"bench\": \"sched_nolock\", \"rounds\": %u, \"rows\": [", bench.rounds);
	for (device = 0; device < N_DEVICES; device++)
		write_rows(f, device, &comma);
	fprintf(f, "\n], \"latency\": [");
	latency_write(f);
	fprintf(f, "\n] }\n");
	if (fclose(f) != 0)
		err(1, "%s", path);
}

static void
start_port(uint16_t port, const char *name)
{
	struct rte_eth_conf conf = { 0 };

	if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, bench.pool) != 0 ||
		rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(port) != 0)
		errx(1, "%s does not start", name);
}

static void
make_port(enum device device, unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", device_names[device], i);
	if (rte_eth_dev_get_port_by_name(name, &bench.ports[device][i]) != 0)
		errx(1, "no %s: pass --vdev %s", name, name);
	start_port(bench.ports[device][i], name);
}

static struct sched_nolock *
make_sched(enum device device, enum way way, unsigned int worker)
{
	struct sched_nolock_conf conf;
	struct sched_nolock *sched;

	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = N_WORKERS;
	conf.tx = tx;
	conf.tx_arg = (void *)(uintptr_t)bench.ports[device][worker];
	conf.drop = drop;
	conf.rcu = bench.rcu;
	conf.bypass = way != QUEUED && way != SHARED_QUEUED;
	if ((sched = sched_nolock_create(&conf)) == NULL)
		errx(1, "no scheduler");
	if (way == OWN && sched_nolock_set_exclusive(sched, (int)worker) != 0)
		errx(1, "no exclusive queue");
	return sched;
}

static void
make(void)
{
	unsigned int device, way, w;

	bench.pool = rte_pktmbuf_pool_create(
		"bench", 16383, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (bench.pool == NULL)
		errx(1, "no pool");
	for (device = 0; device < N_DEVICES; device++)
		for (w = 0; w < N_WORKERS; w++)
			make_port(device, w);
	bench.qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(N_WORKERS), RTE_CACHE_LINE_SIZE);
	if (bench.qsbr == NULL || rte_rcu_qsbr_init(bench.qsbr, N_WORKERS) != 0 ||
		(bench.rcu = rcu_create(bench.qsbr)) == NULL)
		errx(1, "no rcu");
	for (device = 0; device < N_DEVICES; device++)
		for (way = OWN; way <= SHARED_QUEUED; way++)
			for (w = 0; w < (one_queue(way) ? 1 : N_WORKERS); w++)
				bench.sched[device][way][w] = make_sched(device, way, w);
	bench.ring.ring = rte_ring_create("bench", 1024, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (bench.ring.ring == NULL)
		errx(1, "no ring");
}

static void
measure(void)
{
	unsigned int device, n, way, b, round;

	for (round = 0; round < bench.rounds; round++)
		for (device = 0; device < N_DEVICES; device++)
			for (n = 1; n <= bench.n_workers; n++)
				for (b = 0; b < N_BURSTS; b++)
					for (way = BARE; way < N_WAYS; way++)
						run(device, n, way, b, round);
}

static void
finish(void)
{
	unsigned int device, way, w;

	for (device = 0; device < N_DEVICES; device++)
		for (way = OWN; way <= SHARED_QUEUED; way++)
			for (w = 0; w < N_WORKERS; w++)
				sched_nolock_destroy(bench.sched[device][way][w]);
	rcu_destroy(bench.rcu);
	rte_eal_cleanup();
}

int
main(int argc, char **argv)
{
	const char *json = NULL, *bad;
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
	measure();
	print_tables();
	latency_measure(bench.pool, bench.rcu, bench.qsbr, bench.ports[NULLS][0], bench.n_workers);
	latency_print();
	if (json != NULL)
		write_json(json);
	finish();
	return 0;
}
