/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_TAIL_H
#define CSUM_ACTION_TAIL_H

/* The last bytes of a sum, without a loop. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

/* The sum of p[0..len), len < 16. */
static __rte_always_inline uint64_t
csum_tail(const uint8_t *p, size_t len)
{
	uint64_t sum = 0, w8;
	uint32_t w4;
	uint16_t w2;

	if ((len & 8) != 0) {
		memcpy(&w8, p, 8);
		sum += (w8 & 0xffffffff) + (w8 >> 32);
		p += 8;
	}
	if ((len & 4) != 0) {
		memcpy(&w4, p, 4);
		sum += w4;
		p += 4;
	}
	if ((len & 2) != 0) {
		memcpy(&w2, p, 2);
		sum += w2;
		p += 2;
	}
	if ((len & 1) != 0)
		sum += rte_cpu_to_le_16(*p);
	return sum;
}

#endif /* CSUM_ACTION_TAIL_H */
