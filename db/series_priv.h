// SPDX-License-Identifier: Apache-2.0
// For db/ only: the telemetry store. File map, writing: series.c (open, series, the copy of a sweep, health),
// series_writer.c (the thread), series_watch.c (what others do to open files), series_out.c (a tier's files:
// commits, chunks), series_tier.c (minute and hour from what was written below), series_keep.c (what goes
// when). Bytes: series_head.c, series_chunk.c (pure), series_bytes.h. Files: series_file.c (names, schema,
// keys, statements), series_check.c. Reading: series_source.c (which files), series_block.c (values of a
// block), series_reader.c (points), series_rate.c (rates of groups, rises), series_scan.c (behind a cursor).
//
// Files: raw-YYYYMMDD.db, min-YYYYMMDD.db, hour-YYYYMM.db (UTC), all of one schema. Sweeps have numbers (seq)
// that rise in the order of writing, over all raw files, with a gap at each start. Series i is number i % 512
// of block i / 512. A sweep is a row in `sweep` and a row a block in `head`, coded against the row before it,
// a key row at the latest after 60. A chunk is a block's 60 sweeps, column by column: `chunk` says where in
// `part` each column stands. A head row that a chunk covers stays until all blocks have chunks of its sweep
// (rows go in the order in which they came: no page is half empty), and counts no more.
#ifndef WEFT_DB_SERIES_PRIV_H
#define WEFT_DB_SERIES_PRIV_H

#include <pthread.h>
#include <sqlite3.h>

#include "db/series.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "lib/hash.h"

enum {
    SERIES_BLOCK = 512, // series coded together
    SERIES_WINDOW = 60, // sweeps of a chunk
    SERIES_COLUMNS = 64,
    SERIES_IDS = 128,           // of columns as files have them: values, then peaks
    SERIES_NUM_MAX = 1 << 23,   // series
    SERIES_SEQ_GAP = 1 << 16,   // between the sweeps of two runs
    SERIES_QUEUE = 4,           // sweeps that wait for the writer
    SERIES_MASKS = 128,         // different masks of presence in a row or chunk, at most
    SERIES_PART_OWN = 12 << 10, // bytes of a column that has a row of its own
    SERIES_ROW_MAX = 16 << 20,  // bytes of a head row or part that are looked at
    SERIES_ID_BLOCK_BITS = 16,  // head.id = seq << 16 | block
};
#define SERIES_PAGE 8192                 // bytes
#define SERIES_APPLICATION_ID 0x77667473 // "wfts"
#define SERIES_SCHEMA 1
#define SERIES_POINTS_MAX 200000000ULL // of a query that says nothing
#define SERIES_SEQ_MAX ((int64_t)1 << 46)

// --- series_head.c: pure, hostile input ---

// A block's sweeps as columns.
struct series_grid {
    unsigned n, series;          // sweeps (at most 64), series
    uint64_t *value[SERIES_IDS]; // [i * n + k]; NULL = no such column
    uint64_t *mask[SERIES_IDS];  // [i], bit k: there
};
void series_grid_init(struct series_grid *g, unsigned n, unsigned series);
void series_grid_shorten(struct series_grid *g, unsigned n); // to the first n sweeps
bool series_grid_empty(const struct series_grid *g);
void series_grid_done(struct series_grid *g);
void series_grid_column(struct series_grid *g, unsigned id); // makes it, all absent

// What a head row is coded against: the same on both sides.
struct series_chain {
    uint64_t *last[SERIES_IDS];                    // [SERIES_BLOCK] newest value; NULL = none
    uint64_t known[SERIES_IDS][SERIES_BLOCK / 64]; // it came since the key row
};
void series_chain_done(struct series_chain *c);
uint64_t *series_chain_column(struct series_chain *c, unsigned id); // its last[], made if missing

