/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdbool.h>

#include <rte_common.h>
#include <rte_vect.h>

#include "csum_action/impl_list.h"

#ifdef RTE_ARCH_X86_64

/*
 * What the compiler's run-time library noted at start. rte_cpu_get_flag_enabled() would ask the CPU
 * each time, which traps in a virtual machine: 35 us and more were seen, too long for every new
 * snapshot.
 */
static bool
has_sse4(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

static bool
has_avx2(void)
{
	return has_sse4() && __builtin_cpu_supports("avx2");
}

static bool
has_avx512vl(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("bmi2");
}

static bool
has_avx512(void)
{
	return has_avx512vl() && __builtin_cpu_supports("vpclmulqdq");
}

static const struct candidate {
	const struct csum_impl *impl;
	uint16_t bits; /* width of its registers */
	bool (*usable)(void);
} candidates[] = {
	{ &csum_impl_sse4, RTE_VECT_SIMD_128, has_sse4 },
	{ &csum_impl_avx2, RTE_VECT_SIMD_256, has_avx2 },
	{ &csum_impl_avx512vl, RTE_VECT_SIMD_256, has_avx512vl },
	{ &csum_impl_avx512, RTE_VECT_SIMD_512, has_avx512 },
};

const struct csum_impl *
csum_impl_get(unsigned int i)
{
	if (i == 0)
		return &csum_impl_portable;
	/* each of them needs what the one before it needs */
	return i <= RTE_DIM(candidates) && candidates[i - 1].usable() ? candidates[i - 1].impl
								      : NULL;
}

const struct csum_impl *
csum_impl_best(void)
{
	unsigned int i;

	for (i = RTE_DIM(candidates); i > 0; i--)
		if (candidates[i - 1].bits <= rte_vect_get_max_simd_bitwidth() &&
			candidates[i - 1].usable())
			return candidates[i - 1].impl;
	return &csum_impl_portable;
}

#else

const struct csum_impl *
csum_impl_get(unsigned int i)
{
	return i == 0 ? &csum_impl_portable : NULL;
}

const struct csum_impl *
csum_impl_best(void)
{
	return &csum_impl_portable;
}

#endif
