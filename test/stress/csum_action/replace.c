/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Rules A28, A29 and A30 under traffic. One thread replaces the parameters of an action in turn by
 * {UDP, pass}, {IPv4 header, drop ...} and so on, as fast as it can or at a given rate, while
 * workers run packets through it. Whatever a burst's verdict says, its packets must show the flags
 * that belong to it: a packet with a verdict of one snapshot and sums of another fails the test.
 * Meanwhile counters are read: none runs backwards, and in the end they name every packet.
 *
 * usage: csum_replace [SECONDS [CHANGES-A-SECOND]]   (5, 0: no pause)
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <rte_rcu_qsbr.h>

#include "action/action.h"
#include "csum_action/csum_action.h"
#include "packet/packet.h"
#include "rcu/rcu.h"
#include "support.h"

#define WORKERS 2
#define BATCH 8
#define FRAME 60
#define IP_FIELD 24
#define UDP_FIELD 40

/* Each verdict goes with flags of its own. */
static const struct {
	uint32_t flags;
	int32_t verdict;
} snapshots[] = {
	{ TCA_CSUM_UPDATE_FLAG_UDP, TC_ACT_OK },
	{ TCA_CSUM_UPDATE_FLAG_IPV4HDR, TC_ACT_PIPE },
	{ TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_UDP, TC_ACT_RECLASSIFY },
	{ TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_UDP, TC_ACT_SHOT },
	{ TCA_CSUM_UPDATE_FLAG_TCP, TC_ACT_GOTO_CHAIN | 7 },
};

struct worker {
	pthread_t thread;
	unsigned int id;
	struct action_list *list;
	struct rte_rcu_qsbr *qsbr;
	struct rte_mempool *pool;
	_Atomic bool *stop;
	uint64_t packets, drops;
	uint64_t seen[RTE_DIM(snapshots)];
	unsigned int wrong;
};

static const uint8_t udp4[FRAME] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 1,
	0, 0, 64, 17, 0x77, 0x77, 192, 0, 2, 1, 198, 51, 100, 7, 0, 9, 0, 9, 0, 26, 0x55, 0x55, 1,
	2, 3 };

static void
no_mirror(void *arg, unsigned int id, uint32_t ifindex, bool ingress, struct rte_mbuf *const *pkts,
	uint64_t mask)
{
	(void)arg;
	(void)id;
	(void)ifindex;
	(void)ingress;
	(void)pkts;
	(void)mask;
}

/* Whether these packets show exactly the sums of snapshot s. */
static bool
shows(struct rte_mbuf *const *pkts, unsigned int s)
{
	bool drop = snapshots[s].verdict == TC_ACT_SHOT; /* not looked at */
	bool ip = !drop && (snapshots[s].flags & TCA_CSUM_UPDATE_FLAG_IPV4HDR) != 0;
	bool udp = !drop && (snapshots[s].flags & TCA_CSUM_UPDATE_FLAG_UDP) != 0;
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(pkts[i], const uint8_t *);

		if ((p[IP_FIELD] != udp4[IP_FIELD]) != ip ||
			(p[UDP_FIELD] != udp4[UDP_FIELD]) != udp)
			return false;
	}
	return true;
}

