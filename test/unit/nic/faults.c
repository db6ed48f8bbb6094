/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* A NIC from one to the other, and everything that it can be told to do wrong. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

/* Since 23.11 a context is for drivers to look into. */
#include <rte_security_driver.h>

#include "world.h"

#define PLAIN_LEN 114u
#define SPI 0x4000u

static uint8_t key[36] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
static uint32_t spi = SPI;

enum action {
	CRYPTO = RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO,
	PROTOCOL = RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL,
};

/* Ethernet, IPv4, UDP, text. */
static struct rte_mbuf *
plain(uint32_t cut)
{
	uint8_t f[PLAIN_LEN] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 100, 0, 1, 0,
		0, 64, 17, 0, 0, 198, 51, 100, 1, 203, 0, 113, 1, 1, 0, 2, 0, 0, 80 };

	memcpy(f + 42, "to be kept secret", 17);
	return test_frame(world_pool, f, sizeof(f), cut);
}

/* The same inside a finished frame of ESP that is in clear, with number 1. */
static struct rte_mbuf *
clear(uint32_t spi_, uint32_t seq)
{
	uint8_t f[14 + 20 + 16 + 100 + 4 + 16] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45,
		0, 0, 156, 0, 1, 0, 0, 64, 50, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2 };
	struct rte_mbuf *m = plain(0);

	f[36] = (uint8_t)(spi_ >> 8);
	f[37] = (uint8_t)spi_;
	f[41] = (uint8_t)seq;
	memcpy(f + 50, rte_pktmbuf_mtod_offset(m, uint8_t *, 14), 100);
	memcpy(f + 150, "\1\2\2\4", 4);
	rte_pktmbuf_free(m);
	return test_frame(world_pool, f, sizeof(f), 0);
}

/* Session `out` of port 0 and `in` of port 1, with an SPI of their own. */
struct pair {
	struct world_conf out_conf, in_conf;
	void *out, *in;
};

static void
pair_init(struct pair *p, enum action action)
{
	enum rte_security_session_action_type type = (enum rte_security_session_action_type)action;

	spi++;
	world_conf_init(&p->out_conf, type, true, spi, key, 16, 16);
	world_conf_init(&p->in_conf, type, false, spi, key, 16, 16);
	world_conf_ends(&p->out_conf, "192.0.2.1", "192.0.2.2");
	world_conf_ends(&p->in_conf, "192.0.2.1", "192.0.2.2");
	p->in_conf.conf.userdata = (void *)(uintptr_t)(0x1000u + spi);
}

static void
pair_open(struct pair *p)
{
	assert_non_null(p->out = world_session(0, &p->out_conf));
	assert_non_null(p->in = world_session(1, &p->in_conf));
}

static void
pair_close(struct pair *p)
{
	assert_int_equal(rte_security_session_destroy(world_ctx(0), p->out), 0);
	assert_int_equal(rte_security_session_destroy(world_ctx(1), p->in), 0);
}

/* On port 0; what is on the wire. */
static struct rte_mbuf *
sealed(struct pair *p, struct rte_mbuf *m)
{
	assert_int_equal(world_mark(0, p->out, m, NULL), 0);
	return world_send(0, m);
}

/* On port 1: 'g' good, 'f' failed, 'p' plain, 0 nothing; the frame is freed. */
static char
opened(struct rte_mbuf *wire)
{
	struct rte_mbuf *m;
	uint64_t flags;

	assert_non_null(wire);
	if ((m = world_receive(1, wire)) == NULL)
		return 0;
	flags = m->ol_flags;
	rte_pktmbuf_free(m);
	return (flags & RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED) != 0 ? 'f'
		: (flags & RTE_MBUF_F_RX_SEC_OFFLOAD) != 0     ? 'g'
							       : 'p';
}

static int
open_world(void **state)
{
	(void)state;
	if (world_pool == NULL)
		world_open(2, "all", NIC_NO_STEERING);
	return 0;
}

/* Every test leaves the NICs as it found them. */
static int
check_world(void **state)
{
	(void)state;
	assert_true(test_pool_full(world_pool));
	assert_true(nic_pool_full());
	for (unsigned int n = 0; n < WORLD_PORTS; n++) {
		assert_int_equal(WORLD_STAT(n, sessions), 0);
		assert_int_equal(WORLD_STAT(n, flows), 0);
	}
	return 0;
}

