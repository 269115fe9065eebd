// SPDX-License-Identifier: Apache-2.0
// Traffic under a manager: cables that die, come back and are too few, switches that adapt, lanes that break
// circles; counters follow what is programmed.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sim_flow.h"
#include "tests/whole/rig.h"

#define BPS 25e9 // 4xHDR

static struct rig rig;

static int teardown(void **state)
{
    (void)state;
    rig_done(&rig);
    return 0;
}

static void up(const char *name, const struct sim_opts *o)
{
    rig_init(&rig, name, o);
    rig_up(&rig);
    rig_sweeps(&rig, 1, 60);
    rig_run(&rig, 2 * MONO_S);
}

static struct sim_flow_info first(void)
{
    struct sim_flow_info i;
    sim_flow_settle(rig.sim);
    assert_int_equal(sim_flow_list(rig.sim, 0, &i), 0);
    return i;
}

static uint64_t counter(uint64_t node, unsigned port, enum sim_counter c)
{
    uint64_t v = 0;
    assert_int_equal(sim_counter_get(rig.sim, node, port, c, &v), 0);
    return v;
}

// Of all ports of the plan.
static uint64_t sum(enum sim_counter c)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < rig.plan->num_ports; i++)
        if (rig.plan->port[i].num != 0)
            n += counter(fabric_node(rig.plan, rig.plan->port[i].node)->guid, rig.plan->port[i].num, c);
    return n;
}

// Cables from the first leaf up; the leaf.
static const struct node *cables_up(unsigned ret[64], unsigned *ret_num)
{
    for (uint32_t sw = 0; sw < rig.plan->num_switches; sw++) {
        const struct node *n = fabric_switch(rig.plan, sw);
        if (n->role != ROLE_LEAF)
            continue;
        *ret_num = 0;
        for (unsigned p = 1; p <= n->num_ports && *ret_num < 64; p++) {
            const struct port *q = fabric_port(rig.plan, fabric_port_at(rig.plan, n, p));
            const struct node *z = fabric_peer_node(rig.plan, q);
            if (z != NULL && z->type == NODE_SWITCH)
                ret[(*ret_num)++] = p;
        }
        return n;
    }
    fail_msg("no leaf");
    return NULL;
}

static void a_dead_cable_costs_until_routes_are_others(void **state)
{
    unsigned cable[64], n;
    (void)state;
    up("ft3-8-4", NULL);
    assert_int_equal(
        sim_flow_start(rig.sim, &(struct sim_flow_spec){.pattern = SIM_FLOW_BALANCED, .load = 0.4}, NULL), 0);
    rig_run(&rig, MONO_S);
    double before = first().delivered;
    assert_true(before > 0.39 * BPS * first().senders);
    assert_int_equal(sum(SIM_XMIT_DISCARDS), 0);
    const struct node *leaf = cables_up(cable, &n);
    assert_int_equal(sim_link_set(rig.sim, leaf->guid, cable[0], false), 0);
    rig_run(&rig, 5 * MONO_S);
    struct sim_flow_info i = first();
    assert_true(i.dead == 0 && i.delivered > 0.99 * before);
    uint64_t lost = sum(SIM_XMIT_DISCARDS);
    uint64_t dead = counter(leaf->guid, cable[0], SIM_XMIT_DATA);
    rig_run(&rig, 10 * MONO_S);
    assert_int_equal(sum(SIM_XMIT_DISCARDS), lost); // no more since
    assert_int_equal(counter(leaf->guid, cable[0], SIM_XMIT_DATA), dead);
    assert_int_equal(sim_link_set(rig.sim, leaf->guid, cable[0], true), 0);
    rig_run(&rig, 10 * MONO_S);
    assert_true(counter(leaf->guid, cable[0], SIM_XMIT_DATA) > dead);
}

