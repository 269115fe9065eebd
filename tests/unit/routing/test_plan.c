// SPDX-License-Identifier: Apache-2.0
// Waves: every mix of a wave's before and after is free of loops, and nothing is missing at the end.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "tests/unit/routing/rig.h"

// Whether following `t` to a LID passes a switch twice from anywhere.
static bool circles(const struct fabric *f, const struct fabric_tables *t, uint16_t lid)
{
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        for (uint32_t hops = 0;; hops++) {
            if (hops > f->num_switches)
                return true;
            uint8_t out = tables_port(t, n->sw, lid);
            if (out == 0 || out > n->num_ports)
                break;
            n = fabric_peer_node(f, &f->port[n->first_port + out]);
            if (!n || n->type != NODE_SWITCH)
                break;
        }
    }
    return false;
}

static void put_block(struct fabric_tables *to, const struct fabric_tables *from, const struct route_block *b)
{
    uint32_t lid = b->block * LFT_BLOCK;
    if (lid < to->lids)
        memcpy(tables_row(to, b->sw) + lid, tables_row(from, b->sw) + lid, LFT_BLOCK);
}

struct watch {    // looked at after every few blocks
    bool plain;   // paths to hosts never go down and then up
    bool acyclic; // neither table has a credit loop: nor has what is there at any time
    uint32_t looks;
};

// Whether following `t` to a LID goes to a lower tier and then to a higher one, from anywhere.
static bool down_up(const struct fabric *f, const struct fabric_tables *t, uint16_t lid)
{
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        bool down = false;
        for (uint32_t hops = 0; hops <= f->num_switches; hops++) {
            uint8_t out = tables_port(t, n->sw, lid);
            if (out == 0 || out > n->num_ports)
                break;
            const struct node *w = fabric_peer_node(f, &f->port[n->first_port + out]);
            if (!w || w->type != NODE_SWITCH)
                break;
            if (down && w->tier > n->tier)
                return true;
            down |= w->tier < n->tier;
            n = w;
        }
    }
    return false;
}

static void look(const struct fabric *f, const struct fabric_tables *hw, const struct watch *x)
{
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] == ID_NONE)
            continue;
        assert_false(circles(f, hw, (uint16_t)lid));
        const struct node *end = fabric_node(f, f->port[f->lid_port[lid]].node);
        if (x->plain && end->role == ROLE_HOST && down_up(f, hw, (uint16_t)lid))
            fail_msg("to LID %u a path goes down and up again", lid);
    }
    if (x->acyclic) {
        struct verify_opts o = {.all_switches = true};
        struct route_proof p;
        route_verify(f, hw, &o, &p);
        assert_false(p.credit_loop);
    }
}

// Writes a wave's blocks in random order, looking every now and then.
static void write_wave(const struct fabric *f, struct fabric_tables *hw, const struct route_wave *w,
                       struct rng *r, const struct watch *x)
{
    struct route_block *b = malloc((w->num_blocks + 1) * sizeof(*b));
    memcpy(b, w->block, w->num_blocks * sizeof(*b));
    for (uint32_t i = w->num_blocks; i > 1; i--) {
        uint32_t k = rng_below(r, i);
        struct route_block y = b[i - 1];
        b[i - 1] = b[k];
        b[k] = y;
    }
    uint32_t step = w->num_blocks / x->looks + 1;
    for (uint32_t i = 0; i < w->num_blocks; i++) {
        put_block(hw, w->tables, &b[i]);
        if (i % step == 0)
            look(f, hw, x);
    }
    for (uint32_t s = 0, seen = 0; s < f->num_switches; s++) { // the index has each block once
        assert_int_equal(w->first[s], seen);
        for (; seen < w->first[s + 1]; seen++)
            assert_int_equal(w->block[w->of_switch[seen]].sw, s);
        assert_true(s + 1 < f->num_switches || seen == w->num_blocks);
    }
    free(b);
}

static struct route_plan *plan(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                               const bool *blank, const struct fabric_tables *new_tables)
{
    struct route_plan *p;
    assert_int_equal(route_plan_make(f, old, known, blank, new_tables, NULL, &p, NULL), 0);
    return p;
}

struct count {
    uint32_t unsafe, dropped, waves;
};

