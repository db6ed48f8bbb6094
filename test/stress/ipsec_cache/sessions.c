/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Two workers, two NICs that do ESP, and a control thread that gives SAs and takes them away, moves
 * their routes, and takes NICs away and brings them back. What is sealed stands in a queue before
 * it is sent, as in a scheduler's band and a Tx ring. What must hold:
 *
 *   E4  no frame is sent that names a session which has ended, or another port's
 *   D12 an SA's numbers go up, whoever gives them: the CPU, or one session after the other
 *   a NIC that names sessions that have ended, or never were, is not believed
 *
 * usage: ipsec_sessions seconds
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <rte_random.h>

#include "../../unit/ipsec_cache/world.h"
#include "security.h"

#define HERE "192.0.2.1"
#define THERE "192.0.2.2"
#define WORKERS 2
#define PORTS 2
#define BURST 16
#define QUEUE 64
#define OUT_SPI 0x1000
#define IN_SPI 0x2000
#define CHANGE_NS 300000
#define IDS 256
#define ALIVE 0x616c697665u

#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "ipsec_sessions: line %d: not %s: ", __LINE__, \
				#condition); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
			abort(); \
		} \
	} while (0)

/* A driver's part of a session. */
struct nic_session {
	uint64_t alive;
	uint64_t number; /* inline protocol: the last that it gave */
	uintptr_t port;
	uint32_t spi;
	bool protocol;
};

static struct world world;
static struct rte_mempool *pool;
static int found_by; /* offset of the session in a frame */
static _Atomic bool stopping;
static _Atomic uint64_t ids[IDS]; /* of sessions, past and present */
static _Atomic uint32_t n_ids;
static _Atomic uint32_t route; /* the ifindex */

/* What is sealed and not sent yet, of a worker. */
static struct queue {
	struct rte_mbuf *pkts[QUEUE];
	_Atomic uint64_t in, out;
	uint64_t cpu, crypto, protocol, completed, lost, opened, refused;
	uint64_t last; /* number */
	uint32_t last_spi;
} queues[WORKERS] __rte_cache_aligned;

/* --- NICs --- */

static unsigned int
nic_size(void *device)
{
	(void)device;
	return sizeof(struct nic_session);
}

static int
nic_create(void *device, struct rte_security_session_conf *conf, struct rte_security_session *s)
{
	struct nic_session *n = SECURITY_GET_SESS_PRIV(s);

	n->port = (uintptr_t)device;
	n->spi = conf->ipsec.spi;
	n->number = conf->ipsec.esn.value;
	n->protocol = conf->action_type == RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL;
	n->alive = ALIVE;
	atomic_store_explicit(&ids[atomic_fetch_add(&n_ids, 1) % IDS],
		(uint64_t)(uintptr_t)conf->userdata, memory_order_relaxed);
	return 0;
}

static int
nic_destroy(void *device, struct rte_security_session *s)
{
	struct nic_session *n = SECURITY_GET_SESS_PRIV(s);

	CHECK(n->alive == ALIVE && n->port == (uintptr_t)device, "destroyed twice");
	memset(n, 0xdd, sizeof(*n));
	return 0;
}

static int
nic_mark(void *device, struct rte_security_session *s, struct rte_mbuf *m, void *params)
{
	struct nic_session *n = SECURITY_GET_SESS_PRIV(s);

	(void)params;
	CHECK(n->alive == ALIVE && n->port == (uintptr_t)device,
		"a frame for a session that ended");
	*RTE_MBUF_DYNFIELD(m, found_by, struct nic_session **) = n;
	return 0;
}

/* One can do all, the other only cryptography. */
static const struct rte_security_capability *
nic_capabilities(void *device)
{
	static const struct rte_security_capability lists[PORTS][3] = {
		{ SECURITY_CAPABILITY(PROTOCOL, EGRESS), SECURITY_CAPABILITY(PROTOCOL, INGRESS) },
		{ SECURITY_CAPABILITY(CRYPTO, EGRESS), SECURITY_CAPABILITY(CRYPTO, INGRESS) },
	};

	return lists[(uintptr_t)device];
}

