// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "tests/unit/lib/opt_schema.h"

static struct arena *arena;
static struct demo demo;
static struct err err;

static int setup(void **state)
{
    arena = arena_new();
    memset(&demo, 0xaa, sizeof(demo));
    opt_defaults(demo_rows, &demo, arena);
    err = (struct err){0};
    return 0;
}

static int teardown(void **state)
{
    arena_free(arena);
    return 0;
}

static int load(const char *text)
{
    return opt_load_text(demo_rows, &demo, arena, text, strlen(text), "t.yaml", &err);
}

static void assert_loads(const char *text)
{
    char buf[700];
    if (load(text) < 0)
        fail_msg("%s", err_str(&err, buf, sizeof(buf)));
}

static void assert_defaults(const struct demo *d)
{
    assert_int_equal(d->sm.priority, 4);
    assert_true(d->sm.guid == 0);
    assert_true(d->sm.enabled);
    assert_int_equal(d->sm.mode, 1);
    assert_true(d->sm.sweep_interval == 10 * MONO_S);
    assert_true(d->sm.deep.threshold == 0.25);
    assert_int_equal(d->sm.deep.cache, 65536);
    assert_string_equal(d->state_dir, "/var/lib/weft");
    assert_string_equal(d->short_name, "");
    assert_int_equal(d->listen.n, 1);
    assert_string_equal(d->listen.item[0], "127.0.0.1:8470");
    assert_int_equal(d->devices.n, 0);
    assert_true(d->anything == 0);
}

static void defaults(void **state)
{
    assert_defaults(&demo);
}

static void every_type(void **state)
{
    assert_loads("# comment\n"
                 "---\n"
                 "sm:\n"
                 "  priority: 0xf\n"
                 "  guid: ec0d:9a03:0002:c050\n"
                 "  enabled: off\n"
                 "  mode: up-down\n"
                 "  sweep_interval: 1.5m\n"
                 "  deep: {threshold: 1e-3, cache: 1M}\n"
                 "state_dir: \"/tmp/\\u00e9 x\"\n"
                 "short_name: ''\n"
                 "listen: [a:1, 'b: 2']\n"
                 "anything: -9223372036854775808\n"
                 "devices:\n"
                 "  - host: leaf1\n"
                 "    tags:\n"
                 "      - x\n"
                 "    retry:\n"
                 "      timeout: 2s\n"
                 "    ports:\n"
                 "      - {number: 1, trust: yes}\n"
                 "      - number: 2\n"
                 "  - {}\n"
                 "...\n");
    assert_int_equal(demo.sm.priority, 15);
    assert_true(demo.sm.guid == 0xec0d9a030002c050);
    assert_false(demo.sm.enabled);
    assert_int_equal(demo.sm.mode, 2);
    assert_true(demo.sm.sweep_interval == 90 * MONO_S);
    assert_true(demo.sm.deep.threshold == 1e-3);
    assert_int_equal(demo.sm.deep.cache, 1 << 20);
    assert_string_equal(demo.state_dir, "/tmp/\xc3\xa9 x");
    assert_string_equal(demo.short_name, "");
    assert_int_equal(demo.listen.n, 2);
    assert_string_equal(demo.listen.item[1], "b: 2");
    assert_true(demo.anything == INT64_MIN);

    assert_int_equal(demo.devices.n, 2);
    const struct demo_device *d = demo.devices.item;
    assert_string_equal(d[0].host, "leaf1");
    assert_int_equal(d[0].port, 22);
    assert_int_equal(d[0].tags.n, 1);
    assert_string_equal(d[0].tags.item[0], "x");
    assert_true(d[0].retry.timeout == 2 * MONO_S);
    assert_true(d[0].retry.factor == 2);
    assert_int_equal(d[0].ports.n, 2);
    const struct demo_port *p = d[0].ports.item;
    assert_int_equal(p[0].number, 1);
    assert_true(p[0].trust);
    assert_int_equal(p[1].number, 2);
    assert_false(p[1].trust);
    // An element that says nothing has the defaults.
    assert_string_equal(d[1].host, "");
    assert_int_equal(d[1].port, 22);
    assert_int_equal(d[1].tags.n, 2);
    assert_string_equal(d[1].tags.item[1], "rack 1");
    assert_true(d[1].retry.timeout == 500 * MONO_MS);
    assert_int_equal(d[1].ports.n, 0);
}

static void nothing_to_load(void **state)
{
    static const char *const texts[] = {
        "",   "\n\n",  "# only a comment\n",       "---\n",         "---\n...\n",       "~\n",
        "{}", "sm:\n", "sm:\n  deep:\ndevices:\n", "devices: []\n", "\xef\xbb\xbfsm:\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_loads(texts[i]);
        assert_defaults(&demo);
    }
}

