// SPDX-License-Identifier: Apache-2.0
// Groups for adaptive routing: every mix of choices arrives and nothing waits in a circle (judged here, by a
// walk of its own, and by the proof, which must say the same); they are all there could be; ids stay.
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
#include "lib/xalloc.h"
#include "routing/mcast.h"
#include "routing/route_priv.h"
#include "tests/unit/routing/grids.h"
#include "tests/unit/routing/groups_rig.h"

static const enum route_engine engines[] = {ROUTE_RAIL, ROUTE_UPDN, ROUTE_MINHOP, ROUTE_SSSP};
#define NUM_ENGINES (sizeof(engines) / sizeof(engines[0]))

// --- what is made ---

// All that are made for one fabric.
static void whole(const struct fabric *f, const char *name)
{
    for (size_t i = 0; i < NUM_ENGINES; i++) {
        struct fabric_tables *t = gr_route(f, engines[i]);
        if (!t)
            continue;
        struct verify_opts v = {.allow_credit_loops = true};
        struct route_proof p;
        assert_true(route_verify(f, t, &v, &p));
        struct groups_opts par = {.engine = engines[i], .par = &rig_par};
        struct groups_result r = gr_make_plain(f, t, engines[i]), again = gr_make(f, t, &par);
        if (!p.credit_loop)
            gr_check(f, t, &r, NULL);
        else
            assert_int_equal(r.adaptive, 0);
        assert_true(gr_equal(r.groups, again.groups));
        assert_int_equal(r.over_cap, 0);
        if (name)
            print_message("%s, %s: %.1f %% adaptive, %.2f ports, at most %u groups; %s\n", name,
                          route_engine_name(engines[i]), 100. * (double)r.adaptive / (double)(r.entries + 1),
                          (double)r.choices / (double)(r.adaptive + (r.adaptive == 0)), r.most_groups, r.why);
        groups_unref(r.groups);
        groups_unref(again.groups);
        tables_unref(t);
    }
    fabric_unref(f);
}

static void generated(void **state)
{
    static const char *const names[] = {"rail-64", "rail-192",   "ft3-8-4",
                                        "ft3-8-8", "superpod-1", "superpod-2"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        whole(rig_named(names[i]), names[i]);
}

static void grids(void **state)
{
    (void)state;
    whole(grids_grid(2, (unsigned[]){4, 3}, false, 2), "mesh 4x3");
    whole(grids_grid(2, (unsigned[]){5, 4}, true, 2), "torus 5x4");
    whole(grids_grid(1, (unsigned[]){6}, true, 2), "ring of 6");
    whole(grids_dragonfly(4, 2, 2), "dragonfly");
}

static void random_fabrics(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 11);
    for (unsigned i = 0; i < 150; i++) {
        unsigned n = 2 + rng_below(&r, 14);
        whole(rig_random(&r, n, rng_below(&r, 3 * n)), NULL);
    }
}

static void damaged_fresh(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 12);
    for (unsigned i = 0; i < 20; i++)
        whole(rig_degrade(rig_named(i % 2 ? "ft3-8-4" : "rail-64"), 1 + rng_below(&r, 30), &r), NULL);
}

static void real_dumps(void **state)
{
    static const char *const files[] = {
        "ndr-dgx-rail-582ca.txt",
        "ndr-rail8-256ca-ibdiagnet-port-labels.txt",
        "qdr-fdr10-sx6036-144ca.txt",
        "ddr-qdr-voltaire4036-89ca-generic-names.txt",
        "edr-synthetic-k4n3-fattree-128ca.txt",
        "hdr-director-faked-suffix-10ca.txt",
        "sdr-voltaire-manpage-4ca.txt",
    };
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct fabric *f = rig_sample(files[i]);
        if (f)
            whole(f, files[i]);
        seen += f != NULL;
    }
    if (seen == 0) {
        print_message("the shared samples are absent: skipped\n");
        skip();
    }
}

// --- all there could be ---

