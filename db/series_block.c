// SPDX-License-Identifier: Apache-2.0
// Values of some series of a block, out of chunks and of the head rows that no chunk covers. A file is read
// in one transaction, so that these fit together. What is damaged is left out and counted.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_bytes.h"
#include "lib/xalloc.h"

#define POOL_BYTES ((size_t)32 << 20) // of values at once, where one series does not need more
enum { USUAL = 24, SLAB = 1 << 18 };  // columns that have values; values of a slab

// --- which series at once ---

static size_t sweeps_at_most(const struct series_job *j)
{
    size_t n = 0;
    for (unsigned i = 0; i < j->sources; i++) // chunks stand out at both ends
        n += j->source[i].hi - j->source[i].lo + 4 * SERIES_WINDOW;
    return n;
}

static unsigned rows_at_once(const struct series_job *j)
{
    size_t row = sweeps_at_most(j) * (j->columns < USUAL ? j->columns : USUAL) * sizeof(uint64_t);
    size_t n = row ? POOL_BYTES / row : SERIES_BLOCK;
    return n < 1 ? 1 : n > SERIES_BLOCK ? SERIES_BLOCK : (unsigned)n;
}

bool series_job_next(struct series_job *j, const struct series_query *q, uint32_t *at)
{
    struct series_pick *p = &j->pick;
    unsigned max = rows_at_once(j);
    uint32_t end = q->series ? q->num : j->r->num;
    p->rows = 0;
    for (; *at < end && p->rows < max; ++*at) {
        uint32_t i = q->series ? q->series[*at] : *at;
        if (p->rows && i / SERIES_BLOCK != j->block)
            break;
        if (p->rows && i % SERIES_BLOCK <= p->row[p->rows - 1]) // twice, or not sorted
            break;
        j->block = i / SERIES_BLOCK;
        p->row[p->rows++] = (uint16_t)(i % SERIES_BLOCK);
    }
    return p->rows > 0;
}

// --- memory of the values ---

// Slabs that are used again for every block: a column that nobody has takes nothing.
static uint64_t *take(struct series_job *j, size_t n)
{
    struct series_slab *s = j->slab < j->slabs ? &j->pool[j->slab] : NULL;
    if (s && n <= s->cap - s->used) {
        s->used += n;
        return s->p + s->used - n;
    }
    j->slab += s != NULL;
    if (j->slab == j->slabs) {
        j->pool = xreallocarray(j->pool, j->slabs + 1, sizeof(*j->pool));
        j->pool[j->slabs++] = (struct series_slab){0};
    }
    s = &j->pool[j->slab];
    if (n > s->cap) {
        free(s->p);
        s->cap = n > SLAB ? n : SLAB;
        s->p = xreallocarray(NULL, s->cap, sizeof(*s->p));
    }
    s->used = n;
    return s->p;
}

static void begin_pool(struct series_job *j)
{
    for (size_t i = 0; i < j->slabs; i++)
        j->pool[i].used = 0;
    j->slab = 0;
    j->spans = 0;
}

static struct series_span *add_span(struct series_job *j, const struct series_source *src, size_t first,
                                    unsigned n)
{
    if (j->spans == j->span_cap)
        j->span = xreallocarray(j->span, j->span_cap = j->span_cap ? j->span_cap * 2 : 64, sizeof(*j->span));
    struct series_span *s = &j->span[j->spans++];
    *s = (struct series_span){.src = src, .first = first, .n = n};
    return s;
}

static void add_column(struct series_job *j, struct series_span *s, unsigned c)
{
    s->value[c] = take(j, (size_t)j->pick.rows * s->n);
    s->mask[c] = take(j, j->pick.rows);
}

// --- chunks ---

// The column as the file has it. Peaks of raw sweeps are made of their values.
static unsigned id_of(const struct series_job *j, const struct series_source *src, unsigned c)
{
    return j->column[c] + (j->peaks && src->file.name.tier != SERIES_RAW ? SERIES_COLUMNS : 0);
}

struct chunk {
    struct series_source *src;
    struct series_dir d;
    int64_t seq0, part;
    uint64_t seed;
    uint64_t mask[SERIES_BLOCK];
    unsigned mask_number; // in mask[]
};

