// SPDX-License-Identifier: Apache-2.0
// Readings to accumulators: each case of accum.c's head, by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/mono.h"
#include "lib/rng.h"
#include "telemetry/accum.h"
#include "telemetry/table_priv.h"

#define EXT (1u << TELE_DATA | 1u << TELE_ERRORS)
#define S MONO_S
#define BIT(c) (1ull << (c))

struct world {
    struct accum a;
    struct tele_table t;
    struct accum_found f;
    int64_t now;
};

static void up(struct world *w, uint32_t mbps)
{
    memset(w, 0, sizeof(*w));
    tele_table_init(&w->t);
    accum_init(&w->a);
    tele_slot_set(&w->t, 0, 0x10, 1);
    accum_room(&w->a, w->t.num);
    accum_rate(&w->a, 0, mbps);
    w->now = 1000 * S;
}

static void down(struct world *w)
{
    accum_done(&w->a);
    tele_table_done(&w->t);
}

// One reading 10 s after the last: data words sent, symbol errors, link downed.
static void put(struct world *w, unsigned kind, uint64_t data, uint64_t symbols, uint64_t downed)
{
    struct accum_reading r = {.counters =
                                  BIT(TELE_XMIT_DATA) | BIT(TELE_SYMBOL_ERRORS) | BIT(TELE_LINK_DOWNED),
                              .groups = EXT,
                              .kind = kind};
    w->now += 10 * S;
    r.at = w->now;
    if (kind == 2) { // of PortCounters
        r.narrow = BIT(TELE_XMIT_DATA);
        r.full = (data == 0xffffffff ? BIT(TELE_XMIT_DATA) : 0) |
                 (symbols == 0xffff ? BIT(TELE_SYMBOL_ERRORS) : 0);
    }
    r.raw[TELE_XMIT_DATA] = data;
    r.raw[TELE_SYMBOL_ERRORS] = symbols;
    r.raw[TELE_LINK_DOWNED] = downed;
    accum_read(&w->a, &w->t, 0, &r, &w->f);
}

static void is(const struct world *w, uint64_t data, uint64_t symbols)
{
    assert_int_equal(tele_value(&w->t, 0, TELE_XMIT_DATA), data);
    assert_int_equal(tele_value(&w->t, 0, TELE_SYMBOL_ERRORS), symbols);
}

static uint64_t delta(const struct world *w, enum tele_counter c)
{
    uint64_t d = 0;
    assert_true(tele_delta(&w->t, 0, c, &d));
    return d;
}

static void rises(void **state)
{
    struct world w;
    uint64_t d;
    (void)state;
    up(&w, 400000);
    put(&w, 1, 5000, 7, 1);
    is(&w, 5000, 7); // what it said when first seen
    assert_false(tele_delta(&w.t, 0, TELE_XMIT_DATA, &d));
    put(&w, 1, 5000 + 12500000000ull * 9, 8, 1); // 45 GB/s of 50
    is(&w, 5000 + 12500000000ull * 9, 8);
    assert_int_equal(delta(&w, TELE_XMIT_DATA), 12500000000ull * 9);
    assert_int_equal(delta(&w, TELE_SYMBOL_ERRORS), 1);
    assert_int_equal(tele_interval(&w.t, 0, TELE_XMIT_DATA), 10 * S);
    assert_false(accum_has_base(&w.a, 0));
    down(&w);
}

static void cleared_by_others(void **state)
{
    struct world w;
    (void)state;
    up(&w, 400000);
    put(&w, 1, 100000, 40, 2);
    put(&w, 1, 110000, 41, 2);
    put(&w, 1, 112000, 3, 2); // ibqueryerrors -k, say, of this one
    is(&w, 112000, 44);
    assert_int_equal(w.f.cleared, BIT(TELE_SYMBOL_ERRORS));
    assert_false(w.f.whole);
    assert_true(w.f.stood);
    assert_int_equal(delta(&w, TELE_SYMBOL_ERRORS), 3);
    put(&w, 1, 700, 0, 0); // a reboot, or perfquery -R
    is(&w, 112700, 44);
    assert_int_equal(w.f.cleared, BIT(TELE_XMIT_DATA) | BIT(TELE_SYMBOL_ERRORS) | BIT(TELE_LINK_DOWNED));
    assert_true(w.f.whole);
    put(&w, 1, 800, 1, 0);
    is(&w, 112800, 45);
    assert_int_equal(w.f.cleared, 0);
    down(&w);
}

