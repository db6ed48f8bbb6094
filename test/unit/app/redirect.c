/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* mirred through the whole program, and the bands of a root prio. */

#include <bsd/string.h>
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
redirect_leaves_by_the_other_port(void **state)
{
	(void)state;
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command(
		"tc filter add dev p0 ingress matchall action mirred egress redirect dev p2");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(2, broken, sizeof(broken));
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops_all(), 0);
}

static void
mirror_sends_a_copy_that_later_changes_do_not_reach(void **state)
{
	uint8_t want[sizeof(broken)];

	(void)state;
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command(
		"tc filter add dev p0 ingress matchall action mirred egress mirror dev p2 "
		"action csum ip4h and udp");
	for (uint32_t cut = 0; cut < 40; cut += 13)
		dataplane_inject_cut(0, broken, sizeof(broken), cut);
	dataplane_turn();
	memcpy(want, broken, sizeof(want));
	mend(want, true, true);
	for (uint32_t cut = 0; cut < 40; cut += 13) {
		dataplane_expect(2, broken, sizeof(broken));
		dataplane_expect(1, want, sizeof(want));
	}
	dataplane_expect_nothing();
}

static void
redirect_into_ingress_passes_that_ports_rules(void **state)
{
	uint8_t want[sizeof(broken)];

	(void)state;
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command("tc qdisc add dev p1 clsact");
	dataplane_command(
		"tc filter add dev p0 ingress matchall action mirred ingress redirect dev p1");
	dataplane_command("tc filter add dev p1 ingress matchall action csum ip4h and udp");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	/* As if p1 had received it: io sends it to p1's pair. */
	memcpy(want, broken, sizeof(want));
	mend(want, true, true);
	dataplane_expect(0, want, sizeof(want));
}

static void
redirect_in_a_circle_ends_in_a_named_drop(void **state)
{
	(void)state;
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command("tc qdisc add dev p1 clsact");
	dataplane_command(
		"tc filter add dev p0 egress matchall action mirred egress redirect dev p1");
	dataplane_command(
		"tc filter add dev p1 egress matchall action mirred egress redirect dev p0");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_REDIRECT_LOOP), 1);
	assert_int_equal(dataplane_drops_all(), 1);
}

static void
a_shared_block_rules_over_its_ports(void **state)
{
	(void)state;
	dataplane_command("tc qdisc add dev p0 ingress_block 5 clsact");
	dataplane_command("tc qdisc add dev p1 ingress_block 5 clsact");
	dataplane_command("tc filter add block 5 pref 1 protocol ip flower indev p1 action drop");
	dataplane_command("tc filter add block 5 pref 2 protocol ip flower action mirred egress "
			  "redirect dev p2");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(1, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(2, broken, sizeof(broken));
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops((enum drop_reason)CLASSIFIER_DROP_SHOT), 1);
	/* One port leaves it, the other keeps it. */
	dataplane_command("tc qdisc del dev p1 clsact");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(1, broken, sizeof(broken));
	dataplane_turn();
	dataplane_expect(2, broken, sizeof(broken));
	dataplane_expect(0, broken, sizeof(broken));
	dataplane_expect_nothing();
}

static void
prio_sends_the_first_band_first_by_filter(void **state)
{
	uint8_t low[sizeof(broken)], high[sizeof(broken)];

	(void)state;
	memcpy(low, broken, sizeof(low));
	memcpy(high, broken, sizeof(high));
	set16(high, 36, 4500); /* the UDP destination port that the filter knows */
	dataplane_command("tc qdisc add dev p1 root handle 1: prio bands 3");
	dataplane_command(
		"tc filter add dev p1 parent 1: protocol ip flower ip_proto udp dst_port 4500 "
		"flowid 1:1");
	dataplane_command(
		"tc filter add dev p1 parent 1: protocol all prio 60000 matchall flowid 1:3");
	dataplane_block(1, true);
	dataplane_inject(0, low, sizeof(low));
	dataplane_turn();
	for (unsigned int i = 0; i < 3; i++) {
		dataplane_inject(0, low, sizeof(low));
		dataplane_inject(0, high, sizeof(high));
	}
	dataplane_turn();
	dataplane_block(1, false);
	for (unsigned int i = 0; i < 4; i++)
		dataplane_turn();
	/* The one that the NIC had refused was under way already (rule B5). */
	dataplane_expect(1, low, sizeof(low));
	for (unsigned int i = 0; i < 3; i++)
		dataplane_expect(1, high, sizeof(high));
	for (unsigned int i = 0; i < 3; i++)
		dataplane_expect(1, low, sizeof(low));
	dataplane_expect_nothing();
}

