// SPDX-License-Identifier: Apache-2.0
// Rules of counters: nothing at 0.9 times a limit, a verdict at 1.5 times, cleared when its time has passed
// and not before; readings that are missing, cleared and saturated counters.
#include "tests/unit/telemetry/healthtest.h"

#include "lib/rng.h"

// n events spread evenly over a time, in readings of b->step.
static void spread(struct bed *b, uint32_t slot, enum tele_counter c, double n, int64_t over)
{
    double given = 0;
    int64_t begin = b->now;
    while (b->now + b->step <= begin + over) {
        double due = n * (double)(b->now + b->step - begin) / (double)over;
        uint64_t now = (uint64_t)(due + 1e-9) - (uint64_t)(given + 1e-9);
        add(b, slot, c, now);
        given = due;
        tick(b);
    }
}

struct row {
    const char *rule;
    enum tele_counter counter;
    uint32_t mbps;
    int64_t window;
    double below, above; // events in the window
    int severity;        // of `above`
    int64_t clear;
};
static const struct row rows[] = {
    {"L06", TELE_SYMBOL_ERRORS, 400000, 12 * MIN, 2, 5, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 800000, 12 * MIN, 5, 9, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 200000, 12 * MIN, 2, 3, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 100000, 12 * MIN, 2, 3, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 200000, 23 * MIN, 2, 4, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 100000, 46 * MIN, 2, 4, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 200000, 248 * MIN, 2, 5, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 100000, 490 * MIN, 2, 5, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 10000, 490 * MIN, 2, 3, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 400000, 125 * MIN, 2, 5, ALARM_MAJOR, 126 * MIN},
    {"L06", TELE_SYMBOL_ERRORS, 800000, 125 * MIN, 5, 9, ALARM_MAJOR, 126 * MIN},
    {"L07", TELE_SYMBOL_ERRORS, 400000, 60 * MIN, 108, 180, ALARM_MINOR, 126 * MIN},
    {"L07", TELE_SYMBOL_ERRORS, 400000, 60 * S, 30, 900, ALARM_CRITICAL, 126 * MIN},
    {"L02", TELE_LINK_ERROR_RECOVERY, 400000, 60 * S, 4, 8, ALARM_MAJOR, 126 * MIN},
    {"L11", TELE_LOCAL_LINK_INTEGRITY_ERRORS, 400000, 10 * S, 0, 1, ALARM_CRITICAL, 126 * MIN},
    {"L11", TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 400000, 10 * S, 0, 1, ALARM_CRITICAL, 126 * MIN},
    {"L12", TELE_RCV_ERRORS, 400000, 10 * MIN, 540, 900, ALARM_MINOR, 10 * MIN},
    {"L13", TELE_XMIT_DISCARDS, 400000, 10 * MIN, 540, 900, ALARM_MINOR, 10 * MIN},
    {"L14", TELE_RCV_CONSTRAINT_ERRORS, 400000, 300 * S, 180, 300, ALARM_MINOR, 300 * S},
    {"L14", TELE_XMIT_CONSTRAINT_ERRORS, 400000, 300 * S, 180, 300, ALARM_MINOR, 300 * S},
    {"L15", TELE_VL15_DROPPED, 400000, 300 * S, 45, 75, ALARM_MINOR, 300 * S},
};

static void one_row(const struct row *r, uint32_t slot, int64_t step)
{
    static struct bed b;
    bed_open(&b, 2, r->mbps);
    b.step = step;
    pass(&b, 20 * MIN);
    spread(&b, slot, r->counter, r->below, r->window);
    if (raised(&b, r->rule))
        fail_msg("%s raised by %.0f: %s", r->rule, r->below, reason(&b, r->rule));
    pass(&b, 132 * MIN);
    assert_int_equal(raised(&b, r->rule), 0);

    spread(&b, slot, r->counter, r->above, r->window);
    int64_t last = b.now;
    pass(&b, 3 * step);
    if (stands(&b, r->rule) != r->severity)
        fail_msg("%s not raised by %.0f in %lld s at %u, %lld s a reading", r->rule, r->above,
                 (long long)(r->window / S), r->mbps, (long long)(step / S));
    for (unsigned i = 0; i < b.num_said; i++)
        assert_int_equal(b.said[i].slot, slot & ~1u); // the link's lower slot, whichever end counted
    assert_non_null(strpbrk(reason(&b, r->rule), "0123456789"));
    int64_t early = last + r->clear - 3 * step;
    pass(&b, early - b.now);
    assert_int_equal(stands(&b, r->rule), r->severity);
    pass(&b, 3 * step + 3 * MIN);
    if (stands(&b, r->rule) != -1)
        fail_msg("%s does not clear in %lld s: %s", r->rule, (long long)((b.now - last) / S),
                 reason(&b, r->rule));
    bed_close(&b);
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t slot = 2; slot < 4; slot++)
            one_row(&rows[i], slot, 10 * S);
}

