// SPDX-License-Identifier: Apache-2.0
// The multicast tree by properties: it holds every switch with end nodes, it is a tree, it makes no cycle
// with the unicast tables (found here by another method), and a group's masks bring one copy to every
// receiver.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "lib/xalloc.h"
#include "routing/mcast.h"
#include "tests/unit/routing/grids.h"

static struct mcast_tree *make(const struct fabric *f, const struct fabric_tables *t, uint64_t root)
{
    return mcast_tree_make(f, t, &(struct mcast_opts){.roots = &root, .num_roots = root != 0});
}

static const struct port *far_port(const struct fabric *f, uint32_t sw, unsigned num)
{
    const struct port *p = &f->port[fabric_switch(f, sw)->first_port + num];
    return port_valid(p->peer) ? fabric_port(f, p->peer) : NULL;
}

// --- the tree's form ---

static void check_form(const struct fabric *f, const struct mcast_tree *t)
{
    uint32_t in = 0;
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct mcast_step *s = &t->step[sw];
        in += s->in;
        if (!s->in || s->parent == ID_NONE)
            continue;
        const struct port *z = far_port(f, sw, s->out);
        assert_non_null(z);
        assert_int_equal(f->node[z->node.i].sw, s->parent);
        assert_int_equal(z->num, s->back);
        assert_true(t->step[s->parent].in);
        uint32_t up = sw, hops = 0;
        while (t->step[up].parent != ID_NONE && hops++ <= f->num_switches)
            up = t->step[up].parent;
        assert_true(hops <= f->num_switches);
        bool root = false;
        for (uint32_t i = 0; i < t->num_roots; i++)
            root |= t->root[i] == up;
        assert_true(root);
    }
    assert_int_equal(in, t->num_in);
}

static void check_whole(const struct fabric *f, const struct mcast_tree *t)
{
    assert_int_equal(t->num_unreached, 0);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        for (unsigned num = 1; n->type != NODE_SWITCH && num <= n->num_ports; num++) {
            uint32_t sw;
            uint8_t port;
            if (mcast_place(f, fabric_port_at(f, n, num), &sw, &port))
                assert_true(t->step[sw].in);
        }
    }
}

// --- buffer cycles, by depth-first search over (switch, out port), from every switch with an end node ---

struct graph {
    const struct fabric *f;
    uint8_t *turn; // [port of the fabric by which one leaves a switch][port by which one leaves the next]
    uint8_t *colour;
};

static uint8_t *turn_at(struct graph *g, uint32_t from, unsigned to)
{
    return &g->turn[(size_t)from * 256 + to];
}

static bool cyclic(struct graph *g, uint32_t from)
{
    const struct port *z = fabric_port(g->f, g->f->port[from].peer);
    g->colour[from] = 1;
    for (unsigned to = 1; to < 255; to++) {
        if (!*turn_at(g, from, to))
            continue;
        uint32_t next = g->f->node[z->node.i].first_port + to;
        if (g->colour[next] == 1 || (g->colour[next] == 0 && cyclic(g, next)))
            return true;
    }
    g->colour[from] = 2;
    return false;
}

static bool has_end_node(const struct fabric *f, uint32_t sw)
{
    for (unsigned num = 1; num <= fabric_switch(f, sw)->num_ports; num++) {
        const struct port *z = far_port(f, sw, num);
        if (z != NULL && f->node[z->node.i].type != NODE_SWITCH)
            return true;
    }
    return false;
}

static void unicast_turns(struct graph *g, const struct fabric_tables *t, uint32_t sw, uint16_t lid)
{
    const struct fabric *f = g->f;
    uint32_t before = ID_NONE;
    for (uint32_t hops = 0; hops <= f->num_switches; hops++) {
        unsigned out = tables_port(t, sw, lid);
        if (out == 0 || out > fabric_switch(f, sw)->num_ports)
            return;
        const struct port *z = far_port(f, sw, out);
        if (z == NULL || f->node[z->node.i].type != NODE_SWITCH)
            return;
        if (before != ID_NONE)
            *turn_at(g, before, out) = 1;
        before = fabric_switch(f, sw)->first_port + out;
        sw = f->node[z->node.i].sw;
    }
}

