/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Crypto devices that take their time, mix things up, are full, lose packets, lie and die (test/nic
 * in front of a driver): order, drops by name, and SAs that end with packets inside.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "crypto.h"
#include "ipsec_cache/device.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/sad.h"
#include "nic.h"
#include "world.h"

#define SRC "192.0.2.1"
#define DST "192.0.2.2"
#define SPI 0x1000
#define MBUFS 2047

static struct world world;
static struct rte_mempool *pool;
static uint8_t dev;
static char dev_name[32];
static struct ipsec_cache_done done[IPSEC_LANE_OPS];

/* A world with one device and an SA on it. preset: what its rte_security does. */
static struct ipsec_cache_rt *
begin(const char *preset, uint8_t dir)
{
	static unsigned int n;
	struct ipsec_cache_crypto crypto = { .n_queue_pairs = 1, .name = dev_name };
	struct ipsec_cache_sa_spec spec = world_spec(SRC, DST, SPI);

	world_create(&world, 1, 64, false);
	world.loop = true;
	if (dir == SAD_DIR_IN)
		world_local(&world, DST);
	snprintf(dev_name, sizeof(dev_name), "crypto_aesni_gcm%u", n++);
	assert_true(test_crypto_make(dev_name, &dev));
	assert_int_equal(nic_crypto_attach(dev, preset), 0);
	assert_true(test_crypto_start(dev, 1));
	crypto.dev_id = dev;
	assert_int_equal(ipsec_cache_crypto_add(world.ic, &crypto), 0);
	spec.dir = dir;
	if (dir == SAD_DIR_OUT)
		spec.replay_window = 0;
	return world_sa(&world, &spec);
}

static void
end(void)
{
	rte_cryptodev_stop(dev);
	world_destroy(&world);
	rte_cryptodev_close(dev);
	nic_crypto_detach(dev);
	assert_int_equal(rte_eal_hotplug_remove("vdev", dev_name), 0);
	assert_true(test_pool_full(pool));
}

static struct ipsec_cache_worker *
worker(void)
{
	return ipsec_cache_worker(world.ic, 0);
}

static uint64_t
errors(enum ipsec_cache_error error)
{
	struct ipsec_cache_stats stats;

	ipsec_cache_stats(world.ic, &stats);
	return stats.errors[error];
}

static struct ipsec_cache_stats
stats(void)
{
	struct ipsec_cache_stats s;

	ipsec_cache_stats(world.ic, &s);
	return s;
}

/* n frames, of which the i-th has i bytes of payload and 100 more, are to be sealed. */
static void
seal(struct ipsec_cache_rt *rt, unsigned int n, struct ipsec_cache_result *result)
{
	struct ipsec_cache_decision d = {
		.rt = rt,
		.action = IPSEC_CACHE_PROTECT,
		.mtu = ipsec_rt_mtu(rt, WORLD_MTU),
		.session = rt->session,
	};
	const struct ipsec_cache_decision *decisions[PACKET_VECTOR_MAX];
	struct rte_mbuf *pkts[PACKET_VECTOR_MAX];
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = (uint16_t)n };
	unsigned int i;

	for (i = 0; i < n; i++) {
		pkts[i] = world_frame(pool, AF_INET, (uint16_t)(100 + i), 7);
		decisions[i] = &d;
	}
	ipsec_cache_begin(worker());
	ipsec_cache_seal(worker(), &v, packet_vector_mask(&v), decisions, result);
	assert_int_equal(result->done | result->drop | result->pending, packet_vector_mask(&v));
	packet_mask_for_each (i, result->drop | result->done)
		rte_pktmbuf_free(pkts[i]);
}

/* Until n came, or for so many milliseconds. */
static unsigned int
poll(unsigned int n, unsigned int ms)
{
	uint64_t until = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
	unsigned int got = 0;

	do {
		ipsec_cache_begin(worker());
		got += ipsec_cache_poll(worker(), done + got, RTE_MIN(n - got, 32u));
	} while (got < n && rte_rdtsc() < until);
	return got;
}

static uint32_t
number_of(const struct rte_mbuf *m)
{
	uint32_t low;

	memcpy(&low, rte_pktmbuf_mtod_offset(m, const uint8_t *, 14 + 20 + 4), sizeof(low));
	return ntohl(low);
}

