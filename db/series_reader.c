// SPDX-License-Identifier: Apache-2.0
// The reader: what series there are, and points one after the other.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "db/series_bytes.h"
#include "lib/xalloc.h"

// --- the reader ---

// Every file has the keys of all series that were known at its last commit: raw has the newest.
void series_reader_keys(struct series_reader *r)
{
    struct series_name *list;
    long n = series_names(r->dir, &list);
    bool done = false;
    r->looked_ns = mono_now().ns;
    for (int t = 0; n > 0 && t < SERIES_TIERS && !done; t++) {
        for (long i = n - 1; i >= 0 && !done; i--) {
            struct series_file f;
            if (list[i].tier != (enum series_tier)t ||
                series_file_open(&f, r->dir, &list[i], SERIES_READ, NULL, NULL))
                continue;
            done = !series_load_keys(&f, &r->key, &r->num) && r->num;
            series_file_close(&f);
        }
    }
    if (n >= 0)
        free(list);
}

struct series_reader *series_reader_new(const char *dir, struct err *e)
{
    struct stat st;
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        err_set(e, -ENOENT, dir, "no telemetry is kept here");
        return NULL;
    }
    struct series_reader *r = xcalloc(1, sizeof(*r));
    r->dir = xstrdup(dir);
    return r;
}

void series_reader_free(struct series_reader *r)
{
    if (r) {
        free(r->dir);
        free(r->key);
        free(r->index.at);
        free(r);
    }
}

// Looks again for what is newer than the reader.
int series_reader_key(struct series_reader *r, uint32_t i, uint64_t *ret_guid, uint8_t *ret_port)
{
    if (i >= r->num)
        series_reader_keys(r);
    if (i >= r->num)
        return -ENOENT;
    *ret_guid = r->key[i].guid;
    *ret_port = r->key[i].port;
    return 0;
}

uint32_t series_reader_num(struct series_reader *r)
{
    series_reader_keys(r);
    return r->num;
}

static uint32_t find(struct series_reader *r, uint64_t node_guid, uint8_t port)
{
    if (!r->num)
        return UINT32_MAX;
    if (r->indexed != r->num)
        series_index_make(&r->index, r->key, r->num);
    r->indexed = r->num;
    return *series_index_find(&r->index, r->key, node_guid, port);
}

uint32_t series_reader_find(struct series_reader *r, uint64_t node_guid, uint8_t port)
{
    uint32_t i = find(r, node_guid, port);
    // Perhaps a newer one; but who asks for many that are not there need not wait for each.
    if (i == UINT32_MAX && (!r->looked_ns || mono_now().ns - r->looked_ns > MONO_S)) {
        series_reader_keys(r);
        i = find(r, node_guid, port);
    }
    return i;
}

// --- points ---

struct points {
    struct series_job j;
    const struct series_query *q;
    series_point_fn *fn;
    void *arg;
    long n;
    bool stopped;
    // the sample that is being put together: of a sweep, or of a step
    uint32_t series;
    int64_t step_end, at;
    uint64_t have, value[SERIES_COLUMNS];
    // for peaks of raw sweeps
    int64_t before_seq;
    uint64_t before_have, before[SERIES_COLUMNS];
};

static void end_sample(struct points *p)
{
    struct series_point point = {p->series, p->at, p->have, p->value};
    if (p->have && !p->stopped) {
        p->n++;
        p->stopped = !p->fn(p->arg, &point);
    }
    p->have = 0;
}

static void set_peak(struct points *p, unsigned column, uint64_t v)
{
    uint64_t bit = (uint64_t)1 << column;
    if (!(p->have & bit) || v > p->value[column])
        p->value[column] = v;
    p->have |= bit;
}

// A rise is one between two sweeps that follow each other, both with the counter.
static void add_raw_peaks(struct points *p, const struct series_span *s, unsigned row, unsigned k)
{
    int64_t seq = s->src->t.seq[s->first + k];
    uint64_t have = 0;
    for (unsigned c = 0; c < p->j.columns; c++) {
        unsigned column = p->j.column[c];
        if (!s->value[c] || !(s->mask[c][row] >> k & 1))
            continue;
        uint64_t v = s->value[c][(size_t)row * s->n + k];
        if (seq == p->before_seq + 1 && p->before_have >> column & 1 && series_asked(s, k))
            set_peak(p, column, v >= p->before[column] ? v - p->before[column] : 0);
        p->before[column] = v;
        have |= (uint64_t)1 << column;
    }
    p->before_have = have;
    p->before_seq = seq;
}

static void add_values(struct points *p, const struct series_span *s, unsigned row, unsigned k)
{
    for (unsigned c = 0; c < p->j.columns; c++) {
        unsigned column = p->j.column[c];
        if (!s->value[c] || !(s->mask[c][row] >> k & 1))
            continue;
        uint64_t v = s->value[c][(size_t)row * s->n + k];
        if (p->j.peaks) {
            set_peak(p, column, v);
        } else {
            p->value[column] = v;
            p->have |= (uint64_t)1 << column;
        }
    }
}

static void add_span(struct points *p, const struct series_span *s, unsigned row)
{
    bool raw_peaks = p->j.peaks && s->src->file.name.tier == SERIES_RAW;
    for (unsigned k = 0; k < s->n && !p->stopped; k++) {
        int64_t at = s->src->t.at[s->first + k];
        bool asked = series_asked(s, k);
        if (asked) {
            // A division only where a step may have ended.
            if (p->q->step_ms <= 0 || at >= p->step_end || at < p->step_end - p->q->step_ms) {
                end_sample(p);
                p->step_end = p->q->step_ms > 0 ? (at / p->q->step_ms + 1) * p->q->step_ms : 0;
            }
            p->at = at;
        }
        if (raw_peaks)
            add_raw_peaks(p, s, row, k);
        else if (asked)
            add_values(p, s, row, k);
    }
}

long series_read(struct series_reader *r, const struct series_query *q, series_point_fn *fn, void *arg,
                 uint64_t *ret_damaged, struct err *e)
{
    struct points p = {.q = q, .fn = fn, .arg = arg};
    uint32_t at = 0;
    int rc = series_job_init(&p.j, r, q, e);
    while (!rc && !p.stopped && series_job_next(&p.j, q, &at)) {
        rc = series_gather(&p.j);
        for (unsigned i = 0; i < p.j.pick.rows && !rc && !p.stopped; i++) {
            p.series = p.j.block * SERIES_BLOCK + p.j.pick.row[i];
            p.before_have = 0;
            p.step_end = 0;
            for (size_t s = 0; s < p.j.spans; s++)
                add_span(&p, &p.j.span[s], i);
            end_sample(&p);
        }
    }
    if (ret_damaged)
        *ret_damaged = p.j.damaged;
    series_job_done(&p.j);
    return rc ? rc : p.n;
}
