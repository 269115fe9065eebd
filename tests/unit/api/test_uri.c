// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/uri.h"
#include "lib/err.h"

static struct uri u;

static int parse(const char *raw)
{
    struct err e = {0};
    int rc = uri_parse(&u, raw, &e);
    assert_int_equal(rc, e.code);
    return rc;
}

static void test_parts(void **state)
{
    (void)state;
    assert_int_equal(parse("/api/v1/fabrics/de%20fault//nodes/?limit=3&name=a+b%2b&&flag&x=1=2"), 0);
    assert_int_equal(u.num_segments, 5);
    assert_string_equal(u.segment[3], "de fault");
    assert_string_equal(u.segment[4], "nodes");
    assert_int_equal(u.num_params, 4);
    assert_string_equal(uri_param(&u, "name"), "a b+");
    assert_string_equal(uri_param(&u, "flag"), "");
    assert_string_equal(uri_param(&u, "x"), "1=2");
    assert_null(uri_param(&u, "nam"));
    // A plus sign in a path is one; an escaped slash, ampersand or question mark splits nothing.
    assert_int_equal(parse("/a+b%2fc%3fd/e?k%3d=v%26w"), 0);
    assert_int_equal(u.num_segments, 2);
    assert_string_equal(u.segment[0], "a+b/c?d");
    assert_int_equal(u.num_params, 1);
    assert_string_equal(uri_param(&u, "k="), "v&w");
    assert_int_equal(parse("/"), 0);
    assert_int_equal(u.num_segments, 0);
    assert_int_equal(parse("/?"), 0);
    assert_int_equal(u.num_params, 0);
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"",         "x",    "*",     "http://x/", "/%",      "/%4",
                                      "/%4g",     "/%g4", "/%00",  "/a%0ab",    "/a\x7f",  "/a\x01b",
                                      "/a?b=%zz", "/a?%", "/a?=%", "/a%2",      "/a?b%1=c"};
    char s[URI_MAX + 10];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (parse(bad[i]) != -EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
    memset(s, 'a', sizeof(s));
    s[0] = '/';
    s[URI_MAX] = 0;
    assert_int_equal(parse(s), 0);
    s[URI_MAX] = 'a';
    s[URI_MAX + 1] = 0;
    assert_int_equal(parse(s), -ENAMETOOLONG);
    assert_int_equal(parse("/1/2/3/4/5/6/7/8/9/10/11/12"), 0);
    assert_int_equal(parse("/1/2/3/4/5/6/7/8/9/10/11/12/13"), -E2BIG);
    strcpy(s, "/?");
    for (int i = 0; i < URI_PARAMS; i++)
        strcat(s, "a&");
    assert_int_equal(parse(s), 0);
    strcat(s, "a");
    assert_int_equal(parse(s), -E2BIG);
}

static void test_most_parts(void **state)
{
    char s[URI_MAX + 1] = "/a/a/a/a/a/a/a/a/a/a/a/a?";
    (void)state;
    for (int i = 0; i < URI_PARAMS; i++)
        strcat(s, "=&");
    assert_int_equal(parse(s), 0); // every byte a separator: the most ends that the text must have room for
    assert_int_equal(u.num_params, URI_PARAMS);
}

static void test_hosts(void **state)
{
    static const struct {
        const char *host, *bound, *local;
        bool ok;
    } t[] = {
        {"localhost", NULL, NULL, true},
        {"LocalHost:1", NULL, NULL, true},
        {"127.0.0.1:8470", NULL, NULL, true},
        {"127.255.0.9", NULL, NULL, true},
        {"[::1]", NULL, NULL, true},
        {"[::1]:80", NULL, NULL, true},
        {"10.1.2.3", "10.1.2.3", NULL, true},
        {"10.1.2.3:80", "0.0.0.0", "10.1.2.3", true},
        {"[fd00::1]:80", "fd00::1", NULL, true},
        {"10.1.2.3", "127.0.0.1", "127.0.0.1", false},
        {"", NULL, NULL, false},
        {":", NULL, NULL, false},
        {"[", NULL, NULL, false},
        {"[]", NULL, NULL, false},
        {"[::1]x", NULL, NULL, false},
        {"127.0.0.1.evil.example", NULL, NULL, false},
        {"127.1", NULL, NULL, false},
        {"128.0.0.1", NULL, NULL, false},
        {"localhost.", NULL, NULL, false},
        {"evil.example:80", "127.0.0.1", "127.0.0.1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (uri_host_ok(t[i].host, t[i].bound, t[i].local) != t[i].ok)
            fail_msg("\"%s\"", t[i].host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_most_parts), cmocka_unit_test(test_hosts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
