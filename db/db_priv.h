// SPDX-License-Identifier: Apache-2.0
// For db/ only. File map: open.c (directory, lock, damage, connections), schema.c (migrations), sql.c (small
// SQLite helpers), request.c (LIDs and blobs: the loop's side and their SQL), group.c (the same for multicast
// groups), alarm.c (alarms and silences), event.c (ring, rows, queries), writer.c (the writer thread),
// backlog.c (what could not be written yet), moved.c (meta.db that was taken away).
//
// Who may touch what: each field of struct db is marked [loop], [writer] or [mu]. [init] is set at open and
// never changes while the thread runs.
#ifndef WEFT_DB_DB_PRIV_H
#define WEFT_DB_DB_PRIV_H

#include <pthread.h>
#include <sqlite3.h>

#include "db/db.h"
#include "lib/err.h"

enum {
    DB_FABRIC_MAX = 255,           // bytes of a fabric's name
    DB_NAME_MAX = 255,             // bytes of a blob's name
    DB_BLOB_MAX = 64 << 20,        // bytes of a blob
    DB_LIDS_MAX = 1 << 20,         // items of one request
    DB_QUEUE_MAX = 65536,          // requests waiting
    DB_QUEUE_BYTES = 256 << 20,    // bytes waiting
    DB_BATCH_MAX = 256,            // requests of one transaction
    DB_KEPT_COMPACT = 4096,        // failed requests kept before they are merged
    DB_KEPT_BYTES = 16 << 20,      // the same in bytes
    DB_RING = 4096,                // events kept in memory once written
    DB_RING_MAX = 65536,           // events in memory at most, while they cannot be written; power of two
    DB_RING_BYTES = 64 << 20,      // and their bytes
    DB_EVENT_BATCH = 500,          // rows of one transaction
    DB_EVENT_ROWS = 1000000,       // rows on disk at most
    DB_ID_RANGE = 1 << 20,         // event ids reserved at a time
    DB_PRUNE_CHUNK = 2000,         // rows deleted by one transaction: a LID never waits for a big delete
    DB_EVENT_DELAY_NS = 500000000, // an event's row waits for company at most this long
};
#define DB_LOOK_NS 5000000000LL  // between looks whether meta.db is still there
#define DB_RETRY_NS 1000000000LL // between attempts while writing fails

#define DB_LID_MAX 0xbfff

// --- completions: made and freed on the loop; the writer only sets status and links them into ready ---
struct db_completion {
    struct db_completion *prev, *next; // [loop] all outstanding
    struct db_completion *next_ready;  // [mu]
    db_done_fn *done;                  // [loop] NULL once cancelled
    void *arg;
    int status; // [mu]
};

enum db_kind {
    DB_LIDS_PUT,
    DB_BLOB_PUT, // data NULL: removes
    DB_GROUPS_PUT,
    DB_GROUPS_FORGET,
    DB_ALARM_PUT,
    DB_ALARM_FORGET,
    DB_SILENCE_PUT,
    DB_SILENCE_FORGET,
    DB_ALARM_RESERVE,
};

// One request; the loop makes it, then it is the writer's.
struct db_req {
    struct db_req *next;
    enum db_kind kind;
    char *fabric, *name;    // name: blobs
    struct db_lid *lid;     // n items
    struct db_group *group; // n items; FORGET uses the key alone
    void *data;             // blob
    struct db_alarm *alarm;
    struct db_silence *silence;
    uint64_t id;             // of an alarm or a silence, or to be reserved
    size_t n;                // items or bytes
    struct db_completion *c; // NULL: nobody waits (any more)
};

struct db_req_list {
    struct db_req *head, **tail;
    size_t n, bytes;
};

// --- events ---
struct db_event_rec {
    int refs;    // [mu] the ring's and the writer's
    bool pruned; // [loop] older than the retention: not shown
    size_t bytes;
    struct db_event ev; // strings lie behind
};

