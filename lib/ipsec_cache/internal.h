/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_INTERNAL_H
#define IPSEC_CACHE_INTERNAL_H

/* What the files of this room share: the instance, and who calls whom. */

#include <assert.h>

#include "ipsec_cache/ipsec_cache.h"

struct ipsec_sad; /* sad.c: SAs, by id and in order */
struct ipsec_spd; /* spd.c: policies, by what they select */
struct ipsec_acquires; /* acquire.c */
struct ipsec_devices; /* device.c */
struct ipsec_lookaside; /* lookaside_dev.c */

/* Which fields of a flow any policy or SA selector looks at; and whether marks tell SAs apart. */
#define IPSEC_USES_PORTS 0x1
#define IPSEC_USES_MARK 0x2
#define IPSEC_USES_IFINDEX 0x4
#define IPSEC_USES_SA_MARK 0x8
#define IPSEC_USES_BITS 4

struct ipsec_cache {
	struct ipsec_cache_conf conf;
	struct ipsec_sad *sad;
	struct ipsec_spd *spd;
	struct ipsec_acquires *acquires;
	struct ipsec_devices *devices;
	struct ipsec_lookaside *lookaside;
	struct ipsec_cache_worker **workers;
	struct ipsec_ciphers *ciphers; /* cipher.h; worker.c makes it */
	struct ipsec_vault *vault; /* vault.h: memory with keys; likewise */
	void (*listener)(void *arg, enum ipsec_cache_event event, const void *object);
	void *listener_arg;
	uint64_t generation;
	uint64_t now_ms; /* of the last tick, since the first one */
	uint64_t ticked_ms; /* of the last tick, by the caller's clock; 0: none came yet */
	uint64_t next_serial; /* of SAs and policies: their order; never 0 */
	uint64_t fallbacks;
	uint32_t arrivals; /* of devices: what failed before the last one may be tried again */
	bool routes_changed; /* since the last tick */
	char why[200]; /* the last sentence that had to be put together */
	uint32_t users[IPSEC_USES_BITS]; /* policies and SAs for each bit of `uses` */
	/* Workers read these. */
	_Atomic uint64_t epoch __rte_cache_aligned;
	_Atomic uint32_t uses; /* IPSEC_USES_*; changed before the epoch is bumped */
	_Atomic uint32_t starts; /* rehome: homes of an older start are none */
	_Atomic uint32_t seconds; /* since 1970, of the last tick: when SAs were used */
	_Atomic bool active;
	_Atomic uint8_t default_action[3]; /* by direction: XFRM_USERPOLICY_ACCEPT or _BLOCK */
};

/* What decisions rest on has changed and is published; frees of what it replaced come after. */
static inline void
ipsec_bump(struct ipsec_cache *ic)
{
	/*
	 * Release: who reads the new epoch (acquire) also sees what was published before. A look-up
	 * that missed it read an older epoch, under which its result is never used again.
	 */
	atomic_fetch_add_explicit(&ic->epoch, 1, memory_order_release);
}

/* ipsec_cache.c: one more, one fewer that looks at those fields; before the bump. */
void ipsec_uses_add(struct ipsec_cache *ic, uint32_t uses);
void ipsec_uses_del(struct ipsec_cache *ic, uint32_t uses);
/* ipsec_cache.c: the number of SAs or policies or a default has changed; bumps. */
void ipsec_changed(struct ipsec_cache *ic);

/* A request is refused: err, with its sentence in *why. */
static inline int
ipsec_refuse(int err, const char **why, const char *sentence)
{
	*why = sentence;
	return err;
}

/* Are `seconds`, 0 being for ever, over since then, by the clock of ticks? */
static inline bool
ipsec_is_over(const struct ipsec_cache *ic, int64_t since_ms, uint64_t seconds)
{
	return seconds != 0 && seconds <= INT64_MAX / 2000 &&
		(int64_t)ic->now_ms - since_ms >= (int64_t)seconds * 1000;
}

/* A packet's flow: the key of a cached decision (E1). Fields that nothing uses are 0. */
struct ipsec_flow {
	uint8_t saddr[16], daddr[16]; /* IPv4: the first four bytes, the rest 0 */
	uint64_t by; /* serial of the SA it was decrypted by; 0: came in clear */
	uint32_t mark;
	uint32_t in_ifindex; /* 0: our own */
	__be16 sport, dport; /* ICMP: type and code, as Linux's flowi; GRE: the key's halves */
	uint8_t family; /* never 0: an empty slot matches no flow */
	uint8_t proto;
	uint8_t fragment; /* its ports are not known */
	uint8_t pad; /* 0 */
};
static_assert(sizeof(struct ipsec_flow) == 56, "a flow has no padding");

/* A control SA. Workers read no lifetimes of it, which updates change, and all else never changes;
 * freed with its rt after a grace period. */
struct ipsec_cache_sa {
	struct ipsec_cache_sa_spec spec;
	struct ipsec_cache_rt *rt; /* NULL: larval */
	uint64_t serial;
	_Atomic bool dying; /* its soft lifetime is over: others are preferred for sending */
	/* sad.c's links and lifetimes follow: embed this struct. */
};

static inline void
ipsec_notify(struct ipsec_cache *ic, enum ipsec_cache_event event, const void *object)
{
	if (ic->listener != NULL)
		ic->listener(ic->listener_arg, event, object);
}

/* --- rt.c: run-time SAs --- */

