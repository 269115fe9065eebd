// SPDX-License-Identifier: Apache-2.0
// Cables that are avoided: nothing that has another way crosses them, what has none still arrives, and all is
// as before when nothing is avoided any more. Judged by walking the tables and by a plain search of the
// graph, without the code that chose.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/edit.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "tests/unit/routing/rig.h"

#define AVOID_MAX 400

struct drill {
    const struct fabric *f; // the blueprint
    struct route_result ideal;
    struct route_base *b;
    bool credit_loops; // the engine may have them
    // how often what happened: a test that never meets a case proves nothing of it
    unsigned spared, own, carried, reordered;
};

static void drill_start(struct drill *d, const struct fabric *f, enum route_engine engine)
{
    struct route_opts o = {.engine = engine == ROUTE_FILE ? ROUTE_UPDN : engine};
    struct err e = {0};
    d->f = f;
    d->credit_loops = engine == ROUTE_MINHOP;
    if (route_compute(f, &o, &d->ideal, &e))
        fail_msg("%s", e.text);
    d->ideal.engine = engine; // a file's tables are somebody's
    if (route_base_new(f, &d->ideal, &o, &d->b, &e))
        fail_msg("%s", e.text);
}

static void drill_done(struct drill *d)
{
    route_base_free(d->b);
    tables_unref(d->ideal.tables);
    fabric_unref(d->f);
}

static struct route_result repair(const struct drill *d, const struct fabric *live, const port_id *port,
                                  size_t n)
{
    struct route_result r;
    struct err e = {0};
    struct route_avoid *x = port != NULL ? route_avoid_new(live, port, n) : NULL;
    if (route_repair_avoiding(d->b, live, x, NULL, &r, &e))
        fail_msg("%s", e.text);
    route_avoid_free(x);
    return r;
}

// --- the graph, seen plainly ---

static const struct port *port_of(const struct fabric *f, uint32_t sw, unsigned num)
{
    const struct node *n = fabric_switch(f, sw);
    return num <= n->num_ports ? &f->port[n->first_port + num] : NULL;
}

static uint32_t peer_switch(const struct fabric *f, const struct port *p)
{
    const struct node *n = p != NULL && p->num > 0 ? fabric_peer_node(f, p) : NULL;
    return n != NULL && n->type == NODE_SWITCH ? n->sw : ID_NONE;
}

// Parts over cables that are not marked (per port; NULL: all).
static uint32_t *parts(const struct fabric *f, const bool *marked)
{
    uint32_t *part = malloc((f->num_switches + 1) * sizeof(*part)),
             *queue = malloc((f->num_switches + 1) * 4);
    memset(part, 0xff, (f->num_switches + 1) * sizeof(*part));
    for (uint32_t first = 0; first < f->num_switches; first++) {
        uint32_t n = 0;
        if (part[first] != ID_NONE)
            continue;
        part[first] = first;
        queue[n++] = first;
        for (uint32_t i = 0; i < n; i++) {
            for (unsigned num = 1; num <= fabric_switch(f, queue[i])->num_ports; num++) {
                const struct port *p = port_of(f, queue[i], num);
                uint32_t w = peer_switch(f, p);
                if (w == ID_NONE || part[w] != ID_NONE || (marked && marked[p - f->port]))
                    continue;
                part[w] = first;
                queue[n++] = w;
            }
        }
    }
    free(queue);
    return part;
}

static void mark(const struct fabric *f, const port_id *port, size_t n, bool *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[port[i].i] = true;
        if (port_valid(f->port[port[i].i].peer))
            ret[f->port[port[i].i].peer.i] = true;
    }
}

