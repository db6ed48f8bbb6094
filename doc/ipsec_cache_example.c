/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Two IPsec gateways in one program, with a ring for the wire between them. The left one looks up
 * what is to be done with each packet, seals it and puts it on the ring; the right one takes it
 * off, opens it and asks if it may pass. Prints how many went through as they were.
 *
 *   ipsec_example --no-huge -m 256 --no-pci
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <rte_udp.h>

#include "ipsec_cache/ipsec_cache.h"

#define BURST 32
#define BURSTS 1000
#define LEFT 0xc0000201 /* 192.0.2.1 */
#define RIGHT 0xc0000202
#define FROM 0xc6336401 /* 198.51.100.1, behind the left one */
#define TO 0xcb007101 /* 203.0.113.1, behind the right one */
#define SIZE 128 /* bytes of a frame */

static int meta_offset;

/* The routes of a gateway: its own address, and the other one for all else. */
static void
resolve(void *arg, uint8_t family, const void *dst, uint32_t hash, struct ipsec_cache_hop *hop)
{
	const uint32_t *own = arg;
	uint32_t to;

	(void)hash;
	memcpy(&to, dst, sizeof(to));
	*hop = (struct ipsec_cache_hop){ .hop = arg, .ifindex = 1, .mtu = 1500 };
	hop->kind = family == AF_INET && to == htonl(*own) ? IPSEC_CACHE_HOP_LOCAL
							   : IPSEC_CACHE_HOP_FORWARD;
}

/* The SA from left to right, the same at both ends. */
static struct ipsec_cache_sa_spec
sa(void)
{
	struct ipsec_cache_sa_spec spec = {
		.aead = { .name = "rfc4106(gcm(aes))", .key_bits = 160, .icv_bits = 128 },
		.replay_window = 64,
	};

	spec.info.family = AF_INET;
	spec.info.saddr.a4 = htonl(LEFT);
	spec.info.id.daddr.a4 = htonl(RIGHT);
	spec.info.id.spi = htonl(0x1000);
	spec.info.id.proto = IPPROTO_ESP;
	spec.info.mode = XFRM_MODE_TUNNEL;
	spec.info.lft = (struct xfrm_lifetime_cfg){ XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF };
	memset(spec.aead.key, 0x2a, 20); /* a real one comes from an IKE daemon */
	return spec;
}

/* All of IPv4 by that SA: out at the left, forwarded at the right. */
static struct ipsec_cache_policy_spec
policy(uint8_t dir)
{
	struct ipsec_cache_policy_spec spec = { .n_tmpl = 1 };

	spec.info.dir = dir;
	spec.info.sel.family = AF_INET;
	spec.info.lft = (struct xfrm_lifetime_cfg){ XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF };
	spec.tmpl[0].family = AF_INET;
	spec.tmpl[0].saddr.a4 = htonl(LEFT);
	spec.tmpl[0].id.daddr.a4 = htonl(RIGHT);
	spec.tmpl[0].id.proto = IPPROTO_ESP;
	spec.tmpl[0].mode = XFRM_MODE_TUNNEL;
	spec.tmpl[0].ealgos = spec.tmpl[0].aalgos = UINT32_MAX;
	return spec;
}

static struct ipsec_cache *
gateway(struct rcu *rcu, uint32_t *own, uint8_t dir)
{
	struct ipsec_cache_conf conf = {
		.rcu = rcu,
		.n_workers = 1,
		.cache_entries = 1024,
		.meta_offset = meta_offset,
		.socket = SOCKET_ID_ANY,
		.arg = own,
		.resolve = resolve,
	};
	struct ipsec_cache_policy_spec pol = policy(dir);
	struct ipsec_cache_sa_spec spec = sa();
	struct ipsec_cache *ic = ipsec_cache_create(&conf);
	const char *why = "no memory";

	if (ic == NULL || ipsec_cache_sa_add(ic, &spec, false, &why) != 0 ||
		ipsec_cache_policy_add(ic, &pol, false, &why) != 0)
		rte_exit(1, "gateway: %s\n", why);
	return ic;
}

static void
fill(struct rte_mbuf *m, unsigned int n)
{
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, SIZE);
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = htons(SIZE - 14),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = htonl(FROM),
		.dst_addr = htonl(TO),
	};
	struct rte_udp_hdr udp = { htons(1000), htons(2000), htons(SIZE - 34), 0 };

	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memset(p, (int)(n & 0xff), SIZE);
	p[12] = 8;
	p[13] = 0;
	memcpy(p + 14, &ip, sizeof(ip));
	memcpy(p + 34, &udp, sizeof(udp));
	memset(packet_meta(m, meta_offset), 0, sizeof(struct packet_meta));
}

