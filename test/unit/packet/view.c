/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What a view says of a frame: every field, for frames flat and cut at every byte. That the view is
 * right where sums depend on it is tested with csum_action.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "packet/packet.h"
#include "support.h"

static struct rte_mempool *pool;

/* Builds frames from the front. */
struct build {
	uint8_t data[512];
	uint32_t len;
};

static void
add(struct build *b, const void *p, uint32_t n)
{
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

#define ADD(b, ...) \
	add(b, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
#define ADDRESSES 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1
#define HOST6(n) 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n

static void
add_ipv4(struct build *b, uint8_t total, uint16_t frag, uint8_t proto)
{
	ADD(b, 0x45, 0, 0, total, 0, 1, (uint8_t)(frag >> 8), (uint8_t)frag, 64, proto, 0, 0, 192,
		0, 2, 1, 198, 51, 100, 7);
}

static void
add_ipv6(struct build *b, uint8_t length, uint8_t next)
{
	ADD(b, 0x60, 0, 0, 0, 0, length, next, 64, HOST6(1), HOST6(2));
}

static void
expect_fields(const struct packet_view *v, const struct packet_view *want)
{
	assert_int_equal(v->stop, want->stop);
	assert_int_equal(v->l3, want->l3);
	assert_int_equal(v->flags, want->flags);
	assert_int_equal(v->l3_off, want->l3_off);
	assert_int_equal(v->l3_end, want->l3_end);
	assert_int_equal(v->l4_off, want->l4_off);
	assert_int_equal(v->src_off, want->src_off);
	assert_int_equal(v->dst_off, want->dst_off);
	assert_int_equal(v->rest_off, want->rest_off);
	assert_int_equal(v->ether_type, want->ether_type);
	assert_int_equal(v->l4_proto, want->l4_proto);
	assert_int_equal(v->n_vlan, want->n_vlan);
}

/* The same view from one segment, from two cut anywhere, and from segments of a byte. */
static void
expect(const struct build *b, const struct packet_view *want)
{
	struct packet_view views[3];
	struct rte_mbuf *m[3];
	uint32_t cut;

	for (cut = 1; cut <= b->len + 1; cut++) {
		m[0] = test_frame(pool, b->data, b->len, 0);
		m[1] = test_frame(pool, b->data, b->len, cut);
		m[2] = test_frame(pool, b->data, b->len < cut ? b->len : cut, 0);
		if (cut < b->len)
			assert_int_equal(rte_pktmbuf_chain(m[2],
						 test_frame(pool, b->data + cut, b->len - cut, 0)),
				0);
		memset(views, 0xa5, sizeof(views));
		packet_view_parse_burst(m, views, 2);
		packet_view_parse(m[2], &views[2]);
		expect_fields(&views[0], want);
		expect_fields(&views[1], want);
		expect_fields(&views[2], want);
		rte_pktmbuf_free_bulk(m, 3);
	}
	assert_true(test_pool_full(pool));
}

static void
packet_plain_ipv4(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0);
	add_ipv4(&b, 28, 0x4000, 17);
	ADD(&b, 0, 1, 0, 2, 0, 8, 0, 0);
	ADD(&b, 0, 0, 0); /* padding */
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.flags = PACKET_F_L3,
			.l3_off = 14,
			.l3_end = 42,
			.l4_off = 34,
			.src_off = 26,
			.dst_off = 30,
			.ether_type = 0x0800,
			.l4_proto = 17 });
}

static void
packet_plain_ipv6(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x86, 0xdd);
	add_ipv6(&b, 8, 17);
	ADD(&b, 0, 1, 0, 2, 0, 8, 0, 0, 0xff);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV6,
			.flags = PACKET_F_L3,
			.l3_off = 14,
			.l3_end = 62,
			.l4_off = 54,
			.src_off = 22,
			.dst_off = 38,
			.ether_type = 0x86dd,
			.l4_proto = 17 });
}

