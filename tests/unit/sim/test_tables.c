// SPDX-License-Identifier: Apache-2.0
// Tables and small attributes: blocks in and out, caps, defaults, what is refused.
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
static struct dest leaf, host, self;
static uint64_t leaf_guid, host_guid;

static int setup_opts(const struct sim_opts *o)
{
    rig_start(&rig, rig_fabric("ft3-4-4"), o);
    const struct port *mine = fabric_port(rig.f, fabric_by_port_guid(rig.f, rig.port.port_guid));
    leaf_guid = fabric_peer_node(rig.f, mine)->guid;
    leaf = rig_path(&rig, leaf_guid);
    for (uint32_t i = 0; i < rig.f->num_nodes; i++)
        if (rig.f->node[i].type == NODE_CA && rig.f->node[i].guid != rig.port.node_guid)
            host_guid = rig.f->node[i].guid;
    host = rig_path(&rig, host_guid);
    self = by_path(0);
    return 0;
}

static int setup(void **state)
{
    return setup_opts(NULL);
}

static int setup_optimized(void **state)
{
    return setup_opts(
        &(struct sim_opts){.optimized_sltovl = true, .lft_drop = true, .port_state_table = true});
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static int get(const struct dest *d, uint16_t attr, uint32_t am, uint8_t *data)
{
    memset(data, 0, 64);
    return rig_smp(&rig, d, MAD_METHOD_GET, attr, am, data);
}

static int set(const struct dest *d, uint16_t attr, uint32_t am, const uint8_t *data)
{
    uint8_t copy[64];
    memcpy(copy, data, 64);
    return rig_smp(&rig, d, MAD_METHOD_SET, attr, am, copy);
}

static void fill(uint8_t *data, uint8_t first)
{
    for (unsigned i = 0; i < 64; i++)
        data[i] = (uint8_t)(first + i);
}

static void round_trip(const struct dest *d, uint16_t attr, uint32_t am, unsigned bytes, uint8_t first)
{
    uint8_t want[64], got[64];
    fill(want, first);
    assert_int_equal(set(d, attr, am, want), 0);
    assert_int_equal(get(d, attr, am, got), 0);
    assert_memory_equal(want, got, bytes);
}

static void p_keys(void **state)
{
    uint8_t data[64], zero[64] = {0};
    uint16_t key;
    assert_int_equal(get(&host, MAD_ATTR_P_KEY_TABLE, 0, data), 0);
    assert_int_equal(data[0] << 8 | data[1], 0xffff);
    assert_memory_equal(data + 2, zero, 62);
    round_trip(&host, MAD_ATTR_P_KEY_TABLE, 3, 64, 7);
    assert_int_equal(sim_p_key(rig.s, host_guid, 1, 96, &key), 0);
    assert_int_equal(key, 0x0708);
    assert_int_equal(sim_p_key(rig.s, host_guid, 1, 0, &key), 0); // the other blocks stay
    assert_int_equal(key, 0xffff);
    assert_int_equal(get(&host, MAD_ATTR_P_KEY_TABLE, 4, data), MAD_STATUS_BAD_VALUE); // 128 entries
    assert_int_equal(set(&host, MAD_ATTR_P_KEY_TABLE, 4, data), MAD_STATUS_BAD_VALUE);
    // external ports: PartitionEnforcementCap, each its own
    round_trip(&leaf, MAD_ATTR_P_KEY_TABLE, 4 << 16 | 1, 64, 9);
    assert_int_equal(get(&leaf, MAD_ATTR_P_KEY_TABLE, 3 << 16 | 1, data), 0);
    assert_memory_equal(data, zero, 64);
    assert_int_equal(get(&leaf, MAD_ATTR_P_KEY_TABLE, 4 << 16 | 2, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_P_KEY_TABLE, 5 << 16, data), MAD_STATUS_BAD_VALUE);
    // port 0: PartitionCap 8, the rest of the block reads 0 whatever was written
    fill(data, 1);
    assert_int_equal(set(&leaf, MAD_ATTR_P_KEY_TABLE, 0, data), 0);
    assert_int_equal(get(&leaf, MAD_ATTR_P_KEY_TABLE, 0, data), 0);
    assert_int_equal(data[15], 16);
    assert_memory_equal(data + 16, zero, 48);
    assert_int_equal(sim_p_key(rig.s, leaf_guid, 0, 8, &key), -22);
}

static void guids(void **state)
{
    uint8_t data[64], want[64];
    fill(want, 30);
    assert_int_equal(set(&host, MAD_ATTR_GUID_INFO, 0, want), 0);
    assert_int_equal(get(&host, MAD_ATTR_GUID_INFO, 0, data), 0);
    const struct node *n = fabric_by_guid(rig.f, host_guid);
    uint64_t guid = fabric_port(rig.f, (port_id){n->first_port})->guid;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(data[i], (uint8_t)(guid >> (56 - 8 * i))); // entry 0 is not to be written
    assert_memory_equal(data + 8, want + 8, 56);
    assert_int_equal(get(&host, MAD_ATTR_GUID_INFO, 1, data), MAD_STATUS_BAD_VALUE);
}

static void sl_to_vl(void **state)
{
    uint8_t data[64], before[64];
    assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 3 << 8 | 1, before), 0);
    round_trip(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 2 << 8 | 1, 8, 0x40);
    assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 3 << 8 | 1, data), 0);
    assert_memory_equal(data, before, 64);
    assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 5 << 8 | 1, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 5, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(set(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, MAD_SLTOVL_ALL_OUT | 0x101, data),
                     MAD_STATUS_BAD_VALUE); // only with the capability
    round_trip(&host, MAD_ATTR_SLTOVL_MAPPING_TABLE, 0, 8, 0x10);
}