static bool in_tree(const struct mcast_tree *t, const struct fabric *f, uint32_t sw, unsigned num)
{
    if (t->step[sw].parent != ID_NONE && t->step[sw].out == num)
        return true;
    const struct port *z = far_port(f, sw, num);
    if (z == NULL || f->node[z->node.i].type != NODE_SWITCH)
        return false;
    const struct mcast_step *s = &t->step[f->node[z->node.i].sw];
    return s->parent == sw && s->back == num;
}

static bool lane_0(const struct fabric *f, const struct fabric_tables *tables, uint32_t sw, uint32_t lid)
{
    uint32_t at;
    uint8_t port;
    if (f->lid_port[lid] == ID_NONE || !mcast_place(f, (port_id){f->lid_port[lid]}, &at, &port))
        return false;
    return lanes_get(tables->lanes, sw, at) == 0;
}

static void check_cycles(const struct fabric *f, const struct fabric_tables *tables,
                         const struct mcast_tree *t)
{
    struct graph g = {
        .f = f, .turn = xcalloc((size_t)f->num_ports * 256, 1), .colour = xcalloc(f->num_ports, 1)};
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (uint32_t lid = 1; lid <= f->top_lid; lid++)
            if (tables->lanes == NULL ? has_end_node(f, sw) : lane_0(f, tables, sw, lid))
                unicast_turns(&g, tables, sw, (uint16_t)lid);
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (unsigned i = 1; i <= fabric_switch(f, sw)->num_ports; i++)
            for (unsigned k = 1; in_tree(t, f, sw, i) && k <= fabric_switch(f, sw)->num_ports; k++)
                if (k != i && in_tree(t, f, sw, k))
                    *turn_at(&g, f->port[fabric_switch(f, sw)->first_port + i].peer.i, k) = 1;
    bool found = false;
    for (uint32_t i = 0; i < f->num_ports && !found; i++)
        if (g.colour[i] == 0 && f->node[f->port[i].node.i].type == NODE_SWITCH && port_valid(f->port[i].peer))
            found = cyclic(&g, i);
    if (found == t->proved)
        fail_msg("proved is %d and there is %s cycle", t->proved, found ? "a" : "no");
    struct mcast_proof p;
    bool ok = mcast_verify(f, tables, t, NULL, NULL, &p);
    if (p.cycle != found || ok != (!found && t->num_unreached == 0) ||
        (p.missing > 0) != (t->num_unreached > 0))
        fail_msg("ok %d, cycle %d, missing %u: %s", ok, p.cycle, p.missing, p.counter_example);
    if (found && p.missing == 0)
        assert_non_null(strstr(p.counter_example, "wait for each other"));
    free(g.turn);
    free(g.colour);
}

// --- groups ---

static void flood(const struct fabric *f, const struct mcast_mask *mask, uint32_t n, uint32_t sw, unsigned in,
                  uint32_t *copies, uint32_t depth)
{
    assert_true(depth <= f->num_switches);
    for (uint32_t i = 0; i < n; i++) {
        if (mask[i].sw != sw)
            continue;
        for (unsigned num = 0; num < 256; num++) {
            if (num == in || !(mask[i].port[num / 64] >> (num % 64) & 1))
                continue;
            assert_true(num <= fabric_switch(f, sw)->num_ports);
            const struct port *z = num != 0 ? far_port(f, sw, num) : NULL;
            if (num == 0)
                copies[fabric_switch(f, sw)->first_port]++;
            else if (z != NULL && f->node[z->node.i].type == NODE_SWITCH)
                flood(f, mask, n, f->node[z->node.i].sw, z->num, copies, depth + 1);
            else if (z != NULL)
                copies[z - f->port]++;
        }
    }
}

