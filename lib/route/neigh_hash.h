/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ROUTE_NEIGH_HASH_H
#define ROUTE_NEIGH_HASH_H

#include <rte_jhash.h>

#include "internal.h"

static inline uint32_t
neigh_hash(uint32_t ifindex, uint8_t family, const void *addr)
{
	uint32_t word;

	if (family == AF_INET) {
		memcpy(&word, addr, sizeof(word));
		return rte_jhash_1word(word, ifindex) % NEIGH_BUCKETS;
	}
	return rte_jhash(addr, 16, ifindex) % NEIGH_BUCKETS;
}

#endif /* ROUTE_NEIGH_HASH_H */
