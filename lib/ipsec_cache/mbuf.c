/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stddef.h>

#include "ipsec_cache/mbuf.h"

/* Where another mbuf of its kind comes from. */
static struct rte_mempool *
pool_of(struct rte_mbuf *m)
{
	return RTE_MBUF_CLONED(m) ? rte_mbuf_from_indirect(m)->pool : m->pool;
}

static bool
all_ours(const struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next)
		if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
			return false;
	return true;
}

struct rte_mbuf *
ipsec_mbuf_own(struct rte_mbuf *m, uint32_t headroom, uint32_t head)
{
	struct rte_mbuf *copy;

	if (m->pkt_len < head)
		head = m->pkt_len;
	if (all_ours(m) && rte_pktmbuf_headroom(m) >= headroom && m->data_len >= head)
		return m;
	if (rte_pktmbuf_data_room_size(pool_of(m)) < RTE_PKTMBUF_HEADROOM + head)
		return NULL;
	if ((copy = rte_pktmbuf_copy(m, pool_of(m), 0, UINT32_MAX)) == NULL)
		return NULL;
	if (rte_pktmbuf_headroom(copy) < headroom || copy->data_len < head) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	rte_pktmbuf_free(m);
	return copy;
}

void
ipsec_mbuf_cut(struct rte_mbuf *m, uint32_t len)
{
	struct rte_mbuf *seg = m, *rest;
	uint32_t left = len;
	uint16_t n = 1;

	while (left > seg->data_len) {
		left -= seg->data_len;
		seg = seg->next;
		n++;
	}
	seg->data_len = (uint16_t)left;
	rest = seg->next;
	seg->next = NULL;
	m->nb_segs = n;
	m->pkt_len = len;
	rte_pktmbuf_free(rest);
}

uint8_t *
ipsec_mbuf_extend(struct rte_mbuf *m, uint32_t n)
{
	struct rte_mbuf *last = rte_pktmbuf_lastseg(m), *more;

	if (rte_pktmbuf_tailroom(last) >= n)
		return (uint8_t *)rte_pktmbuf_append(m, (uint16_t)n);
	if ((more = rte_pktmbuf_alloc(m->pool)) == NULL)
		return NULL;
	if (rte_pktmbuf_append(more, (uint16_t)RTE_MIN(n, UINT16_MAX)) == NULL ||
		rte_pktmbuf_chain(m, more) != 0) {
		rte_pktmbuf_free(more);
		return NULL;
	}
	return rte_pktmbuf_mtod(more, uint8_t *);
}

bool
ipsec_mbuf_tail(struct rte_mbuf *m, uint32_t n)
{
	struct rte_mbuf *last = rte_pktmbuf_lastseg(m), *more;
	char *byte;

	if (rte_pktmbuf_tailroom(last) >= n)
		return true;
	if ((more = rte_pktmbuf_alloc(m->pool)) == NULL)
		return false;
	/* a segment of its own for the last byte: none is empty */
	byte = rte_pktmbuf_append(more, 1);
	if (byte == NULL || rte_pktmbuf_tailroom(more) < n || rte_pktmbuf_chain(m, more) != 0) {
		rte_pktmbuf_free(more);
		return false;
	}
	*byte = *rte_pktmbuf_mtod_offset(last, char *, --last->data_len);
	m->pkt_len--;
	return true;
}
