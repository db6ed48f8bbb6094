/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_IMPL_H
#define CSUM_ACTION_IMPL_H

/*
 * The loops that touch every byte, once for each width of vector registers. All give the same
 * results; csum_impl_best() says which is the fastest that this CPU has and that
 * rte_vect_get_max_simd_bitwidth() (EAL's --force-max-simd-bitwidth) allows. It asks the CPU, so
 * ask it once and keep the answer in a snapshot or handle.
 *
 * Thread safety: constant tables and pure functions, but for plain(), which writes packets.
 */

#include <stddef.h>
#include <stdint.h>

struct action_burst;

#define CSUM_SUM_MAX 131072 /* bytes: a sum of more might not fit 32 bits */

struct csum_impl {
	const char *name;
	/*
	 * A number below 2^48 that csum_fold() makes the one's-complement sum of the 16-bit words
	 * of p[0..len) as they lie in memory, an odd last byte followed by 0. It is 0 only if all
	 * bytes are. Reads nothing outside. len at most CSUM_SUM_MAX, any alignment.
	 */
	uint64_t (*sum)(const void *p, size_t len);
	/* The CRC32c register after p[0..len), without the inversions at the start and end. */
	uint32_t (*crc32c)(uint32_t crc, const void *p, size_t len);
	/*
	 * Recomputes what `flags` asks for in those packets of `mask` that are plain (see plain.h).
	 * Returns the others, untouched.
	 */
	uint64_t (*plain)(const struct action_burst *burst, uint64_t mask, uint32_t flags);
};

const struct csum_impl *csum_impl_best(void);

/* The i-th implementation that this CPU can run, the portable one first; NULL beyond the last. For
 * tests and benches. */
const struct csum_impl *csum_impl_get(unsigned int i);

/*
 * A one's-complement sum folded to 16 bits: 0 only if it was 0. Adding a number to itself with its
 * halves exchanged makes, in the upper half, the sum of both halves and the carry of that sum.
 */
static inline uint16_t
csum_fold(uint64_t sum)
{
	uint32_t half;

	sum += sum << 32 | sum >> 32;
	half = (uint32_t)(sum >> 32);
	half += half << 16 | half >> 16;
	return (uint16_t)(half >> 16);
}

#endif /* CSUM_ACTION_IMPL_H */
