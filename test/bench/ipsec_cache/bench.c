/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What ESP and its decisions cost beside the cipher, in TSC cycles a packet.
 *
 *   esp     AES-GCM-128 in a tunnel, out and in, by inner frame size: policy, SA and route from the
 *           cache, ESP, next Ethernet header; against the limit: the same source and the same
 *           calls of the same cipher with nothing around them
 *   sas     64 B, round robin over 1, 256, 1,000 and 60,000 SAs
 *   flows   64 B, one SA a flow: one flow, 1,000 in turn, 1,000 by Zipf's law; with the cache and
 *           without
 *   null    the Linux work's table: null encryption, with the cache and without
 *   decide  a decision alone, cached and not: 0 to 10,000 policies, more and more flows
 *   rekey   the packets behind a rekey
 *   lookaside  AES-GCM-128 by a crypto device, against the same source and the same device alone
 *   inline  inline crypto: all but what the NIC does, with the cache and without
 *
 * The source is a net_null port whose Rx callback copies a template into each mbuf; the packets
 * leave by it. Both are in every figure but those of `decide`. Variants of a row take turns in
 * short windows; medians (and the best window) are printed, medians written as JSON. Huge pages
 * make a difference: see the guide.
 *
 * usage: ipsec_bench EAL-options -- [-r rounds] [-o file.json] [-s size] [-d in|out] [table...]
 * -s, -d: only rows of that size and direction, for a profiler.
 */

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "bench/median.h"
#include "beside.h"
#include "ipsec_cache/device.h"
#include "security.h"
#include "unit/ipsec_cache/world.h"

#define BURST 32
#define BURSTS 8 /* in a window */
#define WINDOW (BURST * BURSTS)
#define ROUNDS_MAX 20001
#define SAS_MAX 60000
#define ORDER 65536 /* flows of the source come in this order, again and again */
#define FRAME_ROOM 1536

enum way {
	WAY_SOURCE,
	WAY_CIPHER,
	WAY_FULL,
	WAY_MAX
};

/* How flows follow each other. */
enum pattern {
	PATTERN_ROUND,
	PATTERN_ZIPF
};

static struct world world;
static struct rte_mempool *pool;
static unsigned int rounds = 101, only_size;
static const char *only_dir;
static FILE *json;
static bool json_first = true;

static struct beside beside;

/* What is measured: made by setup(). */
static struct {
	unsigned int size; /* of the inner frame */
	unsigned int flows;
	bool in;
	bool null;
	bool nic; /* the port encrypts and decrypts: takes no time for it */
	struct ipsec_cache_rt **rt; /* of each flow */
	uint32_t order[ORDER]; /* flows */
	uint32_t next;
	uint8_t *frames; /* in: one of each flow and turn, sealed; out: one */
	unsigned int frame_len;
	unsigned int turns; /* in: numbers that are there of each flow */
} now;

static void
record(const char *group, const char *name, unsigned int size, double value, const char *unit)
{
	if (json == NULL)
		return;
	fprintf(json,
		"%s\n  {\"group\": \"%s\", \"name\": \"%s\", \"size\": %u, \"value\": %.3f, "
		"\"unit\": \"%s\"}",
		json_first ? "" : ",", group, name, size, value, unit);
	json_first = false;
}

/* --- a NIC that costs nothing --- */

static int nic_metadata; /* offset of what it finds a frame's session by */

/* As drivers without fast metadata do: a call, and a word in the mbuf. */
static int
nic_mark(void *device, struct rte_security_session *s, struct rte_mbuf *m, void *params)
{
	(void)device;
	(void)params;
	*RTE_MBUF_DYNFIELD(m, nic_metadata, void **) = s;
	return 0;
}

static const struct rte_security_capability *
nic_capabilities(void *device)
{
	static const struct rte_security_capability capabilities[] = {
		SECURITY_CAPABILITY(CRYPTO, EGRESS), SECURITY_CAPABILITY(CRYPTO, INGRESS), { 0 }
	};

	(void)device;
	return capabilities;
}

static struct rte_security_ctx *
security_ctx(uint16_t port)
{
	static const struct rte_security_ops ops = {
		.session_create = security_create,
		.session_get_size = security_size,
		.session_destroy = security_destroy,
		.set_pkt_metadata = nic_mark,
		.capabilities_get = nic_capabilities,
	};
	static struct rte_security_ctx ctx = { .ops = &ops };

	(void)port;
	return &ctx;
}

/* --- the world --- */

/* Flows are addresses of 198.18.0.0/15. */
static __be32
flow_addr(uint32_t flow)
{
	return htonl(0xc6120000u + flow);
}

