/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Blocks of filters: those of one qdisc, and those that several qdiscs share by a number
 * (ingress_block, egress_block), which filters then name as their place. A shared block is there as
 * long as a qdisc has it.
 */

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdlib.h>

#include "netlink/tc.h"
#include "netlink/tc_device.h"

struct tc_shared {
	LIST_ENTRY(tc_shared) next;
	struct tc_block at; /* as messages name it: no device, and its number */
	unsigned int users; /* each holds a reference of the block's */
};

static struct tc_shared *
shared_find(struct netlink_server *server, uint32_t index)
{
	struct tc_shared *shared;

	LIST_FOREACH (shared, tc_shared_list(server), next)
		if (shared->at.parent == index)
			return shared;
	return NULL;
}

static int
shared_create(struct netlink_request *req, uint32_t index, struct tc_shared **out)
{
	struct tc_shared *shared = calloc(1, sizeof(*shared));
	int ret;

	if (shared == NULL)
		return -ENOMEM;
	if ((ret = classifier_block_create(req->conf->classifier, &shared->at.block)) != 0) {
		free(shared);
		return ret;
	}
	shared->at.ifindex = TCM_IFINDEX_MAGIC_BLOCK;
	shared->at.parent = index;
	shared->at.shared = shared;
	LIST_INSERT_HEAD(tc_shared_list(req->server), shared, next);
	*out = shared;
	return 0;
}

/* One more user of the block with that number; the first makes it. */
static int
shared_get(struct netlink_request *req, uint32_t index, struct tc_block *b)
{
	struct tc_shared *shared = shared_find(req->server, index);
	int ret;

	if (shared != NULL)
		classifier_block_get(shared->at.block);
	else if ((ret = shared_create(req, index, &shared)) != 0)
		return ret;
	shared->users++;
	b->block = shared->at.block;
	b->shared = shared;
	return 0;
}

static void
shared_put(struct tc_shared *shared)
{
	if (--shared->users != 0)
		return;
	LIST_REMOVE(shared, next);
	free(shared);
}

int
tc_qdisc_blocks_create(struct netlink_request *req, const struct netlink_dev *dev,
	struct tc_qdisc *q, struct classifier_hook *const *hooks, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct tc_block *b = &q->blocks[i];
		int ret = q->shared[i] != 0
			? shared_get(req, q->shared[i], b)
			: classifier_block_create(req->conf->classifier, &b->block);

		if (ret != 0) {
			b->block = NULL;
			return netlink_fail(req, ret, NULL, "No memory for a block of filters");
		}
		b->hook = hooks[i];
		b->n_hooks = 1;
		b->ifindex = dev->ifindex;
		b->parent = q->handle;
	}
	return 0;
}

void
tc_qdisc_publish(const struct tc_qdisc *q, struct tc_qdisc *old)
{
	for (unsigned int i = 0; i < TC_QDISC_BLOCKS; i++) {
		const struct tc_block *b = &q->blocks[i];

		if (b->block == NULL)
			continue;
		for (unsigned int h = 0; h < b->n_hooks; h++)
			classifier_hook_set(&b->hook[h], b->block);
		for (unsigned int k = 0; old != NULL && k < TC_QDISC_BLOCKS; k++)
			if (old->blocks[k].hook == b->hook && old->blocks[k].n_hooks == b->n_hooks)
				old->blocks[k].hook = NULL;
	}
}

void
tc_qdisc_blocks_destroy(struct tc_qdisc *q)
{
	for (unsigned int i = 0; i < TC_QDISC_BLOCKS; i++) {
		struct tc_block *b = &q->blocks[i];

		if (b->block == NULL)
			continue;
		/* it may never have been published */
		for (unsigned int h = 0; b->hook != NULL && h < b->n_hooks; h++)
			if (classifier_hook_block(&b->hook[h]) == b->block)
				classifier_hook_set(&b->hook[h], NULL);
		classifier_block_put(b->block);
		if (b->shared != NULL)
			shared_put(b->shared);
		b->block = NULL;
	}
}

uint32_t
tc_block_shared_index(const struct tc_block *block)
{
	return block->block != NULL && block->shared != NULL ? block->shared->at.parent : 0;
}

static int
find_shared(struct netlink_request *req, uint32_t index, bool dump, struct tc_block **block)
{
	struct tc_shared *shared = shared_find(req->server, index);

	if (shared == NULL)
		return dump
			? -ENOENT
			: netlink_fail(req, -EINVAL, NULL, "Block of given index was not found");
	*block = &shared->at;
	return 0;
}

/* Where filters of a tcmsg stand. */
int
tc_block_find(
	struct netlink_request *req, const struct tcmsg *tcm, bool dump, struct tc_block **block)
{
	uint32_t parent = tcm->tcm_parent;
	struct tc_device *device;
	struct netlink_dev dev;
	struct tc_qdisc *q;
	int ret;

	if ((uint32_t)tcm->tcm_ifindex == TCM_IFINDEX_MAGIC_BLOCK)
		return find_shared(req, tcm->tcm_block_index, dump, block);
	if ((ret = netlink_dev_by_index(req, (uint32_t)tcm->tcm_ifindex, &dev)) != 0)
		return ret;
	if ((device = tc_device_get(req->server, &dev)) == NULL)
		return netlink_fail(req, -ENOMEM, NULL, "No memory for the device's qdiscs");
	q = parent == 0 ? device->root : tc_qdisc_lookup(device, TC_H_MAJ(parent));
	if (q == NULL)
		return dump ? -ENOENT
			    : netlink_fail(req, -EINVAL, NULL, "Parent Qdisc doesn't exists");
	if (q->kind->block == NULL)
		return dump ? -ENOENT : netlink_fail(req, -EINVAL, NULL, "Qdisc not classful");
	if (parent == 0)
		parent = q->handle;
	*block = q->kind->block(req, q, parent);
	if (*block == NULL)
		return -EOPNOTSUPP;
	if ((*block)->shared != NULL) {
		if (!dump)
			return netlink_fail(req, -EOPNOTSUPP, NULL,
				"This filter block is shared. Please use the block index to "
				"manipulate the filters");
		*block = &(*block)->shared->at;
	} else if (!dump) {
		(*block)->parent = parent;
	}
	return 0;
}