static void carry_out(const struct fabric *f, const struct fabric_tables *old,
                      const struct fabric_tables *new_tables, struct rng *r, const struct watch *x,
                      struct count *c)
{
    struct route_plan *p = plan(f, old, NULL, NULL, new_tables);
    assert_int_equal(p->entries, tables_compare(old, new_tables).entries);
    struct fabric_tables *hw = tables_copy_for(old, f, f, f->top_lid);
    uint32_t written = 0;
    for (uint32_t lid = 1; x->plain && p->drops && lid <= f->top_lid; lid++) { // no host's traffic stops
        for (uint32_t s = 0; s < f->num_switches && f->lid_port[lid] != ID_NONE; s++) {
            if (fabric_node(f, f->port[f->lid_port[lid]].node)->role == ROLE_HOST)
                assert_int_equal(tables_port(p->wave[0].tables, s, (uint16_t)lid),
                                 tables_port(old, s, (uint16_t)lid));
        }
    }
    for (uint32_t i = 0; i < p->num_waves; i++) {
        write_wave(f, hw, &p->wave[i], r, x);
        written += i > 0 || !p->drops ? p->wave[i].num_blocks : 0;
    }
    assert_int_equal(tables_compare(hw, new_tables).entries, 0);
    assert_int_equal(written, tables_compare(old, new_tables).blocks); // each once
    assert_int_equal(p->drops, p->dropped_dests > 0);
    if (p->unsafe_dests == 0)
        assert_int_equal(p->num_waves, p->entries ? 1 : 0);
    c->unsafe += p->unsafe_dests;
    c->dropped += p->dropped_dests;
    c->waves = p->num_waves > c->waves ? p->num_waves : c->waves;
    tables_unref(hw);
    route_plan_free(p);
}

static void nothing_to_do(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    struct route_plan *p = plan(f, t, NULL, NULL, t);
    assert_int_equal(p->num_waves, 0);
    assert_int_equal(p->entries, 0);
    route_plan_free(p);
    tables_unref(t);
    fabric_unref(f);
}

static void random_mixes(void **state)
{
    struct rng r;
    struct watch x = {.looks = 20};
    struct count c = {0};
    rng_init(&r, 21);
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_random(&r, 3 + rng_below(&r, 20), 25);
        struct fabric_tables *a = rig_route(f, ROUTE_MINHOP), *b = rig_route(f, ROUTE_UPDN);
        carry_out(f, a, b, &r, &x, &c);
        carry_out(f, b, a, &r, &x, &c);
        tables_unref(a);
        tables_unref(b);
        fabric_unref(f);
    }
    assert_true(c.unsafe > 0);
    assert_true(c.waves > 2);
    assert_true(c.dropped < c.unsafe / 2);
}

// From a full tree to a degraded one and back: old tables of the full fabric, judged on the degraded one.
static void degraded_trees(void **state)
{
    struct rng r;
    struct watch x = {.looks = 6};
    struct count c = {0};
    rng_init(&r, 22);
    for (unsigned i = 0; i < 12; i++) {
        const struct fabric *full = rig_named(i % 2 ? "ft3-8-4" : "rail-64");
        struct fabric_tables *a = rig_route(full, ROUTE_UPDN);
        const struct fabric *f = rig_degrade(fabric_ref(full), 10, &r);
        struct fabric_tables *b = rig_route(f, ROUTE_UPDN);
        carry_out(f, a, b, &r, &x, &c);
        tables_unref(a);
        tables_unref(b);
        fabric_unref(f);
        fabric_unref(full);
    }
}

// Two pods of two aggs; each core has cables to both aggs of a pod, so that an agg that lost its leaf and a
// core that still comes down to it could send to each other.
static const struct fabric *two_aggs(unsigned cores)
{
    struct rig r;
    rig_start(&r);
    node_id core[8], agg[2];
    for (unsigned i = 0; i < cores; i++)
        core[i] = rig_switch(&r, 16, "core");
    for (unsigned pod = 0; pod < 3; pod++) {
        for (unsigned i = 0; i < 2; i++) {
            agg[i] = rig_switch(&r, 16, "agg");
            for (unsigned k = 0; k < cores; k++)
                rig_cable(&r, agg[i], core[k]);
        }
        for (unsigned l = 0; l < 3; l++) {
            node_id leaf = rig_switch(&r, 16, "leaf");
            rig_cable(&r, leaf, agg[0]);
            rig_cable(&r, leaf, agg[1]);
            for (unsigned h = 0; h < 6; h++)
                rig_host(&r, leaf);
        }
    }
    return rig_done(&r);
}

