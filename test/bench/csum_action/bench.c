/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What the checksum action costs, in TSC cycles, and what configuring it by RCU is worth.
 *
 *   sums      each loop alone, at 64, 512 and 1500 bytes as they lie in a frame, beside the limits
 *             measured for this kind of CPU
 *   packets   views parsed, action "csum ip4h udp" run through action_exec(), frames of 64, 512 and
 *             1500 bytes, by batch
 *   lock      the same action with a spinlock and a shared counter taken for each packet, as Linux
 *             had it until 2018, against ours: pass and drop, one and two lcores
 *   changes   10,000 replaced snapshots a second from another CPU
 *
 * Variants take turns in short windows; medians (and the best window) are printed, medians written
 * as JSON.
 *
 * usage: csum_bench EAL-options -- [-r rounds] [-o file.json]
 */

#include <getopt.h>
#include <inttypes.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_pause.h>
#include <rte_rcu_qsbr.h>
#include <rte_spinlock.h>
#include <rte_vect.h>

#include "action/action.h"
#include "bench/median.h"
#include "csum_action/csum_action.h"
#include "csum_action/impl.h"
#include "packet/packet.h"
#include "rcu/rcu.h"
#include "support.h"

#define WORKERS 2
#define FRAMES 64 /* a worker cycles through */
#define WINDOW 400 /* batches of 32 in a window of one variant */
#define ROUNDS_MAX 1001
#define LIMIT_MARGIN 1.15
#define FLAGS (TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_UDP)

static const unsigned int sizes[] = { 64, 512, 1500 };
/* of a guest on Emerald Rapids, -O3 loops: AVX-512 sum, VPCLMULQDQ CRC */
static const double sum_limits[] = { 8, 16, 41 }, crc_limits[] = { 9, 18, 47 };

static unsigned int rounds = 101;
static struct rte_mempool *pool;
static FILE *json;
static bool json_first = true;

static void
print_cell(double *v, unsigned int n)
{
	double middle = median(v, n);
	char best[16];

	snprintf(best, sizeof(best), "(%.1f)", v[0]);
	printf("  %7.1f %-8s", middle, best);
}

static void
record(const char *group, const char *name, unsigned int size, double value, const char *unit)
{
	if (json == NULL)
		return;
	fprintf(json,
		"%s\n  {\"group\": \"%s\", \"name\": \"%s\", \"size\": %u, \"value\": %.3f, "
		"\"unit\": \"%s\"}",
		json_first ? "" : ",", group, name, size, value, unit);
	json_first = false;
}

/* A UDP frame of `size` bytes with wrong sums. */
static struct rte_mbuf *
frame(unsigned int size)
{
	uint8_t data[2048] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0,
		(uint8_t)((size - 14) >> 8), (uint8_t)(size - 14), 0, 1, 0, 0, 64, 17, 0x12, 0x34,
		192, 0, 2, 1, 198, 51, 100, 7, 0, 9, 0, 9, (uint8_t)((size - 34) >> 8),
		(uint8_t)(size - 34), 0x56, 0x78 };
	unsigned int i;

	for (i = 42; i < size; i++)
		data[i] = (uint8_t)(i * 7);
	return test_frame(pool, data, size, 0);
}

/* sums */

static volatile uint64_t sink;

/* Bytes in the first cache, where a frame begins at a line and the sum at its 26th byte. */
#define SUM_BUFFERS 16
static uint8_t sum_bytes[SUM_BUFFERS][1600] __rte_cache_aligned;

static double
sum_window(const struct csum_impl *impl, bool crc, unsigned int size)
{
	const unsigned int from = 14 + 12; /* where the action's sum begins */
	uint64_t start, total = 0;
	unsigned int i, k;

	start = rte_rdtsc();
	for (k = 0; k < 16; k++)
		for (i = 0; i < SUM_BUFFERS; i++)
			total += crc ? impl->crc32c(0, sum_bytes[i] + from, size)
				     : csum_fold(impl->sum(sum_bytes[i] + from, size));
	start = rte_rdtsc() - start;
	sink = total;
	return (double)start / (16 * SUM_BUFFERS);
}

