/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Qdiscs: RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC. The checks stand in the order of Linux's
 * tc_modify_qdisc(), so that a request which is wrong twice gets the same answer.
 */

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/tc.h"
#include "netlink/tc_device.h"

static const struct netlink_attr_policy qdisc_policy[] = {
	{ TCA_KIND, "TCA_KIND", NETLINK_ATTR_STRING, 1, TC_KIND_MAX },
	/* a struct in some kinds, nested in others: each kind looks for itself */
	{ TCA_OPTIONS, "TCA_OPTIONS", NETLINK_ATTR_BINARY, 0, 0 },
	{ TCA_RATE, "TCA_RATE", NETLINK_ATTR_REFUSED },
	{ TCA_STAB, "TCA_STAB", NETLINK_ATTR_REFUSED },
	{ TCA_INGRESS_BLOCK, "TCA_INGRESS_BLOCK", NETLINK_ATTR_U32 },
	{ TCA_EGRESS_BLOCK, "TCA_EGRESS_BLOCK", NETLINK_ATTR_U32 },
	{ TCA_HW_OFFLOAD, "TCA_HW_OFFLOAD", NETLINK_ATTR_REFUSED },
	{ TCA_DUMP_INVISIBLE, "TCA_DUMP_INVISIBLE", NETLINK_ATTR_FLAG },
};

/* Of each block of a qdisc. */
static const struct {
	uint16_t attr;
	const char *name;
} sharing[TC_QDISC_BLOCKS] = {
	{ TCA_INGRESS_BLOCK, "Ingress" },
	{ TCA_EGRESS_BLOCK, "Egress" },
};

/* Messages. */

void
tc_stats_put(struct netlink_put *put, uint16_t type, const struct tc_counts *counts)
{
	struct nlattr *nest = netlink_put_nest(put, type);
	struct gnet_stats_basic basic = { 0 };

	basic.bytes = counts->bytes;
	basic.packets = (uint32_t)counts->packets;
	netlink_put_data(put, TCA_STATS_BASIC, &basic, sizeof(basic));
	if (counts->packets > UINT32_MAX)
		netlink_put_u64(put, TCA_STATS_PKT64, counts->packets);
	netlink_put_data(put, TCA_STATS_QUEUE, &counts->queue, sizeof(counts->queue));
	netlink_put_nest_end(put, nest);
}

void
tc_queues_counts(const struct netlink_dev *dev, unsigned int first, unsigned int end,
	struct tc_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	for (unsigned int i = first; i < end; i++) {
		struct sched_nolock_stats s;

		sched_nolock_stats(dev->sched[i], &s);
		counts->packets += s.bypassed + s.dequeued;
		counts->bytes += s.bypassed_bytes + s.dequeued_bytes;
		counts->queue.qlen += (uint32_t)(s.queued + s.held);
		counts->queue.backlog += (uint32_t)(s.queued_bytes + s.held_bytes);
		counts->queue.drops += (uint32_t)s.dropped;
		counts->queue.overlimits += (uint32_t)s.overlimits;
		counts->queue.requeues += (uint32_t)s.requeues;
	}
}

void
tc_queues_put_stats(struct netlink_put *put, const struct tc_counts *counts)
{
	struct tc_stats compat = { 0 };

	tc_stats_put(put, TCA_STATS2, counts);
	compat.bytes = counts->bytes;
	compat.packets = (uint32_t)counts->packets;
	compat.drops = counts->queue.drops;
	compat.overlimits = counts->queue.overlimits;
	compat.qlen = counts->queue.qlen;
	compat.backlog = counts->queue.backlog;
	netlink_put_data(put, TCA_STATS, &compat, sizeof(compat));
}

static struct tcmsg
qdisc_header(const struct netlink_dev *dev, const struct tc_qdisc *q)
{
	struct tcmsg tcm = { 0 };

	tcm.tcm_family = AF_UNSPEC;
	tcm.tcm_ifindex = (int)dev->ifindex;
	tcm.tcm_parent = q->parent;
	tcm.tcm_handle = q->handle;
	/* Linux's reference count: the device's own and one for each queue that a plain root serves
	 */
	tcm.tcm_info = 1;
	if (q->parent == TC_H_ROOT && q->device->leaves == NULL)
		tcm.tcm_info += dev->n_txq;
	return tcm;
}

