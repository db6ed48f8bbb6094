/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Fragments through the whole program: put together for us, made for a narrow way. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "router.h"

#define PARTS 4
#define PART_LEN 64
#define PAYLOAD (PARTS * PART_LEN - 3) /* the last one is shorter */
#define FRAME_MAX 1600
#define ID 0x1234

static const uint8_t host4[4] = { 192, 0, 2, 9 }, us4[4] = { 192, 0, 2, 1 },
		     host6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 },
		     us6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
		     host_mac[6] = { 0x02, 0, 0, 0, 0xbb, 9 };

/* Every test runs for IPv4 and for IPv6. */
static bool v6;
static uint8_t payload[65536 + 64]; /* an echo request with its sum */

static int
open_routed(bool six)
{
	v6 = six;
	router_open();
	dataplane_command("ip addr add 192.0.2.1/24 dev p0");
	dataplane_command("ip addr add 203.0.113.1/24 dev p1");
	dataplane_command("ip addr add 2001:db8::1/64 dev p0");
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	dataplane_command("ip neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0");
	return 0;
}

static int
open4(void **state)
{
	(void)state;
	return open_routed(false);
}

static int
open6(void **state)
{
	(void)state;
	return open_routed(true);
}

static int
close_all(void **state)
{
	(void)state;
	dataplane_close();
	return 0;
}

/* An echo request of len bytes in payload[]; `from` and `to` are for IPv6's sum. */
static void
make_echo(uint32_t len)
{
	struct rte_ipv6_hdr pseudo = { .proto = 58,
		.payload_len = rte_cpu_to_be_16((uint16_t)len) };
	uint32_t s;
	uint16_t out;

	for (uint32_t i = 0; i < len; i++)
		payload[i] = (uint8_t)(i * 7 + i / 256);
	memset(payload, 0, 8);
	payload[0] = v6 ? 128 : 8;
	s = rte_raw_cksum(payload, len);
	if (v6) {
		memcpy(pseudo.src_addr, host6, 16);
		memcpy(pseudo.dst_addr, us6, 16);
		s += rte_ipv6_phdr_cksum(&pseudo, 0);
		s = (s & 0xffff) + (s >> 16);
		s = (s & 0xffff) + (s >> 16);
	}
	out = (uint16_t)~s;
	memcpy(payload + 2, &out, sizeof(out));
}

static uint32_t
headers_len(void)
{
	return 14 + (v6 ? 48 : 20);
}

/* Bytes [begin, end) of payload[] as a fragment to us. Returns the frame's length. */
static uint32_t
make_fragment(uint8_t *frame, uint32_t id, uint32_t begin, uint32_t end, bool more)
{
	uint32_t len = end - begin;

	memset(frame, 0, headers_len());
	mac_of(0, frame);
	memcpy(frame + 6, host_mac, 6);
	if (v6) {
		memcpy(frame + 12, "\x86\xdd\x60\0\0\0", 6);
		frame[18] = (uint8_t)((len + 8) >> 8);
		frame[19] = (uint8_t)(len + 8);
		frame[20] = 44;
		frame[21] = 64;
		memcpy(frame + 22, host6, 16);
		memcpy(frame + 38, us6, 16);
		frame[54] = 58;
		frame[56] = (uint8_t)(begin >> 8);
		frame[57] = (uint8_t)((begin & 0xf8) | more);
		frame[60] = (uint8_t)(id >> 8);
		frame[61] = (uint8_t)id;
	} else {
		struct rte_ipv4_hdr *h = ip_of(frame);

		memcpy(frame + 12, "\x08\0\x45\0", 4);
		h->total_length = rte_cpu_to_be_16((uint16_t)(20 + len));
		h->packet_id = rte_cpu_to_be_16((uint16_t)id);
		h->fragment_offset = rte_cpu_to_be_16((uint16_t)(begin / 8 | (more ? 0x2000 : 0)));
		h->time_to_live = 64;
		h->next_proto_id = 1;
		memcpy(&h->src_addr, host4, 4);
		memcpy(&h->dst_addr, us4, 4);
		sum(frame);
	}
	memcpy(frame + headers_len(), payload + begin, len);
	return headers_len() + len;
}

