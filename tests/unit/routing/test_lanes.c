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
#include "lib/xalloc.h"
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
    unsigned repairs, anew, moved;
    uint64_t pairs, lanes;
};

// One state of the fabric, judged; the same with its switches numbered otherwise.
static void repair(struct base *x, const struct rig_fault *dead, unsigned num, struct rng *r, struct count *c)
{
    struct route_result now = {0}, again;
    struct err e = {0};
    const struct fabric *live = rig_live(x->f, dead, num), *other = rig_renumber(live, r);
    c->repairs++;
    assert_int_equal(route_repair_from(x->b, live, r->s[0] % 2 ? &rig_par : NULL, &now, &e), 0);
    if (now.tables->lanes)
        grids_judge(live, now.tables, 8);
    else
        rig_prove(live, now.tables);
    assert_int_equal(route_repair_from(x->b, other, NULL, &again, &e), 0);
    same_by_guid(live, now.tables, other, again.tables);
    assert_int_equal(now.replaced, again.replaced);
    c->anew += now.replaced;
    if (now.replaced) {
        assert_non_null(strstr(now.why, now.tables->lanes ? "computed anew" : "while it is damaged so"));
        assert_non_null(strstr(now.why, "virtual lanes"));
    } else {
        assert_int_equal(now.lanes_moved, moved_lanes(x, live, now.tables));
        c->moved += now.lanes_moved > 0;
        c->lanes += now.lanes_moved;
        c->pairs += live->num_switches * (live->num_switches - 1) / 2;
    }
    tables_unref(now.tables);
    tables_unref(again.tables);
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
    print_message("%u repairs: anew %u; lanes moved in %u of them, %.2f %% of all pairs\n", c.repairs, c.anew,
                  c.moved, 100.0 * (double)c.lanes / (double)c.pairs);
    assert_true(c.anew * 20 <= c.repairs);
    assert_true(c.lanes * 25 <= c.pairs);
}

// Not a lane to spare: all anew, or updn, which says how many there would have to be.
static void test_too_few(void **state)
{
    (void)state;
    struct rng r;
    unsigned anew = 0, updn = 0, repaired = 0;
    rng_init(&r, 27);
    for (unsigned i = 0; i < 40; i++) {
        const struct fabric *f =
            i % 2 ? grids_grid(2, (unsigned[]){6, 6}, true, 1) : grids_grid(2, (unsigned[]){6, 5}, false, 1);
        struct route_opts o = {.engine = ROUTE_SSSP};
        struct route_result ideal, now = {0};
        struct err e = {0};
        struct rig_fault dead[6];
        assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
        o.lanes = (uint8_t)ideal.tables->lanes->num_lanes;
        for (unsigned k = 0; k < 1 + i / 8; k++)
            rig_fault_make(f, &r, &dead[k]);
        const struct fabric *live = rig_live(f, dead, 1 + i / 8);
        assert_int_equal(route_repair(f, &ideal, live, &o, &now, &e), 0);
        if (now.tables->lanes) {
            grids_judge(live, now.tables, 8);
            assert_true(now.tables->lanes->num_lanes <= o.lanes);
            anew += now.replaced;
            repaired += !now.replaced;
        } else {
            rig_prove(live, now.tables);
            assert_true(now.replaced);
            assert_int_equal(now.engine, ROUTE_UPDN);
            assert_non_null(strstr(now.why, "while it is damaged so"));
            assert_non_null(strstr(now.why, "sssp would need"));
            updn++;
        }
        tables_unref(now.tables);
        tables_unref(ideal.tables);
        fabric_unref(live);
        fabric_unref(f);
    }
    print_message("no lane to spare: %u repaired, %u anew, %u by updn\n", repaired, anew, updn);
    assert_true(repaired > 0 && anew > 0 && updn > 0);
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
    small(grids_grid(2, (unsigned[]){8, 8}, true, 2), "torus 8x8", 2, 4);
    small(grids_grid(3, (unsigned[]){4, 4, 4}, true, 1), "torus 4x4x4", 1, 1);
    small(grids_grid(2, (unsigned[]){10, 10}, false, 1), "mesh 10x10", 2, 3);
    small(grids_grid(6, (unsigned[]){2, 2, 2, 2, 2, 2}, false, 1), "6-dimensional cube", 2, 1);
    small(grids_dragonfly(4, 2, 2), "dragonfly 4, 2", 3, 3);
    small(rig_random(&r, 60, 90), "random graph", 3, 4);
}

