/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show rcu`: what waits for a grace period, and whom it waits for. */

#include <inttypes.h>
#include <stdio.h>

#include "app.h"
#include "prompt/prompt.h"

static void
show_rcu(const struct app *a)
{
	printf("  deferred %" PRIu64 "  freed %" PRIu64 "  waiting %" PRIu64 "\n",
		rcu_deferred(a->rcu), rcu_deferred(a->rcu) - rcu_pending(a->rcu),
		rcu_pending(a->rcu));
	for (unsigned int i = 0; i < a->n_workers; i++)
		printf("  lcore %u  %s\n", a->workers[i].lcore,
			a->workers[i].running ? "reports once a loop" : "holds nothing: stopped");
}

struct rcu_result {
	cmdline_fixed_string_t verb, rcu;
};

static void
rcu_parsed(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	show_rcu(&app);
}

static cmdline_parse_token_string_t rc_verb =
	TOKEN_STRING_INITIALIZER(struct rcu_result, verb, "show");
static cmdline_parse_token_string_t rc_rcu =
	TOKEN_STRING_INITIALIZER(struct rcu_result, rcu, "rcu");
static cmdline_parse_inst_t rcu_command = {
	.f = rcu_parsed,
	.help_str = "show rcu: what waits for a grace period",
	.tokens = { (void *)&rc_verb, (void *)&rc_rcu, NULL },
};
PROMPT_REGISTER(rcu_command);
