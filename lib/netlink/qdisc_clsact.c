/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * clsact: a block of filters for packets that come in and one for those that leave. ingress: the
 * older kind, with the first of them alone.
 */

#include <linux/pkt_sched.h>

#include "netlink/tc.h"

enum {
	CLSACT_INGRESS,
	CLSACT_EGRESS,
};

static int
clsact_create(struct netlink_request *req, const struct netlink_dev *dev, struct tc_qdisc *q)
{
	struct classifier_hook *hooks[] = {
		[CLSACT_INGRESS] = dev->ingress,
		[CLSACT_EGRESS] = dev->egress,
	};

	return tc_qdisc_blocks_create(req, dev, q, hooks, RTE_DIM(hooks));
}

static struct tc_block *
clsact_block(struct netlink_request *req, struct tc_qdisc *q, uint32_t parent)
{
	switch (TC_H_MIN(parent)) {
	case TC_H_MIN(TC_H_MIN_INGRESS):
		return &q->blocks[CLSACT_INGRESS];
	case TC_H_MIN(TC_H_MIN_EGRESS):
		return &q->blocks[CLSACT_EGRESS];
	default:
		netlink_fail(req, -EOPNOTSUPP, NULL,
			"Filters of clsact stand at its ingress (ffff:fff2) or egress (ffff:fff3)");
		return NULL;
	}
}

/* Linux puts an empty TCA_OPTIONS */
static void
clsact_put(struct netlink_put *put, const struct tc_qdisc *q)
{
	(void)q;
	netlink_put_nest_end(put, netlink_put_nest(put, TCA_OPTIONS));
}

static int
ingress_create(struct netlink_request *req, const struct netlink_dev *dev, struct tc_qdisc *q)
{
	struct classifier_hook *hooks[] = { dev->ingress };

	return tc_qdisc_blocks_create(req, dev, q, hooks, RTE_DIM(hooks));
}

/* any class of ingress is the one block */
static struct tc_block *
ingress_block(struct netlink_request *req, struct tc_qdisc *q, uint32_t parent)
{
	(void)req;
	(void)parent;
	return &q->blocks[CLSACT_INGRESS];
}

static struct tc_qdisc_kind clsact_kind = {
	.name = "clsact",
	.ingress = true,
	.shareable = 2,
	.create = clsact_create,
	.block = clsact_block,
	.put = clsact_put,
};
TC_REGISTER_QDISC_KIND(clsact_kind);

static struct tc_qdisc_kind ingress_kind = {
	.name = "ingress",
	.ingress = true,
	.shareable = 1,
	.create = ingress_create,
	.block = ingress_block,
	.put = clsact_put,
};
TC_REGISTER_QDISC_KIND(ingress_kind);
