// SPDX-License-Identifier: Apache-2.0
// Reading: which files have what is asked for, a block's columns out of chunks and head rows, points in
// order. A file is read in one transaction: chunks and head rows as they stood at one moment.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_priv.h"
#include "lib/xalloc.h"

enum { FILES_MAX = 64 }; // of one query

struct series_reader {
    char *dir;
    struct series_key *key;
    uint32_t num;
};

// Sweeps of a file, in the order of writing.
struct times {
    int64_t *seq, *at;
    size_t n;
};
struct source {
    struct series_file file;
    struct times t;
};
// Values of one block at some sweeps: value[(row * columns + column) * n + k]
struct span {
    const int64_t *at; // [n]
    unsigned n;
    uint64_t *value, *mask; // mask: [row * columns + column]
};
struct job {
    struct series_reader *r;
    const struct series_query *q;
    series_point_fn *fn;
    void *arg;
    struct err *e;
    uint64_t damaged;
    long points;
    bool stopped;
    uint8_t id[SERIES_IDS]; // asked for
    unsigned columns;
    struct source *source;
    unsigned sources;
};

// --- the reader ---

static int load_all_keys(struct series_reader *r, struct err *e)
{
    struct series_name *list;
    long n = series_names(r->dir, &list);
    if (n < 0)
        return err_set(e, (int)n, r->dir, "cannot list: %s", strerror((int)-n));
    for (long i = 0; i < n; i++) {
        bool last = i + 1 == n || list[i + 1].tier != list[i].tier;
        struct series_file f;
        if (last && !series_file_open(&f, r->dir, &list[i], false, NULL, NULL)) {
            (void)series_load_keys(&f, &r->key, &r->num);
            series_file_close(&f);
        }
    }
    free(list);
    return 0;
}

struct series_reader *series_reader_new(const char *dir, struct err *e)
{
    struct series_reader *r = xcalloc(1, sizeof(*r));
    r->dir = xstrdup(dir);
    if (load_all_keys(r, e)) {
        series_reader_free(r);
        return NULL;
    }
    return r;
}

void series_reader_free(struct series_reader *r)
{
    if (r) {
        free(r->dir);
        free(r->key);
        free(r);
    }
}

int series_reader_key(struct series_reader *r, uint32_t i, uint64_t *ret_guid, uint8_t *ret_port)
{
    if (i >= r->num)
        return -ENOENT;
    *ret_guid = r->key[i].guid;
    *ret_port = r->key[i].port;
    return 0;
}

uint32_t series_reader_num(struct series_reader *r)
{
    return r->num;
}

uint32_t series_reader_find(struct series_reader *r, uint64_t node_guid, uint8_t port)
{
    for (uint32_t i = 0; i < r->num; i++) {
        if (r->key[i].guid == node_guid && r->key[i].port == port)
            return i;
    }
    return UINT32_MAX;
}

// --- times ---

