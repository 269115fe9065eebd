// SPDX-License-Identifier: Apache-2.0
// PortInfo: what a Get shows, every Set that is refused and that nothing of it is stored, what is stored, the
// link state machine.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/builder.h"
#include "lib/mono.h"
#include "tests/unit/sim/client.h"

static struct rig rig;
static struct dest leaf, host; // the manager's leaf, the other host on it
static uint64_t leaf_guid, host_guid, my_guid;
static unsigned host_port; // of the leaf
static const uint8_t up_port = 4;

static int setup_opts(const struct sim_opts *o)
{
    rig_start(&rig, rig_fabric("ft3-4-4"), o);
    my_guid = rig.port.node_guid;
    const struct port *mine = fabric_port(rig.f, fabric_by_port_guid(rig.f, rig.port.port_guid));
    const struct port *lp = fabric_port(rig.f, mine->peer);
    leaf_guid = fabric_node(rig.f, lp->node)->guid;
    leaf = rig_path(&rig, leaf_guid);
    host_port = lp->num == 1 ? 2 : 1;
    const struct node *ln = fabric_by_guid(rig.f, leaf_guid);
    const struct port *hp = fabric_port(rig.f, fabric_port_at(rig.f, ln, host_port));
    host_guid = fabric_node(rig.f, fabric_port(rig.f, hp->peer)->node)->guid;
    host = rig_path(&rig, host_guid);
    return 0;
}

static int setup(void **state)
{
    return setup_opts(NULL);
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static uint64_t field(uint64_t guid, unsigned port, const char *name)
{
    uint64_t v = 0;
    assert_int_equal(sim_port_field(rig.s, guid, port, name, &v), 0);
    return v;
}

// A PortInfo of the host as a manager would Set it.
static struct mad_port_info host_info(void)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    pi.lid = 8;
    pi.master_sm_lid = 1;
    pi.port_state = pi.port_physical_state = 0;
    pi.link_down_default_state = 2;
    return pi;
}

static void set_is_refused(struct mad_port_info pi)
{
    pi.subnet_timeout = 9; // the witness that nothing is stored
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), MAD_STATUS_BAD_VALUE);
    assert_int_not_equal(field(host_guid, 1, "subnet_timeout"), 9);
    assert_int_equal(field(host_guid, 1, "lid"), 0);
}

static void factory_state(void **state)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(pi.port_state, MAD_PORT_INIT);
    assert_int_equal(pi.port_physical_state, MAD_PHYS_LINK_UP);
    assert_int_equal(pi.lid, 0);
    assert_int_equal(pi.master_sm_lid, 0);
    assert_true(pi.gid_prefix == MAD_DEFAULT_GID_PREFIX);
    assert_int_equal(pi.local_port_num, 1);
    assert_false(pi.capability_mask & MAD_CAP_IS_SM);
    assert_int_equal(rig_get_port(&rig, &leaf, 0, &pi), 0);
    assert_int_equal(pi.local_port_num, 3 - host_port); // through which the SMP came in
}

static void extended_speeds_need_bit_31(void **state)
{
    uint8_t data[64] = {0};
    struct mad_port_info pi;
    assert_int_equal(rig_smp(&rig, &host, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, 0, data), 0);
    mad_port_info_decode(data, &pi);
    assert_true(pi.capability_mask & MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED);
    assert_int_equal(pi.link_speed_ext_active, 0);
    assert_int_equal(pi.link_speed_ext_supported, 0);
    assert_int_equal(pi.link_speed_ext_enabled, 0);
    assert_int_equal(pi.link_speed_active, MAD_SPEED_QDR);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(pi.link_speed_ext_active, MAD_SPEED_EXT_HDR);
}

static void external_port_has_no_lid_or_capabilities(void **state)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &leaf, host_port, &pi), 0);
    assert_int_equal(pi.capability_mask, 0);
    assert_int_equal(pi.lid, 0);
    assert_true(pi.gid_prefix == 0);
    assert_int_equal(pi.link_speed_ext_active, MAD_SPEED_EXT_HDR); // port 0's capability counts
}

