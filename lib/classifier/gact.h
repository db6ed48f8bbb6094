/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_GACT_H
#define CLASSIFIER_GACT_H

/*
 * The generic action: nothing but a verdict, perhaps another one for some packets. Linux
 * behaviour: net/sched/act_gact.c.
 */

#include "action/action.h"

/* What chooses the other verdict: PGACT_NONE, PGACT_NETRAND, PGACT_DETERM of
 * <linux/tc_act/tc_gact.h>. */
struct gact_params {
	struct action_params base;
	uint16_t random; /* PGACT_* */
	uint16_t value; /* one packet in `value`: by chance (netrand) or by count (determ); 0: none
			 */
	int32_t other; /* the verdict of those */
};

/* TCA_ID_GACT, kind "gact". */
extern const struct action_ops gact_action_ops;

/* A snapshot that gives every packet `verdict`. NULL and rte_errno: ENOMEM. */
struct action_params *gact_params_create(int32_t verdict);

/*
 * The same with `random` (PGACT_*), `value` and `other` as struct tc_gact_p has them. NULL and
 * rte_errno: EINVAL (an unknown kind of randomness), ENOMEM. determ counts each worker's own
 * packets.
 */
struct action_params *
gact_params_create_random(int32_t verdict, uint16_t random, uint16_t value, int32_t other);

#endif /* CLASSIFIER_GACT_H */
