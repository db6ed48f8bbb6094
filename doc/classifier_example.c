/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The classifier in a program of its own: two ports, what comes in by one goes out by the other,
 * and rules from C structs decide what does not. No netlink.
 *
 *     classifier_example --no-huge -m 256 --no-pci --vdev net_null0,no-rx=0 --vdev net_null1 -- 5
 *
 * forwards for five seconds while the main thread changes a rule ten times a second.
 */

#include <err.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>

#include "classifier/classifier.h"
#include "classifier/flower.h"
#include "classifier/gact.h"

#define BURST 32

struct example {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct classifier_block *block;
	struct classifier_hook ingress;
	int meta_offset;
	atomic_bool stop;
	uint64_t forwarded, dropped;
};

/* Copies for mirred go here; this program has no mirred rule. */
static void
no_mirror(void *arg, unsigned int worker, uint32_t ifindex, bool ingress,
	struct rte_mbuf *const *pkts, uint64_t mask)
{
	(void)arg, (void)worker, (void)ifindex, (void)ingress, (void)pkts, (void)mask;
}

/* Frees the packets that a rule dropped, and moves the others together. */
static uint16_t
sort_out(struct example *ex, const struct classifier_result *result, struct rte_mbuf **pkts,
	uint16_t n)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		if ((result->passed >> i & 1) != 0) {
			pkts[kept++] = pkts[i];
			continue;
		}
		rte_pktmbuf_free(pkts[i]);
		ex->dropped++;
	}
	return kept;
}

static int
worker(void *arg)
{
	struct example *ex = arg;
	struct classifier_worker cw = {
		.worker = 0, .meta_offset = ex->meta_offset, .mirror = no_mirror
	};
	struct packet_view views[BURST];
	struct rte_mbuf *pkts[BURST];
	struct classifier_block *block;
	struct classifier_result result;
	uint16_t n, sent;

	rte_rcu_qsbr_thread_register(ex->qsbr, 0);
	rte_rcu_qsbr_thread_online(ex->qsbr, 0);
	while (!atomic_load_explicit(&ex->stop, memory_order_relaxed)) {
		struct packet_vector vector = { .pkts = pkts, .views = views };

		vector.n = n = rte_eth_rx_burst(0, 0, pkts, BURST);
		if (n > 0 && (block = classifier_hook_block(&ex->ingress)) != NULL) {
			for (uint16_t i = 0; i < n; i++)
				*packet_meta(pkts[i], ex->meta_offset) =
					(struct packet_meta){ .mark = 0 };
			classifier_run(block, &cw, 1, &vector, &result);
			n = sort_out(ex, &result, pkts, n);
		}
		sent = rte_eth_tx_burst(1, 0, pkts, n);
		ex->forwarded += sent;
		rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
		/* Rules replaced before this may be freed. */
		rte_rcu_qsbr_quiescent(ex->qsbr, 0);
	}
	rte_rcu_qsbr_thread_offline(ex->qsbr, 0);
	return 0;
}

/* Sets a rule that gives `verdict` to what matches; handle 0 makes a new one. */
static uint32_t
set_rule(struct example *ex, uint32_t prio, uint32_t handle, const struct flower_match *match,
	int32_t verdict)
{
	struct classifier_rule_conf conf = {
		.place = { .prio = prio,
			.protocol = match != NULL ? ETH_P_IP : ETH_P_ALL,
			.handle = handle,
			.kind = match != NULL ? CLASSIFIER_FLOWER : CLASSIFIER_MATCHALL },
		.flower = match,
		.n_actions = 1,
	};
	struct classifier_rule *rule;
	const char *why;
	int rc;

	if ((rc = action_create(ex->actions, &gact_action_ops, 0, gact_params_create(verdict),
		     &conf.actions[0])) != 0)
		errx(1, "action: %s", strerror(-rc));
	if ((rc = classifier_rule_set(ex->block, &conf, CLASSIFIER_CREATE, &rule, &why)) != 0)
		errx(1, "rule: %s", why);
	/* The rule holds the action now. */
	action_put(conf.actions[0], false);
	return classifier_rule_conf(rule)->place.handle;
}

static void
setup(struct example *ex)
{
	ex->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
	if (ex->qsbr == NULL || rte_rcu_qsbr_init(ex->qsbr, 1) != 0 ||
		(ex->rcu = rcu_create(ex->qsbr)) == NULL ||
		(ex->actions = action_table_create(ex->rcu, 1)) == NULL ||
		(ex->classifier = classifier_create(ex->rcu, ex->actions)) == NULL ||
		classifier_block_create(ex->classifier, &ex->block) != 0)
		errx(1, "no memory for the classifier");
	if ((ex->meta_offset = packet_meta_register()) < 0)
		errx(1, "packet_meta_register: %s", rte_strerror(rte_errno));
	classifier_hook_set(&ex->ingress, ex->block);
}

static void
start_ports(void)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"mbufs", 8191, 250, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_eth_conf conf = { 0 };

	if (pool == NULL || rte_eth_dev_count_avail() < 2)
		errx(1, "two ports and memory for mbufs are needed");
	for (uint16_t port = 0; port < 2; port++)
		if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
			rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) != 0 ||
			rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
			rte_eth_dev_start(port) != 0)
			errx(1, "port %u does not start", port);
}

/* Beside traffic: a rule to drop one subnet, then another, replaced in place. */
static void
change_rules(struct example *ex, unsigned int seconds)
{
	struct flower_match match = { .addresses = FLOWER_IPV4 };
	uint32_t handle = 0;

	match.mask.a.ip4.src = htonl(0xffffff00);
	for (unsigned int i = 0; i < 10 * seconds; i++) {
		match.key.a.ip4.src = htonl(i % 2 == 0 ? 0xc0000200 : 0xc6336400);
		handle = set_rule(ex, 1, handle, &match, TC_ACT_SHOT);
		usleep(100000);
		rcu_reclaim(ex->rcu, 0);
	}
}

int
main(int argc, char **argv)
{
	static struct example ex;
	unsigned int lcore, seconds;
	int n;

	if ((n = rte_eal_init(argc, argv)) < 0)
		errx(1, "rte_eal_init: %s", rte_strerror(rte_errno));
	seconds = argc - n > 1 ? (unsigned int)strtoul(argv[n + 1], NULL, 10) : 5;
	if ((lcore = rte_get_next_lcore(-1, 1, 0)) == RTE_MAX_LCORE)
		errx(1, "a second lcore is needed: --lcores 0,1");
	start_ports();
	setup(&ex);
	set_rule(&ex, 9, 0, NULL, TC_ACT_OK);
	rte_eal_remote_launch(worker, &ex, lcore);
	change_rules(&ex, seconds);
	atomic_store(&ex.stop, true);
	rte_eal_wait_lcore(lcore);
	classifier_hook_set(&ex.ingress, NULL);
	classifier_block_put(ex.block);
	classifier_destroy(ex.classifier);
	action_table_destroy(ex.actions);
	rcu_destroy(ex.rcu);
	free(ex.qsbr);
	printf("forwarded %" PRIu64 ", dropped %" PRIu64 "\n", ex.forwarded, ex.dropped);
	rte_eal_cleanup();
	return 0;
}
