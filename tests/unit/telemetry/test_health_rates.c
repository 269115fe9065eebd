// SPDX-License-Identifier: Apache-2.0
// Bit errors before FEC, waits, temperatures, width and speed; and what is said of links that nothing stands
// on: healthy, unsure, unknown.
#include "tests/unit/telemetry/healthtest.h"

#include "fabric/builder.h"
#include "lib/rng.h"

// --- raw bit errors ---

// Readings with a ratio of symbols before FEC, for some time.
static void raw(struct bed *b, uint32_t slot, double ratio, int64_t over)
{
    for (int64_t end = b->now + over; b->now + b->step <= end;) {
        double bits = b->t.port[slot].rate_mbps * 1e6 * mono_seconds(b->step);
        add(b, slot, TELE_FEC_CORRECTED_SYMBOLS, (uint64_t)(bits * ratio));
        tick(b);
    }
}

static void rises(void **state)
{
    static const struct {
        double before, after;
        bool rises;
    } row[] = {
        {1e-8, 9e-8, false},  {1e-8, 1.5e-7, true},   {1e-7, 9e-7, false},
        {1e-7, 1.5e-6, true}, {1e-12, 0.9e-7, false}, {1e-12, 1.5e-7, true},
        {0, 1.5e-7, true},    {5e-8, 4.5e-7, false},  {5e-7, 7.5e-6, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        bed_open(&b, 2, 400000);
        raw(&b, 3, row[i].before, 3 * HOUR);
        assert_int_equal(b.num_said, 0);
        raw(&b, 3, row[i].after, 30 * MIN);
        if ((stands(&b, "L08") == ALARM_MINOR) != row[i].rises)
            fail_msg("row %zu: %s", i, reason(&b, "L08"));
        if (row[i].rises) {
            assert_int_equal(b.said[0].slot, 2);
            assert_int_equal(view(&b, 2).state, HEALTH_DEGRADED);
            assert_true(fabs(view(&b, 2).raw_ber / row[i].after - 1) < 0.01);
            raw(&b, 3, row[i].after / 4, 2 * HOUR); // above 3 times the old median, or of the floor
            assert_int_equal(stands(&b, "L08"), ALARM_MINOR);
            raw(&b, 3, row[i].before, 5 * HOUR + 50 * MIN);
            assert_int_equal(stands(&b, "L08"), ALARM_MINOR);
            raw(&b, 3, row[i].before, 25 * MIN);
            assert_int_equal(stands(&b, "L08"), -1);
        }
        bed_close(&b);
    }
}

static void high(void **state)
{
    static const struct {
        double ratio;
        int severity;
    } row[] = {{0.9e-5, -1}, {1.5e-5, ALARM_MINOR}, {0.9e-4, ALARM_MINOR}, {1.5e-4, ALARM_MAJOR}};
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        bed_open(&b, 1, 400000);
        raw(&b, 0, row[i].ratio, 30 * MIN);
        assert_int_equal(stands(&b, "L09"), row[i].severity);
        if (row[i].severity >= 0) {
            double limit = row[i].severity == ALARM_MAJOR ? 1e-4 : 1e-5;
            raw(&b, 0, limit * 0.6, 2 * HOUR); // not below half
            assert_int_equal(stands(&b, "L09"), row[i].severity);
            raw(&b, 0, limit * 0.4, 2 * HOUR);
            assert_int_equal(stands(&b, "L09"), row[i].severity == ALARM_MAJOR ? ALARM_MINOR : -1);
            raw(&b, 0, 1e-6, 10 * MIN);
            if (row[i].severity == ALARM_MAJOR) // of now
                assert_non_null(strstr(reason(&b, "L09"), "ratio 1.0e-06"));
            raw(&b, 0, 1e-6, 70 * MIN);
            assert_int_equal(stands(&b, "L09"), -1);
        }
        bed_close(&b);
    }
}

// Noise of a factor of two is no rise, nor is one bad minute.
BED(noise, 1, 400000)
{
    struct rng r;
    rng_init(&r, 4);
    for (int i = 0; i < 26 * 60; i++)
        raw(b, 0, 2e-8 * (0.5 + 1.5 * rng_double(&r)), MIN);
    assert_int_equal(b->num_said, 0);
    for (int i = 0; i < 10; i++) {
        raw(b, 0, 4e-6, MIN);
        raw(b, 0, 2e-8, 14 * MIN);
    }
    assert_int_equal(raised(b, "L08"), 0);
}

