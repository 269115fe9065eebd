// SPDX-License-Identifier: Apache-2.0
// Lanes while the fabric is damaged: repaired tables keep lanes without cycles, whatever the order of what
// failed, and come back to the ideal.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "tests/unit/routing/grids.h"

struct base {
    const struct fabric *f;
    struct route_opts o;
    struct route_result ideal;
    struct route_base *b;
};

static void base_start(struct base *x, const struct fabric *f)
{
    struct err e = {0};
    *x = (struct base){.f = f, .o = {.engine = ROUTE_SSSP}};
    if (route_compute(f, &x->o, &x->ideal, &e) || route_base_new(f, &x->ideal, &x->o, &x->b, &e))
        fail_msg("%s", e.text);
}

static void base_done(struct base *x)
{
    route_base_free(x->b);
    tables_unref(x->ideal.tables);
    fabric_unref(x->f);
}

static unsigned lane_of(const struct fabric *f, const struct fabric_tables *t, uint64_t a, uint64_t b)
{
    const struct node *x = fabric_by_guid(f, a), *y = fabric_by_guid(f, b);
    return x && y ? lanes_get(t->lanes, x->sw, y->sw) : LANE_NONE;
}

static uint64_t guid_of(const struct fabric *f, uint32_t s)
{
    return fabric_switch(f, s)->guid;
}

// Pairs with a lane that is not the ideal's.
static uint64_t moved_lanes(const struct base *x, const struct fabric *live, const struct fabric_tables *t)
{
    uint64_t moved = 0;
    for (uint32_t a = 0; a < live->num_switches; a++) {
        for (uint32_t b = 0; b < a; b++) {
            unsigned now = lanes_get(t->lanes, a, b);
            moved +=
                now != LANE_NONE && now != lane_of(x->f, x->ideal.tables, guid_of(live, a), guid_of(live, b));
        }
    }
    return moved;
}

static void same_by_guid(const struct fabric *f, const struct fabric_tables *a, const struct fabric *g,
                         const struct fabric_tables *b)
{
    assert_int_equal(a->lids, b->lids);
    assert_int_equal(a->lanes->num_lanes, b->lanes->num_lanes);
    for (uint32_t s = 0; s < f->num_switches; s++) {
        assert_memory_equal(tables_row(a, s), tables_row(b, fabric_by_guid(g, guid_of(f, s))->sw), a->lids);
        for (uint32_t d = 0; d < f->num_switches; d++)
            assert_int_equal(lanes_get(a->lanes, s, d), lane_of(g, b, guid_of(f, s), guid_of(f, d)));
    }
}

struct count {
    unsigned repairs, anew, refused, moved;
    uint64_t pairs, lanes;
};

// One state of the fabric, judged; the same with its switches numbered otherwise.
static void repair(struct base *x, const struct rig_fault *dead, unsigned num, struct rng *r, struct count *c)
{
    struct route_result now = {0}, again;
    struct err e = {0};
    const struct fabric *live = rig_live(x->f, dead, num), *other = rig_renumber(live, r);
    c->repairs++;
    int rc = route_repair_from(x->b, live, r->s[0] % 2 ? &rig_par : NULL, &now, &e);
    if (rc) { // there is no telling whether lanes suffice; but it is said
        assert_int_equal(rc, -ENOSPC);
        assert_non_null(strstr(e.text, "virtual lanes"));
        assert_null(now.tables);
        assert_int_equal(route_repair_from(x->b, other, NULL, &again, NULL), -ENOSPC);
        c->refused++;
    } else {
        grids_judge(live, now.tables, 8);
        assert_int_equal(route_repair_from(x->b, other, NULL, &again, &e), 0);
        same_by_guid(live, now.tables, other, again.tables);
        assert_int_equal(now.replaced, again.replaced);
        c->anew += now.replaced;
        if (now.replaced) {
            assert_non_null(strstr(now.why, "computed anew"));
            assert_non_null(strstr(now.why, "virtual lanes"));
        } else {
            assert_int_equal(now.lanes_moved, moved_lanes(x, live, now.tables));
            c->moved += now.lanes_moved > 0;
            c->lanes += now.lanes_moved;
            c->pairs += live->num_switches * (live->num_switches - 1) / 2;
        }
        tables_unref(now.tables);
        tables_unref(again.tables);
    }
    fabric_unref(live);
    fabric_unref(other);
}

