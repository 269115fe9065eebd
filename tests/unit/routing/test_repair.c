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

// Whether the walk from a switch comes to the port that has the LID.
static bool arrives(const struct fabric *f, const struct fabric_tables *t, uint32_t sw, uint16_t lid)
{
    for (uint32_t i = 0; i <= f->num_switches; i++) {
        const struct port *p = out_port(f, t, sw, lid);
        if (!p)
            return false;
        if (p->num == 0)
            return f->lid_port[lid] == (uint32_t)(p - f->port);
        if (!port_valid(p->peer))
            return false;
        const struct port *q = fabric_port(f, p->peer);
        const struct node *far = fabric_node(f, q->node);
        if (far->type != NODE_SWITCH)
            return f->lid_port[lid] == p->peer.i;
        sw = far->sw;
    }
    return false;
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

// Proved from every switch; nothing moved whose ideal path is alive; returns entries that moved.
static uint64_t look(const struct base *x, const struct fabric *live, const struct route_result *r,
                     bool prove)
{
    uint64_t moved = 0;
    if (prove)
        rig_prove(live, r->tables);
    for (uint32_t s = 0; s < live->num_switches; s++) {
        const struct node *b = fabric_by_guid(x->f, fabric_switch(live, s)->guid);
        for (uint32_t lid = 1; b && lid <= x->f->top_lid; lid++) {
            uint8_t ideal = tables_port(x->ideal.tables, b->sw, (uint16_t)lid);
            if (tables_port(r->tables, s, (uint16_t)lid) == ideal || ideal == LFT_DROP)
                continue;
            moved++;
            if (!r->reordered && path_alive(x, live, b->sw, (uint16_t)lid) && r->anew == 0)
                fail_msg("entry of LID %u moved though its path is alive", lid);
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
static void faults(const struct fabric *f, enum route_engine engine, unsigned num, struct rng *r,
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
        look(&x, live, &a, engine == ROUTE_UPDN);
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
        faults(rig_named(names[i]), ROUTE_UPDN, 8, &r, &anew, &reordered);
    assert_int_equal(anew, 0); // in a tree keeping never leaves a gap
}

static void any_graph(void **state)
{
    struct rng r;
    rng_init(&r, 32);
    unsigned anew = 0, reordered = 0;
    for (unsigned i = 0; i < 60; i++)
        faults(rig_random(&r, 3 + rng_below(&r, 25), 5 + rng_below(&r, 40)), ROUTE_UPDN, 6, &r, &anew,
               &reordered);
    assert_true(reordered > 0);
    printf("# anew %u reordered %u\n", anew, reordered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees),
        cmocka_unit_test(any_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
