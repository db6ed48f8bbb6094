/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "ipsec_cache/vault.h"
#include "ipsec_cache/worker.h"

void
ipsec_workers_destroy(struct ipsec_cache *ic)
{
	unsigned int i;

	for (i = 0; ic->workers != NULL && i < ic->conf.n_workers; i++) {
		if (ic->workers[i] == NULL)
			continue;
		ipsec_tables_destroy(
			atomic_load_explicit(&ic->workers[i]->next_tables, memory_order_relaxed));
		rte_free(ic->workers[i]);
	}
	free(ic->workers);
	ic->workers = NULL;
	ipsec_vault_destroy(ic->vault);
	ipsec_ciphers_destroy(ic->ciphers);
	ic->vault = NULL;
	ic->ciphers = NULL;
}

int
ipsec_workers_create(struct ipsec_cache *ic)
{
	struct ipsec_cache_worker *w;
	unsigned int i;

	ic->workers = calloc(ic->conf.n_workers, sizeof(struct ipsec_cache_worker *));
	ic->vault = ipsec_vault_create();
	ic->ciphers = ipsec_ciphers_create();
	if (ic->workers == NULL || ic->vault == NULL || ic->ciphers == NULL)
		goto fail;
	for (i = 0; i < ic->conf.n_workers; i++) {
		w = rte_zmalloc_socket(
			"ipsec_cache", sizeof(*w), RTE_CACHE_LINE_SIZE, ic->conf.socket);
		if (w == NULL)
			goto fail;
		w->ic = ic;
		w->id = i;
		/* apart from each other, so that two lcores seldom use one ID to one peer */
		w->ip_id = (uint16_t)(i * (UINT16_MAX / ic->conf.n_workers));
		w->random = i + 1;
		ic->workers[i] = w;
		ipsec_cache_begin(w);
	}
	return 0;
fail:
	ipsec_workers_destroy(ic);
	return -ENOMEM;
}

int
ipsec_workers_start(struct ipsec_cache *ic)
{
	struct ipsec_tables *tables;
	unsigned int i;

	if (ic->conf.cache_entries == 0)
		return 0;
	for (i = 0; i < ic->conf.n_workers; i++) {
		if (atomic_load_explicit(&ic->workers[i]->next_tables, memory_order_relaxed) !=
			NULL)
			continue;
		tables = ipsec_tables_create(ic->conf.cache_entries, ic->conf.socket);
		if (tables == NULL)
			return -ENOMEM;
		/* release: a worker that sees the tables sees that they are empty */
		atomic_store_explicit(&ic->workers[i]->next_tables, tables, memory_order_release);
	}
	return 0;
}

struct ipsec_cache_worker *
ipsec_cache_worker(struct ipsec_cache *ic, unsigned int id)
{
	return id < ic->conf.n_workers ? ic->workers[id] : NULL;
}

void
ipsec_cache_begin(struct ipsec_cache_worker *w)
{
	const struct ipsec_cache *ic = w->ic;

	/* acquire, first: what is looked up from now on is no older than this epoch (cache.h) */
	w->epoch = atomic_load_explicit(&ic->epoch, memory_order_acquire);
	w->uses = ipsec_load(&ic->uses);
	w->seconds = ipsec_load(&ic->seconds);
	w->home = ((uint64_t)ipsec_load(&ic->starts) + 1) << 32 | w->id;
	w->tables = atomic_load_explicit(&w->next_tables, memory_order_acquire);
	w->n_decisions = 0;
	w->fetched = NULL;
}

unsigned int
ipsec_cache_home(struct ipsec_cache_worker *w, const struct ipsec_cache_decision *d)
{
	if (d->rt == NULL || (d->rt->flags & IPSEC_RT_SHARED) != 0)
		return w->id;
	return (uint32_t)ipsec_worker_claim(w, d->rt);
}

void
ipsec_workers_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats)
{
	unsigned int i, e;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < ic->conf.n_workers; i++) {
		const struct ipsec_cache_worker *w = ic->workers[i];

		stats->hits += ipsec_load(&w->hits);
		stats->misses += ipsec_load(&w->misses);
		stats->stale += ipsec_load(&w->stale);
		stats->evictions += ipsec_load(&w->evictions);
		stats->completed += ipsec_load(&w->completed);
		stats->in_hits += ipsec_load(&w->in_hits);
		stats->in_misses += ipsec_load(&w->in_misses);
		for (e = 0; e < IPSEC_CACHE_ERROR_MAX; e++)
			stats->errors[e] += ipsec_load(&w->errors[e]);
	}
}

void
ipsec_job_chain(struct ipsec_cache_worker *w, struct ipsec_job *job, bool encrypt)
{
	const struct ipsec_cipher *cipher = job->rt->cipher;
	const struct gcm_key_data *key = job->rt->key;
	struct rte_mbuf *seg = job->m;
	uint32_t off = job->off, left = job->len, part;
	uint8_t *p;

	cipher->init(key, &w->gcm, job->nonce, job->aad, job->aad_len);
	for (; off >= seg->data_len; seg = seg->next)
		off -= seg->data_len;
	for (; left > 0; seg = seg->next, off = 0) {
		part = RTE_MIN(left, seg->data_len - off);
		if (part == 0)
			continue;
		p = rte_pktmbuf_mtod_offset(seg, uint8_t *, off);
		if (encrypt)
			cipher->encrypt_update(key, &w->gcm, p, p, part);
		else
			cipher->decrypt_update(key, &w->gcm, p, p, part);
		left -= part;
	}
	if (encrypt)
		cipher->encrypt_finalize(key, &w->gcm, job->icv, job->rt->icv_len);
	else
		cipher->decrypt_finalize(key, &w->gcm, job->tag, job->rt->icv_len);
}
