/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_ECN_H
#define IPSEC_CACHE_ECN_H

/* Congestion marks of a tunnel (RFC 6040). `tos` is IPv4's TOS or IPv6's traffic class. */

#include <stdbool.h>
#include <stdint.h>

#define IPSEC_ECN_MASK 0x03
#define IPSEC_ECN_NOT_ECT 0x00
#define IPSEC_ECN_ECT1 0x01
#define IPSEC_ECN_ECT0 0x02
#define IPSEC_ECN_CE 0x03
#define IPSEC_DSCP_MASK 0xfc

/*
 * What the inner packet's mark becomes at the end of a tunnel (RFC 6040, 4.2, figure 4): an index
 * of inner << 2 | outer. IPSEC_ECN_DROP: the packet has to be dropped.
 */
#define IPSEC_ECN_DROP 0xff

static inline uint8_t
ipsec_ecn_decapsulate(uint8_t inner, uint8_t outer)
{
	static const uint8_t becomes[16] = {
		/* inner Not-ECT: outer Not-ECT, ECT(1), ECT(0), CE */
		IPSEC_ECN_NOT_ECT,
		IPSEC_ECN_NOT_ECT,
		IPSEC_ECN_NOT_ECT,
		IPSEC_ECN_DROP,
		/* inner ECT(1) */
		IPSEC_ECN_ECT1,
		IPSEC_ECN_ECT1,
		IPSEC_ECN_ECT1,
		IPSEC_ECN_CE,
		/* inner ECT(0): ECT(1) outside says more */
		IPSEC_ECN_ECT0,
		IPSEC_ECN_ECT1,
		IPSEC_ECN_ECT0,
		IPSEC_ECN_CE,
		/* inner CE */
		IPSEC_ECN_CE,
		IPSEC_ECN_CE,
		IPSEC_ECN_CE,
		IPSEC_ECN_CE,
	};

	return becomes[(inner & IPSEC_ECN_MASK) << 2 | (outer & IPSEC_ECN_MASK)];
}

#endif /* IPSEC_CACHE_ECN_H */
