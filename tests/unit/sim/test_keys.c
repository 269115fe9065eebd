// SPDX-License-Identifier: Apache-2.0
// M_Key: protection 0..3, lease, violations, trap 256 with its details; P_Keys and Q_Keys of GMPs at end
// ports and at switch ports that enforce, traps 257..259.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
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

static int setup_checks(void **state)
{
    rig_up(&rig, &(struct sim_opts){.p_key_check = true, .q_key_check = true}, &e);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

#define KEY 0x1122334455667788ull

static void protection_levels(void **state)
{
    struct dest host = by_lid(rig_lid_of(&rig, e.host));
    for (unsigned level = 0; level <= 3; level++) {
        struct mad_port_info pi;
        assert_int_equal(sim_m_key_set(rig.s, e.host, 1, KEY, (uint8_t)level, 0), 0);
        uint64_t before = rig_field(&rig, e.host, 1, "m_key_violations");
        rig.m_key = 0;
        int st = rig_get_port(&rig, &host, 0, &pi);
        assert_int_equal(st, level < 2 ? 0 : -1);
        if (st == 0)
            assert_true(pi.m_key == (level == 0 ? KEY : 0));
        assert_int_equal(rig_field(&rig, e.host, 1, "m_key_violations") - before, level < 2 ? 0 : 1);
        rig.m_key = KEY;
        assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
        assert_true(pi.m_key == KEY);
        pi.port_state = pi.port_physical_state = 0;
        pi.subnet_timeout = 17;
        rig.m_key = KEY + 1;
        before = rig_field(&rig, e.host, 1, "m_key_violations");
        assert_int_equal(rig_set_port(&rig, &host, 0, &pi), -1);
        assert_int_equal(rig_field(&rig, e.host, 1, "m_key_violations") - before, 1);
        assert_int_equal(rig_field(&rig, e.host, 1, "subnet_timeout"), 18);
    }
    // with the key: taken; it carries the new one
    struct mad_port_info pi;
    rig.m_key = KEY;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    pi.port_state = pi.port_physical_state = 0;
    pi.m_key = 5;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1);
    rig.m_key = 5;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    pi.port_state = pi.port_physical_state = 0;
    pi.m_key = 0; // unlocks
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    rig.m_key = 77;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
}

static void lease_runs_out(void **state)
{
    struct dest host = by_lid(rig_lid_of(&rig, e.host));
    struct mad_port_info pi;
    assert_int_equal(sim_m_key_set(rig.s, e.host, 1, KEY, 2, 60), 0);
    rig_run(&rig, 1000 * MONO_S); // it does not run before somebody fails
    assert_int_equal(rig_field(&rig, e.host, 1, "m_key_protect_bits"), 2);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1); // 1 s of waiting
    rig_run(&rig, 50 * MONO_S);
    rig.m_key = KEY;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0); // its owner lives: the lease stops
    rig.m_key = 0;
    rig_run(&rig, 30 * MONO_S);
    assert_int_equal(rig_field(&rig, e.host, 1, "m_key_protect_bits"), 2);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1);
    rig_run(&rig, 58 * MONO_S);
    assert_int_equal(rig_field(&rig, e.host, 1, "m_key_protect_bits"), 2);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1); // does not make it longer
    rig_run(&rig, 2 * MONO_S);
    assert_int_equal(rig_field(&rig, e.host, 1, "m_key_protect_bits"), 0);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    assert_true(pi.m_key == KEY); // to be read, and then to be used
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), -1);
    rig.m_key = pi.m_key;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    // lease 0: for ever
    assert_int_equal(sim_m_key_set(rig.s, e.host, 1, KEY, 2, 0), 0);
    rig.m_key = 0;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1);
    rig_run(&rig, 100000 * MONO_S);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1);
    assert_int_equal(sim_m_key_set(rig.s, e.host, 1, KEY, 4, 0), -EINVAL);
    assert_int_equal(sim_m_key_set(rig.s, e.leaf, 1, KEY, 1, 0), -EINVAL);
    assert_int_equal(sim_m_key_set(rig.s, 1234, 1, KEY, 1, 0), -ENOENT);
}