// Random members, some of which only send.
static void check_group(const struct fabric *f, const struct mcast_tree *t, struct rng *r, unsigned share)
{
    struct mcast_member *m = xcalloc(f->num_ports + 1, sizeof(*m));
    uint32_t *port = xcalloc(f->num_ports + 1, sizeof(*port)),
             *copies = xcalloc(f->num_ports, sizeof(*copies));
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        if (f->node[f->port[i].node.i].type == NODE_SWITCH || rng_below(r, 100) >= share)
            continue;
        if (mcast_place(f, (port_id){i}, &m[n].sw, &m[n].port) && t->step[m[n].sw].in) {
            m[n].receives = rng_below(r, 4) != 0;
            port[n++] = i;
        }
    }
    struct mcast_mask *mask;
    uint32_t num = mcast_masks(t, m, n, &mask);
    for (uint32_t i = 1; i < num; i++)
        assert_true(mask[i - 1].sw < mask[i].sw);
    for (uint32_t from = 0; from < n; from++) {
        memset(copies, 0, f->num_ports * sizeof(*copies));
        flood(f, mask, num, m[from].sw, m[from].port, copies, 0);
        for (uint32_t i = 0; i < n; i++) {
            bool due = m[i].receives && i != from;
            if (copies[port[i]] != due)
                fail_msg("%u copies for member %u of %u", copies[port[i]], i, n);
            copies[port[i]] = 0;
        }
        for (uint32_t i = 0; i < f->num_ports; i++)
            assert_int_equal(copies[i], 0);
    }
    free(mask);
    free(m);
    free(port);
    free(copies);
}

static void check_all(const struct fabric *f, const struct fabric_tables *tables, uint64_t root,
                      struct rng *r)
{
    struct mcast_tree *t = make(f, tables, root);
    check_form(f, t);
    check_whole(f, t);
    check_cycles(f, tables, t);
    for (unsigned share = 1; share <= 100; share = share * 3 + 7)
        check_group(f, t, r, share);
    check_group(f, t, r, 100);
    mcast_tree_free(t);
}

// --- tests ---

static void test_named(void **state)
{
    static const char *const name[] = {"rail-64", "rail-256", "ft3-8-4", "ft3-16-4"};
    struct rng r;
    (void)state;
    rng_init(&r, 11);
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        const struct fabric *f = rig_named(name[i]);
        struct fabric_tables *tables = rig_route(f, ROUTE_UPDN);
        struct mcast_tree *t = make(f, tables, 0);
        assert_true(t->proved);
        assert_int_equal(t->num_roots, 1);
        // A switch of the highest tier, to which all others only go up.
        assert_int_equal(fabric_switch(f, t->root[0])->tier, f->num_tiers - 1);
        for (uint32_t sw = 0; sw < f->num_switches; sw++)
            if (t->step[sw].in && t->step[sw].parent != ID_NONE)
                assert_true(fabric_switch(f, t->step[sw].parent)->tier > fabric_switch(f, sw)->tier);
        mcast_tree_free(t);
        check_all(f, tables, 0, &r);
        tables_unref(tables);
        fabric_unref(f);
    }
}

static void test_degraded(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 12);
    for (int i = 0; i < 6; i++) {
        const struct fabric *f =
            rig_degrade(rig_named(i % 2 ? "ft3-8-4" : "rail-64"), 5 + 5 * (unsigned)i, &r);
        struct fabric_tables *tables = rig_route(f, ROUTE_UPDN);
        struct mcast_tree *t = make(f, tables, 0);
        check_form(f, t);
        check_cycles(f, tables, t);
        check_group(f, t, &r, 50);
        mcast_tree_free(t);
        tables_unref(tables);
        fabric_unref(f);
    }
}

// Irregular fabrics, and every switch as the root that was: whatever comes of it is proved rightly.
static void test_random(void **state)
{
    struct rng r;
    unsigned kept = 0, refused = 0;
    (void)state;
    rng_init(&r, 13);
    for (int i = 0; i < 12; i++) {
        const struct fabric *f = rig_random(&r, 6 + (unsigned)i, 2 + (unsigned)i);
        struct fabric_tables *tables = rig_route(f, ROUTE_UPDN);
        for (uint32_t sw = 0; sw < f->num_switches; sw++) {
            uint64_t root = fabric_switch(f, sw)->guid;
            struct mcast_tree *t = make(f, tables, root);
            bool same = t->num_roots > 0 && t->root[0] == sw;
            kept += same;
            refused += !same;
            mcast_tree_free(t);
            check_all(f, tables, root, &r);
        }
        tables_unref(tables);
        fabric_unref(f);
    }
    assert_true(kept > 0 && refused > 0); // or one of both was not tried
}

