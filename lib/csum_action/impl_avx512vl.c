/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * x86 with AVX-512 (VL, BW, VNNI) where EAL allows registers of 256 bits only, as it does unless
 * told otherwise: sums in 32 bytes, tails by masked loads, CRC in three stretches.
 */

#include "csum_action/crc32c_x86.h"
#include "csum_action/impl_list.h"

#define AVX512VL_TARGET \
	__attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni,bmi2,sse4.2,pclmul")))
#define ALIGN_MIN 768 /* from here on it pays to reach half a cache line first */

static __rte_always_inline AVX512VL_TARGET __m256i
load_32(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Those bytes p[i] whose bit is set, else 0. The others are not touched. */
static __rte_always_inline AVX512VL_TARGET __m256i
load_some(const uint8_t *p, uint64_t bits)
{
	return _mm256_maskz_loadu_epi8((__mmask32)bits, p);
}

static __rte_always_inline AVX512VL_TARGET uint64_t
low_bits(size_t n)
{
	return _bzhi_u64(UINT64_MAX, (unsigned int)n);
}

/* As impl_avx512.c: 0x8000 is taken from each word, and given back by sum_long(). */
static __rte_always_inline AVX512VL_TARGET __m256i
add_words(__m256i sum, __m256i x)
{
	x = _mm256_xor_si256(x, _mm256_set1_epi16(INT16_MIN));
	return _mm256_dpwssd_epi32(sum, x, _mm256_set1_epi16(1));
}

/* The sum of 32-bit halves, in 64-bit lanes. */
static __rte_always_inline AVX512VL_TARGET __m256i
halves(__m256i x)
{
	return _mm256_add_epi64(
		_mm256_and_si256(x, _mm256_set1_epi64x(UINT32_MAX)), _mm256_srli_epi64(x, 32));
}

/* len <= 64 */
static __rte_always_inline AVX512VL_TARGET uint64_t
sum_short(const uint8_t *p, size_t len)
{
	uint64_t bits = low_bits(len);
	__m256i x =
		_mm256_add_epi64(halves(load_some(p, bits)), halves(load_some(p + 32, bits >> 32)));
	__m128i y = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

	return (uint64_t)_mm_cvtsi128_si64(y) + (uint64_t)_mm_extract_epi64(y, 1);
}

static __rte_always_inline AVX512VL_TARGET uint64_t
sum_long(const uint8_t *p, size_t len)
{
	__m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
	uint32_t n = 2; /* vectors added */
	uint64_t bits, two;
	__m128i y;

	if (len >= ALIGN_MIN && ((uintptr_t)p & 1) == 0) {
		size_t head = -(uintptr_t)p & 31;

		a = add_words(a, load_some(p, low_bits(head)));
		p += head;
		len -= head;
		n++;
	}
	n += (uint32_t)(len / 64 * 2);
	for (; len >= 128; p += 128, len -= 128) {
		a = add_words(a, load_32(p));
		b = add_words(b, load_32(p + 32));
		c = add_words(c, load_32(p + 64));
		d = add_words(d, load_32(p + 96));
	}
	if (len >= 64) {
		a = add_words(a, load_32(p));
		b = add_words(b, load_32(p + 32));
		p += 64;
		len -= 64;
	}
	bits = low_bits(len);
	c = add_words(c, load_some(p, bits));
	d = add_words(d, load_some(p + 32, bits >> 32));
	a = _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
	y = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
	y = _mm_add_epi32(y, _mm_srli_si128(y, 8));
	two = (uint64_t)_mm_cvtsi128_si64(y);
	/* modulo 2^32, which the sum does not reach: 16 words a vector, 0x8000 each */
	return (uint32_t)((uint32_t)two + (uint32_t)(two >> 32) + (n << 19));
}

static __rte_always_inline AVX512VL_TARGET uint64_t
sum_avx512vl(const void *data, size_t len)
{
	return len <= 64 ? sum_short(data, len) : sum_long(data, len);
}

static AVX512VL_TARGET uint64_t
sum_call(const void *data, size_t len)
{
	return sum_avx512vl(data, len);
}

static AVX512VL_TARGET uint32_t
crc32c_call(uint32_t crc, const void *data, size_t len)
{
	return crc32c_three(crc, data, len);
}

#define PLAIN_SUM sum_avx512vl
#define PLAIN_TARGET AVX512VL_TARGET
#include "csum_action/plain.h"

const struct csum_impl csum_impl_avx512vl = {
	.name = "avx512vl",
	.sum = sum_call,
	.crc32c = crc32c_call,
	.plain = plain,
};