// Below its last value by a little: it may be an old answer.
static void a_little_back(void **state)
{
    struct world w;
    (void)state;
    up(&w, 400000);
    put(&w, 1, 100, 1000, 0);
    put(&w, 1, 200, 900, 0);
    assert_int_equal(w.f.held, BIT(TELE_SYMBOL_ERRORS));
    assert_false(tele_have(&w.t, 0, TELE_SYMBOL_ERRORS));
    assert_true(tele_have(&w.t, 0, TELE_XMIT_DATA)); // the rest is believed
    is(&w, 200, 1000);
    put(&w, 1, 300, 1004, 0); // it was
    is(&w, 300, 1004);
    put(&w, 1, 400, 600, 0); // said twice: cleared, and 650 since
    put(&w, 1, 500, 650, 0);
    is(&w, 500, 1654);
    assert_int_equal(w.f.cleared, BIT(TELE_SYMBOL_ERRORS));
    // A large counter that loses a little, for good: a device that sets back its counters.
    put(&w, 1, 600, 100000, 0);
    put(&w, 1, 700, 99000, 0);
    put(&w, 1, 800, 99001, 0);
    is(&w, 800, 1654 + 99350);
    assert_int_equal(w.f.cleared, 0);
    put(&w, 1, 900, 99003, 0);
    is(&w, 900, 1654 + 99352);
    down(&w);
}

static void nonsense(void **state)
{
    struct world w;
    (void)state;
    up(&w, 100000); // 12.5 GB/s: 31.25e9 words in 10 s, a quarter more is allowed
    put(&w, 1, 0, 5, 0);
    put(&w, 1, 39000000000ull, 6, 0);
    is(&w, 39000000000ull, 6);
    put(&w, 1, 39000000000ull + 39200000000ull, 7, 0);
    assert_true(w.f.nonsense);
    is(&w, 39000000000ull, 6); // all of the answer is dropped
    put(&w, 1, 39000001000ull, 8, 0);
    assert_false(w.f.nonsense);
    is(&w, 39000001000ull, 8);
    // The same twice is meant; nothing of the jump is counted.
    put(&w, 1, 1ull << 60, 9, 0);
    assert_true(w.f.nonsense);
    put(&w, 1, (1ull << 60) + 50, 10, 0);
    assert_true(w.f.accepted);
    is(&w, 39000001000ull, 10);
    uint64_t d;
    assert_false(tele_delta(&w.t, 0, TELE_XMIT_DATA, &d));
    put(&w, 1, (1ull << 60) + 150, 10, 0);
    is(&w, 39000001100ull, 10);
    assert_int_equal(delta(&w, TELE_XMIT_DATA), 100);
    // Two different absurdities are not the same thing twice.
    put(&w, 1, 1ull << 61, 10, 0);
    put(&w, 1, 1ull << 62, 10, 0);
    assert_true(w.f.nonsense);
    down(&w);
}

// A link that is faster than is known of it.
static void faster_than_known(void **state)
{
    struct world w;
    uint64_t data = 0;
    unsigned dropped = 0;
    (void)state;
    up(&w, 100000);
    for (unsigned i = 0; i < 30; i++) {
        put(&w, 1, data += 125000000000ull, i, 0); // 400 Gb/s
        dropped += w.f.nonsense;
    }
    assert_in_range(dropped, 5, 20);
    assert_int_equal(delta(&w, TELE_XMIT_DATA), 125000000000ull);
    assert_false(w.f.nonsense);
    down(&w);
}

static void wraps_and_saturation(void **state)
{
    struct world w;
    (void)state;
    up(&w, 2500); // 1xSDR: 0.78e9 words in 10 s
    put(&w, 2, 4000000000u, 5, 1);
    put(&w, 2, 4200000000u, 5, 1);
    put(&w, 2, 100000000u, 5, 1); // the others stand: a wrap
    is(&w, 4294967296ull + 100000000, 5);
    assert_int_equal(w.f.wrapped, BIT(TELE_XMIT_DATA));
    assert_int_equal(w.f.cleared, 0);
    put(&w, 2, 4100000000u, 65535, 1); // 4e9 in 10 s: nonsense at this rate
    assert_true(w.f.nonsense);
    down(&w);

    up(&w, 40000);
    put(&w, 2, 0xfffffff0, 65000, 0);
    put(&w, 2, 0xffffffff, 65535, 0); // both stop
    is(&w, 0xffffffff, 65535);
    assert_int_equal(w.f.full, BIT(TELE_XMIT_DATA) | BIT(TELE_SYMBOL_ERRORS));
    assert_true(w.t.port[0].saturated);
    put(&w, 2, 0xffffffff, 65535, 0);
    is(&w, 0xffffffff, 65535);
    assert_int_equal(w.f.full, 0); // not anew
    uint64_t d;
    assert_int_equal(w.t.port[0].full, BIT(TELE_XMIT_DATA) | BIT(TELE_SYMBOL_ERRORS));
    assert_false(tele_delta(&w.t, 0, TELE_XMIT_DATA, &d)); // no rate, not 0
    assert_false(tele_delta(&w.t, 0, TELE_SYMBOL_ERRORS, &d));
    assert_true(tele_delta(&w.t, 0, TELE_LINK_DOWNED, &d)); // of the same answer
    // We clear one of them.
    accum_clear(&w.a, &w.t, 0, BIT(TELE_SYMBOL_ERRORS), true);
    assert_int_equal(accum_full(&w.a, 0), BIT(TELE_XMIT_DATA));
    put(&w, 2, 0xffffffff, 12, 0);
    is(&w, 0xffffffff, 65547);
    assert_int_equal(w.f.cleared | w.f.ours, 0);
    // And the other, without an answer.
    accum_clear(&w.a, &w.t, 0, BIT(TELE_XMIT_DATA), false);
    put(&w, 2, 50, 12, 0);
    is(&w, 0xffffffffull + 50, 65547);
    assert_int_equal(w.f.ours, BIT(TELE_XMIT_DATA));
    assert_int_equal(w.f.cleared, 0);
    assert_false(w.t.port[0].saturated);
    down(&w);
}

