// SPDX-License-Identifier: Apache-2.0
// Which files a query reads, and from when to when: of the tier that is as coarse as the step allows; what is
// older than it keeps comes from a coarser one, what it does not have yet from a finer one.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_priv.h"
#include "lib/xalloc.h"

enum { FILES_MAX = 100 }; // of one query

size_t series_find_seq(const struct series_times *t, int64_t seq)
{
    size_t a = 0, b = t->n;
    while (a < b) {
        size_t m = a + (b - a) / 2;
        if (t->seq[m] < seq)
            a = m + 1;
        else
            b = m;
    }
    return a;
}

static int load_times(struct series_file *f, struct series_times *t)
{
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_TIMES);
    size_t cap = 0;
    int rc = 0;
    if (!st)
        return series_step(f, st);
    sqlite3_bind_int64(st, 1, 0);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (t->n == cap) {
            cap = cap ? cap * 2 : 2048;
            t->seq = xreallocarray(t->seq, cap, sizeof(int64_t));
            t->at = xreallocarray(t->at, cap, sizeof(int64_t));
        }
        t->seq[t->n] = sqlite3_column_int64(st, 0);
        t->at[t->n++] = sqlite3_column_int64(st, 1);
    }
    rc = rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_reset(st);
    return rc;
}

int series_source_open(struct series_source *s, const char *dir, const struct series_name *name,
                       struct err *e)
{
    int64_t head = 0;
    *s = (struct series_source){.from_ms = INT64_MIN, .to_ms = INT64_MAX};
    int rc = series_file_open(&s->file, dir, name, SERIES_READ, NULL, e);
    if (rc)
        return rc;
    rc = series_file_fail(&s->file, db_exec(s->file.c, "BEGIN"));
    if (!rc)
        rc = load_times(&s->file, &s->t);
    if (!rc)
        rc = series_file_fail(&s->file, db_get_int(s->file.c, "SELECT min(id) FROM head", &head));
    s->head_seq = head >> SERIES_ID_BLOCK_BITS;
    s->hi = s->t.n;
    if (rc) {
        err_set(e, rc, s->file.path, "%s", s->file.fail_text);
        series_source_close(s);
    }
    return rc;
}

void series_source_close(struct series_source *s)
{
    free(s->t.seq);
    free(s->t.at);
    series_file_close(&s->file);
    *s = (struct series_source){0};
}

static void narrow(struct series_source *s, int64_t from_ms, int64_t to_ms)
{
    s->from_ms = from_ms;
    s->to_ms = to_ms;
    s->lo = s->hi = 0;
    for (size_t k = 0; k < s->t.n; k++) {
        if (s->t.at[k] < from_ms || s->t.at[k] > to_ms)
            continue;
        if (!s->hi)
            s->lo = k;
        s->hi = k + 1;
    }
}

// --- the plan ---

static enum series_tier tier_of(int64_t step_ms)
{
    return step_ms >= 3600000 ? SERIES_HOUR : step_ms >= 60000 ? SERIES_MINUTE : SERIES_RAW;
}

struct plan {
    struct series_job *j;
    const struct series_name *name;
    struct series_source *file; // [names]: opened once, whether for its times or for all of it
    bool *tried, *taken;
    long names;
};

// NULL: gone meanwhile, or damaged. *ret_rc: anything else.
static struct series_source *open_file(struct plan *p, long i, int *ret_rc)
{
    struct series_source *s = &p->file[i];
    if (!p->tried[i]) {
        p->tried[i] = true;
        int rc = series_source_open(s, p->j->r->dir, &p->name[i], p->j->e);
        p->j->damaged += rc == -EBADMSG;
        *ret_rc = rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
    }
    return s->file.c ? s : NULL;
}

static bool overlaps(const struct series_name *n, enum series_tier tier, int64_t from_ms, int64_t to_ms)
{
    return n->tier == tier && n->from_ms <= to_ms && n->to_ms > from_ms;
}

