/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <string.h>

#include <rte_ether.h>

#include "app.h"
#include "pipeline.h"
#include "protect.h"

#define L2_LEN_MASK ((1u << RTE_MBUF_L2_LEN_BITS) - 1)

static bool
is_tag(rte_be16_t type)
{
	return type == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type == RTE_BE16(RTE_ETHER_TYPE_QINQ) ||
		type == RTE_BE16(RTE_ETHER_TYPE_QINQ1);
}

/*
 * Tags may have come or gone since a NIC was told where layer 3 begins: more, too, than a view
 * follows. False: more than l2_len can say.
 */
static bool
renew_l2_len(struct rte_mbuf *m)
{
	uint32_t off = RTE_ETHER_HDR_LEN;
	rte_be16_t buf, type;
	const void *p;

	while ((p = packet_read(m, off - 2, 2, &buf)) != NULL) {
		memcpy(&type, p, sizeof(type));
		if (likely(!is_tag(type)))
			break;
		off += sizeof(struct rte_vlan_hdr);
	}
	if (unlikely(m->l2_len != off))
		m->l2_len = off & L2_LEN_MASK;
	return p != NULL && off <= L2_LEN_MASK;
}

/* DROP_MAX: it may leave. */
static enum drop_reason
look(struct worker *worker, const struct port *port, struct rte_mbuf *m)
{
	if (unlikely((m->ol_flags & IPSEC_CACHE_RX_FLAGS) != 0))
		return DROP_ESP_UNSEEN;
	if ((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) == 0)
		return DROP_MAX;
	if (unlikely(m->port != port->id))
		return ipsec_cache_complete(worker->ipsec, m) ? DROP_MAX : DROP_ESP_DEVICE;
	return likely(renew_l2_len(m)) ? DROP_MAX : DROP_ESP_DEVICE;
}

static void
look_at_all(struct worker *worker, const struct port *port, struct packet_vector *vector)
{
	uint16_t n = 0;

	for (uint16_t i = 0; i < vector->n; i++) {
		enum drop_reason why = look(worker, port, vector->pkts[i]);

		if (unlikely(why != DROP_MAX)) {
			drop(&worker->drops, why, &vector->pkts[i], 1);
			continue;
		}
		vector->pkts[n] = vector->pkts[i];
		if (vector->parsed)
			vector->views[n] = vector->views[i];
		n++;
	}
	vector->n = n;
}

uint16_t
protect_finish(
	struct worker *worker, const struct port *port, struct packet_vector *vector, uint64_t any)
{
	if ((any & PROTECT_FLAGS) != 0)
		look_at_all(worker, port, vector);
	if (csum_action_pending(vector->pkts, vector->n))
		csum_action_complete(worker->app->csum, worker->id, vector->pkts, vector->n,
			port->csum_offloads);
	return vector->n;
}
