/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* ICMPv6 (RFC 4443): echo replies and errors; what is neighbour discovery goes to ip_nd.c. */

#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "app.h"
#include "compat.h"
#include "forward/ip_burst.h"
#include "forward/ip_esp.h"
#include "forward/ip_icmp6.h"

#define ERROR_LEN_MAX 1280 /* of the whole packet: RFC 4443 2.4 (c) */
#define HOP_LIMIT 64

uint16_t
ip_icmp6_sum(const struct rte_ipv6_hdr *h, const void *icmp)
{
	return rte_ipv6_udptcp_cksum(h, icmp);
}

struct rte_ipv6_hdr *
ip_icmp6_make(struct router *ip, struct rte_mbuf **mp, uint16_t len, uint8_t hop_limit,
	const void *src, const void *dst)
{
	struct rte_ipv6_hdr *h;
	struct rte_mbuf *m = ip_alloc(ip);

	if ((*mp = m) == NULL)
		return NULL;
	h = (void *)rte_pktmbuf_append(m, (uint16_t)(RTE_ETHER_HDR_LEN + sizeof(*h) + len));
	if (h == NULL) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return NULL;
	}
	h = RTE_PTR_ADD(h, RTE_ETHER_HDR_LEN);
	memset(h, 0, sizeof(*h) + len);
	h->vtc_flow = RTE_BE32(6u << 28);
	h->payload_len = rte_cpu_to_be_16(len);
	h->proto = IPPROTO_ICMPV6;
	h->hop_limits = hop_limit;
	memcpy(&h->src_addr, src, sizeof(h->src_addr));
	memcpy(&h->dst_addr, dst, sizeof(h->dst_addr));
	return h;
}

/* RFC 4443 2.4 (e): about what no error is ever sent; Packet Too Big may answer multicast. */
static bool
deserves_error(
	const struct rte_mbuf *m, const struct packet_view *view, const struct rte_ipv6_hdr *h)
{
	static const uint8_t none[16];
	uint32_t off = view->stop == PACKET_STOP_NONE ? view->l4_off : view->rest_off;
	uint8_t buf[1];
	const uint8_t *p;

	if (m->port == IP_OWN || compat_ip6_dst(h)[0] == 0xff || compat_ip6_src(h)[0] == 0xff ||
		memcmp(&h->src_addr, none, sizeof(none)) == 0)
		return false;
	if ((view->flags & PACKET_F_FRAGMENT) != 0 && (view->flags & PACKET_F_FIRST_FRAG) == 0)
		return false;
	if (off == 0 || view->l4_proto != IPPROTO_ICMPV6)
		return true;
	p = packet_read(m, off, 1, buf);
	return p != NULL && *p >= ICMP6_INFOMSG_MASK && *p != ND_REDIRECT;
}

static const struct route_address *
error_source(const struct router *ip, const struct rte_mbuf *m, const void *to)
{
	const struct route_address *a = NULL;
	struct route_path path = { .ifindex = 0 };
	const struct port *port = port_get(ip->app, m->port);

	if (route_get(ip->app->route, AF_INET6, to, 0, &path) != NULL && path.ifindex != 0)
		a = route_address_source(ip->app->route, path.ifindex, AF_INET6, to);
	if (a == NULL && port != NULL)
		a = route_address_source(ip->app->route, port->ifindex, AF_INET6, to);
	return a != NULL ? a : route_address_source(ip->app->route, 0, AF_INET6, to);
}

void
ip_icmp6_error(struct router *ip, const struct rte_mbuf *m, const struct packet_view *view,
	uint8_t type, uint8_t code, uint32_t rest)
{
	struct rte_ipv6_hdr buf;
	const struct rte_ipv6_hdr *h = packet_read(m, view->l3_off, sizeof(buf), &buf);
	const size_t headers = sizeof(*h) + sizeof(struct ip_icmp6);
	uint16_t quoted =
		(uint16_t)RTE_MIN((size_t)(view->l3_end - view->l3_off), ERROR_LEN_MAX - headers);
	const struct route_address *src;
	struct ip_icmp6 *icmp;
	struct rte_ipv6_hdr *e;
	struct rte_mbuf *out;
	const void *quote;

	if (h == NULL || !deserves_error(m, view, h) ||
		!ip_may_send_error(ip, AF_INET6, compat_ip6_src(h), type, code))
		return;
	if ((src = ip_ipsec_source(ip, m, AF_INET6, compat_ip6_dst(h))) == NULL &&
		(src = error_source(ip, m, compat_ip6_src(h))) == NULL)
		return;
	e = ip_icmp6_make(ip, &out, (uint16_t)(sizeof(*icmp) + quoted), HOP_LIMIT, src->addr,
		compat_ip6_src(h));
	if (e == NULL)
		return;
	ip_ipsec_quote(ip, out, m);
	icmp = (void *)(e + 1);
	icmp->h.icmp6_type = type;
	icmp->h.icmp6_code = code;
	icmp->h.icmp6_dataun.icmp6_un_data32[0] = rte_cpu_to_be_32(rest);
	quote = packet_read(m, view->l3_off, quoted, icmp + 1);
	if (quote != NULL && quote != icmp + 1)
		memcpy(icmp + 1, quote, quoted);
	icmp->h.icmp6_cksum = ip_icmp6_sum(e, icmp);
	ip_output(ip, out, AF_INET6, compat_ip6_dst(e), RTE_ETHER_HDR_LEN);
}

