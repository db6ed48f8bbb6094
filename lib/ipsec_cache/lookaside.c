/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What workers put into crypto devices, and what comes back.
 *
 * A device is not trusted. What it gives back is looked up by the state of its slot: what comes
 * twice, or comes after it was given up, is nobody's packet any more. One that has something inside
 * and gives nothing back, or takes nothing although it is empty, has failed: all that is inside is
 * given up, and the CPU goes on.
 */

#include <rte_cryptodev.h>
#include <rte_cycles.h>
#include <rte_jhash.h>

#include "ipsec_cache/inline.h"
#include "ipsec_cache/lookaside.h"

#define COLLECT 64 /* operations taken out at once */
/* Looks in vain before a device has failed: a worker that did not run for long has few. */
#define LOOKS_MIN 64
/* Bytes of a check value that are zeros until the device has made it: there are that many. */
#define ICV_LOOKED_AT 8

static struct ipsec_lane *
lane_of(struct ipsec_cache_worker *w, const struct ipsec_session *s)
{
	struct ipsec_lane *lane = s->crypto->lanes[w->id];

	if (unlikely(!lane->used)) {
		lane->used = true;
		lane->next = w->lanes;
		w->lanes = lane;
	}
	return lane;
}

/* The next place of a lane, with an operation that is staged. NULL: it is full. */
static inline struct ipsec_slot *
lane_add(struct ipsec_cache_worker *w, struct ipsec_lane *lane, struct rte_crypto_op **opp)
{
	struct rte_crypto_op *op;

	if (unlikely(lane->tail - lane->head == IPSEC_LANE_OPS || lane->n_free == 0))
		return NULL;
	op = lane->free[--lane->n_free];
	lane->ring[lane->tail++ % IPSEC_LANE_OPS] = op;
	lane->staged[lane->n_staged++] = op;
	w->n_inside++;
	*opp = op;
	return ipsec_slot_of(op);
}

static inline void
fill(const struct ipsec_cache_worker *w, struct rte_crypto_op *op, struct ipsec_slot *slot,
	const struct ipsec_job *job, struct ipsec_session *s, bool seal)
{
	op->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
	op->sess_type = (s->kind & IPSEC_SESSION_PROTOCOL) != 0 ? RTE_CRYPTO_OP_SECURITY_SESSION
								: RTE_CRYPTO_OP_WITH_SESSION;
	op->aux_flags = 0;
	op->sym->m_src = job->m;
	op->sym->m_dst = NULL;
	op->sym->session = s->security;
	slot->session = s;
	slot->rt = job->rt;
	slot->m = job->m;
	slot->state = IPSEC_SLOT_INSIDE;
	slot->error = IPSEC_CACHE_ERROR_MAX;
	slot->sealed = seal;
	slot->left = false;
	slot->outer_tos = job->outer_tos;
	ipsec_add(&s->in_flight[w->id].inside, 1);
}