// minhop on a ring has a cycle of its own: nothing is claimed.
static void test_unicast_cycle(void **state)
{
    struct rig g;
    node_id sw[6];
    (void)state;
    rig_start(&g);
    for (int i = 0; i < 6; i++) {
        sw[i] = rig_switch(&g, 8, "ring");
        rig_host(&g, sw[i]);
    }
    for (int i = 0; i < 6; i++)
        rig_cable(&g, sw[i], sw[(i + 1) % 6]);
    const struct fabric *f = rig_done(&g);
    struct fabric_tables *tables = rig_route(f, ROUTE_MINHOP);
    struct mcast_tree *t = make(f, tables, 0);
    assert_true(t->unicast_cycle);
    assert_false(t->proved);
    check_form(f, t);
    check_whole(f, t);
    mcast_tree_free(t);
    // What was proved of the ring when it was none does not count.
    struct rig_fault cut = {.kind = RIG_CABLE, .guid = f->node[sw[0].i].guid, .num = 2};
    const struct fabric *live = rig_live(f, &cut, 1);
    struct fabric_tables *line = rig_route(live, ROUTE_MINHOP);
    struct route_proof proof;
    struct route_proof_state *before;
    assert_true(route_verify_keep(live, line, &(struct verify_opts){.all_switches = true}, &proof, &before));
    assert_non_null(before);
    t = mcast_tree_make(f, tables, &(struct mcast_opts){.proof = before});
    assert_true(t->unicast_cycle);
    assert_false(t->proved);
    mcast_tree_free(t);
    route_proof_state_free(before);
    tables_unref(line);
    fabric_unref(live);
    tables_unref(tables);
    fabric_unref(f);
}

// The root stays while it serves, whatever else would do; two runs give one result.
static void test_stable(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 14);
    const struct fabric *f = rig_named("rail-256");
    struct fabric_tables *tables = rig_route(f, ROUTE_UPDN);
    struct mcast_tree *a = make(f, tables, 0), *b = make(f, tables, 0);
    assert_int_equal(a->root[0], b->root[0]);
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        assert_int_equal(a->step[sw].parent, b->step[sw].parent);
        assert_int_equal(a->step[sw].out, b->step[sw].out);
    }
    uint32_t other = ID_NONE;
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        if (sw != a->root[0] && fabric_switch(f, sw)->tier == fabric_switch(f, a->root[0])->tier)
            other = sw;
    mcast_tree_free(b);
    b = make(f, tables, fabric_switch(f, other)->guid);
    assert_int_equal(b->root[0], other);
    mcast_tree_free(a);
    mcast_tree_free(b);
    tables_unref(tables);
    fabric_unref(f);
}

static void check_same(const struct mcast_tree *a, const struct mcast_tree *b)
{
    assert_int_equal(a->proved, b->proved);
    assert_int_equal(a->unicast_cycle, b->unicast_cycle);
    assert_int_equal(a->num_in, b->num_in);
    assert_int_equal(a->num_roots, b->num_roots);
    assert_int_equal(a->num_unreached, b->num_unreached);
    for (uint32_t i = 0; i < a->num_roots; i++)
        assert_int_equal(a->root[i], b->root[i]);
    for (uint32_t sw = 0; sw < a->num_switches; sw++) {
        assert_int_equal(a->step[sw].in, b->step[sw].in);
        assert_int_equal(a->step[sw].parent, b->step[sw].parent);
        assert_int_equal(a->step[sw].out, b->step[sw].out);
        assert_int_equal(a->step[sw].back, b->step[sw].back);
    }
}

// Whether the switch climbs to the root of its tree over links that `now` has too.
static bool can_climb(const struct fabric *f, const struct mcast_tree *t, uint32_t sw,
                      const struct fabric *now)
{
    for (; t->step[sw].parent != ID_NONE; sw = t->step[sw].parent) {
        const struct node *n = fabric_by_guid(now, fabric_switch(f, sw)->guid);
        const struct port *z = n != NULL ? far_port(now, n->sw, t->step[sw].out) : NULL;
        if (z == NULL || fabric_node(now, z->node)->guid != fabric_switch(f, t->step[sw].parent)->guid ||
            z->num != t->step[sw].back)
            return false;
    }
    return fabric_by_guid(now, fabric_switch(f, sw)->guid) != NULL;
}

