// SPDX-License-Identifier: Apache-2.0
// A tier's files, as the writer thread has them: a sample is one commit of head rows; then a sixtieth of the
// blocks become chunks.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

#define IDLE_PAGES 1000         // of the WAL: then a checkpoint when there is time
#define BUSY_PAGES 8000         // then at once
#define ASIDE_NS (600 * MONO_S) // between two files that are set aside
#define IDLE_NS (30 * MONO_S)   // and for fewer after this long

// --- transactions ---

static int begin(struct series_file *f)
{
    return series_file_fail(f, db_exec(f->c, "BEGIN IMMEDIATE"));
}

static int commit(struct series_file *f, int rc)
{
    if (!rc)
        rc = series_file_fail(f, db_exec(f->c, "COMMIT"));
    if (rc && !sqlite3_get_autocommit(f->c))
        (void)db_exec(f->c, "ROLLBACK");
    return rc;
}

// --- a tier's file ---

static void forget_chains(struct series_out *o)
{
    for (uint32_t b = 0; b < o->blocks; b++)
        o->block[b].key = true;
}

static void grow_blocks(struct series_out *o, uint32_t blocks, int64_t done_seq)
{
    if (blocks <= o->blocks)
        return;
    o->block = xreallocarray(o->block, blocks, sizeof(*o->block));
    for (; o->blocks < blocks; o->blocks++)
        o->block[o->blocks] = (struct series_block){.key = true, .done_seq = done_seq};
}

static int load_done(struct series_out *o)
{
    sqlite3_stmt *st;
    struct series_file *f = &o->file;
    int64_t head = 0;
    // Rows that are gone have chunks.
    int rc = series_file_fail(f, db_get_int(f->c, "SELECT min(id) FROM head", &head));
    head = (head >> SERIES_ID_BLOCK_BITS) - 1;
    for (uint32_t b = 0; b < o->blocks; b++)
        o->block[b].done_seq = head;
    if (rc)
        return rc;
    if (sqlite3_prepare_v2(f->c, "SELECT block, max(seq1) FROM chunk GROUP BY block", -1, &st, NULL) !=
        SQLITE_OK)
        return series_file_fail(f, sqlite3_extended_errcode(f->c));
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        int64_t b = sqlite3_column_int64(st, 0), done = sqlite3_column_int64(st, 1);
        if (b < 0 || b >= SERIES_NUM_MAX / SERIES_BLOCK)
            break;
        grow_blocks(o, (uint32_t)b + 1, head);
        o->block[b].done_seq = done > head ? done : head;
    }
    int bad = rc == SQLITE_DONE  ? 0
              : rc == SQLITE_ROW ? -EBADMSG
                                 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_finalize(st);
    return bad;
}

// What a file holds already: it is gone on with.
static int take_up(struct series_out *o)
{
    struct series_file *f = &o->file;
    int64_t part = 0, sweeps = 0;
    struct series_key *key = NULL;
    uint32_t num = 0;
    int rc = series_file_fail(f, db_get_int(f->c, "SELECT max(id) FROM part", &part));
    if (!rc)
        rc = series_file_fail(f, db_get_int(f->c, "SELECT count(*) FROM sweep", &sweeps));
    if (!rc)
        rc = series_load_keys(f, &key, &num);
    if (!rc)
        rc = load_done(o);
    free(key);
    o->next_part = part + 1;
    o->sweeps = (uint64_t)sweeps;
    o->keys = num;
    forget_chains(o);
    return rc;
}

