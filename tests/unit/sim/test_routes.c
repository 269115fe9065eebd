// SPDX-License-Identifier: Apache-2.0
// Routes and headers: directed, combined and LID-routed MADs, what ends in silence, counters of what passed
// (PMA), and bytes that nobody would send.
#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/err.h"
#include "lib/mono.h"
#include "lib/rng.h"
#include "tests/unit/sim/client.h"

static struct rig rig;
static uint64_t leaf_guid, host_guid;
static unsigned my_port_at_leaf;

static int setup(void **state)
{
    rig_start(&rig, rig_fabric("ft3-4-4"), NULL);
    const struct port *mine = fabric_port(rig.f, fabric_by_port_guid(rig.f, rig.port.port_guid));
    leaf_guid = fabric_peer_node(rig.f, mine)->guid;
    my_port_at_leaf = fabric_port(rig.f, mine->peer)->num;
    for (uint32_t i = 0; i < rig.f->num_nodes; i++)
        if (rig.f->node[i].type == NODE_CA && rig.f->node[i].guid != rig.port.node_guid)
            host_guid = rig.f->node[i].guid;
    return 0;
}

static int setup_up(void **state)
{
    setup(state);
    rig_bring_up(&rig);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static int node_info(const struct dest *d, uint64_t *ret_guid)
{
    uint8_t data[64] = {0};
    struct mad_node_info ni;
    int st = rig_smp(&rig, d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data);
    mad_node_info_decode(data, &ni);
    *ret_guid = ni.node_guid;
    return st;
}

// The manager's leaf's last port to another switch, and that switch's end.
static unsigned uplink(void)
{
    const struct node *n = fabric_by_guid(rig.f, leaf_guid);
    unsigned up = 0;
    for (unsigned p = 1; p <= n->num_ports; p++)
        if (fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, n, p)))->type == NODE_SWITCH)
            up = p;
    return up;
}

static const struct port *far_end(unsigned up)
{
    const struct node *n = fabric_by_guid(rig.f, leaf_guid);
    return fabric_port(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, n, up))->peer);
}

static void bad_ways_are_silent(void **state)
{
    uint64_t g;
    struct dest no_port = by_path(2, 1, 99), port0 = by_path(2, 1, 0),
                through_host = by_path(3, 1, 3 - my_port_at_leaf, 1), wrong_out = by_path(1, 2);
    assert_int_equal(node_info(&no_port, &g), -1);
    assert_int_equal(node_info(&port0, &g), -1);
    assert_int_equal(node_info(&through_host, &g), -1);
    assert_int_equal(node_info(&wrong_out, &g), -1);
    struct dest back = by_path(2, 1, (int)my_port_at_leaf);
    assert_int_equal(node_info(&back, &g), 0);
    assert_true(g == rig.port.node_guid);
    // 63 hops, to and fro between two switches
    unsigned up = uplink();
    struct dest longest = by_path(1, 1);
    for (unsigned i = 2; i <= 63; i++)
        longest = dest_plus(longest, i % 2 ? far_end(up)->num : up);
    assert_int_equal(node_info(&longest, &g), 0);
    assert_true(g == leaf_guid);
    struct sim_stats st;
    sim_get_stats(rig.s, &st);
    assert_int_equal(st.no_route, 4);
}

static void directed_answer_has_its_header(void **state)
{
    struct dest d = by_path(1, 1);
    uint64_t g;
    assert_int_equal(node_info(&d, &g), 0);
    struct mad_smp smp;
    mad_smp_decode(rig.answer, &smp);
    assert_int_equal(smp.direction, 1);
    assert_int_equal(smp.hop_pointer, 0);
    assert_int_equal(smp.hop_count, 1);
    assert_int_equal(smp.return_path[1], my_port_at_leaf);
    assert_int_equal(rig.from.lid, MAD_LID_PERMISSIVE);
}

static void raw(struct mad_smp *smp, uint16_t lid, bool want)
{
    uint8_t mad[MAD_SIZE];
    smp->base_version = 1;
    smp->class_version = 1;
    smp->tid = ++rig.tid;
    mad_smp_encode(smp, mad);
    struct sim_stats before, after;
    sim_get_stats(rig.s, &before);
    assert_int_equal(rig_raw(&rig, mad, lid, MONO_MS), want);
    sim_get_stats(rig.s, &after);
    assert_int_equal(after.mads - before.mads, want ? 2 : 1); // silence: no answer that got lost
}

