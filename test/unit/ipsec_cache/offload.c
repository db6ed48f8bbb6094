/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * SAs on NICs, two of them, and what becomes of packets when routes change, NICs fail or lie, and
 * sessions end. The other end of the tunnel is an instance that only has a CPU; what it does not
 * take is not right. No frame that leaves may show the text of a packet.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_random.h>

#include "card.h"
#include "ipsec_cache/device.h"
#include "ipsec_cache/offload.h"
#include "ipsec_cache/sad.h"

#define HERE "192.0.2.1"
#define THERE "192.0.2.2"
#define LATER "192.0.2.3"
#define OUT_SPI 0x1001
#define IN_SPI 0x1002
#define PAYLOAD 100

static struct rte_mempool *pool;
static struct card cards[2]; /* ifindexes 2 and 3 */
static const char *const names[2] = { "p0", "p1" };
static struct world world, peer;
static uint64_t now_ms;
static struct nic_stats before[2];

static const char *const error_names[] = {
#define X(id, name, text) name,
	IPSEC_CACHE_ERROR_LIST(X)
#undef X
};

static const char *const back_ends[] = { "none", "inline_crypto", "inline_protocol" };

/* --- the setting --- */

static void
faults_off(void)
{
	for (unsigned int c = 0; c < 2; c++) {
		for (int f = 0; f < NIC_FAULT_MAX; f++)
			nic_fault(cards[c].port, (enum nic_fault)f, 0);
		nic_fault(cards[c].port, NIC_FAULT_create_errno, ENOMEM);
		nic_fault(cards[c].port, NIC_FAULT_session_max, 65535);
	}
}

static void
start_with(enum ipsec_cache_offload offload, bool rounds)
{
	world_create_as(&world,
		(struct ipsec_cache_conf){
			.n_workers = 2,
			.cache_entries = 64,
			.offload = offload,
			.tx_rounds = rounds ? world_rounds : NULL,
		});
	world_create_as(&peer,
		(struct ipsec_cache_conf){ .n_workers = 1, .offload = IPSEC_CACHE_OFFLOAD_OFF });
	world_local(&world, HERE);
	world_local(&peer, THERE);
	faults_off();
	for (unsigned int c = 0; c < 2; c++) {
		nic_caps_preset(cards[c].port, "all");
		assert_int_equal(card_add(&cards[c], &world, CARD_IFINDEX + c, names[c]), 0);
		nic_stats(cards[c].port, &before[c]);
	}
	now_ms = 1000;
	ipsec_cache_tick(world.ic, now_ms);
}

static void
start(void)
{
	start_with(IPSEC_CACHE_OFFLOAD_AUTO, false);
}

#define COUNT(c, name) (CARD_STAT(&cards[c], name) - before[c].name)

/* Everything has ended, and nothing was ever seen in clear. */
static void
stop(void)
{
	faults_off();
	world_destroy(&world);
	world_destroy(&peer);
	for (unsigned int c = 0; c < 2; c++) {
		assert_int_equal(CARD_STAT(&cards[c], sessions), 0);
		assert_int_equal(CARD_STAT(&cards[c], flows), 0);
		assert_int_equal(COUNT(c, plaintext), 0);
		/* a NIC that forgot its sessions finds their frames late, too */
		if (COUNT(c, forgotten) == 0)
			assert_int_equal(COUNT(c, destroyed_in_use), 0);
		assert_int_equal(COUNT(c, left), 0);
		assert_int_equal(COUNT(c, tx_lens), 0);
	}
	assert_true(test_pool_full(pool));
}

/* Time passes, at rest; SAs are looked at. */
static void
pass(uint64_t ms)
{
	for (; ms >= 100; ms -= 100) {
		now_ms += 100;
		rcu_reclaim(world.rcu, 0);
		ipsec_cache_tick(world.ic, now_ms);
	}
	rcu_reclaim(world.rcu, 0);
}

static struct ipsec_cache_sa_spec
sa_spec(bool in)
{
	return in ? world_spec(THERE, HERE, IN_SPI) : world_spec(HERE, THERE, OUT_SPI);
}

/* Adds it at both ends. */
static void
sa_add(struct ipsec_cache_sa_spec *spec)
{
	struct ipsec_cache_sa_spec other = *spec;

	other.offload_ifindex = 0;
	other.offload_flags = 0;
	world_sa(&world, spec);
	world_sa(&peer, &other);
}

/* Both SAs, and the policy that sends by one. */
static void
tunnel(void)
{
	struct ipsec_cache_policy_spec policy = world_policy(XFRM_POLICY_OUT, 1, HERE, THERE, 0);
	struct ipsec_cache_sa_spec out = sa_spec(false), in = sa_spec(true);

	sa_add(&out);
	sa_add(&in);
	world_add_policy(&world, &policy);
}

static struct ipsec_cache_sa_id
id_of(bool in)
{
	struct ipsec_cache_sa_spec spec = sa_spec(in);

	return (struct ipsec_cache_sa_id){
		.daddr = spec.info.id.daddr,
		.spi = spec.info.id.spi,
		.family = AF_INET,
		.proto = IPPROTO_ESP,
	};
}

static const struct ipsec_cache_backend *
backend(bool in)
{
	static struct ipsec_cache_backend b;
	struct ipsec_cache_sa_id id = id_of(in);
	struct ipsec_cache_sa *sa = ipsec_cache_sa_find(world.ic, &id);

	assert_non_null(sa);
	ipsec_cache_sa_backend(world.ic, sa, &b);
	return &b;
}

#define assert_backend(in, is) assert_string_equal(backend(in)->name, is)

