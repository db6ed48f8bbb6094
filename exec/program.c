/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The program to be run: where it is and whether preloading works with it. */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "program.h"

static int
check(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return access(path, X_OK) == 0 ? 0 : errno;
}

int
program_find(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH");
	int err = ENOENT;

	if (strchr(name, '/') != NULL) {
		snprintf(path, size, "%s", name);
		return check(name);
	}
	if (dirs == NULL)
		dirs = "/usr/bin:/bin";
	for (const char *end; *name != '\0'; dirs = end + 1) {
		int len, e;

		end = strchrnul(dirs, ':');
		len = (int)(end - dirs);
		if (snprintf(path, size, "%.*s%s%s", len, dirs, len > 0 ? "/" : "", name) <
			(int)size) {
			if ((e = check(path)) == 0)
				return 0;
			if (e == EACCES)
				err = e;
		}
		if (*end == '\0')
			break;
	}
	return err;
}

/* An ELF file that names no loader has nobody to preload for it. */
static bool
is_static(int fd)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (pread(fd, &eh, sizeof(eh), 0) != (ssize_t)sizeof(eh) ||
		memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
		eh.e_phentsize != sizeof(ph))
		return false;
	for (unsigned int i = 0; i < eh.e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) !=
			(ssize_t)sizeof(ph))
			return false;
		if (ph.p_type == PT_INTERP)
			return false;
	}
	return true;
}

const char *
program_unreachable(const char *path)
{
	struct stat st;
	bool stat_ok, is;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return NULL; /* executable but not readable: nothing to go by */
	stat_ok = fstat(fd, &st) == 0;
	is = is_static(fd);
	if (is) {
		close(fd);
		return "is statically linked";
	}
	is = stat_ok && geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
	close(fd);
	if (is)
		return "has file capabilities";
	if (stat_ok &&
		(((st.st_mode & S_ISUID) != 0 && st.st_uid != getuid()) ||
			((st.st_mode & S_ISGID) != 0 && st.st_gid != getgid())))
		return "is set-user-ID or set-group-ID";
	return NULL;
}
