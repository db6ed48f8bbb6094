/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The router's control side: rings, ports, neighbours that are waited for. */

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_ip_frag.h>
#include <rte_random.h>
#include <rte_ring_elem.h>

#include "app.h"
#include "forward/forward.h"
#include "forward/ip.h"
#include "forward/ip_esp.h"
#include "forward/ip_icmp6.h"

#define SLOW_RING 1024
#define REPLY_RING 1024
#define SLOW_BUDGET 256 /* packets in one go */
#define POLL_MS 1 /* while workers may hand something over */
#define BURST 32
#define PARTS_MAX 128 /* fragments of a packet of ours: 64 KiB by an MTU of 576 */

static uint64_t
now_ms(void)
{
	return rte_get_timer_cycles() / (rte_get_timer_hz() / 1000);
}

/* What is said about a packet that does not go on, and why it is dropped. */
static const struct {
	enum drop_reason reason;
	uint8_t type4, code4, type6, code6;
} errors[] = {
	[WHY_TTL] = { DROP_IP_TTL, ICMP_TIME_EXCEEDED, ICMP_EXC_TTL, ICMP6_TIME_EXCEEDED, 0 },
	[WHY_NO_ROUTE] = { DROP_IP_NO_ROUTE, ICMP_DEST_UNREACH, ICMP_NET_UNREACH, ICMP6_DST_UNREACH,
		ICMP6_DST_UNREACH_NOROUTE },
	[WHY_UNREACHABLE] = { DROP_IP_UNREACHABLE, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH,
		ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE },
	[WHY_PROHIBIT] = { DROP_IP_PROHIBIT, ICMP_DEST_UNREACH, ICMP_PKT_FILTERED,
		ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADMIN },
	[WHY_TOO_BIG] = { DROP_IP_TOO_BIG, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED,
		ICMP6_PACKET_TOO_BIG, 0 },
	[WHY_NEIGH_FAILED] = { DROP_NEIGH_FAILED, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH,
		ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR },
};

static void
refuse(struct router *ip, struct rte_mbuf *m, const struct packet_view *view, enum ip_why why,
	uint32_t mtu)
{
	if (view->l3 == PACKET_L3_IPV4)
		ip_icmp_error(ip, m, view, errors[why].type4, errors[why].code4, mtu);
	else if (view->l3 == PACKET_L3_IPV6)
		ip_icmp6_error(ip, m, view, errors[why].type6, errors[why].code6, mtu);
	ip_drop(ip, errors[why].reason, m);
}

/* --- route's callbacks --- */

static void
solicit(void *arg, const struct route_neigh *neigh, bool unicast)
{
	struct router *ip = arg;
	struct route_neigh_info info;

	route_neigh_describe(ip->app->route, neigh, &info);
	if (info.family == AF_INET)
		ip_arp_solicit(ip, &info, unicast);
	else
		ip_nd_solicit(ip, &info, unicast);
}

/* Whoever waited gets its Ethernet header, or its sender an error. */
static void
release(void *arg, const struct route_neigh *neigh, void *const *pkts, unsigned int n, bool failed)
{
	struct router *ip = arg;
	struct route_neigh_info info;
	const struct route_hop *hop;

	route_neigh_describe(ip->app->route, neigh, &info);
	hop = route_neigh_lookup(ip->app->route, info.ifindex, info.family, info.addr);
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		struct packet_view view;

		packet_view_parse(m, &view);
		if (!failed && hop != NULL && hop->kind == ROUTE_FORWARD)
			ip_transmit(ip, m, view.l3_off, hop);
		else if (failed && info.state == NUD_FAILED)
			refuse(ip, m, &view, WHY_NEIGH_FAILED, 0);
		else
			ip_drop(ip, DROP_NEIGH_QUEUE, m);
	}
}

static void
moved(void *arg)
{
	const struct router *ip = arg;

	if (ip->app->ipsec != NULL)
		ipsec_cache_invalidate(ip->app->ipsec);
}

/* --- life --- */

