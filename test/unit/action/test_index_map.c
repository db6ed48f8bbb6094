/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_rcu_qsbr.h>

#include "action/index_map.h"
#include "support.h"

#define MODEL 3000

static uint32_t numbers[MODEL]; /* what entries point to */

/* A few regions of the 32 bits, with their borders, and a dense one. */
static uint32_t
index_of(unsigned int n)
{
	static const uint32_t base[] = { 0, 64 - 8, 4096 - 8, 0x3fffff8, 0xc000 - 8, 0x7ffffff8,
		UINT32_MAX - 15, 1000 };

	return base[n % 8] + n / 8 % 16 + (n % 8 == 7 ? n / 8 : 0);
}

static void
check_whole(const struct index_map *map, const bool *in, unsigned int count)
{
	uint32_t at = 0, before = 0;
	unsigned int seen = 0;
	uint32_t *entry;

	for (unsigned int n = 0; n < MODEL; n++)
		assert_ptr_equal(index_map_find(map, index_of(n)) != NULL ? &numbers[0] : NULL,
			in[n] ? &numbers[0] : NULL);
	while ((entry = index_map_next(map, &at)) != NULL) {
		assert_int_equal(index_of(*entry), at);
		assert_true(seen == 0 || at > before);
		before = at;
		seen++;
		if (at++ == UINT32_MAX)
			break;
	}
	assert_int_equal(seen, count);
	assert_int_equal(map->count, count);
}

static void
index_map_agrees_with_a_model(void **state)
{
	struct rte_rcu_qsbr *qsbr = *state;
	struct rcu *rcu = qsbr != NULL ? rcu_create(qsbr) : NULL;
	struct slab *slab = rcu != NULL ? slab_create(NULL) : NULL;
	bool in[MODEL] = { false };
	unsigned int count = 0, seed = 1, n, same;
	struct index_map map;

	index_map_init(&map, rcu, slab);
	for (unsigned int step = 0; step < 40000; step++) {
		n = (unsigned int)rand_r(&seed) % MODEL;
		/* Different n may name one index: keep to the first. */
		for (same = 0; index_of(same) != index_of(n); same++)
			;
		n = same;
		/* Phases of growing, of shrinking to nothing. */
		if (rand_r(&seed) % 4 < (step / 10000 % 2 == 0 ? 3 : 1)) {
			assert_int_equal(index_map_set(&map, index_of(n), &numbers[n]), 0);
			count += !in[n];
			in[n] = true;
		} else {
			assert_ptr_equal(
				index_map_del(&map, index_of(n)), in[n] ? &numbers[n] : NULL);
			count -= in[n];
			in[n] = false;
		}
	}
	for (n = 0; n < MODEL; n++)
		for (same = 0; same < n; same++)
			if (index_of(same) == index_of(n))
				in[n] = in[same];
	check_whole(&map, in, count);
	for (n = 0; n < MODEL; n++)
		index_map_del(&map, index_of(n));
	assert_int_equal(map.count, 0);
	assert_null(atomic_load(&map.root));
	index_map_clear(&map);
	rcu_destroy(rcu);
	if (slab != NULL)
		assert_int_equal(slab_used(slab), 0);
	slab_destroy(slab);
}

static void
index_map_one_entry_needs_no_node(void **state)
{
	struct index_map map;
	uint32_t at = 5;

	(void)state;
	index_map_init(&map, NULL, NULL);
	assert_int_equal(index_map_set(&map, 49152, &numbers[1]), 0);
	assert_null(atomic_load(&map.root));
	assert_ptr_equal(index_map_find(&map, 49152), &numbers[1]);
	assert_null(index_map_find(&map, 49151));
	assert_ptr_equal(index_map_next(&map, &at), &numbers[1]);
	assert_int_equal(at, 49152);
	assert_int_equal(index_map_set(&map, 1, &numbers[2]), 0);
	assert_ptr_equal(index_map_find(&map, 49152), &numbers[1]);
	assert_ptr_equal(index_map_find(&map, 1), &numbers[2]);
	assert_int_equal(map.count, 2);
	index_map_clear(&map);
	assert_null(index_map_find(&map, 1));
}

static void
index_map_lowest_free_fills_holes(void **state)
{
	struct index_map map;
	uint32_t at;

	(void)state;
	index_map_init(&map, NULL, NULL);
	for (uint32_t n = 1; n <= 10000; n++) {
		at = 1;
		assert_int_equal(index_map_lowest_free(&map, UINT32_MAX, &at), 0);
		assert_int_equal(at, n);
		assert_int_equal(index_map_set(&map, at, &numbers[0]), 0);
	}
	for (uint32_t n = 9000; n >= 1000; n -= 100) {
		assert_non_null(index_map_del(&map, n));
		at = 1;
		assert_int_equal(index_map_lowest_free(&map, UINT32_MAX, &at), 0);
		assert_int_equal(at, n);
	}
	at = 1001;
	assert_int_equal(index_map_lowest_free(&map, UINT32_MAX, &at), 0);
	assert_int_equal(at, 1100);
	at = 9001;
	assert_int_equal(index_map_lowest_free(&map, 10000, &at), -ENOSPC);
	index_map_clear(&map);
	/* Up to the very end. */
	for (uint32_t n = UINT32_MAX - 3; n != 0; n++)
		assert_int_equal(index_map_set(&map, n, &numbers[0]), 0);
	at = UINT32_MAX - 2;
	assert_int_equal(index_map_lowest_free(&map, UINT32_MAX, &at), -ENOSPC);
	at = 0;
	assert_int_equal(index_map_lowest_free(&map, UINT32_MAX, &at), 0);
	assert_int_equal(at, 0);
	index_map_clear(&map);
}

static void
index_map_frees_nodes_after_readers(void **state)
{
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct index_map map;

	(void)state;
	qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
	rte_rcu_qsbr_init(qsbr, 1);
	rte_rcu_qsbr_thread_register(qsbr, 0);
	rte_rcu_qsbr_thread_online(qsbr, 0);
	rcu = rcu_create(qsbr);
	index_map_init(&map, rcu, NULL);
	assert_int_equal(index_map_set(&map, 70000, &numbers[0]), 0);
	assert_ptr_equal(index_map_read(&map, 70000), &numbers[0]);
	index_map_del(&map, 70000);
	assert_null(index_map_read(&map, 70000));
	assert_int_equal(rcu_pending(rcu), 3);
	assert_int_equal(rcu_reclaim(rcu, 0), 0);
	rte_rcu_qsbr_quiescent(qsbr, 0);
	assert_int_equal(rcu_reclaim(rcu, 0), 3);
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	rcu_destroy(rcu);
	free(qsbr);
}

int
main(void)
{
	struct rte_rcu_qsbr *qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_map_agrees_with_a_model),
		cmocka_unit_test_prestate(index_map_agrees_with_a_model, qsbr),
		cmocka_unit_test(index_map_one_entry_needs_no_node),
		cmocka_unit_test(index_map_lowest_free_fills_holes),
		cmocka_unit_test(index_map_frees_nodes_after_readers),
	};
	int rc;

	test_eal_init("index_map", "0");
	for (unsigned int n = 0; n < MODEL; n++)
		numbers[n] = n;
	rte_rcu_qsbr_init(qsbr, 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	free(qsbr);
	return rc;
}