static void values_good_and_bad(void **state)
{
    static const struct {
        const char *path;
        const char *value;
        int r;
        const char *dumped;
    } c[] = {
        {"anything", "9223372036854775807", 0, "9223372036854775807"},
        {"anything", "9223372036854775808", -EINVAL, ""},
        {"anything", "+7", 0, "7"},
        {"anything", "-0x10", 0, "-16"},
        {"anything", "010", 0, "10"}, // no octal
        {"anything", "0x", -EINVAL, ""},
        {"anything", "7 ", -EINVAL, ""},
        {"anything", " 7", -EINVAL, ""},
        {"anything", "1e3", -EINVAL, ""},
        {"anything", "", -EINVAL, ""},
        {"sm.priority", "15", 0, "15"},
        {"sm.priority", "16", -EINVAL, ""},
        {"sm.priority", "-1", -EINVAL, ""},
        {"sm.enabled", "Yes", 0, "true"},
        {"sm.enabled", "1", -EINVAL, ""},
        {"sm.mode", "minhop", 0, "minhop"},
        {"sm.mode", "Minhop", -EINVAL, ""},
        {"sm.sweep_interval", "0", 0, "0s"},
        {"sm.sweep_interval", "10", -EINVAL, ""},
        {"sm.sweep_interval", "200ms", 0, "200ms"},
        {"sm.sweep_interval", "50us", 0, "50us"},
        {"sm.sweep_interval", "7ns", 0, "7ns"},
        {"sm.sweep_interval", "120s", 0, "2m"},
        {"sm.sweep_interval", "1d", 0, "1d"},
        {"sm.sweep_interval", "2d", -EINVAL, ""},
        {"sm.sweep_interval", "0.5h", 0, "30m"},
        {"sm.sweep_interval", "0.1ns", -EINVAL, ""},
        {"sm.sweep_interval", "-1s", -EINVAL, ""},
        {"sm.sweep_interval", "1 s", -EINVAL, ""},
        {"sm.sweep_interval", "1.s", -EINVAL, ""},
        {"sm.sweep_interval", "99999999999999999999s", -EINVAL, ""},
        {"sm.sweep_interval", "9999999999d", -EINVAL, ""},
        {"sm.deep.cache", "4096", 0, "4k"},
        {"sm.deep.cache", "5000", 0, "5000"},
        {"sm.deep.cache", "1K", -EINVAL, ""}, // below the minimum
        {"sm.deep.cache", "8K", 0, "8k"},
        {"sm.deep.cache", "1G", 0, "1G"},
        {"sm.deep.cache", "1kB", -EINVAL, ""},
        {"sm.deep.threshold", "0.1", 0, "0.1"},
        {"sm.deep.threshold", "1.0000001", -EINVAL, ""},
        {"sm.deep.threshold", "nan", -EINVAL, ""},
        {"sm.deep.threshold", "0x1", -EINVAL, ""},
        {"sm.deep.threshold", "e", -EINVAL, ""},
        {"sm.guid", "0x2c9", 0, "0x00000000000002c9"},
        {"sm.guid", "zz", -EINVAL, ""},
        {"short_name", "12345678", 0, "\"12345678\""},
        {"short_name", "123456789", -EINVAL, ""},
        {"short_name", "a b", 0, "\"a b\""},
        {"short_name", "no", 0, "\"no\""},
        {"short_name", "leaf-1.x", 0, "leaf-1.x"},
        {"listen", "a, b", 0, "[a, b]"},
        {"listen", "[a,b,\"c d\"]", 0, "[a, b, \"c d\"]"},
        {"listen", "a,b,c,d", -EINVAL, ""},
        {"listen", "", -EINVAL, ""},
    };

    for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
        char *text = NULL, *line = xasprintf("\n%s: %s\n", c[i].path, c[i].dumped);
        size_t size;
        FILE *f = open_memstream(&text, &size);

        fputc('\n', f);
        if (opt_set(demo_rows, &demo, arena, c[i].path, c[i].value, &err) != c[i].r)
            fail_msg("%s=%s", c[i].path, c[i].value);
        opt_dump(demo_rows, &demo, f);
        fclose(f);
        if (!c[i].r && !strstr(text, line))
            fail_msg("%s=%s, dumped:\n%s", c[i].path, c[i].value, text);
        free(text);
        free(line);
    }
}

