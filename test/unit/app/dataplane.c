/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <rte_eth_ring.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "control.h"
#include "dataplane.h"
#include "forward/forward.h"
#include "pipeline.h"
#include "prompt/prompt.h"
#include "support.h"

#define WIRE_SIZE 1024

void (*dataplane_wired)(unsigned int n_ports);

static struct wire {
	struct rte_ring *rx, *tx;
	bool blocked;
} wires[8];
static unsigned int n_wires, n_devices;
static struct rte_mempool *outside; /* injected frames come from here */
static struct rte_mbuf *stuffing; /* what fills a blocked wire */

/* A ring for each direction of a port, made before the program looks for ports. */
static void
wire_open(unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "rx%u", i);
	wires[i].rx =
		rte_ring_create(name, WIRE_SIZE, SOCKET_ID_ANY, RING_F_SC_DEQ | RING_F_SP_ENQ);
	snprintf(name, sizeof(name), "tx%u", i);
	wires[i].tx =
		rte_ring_create(name, WIRE_SIZE, SOCKET_ID_ANY, RING_F_SC_DEQ | RING_F_SP_ENQ);
	assert_non_null(wires[i].rx);
	assert_non_null(wires[i].tx);
	/* EAL remembers a device's name beyond its closing. */
	snprintf(name, sizeof(name), "wire%u", n_devices++);
	assert_true(rte_eth_from_rings(name, &wires[i].rx, 1, &wires[i].tx, 1, 0) >= 0);
}

static void
options_fill(struct options *opt)
{
	char program[] = "test", dashes[] = "--", mbufs[] = "--total-num-mbufs=4096",
	     cache[] = "--mbcache=0", nobody[] = "--ctl=/dev/null/none";
	char *argv[] = { program, dashes, mbufs, cache, nobody, NULL };
	static char ctl[64];
	int eal_argc;

	assert_int_equal(options_parse(5, argv, opt, &eal_argc), 0);
	snprintf(ctl, sizeof(ctl), "/tmp/millrace-test-%d.sock", (int)getpid());
	opt->ctl = ctl;
}

void
dataplane_open(unsigned int n_ports)
{
	static bool started;
	char name[32];

	if (!started) {
		control_signals_block();
		test_eal_init("dataplane", "0@0,1@0");
	}
	started = true;
	snprintf(name, sizeof(name), "outside");
	outside = test_pool(name, 2047);
	for (n_wires = 0; n_wires < n_ports; n_wires++)
		wire_open(n_wires);
	if (dataplane_wired != NULL)
		dataplane_wired(n_ports);
	memset(&app, 0, sizeof(app));
	options_fill(&app.opt);
	assert_int_equal(app_open(&app), 0);
	assert_null(streams_setup(&app));
	app.workers[0].burst = app.opt.burst;
	app.workers[0].mode = app.mode;
	app.workers[0].ipsec = ipsec_cache_worker(app.ipsec, 0);
	rte_rcu_qsbr_thread_online(app.qsbr, 0);
}

void
dataplane_close(void)
{
	rte_rcu_qsbr_thread_offline(app.qsbr, 0);
	dataplane_expect_nothing();
	assert_int_equal(app_close(&app), 0);
	for (unsigned int i = 0; i < n_wires; i++) {
		dataplane_block(i, false);
		rte_ring_free(wires[i].rx);
		rte_ring_free(wires[i].tx);
	}
	assert_true(test_pool_full(outside));
	rte_mempool_free(outside);
	memset(wires, 0, sizeof(wires));
}

/* The stepped worker is at rest meanwhile: whoever waits for it must not wait for ever. */
static int
command(const char *line)
{
	int ret;

	rte_rcu_qsbr_thread_offline(app.qsbr, 0);
	ret = prompt_line(app.prompt, line);
	rte_rcu_qsbr_thread_online(app.qsbr, 0);
	return ret;
}

