// SPDX-License-Identifier: Apache-2.0
// L18: what ibdiagnet has read of a device against its limits: raises, holds, steps down, clears.
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/mono.h"
#include "telemetry/device.h"

#define SPINE 0xa1ull
#define MINUTE (60 * MONO_S)

struct bed {
    struct devices *d;
    int64_t now;
    unsigned raised, cleared;
    enum alarm_severity severity;
    char reason[700], evidence[400];
    struct tele_fan fan[80];
    struct tele_psu psu[2];
    struct tele_device x;
};

static void on_raise(void *arg, uint64_t guid, enum alarm_severity s, const char *reason,
                     const char *evidence)
{
    struct bed *b = arg;
    assert_int_equal(guid, SPINE);
    b->raised++;
    b->severity = s;
    snprintf(b->reason, sizeof(b->reason), "%s", reason);
    snprintf(b->evidence, sizeof(b->evidence), "%s", evidence);
    assert_true(evidence[0] == '{' && evidence[strlen(evidence) - 1] == '}');
}

static void on_clear(void *arg, uint64_t guid)
{
    struct bed *b = arg;
    assert_int_equal(guid, SPINE);
    b->cleared++;
}

static int setup(void **state)
{
    static struct bed b;
    b = (struct bed){.now = 1000 * MONO_S};
    b.d = devices_new(&(struct device_sink){.arg = &b, .raise = on_raise, .clear = on_clear});
    for (unsigned i = 0; i < 80; i++)
        b.fan[i] = (struct tele_fan){SPINE, (uint16_t)(i + 1), 9000, 4500, 22000, PART_OK};
    for (unsigned i = 0; i < 2; i++)
        b.psu[i] =
            (struct tele_psu){.node_guid = SPINE, .index = (uint16_t)(i + 1), .state = PART_OK, .bad = ""};
    b.x = (struct tele_device){
        .guid = SPINE, .celsius = 50, .fan = b.fan, .num_fans = 4, .psu = b.psu, .num_psus = 2};
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bed *b = *state;
    devices_free(b->d);
    return 0;
}

static bool stands(const struct bed *b)
{
    struct device_view v;
    devices_view(b->d, SPINE, &v);
    assert_int_equal(v.stands, b->raised > 0 && v.reason[0] != 0);
    if (v.stands)
        assert_int_equal(v.read_at, b->now);
    return v.stands;
}

static void feed(struct bed *b)
{
    b->now += 10 * MINUTE;
    devices_feed(b->d, &b->x, true, b->now);
}

static void hot(struct bed *b, double celsius)
{
    b->x.celsius = celsius;
    feed(b);
}

static void temperature(void **state)
{
    struct bed *b = *state;
    hot(b, 80); // the limit itself is none beyond it
    assert_false(stands(b));
    hot(b, 80.5);
    assert_true(stands(b));
    assert_int_equal(b->severity, ALARM_MINOR);
    assert_non_null(strstr(b->reason, "ASIC 80 C, limit 80"));
    assert_non_null(strstr(b->evidence, "\"celsius\":80.5"));
    hot(b, 76); // not 5 C below yet
    assert_true(stands(b));
    assert_int_equal(b->cleared, 0);
    hot(b, 90);
    assert_int_equal(b->severity, ALARM_MINOR);
    hot(b, 91);
    assert_int_equal(b->severity, ALARM_CRITICAL);
    hot(b, 86);
    assert_int_equal(b->severity, ALARM_CRITICAL);
    hot(b, 85);
    assert_int_equal(b->severity, ALARM_MINOR);
    hot(b, 75);
    assert_false(stands(b));
    assert_int_equal(b->cleared, 1);
    hot(b, 79);
    assert_int_equal(b->cleared, 1);
    assert_false(stands(b));
}

// What is not read is not well again.
static void not_read(void **state)
{
    struct bed *b = *state;
    hot(b, 95);
    hot(b, NAN);
    assert_true(stands(b));
    assert_int_equal(b->cleared, 0);
    b->fan[1].state = PART_FAILED;
    b->fan[1].rpm = 0;
    hot(b, 50);
    assert_true(stands(b));
    b->fan[1].state = PART_UNKNOWN;
    feed(b);
    assert_true(stands(b));
    b->x.fan = &b->fan[2]; // it is not named any more
    b->x.num_fans = 2;
    feed(b);
    assert_true(stands(b));
    b->x.fan = b->fan;
    b->x.num_fans = 4;
    b->fan[1].state = PART_OK;
    feed(b);
    assert_false(stands(b));
}

