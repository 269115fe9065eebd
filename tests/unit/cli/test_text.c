// SPDX-License-Identifier: Apache-2.0
// Text for terminals: nothing hostile gets through, columns are right, times and words are read right.
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/text.h"
#include "lib/rng.h"
#include "lib/when.h"
#include "lib/word.h"

static char *escaped(const char *s, bool utf8)
{
    struct buf b = {0};
    buf_puts(&b, "");
    text_escape(&b, s, utf8);
    return buf_take(&b);
}

static void check(const char *s, bool utf8, const char *want)
{
    char *e = escaped(s, utf8);
    assert_string_equal(e, want);
    free(e);
}

static void test_escape(void **state)
{
    check("leaf-1/33 \\x", true, "leaf-1/33 \\x");
    check("a\033[2Jb\r\n\t\x7f", true, "a\\x1b[2Jb\\x0d\\n\\t\\x7f");
    check("B\xc3\xa9ziers", true, "B\xc3\xa9ziers");
    check("B\xc3\xa9ziers", false, "B\\u{e9}ziers");
    check("\xc2\x9b"
          "31m",
          true, "\\u{9b}31m"); // CSI of C1
    check("a\xe2\x80\xae"
          "b",
          true, "a\\u{202e}b"); // right-to-left override
    check("a\xe2\x81\xa6\xe2\x80\x8b"
          "b",
          true, "a\\u{2066}\\u{200b}b");
    check("\xff\xc3", true, "\\xff\\xc3");                            // broken
    check("\xc0\xaf\xed\xa0\x80", true, "\\xc0\\xaf\\xed\\xa0\\x80"); // overlong, surrogate
    check("\xf3\xa0\x80\xa1", true, "\\u{e0021}");                    // tags
}

// Whatever comes in: no control character, no broken UTF-8 comes out.
static void test_escape_random(void **state)
{
    struct rng r;
    rng_init(&r, 7);
    for (int i = 0; i < 20000; i++) {
        char s[24];
        size_t n = rng_below(&r, 23);
        for (size_t k = 0; k < n; k++)
            s[k] = (char)(1 + rng_below(&r, 255));
        s[n] = 0;
        for (int utf8 = 0; utf8 < 2; utf8++) {
            char *e = escaped(s, utf8);
            for (const char *p = e; *p; p++) {
                assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
                if (!utf8)
                    assert_true((unsigned char)*p < 0x80);
            }
            assert_int_not_equal(mbstowcs(NULL, e, 0), (size_t)-1);
            char *again = escaped(e, utf8);
            assert_string_equal(again, e);
            free(again);
            free(e);
        }
    }
}

static void check_fit(const char *s, unsigned width, bool right, bool utf8, const char *want)
{
    struct buf b = {0};
    text_fit(&b, s, width, right, utf8);
    assert_string_equal(b.data, want);
    buf_done(&b);
}

static void test_fit(void **state)
{
    check_fit("abc", 5, false, true, "abc  ");
    check_fit("abc", 5, true, true, "  abc");
    check_fit("abcdef", 4, false, true, "abc…");
    check_fit("abcdef", 4, false, false, "abc~");
    check_fit("日本語", 6, false, true, "日本語");
    check_fit("日本語", 5, false, true, "日本…");
    check_fit("日本語", 4, false, true, "日… "); // half a character does not fit
    assert_int_equal(text_width("日本é"), 5);
}

static void test_count_age(void **state)
{
    struct buf b = {0};
    text_count(&b, 0);
    buf_putc(&b, ' ');
    text_count(&b, 999);
    buf_putc(&b, ' ');
    text_count(&b, 1000);
    buf_putc(&b, ' ');
    text_count(&b, -1234567);
    buf_putc(&b, ' ');
    text_count(&b, INT64_MIN);
    assert_string_equal(b.data, "0 999 1,000 -1,234,567 -9,223,372,036,854,775,808");
    buf_clear(&b);
    text_age(&b, 12);
    buf_putc(&b, '|');
    text_age(&b, 7800);
    buf_putc(&b, '|');
    text_age(&b, 86400 * 4);
    assert_string_equal(b.data, "12 s|2 h 10 min|4 d");
    buf_done(&b);
}

static int64_t read_time(const char *s, bool ahead)
{
    const int64_t now = 1796126400ll * 1000000000; // 2026-12-01 12:00:00 UTC, 13:00 in Berlin
    int64_t ns = -1;
    return when_read(s, now, ahead, &ns) == 0 ? ns / 1000000000 - 1796126400ll : -1;
}

// Times as people write them, and as they are shown, beside noon of a day in December.
static void test_when_read(void **state)
{
    static const struct {
        const char *text;
        bool ahead;
        int64_t after; // noon in UTC, seconds
    } t[] = {{"2026-12-01T12:00:05Z", false, 5},
             {"2026-12-01 12:00:05 UTC", false, 5},
             {"2026-12-01 13:00:05 CET", false, 5},
             {"2026-12-01 13:00:05", false, 5},
             {"2026-12-01 13:00", false, 0},
             {"2026-12-01 12:00 UTC", false, 0},
             {"2026-12-01T13:01+01:00", false, 60},
             {"2026-12-02", false, 11 * 3600},
             {"2026-07-01 12:00:00", false, -13226400},
             {"2026-07-01 12:00:00 CEST", false, -13226400},
             {"12:59", false, -60},
             {"12:59", true, 86340},
             {"13:01", false, -86340},
             {"13:01:30", true, 90},
             {"12:01 UTC", true, 60},
             {"12:01Z", false, -86340}};
    static const char *const bad[] = {
        "",           "noon",        "12", "25:00",      "12:61", "12:00 XST", "2026-12-01 12:00 XYZ",
        "2026-13-01", "2026-12-01x", "2h", "12:00:00:00"};
    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (read_time(t[i].text, t[i].ahead) != t[i].after)
            fail_msg("%s: %lld", t[i].text, (long long)read_time(t[i].text, t[i].ahead));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (when_read(bad[i], 0, false, &(int64_t){0}) == 0)
            fail_msg("%s is taken", bad[i]);
    setenv("TZ", "UTC", 1);
    tzset();
}

