/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_OFFLOAD_H
#define IPSEC_CACHE_OFFLOAD_H

/* Which device does an SA's work, if any. Thread safety: the control thread's. */

#include "ipsec_cache/sad.h"

/*
 * An SA that is about to be published gets the best that it may have. 0; or, where the SA itself
 * asks for a device, -errno with a sentence that names device, SA and what is lacking: -ENODEV,
 * -EOPNOTSUPP, -EINVAL.
 */
int ipsec_offload_begin(struct ipsec_cache *ic, struct sad_entry *e, const char **why);
/* It goes. */
void ipsec_offload_end(struct sad_entry *e);
/* About once a second: it follows its route, and leaves a device that failed it. */
void ipsec_offload_look(struct ipsec_cache *ic, struct sad_entry *e);
/* What devices said. */
void ipsec_offload_tick(struct ipsec_cache *ic);

#endif /* IPSEC_CACHE_OFFLOAD_H */
