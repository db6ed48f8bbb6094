/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Mode ip, the whole program: routes by ip, frames in, frames out, every drop by its name. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "router.h"

#define IP_LEN 32

static const uint8_t peer[6] = { 0x02, 0, 0, 0, 0xaa, 1 };

/* UDP from 192.0.2.9 to 198.51.100.2, 4 bytes of payload, padded to 60 bytes. */
static const uint8_t plain[60] = { 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0xbb, 9, 0x08, 0x00, 0x45, 0, 0,
	IP_LEN, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9, 198, 51, 100, 2, 0x03, 0xe8, 0, 9, 0,
	12, 0x35, 0xd0, 'm', 'i', 'l', 'l', 0xee, 0xee };

/* The plain frame, addressed to port 0. */
static void
frame_to_us(uint8_t frame[60])
{
	memcpy(frame, plain, sizeof(plain));
	mac_of(0, frame);
	sum(frame);
}

/* What comes out of port 1 for it: the bytes that RFC 1812 asks for, its own sum computed anew. */
static void
frame_out(const uint8_t *in, const uint8_t *dst, uint8_t *out)
{
	memcpy(out, in, RTE_ETHER_HDR_LEN + IP_LEN);
	memcpy(out, dst, 6);
	mac_of(1, out + 6);
	ip_of(out)->time_to_live--;
	sum(out);
}

static int
open_two(void **state)
{
	(void)state;
	router_open();
	dataplane_command("ip addr add 192.0.2.1/24 dev p0");
	dataplane_command("ip addr add 203.0.113.1/24 dev p1");
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	dataplane_close();
	return 0;
}

static void
packet_goes_to_the_gateway(void **state)
{
	uint8_t in[60], out[60];

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	frame_to_us(in);
	frame_out(in, peer, out);
	dataplane_inject(0, in, sizeof(in));
	dataplane_turn();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	/* Every segmentation of the same frame. */
	for (uint32_t cut = 1; cut < sizeof(in); cut++) {
		dataplane_inject_cut(0, in, sizeof(in), cut);
		dataplane_turn();
		dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	}
	assert_int_equal(dataplane_drops_all(), 0);
}

static void
checksum_is_updated_for_every_ttl_and_sum(void **state)
{
	uint8_t in[60], out[60];

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	for (unsigned int i = 0; i < 4096; i++) {
		frame_to_us(in);
		ip_of(in)->packet_id = (uint16_t)(i * 17);
		ip_of(in)->time_to_live = (uint8_t)(2 + i % 254);
		sum(in);
		frame_out(in, peer, out);
		dataplane_inject(0, in, sizeof(in));
		dataplane_turn();
		dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	}
}

static void
each_bad_packet_has_its_reason(void **state)
{
	static const struct {
		enum drop_reason reason;
		unsigned int at;
		uint8_t value;
		bool resum;
	} cases[] = {
		{ DROP_NOT_FOR_US, 5, 0x77, false },
		{ DROP_IP_MULTICAST, 0, 0x01, false },
		{ DROP_NOT_IP, 12, 0x99, false },
		{ DROP_IP_VLAN, 12, 0x81, false }, /* with 00 behind it: 0x8100 */
		{ DROP_IP_MALFORMED, 14, 0x55, false },
		{ DROP_IP_MALFORMED, 14, 0x44, false },
		{ DROP_IP_MALFORMED, 17, 10, true },
		{ DROP_IP_MALFORMED, 17, 200, true }, /* more than there is */
		{ DROP_IP_CHECKSUM, 25, 0x5b, false },
		{ DROP_IP_MARTIAN, 26, 127, true },
		{ DROP_IP_MARTIAN, 26, 0, true },
		{ DROP_IP_MARTIAN, 26, 224, true },
		{ DROP_IP_MARTIAN, 30, 127, true },
		{ DROP_IP_MARTIAN, 30, 0, true },
		{ DROP_IP_MARTIAN, 30, 255, true },
		{ DROP_IP_NO_ROUTE, 30, 100, true },
		{ DROP_IP_TTL, 22, 1, true },
		{ DROP_IP_TTL, 22, 0, true },
	};

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	/* Whom the errors go to is known and nobody's: they come out, and are not looked at here.
	 */
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint64_t before = dataplane_drops(cases[i].reason);
		struct rte_mbuf *m;
		uint8_t in[60];

		frame_to_us(in);
		in[cases[i].at] = cases[i].value;
		if (cases[i].resum)
			sum(in);
		dataplane_inject(0, in, sizeof(in));
		turns();
		if (dataplane_drops(cases[i].reason) != before + 1)
			fail_msg("case %zu was not dropped as %s", i,
				drop_info[cases[i].reason].name);
		while ((m = dataplane_sent(0)) != NULL)
			rte_pktmbuf_free(m);
	}
	assert_int_equal(dataplane_drops_all(), RTE_DIM(cases));
}