// Once in a while: what is damaged again at once is no accident, and must not fill the folder.
static int set_aside(struct series *s, struct series_out *o, const char *text)
{
    char as[512], why[sizeof(o->file.fail_text)];
    int64_t now = mono_now().ns;
    snprintf(why, sizeof(why), "%s", text);
    if (o->aside_ns && now - o->aside_ns < ASIDE_NS) {
        forget_chains(o);
        snprintf(o->file.fail_text, sizeof(o->file.fail_text), "%.200s: %.100s, again", o->file.name.text,
                 why);
        snprintf(o->bad, sizeof(o->bad), "%.190s", why);
        return -EBADMSG;
    }
    o->aside_ns = now;
    char *path = xstrdup(o->file.path);
    struct series_name name = o->file.name;
    if (o->file.c) // what its log has stays there, for a look by hand
        sqlite3_db_config(o->file.c, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    series_file_close(&o->file);
    o->bad[0] = 0;
    forget_chains(o);
    int rc = series_set_aside(path, as, sizeof(as));
    log_error("series-set-aside", "path=%s as=%s reason=\"%s\"", path, rc ? "" : as, why);
    if (!rc)
        series_note(s, name.text, why, as);
    s->keep_now = true;
    free(path);
    return rc;
}

static int on_commit(void *arg, sqlite3 *c, const char *name, int pages)
{
    struct series_out *o = arg;
    o->wal_pages = pages;
    if (pages >= BUSY_PAGES)
        (void)sqlite3_wal_checkpoint_v2(c, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

static int open_file(struct series *s, struct series_out *o, const struct series_name *name)
{
    struct err e = {0};
    int held = series_hold_folder(s, &e);
    if (held) {
        snprintf(o->file.fail_text, sizeof(o->file.fail_text), "%s", e.text);
        return held;
    }
    for (int again = 0;; again++) {
        int rc = series_file_open(&o->file, s->dir, name, SERIES_WRITE, s->o.vfs, &e);
        if (rc == -EBADMSG)
            o->file = (struct series_file){.name = *name, .path = xasprintf("%s/%s", s->dir, name->text)};
        else if (rc)
            snprintf(o->file.fail_text, sizeof(o->file.fail_text), "%s", e.text);
        else
            rc = take_up(o);
        if (rc == -EBADMSG && !again) {
            rc = set_aside(s, o, o->file.fail_text[0] ? o->file.fail_text : e.text);
            if (!rc)
                continue;
        }
        if (rc) {
            char text[sizeof(o->file.fail_text)];
            memcpy(text, o->file.fail_text, sizeof(text));
            series_file_close(&o->file);
            memcpy(o->file.fail_text, text, sizeof(text));
        } else {
            o->bad[0] = 0; // a person may have taken the bad one away
            sqlite3_wal_hook(o->file.c, on_commit, o);
            series_look_open(s, o->tier, name->text);
            series_marks_take(o);
        }
        return rc;
    }
}

// Deleted, moved away or replaced while it is open: what is written goes nowhere that anybody can read.
static void look_for_file(struct series *s, struct series_out *o)
{
    int moved = 0;
    if (!o->file.c || sqlite3_file_control(o->file.c, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
        !moved)
        return;
    log_error("series-file-gone", "path=%s text=\"somebody has taken the file away: a new one is begun\"",
              o->file.path);
    series_note(s, o->file.name.text, "somebody has taken it away", NULL);
    series_file_close(&o->file);
    o->bad[0] = 0;
    forget_chains(o);
    s->keep_now = true;
}

static int leave_bad(struct series *s, struct series_out *o)
{
    return o->file.c && o->bad[0] ? set_aside(s, o, o->bad) : 0;
}

void series_out_watch(struct series *s, struct series_out *o)
{
    const char *why;
    look_for_file(s, o);
    if (!o->file.c)
        return;
    series_mend_shm(o->file.path, o->marks.known ? o->marks.shm_size : 0);
    if (!o->bad[0] && !series_look_found(s, o->tier, o->bad, sizeof(o->bad)) &&
        (why = series_marks_compare(o)) != NULL)
        snprintf(o->bad, sizeof(o->bad), "%s", why);
    if (o->bad[0])
        o->error = leave_bad(s, o);
}

static int have_file(struct series *s, struct series_out *o, int64_t at_ms)
{
    struct series_name name;
    look_for_file(s, o);
    int bad = leave_bad(s, o);
    if (bad)
        return bad;
    if (o->file.c && at_ms >= o->file.name.from_ms && at_ms < o->file.name.to_ms)
        return 0;
    series_name_of(o->tier, at_ms, &name);
    int rc = series_out_close(s, o);
    s->keep_now = true;
    return rc ? rc : open_file(s, o, &name);
}

// --- a sweep ---

static int save_keys(struct series *s, struct series_out *o, uint32_t num)
{
    int rc = 0;
    for (uint32_t i = o->keys / SERIES_BLOCK * SERIES_BLOCK; i < num && !rc && o->keys < num;
         i += SERIES_BLOCK) {
        uint32_t n = num - i < SERIES_BLOCK ? num - i : SERIES_BLOCK;
        rc = series_save_keys(&o->file, i / SERIES_BLOCK, s->wkey + i, n);
    }
    return rc;
}

static int write_head(struct series_out *o, const struct series_sample *m, uint32_t block, struct buf *b)
{
    uint32_t left = m->num - block * SERIES_BLOCK, first = block * SERIES_BLOCK;
    struct series_slice slice = {
        .series = left < SERIES_BLOCK ? left : SERIES_BLOCK,
        .columns = m->columns,
        .id = m->id,
        .value = m->value + (size_t)block * m->columns,
        .have = {m->have[0] + first, m->have[1] ? m->have[1] + first : NULL},
    };
    struct series_block *at = &o->block[block];
    bool key = at->key || at->since_key >= SERIES_WINDOW - 1;
    buf_clear(b);
    series_head_encode(b, &at->chain, &slice, key, series_head_seed(block, m->seq, m->at_ms));
    at->key = false;
    at->since_key = key ? 0 : at->since_key + 1;
    sqlite3_stmt *st = series_stmt(&o->file, SERIES_ST_HEAD);
    if (st) {
        sqlite3_bind_int64(st, 1, m->seq << SERIES_ID_BLOCK_BITS | block);
        sqlite3_bind_blob(st, 2, b->data, (int)b->len, SQLITE_STATIC);
    }
    return series_step(&o->file, st);
}

static int write_sample(struct series *s, struct series_out *o, const struct series_sample *m)
{
    struct buf b = {0};
    int rc = begin(&o->file);
    if (!rc)
        rc = save_keys(s, o, s->wnum);
    sqlite3_stmt *st = rc ? NULL : series_stmt(&o->file, SERIES_ST_SWEEP);
    if (st) {
        sqlite3_bind_int64(st, 1, m->seq);
        sqlite3_bind_int64(st, 2, m->at_ms);
    }
    if (!rc)
        rc = series_step(&o->file, st);
    for (uint32_t i = 0; i < m->blocks && !rc; i++)
        rc = write_head(o, m, i, &b);
    buf_done(&b);
    rc = commit(&o->file, rc);
    if (rc) {
        forget_chains(o);
    } else {
        o->sweeps++;
        o->keys = s->wnum > o->keys ? s->wnum : o->keys;
    }
    return rc;
}

// --- chunks ---

struct window {
    struct series_grid grid;
    int64_t seq0, seq1;
    int64_t at[SERIES_WINDOW];
};

// The block's next sweeps that have no chunk. Where more follow, it ends before a key row, so that the next
// chunk can be read without this one. A damaged head row costs what stands up to the next key row.
static int load_window(struct series_out *o, uint32_t block, struct window *w)
{
    struct series_chain chain = {0};
    bool have_key = false;
    struct series_file *f = &o->file;
    int64_t seq[SERIES_WINDOW];
    unsigned k = 0, cut = 0;
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_TAIL);
    if (!st)
        return series_step(f, st);
    series_grid_init(&w->grid, SERIES_WINDOW, SERIES_BLOCK);
    sqlite3_bind_int64(st, 1, block);
    sqlite3_bind_int64(st, 2, o->block[block].done_seq);
    sqlite3_bind_int64(st, 3, SERIES_SEQ_MAX);
    sqlite3_bind_int64(st, 4, SERIES_WINDOW + 1);
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        const void *d = sqlite3_column_blob(st, 1);
        size_t n = (size_t)sqlite3_column_bytes(st, 1);
        if (!d || series_head_is_key(d, n))
            cut = k;
        if (k == SERIES_WINDOW)
            break;
        seq[k] = sqlite3_column_int64(st, 0);
        w->at[k] = sqlite3_column_int64(st, 2);
        if (d && series_head_decode(d, n, series_head_seed(block, seq[k], w->at[k]), &chain, &have_key, NULL,
                                    &w->grid, k))
            have_key = false;
        k++;
    }
    if (rc == SQLITE_ROW && cut)
        k = cut;
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_reset(st);
    series_chain_done(&chain);
    w->seq0 = k ? seq[0] : 0;
    w->seq1 = k ? seq[k - 1] : 0;
    series_grid_shorten(&w->grid, rc ? 0 : k);
    return rc;
}

static int write_parts(struct series_out *o, uint32_t block, const struct window *w)
{
    const struct series_parts *p = &o->parts;
    struct series_file *f = &o->file;
    int rc = begin(f);
    for (unsigned i = 0; i < p->num && !rc; i++) {
        sqlite3_stmt *st = series_stmt(f, SERIES_ST_PART);
        if (st) {
            sqlite3_bind_int64(st, 1, o->next_part + i);
            sqlite3_bind_blob(st, 2, p->part[i].data ? p->part[i].data : "", (int)p->part[i].len,
                              SQLITE_STATIC);
        }
        rc = series_step(f, st);
    }
    sqlite3_stmt *st = rc ? NULL : series_stmt(f, SERIES_ST_CHUNK);
    if (st) {
        sqlite3_bind_int64(st, 1, block);
        sqlite3_bind_int64(st, 2, w->seq0);
        sqlite3_bind_int64(st, 3, w->seq1);
        sqlite3_bind_int64(st, 4, o->next_part);
        sqlite3_bind_blob(st, 5, p->dir.data, (int)p->dir.len, SQLITE_STATIC);
    }
    if (!rc)
        rc = series_step(f, st);
    rc = commit(f, rc);
    if (!rc) {
        o->next_part += p->num;
        o->block[block].done_seq = w->seq1;
    }
    return rc;
}

// One chunk of the block; *ret_n: sweeps in it, 0 = there was nothing.
static int flush_block(struct series_out *o, uint32_t block, unsigned *ret_n)
{
    struct window w = {0};
    int rc = load_window(o, block, &w);
    *ret_n = w.grid.n;
    if (!rc && w.grid.n && series_grid_empty(&w.grid)) {
        o->block[block].done_seq = w.seq1;
    } else if (!rc && w.grid.n) {
        series_chunk_encode(&o->parts, &w.grid, series_chunk_seed(block, w.seq0, w.at, w.grid.n));
        rc = write_parts(o, block, &w);
    }
    o->block[block].key = true;
    series_grid_done(&w.grid);
    return rc;
}

static int trim_head(struct series_out *o)
{
    int64_t least = INT64_MAX;
    for (uint32_t b = 0; b < o->blocks; b++)
        least = o->block[b].done_seq < least ? o->block[b].done_seq : least;
    if (!o->blocks || !least)
        return 0;
    sqlite3_stmt *st = series_stmt(&o->file, SERIES_ST_TRIM);
    if (st)
        sqlite3_bind_int64(st, 1, (least + 1) << SERIES_ID_BLOCK_BITS);
    return series_step(&o->file, st);
}

static int flush_whole_block(struct series_out *o, uint32_t block)
{
    unsigned n = 1;
    int rc = 0;
    while (!rc && n)
        rc = flush_block(o, block, &n);
    return rc;
}

static int flush_due(struct series_out *o)
{
    int rc = 0;
    bool any = false;
    for (uint32_t b = (uint32_t)(o->sweeps % SERIES_WINDOW); b < o->blocks && !rc; b += SERIES_WINDOW) {
        rc = flush_whole_block(o, b);
        any = true;
    }
    return !rc && any ? trim_head(o) : rc;
}

static int write_all(struct series *s, struct series_out *o, const struct series_sample *m)
{
    int rc = have_file(s, o, m->at_ms);
    if (!rc) {
        grow_blocks(o, m->blocks, m->seq - 1);
        rc = write_sample(s, o, m);
    }
    return rc;
}

int series_out_write(struct series *s, struct series_out *o, const struct series_sample *m)
{
    int rc = write_all(s, o, m);
    if (rc == -EBADMSG && o->file.c && !o->bad[0]) {
        // Found out only now. A new file is begun; what stood in the old one can perhaps be read by hand.
        rc = set_aside(s, o, o->file.fail_text);
        rc = rc ? rc : write_all(s, o, m);
    }
    // A chunk that cannot be written now can be later: the sample is safe.
    if (!rc)
        o->chunk_error = flush_due(o);
    if (!rc && o->chunk_error == -EBADMSG)
        rc = set_aside(s, o, o->file.fail_text);
    series_marks_take(o);
    return o->error = rc;
}

// What has no chunk then stays in head rows: they are read as well.
int series_out_close(struct series *s, struct series_out *o)
{
    int rc = 0;
    if (!o->file.c)
        return 0;
    for (uint32_t b = 0; b < o->blocks && !rc; b++)
        rc = flush_whole_block(o, b);
    if (!rc)
        rc = trim_head(o);
    if (rc == -EBADMSG)
        return set_aside(s, o, o->file.fail_text);
    series_file_close(&o->file);
    return 0;
}

void series_out_blocks(struct series_out *o, uint32_t blocks)
{
    grow_blocks(o, blocks, 0);
}

void series_out_forget(struct series_out *o)
{
    forget_chains(o);
}

void series_out_idle(struct series_out *o, int64_t now_ns)
{
    if (!o->file.c || !o->wal_pages || (o->wal_pages < IDLE_PAGES && now_ns - o->checked_ns < IDLE_NS))
        return;
    // What it cannot do now is tried again; commits tell whether writing works.
    if (series_marks_compare(o) != NULL) // the next sweep tells
        return;
    (void)sqlite3_wal_checkpoint_v2(o->file.c, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    series_marks_take(o);
    o->wal_pages = 0;
    o->checked_ns = now_ns;
}

void series_out_done(struct series_out *o)
{
    for (uint32_t b = 0; b < o->blocks; b++)
        series_chain_done(&o->block[b].chain);
    free(o->block);
    series_parts_done(&o->parts);
    if (o->file.c)
        series_file_close(&o->file);
    o->block = NULL;
    o->blocks = 0;
}
