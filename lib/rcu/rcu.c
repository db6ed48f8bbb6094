/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_prefetch.h>
#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"

/*
 * One list in the order of deferring. From its head: objects that may be freed, objects that wait
 * for `token`, objects that no token covers yet.
 */
struct rcu {
	struct rte_rcu_qsbr *qsbr;
	struct rcu_head *first;
	struct rcu_head **last;
	uint64_t deferred;
	uint64_t freed;
	uint64_t safe; /* objects */
	uint64_t waiting; /* objects after those */
	uint64_t token;
};

struct rcu *
rcu_create(struct rte_rcu_qsbr *qsbr)
{
	struct rcu *rcu;

	if (qsbr == NULL) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((rcu = calloc(1, sizeof(*rcu))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	rcu->qsbr = qsbr;
	rcu->last = &rcu->first;
	return rcu;
}

void
rcu_destroy(struct rcu *rcu)
{
	if (rcu == NULL)
		return;
	rcu_barrier(rcu);
	free(rcu);
}

void
rcu_defer(struct rcu *rcu, struct rcu_head *head, rcu_free_fn fn)
{
	head->next = NULL;
	head->fn = fn;
	*rcu->last = head;
	rcu->last = &head->next;
	rcu->deferred++;
}

/* Looks for more objects that may be freed, when those known of have been. */
static bool
advance(struct rcu *rcu, bool wait)
{
	if (rcu->deferred == rcu->freed)
		return false;
	/* Every reader looks at the token: one for all, not one for each object. */
	if (rcu->waiting == 0) {
		rcu->waiting = rcu->deferred - rcu->freed;
		rcu->token = rte_rcu_qsbr_start(rcu->qsbr);
	}
	if (rte_rcu_qsbr_check(rcu->qsbr, rcu->token, wait) != 1)
		return false;
	rcu->safe = rcu->waiting;
	rcu->waiting = 0;
	return true;
}

static unsigned int
reclaim(struct rcu *rcu, unsigned int max, bool wait)
{
	struct rcu_head *head;
	unsigned int n = 0;

	while (rcu->safe != 0 || advance(rcu, wait)) {
		if (max != 0 && n == max)
			break;
		head = rcu->first;
		if ((rcu->first = head->next) == NULL)
			rcu->last = &rcu->first;
		rcu->safe--;
		rcu->freed++;
		/* Of millions that wait each is a cache miss. */
		rte_prefetch0(rcu->first);
		head->fn(head);
		n++;
	}
	return n;
}

unsigned int
rcu_reclaim(struct rcu *rcu, unsigned int max)
{
	return reclaim(rcu, max, false);
}

void
rcu_barrier(struct rcu *rcu)
{
	reclaim(rcu, 0, true);
}

uint64_t
rcu_pending(const struct rcu *rcu)
{
	return rcu->deferred - rcu->freed;
}

uint64_t
rcu_deferred(const struct rcu *rcu)
{
	return rcu->deferred;
}
