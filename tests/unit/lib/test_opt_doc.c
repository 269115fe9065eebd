// SPDX-License-Identifier: Apache-2.0
// What is written from the rows: sample file, man page, dump.
#include "tests/unit/lib/test.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "tests/unit/lib/opt_schema.h"

static char *text_of(void (*fn)(const struct opt_row *rows, FILE *f))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fn(demo_rows, f);
    fclose(f);
    return text;
}

static char *dump(const struct demo *d)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    opt_dump(demo_rows, d, f);
    fclose(f);
    return text;
}

static void load(struct demo *d, struct arena *a, const char *text)
{
    struct err e;
    char buf[700];

    memset(d, 0, sizeof(*d));
    opt_defaults(demo_rows, d, a);
    if (opt_load_text(demo_rows, d, a, text, strlen(text), "sample", &e) < 0)
        fail_msg("%s in:\n%s", err_str(&e, buf, sizeof(buf)), text);
}

// Removes the "#" of every option that is commented out, as the file's head tells how; only: nothing but this
// one.
static char *uncomment(const char *sample, const char *only)
{
    struct buf out = {0};

    for (const char *line = sample; *line; line += strcspn(line, "\n") + 1) {
        size_t len = strcspn(line, "\n"), blank = strspn(line, " ");
        bool option = line[blank] == '#' && (line[blank + 1] != ' ' || line[blank + 2] == ' ');
        if (option && only)
            option = !strncmp(line + blank + 1, only, strlen(only));
        buf_add(&out, line, blank);
        buf_add(&out, line + blank + option, len - blank - option);
        buf_putc(&out, '\n');
    }
    return buf_take(&out);
}

static void sample_loads_as_it_is_and_uncommented(void **state)
{
    struct arena *a = arena_new();
    struct demo d;
    char *sample = text_of(opt_write_sample);

    load(&d, a, sample);
    char *as_is = dump(&d);
    load(&d, a, "");
    char *defaults = dump(&d);
    assert_string_equal(as_is, defaults);

    // `number` has no default that is valid: the sample leaves its value to the reader.
    char *all = uncomment(sample, NULL), *hole = strstr(all, "number:\n");
    struct buf patched = {0};
    assert_non_null(hole);
    buf_add(&patched, all, (size_t)(hole - all));
    buf_puts(&patched, "number: 7");
    buf_puts(&patched, hole + strlen("number:"));
    load(&d, a, patched.data);
    assert_int_equal(d.devices.n, 1);
    const struct demo_device *dev = d.devices.item;
    assert_int_equal(dev->port, 22);
    assert_int_equal(dev->tags.n, 2);
    assert_true(dev->retry.timeout == 500 * MONO_MS && dev->retry.factor == 2);
    assert_int_equal(dev->ports.n, 1);
    assert_int_equal(((const struct demo_port *)dev->ports.item)->number, 7);
    d.devices = (struct opt_list){0};
    char *again = dump(&d);
    assert_string_equal(again, defaults);

    // One option alone, two sections deep.
    char *one = uncomment(sample, "cache:"), *at = strstr(one, "cache: 64k");
    memcpy(at, "cache: 32k", 10);
    load(&d, a, one);
    assert_int_equal(d.sm.deep.cache, 32768);

    free(one);
    free(again);
    buf_done(&patched);
    free(all);
    free(as_is);
    free(defaults);
    free(sample);
    arena_free(a);
}

