// SPDX-License-Identifier: Apache-2.0
// What PortInfo a port should have: who owns which field of which kind of port, and what a Set may not do by
// echoing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "mad/mad.h"
#include "sm/portcfg.h"
#include "sm/sm.h"

static struct sm_opts opts(void)
{
    struct sm_opts o;
    sm_opts_default(&o);
    return o;
}

// A PortInfo that has every field different from what the manager wants.
static struct mad_port_info other(void)
{
    return (struct mad_port_info){
        .m_key = 0x1122334455667788,
        .gid_prefix = 0xfec0000000000000,
        .lid = 900,
        .master_sm_lid = 901,
        .capability_mask = 0x02510a68,
        .diag_code = 3,
        .m_key_lease_period = 60,
        .local_port_num = 1,
        .link_width_enabled = 3,
        .link_width_supported = 3,
        .link_width_active = 2,
        .link_speed_supported = 7,
        .port_state = MAD_PORT_INIT,
        .port_physical_state = 5,
        .link_down_default_state = 1,
        .m_key_protect_bits = 1,
        .lmc = 2,
        .link_speed_active = 4,
        .link_speed_enabled = 7,
        .neighbor_mtu = 1,
        .master_sm_sl = 3,
        .vl_cap = 4,
        .vl_high_limit = 9,
        .mtu_cap = 5,
        .vl_stall_count = 3,
        .hoq_life = 1,
        .operational_vls = 1,
        .partition_enforcement_inbound = 1,
        .filter_raw_outbound = 1,
        .client_reregister = 1,
        .subnet_timeout = 3,
        .local_phy_errors = 1,
        .overrun_errors = 2,
        .link_speed_ext_enabled = 7,
    };
}

static const uint32_t END = PORTCFG_LID | PORTCFG_MASTER_SM_LID | PORTCFG_MASTER_SM_SL | PORTCFG_GID_PREFIX |
                            PORTCFG_LMC | PORTCFG_SUBNET_TIMEOUT;
static const uint32_t LINK = PORTCFG_NEIGHBOR_MTU | PORTCFG_OPER_VLS;
static const uint32_t REST = PORTCFG_ERROR_THRESHOLDS | PORTCFG_LINK_DOWN_DEFAULT;

// Everything but the fields named is as read.
static void echoes(const struct mad_port_info *now, const struct mad_port_info *want, uint32_t fields)
{
    struct mad_port_info w = *want;
    uint8_t a[MAD_SMP_DATA_SIZE] = {0}, b[MAD_SMP_DATA_SIZE] = {0};
#define AS_READ(bit, f)                                                                                      \
    if (fields & (bit))                                                                                      \
    w.f = now->f
    AS_READ(PORTCFG_LID, lid);
    AS_READ(PORTCFG_MASTER_SM_LID, master_sm_lid);
    AS_READ(PORTCFG_MASTER_SM_SL, master_sm_sl);
    AS_READ(PORTCFG_GID_PREFIX, gid_prefix);
    AS_READ(PORTCFG_LMC, lmc);
    AS_READ(PORTCFG_SUBNET_TIMEOUT, subnet_timeout);
    AS_READ(PORTCFG_NEIGHBOR_MTU, neighbor_mtu);
    AS_READ(PORTCFG_OPER_VLS, operational_vls);
    AS_READ(PORTCFG_HOQ_LIFE, hoq_life);
    AS_READ(PORTCFG_VL_STALL_COUNT, vl_stall_count);
    AS_READ(PORTCFG_ERROR_THRESHOLDS, local_phy_errors);
    AS_READ(PORTCFG_ERROR_THRESHOLDS, overrun_errors);
    AS_READ(PORTCFG_LINK_DOWN_DEFAULT, link_down_default_state);
    assert_int_equal(want->port_state, MAD_PORT_NO_CHANGE);
    assert_int_equal(want->port_physical_state, MAD_PHYS_NO_CHANGE);
    assert_int_equal(want->client_reregister, 0);
    assert_int_not_equal(want->neighbor_mtu, 0);
    w.port_state = now->port_state;
    w.port_physical_state = now->port_physical_state;
    w.client_reregister = now->client_reregister;
    if (now->neighbor_mtu == 0)
        w.neighbor_mtu = 0;
    mad_port_info_encode(now, a);
    mad_port_info_encode(&w, b);
    assert_memory_equal(a, b, sizeof(a));
}

