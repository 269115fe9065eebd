// SPDX-License-Identifier: Apache-2.0
// Groups: who may join, what a group becomes, MLIDs, answers that wait for the switches, what is dropped and
// when; subscriptions; who is asked to register again.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/xalloc.h"
#include "tests/unit/routing/rig.h"
#include "tests/unit/sm/sa_rig.h"

#define MGID 0x1u
#define PORT_GID 0x2u
#define Q_KEY 0x4u
#define MTU 0x30u
#define TCLASS 0x40u
#define P_KEY 0x80u
#define RATE 0x300u
#define SL 0x1000u
#define FLOW 0x2000u
#define HOP 0x4000u
#define STATE 0x10000u
#define JOIN (MGID | PORT_GID | STATE)
#define CREATE (JOIN | Q_KEY | TCLASS | P_KEY | SL | FLOW)

static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
                                      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};

static void start(struct sa_rig *r)
{
    sa_rig_init(r, rig_named("rail-64"));
}

static struct mad_mc_member_record group(uint16_t n)
{
    return (struct mad_mc_member_record){.mgid = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xe0,
                                                  0, (uint8_t)(n >> 8), (uint8_t)n},
                                         .q_key = 0x0b1b,
                                         .p_key = 0xffff,
                                         .join_state = 1};
}

static int request(struct sa_rig *r, uint8_t method, uint64_t mask, const struct mad_mc_member_record *q)
{
    uint8_t wire[56];
    mad_mc_member_record_encode(q, wire);
    return sa_ask(r, method, MAD_SA_ATTR_MC_MEMBER_RECORD, mask, wire, sizeof(wire));
}

static void speak_as(struct sa_rig *r, uint32_t adapter)
{
    r->lid = sa_lid_of(r, sa_adapter(r, adapter));
}

// The i-th adapter for itself.
static int join(struct sa_rig *r, uint32_t adapter, uint64_t mask, struct mad_mc_member_record q)
{
    speak_as(r, adapter);
    sa_gid_of(r, sa_adapter(r, adapter), q.port_gid);
    return request(r, MAD_METHOD_SET, mask, &q);
}

static int leave(struct sa_rig *r, uint32_t adapter, struct mad_mc_member_record q)
{
    speak_as(r, adapter);
    sa_gid_of(r, sa_adapter(r, adapter), q.port_gid);
    return request(r, MAD_METHOD_DELETE, JOIN, &q);
}

static struct mad_mc_member_record answered(const struct sa_rig *r)
{
    struct mad_mc_member_record m;
    mad_mc_member_record_decode(r->mad + 56, &m);
    return m;
}

static struct mad_mc_member_record ipoib(void)
{
    struct mad_mc_member_record q = group(0);
    memcpy(q.mgid, broadcast, 16);
    return q;
}

static struct sm_sa_stats stats(const struct sa_rig *r)
{
    struct sm_sa_stats s;
    sm_sa_stats(r->sm, &s);
    return s;
}

// --- the broadcast group ---

static void test_broadcast(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    // It is there before anybody: as IPoIB joins it
    assert_int_equal(join(&r, 0, JOIN | P_KEY, ipoib()), 0);
    const uint8_t *d = r.mad + 56;
    assert_int_equal(r.mad[3], 0x81);
    assert_memory_equal(d, broadcast, 16);
    static const uint8_t prefix[8] = {0xfe, 0x80};
    assert_memory_equal(d + 16, prefix, 8);
    static const uint8_t rest[20] = {0,           0,    0x0b, 0x1b, // Q_Key
                                     0xc0,        0,                // MLID
                                     2 << 6 | 4,  0,                // MTU exactly 2048, TClass
                                     0xff,        0xff,             // P_Key
                                     2 << 6 | 3,                    // rate exactly 10 Gb/s
                                     2 << 6 | 18,                   // life
                                     0,           0,    0,    0,    // SL, flow label, hop limit
                                     0x21,        0,    0,    0};   // scope, JoinState
    assert_memory_equal(d + 32, rest, sizeof(rest));
    assert_int_equal(leave(&r, 0, ipoib()), 0);
    assert_int_equal(r.mad[3], 0x95);
    assert_int_equal(stats(&r).members, 0);
    assert_int_equal(stats(&r).groups, 1); // and stays
    assert_int_equal(join(&r, 1, JOIN, ipoib()), 0);
    sa_rig_done(&r);
}