static void hop_pointers_are_checked(void **state)
{
    struct mad_smp smp = {.mgmt_class = MAD_CLASS_SM_DR,
                          .method = MAD_METHOD_GET,
                          .attr_id = MAD_ATTR_NODE_INFO,
                          .dr_slid = 0xffff,
                          .dr_dlid = 0xffff,
                          .hop_count = 1,
                          .initial_path = {0, 1}};
    raw(&smp, 0xffff, true);
    smp.hop_pointer = 1;
    raw(&smp, 0xffff, false);
    smp.hop_count = 2;
    smp.initial_path[2] = 1;
    raw(&smp, 0xffff, false);
    smp.hop_count = 1;
    smp.hop_pointer = 2;
    raw(&smp, 0xffff, false);
    smp.hop_pointer = 0;
    smp.hop_count = 64;
    raw(&smp, 0xffff, false);
    smp.hop_count = 1;
    smp.direction = 1; // a request that returns
    raw(&smp, 0xffff, false);
    smp.hop_pointer = 2;
    smp.return_path[1] = 1;
    raw(&smp, 0xffff, false);
}

static void versions_and_local(void **state)
{
    struct mad_smp smp = {
        .mgmt_class = MAD_CLASS_SM_LID, .method = MAD_METHOD_GET, .attr_id = MAD_ATTR_NODE_INFO};
    raw(&smp, 0xffff, true); // permissive: to itself, before it has a LID
    uint8_t mad[MAD_SIZE];
    smp.tid = ++rig.tid;
    mad_smp_encode(&smp, mad);
    mad[2] = 9;
    assert_true(rig_raw(&rig, mad, 0xffff, MONO_MS));
    assert_int_equal(rig.answer[5], MAD_STATUS_BAD_VERSION);
    raw(&smp, 77, false); // no LFT leads there
}

static void combined_routes(void **state)
{
    uint16_t leaf_lid = rig_lid_of(&rig, leaf_guid), my_lid = rig_lid_of(&rig, rig.port.node_guid);
    uint64_t far_leaf =
        fabric_peer_node(rig.f, fabric_port(rig.f, (port_id){fabric_by_guid(rig.f, host_guid)->first_port}))
            ->guid;
    const struct port *hp = fabric_port(rig.f, (port_id){fabric_by_guid(rig.f, host_guid)->first_port});
    struct mad_node_info ni;
    // LID-routed to the far leaf, from there by port to the host
    struct mad_smp smp = {.mgmt_class = MAD_CLASS_SM_DR,
                          .method = MAD_METHOD_GET,
                          .attr_id = MAD_ATTR_NODE_INFO,
                          .dr_slid = my_lid,
                          .dr_dlid = 0xffff,
                          .hop_count = 1};
    smp.initial_path[1] = fabric_port(rig.f, hp->peer)->num;
    raw(&smp, rig_lid_of(&rig, far_leaf), true);
    mad_node_info_decode(rig.answer + 64, &ni);
    assert_true(ni.node_guid == host_guid);
    // by port to the own leaf, from there LID-routed to the host
    smp = (struct mad_smp){.mgmt_class = MAD_CLASS_SM_DR,
                           .method = MAD_METHOD_GET,
                           .attr_id = MAD_ATTR_NODE_INFO,
                           .dr_slid = 0xffff,
                           .dr_dlid = rig_lid_of(&rig, host_guid),
                           .hop_count = 1,
                           .initial_path = {0, 1}};
    raw(&smp, 0xffff, true);
    mad_node_info_decode(rig.answer + 64, &ni);
    assert_true(ni.node_guid == host_guid);
    // LID, directed out and back, LID
    smp = (struct mad_smp){.mgmt_class = MAD_CLASS_SM_DR,
                           .method = MAD_METHOD_GET,
                           .attr_id = MAD_ATTR_NODE_INFO,
                           .dr_slid = my_lid,
                           .dr_dlid = leaf_lid,
                           .hop_count = 1};
    const struct node *fl = fabric_by_guid(rig.f, far_leaf);
    for (unsigned p = 1; p <= fl->num_ports; p++)
        if (fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, fl, p)))->type == NODE_SWITCH)
            smp.initial_path[1] = (uint8_t)p;
    raw(&smp, rig_lid_of(&rig, far_leaf), true);
    mad_node_info_decode(rig.answer + 64, &ni);
    assert_true(ni.node_guid == leaf_guid);
    // an adapter routes nothing on
    smp.hop_count = 1;
    smp.initial_path[1] = 1;
    smp.dr_dlid = 0xffff;
    raw(&smp, rig_lid_of(&rig, host_guid), false);
}

