// SPDX-License-Identifier: Apache-2.0
// The proof of groups finds what is wrong with them, and agrees with the judge.
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
    struct groups_proof p = gr_prove(f, t, g, NULL);
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
    struct groups_result r = gr_make_plain(f, t, ROUTE_RAIL);
    uint32_t leaf = 0, spine = 0;
    while (groups_of(r.groups, leaf) == 0 || !gr_has_ends(f, leaf))
        leaf++;
    while (groups_of(r.groups, spine) == 0 || gr_has_ends(f, spine))
        spine++;
    const struct node *ln = fabric_switch(f, leaf), *sn = fabric_switch(f, spine);
    unsigned host = 1, down = 1;
    while (gr_far_switch(f, leaf, host) != ID_NONE)
        host++;
    while (gr_far_switch(f, spine, down) == ID_NONE ||
           fabric_switch(f, gr_far_switch(f, spine, down))->tier > sn->tier)
        down++;

    struct fabric_groups *g = copy(f, r.groups);
    struct fabric_group *lg = &g->group[g->first[leaf]], *sg = &g->group[g->first[spine]];
    struct fabric_group was = *lg;
    assert_true(gr_prove(f, t, g, NULL).ok);
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
    assert_non_null(gr_group_at(g, t, leaf, own));
    struct groups_proof p = gr_prove(f, t, g, NULL);
    assert_false(p.ok);
    groups_unref(g);

    // A switch that is chosen has no entry, though the table's own way does not pass it.
    struct fabric_tables *hole = tables_copy_for(t, f, f, t->top_lid);
    uint16_t lid = 1;
    while (!gr_group_at(r.groups, t, leaf, lid))
        lid++;
    const struct fabric_group *x = gr_group_at(r.groups, t, leaf, lid);
    for (unsigned q = 1; q < 256; q++) {
        if (port_set_has(&x->ports, (uint8_t)q) && q != tables_port(t, leaf, lid))
            tables_row(hole, gr_far_switch(f, leaf, q))[lid] = LFT_DROP;
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
    struct groups_result r = gr_make_plain(f, t, ROUTE_UPDN);
    gr_check(f, t, &r, NULL);
    uint32_t n = f->num_switches, dist[6];
    struct fabric_tables *all = tables_copy_for(t, f, f, t->top_lid);
    struct fabric_groups *g = groups_new(f, t->lids, n);
    for (uint32_t s = 0; s < n; s++) { // one group a switch, both ways; entries by the nearer
        struct fabric_group *x = &g->group[s];
        *x = (struct fabric_group){.id = 0};
        for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports; p++)
            x->ports.w[0] |= gr_far_switch(f, s, p) != ID_NONE ? 1ULL << p : 0;
        g->first[s + 1] = s + 1;
    }
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        uint32_t sw;
        uint8_t port;
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port))
            continue;
        gr_hops_to(f, sw, dist);
        g->lid_switch[lid] = sw;
        g->lid_whole[lid] = true;
        for (uint32_t s = 0; s < n; s++) {
            for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports && s != sw; p++) {
                if (gr_far_switch(f, s, p) != ID_NONE && dist[gr_far_switch(f, s, p)] + 1 == dist[s])
                    tables_row(all, s)[lid] = (uint8_t)p;
            }
            if (dist[s] == 3)
                g->to[s * n + sw] = 0;
        }
    }
    expect(f, all, g, GROUPS_CREDIT_LOOP, "credit loop");
    assert_int_equal(gr_judge(f, all, g), GROUPS_CREDIT_LOOP);
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
        struct fabric_tables *t = gr_route(f, engines[i % NUM_ENGINES]);
        if (!t) {
            fabric_unref(f);
            continue;
        }
        struct groups_result x = gr_make_plain(f, t, engines[i % NUM_ENGINES]);
        struct fabric_groups *g = copy(f, x.groups);
        uint32_t n = g->num_switches, num = g->first[n];
        for (unsigned k = rng_below(&r, 4); k > 0 && num > 0; k--) {
            uint32_t which = rng_below(&r, num), s = 0;
            while (g->first[s + 1] <= which)
                s++;
            unsigned p = 1 + rng_below(&r, fabric_switch(f, s)->num_ports);
            if (gr_far_switch(f, s, p) != ID_NONE)
                g->group[which].ports.w[p / 64] |= 1ULL << (p % 64);
            g->to[s * n + rng_below(&r, n)] = (uint16_t)(which - g->first[s]);
            if (rng_below(&r, 4) == 0)
                g->beside[s * g->ports + p] = (uint16_t)(which - g->first[s]);
        }
        enum groups_fault want = gr_judge(f, t, g), is = gr_prove(f, t, g, NULL).fault;
        if (want != gr_kind_of(is))
            fail_msg("round %u: judged %d, proved %d: %s", i, want, is,
                     gr_prove(f, t, g, NULL).counter_example);
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
    struct groups_result r = gr_make_plain(f, t, ROUTE_RAIL);
    struct mcast_opts mo = {.top_guid = 0};
    struct mcast_tree *tree = mcast_tree_make(f, t, &mo);
    struct groups_verify v = {.trees = tree};
    struct groups_proof p;
    assert_true(tree->proved);
    if (!route_verify_groups(f, t, r.groups, &v, &p))
        fail_msg("%s", p.counter_example);
    struct groups_proof alone = gr_prove(f, t, r.groups, NULL);
    assert_true(p.dependencies >= alone.dependencies);
    // A chain from leaf to leaf, down and up again at every one: such turns close circles.
    memset(tree->step, 0, tree->num_switches * sizeof(*tree->step));
    for (uint32_t s = 0; s < f->num_switches; s++)
        tree->step[s].parent = ID_NONE;
    bool *in = xcalloc(f->num_switches, 1);
    for (uint32_t s = 0, links = 0; s < f->num_switches; s++) {
        for (unsigned q = 1; q <= fabric_switch(f, s)->num_ports; q++) {
            uint32_t w = gr_far_switch(f, s, q);
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
    struct gr_base x;
    const struct fabric_tables *t;
    assert_true(gr_base_start(&x, f, ROUTE_RAIL));
    struct groups_result was = gr_make_plain(f, x.ideal.tables, ROUTE_RAIL);
    struct rig_fault fault = {RIG_CABLE, 0, 0};
    for (uint32_t s = 0; fault.num == 0; s++) {
        for (unsigned p = 1; gr_has_ends(f, s) && p <= fabric_switch(f, s)->num_ports; p++) {
            if (gr_far_switch(f, s, p) != ID_NONE)
                fault = (struct rig_fault){RIG_CABLE, fabric_switch(f, s)->guid, p};
        }
    }
    struct groups_result g = gr_step(&x, &fault, 1, &was, f, &live, &t);
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
    g = gr_make(f, t, &capped);
    if (!route_verify_groups(f, t, g.groups, &v, &p))
        fail_msg("%s", p.counter_example);
    free(cap);
    struct fabric_groups *held = copy(f, was.groups);
    uint32_t spine = 0;
    unsigned down = 1;
    while (groups_of(held, spine) == 0 || gr_has_ends(f, spine))
        spine++;
    while (gr_far_switch(f, spine, down) == ID_NONE || !gr_has_ends(f, gr_far_switch(f, spine, down)))
        down++;
    held->group[held->first[spine]].ports.w[down / 64] |= 1ULL << (down % 64);
    v.held = held;
    assert_false(route_verify_groups(f, t, g.groups, &v, &p));
    assert_int_equal(p.fault, GROUPS_LOOP);
    assert_true(gr_prove(f, t, g.groups, NULL).ok);
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
    assert_true(gr_prove(f, t, now, NULL).ok);
    assert_false(route_verify_groups(f, t, now, &v, &p));
    odd->ports = good;
    assert_true(route_verify_groups(f, t, now, &v, &p));
    groups_unref(now);
    groups_unref(held);
    groups_unref(g.groups);
    groups_unref(was.groups);
    tables_unref(t);
    fabric_unref(live);
    gr_base_done(&x);
    fabric_unref(f);
}

// A cable that is avoided is in no group, as it is in no entry.
static void avoided(void **state)
{
    (void)state;
    const struct fabric *f = rig_named("ft3-8-4");
    struct gr_base x;
    struct err e = {0};
    assert_true(gr_base_start(&x, f, ROUTE_RAIL));
    for (uint32_t s = 0; s < f->num_switches; s += 5) {
        unsigned p = fabric_switch(f, s)->num_ports;
        while (gr_far_switch(f, s, p) == ID_NONE)
            p--;
        port_id id = {fabric_switch(f, s)->first_port + p};
        struct route_avoid *a = route_avoid_new(f, &id, 1);
        struct route_result rr;
        if (route_repair_avoiding(x.b, f, a, NULL, &rr, &e))
            fail_msg("%s", e.text);
        struct groups_opts o = {.base = x.b, .engine = rr.engine, .avoid = a};
        struct groups_result g = gr_make(f, rr.tables, &o);
        gr_check(f, rr.tables, &g, NULL);
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
    gr_base_done(&x);
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
    while (!gr_has_ends(f, end))
        end++;
    while (gr_far_switch(f, end, host) != ID_NONE)
        host++;
    uint16_t lid = fabric_port(f, f->port[fabric_switch(f, end)->first_port + host].peer)->a.lid;
    for (unsigned q = 1; q <= fabric_switch(f, end)->num_ports && other == ID_NONE; q++) {
        spine = gr_far_switch(f, end, q);
        for (unsigned p = 1; spine != ID_NONE && p <= fabric_switch(f, spine)->num_ports; p++) {
            uint32_t w = gr_far_switch(f, spine, p);
            if (w != ID_NONE && w != end && gr_has_ends(f, w) &&
                gr_far_switch(f, w, tables_port(t, w, lid)) != spine) {
                other = w;
                back = (uint8_t)p;
            }
        }
    }
    assert_int_not_equal(other, ID_NONE);
    tables_row(t, spine)[lid] = back; // down, and up again from there
    struct groups_result r = gr_make_plain(f, t, ROUTE_RAIL);
    assert_int_equal(r.static_lids, 1);
    assert_false(r.groups->lid_whole[lid]);
    assert_true(r.groups->lid_whole[lid + 1]);
    assert_int_not_equal(gr_prove(f, t, r.groups, NULL).fault, GROUPS_LOOP);
    groups_unref(r.groups);
    tables_unref(t);
    tables_unref(good);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted),         cmocka_unit_test(planted_credit_loop),
        cmocka_unit_test(proof_and_judge), cmocka_unit_test(with_trees),
        cmocka_unit_test(mixes),           cmocka_unit_test(avoided),
        cmocka_unit_test(one_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