struct chain {
    const struct fabric *f; // of the last step
    struct fabric_tables *tables;
    struct route_proof_state *state;
    struct mcast_tree *tree;
    uint64_t root[MCAST_ROOTS_MAX];
    bool strict;          // a tree that can stay does not close a cycle
    unsigned kept, moved; // links
};

// The next tree is the same with what the proof left behind and without; it keeps what can be kept.
static void next_tree(struct chain *x, const struct fabric *f, struct fabric_tables *t)
{
    struct verify_opts v = {.all_switches = false};
    struct route_proof proof;
    struct route_proof_state *state;
    route_verify_change(x->state, x->tables, f, t, &v, &proof, &state);
    struct mcast_opts o = {.roots = x->root,
                           .num_roots = x->tree != NULL ? x->tree->num_roots : 0,
                           .last = x->tree,
                           .last_fabric = x->f};
    struct mcast_tree *a = mcast_tree_make(f, t, &o);
    o.proof = state;
    struct mcast_tree *b = mcast_tree_make(f, t, &o);
    check_form(f, b);
    check_cycles(f, t, b);
    check_same(a, b);
    o.proof = x->state; // of other tables: at least it is bounded
    mcast_tree_free(mcast_tree_make(f, t, &o));
    for (uint32_t sw = 0; x->tree != NULL && sw < x->f->num_switches; sw++) {
        const struct node *n = fabric_by_guid(f, fabric_switch(x->f, sw)->guid);
        if (n == NULL || !has_end_node(f, n->sw) || x->tree->step[sw].parent == ID_NONE)
            continue;
        bool same = b->step[n->sw].out == x->tree->step[sw].out;
        x->kept += same;
        x->moved += !same;
        if (x->strict && x->tree->num_roots == 1 && b->num_roots == 1 && can_climb(x->f, x->tree, sw, f) &&
            fabric_switch(f, b->root[0])->guid == x->root[0] && b->proved)
            assert_true(same);
    }
    for (uint32_t i = 0; i < b->num_roots; i++)
        x->root[i] = fabric_switch(f, b->root[i])->guid;
    mcast_tree_free(a);
    mcast_tree_free(x->tree);
    route_proof_state_free(x->state);
    tables_unref(x->tables);
    fabric_unref(x->f);
    x->tree = b;
    x->state = state;
    x->tables = tables_ref(t);
    x->f = fabric_ref(f);
}

// Faults come and go, tables are repaired.
static void faults(const struct fabric *f, struct rng *r, bool strict, unsigned *kept, unsigned *moved)
{
    struct route_opts o = {.engine = ROUTE_UPDN};
    struct route_result ideal, x;
    struct route_base *base;
    struct rig_fault fault[6];
    struct err e;
    uint32_t num = 0;
    assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
    assert_int_equal(route_base_new(f, &ideal, &o, &base, &e), 0);
    struct chain c = {.f = fabric_ref(f), .tables = tables_ref(ideal.tables), .strict = strict};
    next_tree(&c, f, ideal.tables);
    for (unsigned i = 0; i < 10; i++) {
        if (num < 6 && (num == 0 || rng_below(r, 3)))
            rig_fault_make(f, r, &fault[num++]);
        else
            fault[rng_below(r, num)] = fault[num - 1], num--;
        const struct fabric *live = rig_live(f, fault, num);
        if (live->num_switches > 0) {
            if (strict || rng_below(r, 3)) {
                assert_int_equal(route_repair_from(base, live, NULL, &x, &e), 0);
            } else { // of another order: the proof keeps dependencies that no packet makes any more
                uint64_t top = fabric_switch(live, rng_below(r, live->num_switches))->guid;
                struct route_opts other = {.engine = ROUTE_UPDN, .root_guids = &top, .num_roots = 1};
                assert_int_equal(route_compute(live, &other, &x, &e), 0);
            }
            next_tree(&c, live, x.tables);
            tables_unref(x.tables);
        }
        fabric_unref(live);
    }
    *kept += c.kept;
    *moved += c.moved;
    mcast_tree_free(c.tree);
    route_proof_state_free(c.state);
    tables_unref(c.tables);
    fabric_unref(c.f);
    tables_unref(ideal.tables);
    route_base_free(base);
    fabric_unref(f);
}

