/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PROMPT_TRAFFIC_H
#define APP_PROMPT_TRAFFIC_H

struct app;

/* `start` and `stop` as commands, options and signals mean them. NULL, or why not. */
const char *traffic_start(struct app *app, unsigned int tx_first);
void traffic_stop(struct app *app);

#endif /* APP_PROMPT_TRAFFIC_H */
