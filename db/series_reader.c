// SPDX-License-Identifier: Apache-2.0
// The reader: what series there are, and points one after the other.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/series_bytes.h"
#include "lib/xalloc.h"

// --- the reader ---

static int load_all_keys(struct series_reader *r, struct err *e)
{
    struct series_name *list;
    long n = series_names(r->dir, &list);
    if (n < 0)
        return err_set(e, (int)n, r->dir, "cannot list: %s", strerror((int)-n));
    for (long i = 0; i < n; i++) {
        bool last = i + 1 == n || list[i + 1].tier != list[i].tier;
        struct series_file f;
        if (last && !series_file_open(&f, r->dir, &list[i], false, NULL, NULL)) {
            (void)series_load_keys(&f, &r->key, &r->num);
            series_file_close(&f);
        }
    }
    free(list);
    return 0;
}

struct series_reader *series_reader_new(const char *dir, struct err *e)
{
    struct series_reader *r = xcalloc(1, sizeof(*r));
    r->dir = xstrdup(dir);
    if (load_all_keys(r, e)) {
        series_reader_free(r);
        return NULL;
    }
    return r;
}

void series_reader_free(struct series_reader *r)
{
    if (r) {
        free(r->dir);
        free(r->key);
        free(r);
    }
}

int series_reader_key(struct series_reader *r, uint32_t i, uint64_t *ret_guid, uint8_t *ret_port)
{
    if (i >= r->num)
        return -ENOENT;
    *ret_guid = r->key[i].guid;
    *ret_port = r->key[i].port;
    return 0;
}

uint32_t series_reader_num(struct series_reader *r)
{
    return r->num;
}

uint32_t series_reader_find(struct series_reader *r, uint64_t node_guid, uint8_t port)
{
    for (uint32_t i = 0; i < r->num; i++) {
        if (r->key[i].guid == node_guid && r->key[i].port == port)
            return i;
    }
    return UINT32_MAX;
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
    int64_t step, at;
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
            int64_t step = p->q->step_ms > 0 ? at / p->q->step_ms : 0;
            if (p->q->step_ms <= 0 || step != p->step)
                end_sample(p);
            p->step = step;
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
            p.step = INT64_MIN;
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
