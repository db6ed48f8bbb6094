/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* mq: the root of a device with several queues. It queues nothing itself; qdisc.c makes its leaves.
 */

#include <linux/pkt_sched.h>

#include "netlink/tc.h"

static struct tc_qdisc_kind mq_kind = {
	.name = "mq",
	.root_only = true,
};
TC_REGISTER_QDISC_KIND(mq_kind);