static int get_mask(struct series_job *j, struct chunk *c, unsigned number)
{
    size_t size;
    if (!number || number == c->mask_number)
        return 0;
    c->mask_number = 0;
    const void *p = series_get_part(&c->src->file, c->part + c->d.presence[number - 1].part, &size);
    int rc = p ? series_mask_decode(&j->u, &c->d, number, p, size, c->seed, c->mask) : -EBADMSG;
    if (!rc)
        c->mask_number = number;
    return rc;
}

static int get_runs(struct series_job *j, struct chunk *c, const struct series_section *s, uint64_t *ret)
{
    size_t size;
    const void *p = series_get_part(&c->src->file, c->part + s->part, &size);
    return p ? series_runs_decode(&j->u, &c->d, s, p, size, c->seed, s->mask ? c->mask : NULL, &j->pick, ret)
             : -EBADMSG;
}

static int chunk_column(struct series_job *j, struct chunk *c, struct series_span *span, unsigned column)
{
    const struct series_section *s = series_dir_find(&c->d, id_of(j, c->src, column));
    const uint64_t *other = NULL;
    if (!s)
        return 0;
    add_column(j, span, column);
    int rc = get_mask(j, c, s->mask);
    if (!rc)
        rc = get_runs(j, c, s, span->value[column]);
    if (!rc && s->other) {
        if (!j->other)
            j->other = xcalloc(SERIES_BLOCK * 64, sizeof(uint64_t));
        rc = get_runs(j, c, series_dir_find(&c->d, s->other - 1u), j->other);
        other = j->other;
    }
    if (rc) {
        span->value[column] = NULL;
        return rc;
    }
    const uint64_t *mask = s->mask ? c->mask : NULL;
    series_runs_expand(&c->d, s, mask, &j->pick, other, span->value[column]);
    for (unsigned r = 0; r < j->pick.rows; r++) {
        unsigned i = j->pick.row[r];
        span->mask[column][r] = i >= c->d.series ? 0 : mask ? mask[i] : full_mask(c->d.n);
    }
    return 0;
}

static void read_chunk(struct series_job *j, struct chunk *c, int64_t seq1, const void *dir, size_t size)
{
    const struct series_times *t = &c->src->t;
    size_t first = series_find_seq(t, c->seq0), end = series_find_seq(t, seq1 + 1);
    if (end <= c->src->lo || first >= c->src->hi || (first >= c->src->skip_lo && end <= c->src->skip_hi))
        return;
    c->seed =
        end - first <= 64 ? series_chunk_seed(j->block, c->seq0, t->at + first, (unsigned)(end - first)) : 0;
    c->mask_number = 0;
    if (series_dir_decode(dir, size, c->seed, &c->d) || c->d.n != end - first) {
        j->damaged++;
        return;
    }
    struct series_span *s = add_span(j, c->src, first, c->d.n);
    for (unsigned i = 0; i < j->columns; i++)
        j->damaged += chunk_column(j, c, s, i) != 0;
}

static int read_chunks(struct series_job *j, struct series_source *src, int64_t *ret_done)
{
    struct series_file *f = &src->file;
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_CHUNKS);
    struct chunk c = {.src = src};
    int rc;
    if (!st)
        return series_step(f, st);
    sqlite3_bind_int64(st, 1, j->block);
    sqlite3_bind_int64(st, 2, src->t.seq[src->lo]);
    sqlite3_bind_int64(st, 3, src->t.seq[src->hi - 1]);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        c.seq0 = sqlite3_column_int64(st, 0);
        *ret_done = sqlite3_column_int64(st, 1);
        c.part = sqlite3_column_int64(st, 2);
        if (c.seq0 < 0 || *ret_done > SERIES_SEQ_MAX || c.part < 0 || c.part > INT64_MAX / 2)
            j->damaged++;
        else
            read_chunk(j, &c, *ret_done, sqlite3_column_blob(st, 3), (size_t)sqlite3_column_bytes(st, 3));
    }
    rc = rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_reset(st);
    return rc;
}

// --- head rows, 64 at a time ---

struct tail {
    struct series_job *j;
    struct series_source *src;
    size_t first; // sweep of the first in the grid
    struct series_grid grid;
    unsigned n;
};