static void no_such_port_is_refused(void **state)
{
    struct mad_port_info pi;
    uint8_t data[64] = {0};
    assert_int_equal(rig_get_port(&rig, &leaf, 5, &pi), MAD_STATUS_BAD_VALUE);
    assert_int_equal(rig_get_port(&rig, &host, 2, &pi), MAD_STATUS_BAD_VALUE);
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, 0x100, data),
                     MAD_STATUS_BAD_VALUE);
}

static void lids_are_checked(void **state)
{
    const uint16_t bad[] = {0, 0xc000, 0xffff};
    for (unsigned i = 0; i < 3; i++) {
        struct mad_port_info pi = host_info();
        pi.lid = bad[i];
        set_is_refused(pi);
        pi = host_info();
        pi.master_sm_lid = bad[i];
        set_is_refused(pi);
    }
    struct mad_port_info pi = host_info();
    pi.lmc = 2;
    pi.lid = 10; // not aligned
    set_is_refused(pi);
    pi.lid = 12;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(field(host_guid, 1, "lmc"), 2);
}

static void mtu_and_vls_are_checked(void **state)
{
    struct mad_port_info pi = host_info();
    pi.neighbor_mtu = 0;
    set_is_refused(pi);
    pi = host_info();
    pi.neighbor_mtu = pi.mtu_cap + 1;
    set_is_refused(pi);
    pi = host_info();
    pi.operational_vls = pi.vl_cap + 1;
    set_is_refused(pi);
    pi = host_info();
    pi.operational_vls = 0; // no change
    pi.neighbor_mtu = MAD_MTU_1024;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(field(host_guid, 1, "operational_vls"), pi.vl_cap);
    assert_int_equal(field(host_guid, 1, "neighbor_mtu"), MAD_MTU_1024);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_INIT); // no bounce
}

static void enabled_masks_are_checked(void **state)
{
    struct mad_port_info pi = host_info();
    pi.link_width_enabled = 0x40; // no such width
    set_is_refused(pi);
    pi = host_info();
    pi.link_speed_ext_enabled = MAD_SPEED_EXT_NDR;
    set_is_refused(pi);
    pi = host_info();
    pi.link_width_enabled = MAD_WIDTH_1X;
    pi.link_speed_ext_enabled = MAD_SPEED_EXT_EDR;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(field(host_guid, 1, "link_width_active"), MAD_WIDTH_4X); // not before training
    // Down at the switch's end trains anew
    struct mad_port_info sp;
    assert_int_equal(rig_get_port(&rig, &leaf, host_port, &sp), 0);
    sp.port_state = MAD_PORT_DOWN;
    sp.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &sp), 0);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_INIT);
    assert_int_equal(field(host_guid, 1, "link_width_active"), MAD_WIDTH_1X);
    assert_int_equal(field(leaf_guid, host_port, "link_speed_ext_active"), MAD_SPEED_EXT_EDR);
    // as supported
    pi = host_info();
    pi.link_width_enabled = MAD_WIDTH_AS_SUPPORTED;
    pi.link_speed_ext_enabled = MAD_SPEED_EXT_AS_SUPPORTED;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(field(host_guid, 1, "link_width_enabled"), field(host_guid, 1, "link_width_supported"));
    assert_int_equal(field(host_guid, 1, "link_speed_ext_enabled"), 7);
}

static void what_is_stored(void **state)
{
    struct mad_port_info pi = host_info(), back;
    pi.master_sm_sl = 3;
    pi.gid_prefix = 0xfe80000000000001;
    pi.subnet_timeout = 18;
    pi.local_phy_errors = 8;
    pi.overrun_errors = 9;
    pi.m_key_lease_period = 60;
    pi.client_reregister = 1;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    mad_port_info_decode(rig.answer + 64, &back);
    assert_int_equal(back.client_reregister, 1);
    assert_int_equal(rig_get_port(&rig, &host, 0, &back), 0);
    assert_int_equal(back.client_reregister, 0);
    assert_int_equal(back.lid, 8);
    assert_int_equal(back.master_sm_lid, 1);
    assert_int_equal(back.master_sm_sl, 3);
    assert_true(back.gid_prefix == 0xfe80000000000001);
    assert_int_equal(back.subnet_timeout, 18);
    assert_int_equal(back.local_phy_errors, 8);
    assert_int_equal(back.overrun_errors, 9);
    assert_int_equal(back.m_key_lease_period, 60);
    assert_int_equal(back.port_state, MAD_PORT_INIT);
    uint64_t n;
    assert_int_equal(sim_reregisters(rig.s, host_guid, 1, &n), 0);
    assert_int_equal(n, 1);
    // read-only fields stay
    pi.mtu_cap = 1;
    pi.vl_cap = 1;
    pi.capability_mask = 0;
    pi.link_width_supported = 0;
    pi.guid_cap = 77;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(rig_get_port(&rig, &host, 0, &back), 0);
    assert_int_equal(back.mtu_cap, MAD_MTU_4096);
    assert_int_not_equal(back.capability_mask, 0);
    assert_int_equal(back.guid_cap, 8);
}

