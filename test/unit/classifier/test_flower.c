/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "fixture.h"

#include <netinet/in.h>

#include "classifier/flower.h"

#define FULL16 0xffff
#define FULL32 0xffffffffu

/* A frame under construction. */
struct frame {
	uint8_t data[256];
	uint32_t len;
	uint32_t l3; /* offset of layer 3 */
};

static void
add(struct frame *fr, const void *data, uint32_t len)
{
	memcpy(fr->data + fr->len, data, len);
	fr->len += len;
}

static void
add16(struct frame *fr, uint16_t v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	add(fr, b, 2);
}

static void
add_ether(struct frame *fr, uint8_t dst, uint8_t src)
{
	uint8_t mac[6] = { 2, 0, 0, 0, 0, dst };

	fr->len = 0;
	add(fr, mac, 6);
	mac[5] = src;
	add(fr, mac, 6);
}

static void
add_tag(struct frame *fr, uint16_t tpid, uint16_t tci)
{
	add16(fr, tpid);
	add16(fr, tci);
}

/* IPv4 with `payload` bytes to follow. frag: flags and offset as in the header. */
static void
add_ip4(struct frame *fr, uint8_t proto, uint32_t src, uint32_t dst, uint16_t payload,
	uint16_t frag)
{
	uint8_t h[20] = { 0x45, 0xb8, 0, 0, 0, 0, (uint8_t)(frag >> 8), (uint8_t)frag, 17, proto };

	add16(fr, ETH_P_IP);
	fr->l3 = fr->len;
	h[3] = (uint8_t)(20 + payload);
	src = htonl(src);
	dst = htonl(dst);
	memcpy(h + 12, &src, 4);
	memcpy(h + 16, &dst, 4);
	add(fr, h, 20);
}

static void
add_ip6(struct frame *fr, uint8_t proto, uint8_t src, uint8_t dst, uint16_t payload)
{
	uint8_t h[40] = { 0x60 | 0x0b, 0x80, 0, 0, 0, (uint8_t)payload, proto, 33, 0x20, 1, 0x0d,
		0xb8 };

	add16(fr, ETH_P_IPV6);
	fr->l3 = fr->len;
	memcpy(h + 24, h + 8, 4);
	h[23] = src;
	h[39] = dst;
	add(fr, h, 40);
}

static void
add_ports(struct frame *fr, uint16_t src, uint16_t dst)
{
	uint8_t rest[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x12 };

	add16(fr, src);
	add16(fr, dst);
	add(fr, rest, 16);
}

static void
put(struct fixture *f, const struct frame *fr)
{
	put_frame(f, fr->data, fr->len);
}

static void
put_udp4(struct fixture *f, uint32_t src, uint32_t dst, uint16_t sport, uint16_t dport)
{
	struct frame fr;

	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_UDP, src, dst, 20, 0);
	add_ports(&fr, sport, dport);
	put(f, &fr);
}

static void
match_ip4(struct flower_match *m, uint32_t src, uint32_t src_mask, uint32_t dst, uint32_t dst_mask)
{
	m->addresses = FLOWER_IPV4;
	m->key.eth_type = htons(ETH_P_IP);
	m->mask.eth_type = FULL16;
	m->key.a.ip4.src = htonl(src);
	m->mask.a.ip4.src = htonl(src_mask);
	m->key.a.ip4.dst = htonl(dst);
	m->mask.a.ip4.dst = htonl(dst_mask);
}

static struct classifier_rule_conf
conf_of(uint32_t prio, uint16_t protocol, const struct flower_match *m)
{
	return (struct classifier_rule_conf){
		.place = { .prio = prio, .protocol = protocol, .kind = CLASSIFIER_FLOWER },
		.flower = m,
	};
}

static struct classifier_rule *
add_flower(struct fixture *f, uint32_t prio, const struct flower_match *m, int32_t verdict)
{
	struct classifier_rule_conf conf = conf_of(prio, ETH_P_ALL, m);
	struct classifier_rule *rule = NULL;

	assert_int_equal(
		set_rule(f, &conf, CLASSIFIER_CREATE | CLASSIFIER_EXCL, verdict, &rule), 0);
	return rule;
}

/* Adds a rule that drops what matches, runs, and tells which packets matched; takes it away again.
 */
static uint64_t
matched(struct fixture *f, const struct flower_match *m)
{
	struct classifier_rule *rule = add_flower(f, 1, m, TC_ACT_SHOT);

	run(f);
	assert_int_equal(classifier_rule_hits(rule),
		__builtin_popcountll(f->result.dropped[CLASSIFIER_DROP_SHOT]));
	classifier_rule_del(rule);
	grace_period(f);
	return f->result.dropped[CLASSIFIER_DROP_SHOT];
}

static void
flower_matches_addresses_and_prefixes(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };

	put_udp4(f, 0xc0000201, 0xc6336401, 1000, 53);
	put_udp4(f, 0xc0000202, 0xc6336401, 1000, 53);
	put_udp4(f, 0xc6336407, 0xc0000201, 1001, 54);
	match_ip4(&m, 0xc0000201, FULL32, 0, 0);
	assert_int_equal(matched(f, &m), 0x1);
	match_ip4(&m, 0xc00002ff, 0xffffff00, 0, 0);
	assert_int_equal(matched(f, &m), 0x3);
	match_ip4(&m, 0, 0, 0xc6336400, 0xffffff00);
	assert_int_equal(matched(f, &m), 0x3);
	match_ip4(&m, 0xc0000202, FULL32, 0xc6336401, FULL32);
	assert_int_equal(matched(f, &m), 0x2);
	match_ip4(&m, 0xcb007101, FULL32, 0, 0);
	assert_int_equal(matched(f, &m), 0);
}

