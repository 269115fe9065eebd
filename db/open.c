// SPDX-License-Identifier: Apache-2.0
// Opening and closing: the directory, the lock, what is wrong with the file and what to do about it.
//
// Two connections as a rule: the writer's, and one that reads on the loop without waiting for the writer
// (WAL). WAL between connections needs shared memory in a file of its own, which a full disk or an odd file
// system refuses; then both threads use one connection in exclusive mode, which needs none, under conn_mu:
// with a full disk weftd still starts and knows its LIDs.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/db_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

enum verdict {
    GOOD,
    DAMAGED,  // set it aside
    UNUSABLE, // *e says why
};

// --- directory and lock ---

static int make_dir(const char *dir, struct err *e)
{
    struct stat st;
    if (mkdir(dir, 0700) == 0 || (errno == EEXIST && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    int rc = -errno;
    if (rc == -EEXIST)
        return err_set(e, -ENOTDIR, dir, "the state directory is not a directory; give another with --state");
    return err_set(e, rc, dir, "cannot make the state directory: %s; make it or give another with --state",
                   strerror(-rc));
}

static int locked_by_other(int fd, const char *dir, struct err *e)
{
    char pid[32];
    ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);
    pid[n > 0 ? n : 0] = 0;
    pid[strspn(pid, "0123456789")] = 0;
    return err_set(e, -EBUSY, dir,
                   "another weftd (pid %s) uses this state directory; stop it or give another with --state",
                   pid[0] ? pid : "unknown");
}

int db_take_lock(struct db *db, struct err *e)
{
    char *path = xasprintf("%s/weftd.lock", db->dir);
    int rc = 0, had = db->lock_fd;
    db->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (db->lock_fd < 0)
        rc = err_set(e, -errno, path,
                     "cannot write in the state directory: %s; run weftd as its owner or give another "
                     "with --state",
                     strerror(errno));
    else if (flock(db->lock_fd, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK ? locked_by_other(db->lock_fd, db->dir, e)
                                  : err_set(e, -errno, path, "cannot lock: %s", strerror(errno));
    free(path);
    if (rc) {
        if (db->lock_fd >= 0 && had >= 0)
            close(db->lock_fd);
        db->lock_fd = had >= 0 ? had : db->lock_fd;
        return rc;
    }
    if (had >= 0)
        close(had);
    char pid[32];
    int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    // Only information for the second one: the lock holds also when the disk is too full for it.
    if (ftruncate(db->lock_fd, 0) < 0 || pwrite(db->lock_fd, pid, (size_t)n, 0) != n)
        log_warning("db-lock-pid", "path=%s/weftd.lock error=\"%s\"", db->dir, strerror(errno));
    return 0;
}

// --- setting aside ---

static const char *const suffix[] = {"", "-wal", "-shm"};

void db_sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        if (fsync(fd) < 0)
            log_warning("db-sync-dir", "path=%s error=\"%s\"", dir, strerror(errno));
        close(fd);
    }
}

// Nor is there anything left that would be taken for its log.
static bool is_taken(const char *name)
{
    static const char *const of[] = {"", "-wal", "-shm", "-journal"};
    struct stat st;
    bool taken = false;
    for (size_t i = 0; !taken && i < sizeof(of) / sizeof(of[0]); i++) {
        char *one = xasprintf("%s%s", name, of[i]);
        taken = lstat(one, &st) == 0;
        free(one);
    }
    return taken;
}

char *db_free_name(const struct db *db, const char *what)
{
    char when[32];
    time_t now = (time_t)(wall_now_ns() / MONO_S);
    struct tm tm;
    strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    char *name = xasprintf("%s.%s-%s", db->path, what, when);
    for (int i = 1; is_taken(name); i++) {
        free(name);
        name = xasprintf("%s.%s-%s.%d", db->path, what, when, i);
    }
    return name;
}

static int set_aside(struct db *db, const char *why, struct db_open_report *rep, struct err *e)
{
    char *name = db_free_name(db, "damaged");
    int rc = 0;
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]) && !rc; i++) {
        char *from = xasprintf("%s%s", db->path, suffix[i]), *to = xasprintf("%s%s", name, suffix[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            rc = err_set(e, -errno, from, "damaged (%s), and cannot be renamed: %s; move it away", why,
                         strerror(errno));
        free(from);
        free(to);
    }
    if (!rc) {
        db_sync_dir(db->dir);
        rep->set_aside = true;
        snprintf(rep->set_aside_as, sizeof(rep->set_aside_as), "%s", name);
        log_error("db-set-aside",
                  "path=%s as=%s reason=\"%s\" action=\"a new one is begun; the fabric is read instead\"",
                  db->path, name, why);
    }
    free(name);
    return rc;
}

// --- a connection ---

static const char pragmas[] =
    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
    "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;"
    "PRAGMA journal_size_limit = 16777216;";

int db_connect(const char *path, bool exclusive, sqlite3 **ret)
{
    int rc = sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return *ret ? sqlite3_extended_errcode(*ret) : SQLITE_NOMEM;
    sqlite3_extended_result_codes(*ret, 1);
    sqlite3_busy_timeout(*ret, 5000);
    sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(*ret, SQLITE_LIMIT_LENGTH, DB_BLOB_MAX + (1 << 20));
    // First of all: what reads the file before it asks for the shared memory.
    rc = exclusive ? db_exec(*ret, "PRAGMA locking_mode = EXCLUSIVE") : 0;
    return rc ? rc : db_exec(*ret, pragmas);
}

// --- looking at what is there ---

struct found {
    int64_t application, version, objects;
};

static int look(sqlite3 *c, struct found *f)
{
    int rc = db_get_int(c, "PRAGMA application_id", &f->application);
    if (!rc)
        rc = db_get_int(c, "PRAGMA user_version", &f->version);
    return rc ? rc : db_get_int(c, "SELECT count(*) FROM sqlite_schema", &f->objects);
}

int db_quick_check(sqlite3 *c, char *why, size_t size)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(c, "PRAGMA quick_check(1)", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return sqlite3_extended_errcode(c);
    rc = sqlite3_step(st);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (text && strcmp(text, "ok") != 0) {
        const char *line = strrchr(text, '\n'); // behind a headline
        snprintf(why, size, "%s", line ? line + 1 : text);
        rc = SQLITE_CORRUPT;
    } else {
        rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sqlite3_extended_errcode(c);
    }
    sqlite3_finalize(st);
    return rc;
}

static enum verdict sql_verdict(struct db *db, int rc, const char *doing, char *why, size_t size,
                                struct err *e)
{
    if (!rc)
        return GOOD;
    if (db_rc_damage(rc)) {
        if (!why[0])
            snprintf(why, size, "%s", sqlite3_errmsg(db->w));
        return DAMAGED;
    }
    int code = db_errno(db->w, rc);
    err_set(e, code, db->path, "cannot %s: %s: %s", doing, sqlite3_errmsg(db->w), db_rc_text(code));
    return UNUSABLE;
}

static enum verdict too_new(struct db *db, const struct found *f, struct err *e)
{
    err_set(e, -EPROTONOSUPPORT, db->path,
            "schema version %lld, this weftd knows up to %d: a newer weftd wrote it; run that version, or "
            "move the file away "
            "to begin anew (LIDs are then read from the fabric)",
            (long long)f->version, db_schema_newest);
    return UNUSABLE;
}

static enum verdict judge(struct db *db, struct found *f, char *why, size_t size, struct err *e)
{
    enum verdict v = sql_verdict(db, look(db->w, f), "read", why, size, e);
    if (v == GOOD)
        v = sql_verdict(db, db_quick_check(db->w, why, size), "check", why, size, e);
    if (v != GOOD)
        return v;
    if (f->objects && f->application != DB_APPLICATION_ID) {
        snprintf(why, size, "a database, but not weft's (application_id %lld)", (long long)f->application);
        return DAMAGED;
    }
    if (f->version < 0 || (f->version == 0 && f->objects)) {
        snprintf(why, size, "schema version %lld with %lld objects", (long long)f->version,
                 (long long)f->objects);
        return DAMAGED;
    }
    return f->version > db_schema_newest ? too_new(db, f, e) : GOOD;
}

// --- opening ---

static void disconnect(struct db *db)
{
    for (int i = 0; i < DB_ST_N; i++) {
        sqlite3_finalize(db->st[i]);
        db->st[i] = NULL;
    }
    if (db->r && db->r != db->w)
        sqlite3_close(db->r);
    sqlite3_close(db->w);
    db->r = db->w = NULL;
}

static enum verdict use_schema(struct db *db, const struct found *f, struct db_open_report *rep, char *why,
                               size_t size, struct err *e)
{
    int rc = f->version == 0 ? db_exec(db->w, "PRAGMA auto_vacuum = INCREMENTAL") : 0;
    if (!rc)
        rc = db_exec(db->w, "PRAGMA journal_mode = WAL");
    if (!rc)
        rc = db_schema_migrate(db->w, (int)f->version);
    enum verdict v = sql_verdict(db, rc, "bring the schema up to date", why, size, e);
    if (v != GOOD)
        return v;
    rep->created = f->version == 0;
    rep->migrated_from = f->version < db_schema_newest ? (int)f->version : 0;
    rc = db_prepare_all(db);
    if (db_rc_permanent(rc)) { // a table or a column is missing
        snprintf(why, size, "%s", sqlite3_errmsg(db->w));
        return DAMAGED;
    }
    return sql_verdict(db, rc, "prepare", why, size, e);
}

// The file itself, before SQLite sees it: opening must not block, and a new one is ours alone.
static enum verdict check_file(struct db *db, char *why, size_t size, struct err *e)
{
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        struct stat st;
        char *path = xasprintf("%s%s", db->path, suffix[i]);
        bool odd = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
        free(path);
        if (odd) {
            snprintf(why, size, "meta.db%s is not a regular file", suffix[i]);
            return DAMAGED;
        }
    }
    int fd = open(db->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) {
        err_set(e, -errno, db->path, "cannot open for writing: %s", strerror(errno));
        return UNUSABLE;
    }
    struct stat st;
    bool stub = fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size < 512;
    close(fd);
    if (stub) { // SQLite may take it for empty and write over it
        snprintf(why, size, "only %lld bytes", (long long)st.st_size);
        return DAMAGED;
    }
    return GOOD;
}