static void every_row_by_the_second(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].window < HOUR)
            one_row(&rows[i], 2, S);
}

static void uncorrectable_blocks(void **state)
{
    static struct bed b;
    (void)state;
    bed_open(&b, 1, 400000);
    pass(&b, 20 * MIN);
    assert_int_equal(raised(&b, "L10"), 0);
    add(&b, 1, TELE_FEC_UNCORRECTABLE_BLOCKS, 1);
    pass(&b, 2 * MIN);
    assert_int_equal(stands(&b, "L10"), ALARM_MAJOR);
    assert_int_equal(view(&b, 1).state, HEALTH_FAILING);
    pass(&b, 6 * HOUR - 4 * MIN);
    assert_int_equal(stands(&b, "L10"), ALARM_MAJOR);
    pass(&b, 5 * MIN);
    assert_int_equal(stands(&b, "L10"), -1);
    bed_close(&b);
}

// Three in 12 min are too many at 400 Gb/s (2.88), three in 125 min are not.
BED(three_errors, 2, 400000)
{
    pass(b, 20 * MIN);
    spread(b, 0, TELE_SYMBOL_ERRORS, 3, 120 * MIN);
    assert_int_equal(raised(b, "L06"), 0);
    spread(b, 2, TELE_SYMBOL_ERRORS, 3, 11 * MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    assert_int_equal(b->said[0].slot, 2);
    assert_non_null(strstr(reason(b, "L06"), "3 post-FEC symbol errors within 12 min"));
}

static double number_in(const char *text)
{
    return strtod(text + strcspn(text, "0123456789"), NULL);
}

// What is said of one cable is of one moment.
BED(numbers_are_of_one_moment, 1, 400000)
{
    pass(b, 20 * MIN);
    for (int i = 0; i < 12; i++) { // L06 with the first, L07 twenty seconds later
        add(b, 0, TELE_SYMBOL_ERRORS, 5 + (i > 1) * 200);
        tick(b);
    }
    assert_int_equal(stands(b, "L07"), ALARM_CRITICAL);
    assert_true(number_in(reason(b, "L06")) >= number_in(reason(b, "L07")));
    unsigned found = 0;
    for (unsigned i = 1; i < b->num_said; i++) {
        if (strcmp(b->said[i].rule, "L07") != 0)
            continue;
        bool before = b->said[i - 1].at == b->said[i].at;
        assert_true(before || (i + 1 < b->num_said && b->said[i + 1].at == b->said[i].at));
        found++;
    }
    assert_true(found > 0);
}

// And of now: also when it becomes less.
BED(numbers_are_of_now, 1, 400000)
{
    pass(b, 20 * MIN);
    spread(b, 0, TELE_SYMBOL_ERRORS, 600, 30 * MIN); // 20 a minute
    pass(b, 10 * S);
    double in_12 = number_in(reason(b, "L06")), in_60 = number_in(reason(b, "L07"));
    assert_non_null(strstr(reason(b, "L07"), "within an hour"));
    assert_in_range((int)in_60, 570, 600); // a minute ago at most
    assert_true(in_12 <= in_60);
    pass(b, 60 * MIN);
    assert_non_null(strstr(reason(b, "L07"), "was "));
    assert_non_null(strstr(reason(b, "L07"), "symbol errors within an hour"));
    assert_non_null(strstr(reason(b, "L07"), "over when none has come for 126 min"));
    unsigned n = b->num_said;
    pass(b, 30 * MIN);
    assert_int_equal(b->num_said, n); // the same is not told again
    spread(b, 0, TELE_SYMBOL_ERRORS, 20, MIN);
    pass(b, MIN);
    assert_null(strstr(reason(b, "L06"), "was "));
    assert_in_range((int)number_in(reason(b, "L06")), 615, 620); // within 125 min
}

// What a port has received from elsewhere blames no cable.
BED(remote_errors, 1, 400000)
{
    pass(b, 20 * MIN);
    spread(b, 0, TELE_RCV_REMOTE_PHYSICAL_ERRORS, 100000, 20 * MIN);
    spread(b, 0, TELE_RCV_SWITCH_RELAY_ERRORS, 100000, 20 * MIN);
    assert_int_equal(b->num_said, 0);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
}

BED(severity_goes_up_and_down, 1, 400000)
{
    pass(b, 20 * MIN);
    spread(b, 0, TELE_SYMBOL_ERRORS, 200, HOUR);
    assert_int_equal(stands(b, "L07"), ALARM_MINOR);
    spread(b, 0, TELE_SYMBOL_ERRORS, 1500, 100 * S);
    assert_int_equal(stands(b, "L07"), ALARM_CRITICAL);
    spread(b, 0, TELE_SYMBOL_ERRORS, 440, 125 * MIN); // goes on slowly
    assert_int_equal(stands(b, "L07"), ALARM_CRITICAL);
    spread(b, 0, TELE_SYMBOL_ERRORS, 440, 125 * MIN);
    assert_int_equal(stands(b, "L07"), ALARM_MINOR);
    pass(b, 127 * MIN);
    assert_int_equal(stands(b, "L07"), -1);
}

// A burst is no rate over ten minutes.
BED(bursts_are_not_sustained, 1, 400000)
{
    pass(b, 20 * MIN);
    add(b, 0, TELE_XMIT_DISCARDS, 1000000);
    add(b, 0, TELE_RCV_ERRORS, 1000000);
    pass(b, 5 * MIN);
    add(b, 0, TELE_XMIT_DISCARDS, 1000000);
    add(b, 0, TELE_RCV_ERRORS, 1000000);
    pass(b, 30 * MIN);
    assert_int_equal(raised(b, "L12") + raised(b, "L13"), 0);
}

// --- readings ---

// A third of the readings is missing: what was counted comes with the next one.
static void missing_readings(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        static struct bed b;
        struct rng r;
        rng_init(&r, seed);
        bed_open(&b, 1, 400000);
        pass(&b, 20 * MIN);
        for (int i = 0; i < 12 * 6; i++) {
            b.unread[0] = rng_below(&r, 3) == 0;
            b.unread[1] = rng_below(&r, 3) == 0;
            add(&b, 1, TELE_RCV_ERRORS, 15);
            if (i % 14 == 13)
                add(&b, 1, TELE_SYMBOL_ERRORS, 1);
            tick(&b);
        }
        b.unread[0] = b.unread[1] = 0;
        tick(&b);
        assert_int_equal(stands(&b, "L12"), ALARM_MINOR);
        assert_int_equal(stands(&b, "L06"), ALARM_MAJOR);
        bed_close(&b);
    }
}

