/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Rules A21-A29: memory, marks, flags, verdicts. What stands in a frame is vectors.c's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rte_ethdev.h>
#include <rte_net.h>
#include <sys/mman.h>

#include "harness.h"
#include "nic.h"
#include "support.h"

#define POOL_SIZE 63
#define ALL CSUM_ACTION_FLAGS
#define OFFERS \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_SCTP_CKSUM)
#define UDP4_FIELD 40
#define IP4_FIELD 24

static struct harness harness;
static struct rte_mempool *pool;

/* IPv4, UDP, 14 bytes of payload; both sums are still to be made. */
static const uint8_t udp4[] = { 0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0, 0x45, 0, 0,
	0x2a, 0x12, 0x34, 0, 0, 0x40, 0x11, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, 0x03, 0xe8, 0x07,
	0xd0, 0, 0x16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

/* udp4 with sums wrong on the way in and right on the way out. */
static uint8_t wrong[sizeof(udp4)], right[sizeof(udp4)];

static struct rte_mbuf *
frame(const uint8_t *data)
{
	return test_frame(pool, data, sizeof(udp4), 0);
}

static void
assert_frame(const struct rte_mbuf *m, const uint8_t *data)
{
	assert_true(harness_equal(m, data, sizeof(udp4)));
}

static void
csum_A21_shared_mbuf_is_copied(void **state)
{
	struct rte_mbuf *m = frame(wrong), *other = m;

	(void)state;
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_ptr_not_equal(m, other);
	assert_frame(m, right);
	assert_frame(other, wrong);
	assert_int_equal(rte_mbuf_refcnt_read(other), 1);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(other);
	assert_true(test_pool_full(pool));
}

static void
csum_A21_indirect_mbuf_is_copied(void **state)
{
	struct rte_mbuf *direct = frame(wrong), *m = rte_pktmbuf_clone(direct, pool);

	(void)state;
	m->vlan_tci = 77;
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_frame(m, right);
	assert_frame(direct, wrong);
	assert_int_equal(m->ol_flags & RTE_MBUF_F_INDIRECT, 0);
	assert_int_equal(m->vlan_tci, 77);
	assert_int_equal(rte_mbuf_refcnt_read(direct), 1);
	rte_pktmbuf_free(m);
	/* and the direct one while somebody is attached to it */
	m = rte_pktmbuf_clone(direct, pool);
	assert_int_equal(harness_run(&harness, NULL, ALL, &direct), CSUM_ACTION_COMPUTED);
	assert_frame(direct, right);
	assert_frame(m, wrong);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(direct);
	assert_true(test_pool_full(pool));
}

static void
external_free(void *addr, void *arg)
{
	(void)addr;
	++*(unsigned int *)arg;
}

static void
csum_A21_external_readonly_mbuf_is_copied(void **state)
{
	struct rte_mbuf_ext_shared_info info;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	unsigned int freed = 0;
	uint8_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	memcpy(page, wrong, sizeof(wrong));
	assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
	info.free_cb = external_free;
	info.fcb_opaque = &freed;
	rte_mbuf_ext_refcnt_set(&info, 1);
	rte_pktmbuf_attach_extbuf(m, page, RTE_BAD_IOVA, 4096, &info);
	m->data_len = sizeof(wrong);
	m->pkt_len = sizeof(wrong);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_frame(m, right);
	assert_int_equal(m->ol_flags & RTE_MBUF_F_EXTERNAL, 0);
	assert_int_equal(freed, 1);
	rte_pktmbuf_free(m);
	munmap(page, 4096);
	assert_true(test_pool_full(pool));
}

static void
csum_A21_right_sums_need_no_copy(void **state)
{
	struct rte_mbuf *m = frame(right), *same = m;

	(void)state;
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_ptr_equal(m, same);
	rte_pktmbuf_refcnt_update(m, -1);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
csum_A21_shared_payload_needs_no_copy(void **state)
{
	const uint32_t cut = 44;
	struct rte_mbuf *m = harness_chain(pool, wrong, sizeof(wrong), &cut, 1), *same = m;

	(void)state;
	rte_mbuf_refcnt_update(m->next, 1);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_ptr_equal(m, same);
	assert_frame(m, right);
	rte_mbuf_refcnt_update(m->next, -1);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
csum_A21_no_mbuf_for_a_copy_untouched(void **state)
{
	struct rte_mbuf *m = frame(wrong), *same = m, *rest[POOL_SIZE - 1];

	(void)state;
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, rest, POOL_SIZE - 1), 0);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_NO_COPY);
	assert_ptr_equal(m, same);
	assert_frame(m, wrong);
	rte_pktmbuf_free_bulk(rest, POOL_SIZE - 1);
	rte_pktmbuf_refcnt_update(m, -1);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

/* The vector and the burst may keep the packets in arrays of their own. */
static void
csum_A21_copy_stands_in_both_arrays(void **state)
{
	struct rte_mbuf *old = frame(wrong), *here[1] = { old }, *there[1] = { old };
	struct packet_view view;
	struct packet_vector vector = { .pkts = here, .views = &view, .n = 1 };
	struct action_burst burst = { .vector = &vector, .pkts = there };
	uint64_t drops = 0, overlimits = 0;

	(void)state;
	rte_pktmbuf_refcnt_update(old, 1);
	packet_vector_parse(&vector);
	csum_action_ops.run(NULL, harness.params[ALL], &burst, 1, &drops, &overlimits);
	harness_reason(&harness);
	assert_ptr_not_equal(there[0], old);
	assert_ptr_equal(here[0], there[0]);
	assert_frame(here[0], right);
	rte_pktmbuf_free(here[0]);
	rte_pktmbuf_free(old);
	assert_true(test_pool_full(pool));
}

static void
csum_A22_marked_packets_untouched(void **state)
{
	static const uint64_t marks[] = { RTE_MBUF_F_TX_TCP_SEG, RTE_MBUF_F_TX_UDP_SEG,
		RTE_MBUF_F_TX_TUNNEL_VXLAN | RTE_MBUF_F_TX_OUTER_IPV4, RTE_MBUF_F_TX_TUNNEL_GRE,
		RTE_MBUF_F_TX_TUNNEL_ESP, RTE_MBUF_F_TX_OUTER_IP_CKSUM,
		RTE_MBUF_F_TX_OUTER_UDP_CKSUM, RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM };
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(marks); i++) {
		struct rte_mbuf *m = frame(wrong);

		m->ol_flags |= marks[i];
		assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_MARKED);
		assert_frame(m, wrong);
		assert_int_equal(m->ol_flags & marks[i], marks[i]);
		assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, 0), 0);
		assert_frame(m, wrong);
		rte_pktmbuf_free(m);
	}
	assert_true(test_pool_full(pool));
}

