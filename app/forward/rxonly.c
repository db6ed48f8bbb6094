/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "drop.h"
#include "forward/forward.h"
#include "lcore.h"

static void
rxonly_forward(struct worker *worker, const struct stream *stream, struct packet_vector *vector)
{
	(void)stream;
	drop(&worker->drops, DROP_RX_SINK, vector->pkts, vector->n);
}

static struct forward_mode rxonly = {
	.name = "rxonly",
	.help = "packets are received, counted and freed",
	.forward = rxonly_forward,
};
FORWARD_REGISTER(rxonly);
