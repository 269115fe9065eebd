// SPDX-License-Identifier: Apache-2.0
// Bump allocation with one lifetime: everything in an arena goes at once. Memory comes zeroed, from mmap, so
// that a large array costs pages only when touched and a sealed arena can be made read-only. Not thread-safe:
// one owner at a time.
#ifndef WEFT_LIB_ARENA_H
#define WEFT_LIB_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a); // NULL is fine; works on sealed arenas
// Zeroed, aligned for any type. A request of a megabyte or more gets a mapping of its own.
void *arena_alloc(struct arena *a, size_t size) __attribute__((malloc, returns_nonnull));
void *arena_array(struct arena *a, size_t n, size_t size)
    __attribute__((malloc, returns_nonnull)); // n * size checked
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
void *arena_memdup(struct arena *a, const void *p, size_t size);
size_t arena_bytes(const struct arena *a); // mapped from the system
// No more allocations. With protect the pages become read-only (debug and test builds): a stray write faults.
void arena_seal(struct arena *a, int protect);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_NEW_N(a, n, type) ((type *)arena_array((a), (n), sizeof(type)))

#endif