static void errors_say_where_and_what(void **state)
{
    static const struct {
        const char *text, *message;
    } c[] = {
        {"sm:\n  priority: high\n", "t.yaml:2:13: sm.priority: expected an integer 0..15, found \"high\""},
        {"sm: {priority: 16}", "t.yaml:1:16: sm.priority: expected an integer 0..15, found \"16\""},
        {"sm:\n  priority:\n", "t.yaml:2:12: sm.priority: expected an integer 0..15, found nothing"},
        {"sm:\n  priority: [1]\n", "t.yaml:2:13: sm.priority: expected an integer 0..15, found a list"},
        {"sm:\n  priority: {a: 1}\n", "t.yaml:2:13: sm.priority: expected an integer 0..15, found a mapping"},
        {"sm:\n  sweep_interval: 10\n", "t.yaml:2:19: sm.sweep_interval: expected a duration 0s..1d, found "
                                        "\"10\" (a duration needs a unit: ms, s, m, h, d)"},
        {"sm:\n  mode: dor\n", "t.yaml:2:9: sm.mode: expected one of minhop, ftree, up-down, found \"dor\""},
        {"sm:\n  enabled: maybe\n", "t.yaml:2:12: sm.enabled: expected true or false, found \"maybe\""},
        {"sm:\n  guid: 12:3\n", "t.yaml:2:9: sm.guid: expected a GUID, found \"12:3\""},
        {"sm:\n  deep:\n    cache: 5\n", "t.yaml:3:12: sm.deep.cache: expected a size 4k..1G, found \"5\""},
        {"sm:\n  deep:\n    threshold: 2\n",
         "t.yaml:3:16: sm.deep.threshold: expected a number 0..1, found \"2\""},
        {"devices:\n- retry:\n    factor: 0\n",
         "t.yaml:3:13: devices[0].retry.factor: expected a number of at least 1, found \"0\""},
        {"anything: x", "t.yaml:1:11: anything: expected an integer, found \"x\""},
        {"short_name: 123456789",
         "t.yaml:1:13: short_name: expected a string, bytes: 0..8, found \"123456789\""},
        {"short_name:\n", "t.yaml:1:12: short_name: expected a string, bytes: 0..8, found nothing"},
        {"sm: 5\n", "t.yaml:1:5: sm: expected a mapping, found \"5\""},
        {"sm: []\n", "t.yaml:1:5: sm: expected a mapping, found a list"},
        {"listen: x\n", "t.yaml:1:9: listen: expected a list of strings, elements: 1..3, found \"x\""},
        {"listen: [a, [b]]\n", "t.yaml:1:13: listen[1]: expected a string, found a list"},
        {"listen: [a, ~]\n", "t.yaml:1:13: listen[1]: expected a string, found nothing"},
        {"listen: [a, b, c, d]\n", "t.yaml:1:9: listen: expected a list of strings, elements: 1..3, found 4"},
        {"devices: {}\n", "t.yaml:1:10: devices: expected a list of mappings, found a mapping"},
        {"devices: [5]\n", "t.yaml:1:11: devices[0]: expected a mapping, found a single value"},
        {"devices:\n  - host: a\n  -\n", "t.yaml:3:4: devices[1]: expected a mapping, found nothing"},
        {"devices:\n  - host: a\n  - port: 0\n",
         "t.yaml:3:11: devices[1].port: expected an integer 1..65535, found \"0\""},
        {"devices:\n  - ports:\n    - number: 1\n    - number: 255\n",
         "t.yaml:4:15: devices[0].ports[1].number: expected an integer 1..254, found \"255\""},
        // keys
        {"sm:\n  priorty: 5\n", "t.yaml:2:3: sm.priorty: unknown key; did you mean \"priority\"?"},
        {"sm:\n  mdoe: ftree\n", "t.yaml:2:3: sm.mdoe: unknown key; did you mean \"mode\"?"},
        {"priority: 5\n", "t.yaml:1:1: priority: unknown key; did you mean \"sm.priority\"?"},
        {"cache: 5\n", "t.yaml:1:1: cache: unknown key; did you mean \"sm.deep.cache\"?"},
        {"sm:\n  deep:\n    zzzzzz: 5\n",
         "t.yaml:3:5: sm.deep.zzzzzz: unknown key; known here: threshold, cache"},
        {"devices:\n- prot: 5\n", "t.yaml:2:3: devices[0].prot: unknown key; did you mean \"port\"?"},
        {"sm:\n  priority: 1\n  mode: ftree\n  priority: 1\n",
         "t.yaml:4:3: sm.priority: given twice; the first is at line 2"},
        {"sm:\nlisten: [a]\nsm:\n", "t.yaml:3:1: sm: given twice; the first is at line 1"},
        {"? [a]\n: 5\n", "t.yaml:1:3: a key must be a plain name"},
        {"<<: {a: 1}\n",
         "t.yaml:1:1: <<: unknown key; known here: sm, state_dir, short_name, listen, devices, anything"},
        // YAML that is refused
        {"anything: &a 5\n", "t.yaml:1:11: anything: anchors (&name) are not supported: write the value out"},
        {"sm: &a {}\n", "t.yaml:1:5: sm: anchors (&name) are not supported: write the value out"},
        {"listen: &a []\n", "t.yaml:1:9: listen: anchors (&name) are not supported: write the value out"},
        {"anything: *a\n", "t.yaml:1:11: anything: aliases (*name) are not supported: write the value out"},
        {"anything: !!int 5\n", "t.yaml:1:11: anything: tags (!name) are not supported"},
        {"short_name: \"a\\0b\"\n", "t.yaml:1:13: short_name: a NUL character is not allowed"},
        {"anything: 5\n---\nanything: 6\n", "t.yaml:2:1: a second document (---) is not allowed"},
        {"- a\n", "t.yaml:1:1: expected a mapping, found a list"},
        {"hello\n", "t.yaml:1:1: expected a mapping, found \"hello\""},
        // no YAML
        {"sm:\n\tpriority: 5\n", "t.yaml:2:1: not valid YAML: found character that cannot start any token"},
        {"sm: {priority: 1\n", NULL},
        {"listen: [\n", NULL},
        {"sm:\n  mode: 'x\n", NULL},
        {"sm:\n  mode: ftree: c\n", NULL},
        {"anything: 5\n# \xff\n", "t.yaml:2:3: not valid YAML: invalid leading UTF-8 octet"},
        {"\xef\xbb\xbf\xff", "t.yaml:1:1: not valid YAML: invalid leading UTF-8 octet"},
        {"anything: 5\n \x01\n", "t.yaml:2:2: not valid YAML: control characters are not allowed"},
        {"%YAML 3.0\n---\n", NULL},
    };

    for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
        char buf[700];

        err = (struct err){0};
        assert_int_equal(load(c[i].text), -EINVAL);
        assert_int_equal(err.code, -EINVAL);
        err_str(&err, buf, sizeof(buf));
        if (c[i].message)
            assert_string_equal(buf, c[i].message);
        else if (strncmp(buf, "t.yaml:", 7) || !strstr(buf, ": not valid YAML: "))
            fail_msg("%s", buf);
    }
    // Without a place for the error.
    assert_int_equal(opt_load_text(demo_rows, &demo, arena, "x: 1", 4, "t", NULL), -EINVAL);
}

