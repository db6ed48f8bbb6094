/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_APP_H
#define APP_APP_H

/* The program's state, in one place. The control (main) thread owns it unless a type says
 * otherwise. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_rcu_qsbr.h>

#include "action/action.h"
#include "classifier/classifier.h"
#include "csum_action/csum_action.h"
#include "drop.h"
#include "ipsec_cache/ipsec_cache.h"
#include "lcore.h"
#include "netlink/netlink.h"
#include "options.h"
#include "port.h"
#include "rcu/rcu.h"
#include "route/route.h"

struct forward_mode;
struct control;
struct router;
struct prompt;

struct app {
	struct options opt;
	int meta_offset; /* of struct packet_meta in every mbuf */
	uint64_t opened; /* the flag in an mbuf's ol_flags: it came out of a tunnel here */
	struct rte_mempool *pool[RTE_MAX_NUMA_NODES];
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct action_table *actions;
	struct classifier *classifier;
	struct csum_action *csum; /* reasons counted, sums left to NICs */
	struct route_table *route;
	struct router *ip; /* what mode ip keeps beside the table */
	struct ipsec_cache *ipsec;
	struct netlink_server *netlink;
	char ctl_path[108];
	struct control *control;
	struct prompt *prompt;
	const struct forward_mode *mode;
	bool forwarding; /* workers run */
	bool ever_forwarded; /* a `start` was given */
	unsigned int n_workers; /* EAL's worker lcores */
	struct deal deal;
	struct worker *workers; /* n_workers of them, in lcore order */
	struct drop_counters control_drops; /* packets that the control thread dropped */
	uint32_t last_ifindex; /* given to a port; never again to another */
	struct port ports[RTE_MAX_ETHPORTS];
};

/* The one instance: made by main(), reached by prompt commands and driver callbacks. */
extern struct app app;

/*
 * Everything between EAL's start and the first command, for a->opt: RCU, tables, workers, control
 * socket, ports, event loop. 0, or -1 after one sentence on stderr. app_close() takes apart what
 * there is, after a failure too; -1: an mbuf was lost.
 */
int app_open(struct app *app);
int app_close(struct app *app);

#endif /* APP_APP_H */
