/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The socket file: taking over a stale one, refusing a live one, removing ours. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "netlink/server.h"

#define BACKLOG 128

static int
say(char *error, size_t size, const char *path, int err, const char *what)
{
	snprintf(error, size, "%s: %s", path, what);
	return err;
}

/* Is there someone who serves `addr`? 0: no, and the file was removed; else -errno. */
static int
clear_stale(const struct sockaddr_un *addr, char *error, size_t size)
{
	const char *path = addr->sun_path;
	struct stat st;
	int fd, err;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : say(error, size, path, -errno, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return say(error, size, path, -EEXIST, "exists and is not a socket");
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
		return say(error, size, path, -errno, strerror(errno));
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : errno;
	close(fd);
	if (err == EACCES || err == EPERM)
		return say(error, size, path, -EACCES, "belongs to another user");
	/* A full backlog and another type of socket are signs of life too. */
	if (err == 0 || err == EAGAIN || err == EPROTOTYPE)
		return say(error, size, path, -EADDRINUSE, "is served by another program");
	if (err != ECONNREFUSED && err != ENOENT)
		return say(error, size, path, -err, strerror(err));
	if (unlink(path) != 0 && errno != ENOENT)
		return say(error, size, path, -errno, strerror(errno));
	return 0;
}

/* Mode and group before anyone can connect: a socket's own mode is what bind() gives the file. */
static int
bind_file(int fd, const struct sockaddr_un *addr)
{
	if (fchmod(fd, 0600) != 0)
		return -errno;
	return bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : -errno;
}

static int
open_to_group(const char *path, gid_t group)
{
	if (group == (gid_t)-1)
		return 0;
	return chown(path, (uid_t)-1, group) == 0 && chmod(path, 0660) == 0 ? 0 : -errno;
}

int
netlink_listen(struct netlink_server *server, char *error, size_t size)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = server->path;
	struct stat st;
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(error, size, "%s: too long for a socket, %zu bytes where %zu are allowed",
			path, strlen(path), sizeof(addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
		return say(error, size, path, -errno, strerror(errno));
	if ((err = bind_file(fd, &addr)) == -EADDRINUSE) {
		if ((err = clear_stale(&addr, error, size)) != 0)
			goto fail_said;
		err = bind_file(fd, &addr);
	}
	if (err != 0)
		goto fail;
	if ((err = open_to_group(path, server->conf.group)) != 0 || stat(path, &st) != 0 ||
		listen(fd, BACKLOG) != 0) {
		if (err == 0)
			err = -errno;
		unlink(path);
		goto fail;
	}
	server->dev = st.st_dev;
	server->ino = st.st_ino;
	server->listener = fd;
	return 0;
fail:
	say(error, size, path, err, strerror(-err));
fail_said:
	close(fd);
	return err;
}

void
netlink_listen_close(struct netlink_server *server)
{
	struct stat st;

	if (server->listener < 0)
		return;
	if (lstat(server->path, &st) == 0 && st.st_dev == server->dev && st.st_ino == server->ino)
		unlink(server->path);
	close(server->listener);
	server->listener = -1;
}

int
netlink_accept(struct netlink_server *server)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) {
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if ((errno != EMFILE && errno != ENFILE) || server->spare < 0)
			return -1;
		/* Out of descriptors: give one up to send the caller away, or it would call for
		 * ever. */
		close(server->spare);
		fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			netlink_send_hello(fd, -EMFILE, -1);
			close(fd);
		}
		server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
		netlink_log(server, "control client refused: out of file descriptors");
		if (fd < 0)
			return -1;
	}
	return fd;
}
