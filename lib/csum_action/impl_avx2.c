/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* x86 with AVX2: as impl_sse4.c, sums in 32 bytes. */

#include "csum_action/crc32c_x86.h"
#include "csum_action/impl_list.h"
#include "csum_action/tail.h"

#define AVX2_TARGET __attribute__((target("avx2,sse4.2,pclmul")))

static __rte_always_inline AVX2_TARGET __m256i
add_words(__m256i sum, const uint8_t *p)
{
	__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);

	x = _mm256_xor_si256(x, _mm256_set1_epi16(INT16_MIN));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_set1_epi16(1)));
}

static __rte_always_inline AVX2_TARGET __m128i
add_half(__m128i sum, const uint8_t *p)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);

	x = _mm_xor_si128(x, _mm_set1_epi16(INT16_MIN));
	return _mm_add_epi32(sum, _mm_madd_epi16(x, _mm_set1_epi16(1)));
}

static __rte_always_inline AVX2_TARGET uint64_t
sum_avx2(const void *data, size_t len)
{
	__m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
	uint32_t n = (uint32_t)(len / 16);
	const uint8_t *p = data;
	uint64_t two;
	__m128i h;

	for (; len >= 128; p += 128, len -= 128) {
		a = add_words(a, p);
		b = add_words(b, p + 32);
		c = add_words(c, p + 64);
		d = add_words(d, p + 96);
	}
	for (; len >= 32; p += 32, len -= 32)
		a = add_words(a, p);
	a = _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
	h = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
	if ((len & 16) != 0) {
		h = add_half(h, p);
		p += 16;
	}
	h = _mm_add_epi32(h, _mm_srli_si128(h, 8));
	two = (uint64_t)_mm_cvtsi128_si64(h);
	/* modulo 2^32, which the sum does not reach: 8 words a half, 0x8000 each */
	return (uint32_t)((uint32_t)two + (uint32_t)(two >> 32) + (n << 18)) + csum_tail(p, len);
}

static AVX2_TARGET uint64_t
sum_call(const void *data, size_t len)
{
	return sum_avx2(data, len);
}

static AVX2_TARGET uint32_t
crc32c_call(uint32_t crc, const void *data, size_t len)
{
	return crc32c_three(crc, data, len);
}

#define PLAIN_SUM sum_avx2
#define PLAIN_TARGET AVX2_TARGET
#include "csum_action/plain.h"

const struct csum_impl csum_impl_avx2 = {
	.name = "avx2",
	.sum = sum_call,
	.crc32c = crc32c_call,
	.plain = plain,
};
