// SPDX-License-Identifier: Apache-2.0
// Cables that flap, are swapped, are limited at the device; agents that are slow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "tests/unit/sim/client.h"

static struct rig rig;
static struct rig_ends e;

static int setup(void **state)
{
    rig_up(&rig, NULL, &e);
    return 0;
}

static int setup_training(void **state)
{
    rig_up(&rig, &(struct sim_opts){.train_ns = 5 * MONO_MS}, &e);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static unsigned port_state(uint64_t guid, unsigned port)
{
    return (unsigned)rig_field(&rig, guid, port, "port_state");
}

static uint64_t downed(uint64_t guid, unsigned port)
{
    uint64_t n = 0;
    assert_int_equal(sim_counter_get(rig.s, guid, port, SIM_LINK_DOWNED, &n), 0);
    return n;
}

static void flap_once(void **state)
{
    assert_int_equal(sim_link_flap(rig.s, e.far_leaf, e.far_port, 2 * MONO_MS, 0, 1), 0);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_DOWN);
    rig_run(&rig, MONO_MS);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_DOWN);
    assert_int_equal(rig.traps[128], 1);
    rig_run(&rig, 2 * MONO_MS);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_INIT);
    assert_int_equal(port_state(e.far_leaf, e.far_port), MAD_PORT_INIT);
    assert_int_equal(rig.traps[128], 2);
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_INIT);
    assert_int_equal(downed(e.host, 1), 1);
    assert_int_equal(rig_field(&rig, e.host, 1, "lid"), rig_lid_of(&rig, e.host)); // kept
}

static void flap_in_no_time_leaves_init_and_the_bit(void **state)
{
    assert_int_equal(sim_trap_lose(rig.s, e.far_leaf, UINT_MAX), 0);
    assert_int_equal(rig_switch_field(&rig, e.far_leaf, "port_state_change"), 0);
    assert_int_equal(sim_link_flap(rig.s, e.host, 1, 0, 0, 1), 0);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_INIT);
    assert_int_equal(port_state(e.far_leaf, e.far_port), MAD_PORT_INIT);
    assert_int_equal(downed(e.host, 1), 1);
    assert_int_equal(rig_switch_field(&rig, e.far_leaf, "port_state_change"), 1);
    rig_run(&rig, 10 * MONO_S);
    assert_int_equal(rig.traps[128], 0);
    // 1000 times in the same instant
    assert_int_equal(sim_link_flap(rig.s, e.host, 1, 0, 0, 1000), 0);
    rig_run(&rig, 1);
    assert_int_equal(downed(e.host, 1), 1001);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_INIT);
}

static void flap_many_times(void **state)
{
    assert_int_equal(sim_link_flap(rig.s, e.leaf, e.up_port, MONO_MS, 2 * MONO_MS, 3), 0);
    for (unsigned i = 0; i < 3; i++) {
        rig_run(&rig, MONO_MS / 2); // 0.5, 3.5, 6.5
        assert_int_equal(port_state(e.agg, e.agg_port), MAD_PORT_DOWN);
        rig_run(&rig, MONO_MS); // 1.5, 4.5, 7.5
        assert_int_equal(port_state(e.agg, e.agg_port), MAD_PORT_INIT);
        rig_run(&rig, 3 * MONO_MS / 2);
    }
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(downed(e.leaf, e.up_port), 3);
    assert_int_equal(port_state(e.leaf, e.up_port), MAD_PORT_INIT);
}

static void flap_is_ended_by_a_hand(void **state)
{
    assert_int_equal(sim_link_flap(rig.s, e.leaf, e.up_port, MONO_MS, MONO_MS, 100), 0);
    rig_run(&rig, MONO_MS / 2);
    assert_int_equal(sim_link_set(rig.s, e.agg, e.agg_port, false), 0);
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(downed(e.leaf, e.up_port), 1);
    assert_int_equal(port_state(e.leaf, e.up_port), MAD_PORT_DOWN);
    // another flap replaces the first
    assert_int_equal(sim_link_flap(rig.s, e.leaf, e.up_port, MONO_MS, MONO_MS, 100), 0);
    assert_int_equal(sim_link_flap(rig.s, e.agg, e.agg_port, 10 * MONO_MS, 0, 1), 0);
    rig_run(&rig, 5 * MONO_MS);
    assert_int_equal(port_state(e.leaf, e.up_port), MAD_PORT_DOWN);
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(downed(e.leaf, e.up_port), 1);
    assert_int_equal(port_state(e.leaf, e.up_port), MAD_PORT_INIT);
    // a cable that goes elsewhere takes its flapping with it
    assert_int_equal(sim_link_flap(rig.s, e.leaf, e.up_port, MONO_MS, MONO_MS, 100), 0);
    assert_int_equal(sim_recable(rig.s, e.leaf, e.up_port, e.host, 1), 0);
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(downed(e.leaf, e.up_port), 2);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_INIT);
}