static void
flowid_of_another_hook_chooses_no_band(void **state)
{
	uint8_t second[sizeof(broken)];

	(void)state;
	memcpy(second, broken, sizeof(second));
	set16(second, 36, 4500);
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command(
		"tc filter add dev p0 ingress protocol ip flower ip_proto udp dst_port 4500 "
		"classid 1:1 action pass");
	dataplane_block(1, true);
	for (unsigned int i = 0; i < 3; i++) {
		dataplane_inject(0, broken, sizeof(broken));
		dataplane_inject(0, second, sizeof(second));
		dataplane_turn();
	}
	dataplane_block(1, false);
	for (unsigned int i = 0; i < 4; i++)
		dataplane_turn();
	for (unsigned int i = 0; i < 3; i++) {
		dataplane_expect(1, broken, sizeof(broken));
		dataplane_expect(1, second, sizeof(second));
	}
}

static void
flower_and_goto_choose_the_action(void **state)
{
	uint8_t other[sizeof(broken)], want[sizeof(broken)];

	(void)state;
	memcpy(other, broken, sizeof(other));
	set16(other, 32, 0x6403); /* 198.51.100.3 */
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command("tc filter add dev p0 ingress protocol ip prio 1 flower "
			  "dst_ip 198.51.100.2 action goto chain 7");
	dataplane_command("tc filter add dev p0 ingress chain 7 prio 1 matchall action csum ip4h");
	dataplane_command(
		"tc filter add dev p0 ingress protocol ip prio 2 flower src_ip 192.0.2.0/24 "
		"action drop");
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_inject(0, other, sizeof(other));
	dataplane_turn();
	memcpy(want, broken, sizeof(want));
	mend(want, true, false);
	dataplane_expect(1, want, sizeof(want));
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_SHOT), 1);
}

/* --- what ESP protects --- */

#define TO_NIC RTE_MBUF_F_TX_SEC_OFFLOAD
#define FROM_NIC RTE_MBUF_F_RX_SEC_OFFLOAD

static void
what_is_left_to_a_nic_leaves_by_its_port_alone(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	/* p0 and p1 are a pair. */
	dataplane_inject_marked(0, broken, sizeof(broken), TO_NIC, 1);
	dataplane_inject_marked(0, broken, sizeof(broken), TO_NIC, 2);
	dataplane_inject(0, broken, sizeof(broken));
	dataplane_turn();
	assert_non_null(m = dataplane_sent(1));
	assert_int_equal(m->port, 1);
	assert_true((m->ol_flags & TO_NIC) != 0);
	assert_int_equal(m->l2_len, 14);
	rte_pktmbuf_free(m);
	dataplane_expect(1, broken, sizeof(broken));
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 1);
	assert_int_equal(dataplane_drops_all(), 1);
}

static void
push_tags(unsigned int n)
{
	char line[1024] = "tc filter add dev p1 egress matchall";

	for (unsigned int i = 0; i < n; i++)
		strlcat(line, i + 1 < n ? " action vlan push id 7 pipe" : " action vlan push id 7",
			sizeof(line));
	dataplane_command(line);
}

