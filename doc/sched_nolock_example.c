/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * lib/sched_nolock in a program of one's own: every lcore reads its queue of port 0 and all of
 * them send through one Tx queue. Runs for one second.
 *
 *	sched_nolock_example --no-huge -m 128 --no-pci --vdev=net_null0 -l 0,1
 */

#include <err.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"

#define PORT 0
#define BURST 32

struct example {
	struct rte_rcu_qsbr *qsbr;
	struct sched_nolock *sched;
	uint64_t end; /* TSC */
};

/* The driver. Only one lcore at a time is in here. */
static uint16_t
tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	return rte_eth_tx_burst(PORT, 0, pkts, n);
}

static void
drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(pkts, n);
}

static int
forward(void *arg)
{
	struct example *ex = arg;
	/* Workers are numbered from 0; so are the queues they read. */
	unsigned int worker = (unsigned int)rte_lcore_index((int)rte_lcore_id());
	struct rte_mbuf *pkts[BURST];
	uint16_t n, took;

	rte_rcu_qsbr_thread_register(ex->qsbr, worker);
	rte_rcu_qsbr_thread_online(ex->qsbr, worker);
	while (rte_rdtsc() < ex->end) {
		n = rte_eth_rx_burst(PORT, (uint16_t)worker, pkts, BURST);
		took = sched_nolock_enqueue(ex->sched, worker, pkts, n);
		/* A full band: what it did not take is still ours. */
		rte_pktmbuf_free_bulk(pkts + took, n - took);
		/* One worker serves the queue: it sends what others left behind. */
		if (worker == 0)
			sched_nolock_drain(ex->sched, worker);
		rte_rcu_qsbr_quiescent(ex->qsbr, worker);
	}
	rte_rcu_qsbr_thread_offline(ex->qsbr, worker);
	return 0;
}

static void
start_port(uint16_t n_queues)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_mempool *pool;
	uint16_t q;

	pool = rte_pktmbuf_pool_create(
		"example", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL || rte_eth_dev_configure(PORT, n_queues, 1, &conf) != 0)
		errx(1, "no pool or no port 0: pass --vdev=net_null0");
	for (q = 0; q < n_queues; q++)
		if (rte_eth_rx_queue_setup(PORT, q, 512, SOCKET_ID_ANY, NULL, pool) != 0)
			errx(1, "rx queue %u", q);
	if (rte_eth_tx_queue_setup(PORT, 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(PORT) != 0)
		errx(1, "port %u does not start", PORT);
}

int
main(int argc, char **argv)
{
	struct sched_nolock_conf conf;
	struct sched_nolock_stats stats;
	struct example ex = { 0 };
	unsigned int n_workers;
	struct rcu *rcu;

	if (rte_eal_init(argc, argv) < 0)
		errx(1, "rte_eal_init");
	n_workers = rte_lcore_count();
	start_port((uint16_t)n_workers);
	ex.qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(n_workers), RTE_CACHE_LINE_SIZE);
	if (ex.qsbr == NULL || rte_rcu_qsbr_init(ex.qsbr, n_workers) != 0 ||
		(rcu = rcu_create(ex.qsbr)) == NULL)
		errx(1, "no rcu");

	/* Three bands, Linux's priomap; here all packets have priority 0. */
	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = n_workers;
	conf.tx = tx;
	conf.drop = drop;
	conf.rcu = rcu;
	if ((ex.sched = sched_nolock_create(&conf)) == NULL)
		errx(1, "sched_nolock_create: %s", rte_strerror(rte_errno));

	/* Alone, one lcore may keep the queue, and pays next to nothing. */
	if (n_workers == 1 && sched_nolock_set_exclusive(ex.sched, 0) != 0)
		errx(1, "sched_nolock_set_exclusive");
	ex.end = rte_rdtsc() + rte_get_tsc_hz();
	rte_eal_mp_remote_launch(forward, &ex, CALL_MAIN);
	rte_eal_mp_wait_lcore();

	/* Before the port stops: nothing is sent any more, what waits goes to drop. */
	sched_nolock_deactivate(ex.sched);
	sched_nolock_stats(ex.sched, &stats);
	printf("sent %ju, of them without queueing %ju; dropped %ju\n",
		(uintmax_t)(stats.bypassed + stats.dequeued), (uintmax_t)stats.bypassed,
		(uintmax_t)stats.dropped);
	rte_eth_dev_stop(PORT);
	sched_nolock_destroy(ex.sched);
	rcu_destroy(rcu);
	rte_eal_cleanup();
	return 0;
}
