/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * millrace-nic: millrace whose ports and cryptodevs are NICs, as these variables of its environment
 * say, and as rte_telemetry tells it later:
 *
 *   MILLRACE_NIC=0=all,1=inline_crypto+fast+tx_drop:3,crypto0=protocol
 *       device = preset (nic_caps_preset()), then options (fast mdata noflow nosteer dynfield, for
 *       NIC_*) and faults with their values (nic_fault()), each behind a +
 *   MILLRACE_NIC_MARKER=HEX      as nic_marker()
 *   MILLRACE_NIC_STATS=FILE      at the end all counters go there, as JSON by device; pool_full
 *       says whether the NICs' buffers are all back
 *
 *   /nic/stats,DEVICE            counters by name
 *   /nic/sessions,DEVICE         by number: spi, action, out, number, packets, userdata
 *   /nic/fault,DEVICE,NAME,N     /nic/caps,DEVICE,PRESET     /nic/marker,HEX
 *   /nic/event,PORT,NAME[,N]     intr_reset intr_rmv forget; storm,N; ipsec,SUBTYPE[,METADATA]
 *
 * DEVICE is a port's number or crypto0, crypto1 ... Answers: "ok", or none if that was wrong.
 */

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_telemetry.h>

#include "compat.h"
#include "nic.h"

#define DEVICES_MAX 16u
#define WORDS_MAX 4u

struct device {
	bool crypto;
	uint16_t id;
};

static struct device devices[DEVICES_MAX];
static unsigned int n_devices;

int __real_rte_eal_init(int argc, char **argv);
int __wrap_rte_eal_init(int argc, char **argv);
int __real_rte_eal_cleanup(void);
int __wrap_rte_eal_cleanup(void);

static bool
device_of(const char *name, struct device *d)
{
	const char *error;

	d->crypto = strncmp(name, "crypto", 6) == 0;
	d->id = (uint16_t)strtonum(name + (d->crypto ? 6 : 0), 0, 255, &error);
	return error == NULL;
}

static int
device_stats(const struct device *d, struct nic_stats *stats)
{
	return d->crypto ? nic_crypto_stats((uint8_t)d->id, stats) : nic_stats(d->id, stats);
}

static int
device_fault(const struct device *d, const char *name, const char *value)
{
	int fault = nic_fault_by_name(name);
	const char *error;
	uint32_t n = (uint32_t)strtonum(value, 0, UINT32_MAX, &error);

	if (fault < 0 || error != NULL)
		return -EINVAL;
	return d->crypto ? nic_crypto_fault((uint8_t)d->id, (enum nic_fault)fault, n)
			 : nic_fault(d->id, (enum nic_fault)fault, n);
}

static const struct {
	const char *name;
	unsigned int option;
} options[] = {
	{ "fast", NIC_FAST_MDATA },
	{ "mdata", NIC_NEED_MDATA },
	{ "noflow", NIC_NO_FLOW },
	{ "nosteer", NIC_NO_STEERING },
	{ "dynfield", NIC_DYNFIELD },
};

static unsigned int
option_of(const char *name)
{
	for (unsigned int i = 0; i < RTE_DIM(options); i++) {
		if (strcmp(options[i].name, name) == 0)
			return options[i].option;
	}
	return 0;
}

/* PRESET+WORD+WORD: options first, as the device is made with them. */
static int
device_make(const struct device *d, char *how)
{
	char *preset = strsep(&how, "+"), *word, *value, *faults[NIC_FAULT_MAX];
	unsigned int set = 0, n = 0, option;
	int ret;

	while ((word = strsep(&how, "+")) != NULL) {
		if ((option = option_of(word)) == 0 && n < NIC_FAULT_MAX)
			faults[n++] = word;
		set |= option;
	}
	ret = d->crypto ? nic_crypto_attach((uint8_t)d->id, preset)
			: nic_attach(d->id, preset, set);
	for (unsigned int i = 0; ret == 0 && i < n; i++) {
		value = faults[i];
		word = strsep(&value, ":");
		ret = value != NULL ? device_fault(d, word, value) : -EINVAL;
	}
	return ret;
}

static int
marker_set(const char *hex)
{
	uint8_t bytes[64];
	unsigned int n, byte;

	for (n = 0; n < sizeof(bytes) && hex[2 * n] != '\0'; n++) {
		if (sscanf(hex + 2 * n, "%2x", &byte) != 1)
			return -EINVAL;
		bytes[n] = (uint8_t)byte;
	}
	nic_marker(bytes, n);
	return 0;
}

static int
devices_make(void)
{
	const char *env = getenv("MILLRACE_NIC"), *hex = getenv("MILLRACE_NIC_MARKER");
	char *copy = env != NULL ? strdup(env) : NULL, *rest = copy, *how, *name;
	int ret = 0;

	while (ret == 0 && (how = strsep(&rest, ",")) != NULL) {
		struct device *d = &devices[n_devices];

		name = strsep(&how, "=");
		if (how == NULL || n_devices == DEVICES_MAX || !device_of(name, d))
			ret = -EINVAL;
		else if ((ret = device_make(d, how)) == 0)
			n_devices++;
	}
	free(copy);
	if (ret == 0 && hex != NULL)
		ret = marker_set(hex);
	return ret;
}

int
__wrap_rte_eal_init(int argc, char **argv)
{
	int ret = __real_rte_eal_init(argc, argv), err;

	if (ret >= 0 && (err = devices_make()) != 0) {
		fprintf(stderr, "millrace-nic: MILLRACE_NIC: %s\n", strerror(-err));
		exit(1);
	}
	return ret;
}