/* The plain frame with `len` bytes of options, a multiple of four, in its header. */
static uint32_t
frame_with_options(uint8_t frame[100], const void *options, uint32_t len)
{
	frame_to_us(frame);
	memmove(frame + 34 + len, frame + 34, IP_LEN - 20);
	memcpy(frame + 34, options, len);
	frame[14] = (uint8_t)(0x45 + len / 4);
	frame[17] = (uint8_t)(IP_LEN + len);
	sum(frame);
	return RTE_ETHER_HDR_LEN + IP_LEN + len;
}

static void
options_pass_but_source_routes(void **state)
{
	static const struct {
		const char *options;
		uint32_t len;
		enum drop_reason reason; /* DROP_MAX: none */
	} cases[] = {
		{ "\x01\x01\x01\x01", 4, DROP_MAX },
		{ "\x94\x04\0\0", 4, DROP_MAX }, /* router alert */
		{ "\x07\x07\x04\0\0\0\0\0", 8, DROP_MAX }, /* record route */
		{ "\x83\x07\x08\xc0\0\x02\x01\0", 8, DROP_MAX }, /* a loose one, at its end */
		{ "\x83\x07\x04\xc0\0\x02\x01\0", 8, DROP_IP_SOURCE_ROUTE },
		{ "\x89\x07\x04\xc0\0\x02\x01\0", 8, DROP_IP_SOURCE_ROUTE },
		{ "\x01\x89\x07\x04\xc0\0\x02\x01", 8, DROP_IP_SOURCE_ROUTE },
	};

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint8_t in[100], out[100];
		uint32_t len = frame_with_options(in, cases[i].options, cases[i].len);

		for (uint32_t cut = 0; cut < len; cut += 3) {
			uint64_t before = dataplane_drops_all();

			dataplane_inject_cut(0, in, len, cut);
			turns();
			if (cases[i].reason != DROP_MAX) {
				assert_int_equal(dataplane_drops_all(), before + 1);
				continue;
			}
			memcpy(out, in, len);
			memcpy(out, peer, 6);
			mac_of(1, out + 6);
			ip_of(out)->time_to_live--;
			sum(out);
			dataplane_expect(1, out, len);
		}
		/* Its sum counts all of it. */
		in[35] ^= 0x10;
		dataplane_inject(0, in, len);
		turns();
		dataplane_expect_nothing();
	}
	assert_int_equal(dataplane_drops_all(),
		dataplane_drops(DROP_IP_SOURCE_ROUTE) + dataplane_drops(DROP_IP_CHECKSUM) +
			dataplane_drops(DROP_IP_MALFORMED));
	assert_int_equal(dataplane_drops(DROP_IP_SOURCE_ROUTE), 3 * 18);
	assert_true(dataplane_drops(DROP_IP_CHECKSUM) >= 4);
}

