// SPDX-License-Identifier: Apache-2.0
// Time and loss: latency arithmetic, an agent's queue, VL15 drops, slow nodes, loss, equal runs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "tests/unit/sim/client.h"

#define LINK 200
#define SERVICE 5000
#define TRANSIT 1000

static int64_t rtt(struct rig *r, const struct dest *d)
{
    uint8_t data[64] = {0};
    int64_t start = loop_now(r->l).ns;
    assert_int_equal(rig_smp(r, d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    return loop_now(r->l).ns - start;
}

static uint64_t far_host(struct rig *r)
{
    for (uint32_t i = r->f->num_nodes; i-- > 0;)
        if (r->f->node[i].type == NODE_CA && r->f->node[i].guid != r->port.node_guid)
            return r->f->node[i].guid;
    return 0;
}

static void latency_adds_up(void **state)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"),
              &(struct sim_opts){.link_latency_ns = LINK, .service_ns = SERVICE, .transit_ns = TRANSIT});
    struct dest self = by_path(0), leaf = by_path(1, 1), far = rig_path(&r, far_host(&r));
    assert_int_equal(rtt(&r, &self), SERVICE);
    assert_int_equal(rtt(&r, &leaf), SERVICE + 2 * LINK);
    assert_int_equal(far.to.hops, 6);
    assert_int_equal(rtt(&r, &far), SERVICE + 2 * (6 * LINK + 5 * TRANSIT));
    rig_bring_up(&r);
    // LID-routed: the switches' agents have no part in it
    struct dest lid = by_lid(rig_lid_of(&r, far_host(&r)));
    assert_int_equal(rtt(&r, &lid), SERVICE + 2 * 6 * LINK);
    // a slow node
    assert_int_equal(sim_node_slow(r.s, far_host(&r), 40), 0);
    assert_int_equal(rtt(&r, &lid), 40 * SERVICE + 2 * 6 * LINK);
    assert_int_equal(sim_node_slow(r.s, 1, 40), -2);
    rig_stop(&r);
}

static void flood(struct rig *r, const struct dest *d, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t mad[MAD_SIZE];
        mad_smp_build(mad, &d->to, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, 1000 + i, 0, NULL, NULL);
        assert_int_equal(r->t->ops->send(r->t, mad, &(struct mad_addr){.lid = d->lid}, 0), 0);
    }
}

static void agent_works_in_order_and_drops(void **state)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"), &(struct sim_opts){.service_ns = SERVICE, .vl15_buffer = 8});
    struct dest leaf = by_path(1, 1);
    struct sim_stats st;
    const struct port *mine = fabric_port(r.f, fabric_by_port_guid(r.f, r.port.port_guid));
    const struct port *lp = fabric_port(r.f, mine->peer);
    flood(&r, &leaf, 20);
    rig_run(&r, 8 * SERVICE - 1);
    assert_int_equal(r.others, 7);
    rig_run(&r, MONO_S);
    assert_int_equal(r.others, 8);
    sim_get_stats(r.s, &st);
    assert_int_equal(st.dropped_vl15, 12);
    uint64_t dropped;
    assert_int_equal(
        sim_counter_get(r.s, fabric_node(r.f, lp->node)->guid, lp->num, SIM_VL15_DROPPED, &dropped), 0);
    assert_int_equal(dropped, 12);
    flood(&r, &leaf, 8); // room again
    rig_run(&r, MONO_S);
    assert_int_equal(r.others, 16);
    rig_stop(&r);
}

static void in_order(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct mad_hdr h;
    mad_hdr_decode(mad, &h);
    assert_int_equal((uint32_t)h.tid, 1000 + *(unsigned *)arg);
    (*(unsigned *)arg)++;
}

static void equal_times_keep_their_order(void **state)
{
    struct rig r;
    unsigned n = 0;
    rig_start(&r, rig_fabric("ft3-4-4"),
              &(struct sim_opts){.link_latency_ns = LINK, .service_ns = 10, .vl15_buffer = 200});
    r.t->recv = in_order;
    r.t->recv_arg = &n;
    struct dest leaf = by_path(1, 1);
    flood(&r, &leaf, 200);
    rig_run(&r, MONO_S);
    assert_int_equal(n, 200);
    rig_stop(&r);
}