BED(nothing_clears_unread, 1, 400000)
{
    pass(b, 20 * MIN);
    add(b, 1, TELE_SYMBOL_ERRORS, 8);
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    b->unread[1] = 1;
    pass(b, 5 * HOUR);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    add(b, 1, TELE_SYMBOL_ERRORS, 1); // counted somewhere in the gap
    b->unread[1] = 0;
    pass(b, 2 * MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    pass(b, 125 * MIN);
    assert_int_equal(stands(b, "L06"), -1);
}

// Nor what had become better before.
BED(better_and_then_unread, 1, 400000)
{
    pass(b, 20 * MIN);
    spread(b, 1, TELE_RCV_ERRORS, 1200, 12 * MIN);
    assert_int_equal(stands(b, "L12"), ALARM_MINOR);
    pass(b, 5 * MIN);
    b->unread[1] = 1;
    pass(b, 2 * HOUR);
    assert_int_equal(stands(b, "L12"), ALARM_MINOR);
    b->unread[1] = 0;
    pass(b, MIN);
    assert_int_equal(stands(b, "L12"), -1);
}

// What was there before the first reading is of another time.
BED(first_reading_counts_nothing, 2, 400000)
{
    add(b, 0, TELE_SYMBOL_ERRORS, 1000000);
    add(b, 0, TELE_LOCAL_LINK_INTEGRITY_ERRORS, 15);
    add(b, 0, TELE_FEC_UNCORRECTABLE_BLOCKS, 15);
    b->unread[2] = 1;
    pass(b, 20 * MIN);
    add(b, 2, TELE_RCV_ERRORS, 1000000);
    add(b, 2, TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 1000000);
    b->unread[2] = 0;
    pass(b, 20 * MIN);
    assert_int_equal(b->num_said, 0);
}

// A counter that the device begins to give later has no rate before.
BED(counter_that_appears, 1, 400000)
{
    for (int i = 0; i < 10; i++) {
        b->now += b->step;
        for (uint32_t s = 0; s < 2; s++) {
            b->t.at[s * TELE_GROUPS + TELE_ERRORS] = b->now;
            b->t.have[s] = i < 5 ? ~(1ull << TELE_LOCAL_LINK_INTEGRITY_ERRORS) : ~0ull;
        }
        if (i == 5)
            add(b, 0, TELE_LOCAL_LINK_INTEGRITY_ERRORS, 9);
        if (i == 8)
            add(b, 0, TELE_LOCAL_LINK_INTEGRITY_ERRORS, 1);
        health_feed(b->h, &b->t, b->now);
        assert_int_equal(raised(b, "L11"), i >= 8);
    }
}

BED(errors_of_training, 1, 400000)
{
    pass(b, 20 * MIN);
    health_link(b->h, 0, true, b->now);
    pass(b, MIN);
    // A host restarts: the switch's end sees rubbish until the link is up, and once more when it trains.
    add(b, 0, TELE_LINK_DOWNED, 1);
    add(b, 0, TELE_SYMBOL_ERRORS, 3000);
    add(b, 0, TELE_FEC_UNCORRECTABLE_BLOCKS, 30);
    health_link(b->h, 0, false, b->now + 3 * S);
    b->unread[1] = 1;
    tick(b);
    add(b, 0, TELE_SYMBOL_ERRORS, 3000);
    pass(b, 3 * MIN);
    health_link(b->h, 1, true, b->now + 2 * S);
    add(b, 0, TELE_SYMBOL_ERRORS, 3000);
    add(b, 0, TELE_FEC_UNCORRECTABLE_BLOCKS, 30);
    b->unread[1] = 0;
    pass(b, 10 * MIN);
    assert_int_equal(raised(b, "L06") + raised(b, "L07") + raised(b, "L10"), 0);
    assert_int_equal(raised(b, "L04"), 1);
    assert_int_equal(raised(b, "L02"), 0);
    // Afterwards they count.
    add(b, 0, TELE_SYMBOL_ERRORS, 8);
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
}

// Chance must not matter at 1.5 times a limit, nor at half of one.
static void by_chance(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 11);
    for (int round = 0; round < 30; round++) {
        static struct bed b;
        bed_open(&b, 3, 400000);
        pass(&b, 20 * MIN);
        for (int i = 0; i < 60 * 6; i++) {
            for (int k = 0; k < 1000; k++) {
                double u = rng_double(&r);
                add(&b, 0, TELE_RCV_ERRORS, u < 0.015);
                add(&b, 2, TELE_RCV_ERRORS, u < 0.006);
                add(&b, 5, TELE_SYMBOL_ERRORS, u > 0.985);
            }
            tick(&b);
        }
        assert_int_equal(stands(&b, "L12"), ALARM_MINOR);
        for (unsigned i = 0; i < b.num_said; i++)
            assert_int_not_equal(b.said[i].slot, 2);
        // 1.5 a second is 5,400 an hour, and no burst
        assert_int_equal(stands(&b, "L07"), ALARM_MINOR);
        bed_close(&b);
    }
}

