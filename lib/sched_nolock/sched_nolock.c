/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The packet path: posting, ownership, bypass, draining. PROOF.md says why it is right. */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf_dyn.h>

#include "sched_nolock/internal.h"

static inline unsigned int
band_of(const struct sched_nolock *s, const struct bands *bands, const struct rte_mbuf *m)
{
	uint32_t priority = 0;
	uint16_t class;

	if (s->class_offset >= 0) {
		class = *RTE_MBUF_DYNFIELD(m, s->class_offset, const uint16_t *);
		if (class != 0 && class <= bands->n)
			return class - 1;
	}
	if (s->priority_offset >= 0)
		priority = *RTE_MBUF_DYNFIELD(m, s->priority_offset, const uint32_t *);
	return bands->priomap[priority % SCHED_NOLOCK_PRIO_MAX];
}

static inline uint64_t
bytes_of(struct rte_mbuf *const *pkts, unsigned int n)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		bytes += rte_pktmbuf_pkt_len(pkts[i]);
	return bytes;
}

/* True if no packet of the burst would overtake another by its band. */
static inline bool
one_band(const struct sched_nolock *s, const struct bands *bands, struct rte_mbuf *const *pkts,
	unsigned int n)
{
	unsigned int i, first;

	if (bands->n == 1 || n == 1 || (s->priority_offset < 0 && s->class_offset < 0))
		return true;
	first = band_of(s, bands, pkts[0]);
	for (i = 1; i < n; i++)
		if (band_of(s, bands, pkts[i]) != first)
			return false;
	return true;
}

/* Unlinks sets that nobody can post into and that are empty; the control thread frees them. Owner.
 */
static void
unlink_old(struct sched_nolock *s)
{
	struct bands *set, *next;

	/* Acquire: `closed` comes after the last post into the set. */
	while ((next = newer(set = s->oldest)) != NULL &&
		atomic_load_explicit(&set->closed, memory_order_acquire) && bands_empty(set)) {
		s->oldest = next;
		set->next_unlinked = atomic_load_explicit(&s->unlinked, memory_order_relaxed);
		/* Release: the owner is done with it. */
		while (!atomic_compare_exchange_weak_explicit(&s->unlinked, &set->next_unlinked,
			set, memory_order_release, memory_order_relaxed))
			;
	}
}

/* True if nothing is held and every lane of every set was seen empty. Owner. */
static inline bool
all_empty(struct sched_nolock *s)
{
	const struct bands *set = s->oldest;

	if (unlikely(newer(set) != NULL)) {
		unlink_old(s);
		for (set = s->oldest; newer(set) != NULL; set = newer(set))
			if (!bands_empty(set))
				return false;
	}
	return atomic_load_explicit(&s->n_held, memory_order_relaxed) == 0 && bands_empty(set);
}

/*
 * Tries to become the owner; never waits. MISSED is cleared by the same step, so before any look
 * at the lanes (rule B2). Acquire: what the last owner left is seen. Sequentially consistent for
 * the look. Returns the state it found, with OWNED set if it failed.
 */
static inline uint32_t
try_own(struct sched_nolock *s, uint32_t state)
{
	while ((state & (OWNED | RESET)) == 0)
		if (atomic_compare_exchange_weak_explicit(&s->state, &state,
			    (state & ~MISSED) | OWNED, memory_order_seq_cst, memory_order_seq_cst))
			return state;
	return state | OWNED;
}

/* A worker that kept the ownership takes it up for one call, unless it was taken away. */
static inline bool
take_up(struct sched_nolock *s, uint32_t worker)
{
	uint32_t keeper = worker;

	return atomic_load_explicit(&s->keeper, memory_order_relaxed) == worker &&
		atomic_compare_exchange_strong_explicit(
			&s->keeper, &keeper, NOBODY, memory_order_seq_cst, memory_order_relaxed);
}