/* done[at..at+n): sealed, with numbers from `first` on. Frees them. */
static void
expect_sealed(unsigned int at, unsigned int n, uint32_t first)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct ipsec_cache_done *d = &done[at + i];

		assert_false(d->failed);
		assert_true(d->sealed);
		assert_ptr_equal(d->hop, &world);
		assert_int_equal(number_of(d->m), first + i);
		rte_pktmbuf_free(d->m);
	}
}

static void
expect_failed(unsigned int at, unsigned int n, enum ipsec_cache_error error)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		assert_true(done[at + i].failed);
		assert_int_equal(done[at + i].error, error);
		rte_pktmbuf_free(done[at + i].m);
	}
}

static void
fault(enum nic_fault what, uint32_t n)
{
	assert_int_equal(nic_crypto_fault(dev, what, n), 0);
}

/* A second of the control thread's. */
static void
tick(void)
{
	static uint64_t now = 1000;

	for (unsigned int i = 0; i < 4; i++) {
		rcu_barrier(world.rcu);
		ipsec_cache_tick(world.ic, now += 1000);
	}
	rcu_barrier(world.rcu);
	ipsec_cache_tick(world.ic, now += 1);
}

static void
delete_sa(void)
{
	struct ipsec_cache_sa_spec spec = world_spec(SRC, DST, SPI);
	struct ipsec_cache_sa_id id;

	sad_id(&spec, &id);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
}

static void
expect_backend(const struct ipsec_cache_rt *rt, const char *name, const char *why_not)
{
	struct ipsec_cache_backend b;

	ipsec_cache_sa_backend(world.ic, ipsec_rt_sa(rt), &b);
	assert_memory_equal(b.name, name, strlen(name));
	assert_non_null(strstr(b.why_not, why_not));
}

static void
lookaside_order_is_submission_order(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_reorder, 1);
	expect_backend(rt, "lookaside-crypto crypto_aesni_gcm", "no port of its route");
	seal(rt, 40, &r);
	assert_int_equal(r.pending, (UINT64_C(1) << 40) - 1);
	assert_int_equal(poll(40, 1000), 40);
	expect_sealed(0, 40, 1);
	assert_false(ipsec_cache_busy(worker()));
	end();
}

/* Fewer than a burst, then silence: all leave. */
static void
lookaside_idle_queues_drain(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_hold, 1);
	for (unsigned int i = 0; i < 3; i++)
		seal(rt, 1, &r);
	assert_int_equal(poll(3, 1), 0);
	assert_true(ipsec_cache_busy(worker()));
	fault(NIC_FAULT_op_hold, 0);
	assert_int_equal(poll(3, 1000), 3);
	expect_sealed(0, 3, 1);
	assert_int_equal(poll(1, 0), 0);
	end();
}

static void
lookaside_full_device_is_a_drop_by_name(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_full, 8 + 1);
	seal(rt, 32, &r);
	assert_int_equal(poll(32, 1000), 32);
	expect_sealed(0, 8, 1);
	expect_failed(8, 24, IPSEC_CACHE_ESP_DEVICE_FULL);
	assert_int_equal(errors(IPSEC_CACHE_ESP_DEVICE_FULL), 24);
	fault(NIC_FAULT_op_full, 0);
	seal(rt, 2, &r);
	assert_int_equal(poll(2, 1000), 2);
	expect_sealed(0, 2, 33); /* the numbers of those are lost */
	end();
}

static void
lookaside_lane_is_bounded(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;
	unsigned int i;

	(void)state;
	fault(NIC_FAULT_op_hold, 1);
	for (i = 0; i < IPSEC_LANE_OPS; i += 64) {
		seal(rt, 64, &r);
		assert_int_equal(r.pending, UINT64_MAX);
	}
	seal(rt, 5, &r);
	assert_int_equal(r.drop, 0x1f);
	assert_int_equal(r.error[0], IPSEC_CACHE_ESP_DEVICE_FULL);
	fault(NIC_FAULT_op_hold, 0);
	assert_int_equal(poll(IPSEC_LANE_OPS, 1000), IPSEC_LANE_OPS);
	expect_sealed(0, IPSEC_LANE_OPS, 1);
	end();
}

