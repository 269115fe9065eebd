// SPDX-License-Identifier: Apache-2.0
// The blob "isolation": a head, then a line each, fields apart by tabs: i(solated), p(ast), x(cluded).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db.h"
#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/log.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/isolate_priv.h"

#define HEAD "isolation 1\n"
#define BLOB_MAX (8u << 20)
#define FIELDS 10

void isolate_text(char *to, size_t size, const char *from)
{
    text_print(to, size, "%s", from ? from : "");
    text_clean(to);
    for (; *to; to++)
        if ((unsigned char)*to < 0x20 || *to == 0x7f)
            *to = ' ';
}

static void put_place(struct buf *b, char kind, const struct isolate_place *p)
{
    buf_printf(b, "%c\t" GUID_FMT "\t%u\t" GUID_FMT "\t%u", kind, GUID_ARG(p->guid[0]), p->port[0],
               GUID_ARG(p->guid[1]), p->port[1]);
}

void isolate_save(struct isolate *i)
{
    struct buf b = {0};
    bool any = i->num_past || i->num_excluded;
    if (!i->db)
        return;
    buf_puts(&b, HEAD);
    for (uint32_t k = 0; k < i->num; k++) {
        const struct isolate_rec *r = &i->rec[k];
        if (!r->isolated)
            continue;
        any = true;
        put_place(&b, 'i', &r->at);
        buf_printf(&b, "\t%lld\t%s\t%s\t%s\t%s\n", (long long)r->since_wall, r->rule, r->by, r->name,
                   r->reason);
    }
    for (uint32_t k = 0; k < i->num_past; k++) {
        put_place(&b, 'p', &i->past[k].at);
        buf_printf(&b, "\t%lld\n", (long long)i->past[k].wall);
    }
    for (uint32_t k = 0; k < i->num_excluded; k++)
        buf_printf(&b, "x\t" GUID_FMT "\t%u\t0\t0\t%lld\t%s\t%s\n", GUID_ARG(i->excluded[k].guid),
                   i->excluded[k].port, (long long)i->excluded[k].until, i->excluded[k].by,
                   i->excluded[k].reason);
    db_blob_put(i->db, i->fabric, "isolation", any ? b.data : NULL, any ? b.len : 0, NULL, NULL);
    buf_done(&b);
}

static bool number(const char *s, unsigned long long max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 0);
    if (end == s || *end || errno || v > max)
        return false;
    *ret = v;
    return true;
}

static void take_isolated(struct isolate *i, const struct isolate_place *p, int64_t wall, char *const field[])
{
    i->rec = xreallocarray(i->rec, i->num + 1, sizeof(*i->rec));
    struct isolate_rec *r = &i->rec[i->num++];
    *r = (struct isolate_rec){.at = *p, .slot = TELE_SLOT_NONE, .isolated = true, .since_wall = wall};
    isolate_text(r->rule, sizeof(r->rule), field[6]);
    isolate_text(r->by, sizeof(r->by), field[7]);
    isolate_text(r->name, sizeof(r->name), field[8]);
    isolate_text(r->reason, sizeof(r->reason), field[9]);
}

static bool take_line(struct isolate *i, char *line)
{
    char *field[FIELDS] = {0};
    uint64_t g0, p0, g1, p1, wall;
    unsigned n = 0;
    while (n < FIELDS && (field[n] = strsep(&line, "\t")))
        n++;
    if (n < 6 || field[0][1] || !number(field[1], UINT64_MAX, &g0) || !number(field[2], 255, &p0) ||
        !number(field[3], UINT64_MAX, &g1) || !number(field[4], 255, &p1) ||
        !number(field[5], INT64_MAX, &wall) || g0 == 0)
        return false;
    struct isolate_place p = {{g0, g1}, {(uint8_t)p0, (uint8_t)p1}};
    switch (field[0][0]) {
    case 'i':
        if (n < 10 || i->num >= ISOLATE_PAST_MAX)
            return false;
        take_isolated(i, &p, (int64_t)wall, field);
        return true;
    case 'p':
        if (i->num_past >= ISOLATE_PAST_MAX)
            return false;
        i->past = xreallocarray(i->past, i->num_past + 1, sizeof(*i->past));
        i->past[i->num_past++] = (struct isolate_past){p, (int64_t)wall};
        return true;
    case 'x':
        if (n < 8 || i->num_excluded >= ISOLATE_EXCLUDED_MAX)
            return false;
        i->excluded = xreallocarray(i->excluded, i->num_excluded + 1, sizeof(*i->excluded));
        struct isolate_excluded *x = &i->excluded[i->num_excluded++];
        *x = (struct isolate_excluded){.guid = g0, .port = (uint8_t)p0, .until = (int64_t)wall};
        isolate_text(x->by, sizeof(x->by), field[6]);
        isolate_text(x->reason, sizeof(x->reason), field[7]);
        return true;
    default:
        return false;
    }
}

void isolate_load(struct isolate *i)
{
    void *blob = NULL;
    size_t len = 0;
    unsigned bad = 0;
    if (!i->db || db_blob_get(i->db, i->fabric, "isolation", &blob, &len) != 0)
        return;
    char *at = blob;
    if (len > BLOB_MAX || strncmp(at, HEAD, strlen(HEAD)) != 0) {
        log_warning("isolation-not-read", "fabric=%s text=\"the list in the database is not one\"",
                    i->fabric);
        free(blob);
        return;
    }
    at += strlen(HEAD);
    for (char *line; (line = strsep(&at, "\n"));)
        bad += line[0] && !take_line(i, line);
    if (bad)
        log_warning("isolation-not-read", "fabric=%s lines=%u ignored", i->fabric, bad);
    free(blob);
}
