// SPDX-License-Identifier: Apache-2.0
// Repair: a pure function of blueprint and live fabric; nothing moves that was legal; everything is proved.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "tests/unit/routing/rig.h"

struct base {
    const struct fabric *f;
    struct route_result ideal;
    struct route_base *b;
};

static void base_from(struct base *x, const struct fabric *f, const struct route_result *ideal)
{
    struct route_opts o = {.engine = ideal->engine};
    struct err e = {0};
    x->f = f;
    x->ideal = *ideal;
    if (route_base_new(f, ideal, &o, &x->b, &e))
        fail_msg("%s", e.text);
}

static void base_start(struct base *x, const struct fabric *f, enum route_engine engine)
{
    struct route_opts o = {.engine = engine};
    struct route_result r;
    struct err e = {0};
    if (route_compute(f, &o, &r, &e))
        fail_msg("%s", e.text);
    base_from(x, f, &r);
}

static void base_done(struct base *x)
{
    route_base_free(x->b);
    tables_unref(x->ideal.tables);
    fabric_unref(x->f);
}

static struct route_result repair(const struct base *x, const struct fabric *live)
{
    struct route_result r;
    struct err e = {0};
    if (route_repair_from(x->b, live, NULL, &r, &e))
        fail_msg("%s", e.text);
    assert_int_equal(r.tables->num_switches, live->num_switches);
    assert_true(r.tables->lids > live->top_lid && r.tables->lids > x->f->top_lid);
    return r;
}

// --- looking on, without the engines' code ---

static const struct port *out_port(const struct fabric *f, const struct fabric_tables *t, uint32_t sw,
                                   uint16_t lid)
{
    const struct node *n = fabric_switch(f, sw);
    uint8_t out = tables_port(t, sw, lid);
    return out <= n->num_ports ? &f->port[n->first_port + out] : NULL;
}

// Whether two tables lead from a switch to a LID by the same way.
static bool same_way(const struct fabric *f, const struct fabric_tables *a, const struct fabric_tables *b,
                     uint32_t sw, uint16_t lid)
{
    for (uint32_t i = 0; i <= f->num_switches; i++) {
        const struct port *p = out_port(f, a, sw, lid);
        if (p != out_port(f, b, sw, lid))
            return false;
        const struct node *far = p && p->num > 0 ? fabric_peer_node(f, p) : NULL;
        if (!far || far->type != NODE_SWITCH)
            return true;
        sw = far->sw;
    }
    return true;
}

static void count_moved(const struct fabric *f, const struct fabric_tables *a, const struct fabric_tables *b)
{
    uint64_t moved = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        bool ends = false;
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct node *far = fabric_peer_node(f, &f->port[n->first_port + num]);
            ends |= far && far->type != NODE_SWITCH;
        }
        for (uint32_t lid = 1; ends && lid <= f->top_lid; lid++)
            moved += f->lid_port[lid] != ID_NONE && !same_way(f, a, b, s, (uint16_t)lid);
    }
    assert_int_equal(route_paths_moved(f, a, b, NULL), moved);
}

// Whether an ideal path from a switch of the blueprint passes only what is alive.
static bool path_alive(const struct base *x, const struct fabric *live, uint32_t sw, uint16_t lid)
{
    const struct fabric *f = x->f;
    for (uint32_t i = 0; i <= f->num_switches; i++) {
        const struct port *p = out_port(f, x->ideal.tables, sw, lid);
        const struct node *here = fabric_by_guid(live, fabric_switch(f, sw)->guid);
        if (!p || !here)
            return false;
        if (p->num == 0)
            return true;
        const struct node *far = fabric_peer_node(f, p);
        if (far->type != NODE_SWITCH)
            return true; // the end itself may be down
        const struct node *now = fabric_peer_node(live, &live->port[here->first_port + p->num]);
        if (!now || now->guid != far->guid)
            return false;
        sw = far->sw;
    }
    return false;
}

