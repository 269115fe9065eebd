// SPDX-License-Identifier: Apache-2.0
// Virtual lanes: what is kept of them finds its switches again, and nothing that was kept badly is believed.
#include "test_model_help.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/tables.h"
#include "lib/err.h"
#include "lib/hash.h"
#include "lib/rng.h"
#include "lib/xalloc.h"

static const struct fabric *switches(const uint64_t *guid, unsigned n)
{
    struct builder *b = builder_new();
    for (unsigned i = 0; i < n; i++)
        add_switch(b, guid[i], 4, "");
    return builder_seal(b, 5, NULL);
}

// n switches with GUIDs base + 7, base + 14, ... in some order.
static const struct fabric *some(unsigned n, uint64_t base, struct rng *r)
{
    uint64_t *guid = xcalloc(n + 1, sizeof(*guid));
    for (unsigned i = 0; i < n; i++) {
        unsigned k = rng_below(r, i + 1);
        guid[i] = guid[k];
        guid[k] = base + 7 * (i + 1);
    }
    const struct fabric *f = switches(guid, n);
    free(guid);
    return f;
}

static struct fabric_lanes *fill(const struct fabric *f, unsigned lanes, unsigned run, struct rng *r)
{
    struct fabric_lanes *l = lanes_new(f->num_switches);
    unsigned lane = 0;
    l->num_lanes = lanes;
    for (uint32_t a = 0; a < f->num_switches; a++) {
        for (uint32_t b = a; b < f->num_switches; b++) {
            if (rng_below(r, run) == 0)
                lane = rng_below(r, lanes + 1);
            lanes_set(l, a, b, lane == lanes ? LANE_NONE : lane);
        }
    }
    return l;
}

static void same_pairs(const struct fabric *f, const struct fabric_lanes *l, const struct fabric *g,
                       const struct fabric_lanes *m)
{
    for (uint32_t a = 0; a < g->num_switches; a++) {
        for (uint32_t b = 0; b < g->num_switches; b++) {
            const struct node *fa = fabric_by_guid(f, fabric_switch(g, a)->guid);
            const struct node *fb = fabric_by_guid(f, fabric_switch(g, b)->guid);
            assert_int_equal(lanes_get(m, a, b), fa && fb ? lanes_get(l, fa->sw, fb->sw) : LANE_NONE);
        }
    }
}

static void test_kept(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 3);
    for (unsigned i = 0; i < 60; i++) {
        unsigned n = i < 5 ? i : 1 + rng_below(&r, 90);
        const struct fabric *f = some(n, 0x1000, &r), *g = some(n, 0x1000, &r);
        const struct fabric *h = some(n, 0x1000 + 7 * (n / 3), &r); // a third is gone, a third is new
        struct fabric_lanes *l = fill(f, 1 + i % LANES_MAX, i % 3 == 0 ? 1 : i % 3 == 1 ? 40 : 100000, &r);
        struct fabric_lanes *m, *k, *same;
        uint8_t *kept, *again;
        size_t size, size2;
        assert_int_equal(lanes_write(l, f, &kept, &size), 0);
        assert_true(size <= 20 + 8 * n + (size_t)n * (n + 1) / 2);
        assert_int_equal(lanes_read(kept, size, f, &same, NULL), 0);
        assert_true(lanes_equal(l, same));
        assert_int_equal(same->num_lanes, l->num_lanes);
        assert_int_equal(lanes_read(kept, size, g, &m, NULL), 0);
        same_pairs(f, l, g, m);
        assert_int_equal(lanes_read(kept, size, h, &k, NULL), 0);
        same_pairs(f, l, h, k);
        // Not a word of the numbering.
        assert_int_equal(lanes_write(m, g, &again, &size2), 0);
        assert_int_equal(size, size2);
        assert_memory_equal(kept, again, size);
        free(kept);
        free(again);
        lanes_unref(l);
        lanes_unref(m);
        lanes_unref(k);
        lanes_unref(same);
        fabric_unref(f);
        fabric_unref(g);
        fabric_unref(h);
    }
}

// One lane: hardly more than the GUIDs.
static void test_small(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 4);
    const struct fabric *f = some(500, 1, &r), *other = some(499, 1, &r);
    struct fabric_lanes *l = fill(f, 1, 1000000000, &r);
    uint8_t *kept;
    size_t size;
    assert_int_equal(lanes_write(l, f, &kept, &size), 0);
    assert_true(size <= 500 * 8 + 30);
    free(kept);
    assert_int_equal(lanes_write(l, other, &kept, &size), -EINVAL);
    lanes_unref(l);
    fabric_unref(f);
    fabric_unref(other);
}