static void
lookaside_errors_have_names(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_error, 1);
	seal(rt, 3, &r);
	assert_int_equal(poll(3, 1000), 3);
	expect_failed(0, 1, IPSEC_CACHE_ESP_DEVICE);
	expect_sealed(1, 2, 2);
	fault(NIC_FAULT_op_auth, 1); /* what is sealed has no wrong check value */
	seal(rt, 1, &r);
	assert_int_equal(poll(1, 1000), 1);
	expect_failed(0, 1, IPSEC_CACHE_ESP_DEVICE);
	assert_int_equal(errors(IPSEC_CACHE_ESP_DEVICE), 2);
	end();
}

/* Frames as the peer of the SA sends them, by a CPU that has the same SA. */
static void
open_all(struct rte_mbuf **pkts, unsigned int n, struct ipsec_cache_result *r)
{
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = (uint16_t)n };

	ipsec_cache_begin(worker());
	ipsec_cache_open(worker(), &v, packet_vector_mask(&v), r);
	assert_int_equal(r->pending, packet_vector_mask(&v));
}

static void
peer_frames(struct ipsec_cache_rt *rt, struct rte_mbuf **pkts, unsigned int n)
{
	struct ipsec_session *s = rt->session;
	struct ipsec_cache_result r;

	for (unsigned int i = 0; i < n; i++) {
		pkts[i] = world_frame(pool, AF_INET, 99, 7);
		world_seal(&world, 0, &pkts[i], rt, &r); /* decisions without a session */
		assert_int_equal(r.done, 1);
	}
	assert_ptr_equal(s, rt->session);
}

/* D7: the same number twice in the device passes once; a wrong check value is one. */
static void
lookaside_D7_second_look_at_the_window(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_IN);
	struct rte_mbuf *pkts[4];
	struct ipsec_cache_result r;

	(void)state;
	peer_frames(rt, pkts, 3);
	pkts[3] = rte_pktmbuf_copy(pkts[1], pool, 0, UINT32_MAX);
	*rte_pktmbuf_mtod_offset(pkts[2], uint8_t *, 60) ^= 1;
	open_all(pkts, 4, &r);
	assert_int_equal(poll(4, 1000), 4);
	assert_false(done[0].failed);
	assert_false(done[1].failed);
	assert_int_equal(done[0].m->pkt_len, 14 + 28 + 99);
	assert_ptr_equal(done[0].rt, rt);
	rte_pktmbuf_free(done[0].m);
	rte_pktmbuf_free(done[1].m);
	expect_failed(2, 1, IPSEC_CACHE_ESP_ICV);
	expect_failed(3, 1, IPSEC_CACHE_ESP_REPLAY);
	assert_int_equal(rt->bad_icv, 1);
	assert_int_equal(rt->bad_seen, 1);
	assert_int_equal(ipsec_window_top(&rt->window), 2);
	end();
}

/* The frame in segments of 60 bytes. */
static struct rte_mbuf *
cut(struct rte_mbuf *m)
{
	struct rte_mbuf *pieces = test_frame(pool, rte_pktmbuf_mtod(m, void *), m->pkt_len, 60);

	rte_pktmbuf_free(m);
	return pieces;
}

/* A driver without scatter-gather: the CPU does those packets, in their turn. */
static void
lookaside_segments_wait_their_turn(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_IN);
	struct rte_mbuf *pkts[4];
	struct ipsec_cache_result r;

	(void)state;
	ipsec_lookaside_dev(world.ic, 0)->sgl = false;
	fault(NIC_FAULT_op_hold, 1);
	peer_frames(rt, pkts, 4);
	pkts[1] = cut(pkts[1]);
	*rte_pktmbuf_mtod_offset(pkts[2], uint8_t *, 70) ^= 1;
	pkts[2] = cut(pkts[2]);
	open_all(pkts, 4, &r);
	assert_int_equal(poll(1, 1), 0);
	fault(NIC_FAULT_op_hold, 0);
	assert_int_equal(poll(4, 1000), 4);
	expect_failed(2, 1, IPSEC_CACHE_ESP_ICV);
	for (unsigned int i = 0; i < 4; i += 1 + (i == 1)) {
		assert_false(done[i].failed);
		assert_int_equal(done[i].m->pkt_len, 14 + 28 + 99);
		rte_pktmbuf_free(done[i].m);
	}
	assert_int_equal(ipsec_window_top(&rt->window), 4);
	end();
}

