// SPDX-License-Identifier: Apache-2.0
// Traffic on whole fabrics with an engine's tables: what a tree carries, where waits lead to.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "tests/unit/sim/flow_rig.h"

#define BPS 25e9 // 4xHDR
#define NEAR(a, b, tol) assert_true(fabs((double)(a) - (double)(b)) <= (tol))

static struct flow_rig rig;

static int teardown(void **state)
{
    flow_rig_down(&rig);
    return 0;
}

static struct sim_flow_info start(const struct sim_flow_spec *d)
{
    struct sim_flow_info i;
    assert_int_equal(sim_flow_start(rig.s, d, NULL), 0);
    sim_flow_settle(rig.s);
    unsigned n = 0;
    while (sim_flow_list(rig.s, n, &i) == 0)
        n++;
    return i;
}

static struct sim_flow_view view(uint64_t node, unsigned port)
{
    struct sim_flow_view v;
    assert_int_equal(sim_flow_view(rig.s, node, port, &v), 0);
    return v;
}

// The switch port that a host hangs on.
static void leaf_of(uint64_t host, uint64_t *ret_node, unsigned *ret_port)
{
    const struct node *n = fabric_by_guid(rig.f, host);
    const struct port *p = fabric_port(rig.f, (port_id){n->first_port}), *z = fabric_port(rig.f, p->peer);
    *ret_node = fabric_node(rig.f, z->node)->guid;
    *ret_port = z->num;
}

static uint64_t counter(uint64_t node, unsigned port, enum sim_counter c)
{
    uint64_t v = 0;
    assert_int_equal(sim_counter_get(rig.s, node, port, c, &v), 0);
    return v;
}

static void a_full_load_permutation_is_carried(void **state)
{
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    struct sim_flow_info i = start(&(struct sim_flow_spec){.pattern = SIM_FLOW_SHIFT, .shift = 3});
    assert_int_equal(i.flows, rig.hosts);
    assert_true(i.delivered > 0.95 * i.offered);
    assert_int_equal(sim_flow_stop(rig.s, i.id), 0);
    assert_int_equal(sim_flow_stop(rig.s, i.id), -ENOENT);
    i = start(&(struct sim_flow_spec){.pattern = SIM_FLOW_RING});
    assert_true(i.delivered > 0.95 * i.offered);
    assert_int_equal(sim_flow_roots(rig.s, NULL, 0), 0);
}

static void high_load_need_not_wait(void **state)
{
    flow_rig_up(&rig, "ft3-8-4", ROUTE_AUTO, NULL);
    struct sim_flow_info i = start(&(struct sim_flow_spec){.pattern = SIM_FLOW_BALANCED});
    NEAR(i.offered, 0.8 * rig.hosts * BPS, 0.02 * rig.hosts * BPS);
    assert_true(i.delivered > 0.99 * i.offered);
    for (uint32_t h = 0; h < rig.hosts; h++)
        assert_true(view(rig.node[h], 1).held < 0.01);
    assert_int_equal(sim_flow_roots(rig.s, NULL, 0), 0);
}

static void incast_leads_to_the_receiver(void **state)
{
    uint64_t leaf;
    unsigned port;
    flow_rig_up(&rig, "ft3-8-4", ROUTE_AUTO, NULL);
    struct sim_flow_info i = start(
        &(struct sim_flow_spec){.pattern = SIM_FLOW_INCAST, .receiver = &rig.port[5], .num_receivers = 1});
    NEAR(i.delivered, BPS, 0.02 * BPS);
    leaf_of(rig.node[5], &leaf, &port);
    struct sim_flow_root r[2];
    assert_int_equal(sim_flow_roots(rig.s, r, 2), 1);
    assert_true(r[0].node_guid == leaf && r[0].port == port && r[0].kind == SIM_ROOT_INCAST);
    assert_true(r[0].waiting >= rig.hosts - 1 && r[0].used > 0.97 && r[0].held < 0.01);
    // each waiting host leads there too, and waits for all the time that it does not send
    for (uint32_t h = 0; h < rig.hosts; h++) {
        struct sim_flow_view v = view(rig.node[h], 1);
        if (h == 5)
            continue;
        assert_true(v.root_guid == leaf && v.root_port == port);
        NEAR(v.used + v.held, 1, 0.02);
    }
}