static void
one_seals_another_opens(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 64; i++) {
		struct pair p;
		struct rte_mbuf *m, *got, *sent = plain(0);

		pair_init(&p, PROTOCOL);
		if ((i & 1) != 0) {
			world_conf_ends(&p.out_conf, "2001:db8::1", "2001:db8::2");
			world_conf_ends(&p.in_conf, "2001:db8::1", "2001:db8::2");
		}
		p.out_conf.xform->aead.key.length = p.in_conf.xform->aead.key.length =
			(i & 2) != 0 ? 32 : 16;
		p.out_conf.conf.ipsec.options.esn = p.in_conf.conf.ipsec.options.esn = (i >> 2) & 1;
		p.out_conf.conf.ipsec.options.udp_encap = (i >> 3) & 1;
		p.in_conf.conf.ipsec.options.udp_encap = (i >> 3) & 1;
		p.out_conf.conf.ipsec.udp.sport = p.out_conf.conf.ipsec.udp.dport = 4500;
		p.in_conf.conf.ipsec.replay_win_sz = 64;
		p.out_conf.conf.ipsec.esn.value = p.in_conf.conf.ipsec.esn.value =
			(i & 4) != 0 ? UINT32_MAX - 1u : 0;
		pair_open(&p);
		for (unsigned int k = 0; k < 4; k++) {
			m = plain((i & 16) != 0 ? 23 : 0);
			if ((i & 1) != 0) /* the outer header's type */
				memcpy(rte_pktmbuf_mtod_offset(m, void *, 12), "\x86\xdd", 2);
			assert_non_null(m = sealed(&p, m));
			assert_non_null(got = world_receive(1, m));
			assert_int_equal(got->ol_flags, RTE_MBUF_F_RX_SEC_OFFLOAD);
			assert_int_equal(got->pkt_len, PLAIN_LEN);
			assert_int_equal(*rte_security_dynfield(got), 0x1000u + spi);
			assert_memory_equal(rte_pktmbuf_mtod(got, void *),
				rte_pktmbuf_mtod(sent, void *), PLAIN_LEN);
			rte_pktmbuf_free(got);
		}
		rte_pktmbuf_free(sent);
		pair_close(&p);
	}
}

static void
crypto_from_one_to_another(void **state)
{
	struct pair p;
	struct rte_mbuf *want = NULL, *got;
	uint64_t before = WORLD_STAT(1, rx_decrypted);

	(void)state;
	pair_init(&p, CRYPTO);
	pair_open(&p);
	want = clear(spi, 1);
	got = world_receive(1, sealed(&p, clear(spi, 1)));
	assert_non_null(got);
	assert_int_equal(got->ol_flags, RTE_MBUF_F_RX_SEC_OFFLOAD);
	assert_int_equal(got->pkt_len, want->pkt_len);
	assert_memory_equal(
		rte_pktmbuf_mtod(got, void *), rte_pktmbuf_mtod(want, void *), want->pkt_len - 16);
	assert_int_equal(WORLD_STAT(1, rx_decrypted), before + 1);
	rte_pktmbuf_free(got);
	rte_pktmbuf_free(want);
	pair_close(&p);
}

/* A frame that somebody else holds too is not written to. */
static void
what_is_sent_is_only_read(void **state)
{
	struct pair p;
	struct rte_mbuf *m = plain(0), *same = plain(0);

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	rte_mbuf_refcnt_update(m, 1);
	assert_int_equal(opened(sealed(&p, m)), 'g');
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), rte_pktmbuf_mtod(same, void *), PLAIN_LEN);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(same);
	pair_close(&p);
}

static void
sessions_fail_on_demand(void **state)
{
	struct world_port *port = &world_ports[0];
	struct pair p, q;
	void *s;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	pair_init(&q, PROTOCOL);
	nic_fault(port->id, NIC_FAULT_session_create, 2);
	nic_fault(port->id, NIC_FAULT_create_errno, EAGAIN);
	for (unsigned int i = 0; i < 2; i++) {
		assert_null(world_session(0, &q.out_conf));
		assert_int_equal(rte_errno, EAGAIN);
	}
	assert_non_null(s = world_session(0, &q.out_conf));
	nic_fault(port->id, NIC_FAULT_session_max, 2);
	assert_null(world_session(0, &q.out_conf));
	assert_int_equal(rte_errno, ENOSPC);
	nic_fault(port->id, NIC_FAULT_session_destroy, 1);
	assert_int_equal(rte_security_session_destroy(world_ctx(0), s), -EBUSY);
	assert_int_equal(WORLD_STAT(0, sessions), 2);
	assert_int_equal(rte_security_session_destroy(world_ctx(0), s), 0);
	nic_fault(port->id, NIC_FAULT_session_max, UINT16_MAX);
	pair_close(&p);
	assert_int_equal(WORLD_STAT(0, create_failed), 3);
	assert_int_equal(WORLD_STAT(0, destroy_failed), 1);
}