static void
flower_matches_ports_and_protocol(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct frame fr;

	put_udp4(f, 0xc0000201, 0xc6336401, 1000, 53);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_TCP, 0xc0000201, 0xc6336401, 20, 0);
	add_ports(&fr, 1000, 53);
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip6(&fr, IPPROTO_TCP, 1, 2, 20);
	add_ports(&fr, 1000, 54);
	put(f, &fr);
	m.key.src_port = htons(1000);
	m.mask.src_port = FULL16;
	assert_int_equal(matched(f, &m), 0x7);
	m.key.dst_port = htons(53);
	m.mask.dst_port = FULL16;
	assert_int_equal(matched(f, &m), 0x3);
	m.key.ip_proto = IPPROTO_TCP;
	m.mask.ip_proto = 0xff;
	assert_int_equal(matched(f, &m), 0x2);
	m.key.eth_type = htons(ETH_P_IPV6);
	m.mask.eth_type = FULL16;
	assert_int_equal(matched(f, &m), 0);
	m.key.dst_port = htons(54);
	assert_int_equal(matched(f, &m), 0x4);
	m.key.tcp_flags = htons(0x012);
	m.mask.tcp_flags = htons(0x0fff);
	assert_int_equal(matched(f, &m), 0x4);
	m.key.tcp_flags = htons(0x002);
	assert_int_equal(matched(f, &m), 0);
	m.mask.tcp_flags = htons(0x002);
	assert_int_equal(matched(f, &m), 0x4);
}

static void
flower_matches_ip6(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { .addresses = FLOWER_IPV6 };
	struct frame fr;

	for (uint8_t i = 1; i <= 3; i++) {
		add_ether(&fr, 1, 2);
		add_ip6(&fr, IPPROTO_UDP, i, 9, 20);
		add_ports(&fr, 1, 2);
		put(f, &fr);
	}
	put_udp4(f, 0x20010db8, 0, 1, 2);
	m.key.eth_type = htons(ETH_P_IPV6);
	m.mask.eth_type = FULL16;
	memcpy(m.key.a.ip6.src, fr.data + fr.l3 + 8, 16);
	memset(m.mask.a.ip6.src, 0xff, 4);
	assert_int_equal(matched(f, &m), 0x7);
	memset(m.mask.a.ip6.src, 0xff, 16);
	assert_int_equal(matched(f, &m), 0x4);
	memcpy(m.key.a.ip6.dst, fr.data + fr.l3 + 24, 16);
	memset(m.mask.a.ip6.dst, 0xff, 16);
	assert_int_equal(matched(f, &m), 0x4);
	/* The whole traffic class, which straddles bytes, and the hop limit. */
	m.key.ip_tos = 0xb8;
	m.mask.ip_tos = 0xfc;
	m.key.ip_ttl = 33;
	m.mask.ip_ttl = 0xff;
	assert_int_equal(matched(f, &m), 0x4);
	m.key.ip_ttl = 17;
	assert_int_equal(matched(f, &m), 0);
}

static void
flower_matches_link_layer_and_tags(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct frame fr;

	put_udp4(f, 0xc0000201, 0xc6336401, 1000, 53);
	add_ether(&fr, 7, 8);
	add_tag(&fr, ETH_P_8021AD, 0x6064);
	add_tag(&fr, ETH_P_8021Q, 0x0005);
	add_ip4(&fr, IPPROTO_UDP, 0xc0000201, 0xc6336401, 20, 0);
	add_ports(&fr, 1000, 53);
	put(f, &fr);
	add_ether(&fr, 7, 9);
	add_tag(&fr, ETH_P_8021Q, 0x0000);
	add_ip4(&fr, IPPROTO_UDP, 0xc0000201, 0xc6336401, 20, 0);
	add_ports(&fr, 1000, 53);
	put(f, &fr);
	m.key.eth_dst[5] = 7;
	m.mask.eth_dst[5] = 0xff;
	assert_int_equal(matched(f, &m), 0x6);
	m.key.eth_src[5] = 9;
	m.mask.eth_src[5] = 0xff;
	assert_int_equal(matched(f, &m), 0x4);
	/* VLAN 0 is a tag; no tag is none. */
	m = (struct flower_match){ 0 };
	m.mask.vlan_tci = htons(0x0fff);
	assert_int_equal(matched(f, &m), 0x4);
	m.key.vlan_tci = htons(0x0064);
	assert_int_equal(matched(f, &m), 0x2);
	m.key.vlan_tci = htons(0x6064);
	m.mask.vlan_tci = htons(0xefff);
	m.key.vlan_tpid = htons(ETH_P_8021AD);
	m.mask.vlan_tpid = FULL16;
	assert_int_equal(matched(f, &m), 0x2);
	m.key.cvlan_tci = htons(5);
	m.mask.cvlan_tci = htons(0x0fff);
	assert_int_equal(matched(f, &m), 0x2);
	m.key.cvlan_tci = htons(0);
	assert_int_equal(matched(f, &m), 0);
	/* The type after the tags. */
	m = (struct flower_match){ 0 };
	m.key.eth_type = htons(ETH_P_IP);
	m.mask.eth_type = FULL16;
	assert_int_equal(matched(f, &m), 0x7);
	m = (struct flower_match){ 0 };
	m.key.indev = 1;
	m.mask.indev = FULL32;
	assert_int_equal(matched(f, &m), 0x7);
	m.key.indev = 2;
	assert_int_equal(matched(f, &m), 0);
	/* One tag and no other: the second has no type. */
	m = (struct flower_match){ 0 };
	m.mask.cvlan_tpid = FULL16;
	assert_int_equal(matched(f, &m), 0x5);
	m.key.vlan_tpid = htons(ETH_P_8021Q);
	m.mask.vlan_tpid = FULL16;
	assert_int_equal(matched(f, &m), 0x4);
}