// Walks from a switch to a LID; returns whether a marked cable is crossed, and where it ends.
static bool crosses(const struct fabric *f, const struct fabric_tables *t, uint32_t sw, uint16_t lid,
                    const bool *marked, uint32_t *ret_end)
{
    bool crossed = false;
    for (uint32_t hops = 0; hops <= f->num_switches; hops++) {
        const struct port *p = port_of(f, sw, tables_port(t, sw, lid));
        uint32_t w = peer_switch(f, p);
        if (p == NULL || w == ID_NONE) {
            *ret_end = p == NULL ? ID_NONE : p->num == 0 ? (uint32_t)(p - f->port) : p->peer.i;
            return crossed;
        }
        crossed |= marked[p - f->port];
        sw = w;
    }
    fail_msg("LID %u goes round", lid);
    return false;
}

static uint32_t home(const struct fabric *f, uint16_t lid)
{
    const struct port *end = &f->port[f->lid_port[lid]];
    const struct node *n = fabric_node(f, end->node);
    return n->type == NODE_SWITCH ? n->sw : peer_switch(f, &f->port[end - f->port]);
}

// --- what must hold ---

static bool any_carries_on(const struct fabric *live, const port_id *port, size_t n, struct drill *d)
{
    struct route_avoid *x = route_avoid_new(live, port, n);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        enum route_avoided how = route_avoid_how(x, port[i]);
        d->spared += how == ROUTE_AVOID_SPARED;
        d->own += how == ROUTE_AVOID_OWN;
        d->carried += how == ROUTE_AVOID_CARRIES_ON;
        any |= how == ROUTE_AVOID_CARRIES_ON;
        assert_int_equal(how, route_avoid_how(x, live->port[port[i].i].peer));
    }
    route_avoid_free(x);
    return any;
}

static void proved(const struct drill *d, const struct fabric *live, const struct fabric_tables *t)
{
    struct verify_opts o = {.all_switches = d->ideal.engine != ROUTE_FILE,
                            .allow_credit_loops = d->credit_loops};
    struct route_proof p;
    if (!route_verify(live, t, &o, &p) || p.unreached > 0)
        fail_msg("%s", p.counter_example);
}

static bool is_host_lid(const struct fabric *f, uint16_t lid)
{
    return fabric_node(f, f->port[f->lid_port[lid]].node)->type != NODE_SWITCH;
}

// Every pair of a switch and a LID.
static void look(struct drill *d, const struct fabric *live, const port_id *port, size_t n, bool tree)
{
    struct route_result r = repair(d, live, port, n), plain = repair(d, live, NULL, 0);
    bool *marked = calloc(live->num_ports + 1, 1), carried = any_carries_on(live, port, n, d);
    mark(live, port, n, marked);
    uint32_t *part = parts(live, marked), *joined = parts(live, NULL), end, was_end;

    proved(d, live, r.tables);
    d->reordered += r.reordered;
    carried |= r.replaced;
    for (uint32_t lid = 1; lid <= live->top_lid; lid++) {
        if (live->lid_port[lid] == ID_NONE || home(live, (uint16_t)lid) == ID_NONE)
            continue;
        uint32_t at = home(live, (uint16_t)lid);
        for (uint32_t s = 0; s < live->num_switches; s++) {
            bool crossed = crosses(live, r.tables, s, (uint16_t)lid, marked, &end);
            if (joined[s] == joined[at])
                assert_int_equal(end, live->lid_port[lid]);
            if (crossed && part[s] == part[at] && !carried)
                fail_msg("LID %u is reached from switch %u over an avoided cable though there is another way",
                         lid, s);
            bool moved =
                tables_port(r.tables, s, (uint16_t)lid) != tables_port(plain.tables, s, (uint16_t)lid);
            if (tree && moved && !r.reordered && !plain.reordered && is_host_lid(live, (uint16_t)lid) &&
                !crosses(live, plain.tables, s, (uint16_t)lid, marked, &was_end))
                fail_msg("entry of switch %u for LID %u has moved though it led over nothing avoided", s,
                         lid);
        }
    }
    // None avoided any more, and an empty list: the same bytes.
    struct route_result again = repair(d, live, port, 0);
    assert_int_equal(tables_compare(plain.tables, again.tables).entries, 0);
    free(marked);
    free(part);
    free(joined);
    tables_unref(again.tables);
    tables_unref(r.tables);
    tables_unref(plain.tables);
}

