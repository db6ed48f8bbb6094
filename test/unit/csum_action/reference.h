/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_CSUM_REFERENCE_H
#define TEST_CSUM_REFERENCE_H

/*
 * What the checksum action must make of a flat frame: bytewise, sharing nothing with the library.
 * reference.py says the same in another language; vectors.c holds both together.
 */

#include <stdint.h>

/* Changes frame[0..len) as "csum flags" must, and returns the name of the reason to be counted. */
const char *reference_update(uint8_t *frame, uint32_t len, uint32_t flags);

#endif /* TEST_CSUM_REFERENCE_H */
