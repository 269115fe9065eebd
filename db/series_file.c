// SPDX-License-Identifier: Apache-2.0
// One file of a tier: its name, schema, whether it is sound, its statements.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/db_priv.h"
#include "db/series_priv.h"
#include "lib/xalloc.h"

static const char schema[] =
    "CREATE TABLE sweep (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL);"
    "CREATE TABLE head (id INTEGER PRIMARY KEY, d BLOB NOT NULL);"
    "CREATE TABLE chunk (block INTEGER, seq0 INTEGER, seq1 INTEGER NOT NULL, part INTEGER NOT NULL,"
    " dir BLOB NOT NULL, PRIMARY KEY (block, seq0)) WITHOUT ROWID;"
    "CREATE TABLE part (id INTEGER PRIMARY KEY, d BLOB NOT NULL);"
    "CREATE TABLE keys (block INTEGER PRIMARY KEY, d BLOB NOT NULL);";

static const char *const sql[SERIES_ST_N] = {
    [SERIES_ST_SWEEP] = "INSERT INTO sweep (seq, at_ms) VALUES (?1, ?2)",
    [SERIES_ST_HEAD] = "INSERT INTO head (id, d) VALUES (?1, ?2)",
    [SERIES_ST_PART] = "INSERT INTO part (id, d) VALUES (?1, ?2)",
    [SERIES_ST_CHUNK] = "INSERT INTO chunk (block, seq0, seq1, part, dir) VALUES (?1, ?2, ?3, ?4, ?5)",
    [SERIES_ST_KEYS] = "INSERT OR REPLACE INTO keys (block, d) VALUES (?1, ?2)",
    [SERIES_ST_TAIL] =
        "SELECT s.seq, h.d, s.at_ms FROM sweep s LEFT JOIN head h ON h.id = (s.seq << 16 | ?1) "
        "WHERE s.seq > ?2 AND s.seq <= ?3 ORDER BY s.seq LIMIT ?4",
    [SERIES_ST_TRIM] = "DELETE FROM head WHERE id < ?1",
    [SERIES_ST_TIMES] = "SELECT seq, at_ms FROM sweep WHERE seq > ?1 ORDER BY seq",
    [SERIES_ST_CHUNKS] = "SELECT seq0, seq1, part, dir FROM chunk WHERE block = ?1 AND seq1 >= ?2 AND "
                         "seq0 <= ?3 ORDER BY seq0",
    [SERIES_ST_DONE] = "SELECT max(seq1) FROM chunk WHERE block = ?1",
    [SERIES_ST_GET_PART] = "SELECT d FROM part WHERE id = ?1",
};

// --- names ---

static const char *const prefix[SERIES_TIERS] = {"raw", "min", "hour"};

static int64_t begin_of(int year, int month, int day)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return (int64_t)timegm(&tm) * 1000;
}

void series_name_of(enum series_tier tier, int64_t at_ms, struct series_name *ret)
{
    time_t t = (time_t)(at_ms / 1000);
    struct tm tm;
    char text[SERIES_NAME_MAX];
    gmtime_r(&t, &tm);
    int y = tm.tm_year + 1900, m = tm.tm_mon + 1, d = tm.tm_mday;
    if (tier == SERIES_HOUR)
        snprintf(text, sizeof(text), "hour-%04d%02d.db", y % 10000, m);
    else
        snprintf(text, sizeof(text), "%s-%04d%02d%02d.db", prefix[tier], y % 10000, m, d);
    bool ok = series_name_parse(text, ret);
    (void)ok;
}

bool series_name_parse(const char *text, struct series_name *ret)
{
    int y, m, d = 1;
    char again[SERIES_NAME_MAX];
    *ret = (struct series_name){.tier = SERIES_TIERS};
    for (int t = 0; t < SERIES_TIERS; t++) {
        if (strncmp(text, prefix[t], strlen(prefix[t])) == 0 && text[strlen(prefix[t])] == '-')
            ret->tier = (enum series_tier)t;
    }
    if (ret->tier == SERIES_TIERS)
        return false;
    const char *p = text + strlen(prefix[ret->tier]) + 1;
    int want = ret->tier == SERIES_HOUR ? 2 : 3;
    if (sscanf(p, "%4d%2d%2d", &y, &m, &d) != want || m < 1 || m > 12 || d < 1 || d > 31 || y < 1970)
        return false;
    if (want == 2)
        snprintf(again, sizeof(again), "%s-%04d%02d.db", prefix[ret->tier], y, m);
    else
        snprintf(again, sizeof(again), "%s-%04d%02d%02d.db", prefix[ret->tier], y, m, d);
    if (strcmp(again, text) != 0)
        return false;
    snprintf(ret->text, sizeof(ret->text), "%s", again);
    ret->from_ms = begin_of(y, m, d);
    ret->to_ms = want == 2 ? begin_of(y, m + 1, 1) : begin_of(y, m, d + 1);
    return true;
}