static void
must(int err, const char *why)
{
	if (err != 0) {
		fprintf(stderr, "ipsec_bench: %s (%s)\n", why, strerror(-err));
		exit(1);
	}
}

/* A policy for one flow, or (prefix 0) for all. */
static void
add_policy(uint8_t dir, uint32_t flow, uint8_t prefix, const char *to, uint32_t reqid)
{
	struct ipsec_cache_policy_spec spec = { .n_tmpl = reqid == UINT32_MAX ? 0 : 1 };
	const char *why = "";

	spec.info.dir = dir;
	spec.info.sel.family = AF_INET;
	spec.info.sel.saddr.a4 = prefix == 0 ? 0 : flow_addr(flow);
	spec.info.sel.prefixlen_s = prefix;
	spec.info.lft =
		(struct xfrm_lifetime_cfg){ XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF, 0, 0, 0, 0 };
	spec.tmpl[0].id.proto = IPPROTO_ESP;
	spec.tmpl[0].family = AF_INET;
	spec.tmpl[0].mode = XFRM_MODE_TUNNEL;
	spec.tmpl[0].reqid = reqid;
	spec.tmpl[0].aalgos = spec.tmpl[0].ealgos = spec.tmpl[0].calgos = UINT32_MAX;
	inet_pton(AF_INET, "192.0.2.1", &spec.tmpl[0].saddr);
	inet_pton(AF_INET, to, &spec.tmpl[0].id.daddr);
	must(ipsec_cache_policy_add(world.ic, &spec, false, &why), why);
}

/* An inner frame of a flow. */
static unsigned int
put_frame(uint8_t *p, uint32_t flow, unsigned int size)
{
	struct rte_ipv4_hdr *ip = (void *)(p + 14);
	unsigned int i;

	memset(p, 0, 14);
	p[12] = 8;
	for (i = 34; i < size; i++)
		p[i] = (uint8_t)(i * 7);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons((uint16_t)(size - 14)),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = flow_addr(flow),
		.dst_addr = htonl(0xcb007101),
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return size;
}

static void
set_order(enum pattern pattern)
{
	double *sum, total = 0, at;
	unsigned int i, lo, hi, mid;

	now.next = 0;
	if (pattern == PATTERN_ROUND) {
		for (i = 0; i < ORDER; i++)
			now.order[i] = i % now.flows;
		return;
	}
	srand(1);
	sum = calloc(now.flows, sizeof(*sum));
	for (i = 0; i < now.flows; i++)
		sum[i] = total += 1.0 / (i + 1);
	for (i = 0; i < ORDER; i++) {
		at = total * ((double)rand() / RAND_MAX);
		for (lo = 0, hi = now.flows - 1; lo < hi;) {
			mid = (lo + hi) / 2;
			if (sum[mid] < at)
				lo = mid + 1;
			else
				hi = mid;
		}
		now.order[i] = lo;
	}
	free(sum);
}

/* Forgets what came, so that the same packets may come again. */
static void
reset_windows(void)
{
	unsigned int i;

	for (i = 0; now.in && i < now.flows; i++)
		ipsec_window_init(&now.rt[i]->window, now.rt[i]->words, now.rt[i]->window.size, 0);
	now.next = 0;
}

/* Lets SAs have sessions on the port. */
static void
add_nic(void)
{
	const struct ipsec_cache_dev dev = { .ifindex = 2, .port_id = 0, .name = "p0" };

	must(ipsec_cache_dev_add(world.ic, &dev), "no NIC");
}

/* One frame of a flow's peer; of a NIC, as it is when that has decrypted it: never encrypted. */
static void
seal_frame(struct rte_mbuf **m, struct ipsec_cache_rt *rt, struct ipsec_cache_result *result)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);
	struct packet_view view;
	struct packet_vector v = { .pkts = m, .views = &view, .n = 1 };
	struct ipsec_cache_decision d = {
		.rt = rt, .action = IPSEC_CACHE_PROTECT, .mtu = WORLD_MTU
	};
	const struct ipsec_cache_decision *decisions[1] = { &d };
	const char *missing = "";

	if (!now.nic) {
		world_seal(&world, 0, m, rt, result);
		return;
	}
	d.session = ipsec_session_create(world.ic, ipsec_device_find(world.ic, 2), rt,
		IPSEC_SESSION_INLINE_CRYPTO, false, 0, &missing);
	if (d.session == NULL)
		must(-ENOTSUP, missing);
	ipsec_cache_begin(w);
	ipsec_cache_seal(w, &v, 1, decisions, result);
	ipsec_session_cancel(d.session);
}