// Where all can be spared, pulling the cables changes nothing.
static void pull(const struct drill *d, const struct fabric *live, const port_id *port, size_t n)
{
    struct route_avoid *x = route_avoid_new(live, port, n);
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all &= route_avoid_how(x, port[i]) == ROUTE_AVOID_SPARED;
    route_avoid_free(x);
    if (!all)
        return;
    const struct fabric *pulled = fabric_without_links(live, port, n);
    struct route_result a = repair(d, live, port, n), b = repair(d, pulled, port, n);
    assert_int_equal(a.tables->lids, b.tables->lids);
    assert_memory_equal(a.tables->lft, b.tables->lft, (size_t)a.tables->num_switches * a.tables->lids);
    struct route_users u;
    route_users(live, a.tables, port, n, &u);
    assert_int_equal(u.ends + u.switches, 0);
    tables_unref(a.tables);
    tables_unref(b.tables);
    fabric_unref(pulled);
}

// --- what is avoided ---

static void add_cable(const struct fabric *f, const struct port *p, port_id *port, size_t *n)
{
    if (*n < AVOID_MAX && peer_switch(f, p) != ID_NONE)
        port[(*n)++] = (port_id){(uint32_t)(p - f->port)};
}

static void add_switch(const struct fabric *f, uint32_t sw, port_id *port, size_t *n)
{
    for (unsigned num = 1; num <= fabric_switch(f, sw)->num_ports; num++)
        add_cable(f, port_of(f, sw, num), port, n);
}

// Cables and whole switches, by the share of each.
static size_t draw(const struct fabric *f, struct rng *r, unsigned cables, unsigned switches, port_id *port)
{
    size_t n = 0;
    for (unsigned i = 0; i < switches && f->num_switches > 0; i++)
        add_switch(f, rng_below(r, f->num_switches), port, &n);
    for (unsigned i = 0, tries = 0; i < cables && tries < 200 && f->num_switches > 0; tries++) {
        uint32_t sw = rng_below(r, f->num_switches);
        size_t before = n;
        add_cable(f, port_of(f, sw, 1 + rng_below(r, fabric_switch(f, sw)->num_ports)), port, &n);
        i += n > before;
    }
    return n;
}

static void drills(struct drill *d, struct rng *r, unsigned rounds, unsigned faults, bool tree)
{
    struct rig_fault fault[8];
    port_id port[AVOID_MAX];
    for (unsigned i = 0; i < rounds; i++) {
        unsigned num = faults > 0 ? rng_below(r, faults + 1) : 0;
        for (unsigned k = 0; k < num; k++)
            rig_fault_make(d->f, r, &fault[k]);
        const struct fabric *live = rig_live(d->f, fault, num);
        size_t n = draw(live, r, rng_below(r, 6), i % 3 == 0 ? 1 + rng_below(r, 2) : 0, port);
        look(d, live, port, n, tree && num == 0);
        pull(d, live, port, n);
        fabric_unref(live);
    }
}

static void trees(void **state)
{
    static const char *const names[] = {"rail-64", "ft3-8-4", "ft3-16-4", "superpod-2"};
    static const enum route_engine engines[] = {ROUTE_RAIL, ROUTE_UPDN, ROUTE_MINHOP};
    struct rng r;
    struct drill sum = {0};
    rng_init(&r, 71);
    for (unsigned i = 0; i < 12; i++) {
        struct drill d = {0};
        drill_start(&d, rig_named(names[i % 4]), engines[i / 4]);
        drills(&d, &r, 6, 4, engines[i / 4] != ROUTE_MINHOP);
        sum.spared += d.spared;
        sum.own += d.own;
        sum.reordered += d.reordered;
        drill_done(&d);
    }
    assert_true(sum.spared > 50 && sum.own > 50);
    assert_true(sum.reordered > 0);
    (void)state;
}