static int set_state(const struct dest *d, unsigned port, uint8_t to)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, d, port, &pi), 0);
    if (pi.lid == 0)
        pi.lid = 8;
    pi.master_sm_lid = 1;
    pi.port_state = to;
    pi.port_physical_state = 0;
    return rig_set_port(&rig, d, port, &pi);
}

static void states_go_in_order(void **state)
{
    assert_int_equal(set_state(&host, 0, MAD_PORT_INIT), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_state(&host, 0, MAD_PORT_ACTIVE), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_state(&host, 0, 5), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_state(&host, 0, MAD_PORT_ARMED), 0);
    assert_int_equal(set_state(&host, 0, MAD_PORT_ARMED), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_state(&host, 0, MAD_PORT_ACTIVE), MAD_STATUS_BAD_VALUE); // far end is in INIT
    assert_int_equal(set_state(&leaf, host_port, MAD_PORT_ARMED), 0);
    assert_int_equal(set_state(&host, 0, MAD_PORT_ACTIVE), 0);
    assert_int_equal(field(leaf_guid, host_port, "port_state"), MAD_PORT_ARMED);
    assert_int_equal(set_state(&leaf, host_port, MAD_PORT_ACTIVE), 0);
    assert_int_equal(set_state(&leaf, host_port, MAD_PORT_ACTIVE), MAD_STATUS_BAD_VALUE);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_ACTIVE);
    // an unconnected or cut port has no state to go to
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, false), 0);
    assert_int_equal(set_state(&leaf, up_port, MAD_PORT_ARMED), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_state(&leaf, up_port, MAD_PORT_DOWN), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set_state(&leaf, 0, MAD_PORT_ACTIVE), MAD_STATUS_BAD_VALUE); // port 0
}

static void far_end_goes_active_by_itself(void **state)
{
    assert_int_equal(set_state(&host, 0, MAD_PORT_ARMED), 0);
    assert_int_equal(set_state(&leaf, host_port, MAD_PORT_ARMED), 0);
    assert_int_equal(set_state(&leaf, host_port, MAD_PORT_ACTIVE), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_ACTIVE);
    assert_int_equal(set_state(&host, 0, MAD_PORT_ACTIVE), MAD_STATUS_BAD_VALUE);
}

static int setup_auto(void **state)
{
    return setup_opts(&(struct sim_opts){.auto_active = 1});
}

static void disabled_port_takes_the_link_down(void **state)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &leaf, host_port, &pi), 0);
    pi.port_state = 0;
    pi.port_physical_state = 0;
    pi.link_down_default_state = 3;
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &pi), MAD_STATUS_BAD_VALUE);
    pi.link_down_default_state = 0;
    pi.port_physical_state = 4;
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &pi), MAD_STATUS_BAD_VALUE);
    pi.port_physical_state = MAD_PHYS_DISABLED;
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &pi), 0);
    assert_int_equal(field(leaf_guid, host_port, "port_physical_state"), MAD_PHYS_DISABLED);
    pi.port_state = MAD_PORT_DOWN; // with a physical state it may be said again
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &pi), 0);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_DOWN);
    assert_int_equal(field(host_guid, 1, "port_physical_state"), MAD_PHYS_POLLING);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1); // silence
    assert_int_equal(rig_get_port(&rig, &leaf, host_port, &pi), 0);
    pi.port_state = 0;
    pi.port_physical_state = MAD_PHYS_POLLING;
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &pi), 0);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_INIT);
}

