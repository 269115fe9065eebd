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
#include "routing/groups.h"
#include "routing/mcast.h"
#include "routing/route_priv.h"
#include "tests/unit/routing/grids.h"
#include "tests/unit/routing/rig.h"

static const enum route_engine engines[] = {ROUTE_RAIL, ROUTE_UPDN, ROUTE_MINHOP, ROUTE_SSSP};
#define NUM_ENGINES (sizeof(engines) / sizeof(engines[0]))

static bool ordered(enum route_engine e)
{
    return e == ROUTE_RAIL || e == ROUTE_UPDN;
}

static struct groups_result make(const struct fabric *f, const struct fabric_tables *t,
                                 const struct groups_opts *o)
{
    struct groups_result r;
    struct err e = {0};
    if (route_groups(f, t, o, &r, &e))
        fail_msg("%s", e.text);
    return r;
}

static struct groups_result make_plain(const struct fabric *f, const struct fabric_tables *t,
                                       enum route_engine e)
{
    struct groups_opts o = {.engine = e};
    return make(f, t, &o);
}

static struct groups_proof prove(const struct fabric *f, const struct fabric_tables *t,
                                 const struct fabric_groups *g, const uint16_t *cap)
{
    struct groups_verify v = {.cap = cap}, par = {.cap = cap, .par = &rig_par};
    struct groups_proof p, q;
    route_verify_groups(f, t, g, &v, &p);
    route_verify_groups(f, t, g, &par, &q);
    assert_int_equal(p.ok, q.ok);
    assert_int_equal(p.fault, q.fault);
    assert_int_equal(p.ok, p.fault == GROUPS_OK);
    assert_int_equal(p.pairs, q.pairs);
    assert_int_equal(p.max_hops, q.max_hops);
    assert_int_equal(p.dependencies, q.dependencies);
    assert_string_equal(p.counter_example, q.counter_example);
    assert_int_equal(p.counter_example[0] == 0, p.ok);
    return p;
}

static const struct fabric_group *group_at(const struct fabric_groups *g, const struct fabric_tables *t,
                                           uint32_t s, uint16_t lid)
{
    return groups_at(g, s, lid, tables_port(t, s, lid));
}

// --- the judge ---

struct judge {
    const struct fabric *f;
    const struct fabric_tables *t;
    const struct fabric_groups *g;
    uint32_t n, ports, lanes;
    uint32_t *part;
    uint8_t *state;
    uint64_t (*dep[LANES_MAX])[4]; // [switch * ports + port]: ports of the next
    uint16_t lid;
    uint32_t end;
    uint8_t end_port;
    bool fault;
};

static uint32_t far_switch(const struct fabric *f, uint32_t s, unsigned port)
{
    const struct node *n = fabric_switch(f, s);
    if (port == 0 || port > n->num_ports)
        return ID_NONE;
    const struct node *far = fabric_peer_node(f, &f->port[n->first_port + port]);
    return far && far->type == NODE_SWITCH ? far->sw : ID_NONE;
}

static bool has_ends(const struct fabric *f, uint32_t s)
{
    const struct node *n = fabric_switch(f, s);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *far = fabric_peer_node(f, &f->port[n->first_port + num]);
        if (far && far->type != NODE_SWITCH)
            return true;
    }
    return false;
}

static void spread_part(struct judge *j, uint32_t s, uint32_t part)
{
    if (j->part[s] != ID_NONE)
        return;
    j->part[s] = part;
    for (unsigned p = 1; p < j->ports; p++) {
        if (far_switch(j->f, s, p) != ID_NONE)
            spread_part(j, far_switch(j->f, s, p), part);
    }
}

static struct port_set outs(const struct judge *j, uint32_t s)
{
    struct port_set o = {{0}};
    uint8_t port = tables_port(j->t, s, j->lid);
    const struct fabric_group *x = groups_at(j->g, s, j->lid, port);
    if (x)
        o = x->ports;
    if (port != LFT_DROP)
        o.w[port / 64] |= 1ULL << (port % 64);
    return o;
}

static void judge_from(struct judge *j, uint32_t s, uint32_t lane)
{
    struct port_set o = outs(j, s);
    bool any = false;
    j->state[s] = 1;
    for (unsigned p = 0; p < 256 && !j->fault; p++) {
        if (!port_set_has(&o, (uint8_t)p))
            continue;
        any = true;
        if (s == j->end && p == j->end_port)
            continue;
        uint32_t w = far_switch(j->f, s, p);
        if (w == ID_NONE || j->state[w] == 1) {
            j->fault = true;
            break;
        }
        struct port_set next = outs(j, w);
        for (unsigned i = 0; i < 4; i++)
            j->dep[lane][s * j->ports + p][i] |= next.w[i];
        if (j->state[w] == 0)
            judge_from(j, w, lane);
    }
    j->fault |= !any;
    j->state[s] = 2;
}

