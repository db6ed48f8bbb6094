/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef BENCH_SCHED_NOLOCK_LATENCY_H
#define BENCH_SCHED_NOLOCK_LATENCY_H

/*
 * Rule B11 as a figure: fewer packets than a burst, then silence. How many loops of the worker
 * that serves the queue, and how many cycles, until the last one left?
 *
 * - the NIC refused them (they are held, more wait in the lanes) and then takes packets again;
 * - two workers were busy on one queue and fell silent at the same time.
 */

#include <stdint.h>
#include <stdio.h>

struct rcu;
struct rte_mempool;
struct rte_rcu_qsbr;

/* Measures on `port`; two workers where there are two lcores. Exits on failure. */
void latency_measure(struct rte_mempool *pool, struct rcu *rcu, struct rte_rcu_qsbr *qsbr,
	uint16_t port, unsigned int n_workers);
void latency_print(void);
/* Members of a JSON array, without its brackets. */
void latency_write(FILE *f);

#endif /* BENCH_SCHED_NOLOCK_LATENCY_H */
