/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * How many ICMP errors may leave: as Linux has it, so many a second in all (icmp_msgs_per_sec,
 * icmp_msgs_burst), and to one destination one a second after a few at once (icmp_ratelimit,
 * icmpv6 ratelimit), over IPv6 more where the route to it is wide. "Fragmentation needed" and
 * Packet Too Big count in all, not by destination: path MTU discovery waits for them.
 */

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include <rte_cycles.h>
#include <rte_jhash.h>

#include "app.h"
#include "forward/ip.h"

#define ERRORS_BURST 50
#define ERRORS_PER_MS 1
#define PEER_MS 1000 /* one error each */
#define PEER_BURST 6

static bool
is_path_mtu(uint8_t family, uint8_t type, uint8_t code)
{
	return family == AF_INET6 ? type == ICMP6_PACKET_TOO_BIG
				  : type == ICMP_DEST_UNREACH && code == ICMP_FRAG_NEEDED;
}

/* Milliseconds an error takes: fewer towards many hosts behind one route (icmpv6_xrlim_allow()). */
static uint32_t
interval(const struct router *ip, uint8_t family, const void *to)
{
	struct route_spec spec;
	const struct route *r;

	if (family != AF_INET6 || (r = route_get(ip->app->route, family, to, 0, NULL)) == NULL)
		return PEER_MS;
	route_describe(r, &spec);
	return PEER_MS >> ((128 - spec.len) >> 5);
}

/* Peers whose hashes agree share a place; the newer one begins with what a stranger may. */
static struct ip_peer *
peer_find(struct ip_limit *limit, uint8_t family, const void *to)
{
	uint8_t addr[ROUTE_ADDR_LEN] = { 0 };
	struct ip_peer *peer;
	uint32_t words[4];

	memcpy(addr, to, family == AF_INET6 ? 16 : 4);
	memcpy(words, addr, sizeof(words));
	peer = &limit->peers[rte_jhash_32b(words, 4, family) % IP_PEERS];
	if (peer->family != family || memcmp(peer->addr, addr, sizeof(addr)) != 0) {
		*peer = (struct ip_peer){ .family = family };
		memcpy(peer->addr, addr, sizeof(addr));
	}
	return peer;
}

/* A bucket of `full` tokens that gets one a millisecond. */
static bool
bucket_take(struct ip_bucket *b, uint64_t now_ms, uint32_t full, uint32_t n)
{
	uint64_t more = now_ms - b->last_ms;

	b->last_ms = now_ms;
	b->tokens = (uint32_t)RTE_MIN(b->tokens + more, (uint64_t)full);
	if (b->tokens < n)
		return false;
	b->tokens -= n;
	return true;
}

bool
ip_may_send_error(struct router *ip, uint8_t family, const void *to, uint8_t type, uint8_t code)
{
	uint64_t now = rte_get_timer_cycles() / (rte_get_timer_hz() / 1000);
	uint32_t each;

	if (!is_path_mtu(family, type, code)) {
		each = interval(ip, family, to);
		if (!bucket_take(&peer_find(&ip->limit, family, to)->bucket, now, PEER_BURST * each,
			    each))
			return false;
	}
	return bucket_take(&ip->limit.all, now, ERRORS_BURST, 1);
}
