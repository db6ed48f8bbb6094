/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The tunnel's outer header, and what of it goes into the inner one (RFC 4301, 5.1.2; RFC 6040). */

#include <netinet/in.h>
#include <string.h>

#include "internal.h"

#define ECN_CE 3u
#define ECN_ECT1 1u

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t
get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t
sum(const uint8_t *p, uint32_t len, uint32_t more)
{
	for (; len > 1; p += 2, len -= 2)
		more += get16(p);
	if (len > 0)
		more += (uint32_t)p[0] << 8;
	while (more >> 16 != 0)
		more = (more & 0xffff) + (more >> 16);
	return more;
}

/* A word of an IPv4 header changes; its sum stays as right or wrong as it was (RFC 1624). */
static void
ip4_change(uint8_t *ip, uint32_t at, uint32_t to)
{
	uint32_t more = (~get16(ip + 10) & 0xffff) + (~get16(ip + at) & 0xffff) + to;

	put16(ip + at, to);
	while (more >> 16 != 0)
		more = (more & 0xffff) + (more >> 16);
	put16(ip + 10, ~more);
}

static uint8_t
tos_of(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

static void
tos_set(uint8_t *ip, uint8_t tos)
{
	if (ip[0] >> 4 == 4) {
		ip4_change(ip, 0, (uint32_t)ip[0] << 8 | tos);
		return;
	}
	ip[0] = (uint8_t)(0x60 | tos >> 4);
	ip[1] = (uint8_t)((ip[1] & 0x0f) | tos << 4);
}

void
nic_ttl_less(uint8_t *ip)
{
	if (ip[0] >> 4 == 4)
		ip4_change(ip, 8, get16(ip + 8) - 0x100);
	else
		ip[7]--;
}

uint32_t
nic_inner_len(const uint8_t *ip, uint32_t len)
{
	uint32_t total, header;

	if (len < 20)
		return 0;
	if (ip[0] >> 4 == 4) {
		header = (ip[0] & 15u) * 4;
		total = get16(ip + 2);
		if (header < 20)
			return 0;
	} else if (ip[0] >> 4 == 6 && len >= 40) {
		header = 40;
		total = 40 + get16(ip + 4);
	} else {
		return 0;
	}
	return total >= header && total <= len ? total : 0;
}

static void
outer_write4(struct nic_session *s, const uint8_t *inner, uint8_t *ip, uint8_t tos, uint32_t len)
{
	const struct rte_security_ipsec_tunnel_param *t = &s->ipsec.tunnel;
	bool df = t->ipv4.df != 0;

	if (s->ipsec.options.copy_df && inner[0] >> 4 == 4)
		df = (inner[6] & 0x40) != 0;
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = tos;
	put16(ip + 2, len);
	put16(ip + 4, ++s->id);
	ip[6] = df ? 0x40 : 0;
	ip[8] = t->ipv4.ttl;
	ip[9] = s->ipsec.options.udp_encap ? IPPROTO_UDP : IPPROTO_ESP;
	memcpy(ip + 12, &t->ipv4.src_ip, 4);
	memcpy(ip + 16, &t->ipv4.dst_ip, 4);
	put16(ip + 10, ~sum(ip, 20, 0));
}

static void
outer_write6(struct nic_session *s, const uint8_t *inner, uint8_t *ip, uint8_t tos, uint32_t len)
{
	const struct rte_security_ipsec_tunnel_param *t = &s->ipsec.tunnel;
	uint32_t label = t->ipv6.flabel;

	if (s->ipsec.options.copy_flabel && inner[0] >> 4 == 6)
		label = (inner[1] & 15u) << 16 | get16(inner + 2);
	ip[0] = (uint8_t)(0x60 | tos >> 4);
	ip[1] = (uint8_t)(tos << 4 | (label >> 16 & 15));
	put16(ip + 2, label);
	put16(ip + 4, len - 40);
	ip[6] = s->ipsec.options.udp_encap ? IPPROTO_UDP : IPPROTO_ESP;
	ip[7] = t->ipv6.hlimit;
	memcpy(ip + 8, &t->ipv6.src_addr, 16);
	memcpy(ip + 24, &t->ipv6.dst_addr, 16);
}

/* Writes outer IP and UDP headers for so many bytes of ESP, and says how long they are. */
uint32_t
nic_outer_write(struct nic_session *s, const uint8_t *inner, uint8_t *out, uint32_t esp_len)
{
	const struct rte_security_ipsec_tunnel_param *t = &s->ipsec.tunnel;
	bool v6 = t->type == RTE_SECURITY_IPSEC_TUNNEL_IPV6;
	uint32_t ip_len = v6 ? 40 : 20, udp_len = s->ipsec.options.udp_encap ? 8 : 0;
	uint8_t tos = (uint8_t)((v6 ? t->ipv6.dscp : t->ipv4.dscp) << 2), from = tos_of(inner);

	if (s->ipsec.options.copy_dscp)
		tos = from & 0xfc;
	if (s->ipsec.options.ecn)
		tos |= from & 3;
	(v6 ? outer_write6 : outer_write4)(s, inner, out, tos, ip_len + udp_len + esp_len);
	if (udp_len != 0) {
		put16(out + ip_len, s->ipsec.udp.sport);
		put16(out + ip_len + 2, s->ipsec.udp.dport);
		put16(out + ip_len + 4, udp_len + esp_len);
		put16(out + ip_len + 6, 0);
	}
	return ip_len + udp_len;
}

/* The checksum that UDP needs over IPv6: over the finished packet of `len` bytes. */
void
nic_outer_udp6(uint8_t *ip, uint32_t len)
{
	uint32_t check = ~sum(ip + 8, len - 8, IPPROTO_UDP + len - 40) & 0xffff;

	put16(ip + 46, check == 0 ? 0xffff : check);
}

bool
nic_outer_verify(const struct nic_session *s, const uint8_t *in, const struct nic_esp *at)
{
	const struct rte_security_ipsec_tunnel_param *t = &s->ipsec.tunnel;
	const uint8_t *ip = in + at->l3;

	if (s->ipsec.options.tunnel_hdr_verify == RTE_SECURITY_IPSEC_TUNNEL_VERIFY_SRC_DST_ADDR &&
		(at->v6 ? memcmp(ip + 8, &t->ipv6.src_addr, 16)
			: memcmp(ip + 12, &t->ipv4.src_ip, 4)) != 0)
		return false;
	return !s->ipsec.options.udp_ports_verify || !at->udp ||
		(get16(in + at->esp - 8) == s->ipsec.udp.sport &&
			get16(in + at->esp - 6) == s->ipsec.udp.dport);
}

/* The inner header gets what the outer one says. False: RFC 6040 has it dropped. */
bool
nic_inner_finish(const struct nic_session *s, const struct nic_esp *at, uint8_t *inner)
{
	uint8_t tos = tos_of(inner), from = at->tos;

	if (s->ipsec.options.ecn) {
		uint8_t in = tos & 3, out = from & 3;

		if (out == ECN_CE && in == 0)
			return false;
		if (in != 0 && (out == ECN_CE || (out == ECN_ECT1 && in != ECN_CE)))
			tos = (uint8_t)((tos & 0xfc) | out);
	}
	if (s->ipsec.options.copy_dscp)
		tos = (uint8_t)((from & 0xfc) | (tos & 3));
	if (tos != tos_of(inner))
		tos_set(inner, tos);
	if (s->ipsec.options.dec_ttl)
		nic_ttl_less(inner);
	return true;
}
