// SPDX-License-Identifier: Apache-2.0
// Chunks are anonymous mappings, each with a small head that links them; they double from 64 KiB to 4 MiB.
// Under AddressSanitizer the rest of a chunk is poisoned and each allocation is followed by a red zone, so
// that an overrun is found as it would be with malloc.
#include "lib/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/xalloc.h"

#ifdef __SANITIZE_ADDRESS__
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define RED_ZONE 16
#else
#define RED_ZONE 0
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define ALIGN 16
#define HEAD 64 // keeps large arrays on a cache line
#define FIRST_CHUNK (64u << 10)
#define LAST_CHUNK (4u << 20)
#define OWN_MAPPING (1u << 20)

struct chunk {
    struct chunk *next;
    size_t size;
};

struct arena {
    struct chunk *chunk; // all of them, newest first
    uint8_t *p, *end;    // free part of the current one
    size_t next_size, mapped;
    bool sealed;
};

static_assert(sizeof(struct chunk) <= HEAD, "head too small");

struct arena *arena_new(void)
{
    struct arena *a = xcalloc(1, sizeof(*a));
    a->next_size = FIRST_CHUNK;
    return a;
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    for (struct chunk *c = a->chunk, *next; c; c = next) {
        next = c->next;
        size_t size = c->size;
        // The address may come back from a later mmap: its shadow must be clean.
        ASAN_UNPOISON_MEMORY_REGION((uint8_t *)c, size);
        munmap(c, size);
    }
    free(a);
}

static __attribute__((noreturn)) void out_of_memory(void)
{
    fputs("weft: out of memory\n", stderr);
    abort();
}

#define HUGE_FROM ((size_t)8 << 20)

static uint8_t *chunk_add(struct arena *a, size_t size)
{
    struct chunk *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        out_of_memory();
    if (size >= HUGE_FROM) // forwarding tables: most of the time to fill them goes into page faults
        madvise(c, size, MADV_HUGEPAGE);
    c->next = a->chunk;
    c->size = size;
    a->chunk = c;
    a->mapped += size;
    return (uint8_t *)c + HEAD;
}

static void *alloc_own(struct arena *a, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX / 2)
        out_of_memory();
    size_t whole = (size + HEAD + RED_ZONE + page - 1) / page * page;
    uint8_t *p = chunk_add(a, whole);
    ASAN_POISON_MEMORY_REGION(p + size, whole - HEAD - size);
    return p;
}

static void chunk_next(struct arena *a)
{
    size_t size = a->next_size;
    a->p = chunk_add(a, size);
    a->end = a->p + size - HEAD;
    ASAN_POISON_MEMORY_REGION(a->p, size - HEAD);
    if (a->next_size < LAST_CHUNK)
        a->next_size *= 2;
}

void *arena_alloc(struct arena *a, size_t size)
{
    assert(!a->sealed);
    if (size >= OWN_MAPPING)
        return alloc_own(a, size);

    size_t need = ((size ? size : 1) + RED_ZONE + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    while ((size_t)(a->end - a->p) < need) // a loop: the first chunks are smaller than the largest request
        chunk_next(a);
    void *p = a->p;
    a->p += need;
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t whole;
    if (__builtin_mul_overflow(n, size, &whole))
        out_of_memory();
    return arena_alloc(a, whole);
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_memdup(a, s, strlen(s) + 1);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = arena_alloc(a, len + 1);
    memcpy(p, s, len);
    return p;
}

void *arena_memdup(struct arena *a, const void *p, size_t size)
{
    void *copy = arena_alloc(a, size);
    if (size)
        memcpy(copy, p, size);
    return copy;
}

size_t arena_bytes(const struct arena *a)
{
    return a->mapped;
}

void arena_seal(struct arena *a, int protect)
{
    a->sealed = true;
    if (!protect)
        return;
    for (struct chunk *c = a->chunk; c; c = c->next)
        mprotect(c, c->size, PROT_READ); // only a safety net: a refusal changes nothing
}
