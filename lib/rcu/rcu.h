/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef RCU_RCU_H
#define RCU_RCU_H

/*
 * Deferred freeing over an rte_rcu_qsbr that the caller owns.
 *
 * A writer takes an object out of every place where a reader could find it,
 * then hands it to rcu_defer(). The object's own rcu_head links it into an
 * unbounded list, so that deferring never allocates, never fails and never
 * waits. rcu_reclaim(), called from a timer, frees what no reader can hold any
 * more.
 *
 * Why it is safe: rcu_reclaim() calls rte_rcu_qsbr_start() for all that was
 * deferred, and so unpublished, before; a reader that could have loaded an old
 * pointer loaded it before its next quiescent report, so once
 * rte_rcu_qsbr_check() says that every online reader has reported at or after
 * that token, none holds it. One token for all of them, for readers look at it
 * in every loop: a new one takes its cache line from each of them.
 *
 * Thread safety: one writer thread calls everything here. Readers call only
 * rte_rcu_qsbr_quiescent(), _online() and _offline() of the qsbr they share.
 */

#include <stdint.h>

struct rte_rcu_qsbr;
struct rcu;
struct rcu_head;

/* Frees the object that `head` is a member of. Runs in the writer thread. */
typedef void (*rcu_free_fn)(struct rcu_head *head);

/* One deferred object. A member of the object; needs no initialisation. */
struct rcu_head {
	struct rcu_head *next;
	rcu_free_fn fn;
};

/*
 * Makes an empty list over `qsbr`, which must outlive it.
 * Returns NULL and sets rte_errno: EINVAL (qsbr is NULL), ENOMEM.
 */
struct rcu *rcu_create(struct rte_rcu_qsbr *qsbr);

/*
 * Frees everything still deferred, waiting for its grace periods, then the
 * handle. NULL is accepted. Every reader must be reporting or offline, or this
 * waits for ever.
 */
void rcu_destroy(struct rcu *rcu);

/*
 * Has fn(head) called after a grace period, which the next rcu_reclaim() begins
 * or a later one, if it finds that others still wait for theirs. The object must
 * not be reachable for new readers when this is called. Never fails, never waits.
 */
void rcu_defer(struct rcu *rcu, struct rcu_head *head, rcu_free_fn fn);

/*
 * Frees at most `max` objects (0: no bound) whose grace period is over, in the
 * order in which they were deferred, and begins that of the others. An fn may
 * call rcu_defer(). Returns how many were freed. Never waits.
 */
unsigned int rcu_reclaim(struct rcu *rcu, unsigned int max);

/*
 * Waits until everything deferred so far is freed. For shutdown and tests:
 * serving a client never calls it.
 */
void rcu_barrier(struct rcu *rcu);

/* Objects deferred and not freed yet; objects ever deferred. */
uint64_t rcu_pending(const struct rcu *rcu);
uint64_t rcu_deferred(const struct rcu *rcu);

#endif /* RCU_RCU_H */