static enum verdict try_open(struct db *db, bool exclusive, struct db_open_report *rep, char *why,
                             size_t size, struct err *e)
{
    struct found f = {0};
    why[0] = 0;
    enum verdict v = check_file(db, why, size, e);
    if (v == GOOD)
        v = sql_verdict(db, db_connect(db->path, exclusive, &db->w), "open", why, size, e);
    if (v == GOOD)
        v = judge(db, &f, why, size, e);
    if (v == GOOD)
        v = use_schema(db, &f, rep, why, size, e);
    if (v == GOOD && !exclusive) {
        int rc = db_connect(db->path, false, &db->r);
        if (!rc)
            rc = db_exec(db->r, "PRAGMA query_only = ON; SELECT count(*) FROM sqlite_schema");
        if (rc) {
            err_set(e, db_errno(db->r, rc), db->path, "cannot open for reading: %s", sqlite3_errmsg(db->r));
            v = UNUSABLE;
        }
    }
    db->shared = exclusive;
    if (exclusive)
        db->r = db->w;
    if (v != GOOD)
        disconnect(db);
    return v;
}

static bool may_lack_shared_memory(int code)
{
    return code == -ENOSPC || code == -EIO || code == -EBUSY || code == -EROFS;
}

static int open_file(struct db *db, struct db_open_report *rep, struct err *e)
{
    char why[200];
    struct err first = {0};
    for (int set_asides = 0;; set_asides++) {
        enum verdict v = try_open(db, false, rep, why, sizeof(why), &first);
        if (v == UNUSABLE && may_lack_shared_memory(first.code)) {
            v = try_open(db, true, rep, why, sizeof(why), &first);
            if (v == GOOD)
                log_warning("db-shared-connection",
                            "path=%s reason=\"no shared memory: disk full or unusual file system\"",
                            db->path);
        }
        if (v == GOOD)
            return 0;
        if (v == UNUSABLE)
            return err_set(e, first.code, first.where, "%s", first.text);
        if (set_asides)
            return err_set(e, -EIO, db->path, "the new file is damaged at once (%s); check the disk", why);
        int rc = set_aside(db, why, rep, e);
        if (rc)
            return rc;
    }
}