static void
assert_why_not(bool in, const char *word)
{
	const char *why_not = backend(in)->why_not;

	if (strstr(why_not, word) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", why_not, word);
}

/* A packet with the text that nobody may see. */
static struct rte_mbuf *
packet(void)
{
	struct rte_mbuf *m = world_frame(pool, AF_INET, PAYLOAD, 7);

	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	return m;
}

/* The text of a frame is that of packet(). Frees it. */
static bool
is_packet(struct rte_mbuf *m)
{
	struct rte_mbuf *want = packet();
	bool same = m->pkt_len == want->pkt_len &&
		memcmp(rte_pktmbuf_mtod_offset(m, uint8_t *, 14),
			rte_pktmbuf_mtod_offset(want, uint8_t *, 14), want->pkt_len - 14) == 0;

	rte_pktmbuf_free(want);
	rte_pktmbuf_free(m);
	return same;
}

/* What a program does with a sealed frame that is to leave by a card. NULL: it was dropped. */
static struct rte_mbuf *
leave_by(unsigned int c, struct rte_mbuf *m)
{
	if ((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) != 0 && m->port != cards[c].port &&
		!ipsec_cache_complete(ipsec_cache_worker(world.ic, 0), m)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return card_send(&cards[c], m);
}

/* Seals a packet by its policy. NULL: dropped for *error. */
static struct rte_mbuf *
seal(const char **error)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);
	struct rte_mbuf *m = packet();
	const struct ipsec_cache_decision *d;
	struct ipsec_cache_result r;
	struct packet_view view;
	struct packet_vector v = { .pkts = &m, .views = &view, .n = 1 };

	packet_vector_parse(&v);
	ipsec_cache_begin(w);
	ipsec_cache_decide(w, &v, 1, NULL, 0, &d);
	assert_int_equal(d->action, IPSEC_CACHE_PROTECT);
	ipsec_cache_seal(w, &v, 1, &d, &r);
	if (r.done == 1)
		return m;
	assert_int_equal(r.drop, 1);
	*error = error_names[r.error[0]];
	rte_pktmbuf_free(m);
	return NULL;
}

/* A frame on the wire, at the other end: is it the packet, and new? Frees it. */
static bool
peer_takes(struct rte_mbuf *m)
{
	struct ipsec_cache_result r;

	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	world_open(&peer, 0, &m, &r);
	if (r.done == 1)
		return is_packet(m);
	rte_pktmbuf_free(m);
	return false;
}

/* Sends a packet by card c. "ok": the other end took it; or what became of it. */
static const char *
send_by(unsigned int c)
{
	const char *error = "";
	struct rte_mbuf *m = seal(&error);

	if (m == NULL)
		return error;
	if ((m = leave_by(c, m)) == NULL)
		return "lost";
	return peer_takes(m) ? "ok" : "refused";
}

static const char *
send_one(void)
{
	return send_by(world.ifindex - CARD_IFINDEX);
}

/* The other end's next frame. */
static struct rte_mbuf *
peer_frame(void)
{
	struct ipsec_cache_sa_id id = id_of(true);
	struct rte_mbuf *m = packet();
	struct ipsec_cache_result r;
	uint8_t daddr[16] = { 0 };

	memcpy(daddr, &id.daddr, 4);
	world_seal(&peer, 0, &m, ipsec_sad_lookup(peer.ic, id.spi, AF_INET, daddr, 0), &r);
	assert_int_equal(r.done, 1);
	return m;
}

static const char *
receive_frame(unsigned int c, struct rte_mbuf *m)
{
	struct ipsec_cache_result r;

	if ((m = card_receive(&cards[c], m)) == NULL)
		return "vanished";
	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	world_open(&world, 0, &m, &r);
	if (r.done == 1) {
		assert_true((m->ol_flags &
				    (RTE_MBUF_F_RX_SEC_OFFLOAD |
					    RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED)) == 0);
		return is_packet(m) ? "ok" : "wrong";
	}
	rte_pktmbuf_free(m);
	return r.drop == 1 ? error_names[r.error[0]] : "not ours";
}

static const char *
receive_by(unsigned int c)
{
	return receive_frame(c, peer_frame());
}

#define OK(what) assert_string_equal(what, "ok")
#define FAILS(what, name) assert_string_equal(what, name)

static struct ipsec_cache_stats
stats(void)
{
	struct ipsec_cache_stats s;

	ipsec_cache_stats(world.ic, &s);
	return s;
}

/* --- who does it --- */

static void
offload_auto_takes_the_best(void **state)
{
	static const struct {
		const char *preset, *name;
	} tries[] = {
		{ "all", "inline-protocol p0" },
		{ "inline_protocol", "inline-protocol p0" },
		{ "inline_crypto", "inline-crypto p0" },
		{ "none", "cpu-gcm" },
		{ "null", "cpu-gcm" },
		{ "endless", "cpu-gcm" },
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(tries); i++) {
		bool nic = tries[i].name[0] == 'i';

		start();
		nic_caps_preset(cards[0].port, tries[i].preset);
		tunnel();
		assert_backend(false, tries[i].name);
		assert_backend(true, tries[i].name);
		if (nic)
			assert_string_equal(backend(false)->why_not, "");
		else
			assert_why_not(false, "p0: its driver has no ");
		for (unsigned int k = 0; k < 100; k++) {
			OK(send_one());
			OK(receive_by(0));
		}
		assert_int_equal(COUNT(0, tx_protected), nic ? 100 : 0);
		assert_int_equal(COUNT(0, rx_decrypted), nic ? 100 : 0);
		assert_int_equal(stats().fallbacks, nic ? 0 : 2);
		assert_int_equal(stats().sessions, nic ? 2 : 0);
		stop();
	}
}

static void
offload_asked_for_is_had_or_refused(void **state)
{
	struct ipsec_cache_sa_spec spec;
	const char *why = "";

	(void)state;
	start_with(IPSEC_CACHE_OFFLOAD_EXPLICIT, false);
	spec = sa_spec(false);
	spec.offload_ifindex = 2;
	nic_caps_preset(cards[0].port, "inline_protocol");
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EOPNOTSUPP);
	assert_string_equal(why,
		"Port p0 cannot do the SA with SPI 0x00001001: its driver has no inline crypto");
	assert_int_equal(ipsec_cache_sa_count(world.ic), 0);
	spec.offload_flags = 4; /* XFRM_OFFLOAD_PACKET */
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), 0);
	assert_backend(false, "inline-protocol p0");
	/* who asks for nothing gets the CPU */
	spec = sa_spec(true);
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), 0);
	assert_backend(true, "cpu-gcm");
	assert_why_not(true, "asks for no device");
	/* other things that cannot be */
	spec = world_spec(HERE, THERE, 0x2000);
	spec.offload_ifindex = 9;
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "Device 9"));
	spec.offload_ifindex = 2;
	spec.offload_flags = 0x80;
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EINVAL);
	spec.offload_flags = XFRM_OFFLOAD_INBOUND;
	spec.dir = 2; /* out */
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EINVAL);
	assert_int_equal(stats().sessions, 1);
	stop();

	start_with(IPSEC_CACHE_OFFLOAD_OFF, false);
	spec = sa_spec(false);
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), 0);
	assert_backend(false, "cpu-gcm");
	spec = world_spec(HERE, THERE, 0x2000);
	spec.offload_ifindex = 2;
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EOPNOTSUPP);
	assert_non_null(strstr(why, "turned off"));
	stop();
}