static void test_join_rules(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q;
    (void)state;
    start(&r);
    assert_int_equal(join(&r, 0, MGID | PORT_GID, ipoib()), MAD_SA_INSUFFICIENT_COMPONENTS);
    assert_int_equal(join(&r, 0, MGID | STATE, ipoib()), MAD_SA_INSUFFICIENT_COMPONENTS);
    q = ipoib();
    q.join_state = 0;
    assert_int_equal(join(&r, 0, JOIN, q), MAD_SA_REQ_INVALID);
    static const struct {
        uint64_t mask;
        int status;
    } c[] = {{Q_KEY, 0},
             {P_KEY, 0},
             {HOP, MAD_SA_REQ_INVALID},
             {TCLASS, MAD_SA_REQ_INVALID},
             {SL, MAD_SA_REQ_INVALID},
             {FLOW, MAD_SA_REQ_INVALID}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        q = ipoib();
        q.hop_limit = q.tclass = q.sl = 1;
        q.flow_label = 1;
        assert_int_equal(join(&r, 0, JOIN | c[i].mask, q), c[i].status);
    }
    q = ipoib();
    q.q_key = 1;
    assert_int_equal(join(&r, 0, JOIN | Q_KEY, q), MAD_SA_REQ_INVALID);
    q = ipoib();
    q.p_key = 0x8001;
    assert_int_equal(join(&r, 0, JOIN | P_KEY, q), MAD_SA_REQ_INVALID);
    q.p_key = 0x7fff; // a limited member of the partition
    assert_int_equal(join(&r, 0, JOIN | P_KEY, q), 0);
    q = ipoib();
    q.mtu_selector = 2;
    q.mtu = 5;
    assert_int_equal(join(&r, 0, JOIN | MTU, q), MAD_SA_REQ_INVALID);
    q.mtu = 4;
    assert_int_equal(join(&r, 0, JOIN | MTU, q), 0);
    q.rate_selector = 0; // more than 10 Gb/s
    q.rate = 3;
    assert_int_equal(join(&r, 0, JOIN | RATE, q), MAD_SA_REQ_INVALID);
    q.rate = 2;
    assert_int_equal(join(&r, 0, JOIN | RATE, q), 0);
    q = ipoib();
    speak_as(&r, 0);
    sa_put_gid(MAD_DEFAULT_GID_PREFIX, 0x4711, q.port_gid);
    assert_int_equal(request(&r, MAD_METHOD_SET, JOIN, &q), MAD_SA_INVALID_GID);
    sa_rig_done(&r);
}

// A port that cannot take the group's MTU or rate is refused.
static void test_port_limits(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    struct builder *b = builder_from(r.fabric);
    const struct port *p = fabric_port(r.fabric, (port_id){sa_adapter(&r, 3)});
    struct port_attrs a = p->a;
    a.mtu_active = 3;
    builder_port(b, p->node, p->num, &a);
    p = fabric_port(r.fabric, (port_id){sa_adapter(&r, 4)});
    a = p->a;
    a.width_active = 1;
    a.speed_active = 1;
    a.speed_ext_active = 0; // 2.5 Gb/s
    builder_port(b, p->node, p->num, &a);
    sa_rig_fabric(&r, builder_seal(b, 5, NULL));
    assert_int_equal(join(&r, 3, JOIN, ipoib()), MAD_SA_REQ_INVALID);
    assert_int_equal(join(&r, 4, JOIN, ipoib()), MAD_SA_REQ_INVALID);
    assert_int_equal(join(&r, 5, JOIN, ipoib()), 0);
    struct mad_mc_member_record q = group(1); // and makes a group as small as itself
    assert_int_equal(join(&r, 3, CREATE, q), 0);
    assert_int_equal(answered(&r).mtu, 3);
    q = group(2);
    assert_int_equal(join(&r, 4, CREATE, q), 0);
    assert_int_equal(answered(&r).rate, 2);
    sa_rig_done(&r);
}

// --- creating ---

