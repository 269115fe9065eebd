// SPDX-License-Identifier: Apache-2.0
// Telemetry files: time series of counters, kept in three tiers: raw (each sweep) a day, one minute a month,
// one hour a year; each file is dropped by unlink at its own age, or the oldest first when all are above a
// size. What a counter means is not known here: a series is a port, a column a counter, a value 64 bits.
//
// One store a fabric, in a folder of its own under the state directory (telemetry/<fabric>/), locked against
// a second one. One writer thread owns the connections that write. A sweep is one commit (durable against
// kill -9 when series_flush() has returned 0); 60 sweeps of 512 series become a chunk, a sixtieth of the
// series a sweep. Readers have their own read-only connections, see all that is committed, and belong to one
// thread each.
//
// A damaged file is set aside and costs what it held, also while it is written: what is wrong at its
// beginning or end shows before the next sweep, else within the hour; a folder that is gone is made anew. A
// newer schema is refused; a full disk or an I/O error pauses history, is told once, and ends by itself when
// writing works again: collection never waits. Times are wall clock milliseconds. A clock that steps back
// does not stop history: see series_sweep().
#ifndef WEFT_DB_SERIES_H
#define WEFT_DB_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/loop.h"

struct err;
struct series;
struct series_reader;

enum series_tier { SERIES_RAW, SERIES_MINUTE, SERIES_HOUR, SERIES_TIERS };

struct series_opts {
    unsigned columns;      // of a series, at most 64; more than a file has: they are added to it
    uint64_t peak_columns; // bit c: of column c the minute and hour tiers keep the greatest rise between two
                           // sweeps, beside its value
    int64_t keep_ms[SERIES_TIERS]; // age at which a file goes; 0 = a day, 31 days, 366 days
    uint64_t max_bytes;            // of all tiers together; 0 = no bound
    const char *vfs;               // name of an SQLite VFS, for tests; NULL = the default
};
struct series_report {
    bool created;
    unsigned set_aside;     // damaged files found
    char set_aside_as[512]; // the last one's new name
    uint32_t series;        // that are known
    int64_t last_ms;        // time of the newest sweep kept; 0 = none
};
// NULL and *e when the folder cannot be used at all. Runs a quick check of every file of the last two days
// that has not more than 256 MiB; the whole of it is series_check(). dir is made if missing.
struct series *series_open(struct loop *l, const char *dir, const struct series_opts *o,
                           struct series_report *ret, struct err *e);
void series_close(struct series *s); // writes what is queued; NULL is fine

// The number of a series, for good: dense from 0. A new one is durable with the next sweep. UINT32_MAX when
// there are 2^23 already. Series that are read together (a switch's, a rail's) are read faster when their
// numbers are near each other.
uint32_t series_id(struct series *s, uint64_t node_guid, uint8_t port);
uint32_t series_num(const struct series *s);
// What number i stands for.
void series_key(const struct series *s, uint32_t i, uint64_t *ret_guid, uint8_t *ret_port);

// A sweep: value[i * columns + c] of series 0..num-1, have[i] bit c: it was read in this sweep (else it is
// absent, not zero). Copied; all else is the writer's. at_ms: wall clock. When it is not later than the last
// one (a step back) sweeps are kept half as far apart as they are, until the clock has caught up, or, after a
// step of more than a minute, in a new era: what overlaps is read in the order of writing. Never blocks:
// while the writer is behind by more than a few sweeps, sweeps are left out and counted.
void series_sweep(struct series *s, int64_t at_ms, const uint64_t *value, const uint64_t *have, uint32_t num);
// The same in parts, since it copies tens of megabytes: have is copied at once, and values at last when
// series_some() is true; it takes so many blocks of 512 series a call. What a series counts in between may be
// in it. NULL: the queue is full, the sweep is left out. One at a time, and to its end: either it is queued
// then, or series_drop() leaves it out.
struct series_frame;
struct series_frame *series_begin(struct series *s, int64_t at_ms, const uint64_t *have, uint32_t num);
bool series_some(struct series *s, struct series_frame *f, const uint64_t *value, uint32_t blocks);
void series_drop(struct series *s, struct series_frame *f);

struct series_health {
    int status;                // 0, or the negative errno of the failure that lasts: sweeps are left out, or
                               // (left_out stands) minutes, hours, chunks wait
    char text[200];            // what fails, for people
    uint64_t sweeps, left_out; // written, and left out, since the start
    int64_t last_commit_ns, max_commit_ns, cpu_ns; // writer thread
    uint64_t bytes[SERIES_TIERS];
    uint32_t files[SERIES_TIERS];
    int64_t first_ms[SERIES_TIERS]; // oldest that is kept; 0 = nothing
    uint32_t lost;                  // files that were damaged or taken away, found since the start or by it
    int64_t lost_ns;                // wall clock of the last; 0
    char lost_text[400];            // of the last, for people; ""
    uint32_t aside;                 // files in the folder that were set aside, also before
    uint64_t aside_bytes;
    char aside_last[100]; // name of the newest; ""
};
void series_health(const struct series *s, struct series_health *ret);
// What became of a file since the last call (lost_text); false: nothing. One caller.
bool series_news(struct series *s, char *text, size_t size);
// A reader has met damage: the files that are open are read through soon. Any thread.
void series_suspect(struct series *s);
int series_flush(struct series *s); // blocks until all is durable or was tried in vain; for tests and exit

