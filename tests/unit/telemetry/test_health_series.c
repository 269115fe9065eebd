// SPDX-License-Identifier: Apache-2.0
// What was counted when: windows against every reading kept, and little memory however long it goes on.
#include "tests/unit/telemetry/healthtest.h"

#include "lib/rng.h"
#include "telemetry/health_priv.h"

struct all {
    int64_t t0[20000], t1[20000];
    uint64_t count[20000];
    int n;
};

static double exact(const struct all *a, int64_t end, int64_t window)
{
    double sum = 0;
    for (int i = 0; i < a->n; i++) {
        int64_t from = a->t0[i] > end - window ? a->t0[i] : end - window,
                to = a->t1[i] < end ? a->t1[i] : end;
        if (to > from)
            sum += (double)a->count[i] * (double)(to - from) / (double)(a->t1[i] - a->t0[i]);
    }
    return sum;
}

static void against_all(void **state)
{
    static struct all a;
    static const int64_t window[] = {10 * S, MIN, 10 * MIN, 12 * MIN, HOUR, 125 * MIN};
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct health_series *s = NULL;
        struct rng r;
        int64_t now = 1000 * S, step = seed % 3 == 0 ? S : 10 * S;
        rng_init(&r, seed);
        a.n = 0;
        for (int i = 0; i < (seed % 3 == 0 ? 12000 : 4000); i++) {
            int64_t t0 = now;
            now += step * (rng_below(&r, 20) ? 1 : 1 + rng_below(&r, 5));
            uint64_t n = rng_below(&r, seed % 2 ? 200 : 2);
            if (n == 0)
                continue;
            series_add(&s, t0, now, n);
            a.t0[a.n] = t0;
            a.t1[a.n] = now;
            a.count[a.n++] = n;
            if (i % 37)
                continue;
            assert_true(s->n <= 256 && s->cap <= 256);
            assert_true(series_last(s) == now);
            for (size_t w = 0; w < sizeof(window) / sizeof(window[0]); w++) {
                double want = exact(&a, now, window[w]), got = series_count(s, now, window[w]);
                // An entry at the edge counts whole: a reading, or a sixteenth of the window.
                double slack = exact(&a, now, window[w] + window[w] / 8 + 2 * step) - want + 1;
                if (got < want - 0.03 * want - 1 || got > want + slack)
                    fail_msg("seed %d, %d: %lld s: %f, not %f", (int)seed, i, (long long)(window[w] / S), got,
                             want);
            }
            // Parts of the past add up.
            double parts = 0;
            for (int k = 0; k < 5; k++)
                parts += series_count(s, now - k * 2 * MIN, 2 * MIN);
            assert_true(fabs(parts - exact(&a, now, 10 * MIN)) <= 0.1 * parts + 300);
        }
        free(s);
    }
}

// A gap of hours: only its share lies in the window.
static void long_entries(void **state)
{
    struct health_series *s = NULL;
    (void)state;
    assert_true(series_count(NULL, 1000 * S, HOUR) == 0 && series_last(NULL) == INT64_MIN);
    series_add(&s, 1000 * S, 1000 * S + 4 * HOUR, 400);
    int64_t end = 1000 * S + 4 * HOUR;
    assert_true(fabs(series_count(s, end, HOUR) - 100) < 1e-6);
    assert_true(fabs(series_count(s, end, 4 * HOUR) - 400) < 1e-6);
    assert_true(fabs(series_count(s, end + HOUR, 2 * HOUR) - 100) < 1e-6);
    assert_true(series_count(s, end + HOUR, HOUR) == 0);
    series_add(&s, end, end, 5); // no time at all
    assert_true(fabs(series_count(s, end, HOUR) - 105) < 1e-6);
    free(s);
}

// What is older than any window goes.
static void old_ones_go(void **state)
{
    struct health_series *s = NULL;
    (void)state;
    for (int i = 0; i < 100000; i++)
        series_add(&s, i * 600 * S, i * 600 * S + S, 1);
    if (s->cap > 64)
        fail_msg("%u of %u", s->n, s->cap);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_all),
        cmocka_unit_test(long_entries),
        cmocka_unit_test(old_ones_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