static void sl_to_vl_optimized(void **state)
{
    uint8_t want[64], got[64];
    fill(want, 0x20);
    assert_int_equal(set(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, MAD_SLTOVL_ALL_OUT | MAD_SLTOVL_ALL_IN, want),
                     0);
    for (unsigned o = 1; o <= 4; o++)
        for (unsigned i = 0; i <= 4; i++) {
            assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, i << 8 | o, got), 0);
            assert_memory_equal(got, want, 8);
        }
    fill(want, 0x30);
    assert_int_equal(set(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, MAD_SLTOVL_ALL_IN | 2, want), 0);
    assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 4 << 8 | 2, got), 0);
    assert_memory_equal(got, want, 8);
    assert_int_equal(get(&leaf, MAD_ATTR_SLTOVL_MAPPING_TABLE, 4 << 8 | 3, got), 0);
    assert_int_equal(got[0], 0x20);
}

static void vl_arbitration(void **state)
{
    uint8_t data[64];
    round_trip(&leaf, MAD_ATTR_VL_ARBITRATION_TABLE, 1 << 16 | 4, 64, 3);
    round_trip(&leaf, MAD_ATTR_VL_ARBITRATION_TABLE, 3 << 16 | 4, 64, 5);
    round_trip(&host, MAD_ATTR_VL_ARBITRATION_TABLE, 3 << 16, 64, 5);
    assert_int_equal(get(&leaf, MAD_ATTR_VL_ARBITRATION_TABLE, 2 << 16 | 4, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_VL_ARBITRATION_TABLE, 5 << 16 | 4, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_VL_ARBITRATION_TABLE, 4, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_VL_ARBITRATION_TABLE, 1 << 16 | 5, data), MAD_STATUS_BAD_VALUE);
}

static struct mad_switch_info switch_info(void)
{
    uint8_t data[64];
    struct mad_switch_info si;
    assert_int_equal(get(&leaf, MAD_ATTR_SWITCH_INFO, 0, data), 0);
    mad_switch_info_decode(data, &si);
    return si;
}

static int set_switch_info(const struct mad_switch_info *si)
{
    uint8_t data[64] = {0};
    mad_switch_info_encode(si, data);
    return rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, 0, data);
}

