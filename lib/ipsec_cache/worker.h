/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_WORKER_H
#define IPSEC_CACHE_WORKER_H

/* What one lcore has: its view of the instance for a burst, its tables, its counters, its scratch.
 */

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "ipsec_cache/cache.h"
#include "ipsec_cache/cipher.h"
#include "ipsec_cache/internal.h"
#include "ipsec_cache/rt.h"

/* One text for a cipher. */
struct ipsec_job {
	struct ipsec_cache_rt *rt;
	struct rte_mbuf *m;
	uint8_t *text; /* where the text lies in one piece; NULL: it does not */
	uint8_t *icv; /* where its check value is, or belongs; likewise */
	const uint8_t *aad;
	/* Of the text; opening, of ESP until that has been prepared. `off` is from the frame's
	 * first byte; sealing, it is set only if the text is not in one piece. */
	uint32_t len, off;
	uint8_t nonce[IPSEC_NONCE_LEN];
	uint8_t aad_len;
	uint8_t at; /* position in the vector */
	uint8_t outer_tos;
	bool moved; /* opened: came from elsewhere than the SA's peer: saddr, sport */

	uint64_t seq;
	uint8_t tag[IPSEC_ICV_MAX]; /* the right check value, of an opened text */
	uint8_t esn_aad[12]; /* what `aad` points to with ESN */
	__be16 sport;
	uint8_t encap; /* opened: 0, or UDP_ENCAP_ESPINUDP */
	bool believed; /* opened: a NIC has decrypted it, and found it right */
	uint64_t saddr[2];
} __rte_cache_aligned;
static_assert(offsetof(struct ipsec_job, seq) == 64, "a cipher's call reads one line of a job");

struct ipsec_lane;

struct ipsec_cache_worker {
	struct ipsec_cache *ic;
	unsigned int id;
	/* Set by ipsec_cache_begin(), for a burst. */
	uint64_t epoch;
	uint64_t home; /* what an SA's home is if it is this lcore */
	uint32_t uses;
	uint32_t seconds;
	struct ipsec_tables *tables; /* NULL: none yet, or no cache */
	unsigned int n_decisions;
	const struct ipsec_cache_rt *fetched; /* the SA whose lines were prefetched last */

	uint16_t ip_id; /* of outer IPv4 headers */
	uint32_t random; /* xorshift */

	struct ipsec_lane *lanes; /* to crypto devices that it used */
	uint32_t n_inside, n_lost; /* packets in all of them; lookaside.c */

	/* Written by this lcore, read by the control thread. */
	_Atomic uint64_t hits __rte_cache_aligned;
	_Atomic uint64_t completed, misses, stale, evictions, in_hits, in_misses;
	_Atomic uint64_t errors[IPSEC_CACHE_ERROR_MAX];

	struct gcm_context_data gcm __rte_cache_aligned;
	struct ipsec_job jobs[PACKET_VECTOR_MAX];
	struct ipsec_cache_decision decisions[IPSEC_CACHE_DECISIONS_MAX];
	/* flow and epoch of each packet that is looked up: a line */
	uint64_t flows[PACKET_VECTOR_MAX][IPSEC_FLOW_WORDS + 1] __rte_cache_aligned;
	struct ipsec_entry *entries[PACKET_VECTOR_MAX];
	uint64_t hashes[PACKET_VECTOR_MAX];
	uint64_t seqs[PACKET_VECTOR_MAX];
	/* Of jobs that are a crypto device's; of others what it was. */
	struct ipsec_session *sessions[PACKET_VECTOR_MAX];

	_Atomic(struct ipsec_tables *) next_tables __rte_cache_aligned; /* the control thread's */
};

static inline void
ipsec_worker_fail(struct ipsec_cache_worker *w, struct ipsec_cache_result *result, unsigned int i,
	enum ipsec_cache_error error)
{
	result->drop |= UINT64_C(1) << i;
	result->error[i] = (uint8_t)error;
	ipsec_add(&w->errors[error], 1);
}

/*
 * The home of an SA: this worker if nobody was before. The first of several wins by one
 * compare-and-swap. Relaxed: what a home writes belongs to it alone, and between two starts no
 * worker runs, so that starting the second hands over what the first wrote.
 */
static inline uint64_t
ipsec_worker_claim(const struct ipsec_cache_worker *w, struct ipsec_cache_rt *rt)
{
	uint64_t home = ipsec_load(&rt->home);

	if (likely(home == w->home))
		return home;
	if ((rt->flags & IPSEC_RT_PINNED) != 0)
		return (w->home & ~(uint64_t)UINT32_MAX) | rt->pcpu;
	while (home >> 32 != w->home >> 32)
		if (atomic_compare_exchange_weak_explicit(
			    &rt->home, &home, w->home, memory_order_relaxed, memory_order_relaxed))
			return w->home;
	return home;
}

/* Encrypts or decrypts a job's text in place, in however many segments it lies. */
void ipsec_job_chain(struct ipsec_cache_worker *w, struct ipsec_job *job, bool encrypt);

/* The nonce, and with ESN what is authenticated beside the text (RFC 4106, 4 and 5). */
static inline void
ipsec_job_nonce(
	struct ipsec_job *job, const struct ipsec_cache_rt *rt, const uint8_t *esp, uint64_t iv)
{
	memcpy(job->nonce, &rt->salt, sizeof(rt->salt));
	memcpy(job->nonce + sizeof(rt->salt), &iv, sizeof(iv));
	job->aad = esp;
	job->aad_len = IPSEC_ESP_HEADER;
	if ((rt->flags & IPSEC_RT_ESN) != 0) {
		uint32_t words[3] = { rt->spi, rte_cpu_to_be_32((uint32_t)(job->seq >> 32)),
			rte_cpu_to_be_32((uint32_t)job->seq) };

		memcpy(job->esn_aad, words, sizeof(words));
		job->aad = job->esn_aad;
		job->aad_len = sizeof(words);
	}
}

/* The lines of a key that the shortest texts need: round keys, and the first powers of its hash. */
static inline void
ipsec_prefetch_key(const struct ipsec_cache_rt *rt)
{
	const uint8_t *key = rt->tail; /* where rt->key points, without having to read it */

	rte_prefetch0(key);
	rte_prefetch0(key + 64);
	rte_prefetch0(key + 128);
	rte_prefetch0(key + sizeof(struct gcm_key_data) - 128);
	rte_prefetch0(key + sizeof(struct gcm_key_data) - 64);
}

/* The type of a frame whose Ethernet header is followed by that header. */
static inline void
ipsec_set_type(struct rte_mbuf *m, bool v4)
{
	uint16_t type = v4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, RTE_ETHER_HDR_LEN - 2), &type, sizeof(type));
}

/* The mark that an SA gives to packets that it made (XFRMA_SET_MARK). */
static inline void
ipsec_set_mark(
	const struct ipsec_cache_worker *w, const struct ipsec_cache_rt *rt, struct rte_mbuf *m)
{
	struct packet_meta *meta;

	if (likely((rt->flags & IPSEC_RT_SET_MARK) == 0))
		return;
	meta = packet_meta(m, w->ic->conf.meta_offset);
	meta->mark = (meta->mark & ~rt->set_mark_mask) | (rt->set_mark & rt->set_mark_mask);
}

#endif /* IPSEC_CACHE_WORKER_H */