static bool judge_cycle(const struct judge *j, uint32_t lane, uint8_t *state, uint32_t chan)
{
    uint32_t w = far_switch(j->f, chan / j->ports, chan % j->ports);
    state[chan] = 1;
    for (unsigned p = 1; p < j->ports && w != ID_NONE; p++) {
        uint32_t next = w * j->ports + p;
        if (!(j->dep[lane][chan][p / 64] >> (p % 64) & 1) || far_switch(j->f, w, p) == ID_NONE)
            continue;
        if (state[next] == 1 || (state[next] == 0 && judge_cycle(j, lane, state, next)))
            return true;
    }
    state[chan] = 2;
    return false;
}

static enum groups_fault judge_walks(struct judge *j)
{
    for (uint32_t lid = 1; lid <= j->f->top_lid; lid++) {
        if (j->f->lid_port[lid] == ID_NONE || !rattachment(j->f, j->f->lid_port[lid], &j->end, &j->end_port))
            continue;
        j->lid = (uint16_t)lid;
        for (uint32_t lane = 0; lane < j->lanes; lane++) {
            memset(j->state, 0, j->n);
            for (uint32_t s = 0; s < j->n; s++) {
                const struct fabric_lanes *l = j->t->lanes;
                bool from = l ? lanes_get(l, s, j->end) == lane || lanes_get(l, j->end, s) == lane
                              : has_ends(j->f, s);
                if (from && j->part[s] == j->part[j->end] && j->state[s] == 0 &&
                    tables_port(j->t, s, j->lid) != LFT_DROP)
                    judge_from(j, s, lane);
                if (j->fault)
                    return GROUPS_LOOP; // or another of its kind
            }
        }
    }
    uint8_t *state = xmalloc(j->n * j->ports + 1u);
    bool cycle = false;
    for (uint32_t lane = 0; lane < j->lanes; lane++) {
        memset(state, 0, j->n * j->ports);
        for (uint32_t c = 0; c < j->n * j->ports && !cycle; c++)
            cycle |= state[c] == 0 && judge_cycle(j, lane, state, c);
    }
    free(state);
    return cycle ? GROUPS_CREDIT_LOOP : GROUPS_OK;
}

// GROUPS_OK, GROUPS_LOOP for whatever does not arrive, or GROUPS_CREDIT_LOOP.
static enum groups_fault judge(const struct fabric *f, const struct fabric_tables *t,
                               const struct fabric_groups *g)
{
    struct judge j = {.f = f, .t = t, .g = g, .n = f->num_switches, .ports = g->ports};
    j.lanes = t->lanes ? t->lanes->num_lanes : 1;
    j.part = xcalloc(j.n + 1u, sizeof(*j.part));
    j.state = xcalloc(j.n + 1u, 1);
    memset(j.part, 0xff, j.n * sizeof(*j.part));
    for (uint32_t s = 0; s < j.n; s++)
        spread_part(&j, s, s);
    for (uint32_t l = 0; l < j.lanes; l++)
        j.dep[l] = xcalloc(j.n * j.ports + 1u, sizeof(*j.dep[l]));
    enum groups_fault r = judge_walks(&j);
    for (uint32_t l = 0; l < j.lanes; l++)
        free(j.dep[l]);
    free(j.part);
    free(j.state);
    return r;
}

static enum groups_fault kind_of(enum groups_fault x)
{
    return x == GROUPS_OK || x == GROUPS_CREDIT_LOOP ? x : GROUPS_LOOP;
}

// What holds of all groups that are made: proved, judged alike, and in shape.
static void check(const struct fabric *f, const struct fabric_tables *t, const struct groups_result *r,
                  const uint16_t *cap)
{
    const struct fabric_groups *g = r->groups;
    struct groups_proof p = prove(f, t, g, cap);
    if (!p.ok)
        fail_msg("%s (%s)", p.counter_example, r->why);
    uint64_t adaptive = 0, choices = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t *lids = xcalloc(groups_of(g, s) + 1u, sizeof(*lids));
        for (uint32_t lid = 1; lid < g->lids; lid++) {
            const struct fabric_group *x = group_at(g, t, s, (uint16_t)lid);
            if (!x)
                continue;
            assert_true(port_set_has(&x->ports, tables_port(t, s, (uint16_t)lid)));
            assert_false(port_set_has(&x->ports, 0));
            lids[x - (g->group + g->first[s])]++;
            adaptive++;
            for (unsigned port = 1; port < 256; port++)
                choices += port_set_has(&x->ports, (uint8_t)port);
            if (lid <= f->top_lid && f->lid_port[lid] != ID_NONE) { // no switch's own, not where it hangs
                const struct port *end = &f->port[f->lid_port[lid]];
                assert_int_not_equal(end->num, 0);
                assert_true(fabric_peer_node(f, end)->sw != s);
            }
        }
        for (uint32_t i = 0; i < groups_of(g, s); i++) {
            const struct fabric_group *x = &g->group[g->first[s] + i];
            uint32_t ports = 0;
            for (unsigned port = 1; port < 256; port++)
                ports += port_set_has(&x->ports, (uint8_t)port);
            assert_true(ports >= 2);
            assert_true(x->lids > 0);
            assert_int_equal(x->lids, lids[i]);
            for (uint32_t k = 0; k < i; k++)
                assert_memory_not_equal(&x->ports, &g->group[g->first[s] + k].ports, sizeof(x->ports));
        }
        free(lids);
    }
    assert_int_equal(adaptive, r->adaptive);
    assert_int_equal(choices, r->choices);
    if (f->num_switches < 200)
        assert_int_equal(judge(f, t, g), GROUPS_OK);
}

