/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_UNIT_NETLINK_TOOLS_H
#define TEST_UNIT_NETLINK_TOOLS_H

/* The real `tc` and `ip` against the families, and what they print. After cmocka.h. */

#include "families.h"

#define OUT (1024 * 1024)

static char out[OUT];

#define RUN(status, ...) \
	do { \
		int _status = families_run(f, out, OUT, __VA_ARGS__); \
		if (_status != (status)) \
			fail_msg("exit %d instead of %d: %s", _status, (status), out); \
	} while (0)
#define OUT_HAS(text) \
	do { \
		if (strstr(out, (text)) == NULL) \
			fail_msg("no \"%s\" in:\n%s", (text), out); \
	} while (0)
#define OUT_IS(text) assert_string_equal(out, (text))

static struct families *
begin(void)
{
	if (!families_tools())
		skip();
	return families_create("tools");
}

#endif /* TEST_UNIT_NETLINK_TOOLS_H */