// Hosts on the receiver's own leaf come in by a cable each and get as much as a cable from above, which many
// share: shares at a full port are by what comes in by.
static void shares_are_by_input(void **state)
{
    flow_rig_up(&rig, "ft3-8-4", ROUTE_AUTO, NULL);
    const struct sim_flow_spec d = {.pattern = SIM_FLOW_INCAST, .receiver = &rig.port[0], .num_receivers = 1};
    start(&d);
    uint64_t leaf, at;
    unsigned port, n;
    leaf_of(rig.node[0], &leaf, &port);
    double near[8], far = 0;
    unsigned nears = 0;
    for (uint32_t h = 1; h < rig.hosts; h++) {
        leaf_of(rig.node[h], &at, &n);
        if (at == leaf)
            near[nears++] = view(rig.node[h], 1).bytes_s;
        else
            far += view(rig.node[h], 1).bytes_s;
    }
    assert_int_equal(nears, 3);
    for (unsigned k = 0; k < nears; k++)
        NEAR(near[k], BPS / 4, 0.1 * BPS / 4);
    NEAR(far, BPS / 4, 0.1 * BPS / 4);
}

static void a_slow_receiver_is_the_root(void **state)
{
    uint64_t leaf;
    unsigned port;
    struct sim_flow_root r[1];
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    assert_int_equal(sim_receiver(rig.s, rig.node[9], 1, 0.2), 0);
    struct sim_flow_info i = start(&(struct sim_flow_spec){.pattern = SIM_FLOW_BALANCED});
    leaf_of(rig.node[9], &leaf, &port);
    assert_true(i.delivered < i.offered);
    assert_true(sim_flow_roots(rig.s, r, 1) >= 1);
    assert_true(r[0].node_guid == leaf && r[0].port == port && r[0].kind == SIM_ROOT_RECEIVER);
    NEAR(r[0].used, 0.2, 0.02);
    NEAR(r[0].held, 0.8, 0.02);
    assert_int_equal(sim_receiver(rig.s, rig.node[9], 1, 1), 0);
    assert_int_equal(sim_flow_roots(rig.s, r, 1), 0);
    assert_int_equal(sim_receiver(rig.s, rig.node[9], 1, 1.5), -EINVAL);
    assert_int_equal(sim_receiver(rig.s, leaf, port, 0.5), -ENOENT);
}

// HOQLife 0, as after power-up, and no VLStallCount: one packet every 4 us.
static void a_dead_receiver_costs_discards(void **state)
{
    uint64_t leaf;
    unsigned port;
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    leaf_of(rig.node[9], &leaf, &port);
    assert_int_equal(sim_receiver(rig.s, rig.node[9], 1, 0), 0);
    start(&(struct sim_flow_spec){.pattern = SIM_FLOW_SHIFT});
    struct sim_flow_view v = view(leaf, port);
    assert_true(v.stuck && v.used == 0 && v.root_guid == leaf && v.root_port == port);
    NEAR(v.discards_s, 1 / 4.096e-6, 1);
    NEAR(v.held, 1, 0.001);
    uint64_t before = counter(leaf, port, SIM_XMIT_DISCARDS);
    flow_rig_run(&rig, 100 * MONO_MS);
    NEAR(counter(leaf, port, SIM_XMIT_DISCARDS) - before, 0.1 / 4.096e-6, 0.01 * 0.1 / 4.096e-6);
}