static void test_create(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q = group(1);
    (void)state;
    start(&r);
    assert_int_equal(join(&r, 0, JOIN, q), MAD_SA_INSUFFICIENT_COMPONENTS);
    assert_int_equal(join(&r, 0, CREATE & ~(uint64_t)Q_KEY, q), MAD_SA_INSUFFICIENT_COMPONENTS);
    q.join_state = 4; // only sends, and is no member
    assert_int_equal(join(&r, 0, CREATE, q), MAD_SA_REQ_INVALID);
    q.join_state = 2;
    assert_int_equal(join(&r, 0, CREATE, q), MAD_SA_REQ_INVALID);
    q.join_state = 8;
    q.hop_limit = 3;
    q.tclass = 5;
    assert_int_equal(join(&r, 0, CREATE | HOP, q), 0);
    assert_int_equal(answered(&r).mlid, 0xc001);
    assert_int_equal(answered(&r).hop_limit, 3);
    assert_int_equal(answered(&r).tclass, 5);
    assert_int_equal(answered(&r).join_state, 8);
    assert_int_equal(answered(&r).mtu, 4);
    q.join_state = 1; // and a full member, too
    assert_int_equal(join(&r, 0, JOIN, q), 0);
    assert_int_equal(answered(&r).join_state, 9);
    q = group(2);
    q.mgid[0] = 0xfe;
    assert_int_equal(join(&r, 0, CREATE, q), MAD_SA_REQ_INVALID);
    q = group(2);
    q.mgid[1] = 0x10; // scope 0
    assert_int_equal(join(&r, 0, CREATE, q), MAD_SA_REQ_INVALID);
    q = group(2);
    q.mgid[2] = 0xa0; // ours to give
    assert_int_equal(join(&r, 0, CREATE, q), MAD_SA_REQ_INVALID);
    q = group(2);
    q.p_key = 0x8005;
    assert_int_equal(join(&r, 0, CREATE, q), MAD_SA_REQ_INVALID);
    q = group(2);
    q.mtu_selector = 2;
    q.mtu = 5;
    assert_int_equal(join(&r, 0, CREATE | MTU, q), MAD_SA_REQ_INVALID);
    q.mtu_selector = 0;
    q.mtu = 2;
    q.rate_selector = 1;
    q.rate = 16;
    assert_int_equal(join(&r, 0, CREATE | MTU | RATE, q), 0);
    assert_int_equal(answered(&r).mtu, 3);
    assert_true(sa_rate_less(answered(&r).rate, 16));
    sa_rig_done(&r);
}

static void test_given_mgid(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q = group(1), a;
    (void)state;
    start(&r);
    memset(q.mgid, 0, 16);
    assert_int_equal(join(&r, 0, CREATE, q), 0);
    a = answered(&r);
    static const uint8_t begins[4] = {0xff, 0x12, 0xa0, 0x1b};
    assert_memory_equal(a.mgid, begins, 4);
    assert_int_equal(join(&r, 1, CREATE, q), 0);
    assert_memory_not_equal(a.mgid, answered(&r).mgid, 16);
    assert_int_equal(join(&r, 2, JOIN, a), 0); // others join by its name
    sa_rig_done(&r);
}

static void test_end_of_group(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q = group(1);
    (void)state;
    start(&r);
    assert_int_equal(join(&r, 0, CREATE, q), 0);
    q.join_state = 2;
    assert_int_equal(join(&r, 1, JOIN, q), 0);
    q.join_state = 4;
    assert_int_equal(join(&r, 2, JOIN, q), 0);
    assert_int_equal(stats(&r).members, 3);
    assert_int_equal(leave(&r, 1, q), MAD_SA_REQ_INVALID); // not with that state
    q.join_state = 1;
    assert_int_equal(leave(&r, 5, q), MAD_SA_REQ_INVALID); // nobody
    assert_int_equal(leave(&r, 0, q), 0);                  // the last who keeps it
    assert_int_equal(stats(&r).members, 0);
    assert_int_equal(stats(&r).groups, 1);
    assert_int_equal(leave(&r, 0, q), MAD_SA_REQ_INVALID);
    assert_int_equal(join(&r, 0, CREATE, group(2)), 0);
    assert_int_equal(answered(&r).mlid, 0xc001); // free again
    sa_rig_done(&r);
}

static void test_proxy(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q = ipoib();
    (void)state;
    start(&r);
    sa_gid_of(&r, sa_adapter(&r, 7), q.port_gid);
    speak_as(&r, 3);
    assert_int_equal(request(&r, MAD_METHOD_SET, JOIN, &q), 0); // 3 for 7
    assert_true(answered(&r).proxy_join);
    assert_int_equal(request(&r, MAD_METHOD_DELETE, JOIN, &q), 0);
    assert_int_equal(join(&r, 7, JOIN, ipoib()), 0); // 7 for itself
    assert_false(answered(&r).proxy_join);
    speak_as(&r, 3);
    q.join_state = 2;
    assert_int_equal(request(&r, MAD_METHOD_SET, JOIN, &q), MAD_SA_REQ_INVALID);
    q.join_state = 1;
    assert_int_equal(request(&r, MAD_METHOD_DELETE, JOIN, &q), MAD_SA_REQ_INVALID);
    sa_rig_done(&r);
}

