/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_DEVICE_H
#define IPSEC_CACHE_DEVICE_H

/* Ports with rte_security, and the sessions on them. Thread safety: the control thread's, but for
 * what says otherwise. */

#include "ipsec_cache/capability.h"
#include "ipsec_cache/session.h"

struct rte_mempool;

struct ipsec_device {
	struct ipsec_cache_dev conf;
	void *ctx; /* rte_security's; NULL: this place is free */
	bool gone; /* no new sessions; old ones end */
	struct rte_mempool *pool; /* of its session objects */
	unsigned int n_sessions;
	uint16_t dying[256]; /* inbound sessions on their way out, by hash of their SPI */
};

int ipsec_devices_create(struct ipsec_cache *ic); /* 0 or -ENOMEM */
/* After every worker has gone: ends all sessions. */
void ipsec_devices_destroy(struct ipsec_cache *ic);
void ipsec_devices_tick(struct ipsec_cache *ic);
void ipsec_devices_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats);

bool ipsec_devices_any(const struct ipsec_cache *ic);
/* NULL: none that may have new sessions. */
struct ipsec_device *ipsec_device_find(const struct ipsec_cache *ic, uint32_t ifindex);

/*
 * A session for an SA, not yet published. NULL, and *missing (a clause that follows the device's
 * name) says why not.
 */
struct ipsec_session *
ipsec_session_create(struct ipsec_cache *ic, struct ipsec_device *dev, struct ipsec_cache_rt *rt,
	enum ipsec_session_kind kind, bool in, uint64_t start, const char **missing);
/* NULL, or what a session that does ESP cannot do of an SA, whatever its device can. */
const char *ipsec_session_unlike(const struct ipsec_cache_rt *rt, bool in);
/* Packets may use it from now on. Before the SA is published, or followed by a bump. */
void ipsec_session_publish(struct ipsec_session *s);
/* Never published: it ends now. */
void ipsec_session_cancel(struct ipsec_session *s);
/* Out of use, and in time out of the device. The SA goes on by the CPU. Bumps. */
void ipsec_session_retire(struct ipsec_session *s);

/* Each published session in turn; fn may retire it. */
void ipsec_devices_sessions(struct ipsec_cache *ic, void (*fn)(struct ipsec_session *s));
/* What devices said of published sessions since the last call: 1 << RTE_ETH_EVENT_IPSEC_* each. fn
 * may retire the session. */
void
ipsec_devices_events(struct ipsec_cache *ic, void (*fn)(struct ipsec_session *s, uint32_t events));

#endif /* IPSEC_CACHE_DEVICE_H */