static uint32_t config(enum portcfg_kind kind, struct mad_port_info *now, struct mad_port_info *want)
{
    struct sm_opts o = opts();
    struct mad_port_info peer = {.mtu_cap = 4, .vl_cap = 3};
    struct portcfg_in in = {
        .kind = kind, .now = now, .peer = &peer, .peer_is_switch = true, .lid = 17, .sm_lid = 4};
    return portcfg_want(&in, &o, want);
}

static void test_end_port(void **state)
{
    struct mad_port_info now = other(), w;
    uint32_t f = config(PORTCFG_END, &now, &w);
    (void)state;
    assert_int_equal(f, END | LINK | REST);
    echoes(&now, &w, f);
    assert_int_equal(w.lid, 17);
    assert_int_equal(w.master_sm_lid, 4);
    assert_int_equal(w.master_sm_sl, 0);
    assert_true(w.gid_prefix == MAD_DEFAULT_GID_PREFIX);
    assert_int_equal(w.lmc, 0);
    assert_int_equal(w.subnet_timeout, 18);
    assert_int_equal(w.neighbor_mtu, 4);
    assert_int_equal(w.operational_vls, 3);
    assert_int_equal(w.local_phy_errors, 8);
    assert_int_equal(w.overrun_errors, 8);
    assert_int_equal(w.link_down_default_state, 2);
}

static void test_router(void **state)
{
    struct mad_port_info now = other(), w;
    struct sm_opts o = opts();
    struct portcfg_in in = {.kind = PORTCFG_END, .router = true, .now = &now, .lid = 17, .sm_lid = 4};
    (void)state;
    uint32_t f = portcfg_want(&in, &o, &w);
    assert_int_equal(f, END | LINK | REST | PORTCFG_HOQ_LIFE);
    assert_int_equal(w.hoq_life, 16);
    assert_int_equal(w.neighbor_mtu, 5); // the far end is not known: its own
    echoes(&now, &w, f);
}

static void test_switch_port0(void **state)
{
    struct mad_port_info now = other(), w;
    (void)state;
    uint32_t f = config(PORTCFG_SWITCH0, &now, &w);
    assert_int_equal(f, END);
    echoes(&now, &w, f);
    f = config(PORTCFG_SWITCH0_ENHANCED, &now, &w);
    assert_int_equal(f, END | PORTCFG_NEIGHBOR_MTU | PORTCFG_ERROR_THRESHOLDS);
    assert_int_equal(w.neighbor_mtu, 5); // its own cap
    echoes(&now, &w, f);
}

static void test_external(void **state)
{
    struct mad_port_info now = other(), w;
    struct sm_opts o = opts();
    struct portcfg_in in = {.kind = PORTCFG_SWITCH_EXTERNAL, .now = &now, .lid = 17, .sm_lid = 4};
    (void)state;
    uint32_t f = config(PORTCFG_SWITCH_EXTERNAL, &now, &w);
    assert_int_equal(f, LINK | REST | PORTCFG_HOQ_LIFE | PORTCFG_VL_STALL_COUNT);
    echoes(&now, &w, f);
    assert_int_equal(w.lid, 900); // none of its business
    assert_int_equal(w.hoq_life, 18);
    assert_int_equal(w.vl_stall_count, 7);
    portcfg_want(&in, &o, &w); // towards an adapter
    assert_int_equal(w.hoq_life, 16);
}

// MTU and VLs of a link that is ARMED or ACTIVE stay.
static void test_live_link(void **state)
{
    (void)state;
    for (uint8_t s = 0; s < 16; s++) {
        struct mad_port_info now = other(), w;
        bool live = s == MAD_PORT_ARMED || s == MAD_PORT_ACTIVE;
        now.port_state = s;
        assert_int_equal(config(PORTCFG_END, &now, &w) & LINK, live ? 0 : LINK);
        assert_int_equal(config(PORTCFG_SWITCH_EXTERNAL, &now, &w) & LINK, live ? 0 : LINK);
        assert_int_equal(w.neighbor_mtu, live ? 1 : 4);
    }
}

