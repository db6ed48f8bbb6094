/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <rte_common.h>

#include "csum_action/impl_list.h"

const struct csum_impl *
csum_impl_get(unsigned int i)
{
	return i == 0 ? &csum_impl_portable : NULL;
}

const struct csum_impl *
csum_impl_best(void)
{
	const struct csum_impl *best = NULL, *impl;
	unsigned int i;

	for (i = 0; (impl = csum_impl_get(i)) != NULL; i++)
		best = impl;
	return best;
}
