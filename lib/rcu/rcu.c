/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"

struct rcu {
	struct rte_rcu_qsbr *qsbr;
	struct rcu_head *first;
	struct rcu_head **last;
	uint64_t deferred;
	uint64_t freed;
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
	head->token = rte_rcu_qsbr_start(rcu->qsbr);
	*rcu->last = head;
	rcu->last = &head->next;
	rcu->deferred++;
}

static unsigned int
reclaim(struct rcu *rcu, unsigned int max, bool wait)
{
	struct rcu_head *head;
	uint64_t safe = 0;
	unsigned int n = 0;

	while ((head = rcu->first) != NULL && (max == 0 || n < max)) {
		/* One check covers every later object up to the same token. */
		if (head->token > safe) {
			if (rte_rcu_qsbr_check(rcu->qsbr, head->token, wait) != 1)
				break;
			safe = head->token;
		}
		if ((rcu->first = head->next) == NULL)
			rcu->last = &rcu->first;
		rcu->freed++;
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
