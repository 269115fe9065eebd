// SPDX-License-Identifier: Apache-2.0
// Traffic of a simulated fabric: along the programmed tables, with waits where they would be, and counters
// that move in the loop's time.
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

#include "sim/sim_flow.h"
#include "tests/unit/sim/client.h"

#define BPS 25e9 // 4xHDR
#define NEAR(a, b, tol) assert_true(fabs((double)(a) - (double)(b)) <= (tol))

static struct rig rig;
static struct rig_ends e;

static int setup(void **state)
{
    rig_up(&rig, NULL, &e);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static uint64_t counter(uint64_t guid, unsigned port, enum sim_counter c)
{
    uint64_t v = 0;
    assert_int_equal(sim_counter_get(rig.s, guid, port, c, &v), 0);
    return v;
}

// Adapters' port GUIDs in the fabric's order.
static unsigned hosts(uint64_t ret[64], uint64_t node[64])
{
    unsigned n = 0;
    for (uint32_t i = 0; i < rig.f->num_nodes && n < 64; i++)
        if (rig.f->node[i].type == NODE_CA) {
            node[n] = rig.f->node[i].guid;
            ret[n++] = rig.f->port[rig.f->node[i].first_port].guid;
        }
    return n;
}

static void pairs(const uint64_t *from, const uint64_t *to, unsigned n, double load)
{
    struct sim_flow_spec d = {.pattern = SIM_FLOW_PAIRS,
                              .host = from,
                              .num_hosts = n,
                              .receiver = to,
                              .num_receivers = n,
                              .load = load};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), 0);
}

static void counters_move_in_time(void **state)
{
    uint64_t port[64], node[64];
    hosts(port, node);
    pairs(&port[0], &port[5], 1, 0.5);
    rig_run(&rig, 100 * MONO_MS);
    uint64_t x = counter(node[0], 1, SIM_XMIT_DATA), r = counter(node[5], 1, SIM_RCV_DATA);
    uint64_t px = counter(node[0], 1, SIM_XMIT_PKTS);
    rig_run(&rig, 2 * MONO_S);
    uint64_t sent = counter(node[0], 1, SIM_XMIT_DATA) - x, got = counter(node[5], 1, SIM_RCV_DATA) - r;
    uint64_t packets = counter(node[0], 1, SIM_XMIT_PKTS) - px;
    NEAR(4.0 * (double)sent, 0.5 * 2 * BPS, 0.01 * BPS);
    NEAR(sent, got, 2);
    NEAR(4.0 * (double)sent / (double)packets, rig_field(&rig, node[0], 1, "neighbor_mtu") == 5 ? 4126 : 2078,
         1);
    assert_int_equal(counter(node[0], 1, SIM_XMIT_WAIT), 0);
    assert_int_equal(sim_flow_stop(rig.s, 0), 0);
    rig_run(&rig, MONO_S);
    x = counter(node[0], 1, SIM_XMIT_DATA);
    rig_run(&rig, MONO_S);
    assert_int_equal(counter(node[0], 1, SIM_XMIT_DATA), x);
}

static void waits_are_ticks_of_eight_bytes(void **state)
{
    uint64_t port[64], node[64], from[2], to[2];
    hosts(port, node);
    from[0] = port[0], from[1] = port[1], to[0] = to[1] = port[7];
    pairs(from, to, 2, 1);
    sim_flow_settle(rig.s);
    uint64_t w = counter(node[0], 1, SIM_XMIT_WAIT), x = counter(node[0], 1, SIM_XMIT_DATA);
    rig_run(&rig, MONO_S);
    w = counter(node[0], 1, SIM_XMIT_WAIT) - w;
    x = counter(node[0], 1, SIM_XMIT_DATA) - x;
    NEAR(8.0 * (double)w, BPS / 2, 0.03 * BPS);
    NEAR(8.0 * (double)w + 4.0 * (double)x, BPS, 0.01 * BPS); // it sends, or it waits
}

