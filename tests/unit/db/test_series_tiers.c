// SPDX-License-Identifier: Apache-2.0
// Minutes and hours are what raw sweeps make of them, whatever happens between; files go at their age.
#include <dirent.h>

#include "tests/unit/db/seriessteps.h"

static long files_of(struct sfix *f, enum series_tier t)
{
    struct series_name *list;
    long n = series_names(f->dir, &list), k = 0;
    for (long i = 0; i < n; i++)
        k += list[i].tier == t;
    free(list);
    return k;
}

static void minutes_and_hours(void **state)
{
    struct sfix *f = *state;
    int64_t at = T0;
    s_open(f);
    s_series(f, 20);
    for (int i = 0; i < 3000; i++) {
        s_count(f);
        s_sweep(f, at += 10000);
    }
    assert_int_equal(files_of(f, SERIES_MINUTE), 1);
    assert_int_equal(files_of(f, SERIES_HOUR), 1);
    verify_all(f);
    // Without raw they still say the same, up to the last minute.
    struct series_health h;
    series_health(f->s, &h);
    assert_true(h.files[SERIES_RAW] == 1 && h.bytes[SERIES_RAW] > 0 && h.first_ms[SERIES_RAW] == T0 + 10000);
}

// Restarts, gaps, new series, midnight, at every moment.
static void minutes_and_hours_of_anything(void **state)
{
    struct sfix *f = *state;
    for (unsigned seed = 1; seed <= 3; seed++) {
        int64_t at = f->n ? f->sweep[f->n - 1].at_ms : T0;
        rng_init(&f->rng, seed);
        if (seed == 1)
            s_open(f);
        s_series(f, f->num + 1);
        for (int i = 0; i < 700; i++) {
            uint32_t dice = rng_below(&f->rng, 100);
            if (dice < 3)
                s_reopen(f);
            if (dice == 4)
                s_series(f, f->num + rng_below(&f->rng, 100));
            if (dice == 5)
                at += rng_below(&f->rng, DAY / 10);
            s_count(f);
            s_sweep(f, at += 1 + rng_below(&f->rng, 25000));
        }
        verify_all(f);
        s_verify(f, UINT64_MAX, 0, INT64_MAX);
    }
    assert_true(f->num > 512);
}

static void raw_is_gone_minutes_stay(void **state)
{
    struct sfix *f = *state;
    f->o.keep_ms[SERIES_RAW] = DAY;
    f->o.keep_ms[SERIES_MINUTE] = 3 * DAY;
    s_open(f);
    s_series(f, 5);
    for (int64_t at = T0; at < T0 + 7 * DAY; at += 1200000) {
        s_count(f);
        s_sweep(f, at);
    }
    assert_true(files_of(f, SERIES_RAW) <= 3);
    assert_true(files_of(f, SERIES_MINUTE) <= 5 && files_of(f, SERIES_MINUTE) >= 4);
    struct err e;
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct steps s = {f, 3600000, false, 0, 0, 0};
    struct series_query q = {.columns = UINT64_MAX, .to_ms = INT64_MAX, .step_ms = 3600000};
    assert_true(series_read(r, &q, compare_step, &s, NULL, &e) > 5 * 24 * 4);
    series_reader_free(r);
}

static void above_the_limit_raw_goes_first(void **state)
{
    struct sfix *f = *state;
    struct series_health h;
    f->o.max_bytes = 24 << 20;
    s_open(f);
    s_series(f, 100);
    for (int64_t at = T0; at < T0 + 5 * DAY; at += 20000) {
        s_count(f);
        s_sweep(f, at);
    }
    series_health(f->s, &h);
    // It is looked at when a file is begun; the present ones grow on.
    assert_true(h.bytes[0] + h.bytes[1] + h.bytes[2] <= 2 * f->o.max_bytes);
    assert_true(files_of(f, SERIES_RAW) < files_of(f, SERIES_MINUTE));
    assert_true(h.first_ms[SERIES_MINUTE] < h.first_ms[SERIES_RAW]);
    assert_true(h.first_ms[SERIES_HOUR] < T0 + DAY);
}

// A clock that is wrong for a while does not take the history with it.
static void a_leap_of_the_clock_deletes_nothing(void **state)
{
    struct sfix *f = *state;
    s_open(f);
    s_series(f, 5);
    for (int i = 0; i < 100; i++) {
        s_count(f);
        s_sweep(f, T0 + i * 10000);
    }
    f->o.keep_ms[SERIES_RAW] = DAY;
    s_reopen(f);
    s_sweep(f, T0 + 4000 * DAY);
    s_sweep(f, T0 + 4000 * DAY + 10000);
    assert_int_equal(files_of(f, SERIES_RAW), 2);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
}

// --- rates and rises: against a plain computation from the model ---

enum { GROUPS = 3 };

static void naive_rates(const struct sfix *f, unsigned column, int64_t from, int64_t to, int64_t ms,
                        const uint16_t *group, struct series_rate *ret, size_t steps)
{
    for (uint32_t i = 0; i < f->num; i++) {
        int64_t at = 0, before_at = 0, step = INT64_MIN;
        uint64_t v = 0, before = 0;
        for (size_t k = 0; k <= f->n; k++) {
            const struct msweep *m = &f->sweep[k];
            if (k < f->n && (i >= m->num || !(m->have[i] >> column & 1) || m->at_ms / ms < from / ms - 1 ||
                             m->at_ms > to))
                continue;
            if (step != INT64_MIN && (k == f->n || m->at_ms / ms != step)) {
                int64_t n = step - from / ms;
                if (before_at && v >= before && n >= 0 && (size_t)n < steps && group[i] < GROUPS) {
                    struct series_rate *r = &ret[group[i] * steps + (size_t)n];
                    double rate = (double)(v - before) * 1000 / (double)(at - before_at);
                    r->sum += rate;
                    r->max = r->num && r->max > rate ? r->max : rate;
                    r->num++;
                }
                before_at = at;
                before = v;
            }
            if (k == f->n)
                break;
            step = m->at_ms / ms;
            at = m->at_ms;
            v = m->value[(size_t)i * COLS + column];
        }
    }
}

