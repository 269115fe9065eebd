// SPDX-License-Identifier: Apache-2.0
// Switches and hosts that boot, adapters that are replaced, nodes that say they are another.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "lib/err.h"
#include "lib/mono.h"
#include "tests/unit/sim/client.h"

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

static int get_info(uint64_t guid, struct mad_node_info *ret)
{
    struct dest d = rig_path(&rig, guid);
    return rig_node_info(&rig, &d, ret);
}

static void get_desc(uint64_t guid, char desc[65])
{
    struct dest d = rig_path(&rig, guid);
    uint8_t data[64] = {0};
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION, 0, data), 0);
    memcpy(desc, data, 64);
    desc[64] = 0;
}

static void switch_is_down_then_silent_then_there(void **state)
{
    struct mad_node_info ni;
    struct dest leaf = rig_path(&rig, e.leaf);
    uint8_t mft[64] = {0, 6}, keys[64] = {0x12, 0x34};
    bool set;
    uint16_t key;
    uint64_t n;
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_MULTICAST_FORWARDING_TABLE, 0, mft), 0);
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, 0, keys), 0);
    assert_int_equal(sim_counter_add(rig.s, e.leaf, 1, SIM_SYMBOL_ERRORS, 7), 0);
    assert_int_equal(sim_mft(rig.s, e.leaf, 0xc000, 1, &set), 0);
    assert_true(set);
    assert_int_equal(sim_node_boot(rig.s, e.leaf, 10 * MONO_MS, 3 * MONO_S), 0);
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "port_state"), MAD_PORT_DOWN);
    rig_run(&rig, 9 * MONO_MS);
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "port_state"), MAD_PORT_DOWN);
    assert_int_equal(rig_switch_field(&rig, e.leaf, "port_state_change"), 0);
    rig_run(&rig, 2 * MONO_MS);
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "port_state"), MAD_PORT_INIT);
    assert_int_equal(get_info(e.leaf, &ni), -1); // 1 s
    assert_int_equal(get_info(e.agg, &ni), -1);  // behind it: its agent moves directed routes
    rig_run(&rig, MONO_S);
    assert_int_equal(get_info(e.leaf, &ni), 0);
    assert_int_equal(rig_switch_field(&rig, e.leaf, "port_state_change"), 1);
    assert_int_equal(rig_switch_field(&rig, e.leaf, "linear_fdb_top"), 0);
    assert_int_equal(rig_field(&rig, e.leaf, 0, "lid"), 0);
    assert_int_equal(rig_field(&rig, e.leaf, 0, "master_sm_lid"), 0);
    assert_int_equal(sim_mft(rig.s, e.leaf, 0xc000, 1, &set), 0);
    assert_false(set);
    assert_int_equal(sim_p_key(rig.s, e.leaf, 0, 0, &key), 0);
    assert_int_equal(key, 0xffff);
    assert_int_equal(sim_counter_get(rig.s, e.leaf, 1, SIM_SYMBOL_ERRORS, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(sim_node_boot(rig.s, e.leaf, -1, 0), -EINVAL);
    assert_int_equal(sim_node_boot(rig.s, e.leaf, 0, INT64_MAX), -EINVAL);
    assert_int_equal(sim_node_boot(rig.s, 1234, 0, 0), -ENOENT);
}

static void a_second_boot_begins_anew(void **state)
{
    assert_int_equal(sim_node_boot(rig.s, e.leaf, 10 * MONO_MS, 0), 0);
    rig_run(&rig, 5 * MONO_MS);
    assert_int_equal(sim_node_boot(rig.s, e.leaf, 10 * MONO_MS, 0), 0);
    rig_run(&rig, 8 * MONO_MS); // 13 ms: the first would be up
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "port_state"), MAD_PORT_DOWN);
    rig_run(&rig, 3 * MONO_MS);
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "port_state"), MAD_PORT_INIT);
}