static void
every_truncation_is_dropped_once(void **state)
{
	(void)state;
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	for (unsigned int kind = 0; kind < 3; kind++) {
		for (uint32_t len = 1; len < RTE_ETHER_HDR_LEN + IP_LEN; len++) {
			uint64_t before = dataplane_drops_all();
			uint8_t in[60];

			frame_to_us(in);
			if (kind > 0) /* to be forwarded, for us, an echo request */
				memcpy(in + 30, "\xc0\0\x02\x01", 4);
			if (kind == 2)
				memcpy(in + 23, "\x01", 1);
			sum(in);
			dataplane_inject_cut(0, in, len, len % 3 * 7);
			turns();
			assert_int_equal(dataplane_drops_all(), before + 1);
		}
	}
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(),
		dataplane_drops(DROP_NOT_IP) + dataplane_drops(DROP_IP_MALFORMED));
}

static void
route_types_drop_by_name(void **state)
{
	static const struct {
		const char *type;
		enum drop_reason reason;
	} cases[] = {
		{ "blackhole", DROP_IP_BLACKHOLE },
		{ "unreachable", DROP_IP_UNREACHABLE },
		{ "prohibit", DROP_IP_PROHIBIT },
	};

	(void)state;
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m;
		char line[64];
		uint8_t in[60];

		snprintf(line, sizeof(line), "ip route replace %s 198.51.100.0/24", cases[i].type);
		dataplane_command(line);
		frame_to_us(in);
		dataplane_inject(0, in, sizeof(in));
		turns();
		assert_int_equal(dataplane_drops(cases[i].reason), 1);
		if ((m = dataplane_sent(0)) != NULL)
			rte_pktmbuf_free(m);
		/* A blackhole says nothing. */
		assert_int_equal(m == NULL, cases[i].reason == DROP_IP_BLACKHOLE);
	}
}

static void
expect_arp_request(unsigned int port, const uint8_t source[4], const uint8_t target[4])
{
	uint8_t want[42] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x08, 0x06, 0, 1,
		0x08, 0, 6, 4, 0, 1 };

	mac_of(port, want + 6);
	mac_of(port, want + 22);
	memcpy(want + 28, source, 4);
	memcpy(want + 38, target, 4);
	dataplane_expect(port, want, sizeof(want));
}

static void
inject_arp_reply(
	unsigned int port, const uint8_t mac[6], const uint8_t from[4], const uint8_t to[4])
{
	uint8_t frame[60] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4,
		0, 2 };

	mac_of(port, frame);
	memcpy(frame + 6, mac, 6);
	memcpy(frame + 22, mac, 6);
	memcpy(frame + 28, from, 4);
	mac_of(port, frame + 32);
	memcpy(frame + 38, to, 4);
	dataplane_inject(port, frame, sizeof(frame));
}

static const uint8_t ours1[4] = { 203, 0, 113, 1 }, gateway[4] = { 203, 0, 113, 2 };

static void
gateway_is_asked_for_and_packets_wait(void **state)
{
	uint8_t in[60], out[60];

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	frame_to_us(in);
	frame_out(in, peer, out);
	dataplane_inject(0, in, sizeof(in));
	dataplane_inject(0, in, sizeof(in));
	turns();
	expect_arp_request(1, ours1, gateway);
	dataplane_expect_nothing();
	inject_arp_reply(1, peer, gateway, ours1);
	turns();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	/* From now on the worker does it alone. */
	dataplane_inject(0, in, sizeof(in));
	dataplane_turn();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	assert_int_equal(dataplane_drops_all(), dataplane_drops(DROP_ARP_CONSUMED));
	dataplane_command("ip neigh show dev p1 nud reachable");
}

static void
connected_host_is_asked_for(void **state)
{
	static const uint8_t host[4] = { 203, 0, 113, 77 };
	uint8_t in[60], out[60];

	(void)state;
	frame_to_us(in);
	memcpy(in + 30, host, 4);
	sum(in);
	frame_out(in, peer, out);
	dataplane_inject(0, in, sizeof(in));
	turns();
	expect_arp_request(1, ours1, host);
	inject_arp_reply(1, peer, host, ours1);
	turns();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	dataplane_inject(0, in, sizeof(in));
	dataplane_turn();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
}

