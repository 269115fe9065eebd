// SPDX-License-Identifier: Apache-2.0
#include "fabric/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

static uint64_t string_hash(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
    return hash_mix64(h);
}

// One allocation holds the three strings; item->code owns it.
static void finding_store(struct finding *it, const char *code, const char *where, const char *text)
{
    size_t nc = strlen(code) + 1, nw = strlen(where) + 1, nt = strlen(text) + 1;
    char *p = xmalloc(nc + nw + nt);
    memcpy(p, code, nc);
    memcpy(p + nc, where, nw);
    memcpy(p + nc + nw, text, nt);
    it->code = p;
    it->where = p + nc;
    it->text = p + nc + nw;
}

static void findings_put(struct findings *f, enum finding_severity s, const char *code, const char *where,
                         const char *text, uint32_t count)
{
    uint64_t key = string_hash(string_hash(0xcbf29ce484222325ULL, code), where);
    uint32_t at;

    f->total += count;
    if (!f->index.slot)
        u64map_init(&f->index, NULL, 16);
    if (u64map_get(&f->index, key, &at)) {
        f->item[at].count += count;
        if (s > f->item[at].severity)
            f->item[at].severity = s;
        return;
    }
    if (f->n >= FINDINGS_MAX)
        return;
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 16;
        f->item = xreallocarray(f->item, f->cap, sizeof(*f->item));
    }
    u64map_set(&f->index, key, (uint32_t)f->n);
    struct finding *it = &f->item[f->n++];
    it->severity = s;
    it->count = count;
    finding_store(it, code, where, text);
}

void findings_add(struct findings *f, enum finding_severity s, const char *code, const char *where,
                  const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (!f)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    findings_put(f, s, code, where ? where : "", text, 1);
}

void findings_merge(struct findings *to, const struct findings *from)
{
    size_t kept = 0;
    for (size_t i = 0; i < from->n; i++) {
        const struct finding *it = &from->item[i];
        findings_put(to, it->severity, it->code, it->where, it->text, it->count);
        kept += it->count;
    }
    to->total += from->total - kept;
}

void findings_done(struct findings *f)
{
    for (size_t i = 0; i < f->n; i++)
        free((char *)(uintptr_t)f->item[i].code);
    free(f->item);
    if (f->index.slot)
        u64map_done(&f->index);
    *f = (struct findings){0};
}
