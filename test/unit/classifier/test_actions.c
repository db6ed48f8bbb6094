/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "fixture.h"

#include <linux/tc_act/tc_mirred.h>
#include <linux/tc_act/tc_skbedit.h>
#include <linux/tc_act/tc_vlan.h>
#include <netinet/in.h>

#include "classifier/flower.h"
#include "classifier/mirred.h"
#include "classifier/pedit.h"
#include "classifier/police.h"
#include "classifier/skbedit.h"
#include "classifier/vlan.h"

/* UDP over IPv4: MACs, type, header, ports 1000 and 53, length 26. */
static const uint8_t udp4[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0xb8, 0, 46, 0, 0,
	0, 0, 64, IPPROTO_UDP, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1, 3, 0xe8, 0, 53, 0, 26 };

/* A matchall rule at prio 1 with these actions, which it then alone holds. */
static void
rule_with(struct fixture *f, uint32_t prio, uint32_t n, const struct action_ops *const *ops,
	struct action_params *const *params)
{
	struct classifier_rule_conf conf = { .place = { .prio = prio, .protocol = ETH_P_ALL },
		.n_actions = n };

	for (uint32_t i = 0; i < n; i++) {
		assert_non_null(params[i]);
		assert_int_equal(
			action_create(f->actions, ops[i], 0, params[i], &conf.actions[i]), 0);
	}
	assert_int_equal(classifier_rule_set(f->block, &conf, CLASSIFIER_CREATE, NULL, &f->why), 0);
	for (uint32_t i = 0; i < n; i++)
		action_put(conf.actions[i], false);
}

static void
rule_with_one(struct fixture *f, const struct action_ops *ops, struct action_params *params)
{
	rule_with(f, 1, 1, &ops, &params);
}

static void
mirred_redirect_names_the_port(void **state)
{
	struct fixture *f = *state;

	rule_with_one(
		f, &mirred_action_ops, mirred_params_create(TC_ACT_STOLEN, TCA_EGRESS_REDIR, 7));
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.redirected, 3);
	assert_int_equal(f->result.target[0], 7);
	assert_int_equal(f->result.target[1], 7);
	assert_int_equal(f->n_mirrored, 0);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	rule_with_one(
		f, &mirred_action_ops, mirred_params_create(TC_ACT_STOLEN, TCA_INGRESS_REDIR, 7));
	run(f);
	assert_int_equal(f->result.target[1], 7 | MIRRED_TARGET_INGRESS);
}

static void
mirred_mirror_copies_and_goes_on(void **state)
{
	struct fixture *f = *state;
	const struct action_ops *ops[] = { &mirred_action_ops, &mirred_action_ops,
		&gact_action_ops };
	struct action_params *params[] = { mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_MIRROR, 3),
		mirred_params_create(TC_ACT_PIPE, TCA_INGRESS_MIRROR, 4),
		gact_params_create(TC_ACT_SHOT) };

	rule_with(f, 1, 3, ops, params);
	put_ether(f, ETH_P_IP);
	put_ether(f, ETH_P_IPV6);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 3);
	assert_int_equal(f->n_mirrored, 2);
	assert_int_equal(f->mirrored[0].ifindex, 3);
	assert_false(f->mirrored[0].ingress);
	assert_int_equal(f->mirrored[0].mask, 3);
	assert_int_equal(f->mirrored[1].ifindex, 4);
	assert_true(f->mirrored[1].ingress);
}

static void
mirred_redirect_that_goes_on_is_a_copy(void **state)
{
	struct fixture *f = *state;

	rule_with_one(
		f, &mirred_action_ops, mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_REDIR, 3));
	put_ether(f, ETH_P_IP);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(f->n_mirrored, 1);
}

static void
mirred_refuses_what_is_not_a_port(void **state)
{
	(void)state;
	assert_null(mirred_params_create(TC_ACT_PIPE, 0, 3));
	assert_null(mirred_params_create(TC_ACT_PIPE, 5, 3));
	assert_null(mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_REDIR, 0));
	assert_null(mirred_params_create(TC_ACT_PIPE, TCA_EGRESS_REDIR, 0x80000001));
}