/* Text, nonce and check value. `icv`: where that is in the mbuf; NULL: it is in the slot. */
static inline void
fill_text(struct rte_crypto_op *op, struct ipsec_slot *slot, const struct ipsec_job *job,
	const struct rte_mbuf *last, uint8_t *icv)
{
	struct rte_crypto_sym_op *sym = op->sym;

	slot->seq = job->seq;
	slot->off = job->text != NULL ? (uint32_t)(job->text - rte_pktmbuf_mtod(job->m, uint8_t *))
				      : job->off;
	slot->len = job->len;
	if (unlikely(job->rt->iv_len == 0)) {
		sym->cipher.data.offset = sym->auth.data.offset = slot->off;
		sym->cipher.data.length = sym->auth.data.length = slot->len;
		sym->auth.digest.data = slot->icv;
		sym->auth.digest.phys_addr = rte_crypto_op_ctophys_offset(
			op, IPSEC_SLOT_OFFSET + offsetof(struct ipsec_slot, icv));
		return;
	}
	memcpy(slot->iv, job->nonce, sizeof(job->nonce));
	/* at once: with 8 bytes, those of the IV stand behind them in the packet, and do not count
	 */
	memcpy(slot->aad, job->aad, IPSEC_AAD_MAX);
	sym->aead.data.offset = slot->off;
	sym->aead.data.length = slot->len;
	sym->aead.aad.data = slot->aad;
	sym->aead.aad.phys_addr = rte_crypto_op_ctophys_offset(
		op, IPSEC_SLOT_OFFSET + offsetof(struct ipsec_slot, aad));
	if (likely(icv != NULL)) {
		sym->aead.digest.data = icv;
		sym->aead.digest.phys_addr =
			rte_mbuf_iova_get(last) + (uintptr_t)(icv - (uint8_t *)last->buf_addr);
		return;
	}
	sym->aead.digest.data = slot->icv;
	sym->aead.digest.phys_addr = rte_crypto_op_ctophys_offset(
		op, IPSEC_SLOT_OFFSET + offsetof(struct ipsec_slot, icv));
}

/* The last place of the lane is not the device's: it is done, and waits for its turn. */
static void
unstage(struct ipsec_lane *lane, struct ipsec_slot *slot, enum ipsec_cache_error error)
{
	lane->n_staged--;
	slot->state = IPSEC_SLOT_DONE;
	slot->error = (uint8_t)error;
}

bool
ipsec_lookaside_seal(
	struct ipsec_cache_worker *w, const struct ipsec_job *job, struct ipsec_session *s)
{
	struct ipsec_lane *lane = lane_of(w, s);
	struct ipsec_slot *slot;
	struct rte_crypto_op *op;

	if (unlikely((slot = lane_add(w, lane, &op)) == NULL))
		return false;
	fill(w, op, slot, job, s, true);
	fill_text(op, slot, job, job->m->nb_segs == 1 ? job->m : rte_pktmbuf_lastseg(job->m),
		job->icv);
	if (likely(job->rt->icv_len != 0))
		memset(job->icv, 0, ICV_LOOKED_AT);
	if (unlikely(job->m->nb_segs != 1 && !s->crypto->sgl)) {
		/* in its turn, so that it overtakes none that is inside */
		ipsec_job_chain(w, (struct ipsec_job *)(uintptr_t)job, true);
		unstage(lane, slot, IPSEC_CACHE_ERROR_MAX);
	}
	return true;
}

bool
ipsec_lookaside_open(
	struct ipsec_cache_worker *w, const struct ipsec_job *job, struct ipsec_session *s)
{
	struct ipsec_lane *lane = lane_of(w, s);
	struct ipsec_slot *slot;
	struct rte_crypto_op *op;
	uint8_t buf[IPSEC_ICV_MAX];
	const uint8_t *icv;

	if (unlikely((slot = lane_add(w, lane, &op)) == NULL))
		return false;
	fill(w, op, slot, job, s, false);
	fill_text(op, slot, job, job->m, job->text != NULL ? job->icv : NULL);
	slot->moved = job->moved;
	slot->sport = job->sport;
	slot->saddr[0] = job->saddr[0];
	slot->saddr[1] = job->saddr[1];
	if (likely(job->text != NULL))
		return true;
	if (job->rt->icv_len != 0) {
		icv = packet_read(job->m, job->off + job->len, job->rt->icv_len, buf);
		memcpy(slot->icv, icv, job->rt->icv_len);
	}
	if (unlikely(!s->crypto->sgl)) {
		struct ipsec_job *own = (struct ipsec_job *)(uintptr_t)job;
		uint8_t differ = 0, i;

		ipsec_job_chain(w, own, false);
		for (i = 0; i < job->rt->icv_len; i++)
			differ |= own->tag[i] ^ slot->icv[i];
		unstage(lane, slot, differ == 0 ? IPSEC_CACHE_ERROR_MAX : IPSEC_CACHE_ESP_ICV);
	}
	return true;
}