static void test_faults(void **state)
{
    static const char *const name[] = {"rail-64", "ft3-8-4"};
    struct rng r;
    unsigned kept = 0, moved = 0;
    (void)state;
    rng_init(&r, 17);
    for (unsigned i = 0; i < 4; i++)
        faults(rig_named(name[i % 2]), &r, true, &kept, &moved);
    for (unsigned i = 0; i < 60; i++)
        faults(rig_random(&r, 4 + rng_below(&r, 16), 4 + rng_below(&r, 20)), &r, false, &kept, &moved);
    assert_true(moved > 0);
    assert_true(kept > 4 * moved);
}

// A link of the tree dies and comes back: who climbed by it goes another way and stays there.
static void test_kept(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4");
    struct fabric_tables *tables = rig_route(f, ROUTE_UPDN), *t;
    struct mcast_tree *a = make(f, tables, 0), *b, *c;
    uint64_t root = fabric_switch(f, a->root[0])->guid;
    uint32_t sw = 0, other = 0;
    while (!has_end_node(f, sw) || a->step[sw].parent == ID_NONE)
        sw++;
    struct rig_fault cut = {.kind = RIG_CABLE, .guid = fabric_switch(f, sw)->guid, .num = a->step[sw].out};
    const struct fabric *live = rig_live(f, &cut, 1);
    t = rig_route(live, ROUTE_UPDN);
    b = mcast_tree_make(live, t,
                        &(struct mcast_opts){.roots = &root, .num_roots = 1, .last = a, .last_fabric = f});
    assert_true(b->proved);
    for (uint32_t i = 0; i < f->num_switches; i++)
        other += a->step[i].in && b->step[i].in && a->step[i].out != b->step[i].out;
    assert_int_equal(other, 1);
    assert_int_not_equal(a->step[sw].out, b->step[sw].out);
    c = mcast_tree_make(f, tables,
                        &(struct mcast_opts){.roots = &root, .num_roots = 1, .last = b, .last_fabric = live});
    check_same(b, c);
    mcast_tree_free(a);
    mcast_tree_free(b);
    mcast_tree_free(c);
    tables_unref(tables);
    tables_unref(t);
    fabric_unref(f);
    fabric_unref(live);
}

// Two islands: a tree in each.
static void test_parts(void **state)
{
    struct rig g;
    struct rng r;
    (void)state;
    rng_init(&r, 15);
    rig_start(&g);
    node_id a = rig_switch(&g, 8, "a"), b = rig_switch(&g, 8, "b"), c = rig_switch(&g, 8, "c");
    for (int i = 0; i < 3; i++) {
        rig_host(&g, a);
        rig_host(&g, b);
        rig_host(&g, c);
    }
    rig_cable(&g, a, b);
    const struct fabric *f = rig_done(&g);
    struct fabric_tables *tables = rig_route(f, ROUTE_UPDN);
    struct mcast_tree *t = make(f, tables, 0);
    assert_int_equal(t->num_roots, 2);
    assert_true(t->proved);
    check_form(f, t);
    check_whole(f, t);
    mcast_tree_free(t);
    tables_unref(tables);
    fabric_unref(f);
}

// Tables of anything: bounded, and still a forest.
static void test_nonsense(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 16);
    const struct fabric *f = rig_named("ft3-8-4");
    for (int i = 0; i < 40; i++) {
        struct fabric_tables *tables = tables_new(f, f->top_lid, "nonsense");
        for (size_t k = 0; k < (size_t)tables->num_switches * tables->lids; k++)
            tables->lft[k] = (uint8_t)(i % 2 ? rng_below(&r, 256) : rng_below(&r, 9));
        struct mcast_tree *t =
            make(f, tables, i % 3 ? fabric_switch(f, rng_below(&r, f->num_switches))->guid : 0);
        check_form(f, t);
        check_group(f, t, &r, 30);
        mcast_tree_free(t);
        tables_unref(tables);
    }
    fabric_unref(f);
}

