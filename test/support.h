/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

/* What every C test needs: EAL, a pool whose mbufs are counted at the end, frames. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/*
 * Starts EAL without hugepages and devices, with so many MiB of memory, on `lcores` ("0" for one).
 * Exits on failure.
 */
static inline void
test_eal_init_mb(const char *name, const char *lcores, unsigned int mb)
{
	/* Static: EAL may keep pointers into its words. */
	static char words[12][64];
	char *argv[13];
	int argc = 0;

#define TEST_EAL_WORD(...) \
	do { \
		snprintf(words[argc], sizeof(words[argc]), __VA_ARGS__); \
		argv[argc] = words[argc]; \
		argc++; \
	} while (0)
	TEST_EAL_WORD("%s", name);
	TEST_EAL_WORD("--no-huge");
	TEST_EAL_WORD("-m");
	TEST_EAL_WORD("%u", mb);
	TEST_EAL_WORD("--no-shconf");
	TEST_EAL_WORD("--no-pci");
	TEST_EAL_WORD("--no-telemetry");
	TEST_EAL_WORD("--log-level=error");
	TEST_EAL_WORD("--file-prefix=mr-%s-%d", name, (int)getpid());
	TEST_EAL_WORD("--lcores");
	TEST_EAL_WORD("%s", lcores);
#undef TEST_EAL_WORD
	argv[argc] = NULL;
	if (rte_eal_init(argc, argv) < 0) {
		fprintf(stderr, "%s: rte_eal_init: %s\n", name, rte_strerror(rte_errno));
		exit(1);
	}
}

static inline void
test_eal_init(const char *name, const char *lcores)
{
	test_eal_init_mb(name, lcores, 256);
}

/* A pool of n mbufs of 2 KiB, without a cache, so that rte_mempool_avail_count() is exact. */
static inline struct rte_mempool *
test_pool(const char *name, unsigned int n)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create(name, n, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	if (pool == NULL) {
		fprintf(stderr, "%s: rte_pktmbuf_pool_create: %s\n", name, rte_strerror(rte_errno));
		exit(1);
	}
	return pool;
}

/* True if every mbuf is back in the pool. Say so at the end of every test. */
static inline bool
test_pool_full(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool) == pool->size;
}

/* A frame with these bytes in segments of at most `cut` bytes (0: one segment). */
static inline struct rte_mbuf *
test_frame(struct rte_mempool *pool, const void *data, uint32_t len, uint32_t cut)
{
	struct rte_mbuf *head = NULL, *m;
	const uint8_t *p = data;

	do {
		uint32_t part = cut != 0 && len > cut ? cut : len;
		char *to;

		if ((m = rte_pktmbuf_alloc(pool)) == NULL ||
			(to = rte_pktmbuf_append(m, (uint16_t)part)) == NULL ||
			(head != NULL && rte_pktmbuf_chain(head, m) != 0)) {
			fprintf(stderr, "test_frame: no room for %u bytes\n", len);
			exit(1);
		}
		memcpy(to, p, part);
		if (head == NULL)
			head = m;
		p += part;
		len -= part;
	} while (len > 0);
	return head;
}

#endif /* TEST_SUPPORT_H */
