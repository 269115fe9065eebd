// SPDX-License-Identifier: Apache-2.0
// Who gets which LID: properties over random sets of ports and records, and the rules one by one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "sm/lids.h"

#define MAX 0xbfff

static struct u64map records(const uint64_t (*r)[2], size_t n)
{
    struct u64map m;
    u64map_init(&m, NULL, 16);
    for (size_t i = 0; i < n; i++)
        u64map_set(&m, r[i][0], (uint32_t)r[i][1]);
    return m;
}
#define RECORDS(...)                                                                                         \
    records((const uint64_t[][2]){__VA_ARGS__}, sizeof((const uint64_t[][2]){__VA_ARGS__}) / 16)

static void check(const struct lid_port *p, size_t n, const uint16_t *lid, const uint8_t *got)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i].lid != lid[i] || p[i].got != got[i])
            fail_msg("port %zu has LID %u (%u), expected %u (%u)", i, p[i].lid, p[i].got, lid[i], got[i]);
    }
}
#define CHECK(p, lids, gots)                                                                                 \
    check(p, sizeof(p) / sizeof((p)[0]), (const uint16_t[])lids, (const uint8_t[])gots)
#define L(...)                                                                                               \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

// Without records and LIDs: consecutive in the order given.
static void test_consecutive(void **state)
{
    struct u64map m = RECORDS({99, 0});
    struct lid_port p[] = {{.guid = 5}, {.guid = 3}, {.guid = 9}, {.guid = 1}};
    (void)state;
    lids_assign(p, 4, &m, MAX);
    CHECK(p, L(1, 2, 3, 4), L(LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW));
    u64map_done(&m);
}

// The record wins over what the port came with; a record of an absent port reserves.
static void test_recorded(void **state)
{
    struct u64map m = RECORDS({1, 10}, {2, 2}, {77, 1}, {78, 3});
    struct lid_port p[] = {{.guid = 1, .had = 40}, {.guid = 2}, {.guid = 3}, {.guid = 4}};
    (void)state;
    lids_assign(p, 4, &m, MAX);
    CHECK(p, L(10, 2, 4, 5), L(LID_GOT_RECORDED, LID_GOT_RECORDED, LID_GOT_NEW, LID_GOT_NEW));
    u64map_done(&m);
}

// What a port came with is kept when it is nobody else's: neither recorded nor given.
static void test_own(void **state)
{
    struct u64map m = RECORDS({1, 10}, {77, 20});
    struct lid_port p[] = {{.guid = 5, .had = 10}, // the recorded owner is here
                           {.guid = 1, .had = 30},
                           {.guid = 6, .had = 20}, // the recorded owner is absent
                           {.guid = 7, .had = 30}, // nobody's: its present holder has a record elsewhere
                           {.guid = 8, .had = 30}};
    (void)state;
    lids_assign(p, 5, &m, MAX);
    CHECK(p, L(1, 10, 2, 30, 3), L(LID_GOT_NEW, LID_GOT_RECORDED, LID_GOT_NEW, LID_GOT_OWN, LID_GOT_NEW));
    u64map_done(&m);
}

// LIDs that no end port can have.
static void test_nonsense(void **state)
{
    struct u64map m = RECORDS({1, 0}, {2, 0xc000}, {3, 0xffff}, {4, 0x81170}, {5, 0xfffffffful});
    struct lid_port p[] = {{.guid = 1, .had = 0},      {.guid = 2, .had = 0xc000}, {.guid = 3, .had = 0xffff},
                           {.guid = 4, .had = 0xbfff}, {.guid = 5, .had = 0xfffe}, {.guid = 6, .had = 1}};
    (void)state;
    lids_assign(p, 6, &m, MAX);
    CHECK(p, L(2, 3, 4, 0xbfff, 5, 1),
          L(LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW, LID_GOT_OWN, LID_GOT_NEW, LID_GOT_OWN));
    u64map_done(&m);
}