// Every trunk dies and comes back: repaired tables written block by block, looked at after each one.
static void core_joins_two_aggs(void **state)
{
    struct rng r;
    struct watch x = {.plain = true, .acyclic = true, .looks = UINT32_MAX};
    struct count c = {0};
    struct route_opts o = {.engine = ROUTE_UPDN};
    struct route_result ideal, now;
    struct err e;
    const struct fabric *f = two_aggs(4);
    rng_init(&r, 23);
    assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *n = fabric_node(f, p->node), *far = fabric_peer_node(f, p);
        if (n->type != NODE_SWITCH || !far || far->type != NODE_SWITCH || i > p->peer.i)
            continue;
        struct rig_fault dead = {.kind = RIG_CABLE, .guid = n->guid, .num = p->num};
        const struct fabric *live = rig_live(f, &dead, 1);
        assert_int_equal(route_repair(f, &ideal, live, &o, &now, &e), 0);
        carry_out(live, ideal.tables, now.tables, &r, &x, &c);
        carry_out(f, now.tables, ideal.tables, &r, &x, &c);
        tables_unref(now.tables);
        fabric_unref(live);
    }
    assert_true(c.unsafe > 0);
    assert_true(c.waves > 1);
    tables_unref(ideal.tables);
    fabric_unref(f);
}

// The same on random graphs, where orders contradict each other now and then.
static void repairs_anywhere(void **state)
{
    struct rng r;
    struct watch x = {.acyclic = true, .looks = 12};
    struct count c = {0};
    struct route_opts o = {.engine = ROUTE_UPDN};
    struct err e;
    rng_init(&r, 24);
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_random(&r, 4 + rng_below(&r, 20), 10 + rng_below(&r, 30));
        struct route_result ideal, now;
        struct rig_fault dead[3];
        assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
        for (unsigned k = 0; k < 3; k++) {
            do
                rig_fault_make(f, &r, &dead[k]);
            while (dead[k].kind != RIG_CABLE);
        }
        const struct fabric *live = rig_live(f, dead, 3);
        if (live->num_switches == f->num_switches) {
            assert_int_equal(route_repair(f, &ideal, live, &o, &now, &e), 0);
            carry_out(live, ideal.tables, now.tables, &r, &x, &c);
            carry_out(f, now.tables, ideal.tables, &r, &x, &c);
            tables_unref(now.tables);
        }
        tables_unref(ideal.tables);
        fabric_unref(live);
        fabric_unref(f);
    }
    assert_true(c.unsafe > 0);
}

