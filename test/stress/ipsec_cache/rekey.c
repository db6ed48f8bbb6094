/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Two workers and a key that changes every two milliseconds. Each worker decides, seals and opens
 * bursts of its own flows; what lives on the other one it hands over by a ring. The control thread
 * adds an SA, deletes the one before it, and reads what workers count. What must hold:
 *
 *   E3  a burst that began after an SA was added uses that SA, or a newer one
 *   E4  no packet uses an SA that was deleted: its memory is given back after the grace period
 *   D12 no number is given out twice; each packet that was sealed opens once, as it was
 *
 * usage: ipsec_rekey seconds [share]     share: lcores share an SA's numbers
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <rte_ring.h>

#include "../../unit/ipsec_cache/world.h"

#define FROM "192.0.2.1"
#define TO "192.0.2.2"
#define WORKERS 2
#define BURST 16
#define FIRST_SPI 0x1000
#define REKEY_NS 2000000
#define PAYLOAD 64

static struct world world;
static struct rte_mempool *pool;
static struct rte_ring *rings[WORKERS];
static bool share;
static _Atomic uint32_t newest; /* SPI of the newest SA whose addition has returned */
static _Atomic bool stopping;

static struct counts {
	uint64_t sealed, opened, handed, late;
	char pad[RTE_CACHE_LINE_SIZE];
} counts[WORKERS] __rte_cache_aligned;

#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "ipsec_rekey: line %d: not %s: ", __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
			abort(); \
		} \
	} while (0)

static uint32_t
spi_of(const struct rte_mbuf *m)
{
	uint32_t spi;

	memcpy(&spi, rte_pktmbuf_mtod_offset(m, const uint8_t *, 34), sizeof(spi));
	return ntohl(spi);
}

/* Gives the packets of `mask` to other workers, or back to the pool if their rings are full. */
static void
hand_over(unsigned int id, struct rte_mbuf **pkts, const struct ipsec_cache_result *result)
{
	unsigned int i;

	packet_mask_for_each (i, result->hand_over) {
		CHECK(result->home[i] != id && result->home[i] < WORKERS, "home %u",
			result->home[i]);
		counts[id].handed++;
		if (rte_ring_enqueue(rings[result->home[i]], pkts[i]) != 0)
			rte_pktmbuf_free(pkts[i]);
	}
}

/* Opens what was sealed. A packet may be late, if its SA is gone or others overtook it. */
static void
open_burst(unsigned int id, struct packet_vector *v, uint64_t mask)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, id);
	struct ipsec_cache_result result;
	unsigned int i;

	if (mask == 0)
		return;
	ipsec_cache_open(w, v, mask, &result);
	CHECK(result.not_ours == 0, "%" PRIx64, result.not_ours);
	packet_mask_for_each (i, result.drop) {
		CHECK(result.error[i] == IPSEC_CACHE_ESP_NO_SA ||
				(share && result.error[i] == IPSEC_CACHE_ESP_REPLAY),
			"error %u", result.error[i]);
		counts[id].late++;
		rte_pktmbuf_free(v->pkts[i]);
	}
	packet_mask_for_each (i, result.done) {
		const uint8_t *p = rte_pktmbuf_mtod_offset(v->pkts[i], const uint8_t *, 42);

		CHECK(v->pkts[i]->pkt_len == 42 + PAYLOAD, "%u bytes", v->pkts[i]->pkt_len);
		CHECK(p[PAYLOAD - 1] == (uint8_t)(p[0] + 5 * (PAYLOAD - 1)), "another packet");
		counts[id].opened++;
		rte_pktmbuf_free(v->pkts[i]);
	}
	hand_over(id, v->pkts, &result);
}

static void
seal_burst(unsigned int id, struct packet_vector *v, uint64_t mask, uint32_t least)
{
	const struct ipsec_cache_decision *decisions[PACKET_VECTOR_MAX];
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, id);
	struct ipsec_cache_result result;
	unsigned int i;

	if (mask == 0)
		return;
	ipsec_cache_decide(w, v, mask, NULL, 0, decisions);
	packet_mask_for_each (i, mask) {
		CHECK(decisions[i]->action == IPSEC_CACHE_PROTECT, "error %u", decisions[i]->error);
	}
	ipsec_cache_seal(w, v, mask, decisions, &result);
	CHECK(result.drop == 0, "error %u", result.error[__builtin_ctzll(result.drop)]);
	packet_mask_for_each (i, result.done) {
		CHECK(spi_of(v->pkts[i]) >= least, "SPI %x, but %x was there before",
			spi_of(v->pkts[i]), least);
		counts[id].sealed++;
	}
	hand_over(id, v->pkts, &result);
	open_burst(id, v, result.done);
}

/* One burst of packets, some of which are sealed already. */
static void
burst(unsigned int id, struct rte_mbuf **pkts, uint16_t n)
{
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = n };
	/* acquire: what was acknowledged before this load is what the burst has to use */
	uint32_t least = atomic_load_explicit(&newest, memory_order_acquire);
	uint64_t esp = 0;
	unsigned int i;

	ipsec_cache_begin(ipsec_cache_worker(world.ic, id));
	packet_vector_parse(&v);
	for (i = 0; i < n; i++)
		if (views[i].l4_proto == IPPROTO_ESP)
			esp |= UINT64_C(1) << i;
	open_burst(id, &v, esp);
	seal_burst(id, &v, packet_vector_mask(&v) & ~esp, least);
}