static bool equal_groups(const struct fabric_groups *a, const struct fabric_groups *b)
{
    uint32_t n = a->num_switches;
    bool same = n == b->num_switches && a->lids == b->lids && a->first[n] == b->first[n] &&
                memcmp(a->first, b->first, (n + 1) * sizeof(*a->first)) == 0 &&
                memcmp(a->lid_switch, b->lid_switch, a->lids * sizeof(*a->lid_switch)) == 0 &&
                memcmp(a->lid_whole, b->lid_whole, a->lids) == 0 &&
                memcmp(a->to, b->to, (size_t)n * n * sizeof(*a->to)) == 0 &&
                memcmp(a->beside, b->beside, (size_t)n * a->ports * sizeof(*a->beside)) == 0;
    for (uint32_t i = 0; same && i < a->first[n]; i++)
        same = a->group[i].id == b->group[i].id && a->group[i].lids == b->group[i].lids &&
               memcmp(&a->group[i].ports, &b->group[i].ports, sizeof(a->group[i].ports)) == 0;
    return same;
}

static struct fabric_tables *try_route(const struct fabric *f, enum route_engine e)
{
    struct route_opts o = {.engine = e};
    struct route_result r;
    struct err err = {0};
    if (route_compute(f, &o, &r, &err)) {
        assert_int_equal(err.code, -ENOSPC); // not lanes enough
        return NULL;
    }
    return r.tables;
}

// --- what is made ---