static int
rings_create(struct app *a, struct router *ip)
{
	ip->slow = rte_ring_create_elem(
		"ip_slow", sizeof(struct ip_item), SLOW_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	ip->n_replies = a->n_workers;
	ip->replies = calloc(ip->n_replies, sizeof(struct rte_ring *));
	if (ip->slow == NULL || ip->replies == NULL)
		return -1;
	for (unsigned int i = 0; i < ip->n_replies; i++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "ip_reply%u", i);
		ip->replies[i] = rte_ring_create_elem(name, sizeof(struct ip_reply), REPLY_RING,
			SOCKET_ID_ANY, RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
		if (ip->replies[i] == NULL)
			return -1;
	}
	return 0;
}

int
ip_create(struct app *a)
{
	struct route_conf conf = {
		.rcu = a->rcu,
		.socket = SOCKET_ID_ANY,
		.solicit = solicit,
		.release = release,
		.moved = moved,
	};
	struct router *ip = calloc(1, sizeof(*ip));

	a->ip = conf.arg = ip;
	if (ip != NULL) {
		ip->app = a;
		a->route = route_table_create(&conf);
	}
	if (ip == NULL || a->route == NULL || rings_create(a, ip) != 0) {
		fprintf(stderr, "millrace: no memory for the router\n");
		return -1;
	}
	route_tick(a->route, now_ms());
	return ip_ipsec_create(a);
}

static void
rings_destroy(struct router *ip)
{
	struct ip_reply reply;
	struct ip_item item;

	while (ip->slow != NULL && rte_ring_dequeue_elem(ip->slow, &item, sizeof(item)) == 0)
		ip_drop(ip, DROP_IP_SLOW_FULL, item.m);
	for (unsigned int i = 0; ip->replies != NULL && i < ip->n_replies; i++) {
		while (ip->replies[i] != NULL &&
			rte_ring_dequeue_elem(ip->replies[i], &reply, sizeof(reply)) == 0)
			ip_drop(ip, DROP_IP_REPLY_FULL, reply.m);
		rte_ring_free(ip->replies[i]);
	}
	rte_ring_free(ip->slow);
	free(ip->replies);
}

void
ip_destroy(struct app *a)
{
	if (a->ip == NULL)
		return;
	ip_ipsec_destroy(a);
	route_table_destroy(a->route);
	ip_reassembly_destroy(a->ip);
	rings_destroy(a->ip);
	free(a->ip);
	a->ip = NULL;
	a->route = NULL;
}

void
ip_port_changed(struct app *a, struct port *port)
{
	struct route_dev dev = { .ifindex = port->ifindex, .port = port->id };
	struct rte_ether_addr mac;
	uint64_t word = 0;
	uint16_t mtu = RTE_ETHER_MTU;

	if (a->route == NULL || !port->used)
		return;
	rte_eth_dev_get_mtu(port->id, &mtu);
	if (rte_eth_macaddr_get(port->id, &mac) != 0)
		return;
	memcpy(&word, mac.addr_bytes, sizeof(mac.addr_bytes));
	atomic_store_explicit(&port->mac, word, memory_order_relaxed);
	memcpy(dev.mac, mac.addr_bytes, sizeof(dev.mac));
	dev.mtu = mtu;
	dev.up = port_is_up(port);
	if (route_dev_set(a->route, &dev) != 0)
		fprintf(stderr, "millrace: %s: no memory for its routes\n", port->name);
}

void
ip_port_gone(struct app *a, const struct port *port)
{
	if (a->route == NULL)
		return;
	route_dev_del(a->route, port->ifindex);
	ipsec_cache_dev_gone(a->ipsec, port->ifindex);
}

/*
 * Linux gives an interface that goes up its link-local address, made of the MAC address (RFC 2464
 * 4). Here in mode ip alone: nobody else has use for it.
 */
static void
link_local_add(struct app *a, const struct port *port)
{
	const struct route_dev *dev = route_dev_find(a->route, port->ifindex);
	struct route_address address = { .ifindex = port->ifindex,
		.family = AF_INET6,
		.len = 64,
		.scope = RT_SCOPE_LINK,
		.protocol = IFAPROT_KERNEL_LL,
		.addr = { 0xfe, 0x80, [11] = 0xff, [12] = 0xfe } };

	if (dev == NULL)
		return;
	memcpy(address.addr + 8, dev->mac, 3);
	memcpy(address.addr + 13, dev->mac + 3, 3);
	address.addr[8] ^= 2;
	(void)route_address_add(a->route, &address); /* it may be there by hand */
}

static void
link_locals(struct app *a)
{
	if (a->mode->turn == NULL)
		return;
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		struct port *port = port_get(a, (uint16_t)i);
		uint32_t *linked = &a->ip->linked[i];

		if (port == NULL || !port_is_up(port)) {
			*linked = 0;
		} else if (*linked != port->ifindex) {
			*linked = port->ifindex;
			link_local_add(a, port);
		}
	}
}