static void trap_256_says_who_and_what(void **state)
{
    struct mad_notice n;
    struct mad_trap_256 d;
    struct mad_port_info pi;
    struct dest host = by_lid(rig_lid_of(&rig, e.host)), path = rig_path(&rig, e.host);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(sim_m_key_set(rig.s, e.host, 1, KEY, 1, 0), 0);
    rig.m_key = 0xabc;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &host, 1, &pi), -1);
    rig_notice(&rig, &n);
    mad_trap_256_decode(n.data_details, &d);
    assert_int_equal(n.trap_number, 256);
    assert_int_equal(n.type, MAD_NOTICE_SECURITY);
    assert_int_equal(n.issuer_lid, rig_lid_of(&rig, e.host));
    assert_int_equal(d.lid, e.sm_lid);
    assert_int_equal(d.method, MAD_METHOD_SET);
    assert_int_equal(d.attr_id, MAD_ATTR_PORT_INFO);
    assert_true(d.attr_mod == (1 | EXT));
    assert_true(d.m_key == 0xabc);
    assert_int_equal(d.dr_notice, 0);
    rig_repress(&rig, rig.other, n.issuer_lid, KEY);
    rig_run(&rig, 3 * MONO_S);
    assert_int_equal(sim_traps_pending(rig.s), 0);
    // by directed route: the way back, as the device saw it
    uint8_t data[64] = {0};
    assert_int_equal(rig_smp(&rig, &path, MAD_METHOD_SET, MAD_ATTR_GUID_INFO, 0, data), -1);
    rig_notice(&rig, &n);
    mad_trap_256_decode(n.data_details, &d);
    assert_int_equal(d.lid, MAD_LID_PERMISSIVE);
    assert_int_equal(d.dr_slid, MAD_LID_PERMISSIVE);
    assert_int_equal(d.attr_id, MAD_ATTR_GUID_INFO);
    assert_int_equal(d.dr_notice, 1);
    assert_int_equal(d.dr_path_truncated, 0);
    assert_int_equal(d.dr_hop_count, path.to.hops);
    assert_int_equal(d.dr_notice_return_path[0], e.leaf_port); // of the first switch, to where it came from
    // a port that knows no master says nothing, but counts
    uint64_t before = rig_field(&rig, e.leaf, 0, "m_key_violations");
    assert_int_equal(sim_switch_reboot(rig.s, e.leaf), 0);
    assert_int_equal(sim_m_key_set(rig.s, e.leaf, 0, KEY, 3, 0), 0);
    struct dest leaf = rig_path(&rig, e.leaf);
    unsigned traps = rig.traps[256];
    rig.m_key = 1;
    assert_int_equal(rig_get_port(&rig, &leaf, 0, &pi), -1);
    assert_int_equal(rig_field(&rig, e.leaf, 0, "m_key_violations"), before + 1);
    assert_int_equal(rig.traps[256], traps);
}

// --- GMPs ---

static void send_from_host(uint16_t to, uint32_t q_key, unsigned p_key_index)
{
    struct err err;
    struct transport *t = sim_attach(rig.s, e.host_port_guid, &err);
    uint8_t mad[MAD_SIZE] = {1, MAD_CLASS_SA, 2, MAD_METHOD_GET};
    struct mad_addr a = {.lid = to, .qp = 1, .qkey = q_key, .pkey_index = p_key_index};
    assert_int_equal(t->ops->send(t, mad, &a, 0), 0);
    rig_run(&rig, MONO_MS);
    t->ops->free(t);
}

static void set_p_keys(uint64_t guid, uint32_t am, uint16_t k0, uint16_t k1)
{
    struct dest d = by_lid(rig_lid_of(&rig, guid));
    uint8_t data[64] = {(uint8_t)(k0 >> 8), (uint8_t)k0, (uint8_t)(k1 >> 8), (uint8_t)k1};
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, am, data), 0);
}