/* Frames that the peers of all flows sent, `turns` of each. */
static void
seal_frames(void)
{
	struct ipsec_cache_result result;
	uint8_t data[FRAME_ROOM];
	unsigned int turn, i;
	struct rte_mbuf *m;

	for (turn = 0; turn < now.turns; turn++) {
		for (i = 0; i < now.flows; i++) {
			m = test_frame(pool, data, put_frame(data, i, now.size), 0);
			seal_frame(&m, now.rt[i], &result);
			if (result.done != 1)
				must(-EINVAL, "a frame could not be sealed");
			now.frame_len = m->pkt_len;
			memcpy(now.frames + (size_t)(turn * now.flows + i) * FRAME_ROOM,
				rte_pktmbuf_mtod(m, void *), m->pkt_len);
			rte_pktmbuf_free(m);
		}
	}
}

/* `sas`: as many as flows, with a policy each, or 1 for all of them; 0: neither SA nor policy. */
static void
setup(bool in, bool null, unsigned int size, unsigned int flows, unsigned int sas,
	unsigned int entries)
{
	const char *to = in ? "192.0.2.2" : "192.0.2.3";
	struct ipsec_cache_sa_spec spec;
	unsigned int i;

	world_create(&world, 1, entries, false);
	world_local(&world, "192.0.2.2");
	if (now.nic)
		add_nic();
	if (beside.on && !beside_add(&beside, world.ic))
		must(-EIO, "the crypto device does not start");
	now.in = in;
	now.null = null;
	now.size = size;
	now.flows = flows;
	now.turns = in ? RTE_MAX(1u, WINDOW / flows) : 1;
	now.rt = calloc(flows, sizeof(*now.rt));
	now.frames = calloc(in ? (size_t)now.turns * flows : 1, FRAME_ROOM);
	for (i = 0; i < sas; i++) {
		spec = world_spec("192.0.2.1", to, 0x10000 + i);
		spec.info.reqid = i + 1;
		if (null)
			world_null(&spec);
		now.rt[i] = world_sa(&world, &spec);
	}
	for (; i < flows; i++)
		now.rt[i] = now.rt[0];
	if (in)
		add_policy(XFRM_POLICY_FWD, 0, 0, to, 0);
	else
		for (i = 0; i < sas; i++)
			add_policy(XFRM_POLICY_OUT, i, sas == 1 ? 0 : 32, to, i + 1);
	if (in)
		seal_frames();
	else
		now.frame_len = put_frame(now.frames, 0, size);
	set_order(PATTERN_ROUND);
	reset_windows();
}

static void
teardown(void)
{
	if (beside.on)
		rte_cryptodev_stop(beside.dev);
	world_destroy(&world);
	free(now.rt);
	free(now.frames);
}

/* --- windows --- */

/* The source: frames are copied into what net_null hands out, as an Rx callback. */
static uint16_t
source(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	unsigned int blocks = (now.frame_len + 63) / 64, b;
	uint16_t i;

	(void)port;
	(void)queue;
	(void)max;
	(void)arg;
	for (i = 0; i < n; i++) {
		uint32_t flow = now.order[now.next % ORDER];
		uint8_t *to = rte_pktmbuf_mtod(pkts[i], uint8_t *);
		const uint8_t *from = now.frames;

		if (now.in) {
			from += (size_t)(now.next % (now.turns * now.flows)) * FRAME_ROOM;
			rte_prefetch0(from + 4 * FRAME_ROOM);
		}
		now.next++;
		for (b = 0; b < blocks; b++)
			memcpy(to + b * 64, from + b * 64, 64);
		pkts[i]->data_len = (uint16_t)now.frame_len;
		pkts[i]->pkt_len = now.frame_len;
		if (now.in && now.nic)
			pkts[i]->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD;
		if (!now.in)
			memcpy(to + 26, &(uint32_t){ flow_addr(flow) }, 4);
	}
	return n;
}