// Tables with virtual lanes: the tree is proved with what is in lane 0, and there is one nearly always.
static void test_lanes(void **state)
{
    struct rng r;
    unsigned made = 0, proved = 0;
    (void)state;
    rng_init(&r, 19);
    for (unsigned i = 0; i < 24; i++) {
        const struct fabric *f = i % 4 == 0   ? grids_grid(2, (unsigned[]){5 + i / 4, 6}, true, 1)
                                 : i % 4 == 1 ? grids_grid(2, (unsigned[]){4, 4 + i / 4}, false, 1)
                                 : i % 4 == 2 ? grids_dragonfly(3 + i / 8, 1, 1)
                                              : rig_random(&r, 10 + i, 20 + i);
        struct route_opts o = {.engine = ROUTE_SSSP};
        struct route_result ideal, now;
        struct err e = {0};
        assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
        for (unsigned k = 0; k < 3; k++) {
            struct rig_fault dead[4];
            for (unsigned x = 0; x < 2 * k; x++)
                rig_fault_make(f, &r, &dead[x]);
            const struct fabric *live = rig_live(f, dead, 2 * k);
            assert_int_equal(route_repair(f, &ideal, live, &o, &now, &e), 0);
            struct mcast_tree *t = make(live, now.tables, 0);
            check_form(live, t);
            check_whole(live, t);
            check_cycles(live, now.tables, t);
            check_group(live, t, &r, 60);
            made++;
            proved += t->proved;
            assert_true(t->proved || k > 0);
            mcast_tree_free(t);
            tables_unref(now.tables);
            fabric_unref(live);
        }
        tables_unref(ideal.tables);
        fabric_unref(f);
    }
    print_message("tables with lanes: %u of %u trees proved\n", proved, made);
    assert_true(proved * 10 >= made * 9);
}

// Trees that are wrong are found out.
static void test_wrong_trees(void **state)
{
    static const char *const says[] = {"is in no tree",   "no cable",        "another port",
                                       "in a circle",     "out of the tree", "no cable",
                                       "out of the tree", "in another tree", "of another fabric"};
    (void)state;
    for (unsigned i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        const struct fabric *f = rig_named("rail-64");
        struct fabric_tables *tables = rig_route(f, ROUTE_UPDN);
        struct mcast_tree *t = make(f, tables, 0);
        struct mcast_proof p;
        uint32_t sw = 0;
        assert_true(mcast_verify(f, tables, t, NULL, NULL, &p));
        assert_int_equal(p.parts, 1);
        while (!has_end_node(f, sw) || t->step[sw].parent == ID_NONE)
            sw++;
        struct mcast_step *s = &t->step[sw], *up = &t->step[s->parent];
        if (i == 0)
            *s = (struct mcast_step){.parent = ID_NONE};
        if (i == 1)
            s->out = 255;
        if (i == 2)
            s->back++;
        if (i == 3) { // the parent goes to its child
            up->parent = sw;
            up->out = s->back;
            up->back = s->out;
        }
        if (i == 4)
            s->parent = 0xfffffffe;
        if (i == 5)
            s->out = 0;
        if (i == 6)
            up->in = false;
        if (i == 7)
            s->parent = ID_NONE;
        if (i == 8)
            t->num_switches--;
        assert_false(mcast_verify(f, tables, t, NULL, NULL, &p));
        if (!strstr(p.counter_example, says[i]))
            fail_msg("%u: %s", i, p.counter_example);
        t->num_switches += i == 8;
        mcast_tree_free(t);
        tables_unref(tables);
        fabric_unref(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named),       cmocka_unit_test(test_degraded),
        cmocka_unit_test(test_random),      cmocka_unit_test(test_unicast_cycle),
        cmocka_unit_test(test_stable),      cmocka_unit_test(test_parts),
        cmocka_unit_test(test_nonsense),    cmocka_unit_test(test_faults),
        cmocka_unit_test(test_kept),        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_wrong_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