static void on_wake(void *arg)
{
    struct db *db = arg;
    if (!db->in_order)
        db_deliver(db);
}

static struct db *db_new(struct loop *l, const char *dir)
{
    struct db *db = xcalloc(1, sizeof(*db));
    db->loop = l;
    db->dir = xstrdup(dir);
    db->path = xasprintf("%s/meta.db", dir);
    db->lock_fd = db->copy_fd = -1;
    db->ready_tail = &db->ready;
    db->outstanding.next = db->outstanding.prev = &db->outstanding;
    db_req_list_init(&db->queue);
    db_req_list_init(&db->kept);
    pthread_mutex_init(&db->mu, NULL);
    pthread_mutex_init(&db->conn_mu, NULL);
    pthread_cond_init(&db->tell, NULL);
    loop_task_init(&db->settle, "db", db_settle, db);
    db->waker = loop_waker_new(l, "db", on_wake, db);
    return db;
}

static void free_requests(struct db_req_list *l)
{
    while (l->head) {
        struct db_req *r = l->head;
        l->head = r->next;
        db_req_free(r);
    }
}

static void db_free(struct db *db)
{
    disconnect(db);
    free_requests(&db->kept);
    free_requests(&db->queue);
    db_ring_done(db);
    if (db->lock_fd >= 0)
        close(db->lock_fd);
    if (db->copy_fd >= 0)
        close(db->copy_fd);
    loop_waker_free(db->waker);
    loop_unpost(db->loop, &db->settle);
    pthread_cond_destroy(&db->tell);
    pthread_mutex_destroy(&db->mu);
    pthread_mutex_destroy(&db->conn_mu);
    free(db->dir);
    free(db->path);
    free(db);
}

