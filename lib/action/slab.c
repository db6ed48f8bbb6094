/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "action/slab.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)

/* What stands before an object. */
struct origin {
	struct slab *slab;
	size_t bytes;
} __rte_cache_aligned;

struct slab {
	void *owner;
	size_t used;
};

void
slab_destroy(struct slab *slab)
{
	free(slab);
}

bool
slab_trim(struct slab *slab, unsigned int n)
{
	(void)slab, (void)n;
	return true;
}

void *
slab_alloc(struct slab *slab, size_t size)
{
	struct origin *origin;

	if (size == 0 || size > SLAB_SIZE_MAX ||
		posix_memalign((void **)&origin, RTE_CACHE_LINE_SIZE, sizeof(*origin) + size) != 0)
		return NULL;
	origin->slab = slab;
	origin->bytes = size;
	slab->used += size;
	return memset(origin + 1, 0, size);
}

void
slab_free(void *object)
{
	struct origin *origin;

	if (object == NULL)
		return;
	origin = (struct origin *)object - 1;
	origin->slab->used -= origin->bytes;
	free(origin);
}

void *
slab_owner(const void *object)
{
	return ((const struct origin *)object - 1)->slab->owner;
}

#else

#define CHUNK (UINT64_C(2) << 20)
/* Sizes up to SMALL by steps of 8 bytes, then by KiB: so many of them. */
#define SMALL 1024
#define STEP_BITS 3
#define LARGE_BITS 10
#define SMALL_SIZES (SMALL >> STEP_BITS)
#define SIZES (SMALL_SIZES + (SLAB_SIZE_MAX >> LARGE_BITS) + 1)

/* One that is free. */
struct object {
	struct object *next;
};

struct chunk {
	LIST_ENTRY(chunk) link; /* in the list of its size, while an object is free */
	struct size *size;
	struct object *free;
	uint8_t *fresh; /* from here on nothing is taken, or linked */
	uint32_t left; /* objects there */
	uint32_t used;
	bool dirty; /* was all used before */
} __rte_cache_aligned;
static_assert(sizeof(struct chunk) == 64, "it lies in one line");

struct size {
	struct slab *slab;
	uint32_t bytes;
	uint32_t chunks;
	LIST_HEAD(, chunk) some; /* of which an object is free */
	LIST_HEAD(, chunk) spare; /* of which nothing is in use */
};

struct slab {
	void *owner;
	size_t used;
	struct size sizes[SIZES];
};

static void *
start_of(const struct chunk *chunk)
{
	return (void *)RTE_ALIGN_FLOOR((uintptr_t)chunk, CHUNK);
}

bool
slab_trim(struct slab *slab, unsigned int n)
{
	struct chunk *chunk;

	for (unsigned int i = 0; i < SIZES; i++) {
		while ((chunk = LIST_FIRST(&slab->sizes[i].spare)) != NULL) {
			if (n-- == 0)
				return false;
			LIST_REMOVE(chunk, link);
			slab->sizes[i].chunks--;
			munmap(start_of(chunk), CHUNK);
		}
	}
	return true;
}

void
slab_destroy(struct slab *slab)
{
	if (slab == NULL)
		return;
	(void)slab_trim(slab, UINT_MAX);
	free(slab);
}

/*
 * Headers of chunks would all share a few sets of the caches if they stood at the start of the
 * chunks, whose addresses have the same lower bits: each is a few lines further on.
 */
static struct chunk *
chunk_of(const void *object)
{
	uintptr_t start = RTE_ALIGN_FLOOR((uintptr_t)object, CHUNK);

	return (struct chunk *)(start + (start / CHUNK % 64) * sizeof(struct chunk));
}

