/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Mode ip and IPv6. */

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

#define ICMP6 58
#define LEN (14 + 40 + 12)

static const uint8_t host[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 },
		     us[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
		     us1[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 1, [15] = 1 },
		     gateway[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 1, [15] = 2 },
		     far[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 2, [15] = 7 },
		     peer[6] = { 0x02, 0, 0, 0, 0xaa, 1 }, host_mac[6] = { 0x02, 0, 0, 0, 0xbb, 9 };

static int
open_two(void **state)
{
	(void)state;
	router_open();
	dataplane_command("ip addr add 2001:db8::1/64 dev p0");
	dataplane_command("ip addr add 2001:db8:1::1/64 dev p1");
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	dataplane_close();
	return 0;
}

/* Ethernet and IPv6 in front of `len` bytes of payload that are there. */
static void
headers(uint8_t *frame, const uint8_t *src, const uint8_t *dst, uint8_t proto, uint16_t len)
{
	struct rte_ipv6_hdr *h = (void *)(frame + 14);

	mac_of(0, frame);
	memcpy(frame + 6, host_mac, 6);
	frame[12] = 0x86;
	frame[13] = 0xdd;
	memset(h, 0, sizeof(*h));
	h->vtc_flow = RTE_BE32(6u << 28);
	h->payload_len = rte_cpu_to_be_16(len);
	h->proto = proto;
	h->hop_limits = 64;
	memcpy(h->src_addr, src, 16);
	memcpy(h->dst_addr, dst, 16);
}

static void
icmp6_sum(uint8_t *frame)
{
	uint16_t sum;

	frame[56] = frame[57] = 0;
	sum = rte_ipv6_udptcp_cksum((void *)(frame + 14), frame + 54);
	memcpy(frame + 56, &sum, sizeof(sum));
}

static void
udp_to_far(uint8_t frame[LEN])
{
	memset(frame, 0, LEN);
	headers(frame, host, far, 17, 12);
	memcpy(frame + 54, "\x03\xe8\x00\x09\x00\x0c\xbe\xefmill", 12);
}

static void
packet_goes_to_the_gateway(void **state)
{
	uint8_t in[LEN], out[LEN];

	(void)state;
	dataplane_command("ip -6 route add 2001:db8:2::/48 via 2001:db8:1::2");
	dataplane_command("ip neigh add 2001:db8:1::2 lladdr 02:00:00:00:aa:01 dev p1");
	udp_to_far(in);
	memcpy(out, in, LEN);
	memcpy(out, peer, 6);
	mac_of(1, out + 6);
	out[21]--;
	for (uint32_t cut = 0; cut < LEN; cut++) {
		dataplane_inject_cut(0, in, LEN, cut);
		dataplane_turn();
		dataplane_expect(1, out, LEN);
	}
	assert_int_equal(dataplane_drops_all(), 0);
}

static void
each_bad_packet_has_its_reason(void **state)
{
	static const struct {
		enum drop_reason reason;
		unsigned int at;
		uint8_t value;
	} cases[] = {
		{ DROP_IP_MALFORMED, 14, 0x50 },
		{ DROP_IP_MALFORMED, 19, 200 }, /* longer than the frame */
		{ DROP_IP_MARTIAN, 22, 0xff }, /* from a group */
		{ DROP_IP_MULTICAST, 38, 0xff },
		{ DROP_IP_NO_ROUTE, 38, 0x30 },
		{ DROP_IP_TTL, 21, 1 },
		{ DROP_IP_TTL, 21, 0 },
	};

	(void)state;
	dataplane_command("ip -6 route add 2001:db8:2::/48 via 2001:db8:1::2");
	dataplane_command("ip neigh add 2001:db8:1::2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_command("ip neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0");
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m;
		uint8_t in[LEN];

		udp_to_far(in);
		in[cases[i].at] = cases[i].value;
		dataplane_inject(0, in, LEN);
		turns();
		if (dataplane_drops(cases[i].reason) == 0)
			fail_msg("case %zu was not dropped as %s", i,
				drop_info[cases[i].reason].name);
		while ((m = dataplane_sent(0)) != NULL)
			rte_pktmbuf_free(m);
	}
	assert_int_equal(dataplane_drops_all(), RTE_DIM(cases));
}

/* A neighbour message with one link address option. */
static void
nd(uint8_t frame[86], const uint8_t *src, const uint8_t *dst, uint8_t type, const uint8_t *target,
	const uint8_t *mac)
{
	memset(frame, 0, 86);
	headers(frame, src, dst, ICMP6, 32);
	frame[21] = 255;
	frame[54] = type;
	memcpy(frame + 62, target, 16);
	frame[78] = type == 135 ? 1 : 2;
	frame[79] = 1;
	memcpy(frame + 80, mac, 6);
	icmp6_sum(frame);
}

/* fe80:: and the MAC address with ff:fe in its middle: RFC 2464 4. */
static void
link_local(unsigned int port, uint8_t addr[16])
{
	const uint8_t form[16] = { 0xfe, 0x80, [11] = 0xff, [12] = 0xfe };
	uint8_t mac[6];

	mac_of(port, mac);
	memcpy(addr, form, sizeof(form));
	memcpy(addr + 8, mac, 3);
	memcpy(addr + 13, mac + 3, 3);
	addr[8] ^= 2;
}

static void
gateway_is_asked_for(void **state)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0xff, 0, 0, 2 },
			     solicited[16] = { 0xff, 2, [11] = 1, 0xff, 0, 0, 2 };
	uint8_t in[LEN], out[LEN], want[86], mac[6], answer[86], src[16];

	(void)state;
	dataplane_command("ip -6 route add 2001:db8:2::/48 via 2001:db8:1::2");
	udp_to_far(in);
	dataplane_inject(0, in, LEN);
	turns();
	mac_of(1, mac);
	link_local(1, src);
	nd(want, src, solicited, 135, gateway, mac);
	memcpy(want, group, 6);
	memcpy(want + 6, mac, 6);
	dataplane_expect(1, want, sizeof(want));
	nd(answer, gateway, src, 136, gateway, peer);
	mac_of(1, answer);
	answer[58] = 0x60; /* solicited, override */
	/* From beyond the link: not believed. */
	answer[21] = 64;
	icmp6_sum(answer);
	dataplane_inject(1, answer, sizeof(answer));
	turns();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ND_MALFORMED), 1);
	answer[21] = 255;
	icmp6_sum(answer);
	dataplane_inject(1, answer, sizeof(answer));
	turns();
	memcpy(out, in, LEN);
	memcpy(out, peer, 6);
	memcpy(out + 6, mac, 6);
	out[21]--;
	dataplane_expect(1, out, LEN);
	assert_int_equal(dataplane_drops(DROP_ND_CONSUMED), 1);
}

