/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_LOOKASIDE_H
#define IPSEC_CACHE_LOOKASIDE_H

/*
 * Crypto devices beside a packet's way: a text, or a whole packet, is put into a queue pair and
 * comes back some time later. lookaside.c is what workers do, lookaside_dev.c what the control
 * thread does.
 *
 * A worker has a queue pair of each device for itself, and in front of it a lane: a ring of what is
 * in the device, in the order in which it was put there. A device may finish in any order; packets
 * leave the lane from its head only, so those of a flow stay in order. A lane has
 * IPSEC_LANE_OPS places, and no packet enters without one.
 *
 * What is inside keeps its session, and the session its SA, by a count for each worker, which that
 * worker alone writes (struct ipsec_in_flight). The end of a session:
 *
 *   1. out of its SA, and the epoch bumped; a grace period. Who had found it then has put in what
 *      it had, and has reported quiescence behind that, so the control thread sees the counts of
 *      all that was put in, and none can grow any more.
 *   2. each tick adds the counts up until there is nothing inside. A worker's decrement is a
 *      release behind its last use of session and SA in the lane, and the control thread's load an
 *      acquire. A sum of counts that only fall is 0 only if each is.
 *   3. another grace period, for ipsec_cache_poll() has given the SA to its caller, who may use it
 *      until its next report of quiescence.
 *
 * Then the session lets go of its SA, whose memory and keys may go (sad.c), and the device's
 * session is destroyed. What a device lost does not hold up the SA, which it does not know; but it
 * may still write to the mbuf, the operation and its own session, so those stay until it gives the
 * packet back or has been stopped.
 */

#include <rte_crypto.h>

#include "ipsec_cache/session.h"
#include "ipsec_cache/worker.h"

#define IPSEC_LANE_OPS 1024 /* a power of two */
#define IPSEC_CRYPTOS_MAX 8
#define IPSEC_AAD_MAX 12 /* SPI and 64 bits of number */
#define IPSEC_FAILED_MS 100 /* with nothing from a device that has something */

enum ipsec_slot_state {
	IPSEC_SLOT_FREE,
	IPSEC_SLOT_INSIDE,
	IPSEC_SLOT_DONE, /* for `error` */
	IPSEC_SLOT_LOST, /* given up; the device has it */
	IPSEC_SLOT_LATE, /* given up, and it came back */
};

/* What is behind each operation: for the device, and for who goes on when it is done. */
struct ipsec_slot {
	uint8_t iv[16], aad[16];
	uint8_t icv[IPSEC_ICV_MAX]; /* opened: of a text that is not in one piece */
	struct ipsec_session *session;
	struct ipsec_cache_rt *rt;
	struct rte_mbuf *m;
	uint64_t seq;
	uint32_t off, len; /* of the text; in the packet */
	uint8_t state; /* enum ipsec_slot_state */
	uint8_t error; /* enum ipsec_cache_error; IPSEC_CACHE_ERROR_MAX: none */
	bool sealed; /* else opened */
	bool left; /* given up: its place in the lane is another's */
	uint8_t outer_tos;
	bool moved;
	__be16 sport;
	uint64_t saddr[2];
};

#define IPSEC_SLOT_OFFSET (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))

/* A worker's: written by it, but for what the control thread makes. */
struct ipsec_lane {
	struct ipsec_crypto *dev;
	struct ipsec_lane *next; /* of the worker's that it uses */
	uint16_t qp;
	bool used; /* it is among those */
	uint32_t head, tail; /* of `ring`, counting on */
	uint32_t n_inside;
	uint32_t n_lost;
	uint32_t n_free, n_staged;
	/* TSC when nothing came, or nothing was taken, for the first time; 0: it does. Looks since.
	 */
	uint64_t stuck_since, refused_since;
	uint32_t looks;
	struct rte_crypto_op *staged[PACKET_VECTOR_MAX]; /* of a burst, to be put in at its end */
	struct rte_crypto_op *ring[IPSEC_LANE_OPS];
	struct rte_crypto_op *free[IPSEC_LANE_OPS]; /* a stack: what was used last is near */
};

