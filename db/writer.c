// SPDX-License-Identifier: Apache-2.0
// The writer thread. It sleeps until there is work, then makes a round: all requests in their order
// (neighbours of one class share a transaction), then the events that are due, then a little of the
// retention. While writing fails it makes a round every second, and at once for each request whose caller
// waits: the caller learns the status, the request itself is kept and tried again before anything later of
// its class. Classes (LIDs, blobs, alarms) do not wait for each other then: a blob too big for what is left
// of the disk must not stop the LIDs. Each round begins with a look whether meta.db is still there (moved.c).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "db/db_priv.h"
#include "lib/thread.h"

enum req_class {
    CLASS_LIDS,
    CLASS_BLOBS,
    CLASS_ALARMS,
    CLASS_N,
};

static enum req_class class_of(const struct db_req *r)
{
    if (r->kind == DB_BLOB_PUT)
        return CLASS_BLOBS;
    return r->kind >= DB_ALARM_PUT ? CLASS_ALARMS : CLASS_LIDS;
}

// --- requests ---

static size_t run_length(const struct db_req *r, size_t limit)
{
    enum req_class class = class_of(r);
    size_t n = 0;
    for (; r && n < limit && class_of(r) == class; r = r->next)
        n++;
    return n;
}

static int write_run(struct db *db, const struct db_req *r, size_t n)
{
    int rc = db_begin(db);
    for (size_t i = 0; i < n && !rc; i++, r = r->next)
        rc = db_req_apply(db, r);
    return db_commit(db, rc);
}

// Takes n requests out of kept at *at, telling each.
static void remove_run(struct db *db, struct db_req **at, size_t n, int status)
{
    for (size_t i = 0; i < n; i++) {
        struct db_req *r = *at;
        *at = r->next;
        db->kept.n--;
        db->kept.bytes -= db_req_bytes(r);
        db_tell(db, r, status);
        db_req_free(r);
    }
    if (!*at)
        db->kept.tail = at;
}

static struct db_req **tell_run(struct db *db, struct db_req **at, size_t n, int status)
{
    for (size_t i = 0; i < n; i++, at = &(*at)->next)
        db_tell(db, *at, status);
    return at;
}

static void count_lost_request(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    db->note_lost_requests++;
    pthread_mutex_unlock(&db->mu);
}

// Before the callers are told: who hears of a failure finds it in db_health().
static void fail_now(struct db *db, int err)
{
    pthread_mutex_lock(&db->mu);
    if (!db->health)
        db_set_health(db, err);
    pthread_mutex_unlock(&db->mu);
}

// gone: why nothing may be written at all; 0.
static int write_requests(struct db *db, int gone)
{
    int failed[CLASS_N] = {gone, gone, gone};
    size_t limit = DB_BATCH_MAX;
    struct db_req **at = &db->kept.head;
    while (*at) {
        enum req_class class = class_of(*at);
        size_t n = run_length(*at, limit);
        int rc = failed[class] ? 0 : write_run(db, *at, n);
        int err = failed[class] ? failed[class] : db_errno(db->w, rc);
        if (!err) {
            remove_run(db, at, n, 0);
        } else if (db_rc_permanent(rc) && n > 1) {
            limit = 1; // find the one at fault: the others are good
        } else if (db_rc_permanent(rc)) {
            count_lost_request(db);
            remove_run(db, at, n, err);
        } else {
            failed[class] = err;
            fail_now(db, err);
            at = tell_run(db, at, n, err);
        }
    }
    if (db->kept.n > DB_KEPT_COMPACT || db->kept.bytes > DB_KEPT_BYTES)
        db_backlog_compact(&db->kept);
    for (int i = 0; i < CLASS_N; i++)
        if (failed[i])
            return failed[i];
    return 0;
}

// --- health ---

void db_set_health(struct db *db, int err)
{
    struct db_ring *g = &db->ring;
    if (err) {
        snprintf(db->health_text, sizeof(db->health_text), "%.*s", (int)sizeof(db->health_text) - 1,
                 db->fail_text);
        db->retry_ns = mono_now().ns + DB_RETRY_NS;
    }
    bool changed = !err != !db->health;
    db->health = err;
    if (!err && g->lost) {
        db->note_lost_events += g->lost;
        g->lost = 0;
    }
    if (changed) {
        db->note_failed = db->note_failed || err;
        db->note_recovered = db->note_recovered || !err;
    }
    if (changed || db->note_lost_events || db->note_lost_requests)
        loop_waker_signal(db->waker);
}

// --- the thread ---

struct round {
    uint64_t flush;
    bool stop, events;
};

static bool prune_active(const struct db *db)
{
    return db->prune[0].active || db->prune[1].active;
}

static bool events_due(const struct db *db, int64_t now)
{
    uint64_t n = db_ring_pending(db);
    return n && (n >= DB_EVENT_BATCH || now >= db->ring.due_ns || prune_active(db) || db->stop ||
                 db->flush_asked != db->flush_done);
}