/* UDP's value has both bits of the field, TCP's and SCTP's one each: none of them is a mark. */
static void
csum_A22_l4_cksum_is_a_two_bit_field(void **state)
{
	static const uint64_t values[] = { RTE_MBUF_F_TX_TCP_CKSUM, RTE_MBUF_F_TX_SCTP_CKSUM,
		RTE_MBUF_F_TX_UDP_CKSUM };
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(values); i++) {
		struct rte_mbuf *m = frame(wrong);

		m->ol_flags |= values[i] | RTE_MBUF_F_TX_IPV4;
		assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
		assert_frame(m, right);
		assert_int_equal(m->ol_flags, 0);
		rte_pktmbuf_free(m);
	}
	assert_true(test_pool_full(pool));
}

/* As virtio hands it over: the field has the pseudo-header's sum, the rest is to be added. */
static struct rte_mbuf *
received_without_sum(void)
{
	struct rte_mbuf *m = frame(right);
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	uint16_t preset = rte_ipv4_phdr_cksum(ip, 0);

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, UDP4_FIELD), &preset, sizeof(preset));
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_NONE;
	return m;
}

static void
csum_A23_rx_none_is_completed(void **state)
{
	struct rte_mbuf *m = received_without_sum();

	(void)state;
	assert_true(csum_action_pending(&m, 1));
	assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, 0), 0);
	assert_int_equal(harness_reason(&harness), CSUM_ACTION_COMPLETED);
	assert_frame(m, right);
	assert_false(csum_action_pending(&m, 1));
	rte_pktmbuf_free(m);
	/* the action does it too, whoever comes first */
	m = received_without_sum();
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_frame(m, right);
	assert_false(csum_action_pending(&m, 1));
	rte_pktmbuf_free(m);
	/* 0 in the field is no "none" then */
	m = received_without_sum();
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, UDP4_FIELD), 0, 2);
	assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, 0), 0);
	harness_reason(&harness);
	assert_frame(m, right);
	rte_pktmbuf_free(m);
	/* the IPv4 header's flag */
	m = frame(right);
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, IP4_FIELD), 0, 2);
	m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_NONE;
	assert_true(csum_action_pending(&m, 1));
	assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, 0), 0);
	harness_reason(&harness);
	assert_frame(m, right);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