static void
solicitations_are_answered(void **state)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0xff, 0, 0, 1 },
			     solicited[16] = { 0xff, 2, [11] = 1, 0xff, 0, 0, 1 };
	uint8_t ask[86], want[86], mac[6];

	(void)state;
	mac_of(0, mac);
	nd(ask, host, solicited, 135, us, host_mac);
	memcpy(ask, group, 6);
	dataplane_inject(0, ask, sizeof(ask));
	turns();
	nd(want, us, host, 136, us, mac);
	memcpy(want, host_mac, 6);
	memcpy(want + 6, mac, 6);
	want[58] = 0xe0;
	icmp6_sum(want);
	dataplane_expect(0, want, sizeof(want));
	dataplane_command("ip neigh get 2001:db8::9 dev p0");
	/* Options that lie, every cut, and a redirect: nothing comes out. */
	ask[79] = 0;
	icmp6_sum(ask);
	dataplane_inject(0, ask, sizeof(ask));
	ask[79] = 2;
	icmp6_sum(ask);
	dataplane_inject(0, ask, sizeof(ask));
	ask[79] = 1;
	ask[54] = 137;
	icmp6_sum(ask);
	dataplane_inject(0, ask, sizeof(ask));
	turns();
	assert_int_equal(dataplane_drops(DROP_ND_MALFORMED), 2);
	assert_int_equal(dataplane_drops(DROP_ND_IGNORED), 1);
	for (uint32_t len = 0; len < sizeof(ask); len++) {
		if (len > 0)
			dataplane_inject(0, ask, len);
		turns();
	}
	dataplane_expect_nothing();
}

