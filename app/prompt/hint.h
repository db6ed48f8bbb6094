/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PROMPT_HINT_H
#define APP_PROMPT_HINT_H

/* For a testpmd command that is not here: what to type instead. NULL for any other line. */
const char *hint_for(const char *line);

#endif /* APP_PROMPT_HINT_H */
