/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "forward/forward.h"
#include "lcore.h"
#include "pipeline.h"

static void
io_forward(struct worker *worker, const struct stream *stream, struct packet_vector *vector)
{
	pipeline_send(worker, stream->tx_port, stream->tx_queue, vector);
}

static struct forward_mode io = {
	.name = "io",
	.help = "packets go to the paired port as they are",
	.forward = io_forward,
};
FORWARD_REGISTER(io);
