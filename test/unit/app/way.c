/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* A packet's way through the whole program: hooks, forward mode, scheduler, drops, counters. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "dataplane.h"
#include "frames.h"

static int
open_two(void **state)
{
	(void)state;
	dataplane_open(2);
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	dataplane_close();
	return 0;
}

static void
io_passes_frames_unchanged(void **state)
{
	(void)state;
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(1, broken, 20);
	dataplane_turn();
	dataplane_expect(1, broken, sizeof(broken));
	dataplane_expect(0, broken, 20);
	assert_int_equal(dataplane_drops_all(), 0);
}

static void
csum_mends_what_its_flags_name(void **state)
{
	uint8_t want[sizeof(broken)];

	(void)state;
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command("tc filter add dev p0 ingress prio 1 matchall action csum ip4h");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	memcpy(want, broken, sizeof(want));
	mend(want, true, false);
	dataplane_expect(1, want, sizeof(want));

	dataplane_command("tc filter del dev p0 ingress prio 1");
	dataplane_command("tc filter add dev p0 ingress prio 1 matchall action csum ip4h and udp");
	for (uint32_t cut = 0; cut < sizeof(broken); cut++)
		dataplane_inject_cut(0, broken, sizeof(broken), cut);
	mend(want, true, true);
	dataplane_turn();
	dataplane_turn();
	for (uint32_t cut = 0; cut < sizeof(broken); cut++)
		dataplane_expect(1, want, sizeof(want));
	/* The other direction has no rule. */
	dataplane_inject(1, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(0, broken, sizeof(broken));
	assert_int_equal(dataplane_drops_all(), 0);
}

static void
egress_hook_sees_what_leaves(void **state)
{
	uint8_t want[sizeof(broken)];

	(void)state;
	dataplane_command("tc qdisc add dev p1 clsact");
	dataplane_command("tc filter add dev p1 egress matchall action csum ip4h and udp");
	memcpy(want, broken, sizeof(want));
	mend(want, true, true);
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(1, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(1, want, sizeof(want));
	dataplane_expect(0, broken, sizeof(broken));
}

static void
drop_has_a_name_and_a_count(void **state)
{
	(void)state;
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command("tc filter add dev p0 ingress matchall action drop");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_SHOT), 2);
	assert_int_equal(dataplane_drops_all(), 2);
	dataplane_command("tc qdisc del dev p0 clsact");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(1, broken, sizeof(broken));
}

static void
port_that_is_down_drops_both_ways(void **state)
{
	(void)state;
	dataplane_command("ip link set p1 down");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(1, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_TX_DOWN), 1);
	assert_int_equal(dataplane_drops(DROP_RX_DOWN), 1);
	dataplane_command("ip link set p1 up");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(1, broken, sizeof(broken));
	assert_int_equal(dataplane_drops_all(), 2);
}

static void
full_nic_keeps_order_and_loses_nothing(void **state)
{
	uint8_t frame[sizeof(broken)];

	(void)state;
	memcpy(frame, broken, sizeof(frame));
	dataplane_block(1, true);
	for (unsigned int i = 0; i < 200; i++) {
		frame[46] = (uint8_t)i;
		dataplane_inject(0, frame, sizeof(frame));
		dataplane_turn();
	}
	assert_int_equal(dataplane_drops_all(), 0);
	dataplane_block(1, false);
	for (unsigned int i = 200; i < 220; i++) {
		frame[46] = (uint8_t)i;
		dataplane_inject(0, frame, sizeof(frame));
	}
	for (unsigned int i = 0; i < 16; i++)
		dataplane_turn();
	for (unsigned int i = 0; i < 220; i++) {
		frame[46] = (uint8_t)i;
		dataplane_expect(1, frame, sizeof(frame));
	}
}

static void
full_band_drops_by_name(void **state)
{
	(void)state;
	dataplane_command("ip link set p1 txqueuelen 64");
	dataplane_block(1, true);
	for (unsigned int i = 0; i < 200; i++) {
		dataplane_inject(0, broken, sizeof(broken));
		dataplane_turn();
	}
	assert_true(dataplane_drops(DROP_SCHED_FULL) > 0);
	assert_int_equal(dataplane_drops_all(), dataplane_drops(DROP_SCHED_FULL));
	/* What is still queued is dropped by name when the port goes down. */
	dataplane_command("ip link set p1 down");
	assert_int_equal(dataplane_drops(DROP_SCHED_FULL) + dataplane_drops(DROP_SCHED_FLUSH), 200);
}

static void
bad_commands_say_what_and_change_nothing(void **state)
{
	(void)state;
	dataplane_refused("frobnicate", "frobnicate");
	dataplane_refused("show port stats 7", "no port 7");
	dataplane_refused("tc qdisc add dev p7 clsact", "status");
	dataplane_refused("tc filter add dev p0 ingress matchall action drop", "status");
	dataplane_refused("tc qdisc add dev p0 'clsact", "quote");
	dataplane_refused("load /nonexistent/file", "/nonexistent/file");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(1, broken, sizeof(broken));
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_two, close_all)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		T(io_passes_frames_unchanged),
		T(csum_mends_what_its_flags_name),
		T(egress_hook_sees_what_leaves),
		T(drop_has_a_name_and_a_count),
		T(port_that_is_down_drops_both_ways),
		T(full_nic_keeps_order_and_loses_nothing),
		T(full_band_drops_by_name),
		T(bad_commands_say_what_and_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
