/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Mode ip over ports whose NICs do ESP (argument: inline_crypto or inline_protocol): which packets
 * they get, and what becomes of SAs when a port goes down, is reset or pulled out. No frame may
 * leave with the packet's text in clear; what the NIC encrypts it judges itself (test/nic).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "nic.h"
#include "router.h"

#define IP_LEN 48
#define MARKER "twenty bytes of text"
#define KEY "0x000102030405060708090a0b0c0d0e0f10111213"
#define ALG "proto esp spi 0x1001 mode tunnel aead 'rfc4106(gcm(aes))' " KEY " 128"
#define TUNNEL(from, to) "src 203.0.113." from " dst 203.0.113." to " "

static const char *preset;

static void
make_nics(unsigned int n_ports)
{
	for (uint16_t i = 0; i < n_ports; i++)
		assert_int_equal(nic_attach(i, preset, NIC_NEED_MDATA), 0);
	nic_marker(MARKER, sizeof(MARKER) - 1);
}

static struct nic_stats
stats(uint16_t port)
{
	struct nic_stats s;

	assert_int_equal(nic_stats(port, &s), 0);
	return s;
}

static struct ipsec_cache_stats
cache_stats(void)
{
	struct ipsec_cache_stats s;

	ipsec_cache_stats(app.ipsec, &s);
	return s;
}

/* p0: 192.0.2.0/24; p1: the peer 203.0.113.2, behind which 198.51.100.0/24 is. */
static int
open_two(void **state)
{
	(void)state;
	dataplane_wired = make_nics;
	router_open();
	dataplane_command("ip addr add 192.0.2.1/24 dev p0");
	dataplane_command("ip addr add 203.0.113.1/24 dev p1");
	dataplane_command("ip route add 198.51.100.0/24 via 203.0.113.2");
	dataplane_command("ip neigh add 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	return 0;
}

static int
close_all(void **state)
{
	struct nic_stats s;

	(void)state;
	for (uint16_t i = 0; i < 2; i++) {
		s = stats(i);
		assert_int_equal(s.tx_lost, 0);
		assert_int_equal(s.destroyed_in_use, 0);
	}
	dataplane_close();
	for (uint16_t i = 0; i < 2; i++) {
		s = stats(i);
		assert_int_equal(s.left, 0);
		assert_int_equal(s.flows, 0);
		nic_detach(i);
	}
	assert_true(nic_pool_full());
	return 0;
}

static void
tunnel_out(void)
{
	dataplane_command("ip xfrm state add " TUNNEL("1", "2") ALG);
	dataplane_command("ip xfrm policy add dst 198.51.100.0/24 dir out tmpl " TUNNEL(
		"1", "2") "proto esp mode tunnel");
}

/* UDP from 192.0.2.9 to 198.51.100.2 with the marker, addressed to p0. */
static void
plain_frame(uint8_t frame[RTE_ETHER_HDR_LEN + IP_LEN])
{
	static const uint8_t head[] = { 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0xbb, 9, 0x08, 0x00, 0x45,
		0, 0, IP_LEN, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9, 198, 51, 100, 2, 0x03,
		0xe8, 0, 9, 0, IP_LEN - 20, 0, 0 };

	memcpy(frame, head, sizeof(head));
	memcpy(frame + sizeof(head), MARKER, sizeof(MARKER) - 1);
	mac_of(0, frame);
	sum(frame);
}

static void
send_plain(void)
{
	uint8_t frame[RTE_ETHER_HDR_LEN + IP_LEN];

	plain_frame(frame);
	dataplane_inject(0, frame, sizeof(frame));
	dataplane_turn();
}

/* The next frame of p1, which is ESP, in `frame`; its length. */
static uint32_t
take_esp(uint8_t frame[256])
{
	struct rte_mbuf *m = dataplane_sent(1);
	uint8_t buf[256];
	const uint8_t *p;
	uint32_t len;

	if (m == NULL) {
		struct nic_stats s = stats(1);

		for (unsigned int i = 0; nic_stats_name(i) != NULL; i++)
			if (nic_stats_value(&s, i) != 0)
				print_message("%s %u\n", nic_stats_name(i),
					(unsigned int)nic_stats_value(&s, i));
		dataplane_command("show drops");
		fail_msg("no ESP came out of p1");
	}
	len = m->pkt_len;
	assert_true(len <= 256);
	p = rte_pktmbuf_read(m, 0, len, buf);
	assert_int_equal(p[12] << 8 | p[13], 0x0800);
	assert_int_equal(p[23], IPPROTO_ESP);
	assert_null(memmem(p, len, MARKER, sizeof(MARKER) - 1));
	memcpy(frame, p, len);
	rte_pktmbuf_free(m);
	return len;
}

static void
expect_esp(void)
{
	uint8_t frame[256];

	take_esp(frame);
	dataplane_expect_nothing();
}

/* Lets time pass in the control thread, and the worker come by. */
static void
let_pass(unsigned int ms)
{
	for (; ms > 0; ms -= RTE_MIN(ms, 20u)) {
		usleep(20000);
		dataplane_tick();
		dataplane_turn();
	}
}

static void
nic_protects_what_leaves_by_it(void **state)
{
	(void)state;
	tunnel_out();
	assert_int_equal(stats(1).sessions, 1);
	assert_int_equal(cache_stats().sessions, 1);
	for (int i = 0; i < 10; i++) {
		send_plain();
		expect_esp();
	}
	assert_int_equal(stats(1).tx_protected, 10);
	assert_int_equal(stats(1).tx_lens, 0);
	assert_int_equal(stats(1).plaintext, 0);
	assert_int_equal(dataplane_drops_all(), 0);
}

/* What came out of p1 goes in there again, as the peer's. */
static void
send_back(uint8_t *frame, uint32_t len)
{
	mac_of(1, frame);
	frame[29] = 2;
	frame[33] = 1;
	sum(frame);
	dataplane_inject(1, frame, len);
	dataplane_turn();
}

static void
nic_opens_what_comes_in_by_it(void **state)
{
	uint8_t frame[256], more[256], want[RTE_ETHER_HDR_LEN + IP_LEN];
	struct rte_mbuf *m;
	uint32_t len;

	(void)state;
	tunnel_out();
	send_plain();
	len = take_esp(frame);
	send_plain();
	take_esp(more);
	dataplane_command("ip xfrm policy flush");
	dataplane_command("ip xfrm state add " TUNNEL("2", "1") ALG " replay-window 64");
	dataplane_command("ip xfrm policy add dst 198.51.100.0/24 dir fwd tmpl " TUNNEL(
		"2", "1") "proto esp mode tunnel");
	assert_int_equal(cache_stats().sessions, 2);
	send_back(frame, len);
	assert_int_equal(stats(1).rx_decrypted, 1);
	/* It goes the way of its destination, in clear. */
	plain_frame(want);
	assert_non_null(m = dataplane_sent(1));
	assert_int_equal(m->pkt_len, sizeof(want));
	assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[22], 62); /* its TTL */
	assert_memory_equal(rte_pktmbuf_mtod_offset(m, uint8_t *, 26), want + 26, IP_LEN - 12);
	rte_pktmbuf_free(m);
	assert_int_equal(dataplane_drops_all(), 0);
	/* Once more is a replay, and one bit makes it somebody else's. */
	dataplane_inject(1, frame, len);
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_REPLAY) + dataplane_drops(DROP_ESP_DEVICE), 1);
	more[len - 1] ^= 1;
	send_back(more, len);
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(), 2);
	/* Its SA gone, what the NIC still opens is nobody's. */
	more[len - 1] ^= 1;
	dataplane_command("ip xfrm state flush");
	dataplane_inject(1, more, len);
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(), 3);
}