static void any_graph(void **state)
{
    static const enum route_engine engines[] = {ROUTE_UPDN, ROUTE_MINHOP, ROUTE_SSSP, ROUTE_FILE};
    struct rng r;
    struct drill sum = {0};
    rng_init(&r, 72);
    for (unsigned i = 0; i < 240; i++) {
        struct drill d = {0};
        drill_start(&d, rig_random(&r, 3 + rng_below(&r, 20), 2 + rng_below(&r, 30)), engines[i % 4]);
        drills(&d, &r, 4, 5, false);
        sum.spared += d.spared;
        sum.own += d.own;
        sum.carried += d.carried;
        drill_done(&d);
    }
    assert_true(sum.spared > 200 && sum.own > 200 && sum.carried > 50);
    (void)state;
}

// --- by hand ---

static uint32_t switch_of(const struct fabric *f, enum node_role role, unsigned nth)
{
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        if (fabric_switch(f, sw)->role == role && nth-- == 0)
            return sw;
    fail();
    return 0;
}

// Through a switch that is avoided as a whole nothing passes; it is reached, and reaches all.
static void whole_switch(void **state)
{
    static const struct {
        const char *name;
        enum node_role role;
    } row[] = {{"rail-256", ROLE_SPINE}, {"ft3-8-4", ROLE_SPINE}, {"ft3-8-4", ROLE_CORE}};
    for (unsigned i = 0; i < 3; i++) {
        struct drill d = {0};
        port_id port[AVOID_MAX];
        size_t n = 0;
        drill_start(&d, rig_named(row[i].name), ROUTE_RAIL);
        uint32_t sw = switch_of(d.f, row[i].role, 1);
        add_switch(d.f, sw, port, &n);
        look(&d, d.f, port, n, true);
        assert_int_equal(d.own, n);
        struct route_result r = repair(&d, d.f, port, n);
        struct route_users u;
        route_users(d.f, r.tables, port, n, &u);
        assert_int_equal(u.ends, 0);
        assert_int_equal(u.switches, 1); // its own LID
        for (uint32_t lid = 1; lid <= d.f->top_lid; lid++)
            for (uint32_t s = 0; s < d.f->num_switches && is_host_lid(d.f, (uint16_t)lid); s++)
                if (s != sw &&
                    peer_switch(d.f, port_of(d.f, s, tables_port(r.tables, s, (uint16_t)lid))) == sw)
                    fail_msg("LID %u goes through it", lid);
        tables_unref(r.tables);
        drill_done(&d);
    }
    (void)state;
}

// Ends that use a cable, against a walk from every leaf; several LIDs of one end count once.
static void users(void **state)
{
    (void)state;
    for (unsigned lmc = 0; lmc < 3; lmc++) {
        struct drill d = {0};
        drill_start(&d, rig_lids(rig_named("ft3-8-4"), lmc), ROUTE_RAIL);
        struct route_result r = repair(&d, d.f, NULL, 0);
        bool *marked = xcalloc(d.f->num_ports, sizeof(*marked));
        uint32_t sw = switch_of(d.f, ROLE_LEAF, 2), cables = 0;
        for (unsigned num = 1; num <= fabric_switch(d.f, sw)->num_ports; num++) {
            port_id port = {(uint32_t)(port_of(d.f, sw, num) - d.f->port)};
            uint32_t n[2] = {0}, end;
            if (peer_switch(d.f, &d.f->port[port.i]) == ID_NONE)
                continue;
            for (unsigned into = 0; into < 2; into++) {
                uint32_t way = into ? d.f->port[port.i].peer.i : port.i, last = ID_NONE;
                marked[way] = true;
                for (uint32_t lid = 1; lid <= d.f->top_lid; lid++)
                    for (uint32_t s = 0; s < d.f->num_switches; s++)
                        if (fabric_has_ends(d.f, s) && d.f->lid_port[lid] != ID_NONE &&
                            d.f->lid_port[lid] != last &&
                            crosses(d.f, r.tables, s, (uint16_t)lid, marked, &end)) {
                            n[into]++;
                            last = d.f->lid_port[lid];
                        }
                marked[way] = false;
            }
            struct route_users u;
            route_users(d.f, r.tables, &port, 1, &u);
            assert_true(n[0] > 0 && n[1] > 0);
            assert_int_equal(u.ends + u.switches, n[0] < n[1] ? n[0] : n[1]);
            cables++;
        }
        assert_true(cables > 1);
        free(marked);
        tables_unref(r.tables);
        drill_done(&d);
    }
}