static void
flower_takes_the_incoming_port_of_each_packet(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };

	for (unsigned int i = 0; i < 3; i++) {
		put_udp4(f, 0xc0000201, 0xc6336401, 1000, 53);
		packet_meta(f->pkts[i], the_meta_offset)->iif = i;
	}
	f->ifindex = 0;
	m.key.indev = 2;
	m.mask.indev = FULL32;
	assert_int_equal(matched(f, &m), 0x4);
	m.key.indev = 1;
	assert_int_equal(matched(f, &m), 0x2);
	f->ifindex = 1;
	assert_int_equal(matched(f, &m), 0x7);
}

static void
flower_matches_arp_and_icmp(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { .addresses = FLOWER_ARP };
	static const uint8_t arp[28] = { 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 7, 192, 0, 2, 1, 0,
		0, 0, 0, 0, 0, 198, 51, 100, 1 };
	struct frame fr;

	add_ether(&fr, 1, 2);
	add16(&fr, ETH_P_ARP);
	add(&fr, arp, sizeof(arp));
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_ICMP, 0xc0000201, 0xc6336401, 20, 0);
	add_ports(&fr, 0x0800, 0);
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip6(&fr, IPPROTO_ICMPV6, 1, 2, 20);
	add_ports(&fr, 0x8000, 0);
	put(f, &fr);
	m.key.a.arp.op = 1;
	m.mask.a.arp.op = 0xff;
	assert_int_equal(matched(f, &m), 0x1);
	m.key.a.arp.tip = htonl(0xc6336401);
	m.mask.a.arp.tip = FULL32;
	m.key.a.arp.sha[5] = 7;
	m.mask.a.arp.sha[5] = 0xff;
	assert_int_equal(matched(f, &m), 0x1);
	m.key.a.arp.sha[5] = 8;
	assert_int_equal(matched(f, &m), 0);
	m = (struct flower_match){ 0 };
	m.mask.icmp_code = 0xff;
	assert_int_equal(matched(f, &m), 0x6);
	m.key.icmp_type = 8;
	m.mask.icmp_type = 0xff;
	assert_int_equal(matched(f, &m), 0x2);
}

static void
flower_C8_ports_only_where_they_are(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct frame fr;

	/* 0: whole, port 0; 1: first fragment; 2: later fragment; 3: header cut; 4: no layer 4 */
	put_udp4(f, 0xc0000201, 0xc6336401, 0, 0);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_UDP, 1, 2, 20, 0x2000);
	add_ports(&fr, 0, 0);
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_UDP, 1, 2, 20, 0x2001);
	add_ports(&fr, 0, 0);
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_UDP, 1, 2, 3, 0);
	add_ports(&fr, 0, 0); /* the frame has more: padding */
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_UDP, 1, 2, 0, 0);
	put(f, &fr);
	add_ether(&fr, 1, 2);
	add_ip4(&fr, IPPROTO_ICMP, 1, 2, 20, 0);
	add_ports(&fr, 0, 0);
	put(f, &fr);
	m.mask.dst_port = FULL16;
	assert_int_equal(matched(f, &m), 0x3);
	m = (struct flower_match){ 0 };
	m.dst_ports = (struct flower_range){ 0, 10 };
	assert_int_equal(matched(f, &m), 0x3);
	m = (struct flower_match){ 0 };
	m.key.ip_flags = FLOWER_FRAGMENT;
	m.mask.ip_flags = FLOWER_FRAGMENT;
	assert_int_equal(matched(f, &m), 0x6);
	m.mask.ip_flags = FLOWER_FRAGMENT | FLOWER_FIRST_FRAGMENT;
	assert_int_equal(matched(f, &m), 0x4);
}

static void
flower_C8_a_cut_chain_has_what_is_there(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct frame fr;

	/* The same frame, in segments cut at any byte, matches as the flat one. */
	add_ether(&fr, 1, 2);
	add_ip6(&fr, IPPROTO_TCP, 1, 2, 20);
	add_ports(&fr, 1000, 2000);
	for (uint32_t cut = 1; cut <= 60; cut++) {
		struct rte_mbuf *seg = test_frame(the_pool, fr.data, fr.len, cut);

		f->pkts[f->vector.n++] = seg;
		f->vector.parsed = false;
		m = (struct flower_match){ .addresses = FLOWER_IPV6 };
		m.key.dst_port = htons(2000);
		m.mask.dst_port = FULL16;
		m.key.tcp_flags = htons(0x012);
		m.mask.tcp_flags = htons(0x0fff);
		memcpy(m.key.a.ip6.dst, fr.data + fr.l3 + 24, 16);
		memset(m.mask.a.ip6.dst, 0xff, 16);
		m.key.eth_src[5] = 2;
		m.mask.eth_src[5] = 0xff;
		assert_int_equal(matched(f, &m), 1);
		drop_frames(f);
	}
}