static int load_times(struct series_file *f, struct times *t)
{
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_TIMES);
    size_t cap = 0;
    int rc = 0;
    if (!st)
        return series_step(f, st);
    sqlite3_bind_int64(st, 1, 0);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (t->n == cap) {
            cap = cap ? cap * 2 : 1024;
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

static size_t find_seq(const struct times *t, int64_t seq) // the first that is not below
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

static bool asked(const struct job *j, int64_t at)
{
    return at >= j->q->from_ms && at <= j->q->to_ms;
}

// --- a block ---

struct block {
    uint32_t number;
    unsigned rows;
    uint16_t row[SERIES_BLOCK]; // series within the block that are asked for
    struct span *span;
    size_t spans, cap;
};

static struct span *add_span(struct job *j, struct block *b, const int64_t *at, unsigned n)
{
    if (b->spans == b->cap)
        b->span = xreallocarray(b->span, b->cap = b->cap ? b->cap * 2 : 64, sizeof(*b->span));
    struct span *s = &b->span[b->spans++];
    *s = (struct span){at, n, xcalloc((size_t)b->rows * j->columns * n + 1, 8),
                       xcalloc((size_t)b->rows * j->columns + 1, 8)};
    return s;
}

static void take_column(const struct job *j, const struct block *b, struct span *s, unsigned column,
                        const uint64_t *value, const uint64_t *mask, unsigned series)
{
    for (unsigned i = 0; i < b->rows; i++) {
        size_t to = (size_t)i * j->columns + column;
        if (b->row[i] < series) {
            memcpy(s->value + to * s->n, value + (size_t)b->row[i] * s->n, s->n * sizeof(*value));
            s->mask[to] = mask ? mask[b->row[i]] : s->n >= 64 ? UINT64_MAX : ((uint64_t)1 << s->n) - 1;
        }
    }
}

static void free_spans(struct block *b)
{
    for (size_t i = 0; i < b->spans; i++) {
        free(b->span[i].value);
        free(b->span[i].mask);
    }
    free(b->span);
}

static const void *get_part(struct source *s, int64_t id, size_t *ret_size)
{
    sqlite3_stmt *st = series_stmt(&s->file, SERIES_ST_GET_PART);
    if (!st)
        return NULL;
    sqlite3_reset(st);
    sqlite3_bind_int64(st, 1, id);
    if (sqlite3_step(st) != SQLITE_ROW)
        return NULL;
    const void *p = sqlite3_column_blob(st, 0);
    *ret_size = (size_t)sqlite3_column_bytes(st, 0);
    return p;
}

static int chunk_column(struct job *j, struct source *src, struct block *b, struct span *s,
                        const struct series_dir *d, int64_t part, uint64_t seed, unsigned column)
{
    const struct series_section *sec = series_dir_find(d, j->id[column]);
    uint64_t mask[SERIES_BLOCK];
    size_t size;
    int rc = 0;
    if (!sec)
        return 0;
    if (sec->mask) {
        const struct series_section *m = &d->presence[sec->mask - 1];
        const void *p = get_part(src, part + m->part, &size);
        rc = p ? series_mask_decode(d, sec->mask, p, size, seed, mask) : -EBADMSG;
    }
    uint64_t *v = xcalloc((size_t)d->series * d->n + 1, sizeof(*v));
    const void *p = rc ? NULL : get_part(src, part + sec->part, &size);
    rc = p ? series_column_decode(d, sec, p, size, seed, sec->mask ? mask : NULL, v) : -EBADMSG;
    if (!rc)
        take_column(j, b, s, column, v, sec->mask ? mask : NULL, d->series);
    free(v);
    return rc;
}

struct chunk_row {
    int64_t seq0, seq1, part;
    const void *dir;
    size_t size;
};

static void read_chunk(struct job *j, struct source *src, struct block *b, const struct chunk_row *row)
{
    struct series_dir d;
    uint64_t seed = series_seed(b->number, row->seq0);
    size_t first = find_seq(&src->t, row->seq0), end = find_seq(&src->t, row->seq1 + 1);
    bool any = false;
    for (size_t k = first; k < end; k++)
        any = any || asked(j, src->t.at[k]);
    if (!any)
        return;
    if (series_dir_decode(row->dir, row->size, seed, &d) || d.n != end - first) {
        j->damaged++;
        return;
    }
    struct span *s = add_span(j, b, src->t.at + first, d.n);
    for (unsigned c = 0; c < j->columns; c++)
        j->damaged += chunk_column(j, src, b, s, &d, row->part, seed, c) != 0;
}

static int read_chunks(struct job *j, struct source *src, struct block *b, int64_t *ret_done)
{
    struct series_file *f = &src->file;
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_CHUNKS);
    int rc;
    if (!st)
        return series_step(f, st);
    sqlite3_bind_int64(st, 1, b->number);
    sqlite3_bind_int64(st, 2, 0);
    sqlite3_bind_int64(st, 3, SERIES_SEQ_MAX);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct chunk_row row = {sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                                sqlite3_column_int64(st, 2), sqlite3_column_blob(st, 3),
                                (size_t)sqlite3_column_bytes(st, 3)};
        *ret_done = row.seq1;
        read_chunk(j, src, b, &row);
    }
    rc = rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_reset(st);
    return rc;
}