// Files of a tier between two times, in order.
static int add_files(struct plan *p, enum series_tier tier, int64_t from_ms, int64_t to_ms)
{
    struct series_job *j = p->j;
    int rc = 0;
    for (long i = 0; i < p->names && from_ms <= to_ms && !rc; i++) {
        if (!overlaps(&p->name[i], tier, from_ms, to_ms) || p->taken[i])
            continue;
        if (j->sources == FILES_MAX)
            return err_set(j->e, -E2BIG, NULL,
                           "more than %d files to read; ask for less time or a greater step", FILES_MAX);
        struct series_source *s = open_file(p, i, &rc);
        if (!s)
            continue;
        p->taken[i] = true;
        j->source[j->sources] = *s;
        s = &j->source[j->sources++];
        narrow(s, from_ms, to_ms);
        if (j->peaks && s->lo) // the first rise is from the sweep before
            s->lo--;
    }
    return rc;
}

static bool edges(const struct series_source *s, int64_t from_ms, int64_t to_ms, int64_t *first,
                  int64_t *last)
{
    bool any = false;
    for (size_t k = 0; k < s->t.n; k++) {
        int64_t at = s->t.at[k];
        if (at < from_ms || at > to_ms)
            continue;
        *first = !any || at < *first ? at : *first;
        *last = !any || at > *last ? at : *last;
        any = true;
    }
    return any;
}

// First and last time that the tier has between two times, of its first and its last file that has any.
static int extent(struct plan *p, enum series_tier tier, int64_t from_ms, int64_t to_ms, bool *ret_any,
                  int64_t *ret_first, int64_t *ret_last)
{
    int64_t first, last;
    int rc = 0;
    *ret_any = false;
    for (long i = 0; i < p->names && !rc && !*ret_any; i++) {
        struct series_source *s = overlaps(&p->name[i], tier, from_ms, to_ms) ? open_file(p, i, &rc) : NULL;
        if (s && edges(s, from_ms, to_ms, &first, &last)) {
            *ret_first = first;
            *ret_last = last;
            *ret_any = true;
        }
    }
    bool found = false;
    for (long i = p->names - 1; i >= 0 && !rc && *ret_any && !found; i--) {
        struct series_source *s = overlaps(&p->name[i], tier, from_ms, to_ms) ? open_file(p, i, &rc) : NULL;
        if (s && (found = edges(s, from_ms, to_ms, &first, &last)))
            *ret_last = last;
    }
    return rc;
}

// A coarser tier is asked only for a gap that one of its steps fits in.
static int plan_older(struct plan *p, int tier, int64_t from_ms, int64_t to_ms)
{
    static const int64_t step[SERIES_TIERS] = {0, 60000, 3600000};
    int64_t first, last;
    bool any;
    if (tier == SERIES_TIERS || from_ms > to_ms || (uint64_t)to_ms - (uint64_t)from_ms < (uint64_t)step[tier])
        return 0;
    int rc = extent(p, (enum series_tier)tier, from_ms, to_ms, &any, &first, &last);
    if (rc || !any)
        return rc ? rc : plan_older(p, tier + 1, from_ms, to_ms);
    rc = plan_older(p, tier + 1, from_ms, first - 1);
    return rc ? rc : add_files(p, (enum series_tier)tier, first, to_ms);
}

static int plan_newer(struct plan *p, int tier, int64_t from_ms, int64_t to_ms)
{
    int64_t first, last;
    bool any;
    if (tier < 0 || from_ms > to_ms)
        return 0;
    int rc = extent(p, (enum series_tier)tier, from_ms, to_ms, &any, &first, &last);
    if (!rc && any)
        rc = add_files(p, (enum series_tier)tier, from_ms, last);
    return rc ? rc : plan_newer(p, tier - 1, any ? last + 1 : from_ms, to_ms);
}

