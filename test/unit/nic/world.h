/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_UNIT_NIC_WORLD_H
#define TEST_UNIT_NIC_WORLD_H

/* Ports of net_ring that are NICs, what they send to and get from, and sessions for them. */

#include <arpa/inet.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_security.h>

#include "nic.h"
#include "support.h"

#define WORLD_PORTS 2u
#define WORLD_RING 256u

struct world_port {
	uint16_t id;
	struct rte_ring *rx, *tx;
};

static struct world_port world_ports[WORLD_PORTS];
static struct rte_mempool *world_pool, *world_sessions;

static inline void
world_fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err < 0 ? -err : err));
	exit(1);
}

static inline void
world_start(unsigned int n, bool security)
{
	struct world_port *p = &world_ports[n];
	struct rte_eth_conf conf = { 0 };
	int ret;

	if (security) {
		conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SECURITY;
		conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_SECURITY;
	}
	if ((ret = rte_eth_dev_configure(p->id, 1, 1, &conf)) != 0 ||
		(ret = rte_eth_rx_queue_setup(p->id, 0, 64, 0, NULL, world_pool)) != 0 ||
		(ret = rte_eth_tx_queue_setup(p->id, 0, 64, 0, NULL)) != 0 ||
		(ret = rte_eth_dev_start(p->id)) != 0)
		world_fail("a port does not start", ret);
}

static inline void
world_open_port(unsigned int n, const char *preset, unsigned int options)
{
	struct world_port *p = &world_ports[n];
	char name[3][16];
	int ret;

	snprintf(name[0], sizeof(name[0]), "nic%u", n);
	snprintf(name[1], sizeof(name[1]), "nic%u_rx", n);
	snprintf(name[2], sizeof(name[2]), "nic%u_tx", n);
	p->rx = rte_ring_create(name[1], WORLD_RING, 0, 0);
	p->tx = rte_ring_create(name[2], WORLD_RING, 0, 0);
	if (p->rx == NULL || p->tx == NULL)
		world_fail("rte_ring_create", rte_errno);
	if ((ret = rte_eth_from_rings(name[0], &p->rx, 1, &p->tx, 1, 0)) < 0)
		world_fail("rte_eth_from_rings", rte_errno);
	p->id = (uint16_t)ret;
	if ((ret = nic_attach(p->id, preset, options)) != 0)
		world_fail("nic_attach", ret);
	world_start(n, true);
}

static inline void *
world_ctx(unsigned int n)
{
	return rte_eth_dev_get_sec_ctx(world_ports[n].id);
}