static void port0_base(void **state)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &leaf, 0, &pi), 0);
    assert_int_equal(pi.port_state, MAD_PORT_ACTIVE);
    pi.lid = 4;
    pi.master_sm_lid = 1;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &leaf, 0, &pi), 0);
    assert_int_equal(field(leaf_guid, 0, "lid"), 4);
    pi.port_state = MAD_PORT_DOWN;
    assert_int_equal(rig_set_port(&rig, &leaf, 0, &pi), MAD_STATUS_BAD_VALUE);
}

static void external_port_ignores_end_fields(void **state)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &leaf, host_port, &pi), 0);
    pi.lid = 0; // would be refused at an end port
    pi.hoq_life = 16;
    pi.vl_stall_count = 7;
    pi.partition_enforcement_inbound = 1;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &leaf, host_port, &pi), 0);
    assert_int_equal(field(leaf_guid, host_port, "hoq_life"), 16);
    assert_int_equal(field(leaf_guid, host_port, "vl_stall_count"), 7);
    assert_int_equal(field(leaf_guid, host_port, "partition_enforcement_inbound"), 1);
}

static void not_kept(void **state)
{
    struct mad_port_info pi = host_info(), back;
    assert_int_equal(sim_set_field_not_kept(rig.s, host_guid, MAD_ATTR_PORT_INFO, "subnet_timeout", true), 0);
    assert_int_equal(sim_set_field_not_kept(rig.s, host_guid, MAD_ATTR_PORT_INFO, "nonsense", true), -22);
    pi.subnet_timeout = 18;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    mad_port_info_decode(rig.answer + 64, &back);
    assert_int_not_equal(back.subnet_timeout, 18);
    assert_int_equal(back.lid, 8);
    assert_int_equal(sim_set_field_not_kept(rig.s, host_guid, MAD_ATTR_PORT_INFO, "subnet_timeout", false),
                     0);
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(field(host_guid, 1, "subnet_timeout"), 18);
    assert_int_equal(sim_set_not_kept(rig.s, host_guid, MAD_ATTR_PORT_INFO, true), 0);
    pi.lid = 9;
    pi.port_state = MAD_PORT_ARMED;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(field(host_guid, 1, "lid"), 8);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_ARMED);
}

// An old adapter: QDR, no extended speeds, two ports on one switch.
static const struct fabric *qdr_fabric(void)
{
    struct builder *b = builder_new();
    struct node_attrs ca = {.guid = 0x10, .type = NODE_CA, .num_ports = 2, .partition_cap = 64},
                      sw = {.guid = 0x20, .type = NODE_SWITCH, .num_ports = 4, .lft_cap = 100, .mft_cap = 40},
                      me = {.guid = 0x30, .type = NODE_CA, .num_ports = 1};
    node_id c, w, m;
    assert_int_equal(builder_node(b, &ca, "old", 3, &c, NULL), 0);
    assert_int_equal(builder_node(b, &sw, "switch", 6, &w, NULL), 0);
    assert_int_equal(builder_node(b, &me, "me", 2, &m, NULL), 0);
    struct port_attrs qdr = {.speed_active = MAD_SPEED_QDR, .width_active = MAD_WIDTH_4X, .fdr10 = 1};
    for (unsigned i = 1; i <= 2; i++)
        assert_int_equal(builder_port(b, c, i, &qdr), 0);
    for (unsigned i = 1; i <= 4; i++)
        assert_int_equal(builder_port(b, w, i, &qdr), 0);
    assert_int_equal(builder_link(b, c, 1, w, 1), 0);
    assert_int_equal(builder_link(b, c, 2, w, 2), 0);
    assert_int_equal(builder_link(b, m, 1, w, 3), 0);
    builder_sm_port(b, m, 1);
    return builder_seal(b, 1, NULL);
}

