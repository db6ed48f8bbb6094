/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_CRC32C_X86_H
#define CSUM_ACTION_CRC32C_X86_H

/*
 * CRC32c by the crc32 instruction. It takes three cycles and starts every cycle, so three stretches
 * run side by side and are put together by carry-less products.
 */

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "csum_action/crc32c_shift.h"

#define CRC32C_TARGET __attribute__((target("sse4.2,pclmul")))
#define CRC32C_THREE_MIN 144 /* below, one stretch is done sooner */

static __rte_always_inline CRC32C_TARGET uint32_t
crc32c_word(uint32_t crc, const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return (uint32_t)_mm_crc32_u64(crc, w);
}

/* One stretch. */
static __rte_always_inline CRC32C_TARGET uint32_t
crc32c_one(uint32_t crc, const uint8_t *p, size_t len)
{
	uint32_t w4;
	uint16_t w2;

	for (; len >= 8; p += 8, len -= 8)
		crc = crc32c_word(crc, p);
	if ((len & 4) != 0) {
		memcpy(&w4, p, 4);
		crc = _mm_crc32_u32(crc, w4);
		p += 4;
	}
	if ((len & 2) != 0) {
		memcpy(&w2, p, 2);
		crc = _mm_crc32_u16(crc, w2);
		p += 2;
	}
	return (len & 1) != 0 ? _mm_crc32_u8(crc, *p) : crc;
}

/* The product that, put through crc32, moves the register past 8 * n bytes. */
static __rte_always_inline CRC32C_TARGET uint64_t
crc32c_shift(uint32_t crc, size_t n)
{
	return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(
		_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)csum_crc32c_shift[n]), 0));
}

static inline CRC32C_TARGET uint32_t
crc32c_three(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len >= CRC32C_THREE_MIN) {
		size_t n = RTE_MIN(len / 24, (size_t)CSUM_CRC32C_SHIFT_MAX / 2), i;
		uint32_t b = 0, c = 0;

		for (i = 0; i < n; i++, p += 8) {
			crc = crc32c_word(crc, p);
			b = crc32c_word(b, p + 8 * n);
			c = crc32c_word(c, p + 16 * n);
		}
		p += 16 * n;
		len -= 24 * n;
		crc = (uint32_t)_mm_crc32_u64(0, crc32c_shift(crc, 2 * n) ^ crc32c_shift(b, n)) ^ c;
	}
	return crc32c_one(crc, p, len);
}

#endif /* CSUM_ACTION_CRC32C_X86_H */