/* Left: a decision for each packet, then ESP for those that are to be protected. */
static void
left(struct ipsec_cache_worker *w, struct rte_mbuf **pkts, uint16_t n, struct rte_ring *wire)
{
	const struct ipsec_cache_decision *decisions[BURST];
	struct packet_view views[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = n };
	struct ipsec_cache_result result = { 0 };
	uint64_t protect = 0;
	unsigned int i;

	ipsec_cache_begin(w);
	packet_vector_parse(&v);
	ipsec_cache_decide(w, &v, packet_vector_mask(&v), NULL, 1, decisions);
	for (i = 0; i < n; i++)
		/* a router would look at TTL and MTU here, and route what needs no protection */
		if (decisions[i]->action == IPSEC_CACHE_PROTECT)
			protect |= UINT64_C(1) << i;
	ipsec_cache_seal(w, &v, protect, decisions, &result);
	for (i = 0; i < n; i++)
		if ((result.done >> i & 1) == 0 || rte_ring_enqueue(wire, pkts[i]) != 0)
			rte_pktmbuf_free(pkts[i]);
}

/* Right: ESP taken off, then the policy of how it came. Returns how many passed as they were. */
static unsigned int
right(struct ipsec_cache_worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	const struct ipsec_cache_decision *decisions[BURST];
	struct packet_view views[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = n };
	struct ipsec_cache_result result;
	unsigned int i, passed = 0;

	ipsec_cache_begin(w);
	ipsec_cache_open(w, &v, packet_vector_mask(&v), &result);
	ipsec_cache_decide(w, &v, result.done, result.rt, 1, decisions);
	for (i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(pkts[i], const uint8_t *);

		if ((result.done >> i & 1) != 0 && decisions[i]->action == IPSEC_CACHE_ROUTE &&
			pkts[i]->pkt_len == SIZE && p[SIZE - 1] == p[42])
			passed++;
		rte_pktmbuf_free(pkts[i]);
	}
	return passed;
}

int
main(int argc, char *argv[])
{
	static uint32_t own[2] = { LEFT, RIGHT };
	struct ipsec_cache *ic[2];
	struct rte_rcu_qsbr *qsbr;
	struct rte_mempool *pool;
	struct rte_mbuf *pkts[BURST];
	struct rte_ring *wire;
	struct rcu *rcu;
	unsigned int i, k, n, passed = 0;

	if (rte_eal_init(argc, argv) < 0 || (meta_offset = packet_meta_register()) < 0)
		rte_exit(1, "cannot start\n");
	pool = rte_pktmbuf_pool_create(
		"pool", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	wire = rte_ring_create("wire", 512, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(1), RTE_CACHE_LINE_SIZE);
	if (pool == NULL || wire == NULL || qsbr == NULL || rte_rcu_qsbr_init(qsbr, 1) != 0 ||
		(rcu = rcu_create(qsbr)) == NULL)
		rte_exit(1, "no memory\n");
	ic[0] = gateway(rcu, &own[0], XFRM_POLICY_OUT);
	ic[1] = gateway(rcu, &own[1], XFRM_POLICY_FWD);
	rte_rcu_qsbr_thread_register(qsbr, 0);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	for (i = 0; i < BURSTS; i++) {
		if (rte_pktmbuf_alloc_bulk(pool, pkts, BURST) != 0)
			rte_exit(1, "no mbufs\n");
		for (k = 0; k < BURST; k++)
			fill(pkts[k], i + k);
		left(ipsec_cache_worker(ic[0], 0), pkts, BURST, wire);
		n = rte_ring_dequeue_burst(wire, (void **)pkts, BURST, NULL);
		passed += right(ipsec_cache_worker(ic[1], 0), pkts, (uint16_t)n);
		/* what was deleted may be freed: no SA and no decision is held from here on */
		rte_rcu_qsbr_quiescent(qsbr, 0);
	}
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	printf("%u of %u packets passed\n", passed, BURST * BURSTS);
	ipsec_cache_destroy(ic[0]);
	ipsec_cache_destroy(ic[1]);
	rcu_destroy(rcu);
	rte_free(qsbr);
	rte_eal_cleanup();
	return passed == BURST * BURSTS ? 0 : 1;
}
