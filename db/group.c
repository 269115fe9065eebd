// SPDX-License-Identifier: Apache-2.0
// Multicast groups: requests, their SQL, and the read at start. A group and each of its members are rows of
// one table, so that a join writes one row and requests may be merged row by row (backlog.c).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

static void ask(struct db *db, enum db_kind kind, const char *fabric, const struct db_group *item, size_t n,
                db_done_fn *done, void *arg)
{
    struct db_req *r = db_req_new(db, kind, fabric, done, arg);
    int rc = db_req_check(fabric, n);
    if (rc == 0) {
        r->n = n;
        r->group = xcalloc(n ? n : 1, sizeof(*r->group));
        if (n)
            memcpy(r->group, item, n * sizeof(*item));
    }
    db_req_submit(db, r, rc);
}

void db_groups_put(struct db *db, const char *fabric, const struct db_group *item, size_t n, db_done_fn *done,
                   void *arg)
{
    ask(db, DB_GROUPS_PUT, fabric, item, n, done, arg);
}

void db_groups_forget(struct db *db, const char *fabric, const struct db_group *item, size_t n,
                      db_done_fn *done, void *arg)
{
    ask(db, DB_GROUPS_FORGET, fabric, item, n, done, arg);
}

int db_group_apply(struct db *db, const struct db_req *r)
{
    bool put = r->kind == DB_GROUPS_PUT;
    sqlite3_stmt *st = db->st[put ? DB_ST_GROUP_PUT : DB_ST_GROUP_FORGET];
    int rc = 0;
    for (size_t i = 0; i < r->n && !rc; i++) {
        const struct db_group *g = &r->group[i];
        sqlite3_bind_text(st, 1, r->fabric, -1, SQLITE_STATIC);
        sqlite3_bind_blob(st, 2, g->mgid, sizeof(g->mgid), SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, (int64_t)g->port_guid);
        if (put)
            sqlite3_bind_blob(st, 4, g->record, sizeof(g->record), SQLITE_STATIC);
        rc = db_step(st);
    }
    return rc;
}

// A row that a person or a fault wrote may have any size.
static bool row_ok(sqlite3_stmt *st, struct db_group *ret)
{
    const void *mgid = sqlite3_column_blob(st, 0), *record = sqlite3_column_blob(st, 2);
    if (mgid == NULL || record == NULL || sqlite3_column_bytes(st, 0) != (int)sizeof(ret->mgid) ||
        sqlite3_column_bytes(st, 2) != DB_GROUP_RECORD)
        return false;
    memcpy(ret->mgid, mgid, sizeof(ret->mgid));
    memcpy(ret->record, record, sizeof(ret->record));
    ret->port_guid = (uint64_t)sqlite3_column_int64(st, 1);
    return true;
}

static int read_rows(sqlite3_stmt *st, const char *fabric, struct db_group **list, size_t *n, size_t *bad)
{
    size_t cap = 0;
    int rc;
    sqlite3_bind_text(st, 1, fabric, -1, SQLITE_STATIC);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (*n == cap) {
            cap = cap ? cap * 2 : 64;
            *list = xreallocarray(*list, cap, sizeof(**list));
        }
        if (*n < DB_LIDS_MAX && row_ok(st, &(*list)[*n]))
            (*n)++;
        else
            (*bad)++;
    }
    return rc == SQLITE_DONE ? 0 : rc;
}

// Port GUIDs are stored as signed numbers: their order is made here.
static int by_key(const void *a, const void *b)
{
    const struct db_group *x = a, *y = b;
    int c = memcmp(x->mgid, y->mgid, sizeof(x->mgid));
    return c ? c : (x->port_guid > y->port_guid) - (x->port_guid < y->port_guid);
}

long db_groups_load(struct db *db, const char *fabric, struct db_group **ret)
{
    struct db_group *list = NULL;
    size_t n = 0, bad = 0;
    sqlite3_stmt *st = NULL;
    db_read_lock(db);
    int rc =
        sqlite3_prepare_v2(db->r, "SELECT mgid, guid, record FROM mcast WHERE fabric = ?1", -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = read_rows(st, fabric, &list, &n, &bad);
    int err = db_errno(db->r, rc);
    sqlite3_finalize(st);
    db_read_unlock(db);
    if (bad)
        log_warning("db-bad-rows", "path=%s table=mcast fabric=%s rows=%zu ignored", db->path, fabric, bad);
    if (err) {
        free(list);
        return err;
    }
    if (n)
        qsort(list, n, sizeof(*list), by_key);
    *ret = list ? list : xcalloc(1, sizeof(*list));
    return (long)n;
}
