/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef SCHED_NOLOCK_SCHED_NOLOCK_H
#define SCHED_NOLOCK_SCHED_NOLOCK_H

/*
 * A FIFO scheduler for one Tx queue, with strict-priority bands and no lock: any worker may send
 * through it. When it is empty and nobody drains, a burst goes straight to the driver (bypass);
 * else packets wait in a lane of their worker and band, and exactly one worker, the owner, drains.
 * Nobody ever waits for the owner. Linux behaviour: net/sched/sch_generic.c, pfifo_fast,
 * TCQ_F_NOLOCK and TCQ_F_CAN_BYPASS, with the repairs that followed. PROOF.md argues why it is
 * right; doc/sched_nolock.md shows what it costs, and a program around it.
 *
 * Who calls what. Workers, each with a number of its own, call enqueue and drain; nothing else.
 * One control thread calls all that changes something. One worker at least must call drain in
 * every loop: packets that an owner left behind (its budget spent, the driver full, or lazily
 * among busy producers) leave when it does. Workers report quiescence to the rte_rcu_qsbr under
 * conf.rcu between calls.
 *
 * Order. One worker's packets of one band leave in the order it sent them, always. Between bands
 * priority is strict. Between workers of a band there is no order; on a driver that is too slow
 * for all, each gets the same share.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rcu/rcu.h"

struct rte_mbuf;
struct sched_nolock;

#define SCHED_NOLOCK_BANDS_MAX 16
#define SCHED_NOLOCK_WORKERS_MAX 256
#define SCHED_NOLOCK_PRIO_MAX 16 /* priority & 15 selects the priomap's entry (TC_PRIO_MAX + 1) */
#define SCHED_NOLOCK_LIMIT_DEFAULT 1000
#define SCHED_NOLOCK_BUDGET_DEFAULT 128

/*
 * Gives pkts[0..n) to the driver. Returns how many it took from the front; the others stay the
 * caller's. rte_eth_tx_burst()'s contract. Only one worker at a time calls it.
 */
typedef uint16_t (*sched_nolock_tx_fn)(void *arg, struct rte_mbuf **pkts, uint16_t n);
/*
 * Takes over packets that a reset or flush found, to be counted and freed: the control thread, or a
 * worker that raced with deactivate(). Nobody is kept waiting meanwhile.
 */
typedef void (*sched_nolock_drop_fn)(void *arg, struct rte_mbuf **pkts, uint16_t n);

struct sched_nolock_conf {
	unsigned int n_workers; /* callers are 0 .. n_workers - 1 */
	unsigned int bands; /* 1 .. SCHED_NOLOCK_BANDS_MAX; band 0 first */
	uint8_t priomap[SCHED_NOLOCK_PRIO_MAX]; /* priority & 15 -> band, each < bands */
	/*
	 * Packets a band may hold; 0: no limit of its own (rule B9). A worker may fill a band that
	 * others do not use, and always has limit / n_workers, so that together they may hold up to
	 * twice the limit for a while.
	 */
	uint32_t limit;
	unsigned int budget; /* packets an owner drains before it gives way; 0: the default */
	int priority_offset; /* of a uint32_t priority in the mbuf; -1: all are 0 */
	/*
	 * Of a uint16_t band + 1 that overrides it, 0 none; -1: no such field. Bursts are looked at
	 * fastest where it stands 4 to 6 bytes behind the priority.
	 */
	int class_offset;
	int socket; /* NUMA socket of the memory */
	bool bypass; /* false: every packet is queued first (for comparison) */
	sched_nolock_tx_fn tx;
	void *tx_arg;
	sched_nolock_drop_fn drop;
	void *drop_arg;
	struct rcu *rcu; /* frees replaced bands; NULL: bands cannot change, no exclusive form */
};

/* Sums over workers. At rest enqueued = bypassed + dequeued + dropped + queued + held (rule B7). */
struct sched_nolock_stats {
	uint64_t enqueued, enqueued_bytes; /* packets offered that were taken or dropped */
	uint64_t bypassed, bypassed_bytes; /* sent without having been queued */
	uint64_t dequeued, dequeued_bytes; /* sent after having been queued */
	uint64_t dropped, dropped_bytes; /* band full, flushed, or deactivated */
	uint64_t overlimits; /* times a band was full */
	uint64_t requeues; /* packets the driver refused: held, sent first next time */
	uint64_t queued, queued_bytes; /* in the bands now */
	uint64_t held, held_bytes; /* taken from a band, refused by the driver */
};

