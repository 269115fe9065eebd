// SPDX-License-Identifier: Apache-2.0
// Steps as the model says they are, beside what is read of minutes and hours.
#ifndef WEFT_TESTS_SERIESSTEPS_H
#define WEFT_TESTS_SERIESSTEPS_H

#include "tests/unit/db/seriestest.h"

// What the model says of one series and step: the time of the step's last sweep, what was there in it, the
// last values or the greatest rises. Returns the index behind the step; *ret_have 0 where there is nothing.
static inline size_t model_step(const struct sfix *f, size_t k, uint32_t i, int64_t ms, bool peaks,
                                int64_t *ret_at, uint64_t *ret_have, uint64_t value[COLS])
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
static inline bool next_step(struct steps *s, int64_t *ret_at, uint64_t *ret_have, uint64_t value[COLS])
{
    while (s->k < s->f->n) {
        s->k = model_step(s->f, s->k, s->series, s->ms, s->peaks, ret_at, ret_have, value);
        if (*ret_have)
            return true;
    }
    return false;
}

static inline void expect_no_more(struct steps *s)
{
    int64_t at;
    uint64_t have, value[COLS];
    assert_false(next_step(s, &at, &have, value));
}

static inline bool compare_step(void *arg, const struct series_point *p)
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

static inline void verify_steps(struct sfix *f, int64_t ms, bool peaks)
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

static inline void verify_all(struct sfix *f)
{
    verify_steps(f, 60000, false);
    verify_steps(f, 60000, true);
    verify_steps(f, 3600000, false);
    verify_steps(f, 3600000, true);
}

#endif
