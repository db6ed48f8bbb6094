/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The replay window against a set of numbers, for every size (D1-D6, D8-D10). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ipsec_cache/ipsec_cache.h"
#include "ipsec_cache/window.h"

#define STEPS 2000 /* random numbers for each size */
#define SEEN 8192 /* more than the largest window, twice */

static uint64_t words[(IPSEC_CACHE_WINDOW_MAX + 126) / 64 * 2];

/* The reference: every number that came, found by its value. */
struct set {
	uint64_t seen[SEEN];
	uint64_t top;
	uint32_t size;
};

static bool
set_has(const struct set *set, uint64_t seq)
{
	return set->seen[seq % SEEN] == seq;
}

static bool
set_allows(const struct set *set, uint64_t seq)
{
	if (set->size == 0 || seq > set->top)
		return true;
	return seq != 0 && set->top - seq < set->size && !set_has(set, seq);
}

static void
set_add(struct set *set, uint64_t seq)
{
	/* numbers of one window never meet; what they push out is older than any window */
	if (seq > set->top)
		set->top = seq;
	set->seen[seq % SEEN] = seq;
}

static uint64_t
random64(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* A number worth trying: near the edges, a little ahead, a jump. */
static uint64_t
choose(uint64_t top, uint32_t size, uint64_t limit)
{
	uint64_t r = random64(), by = r >> 32, seq;

	switch (r % 16) {
	case 0:
		return top;
	case 1:
		return top - (size - 1);
	case 2:
		return top - size;
	case 3:
		return top + 1;
	case 4:
		seq = top + by % 300000;
		break;
	case 5:
	case 6:
	case 7:
		seq = top + by % (2 * size + 130);
		break;
	case 8:
		seq = top + 64 * (by % 70);
		break;
	default:
		return top - by % (size + 70);
	}
	return seq <= limit ? seq : top;
}

static void
compare_with_set(uint32_t size, uint64_t start)
{
	struct ipsec_window win;
	static struct set set;
	unsigned int i;

	memset(&set, 0xff, sizeof(set));
	memset(words, 0x5a, sizeof(words));
	set.size = size;
	set.top = start;
	ipsec_window_init(&win, words, size, start);
	for (i = 0; start != 0 && i < size && i < start; i++)
		set.seen[(start - i) % SEEN] = start - i;
	for (i = 0; i < STEPS; i++) {
		uint64_t seq = choose(set.top, size, UINT64_MAX - 1);
		bool ok = ipsec_window_check(&win, words, seq) == IPSEC_WINDOW_OK;

		if (ok != set_allows(&set, seq))
			fail_msg("size %u step %u: number %llu with top %llu: %d", size, i,
				(unsigned long long)seq, (unsigned long long)set.top, ok);
		/* one in four does not get past its check value */
		if (ok && random64() % 4 != 0) {
			ipsec_window_mark(&win, words, seq);
			set_add(&set, seq);
		}
		assert_int_equal(ipsec_window_top(&win), set.top);
	}
	/* nothing behind the ring was touched */
	for (i = ipsec_window_words(size); i < RTE_DIM(words); i++)
		assert_int_equal(words[i], 0x5a5a5a5a5a5a5a5a);
}

static void
esp_D5_every_size_is_a_set(void **state)
{
	uint32_t size;

	(void)state;
	for (size = 1; size <= IPSEC_CACHE_WINDOW_MAX; size++) {
		compare_with_set(size, 0);
		if (size % 16 < 2)
			compare_with_set(size, random64() >> (random64() % 50));
	}
}

static void
come(struct ipsec_window *win, uint64_t seq, enum ipsec_window_verdict expect)
{
	enum ipsec_window_verdict verdict = ipsec_window_check(win, words, seq);

	if (verdict != expect)
		fail_msg("%llu: %d, not %d", (unsigned long long)seq, verdict, expect);
	if (verdict == IPSEC_WINDOW_OK)
		ipsec_window_mark(win, words, seq);
}

static void
esp_D1_to_D4_edges(void **state)
{
	static const uint32_t sizes[] = { 32, 33, 63, 64, 65, 127, 128, 1000, 4095, 4096 };
	struct ipsec_window win;
	unsigned int i, n;

	(void)state;
	for (i = 0; i < RTE_DIM(sizes); i++) {
		uint64_t w = sizes[i], t = 100000;

		ipsec_window_init(&win, words, sizes[i], 0);
		come(&win, 0, IPSEC_WINDOW_OLD); /* D1 */
		come(&win, 1000, IPSEC_WINDOW_OK); /* D2 */
		come(&win, t, IPSEC_WINDOW_OK);
		come(&win, t - w + 1, IPSEC_WINDOW_OK); /* D3 */
		come(&win, t - w, IPSEC_WINDOW_OLD);
		come(&win, t, IPSEC_WINDOW_SEEN);
		come(&win, t + 1, IPSEC_WINDOW_OK);
		come(&win, t - w + 1, IPSEC_WINDOW_OLD);
		/* D4: every bit of a word, at once and after the window moved */
		for (n = 0; n < 64; n++) {
			come(&win, t + 2 + n, IPSEC_WINDOW_OK);
			come(&win, t + 2 + n, IPSEC_WINDOW_SEEN);
			if (n != 0)
				come(&win, t + 1 + n, IPSEC_WINDOW_SEEN);
		}
		/* D6: jumps */
		come(&win, t + 66 + w, IPSEC_WINDOW_OK);
		come(&win, t + 65, IPSEC_WINDOW_OLD);
		come(&win, t + 20000, IPSEC_WINDOW_OK);
		come(&win, t + 20000 + (UINT64_C(1) << 31), IPSEC_WINDOW_OK);
		come(&win, t + 20000, IPSEC_WINDOW_OLD);
		come(&win, t + 20000 + (UINT64_C(1) << 31) - w + 1, IPSEC_WINDOW_OK);
	}
}

/* Where a window begins after a number: what is up to it counts as seen. */
static void
esp_window_goes_on(void **state)
{
	struct ipsec_window win;
	uint64_t seq, top;

	(void)state;
	for (top = 1; top < 200; top++) {
		ipsec_window_init(&win, words, 64, top);
		for (seq = 1; seq <= top; seq++)
			assert_int_not_equal(ipsec_window_check(&win, words, seq), IPSEC_WINDOW_OK);
		for (seq = top + 130; seq > top; seq--)
			assert_int_equal(ipsec_window_check(&win, words, seq), IPSEC_WINDOW_OK);
		come(&win, top + 3, IPSEC_WINDOW_OK);
		come(&win, top + 1, IPSEC_WINDOW_OK);
		come(&win, top + 2, IPSEC_WINDOW_OK);
		come(&win, top, IPSEC_WINDOW_SEEN);
	}
}

/* The number that was sent is the one that is guessed, right of the left edge and 2^31 ahead. */
static void
esp_D8_high_words(void **state)
{
	static const uint32_t sizes[] = { 1, 32, 64, 1000, 4096 };
	struct ipsec_window win;
	uint64_t top, seq, got;
	unsigned int i, n;

	(void)state;
	for (n = 0; n < 2000000; n++) {
		i = n % RTE_DIM(sizes);
		top = random64() >> (random64() % 64);
		if (n % 4 == 0) /* near where the low half wraps */
			top = (top & ~(uint64_t)UINT32_MAX) + random64() % 10000 - 5000;
		ipsec_window_init(&win, words, sizes[i], 0);
		atomic_store(&win.top, top);
		if (random64() % 2 == 0)
			seq = top + random64() % (UINT64_C(1) << 31);
		else
			seq = top - random64() % sizes[i];
		if ((seq > top) != (seq - top < UINT64_C(1) << 32) && seq != top)
			continue; /* beyond 2^64 or below 0 */
		assert_true(ipsec_window_extend(&win, (uint32_t)seq, &got));
		assert_int_equal(got, seq);
	}
}

static void
esp_D9_no_high_word_below_0_or_above(void **state)
{
	struct ipsec_window win;
	uint64_t got;

	(void)state;
	ipsec_window_init(&win, words, 64, 0);
	atomic_store(&win.top, 10);
	assert_false(ipsec_window_extend(&win, UINT32_MAX, &got));
	assert_false(ipsec_window_extend(&win, (uint32_t)(10 - 63), &got));
	assert_true(ipsec_window_extend(&win, (uint32_t)(10 - 64), &got));
	assert_int_equal(got, UINT32_MAX - 53);
	atomic_store(&win.top, UINT64_MAX - 10);
	assert_true(ipsec_window_extend(&win, UINT32_MAX, &got));
	assert_int_equal(got, UINT64_MAX);
	assert_false(ipsec_window_extend(&win, 5, &got));
}

static void
esp_D10_a_window_that_is_off_tracks_the_high_word(void **state)
{
	struct ipsec_window win;
	uint64_t seq, got;

	(void)state;
	ipsec_window_init(&win, words, 0, 0);
	for (seq = 1; seq < UINT64_C(1) << 36; seq += random64() % (UINT64_C(1) << 30)) {
		uint64_t late = seq - RTE_MIN(seq, random64() % 100000);

		assert_true(ipsec_window_extend(&win, (uint32_t)seq, &got));
		assert_int_equal(got, seq);
		come(&win, got, IPSEC_WINDOW_OK);
		assert_true(ipsec_window_extend(&win, (uint32_t)late, &got));
		assert_int_equal(got, late);
		come(&win, got, IPSEC_WINDOW_OK);
		come(&win, got, IPSEC_WINDOW_OK);
		assert_int_equal(ipsec_window_top(&win), seq);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(esp_D5_every_size_is_a_set),
		cmocka_unit_test(esp_D1_to_D4_edges),
		cmocka_unit_test(esp_window_goes_on),
		cmocka_unit_test(esp_D8_high_words),
		cmocka_unit_test(esp_D9_no_high_word_below_0_or_above),
		cmocka_unit_test(esp_D10_a_window_that_is_off_tracks_the_high_word),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
