/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <bsd/string.h>
#include <string.h>

#include "forward/forward.h"

static STAILQ_HEAD(, forward_mode) modes = STAILQ_HEAD_INITIALIZER(modes);

void
forward_register(struct forward_mode *mode)
{
	STAILQ_INSERT_TAIL(&modes, mode, next);
}

struct forward_mode *
forward_find(const char *name)
{
	struct forward_mode *mode;

	STAILQ_FOREACH (mode, &modes, next) {
		if (strcmp(mode->name, name) == 0)
			return mode;
	}
	return NULL;
}

const char *
forward_names(void)
{
	static char names[128];
	struct forward_mode *mode;

	names[0] = '\0';
	STAILQ_FOREACH (mode, &modes, next) {
		if (names[0] != '\0')
			strlcat(names, ", ", sizeof(names));
		strlcat(names, mode->name, sizeof(names));
	}
	return names;
}