static void what_does_not_arrive_is_counted(void **state)
{
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    uint64_t leaf, dead = rig.node[7];
    unsigned port;
    leaf_of(dead, &leaf, &port);
    struct sim_flow_spec d = {.pattern = SIM_FLOW_PAIRS,
                              .host = &rig.port[0],
                              .num_hosts = 1,
                              .receiver = &rig.port[7],
                              .num_receivers = 1,
                              .load = 0.5};
    start(&d);
    flow_rig_run(&rig, MONO_S);
    assert_int_equal(counter(leaf, port, SIM_XMIT_DISCARDS), 0);
    uint64_t sent = counter(leaf, port, SIM_XMIT_DATA), got = counter(dead, 1, SIM_RCV_DATA);
    assert_int_equal(sent, got);
    assert_int_equal(sim_link_set(rig.s, leaf, port, false), 0);
    sent = counter(leaf, port, SIM_XMIT_DATA);
    flow_rig_run(&rig, MONO_S);
    assert_int_equal(counter(leaf, port, SIM_XMIT_DATA), sent); // from that moment on
    assert_int_equal(counter(dead, 1, SIM_RCV_DATA), sent);
    NEAR(counter(leaf, port, SIM_XMIT_DISCARDS), 0.5 * BPS / 4134, 0.02 * 0.5 * BPS / 4134);
    assert_int_equal(counter(leaf, port, SIM_INACTIVE_DISCARDS), counter(leaf, port, SIM_XMIT_DISCARDS));
    // cabled again and ACTIVE it goes on; no manager here, so nobody makes it so
    struct sim_flow_info i;
    assert_int_equal(sim_flow_list(rig.s, 0, &i), 0);
    assert_true(i.delivered == 0 && i.dead == 1);
}

// A table that puts all that goes up on one cable.
static void one_cable_for_all_is_the_root(void **state)
{
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    uint64_t leaf;
    unsigned port, cut = 0, kept = 0;
    leaf_of(rig.node[0], &leaf, &port);
    const struct node *n = fabric_by_guid(rig.f, leaf);
    uint8_t row[65536];
    for (unsigned p = 1; p <= n->num_ports; p++) { // all that went up goes by the first cable up
        const struct port *q = fabric_port(rig.f, fabric_port_at(rig.f, n, p));
        const struct node *z = fabric_peer_node(rig.f, q);
        if (z == NULL || z->type != NODE_SWITCH)
            continue;
        if (kept == 0)
            kept = p;
        else
            cut++;
    }
    assert_true(cut > 0);
    memcpy(row, tables_row(rig.t, n->sw), rig.t->lids);
    for (uint32_t lid = 1; lid < rig.t->lids; lid++) {
        const struct port *q = row[lid] == LFT_DROP || row[lid] == 0
                                   ? NULL
                                   : fabric_port(rig.f, fabric_port_at(rig.f, n, row[lid]));
        const struct node *z = q ? fabric_peer_node(rig.f, q) : NULL;
        if (z && z->type == NODE_SWITCH)
            row[lid] = (uint8_t)kept;
    }
    assert_int_equal(sim_set_lft(rig.s, leaf, row, rig.t->lids, rig.t->top_lid), 0);
    struct sim_flow_root r[2];
    start(&(struct sim_flow_spec){.pattern = SIM_FLOW_RANDOM, .seed = 3});
    assert_true(sim_flow_roots(rig.s, r, 2) >= 1);
    assert_true(r[0].node_guid == leaf && r[0].port == kept);
    assert_int_equal(r[0].kind, SIM_ROOT_IMBALANCE); // the others idle
    NEAR(r[0].used, 1, 0.02);
}

static unsigned circles(unsigned n)
{
    unsigned k = 0;
    for (unsigned i = 0; i < n; i++)
        k += view(0x1000 + i, 1).circle || view(0x1000 + i, 2).circle;
    return k;
}

