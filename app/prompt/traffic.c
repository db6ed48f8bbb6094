/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `start`, `stop`, `quit`. */

#include <stdio.h>
#include <string.h>

#include "app.h"
#include "control.h"
#include "forward/forward.h"
#include "prompt/prompt.h"
#include "prompt/show.h"
#include "prompt/traffic.h"

const char *
traffic_start(struct app *a)
{
	const char *why;
	unsigned int n, busy = 0;

	/* Before the workers run: what they forward at once counts as well. */
	if (!a->forwarding)
		fwd_stats_start(a);
	if ((why = forwarding_start(a)) != NULL)
		return why;
	streams_get(a, &n);
	for (unsigned int i = 0; i < a->n_workers; i++)
		busy += a->workers[i].running;
	printf("%s packet forwarding - ports=%u - cores=%u - streams=%u\n", a->mode->name,
		rte_eth_dev_count_avail(), busy, n);
	fflush(stdout);
	return NULL;
}

void
traffic_stop(struct app *a)
{
	if (!a->forwarding)
		return;
	printf("Telling cores to stop...\nWaiting for lcores to finish...\n");
	forwarding_stop(a);
	show_fwd_stats(a);
	show_drops(a);
	printf("Done.\n");
	fflush(stdout);
}

struct word_result {
	cmdline_fixed_string_t word;
};

static void
word_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct word_result *r = parsed;
	const char *why;

	(void)cl;
	(void)data;
	if (strcmp(r->word, "quit") == 0) {
		control_quit(app.control);
		if (cl != NULL)
			cmdline_quit(cl);
	} else if (strcmp(r->word, "stop") == 0) {
		if (!app.forwarding)
			prompt_fail("packet forwarding is not started");
		else
			traffic_stop(&app);
	} else if ((why = traffic_start(&app)) != NULL) {
		prompt_fail("start: %s", why);
	}
}

static cmdline_parse_token_string_t w_start =
	TOKEN_STRING_INITIALIZER(struct word_result, word, "start");
static cmdline_parse_inst_t start = {
	.f = word_parsed,
	.help_str = "start: forward packets",
	.tokens = { (void *)&w_start, NULL },
};
PROMPT_REGISTER(start);
static cmdline_parse_token_string_t w_stop =
	TOKEN_STRING_INITIALIZER(struct word_result, word, "stop");
static cmdline_parse_inst_t stop = {
	.f = word_parsed,
	.help_str = "stop: stop forwarding, drain the queues, print statistics",
	.tokens = { (void *)&w_stop, NULL },
};
PROMPT_REGISTER(stop);
static cmdline_parse_token_string_t w_quit =
	TOKEN_STRING_INITIALIZER(struct word_result, word, "quit");
static cmdline_parse_inst_t quit = {
	.f = word_parsed,
	.help_str = "quit: stop forwarding and leave",
	.tokens = { (void *)&w_quit, NULL },
};
PROMPT_REGISTER(quit);