struct ipsec_crypto {
	struct ipsec_cache_crypto conf;
	uint64_t patience; /* IPSEC_FAILED_MS in TSC cycles */
	bool sgl; /* takes packets of several segments in place */
	struct rte_mempool *op_pool;
	/* Any worker sets it, all read: nothing is put in any more. */
	_Atomic bool failed;

	/* The control thread's. */
	void *ctx; /* rte_security's; NULL: none */
	struct rte_mempool *sym_pool, *security_pool;
	unsigned int n_sessions;

	struct ipsec_lane *lanes[]; /* by worker; conf.n_queue_pairs of them */
};

/* Written by its worker. */
struct ipsec_in_flight {
	_Atomic uint32_t inside, lost;
};

static inline struct ipsec_slot *
ipsec_slot_of(struct rte_crypto_op *op)
{
	return RTE_PTR_ADD(op, IPSEC_SLOT_OFFSET);
}

/* --- lookaside.c; the lane's worker --- */

/* Can the worker put packets of that session into its device now? */
static inline bool
ipsec_lookaside_usable(const struct ipsec_cache_worker *w, const struct ipsec_session *s)
{
	const struct ipsec_crypto *dev = s->crypto;

	return w->id < dev->conf.n_queue_pairs && !ipsec_load(&dev->failed);
}

/*
 * Packets to be put into the device of s, a usable one, by the next flush. job: framed, with its
 * nonce. False: the lane is full. Those that the device does not take then fail when it is polled.
 */
bool ipsec_lookaside_seal(
	struct ipsec_cache_worker *w, const struct ipsec_job *job, struct ipsec_session *s);
bool ipsec_lookaside_open(
	struct ipsec_cache_worker *w, const struct ipsec_job *job, struct ipsec_session *s);
/* The packet from its first byte, for a device that does ESP. job: m, rt, outer_tos. */
bool ipsec_lookaside_whole(struct ipsec_cache_worker *w, const struct ipsec_job *job,
	struct ipsec_session *s, bool seal);
/* Puts in what was staged. */
void ipsec_lookaside_flush(struct ipsec_cache_worker *w);
/* No worker runs: what is still inside is given up. */
void ipsec_lookaside_abandon(struct ipsec_cache_worker *w);

/* seal.c, open.c: goes on with what a device did well. IPSEC_CACHE_ERROR_MAX: it is done. */
enum ipsec_cache_error ipsec_seal_finish(const struct ipsec_slot *slot);
enum ipsec_cache_error
ipsec_open_finish(struct ipsec_cache_worker *w, const struct ipsec_slot *slot);

/* --- lookaside_dev.c; the control thread --- */

int ipsec_lookaside_create(struct ipsec_cache *ic); /* 0 or -ENOMEM */
/* After every worker has gone and the devices were stopped: ends all sessions. */
void ipsec_lookaside_destroy(struct ipsec_cache *ic);
void ipsec_lookaside_tick(struct ipsec_cache *ic);
void ipsec_lookaside_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats);

/* The i-th device; NULL: there are no more. */
struct ipsec_crypto *ipsec_lookaside_dev(const struct ipsec_cache *ic, unsigned int i);
/* As ipsec_session_create(), _publish(), _retire(), which are for ports. */
struct ipsec_session *
ipsec_lookaside_session(struct ipsec_cache *ic, struct ipsec_crypto *dev, struct ipsec_cache_rt *rt,
	enum ipsec_session_kind kind, bool in, uint64_t start, const char **missing);
void ipsec_lookaside_publish(struct ipsec_session *s);
void ipsec_lookaside_retire(struct ipsec_session *s);

#endif /* IPSEC_CACHE_LOOKASIDE_H */