// --- waves ---

// Bits of lanes that are in use: the old ones, without those of stale pairs, and, after the waves, the new
// ones.
static uint8_t *in_use(const struct fabric *f, const struct fabric_tables *old,
                       const struct fabric_tables *now, const struct route_plan *p, bool after)
{
    uint32_t n = old->num_switches;
    uint8_t *may = xcalloc((size_t)n * n + 1, 1);
    bool *ends = xcalloc(n + 1, 1);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *far = fabric_peer_node(f, &f->port[i]);
        if (far && far->type == NODE_SWITCH && fabric_node(f, f->port[i].node)->type != NODE_SWITCH)
            ends[far->sw] = true;
    }
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            if (!ends[a] && !ends[b])
                continue;
            unsigned was = old->lanes ? lanes_get(old->lanes, a, b) : 0;
            unsigned is = now->lanes ? lanes_get(now->lanes, a, b) : 0;
            may[a * n + b] =
                (uint8_t)((was < LANES_MAX ? 1u << was : 0) | (after && is < LANES_MAX ? 1u << is : 0));
        }
    }
    for (uint32_t i = 0; i < p->num_stale; i++) {
        uint32_t a = p->stale[i].a, b = p->stale[i].b;
        assert_true(a < n && b < n && a != b);
        may[a * n + b] = may[b * n + a] =
            (uint8_t)(after ? 1u << (now->lanes ? lanes_get(now->lanes, a, b) : 0) : 0);
    }
    free(ends);
    return may;
}

struct waves {
    uint64_t plans, waves, unsafe, dropped, moved, stale;
};

// Writes all waves, block by block in any order, looking every few blocks.
static void carry_out(const struct fabric *f, const struct fabric_tables *old,
                      const struct fabric_tables *now, struct rng *r, struct waves *c)
{
    struct route_plan *p;
    assert_int_equal(route_plan_make(f, old, NULL, NULL, now, r->s[0] % 2 ? &rig_par : NULL, &p, NULL), 0);
    struct fabric_tables *hw = tables_copy_for(old, f, f, (uint16_t)(now->lids - 1));
    uint8_t *may = in_use(f, old, now, p, false), *after = in_use(f, old, now, p, true);
    for (uint32_t i = 0; i < p->num_waves; i++) {
        struct route_wave *w = &p->wave[i];
        for (uint32_t k = w->num_blocks; k > 0; k--) {
            uint32_t pick = rng_below(r, k);
            struct route_block b = w->block[pick];
            w->block[pick] = w->block[k - 1];
            memcpy(tables_row(hw, b.sw) + b.block * LFT_BLOCK,
                   tables_row(w->tables, b.sw) + b.block * LFT_BLOCK, LFT_BLOCK);
            if (k % (w->num_blocks / 8 + 1) == 0)
                assert_true(grids_lanes_hold(f, hw, may));
        }
    }
    assert_int_equal(tables_compare(hw, now).entries, 0);
    assert_true(grids_lanes_hold(f, hw, after));
    c->plans++;
    c->waves += p->num_waves;
    c->unsafe += p->unsafe_dests;
    c->dropped += p->dropped_dests;
    c->moved += p->lanes_changed;
    c->stale += p->num_stale;
    assert_true(p->num_stale <= p->lanes_changed);
    free(may);
    free(after);
    tables_unref(hw);
    route_plan_free(p);
}

