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
	uint32_t words[4];

	/* Addresses lie anywhere in a packet; DPDK's hash of bytes loads words from where they lie.
	 */
	if (family == AF_INET) {
		memcpy(words, addr, sizeof(words[0]));
		return rte_jhash_1word(words[0], ifindex) % NEIGH_BUCKETS;
	}
	memcpy(words, addr, sizeof(words));
	return rte_jhash_32b(words, 4, ifindex) % NEIGH_BUCKETS;
}

#endif /* ROUTE_NEIGH_HASH_H */
