/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef BENCH_SCHED_NOLOCK_PEERS_H
#define BENCH_SCHED_NOLOCK_PEERS_H

/* What the scheduler is measured against: the same work done with locks. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#define PEER_FIFO 1024
#define PEER_BATCH 64

/* (a) One FIFO under one spinlock, the driver call inside. */
struct peer_spin {
	rte_spinlock_t lock;
	uint32_t head, tail;
	struct rte_mbuf *pkts[PEER_FIFO];
};

/* (b) rte_ring and a trylock around dequeue and driver call, no bypass. */
struct peer_ring {
	struct rte_ring *ring;
	rte_spinlock_t lock;
};

/* (c) A lock for enqueuers before the lock of the queue, as Linux had from 2010. */
struct peer_busy {
	rte_spinlock_t busy;
	_Atomic bool running;
	struct peer_spin q;
};

static inline unsigned int
fifo_put(struct peer_spin *q, struct rte_mbuf **pkts, unsigned int n)
{
	unsigned int i, room = PEER_FIFO - (q->tail - q->head);

	n = n < room ? n : room;
	for (i = 0; i < n; i++)
		q->pkts[q->tail++ % PEER_FIFO] = pkts[i];
	return n;
}

static inline unsigned int
fifo_get(struct peer_spin *q, struct rte_mbuf **pkts, unsigned int n)
{
	unsigned int i, have = q->tail - q->head;

	n = n < have ? n : have;
	for (i = 0; i < n; i++)
		pkts[i] = q->pkts[q->head++ % PEER_FIFO];
	return n;
}

static inline void
send_all(uint16_t port, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = rte_eth_tx_burst(port, 0, pkts, n);

	if (sent < n)
		rte_pktmbuf_free_bulk(pkts + sent, n - sent);
}

static inline uint16_t
peer_spin_enqueue(struct peer_spin *q, uint16_t port, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *batch[PEER_BATCH];
	unsigned int put, got;

	rte_spinlock_lock(&q->lock);
	put = fifo_put(q, pkts, n);
	got = fifo_get(q, batch, PEER_BATCH);
	send_all(port, batch, (uint16_t)got);
	rte_spinlock_unlock(&q->lock);
	return (uint16_t)put;
}

static inline uint16_t
peer_ring_enqueue(struct peer_ring *q, uint16_t port, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *batch[PEER_BATCH];
	unsigned int put = rte_ring_mp_enqueue_burst(q->ring, (void **)pkts, n, NULL), got;

	/* Looks again after letting go, or a packet could be stuck. */
	while (!rte_ring_empty(q->ring) && rte_spinlock_trylock(&q->lock) != 0) {
		got = rte_ring_sc_dequeue_burst(q->ring, (void **)batch, PEER_BATCH, NULL);
		send_all(port, batch, (uint16_t)got);
		rte_spinlock_unlock(&q->lock);
		atomic_thread_fence(memory_order_seq_cst);
	}
	return (uint16_t)put;
}

static inline uint16_t
peer_busy_enqueue(struct peer_busy *q, uint16_t port, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *batch[PEER_BATCH];
	bool contended = atomic_load_explicit(&q->running, memory_order_relaxed);
	unsigned int put, got, quota = PEER_BATCH;

	if (contended)
		rte_spinlock_lock(&q->busy);
	rte_spinlock_lock(&q->q.lock);
	put = fifo_put(&q->q, pkts, n);
	if (atomic_load_explicit(&q->running, memory_order_relaxed)) {
		rte_spinlock_unlock(&q->q.lock);
		if (contended)
			rte_spinlock_unlock(&q->busy);
		return (uint16_t)put;
	}
	atomic_store_explicit(&q->running, true, memory_order_relaxed);
	if (contended)
		rte_spinlock_unlock(&q->busy);
	while (quota > 0 && (got = fifo_get(&q->q, batch, quota)) > 0) {
		rte_spinlock_unlock(&q->q.lock);
		send_all(port, batch, (uint16_t)got);
		quota -= got;
		rte_spinlock_lock(&q->q.lock);
	}
	atomic_store_explicit(&q->running, false, memory_order_relaxed);
	rte_spinlock_unlock(&q->q.lock);
	return (uint16_t)put;
}

#endif /* BENCH_SCHED_NOLOCK_PEERS_H */