static void
gateway_that_is_silent_fails(void **state)
{
	struct rte_mbuf *m;
	uint8_t in[60];
	uint64_t now;

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	frame_to_us(in);
	for (unsigned int i = 0; i < 5; i++)
		dataplane_inject(0, in, sizeof(in));
	turns();
	expect_arp_request(1, ours1, gateway);
	assert_int_equal(dataplane_drops(DROP_NEIGH_QUEUE), 2);
	/* only now: it may have taken a while to come here */
	now = rte_get_timer_cycles() / (rte_get_timer_hz() / 1000);
	for (unsigned int i = 1; i <= 3; i++) {
		route_tick(app.route, now + i * 1100);
		dataplane_turn();
		if (i < 3)
			expect_arp_request(1, ours1, gateway);
	}
	assert_int_equal(dataplane_drops(DROP_NEIGH_FAILED), 3);
	/* Three host unreachables. */
	for (unsigned int i = 0; i < 3; i++) {
		m = dataplane_sent(0);
		assert_non_null(m);
		assert_int_equal(rte_pktmbuf_mtod(m, const uint8_t *)[34], 3);
		assert_int_equal(rte_pktmbuf_mtod(m, const uint8_t *)[35], 1);
		rte_pktmbuf_free(m);
	}
	dataplane_expect_nothing();
}

/* What others gave it is something: a worker that sleeps when it finds nothing must not then. */
static void
a_round_says_whether_it_found_anything(void **state)
{
	uint8_t in[60];

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	frame_to_us(in);
	assert_int_equal(dataplane_turn(), 0);
	dataplane_inject(0, in, sizeof(in));
	assert_true(dataplane_turn() > 0);
	assert_int_equal(dataplane_turn(), 0);
	ip_control(&app); /* asks who has the gateway's address, by way of the worker */
	assert_true(dataplane_turn() > 0);
	expect_arp_request(1, ours1, gateway);
	assert_int_equal(dataplane_turn(), 0);
}

static void
arp_answers_for_our_addresses(void **state)
{
	static const uint8_t host[4] = { 192, 0, 2, 9 }, us[4] = { 192, 0, 2, 1 },
			     other[4] = { 192, 0, 2, 77 };
	uint8_t ask[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0xbb, 9, 0x08, 0x06,
		0, 1, 0x08, 0, 6, 4, 0, 1, 0x02, 0, 0, 0, 0xbb, 9 },
		want[42];

	(void)state;
	memcpy(ask + 28, host, 4);
	memcpy(ask + 38, us, 4);
	memcpy(want, ask, sizeof(want));
	memcpy(want, ask + 6, 6);
	mac_of(0, want + 6);
	want[21] = 2;
	mac_of(0, want + 22);
	memcpy(want + 28, us, 4);
	memcpy(want + 32, ask + 6, 6);
	memcpy(want + 38, host, 4);
	dataplane_inject(0, ask, sizeof(ask));
	turns();
	dataplane_expect(0, want, sizeof(want));
	/* Who asked is known by now; other stations' questions are none of ours. */
	dataplane_command("ip neigh get 192.0.2.9 dev p0");
	memcpy(ask + 38, other, 4);
	dataplane_inject(0, ask, sizeof(ask));
	turns();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(), dataplane_drops(DROP_ARP_CONSUMED));
	for (uint32_t len = 14; len < 42; len++) {
		dataplane_inject(0, ask, len);
		turns();
	}
	assert_int_equal(dataplane_drops(DROP_ARP_MALFORMED), 28);
}

