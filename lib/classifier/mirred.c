/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <linux/tc_act/tc_mirred.h>
#include <stdlib.h>

#include <rte_errno.h>

#include "classifier/mirred.h"
#include "packet/packet.h"

static bool
into_ingress(const struct mirred_params *mirred)
{
	return mirred->eaction == TCA_INGRESS_REDIR || mirred->eaction == TCA_INGRESS_MIRROR;
}

/* A redirect after which nobody here sees the packet again needs no copy. */
static bool
takes_packet(const struct mirred_params *mirred)
{
	int32_t verdict = mirred->base.verdict;

	return (mirred->eaction == TCA_EGRESS_REDIR || mirred->eaction == TCA_INGRESS_REDIR) &&
		(verdict == TC_ACT_STOLEN || verdict == TC_ACT_QUEUED || verdict == TC_ACT_TRAP);
}

static int32_t
mirred_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct mirred_params *mirred = (const struct mirred_params *)params;
	bool ingress = into_ingress(mirred);
	unsigned int i;

	(void)action;
	(void)drops;
	(void)overlimits;
	if (!takes_packet(mirred)) {
		burst->mirror(burst->mirror_arg, burst->worker, mirred->ifindex, ingress,
			burst->pkts, mask);
		return params->verdict;
	}
	packet_mask_for_each (i, mask)
		burst->target[i] = mirred->ifindex | (ingress ? MIRRED_TARGET_INGRESS : 0);
	return TC_ACT_REDIRECT;
}

static bool
mirred_may_drop(const struct action_params *params)
{
	(void)params;
	return false;
}

const struct action_ops mirred_action_ops = {
	.kind = "mirred",
	.id = TCA_ID_MIRRED,
	.run = mirred_run,
	.may_drop = mirred_may_drop,
	.params_size = sizeof(struct mirred_params),
};

struct action_params *
mirred_params_create(int32_t verdict, int32_t eaction, uint32_t ifindex)
{
	struct mirred_params *mirred;

	if (eaction < TCA_EGRESS_REDIR || eaction > TCA_INGRESS_MIRROR || ifindex == 0 ||
		(ifindex & MIRRED_TARGET_INGRESS) != 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((mirred = calloc(1, sizeof(*mirred))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	mirred->base.verdict = verdict;
	mirred->eaction = eaction;
	mirred->ifindex = ifindex;
	return &mirred->base;
}
