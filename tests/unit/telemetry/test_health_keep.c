// SPDX-License-Identifier: Apache-2.0
// Health over a restart: what windows hold, what stands and what is known of a link go on as if nobody had
// been away; the time between is neither clean nor bad, unless counters say so. Each case is also run in a
// machine that has just been started (its clock begins anew).
#include "tests/unit/telemetry/healthtest.h"

#include "lib/buf.h"
#include "lib/rng.h"

static uint32_t find(void *arg, uint64_t guid, uint8_t num)
{
    return tele_slot(&((struct bed *)arg)->t, guid, num);
}

static void put_all(const struct bed *b, struct buf *ret)
{
    for (int part = HEALTH_REST; part >= HEALTH_NOTED; part--)
        for (uint32_t s = 0; s < b->t.num; s++)
            health_put(b->h, &b->t, s, (enum health_part)part, b->now, ret);
}

// Away for a time; the machine's clock goes on, or begins at `clock`.
static void restart_with(struct bed *b, int64_t away, int64_t clock, void (*change)(struct buf *kept))
{
    struct buf kept = {0};
    struct health_sink sink = {b, bed_raise, bed_clear};
    put_all(b, &kept);
    if (change)
        change(&kept);
    health_free(b->h);
    b->h = health_new(NULL, &sink);
    b->now = clock ? clock : b->now + away;
    b->detail_at = clock ? clock - HOUR : b->detail_at;
    for (uint32_t s = 0; s < b->t.num; s++) {
        for (unsigned g = 0; g < TELE_GROUPS; g++)
            b->t.at[s * TELE_GROUPS + g] = b->t.at_before[s * TELE_GROUPS + g] = 0;
        b->t.have[s] = b->t.had[s] = 0;
        b->t.port[s].resets = 0;
        b->t.port[s].lost_at = 0;
    }
    assert_true(health_take(b->h, (uint8_t *)kept.data, kept.len, b->now - away, find, b));
    buf_done(&kept);
}

static void restart(struct bed *b, int64_t away, int64_t clock)
{
    restart_with(b, away, clock, NULL);
}

static const int64_t clocks[] = {0, 50 * S};
#define EACH_CLOCK(fn, mbps)                                                                                 \
    static void fn##_at(struct bed *b, int64_t clock);                                                       \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        (void)state;                                                                                         \
        for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {                                    \
            static struct bed b;                                                                             \
            bed_open(&b, 2, mbps);                                                                           \
            fn##_at(&b, clocks[i]);                                                                          \
            bed_close(&b);                                                                                   \
        }                                                                                                    \
    }                                                                                                        \
    static void fn##_at(struct bed *b, int64_t clock)

static void told_up(struct bed *b)
{
    for (uint32_t s = 0; s < b->t.num; s++)
        health_link(b->h, s, true, b->now);
}

static void flap(struct bed *b)
{
    health_link(b->h, 0, false, b->now + S);
    add(b, 0, TELE_LINK_DOWNED, 1);
    add(b, 1, TELE_LINK_DOWNED, 1);
    pass(b, 40 * S);
    health_link(b->h, 0, true, b->now);
    pass(b, 20 * S);
}

EACH_CLOCK(amid_flaps, 400000)
{
    told_up(b);
    pass(b, 20 * MIN);
    for (int i = 0; i < 2; i++) {
        flap(b);
        pass(b, 2 * HOUR);
    }
    restart(b, 3 * MIN, clock);
    feed(b);
    told_up(b);
    pass(b, MIN);
    assert_int_equal(raised(b, "L02"), 0);
    flap(b);
    pass(b, MIN);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L02"), "3 drops in 4."));
    assert_int_equal(raised(b, "L04"), 0);
}

// One of them while nobody looked.
EACH_CLOCK(a_flap_meanwhile, 400000)
{
    told_up(b);
    pass(b, 20 * MIN);
    for (int i = 0; i < 2; i++) {
        flap(b);
        pass(b, HOUR);
    }
    restart(b, 30 * MIN, clock);
    add(b, 0, TELE_LINK_DOWNED, 1);
    add(b, 1, TELE_LINK_DOWNED, 1);
    told_up(b);
    pass(b, MIN);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_int_equal(raised(b, "L04"), 0);
}