static void
sessions_go_with_a_port_that_is_down(void **state)
{
	uint64_t before;

	(void)state;
	tunnel_out();
	send_plain();
	expect_esp();
	dataplane_command("ip link set p1 down");
	assert_int_equal(cache_stats().sessions, 0);
	send_plain();
	dataplane_expect_nothing();
	/* With the link down a NIC may keep what it has for ever, and so does the session. */
	let_pass(2500);
	assert_int_equal(stats(1).sessions, 1);
	assert_int_equal(cache_stats().sessions_dying, 1);
	dataplane_command("ip link set p1 up");
	dataplane_command("ip neigh replace 203.0.113.2 lladdr 02:00:00:00:aa:01 dev p1");
	dataplane_command("ip route replace 198.51.100.0/24 via 203.0.113.2");
	/* In software at once, by a new session soon. */
	send_plain();
	expect_esp();
	let_pass(3500);
	assert_int_equal(cache_stats().sessions_dying, 0);
	assert_int_equal(stats(1).sessions, 1);
	before = stats(1).tx_protected;
	send_plain();
	expect_esp();
	assert_int_equal(stats(1).tx_protected, before + 1);
}

static void
a_session_outlives_its_last_frame(void **state)
{
	(void)state;
	tunnel_out();
	dataplane_block(1, true);
	send_plain();
	dataplane_command("ip xfrm state flush");
	let_pass(2500);
	/* It waits, and the session with it. */
	assert_int_equal(stats(1).sessions, 1);
	assert_int_equal(cache_stats().sessions_dying, 1);
	dataplane_block(1, false);
	dataplane_turn();
	expect_esp();
	assert_int_equal(stats(1).tx_protected, 1);
	let_pass(2500);
	assert_int_equal(stats(1).sessions, 0);
	assert_int_equal(cache_stats().sessions_dying, 0);
}

