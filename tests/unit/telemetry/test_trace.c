// SPDX-License-Identifier: Apache-2.0
// The health rules on labelled traces: every kind of fault is named, at 1.5 times its threshold and above,
// with readings missing; links that have nothing are left alone. bench/telemetry.py does it at length.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "tests/trace/judge.h"

static void named(uint64_t seed, double missing)
{
    struct err e = {0};
    const struct fabric *f = topogen_make("rail-64", &e);
    struct trace_opts o = {.seed = seed,
                           .missing = missing,
                           .severity = {1.5, 4},
                           .cases = 3,
                           .duration_ns = 60 * 3600 * MONO_S,
                           .interval_ns = 10 * MONO_S};
    struct trace *t = trace_new(f, &o);
    struct judge j;
    assert_non_null(t);
    judge_run(&j, t);
    for (uint32_t i = 0; i < j.num_cases; i++) {
        if (!j.found[i])
            print_message("missed: %s x %g at slot %u, %.0f to %.0f s\n", trace_kind_names[j.cases[i].kind],
                          j.cases[i].severity, j.cases[i].slot, mono_seconds(j.cases[i].from),
                          mono_seconds(j.cases[i].until));
        assert_true(j.found[i]);
    }
    if (j.num_wrong)
        print_message("false: %s\n", j.first);
    assert_int_equal(j.num_wrong, 0);
    assert_int_equal(j.isolated_good, 0);
    judge_done(&j);
    trace_free(t);
    fabric_unref(f);
}

static void every_fault_is_named(void **state)
{
    (void)state;
    named(1, 0);
}

static void with_readings_missing(void **state)
{
    (void)state;
    named(2, 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_is_named),
        cmocka_unit_test(with_readings_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
