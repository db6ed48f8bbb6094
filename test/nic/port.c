/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Between the program and rte_ethdev: what a port of the driver's becomes. */

#include <errno.h>

#include "internal.h"
#include "wrap.h"

/* The public array's functions know their queue, not their port: one pair for each port. */
#define EIGHT(X, a, b, c, d, e, f, g, h) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h)
#define PORTS(X) \
	EIGHT(X, 0, 1, 2, 3, 4, 5, 6, 7) \
	EIGHT(X, 8, 9, 10, 11, 12, 13, 14, 15) \
	EIGHT(X, 16, 17, 18, 19, 20, 21, 22, 23) \
	EIGHT(X, 24, 25, 26, 27, 28, 29, 30, 31)
#define PORT_FUNCTIONS(id) \
	static uint16_t rx_of_##id(void *queue, struct rte_mbuf **pkts, uint16_t n) \
	{ \
		return nic_rx(&nic_ports[id], queue, pkts, n); \
	} \
	static uint16_t tx_of_##id(void *queue, struct rte_mbuf **pkts, uint16_t n) \
	{ \
		return nic_tx(&nic_ports[id], queue, pkts, n); \
	}
PORTS(PORT_FUNCTIONS)

static const struct {
	eth_rx_burst_t rx;
	eth_tx_burst_t tx;
} functions[] = {
#define PORT_ROW(id) { rx_of_##id, tx_of_##id },
	PORTS(PORT_ROW)
};
_Static_assert(RTE_DIM(functions) >= RTE_MAX_ETHPORTS, "a pair for each port");

void *
__wrap_rte_eth_dev_get_sec_ctx(uint16_t port)
{
	struct nic *nic = nic_of_port(port);

	return nic != NULL ? &nic->ctx : __real_rte_eth_dev_get_sec_ctx(port);
}

int
__wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	int ret = __real_rte_eth_dev_info_get(port, info);

	if (ret == 0 && nic_of_port(port) != NULL) {
		info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_SECURITY;
		info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_SECURITY;
	}
	return ret;
}

int
__wrap_rte_eth_dev_configure(
	uint16_t port, uint16_t n_rxq, uint16_t n_txq, const struct rte_eth_conf *conf)
{
	struct nic *nic = nic_of_port(port);
	struct rte_eth_conf less;
	int ret;

	if (nic == NULL || conf == NULL)
		return __real_rte_eth_dev_configure(port, n_rxq, n_txq, conf);
	less = *conf;
	less.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_SECURITY;
	less.txmode.offloads &= ~RTE_ETH_TX_OFFLOAD_SECURITY;
	if ((ret = __real_rte_eth_dev_configure(port, n_rxq, n_txq, &less)) != 0)
		return ret;
	pthread_mutex_lock(&nic->mutex);
	nic->rx_on = (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_SECURITY) != 0;
	nic->tx_on = (conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_SECURITY) != 0;
	pthread_mutex_unlock(&nic->mutex);
	return 0;
}

int
__wrap_rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t n_desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct rte_eth_rxconf less;

	if (nic_of_port(port) != NULL && conf != NULL) {
		less = *conf;
		less.offloads &= ~RTE_ETH_RX_OFFLOAD_SECURITY;
		conf = &less;
	}
	return __real_rte_eth_rx_queue_setup(port, queue, n_desc, socket, conf, pool);
}

int
__wrap_rte_eth_tx_queue_setup(uint16_t port, uint16_t queue, uint16_t n_desc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	struct rte_eth_txconf less;

	if (nic_of_port(port) != NULL && conf != NULL) {
		less = *conf;
		less.offloads &= ~RTE_ETH_TX_OFFLOAD_SECURITY;
		conf = &less;
	}
	return __real_rte_eth_tx_queue_setup(port, queue, n_desc, socket, conf);
}

int
__wrap_rte_eth_dev_start(uint16_t port)
{
	struct nic *nic = nic_of_port(port);
	int ret = __real_rte_eth_dev_start(port);

	if (ret != 0 || nic == NULL || rte_eth_fp_ops[port].rx_pkt_burst == functions[port].rx)
		return ret;
	nic->rx = rte_eth_fp_ops[port].rx_pkt_burst;
	nic->tx = rte_eth_fp_ops[port].tx_pkt_burst;
	rte_eth_fp_ops[port].rx_pkt_burst = functions[port].rx;
	rte_eth_fp_ops[port].tx_pkt_burst = functions[port].tx;
	return 0;
}

int
__wrap_rte_eth_dev_stop(uint16_t port)
{
	struct nic *nic = nic_of_port(port);

	if (nic != NULL) {
		nic_tx_release(nic, false);
		pthread_mutex_lock(&nic->mutex);
		if (nic->dead == NIC_UNTIL_STOP)
			nic->dead = NIC_ALIVE;
		pthread_mutex_unlock(&nic->mutex);
	}
	return __real_rte_eth_dev_stop(port);
}

/* Drivers under a NIC know no reset: they are stopped, and the NIC forgets. */
int
__wrap_rte_eth_dev_reset(uint16_t port)
{
	struct nic *nic = nic_of_port(port);
	int ret;

	if (nic == NULL)
		return __real_rte_eth_dev_reset(port);
	if ((ret = __wrap_rte_eth_dev_stop(port)) != 0)
		return ret;
	pthread_mutex_lock(&nic->mutex);
	nic_forget(nic);
	nic_flows_clear(nic);
	pthread_mutex_unlock(&nic->mutex);
	return 0;
}

int
__wrap_rte_eth_dev_close(uint16_t port)
{
	struct nic *nic = nic_of_port(port);

	if (nic != NULL) {
		nic_tx_release(nic, false);
		nic_events_clear(nic);
		pthread_mutex_lock(&nic->mutex);
		nic_count_at(nic, NIC_COUNT_OF(left), nic->stats[NIC_COUNT_OF(sessions)]);
		nic_forget(nic);
		nic_flows_clear(nic);
		nic->rx_on = nic->tx_on = false;
		nic->dead = NIC_ALIVE;
		pthread_mutex_unlock(&nic->mutex);
	}
	return __real_rte_eth_dev_close(port);
}
