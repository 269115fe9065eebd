// SPDX-License-Identifier: Apache-2.0
// Roots of congestion on a few random fabrics of each kind, with 30 % of the counters missing or late; all of
// them are bench/bench_congest.c. What is right is what the simulation of credits says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/whole/congest_runs.h"

// Runs of a kind that come off; how many of them are right.
static unsigned right(enum runs_scenario s, bool live, unsigned runs)
{
    unsigned done = 0, ok = 0;
    for (uint64_t i = 0; done < runs && i < 40 * runs; i++) {
        struct runs_result r;
        runs_one(s, (enum runs_missing)(RUNS_NEVER + i % (RUNS_MISSING - RUNS_NEVER)), live, 5000 + i, &r);
        done += r.came_off;
        ok += r.came_off && r.right;
        if (r.came_off && !r.right)
            printf("# %s, %s: %s, %u ports: wanted %s, found %s\n", runs_scenario_name(s),
                   runs_missing_name((enum runs_missing)(RUNS_NEVER + i % (RUNS_MISSING - RUNS_NEVER))),
                   r.text, r.ports, congest_kind_name(r.want), congest_kind_name(r.got));
    }
    assert_int_equal(done, runs);
    return ok;
}

static void receivers(void **state)
{
    assert_true(right(RUNS_RECEIVER, false, 10) >= 8);
}

static void incasts(void **state)
{
    assert_true(right(RUNS_INCAST, false, 10) >= 8);
}

static void trunks(void **state)
{
    assert_true(right(RUNS_TRUNK, false, 10) >= 8);
}

static void imbalances(void **state)
{
    assert_true(right(RUNS_IMBALANCE, false, 10) >= 8);
}

static void slow_links(void **state)
{
    assert_true(right(RUNS_SLOW_LINK, false, 10) >= 8);
}

static void no_root(void **state)
{
    assert_true(right(RUNS_NONE, false, 10) >= 9);
}

static void switches_that_adapt(void **state)
{
    assert_true(right(RUNS_RECEIVER, true, 4) >= 3);
    assert_true(right(RUNS_INCAST, true, 4) >= 3);
    assert_true(right(RUNS_NONE, true, 4) >= 3);
}

// With everything read there is nothing to guess.
static void all_read(void **state)
{
    for (unsigned s = RUNS_RECEIVER; s <= RUNS_SLOW_LINK; s++) {
        unsigned done = 0, ok = 0;
        for (uint64_t i = 0; done < 5 && i < 200; i++) {
            struct runs_result r;
            runs_one((enum runs_scenario)s, RUNS_ALL_READ, false, 6000 + i, &r);
            done += r.came_off;
            ok += r.came_off && r.right;
        }
        assert_int_equal(done, 5);
        assert_int_equal(ok, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receivers),  cmocka_unit_test(incasts),
        cmocka_unit_test(trunks),     cmocka_unit_test(imbalances),
        cmocka_unit_test(slow_links), cmocka_unit_test(no_root),
        cmocka_unit_test(all_read),   cmocka_unit_test(switches_that_adapt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
