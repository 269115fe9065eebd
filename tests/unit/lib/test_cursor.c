// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include "lib/cursor.h"

static void reads_network_order(void **state)
{
    static const uint8_t in[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff, 0xee};
    struct cursor c;

    cursor_init(&c, in, sizeof(in));
    assert_int_equal(cursor_u8(&c), 0x01);
    assert_int_equal(cursor_u16(&c), 0x0203);
    assert_int_equal(cursor_u32(&c), 0x04050607);
    assert_true(cursor_u64(&c) == 0x08090a0b0c0d0e0fULL);
    assert_int_equal(cursor_left(&c), 2);
    assert_ptr_equal(cursor_bytes(&c, 2), in + 15);
    assert_int_equal(cursor_left(&c), 0);
    assert_false(c.bad);
}

static void error_is_sticky(void **state)
{
    static const uint8_t in[] = {1, 2, 3};
    struct cursor c;

    cursor_init(&c, in, sizeof(in));
    assert_int_equal(cursor_u32(&c), 0);
    assert_true(c.bad);
    assert_int_equal(cursor_u8(&c), 0); // though a byte is there
    assert_null(cursor_bytes(&c, 1));
    assert_int_equal(cursor_left(&c), 0);

    cursor_init(&c, in, sizeof(in));
    cursor_skip(&c, SIZE_MAX);
    assert_true(c.bad);
    cursor_init(&c, in, sizeof(in));
    cursor_skip(&c, 3);
    assert_false(c.bad);
    assert_non_null(cursor_bytes(&c, 0));
}

static void writes_network_order(void **state)
{
    static const uint8_t expect[] = {0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 'x', 'y'};
    uint8_t out[18];
    struct wcursor c;

    memset(out, 0x55, sizeof(out));
    wcursor_init(&c, out, sizeof(out) - 1);
    wcursor_u8(&c, 0xab);
    wcursor_u16(&c, 0x0102);
    wcursor_u32(&c, 0x03040506);
    wcursor_u64(&c, 0x0708090a0b0c0d0eULL);
    wcursor_bytes(&c, "xy", 2);
    assert_false(c.bad);
    assert_memory_equal(out, expect, sizeof(expect));
    wcursor_u8(&c, 1);
    assert_true(c.bad);
    assert_int_equal(out[17], 0x55);
}

static void write_that_does_not_fit_writes_nothing(void **state)
{
    uint8_t out[4] = {9, 9, 9, 9};
    struct wcursor c;

    wcursor_init(&c, out, 3);
    wcursor_u32(&c, 0);
    wcursor_u8(&c, 0);
    assert_true(c.bad);
    assert_memory_equal(out, "\x09\x09\x09\x09", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_network_order),
        cmocka_unit_test(error_is_sticky),
        cmocka_unit_test(writes_network_order),
        cmocka_unit_test(write_that_does_not_fit_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