static struct rte_security_ctx *
security_ctx(uint16_t port)
{
	static const struct rte_security_ops ops = {
		.session_create = nic_create,
		.session_get_size = nic_size,
		.session_destroy = nic_destroy,
		.set_pkt_metadata = nic_mark,
		.capabilities_get = nic_capabilities,
	};
	static struct rte_security_ctx nics[PORTS] = { { .device = (void *)0, .ops = &ops },
		{ .device = (void *)1, .ops = &ops } };

	return &nics[port];
}

/* --- workers --- */

static uint32_t
word_at(const struct rte_mbuf *m, uint32_t at)
{
	uint32_t word;

	memcpy(&word, rte_pktmbuf_mtod_offset(m, const uint8_t *, at), sizeof(word));
	return ntohl(word);
}

/* The frame is on the wire, with the number that it has there. */
static void
sent(struct queue *q, uint32_t spi, uint64_t number)
{
	CHECK(spi != q->last_spi || number > q->last, "SPI %x: number %" PRIu64 " behind %" PRIu64,
		spi, number, q->last);
	q->last_spi = spi;
	q->last = number;
}

/* The frame that has stood longest leaves by the port that it was sealed for. */
static void
send_first(struct queue *q)
{
	uint64_t out = atomic_load_explicit(&q->out, memory_order_relaxed);
	struct rte_mbuf *m = q->pkts[out % QUEUE];
	struct nic_session *n;

	if ((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) == 0) {
		q->cpu++;
		sent(q, word_at(m, 34), word_at(m, 38));
	} else {
		n = *RTE_MBUF_DYNFIELD(m, found_by, struct nic_session **);
		CHECK(n->alive == ALIVE, "a frame's session has ended");
		CHECK(n->port == m->port, "a frame at another port than its session's");
		if (n->protocol) {
			q->protocol++;
			sent(q, n->spi, ++n->number);
		} else {
			q->crypto++;
			CHECK(word_at(m, 34) == n->spi, "another SA's session");
			sent(q, n->spi, word_at(m, 38));
		}
	}
	rte_pktmbuf_free(m);
	/* release: who sees this sees that the session is not looked at any more */
	atomic_store_explicit(&q->out, out + 1, memory_order_release);
}

static void
queue_up(struct queue *q, struct rte_mbuf *m)
{
	uint64_t in = atomic_load_explicit(&q->in, memory_order_relaxed);

	if (in - atomic_load_explicit(&q->out, memory_order_relaxed) == QUEUE)
		send_first(q);
	q->pkts[in % QUEUE] = m;
	atomic_store_explicit(&q->in, in + 1, memory_order_release);
}

static struct rte_mbuf *
frame(unsigned int flow)
{
	struct rte_mbuf *m = world_frame(pool, AF_INET, 64, (uint16_t)(1000 + flow));

	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	return m;
}

static void
seal_burst(unsigned int id)
{
	const struct ipsec_cache_decision *d[BURST];
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, id);
	struct packet_view views[BURST];
	struct rte_mbuf *pkts[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = BURST };
	struct ipsec_cache_result r;
	unsigned int i;

	for (i = 0; i < BURST; i++)
		pkts[i] = frame(i);
	ipsec_cache_begin(w);
	packet_vector_parse(&v);
	ipsec_cache_decide(w, &v, packet_vector_mask(&v), NULL, 0, d);
	for (i = 0; i < BURST; i++) {
		if (d[i]->action != IPSEC_CACHE_PROTECT) {
			CHECK(d[i]->error == IPSEC_CACHE_POLICY_NO_SA, "action %u error %u",
				d[i]->action, d[i]->error);
			rte_pktmbuf_free_bulk(pkts, BURST);
			return;
		}
	}
	ipsec_cache_seal(w, &v, packet_vector_mask(&v), d, &r);
	packet_mask_for_each (i, r.done) {
		/* some go elsewhere at the last moment */
		if (i % 8 == 7 && (pkts[i]->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) != 0) {
			if (!ipsec_cache_complete(w, pkts[i])) {
				queues[id].lost++;
				/* its NIC would have given it a number */
				queue_up(&queues[id], pkts[i]);
				continue;
			}
			queues[id].completed++;
		}
		queue_up(&queues[id], pkts[i]);
	}
	packet_mask_for_each (i, r.drop | r.hand_over)
		rte_pktmbuf_free(pkts[i]);
}