// On a whole tree every port on a shortest way between leaves is legal.
static void shortest_ways(const char *name, enum route_engine e, const char *engine)
{
    const struct fabric *f = rig_named(name);
    struct fabric_tables *t = rig_route(f, e);
    struct groups_result r = gr_make_plain(f, t, e);
    uint32_t *dist = xcalloc(f->num_switches, sizeof(*dist)), sw, at = ID_NONE;
    uint8_t port;
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port) || port == 0)
            continue;
        if (at != sw)
            gr_hops_to(f, sw, dist);
        at = sw;
        for (uint32_t s = 0; s < f->num_switches; s++) {
            if (s == sw || !gr_has_ends(f, s))
                continue;
            const struct fabric_group *x = gr_group_at(r.groups, t, s, (uint16_t)lid);
            for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports; p++) {
                uint32_t w = gr_far_switch(f, s, p);
                bool way = w != ID_NONE && dist[w] + 1 == dist[s];
                if (x ? way != port_set_has(&x->ports, (uint8_t)p)
                      : way && p != tables_port(t, s, (uint16_t)lid))
                    fail_msg("%s, %s: LID %u, switch %u, port %u", name, engine, lid, s, p);
            }
        }
    }
    free(dist);
    groups_unref(r.groups);
    tables_unref(t);
    fabric_unref(f);
}

static void all_shortest(void **state)
{
    static const char *const names[] = {"rail-64", "ft3-8-4", "ft3-8-8", "superpod-1", "superpod-2"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (size_t k = 0; k < NUM_ENGINES; k++) {
            if (gr_ordered(engines[k]))
                shortest_ways(names[i], engines[k], route_engine_name(engines[k]));
        }
    }
    shortest_ways("rail-64", ROUTE_SSSP, "sssp");
    shortest_ways("rail-64", ROUTE_MINHOP, "minhop");
}

// Every way there is, one step after the other: the brute force.
struct ways {
    const struct fabric *f;
    const struct rorder *o;
    const uint8_t *down; // per switch: whether it goes down to the end
    uint32_t end, best;
    struct port_set first;
    bool *on;
};

static void try_ways(struct ways *w, uint32_t s, uint32_t cost, uint8_t first)
{
    if (s == w->end) {
        if (cost < w->best)
            w->first = (struct port_set){{0}};
        if (cost <= w->best)
            w->first.w[first / 64] |= 1ULL << (first % 64);
        w->best = cost < w->best ? cost : w->best;
        return;
    }
    if (first != 0 && w->o->foot[s])
        cost += RCOST_FOOT;
    w->on[s] = true;
    for (unsigned p = 1; p <= fabric_switch(w->f, s)->num_ports; p++) {
        uint32_t v = gr_far_switch(w->f, s, p);
        if (v == ID_NONE || w->on[v] || (w->o->pos[v] < w->o->pos[s]) != (w->down[s] != 0))
            continue;
        if (w->down[s] && v != w->end && !w->down[v])
            continue;
        try_ways(w, v, cost + 1, first ? first : (uint8_t)p);
    }
    w->on[s] = false;
}

static void brute_force_one(const struct fabric *f, enum route_engine e)
{
    struct fabric_tables *t = rig_route(f, e);
    struct groups_result r = gr_make_plain(f, t, e);
    struct arena *a = arena_new();
    struct rgraph g;
    struct rorder o;
    struct route_opts opts = {.engine = e};
    rgraph_build(f, a, &g);
    assert_int_equal(rorder_build(&g, &opts, a, &o, NULL), 0);
    uint8_t *down = xcalloc(f->num_switches, 1), port;
    struct ways w = {.f = f, .o = &o, .down = down, .on = xcalloc(f->num_switches, 1)};
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &w.end, &port) || port == 0)
            continue;
        for (uint32_t s = 0; s < f->num_switches; s++) {
            uint32_t v = gr_far_switch(f, s, tables_port(t, s, (uint16_t)lid));
            down[s] = v != ID_NONE && o.pos[v] < o.pos[s];
        }
        for (uint32_t s = 0; s < f->num_switches; s++) {
            if (s == w.end)
                continue;
            w.best = ID_NONE;
            w.first = (struct port_set){{0}};
            try_ways(&w, s, 0, 0);
            const struct fabric_group *x = gr_group_at(r.groups, t, s, (uint16_t)lid);
            uint8_t entry = tables_port(t, s, (uint16_t)lid);
            if (w.best == ID_NONE) {
                assert_int_equal(entry, LFT_DROP);
                continue;
            }
            if (x)
                assert_memory_equal(&x->ports, &w.first, sizeof(w.first));
            else
                for (unsigned p = 1; p < 256; p++)
                    assert_int_equal(port_set_has(&w.first, (uint8_t)p), p == entry);
        }
    }
    free(down);
    free(w.on);
    arena_free(a);
    groups_unref(r.groups);
    tables_unref(t);
}

