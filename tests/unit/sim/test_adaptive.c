// SPDX-License-Identifier: Apache-2.0
// Switches that adapt: what they refuse, which ports they choose from, what a load of flows makes of that.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mad/adaptive.h"
#include "tests/unit/sim/client.h"

#define GET MAD_METHOD_GET
#define SET MAD_METHOD_SET
#define INFO MAD_ATTR_ADAPTIVE_ROUTING_INFO
#define GROUP MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE
#define LFT MAD_ATTR_ADAPTIVE_ROUTING_LFT
#define GROUPS 8

static struct rig rig;
static struct rig_ends e;
static struct dest leaf;
static uint8_t up[8]; // the leaf's ports to other switches
static unsigned ups;
static uint16_t far_lid;

static void start(const struct sim_opts *o)
{
    rig_up(&rig, o, &e);
    leaf = rig_path(&rig, e.leaf);
    far_lid = rig_lid_of(&rig, e.host);
    const struct node *n = fabric_by_guid(rig.f, e.leaf);
    ups = 0;
    for (unsigned p = 1; p <= n->num_ports; p++)
        if (fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, n, p)))->type == NODE_SWITCH)
            up[ups++] = (uint8_t)p;
    assert_int_equal(ups, 2);
}

static int setup(void **state)
{
    start(&(struct sim_opts){.adaptive_routing = true, .adaptive_groups = GROUPS});
    return 0;
}

