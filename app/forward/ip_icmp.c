/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* ICMP (RFC 792, RFC 1812 section 4.3): echo replies and errors. */

#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "app.h"
#include "forward/ip.h"
#include "forward/ip_burst.h"
#include "forward/ip_esp.h"

#define ERROR_LEN_MAX 576 /* of the whole datagram: RFC 1812 4.3.2.3 */
#define TTL 64
#define TOS_CONTROL 0xc0 /* internetwork control: RFC 1812 4.3.2.5 */

static bool
is_unicast(uint32_t be)
{
	uint32_t top = rte_be_to_cpu_32(be) >> 24;

	return top != 0 && top != 127 && top < 224;
}

/* RFC 1812 4.3.2.7: about what no error is ever sent. */
static bool
deserves_error(
	const struct rte_mbuf *m, const struct packet_view *view, const struct rte_ipv4_hdr *h)
{
	uint8_t buf[1];
	const uint8_t *p = packet_read(m, 0, 1, buf);

	if (m->port == IP_OWN || p == NULL || (*p & 1) != 0 || !is_unicast(h->src_addr) ||
		!is_unicast(h->dst_addr))
		return false;
	if ((h->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)) != 0)
		return false;
	if (h->next_proto_id != IPPROTO_ICMP)
		return true;
	/* About ICMP only if it is known and no error. */
	p = packet_read(m, view->l3_off + rte_ipv4_hdr_len(h), 1, buf);
	return p != NULL && *p <= NR_ICMP_TYPES && *p != ICMP_DEST_UNREACH &&
		*p != ICMP_SOURCE_QUENCH && *p != ICMP_REDIRECT && *p != ICMP_TIME_EXCEEDED &&
		*p != ICMP_PARAMETERPROB;
}

/* Our address that the sender sees: that of the way back, or of the port it came in by. */
static const struct route_address *
error_source(const struct router *ip, const struct rte_mbuf *m, const void *to)
{
	const struct route_address *a = NULL;
	struct route_path path = { .ifindex = 0 };
	const struct port *port = port_get(ip->app, m->port);

	if (route_get(ip->app->route, AF_INET, to, 0, &path) != NULL && path.ifindex != 0)
		a = route_address_source(ip->app->route, path.ifindex, AF_INET,
			path.has_gateway ? path.gateway : to);
	if (a == NULL && port != NULL)
		a = route_address_source(ip->app->route, port->ifindex, AF_INET, to);
	return a != NULL ? a : route_address_source(ip->app->route, 0, AF_INET, to);
}

static void
fill_ipv4(struct router *ip, struct rte_ipv4_hdr *h, uint16_t len, uint8_t tos, uint32_t src,
	uint32_t dst)
{
	*h = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.type_of_service = tos,
		.total_length = rte_cpu_to_be_16(len),
		.packet_id = rte_cpu_to_be_16(++ip->id),
		.time_to_live = TTL,
		.next_proto_id = IPPROTO_ICMP,
		.src_addr = src,
		.dst_addr = dst,
	};
	h->hdr_checksum = rte_ipv4_cksum(h);
}

static void
send_error(struct router *ip, const struct rte_mbuf *m, const struct packet_view *view,
	const struct rte_ipv4_hdr *h, uint8_t type, uint8_t code, uint32_t rest)
{
	const size_t headers = sizeof(*h) + sizeof(struct rte_icmp_hdr);
	uint16_t quoted =
		(uint16_t)RTE_MIN((size_t)(view->l3_end - view->l3_off), ERROR_LEN_MAX - headers);
	const struct route_address *src = ip_ipsec_source(ip, m, AF_INET, &h->dst_addr);
	struct rte_icmp_hdr *icmp;
	struct rte_mbuf *e;
	const void *quote;
	uint32_t from;
	uint8_t *p;

	if (src == NULL)
		src = error_source(ip, m, &h->src_addr);
	if (src == NULL || (e = ip_alloc(ip)) == NULL)
		return;
	ip_ipsec_quote(ip, e, m);
	p = (uint8_t *)rte_pktmbuf_append(e, (uint16_t)(RTE_ETHER_HDR_LEN + headers + quoted));
	if (p == NULL) {
		ip_drop(ip, DROP_IP_NOBUF, e);
		return;
	}
	p += RTE_ETHER_HDR_LEN;
	memcpy(&from, src->addr, sizeof(from));
	fill_ipv4(ip, (void *)p, (uint16_t)(headers + quoted),
		(h->type_of_service & 0x1e) | TOS_CONTROL, from, h->src_addr);
	icmp = (void *)(p + sizeof(*h));
	*icmp = (struct rte_icmp_hdr){ .icmp_type = type, .icmp_code = code };
	icmp->icmp_seq_nb =
		rte_cpu_to_be_16((uint16_t)rest); /* the MTU of "fragmentation needed" */
	quote = packet_read(m, view->l3_off, quoted, icmp + 1);
	if (quote != NULL && quote != icmp + 1)
		memcpy(icmp + 1, quote, quoted);
	icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, sizeof(*icmp) + quoted);
	ip_output(ip, e, AF_INET, &h->src_addr, RTE_ETHER_HDR_LEN);
}