static void same_bytes(const struct fabric_tables *a, const struct fabric_tables *b)
{
    assert_int_equal(a->num_switches, b->num_switches);
    assert_int_equal(a->lids, b->lids);
    assert_int_equal(a->top_lid, b->top_lid);
    assert_memory_equal(a->lft, b->lft, (size_t)a->num_switches * a->lids);
}

// Whether the ideal's entry, followed by what the tables say from there, would have led to a host up and down
// the tree: then it was legal.
static bool was_legal(const struct base *x, const struct fabric *live, const struct fabric_tables *t,
                      uint32_t sw, uint16_t lid)
{
    const struct node *n = fabric_switch(live, sw), *b = fabric_by_guid(x->f, n->guid);
    uint8_t out = tables_port(x->ideal.tables, b->sw, lid);
    const struct node *then = fabric_peer_node(x->f, &x->f->port[b->first_port + out]);
    bool down = false;
    if (live->lid_port[lid] == ID_NONE || out == 0 || !then || then->type != NODE_SWITCH ||
        fabric_node(live, live->port[live->lid_port[lid]].node)->role != ROLE_HOST)
        return false;
    for (uint32_t hops = 0; hops <= live->num_switches; hops++) {
        const struct port *p = &live->port[n->first_port + out];
        const struct node *w = out > 0 && out <= n->num_ports ? fabric_peer_node(live, p) : NULL;
        if (!w)
            return false;
        if (w->type != NODE_SWITCH)
            return p->peer.i == live->lid_port[lid];
        if (hops == 0 && w->guid != then->guid)
            return false;
        uint8_t was = fabric_by_guid(x->f, n->guid)->tier, is = fabric_by_guid(x->f, w->guid)->tier;
        if (down && is > was)
            return false;
        down |= is < was;
        n = w;
        out = tables_port(t, n->sw, lid);
    }
    return false;
}

static uint8_t tier_of(const struct base *x, const struct node *n)
{
    return fabric_by_guid(x->f, n->guid)->tier;
}

// Switches that going up and then down the tree reaches from one: bit 0 still going up, bit 1 down.
static void reach_plain(const struct base *x, const struct fabric *live, uint32_t from, uint8_t *ret)
{
    uint32_t *queue = calloc(2 * live->num_switches + 1, sizeof(*queue)), head = 0, tail = 0;
    memset(ret, 0, live->num_switches);
    ret[from] = 1;
    queue[tail++] = 2 * from;
    while (head < tail) {
        uint32_t v = queue[head] / 2, down = queue[head++] % 2;
        const struct node *n = fabric_switch(live, v);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct node *w = fabric_peer_node(live, &live->port[n->first_port + num]);
            if (!w || w->type != NODE_SWITCH)
                continue;
            uint32_t falls = tier_of(x, w) < tier_of(x, n);
            if ((down && !falls) || ret[w->sw] & (1u << falls))
                continue;
            ret[w->sw] |= (uint8_t)(1u << falls);
            queue[tail++] = 2 * w->sw + falls;
        }
    }
    free(queue);
}

// Between hosts the tables go up and down the tree wherever that is possible at all.
static void hosts_stay_plain(const struct base *x, const struct fabric *live, const struct fabric_tables *t)
{
    uint8_t *reach = calloc(live->num_switches + 1, 1);
    for (uint32_t s = 0; s < live->num_switches; s++) {
        if (fabric_switch(live, s)->role != ROLE_LEAF)
            continue;
        reach_plain(x, live, s, reach);
        for (uint32_t lid = 1; lid <= live->top_lid; lid++) {
            const struct port *end = live->lid_port[lid] == ID_NONE ? NULL : &live->port[live->lid_port[lid]];
            const struct node *leaf = end ? fabric_peer_node(live, end) : NULL, *n = fabric_switch(live, s);
            if (!leaf || fabric_node(live, end->node)->role != ROLE_HOST || !reach[leaf->sw])
                continue;
            for (bool down = false; n != leaf;) {
                const struct node *w = fabric_peer_node(live, out_port(live, t, n->sw, (uint16_t)lid));
                if (down && tier_of(x, w) > tier_of(x, n))
                    fail_msg("to LID %u a path goes down and up again", lid);
                down |= tier_of(x, w) < tier_of(x, n);
                n = w;
            }
        }
    }
    free(reach);
}

