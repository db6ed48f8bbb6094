/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * libFuzzer: bursts of frames into mode ip, the whole dataplane. An input is records, each
 *
 *	flags, then the frame's length in two bytes (little-endian), then the frame
 *
 * The flags mend what a fuzzer seldom guesses (MAC address, sums), cut the frame into segments, put
 * it into one burst with the next. After each input time passes until nobody waits for anything any
 * more. Then every mbuf is back, every frame that came out was whole, and none vanished.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <sanitizer/lsan_interface.h>

#include "dataplane.h"
#include "forward/ip.h"

#define F_PORT 0x01 /* into p1, not p0 */
#define F_MAC 0x02 /* to the port's own address */
#define F_IPV4_SUM 0x04
#define F_ICMP_SUM 0x08 /* of ICMP, or of ICMPv6 behind a plain header */
#define F_CUT 0x10 /* into segments */
#define F_MORE 0x20 /* in one burst with the next */
#define F_TIME 0x40 /* some seconds pass first */

#define RECORD 3
#define RECORDS_MAX 32
#define FRAME_MAX 2048
#define NARROW 1000 /* MTU of p1 */

static unsigned int room; /* mbufs of the program's pool, at rest */
static uint64_t came_out;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool good)
{
	if (!good)
		abort();
}

static void
address(unsigned int port, uint8_t family, const char *text, uint8_t len)
{
	struct route_address a = {
		.ifindex = app.ports[port].ifindex, .family = family, .len = len
	};

	check(inet_pton(family, text, a.addr) == 1);
	check(route_address_add(app.route, &a) == 0);
}

static void
route(uint8_t family, const char *dst, uint8_t len, const char *gateway, uint8_t type)
{
	struct route_spec spec = { .family = family, .len = len, .type = type };
	const char *why;

	check(inet_pton(family, dst, spec.dst) == 1);
	if (gateway != NULL) {
		spec.n_paths = 1;
		spec.paths[0].has_gateway = true;
		spec.paths[0].weight = 1;
		check(inet_pton(family, gateway, spec.paths[0].gateway) == 1);
	}
	check(route_add(app.route, &spec, ROUTE_CREATE, &why) == 0);
}

static void
neighbour(unsigned int port, uint8_t family, const char *text)
{
	struct route_neigh_info n = { .ifindex = app.ports[port].ifindex,
		.family = family,
		.state = NUD_PERMANENT,
		.has_lladdr = true,
		.lladdr = { 2, 0, 0, 0, 0xbb, (uint8_t)port } };

	check(inet_pton(family, text, n.addr) == 1);
	check(route_neigh_set(app.route, &n, ROUTE_CREATE) == 0);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct route_dev dev;
	size_t size;

	(void)argc;
	(void)argv;
	dataplane_open(2);
	dataplane_command("set fwd ip");
	app.workers[0].mode = app.mode;
	address(0, AF_INET, "192.0.2.1", 24);
	address(0, AF_INET6, "2001:db8::1", 64);
	address(0, AF_INET6, "fe80::1", 64);
	address(1, AF_INET, "203.0.113.1", 24);
	address(1, AF_INET6, "2001:db8:1::1", 64);
	neighbour(0, AF_INET, "192.0.2.9");
	neighbour(0, AF_INET6, "2001:db8::9");
	neighbour(1, AF_INET, "203.0.113.2");
	neighbour(1, AF_INET6, "2001:db8:1::2");
	route(AF_INET, "198.51.100.0", 25, "203.0.113.2", RTN_UNICAST);
	route(AF_INET, "198.51.100.128", 25, "203.0.113.3", RTN_UNICAST); /* whom nobody knows */
	route(AF_INET, "198.18.0.0", 16, NULL, RTN_BLACKHOLE);
	route(AF_INET, "198.19.0.0", 17, NULL, RTN_UNREACHABLE);
	route(AF_INET, "198.19.128.0", 17, NULL, RTN_PROHIBIT);
	route(AF_INET6, "2001:db8:2::", 48, "2001:db8:1::2", RTN_UNICAST);
	route(AF_INET6, "2001:db8:3::", 48, "2001:db8:1::3", RTN_UNICAST);
	route(AF_INET6, "2001:db8:4::", 48, NULL, RTN_PROHIBIT);
	dev = *route_dev_find(app.route, app.ports[1].ifindex);
	dev.mtu = NARROW;
	check(route_dev_set(app.route, &dev) == 0);
	room = rte_mempool_avail_count(app.pool[0]);
	/* The leak checker does not see what is reached from DPDK's memory alone. */
	check(rte_malloc_validate(app.route, &size) == 0);
	__lsan_register_root_region(app.route, size);
	return 0;
}

/* --- in --- */

