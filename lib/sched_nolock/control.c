/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The control thread's side: making, changing, flushing, activating. It may wait; workers do not.
 */

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_pause.h>

#include "sched_nolock/internal.h"

static const uint8_t priomap_linux[SCHED_NOLOCK_PRIO_MAX] = { 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1,
	1, 1, 1 };

void
sched_nolock_conf_pfifo_fast(struct sched_nolock_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->bands = 3;
	memcpy(conf->priomap, priomap_linux, sizeof(conf->priomap));
	conf->limit = SCHED_NOLOCK_LIMIT_DEFAULT;
	conf->budget = SCHED_NOLOCK_BUDGET_DEFAULT;
	conf->priority_offset = -1;
	conf->class_offset = -1;
	conf->socket = SOCKET_ID_ANY;
	conf->bypass = true;
}

static bool
geometry_valid(unsigned int bands, const uint8_t *priomap)
{
	unsigned int i;

	if (bands < 1 || bands > SCHED_NOLOCK_BANDS_MAX)
		return false;
	for (i = 0; i < SCHED_NOLOCK_PRIO_MAX; i++)
		if (priomap[i] >= bands)
			return false;
	return true;
}

/* See internal.h. */
static uint64_t
band_mask(const struct sched_nolock_conf *conf)
{
	int class_at = conf->class_offset - conf->priority_offset;
	uint8_t bytes[sizeof(uint64_t)] = { 0 };
	uint64_t mask;

	if (conf->priority_offset < 0 || class_at < (int)sizeof(uint32_t) ||
		class_at > (int)(sizeof(bytes) - sizeof(uint16_t)))
		return 0;
	memset(bytes, UINT8_MAX, sizeof(uint32_t));
	memset(bytes + class_at, UINT8_MAX, sizeof(uint16_t));
	memcpy(&mask, bytes, sizeof(mask));
	return mask;
}

struct sched_nolock *
sched_nolock_create(const struct sched_nolock_conf *conf)
{
	struct sched_nolock *s;
	struct bands *bands;

	if (!geometry_valid(conf->bands, conf->priomap) || conf->n_workers == 0 ||
		conf->n_workers > SCHED_NOLOCK_WORKERS_MAX || conf->tx == NULL ||
		conf->drop == NULL) {
		rte_errno = EINVAL;
		return NULL;
	}
	s = rte_zmalloc_socket("sched_nolock", sizeof(*s), RTE_CACHE_LINE_SIZE, conf->socket);
	if (s == NULL)
		goto no_sched;
	s->counters = rte_zmalloc_socket("sched_nolock_counters",
		(conf->n_workers + 1) * sizeof(s->counters[0]), RTE_CACHE_LINE_SIZE, conf->socket);
	if (s->counters == NULL)
		goto no_counters;
	bands = bands_create(
		conf->n_workers, conf->bands, conf->priomap, conf->limit, conf->socket);
	if (bands == NULL)
		goto no_bands;
	bands->sched = s;
	s->conf = *conf;
	if (s->conf.budget == 0)
		s->conf.budget = SCHED_NOLOCK_BUDGET_DEFAULT;
	s->tx = conf->tx;
	s->tx_arg = conf->tx_arg;
	s->drop = conf->drop;
	s->drop_arg = conf->drop_arg;
	s->priority_offset = conf->priority_offset;
	s->class_offset = conf->class_offset;
	s->n_workers = conf->n_workers;
	s->budget = s->conf.budget;
	s->flat = conf->priority_offset < 0 && conf->class_offset < 0;
	s->band_mask = band_mask(conf);
	s->bypass_max = conf->bypass ? BYPASS_MAX : 0;
	s->oldest = bands;
	atomic_init(&s->bands, bands);
	atomic_init(&s->keeper, NOBODY);
	atomic_init(&s->exclusive, NOBODY);
	return s;

no_bands:
	rte_free(s->counters);
no_counters:
	rte_free(s);
no_sched:
	rte_errno = ENOMEM;
	return NULL;
}

static void
grace_over(struct rcu_head *head)
{
	(void)head;
}

/*
 * A keeper that does not come by, because its lcore stopped or serves other queues: RESET has been
 * set, so that a call it begins from now on does not use what it kept; after a grace period no
 * earlier call is under way.
 */
static bool
take_from_keeper(struct sched_nolock *s)
{
	struct rcu_head head;
	uint32_t keeper;

	rcu_defer(s->conf.rcu, &head, grace_over);
	rcu_barrier(s->conf.rcu);
	keeper = atomic_load_explicit(&s->keeper, memory_order_relaxed);
	return keeper != NOBODY &&
		atomic_compare_exchange_strong_explicit(
			&s->keeper, &keeper, NOBODY, memory_order_seq_cst, memory_order_relaxed);
}

