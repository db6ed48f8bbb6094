/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show csum`, `clear csum`: what the checksum action did to packets. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"

static uint64_t base[CSUM_ACTION_REASON_MAX];

static void
show_csum(const struct app *a)
{
	bool any = false;

	for (unsigned int r = 0; r < CSUM_ACTION_REASON_MAX; r++) {
		uint64_t n = csum_action_count(a->csum, r) - base[r];

		if (n == 0)
			continue;
		if (!any)
			printf("  %-14s %14s  what\n", "csum", "packets");
		any = true;
		printf("  %-14s %14" PRIu64 "  %s\n", csum_action_reason_name(r), n,
			csum_action_reason_text(r));
	}
	if (!any)
		printf("  no packet has met a csum action\n");
}

struct csum_result {
	cmdline_fixed_string_t verb, csum;
};

static void
csum_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct csum_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->verb, "show") == 0) {
		show_csum(&app);
		return;
	}
	for (unsigned int i = 0; i < CSUM_ACTION_REASON_MAX; i++)
		base[i] = csum_action_count(app.csum, i);
}

static cmdline_parse_token_string_t cs_verb =
	TOKEN_STRING_INITIALIZER(struct csum_result, verb, "show#clear");
static cmdline_parse_token_string_t cs_csum =
	TOKEN_STRING_INITIALIZER(struct csum_result, csum, "csum");
static cmdline_parse_inst_t csum = {
	.f = csum_parsed,
	.help_str = "show|clear csum: what the checksum action did to packets",
	.tokens = { (void *)&cs_verb, (void *)&cs_csum, NULL },
};
PROMPT_REGISTER(csum);