/* Gives up ownership, packets having been left: MISSED stays for the next to come (rule B4). */
static void
leave_behind(struct sched_nolock *s)
{
	uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&s->state, &state, (state & ~OWNED) | MISSED,
		memory_order_seq_cst, memory_order_relaxed))
		;
}

/*
 * Gives up ownership, nothing having been found. Fails, and stays the owner, if somebody missed
 * the ownership meanwhile (rule B1): one read-modify-write is both the store that lets go and the
 * load that looks again, with nothing in between.
 */
static inline bool
let_go(struct sched_nolock *s)
{
	uint32_t state = OWNED;

	while (!atomic_compare_exchange_weak_explicit(
		&s->state, &state, state & ~OWNED, memory_order_seq_cst, memory_order_seq_cst))
		if ((state & MISSED) != 0)
			return false;
	return true;
}

/* The exclusive worker keeps it for its next call instead, unless the control thread wants it. */
static inline bool
keep(struct sched_nolock *s, uint32_t worker)
{
	if (likely(atomic_load_explicit(&s->exclusive, memory_order_relaxed) != worker) ||
		(atomic_load_explicit(&s->state, memory_order_relaxed) & RESET) != 0)
		return false;
	/* Release: whoever takes it away sees what this owner left. */
	atomic_store_explicit(&s->keeper, worker, memory_order_release);
	return true;
}

/* Holds pkts[0..n), which the driver refused and which are out of the lanes. Owner, none held. */
static void
hold(struct sched_nolock *s, struct counters *cnt, struct rte_mbuf *const *pkts,
	const uint32_t *lens, unsigned int n)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		s->held.pkts[i] = pkts[i];
		s->held.lens[i] = lens != NULL ? lens[i] : rte_pktmbuf_pkt_len(pkts[i]);
		bytes += s->held.lens[i];
	}
	s->held_first = 0;
	atomic_store_explicit(&s->n_held, n, memory_order_relaxed);
	atomic_store_explicit(&s->held_bytes, bytes, memory_order_relaxed);
	count(&cnt->requeues, n);
}

static uint64_t
sum_lens(const uint32_t *lens, unsigned int n)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		bytes += lens[i];
	return bytes;
}

/* Takes the first n held packets off. Owner. */
static void
unhold(struct sched_nolock *s, unsigned int n, uint64_t bytes)
{
	s->held_first += n;
	atomic_store_explicit(&s->n_held,
		atomic_load_explicit(&s->n_held, memory_order_relaxed) - n, memory_order_relaxed);
	atomic_store_explicit(&s->held_bytes,
		atomic_load_explicit(&s->held_bytes, memory_order_relaxed) - bytes,
		memory_order_relaxed);
}

/* Sends held packets, at most max. Returns how many the driver took. Owner. */
static unsigned int
send_held(struct sched_nolock *s, struct counters *cnt, unsigned int max)
{
	unsigned int n = RTE_MIN(atomic_load_explicit(&s->n_held, memory_order_relaxed), max);
	unsigned int sent = s->tx(s->tx_arg, s->held.pkts + s->held_first, (uint16_t)n);
	uint64_t bytes = sum_lens(s->held.lens + s->held_first, sent);

	unhold(s, sent, bytes);
	count(&cnt->sent, sent);
	count(&cnt->sent_bytes, bytes);
	count(&cnt->requeues, n - sent);
	return sent;
}

/*
 * Fills the batch from the lanes, oldest set first.
 * Returns true if it may have left packets for want of room. Owner.
 */
static bool
take(struct sched_nolock *s, struct counters *cnt, struct batch *batch, unsigned int max)
{
	struct bands *set;
	bool again = false;

	batch->n = 0;
	for (set = s->oldest; set != NULL && batch->n < max; set = newer(set))
		bands_take(set, s->oldest, batch, max, &again);
	if (batch->n > 0) {
		count(&cnt->taken, batch->n);
		count(&cnt->taken_bytes, sum_lens(batch->lens, batch->n));
	}
	return again || batch->n == max;
}

