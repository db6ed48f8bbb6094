/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* A cryptodev that does the whole protocol, and one whose operations do not come back as they
 * should.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <rte_cryptodev.h>
#include <rte_dev.h>

#include "world.h"

#define OPS 8u
#define TEXT 300u

static uint8_t key[20] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 };
static uint8_t dev;
static struct rte_mempool *ops, *sessions;
static void *sealer, *opener;

static void *
session(bool out)
{
	struct world_conf w;

	world_conf_init(&w, RTE_SECURITY_ACTION_TYPE_LOOKASIDE_PROTOCOL, out, 0x777, key, 16, 16);
	world_conf_ends(&w, "2001:db8::1", "2001:db8::2");
	w.conf.ipsec.replay_win_sz = out ? 0 : 64;
	return rte_security_session_create(rte_cryptodev_get_sec_ctx(dev), &w.conf, sessions);
}

static int
open_dev(void **state)
{
	struct rte_cryptodev_config conf = { .nb_queue_pairs = 1 };
	struct rte_cryptodev_qp_conf qp = { .nb_descriptors = 64 };
	struct rte_cryptodev_info info;

	(void)state;
	if (rte_eal_hotplug_add("vdev", "crypto_null0", "") != 0)
		world_fail("crypto_null", rte_errno);
	dev = (uint8_t)rte_cryptodev_get_dev_id("crypto_null0");
	rte_cryptodev_info_get(dev, &info);
	assert_int_equal(info.feature_flags & RTE_CRYPTODEV_FF_SECURITY, 0);
	assert_int_equal(nic_crypto_attach(dev, "protocol"), 0);
	assert_int_equal(nic_crypto_attach(dev, "protocol"), -EEXIST);
	rte_cryptodev_info_get(dev, &info);
	assert_int_not_equal(info.feature_flags & RTE_CRYPTODEV_FF_SECURITY, 0);
	world_pool = test_pool("world", 63);
	ops = rte_crypto_op_pool_create(
		"ops", RTE_CRYPTO_OP_TYPE_SYMMETRIC, 63, 0, 0, SOCKET_ID_ANY);
	sessions = rte_mempool_create("sessions", 63,
		128 + rte_security_session_get_size(rte_cryptodev_get_sec_ctx(dev)), 0, 0, NULL,
		NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	assert_int_equal(rte_cryptodev_configure(dev, &conf), 0);
	assert_int_equal(rte_cryptodev_queue_pair_setup(dev, 0, &qp, 0), 0);
	assert_int_equal(rte_cryptodev_start(dev), 0);
	return 0;
}

static int
open_sessions(void **state)
{
	(void)state;
	assert_non_null(sealer = session(true));
	assert_non_null(opener = session(false));
	return 0;
}

static int
close_sessions(void **state)
{
	void *ctx = rte_cryptodev_get_sec_ctx(dev);

	(void)state;
	assert_int_equal(rte_security_session_destroy(ctx, sealer), 0);
	assert_int_equal(rte_security_session_destroy(ctx, opener), 0);
	assert_true(test_pool_full(world_pool));
	assert_true(test_pool_full(ops));
	assert_true(test_pool_full(sessions));
	return 0;
}

/* An inner packet, no Ethernet; the byte behind its header says which it is. */
static struct rte_mbuf *
packet(uint8_t which, uint32_t cut)
{
	uint8_t p[TEXT] = { 0x45, 0, TEXT >> 8, TEXT & 255, 0, 1, 0, 0, 64, 17, 0, 0, 198, 51, 100,
		1, 203, 0, 113, 1, which };

	return test_frame(world_pool, p, sizeof(p), cut);
}

static struct rte_crypto_op *
op_of(struct rte_mbuf *m, void *s)
{
	struct rte_crypto_op *op = rte_crypto_op_alloc(ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC);

	assert_non_null(op);
	op->sym->m_src = m;
	rte_security_attach_session(op, s);
	return op;
}

static uint8_t
which(const struct rte_crypto_op *op)
{
	return *rte_pktmbuf_mtod_offset(op->sym->m_src, uint8_t *, 20);
}

static void
free_op(struct rte_crypto_op *op)
{
	rte_pktmbuf_free(op->sym->m_src);
	rte_crypto_op_free(op);
}

/* Through the device, alone. */
static enum rte_crypto_op_status
through(struct rte_crypto_op *op)
{
	struct rte_crypto_op *done;

	assert_int_equal(rte_cryptodev_enqueue_burst(dev, 0, &op, 1), 1);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, &done, 1), 1);
	assert_ptr_equal(done, op);
	return op->status;
}