static void close_to(double a, double b)
{
    double d = a > b ? a - b : b - a;
    if (d > 1e-6 * (a > 0 ? a : -a) + 1e-9)
        fail_msg("%g is not %g", a, b);
}

static void expect_rates(struct sfix *f, unsigned column, int64_t from, int64_t to, int64_t ms)
{
    struct err e = {0};
    size_t steps = (size_t)(to / ms - from / ms + 1), any = 0;
    struct series_rate *got = xcalloc(GROUPS * steps, sizeof(*got)),
                       *want = xcalloc(GROUPS * steps, sizeof(*want));
    uint16_t *group = xcalloc(f->num, sizeof(*group));
    for (uint32_t i = 0; i < f->num; i++)
        group[i] = (uint16_t)(i % 5 % 4);
    struct series_query q = {.columns = (uint64_t)1 << column, .from_ms = from, .to_ms = to, .step_ms = ms};
    struct series_reader *r = series_reader_new(f->dir, &e);
    uint64_t damaged;
    if (series_rates(r, &q, group, GROUPS, got, steps, &damaged, &e) < 0)
        fail_msg("%s: %s", e.where, e.text);
    naive_rates(f, column, from, to, ms, group, want, steps);
    for (size_t i = 0; i < GROUPS * steps; i++) {
        assert_int_equal(got[i].num, want[i].num);
        close_to(got[i].sum, want[i].sum);
        close_to(got[i].max, want[i].max);
        any += want[i].num;
    }
    assert_true(any > 100);
    assert_int_equal(damaged, 0);
    series_reader_free(r);
    free(got);
    free(want);
    free(group);
}

static void rates_of_groups(void **state)
{
    struct sfix *f = *state;
    int64_t at = T0;
    s_open(f);
    s_series(f, 600);
    for (int i = 0; i < 300; i++) {
        if (rng_below(&f->rng, 60) == 0)
            s_reopen(f);
        s_count(f);
        s_sweep(f, at += 30000 + rng_below(&f->rng, 60000));
    }
    // Raw: where something is absent, too. Minutes read by their own step, and not.
    expect_rates(f, 1, T0, at, 30000);
    expect_rates(f, 9, T0, at, 10);
    f->whole = true;
    int64_t from = at + 60000;
    for (int i = 0; i < 200; i++) {
        s_count(f);
        s_sweep(f, at += 10000 + rng_below(&f->rng, 40000));
    }
    expect_rates(f, 0, from, at, 60000);
    expect_rates(f, 0, from, at - 600000, 300000);
    expect_rates(f, 5, from + 17, at - 600000, 3600000);
    struct err e;
    struct series_rate ret[2] = {{0}};
    uint16_t group[600] = {0};
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct series_query q = {.columns = 3, .to_ms = 1000, .step_ms = 1000};
    assert_int_equal(series_rates(r, &q, group, 1, ret, 2, NULL, &e), -EINVAL);
    q.columns = 1;
    assert_int_equal(series_rates(r, &q, group, 1, ret, 1, NULL, &e), -EINVAL);
    series_reader_free(r);
}

struct rises {
    const struct sfix *f;
    size_t from, to;
    long n;
};

static bool compare_rise(void *arg, const struct series_rise *x)
{
    struct rises *c = arg;
    for (unsigned col = 0; col < COLS; col++) {
        uint64_t first = 0, last = 0;
        unsigned seen = 0;
        for (size_t k = c->from; k < c->to; k++) {
            const struct msweep *m = &c->f->sweep[k];
            if (!(m->have[x->series] >> col & 1))
                continue;
            last = m->value[(size_t)x->series * COLS + col];
            first = seen++ ? first : last;
        }
        assert_int_equal(x->have >> col & 1, seen > 1);
        if (seen > 1)
            assert_int_equal(x->value[col], last > first ? last - first : 0);
    }
    c->n++;
    return true;
}

static void rises_between_the_ends(void **state)
{
    struct sfix *f = *state;
    const int64_t t0 = T0 + 33000000; // the 221st sweep is the next day's first: of two files, and of one
    struct err e;
    s_open(f);
    s_series(f, 600);
    for (int i = 0; i < 500; i++) {
        s_count(f);
        s_sweep(f, t0 + i * 10000);
    }
    struct series_reader *r = series_reader_new(f->dir, &e);
    static const size_t range[][2] = {{0, 500}, {17, 490}, {200, 290}, {230, 480}, {100, 101}};
    for (unsigned i = 0; i < 5; i++) {
        struct rises c = {f, range[i][0], range[i][1], 0};
        struct series_query q = {.columns = UINT64_MAX,
                                 .from_ms = t0 + (int64_t)c.from * 10000,
                                 .to_ms = t0 + ((int64_t)c.to - 1) * 10000};
        long n = series_rises(r, &q, compare_rise, &c, NULL, &e);
        assert_int_equal(n, c.n);
        assert_true(i == 4 ? c.n == 0 : c.n > 400);
    }
    series_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ST(minutes_and_hours),
        ST(minutes_and_hours_of_anything),
        ST(raw_is_gone_minutes_stay),
        ST(above_the_limit_raw_goes_first),
        ST(a_leap_of_the_clock_deletes_nothing),
        ST(rates_of_groups),
        ST(rises_between_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