static void
mend_icmp(uint8_t *frame, uint32_t len)
{
	struct rte_ipv6_hdr *h6 = (void *)(frame + 14);
	struct rte_ipv4_hdr *h4 = (void *)(frame + 14);
	uint16_t sum;

	if (frame[12] == 0x86 && len >= 58 && h6->proto == IPPROTO_ICMPV6 &&
		rte_be_to_cpu_16(h6->payload_len) <= len - 54 &&
		rte_be_to_cpu_16(h6->payload_len) >= 4) {
		frame[56] = frame[57] = 0;
		sum = rte_ipv6_udptcp_cksum(h6, frame + 54);
		memcpy(frame + 56, &sum, sizeof(sum));
	} else if (frame[12] == 0x08 && len >= 38 && h4->version_ihl == 0x45 &&
		rte_be_to_cpu_16(h4->total_length) <= len - 14 &&
		rte_be_to_cpu_16(h4->total_length) >= 24) {
		frame[36] = frame[37] = 0;
		sum = (uint16_t)~rte_raw_cksum(
			frame + 34, rte_be_to_cpu_16(h4->total_length) - 20u);
		memcpy(frame + 36, &sum, sizeof(sum));
	}
}

static void
mend(uint8_t *frame, uint32_t len, uint8_t flags)
{
	struct rte_ipv4_hdr *h = (void *)(frame + 14);
	struct rte_ether_addr mac;

	if ((flags & F_MAC) != 0 && len >= 6) {
		rte_eth_macaddr_get(app.ports[flags & F_PORT].id, &mac);
		memcpy(frame, &mac, 6);
	}
	if ((flags & F_IPV4_SUM) != 0 && len >= 34 && rte_ipv4_hdr_len(h) <= len - 14) {
		h->hdr_checksum = 0;
		h->hdr_checksum = rte_ipv4_cksum(h);
	}
	if ((flags & F_ICMP_SUM) != 0 && len >= 38)
		mend_icmp(frame, len);
}

/* --- out --- */

static void
check_frame(const struct rte_mbuf *m, unsigned int port)
{
	static uint8_t flat[65536];
	uint32_t len = m->pkt_len, mtu = port == 1 ? NARROW : 1500;
	const uint8_t *p;

	check(len >= 14 && len <= mtu + 14);
	p = rte_pktmbuf_read(m, 0, len, flat);
	check(p != NULL);
	if (p[12] == 0x08 && p[13] == 0x06) {
		check(len == 42);
	} else if (p[12] == 0x08 && p[13] == 0x00) {
		check(len >= 34 && (p[14] & 15) >= 5 && (p[14] & 15) * 4u <= len - 14);
		check((uint32_t)(p[16] << 8 | p[17]) == len - 14 && p[22] != 0);
		check(rte_raw_cksum(p + 14, (p[14] & 15) * 4u) == 0xffff);
	} else {
		check(p[12] == 0x86 && p[13] == 0xdd && len >= 54 && p[14] >> 4 == 6);
		check((uint32_t)(p[18] << 8 | p[19]) == len - 54 && p[21] != 0);
	}
}

static void
drain(void)
{
	struct rte_mbuf *m;

	for (unsigned int port = 0; port < 2; port++) {
		for (; (m = dataplane_sent(port)) != NULL; came_out++) {
			check_frame(m, port);
			rte_pktmbuf_free(m);
		}
	}
}

static void
turns(void)
{
	dataplane_turn();
	ip_control(&app);
	/* What it sends leaves a burst at a time. */
	for (unsigned int i = 0; i < 8; i++)
		dataplane_turn();
	drain();
}

/* Until nothing waits: unanswered questions, fragments, what was learnt. */
static void
settle(void)
{
	uint64_t now = app.ip->now, at = 0;
	const struct route_neigh *n;
	struct route_neigh_info info;

	ip_reassembly_tick(app.ip, now + 61000);
	for (unsigned int i = 1; i <= 4; i++)
		route_tick(app.route, now + i * 1100);
	while ((n = route_neigh_next(app.route, &at)) != NULL) {
		route_neigh_describe(app.route, n, &info);
		if (info.state != NUD_PERMANENT)
			check(route_neigh_del(app.route, info.ifindex, info.family, info.addr) ==
				0);
	}
	turns();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t before = dataplane_drops_all();
	unsigned int n = 0;

	came_out = 0;
	memset(&app.ip->limit, 0, sizeof(app.ip->limit));
	while (size >= RECORD + 1 && n < RECORDS_MAX) {
		uint8_t frame[FRAME_MAX], flags = data[0];
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;

		data += RECORD;
		size -= RECORD;
		len = RTE_MIN(RTE_MIN(len, size), (size_t)FRAME_MAX);
		if (len == 0)
			break;
		memcpy(frame, data, len);
		data += len;
		size -= len;
		if ((flags & F_TIME) != 0)
			route_tick(app.route, app.ip->now + 6000);
		mend(frame, (uint32_t)len, flags);
		dataplane_inject_cut(flags & F_PORT, frame, (uint32_t)len,
			(flags & F_CUT) != 0 ? 1 + (uint32_t)len % 61 : 0);
		n++;
		if ((flags & F_MORE) == 0)
			turns();
	}
	turns();
	settle();
	check(n == 0 || came_out + dataplane_drops_all() - before > 0);
	check(rte_mempool_avail_count(app.pool[0]) == room);
	check(dataplane_outside_full());
	/* Nothing is left to wait for the worker: the leak checker would not find what is reached
	 * by way of DPDK's memory. */
	rcu_reclaim(app.rcu, 0);
	dataplane_turn();
	rcu_reclaim(app.rcu, 0);
	check(rcu_pending(app.rcu) == 0);
	return 0;
}