// Two records of one LID (a damaged database): the first port has it.
static void test_record_twice(void **state)
{
    struct u64map m = RECORDS({1, 7}, {2, 7});
    struct lid_port p[] = {{.guid = 2}, {.guid = 1}};
    (void)state;
    lids_assign(p, 2, &m, MAX);
    CHECK(p, L(7, 1), L(LID_GOT_RECORDED, LID_GOT_NEW));
    u64map_done(&m);
}

static void test_twins(void **state)
{
    struct u64map m = RECORDS({1, 7}, {3, 8});
    struct lid_port p[] = {{.guid = 1, .had = 9}, {.guid = 2},           {.guid = 1, .had = 7},
                           {.guid = 2, .had = 5}, {.guid = 3, .had = 8}, {.guid = 3, .had = 8},
                           {.guid = 1, .had = 7}};
    (void)state;
    lids_assign(p, 7, &m, MAX);
    CHECK(p, L(0, 1, 7, 0, 8, 0, 0),
          L(LID_GOT_TWIN, LID_GOT_NEW, LID_GOT_RECORDED, LID_GOT_TWIN, LID_GOT_RECORDED, LID_GOT_TWIN,
            LID_GOT_TWIN));
    u64map_done(&m);
}

// At the limit: what absent ports reserve goes first, then there is none left; nobody who has one loses it.
static void test_exhausted(void **state)
{
    struct u64map m = RECORDS({1, 2}, {70, 1}, {71, 4}, {3, 9});
    struct lid_port p[] = {{.guid = 1}, {.guid = 3, .had = 9}, {.guid = 4, .had = 3},
                           {.guid = 5}, {.guid = 6},           {.guid = 7}};
    (void)state;
    lids_assign(p, 6, &m, 5);
    CHECK(p, L(2, 5, 3, 1, 4, 0),
          L(LID_GOT_RECORDED, LID_GOT_NEW, LID_GOT_OWN, LID_GOT_RECLAIMED, LID_GOT_RECLAIMED, LID_GOT_NONE));
    lids_assign(p, 6, &m, 0);
    CHECK(p, L(0, 0, 0, 0, 0, 0), L(0, 0, 0, 0, 0, 0));
    u64map_done(&m);
}

static void test_none(void **state)
{
    struct u64map m;
    (void)state;
    u64map_init(&m, NULL, 16);
    lids_assign(NULL, 0, &m, MAX);
    u64map_done(&m);
}

static void judge(const struct lid_port *p, size_t n, const struct u64map *m, uint16_t max)
{
    uint8_t *seen = calloc(65536, 1), *reserved = calloc(65536, 1);
    size_t given = 0, twins = 0;
    for (uint32_t i = 0; i <= m->mask; i++)
        if (m->slot[i].used && m->slot[i].value < 65536)
            reserved[m->slot[i].value] = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t rec;
        twins += p[i].got == LID_GOT_TWIN;
        assert_int_equal(p[i].lid == 0, p[i].got == LID_GOT_NONE || p[i].got == LID_GOT_TWIN);
        if (p[i].lid == 0)
            continue;
        given++;
        assert_in_range(p[i].lid, 1, max < MAX ? max : MAX);
        assert_int_equal(seen[p[i].lid]++, 0);
        bool has = u64map_get(m, p[i].guid, &rec);
        if (p[i].got == LID_GOT_RECORDED)
            assert_true(has && rec == p[i].lid);
        else if (p[i].got == LID_GOT_OWN)
            assert_true(p[i].lid == p[i].had && !reserved[p[i].lid]);
        else if (p[i].got == LID_GOT_NEW)
            assert_false(reserved[p[i].lid]);
        else
            assert_true(reserved[p[i].lid] && (!has || rec != p[i].lid));
    }
    size_t limit = max < MAX ? max : MAX;
    assert_int_equal(given, n - twins < limit ? n - twins : limit); // none is left out without need
    free(seen);
    free(reserved);
}

