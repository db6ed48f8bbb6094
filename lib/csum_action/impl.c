/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdbool.h>

#include <rte_common.h>
#include <rte_cpuflags.h>
#include <rte_vect.h>

#include "csum_action/impl_list.h"

#ifdef RTE_ARCH_X86_64

static bool
has_all(const enum rte_cpu_flag_t *flags, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (rte_cpu_get_flag_enabled(flags[i]) != 1)
			return false;
	return true;
}

static bool
has_sse4(void)
{
	static const enum rte_cpu_flag_t flags[] = { RTE_CPUFLAG_SSE4_2, RTE_CPUFLAG_PCLMULQDQ };

	return has_all(flags, RTE_DIM(flags));
}

static bool
has_avx2(void)
{
	static const enum rte_cpu_flag_t flags[] = { RTE_CPUFLAG_AVX2 };

	return has_sse4() && has_all(flags, RTE_DIM(flags));
}

static bool
has_avx512(void)
{
	static const enum rte_cpu_flag_t flags[] = { RTE_CPUFLAG_AVX512F, RTE_CPUFLAG_AVX512BW,
		RTE_CPUFLAG_AVX512VL, RTE_CPUFLAG_AVX512VNNI, RTE_CPUFLAG_VPCLMULQDQ,
		RTE_CPUFLAG_BMI2 };

	return has_avx2() && has_all(flags, RTE_DIM(flags));
}

static const struct candidate {
	const struct csum_impl *impl;
	uint16_t bits; /* width of its registers */
	bool (*usable)(void);
} candidates[] = {
	{ &csum_impl_sse4, RTE_VECT_SIMD_128, has_sse4 },
	{ &csum_impl_avx2, RTE_VECT_SIMD_256, has_avx2 },
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
