/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_IPSEC_CARD_H
#define TEST_IPSEC_CARD_H

/* A port whose NIC does ESP (test/nic), between the engine and a wire that is two rings. */

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "nic.h"
#include "world.h"

#define CARD_IFINDEX 2 /* world_resolve()'s */

struct card {
	uint16_t port;
	struct rte_ring *in, *out; /* the wire */
};

static inline void
card_start(const struct card *card, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {
		.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SECURITY,
		.txmode.offloads = RTE_ETH_TX_OFFLOAD_SECURITY,
	};

	if (rte_eth_dev_configure(card->port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(card->port, 0, 64, 0, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(card->port, 0, 64, 0, NULL) != 0 ||
		rte_eth_dev_start(card->port) != 0) {
		fprintf(stderr, "card: its port does not start\n");
		exit(1);
	}
}

/* preset, options: nic_attach()'s. Exits on failure. */
static inline void
card_open(struct card *card, const char *name, const char *preset, unsigned int options,
	struct rte_mempool *pool)
{
	char in[32], out[32];
	int port;

	snprintf(in, sizeof(in), "%s_in", name);
	snprintf(out, sizeof(out), "%s_out", name);
	card->in = rte_ring_create(in, 256, SOCKET_ID_ANY, 0);
	card->out = rte_ring_create(out, 256, SOCKET_ID_ANY, 0);
	if (card->in == NULL || card->out == NULL ||
		(port = rte_eth_from_rings(name, &card->in, 1, &card->out, 1, 0)) < 0 ||
		nic_attach((uint16_t)port, preset, options) != 0) {
		fprintf(stderr, "card: no port\n");
		exit(1);
	}
	card->port = (uint16_t)port;
	card_start(card, pool);
}

/* The instance may use it from now on. */
static inline int
card_add(const struct card *card, struct world *world, uint32_t ifindex, const char *name)
{
	struct ipsec_cache_dev dev = { .ifindex = ifindex, .port_id = card->port, .name = name };

	return ipsec_cache_dev_add(world->ic, &dev);
}

/* What is on the wire once the frame was sent; NULL: nothing. */
static inline struct rte_mbuf *
card_send(const struct card *card, struct rte_mbuf *m)
{
	void *got = NULL;

	if (rte_eth_tx_burst(card->port, 0, &m, 1) != 1) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return rte_ring_dequeue(card->out, &got) == 0 ? got : NULL;
}

/* What comes of a frame on the wire; NULL: nothing. */
static inline struct rte_mbuf *
card_receive(const struct card *card, struct rte_mbuf *m)
{
	rte_ring_enqueue(card->in, m);
	return rte_eth_rx_burst(card->port, 0, &m, 1) == 1 ? m : NULL;
}

static inline uint64_t
card_stat(const struct card *card, size_t offset)
{
	struct nic_stats stats;
	uint64_t value;

	if (nic_stats(card->port, &stats) != 0)
		exit(1);
	memcpy(&value, (const char *)&stats + offset, sizeof(value));
	return value;
}
#define CARD_STAT(card, name) card_stat(card, offsetof(struct nic_stats, name))

#endif /* TEST_IPSEC_CARD_H */