/* Becomes the owner, however long it takes. MISSED is cleared before the look, as always. */
static void
acquire(struct sched_nolock *s)
{
	uint64_t patience = rte_get_timer_cycles() + rte_get_timer_hz() / 1000;
	unsigned int spins = 0;
	uint32_t state = atomic_fetch_or_explicit(&s->state, RESET, memory_order_seq_cst) | RESET;

	for (;;) {
		if ((state & OWNED) == 0) {
			if (atomic_compare_exchange_weak_explicit(&s->state, &state,
				    (state & ~(MISSED | LAST)) | OWNED, memory_order_seq_cst,
				    memory_order_relaxed))
				return;
			continue;
		}
		rte_pause();
		if (++spins % 64 == 0) {
			sched_yield();
			if (rte_get_timer_cycles() > patience &&
				atomic_load_explicit(&s->keeper, memory_order_relaxed) != NOBODY &&
				take_from_keeper(s)) {
				atomic_fetch_and_explicit(&s->state, ~MISSED, memory_order_seq_cst);
				return;
			}
		}
		state = atomic_load_explicit(&s->state, memory_order_relaxed);
	}
}

/* Gives it up. Returns true if packets were left, or posted meanwhile by somebody who missed it. */
static bool
release(struct sched_nolock *s, bool left)
{
	uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed), next;

	do {
		next = (state & ~(OWNED | RESET)) | (left ? MISSED : 0);
	} while (!atomic_compare_exchange_weak_explicit(
		&s->state, &state, next, memory_order_seq_cst, memory_order_relaxed));
	return (next & MISSED) != 0;
}

/* Frees the sets that the owner is done with. */
static void
sweep(struct sched_nolock *s)
{
	/* Acquire: the owner's last use comes before. */
	struct bands *set = atomic_exchange_explicit(&s->unlinked, NULL, memory_order_acquire);
	struct bands *next;

	for (; set != NULL; set = next) {
		next = set->next_unlinked;
		bands_free(set);
	}
}

/* The grace period of a replaced set is over. */
static void
bands_closed(struct rcu_head *head)
{
	struct bands *set = RTE_PTR_SUB(head, offsetof(struct bands, rcu_head));

	set->deferred = false;
	if (set->sched == NULL) {
		bands_free(set);
		return;
	}
	/* Release: the last post into it comes before. */
	atomic_store_explicit(&set->closed, true, memory_order_release);
	sweep(set->sched);
}

static void
drop(struct sched_nolock *s, struct rte_mbuf **pkts, size_t n)
{
	uint16_t len;

	for (; n > 0; n -= len, pkts += len) {
		len = RTE_MIN(n, (size_t)BATCH_MAX);
		s->drop(s->drop_arg, pkts, len);
	}
}

/*
 * Owns, takes everything that waits, gives ownership up, then drops it (rule B9). What is posted
 * meanwhile is left: a flush ends however fast packets come. Returns true if something was left.
 */
static bool
flush(struct sched_nolock *s)
{
	struct sched_nolock_stats now;
	struct rte_mbuf **pkts;
	struct batch batch;
	size_t n = 0, max;
	bool left = true;

	acquire(s);
	sched_nolock_stats(s, &now);
	max = now.queued + now.held + BATCH_MAX;
	pkts = malloc(max * sizeof(pkts[0]));
	while (n + BATCH_MAX <= max) {
		sched_nolock_take_all(s, s->n_workers, &batch);
		if (batch.n == 0) {
			left = false;
			break;
		}
		if (pkts != NULL)
			memcpy(pkts + n, batch.pkts, batch.n * sizeof(pkts[0]));
		else
			drop(s, batch.pkts, batch.n);
		n += batch.n;
	}
	left = release(s, left);
	if (pkts != NULL)
		drop(s, pkts, n);
	free(pkts);
	sweep(s);
	return left;
}

void
sched_nolock_destroy(struct sched_nolock *s)
{
	struct bands *set, *next;

	if (s == NULL)
		return;
	while (flush(s))
		;
	for (set = s->oldest; set != NULL; set = next) {
		next = atomic_load_explicit(&set->newer, memory_order_relaxed);
		if (set->deferred)
			set->sched = NULL;
		else
			bands_free(set);
	}
	rte_free(s->counters);
	rte_free(s);
}

void
sched_nolock_flush(struct sched_nolock *s)
{
	flush(s);
}

