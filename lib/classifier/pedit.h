/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_PEDIT_H
#define CLASSIFIER_PEDIT_H

/*
 * Edits bytes of a packet: 32-bit words at an offset from one of its headers. Linux behaviour:
 * net/sched/act_pedit.c, but for two things: a key whose header the packet does not have, or whose
 * word is not all inside it, leaves the whole packet untouched (and counts an overlimit, as Linux
 * does), and an IPv4 key never edits IPv6. Checksums are the csum action's, after this one.
 */

#include <linux/tc_act/tc_pedit.h>

#include "action/action.h"

/* Keys in one action, as iproute2 sends at most. */
#define PEDIT_KEYS_MAX 128

/*
 * One word, in the form of struct tc_pedit_key. SET: word = (word & mask) ^ value. ADD: the same
 * with value = (word + value) & ~mask. Words, masks and values are as they stand in memory; `off`
 * counts bytes from the header and is a multiple of 4, negative only with NETWORK. Where offmask is
 * not 0, the byte at `at` moves the word: off += (byte & offmask) >> shift.
 */
struct pedit_key {
	uint8_t header; /* enum pedit_header_type */
	uint8_t command; /* enum pedit_cmd */
	int32_t off;
	uint32_t mask;
	uint32_t value;
	uint32_t at;
	uint32_t offmask;
	uint32_t shift;
};

struct pedit_params {
	struct action_params base;
	uint8_t flags; /* tc_pedit_sel.flags, for the dump */
	uint32_t n;
	struct pedit_key keys[];
};

/* TCA_ID_PEDIT, kind "pedit". */
extern const struct action_ops pedit_action_ops;

/* NULL and rte_errno: EINVAL (no key, too many, unknown header or command, bad shift), ENOMEM. */
struct action_params *
pedit_params_create(int32_t verdict, uint8_t flags, uint32_t n, const struct pedit_key *keys);

#endif /* CLASSIFIER_PEDIT_H */