// Proved from every switch; nothing moved whose ideal path is alive; returns entries that moved.
static uint64_t look(const struct base *x, const struct fabric *live, const struct route_result *r,
                     bool prove, bool tree)
{
    uint64_t moved = 0;
    struct fabric_tables *before = tables_copy_for(x->ideal.tables, x->f, live, live->top_lid);
    count_moved(live, before, r->tables);
    tables_unref(before);
    if (prove)
        rig_prove(live, r->tables);
    if (tree)
        hosts_stay_plain(x, live, r->tables);
    for (uint32_t s = 0; s < live->num_switches; s++) {
        const struct node *b = fabric_by_guid(x->f, fabric_switch(live, s)->guid);
        for (uint32_t lid = 1; b && lid <= x->f->top_lid; lid++) {
            uint8_t ideal = tables_port(x->ideal.tables, b->sw, (uint16_t)lid);
            if (tables_port(r->tables, s, (uint16_t)lid) == ideal || ideal == LFT_DROP)
                continue;
            moved++;
            if (!r->reordered && path_alive(x, live, b->sw, (uint16_t)lid) && r->anew == 0)
                fail_msg("entry of LID %u moved though its path is alive", lid);
            if (tree && was_legal(x, live, r->tables, s, (uint16_t)lid))
                fail_msg("entry of LID %u moved though it was legal", lid);
        }
    }
    assert_int_equal(moved, r->displaced);
    return moved;
}

static void shuffle(struct rig_fault *x, uint32_t n, struct rng *r)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = rng_below(r, i);
        struct rig_fault y = x[i - 1];
        x[i - 1] = x[k];
        x[k] = y;
    }
}

// Faults come one by one, the tables proved each time; then the same in another order, from a new base, and
// all healed.
static void faults(const struct fabric *f, enum route_engine engine, bool tree, unsigned num, struct rng *r,
                   unsigned *anew, unsigned *reordered)
{
    struct base x;
    struct rig_fault fault[40];
    base_start(&x, f, engine);
    for (unsigned i = 0; i < num; i++)
        rig_fault_make(f, r, &fault[i]);
    for (unsigned i = 1; i <= num; i++) {
        const struct fabric *live = rig_live(f, fault, i);
        struct route_result a = repair(&x, live);
        look(&x, live, &a, engine == ROUTE_UPDN, tree);
        *anew += a.anew > 0;
        *reordered += a.reordered;
        fabric_unref(live);
        if (i < num) {
            tables_unref(a.tables);
            continue;
        }
        shuffle(fault, num, r);
        live = rig_live(f, fault, num);
        struct base y;
        base_start(&y, fabric_ref(f), engine);
        struct route_result b = repair(&y, live);
        same_bytes(a.tables, b.tables);
        tables_unref(a.tables);
        tables_unref(b.tables);
        fabric_unref(live);
        base_done(&y);
    }
    struct route_result healed = repair(&x, f);
    assert_ptr_equal(healed.tables, x.ideal.tables);
    assert_int_equal(healed.displaced, 0);
    tables_unref(healed.tables);
    base_done(&x);
}

static void trees(void **state)
{
    static const char *const names[] = {"rail-64", "rail-256", "ft3-8-4", "ft3-16-4", "superpod-2"};
    struct rng r;
    rng_init(&r, 31);
    unsigned anew = 0, reordered = 0;
    for (unsigned i = 0; i < 5; i++)
        faults(rig_named(names[i]), ROUTE_UPDN, true, 8, &r, &anew, &reordered);
    assert_int_equal(anew, 0); // in a tree keeping never leaves a gap
}

