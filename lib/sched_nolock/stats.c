/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "sched_nolock/internal.h"

static uint64_t
get(const _Atomic uint64_t *counter)
{
	/* Relaxed: a sum of counters that move on; exact when nobody sends. */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Never below zero, though the two were not read at one time. */
static uint64_t
less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void
sum(const struct sched_nolock *s, struct sched_nolock_stats *stats)
{
	uint64_t posted = 0, posted_bytes = 0, taken = 0, taken_bytes = 0;
	const struct counters *cnt;
	unsigned int w;

	*stats = (struct sched_nolock_stats){ 0 };
	for (w = 0; w <= s->n_workers; w++) {
		cnt = &s->counters[w];
		taken += get(&cnt->taken);
		taken_bytes += get(&cnt->taken_bytes);
		stats->bypassed += less(get(&cnt->bypassed), get(&cnt->unbypassed));
		stats->bypassed_bytes +=
			less(get(&cnt->bypassed_bytes), get(&cnt->unbypassed_bytes));
		stats->dequeued += get(&cnt->sent);
		stats->dequeued_bytes += get(&cnt->sent_bytes);
		stats->dropped += get(&cnt->refused) + get(&cnt->flushed);
		stats->dropped_bytes += get(&cnt->refused_bytes) + get(&cnt->flushed_bytes);
		stats->enqueued += get(&cnt->refused);
		stats->enqueued_bytes += get(&cnt->refused_bytes);
		stats->overlimits += get(&cnt->overlimits);
		stats->requeues += get(&cnt->requeues);
		posted += get(&cnt->posted);
		posted_bytes += get(&cnt->posted_bytes);
	}
	stats->enqueued += stats->bypassed + posted;
	stats->enqueued_bytes += stats->bypassed_bytes + posted_bytes;
	stats->queued = less(posted, taken);
	stats->queued_bytes = less(posted_bytes, taken_bytes);
	stats->held = atomic_load_explicit(&s->n_held, memory_order_relaxed);
	stats->held_bytes = get(&s->held_bytes);
}

void
sched_nolock_stats(const struct sched_nolock *s, struct sched_nolock_stats *stats)
{
	const struct sched_nolock_stats *base = &s->base;

	sum(s, stats);
	stats->enqueued -= base->enqueued;
	stats->enqueued_bytes -= base->enqueued_bytes;
	stats->bypassed -= base->bypassed;
	stats->bypassed_bytes -= base->bypassed_bytes;
	stats->dequeued -= base->dequeued;
	stats->dequeued_bytes -= base->dequeued_bytes;
	stats->dropped -= base->dropped;
	stats->dropped_bytes -= base->dropped_bytes;
	stats->overlimits -= base->overlimits;
	stats->requeues -= base->requeues;
}

void
sched_nolock_stats_clear(struct sched_nolock *s)
{
	sum(s, &s->base);
	/* What waits now counts as enqueued after the clear, so that the sum of rule B7 still
	 * holds. */
	s->base.enqueued -= s->base.queued + s->base.held;
	s->base.enqueued_bytes -= s->base.queued_bytes + s->base.held_bytes;
}
