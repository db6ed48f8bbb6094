/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Descriptors come and go: the table follows, and our private ones stay out of sight. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdarg.h>

#include "nlsock.h"
#include "real.h"

EXPORT int
close(int fd)
{
	if (nlsock_is_private(fd)) {
		errno = EBADF;
		return -1;
	}
	nlsock_forget(fd);
	return real()->close(fd);
}

/* real close_range() on what lies between the private descriptors. */
static int
close_between(unsigned int first, unsigned int last, int flags)
{
	while (first <= last) {
		unsigned int private = nlsock_next_private(first), end = last;

		if (private < NLSOCK_FD_MAX && private <= last) {
			if (private == first) {
				first++;
				continue;
			}
			end = private - 1;
		}
		if (real()->close_range(first, end, flags) != 0)
			return -1;
		if (end == last)
			break;
		first = end + 1;
	}
	return 0;
}

static void
forget_range(unsigned int first, unsigned int last)
{
	for (unsigned int fd = first; fd <= last && fd < NLSOCK_FD_MAX; fd++)
		nlsock_forget((int)fd);
}

EXPORT int
close_range(unsigned int first, unsigned int last, int flags)
{
	if ((flags & CLOSE_RANGE_CLOEXEC) != 0 || first > last)
		return real()->close_range(first, last, flags);
	forget_range(first, last);
	return close_between(first, last, flags);
}

EXPORT void
closefrom(int low)
{
	unsigned int first = low < 0 ? 0 : (unsigned int)low;

	forget_range(first, UINT_MAX);
	if (close_between(first, UINT_MAX, 0) == 0)
		return;
	/* A kernel without close_range(). */
	for (long max = sysconf(_SC_OPEN_MAX), fd = first; fd < max; fd++)
		if (!nlsock_is_private((int)fd))
			real()->close((int)fd);
}

static int
shared(int copy, int fd)
{
	struct nlsock *sock = nlsock_find(fd);

	if (copy < 0 || copy == fd)
		return copy;
	if (sock != NULL)
		nlsock_share(copy, sock);
	else
		nlsock_forget(copy);
	return copy;
}

EXPORT int
dup(int fd)
{
	return shared(real()->dup(fd), fd);
}

EXPORT int
dup2(int fd, int copy)
{
	if (nlsock_is_private(copy) && nlsock_move_private(copy) != 0)
		return -1;
	return shared(real()->dup2(fd, copy), fd);
}

EXPORT int
dup3(int fd, int copy, int flags)
{
	if (nlsock_is_private(copy) && nlsock_move_private(copy) != 0)
		return -1;
	return shared(real()->dup3(fd, copy, flags), fd);
}

static int
fcntl_common(int fd, int cmd, void *arg)
{
	int r = real()->fcntl(fd, cmd, arg);

	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? shared(r, fd) : r;
}

EXPORT int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fcntl_common(fd, cmd, arg);
}

/* What programs with a 64-bit off_t call. */
EXPORT int
fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fcntl_common(fd, cmd, arg);
}
