// SPDX-License-Identifier: Apache-2.0
// Rates of groups, and rises between the ends of a time.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/series_bytes.h"
#include "lib/xalloc.h"

struct rates {
    struct series_job j;
    const struct series_query *q;
    struct series_rate *ret; // of the group at hand
    size_t steps;
    int64_t first_step;
    long n;
    struct per_sweep {
        int64_t step;   // index of its step
        double inverse; // 1 / seconds since the sweep before; 0 where that is in the same step, or later
    } * *sweep;         // [source][sweep]
};

// Divisions once a sweep, not once a sample.
static void number_sweeps(struct rates *r)
{
    r->sweep = xcalloc(r->j.sources + 1, sizeof(*r->sweep));
    for (unsigned i = 0; i < r->j.sources; i++) {
        const struct series_times *t = &r->j.source[i].t;
        struct per_sweep *p = r->sweep[i] = xcalloc(t->n + 1, sizeof(**r->sweep));
        for (size_t k = 0; k < t->n; k++) {
            p[k].step = t->at[k] / r->q->step_ms - r->first_step;
            if (k && p[k].step != p[k - 1].step && t->at[k] > t->at[k - 1])
                p[k].inverse = 1000.0 / (double)(t->at[k] - t->at[k - 1]);
        }
    }
}

static inline void add_rate(struct rates *r, uint32_t series, int64_t step, double rate)
{
    struct series_rate *to = &r->ret[step];
    to->sum += rate;
    if (!to->num++ || rate > to->max) {
        to->max = rate;
        to->max_series = series;
    }
    r->n++;
}

// Samples of one series in order; the last of each step is kept until the next step begins.
struct walk {
    int64_t step, at; // of the sample at hand; step INT64_MIN: none
    uint64_t value;
    int64_t before_at; // of the step before; 0: none
    uint64_t before;
};

static inline void end_step(struct rates *r, struct walk *w, uint32_t series)
{
    if (w->before_at && w->at > w->before_at && w->value >= w->before && w->step >= 0 &&
        (uint64_t)w->step < r->steps)
        add_rate(r, series, w->step, (double)(w->value - w->before) * 1000 / (double)(w->at - w->before_at));
    w->before_at = w->at;
    w->before = w->value;
}

// Every sweep of the span ends a step and is asked for: as in minutes read by the minute.
static bool is_plain_span(const struct rates *r, const struct series_span *s)
{
    const struct per_sweep *p = r->sweep[s->src - r->j.source] + s->first;
    const int64_t *at = s->src->t.at + s->first;
    if (!s->value[0] || at[0] < s->src->from_ms || at[s->n - 1] > s->src->to_ms || p[0].step < 0 ||
        (uint64_t)p[s->n - 1].step >= r->steps)
        return false;
    for (unsigned k = 1; k < s->n; k++) {
        if (p[k].inverse == 0 || p[k].step < p[k - 1].step)
            return false;
    }
    return true;
}

// The same for a series that has all samples of it.
static void walk_plain_span(struct rates *r, struct walk *w, const struct series_span *s, unsigned row,
                            uint32_t series)
{
    const struct per_sweep *p = r->sweep[s->src - r->j.source] + s->first;
    const int64_t *at = s->src->t.at + s->first;
    const uint64_t *v = s->value[0] + (size_t)row * s->n;
    struct series_rate *ret = r->ret;
    unsigned n = s->n;
    if (w->step != INT64_MIN && w->step != p[0].step)
        end_step(r, w, series);
    *w = (struct walk){p[0].step, at[0], v[0], w->before_at, w->before};
    if (n < 2)
        return;
    end_step(r, w, series);
    long counted = 0;
    uint64_t before = v[0];
    for (unsigned k = 1; k + 1 < n; k++) {
        struct series_rate *to = &ret[p[k].step];
        uint64_t now = v[k], rise = now - before;
        double rate = (double)(int64_t)rise * p[k].inverse;
        bool back = now < before;
        before = now;
        if (__builtin_expect(back || (int64_t)rise < 0, 0)) {
            if (back)
                continue;
            rate = (double)rise * p[k].inverse;
        }
        to->sum += rate;
        if (!to->num || rate > to->max) {
            to->max = rate;
            to->max_series = series;
        }
        to->num++;
        counted++;
    }
    r->n += counted;
    *w = (struct walk){p[n - 1].step, at[n - 1], v[n - 1], at[n - 2], v[n - 2]};
}

static void walk_span(struct rates *r, struct walk *w, const struct series_span *s, unsigned row,
                      uint32_t series)
{
    const struct per_sweep *p = r->sweep[s->src - r->j.source] + s->first;
    const int64_t *at = s->src->t.at + s->first;
    uint64_t mask = s->value[0] ? s->mask[0][row] : 0;
    for (; mask; mask &= mask - 1) {
        unsigned k = (unsigned)__builtin_ctzll(mask);
        if (at[k] < s->src->from_ms || at[k] > s->src->to_ms)
            continue;
        if (p[k].step != w->step && w->step != INT64_MIN)
            end_step(r, w, series);
        w->step = p[k].step;
        w->at = at[k];
        w->value = s->value[0][(size_t)row * s->n + k];
    }
}