/* 2 MiB at a multiple of 2 MiB. */
static uint8_t *
map_chunk(void)
{
	uint8_t *p = mmap(NULL, 2 * CHUNK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		*at;

	if (p == MAP_FAILED)
		return NULL;
	at = (uint8_t *)RTE_ALIGN_CEIL((uintptr_t)p, CHUNK);
	if (at != p)
		munmap(p, (size_t)(at - p));
	munmap(at + CHUNK, (size_t)(p + CHUNK - at));
	return at;
}

/* All of it is fresh: objects are taken in the order in which they lie. */
static void
chunk_reset(struct chunk *chunk)
{
	uint8_t *end = (uint8_t *)start_of(chunk) + CHUNK;

	chunk->free = NULL;
	chunk->fresh = (uint8_t *)(chunk + 1);
	chunk->left = (uint32_t)((size_t)(end - chunk->fresh) / chunk->size->bytes);
}

static struct chunk *
chunk_make(struct size *size)
{
	uint8_t *start = map_chunk();
	struct chunk *chunk;

	if (start == NULL)
		return NULL;
	/*
	 * Not the first: few objects should not take 2 MiB. Nor where huge pages are not wanted:
	 * one that is new to a virtual machine's host may take 2 ms. It is only a wish.
	 */
	if (size->chunks > 0 && rte_eal_has_hugepages() != 0)
		(void)madvise(start, CHUNK, MADV_HUGEPAGE);
	chunk = chunk_of(start);
	chunk->size = size;
	chunk_reset(chunk);
	size->chunks++;
	LIST_INSERT_HEAD(&size->some, chunk, link);
	return chunk;
}

/* The chunk to take an object from. */
static struct chunk *
chunk_with_room(struct size *size)
{
	struct chunk *chunk = LIST_FIRST(&size->some);

	if (chunk != NULL)
		return chunk;
	if ((chunk = LIST_FIRST(&size->spare)) == NULL)
		return chunk_make(size);
	LIST_REMOVE(chunk, link);
	LIST_INSERT_HEAD(&size->some, chunk, link);
	return chunk;
}

static struct size *
size_of(struct slab *slab, size_t bytes)
{
	struct size *size;
	uint32_t i;

	if (bytes <= SMALL) {
		i = (uint32_t)((bytes - 1) >> STEP_BITS);
		size = &slab->sizes[i];
		size->bytes = (i + 1) << STEP_BITS;
	} else {
		i = (uint32_t)((bytes - 1 - SMALL) >> LARGE_BITS);
		size = &slab->sizes[SMALL_SIZES + i];
		size->bytes = RTE_MIN(SMALL + ((i + 1) << LARGE_BITS), (uint32_t)SLAB_SIZE_MAX);
	}
	size->slab = slab;
	return size;
}

void *
slab_alloc(struct slab *slab, size_t bytes)
{
	struct size *size;
	struct chunk *chunk;
	struct object *object;

	if (bytes == 0 || bytes > SLAB_SIZE_MAX)
		return NULL;
	size = size_of(slab, bytes);
	if ((chunk = chunk_with_room(size)) == NULL)
		return NULL;
	chunk->used++;
	slab->used += size->bytes;
	if ((object = chunk->free) != NULL) {
		chunk->free = object->next;
		memset(object, 0, bytes);
	} else {
		object = (struct object *)(void *)chunk->fresh;
		if (chunk->dirty)
			memset(object, 0, bytes);
		chunk->fresh += size->bytes;
		chunk->left--;
	}
	if (chunk->free == NULL && chunk->left == 0)
		LIST_REMOVE(chunk, link);
	return object;
}

void
slab_free(void *object)
{
	struct chunk *chunk;

	if (object == NULL)
		return;
	chunk = chunk_of(object);
	chunk->size->slab->used -= chunk->size->bytes;
	if (chunk->free == NULL && chunk->left == 0)
		LIST_INSERT_HEAD(&chunk->size->some, chunk, link);
	((struct object *)object)->next = chunk->free;
	chunk->free = object;
	if (--chunk->used == 0) {
		chunk_reset(chunk);
		chunk->dirty = true;
		LIST_REMOVE(chunk, link);
		LIST_INSERT_HEAD(&chunk->size->spare, chunk, link);
	}
}

void *
slab_owner(const void *object)
{
	return chunk_of(object)->size->slab->owner;
}

#endif

struct slab *
slab_create(void *owner)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (slab != NULL)
		slab->owner = owner;
	return slab;
}

size_t
slab_used(const struct slab *slab)
{
	return slab->used;
}
