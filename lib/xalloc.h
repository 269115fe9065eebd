// SPDX-License-Identifier: Apache-2.0
// Allocation that aborts when memory is out. Every size that comes from outside is bounded before it gets
// here (style: memory).
#ifndef WEFT_LIB_XALLOC_H
#define WEFT_LIB_XALLOC_H

#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
// n * size is checked for overflow.
void *xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

#endif