static void test_properties(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 42);
    for (int round = 0; round < 400; round++) {
        size_t n = rng_below(&r, 200);
        uint32_t space = 1 + rng_below(&r, 300);
        uint16_t max = (uint16_t)(rng_below(&r, 3) ? 1 + rng_below(&r, 250) : 65535);
        struct lid_port *p = calloc(n + 1, sizeof(*p));
        struct u64map m;
        u64map_init(&m, NULL, 16);
        for (uint32_t i = 0; i < space; i++)
            if (rng_below(&r, 2))
                u64map_set(&m, 1 + rng_below(&r, space), rng_below(&r, 260));
        for (size_t i = 0; i < n; i++)
            p[i] = (struct lid_port){.guid = 1 + rng_below(&r, space), .had = (uint16_t)rng_below(&r, 260)};
        lids_assign(p, n, &m, max);
        judge(p, n, &m, max);
        // The answer, recorded, is the answer again.
        for (size_t i = 0; i < n; i++)
            if (p[i].lid != 0)
                u64map_set(&m, p[i].guid, p[i].lid);
        struct lid_port *q = calloc(n + 1, sizeof(*q));
        for (size_t i = 0; i < n; i++)
            q[i] = (struct lid_port){.guid = p[i].guid, .had = p[i].lid};
        lids_assign(q, n, &m, max);
        for (size_t i = 0; i < n; i++)
            if (p[i].got == LID_GOT_RECORDED || p[i].got == LID_GOT_OWN || p[i].got == LID_GOT_NEW)
                assert_int_equal(q[i].lid, p[i].lid);
        free(p);
        free(q);
        u64map_done(&m);
    }
}

// With an LMC: ranges from a multiple of their length on, in order; what has one LID fills the gaps.
static void test_ranges(void **state)
{
    struct u64map m = RECORDS({99, 0});
    struct lid_port p[] = {{.guid = 5, .lmc = 2}, {.guid = 3, .lmc = 2}, {.guid = 9},          {.guid = 1},
                           {.guid = 2},           {.guid = 4},           {.guid = 6, .lmc = 2}};
    (void)state;
    lids_assign(p, 7, &m, MAX);
    CHECK(p, L(4, 8, 1, 2, 3, 12, 16),
          L(LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW, LID_GOT_NEW));
    u64map_done(&m);
}

// More LIDs than before: who can keep the first keeps it; nobody gets one that is another's until now.
static void test_range_grows(void **state)
{
    struct u64map m = RECORDS({1, 4}, {2, 5}, {3, 8}, {4, 16}, {5, 20}, {6, 21}, {77, 30});
    struct lid_port p[] = {{.guid = 1, .had = 4, .lmc = 1},  // 5 is another's
                           {.guid = 2, .had = 5, .lmc = 1},  // odd
                           {.guid = 3, .had = 8, .lmc = 1},  // stays
                           {.guid = 4, .had = 16, .lmc = 1}, // 17 is had by somebody without a record
                           {.guid = 5, .had = 20},           // a switch
                           {.guid = 6, .had = 21},           // another
                           {.guid = 8, .had = 17, .lmc = 1}};
    (void)state;
    lids_assign(p, 7, &m, MAX);
    CHECK(p, L(2, 6, 8, 10, 20, 21, 12),
          L(LID_GOT_MOVED, LID_GOT_MOVED, LID_GOT_RECORDED, LID_GOT_MOVED, LID_GOT_RECORDED, LID_GOT_RECORDED,
            LID_GOT_MOVED));
    u64map_done(&m);
}

// Recorded with their range: they stay, an absent one's is reserved whole, and fewer LIDs than before are no
// reason to move.
static void test_range_recorded(void **state)
{
    struct u64map m = RECORDS({1, LID_RECORD(4, 2)}, {2, LID_RECORD(8, 2)}, {77, LID_RECORD(12, 2)});
    struct lid_port p[] = {
        {.guid = 1, .had = 4, .lmc = 2}, {.guid = 2, .had = 8, .lmc = 1}, {.guid = 3, .lmc = 2}};
    (void)state;
    lids_assign(p, 3, &m, MAX);
    CHECK(p, L(4, 8, 16), L(LID_GOT_RECORDED, LID_GOT_RECORDED, LID_GOT_NEW));
    u64map_done(&m);
}

