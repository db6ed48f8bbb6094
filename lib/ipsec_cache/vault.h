/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_VAULT_H
#define IPSEC_CACHE_VAULT_H

/*
 * Memory for objects that hold keys (D26): locked, so that it does not reach the swap, as far as
 * RLIMIT_MEMLOCK lets it be; left out of core dumps; wiped when it is given back. It comes in
 * pieces of 2 MiB that ask for a huge page each, so that 60,000 SAs need some 50 of the TLB's
 * entries.
 *
 * Thread safety: one control thread. Objects are read by anybody.
 */

#include <stddef.h>

#define IPSEC_VAULT_OBJECT_MAX 8192 /* bytes */

struct ipsec_vault;
struct ipsec_vault *ipsec_vault_create(void); /* NULL: no memory */
void ipsec_vault_destroy(struct ipsec_vault *vault); /* wipes everything; NULL accepted */
/* `size` zeros at a multiple of 64, or NULL. */
void *ipsec_vault_alloc(struct ipsec_vault *vault, size_t size);
/* `size` as it was asked for; NULL accepted. */
void ipsec_vault_free(struct ipsec_vault *vault, void *object, size_t size);

#endif /* IPSEC_CACHE_VAULT_H */