bool
ipsec_lookaside_whole(struct ipsec_cache_worker *w, const struct ipsec_job *job,
	struct ipsec_session *s, bool seal)
{
	struct ipsec_lane *lane = lane_of(w, s);
	struct ipsec_slot *slot;
	struct rte_crypto_op *op;

	if (unlikely((slot = lane_add(w, lane, &op)) == NULL))
		return false;
	fill(w, op, slot, job, s, seal);
	if (unlikely(job->m->nb_segs != 1 && !s->crypto->sgl))
		unstage(lane, slot, IPSEC_CACHE_ESP_DEVICE);
	return true;
}

/* --- in --- */

/* The device did not take it. What does ESP gives the number to the next one. */
static void
refused(struct ipsec_slot *slot)
{
	struct ipsec_session *s = slot->session;

	slot->state = IPSEC_SLOT_DONE;
	slot->error = IPSEC_CACHE_ESP_DEVICE_FULL;
	/* unless the CPU went on from there: it failed in the middle of a burst (D12) */
	if (!slot->sealed || s->kind != IPSEC_SESSION_LOOKASIDE_PROTOCOL ||
		ipsec_load(&slot->rt->oseq) != ipsec_load(&s->reached))
		return;
	ipsec_add(&s->reached, UINT64_MAX); /* less 1 */
	ipsec_add(&slot->rt->oseq, UINT64_MAX);
}

static void
fail(struct ipsec_cache_worker *w, struct ipsec_lane *lane)
{
	uint32_t at;

	/* relaxed: who does not see it yet finds out by itself */
	ipsec_store(&lane->dev->failed, true);
	for (at = lane->head; at != lane->tail; at++) {
		struct ipsec_slot *slot = ipsec_slot_of(lane->ring[at % IPSEC_LANE_OPS]);
		struct ipsec_in_flight *f = &slot->session->in_flight[w->id];

		if (slot->state != IPSEC_SLOT_INSIDE)
			continue;
		slot->state = IPSEC_SLOT_LOST;
		slot->error = IPSEC_CACHE_ESP_DEVICE;
		/* before it ceases to be inside: a session never looks empty in between */
		ipsec_add(&f->lost, 1);
		lane->n_lost++;
		w->n_lost++;
	}
	lane->n_inside = 0;
}

/* Nothing happened once more. True: for so long and so often that nothing will. */
static bool
in_vain(const struct ipsec_lane *lane, uint64_t *since, uint32_t *looks)
{
	uint64_t now = rte_rdtsc();

	if (*since == 0) {
		*since = now;
		*looks = 0;
	}
	return ++*looks >= LOOKS_MIN && now - *since > lane->dev->patience;
}

static void
flush(struct ipsec_lane *lane)
{
	uint32_t n = lane->n_staged, i;
	uint16_t taken = 0;

	/* another worker may have found that it failed */
	if (likely(!ipsec_load(&lane->dev->failed)))
		taken = rte_cryptodev_enqueue_burst(
			lane->dev->conf.dev_id, lane->qp, lane->staged, (uint16_t)n);
	for (i = taken; i < n; i++)
		refused(ipsec_slot_of(lane->staged[i]));
	lane->n_staged = 0;
	if (unlikely(taken == 0 && lane->n_inside == 0)) {
		if (in_vain(lane, &lane->refused_since, &lane->looks))
			ipsec_store(&lane->dev->failed, true);
		return;
	}
	lane->refused_since = 0;
	lane->n_inside += taken;
}

void
ipsec_lookaside_flush(struct ipsec_cache_worker *w)
{
	struct ipsec_lane *lane;

	for (lane = w->lanes; lane != NULL; lane = lane->next)
		if (lane->n_staged != 0)
			flush(lane);
}

/* --- out --- */