static void
start_port(void)
{
	struct rte_eth_conf conf = { 0 };

	if (rte_eth_dev_count_avail() == 0)
		must(-ENODEV, "no port: start with --vdev=net_null0");
	if (rte_eth_dev_configure(0, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(0) != 0 || rte_eth_add_rx_callback(0, 0, source, NULL) == NULL)
		must(-EIO, "net_null does not start");
}

/* The cipher's calls alone, with the keys that the flows have. */
static inline void
cipher(struct ipsec_cache_worker *w, struct rte_mbuf **pkts, uint32_t first)
{
	static uint8_t nonce[12], icv[16] __rte_cache_aligned;
	uint32_t len = ((now.size - 14 + 2 + 3) & ~3u);
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		uint32_t flow = now.in ? (first + i) % now.flows : now.order[(first + i) % ORDER];
		const struct ipsec_cache_rt *rt = now.rt[flow];
		uint8_t *text = rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, now.in ? 50 : 14);

		if (now.in)
			rt->decrypt(
				rt->key, &w->gcm, text, text, len, nonce, text - 16, 8, icv, 16);
		else
			rt->encrypt(rt->key, &w->gcm, text, text, len, nonce, text - 16, 8,
				text + len, 16);
	}
}

/* The device's calls alone, with the session that the SA has there. */
static void
device(struct rte_mbuf **pkts)
{
	uint32_t len = ((now.size - 14 + 2 + 3) & ~3u);

	if (!beside_do(&beside, pkts, BURST, now.rt[0]->session->security, now.in ? 50 : 16, len))
		must(-EIO, "the crypto device takes nothing");
}

/* What a gateway does beside IPsec: TTL with its checksum, Ethernet addresses of the next hop. */
static inline void
forward(struct rte_mbuf *m)
{
	static const uint8_t rewrite[12] = { 2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4 };

	memcpy(rte_pktmbuf_mtod(m, void *), rewrite, sizeof(rewrite));
}

static inline void
full(struct ipsec_cache_worker *w, struct rte_mbuf **pkts)
{
	const struct ipsec_cache_decision *decisions[BURST];
	struct packet_view views[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = BURST };
	struct ipsec_cache_result result;
	uint64_t mask = packet_vector_mask(&v);
	unsigned int i;

	ipsec_cache_begin(w);
	packet_vector_parse(&v);
	if (now.in) {
		ipsec_cache_open(w, &v, mask, &result);
		ipsec_cache_decide(w, &v, result.done, result.rt, 1, decisions);
	} else {
		ipsec_cache_decide(w, &v, mask, NULL, 1, decisions);
		for (i = 0; i < BURST; i++)
			if (unlikely(decisions[i]->action != IPSEC_CACHE_PROTECT))
				must(-ENOENT, "a flow is not protected");
		ipsec_cache_seal(w, &v, mask, decisions, &result);
	}
	if (unlikely(result.done != mask))
		must(-EBADMSG, "a packet was dropped");
	for (i = 0; i < BURST; i++)
		forward(pkts[i]);
}

/* The same by a device: what it opened is decided about when it comes back. */
static void
full_beside(struct ipsec_cache_worker *w, struct rte_mbuf **pkts)
{
	const struct ipsec_cache_decision *decisions[BURST];
	struct packet_view views[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = BURST };
	struct ipsec_cache_rt *by[BURST];
	struct ipsec_cache_done done[BURST];
	struct ipsec_cache_result result;
	uint64_t mask = packet_vector_mask(&v);
	unsigned int i, n = 0;

	ipsec_cache_begin(w);
	packet_vector_parse(&v);
	if (now.in) {
		ipsec_cache_open(w, &v, mask, &result);
	} else {
		ipsec_cache_decide(w, &v, mask, NULL, 1, decisions);
		ipsec_cache_seal(w, &v, mask, decisions, &result);
	}
	if (unlikely(result.pending != mask))
		must(-EBADMSG, "a packet is not the device's");
	while (n < BURST)
		n += ipsec_cache_poll(w, done + n, BURST - n);
	for (i = 0; i < BURST; i++) {
		if (unlikely(done[i].failed))
			must(-EBADMSG, "a packet was dropped");
		pkts[i] = done[i].m;
		by[i] = done[i].rt;
	}
	if (now.in) {
		v.parsed = false;
		packet_vector_parse(&v);
		ipsec_cache_decide(w, &v, mask, by, 1, decisions);
	}
	for (i = 0; i < BURST; i++)
		forward(pkts[i]);
}

static double
window(enum way way, unsigned int bursts)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);
	struct rte_mbuf *pkts[BURST];
	uint64_t start;
	uint32_t first;
	unsigned int b;

	if (now.in && now.next + bursts * BURST > now.turns * now.flows)
		reset_windows();
	start = rte_rdtsc();
	for (b = 0; b < bursts; b++) {
		first = now.next;
		if (rte_eth_rx_burst(0, 0, pkts, BURST) != BURST)
			must(-ENOMEM, "no mbufs");
		if (way == WAY_CIPHER && beside.on)
			device(pkts);
		else if (way == WAY_CIPHER && !now.nic)
			cipher(w, pkts, first);
		else if (way == WAY_FULL && beside.on)
			full_beside(w, pkts);
		else if (way == WAY_FULL)
			full(w, pkts);
		rte_eth_tx_burst(0, 0, pkts, BURST);
	}
	return (double)(rte_rdtsc() - start) / (bursts * BURST);
}

