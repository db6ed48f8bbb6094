/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>

#include "app.h"
#include "control.h"
#include "crypto.h"
#include "forward/forward.h"
#include "forward/ip.h"
#include "prompt/prompt.h"
#include "prompt/traffic.h"

struct app app;

static int
rcu_start(struct app *a)
{
	unsigned int n = rte_lcore_count();
	size_t size = rte_rcu_qsbr_get_memsize(n);

	a->qsbr = rte_zmalloc("qsbr", size, RTE_CACHE_LINE_SIZE);
	if (a->qsbr == NULL || rte_rcu_qsbr_init(a->qsbr, n) != 0 ||
		(a->rcu = rcu_create(a->qsbr)) == NULL) {
		fprintf(stderr, "millrace: no memory for RCU\n");
		return -1;
	}
	return 0;
}

static int
metadata_register(struct app *a)
{
	static const struct rte_mbuf_dynflag opened = { .name = "millrace_opened" };
	int bit;

	if ((a->meta_offset = packet_meta_register()) >= 0 &&
		(bit = rte_mbuf_dynflag_register(&opened)) >= 0) {
		a->opened = UINT64_C(1) << bit;
		return 0;
	}
	fprintf(stderr, "millrace: mbufs have no room for the packet's metadata: %s\n",
		rte_strerror(rte_errno));
	return -1;
}

static int
tables_create(struct app *a)
{
	if ((a->csum = csum_action_create(a->n_workers)) == NULL) {
		fprintf(stderr, "millrace: no memory for the checksum action\n");
		return -1;
	}
	if ((a->actions = action_table_create(a->rcu, a->n_workers)) == NULL ||
		(a->classifier = classifier_create(a->rcu, a->actions)) == NULL) {
		fprintf(stderr, "millrace: no memory for the classifier\n");
		return -1;
	}
	return 0;
}

/* Who comes and goes is information, not news: shown with EAL's --log-level=millrace:info. */
RTE_LOG_REGISTER(millrace_log, millrace, NOTICE);

static void
log_line(void *arg, const char *line)
{
	(void)arg;
	rte_log(RTE_LOG_INFO, (uint32_t)millrace_log, "millrace: %s\n", line);
}

static int
netlink_start(struct app *a)
{
	struct netlink_conf conf = {
		.path = a->ctl_path,
		.group = a->opt.ctl_group,
		.rcu = a->rcu,
		.actions = a->actions,
		.classifier = a->classifier,
		.csum = a->csum,
		.route = a->route,
		.ipsec = a->ipsec,
		.dev_ops = &port_dev_ops,
		.dev_arg = a,
		.log = log_line,
	};
	char error[256];
	int n;

	n = a->opt.ctl != NULL ? snprintf(a->ctl_path, sizeof(a->ctl_path), "%s", a->opt.ctl)
			       : snprintf(a->ctl_path, sizeof(a->ctl_path), "%s/millrace.sock",
					 rte_eal_get_runtime_dir());
	if (n < 0 || (size_t)n >= sizeof(a->ctl_path)) {
		fprintf(stderr,
			"millrace: the path of the control socket is longer than %zu bytes\n",
			sizeof(a->ctl_path) - 1);
		return -1;
	}
	if ((a->netlink = netlink_server_create(&conf, error, sizeof(error))) == NULL) {
		fprintf(stderr, "millrace: %s\n", error);
		return -1;
	}
	return 0;
}

static int
control_start(struct app *a)
{
	if ((a->control = control_create(a)) == NULL)
		return -1;
	if ((a->prompt = prompt_create(a)) == NULL) {
		fprintf(stderr, "millrace: no memory for the prompt\n");
		return -1;
	}
	return 0;
}

int
app_open(struct app *a)
{
	a->mode = forward_find(a->opt.forward_mode);
	if (rcu_start(a) != 0 || metadata_register(a) != 0 || workers_create(a) != 0 ||
		tables_create(a) != 0 || ip_create(a) != 0 || crypto_open(a) != 0 ||
		netlink_start(a) != 0 || ports_open(a) != 0 || control_start(a) != 0)
		return -1;
	return 0;
}

/* Every mbuf must be back once ports and schedulers are closed. */
static int
pools_close(struct app *a)
{
	int ret = 0;

	for (unsigned int i = 0; i < RTE_MAX_NUMA_NODES; i++) {
		if (a->pool[i] == NULL)
			continue;
		if (rte_mempool_in_use_count(a->pool[i]) != 0) {
			fprintf(stderr, "millrace: %u mbufs of socket %u did not come back\n",
				rte_mempool_in_use_count(a->pool[i]), i);
			ret = -1;
		}
		rte_mempool_free(a->pool[i]);
	}
	return ret;
}

int
app_close(struct app *a)
{
	traffic_stop(a);
	prompt_destroy(a->prompt);
	control_destroy(a->control);
	netlink_server_destroy(a->netlink);
	a->netlink = NULL;
	ports_close(a);
	crypto_stop(a);
	ip_destroy(a);
	crypto_close(a);
	workers_destroy(a);
	classifier_destroy(a->classifier);
	action_table_destroy(a->actions);
	rcu_destroy(a->rcu);
	csum_action_destroy(a->csum);
	rte_free(a->qsbr);
	return pools_close(a);
}