static void
seals_and_opens(void **state)
{
	(void)state;
	for (uint32_t cut = 0; cut < 200; cut += 99) {
		struct rte_mbuf *want = packet(7, 0);
		struct rte_crypto_op *op = op_of(packet(7, cut), sealer);
		const uint8_t *ip;

		assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_SUCCESS);
		ip = rte_pktmbuf_mtod(op->sym->m_src, const uint8_t *);
		assert_int_equal(ip[0] >> 4, 6);
		assert_int_equal(ip[6], IPPROTO_ESP);
		assert_int_equal(
			op->sym->m_src->pkt_len, 40 + 16 + TEXT + 4 - (TEXT + 2) % 4 + 2 + 16);
		rte_security_attach_session(op, opener);
		assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_SUCCESS);
		assert_int_equal(op->sym->m_src->pkt_len, TEXT);
		assert_memory_equal(rte_pktmbuf_read(op->sym->m_src, 0, TEXT, (uint8_t[TEXT]){ 0 }),
			rte_pktmbuf_mtod(want, void *), TEXT);
		rte_pktmbuf_free(want);
		free_op(op);
	}
}

static void
refuses(void **state)
{
	struct rte_crypto_op *op = op_of(packet(1, 0), sealer), *again;
	struct rte_mbuf *copy;
	void *gone;

	(void)state;
	through(op);
	copy = rte_pktmbuf_copy(op->sym->m_src, world_pool, 0, UINT32_MAX);
	*rte_pktmbuf_mtod_offset(copy, uint8_t *, 60) ^= 1;
	again = op_of(copy, opener);
	assert_int_equal(through(again), RTE_CRYPTO_OP_STATUS_AUTH_FAILED);
	free_op(again);
	copy = rte_pktmbuf_copy(op->sym->m_src, world_pool, 0, UINT32_MAX);
	rte_security_attach_session(op, opener);
	assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_SUCCESS);
	again = op_of(copy, opener); /* a replay */
	assert_int_equal(through(again), RTE_CRYPTO_OP_STATUS_ERROR);
	free_op(again);
	/* no room in front */
	rte_security_attach_session(op, sealer);
	rte_pktmbuf_prepend(op->sym->m_src, rte_pktmbuf_headroom(op->sym->m_src));
	assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_ERROR);
	free_op(op);
	assert_non_null(gone = session(true));
	op = op_of(packet(1, 0), gone);
	rte_security_session_destroy(rte_cryptodev_get_sec_ctx(dev), gone);
	assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_INVALID_SESSION);
	free_op(op);
}

/* So many at once; what the device takes of them. */
static unsigned int
send_some(struct rte_crypto_op **some)
{
	for (uint8_t i = 0; i < OPS; i++)
		some[i] = op_of(packet(i, 0), sealer);
	return rte_cryptodev_enqueue_burst(dev, 0, some, OPS);
}

static void
full(void **state)
{
	struct rte_crypto_op *some[OPS], *done[OPS];

	(void)state;
	nic_crypto_fault(dev, NIC_FAULT_op_full, 3 + 1);
	assert_int_equal(send_some(some), 3);
	nic_crypto_fault(dev, NIC_FAULT_op_full, 0 + 1);
	assert_int_equal(rte_cryptodev_enqueue_burst(dev, 0, some + 3, 5), 0);
	nic_crypto_fault(dev, NIC_FAULT_op_full, 0);
	assert_int_equal(rte_cryptodev_enqueue_burst(dev, 0, some + 3, 5), 5);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), OPS);
	for (unsigned int i = 0; i < OPS; i++) {
		assert_ptr_equal(done[i], some[i]);
		free_op(done[i]);
	}
}

static void
late_and_out_of_order(void **state)
{
	struct rte_crypto_op *some[OPS], *done[OPS];
	struct nic_stats before, after;
	void *extra;

	(void)state;
	nic_crypto_fault(dev, NIC_FAULT_op_hold, 1);
	assert_int_equal(send_some(some), OPS);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), 0);
	nic_crypto_fault(dev, NIC_FAULT_op_hold, 0);
	nic_crypto_fault(dev, NIC_FAULT_op_reorder, 1);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), OPS);
	nic_crypto_fault(dev, NIC_FAULT_op_reorder, 0);
	for (unsigned int i = 0; i < OPS; i++) {
		assert_ptr_equal(done[i], some[OPS - 1 - i]);
		assert_int_equal(done[i]->status, RTE_CRYPTO_OP_STATUS_SUCCESS);
		free_op(done[i]);
	}
	/* a session with an operation inside */
	nic_crypto_stats(dev, &before);
	assert_non_null(extra = session(true));
	some[0] = op_of(packet(1, 0), extra);
	assert_int_equal(rte_cryptodev_enqueue_burst(dev, 0, some, 1), 1);
	rte_security_session_destroy(rte_cryptodev_get_sec_ctx(dev), extra);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), 1);
	nic_crypto_stats(dev, &after);
	assert_int_equal(after.destroyed_in_use - before.destroyed_in_use, 1);
	free_op(some[0]);
}

