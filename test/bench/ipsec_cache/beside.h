/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef BENCH_BESIDE_H
#define BENCH_BESIDE_H

/* A crypto device by itself, as dpdk-test-crypto-perf uses it: operations filled, put in, taken
 * out. */

#include "crypto.h"
#include "ipsec_cache/lookaside.h"

#define BESIDE_NAME "crypto_aesni_gcm0"

struct beside {
	bool on;
	uint8_t dev;
	struct rte_mempool *pool; /* of its operations */
};

/* False: no such driver here. */
static inline bool
beside_open(struct beside *b)
{
	if (b->pool != NULL)
		return true;
	if (!test_crypto_make(BESIDE_NAME, &b->dev) || !test_crypto_start(b->dev, 1))
		return false;
	b->pool = rte_crypto_op_pool_create("beside", RTE_CRYPTO_OP_TYPE_SYMMETRIC, 511, 128,
		sizeof(struct ipsec_slot), SOCKET_ID_ANY);
	return b->pool != NULL;
}

/* To a new instance, which had been stopped for the last one. */
static inline bool
beside_add(const struct beside *b, struct ipsec_cache *ic)
{
	struct ipsec_cache_crypto crypto = {
		.dev_id = b->dev, .n_queue_pairs = 1, .name = BESIDE_NAME
	};

	return rte_cryptodev_start(b->dev) == 0 && ipsec_cache_crypto_add(ic, &crypto) == 0;
}

static inline void
beside_fill(struct rte_crypto_op *op, struct rte_mbuf *m, void *session, uint16_t off, uint32_t len)
{
	struct ipsec_slot *slot = ipsec_slot_of(op);
	struct rte_crypto_sym_op *sym = op->sym;
	uint8_t *text = rte_pktmbuf_mtod_offset(m, uint8_t *, off);

	m->data_len = (uint16_t)(m->pkt_len = off + len + IPSEC_ICV_MAX);
	rte_crypto_op_attach_sym_session(op, session);
	memcpy(slot->iv, text - 8, 12);
	memcpy(slot->aad, text - 16, 8);
	sym->m_src = m;
	sym->m_dst = NULL;
	sym->aead.data.offset = off;
	sym->aead.data.length = len;
	sym->aead.aad.data = slot->aad;
	sym->aead.aad.phys_addr = rte_crypto_op_ctophys_offset(
		op, IPSEC_SLOT_OFFSET + offsetof(struct ipsec_slot, aad));
	sym->aead.digest.data = text + len;
	sym->aead.digest.phys_addr = rte_pktmbuf_iova_offset(m, off + len);
}

/* Texts of `len` bytes at `off` in n packets, until all have come back, right or not. */
static inline bool
beside_do(const struct beside *b, struct rte_mbuf **pkts, uint16_t n, void *session, uint16_t off,
	uint32_t len)
{
	struct rte_crypto_op *ops[PACKET_VECTOR_MAX];
	uint16_t i, got = 0;

	if (rte_crypto_op_bulk_alloc(b->pool, RTE_CRYPTO_OP_TYPE_SYMMETRIC, ops, n) != n)
		return false;
	for (i = 0; i < n; i++)
		beside_fill(ops[i], pkts[i], session, off, len);
	if (rte_cryptodev_enqueue_burst(b->dev, 0, ops, n) != n)
		return false;
	while (got < n)
		got += rte_cryptodev_dequeue_burst(b->dev, 0, ops + got, n - got);
	rte_mempool_put_bulk(b->pool, (void **)ops, n);
	return true;
}

#endif /* BENCH_BESIDE_H */
