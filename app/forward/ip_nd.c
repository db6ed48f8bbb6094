/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Neighbour discovery (RFC 4861): solicitations and advertisements of neighbours. We are a router:
 * what routers say to hosts, redirects too, is read by nobody. */

#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "app.h"
#include "compat.h"
#include "forward/ip.h"
#include "forward/ip_icmp6.h"

#define HOP_LIMIT 255 /* nobody beyond the link can send it */
#define LLADDR_OPTION 8 /* bytes: type, length, address */
#define TARGET_LEN 16 /* behind the ICMPv6 header */
#define ND_LEN (sizeof(struct ip_icmp6) + TARGET_LEN) /* solicitations, advertisements */

static const uint8_t unspecified[16];

/* The link address in an option of that type; false if an option lies about its length. */
static bool
find_lladdr(const uint8_t *options, size_t len, uint8_t type, const uint8_t **lladdr)
{
	*lladdr = NULL;
	while (len > 0) {
		size_t step = len >= 2 ? options[1] * 8u : 0;

		if (step == 0 || step > len)
			return false;
		if (options[0] == type && step == LLADDR_OPTION)
			*lladdr = options + 2;
		options += step;
		len -= step;
	}
	return *lladdr == NULL ||
		rte_is_valid_assigned_ether_addr((const struct rte_ether_addr *)*lladdr);
}

static void
send_to_link(struct router *ip, struct rte_mbuf *m, const struct route_dev *dev,
	const uint8_t *frame_dst)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);

	memcpy(&eth->dst_addr, frame_dst, 6);
	memcpy(&eth->src_addr, dev->mac, 6);
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	ip_transmit_frame(ip, m, dev->port);
}

static void
put_lladdr(uint8_t *option, uint8_t type, const uint8_t *mac)
{
	option[0] = type;
	option[1] = 1;
	memcpy(option + 2, mac, 6);
}

/* Whom the answer goes to: our link-local address, as Linux asks for those it forwards to. */
static const struct route_address *
asking(const struct router *ip, const struct route_neigh_info *neigh)
{
	static const uint8_t link[16] = { 0xfe, 0x80 };
	const struct route_address *src =
		route_address_source(ip->app->route, neigh->ifindex, AF_INET6, link);

	return src != NULL && src->scope == RT_SCOPE_LINK
		? src
		: route_address_source(ip->app->route, neigh->ifindex, AF_INET6, neigh->addr);
}

void
ip_nd_solicit(struct router *ip, const struct route_neigh_info *neigh, bool unicast)
{
	const struct route_dev *dev = route_dev_find(ip->app->route, neigh->ifindex);
	const struct route_address *src = asking(ip, neigh);
	uint8_t dst[16] = { 0xff, 0x02, [11] = 1, [12] = 0xff }, group[6] = { 0x33, 0x33, 0xff };
	struct ip_icmp6 *ns;
	struct rte_ipv6_hdr *h;
	struct rte_mbuf *m;

	/* Without an address of its own a router cannot ask. */
	if (dev == NULL || !dev->up || src == NULL)
		return;
	memcpy(dst + 13, neigh->addr + 13, 3);
	memcpy(group + 3, neigh->addr + 13, 3);
	h = ip_icmp6_make(
		ip, &m, ND_LEN + LLADDR_OPTION, HOP_LIMIT, src->addr, unicast ? neigh->addr : dst);
	if (h == NULL)
		return;
	ns = (void *)(h + 1);
	ns->h.icmp6_type = ND_NEIGHBOR_SOLICIT;
	memcpy(ns + 1, neigh->addr, TARGET_LEN);
	put_lladdr((uint8_t *)ns + ND_LEN, ND_OPT_SOURCE_LINKADDR, dev->mac);
	ns->h.icmp6_cksum = ip_icmp6_sum(h, ns);
	send_to_link(ip, m, dev, unicast ? neigh->lladdr : group);
}

/*
 * `told`: who asked the group does not know our link address yet, so it is there and counts more
 * than what is known (RFC 4861 7.2.4).
 */