static void
send_fragment(uint32_t id, uint32_t begin, uint32_t end, bool more)
{
	uint8_t frame[FRAME_MAX];

	dataplane_inject(0, frame, make_fragment(frame, id, begin, end, more));
	turns();
}

/* The part of the packet's PAYLOAD bytes, as sent by everybody in these tests. */
static void
send_part(uint32_t id, unsigned int part)
{
	send_fragment(id, part * PART_LEN, part == PARTS - 1 ? PAYLOAD : (part + 1) * PART_LEN,
		part < PARTS - 1);
}

/* One whole echo reply with the bytes of payload[], and nothing else, came out. */
static void
expect_reply(uint32_t len)
{
	struct rte_mbuf *m = dataplane_sent(0);
	uint32_t off = 14 + (v6 ? 40 : 20);
	static uint8_t flat[FRAME_MAX];
	const uint8_t *got;

	if (m == NULL)
		fail_msg("no reply");
	assert_int_equal(m->pkt_len, off + len);
	got = rte_pktmbuf_read(m, 0, m->pkt_len, flat);
	if (got != flat)
		memcpy(flat, got, m->pkt_len);
	rte_pktmbuf_free(m);
	assert_memory_equal(flat, host_mac, 6);
	assert_int_equal(flat[off], v6 ? 129 : 0);
	assert_memory_equal(flat + off + 4, payload + 4, len - 4);
	if (v6) {
		assert_memory_equal(flat + 22, us6, 16);
		assert_int_equal(flat[18] << 8 | flat[19], len);
		assert_int_equal(rte_ipv6_udptcp_cksum_verify((void *)(flat + 14), flat + off), 0);
	} else {
		assert_memory_equal(flat + 26, us4, 4);
		assert_int_equal(rte_raw_cksum(flat + 14, 20), 0xffff);
		assert_int_equal(rte_raw_cksum(flat + off, len), 0xffff);
	}
	dataplane_expect_nothing();
}

static void
every_order_makes_the_packet(void **state)
{
	unsigned int order[PARTS], id = ID;

	(void)state;
	make_echo(PAYLOAD);
	for (unsigned int n = 0; n < 24; n++) {
		unsigned int left[PARTS] = { 0, 1, 2, 3 }, code = n;

		for (unsigned int i = 0; i < PARTS; i++) {
			unsigned int at = code % (PARTS - i);

			code /= PARTS - i;
			order[i] = left[at];
			memmove(left + at, left + at + 1, (PARTS - at - 1) * sizeof(left[0]));
		}
		for (unsigned int i = 0; i < PARTS; i++) {
			dataplane_expect_nothing();
			send_part(id, order[i]);
		}
		expect_reply(PAYLOAD);
		id++;
	}
	assert_int_equal(dataplane_drops_all(), 0);
}

/* Segments of the frames that end anywhere, at odd offsets too. */
static void
every_segmentation_makes_the_packet(void **state)
{
	uint8_t frame[FRAME_MAX];

	(void)state;
	make_echo(PAYLOAD);
	for (uint32_t cut = 1; cut < PART_LEN + 62; cut++) {
		for (unsigned int part = PARTS; part-- > 0;) {
			uint32_t end = part == PARTS - 1 ? PAYLOAD : (part + 1) * PART_LEN;

			dataplane_inject_cut(0, frame,
				make_fragment(frame, ID, part * PART_LEN, end, part < PARTS - 1),
				cut);
			turns();
		}
		expect_reply(PAYLOAD);
	}
	assert_int_equal(dataplane_drops_all(), 0);
}