// Things fail one after the other and come back in another order.
static void storm(const struct fabric *f, unsigned faults, struct rng *r, struct count *c)
{
    struct base x;
    struct rig_fault dead[8];
    struct route_result now;
    struct err e = {0};
    base_start(&x, f);
    for (unsigned i = 0; i < faults; i++) {
        rig_fault_make(f, r, &dead[i]);
        repair(&x, dead, i + 1, r, c);
    }
    for (unsigned i = faults; i-- > 1;) {
        unsigned k = rng_below(r, i + 1);
        struct rig_fault y = dead[i];
        dead[i] = dead[k];
        dead[k] = y;
        repair(&x, dead, i, r, c);
    }
    // All is back: the ideal itself; with other numbers, all of it.
    assert_int_equal(route_repair_from(x.b, f, NULL, &now, &e), 0);
    assert_ptr_equal(now.tables, x.ideal.tables);
    assert_int_equal(now.lanes_moved, 0);
    tables_unref(now.tables);
    const struct fabric *other = rig_renumber(f, r);
    assert_int_equal(route_repair_from(x.b, other, NULL, &now, &e), 0);
    same_by_guid(f, x.ideal.tables, other, now.tables);
    assert_int_equal(now.lanes_moved, 0);
    tables_unref(now.tables);
    fabric_unref(other);
    base_done(&x);
}

static void test_storms(void **state)
{
    (void)state;
    struct rng r;
    struct count c = {0};
    rng_init(&r, 23);
    for (unsigned i = 0; i < 4; i++) {
        storm(grids_grid(2, (unsigned[]){8, 7}, true, 2), 4, &r, &c);
        storm(grids_grid(3, (unsigned[]){4, 4, 3}, false, 1), 4, &r, &c);
        storm(grids_grid(5, (unsigned[]){2, 2, 2, 2, 2}, false, 1), 4, &r, &c);
        storm(rig_named("ft3-4-2"), 3, &r, &c);
        storm(grids_dragonfly(4, 1, 2), 4, &r, &c);
    }
    for (unsigned i = 0; i < 25; i++)
        storm(rig_random(&r, 4 + rng_below(&r, 30), rng_below(&r, 50)), 3, &r, &c);
    print_message("%u repairs: anew %u, refused %u; lanes moved in %u of them, %.2f %% of all pairs\n",
                  c.repairs, c.anew, c.refused, c.moved, 100.0 * (double)c.lanes / (double)c.pairs);
    assert_true(c.refused == 0);
    assert_true(c.anew * 20 <= c.repairs);
    assert_true(c.lanes * 25 <= c.pairs);
}

// One cable less: few entries, few lanes.
static void small(const struct fabric *f, const char *name, double entries_at_most, double lanes_at_most)
{
    struct base x;
    struct rng r;
    double entries = 0, lanes = 0, pairs;
    base_start(&x, f);
    rng_init(&r, 29);
    for (unsigned i = 0; i < 10; i++) {
        struct rig_fault dead;
        struct route_result now;
        struct err e;
        do
            rig_fault_make(f, &r, &dead);
        while (dead.kind != RIG_CABLE);
        const struct fabric *live = rig_live(f, &dead, 1);
        assert_int_equal(route_repair_from(x.b, live, NULL, &now, &e), 0);
        assert_false(now.replaced);
        grids_judge(live, now.tables, 4);
        entries += (double)tables_compare(x.ideal.tables, now.tables).entries / 10;
        lanes += (double)now.lanes_moved / 10;
        tables_unref(now.tables);
        fabric_unref(live);
    }
    entries *= 100.0 / ((double)f->num_switches * f->top_lid);
    pairs = (double)f->num_switches * (f->num_switches - 1) / 2;
    lanes *= 100.0 / pairs;
    print_message("%s, a cable less: %.2f %% of entries, %.2f %% of lanes\n", name, entries, lanes);
    assert_true(entries <= entries_at_most);
    assert_true(lanes <= lanes_at_most);
    base_done(&x);
}

static void test_small_changes(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 31);
    small(grids_grid(2, (unsigned[]){8, 8}, true, 2), "torus 8x8", 2, 2);
    small(grids_grid(3, (unsigned[]){4, 4, 4}, true, 1), "torus 4x4x4", 1, 1);
    small(grids_grid(2, (unsigned[]){10, 10}, false, 1), "mesh 10x10", 2, 3);
    small(grids_grid(6, (unsigned[]){2, 2, 2, 2, 2, 2}, false, 1), "6-dimensional cube", 2, 1);
    small(grids_dragonfly(4, 2, 2), "dragonfly 4, 2", 3, 3);
    small(rig_random(&r, 60, 90), "random graph", 3, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storms),
        cmocka_unit_test(test_small_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