static void
malformed_arp_teaches_nothing(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t value;
	} cases[] = {
		{ 15, 6 }, /* hardware */
		{ 16, 0x86 }, /* protocol */
		{ 18, 8 }, /* lengths of addresses */
		{ 19, 16 }, { 21, 3 }, /* operation: reverse ARP */
		{ 21, 0 }, { 20, 1 }, { 22, 0x03 }, /* a sender that is a group */
	};
	const uint8_t ask[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0xbb, 9, 0x08,
		0x06, 0, 1, 0x08, 0, 6, 4, 0, 1, 0x02, 0, 0, 0, 0xbb, 9, 192, 0, 2, 9, 0, 0, 0, 0,
		0, 0, 192, 0, 2, 1 };
	uint8_t in[60];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		memcpy(in, ask, sizeof(in));
		in[cases[i].at] = cases[i].value;
		dataplane_inject(0, in, sizeof(in));
		turns();
		assert_int_equal(dataplane_drops(DROP_ARP_MALFORMED), i + 1);
		dataplane_expect_nothing();
	}
	memcpy(in, ask, sizeof(in));
	memset(in + 22, 0, 6); /* nobody */
	dataplane_inject(0, in, sizeof(in));
	turns();
	assert_int_equal(dataplane_drops(DROP_ARP_MALFORMED), RTE_DIM(cases) + 1);
	dataplane_refused("ip neigh get 192.0.2.9 dev p0", "status");
	/* Good ARP from beyond the subnet, from our own address and from none: nobody is learnt. */
	for (unsigned int i = 0; i < 3; i++) {
		static const uint8_t senders[3][4] = { { 198, 51, 100, 9 }, { 192, 0, 2, 1 },
			{ 0, 0, 0, 0 } };

		memcpy(in, ask, sizeof(in));
		memcpy(in + 28, senders[i], 4);
		dataplane_inject(0, in, sizeof(in));
		turns();
	}
	router_discard(0);
	dataplane_refused("ip neigh get 198.51.100.9 dev p0", "status");
	dataplane_refused("ip neigh get 192.0.2.1 dev p0", "status");
	dataplane_refused("ip neigh get 0.0.0.0 dev p0", "status");
}

static void
echo_is_answered(void **state)
{
	uint8_t in[60], want[60];
	struct rte_icmp_hdr *icmp = (void *)(in + 34);
	struct rte_mbuf *m;
	const uint8_t *got;

	(void)state;
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	frame_to_us(in);
	memcpy(in + 30, "\xc0\x00\x02\x01", 4); /* 192.0.2.1 */
	in[23] = 1;
	in[22] = 1; /* nothing is forwarded, so nothing expires */
	memset(icmp, 0, 12);
	icmp->icmp_type = 8;
	icmp->icmp_ident = RTE_BE16(0x4242);
	memcpy(icmp + 1, "mill", 4);
	icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, 12);
	sum(in);
	dataplane_inject(0, in, sizeof(in));
	turns();
	m = dataplane_sent(0);
	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(m->pkt_len, RTE_ETHER_HDR_LEN + IP_LEN);
	memcpy(want, got, m->pkt_len);
	assert_memory_equal(got, "\x02\0\0\0\xbb\x09", 6);
	assert_memory_equal(got + 26, "\xc0\x00\x02\x01\xc0\x00\x02\x09", 8);
	assert_int_equal(got[34], 0);
	assert_int_equal((uint16_t)~rte_raw_cksum(got + 34, 12), 0);
	assert_int_equal((uint16_t)~rte_raw_cksum(got + 14, 20), 0);
	assert_memory_equal(got + 38, "\x42\x42\0\0mill", 8);
	rte_pktmbuf_free(m);
	/* A wrong sum gets no answer. */
	icmp->icmp_cksum ^= 1;
	dataplane_inject(0, in, sizeof(in));
	turns();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_IP_MALFORMED), 1);
}

static void
time_exceeded_quotes_the_packet(void **state)
{
	struct rte_mbuf *m;
	const uint8_t *got;
	uint8_t in[60];

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	frame_to_us(in);
	in[22] = 1;
	sum(in);
	dataplane_inject(0, in, sizeof(in));
	turns();
	m = dataplane_sent(0);
	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(m->pkt_len, 14 + 20 + 8 + IP_LEN);
	assert_int_equal(got[34], 11);
	assert_int_equal(got[35], 0);
	assert_memory_equal(got + 26, "\xc0\x00\x02\x01\xc0\x00\x02\x09", 8);
	assert_memory_equal(got + 42, in + 14, IP_LEN);
	assert_int_equal((uint16_t)~rte_raw_cksum(got + 34, 8 + IP_LEN), 0);
	assert_int_equal((uint16_t)~rte_raw_cksum(got + 14, 20), 0);
	rte_pktmbuf_free(m);
	/* Never about a fragment's tail, nor about an error. */
	ip_of(in)->fragment_offset = RTE_BE16(1);
	sum(in);
	dataplane_inject(0, in, sizeof(in));
	ip_of(in)->fragment_offset = 0;
	in[23] = 1;
	in[34] = 3;
	sum(in);
	dataplane_inject(0, in, sizeof(in));
	turns();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_IP_TTL), 3);
}

