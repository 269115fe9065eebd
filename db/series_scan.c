// SPDX-License-Identifier: Apache-2.0
// Raw sweeps in the order of writing, for shipping them elsewhere. A window is some sweeps of one file that
// follow each other; its bounds stand in the cursor until all of it has been given, whatever is written
// meanwhile. Cursor: "1 SEQ" (all sweeps up to SEQ are done) or "1 SEQ END SERIES" (of the window after SEQ
// up to END, the series below SERIES are done).
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_bytes.h"
#include "lib/xalloc.h"

struct scan {
    int64_t done, end; // end 0: no window is begun
    uint32_t series;
};

static int parse(const char *text, struct scan *ret, struct err *e)
{
    int n = 0;
    *ret = (struct scan){0};
    if (!text || !text[0])
        return 0;
    if (sscanf(text, "1 %" SCNd64 "%n", &ret->done, &n) == 1 && !text[n] && ret->done >= 0)
        return 0;
    if (sscanf(text, "1 %" SCNd64 " %" SCNd64 " %" SCNu32 "%n", &ret->done, &ret->end, &ret->series, &n) ==
            3 &&
        !text[n] && ret->done >= 0 && ret->end > ret->done)
        return 0;
    return err_set(e, -EINVAL, text, "is no cursor; give an empty one to begin with the oldest sweep");
}

static void print(const struct scan *s, char *ret, size_t size)
{
    if (s->end)
        snprintf(ret, size, "1 %" PRId64 " %" PRId64 " %" PRIu32, s->done, s->end, s->series);
    else
        snprintf(ret, size, "1 %" PRId64, s->done);
}

// First sweep after seq in the file, 0 = none, and its newest one.
static int bounds(const char *dir, const struct series_name *name, int64_t seq, int64_t *ret_next,
                  int64_t *ret_newest)
{
    struct series_file f;
    char text[100];
    int64_t ms;
    *ret_next = *ret_newest = 0;
    int rc = series_file_open(&f, dir, name, SERIES_READ, NULL, NULL);
    if (rc)
        return rc;
    snprintf(text, sizeof(text), "SELECT min(seq) FROM sweep WHERE seq > %" PRId64, seq);
    rc = series_file_fail(&f, db_get_int(f.c, text, ret_next));
    if (!rc)
        rc = series_newest(&f, ret_newest, &ms);
    series_file_close(&f);
    return rc;
}

// The raw file that goes on after s->done; false: nothing is new. A cursor from before all files were lost is
// newer than anything: then all is new.
static bool find_file(const char *dir, const struct series_name *name, long n, struct scan *s,
                      struct series_name *ret)
{
    int64_t least = INT64_MAX, newest = 0;
    for (long i = 0; i < n; i++) {
        int64_t next, last;
        if (name[i].tier != SERIES_RAW || bounds(dir, &name[i], s->done, &next, &last))
            continue;
        newest = last > newest ? last : newest;
        if (next > 0 && next < least) {
            least = next;
            *ret = name[i];
        }
    }
    if (least == INT64_MAX && newest && newest < s->done) {
        *s = (struct scan){0};
        return find_file(dir, name, n, s, ret);
    }
    return least != INT64_MAX;
}

static bool window(struct series_source *src, struct scan *s)
{
    const struct series_times *t = &src->t;
    src->lo = series_find_seq(t, s->done + 1);
    if (src->lo == t->n)
        return false;
    if (s->end && t->seq[src->lo] > s->end) // what was left of it went with its file
        *s = (struct scan){.done = s->end};
    if (!s->end)
        s->end = t->seq[src->lo + SERIES_WINDOW < t->n ? src->lo + SERIES_WINDOW - 1 : t->n - 1];
    src->hi = series_find_seq(t, s->end + 1);
    return src->hi > src->lo;
}

struct scanner {
    struct series_job j;
    series_point_fn *fn;
    void *arg;
    long n;
    bool stopped;
};

