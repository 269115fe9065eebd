// SPDX-License-Identifier: Apache-2.0
#include "lib/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check(void *p)
{
    if (!p) {
        fputs("weft: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t size)
{
    return check(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return check(n && size ? calloc(n, size) : calloc(1, 1));
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    return check(n && size ? reallocarray(p, n, size) : realloc(p, 1));
}

char *xstrdup(const char *s)
{
    return check(strdup(s));
}

char *xasprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return check(n < 0 ? NULL : s);
}