// Head rows that no chunk covers, 64 at a time.
struct tail {
    struct job *j;
    struct block *b;
    const int64_t *at; // of the first in the grid
    struct series_grid grid;
    unsigned n;
};

static void end_grid(struct tail *t)
{
    struct series_grid *g = &t->grid;
    series_grid_shorten(g, t->n);
    if (t->n) {
        struct span *s = add_span(t->j, t->b, t->at, t->n);
        for (unsigned c = 0; c < t->j->columns; c++) {
            unsigned id = t->j->id[c];
            if (g->value[id])
                take_column(t->j, t->b, s, c, g->value[id], g->mask[id], g->series);
        }
    }
    series_grid_done(g);
    t->at += t->n;
    t->n = 0;
}

static int read_head(struct job *j, struct source *src, struct block *b, int64_t done)
{
    struct series_file *f = &src->file;
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_TAIL);
    struct series_chain chain = {0};
    struct tail t = {.j = j, .b = b, .at = src->t.at + find_seq(&src->t, done + 1)};
    const int64_t *end = src->t.at + src->t.n;
    bool have_key = false;
    uint64_t want[2] = {j->q->columns, 0};
    int rc;
    if (!st)
        return series_step(f, st);
    sqlite3_bind_int64(st, 1, b->number);
    sqlite3_bind_int64(st, 2, done);
    sqlite3_bind_int64(st, 3, INT64_MAX);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW && t.at + t.n < end) {
        if (t.n == 64)
            end_grid(&t);
        if (!t.n)
            series_grid_init(&t.grid, 64, SERIES_BLOCK);
        const void *d = sqlite3_column_blob(st, 1);
        size_t size = (size_t)sqlite3_column_bytes(st, 1);
        uint64_t seed = series_head_seed(b->number, sqlite3_column_int64(st, 0), t.at[t.n]);
        if (d && series_head_decode(d, size, seed, &chain, &have_key, want, &t.grid, t.n)) {
            have_key = false;
            j->damaged++;
        }
        t.n++;
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    end_grid(&t);
    sqlite3_reset(st);
    series_chain_done(&chain);
    return rc;
}

// --- points ---

static bool emit(struct job *j, uint32_t series, int64_t at, uint64_t have, const uint64_t *value)
{
    struct series_point p = {series, at, have, value};
    if (!have)
        return true;
    j->points++;
    j->stopped = !j->fn(j->arg, &p);
    return !j->stopped;
}

struct step { // the last sample of the step that is being read
    int64_t number, at;
    uint64_t have, value[SERIES_COLUMNS];
};

static bool emit_row(struct job *j, const struct block *b, unsigned row)
{
    uint32_t series = b->number * SERIES_BLOCK + b->row[row];
    int64_t ms = j->q->step_ms;
    struct step step = {.number = INT64_MIN};
    for (size_t i = 0; i < b->spans; i++) {
        const struct span *s = &b->span[i];
        for (unsigned k = 0; k < s->n; k++) {
            if (!asked(j, s->at[k]))
                continue;
            int64_t at = s->at[k], number = ms ? at / ms : INT64_MIN;
            if (!ms || number != step.number) {
                if (!emit(j, series, step.at, step.have, step.value))
                    return false;
                step.have = 0;
            }
            step.number = number;
            step.at = at;
            for (unsigned c = 0; c < j->columns; c++) {
                size_t at_col = (size_t)row * j->columns + c;
                if (s->mask[at_col] >> k & 1) {
                    step.value[j->id[c]] = s->value[at_col * s->n + k];
                    step.have |= (uint64_t)1 << j->id[c];
                }
            }
        }
    }
    return emit(j, series, step.at, step.have, step.value);
}

