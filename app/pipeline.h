/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PIPELINE_H
#define APP_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "lcore.h"
#include "packet/packet.h"
#include "port.h"

/* Takes one burst of the stream its whole way. Returns the packets received or made. */
unsigned int pipeline_poll(struct worker *worker, struct stream *stream);

/* Egress hook, scheduler, tx: the second half of the way, entered by forward modes. */
void pipeline_send(
	struct worker *worker, struct port *port, uint16_t queue, struct packet_vector *vector);

/* The last part of that: root hook, scheduler. */
void pipeline_queue(
	struct worker *worker, struct port *port, uint16_t queue, struct packet_vector *vector);

/* True if tc skbedit chose a Tx queue for any of them. */
static inline bool
pipeline_is_mapped(const struct worker *worker, const struct packet_vector *vector)
{
	uint16_t any = 0;

	for (uint16_t i = 0; i < vector->n; i++)
		any |= packet_meta(vector->pkts[i], worker->meta_offset)->queue;
	return any != 0;
}
/* redirect.c: the same as pipeline_queue(), each packet on its queue; the others on `queue`. */
void pipeline_send_mapped(
	struct worker *worker, struct port *port, uint16_t queue, struct packet_vector *vector);

/* Sends the packets of a vector on as if they had come in on stream->rx_port. */
void
pipeline_receive(struct worker *worker, const struct stream *stream, struct packet_vector *vector);

/*
 * redirect.c: what a hook's result asks for beside passing. Drops, redirects, and keeps in the
 * vector what passed.
 */
void pipeline_settle(struct worker *worker, struct packet_vector *vector,
	const struct classifier_result *result);
/* A flowid chooses a band only as the verdict of a root prio's own filter. */
void pipeline_forget_class(struct worker *worker, const struct packet_vector *vector);

/* Runs a vector through what tc put there, and settles what that asks for. */
static inline void
pipeline_hook(struct worker *worker, const struct classifier_hook *where, bool keeps_class,
	struct packet_vector *vector)
{
	struct classifier_block *block = classifier_hook_block(where);
	struct classifier_result result;

	if (likely(block == NULL))
		return;
	classifier_run(block, &worker->classifier, 0, vector, &result);
	if (result.passed != packet_vector_mask(vector))
		pipeline_settle(worker, vector, &result);
	if (unlikely(result.classed != 0) && !keeps_class)
		pipeline_forget_class(worker, vector);
}

/*
 * Where tc mirred's packets go: into the egress (or ingress) of the port `ifindex`, on the Tx queue
 * of this worker. Takes the packets over.
 */
void pipeline_redirect(struct worker *worker, uint32_t ifindex, bool ingress,
	struct rte_mbuf **pkts, unsigned int n);
/* classifier_worker's mirror callback: sends copies. */
void pipeline_mirror(void *arg, unsigned int worker_id, uint32_t ifindex, bool ingress,
	struct rte_mbuf *const *pkts, uint64_t mask);

#endif /* APP_PIPELINE_H */