static void
tags_are_told_to_the_nic(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	dataplane_command("tc qdisc add dev p1 clsact");
	dataplane_command("tc filter add dev p1 egress matchall action vlan push id 7");
	dataplane_inject_marked(0, broken, sizeof(broken), TO_NIC, 1);
	dataplane_turn();
	assert_non_null(m = dataplane_sent(1));
	assert_int_equal(m->l2_len, 18);
	rte_pktmbuf_free(m);
	/* More than a view follows; and more than l2_len has room for. */
	for (unsigned int n = 6; n <= 30; n += 24) {
		dataplane_command("tc filter del dev p1 egress");
		push_tags(n);
		dataplane_inject_marked(0, broken, sizeof(broken), TO_NIC, 1);
		dataplane_turn();
		if (n == 30)
			break;
		assert_non_null(m = dataplane_sent(1));
		assert_int_equal(m->l2_len, 14 + 4 * n);
		rte_pktmbuf_free(m);
	}
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 1);
	assert_int_equal(dataplane_drops_all(), 1);
}

static void
what_is_left_to_a_nic_is_neither_copied_nor_turned_around(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	dataplane_command("tc qdisc add dev p1 clsact");
	dataplane_command("tc filter add dev p1 egress matchall action mirred egress mirror dev "
			  "p2");
	dataplane_inject_marked(0, broken, sizeof(broken), TO_NIC, 1);
	dataplane_turn();
	assert_non_null(m = dataplane_sent(1));
	rte_pktmbuf_free(m);
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 1);
	dataplane_command("tc filter del dev p1 egress");
	dataplane_command("tc filter add dev p1 egress matchall action mirred ingress redirect dev "
			  "p0");
	/* It would come back to p1, whose NIC it was left to: as another's it must not. */
	dataplane_inject_marked(0, broken, sizeof(broken), TO_NIC, 1);
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 2);
	assert_int_equal(dataplane_drops_all(), 2);
}

static void
what_a_nic_opened_is_not_sent_on(void **state)
{
	(void)state;
	dataplane_inject_marked(0, broken, sizeof(broken), FROM_NIC, 0);
	dataplane_inject_marked(
		0, broken, sizeof(broken), FROM_NIC | RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED, 0);
	dataplane_inject_marked(0, broken, sizeof(broken), RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED, 0);
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_UNSEEN), 3);
	/* Nor its copies, nor where tc sends it. */
	dataplane_command("tc qdisc add dev p0 clsact");
	dataplane_command("tc filter add dev p0 ingress matchall action mirred egress mirror dev "
			  "p2 action mirred ingress redirect dev p1");
	dataplane_inject_marked(0, broken, sizeof(broken), FROM_NIC, 0);
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_UNSEEN), 5);
	/* The router looks at it, and knows of no such SA. */
	dataplane_command("tc filter del dev p0 ingress");
	dataplane_command("set fwd ip");
	app.workers[0].mode = app.mode;
	dataplane_inject_marked(0, broken, sizeof(broken), FROM_NIC, 0);
	dataplane_turn();
	dataplane_expect_nothing();
	assert_int_equal(dataplane_drops(DROP_ESP_DEVICE), 1);
	assert_int_equal(dataplane_drops_all(), 6);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_three, close_all)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		T(redirect_leaves_by_the_other_port),
		T(mirror_sends_a_copy_that_later_changes_do_not_reach),
		T(redirect_into_ingress_passes_that_ports_rules),
		T(redirect_in_a_circle_ends_in_a_named_drop),
		T(a_shared_block_rules_over_its_ports),
		T(prio_sends_the_first_band_first_by_filter),
		T(flowid_of_another_hook_chooses_no_band),
		T(flower_and_goto_choose_the_action),
		T(what_is_left_to_a_nic_leaves_by_its_port_alone),
		T(tags_are_told_to_the_nic),
		T(what_is_left_to_a_nic_is_neither_copied_nor_turned_around),
		T(what_a_nic_opened_is_not_sent_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
