/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_CSUM_HARNESS_H
#define TEST_CSUM_HARNESS_H

/* Runs the csum action on one frame as a worker would, and says what came of it. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "csum_action/csum_action.h"
#include "csum_action/impl.h"
#include "packet/packet.h"

struct harness {
	struct csum_action *csum;
	struct action_params *params[CSUM_ACTION_FLAGS + 1];
	uint64_t counts[CSUM_ACTION_REASON_MAX];
};

static inline void
harness_open(struct harness *h)
{
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->csum = csum_action_create(1);
	for (i = 0; i <= CSUM_ACTION_FLAGS; i++) {
		h->params[i] = csum_action_params_create(i, TC_ACT_PIPE);
		csum_action_params_attach(h->params[i], h->csum);
	}
}

static inline void
harness_close(struct harness *h)
{
	uint32_t i;

	for (i = 0; i <= CSUM_ACTION_FLAGS; i++)
		free(h->params[i]);
	csum_action_destroy(h->csum);
}

/* Which counter moved since the last call: exactly one, by one; else CSUM_ACTION_REASON_MAX. */
static inline unsigned int
harness_reason(struct harness *h)
{
	unsigned int i, moved = CSUM_ACTION_REASON_MAX, n = 0;

	for (i = 0; i < CSUM_ACTION_REASON_MAX; i++) {
		uint64_t now = csum_action_count(h->csum, i);

		if (now != h->counts[i]) {
			n += (unsigned int)(now - h->counts[i]);
			moved = i;
		}
		h->counts[i] = now;
	}
	return n == 1 ? moved : CSUM_ACTION_REASON_MAX;
}

/* Runs "csum flags" on *m with these loops (NULL: the best). Returns the reason counted. */
static inline unsigned int
harness_run(struct harness *h, const struct csum_impl *impl, uint32_t flags, struct rte_mbuf **m)
{
	struct packet_view view;
	struct rte_mbuf *pkts[1] = { *m };
	struct packet_vector vector = { .pkts = pkts, .views = &view, .n = 1 };
	struct action_burst burst = { .vector = &vector, .pkts = pkts };
	struct action_params *params = h->params[flags];
	uint64_t drops = 0, overlimits = 0;
	int32_t verdict;

	if (impl != NULL)
		((struct csum_action_params *)params)->impl = impl;
	packet_vector_parse(&vector);
	verdict = csum_action_ops.run(NULL, params, &burst, 1, &drops, &overlimits);
	*m = pkts[0];
	if (verdict != TC_ACT_PIPE || drops != 0 || overlimits != 0)
		return CSUM_ACTION_REASON_MAX;
	return harness_reason(h);
}

/* A frame in segments that end at the given ascending offsets and at len; equal offsets make empty
 * segments. */
static inline struct rte_mbuf *
harness_chain(struct rte_mempool *pool, const uint8_t *data, uint32_t len, const uint32_t *cuts,
	unsigned int n_cuts)
{
	struct rte_mbuf *head = NULL, *last = NULL, *m;
	uint32_t from = 0, to;
	unsigned int i;
	char *p;

	for (i = 0; i <= n_cuts; i++) {
		to = i < n_cuts ? cuts[i] : len;
		if ((m = rte_pktmbuf_alloc(pool)) == NULL ||
			(p = rte_pktmbuf_append(m, (uint16_t)(to - from))) == NULL) {
			fprintf(stderr, "harness_chain: no room for %u bytes\n", to - from);
			exit(1);
		}
		memcpy(p, data + from, to - from);
		if (head == NULL) {
			head = m;
		} else {
			last->next = m;
			head->nb_segs++;
			head->pkt_len += m->data_len;
		}
		last = m;
		from = to;
	}
	return head;
}

/* The same with segments of at most `cut` bytes. */
static inline struct rte_mbuf *
harness_cut(struct rte_mempool *pool, const uint8_t *data, uint32_t len, uint32_t cut)
{
	uint32_t n = len == 0 ? 0 : (len - 1) / cut, i;
	uint32_t *cuts = calloc(n + 1, sizeof(*cuts));
	struct rte_mbuf *m;

	for (i = 0; i < n; i++)
		cuts[i] = (i + 1) * cut;
	m = harness_chain(pool, data, len, cuts, n);
	free(cuts);
	return m;
}

/* True if the frame is exactly these bytes. */
static inline bool
harness_equal(const struct rte_mbuf *m, const uint8_t *data, uint32_t len)
{
	uint32_t off = 0;

	if (m->pkt_len != len)
		return false;
	for (; m != NULL; m = m->next) {
		if (off + m->data_len > len ||
			memcmp(rte_pktmbuf_mtod(m, const void *), data + off, m->data_len) != 0)
			return false;
		off += m->data_len;
	}
	return off == len;
}

#endif /* TEST_CSUM_HARNESS_H */