static void flap_refuses(void **state)
{
    assert_int_equal(sim_link_flap(rig.s, 1234, 1, 0, 0, 1), -ENOENT);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 99, 0, 0, 1), -ENOENT);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 1, -1, 0, 1), -EINVAL);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 1, 0, -1, 1), -EINVAL);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 1, 0, 0, 0), -EINVAL);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 1, 0, 0, 1001), -EINVAL); // would drown in its traps
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 1, MONO_MS, MONO_MS, 1000001), -EINVAL);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, 1, INT64_MAX, 0, 1), -EINVAL);
    assert_int_equal(downed(e.leaf, 1), 0);
}

// Training begins anew with every cut: links that flap faster than they train never come up.
static void flap_faster_than_training(void **state)
{
    assert_int_equal(sim_link_flap(rig.s, e.leaf, e.up_port, MONO_MS, 3 * MONO_MS, 4), 0);
    for (unsigned i = 0; i < 17; i++) { // the last up is at 13 ms
        rig_run(&rig, MONO_MS);
        assert_int_equal(port_state(e.agg, e.agg_port), MAD_PORT_DOWN);
    }
    rig_run(&rig, 2 * MONO_MS);
    assert_int_equal(port_state(e.agg, e.agg_port), MAD_PORT_INIT);
    assert_int_equal(downed(e.leaf, e.up_port), 1);
}

// The same whichever end is cut.
static void training_begins_anew(void **state)
{
    assert_int_equal(sim_link_set(rig.s, e.leaf, e.up_port, false), 0);
    assert_int_equal(sim_link_set(rig.s, e.leaf, e.up_port, true), 0);
    rig_run(&rig, 3 * MONO_MS);
    assert_int_equal(sim_link_set(rig.s, e.agg, e.agg_port, false), 0);
    assert_int_equal(sim_link_set(rig.s, e.agg, e.agg_port, true), 0);
    rig_run(&rig, 4 * MONO_MS); // 7 ms: the first training would be over
    assert_int_equal(port_state(e.agg, e.agg_port), MAD_PORT_DOWN);
    rig_run(&rig, 2 * MONO_MS);
    assert_int_equal(port_state(e.agg, e.agg_port), MAD_PORT_INIT);
}

static void swapped_cables(void **state)
{
    struct mad_node_info ni;
    // the manager's neighbour on its leaf and the far host
    unsigned near_port = e.leaf_port == 1 ? 2 : 1;
    struct dest near = dest_plus(rig_path(&rig, e.leaf), near_port);
    struct dest far = dest_plus(rig_path(&rig, e.far_leaf), e.far_port);
    assert_int_equal(rig_node_info(&rig, &near, &ni), 0);
    uint64_t near_host = ni.node_guid;
    assert_int_equal(sim_swap_cables(rig.s, e.leaf, near_port, e.host, 1), 0);
    rig_run(&rig, MONO_MS);
    // two links exchange their far ends: the leaf's port now sees the far leaf, the near host the far host
    assert_int_equal(rig_node_info(&rig, &near, &ni), 0);
    assert_true(ni.node_guid == e.far_leaf);
    assert_int_equal(ni.local_port_num, e.far_port);
    assert_int_equal(port_state(near_host, 1), MAD_PORT_INIT);
    assert_int_equal(port_state(e.host, 1), MAD_PORT_INIT);
    assert_int_equal(rig.traps[128], 4); // down and up, of both switches
    assert_int_equal(sim_swap_cables(rig.s, e.leaf, near_port, e.host, 1), 0);
    assert_int_equal(rig_node_info(&rig, &near, &ni), 0);
    assert_true(ni.node_guid == near_host);
    assert_int_equal(rig_node_info(&rig, &far, &ni), 0);
    assert_true(ni.node_guid == e.host);
    // the other way round: the two hosts change places
    assert_int_equal(sim_swap_cables(rig.s, e.leaf, near_port, e.far_leaf, e.far_port), 0);
    assert_int_equal(rig_node_info(&rig, &near, &ni), 0);
    assert_true(ni.node_guid == e.host);
    assert_int_equal(rig_node_info(&rig, &far, &ni), 0);
    assert_true(ni.node_guid == near_host);
    assert_int_equal(sim_swap_cables(rig.s, e.leaf, near_port, e.leaf, near_port), -EINVAL);
    assert_int_equal(sim_swap_cables(rig.s, e.leaf, near_port, e.host, 1), -EINVAL); // one cable now
    assert_int_equal(sim_swap_cables(rig.s, e.leaf, near_port, 1234, 1), -ENOENT);
}