static void
stats_write(FILE *f)
{
	fprintf(f, "{\n");
	for (unsigned int i = 0; i < n_devices; i++) {
		struct nic_stats stats = { 0 };
		const char *name;

		device_stats(&devices[i], &stats);
		fprintf(f, "  \"%s%u\": {", devices[i].crypto ? "crypto" : "", devices[i].id);
		for (unsigned int n = 0; (name = nic_stats_name(n)) != NULL; n++)
			fprintf(f, "%s\"%s\": %lu", n == 0 ? "" : ", ", name,
				(unsigned long)nic_stats_value(&stats, n));
		fprintf(f, "},\n");
	}
	fprintf(f, "  \"pool_full\": %s\n}\n", nic_pool_full() ? "true" : "false");
}

int
__wrap_rte_eal_cleanup(void)
{
	const char *path = getenv("MILLRACE_NIC_STATS");
	FILE *f;

	if (path != NULL && (f = fopen(path, "w")) != NULL) {
		stats_write(f);
		fclose(f);
	}
	return __real_rte_eal_cleanup();
}

/* What telemetry's client said, in words: the last takes the rest. */
static unsigned int
split(const char *params, char *copy, size_t size, char *words[WORDS_MAX])
{
	unsigned int n = 0;
	char *rest = copy;

	strlcpy(copy, params != NULL ? params : "", size);
	while (n < WORDS_MAX && (words[n] = strsep(&rest, ",")) != NULL)
		n++;
	return n;
}

static int
answer(int ret, struct rte_tel_data *d)
{
	return ret != 0 ? ret : rte_tel_data_string(d, "ok");
}

static int
tel_stats(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct nic_stats stats;
	struct device device;
	const char *name;
	int ret = -EINVAL;

	(void)cmd;
	if (params == NULL || !device_of(params, &device) ||
		(ret = device_stats(&device, &stats)) != 0)
		return ret;
	rte_tel_data_start_dict(d);
	for (unsigned int n = 0; (name = nic_stats_name(n)) != NULL; n++)
		compat_tel_add_dict_uint(d, name, nic_stats_value(&stats, n));
	return 0;
}

static void
tel_session(struct rte_tel_data *d, unsigned int n, const struct nic_session_info *info)
{
	struct rte_tel_data *one = rte_tel_data_alloc();
	char name[16];

	if (one == NULL)
		return;
	rte_tel_data_start_dict(one);
	compat_tel_add_dict_uint(one, "spi", info->spi);
	compat_tel_add_dict_uint(one, "action", info->action);
	compat_tel_add_dict_uint(
		one, "out", info->direction == RTE_SECURITY_IPSEC_SA_DIR_EGRESS ? 1 : 0);
	compat_tel_add_dict_uint(one, "number", info->number);
	compat_tel_add_dict_uint(one, "packets", info->packets);
	compat_tel_add_dict_uint(one, "userdata", info->userdata);
	snprintf(name, sizeof(name), "%u", n);
	rte_tel_data_add_dict_container(d, name, one, 0);
}

static int
tel_sessions(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct nic_session_info infos[64];
	struct device device;
	unsigned int n;

	(void)cmd;
	if (params == NULL || !device_of(params, &device))
		return -EINVAL;
	n = device.crypto ? nic_crypto_sessions((uint8_t)device.id, infos, RTE_DIM(infos))
			  : nic_sessions(device.id, infos, RTE_DIM(infos));
	rte_tel_data_start_dict(d);
	for (unsigned int i = 0; i < n; i++)
		tel_session(d, i, &infos[i]);
	return 0;
}

static int
tel_fault(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char copy[128], *words[WORDS_MAX];
	struct device device;

	(void)cmd;
	if (split(params, copy, sizeof(copy), words) != 3 || !device_of(words[0], &device))
		return -EINVAL;
	return answer(device_fault(&device, words[1], words[2]), d);
}

static int
tel_caps(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char copy[128], *words[WORDS_MAX];
	struct device device;

	(void)cmd;
	if (split(params, copy, sizeof(copy), words) != 2 || !device_of(words[0], &device))
		return -EINVAL;
	return answer(device.crypto ? nic_crypto_caps_preset((uint8_t)device.id, words[1])
				    : nic_caps_preset(device.id, words[1]),
		d);
}

static int
tel_marker(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return answer(marker_set(params != NULL ? params : ""), d);
}

static int
tel_event(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char copy[128], *words[WORDS_MAX] = { NULL };
	unsigned int n = split(params, copy, sizeof(copy), words);
	struct device device;
	uint64_t value;

	(void)cmd;
	if (n < 2 || !device_of(words[0], &device) || device.crypto)
		return -EINVAL;
	value = n > 2 ? strtoull(words[2], NULL, 0) : 0;
	if (strcmp(words[1], "storm") == 0)
		return answer(nic_event_storm(device.id, (unsigned int)value), d);
	if (strcmp(words[1], "ipsec") == 0)
		return answer(nic_event_ipsec(device.id, (enum rte_eth_event_ipsec_subtype)value,
				      n > 3 ? strtoull(words[3], NULL, 0) : 0),
			d);
	return answer(nic_event(device.id, words[1]), d);
}

static void __attribute__((constructor)) commands(void)
{
	rte_telemetry_register_cmd("/nic/stats", tel_stats, "Counters. Parameters: DEVICE");
	rte_telemetry_register_cmd(
		"/nic/sessions", tel_sessions, "The first 64. Parameters: DEVICE");
	rte_telemetry_register_cmd("/nic/fault", tel_fault, "Parameters: DEVICE,NAME,N");
	rte_telemetry_register_cmd("/nic/caps", tel_caps, "Parameters: DEVICE,PRESET");
	rte_telemetry_register_cmd("/nic/marker", tel_marker, "Parameters: HEX");
	rte_telemetry_register_cmd("/nic/event", tel_event, "Parameters: PORT,NAME[,N[,METADATA]]");
}
