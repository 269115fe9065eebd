// SPDX-License-Identifier: Apache-2.0
// Engine sssp: every pair that cables join by a shortest path, each lane without a cycle of dependencies
// (judged here, by a walk of its own), the same whatever the numbering, and small changes that stay small.
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
#include "lib/hash.h"
#include "lib/xalloc.h"
#include "routing/route_priv.h"
#include "tests/unit/routing/grids.h"

static unsigned route_and_judge(const struct fabric *f, const char *name)
{
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP);
    grids_judge(f, t, 0);
    unsigned lanes = t->lanes->num_lanes;
    if (name)
        print_message("%s: %u lanes\n", name, lanes);
    tables_unref(t);
    fabric_unref(f);
    return lanes;
}

// --- tests ---

static void test_grids(void **state)
{
    (void)state;
    assert_int_equal(route_and_judge(grids_grid(2, (unsigned[]){7, 5}, false, 2), "mesh 7x5"), 1);
    assert_int_equal(route_and_judge(grids_grid(3, (unsigned[]){4, 3, 4}, false, 1), "mesh 4x3x4"), 1);
    assert_int_equal(
        route_and_judge(grids_grid(6, (unsigned[]){2, 2, 2, 2, 2, 2}, false, 2), "6-dimensional cube"), 1);
    for (unsigned k = 3; k < 12; k++)
        assert_in_range(route_and_judge(grids_grid(1, (unsigned[]){k}, true, 2), NULL), 1, 2);
    assert_in_range(route_and_judge(grids_grid(2, (unsigned[]){8, 8}, true, 2), "torus 8x8"), 2, 5);
    assert_in_range(route_and_judge(grids_grid(2, (unsigned[]){9, 5}, true, 2), "torus 9x5"), 2, 5);
    assert_in_range(route_and_judge(grids_grid(2, (unsigned[]){10, 10}, true, 1), "torus 10x10"), 2, 5);
    assert_in_range(route_and_judge(grids_grid(3, (unsigned[]){5, 5, 5}, true, 1), "torus 5x5x5"), 2, 8);
    assert_in_range(route_and_judge(grids_grid(3, (unsigned[]){6, 6, 6}, true, 1), "torus 6x6x6"), 2, 8);
}

static void test_damaged_torus(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 7);
    for (unsigned i = 0; i < 6; i++)
        route_and_judge(rig_degrade(grids_grid(2, (unsigned[]){8, 7}, true, 2), 1 + i, &r),
                        "torus 8x7, damaged");
    route_and_judge(rig_degrade(grids_grid(3, (unsigned[]){5, 4, 5}, true, 1), 2, &r),
                    "torus 5x4x5, damaged");
}

static void test_irregular(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 11);
    for (unsigned i = 0; i < 40; i++)
        route_and_judge(rig_random(&r, 2 + rng_below(&r, 40), rng_below(&r, 60)), NULL);
    route_and_judge(grids_dragonfly(4, 2, 2), "dragonfly 4, 2");
    route_and_judge(grids_dragonfly(6, 1, 1), "dragonfly 6, 1");
}

static void test_trees(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 13);
    assert_int_equal(route_and_judge(rig_named("ft3-8-4"), "ft3-8-4"), 1);
    assert_int_equal(route_and_judge(rig_named("rail-256"), "rail-256"), 1);
    for (unsigned i = 0; i < 6; i++)
        route_and_judge(rig_degrade(rig_named("ft3-8-4"), 2 + 4 * i, &r), "ft3-8-4, damaged");
}

static void test_parts(void **state)
{
    (void)state;
    struct grids m;
    grids_start(&m, 99);
    grids_add_grid(&m, 2, (unsigned[]){6, 6}, true, 1);
    grids_add_grid(&m, 1, (unsigned[]){7}, true, 1);
    grids_add_grid(&m, 3, (unsigned[]){3, 2, 2}, false, 1);
    grids_hosts(&m, grids_add(&m, NODE_SWITCH, 3), 2);
    grids_add(&m, NODE_SWITCH, 4); // with nothing at all
    route_and_judge(grids_done(&m), "parts");
    grids_start(&m, 100);
    route_and_judge(grids_done(&m), "nothing");
}

static void same_entries(const struct fabric *f, const struct fabric_tables *a, const struct fabric *g,
                         const struct fabric_tables *b)
{
    assert_int_equal(a->lanes->num_lanes, b->lanes->num_lanes);
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t gs = fabric_by_guid(g, fabric_switch(f, s)->guid)->sw;
        assert_memory_equal(tables_row(a, s), tables_row(b, gs), a->lids);
        for (uint32_t d = 0; d < f->num_switches; d++) {
            uint32_t gd = fabric_by_guid(g, fabric_switch(f, d)->guid)->sw;
            assert_int_equal(lanes_get(a->lanes, s, d), lanes_get(b->lanes, gs, gd));
        }
    }
}