// Few errors come unevenly: on a link of 200 Gb/s four within 375 min are enough for 1e-15, three are not.
static void few_in_a_long_time(void **state)
{
    static const struct {
        uint32_t mbps;
        int n;
        int64_t apart;
        bool bad;
    } row[] = {{200000, 4, 100 * MIN, true},
               {200000, 3, 110 * MIN, false},
               {200000, 4, 130 * MIN, false},
               {400000, 4, 100 * MIN, false},
               {400000, 4, 40 * MIN, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        bed_open(&b, 1, row[i].mbps);
        b.step = MIN;
        pass(&b, 3 * HOUR);
        for (int k = 0; k < row[i].n; k++) {
            pass(&b, row[i].apart);
            add(&b, 1, TELE_SYMBOL_ERRORS, 1);
        }
        pass(&b, 5 * MIN);
        if ((raised(&b, "L06") > 0) != row[i].bad)
            fail_msg("row %zu: %s", i, reason(&b, "L06"));
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(every_row_by_the_second),
        cmocka_unit_test(uncorrectable_blocks),
        cmocka_unit_test(three_errors),
        cmocka_unit_test(numbers_are_of_one_moment),
        cmocka_unit_test(numbers_are_of_now),
        cmocka_unit_test(remote_errors),
        cmocka_unit_test(severity_goes_up_and_down),
        cmocka_unit_test(bursts_are_not_sustained),
        cmocka_unit_test(missing_readings),
        cmocka_unit_test(nothing_clears_unread),
        cmocka_unit_test(better_and_then_unread),
        cmocka_unit_test(first_reading_counts_nothing),
        cmocka_unit_test(counter_that_appears),
        cmocka_unit_test(errors_of_training),
        cmocka_unit_test(by_chance),
        cmocka_unit_test(few_in_a_long_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
