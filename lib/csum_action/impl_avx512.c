/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* x86 with AVX-512 (VL, BW, VNNI) and VPCLMULQDQ: sums and CRC in 64 bytes, tails by masked loads.
 */

#include <rte_branch_prediction.h>

#include "csum_action/crc32c_x86.h"
#include "csum_action/impl_list.h"

#define AVX512_TARGET \
	__attribute__((target( \
		"avx2,bmi,avx512f,avx512bw,avx512vl,avx512vnni,vpclmulqdq,bmi2,sse4.2,pclmul")))
#define ALIGN_MIN 768 /* from here on it pays to reach a cache line first */

/* Bytes p[0..len), len <= 64, then zeros. Bytes beyond are not touched. */
static __rte_always_inline AVX512_TARGET __m512i
load_some(const uint8_t *p, size_t len)
{
	return _mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, (unsigned int)len), p);
}

/*
 * Adds the words of x to sum's 32-bit lanes. Words are made signed by turning their top bit, which
 * takes 0x8000 from each; sum_avx512() gives it back.
 */
static __rte_always_inline AVX512_TARGET __m512i
add_words(__m512i sum, __m512i x)
{
	x = _mm512_xor_si512(x, _mm512_set1_epi16(INT16_MIN));
	return _mm512_dpwssd_epi32(sum, x, _mm512_set1_epi16(1));
}

static __rte_always_inline AVX512_TARGET __m512i
add_64(__m512i sum, const uint8_t *p)
{
	return add_words(sum, _mm512_loadu_si512(p));
}

/*
 * The same words at any place of the vector, in one access: what lies in one cache line is read as
 * the whole line, or the hardware would touch the next one too.
 */
static __rte_always_inline AVX512_TARGET __m512i
load_words(const uint8_t *p, size_t len)
{
	size_t off = (uintptr_t)p & 63;

	if (likely(off + len <= 64 && (off & 1) == 0))
		return _mm512_maskz_loadu_epi8(
			_bzhi_u64(UINT64_MAX, (unsigned int)len) << off, p - off);
	return load_some(p, len);
}

/* len <= 64 */
static __rte_always_inline AVX512_TARGET uint64_t
sum_short(const uint8_t *p, size_t len)
{
	__m512i x = load_words(p, len);
	__m256i y;
	__m128i z;

	x = _mm512_add_epi64(
		_mm512_and_si512(x, _mm512_set1_epi64(UINT32_MAX)), _mm512_srli_epi64(x, 32));
	y = _mm256_add_epi64(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
	z = _mm_add_epi64(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
	return (uint64_t)_mm_cvtsi128_si64(z) + (uint64_t)_mm_extract_epi64(z, 1);
}

static __rte_always_inline AVX512_TARGET uint64_t
sum_long(const uint8_t *p, size_t len)
{
	__m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
	uint32_t n = 1; /* vectors added */
	uint64_t two;
	__m256i y;
	__m128i z;

	if (len >= ALIGN_MIN && ((uintptr_t)p & 1) == 0) {
		size_t head = -(uintptr_t)p & 63;

		a = add_words(a, load_some(p, head));
		p += head;
		len -= head;
		n++;
	}
	n += (uint32_t)(len / 64);
	for (; len >= 256; p += 256, len -= 256) {
		a = add_64(a, p);
		b = add_64(b, p + 64);
		c = add_64(c, p + 128);
		d = add_64(d, p + 192);
	}
	if (len >= 128) {
		a = add_64(a, p);
		b = add_64(b, p + 64);
		p += 128;
		len -= 128;
	}
	if (len >= 64) {
		c = add_64(c, p);
		p += 64;
		len -= 64;
	}
	d = add_words(d, load_some(p, len));
	a = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
	y = _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
	z = _mm_add_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
	z = _mm_add_epi32(z, _mm_srli_si128(z, 8));
	two = (uint64_t)_mm_cvtsi128_si64(z);
	/* modulo 2^32, which the sum does not reach: 32 words a vector, 0x8000 each */
	return (uint32_t)((uint32_t)two + (uint32_t)(two >> 32) + (n << 20));
}

static __rte_always_inline AVX512_TARGET uint64_t
sum_avx512(const void *data, size_t len)
{
	return len <= 64 ? sum_short(data, len) : sum_long(data, len);
}

static AVX512_TARGET uint64_t
sum_call(const void *data, size_t len)
{
	return sum_avx512(data, len);
}

/*
 * Folding: a 16-byte lane is carried D bits ahead by two carry-less products, of its first half
 * with x^(D + 63) and of its second with x^(D - 1), modulo the polynomial and reflected.
 */
struct fold {
	uint64_t first, second;
};

static const struct fold fold_2048 = { 0xe9a5d8be00000000, 0x1426a81500000000 };
static const struct fold fold_512 = { 0x1c19243b00000000, 0x75bba45b00000000 };
/* the four lanes of a vector are 384, 256, 128 and 0 bits before its end */
static const struct fold fold_lanes[4] = {
	{ 0xa46ef4aa00000000, 0x6051243f00000000 },
	{ 0x33ccbbbc00000000, 0xa2158b3400000000 },
	{ 0x3743f7bd00000000, 0x3171d43000000000 },
	{ 0, 0 },
};

static __rte_always_inline AVX512_TARGET __m512i
fold_constant(const struct fold *fold)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)fold));
}