// One block's part of a sweep.
struct series_slice {
    unsigned series, columns;
    const uint8_t *id;            // [columns]
    const uint64_t *const *value; // [column][i]; NULL: nobody has it
    const uint64_t *have[2];      // [i]: values, peaks (may be NULL)
};
// seed: of the checksum, from where the row stands.
void series_head_encode(struct buf *out, struct series_chain *c, const struct series_slice *s, bool key,
                        uint64_t seed);
bool series_head_is_key(const void *p, size_t size); // as it says; the row is not checked
// Takes the row into the chain, and its values of the columns wanted into sweep k of g (may be NULL).
// -EBADMSG: damaged, or not a key row while the chain has none (have_key).
int series_head_decode(const void *p, size_t size, uint64_t seed, struct series_chain *c, bool *have_key,
                       const uint64_t want[2], struct series_grid *g, unsigned k);

// --- series_chunk.c: the same for chunks ---
struct series_parts { // encoder; zeroed to begin with, then used again and again
    struct buf dir, part[SERIES_IDS + 1];
    unsigned num; // parts
    struct buf section;
    struct ZSTD_CCtx_s *z;
};
void series_parts_done(struct series_parts *p);
// g is used up.
void series_chunk_encode(struct series_parts *out, struct series_grid *g, uint64_t seed);

struct series_dir {
    unsigned n, series, columns, masks, parts;
    struct series_section {
        uint8_t id, mask, other, part; // other: column + 1 that this one is a difference from
        uint32_t off, len, sum;
    } column[SERIES_IDS], presence[SERIES_MASKS];
};
struct series_unpacker { // decoder; zeroed to begin with
    struct ZSTD_DCtx_s *z;
};
void series_unpacker_done(struct series_unpacker *u);
struct series_pick { // which series of the block, in order
    uint16_t row[SERIES_BLOCK];
    unsigned rows;
};
int series_dir_decode(const void *p, size_t size, uint64_t seed, struct series_dir *ret);
const struct series_section *series_dir_find(const struct series_dir *d, unsigned id);
// part: the whole row that the section stands in. ret: [series] of the chunk; mask 1..masks.
int series_mask_decode(struct series_unpacker *u, const struct series_dir *d, unsigned mask, const void *part,
                       size_t size, uint64_t seed, uint64_t *ret);
// mask NULL: all are there. First what the section says, [row of pick * n + …], then, with the runs of the
// other column where it has one, values at their sweeps.
int series_runs_decode(struct series_unpacker *u, const struct series_dir *d, const struct series_section *s,
                       const void *part, size_t size, uint64_t seed, const uint64_t *mask,
                       const struct series_pick *pick, uint64_t *ret);
void series_runs_expand(const struct series_dir *d, const struct series_section *s, const uint64_t *mask,
                        const struct series_pick *pick, const uint64_t *other, uint64_t *v);
uint64_t series_sum(const void *p, size_t n, uint64_t seed);
static inline uint64_t series_seed(uint64_t block, int64_t seq)
{
    return hash_mix64(hash_mix64(block + 1) ^ (uint64_t)seq);
}
// at: times of the chunk's n sweeps: a time that was changed is found by it.
static inline uint64_t series_chunk_seed(uint64_t block, int64_t seq0, const int64_t *at, unsigned n)
{
    return series_sum(at, n * sizeof(*at), series_seed(block, seq0));
}
static inline uint64_t series_head_seed(uint64_t block, int64_t seq, int64_t at_ms)
{
    return series_seed(block, seq) ^ hash_mix64((uint64_t)at_ms);
}

