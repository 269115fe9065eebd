// SPDX-License-Identifier: Apache-2.0
// Events: a ring of the newest in memory, rows on disk written in batches, queries over both.
//
// Ids of one run are consecutive: the ring is indexed by id. Those above ring.durable wait to be written and
// stay in the ring beyond its normal size; when they cannot be written the oldest are given up at DB_RING_MAX
// or DB_RING_BYTES and counted as lost.
//
// An id is never given twice, also when the last rows were lost by a kill: ids are reserved on disk a range
// ahead (table reserved); a restart goes on behind the reservation, a clean close gives the rest of it back.
// Where a reservation could not be kept (a damaged file, a full disk at start) the ids go on from the clock,
// which is far above what counting reaches.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "lib/buf.h"
#include "lib/log.h"
#include "lib/xalloc.h"

enum {
    WORD_MAX = 255,
    TEXT_MAX = 4096,
    DATA_MAX = 65536,
};

#define CLOCK_EPOCH_S 1735689600LL // 2025-01-01
#define DATA_TOO_LONG "{\"truncated\":true}"

// --- records ---

// Bytes of s to keep: at most max, cut before a character, not in it.
static size_t cut(const char *s, size_t max)
{
    size_t n = strnlen(s, max + 1);
    if (n <= max)
        return n;
    for (n = max; n > max - 4 && ((unsigned char)s[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

static const char *put_str(char **to, const char *s, size_t n)
{
    char *at = *to;
    memcpy(at, s, n);
    at[n] = 0;
    *to += n + 1;
    return at;
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static struct db_event_rec *rec_new(const struct db_event *ev)
{
    const char *fabric = or_empty(ev->fabric), *kind = or_empty(ev->kind), *severity = or_empty(ev->severity);
    const char *subject = or_empty(ev->subject), *text = or_empty(ev->text), *data = or_empty(ev->data);
    if (strnlen(data, DATA_MAX + 1) > DATA_MAX)
        data = DATA_TOO_LONG;
    size_t n[6] = {cut(fabric, WORD_MAX),  cut(kind, WORD_MAX), cut(severity, WORD_MAX),
                   cut(subject, WORD_MAX), cut(text, TEXT_MAX), strlen(data)};
    size_t bytes = sizeof(struct db_event_rec) + n[0] + n[1] + n[2] + n[3] + n[4] + n[5] + 6;
    struct db_event_rec *rec = xmalloc(bytes);
    char *p = (char *)(rec + 1);
    rec->refs = 1;
    rec->pruned = false;
    rec->bytes = bytes;
    rec->ev.wall_ns = ev->wall_ns;
    rec->ev.fabric = put_str(&p, fabric, n[0]);
    rec->ev.kind = put_str(&p, kind, n[1]);
    rec->ev.severity = put_str(&p, severity, n[2]);
    rec->ev.subject = put_str(&p, subject, n[3]);
    rec->ev.text = put_str(&p, text, n[4]);
    rec->ev.data = put_str(&p, data, n[5]);
    return rec;
}

static void rec_unref(struct db_event_rec *rec) // with mu held
{
    if (--rec->refs == 0)
        free(rec);
}

// --- the ring ---

static struct db_event_rec **ring_at(const struct db_ring *g, uint64_t id)
{
    return &g->slot[id & (DB_RING_MAX - 1)];
}

static void drop_oldest(struct db_ring *g) // with mu held
{
    struct db_event_rec **at = ring_at(g, g->first);
    if (g->first > g->durable) {
        g->durable = g->first;
        g->lost++;
    }
    g->bytes -= (*at)->bytes;
    rec_unref(*at);
    *at = NULL;
    g->first++;
}

static void make_room(struct db_ring *g, size_t bytes) // with mu held
{
    while (g->next - g->first >= DB_RING && g->first <= g->durable)
        drop_oldest(g);
    while (g->first < g->next && (g->next - g->first >= DB_RING_MAX || g->bytes + bytes > DB_RING_BYTES))
        drop_oldest(g);
}

uint64_t db_ring_pending(const struct db *db)
{
    return db->ring.next - 1 - db->ring.durable;
}

uint64_t db_event_add(struct db *db, const struct db_event *ev)
{
    struct db_ring *g = &db->ring;
    struct db_event_rec *rec = rec_new(ev);
    pthread_mutex_lock(&db->mu);
    make_room(g, rec->bytes);
    uint64_t id = rec->ev.id = g->next++;
    *ring_at(g, id) = rec;
    g->bytes += rec->bytes;
    uint64_t pending = db_ring_pending(db);
    if (pending == 1)
        g->due_ns = mono_now().ns + DB_EVENT_DELAY_NS;
    // The writer sleeps until the first one's time, unless there is a full batch.
    if (pending == 1 || pending == DB_EVENT_BATCH)
        pthread_cond_signal(&db->wake);
    pthread_mutex_unlock(&db->mu);
    return id;
}

uint64_t db_event_last_id(const struct db *db)
{
    return db->ring.next - 1; // written by the loop thread alone
}

// --- writing ---

static int insert_event(struct db *db, const struct db_event *ev)
{
    sqlite3_stmt *st = db->st[DB_ST_EVENT_PUT];
    const char *text[] = {ev->fabric, ev->kind, ev->severity, ev->subject, ev->text, ev->data};
    sqlite3_bind_int64(st, 1, (int64_t)ev->id);
    sqlite3_bind_int64(st, 2, ev->wall_ns);
    for (int i = 0; i < 6; i++)
        sqlite3_bind_text(st, 3 + i, text[i], -1, SQLITE_STATIC);
    return db_step(st);
}

static int reserve(struct db *db, uint64_t last)
{
    sqlite3_bind_int64(db->st[DB_ST_RESERVE], 1, (int64_t)last);
    return db_step(db->st[DB_ST_RESERVE]);
}

static size_t take_batch(struct db *db, struct db_event_rec **batch, uint64_t *ret_next)
{
    struct db_ring *g = &db->ring;
    size_t n = 0;
    pthread_mutex_lock(&db->mu);
    for (uint64_t id = g->durable + 1; id < g->next && n < DB_EVENT_BATCH; id++) {
        batch[n] = *ring_at(g, id);
        batch[n++]->refs++;
    }
    *ret_next = g->next;
    pthread_mutex_unlock(&db->mu);
    return n;
}

static void end_batch(struct db *db, struct db_event_rec **batch, size_t n, bool written)
{
    struct db_ring *g = &db->ring;
    pthread_mutex_lock(&db->mu);
    // The ring may have given some up meanwhile: never step back.
    if (written && batch[n - 1]->ev.id > g->durable)
        g->durable = batch[n - 1]->ev.id;
    for (size_t i = 0; i < n; i++)
        rec_unref(batch[i]);
    g->due_ns = mono_now().ns + DB_EVENT_DELAY_NS;
    pthread_mutex_unlock(&db->mu);
}

// Old rows beyond the number kept, looked at now and then.
static void limit_rows(struct db *db, uint64_t first, uint64_t last)
{
    enum { EVERY = 8192 };
    if (first / EVERY == last / EVERY || last <= DB_EVENT_ROWS)
        return;
    pthread_mutex_lock(&db->mu);
    db->prune[1] = (struct db_prune){true, last - DB_EVENT_ROWS, INT64_MAX};
    pthread_mutex_unlock(&db->mu);
}

int db_event_write(struct db *db)
{
    struct db_ring *g = &db->ring;
    struct db_event_rec *batch[DB_EVENT_BATCH];
    uint64_t next, last = g->reserved;
    size_t n = take_batch(db, batch, &next);
    if (!n)
        return 0;
    int rc = db_begin(db);
    if (!rc && next + DB_ID_RANGE / 2 > last) {
        last = next + DB_ID_RANGE;
        rc = reserve(db, last);
    }
    for (size_t i = 0; i < n && !rc; i++)
        rc = insert_event(db, &batch[i]->ev);
    rc = db_commit(db, rc);
    if (!rc) {
        g->reserved = last;
        limit_rows(db, batch[0]->ev.id, batch[n - 1]->ev.id + 1);
    }
    end_batch(db, batch, n, rc == 0);
    return rc;
}

void db_event_release_ids(struct db *db)
{
    int rc = db_begin(db);
    if (!rc)
        rc = reserve(db, db->ring.next - 1);
    (void)db_commit(db, rc); // when it fails the next start goes on behind the reservation
}

// --- retention ---

void db_event_prune(struct db *db, int64_t before_wall_ns)
{
    struct db_ring *g = &db->ring;
    for (uint64_t id = g->first; id < g->next; id++) {
        struct db_event_rec *rec = *ring_at(g, id);
        rec->pruned = rec->pruned || rec->ev.wall_ns < before_wall_ns;
    }
    pthread_mutex_lock(&db->mu);
    db->prune[0] = (struct db_prune){true, g->next - 1, before_wall_ns};
    pthread_cond_signal(&db->wake);
    pthread_mutex_unlock(&db->mu);
}

static int delete_chunk(struct db *db, const struct db_prune *p, int *ret_rows)
{
    sqlite3_stmt *st = db->st[DB_ST_PRUNE];
    int rc = db_begin(db);
    if (!rc) {
        sqlite3_bind_int64(st, 1, (int64_t)p->max_id);
        sqlite3_bind_int64(st, 2, p->before_wall_ns);
        sqlite3_bind_int(st, 3, DB_PRUNE_CHUNK);
        rc = db_step(st);
        *ret_rows = sqlite3_changes(db->w);
    }
    if (!rc)
        rc = db_exec(db->w, "PRAGMA incremental_vacuum(200)");
    return db_commit(db, rc);
}

int db_event_prune_chunk(struct db *db)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&db->mu);
        struct db_prune p = db->prune[i];
        pthread_mutex_unlock(&db->mu);
        int rows = 0;
        int rc = p.active ? delete_chunk(db, &p, &rows) : 0;
        if (rc)
            return rc;
        pthread_mutex_lock(&db->mu);
        // Asked anew meanwhile: not done.
        if (rows < DB_PRUNE_CHUNK && db->prune[i].max_id == p.max_id &&
            db->prune[i].before_wall_ns == p.before_wall_ns)
            db->prune[i].active = false;
        pthread_mutex_unlock(&db->mu);
    }
    return 0;
}

// --- queries ---

struct query {
    const struct db_event_query *q;
    void (*row)(void *arg, const struct db_event *ev);
    void *arg;
    uint64_t above, below; // exclusive
    long left;
};

static bool wanted(const struct query *s, const struct db_event_rec *rec)
{
    return !rec->pruned && (!s->q->fabric || strcmp(s->q->fabric, rec->ev.fabric) == 0) &&
           (!s->q->kind || strcmp(s->q->kind, rec->ev.kind) == 0);
}

static void show(struct query *s, const struct db_event_rec *rec)
{
    if (wanted(s, rec)) {
        s->row(s->arg, &rec->ev);
        s->left--;
    }
}

static void query_ring(struct db *db, struct query *s, bool newest_first)
{
    const struct db_ring *g = &db->ring;
    uint64_t lo = s->above >= g->first ? s->above + 1 : g->first; // lo..hi-1
    uint64_t hi = s->below < g->next ? s->below : g->next;
    if (newest_first) {
        for (uint64_t id = hi; id > lo && s->left > 0; id--)
            show(s, *ring_at(g, id - 1));
    } else {
        for (uint64_t id = lo; id < hi && s->left > 0; id++)
            show(s, *ring_at(g, id));
    }
}

static const char *column(sqlite3_stmt *st, int i)
{
    return or_empty((const char *)sqlite3_column_text(st, i));
}

static int read_rows(sqlite3_stmt *st, struct query *s)
{
    int rc;
    while (s->left > 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct db_event ev = {
            .id = (uint64_t)sqlite3_column_int64(st, 0),
            .wall_ns = sqlite3_column_int64(st, 1),
            .fabric = column(st, 2),
            .kind = column(st, 3),
            .severity = column(st, 4),
            .subject = column(st, 5),
            .text = column(st, 6),
            .data = column(st, 7),
        };
        s->row(s->arg, &ev);
        s->left--;
    }
    return s->left == 0 || rc == SQLITE_DONE ? 0 : rc;
}

static void bind_query(sqlite3_stmt *st, const struct query *s)
{
    sqlite3_bind_int64(st, 1, s->above > INT64_MAX ? INT64_MAX : (int64_t)s->above);
    sqlite3_bind_int64(st, 2, s->below > INT64_MAX ? INT64_MAX : (int64_t)s->below);
    if (s->q->kind)
        sqlite3_bind_text(st, 3, s->q->kind, -1, SQLITE_STATIC);
    if (s->q->fabric)
        sqlite3_bind_text(st, 4, s->q->fabric, -1, SQLITE_STATIC);
}

static int query_disk(struct db *db, struct query *s, bool newest_first)
{
    struct query d = *s;
    struct buf text = {0};
    if (d.below > db->ring.first)
        d.below = db->ring.first;
    if (s->left <= 0 || d.above >= d.below - 1)
        return 0;
    buf_puts(&text, "SELECT id, wall_ns, fabric, kind, severity, subject, text, data FROM event "
                    "WHERE id > ?1 AND id < ?2");
    if (d.q->kind)
        buf_puts(&text, " AND kind = ?3");
    if (d.q->fabric) // with a kind the kind's index serves: it selects more
        buf_puts(&text, d.q->kind ? " AND +fabric = ?4" : " AND fabric = ?4");
    buf_puts(&text, newest_first ? " ORDER BY id DESC" : " ORDER BY id");
    sqlite3_stmt *st = NULL;
    db_read_lock(db);
    int rc = sqlite3_prepare_v2(db->r, text.data, -1, &st, NULL);
    if (rc == SQLITE_OK) {
        bind_query(st, &d);
        rc = read_rows(st, &d);
    }
    int err = db_errno(db->r, rc);
    sqlite3_finalize(st);
    db_read_unlock(db);
    buf_done(&text);
    s->left = d.left;
    return err;
}

long db_event_query(struct db *db, const struct db_event_query *q,
                    void (*row)(void *arg, const struct db_event *ev), void *arg)
{
    bool newest_first = q->newest_first || q->before_id;
    int limit = q->limit < 1 ? 1 : q->limit > 10000 ? 10000 : q->limit;
    struct query s = {q, row, arg, q->after_id, q->before_id ? q->before_id : UINT64_MAX, limit};
    int rc;
    if (s.above >= s.below - 1) // nothing between, and no overflow below
        return 0;
    if (newest_first) {
        query_ring(db, &s, true);
        rc = query_disk(db, &s, true);
    } else {
        rc = query_disk(db, &s, false);
        if (!rc)
            query_ring(db, &s, false);
    }
    return rc ? rc : limit - s.left;
}

// --- opening ---

static uint64_t id_from_clock(void)
{
    int64_t s = wall_now_ns() / MONO_S - CLOCK_EPOCH_S;
    return s > 0 ? (uint64_t)s * DB_ID_RANGE : 0;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int db_ring_open(struct db *db, bool new_after_damage, int *ret_write_error, struct err *e)
{
    struct db_ring *g = &db->ring;
    int64_t last = 0, reserved = 0;
    int rc = db_get_int(db->w, "SELECT max(id) FROM event WHERE id < 1 << 60", &last);
    if (!rc)
        rc =
            db_get_int(db->w, "SELECT last FROM reserved WHERE name = 'event' AND last < 1 << 60", &reserved);
    if (rc)
        return err_set(e, db_errno(db->w, rc), db->path, "cannot read the events: %s", sqlite3_errmsg(db->w));
    uint64_t used = max_u64(last > 0 ? (uint64_t)last : 0, reserved > 0 ? (uint64_t)reserved : 0);
    if (new_after_damage)
        used = max_u64(used, id_from_clock());
    rc = db_begin(db);
    if (!rc)
        rc = reserve(db, used + DB_ID_RANGE);
    rc = db_commit(db, rc);
    *ret_write_error = db_errno(db->w, rc);
    if (rc) // going on: the disk may heal, and the LIDs are readable
        used = max_u64(used, id_from_clock());
    g->slot = xcalloc(DB_RING_MAX, sizeof(struct db_event_rec *));
    g->reserved = rc ? used : used + DB_ID_RANGE;
    g->durable = used;
    g->first = g->next = used + 1;
    return 0;
}

void db_ring_done(struct db *db)
{
    struct db_ring *g = &db->ring;
    for (uint64_t id = g->first; g->slot && id < g->next; id++)
        free(*ring_at(g, id));
    free(g->slot);
}
