// SPDX-License-Identifier: Apache-2.0
// The focus language: what it selects, what it refuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/focus.h"
#include "lib/err.h"
#include "lib/rng.h"

static const struct field fields[] = {
    {.key = "name"},
    {.key = "role"},
    {.key = "rail", .kind = FIELD_NUMBER},
    {.key = "peer", .path = "peer.name"},
    {.key = "gbps"},
    {.key = "ok"},
    {.key = "guid"},
    {0},
};

static json_t *item;

static bool hit(const char *text)
{
    struct err e = {0};
    struct focus *f = focus_of(text, fields, "name guid", &e);
    if (f == NULL)
        print_error("%s: %s\n", text, e.text);
    assert_non_null(f);
    bool m = focus_has(f, fields, item);
    focus_free(f);
    return m;
}

static void refused(const char *text, const char *why)
{
    struct err e = {0};
    assert_null(focus_of(text, fields, "name guid", &e));
    assert_int_not_equal(e.code, 0);
    if (strstr(e.text, why) == NULL)
        print_error("%s: %s\n", text, e.text);
    assert_non_null(strstr(e.text, why));
}

static void test_atoms(void **state)
{
    assert_true(hit("role=leaf"));
    assert_true(hit("role=spine|leaf"));
    assert_false(hit("role!=leaf"));
    assert_true(hit("role!=spine|core"));
    assert_true(hit("name=leaf-r1-*"));
    assert_true(hit("name~^leaf-r[0-9]"));
    assert_false(hit("name~'^r[0-9] x'"));
    assert_true(hit("rail=3"));
    assert_true(hit("rail=1..4"));
    assert_false(hit("rail=4..7|9"));
    assert_true(hit("rail>=3"));
    assert_false(hit("rail>3"));
    assert_true(hit("gbps<=400G"));
    assert_true(hit("rail>299%"));
    assert_false(hit("rail>300%"));
    assert_true(hit("ok=yes"));
    assert_true(hit("peer=none"));
    assert_false(hit("peer=x"));
    assert_false(hit("peer~."));
    assert_true(hit("peer!=x"));
    assert_false(hit("peer!=none"));
    assert_true(hit("leaf-r1-0?"));
    assert_true(hit("0x0001"));
    assert_false(hit("leaf"));
    assert_false(hit("role>3"));
}

static void test_logic(void **state)
{
    assert_true(hit("role=leaf rail=3"));
    assert_true(hit("role=leaf, rail=3"));
    assert_true(hit("role=leaf and rail=3"));
    assert_false(hit("role=leaf rail=4"));
    assert_true(hit("role=spine or rail=3"));
    assert_true(hit("role=spine || rail=3"));
    assert_true(hit("role=spine rail=3 or role=leaf")); // and binds closer
    assert_false(hit("role=spine and (rail=3 or role=leaf)"));
    assert_true(hit("not role=spine"));
    assert_true(hit("!(role=spine rail=3)"));
    assert_true(hit("not not role=leaf"));
    assert_false(hit("not role=leaf or rail=9"));
    assert_true(hit("orange or leaf-r1-*")); // a name that begins as an operator does
}

static void test_refused(void **state)
{
    refused("", "missing");
    refused("rol=leaf", "did you mean \"role\"?");
    refused("colour=red", "no field");
    refused("role=", "missing");
    refused("role=leaf and", "missing");
    refused("(role=leaf", "\")\" is missing");
    refused("role=leaf)", "not understood at column 10");
    refused("name='leaf", "quote");
    refused("name~'['", "regular expression");
    refused("name~'((a{1,255}){1,255}){1,255}'", "no {N,M}");
    refused("name~'(a)\\1'", "no \\1");
    assert_true(hit("name~'^leaf.r1\\-03$'"));
    refused("rail>x", "number");
    refused("rail>1..2", "number");
}

static void test_limits(void **state)
{
    char text[6000];
    memset(text, '(', 40);
    strcpy(text + 40, "role=leaf");
    refused(text, "deeper");
    memset(text, '!', 40);
    refused(text, "deeper");
    memset(text, 'a', 5000);
    text[5000] = 0;
    refused(text, "longer");
    text[0] = 0;
    for (int i = 0; i < 257; i++)
        strcat(text, "rail=3 ");
    refused(text, "256");
    strcpy(text, "name~");
    memset(text + 5, 'a', 300);
    text[305] = 0;
    refused(text, "256");
}

// Any text is either refused with words or can be matched.
static void test_random(void **state)
{
    static const char *const piece[] = {"role", "=",  "!=", "~", "<",    "leaf", "(",   ")",
                                        "|",    ",",  " ",  "'", "not ", "and ", "or ", "rail",
                                        "3",    "..", "*",  "[", "none", "\xff", "!",   "||"};
    struct rng r;
    rng_init(&r, 11);
    for (int i = 0; i < 50000; i++) {
        char text[200] = "";
        struct err e = {0};
        for (unsigned k = rng_below(&r, 12); k > 0; k--)
            strcat(text, piece[rng_below(&r, (sizeof(piece) / sizeof(piece[0])))]);
        struct focus *f = focus_of(text, fields, "name guid", &e);
        if (f != NULL)
            focus_has(f, fields, item);
        else
            assert_true(e.code != 0 && e.text[0] != 0);
        focus_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_atoms),  cmocka_unit_test(test_logic),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_random),
    };
    item = json_loads(
        "{\"name\": \"leaf-r1-03\", \"role\": \"leaf\", \"rail\": 3, \"peer\": null, \"gbps\": 400.0, "
        "\"ok\": true, \"guid\": \"0x0001\"}",
        0, NULL);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(item);
    return rc;
}
