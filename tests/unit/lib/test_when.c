// SPDX-License-Identifier: Apache-2.0
// Times as people write them: zones, and days that there are not.
#include "tests/unit/lib/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "lib/when.h"

#define S 1000000000ll
#define NOON 1796126400ll // 2026-12-01 12:00:00 UTC

static void zone(const char *tz)
{
    setenv("TZ", tz, 1);
    tzset();
}

static void expect(const char *text, int64_t now, bool ahead, int64_t seconds)
{
    int64_t ns = 0;
    if (when_read(text, now * S, ahead, &ns) != 0)
        fail_msg("%s is not taken", text);
    if (ns != seconds * S)
        fail_msg("%s: %lld s off", text, (long long)(ns / S - seconds));
}

static void refused(const char *text)
{
    int64_t ns = 7;
    assert_int_equal(when_read(text, NOON * S, false, &ns), -EINVAL);
    assert_int_equal(when_parse(text, &ns), -EINVAL);
    assert_int_equal(ns, 7);
}

// Whatever the local zone is.
static void with_a_zone(void **state)
{
    static const char *const tz[] = {"UTC", "CET-1CEST,M3.5.0,M10.5.0/3", "PST8PDT,M3.2.0,M11.1.0",
                                     "<+14>-14"};
    (void)state;
    for (size_t i = 0; i < sizeof(tz) / sizeof(tz[0]); i++) {
        zone(tz[i]);
        expect("2026-12-01T12:00:00Z", NOON, false, NOON);
        expect("2026-12-01t12:00:00z", NOON, false, NOON);
        expect("2026-12-01T14:00:00+02:00", NOON, false, NOON);
        expect("2026-12-01 14:00+02:00", NOON, false, NOON);
        expect("2026-12-01 14:00 +02:00", NOON, false, NOON);
        expect("2026-12-01T06:30-05:30", NOON, false, NOON);
        expect("2026-12-02T02:00+14:00", NOON, false, NOON);
        expect("2026-12-01Z", NOON, false, NOON - 12 * 3600);
        expect("2026-12-01 UTC", NOON, false, NOON - 12 * 3600);
        expect("2026-12-01+02:00", NOON, false, NOON - 14 * 3600);
        // Of the day that it is there.
        expect("11:00Z", NOON, false, NOON - 3600);
        expect("11:00 GMT", NOON, true, NOON + 23 * 3600);
        expect("13:00+02:00", NOON, false, NOON - 3600);
        expect("15:00+02:00", NOON, true, NOON + 3600);
        expect("15:00+02:00", NOON, false, NOON - 23 * 3600);
        expect("01:00+14:00", NOON, false, NOON - 3600);
        expect("03:00+14:00", NOON, true, NOON + 3600);
        expect("23:00-12:00", NOON, false, NOON - 3600);
        expect("01:00-12:00", NOON, true, NOON + 3600);
        expect("01:00-12:00", NOON, false, NOON - 23 * 3600);
    }
    zone("UTC");
}

// Clocks are put back in the night of 25 October 2026, at 01:00 UTC: that day has 25 hours.
static void local_days(void **state)
{
    const int64_t morning = 1792911600; // 2026-10-25 08:00 CET
    (void)state;
    zone("CET-1CEST,M3.5.0,M10.5.0/3");
    expect("2026-10-25 08:00", morning, false, morning);
    expect("08:00", morning, false, morning);
    expect("08:01", morning, false, morning + 60 - 25 * 3600);
    expect("08:00", morning - 25 * 3600, true, morning);
    expect("08:00 CET", morning, false, morning);
    expect("09:00 CEST", morning, false, morning);
    refused("08:00 EST");
    zone("UTC");
}

static void no_such_day(void **state)
{
    static const char *const bad[] = {"2026-02-31", "2026-02-29", "2026-02-30", "2026-04-31", "2100-02-29",
                                      "2026-00-10", "2026-13-01", "2026-01-00", "2026-01-32", "2026-1-031"};
    static const char *const behind[] = {"", " 10:20", "T10:20:30Z", "T10:20:30+02:00", " 10:20:30 UTC"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (size_t k = 0; k < sizeof(behind) / sizeof(behind[0]); k++) {
            char text[60];
            snprintf(text, sizeof(text), "%s%s", bad[i], behind[k]);
            refused(text);
        }
    expect("2028-02-29T00:00:00Z", NOON, false, 1835395200);
    expect("2000-02-29T00:00:00Z", NOON, false, 951782400);
    expect("2016-12-31T23:59:60Z", NOON, false, 1483228800); // a leap second is the next one
}

static void no_such_time(void **state)
{
    static const char *const bad[] = {"2026-12-01T12:00:61Z",
                                      "2026-12-01T24:00:00Z",
                                      "2026-12-01T12:60:00Z",
                                      "2026-12-01T12:00:00.Z",
                                      "2026-12-01T12:00:00+24:00",
                                      "2026-12-01T12:00:00+-1:00",
                                      "2026-12-01T12:00:00+01:60",
                                      "2026-12-01T12:00:00+0200x",
                                      "2026-12-01T12:00:00+1:000",
                                      "2026-12-01T",
                                      "2026-12-01 x",
                                      "12:00+2:00",
                                      "12:00:61",
                                      "12:00+25:00",
                                      "",
                                      "2026",
                                      "2026-12",
                                      "1600-01-01T00:00:00Z",
                                      "9999-01-01"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refused(bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_zone),
        cmocka_unit_test(local_days),
        cmocka_unit_test(no_such_day),
        cmocka_unit_test(no_such_time),
    };
    return cmocka_run_group_tests_name("lib/when", tests, NULL, NULL);
}