static void end_grid(struct tail *t)
{
    struct series_grid *g = &t->grid;
    struct series_job *j = t->j;
    struct series_span *s = t->n ? add_span(j, t->src, t->first, t->n) : NULL;
    for (unsigned c = 0; s && c < j->columns; c++) {
        unsigned id = id_of(j, t->src, c);
        if (!g->value[id])
            continue;
        add_column(j, s, c);
        for (unsigned r = 0; r < j->pick.rows; r++) {
            memcpy(s->value[c] + (size_t)r * t->n, g->value[id] + (size_t)j->pick.row[r] * g->n,
                   t->n * sizeof(uint64_t));
            s->mask[c][r] = g->mask[id][j->pick.row[r]] & full_mask(t->n);
        }
        memset(g->mask[id], 0, g->series * sizeof(uint64_t));
    }
    t->first += t->n;
    t->n = 0;
}

static int read_tail(struct tail *t, sqlite3_stmt *st, const uint64_t want[2])
{
    struct series_chain chain = {0};
    struct series_job *j = t->j;
    bool have_key = false;
    int rc;
    series_grid_init(&t->grid, 64, SERIES_BLOCK);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW && t->first + t->n < t->src->hi) {
        size_t size = (size_t)sqlite3_column_bytes(st, 1), k = t->first + t->n;
        const void *d = sqlite3_column_blob(st, 1);
        uint64_t seed = series_head_seed(j->block, t->src->t.seq[k], t->src->t.at[k]);
        if (d && series_head_decode(d, size, seed, &chain, &have_key, want, &t->grid, t->n)) {
            have_key = false;
            j->damaged++;
        }
        if (++t->n == 64)
            end_grid(t);
    }
    end_grid(t);
    series_grid_done(&t->grid);
    series_chain_done(&chain);
    return rc == SQLITE_DONE || rc == SQLITE_ROW
               ? 0
               : series_file_fail(&t->src->file, sqlite3_extended_errcode(t->src->file.c));
}

static int read_head(struct series_job *j, struct series_source *src, int64_t done)
{
    struct series_file *f = &src->file;
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_TAIL);
    uint64_t want[2] = {0, 0};
    done = done < src->head_seq - 1 ? src->head_seq - 1 : done;
    struct tail t = {.j = j, .src = src, .first = series_find_seq(&src->t, done + 1)};
    if (!st)
        return series_step(f, st);
    if (t.first >= src->hi)
        return 0;
    for (unsigned c = 0; c < j->columns; c++) {
        unsigned id = id_of(j, src, c);
        want[id >= SERIES_COLUMNS] |= (uint64_t)1 << id % SERIES_COLUMNS;
    }
    sqlite3_bind_int64(st, 1, j->block);
    sqlite3_bind_int64(st, 2, done);
    sqlite3_bind_int64(st, 3, src->t.seq[src->hi - 1]);
    sqlite3_bind_int64(st, 4, -1);
    int rc = read_tail(&t, st, want);
    sqlite3_reset(st);
    return rc;
}

static int newest_chunk(struct series_job *j, struct series_source *src, int64_t *ret_done)
{
    sqlite3_stmt *st = series_stmt(&src->file, SERIES_ST_DONE);
    if (!st)
        return series_step(&src->file, st);
    sqlite3_bind_int64(st, 1, j->block);
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret_done = sqlite3_column_int64(st, 0);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE
             ? 0
             : series_file_fail(&src->file, sqlite3_extended_errcode(src->file.c));
    sqlite3_reset(st);
    return rc;
}

int series_gather(struct series_job *j)
{
    int rc = 0;
    begin_pool(j);
    for (unsigned i = 0; i < j->sources && !rc; i++) {
        struct series_source *src = &j->source[i];
        int64_t done = 0;
        if (src->lo == src->hi)
            continue;
        rc = read_chunks(j, src, &done);
        // None of the time asked for: all its head rows may be older than the newest chunk.
        if (!rc && !done)
            rc = newest_chunk(j, src, &done);
        if (!rc)
            rc = read_head(j, src, done);
        if (rc == -EBADMSG) { // the file's structure: what could be read of it stays
            j->damaged++;
            rc = 0;
        }
        if (rc)
            err_set(j->e, rc, src->file.path, "%s", src->file.fail_text);
    }
    return rc;
}
