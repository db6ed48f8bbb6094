/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_common.h>

#include "action/slab.h"

#define MANY 100000
#define SIZE 80

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif

static int
setup(void **state)
{
	*state = slab_create((void *)(uintptr_t)42);
	return *state == NULL;
}

static int
teardown(void **state)
{
	slab_destroy(*state);
	return 0;
}

/* Fills it with a number of its own, after it was seen to be all zero. */
static void *
take(struct slab *slab, size_t size, uint32_t number)
{
	uint8_t *p = slab_alloc(slab, size);

	assert_non_null(p);
	for (size_t i = 0; i < size; i++)
		if (p[i] != 0)
			fail_msg("byte %zu of a new object is %u", i, p[i]);
	memset(p, 0xa5, size);
	memcpy(p, &number, RTE_MIN(size, sizeof(number)));
	return p;
}

static bool
is_whole(const uint8_t *p, size_t size, uint32_t number)
{
	if (memcmp(p, &number, RTE_MIN(size, sizeof(number))) != 0)
		return false;
	for (size_t i = sizeof(number); i < size; i++)
		if (p[i] != 0xa5)
			return false;
	return true;
}

static void
slab_objects_are_zero_whole_and_apart(void **state)
{
	static const size_t sizes[] = { 1, 8, 24, 64, 80, 96, 576, 1023, 1024, 1025, 4096, 65536,
		SLAB_SIZE_MAX };
	void *object[RTE_DIM(sizes)][64];

	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int s = 0; s < RTE_DIM(sizes); s++) {
			for (uint32_t i = 0; i < 64; i++) {
				object[s][i] = take(*state, sizes[s], s << 8 | i);
				assert_int_equal((uintptr_t)object[s][i] % 8, 0);
				if (sizes[s] % 64 == 0)
					assert_int_equal((uintptr_t)object[s][i] % 64, 0);
				assert_ptr_equal(slab_owner(object[s][i]), (void *)(uintptr_t)42);
			}
		}
		for (unsigned int s = 0; s < RTE_DIM(sizes); s++) {
			for (uint32_t i = 0; i < 64; i++) {
				assert_true(is_whole(object[s][i], sizes[s], s << 8 | i));
				slab_free(object[s][i]);
			}
		}
	}
}

static void
slab_refuses_what_is_too_large(void **state)
{
	assert_null(slab_alloc(*state, SLAB_SIZE_MAX + 1));
	assert_null(slab_alloc(*state, 0));
	slab_free(NULL);
	slab_destroy(NULL);
}

/* Objects come and go at random; those that stay are never touched. */
static void
slab_random_objects_stay_whole(void **state)
{
	static struct {
		void *p;
		size_t size;
	} object[4096];
	unsigned int seed = 1;

	for (uint32_t n = 0; n < 400000; n++) {
		uint32_t i = (uint32_t)rand_r(&seed) % RTE_DIM(object);

		if (object[i].p == NULL) {
			object[i].size = 8 + (size_t)rand_r(&seed) % 300;
			object[i].p = take(*state, object[i].size, i);
			continue;
		}
		assert_true(is_whole(object[i].p, object[i].size, i));
		slab_free(object[i].p);
		object[i].p = NULL;
	}
	for (uint32_t i = 0; i < RTE_DIM(object); i++)
		slab_free(object[i].p);
	memset(object, 0, sizeof(object));
}

static bool
is_mapped(const void *p)
{
	unsigned char there;
	uintptr_t page = (uintptr_t)p & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	return mincore((void *)page, 1, &there) == 0;
}

/* Eight megabytes of objects. */
static void
slab_memory_goes_back(void **state)
{
	static void *object[MANY];
	void *page[16];
	unsigned int n = 0, mapped = 0;

	if (WITH_ASAN)
		skip();
	for (uint32_t i = 0; i < MANY; i++)
		object[i] = take(*state, SIZE, i);
	for (uint32_t i = 0; i < MANY; i += MANY / 16)
		page[n++] = object[i];
	assert_int_equal(slab_used(*state), MANY * SIZE);
	/* All over: 7919 has no factor in common with MANY. */
	for (uint32_t i = 0; i < MANY; i++)
		slab_free(object[(uint64_t)i * 7919 % MANY]);
	assert_int_equal(slab_used(*state), 0);
	/* Kept for the next, */
	object[0] = take(*state, SIZE, 0);
	slab_free(object[0]);
	for (unsigned int i = 0; i < 16; i++)
		mapped += is_mapped(page[i]);
	assert_int_equal(mapped, 16);
	/* until they are asked for, one by one: a chunk holds 26000. */
	for (unsigned int i = 0; i < 3; i++)
		assert_false(slab_trim(*state, 1));
	assert_true(slab_trim(*state, 2));
	for (unsigned int i = 0; i < 16; i++)
		assert_false(is_mapped(page[i]));
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(slab_objects_are_zero_whole_and_apart),
		T(slab_refuses_what_is_too_large),
		T(slab_random_objects_stay_whole),
		T(slab_memory_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
