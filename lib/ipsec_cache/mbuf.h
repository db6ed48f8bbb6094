/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_MBUF_H
#define IPSEC_CACHE_MBUF_H

/* Frames that may be written, lengthened and cut, whatever they are made of. Thread safety: a frame
 * belongs to one lcore. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* The usual frame: one segment, nobody else's. */
static inline bool
ipsec_mbuf_plain(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
}

/*
 * The frame, or a copy of it in place of it, all of whose segments may be written, with `headroom`
 * bytes before it and its first `head` bytes (or all, if there are fewer) in one segment. NULL: no
 * mbuf, or they are too small; m is as it was.
 */
struct rte_mbuf *ipsec_mbuf_own(struct rte_mbuf *m, uint32_t headroom, uint32_t head);
/* *at is such a frame, or such a copy takes its place. NULL: no mbuf, and it is as it was. */
static inline struct rte_mbuf *
ipsec_mbuf_ensure(struct rte_mbuf **at, uint32_t head)
{
	struct rte_mbuf *m = *at;

	if (likely(ipsec_mbuf_plain(m)))
		return m;
	if ((m = ipsec_mbuf_own(m, 0, head)) != NULL)
		*at = m;
	return m;
}
/* Keeps the first `len` bytes, of as many at least. */
void ipsec_mbuf_cut(struct rte_mbuf *m, uint32_t len);
/* n more bytes at the end, in one piece; NULL: no mbuf, or it is too small, and nothing changed. */
uint8_t *ipsec_mbuf_extend(struct rte_mbuf *m, uint32_t n);
/* Sees to tailroom of n bytes behind a frame that may be written. False: no mbuf, or it is too
 * small, and nothing changed. */
bool ipsec_mbuf_tail(struct rte_mbuf *m, uint32_t n);

#endif /* IPSEC_CACHE_MBUF_H */