static void too_few_cables_are_the_root(void **state)
{
    unsigned cable[64], n;
    struct sim_flow_root r[4];
    (void)state;
    up("ft3-8-4", NULL);
    const struct sim_flow_spec d = {.pattern = SIM_FLOW_BALANCED, .load = 0.9};
    assert_int_equal(sim_flow_start(rig.sim, &d, NULL), 0);
    assert_int_equal(sim_flow_roots(rig.sim, r, 4), 0);
    const struct node *leaf = cables_up(cable, &n);
    for (unsigned k = 1; k < n; k++)
        assert_int_equal(sim_link_set(rig.sim, leaf->guid, cable[k], false), 0);
    rig_run(&rig, 5 * MONO_S);
    unsigned roots = sim_flow_roots(rig.sim, r, 4);
    bool out = false;
    assert_true(roots >= 1 && roots <= 4);
    for (unsigned k = 0; k < roots; k++) {
        bool own = r[k].node_guid == leaf->guid && r[k].port == cable[0];
        out |= own && r[k].kind == SIM_ROOT_TRUNK;
        assert_true(r[k].used > 0.97);
        // what comes in meets further up already, on one cable of several
        assert_true(own || r[k].kind == SIM_ROOT_IMBALANCE || r[k].kind == SIM_ROOT_TRUNK);
    }
    assert_true(out);
    for (unsigned k = 1; k < n; k++)
        assert_int_equal(sim_link_set(rig.sim, leaf->guid, cable[k], true), 0);
    rig_run(&rig, 10 * MONO_S);
    assert_int_equal(sim_flow_roots(rig.sim, r, 4), 0);
}

// What tables put on one cable, switches that adapt spread.
static void switches_that_adapt_carry_more(void **state)
{
    (void)state;
    const struct sim_flow_spec d = {.pattern = SIM_FLOW_RANDOM, .seed = 4};
    up("ft3-8-4", NULL);
    assert_int_equal(sim_flow_start(rig.sim, &d, NULL), 0);
    double fixed = first().delivered / first().offered;
    rig_done(&rig);
    rig_init(&rig, "ft3-8-4", &(struct sim_opts){.adaptive_routing = true});
    rig.opts.adaptive = SM_ADAPTIVE_ON;
    rig_up(&rig);
    rig_sweeps(&rig, 1, 60);
    rig_run(&rig, 30 * MONO_S);
    assert_int_equal(sim_flow_start(rig.sim, &d, NULL), 0);
    struct sim_flow_info i = first();
    assert_true(fixed < 0.8);
    assert_true(i.delivered / i.offered > 0.85 && i.delivered / i.offered > fixed + 0.1);
    uint64_t a = sum(SIM_XMIT_DATA), b = sum(SIM_RCV_DATA);
    rig_run(&rig, MONO_S);
    assert_int_equal(sum(SIM_XMIT_DATA) - a, sum(SIM_RCV_DATA) - b);
}

// HOQLife and VLStallCount as the manager sets them: the dead host's port is blocked for 7 of 15 HOQLives and
// drops for 8, so that its neighbours live.
static void a_dead_host_does_not_stop_the_others(void **state)
{
    struct sim_flow_view v;
    struct sim_flow_root r[1];
    (void)state;
    up("rail-64", NULL);
    const struct fabric *f = rig.plan;
    uint32_t host = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->node[i].role == ROLE_HOST)
            host = i;
    const struct port *p = fabric_port(f, (port_id){f->node[host].first_port}), *z = fabric_port(f, p->peer);
    uint64_t leaf = fabric_node(f, z->node)->guid;
    assert_int_equal(sim_receiver(rig.sim, f->node[host].guid, 1, 0), 0);
    assert_int_equal(sim_flow_start(rig.sim, &(struct sim_flow_spec){.pattern = SIM_FLOW_ALL_TO_ALL}, NULL),
                     0);
    assert_int_equal(sim_flow_view(rig.sim, leaf, z->num, &v), 0);
    assert_true(v.used == 0 && v.stuck && v.held > 0.46 && v.held < 0.48 && v.discards_s > 1000);
    assert_true(sim_flow_roots(rig.sim, r, 1) == 1);
    assert_true(r[0].node_guid == leaf && r[0].port == z->num && r[0].kind == SIM_ROOT_RECEIVER);
    struct sim_flow_info i = first();
    // blocked, the 16 of 64 that send to it too stand still; else only what goes to it is lost
    assert_true(i.delivered > 0.86 * i.offered && i.delivered < 0.89 * i.offered);
    uint64_t late = counter(leaf, z->num, SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS);
    rig_run(&rig, MONO_S);
    assert_true(counter(leaf, z->num, SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS) > late);
    assert_int_equal(counter(leaf, z->num, SIM_XMIT_DISCARDS),
                     counter(leaf, z->num, SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_dead_cable_costs_until_routes_are_others, teardown),
        cmocka_unit_test_teardown(too_few_cables_are_the_root, teardown),
        cmocka_unit_test_teardown(switches_that_adapt_carry_more, teardown),
        cmocka_unit_test_teardown(a_dead_host_does_not_stop_the_others, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
