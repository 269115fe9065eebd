// SPDX-License-Identifier: Apache-2.0
#include "fabric/hostlist.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"

#define PLACES_MAX 9 // digits that are taken for a number

struct parts {
    size_t prefix, places; // lengths
    unsigned long value;
};

static struct parts parts_of(const char *name)
{
    struct parts p = {.prefix = strlen(name)};
    while (p.prefix > 0 && p.places < PLACES_MAX && isdigit((unsigned char)name[p.prefix - 1])) {
        p.prefix--;
        p.places++;
    }
    p.value = p.places ? strtoul(name + p.prefix, NULL, 10) : 0;
    return p;
}

// By prefix, then places, then value.
static int compare(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    struct parts p = parts_of(x), q = parts_of(y);
    size_t n = p.prefix < q.prefix ? p.prefix : q.prefix;
    int c = memcmp(x, y, n);
    if (c == 0 && p.prefix != q.prefix)
        c = p.prefix < q.prefix ? -1 : 1;
    if (c == 0 && p.places != q.places)
        c = p.places < q.places ? -1 : 1;
    return c != 0 ? c : (p.value > q.value) - (p.value < q.value);
}

static bool same_prefix(const char *a, struct parts p, const char *b, struct parts q)
{
    return p.places > 0 && q.places > 0 && p.prefix == q.prefix && memcmp(a, b, p.prefix) == 0;
}

static bool follows(struct parts p, struct parts q)
{
    return p.places == q.places && (q.value == p.value || q.value == p.value + 1);
}

// Numbers of name[0..n-1], all of one prefix, as ranges.
static void put_ranges(struct buf *b, const char **name, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        struct parts first = parts_of(name[i]), last = first;
        for (end = i + 1; end < n && follows(last, parts_of(name[end])); end++)
            last = parts_of(name[end]);
        buf_puts(b, i > 0 ? "," : "");
        buf_add(b, name[i] + first.prefix, first.places);
        if (last.value != first.value)
            buf_printf(b, "-%0*lu", (int)last.places, last.value);
    }
}

void hostlist_put(struct buf *b, const char **name, size_t n)
{
    qsort(name, n, sizeof(*name), compare);
    for (size_t i = 0, end; i < n; i = end) {
        struct parts p = parts_of(name[i]);
        bool several = false;
        for (end = i + 1; end < n; end++) {
            if (strcmp(name[end], name[i]) != 0 && !same_prefix(name[i], p, name[end], parts_of(name[end])))
                break;
            several |= strcmp(name[end], name[i]) != 0;
        }
        buf_puts(b, i > 0 ? "," : "");
        buf_add(b, name[i], several ? p.prefix : p.prefix + p.places);
        if (several) {
            buf_putc(b, '[');
            put_ranges(b, name + i, end - i);
            buf_putc(b, ']');
        }
    }
}

bool hostlist_name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n <= 255 && name[n] == 0;
}