static int setup_one_table(void **state)
{
    start(
        &(struct sim_opts){.adaptive_routing = true, .adaptive_groups = GROUPS, .adaptive_one_table = true});
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static int ask(uint8_t method, uint16_t attr, uint32_t mod, uint8_t data[64])
{
    return rig_smp(&rig, &leaf, method, attr, mod, data);
}

static int set_info(const struct mad_adaptive_routing_info *i)
{
    uint8_t data[64];
    mad_adaptive_routing_info_encode(i, data);
    return ask(SET, INFO, MAD_AR_INFO_MOD, data);
}

static int set_group(unsigned id, unsigned n, const uint8_t *port)
{
    uint8_t data[64] = {0};
    for (unsigned i = 0; i < n; i++)
        mad_ar_mask_add(data, port[i]);
    return ask(SET, GROUP, mad_ar_group_mod(id), data);
}

static int set_entry(uint16_t lid, enum mad_ar_state state, uint16_t group, uint8_t port)
{
    uint8_t data[64] = {0};
    struct mad_adaptive_routing_lft t;
    assert_int_equal(ask(GET, LFT, mad_ar_lft_mod(lid / 16u), data), 0);
    mad_adaptive_routing_lft_decode(data, &t);
    for (unsigned i = 0; i < 16; i++) { // what no switch of this size would keep
        t.port[i] = t.port[i] == LFT_DROP ? LFT_DROP : t.port[i];
        t.state[i] = MAD_AR_STATIC;
    }
    t.state[lid % 16] = (uint8_t)state;
    t.group[lid % 16] = group;
    t.port[lid % 16] = port;
    mad_adaptive_routing_lft_encode(&t, data);
    return ask(SET, LFT, mad_ar_lft_mod(lid / 16u), data);
}

static void tells_what_it_can(void **state)
{
    uint8_t data[64] = {0};
    struct mad_general_info g;
    struct mad_adaptive_routing_info i;
    assert_int_equal(ask(GET, MAD_ATTR_GENERAL_INFO, MAD_GENERAL_INFO_CAPABILITIES, data), 0);
    mad_general_info_decode(data, &g);
    assert_true(mad_general_cap(&g, MAD_CAP_AR_REV1));
    assert_int_equal(ask(GET, MAD_ATTR_GENERAL_INFO, 0, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(ask(GET, INFO, MAD_AR_INFO_MOD, data), 0);
    mad_adaptive_routing_info_decode(data, &i);
    assert_int_equal(i.group_cap, GROUPS);
    assert_int_equal(i.ar_en, 0);
    assert_int_equal(i.by_transport_cap, 1);

    assert_int_equal(sim_adaptive_cap(rig.s, e.leaf, 0), 0);
    assert_int_equal(ask(GET, MAD_ATTR_GENERAL_INFO, MAD_GENERAL_INFO_CAPABILITIES, data),
                     MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(ask(GET, INFO, MAD_AR_INFO_MOD, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(sim_adaptive_cap(rig.s, e.host, 4), -EINVAL);
    assert_int_equal(sim_adaptive_cap(rig.s, 1, 4), -ENOENT);
    // an adapter has none of it
    struct dest host = rig_path(&rig, e.host);
    assert_int_equal(rig_smp(&rig, &host, GET, INFO, MAD_AR_INFO_MOD, data), MAD_STATUS_BAD_METHOD_ATTR);
}

static void refuses_what_it_cannot(void **state)
{
    struct mad_adaptive_routing_info i = {.group_top = GROUPS};
    static const uint8_t zero[] = {0}, beyond[] = {200};
    assert_int_equal(set_info(&i), MAD_STATUS_BAD_VALUE);
    i.group_top = 3;
    i.hbf_en = 1;
    assert_int_equal(set_info(&i), MAD_STATUS_BAD_VALUE);
    i.hbf_en = 0;
    assert_int_equal(set_info(&i), 0);
    assert_int_equal(set_group(3, 2, up), 0);
    assert_int_equal(set_group(4, 2, up), MAD_STATUS_BAD_VALUE); // above GroupTop
    assert_int_equal(set_group(1, 1, zero), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_group(1, 1, beyond), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_entry(far_lid, MAD_AR_FREE, 3, up[0]), 0);
    assert_int_equal(set_entry(far_lid, MAD_AR_FREE, 4, up[0]), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_entry(far_lid, MAD_AR_HBF, 3, up[0]), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_entry(far_lid, MAD_AR_FREE, 3, 200), MAD_STATUS_BAD_VALUE);
    uint8_t data[64];
    assert_int_equal(ask(GET, LFT, 0xffff, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(ask(GET, GROUP, GROUPS, data), MAD_STATUS_BAD_VALUE);
}

static void turn_on(void)
{
    struct mad_adaptive_routing_info i = {.group_top = 3, .transport_disable = MAD_AR_UD | MAD_AR_UC};
    assert_int_equal(set_info(&i), 0);
    assert_int_equal(set_group(2, 2, up), 0);
    assert_int_equal(set_entry(far_lid, MAD_AR_FREE, 2, up[1]), 0);
    i.ar_en = 1;
    assert_int_equal(set_info(&i), 0);
}

static void chooses_among_live_ports(void **state)
{
    uint8_t port[256];
    assert_int_equal(sim_choices(rig.s, e.leaf, far_lid, port), 1);
    turn_on();
    assert_int_equal(sim_choices(rig.s, e.leaf, far_lid, port), 2);
    assert_memory_equal(port, up, 2);
    assert_int_equal(sim_link_set(rig.s, e.leaf, up[1], false), 0);
    assert_int_equal(sim_choices(rig.s, e.leaf, far_lid, port), 1);
    assert_int_equal(port[0], up[0]);
    assert_int_equal(sim_link_set(rig.s, e.leaf, up[0], false), 0);
    assert_int_equal(sim_choices(rig.s, e.leaf, far_lid, port), 1); // none lives: the entry's
    assert_int_equal(port[0], up[1]);
    assert_int_equal(sim_choices(rig.s, 1, far_lid, port), -ENOENT);
}

// Flows spread, and management datagrams go by the entry's port all the time.
static void flows_spread(void **state)
{
    char where[200];
    struct sim_load l;
    struct sim_flow f[4];
    for (unsigned i = 0; i < 4; i++)
        f[i] = (struct sim_flow){rig.port.port_guid, far_lid};
    turn_on();
    sim_flows(rig.s, f, 4, false, &l);
    assert_int_equal(l.arrived, 4);
    assert_int_equal(l.max_between, 4);
    sim_flows(rig.s, f, 4, true, &l);
    assert_int_equal(l.arrived, 4);
    assert_int_equal(l.max_between, 2);
    assert_true(sim_trace_all(rig.s, rig.port.port_guid, far_lid, where, sizeof(where)) > 0);
    uint64_t before[2], after[2];
    for (unsigned i = 0; i < 2; i++)
        sim_counter_get(rig.s, e.leaf, up[i], SIM_XMIT_DATA, &before[i]);
    for (unsigned i = 0; i < 4; i++)
        assert_true(sim_traffic(rig.s, rig.port.port_guid, far_lid, 1000000, 4096) > 0);
    for (unsigned i = 0; i < 2; i++)
        sim_counter_get(rig.s, e.leaf, up[i], SIM_XMIT_DATA, &after[i]);
    assert_int_equal(after[0] - before[0], 500000);
    assert_int_equal(after[1] - before[1], 500000);
    // the other way, by LID: over the port of the entry
    uint8_t data[64];
    struct dest far = by_lid(far_lid);
    assert_int_equal(rig_smp(&rig, &far, GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    uint64_t now;
    sim_counter_get(rig.s, e.leaf, up[1], SIM_XMIT_DATA, &now);
    assert_true(now > after[1]);
    sim_counter_get(rig.s, e.leaf, up[0], SIM_XMIT_DATA, &now);
    assert_int_equal(now, after[0]);
}

static void a_choice_that_leads_back_is_found(void **state)
{
    char where[200];
    turn_on();
    uint8_t ports[] = {up[0], (uint8_t)e.leaf_port};
    assert_int_equal(set_group(2, 2, ports), 0);
    assert_int_equal(sim_trace_all(rig.s, rig.port.port_guid, far_lid, where, sizeof(where)), -EHOSTUNREACH);
}

static void is_lost_at_reset(void **state)
{
    struct sim_adaptive_view v;
    turn_on();
    assert_int_equal(sim_adaptive_view(rig.s, e.leaf, &v), 0);
    assert_true(v.enabled && v.group_top == 3 && v.transport_disable == 5);
    assert_int_equal(sim_switch_reboot(rig.s, e.leaf), 0);
    assert_int_equal(sim_adaptive_view(rig.s, e.leaf, &v), 0);
    assert_true(v.supported && !v.enabled && v.group_top == 0);
    assert_int_equal(v.group_cap, GROUPS);
}

static void not_kept(void **state)
{
    struct sim_adaptive_view v;
    assert_int_equal(sim_set_not_kept(rig.s, e.leaf, INFO, true), 0);
    assert_int_equal(set_info(&(struct mad_adaptive_routing_info){.ar_en = 1}), 0);
    assert_int_equal(sim_adaptive_view(rig.s, e.leaf, &v), 0);
    assert_false(v.enabled);
}

static void one_table(void **state)
{
    uint8_t port, data[64];
    turn_on();
    assert_int_equal(sim_lft(rig.s, e.leaf, far_lid, &port), 0);
    assert_int_equal(port, up[1]); // the adaptive entry's
    assert_int_equal(ask(GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), 0);
    data[far_lid] = up[0];
    assert_int_equal(ask(SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), 0);
    struct mad_adaptive_routing_lft t;
    assert_int_equal(ask(GET, LFT, mad_ar_lft_mod(far_lid / 16u), data), 0);
    mad_adaptive_routing_lft_decode(data, &t);
    assert_int_equal(t.port[far_lid % 16], up[0]);
    assert_int_equal(t.state[far_lid % 16], MAD_AR_FREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tells_what_it_can, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_it_cannot, setup, teardown),
        cmocka_unit_test_setup_teardown(chooses_among_live_ports, setup, teardown),
        cmocka_unit_test_setup_teardown(flows_spread, setup, teardown),
        cmocka_unit_test_setup_teardown(a_choice_that_leads_back_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(is_lost_at_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(one_table, setup_one_table, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