/* Solicitations and advertisements that RFC 4861 7.1 says to discard. */
static void
malformed_discovery_teaches_nothing(void **state)
{
	static const struct {
		uint8_t type;
		unsigned int at;
		uint8_t value;
	} cases[] = {
		{ 135, 21, 254 }, /* hop limit */
		{ 136, 21, 254 },
		{ 135, 55, 1 }, /* code */
		{ 136, 55, 1 },
		{ 135, 62, 0xff }, /* a group as its target */
		{ 136, 62, 0xff },
		{ 135, 79, 0 }, /* an option of no length, and one of too much */
		{ 135, 79, 2 },
		{ 136, 79, 0 },
		{ 136, 79, 2 },
		{ 135, 80, 0x03 }, /* the link address of a group */
		{ 136, 80, 0x03 },
	};
	static const uint8_t none[16];
	uint8_t in[86];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		nd(in, host, us, cases[i].type, cases[i].type == 135 ? us : host, host_mac);
		in[cases[i].at] = cases[i].value;
		icmp6_sum(in);
		dataplane_inject(0, in, sizeof(in));
		turns();
		if (dataplane_drops(DROP_ND_MALFORMED) != i + 1)
			fail_msg("case %zu was not malformed", i);
		dataplane_expect_nothing();
	}
	/* A probe (no source) to one address, and one with a link address of its own. */
	nd(in, none, us, 135, us, host_mac);
	dataplane_inject(0, in, sizeof(in));
	turns();
	assert_int_equal(dataplane_drops(DROP_ND_MALFORMED) + dataplane_drops(DROP_IP_MARTIAN),
		RTE_DIM(cases) + 1);
	dataplane_expect_nothing();
	dataplane_refused("ip neigh get 2001:db8::9 dev p0", "status");
}

static bool
has_link_local(unsigned int port)
{
	uint8_t addr[16];

	link_local(port, addr);
	return route_address_find(app.route, app.ports[port].ifindex, AF_INET6, addr) != NULL;
}

static void
ports_have_link_local_addresses(void **state)
{
	(void)state;
	turns();
	assert_true(has_link_local(0));
	assert_true(has_link_local(1));
	/* Taken away by hand it stays away, until the port goes up again. */
	dataplane_command("ip -6 addr flush dev p0 scope link");
	turns();
	assert_false(has_link_local(0));
	dataplane_command("ip link set p0 down");
	turns();
	assert_false(has_link_local(0));
	dataplane_command("ip link set p0 up");
	turns();
	assert_true(has_link_local(0));
}

/* Routers' messages and redirects: read by nobody, counted. */
static void
redirects_are_ignored(void **state)
{
	uint8_t in[LEN], out[LEN], redirect[54 + 40 + 8] = { 0 };

	(void)state;
	dataplane_command("ip -6 route add 2001:db8:2::/48 via 2001:db8:1::2");
	dataplane_command("ip neigh add 2001:db8:1::2 lladdr 02:00:00:00:aa:01 dev p1");
	for (uint8_t type = 133; type <= 137; type++) {
		if (type == 135 || type == 136)
			continue;
		/* From the gateway itself: go to far by way of the host. */
		headers(redirect, gateway, us1, ICMP6, 48);
		mac_of(1, redirect);
		redirect[21] = 255;
		redirect[54] = type;
		memcpy(redirect + 62, host, 16);
		memcpy(redirect + 78, far, 16);
		redirect[94] = 2;
		redirect[95] = 1;
		memcpy(redirect + 96, host_mac, 6);
		icmp6_sum(redirect);
		dataplane_inject(1, redirect, sizeof(redirect));
		turns();
	}
	assert_int_equal(dataplane_drops(DROP_ND_IGNORED), 3);
	udp_to_far(in);
	memcpy(out, in, LEN);
	memcpy(out, peer, 6);
	mac_of(1, out + 6);
	out[21]--;
	dataplane_inject(0, in, LEN);
	turns();
	dataplane_expect(1, out, LEN);
	assert_int_equal(dataplane_drops_all(), 3);
}

