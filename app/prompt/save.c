/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `save FILE`, `restore FILE`: the control state. */

#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"

struct save_result {
	cmdline_fixed_string_t verb;
	cmdline_multi_string_t file;
};

static void
save(const char *file)
{
	struct netlink_saved saved;

	if (netlink_save(app.netlink, file, &saved) != 0)
		prompt_fail("save: %s", saved.text);
	else
		printf("Saved %u objects to %s\n", saved.objects, file);
}

static void
restore(const char *file)
{
	struct netlink_saved saved;

	if (netlink_restore(app.netlink, file, &saved) != 0) {
		prompt_fail("restore: %s", saved.text);
		return;
	}
	printf("Restored %u objects from %s\n", saved.objects, file);
	if (saved.left != 0)
		printf("Left as they are: %u settings of ports that drivers cannot change, the "
		       "first: %s\n",
			saved.left, saved.text);
}

static void
save_parsed(void *parsed, struct cmdline *cl, void *data)
{
	struct save_result *r = parsed;

	(void)cl;
	(void)data;
	r->file[strcspn(r->file, "\r\n")] = '\0';
	if (strcmp(r->verb, "save") == 0)
		save(r->file);
	else
		restore(r->file);
}

static cmdline_parse_token_string_t s_save =
	TOKEN_STRING_INITIALIZER(struct save_result, verb, "save");
static cmdline_parse_token_string_t s_restore =
	TOKEN_STRING_INITIALIZER(struct save_result, verb, "restore");
static cmdline_parse_token_string_t s_file =
	TOKEN_STRING_INITIALIZER(struct save_result, file, TOKEN_STRING_MULTI);
static cmdline_parse_inst_t save_inst = {
	.f = save_parsed,
	.help_str =
		"save <file>: write links, addresses, routes, neighbours, qdiscs, chains, actions, "
		"filters, SAs and policies to a file",
	.tokens = { (void *)&s_save, (void *)&s_file, NULL },
};
PROMPT_REGISTER(save_inst);
static cmdline_parse_inst_t restore_inst = {
	.f = save_parsed,
	.help_str = "restore <file>: put what a file has in the place of what is there",
	.tokens = { (void *)&s_restore, (void *)&s_file, NULL },
};
PROMPT_REGISTER(restore_inst);
