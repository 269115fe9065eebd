// SPDX-License-Identifier: Apache-2.0
// Prometheus remote write 1.0 on the wire: a WriteRequest in protocol buffers, written by hand, compressed as
// one snappy block.
//
//     WriteRequest { repeated TimeSeries timeseries = 1; }
//     TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; }
//     Label        { string name = 1; string value = 2; }
//     Sample       { double value = 1; int64 timestamp = 2; }      ms since 1970
//
// Labels are encoded once and copied afterwards: those of a series are cut where "__name__" belongs (labels
// go sorted by name), so that a sample costs two copies, the metric's name between them, and its value. Pure.
// https://prometheus.io/docs/specs/remote_write_spec/
#ifndef WEFT_TELEMETRY_WRITE_REQUEST_H
#define WEFT_TELEMETRY_WRITE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"

struct rw_label {
    const char *name, *value; // UTF-8; a value that is empty means that there is no such label
};
struct rw_labels {     // encoded; owned
    struct buf before; // names that sort before "__name__"
    struct buf after;  // … behind it
};
#define RW_LABELS_MAX 40
// Sorted here; n at most RW_LABELS_MAX, names differ. ret is emptied first.
void rw_labels_set(struct rw_labels *ret, const struct rw_label *l, unsigned n);
void rw_labels_done(struct rw_labels *l);
void rw_name_set(struct buf *ret, const char *metric); // the label __name__, encoded; ret is emptied first

struct rw_sample {
    int64_t at_ms;
    double value;
};
struct rw_text {
    const char *p;
    size_t n;
};
// One TimeSeries behind what is in b: label is what rw_labels and rw_name_set() made, before, name, after.
// Samples of a series go in order of time.
void rw_series(struct buf *b, const struct rw_text label[3], const struct rw_sample *s, unsigned n);
size_t rw_series_bytes(const struct rw_text label[3], unsigned n); // at most

// The whole request as one snappy block into ret, which is emptied first; 0, or -ENOMEM.
int rw_compress(const struct buf *request, struct buf *ret);

// "[a-zA-Z_][a-zA-Z0-9_]*", not beginning with "__".
bool rw_label_name_ok(const char *name);

#endif