// Those that the subnet manager has seen to be short are none, also after a restart.
EACH_CLOCK(short_ones_stay_none, 400000)
{
    told_up(b);
    b->step = S;
    pass(b, 5 * MIN);
    for (int i = 0; i < 3; i++) {
        health_link(b->h, 0, false, b->now);
        add(b, 0, TELE_LINK_DOWNED, 1);
        add(b, 1, TELE_LINK_DOWNED, 1);
        pass(b, 12 * S);
        health_link(b->h, 0, true, b->now);
        pass(b, i < 2 ? MIN : 2 * S);
    }
    restart(b, 2 * MIN, clock);
    told_up(b);
    pass(b, 5 * MIN);
    assert_int_equal(raised(b, "L02"), 0);
    assert_int_equal(raised(b, "L04"), 0);
}

EACH_CLOCK(healthy_stays_healthy, 400000)
{
    told_up(b);
    pass(b, 20 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    restart(b, 10 * MIN, clock);
    feed(b);
    told_up(b);
    tick(b);
    for (uint32_t s = 0; s < 4; s++)
        assert_int_equal(view(b, s).state, HEALTH_HEALTHY);
    assert_true(health_clean(b->h, &b->t, 0, 25 * MIN));
    pass(b, HOUR);
    assert_int_equal(b->num_said, 0);
}

// It cannot be told what came meanwhile: not known to be clean, nor known to be bad.
EACH_CLOCK(cleared_meanwhile, 400000)
{
    told_up(b);
    pass(b, 3 * HOUR);
    restart(b, 2 * HOUR, clock);
    b->now += b->step;
    b->t.port[0].lost_at = b->now;
    feed(b);
    told_up(b);
    tick(b);
    assert_int_equal(view(b, 0).state, HEALTH_UNSURE);
    assert_int_equal(view(b, 2).state, HEALTH_HEALTHY);
    assert_false(health_clean(b->h, &b->t, 0, 125 * MIN));
    pass(b, 20 * MIN);
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
    assert_int_equal(b->num_said, 0);
}

EACH_CLOCK(errors_meanwhile_count_once, 400000)
{
    told_up(b);
    pass(b, HOUR);
    add(b, 2, TELE_SYMBOL_ERRORS, 2);
    pass(b, 10 * MIN);
    restart(b, 10 * MIN, clock);
    add(b, 2, TELE_SYMBOL_ERRORS, 1);
    pass(b, MIN);
    assert_int_equal(raised(b, "L06"), 0); // 3 in 125 min are not above 3, nor 1 in 12 above 2.88
    add(b, 2, TELE_SYMBOL_ERRORS, 1);
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L06"), "4 post-FEC"));
    assert_int_equal(view(b, 0).state, HEALTH_HEALTHY);
}

// Modules are read seldom: what stands is not over because its file says nothing yet, or says nothing any
// more.
EACH_CLOCK(a_module_unread_since, 400000)
{
    static const struct tele_optics well = {0}, broken = {.fault = true};
    told_up(b);
    pass(b, 20 * MIN);
    health_optics(b->h, 3, &broken, b->now);
    health_module(b->h, 0, 85, b->now);
    tick(b);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_true(stands(b, "L16") >= 0);
    restart(b, 5 * MIN, clock);
    for (uint32_t s = 0; s < b->t.num; s++) {
        health_module(b->h, s, NAN, b->now); // the file has not been read yet
        health_optics(b->h, s, NULL, b->now);
    }
    for (uint32_t s = 0; s < b->t.num; s++)
        health_module_unread(b->h, s);
    health_module_unread(b->h, 99);
    pass(b, 23 * HOUR);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_true(stands(b, "L16") >= 0);
    health_optics(b->h, 3, &well, b->now);
    health_module(b->h, 0, 50, b->now);
    tick(b);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    pass(b, 15 * MIN);
    health_optics(b->h, 3, &well, b->now);
    health_module(b->h, 0, 50, b->now);
    tick(b);
    assert_int_equal(stands(b, "L17"), -1);
    assert_int_equal(stands(b, "L16"), -1);
}

EACH_CLOCK(a_module_unread_for_a_day, 400000)
{
    static const struct tele_optics broken = {.fault = true};
    told_up(b);
    pass(b, 20 * MIN);
    health_optics(b->h, 3, &broken, b->now);
    health_module(b->h, 0, 85, b->now);
    tick(b);
    restart(b, 5 * MIN, clock);
    for (uint32_t s = 0; s < b->t.num; s++)
        health_module_unread(b->h, s);
    pass(b, 23 * HOUR);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    assert_true(stands(b, "L16") >= 0);
    pass(b, 2 * HOUR);
    assert_int_equal(stands(b, "L17"), -1);
    assert_int_equal(stands(b, "L16"), -1);
}

EACH_CLOCK(no_modules_since, 400000)
{
    static const struct tele_optics broken = {.fault = true};
    told_up(b);
    pass(b, 20 * MIN);
    health_optics(b->h, 3, &broken, b->now);
    tick(b);
    restart(b, 2 * HOUR, clock);
    pass(b, 9 * MIN);
    health_module_unread(b->h, 3);
    pass(b, 20 * MIN);
    assert_int_equal(stands(b, "L17"), ALARM_MAJOR);
    health_optics(b->h, 3, NULL, b->now); // its files are not given any more
    pass(b, 20 * MIN);
    assert_int_equal(stands(b, "L17"), -1);
}

EACH_CLOCK(what_stands_goes_on, 400000)
{
    char before[300];
    told_up(b);
    pass(b, HOUR);
    add(b, 2, TELE_SYMBOL_ERRORS, 9);
    pass(b, HOUR);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    snprintf(before, sizeof(before), "%s", reason(b, "L06"));
    int64_t age = b->now - view(b, 2).since;
    restart(b, 5 * MIN, clock);
    b->num_said = 0;
    feed(b); // whoever lists alarms hears that it still stands, with what was said
    assert_int_equal(raised(b, "L06"), 1);
    assert_string_equal(reason(b, "L06"), before);
    assert_int_equal(view(b, 2).state, HEALTH_FAILING);
    assert_int_equal((b->now - view(b, 2).since) / MIN, (age + 5 * MIN) / MIN);
    told_up(b);
    pass(b, 60 * MIN - 10 * S);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    assert_int_equal(raised(b, "L06"), 1);
    pass(b, 2 * MIN); // 126 min after the last error
    assert_int_equal(stands(b, "L06"), -1);
}

// Over by the time that both ends are read again, not before.
EACH_CLOCK(clears_when_it_was_read, 400000)
{
    told_up(b);
    pass(b, HOUR);
    add(b, 2, TELE_SYMBOL_ERRORS, 9);
    pass(b, MIN);
    restart(b, 3 * HOUR, clock);
    b->unread[3] = 1;
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    b->unread[3] = 0;
    tick(b);
    assert_int_equal(stands(b, "L06"), -1);
}

EACH_CLOCK(lost_counts_hold_what_stands, 400000)
{
    told_up(b);
    pass(b, HOUR);
    add(b, 2, TELE_SYMBOL_ERRORS, 9);
    pass(b, MIN);
    restart(b, 3 * HOUR, clock);
    b->now += b->step;
    b->t.port[3].lost_at = b->now;
    feed(b);
    pass(b, 2 * HOUR);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    pass(b, 10 * MIN);
    assert_int_equal(stands(b, "L06"), -1);
}

// The median of a day is there at once.
EACH_CLOCK(raw_ratio_rises, 400000)
{
    told_up(b);
    b->step = MIN;
    for (int i = 0; i < 12 * 60; i++) {
        add(b, 0, TELE_FEC_CORRECTED_SYMBOLS, (uint64_t)(4e11 * 60 * 5e-8));
        tick(b);
    }
    restart(b, 20 * MIN, clock);
    add(b, 0, TELE_FEC_CORRECTED_SYMBOLS, (uint64_t)(4e11 * 60 * 20 * 5e-8));
    tick(b);
    assert_int_equal(raised(b, "L08"), 0);
    for (int i = 0; i < 12; i++) {
        add(b, 0, TELE_FEC_CORRECTED_SYMBOLS, (uint64_t)(4e11 * 60 * 9e-7));
        tick(b);
    }
    assert_int_equal(stands(b, "L08"), ALARM_MINOR);
}

EACH_CLOCK(down_over_the_restart, 400000)
{
    told_up(b);
    pass(b, 20 * MIN);
    health_link(b->h, 0, false, b->now);
    pass(b, MIN);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    restart(b, 5 * MIN, clock);
    health_link(b->h, 0, false, b->now);
    health_link(b->h, 2, true, b->now);
    feed(b);
    pass(b, 10 * S);
    assert_int_equal(stands(b, "L03"), ALARM_MAJOR); // for six minutes by now
    assert_int_equal(view(b, 0).state, HEALTH_DOWN);
    health_link(b->h, 1, true, b->now);
    pass(b, 11 * MIN);
    assert_int_equal(stands(b, "L01"), -1);
    assert_int_equal(stands(b, "L03"), -1);
}

// Another cable came meanwhile: nothing of the old one is said of it.
EACH_CLOCK(another_cable_meanwhile, 400000)
{
    told_up(b);
    pass(b, HOUR);
    add(b, 0, TELE_SYMBOL_ERRORS, 9);
    pass(b, MIN);
    restart(b, 5 * MIN, clock);
    b->t.port[0].peer = 3;
    b->t.port[3].peer = 0;
    b->t.port[1].peer = b->t.port[2].peer = TELE_SLOT_NONE;
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), -1);
    assert_int_not_equal(view(b, 0).state, HEALTH_FAILING);
}

