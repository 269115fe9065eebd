// SPDX-License-Identifier: Apache-2.0
// Alarms that stand and silences: requests, their SQL, and the reads at start. One row each, by id; ids of
// both are of one sequence, reserved ahead in `reserved` ('alarm').
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

enum { ALARM_TEXTS = 12, SILENCE_TEXTS = 4, TEXT_MAX = 8192 };

// Where the texts of a row lie, in the order of its columns.
static void alarm_texts(struct db_alarm *a, const char ***ret)
{
    const char **at[ALARM_TEXTS] = {&a->fabric,   &a->rule,     &a->subject, &a->place,
                                    &a->peer,     &a->cable,    &a->reason,  &a->evidence,
                                    &a->acked_by, &a->ack_note, &a->advice,  &a->grouping};
    memcpy(ret, at, sizeof(at));
}

static void silence_texts(struct db_silence *s, const char ***ret)
{
    const char **at[SILENCE_TEXTS] = {&s->focus, &s->rule, &s->owner, &s->reason};
    memcpy(ret, at, sizeof(at));
}

// The texts in one allocation, which the first owns; NULL becomes "".
static bool copy_texts(const char **text[], unsigned n)
{
    size_t size = 0, len[ALARM_TEXTS];
    for (unsigned i = 0; i < n; i++) {
        len[i] = *text[i] ? strnlen(*text[i], TEXT_MAX + 1) : 0;
        if (len[i] > TEXT_MAX)
            return false;
        size += len[i] + 1;
    }
    char *p = xmalloc(size);
    for (unsigned i = 0; i < n; i++) {
        if (len[i])
            memcpy(p, *text[i], len[i]);
        p[len[i]] = 0;
        *text[i] = p;
        p += len[i] + 1;
    }
    return true;
}

// --- requests ---

void db_alarm_put(struct db *db, const struct db_alarm *a, db_done_fn *done, void *arg)
{
    struct db_req *r = db_req_new(db, DB_ALARM_PUT, "", done, arg);
    const char **text[ALARM_TEXTS];
    struct db_alarm *copy = xmalloc(sizeof(*copy));
    *copy = *a;
    alarm_texts(copy, text);
    if (a->id == 0 || a->id > INT64_MAX || !copy_texts(text, ALARM_TEXTS)) {
        free(copy);
        db_req_submit(db, r, a->id == 0 || a->id > INT64_MAX ? -EINVAL : -ENAMETOOLONG);
        return;
    }
    r->alarm = copy;
    r->id = a->id;
    db_req_submit(db, r, 0);
}

void db_silence_put(struct db *db, const struct db_silence *s, db_done_fn *done, void *arg)
{
    struct db_req *r = db_req_new(db, DB_SILENCE_PUT, "", done, arg);
    const char **text[SILENCE_TEXTS];
    struct db_silence *copy = xmalloc(sizeof(*copy));
    *copy = *s;
    silence_texts(copy, text);
    if (s->id == 0 || s->id > INT64_MAX || !copy_texts(text, SILENCE_TEXTS)) {
        free(copy);
        db_req_submit(db, r, s->id == 0 || s->id > INT64_MAX ? -EINVAL : -ENAMETOOLONG);
        return;
    }
    r->silence = copy;
    r->id = s->id;
    db_req_submit(db, r, 0);
}

static void by_id(struct db *db, enum db_kind kind, uint64_t id, db_done_fn *done, void *arg)
{
    struct db_req *r = db_req_new(db, kind, "", done, arg);
    r->id = id;
    db_req_submit(db, r, id > INT64_MAX ? -EINVAL : 0);
}

void db_alarm_forget(struct db *db, uint64_t id, db_done_fn *done, void *arg)
{
    by_id(db, DB_ALARM_FORGET, id, done, arg);
}

void db_silence_forget(struct db *db, uint64_t id, db_done_fn *done, void *arg)
{
    by_id(db, DB_SILENCE_FORGET, id, done, arg);
}

void db_alarm_reserve(struct db *db, uint64_t last, db_done_fn *done, void *arg)
{
    by_id(db, DB_ALARM_RESERVE, last, done, arg);
}

void db_alarm_free(struct db_alarm *a)
{
    if (a)
        free((void *)a->fabric);
    free(a);
}

