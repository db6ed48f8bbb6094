/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef SCHED_NOLOCK_BANDS_H
#define SCHED_NOLOCK_BANDS_H

/*
 * Where packets wait: a lane for each worker and band. A lane has one producer, its worker, and
 * one consumer, the owner, so that posting needs no read-modify-write and a producer preempted
 * half way keeps nobody else's packet back (rule B12). The lanes of a band together are the band.
 *
 * A lane is a ring, and grows by a larger one linked behind it when the limit allows more than it
 * holds. Positions count on for ever; a segment knows the position at which the next one begins.
 *
 * A set of lanes is fixed in bands and priomap. Changing these puts a new set behind the old one:
 * the owner empties the older first, and it is freed once no worker can still post into it.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"

#define BATCH_MAX 64 /* packets in one driver call after a backlog */
#define SEGMENT_FIRST 1024
#define SEGMENT_FIRST_MAX 4096

/* Packets out of the lanes, with the lengths noted when they were posted. */
struct batch {
	struct rte_mbuf *pkts[BATCH_MAX];
	uint32_t lens[BATCH_MAX];
	unsigned int n;
	bool left; /* others' packets were seen and left for them */
	bool again; /* packets were left because an older set must be emptied before them */
};

struct segment {
	uint32_t start; /* the position of its first packet */
	uint32_t mask;
	uint32_t end; /* where `next` begins; valid once next is seen */
	_Atomic(struct segment *) next;
	struct segment *spent; /* owner: links those left behind, freed with the set */
	uint32_t *lens;
	struct rte_mbuf *pkts[];
};

/* One worker's lanes of one set. */
struct sender {
	/* The worker writes, the owner reads. gen grows with every post, after the tails. */
	alignas(RTE_CACHE_LINE_SIZE) _Atomic uint64_t gen;
	_Atomic uint32_t tail[SCHED_NOLOCK_BANDS_MAX];
	/* The worker's alone. */
	alignas(RTE_CACHE_LINE_SIZE) uint32_t head_seen[SCHED_NOLOCK_BANDS_MAX];
	struct segment *into[SCHED_NOLOCK_BANDS_MAX];
	/* The owner writes; the worker reads it when a lane looks full. */
	alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t head[SCHED_NOLOCK_BANDS_MAX];
	struct segment *from[SCHED_NOLOCK_BANDS_MAX];
	/* The control thread's: the tails at its last mark. */
	alignas(RTE_CACHE_LINE_SIZE) uint32_t marked[SCHED_NOLOCK_BANDS_MAX];
};

/* What the owner knows of one worker's lanes. */
struct look {
	uint64_t seen; /* the gen at which they were last found empty */
	uint64_t gen; /* of this look */
	uint64_t served; /* packets taken from them */
};

struct bands {
	/* Fixed, but for the limit and the links. */
	unsigned int n;
	unsigned int n_workers;
	int socket;
	uint8_t priomap[SCHED_NOLOCK_PRIO_MAX];
	_Atomic uint32_t limit, share;
	struct sender *senders;
	/* The control thread links; the owner follows and unlinks. */
	_Atomic(struct bands *) newer;
	_Atomic bool closed; /* no worker can post into it any more */

	/* The control thread's. */
	struct sched_nolock *sched; /* NULL: destroyed, to be freed when the grace period ends */
	bool deferred; /* a grace period is under way */
	uint64_t mark; /* the mark that the senders' `marked` is of */
	struct rcu_head rcu_head;

	/* The owner's. */
	alignas(RTE_CACHE_LINE_SIZE) uint32_t turn[SCHED_NOLOCK_BANDS_MAX]; /* who is first */
	struct segment *spent;
	struct bands *next_unlinked;
	/* One line for two workers: each turn by another worker moves it. */
	alignas(RTE_CACHE_LINE_SIZE) struct look looks[];
};

/* A set without packets. NULL: no memory. Control thread. */
struct bands *bands_create(
	unsigned int n_workers, unsigned int n, const uint8_t *priomap, uint32_t limit, int socket);
/* Its packets are gone. Control thread. */
void bands_free(struct bands *bands);
/* Packets a band may hold; a worker alone may always have limit / n_workers, but one. Control
 * thread. */
void bands_set_limit(struct bands *bands, uint32_t limit);
/*
 * Posts n packets of one band for worker w. Returns how many fitted, from the front. Not visible
 * to the owner's look before bands_publish().
 */
unsigned int bands_post(struct bands *bands, unsigned int w, unsigned int band,
	struct rte_mbuf **pkts, unsigned int n);
/*
 * Adds packets to the batch until it has max: band 0 first, the workers of a band in turn, except
 * that `self`, if it is a worker, may take its own first and leave a band's others to themselves
 * as long as it is not far ahead of them. `oldest` is the first set of the chain that `bands` is
 * in. Owner.
 */
void bands_take(struct bands *bands, struct bands *oldest, unsigned int self, struct batch *batch,
	unsigned int max);
/* Takes up to max packets of one lane, for a flush. Owner. */
unsigned int bands_take_lane(struct bands *bands, unsigned int w, unsigned int band,
	struct batch *batch, unsigned int max);

/* Notes where the lanes end. Owner. */
void bands_mark(struct bands *bands);
/* Everything that was posted by then was taken. Owner. */
bool bands_passed(const struct bands *bands);

/*
 * Ends a post. A store to gen and then the caller's load of the state: both sequentially
 * consistent, so that the owner, who clears MISSED and then loads gen, misses at most one of the
 * two (PROOF.md, "the look").
 */
static inline void
bands_publish(struct bands *bands, unsigned int w)
{
	_Atomic uint64_t *gen = &bands->senders[w].gen;

	atomic_store_explicit(
		gen, atomic_load_explicit(gen, memory_order_relaxed) + 1, memory_order_seq_cst);
}

/* True if everything published was taken. Owner. */
static inline bool
bands_empty(const struct bands *bands)
{
	const struct sender *snd = bands->senders, *end = snd + bands->n_workers;
	const struct look *look = bands->looks;

	for (; snd < end; snd++, look++)
		if (atomic_load_explicit(&snd->gen, memory_order_seq_cst) != look->seen)
			return false;
	return true;
}

#endif /* SCHED_NOLOCK_BANDS_H */
