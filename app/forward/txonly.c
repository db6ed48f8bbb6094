/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "app.h"
#include "forward/forward.h"
#include "forward/generate.h"

static unsigned int
txonly_generate(struct worker *worker, struct stream *stream)
{
	const struct options *opt = &worker->app->opt;
	struct rte_mbuf *pkts[FORWARD_BURST_MAX];
	struct generate_template template;
	unsigned int n;

	generate_template(&template, opt, stream, 0);
	for (n = 0; n < worker->burst; n++) {
		uint32_t src = opt->tx_ip_src;

		/* testpmd's --txonly-multi-flow: 256 source addresses, each lcore its own */
		if (opt->txonly_multi_flow)
			src = (src & ~UINT32_C(0xffff)) | (worker->id & 0xff) << 8 |
				(stream->flow++ & 0xff);
		if ((pkts[n] = generate_packet(&template, stream, src, opt->tx_ip_dst)) == NULL)
			break;
	}
	generate_send(worker, stream, pkts, n);
	return n;
}

static struct forward_mode txonly = {
	.name = "txonly",
	.help = "sends UDP/IPv4 frames, receives nothing",
	.generate = txonly_generate,
};
FORWARD_REGISTER(txonly);