static void
metadata_is_all_that_names_a_session(void **state)
{
	struct pair p, q;
	struct rte_mbuf *m;
	struct nic_stats before, after;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	nic_stats(world_ports[0].id, &before);
	/* marked, but for no session; set_pkt_metadata() that fails */
	m = plain(0);
	m->ol_flags |= RTE_MBUF_F_TX_SEC_OFFLOAD;
	assert_null(world_send(0, m));
	nic_fault(world_ports[0].id, NIC_FAULT_set_mdata, 1);
	m = plain(0);
	assert_int_equal(world_mark(0, p.out, m, NULL), -EIO);
	assert_null(world_send(0, m));
	/* another port's */
	pair_init(&q, PROTOCOL);
	assert_non_null(q.out = world_session(1, &q.out_conf));
	m = plain(0);
	assert_int_equal(world_mark(1, q.out, m, NULL), 0);
	assert_null(world_send(0, m));
	assert_int_equal(rte_security_session_destroy(world_ctx(1), q.out), 0);
	/* one that is gone when its frames come: counted once */
	for (unsigned int i = 0; i < 2; i++) {
		struct rte_mbuf *late[2] = { plain(0), plain(0) };

		assert_non_null(q.out = world_session(0, &q.out_conf));
		world_mark(0, q.out, late[0], NULL);
		world_mark(0, q.out, late[1], NULL);
		assert_int_equal(rte_security_session_destroy(world_ctx(0), q.out), 0);
		assert_null(world_send(0, late[0]));
		assert_null(world_send(0, late[1]));
	}
	/* metadata counts once */
	m = plain(0);
	rte_mbuf_refcnt_update(m, 1);
	assert_int_equal(opened(sealed(&p, m)), 'g');
	assert_null(world_send(0, m));
	nic_stats(world_ports[0].id, &after);
	assert_int_equal(after.tx_no_session - before.tx_no_session, 3);
	assert_int_equal(after.tx_wrong_port - before.tx_wrong_port, 1);
	assert_int_equal(after.tx_gone_session - before.tx_gone_session, 4);
	assert_int_equal(after.destroyed_in_use - before.destroyed_in_use, 2);
	assert_int_equal(after.tx_lost - before.tx_lost, 8);
	assert_int_equal(after.mdata_failed - before.mdata_failed, 1);
	assert_int_equal(after.tx_lens - before.tx_lens, 0);
	pair_close(&p);
}

static void
a_full_ring_leaves_the_frame_alone(void **state)
{
	struct rte_ring *ring = world_ports[0].tx;
	struct nic_session_info info;
	struct rte_mbuf *m, *fill[WORLD_RING];
	unsigned int n = 0;
	struct pair p;
	void *obj;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	while (rte_ring_free_count(ring) > 0) {
		fill[n] = plain(0);
		rte_ring_enqueue(ring, fill[n++]);
	}
	m = plain(0);
	world_mark(0, p.out, m, NULL);
	assert_int_equal(rte_eth_tx_burst(world_ports[0].id, 0, &m, 1), 0);
	assert_int_equal(nic_sessions(world_ports[0].id, &info, 1), 1);
	assert_int_equal(info.number, 0);
	assert_int_equal(info.spi, spi);
	while (rte_ring_dequeue(ring, &obj) == 0)
		rte_pktmbuf_free(obj);
	assert_int_equal(opened(world_send(0, m)), 'g');
	pair_close(&p);
}