csum_A23_rx_none_is_left_to_a_nic_that_can(void **state)
{
	struct rte_mbuf *m = received_without_sum();

	(void)state;
	assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, OFFERS), 0);
	harness_reason(&harness);
	assert_int_equal(m->ol_flags & RTE_MBUF_F_TX_L4_MASK, RTE_MBUF_F_TX_UDP_CKSUM);
	assert_int_equal(m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, 0);
	assert_int_equal(rte_net_intel_cksum_prepare(m), 0);
	assert_true(nic_send(m, OFFERS));
	assert_frame(m, right);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
csum_A23_good_and_bad_are_not_pending(void **state)
{
	static const uint64_t flags[] = { 0, RTE_MBUF_F_RX_L4_CKSUM_GOOD,
		RTE_MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_BAD,
		RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_GOOD,
		RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_VLAN };
	struct rte_mbuf *m = frame(wrong);
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(flags); i++) {
		m->ol_flags = flags[i];
		assert_false(csum_action_pending(&m, 1));
		assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, 0), 0);
		assert_int_equal(m->ol_flags, flags[i]);
		assert_frame(m, wrong);
	}
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

/* A fragment, and a packet whose lengths do not fit, cannot be completed: the caller is told. */
static void
csum_A23_what_cannot_be_completed_is_told(void **state)
{
	struct rte_mbuf *m[2] = { received_without_sum(), received_without_sum() };

	(void)state;
	*rte_pktmbuf_mtod_offset(m[1], uint8_t *, 20) = 0x20;
	assert_int_equal(csum_action_complete(harness.csum, 0, m, 2, 0), 2);
	harness_reason(&harness);
	rte_pktmbuf_free_bulk(m, 2);
	assert_true(test_pool_full(pool));
}