static void
bench_sums(bool crc)
{
	const double *limits = crc ? crc_limits : sum_limits;
	const struct csum_impl *impl;
	double values[ROUNDS_MAX];
	unsigned int s, i, r;

	for (i = 0; i < sizeof(sum_bytes); i++)
		sum_bytes[i / sizeof(sum_bytes[0])][i % sizeof(sum_bytes[0])] = (uint8_t)(i * 37);
	printf("%s, cycles a call: %u, %u, %u bytes\n", crc ? "CRC32c" : "sum   ", sizes[0],
		sizes[1], sizes[2]);
	for (i = 0; (impl = csum_impl_get(i)) != NULL; i++) {
		printf("  %-10s", impl->name);
		for (s = 0; s < RTE_DIM(sizes); s++) {
			for (r = 0; r < rounds; r++)
				values[r] = sum_window(impl, crc, sizes[s]);
			print_cell(values, rounds);
			record(crc ? "crc32c" : "sum", impl->name, sizes[s], values[rounds / 2],
				"cycles");
		}
		printf("\n");
	}
	printf("  %-20s %8.1f %8.1f %8.1f\n\n", "target", limits[0] * LIMIT_MARGIN,
		limits[1] * LIMIT_MARGIN, limits[2] * LIMIT_MARGIN);
}

/* what workers run */

/* The action as Linux had it until 2018: parameters and statistics under a lock, packet by packet.
 */
struct locked {
	rte_spinlock_t lock;
	uint32_t flags;
	int32_t verdict;
	uint64_t packets, bytes, drops, lastuse;
} __rte_cache_aligned;

static struct locked locked;
static struct action_list *list;
static const struct csum_impl *impl_used;

static void
no_mirror(void *arg, unsigned int worker, uint32_t ifindex, bool ingress,
	struct rte_mbuf *const *pkts, uint64_t mask)
{
	(void)arg;
	(void)worker;
	(void)ifindex;
	(void)ingress;
	(void)pkts;
	(void)mask;
}

static void
run_locked(struct action_burst *burst, uint64_t mask)
{
	unsigned int i;

	packet_mask_for_each (i, mask) {
		uint32_t flags;
		int32_t verdict;

		rte_spinlock_lock(&locked.lock);
		locked.lastuse++;
		locked.packets++;
		locked.bytes += burst->pkts[i]->pkt_len;
		flags = locked.flags;
		verdict = locked.verdict;
		rte_spinlock_unlock(&locked.lock);
		if (verdict == TC_ACT_SHOT) {
			rte_spinlock_lock(&locked.lock);
			locked.drops++;
			rte_spinlock_unlock(&locked.lock);
		} else {
			impl_used->plain(burst, UINT64_C(1) << i, flags);
		}
	}
}

/* One worker's part of a window. */
struct job {
	unsigned int worker;
	bool lock;
	unsigned int batch;
	unsigned int batches;
	struct rte_mbuf *pkts[FRAMES];
	struct rte_rcu_qsbr *qsbr; /* NULL: not a reader */
	double cycles; /* a packet */
} __rte_cache_aligned;

static struct job jobs[WORKERS];
static _Atomic unsigned int ready;

static void
run_batch(struct job *job, unsigned int at)
{
	struct packet_view views[ACTION_VECTOR_MAX];
	struct packet_vector vector = {
		.pkts = job->pkts + at, .views = views, .n = (uint16_t)job->batch
	};
	struct action_burst burst;

	burst.vector = &vector;
	burst.pkts = vector.pkts;
	burst.worker = job->worker;
	burst.mirror = no_mirror;
	packet_vector_parse(&vector);
	if (job->lock)
		run_locked(&burst, packet_vector_mask(&vector));
	else
		action_exec(list, &burst, packet_vector_mask(&vector));
}

static int
run_job(void *arg)
{
	struct job *job = arg;
	unsigned int n, at = 0;
	uint64_t start;

	/* both begin together: acquire and release only order the counter itself */
	atomic_fetch_sub_explicit(&ready, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&ready, memory_order_acquire) != 0)
		rte_pause();
	start = rte_rdtsc();
	for (n = 0; n < job->batches; n++) {
		run_batch(job, at);
		at = (at + job->batch) % FRAMES;
		if (job->qsbr != NULL)
			rte_rcu_qsbr_quiescent(job->qsbr, job->worker);
	}
	job->cycles = (double)(rte_rdtsc() - start) / ((double)job->batches * job->batch);
	return 0;
}

static void
set_frames(unsigned int size)
{
	unsigned int w, i;

	for (w = 0; w < WORKERS; w++) {
		if (jobs[w].pkts[0] != NULL)
			rte_pktmbuf_free_bulk(jobs[w].pkts, FRAMES);
		for (i = 0; i < FRAMES; i++)
			jobs[w].pkts[i] = frame(size);
	}
}