/* What a NIC cannot be asked, whatever its list says. */
static void
offload_what_no_list_says(void **state)
{
	struct ipsec_cache_sa_spec spec;

	(void)state;
	start();
	spec = sa_spec(false);
	spec.tfcpad = 1000;
	world_sa(&world, &spec);
	assert_backend(false, "inline-crypto p0");
	stop();
	start();
	spec = sa_spec(true); /* a NAT that moves the peer is to be noticed */
	world_udp(&spec, 4500, 4500);
	world_sa(&world, &spec);
	assert_backend(true, "inline-crypto p0");
	stop();
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	spec = world_spec("2001:db8::1", "2001:db8::2", OUT_SPI);
	world_udp(&spec, 4500, 4500);
	world_sa(&world, &spec);
	assert_int_equal(stats().sessions, 0);
	stop();
}

/* --- routes --- */

/* A packet goes by the session of the port that it leaves by, at once, or by the CPU. */
static void
offload_follows_the_route(void **state)
{
	static const char *const presets[] = { "inline_crypto", "inline_protocol" };

	(void)state;
	for (unsigned int p = 0; p < 2; p++) {
		char name[2][32];

		start();
		for (unsigned int c = 0; c < 2; c++) {
			nic_caps_preset(cards[c].port, presets[p]);
			snprintf(name[c], sizeof(name[c]), "%s p%u",
				p == 0 ? "inline-crypto" : "inline-protocol", c);
		}
		tunnel();
		assert_backend(false, name[0]);
		for (unsigned int k = 0; k < 6; k++) {
			unsigned int c = k % 2;

			OK(send_one());
			OK(send_one());
			assert_int_equal(COUNT(c, tx_protected), 2 * (k / 2 + 1));
			OK(receive_by(c));
			/* the route changes: the next packet is the CPU's */
			world.ifindex = CARD_IFINDEX + !c;
			ipsec_cache_invalidate(world.ic);
			OK(send_one());
			OK(send_one());
			assert_int_equal(COUNT(!c, tx_protected), 2 * ((k + 1) / 2));
			/* what comes in comes by the other port, too, and past the NIC's window */
			if (p == 0)
				OK(receive_by(!c));
			else
				FAILS(receive_by(!c), "esp_device");
			pass(1100);
			assert_backend(false, name[!c]);
			assert_backend(true, name[!c]);
		}
		assert_int_equal(COUNT(0, tx_lost) + COUNT(1, tx_lost), 0);
		stop();
	}
}

/* SAs that come before the address that they end at are taken for outbound ones until then. */
static void
offload_an_address_comes_after_its_sa(void **state)
{
	struct ipsec_cache_sa_spec spec = world_spec(THERE, LATER, IN_SPI);
	struct ipsec_cache_sa_id id = id_of(true);
	const struct ipsec_session *session;
	const struct ipsec_cache_sa *sa;

	(void)state;
	start();
	world_sa(&world, &spec);
	id.daddr = spec.info.id.daddr;
	sa = ipsec_cache_sa_find(world.ic, &id);
	session = atomic_load(&sa->rt->session);
	assert_false(session->in);
	world_local(&world, LATER);
	pass(1100);
	session = atomic_load(&sa->rt->session);
	assert_non_null(session);
	assert_true(session->in);
	assert_int_equal(stats().sessions, 1);
	assert_int_equal(CARD_STAT(&cards[0], flows), 1);
	stop();
}

/* A frame that a NIC was to protect is sent by another port. */
static void
offload_redirected_is_completed_or_dropped(void **state)
{
	(void)state;
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	tunnel();
	OK(send_by(0));
	OK(send_by(1)); /* the CPU completes it */
	assert_int_equal(stats().completed, 1);
	assert_int_equal(COUNT(1, tx_protected), 0);
	OK(send_by(0));
	stop();
	start();
	tunnel();
	assert_backend(false, "inline-protocol p0");
	OK(send_by(0));
	FAILS(send_by(1), "lost"); /* nobody else has its number */
	OK(send_by(0));
	stop();
}

/*
 * A frame of an SA that has gone meanwhile, and another has its SPI: its number is one that the new
 * one has not given out yet, and will, so it may not be used with the new one's key.
 */
static void
offload_redirected_of_an_sa_that_was_replaced(void **state)
{
	struct ipsec_cache_sa_id id = id_of(false);
	struct ipsec_cache_sa_spec spec = sa_spec(false);
	const char *error, *why = "";
	struct rte_mbuf *m;

	(void)state;
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	tunnel();
	OK(send_by(0));
	m = seal(&error);
	assert_non_null(m);
	assert_true((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) != 0);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), 0);
	assert_false(ipsec_cache_complete(ipsec_cache_worker(world.ic, 0), m));
	rte_pktmbuf_free(m);
	stop();
}

/* With ESN the high half of a number is nowhere in the frame. */
static void
offload_redirected_with_esn(void **state)
{
	struct ipsec_cache_policy_spec policy = world_policy(XFRM_POLICY_OUT, 1, HERE, THERE, 0);
	struct ipsec_cache_sa_spec spec = sa_spec(false);

	(void)state;
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	world_esn(&spec);
	spec.has_replay = true;
	spec.oseq = spec.seq = (UINT64_C(5) << 32) - 3;
	sa_add(&spec);
	world_add_policy(&world, &policy);
	for (unsigned int k = 0; k < 6; k++)
		OK(send_by(k % 2));
	stop();
}