// Where no whole range is left but of absent ports, theirs is taken; beyond that there is none.
static void test_ranges_exhausted(void **state)
{
    struct u64map m = RECORDS({1, LID_RECORD(4, 2)}, {77, LID_RECORD(8, 2)});
    struct lid_port p[] = {{.guid = 1, .lmc = 2}, {.guid = 2, .lmc = 2}, {.guid = 3, .lmc = 2}, {.guid = 4}};
    (void)state;
    lids_assign(p, 4, &m, 14);
    CHECK(p, L(4, 8, 0, 1), L(LID_GOT_RECORDED, LID_GOT_RECLAIMED, LID_GOT_NONE, LID_GOT_NEW));
    u64map_done(&m);
}

// Ranges of any length, at random: apart from each other, at multiples of their length, within the limit,
// where they were recorded if nothing has grown, and the same when asked again.
static void test_range_properties(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 43);
    for (int round = 0; round < 400; round++) {
        size_t n = rng_below(&r, 80);
        uint16_t max = (uint16_t)(rng_below(&r, 3) ? 60 + rng_below(&r, 300) : 65535);
        struct lid_port *p = calloc(n + 1, sizeof(*p));
        struct u64map m;
        u64map_init(&m, NULL, 16);
        for (uint32_t i = 0; i < 30; i++)
            u64map_set(&m, 1 + rng_below(&r, 90),
                       rng_below(&r, 9) ? LID_RECORD(rng_below(&r, 300), rng_below(&r, 8))
                                        : rng_below(&r, 1u << 24));
        for (size_t i = 0; i < n; i++)
            p[i] = (struct lid_port){.guid = 1 + i,
                                     .had = (uint16_t)rng_below(&r, 260),
                                     .lmc = (uint8_t)(rng_below(&r, 4) ? 2 : 0)};
        lids_assign(p, n, &m, max);
        for (int again = 0; again < 2; again++) {
            uint8_t *seen = calloc(65536, 1);
            for (size_t i = 0; i < n; i++) {
                uint32_t rec, range = 1u << p[i].lmc;
                if (p[i].lid == 0)
                    continue;
                assert_int_equal(p[i].lid % range, 0);
                assert_in_range(p[i].lid + range - 1, 1, max < MAX ? max : MAX);
                for (uint32_t k = 0; k < range; k++)
                    assert_int_equal(seen[p[i].lid + k]++, 0);
                if (p[i].got == LID_GOT_RECORDED)
                    assert_true(u64map_get(&m, p[i].guid, &rec) && LID_RECORD_LID(rec) == p[i].lid);
            }
            free(seen);
            if (again > 0)
                break;
            struct lid_port *q = calloc(n + 1, sizeof(*q));
            struct u64map now;
            u64map_init(&now, NULL, 16);
            for (size_t i = 0; i < n; i++) {
                if (p[i].lid != 0)
                    u64map_set(&now, p[i].guid, LID_RECORD(p[i].lid, p[i].lmc));
                q[i] = (struct lid_port){.guid = p[i].guid, .had = p[i].lid, .lmc = p[i].lmc};
            }
            lids_assign(q, n, &now, max);
            for (size_t i = 0; i < n; i++)
                if (p[i].lid != 0)
                    assert_int_equal(q[i].lid, p[i].lid);
            u64map_done(&now);
            free(p);
            p = q;
            u64map_done(&m);
            u64map_init(&m, NULL, 16);
            for (size_t i = 0; i < n; i++)
                if (p[i].lid != 0)
                    u64map_set(&m, p[i].guid, LID_RECORD(p[i].lid, p[i].lmc));
        }
        free(p);
        u64map_done(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_consecutive),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_record_twice),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_exhausted),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_range_grows),
        cmocka_unit_test(test_range_recorded),
        cmocka_unit_test(test_ranges_exhausted),
        cmocka_unit_test(test_range_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
