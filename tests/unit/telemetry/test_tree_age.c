// SPDX-License-Identifier: Apache-2.0
// How long a congestion tree is of its kind, and what those who wait for it lose.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "telemetry/tree_age.h"

#define S MONO_S
#define MIN (60 * S)

static void sweep(struct tree_ages *a, const struct congest_tree *t, int64_t now)
{
    const struct congest_tree *all[] = {t};
    tree_ages_note(a, all, 1, now);
}

// A receiver that drains again is an incast from then on, not since the tree was seen first.
static void another_kind_begins_anew(void **state)
{
    struct tree_ages a = {0};
    struct congest_tree t = {.id = 7, .kind = CONGEST_RECEIVER, .sweeps = 1};
    int64_t now = 0;
    (void)state;
    for (int i = 0; i < 60; i++, now += 10 * S)
        sweep(&a, &t, now);
    assert_true(tree_ages_are(&a, &t, 3, 5 * MIN, now));
    t.kind = CONGEST_INCAST;
    t.sweeps = 61;
    int64_t changed = now;
    for (; now < changed + 5 * MIN; now += 10 * S) {
        sweep(&a, &t, now);
        assert_false(tree_ages_are(&a, &t, 3, 5 * MIN, now));
    }
    sweep(&a, &t, now);
    assert_true(tree_ages_are(&a, &t, 3, 5 * MIN, now));
    t.id = 8; // another tree
    sweep(&a, &t, now);
    assert_false(tree_ages_are(&a, &t, 3, 0, now));
    sweep(&a, &t, now += 10 * S);
    t.missed = 1; // what is not seen counts for nothing
    sweep(&a, &t, now += 10 * S);
    assert_false(tree_ages_are(&a, &t, 3, 0, now));
    t.missed = 0;
    sweep(&a, &t, now += 10 * S);
    assert_true(tree_ages_are(&a, &t, 3, 0, now));
    tree_ages_done(&a);
}

// On a cable of 25 GB/s one port that waits loses no more than that, whatever the root itself waits.
static void who_waits_loses(void **state)
{
    struct congest_waits w;
    struct congest_member m[] = {{.slot = 4, .depth = 0, .lost_bps = 24.9e9},
                                 {.slot = 9, .depth = 1, .lost_bps = 24.8e9}};
    struct congest_tree t = {.root = 4, .member = m, .num_members = 2, .lost_bps = 49.7e9};
    (void)state;
    congest_waits(&t, &w);
    assert_int_equal(w.ports, 1);
    assert_true(w.lost_bps > 24.7e9 && w.lost_bps <= 25e9);
    t.num_members = 1; // it alone waits
    t.lost_bps = 24.9e9;
    congest_waits(&t, &w);
    assert_true(w.ports == 0 && w.lost_bps > 24.8e9 && w.lost_bps <= 25e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_kind_begins_anew),
                                       cmocka_unit_test(who_waits_loses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
