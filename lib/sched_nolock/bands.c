/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <string.h>

#include <rte_malloc.h>
#include <rte_memory.h>

#include "sched_nolock/bands.h"

#define QUANTUM 16 /* packets of one lane before the next worker's of the same band */
#define LEAD 256 /* packets by which a worker may get ahead of others that wait */

static struct segment *
segment_create(uint32_t start, uint32_t size, int socket)
{
	struct segment *seg;

	seg = rte_zmalloc_socket("sched_nolock_segment",
		sizeof(*seg) + size * (sizeof(seg->pkts[0]) + sizeof(seg->lens[0])),
		RTE_CACHE_LINE_SIZE, socket);
	if (seg == NULL)
		return NULL;
	seg->start = start;
	seg->mask = size - 1;
	seg->lens = (uint32_t *)&seg->pkts[size];
	return seg;
}

static void
segments_free(struct segment *seg)
{
	struct segment *next;

	for (; seg != NULL; seg = next) {
		next = atomic_load_explicit(&seg->next, memory_order_relaxed);
		rte_free(seg);
	}
}

void
bands_free(struct bands *bands)
{
	struct segment *seg;
	unsigned int w, b;

	if (bands == NULL)
		return;
	while ((seg = bands->spent) != NULL) {
		bands->spent = seg->spent;
		rte_free(seg);
	}
	for (w = 0; bands->senders != NULL && w < bands->n_workers; w++)
		for (b = 0; b < bands->n; b++)
			segments_free(bands->senders[w].from[b]);
	rte_free(bands->senders);
	rte_free(bands);
}

static int
bands_fill(struct bands *bands)
{
	uint32_t limit = atomic_load_explicit(&bands->limit, memory_order_relaxed);
	uint32_t size = limit == 0 ? SEGMENT_FIRST : RTE_MIN(limit, (uint32_t)SEGMENT_FIRST_MAX);
	struct sender *snd;
	unsigned int w, b;

	for (w = 0; w < bands->n_workers; w++) {
		snd = &bands->senders[w];
		for (b = 0; b < bands->n; b++) {
			snd->into[b] = segment_create(0, rte_align32pow2(size), bands->socket);
			if (snd->into[b] == NULL)
				return -1;
			snd->from[b] = snd->into[b];
		}
	}
	return 0;
}

struct bands *
bands_create(
	unsigned int n_workers, unsigned int n, const uint8_t *priomap, uint32_t limit, int socket)
{
	struct bands *bands;

	bands = rte_zmalloc_socket("sched_nolock_bands",
		sizeof(*bands) + n_workers * sizeof(bands->looks[0]), RTE_CACHE_LINE_SIZE, socket);
	if (bands == NULL)
		return NULL;
	bands->n = n;
	bands->n_workers = n_workers;
	bands->socket = socket;
	memcpy(bands->priomap, priomap, sizeof(bands->priomap));
	bands_set_limit(bands, limit);
	bands->senders = rte_zmalloc_socket("sched_nolock_senders",
		n_workers * sizeof(bands->senders[0]), RTE_CACHE_LINE_SIZE, socket);
	if (bands->senders == NULL || bands_fill(bands) != 0) {
		bands_free(bands);
		return NULL;
	}
	return bands;
}

void
bands_set_limit(struct bands *bands, uint32_t limit)
{
	uint32_t share = limit == 0 ? UINT32_MAX : RTE_MAX(limit / bands->n_workers, 1u);

	/* Relaxed: a producer that still goes by the old limit is early by one burst, no more. */
	atomic_store_explicit(&bands->limit, limit, memory_order_relaxed);
	atomic_store_explicit(&bands->share, share, memory_order_relaxed);
}

/* Packets of one band in the lanes of all workers. Heads and tails move meanwhile: near enough. */
static uint32_t
band_count(const struct bands *bands, unsigned int band)
{
	uint32_t n, sum = 0;
	unsigned int w;

	for (w = 0; w < bands->n_workers; w++) {
		const struct sender *snd = &bands->senders[w];

		n = atomic_load_explicit(&snd->tail[band], memory_order_relaxed) -
			atomic_load_explicit(&snd->head[band], memory_order_relaxed);
		if ((int32_t)n > 0)
			sum += n;
	}
	return sum;
}

/*
 * How many of n more packets the limit lets worker w add to the `used` it has. Its share of the
 * limit is its own; beyond that the whole band counts.
 */
