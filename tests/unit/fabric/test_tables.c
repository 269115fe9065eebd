// SPDX-License-Identifier: Apache-2.0
#include "test_model_help.h"

#include "fabric/tables.h"

static const struct fabric *switches(const uint64_t *guid, unsigned n)
{
    struct builder *b = builder_new();
    for (unsigned i = 0; i < n; i++)
        add_switch(b, guid[i], 4, "");
    return builder_seal(b, 5, NULL);
}

static void test_new(void **state)
{
    const struct fabric *f = switches((const uint64_t[]){1, 2, 3}, 3);
    struct fabric_tables *t = tables_new(f, 63, "a name much too long for it");
    assert_int_equal(t->lids, 64);
    assert_int_equal(t->generation, 5);
    assert_string_equal(t->engine, "a name much too");
    for (uint32_t sw = 0; sw < 3; sw++) {
        for (uint32_t lid = 0; lid < 64; lid++)
            assert_int_equal(tables_port(t, sw, (uint16_t)lid), LFT_DROP);
    }
    tables_row(t, 1)[5] = 3;
    assert_int_equal(tables_port(t, 1, 5), 3);
    assert_int_equal(tables_port(t, 1, 64), LFT_DROP); // beyond the table
    assert_true(tables_bytes(t) >= 3 * 64);
    tables_seal(t, true);
    assert_int_equal(tables_port(t, 1, 5), 3);
    assert_ptr_equal(tables_ref(t), t); // counting goes on in a sealed one
    tables_unref(t);
    assert_int_equal(tables_port(t, 1, 5), 3);
    tables_unref(t);
    tables_unref(NULL);

    t = tables_new(f, 64, "updn");
    assert_int_equal(t->lids, 128);
    tables_unref(t);
    t = tables_new(f, 0, "updn");
    assert_int_equal(t->lids, 64);
    tables_unref(t);
    t = tables_new(f, LID_UCAST_MAX, "updn");
    assert_int_equal(t->lids, LID_UCAST_MAX + 1);
    tables_unref(t);
    fabric_unref(f);
}

static void test_no_switches(void **state)
{
    const struct fabric *f = builder_seal(builder_new(), 1, NULL);
    struct fabric_tables *t = tables_new(f, 10, "none");
    assert_int_equal(t->num_switches, 0);
    assert_int_equal(tables_compare(t, t).blocks, 0);
    tables_unref(t);
    fabric_unref(f);
}

static void test_copy_for(void **state)
{
    const struct fabric *f = switches((const uint64_t[]){1, 2, 3}, 3);
    const struct fabric *g = switches((const uint64_t[]){9, 3, 1}, 3); // 2 is gone, 9 new, numbers changed
    struct fabric_tables *t = tables_new(f, 100, "rail"), *shorter, *longer;
    for (uint32_t sw = 0; sw < 3; sw++)
        memset(tables_row(t, sw), (int)sw + 1, t->lids);
    longer = tables_copy_for(t, f, g, 200);
    assert_int_equal(longer->lids, 256);
    assert_int_equal(longer->top_lid, 200);
    assert_string_equal(longer->engine, "rail");
    assert_int_equal(tables_port(longer, 0, 7), LFT_DROP);
    assert_int_equal(tables_port(longer, 1, 7), 3);
    assert_int_equal(tables_port(longer, 2, 127), 1);
    assert_int_equal(tables_port(longer, 2, 128), LFT_DROP);
    shorter = tables_copy_for(t, f, g, 10);
    assert_int_equal(shorter->lids, 64);
    assert_int_equal(tables_port(shorter, 1, 63), 3);
    tables_row(shorter, 1)[0] = 9; // a copy
    assert_int_equal(tables_port(t, 2, 0), 3);
    tables_unref(t);
    tables_unref(longer);
    tables_unref(shorter);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_compare(void **state)
{
    const struct fabric *f = switches((const uint64_t[]){1, 2, 3}, 3);
    struct fabric_tables *a = tables_new(f, 200, "x"), *b = tables_new(f, 200, "y"),
                         *c = tables_new(f, 60, "z");
    struct tables_diff d = tables_compare(a, b);
    assert_int_equal(d.entries + d.blocks + d.switches, 0);
    tables_row(b, 0)[0] = 1;
    tables_row(b, 0)[63] = 1;
    tables_row(b, 0)[64] = 1;
    tables_row(b, 2)[255] = 1;
    d = tables_compare(a, b);
    assert_int_equal(d.entries, 4);
    assert_int_equal(d.blocks, 3);
    assert_int_equal(d.switches, 2);
    d = tables_compare(b, a);
    assert_int_equal(d.entries, 4);
    d = tables_compare(a, c); // a shorter table drops beyond its end, as the longer does
    assert_int_equal(d.entries, 0);
    d = tables_compare(c, b);
    assert_int_equal(d.entries, 4);
    assert_int_equal(d.blocks, 3);
    assert_int_equal(d.switches, 2);
    tables_unref(a);
    tables_unref(b);
    tables_unref(c);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_no_switches),
        cmocka_unit_test(test_copy_for),
        cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