/* Cycles a packet with `n` workers at once, the mean of theirs. */
static double
window(unsigned int n, bool lock, unsigned int batch)
{
	unsigned int w, lcore = rte_get_next_lcore(-1, 1, 0);

	for (w = 0; w < n; w++) {
		jobs[w].worker = w;
		jobs[w].lock = lock;
		jobs[w].batch = batch;
		jobs[w].batches = WINDOW * 32 / batch / (jobs[w].pkts[0]->pkt_len > 64 ? 4 : 1);
	}
	atomic_store_explicit(&ready, n, memory_order_release);
	if (n > 1)
		rte_eal_remote_launch(run_job, &jobs[1], lcore);
	run_job(&jobs[0]);
	if (n > 1)
		rte_eal_wait_lcore(lcore);
	return n > 1 ? (jobs[0].cycles + jobs[1].cycles) / 2 : jobs[0].cycles;
}

static void
bench_packets(void)
{
	static const unsigned int batches[] = { 1, 8, 32, 64 };
	double values[ROUNDS_MAX];
	unsigned int b, s, r;
	char name[32];

	printf("view + csum ip4h udp (%s), cycles a packet: %u, %u, %u bytes\n", impl_used->name,
		sizes[0], sizes[1], sizes[2]);
	for (b = 0; b < RTE_DIM(batches); b++) {
		printf("  batch %-4u", batches[b]);
		for (s = 0; s < RTE_DIM(sizes); s++) {
			set_frames(sizes[s]);
			window(1, false, batches[b]);
			for (r = 0; r < rounds; r++)
				values[r] = window(1, false, batches[b]);
			print_cell(values, rounds);
			snprintf(name, sizeof(name), "batch %u", batches[b]);
			record("packets", name, sizes[s], values[rounds / 2], "cycles");
		}
		printf("\n");
	}
	printf("\n");
}

static void
bench_lock(struct action *action, struct csum_action *csum, bool drop, unsigned int n)
{
	struct action_params *params =
		csum_action_params_create(FLAGS, drop ? TC_ACT_SHOT : TC_ACT_OK);
	double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], a, b;
	char name[64];
	unsigned int r;

	csum_action_params_attach(params, csum);
	action_replace(action, params);
	locked.verdict = drop ? TC_ACT_SHOT : TC_ACT_OK;
	window(n, false, 32);
	window(n, true, 32);
	for (r = 0; r < rounds; r++) {
		ours[r] = window(n, false, 32);
		theirs[r] = window(n, true, 32);
	}
	a = median(ours, rounds);
	b = median(theirs, rounds);
	printf("  %s, %u lcore%s", drop ? "drop" : "pass", n, n > 1 ? "s" : " ");
	print_cell(ours, rounds);
	print_cell(theirs, rounds);
	printf("  %.2f times%s\n", b / a, n > 1 ? " (target 2)" : "");
	snprintf(name, sizeof(name), "%s %u", drop ? "drop" : "pass", n);
	record("rcu", name, 64, a, "cycles");
	record("lock", name, 64, b, "cycles");
	record("rcu against lock", name, 64, b / a, "times");
}

/* What dropping the lock gained act_csum in 2018. */
static void
print_linux(void)
{
	printf("  Linux, the same step, Mpps a thread: pass, 2 threads 1.671 -> 1.921 (1.15 "
	       "times), 4 "
	       "threads 0.649 -> 0.738 (1.14)\n"
	       "                                       drop, 2 threads 3.213 -> 3.720 (1.16 "
	       "times), 4 "
	       "threads 1.079 -> 1.328 (1.23)\n");
}

/* changes */

struct changer {
	struct action *action;
	struct csum_action *csum;
	struct rcu *rcu;
	_Atomic bool stop;
	uint64_t done;
	double worst_us; /* p99 of one change, from the CPU's clock */
	unsigned int per_second;
};

static double latencies[1 << 20];

static int
change(void *arg)
{
	struct changer *c = arg;
	uint64_t hz = rte_get_tsc_hz(), next = rte_rdtsc(), before;
	unsigned int n = 0;

	/* relaxed: only ends the loop */
	while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		struct action_params *params;

		if (rte_rdtsc() < next) {
			rte_pause();
			continue;
		}
		next += hz / c->per_second;
		before = rte_rdtsc();
		params = csum_action_params_create(FLAGS, TC_ACT_OK);
		csum_action_params_attach(params, c->csum);
		action_replace(c->action, params);
		rcu_reclaim(c->rcu, 16);
		latencies[n++ % RTE_DIM(latencies)] =
			(double)(rte_rdtsc() - before) * 1e6 / (double)hz;
		c->done++;
	}
	c->worst_us = 0;
	if (n > 0) {
		n = RTE_MIN(n, RTE_DIM(latencies));
		median_sort(latencies, n);
		c->worst_us = latencies[n * 99 / 100];
	}
	return 0;
}