static int read_block(struct job *j, struct block *b)
{
    int rc = 0;
    for (unsigned i = 0; i < j->sources && !rc; i++) {
        int64_t done = 0;
        struct source *src = &j->source[i];
        rc = read_chunks(j, src, b, &done);
        if (!rc)
            rc = read_head(j, src, b, done);
        if (rc)
            err_set(j->e, rc, src->file.path, "%s", src->file.fail_text);
    }
    for (unsigned i = 0; i < b->rows && !rc && !j->stopped; i++)
        emit_row(j, b, i);
    free_spans(b);
    return rc;
}

static unsigned next_block(const struct series_query *q, uint32_t num, uint32_t *at, struct block *b)
{
    *b = (struct block){0};
    if (!q->series) {
        b->number = *at / SERIES_BLOCK;
        for (; *at < num && *at / SERIES_BLOCK == b->number; ++*at)
            b->row[b->rows++] = (uint16_t)(*at % SERIES_BLOCK);
        return b->rows;
    }
    for (; *at < q->num && (!b->rows || q->series[*at] / SERIES_BLOCK == b->number); ++*at) {
        b->number = q->series[*at] / SERIES_BLOCK;
        if (b->rows < SERIES_BLOCK)
            b->row[b->rows++] = (uint16_t)(q->series[*at] % SERIES_BLOCK);
    }
    return b->rows;
}

// --- files ---

static int open_source(struct job *j, const struct series_name *name)
{
    struct source *src = &j->source[j->sources];
    *src = (struct source){0};
    int rc = series_file_open(&src->file, j->r->dir, name, false, NULL, j->e);
    if (rc)
        return rc;
    j->sources++;
    rc = series_file_fail(&src->file, db_exec(src->file.c, "BEGIN"));
    if (!rc)
        rc = load_times(&src->file, &src->t);
    if (!rc)
        rc = series_load_keys(&src->file, &j->r->key, &j->r->num);
    return rc ? err_set(j->e, rc, src->file.path, "%s", src->file.fail_text) : 0;
}

static void close_sources(struct job *j)
{
    for (unsigned i = 0; i < j->sources; i++) {
        free(j->source[i].t.seq);
        free(j->source[i].t.at);
        series_file_close(&j->source[i].file);
    }
    free(j->source);
}

static int open_sources(struct job *j)
{
    struct series_name *list;
    long n = series_names(j->r->dir, &list);
    int rc = 0;
    if (n < 0)
        return err_set(j->e, (int)n, j->r->dir, "cannot list: %s", strerror((int)-n));
    j->source = xcalloc(FILES_MAX, sizeof(*j->source));
    for (long i = 0; i < n && !rc; i++) {
        if (list[i].tier != SERIES_RAW || list[i].from_ms > j->q->to_ms || list[i].to_ms <= j->q->from_ms)
            continue;
        rc = j->sources < FILES_MAX
                 ? open_source(j, &list[i])
                 : err_set(j->e, -E2BIG, NULL, "more than %d files; ask for less time", FILES_MAX);
    }
    free(list);
    return rc;
}

long series_read(struct series_reader *r, const struct series_query *q, series_point_fn *fn, void *arg,
                 uint64_t *ret_damaged, struct err *e)
{
    struct job j = {.r = r, .q = q, .fn = fn, .arg = arg, .e = e};
    struct block b;
    uint32_t at = 0;
    for (uint64_t m = q->columns; m; m &= m - 1)
        j.id[j.columns++] = (uint8_t)__builtin_ctzll(m);
    int rc = open_sources(&j);
    while (!rc && !j.stopped && next_block(q, r->num, &at, &b))
        rc = read_block(&j, &b);
    close_sources(&j);
    if (ret_damaged)
        *ret_damaged = j.damaged;
    return rc ? rc : j.points;
}
