/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Everything at once: producers with random bursts and bands, a NIC that refuses at random, and a
 * control thread that resizes, remaps, flushes, deactivates and hands the queue from worker to
 * worker. Every packet is counted and every producer's sequence within a band is checked.
 *
 * stress [-s seconds] [-r seed] [-w workers]; SCHED_NOLOCK_STRESS_SECONDS as -s
 */

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <bsd/stdlib.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"
#include "stress/heap.h"
#include "support.h"

#define WORKERS_MAX 8
#define BANDS 4
#define BURST_MAX 48
#define LIVE_MAX 20000 /* as a pool would have */

struct tag {
	uint16_t worker, priority;
	uint32_t seq;
};

struct worker {
	pthread_t thread;
	unsigned int id;
	uint64_t rng;
	uint32_t seq;
	uint64_t offered, refused;
};

static struct {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct sched_nolock *sched;
	int tag_offset, priority_offset;
	unsigned int n_workers;
	_Atomic bool stop, calm;
	_Atomic uint32_t inside, active;
	uint64_t nic_rng;
	unsigned int nic_mood;
	/* The owner's. */
	uint32_t last[WORKERS_MAX][16]; /* sequence seen last of each worker and priority */
	uint64_t sent;
	_Atomic uint64_t dropped;
	_Atomic uint32_t live; /* packets made and not freed */
	struct worker workers[WORKERS_MAX];
} bed;

static uint32_t
draw(uint64_t *rng, uint32_t below)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return (uint32_t)(*rng >> 20) % below;
}

static struct tag *
tag_of(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, bed.tag_offset, struct tag *);
}

/*
 * Packets come from malloc: a mempool's own hand-over would order one worker's accesses after
 * another's, and hide from the sanitizer what the scheduler itself forgets to order.
 */
static struct rte_mbuf *
packet(void)
{
	struct rte_mbuf *m = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*m));

	if (m == NULL)
		err(1, "aligned_alloc");
	atomic_fetch_add_explicit(&bed.live, 1, memory_order_relaxed);
	return m;
}

static void
free_all(struct rte_mbuf **pkts, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		free(pkts[i]);
	/* Relaxed: it must not order anything. */
	atomic_fetch_sub_explicit(&bed.live, n, memory_order_relaxed);
}

/* How many of n the NIC takes: moods of plenty, of trickle, and of none. */
static uint16_t
nic_room(uint16_t n)
{
	if (atomic_load_explicit(&bed.calm, memory_order_relaxed))
		return n;
	if (draw(&bed.nic_rng, 64) == 0)
		bed.nic_mood = draw(&bed.nic_rng, 4);
	switch (bed.nic_mood) {
	case 0:
		return 0;
	case 1:
		return (uint16_t)draw(&bed.nic_rng, n + 1u);
	default:
		return n;
	}
}

static uint16_t
tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, room;

	(void)arg;
	/* Relaxed: that no two are here at once is what is tested; the sanitizer checks the order.
	 */
	if (atomic_fetch_add_explicit(&bed.inside, 1, memory_order_relaxed) != 0)
		errx(1, "two owners in the driver");
	if (atomic_load_explicit(&bed.active, memory_order_relaxed) == 0)
		errx(1, "sent while deactivated");
	room = nic_room(n);
	for (i = 0; i < room; i++) {
		const struct tag *tag = tag_of(pkts[i]);
		uint32_t *last = &bed.last[tag->worker][tag->priority];

		if (tag->seq <= *last)
			errx(1, "worker %u priority %u: %u after %u", tag->worker, tag->priority,
				tag->seq, *last);
		*last = tag->seq;
	}
	free_all(pkts, room);
	bed.sent += room;
	atomic_fetch_sub_explicit(&bed.inside, 1, memory_order_relaxed);
	return room;
}

static void
drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	atomic_fetch_add_explicit(&bed.dropped, n, memory_order_relaxed);
	free_all(pkts, n);
}

