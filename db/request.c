// SPDX-License-Identifier: Apache-2.0
// LIDs and blobs: requests made on the loop, their SQL on the writer's side, completions back on the loop,
// and the blocking reads.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

// --- lists ---

void db_req_list_init(struct db_req_list *l)
{
    *l = (struct db_req_list){.tail = &l->head};
}

size_t db_req_bytes(const struct db_req *r)
{
    size_t each = r->lid ? sizeof(*r->lid) : r->group ? sizeof(*r->group) : 1;
    return sizeof(*r) + r->n * each + DB_FABRIC_MAX + db_alarm_bytes(r);
}

void db_req_list_add(struct db_req_list *l, struct db_req *r)
{
    r->next = NULL;
    *l->tail = r;
    l->tail = &r->next;
    l->n++;
    l->bytes += db_req_bytes(r);
}

void db_req_free(struct db_req *r)
{
    free(r->fabric);
    free(r->name);
    free(r->lid);
    free(r->group);
    free(r->data);
    db_alarm_free(r->alarm);
    db_silence_free(r->silence);
    free(r);
}

// --- completions ---

static struct db_completion *completion_new(struct db *db, db_done_fn *done, void *arg)
{
    if (!done)
        return NULL;
    struct db_completion *c = xcalloc(1, sizeof(*c));
    c->done = done;
    c->arg = arg;
    c->prev = db->outstanding.prev;
    c->next = &db->outstanding;
    c->prev->next = c->next->prev = c;
    loop_hold(db->loop);
    db->asked++;
    if (db->in_order)
        loop_post(db->loop, &db->settle);
    return c;
}

void db_tell(struct db *db, struct db_req *r, int status)
{
    struct db_completion *c = r->c;
    if (!c)
        return;
    r->c = NULL;
    pthread_mutex_lock(&db->mu);
    c->status = status;
    *db->ready_tail = c;
    db->ready_tail = &c->next_ready;
    db->told++;
    pthread_cond_signal(&db->tell);
    pthread_mutex_unlock(&db->mu);
    loop_waker_signal(db->waker);
}

void db_on_own_event(struct db *db, void (*fn)(void *arg, uint64_t id), void *arg)
{
    db->own_event = fn;
    db->own_event_arg = arg;
}

static void add_own_event(struct db *db, const char *kind, const char *text)
{
    if (db->closing)
        return;
    uint64_t id = db_event_add(
        db,
        &(struct db_event){
            .wall_ns = wall_now_ns(), .kind = kind, .severity = "error", .subject = "meta.db", .text = text});
    if (db->own_event)
        db->own_event(db->own_event_arg, id);
}

static void log_notes(struct db *db)
{
    char text[sizeof(db->health_text)];
    pthread_mutex_lock(&db->mu);
    bool failed = db->note_failed, recovered = db->note_recovered, anew = db->note_anew;
    char anew_text[sizeof(db->anew_text)];
    unsigned long long events = db->note_lost_events, requests = db->note_lost_requests;
    memcpy(text, db->health_text, sizeof(text));
    memcpy(anew_text, db->anew_text, sizeof(anew_text));
    db->note_failed = db->note_recovered = db->note_anew = false;
    db->note_lost_events = db->note_lost_requests = 0;
    pthread_mutex_unlock(&db->mu);
    if (failed)
        log_error("db-write-failed", "path=%s reason=\"%s\"", db->path, text);
    if (anew) {
        log_error("db-written-anew", "path=%s text=\"%s\"", db->path, anew_text);
        add_own_event(db, "database-written-anew", anew_text);
    }
    if (events || requests)
        log_error("db-write-lost", "path=%s events=%llu requests=%llu", db->path, events, requests);
    if (recovered)
        log_notice("db-write-recovered", "path=%s", db->path);
}

void db_deliver(struct db *db)
{
    log_notes(db);
    pthread_mutex_lock(&db->mu);
    struct db_completion *c = db->ready;
    db->ready = NULL;
    db->ready_tail = &db->ready;
    pthread_mutex_unlock(&db->mu);
    while (c) {
        struct db_completion *next = c->next_ready;
        c->prev->next = c->next;
        c->next->prev = c->prev;
        if (c->done)
            c->done(c->arg, c->status);
        loop_release(db->loop);
        free(c);
        c = next;
    }
}

void db_settle(void *arg)
{
    struct db *db = arg;
    pthread_mutex_lock(&db->mu);
    while (db->told < db->asked)
        pthread_cond_wait(&db->tell, &db->mu);
    pthread_mutex_unlock(&db->mu);
    db_deliver(db);
}