/* Without the extension headers of the request. */
static void
echo_reply(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t l3_off = view->l4_off - (uint32_t)sizeof(struct rte_ipv6_hdr);
	struct rte_ipv6_hdr *h = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, l3_off);
	struct ip_icmp6 *icmp = rte_pktmbuf_mtod_offset(m, struct ip_icmp6 *, view->l4_off);
	const struct port *port = port_get(ip->app, m->port);
	uint8_t to[16];
	uint32_t sum;

	memmove(h, rte_pktmbuf_mtod_offset(m, const void *, view->l3_off), sizeof(*h));
	h->proto = IPPROTO_ICMPV6;
	h->payload_len = rte_cpu_to_be_16((uint16_t)(view->l3_end - view->l4_off));
	/* The sum changes by the type alone: 128 becomes 129. */
	sum = (uint32_t)(uint16_t)~icmp->h.icmp6_cksum + RTE_BE16(0x0100);
	icmp->h.icmp6_cksum = (uint16_t) ~(sum + (sum > 0xffff));
	icmp->h.icmp6_type = ICMP6_ECHO_REPLY;
	memcpy(to, &h->src_addr, sizeof(to));
	memcpy(&h->src_addr, &h->dst_addr, sizeof(to));
	memcpy(&h->dst_addr, to, sizeof(to));
	h->hop_limits = HOP_LIMIT;
	m->port = IP_OWN;
	ip_trim_segments(m, view->l3_end);
	rte_pktmbuf_adj(m, (uint16_t)(l3_off - RTE_ETHER_HDR_LEN));
	if (to[0] == 0xfe && (to[1] & 0xc0) == 0x80 && port != NULL)
		ip_output_to(ip, m, port->ifindex, AF_INET6, to, RTE_ETHER_HDR_LEN);
	else
		ip_output(ip, m, AF_INET6, to, RTE_ETHER_HDR_LEN);
}

static bool
sum_is_good(const struct rte_mbuf *m, const struct packet_view *view)
{
	struct rte_ipv6_hdr pseudo = { .proto = IPPROTO_ICMPV6 };
	uint32_t len = view->l3_end - view->l4_off;
	uint32_t sum;

	memcpy(&pseudo.src_addr, rte_pktmbuf_mtod_offset(m, const void *, view->src_off), 16);
	memcpy(&pseudo.dst_addr, rte_pktmbuf_mtod_offset(m, const void *, view->dst_off), 16);
	pseudo.payload_len = rte_cpu_to_be_16((uint16_t)len);
	sum = ip_sum(m, view->l4_off, len);
	sum += rte_ipv6_phdr_cksum(&pseudo, 0);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static bool
is_neighbour_discovery(const struct ip_icmp6 *icmp)
{
	return icmp->h.icmp6_type >= ND_ROUTER_SOLICIT && icmp->h.icmp6_type <= ND_REDIRECT;
}

void
ip_icmp6_receive(
	struct router *ip, struct rte_mbuf *m, const struct packet_view *view, bool was_fragments)
{
	const struct ip_icmp6 *icmp;
	const uint8_t *dst;

	if (view->stop != PACKET_STOP_NONE || view->l4_proto != IPPROTO_ICMPV6 ||
		(view->flags & PACKET_F_ROUTED) != 0) {
		ip_drop(ip, DROP_NO_HOST_PATH, m);
		return;
	}
	/* What was put together from fragments is a chain, its headers in front. */
	if (m->data_len < view->l4_off + sizeof(*icmp) && rte_pktmbuf_linearize(m) != 0) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return;
	}
	if (view->l3_end - view->l4_off < sizeof(*icmp) || !sum_is_good(m, view)) {
		ip_drop(ip, DROP_IP_MALFORMED, m);
		return;
	}
	icmp = rte_pktmbuf_mtod_offset(m, const struct ip_icmp6 *, view->l4_off);
	dst = rte_pktmbuf_mtod_offset(m, const uint8_t *, view->l3_off + 24);
	if (is_neighbour_discovery(icmp) && was_fragments)
		ip_drop(ip, DROP_ND_MALFORMED, m); /* RFC 6980 */
	else if (is_neighbour_discovery(icmp))
		ip_nd_receive(ip, m, view);
	else if (icmp->h.icmp6_type == ICMP6_ECHO_REQUEST && dst[0] != 0xff)
		echo_reply(ip, m, view);
	else
		ip_drop(ip, DROP_IP_CONSUMED, m);
}
