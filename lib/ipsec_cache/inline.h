/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_INLINE_H
#define IPSEC_CACHE_INLINE_H

/*
 * What a packet has to do with a session on a NIC (rte_security): frames that are given to it, and
 * frames that come from it. Thread safety: the SA's home lcore.
 */

#include <rte_ether.h>
#include <rte_security.h>

#include "ipsec_cache/session.h"
#include "ipsec_cache/worker.h"

/*
 * The frame, whose Ethernet header is followed by an IP header of l3_len bytes, is the NIC's to
 * protect. `number`: for one that authenticates the high half of an
 * extended number, which is in no field of the packet. False: the driver does not take it, and the
 * frame is not marked.
 */
static inline bool
ipsec_inline_give(const struct ipsec_session *s, struct rte_mbuf *m, bool v4, uint16_t l3_len,
	uint64_t *number)
{
	m->tx_offload = 0;
	m->l2_len = RTE_ETHER_HDR_LEN;
	m->l3_len = l3_len;
	if (s->metadata &&
		unlikely(rte_security_set_pkt_metadata(s->ctx, s->security, m, number) != 0))
		return false;
	m->ol_flags |= RTE_MBUF_F_TX_SEC_OFFLOAD | (v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
	m->port = s->port;
	return true;
}

/* The id of the session that a NIC opened the packet by, if it says so; 0: it does not. */
static inline uint64_t
ipsec_inline_tag(struct rte_mbuf *m)
{
	return rte_security_dynfield_is_registered() ? *rte_security_dynfield(m) : 0;
}

/*
 * May the session of an inline protocol give the SA's next number? It may as long as every number
 * since its first one was its own; the first time the SA's numbers leap to where it begins.
 */
static inline bool
ipsec_inline_numbers(struct ipsec_cache_rt *rt, struct ipsec_session *s)
{
	uint64_t reached = ipsec_load(&s->reached), oseq = ipsec_load(&rt->oseq);

	if (likely(oseq == reached))
		return true;
	if (oseq < s->start && reached == s->start) {
		ipsec_store(&rt->oseq, reached);
		return true;
	}
	ipsec_store(&s->refused, true);
	return false;
}

#endif /* IPSEC_CACHE_INLINE_H */