void db_in_order(struct db *db)
{
    db->in_order = true;
}

void db_cancel(struct db *db, const void *arg)
{
    for (struct db_completion *c = db->outstanding.next; c != &db->outstanding; c = c->next) {
        if (c->arg == arg)
            c->done = NULL;
    }
}

// --- making requests ---

struct db_req *db_req_new(struct db *db, enum db_kind kind, const char *fabric, db_done_fn *done, void *arg)
{
    struct db_req *r = xcalloc(1, sizeof(*r));
    r->kind = kind;
    r->fabric = strndup(fabric, DB_FABRIC_MAX + 1);
    if (!r->fabric)
        abort();
    r->c = completion_new(db, done, arg);
    return r;
}

static void refuse(struct db *db, struct db_req *r, int status)
{
    // Without done() nobody hears of it otherwise.
    if (!r->c)
        log_error("db-request-refused", "fabric=%s name=%s items=%zu error=\"%s\"", r->fabric,
                  r->name ? r->name : "", r->n, strerror(-status));
    db_tell(db, r, status);
    db_req_free(r);
}

static void submit(struct db *db, struct db_req *r)
{
    if (db->closing) {
        refuse(db, r, -ESHUTDOWN);
        return;
    }
    pthread_mutex_lock(&db->mu);
    bool full = db->queue.n >= DB_QUEUE_MAX || db->queue.bytes + db_req_bytes(r) > DB_QUEUE_BYTES;
    if (!full) {
        db->poke = db->poke || r->c;
        db_req_list_add(&db->queue, r);
        pthread_cond_signal(&db->wake);
    }
    pthread_mutex_unlock(&db->mu);
    if (full)
        refuse(db, r, -ENOBUFS);
}

void db_req_submit(struct db *db, struct db_req *r, int status)
{
    if (status != 0)
        refuse(db, r, status);
    else
        submit(db, r);
}

static bool valid_lid(uint64_t guid, int64_t lid, int64_t lmc)
{
    return guid && lmc >= 0 && lmc <= 7 && lid >= 1 && lid + (1 << lmc) - 1 <= DB_LID_MAX &&
           (lid & ((1 << lmc) - 1)) == 0;
}

int db_req_check(const char *fabric, size_t n)
{
    if (strnlen(fabric, DB_FABRIC_MAX + 1) > DB_FABRIC_MAX)
        return -ENAMETOOLONG;
    return n > DB_LIDS_MAX ? -E2BIG : 0;
}

static int check_lids(const char *fabric, const struct db_lid *item, size_t n)
{
    int rc = db_req_check(fabric, n);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (!valid_lid(item[i].port_guid, item[i].lid, item[i].lmc))
            return -EINVAL;
    }
    return 0;
}

void db_lids_put(struct db *db, const char *fabric, const struct db_lid *item, size_t n, db_done_fn *done,
                 void *arg)
{
    struct db_req *r = db_req_new(db, DB_LIDS_PUT, fabric, done, arg);
    int rc = check_lids(fabric, item, n);
    if (rc) {
        refuse(db, r, rc);
        return;
    }
    r->n = n;
    r->lid = xcalloc(n ? n : 1, sizeof(*r->lid));
    if (n)
        memcpy(r->lid, item, n * sizeof(*item));
    submit(db, r);
}

void db_blob_put(struct db *db, const char *fabric, const char *name, const void *p, size_t n,
                 db_done_fn *done, void *arg)
{
    struct db_req *r = db_req_new(db, DB_BLOB_PUT, fabric, done, arg);
    bool long_name =
        strnlen(fabric, DB_FABRIC_MAX + 1) > DB_FABRIC_MAX || strnlen(name, DB_NAME_MAX + 1) > DB_NAME_MAX;
    if (long_name || n > DB_BLOB_MAX) {
        refuse(db, r, long_name ? -ENAMETOOLONG : -E2BIG);
        return;
    }
    r->name = xstrdup(name);
    if (p) {
        r->n = n;
        r->data = xmalloc(n ? n : 1);
        memcpy(r->data, p, n);
    }
    submit(db, r);
}

// --- the writer's side ---

static int step_lid(struct db *db, enum db_stmt which, const char *fabric, const struct db_lid *l)
{
    sqlite3_stmt *st = db->st[which];
    sqlite3_bind_text(st, 1, fabric, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, (int64_t)l->port_guid);
    sqlite3_bind_int(st, 3, l->lid);
    if (sqlite3_bind_parameter_count(st) == 4)
        sqlite3_bind_int(st, 4, l->lmc);
    return db_step(st);
}