static void brute_force(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 13);
    for (unsigned i = 0; i < 120; i++) {
        const struct fabric *f = i % 3 == 0 ? rig_degrade(rig_named("ft3-4-4"), rng_below(&r, 25), &r)
                                            : rig_random(&r, 2 + rng_below(&r, 7), rng_below(&r, 8));
        brute_force_one(f, ROUTE_RAIL);
        brute_force_one(f, ROUTE_UPDN);
        fabric_unref(f);
    }
}

// --- faults: repaired tables, ids ---

static bool loops(const struct fabric *f, const struct fabric_tables *t)
{
    struct verify_opts v = {.allow_credit_loops = true};
    struct route_proof p;
    if (!route_verify(f, t, &v, &p))
        fail_msg("%s", p.counter_example);
    return p.credit_loop;
}

// A storm of faults, groups each time from those before.
static void storm(const char *name, const struct fabric *f, enum route_engine engine, struct rng *r,
                  unsigned steps)
{
    struct gr_base x;
    if (!gr_base_start(&x, f, engine)) {
        fabric_unref(f);
        return;
    }
    struct groups_result last = {0};
    const struct fabric *last_f = NULL;
    struct rig_fault fault[12];
    uint32_t n = 0;
    for (unsigned i = 0; i < steps; i++) {
        if (n > 0 && (n == 12 || rng_below(r, 3) == 0))
            fault[rng_below(r, n)] = fault[n - 1], n--;
        else
            rig_fault_make(f, r, &fault[n++]);
        const struct fabric *live = rig_live(f, fault, n);
        struct route_result rr;
        struct err e = {0};
        if (route_repair_from(x.b, live, NULL, &rr, &e)) {
            fabric_unref(live);
            continue;
        }
        struct groups_opts o = {.base = x.b, .engine = rr.engine, .last = last.groups, .last_fabric = last_f};
        struct groups_result g = gr_make(live, rr.tables, &o);
        if (!loops(live, rr.tables))
            gr_check(live, rr.tables, &g, NULL);
        if (gr_ordered(engine) && g.static_lids > 0 && f->num_tiers > 0)
            print_message("%s, %s, step %u: %u LIDs static\n", name, route_engine_name(engine), i,
                          g.static_lids);
        tables_unref(rr.tables);
        groups_unref(last.groups);
        fabric_unref(last_f);
        last = g;
        last_f = live;
    }
    groups_unref(last.groups);
    fabric_unref(last_f);
    gr_base_done(&x);
    fabric_unref(f);
}

static void storms(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 14);
    for (size_t i = 0; i < NUM_ENGINES; i++) {
        storm("rail-64", rig_named("rail-64"), engines[i], &r, 15);
        storm("ft3-8-4", rig_named("ft3-8-4"), engines[i], &r, 15);
        storm("superpod-1", rig_named("superpod-1"), engines[i], &r, 5);
        storm("torus", grids_grid(2, (unsigned[]){4, 4}, true, 2), engines[i], &r, 8);
        for (unsigned k = 0; k < 10; k++)
            storm("random", rig_random(&r, 4 + rng_below(&r, 10), rng_below(&r, 20)), engines[i], &r, 8);
    }
}

struct writes {
    uint32_t groups, entries, switches; // written anew; switches with any
};

static uint16_t id_at(const struct fabric_groups *g, const struct fabric_tables *t, uint32_t s, uint16_t lid)
{
    const struct fabric_group *x = groups_at(g, s, lid, tables_port(t, s, lid));
    return x ? x->id : GROUP_NONE;
}

// What must be written to come from one to the other.
static struct writes count_writes(const struct fabric_groups *a, const struct fabric_tables *ta,
                                  const struct fabric_groups *b, const struct fabric_tables *tb, uint32_t s)
{
    struct writes w = {0};
    for (uint32_t i = 0; i < groups_of(b, s); i++) {
        const struct fabric_group *q = &b->group[b->first[s] + i];
        bool same = false;
        for (uint32_t k = 0; k < groups_of(a, s); k++) {
            const struct fabric_group *p = &a->group[a->first[s] + k];
            same |= p->id == q->id && memcmp(&p->ports, &q->ports, sizeof(p->ports)) == 0;
        }
        w.groups += !same;
    }
    for (uint32_t l = 0; l < a->lids && l < b->lids; l++)
        w.entries += id_at(a, ta, s, (uint16_t)l) != id_at(b, tb, s, (uint16_t)l);
    return w;
}

