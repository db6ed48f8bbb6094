/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <rte_mbuf.h>

#include "classifier/edit.h"

static bool
is_ours(const struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next)
		if (rte_mbuf_refcnt_read(m) != 1 || RTE_MBUF_CLONED(m) ||
			(RTE_MBUF_HAS_EXTBUF(m) && !RTE_MBUF_HAS_PINNED_EXTBUF(m)))
			return false;
	return true;
}

/* The pool that the frame's own memory came from. */
static struct rte_mempool *
pool_of(struct rte_mbuf *m)
{
	return RTE_MBUF_CLONED(m) ? rte_mbuf_from_indirect(m)->pool : m->pool;
}

bool
edit_own(struct rte_mbuf **m, uint32_t len, uint32_t headroom)
{
	struct rte_mempool *pool;
	struct rte_mbuf *copy;

	if ((*m)->pkt_len < len)
		return false;
	if (is_ours(*m) && (*m)->data_len >= len && rte_pktmbuf_headroom(*m) >= headroom)
		return true;
	pool = pool_of(*m);
	if (headroom > RTE_PKTMBUF_HEADROOM ||
		rte_pktmbuf_data_room_size(pool) < RTE_PKTMBUF_HEADROOM + len ||
		(copy = rte_pktmbuf_copy(*m, pool, 0, UINT32_MAX)) == NULL)
		return false;
	rte_pktmbuf_free(*m);
	*m = copy;
	return true;
}