// --- MLIDs ---

static void test_solicited_nodes(void **state)
{
    struct sa_rig r;
    uint16_t mlid[64];
    unsigned different = 0;
    (void)state;
    start(&r);
    for (unsigned i = 0; i < 64; i++) {
        struct mad_mc_member_record q = group(0);
        static const uint8_t ns[16] = {0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff};
        memcpy(q.mgid, ns, 16);
        q.mgid[13] = (uint8_t)(i * 7);
        q.mgid[15] = (uint8_t)i;
        assert_int_equal(join(&r, i, CREATE, q), 0);
        mlid[i] = answered(&r).mlid;
        bool seen = false;
        for (unsigned k = 0; k < i; k++)
            seen |= mlid[k] == mlid[i];
        different += !seen;
    }
    assert_int_equal(stats(&r).groups, 65);
    assert_int_equal(different, 16);
    assert_int_equal(join(&r, 0, CREATE, group(1)), 0);
    for (unsigned k = 0; k < 64; k++) // others have their own
        assert_int_not_equal(answered(&r).mlid, mlid[k]);
    // All leave: the MLIDs are free.
    sa_rig_done(&r);
}

static void test_mlids_run_out(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    struct builder *b = builder_from(r.fabric);
    const struct node *n = fabric_switch(r.fabric, 4);
    struct node_attrs a = {.guid = n->guid,
                           .sys_guid = n->sys_guid,
                           .type = NODE_SWITCH,
                           .num_ports = n->num_ports,
                           .lft_cap = n->lft_cap,
                           .mft_cap = 40};
    builder_node_attrs(b, (node_id){(uint32_t)(n - r.fabric->node)}, &a);
    sa_rig_fabric(&r, builder_seal(b, 5, NULL));
    assert_int_equal(stats(&r).mlid_max, 0xc000 + 39);
    for (uint16_t i = 1; i < 40; i++)
        assert_int_equal(join(&r, i % 8, CREATE, group(i)), 0);
    assert_int_equal(join(&r, 0, CREATE, group(40)), MAD_SA_NO_RESOURCES);
    assert_int_equal(leave(&r, 3, group(3)), 0);
    assert_int_equal(join(&r, 0, CREATE, group(40)), 0);
    sa_rig_done(&r);
}

// --- who is shown what ---

static void test_queries(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q;
    uint8_t wire[56];
    (void)state;
    start(&r);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(join(&r, i, JOIN, ipoib()), 0);
    assert_int_equal(join(&r, 5, CREATE, group(1)), 0);
    assert_int_equal(sa_ask(&r, MAD_METHOD_GET_TABLE, MAD_SA_ATTR_MC_MEMBER_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), 2); // groups
    static const uint8_t zero[16];
    assert_memory_equal(sa_record(&r, 0) + 16, zero, 16);
    r.sm_key = 1;
    assert_int_equal(sa_ask(&r, MAD_METHOD_GET_TABLE, MAD_SA_ATTR_MC_MEMBER_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), 6); // members
    r.sm_key = 0;
    q = ipoib();
    assert_int_equal(request(&r, MAD_METHOD_GET, MGID, &q), 0);
    assert_int_equal(answered(&r).mlid, 0xc000);
    sa_gid_of(&r, sa_adapter(&r, 3), q.port_gid);
    assert_int_equal(request(&r, MAD_METHOD_GET, MGID | PORT_GID, &q), 0);
    assert_int_equal(answered(&r).join_state, 1);
    sa_gid_of(&r, sa_adapter(&r, 9), q.port_gid);
    assert_int_equal(request(&r, MAD_METHOD_GET, MGID | PORT_GID, &q), MAD_SA_NO_RECORDS);
    q = group(9);
    assert_int_equal(request(&r, MAD_METHOD_GET, MGID, &q), MAD_SA_NO_RECORDS);
    q.mlid = 0xc001;
    mad_mc_member_record_encode(&q, wire);
    assert_int_equal(
        sa_ask(&r, MAD_METHOD_GET_TABLE, MAD_SA_ATTR_MC_MEMBER_RECORD, 1 << 3, wire, sizeof(wire)), 0);
    assert_int_equal(sa_records(&r, NULL), 1);
    // The way to a group.
    struct mad_path_record p = {0};
    uint8_t path[64];
    memcpy(p.dgid, broadcast, 16);
    sa_gid_of(&r, sa_adapter(&r, 0), p.sgid);
    mad_path_record_encode(&p, path);
    assert_int_equal(sa_ask(&r, MAD_METHOD_GET, MAD_SA_ATTR_PATH_RECORD, 3 << 2, path, sizeof(path)), 0);
    assert_int_equal(r.mad[56 + 40] << 8 | r.mad[56 + 41], 0xc000);
    // And what the switches hold.
    assert_int_equal(
        sa_ask(&r, MAD_METHOD_GET_TABLE, MAD_SA_ATTR_MULTICAST_FORWARDING_TABLE_RECORD, 0, NULL, 0), 0);
    assert_true(sa_records(&r, NULL) > 0);
    sa_rig_done(&r);
}

