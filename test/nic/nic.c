/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Devices, and what is the same for a port and a cryptodev: counters, faults, the marker. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MARKER_MAX 64u

struct nic nic_ports[RTE_MAX_ETHPORTS];
static struct nic cryptos[NIC_CRYPTO_MAX];

static pthread_mutex_t marker_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint8_t marker[MARKER_MAX];
static _Atomic size_t marker_len;

static const char *const stats_names[] = {
#define STATS_NAME(name, what) #name,
	NIC_STATS(STATS_NAME)
#undef STATS_NAME
};

static const char *const fault_names[] = {
#define FAULT_NAME(name, what) #name,
	NIC_FAULTS_NEXT(FAULT_NAME) NIC_FAULTS_LEVEL(FAULT_NAME)
#undef FAULT_NAME
};

const char *
nic_stats_name(unsigned int n)
{
	return n < RTE_DIM(stats_names) ? stats_names[n] : NULL;
}

uint64_t
nic_stats_value(const struct nic_stats *stats, unsigned int n)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)stats + n * sizeof(value), sizeof(value));
	return value;
}

int
nic_fault_by_name(const char *name)
{
	for (unsigned int i = 0; i < RTE_DIM(fault_names); i++) {
		if (strcmp(fault_names[i], name) == 0)
			return (int)i;
	}
	return -1;
}

struct nic *
nic_of_port(uint16_t port)
{
	return port < RTE_MAX_ETHPORTS && nic_ports[port].attached ? &nic_ports[port] : NULL;
}

struct nic *
nic_of_crypto(uint8_t dev)
{
	return dev < NIC_CRYPTO_MAX && cryptos[dev].attached ? &cryptos[dev] : NULL;
}

int
nic_open(struct nic *nic, uint8_t id, const char *preset, unsigned int options)
{
	int err = 0;

	if (nic->attached)
		return -EEXIST;
	memset(nic, 0, sizeof(*nic));
	if ((nic->caps = nic_table_of(preset, options, &err)) == NULL)
		return err;
	if ((nic->slots = calloc(NIC_SESSION_MAX + 1, sizeof(*nic->slots))) == NULL ||
		nic_pool_open() != 0) {
		nic_tables_free(nic);
		free(nic->slots);
		return -ENOMEM;
	}
	pthread_mutex_init(&nic->mutex, NULL);
	nic->id = id;
	nic->options = options;
	nic->ctx.device = nic;
	nic->ctx.ops = &nic_ops;
	nic->faults[NIC_FAULT_create_errno] = ENOMEM;
	nic->faults[NIC_FAULT_session_max] = NIC_SESSION_MAX;
	nic->attached = true;
	return 0;
}

void
nic_shut(struct nic *nic)
{
	nic_forget(nic);
	nic_flows_clear(nic);
	nic_tables_free(nic);
	free(nic->slots);
	pthread_mutex_destroy(&nic->mutex);
	nic->attached = false;
}

int
nic_attach(uint16_t port, const char *preset, unsigned int options)
{
	struct nic *nic;
	int ret;

	if (port >= RTE_MAX_ETHPORTS)
		return -ENODEV;
	nic = &nic_ports[port];
	if ((options & NIC_NO_FLOW) != 0)
		options |= NIC_NO_STEERING;
	if ((ret = nic_open(nic, (uint8_t)port, preset, options)) != 0)
		return ret;
	nic->port = port;
	if (nic_table_has(nic->caps, RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL))
		options |= NIC_DYNFIELD;
	if ((options & NIC_FAST_MDATA) != 0)
		nic->ctx.flags = RTE_SEC_CTX_F_FAST_SET_MDATA;
	ret = nic_mdata_init((options & (NIC_FAST_MDATA | NIC_DYNFIELD)) != 0);
	nic->options = options;
	if (ret != 0)
		nic_shut(nic);
	return ret;
}

void
nic_detach(uint16_t port)
{
	struct nic *nic = nic_of_port(port);

	if (nic != NULL)
		nic_shut(nic);
}

int
nic_crypto_attach(uint8_t dev, const char *preset)
{
	struct nic_crypto *crypto;
	int ret;

	if (dev >= NIC_CRYPTO_MAX)
		return -ENODEV;
	if ((ret = nic_mdata_init(false)) != 0)
		return ret;
	if ((crypto = nic_crypto_open()) == NULL)
		return -ENOMEM;
	if ((ret = nic_open(&cryptos[dev], (uint8_t)(NIC_CRYPTO_ID | dev), preset, 0)) != 0)
		nic_crypto_close(crypto);
	else
		cryptos[dev].crypto = crypto;
	return ret;
}

void
nic_crypto_detach(uint8_t dev)
{
	struct nic *nic = nic_of_crypto(dev);

	if (nic == NULL)
		return;
	nic_crypto_close(nic->crypto);
	nic_shut(nic);
}

bool
nic_strikes(struct nic *nic, enum nic_fault fault)
{
	uint32_t n = atomic_load_explicit(&nic->faults[fault], memory_order_relaxed);

	while (n != 0 && n != NIC_ALWAYS) {
		if (atomic_compare_exchange_weak_explicit(&nic->faults[fault], &n, n - 1,
			    memory_order_relaxed, memory_order_relaxed))
			return true;
	}
	return n == NIC_ALWAYS;
}

uint32_t
nic_level(const struct nic *nic, enum nic_fault fault)
{
	return atomic_load_explicit(&nic->faults[fault], memory_order_relaxed);
}

static int
fault_set(struct nic *nic, enum nic_fault fault, uint32_t n)
{
	if (nic == NULL)
		return -ENODEV;
	atomic_store_explicit(&nic->faults[fault], n, memory_order_relaxed);
	return 0;
}

int
nic_fault(uint16_t port, enum nic_fault fault, uint32_t n)
{
	struct nic *nic = nic_of_port(port);
	int ret = fault_set(nic, fault, n);

	if (ret == 0 && fault == NIC_FAULT_tx_hold && n == 0)
		nic_tx_release(nic, true);
	return ret;
}

int
nic_crypto_fault(uint8_t dev, enum nic_fault fault, uint32_t n)
{
	return fault_set(nic_of_crypto(dev), fault, n);
}

static int
stats_get(const struct nic *nic, struct nic_stats *stats)
{
	uint64_t values[sizeof(*stats) / sizeof(uint64_t)];

	if (nic == NULL)
		return -ENODEV;
	for (unsigned int i = 0; i < RTE_DIM(values); i++)
		values[i] = atomic_load_explicit(&nic->stats[i], memory_order_relaxed);
	memcpy(stats, values, sizeof(*stats));
	return 0;
}

int
nic_stats(uint16_t port, struct nic_stats *stats)
{
	return stats_get(nic_of_port(port), stats);
}

int
nic_crypto_stats(uint8_t dev, struct nic_stats *stats)
{
	return stats_get(nic_of_crypto(dev), stats);
}

void
nic_marker(const void *bytes, size_t len)
{
	len = RTE_MIN(len, (size_t)MARKER_MAX);
	pthread_mutex_lock(&marker_mutex);
	memcpy(marker, bytes, len);
	atomic_store_explicit(&marker_len, len, memory_order_relaxed);
	pthread_mutex_unlock(&marker_mutex);
}

bool
nic_marked(const uint8_t *frame, uint32_t len)
{
	bool marked;

	if (atomic_load_explicit(&marker_len, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&marker_mutex);
	marked = marker_len != 0 && memmem(frame, len, marker, marker_len) != NULL;
	pthread_mutex_unlock(&marker_mutex);
	return marked;
}
