// SPDX-License-Identifier: Apache-2.0
// The small ones: err, guid, hash, mono, rng, xalloc.
#include "tests/unit/lib/test.h"

#include <errno.h>

#include "lib/arena.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/hash.h"
#include "lib/mono.h"
#include "lib/rng.h"
#include "lib/xalloc.h"

static void err_texts(void **state)
{
    struct err e = {0};
    char buf[700];

    assert_int_equal(err_set(&e, -EINVAL, "f.yaml:3", "bad %s", "thing"), -EINVAL);
    assert_int_equal(e.code, -EINVAL);
    assert_string_equal(err_str(&e, buf, sizeof(buf)), "f.yaml:3: bad thing");
    assert_int_equal(err_set(&e, -EIO, NULL, "lost: %s", e.text), -EIO); // wraps itself
    assert_string_equal(err_str(&e, buf, sizeof(buf)), "lost: bad thing");
    assert_int_equal(err_set(NULL, -ENOENT, "x", "y"), -ENOENT);

    char longer[1000];
    memset(longer, 'a', sizeof(longer));
    longer[999] = '\0';
    err_set(&e, -EINVAL, longer, "%s", longer);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    assert_int_equal(strlen(e.where), sizeof(e.where) - 1);
    assert_string_equal(err_str(&e, buf, 4), "aaa");
}

static void guid_forms(void **state)
{
    static const struct {
        const char *text;
        uint64_t guid;
    } good[] = {
        {"0xec0d9a030002c050", 0xec0d9a030002c050},
        {"ec0d9a030002c050", 0xec0d9a030002c050},
        {"EC0D9A030002C050", 0xec0d9a030002c050},
        {"0XEC0D9A030002C050", 0xec0d9a030002c050},
        {"ec0d:9a03:0002:c050", 0xec0d9a030002c050},
        {"ec:0d:9a:03:00:02:c0:50", 0xec0d9a030002c050},
        {"ec0d-9a03-0002-c050", 0xec0d9a030002c050},
        {"S-ec0d9a030002c050", 0xec0d9a030002c050},
        {"H-0xec0d9a030002c050", 0xec0d9a030002c050},
        {"R-ec0d:9a03:0002:c050", 0xec0d9a030002c050},
        {"0x1", 1},
        {"0", 0},
        {"0x0000000000000000000001", 1},
        {"ffffffffffffffff", UINT64_MAX},
    };
    static const char *const bad[] = {
        "",
        "0x",
        "x",
        "0x1g",
        " 1",
        "1 ",
        "0xec0d9a030002c0501",
        "ec0d:9a03:0002",
        "ec0d:9a03:0002:c05",
        "ec0d:9a03-0002:c050",
        ":ec0d:9a03:0002:c050",
        "ec0d:9a03:0002:c050:",
        "S-",
        "S-S-1",
        "-1",
        "0x-1",
        "ec0d::9a03:0002:c050",
        "e:c0d:9a03:0002:c050",
    };
    char buf[GUID_STR_SIZE];

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        uint64_t g = 77;
        if (guid_parse(good[i].text, &g) != 0 || g != good[i].guid)
            fail_msg("%s", good[i].text);
        // The canonical form reads back.
        assert_int_equal(guid_parse(guid_str(g, buf), &g), 0);
        assert_true(g == good[i].guid);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint64_t g = 77;
        if (guid_parse(bad[i], &g) != -EINVAL || g != 77)
            fail_msg("accepted \"%s\"", bad[i]);
    }
    assert_string_equal(guid_str(0x2c9, buf), "0x00000000000002c9");
}

