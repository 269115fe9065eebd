// SPDX-License-Identifier: Apache-2.0
// The engine rail on uneven trees: leaves that lack a cable, and leaves with more cables than hosts where
// hosts have all their adapters on one leaf. Less meets than the digits of numbers alone would have it, and
// nobody moves for a host that is missing.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "routing/quality.h"
#include "routing/route_priv.h"
#include "tests/unit/routing/rig.h"

struct shape {
    unsigned leaves, spines, hosts, adapters; // hosts: on a leaf; adapters: of each
    unsigned short_by;                        // leaves that lack a cable, to changing spines
    unsigned gaps;                            // every so many adapters one is missing; 0: none is
    unsigned half;                            // every so many leaves one has half of the hosts; 0: none has
};
static const struct shape short_ones = {24, 12, 12, 1, 10, 0, 0}, narrow = {24, 20, 2, 8, 0, 29, 5},
                          both = {24, 20, 2, 8, 8, 29, 5};

static const struct fabric *tree(const struct shape *x, unsigned lmc)
{
    struct rig r;
    node_id spine[20], leaf;
    unsigned n = 0;
    rig_start(&r);
    for (unsigned i = 0; i < x->spines; i++)
        spine[i] = rig_switch(&r, x->leaves + 2, "spine");
    for (unsigned i = 0; i < x->leaves; i++) {
        char name[40];
        unsigned hosts = x->half && i % x->half == 1 ? x->hosts / 2 : x->hosts;
        snprintf(name, sizeof(name), "leaf-%02u", i);
        leaf = rig_switch(&r, x->spines + x->hosts * x->adapters, name);
        for (unsigned k = 0; k < hosts * x->adapters; k++, n++) {
            snprintf(name, sizeof(name), "gpu-%03u mlx5_%u", n / x->adapters, n % x->adapters);
            node_id ca = rig_ca(&r, 1, name);
            if (x->gaps == 0 || n % x->gaps != 7)
                rig_cable(&r, leaf, ca);
            else
                r.next_port[leaf.i]++;
        }
        for (unsigned k = hosts * x->adapters; k < x->hosts * x->adapters; k++)
            r.next_port[leaf.i]++;
        for (unsigned k = 0; k < x->spines; k++) {
            if (i == 0 || i > x->short_by || k != i * 7 % x->spines)
                rig_cable(&r, leaf, spine[k]);
        }
    }
    const struct fabric *f = rig_done(&r);
    return lmc ? rig_lids(f, lmc) : f;
}

static struct route_quality quality_of(const struct shape *x)
{
    const struct fabric *f = tree(x, 0);
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    struct quality_opts o = {.all_shifts = true};
    struct route_quality q;
    rig_prove(f, t);
    route_quality(f, t, &o, &q);
    assert_int_equal(q.shift.failed, 0);
    tables_unref(t);
    fabric_unref(f);
    return q;
}

// By numbers that take cables in turn rails alone would have 0.885 and 0.874 here.
static void rails_have_cables_of_their_own(void **state)
{
    struct route_quality q = quality_of(&narrow), r = quality_of(&both);
    if (q.same_rail_shift.mean < 0.97 || q.same_rail_shift.worst < 0.955 || q.shift.mean < 0.985)
        fail_msg("shifts: along rails %f, at worst %f; of all %f", q.same_rail_shift.mean,
                 q.same_rail_shift.worst, q.shift.mean);
    if (r.same_rail_shift.mean < 0.95)
        fail_msg("with cables missing, shifts along rails: %f", r.same_rail_shift.mean);
}

static unsigned spine_to(const struct fabric *f, const struct fabric_tables *t, const struct node *leaf,
                         uint16_t lid)
{
    const struct node *up = fabric_peer_node(f, &f->port[leaf->first_port + tables_port(t, leaf->sw, lid)]);
    return up->sw; // spines were made first, and are numbered in this order
}

// A destination whose spine a leaf has no cable to goes by one near it in the list.
static void near_its_own(void **state)
{
    const struct fabric *f = tree(&short_ones, 0);
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    unsigned aside = 0, n = short_ones.spines;
    rig_prove(f, t);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *at = fabric_peer_node(f, p), *whole = fabric_switch(f, n);
        if (fabric_node(f, p->node)->role != ROLE_HOST || at->sw <= n + short_ones.short_by)
            continue; // on leaves that have all cables, each has one of its own
        unsigned own = spine_to(f, t, whole, p->a.lid); // the first leaf has all cables
        for (uint32_t s = n + 1; s < f->num_switches; s++) {
            const struct node *leaf = fabric_switch(f, s);
            if (s - n > short_ones.short_by || (s - n) * 7 % n != own)
                continue;
            unsigned x = spine_to(f, t, leaf, p->a.lid), off = x > own ? x - own : own - x;
            assert_true(off > 0);
            if (off > n / 4 + 1 && off < n - n / 4 - 1)
                fail_msg("leaf %u goes to a host of spine %u by spine %u", s - n, own, x);
            aside++;
        }
    }
    assert_true(aside > 100);
    tables_unref(t);
    fabric_unref(f);
}

