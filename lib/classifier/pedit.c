/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "classifier/edit.h"
#include "classifier/pedit.h"

#define WORD 4

/* Where a header begins and what is after its end. False if the packet does not have it. */
static bool
header_of(const struct rte_mbuf *m, const struct packet_view *view, uint8_t header, int64_t *begin,
	int64_t *end)
{
	bool l4 = view->stop == PACKET_STOP_NONE;

	*begin = view->l3_off;
	*end = view->l3_end;
	switch (header) {
	case TCA_PEDIT_KEY_EX_HDR_TYPE_ETH:
		*begin = 0;
		*end = m->pkt_len;
		return true;
	case TCA_PEDIT_KEY_EX_HDR_TYPE_NETWORK:
		*end = m->pkt_len;
		return view->l3_off != 0;
	case TCA_PEDIT_KEY_EX_HDR_TYPE_IP4:
		return view->l3 == PACKET_L3_IPV4 && (view->flags & PACKET_F_L3) != 0;
	case TCA_PEDIT_KEY_EX_HDR_TYPE_IP6:
		return view->l3 == PACKET_L3_IPV6 && (view->flags & PACKET_F_L3) != 0;
	case TCA_PEDIT_KEY_EX_HDR_TYPE_TCP:
		*begin = view->l4_off;
		return l4 && view->l4_proto == IPPROTO_TCP;
	default:
		*begin = view->l4_off;
		return l4 && view->l4_proto == IPPROTO_UDP;
	}
}

/* The offset in the frame of the word that a key edits, or -1 if there is no such word. */
static int64_t
word_of(const struct rte_mbuf *m, const struct packet_view *view, const struct pedit_key *key)
{
	int64_t begin, end, off = key->off, low = 0;
	const uint8_t *p;
	uint8_t buf;

	if (!header_of(m, view, key->header, &begin, &end))
		return -1;
	if (key->offmask != 0) {
		if (begin + key->at >= end ||
			(p = packet_read(m, (uint32_t)(begin + key->at), 1, &buf)) == NULL)
			return -1;
		off += (*p & key->offmask) >> key->shift;
	}
	/* What lies before a header is another's, but for the old form that counts from layer 3. */
	if (key->header != TCA_PEDIT_KEY_EX_HDR_TYPE_NETWORK)
		low = begin;
	if (off % WORD != 0 || begin + off < low || begin + off + WORD > end ||
		begin + off + WORD > m->pkt_len)
		return -1;
	return begin + off;
}

static void
edit_word(uint8_t *p, const struct pedit_key *key)
{
	uint32_t word, value = key->value;

	memcpy(&word, p, WORD);
	if (key->command == TCA_PEDIT_KEY_EX_CMD_ADD)
		value = (word + value) & ~key->mask;
	word = (word & key->mask) ^ value;
	memcpy(p, &word, WORD);
}

/* All keys or none. False if one of them does not fit, or there is no mbuf for a copy. */
static bool
edit(struct rte_mbuf **m, const struct packet_view *view, const struct pedit_params *pedit)
{
	int64_t word[PEDIT_KEYS_MAX], end = 0;

	for (uint32_t k = 0; k < pedit->n; k++) {
		if ((word[k] = word_of(*m, view, &pedit->keys[k])) < 0)
			return false;
		end = RTE_MAX(end, word[k] + WORD);
	}
	if (!edit_own(m, (uint32_t)end, 0))
		return false;
	for (uint32_t k = 0; k < pedit->n; k++)
		edit_word(rte_pktmbuf_mtod_offset(*m, uint8_t *, word[k]), &pedit->keys[k]);
	return true;
}

static int32_t
pedit_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	const struct pedit_params *pedit = (const struct pedit_params *)params;
	unsigned int i;

	(void)action;
	packet_mask_for_each (i, mask) {
		if (edit(&burst->pkts[i], &burst->vector->views[i], pedit))
			edit_view(burst->vector, i);
		else
			(*overlimits)++;
	}
	if (params->verdict == TC_ACT_SHOT)
		*drops += (uint64_t)__builtin_popcountll(mask);
	return params->verdict;
}

const struct action_ops pedit_action_ops = {
	.kind = "pedit",
	.id = TCA_ID_PEDIT,
	.needs_views = true,
	.rewrites = true,
	.run = pedit_run,
};

static bool
key_valid(const struct pedit_key *key)
{
	return key->header <= TCA_PEDIT_KEY_EX_HDR_TYPE_UDP &&
		key->command <= TCA_PEDIT_KEY_EX_CMD_ADD && key->shift < 32 &&
		key->at <= UINT16_MAX;
}

struct action_params *
pedit_params_create(int32_t verdict, uint8_t flags, uint32_t n, const struct pedit_key *keys)
{
	struct pedit_params *pedit = NULL;
	bool valid = n >= 1 && n <= PEDIT_KEYS_MAX;

	for (uint32_t k = 0; valid && k < n; k++)
		valid = key_valid(&keys[k]);
	if (!valid) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((pedit = calloc(1, sizeof(*pedit) + n * sizeof(*keys))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	pedit->base.verdict = verdict;
	pedit->flags = flags;
	pedit->n = n;
	memcpy(pedit->keys, keys, n * sizeof(*keys));
	return &pedit->base;
}
