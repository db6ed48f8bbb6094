/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_TC_H
#define NETLINK_TC_H

/*
 * What the traffic control families share: the qdiscs of devices (qdisc.c and its kinds), which
 * hold the blocks that filters (filter.c) stand in, and the lists of actions (action.c) inside
 * filters.
 */

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <rte_common.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "netlink/message.h"

/* The name of a kind fits here: sizeof("clsact") and much longer. */
#define TC_KIND_MAX IFNAMSIZ

struct tc_device;
struct tc_qdisc;
struct tc_shared;

/* A block of filters and where it hangs, as filter messages name it. */
struct tc_block {
	struct classifier_block *block; /* NULL: none */
	struct classifier_hook *hook; /* where packets meet it; NULL: nowhere */
	unsigned int n_hooks; /* that many, one after the other */
	uint32_t ifindex;
	uint32_t parent; /* tcm_parent as the last filter request named it */
	struct tc_shared *shared; /* with other qdiscs, or NULL */
};

#define TC_QDISC_BLOCKS 2
#define TC_QDISC_HANDLE_CLSACT TC_H_MAKE(TC_H_CLSACT, 0)

/* How a kind that queues wants its schedulers: what sched_nolock_change() takes. */
struct tc_queueing {
	unsigned int bands;
	uint8_t priomap[SCHED_NOLOCK_PRIO_MAX];
	uint32_t limit;
};

/*
 * A kind of qdisc: one small file, registered by constructor. Kinds that stand at the ingress side
 * (`ingress`) hold blocks; the others shape the schedulers of the queues they stand on.
 */
struct tc_qdisc_kind {
	const char *name; /* "clsact" */
	bool ingress; /* stands at TC_H_INGRESS */
	bool root_only; /* cannot stand on one queue of mq */
	bool fixed; /* Linux has no change operation for it */
	unsigned int shareable; /* blocks that others may have as well, from the first */
	/*
	 * Checks TCA_OPTIONS (NULL: absent) and fills in what the schedulers are to have; `old` is
	 * what they have, NULL when the qdisc is new. NULL: the kind does not queue and takes no
	 * options.
	 */
	int (*parse)(struct netlink_request *req, const struct netlink_dev *dev,
		const struct nlattr *options, const struct tc_queueing *old,
		struct tc_queueing *queueing);
	/* Makes blocks, which are published with the qdisc. 0 or -errno through netlink_fail().
	 * NULL: nothing to make. */
	int (*create)(
		struct netlink_request *req, const struct netlink_dev *dev, struct tc_qdisc *q);
	/* The block that filters of `parent` stand in; NULL, with the request failed, if there is
	 * none. */
	struct tc_block *(*block)(struct netlink_request *req, struct tc_qdisc *q, uint32_t parent);
	/* How many classes it has, 1 to that many. NULL: not classful. */
	unsigned int (*classes)(const struct tc_qdisc *q);
	/* Puts TCA_OPTIONS. NULL: nothing. */
	void (*put)(struct netlink_put *put, const struct tc_qdisc *q);
	STAILQ_ENTRY(tc_qdisc_kind) next;
};

struct tc_qdisc {
	const struct tc_qdisc_kind *kind;
	struct tc_device *device;
	uint32_t handle; /* 0: came with the device */
	uint32_t parent;
	int queue; /* of mq that it stands on; -1: all queues of the device */
	struct tc_queueing queueing;
	struct tc_block blocks[TC_QDISC_BLOCKS];
	uint32_t shared[TC_QDISC_BLOCKS]; /* numbers asked for, 0: one of its own */
};

void tc_qdisc_kind_register(struct tc_qdisc_kind *kind);
const struct tc_qdisc_kind *tc_qdisc_kind_find(const char *name);

#define TC_REGISTER_QDISC_KIND(k) \
	static void __attribute__((constructor)) tc_register_##k(void) \
	{ \
		tc_qdisc_kind_register(&k); \
	} \
	struct tc_qdisc_kind /* swallow the semicolon */

/* Makes `n` blocks of q for these hooks. 0 or -errno; freeing q frees those that were made. */
int tc_qdisc_blocks_create(struct netlink_request *req, const struct netlink_dev *dev,
	struct tc_qdisc *q, struct classifier_hook *const *hooks, unsigned int n);

/*
 * Dumps of qdiscs, classes and actions are marked as interrupted when any of them changed
 * meanwhile. Every change says so; every part of a dump asks first.
 */
void tc_changed(struct netlink_server *server);
void tc_dump_check(struct netlink_request *req);