// --- answers that wait ---

static void test_join_waits_for_switches(void **state)
{
    struct sa_rig r;
    struct mad_mc_member_record q = ipoib();
    uint8_t wire[56];
    (void)state;
    start(&r);
    assert_int_equal(join(&r, 0, JOIN, ipoib()), 0);
    assert_true(r.smps > 0);
    r.mute = true;
    unsigned answers = r.answers;
    speak_as(&r, 9);
    sa_gid_of(&r, sa_adapter(&r, 9), q.port_gid);
    mad_mc_member_record_encode(&q, wire);
    sa_send(&r, MAD_METHOD_SET, MAD_SA_ATTR_MC_MEMBER_RECORD, JOIN, wire, sizeof(wire));
    sa_run(&r, 500 * MONO_MS);
    assert_int_equal(r.answers, answers);
    r.tid = r.last_tid; // sent again
    sa_send(&r, MAD_METHOD_SET, MAD_SA_ATTR_MC_MEMBER_RECORD, JOIN, wire, sizeof(wire));
    assert_int_equal(stats(&r).merged, 1);
    sa_run(&r, MONO_S);
    assert_int_equal(r.answers, answers + 1); // a second is enough
    assert_int_equal(r.mad[4] << 8 | r.mad[5], 0);
    // The switches come back: what they missed is written.
    r.mute = false;
    unsigned smps = r.smps;
    sa_run(&r, 10 * MONO_S);
    assert_true(r.smps > smps);
    smps = r.smps;
    sa_run(&r, 60 * MONO_S);
    assert_int_equal(r.smps, smps); // and then there is peace
    r.tid = 0;
    assert_int_equal(join(&r, 9, JOIN, ipoib()), 0); // as it is already: nothing is written
    assert_int_equal(r.smps, smps);
    sa_rig_done(&r);
}

// While another manager is master nothing is written; afterwards what it left is read and set right.
static void test_stepped_down(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    assert_int_equal(join(&r, 0, JOIN, ipoib()), 0);
    assert_int_equal(join(&r, 9, JOIN, ipoib()), 0);
    r.sm->state = SM_STANDBY;
    unsigned smps = r.smps;
    sa_run(&r, 5 * MONO_S);
    assert_int_equal(r.smps, smps);
    r.sm->state = SM_MASTER;
    assert_int_equal(join(&r, 10, JOIN, ipoib()), -1);
    assert_int_equal(r.smps, smps);
    uint64_t sets = stats(&r).mft_blocks_set;
    sm_mcast_fabric_changed(r.sm);
    sa_run(&r, MONO_S);
    assert_true(stats(&r).mft_blocks_set > sets); // the played switches say that they hold nothing
    sa_rig_done(&r);
}

// --- ports that go ---

