// SPDX-License-Identifier: Apache-2.0
// L17: modules that have failed, or whose light is outside their own limits. Readings come seldom, and say
// when they were taken.
#include "tests/unit/telemetry/healthtest.h"

static const struct tele_optics well = {0}, broken = {.fault = true},
                                dim = {.lane = 2, .rx = true, .dbm = -7, .limit = -6},
                                bright = {.lane = 1, .high = true, .dbm = 4.5, .limit = 4};

static void read_at(struct bed *b, uint32_t slot, const struct tele_optics *o, int64_t at)
{
    health_optics(b->h, slot, o, at);
    tick(b);
}

BED(outside, 2, 400000)
{
    tick(b);
    read_at(b, 2, &well, b->now);
    pass(b, MIN);
    assert_int_equal(raised(b, "L17"), 0);
    assert_false(health_noted(b->h, 2));
    read_at(b, 3, &dim, b->now);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L17"), "too little light: -7.0 dBm received on lane 2 at "));
    assert_non_null(strstr(reason(b, "L17"), "limit -6.0"));
    struct health_view v = view(b, 2); // either end gives the same
    assert_int_equal(v.state, HEALTH_DEGRADED);
    assert_string_equal(v.rule, "L17");
    assert_string_equal(v.advice, alarm_rule("L17")->advice);
    // Nothing clears on what is not read.
    pass(b, 3 * HOUR);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_non_null(strstr(view(b, 3).why, "as it was 3 h ago"));
    // The same file told again is no new reading, nor is an older one.
    int64_t first = b->now - 3 * HOUR - 10 * S;
    health_optics(b->h, 3, &well, first);
    health_optics(b->h, 3, &well, first - MIN);
    pass(b, HOUR);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
}

// It must have been inside for ten minutes, of which both ends were read.
BED(clears, 1, 400000)
{
    tick(b);
    read_at(b, 1, &bright, b->now);
    assert_non_null(strstr(reason(b, "L17"), "too much light: 4.5 dBm sent on lane 1"));
    pass(b, HOUR);
    read_at(b, 1, &well, b->now); // since when is not known
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    int64_t inside = b->now - b->step;
    read_at(b, 1, &well, inside + 10 * MIN - S);
    pass(b, 20 * MIN);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    read_at(b, 1, &well, inside + 10 * MIN);
    assert_int_equal(stands(b, "L17"), -1);
    assert_int_equal(raised(b, "L17"), 2); // and once for not being read
    // Outside again it is another time; once inside for a moment is not enough.
    read_at(b, 1, &bright, b->now);
    assert_int_equal(raised(b, "L17"), 3);
    pass(b, 20 * MIN);
    read_at(b, 1, &well, b->now);
    pass(b, 8 * MIN);
    read_at(b, 1, &bright, b->now);
    pass(b, 8 * MIN);
    read_at(b, 1, &well, b->now);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_int_equal(raised(b, "L17"), 3);
    pass(b, 10 * MIN);
    read_at(b, 1, &well, b->now);
    assert_int_equal(stands(b, "L17"), -1);
}

BED(faults, 1, 400000)
{
    tick(b);
    read_at(b, 0, &dim, b->now);
    read_at(b, 1, &broken, b->now);
    pass(b, 6 * MIN); // told again with what is worse
    assert_non_null(strstr(reason(b, "L17"), "says that it has failed"));
    read_at(b, 1, &well, b->now);
    pass(b, 20 * MIN);
    read_at(b, 1, &well, b->now);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR); // the other end is still dim
    // No source any more: what is not known of at all is not held against it.
    health_optics(b->h, 0, NULL, b->now);
    health_optics(b->h, 1, NULL, b->now);
    pass(b, 11 * MIN);
    assert_int_equal(stands(b, "L17"), -1);
    health_optics(b->h, 99, &broken, b->now);
    health_optics(b->h, 99, NULL, b->now);
}

// Another cable: what was read of the old one is not held against it, also when that is told again.
BED(another_cable, 1, 400000)
{
    tick(b);
    int64_t at = b->now;
    health_module(b->h, 1, 85, at);
    read_at(b, 1, &dim, at);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
    health_forget(b->h, 0);
    assert_int_equal(stands(b, "L17"), -1);
    health_module(b->h, 1, 85, at);
    read_at(b, 1, &dim, at);
    pass(b, HOUR);
    assert_int_equal(stands(b, "L17"), -1);
    assert_int_equal(stands(b, "L16"), -1);
    health_module(b->h, 1, 85, b->now);
    read_at(b, 1, &dim, b->now); // read anew it is
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
}

// Readings from before the loop's beginning, and out of order.
BED(times, 1, 400000)
{
    tick(b);
    health_module(b->h, 0, 90, -5 * HOUR);
    health_module(b->h, 0, 30, INT64_MIN);
    read_at(b, 0, &dim, -HOUR);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
}

// A reading has an age, and after a day it is none any more.
BED(not_read, 1, 400000)
{
    tick(b);
    read_at(b, 0, &dim, b->now);
    health_module(b->h, 1, 85, b->now);
    pass(b, HOUR / 2);
    assert_null(strstr(reason(b, "L17"), "not read"));
    pass(b, 3 * HOUR);
    assert_non_null(strstr(reason(b, "L17"), "; not read for 2 h"));
    assert_non_null(strstr(reason(b, "L16"), "; not read for 2 h"));
    assert_null(strstr(view(b, 0).why, "not read for"));
    assert_non_null(strstr(view(b, 0).why, "as it was 3 h ago"));
    pass(b, 20 * HOUR);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L17"), "; not read for 16 h"));
    health_module(b->h, 1, 86, b->now); // one of them is read again
    pass(b, 10 * MIN);
    assert_null(strstr(reason(b, "L16"), "not read"));
    pass(b, HOUR);
    assert_int_equal(stands(b, "L17"), -1);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
    read_at(b, 0, &dim, b->now);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    pass(b, 23 * HOUR);
    assert_int_equal(stands(b, "L16"), -1);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(outside), cmocka_unit_test(clears),
                                       cmocka_unit_test(faults),  cmocka_unit_test(another_cable),
                                       cmocka_unit_test(times),   cmocka_unit_test(not_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