static void old_device_refuses_bit_31(void **state)
{
    struct rig r;
    struct mad_port_info pi;
    uint8_t data[64] = {0};
    rig_start(&r, qdr_fabric(), NULL);
    struct dest sw = by_path(1, 1), ca = by_path(2, 1, 2);
    assert_int_equal(rig_get_port(&r, &ca, 0, &pi), MAD_STATUS_BAD_VALUE);
    assert_int_equal(rig_get_port(&r, &sw, 1, &pi), MAD_STATUS_BAD_VALUE);
    assert_int_equal(rig_smp(&r, &ca, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, 0, data), 0);
    mad_port_info_decode(data, &pi);
    assert_false(pi.capability_mask & MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED);
    assert_int_equal(pi.link_speed_active, MAD_SPEED_QDR);
    // port 0 = the port it came in by; both may be read, only that one set
    assert_int_equal(pi.local_port_num, 2);
    assert_int_equal(rig_smp(&r, &ca, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, 1, data), 0);
    pi.lid = 5;
    pi.master_sm_lid = 1;
    pi.port_state = pi.port_physical_state = 0;
    mad_port_info_encode(&pi, data);
    assert_int_equal(rig_smp(&r, &ca, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 1, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(rig_smp(&r, &ca, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 2, data), 0);
    uint64_t lid1, lid2;
    assert_int_equal(sim_port_field(r.s, 0x10, 1, "lid", &lid1), 0);
    assert_int_equal(sim_port_field(r.s, 0x10, 2, "lid", &lid2), 0);
    assert_int_equal(lid1, 0);
    assert_int_equal(lid2, 5);
    // two end ports: one NodeGUID, the PortGUID of the port asked through
    struct mad_node_info ni;
    memset(data, 0, 64);
    assert_int_equal(rig_smp(&r, &ca, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    mad_node_info_decode(data, &ni);
    uint64_t second = ni.port_guid;
    struct dest ca1 = by_path(2, 1, 1);
    assert_int_equal(rig_smp(&r, &ca1, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    mad_node_info_decode(data, &ni);
    assert_true(ni.node_guid == 0x10 && ni.port_guid != second);
    // a base port 0 has one LID
    memset(data, 0, 64);
    assert_int_equal(rig_smp(&r, &sw, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, 0, data), 0);
    mad_port_info_decode(data, &pi);
    pi.lid = 8;
    pi.master_sm_lid = 1;
    pi.lmc = 1;
    pi.port_state = pi.port_physical_state = 0;
    mad_port_info_encode(&pi, data);
    assert_int_equal(rig_smp(&r, &sw, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 0, data), MAD_STATUS_BAD_VALUE);
    pi.lmc = 0;
    mad_port_info_encode(&pi, data);
    assert_int_equal(rig_smp(&r, &sw, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 0, data), 0);
    // a client at its first port does not send through the second
    struct transport *mine = r.t;
    r.t = sim_attach(r.s, second - 1, NULL);
    assert_non_null(r.t);
    r.t->recv = rig_recv;
    r.t->recv_arg = &r;
    struct dest out1 = by_path(1, 1), out2 = by_path(1, 2);
    assert_int_equal(rig_smp(&r, &out1, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    assert_int_equal(rig_smp(&r, &out2, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), -1);
    r.t->ops->free(r.t);
    r.t = mine;
    // FDR10 is told by the vendor attribute
    memset(data, 0, 64);
    assert_int_equal(rig_smp(&r, &sw, MAD_METHOD_GET, MAD_ATTR_MLNX_EXT_PORT_INFO, 1, data), 0);
    struct mad_mlnx_ext_port_info x;
    mad_mlnx_ext_port_info_decode(data, &x);
    assert_int_equal(x.link_speed_active, MAD_MLNX_SPEED_FDR10);
    rig_stop(&r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(factory_state),
        T(extended_speeds_need_bit_31),
        T(external_port_has_no_lid_or_capabilities),
        T(no_such_port_is_refused),
        T(lids_are_checked),
        T(mtu_and_vls_are_checked),
        T(enabled_masks_are_checked),
        T(what_is_stored),
        T(states_go_in_order),
        cmocka_unit_test_setup_teardown(far_end_goes_active_by_itself, setup_auto, teardown),
        T(disabled_port_takes_the_link_down),
        T(port0_base),
        T(external_port_ignores_end_fields),
        T(not_kept),
        cmocka_unit_test(old_device_refuses_bit_31),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