struct db_ring {
    struct db_event_rec **slot; // [mu] to change; DB_RING_MAX of them, by id; the loop may read without
    uint64_t first, next;       // [mu] ids in memory: first..next-1
    uint64_t durable;           // [mu] all ids up to it are on disk or lost
    uint64_t reserved;          // [writer] ids up to it are reserved on disk
    size_t bytes;               // [mu]
    uint64_t lost;              // [mu] dropped unwritten since the last recovery
    int64_t due_ns;             // [mu] when the oldest unwritten one must be written
};

struct db_prune {
    bool active;
    uint64_t max_id;
    int64_t before_wall_ns;
};

enum db_stmt {
    DB_ST_LID_STEAL,
    DB_ST_LID_STEAL_AROUND,
    DB_ST_LID_PUT,
    DB_ST_BLOB_PUT,
    DB_ST_BLOB_REMOVE,
    DB_ST_GROUP_PUT,
    DB_ST_GROUP_FORGET,
    DB_ST_ALARM_PUT,
    DB_ST_ALARM_FORGET,
    DB_ST_SILENCE_PUT,
    DB_ST_SILENCE_FORGET,
    DB_ST_ALARM_RESERVE,
    DB_ST_EVENT_PUT,
    DB_ST_RESERVE,
    DB_ST_PRUNE,
    DB_ST_N,
};

struct db_place {      // of a file
    uint64_t dev, ino; // ino 0: it is not there
};

struct db {
    struct loop *loop;         // [init]
    char *dir, *path;          // [init]
    int lock_fd;               // [init]
    bool shared;               // [init] one connection for both threads (see open.c): under conn_mu
    struct loop_waker *waker;  // [init]
    pthread_t thread;          // [init]
    sqlite3 *w;                // [writer]
    sqlite3 *r;                // [loop] w when shared
    sqlite3_stmt *st[DB_ST_N]; // [writer]
    pthread_mutex_t conn_mu;   // only when shared; taken before mu

    struct db_completion outstanding;          // [loop] ring of all
    bool closing;                              // [loop]
    void (*own_event)(void *arg, uint64_t id); // [loop]
    void *own_event_arg;
    bool in_order;           // [loop]
    struct loop_task settle; // [loop]
    uint64_t asked;          // [loop] completions
    uint64_t told;           // [mu] of these

    pthread_mutex_t mu;
    pthread_cond_t wake, flushed, tell;
    struct db_req_list queue;                      // [mu]
    struct db_completion *ready, **ready_tail;     // [mu]
    bool stop, poke;                               // [mu] poke: try now although writing fails
    uint64_t flush_asked, flush_done;              // [mu]
    int health;                                    // [mu] 0 or what lasts
    char health_text[300];                         // [mu]
    int64_t retry_ns;                              // [mu]
    bool note_failed, note_recovered;              // [mu] to be logged on the loop
    uint64_t note_lost_events, note_lost_requests; // [mu]
    struct db_ring ring;
    struct db_prune prune[2]; // [mu] by time, by number of rows

    // moved.c
    struct db_place at, wal_at, copy_at; // [writer] of what is open; of a copy that was put in its place
    int copy_fd;                         // [writer] holds that one
    char gone[80];                       // [writer] what is wrong
    char kept_as[300];                   // [writer] where what stood there last is now
    unsigned kept_num;                   // [writer] all that was kept and is not told of yet
    bool kept_whole;                     // [writer] kept_as is a database, not only its log
    int64_t look_ns;                     // [mu] when to look next
    bool reopen, note_anew;              // [mu] the loop's connection is to the old file
    struct db_place reopen_at;           // [mu] where that is to go
    int64_t anew_ns;                     // [mu]
    char anew_text[700];                 // [mu]

    struct db_req_list kept; // [writer] taken from the queue; failed ones stay
    char fail_text[300];     // [writer] of the failure just seen
};