// --- series_file.c: one file, as the writer or a reader has it ---
struct series_key {
    uint64_t guid;
    uint8_t port;
};
enum { SERIES_NAME_MAX = 32 };
struct series_name { // of a file
    char text[SERIES_NAME_MAX];
    enum series_tier tier;
    int64_t from_ms, to_ms; // period: to_ms is the next one's begin
};
enum series_stmt {
    SERIES_ST_SWEEP,
    SERIES_ST_HEAD,
    SERIES_ST_PART,
    SERIES_ST_CHUNK,
    SERIES_ST_KEYS,
    SERIES_ST_TAIL, // sweeps that a block has no chunk of, with its head rows
    SERIES_ST_TRIM,
    SERIES_ST_TIMES,
    SERIES_ST_CHUNKS,
    SERIES_ST_DONE,
    SERIES_ST_GET_PART,
    SERIES_ST_N,
};
struct series_file {
    struct series_name name;
    char *path;
    sqlite3 *c;
    sqlite3_stmt *st[SERIES_ST_N];
    char fail_text[400];
    bool empty; // no tables yet
};
void series_name_of(enum series_tier tier, int64_t at_ms, struct series_name *ret);
bool series_name_parse(const char *text, struct series_name *ret);
// Files of a folder, by tier and time; malloc'd. Returns their number or negative errno.
long series_names(const char *dir, struct series_name **ret);
// Negative errno and *e. -EBADMSG: damaged, -EPROTONOSUPPORT: of a newer schema, -ENOENT.
enum series_mode {
    SERIES_READ,
    SERIES_WRITE, // and create
    SERIES_ALONE, // read and write, nobody else has it open; not created
};
int series_file_open(struct series_file *f, const char *dir, const struct series_name *name,
                     enum series_mode mode, const char *vfs, struct err *e);
void series_file_close(struct series_file *f);
int series_file_fail(struct series_file *f, int rc); // SQLite code -> negative errno, with fail_text
sqlite3_stmt *series_stmt(struct series_file *f,
                          enum series_stmt which);        // prepared when first asked for; NULL
int series_step(struct series_file *f, sqlite3_stmt *st); // without rows: 0 or negative errno
const void *series_get_part(struct series_file *f, int64_t id, size_t *ret_size); // until the next; NULL
int series_check_header(const char *path, struct err *e);                         // of a file, without SQLite
int series_quick_check(struct series_file *f);
// Newest seq and time; 0 when there are none.
int series_newest(struct series_file *f, int64_t *ret_seq, int64_t *ret_ms);
// Adds what the file knows: key[i] for i < *num; grows.
int series_load_keys(struct series_file *f, struct series_key **key, uint32_t *num);
int series_save_keys(struct series_file *f, uint32_t block, const struct series_key *key, uint32_t num);
// What a file has beside it. The file itself first: without it the others mean nothing.
enum { SERIES_SUFFIXES = 4 };
extern const char *const series_suffix[SERIES_SUFFIXES];
int series_set_aside(const char *path, char *ret_name, size_t size);

struct series_index { // (GUID, port) -> number
    uint32_t *at, mask;
};
void series_index_make(struct series_index *x, const struct series_key *key, uint32_t num); // anew
// Where the number stands, or would stand: UINT32_MAX there.
uint32_t *series_index_find(const struct series_index *x, const struct series_key *key, uint64_t guid,
                            uint8_t port);