static inline void
lane_free(struct ipsec_lane *lane, struct rte_crypto_op *op)
{
	ipsec_slot_of(op)->state = IPSEC_SLOT_FREE;
	lane->free[lane->n_free++] = op;
}

static inline enum ipsec_cache_error
verdict(const struct rte_crypto_op *op, const struct ipsec_slot *slot)
{
	if (likely(op->status == RTE_CRYPTO_OP_STATUS_SUCCESS))
		return IPSEC_CACHE_ERROR_MAX;
	return op->status == RTE_CRYPTO_OP_STATUS_AUTH_FAILED && !slot->sealed &&
			slot->session->kind == IPSEC_SESSION_LOOKASIDE_CRYPTO
		? IPSEC_CACHE_ESP_ICV
		: IPSEC_CACHE_ESP_DEVICE;
}

/* A packet that was given up: its mbuf is ours again, and nobody waits for it. */
static void
came_late(struct ipsec_cache_worker *w, struct ipsec_lane *lane, struct rte_crypto_op *op)
{
	struct ipsec_slot *slot = ipsec_slot_of(op);
	_Atomic uint32_t *lost = &slot->session->in_flight[w->id].lost;

	rte_pktmbuf_free(slot->m);
	slot->m = NULL;
	lane->n_lost--;
	w->n_lost--;
	if (slot->left)
		lane_free(lane, op);
	else
		slot->state = IPSEC_SLOT_LATE;
	/* release: the last that is done with the session here */
	atomic_store_explicit(lost, ipsec_load(lost) - 1, memory_order_release);
}

static void
collect(struct ipsec_cache_worker *w, struct ipsec_lane *lane)
{
	struct rte_crypto_op *ops[COLLECT];
	uint16_t n, i;

	n = rte_cryptodev_dequeue_burst(lane->dev->conf.dev_id, lane->qp, ops, COLLECT);
	for (i = 0; i < n; i++) {
		struct ipsec_slot *slot = ipsec_slot_of(ops[i]);

		if (unlikely(ops[i]->mempool != lane->dev->op_pool))
			continue;
		if (likely(slot->state == IPSEC_SLOT_INSIDE)) {
			slot->state = IPSEC_SLOT_DONE;
			slot->error = (uint8_t)verdict(ops[i], slot);
			lane->n_inside--;
		} else if (slot->state == IPSEC_SLOT_LOST) {
			came_late(w, lane, ops[i]);
		}
	}
}

/* Where what was sealed goes: asked once for packets of an SA that follow each other. */
struct way {
	const struct ipsec_cache_rt *rt;
	struct ipsec_cache_hop hop;
};

static inline void
find_way(struct ipsec_cache_worker *w, struct way *way, const struct ipsec_cache_rt *rt)
{
	const struct ipsec_cache_conf *conf = &w->ic->conf;

	if (likely(way->rt == rt))
		return;
	way->rt = rt;
	way->hop = (struct ipsec_cache_hop){ 0 };
	conf->resolve(conf->arg, rt->family, rt->daddr, rte_jhash_1word(rt->spi, 0), &way->hop);
}

/* A device that says it sealed a text and did not touch it: the check value shows it. */
static inline bool
is_untouched(const struct ipsec_slot *slot)
{
	const struct rte_crypto_op *op = RTE_PTR_SUB(slot, IPSEC_SLOT_OFFSET);
	uint64_t icv;

	if (slot->session->kind != IPSEC_SESSION_LOOKASIDE_CRYPTO || slot->rt->icv_len == 0)
		return false;
	memcpy(&icv, op->sym->aead.digest.data, sizeof(icv));
	return icv == 0;
}

static inline enum ipsec_cache_error
go_on(struct ipsec_cache_worker *w, struct ipsec_slot *slot, struct way *way,
	struct ipsec_cache_done *done)
{
	enum ipsec_cache_error error = slot->error;