// Two switches that send to each other what they sent elsewhere before: the classic transient loop.
static void swapped_detour(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, 8, "a"), b = rig_switch(&r, 8, "b"), c = rig_switch(&r, 8, "c");
    node_id h = rig_host(&r, c); // c port 1
    builder_link(r.b, a, 2, b, 2);
    builder_link(r.b, a, 3, c, 3);
    builder_link(r.b, b, 4, c, 4);
    const struct fabric *f = rig_done(&r);
    uint16_t lid = f->port[f->node[h.i].first_port].a.lid;
    struct fabric_tables *x = tables_new(f, f->top_lid, "x"), *y = tables_new(f, f->top_lid, "y");
    uint32_t sa = f->node[a.i].sw, sb = f->node[b.i].sw, sc = f->node[c.i].sw;
    tables_row(x, sc)[lid] = tables_row(y, sc)[lid] = 1;
    tables_row(x, sa)[lid] = 2; // a over b
    tables_row(x, sb)[lid] = 4;
    tables_row(y, sb)[lid] = 2; // b over a
    tables_row(y, sa)[lid] = 3;
    struct route_plan *p = plan(f, x, NULL, NULL, y);
    assert_int_equal(p->num_waves, 2); // a first, as b goes over it then
    assert_int_equal(p->unsafe_dests, 1);
    assert_int_equal(p->dropped_dests, 0);
    assert_false(p->drops);
    assert_int_equal(p->entries, 2);
    assert_int_equal(p->wave[0].num_blocks, 1);
    assert_int_equal(p->wave[0].block[0].sw, sa);
    assert_int_equal(p->wave[1].num_blocks, 1);
    assert_int_equal(p->wave[1].block[0].sw, sb);
    assert_int_equal(tables_port(p->wave[1].tables, sb, lid), 2);
    route_plan_free(p);
    // A second destination of the same block that wants it the other way round is dropped for a moment.
    uint16_t other = f->port[f->node[c.i].first_port].a.lid;
    tables_row(x, sc)[other] = tables_row(y, sc)[other] = 0;
    tables_row(x, sb)[other] = 2;
    tables_row(x, sa)[other] = 3;
    tables_row(y, sa)[other] = 2;
    tables_row(y, sb)[other] = 4;
    assert_int_equal(lid / LFT_BLOCK, other / LFT_BLOCK);
    p = plan(f, x, NULL, NULL, y);
    assert_int_equal(p->num_waves, 3);
    assert_int_equal(p->unsafe_dests, 2);
    assert_int_equal(p->dropped_dests, 1);
    assert_true(p->drops);
    assert_int_equal(p->wave[0].num_blocks, 2);
    uint16_t dropped = tables_port(p->wave[0].tables, sa, lid) == LFT_DROP ? lid : other;
    uint16_t kept = dropped == lid ? other : lid;
    assert_int_equal(tables_port(p->wave[0].tables, sa, dropped), LFT_DROP);
    assert_int_equal(tables_port(p->wave[0].tables, sb, dropped), LFT_DROP);
    assert_int_equal(tables_port(p->wave[0].tables, sc, dropped), tables_port(x, sc, dropped));
    assert_int_equal(tables_port(p->wave[0].tables, sa, kept), tables_port(x, sa, kept));
    route_plan_free(p);
    // Where everything forwards nothing yet there is nothing to be afraid of.
    bool blank[3] = {true, true, true};
    p = plan(f, x, NULL, blank, y);
    assert_int_equal(p->num_waves, 1);
    assert_int_equal(p->unsafe_dests, 0);
    assert_int_equal(p->wave[0].num_blocks, 3); // whole
    route_plan_free(p);
    tables_unref(x);
    tables_unref(y);
    fabric_unref(f);
}

// A ring of four: tables that go one way round for some destinations, the other for others, none of them a
// cycle of channels; a mix turns a corner that neither table turns and would close it.
static void mixed_turn(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id sw[4], host[4];
    for (unsigned i = 0; i < 4; i++)
        sw[i] = rig_switch(&r, 8, "ring");
    for (unsigned i = 0; i < 4; i++)
        host[i] = rig_host(&r, sw[i]);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(builder_link(r.b, sw[i], 2, sw[(i + 1) % 4], 3), 0);
    // a chord, so that there is something to change to
    assert_int_equal(builder_link(r.b, sw[0], 4, sw[2], 4), 0);
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *x = tables_new(f, f->top_lid, "x"), *y = tables_new(f, f->top_lid, "y");
    uint16_t lid[4];
    uint32_t s[4];
    for (unsigned i = 0; i < 4; i++) {
        lid[i] = f->port[f->node[host[i].i].first_port].a.lid;
        s[i] = f->node[sw[i].i].sw;
    }
    // Turns clockwise over 1, 2 and 3 are there in both tables: to 2 over 1, to 3 over 2, to 0 over 3.
    for (int k = 0; k < 2; k++) {
        struct fabric_tables *t = k ? y : x;
        tables_row(t, s[0])[lid[2]] = tables_row(t, s[1])[lid[2]] = 2;
        tables_row(t, s[2])[lid[2]] = 1;
        tables_row(t, s[1])[lid[3]] = tables_row(t, s[2])[lid[3]] = 2;
        tables_row(t, s[3])[lid[3]] = 1;
        tables_row(t, s[2])[lid[0]] = tables_row(t, s[3])[lid[0]] = 2;
        tables_row(t, s[0])[lid[0]] = 1;
        tables_row(t, s[1])[lid[1]] = 1;
    }
    // To 1 from 3: clockwise over 0 and the chord's end 2 before ...; the turn 3 -> 0 -> 1 only in a mix.
    tables_row(x, s[3])[lid[1]] = 2; // 3 -> 0 -> chord -> 2 -> back to 1
    tables_row(x, s[0])[lid[1]] = 4;
    tables_row(x, s[2])[lid[1]] = 3;
    tables_row(y, s[3])[lid[1]] = 3; // 3 -> 2 -> 1, and 0 -> 1
    tables_row(y, s[0])[lid[1]] = 2;
    tables_row(y, s[2])[lid[1]] = 3;
    struct verify_opts o = {.allow_credit_loops = false, .all_switches = false};
    struct route_proof proof;
    route_verify(f, x, &o, &proof);
    assert_int_not_equal(proof.fault, ROUTE_CREDIT_LOOP);
    struct route_plan *p = plan(f, x, NULL, NULL, y);
    // Switch 0 still has the turn to the chord, 3 comes by it: 3 leaves that way before 0 turns to 1.
    assert_int_equal(p->unsafe_dests, 1);
    assert_int_equal(p->dropped_dests, 0);
    assert_int_equal(p->num_waves, 2);
    assert_int_equal(p->wave[0].num_blocks, 1);
    assert_int_equal(p->wave[0].block[0].sw, s[3]);
    assert_int_equal(p->wave[1].block[0].sw, s[0]);
    route_plan_free(p);
    tables_unref(x);
    tables_unref(y);
    fabric_unref(f);
}

