/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef SCHED_NOLOCK_INTERNAL_H
#define SCHED_NOLOCK_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sched_nolock/bands.h"
#include "sched_nolock/sched_nolock.h"

/* The state word. */
#define OWNED 1u /* somebody drains; nobody else touches what is the owner's */
#define MISSED 2u /* packets may be waiting that no owner has looked for since */
#define RESET 4u /* the control thread wants to be or is the owner: workers only post */
#define DEACTIVATED 8u /* offered packets are dropped, queued ones too, nothing is sent */

#define LAST 0x1ff00u /* whose the last turn was that left packets behind: worker + 1, 0 nobody */
#define LAST_SHIFT 8

#define NOBODY UINT32_MAX
#define BYPASS_MAX 512
#define CONTENDED 8 /* turns without others after which a worker takes itself to be alone */
#define LAZY 64 /* packets that a worker posts among others before it wants a turn */
#define YIELD 256 /* and before it wants the next turn when nobody else had one */

/* A test steps through the packet path here. */
#ifndef SCHED_NOLOCK_STEP
#define SCHED_NOLOCK_STEP(point) ((void)0)
#endif

/* One writer: the worker, or the control thread for the last one. Readers add up, relaxed. */
struct counters {
	/* Given to the driver without having been queued; counted before, for then nothing need be
	 * kept. */
	alignas(RTE_CACHE_LINE_SIZE) _Atomic uint64_t bypassed;
	_Atomic uint64_t bypassed_bytes;
	/* The worker's alone: others were seen to send; packets posted since its last turn. */
	unsigned int contended;
	uint32_t lazy;
	bool posted_since; /* its last drain() */
	_Atomic uint64_t posted; /* into a lane, or held after a bypass */
	_Atomic uint64_t posted_bytes;
	_Atomic uint64_t refused; /* offered and dropped: band full or deactivated */
	_Atomic uint64_t refused_bytes;
	_Atomic uint64_t taken; /* out of the lanes */
	_Atomic uint64_t taken_bytes;
	_Atomic uint64_t sent; /* to the driver, after having been queued */
	_Atomic uint64_t sent_bytes;
	_Atomic uint64_t flushed;
	_Atomic uint64_t flushed_bytes;
	_Atomic uint64_t overlimits;
	_Atomic uint64_t requeues;
	_Atomic uint64_t unbypassed; /* of those in bypassed, refused by the driver */
	_Atomic uint64_t unbypassed_bytes;
};

struct sched_nolock {
	/* Fixed. */
	sched_nolock_tx_fn tx;
	void *tx_arg;
	sched_nolock_drop_fn drop;
	void *drop_arg;
	struct counters *counters; /* n_workers + 1 */
	int priority_offset;
	int class_offset;
	unsigned int n_workers;
	unsigned int budget;
	/*
	 * What counts in the eight bytes from priority_offset on, where the class stands among
	 * them; 0: it does not.
	 */
	uint64_t band_mask;
	bool flat; /* no field of the mbuf chooses a band */
	uint16_t bypass_max; /* packets of a burst that may bypass; 0: every packet is queued first
			      */
	/* The control thread writes, workers read. */
	_Atomic(struct bands *) bands; /* where to post: the newest of the chain */

	/* Anybody. */
	alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t state;
	/* The worker that keeps the ownership between its calls; itself and the control thread. */
	_Atomic uint32_t keeper;
	_Atomic uint32_t exclusive; /* the control thread writes: who is to keep it */

	/* The owner's. The counts are read by stats. */
	_Atomic uint32_t n_held;
	_Atomic uint64_t held_bytes;
	unsigned int held_first;
	struct bands *oldest;
	/* Sets that the owner is done with, for the control thread to free. */
	_Atomic(struct bands *) unlinked;
	alignas(RTE_CACHE_LINE_SIZE) struct batch held;

	/* The control thread's. */
	alignas(RTE_CACHE_LINE_SIZE) struct sched_nolock_conf conf;
	struct sched_nolock_stats base; /* what stats_clear() subtracts */
	uint64_t mark; /* counts them */
	bool mark_taken; /* what the last one found in the lanes has been taken from them */
	uint64_t mark_out; /* packets that had been taken by then, since the beginning */
};

static inline void
count(_Atomic uint64_t *counter, uint64_t n)
{
	/* One writer: no read-modify-write. Relaxed: a sum for readers, it orders nothing. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static inline struct bands *
newer(const struct bands *bands)
{
	return atomic_load_explicit(&bands->newer, memory_order_seq_cst);
}

/* Takes up to BATCH_MAX packets, held ones first, to be handed to drop. Owner. */
void sched_nolock_take_all(struct sched_nolock *sched, uint32_t worker, struct batch *batch);

#endif /* SCHED_NOLOCK_INTERNAL_H */