static void bad_p_key_and_q_key_at_the_end(void **state)
{
    struct mad_notice n;
    struct mad_trap_257 d;
    uint64_t me = rig.port.node_guid;
    send_from_host(e.sm_lid, MAD_QP1_Q_KEY, 0);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 1);
    send_from_host(e.sm_lid, 0x1111, 0);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 1);
    assert_int_equal(rig.traps[258], 1);
    assert_int_equal(rig_field(&rig, me, 1, "q_key_violations"), 1);
    rig_notice(&rig, &n);
    mad_trap_257_decode(n.data_details, &d);
    assert_true(d.key == 0x1111 && d.lid1 == rig_lid_of(&rig, e.host) && d.lid2 == e.sm_lid && d.qp1 == 1);
    rig_repress(&rig, rig.other, e.sm_lid, 0);
    rig_run(&rig, 3 * MONO_S);
    set_p_keys(e.host, 0, 0xffff, 0x8123);
    send_from_host(e.sm_lid, MAD_QP1_Q_KEY, 1);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 1);
    assert_int_equal(rig.traps[257], 1);
    assert_int_equal(rig_field(&rig, me, 1, "p_key_violations"), 1);
    rig_notice(&rig, &n);
    mad_trap_257_decode(n.data_details, &d);
    assert_int_equal(d.key, 0x8123);
    set_p_keys(me, 0, 0xffff, 0x0123); // a limited member may talk to a full one
    send_from_host(e.sm_lid, MAD_QP1_Q_KEY, 1);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 2);
    struct sim_stats st;
    sim_get_stats(rig.s, &st);
    assert_int_equal(st.bad_p_key, 1);
    assert_int_equal(st.bad_q_key, 1);
}

static void switch_port_enforces(void **state)
{
    struct mad_notice n;
    struct mad_trap_259 d;
    struct mad_port_info pi;
    uint64_t dropped;
    uint16_t leaf_lid = rig_lid_of(&rig, e.far_leaf);
    struct dest leaf = by_lid(leaf_lid);
    set_p_keys(e.host, 0, 0xffff, 0x8123);
    set_p_keys(rig.port.node_guid, 0, 0xffff, 0x8123);
    set_p_keys(e.far_leaf, e.far_port << 16, 0xffff, 0);
    send_from_host(e.sm_lid, MAD_QP1_Q_KEY, 1);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 1); // a table alone enforces nothing
    for (unsigned out = 0; out < 2; out++) {
        assert_int_equal(rig_get_port(&rig, &leaf, e.far_port, &pi), 0);
        pi.port_state = pi.port_physical_state = 0;
        pi.partition_enforcement_inbound = !out;
        pi.partition_enforcement_outbound = (uint8_t)out;
        assert_int_equal(rig_set_port(&rig, &leaf, e.far_port, &pi), 0);
        if (out) {
            uint8_t mad[MAD_SIZE] = {1, MAD_CLASS_PM, 1, MAD_METHOD_GET};
            struct mad_addr a = {
                .lid = rig_lid_of(&rig, e.host), .qp = 1, .qkey = MAD_QP1_Q_KEY, .pkey_index = 1};
            assert_int_equal(rig.t->ops->send(rig.t, mad, &a, 0), 0);
            rig_run(&rig, MONO_MS);
        } else {
            send_from_host(e.sm_lid, MAD_QP1_Q_KEY, 1);
        }
        assert_int_equal(rig.classes[MAD_CLASS_SA], 1);
        assert_int_equal(rig.traps[259], 1);
        rig.traps[259] = 0;
        rig_notice(&rig, &n);
        mad_trap_259_decode(n.data_details, &d);
        assert_int_equal(n.issuer_lid, leaf_lid);
        assert_int_equal(d.p_key, 0x8123);
        assert_int_equal(d.port_num, e.far_port);
        assert_int_equal(d.lid1, out ? e.sm_lid : rig_lid_of(&rig, e.host));
        assert_int_equal(d.lid2, out ? rig_lid_of(&rig, e.host) : e.sm_lid);
        assert_int_equal(sim_counter_get(rig.s, e.far_leaf, e.far_port,
                                         out ? SIM_XMIT_CONSTRAINT_ERRORS : SIM_RCV_CONSTRAINT_ERRORS,
                                         &dropped),
                         0);
        assert_int_equal(dropped, 1);
        rig_repress(&rig, rig.other, leaf_lid, 0);
        rig_run(&rig, 3 * MONO_S);
        rig.traps[259] = 0;
    }
    set_p_keys(e.far_leaf, e.far_port << 16, 0xffff, 0x8123);
    send_from_host(e.sm_lid, MAD_QP1_Q_KEY, 1);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 2);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define CHECKED(f) cmocka_unit_test_setup_teardown(f, setup_checks, teardown)
    const struct CMUnitTest tests[] = {
        UP(protection_levels),          UP(lease_runs_out),
        UP(trap_256_says_who_and_what), CHECKED(bad_p_key_and_q_key_at_the_end),
        CHECKED(switch_port_enforces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
