/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `help`, `load FILE`. */

#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"

static const struct topic {
	const char *name, *verbs; /* the first words of its commands */
	const char *about;
} topics[] = {
	{ "control", "start stop quit load save restore help", "forwarding, files of commands" },
	{ "display", "show clear", "what there is and what was counted" },
	{ "config", "set", "what may change while the program runs" },
	{ "ports", "port", "ports that start, stop, come and go" },
	{ "tools", "tc|ip", "the real tc and ip, for everything else" },
};

static bool
in_topic(const struct topic *topic, const cmdline_parse_inst_t *command)
{
	size_t len = strcspn(command->help_str, " :<");
	char verb[32];

	snprintf(verb, sizeof(verb), "%.*s", (int)len, command->help_str);
	for (const char *at = topic->verbs; (at = strstr(at, verb)) != NULL; at += len) {
		if ((at == topic->verbs || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	}
	/* "show|clear ..." stands under its first word. */
	len = strcspn(verb, "|");
	return verb[len] == '|' && strncmp(verb, topic->verbs, len) == 0 &&
		topic->verbs[len] == ' ';
}

static void
print_topic(const struct topic *topic)
{
	for (unsigned int i = 0; prompt_command(i) != NULL; i++) {
		if (in_topic(topic, prompt_command(i)))
			printf("  %s\n", prompt_command(i)->help_str);
	}
}

struct help_result {
	cmdline_fixed_string_t help, topic;
};

static void
help_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct help_result *r = parsed;
	bool one = data != NULL;

	(void)cl;
	for (size_t i = 0; i < RTE_DIM(topics); i++) {
		if (one && strcmp(r->topic, "all") != 0 && strcmp(r->topic, topics[i].name) != 0)
			continue;
		printf("help %-8s %s\n", topics[i].name, topics[i].about);
		print_topic(&topics[i]);
	}
}

static cmdline_parse_token_string_t h_help =
	TOKEN_STRING_INITIALIZER(struct help_result, help, "help");
static cmdline_parse_token_string_t h_topic = TOKEN_STRING_INITIALIZER(
	struct help_result, topic, "all#control#display#config#ports#tools");
static cmdline_parse_inst_t help = {
	.f = help_parsed,
	.help_str = "help: all commands",
	.tokens = { (void *)&h_help, NULL },
};
PROMPT_REGISTER(help);
static char with_topic[] = "topic";
static cmdline_parse_inst_t help_topic = {
	.f = help_parsed,
	.data = with_topic,
	.help_str = "help <topic>: the commands of a topic",
	.tokens = { (void *)&h_help, (void *)&h_topic, NULL },
};
PROMPT_REGISTER(help_topic);

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
