/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "drop.h"
#include "lcore.h"

const struct drop_info drop_info[DROP_MAX] = {
#define X(id, name, text) { name, text },
	DROP_LIST(X)
#undef X
};

void
drop_count(
	struct drop_counters *counters, enum drop_reason reason, uint64_t packets, uint64_t bytes)
{
	count(&counters->packets[reason], packets);
	count(&counters->bytes[reason], bytes);
}

void
drop(struct drop_counters *counters, enum drop_reason reason, struct rte_mbuf **pkts,
	unsigned int n)
{
	uint64_t bytes = 0;

	if (n == 0)
		return;
	for (unsigned int i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len;
	drop_count(counters, reason, n, bytes);
	rte_pktmbuf_free_bulk(pkts, n);
}

void
drop_mask(struct drop_counters *counters, enum drop_reason reason, struct rte_mbuf **pkts,
	uint64_t mask)
{
	struct rte_mbuf *out[PACKET_VECTOR_MAX];
	unsigned int i, n = 0;

	packet_mask_for_each (i, mask)
		out[n++] = pkts[i];
	drop(counters, reason, out, n);
}
