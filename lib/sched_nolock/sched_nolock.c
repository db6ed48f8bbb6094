/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The packet path: posting, ownership, bypass, draining. PROOF.md says why it is right. */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf_dyn.h>
#include <rte_prefetch.h>

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

/* The fields of the mbuf that choose its band, in one word. */
static inline uint64_t
band_word(const struct rte_mbuf *m, int offset)
{
	uint64_t w;

	memcpy(&w, (const uint8_t *)m + offset, sizeof(w));
	return w;
}

/* True if no packet of the burst would overtake another by its band; its length in *bytes. */
static bool
one_band(
	const struct sched_nolock *s, struct rte_mbuf *const *pkts, unsigned int n, uint64_t *bytes)
{
	/* Sequentially consistent, as in post(). */
	const struct bands *bands = atomic_load_explicit(&s->bands, memory_order_seq_cst);
	unsigned int i, first;

	/* Nearly always all packets say the same: compared without a branch for each. */
	if (s->band_mask != 0) {
		uint64_t same = band_word(pkts[0], s->priority_offset), differ = 0, sum = 0;

		for (i = 0; i < n; i++) {
			differ |= band_word(pkts[i], s->priority_offset) ^ same;
			sum += rte_pktmbuf_pkt_len(pkts[i]);
		}
		*bytes = sum;
		if ((differ & s->band_mask) == 0)
			return true;
	} else {
		*bytes = bytes_of(pkts, n);
	}
	if (s->flat || bands->n == 1)
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

static __rte_noinline bool
all_empty_chain(struct sched_nolock *s)
{
	const struct bands *set;

	unlink_old(s);
	for (set = s->oldest; set != NULL; set = newer(set))
		if (!bands_empty(set))
			return false;
	return true;
}

/* True if nothing is held and every lane of every set was seen empty. Owner. */
static inline bool
all_empty(struct sched_nolock *s)
{
	const struct bands *set = s->oldest;

	if (unlikely(atomic_load_explicit(&s->n_held, memory_order_relaxed) != 0))
		return false;
	if (unlikely(newer(set) != NULL))
		return all_empty_chain(s);
	return bands_empty(set);
}

/*
 * Tries to become the owner; never waits. MISSED is cleared by the same step, so before any look
 * at the lanes (rule B2). Acquire: what the last owner left is seen. Sequentially consistent for
 * the look. Returns the state it found, with OWNED set if it failed.
 */
static inline uint32_t
try_own(struct sched_nolock *s, uint32_t state, uint32_t clear)
{
	while ((state & (OWNED | RESET)) == 0)
		if (atomic_compare_exchange_weak_explicit(&s->state, &state,
			    (state & ~(clear | LAST)) | OWNED, memory_order_seq_cst,
			    memory_order_seq_cst))
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
leave_behind(struct sched_nolock *s, uint32_t worker)
{
	uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
	uint32_t last = (worker + 1) << LAST_SHIFT;

	while (!atomic_compare_exchange_weak_explicit(&s->state, &state,
		(state & ~(OWNED | LAST)) | MISSED | last, memory_order_seq_cst,
		memory_order_relaxed))
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
 * Fills the batch from the lanes, oldest set first; see bands_take() for `self`. Returns true if
 * it may have left packets for want of room. Owner.
 */
static bool
take(struct sched_nolock *s, uint32_t worker, uint32_t self, struct batch *batch, unsigned int max)
{
	struct counters *cnt = &s->counters[worker];
	struct bands *set;

	batch->n = 0;
	batch->left = batch->again = false;
	for (set = s->oldest; set != NULL && batch->n < max && !batch->left; set = newer(set))
		bands_take(set, s->oldest, self, batch, max);
	if (batch->n > 0) {
		count(&cnt->taken, batch->n);
		count(&cnt->taken_bytes, sum_lens(batch->lens, batch->n));
	}
	return batch->again || batch->n == max;
}

/*
 * Sends at most *budget packets, held ones first. Returns true if packets remain; *left if they
 * are others', who will come. Owner.
 */
static bool
send_some(struct sched_nolock *s, uint32_t worker, uint32_t self, unsigned int *budget, bool *left)
{
	struct counters *cnt = &s->counters[worker];
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
		more = take(s, worker, self, &batch, RTE_MIN(*budget, (unsigned int)BATCH_MAX));
		*left |= batch.left;
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
	return more || *left;
}

void
sched_nolock_take_all(struct sched_nolock *s, uint32_t worker, struct batch *batch)
{
	struct counters *cnt = &s->counters[worker];
	unsigned int n = atomic_load_explicit(&s->n_held, memory_order_relaxed);

	if (n > 0) {
		memcpy(batch->pkts, s->held.pkts + s->held_first, n * sizeof(batch->pkts[0]));
		memcpy(batch->lens, s->held.lens + s->held_first, n * sizeof(batch->lens[0]));
		batch->n = n;
		unhold(s, n, sum_lens(batch->lens, n));
	} else
		take(s, worker, NOBODY, batch, BATCH_MAX);
	count(&cnt->flushed, batch->n);
	count(&cnt->flushed_bytes, sum_lens(batch->lens, batch->n));
}

/* A worker found itself the owner of a deactivated scheduler: packets that raced past are dropped.
 */
static void
drop_raced(struct sched_nolock *s, uint32_t worker)
{
	struct batch batch;
	uint32_t state;

	for (;;) {
		sched_nolock_take_all(s, worker, &batch);
		if (batch.n == 0) {
			if (let_go(s))
				return;
			atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
			continue;
		}
		leave_behind(s, worker);
		/* After ownership was given up (rule B9). */
		s->drop(s->drop_arg, batch.pkts, (uint16_t)batch.n);
		state = try_own(s, atomic_load_explicit(&s->state, memory_order_seq_cst), MISSED);
		if ((state & OWNED) != 0)
			return;
		if ((state & DEACTIVATED) == 0) {
			leave_behind(s, worker); /* activated meanwhile: the next drain sends */
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
	leave_behind(s, worker);
}

/*
 * The owner's turn: sends up to the budget and gives ownership up. `state` is what try_own()
 * found. Returns packets sent.
 *
 * A producer among others that are busy sends its own packets and leaves MISSED set for theirs:
 * nobody need then write the state to be seen, and packets leave in batches from the core that
 * made them. MISSED is not cleared, so nothing is forgotten.
 */
static unsigned int
drain_owned(struct sched_nolock *s, uint32_t worker, uint32_t state, bool producer)
{
	struct counters *cnt = &s->counters[worker];
	unsigned int budget = s->budget;
	bool left = false;

	if (unlikely((state & DEACTIVATED) != 0)) {
		drop_raced(s, worker);
		return 0;
	}
	cnt->lazy = 0;
	while (!send_some(s, worker, producer ? worker : NOBODY, &budget, &left)) {
		SCHED_NOLOCK_STEP(FOUND_NOTHING);
		cnt->contended -= cnt->contended > 0;
		if (keep(s, worker) || let_go(s))
			return s->budget - budget;
		/* Before the next look, never after it (rule B2). */
		atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
	}
	SCHED_NOLOCK_STEP(BUDGET);
	if (left)
		cnt->contended = CONTENDED;
	else
		cnt->lazy = LAZY; /* what remains may be its own */
	leave(s, worker);
	return s->budget - budget;
}

/*
 * True if a worker that has posted need not want a turn now. With MISSED set after its post was
 * visible, whoever clears it looks; what is not taken by others by then, the worker that serves
 * the queue takes.
 */
static inline bool
may_wait(const struct counters *cnt, uint32_t worker, uint32_t state)
{
	if ((state & MISSED) == 0)
		return false;
	if ((state & OWNED) != 0)
		return true;
	if (cnt->contended == 0)
		return false;
	/* Having had the last turn, it lets somebody else have one. */
	return cnt->lazy < ((state & LAST) >> LAST_SHIFT == worker + 1 ? YIELD : LAZY);
}

/*
 * After a post: makes sure that somebody looks. Either this worker becomes the owner, or the
 * owner will see MISSED. The load is ordered after the post's store to gen.
 */
static void
kick(struct sched_nolock *s, uint32_t worker, unsigned int n)
{
	struct counters *cnt = &s->counters[worker];
	uint32_t state, clear;

	SCHED_NOLOCK_STEP(POSTED);
	if (take_up(s, worker)) {
		state = atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
		drain_owned(s, worker, state, true);
		return;
	}
	state = atomic_load_explicit(&s->state, memory_order_seq_cst);
	cnt->lazy += n;
	cnt->posted_since = true;
	if ((state & OWNED) != 0)
		cnt->contended = CONTENDED;
	if (may_wait(cnt, worker, state))
		return;
	/* What a turn writes moves from core to core: fetch it while the state word comes. */
	if ((state & OWNED) == 0)
		rte_prefetch0_write(atomic_load_explicit(&s->bands, memory_order_relaxed)->looks);
	clear = cnt->contended > 0 ? 0 : MISSED;
	state = try_own(s, state, clear);
	if ((state & OWNED) != 0) {
		cnt->contended = CONTENDED;
		if ((state & MISSED) != 0)
			return;
		SCHED_NOLOCK_STEP(LOST);
		atomic_fetch_or_explicit(&s->state, MISSED, memory_order_seq_cst);
		SCHED_NOLOCK_STEP(MISSED_SET);
		/* Once more: the owner may have let go before it could see MISSED (rule B1). */
		state = atomic_load_explicit(&s->state, memory_order_seq_cst);
		state = try_own(s, state, clear);
		if ((state & OWNED) != 0)
			return;
	}
	SCHED_NOLOCK_STEP(OWN);
	drain_owned(s, worker, state, true);
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
	/* No room to be lazy in. Relaxed: a hint. */
	if (refused > 0 ||
		cnt->lazy >= atomic_load_explicit(&bands->share, memory_order_relaxed) / 2)
		cnt->lazy = YIELD;
	return n - refused;
}

/*
 * The driver took `sent` of a bypassing burst: the first refused ones are held and, behind them,
 * the others wait in the lanes. Ends the owner's turn. Returns how many of the burst were taken.
 */
static __rte_noinline uint16_t
bypass_refused(
	struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n, uint16_t sent)
{
	struct counters *cnt = &s->counters[worker];
	uint16_t held = RTE_MIN(n - sent, BATCH_MAX), rest = n - sent - held;
	uint64_t held_bytes = bytes_of(pkts + sent, held);

	count(&cnt->unbypassed, n - sent);
	count(&cnt->unbypassed_bytes, bytes_of(pkts + sent, n - sent));
	count(&cnt->posted, held);
	count(&cnt->taken, held);
	count(&cnt->posted_bytes, held_bytes);
	count(&cnt->taken_bytes, held_bytes);
	hold(s, cnt, pkts + sent, NULL, held);
	if (rest > 0)
		n = sent + held + post(s, worker, pkts + sent + held, rest);
	leave(s, worker);
	return n;
}

/* The burst of an owner that may not bypass. */
static __rte_noinline uint16_t
enqueue_owned(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	n = post(s, worker, pkts, n);
	drain_owned(s, worker, 0, true);
	return n;
}

/* The burst of a worker that is not the owner, or of a scheduler that is not at rest. */
static __rte_noinline uint16_t
enqueue_slow(
	struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n, uint32_t state)
{
	if ((state & DEACTIVATED) != 0) {
		refuse(&s->counters[worker], pkts, n, false);
		if (take_up(s, worker))
			drain_owned(s, worker, state, true);
		return 0;
	}
	if (n == 0)
		return 0;
	n = post(s, worker, pkts, n);
	kick(s, worker, n);
	return n;
}

/* A bypass ended without the owner being alone: the exclusive form begins, or somebody missed it.
 */
static __rte_noinline void
end_shared(struct sched_nolock *s, uint32_t worker)
{
	if (keep(s, worker) || let_go(s))
		return;
	atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
	drain_owned(s, worker, 0, true);
}

/* Straight to the driver if everything is seen empty, under ownership (rule B3). Owner. */
static inline bool
may_bypass(struct sched_nolock *s, struct rte_mbuf *const *pkts, uint16_t n, uint64_t *bytes)
{
	*bytes = rte_pktmbuf_pkt_len(pkts[0]);
	return likely(all_empty(s)) && (n == 1 || one_band(s, pkts, n, bytes));
}

static inline uint16_t
bypass(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n, uint64_t bytes)
{
	struct counters *cnt = &s->counters[worker];

	SCHED_NOLOCK_STEP(BYPASS);
	count(&cnt->bypassed, n);
	count(&cnt->bypassed_bytes, bytes);
	return s->tx(s->tx_arg, pkts, n);
}

/*
 * The bare path of a worker that kept the ownership. Only itself makes it the keeper; the control
 * thread takes that away a grace period after it has set RESET, which this call has seen not set.
 */
static __rte_noinline uint16_t
enqueue_kept(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	uint64_t bytes;
	uint16_t sent;

	/* The driver may come back into here: it finds somebody else the owner. */
	atomic_store_explicit(&s->keeper, NOBODY, memory_order_relaxed);
	SCHED_NOLOCK_STEP(OWN);
	if (unlikely(!may_bypass(s, pkts, n, &bytes)))
		return enqueue_owned(s, worker, pkts, n);
	if (unlikely((sent = bypass(s, worker, pkts, n, bytes)) < n))
		return bypass_refused(s, worker, pkts, n, sent);
	/* Release: as in keep(). RESET need not be looked at: the next call does. */
	atomic_store_explicit(&s->keeper, worker, memory_order_release);
	return n;
}

/* The bare path of a queue that is shared and at rest. */
static __rte_noinline uint16_t
enqueue_idle(struct sched_nolock *s, uint32_t worker, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t state = 0;
	uint64_t bytes;
	uint16_t sent;

	if (unlikely(!atomic_compare_exchange_strong_explicit(
		    &s->state, &state, OWNED, memory_order_seq_cst, memory_order_relaxed)))
		return enqueue_slow(s, worker, pkts, n, state);
	SCHED_NOLOCK_STEP(OWN);
	if (unlikely(!may_bypass(s, pkts, n, &bytes)))
		return enqueue_owned(s, worker, pkts, n);
	if (unlikely((sent = bypass(s, worker, pkts, n, bytes)) < n))
		return bypass_refused(s, worker, pkts, n, sent);
	state = OWNED;
	if (unlikely(atomic_load_explicit(&s->exclusive, memory_order_relaxed) == worker) ||
		unlikely(!atomic_compare_exchange_strong_explicit(
			&s->state, &state, 0, memory_order_seq_cst, memory_order_relaxed)))
		end_shared(s, worker);
	return n;
}

uint16_t
sched_nolock_enqueue(
	struct sched_nolock *s, unsigned int worker, struct rte_mbuf **pkts, uint16_t n)
{
	/* Acquire: active again means that what was done while it was not is seen. */
	uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);

	if (likely((unsigned int)n - 1 < s->bypass_max)) {
		if (state == 0)
			return enqueue_idle(s, worker, pkts, n);
		if (state == OWNED &&
			atomic_load_explicit(&s->keeper, memory_order_relaxed) == worker)
			return enqueue_kept(s, worker, pkts, n);
	}
	return enqueue_slow(s, worker, pkts, n, state);
}

unsigned int
sched_nolock_drain(struct sched_nolock *s, unsigned int worker)
{
	struct counters *cnt = &s->counters[worker];
	/* Acquire is enough to notice; who drains looks again. */
	uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
	bool posted = cnt->posted_since;

	cnt->posted_since = false;
	if (likely((state & (MISSED | RESET)) == 0))
		return 0;
	if (take_up(s, worker)) {
		state = atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
		return drain_owned(s, worker, state, false);
	}
	if ((state & MISSED) == 0 || (state & (OWNED | RESET)) != 0)
		return 0;
	/* It still sends itself, and will want a turn when it has a batch. */
	if (cnt->contended > 0 && posted)
		return 0;
	state = try_own(s, state, MISSED);
	if ((state & OWNED) != 0)
		return 0;
	SCHED_NOLOCK_STEP(OWN);
	return drain_owned(s, worker, state, false);
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