void db_silence_free(struct db_silence *s)
{
    if (s)
        free((void *)s->focus);
    free(s);
}

size_t db_alarm_bytes(const struct db_req *r)
{
    size_t n = 0;
    if (r->alarm)
        n = sizeof(*r->alarm) + strlen(r->alarm->reason) + strlen(r->alarm->evidence) + 1024;
    if (r->silence)
        n = sizeof(*r->silence) + strlen(r->silence->reason) + 512;
    return n;
}

// --- the writer's side ---

static int bind_texts(sqlite3_stmt *st, int from, const char **text[], unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sqlite3_bind_text(st, from + (int)i, *text[i], -1, SQLITE_STATIC);
    return from + (int)n;
}

static int put_alarm(struct db *db, struct db_alarm *a)
{
    sqlite3_stmt *st = db->st[DB_ST_ALARM_PUT];
    const char **text[ALARM_TEXTS];
    const int64_t number[] = {(int64_t)a->leader,       a->group,        a->severity,
                              a->since_wall_ns,         a->last_wall_ns, a->cleared_wall_ns,
                              (int64_t)a->count,        a->acked,        (int64_t)a->node_guid[0],
                              (int64_t)a->node_guid[1], a->port[0],      a->port[1]};
    alarm_texts(a, text);
    sqlite3_bind_int64(st, 1, (int64_t)a->id);
    int at = bind_texts(st, 2, text, ALARM_TEXTS);
    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
        sqlite3_bind_int64(st, at + (int)i, number[i]);
    return db_step(st);
}

static int put_silence(struct db *db, struct db_silence *s)
{
    sqlite3_stmt *st = db->st[DB_ST_SILENCE_PUT];
    const char **text[SILENCE_TEXTS];
    silence_texts(s, text);
    sqlite3_bind_int64(st, 1, (int64_t)s->id);
    int at = bind_texts(st, 2, text, SILENCE_TEXTS);
    sqlite3_bind_int64(st, at, s->from_wall_ns);
    sqlite3_bind_int64(st, at + 1, s->until_wall_ns);
    sqlite3_bind_int64(st, at + 2, s->maintenance);
    return db_step(st);
}

static int with_id(struct db *db, enum db_stmt which, uint64_t id)
{
    sqlite3_bind_int64(db->st[which], 1, (int64_t)id);
    return db_step(db->st[which]);
}

int db_alarm_apply(struct db *db, const struct db_req *r)
{
    switch (r->kind) {
    case DB_ALARM_PUT:
        return put_alarm(db, r->alarm);
    case DB_ALARM_FORGET:
        return with_id(db, DB_ST_ALARM_FORGET, r->id);
    case DB_SILENCE_PUT:
        return put_silence(db, r->silence);
    case DB_SILENCE_FORGET:
        return with_id(db, DB_ST_SILENCE_FORGET, r->id);
    case DB_ALARM_RESERVE:
        return with_id(db, DB_ST_ALARM_RESERVE, r->id);
    case DB_LIDS_PUT:
    case DB_BLOB_PUT:
    case DB_GROUPS_PUT:
    case DB_GROUPS_FORGET:
        break;
    }
    return 0;
}

// --- reads at start ---

#define ROWS_MAX 200000

static const char *text_at(sqlite3_stmt *st, int i)
{
    const char *s = (const char *)sqlite3_column_text(st, i);
    return s ? s : "";
}

// A row that a person or a fault wrote may hold anything.
static bool alarm_row(sqlite3_stmt *st, struct db_alarm *a)
{
    const char **text[ALARM_TEXTS];
    int64_t n[13];
    *a = (struct db_alarm){0};
    alarm_texts(a, text);
    for (int i = 0; i < ALARM_TEXTS; i++)
        *text[i] = text_at(st, 1 + i);
    n[0] = sqlite3_column_int64(st, 0);
    for (int i = 1; i < 13; i++)
        n[i] = sqlite3_column_int64(st, ALARM_TEXTS + i);
    if (n[0] <= 0 || n[1] < 0 || n[3] < 0 || n[3] > 3 || n[7] < 0 || n[11] < 0 || n[11] > 255 || n[12] < 0 ||
        n[12] > 255)
        return false;
    a->id = (uint64_t)n[0];
    a->leader = (uint64_t)n[1];
    a->group = n[2] != 0;
    a->severity = (int)n[3];
    a->since_wall_ns = n[4];
    a->last_wall_ns = n[5];
    a->cleared_wall_ns = n[6];
    a->count = (uint64_t)n[7];
    a->acked = n[8] != 0;
    a->node_guid[0] = (uint64_t)n[9];
    a->node_guid[1] = (uint64_t)n[10];
    a->port[0] = (uint8_t)n[11];
    a->port[1] = (uint8_t)n[12];
    return true;
}