/* Sends at most *budget packets, held ones first. Returns true if packets remain. Owner. */
static bool
send_some(struct sched_nolock *s, struct counters *cnt, unsigned int *budget)
{
	struct batch batch;
	unsigned int sent, held;
	bool more = true;

	if (*budget == 0)
		return true;
	while ((held = atomic_load_explicit(&s->n_held, memory_order_relaxed)) > 0) {
		held = RTE_MIN(held, *budget);
		sent = send_held(s, cnt, held);
		*budget -= sent;
		if (sent < held || *budget == 0)
			return true;
	}
	while (more && *budget > 0) {
		more = take(s, cnt, &batch, RTE_MIN(*budget, (unsigned int)BATCH_MAX));
		if (batch.n == 0)
			continue;
		SCHED_NOLOCK_STEP(TAKEN);
		sent = s->tx(s->tx_arg, batch.pkts, (uint16_t)batch.n);
		count(&cnt->sent, sent);
		count(&cnt->sent_bytes, sum_lens(batch.lens, sent));
		*budget -= sent;
		if (sent < batch.n) {
			hold(s, cnt, batch.pkts + sent, batch.lens + sent, batch.n - sent);
			return true;
		}
	}
	return more;
}

void
sched_nolock_take_all(struct sched_nolock *s, struct counters *cnt, struct batch *batch)
{
	unsigned int n = atomic_load_explicit(&s->n_held, memory_order_relaxed);

	if (n > 0) {
		memcpy(batch->pkts, s->held.pkts + s->held_first, n * sizeof(batch->pkts[0]));
		memcpy(batch->lens, s->held.lens + s->held_first, n * sizeof(batch->lens[0]));
		batch->n = n;
		unhold(s, n, sum_lens(batch->lens, n));
	} else
		take(s, cnt, batch, BATCH_MAX);
	count(&cnt->flushed, batch->n);
	count(&cnt->flushed_bytes, sum_lens(batch->lens, batch->n));
}

/* A worker found itself the owner of a deactivated scheduler: packets that raced past are dropped.
 */
static void
drop_raced(struct sched_nolock *s, struct counters *cnt)
{
	struct batch batch;
	uint32_t state;

	for (;;) {
		sched_nolock_take_all(s, cnt, &batch);
		if (batch.n == 0) {
			if (let_go(s))
				return;
			atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
			continue;
		}
		leave_behind(s);
		/* After ownership was given up (rule B9). */
		s->drop(s->drop_arg, batch.pkts, (uint16_t)batch.n);
		state = try_own(s, atomic_load_explicit(&s->state, memory_order_seq_cst));
		if ((state & OWNED) != 0)
			return;
		if ((state & DEACTIVATED) == 0) {
			leave_behind(s); /* activated meanwhile: the next drain sends */
			return;
		}
	}
}

/* Ends the owner's turn, packets having been left. */
static void
leave(struct sched_nolock *s, uint32_t worker)
{
	if (atomic_load_explicit(&s->exclusive, memory_order_relaxed) == worker) {
		/* Sequentially consistent, as every change of the state. */
		atomic_fetch_or_explicit(&s->state, MISSED, memory_order_seq_cst);
		if (keep(s, worker))
			return;
	}
	leave_behind(s);
}

/*
 * The owner's turn: sends up to the budget and gives ownership up. `state` is what try_own()
 * found. Returns packets sent.
 */
static unsigned int
drain_owned(struct sched_nolock *s, uint32_t worker, uint32_t state)
{
	struct counters *cnt = &s->counters[worker];
	unsigned int budget = s->budget;

	if (unlikely((state & DEACTIVATED) != 0)) {
		drop_raced(s, cnt);
		return 0;
	}
	for (;;) {
		if (send_some(s, cnt, &budget)) {
			SCHED_NOLOCK_STEP(BUDGET);
			leave(s, worker);
			break;
		}
		SCHED_NOLOCK_STEP(FOUND_NOTHING);
		if (keep(s, worker) || let_go(s))
			break;
		/* Before the next look, never after it (rule B2). */
		atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
	}
	return s->budget - budget;
}

