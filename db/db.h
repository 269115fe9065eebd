// SPDX-License-Identifier: Apache-2.0
// meta.db: what must survive: LIDs, multicast groups, the blueprint, events. SQLite appears only in this
// folder; one writer thread owns the connection that writes, synchronous=FULL, WAL. Requests are queued and
// their completions come on the loop; reads that the loop needs at start run at db_open().
//
// A damaged file is set aside (meta.db.damaged-<time>), reported, and a new one begun: the fabric itself is
// read instead. A file of a newer schema is refused. A full disk fails the request, never the daemon: it is
// reported once ("db-write-failed") and again when it heals ("db-write-recovered").
//
// A request that fails for such a reason is told to its done() at once, and is kept: weftd goes on with what
// it holds in memory, so that must reach the disk when the disk heals. It is tried again, before anything
// later of its kind, until it succeeds or db_close() (what a later request overrides is left out). So callers
// need not repeat it. Other statuses mean it was refused: -EINVAL (a LID out of 1..0xbfff, LMC above 7, GUID
// 0), -ENAMETOOLONG (255 bytes), -E2BIG (2^20 items, 64 MiB), -ENOBUFS (65,536 requests wait), -ESHUTDOWN
// (from a done() inside db_close()).
//
// Every function is the loop thread's. Virtual time stands still while a request with done() is outstanding.
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
// From now on the loop waits for what it has asked for: completions come in the order of the requests and at
// the same moment of each repetition in virtual time. Before the first request.
void db_in_order(struct db *db);
// Writes what is queued, then closes. done() of what is outstanding runs inside, so whoever went before must
// have called db_cancel(). NULL is fine.
void db_close(struct db *db);

typedef void db_done_fn(void *arg, int status); // on the loop, never inside the call; status 0 = durable
// done() of the outstanding requests with this arg will not run; what they write is written. For a service
// that is freed.
void db_cancel(struct db *db, const void *arg);

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
// row goes); with an LMC that is any overlap of the ranges. done NULL: nobody waits.
void db_lids_put(struct db *db, const char *fabric, const struct db_lid *item, size_t n, db_done_fn *done,
                 void *arg);

// --- multicast groups and their members: (fabric, MGID, port GUID) -> MCMemberRecord as on the wire ---
// port_guid 0 is the group itself. What the record says beside its key is the caller's.
#define DB_GROUP_RECORD 56
struct db_group {
    uint8_t mgid[16];
    uint64_t port_guid;
    uint8_t record[DB_GROUP_RECORD];
};
// All rows of a fabric, ordered by MGID and then port GUID; malloc'd, the caller's. Blocks for a read: at
// start only. Returns the number or negative errno.
long db_groups_load(struct db *db, const char *fabric, struct db_group **ret);
// Adds or replaces in one transaction; items are copied. done NULL: nobody waits.
void db_groups_put(struct db *db, const char *fabric, const struct db_group *item, size_t n, db_done_fn *done,
                   void *arg);
// Each by MGID and port GUID; a group's members are rows of their own.
void db_groups_forget(struct db *db, const char *fabric, const struct db_group *item, size_t n,
                      db_done_fn *done, void *arg);

// --- small named blobs of a fabric (the blueprint, the last tables' fingerprint) ---
void db_blob_put(struct db *db, const char *fabric, const char *name, const void *p, size_t n,
                 db_done_fn *done, void *arg);
// (p NULL removes it.) 0 and malloc'd bytes, with a NUL behind them; -ENOENT. Blocks for a read. Sees what is
// durable.
int db_blob_get(struct db *db, const char *fabric, const char *name, void **ret, size_t *ret_n);

