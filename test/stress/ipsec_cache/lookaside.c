/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Two workers, a crypto device with a queue pair for each, and a control thread that takes their
 * SAs away and gives new ones. Packets are always inside: a worker takes out fewer than it puts in
 * until its lane is half full. What must hold:
 *
 *   E4  an SA that packets inside belong to is whole until the worker that got the last of them has
 *       reported quiescence: its SPI and its peer are what they were when the packet was put in
 *   order: an SA's numbers come out going up
 *   in the end nothing is held, and no mbuf is missing
 *
 * usage: ipsec_lookaside_stress seconds
 */

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "../../crypto.h"
#include "../../unit/ipsec_cache/world.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/sad.h"

#define WORKERS 2
#define BURST 16
#define FULL 512
#define CHANGE_NS 200000

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

static struct world world;
static struct rte_mempool *pools[WORKERS];
static _Atomic uint32_t spis[WORKERS]; /* of the SA that a worker has now */
static _Atomic bool stopping;
static _Atomic uint64_t by_device, by_cpu;

static uint32_t
word_of(const struct rte_mbuf *m, unsigned int off)
{
	uint32_t word;

	memcpy(&word, rte_pktmbuf_mtod_offset(m, const uint8_t *, 14 + 20 + off), sizeof(word));
	return ntohl(word);
}

static void
seal_burst(unsigned int id)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, id);
	struct ipsec_cache_decision d = { .action = IPSEC_CACHE_PROTECT, .mtu = 1400 };
	const struct ipsec_cache_decision *decisions[BURST];
	struct packet_view views[BURST];
	struct rte_mbuf *pkts[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = BURST };
	struct ipsec_cache_result r;
	uint8_t daddr[16] = { 192, 0, 2, 2 };
	unsigned int i;

	ipsec_cache_begin(w);
	d.rt = ipsec_sad_lookup(world.ic, htonl(atomic_load(&spis[id])), AF_INET, daddr, 0);
	if (d.rt == NULL)
		return;
	d.session = atomic_load_explicit(&d.rt->session, memory_order_acquire);
	for (i = 0; i < BURST; i++) {
		pkts[i] = world_frame(pools[id], AF_INET, 64, (uint16_t)id);
		decisions[i] = &d;
	}
	ipsec_cache_seal(w, &v, packet_vector_mask(&v), decisions, &r);
	atomic_fetch_add(&by_device, (uint64_t)__builtin_popcountll(r.pending));
	atomic_fetch_add(&by_cpu, (uint64_t)__builtin_popcountll(r.done));
	CHECK(r.hand_over == 0);
	packet_mask_for_each (i, r.done | r.drop)
		rte_pktmbuf_free(pkts[i]);
}

struct last {
	uint32_t spi, number;
};

static unsigned int
poll_burst(unsigned int id, struct last *last)
{
	struct ipsec_cache_done done[BURST];
	unsigned int n, i;

	ipsec_cache_begin(ipsec_cache_worker(world.ic, id));
	n = ipsec_cache_poll(ipsec_cache_worker(world.ic, id), done, BURST);
	for (i = 0; i < n; i++) {
		uint32_t spi, number;

		CHECK(!done[i].failed && done[i].sealed);
		spi = word_of(done[i].m, 0);
		number = word_of(done[i].m, 4);
		CHECK(done[i].rt->spi == htonl(spi));
		CHECK(done[i].rt->sa->spec.info.id.spi == htonl(spi));
		CHECK(spi != last->spi || number > last->number);
		last->spi = spi;
		last->number = number;
		rte_pktmbuf_free(done[i].m);
	}
	return n;
}

/* Time for several SAs to come and go, while packets are inside. */
static void
rest(unsigned int id)
{
	uint64_t until = rte_rdtsc() + rte_get_tsc_hz() / 500;

	while (rte_rdtsc() < until) {
		rte_rcu_qsbr_quiescent(world.qsbr, id);
		sched_yield();
	}
}

static void *
worker_main(void *arg)
{
	unsigned int id = (unsigned int)(uintptr_t)arg;
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, id);
	struct last last = { 0 };

	rte_rcu_qsbr_thread_online(world.qsbr, id);
	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		seal_burst(id);
		if (w->n_inside > FULL) {
			rest(id);
			while (w->n_inside > 0)
				poll_burst(id, &last);
		}
		rte_rcu_qsbr_quiescent(world.qsbr, id);
	}
	while (ipsec_cache_busy(w)) {
		poll_burst(id, &last);
		rte_rcu_qsbr_quiescent(world.qsbr, id);
	}
	rte_rcu_qsbr_thread_offline(world.qsbr, id);
	return NULL;
}

static void
change(unsigned int id, uint32_t spi)
{
	struct ipsec_cache_sa_spec spec = world_spec("192.0.2.1", "192.0.2.2", spi);
	struct ipsec_cache_sa_id old;

	spec.dir = SAD_DIR_OUT;
	spec.replay_window = 0;
	world_null(&spec);
	world_sa(&world, &spec);
	sad_id(&spec, &old);
	old.spi = htonl(atomic_exchange(&spis[id], spi));
	if (old.spi != 0)
		CHECK(ipsec_cache_sa_del(world.ic, &old) == 0);
}

int
main(int argc, char *argv[])
{
	time_t end = time(NULL) + (time_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 4);
	struct timespec pause = { .tv_nsec = CHANGE_NS };
	pthread_t threads[WORKERS];
	struct ipsec_cache_stats stats;
	uint32_t spi = 0x1000;
	uint64_t now = 0;

	test_eal_init("lookaside-stress", "0");
	world_create(&world, WORKERS, 64, false);
	test_crypto_add(world.ic, "crypto_null0", WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++) {
		pools[i] = test_pool(i == 0 ? "stress0" : "stress1", 2047);
		change(i, spi++);
		CHECK(pthread_create(&threads[i], NULL, worker_main, (void *)(uintptr_t)i) == 0);
	}
	while (time(NULL) < end) {
		change(spi % WORKERS, spi);
		spi++;
		rcu_reclaim(world.rcu, 0);
		ipsec_cache_tick(world.ic, ++now);
		nanosleep(&pause, NULL);
	}
	atomic_store(&stopping, true);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < 4; i++) {
		rcu_barrier(world.rcu);
		ipsec_cache_tick(world.ic, ++now);
	}
	rcu_barrier(world.rcu);
	ipsec_cache_tick(world.ic, ++now);
	ipsec_cache_stats(world.ic, &stats);
	printf("%u SAs, %" PRIu64 " packets by the device, %" PRIu64 " by the CPU\n", spi - 0x1000,
		atomic_load(&by_device), atomic_load(&by_cpu));
	CHECK(stats.sessions_dying == 0 && world.ic->sad->held == NULL);
	CHECK(atomic_load(&by_device) > 1000);
	for (unsigned int i = 0; i < WORKERS; i++)
		CHECK(test_pool_full(pools[i]));
	test_crypto_stop();
	world_destroy(&world);
	return 0;
}