static void set_port(uint64_t guid, unsigned port, void (*change)(struct mad_port_info *pi))
{
    struct mad_port_info pi;
    struct dest d = rig_path(&rig, guid);
    assert_int_equal(rig_get_port(&rig, &d, port, &pi), 0);
    pi.port_state = pi.port_physical_state = 0;
    change(&pi);
    assert_int_equal(rig_set_port(&rig, &d, port, &pi), 0);
}

static void as_managers_have_it(struct mad_port_info *pi)
{
    pi->hoq_life = 16;
    pi->vl_stall_count = 7;
}

static void armed(struct mad_port_info *pi)
{
    pi->port_state = MAD_PORT_ARMED;
}

static void active(struct mad_port_info *pi)
{
    pi->port_state = MAD_PORT_ACTIVE;
}

// A dead host: for seven HOQLives of 0.27 s nothing moves, then for eight all that goes there is dropped, and
// who stands behind it in the same buffers moves.
static void stalled_lanes_let_others_through(void **state)
{
    uint64_t port[64], node[64], from[2], to[2];
    unsigned n = hosts(port, node);
    struct sim_flow_view v, w;
    from[0] = from[1] = port[0] == rig.port.port_guid ? port[1] : port[0];
    to[0] = e.host_port_guid;
    to[1] = port[n / 2];
    assert_int_equal(sim_receiver(rig.s, e.host, 1, 0), 0);
    pairs(from, to, 2, 1);
    assert_int_equal(sim_flow_view(rig.s, e.far_leaf, e.far_port, &v), 0);
    assert_true(v.stuck && v.discards_s > 100000); // HOQLife 0
    set_port(e.far_leaf, e.far_port, as_managers_have_it);
    assert_int_equal(sim_flow_view(rig.s, e.far_leaf, e.far_port, &v), 0);
    NEAR(v.held, 7.0 / 15, 0.01);
    assert_true(v.used == 0);
    // half of the sender's link goes there while the lane is stalled, in packets of 2 or 4 KiB
    double packet = rig_field(&rig, e.host, 1, "neighbor_mtu") == 5 ? 4096 : 2048;
    NEAR(v.discards_s * packet, 8.0 / 15 * BPS / 2, 0.03 * BPS);
    struct sim_flow_info i;
    assert_int_equal(sim_flow_list(rig.s, 0, &i), 0);
    NEAR(i.delivered, 8.0 / 15 * BPS / 2, 0.03 * BPS); // the other one's
    assert_int_equal(i.dead, 1);
    const struct node *from_node =
        fabric_node(rig.f, fabric_port(rig.f, fabric_by_port_guid(rig.f, from[0]))->node);
    assert_int_equal(sim_flow_view(rig.s, from_node->guid, 1, &w), 0);
    NEAR(w.held, 7.0 / 15, 0.02);
    NEAR(w.used, 8.0 / 15, 0.02);
    assert_true(w.root_guid == e.far_leaf && w.root_port == e.far_port);
    uint64_t late = counter(e.far_leaf, e.far_port, SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS);
    rig_run(&rig, MONO_S);
    late = counter(e.far_leaf, e.far_port, SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS) - late;
    NEAR((double)late, v.discards_s, 0.01 * v.discards_s);
}

// Level 0 to a host that takes nothing, level 1 to another: only lane 0 waits.
static void each_lane_waits_for_itself(void **state)
{
    uint64_t port[64], node[64], to;
    uint8_t data[MAD_PM_DATA_SIZE] = {0};
    unsigned n = hosts(port, node), k = port[0] == rig.port.port_guid ? 1 : 0;
    struct sim_flow_view v;
    assert_int_equal(sim_receiver(rig.s, e.host, 1, 0), 0);
    to = port[n / 2];
    struct sim_flow_spec d = {.pattern = SIM_FLOW_PAIRS,
                              .host = &port[k],
                              .num_hosts = 1,
                              .receiver = &e.host_port_guid,
                              .num_receivers = 1};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), 0);
    d.receiver = &to;
    d.sl_given = true;
    d.sl = 1;
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), 0);
    assert_int_equal(sim_flow_view(rig.s, node[k], 1, &v), 0);
    assert_true(v.used > 0.97 && v.held < 0.02); // lane 1 has all of the link
    rig_run(&rig, MONO_S);
    mad_port_vl_xmit_wait_counters_encode(&(struct mad_port_vl_xmit_wait_counters){.port_select = 1}, data);
    assert_int_equal(rig_pma(&rig, rig_lid_of(&rig, node[k]), MAD_METHOD_GET,
                             MAD_PM_ATTR_PORT_VL_XMIT_WAIT_COUNTERS, data),
                     0);
    struct mad_port_vl_xmit_wait_counters c;
    mad_port_vl_xmit_wait_counters_decode(data, &c);
    assert_int_equal(c.port_vl_xmit_wait[0], 0xffff);
    assert_int_equal(c.port_vl_xmit_wait[1], 0);
}

