// SPDX-License-Identifier: Apache-2.0
// What the store's tests share: a folder, a store in it, and a model: all sweeps as they were given, to
// compare with what is read.
#ifndef WEFT_TESTS_SERIESTEST_H
#define WEFT_TESTS_SERIESTEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/series_priv.h"
#include "lib/loop.h"
#include "lib/rng.h"
#include "lib/xalloc.h"

#define T0 1790000000000LL // some day of 2026, 14:13:20 UTC
#define DAY 86400000LL
#define G(n) (0x0002c90300000000ULL + (n))
enum { COLS = 12 };

struct msweep {
    int64_t at_ms;
    uint32_t num;
    unsigned run; // of the store: rises do not go over a restart
    uint64_t *value, *have;
};

struct sfix {
    char dir[200];
    struct loop *loop;
    struct series *s;
    struct series_report rep;
    struct series_opts o;
    struct rng rng;
    struct msweep *sweep; // the model
    size_t n, cap;
    unsigned run;
    bool whole;    // nothing is absent
    uint64_t *now; // counters as they stand
    uint32_t num;
};

static inline void s_open(struct sfix *f)
{
    struct err e = {0};
    f->s = series_open(f->loop, f->dir, &f->o, &f->rep, &e);
    if (!f->s)
        fail_msg("%s: %s", e.where, e.text);
}

static inline void s_reopen(struct sfix *f)
{
    series_close(f->s);
    f->run++;
    s_open(f);
}

static inline int s_setup(void **state)
{
    struct sfix *f = xcalloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof(f->dir), "%s/weft-series-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    f->loop = loop_new(LOOP_REAL);
    f->o = (struct series_opts){.columns = COLS, .peak_columns = 3};
    for (int i = 0; i < SERIES_TIERS; i++)
        f->o.keep_ms[i] = 100000 * DAY;
    rng_init(&f->rng, 1);
    *state = f;
    return 0;
}

static inline int s_teardown(void **state)
{
    struct sfix *f = *state;
    char *cmd = xasprintf("rm -rf '%s'", f->dir);
    series_close(f->s);
    loop_free(f->loop);
    int rc = system(cmd);
    free(cmd);
    for (size_t i = 0; i < f->n; i++) {
        free(f->sweep[i].value);
        free(f->sweep[i].have);
    }
    free(f->sweep);
    free(f->now);
    free(f);
    return rc;
}

static inline void s_series(struct sfix *f, uint32_t num)
{
    for (; f->num < num; f->num++) {
        f->now = xreallocarray(f->now, f->num + 1, COLS * sizeof(uint64_t));
        memset(f->now + (size_t)f->num * COLS, 0, COLS * sizeof(uint64_t));
        assert_int_equal(series_id(f->s, G(f->num / 3), (uint8_t)(f->num % 3)), f->num);
    }
}

// Some counters stand, some trickle, some run; sometimes one is reset or jumps.
static inline void s_count(struct sfix *f)
{
    for (uint32_t i = 0; i < f->num; i++) {
        for (unsigned c = 0; c < COLS; c++) {
            uint64_t *v = &f->now[(size_t)i * COLS + c];
            uint32_t dice = rng_below(&f->rng, 5000);
            if (dice == 0)
                *v = 0;
            else if (dice == 1)
                *v = rng_u64(&f->rng);
            else if (c % 4 == 0 && i % 3)
                *v += rng_u64(&f->rng) >> (20 + i % 40);
            else if (c % 4 == 1)
                *v += rng_below(&f->rng, 50);
        }
    }
}

static inline uint64_t s_have(struct sfix *f, uint32_t i)
{
    uint64_t have = (1 << COLS) - 1;
    if (f->whole)
        return have;
    if (i % 7 == 3 || rng_below(&f->rng, 40) == 0)
        return 0;
    if (f->n % 6)
        have &= 0x7f;
    if (rng_below(&f->rng, 100) == 0)
        have &= rng_u64(&f->rng);
    return have;
}

// A sweep of what is counted now, into the store (which must take it) and into the model.
static inline void s_sweep(struct sfix *f, int64_t at_ms)
{
    if (f->n == f->cap)
        f->sweep = xreallocarray(f->sweep, f->cap = f->cap ? f->cap * 2 : 64, sizeof(*f->sweep));
    struct msweep *m = &f->sweep[f->n];
    size_t bytes = (size_t)f->num * COLS * sizeof(uint64_t);
    *m = (struct msweep){at_ms, f->num, f->run, xmalloc(bytes + 1), xcalloc(f->num + 1, sizeof(uint64_t))};
    memcpy(m->value, f->now, bytes);
    for (uint32_t i = 0; i < f->num; i++)
        m->have[i] = s_have(f, i);
    series_sweep(f->s, at_ms, m->value, m->have, f->num);
    assert_int_equal(series_flush(f->s), 0);
    f->n++;
}

struct compare {
    struct sfix *f;
    uint64_t columns;
    int64_t from, to;
    uint32_t series;
    size_t at; // next sweep of the model
    long wrong, points;
};

static inline uint64_t expected(const struct compare *c, size_t k, uint32_t i)
{
    const struct msweep *m = &c->f->sweep[k];
    return m->at_ms < c->from || m->at_ms > c->to || i >= m->num ? 0 : m->have[i] & c->columns;
}

static inline void skip_absent(struct compare *c, uint32_t series)
{
    while (c->at < c->f->n && !expected(c, c->at, series))
        c->at++;
}

static inline bool compare_point(void *arg, const struct series_point *p)
{
    struct compare *c = arg;
    if (p->series != c->series) {
        skip_absent(c, c->series);
        assert_int_equal(c->at, c->f->n);
        for (uint32_t i = c->series + 1; i < p->series; i++) { // nothing of these
            c->at = 0;
            skip_absent(c, i);
            assert_int_equal(c->at, c->f->n);
        }
        c->series = p->series;
        c->at = 0;
    }
    skip_absent(c, p->series);
    assert_true(c->at < c->f->n);
    const struct msweep *m = &c->f->sweep[c->at];
    assert_int_equal(p->at_ms, m->at_ms);
    assert_int_equal(p->have, expected(c, c->at, p->series));
    for (uint64_t b = p->have; b; b &= b - 1) {
        int col = __builtin_ctzll(b);
        assert_int_equal(p->value[col], m->value[(size_t)p->series * COLS + col]);
    }
    c->at++;
    c->points++;
    return true;
}

// All that the model has, and nothing else, is read back.
static inline long s_verify(struct sfix *f, uint64_t columns, int64_t from, int64_t to)
{
    struct err e = {0};
    struct compare c = {f, columns, from, to, 0, 0, 0, 0};
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct series_query q = {.columns = columns, .from_ms = from, .to_ms = to};
    uint64_t damaged;
    assert_non_null(r);
    long n = series_read(r, &q, compare_point, &c, &damaged, &e);
    if (n < 0)
        fail_msg("%s: %s", e.where, e.text);
    assert_int_equal(n, c.points);
    assert_int_equal(damaged, 0);
    for (uint32_t i = c.series; i < f->num; i++) {
        skip_absent(&c, i);
        assert_int_equal(c.at, f->n);
        c.at = 0;
    }
    series_reader_free(r);
    return n;
}

#define ST(fn) cmocka_unit_test_setup_teardown(fn, s_setup, s_teardown)

#endif