static void
overlaps_take_the_whole_packet(void **state)
{
	static const struct {
		uint32_t begin, end;
		bool more;
	} cases[] = {
		{ 0, 136, true }, /* beyond what is there */
		{ 128, 200, true }, /* into the one behind the hole */
		{ 120, 136, true }, { 120, 200, true }, /* over a hole */
		{ 184, 200, true }, { 120, PAYLOAD, false },
		{ 128, 144, false }, /* an end before what is there */
		{ 248, 264, true }, /* beyond the end */
		{ 248, 256, false }, /* another end */
	};

	(void)state;
	make_echo(512);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint64_t before = dataplane_drops(DROP_FRAG_OVERLAP);

		/* 0 .. 127, a hole, 192 .. end */
		send_part(ID, 0);
		send_part(ID, 1);
		send_part(ID, 3);
		send_fragment(ID, cases[i].begin, cases[i].end, cases[i].more);
		if (dataplane_drops(DROP_FRAG_OVERLAP) != before + 4)
			fail_msg("case %zu: %d were dropped", i,
				(int)(dataplane_drops(DROP_FRAG_OVERLAP) - before));
		/* What would have completed it begins a packet of its own, which expires. */
		send_part(ID, 2);
		dataplane_expect_nothing();
		ip_reassembly_tick(app.ip, app.ip->now + 61000);
		assert_int_equal(dataplane_drops(DROP_FRAG_EXPIRED), i + 1);
	}
	dataplane_turn();
	assert_int_equal(dataplane_drops_all(), RTE_DIM(cases) * 5);
}

static void
duplicates_change_nothing(void **state)
{
	(void)state;
	make_echo(PAYLOAD);
	send_part(ID, 0);
	send_part(ID, 0);
	send_part(ID, 1);
	send_fragment(ID, 8, 120, true); /* covered by two that touch */
	send_part(ID, 3);
	send_part(ID, 3);
	send_part(ID, 2);
	expect_reply(PAYLOAD);
	assert_int_equal(dataplane_drops(DROP_FRAG_DUPLICATE), 3);
	assert_int_equal(dataplane_drops_all(), 3);
}

/* The ICMP error that came out of p0: its type and code, its bytes 4 to 7. */
static void
expect_error(uint8_t type, uint8_t code, uint32_t rest)
{
	struct rte_mbuf *m = dataplane_sent(0);
	uint32_t off = 14 + (v6 ? 40 : 20);
	const uint8_t *got;

	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(got[off], type);
	assert_int_equal(got[off + 1], code);
	assert_int_equal(got[off + 6] << 8 | got[off + 7], rest);
	rte_pktmbuf_free(m);
	dataplane_expect_nothing();
}

static void
what_is_not_completed_expires(void **state)
{
	(void)state;
	make_echo(PAYLOAD);
	/* Without the first fragment nothing is said. */
	send_part(ID, 1);
	send_part(ID, 3);
	ip_reassembly_tick(app.ip, app.ip->now + 29000);
	assert_int_equal(dataplane_drops_all(), 0);
	ip_reassembly_tick(app.ip, app.ip->now + (v6 ? 32000 : 2000));
	assert_int_equal(dataplane_drops(DROP_FRAG_EXPIRED), 2);
	dataplane_turn();
	dataplane_expect_nothing();
	send_part(ID, 1);
	send_part(ID, 0);
	ip_reassembly_tick(app.ip, app.ip->now + 61000);
	assert_int_equal(dataplane_drops(DROP_FRAG_EXPIRED), 4);
	dataplane_turn();
	expect_error(v6 ? 3 : 11, 1, 0);
	/* And the rest alone makes nothing. */
	send_part(ID, 2);
	send_part(ID, 3);
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(), 4);
}