// When to start a round: now, or at *ret_ns. With mu held.
static bool due(const struct db *db, int64_t now, int64_t *ret_ns)
{
    *ret_ns = db->look_ns;
    if (db->stop || db->flush_asked != db->flush_done || now >= db->look_ns)
        return true;
    if (db->health) {
        *ret_ns = db->retry_ns < *ret_ns ? db->retry_ns : *ret_ns;
        return db->poke || now >= db->retry_ns;
    }
    if (db->queue.n || prune_active(db) || events_due(db, now))
        return true;
    if (db_ring_pending(db) && db->ring.due_ns < *ret_ns)
        *ret_ns = db->ring.due_ns;
    return false;
}

static void wait_for_work(struct db *db)
{
    int64_t at;
    while (!due(db, mono_now().ns, &at)) {
        struct timespec ts = {.tv_sec = at / MONO_S, .tv_nsec = at % MONO_S};
        pthread_cond_timedwait(&db->wake, &db->mu, &ts);
    }
}

static void take_queue(struct db *db)
{
    if (!db->queue.head)
        return;
    *db->kept.tail = db->queue.head;
    db->kept.tail = db->queue.tail;
    db->kept.n += db->queue.n;
    db->kept.bytes += db->queue.bytes;
    db_req_list_init(&db->queue);
}

static bool queue_waits(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    bool yes = db->queue.n > 0;
    pthread_mutex_unlock(&db->mu);
    return yes;
}

static uint64_t pending_events(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    uint64_t n = db_ring_pending(db);
    pthread_mutex_unlock(&db->mu);
    return n;
}

// Batch after batch, but a request that came meanwhile goes first.
static int write_events(struct db *db)
{
    int rc = 0;
    while (!rc && pending_events(db) && !queue_waits(db))
        rc = db_event_write(db);
    return db_errno(db->w, rc);
}

static int prune(struct db *db)
{
    return pending_events(db) || queue_waits(db) ? 0 : db_errno(db->w, db_event_prune_chunk(db));
}

static int do_round(struct db *db, const struct round *r)
{
    int gone = db_moved_look(db);
    if (gone)
        fail_now(db, gone);
    int err = write_requests(db, gone);
    if (gone)
        return gone;
    int events = r->events ? write_events(db) : 0;
    if (!err)
        err = events;
    return err ? err : prune(db);
}

static void *writer_main(void *arg)
{
    struct db *db = arg;
    bool end = false;
    pthread_mutex_lock(&db->mu);
    while (!end) {
        wait_for_work(db);
        bool retry = db->health != 0;
        struct round r = {db->flush_asked, db->stop, retry || events_due(db, mono_now().ns)};
        take_queue(db);
        db->poke = false;
        db->look_ns = mono_now().ns + DB_LOOK_NS;
        pthread_mutex_unlock(&db->mu);
        int err = do_round(db, &r);
        pthread_mutex_lock(&db->mu);
        db_set_health(db, err);
        bool more = db->queue.n || db_ring_pending(db) || prune_active(db);
        if (err || !more) {
            db->flush_done = r.flush;
            pthread_cond_broadcast(&db->flushed);
        }
        end = r.stop && (err || !(db->queue.n || db_ring_pending(db)));
    }
    pthread_mutex_unlock(&db->mu);
    return NULL;
}

static void cond_init_monotonic(pthread_cond_t *c)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(c, &a);
    pthread_condattr_destroy(&a);
}

int db_writer_start(struct db *db, struct err *e)
{
    cond_init_monotonic(&db->wake);
    cond_init_monotonic(&db->flushed);
    int rc = thread_start(&db->thread, "weft-db", writer_main, db);
    if (rc)
        return err_set(e, rc, db->path, "cannot start the writer thread: %s", strerror(-rc));
    return 0;
}

void db_writer_stop(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    db->stop = true;
    pthread_cond_signal(&db->wake);
    pthread_mutex_unlock(&db->mu);
    pthread_join(db->thread, NULL);
    pthread_cond_destroy(&db->wake);
    pthread_cond_destroy(&db->flushed);
}

int db_flush(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    uint64_t ticket = ++db->flush_asked;
    pthread_cond_signal(&db->wake);
    while (db->flush_done < ticket)
        pthread_cond_wait(&db->flushed, &db->mu);
    int err = db->health;
    pthread_mutex_unlock(&db->mu);
    return err;
}

int db_health(const struct db *db, char *text, size_t size)
{
    struct db *d = (struct db *)db; // the lock is no part of the value
    pthread_mutex_lock(&d->mu);
    int err = d->health;
    if (size)
        snprintf(text, size, "%s", err ? d->health_text : "");
    pthread_mutex_unlock(&d->mu);
    return err;
}