static void
frames_vanish_and_sessions_too(void **state)
{
	uint16_t id = world_ports[0].id;
	struct pair p;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	nic_fault(id, NIC_FAULT_tx_drop, 2);
	assert_null(sealed(&p, plain(0)));
	assert_null(world_send(0, plain(0)));
	assert_int_equal(opened(sealed(&p, plain(0))), 'g');
	assert_int_equal(WORLD_STAT(0, tx_dropped), 2);
	nic_fault(id, NIC_FAULT_tx_forget, 1);
	assert_null(sealed(&p, plain(0)));
	assert_int_equal(WORLD_STAT(0, forgotten), 1);
	assert_null(sealed(&p, plain(0)));
	pair_close(&p); /* its owner may not know */
}

static void
a_session_inside_is_in_use(void **state)
{
	uint16_t id = world_ports[0].id;
	uint64_t before = WORLD_STAT(0, destroyed_in_use);
	struct pair p;
	void *wire = NULL;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	nic_fault(id, NIC_FAULT_tx_hold, 1);
	assert_null(sealed(&p, plain(0)));
	nic_fault(id, NIC_FAULT_tx_hold, 0);
	assert_int_equal(rte_ring_dequeue(world_ports[0].tx, &wire), 0);
	assert_int_equal(opened(wire), 'g');
	assert_int_equal(WORLD_STAT(0, destroyed_in_use), before);
	nic_fault(id, NIC_FAULT_tx_hold, 1);
	assert_null(sealed(&p, plain(0)));
	pair_close(&p);
	assert_int_equal(WORLD_STAT(0, destroyed_in_use), before + 1);
	nic_fault(id, NIC_FAULT_tx_hold, 0);
	assert_int_not_equal(rte_ring_dequeue(world_ports[0].tx, &wire), 0);
	assert_int_equal(WORLD_STAT(0, destroyed_in_use), before + 1);
}

static void
reception_lies_on_demand(void **state)
{
	uint16_t id = world_ports[1].id;
	struct pair p[2];
	struct rte_mbuf *m, *got;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		pair_init(&p[i], i == 0 ? PROTOCOL : CRYPTO);
		pair_open(&p[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t own = p[i].in_conf.conf.ipsec.spi;
		uint32_t seq = 1;
#define NEXT() sealed(&p[i], i == 0 ? plain(0) : clear(own, seq++))
		nic_fault(id, NIC_FAULT_rx_icv, 1);
		assert_int_equal(opened(NEXT()), 'f');
		assert_int_equal(opened(NEXT()), 'g');
		nic_fault(id, NIC_FAULT_rx_lost, 1);
		assert_int_equal(opened(NEXT()), 'p');
		assert_int_equal(opened(NEXT()), 'g');
		/* strikes only where the ICV is wrong */
		nic_fault(id, NIC_FAULT_rx_good, 1);
		assert_int_equal(opened(NEXT()), 'g');
		for (unsigned int k = 0; k < 2; k++) {
			m = NEXT();
			*rte_pktmbuf_mtod_offset(m, uint8_t *, m->pkt_len - 1) ^= 1;
			assert_int_equal(opened(m), k == 0 ? 'g' : 'f');
		}
		nic_fault(id, NIC_FAULT_rx_userdata, 1);
		for (unsigned int k = 0; k < 2; k++) {
			assert_non_null(got = world_receive(1, NEXT()));
			assert_int_equal(*rte_security_dynfield(got),
				0x1000u + p[k == 0 ? 1 - i : i].in_conf.conf.ipsec.spi);
			rte_pktmbuf_free(got);
		}
#undef NEXT
	}
	pair_close(&p[0]);
	pair_close(&p[1]);
}

static void
the_tripwire(void **state)
{
	uint64_t before = WORLD_STAT(0, plaintext);
	struct pair p;

	(void)state;
	pair_init(&p, CRYPTO);
	pair_open(&p);
	nic_marker("kept secret", 11);
	assert_int_equal(opened(sealed(&p, clear(spi, 1))), 'g');
	assert_int_equal(WORLD_STAT(0, plaintext), before);
	assert_int_equal(opened(world_send(0, plain(30))), 'p');
	assert_int_equal(WORLD_STAT(0, plaintext), before + 1);
	nic_marker("", 0);
	assert_int_equal(opened(world_send(0, plain(0))), 'p');
	assert_int_equal(WORLD_STAT(0, plaintext), before + 1);
	pair_close(&p);
}

static void
offload_has_to_be_configured(void **state)
{
	struct pair p;
	struct rte_mbuf *m;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	rte_eth_dev_stop(world_ports[0].id);
	world_start(0, false);
	assert_null(sealed(&p, plain(0)));
	assert_int_equal(WORLD_STAT(0, tx_not_enabled), 1);
	assert_null(world_session(0, &p.out_conf));
	assert_int_equal(rte_errno, ENOTSUP);
	m = world_send(0, plain(0));
	assert_int_equal(opened(m), 'p');
	rte_eth_dev_stop(world_ports[0].id);
	world_start(0, true);
	assert_int_equal(opened(sealed(&p, plain(0))), 'g');
	pair_close(&p);
}

static int
count_event(uint16_t port, enum rte_eth_event_type type, void *arg, void *what)
{
	unsigned int *n = arg;

	(void)port;
	if (type == RTE_ETH_EVENT_IPSEC) {
		const struct rte_eth_event_ipsec_desc *desc = what;

		n[1] |= 1u << desc->subtype;
		n[2] += desc->metadata == 0x1000u + spi;
	}
	__atomic_fetch_add(&n[0], 1, __ATOMIC_RELEASE);
	return 0;
}

static void
events(void **state)
{
	uint16_t id = world_ports[1].id;
	unsigned int n[3] = { 0 };
	struct pair p;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_IPSEC, count_event, n);
	assert_int_equal(nic_event_storm(id, 40), 0);
	assert_int_equal(n[0], 40);
	assert_int_equal(n[1], (1u << (RTE_ETH_EVENT_IPSEC_MAX + 1)) - 1);
	assert_int_equal(n[2], 20);
	rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_IPSEC, count_event, n);
	nic_event_storm(id, 2);
	assert_int_equal(n[0], 40);
	pair_close(&p);
}