// All uplinks of a leaf: its ends have no other way and keep what they had.
static void whole_leaf(void **state)
{
    struct drill d = {0};
    port_id port[AVOID_MAX];
    size_t n = 0;
    drill_start(&d, rig_named("rail-256"), ROUTE_RAIL);
    for (unsigned nth = 0; nth < 3; nth++) {
        n = 0;
        uint32_t sw = switch_of(d.f, ROLE_LEAF, nth);
        add_switch(d.f, sw, port, &n);
        look(&d, d.f, port, n, true);
        struct route_result r = repair(&d, d.f, port, n);
        struct route_users u;
        route_users(d.f, r.tables, port, n, &u);
        assert_int_equal(u.switches, 1); // its own LID, and what hangs on it
        assert_int_equal(u.ends, 32);
        for (uint32_t lid = 1; lid <= d.f->top_lid; lid++)
            assert_int_equal(tables_port(r.tables, sw, (uint16_t)lid),
                             tables_port(d.ideal.tables, sw, (uint16_t)lid));
        tables_unref(r.tables);
    }
    drill_done(&d);
    (void)state;
}

// One cable of a switch that is avoided as a whole: where it is to be spared above all, the others do.
static void grades(void **state)
{
    struct drill d = {0};
    port_id port[AVOID_MAX];
    struct route_users u;
    struct route_result r;
    struct err e = {0};
    size_t n = 0;
    drill_start(&d, rig_named("rail-256"), ROUTE_RAIL);
    uint32_t sw = switch_of(d.f, ROLE_SPINE, 1);
    add_switch(d.f, sw, port, &n);
    port[n] = port[3];
    port[3] = port[0];
    port[0] = port[n];
    struct route_avoid *x = route_avoid_graded(d.f, port, n, 1);
    assert_int_equal(route_avoid_how(x, port[0]), ROUTE_AVOID_SPARED);
    for (size_t i = 1; i < n; i++)
        assert_int_equal(route_avoid_how(x, port[i]), ROUTE_AVOID_OWN);
    assert_int_equal(route_repair_avoiding(d.b, d.f, x, NULL, &r, &e), 0);
    proved(&d, d.f, r.tables);
    route_users(d.f, r.tables, port, 1, &u);
    assert_int_equal(u.ends + u.switches, 0);
    route_avoid_free(x);
    tables_unref(r.tables);
    // The only ones there are cannot be spared by any grade.
    x = route_avoid_graded(d.f, port, n, n);
    assert_int_equal(route_avoid_how(x, port[0]), ROUTE_AVOID_OWN);
    route_avoid_free(x);
    drill_done(&d);
    (void)state;
}

// All spines of a pod, and all spines there are: everything carries on as it was.
static void no_other_way(void **state)
{
    struct drill d = {0};
    port_id port[AVOID_MAX];
    size_t n = 0;
    drill_start(&d, rig_named("rail-64"), ROUTE_UPDN);
    for (uint32_t sw = 0; sw < d.f->num_switches; sw++)
        if (fabric_switch(d.f, sw)->role == ROLE_SPINE)
            add_switch(d.f, sw, port, &n);
    look(&d, d.f, port, n, false);
    assert_int_equal(d.carried, n);
    struct route_result r = repair(&d, d.f, port, n);
    assert_ptr_equal(r.tables, d.ideal.tables);
    tables_unref(r.tables);
    drill_done(&d);
    (void)state;
}

