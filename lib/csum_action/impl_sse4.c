/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* x86 with SSE4.2 and PCLMULQDQ: sums in 16 bytes, CRC in three stretches. */

#include "csum_action/crc32c_x86.h"
#include "csum_action/impl_list.h"
#include "csum_action/tail.h"

#define SSE4_TARGET __attribute__((target("sse4.2,pclmul")))

/*
 * Adds the words of x. Words are made signed by turning their top bit, which takes 0x8000 from
 * each, for the instruction that adds pairs of them takes signed ones; sum_sse4() gives it back.
 */
static __rte_always_inline SSE4_TARGET __m128i
add_words(__m128i sum, const uint8_t *p)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);

	x = _mm_xor_si128(x, _mm_set1_epi16(INT16_MIN));
	return _mm_add_epi32(sum, _mm_madd_epi16(x, _mm_set1_epi16(1)));
}

static __rte_always_inline SSE4_TARGET uint64_t
sum_sse4(const void *data, size_t len)
{
	__m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
	uint32_t n = (uint32_t)(len / 16);
	const uint8_t *p = data;
	uint64_t two;

	for (; len >= 64; p += 64, len -= 64) {
		a = add_words(a, p);
		b = add_words(b, p + 16);
		c = add_words(c, p + 32);
		d = add_words(d, p + 48);
	}
	for (; len >= 16; p += 16, len -= 16)
		a = add_words(a, p);
	a = _mm_add_epi32(_mm_add_epi32(a, b), _mm_add_epi32(c, d));
	a = _mm_add_epi32(a, _mm_srli_si128(a, 8));
	two = (uint64_t)_mm_cvtsi128_si64(a);
	/* modulo 2^32, which the sum does not reach: 8 words a vector, 0x8000 each */
	return (uint32_t)((uint32_t)two + (uint32_t)(two >> 32) + (n << 18)) + csum_tail(p, len);
}

static SSE4_TARGET uint64_t
sum_call(const void *data, size_t len)
{
	return sum_sse4(data, len);
}

static SSE4_TARGET uint32_t
crc32c_call(uint32_t crc, const void *data, size_t len)
{
	return crc32c_three(crc, data, len);
}

#define PLAIN_SUM sum_sse4
#define PLAIN_TARGET SSE4_TARGET
#include "csum_action/plain.h"

const struct csum_impl csum_impl_sse4 = {
	.name = "sse4",
	.sum = sum_call,
	.crc32c = crc32c_call,
	.plain = plain,
};