static void enabled_at_the_device(void **state)
{
    struct mad_notice n;
    struct mad_trap_144 d;
    assert_int_equal(sim_link_enabled(rig.s, e.leaf, e.up_port, MAD_WIDTH_1X, 0, 0), 0);
    rig_run(&rig, MONO_MS);
    rig_notice(&rig, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_int_equal(n.trap_number, 144);
    assert_int_equal(d.link_width_enabled_change, 1);
    assert_int_equal(d.link_speed_enabled_change, 0);
    assert_int_equal(rig_field(&rig, e.leaf, e.up_port, "link_width_active"), MAD_WIDTH_4X);
    assert_int_equal(sim_link_enabled(rig.s, e.leaf, e.up_port, 0, 0, MAD_SPEED_EXT_EDR), 0);
    rig_run(&rig, MONO_MS);
    rig_notice(&rig, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_int_equal(d.link_width_enabled_change, 0);
    assert_int_equal(d.link_speed_enabled_change, 1);
    assert_int_equal(rig.traps[144], 2);
    assert_int_equal(sim_link_enabled(rig.s, e.leaf, e.up_port, MAD_WIDTH_1X, 0, 0), 0); // no change
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[144], 2);
    assert_int_equal(sim_link_flap(rig.s, e.leaf, e.up_port, 0, 0, 1), 0);
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "link_width_active"), MAD_WIDTH_1X);
    assert_int_equal(rig_field(&rig, e.agg, e.agg_port, "link_speed_ext_active"), MAD_SPEED_EXT_EDR);
    assert_int_equal(sim_link_enabled(rig.s, e.leaf, e.up_port, 0x80, 0, 0), -EINVAL);
    assert_int_equal(sim_link_enabled(rig.s, e.leaf, 99, MAD_WIDTH_1X, 0, 0), -ENOENT);
}

static void delay_is_of_each_request(void **state)
{
    struct dest d = by_lid(rig_lid_of(&rig, e.host));
    struct mad_node_info ni;
    assert_int_equal(sim_node_delay(rig.s, e.host, 30 * MONO_MS), 0);
    int64_t start = loop_now(rig.l).ns;
    assert_int_equal(rig_node_info(&rig, &d, &ni), 0);
    assert_int_equal(loop_now(rig.l).ns - start, 30 * MONO_MS);
    // a switch that is slow to answer lets through as fast as before
    assert_int_equal(sim_node_delay(rig.s, e.host, 0), 0);
    assert_int_equal(sim_node_delay(rig.s, e.far_leaf, 30 * MONO_MS), 0);
    struct dest path = rig_path(&rig, e.host);
    start = loop_now(rig.l).ns;
    assert_int_equal(rig_node_info(&rig, &path, &ni), 0);
    assert_int_equal(loop_now(rig.l).ns - start, 0);
    assert_int_equal(sim_node_delay(rig.s, e.host, -1), -EINVAL);
    assert_int_equal(sim_node_delay(rig.s, e.host, 61 * MONO_S), -EINVAL);
    assert_int_equal(sim_node_delay(rig.s, 1234, 1), -ENOENT);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        UP(flap_once),
        UP(flap_in_no_time_leaves_init_and_the_bit),
        UP(flap_many_times),
        UP(flap_is_ended_by_a_hand),
        UP(flap_refuses),
        cmocka_unit_test_setup_teardown(flap_faster_than_training, setup_training, teardown),
        cmocka_unit_test_setup_teardown(training_begins_anew, setup_training, teardown),
        UP(swapped_cables),
        UP(enabled_at_the_device),
        UP(delay_is_of_each_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