static void
qdisc_put(struct netlink_put *put, const struct netlink_dev *dev, const struct tc_qdisc *q)
{
	struct tc_counts counts;
	unsigned int first, end;

	tc_qdisc_queues(q, &first, &end);
	tc_queues_counts(dev, first, end, &counts);
	netlink_put_string(put, TCA_KIND, q->kind->name);
	if (q->kind->put != NULL)
		q->kind->put(put, q);
	netlink_put_u8(put, TCA_HW_OFFLOAD, 0);
	for (unsigned int i = 0; i < TC_QDISC_BLOCKS; i++) {
		uint32_t index = tc_block_shared_index(&q->blocks[i]);

		if (index != 0)
			netlink_put_u32(put, sharing[i].attr, index);
	}
	tc_queues_put_stats(put, &counts);
}

static void
qdisc_notify(struct netlink_request *req, uint16_t type, uint16_t flags,
	const struct netlink_dev *dev, const struct tc_qdisc *q)
{
	struct tcmsg tcm = qdisc_header(dev, q);
	struct netlink_put put;

	if (!netlink_notify_wanted(req->server, req, NETLINK_ROUTE, RTNLGRP_TC) ||
		!netlink_notify_begin(req->server, req, &put, type, flags, &tcm, sizeof(tcm)))
		return;
	qdisc_put(&put, dev, q);
	netlink_notify_end(req->server, req, &put, NETLINK_ROUTE, RTNLGRP_TC);
}

/* Requests. */

struct qdisc_request {
	const struct tcmsg *tcm;
	const struct nlattr *tb[TCA_MAX + 1];
	const char *kind; /* NULL: not given */
	struct netlink_dev dev;
	struct tc_device *device;
	struct tc_qdisc *parent; /* whose class tcm_parent is, or NULL */
	struct tc_qdisc *q; /* that the request names, or NULL */
};

static int
request_parse(struct netlink_request *req, struct qdisc_request *r)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->tcm = mnl_nlmsg_get_payload(req->nlh);
	ret = netlink_parse(
		req, sizeof(*r->tcm), qdisc_policy, RTE_DIM(qdisc_policy), r->tb, TCA_MAX + 1);
	if (ret != 0)
		return ret;
	if (r->tb[TCA_KIND] != NULL)
		r->kind = mnl_attr_get_str(r->tb[TCA_KIND]);
	if ((ret = netlink_dev_by_index(req, (uint32_t)r->tcm->tcm_ifindex, &r->dev)) != 0)
		return ret;
	if ((r->device = tc_device_get(req->server, &r->dev)) == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for the device's qdiscs");
	return 0;
}

/* The qdisc on class `classid` of p: what mq has on one queue. */
static int
qdisc_leaf(struct netlink_request *req, struct tc_device *device, struct tc_qdisc *p,
	uint32_t classid, struct tc_qdisc **leaf)
{
	unsigned int minor = TC_H_MIN(classid);

	*leaf = NULL;
	if (p == device->root && device->leaves != NULL) {
		if (minor == 0 || minor > device->n_txq)
			return netlink_fail(req, -ENOENT, NULL, "Specified class not found");
		*leaf = device->leaves[minor - 1];
		return 0;
	}
	if (strcmp(p->kind->name, "prio") == 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL,
			"A band of prio is a queue of its own: no qdisc can stand there");
	return netlink_fail(req, -EOPNOTSUPP, NULL, "Parent qdisc is not classful");
}

/* Where tcm_parent points. q stays NULL where nothing was put yet. */
static int
request_find_parent(struct netlink_request *req, struct qdisc_request *r, const char *missing)
{
	uint32_t classid = r->tcm->tcm_parent;

	if (classid == TC_H_ROOT) {
		r->q = r->device->root;
		return 0;
	}
	if (classid == TC_H_INGRESS) {
		r->q = r->device->ingress;
		return 0;
	}
	r->parent = tc_qdisc_lookup(r->device, TC_H_MAJ(classid));
	if (r->parent == NULL)
		return netlink_fail(req, -ENOENT, NULL, "%s", missing);
	return qdisc_leaf(req, r->device, r->parent, classid, &r->q);
}

