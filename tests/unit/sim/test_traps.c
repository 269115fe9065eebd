// SPDX-License-Identifier: Apache-2.0
// Every notice with its details, whose M_Key a TrapRepress needs, traps that are lost.
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

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static void raised(struct mad_notice *n, unsigned number, uint64_t by)
{
    rig_run(&rig, MONO_MS);
    rig_notice(&rig, n);
    assert_int_equal(rig.traps[number], 1);
    assert_int_equal(n->trap_number, number);
    assert_int_equal(n->is_generic, 1);
    assert_int_equal(n->issuer_lid, rig_lid_of(&rig, by));
    assert_int_equal(rig.other_from.lid, n->issuer_lid);
    rig_repress(&rig, rig.other, n->issuer_lid, 0);
    rig_run(&rig, 5 * MONO_S); // heard
    assert_int_equal(rig.traps[number], 1);
    assert_int_equal(sim_traps_pending(rig.s), 0);
}

static void each_number(void **state)
{
    struct mad_notice n;
    uint16_t leaf_lid = rig_lid_of(&rig, e.leaf), host_lid = rig_lid_of(&rig, e.host);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 0, 128), 0);
    raised(&n, 128, e.leaf);
    struct mad_trap_128 d128;
    mad_trap_128_decode(n.data_details, &d128);
    assert_int_equal(d128.lid, leaf_lid);
    assert_int_equal(n.producer_type, MAD_PRODUCER_SWITCH);
    assert_int_equal(rig_switch_field(&rig, e.leaf, "port_state_change"), 0); // only the notice

    for (uint16_t number = 129; number <= 131; number++) {
        assert_int_equal(sim_raise_trap(rig.s, e.leaf, 3, number), 0);
        raised(&n, number, e.leaf);
        struct mad_trap_129 d;
        mad_trap_129_decode(n.data_details, &d);
        assert_int_equal(d.lid, leaf_lid);
        assert_int_equal(d.port_num, 3);
        assert_int_equal(n.type, MAD_NOTICE_URGENT);
    }

    assert_int_equal(sim_sys_guid(rig.s, e.host, 0x5115), 0);
    raised(&n, 145, e.host);
    struct mad_trap_145 d145;
    struct mad_node_info ni;
    struct dest host = by_lid(host_lid);
    mad_trap_145_decode(n.data_details, &d145);
    assert_int_equal(d145.lid, host_lid);
    assert_true(d145.system_image_guid == 0x5115);
    assert_int_equal(rig_node_info(&rig, &host, &ni), 0);
    assert_true(ni.system_image_guid == 0x5115);
    assert_int_equal(n.producer_type, MAD_PRODUCER_CA);

    assert_int_equal(sim_raise_trap(rig.s, e.host, 1, 256), 0);
    raised(&n, 256, e.host);
    struct mad_trap_256 d256;
    mad_trap_256_decode(n.data_details, &d256);
    assert_int_equal(n.type, MAD_NOTICE_SECURITY);
    assert_int_equal(d256.method, MAD_METHOD_SET);
    assert_true(d256.m_key == 0xbad);
    assert_int_equal(d256.lid, e.sm_lid);
}

static void bad_keys(void **state)
{
    struct mad_notice n;
    struct sim_bad_key k = {.key = 0x12348765, .lid1 = 7, .lid2 = 9, .qp1 = 0x11, .qp2 = 0x22, .sl = 3};
    memset(k.gid1, 0xab, 16);
    memset(k.gid2, 0xcd, 16);
    for (uint16_t number = 257; number <= 258; number++) {
        assert_int_equal(sim_raise_bad_key(rig.s, e.host, 1, number, &k), 0);
        raised(&n, number, e.host);
        struct mad_trap_257 d;
        mad_trap_257_decode(n.data_details, &d);
        assert_true(d.key == 0x12348765 && d.lid1 == 7 && d.lid2 == 9 && d.qp1 == 0x11 && d.qp2 == 0x22);
        assert_true(d.sl == 3 && d.gid1[15] == 0xab && d.gid2[0] == 0xcd);
        assert_int_equal(n.type, MAD_NOTICE_SECURITY);
    }
    assert_int_equal(sim_raise_bad_key(rig.s, e.leaf, 4, 259, &k), 0);
    raised(&n, 259, e.leaf);
    struct mad_trap_259 d;
    mad_trap_259_decode(n.data_details, &d);
    assert_true(d.p_key == 0x8765 && d.lid1 == 7 && d.lid2 == 9 && d.qp2 == 0x22 && d.data_valid != 0);
    assert_int_equal(d.sw_lid, rig_lid_of(&rig, e.leaf));
    assert_int_equal(d.port_num, 4);
    for (uint16_t number = 257; number <= 258; number++) // and with details made up
        assert_int_equal(sim_raise_trap(rig.s, e.host, 1, number), 0);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 4, 259), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[257], 2);
    assert_int_equal(rig.traps[258], 2);
    assert_int_equal(rig.traps[259], 2);
}