// --- reading: any thread, one reader a thread; blocks ---
struct series_reader *series_reader_new(const char *dir, struct err *e);
void series_reader_free(struct series_reader *r);

struct series_query {
    const uint32_t *series; // sorted; NULL = all
    uint32_t num;
    uint64_t columns;       // bit c
    int64_t from_ms, to_ms; // both included
    int64_t step_ms; // 0: every sweep kept; else one sample a step, the last in it. The tier is the coarsest
                     // that has steps as fine as this, else what there is
    bool peaks;      // the greatest rise between two sweeps in the step instead of the value; what has no
                     // peaks is absent in the coarser tiers
    uint64_t max_points; // more are refused with -E2BIG; 0 = 200 million
};
struct series_point {
    uint32_t series;
    int64_t at_ms;
    uint64_t have;         // bit c, of those asked for
    const uint64_t *value; // [column]; valid in the callback
};
// Points of one series come together, in order of time. fn returns false to stop. Returns the number of
// points, or negative errno and *e; damaged parts are left out and counted in *ret_damaged (may be NULL).
typedef bool series_point_fn(void *arg, const struct series_point *p);
long series_read(struct series_reader *r, const struct series_query *q, series_point_fn *fn, void *arg,
                 uint64_t *ret_damaged, struct err *e);

// Rates of one counter, of groups of series (a rail, a switch): what they rose a second, step by step. A rate
// is between the last samples of two steps, over the time between them, and counts in the later one; where
// the counter went back there is none. Several times as fast as series_read() and a sum. Series that are read
// together should have numbers near each other: then they share chunks.
struct series_rate {
    double sum, max; // a second
    uint32_t num;    // series that have a rate in this step
    uint32_t max_series;
};
// q: one column; step_ms above 0; no peaks. group[i] is that of q->series[i] (of series i where that is
// NULL); groups or more: of none. ret[group * steps + i], zeroed by the caller: step from_ms / step_ms + i,
// so steps is to_ms / step_ms - from_ms / step_ms + 1. Returns rates counted or negative errno.
long series_rates(struct series_reader *r, const struct series_query *q, const uint16_t *group,
                  unsigned groups, struct series_rate *ret, size_t steps, uint64_t *ret_damaged,
                  struct err *e);

// What each series rose between its first and its last sample of a time, for "most of the day": only both
// ends are read (up to 60 samples each: a series that has none there is taken by what it has). step_ms: as in
// series_read(), which tier; peaks are not looked at.
struct series_rise {
    uint32_t series;
    int64_t first_ms, last_ms;
    uint64_t have;         // bit c: of those asked for; there are two samples
    const uint64_t *value; // [column]; valid in the callback. 0 where it went back
};
typedef bool series_rise_fn(void *arg, const struct series_rise *rise);
long series_rises(struct series_reader *r, const struct series_query *q, series_rise_fn *fn, void *arg,
                  uint64_t *ret_damaged, struct err *e);

// For shipping elsewhere: raw sweeps after a cursor, in the order of writing, a window of some sweeps at a
// time: all points of a window come before later ones; within it series after series. A cursor is a text
// that means where to go on, durable over restarts; "" = from the oldest. The caller keeps the new one when
// what it got has arrived; a sample never comes twice or not at all between a cursor and the next. At most
// max_points (but one series of a window, up to 60 points, always comes whole); when fn returned false, the
// series at which it did so comes again. *ret_cursor (64 bytes suffice) is written on success. Returns
// points, 0 when nothing is new.
long series_scan(struct series_reader *r, const char *cursor, size_t max_points, series_point_fn *fn,
                 void *arg, char *ret_cursor, size_t cursor_size, struct err *e);
// The cursor behind all sweeps that are older than at_ms. 0, or negative errno and *e.
int series_scan_begin(struct series_reader *r, int64_t at_ms, char *ret_cursor, size_t cursor_size,
                      struct err *e);
// What a series stands for, as the files say.
int series_reader_key(struct series_reader *r, uint32_t i, uint64_t *ret_guid, uint8_t *ret_port);
uint32_t series_reader_num(struct series_reader *r);
uint32_t series_reader_find(struct series_reader *r, uint64_t node_guid, uint8_t port); // UINT32_MAX

// `weft db check`: SQLite's integrity_check and every chunk decoded, of all files in dir. Calls tell() once a
// file: ok or what is wrong. Returns damaged files.
long series_check(const char *dir, void (*tell)(void *arg, const char *file, const char *text), void *arg);

#endif