static int
qdisc_change(struct netlink_request *req, struct qdisc_request *r)
{
	struct tc_qdisc *q = r->q;
	struct tc_queueing queueing;
	unsigned int first, end;
	int ret;

	if (r->tb[TCA_INGRESS_BLOCK] != NULL || r->tb[TCA_EGRESS_BLOCK] != NULL)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "Change of blocks is not supported");
	if (r->tb[TCA_OPTIONS] != NULL) {
		if (q->kind->parse == NULL || q->kind->fixed)
			return netlink_fail(req, -EINVAL, r->tb[TCA_OPTIONS],
				"Change operation not supported by specified qdisc");
		ret = q->kind->parse(req, &r->dev, r->tb[TCA_OPTIONS], &q->queueing, &queueing);
		if (ret != 0)
			return ret;
		tc_qdisc_queues(q, &first, &end);
		if ((ret = tc_queueing_apply(req, &r->dev, first, end, &queueing)) != 0)
			return ret;
		q->queueing = queueing;
		tc_changed(req->server);
	}
	qdisc_notify(req, RTM_NEWQDISC, 0, &r->dev, q);
	return 0;
}

/* Where the new qdisc may stand, and with which handle. */
static int
create_check(struct netlink_request *req, const struct qdisc_request *r,
	const struct tc_qdisc_kind *kind, uint32_t *handle)
{
	uint32_t parent = r->tcm->tcm_parent;

	if ((parent == TC_H_INGRESS) != kind->ingress)
		return netlink_fail(req, kind->ingress ? -EOPNOTSUPP : -EINVAL, NULL,
			kind->ingress ? "Qdisc \"%s\" stands at the ingress parent ffff:fff1 only"
				      : "Qdisc \"%s\" cannot stand at parent ffff:fff1, which is "
					"reserved for "
					"ingress and clsact",
			kind->name);
	if (kind->root_only && parent != TC_H_ROOT)
		return netlink_fail(
			req, -EOPNOTSUPP, NULL, "Qdisc \"%s\" can only be the root", kind->name);
	if (strcmp(kind->name, "mq") == 0 && r->dev.n_txq < 2)
		return netlink_fail(
			req, -EOPNOTSUPP, NULL, "%s has one queue: mq needs more", r->dev.name);
	*handle = kind->ingress ? TC_QDISC_HANDLE_CLSACT : r->tcm->tcm_handle;
	if (*handle == 0 && (*handle = tc_autohandle(req->server, r->device)) == 0)
		return netlink_fail(
			req, -ENOSPC, NULL, "Maximum number of qdisc handles was exceeded");
	return 0;
}

/* Makes what a new mq root stands on. */
static int
graft_leaves(struct netlink_request *req, struct qdisc_request *r, uint32_t handle,
	struct tc_qdisc ***leaves)
{
	const struct tc_qdisc_kind *fifo = tc_qdisc_kind_find("pfifo_fast");
	struct tc_queueing queueing;
	int ret;

	if ((*leaves = tc_leaves_create(r->device, &r->dev, handle)) == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for the leaves of mq");
	ret = fifo->parse(req, &r->dev, NULL, NULL, &queueing);
	if (ret == 0)
		ret = tc_queueing_apply(req, &r->dev, 0, r->device->n_txq, &queueing);
	if (ret != 0) {
		tc_leaves_free(*leaves, r->device->n_txq);
		return ret;
	}
	for (unsigned int i = 0; i < r->device->n_txq; i++)
		(*leaves)[i]->queueing = queueing;
	return 0;
}

/* Gives the place of r->q to the new qdisc, whose schedulers are set. Cannot fail. */
static void
graft_swap(struct netlink_request *req, struct qdisc_request *r, struct tc_qdisc *q,
	struct tc_qdisc **leaves, bool deleted)
{
	struct tc_device *device = r->device;
	struct tc_qdisc *old = q->kind->ingress ? device->ingress
		: q->queue >= 0                 ? device->leaves[q->queue]
						: device->root;

