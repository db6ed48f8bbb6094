/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show drops`, `clear drops`: why packets did not leave. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"
#include "prompt/show.h"

static uint64_t base_packets[DROP_MAX], base_bytes[DROP_MAX];

void
drops_reset(struct app *a)
{
	drops_sum(a, base_packets, base_bytes);
}

void
show_drops(struct app *a)
{
	uint64_t packets[DROP_MAX], bytes[DROP_MAX];
	bool any = false;

	drops_sum(a, packets, bytes);
	for (unsigned int r = 0; r < DROP_MAX; r++) {
		if (packets[r] == base_packets[r])
			continue;
		if (!any)
			printf("  %-16s %14s %16s  reason\n", "drop", "packets", "bytes");
		any = true;
		printf("  %-16s %14" PRIu64 " %16" PRIu64 "  %s\n", drop_info[r].name,
			packets[r] - base_packets[r], bytes[r] - base_bytes[r], drop_info[r].text);
	}
	if (!any)
		printf("  no drops\n");
}

struct drops_result {
	cmdline_fixed_string_t verb, drops;
};

static void
drops_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct drops_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->verb, "show") == 0)
		show_drops(&app);
	else
		drops_reset(&app);
}

static cmdline_parse_token_string_t d_verb =
	TOKEN_STRING_INITIALIZER(struct drops_result, verb, "show#clear");
static cmdline_parse_token_string_t d_drops =
	TOKEN_STRING_INITIALIZER(struct drops_result, drops, "drops");
static cmdline_parse_inst_t drops = {
	.f = drops_parsed,
	.help_str = "show|clear drops: packets that did not leave, by reason",
	.tokens = { (void *)&d_verb, (void *)&d_drops, NULL },
};
PROMPT_REGISTER(drops);