static uint32_t
allowed(struct bands *bands, unsigned int band, uint32_t used, uint32_t n)
{
	uint32_t limit = atomic_load_explicit(&bands->limit, memory_order_relaxed);
	uint32_t share = atomic_load_explicit(&bands->share, memory_order_relaxed);
	uint32_t total, own, all;

	if (limit == 0 || used + n <= share)
		return n;
	total = band_count(bands, band);
	own = used < share ? share - used : 0;
	all = total < limit ? limit - total : 0;
	all = RTE_MAX(own, all);
	return RTE_MIN(n, all);
}

static struct segment *
segment_grow(struct bands *bands, struct sender *snd, unsigned int band, uint32_t tail, uint32_t n)
{
	struct segment *seg = snd->into[band], *more;
	uint32_t size = 2 * (seg->mask + 1);

	while (size < n)
		size *= 2;
	if ((more = segment_create(tail, size, bands->socket)) == NULL)
		return NULL;
	seg->end = tail;
	/* Release: whoever sees `more` sees where it begins. */
	atomic_store_explicit(&seg->next, more, memory_order_release);
	snd->into[band] = more;
	return more;
}

unsigned int
bands_post(struct bands *bands, unsigned int w, unsigned int band, struct rte_mbuf **pkts,
	unsigned int n)
{
	struct sender *snd = &bands->senders[w];
	struct segment *seg = snd->into[band];
	uint32_t tail = atomic_load_explicit(&snd->tail[band], memory_order_relaxed);
	uint32_t share = atomic_load_explicit(&bands->share, memory_order_relaxed);
	uint32_t base, i, at;

	/* The head as last seen is a bound from below: look again only when it is not enough. */
	if (tail - snd->head_seen[band] + n > RTE_MIN(seg->mask + 1, share)) {
		/* Acquire: the owner has read what was in the slots up to its head. */
		snd->head_seen[band] = atomic_load_explicit(&snd->head[band], memory_order_acquire);
		n = allowed(bands, band, tail - snd->head_seen[band], n);
		base = snd->head_seen[band];
		if ((int32_t)(base - seg->start) < 0)
			base = seg->start;
		if (tail - base + n > seg->mask + 1 &&
			(seg = segment_grow(bands, snd, band, tail, n)) == NULL) {
			seg = snd->into[band];
			n = seg->mask + 1 - (tail - base);
		}
	}
	for (i = 0; i < n; i++) {
		at = (tail + i) & seg->mask;
		seg->pkts[at] = pkts[i];
		seg->lens[at] = rte_pktmbuf_pkt_len(pkts[i]);
	}
	/* Release: the slots before the tail that covers them. */
	atomic_store_explicit(&snd->tail[band], tail + n, memory_order_release);
	return n;
}

unsigned int
bands_take_lane(struct bands *bands, unsigned int w, unsigned int band, struct batch *batch,
	unsigned int max)
{
	struct sender *snd = &bands->senders[w];
	struct segment *seg = snd->from[band], *next;
	uint32_t head = atomic_load_explicit(&snd->head[band], memory_order_relaxed);
	/* Acquire: the slots, and a segment linked, before this tail. */
	uint32_t tail = atomic_load_explicit(&snd->tail[band], memory_order_acquire);
	uint32_t n, i, at;

	if (head == tail)
		return 0;
	if ((next = atomic_load_explicit(&seg->next, memory_order_acquire)) != NULL) {
		while (next != NULL && head == seg->end) {
			seg->spent = bands->spent;
			bands->spent = seg;
			seg = snd->from[band] = next;
			next = atomic_load_explicit(&seg->next, memory_order_acquire);
		}
		if (next != NULL && (int32_t)(tail - seg->end) > 0)
			tail = seg->end;
	}
	n = RTE_MIN(tail - head, max);
	for (i = 0; i < n; i++) {
		at = (head + i) & seg->mask;
		batch->pkts[batch->n] = seg->pkts[at];
		batch->lens[batch->n++] = seg->lens[at];
	}
	bands->looks[w].served += n;
	/* Release: the slots were read before the worker may fill them again. */
	atomic_store_explicit(&snd->head[band], head + n, memory_order_release);
	return n;
}

/*
 * True if worker w has a packet in a set older than `bands`. Once one of its packets was seen in
 * `bands`, it posts into no older set any more, so a "no" stays true.
 */
static bool
waits_in_older(const struct bands *bands, const struct bands *oldest, unsigned int w)
{
	const struct bands *set;
	unsigned int b;

	for (set = oldest; set != bands;
		set = atomic_load_explicit(&set->newer, memory_order_seq_cst))
		for (b = 0; b < set->n; b++)
			if (atomic_load_explicit(&set->senders[w].tail[b], memory_order_acquire) !=
				atomic_load_explicit(
					&set->senders[w].head[b], memory_order_relaxed))
				return true;
	return false;
}

