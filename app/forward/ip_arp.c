/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* ARP (RFC 826, RFC 5227): answers for our addresses, questions for neighbours. */

#include <rte_arp.h>
#include <rte_ether.h>

#include "app.h"
#include "forward/ip.h"

#define ARP_LEN sizeof(struct rte_arp_hdr)

static void
arp_frame(struct router *ip, const struct route_dev *dev, uint16_t op, const uint8_t *frame_dst,
	const uint8_t *target_mac, const void *sender_ip, const void *target_ip)
{
	struct rte_mbuf *m = ip_alloc(ip);
	struct rte_ether_hdr *eth;
	struct rte_arp_hdr *arp;

	if (m == NULL)
		return;
	eth = (void *)rte_pktmbuf_append(m, sizeof(*eth) + sizeof(*arp));
	if (eth == NULL) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return;
	}
	memcpy(&eth->dst_addr, frame_dst, 6);
	memcpy(&eth->src_addr, dev->mac, 6);
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	arp = (void *)(eth + 1);
	arp->arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = 6;
	arp->arp_plen = 4;
	arp->arp_opcode = rte_cpu_to_be_16(op);
	memcpy(&arp->arp_data.arp_sha, dev->mac, 6);
	memcpy(&arp->arp_data.arp_sip, sender_ip, 4);
	memcpy(&arp->arp_data.arp_tha, target_mac, 6);
	memcpy(&arp->arp_data.arp_tip, target_ip, 4);
	ip_transmit_frame(ip, m, dev->port);
}

void
ip_arp_solicit(struct router *ip, const struct route_neigh_info *neigh, bool unicast)
{
	static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, nobody[6];
	const struct route_dev *dev = route_dev_find(ip->app->route, neigh->ifindex);
	const struct route_address *src =
		route_address_source(ip->app->route, neigh->ifindex, AF_INET, neigh->addr);
	static const uint8_t none[4];

	if (dev == NULL || !dev->up)
		return;
	/* Without an address it asks as RFC 5227's probes do. */
	arp_frame(ip, dev, RTE_ARP_OP_REQUEST, unicast ? neigh->lladdr : everyone, nobody,
		src != NULL ? src->addr : none, neigh->addr);
}

/* Is that address in a subnet of the device, and none of our own? */
static bool
is_neighbour(const struct router *ip, uint32_t ifindex, const void *addr)
{
	const struct route_address *a =
		route_address_source(ip->app->route, ifindex, AF_INET, addr);
	uint32_t theirs, ours, mask;

	if (a == NULL || route_address_find(ip->app->route, 0, AF_INET, addr) != NULL)
		return false;
	memcpy(&theirs, addr, 4);
	memcpy(&ours, a->addr, 4);
	mask = rte_cpu_to_be_32((uint32_t)(UINT64_C(0xffffffff) << (32 - a->len)));
	return theirs != 0 && (theirs & mask) == (ours & mask);
}

static bool
arp_is_good(const struct rte_arp_hdr *arp)
{
	return arp->arp_hardware == RTE_BE16(RTE_ARP_HRD_ETHER) &&
		arp->arp_protocol == RTE_BE16(RTE_ETHER_TYPE_IPV4) && arp->arp_hlen == 6 &&
		arp->arp_plen == 4 && rte_is_valid_assigned_ether_addr(&arp->arp_data.arp_sha) &&
		(arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST) ||
			arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY));
}

/* What Linux's arp_process() learns. */
static void
learn(struct router *ip, uint32_t ifindex, const struct rte_arp_hdr *arp, bool to_us, bool for_us)
{
	bool reply = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY);
	unsigned int flags = ROUTE_HEARD_OVERRIDE;

	if (reply && to_us)
		flags |= ROUTE_HEARD_SOLICITED;
	if (!reply && for_us)
		flags |= ROUTE_HEARD_CREATE;
	if (is_neighbour(ip, ifindex, &arp->arp_data.arp_sip))
		route_neigh_heard(ip->app->route, ifindex, AF_INET, &arp->arp_data.arp_sip,
			arp->arp_data.arp_sha.addr_bytes, flags);
}

void
ip_arp_receive(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	const struct port *port = port_get(ip->app, m->port);
	const struct route_dev *dev;
	uint8_t buf[ARP_LEN], first_buf;
	const uint8_t *first;
	const struct rte_arp_hdr *arp;
	bool for_us, to_us;

	dev = port == NULL ? NULL : route_dev_find(ip->app->route, port->ifindex);
	arp = packet_read(m, view->l3_off, ARP_LEN, buf);
	first = packet_read(m, 0, 1, &first_buf);
	if (dev == NULL || arp == NULL || first == NULL || !arp_is_good(arp)) {
		ip_drop(ip, DROP_ARP_MALFORMED, m);
		return;
	}
	to_us = (*first & 1) == 0;
	for_us = route_address_find(ip->app->route, 0, AF_INET, &arp->arp_data.arp_tip) != NULL;
	learn(ip, dev->ifindex, arp, to_us, for_us);
	/* Who claims our own address gets no answer, as in Linux. */
	if (arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST) && for_us &&
		route_address_find(ip->app->route, 0, AF_INET, &arp->arp_data.arp_sip) == NULL)
		arp_frame(ip, dev, RTE_ARP_OP_REPLY, arp->arp_data.arp_sha.addr_bytes,
			arp->arp_data.arp_sha.addr_bytes, &arp->arp_data.arp_tip,
			&arp->arp_data.arp_sip);
	ip_drop(ip, DROP_ARP_CONSUMED, m);
}
