/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * THE MAP. A packet's way, one burst at a time on one lcore:
 *
 *   rx burst -> ingress hook -> forward mode -> egress hook -> root hook -> sched_nolock -> tx
 * burst
 *
 * A vector is up to 64 packets of the burst; their views are filled when a stage first asks.
 */

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "app.h"
#include "forward/forward.h"
#include "pipeline.h"
#include "port.h"
#include "protect.h"

void
pipeline_receive(struct worker *worker, const struct stream *stream, struct packet_vector *vector)
{
	if (unlikely(!port_is_up(stream->rx_port))) {
		drop(&worker->drops, DROP_RX_DOWN, vector->pkts, vector->n);
		return;
	}
	pipeline_hook(worker, &stream->rx_port->ingress, false, vector);
	if (likely(vector->n > 0))
		worker->mode->forward(worker, stream, vector);
}

void
pipeline_queue(
	struct worker *worker, struct port *port, uint16_t queue, struct packet_vector *vector)
{
	uint16_t n, sent;
	uint64_t any;

	pipeline_hook(worker, &port->root[queue], true, vector);
	n = vector->n;
	/* What was left to a NIC, of ESP or of sums, and is not for this one; virtio's "none". */
	if (unlikely((any = protect_flags(vector->pkts, n)) != 0))
		n = protect_finish(worker, port, vector, any);
	if (unlikely(n == 0))
		return;
	sent = sched_nolock_enqueue(port->sched[queue], worker->id, vector->pkts, n);
	count(&worker->tx[port->id].packets, sent);
	if (unlikely(sent < n)) {
		count(&worker->tx[port->id].dropped, n - sent);
		drop(&worker->drops, DROP_SCHED_FULL, vector->pkts + sent, n - sent);
	}
}

void
pipeline_send(
	struct worker *worker, struct port *port, uint16_t queue, struct packet_vector *vector)
{
	if (unlikely(!port_is_up(port))) {
		drop(&worker->drops, DROP_TX_DOWN, vector->pkts, vector->n);
		return;
	}
	pipeline_hook(worker, &port->egress, false, vector);
	if (unlikely(pipeline_is_mapped(worker, vector)))
		pipeline_send_mapped(worker, port, queue, vector);
	else
		pipeline_queue(worker, port, queue, vector);
}

static inline unsigned int
poll_once(struct worker *worker, struct stream *stream)
{
	struct rte_mbuf *pkts[FORWARD_BURST_MAX];
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_meta meta = { .iif = stream->rx_port->ifindex };
	uint16_t n;

	if (worker->mode->generate != NULL)
		return worker->mode->generate(worker, stream);
	n = rte_eth_rx_burst(stream->rx_port->id, stream->rx_queue, pkts, worker->burst);
	if (n == 0)
		return 0;
	count(&stream->rx_packets, n);
	for (uint16_t i = 0; i < n; i++)
		*packet_meta(pkts[i], worker->meta_offset) = meta;
	for (uint16_t i = 0; i < n; i += PACKET_VECTOR_MAX) {
		struct packet_vector vector = {
			.pkts = pkts + i,
			.views = views,
			.n = (uint16_t)RTE_MIN(
				(unsigned int)(n - i), (unsigned int)PACKET_VECTOR_MAX),
		};

		pipeline_receive(worker, stream, &vector);
	}
	return n;
}

unsigned int
pipeline_poll(struct worker *worker, struct stream *stream)
{
	uint64_t start;
	unsigned int n;

	if (likely(!worker->record_cycles && !worker->record_bursts))
		return poll_once(worker, stream);
	start = rte_rdtsc();
	n = poll_once(worker, stream);
	if (worker->record_cycles && n > 0)
		count(&stream->cycles, rte_rdtsc() - start);
	if (worker->record_bursts)
		count(&stream->bursts[RTE_MIN(n, (unsigned int)FORWARD_BURST_MAX)], 1);
	return n;
}
