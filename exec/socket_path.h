/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef EXEC_SOCKET_PATH_H
#define EXEC_SOCKET_PATH_H

#include <stddef.h>

/* How millrace-exec tells the preload library, and its own children, what it was told. */
#define EXEC_ENV_SOCKET "MILLRACE_SOCKET"
#define EXEC_ENV_ONLY "MILLRACE_ONLY"

/*
 * Where the millrace with that EAL --file-prefix listens: EAL's runtime directory, which depends on
 * who asks. 0, or -1 when it does not fit.
 */
int exec_socket_path(char *path, size_t size, const char *file_prefix);

#endif /* EXEC_SOCKET_PATH_H */