void
sched_nolock_deactivate(struct sched_nolock *s)
{
	atomic_fetch_or_explicit(&s->state, DEACTIVATED, memory_order_seq_cst);
	/*
	 * Nobody becomes the owner from here on who would send. A worker that read the state before
	 * may still post: until the flush has ended it sets MISSED and this looks again, afterwards
	 * it finds nobody the owner and drops the packets itself (rule B6).
	 */
	while (flush(s))
		;
}

void
sched_nolock_activate(struct sched_nolock *s)
{
	/* Sequentially consistent, as every change of the state. */
	atomic_fetch_and_explicit(&s->state, ~DEACTIVATED, memory_order_seq_cst);
}

int
sched_nolock_change(struct sched_nolock *s, unsigned int n,
	const uint8_t priomap[SCHED_NOLOCK_PRIO_MAX], uint32_t limit)
{
	struct bands *set = atomic_load_explicit(&s->bands, memory_order_relaxed), *next;

	sweep(s);
	if (!geometry_valid(n, priomap))
		return -EINVAL;
	if (n == set->n && memcmp(priomap, set->priomap, sizeof(set->priomap)) == 0)
		bands_set_limit(set, limit);
	else {
		if (s->conf.rcu == NULL)
			return -EINVAL;
		next = bands_create(s->n_workers, n, priomap, limit, s->conf.socket);
		if (next == NULL)
			return -ENOMEM;
		next->sched = s;
		/* Linked before it can be posted into: who sees a post in it finds it. */
		atomic_store_explicit(&set->newer, next, memory_order_seq_cst);
		atomic_store_explicit(&s->bands, next, memory_order_seq_cst);
		set->deferred = true;
		rcu_defer(s->conf.rcu, &set->rcu_head, bands_closed);
	}
	s->conf.bands = n;
	memcpy(s->conf.priomap, priomap, sizeof(s->conf.priomap));
	s->conf.limit = limit;
	return 0;
}

int
sched_nolock_set_exclusive(struct sched_nolock *s, int worker)
{
	if (worker >= 0 && ((unsigned int)worker >= s->n_workers || s->conf.rcu == NULL))
		return -EINVAL;
	acquire(s);
	/* Under ownership: only an owner reads it. */
	atomic_store_explicit(
		&s->exclusive, worker < 0 ? NOBODY : (uint32_t)worker, memory_order_relaxed);
	release(s, true);
	return 0;
}

void
sched_nolock_mark(struct sched_nolock *s)
{
	struct bands *set;

	acquire(s);
	s->mark++;
	s->mark_taken = false;
	for (set = s->oldest; set != NULL; set = newer(set)) {
		set->mark = s->mark;
		bands_mark(set);
	}
	release(s, true);
}

/* Packets that have come out of the lanes since the beginning; *gone: of those, sent or dropped.
 * Owner: between turns what is not gone is held. */
static uint64_t
taken(const struct sched_nolock *s, uint64_t *gone)
{
	uint64_t n = 0;
	unsigned int w;

	*gone = 0;
	for (w = 0; w <= s->n_workers; w++) {
		const struct counters *cnt = &s->counters[w];

		n += atomic_load_explicit(&cnt->taken, memory_order_relaxed);
		*gone += atomic_load_explicit(&cnt->sent, memory_order_relaxed) +
			atomic_load_explicit(&cnt->flushed, memory_order_relaxed);
	}
	return n;
}

/*
 * As the owner, so that nobody has packets in hand. They leave the lanes in order, and in that
 * order they are sent: those that the driver refuses go before anything else is taken, and a flush
 * begins with them (B5). So once the lanes are beyond the mark, and as many packets are gone as had
 * been taken by then, all from before the mark are among them; with them those that were held when
 * it was made, which were taken still earlier. A set that the mark does not know is younger; one
 * that has been unlinked was empty.
 */
bool
sched_nolock_passed(struct sched_nolock *s)
{
	const struct bands *set;
	uint64_t out, gone;
	bool passed;

	acquire(s);
	out = taken(s, &gone);
	if (!s->mark_taken) {
		s->mark_taken = true;
		for (set = s->oldest; set != NULL; set = newer(set))
			s->mark_taken &= set->mark != s->mark || bands_passed(set);
		s->mark_out = out;
	}
	passed = s->mark_taken && gone >= s->mark_out;
	release(s, true);
	return passed;
}

int
sched_nolock_exclusive(const struct sched_nolock *s)
{
	uint32_t worker = atomic_load_explicit(&s->exclusive, memory_order_relaxed);

	return worker == NOBODY ? -1 : (int)worker;
}

const struct sched_nolock_conf *
sched_nolock_conf(const struct sched_nolock *s)
{
	return &s->conf;
}