static void give_row(struct scanner *c, uint32_t series, unsigned row)
{
    for (size_t i = 0; i < c->j.spans; i++) {
        const struct series_span *s = &c->j.span[i];
        for (unsigned k = 0; k < s->n && !c->stopped; k++) {
            uint64_t value[SERIES_COLUMNS], have = 0;
            if (s->first + k < s->src->lo || s->first + k >= s->src->hi)
                continue;
            for (unsigned col = 0; col < c->j.columns; col++) {
                if (s->value[col] && s->mask[col][row] >> k & 1) {
                    value[c->j.column[col]] = s->value[col][(size_t)row * s->n + k];
                    have |= (uint64_t)1 << c->j.column[col];
                }
            }
            struct series_point p = {series, s->src->t.at[s->first + k], have, value};
            if (have) {
                c->n++;
                c->stopped = !c->fn(c->arg, &p);
            }
        }
    }
}

// Of the window, series from s->series on, until max points or all.
static int give_window(struct scanner *c, struct scan *s, size_t max)
{
    struct series_query all = {.columns = UINT64_MAX};
    size_t sweeps = c->j.source->hi - c->j.source->lo;
    uint32_t at = s->series;
    int rc = 0;
    while (!rc && !c->stopped && series_job_next(&c->j, &all, &at)) {
        rc = series_gather(&c->j);
        for (unsigned i = 0; i < c->j.pick.rows && !rc; i++) {
            if (c->stopped || (c->n && (size_t)c->n + sweeps > max))
                return 0;
            s->series = c->j.block * SERIES_BLOCK + c->j.pick.row[i];
            give_row(c, s->series, i);
            s->series += !c->stopped;
        }
    }
    if (!rc && !c->stopped)
        *s = (struct scan){.done = s->end};
    return rc;
}

static void leave_out(struct series_name *list, long n, const struct series_name *name)
{
    for (long i = 0; i < n; i++) {
        if (strcmp(list[i].text, name->text) == 0)
            list[i].tier = SERIES_TIERS;
    }
}

long series_scan(struct series_reader *r, const char *cursor, size_t max_points, series_point_fn *fn,
                 void *arg, char *ret_cursor, size_t cursor_size, struct err *e)
{
    struct scan s;
    struct series_source src;
    struct series_name *list, name;
    struct scanner c = {.j = {.r = r, .e = e}, .fn = fn, .arg = arg};
    int rc = parse(cursor, &s, e);
    if (rc)
        return rc;
    long n = series_names(r->dir, &list);
    if (n < 0)
        return err_set(e, (int)n, r->dir, "cannot list: %s", strerror((int)-n));
    while (!rc && !c.n && !c.stopped && find_file(r->dir, list, n, &s, &name)) {
        rc = series_source_open(&src, r->dir, &name, e);
        if (rc == -EBADMSG || rc == -ENOENT) {
            leave_out(list, n, &name);
            rc = 0;
            continue;
        }
        if (rc)
            break;
        (void)series_load_keys(&src.file, &r->key, &r->num);
        for (unsigned i = 0; i < SERIES_COLUMNS; i++)
            c.j.column[i] = (uint8_t)i;
        c.j.columns = SERIES_COLUMNS;
        c.j.source = &src;
        c.j.sources = 1;
        while (!rc && !c.stopped && (size_t)c.n < max_points && window(&src, &s)) {
            rc = give_window(&c, &s, max_points);
            if (s.end)
                break;
        }
        series_source_close(&src);
    }
    c.j.source = NULL;
    c.j.sources = 0;
    series_job_done(&c.j);
    free(list);
    if (!rc)
        print(&s, ret_cursor, cursor_size);
    return rc ? rc : c.n;
}

int series_scan_begin(struct series_reader *r, int64_t at_ms, char *ret_cursor, size_t cursor_size,
                      struct err *e)
{
    struct scan s = {0};
    struct series_name *list;
    long n = series_names(r->dir, &list);
    if (n < 0)
        return err_set(e, (int)n, r->dir, "cannot list: %s", strerror((int)-n));
    for (long i = 0; i < n; i++) {
        struct series_file f;
        char text[100];
        int64_t seq = 0;
        if (list[i].tier != SERIES_RAW || series_file_open(&f, r->dir, &list[i], SERIES_READ, NULL, NULL))
            continue; // what cannot be opened is not read either
        snprintf(text, sizeof(text), "SELECT coalesce(max(seq), 0) FROM sweep WHERE at_ms < %" PRId64, at_ms);
        if (!series_file_fail(&f, db_get_int(f.c, text, &seq)) && seq > s.done)
            s.done = seq;
        series_file_close(&f);
    }
    free(list);
    print(&s, ret_cursor, cursor_size);
    return 0;
}
