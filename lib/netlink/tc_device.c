/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The qdiscs of each device: a root, mq with a leaf for each queue if the device came with several,
 * and at most one qdisc at the ingress side. Kept with the server, made when first asked for.
 */

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/tc.h"
#include "netlink/tc_device.h"

/* Handles given to qdiscs whose request has none: 8001:, 8002:, ... as Linux's. */
#define QDISC_AUTOHANDLE_FIRST TC_H_MAKE(0x80000000U, 0)
#define QDISC_AUTOHANDLE_TRIES 0x8000

struct tc_state {
	uint32_t autohandle;
	uint64_t generation; /* of qdiscs and actions */
	TAILQ_HEAD(, tc_device) devices;
	struct tc_shared_list shared;
};

static STAILQ_HEAD(, tc_qdisc_kind) kinds = STAILQ_HEAD_INITIALIZER(kinds);
static struct netlink_family tc_family;

void
tc_qdisc_kind_register(struct tc_qdisc_kind *kind)
{
	STAILQ_INSERT_TAIL(&kinds, kind, next);
}

const struct tc_qdisc_kind *
tc_qdisc_kind_find(const char *name)
{
	const struct tc_qdisc_kind *kind;

	STAILQ_FOREACH (kind, &kinds, next)
		if (strcmp(kind->name, name) == 0)
			return kind;
	return NULL;
}

/* Devices and the qdiscs they come with. */

struct tc_qdisc *
tc_qdisc_alloc(struct tc_device *device, const struct tc_qdisc_kind *kind, uint32_t handle,
	uint32_t parent, int queue)
{
	struct tc_qdisc *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->kind = kind;
	q->device = device;
	q->handle = handle;
	q->parent = parent;
	q->queue = queue;
	return q;
}

void
tc_qdisc_free(struct tc_qdisc *q)
{
	if (q == NULL)
		return;
	tc_qdisc_blocks_destroy(q);
	free(q);
}

void
tc_leaves_free(struct tc_qdisc **leaves, unsigned int n)
{
	if (leaves == NULL)
		return;
	for (unsigned int i = 0; i < n; i++)
		tc_qdisc_free(leaves[i]);
	free(leaves);
}

static void
queueing_of_sched(const struct sched_nolock *sched, struct tc_queueing *queueing)
{
	const struct sched_nolock_conf *conf = sched_nolock_conf(sched);

	queueing->bands = conf->bands;
	memcpy(queueing->priomap, conf->priomap, sizeof(queueing->priomap));
	queueing->limit = conf->limit;
}

/* A pfifo_fast for each queue, as mq has them; their queueing is what the schedulers have. NULL: no
 * memory. */
struct tc_qdisc **
tc_leaves_create(struct tc_device *device, const struct netlink_dev *dev, uint32_t handle)
{
	const struct tc_qdisc_kind *kind = tc_qdisc_kind_find("pfifo_fast");
	struct tc_qdisc **leaves = calloc(device->n_txq, sizeof(*leaves));

	for (unsigned int i = 0; leaves != NULL && i < device->n_txq; i++) {
		leaves[i] = tc_qdisc_alloc(device, kind, 0, TC_H_MAKE(handle, i + 1), (int)i);
		if (leaves[i] == NULL) {
			tc_leaves_free(leaves, i);
			return NULL;
		}
		queueing_of_sched(dev->sched[i], &leaves[i]->queueing);
	}
	return leaves;
}

static void
device_free(struct tc_device *device)
{
	tc_leaves_free(device->leaves, device->n_txq);
	tc_qdisc_free(device->root);
	tc_qdisc_free(device->ingress);
	free(device);
}

const struct tc_qdisc_kind *
tc_default_root_kind(const struct netlink_dev *dev)
{
	return tc_qdisc_kind_find(dev->n_txq > 1 ? "mq" : "pfifo_fast");
}

static struct tc_device *
device_create(const struct netlink_dev *dev)
{
	struct tc_device *device = calloc(1, sizeof(*device));

	if (device == NULL)
		return NULL;
	device->ifindex = dev->ifindex;
	device->n_txq = dev->n_txq;
	device->root = tc_qdisc_alloc(device, tc_default_root_kind(dev), 0, TC_H_ROOT, -1);
	if (dev->n_txq > 1)
		device->leaves = tc_leaves_create(device, dev, 0);
	if (device->root == NULL || (dev->n_txq > 1 && device->leaves == NULL)) {
		device_free(device);
		return NULL;
	}
	if (dev->n_txq > 0)
		queueing_of_sched(dev->sched[0], &device->root->queueing);
	return device;
}

/* The device if it was asked for before. It leaves the list when it is gone. */
static struct tc_device *
device_known(const struct tc_state *state, uint32_t ifindex)
{
	struct tc_device *device;

	TAILQ_FOREACH (device, &state->devices, next)
		if (device->ifindex == ifindex)
			break;
	return device;
}

/* What is kept of a device; made when it is first asked for. NULL: no memory. */
struct tc_device *
tc_device_get(struct netlink_server *server, const struct netlink_dev *dev)
{
	struct tc_state *state = netlink_family_state(server, &tc_family);
	struct tc_device *device;

	if ((device = device_known(state, dev->ifindex)) != NULL)
		return device;
	if ((device = device_create(dev)) != NULL)
		TAILQ_INSERT_TAIL(&state->devices, device, next);
	return device;
}

const char *
tc_root_name(struct netlink_server *server, const struct netlink_dev *dev)
{
	struct tc_device *device = tc_device_get(server, dev);

	return device != NULL ? device->root->kind->name : tc_default_root_kind(dev)->name;
}

