/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_SPD_H
#define IPSEC_CACHE_SPD_H

/*
 * What the files about policies share.
 *
 * Policies whose selectors look at the same bits of a flow make a tuple: a flow masked by a tuple's
 * bits is the key that its policies are found by in one hash table. A look-up asks the tuples of
 * its direction and family in the order of their best policy, and stops at the first that has
 * nothing better than what was found. So 10,000 policies of a few shapes cost a few look-ups, and
 * adding one costs the same whatever is there.
 *
 * A fragment's ports are not known. A policy that looks at ports and protects or blocks is found
 * for fragments through a second tuple, without the ports: it might be meant for this fragment.
 */

#include <assert.h>
#include <bsd/sys/tree.h>

#include "ipsec_cache/internal.h"
#include "ipsec_cache/link.h"

#define SPD_DIRS 3 /* XFRM_POLICY_IN, _OUT, _FWD */

/* The bits of a flow that policies look at; also a mask of them. */
struct spd_key {
	union {
		struct {
			uint8_t saddr[16], daddr[16];
			uint32_t mark, ifindex;
			__be16 sport, dport;
			uint32_t proto;
			uint32_t tuple; /* its number; in a mask: which kind of tuple */
			uint32_t pad;
		};
		uint64_t words[7];
	};
};
static_assert(sizeof(struct spd_key) == 56, "a key has no padding");

struct spd_tuple;

/* A policy's place in a tuple. */
struct spd_node {
	struct ipsec_link link;
	struct spd_key key;
	struct ipsec_cache_policy *policy;
	struct spd_tuple *tuple; /* NULL: this node is not in use */
	RB_ENTRY(spd_node) order; /* in its tuple: control thread only */
};
RB_HEAD(spd_nodes, spd_node);
int spd_node_compare(const struct spd_node *a, const struct spd_node *b);
RB_PROTOTYPE(spd_nodes, spd_node, order, spd_node_compare);

struct spd_tuple {
	struct spd_key mask;
	uint32_t number;
	bool ports; /* looks at ports: not for fragments */
	bool uncertain; /* for fragments only */

	/* Control thread only. */
	struct ipsec_link link; /* by mask, direction and family */
	uint8_t dir, af; /* af: 0 IPv4, 1 IPv6 */
	struct spd_nodes nodes;
	struct rcu_head rcu;
};

/* The tuples of a direction and family as workers see them; replaced whole. */
struct spd_list {
	struct rcu_head rcu;
	unsigned int n;
	struct {
		const struct spd_tuple *tuple;
		uint32_t priority; /* no policy of it comes before this one */
		uint64_t serial;
	} at[];
};

struct ipsec_cache_policy {
	struct ipsec_cache_policy_spec spec;
	uint64_t serial; /* age: decides among those of one priority */
	_Atomic uint64_t
		used; /* seconds since 1970 of the last slow look-up that found it; 0 never */
	struct spd_node whole, fragment;

	/* Control thread only. */
	struct ipsec_link by_selector, by_index;
	RB_ENTRY(ipsec_cache_policy) order;
	int64_t added_ms, used_ms;
	bool was_used, soft_told;
	struct rcu_head rcu;
};
RB_HEAD(spd_tree, ipsec_cache_policy);
int spd_policy_compare(const struct ipsec_cache_policy *a, const struct ipsec_cache_policy *b);
RB_PROTOTYPE(spd_tree, ipsec_cache_policy, order, spd_policy_compare);

struct ipsec_spd {
	/* Workers read these. */
	struct ipsec_links nodes;
	_Atomic(struct spd_list *) lists[SPD_DIRS][2];

	/* Control thread only. */
	struct ipsec_links by_selector, by_index, tuples;
	struct spd_tree order;
	unsigned int n, n_dir[SPD_DIRS];
	bool hidden; /* a flush is under way: no lists are made */
	unsigned int n_mortal; /* with a lifetime */
	uint32_t next_tuple, next_index;
	uint64_t cursor, checked_ms;
	unsigned int round; /* policies when this round of looks began */
};

/* Comes a before b? */
static inline bool
spd_before(uint32_t a_priority, uint64_t a_serial, uint32_t b_priority, uint64_t b_serial)
{
	return a_priority != b_priority ? a_priority < b_priority : a_serial < b_serial;
}

/* tuple.c: what workers see. */
/* Places the policy; workers find it when this returns. 0, -ENOMEM with nothing changed. */
int spd_place(struct ipsec_cache *ic, struct ipsec_cache_policy *policy);
void spd_unplace(struct ipsec_cache *ic, struct ipsec_cache_policy *policy);
/* Workers find no policy any more: all of them are about to be unplaced, `hidden` until then. */
void spd_hide(struct ipsec_cache *ic);

/* spd_check.c: 0, or -errno with a sentence. */
int spd_check(const struct ipsec_cache_policy_spec *spec, const char **why);

/* spd.c */
void spd_remove(struct ipsec_cache *ic, struct ipsec_cache_policy *policy);

#endif /* IPSEC_CACHE_SPD_H */
