// SPDX-License-Identifier: Apache-2.0
// Points of the store to requests of remote write: at most 10,000 samples and 1 MB each, compressed. The same
// points make the same requests. Pure; one thread.
//
// Points come as series_scan() gives them, series after series: all samples of a series and counter that come
// together are one TimeSeries.
#ifndef WEFT_TELEMETRY_WRITE_BATCH_H
#define WEFT_TELEMETRY_WRITE_BATCH_H

#include "db/series.h"
#include "telemetry/counters.h"
#include "telemetry/names.h"
#include "telemetry/write_request.h"

#define WRITE_BATCH_SAMPLES 10000u
#define WRITE_BATCH_BYTES (1000u << 10) // before compression
#define WRITE_BATCH_RUN 64u             // samples of a series that are gathered

struct write_batch {
    struct buf block; // compressed
    uint32_t samples;
    int64_t first_ms, last_ms;
};
struct write_labels { // of all series, encoded; of one struct tele_names
    struct rw_labels common;
    struct buf after;
    uint32_t *at, num; // [num + 1], offsets in `after`
    struct buf name[3][TELE_COUNTERS];
};
// own: labels of every series, such as cluster="a"; sorted in. fabric NULL: no such label.
void write_labels_make(struct write_labels *ret, const struct tele_names *n, const char *fabric,
                       const struct rw_label *own, unsigned num_own);
void write_labels_done(struct write_labels *l);

struct write_maker {
    const struct tele_names *names; // borrowed; set by the caller, as are the labels
    const struct write_labels *labels;
    struct write_batch *batch;
    unsigned num, cap;
    uint64_t samples, raw_bytes, block_bytes;
    uint64_t unnamed; // samples of ports that nobody knows
    // what is being made
    struct buf raw;
    uint32_t raw_samples, series;
    int64_t first_ms, last_ms;
    unsigned run;
    uint64_t seen; // bit c: there are samples of counter c in the run
    unsigned count[TELE_COUNTERS];
    struct rw_sample *sample; // [counter * WRITE_BATCH_RUN + k]
};
void write_maker_init(struct write_maker *m);
void write_maker_done(struct write_maker *m);
void write_maker_clear(struct write_maker *m); // no batches, no counts
// Series are numbered as in names.
void write_maker_point(struct write_maker *m, const struct series_point *p);
void write_maker_end(struct write_maker *m); // the last batch is closed

#endif
