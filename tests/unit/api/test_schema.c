// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/schema.h"
#include "lib/err.h"
#include "lib/rng.h"

struct inner {
    const char *name;
    int64_t n;
};
static const struct field inner_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = offsetof(struct inner, name), "a name"},
    {.name = "n", .type = FIELD_INT, .at = offsetof(struct inner, n), "a number", .null = true},
    {0},
};
static const struct schema inner_schema = {.name = "inner", "inner", sizeof(struct inner), inner_fields};

struct outer {
    bool b;
    int64_t i, time;
    double d;
    const char *s, *raw;
    uint64_t guid;
    const struct inner *o;
    struct items list, strings;
};
#define AT(f) offsetof(struct outer, f)
static const struct field outer_fields[] = {
    {.name = "b", .type = FIELD_BOOL, .at = AT(b), "b"},
    {.name = "i", .type = FIELD_INT, .at = AT(i), "i", .null = true},
    {.name = "d", .type = FIELD_NUM, .at = AT(d), "d", .null = true},
    {.name = "s", .type = FIELD_STR, .at = AT(s), "s", .null = true},
    {.name = "guid", .type = FIELD_GUID, .at = AT(guid), "guid", .null = true},
    {.name = "time", .type = FIELD_TIME, .at = AT(time), "time", .null = true},
    {.name = "raw", .type = FIELD_RAW, .at = AT(raw), "raw", .null = true},
    {.name = "o", .type = FIELD_OBJ, .at = AT(o), "o", &inner_schema, .null = true},
    {.name = "list", .type = FIELD_LIST, .at = AT(list), "list", &inner_schema},
    {.name = "strings", .type = FIELD_STRINGS, .at = AT(strings), "strings"},
    {0},
};
static const struct schema outer_schema = {.name = "outer", "outer", sizeof(struct outer), outer_fields};

static void gives_json(const struct outer *o, const char *text)
{
    struct buf b = {0};
    json_put_struct(&b, &outer_schema, o);
    assert_int_equal(strlen(b.data), b.len);
    assert_string_equal(b.data, text);
    buf_done(&b);
}

static void test_json(void **state)
{
    struct inner in[2] = {{"x", 1}, {"y", NO_INT}};
    const char *const s[2] = {"one", "tw\"o"};
    (void)state;
    gives_json(
        &(struct outer){.i = NO_INT, .d = (double)NAN},
        "{\"b\":false,\"i\":null,\"d\":null,\"s\":null,\"guid\":null,\"time\":null,\"raw\":null,\"o\":null,"
        "\"list\":[],\"strings\":[]}");
    gives_json(
        &(struct outer){.b = true,
                        .i = INT64_MIN + 1,
                        .d = 0.25,
                        .s = "",
                        .guid = 0xabcdef,
                        .time = 1500000000123000000,
                        .raw = "{\"k\":1}",
                        .o = &in[0],
                        .list = {in, 2},
                        .strings = {s, 2}},
        "{\"b\":true,\"i\":-9223372036854775807,\"d\":0.25,\"s\":\"\",\"guid\":\"0x0000000000abcdef\","
        "\"time\":\"2017-07-14T02:40:00.123Z\",\"raw\":{\"k\":1},\"o\":{\"name\":\"x\",\"n\":1},"
        "\"list\":[{\"name\":\"x\",\"n\":1},{\"name\":\"y\",\"n\":null}],\"strings\":[\"one\",\"tw\\\"o\"]}");
}

static void gives(const char *in, size_t n, const char *out)
{
    struct buf b = {0};
    json_put_string(&b, in, n);
    assert_string_equal(b.data, out);
    buf_done(&b);
}