/* --- out --- */

void
ip_drop(struct router *ip, enum drop_reason reason, struct rte_mbuf *m)
{
	drop(&ip->app->control_drops, reason, &m, 1);
}

struct rte_mbuf *
ip_alloc(struct router *ip)
{
	struct rte_mbuf *m = NULL;

	for (unsigned int i = 0; i < RTE_MAX_NUMA_NODES && m == NULL; i++) {
		if (ip->app->pool[i] != NULL)
			m = rte_pktmbuf_alloc(ip->app->pool[i]);
	}
	if (m == NULL) {
		drop_count(&ip->app->control_drops, DROP_IP_NOBUF, 1, 0);
		return NULL;
	}
	m->port = IP_OWN;
	*packet_meta(m, ip->app->meta_offset) = (struct packet_meta){ 0 };
	return m;
}

/* The worker that sends: the first that has anything to do. */
struct rte_ring *
ip_reply_ring(const struct router *ip)
{
	for (unsigned int i = 0; i < ip->n_replies; i++) {
		if (ip->app->workers[i].n_streams > 0)
			return ip->replies[i];
	}
	return ip->replies[0];
}

void
ip_transmit_frame(struct router *ip, struct rte_mbuf *m, uint16_t port)
{
	struct ip_reply reply = { .m = m, .port = port };

	if (rte_ring_enqueue_elem(ip_reply_ring(ip), &reply, sizeof(reply)) != 0)
		ip_drop(ip, DROP_IP_REPLY_FULL, m);
}

void
ip_transmit(struct router *ip, struct rte_mbuf *m, uint32_t l3_off, const struct route_hop *hop)
{
	uint8_t *header;

	header = l3_off >= RTE_ETHER_HDR_LEN
		? (uint8_t *)rte_pktmbuf_adj(m, (uint16_t)(l3_off - RTE_ETHER_HDR_LEN))
		: (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(RTE_ETHER_HDR_LEN - l3_off));
	if (header == NULL) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return;
	}
	memcpy(header, hop->rewrite + 2, RTE_ETHER_HDR_LEN);
	ip_transmit_frame(ip, m, hop->port);
}

void
ip_output_header(struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);

	memset(eth, 0, sizeof(*eth));
	eth->ether_type = rte_cpu_to_be_16(
		*(const uint8_t *)(eth + 1) >> 4 == 6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
}

bool
ip_fragment_frame(
	struct rte_mbuf *m, uint16_t port, int meta_offset, const struct packet_meta *meta)
{
	struct rte_ipv4_hdr *h = rte_pktmbuf_mtod(m, struct rte_ipv4_hdr *);

	if (h->version_ihl >> 4 == 4) {
		h->hdr_checksum = 0;
		h->hdr_checksum = rte_ipv4_cksum(h);
	}
	m->port = port;
	m->ol_flags &= ~RTE_MBUF_F_TX_IP_CKSUM;
	*packet_meta(m, meta_offset) = *meta;
	if (rte_pktmbuf_prepend(m, RTE_ETHER_HDR_LEN) == NULL)
		return false;
	ip_output_header(m);
	return true;
}

/* librte_ip_frag leaves it to its caller to number an IPv6 packet. */
static void
number6(struct rte_mbuf *m, uint32_t id)
{
	rte_pktmbuf_mtod_offset(m, struct rte_ipv6_fragment_ext *, sizeof(struct rte_ipv6_hdr))
		->id = id;
}

/* A packet of ours that is too long for the way: an echo reply, as a rule. */
static void
output_fragments(struct router *ip, struct rte_mbuf *m, uint32_t ifindex, uint8_t family,
	const void *nexthop, uint32_t l3_off, uint32_t mtu)
{
	const struct packet_meta meta = { 0 };
	uint32_t id = (uint32_t)rte_rand();
	struct rte_mbuf *parts[PARTS_MAX];
	uint16_t size = (uint16_t)RTE_MIN(mtu, 0xffffu);
	int n;

	if (rte_pktmbuf_adj(m, (uint16_t)l3_off) == NULL)
		n = -1;
	else if (family == AF_INET6)
		n = rte_ipv6_fragment_packet(m, parts, PARTS_MAX, size, m->pool, m->pool);
	else
		n = rte_ipv4_fragment_packet(m, parts, PARTS_MAX, size, m->pool, m->pool);
	if (n <= 0)
		ip_drop(ip, DROP_IP_NOBUF, m);
	else
		rte_pktmbuf_free(m); /* its fragments hold on to its bytes */
	for (int i = 0; i < n; i++) {
		if (family == AF_INET6)
			number6(parts[i], id);
		if (ip_fragment_frame(parts[i], IP_OWN, ip->app->meta_offset, &meta))
			ip_output_to(ip, parts[i], ifindex, family, nexthop, RTE_ETHER_HDR_LEN);
		else
			ip_drop(ip, DROP_IP_NOBUF, parts[i]);
	}
}