static void
bench_changes(struct changer *c, struct rte_rcu_qsbr *qsbr)
{
	double quiet[ROUNDS_MAX], busy[ROUNDS_MAX], a, b;
	unsigned int r, lcore = rte_get_next_lcore(-1, 1, 0), n = rounds / 3 + 1, k;
	double p99 = 0, rate = 0;
	uint64_t start;

	jobs[0].qsbr = qsbr;
	rte_rcu_qsbr_thread_online(qsbr, 0);
	for (r = 0; r < n; r++) {
		for (quiet[r] = 0, k = 0; k < 8; k++)
			quiet[r] += window(1, false, 32) / 8;
		atomic_store_explicit(&c->stop, false, memory_order_relaxed);
		c->done = 0;
		start = rte_rdtsc();
		rte_eal_remote_launch(change, c, lcore);
		for (busy[r] = 0, k = 0; k < 8; k++)
			busy[r] += window(1, false, 32) / 8;
		atomic_store_explicit(&c->stop, true, memory_order_relaxed);
		rate += (double)c->done * (double)rte_get_tsc_hz() / (double)(rte_rdtsc() - start);
		rte_eal_wait_lcore(lcore);
		p99 = RTE_MAX(p99, c->worst_us);
	}
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	jobs[0].qsbr = NULL;
	a = median(quiet, n);
	b = median(busy, n);
	printf("\n%.0f changes a second: %.1f -> %.1f cycles a packet, %+.1f %% (target under 2 "
	       "%%), p99 of a change %.1f us\n",
		rate / n, a, b, (b / a - 1) * 100, p99);
	record("changes", "slower", 64, (b / a - 1) * 100, "%");
	record("changes", "rate", 64, rate / n, "per second");
	record("changes", "p99", 64, p99, "us");
}

static void
bench_all(void)
{
	struct rte_rcu_qsbr *qsbr = calloc(1, RTE_ALIGN(rte_rcu_qsbr_get_memsize(WORKERS), 64));
	struct csum_action *csum = csum_action_create(WORKERS);
	struct action_table *table;
	struct action *action;
	struct changer changer = { .per_second = 10000 };
	struct rcu *rcu;

	rte_rcu_qsbr_init(qsbr, WORKERS);
	rte_rcu_qsbr_thread_register(qsbr, 0);
	rcu = rcu_create(qsbr);
	table = action_table_create(rcu, WORKERS);
	impl_used = csum_impl_best();
	action_create(
		table, &csum_action_ops, 0, csum_action_params_create(FLAGS, TC_ACT_OK), &action);
	list = calloc(1, sizeof(*list) + sizeof(list->actions[0]));
	list->n = 1;
	list->needs_views = true;
	list->actions[0] = action;
	locked.flags = FLAGS;
	rte_spinlock_init(&locked.lock);

	bench_sums(false);
	bench_sums(true);
	bench_packets();
	set_frames(64);
	printf("64 bytes, cycles a packet: RCU, lock\n");
	bench_lock(action, csum, false, 1);
	bench_lock(action, csum, true, 1);
	if (rte_lcore_count() > 1) {
		bench_lock(action, csum, false, 2);
		bench_lock(action, csum, true, 2);
		print_linux();
		changer.action = action;
		changer.csum = csum;
		changer.rcu = rcu;
		action_replace(action, csum_action_params_create(FLAGS, TC_ACT_OK));
		bench_changes(&changer, qsbr);
	} else {
		printf("  one lcore only: no contention to measure\n");
	}
	action_put(action, false);
	action_table_destroy(table);
	rcu_destroy(rcu);
	csum_action_destroy(csum);
	free(list);
	free(qsbr);
}

int
main(int argc, char *argv[])
{
	const char *path = NULL;
	int n = rte_eal_init(argc, argv), c;

	if (n < 0) {
		fprintf(stderr, "csum_bench: rte_eal_init: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	argc -= n;
	argv += n;
	while ((c = getopt(argc, argv, "o:r:")) != -1) {
		if (c == 'o') {
			path = optarg;
		} else if (c == 'r') {
			rounds = (unsigned int)RTE_MIN(strtoul(optarg, NULL, 0), ROUNDS_MAX);
		} else {
			fprintf(stderr,
				"usage: csum_bench EAL-options -- [-r rounds] [-o file.json]\n");
			return 1;
		}
	}
	/* as the program does, unless the operator said otherwise */
	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	pool = test_pool("bench", 511);
	if (path != NULL && (json = fopen(path, "w")) == NULL) {
		perror(path);
		return 1;
	}
	if (json != NULL)
		fprintf(json,
			"{\"bench\": \"csum_action\", \"unit\": \"TSC cycles\", \"tsc_hz\": "
			"%" PRIu64 ", \"values\": [",
			rte_get_tsc_hz());
	bench_all();
	if (json != NULL) {
		fprintf(json, "\n]}\n");
		fclose(json);
	}
	return 0;
}