static void host_boots_behind_a_live_link(void **state)
{
    char desc[65], name[65];
    struct mad_notice n;
    struct mad_trap_144 d;
    get_desc(e.host, name);
    assert_int_equal(sim_sm_add(rig.s, e.host_port_guid, &(struct sim_sm){.state = MAD_SM_STANDBY}), 0);
    rig_run(&rig, MONO_MS);
    memset(rig.traps, 0, sizeof(rig.traps));
    assert_int_equal(sim_host_reboot(rig.s, e.host, 20 * MONO_S, NULL, false), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[128], 0);
    assert_int_equal(rig.traps[144], 2); // IsSM and the description
    rig_notice(&rig, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_int_equal(d.node_description_change, 1);
    assert_false(d.capability_mask & MAD_CAP_IS_SM);
    get_desc(e.host, desc);
    assert_string_equal(desc, "");
    assert_false(rig_field(&rig, e.host, 1, "capability_mask") & MAD_CAP_IS_SM);
    assert_int_equal(rig_field(&rig, e.host, 1, "lid"), rig_lid_of(&rig, e.host));
    assert_int_equal(rig_field(&rig, e.host, 1, "port_state"), MAD_PORT_ACTIVE);
    assert_int_equal(rig_field(&rig, e.host, 1, "master_sm_lid"), e.sm_lid);
    rig_repress(&rig, rig.other, rig_lid_of(&rig, e.host), 0);
    rig_run(&rig, 10 * MONO_S);
    get_desc(e.host, desc);
    assert_string_equal(desc, "");
    memset(rig.traps, 0, sizeof(rig.traps));
    rig_run(&rig, 10 * MONO_S);
    get_desc(e.host, desc);
    assert_string_equal(desc, name);
    assert_true(rig.traps[144] >= 1);
    assert_int_equal(rig.traps[128], 0);
    struct sim_sm_view v;
    assert_int_equal(sim_sm_view(rig.s, e.host_port_guid, &v), -ENOENT);
    assert_int_equal(sim_host_reboot(rig.s, e.leaf, 1, NULL, false), -EINVAL);
    assert_int_equal(sim_host_reboot(rig.s, e.host, -1, NULL, false), -EINVAL);
    assert_int_equal(sim_host_reboot(rig.s, 1234, 1, NULL, false), -ENOENT);
}

static void host_is_renamed_while_it_boots(void **state)
{
    char desc[65];
    assert_int_equal(sim_host_reboot(rig.s, e.host, MONO_S, "MT4129 ConnectX7", false), 0);
    get_desc(e.host, desc);
    assert_string_equal(desc, "MT4129 ConnectX7");
    rig_run(&rig, MONO_S / 2);
    // it boots once more, and comes up with another name
    assert_int_equal(sim_host_reboot(rig.s, e.host, MONO_S, "", false), 0);
    assert_int_equal(sim_node_desc(rig.s, e.host, "other mlx5_0"), 0);
    get_desc(e.host, desc);
    assert_string_equal(desc, "");
    rig_run(&rig, 3 * MONO_S / 4); // the first would be up
    get_desc(e.host, desc);
    assert_string_equal(desc, "");
    rig_run(&rig, MONO_S);
    get_desc(e.host, desc);
    assert_string_equal(desc, "other mlx5_0");
}

static void a_client_manager_goes_with_its_host(void **state)
{
    struct err err;
    struct transport *t = sim_attach(rig.s, e.host_port_guid, &err);
    assert_int_equal(t->ops->issm(t, true, &err), 0);
    assert_int_equal(sim_host_reboot(rig.s, e.host, MONO_S, NULL, false), 0);
    assert_false(rig_field(&rig, e.host, 1, "capability_mask") & MAD_CAP_IS_SM);
    assert_int_equal(t->ops->issm(t, true, &err), 0); // opened again
    t->ops->free(t);
}

static void another_adapter_on_the_cable(void **state)
{
    struct mad_node_info ni, old;
    struct err err;
    assert_int_equal(get_info(e.host, &old), 0);
    assert_int_equal(sim_node_replace(rig.s, e.host, 0xb0000, 5 * MONO_MS), 0);
    assert_int_equal(sim_node_kill(rig.s, e.host, true), -ENOENT);
    assert_null(sim_attach(rig.s, e.host_port_guid, &err));
    assert_int_equal(rig_field(&rig, 0xb0000, 1, "port_state"), MAD_PORT_DOWN);
    rig_run(&rig, 6 * MONO_MS);
    assert_int_equal(rig.traps[128], 2); // its leaf's
    assert_int_equal(rig_field(&rig, 0xb0000, 1, "port_state"), MAD_PORT_INIT);
    assert_int_equal(rig_field(&rig, 0xb0000, 1, "lid"), 0);
    assert_int_equal(get_info(e.host, &ni), 0); // by its path
    assert_true(ni.node_guid == 0xb0000 && ni.system_image_guid == 0xb0000);
    assert_true(ni.port_guid - ni.node_guid == old.port_guid - old.node_guid);
    assert_int_equal(ni.device_id, old.device_id);
    struct transport *t = sim_attach(rig.s, ni.port_guid, &err);
    assert_non_null(t);
    t->ops->free(t);
    // and back
    assert_int_equal(sim_node_replace(rig.s, 0xb0000, e.leaf, 0), -EEXIST);
    assert_int_equal(sim_node_replace(rig.s, 0xb0000, 0xb0000, 0), -EEXIST);
    assert_int_equal(sim_node_replace(rig.s, 0xb0000, 0, 0), -EINVAL);
    assert_int_equal(sim_node_replace(rig.s, e.host, 0xb0001, 0), -ENOENT);
    assert_int_equal(sim_node_replace(rig.s, 0xb0000, e.host, 0), 0);
    assert_int_equal(get_info(e.host, &ni), 0);
    assert_true(ni.node_guid == e.host && ni.port_guid == e.host_port_guid);
}

static void two_nodes_say_the_same(void **state)
{
    struct mad_node_info mine, theirs, ni;
    uint64_t me = rig.port.node_guid;
    struct dest path = rig_path(&rig, e.host);
    assert_int_equal(get_info(me, &mine), 0);
    assert_int_equal(get_info(e.host, &theirs), 0);
    assert_int_equal(sim_guid_duplicate(rig.s, e.host, me), 0);
    assert_int_equal(rig_field(&rig, e.host, 1, "port_state"), MAD_PORT_INIT); // it has booted
    assert_int_equal(rig_field(&rig, me, 1, "port_state"), MAD_PORT_ACTIVE);
    assert_int_equal(rig_node_info(&rig, &path, &ni), 0);
    assert_true(ni.node_guid == mine.node_guid && ni.port_guid == mine.port_guid &&
                ni.system_image_guid == mine.system_image_guid);
    assert_int_equal(sim_node_kill(rig.s, e.host, true), 0); // still named as before
    assert_int_equal(rig_node_info(&rig, &path, &ni), -1);
    assert_int_equal(sim_node_kill(rig.s, e.host, false), 0);
    assert_int_equal(sim_guid_duplicate(rig.s, e.host, 0), 0);
    assert_int_equal(rig_node_info(&rig, &path, &ni), 0);
    assert_true(ni.node_guid == theirs.node_guid && ni.port_guid == theirs.port_guid &&
                ni.system_image_guid == theirs.system_image_guid);
    assert_int_equal(sim_guid_duplicate(rig.s, e.host, 1234), -ENOENT);
    assert_int_equal(sim_guid_duplicate(rig.s, 1234, e.host), -ENOENT);
    // a switch that says it is a host's
    assert_int_equal(sim_guid_duplicate(rig.s, e.far_leaf, e.host), 0);
    struct dest leaf = rig_path(&rig, e.far_leaf);
    assert_int_equal(rig_node_info(&rig, &leaf, &ni), 0);
    assert_true(ni.node_guid == theirs.node_guid && ni.port_guid == theirs.port_guid);
    assert_int_equal(ni.node_type, MAD_NODE_SWITCH);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        UP(switch_is_down_then_silent_then_there),
        UP(a_second_boot_begins_anew),
        UP(host_boots_behind_a_live_link),
        UP(host_is_renamed_while_it_boots),
        UP(a_client_manager_goes_with_its_host),
        UP(another_adapter_on_the_cable),
        UP(two_nodes_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