struct figures {
	double middle[WAY_MAX], best[WAY_MAX];
};

/* All ways in turn. */
static struct figures
measure(void)
{
	static double v[WAY_MAX][ROUNDS_MAX];
	struct figures f;
	unsigned int r, way, warm = RTE_MAX(2u, now.flows * 2 / WINDOW);
	/* many flows: a window sees many of them */
	unsigned int bursts =
		now.in && now.flows < WINDOW ? BURSTS : RTE_MAX(BURSTS, now.flows / BURST / 16);

	bursts = RTE_MIN(bursts, 64u);
	if (now.in && now.flows >= WINDOW)
		bursts = RTE_MIN(bursts, now.turns * now.flows / BURST);
	for (r = 0; r < warm; r++)
		window(WAY_FULL, bursts);
	for (r = 0; r < rounds; r++)
		for (way = 0; way < WAY_MAX; way++)
			v[way][r] = window((enum way)way, bursts);
	for (way = 0; way < WAY_MAX; way++) {
		f.middle[way] = median(v[way], rounds);
		f.best[way] = v[way][0];
	}
	return f;
}

/* --- tables --- */

static void
print_row(const char *group, const char *name, unsigned int size, const struct figures *f,
	double target)
{
	double limit = f->middle[WAY_CIPHER], ratio = f->middle[WAY_FULL] / limit;

	printf("  %-22s %6u  %6.1f  %6.1f  %6.1f (%.1f)  %5.2f", name, size, f->middle[WAY_SOURCE],
		limit, f->middle[WAY_FULL], f->best[WAY_FULL], ratio);
	if (target > 0)
		printf("  (at most %.2f)%s", target, ratio > target ? "  MISSED" : "");
	printf("\n");
	record(group, name, size, f->middle[WAY_FULL], "cycles");
	record(group, name, size, limit, "limit");
	record(group, name, size, ratio, "ratio");
	fflush(stdout);
}

static void
head(const char *title)
{
	printf("%s\n  %-22s %6s  %6s  %6s  %6s %6s  %5s\n", title, "", "bytes", "source", "limit",
		"all", "best", "ratio");
}

static bool
skipped(bool in, unsigned int size)
{
	return (only_size != 0 && size != only_size) ||
		(only_dir != NULL && strcmp(only_dir, in ? "in" : "out") != 0);
}

static void
bench_esp(void)
{
	static const unsigned int sizes[] = { 64, 256, 1420 };
	static const double targets[2][3] = { { 1.85, 1.55, 1.15 }, { 2.2, 1.9, 1.2 } };
	unsigned int s, in;

	head("esp: one SA");
	for (in = 0; in < 2; in++) {
		for (s = 0; s < RTE_DIM(sizes); s++) {
			struct figures f;

			if (skipped(in != 0, sizes[s]))
				continue;
			setup(in != 0, false, sizes[s], 1, 1, 1024);
			f = measure();
			print_row("esp", in != 0 ? "in" : "out", sizes[s], &f, targets[in][s]);
			teardown();
		}
	}
}

static void
bench_sas(void)
{
	static const unsigned int counts[] = { 1, 256, 1000, SAS_MAX };
	unsigned int i, in;
	double one = 0, last = 0;
	char name[64];

	head("sas: 64 B, round robin");
	for (in = 0; in < 2; in++) {
		for (i = 0; i < RTE_DIM(counts); i++) {
			struct figures f;

			if (skipped(in != 0, 64))
				continue;
			setup(in != 0, false, 64, counts[i], counts[i], 65536);
			f = measure();
			snprintf(name, sizeof(name), "%s, %u SAs", in != 0 ? "in" : "out",
				counts[i]);
			print_row("sas", name, 64, &f, 0);
			if (i == 0)
				one = f.middle[WAY_FULL];
			last = f.middle[WAY_FULL];
			teardown();
		}
		printf("  %u SAs cost %.2f times what one does (at most 1.50)%s\n", SAS_MAX,
			last / one, last / one > 1.5 ? "  MISSED" : "");
		record("sas", in != 0 ? "in, many to one" : "out, many to one", 64, last / one,
			"ratio");
	}
}