static void
run_batch(struct worker *w, struct rte_mbuf **pkts)
{
	struct packet_view views[BATCH];
	struct packet_vector vector = { .pkts = pkts, .views = views, .n = BATCH };
	struct action_burst burst = {
		.vector = &vector, .pkts = pkts, .worker = w->id, .mirror = no_mirror
	};
	unsigned int i, s;
	int32_t verdict;

	for (i = 0; i < BATCH; i++)
		memcpy(rte_pktmbuf_mtod(pkts[i], void *), udp4, FRAME);
	packet_vector_parse(&vector);
	verdict = action_exec(w->list, &burst, packet_vector_mask(&vector));
	for (s = 0; s < RTE_DIM(snapshots); s++)
		if (snapshots[s].verdict == verdict)
			break;
	if (s == RTE_DIM(snapshots) || !shows(pkts, s)) {
		w->wrong++;
		return;
	}
	w->seen[s]++;
	w->packets += BATCH;
	w->drops += verdict == TC_ACT_SHOT ? BATCH : 0;
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct rte_mbuf *pkts[BATCH];
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		pkts[i] = test_frame(w->pool, udp4, FRAME, 0);
	rte_rcu_qsbr_thread_online(w->qsbr, w->id);
	/* relaxed: only ends the loop */
	while (!atomic_load_explicit(w->stop, memory_order_relaxed)) {
		run_batch(w, pkts);
		rte_rcu_qsbr_quiescent(w->qsbr, w->id);
	}
	rte_rcu_qsbr_thread_offline(w->qsbr, w->id);
	rte_pktmbuf_free_bulk(pkts, BATCH);
	return NULL;
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct action_params *
params(struct csum_action *csum, uint64_t n)
{
	struct action_params *p = csum_action_params_create(
		snapshots[n % RTE_DIM(snapshots)].flags, snapshots[n % RTE_DIM(snapshots)].verdict);

	csum_action_params_attach(p, csum);
	return p;
}

/* Counters that ran backwards since the last call. */
static unsigned int
backwards(const struct action *action, struct action_stats *last)
{
	struct action_stats s;
	unsigned int n;

	action_stats_get(action, &s);
	n = (s.packets < last->packets) + (s.bytes < last->bytes) + (s.drops < last->drops);
	*last = s;
	return n;
}

/* Replaces until the time is over. Returns how often. */
static uint64_t
replace(struct action *action, struct csum_action *csum, struct rcu *rcu, double seconds,
	double rate, unsigned int *errors)
{
	struct action_stats last = { 0 };
	double end = now() + seconds, next = now();
	uint64_t n = 0;

	while (now() < end) {
		if (rate > 0 && now() < next)
			continue;
		next += rate > 0 ? 1 / rate : 0;
		action_replace(action, params(csum, ++n));
		rcu_reclaim(rcu, 0);
		*errors += backwards(action, &last);
	}
	return n;
}

static unsigned int
judge(const struct action *action, const struct csum_action *csum, const struct worker *w)
{
	uint64_t packets = 0, drops = 0, seen = 0, reasons = 0;
	unsigned int errors = 0, i, s;
	struct action_stats stats;

	for (i = 0; i < WORKERS; i++) {
		packets += w[i].packets;
		drops += w[i].drops;
		errors += w[i].wrong;
		printf("worker %u:", i);
		for (s = 0; s < RTE_DIM(snapshots); s++)
			printf(" %" PRIu64, w[i].seen[s]);
		printf(" bursts, %u torn\n", w[i].wrong);
	}
	for (s = 0; s < RTE_DIM(snapshots); s++)
		seen += w[0].seen[s] > 0 || w[1].seen[s] > 0;
	for (s = 0; s < CSUM_ACTION_REASON_MAX; s++)
		reasons += csum_action_count(csum, s);
	action_stats_get(action, &stats);
	if (stats.packets != packets || stats.drops != drops || stats.bytes != packets * FRAME ||
		reasons != packets - drops) {
		printf("counted %" PRIu64 " packets, %" PRIu64 " bytes, %" PRIu64 " drops, %" PRIu64
		       " reasons; sent %" PRIu64 ", dropped %" PRIu64 "\n",
			stats.packets, stats.bytes, stats.drops, reasons, packets, drops);
		errors++;
	}
	if (seen < 2) {
		printf("only %" PRIu64 " snapshots were seen\n", seen);
		errors++;
	}
	return errors;
}

int
main(int argc, char *argv[])
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
	double rate = argc > 2 ? strtod(argv[2], NULL) : 0;
	struct csum_action *csum = csum_action_create(WORKERS);
	struct worker workers[WORKERS] = { 0 };
	struct action_list *list;
	struct rte_rcu_qsbr *qsbr;
	struct action_table *table;
	struct rte_mempool *pool;
	struct action *action;
	_Atomic bool stop = false;
	unsigned int i, errors = 0;
	struct rcu *rcu;
	uint64_t n;

	test_eal_init("csum-replace", "0");
	pool = test_pool("replace", WORKERS * BATCH);
	qsbr = aligned_alloc(64, RTE_ALIGN(rte_rcu_qsbr_get_memsize(WORKERS), 64));
	rte_rcu_qsbr_init(qsbr, WORKERS);
	rcu = rcu_create(qsbr);
	table = action_table_create(rcu, WORKERS);
	if (action_create(table, &csum_action_ops, 0, params(csum, 0), &action) != 0)
		return 1;
	list = calloc(1, sizeof(*list) + sizeof(list->actions[0]));
	list->n = 1;
	list->needs_views = true;
	list->actions[0] = action;
	for (i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){
			.id = i, .list = list, .qsbr = qsbr, .pool = pool, .stop = &stop
		};
		rte_rcu_qsbr_thread_register(qsbr, i);
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	n = replace(action, csum, rcu, seconds, rate, &errors);
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	printf("%" PRIu64 " changes, %u counters ran backwards\n", n, errors);
	errors += judge(action, csum, workers);
	action_put(action, false);
	rcu_barrier(rcu);
	action_table_destroy(table);
	rcu_destroy(rcu);
	csum_action_destroy(csum);
	free(list);
	free(qsbr);
	if (!test_pool_full(pool)) {
		printf("mbufs are missing\n");
		errors++;
	}
	return errors == 0 ? 0 : 1;
}