static void test_renumbered(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 17);
    for (unsigned i = 0; i < 8; i++) {
        const struct fabric *f = i < 2   ? grids_grid(2, (unsigned[]){7, 6 + i}, true, 2)
                                 : i < 4 ? grids_dragonfly(3 + i, 1, 1)
                                 : i < 5 ? rig_named("ft3-8-4")
                                         : rig_random(&r, 30, 40);
        const struct fabric *g = rig_renumber(f, &r);
        struct fabric_tables *a = rig_route(f, ROUTE_SSSP), *b = rig_route(g, ROUTE_SSSP);
        same_entries(f, a, g, b);
        struct fabric_tables *c = tables_copy_for(a, f, g, g->top_lid);
        assert_true(lanes_equal(b->lanes, c->lanes));
        tables_unref(c);
        tables_unref(a);
        tables_unref(b);
        fabric_unref(f);
        fabric_unref(g);
    }
}

// One cable between switches less, each in turn of a sample: how many entries change.
static void small_change(const struct fabric *f, const char *name, double mean_at_most, double at_most)
{
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP);
    struct rng r;
    double sum = 0, worst = 0, all = (double)f->num_switches * f->top_lid;
    rng_init(&r, 19);
    for (unsigned i = 0; i < 10; i++) {
        struct rig_fault x;
        do
            rig_fault_make(f, &r, &x);
        while (x.kind != RIG_CABLE);
        const struct fabric *g = rig_live(f, &x, 1);
        struct fabric_tables *u = rig_route(g, ROUTE_SSSP);
        double share = 100.0 * (double)tables_compare(t, u).entries / all;
        sum += share / 10;
        worst = share > worst ? share : worst;
        tables_unref(u);
        fabric_unref(g);
    }
    print_message("%s, a cable less: %.2f %% of entries changed, at most %.2f %%\n", name, sum, worst);
    assert_true(sum <= mean_at_most);
    assert_true(worst <= at_most);
    tables_unref(t);
    fabric_unref(f);
}

static void test_small_changes(void **state)
{
    (void)state;
    small_change(grids_grid(2, (unsigned[]){10, 10}, true, 1), "torus 10x10", 3, 10);
    small_change(grids_grid(2, (unsigned[]){10, 10}, false, 1), "mesh 10x10", 3, 10);
    small_change(grids_grid(6, (unsigned[]){2, 2, 2, 2, 2, 2}, false, 1), "6-dimensional cube", 3, 10);
    small_change(rig_named("ft3-8-4"), "ft3-8-4", 3, 10);
}

static int try_lanes(const struct fabric *f, unsigned lanes, struct err *e)
{
    struct route_opts o = {.engine = ROUTE_SSSP, .lanes = (uint8_t)lanes};
    struct route_result r = {0};
    int rc = route_compute(f, &o, &r, e);
    if (rc == 0) {
        assert_true(r.tables->lanes->num_lanes <= lanes);
        tables_unref(r.tables);
    } else {
        assert_null(r.tables);
    }
    return rc;
}