// What nobody reads any more says so, and is over after a day; also when it was old to begin with.
static void not_read_for_long(void **state)
{
    struct bed *b = *state;
    hot(b, 95);
    devices_age(b->d, b->now + 30 * MINUTE);
    assert_int_equal(b->raised, 1);
    devices_age(b->d, b->now + 200 * MINUTE);
    devices_age(b->d, b->now + 210 * MINUTE);
    assert_int_equal(b->raised, 2);
    assert_string_equal(b->reason, "ASIC 95 C, limit 90; not read for 2 h");
    assert_non_null(strstr(b->evidence, ",\"not_read_hours\":2}"));
    b->now += 210 * MINUTE;
    feed(b);
    assert_string_equal(b->reason, "ASIC 95 C, limit 90");
    assert_null(strstr(b->evidence, "not_read"));
    devices_age(b->d, b->now + 1439 * MINUTE);
    assert_true(stands(b));
    devices_age(b->d, b->now + 1440 * MINUTE);
    assert_false(stands(b));
    assert_int_equal(b->cleared, 1);
    b->now = -1400 * MINUTE;
    devices_feed(b->d, &b->x, true, b->now);
    devices_age(b->d, 10 * MINUTE);
    assert_true(stands(b));
    devices_age(b->d, 50 * MINUTE);
    assert_false(stands(b));
}

static void parts(void **state)
{
    struct bed *b = *state;
    feed(b);
    assert_int_equal(b->raised, 0);
    b->fan[2].state = PART_FAILED;
    b->fan[2].rpm = 1200;
    feed(b);
    assert_int_equal(b->raised, 1);
    assert_int_equal(b->severity, ALARM_CRITICAL);
    assert_string_equal(b->reason, "fan 3 at 1200 turns a minute, 4500 at least");
    // All that fails of one device is one alarm.
    b->psu[1].state = PART_FAILED;
    b->psu[1].bad = "DC ERROR";
    b->x.celsius = 92;
    feed(b);
    assert_int_equal(b->raised, 2);
    assert_non_null(strstr(b->reason, "; power supply 2: DC ERROR; ASIC 92 C, limit 90"));
    assert_string_equal(b->evidence, "{\"celsius\":92.0,\"fans\":4,\"fans_failed\":1,\"power_supplies\":2,"
                                     "\"power_supplies_failed\":1}");
    b->fan[2].state = PART_OK;
    b->x.celsius = 60;
    feed(b);
    assert_string_equal(b->reason, "power supply 2: DC ERROR");
    b->psu[1].state = PART_ABSENT; // taken out, and none is put in its place
    feed(b);
    assert_true(stands(b));
    b->psu[1].state = PART_OK;
    feed(b);
    assert_false(stands(b));
    assert_int_equal(b->cleared, 1);
    b->psu[0].state = PART_ABSENT; // an empty place that had none
    feed(b);
    assert_false(stands(b));
}

static void says_so_itself(void **state)
{
    struct bed *b = *state;
    b->x.slow_fans = 4;
    feed(b);
    assert_int_equal(b->severity, ALARM_CRITICAL);
    assert_non_null(strstr(b->reason, "says that a fan is too slow"));
    b->fan[0].state = PART_FAILED;
    feed(b);
    assert_null(strstr(b->reason, "says that")); // that is the one
    b->fan[0].state = PART_OK;
    b->x.slow_fans = 0;
    feed(b);
    assert_false(stands(b));
}

// The same file told again, or an older one, is no new reading; a reason that changes a little is not told at
// each.
static void told_once(void **state)
{
    struct bed *b = *state;
    b->fan[0].state = PART_FAILED;
    feed(b);
    for (int i = 0; i < 3; i++)
        devices_feed(b->d, &b->x, true, b->now);
    assert_int_equal(b->raised, 1);
    b->fan[0].state = PART_OK;
    devices_feed(b->d, &b->x, true, b->now - 1);
    assert_true(stands(b));
    b->fan[0].state = PART_FAILED;
    b->fan[0].rpm = 7;
    b->now += MINUTE;
    devices_feed(b->d, &b->x, true, b->now);
    assert_int_equal(b->raised, 1);
    b->now += 5 * MINUTE;
    devices_feed(b->d, &b->x, true, b->now);
    assert_int_equal(b->raised, 2);
    b->fan[1].state = PART_FAILED; // one more is told at once
    b->now += MINUTE;
    devices_feed(b->d, &b->x, true, b->now);
    assert_int_equal(b->raised, 3);
    devices_forget(b->d, SPINE);
    devices_forget(b->d, SPINE);
    devices_forget(b->d, 5);
    assert_int_equal(b->cleared, 1);
}

// Adapters may be as hot as they like; of a device with more failures than can be told the first are told.
static void odd(void **state)
{
    struct bed *b = *state;
    b->x.celsius = 99;
    devices_feed(b->d, &b->x, false, b->now + 1);
    assert_int_equal(b->raised, 0);
    b->x.celsius = 50;
    b->x.num_fans = 80;
    for (unsigned i = 0; i < 80; i++)
        b->fan[i].state = PART_FAILED;
    feed(b);
    assert_non_null(strstr(b->reason, "; and 56 more"));
    uint64_t *guid;
    assert_int_equal(devices_standing(b->d, &guid), 1);
    assert_int_equal(guid[0], SPINE);
    free(guid);
    for (unsigned i = 0; i < 80; i++)
        b->fan[i].state = PART_OK;
    feed(b);
    assert_false(stands(b));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(temperature), T(not_read), T(not_read_for_long), T(parts), T(says_so_itself), T(told_once), T(odd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