// From state to state of a fabric to which things happen, and back.
static void wave_storm(const struct fabric *f, unsigned steps, struct rng *r, struct waves *c)
{
    struct base x;
    struct rig_fault dead[8];
    struct err e = {0};
    base_start(&x, f);
    const struct fabric *was = fabric_ref(f);
    struct fabric_tables *had = tables_ref(x.ideal.tables);
    for (unsigned i = 0; i <= steps; i++) {
        struct route_result now;
        if (i < steps)
            rig_fault_make(f, r, &dead[i]);
        const struct fabric *live = rig_live(f, dead, i < steps ? i + 1 : 0);
        assert_int_equal(route_repair_from(x.b, live, NULL, &now, &e), 0);
        struct fabric_tables *old = tables_copy_for(had, was, live, had->top_lid);
        carry_out(live, old, now.tables, r, c);
        tables_unref(old);
        tables_unref(had);
        fabric_unref(was);
        had = now.tables;
        was = live;
    }
    tables_unref(had);
    fabric_unref(was);
    base_done(&x);
}

static void test_waves(void **state)
{
    (void)state;
    struct rng r;
    struct waves c = {0};
    rng_init(&r, 37);
    for (unsigned i = 0; i < 2; i++) {
        wave_storm(grids_grid(2, (unsigned[]){6, 5}, true, 1), 4, &r, &c);
        wave_storm(grids_grid(2, (unsigned[]){6, 6}, false, 1), 4, &r, &c);
        wave_storm(grids_grid(3, (unsigned[]){3, 3, 3}, true, 1), 4, &r, &c);
        wave_storm(grids_dragonfly(4, 1, 1), 4, &r, &c);
    }
    for (unsigned i = 0; i < 20; i++)
        wave_storm(rig_random(&r, 5 + rng_below(&r, 20), 5 + rng_below(&r, 30)), 3, &r, &c);
    print_message(
        "%llu plans: %llu waves, %llu destinations unsafe, %llu dropped; of %llu moved lanes %llu stale\n",
        (unsigned long long)c.plans, (unsigned long long)c.waves, (unsigned long long)c.unsafe,
        (unsigned long long)c.dropped, (unsigned long long)c.moved, (unsigned long long)c.stale);
    assert_true(c.unsafe > 0);
    assert_true(c.waves > c.plans);
    assert_true(c.moved > 0);
}

// Another engine, and so lanes where there were none, or none any more.
static void test_waves_of_engines(void **state)
{
    (void)state;
    struct rng r;
    struct waves c = {0};
    rng_init(&r, 41);
    for (unsigned i = 0; i < 24; i++) {
        const struct fabric *f = i % 3 == 0   ? grids_grid(2, (unsigned[]){5, 4}, true, 1)
                                 : i % 3 == 1 ? rig_random(&r, 12, 14)
                                              : rig_named("ft3-4-2");
        struct fabric_tables *a = rig_route(f, ROUTE_SSSP), *b = rig_route(f, ROUTE_UPDN);
        carry_out(f, b, a, &r, &c);
        struct waves back = {0};
        carry_out(f, a, b, &r, &back);
        assert_int_equal(back.stale, 0); // what goes up and down an order does so in any lane
        tables_unref(a);
        tables_unref(b);
        fabric_unref(f);
    }
    assert_true(c.moved > 0);
}

// Six switches in a ring, all hosts told lane 0 once: some pairs have to stop that, and it is said which.
static void test_stale(void **state)
{
    (void)state;
    struct rng r;
    struct waves c = {0};
    rng_init(&r, 43);
    const struct fabric *f = grids_grid(1, (unsigned[]){6}, true, 1);
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP), *told = tables_copy_for(t, f, f, t->top_lid);
    tables_set_lanes(told, NULL);
    assert_int_equal(t->lanes->num_lanes, 2);
    carry_out(f, told, t, &r, &c);
    assert_true(c.stale > 0 && c.stale <= c.moved);
    assert_int_equal(c.waves, 0); // there is nothing to write
    // With one pair of them in its lane again there is a cycle: each was left out for a reason.
    struct route_plan *p;
    assert_int_equal(route_plan_make(f, told, NULL, NULL, t, NULL, &p, NULL), 0);
    uint8_t *may = in_use(f, told, t, p, true);
    assert_true(grids_lanes_hold(f, t, may));
    for (uint32_t i = 0; i < p->num_stale; i++) {
        uint32_t a = p->stale[i].a, b = p->stale[i].b;
        may[a * 6 + b] |= 1;
        may[b * 6 + a] |= 1;
        assert_false(grids_lanes_hold(f, t, may));
        may[a * 6 + b] &= (uint8_t)~1;
        may[b * 6 + a] &= (uint8_t)~1;
    }
    free(may);
    route_plan_free(p);
    tables_unref(told);
    tables_unref(t);
    fabric_unref(f);
}

