/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Every implementation's loops against bytewise ones: each length from 0 to 9216 at each alignment
 * within a cache line, each length up to the end of a readable page and down to the start of one,
 * each split in two, and the most that carries can do.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "csum_action/impl.h"
#include "csum_action/update.h"
#include "support.h"

#define LENGTH_MAX 9216
#define PAGE 4096
#define SLOW_ALIGNMENTS 4 /* of the portable CRC */

/* Readable bytes between two pages that are not. */
static uint8_t *room;
static const size_t room_len = 4 * PAGE;

/* Bytewise, one byte more at a time. */
struct slow {
	uint32_t sum; /* folded, network order: the first byte is the high one */
	uint32_t crc;
	size_t n;
};

static void
slow_add(struct slow *s, uint8_t byte)
{
	int i;

	s->sum += s->n % 2 == 0 ? (uint32_t)byte << 8 : byte;
	if (s->sum > 0xffff)
		s->sum -= 0xffff;
	s->crc ^= byte;
	for (i = 0; i < 8; i++)
		s->crc = (s->crc & 1) != 0 ? s->crc >> 1 ^ 0x82f63b78 : s->crc >> 1;
	s->n++;
}

static void
expect_sum(const struct csum_impl *impl, const struct slow *s, const uint8_t *p)
{
	uint64_t sum = impl->sum(p, s->n);

	if (rte_be_to_cpu_16(csum_fold(sum)) != s->sum || sum >> 48 != 0)
		fail_msg("%s: sum of %zu bytes at %p", impl->name, s->n, (const void *)p);
}

static void
expect_crc(const struct csum_impl *impl, const struct slow *s, const uint8_t *p)
{
	if (impl->crc32c(UINT32_MAX, p, s->n) != s->crc)
		fail_msg("%s: CRC32c of %zu bytes at %p", impl->name, s->n, (const void *)p);
}

/* *state is the implementation. */
static void
csum_A27_every_length_and_alignment(void **state)
{
	const struct csum_impl *impl = *state;
	size_t align, len;

	for (align = 0; align < 64; align++) {
		struct slow s = { .crc = UINT32_MAX };
		const uint8_t *p = room + align;

		for (len = 0; len <= LENGTH_MAX; len++) {
			expect_sum(impl, &s, p);
			if (impl != csum_impl_get(0) || align < SLOW_ALIGNMENTS)
				expect_crc(impl, &s, p);
			slow_add(&s, p[len]);
		}
	}
}

static void
csum_A27_nothing_read_outside(void **state)
{
	const struct csum_impl *impl = *state;
	size_t len;

	for (len = 0; len <= LENGTH_MAX; len++) {
		impl->sum(room, len);
		impl->sum(room + room_len - len, len);
		impl->crc32c(0, room, len);
		impl->crc32c(0, room + room_len - len, len);
	}
}

static void
csum_A27_every_split(void **state)
{
	static const uint32_t lengths[] = { 1, 2, 3, 63, 64, 65, 127, 128, 300, 767, 768, 1499,
		1500, 9215, 9216 };
	const struct csum_impl *impl = *state;
	struct rte_mbuf m[2] = { { .nb_segs = 2 }, { .nb_segs = 1 } };
	uint32_t crc, cut, len;
	unsigned int i;
	size_t n;

	m[0].next = &m[1];
	for (i = 0; i < RTE_DIM(lengths); i++) {
		struct slow s = { .crc = UINT32_MAX };

		len = lengths[i];
		for (n = 0; n < len; n++)
			slow_add(&s, room[n]);
		for (cut = 0; cut <= len; cut++) {
			m[0].buf_addr = room;
			m[1].buf_addr = room + cut;
			m[0].data_len = (uint16_t)cut;
			m[1].data_len = (uint16_t)(len - cut);
			m[0].pkt_len = len;
			if (rte_be_to_cpu_16(csum_range(impl, m, 0, len)) != s.sum)
				fail_msg("%s: %u bytes cut at %u", impl->name, len, cut);
			crc = impl->crc32c(UINT32_MAX, room, cut);
			if (impl->crc32c(crc, room + cut, len - cut) != s.crc)
				fail_msg("%s: CRC of %u bytes cut at %u", impl->name, len, cut);
		}
	}
}

