// SPDX-License-Identifier: Apache-2.0
// Minutes and hours are what raw sweeps make of them, whatever happens between; files go at their age.
#include <dirent.h>

#include "tests/unit/db/seriestest.h"

// What the model says of one series and step: the time of the step's last sweep, what was there in it, the
// last values or the greatest rises. Returns the index behind the step; *ret_have 0 where there is nothing.
static size_t model_step(const struct sfix *f, size_t k, uint32_t i, int64_t ms, bool peaks, int64_t *ret_at,
                         uint64_t *ret_have, uint64_t value[COLS])
{
    int64_t step = f->sweep[k].at_ms / ms;
    *ret_have = 0;
    for (; k < f->n && f->sweep[k].at_ms / ms == step; k++) {
        const struct msweep *m = &f->sweep[k], *b = k && f->sweep[k - 1].run == m->run ? m - 1 : NULL;
        *ret_at = m->at_ms;
        for (unsigned c = 0; i < m->num && c < COLS; c++) {
            uint64_t v = m->value[(size_t)i * COLS + c], bit = (uint64_t)1 << c;
            if (!(m->have[i] & bit))
                continue;
            if (peaks && !(f->o.peak_columns & bit))
                continue;
            if (peaks) {
                if (!b || i >= b->num || !(b->have[i] & bit))
                    continue;
                uint64_t w = b->value[(size_t)i * COLS + c], rise = v > w ? v - w : 0;
                value[c] = *ret_have & bit && value[c] > rise ? value[c] : rise;
            } else {
                value[c] = v;
            }
            *ret_have |= bit;
        }
    }
    return k;
}

struct steps {
    const struct sfix *f;
    int64_t ms;
    bool peaks;
    uint32_t series;
    size_t k;
    long points;
};

// The next step of the series that has something.
static bool next_step(struct steps *s, int64_t *ret_at, uint64_t *ret_have, uint64_t value[COLS])
{
    while (s->k < s->f->n) {
        s->k = model_step(s->f, s->k, s->series, s->ms, s->peaks, ret_at, ret_have, value);
        if (*ret_have)
            return true;
    }
    return false;
}

static void expect_no_more(struct steps *s)
{
    int64_t at;
    uint64_t have, value[COLS];
    assert_false(next_step(s, &at, &have, value));
}

static bool compare_step(void *arg, const struct series_point *p)
{
    struct steps *s = arg;
    int64_t at;
    uint64_t have, value[COLS];
    for (; s->series < p->series; s->series++, s->k = 0)
        expect_no_more(s);
    assert_true(next_step(s, &at, &have, value));
    assert_int_equal(p->at_ms, at);
    // Of the raw end, columns without peaks have theirs too.
    assert_int_equal(p->have & (s->peaks ? s->f->o.peak_columns : UINT64_MAX), have);
    for (uint64_t b = have; b; b &= b - 1)
        assert_int_equal(p->value[__builtin_ctzll(b)], value[__builtin_ctzll(b)]);
    s->points++;
    return true;
}

static void verify_steps(struct sfix *f, int64_t ms, bool peaks)
{
    struct err e = {0};
    struct steps s = {f, ms, peaks, 0, 0, 0};
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct series_query q = {
        .columns = peaks ? f->o.peak_columns : UINT64_MAX, .to_ms = INT64_MAX, .step_ms = ms, .peaks = peaks};
    uint64_t damaged;
    long n = series_read(r, &q, compare_step, &s, &damaged, &e);
    if (n < 0)
        fail_msg("%s: %s", e.where, e.text);
    for (; s.series < f->num; s.series++, s.k = 0)
        expect_no_more(&s);
    assert_int_equal(n, s.points);
    assert_int_equal(damaged, 0);
    series_reader_free(r);
}

static void verify_all(struct sfix *f)
{
    verify_steps(f, 60000, false);
    verify_steps(f, 60000, true);
    verify_steps(f, 3600000, false);
    verify_steps(f, 3600000, true);
}

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
    f->o.max_bytes = 6 << 20;
    s_open(f);
    s_series(f, 400);
    for (int64_t at = T0; at < T0 + 12 * DAY; at += 3600000) {
        s_count(f);
        s_sweep(f, at);
    }
    series_health(f->s, &h);
    // It is looked at when a file is begun; the present ones grow on.
    assert_true(h.bytes[0] + h.bytes[1] + h.bytes[2] <= 2 * f->o.max_bytes);
    assert_true(files_of(f, SERIES_RAW) < files_of(f, SERIES_MINUTE));
    assert_true(files_of(f, SERIES_HOUR) >= 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ST(minutes_and_hours),
        ST(minutes_and_hours_of_anything),
        ST(raw_is_gone_minutes_stay),
        ST(above_the_limit_raw_goes_first),
        ST(a_leap_of_the_clock_deletes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