// History has a sweep that the record has not.
EACH_CLOCK(history_is_newer, 400000)
{
    struct buf kept = {0};
    struct health_sink sink = {b, bed_raise, bed_clear};
    told_up(b);
    pass(b, HOUR);
    put_all(b, &kept);
    add(b, 0, TELE_LINK_DOWNED, 3);
    add(b, 1, TELE_LINK_DOWNED, 3);
    health_free(b->h);
    b->h = health_new(NULL, &sink);
    b->now = clock ? clock : b->now + HOUR;
    memset(b->t.at, 0, b->t.num * TELE_GROUPS * sizeof(int64_t));
    assert_true(health_take(b->h, (uint8_t *)kept.data, kept.len, b->now - HOUR, find, b));
    for (uint32_t s = 0; s < b->t.num; s++) {
        b->t.have[s] = ~0ull;
        health_replay(b->h, &b->t, s, b->now - HOUR + MIN);
        b->t.have[s] = 0;
    }
    pass(b, MIN);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_non_null(
        strstr(reason(b, "L02"), "3 drops between two readings, counted by both ends")); // when they were
    assert_int_equal(view(b, 2).state, HEALTH_HEALTHY);
    buf_done(&kept);
}

// A text that is no text takes nothing along but itself.
static void spoil_texts(struct buf *kept)
{
    char *word = memmem(kept->data, kept->len, "post-FEC", 8),
         *evidence = memmem(kept->data, kept->len, "{\"end\"", 6);
    assert_non_null(word);
    assert_non_null(evidence);
    *word = '\xfc';
    *evidence = 'x';
}

