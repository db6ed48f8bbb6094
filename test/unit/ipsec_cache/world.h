/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_IPSEC_WORLD_H
#define TEST_IPSEC_WORLD_H

/*
 * What tests of packets need: an instance whose routes are a list of our own addresses (all else is
 * sent to one hop), SAs by a few words, bursts of one.
 */

#include <arpa/inet.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_rcu_qsbr.h>
#include <rte_udp.h>

#include "ipsec_cache/rt.h"
#include "ipsec_cache/worker.h"
#include "support.h"

#define WORLD_LOCALS 8
#define WORLD_MTU 1500

struct world {
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct ipsec_cache *ic;
	int meta_offset;
	unsigned int n_locals;
	struct {
		uint8_t family;
		uint8_t addr[16];
	} locals[WORLD_LOCALS];
	uint64_t resolved; /* how often a route was asked for */
	uint32_t ifindex; /* of all routes but ours; in the beginning 2 */
	bool waits; /* its neighbour is not known */
	uint64_t rounds; /* see world_rounds() */
	bool loop; /* both ends of a tunnel are here: who sends (asks with a hash) finds a route */
};

static inline void
world_resolve(
	void *arg, uint8_t family, const void *dst, uint32_t hash, struct ipsec_cache_hop *hop)
{
	struct world *world = arg;
	size_t len = family == AF_INET ? 4 : 16;
	unsigned int i;

	__atomic_fetch_add(&world->resolved, 1, __ATOMIC_RELAXED);
	*hop = (struct ipsec_cache_hop){
		.hop = world,
		.ifindex = world->ifindex,
		.mtu = WORLD_MTU,
		.kind = IPSEC_CACHE_HOP_FORWARD,
		.waits = world->waits,
	};
	for (i = 0; i < world->n_locals; i++)
		if (world->locals[i].family == family &&
			memcmp(world->locals[i].addr, dst, len) == 0 && (hash == 0 || !world->loop))
			hop->kind = IPSEC_CACHE_HOP_LOCAL;
}

static inline uint8_t
world_family(const char *addr)
{
	return strchr(addr, ':') != NULL ? AF_INET6 : AF_INET;
}

static inline void
world_local(struct world *world, const char *addr)
{
	unsigned int n = world->n_locals++;

	world->locals[n].family = world_family(addr);
	inet_pton(world->locals[n].family, addr, world->locals[n].addr);
	if (world->ic != NULL)
		ipsec_cache_invalidate(world->ic);
}

/* For conf.tx_rounds: frames leave when the test says so. */
static inline uint64_t
world_rounds(void *arg, uint32_t ifindex)
{
	const struct world *world = arg;

	RTE_SET_USED(ifindex);
	return world->rounds;
}

/*
 * With what the caller wants of the configuration, and of routes. Exits on failure. Workers are
 * readers of the qsbr, not yet online.
 */
static inline void
world_create_with(struct world *world, struct ipsec_cache_conf conf,
	void (*resolve)(void *arg, uint8_t family, const void *dst, uint32_t hash,
		struct ipsec_cache_hop *hop))
{
	unsigned int n_workers = conf.n_workers;
	size_t size = rte_rcu_qsbr_get_memsize(n_workers);
	unsigned int i;

	memset(world, 0, sizeof(*world));
	world->ifindex = 2;
	conf.socket = SOCKET_ID_ANY;
	conf.arg = world;
	conf.resolve = resolve;
	world->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(size, RTE_CACHE_LINE_SIZE));
	if (world->qsbr == NULL || rte_rcu_qsbr_init(world->qsbr, n_workers) != 0)
		exit(1);
	for (i = 0; i < n_workers; i++)
		rte_rcu_qsbr_thread_register(world->qsbr, i);
	world->meta_offset = packet_meta_register();
	conf.rcu = world->rcu = rcu_create(world->qsbr);
	conf.meta_offset = world->meta_offset;
	if (world->rcu == NULL || world->meta_offset < 0 ||
		(world->ic = ipsec_cache_create(&conf)) == NULL) {
		fprintf(stderr, "world: %s\n", rte_strerror(rte_errno));
		exit(1);
	}
}

static inline void
world_create_as(struct world *world, struct ipsec_cache_conf conf)
{
	world_create_with(world, conf, world_resolve);
}

