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
traffic_start(struct app *a, unsigned int tx_first)
{
	const char *why;
	unsigned int n, busy = 0;

	/* Before the workers run: what they forward at once counts as well. */
	if (!a->forwarding)
		fwd_stats_start(a);
	if ((why = forwarding_start(a, tx_first)) != NULL)
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
	} else if ((why = traffic_start(&app, 0)) != NULL) {
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
struct first_result {
	cmdline_fixed_string_t start, first;
	uint32_t bursts;
};

/* data: whether the line gave a number of bursts. */
static void
first_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct first_result *r = parsed;
	const char *why = traffic_start(&app, data != NULL ? r->bursts : 1);

	(void)cl;
	if (why != NULL)
		prompt_fail("start tx_first: %s", why);
}

static cmdline_parse_token_string_t f_start =
	TOKEN_STRING_INITIALIZER(struct first_result, start, "start");
static cmdline_parse_token_string_t f_first =
	TOKEN_STRING_INITIALIZER(struct first_result, first, "tx_first");
static cmdline_parse_token_num_t f_bursts =
	TOKEN_NUM_INITIALIZER(struct first_result, bursts, RTE_UINT32);
static cmdline_parse_inst_t start_first = {
	.f = first_parsed,
	.help_str = "start tx_first: send a burst out of every port, then forward",
	.tokens = { (void *)&f_start, (void *)&f_first, NULL },
};
PROMPT_REGISTER(start_first);
static char with_number[] = "number";
static cmdline_parse_inst_t start_first_n = {
	.f = first_parsed,
	.data = with_number,
	.help_str = "start tx_first <n>: the same with n bursts",
	.tokens = { (void *)&f_start, (void *)&f_first, (void *)&f_bursts, NULL },
};
PROMPT_REGISTER(start_first_n);
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