static void test_gone(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    assert_int_equal(join(&r, 0, JOIN, ipoib()), 0);
    assert_int_equal(join(&r, 9, JOIN, ipoib()), 0);
    assert_int_equal(join(&r, 9, CREATE, group(1)), 0);
    const struct fabric *whole = fabric_ref(r.fabric);
    uint32_t node = whole->port[sa_adapter(&r, 9)].node.i;
    for (int back = 1; back >= 0; back--) {
        struct builder *b = builder_from(whole);
        builder_remove(b, (node_id){node});
        sa_rig_fabric(&r, builder_seal(b, 7, NULL));
        sa_run(&r, 500 * MONO_S);
        assert_int_equal(stats(&r).members, 3);
        if (back)
            sa_rig_fabric(&r, fabric_ref((struct fabric *)whole));
    }
    sa_run(&r, 110 * MONO_S);
    assert_int_equal(stats(&r).members, 1);
    assert_int_equal(stats(&r).groups, 1); // its own went with it
    fabric_unref(whole);
    sa_rig_done(&r);
}

// --- subscriptions ---

static int inform(struct sa_rig *r, uint16_t trap, bool subscribe)
{
    struct mad_inform_info q = {.lid_range_begin = 0xffff,
                                .is_generic = 1,
                                .subscribe = subscribe,
                                .type = 0xffff,
                                .trap_number = trap,
                                .qpn = 1,
                                .producer_type = 4};
    uint8_t wire[36];
    mad_inform_info_encode(&q, wire);
    return sa_ask(r, MAD_METHOD_SET, MAD_ATTR_INFORM_INFO, 0, wire, sizeof(wire));
}

static void test_inform(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    assert_int_equal(inform(&r, 64, true), 0);
    assert_int_equal(r.mad[56 + 23], 1);
    assert_int_equal(inform(&r, 65, true), 0);
    assert_int_equal(inform(&r, 65, true), 0); // once
    assert_int_equal(stats(&r).subscriptions, 2);
    assert_int_equal(sa_ask(&r, MAD_METHOD_GET_TABLE, MAD_SA_ATTR_INFORM_INFO_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), 2);
    assert_int_equal(inform(&r, 64, false), 0);
    assert_int_equal(inform(&r, 64, false), MAD_SA_REQ_INVALID);
    for (uint16_t i = 0; i < 63; i++)
        assert_int_equal(inform(&r, (uint16_t)(100 + i), true), 0);
    assert_int_equal(inform(&r, 200, true), MAD_SA_NO_RESOURCES);
    speak_as(&r, 4);
    assert_int_equal(inform(&r, 200, true), 0);
    sa_rig_done(&r);
}

// --- who is asked to register again ---

static void set_sm_lid(struct sm_dev *d, unsigned num, uint16_t lid)
{
    d->port[num].info[18] = (uint8_t)(lid >> 8);
    d->port[num].info[19] = (uint8_t)lid;
}

static void test_reregister(void **state)
{
    struct sa_rig r;
    unsigned asked = 0;
    (void)state;
    start(&r);
    const struct port *p = fabric_port(r.fabric, (port_id){sa_adapter(&r, 0)});
    struct sm_dev *d = sm_dev_find(r.sm, fabric_node(r.fabric, p->node)->guid);
    r.sm->sa->loaded = true; // groups were kept
    assert_false(sm_sa_wants_reregister(r.sm, d, p->num));
    set_sm_lid(d, p->num, 99); // somebody else's port
    assert_true(sm_sa_wants_reregister(r.sm, d, p->num));
    d->port[p->num].info[20] = 0; // cannot (CapabilityMask bit 25)
    assert_false(sm_sa_wants_reregister(r.sm, d, p->num));
    // Groups were lost: everybody, once, and not all at once.
    r.sm->sa->loaded = false;
    for (int second = 0; second < 3; second++) {
        sa_run(&r, MONO_S);
        for (uint32_t i = 0; i < r.sm->num_dev; i++)
            for (unsigned num = 0; num <= r.sm->dev[i]->ni.num_ports; num++)
                if (sm_sa_wants_reregister(r.sm, r.sm->dev[i], num)) {
                    sm_sa_reregistered(r.sm, r.sm->dev[i], num);
                    asked++;
                }
        assert_true(asked <= 500u * (unsigned)(second + 1));
    }
    assert_int_equal(asked, r.fabric->num_end_nodes - 1); // all but the one that cannot
    assert_true(sa_rig_dirty > 0);                        // they are looked at for that
    sa_rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_join_rules),
        cmocka_unit_test(test_port_limits),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_given_mgid),
        cmocka_unit_test(test_end_of_group),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_solicited_nodes),
        cmocka_unit_test(test_mlids_run_out),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_join_waits_for_switches),
        cmocka_unit_test(test_stepped_down),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_inform),
        cmocka_unit_test(test_reregister),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