/*
 * After a post: makes sure that somebody looks. Either this worker becomes the owner, or the
 * owner will see MISSED. The load is ordered after the post's store to gen.
 */
static unsigned int
kick(struct sched_nolock *s, uint32_t worker)
{
	uint32_t state;

	SCHED_NOLOCK_STEP(POSTED);
	if (take_up(s, worker))
		return drain_owned(s, worker,
			atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst));
	state = atomic_load_explicit(&s->state, memory_order_seq_cst);
	state = try_own(s, state);
	if ((state & OWNED) != 0) {
		if ((state & MISSED) != 0)
			return 0; /* set after our post was visible: the clearer will look */
		SCHED_NOLOCK_STEP(LOST);
		state = atomic_fetch_or_explicit(&s->state, MISSED, memory_order_seq_cst);
		SCHED_NOLOCK_STEP(MISSED_SET);
		/* Once more: the owner may have let go before it could see MISSED (rule B1). */
		state = try_own(s, state | MISSED);
		if ((state & OWNED) != 0)
			return 0;
	}
	SCHED_NOLOCK_STEP(OWN);
	return drain_owned(s, worker, state);
}

static void
refuse(struct counters *cnt, struct rte_mbuf *const *pkts, unsigned int n, bool full)
{
	count(&cnt->refused, n);
	count(&cnt->refused_bytes, bytes_of(pkts, n));
	if (full)
		count(&cnt->overlimits, 1);
}

/*
 * Posts a burst into the worker's lanes, runs of one band at a time. Returns how many fitted; the
 * others are moved to the end.
 */
static uint16_t
post(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	struct counters *cnt = &s->counters[worker];
	/* Sequentially consistent: an owner that sees the post also finds the set it is in. */
	struct bands *bands = atomic_load_explicit(&s->bands, memory_order_seq_cst);
	unsigned int i, len, took, band, refused = 0;
	uint64_t bytes = bytes_of(pkts, n);

	for (i = 0; i < n; i += len) {
		band = bands->n == 1 ? 0 : band_of(s, bands, pkts[i]);
		for (len = 1; i + len < n; len++)
			if (bands->n != 1 && band_of(s, bands, pkts[i + len]) != band)
				break;
		took = bands_post(bands, worker, band, pkts + i, len);
		if (unlikely(took < len)) {
			memmove(pkts + refused, pkts + i + took, (len - took) * sizeof(*pkts));
			refused += len - took;
		}
	}
	if (refused < n)
		bands_publish(bands, worker);
	if (unlikely(refused > 0)) {
		refuse(cnt, pkts, refused, true);
		bytes -= bytes_of(pkts, refused);
		memmove(pkts + n - refused, pkts, refused * sizeof(*pkts));
	}
	count(&cnt->posted, n - refused);
	count(&cnt->posted_bytes, bytes);
	return n - refused;
}

/* One driver call of at most BATCH_MAX packets. Returns false if some are held now. Owner. */
static inline bool
bypass_batch(struct sched_nolock *s, struct counters *cnt, struct rte_mbuf **pkts, uint16_t n)
{
	/* Noted before: what is sent is gone. */
	uint64_t bytes = bytes_of(pkts, n), left;
	uint16_t sent = s->tx(s->tx_arg, pkts, n);

	if (unlikely(sent < n)) {
		left = bytes_of(pkts + sent, n - sent);
		hold(s, cnt, pkts + sent, NULL, n - sent);
		count(&cnt->posted, n - sent);
		count(&cnt->taken, n - sent);
		count(&cnt->posted_bytes, left);
		count(&cnt->taken_bytes, left);
		bytes -= left;
	}
	count(&cnt->bypassed, sent);
	count(&cnt->bypassed_bytes, bytes);
	return sent == n;
}

/*
 * Straight to the driver: everything was seen empty under ownership (rule B3). Returns false if
 * packets remain, held or, behind them, in the lanes; then *n is how many were taken. Owner.
 */
