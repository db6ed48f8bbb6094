/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_UPDATE_H
#define CSUM_ACTION_UPDATE_H

/* One packet, whatever it looks like: chains, tags, extension headers, shared memory. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "csum_action/csum_action.h"
#include "csum_action/impl.h"

/* All sums of layer 4. */
#define CSUM_FLAGS_L4 (CSUM_ACTION_FLAGS & ~TCA_CSUM_UPDATE_FLAG_IPV4HDR)

/* Tx marks of packets that a NIC will take apart, or whose inner headers it will complete (rule
 * A22). */
#define CSUM_MARKED \
	(RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_UDP_SEG | RTE_MBUF_F_TX_TUNNEL_MASK | \
		RTE_MBUF_F_TX_OUTER_IP_CKSUM | RTE_MBUF_F_TX_OUTER_UDP_CKSUM | \
		RTE_MBUF_F_TX_OUTER_IPV4 | RTE_MBUF_F_TX_OUTER_IPV6)

/* A checksum of layer 4 that can be computed: where it stands and what it covers. */
struct csum_l4 {
	uint32_t field; /* frame offset of the field */
	uint32_t end; /* one past the last byte covered, from l4_off on */
	bool pseudo; /* with a pseudo-header over src, dst, proto and l3_end - l4_off */
	bool ones; /* a result of 0 is sent as 0xffff */
	bool crc; /* CRC32c in 4 bytes; else one's complement in 2 */
	bool none; /* the field is 0 and this says that there is no checksum */
};

/*
 * Finds the checksum of layer 4. CSUM_ACTION_COMPUTED: *l4 is filled. Else why it can not be
 * computed, or UNASKED where the protocol's flag is not in `flags`.
 */
enum csum_action_reason csum_l4_find(const struct rte_mbuf *m, const struct packet_view *view,
	uint32_t flags, struct csum_l4 *l4);

/* What the field should hold, as it lies in memory (2 or 4 bytes). */
uint32_t csum_l4_value(const struct csum_impl *impl, const struct rte_mbuf *m,
	const struct packet_view *view, const struct csum_l4 *l4);

/* The one's-complement sum of frame bytes [off, end), folded. They must exist. */
uint16_t
csum_range(const struct csum_impl *impl, const struct rte_mbuf *m, uint32_t off, uint32_t end);

/* True if a sum of layer 4 is still to be made: by the NIC, or because the frame came without one.
 */
static inline bool
csum_is_pending_l4(uint64_t ol_flags)
{
	return (ol_flags & RTE_MBUF_F_TX_L4_MASK) != 0 ||
		(ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

static inline bool
csum_is_pending_ip(uint64_t ol_flags)
{
	return (ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0 ||
		(ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_NONE;
}

/*
 * Brings the sums of *m that `flags` asks for up to date; leaves those to the NIC that
 * `tx_offloads` (RTE_ETH_TX_OFFLOAD_*_CKSUM) has and that suit it, their fields preset. Where
 * memory may not be written, *m is replaced by a copy and the old one given back.
 */
enum csum_action_reason csum_update(const struct csum_impl *impl, struct rte_mbuf **m,
	const struct packet_view *view, uint32_t flags, uint64_t tx_offloads);

#endif /* CSUM_ACTION_UPDATE_H */