// All that are made for one fabric.
static void whole(const struct fabric *f, const char *name)
{
    for (size_t i = 0; i < NUM_ENGINES; i++) {
        struct fabric_tables *t = try_route(f, engines[i]);
        if (!t)
            continue;
        struct verify_opts v = {.allow_credit_loops = true};
        struct route_proof p;
        assert_true(route_verify(f, t, &v, &p));
        struct groups_opts par = {.engine = engines[i], .par = &rig_par};
        struct groups_result r = make_plain(f, t, engines[i]), again = make(f, t, &par);
        if (!p.credit_loop)
            check(f, t, &r, NULL);
        else
            assert_int_equal(r.adaptive, 0);
        assert_true(equal_groups(r.groups, again.groups));
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

// Hops from every switch to one, over any cables.
static void hops_to(const struct fabric *f, uint32_t t, uint32_t *dist)
{
    memset(dist, 0xff, f->num_switches * sizeof(*dist));
    dist[t] = 0;
    for (uint32_t d = 0; d < f->num_switches; d++) {
        for (uint32_t s = 0; s < f->num_switches; s++) {
            for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports && dist[s] == d; p++) {
                uint32_t w = far_switch(f, s, p);
                if (w != ID_NONE && dist[w] == ID_NONE)
                    dist[w] = d + 1;
            }
        }
    }
}

// On a whole tree every port on a shortest way between leaves is legal.
static void shortest_ways(const char *name, enum route_engine e, const char *engine)
{
    const struct fabric *f = rig_named(name);
    struct fabric_tables *t = rig_route(f, e);
    struct groups_result r = make_plain(f, t, e);
    uint32_t *dist = xcalloc(f->num_switches, sizeof(*dist)), sw, at = ID_NONE;
    uint8_t port;
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port) || port == 0)
            continue;
        if (at != sw)
            hops_to(f, sw, dist);
        at = sw;
        for (uint32_t s = 0; s < f->num_switches; s++) {
            if (s == sw || !has_ends(f, s))
                continue;
            const struct fabric_group *x = group_at(r.groups, t, s, (uint16_t)lid);
            for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports; p++) {
                uint32_t w = far_switch(f, s, p);
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
            if (ordered(engines[k]))
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
        uint32_t v = far_switch(w->f, s, p);
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
    struct groups_result r = make_plain(f, t, e);
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
            uint32_t v = far_switch(f, s, tables_port(t, s, (uint16_t)lid));
            down[s] = v != ID_NONE && o.pos[v] < o.pos[s];
        }
        for (uint32_t s = 0; s < f->num_switches; s++) {
            if (s == w.end)
                continue;
            w.best = ID_NONE;
            w.first = (struct port_set){{0}};
            try_ways(&w, s, 0, 0);
            const struct fabric_group *x = group_at(r.groups, t, s, (uint16_t)lid);
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

struct base {
    const struct fabric *f;
    struct route_result ideal;
    struct route_base *b;
};

static bool base_start(struct base *x, const struct fabric *f, enum route_engine engine)
{
    struct route_opts o = {.engine = engine};
    struct err e = {0};
    *x = (struct base){.f = f};
    if (route_compute(f, &o, &x->ideal, &e))
        return false;
    if (route_base_new(f, &x->ideal, &o, &x->b, &e))
        fail_msg("%s", e.text);
    return true;
}

static void base_done(struct base *x)
{
    route_base_free(x->b);
    tables_unref(x->ideal.tables);
}

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
    struct base x;
    if (!base_start(&x, f, engine)) {
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
        struct groups_result g = make(live, rr.tables, &o);
        if (!loops(live, rr.tables))
            check(live, rr.tables, &g, NULL);
        if (ordered(engine) && g.static_lids > 0 && f->num_tiers > 0)
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
    base_done(&x);
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

// What must be written to come from one to the other.
static struct writes count_writes(const struct fabric_groups *a, const struct fabric_tables *ta,
                                  const struct fabric_groups *b, const struct fabric_tables *tb, uint32_t s)
{
    struct writes w = {0};
    uint16_t *x = xcalloc(a->lids + b->lids, sizeof(*x)), *y = xcalloc(a->lids + b->lids, sizeof(*y));
    for (uint32_t i = 0; i < groups_of(b, s); i++) {
        const struct fabric_group *q = &b->group[b->first[s] + i];
        bool same = false;
        for (uint32_t k = 0; k < groups_of(a, s); k++) {
            const struct fabric_group *p = &a->group[a->first[s] + k];
            same |= p->id == q->id && memcmp(&p->ports, &q->ports, sizeof(p->ports)) == 0;
        }
        w.groups += !same;
    }
    groups_row(a, ta, s, x);
    groups_row(b, tb, s, y);
    for (uint32_t l = 0; l < a->lids && l < b->lids; l++)
        w.entries += x[l] != y[l];
    free(x);
    free(y);
    return w;
}

static struct groups_result step(const struct base *x, const struct rig_fault *fault, uint32_t n,
                                 const struct groups_result *last, const struct fabric *last_f,
                                 const struct fabric **ret_live, const struct fabric_tables **ret_t)
{
    struct err e = {0};
    struct route_result rr;
    const struct fabric *live = rig_live(x->f, fault, n);
    if (route_repair_from(x->b, live, NULL, &rr, &e))
        fail_msg("%s", e.text);
    struct groups_opts o = {
        .base = x->b, .engine = rr.engine, .last = last ? last->groups : NULL, .last_fabric = last_f};
    struct groups_result g = make(live, rr.tables, &o);
    check(live, rr.tables, &g, NULL);
    *ret_live = live;
    *ret_t = rr.tables;
    return g;
}

// A cable that dies at a leaf: there one group is written and no entry gets another; elsewhere at most those
// of that leaf's ends. When it is back, all is as it was.
static void ids_stay(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        const struct fabric *f = rig_named(round ? "ft3-8-8" : "rail-192"), *live, *back;
        struct base x;
        assert_true(base_start(&x, f, ROUTE_RAIL));
        struct groups_opts o = {.base = x.b, .engine = ROUTE_RAIL};
        struct groups_result g0 = make(f, x.ideal.tables, &o);
        for (uint32_t s = 0; s < f->num_switches; s += 7) {
            const struct node *n = fabric_switch(f, s);
            if (!has_ends(f, s))
                continue;
            struct rig_fault fault = {RIG_CABLE, n->guid, 0};
            for (unsigned p = 1; p <= n->num_ports && fault.num == 0; p++)
                fault.num = far_switch(f, s, p) != ID_NONE ? p : 0;
            const struct fabric_tables *t1, *t2;
            struct groups_result g1 = step(&x, &fault, 1, &g0, f, &live, &t1);
            struct groups_result g2 = step(&x, NULL, 0, &g1, live, &back, &t2);
            assert_int_equal(live->num_switches, f->num_switches);
            struct writes w = count_writes(g0.groups, x.ideal.tables, g1.groups, t1, s);
            assert_int_equal(w.groups, 1);
            assert_int_equal(w.entries, 0);
            uint32_t ends = 0;
            for (unsigned p = 1; p <= n->num_ports; p++)
                ends += far_switch(f, s, p) == ID_NONE && fabric_peer_node(f, &f->port[n->first_port + p]);
            for (uint32_t v = 0; v < f->num_switches; v++) {
                w = count_writes(g0.groups, x.ideal.tables, g1.groups, t1, v);
                if (has_ends(f, v) && v != s)
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
        base_done(&x);
        fabric_unref(f);
    }
}

// New groups do not take ids that were in use, as long as there are others.
static void ids_are_fresh(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4"), *live, *next;
    struct base x;
    const struct fabric_tables *t1, *t2;
    assert_true(base_start(&x, f, ROUTE_RAIL));
    struct rig_fault fault[2] = {{RIG_CABLE, 0, 0}, {RIG_CABLE, 0, 0}};
    for (uint32_t s = 0, k = 0; s < f->num_switches && k < 2; s++) {
        const struct node *n = fabric_switch(f, s);
        if (!has_ends(f, s))
            continue;
        fault[k].guid = n->guid;
        for (unsigned p = 1; p <= n->num_ports; p++)
            fault[k].num = far_switch(f, s, p) != ID_NONE && (k == 0 || fault[k].num == 0) ? p : fault[k].num;
        k++;
    }
    struct groups_result g1 = step(&x, fault, 1, NULL, NULL, &live, &t1);
    struct groups_result g2 = step(&x, fault + 1, 1, &g1, live, &next, &t2);
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
                const struct fabric_group *p = group_at(g1.groups, t1, s, (uint16_t)lid);
                shared |= p && p->id == q->id && group_at(g2.groups, t2, s, (uint16_t)lid) == q;
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
    base_done(&x);
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
        struct groups_result all = make_plain(f, t, ROUTE_RAIL);
        uint16_t *cap = xcalloc(f->num_switches, sizeof(*cap));
        for (uint32_t s = 0; s < f->num_switches; s++)
            cap[s] = (uint16_t)rng_below(&r, 4);
        struct groups_opts o = {.engine = ROUTE_RAIL, .cap = cap, .last = all.groups, .last_fabric = f};
        struct groups_result g = make(f, t, &o);
        check(f, t, &g, cap);
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
        struct groups_proof p = prove(f, t, all.groups, cap);
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
            if (!ordered(engines[k]))
                continue;
            struct fabric_tables *t = rig_route(f, engines[k]), *u = rig_route(z, engines[k]);
            struct groups_result a = make_plain(f, t, engines[k]), b = make_plain(z, u, engines[k]);
            for (uint32_t s = 0; s < f->num_switches; s++) {
                uint32_t v = fabric_by_guid(z, fabric_switch(f, s)->guid)->sw;
                for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
                    const struct fabric_group *x = group_at(a.groups, t, s, (uint16_t)lid);
                    const struct fabric_group *y = group_at(b.groups, u, v, (uint16_t)lid);
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

// --- the proof finds what is wrong ---

// A copy that can be changed.
static struct fabric_groups *copy(const struct fabric *f, const struct fabric_groups *g)
{
    uint32_t n = g->num_switches, num = g->first[n];
    struct fabric_groups *c = groups_new(f, g->lids, num + 8);
    memcpy(c->first, g->first, (n + 1) * sizeof(*c->first));
    memcpy(c->group, g->group, num * sizeof(*c->group));
    memcpy(c->lid_switch, g->lid_switch, g->lids * sizeof(*c->lid_switch));
    memcpy(c->lid_whole, g->lid_whole, g->lids);
    memcpy(c->to, g->to, (size_t)n * n * sizeof(*c->to));
    memcpy(c->beside, g->beside, (size_t)n * g->ports * sizeof(*c->beside));
    return c;
}

static void expect(const struct fabric *f, const struct fabric_tables *t, const struct fabric_groups *g,
                   enum groups_fault fault, const char *word)
{
    struct groups_proof p = prove(f, t, g, NULL);
    print_message("%s\n", p.counter_example);
    assert_int_equal(p.fault, fault);
    assert_false(p.ok);
    assert_non_null(strstr(p.counter_example, word));
}

static void planted(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-4-4");
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    struct groups_result r = make_plain(f, t, ROUTE_RAIL);
    uint32_t leaf = 0, spine = 0;
    while (groups_of(r.groups, leaf) == 0 || !has_ends(f, leaf))
        leaf++;
    while (groups_of(r.groups, spine) == 0 || has_ends(f, spine))
        spine++;
    const struct node *ln = fabric_switch(f, leaf), *sn = fabric_switch(f, spine);
    unsigned host = 1, down = 1;
    while (far_switch(f, leaf, host) != ID_NONE)
        host++;
    while (far_switch(f, spine, down) == ID_NONE ||
           fabric_switch(f, far_switch(f, spine, down))->tier > sn->tier)
        down++;

    struct fabric_groups *g = copy(f, r.groups);
    struct fabric_group *lg = &g->group[g->first[leaf]], *sg = &g->group[g->first[spine]];
    struct fabric_group was = *lg;
    assert_true(prove(f, t, g, NULL).ok);
    lg->ports.w[host / 64] |= 1ULL << (host % 64);
    expect(f, t, g, GROUPS_WRONG_END, "which is another node");
    *lg = was;
    lg->ports.w[3] |= 1ULL << 40; // no such port
    expect(f, t, g, GROUPS_DEAD_PORT, "no usable cable");
    *lg = was;
    lg->ports.w[0] |= 1;
    expect(f, t, g, GROUPS_MALFORMED, "port 0");
    *lg = was;
    lg->id = GROUPS_CAP_MAX;
    expect(f, t, g, GROUPS_OVER_CAP, "holds 4096");
    *lg = was;
    was = *sg;
    sg->ports.w[down / 64] |= 1ULL << (down % 64); // what goes up may come down again, anywhere
    expect(f, t, g, GROUPS_LOOP, "a loop");
    *sg = was;
    g->lid_switch[40] = g->num_switches;
    expect(f, t, g, GROUPS_MALFORMED, "LID 40");
    g->lid_switch[40] = r.groups->lid_switch[40];
    g->beside[leaf * g->ports + host] = 7;
    expect(f, t, g, GROUPS_MALFORMED, "out of bounds");
    g->beside[leaf * g->ports + host] = 0; // where an end hangs: an entry for another one
    uint16_t own = fabric_port(f, f->port[ln->first_port + host].peer)->a.lid;
    lg->ports.w[host / 64] |= 1ULL << (host % 64);
    assert_non_null(group_at(g, t, leaf, own));
    struct groups_proof p = prove(f, t, g, NULL);
    assert_false(p.ok);
    groups_unref(g);

    // A switch that is chosen has no entry, though the table's own way does not pass it.
    struct fabric_tables *hole = tables_copy_for(t, f, f, t->top_lid);
    uint16_t lid = 1;
    while (!group_at(r.groups, t, leaf, lid))
        lid++;
    const struct fabric_group *x = group_at(r.groups, t, leaf, lid);
    for (unsigned q = 1; q < 256; q++) {
        if (port_set_has(&x->ports, (uint8_t)q) && q != tables_port(t, leaf, lid))
            tables_row(hole, far_switch(f, leaf, q))[lid] = LFT_DROP;
    }
    expect(f, hole, r.groups, GROUPS_NO_ENTRY, "no entry there");
    tables_unref(hole);
    groups_unref(r.groups);
    tables_unref(t);
    fabric_unref(f);
}

// A ring: the tables break it at one place, so that nothing waits in a circle. Two ways round an even ring
// are as long, but to take them all closes the circle, though no packet goes in one.
static void planted_credit_loop(void **state)
{
    (void)state;
    const struct fabric *f = grids_grid(1, (unsigned[]){6}, true, 1);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    struct groups_result r = make_plain(f, t, ROUTE_UPDN);
    check(f, t, &r, NULL);
    uint32_t n = f->num_switches, dist[6];
    struct fabric_tables *all = tables_copy_for(t, f, f, t->top_lid);
    struct fabric_groups *g = groups_new(f, t->lids, n);
    for (uint32_t s = 0; s < n; s++) { // one group a switch, both ways; entries by the nearer
        struct fabric_group *x = &g->group[s];
        *x = (struct fabric_group){.id = 0};
        for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports; p++)
            x->ports.w[0] |= far_switch(f, s, p) != ID_NONE ? 1ULL << p : 0;
        g->first[s + 1] = s + 1;
    }
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        uint32_t sw;
        uint8_t port;
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port))
            continue;
        hops_to(f, sw, dist);
        g->lid_switch[lid] = sw;
        g->lid_whole[lid] = true;
        for (uint32_t s = 0; s < n; s++) {
            for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports && s != sw; p++) {
                if (far_switch(f, s, p) != ID_NONE && dist[far_switch(f, s, p)] + 1 == dist[s])
                    tables_row(all, s)[lid] = (uint8_t)p;
            }
            if (dist[s] == 3)
                g->to[s * n + sw] = 0;
        }
    }
    expect(f, all, g, GROUPS_CREDIT_LOOP, "credit loop");
    assert_int_equal(judge(f, all, g), GROUPS_CREDIT_LOOP);
    groups_unref(g);
    groups_unref(r.groups);
    tables_unref(all);
    tables_unref(t);
    fabric_unref(f);
}