static void test_strings(void **state)
{
    (void)state;
    gives("a\"b\\c\n\t\r\x01\x1f\x7f", 11, "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u001f\\u007f\"");
    gives("\0x", 2, "\"\\u0000x\"");
    gives("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    // Overlong, surrogate, beyond the last character, cut off, stray.
    gives("\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    gives("\xed\xa0\x80z", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"");
    gives("\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    gives("a\xe2\x82", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
    gives("\xff"
          "b",
          2,
          "\"\xef\xbf\xbd"
          "b\"");
}

// Whatever bytes there are, the answer is JSON.
static void test_any_bytes(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 5);
    for (int i = 0; i < 20000; i++) {
        char s[40];
        struct buf b = {0};
        size_t n = rng_below(&r, sizeof(s));
        for (size_t k = 0; k < n; k++)
            s[k] = (char)(rng_below(&r, 3) ? 0x80 + rng_below(&r, 128) : rng_below(&r, 128));
        json_put_string(&b, s, n);
        json_t *j = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (j == NULL)
            fail_msg("%s", b.data);
        json_decref(j);
        buf_done(&b);
    }
}

static void test_csv(void **state)
{
    struct inner in = {"a,\"b\"", 7};
    struct buf b = {0};
    (void)state;
    csv_put_head(&b, &outer_schema);
    assert_string_equal(b.data, "b,i,d,s,guid,time,o.name,o.n\r\n");
    buf_clear(&b);
    csv_put_row(&b, &outer_schema, &(struct outer){.i = 5, .d = 1.5, .s = "=cmd()", .guid = 1, .o = &in});
    assert_string_equal(b.data, "false,5,1.5,\"'=cmd()\",0x0000000000000001,,\"a,\"\"b\"\"\",7\r\n");
    buf_clear(&b);
    csv_put_row(&b, &outer_schema, &(struct outer){.i = NO_INT, .d = (double)NAN});
    assert_string_equal(b.data, "false,,,,,,,\r\n");
    buf_done(&b);
}

static const char *const colours[] = {"red", "green", NULL};
static const struct field body_fields[] = {
    {.name = "who", .type = FIELD_STR, .at = 0, "who it is", .need = true},
    {.name = "n", .type = FIELD_INT, .at = 0, "n", .min = 1, .max = 9},
    {.name = "colour", .type = FIELD_STR, .at = 0, "colour", .name_of = colours},
    {.name = "on", .type = FIELD_BOOL, .at = 0, "on"},
    {.name = "list", .type = FIELD_STRINGS, .at = 0, "list"},
    {.name = "x", .type = FIELD_NUM, .at = 0, "x"},
    {0},
};
static const struct schema body = {.name = "body", "body", 1, body_fields, true};

static void test_bodies(void **state)
{
    static const struct {
        const char *text, *error; // NULL: fine
    } t[] = {
        {"{\"who\":\"a\"}", NULL},
        {"{\"who\":\"a\",\"n\":9,\"colour\":\"green\",\"on\":false,\"list\":[\"a\"],\"x\":1}", NULL},
        {"{}", "\"who\" is missing: who it is"},
        {"[]", "object"},
        {"{\"who\":\"a\",\"whom\":1}", "known: who, n, colour, on, list, x"},
        {"{\"who\":1}", "a string"},
        {"{\"who\":null}", "a string"},
        {"{\"who\":\"a\",\"n\":1.5}", "whole number"},
        {"{\"who\":\"a\",\"n\":0}", "1 to 9"},
        {"{\"who\":\"a\",\"n\":10}", "1 to 9"},
        {"{\"who\":\"a\",\"colour\":\"blue\"}", "red, green"},
        {"{\"who\":\"a\",\"on\":1}", "true or false"},
        {"{\"who\":\"a\",\"list\":[\"a\",1]}", "list of strings"},
        {"{\"who\":\"a\",\"x\":\"1\"}", "a number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct err e = {0};
        json_t *j = json_loads(t[i].text, 0, NULL);
        int rc = schema_check_body(&body, j, &e);
        assert_int_equal(rc, t[i].error ? -EINVAL : 0);
        if (t[i].error != NULL && strstr(e.text, t[i].error) == NULL)
            fail_msg("%s: %s", t[i].text, e.text);
        json_decref(j);
    }
}

static void test_openapi(void **state)
{
    json_t *o = schema_openapi(&outer_schema), *p = json_object_get(o, "properties");
    (void)state;
    assert_int_equal(json_object_size(p), 10);
    assert_int_equal(json_array_size(json_object_get(o, "required")), 10);
    assert_int_equal(json_array_size(json_object_get(json_object_get(p, "i"), "type")), 2);
    assert_string_equal(json_string_value(json_object_get(json_object_get(p, "b"), "type")), "boolean");
    assert_int_equal(json_array_size(json_object_get(json_object_get(p, "o"), "oneOf")), 2);
    json_decref(o);
    o = schema_openapi(&body);
    assert_int_equal(json_array_size(json_object_get(o, "required")), 1);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json),      cmocka_unit_test(test_strings),
                                       cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_csv),
                                       cmocka_unit_test(test_bodies),    cmocka_unit_test(test_openapi)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