static void test_max_vls(void **state)
{
    struct mad_port_info now = other(), w;
    struct sm_opts o = opts();
    struct portcfg_in in = {.kind = PORTCFG_END, .now = &now, .lid = 1, .sm_lid = 1};
    (void)state;
    o.max_vls = 2;
    portcfg_want(&in, &o, &w);
    assert_int_equal(w.operational_vls, 2);
    struct mad_port_info peer = {0}; // a far end that does not say
    in.peer = &peer;
    o.max_vls = 5;
    portcfg_want(&in, &o, &w);
    assert_int_equal(w.operational_vls, 4);
    assert_int_equal(w.neighbor_mtu, 5);
}

// NeighborMTU 0 is never written, though the device says 0 throughout.
static void test_mtu_never_0(void **state)
{
    (void)state;
    for (int kind = PORTCFG_END; kind <= PORTCFG_SWITCH_EXTERNAL; kind++)
        for (uint8_t st = MAD_PORT_INIT; st <= MAD_PORT_ACTIVE; st++) {
            struct mad_port_info now = {.port_state = st}, w;
            struct sm_opts o = opts();
            struct portcfg_in in = {.kind = (enum portcfg_kind)kind, .now = &now, .lid = 1, .sm_lid = 1};
            uint32_t f = portcfg_want(&in, &o, &w);
            assert_int_equal(f & PORTCFG_NEIGHBOR_MTU, 0); // no reason to write by itself
            assert_int_not_equal(w.neighbor_mtu, 0);
        }
}

// What is as wanted asks for nothing; what is not kept is not asked for again.
static void test_settled(void **state)
{
    (void)state;
    for (int kind = PORTCFG_END; kind <= PORTCFG_SWITCH_EXTERNAL; kind++) {
        struct mad_port_info now = other(), w, w2;
        struct sm_opts o = opts();
        struct portcfg_in in = {.kind = (enum portcfg_kind)kind, .now = &now, .lid = 17, .sm_lid = 4};
        uint32_t f = portcfg_want(&in, &o, &w);
        assert_int_equal(portcfg_not_kept(f, &w, &w), 0);
        assert_int_equal(portcfg_not_kept(f, &w, &now), f);
        for (int bit = 0; bit < PORTCFG_FIELDS; bit++) {
            in.not_kept = 1u << bit;
            assert_int_equal(portcfg_want(&in, &o, &w2), f & ~in.not_kept);
        }
        in.not_kept = 0;
        in.now = &w;
        w.port_state = MAD_PORT_ACTIVE;
        assert_int_equal(portcfg_want(&in, &o, &w2), 0);
    }
}

// Each field that is not kept is told by itself.
static void test_not_kept_bits(void **state)
{
    struct mad_port_info w = {0};
    (void)state;
#define LOST(bit, f)                                                                                         \
    do {                                                                                                     \
        struct mad_port_info a = w;                                                                          \
        a.f ^= 1;                                                                                            \
        assert_int_equal(portcfg_not_kept(~0u, &w, &a), bit);                                                \
        assert_int_equal(portcfg_not_kept(~(uint32_t)(bit), &w, &a), 0);                                     \
    } while (0)
    LOST(PORTCFG_LID, lid);
    LOST(PORTCFG_MASTER_SM_LID, master_sm_lid);
    LOST(PORTCFG_MASTER_SM_SL, master_sm_sl);
    LOST(PORTCFG_GID_PREFIX, gid_prefix);
    LOST(PORTCFG_LMC, lmc);
    LOST(PORTCFG_SUBNET_TIMEOUT, subnet_timeout);
    LOST(PORTCFG_NEIGHBOR_MTU, neighbor_mtu);
    LOST(PORTCFG_OPER_VLS, operational_vls);
    LOST(PORTCFG_HOQ_LIFE, hoq_life);
    LOST(PORTCFG_VL_STALL_COUNT, vl_stall_count);
    LOST(PORTCFG_ERROR_THRESHOLDS, local_phy_errors);
    LOST(PORTCFG_ERROR_THRESHOLDS, overrun_errors);
    LOST(PORTCFG_LINK_DOWN_DEFAULT, link_down_default_state);
    LOST(0, port_state);
    LOST(0, m_key_violations);
}