/* While its neighbour is not known a packet may wait for long: nothing in it names a session. */
static void
offload_waits_for_no_neighbour(void **state)
{
	(void)state;
	start();
	world.waits = true;
	tunnel();
	OK(send_one());
	OK(send_one());
	assert_int_equal(COUNT(0, tx_protected), 0);
	world.waits = false;
	ipsec_cache_invalidate(world.ic);
	/* numbers were given out since: this session cannot go on with them, the next one can */
	OK(send_one());
	assert_int_equal(COUNT(0, tx_protected), 0);
	pass(1100);
	OK(send_one());
	OK(send_one());
	assert_int_equal(COUNT(0, tx_protected), 2);
	stop();
}

/* --- the end of sessions --- */

/* E4: not before a grace period, and not before frames have left that name it. */
static void
offload_E4_a_session_outlives_its_packets(void **state)
{
	struct ipsec_cache_sa_id id = id_of(false);
	const char *error;
	struct rte_mbuf *m;

	(void)state;
	start_with(IPSEC_CACHE_OFFLOAD_AUTO, true);
	tunnel();
	rte_rcu_qsbr_thread_online(world.qsbr, 0);
	m = seal(&error);
	assert_non_null(m);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
	pass(500); /* the burst goes on */
	assert_int_equal(COUNT(0, destroyed), 0);
	rte_rcu_qsbr_quiescent(world.qsbr, 0);
	pass(500); /* its frame is in a band */
	assert_int_equal(COUNT(0, destroyed), 0);
	world.rounds++;
	pass(500);
	assert_int_equal(COUNT(0, destroyed), 0);
	assert_int_equal(stats().sessions_dying, 1);
	assert_true(peer_takes(leave_by(0, m)));
	world.rounds++;
	pass(500);
	assert_int_equal(COUNT(0, destroyed), 1);
	assert_int_equal(stats().sessions_dying, 0);
	rte_rcu_qsbr_thread_offline(world.qsbr, 0);
	stop();
}

/* An SA with the SPI of one that has just gone: what the old session opens is not its. */
static void
offload_a_dying_session_opens_for_nobody(void **state)
{
	struct ipsec_cache_sa_id id = id_of(true);
	struct ipsec_cache_sa_spec spec = sa_spec(true);
	struct rte_mbuf *m;

	(void)state;
	for (unsigned int p = 0; p < 2; p++) {
		start();
		nic_caps_preset(cards[0].port, p == 0 ? "inline_crypto" : "inline_protocol");
		tunnel();
		OK(receive_by(0));
		m = peer_frame();
		assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
		spec.aead.key[0] ^= 1;
		world_sa(&world, &spec);
		assert_backend(true, "cpu-gcm");
		assert_why_not(true, "has not ended yet");
		/* the old key's packet, which the NIC still opens */
		FAILS(receive_frame(0, m), "esp_device");
		pass(200);
		ipsec_cache_sa_del(world.ic, &id);
		spec.aead.key[0] ^= 1;
		world_sa(&world, &spec);
		assert_backend(true, p == 0 ? "inline-crypto p0" : "inline-protocol p0");
		OK(receive_by(0));
		stop();
	}
}

/* Each packet is its own session's, whatever the one before it was. */
static void
offload_a_burst_of_two_sessions(void **state)
{
	enum {
		N = 16
	};
	struct ipsec_cache_sa_spec other = world_spec(THERE, HERE, IN_SPI + 1);
	struct ipsec_cache_rt *sealing[2], *opening[2];
	struct rte_mbuf *pkts[N];
	struct packet_view views[N];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = N };
	struct ipsec_cache_sa_id id = id_of(true);
	struct ipsec_cache_result r;
	uint8_t daddr[16] = { 0 };

	(void)state;
	memcpy(daddr, &id.daddr, 4);
	for (unsigned int p = 0; p < 2; p++) {
		start();
		nic_caps_preset(cards[0].port, p == 0 ? "inline_crypto" : "inline_protocol");
		tunnel();
		sa_add(&other);
		for (unsigned int k = 0; k < 2; k++) {
			__be32 spi = htonl(IN_SPI + k);

			sealing[k] = ipsec_sad_lookup(peer.ic, spi, AF_INET, daddr, 0);
			opening[k] = ipsec_sad_lookup(world.ic, spi, AF_INET, daddr, 0);
		}
		for (unsigned int i = 0; i < N; i++) {
			pkts[i] = packet();
			world_seal(&peer, 0, &pkts[i], sealing[i / 3 % 2], &r);
			pkts[i] = card_receive(&cards[0], pkts[i]);
			assert_non_null(pkts[i]);
			memset(packet_meta(pkts[i], world.meta_offset), 0,
				sizeof(struct packet_meta));
		}
		v.parsed = false;
		ipsec_cache_begin(ipsec_cache_worker(world.ic, 0));
		ipsec_cache_open(ipsec_cache_worker(world.ic, 0), &v, packet_vector_mask(&v), &r);
		assert_int_equal(r.done, packet_vector_mask(&v));
		for (unsigned int i = 0; i < N; i++) {
			assert_ptr_equal(r.rt[i], opening[i / 3 % 2]);
			assert_true(is_packet(pkts[i]));
		}
		assert_int_equal(COUNT(0, rx_decrypted), N);
		stop();
	}
}

static void
offload_a_device_that_goes_is_let_go(void **state)
{
	(void)state;
	for (unsigned int p = 0; p < 2; p++) {
		start();
		nic_caps_preset(cards[0].port, p == 0 ? "inline_crypto" : "inline_protocol");
		tunnel();
		for (unsigned int k = 0; k < 5; k++) {
			OK(send_one());
			OK(receive_by(0));
		}
		ipsec_cache_dev_gone(world.ic, 2);
		assert_backend(false, "cpu-gcm");
		OK(send_one());
		assert_int_equal(COUNT(0, tx_protected), 5);
		rcu_barrier(world.rcu);
		assert_int_equal(CARD_STAT(&cards[0], flows), 0);
		rte_eth_dev_stop(cards[0].port);
		ipsec_cache_dev_stopped(world.ic, 2);
		assert_int_equal(CARD_STAT(&cards[0], sessions), 0);
		assert_int_equal(stats().sessions, 0);
		pass(1100);
		assert_backend(false, "cpu-gcm");
		/* it comes back */
		card_start(&cards[0], pool);
		assert_int_equal(card_add(&cards[0], &world, 2, names[0]), 0);
		assert_int_equal(card_add(&cards[0], &world, 2, names[0]), -EEXIST);
		OK(send_one());
		OK(receive_by(0)); /* numbers go on where the NIC's window was */
		pass(1100);
		assert_backend(false, p == 0 ? "inline-crypto p0" : "inline-protocol p0");
		OK(send_one());
		OK(receive_by(0));
		stop();
	}
}