static void test_times(void **state)
{
    int64_t ns, s;
    assert_int_equal(when_parse("1970-01-01T00:00:01.250Z", &ns), 0);
    assert_int_equal(ns, 1250000000);
    assert_int_equal(when_parse("1970-01-01T02:00:00+02:00", &ns), 0);
    assert_int_equal(ns, 0);
    assert_int_equal(when_parse("2026-11-30T19:53:05.001Z", &ns), 0);
    assert_int_equal(ns, 1796068385001000000);
    static const char *const bad[] = {"2999-01-01T00:00:00Z",
                                      "",
                                      "now",
                                      "2026-11-30",
                                      "2026-11-30T19:53:05",
                                      "2026-11-30T19:53:05Zx",
                                      "2026-13-30T19:53:05Z",
                                      "2026-11-30T19:53:05+9:00",
                                      "12345678901234567890123"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_not_equal(when_parse(bad[i], &ns), 0);
    assert_int_equal(when_parse_age("2h", &s), 0);
    assert_int_equal(s, 7200);
    assert_int_not_equal(when_parse_age("2", &s), 0);
    assert_int_not_equal(when_parse_age("-2h", &s), 0);
    assert_int_not_equal(when_parse_age("2hh", &s), 0);
    // No age and no end of one is beyond what nanoseconds can say.
    assert_int_equal(when_parse_age("36500d", &s), 0);
    assert_int_equal(when_after(ns, s, &ns), 0);
    assert_true(ns > 1796068385001000000);
    static const char *const far[] = {"36501d",    "9999999d",    "100000000d",           "1000000h",
                                      "60000000m", "4000000000s", "99999999999999999999d"};
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
        assert_int_equal(when_parse_age(far[i], &s), -EINVAL);
    assert_int_equal(when_after(INT64_MAX - 5, 1, &ns), -ERANGE);
    assert_int_equal(when_after(1796068385001000000, INT64_MAX / 1000, &ns), -ERANGE);

    struct buf b = {0};
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    text_time(&b, "2026-07-30T19:53:05.001Z", true);
    setenv("TZ", "UTC", 1);
    tzset();
    buf_putc(&b, '|');
    text_time(&b, "2026-07-30T19:53:05.001Z", true);
    buf_putc(&b, '|');
    text_time(&b, "2026-07-30T19:53:05.001Z", false);
    buf_putc(&b, '|');
    text_time(&b, "never\033", true);
    assert_non_null(strstr(b.data, "|2026-07-30 19:53:05.001 UTC|2026-07-30 19:53:05 UTC|never\\x1b"));
    buf_done(&b);
}

static void test_numbers(void **state)
{
    long long n = 5;
    assert_int_equal(text_parse_count("10", 1, 10, &n), 0);
    assert_int_equal(n, 10);
    static const char *const bad[] = {"", "-1", "11", "0", "1x", " 1", "0x5", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_not_equal(text_parse_count(bad[i], 1, 10, &n), 0);
    assert_int_equal(n, 10);
}

static const char *share_of(double x)
{
    static char text[40];
    struct buf b = {0};
    text_share(&b, x);
    snprintf(text, sizeof(text), "%s", b.data);
    buf_done(&b);
    return text;
}

static const char *bytes_of(double x, const char *per)
{
    static char text[40];
    struct buf b = {0};
    text_bytes(&b, x, per);
    snprintf(text, sizeof(text), "%s", b.data);
    buf_done(&b);
    return text;
}

static void test_units(void **state)
{
    assert_string_equal(share_of(0), "0 %");
    assert_string_equal(share_of(0.00123), "0.12 %");
    assert_string_equal(share_of(0.0123), "1.2 %");
    assert_string_equal(share_of(0.9984), "99.8 %");
    assert_string_equal(share_of(1), "100 %");
    assert_string_equal(bytes_of(0, "/s"), "0 B/s");
    assert_string_equal(bytes_of(999, ""), "999 B");
    assert_string_equal(bytes_of(999.6, ""), "1.00 kB");
    assert_string_equal(bytes_of(12345, "/s"), "12.3 kB/s");
    assert_string_equal(bytes_of(49.96e9, "/s"), "50.0 GB/s");
    assert_string_equal(bytes_of(123e12, ""), "123 TB");
    assert_string_equal(bytes_of(5e21, ""), "5000 EB");
}

static void test_words(void **state)
{
    assert_int_equal(word_distance("status", "status"), 0);
    assert_int_equal(word_distance("sttaus", "status"), 1); // two swapped
    assert_int_equal(word_distance("", "abc"), 3);
    assert_true(word_near("nod", "node"));
    assert_true(word_near("staus", "status"));
    assert_true(word_near("re", "reroute"));
    assert_false(word_near("mad", "sim"));
    assert_true(word_glob("leaf-r1-*", "leaf-r1-03"));
    assert_true(word_glob("*a*b?", "xxaxxbc"));
    assert_false(word_glob("*a*b?", "xxaxxb"));
    assert_true(word_glob("", ""));
    assert_false(word_glob("", "a"));
    assert_true(word_glob("***", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_read),     cmocka_unit_test(test_escape),
        cmocka_unit_test(test_escape_random), cmocka_unit_test(test_fit),
        cmocka_unit_test(test_count_age),     cmocka_unit_test(test_times),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_units),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