/* A NIC says that sessions opened these, which may be anything. */
static void
open_burst(unsigned int id)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, id);
	struct packet_view views[BURST];
	struct rte_mbuf *pkts[BURST];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = BURST };
	struct ipsec_cache_result r;
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		pkts[i] = frame(i);
		pkts[i]->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD;
		*rte_security_dynfield(pkts[i]) =
			atomic_load_explicit(&ids[rte_rand_max(IDS)], memory_order_relaxed);
	}
	ipsec_cache_begin(w);
	ipsec_cache_open(w, &v, packet_vector_mask(&v), &r);
	CHECK((r.done | r.drop | r.hand_over) == packet_vector_mask(&v), "a packet between");
	queues[id].opened += (uint64_t)__builtin_popcountll(r.done);
	queues[id].refused += (uint64_t)__builtin_popcountll(r.drop);
	rte_pktmbuf_free_bulk(pkts, BURST);
}

static void *
work(void *arg)
{
	unsigned int id = (unsigned int)(uintptr_t)arg;
	struct queue *q = &queues[id];

	rte_thread_register();
	rte_rcu_qsbr_thread_online(world.qsbr, id);
	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		seal_burst(id);
		open_burst(id);
		while (atomic_load(&q->in) - atomic_load(&q->out) > QUEUE / 2)
			send_first(q);
		rte_rcu_qsbr_quiescent(world.qsbr, id);
	}
	while (atomic_load(&q->in) != atomic_load(&q->out))
		send_first(q);
	rte_rcu_qsbr_thread_offline(world.qsbr, id);
	rte_thread_unregister();
	return NULL;
}

/* --- control --- */

static void
resolve(void *arg, uint8_t family, const void *dst, uint32_t hash, struct ipsec_cache_hop *hop)
{
	uint32_t here;

	(void)arg;
	(void)hash;
	inet_pton(AF_INET, HERE, &here);
	*hop = (struct ipsec_cache_hop){
		.hop = &world,
		.mtu = WORLD_MTU,
		.ifindex = atomic_load_explicit(&route, memory_order_relaxed),
		.kind = family == AF_INET && memcmp(dst, &here, 4) == 0 ? IPSEC_CACHE_HOP_LOCAL
									: IPSEC_CACHE_HOP_FORWARD,
	};
}

/* A round ends when all that stood in the queues when it began has been sent. */
static uint64_t
rounds(void *arg, uint32_t ifindex)
{
	static uint64_t marks[WORKERS], n;
	unsigned int i;

	(void)arg;
	(void)ifindex;
	for (i = 0; i < WORKERS; i++)
		if (atomic_load_explicit(&queues[i].out, memory_order_acquire) < marks[i])
			return n;
	for (i = 0; i < WORKERS; i++)
		marks[i] = atomic_load_explicit(&queues[i].in, memory_order_acquire);
	return ++n;
}

static struct ipsec_cache_sa_id
id_of(bool in, uint32_t spi)
{
	struct ipsec_cache_sa_id id = { .family = AF_INET, .proto = IPPROTO_ESP };

	id.spi = htonl(spi);
	inet_pton(AF_INET, in ? HERE : THERE, &id.daddr);
	return id;
}