// A climb over hours, which the median of the day does not follow.
BED(slow_climb, 1, 400000)
{
    raw(b, 0, 1e-8, 20 * HOUR);
    double ratio = 1e-8;
    int64_t found = 0;
    for (int i = 0; i < 48 && !found; i++, ratio *= pow(10, 1 / 8.0)) { // tenfold in 2 h
        raw(b, 0, ratio, 15 * MIN);
        found = raised(b, "L08") ? b->now : 0;
    }
    assert_true(found > 0 && ratio < 2.5e-7);
}

BED(no_median_yet, 1, 400000)
{
    raw(b, 0, 1e-9, 30 * MIN);
    raw(b, 0, 1e-6, 20 * MIN);
    assert_int_equal(raised(b, "L08"), 0);
}

// Two readings (one a minute, the first after ten seconds) that are far too bad, and all is well again: no
// third one says so.
BED(three_in_a_row, 1, 400000)
{
    raw(b, 0, 1e-6, 30 * MIN);
    for (int i = 0; i < 3; i++) {
        raw(b, 0, 2e-3, 70 * S);
        raw(b, 0, 1e-6, 20 * MIN - 70 * S);
    }
    assert_int_equal(raised(b, "L09"), 0);
    raw(b, 0, 2e-3, 130 * S);
    assert_int_equal(stands(b, "L09"), ALARM_MAJOR);
}

static void fills_up(struct bed *b, double ratio)
{
    uint64_t bit = 1ull << TELE_FEC_CORRECTED_SYMBOLS;
    b->now = b->t.at[TELE_SPEED] + MIN;
    add(b, 0, TELE_FEC_CORRECTED_SYMBOLS, (uint64_t)(ratio * 400e9 * 60));
    b->t.had[0] = ~b->t.port[0].full;
    b->t.port[0].full |= bit;
    b->t.at_before[TELE_SPEED] = b->t.at[TELE_SPEED];
    b->t.at[TELE_SPEED] = b->now;
    b->detail_at = b->now;
    health_feed(b->h, &b->t, b->now);
}

