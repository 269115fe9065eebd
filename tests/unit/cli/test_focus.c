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
#include "lib/word.h"

static const struct field fields[] = {
    {.key = "name"},
    {.key = "role"},
    {.key = "rail", .kind = FIELD_NUMBER},
    {.key = "peer", .path = "peer.name"},
    {.key = "gbps"},
    {.key = "ok"},
    {.key = "tier", .kind = FIELD_NUMBER},
    {.key = "held", .kind = FIELD_SHARE},
    {.key = "guid"},
    {0},
};

static json_t *item;

static bool called(json_t *x, const char *word)
{
    return word_glob(word, js_str(x, "name")) || word_glob(word, js_str(x, "guid"));
}

static bool hit(const char *text)
{
    struct err e = {0};
    struct focus *f = focus_of(text, fields, &e);
    if (f == NULL)
        print_error("%s: %s\n", text, e.text);
    assert_non_null(f);
    bool m = focus_has(f, fields, item, called);
    focus_free(f);
    return m;
}

static void refused(const char *text, const char *why)
{
    struct err e = {0};
    assert_null(focus_of(text, fields, &e));
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
    refused("rail>299%", "rail is a number (as 7, 5k, 1..4), never \"299%\"");
    refused("gbps>1M", "gbps is a number (as 400, 400G, 100..200)");
    refused("held>1", "write 1% for a percentage"); // more than all there is
    assert_true(hit("ok=yes"));
    assert_true(hit("peer=none"));
    assert_false(hit("peer=x"));
    assert_false(hit("peer~."));
    assert_false(hit("peer!=x")); // there is none
    assert_true(hit("not peer=x"));
    assert_false(hit("peer!=none"));
    assert_true(hit("leaf-r1-0?"));
    assert_true(hit("0x0001"));
    assert_false(hit("leaf"));
    assert_true(hit("rail=2..4"));
    assert_true(hit("tier=spine"));
    assert_true(hit("tier>=leaf tier<core"));
    assert_false(hit("tier=leaf|core"));
    assert_true(hit("held=5%..15%"));
    assert_true(hit("held>0.05"));
    assert_true(hit("held=5..15%"));
    assert_false(hit("held>15%"));
    assert_true(hit("role=l*f"));
}

// What would silently select nothing.
static void test_values(void **state)
{
    refused("role=leef", "role is never \"leef\"; it is one of: unknown, host,");
    refused("role=leaf|leef", "leef");
    refused("role!=leef", "leef");
    refused("role>3", "never \"3\"");
    refused("rail=three", "rail is a number, never \"three\"");
    refused("tier=foot", "tier is a number or one of: leaf, spine, core");
    refused("held>5", "held is a share, from 0 to 1: write 5% for a percentage");
    refused("held=5..10", "write 5%..10% for a percentage");
    assert_true(hit("held<=1"));
    assert_true(hit("role!=none rail!=none"));
    assert_true(hit("rail=*")); // any
    assert_true(hit("name=anything or role=leaf"));
}

static bool is_leaf(void *arg, const char *word)
{
    (void)arg;
    return strcmp(word, "it") == 0;
}

static void no_value(void *arg, unsigned i, struct focus_value *ret)
{
    (void)arg;
    (void)i;
    (void)ret;
}

// The caller may know better what a bare name means.
static void test_names(void **state)
{
    struct err e = {0};
    struct focus *f = focus_of("it|that or not (other it)", fields, &e);
    unsigned n = 0;
    assert_non_null(f);
    assert_true(focus_match(f, no_value, is_leaf, NULL));
    while (focus_bare(f, n) != NULL)
        n++;
    assert_int_equal(n, 4);
    focus_free(f);
    f = focus_of("that", fields, &e);
    assert_false(focus_match(f, no_value, is_leaf, NULL));
    focus_free(f);
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
        struct focus *f = focus_of(text, fields, &e);
        if (f != NULL)
            focus_has(f, fields, item, called);
        else
            assert_true(e.code != 0 && e.text[0] != 0);
        focus_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_atoms),  cmocka_unit_test(test_logic),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_random), cmocka_unit_test(test_values),
        cmocka_unit_test(test_names),
    };
    item = json_loads(
        "{\"name\": \"leaf-r1-03\", \"role\": \"leaf\", \"rail\": 3, \"peer\": null, \"gbps\": 400.0, "
        "\"ok\": true, \"tier\": 1, \"held\": 0.125, \"guid\": \"0x0001\"}",
        0, NULL);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(item);
    return rc;
}
