/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <linux/tc_act/tc_skbedit.h>
#include <stdlib.h>

#include <rte_errno.h>

#include "classifier/skbedit.h"
#include "packet/packet.h"

/* The DSCP as a priority, of IP packets only. */
static void
inherit_dsfield(const struct rte_mbuf *m, const struct packet_view *view, struct packet_meta *meta)
{
	const uint8_t *p;
	uint8_t buf[2];

	if ((view->flags & PACKET_F_L3) == 0 ||
		(p = packet_read(m, view->l3_off, sizeof(buf), buf)) == NULL)
		return;
	meta->priority = view->l3 == PACKET_L3_IPV4
		? p[1] >> 2
		: (uint32_t)(uint8_t)(p[0] << 4 | p[1] >> 4) >> 2;
}

static int32_t
skbedit_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct skbedit_params *edit = (const struct skbedit_params *)params;
	unsigned int i;

	(void)action;
	(void)overlimits;
	packet_mask_for_each (i, mask) {
		struct packet_meta *meta = packet_meta(burst->pkts[i], burst->meta_offset);

		if ((edit->set & SKBEDIT_F_PRIORITY) != 0)
			meta->priority = edit->priority;
		if ((edit->set & SKBEDIT_F_INHERITDSFIELD) != 0)
			inherit_dsfield(burst->pkts[i], &burst->vector->views[i], meta);
		if ((edit->set & SKBEDIT_F_QUEUE_MAPPING) != 0)
			meta->queue = (uint16_t)(edit->queue + 1);
		if ((edit->set & SKBEDIT_F_MARK) != 0)
			meta->mark = (meta->mark & ~edit->mask) | (edit->mark & edit->mask);
	}
	if (params->verdict == TC_ACT_SHOT)
		*drops += (uint64_t)__builtin_popcountll(mask);
	return params->verdict;
}

static bool
skbedit_may_drop(const struct action_params *params)
{
	return params->verdict == TC_ACT_SHOT;
}

const struct action_ops skbedit_action_ops = {
	.kind = "skbedit",
	.id = TCA_ID_SKBEDIT,
	.needs_views = true,
	.run = skbedit_run,
	.may_drop = skbedit_may_drop,
	.params_size = sizeof(struct skbedit_params),
};

struct action_params *
skbedit_params_create(int32_t verdict, const struct skbedit_params *like)
{
	struct skbedit_params *edit;

	if ((like->set & ~(uint32_t)SKBEDIT_SUPPORTED) != 0 || like->set == 0 ||
		((like->set & SKBEDIT_F_MASK) != 0 && (like->set & SKBEDIT_F_MARK) == 0)) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((edit = calloc(1, sizeof(*edit))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	edit->set = like->set;
	edit->priority = like->priority;
	edit->mark = like->mark;
	edit->mask = (like->set & SKBEDIT_F_MASK) != 0 ? like->mask : UINT32_MAX;
	edit->queue = like->queue;
	edit->base.verdict = verdict;
	return &edit->base;
}