static int plan_all(struct plan *p, const struct series_query *q)
{
    int tier = tier_of(q->step_ms);
    int64_t first, last;
    bool any;
    int rc = extent(p, (enum series_tier)tier, q->from_ms, q->to_ms, &any, &first, &last);
    if (rc)
        return rc;
    if (!any) {
        rc = plan_older(p, tier + 1, q->from_ms, q->to_ms);
        return rc || p->j->sources ? rc : plan_newer(p, tier - 1, q->from_ms, q->to_ms);
    }
    rc = plan_older(p, tier + 1, q->from_ms, first - 1);
    if (!rc)
        rc = add_files(p, (enum series_tier)tier, first, last);
    return rc ? rc : plan_newer(p, tier - 1, last + 1, q->to_ms);
}

static int too_many(struct series_job *j, const struct series_query *q)
{
    uint64_t points = 0, max = q->max_points ? q->max_points : SERIES_POINTS_MAX;
    uint64_t series = q->series ? q->num : j->r->num;
    for (unsigned i = 0; i < j->sources; i++) {
        const struct series_source *s = &j->source[i];
        int64_t step = INT64_MIN;
        for (size_t k = s->lo; k < s->hi; k++) {
            int64_t now = q->step_ms > 0 ? s->t.at[k] / q->step_ms : (int64_t)k;
            points += now != step;
            step = now;
        }
    }
    if (!points || series <= max / points)
        return 0;
    return err_set(
        j->e, -E2BIG, NULL,
        "%llu series at %llu times are more than the %llu points that one query may have; ask for less "
        "time, fewer ports or a greater step",
        (unsigned long long)series, (unsigned long long)points, (unsigned long long)max);
}

int series_job_init(struct series_job *j, struct series_reader *r, const struct series_query *q,
                    struct err *e)
{
    struct series_name *list = NULL;
    *j = (struct series_job){.r = r, .e = e, .peaks = q->peaks};
    for (uint64_t m = q->columns; m; m &= m - 1)
        j->column[j->columns++] = (uint8_t)__builtin_ctzll(m);
    j->source = xcalloc(FILES_MAX, sizeof(*j->source));
    long n = series_names(r->dir, &list);
    if (n < 0)
        return err_set(e, (int)n, r->dir, "cannot list: %s", strerror((int)-n));
    struct plan p = {j,
                     list,
                     xcalloc((size_t)n + 1, sizeof(*p.file)),
                     xcalloc((size_t)n + 1, sizeof(bool)),
                     xcalloc((size_t)n + 1, sizeof(bool)),
                     n};
    int rc = q->from_ms <= q->to_ms && j->columns ? plan_all(&p, q) : 0;
    for (long i = 0; i < n; i++) {
        if (p.file[i].file.c && !p.taken[i])
            series_source_close(&p.file[i]);
    }
    free(p.file);
    free(p.tried);
    free(p.taken);
    free(list);
    if (!rc && !q->series)
        series_reader_keys(r);
    return rc ? rc : too_many(j, q);
}

// A source in the middle has no sweeps then; one that is both ends skips its middle.
void series_job_edges(struct series_job *j)
{
    unsigned first = 0, last = j->sources;
    while (first < last && j->source[first].lo == j->source[first].hi)
        first++;
    while (last > first && j->source[last - 1].lo == j->source[last - 1].hi)
        last--;
    if (first == last)
        return;
    struct series_source *a = &j->source[first], *b = &j->source[last - 1];
    for (struct series_source *s = a + 1; s < b; s++)
        s->lo = s->hi;
    if (a != b) {
        a->hi = a->hi - a->lo > SERIES_WINDOW ? a->lo + SERIES_WINDOW : a->hi;
        b->lo = b->hi - b->lo > SERIES_WINDOW ? b->hi - SERIES_WINDOW : b->lo;
    } else if (a->hi - a->lo > 2 * SERIES_WINDOW) {
        a->skip_lo = a->lo + SERIES_WINDOW;
        a->skip_hi = a->hi - SERIES_WINDOW;
    }
}

void series_job_done(struct series_job *j)
{
    for (unsigned i = 0; i < j->sources; i++)
        series_source_close(&j->source[i]);
    free(j->source);
    free(j->span);
    for (size_t i = 0; i < j->slabs; i++)
        free(j->pool[i].p);
    free(j->pool);
    free(j->other);
    series_unpacker_done(&j->u);
}
