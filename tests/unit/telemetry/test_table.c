// SPDX-License-Identifier: Apache-2.0
// Counters by name, slots by port.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "telemetry/counters.h"
#include "telemetry/table_priv.h"

static void names(void **state)
{
    (void)state;
    assert_int_equal(tele_counter_by_name("xmit_wait"), TELE_XMIT_WAIT);
    assert_int_equal(tele_counter_by_name("PortXmitWait"), TELE_XMIT_WAIT);
    assert_int_equal(tele_counter_by_name("portxmitwait"), TELE_XMIT_WAIT);
    assert_int_equal(tele_counter_by_name("nothing"), -1);
    for (int c = 0; c < TELE_COUNTERS; c++) {
        assert_int_equal(tele_counter_by_name(tele_rows[c].name), c);
        assert_int_equal(tele_counter_by_name(tele_rows[c].ibta), c);
        assert_true(strlen(tele_rows[c].doc) > 0 && strlen(tele_unit_name(tele_rows[c].unit)) > 0);
    }
}

static void groups(void **state)
{
    uint64_t all = 0;
    (void)state;
    for (unsigned g = 0; g < TELE_GROUPS; g++) {
        assert_int_equal(all & tele_group_counters(g), 0);
        all |= tele_group_counters(g);
        assert_true(tele_group_name(g)[0] != 0);
    }
    assert_int_equal(all, (1ull << TELE_COUNTERS) - 1);
    assert_int_equal(tele_shown(TELE_XMIT_DATA, 5), 20); // words to bytes
    assert_int_equal(tele_shown(TELE_XMIT_WAIT, 5), 5);
}

static void slots(void **state)
{
    struct tele_table t;
    (void)state;
    tele_table_init(&t);
    for (uint32_t i = 0; i < 5000; i++)
        tele_slot_set(&t, i, 0x100 + i / 40, (uint8_t)(i % 40 + 1));
    assert_int_equal(t.num, 5000);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(tele_slot(&t, 0x100 + i / 40, (uint8_t)(i % 40 + 1)), i);
        assert_int_equal(t.port[i].port, ID_NONE);
        assert_int_equal(t.port[i].unread, TELE_GONE);
        assert_int_equal(t.have[i], 0);
    }
    assert_int_equal(tele_slot(&t, 0x100, 0), TELE_SLOT_NONE);
    assert_int_equal(tele_slot(&t, 0x100, 41), TELE_SLOT_NONE);
    assert_int_equal(tele_slot(&t, 0x99, 1), TELE_SLOT_NONE);
    // History may name one far off before those in between.
    tele_slot_set(&t, 9000, 0x7000, 200);
    assert_int_equal(t.num, 9001);
    assert_int_equal(tele_slot(&t, 0x7000, 200), 9000);
    assert_int_equal(tele_slot(&t, 0x7000, 199), TELE_SLOT_NONE);
    assert_int_equal(t.port[8000].unread, TELE_GONE);
    tele_table_done(&t);
}

static void reasons(void **state)
{
    (void)state;
    for (enum tele_unread u = TELE_READ; u <= TELE_SLOW; u++)
        for (enum tele_unread v = TELE_READ; v < u; v++)
            assert_string_not_equal(tele_unread_name(u), tele_unread_name(v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(groups),
        cmocka_unit_test(slots),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
