/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* rte_telemetry commands: the counters of the prompt, for programs. Telemetry's own thread calls
 * these. */

#include <arpa/inet.h>
#include <bsd/stdlib.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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
	compat_tel_add_dict_uint(d, "sessions", s.sessions);
	compat_tel_add_dict_uint(d, "sessions_dying", s.sessions_dying);
	compat_tel_add_dict_uint(d, "sessions_stuck", s.sessions_stuck);
	compat_tel_add_dict_uint(d, "fallbacks", s.fallbacks);
	compat_tel_add_dict_uint(d, "completed", s.completed);
}

/* --- SAs, which are the control thread's: it is asked, and answers with its next tick --- */

#define SAS_MAX 64 /* of one answer */
#define ASK_S 2 /* that it may take */

struct sa_row {
	struct ipsec_cache_sa_spec spec; /* without its keys */
	struct ipsec_cache_backend backend;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic bool wanted;
	bool done;
	unsigned int from, n;
	struct sa_row rows[SAS_MAX];
} ask = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void
row_fill(struct app *a, const struct ipsec_cache_sa *sa, struct sa_row *row)
{
	ipsec_cache_sa_describe(sa, &row->spec);
	explicit_bzero(&row->spec.aead, sizeof(row->spec.aead));
	explicit_bzero(&row->spec.crypt, sizeof(row->spec.crypt));
	explicit_bzero(&row->spec.auth, sizeof(row->spec.auth));
	ipsec_cache_sa_backend(a->ipsec, sa, &row->backend);
}

void
telemetry_answer(struct app *a)
{
	const struct ipsec_cache_sa *sa;
	unsigned int i = 0;
	uint64_t after = 0;

	/* Relaxed: the lock orders what is asked. */
	if (likely(!atomic_load_explicit(&ask.wanted, memory_order_relaxed)))
		return;
	pthread_mutex_lock(&ask.lock);
	for (ask.n = 0; ask.n < SAS_MAX && (sa = ipsec_cache_sa_next(a->ipsec, &after)) != NULL;) {
		if (i++ >= ask.from)
			row_fill(a, sa, &ask.rows[ask.n++]);
	}
	ask.done = true;
	atomic_store_explicit(&ask.wanted, false, memory_order_relaxed);
	pthread_cond_signal(&ask.changed);
	pthread_mutex_unlock(&ask.lock);
}

static struct rte_tel_data *
sa_data(const struct sa_row *row)
{
	struct rte_tel_data *d = rte_tel_data_alloc();
	char spi[16], from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

	if (d == NULL)
		return NULL;
	snprintf(spi, sizeof(spi), "0x%08x", ntohl(row->spec.info.id.spi));
	inet_ntop(row->spec.info.family, &row->spec.info.saddr, from, sizeof(from));
	inet_ntop(row->spec.info.family, &row->spec.info.id.daddr, to, sizeof(to));
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "spi", spi);
	rte_tel_data_add_dict_string(d, "src", from);
	rte_tel_data_add_dict_string(d, "dst", to);
	rte_tel_data_add_dict_string(d, "backend", row->backend.name);
	rte_tel_data_add_dict_string(d, "why_not", row->backend.why_not);
	compat_tel_add_dict_uint(d, "packets", row->spec.info.curlft.packets);
	return d;
}

/* One question at a time: telemetry has a thread for each client. */
static int
tel_sas(const char *cmd, const char *params, struct rte_tel_data *d)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	const char *why = NULL;
	struct timespec end;
	int ret = 0;

	(void)cmd;
	pthread_mutex_lock(&one);
	pthread_mutex_lock(&ask.lock);
	ask.from = params != NULL ? (unsigned int)strtonum(params, 0, INT32_MAX, &why) : 0;
	if (why == NULL) {
		ask.done = false;
		atomic_store_explicit(&ask.wanted, true, memory_order_relaxed);
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += ASK_S;
		while (!ask.done && ret == 0)
			ret = pthread_cond_timedwait(&ask.changed, &ask.lock, &end);
	}
	if (why == NULL && ask.done) {
		ret = 0;
		rte_tel_data_start_dict(d);
		for (unsigned int i = 0; i < ask.n; i++) {
			struct rte_tel_data *sa = sa_data(&ask.rows[i]);
			char number[16];

			/* 22.11 shows no array of dictionaries. */
			snprintf(number, sizeof(number), "%u", ask.from + i);
			if (sa != NULL)
				rte_tel_data_add_dict_container(d, number, sa, 0);
		}
	} else {
		ret = why != NULL ? -EINVAL : -EAGAIN;
	}
	pthread_mutex_unlock(&ask.lock);
	pthread_mutex_unlock(&one);
	return ret;
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
		ret = rte_telemetry_register_cmd("/millrace/ipsec", tel_ipsec,
			"The cache of SAs and routes, and sessions of NICs. No parameters");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/millrace/ipsec/sa", tel_sas,
			"SAs, and what does their work. Parameter: how many to pass over");
	return ret;
}