static void
wrong_lengths_are_malformed(void **state)
{
	uint8_t frame[FRAME_MAX];

	(void)state;
	make_echo(FRAME_MAX);
	send_fragment(ID, 0, 63, true); /* not a multiple of eight */
	if (v6)
		expect_error(4, 0, 4);
	send_fragment(ID, 65528, 65528 + (v6 ? 16 : 8), false); /* beyond 65535 */
	send_fragment(ID, 64, 64, true); /* of nothing */
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_IP_MALFORMED), 3);
	/* The largest that there can be passes the check. */
	send_fragment(ID, 65528 - 32, 65528, true);
	assert_int_equal(dataplane_drops(DROP_IP_MALFORMED), v6 ? 3 : 4);
	/* Every truncation of a fragment: dropped, once each. */
	for (uint32_t len = 1; len < headers_len() + PART_LEN; len++) {
		uint64_t before = dataplane_drops_all();

		(void)make_fragment(frame, ID, 64, 128, true);
		dataplane_inject(0, frame, len);
		turns();
		assert_int_equal(dataplane_drops_all(), before + 1);
	}
	dataplane_expect_nothing();
}

/* Packets are told apart by all of their key. */
static void
other_packets_do_not_mix(void **state)
{
	uint8_t frame[FRAME_MAX];
	uint32_t len;

	(void)state;
	make_echo(PAYLOAD);
	for (unsigned int part = 0; part < PARTS - 1; part++)
		send_part(ID, part);
	send_part(ID + 1, 3);
	len = make_fragment(frame, ID, 3 * PART_LEN, PAYLOAD, false);
	frame[v6 ? 37 : 29]++; /* another source */
	if (!v6)
		sum(frame);
	dataplane_inject(0, frame, len);
	if (!v6) {
		len = make_fragment(frame, ID, 3 * PART_LEN, PAYLOAD, false);
		frame[23] = 17;
		sum(frame);
		dataplane_inject(0, frame, len);
	}
	turns();
	dataplane_expect_nothing();
	send_part(ID, 3);
	expect_reply(PAYLOAD);
	assert_int_equal(dataplane_drops_all(), 0);
}

/* Fragments that nobody completes: neither mbufs nor time are theirs without bounds. */
static void
a_flood_is_bounded(void **state)
{
	const unsigned int flood = 3000, packets_max = 256;
	unsigned int before = rte_mempool_avail_count(app.pool[0]);

	(void)state;
	make_echo(PAYLOAD);
	for (unsigned int i = 0; i < flood; i++)
		send_part(0x8000 + i, 1);
	assert_int_equal(dataplane_drops(DROP_FRAG_LIMIT), flood - packets_max);
	assert_int_equal(before, rte_mempool_avail_count(app.pool[0]));
	/* A packet in the midst of it comes through. */
	for (unsigned int part = PARTS; part-- > 0;) {
		send_part(ID, part);
		for (unsigned int i = 0; i < packets_max / PARTS; i++)
			send_part(0x9000 + part * packets_max + i, 1);
	}
	expect_reply(PAYLOAD);
	/* One packet of very many fragments has no more room. */
	for (unsigned int i = 0; i < 2100; i++) {
		send_fragment(ID, 8 + i * 16, 16 + i * 16, true);
		if (i % 512 == 511)
			assert_true(dataplane_drops(DROP_FRAG_EXPIRED) == 0);
	}
	assert_true(dataplane_drops(DROP_FRAG_LIMIT) > flood + 1000);
	ip_reassembly_tick(app.ip, app.ip->now + 61000);
	dataplane_turn();
	dataplane_expect_nothing();
}

/* As long as a packet can be, in reverse, there and back. */
static void
the_longest_packet_comes_back(void **state)
{
	const uint32_t step = 1448, len = v6 ? 65535 : 65515;
	uint32_t begin = len / step * step, got = 0;
	struct rte_mbuf *m;

	(void)state;
	make_echo(len);
	for (;; begin -= step) {
		send_fragment(ID, begin, RTE_MIN(begin + step, len), begin + step < len);
		if (begin == 0)
			break;
	}
	for (unsigned int i = 0; i < 4; i++)
		dataplane_turn();
	while ((m = dataplane_sent(0)) != NULL) {
		uint8_t flat[FRAME_MAX];
		const uint8_t *p = rte_pktmbuf_read(m, 0, m->pkt_len, flat);
		uint32_t off = v6 ? (uint32_t)(p[56] << 8 | p[57]) & 0xfff8
				  : (uint32_t)((p[20] << 8 | p[21]) & 0x1fff) * 8;
		uint32_t skip = off == 0 ? 4 : 0;

		assert_in_range(m->pkt_len, headers_len() + 1, 1514);
		if (!v6)
			assert_int_equal(rte_raw_cksum(p + 14, 20), 0xffff);
		assert_memory_equal(p + headers_len() + skip, payload + off + skip,
			m->pkt_len - headers_len() - skip);
		got += m->pkt_len - headers_len();
		rte_pktmbuf_free(m);
	}
	assert_int_equal(got, len);
	assert_int_equal(dataplane_drops_all(), 0);
}