static void lft(void **state)
{
    uint8_t data[64], again[64];
    uint8_t port;
    assert_int_equal(get(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), 0);
    assert_int_equal(get(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, again), 0);
    assert_memory_equal(data, again, 64); // anything, but the same
    bool trash = false;
    for (unsigned i = 0; i < 64; i++)
        trash |= data[i] != 0 && data[i] != 255;
    assert_true(trash);
    round_trip(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 767, 64, 1);
    round_trip(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 1, 64, 1);
    assert_int_equal(set(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 768, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0x10000, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&host, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), MAD_STATUS_BAD_METHOD_ATTR);
    // nothing beyond LinearFDBTop
    assert_int_equal(sim_lft(rig.s, leaf_guid, 66, &port), 0);
    assert_int_equal(port, 255);
    struct mad_switch_info si = switch_info();
    assert_int_equal(si.linear_fdb_top, 0);
    si.linear_fdb_top = 66;
    assert_int_equal(set_switch_info(&si), 0);
    assert_int_equal(sim_lft(rig.s, leaf_guid, 66, &port), 0);
    assert_int_equal(port, 3);
    assert_int_equal(sim_lft(rig.s, leaf_guid, 67, &port), 0);
    assert_int_equal(port, 255);
    // not kept
    assert_int_equal(sim_set_not_kept(rig.s, leaf_guid, MAD_ATTR_LINEAR_FORWARDING_TABLE, true), 0);
    memset(data, 9, 64);
    assert_int_equal(set(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 1, data), 0);
    assert_int_equal(sim_lft(rig.s, leaf_guid, 66, &port), 0);
    assert_int_equal(port, 3);
}

static void lft_drop_and_preload(void **state)
{
    uint8_t data[64], want[64], row[100];
    memset(want, 255, 64);
    assert_int_equal(get(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 5, data), 0);
    assert_memory_equal(data, want, 64);
    memset(row, 2, sizeof(row));
    assert_int_equal(sim_set_lft(rig.s, leaf_guid, row, 100, 99), 0);
    assert_int_equal(sim_set_lft(rig.s, leaf_guid, row, 100, 0xc000), -22);
    assert_int_equal(sim_set_lft(rig.s, host_guid, row, 100, 99), -2);
    assert_int_equal(get(&leaf, MAD_ATTR_LINEAR_FORWARDING_TABLE, 1, data), 0);
    assert_memory_equal(data, row, 36);
    assert_memory_equal(data + 36, want, 28);
    assert_int_equal(switch_info().linear_fdb_top, 99);
}

static void switch_info_rules(void **state)
{
    struct mad_switch_info si = switch_info(), back;
    assert_int_equal(si.linear_fdb_cap, 49152);
    assert_int_equal(si.port_state_change, 1); // as after power-up
    si.linear_fdb_top = 49152 - 1;
    si.life_time_value = 18;
    si.multicast_fdb_top = 0xbfff;
    si.port_state_change = 0;
    assert_int_equal(set_switch_info(&si), 0);
    back = switch_info();
    assert_int_equal(back.port_state_change, 1); // writing 0 leaves it
    assert_int_equal(back.life_time_value, 18);
    assert_int_equal(back.multicast_fdb_top, 0xbfff);
    si.port_state_change = 1;
    assert_int_equal(set_switch_info(&si), 0);
    assert_int_equal(switch_info().port_state_change, 0);
    si.linear_fdb_top = 49152;
    si.life_time_value = 1;
    assert_int_equal(set_switch_info(&si), MAD_STATUS_BAD_VALUE);
    assert_int_equal(switch_info().life_time_value, 18);
    si.linear_fdb_top = 3;
    si.multicast_fdb_top = (uint16_t)(0xc000 + si.multicast_fdb_cap);
    assert_int_equal(set_switch_info(&si), MAD_STATUS_BAD_VALUE);
    // what is a capability does not change
    si.multicast_fdb_top = 0xc000;
    si.linear_fdb_cap = 1;
    si.enhanced_port0 = !si.enhanced_port0;
    assert_int_equal(set_switch_info(&si), 0);
    assert_int_equal(switch_info().linear_fdb_cap, 49152);
    assert_int_not_equal(switch_info().enhanced_port0, si.enhanced_port0);
    assert_int_equal(sim_set_field_not_kept(rig.s, leaf_guid, MAD_ATTR_SWITCH_INFO, "life_time_value", true),
                     0);
    si.life_time_value = 5;
    assert_int_equal(set_switch_info(&si), 0);
    assert_int_equal(switch_info().life_time_value, 1);
}

