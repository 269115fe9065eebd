// SPDX-License-Identifier: Apache-2.0
// The store: what is read is what was written, whatever happens between.
#include "tests/unit/db/seriestest.h"

static void sweeps_come_back(void **state)
{
    struct sfix *f = *state;
    int64_t at = T0;
    s_open(f);
    assert_true(f->rep.created);
    s_series(f, 100);
    for (int i = 0; i < 150; i++) {
        s_count(f);
        s_sweep(f, at += 10000);
    }
    assert_true(s_verify(f, UINT64_MAX, 0, INT64_MAX) > 10000);
    s_verify(f, 2, T0 + 100000, T0 + 700000);
}

// New series, gaps, resets, restarts, midnight: at every moment.
static void anything_comes_back(void **state)
{
    struct sfix *f = *state;
    int64_t at = T0;
    s_open(f);
    s_series(f, 1);
    for (int i = 0; i < 400; i++) {
        uint32_t dice = rng_below(&f->rng, 100);
        if (dice < 2)
            s_reopen(f);
        if (dice >= 20 && dice < 24)
            s_series(f, f->num + rng_below(&f->rng, 300));
        if (dice == 4)
            at += DAY / 3;
        s_count(f);
        s_sweep(f, at += 1 + rng_below(&f->rng, 20000));
        if (dice == 5)
            s_verify(f, UINT64_MAX, 0, INT64_MAX);
    }
    assert_true(f->num > 1000);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    s_reopen(f);
    assert_int_equal(f->rep.series, f->num);
    assert_int_equal(f->rep.last_ms, at);
    s_verify(f, 0x15, T0 + DAY / 2, at - 100000);
}

static void numbers_are_for_good(void **state)
{
    struct sfix *f = *state;
    uint64_t guid;
    uint8_t port;
    struct err e;
    s_open(f);
    s_series(f, 1000);
    s_sweep(f, T0);
    s_reopen(f);
    assert_int_equal(series_num(f->s), 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(series_id(f->s, G(i / 3), (uint8_t)(i % 3)), i);
    assert_int_equal(series_id(f->s, G(5000), 1), 1000);
    struct series_reader *r = series_reader_new(f->dir, &e);
    assert_non_null(r);
    assert_int_equal(series_reader_num(r), 1000);
    assert_int_equal(series_reader_find(r, G(100), 2), 302);
    assert_int_equal(series_reader_key(r, 302, &guid, &port), 0);
    assert_true(guid == G(100) && port == 2);
    assert_int_equal(series_reader_find(r, G(5000), 1), UINT32_MAX);
    series_reader_free(r);
    // A sweep of some series keeps the numbers of all.
    uint64_t value[COLS] = {0}, have = 1;
    series_sweep(f->s, T0 + DAY, value, &have, 1);
    assert_int_equal(series_flush(f->s), 0);
    r = series_reader_new(f->dir, &e);
    assert_int_equal(series_reader_num(r), 1001);
    series_reader_free(r);
}

static void only_one_store_a_folder(void **state)
{
    struct sfix *f = *state;
    struct err e;
    s_open(f);
    assert_null(series_open(f->loop, f->dir, &f->o, NULL, &e));
    assert_int_equal(e.code, -EBUSY);
}

struct scan {
    struct sfix *f;
    uint8_t *seen; // [sweep * num + series]
    long points, stop_after;
};

static bool scanned(void *arg, const struct series_point *p)
{
    struct scan *c = arg;
    size_t k = 0;
    while (k < c->f->n && c->f->sweep[k].at_ms != p->at_ms)
        k++;
    assert_true(k < c->f->n && p->series < c->f->sweep[k].num);
    assert_int_equal(p->have, c->f->sweep[k].have[p->series]);
    for (uint64_t b = p->have; b; b &= b - 1) {
        int col = __builtin_ctzll(b);
        assert_int_equal(p->value[col], c->f->sweep[k].value[(size_t)p->series * COLS + col]);
    }
    assert_int_equal(c->seen[k * c->f->num + p->series]++, 0);
    c->points++;
    return true;
}

static void scan_some(struct scan *c, char cursor[64])
{
    struct err e = {0};
    struct series_reader *r = series_reader_new(c->f->dir, &e);
    assert_non_null(r);
    long n = series_scan(r, cursor, 1 + rng_below(&c->f->rng, 5000), scanned, c, cursor, 64, &e);
    if (n < 0)
        fail_msg("%s: %s", e.where, e.text);
    series_reader_free(r);
}

// Whatever happens between two calls, each sample comes once.
static void scan_gives_each_once(void **state)
{
    struct sfix *f = *state;
    struct scan c = {f, NULL, 0, 0};
    char cursor[64] = "";
    int64_t at = T0 + DAY / 3;
    s_open(f);
    s_series(f, 700);
    c.seen = xcalloc(500 * 700, 1);
    for (int i = 0; i < 400; i++) {
        s_count(f);
        s_sweep(f, at += 30000 + rng_below(&f->rng, 200000));
        if (rng_below(&f->rng, 60) == 0)
            s_reopen(f);
        if (rng_below(&f->rng, 10) == 0)
            scan_some(&c, cursor);
    }
    for (long before = -1; before != c.points;) {
        before = c.points;
        scan_some(&c, cursor);
    }
    for (size_t k = 0; k < f->n; k++) {
        for (uint32_t i = 0; i < f->num; i++)
            assert_int_equal(c.seen[k * f->num + i], f->sweep[k].have[i] != 0);
    }
    free(c.seen);
    struct err e;
    struct series_reader *r = series_reader_new(f->dir, &e);
    assert_int_equal(series_scan(r, "2 nonsense", 1, scanned, &c, cursor, 64, &e), -EINVAL);
    series_reader_free(r);
}

static void tell_ok(void *arg, const char *file, const char *text)
{
    if (strncmp(text, "ok", 2) != 0)
        fail_msg("%s: %s", file, text);
    ++*(int *)arg;
}

static void sound_files_check(void **state)
{
    struct sfix *f = *state;
    int files = 0;
    s_open(f);
    s_series(f, 600);
    for (int i = 0; i < 200; i++) {
        s_count(f);
        s_sweep(f, T0 + i * DAY / 100);
    }
    assert_int_equal(series_check(f->dir, tell_ok, &files), 0);
    assert_true(files >= 2);
}

// Somebody holds the file: collecting does not wait, what has no room is left out and counted.
static void never_blocks(void **state)
{
    struct sfix *f = *state;
    struct series_health h;
    sqlite3 *c;
    s_open(f);
    s_series(f, 50);
    s_count(f);
    s_sweep(f, T0);
    char *path = xasprintf("%s/raw-20260921.db", f->dir);
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct msweep *m = &f->sweep[0];
    for (int i = 1; i <= 40; i++)
        series_sweep(f->s, T0 + i * 10000, m->value, m->have, f->num);
    series_health(f->s, &h);
    assert_true(h.left_out >= 40 - SERIES_QUEUE - 1);
    assert_int_equal(sqlite3_exec(c, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(c);
    (void)series_flush(f->s); // one may have waited for too long
    uint64_t left_out = h.left_out;
    s_count(f);
    f->sweep[0].at_ms = T0;
    series_health(f->s, &h);
    assert_true(h.left_out <= left_out + 1 && h.sweeps + h.left_out == 41);
    assert_int_equal(series_check(f->dir, tell_ok, &(int){0}), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ST(sweeps_come_back),     ST(anything_comes_back),
        ST(numbers_are_for_good), ST(only_one_store_a_folder),
        ST(scan_gives_each_once), ST(sound_files_check),
        ST(never_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
