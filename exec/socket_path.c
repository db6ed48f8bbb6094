/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "socket_path.h"

/* As EAL's eal_create_runtime_dir() chooses. */
static const char *
runtime_directory(void)
{
	const char *dir;

	if ((dir = getenv("RUNTIME_DIRECTORY")) != NULL)
		return dir;
	if (getuid() == 0)
		return "/var/run";
	return (dir = getenv("XDG_RUNTIME_DIR")) != NULL ? dir : "/tmp";
}

int
exec_socket_path(char *path, size_t size, const char *file_prefix)
{
	int n = snprintf(path, size, "%s/dpdk/%s/millrace.sock", runtime_directory(), file_prefix);

	return n > 0 && (size_t)n < size ? 0 : -1;
}
