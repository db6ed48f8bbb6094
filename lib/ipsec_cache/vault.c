/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <bsd/string.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "ipsec_cache/vault.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define VAULT_PIECE (UINT32_C(2) << 20)
#define VAULT_CLASSES (IPSEC_VAULT_OBJECT_MAX / RTE_CACHE_LINE_SIZE + 1)

/* Pieces are known by a list outside of them; free objects of a size by an array of pointers. */
struct vault_class {
	void **free;
	size_t n_free, room;
	size_t n_made; /* `free` has room for all: giving back never fails */
};

struct ipsec_vault {
	void **pieces;
	size_t n_pieces;
	size_t used; /* bytes of the newest piece */
	struct vault_class classes[VAULT_CLASSES];
};

struct ipsec_vault *
ipsec_vault_create(void)
{
	return calloc(1, sizeof(struct ipsec_vault));
}

void
ipsec_vault_destroy(struct ipsec_vault *vault)
{
	size_t i;

	if (vault == NULL)
		return;
	for (i = 0; i < vault->n_pieces; i++) {
		ASAN_UNPOISON_MEMORY_REGION(vault->pieces[i], VAULT_PIECE);
		explicit_bzero(vault->pieces[i], VAULT_PIECE);
		munmap(vault->pieces[i], VAULT_PIECE);
	}
	for (i = 0; i < VAULT_CLASSES; i++)
		free(vault->classes[i].free);
	free(vault->pieces);
	free(vault);
}

/* A piece at a multiple of its size, where a huge page can lie. */
static void *
map_piece(void)
{
	uint8_t *all, *piece;
	size_t before;

	all = mmap(NULL, 2 * (size_t)VAULT_PIECE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	piece = RTE_PTR_ALIGN_CEIL(all, VAULT_PIECE);
	before = (size_t)(piece - all);
	if (before > 0)
		munmap(all, before);
	if (before < VAULT_PIECE)
		munmap(piece + VAULT_PIECE, VAULT_PIECE - before);
	madvise(piece, VAULT_PIECE, MADV_DONTDUMP);
	madvise(piece, VAULT_PIECE, MADV_HUGEPAGE);
	mlock(piece, VAULT_PIECE);
	return piece;
}

static int
add_piece(struct ipsec_vault *vault)
{
	void **pieces, *piece;

	pieces = reallocarray(vault->pieces, vault->n_pieces + 1, sizeof(*pieces));
	if (pieces == NULL)
		return -1;
	vault->pieces = pieces;
	if ((piece = map_piece()) == NULL)
		return -1;
	ASAN_POISON_MEMORY_REGION(piece, VAULT_PIECE);
	pieces[vault->n_pieces++] = piece;
	vault->used = 0;
	return 0;
}

/* Room for one more free object of that class. */
static int
grow_class(struct vault_class *class)
{
	size_t room = class->room == 0 ? 16 : class->room * 2;
	void **list;

	if (class->n_made < class->room)
		return 0;
	if ((list = reallocarray(class->free, room, sizeof(*list))) == NULL)
		return -1;
	class->free = list;
	class->room = room;
	return 0;
}

void *
ipsec_vault_alloc(struct ipsec_vault *vault, size_t size)
{
	struct vault_class *class;
	void *object;

	if (size == 0 || size > IPSEC_VAULT_OBJECT_MAX)
		return NULL;
	size = RTE_CACHE_LINE_ROUNDUP(size);
	class = &vault->classes[size / RTE_CACHE_LINE_SIZE];
	if (class->n_free > 0) {
		object = class->free[--class->n_free];
		ASAN_UNPOISON_MEMORY_REGION(object, size);
		return object;
	}
	if (grow_class(class) != 0)
		return NULL;
	if ((vault->n_pieces == 0 || VAULT_PIECE - vault->used < size) && add_piece(vault) != 0)
		return NULL;
	object = (uint8_t *)vault->pieces[vault->n_pieces - 1] + vault->used;
	ASAN_UNPOISON_MEMORY_REGION(object, size);
	vault->used += size;
	class->n_made++;
	return object;
}

void
ipsec_vault_free(struct ipsec_vault *vault, void *object, size_t size)
{
	struct vault_class *class;

	if (object == NULL)
		return;
	size = RTE_CACHE_LINE_ROUNDUP(size);
	class = &vault->classes[size / RTE_CACHE_LINE_SIZE];
	explicit_bzero(object, size);
	ASAN_POISON_MEMORY_REGION(object, size);
	class->free[class->n_free++] = object;
}