static int put_lid(struct db *db, const char *fabric, const struct db_lid *l)
{
    int rc = step_lid(db, DB_ST_LID_STEAL, fabric, l);
    if (!rc)
        rc = step_lid(db, DB_ST_LID_STEAL_AROUND, fabric, l);
    return rc ? rc : step_lid(db, DB_ST_LID_PUT, fabric, l);
}

static int put_blob(struct db *db, const struct db_req *r)
{
    sqlite3_stmt *st = db->st[r->data ? DB_ST_BLOB_PUT : DB_ST_BLOB_REMOVE];
    sqlite3_bind_text(st, 1, r->fabric, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, r->name, -1, SQLITE_STATIC);
    if (r->data)
        sqlite3_bind_blob64(st, 3, r->data, r->n, SQLITE_STATIC);
    return db_step(st);
}

int db_req_apply(struct db *db, const struct db_req *r)
{
    int rc = 0;
    switch (r->kind) {
    case DB_LIDS_PUT:
        for (size_t i = 0; i < r->n && !rc; i++)
            rc = put_lid(db, r->fabric, &r->lid[i]);
        break;
    case DB_BLOB_PUT:
        rc = put_blob(db, r);
        break;
    case DB_GROUPS_PUT:
    case DB_GROUPS_FORGET:
        rc = db_group_apply(db, r);
        break;
    case DB_ALARM_PUT:
    case DB_ALARM_FORGET:
    case DB_SILENCE_PUT:
    case DB_SILENCE_FORGET:
    case DB_ALARM_RESERVE:
        rc = db_alarm_apply(db, r);
        break;
    }
    return rc;
}

// --- blocking reads on the loop ---

// A row that a person or a fault wrote: what is not a LID is left out.
static bool lid_row(sqlite3_stmt *st, struct db_lid *ret)
{
    int64_t lid = sqlite3_column_int64(st, 1), lmc = sqlite3_column_int64(st, 2);
    ret->port_guid = (uint64_t)sqlite3_column_int64(st, 0);
    if (!valid_lid(ret->port_guid, lid, lmc))
        return false;
    ret->lid = (uint16_t)lid;
    ret->lmc = (uint8_t)lmc;
    return true;
}

static int read_lids(sqlite3_stmt *st, const char *fabric, struct db_lid **list, size_t *n, size_t *bad)
{
    size_t cap = 0;
    int rc;
    sqlite3_bind_text(st, 1, fabric, -1, SQLITE_STATIC);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (*n == cap) {
            cap = cap ? cap * 2 : 256;
            *list = xreallocarray(*list, cap, sizeof(**list));
        }
        if (lid_row(st, &(*list)[*n]))
            (*n)++;
        else
            (*bad)++;
    }
    return rc == SQLITE_DONE ? 0 : rc;
}

long db_lids_load(struct db *db, const char *fabric, struct db_lid **ret)
{
    struct db_lid *list = NULL;
    size_t n = 0, bad = 0;
    sqlite3_stmt *st = NULL;
    db_read_lock(db);
    int rc = sqlite3_prepare_v2(db->r, "SELECT guid, lid, lmc FROM lid WHERE fabric = ?1 ORDER BY lid", -1,
                                &st, NULL);
    if (rc == SQLITE_OK)
        rc = read_lids(st, fabric, &list, &n, &bad);
    int err = db_errno(db->r, rc);
    sqlite3_finalize(st);
    db_read_unlock(db);
    if (bad)
        log_warning("db-bad-rows", "path=%s table=lid fabric=%s rows=%zu ignored", db->path, fabric, bad);
    if (err) {
        free(list);
        return err;
    }
    *ret = list ? list : xcalloc(1, sizeof(*list));
    return (long)n;
}

int db_blob_get(struct db *db, const char *fabric, const char *name, void **ret, size_t *ret_n)
{
    sqlite3_stmt *st = NULL;
    int err = -ENOENT;
    db_read_lock(db);
    int rc =
        sqlite3_prepare_v2(db->r, "SELECT data FROM blob WHERE fabric = ?1 AND name = ?2", -1, &st, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(st, 1, fabric, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_ROW) {
        const void *p = sqlite3_column_blob(st, 0);
        *ret_n = p ? (size_t)sqlite3_column_bytes(st, 0) : 0;
        *ret = xmalloc(*ret_n + 1);
        if (p)
            memcpy(*ret, p, *ret_n);
        ((char *)*ret)[*ret_n] = 0;
        err = 0;
    } else if (rc != SQLITE_DONE) {
        err = db_errno(db->r, rc);
    }
    sqlite3_finalize(st);
    db_read_unlock(db);
    return err;
}