// A cable that dies at a leaf: there one group is written and no entry gets another; elsewhere at most those
// of that leaf's ends. When it is back, all is as it was.
static void ids_stay(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        const struct fabric *f = rig_named(round ? "ft3-8-8" : "rail-192"), *live, *back;
        struct gr_base x;
        assert_true(gr_base_start(&x, f, ROUTE_RAIL));
        struct groups_opts o = {.base = x.b, .engine = ROUTE_RAIL};
        struct groups_result g0 = gr_make(f, x.ideal.tables, &o);
        for (uint32_t s = 0; s < f->num_switches; s += 7) {
            const struct node *n = fabric_switch(f, s);
            if (!gr_has_ends(f, s))
                continue;
            struct rig_fault fault = {RIG_CABLE, n->guid, 0};
            for (unsigned p = 1; p <= n->num_ports && fault.num == 0; p++)
                fault.num = gr_far_switch(f, s, p) != ID_NONE ? p : 0;
            const struct fabric_tables *t1, *t2;
            struct groups_result g1 = gr_step(&x, &fault, 1, &g0, f, &live, &t1);
            struct groups_result g2 = gr_step(&x, NULL, 0, &g1, live, &back, &t2);
            assert_int_equal(live->num_switches, f->num_switches);
            struct writes w = count_writes(g0.groups, x.ideal.tables, g1.groups, t1, s);
            assert_int_equal(w.groups, 1);
            assert_int_equal(w.entries, 0);
            uint32_t ends = 0;
            for (unsigned p = 1; p <= n->num_ports; p++)
                ends += gr_far_switch(f, s, p) == ID_NONE && fabric_peer_node(f, &f->port[n->first_port + p]);
            for (uint32_t v = 0; v < f->num_switches; v++) {
                w = count_writes(g0.groups, x.ideal.tables, g1.groups, t1, v);
                if (gr_has_ends(f, v) && v != s)
                    assert_true(w.groups <= 1 && w.entries <= ends);
                w = count_writes(g0.groups, x.ideal.tables, g2.groups, t2, v);
                assert_int_equal(w.groups + w.entries, 0);
            }
            groups_unref(g1.groups);
            groups_unref(g2.groups);
            tables_unref(t1);
            tables_unref(t2);
            fabric_unref(live);
            fabric_unref(back);
        }
        groups_unref(g0.groups);
        gr_base_done(&x);
        fabric_unref(f);
    }
}

// New groups do not take ids that were in use, as long as there are others.
static void ids_are_fresh(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4"), *live, *next;
    struct gr_base x;
    const struct fabric_tables *t1, *t2;
    assert_true(gr_base_start(&x, f, ROUTE_RAIL));
    struct rig_fault fault[2] = {{RIG_CABLE, 0, 0}, {RIG_CABLE, 0, 0}};
    for (uint32_t s = 0, k = 0; s < f->num_switches && k < 2; s++) {
        const struct node *n = fabric_switch(f, s);
        if (!gr_has_ends(f, s))
            continue;
        fault[k].guid = n->guid;
        for (unsigned p = 1; p <= n->num_ports; p++)
            fault[k].num =
                gr_far_switch(f, s, p) != ID_NONE && (k == 0 || fault[k].num == 0) ? p : fault[k].num;
        k++;
    }
    struct groups_result g1 = gr_step(&x, fault, 1, NULL, NULL, &live, &t1);
    struct groups_result g2 = gr_step(&x, fault + 1, 1, &g1, live, &next, &t2);
    unsigned fresh = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        for (uint32_t i = 0; i < groups_of(g2.groups, s); i++) {
            const struct fabric_group *q = &g2.groups->group[g2.groups->first[s] + i];
            bool had = false, same = false, shared = false;
            for (uint32_t k = 0; k < groups_of(g1.groups, s); k++) {
                const struct fabric_group *p = &g1.groups->group[g1.groups->first[s] + k];
                had |= p->id == q->id;
                same |= p->id == q->id && memcmp(&p->ports, &q->ports, sizeof(p->ports)) == 0;
            }
            for (uint32_t lid = 1; lid < g2.groups->lids; lid++) {
                const struct fabric_group *p = gr_group_at(g1.groups, t1, s, (uint16_t)lid);
                shared |= p && p->id == q->id && gr_group_at(g2.groups, t2, s, (uint16_t)lid) == q;
            }
            assert_true(!had || same || shared);
            fresh += !had;
        }
    }
    assert_true(fresh > 0);
    groups_unref(g1.groups);
    groups_unref(g2.groups);
    tables_unref(t1);
    tables_unref(t2);
    fabric_unref(live);
    fabric_unref(next);
    gr_base_done(&x);
    fabric_unref(f);
}

