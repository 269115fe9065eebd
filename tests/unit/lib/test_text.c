// SPDX-License-Identifier: Apache-2.0
// Texts are cut between characters, and what is no UTF-8 goes.
#include "tests/unit/lib/test.h"

#include <stdbool.h>
#include <stdio.h>

#include "lib/rng.h"
#include "lib/text.h"

static const char *const character[] = {"a",      "~",      "\u00a0", "\u00fc",     "\u0800",
                                        "\u20ac", "\ud7ff", "\uffff", "\U00010000", "\U0010ffff"};
#define CHARACTERS (sizeof(character) / sizeof(character[0]))

// At each size: as many whole characters as there is room for, and not one more.
static void between_characters(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 1);
    for (int round = 0; round < 200; round++) {
        char text[64] = "", buf[80];
        bool ends[64] = {true};
        for (int i = 0; i < 12; i++) {
            strcat(text, character[rng_below(&r, CHARACTERS)]);
            ends[strlen(text)] = true;
        }
        for (size_t max = 0; max < 64; max++) {
            size_t want = max < strlen(text) ? max : strlen(text);
            while (!ends[want])
                want--;
            assert_int_equal(text_cut(text, max), want);
            memset(buf, '#', sizeof(buf));
            assert_int_equal(text_print(buf, max + 1, "%s", text), want);
            assert_int_equal(strlen(buf), want);
            assert_memory_equal(buf, text, want);
            assert_int_equal(buf[max + 1], '#');
        }
    }
}

static void no_utf8_is_cut_anywhere(void **state)
{
    char buf[8];
    (void)state;
    assert_int_equal(text_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 6), 6);
    assert_int_equal(text_cut("\x80\x80", 1), 1);
    assert_int_equal(text_cut("\xfc\xfc\xfc", 2), 2);
    assert_int_equal(text_print(buf, sizeof(buf), "%s", "\x80\x80\x80\x80\x80\x80\x80\x80\x80"), 7);
    assert_int_equal(text_print(buf, sizeof(buf), "x%d", 5), 2);
    assert_string_equal(buf, "x5");
}

static void clean(void **state)
{
    static const struct {
        const char *was, *is;
    } t[] = {{"", ""},
             {"plain", "plain"},
             {"a\u00fc\u20ac\U00010000z", "a\u00fc\u20ac\U00010000z"},
             {"M\xfcnchen", "Mnchen"},
             {"cut \xe2\x82", "cut "},
             {"\x82\xac cut", " cut"},
             {"\xe2\x82\xe2\x82\xac", "\u20ac"},
             {"\xc0\x80\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf.", "."}, // too long
             {"\xed\xa0\x80\xed\xbf\xbf.", "."},                     // surrogates
             {"\xf4\x90\x80\x80\xf5\x80\x80\x80\xff.", "."}};        // beyond the last
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        char s[64];
        snprintf(s, sizeof(s), "%s", t[i].was);
        assert_int_equal(text_clean(s), strlen(t[i].is));
        assert_string_equal(s, t[i].is);
    }
    for (size_t i = 0; i < CHARACTERS; i++) {
        char s[8];
        snprintf(s, sizeof(s), "%s", character[i]);
        text_clean(s);
        assert_string_equal(s, character[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(between_characters),
                                       cmocka_unit_test(no_utf8_is_cut_anywhere), cmocka_unit_test(clean)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