/* Flows of SAs of their own; the cache, or the slow way each time. */
static void
bench_flows(void)
{
	static const struct {
		const char *name;
		unsigned int flows;
		enum pattern pattern;
	} rows[] = { { "1 flow", 1, PATTERN_ROUND }, { "1000 in turn", 1000, PATTERN_ROUND },
		{ "1000 by Zipf", 1000, PATTERN_ZIPF } };
	static const unsigned int entries[] = { 4096, 0 };
	unsigned int r, e;
	char name[64];

	if (skipped(false, 64))
		return;
	head("flows: out, 64 B");
	for (r = 0; r < RTE_DIM(rows); r++) {
		for (e = 0; e < RTE_DIM(entries); e++) {
			struct figures f;

			setup(false, false, 64, rows[r].flows, rows[r].flows, entries[e]);
			set_order(rows[r].pattern);
			f = measure();
			snprintf(name, sizeof(name), "%s, %s", rows[r].name,
				entries[e] != 0 ? "cache" : "none");
			print_row("flows", name, 64, &f, 0);
			teardown();
		}
	}
}

/*
 * The Linux work's table: null encryption without a cache and with one remembered bundle a CPU,
 * which one flow hits and two in turn never do, beside what is cached here.
 */
static void
bench_null(void)
{
	static const struct {
		const char *name;
		unsigned int entries;
	} caches[] = { { "no cache", 0 }, { "cache", 4096 } };
	static const unsigned int flows[] = { 1, 2, 1000 };
	double none = 0, times;
	unsigned int c, n;
	char name[64];

	if (skipped(false, 64))
		return;
	head("null: out, 64 B, null encryption (Linux, one stream: 1.11 times with its cache)");
	for (n = 0; n < RTE_DIM(flows); n++) {
		for (c = 0; c < RTE_DIM(caches); c++) {
			struct figures f;

			setup(false, true, 64, flows[n], flows[n], caches[c].entries);
			f = measure();
			snprintf(name, sizeof(name), "%u flows, %s", flows[n], caches[c].name);
			print_row("null", name, 64, &f, 0);
			if (c == 0)
				none = f.middle[WAY_FULL];
			times = none / f.middle[WAY_FULL];
			if (c != 0)
				printf("  %-22s %.2f times as many packets\n", "", times);
			record("null", name, 64, times, "times");
			teardown();
		}
	}
}

/* Cycles of decide alone, a packet; `all` false: of reading the clock. */
static double
decide_window(struct rte_mbuf **pkts, unsigned int bursts, bool all)
{
	const struct ipsec_cache_decision *decisions[BURST];
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);
	struct packet_view views[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = BURST };
	uint64_t start, spent = 0;
	unsigned int b;

	for (b = 0; b < bursts; b++) {
		source(0, 0, pkts, BURST, BURST, NULL);
		v.parsed = false;
		packet_vector_parse(&v);
		start = rte_rdtsc();
		if (all) {
			ipsec_cache_begin(w);
			ipsec_cache_decide(w, &v, UINT32_MAX, NULL, 1, decisions);
		}
		spent += rte_rdtsc() - start;
	}
	return (double)spent / (bursts * BURST);
}

static void
decide_row(const char *name, double target)
{
	static double v[2][ROUNDS_MAX];
	struct ipsec_cache_stats before, after;
	struct rte_mbuf *pkts[BURST];
	unsigned int r, bursts = RTE_MAX(BURSTS, RTE_MIN(now.flows / BURST, 256));
	double cycles;

	if (rte_pktmbuf_alloc_bulk(pool, pkts, BURST) != 0)
		must(-ENOMEM, "no mbufs");
	for (r = 0; r < 4 + 2 * now.flows / (bursts * BURST); r++)
		decide_window(pkts, bursts, true);
	ipsec_cache_stats(world.ic, &before);
	for (r = 0; r < rounds; r++) {
		v[0][r] = decide_window(pkts, bursts, false);
		v[1][r] = decide_window(pkts, bursts, true);
	}
	ipsec_cache_stats(world.ic, &after);
	rte_pktmbuf_free_bulk(pkts, BURST);
	cycles = median(v[1], rounds) - median(v[0], rounds);
	after.hits -= before.hits;
	after.misses -= before.misses;
	printf("  %-36s %6.1f", name, cycles);
	if (after.hits + after.misses != 0)
		printf("  %5.1f %% hits",
			100.0 * (double)after.hits / (double)(after.hits + after.misses));
	if (target > 0)
		printf("  (at most %.0f)%s", target, cycles > target ? "  MISSED" : "");
	printf("\n");
	record("decide", name, now.flows, cycles, "cycles");
	fflush(stdout);
}