// Shortest paths round a ring wait for each other; up*/down* paths never do.
static void a_ring_stands_still_with_minhop_only(void **state)
{
    flow_rig_up_fabric(&rig, flow_rig_circle(5, 2), ROUTE_MINHOP, NULL);
    uint64_t from[20], to[20];
    unsigned n = 0;
    for (unsigned i = 0; i < 5; i++)
        for (unsigned k = 0; k < 2; k++) {
            from[n] = 0x20000 + i * 64 + k;
            to[n++] = 0x20000 + (i + 2) % 5 * 64 + k;
        }
    const struct sim_flow_spec d = {
        .pattern = SIM_FLOW_PAIRS, .host = from, .num_hosts = n, .receiver = to, .num_receivers = n};
    struct sim_flow_info i = start(&d);
    assert_int_equal(circles(5), 5);
    struct sim_flow_root r[8];
    unsigned roots = sim_flow_roots(rig.s, r, 8);
    assert_true(roots > 0 && r[0].kind == SIM_ROOT_CIRCLE && r[0].used < 0.01);
    (void)i;
    flow_rig_down(&rig);
    flow_rig_up_fabric(&rig, flow_rig_circle(5, 2), ROUTE_UPDN, NULL);
    i = start(&d);
    assert_int_equal(circles(5), 0);
    assert_true(i.delivered > 2 * BPS);
}

static unsigned lane_of_pair(void *arg, uint64_t from, uint64_t to)
{
    uint32_t sw[2];
    const uint64_t guid[] = {from, to};
    for (unsigned i = 0; i < 2; i++)
        sw[i] = fabric_peer_node(rig.f, fabric_port(rig.f, fabric_by_port_guid(rig.f, guid[i])))->sw;
    return lanes_get(rig.t->lanes, sw[0], sw[1]);
}

// Lanes are of use to those only who send on the levels that their paths have.
static void lanes_break_the_circle(void **state)
{
    flow_rig_up_fabric(&rig, flow_rig_circle(6, 2), ROUTE_SSSP, NULL);
    assert_non_null(rig.t->lanes);
    uint64_t from[12], to[12];
    for (unsigned i = 0; i < 12; i++) {
        from[i] = 0x20000 + i / 2 * 64 + i % 2;
        to[i] = 0x20000 + (i / 2 + 2) % 6 * 64 + i % 2;
    }
    struct sim_flow_spec d = {
        .pattern = SIM_FLOW_PAIRS, .host = from, .num_hosts = 12, .receiver = to, .num_receivers = 12};
    struct sim_flow_info i = start(&d);
    assert_true(circles(6) > 0);
    sim_flow_levels(rig.s, lane_of_pair, NULL);
    assert_int_equal(circles(6), 0);
    assert_int_equal(sim_flow_list(rig.s, 0, &i), 0);
    assert_true(i.delivered > BPS && i.dead == 0);
    sim_flow_stop(rig.s, 0);
    d.sl_given = true;
    start(&d);
    assert_true(circles(6) > 0);
}

// A cable out and in within the 10 ms: nothing is worked out anew, and it goes on as before.
static void the_same_again_is_not_worked_out(void **state)
{
    struct sim_flow_stats a, b;
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    start(&(struct sim_flow_spec){.pattern = SIM_FLOW_RING});
    sim_flow_get_stats(rig.s, &a);
    assert_int_equal(sim_receiver(rig.s, rig.node[3], 1, 0.5), 0);
    assert_int_equal(sim_receiver(rig.s, rig.node[3], 1, 1), 0);
    flow_rig_run(&rig, MONO_S);
    sim_flow_get_stats(rig.s, &b);
    assert_int_equal(b.runs, a.runs);
    assert_int_equal(b.skipped, a.skipped + 1);
    assert_true(view(rig.node[3], 1).used > 0.9);
}

static void bursts_come_and_go(void **state)
{
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    const struct sim_flow_spec d = {.pattern = SIM_FLOW_STORAGE,
                                    .receiver = &rig.port[8],
                                    .num_receivers = 2,
                                    .on_ns = 2 * MONO_S,
                                    .off_ns = 3 * MONO_S};
    uint64_t c[5];
    uint32_t id;
    assert_int_equal(sim_flow_start(rig.s, &d, &id), 0);
    for (unsigned i = 0; i < 5; i++) {
        c[i] = counter(rig.node[8], 1, SIM_RCV_DATA);
        flow_rig_run(&rig, i == 0 ? 2 * MONO_S : i == 1 ? 3 * MONO_S : MONO_S);
    }
    NEAR(4.0 * (double)(c[1] - c[0]), 2 * BPS, 0.05 * 2 * BPS);
    NEAR(4.0 * (double)(c[2] - c[1]), 0, 0.02 * BPS);
    NEAR(4.0 * (double)(c[3] - c[2]), BPS, 0.05 * BPS);
}