static void
skbedit_sets_what_it_is_told(void **state)
{
	struct fixture *f = *state;
	struct skbedit_params like = { .set = SKBEDIT_F_PRIORITY | SKBEDIT_F_QUEUE_MAPPING |
			SKBEDIT_F_MARK | SKBEDIT_F_MASK,
		.priority = 0x10002,
		.mark = 0xab,
		.mask = 0xff,
		.queue = 3 };
	struct packet_meta *meta;

	rule_with_one(f, &skbedit_action_ops, skbedit_params_create(TC_ACT_OK, &like));
	put_frame(f, udp4, sizeof(udp4));
	meta = packet_meta(f->pkts[0], the_meta_offset);
	meta->mark = 0x1200;
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(meta->priority, 0x10002);
	assert_int_equal(meta->mark, 0x12ab);
	assert_int_equal(meta->queue, 4);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	like.set = SKBEDIT_F_INHERITDSFIELD;
	rule_with_one(f, &skbedit_action_ops, skbedit_params_create(TC_ACT_OK, &like));
	put_ether(f, ETH_P_ARP);
	run(f);
	assert_int_equal(meta->priority, 46);
	assert_int_equal(packet_meta(f->pkts[1], the_meta_offset)->priority, 0);
}

static void
skbedit_refuses_what_it_cannot(void **state)
{
	struct skbedit_params like = { .set = 0 };

	(void)state;
	assert_null(skbedit_params_create(TC_ACT_OK, &like));
	like.set = SKBEDIT_F_PTYPE | SKBEDIT_F_MARK;
	assert_null(skbedit_params_create(TC_ACT_OK, &like));
	like.set = SKBEDIT_F_MASK;
	assert_null(skbedit_params_create(TC_ACT_OK, &like));
}

static void
vlan_push_and_pop_are_inverse(void **state)
{
	struct fixture *f = *state;
	struct vlan_params push = { .v_action = TCA_VLAN_ACT_PUSH,
		.vid = 100,
		.priority = 5,
		.protocol = htons(ETH_P_8021AD) };
	struct vlan_params pop = { .v_action = TCA_VLAN_ACT_POP };
	static const uint8_t tag[] = { 0x88, 0xa8, 0xa0, 100, 8, 0 };
	const uint8_t *p;

	rule_with_one(f, &vlan_action_ops, vlan_params_create(TC_ACT_OK, &push));
	put_frame(f, udp4, sizeof(udp4));
	packet_vector_parse(&f->vector);
	run(f);
	assert_int_equal(f->result.passed, 1);
	assert_int_equal(f->pkts[0]->pkt_len, 64);
	p = rte_pktmbuf_mtod(f->pkts[0], const uint8_t *);
	assert_memory_equal(p, udp4, 12);
	assert_memory_equal(p + 12, tag, 6);
	assert_memory_equal(p + 18, udp4 + 14, 46);
	/* The view follows. */
	assert_int_equal(f->views[0].n_vlan, 1);
	assert_int_equal(f->views[0].l3_off, 18);
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	rule_with_one(f, &vlan_action_ops, vlan_params_create(TC_ACT_OK, &pop));
	put_frame(f, udp4, sizeof(udp4)); /* has none: left alone */
	run(f);
	assert_int_equal(f->result.passed, 3);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(f->pkts[i]->pkt_len, 60);
		assert_memory_equal(
			rte_pktmbuf_mtod(f->pkts[i], const uint8_t *), udp4, sizeof(udp4));
	}
}

static void
vlan_modify_keeps_the_priority_it_is_not_given(void **state)
{
	struct fixture *f = *state;
	struct vlan_params like = {
		.v_action = TCA_VLAN_ACT_MODIFY, .vid = 0xabc, .protocol = htons(ETH_P_8021Q)
	};
	uint8_t tagged[64] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xa8, 0x71, 0x23, 8, 0 };
	const uint8_t *p;

	rule_with_one(f, &vlan_action_ops, vlan_params_create(TC_ACT_OK, &like));
	put_frame(f, tagged, sizeof(tagged));
	put_frame(f, udp4, sizeof(udp4));
	run(f);
	p = rte_pktmbuf_mtod(f->pkts[0], const uint8_t *);
	assert_int_equal(p[12] << 8 | p[13], ETH_P_8021Q);
	assert_int_equal(p[14] << 8 | p[15], 0x7abc);
	assert_memory_equal(rte_pktmbuf_mtod(f->pkts[1], const uint8_t *), udp4, sizeof(udp4));
	like.priority = 1;
	like.priority_given = true;
	assert_int_equal(classifier_flush(f->block, 0, 0, 0, &f->why), 0);
	rule_with_one(f, &vlan_action_ops, vlan_params_create(TC_ACT_OK, &like));
	run(f);
	assert_int_equal(p[14] << 8 | p[15], 0x3abc);
}