// A counter of 32 bits is full within a minute or two of what is worst: what it had counted by then says it.
BED(fills_up_between_readings, 1, 400000)
{
    raw(b, 0, 1e-9, 30 * MIN);
    fills_up(b, 1.2e-4);
    assert_int_equal(stands(b, "L09"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L09"), "1.2e-04 or more at"));
    assert_non_null(strstr(reason(b, "L09"), "filled up"));
    pass(b, 3 * HOUR); // nothing is known of it: that is not well again
    assert_int_equal(stands(b, "L09"), ALARM_MAJOR);
    assert_int_equal(view(b, 0).state, HEALTH_FAILING);
}

BED(fills_up_with_the_second, 1, 400000)
{
    raw(b, 0, 1e-9, 30 * MIN);
    raw(b, 0, 1.5e-4, MIN);
    assert_int_equal(raised(b, "L09"), 0);
    fills_up(b, 2e-5); // of what was left
    assert_int_equal(stands(b, "L09"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L09"), " or more at")); // as the one before it
}

BED(a_full_counter_of_a_good_link, 1, 400000)
{
    raw(b, 0, 1e-9, 30 * MIN);
    fills_up(b, 1e-9);
    pass(b, HOUR);
    assert_int_equal(raised(b, "L08") + raised(b, "L09"), 0);
}

// No time before the fault is in the ratio.
BED(the_newest_interval, 1, 400000)
{
    raw(b, 0, 1e-9, 30 * MIN);
    raw(b, 0, 2e-5, 4 * MIN);
    assert_int_equal(stands(b, "L09"), ALARM_MINOR);
    if (!strstr(reason(b, "L09"), "ratio 2.0e-05"))
        fail_msg("%s", reason(b, "L09"));
    assert_true(fabs(view(b, 0).raw_ber / 2e-5 - 1) < 0.01);
}

// What is corrected while the link trains is not its ratio.
BED(training, 1, 400000)
{
    health_link(b->h, 0, true, b->now);
    raw(b, 0, 1e-9, 3 * HOUR);
    health_link(b->h, 0, false, b->now);
    raw(b, 0, 1e-3, 3 * MIN);
    health_link(b->h, 0, true, b->now);
    raw(b, 0, 1e-9, HOUR);
    assert_int_equal(raised(b, "L08") + raised(b, "L09"), 0);
}

// --- waits ---

// Out of slot: the share of time that it had to wait.
static void wait_for(struct bed *b, uint32_t slot, double share, int64_t over)
{
    for (int64_t end = b->now + over; b->now + b->step <= end;) {
        double bytes = b->t.port[slot].rate_mbps * 1e6 / 8 * mono_seconds(b->step);
        b->t.before[slot * TELE_COUNTERS + TELE_XMIT_WAIT] = tele_value(&b->t, slot, TELE_XMIT_WAIT);
        add(b, slot, TELE_XMIT_WAIT, (uint64_t)(bytes * share / 8));
        tick(b);
    }
}

static void waits(void **state)
{
    static const struct {
        double share;
        int severity;
    } row[] = {{0.045, -1}, {0.075, ALARM_MINOR}, {0.18, ALARM_MINOR}, {0.30, ALARM_MAJOR}};
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        bed_open(&b, 2, 400000);
        wait_for(&b, 3, 0, 20 * MIN);
        wait_for(&b, 3, row[i].share, 4 * MIN);
        assert_int_equal(b.num_said, 0);
        wait_for(&b, 3, row[i].share, 3 * MIN);
        assert_int_equal(stands(&b, "C01"), row[i].severity);
        if (row[i].severity >= 0) {
            double limit = row[i].severity == ALARM_MAJOR ? 0.2 : 0.05;
            assert_int_equal(b.said[0].slot, 2);
            assert_int_equal(view(&b, 3).state, HEALTH_HEALTHY); // no fault of the cable
            wait_for(&b, 3, limit * 0.7, 20 * MIN);
            assert_int_equal(stands(&b, "C01"), row[i].severity);
            wait_for(&b, 3, limit * 0.3, 4 * MIN);
            assert_int_equal(stands(&b, "C01"), row[i].severity);
            wait_for(&b, 3, limit * 0.3, 5 * MIN);
            assert_int_equal(stands(&b, "C01"), row[i].severity == ALARM_MAJOR ? ALARM_MINOR : -1);
            wait_for(&b, 3, 0, 10 * MIN);
            assert_int_equal(stands(&b, "C01"), -1);
        }
        bed_close(&b);
    }
}

BED(short_waits, 1, 400000)
{
    for (int i = 0; i < 20; i++) {
        wait_for(b, 0, 0.5, 2 * MIN);
        wait_for(b, 0, 0, 4 * MIN);
    }
    assert_int_equal(b->num_said, 0);
}

// --- modules ---

static void warm(struct bed *b, uint32_t slot, double celsius, int64_t over)
{
    for (int64_t end = b->now + over; b->now + b->step <= end;) {
        health_module(b->h, slot, celsius, b->now + b->step);
        tick(b);
    }
}

BED(modules, 2, 400000)
{
    pass(b, MIN);
    warm(b, 3, 63, 2 * HOUR);
    assert_int_equal(b->num_said, 0);
    warm(b, 3, 69.5, 30 * MIN);
    assert_int_equal(b->num_said, 0);
    warm(b, 3, 71.4, MIN);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
    assert_int_equal(b->said[0].slot, 2);
    assert_non_null(strstr(reason(b, "L16"), "71.4"));
    warm(b, 3, 68, HOUR); // above what clears
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
    warm(b, 3, 66, 9 * MIN);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
    warm(b, 3, 66, 2 * MIN);
    assert_int_equal(stands(b, "L16"), -1);
    warm(b, 3, 40, 3 * HOUR);
    warm(b, 3, 49, 30 * MIN); // 9 C within an hour
    assert_int_equal(raised(b, "L16"), 1);
    warm(b, 3, 55, MIN); // 15 C
    assert_int_equal(stands(b, "L16"), ALARM_MAJOR);
    warm(b, 3, 55, 3 * HOUR);
    assert_int_equal(stands(b, "L16"), -1);
    health_module(b->h, 3, NAN, b->now); // no source any more
    health_module(b->h, 3, 1e30, b->now);
    health_module(b->h, 999, 50, b->now);
    pass(b, HOUR);
    health_module(b->h, 3, 65, b->now); // nothing is known of an hour ago
    pass(b, MIN);
    assert_int_equal(stands(b, "L16"), -1);
}

// --- width and speed ---

struct pair {
    uint8_t width_active, width_a, width_b, ext_active, ext_a, ext_b, old_active, old_a, old_b;
};

static const struct fabric *two_switches(const struct pair *p, uint64_t generation)
{
    struct builder *b = builder_new();
    node_id n[2];
    for (unsigned i = 0; i < 2; i++) {
        struct node_attrs na = {.guid = 0x1000 + i, .type = NODE_SWITCH, .num_ports = 1};
        struct port_attrs a = {.state = PORT_ACTIVE,
                               .width_active = p->width_active,
                               .width_enabled = i ? p->width_b : p->width_a,
                               .speed_ext_active = p->ext_active,
                               .speed_ext_enabled = i ? p->ext_b : p->ext_a,
                               .speed_active = p->old_active,
                               .speed_enabled = i ? p->old_b : p->old_a};
        assert_int_equal(builder_node(b, &na, i ? "b" : "a", 1, &n[i], NULL), 0);
        assert_int_equal(builder_port(b, n[i], 1, &a), 0);
    }
    assert_int_equal(builder_link(b, n[0], 1, n[1], 1), 0);
    return builder_seal(b, generation, NULL);
}

static void show(struct bed *b, const struct fabric *f)
{
    b->t.fabric = f;
    for (uint32_t s = 0; s < 2; s++)
        b->t.port[s].port = fabric_port_at(f, fabric_by_guid(f, 0x1000 + s), 1).i;
}

static void narrow_or_slow(void **state)
{
    static const struct {
        struct pair p;
        const char *text; // "": as it should be
    } row[] = {
        {{2, 3, 3, 8, 15, 15, 4, 7, 7}, ""},
        {{1, 3, 3, 8, 15, 15, 4, 7, 7}, "1x where both ends can 4x"},
        {{1, 3, 1, 8, 15, 15, 4, 7, 7}, ""}, // one end allows no more
        {{2, 3, 3, 4, 15, 15, 4, 7, 7}, "4x at 200 Gb/s where both ends can 400"},
        {{2, 3, 3, 4, 15, 7, 4, 7, 7}, ""},
        {{2, 3, 3, 0, 0, 0, 2, 7, 7}, "4x at 20 Gb/s where both ends can 40"},
        {{2, 3, 3, 0, 0, 0, 4, 7, 7}, ""},
        {{2, 0, 0, 8, 0, 0, 4, 0, 0}, ""}, // nothing known
        {{16, 18, 18, 8, 15, 15, 4, 7, 7}, "2x where both ends can 4x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        const struct pair good = {2, 3, 3, 8, 15, 15, 4, 7, 7};
        const struct fabric *f = two_switches(&row[i].p, 1), *g = two_switches(&good, 2);
        bed_open(&b, 1, 400000);
        b.step = 5 * S;
        show(&b, f);
        pass(&b, 20 * S);
        assert_int_equal(stands(&b, "L05"), row[i].text[0] ? ALARM_MAJOR : -1);
        if (row[i].text[0]) {
            assert_string_equal(reason(&b, "L05"), row[i].text);
            show(&b, g);
            pass(&b, 50 * S);
            assert_int_equal(stands(&b, "L05"), ALARM_MAJOR);
            pass(&b, 20 * S);
            assert_int_equal(stands(&b, "L05"), -1);
        }
        bed_close(&b);
        fabric_unref(f);
        fabric_unref(g);
    }
}

// Cables 1 to 5 of two switches at 400 Gb/s, the first one at 1x because both ends enable no more.
static const struct fabric *five_cables(uint8_t first_width, unsigned slow, uint8_t supported,
                                        uint64_t generation)
{
    struct builder *b = builder_new();
    node_id n[2];
    for (unsigned i = 0; i < 2; i++) {
        struct node_attrs na = {.guid = 0x100 + i, .type = NODE_SWITCH, .num_ports = 5};
        assert_int_equal(builder_node(b, &na, i ? "b" : "a", 1, &n[i], NULL), 0);
        for (unsigned num = 1; num <= 5; num++) {
            uint8_t width = num <= slow ? first_width : 2;
            struct port_attrs a = {.state = PORT_ACTIVE,
                                   .width_active = width,
                                   .width_enabled = width,
                                   .width_supported = supported,
                                   .speed_ext_active = 8,
                                   .speed_ext_enabled = 15,
                                   .speed_ext_supported = 15};
            assert_int_equal(builder_port(b, n[i], num, &a), 0);
        }
    }
    for (unsigned num = 1; num <= 5; num++)
        assert_int_equal(builder_link(b, n[0], num, n[1], num), 0);
    return builder_seal(b, generation, NULL);
}

static void show_five(struct bed *b, const struct fabric *f)
{
    b->t.fabric = f;
    for (uint32_t s = 0; s < 10; s++)
        b->t.port[s].port = fabric_port_at(f, fabric_by_guid(f, 0x100 + (s & 1)), 1 + s / 2).i;
}

// What a cable is enabled at is not what it should be, where others like it, or itself before, are faster.
static void slower_than_others(void **state)
{
    static const struct {
        uint8_t width, supported;
        unsigned slow;
        bool before; // it was as it should be
        const char *text;
    } row[] = {
        {1, 3, 1, false, "1x at 100 Gb/s where 4 of 4 cables like it of the same switch are faster"},
        {1, 3, 3, false, ""}, // most are so: they are meant to be
        {1, 1, 1, false, ""}, // the ends can no more
        {1, 3, 5, true, "1x at 100 Gb/s; it ran at 400 before"},
        {2, 3, 1, true, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        const struct fabric *good = five_cables(2, 0, 3, 1),
                            *f = five_cables(row[i].width, row[i].slow, row[i].supported, 2);
        bed_open(&b, 5, 400000);
        tele_table_done(&b.t);
        tele_table_init(&b.t);
        for (uint32_t s = 0; s < 10; s++) {
            tele_slot_set(&b.t, s, 0x100 + (s & 1), (uint8_t)(1 + s / 2));
            b.t.port[s].peer = s ^ 1;
            b.t.port[s].of_switch = b.t.port[s].up = true;
            b.t.port[s].rate_mbps = 400000;
        }
        show_five(&b, row[i].before ? good : f);
        pass(&b, 20 * S);
        show_five(&b, f);
        pass(&b, 30 * S);
        assert_int_equal(stands(&b, "L05"), row[i].text[0] ? ALARM_MAJOR : -1);
        assert_string_equal(reason(&b, "L05"), row[i].text);
        assert_int_equal(view(&b, 0).state == HEALTH_DEGRADED, row[i].text[0] != 0);
        show_five(&b, good);
        pass(&b, 90 * S);
        assert_int_equal(stands(&b, "L05"), -1);
        bed_close(&b);
        fabric_unref(f);
        fabric_unref(good);
    }
}

// --- what nothing stands on ---

BED(never_read, 2, 400000)
{
    b->unread[0] = b->unread[1] = 1;
    pass(b, MIN);
    struct health_view v = view(b, 1);
    assert_int_equal(v.state, HEALTH_UNKNOWN);
    assert_non_null(strstr(v.why, "no-answer"));
    assert_int_equal(view(b, 2).state, HEALTH_UNSURE);
    struct health_count c;
    health_count(b->h, &b->t, &c);
    assert_true(c.links[HEALTH_UNKNOWN] == 1 && c.links[HEALTH_UNSURE] == 1);
    assert_int_equal(view(b, 4711).state, HEALTH_UNKNOWN);
}

static void sure_after_some_bits(void **state)
{
    static const struct {
        uint32_t mbps;
        int64_t need;
    } row[] = {{400000, 12 * MIN}, {200000, 24 * MIN}, {800000, 6 * MIN}, {100000, 48 * MIN}};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        static struct bed b;
        bed_open(&b, 1, row[i].mbps);
        tick(&b);
        int64_t first = b.now;
        pass(&b, row[i].need - MIN);
        struct health_view v = view(&b, 0);
        assert_int_equal(v.state, HEALTH_UNSURE);
        assert_true(v.sure_at == first + row[i].need);
        assert_non_null(strstr(v.why, "1e-14"));
        pass(&b, MIN + 10 * S);
        v = view(&b, 1);
        assert_int_equal(v.state, HEALTH_HEALTHY);
        assert_true(v.sure_at == 0 && v.symbol_ber == 0 && v.why[0] == 0 && v.rule[0] == 0);
        bed_close(&b);
    }
}

// One error is too few to say anything of, and needs the long window.
BED(one_error, 1, 400000)
{
    tick(b);
    int64_t first = b->now;
    pass(b, 15 * MIN);
    add(b, 1, TELE_SYMBOL_ERRORS, 1);
    pass(b, MIN);
    struct health_view v = view(b, 0);
    assert_int_equal(v.state, HEALTH_UNSURE);
    assert_non_null(strstr(v.why, "1 symbol error in 16 min"));
    assert_non_null(strstr(v.why, "1e-15 takes 125 min"));
    assert_true(v.sure_at == first + 125 * MIN);
    assert_true(fabs(v.symbol_ber / (1 / (400e9 * 960)) - 1) < 0.05);
    pass(b, 110 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    pass(b, HOUR);
    add(b, 1, TELE_SYMBOL_ERRORS, 1); // seen for long: one is within what is allowed
    pass(b, MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
}

BED(not_read_any_more, 2, 400000)
{
    pass(b, 20 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    b->unread[1] = 1;
    pass(b, 40 * S); // a reading or two may be missing
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    pass(b, 5 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_UNSURE);
    assert_non_null(strstr(view(b, 0).why, "not read for 5 min"));
    b->unread[1] = 0;
    pass(b, 20 * S);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
}

BED(one_end_only, 1, 400000)
{
    b->unread[1] = 1;
    pass(b, 20 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_UNSURE);
    assert_non_null(strstr(view(b, 0).why, "only one end"));
    add(b, 0, TELE_SYMBOL_ERRORS, 8); // what it says counts
    pass(b, MIN);
    assert_int_equal(view(b, 1).state, HEALTH_FAILING);
}

BED(saturated, 1, 400000)
{
    pass(b, 20 * MIN);
    b->t.port[1].full = 1ull << TELE_RCV_SWITCH_RELAY_ERRORS | 1ull << TELE_FEC_CORRECTED_SYMBOLS;
    pass(b, MIN); // these say nothing of the link
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    b->t.port[1].full = 1ull << TELE_SYMBOL_ERRORS;
    pass(b, MIN);
    assert_int_equal(view(b, 0).state, HEALTH_UNSURE);
    assert_non_null(strstr(view(b, 0).why, "maximum"));
    pass(b, 10 * MIN);
    b->t.port[1].full = 0;
    pass(b, 2 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_UNSURE); // of most of the window nothing is known
    pass(b, 15 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
}

// What stands when its counter can count no further stays: no count is no clean time. Others clear as ever.
BED(full_counters_do_not_clear, 2, 400000)
{
    pass(b, 20 * MIN);
    add(b, 0, TELE_SYMBOL_ERRORS, 60000);
    add(b, 2, TELE_SYMBOL_ERRORS, 9);
    raw(b, 0, 3e-5, 30 * MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    assert_int_equal(stands(b, "L09"), ALARM_MINOR);
    b->t.port[0].full = 1ull << TELE_SYMBOL_ERRORS | 1ull << TELE_FEC_CORRECTED_SYMBOLS;
    b->t.port[1].full = 1ull << TELE_FEC_CORRECTED_SYMBOLS;
    unsigned before = raised(b, "L09");
    pass(b, 24 * HOUR);
    assert_int_equal(view(b, 0).state, HEALTH_FAILING);
    assert_non_null(strstr(view(b, 0).why, "maximum"));
    assert_true(isnan(view(b, 0).raw_ber)); // not 0
    assert_int_equal(view(b, 2).state, HEALTH_HEALTHY);
    assert_int_equal(raised(b, "L09"), before + 1); // told once that it is not known
    assert_false(health_clean(b->h, &b->t, 0, 126 * MIN));
    b->t.port[0].full = b->t.port[1].full = 0; // somebody has cleared them
    pass(b, 50 * MIN);
    assert_int_equal(stands(b, "L09"), ALARM_MINOR);
    pass(b, 20 * MIN);
    assert_int_equal(stands(b, "L09"), -1);
    assert_int_equal(view(b, 0).state, HEALTH_FAILING);
    pass(b, HOUR);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    assert_true(view(b, 0).raw_ber < 1e-12);
}

BED(cleared_again_and_again, 1, 400000)
{
    pass(b, 20 * MIN);
    b->t.port[1].resets++;
    pass(b, MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY); // once is a small hole
    for (int i = 0; i < 12; i++) {
        b->t.port[1].resets++;
        pass(b, MIN);
    }
    assert_int_equal(view(b, 0).state, HEALTH_UNSURE);
    assert_non_null(strstr(view(b, 0).why, "cleared"));
    pass(b, 15 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
}

BED(worst_rule_is_named, 3, 400000)
{
    uint32_t *slots;
    struct health_standing st[8];
    pass(b, 20 * MIN);
    int64_t before = b->now;
    add(b, 3, TELE_SYMBOL_ERRORS, 200);
    add(b, 2, TELE_LOCAL_LINK_INTEGRITY_ERRORS, 1);
    for (int i = 0; i < 70; i++) {
        add(b, 4, TELE_RCV_ERRORS, 20);
        tick(b);
    }
    struct health_view v = view(b, 3);
    assert_int_equal(v.state, HEALTH_FAILING);
    assert_string_equal(v.rule, "L07");
    assert_true(v.since >= before && v.since <= before + MIN);
    assert_string_equal(v.advice, alarm_rule("L07")->advice);
    uint32_t n = health_standing(b->h, 2, st, 8);
    assert_int_equal(n, 3); // L07 and L11 critical, L06 major
    assert_string_equal(st[0].rule, "L07");
    assert_string_equal(st[1].rule, "L11");
    assert_string_equal(st[2].rule, "L06");
    assert_int_equal(health_standing(b->h, 2, st, 1), 1);
    assert_int_equal(health_standing(b->h, 999, st, 8), 0);
    n = health_named(b->h, &slots);
    assert_int_equal(n, 2);
    assert_int_equal(slots[0], 2);
    assert_int_equal(slots[1], 4);
    free(slots);
    struct health_count c;
    health_count(b->h, &b->t, &c);
    assert_true(c.links[HEALTH_FAILING] == 1 && c.links[HEALTH_DEGRADED] == 1 &&
                c.links[HEALTH_HEALTHY] == 1);
}

// The limit of the ratio can be another one.
BED(own_ratio, 1, 400000)
{
    health_free(b->h);
    struct health_sink sink = {b, bed_raise, bed_clear};
    b->h = health_new(&(struct health_opts){.ber_limit = 1e-13}, &sink);
    pass(b, 20 * MIN);
    add(b, 0, TELE_SYMBOL_ERRORS, 26);
    pass(b, MIN);
    assert_int_equal(raised(b, "L06"), 0);
    add(b, 0, TELE_SYMBOL_ERRORS, 20);
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rises),
        cmocka_unit_test(high),
        cmocka_unit_test(noise),
        cmocka_unit_test(slow_climb),
        cmocka_unit_test(no_median_yet),
        cmocka_unit_test(three_in_a_row),
        cmocka_unit_test(fills_up_between_readings),
        cmocka_unit_test(fills_up_with_the_second),
        cmocka_unit_test(a_full_counter_of_a_good_link),
        cmocka_unit_test(the_newest_interval),
        cmocka_unit_test(training),
        cmocka_unit_test(waits),
        cmocka_unit_test(short_waits),
        cmocka_unit_test(modules),
        cmocka_unit_test(narrow_or_slow),
        cmocka_unit_test(slower_than_others),
        cmocka_unit_test(never_read),
        cmocka_unit_test(sure_after_some_bits),
        cmocka_unit_test(one_error),
        cmocka_unit_test(not_read_any_more),
        cmocka_unit_test(one_end_only),
        cmocka_unit_test(saturated),
        cmocka_unit_test(full_counters_do_not_clear),
        cmocka_unit_test(cleared_again_and_again),
        cmocka_unit_test(worst_rule_is_named),
        cmocka_unit_test(own_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
