/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_CONTROL_H
#define APP_CONTROL_H

/*
 * The control thread's event loop: control socket, prompt, signals, timers. It runs on the main
 * lcore and sleeps when nothing is to be done.
 */

#include <stdbool.h>
#include <sys/types.h>

struct app;
struct control;

/* Blocks the signals that the loop takes, for every thread that is started later: call before EAL.
 */
void control_signals_block(void);
/* Undoes it in a child, between fork and exec. */
void control_signals_unblock(void);

/* NULL after one sentence on stderr. */
struct control *control_create(struct app *app);
void control_destroy(struct control *control);

/* Runs until control_quit(), SIGINT or SIGTERM. */
void control_run(struct control *control);
/* The same, also until the child `pid` has ended; returns its wait status, -1 if told to quit
 * first. */
int control_run_child(struct control *control, pid_t pid);
/* What the loop looks after every round: deferred frees, removed ports, links, idleness,
 * statistics. */
void control_tick(struct control *control);
void control_quit(struct control *control);
bool control_quitting(const struct control *control);

/* The command file is done: --idle-exit counts from here on. */
void control_idle_watch(struct control *control);
/* Lets the loop read commands from standard input. */
void control_watch_stdin(struct control *control);

#endif /* APP_CONTROL_H */
