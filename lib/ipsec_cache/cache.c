/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_malloc.h>

#include "ipsec_cache/cache.h"

static void *
table(size_t n, size_t size, int socket)
{
	return rte_zmalloc_socket("ipsec_cache", n * size, 2 * RTE_CACHE_LINE_SIZE, socket);
}

struct ipsec_tables *
ipsec_tables_create(unsigned int entries, int socket)
{
	struct ipsec_tables *t;
	unsigned int bits, i;

	if ((t = table(1, sizeof(*t), socket)) == NULL)
		return NULL;
	bits = rte_log2_u32(RTE_MAX(entries, 4u));
	t->n_sets = 1u << (bits - 1);
	t->shift = 64 - (bits - 1);
	t->in_shift = 64 - bits;
	t->tags = table(t->n_sets, sizeof(*t->tags), socket);
	t->entries = table((size_t)t->n_sets * IPSEC_TAGS, sizeof(*t->entries), socket);
	t->in = table((size_t)1 << bits, sizeof(*t->in), socket);
	if (t->tags == NULL || t->entries == NULL || t->in == NULL ||
		getrandom(t->keys, sizeof(t->keys), 0) != sizeof(t->keys)) {
		ipsec_tables_destroy(t);
		return NULL;
	}
	for (i = 0; i < RTE_DIM(t->keys); i++)
		t->keys[i] |= 1;
	return t;
}

void
ipsec_tables_destroy(struct ipsec_tables *t)
{
	if (t == NULL)
		return;
	rte_free(t->tags);
	rte_free(t->entries);
	rte_free(t->in);
	rte_free(t);
}
