/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef EXEC_PROGRAM_H
#define EXEC_PROGRAM_H

#include <stddef.h>

/*
 * Finds PROGRAM as execvp(3) would. 0 with its path, or an errno: ENOENT (exit 127), EACCES and
 * others (126).
 */
int program_find(const char *name, char *path, size_t size);

/*
 * Why a preloaded library would not reach the sockets of that program, which would go to the kernel
 * instead: a reason, or NULL.
 */
const char *program_unreachable(const char *path);

#endif /* EXEC_PROGRAM_H */
