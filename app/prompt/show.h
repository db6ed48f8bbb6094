/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PROMPT_SHOW_H
#define APP_PROMPT_SHOW_H

/* What the program prints of itself, in testpmd's layout where testpmd has one. To stdout. */

#include <stdint.h>

struct app;
struct port;

void show_port_info(struct port *port);
void show_port_stats(struct port *port);
void show_port_stats_all(struct app *app);
/* Since `start`: per port and in all; with --record-core-cycles cycles a packet. */
void show_fwd_stats(struct app *app);
/* Begins at zero: before a start, whose streams are new; at any other time. */
void fwd_stats_start(struct app *app);
void fwd_stats_reset(struct app *app);
void show_sched(struct app *app);
/* Reasons with packets; with none, says so. */
void show_drops(struct app *app);
void drops_reset(struct app *app);

/* Runs fn for the port a command names: a number or "all". prompt_fail() for a port that is not
 * there. */
void show_for_ports(struct app *app, const char *which, void (*fn)(struct port *port));

#endif /* APP_PROMPT_SHOW_H */