static void
flower_port_ranges(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct classifier_rule *low, *high;
	const struct classifier_rule_conf *shown;

	for (uint16_t i = 0; i < 10; i++)
		put_udp4(f, 1, 2, (uint16_t)(1000 + i), (uint16_t)(2000 + i));
	m.src_ports = (struct flower_range){ 1002, 1005 };
	assert_int_equal(matched(f, &m), 0x03c);
	m.dst_ports = (struct flower_range){ 2004, 65535 };
	assert_int_equal(matched(f, &m), 0x030);
	/* Overlapping ones: the lower handle wins. */
	m.dst_ports = (struct flower_range){ 0, 0 };
	low = add_flower(f, 1, &m, TC_ACT_SHOT);
	m.src_ports = (struct flower_range){ 1004, 1007 };
	high = add_flower(f, 1, &m, TC_ACT_STOLEN);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0x03c);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 0x0c0);
	shown = classifier_rule_conf(high);
	assert_int_equal(shown->flower->src_ports.min, 1004);
	assert_int_equal(shown->flower->src_ports.max, 1007);
	assert_int_equal(shown->flower->dst_ports.max, 0);
	classifier_rule_del(low);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 0x0f0);
}

static void
flower_an_empty_key_matches_all(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };

	put_udp4(f, 1, 2, 3, 4);
	put_ether(f, 0x4242);
	assert_int_equal(matched(f, &m), 0x3);
}

static void
flower_shows_what_was_set(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 }, want;
	const struct classifier_rule_conf *shown;

	match_ip4(&m, 0xc0000201, 0xffffff00, 0xc6336401, FULL32);
	m.key.src_port = htons(9);
	m.mask.src_port = FULL16;
	m.key.eth_dst[0] = 0x11;
	m.mask.eth_dst[0] = 0xff;
	shown = classifier_rule_conf(add_flower(f, 7, &m, TC_ACT_OK));
	want = m;
	want.key.a.ip4.src = htonl(0xc0000200);
	assert_memory_equal(&shown->flower->key, &want.key, sizeof(want.key));
	assert_memory_equal(&shown->flower->mask, &want.mask, sizeof(want.mask));
	assert_int_equal(shown->flower->addresses, FLOWER_IPV4);
	assert_int_equal(shown->place.kind, CLASSIFIER_FLOWER);
	assert_int_equal(shown->place.handle, 1);
}

static void
flower_masks_in_the_order_they_came(void **state)
{
	struct fixture *f = *state;
	struct flower_match wide = { 0 }, narrow = { 0 };
	struct classifier_rule *first, *second;

	put_udp4(f, 0xc0000201, 0xc6336401, 1000, 53);
	match_ip4(&wide, 0xc0000200, 0xffffff00, 0, 0);
	match_ip4(&narrow, 0xc0000201, FULL32, 0, 0);
	first = add_flower(f, 1, &wide, TC_ACT_OK);
	second = add_flower(f, 1, &narrow, TC_ACT_SHOT);
	run(f);
	assert_int_equal(classifier_rule_hits(first), 1);
	assert_int_equal(classifier_rule_hits(second), 0);
	/* continue goes on to the next priority, not to the next mask */
	classifier_rule_del(first);
	add_flower(f, 1, &wide, TC_ACT_OK);
	run(f);
	assert_int_equal(classifier_rule_hits(second), 1);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
}

static void
flower_continue_leaves_the_priority(void **state)
{
	struct fixture *f = *state;
	struct flower_match wide = { 0 }, narrow = { 0 };
	struct classifier_rule *next;

	put_udp4(f, 0xc0000201, 0xc6336401, 1000, 53);
	match_ip4(&wide, 0xc0000200, 0xffffff00, 0, 0);
	match_ip4(&narrow, 0xc0000201, FULL32, 0, 0);
	add_flower(f, 1, &wide, TC_ACT_UNSPEC);
	add_flower(f, 1, &narrow, TC_ACT_SHOT);
	next = add_flower(f, 2, &narrow, TC_ACT_OK);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(classifier_rule_hits(next), 1);
}

static int
try(struct fixture *f, const struct flower_match *m)
{
	struct classifier_rule_conf conf = conf_of(1, ETH_P_ALL, m);

	return set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_SHOT, NULL);
}

static void
flower_C1_contradictions_are_refused_by_name(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	uint64_t generation = classifier_block_generation(f->block);

	put_udp4(f, 1, 2, 3, 4);
	assert_int_equal(try(f, NULL), -EINVAL);
	assert_non_null(f->why);
	m.mask.a.ip4.src = 1; /* without saying what it is */
	assert_int_equal(try(f, &m), -EINVAL);
	match_ip4(&m, 1, FULL32, 0, 0);
	m.key.eth_type = htons(ETH_P_IPV6);
	assert_int_equal(try(f, &m), -EINVAL);
	m = (struct flower_match){ .addresses = (enum flower_addresses)9 };
	assert_int_equal(try(f, &m), -EINVAL);
	m = (struct flower_match){ .src_ports = { 5, 4 } };
	assert_int_equal(try(f, &m), -EINVAL);
	m = (struct flower_match){ .src_ports = { 4, 5 } };
	m.mask.src_port = FULL16;
	assert_int_equal(try(f, &m), -EINVAL);
	m = (struct flower_match){ 0 };
	m.mask.icmp_type = 0xff;
	m.mask.dst_port = FULL16;
	assert_int_equal(try(f, &m), -EINVAL);
	m.mask.icmp_type = 0;
	m.mask.ip_proto = 0xff;
	m.key.ip_proto = IPPROTO_ICMP;
	assert_int_equal(try(f, &m), -EINVAL);
	assert_int_equal(classifier_block_generation(f->block), generation);
	run(f);
	assert_int_equal(f->result.passed, 1);
}

