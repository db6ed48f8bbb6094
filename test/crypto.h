/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_CRYPTO_H
#define TEST_CRYPTO_H

/* Crypto devices in software, for tests of lookaside. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include "ipsec_cache/ipsec_cache.h"

/* `name`: a driver's and a number, "crypto_aesni_gcm0". False: this machine has no such driver. */
static inline bool
test_crypto_make(const char *name, uint8_t *id)
{
	int dev;

	if (rte_eal_hotplug_add("vdev", name, "") != 0 ||
		(dev = rte_cryptodev_get_dev_id(name)) < 0)
		return false;
	*id = (uint8_t)dev;
	return true;
}

/* With a queue pair for each of n workers. */
static inline bool
test_crypto_start(uint8_t id, uint16_t n)
{
	struct rte_cryptodev_config conf = { .socket_id = SOCKET_ID_ANY, .nb_queue_pairs = n };
	struct rte_cryptodev_qp_conf qp = { .nb_descriptors = 2048 };

	if (rte_cryptodev_configure(id, &conf) != 0)
		return false;
	for (uint16_t i = 0; i < n; i++)
		if (rte_cryptodev_queue_pair_setup(id, i, &qp, SOCKET_ID_ANY) != 0)
			return false;
	return rte_cryptodev_start(id) == 0;
}

/* Exits on failure. */
static inline uint8_t
test_crypto_add(struct ipsec_cache *ic, const char *name, uint16_t n)
{
	struct ipsec_cache_crypto crypto = { .n_queue_pairs = n, .name = name };

	if (!test_crypto_make(name, &crypto.dev_id) || !test_crypto_start(crypto.dev_id, n) ||
		ipsec_cache_crypto_add(ic, &crypto) != 0) {
		fprintf(stderr, "%s does not start: %s\n", name, rte_strerror(rte_errno));
		exit(1);
	}
	return crypto.dev_id;
}

/* All of them, before the instance goes. */
static inline void
test_crypto_stop(void)
{
	for (unsigned int i = 0; i < RTE_CRYPTO_MAX_DEVS; i++)
		if (rte_cryptodev_is_valid_dev((uint8_t)i) != 0)
			rte_cryptodev_stop((uint8_t)i);
}

#endif /* TEST_CRYPTO_H */
