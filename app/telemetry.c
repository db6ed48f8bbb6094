/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* rte_telemetry commands: the counters of the prompt, for programs. Telemetry's own thread calls
 * these. */

#include <errno.h>
#include <pthread.h>

#include <rte_telemetry.h>

#include "app.h"
#include "telemetry.h"

/* DPDK renamed this between 22.11 and 24.11; the old name is gone with the next ABI. */
#include "compat.h"

/* Held while telemetry's thread looks at `app`, so that it never sees it taken apart. */
static pthread_mutex_t serving_lock = PTHREAD_MUTEX_INITIALIZER;
static bool serving;

static int
tel_locked(struct rte_tel_data *d, void (*fill)(struct rte_tel_data *d))
{
	int ret = -EAGAIN;

	pthread_mutex_lock(&serving_lock);
	if (serving) {
		rte_tel_data_start_dict(d);
		fill(d);
		ret = 0;
	}
	pthread_mutex_unlock(&serving_lock);
	return ret;
}

static void
fill_drops(struct rte_tel_data *d)
{
	uint64_t packets[DROP_MAX], bytes[DROP_MAX];

	drops_sum(&app, packets, bytes);
	for (unsigned int r = 0; r < DROP_MAX; r++)
		compat_tel_add_dict_uint(d, drop_info[r].name, packets[r]);
}

static void
fill_csum(struct rte_tel_data *d)
{
	for (unsigned int r = 0; r < CSUM_ACTION_REASON_MAX; r++)
		compat_tel_add_dict_uint(
			d, csum_action_reason_name(r), csum_action_count(app.csum, r));
}

static void
fill_ipsec(struct rte_tel_data *d)
{
	struct ipsec_cache_stats s;

	ipsec_cache_stats(app.ipsec, &s);
	compat_tel_add_dict_uint(d, "hits", s.hits);
	compat_tel_add_dict_uint(d, "misses", s.misses);
	compat_tel_add_dict_uint(d, "stale", s.stale);
	compat_tel_add_dict_uint(d, "evictions", s.evictions);
	compat_tel_add_dict_uint(d, "in_hits", s.in_hits);
	compat_tel_add_dict_uint(d, "in_misses", s.in_misses);
}

static int
tel_drops(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	(void)params;
	return tel_locked(d, fill_drops);
}

static int
tel_csum(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	(void)params;
	return tel_locked(d, fill_csum);
}

static int
tel_ipsec(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	(void)params;
	return tel_locked(d, fill_ipsec);
}

void
telemetry_serve(bool on)
{
	pthread_mutex_lock(&serving_lock);
	serving = on;
	pthread_mutex_unlock(&serving_lock);
}

int
telemetry_register(void)
{
	int ret = rte_telemetry_register_cmd("/millrace/drops", tel_drops,
		"Packets that did not leave, by reason. No parameters");

	if (ret == 0)
		ret = rte_telemetry_register_cmd("/millrace/csum", tel_csum,
			"What the checksum action did to packets. No parameters");
	if (ret == 0)
		ret = rte_telemetry_register_cmd(
			"/millrace/ipsec", tel_ipsec, "The cache of SAs and routes. No parameters");
	return ret;
}