static void sample_says_what_one_needs_to_know(void **state)
{
    static const char *const parts[] = {
        "\nsm:\n",
        "\n  # Priority in the election of the master: the higher wins, at equal priorities the lower GUID.\n"
        "  # This text is long enough that it has to be wrapped over lines\n"
        "  # integer 0..15, default 4; takes effect on reload, with a full sweep\n"
        "  #priority: 4\n",
        "\n    # number 0..1, in share of the link, default 0.25; takes effect on reload\n    #threshold: "
        "0.25\n",
        "\n    # size 4k..1G, default 64k; takes effect after a restart\n    #cache: 64k\n",
        "\n  # one of minhop, ftree, up-down, default ftree; takes effect on reload\n  #mode: ftree\n",
        "\n  # duration 0s..1d, default 10s; takes effect on reload\n  #sweep_interval: 10s\n",
        "\n#state_dir: /var/lib/weft\n",
        "\n#short_name: \"\"\n",
        "\n#listen: [\"127.0.0.1:8470\"]\n",
        "\n#devices:\n#    # Name or address\n",
        "\n#  - host: \"\"\n",
        "\n#    retry:\n#      # For one try\n",
        "\n#    ports:\n#        # Number of the port\n#        # integer 1..254, default none; takes effect "
        "on reload\n#      - number:\n",
    };
    char *sample = text_of(opt_write_sample);

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (!strstr(sample, parts[i]))
            fail_msg("not in the sample: %s\n%s", parts[i], sample);
    for (const char *line = sample; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 110);
    free(sample);
}

static void man_page_is_good_roff(void **state)
{
    static const char *const parts[] = {
        ".SS sm\nThe subnet manager\n",
        ".TP\n.B sm.priority\nPriority in the election",
        "(integer 0..15, default 4; takes effect on reload, with a full sweep)\n",
        ".SS sm.deep\n",
        ".TP\n.B devices[].ports[].number\n",
        "one of minhop, ftree, up\\-down, default ftree",
    };
    char *man = text_of(opt_write_man);

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (!strstr(man, parts[i]))
            fail_msg("not in the man page: %s\n%s", parts[i], man);
    free(man);
}

static void man_page_escapes(void **state)
{
    static const struct opt_row rows[] = {
        {.name = "x", .type = OPT_INT, .doc = ".dot first, back\\slash"},
        {.name = "y", .type = OPT_INT, .doc = "'quote first"},
        {0},
    };
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    opt_write_man(rows, f);
    fclose(f);
    assert_non_null(strstr(text, "\n\\&.dot first, back\\eslash.\n"));
    assert_non_null(strstr(text, "\n\\&'quote first.\n"));
    free(text);
}

static void dump_names_everything(void **state)
{
    struct arena *a = arena_new();
    struct demo d;

    load(&d, a, "devices: [{host: \"a\\\"b\\\\\\n\", ports: [{number: 9}]}]\nsm: {sweep_interval: 90s}\n");
    char *text = dump(&d);
    assert_string_equal(text, "sm.priority: 4\n"
                              "sm.guid: 0x0000000000000000\n"
                              "sm.enabled: true\n"
                              "sm.mode: ftree\n"
                              "sm.sweep_interval: 90s\n"
                              "sm.deep.threshold: 0.25\n"
                              "sm.deep.cache: 64k\n"
                              "state_dir: /var/lib/weft\n"
                              "short_name: \"\"\n"
                              "listen: [\"127.0.0.1:8470\"]\n"
                              "devices[0].host: \"a\\\"b\\\\\\x0a\"\n"
                              "devices[0].port: 22\n"
                              "devices[0].driver: sonic\n"
                              "devices[0].tags: [leaf, \"rack 1\"]\n"
                              "devices[0].retry.timeout: 500ms\n"
                              "devices[0].retry.factor: 2\n"
                              "devices[0].ports[0].number: 9\n"
                              "devices[0].ports[0].trust: false\n"
                              "anything: 0\n");
    free(text);
    arena_free(a);
}

static void a_default_that_is_wrong_aborts(void **state)
{
    static const struct opt_row bad[] = {{.name = "x", .type = OPT_INT, .max = 15, .def = "16"}, {0}};
    int status = 0;
    pid_t pid = fork();

    if (!pid) {
        int64_t x;
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        opt_defaults(bad, &x, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_loads_as_it_is_and_uncommented),
        cmocka_unit_test(sample_says_what_one_needs_to_know),
        cmocka_unit_test(man_page_is_good_roff),
        cmocka_unit_test(man_page_escapes),
        cmocka_unit_test(dump_names_everything),
        cmocka_unit_test(a_default_that_is_wrong_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
