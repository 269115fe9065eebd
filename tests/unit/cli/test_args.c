// SPDX-License-Identifier: Apache-2.0
// The command line, and that every row is whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/args.h"
#include "cli/cli.h"

// "weft" and the words of line (blanks between); the words live as long as the program.
static int parse(struct args *a, const char *line, struct err *e)
{
    static char text[64][400];
    static unsigned turn;
    char *argv[40] = {(char *)"weft"};
    int argc = 1;
    char *s = text[turn++ % 64];

    *e = (struct err){0};
    strcpy(s, line);
    for (char *w = strtok(s, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    return args_parse(a, argc, argv, e);
}

static void good(struct args *a, const char *line, const char *command)
{
    struct err e;
    int rc = parse(a, line, &e);
    if (rc != 0)
        print_error("%s: %s: %s\n", line, e.where, e.text);
    assert_int_equal(rc, 0);
    assert_string_equal(a->command ? a->command->name : "", command);
}

static void bad(const char *line, const char *where, const char *text)
{
    struct args a;
    struct err e;
    assert_int_not_equal(parse(&a, line, &e), 0);
    assert_string_equal(e.where, where);
    if (strstr(e.text, text) == NULL)
        print_error("%s: %s\n", line, e.text);
    assert_non_null(strstr(e.text, text));
}

static void test_words(void **state)
{
    struct args a;
    good(&a, "status", "status");
    good(&a, "sim link down leaf-1 33", "sim link");
    assert_int_equal(a.num_words, 3);
    assert_string_equal(a.word[0], "down");
    assert_string_equal(a.word[2], "33");
    good(&a, "route show A B", "route show");
    assert_string_equal(a.word[1], "B");
    good(&a, "route compute", "route compute");
    good(&a, "findings", "finding");
    good(&a, "node show", "node"); // "show" is a node's name here
}

static void test_anywhere(void **state)
{
    static const char *const line[] = {
        "-o json --limit 5 node --role leaf x", "node x -ojson --role=leaf --limit=5",
        "--role leaf node -o=json x --limit 5", "node --output json --limit 5 --role leaf -- x"};
    struct args a;
    for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
        good(&a, line[i], "node");
        assert_string_equal(args_value(&a, "output"), "json");
        assert_string_equal(args_value(&a, "limit"), "5");
        assert_string_equal(args_value(&a, "role"), "leaf");
        assert_int_equal(a.num_words, 1);
        assert_string_equal(a.word[0], "x");
        assert_false(args_has(&a, "type"));
        assert_null(args_value(&a, "type"));
    }
    good(&a, "node -- --role", "node");
    assert_string_equal(a.word[0], "--role");
    good(&a, "node -", "node");
    assert_string_equal(a.word[0], "-");
}

static void test_values(void **state)
{
    struct args a;
    good(&a, "status --wait 60", "status");
    assert_string_equal(args_value(&a, "wait"), "60");
    assert_int_equal(a.num_words, 0);
    good(&a, "--wait=5 reroute", "reroute");
    assert_string_equal(args_value(&a, "wait"), "5");
    good(&a, "--wait reroute", "reroute"); // the next word is no number
    assert_true(args_has(&a, "wait"));
    assert_null(args_value(&a, "wait"));
    good(&a, "port leaf --watch 3", "port"); // only =SECONDS belongs to --watch
    assert_null(args_value(&a, "watch"));
    assert_string_equal(a.word[1], "3");
    good(&a, "port leaf --watch=3", "port");
    assert_string_equal(args_value(&a, "watch"), "3");
    good(&a, "route compute f --fail a --fail random:1:7", "route compute");
    assert_int_equal(a.num_given, 2);
    assert_string_equal(a.given[0].value, "a");
    assert_string_equal(a.given[1].value, "random:1:7");
}

static void test_excused(void **state)
{
    struct args a;
    good(&a, "--version", "");
    good(&a, "--help", "");
    good(&a, "sim link -h", "sim link");
    good(&a, "help", "help");
}

static void test_wrong(void **state)
{
    bad("", "", "weft help");
    bad("nod", "nod", "\"node\"");
    bad("sttaus", "sttaus", "\"status\"");
    bad("frobnicate", "frobnicate", "weft help");
    bad("sim", "sim", "\"sim link\", \"sim cable\", \"sim node\"");
    bad("sim lnik down a 1", "sim", "\"sim link\"");
    bad("route", "route", "\"route show\"");
    bad("node --rol leaf", "--rol", "--role");
    bad("node --kind x", "--kind", "weft help node");
    bad("node -x", "-x", "weft help");
    bad("node --limit", "--limit", "needs a value");
    bad("node -o", "-o", "needs a value");
    bad("node -o xml", "--output", "table json csv");
    bad("node --type=host", "--type", "ca switch router");
    bad("node --no-color=1", "--no-color", "takes no value");
    bad("node -hx", "-hx", "takes no value");
    bad("node --limit 1 --limit 2", "limit", "twice");
    bad("port a 1 2", "2", "usage: weft port [NODE [NUM]]");
    bad("status now", "now", "too many");
}

static void test_many(void **state)
{
    char *argv[200];
    struct args a;
    struct err e = {0};
    for (int i = 0; i < 200; i++)
        argv[i] = (char *)"node";
    assert_int_not_equal(args_parse(&a, 200, argv, &e), 0);
    for (int i = 1; i < 200; i++)
        argv[i] = (char *)"--no-color";
    assert_int_not_equal(args_parse(&a, 200, argv, &e), 0);
}

static bool names_an_option(const char *list)
{
    for (const char *p = list; *p; p += strcspn(p, " "), p += strspn(p, " "))
        if (option_find(p, strcspn(p, " ")) == NULL)
            return false;
    return true;
}

static void test_command_rows(void **state)
{
    for (const struct command_row *c = command_rows; c->name; c++) {
        struct args a;
        struct err e;
        char line[300];
        assert_non_null(c->args);
        assert_non_null(c->run);
        assert_true(c->doc != NULL && strlen(c->doc) > 10 && c->doc[strlen(c->doc) - 1] != '.');
        assert_true(c->min_args <= c->max_args);
        assert_true((c->max_args == 0) == (c->args[0] == 0));
        assert_non_null(c->options);
        assert_true(names_an_option(c->options));
        assert_non_null(c->example);
        for (const struct command_row *d = c + 1; d->name; d++)
            assert_string_not_equal(c->name, d->name);
        // Every example is a line that parses, but for what a shell would do.
        for (const char *p = c->example; *p;) {
            size_t n = strcspn(p, "\n|");
            assert_int_equal(strncmp(p, "weft ", 5), 0);
            snprintf(line, sizeof(line), "%.*s", (int)n - 5, p + 5);
            if (strchr(line, '\'') == NULL) {
                if (parse(&a, line, &e) != 0)
                    print_error("%s: %s %s\n", line, e.where, e.text);
                assert_int_equal(parse(&a, line, &e), 0);
                assert_ptr_equal(a.command, c);
            }
            p += strcspn(p, "\n");
            p += *p == '\n';
        }
    }
}

static void test_option_rows(void **state)
{
    for (const struct option_row *o = option_rows; o->name; o++) {
        bool used = o->global;
        assert_non_null(o->doc);
        assert_true((o->value != NULL) == (o->arg != OPTION_FLAG));
        for (const struct command_row *c = command_rows; c->name; c++)
            used |= command_takes(c, o);
        if (!used)
            print_error("no command takes --%s\n", o->name);
        assert_true(used);
        for (const struct option_row *p = o + 1; p->name; p++) {
            assert_string_not_equal(o->name, p->name);
            assert_true(o->letter == 0 || o->letter != p->letter);
        }
    }
}

static void test_help(void **state)
{
    struct out all = {0}, md = {0}, completion = {0}, one = {0};
    char head[100];
    help_all(&all);
    help_markdown(&md);
    help_completion(&completion);
    for (const struct command_row *c = command_rows; c->name; c++) {
        assert_non_null(strstr(all.text.data, c->doc));
        snprintf(head, sizeof(head), "## weft %s\n", c->name);
        assert_non_null(strstr(md.text.data, head));
        snprintf(head, sizeof(head), "[\"%s\"]=", c->name);
        assert_non_null(strstr(completion.text.data, head));
        help_command(&one, c);
        for (const struct option_row *o = option_rows; o->name; o++) {
            snprintf(head, sizeof(head), "--%s", o->name);
            if (!o->hidden && command_takes(c, o))
                assert_non_null(strstr(one.text.data, head));
        }
        buf_clear(&one.text);
    }
    out_done(&all);
    out_done(&md);
    out_done(&completion);
    out_done(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),        cmocka_unit_test(test_anywhere),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_excused),
        cmocka_unit_test(test_wrong),        cmocka_unit_test(test_many),
        cmocka_unit_test(test_command_rows), cmocka_unit_test(test_option_rows),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
