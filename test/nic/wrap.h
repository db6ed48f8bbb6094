/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_NIC_WRAP_H
#define TEST_NIC_WRAP_H

/* The functions that the linker puts between (--wrap, in meson.build), and the real ones. */

#include <rte_cryptodev.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#define NIC_WRAP(type, name, ...) \
	type __wrap_##name(__VA_ARGS__); \
	type __real_##name(__VA_ARGS__)

NIC_WRAP(void *, rte_eth_dev_get_sec_ctx, uint16_t port);
NIC_WRAP(int, rte_eth_dev_info_get, uint16_t port, struct rte_eth_dev_info *info);
NIC_WRAP(int, rte_eth_dev_configure, uint16_t port, uint16_t n_rxq, uint16_t n_txq,
	const struct rte_eth_conf *conf);
NIC_WRAP(int, rte_eth_rx_queue_setup, uint16_t port, uint16_t queue, uint16_t n_desc,
	unsigned int socket, const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
NIC_WRAP(int, rte_eth_tx_queue_setup, uint16_t port, uint16_t queue, uint16_t n_desc,
	unsigned int socket, const struct rte_eth_txconf *conf);
NIC_WRAP(int, rte_eth_dev_start, uint16_t port);
NIC_WRAP(int, rte_eth_dev_stop, uint16_t port);
NIC_WRAP(int, rte_eth_dev_reset, uint16_t port);
NIC_WRAP(int, rte_eth_dev_close, uint16_t port);
NIC_WRAP(int, rte_eth_dev_callback_register, uint16_t port, enum rte_eth_event_type event,
	rte_eth_dev_cb_fn fn, void *arg);
NIC_WRAP(int, rte_eth_dev_callback_unregister, uint16_t port, enum rte_eth_event_type event,
	rte_eth_dev_cb_fn fn, void *arg);

NIC_WRAP(int, rte_flow_validate, uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
NIC_WRAP(struct rte_flow *, rte_flow_create, uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
NIC_WRAP(int, rte_flow_destroy, uint16_t port, struct rte_flow *flow, struct rte_flow_error *error);
NIC_WRAP(int, rte_flow_flush, uint16_t port, struct rte_flow_error *error);

NIC_WRAP(void *, rte_cryptodev_get_sec_ctx, uint8_t dev);
NIC_WRAP(void, rte_cryptodev_info_get, uint8_t dev, struct rte_cryptodev_info *info);
NIC_WRAP(int, rte_cryptodev_start, uint8_t dev);
NIC_WRAP(void, rte_cryptodev_stop, uint8_t dev);
NIC_WRAP(int, rte_cryptodev_close, uint8_t dev);

#undef NIC_WRAP

#endif /* TEST_NIC_WRAP_H */
