/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_MIRRED_H
#define CLASSIFIER_MIRRED_H

/*
 * Mirror and redirect: sends packets, or copies of them, out of or into another port. Linux
 * behaviour: net/sched/act_mirred.c.
 *
 * A redirect whose verdict ends the packet's way here (stolen, as tc sends it, queued or trap)
 * gives TC_ACT_REDIRECT with burst->target[]: no copy. With any other verdict a copy is redirected
 * and the packet goes on, as in Linux.
 */

#include "action/action.h"

struct mirred_params {
	struct action_params base;
	uint32_t ifindex;
	int32_t eaction; /* TCA_EGRESS_REDIR, TCA_EGRESS_MIRROR, TCA_INGRESS_REDIR,
			    TCA_INGRESS_MIRROR */
};

/* Set in burst->target[i] and in classifier_result.target[i]: into the port's ingress. */
#define MIRRED_TARGET_INGRESS (UINT32_C(1) << 31)

/* TCA_ID_MIRRED, kind "mirred". */
extern const struct action_ops mirred_action_ops;

/*
 * NULL and rte_errno: EINVAL (eaction not one of the four, ifindex 0 or beyond 31 bits), ENOMEM.
 * Whether there is such a port is the caller's to check, and to keep true.
 */
struct action_params *mirred_params_create(int32_t verdict, int32_t eaction, uint32_t ifindex);

#endif /* CLASSIFIER_MIRRED_H */