static void
lifetimes_end(void **state)
{
	uint16_t id = world_ports[0].id;
	unsigned int n[3] = { 0 };
	struct pair p;

	(void)state;
	pair_init(&p, PROTOCOL);
	p.out_conf.conf.userdata = (void *)(uintptr_t)(0x1000u + spi);
	p.out_conf.conf.ipsec.life.packets_soft_limit = 2;
	p.out_conf.conf.ipsec.life.packets_hard_limit = 3;
	pair_open(&p);
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_IPSEC, count_event, n);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(opened(sealed(&p, plain(0))), 'g');
	assert_null(sealed(&p, plain(0)));
	for (unsigned int i = 0; i < 5000 && __atomic_load_n(&n[0], __ATOMIC_ACQUIRE) < 2; i++)
		usleep(1000);
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1],
		1u << RTE_ETH_EVENT_IPSEC_SA_PKT_EXPIRY |
			1u << RTE_ETH_EVENT_IPSEC_SA_PKT_HARD_EXPIRY);
	assert_int_equal(n[2], 2);
	rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_IPSEC, count_event, n);
	pair_close(&p);
}

static void
a_reset_forgets_and_a_removal_stays(void **state)
{
	uint16_t id = world_ports[0].id;
	unsigned int n[3] = { 0 };
	struct pair p;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_INTR_RESET, count_event, n);
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_RMV, count_event, n);
	assert_int_equal(nic_event(id, "nonsense"), -ENOENT);
	assert_int_equal(nic_event(id, "intr_reset"), 0);
	assert_int_equal(n[0], 1);
	assert_int_equal(WORLD_STAT(0, sessions), 0);
	assert_null(world_send(0, plain(0)));
	assert_null(world_receive(0, plain(0)));
	assert_int_equal(rte_eth_dev_reset(id), 0);
	world_start(0, true);
	assert_null(sealed(&p, plain(0))); /* a session from before */
	assert_int_equal(opened(world_send(0, plain(0))), 'p');
	pair_close(&p);
	assert_int_equal(nic_event(id, "intr_rmv"), 0);
	assert_int_equal(n[0], 2);
	rte_eth_dev_stop(id);
	world_start(0, true);
	assert_null(world_send(0, plain(0)));
	rte_eth_dev_callback_unregister(RTE_ETH_ALL, RTE_ETH_EVENT_INTR_RESET, count_event, n);
	rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_INTR_RMV, count_event, n);
}

/* As a port with other options, from the beginning. */
static void
again(unsigned int n, const char *preset, unsigned int options)
{
	rte_eth_dev_stop(world_ports[n].id);
	nic_detach(world_ports[n].id);
	assert_int_equal(nic_attach(world_ports[n].id, preset, options), 0);
	assert_int_equal(nic_attach(world_ports[n].id, preset, options), -EEXIST);
	world_start(n, true);
}