/* Bytes that are all 0xff: an odd one more is 0xff00, and all ones are the other zero. */
static void
expect_ones(const struct csum_impl *impl, const uint8_t *ones, size_t len)
{
	uint16_t sum = csum_fold(impl->sum(ones, len));

	assert_int_equal(rte_be_to_cpu_16(sum), len % 2 == 0 ? 0xffff : 0xff00);
}

static void
csum_A27_most_carries(void **state)
{
	const struct csum_impl *impl = *state;
	uint8_t *ones = malloc(CSUM_SUM_MAX);
	size_t len;

	memset(ones, 0xff, CSUM_SUM_MAX);
	for (len = CSUM_SUM_MAX; len > CSUM_SUM_MAX - 300; len--)
		expect_ones(impl, ones, len);
	for (len = 1; len < 3000; len++)
		expect_ones(impl, ones, len);
	memset(ones, 0, CSUM_SUM_MAX);
	assert_true(impl->sum(ones, CSUM_SUM_MAX) == 0);
	free(ones);
	assert_int_equal(csum_fold(UINT64_MAX), 0xffff);
	assert_int_equal(csum_fold(0xffff), 0xffff);
	assert_int_equal(csum_fold(0x10000), 1);
	assert_int_equal(csum_fold(UINT64_C(0xffffffffffff0000)), 0xffff);
	assert_int_equal(csum_fold(UINT64_C(0xfffeffff00010000)), 0xffff);
	assert_int_equal(csum_fold(0), 0);
}

static void
csum_impl_best_is_among_them(void **state)
{
	const struct csum_impl *best = csum_impl_best(), *impl;
	unsigned int i;

	(void)state;
	for (i = 0; (impl = csum_impl_get(i)) != NULL; i++)
		if (impl == best)
			return;
	fail_msg("%s is not among those this CPU runs", best->name);
}

int
main(void)
{
	struct CMUnitTest tests[64];
	const struct csum_impl *impl;
	unsigned int i, n = 0;
	uint8_t *area;
	size_t at;

	test_eal_init("csum-loops", "0");
	area = mmap(NULL, room_len + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	room = area + PAGE;
	if (area == MAP_FAILED || mprotect(room, room_len, PROT_READ | PROT_WRITE) != 0) {
		perror("mmap");
		return 1;
	}
	for (at = 0; at < room_len; at++)
		room[at] = (uint8_t)(rte_bswap32((uint32_t)at * 2654435761u) >> 3 |
			(at % 7 == 0) * 0xff);
	for (i = 0; (impl = csum_impl_get(i)) != NULL; i++) {
		printf("implementation: %s\n", impl->name);
		tests[n++] = (struct CMUnitTest){ .name = "csum_A27_every_length_and_alignment",
			.test_func = csum_A27_every_length_and_alignment,
			.initial_state = (void *)(uintptr_t)impl };
		tests[n++] = (struct CMUnitTest){ .name = "csum_A27_nothing_read_outside",
			.test_func = csum_A27_nothing_read_outside,
			.initial_state = (void *)(uintptr_t)impl };
		tests[n++] = (struct CMUnitTest){ .name = "csum_A27_every_split",
			.test_func = csum_A27_every_split,
			.initial_state = (void *)(uintptr_t)impl };
		tests[n++] = (struct CMUnitTest){ .name = "csum_A27_most_carries",
			.test_func = csum_A27_most_carries,
			.initial_state = (void *)(uintptr_t)impl };
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(csum_impl_best_is_among_them);
	return _cmocka_run_group_tests("csum loops", tests, n, NULL, NULL) == 0 ? 0 : 1;
}
