/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_FLOW_H
#define IPSEC_CACHE_FLOW_H

/* The flow of a packet, as Linux's xfrm_decode_session() sees it. */

#include "ipsec_cache/internal.h"

/* What of a packet its view does not know. */
struct ipsec_flow_from {
	uint64_t by; /* serial of the SA it came by */
	uint32_t mark;
	uint32_t in_ifindex;
};

/*
 * Fills in the flow of an IP packet whose view is filled; `uses` says which fields count
 * (IPSEC_USES_*), the others are 0, except that in_ifindex still tells our own packets from others.
 * Ports that are not there (a fragment, a cut header) make `fragment` 1. False: there is an IPv6
 * header chain that cannot be followed to its end, so that no policy can be found for what is
 * behind it.
 */
bool ipsec_flow_fill(struct ipsec_flow *flow, const struct rte_mbuf *m,
	const struct packet_view *view, const struct ipsec_flow_from *from, uint32_t uses);

#endif /* IPSEC_CACHE_FLOW_H */