static void seal(uint8_t *data, size_t size)
{
    uint64_t sum = size - 8;
    for (size_t i = 0; i < size - 8; i += 8) {
        uint64_t word = 0;
        memcpy(&word, data + i, size - 8 - i < 8 ? size - 8 - i : 8);
        sum = hash_mix64(sum ^ be64toh(word));
    }
    sum = htobe64(sum);
    memcpy(data + size - 8, &sum, 8);
}

static void refused(const uint8_t *data, size_t size, const struct fabric *f, const char *why)
{
    struct fabric_lanes *l = NULL;
    struct err e = {0};
    uint8_t *exact = xmalloc(size + 1); // so that a look beyond the end is seen
    memcpy(exact, data, size);
    assert_int_equal(lanes_read(exact, size, f, &l, &e), -EINVAL);
    assert_null(l);
    if (!strstr(e.text, why))
        fail_msg("%s, not %s", e.text, why);
    free(exact);
}

static void test_damaged(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 5);
    const struct fabric *f = some(9, 0x1000, &r);
    struct fabric_lanes *l = fill(f, 3, 30, &r), *got;
    uint8_t *kept;
    size_t size;
    assert_int_equal(lanes_write(l, f, &kept, &size), 0);
    for (size_t n = 0; n < size; n++)
        refused(kept, n, f, n < 20 ? "cut short" : "damaged");
    for (size_t i = 4; i < size; i++) {
        kept[i] ^= 1 << i % 8;
        refused(kept, size, f, "damaged");
        kept[i] ^= 1 << i % 8;
    }
    // The same with a check sum that is right: refused, or lanes that exist.
    for (unsigned i = 0; i < 20000; i++) {
        size_t n = rng_below(&r, 4) ? size : 20 + rng_below(&r, (uint32_t)size - 20);
        uint8_t *bad = xmalloc(n);
        memcpy(bad, kept, n);
        for (unsigned k = rng_below(&r, 4); k-- > 0;)
            bad[rng_below(&r, (uint32_t)n)] = (uint8_t)rng_below(&r, 256);
        seal(bad, n);
        if (lanes_read(bad, n, f, &got, NULL) == 0) {
            assert_in_range(got->num_lanes, 1, LANES_MAX);
            for (uint32_t a = 0; a < 9; a++) {
                for (uint32_t b = 0; b < 9; b++)
                    assert_true(lanes_get(got, a, b) < got->num_lanes || lanes_get(got, a, b) == LANE_NONE);
            }
            lanes_unref(got);
        }
        free(bad);
    }
    free(kept);
    lanes_unref(l);
    fabric_unref(f);
}

// By hand: two switches.
static void test_words(void **state)
{
    (void)state;
    const struct fabric *f = switches((const uint64_t[]){5, 3}, 2);
    uint8_t x[60] = {'W', 'L', 'N', '1', 0, 0, 0, 2, 0, 0, 0, 2};
    struct fabric_lanes *l;
    x[19] = 3;
    x[27] = 5;
    x[28] = 0x00; // 3 to itself: lane 0
    x[29] = 0x11; // 3 to 5, and 5 to itself: lane 1
    seal(x, 38);
    assert_int_equal(lanes_read(x, 38, f, &l, NULL), 0);
    assert_int_equal(lanes_get(l, 1, 1), 0);
    assert_int_equal(lanes_get(l, 0, 1), 1);
    assert_int_equal(lanes_get(l, 1, 0), 1);
    assert_int_equal(lanes_get(l, 0, 0), 1);
    lanes_unref(l);
    x[29] = 0x21;
    seal(x, 38);
    refused(x, 38, f, "not in use");
    x[29] = 0x12;
    seal(x, 38);
    refused(x, 38, f, "more pairs");
    x[29] = 0x10;
    seal(x, 38);
    refused(x, 38, f, "cut short");
    x[29] = 0x1f; // a long run without its number
    seal(x, 38);
    refused(x, 38, f, "cut short");
    memcpy(x + 29, "\x1f\xff\xff\xff\xff\xff\xff\x01", 8);
    seal(x, 45);
    refused(x, 45, f, "cut short");
    x[27] = 3;
    seal(x, 38);
    refused(x, 38, f, "do not ascend");
    x[7] = 200;
    seal(x, 38);
    refused(x, 38, f, "more switches");
    x[4] = 0xff;
    seal(x, 38);
    refused(x, 38, f, "more switches");
    x[4] = 0;
    x[7] = 2;
    x[11] = 9;
    seal(x, 38);
    refused(x, 38, f, "more lanes");
    x[11] = 0;
    seal(x, 38);
    refused(x, 38, f, "more lanes");
    x[3] = '2';
    seal(x, 38);
    refused(x, 38, f, "another version");
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
