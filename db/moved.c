// SPDX-License-Identifier: Apache-2.0
// meta.db that somebody has deleted, moved away or put another file in place of while weftd runs. What is
// open is still whole, but nobody finds it again after the end: nothing may be said to be durable then. The
// writer looks before each round and every few seconds; writes what the open file holds as a copy beside it,
// checks it, and puts it in the old place in one step. A file that stood there is kept under another name
// (meta.db.replaced-<time>, which nothing else has), with its log or journal, for whoever has put it there.
// Until that has been done every write fails and is kept, as with a full disk, and is tried again each
// second. What is open afterwards is the copy, which may be taken away like the first; the loop's connection
// follows with its next read.
//
// The same when the log (meta.db-wal) is taken away: commits would go into it. A lock that is taken away is
// made and taken again: a second weftd would not see the first. Another weftd that has the new lock is left
// alone: nothing of what is there is touched then, and nothing is durable.
//
// Not handled: an index (meta.db-shm) that is cut short in place. SQLite has it mapped, and dies of a part
// that is not there any more; what was said to be durable is in the file and the log, and is there after a
// restart.
//
// A crash in between: the new file is the whole of the old one with its log; where that log still lies beside
// it, replaying it changes nothing.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/db_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

static struct db_place place_of(const char *path, const char *suffix)
{
    struct stat st;
    struct db_place p = {0};
    char *name = xasprintf("%s%s", path, suffix);
    if (lstat(name, &st) == 0)
        p = (struct db_place){st.st_dev, st.st_ino};
    free(name);
    return p;
}

static bool same(struct db_place a, struct db_place b)
{
    return a.dev == b.dev && a.ino == b.ino;
}

static bool is_there(struct db_place p)
{
    return p.ino != 0;
}

void db_moved_begin(struct db *db)
{
    db->at = place_of(db->path, "");
    db->wal_at = place_of(db->path, "-wal");
}

// --- what is wrong ---

static bool lock_is_ours(const struct db *db)
{
    struct stat st;
    char *path = xasprintf("%s/weftd.lock", db->dir);
    struct db_place p = place_of(path, "");
    free(path);
    return fstat(db->lock_fd, &st) == 0 && same(p, (struct db_place){st.st_dev, st.st_ino});
}

// NULL: all is in its place.
static const char *what_is_wrong(struct db *db)
{
    struct db_place now = place_of(db->path, ""), wal = place_of(db->path, "-wal");
    if (!is_there(now))
        return "has been deleted or moved away";
    if (!same(now, db->at))
        return "has been replaced by another file";
    // The log comes with the first write.
    if (!is_there(db->wal_at))
        db->wal_at = wal;
    if (!same(wal, db->wal_at))
        return is_there(wal) ? "has another log (meta.db-wal) beside it now"
                             : "has lost its log (meta.db-wal)";
    return lock_is_ours(db) ? NULL : "has lost its lock (weftd.lock)";
}

// --- the copy ---

static int fail(struct db *db, int err, const char *fmt, const char *cause)
{
    char text[200];
    snprintf(text, sizeof(text), fmt, cause);
    snprintf(db->fail_text, sizeof(db->fail_text),
             "meta.db %.60s; %.140s; tried again every second: do not stop weftd before, nobody else has it",
             db->gone, text);
    return err;
}

static int copy_pages(struct db *db, const char *path)
{
    sqlite3 *c = NULL;
    int rc =
        sqlite3_open_v2(path, &c, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        rc = db_exec(c, "PRAGMA synchronous = FULL");
        sqlite3_backup *b = rc ? NULL : sqlite3_backup_init(c, "main", db->w, "main");
        if (b) {
            rc = sqlite3_backup_step(b, -1);
            (void)sqlite3_backup_finish(b);
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        } else if (!rc) {
            rc = sqlite3_errcode(c);
        }
    }
    int64_t objects = 0;
    if (!rc)
        rc = db_get_int(c, "SELECT count(*) FROM sqlite_schema", &objects);
    char why[200] = "";
    if (!rc)
        rc = db_quick_check(c, why, sizeof(why));
    int err = rc ? fail(db, db_errno(c, rc), "what it holds cannot be written anew: %s",
                        why[0] ? why : sqlite3_errmsg(c ? c : db->w))
                 : 0;
    sqlite3_close(c);
    return err;
}