static void a_slow_cable_is_named(void **state)
{
    uint64_t port[64], node[64], from[1];
    struct sim_flow_root r[2];
    hosts(port, node);
    from[0] = rig.port.port_guid == port[0] ? port[1] : port[0];
    pairs(from, &e.host_port_guid, 1, 1);
    assert_int_equal(sim_flow_roots(rig.s, r, 2), 0);
    assert_int_equal(sim_link_enabled(rig.s, e.far_leaf, e.far_port, 0, 0, MAD_SPEED_EXT_EDR), 0);
    assert_int_equal(sim_link_flap(rig.s, e.far_leaf, e.far_port, 0, 0, 1), 0);
    struct sim_flow_view v;
    assert_int_equal(sim_flow_view(rig.s, e.far_leaf, e.far_port, &v), 0);
    assert_true(v.bytes_s == 0 && v.discards_s > 0); // in INIT it carries nothing
    set_port(e.far_leaf, e.far_port, armed);
    set_port(e.host, 1, armed);
    set_port(e.far_leaf, e.far_port, active);
    assert_int_equal(sim_flow_roots(rig.s, r, 2), 1);
    assert_true(r[0].node_guid == e.far_leaf && r[0].port == e.far_port && r[0].kind == SIM_ROOT_SLOW_LINK);
    NEAR(r[0].used, 1, 0.02);
    assert_int_equal(sim_flow_view(rig.s, e.far_leaf, e.far_port, &v), 0);
    NEAR(v.bytes_s, BPS / 2, 0.02 * BPS);
}

// A clear by whoever asks does not stop the counter.
static void counters_are_read_and_cleared_by_mads(void **state)
{
    uint64_t port[64], node[64];
    struct mad_port_counters_extended c = {.port_select = 1}, d;
    uint8_t data[MAD_PM_DATA_SIZE] = {0};
    hosts(port, node);
    unsigned k = port[0] == rig.port.port_guid ? 1 : 0;
    pairs(&port[k], &e.host_port_guid, 1, 0.25);
    rig_run(&rig, 500 * MONO_MS);
    uint16_t lid = rig_lid_of(&rig, node[k]);
    c.counter_select = 0xffff;
    mad_port_counters_extended_encode(&c, data);
    assert_int_equal(rig_pma(&rig, lid, MAD_METHOD_SET, MAD_PM_ATTR_PORT_COUNTERS_EXTENDED, data), 0);
    rig_run(&rig, MONO_S);
    memset(data, 0, sizeof(data));
    mad_port_counters_extended_encode(&c, data);
    assert_int_equal(rig_pma(&rig, lid, MAD_METHOD_GET, MAD_PM_ATTR_PORT_COUNTERS_EXTENDED, data), 0);
    mad_port_counters_extended_decode(data, &d);
    NEAR(4.0 * (double)d.port_xmit_data, BPS / 4, 0.01 * BPS / 4);
    assert_true(d.port_unicast_xmit_pkts >= d.port_xmit_pkts - 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_move_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_are_ticks_of_eight_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(stalled_lanes_let_others_through, setup, teardown),
        cmocka_unit_test_setup_teardown(each_lane_waits_for_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_cable_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(counters_are_read_and_cleared_by_mads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
