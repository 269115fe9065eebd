// SPDX-License-Identifier: Apache-2.0
// meta.db: what must survive: LIDs, the blueprint, events. SQLite appears only in this folder; one writer
// thread owns the connection that writes, synchronous=FULL, WAL. Requests are queued and their completions
// come on the loop; reads that the loop needs at start run at db_open().
//
// A damaged file is set aside (meta.db.damaged-<time>), reported, and a new one begun: the fabric itself is
// read instead. A file of a newer schema is refused. A full disk fails the request, never the daemon: it is
// reported once and again when it heals.
#ifndef WEFT_DB_DB_H
#define WEFT_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/loop.h"

struct db;
struct err;

struct db_open_report {
    bool created;
    bool set_aside;         // a damaged file was found
    char set_aside_as[512]; // its new name
    int migrated_from;      // schema version found, when older; else 0
};

// dir: the state directory (made if missing, 0700). NULL and *e when it cannot be used at all: not writable,
// locked by another weftd (says its pid), newer schema.
struct db *db_open(struct loop *l, const char *dir, struct db_open_report *ret, struct err *e);
// Writes what is queued, then closes.
void db_close(struct db *db);

typedef void db_done_fn(void *arg, int status); // on the loop; status 0 = durable

// --- LIDs: (fabric, port GUID) -> base LID, LMC ---
struct db_lid {
    uint64_t port_guid;
    uint16_t lid;
    uint8_t lmc;
};
// All recorded LIDs of a fabric, ordered by LID; malloc'd, the caller's. Blocks for a read: at start only.
// Returns the number or negative errno.
long db_lids_load(struct db *db, const char *fabric, struct db_lid **ret);
// Adds or replaces in one transaction; items are copied. A LID that another GUID held is taken from it (its
// row goes).
void db_lids_put(struct db *db, const char *fabric, const struct db_lid *item, size_t n, db_done_fn *done,
                 void *arg);
void db_lids_forget(struct db *db, const char *fabric, const uint64_t *port_guid, size_t n, db_done_fn *done,
                    void *arg);

// --- small named blobs of a fabric (the blueprint, the last tables' fingerprint) ---
void db_blob_put(struct db *db, const char *fabric, const char *name, const void *p, size_t n,
                 db_done_fn *done, void *arg);
// 0 and malloc'd bytes, -ENOENT. Blocks for a read.
int db_blob_get(struct db *db, const char *fabric, const char *name, void **ret, size_t *ret_n);

// --- events ---
struct db_event {
    uint64_t id;     // given by db, rising, never reused; also over restarts
    int64_t wall_ns; // when
    const char *fabric, *kind,
        *severity;       // kind: lower-case-with-dashes; severity: info, notice, warning, error
    const char *subject; // port, node or "" : what it is about
    const char *text;    // one line for people
    const char *data;    // JSON object or ""
};
// Id assigned at once (returned), the row written in the background; strings are copied.
uint64_t db_event_add(struct db *db, const struct db_event *ev);
struct db_event_query {
    const char *fabric; // NULL = any
    const char *kind;   // NULL = any
    uint64_t after_id;  // only ids above it (0 = from the first)
    uint64_t before_id; // only ids below it (0 = no bound); newest first when set or when newest_first
    bool newest_first;
    int limit; // 1..10000
};
// Calls row() for each, from memory for the recent ones and from a read connection otherwise (blocks,
// milliseconds). Returns rows or negative errno.
long db_event_query(struct db *db, const struct db_event_query *q,
                    void (*row)(void *arg, const struct db_event *ev), void *arg);
// Retention: deletes events older than this, in the background.
void db_event_prune(struct db *db, int64_t before_wall_ns);

// 0 when the last write succeeded, else the negative errno of the failure that lasts (disk full, I/O error).
int db_health(const struct db *db, char *text, size_t size);
// For tests: waits until everything queued is durable.
int db_flush(struct db *db);

#endif
