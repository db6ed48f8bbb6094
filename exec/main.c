/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* millrace-exec: runs a program whose netlink sockets reach millrace instead of the kernel. */

#include <bsd/err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "program.h"
#include "socket_path.h"

/* As env(1): its own failure, a program that cannot be run, one that is not found. */
#define EXIT_SELF 125
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

#define PRELOAD_NAME "libmillrace-preload.so"

struct options {
	const char *file_prefix;
	const char *socket;
	const char *only;
};

static void
usage(FILE *to)
{
	fprintf(to,
		"usage: millrace-exec [-f FILE_PREFIX | -s SOCKET] [--only=route|xfrm] "
		"PROGRAM [ARG...]\n");
}

static void
help(void)
{
	usage(stdout);
	puts("\nRuns PROGRAM with its netlink sockets connected to millrace instead of the "
	     "kernel.\n\n"
	     "  -f, --file-prefix=PREFIX  millrace was started with EAL's --file-prefix=PREFIX\n"
	     "  -s, --socket=SOCKET       millrace was started with --ctl=SOCKET\n"
	     "      --only=route|xfrm     redirect only this family; the other is the kernel's\n"
	     "  -h, --help                print this and exit\n"
	     "  -V, --version             print the version and exit\n\n"
	     "Set-user-ID and statically linked programs, and those written in Go, cannot be "
	     "redirected.");
}

static void
parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "file-prefix", required_argument, NULL, 'f' },
		{ "socket", required_argument, NULL, 's' },
		{ "only", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+f:s:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			o->file_prefix = optarg;
			break;
		case 's':
			o->socket = optarg;
			break;
		case 'o':
			if (strcmp(optarg, "route") != 0 && strcmp(optarg, "xfrm") != 0)
				errx(EXIT_SELF, "--only=%s: neither route nor xfrm", optarg);
			o->only = optarg;
			break;
		case 'h':
			help();
			exit(0);
		case 'V':
			puts("millrace-exec " MILLRACE_VERSION);
			exit(0);
		default:
			usage(stderr);
			exit(EXIT_SELF);
		}
	}
	if (o->file_prefix != NULL && o->socket != NULL)
		errx(EXIT_SELF, "-f and -s exclude each other");
	if (optind == argc) {
		usage(stderr);
		exit(EXIT_SELF);
	}
}

/* Absolute, for the program may change its directory before it opens a socket. */
static void
choose_socket(const struct options *o, char *path, size_t size)
{
	const char *inherited = getenv(EXEC_ENV_SOCKET), *name = o->socket;
	char cwd[PATH_MAX];
	int n;

	if (name == NULL && o->file_prefix == NULL)
		name = inherited;
	if (name == NULL) {
		if (exec_socket_path(path, size, o->file_prefix ? o->file_prefix : "rte") != 0)
			errx(EXIT_SELF, "%s: file prefix too long", o->file_prefix);
		return;
	}
	if (name[0] == '/') {
		n = snprintf(path, size, "%s", name);
	} else {
		if (getcwd(cwd, sizeof(cwd)) == NULL)
			err(EXIT_SELF, "current directory");
		n = snprintf(path, size, "%s/%s", cwd, name);
	}
	if (n < 0 || (size_t)n >= size)
		errx(EXIT_SELF, "%s: too long for a socket", name);
}

/* The program would only say that it cannot open a netlink socket. */
static void
check_socket(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	memcpy(addr.sun_path, path, strlen(path) + 1);
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) < 0)
		err(EXIT_SELF, "socket");
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
		int e = errno;

		if (e == ENOENT || e == ECONNREFUSED)
			errx(EXIT_SELF, "cannot connect to %s: %s, is millrace running?", path,
				strerror(e));
		errc(EXIT_SELF, e, "cannot connect to %s", path);
	}
	close(fd);
}

/* Beside this program in a build tree, else where it was installed. */
static void
find_preload(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (n > 0) {
		path[n] = '\0';
		if ((slash = strrchr(path, '/')) != NULL &&
			(size_t)(slash - path) + sizeof("/" PRELOAD_NAME) <= size) {
			memcpy(slash, "/" PRELOAD_NAME, sizeof("/" PRELOAD_NAME));
			if (access(path, R_OK) == 0)
				return;
		}
	}
	if (access(MILLRACE_LIBDIR "/" PRELOAD_NAME, R_OK) != 0)
		err(EXIT_SELF, "%s", MILLRACE_LIBDIR "/" PRELOAD_NAME);
	snprintf(path, size, "%s", MILLRACE_LIBDIR "/" PRELOAD_NAME);
}

static void
set_environment(const struct options *o, const char *socket_path)
{
	const char *others = getenv("LD_PRELOAD");
	char preload[PATH_MAX], *value = preload;

	find_preload(preload, sizeof(preload));
	if (strpbrk(preload, ": ") != NULL)
		errx(EXIT_SELF,
			"%s: the dynamic linker cannot preload a path with a colon or space",
			preload);
	if (others != NULL && strstr(others, PRELOAD_NAME) != NULL)
		value = strdup(others); /* one of these runs inside another */
	else if (others != NULL && *others != '\0' &&
		asprintf(&value, "%s:%s", preload, others) < 0)
		value = NULL;
	if (value == NULL || setenv("LD_PRELOAD", value, 1) != 0 ||
		setenv(EXEC_ENV_SOCKET, socket_path, 1) != 0 ||
		(o->only != NULL ? setenv(EXEC_ENV_ONLY, o->only, 1) : unsetenv(EXEC_ENV_ONLY)) !=
			0)
		err(EXIT_SELF, NULL);
}

int
main(int argc, char **argv)
{
	char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)], program[PATH_MAX];
	struct options o = { 0 };
	const char *why;
	int e;

	parse(&o, argc, argv);
	argv += optind;
	choose_socket(&o, socket_path, sizeof(socket_path));
	if ((e = program_find(argv[0], program, sizeof(program))) != 0)
		errc(e == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, e, "%s", argv[0]);
	if ((why = program_unreachable(program)) != NULL)
		errx(EXIT_CANNOT_RUN, "%s %s: its netlink sockets would go to the kernel", argv[0],
			why);
	check_socket(socket_path);
	set_environment(&o, socket_path);
	execv(program, argv);
	if (errno == ENOEXEC) {
		/* A script without #!: execvp() knows what to do. */
		execvp(argv[0], argv);
	}
	err(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "%s", argv[0]);
}