static void any_graph(void **state)
{
    struct rng r;
    rng_init(&r, 32);
    unsigned anew = 0, reordered = 0;
    for (unsigned i = 0; i < 60; i++)
        faults(rig_random(&r, 3 + rng_below(&r, 25), 5 + rng_below(&r, 40)), ROUTE_UPDN, false, 6, &r, &anew,
               &reordered);
    assert_true(reordered > 0);
    assert_true(anew > 0);
}

static void minhop_anywhere(void **state)
{
    struct rng r;
    rng_init(&r, 33);
    unsigned anew = 0, reordered = 0;
    for (unsigned i = 0; i < 40; i++)
        faults(rig_random(&r, 3 + rng_below(&r, 25), 5 + rng_below(&r, 40)), ROUTE_MINHOP, false, 6, &r,
               &anew, &reordered);
    faults(rig_named("ft3-8-4"), ROUTE_MINHOP, false, 8, &r, &anew, &reordered);
    assert_int_equal(anew + reordered, 0);
}

// One fault in a tree, and what must be so then.
static const struct fabric *without(const struct fabric *f, uint64_t guid)
{
    struct rig_fault x = {.kind = RIG_NODE, .guid = guid};
    return rig_live(f, &x, 1);
}

static uint64_t node_of(const struct fabric *f, enum node_role role, unsigned nth)
{
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].role == role && nth-- == 0)
            return f->node[i].guid;
    }
    fail();
    return 0;
}

static void host_down(void **state)
{
    struct base x;
    base_start(&x, rig_named("ft3-8-4"), ROUTE_UPDN);
    for (unsigned i = 0; i < 8; i++) {
        const struct fabric *live = without(x.f, node_of(x.f, ROLE_HOST, i * 8));
        struct route_result r = repair(&x, live);
        assert_ptr_equal(r.tables, x.ideal.tables); // not even a copy
        assert_int_equal(r.displaced, 0);
        tables_unref(r.tables);
        fabric_unref(live);
    }
    base_done(&x);
}

static void leaf_down(void **state)
{
    struct base x;
    base_start(&x, rig_named("ft3-8-4"), ROUTE_UPDN);
    for (unsigned i = 0; i < 16; i++) {
        uint64_t guid = node_of(x.f, ROLE_LEAF, i);
        const struct fabric *live = without(x.f, guid);
        struct route_result r = repair(&x, live);
        look(&x, live, &r, true, true);
        if (guid != x.ideal.top_guid) // its hosts are out of reach: nothing is written for them
            assert_int_equal(r.displaced, 0);
        tables_unref(r.tables);
        fabric_unref(live);
    }
    base_done(&x);
}

// The one top of the order dies, or loses a cable, or another switch its only way up to it.
static void top_down(void **state)
{
    static const char *const names[] = {"rail-64", "ft3-8-4", "superpod-2"};
    for (unsigned i = 0; i < 3; i++) {
        struct base x;
        base_start(&x, rig_named(names[i]), ROUTE_UPDN);
        const struct fabric *live = without(x.f, x.ideal.top_guid);
        struct route_result r = repair(&x, live);
        assert_int_not_equal(r.top_guid, x.ideal.top_guid);
        assert_true(r.reordered);
        look(&x, live, &r, true, true);
        for (uint32_t lid = 1; lid <= live->top_lid; lid++) { // a new top moves no host's route
            if (live->lid_port[lid] == ID_NONE ||
                fabric_node(live, live->port[live->lid_port[lid]].node)->role != ROLE_HOST)
                continue;
            for (uint32_t s = 0; s < live->num_switches; s++) {
                const struct node *b = fabric_by_guid(x.f, fabric_switch(live, s)->guid);
                assert_int_equal(tables_port(r.tables, s, (uint16_t)lid),
                                 tables_port(x.ideal.tables, b->sw, (uint16_t)lid));
            }
        }
        tables_unref(r.tables);
        fabric_unref(live);
        base_done(&x);
    }
}