// Tables that were proved never wait in circles, whatever is cut and whoever sends.
static void proved_tables_never_stand_still(void **state)
{
    static const char *const names[] = {"rail-64", "ft3-4-4", "ft3-8-4"};
    struct err e = {0};
    for (unsigned round = 0; round < 12; round++) {
        const struct fabric *f = topogen_make(names[round % 3], &e);
        assert_non_null(f);
        flow_rig_up_fabric(&rig, flow_rig_degrade(f, round % 4 * 10, round),
                           round % 2 ? ROUTE_UPDN : ROUTE_AUTO, NULL);
        start(&(struct sim_flow_spec){.pattern = SIM_FLOW_ALL_TO_ALL, .fan = 6});
        struct sim_flow_info i = start(&(struct sim_flow_spec){.pattern = SIM_FLOW_RANDOM, .seed = round});
        assert_true(i.delivered > 0);
        for (uint32_t p = 0; p < rig.f->num_ports; p++)
            if (port_valid(rig.f->port[p].peer)) {
                struct sim_flow_view v =
                    view(fabric_node(rig.f, rig.f->port[p].node)->guid, rig.f->port[p].num);
                assert_false(v.circle || v.stuck);
            }
        if (round < 11)
            flow_rig_down(&rig);
    }
}

// Hosts that are named in any order stand by rail and number.
static void a_ring_keeps_to_its_rail(void **state)
{
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    struct sim_flow_info i = start(&(struct sim_flow_spec){
        .pattern = SIM_FLOW_RING, .host = rig.port, .num_hosts = 32}); // four hosts of eight rails
    assert_int_equal(i.flows, 32);
    for (uint32_t k = 0; k < 32; k++) {
        struct sim_flow_view v = view(rig.node[k], 1);
        assert_true(v.used > 0.97 && v.held < 0.01);
    }
    uint64_t words = 0;
    flow_rig_run(&rig, MONO_S);
    for (uint32_t p = 0; p < rig.f->num_ports; p++) { // nothing goes from leaf to leaf
        const struct port *x = &rig.f->port[p];
        const struct node *n = fabric_node(rig.f, x->node), *z = fabric_peer_node(rig.f, x);
        if (n->type == NODE_SWITCH && z && z->type == NODE_SWITCH)
            words += counter(n->guid, x->num, SIM_XMIT_DATA);
    }
    assert_int_equal(words, 0);
}

static void refused(void **state)
{
    const uint64_t nobody = 0x77;
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    struct sim_flow_spec d = {.pattern = SIM_PATTERNS};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), -EINVAL);
    d = (struct sim_flow_spec){.pattern = SIM_FLOW_RING, .load = -1};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), -EINVAL);
    d = (struct sim_flow_spec){.pattern = SIM_FLOW_RING, .sl = 16};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), -EINVAL);
    d = (struct sim_flow_spec){.pattern = SIM_FLOW_RING, .on_ns = 5, .off_ns = 5};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), -EINVAL);
    d = (struct sim_flow_spec){.pattern = SIM_FLOW_INCAST, .receiver = &nobody, .num_receivers = 1};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), -ENOENT);
    d = (struct sim_flow_spec){.pattern = SIM_FLOW_PAIRS, .host = &nobody, .num_hosts = 1};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), -EINVAL);
    assert_int_equal(sim_flow_stop(rig.s, 1), -ENOENT);
    assert_int_equal(sim_flow_stop(rig.s, 0), 0);
    struct sim_flow_info i;
    assert_int_equal(sim_flow_list(rig.s, 0, &i), -ENOENT);
}