/* RFC 3168 5.3. */
static void
ecn_is_kept(void **state)
{
	static const struct {
		uint8_t first, second;
		int want;
	} cases[] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 2 }, { 2, 3, 3 }, { 3, 1, 3 }, { 3, 3, 3 },
		{ 0, 3, -1 }, { 2, 0, -1 } };
	uint64_t dropped = 0;

	(void)state;
	make_echo(PAYLOAD);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		for (unsigned int part = 0; part < 2; part++) {
			uint8_t frame[FRAME_MAX], ecn = part ? cases[i].second : cases[i].first;
			uint32_t len = make_fragment(
				frame, ID, part * PART_LEN, part ? PAYLOAD : PART_LEN, part == 0);

			if (v6)
				frame[15] = (uint8_t)(ecn << 4);
			else
				frame[15] = ecn;
			if (!v6)
				sum(frame);
			dataplane_inject(0, frame, len);
			turns();
		}
		if (cases[i].want >= 0) {
			/* The reply is made of the packet. */
			expect_reply(PAYLOAD);
			continue;
		}
		dropped += 2;
		assert_int_equal(dataplane_drops(DROP_FRAG_OVERLAP), dropped);
		dataplane_expect_nothing();
	}
}

/* --- IPv6 alone --- */

/* Options in front of the fragment header are the packet's; the reply has none. */
static void
options_may_stand_in_front(void **state)
{
	uint8_t frame[FRAME_MAX], was[FRAME_MAX];

	(void)state;
	make_echo(PAYLOAD);
	for (unsigned int part = 0; part < PARTS; part++) {
		uint32_t end = part == PARTS - 1 ? PAYLOAD : (part + 1) * PART_LEN;
		uint32_t len = make_fragment(was, ID, part * PART_LEN, end, part < PARTS - 1);

		memcpy(frame, was, 54);
		memcpy(frame + 54, "\x2c\0\x01\x04\0\0\0\0", 8); /* padding */
		memcpy(frame + 62, was + 54, len - 54);
		frame[20] = 0;
		frame[18] = (uint8_t)((len + 8 - 54) >> 8);
		frame[19] = (uint8_t)(len + 8 - 54);
		dataplane_inject(0, frame, len + 8);
		turns();
	}
	expect_reply(PAYLOAD);
	assert_int_equal(dataplane_drops_all(), 0);
}

/* RFC 6980. */
static void
discovery_in_fragments_is_not_believed(void **state)
{
	uint8_t frame[FRAME_MAX];
	uint32_t len;

	(void)state;
	make_echo(PAYLOAD);
	payload[0] = 136;
	payload[3]--;
	payload[2] = (uint8_t)(payload[2] - 8 - (payload[3] == 0xff));
	for (unsigned int part = 0; part < 2; part++) {
		len = make_fragment(
			frame, ID, part * PART_LEN, part ? PAYLOAD : PART_LEN, part == 0);
		frame[21] = 255;
		dataplane_inject(0, frame, len);
		turns();
	}
	dataplane_expect_nothing();
	assert_int_equal(
		dataplane_drops(DROP_ND_MALFORMED) + dataplane_drops(DROP_IP_MALFORMED), 1);
}

/* --- IPv4 alone: fragments that we make --- */

