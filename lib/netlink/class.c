/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Classes, which are there with their qdisc: the queues of mq, the bands of prio. RTM_GETTCLASS. */

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

#include "netlink/tc.h"
#include "netlink/tc_device.h"

/* What dumps of qdiscs and filters have as well, so that programs may send it. */
static const struct netlink_attr_policy class_policy[] = {
	{ TCA_KIND, "TCA_KIND", NETLINK_ATTR_STRING, 1, TC_KIND_MAX },
	{ TCA_DUMP_INVISIBLE, "TCA_DUMP_INVISIBLE", NETLINK_ATTR_FLAG },
};

static int
class_put(struct netlink_request *req, uint16_t flags, const struct netlink_dev *dev,
	const struct tc_qdisc *q, unsigned int minor)
{
	const struct tc_device *device = q->device;
	bool is_queue = q == device->root && device->leaves != NULL;
	struct tc_counts counts;
	struct tcmsg tcm = { 0 };
	struct netlink_put put;

	tcm.tcm_family = AF_UNSPEC;
	tcm.tcm_ifindex = (int)dev->ifindex;
	tcm.tcm_parent = is_queue ? TC_H_ROOT : q->handle;
	tcm.tcm_handle = TC_H_MAKE(q->handle, minor);
	if (is_queue)
		tcm.tcm_info = device->leaves[minor - 1]->handle;
	if (!netlink_put_begin(req, &put, RTM_NEWTCLASS, flags, &tcm, sizeof(tcm)))
		return -EMSGSIZE;
	netlink_put_string(&put, TCA_KIND, q->kind->name);
	/* a band has no counters of its own */
	if (is_queue) {
		tc_queues_counts(dev, minor - 1, minor, &counts);
		tc_queues_put_stats(&put, &counts);
	}
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static int
class_find_device(struct netlink_request *req, const struct tcmsg *tcm, struct netlink_dev *dev,
	struct tc_device **device)
{
	const struct nlattr *tb[TCA_MAX + 1];
	int ret;

	if ((ret = netlink_parse(req, sizeof(*tcm), class_policy, RTE_DIM(class_policy), tb,
		     TCA_MAX + 1)) != 0 ||
		(ret = netlink_dev_by_index(req, (uint32_t)tcm->tcm_ifindex, dev)) != 0)
		return ret;
	if ((*device = tc_device_get(req->server, dev)) == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for the device's qdiscs");
	return 0;
}

static int
class_get(struct netlink_request *req)
{
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(req->nlh);
	unsigned int minor = TC_H_MIN(tcm->tcm_handle);
	struct tc_device *device;
	struct netlink_dev dev;
	struct tc_qdisc *q;
	int ret;

	if ((ret = class_find_device(req, tcm, &dev, &device)) != 0)
		return ret;
	q = tc_qdisc_lookup(device, TC_H_MAJ(tcm->tcm_handle));
	if (q == NULL || q->kind->classes == NULL || minor == 0 || minor > q->kind->classes(q))
		return netlink_fail(req, -ENOENT, NULL, "Specified class not found");
	return class_put(req, 0, &dev, q, minor);
}

/* Those of one qdisc, or of the root, if tcm_parent says so. */
static bool
dump_wants(const struct tcmsg *tcm, const struct tc_qdisc *q)
{
	return q->kind->classes != NULL &&
		(tcm->tcm_parent == 0 || TC_H_MAJ(tcm->tcm_parent) == q->handle ||
			(tcm->tcm_parent == TC_H_ROOT && q->parent == TC_H_ROOT));
}

/* cursor[0]: qdiscs that are done; cursor[1]: classes done of the next one */
static int
class_dump(struct netlink_request *req)
{
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(req->nlh);
	struct tc_device *device;
	struct netlink_dev dev;
	struct tc_qdisc *q;
	int ret;

	if ((ret = class_find_device(req, tcm, &dev, &device)) != 0)
		return ret == -ENODEV ? 0 : ret;
	tc_dump_check(req);
	for (; (q = tc_device_qdisc(device, (unsigned int)req->cursor[0])) != NULL;
		req->cursor[0]++, req->cursor[1] = 0) {
		if (!dump_wants(tcm, q))
			continue;
		for (; req->cursor[1] < q->kind->classes(q); req->cursor[1]++)
			if (class_put(req, NLM_F_MULTI, &dev, q,
				    (unsigned int)req->cursor[1] + 1) != 0)
				return 1;
	}
	return 0;
}

static struct netlink_handler class_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETTCLASS,
	.header = sizeof(struct tcmsg),
	.doit = class_get,
	.dump = class_dump,
};
NETLINK_REGISTER_HANDLER(class_get_handler);
