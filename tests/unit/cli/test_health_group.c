// SPDX-License-Identifier: Apache-2.0
// Rows of weft health: what one device has taken down is one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "cli/cli.h"
#include "cli/tele.h"

static void link_add(json_t *items, const char *state, const char *rule, const char *a, const char *z, int n)
{
    json_array_append_new(items, json_pack("{s:s, s:s, s:{s:s}, s:{s:s}, s:o, s:s}", "state", state, "rule",
                                           rule, "a", "name", a, "z", "name", z, "place",
                                           json_sprintf("%s/%d <-> %s", a, n, z), "said", "down (L01)"));
}

static void devices_are_rows(void **state)
{
    json_t *items = json_array(), *rows;
    char name[40];
    (void)state;
    link_add(items, "failing", "L06", "leaf-1", "spine-1", 1);
    link_add(items, "failing", "L06", "leaf-1", "spine-2", 2); // two are two
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "leaf-%d", i);
        link_add(items, "down", "L01", name, "spine-1", i);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "gpu-0001 mlx5_%d", i);
        link_add(items, "down", "L01", name, "leaf-9", 1); // of one leaf and one host
    }
    link_add(items, "flapping", "L02", "leaf-7", "spine-1", 7); // another state
    link_add(items, "unsure", "", "leaf-7", "spine-1", 8);      // no rule
    rows = health_grouped(items);
    assert_int_equal(json_array_size(rows), 6);
    static const char *const want[] = {"leaf-1/1 <-> spine-1", "leaf-1/2 <-> spine-2",
                                       "spine-1: 8 links",     "gpu-0001: 4 links",
                                       "leaf-7/7 <-> spine-1", "leaf-7/8 <-> spine-1"};
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(js_str(json_array_get(rows, i), "place"), want[i]);
    assert_string_equal(js_str(json_array_get(rows, 2), "said"), "such as leaf-0/0 <-> spine-1: down (L01)");
    assert_string_equal(js_str(json_array_get(items, 2), "place"),
                        "leaf-0/0 <-> spine-1"); // they stay as they are
    json_decref(rows);
    json_decref(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices_are_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
