/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/tc_act/tc_vlan.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "classifier/edit.h"
#include "classifier/vlan.h"

#define MACS_LEN 12
#define TAG_LEN 4
#define PRIORITY_SHIFT 13
#define PRIORITY_MASK 0xe000
#define VID_MASK 0x0fff

static bool
is_tag(const uint8_t *type)
{
	uint16_t t = (uint16_t)(type[0] << 8 | type[1]);

	return t == ETH_P_8021Q || t == ETH_P_8021AD;
}

static bool
has_tag(const struct rte_mbuf *m)
{
	uint8_t buf[2];
	const uint8_t *p = packet_read(m, MACS_LEN, sizeof(buf), buf);

	/* A tag that is cut is none. */
	return p != NULL && is_tag(p) && m->pkt_len >= MACS_LEN + TAG_LEN + 2;
}

static void
write_tag(uint8_t *p, rte_be16_t protocol, uint16_t tci)
{
	memcpy(p, &protocol, 2);
	p[2] = (uint8_t)(tci >> 8);
	p[3] = (uint8_t)tci;
}

static bool
push(struct rte_mbuf **m, const struct vlan_params *vlan)
{
	uint8_t *p;

	if (!edit_own(m, MACS_LEN, TAG_LEN) ||
		(p = (uint8_t *)rte_pktmbuf_prepend(*m, TAG_LEN)) == NULL)
		return false;
	memmove(p, p + TAG_LEN, MACS_LEN);
	write_tag(p + MACS_LEN, vlan->protocol,
		(uint16_t)(vlan->vid | vlan->priority << PRIORITY_SHIFT));
	return true;
}

static bool
pop(struct rte_mbuf **m)
{
	uint8_t *p;

	if (!has_tag(*m))
		return true;
	if (!edit_own(m, MACS_LEN + TAG_LEN, 0))
		return false;
	p = rte_pktmbuf_mtod(*m, uint8_t *);
	memmove(p + TAG_LEN, p, MACS_LEN);
	rte_pktmbuf_adj(*m, TAG_LEN);
	return true;
}

static bool
modify(struct rte_mbuf **m, const struct vlan_params *vlan)
{
	uint16_t tci;
	uint8_t *p;

	if (!has_tag(*m))
		return true;
	if (!edit_own(m, MACS_LEN + TAG_LEN, 0))
		return false;
	p = rte_pktmbuf_mtod(*m, uint8_t *) + MACS_LEN;
	tci = (uint16_t)((p[2] << 8 | p[3]) & ~VID_MASK) | vlan->vid;
	if (vlan->priority_given)
		tci = (uint16_t)((tci & ~PRIORITY_MASK) | vlan->priority << PRIORITY_SHIFT);
	write_tag(p, vlan->protocol, tci);
	return true;
}

static bool
change(struct rte_mbuf **m, const struct vlan_params *vlan)
{
	switch (vlan->v_action) {
	case TCA_VLAN_ACT_PUSH:
		return push(m, vlan);
	case TCA_VLAN_ACT_POP:
		return pop(m);
	default:
		return modify(m, vlan);
	}
}

static int32_t
vlan_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct vlan_params *vlan = (const struct vlan_params *)params;
	uint64_t failed = 0;
	unsigned int i;

	(void)action;
	(void)overlimits;
	packet_mask_for_each (i, mask) {
		if (!change(&burst->pkts[i], vlan))
			failed |= UINT64_C(1) << i;
		edit_view(burst->vector, i);
	}
	*drops += (uint64_t)__builtin_popcountll(params->verdict == TC_ACT_SHOT ? mask : failed);
	if (failed == 0)
		return params->verdict;
	packet_mask_for_each (i, mask)
		burst->verdict[i] = (failed >> i & 1) != 0 ? TC_ACT_SHOT : params->verdict;
	return ACTION_MIXED;
}

const struct action_ops vlan_action_ops = {
	.kind = "vlan",
	.id = TCA_ID_VLAN,
	.rewrites = true,
	.run = vlan_run,
	.params_size = sizeof(struct vlan_params),
};

struct action_params *
vlan_params_create(int32_t verdict, const struct vlan_params *like)
{
	struct vlan_params *vlan;
	bool tags = like->protocol == rte_cpu_to_be_16(ETH_P_8021Q) ||
		like->protocol == rte_cpu_to_be_16(ETH_P_8021AD);

	if (like->v_action < TCA_VLAN_ACT_POP || like->v_action > TCA_VLAN_ACT_MODIFY ||
		(like->v_action != TCA_VLAN_ACT_POP && !tags) || like->vid > VID_MASK ||
		like->priority > 7) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((vlan = calloc(1, sizeof(*vlan))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	*vlan = *like;
	vlan->base = (struct action_params){ .verdict = verdict };
	return &vlan->base;
}