/* Sends 500 packets that deserve an error; how many of their senders get one. */
static unsigned int
errors_of_500(bool from_everywhere)
{
	uint8_t in[60];

	frame_to_us(in);
	for (unsigned int i = 0; i < 500; i++) {
		if (from_everywhere) {
			in[28] = (uint8_t)(100 + i / 100);
			in[29] = (uint8_t)i;
			sum(in);
		}
		dataplane_inject(0, in, sizeof(in));
	}
	for (unsigned int i = 0; i < 30; i++)
		dataplane_turn();
	ip_control(&app);
	ip_control(&app);
	for (unsigned int i = 0; i < 30; i++)
		dataplane_turn();
	return router_discard(0);
}

static void
errors_are_limited(void **state)
{
	(void)state;
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	dataplane_command("ip route add 192.0.0.0/16 via 192.0.2.9");
	dataplane_command("ip route add unreachable 198.51.100.0/24");
	/* A few at once to one sender, more to all of them. */
	assert_in_range(errors_of_500(false), 6, 8);
	assert_in_range(errors_of_500(true), 40, 200);
	assert_int_equal(dataplane_drops(DROP_IP_UNREACHABLE), 1000);
	/* The largest packet that passes is said to each. */
	memset(&app.ip->limit, 0, sizeof(app.ip->limit));
	dataplane_command("ip route replace 198.51.100.0/24 via 203.0.113.2");
	for (unsigned int i = 0; i < 20; i++) {
		uint8_t in[1514];

		frame_to_us(in);
		ip_of(in)->total_length = RTE_BE16(1500);
		ip_of(in)->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
		sum(in);
		route_dev_set(app.route,
			&(struct route_dev){ .ifindex = app.ports[1].ifindex,
				.port = 1,
				.mtu = 1000,
				.up = true });
		dataplane_inject(0, in, sizeof(in));
		turns();
	}
	assert_int_equal(router_discard(0), 20);
}

static void
gratuitous_arp_moves_traffic(void **state)
{
	static const uint8_t moved[6] = { 0x02, 0, 0, 0, 0xaa, 2 };
	uint8_t in[60], out[60];
	uint8_t garp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0xaa, 2, 0x08, 0x06,
		0, 1, 0x08, 0, 6, 4, 0, 1, 0x02, 0, 0, 0, 0xaa, 2 };

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1 nud reachable");
	memcpy(garp + 28, gateway, 4);
	memcpy(garp + 38, gateway, 4);
	dataplane_inject(1, garp, sizeof(garp));
	turns();
	frame_to_us(in);
	frame_out(in, moved, out);
	dataplane_inject(0, in, sizeof(in));
	dataplane_turn();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
	/* Not one that was set by hand. */
	dataplane_command("ip neigh replace 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_inject(1, garp, sizeof(garp));
	turns();
	frame_out(in, peer, out);
	dataplane_inject(0, in, sizeof(in));
	dataplane_turn();
	dataplane_expect(1, out, RTE_ETHER_HDR_LEN + IP_LEN);
}

static void
too_big_is_said(void **state)
{
	static uint8_t in[1514];
	struct rte_mbuf *m;
	const uint8_t *got;

	(void)state;
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	/* The rings' MTU cannot be set: what the table knows can. */
	route_dev_set(app.route,
		&(struct route_dev){
			.ifindex = app.ports[1].ifindex, .port = 1, .mtu = 1000, .up = true });
	frame_to_us(in);
	ip_of(in)->total_length = RTE_BE16(1500);
	ip_of(in)->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	sum(in);
	dataplane_inject(0, in, sizeof(in));
	turns();
	m = dataplane_sent(0);
	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(m->pkt_len, 14 + 576);
	assert_int_equal(got[34], 3);
	assert_int_equal(got[35], 4);
	assert_int_equal(got[40] << 8 | got[41], 1000);
	rte_pktmbuf_free(m);
	assert_int_equal(dataplane_drops(DROP_IP_TOO_BIG), 1);
}