static void
lookaside_segments_are_sealed(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_worker *w = worker();
	struct rte_mbuf *m = cut(world_frame(pool, AF_INET, 200, 7)), *whole;
	struct ipsec_cache_decision d = {
		.rt = rt, .action = IPSEC_CACHE_PROTECT, .mtu = 1400, .session = rt->session
	};
	const struct ipsec_cache_decision *decisions[1] = { &d };
	struct packet_view view;
	struct packet_vector v = { .pkts = &m, .views = &view, .n = 1 };
	struct ipsec_cache_result r;
	uint8_t nonce[12], tag[16], *esp;

	(void)state;
	ipsec_lookaside_dev(world.ic, 0)->sgl = false;
	ipsec_cache_begin(w);
	ipsec_cache_seal(w, &v, 1, decisions, &r);
	assert_int_equal(poll(1, 1000), 1);
	assert_false(done[0].failed);
	whole = rte_pktmbuf_copy(done[0].m, pool, 0, UINT32_MAX);
	esp = rte_pktmbuf_mtod_offset(whole, uint8_t *, 34);
	memcpy(nonce, &rt->salt, 4);
	memcpy(nonce + 4, esp + 8, 8);
	rt->decrypt(rt->key, &w->gcm, esp + 16, esp + 16, whole->pkt_len - 34 - 32, nonce, esp, 8,
		tag, 16);
	assert_memory_equal(tag, esp + whole->pkt_len - 34 - 16, 16);
	assert_int_equal(esp[16], 0x45);
	rte_pktmbuf_free(whole);
	expect_sealed(0, 1, 1);
	end();
}

/* One packet never comes back: those behind it do, and the CPU goes on. */
static void
lookaside_lost_packet_fails_the_device(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_lose, 1);
	seal(rt, 4, &r);
	assert_int_equal(poll(1, IPSEC_FAILED_MS / 2), 0);
	assert_int_equal(poll(4, 2000), 4);
	assert_null(done[0].m);
	expect_failed(0, 1, IPSEC_CACHE_ESP_DEVICE);
	expect_sealed(1, 3, 2);
	seal(rt, 3, &r);
	assert_int_equal(r.done, 7);
	assert_int_equal(ipsec_load(&rt->oseq), 7);
	tick();
	expect_backend(rt, "cpu-gcm", "it failed");
	assert_int_equal(stats().fallbacks, 1);
	assert_int_equal(stats().sessions, 0);
	assert_int_equal(stats().sessions_dying, 1); /* what was lost may still come */
	end();
}

/* A device that takes nothing, with nothing in it. */
static void
lookaside_dead_device_fails(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;
	uint64_t until = rte_rdtsc() + 2 * rte_get_tsc_hz();
	unsigned int refused = 0;

	(void)state;
	fault(NIC_FAULT_op_dead, 1);
	for (;;) {
		seal(rt, 1, &r);
		if (r.done != 0)
			break;
		assert_int_equal(poll(1, 0), 1);
		expect_failed(0, 1, IPSEC_CACHE_ESP_DEVICE_FULL);
		refused++;
		assert_true(rte_rdtsc() < until);
		rte_delay_us_block(100);
	}
	assert_true(refused >= 64);
	end();
}

/* E4, and what the count is for: the SA goes when its packets have come out. */
static void
lookaside_E4_delete_with_packets_inside(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_hold, 1);
	seal(rt, 8, &r);
	delete_sa();
	tick();
	assert_int_equal(stats().sessions_dying, 1);
	assert_non_null(world.ic->sad->held);
	fault(NIC_FAULT_op_hold, 0);
	assert_int_equal(poll(8, 1000), 8);
	assert_ptr_equal(done[7].rt, rt);
	assert_int_equal(rt->spi, htonl(SPI));
	expect_sealed(0, 8, 1);
	tick();
	assert_int_equal(stats().sessions_dying, 0);
	assert_null(world.ic->sad->held);
	end();
}

