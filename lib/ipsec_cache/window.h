/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_WINDOW_H
#define IPSEC_CACHE_WINDOW_H

/*
 * The replay window of an SA (RFC 4303, 3.4.3 and appendix A), over 64-bit sequence numbers.
 *
 * A ring of words has one bit a number. With `top` the highest number accepted so far, the numbers
 * top - size + 1 .. top are the window: those seen have their bits set. The ring is at least one
 * word longer than the window, so that moving on means clearing whole words, never shifting (RFC
 * 6479's idea): the words between the old top's and the new one's hold nothing that still counts.
 *
 * A number is checked before its packet is decrypted, and checked and marked after its check value
 * was found right: between the two others of the same burst may have been marked.
 *
 * Thread safety: one lcore, the SA's home, calls everything; others may read `top`.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

struct ipsec_window {
	_Atomic uint64_t top; /* highest number accepted; 0: none yet */
	uint32_t size; /* numbers; 0: every number is accepted */
	uint32_t word_mask; /* words of the ring - 1 */
};

enum ipsec_window_verdict {
	IPSEC_WINDOW_OK,
	IPSEC_WINDOW_SEEN,
	IPSEC_WINDOW_OLD, /* left of the window, or a number that cannot be */
};

/* Words of the ring of a window of `size` numbers: a power of two; 0 for none. */
static inline uint32_t
ipsec_window_words(uint32_t size)
{
	/* size numbers lie in at most (size + 126) / 64 words */
	return size == 0 ? 0 : rte_align32pow2((size + 126) / 64);
}

/*
 * Begins after `top`. Numbers up to it count as seen: whoever knows that number without knowing
 * which of those before it had come must not let them come again.
 */
static inline void
ipsec_window_init(struct ipsec_window *win, uint64_t *words, uint32_t size, uint64_t top)
{
	uint32_t n = ipsec_window_words(size);

	atomic_store_explicit(&win->top, top, memory_order_relaxed);
	win->size = size;
	win->word_mask = n == 0 ? 0 : n - 1;
	if (n == 0)
		return;
	memset(words, top == 0 ? 0 : 0xff, n * sizeof(*words));
	if (top != 0)
		words[(top >> 6) & win->word_mask] = UINT64_MAX >> (63 - (top & 63));
}

static inline uint64_t
ipsec_window_top(const struct ipsec_window *win)
{
	return atomic_load_explicit(&win->top, memory_order_relaxed);
}

/*
 * The 64-bit number of a packet that carries its low half (RFC 4303, A2.2): the one at or right of
 * the window's left edge. A window that is off guesses as one of 2^31 numbers would (D10). False:
 * there is no such number, its high half would be -1 or 2^32 (D9).
 */
static inline bool
ipsec_window_extend(const struct ipsec_window *win, uint32_t low, uint64_t *seq)
{
	uint64_t top = ipsec_window_top(win);
	uint64_t size = win->size != 0 ? win->size : UINT64_C(1) << 31;
	uint64_t left, number;

	/* before 2^32 - 1 numbers were seen the edge of a window that is off may lie left of 0 */
	if (win->size == 0 && top < size) {
		*seq = low;
		return true;
	}
	left = top - (size - 1); /* below 0: wraps, as the sum below does */
	number = left + (uint32_t)(low - (uint32_t)left);
	*seq = number;
	return top < size - 1 ? number < left : number >= left;
}

static inline enum ipsec_window_verdict
ipsec_window_check(const struct ipsec_window *win, const uint64_t *words, uint64_t seq)
{
	uint64_t top = ipsec_window_top(win);

	if (win->size == 0)
		return IPSEC_WINDOW_OK;
	if (likely(seq > top))
		return IPSEC_WINDOW_OK;
	if (seq == 0 || top - seq >= win->size)
		return IPSEC_WINDOW_OLD;
	if ((words[(seq >> 6) & win->word_mask] >> (seq & 63) & 1) != 0)
		return IPSEC_WINDOW_SEEN;
	return IPSEC_WINDOW_OK;
}

/* A number that check() says OK to was received. */
static inline void
ipsec_window_mark(struct ipsec_window *win, uint64_t *words, uint64_t seq)
{
	uint64_t top = ipsec_window_top(win), from, to;

	if (likely(seq > top))
		atomic_store_explicit(&win->top, seq, memory_order_relaxed);
	if (win->size == 0)
		return;
	if (seq > top) {
		from = (top >> 6) + 1;
		to = seq >> 6;
		if (to >= from + win->word_mask)
			from = to - win->word_mask; /* all of the ring, once */
		for (; from <= to; from++)
			words[from & win->word_mask] = 0;
	}
	words[(seq >> 6) & win->word_mask] |= UINT64_C(1) << (seq & 63);
}

#endif /* IPSEC_CACHE_WINDOW_H */
