/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_SESSION_H
#define IPSEC_CACHE_SESSION_H

/*
 * What an SA has in a device: a session of rte_security or of a crypto device. device.c makes and
 * ends those of ports, lookaside_dev.c those of crypto devices; offload.c says which SA gets which;
 * seal.c and open.c use them by way of inline.h and lookaside.h.
 *
 * Life. A session is published in its SA (rt->session) and in the table by id, which is what the
 * device calls it by. It is retired in three steps: out of both, and the epoch bumped, so that no
 * burst that begins then sends by it; after a grace period, when no worker holds it, its rule goes;
 * and when frames that name it have left the port, the device's own session is destroyed (E4). What
 * is inside a crypto device is counted: lookaside.h.
 *
 * Thread safety: the control thread makes and ends; workers read; what they write is marked.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "ipsec_cache/internal.h"

#define IPSEC_SESSION_PROTOCOL 1
#define IPSEC_SESSION_LOOKASIDE 2
enum ipsec_session_kind {
	IPSEC_SESSION_INLINE_CRYPTO, /* the NIC encrypts and decrypts what we frame */
	IPSEC_SESSION_INLINE_PROTOCOL, /* the NIC does ESP */
	IPSEC_SESSION_LOOKASIDE_CRYPTO, /* a crypto device encrypts and decrypts what we frame */
	IPSEC_SESSION_LOOKASIDE_PROTOCOL, /* a crypto device does ESP */
};
static_assert(IPSEC_SESSION_INLINE_PROTOCOL == IPSEC_SESSION_PROTOCOL &&
		IPSEC_SESSION_LOOKASIDE_CRYPTO == IPSEC_SESSION_LOOKASIDE &&
		IPSEC_SESSION_LOOKASIDE_PROTOCOL ==
			(IPSEC_SESSION_LOOKASIDE | IPSEC_SESSION_PROTOCOL),
	"kinds are bits");

struct ipsec_crypto;
struct ipsec_device;
struct ipsec_in_flight;
struct rte_flow;

struct ipsec_session {
	/* Workers read. */
	void *ctx, *security; /* rte_security's; or the crypto device's session */
	struct ipsec_cache_rt *rt;
	uint64_t id; /* conf.userdata; what a device reports packets and events by */
	uint32_t ifindex;
	struct ipsec_crypto *crypto; /* lookaside */
	struct ipsec_in_flight *in_flight; /* likewise; by worker */
	uint16_t port;
	uint8_t kind; /* enum ipsec_session_kind */
	bool in;
	bool metadata; /* each frame needs set_pkt_metadata() */
	bool counted; /* the driver counts what it sent by it */
	bool tagged; /* the port says by rte_security's dynfield which session opened a packet */

	/* Written by the SA's home. */
	/* Inline protocol, out: the number that the device has come to; from `start` on. */
	uint64_t start;
	_Atomic uint64_t reached;
	/* Others than the device gave numbers out since: it is not to be used any more. */
	_Atomic bool refused;
	/* Packets of an SA whose window is in the device that came past it. */
	_Atomic uint32_t strays;

	/* The control thread's. */
	struct ipsec_cache *ic;
	struct ipsec_device *dev;
	struct rte_flow *flow;
	uint64_t rounds; /* what tx_rounds() has to say before it goes */
	unsigned int tries; /* to destroy it */
	uint32_t spi_bucket;
	struct ipsec_session *next; /* of those that are dying */
	LIST_ENTRY(ipsec_session) link; /* lookaside: of those in its state */
	bool waits; /* likewise: for its packets to come out */
	struct rcu_head rcu;
};

static inline bool
ipsec_session_is_lookaside(const struct ipsec_session *s)
{
	return (s->kind & IPSEC_SESSION_LOOKASIDE) != 0;
}

static inline bool
ipsec_session_is_protocol(const struct ipsec_session *s)
{
	return (s->kind & IPSEC_SESSION_PROTOCOL) != 0;
}

/* device.c: a published session by its id; NULL: there is none. Any thread between reports of
 * quiescence. */
struct ipsec_session *ipsec_session_get(const struct ipsec_cache *ic, uint64_t id);

#endif /* IPSEC_CACHE_SESSION_H */