/* match_ip4() with an EtherType, as tc sends it. */
static void
match_type_ip4(
	struct flower_match *m, uint32_t src, uint32_t src_mask, uint32_t dst, uint32_t dst_mask)
{
	match_ip4(m, src, src_mask, dst, dst_mask);
	m->key.eth_type = htons(ETH_P_IP);
	m->mask.eth_type = FULL16;
}

static void
flower_a_template_takes_masks_inside_it(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };

	match_type_ip4(&m, 0, 0, 0, 0xffff0000);
	m.dst_ports = (struct flower_range){ 1, 2 };
	assert_int_equal(classifier_chain_add_template(f->block, 0, &m, &f->why), 0);
	assert_memory_equal(classifier_chain_template(f->block, 0), &m, sizeof(m));
	/* all of it, a part, another key, another range of the same port, nothing */
	match_type_ip4(&m, 0, 0, 0x0a010000, 0xffff0000);
	assert_int_equal(try(f, &m), 0);
	match_type_ip4(&m, 0, 0, 0x0a000000, 0xff000000);
	assert_int_equal(try(f, &m), 0);
	m.dst_ports = (struct flower_range){ 7, 9 };
	assert_int_equal(try(f, &m), 0);
	m = (struct flower_match){ 0 };
	assert_int_equal(try(f, &m), 0);
	/* IPv6 has its address where IPv4 has it, for Linux as well */
	m.addresses = FLOWER_IPV6;
	memset(&m.mask.a.ip6.src[4], 0xff, 2);
	assert_int_equal(try(f, &m), 0);
	/* a longer prefix, another field, a port, a range of the other port, ARP's words */
	match_type_ip4(&m, 0, 0, 0x0a010100, 0xffffff00);
	assert_int_equal(try(f, &m), -EINVAL);
	assert_string_equal(f->why, "Mask does not fit the template");
	match_type_ip4(&m, 0x0a010000, 0xffff0000, 0, 0);
	assert_int_equal(try(f, &m), -EINVAL);
	match_type_ip4(&m, 0, 0, 0, 0);
	m.mask.dst_port = FULL16;
	assert_int_equal(try(f, &m), -EINVAL);
	m.mask.dst_port = 0;
	m.src_ports = (struct flower_range){ 1, 2 };
	assert_int_equal(try(f, &m), -EINVAL);
	m = (struct flower_match){ .addresses = FLOWER_ARP };
	m.mask.a.arp.tip = htonl(0xffff0000);
	assert_int_equal(try(f, &m), -EINVAL);
	assert_string_equal(f->why, "Mask does not fit the template");
}

static void
flower_a_template_goes_with_its_chain(void **state)
{
	struct fixture *f = *state;
	struct classifier_rule_conf all = {
		.place = { .prio = 9, .protocol = ETH_P_ALL, .kind = CLASSIFIER_MATCHALL }
	};
	struct flower_match m = { 0 };

	m.src_ports = (struct flower_range){ 5, 4 };
	assert_int_equal(classifier_chain_add_template(f->block, 0, &m, &f->why), -EINVAL);
	assert_non_null(f->why);
	assert_false(classifier_chain_exists(f->block, 0));
	m = (struct flower_match){ 0 };
	match_ip4(&m, 1, FULL32, 0, 0);
	assert_int_equal(classifier_chain_add_template(f->block, 0, &m, &f->why), 0);
	assert_int_equal(classifier_chain_add_template(f->block, 0, &m, &f->why), -EEXIST);
	put_udp4(f, 1, 2, 3, 4);
	assert_int_equal(set_rule(f, &all, CLASSIFIER_CREATE, TC_ACT_SHOT, NULL), -EINVAL);
	assert_string_equal(f->why, "Chain template is set to a different filter kind");
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(try(f, &m), 0);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
	/* It outlives its last rule, not its chain. */
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	assert_non_null(classifier_chain_template(f->block, 0));
	assert_int_equal(classifier_chain_del(f->block, 0, &f->why), 0);
	assert_null(classifier_chain_template(f->block, 0));
	assert_int_equal(set_rule(f, &all, CLASSIFIER_CREATE, TC_ACT_OK, NULL), 0);
}

static void
flower_C1_the_same_key_twice_is_refused(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct classifier_rule_conf conf;

	match_ip4(&m, 1, FULL32, 0, 0);
	add_flower(f, 1, &m, TC_ACT_OK);
	put_udp4(f, 1, 2, 3, 4);
	assert_int_equal(try(f, &m), -EEXIST);
	match_ip4(&m, 2, FULL32, 0, 0);
	add_flower(f, 1, &m, TC_ACT_OK);
	/* A change onto the key of another. */
	match_ip4(&m, 1, FULL32, 0, 0);
	conf = conf_of(1, ETH_P_ALL, &m);
	conf.place.handle = 2;
	assert_int_equal(set_rule(f, &conf, 0, TC_ACT_SHOT, NULL), -EEXIST);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_non_null(classifier_rule_find(f->block, &conf.place));
	/* In another priority it is welcome. */
	add_flower(f, 2, &m, TC_ACT_OK);
}