static void map_like_a_map(struct arena *a, uint32_t expected)
{
    struct u64map m;
    struct rng r;
    uint32_t v = 0;

    u64map_init(&m, a, expected);
    assert_false(u64map_get(&m, 0, &v));
    rng_init(&r, 1);
    for (uint32_t i = 0; i < 20000; i++)
        assert_true(u64map_set(&m, rng_u64(&r), i));
    assert_true(u64map_set(&m, 0, 4)); // zero is a key as any other
    assert_int_equal(m.count, 20001);
    rng_init(&r, 1);
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t key = rng_u64(&r);
        assert_true(u64map_get(&m, key, &v));
        assert_int_equal(v, i);
        assert_false(u64map_get(&m, key + 1, &v));
        assert_false(u64map_set(&m, key, i + 1));
        assert_true(u64map_get(&m, key, &v));
        assert_int_equal(v, i + 1);
    }
    assert_true(u64map_get(&m, 0, &v));
    assert_int_equal(v, 4);
    assert_int_equal(m.count, 20001);
    u64map_done(&m);
    assert_false(u64map_get(&m, 0, &v));
}

static void map(void **state)
{
    struct arena *a = arena_new();
    struct u64map m;

    map_like_a_map(NULL, 0);
    map_like_a_map(NULL, 20001);
    map_like_a_map(a, 10);
    // A good guess never grows.
    u64map_init(&m, NULL, 1000);
    struct u64map_slot *before = m.slot;
    for (uint64_t k = 0; k < 1000; k++)
        u64map_set(&m, k << 32, 0);
    assert_ptr_equal(m.slot, before);
    u64map_done(&m);
    arena_free(a);
}

static void rng_is_the_published_one(void **state)
{
    // Computed by hand from the recurrence in the paper: with s[1] = 2 the first result is rotl(2 * 5, 7) * 9
    // = 11520. 11520, then 0 * ... = 0.
    struct rng r = {.s = {1, 2, 3, 4}}, a, b;
    unsigned count[6] = {0};
    double sum = 0;

    assert_true(rng_u64(&r) == 11520);
    assert_true(rng_u64(&r) == 0);
    assert_true(rng_u64(&r) == 1509978240);

    rng_init(&a, 5);
    rng_init(&b, 5);
    for (int i = 0; i < 100; i++)
        assert_true(rng_u64(&a) == rng_u64(&b));
    rng_init(&b, 6);
    assert_true(rng_u64(&a) != rng_u64(&b));

    for (int i = 0; i < 60000; i++) {
        uint32_t v = rng_below(&a, 6);
        assert_true(v < 6);
        count[v]++;
        double d = rng_double(&a);
        assert_true(d >= 0 && d < 1);
        sum += d;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(count[i], 9500, 10500);
    assert_true(sum / 60000 > 0.49 && sum / 60000 < 0.51);
    assert_int_equal(rng_below(&a, 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_true(rng_below(&a, 3000000000u) < 3000000000u);
}

static void clocks(void **state)
{
    char buf[40];
    mono_t a = mono_now(), b = mono_now();

    assert_true(mono_sub(b, a) >= 0);
    assert_true(mono_add(a, MONO_S).ns == a.ns + 1000000000);
    assert_true(cpu_now_ns() > 0 && thread_cpu_ns() > 0);
    assert_true(peak_rss_bytes() > 100000);
    assert_true(wall_now_ns() > 1700000000LL * MONO_S);
    assert_string_equal(wall_format(1769854830123456789LL, buf, sizeof(buf)), "2026-01-31T10:20:30.123Z");
    assert_string_equal(wall_format(0, buf, sizeof(buf)), "1970-01-01T00:00:00.000Z");
    assert_string_equal(wall_format(-1, buf, sizeof(buf)), "1969-12-31T23:59:59.999Z");
}

static void allocation(void **state)
{
    char *s = xasprintf("%d", 7);
    assert_string_equal(s, "7");
    s = xreallocarray(s, 0, 8);
    free(s);
    free(xcalloc(0, 8));
    free(xmalloc(0));
    s = xstrdup("a");
    assert_string_equal(s, "a");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_texts), cmocka_unit_test(guid_forms),
        cmocka_unit_test(map),       cmocka_unit_test(rng_is_the_published_one),
        cmocka_unit_test(clocks),    cmocka_unit_test(allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