// The live fabric found in another order of nodes: the same entries.
static void other_numbers(void **state)
{
    struct base x;
    base_start(&x, rig_named("rail-64"), ROUTE_UPDN);
    struct builder *b = builder_new();
    struct err e;
    for (uint32_t i = x.f->num_nodes; i-- > 0;) {
        const struct node *n = &x.f->node[i];
        struct node_attrs a = node_attrs_like(n);
        node_id id;
        assert_int_equal(builder_node(b, &a, "", 0, &id, &e), 0);
        for (unsigned num = node_first_num(n); num <= n->num_ports; num++) {
            const struct port *p = &x.f->port[fabric_port_at(x.f, n, num).i];
            builder_port(b, id, num, &p->a);
            if (port_is_end(x.f, p))
                builder_port_guid(b, id, num, p->guid);
        }
    }
    for (uint32_t i = 0; i < x.f->num_ports; i++) {
        const struct port *p = &x.f->port[i], *q = port_valid(p->peer) ? fabric_port(x.f, p->peer) : NULL;
        node_id from, to;
        if (!q || i > p->peer.i)
            continue;
        assert_int_equal(builder_find(b, fabric_node(x.f, p->node)->guid, &from), 0);
        assert_int_equal(builder_find(b, fabric_node(x.f, q->node)->guid, &to), 0);
        assert_int_equal(builder_link(b, from, p->num, to, q->num), 0);
    }
    const struct fabric *live = builder_seal(b, 7, NULL);
    struct route_result r = repair(&x, live);
    assert_ptr_not_equal(r.tables, x.ideal.tables);
    look(&x, live, &r, true, true);
    assert_int_equal(r.displaced, 0);
    tables_unref(r.tables);
    fabric_unref(live);
    base_done(&x);
}

// What the blueprint has not: a new switch with a host, another host, a host that was moved.
static void beyond_the_blueprint(void **state)
{
    struct base x;
    base_start(&x, rig_named("rail-64"), ROUTE_UPDN);
    struct builder *b = builder_from(x.f);
    struct node_attrs sw = {.guid = 0xabc0, .type = NODE_SWITCH, .num_ports = 4, .lft_cap = LID_UCAST_MAX};
    struct node_attrs ca = {.guid = 0xabd0, .type = NODE_CA, .num_ports = 1};
    struct port_attrs lid = {.lid = (uint16_t)(x.f->top_lid + 100)};
    node_id s, h, leaf, mover;
    assert_int_equal(builder_node(b, &sw, "new leaf", 8, &s, NULL), 0);
    assert_int_equal(builder_node(b, &ca, "new host", 8, &h, NULL), 0);
    builder_port(b, h, 1, &lid);
    lid.lid++;
    builder_port(b, s, 0, &lid);
    assert_int_equal(builder_link(b, h, 1, s, 1), 0);
    const struct node *old_leaf = fabric_by_guid(x.f, node_of(x.f, ROLE_LEAF, 0));
    assert_int_equal(builder_find(b, old_leaf->guid, &leaf), 0);
    unsigned up = 0; // the new one takes over a cable of an old leaf
    for (unsigned num = 1; num <= old_leaf->num_ports; num++) {
        const struct node *far = fabric_peer_node(x.f, &x.f->port[old_leaf->first_port + num]);
        if (far && far->type == NODE_SWITCH)
            up = num;
    }
    const struct port *spine = fabric_port(x.f, x.f->port[old_leaf->first_port + up].peer);
    builder_unlink(b, leaf, up);
    assert_int_equal(builder_link(b, s, 2, spine->node, spine->num), 0);
    assert_int_equal(builder_find(b, node_of(x.f, ROLE_HOST, 3), &mover), 0);
    builder_unlink(b, mover, 1);
    assert_int_equal(builder_link(b, mover, 1, s, 3), 0);
    const struct fabric *live = builder_seal(b, 7, NULL);
    struct route_result r = repair(&x, live);
    rig_prove(live, r.tables);
    tables_unref(r.tables);
    fabric_unref(live);
    base_done(&x);
}