struct db *db_open(struct loop *l, const char *dir, struct db_open_report *ret, struct err *e)
{
    struct db_open_report rep = {0};
    struct db *db = db_new(l, dir);
    int write_error = 0;
    int rc = make_dir(dir, e);
    if (!rc)
        rc = db_take_lock(db, e);
    if (!rc)
        rc = open_file(db, &rep, e);
    if (!rc)
        rc = db_ring_open(db, rep.set_aside, &write_error, e);
    if (!rc)
        db_moved_begin(db);
    if (!rc && write_error) {
        pthread_mutex_lock(&db->mu);
        db_set_health(db, write_error);
        pthread_mutex_unlock(&db->mu);
    }
    if (!rc)
        rc = db_writer_start(db, e);
    if (rc) {
        db_free(db);
        return NULL;
    }
    if (ret)
        *ret = rep;
    return db;
}

void db_close(struct db *db)
{
    if (!db)
        return;
    db->closing = true;
    db_writer_stop(db);
    uint64_t unwritten = db_ring_pending(db);
    db->note_lost_events += unwritten + db->ring.lost;
    db->note_lost_requests += db->kept.n + db->queue.n;
    if (!db->health)
        db_event_release_ids(db);
    do
        db_deliver(db);
    while (db->ready);
    db_free(db);
}