static void
flower_C2_no_match_is_no_rule(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct classifier_rule *zero;

	/* A key of nothing but zeros is a rule as any other, and an empty slot none. */
	match_ip4(&m, 0, FULL32, 0, FULL32);
	zero = add_flower(f, 1, &m, TC_ACT_SHOT);
	put_udp4(f, 0, 0, 0, 0);
	put_udp4(f, 0, 1, 0, 0);
	put_ether(f, 0);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
	classifier_rule_del(zero);
	match_ip4(&m, 5, FULL32, 0, FULL32);
	add_flower(f, 1, &m, TC_ACT_SHOT);
	run(f);
	assert_int_equal(f->result.passed, 7);
}

/* An IPv4 five-tuple; more of them than a chunk of counters or of buckets holds. */
#define MANY 40000

static double
bytes_a_rule(struct fixture *f, bool own_action)
{
	struct slab *slab = action_table_slab(f->actions);
	size_t before = slab_used(slab);
	struct flower_match m = { 0 };
	struct classifier_rule_conf conf;
	struct action *shared = gact(f, TC_ACT_OK);
	const char *why;

	match_ip4(&m, 0, FULL32, 1, FULL32);
	m.key.ip_proto = IPPROTO_UDP;
	m.mask.ip_proto = UINT8_MAX;
	m.mask.src_port = m.mask.dst_port = UINT16_MAX;
	for (uint32_t i = 0; i < MANY; i++) {
		m.key.a.ip4.src = i;
		conf = conf_of(1, ETH_P_IP, &m);
		conf.n_actions = 1;
		conf.actions[0] = own_action ? gact(f, TC_ACT_OK) : shared;
		assert_int_equal(
			classifier_rule_set(f->block, &conf, CLASSIFIER_CREATE, NULL, &why), 0);
		if (own_action)
			action_put(conf.actions[0], false);
	}
	action_put(shared, false);
	return (double)(slab_used(slab) - before) / MANY;
}

static void
flush_all(struct fixture *f)
{
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	while (rcu_pending(f->rcu) != 0)
		grace_period(f);
}

/* The target: 200 bytes and 16 for each of the two workers, with an action of its own too. */
static void
flower_a_rule_takes_little_memory(void **state)
{
	struct fixture *f = *state;
	struct slab *slab = action_table_slab(f->actions);
	double shared, own;
	size_t kept;

	shared = bytes_a_rule(f, false);
	flush_all(f);
	own = bytes_a_rule(f, true);
	if (shared > 160 || own > 200 + 2 * 16)
		fail_msg("%.1f bytes a rule, %.1f with an action of its own", shared, own);
	flush_all(f);
	/* What counters took is for the next ones. */
	kept = slab_used(slab);
	own = bytes_a_rule(f, true);
	flush_all(f);
	assert_int_equal(slab_used(slab), kept);
}

static void
flower_C3_last_of_a_mask_goes_while_another_comes(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct classifier_rule *rule, *next;

	put_udp4(f, 1, 2, 3, 4);
	put_udp4(f, 2, 2, 3, 4);
	match_ip4(&m, 1, FULL32, 0, 0);
	rule = add_flower(f, 1, &m, TC_ACT_SHOT);
	for (unsigned int i = 0; i < 100; i++) {
		match_ip4(&m, i % 2 == 0 ? 2 : 1, FULL32, 0, 0);
		if (i % 3 == 0)
			next = add_flower(f, 1, &m, TC_ACT_SHOT);
		classifier_rule_del(rule);
		if (i % 3 != 0)
			next = add_flower(f, 1, &m, TC_ACT_SHOT);
		rule = next;
		run(f);
		assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], i % 2 == 0 ? 2 : 1);
		if (i % 7 == 0)
			grace_period(f);
	}
}

/* Changes the rule with this handle. */
static struct classifier_rule *
change(struct fixture *f, uint32_t handle, const struct flower_match *m, int32_t verdict)
{
	struct classifier_rule_conf conf = conf_of(1, ETH_P_ALL, m);
	struct classifier_rule *rule = NULL;

	conf.place.handle = handle;
	assert_int_equal(set_rule(f, &conf, 0, verdict, &rule), 0);
	return rule;
}

static void
flower_C4_replace_under_the_same_key(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct classifier_rule *rule;

	put_udp4(f, 1, 2, 3, 4);
	match_ip4(&m, 1, FULL32, 0, 0);
	add_flower(f, 1, &m, TC_ACT_SHOT);
	rule = change(f, 1, &m, TC_ACT_STOLEN);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 1);
	assert_int_equal(classifier_rule_hits(rule), 1);
	/* Another key under the same mask. */
	match_ip4(&m, 9, FULL32, 0, 0);
	rule = change(f, 1, &m, TC_ACT_STOLEN);
	run(f);
	assert_int_equal(f->result.passed, 1);
	match_ip4(&m, 1, FULL32, 0, 0);
	add_flower(f, 1, &m, TC_ACT_SHOT);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
}