// Groups and tables changed at random: proof and judge agree.
static void proof_and_judge(void **state)
{
    struct rng r;
    unsigned bad[3] = {0};
    (void)state;
    rng_init(&r, 17);
    for (unsigned i = 0; i < 300; i++) {
        const struct fabric *f =
            i % 4 ? rig_random(&r, 3 + rng_below(&r, 8), rng_below(&r, 16)) : rig_named("ft3-4-4");
        struct fabric_tables *t = try_route(f, engines[i % NUM_ENGINES]);
        if (!t) {
            fabric_unref(f);
            continue;
        }
        struct groups_result x = make_plain(f, t, engines[i % NUM_ENGINES]);
        struct fabric_groups *g = copy(f, x.groups);
        uint32_t n = g->num_switches, num = g->first[n];
        for (unsigned k = rng_below(&r, 4); k > 0 && num > 0; k--) {
            uint32_t which = rng_below(&r, num), s = 0;
            while (g->first[s + 1] <= which)
                s++;
            unsigned p = 1 + rng_below(&r, fabric_switch(f, s)->num_ports);
            if (far_switch(f, s, p) != ID_NONE)
                g->group[which].ports.w[p / 64] |= 1ULL << (p % 64);
            g->to[s * n + rng_below(&r, n)] = (uint16_t)(which - g->first[s]);
            if (rng_below(&r, 4) == 0)
                g->beside[s * g->ports + p] = (uint16_t)(which - g->first[s]);
        }
        enum groups_fault want = judge(f, t, g), is = prove(f, t, g, NULL).fault;
        if (want != kind_of(is))
            fail_msg("round %u: judged %d, proved %d: %s", i, want, is, prove(f, t, g, NULL).counter_example);
        bad[want == GROUPS_OK ? 0 : want == GROUPS_LOOP ? 1 : 2]++;
        groups_unref(g);
        groups_unref(x.groups);
        tables_unref(t);
        fabric_unref(f);
    }
    print_message("%u hold, %u do not arrive, %u have a credit loop\n", bad[0], bad[1], bad[2]);
    assert_true(bad[0] > 20 && bad[1] > 20 && bad[2] > 5);
}