static void
offer(struct worker *w)
{
	struct rte_mbuf *pkts[BURST_MAX];
	unsigned int n = 1 + (draw(&w->rng, 3) == 0 ? draw(&w->rng, BURST_MAX) : 0), i;
	uint32_t priority = draw(&w->rng, 16);
	uint16_t took;

	if (atomic_load_explicit(&bed.live, memory_order_relaxed) > LIVE_MAX) {
		sched_yield();
		return;
	}
	for (i = 0; i < n; i++) {
		if (draw(&w->rng, 8) == 0)
			priority = draw(&w->rng, 16);
		pkts[i] = packet();
		pkts[i]->pkt_len = pkts[i]->data_len = (uint16_t)(60 + draw(&w->rng, 1400));
		/* Packets of one priority share a band whatever the map is: they stay in order. */
		*tag_of(pkts[i]) = (struct tag){
			.worker = (uint16_t)w->id,
			.priority = (uint16_t)priority,
			.seq = ++w->seq,
		};
		*RTE_MBUF_DYNFIELD(pkts[i], bed.priority_offset, uint32_t *) = priority;
	}
	took = sched_nolock_enqueue(bed.sched, w->id, pkts, (uint16_t)n);
	free_all(pkts + took, n - took);
	w->offered += n;
	w->refused += n - took;
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	rte_rcu_qsbr_thread_online(bed.qsbr, w->id);
	while (!atomic_load_explicit(&bed.stop, memory_order_relaxed)) {
		unsigned int i, n = draw(&w->rng, 16);

		for (i = 0; i < n; i++)
			offer(w);
		if (draw(&w->rng, 4) != 0)
			sched_nolock_drain(bed.sched, w->id);
		if (draw(&w->rng, 64) == 0)
			sched_yield();
		if (draw(&w->rng, 2000) == 0) {
			/* Away, as a worker that was given other queues. */
			rte_rcu_qsbr_thread_offline(bed.qsbr, w->id);
			usleep(draw(&w->rng, 2000));
			rte_rcu_qsbr_thread_online(bed.qsbr, w->id);
		}
		rte_rcu_qsbr_quiescent(bed.qsbr, w->id);
	}
	rte_rcu_qsbr_thread_offline(bed.qsbr, w->id);
	return NULL;
}

static void
pause_queue(uint64_t *rng)
{
	sched_nolock_deactivate(bed.sched);
	atomic_store_explicit(&bed.active, 0, memory_order_relaxed);
	usleep(draw(rng, 500));
	atomic_store_explicit(&bed.active, 1, memory_order_relaxed);
	sched_nolock_activate(bed.sched);
}

static void
remap(uint64_t *rng)
{
	uint8_t priomap[SCHED_NOLOCK_PRIO_MAX];
	unsigned int bands = 1 + draw(rng, BANDS), i;

	for (i = 0; i < SCHED_NOLOCK_PRIO_MAX; i++)
		priomap[i] = (uint8_t)draw(rng, bands);
	if (sched_nolock_change(bed.sched, bands, priomap, draw(rng, 3) * 400) != 0)
		errx(1, "sched_nolock_change");
}

static void
meddle(uint64_t *rng)
{
	const struct sched_nolock_conf *conf = sched_nolock_conf(bed.sched);
	struct sched_nolock_stats stats;

	switch (draw(rng, 8)) {
	case 0:
		sched_nolock_flush(bed.sched);
		break;
	case 1:
		pause_queue(rng);
		break;
	case 2:
		remap(rng);
		break;
	case 3:
		if (sched_nolock_change(bed.sched, conf->bands, conf->priomap, draw(rng, 2000)) !=
			0)
			errx(1, "resize");
		break;
	case 4:
	case 5:
		if (sched_nolock_set_exclusive(bed.sched, (int)draw(rng, bed.n_workers + 1) - 1) !=
			0)
			errx(1, "set_exclusive");
		break;
	case 6:
		sched_nolock_stats(bed.sched, &stats);
		break;
	default:
		rcu_reclaim(bed.rcu, 0);
	}
	usleep(draw(rng, 3000));
}

static int
field(const char *name, size_t size)
{
	struct rte_mbuf_dynfield desc = { .size = size, .align = 4 };
	int offset;

	snprintf(desc.name, sizeof(desc.name), "%s", name);
	if ((offset = rte_mbuf_dynfield_register(&desc)) < 0)
		errx(1, "no room for %s", name);
	return offset;
}