static inline void
world_create(struct world *world, unsigned int n_workers, unsigned int entries, bool share)
{
	world_create_as(world,
		(struct ipsec_cache_conf){
			.n_workers = n_workers, .cache_entries = entries, .share_numbers = share });
}

static inline void
world_destroy(struct world *world)
{
	ipsec_cache_destroy(world->ic);
	rcu_destroy(world->rcu);
	free(world->qsbr);
}

/* A tunnel SA with AES-GCM-128 and a window of 64: for the caller to change. */
static inline struct ipsec_cache_sa_spec
world_spec(const char *src, const char *dst, uint32_t spi)
{
	struct ipsec_cache_sa_spec spec = {
		.aead = { .name = "rfc4106(gcm(aes))", .key_bits = 160, .icv_bits = 128 },
		.replay_window = 64,
	};
	unsigned int i;

	spec.info.family = world_family(src);
	spec.info.sel.family = 0;
	spec.info.flags = XFRM_STATE_AF_UNSPEC;
	inet_pton(spec.info.family, src, &spec.info.saddr);
	inet_pton(spec.info.family, dst, &spec.info.id.daddr);
	spec.info.id.spi = htonl(spi);
	spec.info.id.proto = IPPROTO_ESP;
	spec.info.mode = XFRM_MODE_TUNNEL;
	spec.info.lft = (struct xfrm_lifetime_cfg){ XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF };
	for (i = 0; i < 20; i++)
		spec.aead.key[i] = (uint8_t)(i * 7 + spi);
	return spec;
}

static inline void
world_null(struct ipsec_cache_sa_spec *spec)
{
	memset(&spec->aead, 0, sizeof(spec->aead));
	memcpy(spec->crypt.name, "ecb(cipher_null)", sizeof("ecb(cipher_null)"));
	memcpy(spec->auth.name, "digest_null", sizeof("digest_null"));
}

static inline void
world_esn(struct ipsec_cache_sa_spec *spec)
{
	spec->info.flags |= XFRM_STATE_ESN;
	spec->esn_form = true;
}

static inline void
world_udp(struct ipsec_cache_sa_spec *spec, uint16_t sport, uint16_t dport)
{
	spec->has_encap = true;
	spec->encap.encap_type = UDP_ENCAP_ESPINUDP;
	spec->encap.encap_sport = htons(sport);
	spec->encap.encap_dport = htons(dport);
}

/* Adds it, or exits saying why not. */
static inline struct ipsec_cache_rt *
world_sa(struct world *world, const struct ipsec_cache_sa_spec *spec)
{
	const char *why = "";
	uint8_t daddr[16] = { 0 };
	int err = ipsec_cache_sa_add(world->ic, spec, false, &why);

	if (err != 0) {
		fprintf(stderr, "world_sa: %s (%s)\n", why, strerror(-err));
		exit(1);
	}
	memcpy(daddr, &spec->info.id.daddr, spec->info.family == AF_INET ? 4 : 16);
	return ipsec_sad_lookup(world->ic, spec->info.id.spi, (uint8_t)spec->info.family, daddr, 0);
}

/*
 * A policy for all of IPv4 between two prefixes ("198.51.100.0/24", "0.0.0.0/0"), by priority; with
 * a template from `src` to `dst` (NULL: none) and a reqid. The caller may change it before it is
 * added.
 */
static inline struct ipsec_cache_policy_spec
world_policy(uint8_t dir, uint32_t priority, const char *src, const char *dst, uint32_t reqid)
{
	struct ipsec_cache_policy_spec spec = { .n_tmpl = src != NULL ? 1 : 0 };

	spec.info.dir = dir;
	spec.info.priority = priority;
	spec.info.sel.family = AF_INET;
	spec.info.lft =
		(struct xfrm_lifetime_cfg){ XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF, 0, 0, 0, 0 };
	if (src == NULL)
		return spec;
	spec.tmpl[0].id.proto = IPPROTO_ESP;
	spec.tmpl[0].family = world_family(src);
	spec.tmpl[0].mode = XFRM_MODE_TUNNEL;
	spec.tmpl[0].reqid = reqid;
	spec.tmpl[0].aalgos = spec.tmpl[0].ealgos = spec.tmpl[0].calgos = UINT32_MAX;
	inet_pton(spec.tmpl[0].family, src, &spec.tmpl[0].saddr);
	inet_pton(spec.tmpl[0].family, dst, &spec.tmpl[0].id.daddr);
	return spec;
}