static void loss_is_about_as_told(void **state)
{
    struct rig r;
    struct sim_stats st;
    rig_start(&r, rig_fabric("ft3-4-4"), &(struct sim_opts){.seed = 5, .loss = 0.1});
    struct dest leaf = by_path(1, 1);
    flood(&r, &leaf, 10000);
    rig_run(&r, MONO_S);
    sim_get_stats(r.s, &st);
    assert_int_equal(st.lost + r.others, 10000);
    assert_in_range(r.others, 7900, 8300); // 0.9 x 0.9
    sim_set_loss(r.s, 0);
    r.others = 0;
    flood(&r, &leaf, 100);
    rig_run(&r, MONO_S);
    assert_int_equal(r.others, 100);
    rig_stop(&r);
}

static void link_down_while_under_way(void **state)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"), &(struct sim_opts){.link_latency_ns = MONO_MS});
    struct dest leaf = by_path(1, 1);
    flood(&r, &leaf, 1);
    rig_run(&r, MONO_MS / 2);
    assert_int_equal(sim_link_set(r.s, r.port.node_guid, 1, false), 0);
    rig_run(&r, MONO_S);
    assert_int_equal(r.others, 0);
    struct sim_stats st;
    sim_get_stats(r.s, &st);
    assert_int_equal(st.mads, 1); // nobody got it
    assert_int_equal(st.no_route, 1);
    assert_int_equal(st.traps, 0); // who has no LID says nothing
    rig_stop(&r);
}

static uint64_t one_run(uint64_t seed)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"),
              &(struct sim_opts){
                  .seed = seed, .loss = 0.05, .link_latency_ns = 100, .service_ns = 3000, .vl15_buffer = 4});
    for (uint32_t i = 0; i < r.f->num_nodes; i++) {
        struct dest d = rig_path(&r, r.f->node[i].guid);
        flood(&r, &d, 6);
        if (i % 7 == 3)
            sim_switch_reboot(r.s, r.f->node[i].guid);
        rig_run(&r, 10000);
    }
    rig_run(&r, MONO_S);
    uint64_t digest = sim_digest(r.s);
    rig_stop(&r);
    return digest;
}

static void equal_runs_are_equal(void **state)
{
    uint64_t a = one_run(1);
    assert_true(a == one_run(1));
    assert_true(a != one_run(2));
}

static void dead_nodes_are_seeded(void **state)
{
    unsigned silent[2] = {0, 0}, differ = 0;
    bool dead[2][64] = {{false}};
    for (unsigned k = 0; k < 2; k++) {
        struct rig r;
        rig_start(&r, rig_fabric("ft3-4-4"), &(struct sim_opts){.dead_nodes = 3, .dead_nodes_seed = 7 + k});
        for (uint32_t i = 0; i < r.f->num_nodes; i++) {
            struct dest d = rig_path(&r, r.f->node[i].guid);
            uint8_t data[64] = {0};
            dead[k][i] = rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data) != 0;
            silent[k] += dead[k][i];
        }
        struct dest self = by_path(0);
        assert_true(rtt(&r, &self) == 0); // never the manager's own
        rig_stop(&r);
    }
    for (unsigned i = 0; i < 64; i++)
        differ += dead[0][i] != dead[1][i];
    assert_true(silent[0] >= 3 && silent[1] >= 3); // and what only they lead to
    assert_true(differ > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_adds_up),
        cmocka_unit_test(agent_works_in_order_and_drops),
        cmocka_unit_test(equal_times_keep_their_order),
        cmocka_unit_test(loss_is_about_as_told),
        cmocka_unit_test(link_down_while_under_way),
        cmocka_unit_test(equal_runs_are_equal),
        cmocka_unit_test(dead_nodes_are_seeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