static void
bench_decide(void)
{
	static const unsigned int policies[] = { 0, 1, 100, 1000, 10000 };
	static const unsigned int flows[] = { 32, 256, 1000, 4096, 8192, 16384 };
	struct ipsec_cache_sa_spec other = world_spec("192.0.2.1", "192.0.2.2", 4096);
	unsigned int i, p, entries;
	char name[64];

	if (skipped(false, 64))
		return;
	printf("decide: cycles a packet, of policy, SA and routes\n");
	for (i = 0; i < RTE_DIM(policies); i++) {
		for (entries = 0; entries <= 4096; entries += 4096) {
			setup(false, false, 64, 1, policies[i] != 0, entries);
			if (policies[i] == 0) /* the cache has its tables with the first SA */
				world_sa(&world, &other);
			for (p = 1; p < policies[i]; p++)
				add_policy(XFRM_POLICY_OUT, 10000 + p, 32, "192.0.2.3", UINT32_MAX);
			snprintf(name, sizeof(name), "1 flow, %u policies, %s", policies[i],
				entries != 0 ? "cache" : "none");
			decide_row(name, entries != 0 ? 20 : 0);
			teardown();
		}
	}
	for (i = 0; i < RTE_DIM(flows); i++) {
		for (entries = 0; entries <= 4096; entries += 4096) {
			setup(false, false, 64, flows[i], 1, entries);
			snprintf(name, sizeof(name), "%u flows in turn, %s", flows[i],
				entries != 0 ? "cache of 4096" : "none");
			decide_row(name, entries != 0 && flows[i] <= 1000 ? 20 : 0);
			teardown();
		}
	}
}

/* Another key takes the place of the one there is, as an IKE daemon does it: added, then deleted.
 */
static void
rekey(uint32_t spi)
{
	struct ipsec_cache_sa_spec spec = world_spec("192.0.2.1", "192.0.2.3", spi);
	struct ipsec_cache_sa_id id = { .family = AF_INET, .proto = IPPROTO_ESP };

	spec.info.reqid = 1;
	now.rt[0] = world_sa(&world, &spec);
	id.daddr = spec.info.id.daddr;
	id.spi = htonl(spi - 1);
	must(ipsec_cache_sa_del(world.ic, &id), "no SA to delete");
	rcu_reclaim(world.rcu, 0);
}

/* What the packets behind a rekey pay: none is lost (full() sees to that), all go by the new SA. */
static void
bench_rekey(void)
{
	static const unsigned int bursts[] = { 1, 8, 64 };
	static double v[2][ROUNDS_MAX];
	uint32_t spi = 0x10000;
	double with, without;
	unsigned int b, r, n;

	if (skipped(false, 64))
		return;
	printf("rekey: out, 64 B, cycles a packet\n");
	setup(false, false, 64, 1, 1, 1024);
	window(WAY_FULL, BURSTS);
	for (b = 0; b < RTE_DIM(bursts); b++) {
		n = bursts[b] * BURST;
		for (r = 0; r < rounds; r++) {
			v[0][r] = window(WAY_FULL, bursts[b]);
			rekey(++spi);
			v[1][r] = window(WAY_FULL, bursts[b]);
			if (atomic_load(&now.rt[0]->packets) != n)
				must(-ESTALE, "a packet went by the old SA");
		}
		without = median(v[0], rounds);
		with = median(v[1], rounds);
		printf("  %4u packets  %6.1f  behind a rekey  %6.1f\n", n, without, with);
		record("rekey", "none", n, without, "cycles");
		record("rekey", "behind one", n, with, "cycles");
	}
	teardown();
}

/*
 * Everything but what the NIC does, beside the source. Linux's reviewer measured its cache over
 * inline crypto, where the cipher hides nothing, from 64 to 1500 B.
 */