// --- what a switch holds ---

static void caps(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 15);
    for (unsigned i = 0; i < 6; i++) {
        const struct fabric *f = rig_degrade(rig_named("ft3-8-4"), 10, &r);
        struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
        struct groups_result all = gr_make_plain(f, t, ROUTE_RAIL);
        uint16_t *cap = xcalloc(f->num_switches, sizeof(*cap));
        for (uint32_t s = 0; s < f->num_switches; s++)
            cap[s] = (uint16_t)rng_below(&r, 4);
        struct groups_opts o = {.engine = ROUTE_RAIL, .cap = cap, .last = all.groups, .last_fabric = f};
        struct groups_result g = gr_make(f, t, &o);
        gr_check(f, t, &g, cap);
        uint32_t over = 0;
        for (uint32_t s = 0; s < f->num_switches; s++) {
            uint32_t had = groups_of(all.groups, s), has = groups_of(g.groups, s), least = UINT32_MAX;
            assert_int_equal(has, had < cap[s] ? had : cap[s]);
            over += had > cap[s];
            for (uint32_t k = 0; k < has; k++) {
                const struct fabric_group *x = &g.groups->group[g.groups->first[s] + k];
                least = x->lids < least ? x->lids : least;
            }
            for (uint32_t k = 0; k < had && has > 0; k++) { // none left out that has more entries
                const struct fabric_group *x = &all.groups->group[all.groups->first[s] + k];
                bool kept = false;
                for (uint32_t m = 0; m < has; m++)
                    kept |= memcmp(&g.groups->group[g.groups->first[s] + m].ports, &x->ports,
                                   sizeof(x->ports)) == 0;
                assert_true(kept || x->lids <= least);
            }
        }
        assert_int_equal(g.over_cap, over);
        struct groups_proof p = gr_prove(f, t, all.groups, cap);
        assert_int_equal(p.fault, over > 0 ? GROUPS_OVER_CAP : GROUPS_OK);
        free(cap);
        groups_unref(all.groups);
        groups_unref(g.groups);
        tables_unref(t);
        fabric_unref(f);
    }
}

// The same ports whatever the switches' numbers.
static void renumbered(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 16);
    for (unsigned i = 0; i < 12; i++) {
        const struct fabric *f = i % 2 ? rig_random(&r, 10, 10) : rig_degrade(rig_named("ft3-8-4"), 15, &r);
        const struct fabric *z = rig_renumber(f, &r);
        for (size_t k = 0; k < NUM_ENGINES; k++) {
            if (!gr_ordered(engines[k]))
                continue;
            struct fabric_tables *t = rig_route(f, engines[k]), *u = rig_route(z, engines[k]);
            struct groups_result a = gr_make_plain(f, t, engines[k]), b = gr_make_plain(z, u, engines[k]);
            for (uint32_t s = 0; s < f->num_switches; s++) {
                uint32_t v = fabric_by_guid(z, fabric_switch(f, s)->guid)->sw;
                for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
                    const struct fabric_group *x = gr_group_at(a.groups, t, s, (uint16_t)lid);
                    const struct fabric_group *y = gr_group_at(b.groups, u, v, (uint16_t)lid);
                    assert_int_equal(x == NULL, y == NULL);
                    if (x)
                        assert_memory_equal(&x->ports, &y->ports, sizeof(x->ports));
                }
            }
            groups_unref(a.groups);
            groups_unref(b.groups);
            tables_unref(t);
            tables_unref(u);
        }
        fabric_unref(f);
        fabric_unref(z);
    }
}

