/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* pfifo_fast, three bands by the packet's priority; pfifo, one band; noqueue, next to none. */

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

#include "netlink/tc.h"

/*
 * Linux's noqueue sends at once and lets senders spin on the driver's lock. Here nobody waits: what
 * several workers send at the same moment needs room for a burst.
 */
#define NOQUEUE_LIMIT SCHED_NOLOCK_BUDGET_DEFAULT

/* Nothing, or what pfifo_fast_put() says. */
static bool
pfifo_fast_options_fit(const struct nlattr *options, const struct sched_nolock_conf *conf)
{
	const struct tc_prio_qopt *qopt = mnl_attr_get_payload(options);
	size_t len = mnl_attr_get_payload_len(options);

	return len == 0 ||
		(len == sizeof(*qopt) && qopt->bands == (int)conf->bands &&
			memcmp(qopt->priomap, conf->priomap, sizeof(qopt->priomap)) == 0);
}

static int
pfifo_fast_parse(struct netlink_request *req, const struct netlink_dev *dev,
	const struct nlattr *options, const struct tc_queueing *old, struct tc_queueing *queueing)
{
	struct sched_nolock_conf conf;

	(void)old;
	sched_nolock_conf_pfifo_fast(&conf);
	if (options != NULL && !pfifo_fast_options_fit(options, &conf))
		return netlink_fail(req, -EINVAL, options,
			"Qdisc \"pfifo_fast\" takes no TCA_OPTIONS but what a dump says of it");
	queueing->bands = conf.bands;
	memcpy(queueing->priomap, conf.priomap, sizeof(queueing->priomap));
	queueing->limit = dev->txqueuelen;
	return 0;
}

static void
pfifo_fast_put(struct netlink_put *put, const struct tc_qdisc *q)
{
	struct tc_prio_qopt qopt = { .bands = (int)q->queueing.bands };

	memcpy(qopt.priomap, q->queueing.priomap, sizeof(qopt.priomap));
	netlink_put_data(put, TCA_OPTIONS, &qopt, sizeof(qopt));
}

static void
one_band(struct tc_queueing *queueing, uint32_t limit)
{
	memset(queueing, 0, sizeof(*queueing));
	queueing->bands = 1;
	queueing->limit = limit;
}

static int
pfifo_parse(struct netlink_request *req, const struct netlink_dev *dev,
	const struct nlattr *options, const struct tc_queueing *old, struct tc_queueing *queueing)
{
	const struct tc_fifo_qopt *qopt;

	(void)old;
	if (options == NULL) {
		one_band(queueing, dev->txqueuelen != 0 ? dev->txqueuelen : 1);
		return 0;
	}
	if (mnl_attr_get_payload_len(options) != sizeof(*qopt))
		return netlink_fail(req, -EINVAL, options,
			"TCA_OPTIONS of pfifo is a struct tc_fifo_qopt: %zu bytes", sizeof(*qopt));
	qopt = mnl_attr_get_payload(options);
	if (qopt->limit == 0)
		return netlink_fail(
			req, -EINVAL, options, "pfifo with limit 0 would drop every packet");
	one_band(queueing, qopt->limit);
	return 0;
}

static void
pfifo_put(struct netlink_put *put, const struct tc_qdisc *q)
{
	struct tc_fifo_qopt qopt = { .limit = q->queueing.limit };

	netlink_put_data(put, TCA_OPTIONS, &qopt, sizeof(qopt));
}

static int
noqueue_parse(struct netlink_request *req, const struct netlink_dev *dev,
	const struct nlattr *options, const struct tc_queueing *old, struct tc_queueing *queueing)
{
	(void)dev;
	(void)old;
	if (options != NULL && mnl_attr_get_payload_len(options) > 0)
		return netlink_fail(
			req, -EINVAL, options, "Qdisc \"noqueue\" takes no TCA_OPTIONS");
	one_band(queueing, NOQUEUE_LIMIT);
	return 0;
}

static struct tc_qdisc_kind pfifo_fast_kind = {
	.name = "pfifo_fast",
	.fixed = true,
	.parse = pfifo_fast_parse,
	.put = pfifo_fast_put,
};
TC_REGISTER_QDISC_KIND(pfifo_fast_kind);

static struct tc_qdisc_kind pfifo_kind = {
	.name = "pfifo",
	.parse = pfifo_parse,
	.put = pfifo_put,
};
TC_REGISTER_QDISC_KIND(pfifo_kind);

static struct tc_qdisc_kind noqueue_kind = {
	.name = "noqueue",
	.root_only = true,
	.fixed = true,
	.parse = noqueue_parse,
};
TC_REGISTER_QDISC_KIND(noqueue_kind);