static void same_tables(const struct fabric *f, const struct fabric *g)
{
    struct route_opts o = {.engine = ROUTE_RAIL};
    struct route_result a, b;
    assert_int_equal(route_compute(f, &o, &a, NULL), 0);
    o.par = &rig_par;
    assert_int_equal(route_compute(g, &o, &b, NULL), 0);
    struct fabric_tables *c = tables_copy_for(b.tables, g, f, g->top_lid);
    assert_int_equal(tables_compare(a.tables, c).entries, 0);
    tables_unref(a.tables);
    tables_unref(b.tables);
    tables_unref(c);
}

static void numbering_of_nodes_does_not_matter(void **state)
{
    struct rng r;
    rng_init(&r, 61);
    for (unsigned i = 0; i < 9; i++) {
        const struct fabric *f = tree(i % 3 == 0 ? &short_ones : i % 3 == 1 ? &narrow : &both, 0);
        const struct fabric *g = rig_renumber(f, &r);
        same_tables(f, g);
        fabric_unref(f);
        fabric_unref(g);
    }
}

static void fast_way_as_general(void **state)
{
    const struct shape *const shapes[] = {&short_ones, &narrow, &both};
    for (unsigned i = 0; i < 6; i++) {
        const struct fabric *f = tree(shapes[i % 3], i / 3);
        struct route_opts opts = {.engine = ROUTE_RAIL};
        struct arena *a = arena_new();
        struct rgraph g, h;
        struct rorder o = {0};
        rgraph_build(f, a, &g);
        rgraph_build(f, a, &h);
        assert_int_equal(rorder_build(&g, &opts, a, &o, NULL), 0);
        struct fabric_tables *fast = tables_new(f, f->top_lid, "rail"),
                             *general = tables_new(f, f->top_lid, "rail");
        rfill(&g, &o, ROUTE_RAIL, &rig_par, a, fast);
        rfill_general(&h, &o, ROUTE_RAIL, a, general);
        assert_int_equal(tables_compare(fast, general).entries, 0);
        tables_unref(fast);
        tables_unref(general);
        arena_free(a);
        fabric_unref(f);
    }
}

// Adapters away: the others' entries are what they were.
static void nobody_moves_for_a_hole(const struct fabric *f, struct rng *r, unsigned n)
{
    struct rig_fault away[24];
    for (unsigned k = 0; k < n; k++) {
        const struct node *x;
        do {
            x = &f->node[rng_below(r, f->num_nodes)];
        } while (x->role != ROLE_HOST);
        away[k] = (struct rig_fault){.kind = RIG_NODE, .guid = x->guid};
    }
    const struct fabric *g = rig_live(f, away, n);
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL), *u = rig_route(g, ROUTE_RAIL);
    for (uint32_t s = 0; s < g->num_switches; s++) {
        uint32_t was = fabric_by_guid(f, fabric_switch(g, s)->guid)->sw;
        for (uint32_t lid = 1; lid <= g->top_lid; lid++) {
            if (g->lid_port[lid] != ID_NONE &&
                fabric_node(g, g->port[g->lid_port[lid]].node)->role == ROLE_HOST)
                assert_int_equal(tables_port(u, s, (uint16_t)lid), tables_port(t, was, (uint16_t)lid));
        }
    }
    tables_unref(t);
    tables_unref(u);
    fabric_unref(g);
}

static void holes_are_kept(void **state)
{
    static const char *const names[] = {"rail-256", "superpod-2", "ft3-16-8"};
    struct rng r;
    rng_init(&r, 62);
    for (unsigned i = 0; i < 12; i++) {
        const struct fabric *f = rig_named(names[i % 3]);
        nobody_moves_for_a_hole(f, &r, 24);
        fabric_unref(f);
        f = tree(&narrow, 0);
        nobody_moves_for_a_hole(f, &r, 1);
        fabric_unref(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_have_cables_of_their_own),
        cmocka_unit_test(near_its_own),
        cmocka_unit_test(numbering_of_nodes_does_not_matter),
        cmocka_unit_test(fast_way_as_general),
        cmocka_unit_test(holes_are_kept),
    };
    return cmocka_run_group_tests_name("routing/rail_uneven", tests, NULL, NULL);
}