/* One turn through the lanes of a band. Returns how many packets it took. */
static unsigned int
take_turn(struct bands *bands, struct bands *oldest, unsigned int band, struct batch *batch,
	unsigned int max)
{
	unsigned int i, w = bands->turn[band], sum = 0;

	for (i = 0; i < bands->n_workers && batch->n < max; i++) {
		if (bands->looks[w].gen != bands->looks[w].seen) {
			if (bands != oldest && waits_in_older(bands, oldest, w))
				batch->again = true;
			else
				sum += bands_take_lane(bands, w, band, batch,
					RTE_MIN(max - batch->n, (unsigned int)QUANTUM));
		}
		if (++w == bands->n_workers)
			w = 0;
	}
	bands->turn[band] = w;
	return sum;
}

/*
 * True if self has packets, others wait too and none of them is far behind self. Who comes after a
 * silence is not owed for it.
 */
static bool
may_go_first(struct bands *bands, unsigned int self)
{
	uint64_t mine = bands->looks[self].served;
	bool wait = false, first = true;
	unsigned int w;

	if (bands->looks[self].gen == bands->looks[self].seen)
		return false;
	for (w = 0; w < bands->n_workers; w++) {
		if (w == self || bands->looks[w].gen == bands->looks[w].seen)
			continue;
		wait = true;
		if (bands->looks[w].served + LEAD < mine) {
			bands->looks[w].served =
				RTE_MAX(bands->looks[w].served, mine - RTE_MIN(mine, 2 * LEAD));
			first = false;
		}
	}
	return wait && first;
}

/* True if a worker has packets in a band from `band` on. */
static bool
waits_from(const struct bands *bands, unsigned int w, unsigned int band)
{
	const struct sender *snd = &bands->senders[w];

	for (; band < bands->n; band++)
		if (atomic_load_explicit(&snd->tail[band], memory_order_relaxed) !=
			atomic_load_explicit(&snd->head[band], memory_order_relaxed))
			return true;
	return false;
}

/* Self's packets only; and others' that must go before some of them (rule B8). */
static void
take_own(struct bands *bands, struct bands *oldest, unsigned int self, struct batch *batch,
	unsigned int max)
{
	unsigned int b;

	for (b = 0; b < bands->n; b++) {
		while (batch->n < max && bands_take_lane(bands, self, b, batch, max - batch->n) > 0)
			;
		if (batch->n == max)
			return;
		if (!waits_from(bands, self, b + 1))
			break;
		while (batch->n < max && take_turn(bands, oldest, b, batch, max) > 0)
			;
	}
	/* Self posts nothing meanwhile: its lanes are empty. */
	bands->looks[self].seen = bands->looks[self].gen;
	batch->left = true;
}

void
bands_take(struct bands *bands, struct bands *oldest, unsigned int self, struct batch *batch,
	unsigned int max)
{
	unsigned int w, b;
	bool any = false;

	for (w = 0; w < bands->n_workers; w++) {
		/* Sequentially consistent: the look (PROOF.md). */
		bands->looks[w].gen =
			atomic_load_explicit(&bands->senders[w].gen, memory_order_seq_cst);
		any |= bands->looks[w].gen != bands->looks[w].seen;
	}
	if (!any)
		return;
	if (self < bands->n_workers && bands == oldest && may_go_first(bands, self)) {
		take_own(bands, oldest, self, batch, max);
		return;
	}
	for (b = 0; b < bands->n; b++)
		while (batch->n < max && take_turn(bands, oldest, b, batch, max) > 0)
			;
	if (batch->n == max || batch->again)
		return;
	/* Every lane was found empty after its gen was loaded: all up to it is taken. */
	for (w = 0; w < bands->n_workers; w++)
		bands->looks[w].seen = bands->looks[w].gen;
}

void
bands_mark(struct bands *bands)
{
	unsigned int w, b;

	for (w = 0; w < bands->n_workers; w++)
		for (b = 0; b < bands->n; b++)
			/* Relaxed: which posts count as earlier is not decided here. */
			bands->senders[w].marked[b] = atomic_load_explicit(
				&bands->senders[w].tail[b], memory_order_relaxed);
}

bool
bands_passed(const struct bands *bands)
{
	const struct sender *snd;
	unsigned int w, b;

	for (w = 0; w < bands->n_workers; w++) {
		snd = &bands->senders[w];
		for (b = 0; b < bands->n; b++)
			if ((int32_t)(atomic_load_explicit(&snd->head[b], memory_order_relaxed) -
				    snd->marked[b]) < 0)
				return false;
	}
	return true;
}
