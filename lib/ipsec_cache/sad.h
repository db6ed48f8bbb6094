/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_SAD_H
#define IPSEC_CACHE_SAD_H

/* What the files about SAs share. */

#include <bsd/sys/tree.h>

#include "ipsec_cache/internal.h"
#include "ipsec_cache/link.h"

/* What a larval SA waits for IKE; charon sets Linux's net.core.xfrm_acq_expires to the same. */
#define IPSEC_LARVAL_SECONDS 165
/* Linux's net.core.xfrm_aevent_rseqth and _etime (tenths of a second). */
#define IPSEC_AE_MAXDIFF 2
#define IPSEC_AE_MAXAGE 10

#define SAD_DIR_IN 1 /* XFRM_SA_DIR_IN, of newer headers */
#define SAD_DIR_OUT 2

/* Why an SA has no session of a device: a clause, and the device that it is about; NULL: there was
 * none. offload.c's. */
struct sad_offload {
	const char *missing;
	const struct ipsec_crypto *crypto; /* the device is this one */
	uint32_t ifindex; /* else a port */
	uint64_t retry_ms; /* not before that, if no device has arrived since: */
	uint32_t arrivals;
	uint32_t strays; /* of its session, when it was looked at last */
	uint64_t given, sent; /* packets, likewise: by the SA, by the session's driver */
	uint32_t esn_high; /* what its session was told last */
};

struct ipsec_crypto;

struct sad_entry {
	struct ipsec_cache_sa sa;
	/* Workers walk these. */
	struct ipsec_link by_id; /* SPI, destination, family; none while the SPI is 0 */
	struct ipsec_link by_peer; /* what a template names */

	/* Control thread only. */
	RB_ENTRY(sad_entry) order;
	int64_t added_ms, used_ms; /* by the clock of ticks */
	bool used;
	bool soft_told;
	bool moved_told;
	xfrm_address_t moved_saddr; /* what EVENT_MAPPING told last */
	__be16 moved_sport;
	uint64_t ae_oseq, ae_seq, ae_ms; /* what EVENT_AE told last, and when */
	struct sad_offload offload;
	struct ipsec_cache *ic;
	struct sad_entry *next; /* of those that wait for crypto devices to let go of them */
	struct rcu_head rcu;
};
RB_HEAD(sad_tree, sad_entry);
int sad_compare(const struct sad_entry *a, const struct sad_entry *b);
RB_PROTOTYPE(sad_tree, sad_entry, order, sad_compare);

struct ipsec_sad {
	/* Workers read these. */
	struct ipsec_links by_id, by_peer;
	_Atomic bool ready; /* there are tables */

	/* Control thread only. */
	struct sad_tree order;
	unsigned int n, n_larval;
	uint64_t cursor; /* serial of the last one whose lifetime was looked at */
	uint64_t checked_ms; /* of the last look */
	struct sad_entry *held; /* their grace period is over, and crypto devices have packets */
	unsigned int round; /* SAs when this round of looks began */
};

static inline struct sad_entry *
sad_entry(const struct ipsec_cache_sa *sa)
{
	return (struct sad_entry *)(uintptr_t)sa;
}

/* The first with a serial greater than `after`, or NULL. */
struct sad_entry *sad_after(const struct ipsec_sad *sad, uint64_t after);
/* Out of the tables, and freed after a grace period. */
void sad_remove(struct ipsec_cache *ic, struct sad_entry *e);
/* Its id with what its mark lets through: finds it, or one that hides it. */
void sad_id(const struct ipsec_cache_sa_spec *spec, struct ipsec_cache_sa_id *id);
/* A larval SA without an SPI for the same ends, as Linux's xfrm_find_acq() finds it; or NULL. */
struct sad_entry *sad_find_larval(struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec);
/* A new one, of spec's ends, mode, reqid, mark, if_id, selector, seq and SPI. NULL: no room, *why.
 */
struct sad_entry *sad_add_larval(
	struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, int *err, const char **why);

/* Frees removed SAs that crypto devices have let go of. */
void sad_free_held(struct ipsec_cache *ic);

/* sad_check.c: 0, or -errno with a sentence. */
int
sad_check(const struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, const char **why);
/* Is `to` what `from` is but for lifetimes? Else -EINVAL with a sentence. */
int sad_check_update(const struct ipsec_cache_sa_spec *from, const struct ipsec_cache_sa_spec *to,
	const char **why);

/* lifetime.c: of an SA whose event an IKE daemon asks for, or that is over. */
void sad_expire(struct ipsec_cache *ic, struct sad_entry *e, bool hard);

#endif /* IPSEC_CACHE_SAD_H */