static void lid_loop_ends(void **state)
{
    // two switches send LID 40 to each other
    struct dest leaf = rig_path(&rig, leaf_guid);
    unsigned up = uplink();
    const struct port *far = far_end(up);
    struct dest agg = dest_plus(leaf, up);
    uint8_t data[64];
    for (unsigned k = 0; k < 2; k++) {
        const struct dest *d = k ? &agg : &leaf;
        memset(data, 0, 64);
        assert_int_equal(rig_smp(&rig, d, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), 0);
        data[40] = (uint8_t)(k ? far->num : up);
        assert_int_equal(rig_smp(&rig, d, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), 0);
        struct mad_switch_info si;
        assert_int_equal(rig_smp(&rig, d, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
        mad_switch_info_decode(data, &si);
        si.linear_fdb_top = 60;
        mad_switch_info_encode(&si, data);
        assert_int_equal(rig_smp(&rig, d, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
    }
    struct dest d = by_lid(40);
    uint64_t g, sent, sent_after;
    assert_int_equal(sim_counter_get(rig.s, leaf_guid, up, SIM_XMIT_PKTS, &sent), 0);
    assert_int_equal(node_info(&d, &g), -1);
    struct sim_stats st;
    sim_get_stats(rig.s, &st);
    assert_int_equal(st.loops, 1);
    assert_int_equal(sim_counter_get(rig.s, leaf_guid, up, SIM_XMIT_PKTS, &sent_after), 0);
    assert_int_equal(sent_after - sent, 32); // of 64 hops
    char where[200];
    assert_int_equal(sim_trace(rig.s, rig.port.port_guid, 40, where, sizeof(where)), -113);
    assert_non_null(strstr(where, "loop"));
}

static void traffic_and_counters(void **state)
{
    uint8_t data[192];
    struct mad_port_counters pc = {.port_select = 1};
    struct mad_port_counters_extended px = {.port_select = 1};
    uint16_t lid = rig_lid_of(&rig, host_guid);
    uint64_t before, v;
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_RCV_DATA, &before), 0);
    assert_int_equal(sim_traffic(rig.s, rig.port.port_guid, lid, 40960000000ull, 4096), 6);
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_RCV_DATA, &v), 0);
    assert_true(v - before == 10240000000ull);
    assert_int_equal(sim_counter_add(rig.s, host_guid, 1, SIM_SYMBOL_ERRORS, 70000), 0);
    assert_int_equal(sim_counter_add(rig.s, host_guid, 1, SIM_LOCAL_LINK_INTEGRITY_ERRORS, 3), 0);
    assert_int_equal(sim_counter_add(rig.s, host_guid, 1, SIM_XMIT_WAIT, 12), 0);
    assert_int_equal(sim_counter_add(rig.s, host_guid, 3, SIM_XMIT_WAIT, 12), -2);
    mad_port_counters_encode(&pc, data);
    assert_int_equal(rig_pma(&rig, lid, MAD_METHOD_GET, MAD_PM_ATTR_PORT_COUNTERS, data), 0);
    mad_port_counters_decode(data, &pc);
    assert_int_equal(pc.symbol_error_counter, 0xffff);
    assert_int_equal(pc.port_rcv_data, 0xffffffff);
    assert_int_equal(pc.local_link_integrity_errors, 3);
    assert_int_equal(pc.port_xmit_wait, 12);
    mad_port_counters_extended_encode(&px, data);
    assert_int_equal(rig_pma(&rig, lid, MAD_METHOD_GET, MAD_PM_ATTR_PORT_COUNTERS_EXTENDED, data), 0);
    mad_port_counters_extended_decode(data, &px);
    assert_true(px.port_rcv_data > 10240000000ull);
    assert_true(px.symbol_error_counter == 70000);
    assert_true(px.port_xmit_wait == 12);
    assert_true(px.port_rcv_pkts >= 10000000);
    // clear by mask
    pc = (struct mad_port_counters){.port_select = 1, .counter_select = 1};
    mad_port_counters_encode(&pc, data);
    assert_int_equal(rig_pma(&rig, lid, MAD_METHOD_SET, MAD_PM_ATTR_PORT_COUNTERS, data), 0);
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_SYMBOL_ERRORS, &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_XMIT_WAIT, &v), 0);
    assert_int_equal(v, 12);
    px = (struct mad_port_counters_extended){
        .port_select = 1, .counter_select = 2, .counter_select2 = 1 << 12};
    mad_port_counters_extended_encode(&px, data);
    assert_int_equal(rig_pma(&rig, lid, MAD_METHOD_SET, MAD_PM_ATTR_PORT_COUNTERS_EXTENDED, data), 0);
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_XMIT_WAIT, &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_RCV_DATA, &v), 0);
    assert_true(v < 10000);
    assert_int_equal(sim_counter_get(rig.s, host_guid, 1, SIM_LOCAL_LINK_INTEGRITY_ERRORS, &v), 0);
    assert_int_equal(v, 3);
    // all ports of a switch
    uint16_t leaf_lid = rig_lid_of(&rig, leaf_guid);
    for (unsigned p = 1; p <= 4; p++)
        assert_int_equal(sim_counter_add(rig.s, leaf_guid, p, SIM_RCV_ERRORS, p), 0);
    pc = (struct mad_port_counters){.port_select = MAD_PORT_SELECT_ALL};
    mad_port_counters_encode(&pc, data);
    assert_int_equal(rig_pma(&rig, leaf_lid, MAD_METHOD_GET, MAD_PM_ATTR_PORT_COUNTERS, data), 0);
    mad_port_counters_decode(data, &pc);
    assert_int_equal(pc.port_rcv_errors, 10);
    pc.port_select = 9;
    mad_port_counters_encode(&pc, data);
    assert_int_equal(rig_pma(&rig, leaf_lid, MAD_METHOD_GET, MAD_PM_ATTR_PORT_COUNTERS, data),
                     MAD_STATUS_BAD_VALUE);
    assert_int_equal(rig_pma(&rig, leaf_lid, MAD_METHOD_GET, 0x77, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(rig_pma(&rig, leaf_lid, 0x55, 0x77, data), MAD_STATUS_BAD_METHOD);
    // a dead end discards
    assert_int_equal(sim_link_set(rig.s, host_guid, 1, false), 0);
    assert_int_equal(sim_traffic(rig.s, rig.port.port_guid, lid, 4096, 0), -113);
}

static void p_keys_are_checked_when_asked(void **state)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"), &(struct sim_opts){.p_key_check = true});
    rig_bring_up(&r);
    uint8_t data[192] = {0}, keys[64] = {0x12, 0x34};
    struct dest host = by_lid(rig_lid_of(&r, host_guid));
    assert_int_equal(rig_pma(&r, host.lid, MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, data), 0);
    keys[0] = 0x7f; // limited member of default: the manager is a full one
    keys[1] = 0xff;
    assert_int_equal(rig_smp(&r, &host, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, 0, keys), 0);
    assert_int_equal(rig_pma(&r, host.lid, MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, data), 0);
    keys[0] = 0x12;
    assert_int_equal(rig_smp(&r, &host, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, 0, keys),
                     0); // VL15 has no P_Key
    assert_int_equal(rig_pma(&r, host.lid, MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, data), -1);
    rig_stop(&r);
}