static void refused(void **state)
{
    struct sim_bad_key k = {0};
    assert_int_equal(sim_raise_trap(rig.s, e.host, 1, 128), -EINVAL);
    assert_int_equal(sim_raise_trap(rig.s, e.host, 1, 259), -EINVAL);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 1, 64), -EINVAL);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 99, 129), -ENOENT);
    assert_int_equal(sim_raise_change(rig.s, e.leaf, 0, 0x40), -EINVAL);
    assert_int_equal(sim_raise_change(rig.s, 1234, 0, 1), -ENOENT);
    assert_int_equal(sim_raise_bad_key(rig.s, e.host, 1, 256, &k), -EINVAL);
    assert_int_equal(sim_raise_bad_key(rig.s, e.host, 1, 259, &k), -EINVAL);
    assert_int_equal(sim_trap_lose(rig.s, 1234, 1), -ENOENT);
    assert_int_equal(sim_traps_pending(rig.s), 0);
}

static void each_flag(void **state)
{
    static const size_t at[] = {
        offsetof(struct mad_trap_144, node_description_change),
        offsetof(struct mad_trap_144, link_width_enabled_change),
        offsetof(struct mad_trap_144, link_speed_enabled_change),
        offsetof(struct mad_trap_144, sm_priority_change),
        offsetof(struct mad_trap_144, hierarchy_info_change),
        offsetof(struct mad_trap_144, capability_mask2_change),
    };
    for (unsigned i = 0; i < 6; i++) {
        struct mad_notice n;
        struct mad_trap_144 d;
        rig.traps[144] = 0;
        assert_int_equal(sim_raise_change(rig.s, e.host, 1, 1u << i), 0);
        raised(&n, 144, e.host);
        mad_trap_144_decode(n.data_details, &d);
        assert_int_equal(d.other_local_changes, 1);
        for (unsigned k = 0; k < 6; k++)
            assert_int_equal(((uint8_t *)&d)[at[k]], k == i);
        // bit of OtherLocalChanges' word, as the standard counts them: octets 10, 11 of the details
        assert_int_equal(n.data_details[11], 1u << i);
    }
    struct mad_notice n;
    rig.traps[144] = 0;
    assert_int_equal(sim_raise_trap(rig.s, e.host, 1, 144), 0);
    raised(&n, 144, e.host);
    assert_int_equal(n.data_details[11], 0);
    assert_int_equal(n.data_details[5] & 1, 0); // a change of the capability mask alone
}

static void any_notice(void **state)
{
    struct mad_notice n = {.is_generic = 0, .type = 3, .producer_type = 0x2c9, .trap_number = 0xbeef}, got;
    memset(n.data_details, 0x5a, sizeof(n.data_details));
    assert_int_equal(sim_raise_notice(rig.s, e.leaf, 0, &n), 0);
    rig_run(&rig, MONO_MS);
    rig_notice(&rig, &got);
    assert_true(!got.is_generic && got.type == 3 && got.producer_type == 0x2c9 && got.trap_number == 0xbeef);
    assert_int_equal(got.issuer_lid, rig_lid_of(&rig, e.leaf));
    assert_memory_equal(got.data_details, n.data_details, sizeof(n.data_details));
    assert_int_equal(sim_raise_notice(rig.s, 1234, 0, &n), -ENOENT);
}

// The sender's M_Key, not the manager's: with another the trap goes on.
static void repress_needs_the_senders_m_key(void **state)
{
    assert_int_equal(sim_m_key_set(rig.s, e.leaf, 0, 0x1234567, 1, 0), 0);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 3, 129), 0);
    rig_run(&rig, MONO_MS);
    uint8_t trap[MAD_SIZE];
    memcpy(trap, rig.other, MAD_SIZE);
    rig_repress(&rig, trap, rig_lid_of(&rig, e.leaf), 0x7654321);
    rig_run(&rig, 5 * MONO_S / 2);
    assert_int_equal(rig.traps[129], 3);
    assert_int_equal(rig_field(&rig, e.leaf, 0, "m_key_violations"), 1);
    assert_true(rig.traps[256] >= 1); // and tells of it
    // one for another port's trap does not silence it
    trap[64 + 10 + 4] = 9;
    rig_repress(&rig, trap, rig_lid_of(&rig, e.leaf), 0x1234567);
    rig_run(&rig, MONO_S);
    assert_int_equal(rig.traps[129], 4);
    trap[64 + 10 + 4] = 3;
    rig_repress(&rig, trap, rig_lid_of(&rig, e.leaf), 0x1234567);
    rig_run(&rig, 5 * MONO_S);
    assert_int_equal(rig.traps[129], 4);
    struct sim_stats st;
    sim_get_stats(rig.s, &st);
    assert_int_equal(st.traps_repressed, 1);
    assert_int_equal(st.bad_m_key, 1);
}