EACH_CLOCK(texts_that_are_none, 400000)
{
    told_up(b);
    pass(b, 20 * MIN);
    add(b, 0, TELE_SYMBOL_ERRORS, 9);
    add(b, 2, TELE_SYMBOL_ERRORS, 9);
    pass(b, MIN);
    assert_int_equal(raised(b, "L06"), 2);
    b->num_said = 0;
    restart_with(b, MIN, clock, spoil_texts);
    struct health_view x = view(b, 0), y = view(b, 2);
    assert_true(!strstr(x.why, "post-FEC") != !strstr(y.why, "post-FEC"));
    assert_whole(x.why);
    assert_whole(y.why);
    feed(b);
    assert_int_equal(b->num_said, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(b->said[i].rule, "L06");
        assert_int_equal(b->said[i].severity, ALARM_MAJOR);
        assert_non_null(strstr(b->said[i].reason, "ost-FEC symbol errors within"));
    }
}

// --- whatever comes ---

static void stir(struct bed *b, struct rng *r, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t s = rng_below(r, 4);
        switch (rng_below(r, 8)) {
        case 0:
            health_link(b->h, s, rng_below(r, 2), b->now);
            break;
        case 1:
            add(b, s, TELE_LINK_DOWNED, 1 + rng_below(r, 3));
            break;
        case 2:
            add(b, s, (enum tele_counter)(TELE_SYMBOL_ERRORS + rng_below(r, 12)), rng_below(r, 200));
            break;
        case 3:
            add(b, s, TELE_FEC_CORRECTED_SYMBOLS, rng_below(r, 1000000000));
            add(b, s, TELE_FEC_UNCORRECTABLE_BLOCKS, rng_below(r, 2));
            break;
        case 4:
            b->t.port[s].resets += rng_below(r, 2);
            break;
        default:
            pass(b, (int64_t)(1 + rng_below(r, 60)) * 10 * S);
        }
    }
}