// Span by span, not series by series: the steps that a span counts in stay in the cache.
static void walk_block(struct rates *r, const uint16_t *group, unsigned groups, struct series_rate *ret)
{
    struct walk w[SERIES_BLOCK];
    const struct series_pick *pick = &r->j.pick;
    for (unsigned i = 0; i < pick->rows; i++)
        w[i] = (struct walk){.step = INT64_MIN};
    for (size_t n = 0; n <= r->j.spans; n++) {
        const struct series_span *s = n < r->j.spans ? &r->j.span[n] : NULL;
        bool plain = s && is_plain_span(r, s);
        for (unsigned i = 0; i < pick->rows; i++) {
            uint32_t series = r->j.block * SERIES_BLOCK + pick->row[i];
            if (group[i] >= groups)
                continue;
            r->ret = ret + (size_t)group[i] * r->steps;
            if (plain && s->mask[0][i] == full_mask(s->n))
                walk_plain_span(r, &w[i], s, i, series);
            else if (s)
                walk_span(r, &w[i], s, i, series);
            else if (w[i].step != INT64_MIN)
                end_step(r, &w[i], series);
        }
    }
}

static int check(const struct series_query *q, size_t steps, struct err *e)
{
    if (!q->columns || q->columns & (q->columns - 1) || q->step_ms <= 0 || q->peaks)
        return err_set(e, -EINVAL, NULL, "rates are of one counter, and of steps above 0");
    if (q->to_ms < q->from_ms || q->from_ms < 0 ||
        (uint64_t)(q->to_ms / q->step_ms - q->from_ms / q->step_ms) + 1 != steps)
        return err_set(e, -EINVAL, NULL, "not as many steps as the time has");
    return 0;
}

static void free_sweeps(struct rates *r)
{
    for (unsigned i = 0; r->sweep && i < r->j.sources; i++)
        free(r->sweep[i]);
    free(r->sweep);
}

long series_rates(struct series_reader *rd, const struct series_query *q, const uint16_t *group,
                  unsigned groups, struct series_rate *ret, size_t steps, uint64_t *ret_damaged,
                  struct err *e)
{
    // One step before the first, for its rate.
    struct series_query wide = *q;
    struct rates r = {.q = q, .steps = steps};
    uint32_t at = 0, done = 0;
    int rc = check(q, steps, e);
    if (rc)
        return rc;
    wide.from_ms = (q->from_ms / q->step_ms - 1) * q->step_ms;
    r.first_step = q->from_ms / q->step_ms;
    rc = series_job_init(&r.j, rd, &wide, e);
    if (!rc)
        number_sweeps(&r);
    while (!rc && series_job_next(&r.j, &wide, &at)) {
        rc = series_gather(&r.j);
        uint16_t of[SERIES_BLOCK];
        for (unsigned i = 0; i < r.j.pick.rows; i++, done++)
            of[i] = group[q->series ? done : r.j.block * SERIES_BLOCK + r.j.pick.row[i]];
        if (!rc)
            walk_block(&r, of, groups, ret);
    }
    if (ret_damaged)
        *ret_damaged = r.j.damaged;
    free_sweeps(&r);
    series_job_done(&r.j);
    return rc ? rc : r.n;
}

// --- rises ---

struct rise {
    int64_t first_ms, last_ms;
    uint64_t seen, twice;
    uint64_t first[SERIES_COLUMNS], last[SERIES_COLUMNS];
};

static void rise_span(struct rise *x, const struct series_job *j, const struct series_span *s, unsigned row)
{
    for (unsigned c = 0; c < j->columns; c++) {
        unsigned column = j->column[c];
        uint64_t bit = (uint64_t)1 << column;
        for (uint64_t m = s->value[c] ? s->mask[c][row] : 0; m; m &= m - 1) {
            unsigned k = (unsigned)__builtin_ctzll(m);
            size_t n = s->first + k;
            if (!series_asked(s, k) || n < s->src->lo || n >= s->src->hi)
                continue;
            int64_t at = s->src->t.at[s->first + k];
            uint64_t v = s->value[c][(size_t)row * s->n + k];
            if (!(x->seen & bit))
                x->first[column] = v;
            x->twice |= x->seen & bit;
            x->first_ms = !x->seen || at < x->first_ms ? at : x->first_ms;
            x->last_ms = !x->seen || at > x->last_ms ? at : x->last_ms;
            x->seen |= bit;
            x->last[column] = v;
        }
    }
}

static bool give_rise(struct rise *x, uint32_t series, series_rise_fn *fn, void *arg)
{
    uint64_t value[SERIES_COLUMNS] = {0};
    struct series_rise p = {series, x->first_ms, x->last_ms, x->twice, value};
    for (uint64_t m = x->twice; m; m &= m - 1) {
        int c = __builtin_ctzll(m);
        value[c] = x->last[c] > x->first[c] ? x->last[c] - x->first[c] : 0;
    }
    return fn(arg, &p);
}

long series_rises(struct series_reader *r, const struct series_query *q, series_rise_fn *fn, void *arg,
                  uint64_t *ret_damaged, struct err *e)
{
    struct series_query plain = *q;
    struct series_job j;
    uint32_t at = 0;
    long n = 0;
    bool more = true;
    plain.peaks = false;
    plain.max_points = UINT64_MAX; // two of each series
    int rc = series_job_init(&j, r, &plain, e);
    if (!rc)
        series_job_edges(&j);
    while (!rc && more && series_job_next(&j, &plain, &at)) {
        rc = series_gather(&j);
        for (unsigned i = 0; i < j.pick.rows && !rc && more; i++) {
            struct rise x = {0};
            for (size_t s = 0; s < j.spans; s++)
                rise_span(&x, &j, &j.span[s], i);
            if (!x.twice)
                continue;
            n++;
            more = give_rise(&x, j.block * SERIES_BLOCK + j.pick.row[i], fn, arg);
        }
    }
    if (ret_damaged)
        *ret_damaged = j.damaged;
    series_job_done(&j);
    return rc ? rc : n;
}