static inline void
world_add_policy(struct world *world, const struct ipsec_cache_policy_spec *spec)
{
	const char *why = "";
	int err = ipsec_cache_policy_add(world->ic, spec, false, &why);

	if (err != 0) {
		fprintf(stderr, "world_add_policy: %s (%s)\n", why, strerror(-err));
		exit(1);
	}
}

/* The decision for one frame that came in clear by device 1. A burst of its own. */
static inline const struct ipsec_cache_decision *
world_decide(struct world *world, unsigned int worker, struct rte_mbuf *m)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world->ic, worker);
	const struct ipsec_cache_decision *decision;
	struct packet_view view;
	struct packet_vector v = { .pkts = &m, .views = &view, .n = 1 };

	packet_vector_parse(&v);
	ipsec_cache_begin(w);
	ipsec_cache_decide(w, &v, 1, NULL, 1, &decision);
	return decision;
}

/* One frame opened, or sealed by `rt`; *m may become another. */
static inline void
world_open(struct world *world, unsigned int worker, struct rte_mbuf **m,
	struct ipsec_cache_result *result)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world->ic, worker);
	struct packet_view view;
	struct packet_vector v = { .pkts = m, .views = &view, .n = 1 };

	memset(result, 0xa5, sizeof(*result));
	ipsec_cache_begin(w);
	ipsec_cache_open(w, &v, 1, result);
}

static inline void
world_seal(struct world *world, unsigned int worker, struct rte_mbuf **m, struct ipsec_cache_rt *rt,
	struct ipsec_cache_result *result)
{
	struct ipsec_cache_decision d = {
		.rt = rt,
		.action = IPSEC_CACHE_PROTECT,
		.mtu = ipsec_rt_mtu(rt, WORLD_MTU),
	};
	const struct ipsec_cache_decision *decisions[1] = { &d };
	struct ipsec_cache_worker *w = ipsec_cache_worker(world->ic, worker);
	struct packet_view view;
	struct packet_vector v = { .pkts = m, .views = &view, .n = 1 };

	memset(result, 0xa5, sizeof(*result));
	ipsec_cache_begin(w);
	ipsec_cache_seal(w, &v, 1, decisions, result);
}

/* A UDP frame between 198.51.100.1 and 203.0.113.1, or 2001:db8:1::1 and 2001:db8:2::1. */
static inline struct rte_mbuf *
world_frame(struct rte_mempool *pool, uint8_t family, uint16_t payload, uint16_t sport)
{
	uint8_t data[2048] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
	struct rte_ipv4_hdr *v4 = (void *)(data + 14);
	struct rte_ipv6_hdr *v6 = (void *)(data + 14);
	struct rte_udp_hdr udp = {
		.src_port = htons(sport),
		.dst_port = htons(7),
		.dgram_len = htons((uint16_t)(8 + payload)),
	};
	uint16_t at = 14, i;

	if (family == AF_INET) {
		data[12] = 8;
		*v4 = (struct rte_ipv4_hdr){
			.version_ihl = 0x45,
			.total_length = htons((uint16_t)(28 + payload)),
			.time_to_live = 64,
			.next_proto_id = IPPROTO_UDP,
			.src_addr = htonl(0xc6336401),
			.dst_addr = htonl(0xcb007101),
		};
		v4->hdr_checksum = rte_ipv4_cksum(v4);
		at += 20;
	} else {
		data[12] = 0x86;
		data[13] = 0xdd;
		v6->vtc_flow = htonl(6u << 28);
		v6->payload_len = htons((uint16_t)(8 + payload));
		v6->proto = IPPROTO_UDP;
		v6->hop_limits = 64;
		inet_pton(AF_INET6, "2001:db8:1::1", &v6->src_addr);
		inet_pton(AF_INET6, "2001:db8:2::1", &v6->dst_addr);
		at += 40;
	}
	memcpy(data + at, &udp, sizeof(udp));
	at += 8;
	for (i = 0; i < payload; i++)
		data[at + i] = (uint8_t)(i * 5 + sport);
	return test_frame(pool, data, at + payload, 0);
}

#endif /* TEST_IPSEC_WORLD_H */