static void
advertise(struct router *ip, const struct route_dev *dev, const void *target, const void *to,
	const uint8_t *to_mac, bool solicited, bool told)
{
	static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 },
			     all_macs[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct ip_icmp6 *na;
	struct rte_ipv6_hdr *h;
	struct rte_mbuf *m;

	h = ip_icmp6_make(ip, &m, (uint16_t)(ND_LEN + (told ? LLADDR_OPTION : 0)), HOP_LIMIT,
		target, solicited ? to : all_nodes);
	if (h == NULL)
		return;
	na = (void *)(h + 1);
	na->h.icmp6_type = ND_NEIGHBOR_ADVERT;
	na->h.icmp6_data32[0] = ND_NA_FLAG_ROUTER | (told ? ND_NA_FLAG_OVERRIDE : 0) |
		(solicited ? ND_NA_FLAG_SOLICITED : 0);
	memcpy(na + 1, target, TARGET_LEN);
	if (told)
		put_lladdr((uint8_t *)na + ND_LEN, ND_OPT_TARGET_LINKADDR, dev->mac);
	na->h.icmp6_cksum = ip_icmp6_sum(h, na);
	send_to_link(ip, m, dev, solicited ? to_mac : all_macs);
}

/* False: RFC 4861 7.1.1 says to discard it. */
static bool
solicited(struct router *ip, const struct route_dev *dev, const struct rte_ether_hdr *eth,
	const struct rte_ipv6_hdr *h, const struct ip_icmp6 *ns, size_t len)
{
	bool probe = memcmp(compat_ip6_src(h), unspecified, sizeof(unspecified)) == 0;
	const uint8_t *lladdr, *target = (const uint8_t *)(ns + 1);

	if (len < ND_LEN || target[0] == 0xff ||
		!find_lladdr((const uint8_t *)ns + ND_LEN, len - ND_LEN, ND_OPT_SOURCE_LINKADDR,
			&lladdr))
		return false;
	if (probe && (lladdr != NULL || compat_ip6_dst(h)[0] != 0xff))
		return false;
	if (route_address_find(ip->app->route, dev->ifindex, AF_INET6, target) == NULL)
		return true;
	if (!probe && lladdr != NULL &&
		route_address_find(ip->app->route, 0, AF_INET6, compat_ip6_src(h)) == NULL)
		route_neigh_heard(ip->app->route, dev->ifindex, AF_INET6, compat_ip6_src(h), lladdr,
			ROUTE_HEARD_CREATE | ROUTE_HEARD_OVERRIDE);
	advertise(ip, dev, target, compat_ip6_src(h),
		lladdr != NULL ? lladdr : eth->src_addr.addr_bytes, !probe,
		compat_ip6_dst(h)[0] == 0xff);
	return true;
}

/* RFC 4861 7.1.2 and 7.2.5. */
static bool
advertised(struct router *ip, const struct route_dev *dev, const struct rte_ipv6_hdr *h,
	const struct ip_icmp6 *na, size_t len)
{
	const uint8_t *lladdr, *target = (const uint8_t *)(na + 1);
	bool answer = (na->h.icmp6_data32[0] & ND_NA_FLAG_SOLICITED) != 0;
	unsigned int flags = 0;

	if (len < ND_LEN || target[0] == 0xff || (answer && compat_ip6_dst(h)[0] == 0xff) ||
		!find_lladdr((const uint8_t *)na + ND_LEN, len - ND_LEN, ND_OPT_TARGET_LINKADDR,
			&lladdr))
		return false;
	if (answer)
		flags |= ROUTE_HEARD_SOLICITED;
	if ((na->h.icmp6_data32[0] & ND_NA_FLAG_OVERRIDE) != 0)
		flags |= ROUTE_HEARD_OVERRIDE;
	if (lladdr != NULL && route_address_find(ip->app->route, 0, AF_INET6, target) == NULL)
		route_neigh_heard(ip->app->route, dev->ifindex, AF_INET6, target, lladdr, flags);
	return true;
}

void
ip_nd_receive(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	const struct port *port = port_get(ip->app, m->port);
	const struct route_dev *dev =
		port == NULL ? NULL : route_dev_find(ip->app->route, port->ifindex);
	size_t len = view->l3_end - view->l4_off;
	const struct rte_ether_hdr *eth;
	const struct rte_ipv6_hdr *h;
	const struct ip_icmp6 *icmp;
	const void *nd;
	bool good;

	if (rte_pktmbuf_linearize(m) != 0) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return;
	}
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	h = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, view->l3_off);
	icmp = nd = rte_pktmbuf_mtod_offset(m, const void *, view->l4_off);
	good = dev != NULL && h->hop_limits == HOP_LIMIT && icmp->h.icmp6_code == 0;
	if (good && icmp->h.icmp6_type == ND_NEIGHBOR_SOLICIT)
		good = solicited(ip, dev, eth, h, nd, len);
	else if (good && icmp->h.icmp6_type == ND_NEIGHBOR_ADVERT)
		good = advertised(ip, dev, h, nd, len);
	else if (good) {
		ip_drop(ip, DROP_ND_IGNORED, m);
		return;
	}
	ip_drop(ip, good ? DROP_ND_CONSUMED : DROP_ND_MALFORMED, m);
}
