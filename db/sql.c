// SPDX-License-Identifier: Apache-2.0
// Small SQLite helpers: errors as errno, the writer's prepared statements, transactions.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "db/db_priv.h"

static const char *const sql[DB_ST_N] = {
    // A range of 2^lmc LIDs begins at a multiple of its length (InfiniBand: the low LMC bits of a base LID
    // are 0):
    // others overlap it when they begin inside, or at one of the seven bases around it and reach it.
    [DB_ST_LID_STEAL] = "DELETE FROM lid INDEXED BY lid_by_lid WHERE fabric = ?1 AND guid <> ?2 AND lid >= "
                        "?3 AND lid < ?3 + (1 << ?4)",
    [DB_ST_LID_STEAL_AROUND] = "DELETE FROM lid INDEXED BY lid_by_lid WHERE fabric = ?1 AND guid <> ?2 AND "
                               "lid IN (?3 & ~1, ?3 & ~3, "
                               "?3 & ~7, ?3 & ~15, ?3 & ~31, ?3 & ~63, ?3 & ~127) AND lid + (1 << lmc) > ?3",
    [DB_ST_LID_PUT] = "INSERT INTO lid (fabric, guid, lid, lmc) VALUES (?1, ?2, ?3, ?4) "
                      "ON CONFLICT (fabric, guid) DO UPDATE SET lid = excluded.lid, lmc = excluded.lmc",
    [DB_ST_BLOB_PUT] = "INSERT INTO blob (fabric, name, data) VALUES (?1, ?2, ?3) "
                       "ON CONFLICT (fabric, name) DO UPDATE SET data = excluded.data",
    [DB_ST_BLOB_REMOVE] = "DELETE FROM blob WHERE fabric = ?1 AND name = ?2",
    // REPLACE: a commit that reported failure may still have been done.
    [DB_ST_GROUP_PUT] = "INSERT INTO mcast (fabric, mgid, guid, record) VALUES (?1, ?2, ?3, ?4) "
                        "ON CONFLICT (fabric, mgid, guid) DO UPDATE SET record = excluded.record",
    [DB_ST_GROUP_FORGET] = "DELETE FROM mcast WHERE fabric = ?1 AND mgid = ?2 AND guid = ?3",
    [DB_ST_ALARM_PUT] =
        "INSERT OR REPLACE INTO alarm (id, fabric, rule, subject, place, peer, cable, reason, evidence, "
        "acked_by, ack_note, advice, grouping, leader, is_group, severity, since_ns, last_ns, cleared_ns, "
        "count, acked, guid_a, guid_b, port_a, port_b) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
        "?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
    [DB_ST_ALARM_FORGET] = "DELETE FROM alarm WHERE id = ?1",
    [DB_ST_SILENCE_PUT] =
        "INSERT OR REPLACE INTO silence (id, focus, rule, owner, reason, from_ns, until_ns, maintenance) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [DB_ST_SILENCE_FORGET] = "DELETE FROM silence WHERE id = ?1",
    [DB_ST_ALARM_RESERVE] = "INSERT INTO reserved (name, last) VALUES ('alarm', ?1) "
                            "ON CONFLICT (name) DO UPDATE SET last = excluded.last",
    [DB_ST_EVENT_PUT] =
        "INSERT OR REPLACE INTO event (id, wall_ns, fabric, kind, severity, subject, text, data) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [DB_ST_RESERVE] = "INSERT INTO reserved (name, last) VALUES ('event', ?1) "
                      "ON CONFLICT (name) DO UPDATE SET last = excluded.last",
    [DB_ST_PRUNE] = "DELETE FROM event WHERE id IN "
                    "(SELECT id FROM event WHERE id <= ?1 AND wall_ns < ?2 LIMIT ?3)",
};

int db_exec(sqlite3 *c, const char *text)
{
    int rc = sqlite3_exec(c, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sqlite3_extended_errcode(c);
}

int db_step(sqlite3_stmt *st)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_DONE || rc == SQLITE_ROW)
        rc = 0;
    else
        rc = sqlite3_extended_errcode(sqlite3_db_handle(st));
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return rc;
}

int db_get_int(sqlite3 *c, const char *text, int64_t *ret)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(c, text, -1, &st, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW)
            *ret = sqlite3_column_int64(st, 0);
        rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sqlite3_extended_errcode(c);
        sqlite3_finalize(st);
    } else {
        rc = sqlite3_extended_errcode(c);
    }
    return rc;
}

int db_errno(sqlite3 *c, int rc)
{
    int sys = c ? sqlite3_system_errno(c) : 0;
    switch (rc & 0xff) {
    case SQLITE_OK:
        return 0;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if (sys == ENOSPC || sys == EDQUOT)
            return -ENOSPC;
        return sys == EACCES || sys == EPERM || sys == EROFS || sys == EMFILE ? -sys : -EIO;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EBADMSG;
    case SQLITE_TOOBIG:
        return -E2BIG;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return -EINVAL;
    default:
        return -EIO;
    }
}

bool db_rc_permanent(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        return true;
    default:
        return false;
    }
}

bool db_rc_damage(int rc)
{
    return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB || rc == SQLITE_IOERR_READ ||
           rc == SQLITE_IOERR_SHORT_READ || rc == SQLITE_IOERR_CORRUPTFS || rc == SQLITE_IOERR_DATA;
}

const char *db_rc_text(int err)
{
    switch (-err) {
    case ENOSPC:
        return "the disk is full; free space, what waits is then written by itself";
    case EROFS:
        return "the file or its file system is read-only";
    case EBUSY:
        return "another program holds the file locked; end it";
    case EBADMSG:
        return "the file is damaged; restart weftd, which sets it aside and begins a new one";
    case EIO:
        return "input/output error; check the disk and the kernel's log";
    default:
        return strerror(-err);
    }
}

int db_prepare_all(struct db *db)
{
    for (int i = 0; i < DB_ST_N; i++) {
        if (sqlite3_prepare_v3(db->w, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &db->st[i], NULL) != SQLITE_OK)
            return sqlite3_extended_errcode(db->w);
    }
    return 0;
}

int db_begin(struct db *db)
{
    if (db->shared)
        pthread_mutex_lock(&db->conn_mu);
    // IMMEDIATE: the lock is had here or not at all, not in the middle.
    return db_exec(db->w, "BEGIN IMMEDIATE");
}

int db_commit(struct db *db, int rc)
{
    if (!rc)
        rc = db_exec(db->w, "COMMIT");
    if (rc) {
        int err = db_errno(db->w, rc);
        snprintf(db->fail_text, sizeof(db->fail_text), "%s: %s", sqlite3_errmsg(db->w), db_rc_text(err));
        // A full disk may have rolled back already.
        if (!sqlite3_get_autocommit(db->w))
            (void)db_exec(db->w, "ROLLBACK");
    }
    if (db->shared)
        pthread_mutex_unlock(&db->conn_mu);
    return rc;
}

void db_read_lock(struct db *db)
{
    if (db->shared)
        pthread_mutex_lock(&db->conn_mu);
    else
        db_moved_reopen(db);
}

void db_read_unlock(struct db *db)
{
    if (db->shared)
        pthread_mutex_unlock(&db->conn_mu);
}
