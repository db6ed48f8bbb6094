/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What tc asks for beside letting a packet pass: drops, redirects, mirrored copies. */

#include "app.h"
#include "classifier/mirred.h"
#include "pipeline.h"
#include "protect.h"

#define NESTING_MAX 4 /* Linux: MIRRED_NEST_LIMIT */

/* As if they had come in there: so as they would be on the wire. */
static void
receive_again(struct worker *worker, const struct stream *stream, struct packet_vector *vector)
{
	uint16_t n = 0;

	for (uint16_t i = 0; i < vector->n; i++) {
		struct rte_mbuf *m = vector->pkts[i];

		if (unlikely(!protect_one(worker, m))) {
			drop(&worker->drops, DROP_ESP_DEVICE, &m, 1);
			continue;
		}
		packet_meta(m, worker->meta_offset)->iif = stream->rx_port->ifindex;
		vector->pkts[n++] = m;
	}
	if (likely((vector->n = n) > 0))
		pipeline_receive(worker, stream, vector);
}

static void
redirect_vector(
	struct worker *worker, struct port *port, bool ingress, struct packet_vector *vector)
{
	const struct stream *stream;

	if (!ingress) {
		pipeline_send(worker, port, (uint16_t)(worker->id % port->n_txq), vector);
		return;
	}
	if ((stream = stream_of(worker->app, port)) == NULL)
		drop(&worker->drops, DROP_NO_PORT, vector->pkts, vector->n);
	else
		receive_again(worker, stream, vector);
}

void
pipeline_redirect(struct worker *worker, uint32_t ifindex, bool ingress, struct rte_mbuf **pkts,
	unsigned int n)
{
	struct packet_view views[PACKET_VECTOR_MAX];
	struct packet_vector vector = { .pkts = pkts, .views = views, .n = (uint16_t)n };
	struct port *port = port_by_ifindex(worker->app, ifindex);

	if (port == NULL) {
		drop(&worker->drops, DROP_NO_PORT, pkts, n);
	} else if (worker->nesting >= NESTING_MAX) {
		drop(&worker->drops, DROP_REDIRECT_LOOP, pkts, n);
	} else {
		worker->nesting++;
		redirect_vector(worker, port, ingress, &vector);
		worker->nesting--;
	}
}

void
pipeline_mirror(void *arg, unsigned int worker_id, uint32_t ifindex, bool ingress,
	struct rte_mbuf *const *pkts, uint64_t mask)
{
	struct worker *worker = arg;
	struct rte_mbuf *copies[PACKET_VECTOR_MAX];
	unsigned int i, n = 0;

	(void)worker_id;
	packet_mask_for_each (i, mask) {
		struct rte_mbuf *copy;

		/* Before there are two of it: a NIC that encrypted both, or two that differ, would
		 * give the key away. */
		if (unlikely(!protect_one(worker, pkts[i]))) {
			drop_count(&worker->drops, DROP_ESP_DEVICE, 1, pkts[i]->pkt_len);
			continue;
		}
		/* A copy, not a clone: later actions of either way may write to the packet. */
		copy = rte_pktmbuf_copy(pkts[i], pkts[i]->pool, 0, pkts[i]->pkt_len);
		if (copy == NULL) {
			drop_count(&worker->drops, DROP_MIRROR_NOBUF, 1, pkts[i]->pkt_len);
			continue;
		}
		*packet_meta(copy, worker->meta_offset) =
			*packet_meta(pkts[i], worker->meta_offset);
		copies[n++] = copy;
	}
	if (n > 0)
		pipeline_redirect(worker, ifindex, ingress, copies, n);
}

/* Packets for the same target go together, in their order. */
static void
redirect_mask(struct worker *worker, const struct packet_vector *vector,
	const struct classifier_result *result)
{
	struct rte_mbuf *out[PACKET_VECTOR_MAX];
	uint64_t left = result->redirected;

	while (left != 0) {
		uint32_t target = result->target[__builtin_ctzll(left)];
		unsigned int i, n = 0;

		packet_mask_for_each (i, left) {
			if (result->target[i] != target)
				continue;
			out[n++] = vector->pkts[i];
			left &= ~(UINT64_C(1) << i);
		}
		pipeline_redirect(worker, target & ~MIRRED_TARGET_INGRESS,
			(target & MIRRED_TARGET_INGRESS) != 0, out, n);
	}
}

void
pipeline_forget_class(struct worker *worker, const struct packet_vector *vector)
{
	for (unsigned int i = 0; i < vector->n; i++)
		packet_meta(vector->pkts[i], worker->meta_offset)->classid = 0;
}

void
pipeline_settle(
	struct worker *worker, struct packet_vector *vector, const struct classifier_result *result)
{
	unsigned int i, n = 0;

	for (i = 0; i < CLASSIFIER_DROP_MAX; i++) {
		if (result->dropped[i] != 0)
			drop_mask(&worker->drops, (enum drop_reason)i, vector->pkts,
				result->dropped[i]);
	}
	redirect_mask(worker, vector, result);
	packet_mask_for_each (i, result->passed) {
		vector->pkts[n] = vector->pkts[i];
		if (vector->parsed)
			vector->views[n] = vector->views[i];
		n++;
	}
	vector->n = (uint16_t)n;
}

/* skbedit queue_mapping: a queue that is not there is the first (netdev_cap_txqueue()). */
static uint16_t
queue_of(const struct worker *worker, const struct port *port, uint16_t queue,
	const struct rte_mbuf *m)
{
	uint16_t mapped = packet_meta(m, worker->meta_offset)->queue;

	if (mapped == 0)
		return queue;
	return mapped <= port->n_txq ? mapped - 1 : 0;
}

void
pipeline_send_mapped(
	struct worker *worker, struct port *port, uint16_t queue, struct packet_vector *vector)
{
	uint64_t left = packet_vector_mask(vector);
	unsigned int i;

	while (left != 0) {
		struct rte_mbuf *pkts[PACKET_VECTOR_MAX];
		struct packet_view views[PACKET_VECTOR_MAX];
		struct packet_vector some = {
			.pkts = pkts, .views = views, .parsed = vector->parsed
		};
		uint16_t to = queue_of(worker, port, queue, vector->pkts[__builtin_ctzll(left)]);

		packet_mask_for_each (i, left) {
			if (queue_of(worker, port, queue, vector->pkts[i]) != to)
				continue;
			left &= ~(UINT64_C(1) << i);
			pkts[some.n] = vector->pkts[i];
			views[some.n++] = vector->views[i];
		}
		pipeline_queue(worker, port, to, &some);
	}
}