static void
csum_A24_software_sum_clears_tx_flags(void **state)
{
	const uint64_t asked =
		RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	const uint64_t others = RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_RX_VLAN;
	struct rte_mbuf *m = frame(wrong);

	(void)state;
	m->ol_flags = asked | others;
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_int_equal(m->ol_flags, others);
	/* one of two: the other stays asked for, and the address family with it */
	m->ol_flags = asked;
	harness_run(&harness, NULL, TCA_CSUM_UPDATE_FLAG_UDP, &m);
	assert_int_equal(m->ol_flags, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
	m->ol_flags = asked;
	harness_run(&harness, NULL, TCA_CSUM_UPDATE_FLAG_IPV4HDR, &m);
	assert_int_equal(m->ol_flags, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM);
	/* what Rx said of a sum that was replaced is forgotten */
	m->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_IP_CKSUM_BAD;
	harness_run(&harness, NULL, ALL, &m);
	assert_int_equal(m->ol_flags, 0);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
csum_A25_left_sums_are_preset(void **state)
{
	struct rte_mbuf *m = frame(wrong);
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	uint16_t field;

	(void)state;
	csum_action_offload_set(harness.csum, OFFERS);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_LEFT);
	csum_action_offload_set(harness.csum, 0);
	memcpy(&field, rte_pktmbuf_mtod_offset(m, uint8_t *, UDP4_FIELD), sizeof(field));
	assert_int_equal(ip->hdr_checksum, 0);
	assert_int_equal(field, rte_ipv4_phdr_cksum(ip, m->ol_flags));
	assert_int_equal(m->l2_len, 14);
	assert_int_equal(m->l3_len, 20);
	assert_int_equal(
		m->ol_flags, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM);
	/* a second action takes it back */
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_frame(m, right);
	assert_int_equal(m->ol_flags, 0);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

/* Some NICs sum to the end of the frame: with a trailer software does it. Nor is memory of others
 * preset. */
static void
csum_A25_left_only_where_it_suits(void **state)
{
	struct rte_mbuf *m = frame(wrong), *other;

	(void)state;
	csum_action_offload_set(harness.csum, OFFERS);
	memcpy(rte_pktmbuf_append(m, 3), "xyz", 3);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_int_equal(m->ol_flags, 0);
	rte_pktmbuf_free(m);
	m = other = frame(wrong);
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_COMPUTED);
	assert_frame(m, right);
	assert_frame(other, wrong);
	csum_action_offload_set(harness.csum, 0);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(other);
	assert_true(test_pool_full(pool));
}

/* vlan push after csum: what was left must be found behind the tag. */
static void
csum_A25_tag_pushed_after_a_sum_was_left(void **state)
{
	static const uint8_t tag[4] = { 0x81, 0, 0, 5 };
	struct rte_mbuf *m = frame(wrong);
	uint8_t *p, want[sizeof(right) + 4];

	(void)state;
	csum_action_offload_set(harness.csum, OFFERS);
	assert_int_equal(harness_run(&harness, NULL, ALL, &m), CSUM_ACTION_LEFT);
	csum_action_offload_set(harness.csum, 0);
	assert_non_null(rte_pktmbuf_prepend(m, 4));
	p = rte_pktmbuf_mtod(m, uint8_t *);
	memmove(p, p + 4, 12);
	memcpy(p + 12, tag, 4);
	assert_int_equal(csum_action_complete(harness.csum, 0, &m, 1, OFFERS), 0);
	harness_reason(&harness);
	assert_int_equal(m->l2_len, 18);
	assert_int_equal(rte_net_intel_cksum_prepare(m), 0);
	assert_true(nic_send(m, OFFERS));
	memcpy(want, right, 12);
	memcpy(want + 12, tag, 4);
	memcpy(want + 16, right + 12, sizeof(right) - 12);
	assert_true(harness_equal(m, want, sizeof(want)));
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
check(const uint8_t *data, uint32_t len, uint64_t ol_flags, enum csum_action_state ip,
	enum csum_action_state l4)
{
	struct rte_mbuf *m = test_frame(pool, data, len, 0);
	enum csum_action_state got_ip, got_l4;
	struct packet_view view;

	m->ol_flags = ol_flags;
	packet_view_parse(m, &view);
	csum_action_check(harness.csum, m, &view, &got_ip, &got_l4);
	assert_int_equal(got_ip, ip);
	assert_int_equal(got_l4, l4);
	assert_true(harness_equal(m, data, len));
	assert_int_equal(m->ol_flags, ol_flags);
	rte_pktmbuf_free(m);
}

#define CHECK(data, ip, l4) \
	check(data, sizeof(data), 0, CSUM_ACTION_STATE_##ip, CSUM_ACTION_STATE_##l4)

static void
csum_A26_checker_never_modifies_and_takes_both_zeros(void **state)
{
	uint8_t f[sizeof(udp4)];
	/* ICMP whose sum is 0: every word but the first two is 0xffff */
	uint8_t icmp[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0x1c, 0, 1, 0, 0,
		64, 1, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff,
		0xff };

	(void)state;
	CHECK(right, GOOD, GOOD);
	CHECK(wrong, BAD, BAD);
	memcpy(f, right, sizeof(f));
	f[UDP4_FIELD] = f[UDP4_FIELD + 1] = 0;
	CHECK(f, GOOD, NONE);
	reference_update(icmp, sizeof(icmp), ALL);
	assert_int_equal(icmp[36] << 8 | icmp[37], 0);
	CHECK(icmp, GOOD, GOOD);
	icmp[36] = icmp[37] = 0xff;
	CHECK(icmp, GOOD, GOOD);
	icmp[37] = 0xfe;
	CHECK(icmp, GOOD, BAD);
	check(wrong, sizeof(wrong), RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4,
		CSUM_ACTION_STATE_BAD, CSUM_ACTION_STATE_PENDING);
	check(right, sizeof(right), RTE_MBUF_F_RX_L4_CKSUM_NONE, CSUM_ACTION_STATE_GOOD,
		CSUM_ACTION_STATE_PENDING);
	check(right, sizeof(right) - 1, 0, CSUM_ACTION_STATE_GOOD, CSUM_ACTION_STATE_ABSENT);
	check(right, 13, 0, CSUM_ACTION_STATE_ABSENT, CSUM_ACTION_STATE_ABSENT);
	assert_true(test_pool_full(pool));
}

static void
csum_A6_udp6_zero_is_never_good(void **state)
{
	uint8_t f[14 + 40 + 8 + 2] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0,
		0, 0, 10, 17, 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20,
		0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0, 10, 0, 0, 0,
		0 };
	uint16_t word;

	(void)state;
	CHECK(f, ABSENT, BAD);
	/* the payload that makes the sum 0: sent as 0xffff, and 0 is bad although it would add up
	 */
	reference_update(f, sizeof(f), ALL);
	memcpy(&word, f + 60, 2);
	memcpy(f + 62, &word, 2);
	f[60] = f[61] = 0xff;
	CHECK(f, ABSENT, GOOD);
	f[60] = f[61] = 0;
	CHECK(f, ABSENT, BAD);
	assert_true(test_pool_full(pool));
}

/* Verdict and flags come from the one snapshot that run() is given; drops count besides. */
static void
csum_A29_drops_are_counted_and_not_looked_at(void **state)
{
	struct action_params *params = csum_action_params_create(ALL, TC_ACT_SHOT);
	struct rte_mbuf *pkts[3] = { frame(wrong), frame(wrong), frame(wrong) };
	struct packet_view views[3];
	struct packet_vector vector = { .pkts = pkts, .views = views, .n = 3 };
	struct action_burst burst = { .vector = &vector, .pkts = pkts };
	uint64_t drops = 7, overlimits = 0;

	(void)state;
	packet_vector_parse(&vector);
	assert_int_equal(
		csum_action_ops.run(NULL, params, &burst, 5, &drops, &overlimits), TC_ACT_SHOT);
	assert_int_equal(drops, 9);
	assert_int_equal(overlimits, 0);
	assert_frame(pkts[0], wrong);
	params->verdict = TC_ACT_GOTO_CHAIN | 5;
	assert_int_equal(csum_action_ops.run(NULL, params, &burst, 5, &drops, &overlimits),
		TC_ACT_GOTO_CHAIN | 5);
	assert_int_equal(drops, 9);
	assert_frame(pkts[0], right);
	assert_frame(pkts[1], wrong);
	assert_frame(pkts[2], right);
	rte_pktmbuf_free_bulk(pkts, 3);
	free(params);
	assert_true(test_pool_full(pool));
}

static void
csum_params_refuse_unknown_flags(void **state)
{
	struct action_params *params;
	uint32_t bit;

	(void)state;
	for (bit = 1; bit != 0; bit <<= 1) {
		rte_errno = 0;
		params = csum_action_params_create(bit, TC_ACT_OK);
		if ((bit & ALL) != 0) {
			assert_non_null(params);
			assert_int_equal(params->verdict, TC_ACT_OK);
		} else {
			assert_null(params);
			assert_int_equal(rte_errno, EINVAL);
		}
		free(params);
	}
}

static void
csum_reasons_have_names(void **state)
{
	unsigned int i, j;

	(void)state;
	for (i = 0; i < CSUM_ACTION_REASON_MAX; i++) {
		assert_string_not_equal(csum_action_reason_name(i), "?");
		assert_string_not_equal(csum_action_reason_text(i), "?");
		for (j = 0; j < i; j++)
			assert_string_not_equal(
				csum_action_reason_name(i), csum_action_reason_name(j));
	}
	assert_string_equal(csum_action_reason_name(i), "?");
	assert_int_equal(csum_action_count(harness.csum, i), 0);
	for (i = PACKET_STOP_NOT_IP; i < PACKET_STOP_MAX; i++) {
		for (j = 0; j < CSUM_ACTION_REASON_MAX; j++)
			if (strcmp(packet_stop_name(i), csum_action_reason_name(j)) == 0)
				break;
		assert_int_not_equal(j, CSUM_ACTION_REASON_MAX);
	}
	rte_errno = 0;
	assert_null(csum_action_create(0));
	assert_int_equal(rte_errno, EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csum_A6_udp6_zero_is_never_good),
		cmocka_unit_test(csum_A21_shared_mbuf_is_copied),
		cmocka_unit_test(csum_A21_indirect_mbuf_is_copied),
		cmocka_unit_test(csum_A21_external_readonly_mbuf_is_copied),
		cmocka_unit_test(csum_A21_right_sums_need_no_copy),
		cmocka_unit_test(csum_A21_shared_payload_needs_no_copy),
		cmocka_unit_test(csum_A21_no_mbuf_for_a_copy_untouched),
		cmocka_unit_test(csum_A21_copy_stands_in_both_arrays),
		cmocka_unit_test(csum_A22_marked_packets_untouched),
		cmocka_unit_test(csum_A22_l4_cksum_is_a_two_bit_field),
		cmocka_unit_test(csum_A23_rx_none_is_completed),
		cmocka_unit_test(csum_A23_rx_none_is_left_to_a_nic_that_can),
		cmocka_unit_test(csum_A23_good_and_bad_are_not_pending),
		cmocka_unit_test(csum_A23_what_cannot_be_completed_is_told),
		cmocka_unit_test(csum_A24_software_sum_clears_tx_flags),
		cmocka_unit_test(csum_A25_left_sums_are_preset),
		cmocka_unit_test(csum_A25_left_only_where_it_suits),
		cmocka_unit_test(csum_A25_tag_pushed_after_a_sum_was_left),
		cmocka_unit_test(csum_A26_checker_never_modifies_and_takes_both_zeros),
		cmocka_unit_test(csum_A29_drops_are_counted_and_not_looked_at),
		cmocka_unit_test(csum_params_refuse_unknown_flags),
		cmocka_unit_test(csum_reasons_have_names),
	};
	int failed;

	test_eal_init("csum-rules", "0");
	pool = test_pool("rules", POOL_SIZE);
	harness_open(&harness);
	memcpy(wrong, udp4, sizeof(wrong));
	wrong[UDP4_FIELD] = wrong[IP4_FIELD] = 0x77;
	memcpy(right, wrong, sizeof(right));
	reference_update(right, sizeof(right), ALL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	harness_close(&harness);
	return failed == 0 ? 0 : 1;
}