static void
bench_inline(void)
{
	static const unsigned int sizes[] = { 64, 256, 512, 1024, 1420 };
	static const unsigned int entries[] = { 1024, 0 };
	unsigned int s, e, in;

	printf("inline: inline crypto, one SA\n  %-22s %6s  %6s  %6s  %6s\n", "", "bytes", "source",
		"all", "more");
	now.nic = true;
	for (in = 0; in < 2; in++) {
		for (e = 0; e < RTE_DIM(entries); e++) {
			for (s = 0; s < RTE_DIM(sizes); s++) {
				struct figures f;
				double more;
				char name[32];

				if (skipped(in != 0, sizes[s]))
					continue;
				setup(in != 0, false, sizes[s], 1, 1, entries[e]);
				f = measure();
				more = f.middle[WAY_FULL] - f.middle[WAY_SOURCE];
				snprintf(name, sizeof(name), "%s, %s", in != 0 ? "in" : "out",
					e == 0 ? "cache" : "no cache");
				printf("  %-22s %6u  %6.1f  %6.1f  %6.1f", name, sizes[s],
					f.middle[WAY_SOURCE], f.middle[WAY_FULL], more);
				if (e == 0)
					printf("  (at most 60)%s", more > 60 ? "  MISSED" : "");
				printf("\n");
				record("inline", name, sizes[s], more, "cycles");
				teardown();
			}
		}
	}
	now.nic = false;
}

/* Against the device alone: at most 100 cycles more. */
static void
bench_lookaside(void)
{
	static const unsigned int sizes[] = { 64, 256, 1420 };
	unsigned int s, in;

	if (!beside_open(&beside)) {
		printf("lookaside: skipped, there is no " BESIDE_NAME " here\n");
		return;
	}
	rte_cryptodev_stop(beside.dev);
	printf("lookaside: " BESIDE_NAME ", one SA\n  %-22s %6s  %6s  %6s  %6s  %6s\n", "", "bytes",
		"source", "device", "all", "more");
	beside.on = true;
	for (in = 0; in < 2; in++) {
		for (s = 0; s < RTE_DIM(sizes); s++) {
			struct figures f;
			double more;

			if (skipped(in != 0, sizes[s]))
				continue;
			setup(in != 0, false, sizes[s], 1, 1, 1024);
			f = measure();
			more = f.middle[WAY_FULL] - f.middle[WAY_CIPHER];
			printf("  %-22s %6u  %6.1f  %6.1f  %6.1f  %6.1f  (at most 100)%s\n",
				in != 0 ? "in" : "out", sizes[s], f.middle[WAY_SOURCE],
				f.middle[WAY_CIPHER], f.middle[WAY_FULL], more,
				more > 100 ? "  MISSED" : "");
			record("lookaside", in != 0 ? "in" : "out", sizes[s], more, "cycles");
			teardown();
		}
	}
	beside.on = false;
}

static const struct table {
	const char *name;
	void (*run)(void);
} tables[] = {
	{ "esp", bench_esp },
	{ "sas", bench_sas },
	{ "flows", bench_flows },
	{ "null", bench_null },
	{ "decide", bench_decide },
	{ "rekey", bench_rekey },
	{ "inline", bench_inline },
	{ "lookaside", bench_lookaside },
};

static bool
wanted(const char *name, int argc, char *argv[])
{
	int i;

	for (i = optind; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return optind == argc;
}

int
main(int argc, char *argv[])
{
	const char *path = NULL;
	unsigned int i;
	int n, opt;

	if ((n = rte_eal_init(argc, argv)) < 0)
		return 1;
	argc -= n;
	argv += n;
	while ((opt = getopt(argc, argv, "r:o:s:d:")) != -1) {
		if (opt == 'r') {
			rounds = (unsigned int)strtoul(optarg, NULL, 0);
		} else if (opt == 'o') {
			path = optarg;
		} else if (opt == 's') {
			only_size = (unsigned int)strtoul(optarg, NULL, 0);
		} else if (opt == 'd') {
			only_dir = optarg;
		} else {
			fprintf(stderr,
				"usage: ipsec_bench EAL-options -- [-r rounds] [-o file] [-s size] "
				"[-d in|out] [table...]\n");
			return 1;
		}
	}
	rounds = RTE_MIN(RTE_MAX(rounds, 1u), (unsigned int)ROUNDS_MAX);
	if (path != NULL && (json = fopen(path, "w")) == NULL) {
		perror(path);
		return 1;
	}
	pool = rte_pktmbuf_pool_create(
		"bench", 2047, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL)
		must(-rte_errno, "no pool");
	nic_metadata = rte_mbuf_dynfield_register(&(const struct rte_mbuf_dynfield){
		.name = "bench_nic", .size = sizeof(void *), .align = alignof(void *) });
	if (nic_metadata < 0)
		must(-rte_errno, "no room in mbufs");
	start_port();
	if (json != NULL)
		fprintf(json, "[");
	for (i = 0; i < RTE_DIM(tables); i++)
		if (wanted(tables[i].name, argc, argv))
			tables[i].run();
	if (json != NULL) {
		fprintf(json, "\n]\n");
		fclose(json);
	}
	return rte_eal_cleanup();
}
