/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_SKBEDIT_H
#define CLASSIFIER_SKBEDIT_H

/*
 * Sets what a packet carries beside its bytes: priority, mark, Tx queue. Linux behaviour:
 * net/sched/act_skbedit.c.
 */

#include "action/action.h"

struct skbedit_params {
	struct action_params base;
	uint32_t set; /* SKBEDIT_F_* of <linux/tc_act/tc_skbedit.h> */
	uint32_t priority; /* SKBEDIT_F_PRIORITY */
	uint32_t mark; /* SKBEDIT_F_MARK, the bits of `mask` */
	uint32_t mask;
	uint16_t queue; /* SKBEDIT_F_QUEUE_MAPPING: which the port clamps to what it has */
};

/* What `set` may have: PRIORITY, QUEUE_MAPPING, MARK, MASK (only with MARK), INHERITDSFIELD. */
#define SKBEDIT_SUPPORTED \
	(SKBEDIT_F_PRIORITY | SKBEDIT_F_QUEUE_MAPPING | SKBEDIT_F_MARK | SKBEDIT_F_MASK | \
		SKBEDIT_F_INHERITDSFIELD)

/* TCA_ID_SKBEDIT, kind "skbedit". */
extern const struct action_ops skbedit_action_ops;

/*
 * `like` has set, priority, mark, mask and queue filled in; without SKBEDIT_F_MASK all bits of the
 * mark are set. NULL and rte_errno: EINVAL (set has others, or nothing), ENOMEM.
 */
struct action_params *skbedit_params_create(int32_t verdict, const struct skbedit_params *like);

#endif /* CLASSIFIER_SKBEDIT_H */