void
dataplane_command(const char *line)
{
	if (command(line) != 0)
		fail_msg("%s: %s", line, prompt_error(app.prompt));
}

void
dataplane_refused(const char *line, const char *why)
{
	if (command(line) == 0)
		fail_msg("%s: was not refused", line);
	if (strstr(prompt_error(app.prompt), why) == NULL)
		fail_msg(
			"%s: refused with \"%s\", not \"%s\"", line, prompt_error(app.prompt), why);
}

void
dataplane_inject_cut(unsigned int port, const void *frame, uint32_t len, uint32_t cut)
{
	struct rte_mbuf *m = test_frame(outside, frame, len, cut);

	assert_int_equal(rte_ring_enqueue(wires[port].rx, m), 0);
}

void
dataplane_inject(unsigned int port, const void *frame, uint32_t len)
{
	dataplane_inject_cut(port, frame, len, 0);
}

void
dataplane_inject_marked(
	unsigned int port, const void *frame, uint32_t len, uint64_t flags, uint16_t mark_port)
{
	struct rte_mbuf *m = test_frame(outside, frame, len, 0);

	m->ol_flags |= flags;
	m->port = mark_port;
	assert_int_equal(rte_ring_enqueue(wires[port].rx, m), 0);
}

unsigned int
dataplane_turn(void)
{
	return worker_round(&app.workers[0]);
}

void
dataplane_deal(void)
{
	rte_rcu_qsbr_thread_offline(app.qsbr, 0);
	assert_null(streams_setup(&app));
	rte_rcu_qsbr_thread_online(app.qsbr, 0);
}

void
dataplane_tick(void)
{
	rte_rcu_qsbr_thread_offline(app.qsbr, 0);
	control_tick(app.control);
	rte_rcu_qsbr_thread_online(app.qsbr, 0);
}

struct rte_mbuf *
dataplane_sent(unsigned int port)
{
	void *m;

	if (wires[port].blocked || rte_ring_dequeue(wires[port].tx, &m) != 0)
		return NULL;
	return m;
}

void
dataplane_expect(unsigned int port, const void *frame, uint32_t len)
{
	struct rte_mbuf *m = dataplane_sent(port);
	uint8_t flat[16384];
	const uint8_t *got;

	if (m == NULL)
		fail_msg("nothing came out of p%u", port);
	assert_int_equal(m->pkt_len, len);
	got = rte_pktmbuf_read(m, 0, len, flat);
	assert_memory_equal(got, frame, len);
	rte_pktmbuf_free(m);
}

void
dataplane_expect_nothing(void)
{
	for (unsigned int i = 0; i < n_wires; i++) {
		if (!wires[i].blocked && rte_ring_count(wires[i].tx) != 0)
			fail_msg("%u unexpected frames came out of p%u",
				rte_ring_count(wires[i].tx), i);
	}
}

bool
dataplane_outside_full(void)
{
	return test_pool_full(outside);
}

void
dataplane_block(unsigned int port, bool blocked)
{
	void *m;

	if (blocked == wires[port].blocked)
		return;
	if (blocked) {
		assert_int_equal(rte_ring_count(wires[port].tx), 0);
		while (rte_ring_enqueue(wires[port].tx, &stuffing) == 0)
			;
	} else {
		while (rte_ring_dequeue(wires[port].tx, &m) == 0)
			;
	}
	wires[port].blocked = blocked;
}

uint64_t
dataplane_drops(enum drop_reason reason)
{
	uint64_t packets[DROP_MAX], bytes[DROP_MAX];

	drops_sum(&app, packets, bytes);
	return packets[reason];
}

uint64_t
dataplane_drops_all(void)
{
	uint64_t packets[DROP_MAX], bytes[DROP_MAX], sum = 0;

	drops_sum(&app, packets, bytes);
	for (unsigned int r = 0; r < DROP_MAX; r++)
		sum += packets[r];
	return sum;
}