// Any fabric, any pattern: each cable's ends agree, no port is busy and waits for more than all the time,
// what goes into a switch comes out or is counted as lost there.
static void both_ends_agree(void **state)
{
    static const char *const names[] = {"rail-64", "ft3-4-4", "ft3-8-4"};
    struct rng g;
    rng_init(&g, 11);
    for (unsigned round = 0; round < 12; round++) {
        flow_rig_up(&rig, names[rng_below(&g, 3)], round % 2 ? ROUTE_AUTO : ROUTE_MINHOP, NULL);
        if (rng_below(&g, 2))
            sim_receiver(rig.s, rig.node[rng_below(&g, rig.hosts)], 1, rng_double(&g));
        unsigned patterns = 1 + rng_below(&g, 3);
        for (unsigned i = 0; i < patterns; i++) {
            struct sim_flow_spec d = {.pattern = rng_below(&g, SIM_FLOW_PAIRS),
                                      .load = rng_below(&g, 2) ? 0 : 0.1 + rng_double(&g),
                                      .shift = rng_below(&g, 9),
                                      .seed = round};
            assert_int_equal(sim_flow_start(rig.s, &d, NULL), 0);
        }
        sim_flow_settle(rig.s);
        flow_rig_run(&rig, 3 * MONO_S);
        uint64_t *in = xcalloc(rig.f->num_nodes, sizeof(*in)), *out = xcalloc(rig.f->num_nodes, sizeof(*out));
        for (uint32_t i = 0; i < rig.f->num_ports; i++) {
            const struct port *p = &rig.f->port[i];
            if (!port_valid(p->peer))
                continue;
            const struct port *z = fabric_port(rig.f, p->peer);
            uint64_t a = fabric_node(rig.f, p->node)->guid, b = fabric_node(rig.f, z->node)->guid;
            uint64_t sent = counter(a, p->num, SIM_XMIT_DATA);
            assert_int_equal(sent, counter(b, z->num, SIM_RCV_DATA));
            assert_int_equal(counter(a, p->num, SIM_XMIT_PKTS), counter(b, z->num, SIM_RCV_PKTS));
            assert_true(4.0 * (double)sent + 8.0 * (double)counter(a, p->num, SIM_XMIT_WAIT) < 3.001 * BPS);
            out[p->node.i] += sent;
            in[z->node.i] += sent;
        }
        for (uint32_t i = 0; i < rig.f->num_nodes; i++)
            if (rig.f->node[i].type == NODE_SWITCH)
                NEAR(4.0 * (double)in[i], 4.0 * (double)out[i], 0.001 * BPS);
        free(in);
        free(out);
        if (round < 11)
            flow_rig_down(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_full_load_permutation_is_carried, teardown),
        cmocka_unit_test_teardown(high_load_need_not_wait, teardown),
        cmocka_unit_test_teardown(incast_leads_to_the_receiver, teardown),
        cmocka_unit_test_teardown(shares_are_by_input, teardown),
        cmocka_unit_test_teardown(a_slow_receiver_is_the_root, teardown),
        cmocka_unit_test_teardown(a_dead_receiver_costs_discards, teardown),
        cmocka_unit_test_teardown(what_does_not_arrive_is_counted, teardown),
        cmocka_unit_test_teardown(one_cable_for_all_is_the_root, teardown),
        cmocka_unit_test_teardown(a_ring_stands_still_with_minhop_only, teardown),
        cmocka_unit_test_teardown(lanes_break_the_circle, teardown),
        cmocka_unit_test_teardown(the_same_again_is_not_worked_out, teardown),
        cmocka_unit_test_teardown(bursts_come_and_go, teardown),
        cmocka_unit_test_teardown(proved_tables_never_stand_still, teardown),
        cmocka_unit_test_teardown(a_ring_keeps_to_its_rail, teardown),
        cmocka_unit_test_teardown(refused, teardown),
        cmocka_unit_test_teardown(both_ends_agree, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