static int by_tier_and_time(const void *a, const void *b)
{
    const struct series_name *x = a, *y = b;
    if (x->tier != y->tier)
        return (int)x->tier - (int)y->tier;
    return (x->from_ms > y->from_ms) - (x->from_ms < y->from_ms);
}

long series_names(const char *dir, struct series_name **ret)
{
    DIR *d = opendir(dir);
    if (!d)
        return -errno;
    struct series_name *list = NULL;
    size_t n = 0, cap = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (n == cap)
            list = xreallocarray(list, cap = cap ? cap * 2 : 64, sizeof(*list));
        n += series_name_parse(e->d_name, &list[n]);
    }
    closedir(d);
    if (n)
        qsort(list, n, sizeof(*list), by_tier_and_time);
    *ret = list;
    return (long)n;
}

// --- opening ---

// Not a read that failed: that may work again. What is no error of the file's structure can be one of what it
// says: a table that is missing, a row that stands where another must.
static bool is_damage(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return true;
    default:
        return rc == SQLITE_IOERR_CORRUPTFS || rc == SQLITE_IOERR_DATA;
    }
}

static const char *advice(int err)
{
    switch (-err) {
    case ENOSPC:
        return "the disk is full; history goes on by itself when there is space";
    case EBADMSG:
        return "the file is damaged";
    default:
        return db_rc_text(err);
    }
}

int series_file_fail(struct series_file *f, int rc)
{
    if (!rc)
        return 0;
    int err = db_errno(f->c, rc);
    snprintf(f->fail_text, sizeof(f->fail_text), "%s: %s: %s", f->name.text, sqlite3_errmsg(f->c),
             advice(is_damage(rc) ? -EBADMSG : err));
    return is_damage(rc) ? -EBADMSG : err;
}

sqlite3_stmt *series_stmt(struct series_file *f, enum series_stmt which)
{
    if (!f->st[which] &&
        sqlite3_prepare_v3(f->c, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &f->st[which], NULL) != SQLITE_OK)
        return NULL;
    return f->st[which];
}

int series_step(struct series_file *f, sqlite3_stmt *st)
{
    return series_file_fail(f, st ? db_step(st) : sqlite3_extended_errcode(f->c));
}

const void *series_get_part(struct series_file *f, int64_t id, size_t *ret_size)
{
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_GET_PART);
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

static bool has_log(const char *path)
{
    struct stat st;
    char *wal = xasprintf("%s-wal", path);
    bool has = stat(wal, &st) == 0 && st.st_size > 0;
    free(wal);
    return has;
}

int series_check_header(const char *path, struct err *e)
{
    uint8_t h[100];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return err_set(e, -errno, path, "cannot open: %s", strerror(errno));
    struct stat st;
    bool plain = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = plain ? pread(fd, h, sizeof(h), 0) : -1;
    close(fd);
    if (!plain)
        return err_set(e, -EBADMSG, path, "is not a regular file");
    if (n == 0 && has_log(path)) // SQLite would delete it
        return err_set(e, -EBADMSG, path, "is empty, but its log is not: somebody has cut the file short");
    if (n == 0)
        return 0;
    if (n < (ssize_t)sizeof(h) || memcmp(h, "SQLite format 3", 16) != 0)
        return err_set(e, -EBADMSG, path, "is not a database");
    uint32_t version = (uint32_t)h[60] << 24 | (uint32_t)h[61] << 16 | (uint32_t)h[62] << 8 | h[63];
    uint32_t app = (uint32_t)h[68] << 24 | (uint32_t)h[69] << 16 | (uint32_t)h[70] << 8 | h[71];
    if (app != SERIES_APPLICATION_ID && (app || version))
        return err_set(e, -EBADMSG, path, "a database, but not of telemetry (application_id %u)", app);
    if (version > SERIES_SCHEMA)
        return err_set(
            e, -EPROTONOSUPPORT, path,
            "schema version %u, this weftd knows up to %d: a newer weftd wrote it; run that version, or "
            "move the file away",
            version, SERIES_SCHEMA);
    return 0;
}