static void
flower_C4_replace_under_another_mask(void **state)
{
	struct fixture *f = *state;
	struct flower_match a = { 0 }, b = { 0 }, c = { 0 };
	struct classifier_rule *rule;

	put_udp4(f, 0xc0000201, 2, 3, 4); /* a, b and c */
	put_udp4(f, 0xc0000202, 2, 3, 4); /* b and c */
	put_udp4(f, 0xc0000301, 2, 3, 4); /* c */
	match_ip4(&a, 0xc0000201, FULL32, 0, 0);
	match_ip4(&b, 0xc0000200, 0xffffff00, 0, 0);
	match_ip4(&c, 0xc0000000, 0xffff0000, 0, 0);
	add_flower(f, 1, &a, TC_ACT_SHOT);
	/* No grace period passes: the old rules are still in their tables, and lead on. */
	change(f, 1, &b, TC_ACT_STOLEN);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 3);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0);
	rule = change(f, 1, &c, TC_ACT_SHOT);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 7);
	assert_int_equal(classifier_rule_hits(rule), 3);
	/* Back to the first, beside the old rule with that key. */
	change(f, 1, &a, TC_ACT_STOLEN);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_STOLEN], 1);
	assert_int_equal(f->result.passed, 6);
	/* A rule that others lead to goes: they lead nowhere. */
	add_flower(f, 1, &b, TC_ACT_SHOT);
	classifier_rule_del(classifier_rule_find(
		f->block, &(struct classifier_place){ .prio = 1, .handle = 1 }));
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 3);
	grace_period(f);
	assert_int_equal(rcu_pending(f->rcu), 0);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 3);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
}

static void
flower_C4_replaced_and_flushed_before_the_grace_period(void **state)
{
	struct fixture *f = *state;
	struct flower_match a = { 0 }, b = { 0 };

	put_udp4(f, 0xc0000201, 2, 3, 4);
	match_ip4(&a, 0xc0000201, FULL32, 0, 0);
	match_ip4(&b, 0xc0000200, 0xffffff00, 0, 0);
	for (unsigned int i = 0; i < 10; i++) {
		add_flower(f, 1, &a, TC_ACT_SHOT);
		change(f, 1, &b, TC_ACT_STOLEN);
		change(f, 1, &a, TC_ACT_SHOT);
		if (i % 2 == 0)
			change(f, 1, &a, TC_ACT_STOLEN);
		assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
		run(f);
		assert_int_equal(f->result.passed, 1);
		if (i % 3 == 0)
			grace_period(f);
	}
	grace_period(f);
	assert_int_equal(rcu_pending(f->rcu), 0);
}

static void
flower_C7_handles_are_the_lowest_free(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	struct classifier_rule *rule[100];
	struct classifier_place at = { 0 };
	uint32_t before = 0;

	for (uint32_t i = 0; i < 100; i++) {
		match_ip4(&m, i, FULL32, 0, 0);
		rule[i] = add_flower(f, 1, &m, TC_ACT_OK);
		assert_int_equal(classifier_rule_conf(rule[i])->place.handle, i + 1);
	}
	classifier_rule_del(rule[41]);
	match_ip4(&m, 1000, FULL32, 0, 0);
	assert_int_equal(classifier_rule_conf(add_flower(f, 1, &m, TC_ACT_OK))->place.handle, 42);
	/* Dumps go by handle. */
	while (classifier_rule_next(f->block, &at) != NULL)
		assert_int_equal(at.handle, ++before);
	assert_int_equal(before, 100);
}

/* The table grows to many sizes; at every moment each rule is found, and what was deleted is not.
 */
static void
flower_C7_growth_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	const uint32_t n = 400000;
	struct classifier_rule **rule = calloc(n, sizeof(*rule));
	uint64_t gone = 0;
	uint32_t at[64];
	unsigned int seed = 7;

	for (uint32_t i = 0; i < n; i++) {
		match_ip4(&m, i, FULL32, 0, 0);
		rule[i] = add_flower(f, 1, &m, TC_ACT_SHOT);
		if (i % 1024 != 1023)
			continue;
		drop_frames(f);
		gone = 0;
		for (unsigned int p = 0; p < 64; p++) {
			/* Old ones and the newest; what is not there yet. */
			at[p] = p < 8 ? i - p : (uint32_t)rand_r(&seed) % (i + i / 8);
			put_udp4(f, at[p], 2, 3, 4);
			if (at[p] > i || rule[at[p]] == NULL)
				gone |= UINT64_C(1) << p;
		}
		run(f);
		assert_int_equal(f->result.passed, gone);
		for (unsigned int p = 40; p < 64; p++) {
			if (at[p] > i || rule[at[p]] == NULL)
				continue;
			classifier_rule_del(rule[at[p]]);
			rule[at[p]] = NULL;
		}
		if (i % 4096 == 4095)
			grace_period(f);
	}
	drop_frames(f);
	assert_int_equal(classifier_flush(f->block, 0, 1, 0, &f->why), 0);
	for (unsigned int i = 0; i < 1000 && rcu_pending(f->rcu) != 0; i++)
		grace_period(f);
	assert_int_equal(rcu_pending(f->rcu), 0);
	free(rule);
}

static void
flower_a_flush_of_many_stalls_nobody(void **state)
{
	struct fixture *f = *state;
	struct flower_match m = { 0 };
	unsigned int most = 0, rounds = 0, n;

	for (uint32_t i = 0; i < 50000; i++) {
		match_ip4(&m, i, FULL32, 0, 0);
		add_flower(f, 1, &m, TC_ACT_SHOT);
	}
	assert_int_equal(classifier_flush(f->block, 0, 1, 0, &f->why), 0);
	put_udp4(f, 1, 2, 3, 4);
	run(f);
	assert_int_equal(f->result.passed, 1);
	/* What one round of the timer frees is bounded. */
	while (rcu_pending(f->rcu) != 0) {
		rte_rcu_qsbr_quiescent(f->qsbr, 0);
		n = rcu_reclaim(f->rcu, 0);
		most = RTE_MAX(most, n);
		rounds++;
	}
	assert_in_range(most, 1, 10000);
	assert_in_range(rounds, 5, 1000);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 0);
}

/* A rule set and packets at random, against the plainest possible matcher. */
struct model_rule {
	struct flower_match m;
	bool there;
};

