/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "control.h"
#include "prompt/hint.h"
#include "prompt/prompt.h"

#define COMMANDS_MAX 128
#define NESTING_MAX 8 /* files that load files */
#define PROMPT "millrace> "
#define CONSOLE_LINE_MAX 512 /* librte_cmdline drops what goes beyond and does not say so */

/* NULL-terminated, filled by constructors: constant after main() has begun. */
static cmdline_parse_inst_t *commands[COMMANDS_MAX + 1];

struct prompt {
	struct app *app;
	struct cmdline *line; /* parses; never reads */
	struct cmdline *console; /* edits standard input; NULL until -i */
	unsigned int nesting;
	bool at_console; /* a command typed there runs */
	bool failed;
	char error[512];
};

void
prompt_register(cmdline_parse_inst_t *inst)
{
	unsigned int n = 0;

	while (commands[n] != NULL)
		n++;
	if (n == COMMANDS_MAX)
		abort(); /* a programmer's error, met at every start */
	commands[n] = inst;
}

const cmdline_parse_inst_t *
prompt_command(unsigned int i)
{
	return commands[i];
}

struct prompt *
prompt_create(struct app *a)
{
	struct prompt *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->app = a;
	if ((p->line = cmdline_new(commands, "", -1, -1)) == NULL) {
		free(p);
		return NULL;
	}
	return p;
}

void
prompt_destroy(struct prompt *p)
{
	if (p == NULL)
		return;
	if (p->console != NULL)
		cmdline_stdin_exit(p->console); /* frees it, too */
	cmdline_free(p->line);
	free(p);
}

void
prompt_fail(const char *fmt, ...)
{
	struct prompt *p = app.prompt;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->error, sizeof(p->error), fmt, ap);
	va_end(ap);
	p->failed = true;
	/* Before the next prompt; lines of files are told with file and number. */
	if (p->at_console) {
		fflush(stdout);
		fprintf(stderr, "%s\n", p->error);
	}
}

const char *
prompt_error(const struct prompt *p)
{
	return p->error;
}

static bool
starts_tool(const char *line)
{
	return (strncmp(line, "tc", 2) == 0 || strncmp(line, "ip", 2) == 0) &&
		(line[2] == '\0' || isspace((unsigned char)line[2]));
}

static void
not_found(const char *line, int len)
{
	const char *instead = hint_for(line);

	if (instead == NULL)
		prompt_fail("command not found: %.*s", len, line);
	else
		prompt_fail("command not found: %.*s; here: %s", len, line, instead);
}

static int
run_line(struct prompt *p, const char *line)
{
	char text[CMDLINE_PARSE_RESULT_BUFSIZE];
	size_t len;

	while (isspace((unsigned char)*line))
		line++;
	p->failed = false;
	if (*line == '\0' || *line == '#')
		return 0;
	if (starts_tool(line))
		return tool_run(p->app, line);
	len = strcspn(line, "\r\n");
	if (len + 2 > sizeof(text)) {
		prompt_fail("the line is longer than %zu characters", sizeof(text) - 2);
		return -1;
	}
	memcpy(text, line, len);
	memcpy(text + len, "\n", 2);
	switch (cmdline_parse(p->line, text)) {
	case CMDLINE_PARSE_AMBIGUOUS:
		prompt_fail("ambiguous command: %.*s", (int)len, line);
		break;
	case CMDLINE_PARSE_NOMATCH:
		not_found(line, (int)len);
		break;
	case CMDLINE_PARSE_BAD_ARGS:
		prompt_fail("bad arguments: %.*s", (int)len, line);
		break;
	default:
		break;
	}
	fflush(stdout);
	return p->failed ? -1 : 0;
}

int
prompt_line(struct prompt *p, const char *line)
{
	bool at_console = p->at_console;
	int ret;

	p->at_console = false;
	ret = run_line(p, line);
	p->at_console = at_console;
	return ret;
}

static int
run_file(struct prompt *p, FILE *file, const char *path, bool echo)
{
	char *line = NULL;
	size_t size = 0, number = 0;
	int ret = 0;

	while (ret == 0 && !control_quitting(p->app->control) && getline(&line, &size, file) >= 0) {
		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (echo && line[strspn(line, " \t")] != '\0' && line[strspn(line, " \t")] != '#') {
			printf(PROMPT "%s\n", line);
			fflush(stdout);
		}
		ret = prompt_line(p, line);
	}
	if (ret != 0 && p->error[0] != '\0') {
		fprintf(stderr, "millrace: %s:%zu: %s\n", path, number, p->error);
		/* An outer file adds its own line, not this sentence again. */
		snprintf(p->error, sizeof(p->error), "stopped in %s", path);
	}
	/* not its end, but a directory, or a disk that fails */
	if (ret == 0 && ferror(file) != 0) {
		prompt_fail("%s: %s", path, strerror(errno));
		ret = -1;
	}
	free(line);
	return ret;
}

int
prompt_file(struct prompt *p, const char *path, bool echo)
{
	FILE *file;
	int ret;

	if (p->nesting >= NESTING_MAX) {
		prompt_fail("%s: files load each other more than %u deep", path, NESTING_MAX);
		return -1;
	}
	if ((file = fopen(path, "re")) == NULL) {
		prompt_fail("%s: %s", path, strerror(errno));
		return -1;
	}
	p->nesting++;
	ret = run_file(p, file, path, echo);
	p->nesting--;
	fclose(file);
	if (ret != 0)
		p->failed = true;
	return ret;
}

/* Enter was typed. True: the line is for librte_cmdline; else it was answered here. */
static bool
console_takes(struct prompt *p)
{
	struct rdline *rdl = cmdline_get_rdline(p->console);
	const char *line = rdline_get_buffer(rdl);
	size_t len = strcspn(line, "\n");

	if (len < CONSOLE_LINE_MAX && hint_for(line) == NULL)
		return true;
	putchar('\n');
	p->at_console = true;
	if (len >= CONSOLE_LINE_MAX)
		prompt_fail("the prompt takes lines of fewer than %d characters, nothing was done: "
			    "put this one in a file and load it",
			CONSOLE_LINE_MAX);
	else
		not_found(line, (int)len);
	p->at_console = false;
	rdline_add_history(rdl, line);
	rdline_newline(rdl, PROMPT);
	return false;
}

void
prompt_interactive(struct prompt *p)
{
	/* librte_cmdline writes past stdio: what commands print comes before the next prompt. */
	setlinebuf(stdout);
	p->console = cmdline_stdin_new(commands, PROMPT);
	if (p->console != NULL)
		control_watch_stdin(p->app->control);
}

bool
prompt_readable(struct prompt *p)
{
	char c;
	ssize_t n;

	/* One character at a time, as cmdline_poll() does: a command may hand the terminal to a
	 * child. */
	n = read(STDIN_FILENO, &c, 1);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	if ((c == '\n' || c == '\r') && !console_takes(p))
		return true;
	p->at_console = true;
	if (cmdline_in(p->console, &c, 1) < 0)
		control_quit(p->app->control); /* ^D, as in testpmd */
	p->at_console = false;
	fflush(stdout);
	return true;
}