// sql.c: these return SQLite's extended codes unless they say errno.
int db_exec(sqlite3 *c, const char *sql);
int db_step(sqlite3_stmt *st); // runs a statement without rows, resets it and clears the bindings
int db_get_int(sqlite3 *c, const char *sql, int64_t *ret);
int db_errno(sqlite3 *c, int rc);     // negative errno, 0 for success
bool db_rc_permanent(int rc);         // trying again cannot help
bool db_rc_damage(int rc);            // the file's content is at fault
const char *db_rc_text(int err);      // a negative errno in an operator's words
int db_begin(struct db *db);          // [writer] takes conn_mu too when shared
int db_commit(struct db *db, int rc); // [writer] commits when rc is 0, rolls back else; keeps fail_text
int db_prepare_all(struct db *db);
void db_read_lock(struct db *db); // [loop] around each use of db->r
void db_read_unlock(struct db *db);

// schema.c
#define DB_APPLICATION_ID 0x77656674 // "weft"
extern const int db_schema_newest;
// Runs the steps that version lacks, each in one transaction.
int db_schema_migrate(sqlite3 *c, int version);

// request.c
int db_req_apply(struct db *db, const struct db_req *r); // [writer] inside a transaction
size_t db_req_bytes(const struct db_req *r);
void db_req_free(struct db_req *r);
void db_req_list_init(struct db_req_list *l);
void db_req_list_add(struct db_req_list *l, struct db_req *r);
// [loop] Takes r; a status other than 0 refuses it at once.
void db_req_submit(struct db *db, struct db_req *r, int status);
struct db_req *db_req_new(struct db *db, enum db_kind kind, const char *fabric, db_done_fn *done, void *arg);
int db_req_check(const char *fabric, size_t n); // name and number of items are within bounds
void db_settle(void *arg);                      // [loop] waits for all that was asked and delivers it
void db_deliver(struct db *db);                 // [loop] runs what is in ready, and logs the writer's notes
void db_tell(struct db *db, struct db_req *r, int status); // any thread

// group.c
int db_group_apply(struct db *db, const struct db_req *r); // [writer] inside a transaction

// alarm.c
int db_alarm_apply(struct db *db, const struct db_req *r); // [writer] inside a transaction
size_t db_alarm_bytes(const struct db_req *r);
void db_alarm_free(struct db_alarm *a);
void db_silence_free(struct db_silence *s);

// event.c
// Reserves ids. Negative errno and *e when the file cannot be read; *ret_write_error (negative errno) when it
// can only not be written now.
int db_ring_open(struct db *db, bool new_after_damage, int *ret_write_error, struct err *e);
void db_ring_done(struct db *db);
uint64_t db_ring_pending(const struct db *db); // with mu held
// [writer] one batch; SQLite code. Extends the reservation.
int db_event_write(struct db *db);
int db_event_prune_chunk(struct db *db);  // [writer]
void db_event_release_ids(struct db *db); // [writer] gives back what was reserved but not used: at close

// writer.c
void db_set_health(struct db *db, int err); // with mu held; fail_text belongs to err
int db_writer_start(struct db *db, struct err *e);
void db_writer_stop(struct db *db); // writes what is queued, joins

// open.c
int db_take_lock(struct db *db, struct err *e); // also anew, where somebody has taken the file away
void db_sync_dir(const char *dir);
char *db_free_name(const struct db *db, const char *what); // of a file to be set aside
int db_connect(const char *path, bool exclusive, sqlite3 **ret);
int db_quick_check(sqlite3 *c, char *why, size_t size);

// moved.c
void db_moved_begin(struct db *db); // at open
int db_moved_look(
    struct db *db); // [writer] before a round: negative errno, with fail_text: nothing may be written
void db_moved_reopen(struct db *db); // [loop] before a read

// backlog.c
void db_backlog_compact(struct db_req_list *kept);

#endif