static struct fabric_lanes *one_lane_but(uint32_t n, uint32_t a, uint32_t b, unsigned lane)
{
    struct fabric_lanes *l = lanes_new(n);
    l->num_lanes = 2;
    for (uint32_t x = 0; x < n; x++) {
        for (uint32_t y = x; y < n; y++)
            lanes_set(l, x, y, 0);
    }
    lanes_set(l, a, b, lane);
    return l;
}

// A ring of four with a chord: 3 to 1 changes from over 0 and 2 to over 2, and 0 to 1 from over 2 to
// straight; in a mix, 3 goes over 0 straight to 1, which closes the ring for its lane.
static void test_mix_closes_a_ring(void **state)
{
    (void)state;
    struct rig r;
    rig_start(&r);
    node_id sw[4], host[4];
    uint16_t lid[4];
    uint32_t s[4];
    for (unsigned i = 0; i < 4; i++)
        sw[i] = rig_switch(&r, 8, "ring");
    for (unsigned i = 0; i < 4; i++)
        host[i] = rig_host(&r, sw[i]);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(builder_link(r.b, sw[i], 2, sw[(i + 1) % 4], 3), 0);
    assert_int_equal(builder_link(r.b, sw[0], 4, sw[2], 4), 0);
    const struct fabric *f = rig_done(&r);
    for (unsigned i = 0; i < 4; i++) {
        lid[i] = f->port[f->node[host[i].i].first_port].a.lid;
        s[i] = f->node[sw[i].i].sw;
    }
    for (unsigned k = 0; k < 4; k++) { // lanes of 3 to 1, before and after
        struct fabric_tables *x = tables_new(f, f->top_lid, "x"), *y = tables_new(f, f->top_lid, "y");
        for (unsigned i = 0; i < 4; i++) { // one turn over each but 0, clockwise
            for (unsigned j = 0; i != 1 && j < 2; j++) {
                tables_row(j ? y : x, s[(i + 2) % 4])[lid[i]] = 2;
                tables_row(j ? y : x, s[(i + 3) % 4])[lid[i]] = 2;
                tables_row(j ? y : x, s[i])[lid[i]] = 1;
            }
        }
        tables_row(x, s[1])[lid[1]] = tables_row(y, s[1])[lid[1]] = 1;
        tables_row(x, s[3])[lid[1]] = 2;
        tables_row(x, s[0])[lid[1]] = 4;
        tables_row(y, s[3])[lid[1]] = 3;
        tables_row(y, s[0])[lid[1]] = 2;
        tables_row(x, s[2])[lid[1]] = tables_row(y, s[2])[lid[1]] = 3;
        tables_set_lanes(x, one_lane_but(4, s[3], s[1], k % 2));
        tables_set_lanes(y, one_lane_but(4, s[3], s[1], k / 2));
        struct route_plan *p;
        assert_int_equal(route_plan_make(f, x, NULL, NULL, y, NULL, &p, NULL), 0);
        bool zero = k % 2 == 0; // it is in lane 0, where the others are, while the waves are written
        assert_int_equal(p->num_waves, zero ? 2 : 1);
        assert_int_equal(p->unsafe_dests, zero);
        assert_int_equal(p->dropped_dests, 0);
        assert_int_equal(p->lanes_changed, k == 1 || k == 2);
        assert_int_equal(p->num_stale, 0);
        if (zero) {
            assert_int_equal(p->wave[0].block[0].sw, s[3]);
            assert_int_equal(p->wave[1].block[0].sw, s[0]);
        }
        route_plan_free(p);
        tables_unref(x);
        tables_unref(y);
    }
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storms),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_small_changes),
        cmocka_unit_test(test_waves),
        cmocka_unit_test(test_waves_of_engines),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_mix_closes_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
