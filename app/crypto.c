/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdio.h>
#include <string.h>

#include <rte_cryptodev.h>

#include "app.h"
#include "crypto.h"

/* A packet that was put into a queue pair has its place there: more than a worker has in a device.
 */
static const uint32_t descriptors[] = { 2048, 1024 };

static int
queue_pairs_setup(uint8_t id, uint16_t n)
{
	struct rte_cryptodev_qp_conf conf = { 0 };
	int err = 0;

	for (uint16_t i = 0; i < n; i++) {
		for (unsigned int k = 0; k < RTE_DIM(descriptors); k++) {
			conf.nb_descriptors = descriptors[k];
			err = rte_cryptodev_queue_pair_setup(
				id, i, &conf, rte_cryptodev_socket_id(id));
			if (err == 0)
				break;
		}
		if (err != 0)
			return err;
	}
	return 0;
}

/* A queue pair for each of the cache's workers, or as many as there are. */
static int
device_start(struct app *a, uint8_t id)
{
	struct ipsec_cache_crypto crypto = { .dev_id = id, .name = rte_cryptodev_name_get(id) };
	struct rte_cryptodev_config conf = { .socket_id = rte_cryptodev_socket_id(id) };
	struct rte_cryptodev_info info = { 0 };
	int err;

	rte_cryptodev_info_get(id, &info);
	if ((info.feature_flags & RTE_CRYPTODEV_FF_SYMMETRIC_CRYPTO) == 0)
		return -ENOTSUP;
	conf.nb_queue_pairs = (uint16_t)(a->n_workers + 1);
	if (info.max_nb_queue_pairs != 0)
		conf.nb_queue_pairs =
			(uint16_t)RTE_MIN(conf.nb_queue_pairs, info.max_nb_queue_pairs);
	conf.ff_disable = RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO;
	crypto.n_queue_pairs = conf.nb_queue_pairs;
	if ((err = rte_cryptodev_configure(id, &conf)) != 0 ||
		(err = queue_pairs_setup(id, conf.nb_queue_pairs)) != 0 ||
		(err = rte_cryptodev_start(id)) != 0)
		return err;
	if ((err = ipsec_cache_crypto_add(a->ipsec, &crypto)) != 0)
		rte_cryptodev_stop(id);
	return err;
}

static void
each(void (*fn)(uint8_t id))
{
	for (unsigned int id = 0; id < RTE_CRYPTO_MAX_DEVS; id++) {
		if (rte_cryptodev_is_valid_dev((uint8_t)id) != 0)
			fn((uint8_t)id);
	}
}

int
crypto_open(struct app *a)
{
	unsigned int n = 0;
	int err;

	if (!a->opt.crypto_lookaside)
		return 0;
	for (unsigned int id = 0; id < RTE_CRYPTO_MAX_DEVS; id++) {
		if (rte_cryptodev_is_valid_dev((uint8_t)id) == 0)
			continue;
		if ((err = device_start(a, (uint8_t)id)) != 0 && err != -ENOTSUP) {
			fprintf(stderr, "millrace: crypto device %s does not start: %s\n",
				rte_cryptodev_name_get((uint8_t)id), strerror(-err));
			return -1;
		}
		n += err == 0;
	}
	if (n > 0)
		return 0;
	fprintf(stderr,
		"millrace: --crypto=lookaside: EAL has no crypto device that encrypts; give it "
		"one, "
		"for example --vdev crypto_aesni_gcm0\n");
	return -1;
}

void
crypto_stop(struct app *a)
{
	if (a->opt.crypto_lookaside)
		each(rte_cryptodev_stop);
}

static void
device_close(uint8_t id)
{
	rte_cryptodev_close(id);
}

void
crypto_close(struct app *a)
{
	if (a->opt.crypto_lookaside)
		each(device_close);
}
