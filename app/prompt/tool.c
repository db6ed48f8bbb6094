/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Lines that begin with tc or ip: the real tools, connected to our own control socket. */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "app.h"
#include "control.h"
#include "prompt/prompt.h"

#define WORDS_MAX 1024

/*
 * Splits as the tools' own batch files are split: blanks separate, '...' and "..." keep blanks, a #
 * begins a comment. In place. -1: a quote is not closed or there are too many words.
 */
static int
split(char *text, char **words, int max)
{
	int n = 0;

	for (;;) {
		char quote;

		text += strspn(text, " \t\r\n");
		if (*text == '\0' || *text == '#')
			return n;
		if (n == max)
			return -1;
		if (*text == '\'' || *text == '"') {
			quote = *text++;
			words[n++] = text;
			if ((text = strchr(text, quote)) == NULL)
				return -1;
		} else {
			words[n++] = text;
			text += strcspn(text, " \t\r\n");
			if (*text == '\0')
				return n;
		}
		*text++ = '\0';
	}
}

/* millrace-exec stands beside this program when installed, in ../exec in the build tree. */
static void
find_exec(char path[PATH_MAX])
{
	static const char *const places[] = { "millrace-exec", "../exec/millrace-exec" };
	char dir[PATH_MAX - 32];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	dir[n < 0 ? 0 : n] = '\0';
	if (strrchr(dir, '/') != NULL)
		strrchr(dir, '/')[1] = '\0';
	for (size_t i = 0; i < RTE_DIM(places); i++) {
		snprintf(path, PATH_MAX, "%s%s", dir, places[i]);
		if (access(path, X_OK) == 0)
			return;
	}
	snprintf(path, PATH_MAX, "millrace-exec");
}

/*
 * The prompt edits with signals off, so that ^C would end no tool. Like a shell it lends the
 * terminal: true, and how it is set now, if it is a terminal and the prompt's.
 */
static bool
may_lend(struct termios *ours)
{
	return tcgetattr(STDIN_FILENO, ours) == 0 && (ours->c_lflag & ISIG) == 0 &&
		tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Who is in the background may do this only with SIGTTOU blocked. */
static void
terminal_to(pid_t group, const struct termios *how)
{
	sigset_t ttou, before;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &ttou, &before);
	tcsetpgrp(STDIN_FILENO, group);
	tcsetattr(STDIN_FILENO, TCSANOW, how);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* In the child. */
static void
borrow_terminal(struct termios how)
{
	how.c_lflag |= ICANON | ECHO | ISIG;
	how.c_cc[VSUSP] = _POSIX_VDISABLE; /* nobody would continue it */
	setpgid(0, 0);
	terminal_to(getpid(), &how);
}

static int
run(struct app *a, const char *program, char **argv)
{
	struct termios ours;
	bool lend = may_lend(&ours);
	pid_t pid;
	int status;

	fflush(NULL);
	if ((pid = fork()) < 0) {
		prompt_fail("%s: %s", argv[3], strerror(errno));
		return -1;
	}
	if (pid == 0) {
		if (lend)
			borrow_terminal(ours);
		control_signals_unblock();
		execvp(program, argv);
		fprintf(stderr, "millrace: %s: %s\n", program, strerror(errno));
		_exit(127);
	}
	status = control_run_child(a->control, pid);
	if (lend)
		terminal_to(getpgrp(), &ours);
	if (status == 0)
		return 0;
	if (status < 0)
		prompt_fail("%s was interrupted", argv[3]);
	else if (WIFSIGNALED(status))
		prompt_fail("%s was ended by signal %d", argv[3], WTERMSIG(status));
	else
		prompt_fail("%s exited with status %d", argv[3], WEXITSTATUS(status));
	return -1;
}

int
tool_run(struct app *a, const char *line)
{
	char path[PATH_MAX], *argv[WORDS_MAX + 4], *text = strdup(line);
	char option[] = "-s";
	int n, ret = -1;

	if (text == NULL) {
		prompt_fail("no memory for the line");
		return -1;
	}
	argv[0] = path;
	argv[1] = option;
	argv[2] = a->ctl_path;
	if ((n = split(text, argv + 3, WORDS_MAX)) < 0) {
		prompt_fail("a quote is not closed, or the line has more than %d words", WORDS_MAX);
	} else if (n == 1) {
		prompt_fail("%s needs to be told what to do, as in: %s", argv[3],
			strcmp(argv[3], "tc") == 0 ? "tc qdisc show" : "ip link show");
	} else {
		argv[3 + n] = NULL;
		find_exec(path);
		ret = run(a, path, argv);
	}
	free(text);
	return ret;
}

/* At the console the whole line arrives as tool + rest. */
struct tool_result {
	cmdline_fixed_string_t tool;
	cmdline_multi_string_t rest;
};

static void
tool_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct tool_result *r = parsed;
	char line[sizeof(*r) + 2];

	(void)cl;
	(void)data;
	snprintf(line, sizeof(line), "%s %s", r->tool, r->rest);
	tool_run(&app, line);
}

/* The tool's name alone, for which a multi string does not stand. */
static void
tool_alone_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct tool_result *r = parsed;

	(void)cl;
	(void)data;
	tool_run(&app, r->tool);
}

static cmdline_parse_token_string_t tool_name =
	TOKEN_STRING_INITIALIZER(struct tool_result, tool, "tc#ip");
static cmdline_parse_token_string_t tool_rest =
	TOKEN_STRING_INITIALIZER(struct tool_result, rest, TOKEN_STRING_MULTI);
static cmdline_parse_inst_t tool = {
	.f = tool_parsed,
	.help_str = "tc|ip ...: run the real tool on the control socket of this program",
	.tokens = { (cmdline_parse_token_hdr_t *)&tool_name,
		(cmdline_parse_token_hdr_t *)&tool_rest, NULL },
};
PROMPT_REGISTER(tool);

static cmdline_parse_inst_t tool_alone = {
	.f = tool_alone_parsed,
	.help_str = "tc|ip: says what to write after it",
	.tokens = { (cmdline_parse_token_hdr_t *)&tool_name, NULL },
};
PROMPT_REGISTER(tool_alone);
