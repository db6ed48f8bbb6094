/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * libFuzzer: any bytes are a frame. The first two say which sums are asked for and how the frame is
 * cut into segments; the rest stands in memory that ends where each segment ends, so that
 * AddressSanitizer sees a read beyond it. The result must be what the bytewise reference says, the
 * checker must agree with it, and leaving the sums to a NIC must come to the same.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_net.h>

#include "harness.h"
#include "nic.h"
#include "reference.h"
#include "support.h"

#define SEGMENTS_MAX 4
#define FRAME_MAX 70000
#define OFFERS \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_SCTP_CKSUM)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct harness harness;
static struct rte_mempool *pool;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	test_eal_init("csum-fuzz", "0");
	pool = test_pool("fuzz", 63);
	harness_open(&harness);
	return 0;
}

/*
 * An mbuf whose data are exactly these bytes in a malloc()ed buffer. It claims to be memory of its
 * own, so that nothing is copied before it is written.
 */
static struct rte_mbuf *
segment(const uint8_t *data, uint32_t len, void **buffer)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	*buffer = malloc(len);
	if (len > 0)
		memcpy(*buffer, data, len);
	m->buf_addr = *buffer;
	m->data_off = 0;
	m->buf_len = (uint16_t)len;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

static struct rte_mbuf *
build(const uint8_t *data, uint32_t len, uint8_t cut, void *buffers[SEGMENTS_MAX])
{
	struct rte_mbuf *head = NULL, *last = NULL, *m;
	uint32_t n = cut % SEGMENTS_MAX + 1, i, part, step = (cut / SEGMENTS_MAX) + 1u;

	if (len > UINT16_MAX && n == 1)
		n = 2;
	for (i = 0; i < n; i++) {
		part = i + 1 == n ? len : RTE_MIN(i == 0 && len > UINT16_MAX ? 10000 : step, len);
		m = segment(data, part, &buffers[i]);
		if (head == NULL) {
			head = m;
		} else {
			last->next = m;
			head->nb_segs++;
			head->pkt_len += part;
		}
		last = m;
		data += part;
		len -= part;
	}
	return head;
}

/* Gives buffers back and mbufs their own. */
static void
unbuild(struct rte_mbuf *m, void *buffers[SEGMENTS_MAX])
{
	struct rte_mbuf *s;
	unsigned int i = 0;

	for (s = m; s != NULL; s = s->next) {
		free(buffers[i++]);
		s->buf_addr = (char *)s + sizeof(*s) + rte_pktmbuf_priv_size(pool);
		s->buf_len = RTE_MBUF_DEFAULT_BUF_SIZE;
	}
	rte_pktmbuf_free(m);
}

static void
check_states(const struct rte_mbuf *m, const char *reason)
{
	enum csum_action_state ip, l4;
	struct packet_view view;

	packet_view_parse(m, &view);
	csum_action_check(harness.csum, m, &view, &ip, &l4);
	if (ip == CSUM_ACTION_STATE_BAD && strcmp(reason, "cut_l3") != 0)
		abort();
	if (strcmp(reason, "computed") == 0 && l4 != CSUM_ACTION_STATE_GOOD &&
		l4 != CSUM_ACTION_STATE_ABSENT)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *buffers[SEGMENTS_MAX];
	const struct csum_impl *impl;
	const char *reason;
	struct rte_mbuf *m;
	unsigned int i, got;
	uint32_t flags, len;
	uint8_t *want, cut;

	if (size < 2 || size > FRAME_MAX)
		return 0;
	flags = data[0] % 128;
	if (data[0] >= 128)
		flags = CSUM_ACTION_FLAGS;
	cut = data[1];
	data += 2;
	len = (uint32_t)size - 2;
	want = malloc(len + 1);
	memcpy(want, data, len);
	reason = reference_update(want, len, flags);
	for (i = 0; (impl = csum_impl_get(i)) != NULL; i++) {
		m = build(data, len, cut, buffers);
		got = harness_run(&harness, impl, flags, &m);
		if (!harness_equal(m, want, len) ||
			strcmp(csum_action_reason_name(got), reason) != 0)
			abort();
		if (flags == CSUM_ACTION_FLAGS)
			check_states(m, reason);
		unbuild(m, buffers);
	}
	m = build(data, len, cut, buffers);
	csum_action_offload_set(harness.csum, OFFERS);
	harness_run(&harness, NULL, flags, &m);
	csum_action_offload_set(harness.csum, 0);
	if (rte_net_intel_cksum_prepare(m) != 0 || !nic_send(m, OFFERS) ||
		!harness_equal(m, want, len))
		abort();
	unbuild(m, buffers);
	free(want);
	return 0;
}
