/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_TELEMETRY_H
#define APP_TELEMETRY_H

#include <stdbool.h>

struct app;

/* Registers the commands under /millrace, once. 0 or -errno. */
int telemetry_register(void);
/* The control thread, every tick: answers what only it can. */
void telemetry_answer(struct app *app);
/* Whether they answer: from the time `app` is open until it is taken apart. */
void telemetry_serve(bool on);

#endif /* APP_TELEMETRY_H */
