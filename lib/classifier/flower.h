/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_FLOWER_H
#define CLASSIFIER_FLOWER_H

/*
 * What a flower rule matches: a key, and a mask that says which of its bits count. Linux behaviour:
 * net/sched/cls_flower.c.
 *
 * Fill a zeroed struct flower_match: for each key of the rule the value in `key` and the bits to
 * compare in `mask` (all ones for an exact match). Multi-byte fields are in network order, as they
 * stand in a frame and as netlink carries them. Bits of `key` outside `mask` do not matter. An
 * empty mask matches every packet of the filter's protocol.
 *
 * A rule with a key of some header matches only packets that really have it: addresses ask for
 * IPv4, IPv6 or ARP as `addresses` says; ports for TCP, UDP, UDP-Lite, SCTP or DCCP whose ports are
 * there (in first fragments too); ICMP fields for ICMP or ICMPv6; ip_tos and ip_ttl for IP. Callers
 * need not say so.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

/* Which of key.a is meant. */
enum flower_addresses {
	FLOWER_NO_ADDRESSES,
	FLOWER_IPV4,
	FLOWER_IPV6,
	FLOWER_ARP,
};

/* ip_flags, as TCA_FLOWER_KEY_FLAGS_IS_FRAGMENT and _FRAG_IS_FIRST. */
#define FLOWER_FRAGMENT 0x01
#define FLOWER_FIRST_FRAGMENT 0x02

/* `present`, for the library itself: headers that a packet has or a rule asks for. */
#define FLOWER_HAS_IPV4 0x0001
#define FLOWER_HAS_IPV6 0x0002
#define FLOWER_HAS_ARP 0x0004
#define FLOWER_HAS_IP 0x0008
#define FLOWER_HAS_PORTS 0x0010
#define FLOWER_HAS_TCP 0x0020
#define FLOWER_HAS_ICMP 0x0040
#define FLOWER_HAS_VLAN 0x0080
#define FLOWER_HAS_CVLAN 0x0100

/*
 * Nine words of 8 bytes; a rule keeps those that its mask touches. The netlink attributes are named
 * without TCA_FLOWER_KEY.
 */
struct flower_key {
	/*
	 * Word 0. eth_type: _ETH_TYPE, or the innermost of _VLAN_ETH_TYPE and _CVLAN_ETH_TYPE: the
	 * type after all tags. ip_proto: _IP_PROTO, the one behind IPv6 extension headers. ip_tos:
	 * _IP_TOS, the whole byte, the IPv6 traffic class as well. ip_ttl: _IP_TTL, or the hop
	 * limit. ip_flags: _FLAGS, as FLOWER_FRAGMENT and FLOWER_FIRST_FRAGMENT. present: leave it
	 * 0.
	 */
	rte_be16_t eth_type;
	uint8_t ip_proto;
	uint8_t ip_tos;
	uint8_t ip_ttl;
	uint8_t ip_flags;
	uint16_t present;
	/*
	 * Word 1. src_port, dst_port: _TCP_SRC, _UDP_SRC, _SCTP_SRC and so on. tcp_flags:
	 * _TCP_FLAGS, 12 bits. icmp_type, icmp_code: _ICMPV4_TYPE, _ICMPV6_TYPE and so on.
	 */
	rte_be16_t src_port;
	rte_be16_t dst_port;
	rte_be16_t tcp_flags;
	uint8_t icmp_type;
	uint8_t icmp_code;
	/* Words 2 to 5: one of these, as flower_match.addresses says. */
	union {
		/* _IPV4_SRC, _IPV4_DST: word 2 */
		struct {
			rte_be32_t src, dst;
		} ip4;
		/* _IPV6_SRC, _IPV6_DST */
		struct {
			uint8_t src[16], dst[16];
		} ip6;
		/* _ARP_SIP, _ARP_TIP: word 2; _ARP_SHA, _ARP_OP (1 request, 2 reply): 3; _ARP_THA:
		 * 4 */
		struct {
			rte_be32_t sip, tip;
			uint8_t sha[6], op, pad1;
			uint8_t tha[6], pad2[2];
		} arp;
	} a;
	/* Word 6. _ETH_DST; outer tag: _VLAN_ID in 0x0fff, _VLAN_PRIO in 0xe000 */
	uint8_t eth_dst[6];
	rte_be16_t vlan_tci;
	/* Word 7. _ETH_SRC; the outer tag's own type: the _ETH_TYPE of a rule with VLAN keys */
	uint8_t eth_src[6];
	rte_be16_t vlan_tpid;
	/*
	 * Word 8. _INDEV as an ifindex in host order; the second tag, whose type is 0 where there
	 * is none: a rule may ask for that.
	 */
	uint32_t indev;
	rte_be16_t cvlan_tci;
	rte_be16_t cvlan_tpid;
};

#define FLOWER_WORDS 9
static_assert(sizeof(struct flower_key) == 8 * FLOWER_WORDS, "a key is nine words");
static_assert(offsetof(struct flower_key, src_port) == 8, "ports begin word 1");
static_assert(offsetof(struct flower_key, a) == 16, "addresses begin word 2");
static_assert(offsetof(struct flower_key, eth_dst) == 48, "destination MAC begins word 6");
static_assert(offsetof(struct flower_key, indev) == 64, "incoming device begins word 8");

/* Ports from min to max, host order; max 0: no range. Set no bits of the port in `mask` beside it.
 */
struct flower_range {
	uint16_t min, max;
};

struct flower_match {
	struct flower_key key, mask;
	enum flower_addresses addresses;
	struct flower_range src_ports, dst_ports; /* _PORT_SRC_MIN, _PORT_SRC_MAX, ... */
};

#endif /* CLASSIFIER_FLOWER_H */