/* What was received by a NIC's window does not come again when the CPU has it. */
static void
offload_D24_no_replay_where_the_cpu_goes_on(void **state)
{
	struct rte_mbuf *old[4], *m;

	(void)state;
	start();
	tunnel();
	assert_backend(true, "inline-protocol p0");
	for (unsigned int k = 0; k < 4; k++) {
		m = peer_frame();
		old[k] = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
		OK(receive_frame(0, m));
	}
	ipsec_cache_dev_gone(world.ic, 2);
	rcu_barrier(world.rcu);
	pass(100);
	for (unsigned int k = 0; k < 4; k++)
		FAILS(receive_frame(0, old[k]), "esp_replay");
	OK(receive_by(0));
	stop();
}

/* --- devices that fail --- */

static void
offload_a_device_that_is_full(void **state)
{
	struct ipsec_cache_sa_spec spec = sa_spec(false);
	const char *why;

	(void)state;
	start();
	nic_fault(cards[0].port, NIC_FAULT_session_max, 0);
	tunnel();
	assert_backend(false, "cpu-gcm");
	assert_why_not(false, "refused a session");
	OK(send_one());
	OK(receive_by(0));
	spec.info.id.spi = htonl(0x3000);
	spec.offload_ifindex = 2;
	assert_int_equal(ipsec_cache_sa_add(world.ic, &spec, false, &why), -EOPNOTSUPP);
	/* room: it is asked again, but not in a hurry */
	nic_fault(cards[0].port, NIC_FAULT_session_max, 65535);
	pass(2000);
	assert_backend(false, "cpu-gcm");
	pass(10000);
	assert_backend(false, "inline-protocol p0");
	OK(send_one());
	stop();
}

static void
offload_a_driver_without_rules(void **state)
{
	(void)state;
	start();
	nic_fault(cards[0].port, NIC_FAULT_flow_create, NIC_ALWAYS);
	tunnel();
	assert_backend(false, "inline-protocol p0");
	assert_backend(true, "cpu-gcm");
	assert_why_not(true, "takes no rule");
	assert_int_equal(CARD_STAT(&cards[0], sessions), 1);
	OK(receive_by(0));
	stop();
}

static void
offload_metadata_that_is_not_taken(void **state)
{
	(void)state;
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	tunnel();
	nic_fault(cards[0].port, NIC_FAULT_set_mdata, 1);
	OK(send_one()); /* by the CPU */
	assert_int_equal(stats().completed, 1);
	OK(send_one());
	assert_int_equal(COUNT(0, tx_protected), 1);
	stop();
	start();
	tunnel();
	nic_fault(cards[0].port, NIC_FAULT_set_mdata, 1);
	FAILS(send_one(), "esp_device");
	for (unsigned int k = 0; k < 3; k++)
		OK(send_one()); /* its number was not used up: the NIC goes on */
	assert_int_equal(COUNT(0, tx_protected), 3);
	stop();
}

static void
offload_sessions_that_will_not_end(void **state)
{
	struct ipsec_cache_sa_id id = id_of(false);

	(void)state;
	start();
	tunnel();
	nic_fault(cards[0].port, NIC_FAULT_session_destroy, 5);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
	pass(300);
	assert_int_equal(stats().sessions_dying, 1);
	pass(600);
	assert_int_equal(stats().sessions_dying, 0); /* asked until it did */
	assert_int_equal(stats().sessions_stuck, 0);
	nic_fault(cards[0].port, NIC_FAULT_session_destroy, NIC_ALWAYS);
	id = id_of(true);
	assert_int_equal(ipsec_cache_sa_del(world.ic, &id), 0);
	pass(12000);
	assert_int_equal(stats().sessions_stuck, 1);
	faults_off();
	pass(200);
	assert_int_equal(stats().sessions_stuck, 0);
	stop();
}

/* A NIC that takes everything and sends nothing, or has forgotten its sessions. */
static void
offload_a_nic_that_sends_nothing(void **state)
{
	(void)state;
	for (unsigned int b = 1; b < RTE_DIM(back_ends); b++) {
		start();
		nic_caps_preset(cards[0].port, back_ends[b]);
		tunnel();
		for (unsigned int k = 0; k < 100; k++)
			OK(send_one());
		pass(1100);
		nic_fault(cards[0].port, NIC_FAULT_tx_drop, NIC_ALWAYS);
		for (unsigned int k = 0; k < 100; k++)
			FAILS(send_one(), "lost");
		pass(1100);
		assert_backend(false, "cpu-gcm");
		assert_why_not(false, "p0: it sends nothing");
		faults_off();
		OK(send_one());
		pass(12000);
		OK(send_one());
		assert_why_not(false, "");
		nic_event(cards[0].port, "forget");
		FAILS(send_one(), "lost");
		pass(1100);
		assert_why_not(false, "p0: it does not know its session");
		OK(send_one());
		stop();
	}
}

/* Steering is lost: packets come as they are on the wire. */
static void
offload_packets_past_the_nic(void **state)
{
	(void)state;
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	tunnel();
	nic_fault(cards[0].port, NIC_FAULT_rx_lost, 3);
	for (unsigned int k = 0; k < 5; k++)
		OK(receive_by(0));
	assert_int_equal(COUNT(0, rx_decrypted), 2);
	stop();
	start();
	tunnel();
	OK(receive_by(0));
	nic_fault(cards[0].port, NIC_FAULT_rx_lost, NIC_ALWAYS);
	FAILS(receive_by(0), "esp_device"); /* a replay, for all one can know */
	pass(1100); /* so its NIC is left */
	assert_backend(true, "cpu-gcm");
	assert_why_not(true, "unopened");
	OK(receive_by(0));
	faults_off();
	pass(12000);
	assert_backend(true, "inline-protocol p0");
	OK(receive_by(0));
	stop();
}