void
ip_output_to(struct router *ip, struct rte_mbuf *m, uint32_t ifindex, uint8_t family,
	const void *nexthop, uint32_t l3_off)
{
	const struct route_hop *hop = route_neigh_lookup(ip->app->route, ifindex, family, nexthop);
	int ret;

	if (m->port == IP_OWN && hop != NULL && m->pkt_len - l3_off > hop->mtu) {
		output_fragments(ip, m, ifindex, family, nexthop, l3_off, hop->mtu);
		return;
	}
	if (hop != NULL && hop->kind == ROUTE_FORWARD) {
		route_hop_use(hop);
		ip_transmit(ip, m, l3_off, hop);
		return;
	}
	if (m->port == IP_OWN)
		ip_output_header(m);
	ret = route_neigh_wait(ip->app->route, ifindex, family, nexthop, m);
	if (ret != 0)
		ip_drop(ip, DROP_NEIGH_FULL, m);
}

void
ip_output(struct router *ip, struct rte_mbuf *m, uint8_t family, const void *dst, uint32_t l3_off)
{
	struct route_path path = { .ifindex = 0 };
	const struct route *r = route_get(ip->app->route, family, dst, 0, &path);
	struct route_spec spec;

	if (!ip_ipsec_output(ip, m))
		return;
	if (r != NULL)
		route_describe(r, &spec);
	if (r == NULL || spec.type != RTN_UNICAST)
		ip_drop(ip, DROP_IP_NO_ROUTE, m);
	else
		ip_output_to(
			ip, m, path.ifindex, family, path.has_gateway ? path.gateway : dst, l3_off);
}

/* --- in --- */

static void
local(struct router *ip, struct rte_mbuf *m, struct packet_view *view)
{
	bool fragment = (view->flags & PACKET_F_FRAGMENT) != 0;

	if (fragment) {
		if ((m = ip_reassemble(ip, m, view)) == NULL)
			return;
		packet_view_parse(m, view);
		if (ip_ipsec_input(ip, m, view))
			return;
	}
	if (view->l3 == PACKET_L3_IPV6)
		ip_icmp6_receive(ip, m, view, fragment);
	else
		ip_icmp_receive(ip, m, view);
}

static void
serve(struct router *ip, const struct ip_item *item)
{
	struct rte_mbuf *m = item->m;
	struct packet_view view;

	packet_view_parse(m, &view);
	switch ((enum ip_why)item->why) {
	case WHY_ARP:
		ip_arp_receive(ip, m, &view);
		break;
	case WHY_LOCAL:
		local(ip, m, &view);
		break;
	case WHY_RESOLVE:
		ip_output_to(ip, m, item->ifindex, item->family, item->nexthop, view.l3_off);
		break;
	case WHY_TOO_BIG:
		refuse(ip, m, &view, WHY_TOO_BIG, item->mtu);
		break;
	default:
		refuse(ip, m, &view, (enum ip_why)item->why, 0);
		break;
	}
}

void
ip_control(struct app *a)
{
	struct ip_item items[BURST];
	unsigned int n, served = 0;
	uint64_t now = now_ms();

	if (a->ip == NULL)
		return;
	route_tick(a->route, now);
	ipsec_cache_tick(a->ipsec, now);
	ip_reassembly_tick(a->ip, now);
	link_locals(a);
	do {
		n = rte_ring_dequeue_burst_elem(a->ip->slow, items, sizeof(items[0]), BURST, NULL);
		for (unsigned int i = 0; i < n; i++)
			serve(a->ip, &items[i]);
		served += n;
	} while (n > 0 && served < SLOW_BUDGET);
}

int
ip_timeout(const struct app *a)
{
	return a->forwarding && a->mode->turn != NULL ? POLL_MS : -1;
}