// --- alarms that stand, and silences: telemetry/alarm.h has what they mean ---
struct db_alarm {
    uint64_t id; // above 0; given by the caller
    const char *fabric, *rule, *subject, *place, *peer, *cable, *reason, *evidence, *acked_by, *ack_note,
        *advice;
    const char *grouping; // names of groups, as the caller writes them
    uint64_t leader;      // id of the group that has taken it in; 0
    bool group, acked;
    int severity; // 0..3
    int64_t since_wall_ns, last_wall_ns, cleared_wall_ns;
    uint64_t count;
    uint64_t node_guid[2];
    uint8_t port[2];
};
struct db_silence {
    uint64_t id;
    const char *focus, *rule, *owner, *reason;
    int64_t from_wall_ns, until_wall_ns;
    bool maintenance;
};
// Adds or replaces; strings are copied (NULL = ""; 8 KiB each at most, else -ENAMETOOLONG). -EINVAL: id 0.
void db_alarm_put(struct db *db, const struct db_alarm *a, db_done_fn *done, void *arg);
void db_alarm_forget(struct db *db, uint64_t id, db_done_fn *done, void *arg);
void db_silence_put(struct db *db, const struct db_silence *s, db_done_fn *done, void *arg);
void db_silence_forget(struct db *db, uint64_t id, db_done_fn *done, void *arg);
// By id; each is valid inside the call only. row() must not call db. Blocks for a read: at start only.
// Returns the number or negative errno.
long db_alarms_load(struct db *db, void (*row)(void *arg, const struct db_alarm *a), void *arg);
long db_silences_load(struct db *db, void (*row)(void *arg, const struct db_silence *s), void *arg);
// Ids up to `last` may be given from now on: so none is given twice, whatever row was not written any more.
void db_alarm_reserve(struct db *db, uint64_t last, db_done_fn *done, void *arg);
// The highest that was reserved or stands in a row; 0: none. Blocks for a read. Negative errno.
int db_alarm_last_id(struct db *db, uint64_t *ret);

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
// Id assigned at once (returned; ev->id is ignored), the row written in the background, after half a second
// at most; strings are copied. fabric, kind, severity and subject are cut at 255 bytes, text at 4 KiB,
// between characters; data above 64 KiB becomes {"truncated":true}. NULL strings are "". Ids of one run are
// consecutive; a restart after a crash leaves a gap.
uint64_t db_event_add(struct db *db, const struct db_event *ev);
uint64_t
db_event_last_id(const struct db *db); // the newest given; before the first of this run: none is above it
// fn: of the events that db adds by itself ("database-written-anew"), for those who pass events on.
void db_on_own_event(struct db *db, void (*fn)(void *arg, uint64_t id), void *arg);
struct db_event_query {
    const char *fabric; // NULL = any
    const char *kind;   // NULL = any
    uint64_t after_id;  // only ids above it (0 = from the first)
    uint64_t before_id; // only ids below it (0 = no bound); newest first when set or when newest_first
    bool newest_first;
    int limit; // 1..10000
};
// Calls row() for each, from memory for the recent ones and from a read connection otherwise (blocks,
// milliseconds). Returns rows or negative errno (rows may have come before it). row() must not call db; ev is
// valid inside it only. after_id and before_id together bound both ends.
long db_event_query(struct db *db, const struct db_event_query *q,
                    void (*row)(void *arg, const struct db_event *ev), void *arg);
// Retention: deletes events older than this, in the background, a few thousand rows a transaction. Besides,
// the newest million rows are kept.
void db_event_prune(struct db *db, int64_t before_wall_ns);

// meta.db that is deleted, moved away or replaced while it is open is noticed before the next write, after
// five seconds at most: what is open is written in its place again, what stood there is kept as
// meta.db.replaced-<time>; nothing is durable, and db_health() says so, before that has been done. When that
// was last (monotonic; 0: never), and what of it is to be told.
int64_t db_written_anew(const struct db *db, char *text, size_t size);
// 0 when the last write succeeded, else the negative errno of the failure that lasts (disk full, I/O error).
int db_health(const struct db *db, char *text, size_t size);
// For tests and before an orderly exit: blocks until everything queued is durable or was tried in vain;
// returns db_health(). done() runs later, on the loop.
int db_flush(struct db *db);

#endif
