/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_UNIT_APP_FRAMES_H
#define TEST_UNIT_APP_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UDP from 192.0.2.1 to 198.51.100.2, 4 bytes of payload, padded to 60; both checksums wrong. */
static const uint8_t broken[60] = { 0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 0,
	0, 32, 0x12, 0x34, 0, 0, 64, 17, 0xde, 0xad, 192, 0, 2, 1, 198, 51, 100, 2, 0x03, 0xe8, 0,
	9, 0, 12, 0xbe, 0xef, 'm', 'i', 'l', 'l' };

static inline void
set16(uint8_t *frame, size_t off, uint16_t value)
{
	frame[off] = (uint8_t)(value >> 8);
	frame[off + 1] = (uint8_t)value;
}

/* The sums that scapy 2.5 gives for that frame. */
static inline void
mend(uint8_t *frame, bool ip, bool udp)
{
	if (ip)
		set16(frame, 24, 0x7c62);
	if (udp)
		set16(frame, 40, 0x35d8);
}

#endif /* TEST_UNIT_APP_FRAMES_H */