static void mft(void **state)
{
    uint8_t data[64];
    bool is;
    unsigned last = switch_info().multicast_fdb_cap / 32 - 1;
    assert_int_equal(get(&leaf, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 0, data), 0);
    round_trip(&leaf, MAD_ATTR_MULTICAST_FORWARDING_TABLE, last, 64, 1);
    memset(data, 0, 64);
    data[2] = 0;
    data[3] = 1 << 4; // MLID 0xc001, port 4
    assert_int_equal(set(&leaf, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 0, data), 0);
    assert_int_equal(sim_mft(rig.s, leaf_guid, 0xc001, 4, &is), 0);
    assert_true(is);
    assert_int_equal(sim_mft(rig.s, leaf_guid, 0xc001, 3, &is), 0);
    assert_false(is);
    assert_int_equal(sim_mft(rig.s, leaf_guid, 0xc000, 4, &is), 0);
    assert_false(is);
    assert_int_equal(get(&leaf, MAD_ATTR_MULTICAST_FORWARDING_TABLE, last + 1, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 1u << 28, data), MAD_STATUS_BAD_VALUE);
    assert_int_equal(get(&leaf, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 1u << 16, data), MAD_STATUS_BAD_VALUE);
}

static void odd_caps(void **state)
{
    struct builder *b = builder_new();
    struct node_attrs sw = {.guid = 0x20,
                            .type = NODE_SWITCH,
                            .num_ports = 40,
                            .lft_cap = 100,
                            .mft_cap = 40},
                      me = {.guid = 0x30, .type = NODE_CA, .num_ports = 1};
    node_id w, m;
    assert_int_equal(builder_node(b, &sw, "switch", 6, &w, NULL), 0);
    assert_int_equal(builder_node(b, &me, "me", 2, &m, NULL), 0);
    assert_int_equal(builder_link(b, m, 1, w, 3), 0);
    struct rig r;
    uint8_t data[64];
    struct dest d = by_path(1, 1);
    rig_start(&r, builder_seal(b, 1, NULL), NULL);
    memset(data, 7, 64);
    assert_int_equal(rig_smp(&r, &d, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 1, data), 0);
    assert_int_equal(data[35], 7);
    assert_int_equal(data[36], 255); // entry 100 and above are not there
    assert_int_equal(rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 2, data),
                     MAD_STATUS_BAD_VALUE);
    memset(data, 0xff, 64);
    assert_int_equal(rig_smp(&r, &d, MAD_METHOD_SET, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 2u << 28 | 1, data),
                     0);
    assert_int_equal(data[15], 0xff);
    assert_int_equal(data[16], 0);
    bool is;
    assert_int_equal(sim_mft(r.s, 0x20, 0xc027, 40, &is), 0);
    assert_true(is);
    assert_int_equal(rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 3u << 28, data),
                     MAD_STATUS_BAD_VALUE);
    rig_stop(&r);
}

static void port_state_table(void **state)
{
    uint8_t data[64];
    struct mad_switch_port_state_table t;
    assert_int_equal(get(&leaf, MAD_ATTR_SWITCH_PORT_STATE_TABLE, 0, data), 0);
    mad_switch_port_state_table_decode(data, &t);
    for (unsigned i = 1; i <= 4; i++)
        assert_int_equal(t.port_state[i], MAD_PORT_INIT);
    assert_int_equal(t.port_state[5], 0);
    assert_int_equal(get(&leaf, MAD_ATTR_SWITCH_PORT_STATE_TABLE, 1, data), MAD_STATUS_BAD_VALUE);
}

static void unknown_attributes(void **state)
{
    uint8_t data[64];
    assert_int_equal(get(&leaf, 0x1234, 0, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(get(&leaf, MAD_ATTR_SM_INFO, 0, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(get(&leaf, MAD_ATTR_SWITCH_PORT_STATE_TABLE, 0, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(set(&leaf, MAD_ATTR_NODE_INFO, 0, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(get(&host, MAD_ATTR_SWITCH_INFO, 0, data), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(rig_smp(&rig, &leaf, 0x13, MAD_ATTR_NODE_INFO, 0, data), MAD_STATUS_BAD_METHOD);
    assert_int_equal(get(&self, MAD_ATTR_NODE_INFO, 0, data), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define O(f) cmocka_unit_test_setup_teardown(f, setup_optimized, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(p_keys),
        T(guids),
        T(sl_to_vl),
        O(sl_to_vl_optimized),
        T(vl_arbitration),
        T(lft),
        O(lft_drop_and_preload),
        T(switch_info_rules),
        T(mft),
        cmocka_unit_test(odd_caps),
        O(port_state_table),
        T(unknown_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
