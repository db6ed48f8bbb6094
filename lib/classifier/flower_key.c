/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The key of a packet, by its view. Nothing is read that the view does not vouch for. */

#include <netinet/in.h>

#include <rte_mbuf.h>

#include "classifier/flower_mask.h"

#define ARP_LEN 28u
#define ARP_REQUEST 1
#define ARP_REPLY 2

/* `len` bytes at `off`: in place where the first segment has them. */
static inline const uint8_t *
bytes_at(const struct rte_mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	if (__builtin_expect(off + len <= m->data_len, 1))
		return rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
	return packet_read(m, off, len, buf);
}

static inline void
read_link(const struct rte_mbuf *m, const struct packet_view *view, uint32_t ifindex,
	struct flower_key *key)
{
	uint8_t buf[22];
	const uint8_t *p = bytes_at(m, 0, 14, buf);

	key->indev = ifindex;
	if (p == NULL)
		return;
	memcpy(key->eth_dst, p, 6);
	memcpy(key->eth_src, p + 6, 6);
	if (view->n_vlan == 0 || (p = bytes_at(m, 0, 18, buf)) == NULL)
		return;
	key->present |= FLOWER_HAS_VLAN;
	memcpy(&key->vlan_tpid, p + 12, 2);
	memcpy(&key->vlan_tci, p + 14, 2);
	if (view->n_vlan == 1 || (p = bytes_at(m, 0, 22, buf)) == NULL)
		return;
	key->present |= FLOWER_HAS_CVLAN;
	memcpy(&key->cvlan_tpid, p + 16, 2);
	memcpy(&key->cvlan_tci, p + 18, 2);
}

static void
read_arp(const struct rte_mbuf *m, const struct packet_view *view, struct flower_key *key)
{
	/* Ethernet and IPv4, 6 and 4 bytes of address, as Linux's dissector asks. */
	static const uint8_t form[] = { 0, 1, 8, 0, 6, 4, 0 };
	uint8_t buf[ARP_LEN];
	const uint8_t *p = bytes_at(m, view->l3_off, ARP_LEN, buf);

	if (p == NULL || view->l3_off + ARP_LEN > m->pkt_len ||
		memcmp(p, form, sizeof(form)) != 0 || (p[7] != ARP_REQUEST && p[7] != ARP_REPLY))
		return;
	key->present |= FLOWER_HAS_ARP;
	key->a.arp.op = p[7];
	memcpy(key->a.arp.sha, p + 8, 6);
	memcpy(&key->a.arp.sip, p + 14, 4);
	memcpy(key->a.arp.tha, p + 18, 6);
	memcpy(&key->a.arp.tip, p + 24, 4);
}

static inline void
read_network(const struct rte_mbuf *m, const struct packet_view *view, struct flower_key *key)
{
	uint8_t buf[40];
	const uint8_t *p;

	key->eth_type = rte_cpu_to_be_16(view->ether_type);
	if ((view->flags & PACKET_F_L3) == 0) {
		if (view->l3 == PACKET_L3_ARP)
			read_arp(m, view, key);
		return;
	}
	key->ip_proto = view->l4_proto;
	if ((view->flags & PACKET_F_FRAGMENT) != 0)
		key->ip_flags = (view->flags & PACKET_F_FIRST_FRAG) != 0
			? FLOWER_FRAGMENT | FLOWER_FIRST_FRAGMENT
			: FLOWER_FRAGMENT;
	if (view->l3 == PACKET_L3_IPV4) {
		if ((p = bytes_at(m, view->l3_off, 20, buf)) == NULL)
			return;
		key->present |= FLOWER_HAS_IP | FLOWER_HAS_IPV4;
		key->ip_tos = p[1];
		key->ip_ttl = p[8];
		memcpy(&key->a.ip4, p + 12, 8);
	} else {
		if ((p = bytes_at(m, view->l3_off, 40, buf)) == NULL)
			return;
		key->present |= FLOWER_HAS_IP | FLOWER_HAS_IPV6;
		key->ip_tos = (uint8_t)(p[0] << 4 | p[1] >> 4);
		key->ip_ttl = p[7];
		memcpy(&key->a.ip6, p + 8, 32);
	}
}

/* Where layer 4 begins, in a first fragment too, or 0. */
static inline uint32_t
transport_off(const struct packet_view *view)
{
	if (__builtin_expect(view->stop == PACKET_STOP_NONE, 1))
		return view->l4_off;
	return (view->flags & PACKET_F_FIRST_FRAG) != 0 ? view->rest_off : 0;
}

static inline bool
has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP ||
		proto == IPPROTO_DCCP || proto == IPPROTO_UDPLITE;
}

/* A header that is cut has no ports, not port 0. */
static inline void
read_transport(const struct rte_mbuf *m, const struct packet_view *view, struct flower_key *key)
{
	uint32_t off = transport_off(view);
	uint8_t buf[4], proto = view->l4_proto;
	const uint8_t *p;

	if (off == 0)
		return;
	if (has_ports(proto)) {
		if (off + 4 > view->l3_end || (p = bytes_at(m, off, 4, buf)) == NULL)
			return;
		key->present |= FLOWER_HAS_PORTS;
		memcpy(&key->src_port, p, 4);
		if (proto != IPPROTO_TCP || off + 14 > view->l3_end ||
			(p = bytes_at(m, off + 12, 2, buf)) == NULL)
			return;
		key->present |= FLOWER_HAS_TCP;
		memcpy(&key->tcp_flags, p, 2);
		key->tcp_flags &= rte_cpu_to_be_16(0x0fff);
	} else if (proto == (view->l3 == PACKET_L3_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
		if (off + 2 > view->l3_end || (p = bytes_at(m, off, 2, buf)) == NULL)
			return;
		key->present |= FLOWER_HAS_ICMP;
		key->icmp_type = p[0];
		key->icmp_code = p[1];
	}
}

static inline void
read_key(const struct rte_mbuf *m, const struct packet_view *view, uint32_t ifindex, uint32_t parts,
	struct flower_key *key)
{
	memset(key, 0, sizeof(*key));
	if ((parts & KEY_NETWORK) != 0)
		read_network(m, view, key);
	if ((parts & KEY_TRANSPORT) != 0)
		read_transport(m, view, key);
	if ((parts & KEY_LINK) != 0)
		read_link(m, view, ifindex, key);
}

static inline uint32_t
incoming(const struct flower_keys *keys, const struct rte_mbuf *m)
{
	return keys->ifindex != 0 ? keys->ifindex : packet_meta(m, keys->meta_offset)->iif;
}

void
flower_keys_read(
	struct flower_keys *keys, const struct packet_vector *vector, uint64_t mask, uint32_t parts)
{
	unsigned int i;

	if ((parts & ~keys->parts) != 0) {
		keys->parts |= parts;
		keys->valid = 0;
	}
	mask &= ~keys->valid;
	keys->valid |= mask;
	packet_mask_for_each (i, mask)
		read_key(vector->pkts[i], &vector->views[i], incoming(keys, vector->pkts[i]),
			keys->parts, &keys->fields[i]);
}

/* What headers are present lies in word 0 but is read with its own part. */
uint32_t
flower_key_parts(const struct flower_pattern *pattern)
{
	uint32_t parts = 0;

	for (unsigned int w = 0; w < FLOWER_WORDS; w++) {
		if (pattern->mask[w] == 0)
			continue;
		if (w >= 6)
			parts |= KEY_LINK;
		else if (w == 1)
			parts |= KEY_TRANSPORT;
		else
			parts |= KEY_NETWORK;
	}
	return pattern->ranged != 0 ? parts | KEY_TRANSPORT : parts;
}