static bool silence_row(sqlite3_stmt *st, struct db_silence *s)
{
    const char **text[SILENCE_TEXTS];
    *s = (struct db_silence){0};
    silence_texts(s, text);
    for (int i = 0; i < SILENCE_TEXTS; i++)
        *text[i] = text_at(st, 1 + i);
    int64_t id = sqlite3_column_int64(st, 0);
    s->id = (uint64_t)id;
    s->from_wall_ns = sqlite3_column_int64(st, 5);
    s->until_wall_ns = sqlite3_column_int64(st, 6);
    s->maintenance = sqlite3_column_int64(st, 7) != 0;
    return id > 0 && s->owner[0] != 0;
}

struct read {
    void (*alarm)(void *arg, const struct db_alarm *a);
    void (*silence)(void *arg, const struct db_silence *s);
    void *arg;
};

static long read_rows(struct db *db, const char *sql, const char *table, const struct read *x)
{
    sqlite3_stmt *st = NULL;
    long n = 0;
    size_t bad = 0;
    db_read_lock(db);
    int rc = sqlite3_prepare_v2(db->r, sql, -1, &st, NULL);
    while (rc == SQLITE_OK && n < ROWS_MAX && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct db_alarm a;
        struct db_silence s;
        bool ok = x->alarm ? alarm_row(st, &a) : silence_row(st, &s);
        rc = SQLITE_OK;
        n += ok;
        bad += !ok;
        if (ok && x->alarm)
            x->alarm(x->arg, &a);
        else if (ok)
            x->silence(x->arg, &s);
    }
    int err = rc == SQLITE_DONE || rc == SQLITE_OK ? 0 : db_errno(db->r, rc);
    sqlite3_finalize(st);
    db_read_unlock(db);
    if (bad)
        log_warning("db-bad-rows", "path=%s table=%s rows=%zu ignored", db->path, table, bad);
    return err ? err : n;
}

long db_alarms_load(struct db *db, void (*row)(void *arg, const struct db_alarm *a), void *arg)
{
    return read_rows(db,
                     "SELECT id, fabric, rule, subject, place, peer, cable, reason, evidence, acked_by, "
                     "ack_note, advice, grouping, leader, is_group, severity, since_ns, last_ns, cleared_ns, "
                     "count, acked, guid_a, guid_b, port_a, port_b FROM alarm ORDER BY id",
                     "alarm", &(struct read){.alarm = row, .arg = arg});
}

long db_silences_load(struct db *db, void (*row)(void *arg, const struct db_silence *s), void *arg)
{
    return read_rows(db,
                     "SELECT id, focus, rule, owner, reason, from_ns, until_ns, maintenance FROM silence "
                     "ORDER BY id",
                     "silence", &(struct read){.silence = row, .arg = arg});
}

int db_alarm_last_id(struct db *db, uint64_t *ret)
{
    int64_t reserved = 0, alarm = 0, silence = 0;
    db_read_lock(db);
    int rc =
        db_get_int(db->r, "SELECT last FROM reserved WHERE name = 'alarm' AND last < 1 << 60", &reserved);
    if (!rc)
        rc = db_get_int(db->r, "SELECT max(id) FROM alarm WHERE id < 1 << 60", &alarm);
    if (!rc)
        rc = db_get_int(db->r, "SELECT max(id) FROM silence WHERE id < 1 << 60", &silence);
    int err = db_errno(db->r, rc);
    db_read_unlock(db);
    if (err)
        return err;
    int64_t last = reserved > alarm ? reserved : alarm;
    last = last > silence ? last : silence;
    *ret = last > 0 ? (uint64_t)last : 0;
    return 0;
}