static const uint8_t gateway_mac[6] = { 0x02, 0, 0, 0, 0xaa, 1 };

static void
narrow(uint32_t mtu)
{
	struct route_dev dev = {
		.ifindex = app.ports[1].ifindex, .port = 1, .mtu = mtu, .up = true
	};

	mac_of(1, dev.mac);
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	/* The rings' MTU cannot be set: what the table knows can. */
	assert_int_equal(route_dev_set(app.route, &dev), 0);
}

/* A UDP packet of `len` bytes with its IPv4 header, `options` of them options, to beyond p1. */
static void
make_long(uint8_t *frame, uint32_t len, uint32_t options, uint16_t frag)
{
	struct rte_ipv4_hdr *h = ip_of(frame);

	for (uint32_t i = 0; i < len; i++)
		frame[14 + i] = (uint8_t)(i * 5 + i / 256);
	memset(frame, 0, 14 + 20);
	mac_of(0, frame);
	memcpy(frame + 6, host_mac, 6);
	frame[12] = 8;
	h->version_ihl = (uint8_t)(0x40 | (20 + options) / 4);
	h->type_of_service = 0x28;
	h->total_length = rte_cpu_to_be_16((uint16_t)len);
	h->packet_id = RTE_BE16(0xbeef);
	h->fragment_offset = rte_cpu_to_be_16(frag);
	h->time_to_live = 9;
	h->next_proto_id = 17;
	memcpy(&h->src_addr, host4, 4);
	memcpy(&h->dst_addr, "\xc6\x33\x64\x07", 4);
	sum(frame);
}

/* Takes what came out of p1 and finds the packet's payload in it again. Returns its fragments. */
static unsigned int
expect_fragments(const uint8_t *in, uint32_t len, uint32_t options, uint16_t frag, uint32_t mtu)
{
	uint32_t got = 0, all = len - 20 - options;
	unsigned int n = 0;
	struct rte_mbuf *m;
	uint8_t mac[6];

	mac_of(1, mac);
	for (; (m = dataplane_sent(1)) != NULL; n++) {
		uint8_t flat[FRAME_MAX];
		const uint8_t *p = rte_pktmbuf_read(m, 0, m->pkt_len, flat);
		uint32_t ihl = (p[14] & 15) * 4u, here = m->pkt_len - 14 - ihl;
		uint32_t word = (uint32_t)(p[20] << 8 | p[21]);

		assert_memory_equal(p, gateway_mac, 6);
		assert_memory_equal(p + 6, mac, 6);
		assert_in_range(m->pkt_len, 14 + ihl + 1, 14 + mtu);
		assert_int_equal(p[16] << 8 | p[17], m->pkt_len - 14);
		assert_int_equal(p[15], 0x28);
		assert_int_equal(p[18] << 8 | p[19], 0xbeef);
		assert_int_equal(p[22], 8);
		assert_int_equal(rte_raw_cksum(p + 14, ihl), 0xffff);
		assert_int_equal(word & 0x1fff, (frag & 0x1fff) + got / 8);
		assert_int_equal((word & 0x2000) != 0, (frag & 0x2000) != 0 || got + here < all);
		assert_memory_equal(p + 14 + ihl, in + 34 + options + got, here);
		got += here;
		rte_pktmbuf_free(m);
	}
	assert_int_equal(got, all);
	return n;
}