// The multicast tree's turns count too.
static void with_trees(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-4-4");
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    struct groups_result r = make_plain(f, t, ROUTE_RAIL);
    struct mcast_opts mo = {.top_guid = 0};
    struct mcast_tree *tree = mcast_tree_make(f, t, &mo);
    struct groups_verify v = {.trees = tree};
    struct groups_proof p;
    assert_true(tree->proved);
    if (!route_verify_groups(f, t, r.groups, &v, &p))
        fail_msg("%s", p.counter_example);
    struct groups_proof alone = prove(f, t, r.groups, NULL);
    assert_true(p.dependencies >= alone.dependencies);
    // A chain from leaf to leaf, down and up again at every one: such turns close circles.
    memset(tree->step, 0, tree->num_switches * sizeof(*tree->step));
    for (uint32_t s = 0; s < f->num_switches; s++)
        tree->step[s].parent = ID_NONE;
    bool *in = xcalloc(f->num_switches, 1);
    for (uint32_t s = 0, links = 0; s < f->num_switches; s++) {
        for (unsigned q = 1; q <= fabric_switch(f, s)->num_ports; q++) {
            uint32_t w = far_switch(f, s, q);
            if (w == ID_NONE || tree->step[w].in || w == 0)
                continue;
            const struct port *port = &f->port[fabric_switch(f, s)->first_port + q];
            tree->step[w] = (struct mcast_step){s, f->port[port->peer.i].num, (uint8_t)q, true};
            links++;
        }
    }
    free(in);
    assert_false(route_verify_groups(f, t, r.groups, &v, &p));
    assert_int_equal(p.fault, GROUPS_CREDIT_LOOP);
    mcast_tree_free(tree);
    groups_unref(r.groups);
    tables_unref(t);
    fabric_unref(f);
}

