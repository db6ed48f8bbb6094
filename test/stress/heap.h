/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_STRESS_HEAP_H
#define TEST_STRESS_HEAP_H

/*
 * For one file of a program that is linked with --wrap of both: the library's memory from malloc
 * too. Sanitizers know nothing of EAL's heap, neither its bounds nor the lock that passes memory
 * from thread to thread.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

void *__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket);
void __wrap_rte_free(void *mem);

void *
__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	void *mem = aligned_alloc(align, RTE_ALIGN_CEIL(size, align));

	(void)type;
	(void)socket;
	return mem == NULL ? NULL : memset(mem, 0, size);
}

void
__wrap_rte_free(void *mem)
{
	free(mem);
}

#endif /* TEST_STRESS_HEAP_H */