/* After EAL: pools, and so many ports. */
static inline void
world_open(unsigned int ports, const char *preset, unsigned int options)
{
	unsigned int size;

	world_pool = test_pool("world", 1023);
	for (unsigned int n = 0; n < ports; n++)
		world_open_port(n, preset, options);
	/* Header and private data: what 22.11 asks of an element. */
	size = 128 + rte_security_session_get_size(world_ctx(0));
	world_sessions = rte_mempool_create(
		"sessions", 255, size, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	if (world_sessions == NULL)
		world_fail("rte_mempool_create", rte_errno);
}

static inline uint64_t
world_stat(unsigned int n, size_t offset)
{
	struct nic_stats stats;
	uint64_t value;

	if (nic_stats(world_ports[n].id, &stats) != 0)
		world_fail("nic_stats", ENODEV);
	memcpy(&value, (const char *)&stats + offset, sizeof(value));
	return value;
}
#define WORLD_STAT(n, name) world_stat(n, offsetof(struct nic_stats, name))

/* A configuration, with a key behind it: AES-GCM unless there is none. */
struct world_conf {
	struct rte_security_session_conf conf;
	struct rte_crypto_sym_xform xform[2];
	uint8_t key[32];
};

static inline void
world_conf_init(struct world_conf *w, enum rte_security_session_action_type action, bool out,
	uint32_t spi, const uint8_t *key, uint16_t key_len, uint16_t icv_len)
{
	memset(w, 0, sizeof(*w));
	w->conf.action_type = action;
	w->conf.protocol = RTE_SECURITY_PROTOCOL_IPSEC;
	w->conf.crypto_xform = w->xform;
	w->conf.ipsec.spi = spi;
	w->conf.ipsec.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP;
	w->conf.ipsec.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL;
	w->conf.ipsec.direction =
		out ? RTE_SECURITY_IPSEC_SA_DIR_EGRESS : RTE_SECURITY_IPSEC_SA_DIR_INGRESS;
	if (key == NULL) {
		w->xform[0].type = RTE_CRYPTO_SYM_XFORM_CIPHER;
		w->xform[0].cipher.algo = RTE_CRYPTO_CIPHER_NULL;
		w->xform[0].next = &w->xform[1];
		w->xform[1].type = RTE_CRYPTO_SYM_XFORM_AUTH;
		w->xform[1].auth.algo = RTE_CRYPTO_AUTH_NULL;
		return;
	}
	memcpy(w->key, key, key_len);
	memcpy(&w->conf.ipsec.salt, key + key_len, 4);
	w->xform[0].type = RTE_CRYPTO_SYM_XFORM_AEAD;
	w->xform[0].aead.op = out ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT;
	w->xform[0].aead.algo = RTE_CRYPTO_AEAD_AES_GCM;
	w->xform[0].aead.key.data = w->key;
	w->xform[0].aead.key.length = key_len;
	w->xform[0].aead.digest_length = icv_len;
	w->xform[0].aead.aad_length = 8;
	w->xform[0].aead.iv.length = 12;
}

static inline void
world_conf_ends(struct world_conf *w, const char *src, const char *dst)
{
	struct rte_security_ipsec_tunnel_param *t = &w->conf.ipsec.tunnel;

	if (strchr(src, ':') != NULL) {
		t->type = RTE_SECURITY_IPSEC_TUNNEL_IPV6;
		inet_pton(AF_INET6, src, &t->ipv6.src_addr);
		inet_pton(AF_INET6, dst, &t->ipv6.dst_addr);
		t->ipv6.hlimit = 64;
	} else {
		t->type = RTE_SECURITY_IPSEC_TUNNEL_IPV4;
		inet_pton(AF_INET, src, &t->ipv4.src_ip);
		inet_pton(AF_INET, dst, &t->ipv4.dst_ip);
		t->ipv4.ttl = 64;
	}
}

static inline void *
world_session(unsigned int n, struct world_conf *w)
{
	return rte_security_session_create(world_ctx(n), &w->conf, world_sessions);
}

/* A frame on the wire comes in; what the application gets, or NULL. */
static inline struct rte_mbuf *
world_receive(unsigned int n, struct rte_mbuf *m)
{
	struct rte_mbuf *got;

	rte_ring_enqueue(world_ports[n].rx, m);
	return rte_eth_rx_burst(world_ports[n].id, 0, &got, 1) == 1 ? got : NULL;
}

/* A frame of the application's is sent; what is on the wire then, or NULL. */
static inline struct rte_mbuf *
world_send(unsigned int n, struct rte_mbuf *m)
{
	void *got;

	if (rte_eth_tx_burst(world_ports[n].id, 0, &m, 1) != 1)
		world_fail("rte_eth_tx_burst", ENOSPC);
	return rte_ring_dequeue(world_ports[n].tx, &got) == 0 ? got : NULL;
}

/* Marks a frame for a session as an application does. 0, or what the NIC says. */
static inline int
world_mark(unsigned int n, void *session, struct rte_mbuf *m, uint64_t *number)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, RTE_ETHER_HDR_LEN);

	m->l2_len = RTE_ETHER_HDR_LEN;
	m->l3_len = ip[0] >> 4 == 6 ? 40 : (ip[0] & 15u) * 4;
	m->ol_flags = RTE_MBUF_F_TX_SEC_OFFLOAD |
		(ip[0] >> 4 == 6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4);
	return rte_security_set_pkt_metadata(world_ctx(n), session, m, number);
}

#endif /* TEST_UNIT_NIC_WORLD_H */