static void
vlan_A21_a_shared_packet_is_copied(void **state)
{
	struct fixture *f = *state;
	struct vlan_params push = {
		.v_action = TCA_VLAN_ACT_PUSH, .vid = 7, .protocol = htons(ETH_P_8021Q)
	};
	struct rte_mbuf *shared;

	rule_with_one(f, &vlan_action_ops, vlan_params_create(TC_ACT_OK, &push));
	shared = put_frame(f, udp4, sizeof(udp4));
	rte_mbuf_refcnt_update(shared, 1);
	run(f);
	assert_ptr_not_equal(f->pkts[0], shared);
	assert_int_equal(f->pkts[0]->pkt_len, 64);
	assert_int_equal(shared->pkt_len, 60);
	assert_memory_equal(rte_pktmbuf_mtod(shared, const uint8_t *), udp4, sizeof(udp4));
	rte_pktmbuf_free(shared);
}

static void
vlan_push_in_cut_chains(void **state)
{
	struct fixture *f = *state;
	struct vlan_params push = {
		.v_action = TCA_VLAN_ACT_PUSH, .vid = 7, .protocol = htons(ETH_P_8021Q)
	};
	uint8_t buf[64];

	rule_with_one(f, &vlan_action_ops, vlan_params_create(TC_ACT_OK, &push));
	for (uint32_t cut = 1; cut < 20; cut++)
		f->pkts[f->vector.n++] = test_frame(the_pool, udp4, 40, cut);
	run(f);
	for (unsigned int i = 0; i < f->vector.n; i++) {
		const uint8_t *p = rte_pktmbuf_read(f->pkts[i], 0, 44, buf);

		assert_int_equal(f->pkts[i]->pkt_len, 44);
		assert_memory_equal(p, udp4, 12);
		assert_int_equal(p[12] << 8 | p[13], ETH_P_8021Q);
		assert_memory_equal(p + 16, udp4 + 12, 28);
	}
}

static void
vlan_changes_what_later_filters_see(void **state)
{
	struct fixture *f = *state;
	struct vlan_params push = {
		.v_action = TCA_VLAN_ACT_PUSH, .vid = 7, .protocol = htons(ETH_P_8021Q)
	};
	struct flower_match m = { 0 };
	struct classifier_rule_conf conf = {
		.place = { .prio = 4, .protocol = ETH_P_ALL, .kind = CLASSIFIER_FLOWER },
		.flower = &m
	};

	/* Both rules have the old protocol and the old key read. */
	add_matchall(f, 0, 1, ETH_P_ARP, TC_ACT_SHOT);
	m.key.vlan_tci = htons(7);
	m.mask.vlan_tci = htons(0x0fff);
	assert_int_equal(set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_STOLEN, NULL), 0);
	conf.place.prio = 6;
	assert_int_equal(set_rule(f, &conf, CLASSIFIER_CREATE, TC_ACT_UNSPEC, NULL), 0);
	rule_with(f, 5, 1, (const struct action_ops *[]){ &vlan_action_ops },
		(struct action_params *[]){ vlan_params_create(TC_ACT_UNSPEC, &push) });
	add_matchall(f, 0, 7, ETH_P_IP, TC_ACT_STOLEN);
	add_matchall(f, 0, 8, ETH_P_8021Q, TC_ACT_SHOT);
	put_frame(f, udp4, sizeof(udp4));
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 1);
	assert_int_equal(classifier_rule_hits(classifier_rule_find(
				 f->block, &(struct classifier_place){ .prio = 6, .handle = 1 })),
		1);
}

static void
pedit_sets_and_adds(void **state)
{
	struct fixture *f = *state;
	struct pedit_key keys[] = {
		/* munge ip ttl set 17; munge ip src set 203.0.113.9 */
		{ .header = TCA_PEDIT_KEY_EX_HDR_TYPE_IP4,
			.off = 8,
			.mask = htonl(0x00ffffff),
			.value = htonl(0x11000000) },
		{ .header = TCA_PEDIT_KEY_EX_HDR_TYPE_IP4, .off = 12, .value = htonl(0xcb007109) },
		/* munge udp dport add 2, in the low half of its word */
		{ .header = TCA_PEDIT_KEY_EX_HDR_TYPE_UDP,
			.command = TCA_PEDIT_KEY_EX_CMD_ADD,
			.off = 0,
			.mask = htonl(0xffff0000),
			.value = htonl(2) },
		/* munge eth dst: its last two bytes */
		{ .header = TCA_PEDIT_KEY_EX_HDR_TYPE_ETH,
			.off = 4,
			.mask = htonl(0x0000ffff),
			.value = htonl(0xaabb0000) },
	};
	uint8_t want[60];

	memcpy(want, udp4, sizeof(want));
	want[4] = 0xaa;
	want[5] = 0xbb;
	want[22] = 17;
	memcpy(want + 26, (uint8_t[]){ 203, 0, 113, 9 }, 4);
	want[37] = 55;
	rule_with_one(f, &pedit_action_ops, pedit_params_create(TC_ACT_OK, 0, 4, keys));
	put_frame(f, udp4, sizeof(udp4));
	for (uint32_t cut = 1; cut < 20; cut++)
		f->pkts[f->vector.n++] = test_frame(the_pool, udp4, sizeof(udp4), cut);
	run(f);
	for (unsigned int i = 0; i < f->vector.n; i++) {
		uint8_t buf[60];

		assert_memory_equal(rte_pktmbuf_read(f->pkts[i], 0, 60, buf), want, 60);
	}
}