static void unknown_switch(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    bool *known = malloc(f->num_switches);
    memset(known, true, f->num_switches);
    known[1] = false;
    struct route_plan *p = plan(f, t, known, NULL, t);
    uint32_t blocks = t->lids / LFT_BLOCK;
    assert_int_equal(p->num_waves, 2);
    assert_int_equal(p->wave[0].num_blocks, blocks);
    assert_int_equal(p->wave[1].num_blocks, blocks);
    for (uint32_t i = 0; i < blocks; i++) {
        assert_int_equal(p->wave[0].block[i].sw, 1);
        assert_int_equal(p->wave[0].block[i].block, i);
    }
    for (uint32_t lid = 0; lid < t->lids; lid++)
        assert_int_equal(tables_port(p->wave[0].tables, 1, (uint16_t)lid), LFT_DROP);
    assert_int_equal(tables_compare(p->wave[1].tables, t).entries, 0);
    route_plan_free(p);
    free(known);
    tables_unref(t);
    fabric_unref(f);
}

static void cold_start_takes_turns(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN), *none = tables_new(f, 0, "none");
    bool *blank = malloc(f->num_switches);
    memset(blank, true, f->num_switches);
    struct route_plan *p = plan(f, none, NULL, blank, t);
    assert_int_equal(p->num_waves, 1);
    assert_int_equal(p->wave[0].num_blocks, f->num_switches * (t->top_lid / LFT_BLOCK + 1));
    for (uint32_t i = 0; i < f->num_switches; i++) {
        assert_int_equal(p->wave[0].block[i].sw, i);
        assert_int_equal(p->wave[0].block[i].block, 0);
    }
    route_plan_free(p);
    free(blank);
    tables_unref(none);
    tables_unref(t);
    fabric_unref(f);
}

// Old tables that reach further: what is beyond the new ones' end is taken back.
static void shrinking(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    struct fabric_tables *old = tables_copy_for(t, f, f, 1000);
    tables_row(old, 0)[900] = 3;
    struct route_plan *p = plan(f, old, NULL, NULL, t);
    assert_int_equal(p->entries, 1);
    assert_int_equal(p->num_waves, 1);
    assert_int_equal(p->wave[0].num_blocks, 1);
    assert_int_equal(p->wave[0].block[0].block, 900 / LFT_BLOCK);
    assert_int_equal(tables_port(p->wave[0].tables, 0, 900), LFT_DROP);
    route_plan_free(p);
    tables_unref(old);
    const struct fabric *g = rig_named("ft3-4-2");
    struct err e;
    struct route_plan *none;
    assert_int_equal(route_plan_make(g, t, NULL, NULL, t, NULL, &none, &e), -EINVAL);
    fabric_unref(g);
    tables_unref(t);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_to_do),       cmocka_unit_test(random_mixes),
        cmocka_unit_test(degraded_trees),      cmocka_unit_test(swapped_detour),
        cmocka_unit_test(mixed_turn),          cmocka_unit_test(unknown_switch),
        cmocka_unit_test(shrinking),           cmocka_unit_test(cold_start_takes_turns),
        cmocka_unit_test(core_joins_two_aggs), cmocka_unit_test(repairs_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
