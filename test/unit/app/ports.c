/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Ports that come, go, are pulled out, and compute checksums. */

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
open_three(void **state)
{
	(void)state;
	dataplane_open(3);
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
detached_port_takes_its_rules_along(void **state)
{
	(void)state;
	dataplane_command("tc qdisc add dev p2 clsact");
	dataplane_command("tc filter add dev p2 ingress matchall action drop");
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command(
		"tc filter add dev p0 ingress matchall action mirred egress redirect dev p2");
	dataplane_command("port close 2");
	dataplane_refused("tc qdisc show dev p2", "status");
	assert_null(port_get(&app, 2));
	/* The rule that pointed to it is Linux's to keep; its packets have nowhere to go. */
	dataplane_deal();
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(), 1);
	assert_int_equal(dataplane_drops(DROP_NO_PORT), 1);
}

static void
ifindex_is_never_used_again(void **state)
{
	uint32_t old = port_get(&app, 2)->ifindex;

	(void)state;
	dataplane_command("port attach net_null9");
	assert_int_equal(port_by_name(&app, "p3")->ifindex, old + 1);
	dataplane_command("port detach p3");
	dataplane_command("port attach net_null9");
	assert_int_equal(port_by_name(&app, "p3")->ifindex, old + 2);
	dataplane_command("port detach p3");
}

static void
port_pulled_out_under_queued_packets(void **state)
{
	struct port *port = port_get(&app, 1);

	(void)state;
	dataplane_block(1, true);
	for (unsigned int i = 0; i < 50; i++) {
		dataplane_inject(0, broken, sizeof(broken));
		dataplane_turn();
	}
	atomic_store(&port->removed, true);
	dataplane_tick();
	assert_null(port_get(&app, 1));
	assert_int_equal(dataplane_drops(DROP_SCHED_FLUSH), 50);
	dataplane_deal();
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	/* p0 and p2 are the pair now. */
	dataplane_expect(2, broken, sizeof(broken));
}

static void
names_and_aliases_change_and_stay_unique(void **state)
{
	(void)state;
	dataplane_command("ip link set p0 name wan");
	dataplane_command("ip link set wan alias 'to the world'");
	dataplane_refused("ip link set p1 name wan", "status");
	dataplane_refused("ip link show p0", "status");
	dataplane_command("ip link show wan");
	assert_string_equal(port_get(&app, 0)->alias, "to the world");
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_three, close_all)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		T(detached_port_takes_its_rules_along),
		T(ifindex_is_never_used_again),
		T(port_pulled_out_under_queued_packets),
		T(names_and_aliases_change_and_stay_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