static void
pedit_leaves_alone_what_does_not_fit(void **state)
{
	struct fixture *f = *state;
	struct pedit_key keys[] = {
		{ .header = TCA_PEDIT_KEY_EX_HDR_TYPE_IP4, .off = 12, .value = 1 },
		{ .header = TCA_PEDIT_KEY_EX_HDR_TYPE_TCP, .off = 0, .value = 1 },
	};
	static const int32_t bad[] = { -4, 2, 44, 48, INT32_MIN, INT32_MAX - 3 };
	struct action *a;
	struct action_stats stats;
	struct classifier_place place = { .prio = 1, .handle = 1 };
	uint8_t padded[60];

	rule_with_one(f, &pedit_action_ops, pedit_params_create(TC_ACT_OK, 0, 2, keys));
	put_frame(f, udp4, sizeof(udp4)); /* not TCP */
	put_ether(f, ETH_P_ARP);
	run(f);
	assert_int_equal(f->result.passed, 3);
	assert_memory_equal(rte_pktmbuf_mtod(f->pkts[0], const uint8_t *), udp4, 60);
	a = classifier_rule_conf(classifier_rule_find(f->block, &place))->actions[0];
	action_stats_get(a, &stats);
	assert_int_equal(stats.overlimits, 2);
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		keys[0].off = bad[i];
		action_replace(a, pedit_params_create(TC_ACT_OK, 0, 1, keys));
		run(f);
		assert_memory_equal(rte_pktmbuf_mtod(f->pkts[0], const uint8_t *), udp4, 60);
	}
	/* Padding behind layer 3 is not edited. */
	memcpy(padded, udp4, sizeof(padded));
	padded[17] = 30;
	put_frame(f, padded, sizeof(padded));
	keys[0].off = 28;
	action_replace(a, pedit_params_create(TC_ACT_OK, 0, 1, keys));
	run(f);
	assert_memory_equal(rte_pktmbuf_mtod(f->pkts[2], const uint8_t *), padded, 60);
	assert_memory_not_equal(rte_pktmbuf_mtod(f->pkts[0], const uint8_t *), udp4, 60);
	memcpy(rte_pktmbuf_mtod(f->pkts[0], uint8_t *), udp4, 60);
	keys[0].off = 40;
	action_replace(a, pedit_params_create(TC_ACT_OK, 0, 1, keys));
	run(f);
	assert_memory_not_equal(rte_pktmbuf_mtod(f->pkts[0], const uint8_t *), udp4, 60);
	assert_null(pedit_params_create(TC_ACT_OK, 0, 0, keys));
	assert_null(pedit_params_create(TC_ACT_OK, 0, PEDIT_KEYS_MAX + 1, keys));
	keys[0].header = 9;
	assert_null(pedit_params_create(TC_ACT_OK, 0, 1, keys));
}

static void
pedit_A21_a_shared_packet_is_copied(void **state)
{
	struct fixture *f = *state;
	struct pedit_key key = { .header = TCA_PEDIT_KEY_EX_HDR_TYPE_IP4, .off = 12, .value = 1 };
	struct rte_mbuf *shared;

	rule_with_one(f, &pedit_action_ops, pedit_params_create(TC_ACT_OK, 0, 1, &key));
	shared = put_frame(f, udp4, sizeof(udp4));
	rte_mbuf_refcnt_update(shared, 1);
	run(f);
	assert_ptr_not_equal(f->pkts[0], shared);
	assert_memory_equal(rte_pktmbuf_mtod(shared, const uint8_t *), udp4, sizeof(udp4));
	rte_pktmbuf_free(shared);
}