static void
long_packets_are_fragmented(void **state)
{
	static const uint32_t mtus[] = { 68, 576, 1000, 1006, 1280, 1499 };
	static uint8_t in[FRAME_MAX];

	(void)state;
	narrow(1500);
	for (size_t i = 0; i < RTE_DIM(mtus); i++) {
		struct route_dev dev = *route_dev_find(app.route, app.ports[1].ifindex);
		/* 36 bytes of frames at an MTU of 68 are more than one burst's ring of parts. */
		uint32_t len = mtus[i] == 68 ? 700 : 1500, step = (mtus[i] - 20) / 8 * 8;

		dev.mtu = mtus[i];
		assert_int_equal(route_dev_set(app.route, &dev), 0);
		for (uint32_t cut = 0; cut < 700; cut += 97) {
			make_long(in, len, 0, 0);
			dataplane_inject_cut(0, in, 14 + len, cut);
			turns();
			assert_int_equal(expect_fragments(in, len, 0, 0, mtus[i]),
				(len - 20 + step - 1) / step);
		}
		/* A fragment is cut again, and stays one. */
		make_long(in, len, 0, 0x2000 | 50);
		dataplane_inject(0, in, 14 + len);
		turns();
		expect_fragments(in, len, 0, 0x2000 | 50, mtus[i]);
	}
	assert_int_equal(dataplane_drops_all(), 0);
}

/* RFC 791 3.1: those with the copied bit go into every fragment. */
static void
options_are_copied_where_they_say_so(void **state)
{
	static uint8_t in[FRAME_MAX];
	struct rte_mbuf *m;

	(void)state;
	narrow(1000);
	make_long(in, 1500, 12, 0);
	memcpy(in + 34, "\x07\x07\x08\0\0\0\0", 7); /* record route: not copied */
	memcpy(in + 41, "\x94\x04\0\0\0", 5); /* router alert: copied */
	sum(in);
	dataplane_inject(0, in, 14 + 1500);
	turns();
	m = dataplane_sent(1);
	assert_non_null(m);
	assert_int_equal(rte_pktmbuf_mtod(m, const uint8_t *)[14], 0x48);
	rte_pktmbuf_free(m);
	m = dataplane_sent(1);
	assert_non_null(m);
	assert_int_equal(rte_pktmbuf_mtod(m, const uint8_t *)[14], 0x46);
	assert_memory_equal(rte_pktmbuf_mtod(m, const uint8_t *) + 34, "\x94\x04\0\0", 4);
	rte_pktmbuf_free(m);
	dataplane_expect_nothing();
}

/* Fragments wait for a neighbour as whole packets do. */
static void
fragments_wait_for_the_gateway(void **state)
{
	static uint8_t in[FRAME_MAX];

	(void)state;
	narrow(1000);
	dataplane_command("ip neigh del 203.0.113.2 dev p1");
	make_long(in, 1500, 0, 0);
	dataplane_inject(0, in, 14 + 1500);
	turns();
	assert_int_equal(router_discard(1), 1); /* the question */
	dataplane_command("ip neigh replace 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_turn();
	assert_int_equal(expect_fragments(in, 1500, 0, 0, 1000), 2);
	assert_int_equal(dataplane_drops_all(), 0);
}

#define FOUR(f) \
	{ \
		"ipv4_" #f, f, open4, close_all, NULL \
	}
#define SIX(f) \
	{ \
		"ipv6_" #f, f, open6, close_all, NULL \
	}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		FOUR(every_order_makes_the_packet),
		SIX(every_order_makes_the_packet),
		FOUR(every_segmentation_makes_the_packet),
		SIX(every_segmentation_makes_the_packet),
		FOUR(overlaps_take_the_whole_packet),
		SIX(overlaps_take_the_whole_packet),
		FOUR(duplicates_change_nothing),
		SIX(duplicates_change_nothing),
		FOUR(what_is_not_completed_expires),
		SIX(what_is_not_completed_expires),
		FOUR(wrong_lengths_are_malformed),
		SIX(wrong_lengths_are_malformed),
		FOUR(other_packets_do_not_mix),
		SIX(other_packets_do_not_mix),
		FOUR(a_flood_is_bounded),
		SIX(a_flood_is_bounded),
		FOUR(the_longest_packet_comes_back),
		SIX(the_longest_packet_comes_back),
		FOUR(ecn_is_kept),
		SIX(ecn_is_kept),
		SIX(options_may_stand_in_front),
		SIX(discovery_in_fragments_is_not_believed),
		FOUR(long_packets_are_fragmented),
		FOUR(options_are_copied_where_they_say_so),
		FOUR(fragments_wait_for_the_gateway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