static void
a_reset_leaves_sas_in_software(void **state)
{
	uint32_t ifindex = app.ports[1].ifindex;
	uint64_t drops;

	(void)state;
	tunnel_out();
	send_plain();
	expect_esp();
	assert_int_equal(nic_event(1, "intr_reset"), 0);
	send_plain(); /* the NIC takes nothing any more: it waits, and is flushed */
	dataplane_tick();
	dataplane_deal();
	app.workers[0].ipsec = ipsec_cache_worker(app.ipsec, 0);
	assert_int_equal(app.ports[1].ifindex, ifindex);
	assert_int_equal(cache_stats().sessions_dying, 0);
	drops = dataplane_drops_all();
	send_plain();
	expect_esp();
	assert_int_equal(dataplane_drops_all(), drops);
	let_pass(2500);
	assert_int_equal(stats(1).sessions, 1);
	send_plain();
	expect_esp();
	assert_true(stats(1).tx_protected >= 2);
}

static void
a_port_that_is_pulled_out_takes_its_sessions_along(void **state)
{
	(void)state;
	tunnel_out();
	send_plain();
	expect_esp();
	assert_int_equal(nic_event(1, "intr_rmv"), 0);
	send_plain();
	dataplane_tick();
	assert_null(port_get(&app, 1));
	assert_int_equal(cache_stats().sessions, 0);
	assert_int_equal(cache_stats().sessions_dying, 0);
	dataplane_deal();
	send_plain();
	dataplane_expect_nothing();
}

static void
events_in_a_storm_cost_nothing_lasting(void **state)
{
	(void)state;
	tunnel_out();
	send_plain();
	expect_esp();
	assert_int_equal(nic_event_storm(1, 20000), 0);
	let_pass(40);
	/* Some said that the SA is at its end. */
	assert_true(ipsec_cache_sa_count(app.ipsec) <= 1);
	dataplane_turn();
}

/* `ip` shows what was asked for, and the refusal names port, SA and what is lacking. */
static void
an_sa_asks_for_its_port(void **state)
{
	(void)state;
	if (strcmp(preset, "inline_crypto") != 0) {
		dataplane_refused(
			"ip xfrm state add " TUNNEL("1", "2") ALG " offload dev p1 dir out", "");
		assert_int_equal(ipsec_cache_sa_count(app.ipsec), 0);
		return;
	}
	dataplane_command("ip xfrm state add " TUNNEL("1", "2") ALG " offload dev p1 dir out");
	assert_int_equal(stats(1).sessions, 1);
	dataplane_command("ip xfrm policy add dst 198.51.100.0/24 dir out tmpl " TUNNEL(
		"1", "2") "proto esp mode tunnel");
	send_plain();
	expect_esp();
	assert_int_equal(stats(1).tx_protected, 1);
	/* By another port it is the CPU's, and it stays where it is. */
	dataplane_command("ip xfrm state flush");
	assert_int_equal(nic_caps_remove(0, RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO), 0);
	dataplane_refused("ip xfrm state add " TUNNEL("1", "2") ALG " offload dev p0 dir out", "");
	assert_int_equal(ipsec_cache_sa_count(app.ipsec), 0);
}

static void
another_port_gets_it_from_the_cpu(void **state)
{
	uint8_t frame[256];
	bool whole = strcmp(preset, "inline_protocol") == 0;

	(void)state;
	tunnel_out();
	dataplane_command("tc qdisc add dev p1 clsact");
	dataplane_command("tc filter add dev p1 egress matchall action mirred egress redirect dev "
			  "p0");
	send_plain();
	if (whole) {
		dataplane_expect_nothing();
		assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 1);
	} else {
		struct rte_mbuf *m = dataplane_sent(0);

		assert_non_null(m);
		assert_null(memmem(
			rte_pktmbuf_mtod(m, uint8_t *), m->data_len, MARKER, sizeof(MARKER) - 1));
		rte_pktmbuf_free(m);
		assert_int_equal(cache_stats().completed, 1);
	}
	dataplane_command("tc filter del dev p1 egress");
	/* A copy is the same frame, or there is none. */
	dataplane_command("tc filter add dev p1 egress matchall action mirred egress mirror dev "
			  "p0");
	send_plain();
	if (!whole) {
		struct rte_mbuf *m = dataplane_sent(0);
		uint32_t len = take_esp(frame);

		assert_non_null(m);
		assert_int_equal(m->pkt_len, len);
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), frame, len);
		rte_pktmbuf_free(m);
	} else {
		take_esp(frame);
		assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 2);
	}
	dataplane_expect_nothing();
	assert_int_equal(stats(0).plaintext + stats(1).plaintext, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_two, close_all)

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		T(nic_protects_what_leaves_by_it),
		T(nic_opens_what_comes_in_by_it),
		T(sessions_go_with_a_port_that_is_down),
		T(a_session_outlives_its_last_frame),
		T(a_reset_leaves_sas_in_software),
		T(a_port_that_is_pulled_out_takes_its_sessions_along),
		T(events_in_a_storm_cost_nothing_lasting),
		T(an_sa_asks_for_its_port),
		T(another_port_gets_it_from_the_cpu),
	};

	preset = argc > 1 ? argv[1] : "all";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