	if (old != NULL)
		qdisc_notify(req, RTM_DELQDISC, 0, &r->dev, old);
	tc_qdisc_publish(q, old);
	tc_changed(req->server);
	if (q->kind->ingress) {
		device->ingress = q;
	} else if (q->queue >= 0) {
		device->leaves[q->queue] = q;
	} else {
		tc_leaves_free(device->leaves, device->n_txq);
		device->leaves = leaves;
		device->root = q;
	}
	if (!deleted)
		qdisc_notify(req, RTM_NEWQDISC, old != NULL ? NLM_F_REPLACE : 0, &r->dev, q);
	tc_qdisc_free(old);
}

/* Sets the schedulers for q and puts it in its place. q is freed on error. */
static int
graft(struct netlink_request *req, struct qdisc_request *r, struct tc_qdisc *q, bool deleted)
{
	struct tc_qdisc **leaves = NULL;
	unsigned int first, end;
	int ret = 0;

	tc_qdisc_queues(q, &first, &end);
	if (strcmp(q->kind->name, "mq") == 0)
		ret = graft_leaves(req, r, q->handle, &leaves);
	else if (q->kind->create != NULL)
		ret = q->kind->create(req, &r->dev, q);
	if (ret == 0 && leaves == NULL && first < end)
		ret = tc_queueing_apply(req, &r->dev, first, end, &q->queueing);
	if (ret != 0) {
		tc_qdisc_free(q);
		return ret;
	}
	graft_swap(req, r, q, leaves, deleted);
	return 0;
}

static int
create_shared(struct netlink_request *req, const struct qdisc_request *r, struct tc_qdisc *q)
{
	for (unsigned int i = 0; i < TC_QDISC_BLOCKS; i++) {
		const struct nlattr *attr = r->tb[sharing[i].attr];

		if (attr == NULL)
			continue;
		q->shared[i] = mnl_attr_get_u32(attr);
		if (q->shared[i] == 0)
			return netlink_fail(
				req, -EINVAL, attr, "%s block index cannot be 0", sharing[i].name);
		if (i >= q->kind->shareable)
			return netlink_fail(req, -EOPNOTSUPP, attr,
				"%s block sharing is not supported", sharing[i].name);
	}
	return 0;
}

static int
qdisc_create(struct netlink_request *req, struct qdisc_request *r)
{
	const struct tc_qdisc_kind *kind;
	struct tc_qdisc *q;
	uint32_t handle;
	int ret;

	if (r->kind == NULL)
		return netlink_fail(req, -ENOENT, NULL, "Specified qdisc kind is unknown");
	if ((kind = tc_qdisc_kind_find(r->kind)) == NULL)
		return netlink_fail(req, -ENOENT, r->tb[TCA_KIND],
			"Specified qdisc kind is unknown: \"%s\"", r->kind);
	if ((ret = create_check(req, r, kind, &handle)) != 0)
		return ret;
	q = tc_qdisc_alloc(r->device, kind, handle, r->tcm->tcm_parent,
		r->parent != NULL ? (int)TC_H_MIN(r->tcm->tcm_parent) - 1 : -1);
	if (q == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for a qdisc");
	if ((ret = create_shared(req, r, q)) != 0)
		;
	else if (kind->parse != NULL)
		ret = kind->parse(req, &r->dev, r->tb[TCA_OPTIONS], NULL, &q->queueing);
	else if (r->tb[TCA_OPTIONS] != NULL && mnl_attr_get_payload_len(r->tb[TCA_OPTIONS]) > 0)
		ret = netlink_fail(req, -EINVAL, r->tb[TCA_OPTIONS],
			"Qdisc \"%s\" takes no TCA_OPTIONS", kind->name);
	if (ret != 0) {
		tc_qdisc_free(q);
		return ret;
	}
	return graft(req, r, q, false);
}

/* RTM_NEWQDISC whose tcm_handle is not that of the qdisc in place: what is r->q then, or is it new?
 */
static int
modify_by_handle(struct netlink_request *req, struct qdisc_request *r, bool *create)
{
	uint16_t flags = req->nlh->nlmsg_flags;

	if (r->q != NULL && (flags & NLM_F_REPLACE) == 0)
		return netlink_fail(req, -EEXIST, NULL, "NLM_F_REPLACE needed to override");
	if (TC_H_MIN(r->tcm->tcm_handle) != 0)
		return netlink_fail(req, -EINVAL, NULL, "Invalid minor handle");
	r->q = tc_qdisc_lookup(r->device, r->tcm->tcm_handle);
	if (r->q == NULL) {
		*create = true;
		return 0;
	}
	if (r->q->parent != r->tcm->tcm_parent)
		return netlink_fail(
			req, -EINVAL, NULL, "Cannot move an existing qdisc to a different parent");
	if ((flags & NLM_F_EXCL) != 0)
		return netlink_fail(req, -EEXIST, NULL, "Exclusivity flag on, cannot override");
	return 0;
}

/* RTM_NEWQDISC without a handle at a place that is taken: another kind replaces, the same changes.
 */
static bool
modify_replaces(const struct netlink_request *req, const struct qdisc_request *r)
{
	uint16_t flags = req->nlh->nlmsg_flags & (NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL);

	return r->kind != NULL && strcmp(r->kind, r->q->kind->name) != 0 &&
		(flags == (NLM_F_CREATE | NLM_F_REPLACE) || flags == (NLM_F_CREATE | NLM_F_EXCL) ||
			flags == 0);
}

static int
modify_find(struct netlink_request *req, struct qdisc_request *r, bool *create)
{
	uint32_t handle = r->tcm->tcm_handle;
	int ret;

	*create = false;
	if (r->tcm->tcm_parent == 0) {
		if (handle == 0)
			return netlink_fail(req, -EINVAL, NULL, "Handle cannot be zero");
		r->q = tc_qdisc_lookup(r->device, handle);
		return 0;
	}
	if ((ret = request_find_parent(req, r, "Failed to find specified qdisc")) != 0)
		return ret;
	if (r->q != NULL && r->q->handle == 0)
		r->q = NULL; /* came with the device: as if nothing were there */
	if (r->q != NULL && handle != 0 && r->q->handle == handle)
		return 0;
	if (handle != 0)
		return modify_by_handle(req, r, create);
	*create = r->q == NULL || modify_replaces(req, r);
	return 0;
}

static int
qdisc_modify(struct netlink_request *req)
{
	uint16_t flags = req->nlh->nlmsg_flags;
	struct qdisc_request r;
	bool create;
	int ret;

	if ((ret = request_parse(req, &r)) != 0 || (ret = modify_find(req, &r, &create)) != 0)
		return ret;
	if (create) {
		if (r.q == NULL && (flags & NLM_F_CREATE) == 0)
			return netlink_fail(req, -ENOENT, NULL,
				"Qdisc not found. To create specify NLM_F_CREATE flag");
		return qdisc_create(req, &r);
	}
	if (r.q == NULL)
		return netlink_fail(req, -ENOENT, NULL, "Specified qdisc not found");
	if ((flags & NLM_F_EXCL) != 0)
		return netlink_fail(req, -EEXIST, NULL, "Exclusivity flag on, cannot modify");
	if (r.kind != NULL && strcmp(r.kind, r.q->kind->name) != 0)
		return netlink_fail(req, -EINVAL, r.tb[TCA_KIND], "Invalid qdisc name");
	return qdisc_change(req, &r);
}

/* The qdisc that RTM_GETQDISC and RTM_DELQDISC name. */
static int
find_existing(struct netlink_request *req, struct qdisc_request *r)
{
	int ret;

	if (r->tcm->tcm_parent != 0) {
		ret = request_find_parent(req, r, "Failed to find qdisc with specified classid");
		if (ret != 0)
			return ret;
		if (r->q == NULL)
			return netlink_fail(req, -ENOENT, NULL,
				"Cannot find specified qdisc on specified device");
		if (r->tcm->tcm_handle != 0 && r->q->handle != r->tcm->tcm_handle)
			return netlink_fail(req, -EINVAL, NULL, "Invalid handle");
	} else if ((r->q = tc_qdisc_lookup(r->device, r->tcm->tcm_handle)) == NULL) {
		return netlink_fail(
			req, -ENOENT, NULL, "Failed to find qdisc with specified handle");
	}
	if (r->kind != NULL && strcmp(r->kind, r->q->kind->name) != 0)
		return netlink_fail(req, -EINVAL, r->tb[TCA_KIND], "Invalid qdisc name");
	return 0;
}

/* What stands in a queue's place when a qdisc is deleted: what the device came with. */
static int
graft_default(struct netlink_request *req, struct qdisc_request *r)
{
	bool root = r->q == r->device->root;
	const struct tc_qdisc_kind *kind =
		root ? tc_default_root_kind(&r->dev) : tc_qdisc_kind_find("pfifo_fast");
	struct tc_qdisc *q = tc_qdisc_alloc(r->device, kind, 0, r->q->parent, r->q->queue);
	int ret = 0;

	if (q == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for the default qdisc");
	if (kind->parse != NULL)
		ret = kind->parse(req, &r->dev, NULL, NULL, &q->queueing);
	if (ret != 0) {
		tc_qdisc_free(q);
		return ret;
	}
	return graft(req, r, q, true);
}

static int
qdisc_delete(struct netlink_request *req)
{
	struct qdisc_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0 || (ret = find_existing(req, &r)) != 0)
		return ret;
	if (r.tcm->tcm_parent == 0)
		return netlink_fail(req, -EINVAL, NULL, "Classid cannot be zero");
	if (r.q->handle == 0)
		return netlink_fail(req, -ENOENT, NULL, "Cannot delete qdisc with handle of zero");
	if (r.q != r.device->ingress)
		return graft_default(req, &r);
	qdisc_notify(req, RTM_DELQDISC, 0, &r.dev, r.q);
	r.device->ingress = NULL;
	tc_changed(req->server);
	tc_qdisc_free(r.q);
	return 0;
}

static int
qdisc_put_one(struct netlink_request *req, uint16_t flags, const struct netlink_dev *dev,
	const struct tc_qdisc *q)
{
	struct tcmsg tcm = qdisc_header(dev, q);
	struct netlink_put put;

	if (!netlink_put_begin(req, &put, RTM_NEWQDISC, flags, &tcm, sizeof(tcm)))
		return -EMSGSIZE;
	qdisc_put(&put, dev, q);
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static int
qdisc_get(struct netlink_request *req)
{
	struct qdisc_request r;
	int ret;

	if ((ret = request_parse(req, &r)) != 0 || (ret = find_existing(req, &r)) != 0)
		return ret;
	return qdisc_put_one(req, 0, &r.dev, r.q);
}

/* cursor[0]: the last device that is done; cursor[1]: qdiscs done of the next one. */
static int
qdisc_dump(struct netlink_request *req)
{
	const struct netlink_conf *conf = req->conf;
	const struct nlattr *tb[TCA_MAX + 1];
	struct netlink_dev dev;
	int ret;

	ret = netlink_parse(
		req, sizeof(struct tcmsg), qdisc_policy, RTE_DIM(qdisc_policy), tb, TCA_MAX + 1);
	if (ret != 0)
		return ret;
	tc_dump_check(req);
	while (conf->dev_ops->next(conf->dev_arg, (uint32_t)req->cursor[0], &dev)) {
		struct tc_device *device = tc_device_get(req->server, &dev);
		struct tc_qdisc *q;

		if (device == NULL)
			return netlink_fail(
				req, -ENOMEM, NULL, "No memory for the device's qdiscs");
		while ((q = tc_device_qdisc(device, (unsigned int)req->cursor[1])) != NULL) {
			if (qdisc_put_one(req, NLM_F_MULTI, &dev, q) != 0)
				return 1;
			req->cursor[1]++;
		}
		req->cursor[0] = dev.ifindex;
		req->cursor[1] = 0;
	}
	return 0;
}

static struct netlink_handler qdisc_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWQDISC,
	.header = sizeof(struct tcmsg),
	.doit = qdisc_modify,
};
NETLINK_REGISTER_HANDLER(qdisc_new_handler);

static struct netlink_handler qdisc_del_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_DELQDISC,
	.header = sizeof(struct tcmsg),
	.doit = qdisc_delete,
};
NETLINK_REGISTER_HANDLER(qdisc_del_handler);

static struct netlink_handler qdisc_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETQDISC,
	.header = sizeof(struct tcmsg),
	.doit = qdisc_get,
	.dump = qdisc_dump,
};
NETLINK_REGISTER_HANDLER(qdisc_get_handler);