static void *
work(void *arg)
{
	unsigned int id = (unsigned int)(uintptr_t)arg, i, n;
	struct rte_mbuf *pkts[BURST];

	rte_thread_register();
	rte_rcu_qsbr_thread_online(world.qsbr, id);
	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		for (i = 0; i < BURST; i++) {
			pkts[i] = world_frame(pool, AF_INET, PAYLOAD, (uint16_t)(1000 + i));
			memset(packet_meta(pkts[i], world.meta_offset), 0,
				sizeof(struct packet_meta));
		}
		if (i > 0)
			burst(id, pkts, (uint16_t)i);
		n = rte_ring_dequeue_burst(rings[id], (void **)pkts, BURST, NULL);
		if (n > 0)
			burst(id, pkts, (uint16_t)n);
		rte_rcu_qsbr_quiescent(world.qsbr, id);
	}
	rte_rcu_qsbr_thread_offline(world.qsbr, id);
	rte_thread_unregister();
	return NULL;
}

static void
del_sa(uint32_t spi)
{
	struct ipsec_cache_sa_id id = { .family = AF_INET, .proto = IPPROTO_ESP };

	id.spi = htonl(spi);
	inet_pton(AF_INET, TO, &id.daddr);
	CHECK(ipsec_cache_sa_del(world.ic, &id) == 0, "SPI %x", spi);
}

static void
add_sa(uint32_t spi)
{
	struct ipsec_cache_sa_spec spec = world_spec(FROM, TO, spi);

	spec.replay_window = IPSEC_CACHE_WINDOW_MAX;
	spec.info.reqid = 7;
	world_sa(&world, &spec);
	/* release: the SA is there for whoever sees the number */
	atomic_store_explicit(&newest, spi, memory_order_release);
}

/* Reads what is being written. */
static void
look(uint32_t spi)
{
	struct ipsec_cache_sa_spec spec;
	struct ipsec_cache_sa_id id = { .family = AF_INET, .proto = IPPROTO_ESP };
	struct ipsec_cache_stats stats;

	id.spi = htonl(spi);
	inet_pton(AF_INET, TO, &id.daddr);
	ipsec_cache_sa_describe(ipsec_cache_sa_find(world.ic, &id), &spec);
	CHECK(spec.info.stats.replay == 0 && spec.info.stats.integrity_failed == 0, "%u %u",
		spec.info.stats.replay, spec.info.stats.integrity_failed);
	ipsec_cache_stats(world.ic, &stats);
}

int
main(int argc, char *argv[])
{
	struct ipsec_cache_policy_spec policy = world_policy(XFRM_POLICY_OUT, 1, FROM, TO, 7);
	struct timespec nap = { .tv_nsec = REKEY_NS };
	unsigned int i, seconds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 2;
	pthread_t threads[WORKERS];
	uint32_t spi = FIRST_SPI;
	struct counts sum = { 0 };
	time_t end;

	share = argc > 2 && strcmp(argv[2], "share") == 0;
	test_eal_init("ipsec-rekey", "0");
	/* with caches: a thread that is put aside inside the pool's ring holds the other one up */
	pool = rte_pktmbuf_pool_create(
		"rekey", 4095, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	CHECK(pool != NULL, "no pool");
	world_create(&world, WORKERS, 256, share);
	world_add_policy(&world, &policy);
	add_sa(spi);
	/* the other end of the tunnel is us as well, though packets are sent there */
	world_local(&world, TO);
	world.loop = true;
	for (i = 0; i < WORKERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "over%u", i);
		rings[i] = rte_ring_create(name, 256, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		CHECK(rings[i] != NULL, "no ring");
	}
	for (i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
	end = time(NULL) + (time_t)seconds;
	while (time(NULL) < end) {
		nanosleep(&nap, NULL);
		look(spi);
		add_sa(++spi);
		del_sa(spi - 1);
		rcu_reclaim(world.rcu, 0);
		if (spi % 16 == 0)
			ipsec_cache_tick(world.ic, 2 * (spi - FIRST_SPI));
	}
	atomic_store(&stopping, true);
	for (i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		sum.sealed += counts[i].sealed;
		sum.opened += counts[i].opened;
		sum.handed += counts[i].handed;
		sum.late += counts[i].late;
	}
	for (i = 0; i < WORKERS; i++) {
		void *m = NULL;

		while (rte_ring_dequeue(rings[i], &m) == 0)
			rte_pktmbuf_free(m);
	}
	printf("%u keys, %" PRIu64 " sealed, %" PRIu64 " opened, %" PRIu64 " handed over, %" PRIu64
	       " late\n",
		spi - FIRST_SPI, sum.sealed, sum.opened, sum.handed, sum.late);
	CHECK(sum.opened > 0 && sum.handed > 0 && spi > FIRST_SPI + 10, "nothing happened");
	CHECK(test_pool_full(pool), "an mbuf is missing");
	world_destroy(&world);
	return 0;
}
