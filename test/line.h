/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_LINE_H
#define TEST_LINE_H

/* Lines that a test in another language writes to a program: a verb, then key=value words. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_LEN 200000

/* The value of key=... in the line, or NULL. Valid until the next call but one. */
static inline const char *
word(const char *line, const char *key)
{
	static char values[2][LINE_MAX_LEN];
	static unsigned int turn;
	size_t len = strlen(key), n;
	const char *p = line;

	while ((p = strchr(p, ' ')) != NULL) {
		p++;
		if (strncmp(p, key, len) == 0 && p[len] == '=') {
			turn ^= 1;
			n = strcspn(p + len + 1, " \n");
			memcpy(values[turn], p + len + 1, n);
			values[turn][n] = '\0';
			return values[turn];
		}
	}
	return NULL;
}

/* The same as a number. */
static inline uint64_t
number(const char *line, const char *key, uint64_t otherwise)
{
	const char *value = word(line, key);

	return value != NULL ? strtoull(value, NULL, 0) : otherwise;
}

static inline unsigned int
digit(char c)
{
	return c <= '9' ? (unsigned int)(c - '0') : (unsigned int)(c - 'a' + 10);
}

/* Bytes from lower-case hexadecimal digits; returns how many, `max` at most. */
static inline size_t
hex(const char *text, uint8_t *to, size_t max)
{
	size_t n;

	for (n = 0; n < max && text[2 * n] != '\0'; n++)
		to[n] = (uint8_t)(digit(text[2 * n]) << 4 | digit(text[2 * n + 1]));
	return n;
}

#endif /* TEST_LINE_H */