/* A worker that has not reported since it was given the SA still may use it. */
static void
lookaside_E4_grace_period_behind_the_last(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_hold, 1);
	seal(rt, 1, &r);
	delete_sa();
	tick();
	rte_rcu_qsbr_thread_online(world.qsbr, 0);
	fault(NIC_FAULT_op_hold, 0);
	assert_int_equal(poll(1, 1000), 1);
	for (unsigned int i = 0; i < 5; i++) {
		rcu_reclaim(world.rcu, 0);
		ipsec_cache_tick(world.ic, 100 + i);
	}
	assert_non_null(world.ic->sad->held);
	assert_int_equal(done[0].rt->spi, htonl(SPI));
	rte_rcu_qsbr_quiescent(world.qsbr, 0);
	for (unsigned int i = 0; i < 5; i++) {
		rcu_reclaim(world.rcu, 0);
		ipsec_cache_tick(world.ic, 200 + i);
		rte_rcu_qsbr_quiescent(world.qsbr, 0);
	}
	assert_null(world.ic->sad->held);
	rte_rcu_qsbr_thread_offline(world.qsbr, 0);
	expect_sealed(0, 1, 1);
	end();
}

/* Given up, the SA goes at once, the mbufs when they come. */
static void
lookaside_late_packets_are_freed(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;
	uint64_t until;

	(void)state;
	fault(NIC_FAULT_op_hold, 1);
	seal(rt, 4, &r);
	assert_int_equal(poll(4, 2000), 4);
	assert_null(done[0].m);
	expect_failed(0, 4, IPSEC_CACHE_ESP_DEVICE);
	assert_int_equal(rte_mempool_avail_count(pool), MBUFS - 4);
	delete_sa();
	tick();
	assert_null(world.ic->sad->held);
	assert_int_equal(stats().sessions_dying, 1);
	assert_true(ipsec_cache_busy(worker()));
	fault(NIC_FAULT_op_hold, 0);
	for (until = rte_rdtsc() + rte_get_tsc_hz();
		ipsec_cache_busy(worker()) && rte_rdtsc() < until;)
		assert_int_equal(poll(1, 0), 0);
	assert_true(test_pool_full(pool));
	tick();
	assert_int_equal(stats().sessions_dying, 0);
	end();
}

