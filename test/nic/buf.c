/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Frames as flat bytes, and back. A NIC never writes to what it sends, which others may hold as
 * well: what it makes of a frame is in buffers of its own.
 */

#include <errno.h>
#include <string.h>

#include "internal.h"

#define POOL_SIZE 4095u

static struct rte_mempool *pool;

int
nic_pool_open(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create(
			"nic", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	pthread_mutex_unlock(&mutex);
	return pool != NULL ? 0 : -ENOMEM;
}

bool
nic_pool_full(void)
{
	return pool == NULL || rte_mempool_avail_count(pool) == pool->size;
}

uint32_t
nic_flat(const struct rte_mbuf *m, uint8_t *to)
{
	uint32_t len = 0;

	for (; m != NULL; m = m->next) {
		if (len + m->data_len > NIC_FRAME_MAX)
			return 0;
		memcpy(to + len, rte_pktmbuf_mtod(m, const void *), m->data_len);
		len += m->data_len;
	}
	return len;
}

static void
attributes(struct rte_mbuf *m, const struct rte_mbuf *like)
{
	m->port = like->port;
	m->ol_flags |= like->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	m->vlan_tci = like->vlan_tci;
	m->hash = like->hash;
	rte_mbuf_dynfield_copy(m, like);
}

/* Nothing but bytes goes over a wire: no flag, no field. */
static void
no_attributes(struct rte_mbuf *m)
{
	memset(m->dynfield1, 0, sizeof(m->dynfield1));
}

/* A frame of these bytes: like another one, or (NULL) as it leaves. NULL if there is no buffer. */
struct rte_mbuf *
nic_buf(const struct rte_mbuf *like, const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *head = NULL, *last = NULL, *m;

	while (head == NULL || len > 0) {
		uint16_t part;

		if ((m = rte_pktmbuf_alloc(pool)) == NULL) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		part = (uint16_t)RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(m));
		memcpy(rte_pktmbuf_append(m, part), bytes, part);
		if (head == NULL) {
			head = m;
			if (like != NULL)
				attributes(head, like);
			else
				no_attributes(head);
		} else {
			last->next = m;
			head->nb_segs++;
			head->pkt_len += part;
		}
		last = m;
		bytes += part;
		len -= part;
	}
	return head;
}

static bool
is_shared(const struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next) {
		if (rte_mbuf_refcnt_read(m) != 1 || !RTE_MBUF_DIRECT(m))
			return true;
	}
	return false;
}

void
nic_buf_fill(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *seg;

	m->pkt_len = len;
	m->nb_segs = 0;
	for (seg = m;; seg = seg->next) {
		uint16_t part = (uint16_t)RTE_MIN(len, (uint32_t)seg->data_len);

		memcpy(rte_pktmbuf_mtod(seg, void *), bytes, part);
		seg->data_len = part;
		m->nb_segs++;
		bytes += part;
		len -= part;
		if (len == 0)
			break;
	}
	rte_pktmbuf_free(seg->next); /* NULL is no frame */
	seg->next = NULL;
}

/* The same frame with these bytes, not more than it has; NULL, and nothing done, without a buffer.
 */
struct rte_mbuf *
nic_buf_write(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *other;

	if (!is_shared(m)) {
		nic_buf_fill(m, bytes, len);
		return m;
	}
	if ((other = nic_buf(m, bytes, len)) != NULL)
		rte_pktmbuf_free(m);
	return other;
}