/* The nth qdisc of a device in the order of dumps, or NULL. */
struct tc_qdisc *
tc_device_qdisc(const struct tc_device *device, unsigned int nth)
{
	unsigned int n_leaves = device->leaves != NULL ? device->n_txq : 0;

	if (nth == 0)
		return device->root;
	if (nth <= n_leaves)
		return device->leaves[n_leaves - nth];
	return nth == n_leaves + 1 ? device->ingress : NULL;
}

struct tc_qdisc *
tc_qdisc_lookup(const struct tc_device *device, uint32_t handle)
{
	unsigned int n_leaves = device->leaves != NULL ? device->n_txq : 0;

	for (unsigned int i = 0; handle != 0 && i <= n_leaves + 1; i++) {
		struct tc_qdisc *q = tc_device_qdisc(device, i);

		if (q != NULL && q->handle == handle)
			return q;
	}
	return NULL;
}

/* The schedulers that q shapes: [first, end). */
void
tc_qdisc_queues(const struct tc_qdisc *q, unsigned int *first, unsigned int *end)
{
	*first = q->queue < 0 ? 0 : (unsigned int)q->queue;
	*end = q->kind->ingress ? *first : q->queue < 0 ? q->device->n_txq : *first + 1;
}

/* Gives schedulers [first, end) of the device this queueing: all of them, or none and -errno. */
int
tc_queueing_apply(struct netlink_request *req, const struct netlink_dev *dev, unsigned int first,
	unsigned int end, const struct tc_queueing *queueing)
{
	struct tc_queueing *old = calloc(end - first + 1, sizeof(*old));
	unsigned int i;
	int ret = old != NULL ? 0 : -ENOMEM;

	for (i = first; ret == 0 && i < end; i++) {
		queueing_of_sched(dev->sched[i], &old[i - first]);
		ret = sched_nolock_change(
			dev->sched[i], queueing->bands, queueing->priomap, queueing->limit);
		if (ret != 0)
			break;
	}
	/* back to what it was: memory of that size was just given back */
	for (; ret != 0 && old != NULL && i-- > first;)
		(void)sched_nolock_change(dev->sched[i], old[i - first].bands,
			old[i - first].priomap, old[i - first].limit);
	free(old);
	if (ret != 0)
		return netlink_fail(req, ret, NULL,
			"%s: the scheduler refused %u bands of %u packets", dev->name,
			queueing->bands, queueing->limit);
	return 0;
}

int
tc_txqueuelen_changed(struct netlink_request *req, const struct netlink_dev *dev, uint32_t len)
{
	struct tc_device *device = tc_device_get(req->server, dev);
	struct tc_queueing queueing;
	unsigned int n_leaves;
	int ret;

	if (device == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for the device's qdiscs");
	n_leaves = device->leaves != NULL ? device->n_txq : 0;
	for (unsigned int i = 0; i <= n_leaves; i++) {
		struct tc_qdisc *q = tc_device_qdisc(device, i);
		unsigned int first, end;

		if (strcmp(q->kind->name, "pfifo_fast") != 0)
			continue;
		queueing = q->queueing;
		queueing.limit = len;
		tc_qdisc_queues(q, &first, &end);
		if ((ret = tc_queueing_apply(req, dev, first, end, &queueing)) != 0)
			return ret;
		q->queueing = queueing;
	}
	return 0;
}

uint32_t
tc_autohandle(struct netlink_server *server, const struct tc_device *device)
{
	struct tc_state *state = netlink_family_state(server, &tc_family);

	for (unsigned int i = 0; i < QDISC_AUTOHANDLE_TRIES; i++) {
		state->autohandle += TC_H_MAKE(0x10000U, 0);
		if (state->autohandle == TC_H_MAKE(TC_H_ROOT, 0))
			state->autohandle = QDISC_AUTOHANDLE_FIRST;
		if (tc_qdisc_lookup(device, state->autohandle) == NULL)
			return state->autohandle;
	}
	return 0;
}

struct tc_shared_list *
tc_shared_list(struct netlink_server *server)
{
	struct tc_state *state = netlink_family_state(server, &tc_family);

	return &state->shared;
}

void
tc_changed(struct netlink_server *server)
{
	struct tc_state *state = netlink_family_state(server, &tc_family);

	state->generation++;
}

void
tc_dump_check(struct netlink_request *req)
{
	const struct tc_state *state = netlink_family_state(req->server, &tc_family);

	/* 0 is "noted nothing yet" */
	if (req->generation == 0)
		req->generation = state->generation;
	else if (req->generation != state->generation)
		req->interrupted = true;
}

static int
tc_create(struct netlink_server *server, void **out)
{
	struct tc_state *state = calloc(1, sizeof(*state));

	(void)server;
	if (state == NULL)
		return -ENOMEM;
	state->autohandle = QDISC_AUTOHANDLE_FIRST;
	state->generation = 1;
	TAILQ_INIT(&state->devices);
	LIST_INIT(&state->shared);
	*out = state;
	return 0;
}

static void
tc_destroy(struct netlink_server *server, void *arg)
{
	struct tc_state *state = arg;
	struct tc_device *device;

	(void)server;
	while ((device = TAILQ_FIRST(&state->devices)) != NULL) {
		TAILQ_REMOVE(&state->devices, device, next);
		device_free(device);
	}
	free(state);
}

static void
tc_dev_gone(struct netlink_server *server, void *arg, uint32_t ifindex)
{
	struct tc_state *state = arg;
	struct tc_device *device = device_known(state, ifindex);

	(void)server;
	if (device == NULL)
		return;
	TAILQ_REMOVE(&state->devices, device, next);
	device_free(device);
	state->generation++;
}

static struct netlink_family tc_family = {
	.create = tc_create,
	.destroy = tc_destroy,
	.dev_gone = tc_dev_gone,
};
NETLINK_REGISTER_FAMILY(tc_family);