static void remove_all(const char *path)
{
    static const char *const suffix[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        char *name = xasprintf("%s%s", path, suffix[i]);
        (void)unlink(name);
        free(name);
    }
}

// --- in its place ---

// A log or a journal that is not ours: of the file that stands there, or of one that stood there. SQLite
// would play it into the copy. An empty one is nothing.
static bool is_foreign(const struct db *db, const char *suffix)
{
    struct stat st;
    char *name = xasprintf("%s%s", db->path, suffix);
    bool is =
        lstat(name, &st) == 0 && st.st_size > 0 && !same((struct db_place){st.st_dev, st.st_ino}, db->wal_at);
    free(name);
    return is;
}

// The file itself stays under its name too, until the copy takes that: so there is always one.
static int keep_file(struct db *db, const char *suffix, const char *aside)
{
    int rc = 0;
    char *from = xasprintf("%s%s", db->path, suffix), *to = xasprintf("%s%s", aside, suffix);
    if (link(from, to) < 0 && (errno == EEXIST || rename(from, to) < 0))
        rc = fail(db, -errno, "the file there cannot be renamed: %s", strerror(errno));
    else if (suffix[0])
        (void)unlink(from);
    if (!rc && (!suffix[0] || !db->kept_whole)) {
        snprintf(db->kept_as, sizeof(db->kept_as), "%s", to);
        db->kept_num++;
        db->kept_whole = !suffix[0];
    }
    free(from);
    free(to);
    return rc;
}

static void forget_kept(struct db *db)
{
    db->kept_as[0] = 0;
    db->kept_num = 0;
    db->kept_whole = false;
}

// The file that stands there, and what lies beside it and is not ours, under another name.
static int keep_other(struct db *db, struct db_place other)
{
    // A try before this one may have kept it.
    bool kept = is_there(other) && db->kept_whole && same(place_of(db->kept_as, ""), other);
    char *aside = kept ? xstrdup(db->kept_as) : db_free_name(db, "replaced");
    int rc = 0;
    if (is_there(other) && !kept) {
        db->kept_whole = false; // of another one
        rc = keep_file(db, "", aside);
    }
    for (int i = 0; !rc && i < 2; i++) {
        const char *suffix = i ? "-journal" : "-wal";
        if (!is_foreign(db, suffix))
            continue;
        char *to = kept ? db_free_name(db, "replaced") : xstrdup(aside); // its own may be kept already
        rc = keep_file(db, suffix, to);
        free(to);
    }
    free(aside);
    return rc;
}

