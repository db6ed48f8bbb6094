/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_VLAN_H
#define CLASSIFIER_VLAN_H

/*
 * Pops, pushes and changes VLAN tags. Linux behaviour: net/sched/act_vlan.c. A packet without a tag
 * is left alone by pop and modify. Where a shared packet cannot be copied, it is dropped and
 * counted.
 */

#include <rte_byteorder.h>

#include "action/action.h"

struct vlan_params {
	struct action_params base;
	int32_t v_action; /* TCA_VLAN_ACT_POP, _PUSH, _MODIFY */
	uint16_t vid; /* push, modify: 0 .. 4095 */
	rte_be16_t protocol; /* of the tag: ETH_P_8021Q or ETH_P_8021AD */
	uint8_t priority; /* 0 .. 7 */
	bool priority_given; /* modify without it keeps the packet's */
};

/* TCA_ID_VLAN, kind "vlan". */
extern const struct action_ops vlan_action_ops;

/*
 * `like` has all but base filled in. NULL and rte_errno: EINVAL (another action, protocol, or
 * numbers out of range), ENOMEM.
 */
struct action_params *vlan_params_create(int32_t verdict, const struct vlan_params *like);

#endif /* CLASSIFIER_VLAN_H */
