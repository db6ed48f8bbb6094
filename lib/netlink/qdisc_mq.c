/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* mq: the root of a device with several queues. It queues nothing itself; qdisc.c makes its leaves.
 */

#include <linux/pkt_sched.h>

#include "netlink/tc.h"
#include "netlink/tc_device.h"

static unsigned int
mq_classes(const struct tc_qdisc *q)
{
	return q->device->n_txq;
}

static struct tc_qdisc_kind mq_kind = {
	.name = "mq",
	.root_only = true,
	.classes = mq_classes,
};
TC_REGISTER_QDISC_KIND(mq_kind);