static void
offload_wrong_check_values(void **state)
{
	static const struct {
		const char *preset, *error;
	} tries[] = { { "inline_crypto", "esp_icv" }, { "inline_protocol", "esp_device" } };

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(tries); i++) {
		struct rte_mbuf *m;

		start();
		nic_caps_preset(cards[0].port, tries[i].preset);
		tunnel();
		nic_fault(cards[0].port, NIC_FAULT_rx_icv, 1);
		FAILS(receive_by(0), tries[i].error);
		m = peer_frame();
		rte_pktmbuf_mtod(m, uint8_t *)[60] ^= 1;
		FAILS(receive_frame(0, m), tries[i].error);
		OK(receive_by(0));
		/* A NIC that calls what is wrong good: what comes of it is no packet, as a rule;
		 * nothing breaks. */
		nic_fault(cards[0].port, NIC_FAULT_rx_good, NIC_ALWAYS);
		for (unsigned int at = 42; at < 100; at++) {
			m = peer_frame();
			rte_pktmbuf_mtod(m, uint8_t *)[at] ^= 0xff;
			(void)receive_frame(0, m);
		}
		stop();
	}
}

/* It says that another session opened a packet, or one that never was. */
static void
offload_sessions_mixed_up(void **state)
{
	(void)state;
	start();
	tunnel();
	for (unsigned int k = 0; k < 50; k++) {
		nic_fault(cards[0].port, NIC_FAULT_rx_userdata, 1);
		FAILS(receive_by(0), "esp_device");
		OK(receive_by(0));
	}
	stop();
}

/* What a driver that writes no tag leaves in an mbuf may be another port's. */
static void
offload_tags_of_another_port(void **state)
{
	struct ipsec_cache_sa_spec spec = world_spec(THERE, HERE, 0x3000);
	struct ipsec_cache_sa_id id;
	struct ipsec_cache_result r;
	struct ipsec_session *other;
	struct rte_mbuf *m;

	(void)state;
	start();
	nic_caps_preset(cards[0].port, "inline_crypto");
	tunnel();
	world.ifindex = CARD_IFINDEX + 1;
	world_sa(&world, &spec);
	world.ifindex = CARD_IFINDEX;
	sad_id(&spec, &id);
	other = atomic_load(&ipsec_cache_sa_find(world.ic, &id)->rt->session);
	assert_int_equal(other->kind, IPSEC_SESSION_INLINE_PROTOCOL);
	m = card_receive(&cards[0], peer_frame());
	*rte_security_dynfield(m) = other->id;
	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	packet_meta(m, world.meta_offset)->iif = CARD_IFINDEX;
	world_open(&world, 0, &m, &r);
	assert_int_equal(r.done, 1);
	assert_true(is_packet(m));
	stop();
}

/* Marked frames that are for nobody, of SAs that no NIC has, and of none at all. */
static void
offload_marks_without_a_session(void **state)
{
	static const uint64_t flags[] = { RTE_MBUF_F_RX_SEC_OFFLOAD,
		RTE_MBUF_F_RX_SEC_OFFLOAD | RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED };
	struct ipsec_cache_result r;
	struct rte_mbuf *m;

	(void)state;
	start();
	nic_caps_preset(cards[0].port, "none");
	tunnel();
	for (unsigned int i = 0; i < RTE_DIM(flags); i++) {
		m = peer_frame();
		m->ol_flags |= flags[i];
		world_open(&world, 0, &m, &r);
		assert_int_equal(r.drop, 1);
		assert_int_equal(r.error[0], IPSEC_CACHE_ESP_DEVICE);
		rte_pktmbuf_free(m);
		m = packet(); /* in clear, and not ours */
		m->ol_flags |= flags[i];
		world_open(&world, 0, &m, &r);
		assert_int_equal(r.drop, 1);
		assert_int_equal(r.error[0], IPSEC_CACHE_ESP_DEVICE);
		rte_pktmbuf_free(m);
	}
	stop();
}

/* --- bursts, over each back end --- */

/* Opens what came in by card 0. */
static void
open_all(struct packet_vector *v, struct ipsec_cache_result *r)
{
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);

	for (unsigned int i = 0; i < v->n; i++) {
		v->pkts[i] = card_receive(&cards[0], v->pkts[i]);
		assert_non_null(v->pkts[i]);
		memset(packet_meta(v->pkts[i], world.meta_offset), 0, sizeof(struct packet_meta));
	}
	v->parsed = false;
	ipsec_cache_begin(w);
	ipsec_cache_open(w, v, packet_vector_mask(v), r);
}

static void
offload_D7_one_number_twice_in_a_burst(void **state)
{
	struct packet_view views[3];
	struct rte_mbuf *pkts[3];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = 3 };
	struct ipsec_cache_result r;

	(void)state;
	for (unsigned int b = 0; b < RTE_DIM(back_ends); b++) {
		start();
		nic_caps_preset(cards[0].port, back_ends[b]);
		tunnel();
		pkts[0] = peer_frame();
		pkts[1] = rte_pktmbuf_copy(pkts[0], pool, 0, UINT32_MAX);
		pkts[2] = rte_pktmbuf_copy(pkts[0], pool, 0, UINT32_MAX);
		*rte_pktmbuf_mtod_offset(pkts[0], uint8_t *, 60) ^= 1;
		open_all(&v, &r);
		assert_int_equal(r.done, 2);
		assert_int_equal(r.drop, 5);
		rte_pktmbuf_free_bulk(pkts, 3);
		stop();
	}
}