/* What comes out of p0 says that no more than that fits. */
static void
expect_too_big(uint32_t mtu)
{
	struct rte_mbuf *m = dataplane_sent(0);
	const uint8_t *got;

	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(got[34] << 8 | got[35], 0x0304);
	assert_int_equal(got[40] << 8 | got[41], mtu);
	rte_pktmbuf_free(m);
}

/* A route's own MTU, also for one way of several; it stays when the neighbour moves. */
static void
routes_have_an_mtu(void **state)
{
	static uint8_t in[1514];

	(void)state;
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_command("ip neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0");
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2 mtu 1200");
	frame_to_us(in);
	ip_of(in)->total_length = RTE_BE16(1201);
	ip_of(in)->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	sum(in);
	dataplane_inject(0, in, 14 + 1201);
	turns();
	expect_too_big(1200);
	dataplane_command("ip neigh replace 203.0.113.2 lladdr 02:00:00:00:aa:02 dev p1");
	dataplane_inject(0, in, 14 + 1201);
	turns();
	expect_too_big(1200);
	/* The same neighbour by another route, and the address it has now. */
	dataplane_command("ip route add 198.51.100.2/32 via 203.0.113.2 mtu 1201");
	dataplane_inject(0, in, 14 + 1201);
	turns();
	assert_int_equal(router_discard(1), 1);
	dataplane_command("ip route replace 198.51.100.2/32 mtu 1100 nexthop via 203.0.113.2 "
			  "nexthop via 203.0.113.2 weight 3");
	dataplane_inject(0, in, 14 + 1201);
	turns();
	expect_too_big(1100);
	dataplane_command("ip route del 198.51.100.2/32");
	dataplane_command("ip route replace 198.51.100.0/24 via 203.0.113.2");
	dataplane_inject(0, in, 14 + 1201);
	turns();
	assert_int_equal(router_discard(1), 1);
	assert_int_equal(dataplane_drops_all(), 3);
}

static void
unreachable_gateways_are_refused(void **state)
{
	(void)state;
	dataplane_refused("ip route add 198.51.100.0/24 via 198.18.0.1", "status");
	dataplane_refused("ip route add 198.51.100.0/24 via 203.0.113.2 dev p0", "status");
	dataplane_refused("ip route add 198.51.100.0/24 via 203.0.113.1", "status");
	dataplane_refused("ip route add 198.51.100.1/24 via 203.0.113.2", "status");
	dataplane_refused("ip route add 198.51.100.0/24 dev p9", "status");
	dataplane_refused("ip route add table 7 198.51.100.0/24 via 203.0.113.2", "status");
	dataplane_refused("ip route del 198.51.100.0/24", "status");
	dataplane_refused("ip addr add 192.0.2.1/24 dev p0", "status");
	dataplane_refused("ip neigh del 192.0.2.99 dev p0", "status");
	dataplane_command("ip route add 198.51.100.0/24 via 198.18.0.1 dev p1 onlink");
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_two, close_all)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		T(packet_goes_to_the_gateway),
		T(checksum_is_updated_for_every_ttl_and_sum),
		T(each_bad_packet_has_its_reason),
		T(options_pass_but_source_routes),
		T(every_truncation_is_dropped_once),
		T(route_types_drop_by_name),
		T(gateway_is_asked_for_and_packets_wait),
		T(connected_host_is_asked_for),
		T(gateway_that_is_silent_fails),
		T(a_round_says_whether_it_found_anything),
		T(arp_answers_for_our_addresses),
		T(malformed_arp_teaches_nothing),
		T(echo_is_answered),
		T(time_exceeded_quotes_the_packet),
		T(errors_are_limited),
		T(gratuitous_arp_moves_traffic),
		T(too_big_is_said),
		T(routes_have_an_mtu),
		T(unreachable_gateways_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