// While they are written: any mix of what was there and what is to be.
static void mixes(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4"), *live;
    struct base x;
    const struct fabric_tables *t;
    assert_true(base_start(&x, f, ROUTE_RAIL));
    struct groups_result was = make_plain(f, x.ideal.tables, ROUTE_RAIL);
    struct rig_fault fault = {RIG_CABLE, 0, 0};
    for (uint32_t s = 0; fault.num == 0; s++) {
        for (unsigned p = 1; has_ends(f, s) && p <= fabric_switch(f, s)->num_ports; p++) {
            if (far_switch(f, s, p) != ID_NONE)
                fault = (struct rig_fault){RIG_CABLE, fabric_switch(f, s)->guid, p};
        }
    }
    struct groups_result g = step(&x, &fault, 1, &was, f, &live, &t);
    struct groups_verify v = {.held_tables = t, .held = was.groups};
    struct groups_proof p;
    // The spine at the dead cable comes to that leaf over another one, which still may choose the spine.
    assert_false(route_verify_groups(live, t, g.groups, &v, &p));
    assert_int_equal(p.fault, GROUPS_LOOP);
    groups_unref(g.groups);
    tables_unref(t);
    t = tables_ref(x.ideal.tables);
    v.held_tables = t;
    // Fewer of them, by the same ids or others.
    uint16_t *cap = xcalloc(f->num_switches, sizeof(*cap));
    for (uint32_t s = 0; s < f->num_switches; s++)
        cap[s] = (uint16_t)(1 + s % 3);
    struct groups_opts capped = {.engine = ROUTE_RAIL, .cap = cap};
    g = make(f, t, &capped);
    if (!route_verify_groups(f, t, g.groups, &v, &p))
        fail_msg("%s", p.counter_example);
    free(cap);
    struct fabric_groups *held = copy(f, was.groups);
    uint32_t spine = 0;
    unsigned down = 1;
    while (groups_of(held, spine) == 0 || has_ends(f, spine))
        spine++;
    while (far_switch(f, spine, down) == ID_NONE || !has_ends(f, far_switch(f, spine, down)))
        down++;
    held->group[held->first[spine]].ports.w[down / 64] |= 1ULL << (down % 64);
    v.held = held;
    assert_false(route_verify_groups(f, t, g.groups, &v, &p));
    assert_int_equal(p.fault, GROUPS_LOOP);
    assert_true(prove(f, t, g.groups, NULL).ok);
    // Entries that none of the two has such ports for, but by the id of the one and the ports of the other.
    held->group[held->first[spine]].ports = was.groups->group[was.groups->first[spine]].ports;
    assert_true(route_verify_groups(f, t, g.groups, &v, &p));
    struct fabric_groups *now = copy(f, g.groups);
    struct fabric_group *odd = &now->group[now->first[spine]];
    struct port_set good = odd->ports;
    uint16_t id = held->group[held->first[spine]].id;
    for (uint32_t i = 0; i < now->num_switches; i++)
        now->to[spine * now->num_switches + i] = GROUP_NONE; // nothing goes by it any more
    odd->ports.w[down / 64] |= 1ULL << (down % 64);
    assert_int_equal(odd->id, id);
    assert_true(prove(f, t, now, NULL).ok);
    assert_false(route_verify_groups(f, t, now, &v, &p));
    odd->ports = good;
    assert_true(route_verify_groups(f, t, now, &v, &p));
    groups_unref(now);
    groups_unref(held);
    groups_unref(g.groups);
    groups_unref(was.groups);
    tables_unref(t);
    fabric_unref(live);
    base_done(&x);
    fabric_unref(f);
}

