/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef ACTION_SLAB_H
#define ACTION_SLAB_H

/*
 * Memory for millions of small objects: rules, actions, their parameters, and the arrays that go
 * with them.
 *
 * Objects of one size lie side by side in chunks of 2 MiB, each with a list of those that are free:
 * no header for each object, and neither taking nor giving back one ever depends on how many there
 * are. (glibc's free() leaves chunks of a million objects unsorted, and the next malloc() that
 * finds nothing better sorts ten thousand of them: a millisecond.) Chunks of which nothing is in
 * use are kept for the next objects of their size until slab_trim(). From the second on, chunks ask
 * for huge pages: look-ups all over millions of rules otherwise miss the TLB as often as the cache.
 *
 * Under AddressSanitizer each object is one of malloc(), so that use after free is seen.
 *
 * Thread safety: one control thread. Objects may be read by whom it likes.
 */

#include <stdbool.h>
#include <stddef.h>

struct slab;

/* The largest object: 64 KiB and a cache line. */
#define SLAB_SIZE_MAX (65536 + 64)

/* `owner` is what slab_owner() returns. NULL: no memory. */
struct slab *slab_create(void *owner);
/* Every object must have been given back. NULL is accepted. */
void slab_destroy(struct slab *slab);

/*
 * Zeroed memory, aligned to 8 bytes; to a cache line if `size` is a multiple of one. NULL: no
 * memory, or more than SLAB_SIZE_MAX.
 */
void *slab_alloc(struct slab *slab, size_t size);
/* Gives it back. NULL is accepted. */
void slab_free(void *object);
/*
 * Gives up to n chunks of which nothing is in use back to the system, which may take 0.2 ms for
 * each. True when there are no more: until then call it again.
 */
bool slab_trim(struct slab *slab, unsigned int n);
/* The owner of the slab that the object is from. */
void *slab_owner(const void *object);
/* Bytes of the objects in use. */
size_t slab_used(const struct slab *slab);

#endif /* ACTION_SLAB_H */