static void
rekey(uint32_t turn)
{
	struct ipsec_cache_sa_spec out = world_spec(HERE, THERE, OUT_SPI + turn % 64);
	struct ipsec_cache_sa_spec in = world_spec(THERE, HERE, IN_SPI + turn % 8);
	struct ipsec_cache_sa_id id = id_of(false, OUT_SPI + (turn - 1) % 64);
	const char *why;

	out.info.reqid = 7;
	CHECK(ipsec_cache_sa_add(world.ic, &out, false, &why) == 0, "%s", why);
	ipsec_cache_sa_del(world.ic, &id);
	id = id_of(true, IN_SPI + turn % 8);
	ipsec_cache_sa_del(world.ic, &id);
	CHECK(ipsec_cache_sa_add(world.ic, &in, false, &why) == 0, "%s", why);
}

static void
add_nic(unsigned int n)
{
	const struct ipsec_cache_dev dev = {
		.ifindex = 2 + n, .port_id = (uint16_t)n, .name = n == 0 ? "p0" : "p1"
	};

	(void)ipsec_cache_dev_add(world.ic, &dev);
}

static void
change(void)
{
	static uint32_t turn;

	switch (rte_rand_max(6)) {
	case 0:
	case 1:
		rekey(++turn);
		break;
	case 2:
		atomic_store(&route, 2 + (uint32_t)rte_rand_max(PORTS));
		ipsec_cache_invalidate(world.ic);
		break;
	case 3:
		ipsec_cache_dev_gone(world.ic, 2 + (uint32_t)rte_rand_max(PORTS));
		break;
	default:
		add_nic(0);
		add_nic(1);
	}
}

static struct queue
sum_up(void)
{
	struct queue sum = { .cpu = 0 };
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		sum.cpu += queues[i].cpu;
		sum.crypto += queues[i].crypto;
		sum.protocol += queues[i].protocol;
		sum.completed += queues[i].completed;
		sum.opened += queues[i].opened;
		sum.refused += queues[i].refused;
	}
	return sum;
}

int
main(int argc, char *argv[])
{
	static const struct rte_mbuf_dynfield field = {
		.name = "nic_session", .size = sizeof(void *), .align = sizeof(void *)
	};
	struct ipsec_cache_policy_spec policy = world_policy(XFRM_POLICY_OUT, 1, HERE, THERE, 7);
	struct ipsec_cache_conf conf = {
		.n_workers = WORKERS, .cache_entries = 256, .tx_rounds = rounds
	};
	struct timespec nap = { .tv_nsec = CHANGE_NS };
	unsigned int i, seconds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 2;
	pthread_t threads[WORKERS];
	struct queue sum;
	uint64_t now_ms = 1;
	time_t end;

	test_eal_init("ipsec-sessions", "0");
	pool = rte_pktmbuf_pool_create(
		"sessions", 4095, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	CHECK(pool != NULL, "no pool");
	found_by = rte_mbuf_dynfield_register(&field);
	CHECK(found_by >= 0 && rte_security_dynfield_register() >= 0, "no room in mbufs");
	atomic_store(&route, 2);
	world_create_with(&world, conf, resolve);
	world_add_policy(&world, &policy);
	add_nic(0);
	add_nic(1);
	rekey(0);
	for (i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
	end = time(NULL) + (time_t)seconds;
	while (time(NULL) < end) {
		nanosleep(&nap, NULL);
		change();
		rcu_reclaim(world.rcu, 0);
		/* SAs are looked at about once a second of this clock */
		ipsec_cache_tick(world.ic, now_ms += 400);
	}
	atomic_store(&stopping, true);
	for (i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	sum = sum_up();
	printf("%u sessions; sent by the CPU %" PRIu64 ", inline crypto %" PRIu64
	       ", inline protocol %" PRIu64 "; completed %" PRIu64 "; opened %" PRIu64
	       ", refused %" PRIu64 "\n",
		atomic_load(&n_ids), sum.cpu, sum.crypto, sum.protocol, sum.completed, sum.opened,
		sum.refused);
	CHECK(sum.cpu > 0 && sum.crypto > 0 && sum.protocol > 0 && sum.completed > 0 &&
			sum.opened > 0 && sum.refused > 0,
		"something never happened");
	CHECK(test_pool_full(pool), "an mbuf is missing");
	world_destroy(&world);
	return 0;
}
