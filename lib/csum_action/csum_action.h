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
#define CSUM_ACTION_FLAGS \
	(TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_ICMP | TCA_CSUM_UPDATE_FLAG_IGMP | \
		TCA_CSUM_UPDATE_FLAG_TCP | TCA_CSUM_UPDATE_FLAG_UDP | \
		TCA_CSUM_UPDATE_FLAG_UDPLITE | TCA_CSUM_UPDATE_FLAG_SCTP)

/*
 * What became of a packet: exactly one of these for each packet an action saw, so that they add up
 * to its packet count (those a "drop" action sees are not looked at and not counted here). The
 * reasons a view can have stopped for keep the view's names. "Untouched" is meant for layer 4: an
 * IPv4 header that fits is redone if it was asked for, except where PACKET_F_CUT or a mark forbids
 * it.
 */
#define CSUM_ACTION_REASON_LIST(X) \
	X(COMPUTED, "computed", "every sum asked for is right") \
	X(LEFT, "left", "a sum was left to the NIC") \
	X(UNASKED, "unasked", "no sum of this packet was asked for") \
	X(UDP_NONE, "udp_none", "IPv4 UDP without a checksum stays without") \
	X(MARKED, "marked", "marked for segmentation or tunnel offload: untouched") \
	X(CUT_L3, "cut_l3", "frame ends before its IP packet does: untouched") \
	X(MALFORMED_L4, "malformed_l4", "layer 4 header or length does not fit: untouched") \
	X(NO_COPY, "no_copy", "shared or foreign memory and no mbuf for a copy: untouched") \
	X(NOT_IP, "not_ip", "not IPv4 or IPv6") \
	X(CUT_L2, "cut_l2", "frame ends inside Ethernet or a VLAN tag: untouched") \
	X(VLAN_DEPTH, "vlan_depth", "more than three VLAN tags: untouched") \
	X(MALFORMED_L3, "malformed_l3", \
		"IP version, header or total length does not fit: untouched") \
	X(FRAGMENT, "fragment", "a fragment: layer 4 untouched") \
	X(MALFORMED_EXT, "malformed_ext", \
		"extension header or option does not fit or lies: untouched") \
	X(EXT_LIMIT, "ext_limit", "extension header chain too long: untouched") \
	X(OPAQUE, "opaque", "AH, ESP, no next header or unknown routing header: untouched") \
	X(CUT_L4, "cut_l4", "layer 3 ends where layer 4 should begin: untouched")

enum csum_action_reason {
#define X(id, name, text) CSUM_ACTION_##id,
	CSUM_ACTION_REASON_LIST(X)
#undef X
	CSUM_ACTION_REASON_MAX
};

/* Name of its counter and one-line text; "?" beyond the list. */
const char *csum_action_reason_name(unsigned int reason);
const char *csum_action_reason_text(unsigned int reason);

/*
 * What actions share: reason counters of workers 0 .. n_workers - 1, each on cache lines of its
 * own, and which sums may be left to NICs. Optional: an action without it computes all in software
 * and does not count reasons.
 */
struct csum_action;

/* NULL and rte_errno: EINVAL (no worker), ENOMEM. */
struct csum_action *csum_action_create(unsigned int n_workers);
/* After a grace period of the last action that was attached. NULL is accepted. */
void csum_action_destroy(struct csum_action *csum);

/* The sum over workers of a reason's counter, in packets. Any thread; never runs backwards. */
uint64_t csum_action_count(const struct csum_action *csum, unsigned int reason);

struct csum_impl;

/* The snapshot: flags and verdict together (rule A28), and the sum loops for this CPU. */
struct csum_action_params {
	struct action_params base;
	uint32_t update_flags;
	const struct csum_impl *impl;
	struct csum_action *csum; /* counts and offload; NULL: none */
};

/* The kind: "csum", TCA_ID_CSUM. */
extern const struct action_ops csum_action_ops;

/*
 * Makes an unpublished snapshot, attached to nothing. NULL and rte_errno: EINVAL (flags beyond
 * CSUM_ACTION_FLAGS), ENOMEM.
 */
struct action_params *csum_action_params_create(uint32_t update_flags, int32_t verdict);

/* Has packets of this snapshot counted in `csum`, and their sums left to NICs as it allows. Before
 * it is published. */
void csum_action_params_attach(struct action_params *params, struct csum_action *csum);

#endif /* CSUM_ACTION_CSUM_ACTION_H */
