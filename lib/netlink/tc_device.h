/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_TC_DEVICE_H
#define NETLINK_TC_DEVICE_H

/* The qdiscs of a device (tc_device.c), for the messages that show and change them. */

#include <stdint.h>
#include <sys/queue.h>

#include "netlink/tc.h"

struct tc_device {
	uint32_t ifindex;
	uint16_t n_txq;
	struct tc_qdisc *ingress; /* clsact or ingress, or NULL */
	struct tc_qdisc *root;
	struct tc_qdisc **leaves; /* [n_txq] when root is mq, else NULL */
	TAILQ_ENTRY(tc_device) next;
};

/* What is kept of a device; made when it is first asked for. NULL: no memory. */
struct tc_device *tc_device_get(struct netlink_server *server, const struct netlink_dev *dev);
/* The nth qdisc of a device in the order of dumps, or NULL where there is none; 0 is the root. */
struct tc_qdisc *tc_device_qdisc(const struct tc_device *device, unsigned int nth);
/* The one with that handle, or NULL. Handle 0 is that of none. */
struct tc_qdisc *tc_qdisc_lookup(const struct tc_device *device, uint32_t handle);
/* A handle that is free, or 0. */
uint32_t tc_autohandle(struct netlink_server *server, const struct tc_device *device);
/* What a device comes with: mq or pfifo_fast. */
const struct tc_qdisc_kind *tc_default_root_kind(const struct netlink_dev *dev);

/* `queue` -1: all queues. NULL: no memory. Freeing takes its blocks out of their hooks. */
struct tc_qdisc *tc_qdisc_alloc(struct tc_device *device, const struct tc_qdisc_kind *kind,
	uint32_t handle, uint32_t parent, int queue);
void tc_qdisc_free(struct tc_qdisc *q);

/* tc_block.c */
LIST_HEAD(tc_shared_list, tc_shared);
struct tc_shared_list *tc_shared_list(struct netlink_server *server);
/* Puts its blocks into their hooks, which are no longer those of `old` (or NULL) then. */
void tc_qdisc_publish(const struct tc_qdisc *q, struct tc_qdisc *old);
/* Takes them out of hooks that are still q's, and gives them back. */
void tc_qdisc_blocks_destroy(struct tc_qdisc *q);
/* The number by which qdiscs share the block, or 0. */
uint32_t tc_block_shared_index(const struct tc_block *block);
/* A pfifo_fast for each queue, as mq has them; their queueing is what the schedulers have. */
struct tc_qdisc **
tc_leaves_create(struct tc_device *device, const struct netlink_dev *dev, uint32_t handle);
void tc_leaves_free(struct tc_qdisc **leaves, unsigned int n);

/* The schedulers that q shapes: [first, end). */
void tc_qdisc_queues(const struct tc_qdisc *q, unsigned int *first, unsigned int *end);
/* Sums of the schedulers [first, end) of a device, as Linux counts: sent, waiting, dropped. */
void tc_queues_counts(const struct netlink_dev *dev, unsigned int first, unsigned int end,
	struct tc_counts *counts);
/* Puts TCA_STATS2 and, for old programs, TCA_STATS. */
void tc_queues_put_stats(struct netlink_put *put, const struct tc_counts *counts);

/* Gives schedulers [first, end) of the device this queueing: all of them, or none and -errno. */
int tc_queueing_apply(struct netlink_request *req, const struct netlink_dev *dev,
	unsigned int first, unsigned int end, const struct tc_queueing *queueing);

#endif /* NETLINK_TC_DEVICE_H */