static void test_too_few_lanes(void **state)
{
    (void)state;
    struct err e = {0};
    const struct fabric *torus = grids_grid(2, (unsigned[]){9, 9}, true, 1),
                        *mesh = grids_grid(2, (unsigned[]){9, 9}, false, 1);
    assert_int_equal(try_lanes(torus, 1, &e), -ENOSPC);
    assert_non_null(strstr(e.text, "sssp would need "));
    assert_non_null(strstr(e.text, "and may use 1;"));
    assert_int_equal(try_lanes(torus, 8, &e), 0);
    assert_int_equal(try_lanes(torus, 9, &e), -EINVAL);
    assert_int_equal(try_lanes(mesh, 1, &e), 0);
    fabric_unref(torus);
    fabric_unref(mesh);
    // One cable that has two lanes only, whatever is asked for.
    for (unsigned code = 1; code <= 5; code++) {
        struct grids m;
        grids_start(&m, 5);
        grids_add_grid(&m, 2, (unsigned[]){6, 6}, true, 1);
        m.vl_cap = (uint8_t)code;
        node_id a = grids_add(&m, NODE_SWITCH, 3), b = grids_add(&m, NODE_SWITCH, 3);
        grids_join(&m, a, b);
        grids_hosts(&m, a, 1);
        grids_hosts(&m, b, 1);
        const struct fabric *f = grids_done(&m);
        int rc = try_lanes(f, 8, &e);
        assert_int_equal(rc, code <= 1 ? -ENOSPC : rc);
        if (rc)
            assert_non_null(strstr(e.text, "as this port has no more"));
        assert_int_equal(code < 4 || rc == 0, 1);
        fabric_unref(f);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    struct grids m;
    // More than 10,000 parallel cables: 42 switches in a ring, 250 between each two.
    grids_start(&m, 1);
    for (unsigned i = 0; i < 82; i++)
        grids_add(&m, NODE_SWITCH, 254);
    for (unsigned i = 0; i < 82; i++) {
        for (unsigned k = 0; k < 126; k++)
            grids_join(&m, (node_id){i}, (node_id){(i + 1) % 82});
        grids_hosts(&m, (node_id){i}, 1);
    }
    route_and_judge(grids_done(&m), "10,332 cables side by side");
    // All switches joined to all, every port in use.
    grids_start(&m, 2);
    for (unsigned i = 0; i < 255; i++)
        grids_add(&m, NODE_SWITCH, 254);
    for (unsigned i = 0; i < 255; i++) {
        for (unsigned k = i + 1; k < 255; k++)
            grids_join(&m, (node_id){i}, (node_id){k});
    }
    route_and_judge(grids_done(&m), "255 switches of 254 ports");
    // A star of end nodes, and a chain longer than 8 bits count.
    grids_start(&m, 3);
    grids_hosts(&m, grids_add(&m, NODE_SWITCH, 254), 254);
    for (unsigned i = 0; i < 300; i++) {
        node_id s = grids_add(&m, NODE_SWITCH, 3);
        if (i > 0)
            grids_join(&m, (node_id){s.i - 1}, s);
    }
    grids_hosts(&m, (node_id){m.num - 1}, 1);
    route_and_judge(grids_done(&m), "a star and a chain");
}

// Lanes that are wrong are found out.
static void test_proof(void **state)
{
    (void)state;
    const struct fabric *f = grids_grid(1, (unsigned[]){8}, true, 1);
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP);
    struct verify_opts o = {0};
    struct route_proof p;
    assert_true(route_verify(f, t, &o, &p));
    for (int wrong = 0; wrong < 5; wrong++) {
        struct fabric_tables *bad = tables_copy_for(t, f, f, f->top_lid);
        struct fabric_lanes *l = lanes_new(wrong == 0 ? 7 : 8);
        for (uint32_t a = 0; a < l->num_switches; a++) {
            for (uint32_t b = 0; b < l->num_switches; b++)
                lanes_set(l, a, b, wrong == 1 ? 1 : lanes_get(t->lanes, a, b));
        }
        l->num_lanes = wrong == 4 ? 9 : t->lanes->num_lanes;
        if (wrong == 2)
            lanes_set(l, 2, 5, LANE_NONE);
        if (wrong == 3)
            lanes_set(l, 2, 5, 7);
        tables_set_lanes(bad, l);
        assert_false(route_verify(f, bad, &o, &p));
        assert_int_equal(p.fault, wrong == 1 ? ROUTE_CREDIT_LOOP : ROUTE_NO_LANE);
        assert_int_equal(p.credit_loop, wrong == 1);
        const char *says[] = {"of another fabric",
                              "credit loop on lane 1 over 8 cables: ", "no lane for this pair",
                              ": lane 7, there are 2", "too many"};
        if (!strstr(p.counter_example, says[wrong]))
            fail_msg("%s", p.counter_example);
        if (wrong == 1) {
            assert_non_null(strstr(p.counter_example, "sw3["));
            assert_non_null(strstr(p.counter_example, "back to the first"));
            o.allow_credit_loops = true;
            assert_true(route_verify(f, bad, &o, &p));
            assert_true(p.credit_loop);
            o.allow_credit_loops = false;
        }
        tables_unref(bad);
    }
    // Without its lanes it is one lane, with a cycle.
    struct fabric_tables *one = tables_copy_for(t, f, f, f->top_lid);
    tables_set_lanes(one, NULL);
    assert_false(route_verify(f, one, &o, &p));
    assert_int_equal(p.fault, ROUTE_CREDIT_LOOP);
    tables_unref(one);
    tables_unref(t);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids),         cmocka_unit_test(test_damaged_torus),
        cmocka_unit_test(test_irregular),     cmocka_unit_test(test_trees),
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_renumbered),
        cmocka_unit_test(test_small_changes), cmocka_unit_test(test_too_few_lanes),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