/*
 * Made from the control SA's spec, which `rt` keeps a pointer to for the slow path. NULL with
 * *err (-ENOSYS: algorithm, -EINVAL: key or ICV length, -EOPNOTSUPP, -ENOMEM) and *why.
 *
 * Numbers go on from spec.oseq and spec.seq if has_replay: up to seq all counts as seen, whatever
 * the window was. Bytes and packets are counted from 0; hard limits are those of spec.info.lft less
 * what spec.info.curlft says is used up already. An rt lives as long as its control SA: an update
 * of a working SA changes lifetimes, which only the control thread reads, and nothing else.
 */
struct ipsec_cache_rt *ipsec_rt_create(
	struct ipsec_cache *ic, const struct ipsec_cache_sa *sa, int *err, const char **why);
/* After a grace period: wipes and frees. */
void ipsec_rt_free(struct ipsec_cache_rt *rt);
/* The control SA of an rt. */
const struct ipsec_cache_sa *ipsec_rt_sa(const struct ipsec_cache_rt *rt);
/* Fills in what packets changed: curlft's bytes and packets, stats, replay numbers, last_used. */
void ipsec_rt_describe(const struct ipsec_cache_rt *rt, struct ipsec_cache_sa_spec *spec);
/* Packets meet ESP_EXPIRED from now on. */
void ipsec_rt_expire(struct ipsec_cache_rt *rt);
/* Takes hard limits from spec.info.lft, less spec.info.curlft, anew: an update changed them. */
void ipsec_rt_limit(struct ipsec_cache_rt *rt, const struct ipsec_cache_sa_spec *spec);
/* What does its work: "cpu-gcm", "cpu-null". */
const char *ipsec_rt_backend(const struct ipsec_cache_rt *rt);
/* What lifetimes are measured by; first_used 0: never. */
struct ipsec_rt_usage {
	uint64_t packets, bytes;
	uint64_t first_used; /* seconds since 1970 */
	uint64_t oseq, seq;
	bool exhausted; /* the last sequence number is used up, or a hard limit was hit */
	/* A valid packet came from elsewhere than the SA's peer (NAT-T): where from. */
	bool moved;
	xfrm_address_t saddr;
	__be16 sport;
};
void ipsec_rt_usage(const struct ipsec_cache_rt *rt, struct ipsec_rt_usage *usage);
/* Bytes of inner packet that fit a link of that MTU. */
uint16_t ipsec_rt_mtu(const struct ipsec_cache_rt *rt, uint32_t link_mtu);

/* --- sad.c: readers --- */

/* The SA with that id, or NULL. Any thread between two reports of quiescence. */
struct ipsec_cache_rt *ipsec_sad_lookup(const struct ipsec_cache *ic, __be32 spi, uint8_t family,
	const uint8_t daddr[16], uint32_t mark);
/*
 * The SA that a policy's template wants for a flow (Linux's xfrm_state_find() without its acquire):
 * tunnel ends, reqid, mode, selector, the policy's mark and if_id, and the worker's own (RFC 9611)
 * before the common one; of several one that is not dying, and the newest. NULL: none.
 */
struct ipsec_cache_rt *
ipsec_sad_find(const struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *policy,
	const struct ipsec_flow *flow, uint32_t out_ifindex, unsigned int worker);
int ipsec_sad_create(struct ipsec_cache *ic);
void ipsec_sad_destroy(struct ipsec_cache *ic);
void ipsec_sad_tick(struct ipsec_cache *ic);

/* --- spd.c: readers --- */

/*
 * The first policy of a direction for a flow, by priority and then age; `out_ifindex` is what a
 * selector's dev is compared with. *uncertain: a fragment met one with ports that would protect or
 * block it. NULL: none.
 */
const struct ipsec_cache_policy *ipsec_spd_lookup(const struct ipsec_cache *ic, uint8_t dir,
	const struct ipsec_flow *flow, uint32_t out_ifindex, bool *uncertain);
/* It has met a packet. Any thread. */
void ipsec_spd_used(const struct ipsec_cache_policy *policy);
unsigned int ipsec_spd_count(const struct ipsec_cache *ic);
int ipsec_spd_create(struct ipsec_cache *ic);
void ipsec_spd_destroy(struct ipsec_cache *ic);
void ipsec_spd_tick(struct ipsec_cache *ic);

/* --- decide.c: the slow way to a decision, called by workers on a miss --- */

void ipsec_decide(struct ipsec_cache *ic, unsigned int worker, const struct ipsec_flow *flow,
	const struct ipsec_cache_rt *by, struct ipsec_cache_decision *decision);

/* --- acquire.c --- */

/* A worker met a policy whose SA is not there: told to the listener by the next tick, once. */
void ipsec_acquire(struct ipsec_cache *ic, unsigned int worker,
	const struct ipsec_cache_policy *policy, const struct ipsec_flow *flow);
int ipsec_acquire_create(struct ipsec_cache *ic);
void ipsec_acquire_destroy(struct ipsec_cache *ic);
void ipsec_acquire_tick(struct ipsec_cache *ic);

/* --- worker.c --- */

/* Handles only. Before any SA is made; conf, epoch and starts are set by then. 0 or -ENOMEM. */
int ipsec_workers_create(struct ipsec_cache *ic);
/*
 * Tables for packets. To be called again and again before an SA, a policy or a blocking default is
 * published and `active` is set. 0, or -ENOMEM and nothing changed.
 */
int ipsec_workers_start(struct ipsec_cache *ic);
/* Adds up what workers counted. */
void ipsec_workers_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats);
void ipsec_workers_destroy(struct ipsec_cache *ic);

#endif /* IPSEC_CACHE_INTERNAL_H */