static void several_lids(void **state)
{
    (void)state;
    whole(rig_lids(rig_named("rail-64"), 2), "rail-64, four LIDs each");
    whole(rig_lids(rig_named("ft3-8-4"), 1), "ft3-8-4, two LIDs each");
}

// --- what they are good for ---

static void spread(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-8");
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    struct groups_result r = gr_make_plain(f, t, ROUTE_RAIL);
    struct groups_flow flow[2000];
    uint32_t leaf = 0, n = 0, sw, last = ID_NONE;
    uint8_t port, by = 0;
    while (!gr_has_ends(f, leaf))
        leaf++;
    // The worst for tables: all from one leaf by one cable, to LIDs on other leaves.
    for (uint32_t lid = 1; lid <= f->top_lid && n < 4; lid++) {
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port) || port == 0 ||
            sw == leaf)
            continue;
        uint8_t entry = tables_port(t, leaf, (uint16_t)lid);
        by = n == 0 ? entry : by;
        if (entry == by && sw != last)
            flow[n++] = (struct groups_flow){leaf, (uint16_t)lid, 1};
        last = sw;
    }
    assert_int_equal(n, 4);
    struct groups_spread fixed = route_groups_spread(f, t, NULL, flow, n);
    struct groups_spread even = route_groups_spread(f, t, r.groups, flow, n);
    assert_true(fixed.max > 3.999 && fixed.max < 4.001);
    assert_true(even.max < 1.001 && even.max > 0.999);
    assert_true(even.cables > fixed.cables);
    // All to all: as many steps in all, no cable worse off.
    n = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        for (uint32_t lid = 1; gr_has_ends(f, s) && lid <= f->top_lid; lid++) {
            if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port) || port == 0)
                continue;
            if (sw == s || n == 2000)
                continue;
            flow[n++] = (struct groups_flow){s, (uint16_t)lid, 4};
        }
    }
    fixed = route_groups_spread(f, t, NULL, flow, n);
    even = route_groups_spread(f, t, r.groups, flow, n);
    assert_true(even.max < fixed.max + 0.001);
    double a = fixed.mean * fixed.cables, b = even.mean * even.cables;
    assert_true(a < b + 0.1 && b < a + 0.1);
    groups_unref(r.groups);
    tables_unref(t);
    fabric_unref(f);
}

static void refused(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("rail-64"), *z = rig_named("ft3-4-4");
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    struct groups_opts o = {.engine = ROUTE_RAIL};
    struct groups_result r, q = gr_make(f, t, &o);
    struct err e = {0};
    assert_int_equal(route_groups(z, t, &o, &r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "switches"));
    o.last = q.groups;
    assert_int_equal(route_groups(f, t, &o, &r, &e), -EINVAL);
    o.last_fabric = z;
    assert_int_equal(route_groups(f, t, &o, &r, &e), -EINVAL);
    uint64_t root = 0x1234;
    struct route_opts ro = {.root_guids = &root, .num_roots = 1};
    struct groups_opts bad = {.engine = ROUTE_RAIL, .route = &ro};
    assert_int_equal(route_groups(f, t, &bad, &r, &e), -ENOENT);
    struct fabric_tables *u = rig_route(z, ROUTE_RAIL);
    struct groups_proof p = gr_prove(z, u, q.groups, NULL);
    assert_int_equal(p.fault, GROUPS_MALFORMED);
    tables_unref(u);
    // Of an order that the tables do not keep to: by the dependencies instead.
    struct fabric_tables *m = rig_route(f, ROUTE_MINHOP);
    struct groups_opts as = {.engine = ROUTE_UPDN};
    struct groups_result x = gr_make(f, m, &as);
    gr_check(f, m, &x, NULL);
    groups_unref(x.groups);
    tables_unref(m);
    groups_unref(q.groups);
    tables_unref(t);
    fabric_unref(f);
    fabric_unref(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated),     cmocka_unit_test(grids),        cmocka_unit_test(random_fabrics),
        cmocka_unit_test(damaged_fresh), cmocka_unit_test(all_shortest), cmocka_unit_test(brute_force),
        cmocka_unit_test(storms),        cmocka_unit_test(ids_stay),     cmocka_unit_test(ids_are_fresh),
        cmocka_unit_test(caps),          cmocka_unit_test(renumbered),   cmocka_unit_test(several_lids),
        cmocka_unit_test(refused),       cmocka_unit_test(spread),       cmocka_unit_test(real_dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
