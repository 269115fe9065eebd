// SPDX-License-Identifier: Apache-2.0
// A page of samples as it is written: Prometheus text 0.0.4 or OpenMetrics 1.0.0, plain or gzip. Families
// come one after the other, each with its samples together; a family without samples leaves no trace. Any
// thread, one at a time. Text is compressed as it grows, so that a page costs what is sent of it.
#ifndef WEFT_API_METRICS_PAGE_H
#define WEFT_API_METRICS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

#include "lib/buf.h"

enum metric_type {
    METRIC_COUNTER, // names end in _total
    METRIC_GAUGE,
    METRIC_INFO, // names end in _info; always 1
};

struct metrics_page {
    bool openmetrics, gzip;
    size_t max;    // bytes of out at most
    uint64_t text; // bytes of text so far
    uint64_t samples;
    bool over;      // it would have become larger than max: out is of no use
    struct buf out; // what is sent
    struct buf chunk;
    z_stream z;
    const char *name, *help; // of the family
    enum metric_type type;
    bool begun; // … of which there is a sample
};

// gzip: level 1; after 64 KiB of text the page goes through zlib.
void metrics_page_init(struct metrics_page *p, bool openmetrics, bool gzip, size_t max);
void metrics_page_done(struct metrics_page *p);
// Strings are borrowed until the next family. help: one line.
void metrics_family(struct metrics_page *p, const char *name, enum metric_type type, const char *help);
// labels: `guid="0x1",port="1"`, escaped, without braces; n may be 0.
void metrics_sample(struct metrics_page *p, const char *labels, size_t n, uint64_t value);
void metrics_sample_double(struct metrics_page *p, const char *labels, size_t n, double value);
// What was written elsewhere: a plain page of the same format that has not ended; it is empty then.
void metrics_page_add(struct metrics_page *p, struct metrics_page *from);
void metrics_page_end(struct metrics_page *p);

// name="value", with a comma before it when there is something in b; the value escaped: backslash, quote, new
// line; bytes that are no UTF-8 become U+FFFD.
void metrics_label(struct buf *b, const char *name, const char *value);

#endif
