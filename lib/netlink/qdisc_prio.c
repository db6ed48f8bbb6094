/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* prio: 2 to 16 bands, chosen by the packet's priority. */

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

#include "netlink/tc.h"
#include "netlink/tc_device.h"

#define PRIO_BANDS_MIN 2

/* A struct tc_prio_qopt, behind which iproute2 puts a nest with nothing in it. */
static bool
prio_options_fit(const struct nlattr *options)
{
	const struct nlattr *nest =
		(const struct nlattr *)((const char *)mnl_attr_get_payload(options) +
			sizeof(struct tc_prio_qopt));
	size_t len = mnl_attr_get_payload_len(options);

	return len == sizeof(struct tc_prio_qopt) ||
		(len == sizeof(struct tc_prio_qopt) + sizeof(*nest) &&
			nest->nla_len == sizeof(*nest));
}

static int
prio_parse(struct netlink_request *req, const struct netlink_dev *dev, const struct nlattr *options,
	const struct tc_queueing *old, struct tc_queueing *queueing)
{
	const struct tc_prio_qopt *qopt;

	if (options == NULL)
		return netlink_fail(req, -EINVAL, NULL, "Qdisc \"prio\" needs TCA_OPTIONS");
	if (!prio_options_fit(options))
		return netlink_fail(req, -EINVAL, options,
			"TCA_OPTIONS of prio is a struct tc_prio_qopt: %zu bytes", sizeof(*qopt));
	qopt = mnl_attr_get_payload(options);
	if (qopt->bands < PRIO_BANDS_MIN || qopt->bands > TCQ_PRIO_BANDS)
		return netlink_fail(req, -EINVAL, options, "prio has %d to %d bands, not %d",
			PRIO_BANDS_MIN, TCQ_PRIO_BANDS, qopt->bands);
	for (unsigned int i = 0; i < SCHED_NOLOCK_PRIO_MAX; i++)
		if (qopt->priomap[i] >= qopt->bands)
			return netlink_fail(req, -EINVAL, options,
				"priomap sends priority %u to band %u of %d", i, qopt->priomap[i],
				qopt->bands);
	queueing->bands = (unsigned int)qopt->bands;
	memcpy(queueing->priomap, qopt->priomap, sizeof(queueing->priomap));
	queueing->limit = old != NULL ? old->limit : dev->txqueuelen != 0 ? dev->txqueuelen : 1;
	return 0;
}

static void
prio_put(struct netlink_put *put, const struct tc_qdisc *q)
{
	struct tc_prio_qopt qopt = { .bands = (int)q->queueing.bands };

	memcpy(qopt.priomap, q->queueing.priomap, sizeof(qopt.priomap));
	netlink_put_data(put, TCA_OPTIONS, &qopt, sizeof(qopt));
}

/* Filters choose the band: flowid 1:N of prio 1: is band N - 1. */
static int
prio_create(struct netlink_request *req, const struct netlink_dev *dev, struct tc_qdisc *q)
{
	struct classifier_hook *hooks[1];
	unsigned int first, end;
	int ret;

	if (dev->root == NULL)
		return 0;
	tc_qdisc_queues(q, &first, &end);
	hooks[0] = &dev->root[first];
	if ((ret = tc_qdisc_blocks_create(req, dev, q, hooks, RTE_DIM(hooks))) != 0)
		return ret;
	q->blocks[0].n_hooks = end - first;
	return 0;
}

static struct tc_block *
prio_block(struct netlink_request *req, struct tc_qdisc *q, uint32_t parent)
{
	if (TC_H_MIN(parent) != 0) {
		netlink_fail(req, TC_H_MIN(parent) > q->queueing.bands ? -ENOENT : -EOPNOTSUPP,
			NULL, "Filters of prio stand at the qdisc, not at a class");
		return NULL;
	}
	if (q->blocks[0].block == NULL) {
		netlink_fail(
			req, -EOPNOTSUPP, NULL, "Filters of prio are not supported by this device");
		return NULL;
	}
	return &q->blocks[0];
}

static unsigned int
prio_classes(const struct tc_qdisc *q)
{
	return q->queueing.bands;
}

static struct tc_qdisc_kind prio_kind = {
	.name = "prio",
	.create = prio_create,
	.block = prio_block,
	.classes = prio_classes,
	.parse = prio_parse,
	.put = prio_put,
};
TC_REGISTER_QDISC_KIND(prio_kind);
