/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_FORWARD_IP_ICMP6_H
#define APP_FORWARD_IP_ICMP6_H

/* ICMPv6 on the control thread. */

#include <netinet/icmp6.h>

#include "forward/ip.h"

struct rte_ipv6_hdr;

/* Takes m over. */
void ip_icmp6_receive(
	struct router *ip, struct rte_mbuf *m, const struct packet_view *view, bool was_fragments);
/* Answers m with an error if that is allowed. */
void ip_icmp6_error(struct router *ip, const struct rte_mbuf *m, const struct packet_view *view,
	uint8_t type, uint8_t code, uint32_t rest);

/* As it lies in a frame, where the system's structure would ask for 4 bytes' alignment. */
struct ip_icmp6 {
	struct icmp6_hdr h;
} __attribute__((packed));

/*
 * A packet of ours with `len` zero bytes behind its IPv6 header, which starts 14 bytes into *mp.
 * NULL: no mbuf.
 */
struct rte_ipv6_hdr *ip_icmp6_make(struct router *ip, struct rte_mbuf **mp, uint16_t len,
	uint8_t hop_limit, const void *src, const void *dst);
/* The checksum of what stands behind the header; its field is zero. */
uint16_t ip_icmp6_sum(const struct rte_ipv6_hdr *h, const void *icmp);

/* ip_nd.c: its sum is checked; takes m over. */
void ip_nd_receive(struct router *ip, struct rte_mbuf *m, const struct packet_view *view);
void ip_nd_solicit(struct router *ip, const struct route_neigh_info *neigh, bool unicast);

#endif /* APP_FORWARD_IP_ICMP6_H */