/* Packets for us and to be forwarded, cut anywhere: one drop each. */
static void
every_truncation_is_dropped_once(void **state)
{
	(void)state;
	dataplane_command("ip neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0");
	for (unsigned int kind = 0; kind < 3; kind++) {
		for (uint32_t len = 1; len < LEN; len++) {
			uint64_t before = dataplane_drops_all();
			uint8_t in[86];

			udp_to_far(in);
			if (kind == 1)
				memcpy(in + 38, us, 16);
			else if (kind == 2)
				nd(in, host, us, 135, us, host_mac);
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
echo_is_answered(void **state)
{
	uint8_t in[LEN] = { 0 }, want[LEN], mac[6];

	(void)state;
	dataplane_command("ip neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0");
	headers(in, host, us, ICMP6, 12);
	in[54] = 128;
	memcpy(in + 62, "mill", 4);
	icmp6_sum(in);
	dataplane_inject(0, in, LEN);
	turns();
	mac_of(0, mac);
	memcpy(want, in, LEN);
	headers(want, us, host, ICMP6, 12);
	memcpy(want, host_mac, 6);
	memcpy(want + 6, mac, 6);
	want[54] = 129;
	icmp6_sum(want);
	dataplane_expect(0, want, LEN);
}

static void
errors_quote_and_sum(void **state)
{
	struct rte_mbuf *m;
	uint8_t in[LEN];
	const uint8_t *got;

	(void)state;
	dataplane_command("ip neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0");
	udp_to_far(in);
	dataplane_inject(0, in, LEN);
	turns();
	m = dataplane_sent(0);
	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(m->pkt_len, 14 + 40 + 8 + LEN - 14);
	assert_int_equal(got[54], 1);
	assert_int_equal(got[55], 0);
	assert_memory_equal(got + 62, in + 14, LEN - 14);
	assert_int_equal(rte_ipv6_udptcp_cksum_verify((const void *)(got + 14), got + 54), 0);
	rte_pktmbuf_free(m);
}

static void
packet_too_big(void **state)
{
	static uint8_t in[1514];
	struct rte_mbuf *m;
	const uint8_t *got;

	(void)state;
	dataplane_command("ip -6 route add 2001:db8:2::/48 via 2001:db8:1::2");
	dataplane_command("ip neigh add 2001:db8:1::2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_command("ip neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0");
	route_dev_set(app.route,
		&(struct route_dev){
			.ifindex = app.ports[1].ifindex, .port = 1, .mtu = 1400, .up = true });
	headers(in, host, far, 17, 1460);
	dataplane_inject(0, in, sizeof(in));
	turns();
	m = dataplane_sent(0);
	assert_non_null(m);
	got = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_int_equal(m->pkt_len, 14 + 1280);
	assert_int_equal(got[54], 2);
	assert_int_equal(got[60] << 8 | got[61], 1400);
	rte_pktmbuf_free(m);
	assert_int_equal(dataplane_drops(DROP_IP_TOO_BIG), 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_two, close_all)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		T(packet_goes_to_the_gateway),
		T(each_bad_packet_has_its_reason),
		T(gateway_is_asked_for),
		T(solicitations_are_answered),
		T(malformed_discovery_teaches_nothing),
		T(ports_have_link_local_addresses),
		T(redirects_are_ignored),
		T(every_truncation_is_dropped_once),
		T(echo_is_answered),
		T(errors_quote_and_sum),
		T(packet_too_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