static void
offload_D23_one_bad_packet_harms_no_other(void **state)
{
	struct packet_view views[PACKET_VECTOR_MAX];
	struct rte_mbuf *pkts[PACKET_VECTOR_MAX];
	struct packet_vector v = { .pkts = pkts, .views = views, .n = PACKET_VECTOR_MAX };
	uint64_t good, bad, other;
	struct ipsec_cache_result r;
	unsigned int i;

	(void)state;
	for (unsigned int b = 0; b < RTE_DIM(back_ends); b++) {
		start();
		nic_caps_preset(cards[0].port, back_ends[b]);
		tunnel();
		good = bad = other = 0;
		for (i = 0; i < v.n; i++) {
			uint64_t bit = UINT64_C(1) << i;

			pkts[i] = peer_frame();
			switch (i % 9) {
			case 1: /* check value */
				*rte_pktmbuf_mtod_offset(
					pkts[i], uint8_t *, pkts[i]->pkt_len - 1) ^= 4;
				bad |= bit;
				break;
			case 3: /* SPI */
				*rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, 34) ^= 4;
				bad |= bit;
				break;
			case 5: /* no ESP */
				rte_pktmbuf_free(pkts[i]);
				pkts[i] = packet();
				other |= bit;
				break;
			case 7: /* cut */
				rte_pktmbuf_trim(pkts[i], 20);
				bad |= bit;
				break;
			default:
				good |= bit;
			}
		}
		open_all(&v, &r);
		assert_int_equal(r.done, good);
		assert_int_equal(r.drop, bad);
		assert_int_equal(r.not_ours, other);
		for (i = 0; i < v.n; i++) {
			if ((good >> i & 1) != 0)
				assert_true(is_packet(pkts[i]));
			else
				rte_pktmbuf_free(pkts[i]);
		}
		stop();
	}
}

/* Whatever does the work, numbers are one lcore's. */
static void
offload_D12_an_sa_has_one_home(void **state)
{
	(void)state;
	for (unsigned int b = 0; b < RTE_DIM(back_ends); b++) {
		struct ipsec_cache_result r;
		struct rte_mbuf *m;

		start();
		nic_caps_preset(cards[0].port, back_ends[b]);
		tunnel();
		OK(send_one());
		OK(receive_by(0));
		m = card_receive(&cards[0], peer_frame());
		world_open(&world, 1, &m, &r);
		assert_int_equal(r.hand_over, 1);
		assert_int_equal(r.home[0], 0);
		/* untouched, so it still is what the NIC said */
		world_open(&world, 0, &m, &r);
		assert_int_equal(r.done, 1);
		assert_true(is_packet(m));
		stop();
	}
}

/* --- events --- */

static unsigned int heard[32];

static void
hear(void *arg, enum ipsec_cache_event event, const void *object)
{
	(void)arg;
	(void)object;
	heard[event]++;
}

