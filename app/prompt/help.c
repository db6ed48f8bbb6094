/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `help`, `load FILE`. */

#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"

struct help_result {
	cmdline_fixed_string_t help;
};

static void
help_parsed(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	for (unsigned int i = 0; prompt_command(i) != NULL; i++)
		printf("  %s\n", prompt_command(i)->help_str);
}

static cmdline_parse_token_string_t h_help =
	TOKEN_STRING_INITIALIZER(struct help_result, help, "help");
static cmdline_parse_inst_t help = {
	.f = help_parsed,
	.help_str = "help: this list",
	.tokens = { (void *)&h_help, NULL },
};
PROMPT_REGISTER(help);

struct load_result {
	cmdline_fixed_string_t load;
	cmdline_multi_string_t file;
};

static void
load_parsed(void *parsed, struct cmdline *cl, void *data)
{
	struct load_result *r = parsed;

	(void)cl;
	(void)data;
	r->file[strcspn(r->file, "\r\n")] = '\0';
	prompt_file(app.prompt, r->file, true);
}

static cmdline_parse_token_string_t l_load =
	TOKEN_STRING_INITIALIZER(struct load_result, load, "load");
static cmdline_parse_token_string_t l_file =
	TOKEN_STRING_INITIALIZER(struct load_result, file, TOKEN_STRING_MULTI);
static cmdline_parse_inst_t load = {
	.f = load_parsed,
	.help_str = "load <file>: run the commands in a file up to the first error",
	.tokens = { (void *)&l_load, (void *)&l_file, NULL },
};
PROMPT_REGISTER(load);
