// SPDX-License-Identifier: Apache-2.0
// Rates, use, waiting, bit errors: numbers worked out by hand.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/mono.h"
#include "telemetry/rate.h"
#include "telemetry/table_priv.h"

static struct tele_table t;

static void up(uint32_t mbps, double seconds)
{
    tele_table_init(&t);
    tele_slot_set(&t, 0, 0x10, 1);
    t.port[0].rate_mbps = mbps;
    for (unsigned g = 0; g < TELE_GROUPS; g++) {
        t.at_before[g] = MONO_S;
        t.at[g] = MONO_S + (int64_t)(seconds * 1e9);
    }
}

static void count(enum tele_counter c, uint64_t n)
{
    t.before[c] = 1000;
    t.value[c] = 1000 + n;
    t.have[0] |= 1ull << c;
    t.had[0] |= 1ull << c;
}

static void near(double is, double wanted)
{
    if (!(fabs(is - wanted) <= 1e-6 * fabs(wanted)))
        fail_msg("%g, not %g", is, wanted);
}

static void use_of_a_400g_link(void **state)
{
    struct tele_use u;
    (void)state;
    up(400000, 10);                        // 50e9 bytes/s
    count(TELE_XMIT_DATA, 62500000000ull); // 250e9 bytes: half of 500e9
    count(TELE_RCV_DATA, 12500000000ull);  // a tenth
    count(TELE_XMIT_PKTS, 60000000);
    count(TELE_RCV_PKTS, 0);
    count(TELE_XMIT_WAIT, 12500000000ull); // of 8 bytes: 100e9 of 500e9
    tele_use(&t, 0, &u);
    near(u.xmit_bps, 25e9);
    near(u.xmit_used, 0.5);
    near(u.rcv_used, 0.1);
    near(u.xmit_pps, 6e6);
    assert_true(u.rcv_pps == 0);
    near(u.held, 0.2);
    near(u.lost_bps, 10e9);
    near(tele_rate(&t, 0, TELE_XMIT_DATA), 6.25e9);
    tele_table_done(&t);
}

static void waiting_and_sending_are_all_the_time_there_is(void **state)
{
    struct tele_use u;
    (void)state;
    up(400000, 10);
    count(TELE_XMIT_DATA, 112500000000ull); // nine tenths
    count(TELE_XMIT_WAIT, 62500000000ull);  // as if all of it
    tele_use(&t, 0, &u);
    near(u.held, 1.01 - 0.9);
    tele_table_done(&t);
}

static void what_is_not_known(void **state)
{
    struct tele_use u;
    (void)state;
    up(400000, 10);
    count(TELE_XMIT_DATA, 5);
    count(TELE_XMIT_WAIT, 5);
    t.had[0] &= ~(1ull << TELE_XMIT_DATA);
    tele_use(&t, 0, &u);
    assert_true(isnan(u.xmit_bps) && isnan(u.xmit_used) && isnan(u.rcv_bps));
    near(u.held, 5 * 8 / 500e9); // that one is
    tele_table_done(&t);
    up(0, 10); // no rate
    count(TELE_XMIT_DATA, 5);
    tele_use(&t, 0, &u);
    near(u.xmit_bps, 2);
    assert_true(isnan(u.xmit_used) && isnan(u.held) && isnan(u.lost_bps));
    tele_table_done(&t);
}

static void ticks(void **state)
{
    (void)state;
    assert_int_equal(tele_wait_tick_bytes(0x2c9, 0xd2f2, 4), 8);   // Quantum-2
    assert_int_equal(tele_wait_tick_bytes(0x2c9, 0xcb20, 4), 128); // Switch-IB: 32 of each lane
    assert_int_equal(tele_wait_tick_bytes(0x2c9, 0xcf08, 1), 32);
    assert_int_equal(tele_wait_tick_bytes(0x2c9, 0xc738, 0), 128);
    assert_int_equal(tele_wait_tick_bytes(0x1234, 0xcb20, 4), 8);
}

static void within(double is, double wanted, double share)
{
    if (!(fabs(is - wanted) <= share * wanted))
        fail_msg("%g, not %g", is, wanted);
}

// Against tables of the Poisson distribution (5 % on either side).
static void bit_errors(void **state)
{
    struct tele_ber b;
    static const struct {
        uint64_t n;
        double low, high;
    } row[] = {{1, 0.05129, 4.744}, {2, 0.3554, 6.296}, {3, 0.8177, 7.754}, {5, 1.970, 10.51},
               {10, 5.425, 16.96},  {20, 13.25, 29.06}, {50, 38.96, 63.29}, {100, 84.14, 118.08}};
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        tele_ber(row[i].n, 1e15, 4e11, 1e-14, &b);
        near(b.estimate, (double)row[i].n * 1e-15);
        within(b.low * 1e15, row[i].low, 0.003);
        within(b.high * 1e15, row[i].high, 0.003);
    }
    // None: 3 / limit bits are enough. At 400 Gb/s that is 750 s for 1e-14.
    tele_ber(0, 2.9e14, 4e11, 1e-14, &b);
    assert_false(b.enough);
    within(b.seconds_needed, (2.9957e14 - 2.9e14) / 4e11, 0.01);
    tele_ber(0, 3e14, 4e11, 1e-14, &b);
    assert_true(b.enough && b.estimate == 0 && b.seconds_needed == 0);
    near(b.high, 2.995732274 / 3e14);
    // Clearly above it.
    tele_ber(10, 1e14, 4e11, 1e-14, &b);
    assert_true(b.enough && b.low > 1e-14);
    // Just at it: it takes long.
    tele_ber(4, 3e14, 4e11, 1e-14, &b);
    assert_false(b.enough);
    assert_true(b.seconds_needed > 750);
    tele_ber(0, 0, 4e11, 1e-14, &b);
    assert_true(isnan(b.estimate) && !b.enough);
    within(b.seconds_needed, 749, 0.01);
    tele_ber(0, 0, 0, 1e-14, &b);
    assert_true(isinf(b.seconds_needed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_of_a_400g_link), cmocka_unit_test(waiting_and_sending_are_all_the_time_there_is),
        cmocka_unit_test(what_is_not_known),  cmocka_unit_test(ticks),
        cmocka_unit_test(bit_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
