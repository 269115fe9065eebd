// SPDX-License-Identifier: Apache-2.0
// Numbers, units and ranges of the focus language; the language itself is tested with the command's fields.
#include "tests/unit/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "lib/err.h"
#include "lib/focus.h"

enum { RAIL, USED, NAME, TIER, AGE };
static const char *const tiers[] = {"leaf", "spine", NULL};

static const char *name(const void *arg, unsigned i)
{
    static const char *const of[] = {"rail", "used", "name", "tier", "age", NULL};
    (void)arg;
    return of[i];
}

static void about(const void *arg, unsigned i, struct focus_about *ret)
{
    (void)arg;
    ret->holds = i == USED ? FOCUS_SHARE : i == NAME ? FOCUS_ANYTHING : i == AGE ? FOCUS_SPAN : FOCUS_NUMBER;
    if (i == TIER)
        ret->words = tiers;
}

static const struct focus_fields fields = {.name = name, .about = about};

static void value(void *arg, unsigned i, struct focus_value *ret)
{
    *ret = i == NAME ? (struct focus_value){.text = "5x"}
                     : (struct focus_value){.text = i == AGE ? "2026-01-31T10:20:30Z" : NULL,
                                            .is_number = true,
                                            .number = *(double *)arg};
}

static bool hit(const char *text, double v)
{
    struct err e = {0};
    struct focus *f = focus_new(text, &fields, &e);
    if (f == NULL)
        fail_msg("%s: %s", text, e.text);
    bool yes = focus_match(f, value, NULL, &v);
    focus_free(f);
    return yes;
}

static void refused(const char *text, const char *why)
{
    struct err e = {0};
    struct focus *f = focus_new(text, &fields, &e);
    focus_free(f);
    if (f != NULL || strstr(e.text, why) == NULL)
        fail_msg("%s: %s", text, f != NULL ? "is taken" : e.text);
}

static void units_of_ranges(void **state)
{
    (void)state;
    assert_true(hit("rail=5..10k", 5000) && hit("rail=5..10k", 9000) && !hit("rail=5..10k", 11000));
    assert_true(hit("rail=5k..10M", 5000) && hit("rail=5k..10M", 1e7) && !hit("rail=5k..10M", 4999));
    assert_true(hit("rail>1G", 1.1e9) && !hit("rail>1G", 9e8) && hit("rail=2k", 2000));
    assert_true(hit("used>=1", 1) && hit("used>99%", 1) && hit("used=100%", 1));
    refused("used>1", "write 1% for a percentage");
    assert_true(hit("used=5..10%", 0.07) && !hit("used=5..10%", 0.2));
    assert_true(hit("used=5%..10%", 0.05) && !hit("used=5%..10%", 0.04));
    assert_true(hit("used=5%..0.1", 0.07) && !hit("used=5%..0.1", 0.11));
    refused("used=5%..10", "used is a share, from 0 to 1: write 5%..10% for a percentage");
    refused("used=5..10", "write 5%..10% for a percentage");
    refused("used=5", "write 5% for a percentage");
    refused("used=10%..5%", "nothing is in 10%..5%: 0.1 is above 0.05");
    refused("rail=4..1", "nothing is in 4..1: 4 is above 1");
}

static void other_units(void **state)
{
    static const char *const bad[] = {"5x",      "5%%", "5G%",  "1..4x", "1x..4", "1..", "..4",
                                      "1..2..3", "5m",  "'5x'", "5%",    "1..*",  "x*",  "5..6%"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[40];
        snprintf(text, sizeof(text), "rail=%s", bad[i]);
        refused(text, "rail is a number");
    }
    refused("rail!=5x", "never \"5x\"");
    refused("rail=5|6x", "never \"6x\"");
    refused("tier=1x", "tier is a number (as 7, 5k, 1..4) or one of: leaf, spine, never \"1x\"");
    refused("rail>5x", "never \"5x\"");
    refused("rail>1..2", "a number is missing");
    // These are numbers, or match their text.
    assert_true(hit("rail=0x10", 16) && hit("rail=1e1", 10) && hit("rail='3'", 3) && hit("rail=4k", 4000));
    assert_true(hit("rail=1*", 12) && !hit("rail=1*", 2) && hit("rail!=none", 1) && hit("tier=spine", 1));
    assert_true(hit("name=5x", 0) && !hit("name=4..1", 0)); // whatever a name is
}

// What would take memory without bound.
static void dear(void **state)
{
    static const char *const bad[] = {"a++",         "a**",  "a+?",    "(a+)+",  "((a*)b)?", "(a|b+)*",
                                      "((((a+))))*", "a{2}", "(a)\\1", "[ab]+*", "()+?",     "((a)+(b)+)+"};
    static const char *const good[] = {
        "a+b*c?",        "(ab)+",   "(a|b)+c+", "a+(b+)", "(a+)(b+)", "[+*?{(]+", "[]+]+",
        "[[:alpha:]+]+", "[^]+*]+", "a\\+\\+",  "\\(+",   "(()())+",  "[a"};
    char text[60];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "name~'%s'", bad[i]);
        refused(text, "no repeats of repeats");
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct err e = {0};
        snprintf(text, sizeof(text), "name~'%s'", good[i]);
        struct focus *f = focus_new(text, &fields, &e);
        if (f == NULL && strstr(e.text, "repeats") != NULL)
            fail_msg("%s: %s", text, e.text);
        focus_free(f);
    }
}

// Times are compared with ages, or by what is written.
static void ages(void **state)
{
    (void)state;
    assert_true(hit("age>90s", 91) && !hit("age>90s", 90) && hit("age>=90", 90) && hit("age<1.5m", 89));
    assert_true(hit("age>2h", 7201) && !hit("age>2h", 7200) && hit("age<3d", 259199) &&
                !hit("age<3d", 259200));
    assert_true(hit("age=1h..2h", 3600) && hit("age=1..2h", 7200) && !hit("age=1..2h", 3599));
    assert_true(hit("age=90s..2m", 100) && !hit("age=90s..2m", 121) && hit("age='90s'|5s", 5) &&
                hit("age='90s'", 90));
    assert_true(hit("age=2026-01-3*", 1) && !hit("age=2026-02*", 1) && hit("age~^2026", 1));
    assert_true(!hit("age=none", 0) && hit("age!=none", 0));
    refused("age>5x", "age is compared with an age (as 90s, 10m, 2h, 3d, 1h..2h), never \"5x\"");
    refused("age>5%", "never \"5%\"");
    refused("age=old", "never \"old\"");
    refused("age=2h..1h", "nothing is in 2h..1h");
    refused("rail>5s", "rail is a number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_of_ranges),
        cmocka_unit_test(other_units),
        cmocka_unit_test(ages),
        cmocka_unit_test(dear),
    };
    return cmocka_run_group_tests_name("lib/focus", tests, NULL, NULL);
}