void
ip_icmp_error(struct router *ip, const struct rte_mbuf *m, const struct packet_view *view,
	uint8_t type, uint8_t code, uint32_t rest)
{
	struct rte_ipv4_hdr buf;
	const struct rte_ipv4_hdr *h = packet_read(m, view->l3_off, sizeof(buf), &buf);

	if (h != NULL && deserves_error(m, view, h) &&
		ip_may_send_error(ip, AF_INET, &h->src_addr, type, code))
		send_error(ip, m, view, h, type, code, rest);
}

/*
 * Turns the request into its reply, without its options, and sends it back: the sum changes by the
 * type alone.
 */
static void
echo_reply(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t l3_off = view->l4_off - (uint32_t)sizeof(struct rte_ipv4_hdr);
	struct rte_ipv4_hdr *h = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, l3_off);
	struct rte_icmp_hdr *icmp = rte_pktmbuf_mtod_offset(m, struct rte_icmp_hdr *, view->l4_off);
	uint32_t sum, to, from;
	uint16_t id = ++ip->id;

	memmove(h, rte_pktmbuf_mtod_offset(m, const void *, view->l3_off), sizeof(*h));
	to = h->src_addr;
	from = h->dst_addr;
	h->version_ihl = RTE_IPV4_VHL_DEF;
	h->total_length = rte_cpu_to_be_16((uint16_t)(view->l3_end - l3_off));
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	sum = (uint32_t)icmp->icmp_cksum + RTE_BE16(RTE_IP_ICMP_ECHO_REQUEST << 8);
	icmp->icmp_cksum = (uint16_t)(sum + (sum >= 0xffff));
	h->src_addr = from;
	h->dst_addr = to;
	h->time_to_live = TTL;
	h->packet_id = rte_cpu_to_be_16(id);
	h->fragment_offset = 0;
	h->hdr_checksum = 0;
	h->hdr_checksum = rte_ipv4_cksum(h);
	m->port = IP_OWN;
	ip_trim_segments(m, view->l3_end);
	rte_pktmbuf_adj(m, (uint16_t)(l3_off - RTE_ETHER_HDR_LEN));
	ip_output(ip, m, AF_INET, &to, RTE_ETHER_HDR_LEN);
}

/* rte_raw_cksum_mbuf() errs where a segment begins at an odd offset. */
uint32_t
ip_sum(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	uint32_t sum = 0, done = 0;

	for (; m != NULL && done < len; m = m->next) {
		uint32_t here = m->data_len > off ? RTE_MIN(m->data_len - off, len - done) : 0;
		uint16_t part;

		if (here > 0) {
			part = rte_raw_cksum(rte_pktmbuf_mtod_offset(m, const void *, off), here);
			sum += (done & 1) != 0 ? rte_bswap16(part) : part;
		}
		off -= RTE_MIN(off, (uint32_t)m->data_len);
		done += here;
	}
	return sum;
}

static bool
icmp_sum_is_good(const struct rte_mbuf *m, const struct packet_view *view)
{
	uint32_t sum = ip_sum(m, view->l4_off, view->l3_end - view->l4_off);

	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

void
ip_icmp_receive(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	struct rte_icmp_hdr buf;
	const struct rte_icmp_hdr *icmp;

	if (view->stop != PACKET_STOP_NONE || view->l4_proto != IPPROTO_ICMP) {
		ip_drop(ip, DROP_NO_HOST_PATH, m);
		return;
	}
	/* What was put together from fragments is a chain, its headers in front. */
	if (m->data_len < view->l4_off + sizeof(buf) && rte_pktmbuf_linearize(m) != 0) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return;
	}
	icmp = view->l3_end - view->l4_off < sizeof(buf)
		? NULL
		: packet_read(m, view->l4_off, sizeof(buf), &buf);
	if (icmp == NULL || !icmp_sum_is_good(m, view))
		ip_drop(ip, DROP_IP_MALFORMED, m);
	else if (icmp->icmp_type == RTE_IP_ICMP_ECHO_REQUEST)
		echo_reply(ip, m, view);
	else
		ip_drop(ip, DROP_IP_CONSUMED, m);
}