static void
packet_tags(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x88, 0xa8, 0, 1, 0x91, 0, 0, 2, 0x81, 0, 0, 3, 0x08, 0);
	add_ipv4(&b, 21, 0, 6);
	ADD(&b, 9);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.flags = PACKET_F_L3,
			.l3_off = 26,
			.l3_end = 47,
			.l4_off = 46,
			.src_off = 38,
			.dst_off = 42,
			.ether_type = 0x0800,
			.l4_proto = 6,
			.n_vlan = 3 });
	b.len = 23;
	expect(&b,
		&(struct packet_view){
			.stop = PACKET_STOP_CUT_L2, .ether_type = 0x8100, .n_vlan = 2 });
	b.len = 12;
	ADD(&b, 0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 0x88, 0xa8, 0, 4, 0x08, 0, 0, 0);
	expect(&b,
		&(struct packet_view){
			.stop = PACKET_STOP_VLAN_DEPTH, .ether_type = 0x88a8, .n_vlan = 3 });
	b.len = 13;
	expect(&b, &(struct packet_view){ .stop = PACKET_STOP_CUT_L2 });
}

static void
packet_not_ip(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0x06, 1, 2, 3);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_ARP,
			.stop = PACKET_STOP_NOT_IP,
			.l3_off = 14,
			.l3_end = 17,
			.ether_type = 0x0806 });
	b.data[12] = 0x05; /* a length: LLC follows */
	b.data[13] = 0xdc;
	expect(&b,
		&(struct packet_view){ .stop = PACKET_STOP_NOT_IP,
			.l3_off = 14,
			.l3_end = 17,
			.ether_type = 0x05dc });
	b.data[12] = 0x08;
	b.data[13] = 0;
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.stop = PACKET_STOP_MALFORMED_L3,
			.l3_off = 14,
			.l3_end = 14,
			.ether_type = 0x0800 });
}

static void
packet_cut(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0);
	add_ipv4(&b, 60, 0, 17);
	ADD(&b, 0, 1, 0, 2, 0, 40, 0, 0);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.flags = PACKET_F_L3 | PACKET_F_CUT,
			.l3_off = 14,
			.l3_end = 42,
			.l4_off = 34,
			.src_off = 26,
			.dst_off = 30,
			.ether_type = 0x0800,
			.l4_proto = 17 });
	b.len = 34;
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.flags = PACKET_F_L3 | PACKET_F_CUT,
			.stop = PACKET_STOP_CUT_L4,
			.l3_off = 14,
			.l3_end = 34,
			.src_off = 26,
			.dst_off = 30,
			.ether_type = 0x0800 });
}

static void
packet_fragments(void **state)
{
	struct build b = { .len = 0 };
	struct packet_view want = { .l3 = PACKET_L3_IPV4,
		.stop = PACKET_STOP_FRAGMENT,
		.flags = PACKET_F_L3 | PACKET_F_FRAGMENT | PACKET_F_FIRST_FRAG,
		.l3_off = 14,
		.l3_end = 42,
		.src_off = 26,
		.dst_off = 30,
		.rest_off = 34,
		.ether_type = 0x0800,
		.l4_proto = 17 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0);
	add_ipv4(&b, 28, 0x2000, 17);
	ADD(&b, 0, 1, 0, 2, 0, 40, 0, 0);
	expect(&b, &want);
	b.data[21] = 1;
	want.flags = PACKET_F_L3 | PACKET_F_FRAGMENT;
	want.rest_off = 0;
	expect(&b, &want);
	b.len = 0;
	ADD(&b, ADDRESSES, 0x86, 0xdd);
	add_ipv6(&b, 12, 44);
	ADD(&b, 17, 0, 0, 1, 0, 0, 0, 7, 0, 1, 0, 2);
	want = (struct packet_view){ .l3 = PACKET_L3_IPV6,
		.stop = PACKET_STOP_FRAGMENT,
		.flags = PACKET_F_L3 | PACKET_F_FRAGMENT | PACKET_F_FIRST_FRAG,
		.l3_off = 14,
		.l3_end = 66,
		.src_off = 22,
		.dst_off = 38,
		.rest_off = 62,
		.ether_type = 0x86dd,
		.l4_proto = 17 };
	expect(&b, &want);
	b.data[57] = 9;
	want.flags = PACKET_F_L3 | PACKET_F_FRAGMENT;
	want.rest_off = 0;
	expect(&b, &want);
	b.data[57] = 0; /* atomic */
	want.flags = PACKET_F_L3;
	want.stop = PACKET_STOP_NONE;
	want.l4_off = 62;
	expect(&b, &want);
}