static void same_plan(const struct route_plan *a, const struct route_plan *b)
{
    assert_int_equal(a->num_waves, b->num_waves);
    assert_int_equal(a->entries, b->entries);
    assert_int_equal(a->unsafe_dests, b->unsafe_dests);
    assert_int_equal(a->dropped_dests, b->dropped_dests);
    for (uint32_t i = 0; i < a->num_waves; i++) {
        assert_int_equal(a->wave[i].num_blocks, b->wave[i].num_blocks);
        assert_memory_equal(a->wave[i].block, b->wave[i].block,
                            a->wave[i].num_blocks * sizeof(struct route_block));
        same_bytes(a->wave[i].tables, b->wave[i].tables);
    }
}

// Repair, proof of the change and plan, on threads and without: the same.
static void on_threads(void **state)
{
    static const char *const names[] = {"ft3-16-4", "rail-256", "ft3-8-4", "superpod-2"};
    struct rng r;
    rng_init(&r, 36);
    for (unsigned i = 0; i < 8; i++) {
        struct base x;
        struct rig_fault fault[3];
        struct err e;
        base_start(&x, rig_named(names[i % 4]), ROUTE_UPDN);
        for (unsigned k = 0; k < 3; k++)
            rig_fault_make(x.f, &r, &fault[k]);
        const struct fabric *live = rig_live(x.f, fault, 3);
        struct verify_opts serial = {.par = NULL}, threads = {.par = &rig_par};
        struct route_proof_state *s, *a_state, *b_state;
        struct route_proof a_proof, b_proof;
        struct route_result a = repair(&x, live), b;
        struct route_plan *a_plan, *b_plan, *c_plan;
        assert_int_equal(route_repair_from(x.b, live, &rig_par, &b, &e), 0);
        same_bytes(a.tables, b.tables);
        assert_int_equal(a.displaced, b.displaced);
        assert_true(route_verify_keep(x.f, x.ideal.tables, &threads, &a_proof, &s));
        assert_true(route_verify_change(s, x.ideal.tables, live, a.tables, &serial, &a_proof, &a_state));
        assert_true(route_verify_change(s, x.ideal.tables, live, a.tables, &threads, &b_proof, &b_state));
        assert_int_equal(a_proof.pairs, b_proof.pairs);
        assert_int_equal(a_proof.dependencies, b_proof.dependencies);
        struct fabric_tables *old = tables_copy_for(x.ideal.tables, x.f, live, live->top_lid);
        assert_int_equal(route_plan_proved(live, old, NULL, NULL, a.tables, a_state, NULL, &a_plan, &e), 0);
        assert_int_equal(route_plan_proved(live, old, NULL, NULL, a.tables, b_state, &rig_par, &b_plan, &e),
                         0);
        assert_int_equal(route_plan_make(live, old, NULL, NULL, a.tables, &rig_par, &c_plan, &e), 0);
        same_plan(a_plan, b_plan);
        assert_int_equal(a_plan->entries, c_plan->entries);
        assert_int_equal(route_paths_moved(live, old, a.tables, NULL),
                         route_paths_moved(live, old, a.tables, &rig_par));
        route_plan_free(a_plan);
        route_plan_free(b_plan);
        route_plan_free(c_plan);
        route_proof_state_free(s);
        route_proof_state_free(a_state);
        route_proof_state_free(b_state);
        tables_unref(old);
        tables_unref(a.tables);
        tables_unref(b.tables);
        fabric_unref(live);
        base_done(&x);
    }
}

