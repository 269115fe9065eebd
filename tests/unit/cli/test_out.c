// SPDX-License-Identifier: Apache-2.0
// One walk, three formats; layout of tables on narrow and wide terminals.
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/out.h"
#include "cli/text.h"

static const struct field fields[] = {
    {.key = "name", .title = "NAME", .flags = FIELD_SHRINK},
    {.key = "lid", .title = "LID", .kind = FIELD_NUMBER},
    {.key = "mads", .title = "MADS", .kind = FIELD_COUNT},
    {.key = "state", .title = "STATE", .flags = FIELD_STATE},
    {.key = "peer", .title = "PEER", .path = "peer.name", .flags = FIELD_SHRINK},
    {.key = "seconds", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {0},
};

static json_t *items(void)
{
    return json_loads(
        "[{\"name\": \"leaf-1\", \"lid\": 7, \"mads\": 12345, \"state\": \"active\","
        "  \"peer\": {\"name\": \"spine, the \\\"first\\\"\"}, \"seconds\": 0.25},"
        " {\"name\": \"evil\\u001b[2J\\n\\u009bx\", \"lid\": null, \"mads\": 1, \"state\": \"down\","
        "  \"peer\": null, \"seconds\": 1}]",
        0, NULL);
}

static void check_list(struct out o, const char *want)
{
    json_t *list = items();
    out_list(&o, fields, list);
    assert_string_equal(o.text.data, want);
    json_decref(list);
    out_done(&o);
}

static void test_table(void **state)
{
    check_list((struct out){.header = true, .utf8 = true},
               "NAME                  LID    MADS  STATE   PEER\n"
               "leaf-1                  7  12,345  active  spine, the \"first\"\n"
               "evil\\x1b[2J\\n\\u{9b}x    -       1  down    -\n");
    check_list((struct out){.header = false, .utf8 = true},
               "leaf-1                7  12,345  active  spine, the \"first\"\n"
               "evil\\x1b[2J\\n\\u{9b}x  -       1  down    -\n");
}

static void test_narrow(void **state)
{
    check_list((struct out){.header = true, .utf8 = true, .width = 40, .tty = true},
               "NAME      LID    MADS  STATE   PEER\n"
               "leaf-1      7  12,345  active  spine, t…\n"
               "evil\\x1…    -       1  down    -\n");
    // What may not shrink stays whole.
    check_list((struct out){.header = true, .utf8 = false, .width = 20, .tty = true},
               "NAME      LID    MADS  STATE   PEER\n"
               "leaf-1      7  12,345  active  spine, ~\n"
               "evil\\x1~    -       1  down    -\n");
}

static void test_colour(void **state)
{
    struct out o = {.colour = true, .utf8 = true};
    json_t *list = items();
    out_list(&o, fields, list);
    assert_non_null(strstr(o.text.data, "\033[32mactive\033[0m"));
    assert_non_null(strstr(o.text.data, "\033[31mdown  \033[0m"));
    out_done(&o);
    o = (struct out){.utf8 = true};
    out_list(&o, fields, list);
    out_paint(&o, COLOUR_RED, "%s", "x\033[1m");
    assert_null(strchr(o.text.data, '\033'));
    out_done(&o);
    json_decref(list);
}

static void test_csv(void **state)
{
    check_list((struct out){.format = OUT_CSV, .header = true, .width = 20},
               "name,lid,mads,state,peer,seconds\n"
               "leaf-1,7,12345,active,\"spine, the \"\"first\"\"\",0.25\n"
               "evil\\x1b[2J\\n\\u{9b}x,,1,down,,1\n");
    check_list((struct out){.format = OUT_CSV}, "leaf-1,7,12345,active,\"spine, the \"\"first\"\"\",0.25\n"
                                                "evil\\x1b[2J\\n\\u{9b}x,,1,down,,1\n");
}

static void test_json(void **state)
{
    struct out o = {.format = OUT_JSON, .header = true};
    json_t *list = items(), *back;

    out_list(&o, fields, list);
    for (const char *p = o.text.data; *p; p++)
        assert_true((*p >= 0x20 && *p < 0x7f) || *p == '\n');
    back = json_loads(o.text.data, 0, NULL);
    assert_int_equal(json_array_size(back), 2);
    assert_string_equal(js_str(json_array_get(back, 1), "name"), "evil\033[2J\n\xc2\x9bx");
    assert_true(json_is_null(json_object_get(json_array_get(back, 1), "peer")));
    assert_string_equal(js_str(json_array_get(back, 0), "peer"), "spine, the \"first\"");
    assert_true(json_is_null(json_object_get(json_array_get(back, 1), "lid")));
    json_decref(back);
    out_done(&o);
    json_array_clear(list);
    out_list(&o, fields, list);
    assert_string_equal(o.text.data, "[]\n");
    json_decref(list);
    out_done(&o);
}

static void test_object(void **state)
{
    struct out o = {.utf8 = true};
    json_t *list = items();
    out_object(&o, fields, json_array_get(list, 0));
    assert_string_equal(o.text.data, "name     leaf-1\nlid      7\nmads     12,345\nstate    active\n"
                                     "peer     spine, the \"first\"\nseconds  0.250\n");
    json_decref(list);
    out_done(&o);
}

static void test_wrap(void **state)
{
    struct out o = {.utf8 = true, .width = 20, .colour = true};
    out_printf(&o, "above");
    out_newline(&o);
    out_printf(&o, "  next     ");
    out_paint(&o, COLOUR_RED, "one two three");
    out_printf(&o, " aVeryLongWordIndeed x");
    out_wrap(&o, 11);
    assert_string_equal(o.text.data, "above\n  next     \033[31mone two\n           three\033[0m\n"
                                     "           aVeryLongWordIndeed\n           x\n");
    out_done(&o);
    o = (struct out){0}; // no terminal: nothing is wrapped
    out_printf(&o, "a line that is longer than anything that a terminal of twenty columns has");
    out_wrap(&o, 11);
    assert_int_equal(strchr(o.text.data, '\n') - o.text.data, (long)o.text.len - 1);
    out_done(&o);
}

static void test_paths(void **state)
{
    json_t *o = json_loads("{\"a\": {\"b\": {\"c\": 3, \"t\": true}}, \"s\": \"x\"}", 0, NULL);
    assert_int_equal(js_int(o, "a.b.c"), 3);
    assert_true(js_true(o, "a.b.t"));
    assert_string_equal(js_str(o, "s.t"), "");
    assert_string_equal(js_str(o, "a"), "");
    assert_int_equal(js_int(NULL, "a"), 0);
    json_decref(o);
}

// Ages in lists are times where one thing is shown, and where programs read; keys are hexadecimal for people.
static void test_ages_and_keys(void **state)
{
    static const struct field some[] = {{.key = "at", .title = "AGE", .kind = FIELD_AGE},
                                        {.key = "mlid", .title = "MLID", .kind = FIELD_HEX},
                                        {0}};
    struct out o = {.header = true, .utf8 = true};
    json_t *list = json_loads("[{\"at\": \"2200-01-01T00:00:00.000Z\", \"mlid\": 49153},"
                              " {\"at\": \"never\", \"mlid\": null}]",
                              0, NULL);
    (void)state;
    setenv("TZ", "UTC", 1);
    out_list(&o, some, list);
    assert_string_equal(o.text.data, "  AGE    MLID\n"
                                     "  0 s  0xc001\n"
                                     "never       -\n");
    buf_clear(&o.text);
    out_object(&o, some, json_array_get(list, 0));
    assert_string_equal(o.text.data, "at    2200-01-01 00:00:00 UTC\n"
                                     "mlid  0xc001\n");
    buf_clear(&o.text);
    o.format = OUT_CSV;
    out_list(&o, some, list);
    assert_string_equal(o.text.data, "at,mlid\n2200-01-01T00:00:00.000Z,49153\nnever,\n");
    json_decref(list);
    out_done(&o);
}

// Shares, rates and sizes are for people in tables; programs get the numbers.
static void test_measures(void **state)
{
    static const struct field some[] = {{.key = "held", .title = "HELD", .kind = FIELD_SHARE},
                                        {.key = "sent", .title = "SENT", .kind = FIELD_RATE},
                                        {.key = "size", .title = "SIZE", .kind = FIELD_BYTES},
                                        {.key = "ber", .title = "BER", .kind = FIELD_FIGURE},
                                        {0}};
    struct out o = {.header = true, .utf8 = true};
    json_t *list = json_loads("[{\"held\": 0.125, \"sent\": 12.5e9, \"size\": 2048, \"ber\": 1.2e-14},"
                              " {\"held\": null, \"sent\": 0, \"size\": 1, \"ber\": 18930.4}]",
                              0, NULL);
    (void)state;
    out_list(&o, some, list);
    assert_string_equal(o.text.data, "  HELD      SENT     SIZE      BER\n"
                                     "12.5 %  100 Gb/s  2.05 kB  1.2e-14\n"
                                     "     -     0 b/s      1 B   18,930\n");
    buf_clear(&o.text);
    o.format = OUT_CSV;
    out_list(&o, some, list);
    assert_string_equal(o.text.data, "held,sent,size,ber\n0.125,1.25e10,2048,1.2e-14\n,0,1,18930.4\n");
    json_decref(list);
    out_done(&o);
}

// Where the table is too wide its sentences are wrapped below their rows, and nothing else is cut.
static void test_below(void **state)
{
    static const struct field f[] = {
        {.key = "place", .title = "WHERE"},
        {.key = "why", .title = "WHY", .flags = FIELD_SHRINK | FIELD_BELOW},
        {.key = "since", .title = "SINCE"},
        {.key = "advice", .title = "ADVICE", .flags = FIELD_SHRINK | FIELD_BELOW},
        {0},
    };
    json_t *items = json_pack("[{s:s,s:s,s:s,s:s},{s:s,s:n,s:s,s:s}]", "place", "leaf-1/33", "why",
                              "21 symbol errors within 12 min", "since", "2 min", "advice", "reseat it",
                              "place", "leaf-2/1", "why", "since", "1 h", "advice", "look");
    struct out o = {.header = true, .utf8 = true, .width = 30, .tty = true};
    (void)state;
    out_list(&o, f, items);
    assert_string_equal(o.text.data, "WHERE      SINCE\n"
                                     "leaf-1/33  2 min\n"
                                     "    21 symbol errors within 12\n"
                                     "    min\n"
                                     "    reseat it\n"
                                     "leaf-2/1   1 h\n"
                                     "    look\n");
    out_done(&o);
    o = (struct out){.header = true, .utf8 = true, .width = 70, .tty = true};
    out_list(&o, f, items);
    assert_string_equal(o.text.data, "WHERE      WHY                             SINCE  ADVICE\n"
                                     "leaf-1/33  21 symbol errors within 12 min  2 min  reseat it\n"
                                     "leaf-2/1   -                               1 h    look\n");
    out_done(&o);
    json_decref(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_narrow),        cmocka_unit_test(test_colour),
        cmocka_unit_test(test_csv),      cmocka_unit_test(test_json),          cmocka_unit_test(test_object),
        cmocka_unit_test(test_wrap),     cmocka_unit_test(test_ages_and_keys), cmocka_unit_test(test_paths),
        cmocka_unit_test(test_measures), cmocka_unit_test(test_below),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