static void what_is_found_is_shown_short_and_harmless(void **state)
{
    char text[3000] = "anything: \"", buf[700];

    memset(text + strlen(text), 'x', 2000);
    strcat(text, "\"");
    load(text);
    assert_true(strlen(err_str(&err, buf, sizeof(buf))) < 150);
    load("anything: \"a\\e[2J\\n\"");
    assert_string_equal(err_str(&err, buf, sizeof(buf)),
                        "t.yaml:1:11: anything: expected an integer, found \"a\\x1b[2J\\x0a\"");
    load("\"a\\e[2J\\n\": 5");
    assert_null(strchr(err_str(&err, buf, sizeof(buf)), 0x1b));
    assert_null(strchr(buf, '\n'));
    memset(text, 'k', 2000);
    strcpy(text + 2000, ": 1");
    load(text);
    assert_true(strlen(err_str(&err, buf, sizeof(buf))) < 300);
}

static void sizes_are_bounded(void **state)
{
    struct buf b = {0};
    char buf[700];

    buf_puts(&b, "devices:\n");
    for (unsigned i = 0; i < OPT_LIST_MAX; i++)
        buf_puts(&b, "- {}\n");
    assert_loads(b.data);
    assert_int_equal(demo.devices.n, OPT_LIST_MAX);
    buf_puts(&b, "- {}\n");
    assert_int_equal(load(b.data), -EINVAL);
    assert_string_equal(err_str(&err, buf, sizeof(buf)),
                        "t.yaml:2:1: devices: expected a list of mappings, found more than 4096");

    buf_clear(&b);
    for (int i = 0; i < 100000; i++)
        buf_puts(&b, "[");
    assert_int_equal(load(b.data), -EINVAL);
    buf_clear(&b);
    buf_puts(&b, "listen: ");
    for (int i = 0; i < 100000; i++)
        buf_puts(&b, "{a: ");
    assert_int_equal(load(b.data), -EINVAL);

    buf_clear(&b);
    while (b.len <= OPT_FILE_MAX)
        buf_puts(&b, "# comment "
                     "###################################################################################\n");
    assert_int_equal(load(b.data), -EFBIG);
    buf_done(&b);
}

