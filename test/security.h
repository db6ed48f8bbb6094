/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_SECURITY_H
#define TEST_SECURITY_H

/*
 * A port's rte_security where the NIC behind it does nothing at all: for benchmarks, which leave
 * out what a NIC does, for stress tests and fuzzers. (test/nic is the one that does ESP.) Link with
 * -Wl,--wrap= of the functions below, and define security_ctx(). Thread safety: none of its own.
 */

#include <errno.h>

#include <rte_cryptodev.h>
#include <rte_ethdev.h>
#include <rte_security_driver.h>

/* The context of a port. */
static struct rte_security_ctx *security_ctx(uint16_t port);

static const struct rte_cryptodev_capabilities security_gcm[] = {
	{ .op = RTE_CRYPTO_OP_TYPE_SYMMETRIC,
		.sym = { .xform_type = RTE_CRYPTO_SYM_XFORM_AEAD,
			.aead = { .algo = RTE_CRYPTO_AEAD_AES_GCM,
				.key_size = { 16, 32, 8 },
				.digest_size = { 16, 16, 0 } } } },
	{ .op = RTE_CRYPTO_OP_TYPE_UNDEFINED },
};

/* What it can: CRYPTO or PROTOCOL, EGRESS or INGRESS; no ESN, no UDP where it does not matter. */
#define SECURITY_CAPABILITY(what, way) \
	{ \
		.action = RTE_SECURITY_ACTION_TYPE_INLINE_##what, \
		.protocol = RTE_SECURITY_PROTOCOL_IPSEC, \
		.ipsec = { .proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP, \
			.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL, \
			.direction = RTE_SECURITY_IPSEC_SA_DIR_##way, \
			.options = { .esn = 1, \
				.udp_encap = 1, \
				.copy_dscp = 1, \
				.copy_flabel = 1, \
				.copy_df = 1, \
				.ecn = 1 }, \
			.replay_win_sz_max = 4096 }, \
		.crypto_capabilities = security_gcm, .ol_flags = RTE_SECURITY_TX_OLOAD_NEED_MDATA, \
	}

void *__wrap_rte_eth_dev_get_sec_ctx(uint16_t port);
int __wrap_rte_eth_dev_socket_id(uint16_t port);
int __wrap_rte_flow_validate(
	uint16_t port, const void *attr, const void *pattern, const void *actions, void *error);

void *
__wrap_rte_eth_dev_get_sec_ctx(uint16_t port)
{
	return security_ctx(port);
}

int
__wrap_rte_eth_dev_socket_id(uint16_t port)
{
	(void)port;
	return SOCKET_ID_ANY;
}

/* It needs no rules. */
int
__wrap_rte_flow_validate(
	uint16_t port, const void *attr, const void *pattern, const void *actions, void *error)
{
	(void)port;
	(void)attr;
	(void)pattern;
	(void)actions;
	(void)error;
	return -ENOSYS;
}

/* Sessions of which nothing is kept. */
static inline unsigned int
security_size(void *device)
{
	(void)device;
	return 64;
}

static inline int
security_create(
	void *device, struct rte_security_session_conf *conf, struct rte_security_session *s)
{
	(void)device;
	(void)conf;
	(void)s;
	return 0;
}

static inline int
security_destroy(void *device, struct rte_security_session *s)
{
	(void)device;
	(void)s;
	return 0;
}

#endif /* TEST_SECURITY_H */