static int create(struct series_file *f)
{
    char text[200];
    snprintf(text, sizeof(text), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             SERIES_APPLICATION_ID, SERIES_SCHEMA);
    int rc = db_exec(f->c, "BEGIN IMMEDIATE");
    if (!rc)
        rc = db_exec(f->c, schema);
    if (!rc)
        rc = db_exec(f->c, text);
    if (!rc)
        rc = db_exec(f->c, "COMMIT");
    if (rc && !sqlite3_get_autocommit(f->c))
        (void)db_exec(f->c, "ROLLBACK");
    return rc;
}

static int use(struct series_file *f, enum series_mode mode)
{
    int64_t version = 0;
    sqlite3_extended_result_codes(f->c, 1);
    sqlite3_busy_timeout(f->c, 5000);
    sqlite3_db_config(f->c, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(f->c, SQLITE_LIMIT_LENGTH, SERIES_ROW_MAX);
    int rc = mode == SERIES_ALONE ? db_exec(f->c, "PRAGMA locking_mode = EXCLUSIVE") : 0;
    if (!rc)
        rc = db_exec(f->c, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
                           "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096");
    if (!rc && mode == SERIES_WRITE)
        rc = db_exec(f->c,
                     "PRAGMA page_size = 8192; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;"
                     "PRAGMA journal_size_limit = 33554432");
    if (!rc)
        rc = db_get_int(f->c, "PRAGMA user_version", &version);
    // Before WAL: so the main file says at once what it is.
    if (!rc && mode == SERIES_WRITE && !version)
        rc = create(f);
    if (!rc && mode == SERIES_WRITE)
        rc = db_exec(f->c, "PRAGMA journal_mode = WAL");
    if (!rc && mode != SERIES_WRITE && !version)
        f->empty = true; // begun, and not a table in it
    return rc;
}

int series_file_open(struct series_file *f, const char *dir, const struct series_name *name,
                     enum series_mode mode, const char *vfs, struct err *e)
{
    *f = (struct series_file){.name = *name, .path = xasprintf("%s/%s", dir, name->text)};
    int rc = series_check_header(f->path, e);
    if (rc == -ENOENT && mode == SERIES_WRITE)
        rc = 0;
    if (!rc) {
        int flags = mode == SERIES_READ    ? SQLITE_OPEN_READONLY
                    : mode == SERIES_ALONE ? SQLITE_OPEN_READWRITE
                                           : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
        series_mend_shm(f->path, 0);
        rc = sqlite3_open_v2(f->path, &f->c, flags | SQLITE_OPEN_NOMUTEX, vfs);
        if (rc == SQLITE_OK)
            rc = use(f, mode);
        else if (f->c)
            rc = sqlite3_extended_errcode(f->c);
        if (rc == SQLITE_READONLY_ROLLBACK) {
            // Files have a rollback journal only until their tables are made.
            rc = err_set(e, -ENOENT, f->path, "nothing is in it yet");
        } else if (rc) {
            rc = f->c ? series_file_fail(f, rc) : -ENOMEM;
            err_set(e, rc, f->path, "%s", f->fail_text);
        } else if (f->empty) {
            rc = err_set(e, -ENOENT, f->path, "nothing is in it yet");
        }
    }
    if (rc)
        series_file_close(f);
    return rc;
}

void series_file_close(struct series_file *f)
{
    for (int i = 0; i < SERIES_ST_N; i++)
        sqlite3_finalize(f->st[i]);
    sqlite3_close(f->c);
    free(f->path);
    *f = (struct series_file){0};
}

int series_quick_check(struct series_file *f)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(f->c, "PRAGMA quick_check(1)", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return series_file_fail(f, sqlite3_extended_errcode(f->c));
    rc = sqlite3_step(st);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (text && strcmp(text, "ok") != 0) {
        snprintf(f->fail_text, sizeof(f->fail_text), "%s", text);
        rc = -EBADMSG;
    } else {
        rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : series_file_fail(f, sqlite3_extended_errcode(f->c));
    }
    sqlite3_finalize(st);
    return rc;
}

int series_newest(struct series_file *f, int64_t *ret_seq, int64_t *ret_ms)
{
    *ret_seq = *ret_ms = 0;
    int rc = db_get_int(f->c, "SELECT max(seq) FROM sweep", ret_seq);
    if (!rc)
        rc = db_get_int(f->c, "SELECT at_ms FROM sweep WHERE seq = (SELECT max(seq) FROM sweep)", ret_ms);
    if (!rc && (*ret_seq < 0 || *ret_seq > SERIES_SEQ_MAX))
        return -EBADMSG;
    return series_file_fail(f, rc);
}

// --- the number of a series by its key: a hash of indices into key[] ---

uint32_t *series_index_find(const struct series_index *x, const struct series_key *key, uint64_t guid,
                            uint8_t port)
{
    for (uint32_t h = (uint32_t)hash_mix64(guid ^ hash_mix64(port));; h++) {
        uint32_t *i = &x->at[h & x->mask];
        if (*i == UINT32_MAX || (key[*i].guid == guid && key[*i].port == port))
            return i;
    }
}

void series_index_make(struct series_index *x, const struct series_key *key, uint32_t num)
{
    uint32_t size = 1024;
    while (size < num * 2 + 2)
        size *= 2;
    free(x->at);
    x->at = xmalloc(size * sizeof(*x->at));
    memset(x->at, 0xff, size * sizeof(*x->at));
    x->mask = size - 1;
    for (uint32_t i = 0; i < num; i++)
        *series_index_find(x, key, key[i].guid, key[i].port) = i;
}

// --- keys: 9 bytes a series (GUID little-endian, port), then a checksum ---

enum { KEY_BYTES = 9 };

int series_save_keys(struct series_file *f, uint32_t block, const struct series_key *key, uint32_t num)
{
    uint8_t d[SERIES_BLOCK * KEY_BYTES + 8], *p = d;
    for (uint32_t i = 0; i < num; i++) {
        memcpy(p, &key[i].guid, 8);
        p[8] = key[i].port;
        p += KEY_BYTES;
    }
    uint64_t sum = series_sum(d, (size_t)(p - d), block);
    memcpy(p, &sum, 8);
    sqlite3_stmt *st = series_stmt(f, SERIES_ST_KEYS);
    if (st) {
        sqlite3_bind_int64(st, 1, block);
        sqlite3_bind_blob(st, 2, d, (int)(p + 8 - d), SQLITE_STATIC);
    }
    return series_step(f, st);
}

static int load_block(uint32_t block, const uint8_t *d, size_t n, struct series_key **key, uint32_t *num)
{
    uint64_t sum;
    if (!d || n < 8 || (n - 8) % KEY_BYTES || n - 8 > SERIES_BLOCK * KEY_BYTES ||
        block >= SERIES_NUM_MAX / SERIES_BLOCK)
        return -EBADMSG;
    memcpy(&sum, d + n - 8, 8);
    uint32_t first = block * SERIES_BLOCK, end = first + (uint32_t)((n - 8) / KEY_BYTES);
    if (sum != series_sum(d, n - 8, block) || first > *num)
        return -EBADMSG;
    if (end <= *num)
        return 0;
    *key = xreallocarray(*key, end, sizeof(**key));
    for (uint32_t i = *num; i < end; i++) {
        memcpy(&(*key)[i].guid, d + (size_t)(i - first) * KEY_BYTES, 8);
        (*key)[i].port = d[(size_t)(i - first) * KEY_BYTES + 8];
    }
    *num = end;
    return 0;
}

int series_load_keys(struct series_file *f, struct series_key **key, uint32_t *num)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(f->c, "SELECT block, d FROM keys ORDER BY block", -1, &st, NULL), bad = 0;
    if (rc != SQLITE_OK)
        return series_file_fail(f, sqlite3_extended_errcode(f->c));
    while ((rc = sqlite3_step(st)) == SQLITE_ROW && !bad) {
        int64_t block = sqlite3_column_int64(st, 0);
        const void *d = sqlite3_column_blob(st, 1);
        size_t n = (size_t)sqlite3_column_bytes(st, 1);
        bad = block < 0 || block > UINT32_MAX ? -EBADMSG : load_block((uint32_t)block, d, n, key, num);
    }
    if (!bad && rc != SQLITE_DONE)
        bad = series_file_fail(f, sqlite3_extended_errcode(f->c));
    sqlite3_finalize(st);
    return bad;
}

// --- setting aside ---

const char *const series_suffix[SERIES_SUFFIXES] = {"", "-wal", "-shm", "-journal"};

int series_set_aside(const char *path, char *ret_name, size_t size)
{
    char when[32];
    time_t now = (time_t)(wall_now_ns() / MONO_S);
    struct tm tm;
    struct stat st;
    int rc = 0;
    strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    char *name = xasprintf("%s.damaged-%s", path, when);
    for (int i = 1; lstat(name, &st) == 0; i++) {
        free(name);
        name = xasprintf("%s.damaged-%s.%d", path, when, i);
    }
    for (int i = 0; i < SERIES_SUFFIXES && !rc; i++) {
        char *from = xasprintf("%s%s", path, series_suffix[i]),
             *to = xasprintf("%s%s", name, series_suffix[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            rc = -errno;
        free(from);
        free(to);
    }
    snprintf(ret_name, size, "%s", name);
    free(name);
    return rc;
}