// What is no cable between switches is passed over.
static void not_a_cable(void **state)
{
    struct drill d = {0};
    drill_start(&d, rig_named("rail-64"), ROUTE_UPDN);
    port_id port[] = {
        {d.f->switch_node[0]}, {UINT32_MAX}, fabric_port_at(d.f, fabric_switch(d.f, 0), 0), {0}};
    for (uint32_t i = 0; i < d.f->num_ports; i++)
        if (d.f->node[d.f->port[i].node.i].type != NODE_SWITCH)
            port[3] = (port_id){i};
    struct route_avoid *x = route_avoid_new(d.f, port + 1, 3);
    assert_int_equal(route_avoid_how(x, port[3]), ROUTE_AVOID_NOT);
    route_avoid_free(x);
    struct route_result r = repair(&d, d.f, port + 1, 3);
    assert_ptr_equal(r.tables, d.ideal.tables);
    tables_unref(r.tables);
    drill_done(&d);
    (void)state;
}

// Whether writing the one over the other takes an entry for an end node away for a while; it ends with the
// tables meant.
static bool loses(const struct fabric *f, const struct fabric_tables *old, const struct fabric_tables *now)
{
    struct route_plan *plan;
    struct err e = {0};
    bool lost = false;
    assert_int_equal(route_plan_make(f, old, NULL, NULL, now, NULL, &plan, &e), 0);
    struct fabric_tables *t = tables_copy_for(old, f, f, now->top_lid);
    for (uint32_t i = 0; i < plan->num_waves; i++) {
        const struct route_wave *w = &plan->wave[i];
        for (uint32_t b = 0; b < w->num_blocks; b++) {
            size_t at = (size_t)w->block[b].block * LFT_BLOCK;
            memcpy(tables_row(t, w->block[b].sw) + at, tables_row(w->tables, w->block[b].sw) + at, LFT_BLOCK);
        }
        for (uint32_t s = 0; s < f->num_switches; s++)
            for (uint32_t lid = 1; lid <= f->top_lid; lid++)
                if (f->lid_port[lid] != ID_NONE && is_host_lid(f, (uint16_t)lid))
                    lost |= tables_port(t, s, (uint16_t)lid) == LFT_DROP;
    }
    assert_int_equal(tables_compare(t, now).entries, 0);
    tables_unref(t);
    route_plan_free(plan);
    return lost;
}

static bool beside(const struct fabric *f, uint32_t sw, uint64_t guid)
{
    const struct node *n = fabric_switch(f, sw);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *z = fabric_peer_node(f, &f->port[n->first_port + num]);
        if (z && z->guid == guid)
            return true;
    }
    return false;
}

// Draining a switch and back takes no entry for an end node away, but for neighbours of the order's top:
// where the order turns round, old ways and new ones may wait for each other, and some are taken away first.
static void no_loss(void **state)
{
    static const char *const names[] = {"rail-256", "ft3-8-4", "ft3-16-4", "superpod-2"};
    for (unsigned i = 0; i < 4; i++) {
        struct drill d = {0};
        drill_start(&d, rig_named(names[i]), ROUTE_RAIL);
        for (uint32_t sw = 0; sw < d.f->num_switches; sw++) {
            port_id port[AVOID_MAX];
            size_t n = 0;
            add_switch(d.f, sw, port, &n);
            struct route_result r = repair(&d, d.f, port, n);
            bool lost = loses(d.f, d.ideal.tables, r.tables) || loses(d.f, r.tables, d.ideal.tables);
            assert_true(!lost || beside(d.f, sw, d.ideal.top_guid));
            tables_unref(r.tables);
        }
        drill_done(&d);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees),        cmocka_unit_test(no_loss),     cmocka_unit_test(any_graph),
        cmocka_unit_test(whole_switch), cmocka_unit_test(users),       cmocka_unit_test(whole_leaf),
        cmocka_unit_test(no_other_way), cmocka_unit_test(not_a_cable), cmocka_unit_test(grades),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