static bool
model_matches(const struct flower_match *m, const uint32_t *p)
{
	return ((p[0] ^ ntohl(m->key.a.ip4.src)) & ntohl(m->mask.a.ip4.src)) == 0 &&
		((p[1] ^ ntohl(m->key.a.ip4.dst)) & ntohl(m->mask.a.ip4.dst)) == 0 &&
		((htons((uint16_t)p[2]) ^ m->key.src_port) & m->mask.src_port) == 0 &&
		((htons((uint16_t)p[3]) ^ m->key.dst_port) & m->mask.dst_port) == 0;
}

#define MODEL_RULES 400
#define MODEL_MASKS 12

static void
flower_agrees_with_a_model(void **state)
{
	struct fixture *f = *state;
	static struct model_rule model[MODEL_RULES];
	uint32_t masks[MODEL_MASKS][4], p[64][4];
	struct classifier_rule_conf conf;
	unsigned int seed = 3;

	memset(model, 0, sizeof(model));
	for (unsigned int k = 0; k < MODEL_MASKS; k++)
		for (unsigned int w = 0; w < 4; w++)
			masks[k][w] =
				(uint32_t)rand_r(&seed) % 3 == 0 ? 0 : 0x3u >> rand_r(&seed) % 2;
	for (unsigned int step = 0; step < 6000; step++) {
		unsigned int h = (unsigned int)rand_r(&seed) % MODEL_RULES, k = h % MODEL_MASKS;
		struct model_rule *r = &model[h];
		int want = 0, rc;

		conf = conf_of(1, ETH_P_ALL, &r->m);
		conf.place.handle = h + 1;
		if (r->there) {
			classifier_rule_del(classifier_rule_find(f->block, &conf.place));
			r->there = false;
		} else {
			r->m = (struct flower_match){ 0 };
			match_ip4(&r->m, (uint32_t)rand_r(&seed) & masks[k][0], masks[k][0],
				(uint32_t)rand_r(&seed) & masks[k][1], masks[k][1]);
			r->m.mask.src_port = htons((uint16_t)masks[k][2]);
			r->m.key.src_port = (uint16_t)rand_r(&seed) & r->m.mask.src_port;
			r->m.mask.dst_port = htons((uint16_t)masks[k][3]);
			r->m.key.dst_port = (uint16_t)rand_r(&seed) & r->m.mask.dst_port;
			for (unsigned int o = 0; o < MODEL_RULES; o++)
				if (model[o].there && memcmp(&model[o].m, &r->m, sizeof(r->m)) == 0)
					want = -EEXIST;
			rc = set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_SHOT, NULL);
			assert_int_equal(rc, want);
			r->there = rc == 0;
		}
		if (step % 20 != 0)
			continue;
		drop_frames(f);
		for (unsigned int i = 0; i < 64; i++) {
			for (unsigned int w = 0; w < 4; w++)
				p[i][w] = (uint32_t)rand_r(&seed) % 4;
			put_udp4(f, p[i][0], p[i][1], (uint16_t)p[i][2], (uint16_t)p[i][3]);
		}
		run(f);
		for (unsigned int i = 0; i < 64; i++) {
			bool hit = false;

			for (unsigned int o = 0; o < MODEL_RULES; o++)
				hit = hit || (model[o].there && model_matches(&model[o].m, p[i]));
			assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT] >> i & 1, hit);
		}
		if (step % 60 == 0)
			grace_period(f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(flower_matches_addresses_and_prefixes),
		FIXTURE_TEST(flower_matches_ports_and_protocol),
		FIXTURE_TEST(flower_matches_ip6),
		FIXTURE_TEST(flower_matches_link_layer_and_tags),
		FIXTURE_TEST(flower_takes_the_incoming_port_of_each_packet),
		FIXTURE_TEST(flower_matches_arp_and_icmp),
		FIXTURE_TEST(flower_C8_ports_only_where_they_are),
		FIXTURE_TEST(flower_C8_a_cut_chain_has_what_is_there),
		FIXTURE_TEST(flower_port_ranges),
		FIXTURE_TEST(flower_an_empty_key_matches_all),
		FIXTURE_TEST(flower_shows_what_was_set),
		FIXTURE_TEST(flower_masks_in_the_order_they_came),
		FIXTURE_TEST(flower_continue_leaves_the_priority),
		FIXTURE_TEST(flower_C1_contradictions_are_refused_by_name),
		FIXTURE_TEST(flower_a_template_takes_masks_inside_it),
		FIXTURE_TEST(flower_a_template_goes_with_its_chain),
		FIXTURE_TEST(flower_C1_the_same_key_twice_is_refused),
		FIXTURE_TEST(flower_C2_no_match_is_no_rule),
		FIXTURE_TEST(flower_a_rule_takes_little_memory),
		FIXTURE_TEST(flower_C3_last_of_a_mask_goes_while_another_comes),
		FIXTURE_TEST(flower_C4_replace_under_the_same_key),
		FIXTURE_TEST(flower_C4_replace_under_another_mask),
		FIXTURE_TEST(flower_C4_replaced_and_flushed_before_the_grace_period),
		FIXTURE_TEST(flower_C7_handles_are_the_lowest_free),
		FIXTURE_TEST(flower_C7_growth_loses_nothing),
		FIXTURE_TEST(flower_a_flush_of_many_stalls_nobody),
		FIXTURE_TEST(flower_agrees_with_a_model),
	};

	return fixture_main("classifier_flower", tests, RTE_DIM(tests));
}
