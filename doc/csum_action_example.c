/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The checksum action in a plain DPDK loop: what comes in at port 0 leaves there with right IPv4,
 * UDP and TCP sums. Ends when nothing came for a second.
 *
 *   csum_example --vdev net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap
 */

#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "csum_action/csum_action.h"

#define BURST 32

/* Sums of one burst. The snapshot may be another one for each: nobody waits for anybody. */
static void
fix(struct csum_action *csum, struct action_params *params, struct rte_mbuf **pkts, uint16_t n)
{
	struct packet_view views[BURST];
	struct packet_vector vector = { .pkts = pkts, .views = views, .n = n };
	struct action_burst burst = { .vector = &vector, .pkts = pkts, .worker = 0 };
	uint64_t drops = 0, overlimits = 0;

	packet_vector_parse(&vector);
	csum_action_ops.run(NULL, params, &burst, packet_vector_mask(&vector), &drops, &overlimits);
	/* this port offers no offload: what came in without a sum is completed here */
	if (csum_action_pending(pkts, n))
		csum_action_complete(csum, 0, pkts, n, 0);
}

int
main(int argc, char *argv[])
{
	struct rte_eth_conf conf = { 0 };
	struct rte_mempool *pool;
	struct rte_mbuf *pkts[BURST];
	struct csum_action *csum;
	struct action_params *params;
	uint64_t last, i;
	uint16_t n;

	if (rte_eal_init(argc, argv) < 0 || (csum = csum_action_create(1)) == NULL ||
		(params = csum_action_params_create(TCA_CSUM_UPDATE_FLAG_IPV4HDR |
				 TCA_CSUM_UPDATE_FLAG_UDP | TCA_CSUM_UPDATE_FLAG_TCP,
			 TC_ACT_OK)) == NULL)
		rte_exit(1, "cannot start\n");
	csum_action_params_attach(params, csum);
	pool = rte_pktmbuf_pool_create(
		"pool", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL || rte_eth_dev_configure(0, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(0) != 0)
		rte_exit(1, "cannot start port 0\n");
	for (last = rte_rdtsc(); rte_rdtsc() - last < rte_get_tsc_hz();) {
		if ((n = rte_eth_rx_burst(0, 0, pkts, BURST)) == 0)
			continue;
		last = rte_rdtsc();
		fix(csum, params, pkts, n);
		i = rte_eth_tx_burst(0, 0, pkts, n);
		rte_pktmbuf_free_bulk(pkts + i, n - (unsigned int)i);
	}
	for (i = 0; i < CSUM_ACTION_REASON_MAX; i++)
		if (csum_action_count(csum, (unsigned int)i) != 0)
			printf("%s %lu\n", csum_action_reason_name((unsigned int)i),
				(unsigned long)csum_action_count(csum, (unsigned int)i));
	rte_eth_dev_stop(0);
	rte_eth_dev_close(0);
	free(params);
	csum_action_destroy(csum);
	return rte_eal_cleanup();
}