static void
packet_opaque(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0);
	add_ipv4(&b, 28, 0, 50);
	ADD(&b, 0, 0, 1, 0, 0, 0, 0, 1);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.stop = PACKET_STOP_OPAQUE,
			.flags = PACKET_F_L3,
			.l3_off = 14,
			.l3_end = 42,
			.src_off = 26,
			.dst_off = 30,
			.rest_off = 34,
			.ether_type = 0x0800,
			.l4_proto = 50 });
	b.len = 0;
	ADD(&b, ADDRESSES, 0x86, 0xdd);
	add_ipv6(&b, 16, 60);
	ADD(&b, 51, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV6,
			.stop = PACKET_STOP_OPAQUE,
			.flags = PACKET_F_L3,
			.l3_off = 14,
			.l3_end = 70,
			.src_off = 22,
			.dst_off = 38,
			.rest_off = 62,
			.ether_type = 0x86dd,
			.l4_proto = 51 });
}

static void
packet_final_destination(void **state)
{
	struct build b = { .len = 0 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0, 0x48, 0, 0, 34, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51,
		100, 7);
	ADD(&b, 1, 131, 11, 4, 203, 0, 113, 1, 203, 0, 113, 2, 0, 0);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV4,
			.flags = PACKET_F_L3 | PACKET_F_ROUTED,
			.l3_off = 14,
			.l3_end = 48,
			.l4_off = 46,
			.src_off = 26,
			.dst_off = 42,
			.ether_type = 0x0800,
			.l4_proto = 17 });
	b.len = 0;
	ADD(&b, ADDRESSES, 0x86, 0xdd);
	add_ipv6(&b, 73, 60);
	ADD(&b, 43, 2, 1, 2, 0, 0, 201, 16, HOST6(9));
	ADD(&b, 6, 4, 0, 1, 0, 0, 0, 0, HOST6(3), HOST6(4), 77, 0, 0, 0, 0, 0, 0, 0, 0);
	expect(&b,
		&(struct packet_view){ .l3 = PACKET_L3_IPV6,
			.flags = PACKET_F_L3 | PACKET_F_ROUTED | PACKET_F_HOME,
			.l3_off = 14,
			.l3_end = 127,
			.l4_off = 118,
			.src_off = 62,
			.dst_off = 102,
			.ether_type = 0x86dd,
			.l4_proto = 6 });
}

static void
packet_vector_parses_once(void **state)
{
	struct build b = { .len = 0 };
	struct rte_mbuf *m;
	struct packet_view view;
	struct packet_vector v = { .pkts = &m, .views = &view, .n = 1 };

	(void)state;
	ADD(&b, ADDRESSES, 0x08, 0x06);
	m = test_frame(pool, b.data, b.len, 0);
	assert_int_equal(packet_vector_mask(&v), 1);
	packet_vector_parse(&v);
	assert_int_equal(view.l3, PACKET_L3_ARP);
	view.l3 = 99;
	packet_vector_parse(&v);
	assert_int_equal(view.l3, 99);
	v.n = 64;
	assert_true(packet_vector_mask(&v) == UINT64_MAX);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
packet_meta_is_one_field(void **state)
{
	int off = packet_meta_register();
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	(void)state;
	assert_true(off > 0 && off % 4 == 0);
	assert_int_equal(packet_meta_register(), off);
	packet_meta(m, off)->mark = 5;
	assert_int_equal(packet_meta(m, off)->mark, 5);
	rte_pktmbuf_free(m);
	assert_true(test_pool_full(pool));
}

static void
packet_stops_have_names(void **state)
{
	unsigned int i, j;

	(void)state;
	for (i = 0; i < PACKET_STOP_MAX; i++) {
		assert_string_not_equal(packet_stop_name(i), "?");
		assert_string_not_equal(packet_stop_text(i), "?");
		for (j = 0; j < i; j++)
			assert_string_not_equal(packet_stop_name(i), packet_stop_name(j));
	}
	assert_string_equal(packet_stop_name(PACKET_STOP_MAX), "?");
	assert_string_equal(packet_stop_text(UINT32_MAX), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_plain_ipv4),
		cmocka_unit_test(packet_plain_ipv6),
		cmocka_unit_test(packet_tags),
		cmocka_unit_test(packet_not_ip),
		cmocka_unit_test(packet_cut),
		cmocka_unit_test(packet_fragments),
		cmocka_unit_test(packet_opaque),
		cmocka_unit_test(packet_final_destination),
		cmocka_unit_test(packet_vector_parses_once),
		cmocka_unit_test(packet_meta_is_one_field),
		cmocka_unit_test(packet_stops_have_names),
	};

	test_eal_init("packet-view", "0");
	pool = test_pool("view", 1023);
	return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
