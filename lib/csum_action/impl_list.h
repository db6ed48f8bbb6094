/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_IMPL_LIST_H
#define CSUM_ACTION_IMPL_LIST_H

/* One object a file impl_*.c. */

#include "csum_action/impl.h"

extern const struct csum_impl csum_impl_portable;
extern const struct csum_impl csum_impl_sse4;
extern const struct csum_impl csum_impl_avx2;
extern const struct csum_impl csum_impl_avx512vl;
extern const struct csum_impl csum_impl_avx512;

#endif /* CSUM_ACTION_IMPL_LIST_H */