	if (unlikely(error != IPSEC_CACHE_ERROR_MAX)) {
		if (error == IPSEC_CACHE_ESP_ICV)
			ipsec_add(&slot->rt->bad_icv, 1);
		return error;
	}
	if (!slot->sealed)
		return ipsec_open_finish(w, slot);
	if (unlikely(is_untouched(slot)))
		return IPSEC_CACHE_ESP_DEVICE;
	if (unlikely((error = ipsec_seal_finish(slot)) != IPSEC_CACHE_ERROR_MAX))
		return error;
	find_way(w, way, slot->rt);
	done->hop = way->hop.hop;
	return likely(way->hop.kind == IPSEC_CACHE_HOP_FORWARD) ? IPSEC_CACHE_ERROR_MAX
								: IPSEC_CACHE_POLICY_NO_ROUTE;
}

/* The packet at the head of a lane, which is done one way or another, leaves it. */
static inline void
release(struct ipsec_cache_worker *w, struct ipsec_lane *lane, struct way *way,
	struct ipsec_cache_done *done)
{
	struct rte_crypto_op *op = lane->ring[lane->head++ % IPSEC_LANE_OPS];
	struct ipsec_slot *slot = ipsec_slot_of(op);
	_Atomic uint32_t *inside = &slot->session->in_flight[w->id].inside;
	enum ipsec_cache_error error;

	*done = (struct ipsec_cache_done){ .rt = slot->rt, .sealed = slot->sealed };
	error = go_on(w, slot, way, done);
	done->m = slot->state == IPSEC_SLOT_DONE ? slot->m : NULL;
	if (unlikely(error != IPSEC_CACHE_ERROR_MAX)) {
		done->failed = true;
		done->error = (uint8_t)error;
		ipsec_add(&w->errors[error], 1);
	}
	w->n_inside--;
	/* release: lookaside.h says what for */
	atomic_store_explicit(inside, ipsec_load(inside) - 1, memory_order_release);
	if (unlikely(slot->state == IPSEC_SLOT_LOST))
		slot->left = true;
	else
		lane_free(lane, op);
}

static unsigned int
release_all(struct ipsec_cache_worker *w, struct ipsec_lane *lane, struct way *way,
	struct ipsec_cache_done *done, unsigned int max)
{
	unsigned int n = 0;

	while (n < max && lane->head != lane->tail &&
		ipsec_slot_of(lane->ring[lane->head % IPSEC_LANE_OPS])->state != IPSEC_SLOT_INSIDE)
		release(w, lane, way, &done[n++]);
	if (likely(n > 0 || lane->head == lane->tail))
		lane->stuck_since = 0;
	else if (max > 0 && in_vain(lane, &lane->stuck_since, &lane->looks))
		fail(w, lane);
	return n;
}

unsigned int
ipsec_cache_poll(struct ipsec_cache_worker *w, struct ipsec_cache_done *done, unsigned int max)
{
	struct way way = { .rt = NULL };
	struct ipsec_lane *lane;
	unsigned int n = 0;

	if (likely(!ipsec_cache_busy(w)))
		return 0;
	for (lane = w->lanes; lane != NULL; lane = lane->next) {
		if ((lane->n_inside | lane->n_lost) != 0)
			collect(w, lane);
		n += release_all(w, lane, &way, done + n, max - n);
	}
	return n;
}

bool
ipsec_cache_busy(const struct ipsec_cache_worker *w)
{
	return (w->n_inside | w->n_lost) != 0;
}

void
ipsec_lookaside_abandon(struct ipsec_cache_worker *w)
{
	struct way way = { .rt = NULL };
	struct ipsec_cache_done done;
	struct ipsec_lane *lane;

	for (lane = w->lanes; lane != NULL; lane = lane->next) {
		if (lane->n_inside != 0)
			fail(w, lane);
		while (release_all(w, lane, &way, &done, 1) != 0)
			rte_pktmbuf_free(done.m);
	}
}