/* The name of the device's root qdisc, for IFLA_QDISC. */
const char *tc_root_name(struct netlink_server *server, const struct netlink_dev *dev);
/* The device's queue length changed: qdiscs that follow it do. 0 or -ENOMEM, nothing changed. */
int tc_txqueuelen_changed(struct netlink_request *req, const struct netlink_dev *dev, uint32_t len);

/*
 * The block that a filter or chain message speaks of, in Linux's order of checks. 0 or -errno with
 * the request failed; a `dump` fails softly (-ENOENT without text): there is nothing to show.
 */
int tc_block_find(
	struct netlink_request *req, const struct tcmsg *tcm, bool dump, struct tc_block **block);

/* Tells subscribers of each priority of a chain that is about to go. */
void tc_chain_flush_notify(struct netlink_request *req, const struct tc_block *at, uint32_t chain);

/* TCA_*_FLAGS of a filter: what it may ask for. 0 or -errno with the request failed. */
int tc_filter_flags_parse(struct netlink_request *req, const struct nlattr *attr, uint32_t *flags);

/*
 * A list of actions (TCA_MATCHALL_ACT) -> actions[0..*n), each with a reference of the caller's.
 * After the rule was set, or was not, tc_actions_release() gives them back: what nobody bound is
 * gone.
 */
int tc_actions_parse(struct netlink_request *req, const struct nlattr *list,
	struct action *actions[ACTION_LIST_MAX], uint32_t *n);
void tc_actions_release(struct action *const *actions, uint32_t n);
/*
 * A filter's TCA_CLS_FLAGS_SKIP_HW and its actions' must agree, as Linux has it: an action that
 * stands alone (`tc actions add`) has the filter's or is refused; one that came with a filter may
 * have none, and is given the filter's once that is set. Check: between parse and release, 0 or
 * -EINVAL.
 */
int tc_actions_check_flags(struct netlink_request *req, uint32_t filter_flags,
	struct action *const *actions, uint32_t n);
void tc_actions_give_flags(uint32_t filter_flags, struct action *const *actions, uint32_t n);
/* Puts a list of actions as `type`: TCA_*_ACT of a rule. `ref` is taken off the references shown.
 */
void tc_actions_put(struct netlink_put *put, uint16_t type, struct action *const *actions,
	uint32_t n, uint32_t ref);
/* The same with no more than kind, cookie and statistics of each. */
void tc_actions_put_terse(
	struct netlink_put *put, uint16_t type, struct action *const *actions, uint32_t n);
/* Puts one action's attributes, or no more than kind, index, cookie and statistics. */
void tc_action_put(struct netlink_put *put, struct action *action, uint32_t ref);
void tc_action_put_terse(struct netlink_put *put, const struct action *action, bool with_index);

/* In action_params.hw_stats: TCA_ACT_HW_STATS was given ("disabled" is 0 there). */
#define TC_HW_STATS_ASKED 0x80000000u

/* One action of a request: what it is to be, and what there is under its index. */
struct tc_action_conf {
	const struct netlink_action_kind *kind;
	uint32_t index; /* 0: any */
	struct action *existing; /* or NULL */
	struct action_params *params; /* the caller's, until action_create() or action_replace() */
};

/* The entries of a list, in order: 1, 2, 3 ... */
int tc_action_list_parse(struct netlink_request *req, const struct nlattr *list,
	const struct nlattr *entries[ACTION_LIST_MAX], uint32_t *n);
/* The kind that an entry names, and its attributes. */
int tc_action_kind_parse(struct netlink_request *req, const struct nlattr *entry,
	const struct nlattr *tb[TCA_ACT_MAX + 1], const struct netlink_action_kind **kind);
/* A whole entry. `bind`: in a filter, where goto chain is possible. */
int tc_action_conf_parse(struct netlink_request *req, const struct nlattr *entry, bool bind,
	struct tc_action_conf *conf);
int tc_action_conf_create(
	struct netlink_request *req, struct tc_action_conf *conf, struct action **action);
/* Frees params that nobody took over. */
void tc_action_conf_free(struct tc_action_conf *conf);
/* -EINVAL or -EOPNOTSUPP for a verdict that is none of Linux's, or none of ours. */
int tc_verdict_check(
	struct netlink_request *req, const struct nlattr *attr, int32_t verdict, bool goto_allowed);

/* TCA_STATS2-shaped nest of `type`: basic, packets beyond 32 bits, queue. */
struct tc_counts {
	uint64_t packets, bytes;
	struct gnet_stats_queue queue;
};
void tc_stats_put(struct netlink_put *put, uint16_t type, const struct tc_counts *counts);

#endif /* NETLINK_TC_H */
