/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "real.h"

const struct real *
real(void)
{
	static struct real table;
	static atomic_bool done;

	/* Two threads that both fill it in write the same; acquire and release make it whole for a
	 * third. */
	if (atomic_load_explicit(&done, memory_order_acquire))
		return &table;
#define X(name) table.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
	REAL_LIST(X)
#undef X
	table.fcntl = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
	table.ioctl = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	atomic_store_explicit(&done, true, memory_order_release);
	return &table;
}
