/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* For any CPU: 64-bit words, and a CRC by table. */

#include <string.h>

#include "csum_action/crc32c_table.h"
#include "csum_action/impl_list.h"
#include "csum_action/tail.h"

static inline uint64_t
sum_portable(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t sum = 0, more = 0, w[2];

	for (; len >= 16; p += 16, len -= 16) {
		memcpy(w, p, 16);
		sum += (w[0] & 0xffffffff) + (w[0] >> 32);
		more += (w[1] & 0xffffffff) + (w[1] >> 32);
	}
	return sum + more + csum_tail(p, len);
}

static uint32_t
crc32c_portable(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len-- > 0)
		crc = crc >> 8 ^ csum_crc32c_table[(crc ^ *p++) & 0xff];
	return crc;
}

#define PLAIN_SUM sum_portable
#define PLAIN_TARGET
#include "csum_action/plain.h"

const struct csum_impl csum_impl_portable = {
	.name = "portable",
	.sum = sum_portable,
	.crc32c = crc32c_portable,
	.plain = plain,
};