static void set_by_path(void **state)
{
    static const struct {
        const char *path, *value, *message;
    } c[] = {
        {"sm.priority", "high", "sm.priority: expected an integer 0..15, found \"high\""},
        {"sm.priorty", "5", "sm.priorty: unknown key; did you mean \"priority\"?"},
        {"priority", "5", "priority: unknown key; did you mean \"sm.priority\"?"},
        {"sm", "5", "sm: is a section: set it in the file"},
        {"devices", "5", "devices: is a list: set it in the file"},
        {"devices.port", "5", "devices.port: devices has no options below it that can be set here"},
        {"sm.priority.x", "5", "sm.priority.x: priority has no options below it that can be set here"},
        {"sm.sweep_interval", "", "sm.sweep_interval: expected a duration 0s..1d, found nothing"},
    };
    char buf[700];

    for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
        assert_int_equal(opt_set(demo_rows, &demo, arena, c[i].path, c[i].value, &err), -EINVAL);
        assert_string_equal(err_str(&err, buf, sizeof(buf)), c[i].message);
    }
    assert_int_equal(opt_set(demo_rows, &demo, arena, "", "5", &err), -EINVAL);
    assert_int_equal(opt_set(demo_rows, &demo, arena, "sm.", "5", &err), -EINVAL);
    assert_int_equal(opt_set(demo_rows, &demo, arena, "..", "5", NULL), -EINVAL);
    char *longer = xmalloc(3001);
    memset(longer, 'a', 3000);
    longer[3000] = '\0';
    assert_int_equal(opt_set(demo_rows, &demo, arena, longer, "5", &err), -EINVAL);
    free(longer);
    assert_defaults(&demo);
    assert_int_equal(opt_set(demo_rows, &demo, arena, "sm.deep.cache", "8k", &err), 0);
    assert_int_equal(demo.sm.deep.cache, 8192);
}

static void files(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = xasprintf("%s/weft-opt-XXXXXX", tmp ? tmp : "/tmp"), buf[700];
    assert_non_null(mkdtemp(dir));
    char *path = xasprintf("%s/weft.yaml", dir), *expect = xasprintf("%s: no such configuration file", path);
    struct buf b = {0};

    assert_int_equal(opt_load_file(demo_rows, &demo, arena, path, &err), -ENOENT);
    assert_string_equal(err_str(&err, buf, sizeof(buf)), expect);
    free(expect);
    assert_int_equal(opt_load_file(demo_rows, &demo, arena, dir, &err), -EISDIR);

    buf_puts(&b, "anything: 5\nsm:\n  mode: x\n");
    assert_int_equal(buf_write_file(&b, path, 0600), 0);
    assert_int_equal(opt_load_file(demo_rows, &demo, arena, path, &err), -EINVAL);
    expect = xasprintf("%s:3:9: sm.mode: expected one of minhop, ftree, up-down, found \"x\"", path);
    assert_string_equal(err_str(&err, buf, sizeof(buf)), expect);
    free(expect);
    buf_clear(&b);
    assert_int_equal(buf_write_file(&b, path, 0600), 0);
    assert_int_equal(opt_load_file(demo_rows, &demo, arena, path, &err), 0);
    unlink(path);
    rmdir(dir);
    buf_done(&b);
    free(path);
    free(dir);
}

static void note_diff(void *arg, const struct opt_row *row, const char *path)
{
    buf_printf(arg, "%s:%d ", path, (int)row->reload);
}

static void differences(void **state)
{
    struct demo other;
    struct buf b = {0};

    opt_defaults(demo_rows, &other, arena);
    buf_puts(&b, "");
    opt_diff(demo_rows, &demo, &other, note_diff, &b);
    assert_string_equal(b.data, "");
    assert_loads("sm: {priority: 5, deep: {cache: 1M}}\ndevices: [{ports: [{number: 3}]}]\nstate_dir: "
                 "/var/lib/weft\n");
    opt_diff(demo_rows, &demo, &other, note_diff, &b);
    assert_string_equal(b.data, "sm.priority:1 sm.deep.cache:2 devices:0 ");
    buf_done(&b);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults),
        T(every_type),
        T(nothing_to_load),
        T(values_good_and_bad),
        T(errors_say_where_and_what),
        T(what_is_found_is_shown_short_and_harmless),
        T(sizes_are_bounded),
        T(set_by_path),
        T(files),
        T(differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