static void
fast_metadata(void **state)
{
	const struct rte_security_ctx *ctx;
	struct rte_mbuf *m;
	struct pair p;

	(void)state;
	again(0, "all", NIC_FAST_MDATA);
	ctx = world_ctx(0);
	assert_int_equal(ctx->flags, RTE_SEC_CTX_F_FAST_SET_MDATA);
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	assert_int_equal(opened(sealed(&p, plain(0))), 'g');
	assert_int_equal(WORLD_STAT(0, mdata_set), 0);
	m = plain(0);
	m->l2_len = 14;
	m->ol_flags = RTE_MBUF_F_TX_SEC_OFFLOAD;
	*rte_security_dynfield(m) = (uintptr_t)m; /* userdata that nobody replaced */
	assert_null(world_send(0, m));
	assert_int_equal(WORLD_STAT(0, tx_gone_session), 1);
	assert_int_equal(WORLD_STAT(0, destroyed_in_use), 0);
	pair_close(&p);
	again(0, "all", NIC_NO_STEERING);
}

/* A rule for the SPI that leads to a session. */
static struct rte_flow *
rule(void *session, uint32_t of, const char *dst)
{
	const struct rte_flow_attr attr = { .ingress = 1 };
	struct rte_flow_item_ipv4 ip = { 0 }, ip_mask = { .hdr.dst_addr = UINT32_MAX };
	struct rte_flow_item_esp esp = { .hdr.spi = rte_cpu_to_be_32(of) };
	const struct rte_flow_item pattern[] = { { .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ip, .mask = &ip_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_ESP, .spec = &esp },
		{ .type = RTE_FLOW_ITEM_TYPE_END } };
	const struct rte_flow_action actions[] = { { .type = RTE_FLOW_ACTION_TYPE_SECURITY,
							   .conf = session },
		{ .type = RTE_FLOW_ACTION_TYPE_END } };
	struct rte_flow_error error;

	inet_pton(AF_INET, dst, &ip.hdr.dst_addr);
	if (rte_flow_validate(world_ports[1].id, &attr, pattern, actions, &error) != 0)
		return NULL;
	return rte_flow_create(world_ports[1].id, &attr, pattern, actions, &error);
}

static void
rules_steer(void **state)
{
	uint16_t id = world_ports[1].id;
	struct rte_flow *flow, *other;
	struct rte_flow_error error;
	struct pair p;

	(void)state;
	again(1, "all", 0);
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	assert_int_equal(opened(sealed(&p, plain(0))), 'p');
	assert_int_equal(WORLD_STAT(1, rx_unsteered), 1);
	assert_non_null(other = rule(p.in, spi + 1, "192.0.2.2"));
	assert_int_equal(opened(sealed(&p, plain(0))), 'p');
	assert_int_equal(rte_flow_destroy(id, other, &error), 0);
	assert_int_equal(rte_flow_destroy(id, other, &error), -ENOENT);
	assert_non_null(other = rule(p.in, spi, "192.0.2.9"));
	assert_int_equal(opened(sealed(&p, plain(0))), 'p');
	assert_non_null(flow = rule(p.in, spi, "192.0.2.2"));
	assert_int_equal(opened(sealed(&p, plain(0))), 'g');
	nic_fault(id, NIC_FAULT_flow_create, 1);
	assert_null(rule(p.in, spi, "192.0.2.2"));
	assert_int_equal(WORLD_STAT(1, flow_failed), 1);
	nic_fault(id, NIC_FAULT_flow_destroy, 1);
	assert_int_equal(rte_flow_destroy(id, flow, &error), -EIO);
	assert_int_equal(rte_flow_destroy(id, flow, &error), 0);
	assert_int_equal(opened(sealed(&p, plain(0))), 'p');
	assert_int_equal(WORLD_STAT(1, flows), 1);
	rte_flow_flush(id, &error);
	pair_close(&p);
	again(1, "all", NIC_NO_FLOW);
	pair_open(&p);
	assert_null(rule(p.in, spi, "192.0.2.2"));
	assert_int_equal(rte_flow_flush(id, &error), -ENOSYS);
	assert_int_equal(opened(sealed(&p, plain(0))), 'g');
	pair_close(&p);
	again(1, "all", NIC_NO_STEERING);
}