// --- the store ---
struct series_sample { // of a tier: a sweep, or what a minute or an hour made
    int64_t seq, at_ms;
    uint32_t num, blocks;
    unsigned columns;
    uint8_t id[SERIES_IDS];
    const uint64_t *have[2]; // [num]; peaks: NULL = none
    const uint64_t **value;  // [block * columns + column][i]
};
struct series_frame { // a sweep on its way from the caller to the writer
    struct series_frame *next;
    struct series_sample s;
    uint32_t known; // series that have numbers
    uint64_t *have, *value;
    size_t have_cap, value_cap, place_cap;
    uint32_t filled; // blocks
};
// A minute or an hour in the making, of what the tier below has written. Its values are the last ones of
// that tier's chains.
struct series_fold {
    int64_t step_ms, step; // step: number of the present one
    bool any;              // it has samples
    bool stale;            // to be made again from the files: something failed, or we begin
    int64_t seq, at_ms;    // of the last sample
    uint32_t num, cap;
    uint64_t *have[2]; // [cap] in the step: values, peaks
    uint64_t *before;  // [cap] what the last sweep had (of raw)
    uint64_t *peak;    // [place * cap + i], by place in peak_columns
};
struct series_block {
    struct series_chain chain;
    bool key;           // the next head row must be one
    unsigned since_key; // head rows after the last one
    int64_t done_seq;   // chunks of the present file reach to here
};
struct series_marks { // a file and its log, as we have left them
    bool known;
    int64_t size, wal_size, shm_size;
    uint64_t wal_ino;
    uint8_t head[100], wal_head[32];
};
struct series_out { // a tier, as the writer has it
    enum series_tier tier;
    struct series_file file; // c NULL: none is open
    struct series_block *block;
    uint32_t blocks;
    uint64_t sweeps; // written to this file, counting those that were there
    int64_t next_part;
    uint32_t keys; // saved in this file
    struct series_parts parts;
    struct series_fold fold; // what becomes of it in the next tier
    int error;               // of the last sample
    int chunk_error;         // the last attempt to make chunks failed: they are made later
    int wal_pages;
    int64_t checked_ns; // last checkpoint
    int64_t aside_ns;   // when a file was last set aside
    struct series_marks marks;
    char bad[200]; // what is known against the file: it is to be set aside; ""
};
struct series {
    char *dir;
    struct series_opts o;
    int lock_fd;
    // caller's thread
    struct series_key *key;
    uint32_t num, key_cap;
    struct series_index index;
    int64_t last_ms, next_seq;
    int64_t given_ms, every_ms; // time of the last sweep as the clock had it; between the last two
    // writer
    pthread_t thread;
    struct series_out out[SERIES_TIERS];
    struct series_key *wkey;
    uint32_t wnum;
    int64_t kept_ns, patient_ns, newest_ms; // series_keep.c
    bool keep_now;                          // a file was begun or ended
    struct series_kept {                    // what was found
        uint64_t bytes[SERIES_TIERS];
        uint32_t files[SERIES_TIERS];
        int64_t first_ms[SERIES_TIERS];
        char first[SERIES_TIERS][SERIES_NAME_MAX]; // the file that first_ms is of
        bool over;                                 // the limit, with nothing left to go
        uint32_t aside;                            // files that were set aside, of this and earlier runs
        uint64_t aside_bytes;
        char aside_last[100];
    } kept;
    // under mu
    pthread_mutex_t mu;
    pthread_cond_t wake, done;
    struct series_frame *queue, **queue_tail, *spare;
    unsigned queued;
    bool stop, news;
    struct series_health health;
    struct series_look { // reads open files through; series_watch.c
        pthread_t thread;
        pthread_cond_t wake;
        bool runs, stop, asked;
        int64_t asked_s; // last
        sqlite3 *c;      // of the one that is being read
        char open[SERIES_TIERS][SERIES_NAME_MAX], found[SERIES_TIERS][200];
        unsigned opened[SERIES_TIERS];
    } look;
};
int series_take_folder(struct series *s,
                       struct err *e); // series.c: makes it where it is missing, and locks it

// --- series_watch.c: what others do to the files ---
void series_marks_take(struct series_out *o);
const char *series_marks_compare(const struct series_out *o); // what somebody has done; NULL: nothing
// Before anybody looks at a log. was: bytes that its index had when we left it; 0: not known.
void series_mend_shm(const char *path, int64_t was);
int series_hold_folder(struct series *s, struct err *e); // where it is gone: makes it anew
// A file was lost; as: where it is now, or NULL.
void series_note(struct series *s, const char *file, const char *why, const char *as);
int series_look_start(struct series *s);
void series_look_stop(struct series *s);
void series_look_open(struct series *s, enum series_tier t, const char *name); // the writer has begun with it
bool series_look_found(struct series *s, enum series_tier t, char *text, size_t size); // damage in it; once