// A cable that is avoided is in no group, as it is in no entry.
static void avoided(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4");
    struct base x;
    struct err e = {0};
    assert_true(base_start(&x, f, ROUTE_RAIL));
    for (uint32_t s = 0; s < f->num_switches; s += 5) {
        unsigned p = fabric_switch(f, s)->num_ports;
        while (far_switch(f, s, p) == ID_NONE)
            p--;
        port_id id = {fabric_switch(f, s)->first_port + p};
        struct route_avoid *a = route_avoid_new(f, &id, 1);
        struct route_result rr;
        if (route_repair_avoiding(x.b, f, a, NULL, &rr, &e))
            fail_msg("%s", e.text);
        struct groups_opts o = {.base = x.b, .engine = rr.engine, .avoid = a};
        struct groups_result g = make(f, rr.tables, &o);
        check(f, rr.tables, &g, NULL);
        assert_true(g.adaptive > 0);
        const struct port *far = fabric_port(f, fabric_port(f, id)->peer);
        uint32_t w = fabric_node(f, far->node)->sw;
        for (uint32_t i = 0; i < groups_of(g.groups, s); i++)
            assert_false(port_set_has(&g.groups->group[g.groups->first[s] + i].ports, (uint8_t)p));
        for (uint32_t i = 0; i < groups_of(g.groups, w); i++)
            assert_false(port_set_has(&g.groups->group[g.groups->first[w] + i].ports, far->num));
        groups_unref(g.groups);
        tables_unref(rr.tables);
        route_avoid_free(a);
    }
    base_done(&x);
    fabric_unref(f);
}

// An entry that goes another way than those of its likes: that LID has no part in their groups.
static void one_apart(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4");
    struct fabric_tables *good = rig_route(f, ROUTE_RAIL), *t = tables_copy_for(good, f, f, good->top_lid);
    uint32_t end = 0, spine = ID_NONE, other = ID_NONE;
    uint8_t back = 0;
    unsigned host = 1;
    while (!has_ends(f, end))
        end++;
    while (far_switch(f, end, host) != ID_NONE)
        host++;
    uint16_t lid = fabric_port(f, f->port[fabric_switch(f, end)->first_port + host].peer)->a.lid;
    for (unsigned q = 1; q <= fabric_switch(f, end)->num_ports && other == ID_NONE; q++) {
        spine = far_switch(f, end, q);
        for (unsigned p = 1; spine != ID_NONE && p <= fabric_switch(f, spine)->num_ports; p++) {
            uint32_t w = far_switch(f, spine, p);
            if (w != ID_NONE && w != end && has_ends(f, w) &&
                far_switch(f, w, tables_port(t, w, lid)) != spine) {
                other = w;
                back = (uint8_t)p;
            }
        }
    }
    assert_int_not_equal(other, ID_NONE);
    tables_row(t, spine)[lid] = back; // down, and up again from there
    struct groups_result r = make_plain(f, t, ROUTE_RAIL);
    assert_int_equal(r.static_lids, 1);
    assert_false(r.groups->lid_whole[lid]);
    assert_true(r.groups->lid_whole[lid + 1]);
    assert_int_not_equal(prove(f, t, r.groups, NULL).fault, GROUPS_LOOP);
    groups_unref(r.groups);
    tables_unref(t);
    tables_unref(good);
    fabric_unref(f);
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
    struct groups_result r = make_plain(f, t, ROUTE_RAIL);
    struct groups_flow flow[2000];
    uint32_t leaf = 0, n = 0, sw, last = ID_NONE;
    uint8_t port, by = 0;
    while (!has_ends(f, leaf))
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
        for (uint32_t lid = 1; has_ends(f, s) && lid <= f->top_lid; lid++) {
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
    struct groups_result r, q = make(f, t, &o);
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
    struct groups_proof p = prove(z, u, q.groups, NULL);
    assert_int_equal(p.fault, GROUPS_MALFORMED);
    tables_unref(u);
    // Of an order that the tables do not keep to: by the dependencies instead.
    struct fabric_tables *m = rig_route(f, ROUTE_MINHOP);
    struct groups_opts as = {.engine = ROUTE_UPDN};
    struct groups_result x = make(f, m, &as);
    check(f, m, &x, NULL);
    groups_unref(x.groups);
    tables_unref(m);
    assert_true(groups_bytes(q.groups) > 0);
    groups_unref(q.groups);
    tables_unref(t);
    fabric_unref(f);
    fabric_unref(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated),
        cmocka_unit_test(grids),
        cmocka_unit_test(random_fabrics),
        cmocka_unit_test(damaged_fresh),
        cmocka_unit_test(all_shortest),
        cmocka_unit_test(brute_force),
        cmocka_unit_test(storms),
        cmocka_unit_test(ids_stay),
        cmocka_unit_test(ids_are_fresh),
        cmocka_unit_test(caps),
        cmocka_unit_test(renumbered),
        cmocka_unit_test(planted),
        cmocka_unit_test(planted_credit_loop),
        cmocka_unit_test(proof_and_judge),
        cmocka_unit_test(with_trees),
        cmocka_unit_test(refused),
        cmocka_unit_test(mixes),
        cmocka_unit_test(avoided),
        cmocka_unit_test(several_lids),
        cmocka_unit_test(one_apart),
        cmocka_unit_test(spread),
        cmocka_unit_test(real_dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