static void
lost_and_failed(void **state)
{
	struct rte_crypto_op *some[OPS], *done[OPS], *lost;

	(void)state;
	nic_crypto_fault(dev, NIC_FAULT_op_lose, 2);
	assert_int_equal(send_some(some), OPS);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), OPS - 2);
	for (unsigned int i = 0; i < OPS - 2; i++)
		free_op(done[i]);
	while ((lost = nic_crypto_lost(dev)) != NULL) {
		assert_true(lost == some[0] || lost == some[1]);
		free_op(lost);
	}
	nic_crypto_fault(dev, NIC_FAULT_op_error, 1);
	nic_crypto_fault(dev, NIC_FAULT_op_auth, 1);
	assert_int_equal(send_some(some), OPS);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), OPS);
	for (unsigned int i = 0; i < OPS; i++) {
		assert_int_equal(done[i]->status,
			i == 0           ? RTE_CRYPTO_OP_STATUS_ERROR
				: i == 1 ? RTE_CRYPTO_OP_STATUS_AUTH_FAILED
					 : RTE_CRYPTO_OP_STATUS_SUCCESS);
		assert_int_equal(done[i]->sym->m_src->pkt_len == TEXT, i < 2);
		free_op(done[i]);
	}
}

static void
dead(void **state)
{
	struct rte_crypto_op *some[OPS], *done[OPS];

	(void)state;
	assert_int_equal(send_some(some), OPS);
	nic_crypto_fault(dev, NIC_FAULT_op_dead, 1);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), 0);
	assert_int_equal(rte_cryptodev_enqueue_burst(dev, 0, some, 1), 0);
	nic_crypto_fault(dev, NIC_FAULT_op_dead, 0);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, OPS), OPS);
	for (unsigned int i = 0; i < OPS; i++)
		free_op(done[i]);
}

/* Operations of the driver's own go through, in order with the others, and fail on demand too. */
static void
the_drivers_own(void **state)
{
	struct rte_crypto_sym_xform xform = { .type = RTE_CRYPTO_SYM_XFORM_CIPHER };
	struct rte_crypto_op *op, *done[2];
	struct rte_mempool *pool;
	void *s;

	(void)state;
	xform.cipher.algo = RTE_CRYPTO_CIPHER_NULL;
	xform.cipher.op = RTE_CRYPTO_CIPHER_OP_ENCRYPT;
	pool = rte_cryptodev_sym_session_pool_create(
		"sym", 7, rte_cryptodev_sym_get_private_session_size(dev), 0, 0, SOCKET_ID_ANY);
	assert_non_null(pool);
	assert_non_null(s = rte_cryptodev_sym_session_create(dev, &xform, pool));
	op = rte_crypto_op_alloc(ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
	op->sym->m_src = packet(5, 0);
	rte_crypto_op_attach_sym_session(op, s);
	op->sym->cipher.data.length = TEXT;
	assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_SUCCESS);
	assert_int_equal(which(op), 5);
	nic_crypto_fault(dev, NIC_FAULT_op_error, 1);
	assert_int_equal(through(op), RTE_CRYPTO_OP_STATUS_ERROR);
	nic_crypto_fault(dev, NIC_FAULT_op_hold, 1);
	assert_int_equal(rte_cryptodev_enqueue_burst(dev, 0, &op, 1), 1);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, 2), 0);
	nic_crypto_fault(dev, NIC_FAULT_op_hold, 0);
	assert_int_equal(rte_cryptodev_dequeue_burst(dev, 0, done, 2), 1);
	free_op(op);
	rte_cryptodev_sym_session_free(dev, s);
	rte_mempool_free(pool);
}

/* What the counters say of all that. */
static int
close_dev(void **state)
{
	struct nic_stats stats;

	(void)state;
	rte_cryptodev_stop(dev);
	assert_int_equal(rte_cryptodev_close(dev), 0);
	assert_int_equal(nic_crypto_stats(dev, &stats), 0);
	assert_int_equal(stats.crypto_in, stats.crypto_out + stats.crypto_lost);
	assert_int_equal(stats.crypto_lost, 2);
	/* the two that were meant to be: what came back holds no session */
	assert_int_equal(stats.destroyed_in_use, 2);
	nic_crypto_detach(dev);
	assert_int_equal(nic_crypto_stats(dev, &stats), -ENODEV);
	return 0;
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_sessions, close_sessions)
	const struct CMUnitTest tests[] = {
		CASE(seals_and_opens),
		CASE(refuses),
		CASE(full),
		CASE(late_and_out_of_order),
		CASE(lost_and_failed),
		CASE(dead),
		CASE(the_drivers_own),
	};

	test_eal_init("nic_crypto", "0");
	return cmocka_run_group_tests(tests, open_dev, close_dev);
}