// --- series_out.c: a tier's files; writer thread ---
int series_out_write(struct series *s, struct series_out *o, const struct series_sample *m);
int series_out_close(struct series *s, struct series_out *o);  // chunks of all, then closes the file
void series_out_watch(struct series *s, struct series_out *o); // before anything is written
void series_out_idle(struct series_out *o, int64_t now_ns);    // checkpoint, when there is something
void series_out_blocks(struct series_out *o, uint32_t blocks); // has at least so many
void series_out_forget(struct series_out *o);                  // every next head row is a key row
void series_out_done(struct series_out *o);

// --- series_tier.c: writer thread ---
void series_fold_init(struct series *s);
void series_fold_done(struct series_fold *f);
int series_tier_write(struct series *s, enum series_tier t, const struct series_sample *m);
void series_tier_begin(struct series *s); // takes up minute and hour where the files stand

// --- series_keep.c: writer thread; what is too old or too much, and what there is ---
void series_keep(struct series *s, int64_t now_ms, int64_t mono_ns);

// --- series_writer.c ---
void *series_writer_main(void *arg);
void series_frame_free(struct series_frame *f);

// --- reading: series_source.c, series_block.c, series_reader.c ---
struct series_times { // of a file's sweeps, in the order of writing
    int64_t *seq, *at;
    size_t n;
};
struct series_source { // a file within a query
    struct series_file file;
    int64_t from_ms, to_ms; // what of it is asked for
    struct series_times t;
    size_t lo, hi;           // sweeps that may be asked for
    size_t skip_lo, skip_hi; // but not these
    int64_t head_seq;        // sweeps below it have no head rows any more
};
struct series_span { // values of some series at n sweeps that follow each other
    const struct series_source *src;
    size_t first; // index of times
    unsigned n;
    uint64_t *value[SERIES_IDS],
        *mask[SERIES_IDS]; // by place in the job's list; [row * n + k], [row]
};
struct series_reader {
    char *dir;
    struct series_key *key;
    uint32_t num;
    struct series_index index;
    uint32_t indexed;  // so many of the keys are in it
    int64_t looked_ns; // when keys were last read
};
struct series_job {
    struct series_reader *r;
    struct err *e;
    uint8_t column[SERIES_IDS]; // or, not of a query, ids
    unsigned columns;
    bool peaks;
    struct series_source *source;
    unsigned sources;
    uint64_t damaged;
    struct series_unpacker u;
    // of the block at hand
    uint32_t block;
    struct series_pick pick;
    struct series_span *span;
    size_t spans, span_cap;
    uint64_t *other;
    struct series_slab {
        uint64_t *p;
        size_t used, cap;
    } * pool;
    size_t slabs, slab; // slab: the one in use
};
// Opens what q asks for. In any case to be followed by series_job_done().
int series_job_init(struct series_job *j, struct series_reader *r, const struct series_query *q,
                    struct err *e);
void series_job_done(struct series_job *j);
void series_job_edges(struct series_job *j);      // only the first and the last 60 samples
void series_reader_keys(struct series_reader *r); // the newest
int series_source_open(struct series_source *s, const char *dir, const struct series_name *name,
                       struct err *e);
void series_source_close(struct series_source *s);
size_t series_find_seq(const struct series_times *t, int64_t seq); // the first that is not below
// The next series of q, as many of one block as memory bears; *at: where in q (begin with 0). false: no more.
bool series_job_next(struct series_job *j, const struct series_query *q, uint32_t *at);
int series_gather(struct series_job *j); // their values, into span[]
// Sweep k of the span is asked for.
static inline bool series_asked(const struct series_span *s, unsigned k)
{
    int64_t at = s->src->t.at[s->first + k];
    return at >= s->src->from_ms && at <= s->src->to_ms;
}

#endif
