/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PROMPT_PROMPT_H
#define APP_PROMPT_PROMPT_H

/*
 * Commands in testpmd's words, parsed and completed by librte_cmdline. One file a noun; each
 * registers its commands by constructor. Lines that begin with `tc ` or `ip ` run the real tool.
 */

#include <stdbool.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_num.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

struct app;
struct prompt;

/* Called by constructors: inst->f(parsed, NULL, NULL) acts on `app`. */
void prompt_register(cmdline_parse_inst_t *inst);

#define PROMPT_REGISTER(inst) \
	static void __attribute__((constructor)) prompt_register_##inst(void) \
	{ \
		prompt_register((cmdline_parse_inst_t *)&inst); \
	} \
	struct prompt /* swallow the semicolon */

/* The i-th command, NULL beyond the last: for `help`. */
const cmdline_parse_inst_t *prompt_command(unsigned int i);

/* NULL: no memory. */
struct prompt *prompt_create(struct app *app);
void prompt_destroy(struct prompt *prompt);

/* Prints the prompt and takes commands from standard input from now on. */
void prompt_interactive(struct prompt *prompt);
/* Reads what standard input has. False once it is closed: the program goes on without. */
bool prompt_readable(struct prompt *prompt);

/* Runs one line. 0, or -1 with the reason in prompt_error(). Empty lines and comments are fine. */
int prompt_line(struct prompt *prompt, const char *line);
/* Runs a file up to its first error, which it prints with file and line. 0 or -1. */
int prompt_file(struct prompt *prompt, const char *path, bool echo);

/* For commands: says in one sentence why the line failed. */
void prompt_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *prompt_error(const struct prompt *prompt);

/* tool.c: runs `tc ...` or `ip ...` through millrace-exec and waits for it. 0, or -1 with
 * prompt_fail(). */
int tool_run(struct app *app, const char *line);

#endif /* APP_PROMPT_PROMPT_H */