static void
make(void)
{
	struct sched_nolock_conf conf;
	unsigned int i;

	bed.tag_offset = field("stress_tag", sizeof(struct tag));
	bed.priority_offset = field("stress_priority", 4);
	bed.qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(bed.n_workers), RTE_CACHE_LINE_SIZE);
	if (bed.qsbr == NULL || rte_rcu_qsbr_init(bed.qsbr, bed.n_workers) != 0 ||
		(bed.rcu = rcu_create(bed.qsbr)) == NULL)
		errx(1, "no rcu");
	for (i = 0; i < bed.n_workers; i++)
		rte_rcu_qsbr_thread_register(bed.qsbr, i);
	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = bed.n_workers;
	conf.priority_offset = bed.priority_offset;
	conf.tx = tx;
	conf.drop = drop;
	conf.rcu = bed.rcu;
	if ((bed.sched = sched_nolock_create(&conf)) == NULL)
		errx(1, "sched_nolock_create");
	atomic_store(&bed.active, 1);
}

/* Rule B11: silence; what is left leaves within its loops. Then rule B7: the books. */
static void
settle(void)
{
	uint64_t offered = 0, refused = 0, loops;
	struct sched_nolock_stats st;
	unsigned int i;

	atomic_store(&bed.calm, true);
	sched_nolock_set_exclusive(bed.sched, -1);
	sched_nolock_stats(bed.sched, &st);
	loops = (st.queued + st.held) / SCHED_NOLOCK_BUDGET_DEFAULT + 2;
	for (; loops > 0 && !sched_nolock_empty(bed.sched); loops--)
		sched_nolock_drain(bed.sched, 0);
	if (!sched_nolock_empty(bed.sched))
		errx(1, "packets are stuck");
	for (i = 0; i < bed.n_workers; i++) {
		offered += bed.workers[i].offered;
		refused += bed.workers[i].refused;
	}
	sched_nolock_stats(bed.sched, &st);
	if (st.enqueued != offered || st.dropped != refused + bed.dropped ||
		st.bypassed + st.dequeued != bed.sent || st.queued != 0 || st.held != 0 ||
		st.queued_bytes != 0 || st.held_bytes != 0 ||
		st.enqueued != st.bypassed + st.dequeued + st.dropped ||
		st.enqueued_bytes != st.bypassed_bytes + st.dequeued_bytes + st.dropped_bytes)
		errx(1, "the books do not balance");
	printf("%u workers: offered %ju bypassed %ju dequeued %ju dropped %ju requeues %ju\n",
		bed.n_workers, (uintmax_t)st.enqueued, (uintmax_t)st.bypassed,
		(uintmax_t)st.dequeued, (uintmax_t)st.dropped, (uintmax_t)st.requeues);
	sched_nolock_destroy(bed.sched);
	rcu_destroy(bed.rcu);
	if (atomic_load(&bed.live) != 0)
		errx(1, "packets are missing");
}

int
main(int argc, char **argv)
{
	const char *env = getenv("SCHED_NOLOCK_STRESS_SECONDS"), *bad = NULL;
	long long seconds = 5, seed = time(NULL), workers = 4;
	unsigned int i;
	uint64_t rng;
	time_t end;
	int ch;

	if (env != NULL)
		seconds = strtonum(env, 1, 1 << 20, &bad);
	while (bad == NULL && (ch = getopt(argc, argv, "s:r:w:")) != -1) {
		if (ch == 's')
			seconds = strtonum(optarg, 1, 1 << 20, &bad);
		else if (ch == 'r')
			seed = strtonum(optarg, 1, INT64_MAX, &bad);
		else if (ch == 'w')
			workers = strtonum(optarg, 1, WORKERS_MAX, &bad);
		else
			bad = "unknown";
	}
	if (bad != NULL)
		errx(1, "usage: stress [-s seconds] [-r seed] [-w 1..%u]", WORKERS_MAX);
	test_eal_init("sched_nolock_stress", "0");
	bed.n_workers = (unsigned int)workers;
	printf("seed %lld\n", seed);
	fflush(stdout);
	rng = bed.nic_rng = (uint64_t)seed * 0x9e3779b97f4a7c15u | 1;
	make();
	for (i = 0; i < bed.n_workers; i++) {
		bed.workers[i].id = i;
		bed.workers[i].rng = (rng + i) * 0xbf58476d1ce4e5b9u | 1;
		if (pthread_create(&bed.workers[i].thread, NULL, work, &bed.workers[i]) != 0)
			err(1, "pthread_create");
	}
	for (end = time(NULL) + seconds; time(NULL) < end;)
		meddle(&rng);
	atomic_store(&bed.stop, true);
	for (i = 0; i < bed.n_workers; i++)
		pthread_join(bed.workers[i].thread, NULL);
	settle();
	rte_eal_cleanup();
	return 0;
}