// Tables that are anything at all: no crash, no end of the arrays, and what comes out is judged by the proof.
static void any_bytes(void **state)
{
    struct rng r;
    rng_init(&r, 37);
    for (unsigned i = 0; i < 60; i++) {
        struct base x;
        struct rig_fault fault[2];
        struct err e;
        const struct fabric *f = rig_random(&r, 3 + rng_below(&r, 15), 5 + rng_below(&r, 20));
        struct route_result ideal = {.engine = i % 3 == 0   ? ROUTE_FILE
                                               : i % 3 == 1 ? ROUTE_UPDN
                                                            : ROUTE_MINHOP};
        ideal.tables = tables_new(f, f->top_lid, "any");
        uint32_t most = rng_below(&r, 2) ? 256 : 12;
        for (size_t k = 0; k < (size_t)f->num_switches * ideal.tables->lids; k++)
            ideal.tables->lft[k] = (uint8_t)rng_below(&r, most);
        base_from(&x, f, &ideal);
        for (unsigned k = 0; k < 2; k++)
            rig_fault_make(f, &r, &fault[k]);
        const struct fabric *live = rig_live(f, fault, 2);
        struct route_result a = repair(&x, live), good = {.tables = rig_route(live, ROUTE_UPDN)};
        struct fabric_tables *old = tables_copy_for(ideal.tables, f, live, live->top_lid);
        struct verify_opts o = {.all_switches = false};
        struct route_proof p;
        struct route_proof_state *s, *t;
        struct route_plan *plan;
        assert_true(route_verify_keep(live, good.tables, &o, &p, &s));
        route_verify_change(s, good.tables, live, a.tables, &o, &p, &t);
        route_proof_state_free(t);
        assert_int_equal(route_plan_proved(live, old, NULL, NULL, good.tables, s, NULL, &plan, &e), 0);
        route_plan_free(plan);
        assert_int_equal(route_plan_proved(live, good.tables, NULL, NULL, old, NULL, NULL, &plan, &e), 0);
        route_plan_free(plan);
        count_moved(live, old, good.tables);
        route_proof_state_free(s);
        tables_unref(old);
        tables_unref(a.tables);
        tables_unref(good.tables);
        fabric_unref(live);
        base_done(&x);
    }
}

// Tables from elsewhere: what arrives stays, the rest finds a way.
static void found_tables(void **state)
{
    struct rng r;
    rng_init(&r, 35);
    unsigned replaced = 0, kept = 0;
    for (unsigned i = 0; i < 120; i++) {
        struct base x;
        struct rig_fault fault[2];
        const struct fabric *f =
            i % 4 ? rig_random(&r, 3 + rng_below(&r, 20), 5 + rng_below(&r, 30)) : rig_named("ft3-8-4");
        struct route_result ideal = {
            .engine = ROUTE_FILE, .tables = rig_route(f, ROUTE_UPDN), .why = "a file"};
        base_from(&x, f, &ideal);
        for (unsigned k = 0; k < 2; k++)
            rig_fault_make(f, &r, &fault[k]);
        const struct fabric *live = rig_live(f, fault, 2);
        struct route_result a = repair(&x, live);
        struct verify_opts all = {.all_switches = true, .allow_credit_loops = true}, leaves = {.par = NULL};
        struct route_proof p;
        assert_true(route_verify(live, a.tables, &all, &p));
        assert_true(route_verify(live, a.tables, &leaves, &p));
        assert_int_equal(a.engine == ROUTE_FILE, !a.replaced);
        assert_int_equal(strstr(a.why, "credit loop") != NULL, a.replaced);
        replaced += a.replaced;
        kept += !a.replaced && a.displaced > 0;
        for (uint32_t s = 0; !a.replaced && s < live->num_switches; s++) {
            const struct node *b = fabric_by_guid(f, fabric_switch(live, s)->guid);
            for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
                if (path_alive(&x, live, b->sw, (uint16_t)lid))
                    assert_int_equal(tables_port(a.tables, s, (uint16_t)lid),
                                     tables_port(ideal.tables, b->sw, (uint16_t)lid));
            }
        }
        tables_unref(a.tables);
        fabric_unref(live);
        base_done(&x);
    }
    assert_true(kept > 0);
    assert_true(replaced > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees),           cmocka_unit_test(any_graph),
        cmocka_unit_test(minhop_anywhere), cmocka_unit_test(host_down),
        cmocka_unit_test(leaf_down),       cmocka_unit_test(top_down),
        cmocka_unit_test(other_numbers),   cmocka_unit_test(beyond_the_blueprint),
        cmocka_unit_test(on_threads),      cmocka_unit_test(found_tables),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