static __rte_always_inline AVX512_TARGET __m512i
fold(__m512i x, __m512i by, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00),
		_mm512_clmulepi64_epi128(x, by, 0x11), next, 0x96);
}

/* Four lanes to the register. */
static __rte_always_inline AVX512_TARGET uint32_t
fold_end(__m512i x)
{
	__m512i last = _mm512_maskz_mov_epi64(0xc0, x);
	__m256i y;
	__m128i z;

	x = fold(x, _mm512_loadu_si512(fold_lanes), last);
	y = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
	z = _mm_xor_si128(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
	return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(z)),
		(uint64_t)_mm_extract_epi64(z, 1));
}

/* len >= 128. Apart, so that short calls set up no vectors. */
static __rte_noinline AVX512_TARGET uint32_t
crc32c_long(uint32_t crc, const uint8_t *p, size_t len)
{
	__m512i a, b, c, d, by;

	a = _mm512_xor_si512(
		_mm512_loadu_si512(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	p += 64;
	len -= 64;
	by = fold_constant(&fold_512);
	if (len >= 448) {
		const __m512i far = fold_constant(&fold_2048);

		b = _mm512_loadu_si512(p);
		c = _mm512_loadu_si512(p + 64);
		d = _mm512_loadu_si512(p + 128);
		for (p += 192, len -= 192; len >= 256; p += 256, len -= 256) {
			a = fold(a, far, _mm512_loadu_si512(p));
			b = fold(b, far, _mm512_loadu_si512(p + 64));
			c = fold(c, far, _mm512_loadu_si512(p + 128));
			d = fold(d, far, _mm512_loadu_si512(p + 192));
		}
		a = fold(fold(fold(a, by, b), by, c), by, d);
	}
	for (; len >= 64; p += 64, len -= 64)
		a = fold(a, by, _mm512_loadu_si512(p));
	return crc32c_one(fold_end(a), p, len);
}

static AVX512_TARGET uint32_t
crc32c_call(uint32_t crc, const void *data, size_t len)
{
	return len < 128 ? crc32c_one(crc, data, len) : crc32c_long(crc, data, len);
}

#define PLAIN_SUM sum_avx512
#define PLAIN_TARGET AVX512_TARGET
#include "csum_action/plain.h"

const struct csum_impl csum_impl_avx512 = {
	.name = "avx512",
	.sum = sum_call,
	.crc32c = crc32c_call,
	.plain = plain,
};