// It comes by another attribute now: no rise, no clear.
static void another_width(void **state)
{
    struct world w;
    (void)state;
    up(&w, 400000);
    put(&w, 1, 1ull << 40, 100, 0);
    put(&w, 2, 0xffffffff, 100, 0);
    is(&w, 1ull << 40, 100);
    assert_int_equal(w.f.cleared, 0);
    put(&w, 2, 0xffffffff, 101, 0);
    is(&w, 1ull << 40, 101);
    put(&w, 1, (1ull << 40) + 500, 102, 0);
    is(&w, 1ull << 40, 101);
    put(&w, 1, (1ull << 40) + 600, 103, 0);
    is(&w, (1ull << 40) + 100, 102);
    down(&w);
}

static void over_a_restart(void **state)
{
    struct world w;
    uint64_t d;
    (void)state;
    up(&w, 400000);
    accum_set_base(&w.a, 0, TELE_SYMBOL_ERRORS, 90); // cleared once, at 90
    accum_set_last(&w.a, &w.t, 0, TELE_SYMBOL_ERRORS, 100);
    accum_set_last(&w.a, &w.t, 0, TELE_XMIT_DATA, 1000);
    accum_set_last(&w.a, &w.t, 0, TELE_LINK_DOWNED, 5);
    put(&w, 1, 1ull << 55, 17, 2); // much traffic since; 7 errors; somebody has cleared the last one
    is(&w, 1ull << 55, 107);
    assert_int_equal(tele_value(&w.t, 0, TELE_LINK_DOWNED), 5);
    assert_false(w.f.nonsense);
    assert_false(tele_delta(&w.t, 0, TELE_SYMBOL_ERRORS, &d));
    put(&w, 1, (1ull << 55) + 1, 18, 3);
    is(&w, (1ull << 55) + 1, 108);
    assert_int_equal(tele_value(&w.t, 0, TELE_LINK_DOWNED), 6);
    assert_int_equal(delta(&w, TELE_SYMBOL_ERRORS), 1);
    down(&w);
}

// A reading that fails in between: the next one covers the gap.
static void gaps(void **state)
{
    struct world w;
    (void)state;
    up(&w, 400000);
    put(&w, 1, 100, 1, 0);
    put(&w, 1, 200, 2, 0);
    w.t.have[0] = 0; // as the collector does
    w.now += 10 * S;
    put(&w, 1, 500, 5, 0);
    assert_int_equal(delta(&w, TELE_XMIT_DATA), 300);
    assert_int_equal(tele_interval(&w.t, 0, TELE_XMIT_DATA), 20 * S);
    down(&w);
}

// Whatever comes, no accumulator goes back, and what a device that is never cleared counts is counted
// exactly.
static void never_back(void **state)
{
    struct world w;
    struct rng g;
    uint64_t last[TELE_COUNTERS] = {0}, truth = 0, shown = 0;
    (void)state;
    rng_init(&g, 1);
    up(&w, 400000);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t what = rng_u64(&g);
        uint64_t symbols = what % 5 == 0 ? rng_u64(&g) % 100 : rng_u64(&g) >> (24 + what % 40);
        put(&w, 1 + what % 2, rng_u64(&g) >> (24 + what % 39), symbols, rng_u64(&g) % 4);
        for (unsigned c = 0; c < TELE_COUNTERS; c++) {
            uint64_t v = tele_value(&w.t, 0, c), d;
            if (v < last[c])
                fail_msg("counter %u went back", c);
            last[c] = v;
            if (tele_delta(&w.t, 0, c, &d))
                assert_true(d <= v);
        }
    }
    down(&w);
    up(&w, 400000);
    for (unsigned i = 0; i < 5000; i++) { // old answers of errors now and then, never twice
        truth += rng_u64(&g) % 1000;
        put(&w, 1, i, i % 7 == 6 ? shown : truth, 0);
        if (i % 7 != 6) {
            shown = truth;
            assert_int_equal(tele_value(&w.t, 0, TELE_SYMBOL_ERRORS), truth);
        }
    }
    down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rises),
        cmocka_unit_test(cleared_by_others),
        cmocka_unit_test(a_little_back),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(faster_than_known),
        cmocka_unit_test(wraps_and_saturation),
        cmocka_unit_test(another_width),
        cmocka_unit_test(over_a_restart),
        cmocka_unit_test(gaps),
        cmocka_unit_test(never_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