static void test_names(void **state)
{
    char buf[200];
    (void)state;
    assert_string_equal(portcfg_names(0, buf, sizeof(buf)), "");
    assert_string_equal(portcfg_names(PORTCFG_LID | PORTCFG_HOQ_LIFE, buf, sizeof(buf)), "LID, HOQLife");
    char all[400];
    portcfg_names(~0u, all, sizeof(all));
    for (unsigned long size = 1; size < sizeof(buf); size++) { // a short buffer is filled, never overrun
        memset(buf, 'x', sizeof(buf));
        portcfg_names(~0u, buf, size);
        assert_true(strlen(buf) < size);
        assert_int_equal(strncmp(buf, all, strlen(buf)), 0);
    }
}

// Any device state at all: a Set changes nothing besides the fields it names, and never more than its kind.
static void test_any(void **state)
{
    struct rng r;
    static const uint32_t own[] = {END | LINK | REST, END,
                                   END | PORTCFG_NEIGHBOR_MTU | PORTCFG_ERROR_THRESHOLDS,
                                   LINK | REST | PORTCFG_HOQ_LIFE | PORTCFG_VL_STALL_COUNT};
    (void)state;
    rng_init(&r, 9);
    for (int i = 0; i < 20000; i++) {
        uint8_t wire[MAD_SMP_DATA_SIZE], peer_wire[MAD_SMP_DATA_SIZE];
        struct mad_port_info now, peer, w;
        struct sm_opts o = opts();
        for (unsigned k = 0; k < sizeof(wire); k++) {
            wire[k] = (uint8_t)rng_u64(&r);
            peer_wire[k] = (uint8_t)rng_u64(&r);
        }
        mad_port_info_decode(wire, &now);
        mad_port_info_decode(peer_wire, &peer);
        struct portcfg_in in = {.kind = (enum portcfg_kind)(i % 4),
                                .now = &now,
                                .peer = i % 3 ? &peer : NULL,
                                .lid = (uint16_t)(1 + i),
                                .sm_lid = 5};
        uint32_t f = portcfg_want(&in, &o, &w);
        assert_int_equal(f & ~own[i % 4], 0);
        echoes(&now, &w, f);
    }
}

// LIDs by the range are an adapter's; the level to the manager every end port has, and no external one.
static void test_lmc_and_level(void **state)
{
    static const enum portcfg_kind kind[] = {PORTCFG_END, PORTCFG_SWITCH0, PORTCFG_SWITCH0_ENHANCED,
                                             PORTCFG_SWITCH_EXTERNAL};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct mad_port_info now = other(), want;
        struct sm_opts o = opts();
        struct portcfg_in in = {.kind = kind[i], .now = &now, .lid = 8, .sm_lid = 1, .sm_sl = 5, .lmc = 3};
        uint32_t fields = portcfg_want(&in, &o, &want);
        assert_int_equal(want.lmc, kind[i] == PORTCFG_END               ? 3
                                   : kind[i] == PORTCFG_SWITCH_EXTERNAL ? now.lmc
                                                                        : 0);
        assert_int_equal(want.master_sm_sl, kind[i] == PORTCFG_SWITCH_EXTERNAL ? now.master_sm_sl : 5);
        assert_int_equal(!!(fields & PORTCFG_MASTER_SM_SL), kind[i] != PORTCFG_SWITCH_EXTERNAL);
        in.sm_sl = now.master_sm_sl;
        assert_false(portcfg_want(&in, &o, &want) & PORTCFG_MASTER_SM_SL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_port),      cmocka_unit_test(test_router),
        cmocka_unit_test(test_switch_port0),  cmocka_unit_test(test_external),
        cmocka_unit_test(test_live_link),     cmocka_unit_test(test_max_vls),
        cmocka_unit_test(test_mtu_never_0),   cmocka_unit_test(test_settled),
        cmocka_unit_test(test_not_kept_bits), cmocka_unit_test(test_names),
        cmocka_unit_test(test_any),           cmocka_unit_test(test_lmc_and_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