static void
offload_events(void **state)
{
	struct ipsec_cache_policy_spec policy = world_policy(XFRM_POLICY_OUT, 1, HERE, THERE, 0);
	struct ipsec_cache_sa_spec spec = sa_spec(false);
	struct ipsec_session *s;
	struct ipsec_cache_sa_id id = id_of(false);
	uint64_t metadata;

	(void)state;
	start();
	memset(heard, 0, sizeof(heard));
	ipsec_cache_listen(world.ic, hear, NULL);
	spec.info.lft.hard_byte_limit = 1000000;
	sa_add(&spec);
	spec = sa_spec(true);
	sa_add(&spec);
	world_add_policy(&world, &policy);
	s = atomic_load(&ipsec_cache_sa_find(world.ic, &id)->rt->session);
	metadata = s->id;
	/* nothing that is nobody's, whatever it is */
	for (unsigned int k = 0; k < 1000; k++)
		ipsec_cache_dev_event(world.ic, (unsigned int)rte_rand(), rte_rand());
	ipsec_cache_dev_event(
		world.ic, RTE_ETH_EVENT_IPSEC_SA_PKT_HARD_EXPIRY, metadata ^ UINT64_C(1) << 32);
	pass(200);
	assert_int_equal(ipsec_cache_sa_count(world.ic), 2);
	assert_int_equal(heard[IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT], 0);
	/* a storm is told once */
	for (unsigned int k = 0; k < 100000; k++)
		ipsec_cache_dev_event(world.ic, RTE_ETH_EVENT_IPSEC_SA_PKT_EXPIRY, metadata);
	pass(200);
	assert_int_equal(heard[IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT], 1);
	OK(send_one());
	ipsec_cache_dev_event(world.ic, RTE_ETH_EVENT_IPSEC_SA_BYTE_HARD_EXPIRY, metadata);
	pass(200);
	assert_int_equal(heard[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 1);
	assert_null(ipsec_cache_sa_find(world.ic, &id));
	/* of a limit that the SA does not have: it goes on, elsewhere */
	id = id_of(true);
	s = atomic_load(&ipsec_cache_sa_find(world.ic, &id)->rt->session);
	ipsec_cache_dev_event(world.ic, RTE_ETH_EVENT_IPSEC_SA_BYTE_HARD_EXPIRY, s->id);
	pass(200);
	assert_int_equal(heard[IPSEC_CACHE_EVENT_SA_EXPIRE_HARD], 1);
	assert_backend(true, "cpu-gcm");
	assert_why_not(true, "come to its end");
	OK(receive_by(0));
	stop();
}

/* --- everything at once --- */

static void
some_fault(void)
{
	static const enum nic_fault faults[] = {
		NIC_FAULT_session_create,
		NIC_FAULT_session_destroy,
		NIC_FAULT_set_mdata,
		NIC_FAULT_flow_create,
		NIC_FAULT_flow_destroy,
		NIC_FAULT_tx_drop,
		NIC_FAULT_tx_forget,
		NIC_FAULT_rx_icv,
		NIC_FAULT_rx_lost,
		NIC_FAULT_rx_good,
		NIC_FAULT_rx_userdata,
		NIC_FAULT_session_max,
	};
	enum nic_fault fault = faults[rte_rand_max(RTE_DIM(faults))];

	nic_fault(cards[rte_rand_max(2)].port, fault, (uint32_t)rte_rand_max(6));
}

static void
some_change(void)
{
	static const char *const presets[] = {
		"all",
		"inline_crypto",
		"inline_protocol",
		"all",
		"inline_crypto",
		"inline_protocol",
		"none",
		"null",
		"endless",
	};
	unsigned int c = (unsigned int)rte_rand_max(2);
	bool in = rte_rand_max(2) != 0;
	struct ipsec_cache_sa_id id = id_of(in);
	struct ipsec_cache_sa_spec spec = sa_spec(in);
	const char *why;

	switch (rte_rand_max(12)) {
	case 0:
		world.ifindex = CARD_IFINDEX + c;
		ipsec_cache_invalidate(world.ic);
		break;
	case 1:
		nic_caps_preset(cards[c].port, presets[rte_rand_max(RTE_DIM(presets))]);
		break;
	case 2:
		ipsec_cache_dev_gone(world.ic, CARD_IFINDEX + c);
		break;
	case 3:
	case 7:
		card_add(&cards[0], &world, CARD_IFINDEX, names[0]);
		card_add(&cards[1], &world, CARD_IFINDEX + 1, names[1]);
		break;
	case 4:
		nic_event(cards[c].port, "forget");
		break;
	case 5:
		ipsec_cache_sa_del(world.ic, &id);
		/* both ends begin anew */
		ipsec_cache_sa_del(peer.ic, &id);
		if (ipsec_cache_sa_add(world.ic, &spec, false, &why) == 0)
			world_sa(&peer, &spec);
		break;
	case 6:
		faults_off();
		break;
	default:
		pass(rte_rand_max(3) == 0 ? 12000 : 1100);
		break;
	}
}

/* The text of a packet is never on a wire, whatever NICs do; nor does anything break or get lost.
 */
static void
offload_D25_no_fault_lets_anything_out_in_clear(void **state)
{
	uint64_t seed = getenv("MILLRACE_SEED") != NULL ? strtoull(getenv("MILLRACE_SEED"), NULL, 0)
							: (uint64_t)time(NULL);
	unsigned int steps = getenv("MILLRACE_STEPS") != NULL
		? (unsigned int)strtoul(getenv("MILLRACE_STEPS"), NULL, 0)
		: 60000;
	uint64_t sent = 0;
	const char *became;

	(void)state;
	printf("MILLRACE_SEED=%lu\n", seed);
	rte_srand(seed);
	start_with(IPSEC_CACHE_OFFLOAD_AUTO, false);
	tunnel();
	for (unsigned int k = 0; k < steps; k++) {
		switch (rte_rand_max(60)) {
		case 0:
			some_fault();
			break;
		case 1:
			some_change();
			break;
		case 3:
		case 4:
		case 2:
			became = send_by((unsigned int)rte_rand_max(2));
			sent += strcmp(became, "ok") == 0;
			assert_string_not_equal(
				became, "refused"); /* no number twice, no wrong byte */
			break;
		default:
			became =
				k % 2 == 0 ? send_one() : receive_by((unsigned int)rte_rand_max(2));
			sent += k % 2 == 0 && strcmp(became, "ok") == 0;
			assert_string_not_equal(became, "refused");
		}
	}
	printf("%lu packets arrived, %lu by NICs, %lu completed by the CPU, %lu fallbacks\n", sent,
		COUNT(0, tx_protected) + COUNT(1, tx_protected), stats().completed,
		stats().fallbacks);
	assert_true(sent > steps / 8);
	assert_true(COUNT(0, tx_protected) > steps / 100 && COUNT(1, tx_protected) > steps / 100);
	assert_true(stats().completed > 0 && stats().fallbacks > 0);
	stop();
}

/* The tripwire itself: a text that leaves in clear is seen. */
static void
offload_the_tripwire_sees(void **state)
{
	uint64_t seen = CARD_STAT(&cards[0], plaintext);

	(void)state;
	start();
	rte_pktmbuf_free(card_send(&cards[0], packet()));
	assert_int_equal(CARD_STAT(&cards[0], plaintext), seen + 1);
	nic_stats(cards[0].port, &before[0]);
	stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offload_the_tripwire_sees),
		cmocka_unit_test(offload_auto_takes_the_best),
		cmocka_unit_test(offload_asked_for_is_had_or_refused),
		cmocka_unit_test(offload_what_no_list_says),
		cmocka_unit_test(offload_follows_the_route),
		cmocka_unit_test(offload_an_address_comes_after_its_sa),
		cmocka_unit_test(offload_redirected_is_completed_or_dropped),
		cmocka_unit_test(offload_redirected_of_an_sa_that_was_replaced),
		cmocka_unit_test(offload_redirected_with_esn),
		cmocka_unit_test(offload_waits_for_no_neighbour),
		cmocka_unit_test(offload_E4_a_session_outlives_its_packets),
		cmocka_unit_test(offload_a_dying_session_opens_for_nobody),
		cmocka_unit_test(offload_a_burst_of_two_sessions),
		cmocka_unit_test(offload_a_device_that_goes_is_let_go),
		cmocka_unit_test(offload_D24_no_replay_where_the_cpu_goes_on),
		cmocka_unit_test(offload_a_device_that_is_full),
		cmocka_unit_test(offload_a_driver_without_rules),
		cmocka_unit_test(offload_metadata_that_is_not_taken),
		cmocka_unit_test(offload_sessions_that_will_not_end),
		cmocka_unit_test(offload_a_nic_that_sends_nothing),
		cmocka_unit_test(offload_packets_past_the_nic),
		cmocka_unit_test(offload_wrong_check_values),
		cmocka_unit_test(offload_sessions_mixed_up),
		cmocka_unit_test(offload_tags_of_another_port),
		cmocka_unit_test(offload_marks_without_a_session),
		cmocka_unit_test(offload_D7_one_number_twice_in_a_burst),
		cmocka_unit_test(offload_D23_one_bad_packet_harms_no_other),
		cmocka_unit_test(offload_D12_an_sa_has_one_home),
		cmocka_unit_test(offload_events),
		cmocka_unit_test(offload_D25_no_fault_lets_anything_out_in_clear),
	};
	struct rte_mbuf *m;

	test_eal_init("ipsec-offload", "0");
	pool = test_pool("offload", 1023);
	card_open(&cards[0], "card0", "all", NIC_NEED_MDATA | NIC_DYNFIELD, pool);
	card_open(&cards[1], "card1", "all", NIC_NEED_MDATA | NIC_DYNFIELD, pool);
	m = world_frame(pool, AF_INET, PAYLOAD, 7);
	nic_marker(rte_pktmbuf_mtod_offset(m, uint8_t *, 60), 16);
	rte_pktmbuf_free(m);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