static inline bool
bypass(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t *n)
{
	struct counters *cnt = &s->counters[worker];
	uint16_t done, len;

	SCHED_NOLOCK_STEP(BYPASS);
	if (likely(*n <= BATCH_MAX))
		return bypass_batch(s, cnt, pkts, *n);
	for (done = 0; done < *n; done += len) {
		len = RTE_MIN(*n - done, BATCH_MAX);
		if (!bypass_batch(s, cnt, pkts + done, len)) {
			done += len;
			if (done < *n)
				*n = done + post(s, worker, pkts + done, *n - done);
			return false;
		}
	}
	return true;
}

/* The worker has just become the owner of an active scheduler, and has a burst. */
static uint16_t
enqueue_owned(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	struct bands *bands = atomic_load_explicit(&s->bands, memory_order_seq_cst);

	SCHED_NOLOCK_STEP(OWN);
	if (!one_band(s, bands, pkts, n) || !all_empty(s)) {
		n = post(s, worker, pkts, n);
		drain_owned(s, worker, 0);
	} else if (unlikely(!bypass(s, worker, pkts, &n)))
		leave(s, worker);
	else if (!keep(s, worker) && !let_go(s)) {
		/* Somebody missed us: one turn as any owner. */
		atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
		drain_owned(s, worker, 0);
	}
	return n;
}

/* The worker kept the ownership and nothing happened since. */
static inline uint16_t
enqueue_kept(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	struct bands *bands = atomic_load_explicit(&s->bands, memory_order_seq_cst);

	if (unlikely(!one_band(s, bands, pkts, n) || !all_empty(s))) {
		n = post(s, worker, pkts, n);
		kick(s, worker);
	} else if (unlikely(!bypass(s, worker, pkts, &n)))
		atomic_fetch_or_explicit(&s->state, MISSED, memory_order_seq_cst);
	return n;
}

uint16_t
sched_nolock_enqueue(
	struct sched_nolock *s, unsigned int worker, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t state;

	if (unlikely(n == 0))
		return 0;
	/* Acquire: active again means that what was done while it was not is seen. */
	state = atomic_load_explicit(&s->state, memory_order_acquire);
	if (unlikely((state & DEACTIVATED) != 0)) {
		refuse(&s->counters[worker], pkts, n, false);
		if (take_up(s, worker))
			drain_owned(s, worker, state);
		return 0;
	}
	if (likely(s->bypass)) {
		if (state == 0) {
			if (likely(atomic_compare_exchange_strong_explicit(&s->state, &state, OWNED,
				    memory_order_seq_cst, memory_order_relaxed)))
				return enqueue_owned(s, worker, pkts, n);
		} else if (state == OWNED &&
			atomic_load_explicit(&s->keeper, memory_order_relaxed) == worker)
			return enqueue_kept(s, worker, pkts, n);
	}
	n = post(s, worker, pkts, n);
	kick(s, worker);
	return n;
}

unsigned int
sched_nolock_drain(struct sched_nolock *s, unsigned int worker)
{
	/* Acquire is enough to notice; who drains looks again. */
	uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);

	if (likely((state & (MISSED | RESET)) == 0))
		return 0;
	if (take_up(s, worker))
		return drain_owned(s, worker,
			atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst));
	if ((state & MISSED) == 0)
		return 0;
	state = try_own(s, state);
	if ((state & OWNED) != 0)
		return 0;
	SCHED_NOLOCK_STEP(OWN);
	return drain_owned(s, worker, state);
}

bool
sched_nolock_empty(const struct sched_nolock *s)
{
	uint64_t posted = 0, gone = 0;
	unsigned int w;

	for (w = 0; w <= s->n_workers; w++) {
		gone += atomic_load_explicit(&s->counters[w].sent, memory_order_relaxed);
		gone += atomic_load_explicit(&s->counters[w].flushed, memory_order_relaxed);
	}
	for (w = 0; w < s->n_workers; w++)
		posted += atomic_load_explicit(&s->counters[w].posted, memory_order_relaxed);
	return posted == gone;
}
