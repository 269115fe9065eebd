// SPDX-License-Identifier: Apache-2.0
// Checking files: SQLite's own check of the whole, and every chunk and head row decoded.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_bytes.h"
#include "lib/xalloc.h"

struct check {
    struct series_source src;
    struct series_unpacker u;
    uint64_t chunks, rows, damaged;
};

static int integrity(struct series_file *f, char *text, size_t size)
{
    sqlite3_stmt *st;
    if (sqlite3_prepare_v2(f->c, "PRAGMA integrity_check(1)", -1, &st, NULL) != SQLITE_OK) {
        snprintf(text, size, "%s", sqlite3_errmsg(f->c));
        return -EBADMSG;
    }
    int rc = sqlite3_step(st);
    const char *t = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : sqlite3_errmsg(f->c);
    bool ok = rc == SQLITE_ROW && t && strcmp(t, "ok") == 0;
    if (!ok)
        snprintf(text, size, "%s", t ? t : "cannot be checked");
    sqlite3_finalize(st);
    return ok ? 0 : -EBADMSG;
}

static int check_column(struct check *c, const struct series_dir *d, const struct series_section *s,
                        int64_t part, uint64_t seed)
{
    uint64_t mask[SERIES_BLOCK], value[64];
    struct series_pick pick = {{0}, 1}; // the header says where every run ends: one is enough
    size_t size;
    const void *p;
    int rc = 0;
    if (s->mask) {
        p = series_get_part(&c->src.file, part + d->presence[s->mask - 1].part, &size);
        rc = p ? series_mask_decode(&c->u, d, s->mask, p, size, seed, mask) : -EBADMSG;
    }
    p = rc ? NULL : series_get_part(&c->src.file, part + s->part, &size);
    return p ? series_runs_decode(&c->u, d, s, p, size, seed, s->mask ? mask : NULL, &pick, value) : -EBADMSG;
}

static void check_chunk(struct check *c, uint32_t block, int64_t seq0, int64_t seq1, int64_t part,
                        const void *dir, size_t size)
{
    struct series_dir d;
    const struct series_times *t = &c->src.t;
    size_t first = series_find_seq(t, seq0), end = series_find_seq(t, seq1 + 1);
    uint64_t seed = end >= first && end - first <= 64
                        ? series_chunk_seed(block, seq0, t->at + first, (unsigned)(end - first))
                        : 0;
    int rc = seq0 < 0 || seq1 > SERIES_SEQ_MAX || part < 0 || part > INT64_MAX / 2
                 ? -EBADMSG
                 : series_dir_decode(dir, size, seed, &d);
    if (!rc && d.n != end - first)
        rc = -EBADMSG;
    for (unsigned i = 0; !rc && i < d.columns; i++)
        rc = check_column(c, &d, &d.column[i], part, seed);
    c->chunks++;
    c->damaged += rc != 0;
}

static int check_chunks(struct check *c)
{
    sqlite3_stmt *st;
    struct series_file *f = &c->src.file;
    if (sqlite3_prepare_v2(f->c, "SELECT block, seq0, seq1, part, dir FROM chunk", -1, &st, NULL) !=
        SQLITE_OK)
        return series_file_fail(f, sqlite3_extended_errcode(f->c));
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        check_chunk(c, (uint32_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                    sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3), sqlite3_column_blob(st, 4),
                    (size_t)sqlite3_column_bytes(st, 4));
    rc = rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_finalize(st);
    return rc;
}

// Each by itself: the chain of a row that is damaged ends there, for reading too.
static int check_rows(struct check *c)
{
    sqlite3_stmt *st;
    struct series_file *f = &c->src.file;
    const struct series_times *t = &c->src.t;
    if (sqlite3_prepare_v2(f->c, "SELECT id, d FROM head", -1, &st, NULL) != SQLITE_OK)
        return series_file_fail(f, sqlite3_extended_errcode(f->c));
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(st, 0), seq = id >> SERIES_ID_BLOCK_BITS;
        uint32_t block = (uint32_t)(id & ((1 << SERIES_ID_BLOCK_BITS) - 1));
        size_t k = series_find_seq(t, seq);
        struct series_chain chain = {0};
        bool have_key = true;
        c->rows++;
        if (k == t->n || t->seq[k] != seq ||
            series_head_decode(sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1),
                               series_head_seed(block, seq, t->at[k]), &chain, &have_key, NULL, NULL, 0))
            c->damaged++;
        series_chain_done(&chain);
    }
    rc = rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_finalize(st);
    return rc;
}

static bool check_file(const char *dir, const struct series_name *name, char *text, size_t size)
{
    struct check c = {0};
    struct err e = {0};
    struct series_key *key = NULL;
    uint32_t num = 0;
    if (series_source_open(&c.src, dir, name, &e)) {
        bool none = e.code == -ENOENT; // begun just now, or it went meanwhile
        snprintf(text, size, "%s%s", none ? "ok: " : "", e.text);
        return none;
    }
    int rc = integrity(&c.src.file, text, size);
    if (!rc) {
        rc = series_load_keys(&c.src.file, &key, &num);
        if (!rc)
            rc = check_chunks(&c);
        if (!rc)
            rc = check_rows(&c);
        if (rc || c.damaged)
            snprintf(text, size, "%llu of %llu chunks and rows are damaged%s%s",
                     (unsigned long long)c.damaged, (unsigned long long)(c.chunks + c.rows), rc ? "; " : "",
                     c.src.file.fail_text);
        else
            snprintf(text, size, "ok: %u series, %zu sweeps, %llu chunks", num, c.src.t.n,
                     (unsigned long long)c.chunks);
    }
    free(key);
    series_unpacker_done(&c.u);
    series_source_close(&c.src);
    return !rc && !c.damaged;
}

long series_check(const char *dir, void (*tell)(void *arg, const char *file, const char *text), void *arg)
{
    struct series_name *list;
    char text[600];
    long n = series_names(dir, &list), damaged = 0;
    if (n < 0)
        return n;
    for (long i = 0; i < n; i++) {
        damaged += !check_file(dir, &list[i], text, sizeof(text));
        tell(arg, list[i].text, text);
    }
    free(list);
    return damaged;
}