static void
police_lets_a_burst_through_and_then_the_rate(void **state)
{
	struct fixture *f = *state;
	/* A burst of ten packets of 60 bytes; the rate is next to nothing. */
	struct police_conf conf = {
		.rate = 60, .burst_ns = 10 * UINT64_C(1000000000), .conform = TC_ACT_OK
	};
	struct action_stats stats;
	struct classifier_place place = { .prio = 1, .handle = 1 };
	struct action *a;

	rule_with_one(f, &police_action_ops, police_params_create(TC_ACT_SHOT, &conf));
	for (unsigned int i = 0; i < 16; i++)
		put_frame(f, udp4, sizeof(udp4));
	run(f);
	assert_int_equal(f->result.passed, 0x03ff);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0xfc00);
	run(f);
	assert_int_equal(f->result.dropped[CLASSIFIER_DROP_SHOT], 0xffff);
	a = classifier_rule_conf(classifier_rule_find(f->block, &place))->actions[0];
	action_stats_get(a, &stats);
	assert_int_equal(stats.packets, 32);
	assert_int_equal(stats.overlimits, 22);
	assert_int_equal(stats.drops, 22);
	/* A change fills the bucket; the slowest rate there is lets one packet through. */
	conf = (struct police_conf){
		.rate = 1, .burst_ns = 60 * UINT64_C(1000000000), .conform = TC_ACT_OK
	};
	action_replace(a, police_params_create(TC_ACT_SHOT, &conf));
	run(f);
	assert_int_equal(f->result.passed, 0x0001);
	/* A bucket of packets begins empty: 100 a second come, five at most. */
	conf = (struct police_conf){
		.pkt_rate = 100, .pkt_burst_ns = 50000000, .conform = TC_ACT_OK
	};
	action_replace(a, police_params_create(TC_ACT_SHOT, &conf));
	run(f);
	assert_true(f->result.passed < 0x001f);
	usleep(100000);
	run(f);
	assert_int_equal(f->result.passed, 0x001f);
}

static void
police_mtu_and_no_rate(void **state)
{
	struct fixture *f = *state;
	struct police_conf conf = { .mtu = 60, .conform = TC_ACT_OK };
	uint8_t longer[61] = { 0 };

	rule_with_one(f, &police_action_ops, police_params_create(TC_ACT_SHOT, &conf));
	put_frame(f, udp4, sizeof(udp4));
	put_frame(f, longer, sizeof(longer));
	run(f);
	assert_int_equal(f->result.passed, 1);
	conf = (struct police_conf){ .rate = 5 };
	assert_null(police_params_create(TC_ACT_SHOT, &conf));
	conf = (struct police_conf){ .peakrate = 5, .mtu = 60 };
	assert_null(police_params_create(TC_ACT_SHOT, &conf));
}

static void
police_takes_from_all_buckets_or_none(void **state)
{
	struct fixture *f = *state;
	/* Bytes for eight packets, the packet rate allows two: six give their bytes back. */
	struct police_conf conf = { .rate = 60,
		.burst_ns = 8 * UINT64_C(1000000000),
		.pkt_rate = 20,
		.pkt_burst_ns = 100000000,
		.conform = TC_ACT_OK };

	rule_with_one(f, &police_action_ops, police_params_create(TC_ACT_SHOT, &conf));
	for (unsigned int i = 0; i < 8; i++)
		put_frame(f, udp4, sizeof(udp4));
	run(f);
	assert_true(f->result.passed < 0x03);
	for (unsigned int i = 0; i < 2; i++) {
		usleep(150000);
		run(f);
		assert_int_equal(f->result.passed, 0x03);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(mirred_redirect_names_the_port),
		FIXTURE_TEST(mirred_mirror_copies_and_goes_on),
		FIXTURE_TEST(mirred_redirect_that_goes_on_is_a_copy),
		FIXTURE_TEST(mirred_refuses_what_is_not_a_port),
		FIXTURE_TEST(skbedit_sets_what_it_is_told),
		FIXTURE_TEST(skbedit_refuses_what_it_cannot),
		FIXTURE_TEST(vlan_push_and_pop_are_inverse),
		FIXTURE_TEST(vlan_modify_keeps_the_priority_it_is_not_given),
		FIXTURE_TEST(vlan_A21_a_shared_packet_is_copied),
		FIXTURE_TEST(vlan_push_in_cut_chains),
		FIXTURE_TEST(vlan_changes_what_later_filters_see),
		FIXTURE_TEST(pedit_sets_and_adds),
		FIXTURE_TEST(pedit_leaves_alone_what_does_not_fit),
		FIXTURE_TEST(pedit_A21_a_shared_packet_is_copied),
		FIXTURE_TEST(police_lets_a_burst_through_and_then_the_rate),
		FIXTURE_TEST(police_mtu_and_no_rate),
		FIXTURE_TEST(police_takes_from_all_buckets_or_none),
	};

	return fixture_main("classifier_actions", tests, RTE_DIM(tests));
}