/* pfifo_fast: three bands, Linux's priomap, default limit and budget, bypass; else zero or -1. */
void sched_nolock_conf_pfifo_fast(struct sched_nolock_conf *conf);

/*
 * Makes an active scheduler. NULL and rte_errno: EINVAL (bands, priomap, n_workers, tx or drop
 * missing), ENOMEM. Control thread.
 */
struct sched_nolock *sched_nolock_create(const struct sched_nolock_conf *conf);

/* Drops what is queued and held, and frees. No worker may be inside or come in any more. */
void sched_nolock_destroy(struct sched_nolock *sched);

/*
 * Sends or queues a burst. Returns how many were taken; the others, moved to pkts[ret..n), are the
 * caller's to count as dropped by a full band and free (they already stand in stats.dropped).
 * Any worker, at any time; never waits for another.
 */
uint16_t sched_nolock_enqueue(
	struct sched_nolock *sched, unsigned int worker, struct rte_mbuf **pkts, uint16_t n);

/*
 * Drains up to the budget if there is anything and nobody else does. The worker that serves the
 * queue calls it every loop: one load when there is nothing to do. Among busy producers it stands
 * back in a loop in which its worker has itself posted, so that packets leave in batches; with the
 * first loop of silence it sends. Returns packets the driver took: 0 does not say empty.
 */
unsigned int sched_nolock_drain(struct sched_nolock *sched, unsigned int worker);

/* True if no packet is queued or held. Any thread; exact only when nobody sends. */
bool sched_nolock_empty(const struct sched_nolock *sched);

/* Hands everything queued and held to conf.drop. Control thread, under traffic. */
void sched_nolock_flush(struct sched_nolock *sched);

/*
 * While deactivated every packet offered is dropped (counted) and nothing is sent: port stop.
 * Returns once no worker is inside the driver on its behalf. Control thread; workers must be
 * running or stopped, not blocked. What was queued is handed to conf.drop.
 */
void sched_nolock_deactivate(struct sched_nolock *sched);
void sched_nolock_activate(struct sched_nolock *sched);

/*
 * Changes bands, priomap and limit under traffic; packets already queued keep their order within
 * their band as far as the new bands hold them. 0, -EINVAL or -ENOMEM (nothing changed). Control
 * thread.
 */
int sched_nolock_change(struct sched_nolock *sched, unsigned int bands,
	const uint8_t priomap[SCHED_NOLOCK_PRIO_MAX], uint32_t limit);

/*
 * Lets one worker (-1: none) keep the ownership between its calls, for a queue that it alone
 * sends to: no atomic read-modify-write is left on its way. Another worker may still send; its
 * packets leave when the exclusive worker next calls enqueue or drain. -EINVAL: no such worker,
 * or conf.rcu is NULL. Control thread, under traffic; waits for the former worker to come by, at
 * most a grace period.
 */
int sched_nolock_set_exclusive(struct sched_nolock *sched, int worker);
/* That worker, or -1. Any thread. */
int sched_nolock_exclusive(const struct sched_nolock *sched);

/*
 * Notes what is queued and held now; passed() says whether all of that has been given to the driver
 * or dropped since, whatever came after it. One mark at a time: the next takes its place. What a
 * worker sent before it last reported quiescence, and nobody waited for, counts as "now". Control
 * thread, under traffic; both wait for whoever is sending, as set_exclusive() does.
 */
void sched_nolock_mark(struct sched_nolock *sched);
bool sched_nolock_passed(struct sched_nolock *sched);

/* The current bands, priomap and limit. Control thread. */
const struct sched_nolock_conf *sched_nolock_conf(const struct sched_nolock *sched);

void sched_nolock_stats(const struct sched_nolock *sched, struct sched_nolock_stats *stats);
/* Resets what stats shows from now on; counters never run backwards inside. Control thread. */
void sched_nolock_stats_clear(struct sched_nolock *sched);

#endif /* SCHED_NOLOCK_SCHED_NOLOCK_H */
