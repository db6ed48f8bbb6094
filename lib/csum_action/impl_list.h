/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_IMPL_LIST_H
#define CSUM_ACTION_IMPL_LIST_H

/* One object a file impl_*.c. */

#include "csum_action/impl.h"

extern const struct csum_impl csum_impl_portable;

#endif /* CSUM_ACTION_IMPL_LIST_H */