static void ignore(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    (*(unsigned *)arg)++;
}

// Half sensible, half noise; whatever it does to the devices, the next MAD is answered or not.
static void noise_hurts_nobody(void **state)
{
    struct rng rng;
    unsigned got = 0;
    struct err e;
    rng_init(&rng, 42);
    rig.t->recv = ignore;
    rig.t->recv_arg = &got;
    assert_int_equal(rig.t->ops->issm(rig.t, true, &e), 0);
    for (unsigned i = 0; i < 200000; i++) {
        uint8_t mad[MAD_SIZE];
        for (unsigned k = 0; k < MAD_SIZE; k += 8) {
            uint64_t v = rng_u64(&rng);
            memcpy(mad + k, &v, 8);
        }
        static const uint8_t classes[] = {0x81, 0x81, 0x01, 0x04, 0x03};
        struct mad_addr to = {.lid = (uint16_t)rng_below(&rng, 50),
                              .pkey_index = (uint16_t)rng_below(&rng, 300)};
        if (rng_below(&rng, 10)) {
            mad[0] = 1;
            mad[1] = classes[rng_below(&rng, 5)];
            mad[2] = 1;
            mad[3] = (uint8_t)(1 + rng_below(&rng, 3));
            memset(mad + 4, 0, 4);
            mad[7] = (uint8_t)rng_below(&rng, 6);
            mad[16] = 0;
            mad[17] = (uint8_t)(0x10 + rng_below(&rng, 13));
            if (rng_below(&rng, 2))
                mad[20] = mad[21] = 0;
            if (rng_below(&rng, 2))
                mad[22] = 0;
            if (rng_below(&rng, 4))
                memset(mad + 24, 0, 8);
            if (rng_below(&rng, 4))
                memset(mad + 32, 0xff, 4);
            for (unsigned k = 1; k < 8; k++)
                mad[128 + k] = (uint8_t)(1 + rng_below(&rng, 4));
            if (mad[1] == 0x81 && rng_below(&rng, 4))
                to.lid = 0xffff;
        }
        assert_int_equal(rig.t->ops->send(rig.t, mad, &to, 0), 0);
        if (i % 64 == 0)
            rig_run(&rig, 1000);
    }
    rig_run(&rig, MONO_S);
    assert_true(got > 1000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define U(f) cmocka_unit_test_setup_teardown(f, setup_up, teardown)
static int hops_on(unsigned sl, uint16_t lid)
{
    return sim_trace_sl(rig.s, rig.port.port_guid, lid, sl, NULL, NULL, NULL, 0);
}

// A level goes where SLtoVL sends it, by the port that it comes in by: lane 15, lanes beyond OperationalVLs
// and lanes without a share of the wire carry nothing.
static void levels_go_by_lanes(void **state)
{
    uint16_t lid = rig_lid_of(&rig, host_guid);
    struct dest leaf = by_path(1, 1);
    struct mad_port_info pi;
    uint8_t row[64] = {0}, arb[64] = {0}, vl;
    unsigned up = 0, in = my_port_at_leaf;
    uint8_t out;

    assert_int_equal(sim_lft(rig.s, leaf_guid, lid, &out), 0);
    up = out;
    assert_int_equal(rig_get_port(&rig, &leaf, up, &pi), 0);
    assert_true(mad_vl_count(pi.operational_vls) >= 4);
    for (unsigned sl = 0; sl < 4; sl++)
        assert_int_equal(hops_on(sl, lid), 6);
    row[0] = 0x0f; // level 1: nowhere
    row[1] = 0x2e; // level 2: lane 2; level 3: lane 14, which the link has not
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_SLTOVL_MAPPING_TABLE, in << 8 | up, row),
                     0);
    assert_int_equal(hops_on(0, lid), 6);
    assert_int_equal(hops_on(1, lid), -EHOSTUNREACH);
    assert_int_equal(hops_on(2, lid), 6);
    assert_int_equal(hops_on(3, lid), -EHOSTUNREACH);
    assert_int_equal(sim_sl2vl(rig.s, leaf_guid, in, up, 2, &vl), 0);
    assert_int_equal(vl, 2);
    assert_int_equal(sim_sl2vl(rig.s, leaf_guid, in + 1, up, 1, &vl), 0); // another way in
    assert_int_equal(vl, 1);
    arb[1] = 10; // lane 0 alone has a share
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_VL_ARBITRATION_TABLE, 1 << 16 | up, arb),
                     0);
    assert_int_equal(hops_on(0, lid), 6);
    assert_int_equal(hops_on(2, lid), -EHOSTUNREACH);
    memset(arb, 0, sizeof(arb));
    arb[0] = 2;
    arb[1] = 1;
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_VL_ARBITRATION_TABLE, 3 << 16 | up, arb),
                     0);
    assert_int_equal(hops_on(2, lid), 6); // of the high table
    assert_int_equal(sim_sl2vl(rig.s, leaf_guid, 0, 99, 1, &vl), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bad_ways_are_silent),      T(directed_answer_has_its_header),
        T(hop_pointers_are_checked), T(versions_and_local),
        U(combined_routes),          U(lid_loop_ends),
        U(traffic_and_counters),     T(p_keys_are_checked_when_asked),
        U(noise_hurts_nobody),       U(levels_go_by_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