static int put_copy(struct db *db, const char *copy)
{
    struct db_place now = place_of(db->path, "");
    bool other = is_there(now) && !same(now, db->at) && !same(now, db->copy_at);
    int rc = keep_other(db, other ? now : (struct db_place){0});
    // Held, so that no file of somebody else gets its number.
    int fd = rc ? -1 : open(copy, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (!rc && rename(copy, db->path) < 0)
        rc = fail(db, -errno, "the copy cannot be put there: %s", strerror(errno));
    int was = rc ? fd : db->copy_fd;
    if (was >= 0)
        close(was);
    if (rc)
        return rc;
    db->copy_fd = fd;
    db->copy_at = fd >= 0 ? place_of(db->path, "") : (struct db_place){0};
    db_sync_dir(db->dir);
    char *wal = xasprintf("%s-wal", db->path), *shm = xasprintf("%s-shm", db->path);
    (void)unlink(wal);
    (void)unlink(shm);
    free(wal);
    free(shm);
    return 0;
}

static int use_copy(struct db *db)
{
    sqlite3 *was = db->w, *now = NULL;
    sqlite3_stmt *st[DB_ST_N];
    int rc = db_connect(db->path, db->shared, &now);
    memcpy(st, db->st, sizeof(st));
    if (!rc) {
        db->w = now;
        memset(db->st, 0, sizeof(db->st));
        rc = db_prepare_all(db);
    }
    if (rc) {
        int err = fail(db, db_errno(now, rc), "the copy cannot be opened: %s", sqlite3_errmsg(now));
        for (int i = 0; i < DB_ST_N && db->w == now; i++)
            sqlite3_finalize(db->st[i]);
        db->w = was;
        memcpy(db->st, st, sizeof(st));
        sqlite3_close(now);
        return err;
    }
    for (int i = 0; i < DB_ST_N; i++)
        sqlite3_finalize(st[i]);
    if (db->shared)
        db->r = now;
    sqlite3_close(was);
    db_moved_begin(db);
    pthread_mutex_lock(&db->mu);
    db->reopen = !db->shared;
    db->reopen_at = db->at;
    pthread_mutex_unlock(&db->mu);
    return 0;
}

static int lock_anew(struct db *db)
{
    struct err e = {0};
    int rc = lock_is_ours(db) ? 0 : db_take_lock(db, &e);
    if (rc)
        snprintf(db->fail_text, sizeof(db->fail_text),
                 "weftd.lock in the state directory was taken away, and it cannot be locked again: %.200s",
                 e.text);
    return rc;
}

static int write_anew(struct db *db)
{
    int rc = lock_anew(db);
    if (rc)
        return rc; // all here may be another weftd's
    char *copy = xasprintf("%s.new", db->path);
    remove_all(copy);
    rc = copy_pages(db, copy);
    if (!rc)
        rc = put_copy(db, copy);
    if (!rc)
        rc = use_copy(db);
    remove_all(copy);
    free(copy);
    return rc;
}

static void tell_anew(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    db->note_anew = true;
    db->anew_ns = mono_now().ns;
    snprintf(db->anew_text, sizeof(db->anew_text),
             "meta.db %s while weftd ran: what weftd holds has been written there again, nothing is "
             "lost%s%s%s%s",
             db->gone, db->kept_num ? "; what stood there is kept as " : "", db->kept_as,
             db->kept_num > 1 ? " (and what stood there before, beside it: meta.db.replaced-*)" : "",
             db->kept_whole ? ": to use it, stop weftd and move it to meta.db" : "");
    forget_kept(db);
    pthread_mutex_unlock(&db->mu);
    loop_waker_signal(db->waker);
}

int db_moved_look(struct db *db)
{
    const char *wrong = what_is_wrong(db);
    if (!wrong) {
        if (db->kept_num) // somebody has put ours back meanwhile
            log_notice("db-kept", "path=%s as=%s files=%u", db->path, db->kept_as, db->kept_num);
        forget_kept(db);
        return 0;
    }
    if (same(place_of(db->path, ""), db->at) && same(place_of(db->path, "-wal"), db->wal_at))
        return lock_anew(db);
    snprintf(db->gone, sizeof(db->gone), "%s", wrong);
    if (db->shared)
        pthread_mutex_lock(&db->conn_mu);
    int rc = write_anew(db);
    if (db->shared)
        pthread_mutex_unlock(&db->conn_mu);
    if (rc)
        return rc < 0 ? rc : -EIO;
    tell_anew(db);
    return 0;
}

// Not what somebody has put there since: the writer has not seen it yet.
static int connect_reader(struct db *db, struct db_place at, sqlite3 **ret)
{
    int rc = same(place_of(db->path, ""), at) ? db_connect(db->path, false, ret) : SQLITE_CANTOPEN;
    return rc ? rc : db_exec(*ret, "PRAGMA query_only = ON; SELECT count(*) FROM sqlite_schema");
}

void db_moved_reopen(struct db *db)
{
    pthread_mutex_lock(&db->mu);
    bool reopen = db->reopen;
    struct db_place at = db->reopen_at;
    db->reopen = false; // what moves after this is seen by the next read
    pthread_mutex_unlock(&db->mu);
    if (!reopen)
        return;
    sqlite3 *now = NULL;
    if (connect_reader(db, at, &now)) { // the old one has all but the newest; tried again with the next read
        sqlite3_close(now);
        pthread_mutex_lock(&db->mu);
        db->reopen = true;
        pthread_mutex_unlock(&db->mu);
        return;
    }
    sqlite3_close(db->r);
    db->r = now;
}

int64_t db_written_anew(const struct db *db, char *text, size_t size)
{
    struct db *d = (struct db *)db; // the lock is no part of the value
    pthread_mutex_lock(&d->mu);
    int64_t at = d->anew_ns;
    if (size)
        snprintf(text, size, "%s", d->anew_text);
    pthread_mutex_unlock(&d->mu);
    return at;
}