static unsigned int
rows(unsigned int n)
{
	const struct rte_security_capability *c = rte_security_capabilities_get(world_ctx(n));
	unsigned int i = 0;

	if (c == NULL)
		return UINT32_MAX;
	while (c[i].action != RTE_SECURITY_ACTION_TYPE_NONE)
		i++;
	return i;
}

static void
capabilities(void **state)
{
	uint16_t id = world_ports[0].id;
	struct nic_cap cap = nic_cap_of(
		RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL, RTE_SECURITY_IPSEC_SA_DIR_EGRESS);
	struct pair p;

	(void)state;
	assert_int_equal(rows(0), 4);
	assert_int_equal(nic_caps_preset(id, "nothing"), -ENOENT);
	assert_int_equal(nic_caps_preset(id, "inline_crypto"), 0);
	assert_int_equal(rows(0), 2);
	pair_init(&p, PROTOCOL);
	assert_null(world_session(0, &p.out_conf));
	nic_caps_preset(id, "endless");
	assert_int_equal(rows(0), 5000);
	assert_null(world_session(0, &p.out_conf));
	nic_caps_preset(id, "null");
	assert_int_equal(rows(0), UINT32_MAX);
	nic_caps_preset(id, "none");
	assert_int_equal(rows(0), 0);
	assert_null(world_session(0, &p.out_conf));
	/* what it cannot do is refused, each by itself */
	cap.options.esn = 0;
	cap.algs = NIC_ALG_GCM256;
	cap.icv_min = cap.icv_max = 16;
	assert_int_equal(nic_caps_add(id, &cap), 0);
	assert_null(world_session(0, &p.out_conf)); /* key of 128 bits */
	p.out_conf.xform->aead.key.length = 32;
	p.out_conf.xform->aead.digest_length = 8;
	assert_null(world_session(0, &p.out_conf));
	p.out_conf.xform->aead.digest_length = 16;
	p.out_conf.conf.ipsec.options.esn = 1;
	assert_null(world_session(0, &p.out_conf));
	p.out_conf.conf.ipsec.options.esn = 0;
	assert_non_null(p.out = world_session(0, &p.out_conf));
	assert_int_equal(rte_security_session_destroy(world_ctx(0), p.out), 0);
	assert_int_equal(nic_caps_remove(id, RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL), 0);
	assert_int_equal(rows(0), 0);
	nic_caps_preset(id, "all");
	assert_int_equal(nic_caps_preset(31, "all"), -ENODEV);
}

static void
a_port_that_closes_says_what_was_left(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, PROTOCOL);
	pair_open(&p);
	rte_eth_dev_stop(world_ports[1].id);
	rte_eth_dev_close(world_ports[1].id);
	assert_int_equal(WORLD_STAT(1, left), 1);
	assert_int_equal(WORLD_STAT(1, sessions), 0);
	pair_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_seals_another_opens, check_world),
		cmocka_unit_test_teardown(crypto_from_one_to_another, check_world),
		cmocka_unit_test_teardown(what_is_sent_is_only_read, check_world),
		cmocka_unit_test_teardown(sessions_fail_on_demand, check_world),
		cmocka_unit_test_teardown(metadata_is_all_that_names_a_session, check_world),
		cmocka_unit_test_teardown(a_full_ring_leaves_the_frame_alone, check_world),
		cmocka_unit_test_teardown(frames_vanish_and_sessions_too, check_world),
		cmocka_unit_test_teardown(a_session_inside_is_in_use, check_world),
		cmocka_unit_test_teardown(reception_lies_on_demand, check_world),
		cmocka_unit_test_teardown(the_tripwire, check_world),
		cmocka_unit_test_teardown(offload_has_to_be_configured, check_world),
		cmocka_unit_test_teardown(events, check_world),
		cmocka_unit_test_teardown(lifetimes_end, check_world),
		cmocka_unit_test_teardown(fast_metadata, check_world),
		cmocka_unit_test_teardown(rules_steer, check_world),
		cmocka_unit_test_teardown(capabilities, check_world),
		/* The last two: a port that does not come back. */
		cmocka_unit_test_teardown(a_reset_forgets_and_a_removal_stays, check_world),
		cmocka_unit_test_teardown(a_port_that_closes_says_what_was_left, check_world),
	};

	test_eal_init("nic_faults", "0");
	return cmocka_run_group_tests(tests, open_world, NULL);
}