/* Forwarding begins anew with packets inside: nobody's window is written to by two. */
static void
lookaside_rehome_gives_up(void **state)
{
	struct ipsec_cache_rt *rt = begin("none", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	fault(NIC_FAULT_op_hold, 1);
	seal(rt, 4, &r);
	ipsec_cache_rehome(world.ic);
	assert_int_equal(errors(IPSEC_CACHE_ESP_DEVICE), 4);
	assert_int_equal(poll(1, 0), 0);
	end();
}

/* --- lookaside protocol --- */

static void
lookaside_protocol_numbers_have_no_holes(void **state)
{
	struct ipsec_cache_rt *rt = begin("protocol", SAD_DIR_OUT);
	struct ipsec_cache_result r;

	(void)state;
	expect_backend(rt, "lookaside-protocol crypto_aesni_gcm", "");
	fault(NIC_FAULT_op_full, 2 + 1);
	seal(rt, 8, &r);
	assert_int_equal(poll(8, 1000), 8);
	expect_sealed(0, 2, 1);
	expect_failed(2, 6, IPSEC_CACHE_ESP_DEVICE_FULL);
	assert_int_equal(ipsec_load(&rt->oseq), 2);
	fault(NIC_FAULT_op_full, 0);
	seal(rt, 3, &r);
	assert_int_equal(r.pending, 7);
	assert_int_equal(poll(3, 1000), 3);
	expect_sealed(0, 3, 3);
	assert_int_equal(ipsec_load(&rt->oseq), 5);
	end();
}

/* The CPU gave out a number behind one that the device then did not take: none comes twice. */
static void
lookaside_D12_refused_number_is_not_the_cpus(void **state)
{
	struct ipsec_cache_rt *rt = begin("protocol", SAD_DIR_OUT);
	struct ipsec_job job = { .rt = rt, .m = world_frame(pool, AF_INET, 50, 7) };

	(void)state;
	rte_pktmbuf_adj(job.m, 14);
	ipsec_cache_begin(worker());
	assert_true(ipsec_lookaside_whole(worker(), &job, rt->session, true));
	ipsec_store(&rt->session->reached, 1);
	ipsec_store(&rt->oseq, 2);
	fault(NIC_FAULT_op_full, 0 + 1);
	ipsec_lookaside_flush(worker());
	assert_int_equal(poll(1, 1000), 1);
	expect_failed(0, 1, IPSEC_CACHE_ESP_DEVICE_FULL);
	assert_int_equal(ipsec_load(&rt->oseq), 2);
	end();
}

static struct rte_crypto_op *lies[PACKET_VECTOR_MAX];
static uint16_t n_lies;

static uint16_t
lie_enqueue(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	(void)qp;
	for (uint16_t i = 0; i < n; i++) {
		ops[i]->status = RTE_CRYPTO_OP_STATUS_SUCCESS;
		lies[n_lies++] = ops[i];
	}
	return n;
}

static uint16_t
lie_dequeue(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	uint16_t given = RTE_MIN(n, n_lies);

	(void)qp;
	memcpy(ops, lies, given * sizeof(*ops));
	/* the first of them again, and once more: nobody's */
	if (given > 0 && given + 2 <= n) {
		ops[given++] = lies[0];
		ops[given++] = lies[0];
	}
	n_lies = 0;
	return given;
}

/* D25: what it says that it protected, and did not, does not leave; nor does a packet twice. */
static void
lookaside_D25_a_lie_is_no_plaintext(void **state)
{
	static const char *const presets[] = { "protocol", "none" }; /* of its rte_security */
	struct ipsec_cache_result r;
	struct ipsec_cache_rt *rt;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(presets); i++) {
		rt = begin(presets[i], SAD_DIR_OUT);
		rte_crypto_fp_ops[dev].enqueue_burst = lie_enqueue;
		rte_crypto_fp_ops[dev].dequeue_burst = lie_dequeue;
		seal(rt, 4, &r);
		assert_int_equal(poll(4, 1000), 4);
		expect_failed(0, 4, IPSEC_CACHE_ESP_DEVICE);
		assert_int_equal(poll(1, 0), 0);
		assert_false(ipsec_cache_busy(worker()));
		end();
	}
}

/* What a device cannot do is said with its name, and the CPU does it. */
static void
lookaside_lack_is_named(void **state)
{
	struct ipsec_cache_sa_spec spec = world_spec(SRC, DST, SPI + 1);
	struct ipsec_cache_rt *rt;

	(void)state;
	begin("none", SAD_DIR_OUT);
	world_null(&spec);
	spec.dir = SAD_DIR_OUT;
	spec.replay_window = 0;
	rt = world_sa(&world, &spec);
	expect_backend(rt, "cpu-null", ": its driver does not have that algorithm");
	assert_int_equal(stats().fallbacks, 1);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookaside_order_is_submission_order),
		cmocka_unit_test(lookaside_idle_queues_drain),
		cmocka_unit_test(lookaside_full_device_is_a_drop_by_name),
		cmocka_unit_test(lookaside_lane_is_bounded),
		cmocka_unit_test(lookaside_errors_have_names),
		cmocka_unit_test(lookaside_D7_second_look_at_the_window),
		cmocka_unit_test(lookaside_segments_wait_their_turn),
		cmocka_unit_test(lookaside_segments_are_sealed),
		cmocka_unit_test(lookaside_lost_packet_fails_the_device),
		cmocka_unit_test(lookaside_dead_device_fails),
		cmocka_unit_test(lookaside_E4_delete_with_packets_inside),
		cmocka_unit_test(lookaside_E4_grace_period_behind_the_last),
		cmocka_unit_test(lookaside_late_packets_are_freed),
		cmocka_unit_test(lookaside_rehome_gives_up),
		cmocka_unit_test(lookaside_protocol_numbers_have_no_holes),
		cmocka_unit_test(lookaside_D12_refused_number_is_not_the_cpus),
		cmocka_unit_test(lookaside_D25_a_lie_is_no_plaintext),
		cmocka_unit_test(lookaside_lack_is_named),
	};

	test_eal_init("lookaside", "0");
	pool = test_pool("lookaside", MBUFS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