// Put, taken and put again is the same.
static void there_and_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        static struct bed b;
        struct rng r;
        struct buf one = {0}, two = {0};
        rng_init(&r, seed);
        bed_open(&b, 2, 400000);
        stir(&b, &r, 300);
        put_all(&b, &one);
        assert_true(one.len > 100);
        struct health_sink sink = {&b, bed_raise, bed_clear};
        health_free(b.h);
        b.h = health_new(NULL, &sink);
        assert_true(health_take(b.h, (uint8_t *)one.data, one.len, b.now, find, &b));
        put_all(&b, &two);
        assert_int_equal(one.len, two.len);
        // What is not over before somebody looks again is bad at the restart.
        unsigned other = 0;
        for (size_t i = 0; i < one.len; i++)
            other += one.data[i] != two.data[i];
        assert_int_equal(other, 0);
        buf_done(&one);
        buf_done(&two);
        bed_close(&b);
    }
}

// What was taken is put in a form that is taken, as the same.
static void goes_on(struct bed *b)
{
    struct health_sink sink = {b, bed_raise, bed_clear};
    struct buf one = {0}, two = {0};
    put_all(b, &one);
    health_free(b->h);
    b->h = health_new(NULL, &sink);
    assert_true(health_take(b->h, (uint8_t *)one.data, one.len, b->now, find, b));
    put_all(b, &two);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
    buf_done(&one);
    buf_done(&two);
}

// Bytes of anybody: no crash, and what was taken works.
static void any_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        static struct bed b;
        struct rng r;
        struct buf kept = {0};
        rng_init(&r, seed);
        bed_open(&b, 2, 400000);
        stir(&b, &r, 40);
        put_all(&b, &kept);
        for (unsigned n = 1 + rng_below(&r, 6); n-- > 0 && kept.len;)
            kept.data[rng_below(&r, (uint32_t)kept.len)] = (char)rng_below(&r, 256);
        size_t len = rng_below(&r, 4) ? kept.len : rng_below(&r, (uint32_t)kept.len + 1);
        struct health_sink sink = {&b, bed_raise, bed_clear};
        health_free(b.h);
        b.h = health_new(NULL, &sink);
        uint8_t *copy = malloc(len); // so that reading behind it shows
        memcpy(copy, kept.data, len);
        (void)health_take(b.h, copy, len, b.now, find, &b);
        free(copy);
        goes_on(&b);
        stir(&b, &r, 40);
        buf_done(&kept);
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amid_flaps),
        cmocka_unit_test(a_flap_meanwhile),
        cmocka_unit_test(short_ones_stay_none),
        cmocka_unit_test(healthy_stays_healthy),
        cmocka_unit_test(cleared_meanwhile),
        cmocka_unit_test(errors_meanwhile_count_once),
        cmocka_unit_test(a_module_unread_since),
        cmocka_unit_test(a_module_unread_for_a_day),
        cmocka_unit_test(no_modules_since),
        cmocka_unit_test(what_stands_goes_on),
        cmocka_unit_test(clears_when_it_was_read),
        cmocka_unit_test(lost_counts_hold_what_stands),
        cmocka_unit_test(raw_ratio_rises),
        cmocka_unit_test(down_over_the_restart),
        cmocka_unit_test(another_cable_meanwhile),
        cmocka_unit_test(history_is_newer),
        cmocka_unit_test(texts_that_are_none),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
