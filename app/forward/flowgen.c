/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <rte_ethdev.h>

#include "app.h"
#include "forward/forward.h"
#include "forward/generate.h"

static void
receive_and_free(struct worker *worker, struct stream *stream)
{
	struct rte_mbuf *pkts[FORWARD_BURST_MAX];
	uint16_t n = rte_eth_rx_burst(stream->rx_port->id, stream->rx_queue, pkts, worker->burst);

	count(&stream->rx_packets, n);
	drop(&worker->drops, DROP_RX_SINK, pkts, n);
}

static unsigned int
flowgen_generate(struct worker *worker, struct stream *stream)
{
	const struct options *opt = &worker->app->opt;
	struct rte_mbuf *pkts[FORWARD_BURST_MAX];
	struct generate_template template;
	unsigned int n;

	receive_and_free(worker, stream);
	generate_template(&template, opt, stream, opt->txpkts_given ? 0 : FLOWGEN_LEN);
	for (n = 0; n < worker->burst; n++) {
		pkts[n] = generate_packet(
			&template, stream, opt->tx_ip_src, opt->tx_ip_dst + stream->flow);
		if (pkts[n] == NULL)
			break;
		if (++stream->flow == opt->flowgen_flows)
			stream->flow = 0;
	}
	generate_send(worker, stream, pkts, n);
	return n;
}

static struct forward_mode flowgen = {
	.name = "flowgen",
	.help = "sends UDP/IPv4 frames of many flows, frees what comes in",
	.generate = flowgen_generate,
};
FORWARD_REGISTER(flowgen);