// Somebody represses trap 256 at once, with the wrong key for ever: one trap in SubnetTimeOut, no storm.
static struct transport *storm_at;
static void repress_wrongly(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    uint8_t answer[MAD_SIZE];
    rig_recv(arg, mad, from, status);
    if (mad[3] != MAD_METHOD_TRAP)
        return;
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_TRAP_REPRESS;
    answer[31] = 0x99;
    assert_int_equal(storm_at->ops->send(storm_at, answer, from, 0), 0);
}

static void no_storm_of_security_traps(void **state)
{
    struct mad_port_info pi;
    assert_int_equal(sim_m_key_set(rig.s, e.leaf, 0, 0x1234567, 2, 0), 0);
    storm_at = rig.t;
    rig.t->recv = repress_wrongly;
    struct dest leaf = by_lid(rig_lid_of(&rig, e.leaf));
    assert_int_equal(rig_get_port(&rig, &leaf, 0, &pi), -1);
    rig_run(&rig, 10 * MONO_S);
    assert_in_range(rig.traps[256], 8, 40);
}

static void lost_on_purpose(void **state)
{
    struct sim_stats st;
    assert_int_equal(sim_trap_lose(rig.s, e.leaf, 2), 0);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 3, 129), 0);
    assert_int_equal(sim_raise_trap(rig.s, e.host, 1, 129), 0); // another node's is not concerned
    rig_run(&rig, 2 * MONO_S);                                  // first and second repeat at 1.07 and 2.15 s
    assert_int_equal(rig.traps[129], 2);
    sim_get_stats(rig.s, &st);
    assert_int_equal(st.traps_lost, 2);
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(rig.traps[129], 4);
    assert_int_equal(sim_trap_lose(rig.s, e.host, UINT_MAX), 0);
    assert_int_equal(sim_trap_lose(rig.s, e.leaf, UINT_MAX), 0);
    rig_run(&rig, 30 * MONO_S);
    assert_int_equal(rig.traps[129], 4);
    assert_int_equal(sim_trap_lose(rig.s, e.host, 0), 0);
    rig_run(&rig, 2 * MONO_S);
    assert_true(rig.traps[129] > 4);
    // by chance
    assert_int_equal(sim_trap_lose(rig.s, e.leaf, 0), 0);
    struct sim_stats before;
    sim_get_stats(rig.s, &before);
    sim_trap_loss(rig.s, 0.5);
    for (unsigned i = 0; i < 400; i++)
        assert_int_equal(sim_raise_trap(rig.s, e.leaf, 1 + i % 4, (uint16_t)(129 + i % 3)), 0);
    rig_run(&rig, MONO_MS);
    sim_get_stats(rig.s, &st);
    assert_in_range(st.traps_lost - before.traps_lost, 150, 250);
}

static void a_boot_forgets_what_was_to_be_said(void **state)
{
    assert_int_equal(sim_trap_lose(rig.s, e.host, UINT_MAX), 0);
    for (unsigned i = 129; i <= 131; i++)
        assert_int_equal(sim_raise_trap(rig.s, e.host, 1, (uint16_t)i), 0);
    assert_int_equal(sim_traps_pending(rig.s), 3);
    assert_int_equal(sim_raise_trap(rig.s, e.leaf, 1, 129), 0);
    assert_int_equal(sim_node_reboot(rig.s, e.host), 0);
    rig_run(&rig, MONO_MS);
    rig_repress(&rig, rig.other, rig_lid_of(&rig, e.far_leaf), 0); // 128 of its leaf
    rig_run(&rig, MONO_MS);
    assert_int_equal(sim_traps_pending(rig.s), 1);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        UP(each_number),
        UP(bad_keys),
        UP(refused),
        UP(each_flag),
        UP(any_notice),
        UP(repress_needs_the_senders_m_key),
        UP(no_storm_of_security_traps),
        UP(lost_on_purpose),
        UP(a_boot_forgets_what_was_to_be_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
