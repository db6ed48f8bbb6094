/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CSUM_ACTION_CSUM_ACTION_H
#define CSUM_ACTION_CSUM_ACTION_H

/*
 * The checksum action: recomputes the checksums that its flags name. Linux behaviour:
 * net/sched/act_csum.c, with the rules of RFC 791, 768, 9293, 792, 4443, 3376, 3828, 9260 where
 * Linux takes a shortcut. A packet whose lengths do not fit is left untouched and counted.
 */

#include <linux/tc_act/tc_csum.h>
#include <stdint.h>

#include "action/action.h"
#include "packet/packet.h"

/* TCA_CSUM_UPDATE_FLAG_* that this build recomputes; others are refused by its users. */
#define CSUM_ACTION_FLAGS                                                                          \
	(TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_ICMP | TCA_CSUM_UPDATE_FLAG_IGMP |     \
		TCA_CSUM_UPDATE_FLAG_TCP | TCA_CSUM_UPDATE_FLAG_UDP |                              \
		TCA_CSUM_UPDATE_FLAG_UDPLITE | TCA_CSUM_UPDATE_FLAG_SCTP)

/* The snapshot: flags and verdict together (rule A28). */
struct csum_action_params {
	struct action_params base;
	uint32_t update_flags;
};

/* The kind: "csum", TCA_ID_CSUM. */
extern const struct action_ops csum_action_ops;

/* Makes an unpublished snapshot. NULL and rte_errno: EINVAL (flags beyond CSUM_ACTION_FLAGS), ENOMEM. */
struct action_params *csum_action_params_create(uint32_t update_flags, int32_t verdict);

#endif /* CSUM_ACTION_CSUM_ACTION_H */
