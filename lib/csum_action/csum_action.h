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

#include <assert.h>
#include <linux/tc_act/tc_csum.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "action/action.h"
#include "packet/packet.h"

/* TCA_CSUM_UPDATE_FLAG_* that this build recomputes; others are refused by its users. */
#define CSUM_ACTION_FLAGS \
	(TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_ICMP | TCA_CSUM_UPDATE_FLAG_IGMP | \
		TCA_CSUM_UPDATE_FLAG_TCP | TCA_CSUM_UPDATE_FLAG_UDP | \
		TCA_CSUM_UPDATE_FLAG_UDPLITE | TCA_CSUM_UPDATE_FLAG_SCTP)

/*
 * What became of a packet: exactly one of these down to CUT_L4 for each packet an action saw, so
 * that they add up to its packet count (packets that a "drop" action sees are neither looked at nor
 * counted here). The reasons a view can have stopped for keep the view's names. "Untouched" is
 * meant for layer 4: an IPv4 header that fits is redone if it was asked for, except in a cut or
 * marked packet. The last two count what csum_action_complete() did.
 */
/* clang-format off */
#define CSUM_ACTION_REASON_LIST(X) \
	X(COMPUTED, "computed", "every sum asked for is right") \
	X(LEFT, "left", "a sum was left to the NIC") \
	X(UNASKED, "unasked", "no sum of this packet was asked for") \
	X(UDP_NONE, "udp_none", "IPv4 UDP without a checksum stays without") \
	X(MARKED, "marked", "marked for segmentation or tunnel offload: untouched") \
	X(CUT_L3, "cut_l3", "frame ends before its IP packet does: untouched") \
	X(MALFORMED_L4, "malformed_l4", "layer 4 header or length does not fit: untouched") \
	X(NO_COPY, "no_copy", "shared or foreign memory and no mbuf for a copy: untouched") \
	X(NOT_IP, "not_ip", "not IPv4 or IPv6: untouched") \
	X(CUT_L2, "cut_l2", "frame ends inside Ethernet or a VLAN tag: untouched") \
	X(VLAN_DEPTH, "vlan_depth", "more than three VLAN tags: untouched") \
	X(MALFORMED_L3, "malformed_l3", "IP version, header or total length does not fit: untouched") \
	X(FRAGMENT, "fragment", "a fragment: untouched") \
	X(MALFORMED_EXT, "malformed_ext", "extension header or IP option does not fit or lies: untouched") \
	X(EXT_LIMIT, "ext_limit", "extension header chain too long: untouched") \
	X(OPAQUE, "opaque", "AH, ESP, no next header or unknown routing header: untouched") \
	X(CUT_L4, "cut_l4", "layer 3 ends where layer 4 should begin: untouched") \
	X(COMPLETED, "completed", "left to a NIC, or received without sums: completed in software") \
	X(INCOMPLETE, "incomplete", "sums are missing that software could not complete either")
/* clang-format on */

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
 * Makes an unpublished snapshot, attached to nothing, to be freed by free(). NULL and rte_errno:
 * EINVAL (flags beyond CSUM_ACTION_FLAGS), ENOMEM.
 */
struct action_params *csum_action_params_create(uint32_t update_flags, int32_t verdict);

/*
 * Has packets of this snapshot counted in `csum`, and their sums left to NICs as it allows. Before
 * the snapshot is published. `csum` may be NULL.
 */
void csum_action_params_attach(struct action_params *params, struct csum_action *csum);

/*
 * Hardware offload. An action does not know through which port a packet will leave, so it leaves
 * sums to whatever NIC, and the stage before the driver completes what its port cannot do:
 *
 *   csum_action_offload_set(csum, what some egress port offers);       control thread
 *   ... the action presets the fields and sets Tx flags, l2_len, l3_len ...
 *   if (csum_action_pending(pkts, n))                                  before a driver or ESP
 *           missing = csum_action_complete(csum, worker, pkts, n, what this port offers);
 *   n = rte_eth_tx_prepare(port, queue, pkts, n);                      if a Tx flag is left
 *
 * `tx_offloads` are RTE_ETH_TX_OFFLOAD_{IPV4,UDP,TCP,SCTP}_CKSUM as configured on the port; 0 for
 * encryption, capture, or a port whose offload is turned off. Only sums that every driver computes
 * as we do are left: headers in one writable segment, no IPv6 extension header, no source route, no
 * trailer. The others are computed in software at once. Both ways give the same bytes on the wire.
 */

/* What actions attached to `csum` may leave; 0, as at first: nothing. Control thread, under
 * traffic. */
void csum_action_offload_set(struct csum_action *csum, uint64_t tx_offloads);

/* True if any of these packets has a sum to be completed: left by an action, or never made (Rx flag
 * "none"). */
#define CSUM_ACTION_PENDING_FLAGS \
	(RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_RX_L4_CKSUM_BAD | \
		RTE_MBUF_F_RX_IP_CKSUM_BAD) /* none of them in any packet: none is pending */
static inline bool
csum_action_pending(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint64_t any = 0;
	uint16_t i;

	/* Most packets have no such flag at all: one load each says so. */
	for (i = 0; i < n; i++)
		any |= pkts[i]->ol_flags;
	if ((any & CSUM_ACTION_PENDING_FLAGS) == 0)
		return false;
	any = 0;
	for (i = 0; i < n; i++) {
		uint64_t f = pkts[i]->ol_flags;

		/* "none" is both bits of a pair: bring the lower upon the higher */
		any |= (f & (RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK)) |
			(f & f << 5 & RTE_MBUF_F_RX_L4_CKSUM_GOOD) |
			(f & f << 3 & RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	}
	return any != 0;
}
static_assert(RTE_MBUF_F_RX_L4_CKSUM_BAD << 5 == RTE_MBUF_F_RX_L4_CKSUM_GOOD, "Rx flag pairs");
static_assert(RTE_MBUF_F_RX_IP_CKSUM_BAD << 3 == RTE_MBUF_F_RX_IP_CKSUM_GOOD, "Rx flag pairs");

/*
 * Completes in software the sums of pkts[0..n) that are pending and that a NIC with `tx_offloads`
 * would not complete; those it would, of packets received without sums (rule A23), are left to it,
 * and presets of packets that got or lost a tag since are renewed.
 * n is at most PACKET_VECTOR_MAX. May put a copy in a place. Packets marked for segmentation or
 * tunnel offload are not touched. Returns the positions whose sums are missing and stay so: a
 * fragment, or lengths that do not fit. Worker.
 */
uint64_t csum_action_complete(struct csum_action *csum, unsigned int worker, struct rte_mbuf **pkts,
	uint16_t n, uint64_t tx_offloads);

/* Rule A26: what a checker finds. */
enum csum_action_state {
	CSUM_ACTION_STATE_ABSENT, /* there is none: not this protocol, a fragment, lengths that do
				     not fit */
	CSUM_ACTION_STATE_NONE, /* IPv4 UDP: 0, so none was sent */
	CSUM_ACTION_STATE_PENDING, /* to be completed: left to a NIC, or received without */
	CSUM_ACTION_STATE_GOOD, /* either zero of one's complement is */
	CSUM_ACTION_STATE_BAD,
};

/* Looks at the sums of the IPv4 header and of layer 4, and changes nothing. Any thread. */
void csum_action_check(const struct csum_action *csum, const struct rte_mbuf *m,
	const struct packet_view *view, enum csum_action_state *ip, enum csum_action_state *l4);

#endif /* CSUM_ACTION_CSUM_ACTION_H */
