// SPDX-License-Identifier: Apache-2.0
// Subnet administration: who is answered, headers, ClassPortInfo, paths, records of the fabric.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "lib/xalloc.h"
#include "tests/unit/routing/rig.h"
#include "tests/unit/sm/sa_rig.h"

#define GET MAD_METHOD_GET
#define TABLE MAD_METHOD_GET_TABLE

static void start(struct sa_rig *r)
{
    sa_rig_init(r, rig_named("rail-64"));
}

// --- who is answered ---

static void test_readiness(void **state)
{
    struct sa_rig r;
    struct sm_sa_stats s;
    (void)state;
    start(&r);
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), 0);
    r.sm->state = SM_STANDBY;
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), -1);
    r.sm->state = SM_MASTER; // again, but no sweep has ended since
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), -1);
    sm_mcast_fabric_changed(r.sm);
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), 0);
    sm_sa_stats(r.sm, &s);
    assert_int_equal(s.dropped_not_ready, 2);
    assert_int_equal(s.answered, 2);
    sa_rig_done(&r);
}

static void test_sm_key(void **state)
{
    struct sa_rig r;
    uint8_t q[72] = {0};
    (void)state;
    start(&r);
    uint16_t lid = sa_lid_of(&r, sa_adapter(&r, 3));
    q[0] = (uint8_t)(lid >> 8);
    q[1] = (uint8_t)lid;
    r.sm_key = 99;
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_PORT_INFO_RECORD, 1, q, sizeof(q)), -1);
    static const uint8_t zero[8] = {0}, key[8] = {0, 0, 0, 0, 0, 0, 0x12, 0x34};
    r.sm_key = 0;
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_PORT_INFO_RECORD, 1, q, sizeof(q)), 0);
    assert_memory_equal(r.mad + 56 + 4, zero, 8); // the M_Key is nobody's business
    r.sm_key = 1;
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_PORT_INFO_RECORD, 1, q, sizeof(q)), 0);
    assert_memory_equal(r.mad + 56 + 4, key, 8);
    assert_memory_equal(r.mad + 36, zero, 8); // nor the SM_Key
    sa_rig_done(&r);
}

static void test_headers(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0x123, NULL, 0), 0);
    static const uint8_t head[8] = {1, 3, 2, 0x81, 0, 0, 0, 0};
    assert_memory_equal(r.mad, head, 8);
    static const uint8_t tid[4] = {0xab, 0xcd, 0xef, 0x01};
    assert_memory_equal(r.mad + 8, tid, 4);
    assert_int_equal(r.mad[24], 1);                         // RMPPVersion
    assert_int_equal(r.mad[25] | r.mad[26] | r.mad[27], 0); // and nothing of it
    assert_int_equal(r.mad[54] << 8 | r.mad[55], 0x123);    // ComponentMask as asked
    // What is not there.
    assert_int_equal(sa_ask(&r, GET, 0x7777, 0, NULL, 0), 0x000c);
    assert_int_equal(r.mad[3], 0x81);
    assert_int_equal(sa_ask(&r, TABLE, 0x7777, 0, NULL, 0), 0x000c);
    assert_int_equal(r.mad[3], 0x92);
    assert_int_equal(sa_ask(&r, MAD_METHOD_SET, MAD_SA_ATTR_PATH_RECORD, 0, NULL, 0), 0x000c);
    assert_int_equal(sa_ask(&r, MAD_METHOD_DELETE, MAD_SA_ATTR_NODE_RECORD, 0, NULL, 0), 0x000c);
    assert_int_equal(r.mad[3], 0x95);
    assert_int_equal(sa_ask(&r, MAD_METHOD_GET_MULTI, MAD_SA_ATTR_MULTI_PATH_RECORD, 0, NULL, 0), 0x000c);
    assert_int_equal(sa_ask(&r, 0x55, MAD_SA_ATTR_NODE_RECORD, 0, NULL, 0), -1);
    assert_int_equal(sa_ask(&r, MAD_METHOD_TRAP, MAD_ATTR_NOTICE, 0, NULL, 0), -1);
    sa_rig_done(&r);
}

// Somebody who is not in the fabric yet waits for the sweep that brings him in.
static void test_stranger(void **state)
{
    struct sa_rig r;
    struct sm_sa_stats s;
    (void)state;
    start(&r);
    uint16_t lid = r.lid;
    r.lid = 4711;
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), -1);
    sm_sa_stats(r.sm, &s);
    assert_int_equal(s.dropped_unknown, 1);
    r.sm->sweeping = true;
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), -1);
    sm_sa_stats(r.sm, &s);
    assert_int_equal(s.waiting, 1);
    sa_run(&r, 3 * MONO_S);
    sm_sa_stats(r.sm, &s);
    assert_int_equal(s.waiting, 0);
    assert_int_equal(s.dropped_stale, 1);
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), -1);
    unsigned before = r.answers;
    struct builder *b = builder_from(r.fabric); // now he has a LID
    const struct port *p = fabric_port(r.fabric, (port_id){sa_adapter(&r, 9)});
    struct port_attrs a = p->a;
    a.lid = 4711;
    builder_port(b, p->node, p->num, &a);
    r.sm->sweeping = false;
    sa_rig_fabric(&r, builder_seal(b, 9, NULL));
    assert_int_equal(r.answers, before + 1);
    r.lid = lid;
    sa_rig_done(&r);
}

static void test_class_port_info(void **state)
{
    struct sa_rig r;
    (void)state;
    start(&r);
    assert_int_equal(sa_ask(&r, GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), 0);
    const uint8_t *d = r.mad + 56;
    assert_int_equal(d[0], 1);
    assert_int_equal(d[1], 2);
    assert_int_equal(d[2] << 8 | d[3], 1 << 9 | 1 << 13);
    uint32_t cap2 = ((uint32_t)d[4] << 24 | (uint32_t)d[5] << 16 | (uint32_t)d[6] << 8 | d[7]) >> 5;
    assert_true(cap2 & 1u << 12); // SendOnlyFullMember: IPoIB asks
    assert_true((d[7] & 0x1f) >= 8);
    assert_int_equal((uint32_t)d[33] << 16 | d[34] << 8 | d[35], 1); // redirect QP
    static const uint8_t q_key[4] = {0x80, 0x01, 0, 0};
    assert_memory_equal(d + 36, q_key, 4);
    sa_rig_done(&r);
}

// --- paths ---

#define DGID (1ull << 2)
#define SGID (1ull << 3)
#define DLID (1ull << 4)
#define SLID (1ull << 5)
#define PKEY (1ull << 13)
#define SL (1ull << 15)
#define MTU (3ull << 16)
#define RATE (3ull << 18)
#define LIFE (3ull << 20)

static struct mad_path_record between(const struct sa_rig *r, uint32_t a, uint32_t z)
{
    struct mad_path_record q = {.dlid = sa_lid_of(r, z), .slid = sa_lid_of(r, a)};
    sa_gid_of(r, a, q.sgid);
    sa_gid_of(r, z, q.dgid);
    return q;
}

static int path(struct sa_rig *r, uint8_t method, uint64_t mask, const struct mad_path_record *q,
                struct mad_path_record *ret)
{
    uint8_t wire[64];
    mad_path_record_encode(q, wire);
    int status = sa_ask(r, method, MAD_SA_ATTR_PATH_RECORD, mask, wire, sizeof(wire));
    if (status == 0)
        mad_path_record_decode(r->mad + 56, ret);
    return status;
}

static void test_path_bytes(void **state)
{
    struct sa_rig r;
    struct mad_path_record p;
    (void)state;
    start(&r);
    uint32_t a = sa_adapter(&r, 0), z = sa_adapter(&r, 40);
    struct mad_path_record q = between(&r, a, z);
    q.reversible = 1;
    q.numb_path = 1;
    q.p_key = 0xffff;
    q.tclass = 7;
    // As IPoIB asks: SGID, DGID, P_Key, NumbPath, TClass
    assert_int_equal(path(&r, GET, SGID | DGID | PKEY | 1 << 12 | 1 << 10, &q, &p), 0);
    const uint8_t *d = r.mad + 56;
    assert_memory_equal(d + 8, q.dgid, 16);
    assert_memory_equal(d + 24, q.sgid, 16);
    assert_int_equal(d[40] << 8 | d[41], sa_lid_of(&r, z));
    assert_int_equal(d[42] << 8 | d[43], sa_lid_of(&r, a));
    assert_int_equal(d[48], 7);
    assert_int_equal(d[49], 0x80); // reversible
    assert_int_equal(d[50] << 8 | d[51], 0xffff);
    assert_int_equal(d[53], 0);           // SL
    assert_int_equal(d[54], 2 << 6 | 4);  // exactly 2048
    assert_int_equal(d[55], 2 << 6 | 17); // exactly 200 Gb/s: 4xHDR
    assert_int_equal(d[56], 2 << 6 | 18);
    sa_rig_done(&r);
}

static void test_path_names(void **state)
{
    struct sa_rig r;
    struct mad_path_record p;
    (void)state;
    start(&r);
    uint32_t a = sa_adapter(&r, 0), z = sa_adapter(&r, 40);
    struct mad_path_record q = between(&r, a, z), x;
    assert_int_equal(path(&r, GET, SLID | DLID, &q, &p), 0);
    assert_memory_equal(p.dgid, q.dgid, 16);
    assert_int_equal(path(&r, GET, SGID | DGID | SLID | DLID, &q, &p), 0);
    x = q;
    x.dlid++; // another port's
    assert_int_equal(path(&r, GET, SGID | DGID | DLID, &x, &p), MAD_SA_NO_RECORDS);
    x = q;
    x.dlid = 4711;
    assert_int_equal(path(&r, GET, SLID | DLID, &x, &p), MAD_SA_NO_RECORDS);
    x = q;
    x.dgid[15] ^= 0x55;
    assert_int_equal(path(&r, GET, SGID | DGID, &x, &p), MAD_SA_INVALID_GID);
    x = q;
    x.dgid[0] = 0x20; // another subnet
    assert_int_equal(path(&r, GET, SGID | DGID, &x, &p), MAD_SA_INVALID_GID);
    assert_int_equal(path(&r, GET, DGID, &q, &p), MAD_SA_INSUFFICIENT_COMPONENTS);
    assert_int_equal(path(&r, GET, SGID, &q, &p), MAD_SA_INSUFFICIENT_COMPONENTS);
    assert_int_equal(path(&r, GET, 0, &q, &p), MAD_SA_INSUFFICIENT_COMPONENTS);
    x = q;
    x.p_key = 0x7fff;
    assert_int_equal(path(&r, GET, SGID | DGID | PKEY, &x, &p), 0);
    assert_int_equal(p.p_key, 0x7fff);
    x.p_key = 0x8001;
    assert_int_equal(path(&r, GET, SGID | DGID | PKEY, &x, &p), MAD_SA_NO_RECORDS);
    x.sl = 3;
    assert_int_equal(path(&r, GET, SGID | DGID | SL, &x, &p), MAD_SA_NO_RECORDS);
    x = between(&r, a, a);
    assert_int_equal(path(&r, GET, SGID | DGID, &x, &p), 0);
    assert_int_equal(p.packet_life_time, 0);
    assert_int_equal(p.dlid, p.slid);
    // A switch's own LID is an end, too.
    uint32_t sw = fabric_switch(r.fabric, 2)->first_port;
    x = between(&r, a, sw);
    assert_int_equal(path(&r, GET, SLID | DLID, &x, &p), 0);
    sa_rig_done(&r);
}

// Ports with four LIDs each: four paths between two of them that share no LID.
static void test_path_lids(void **state)
{
    struct sa_rig r;
    struct mad_path_record p;
    size_t bytes;
    (void)state;
    sa_rig_init(&r, rig_lids(rig_named("rail-64"), 2));
    uint32_t a = sa_adapter(&r, 0), z = sa_adapter(&r, 40), sw = fabric_switch(r.fabric, 1)->first_port;
    struct mad_path_record q = between(&r, a, z);
    assert_int_equal(path(&r, TABLE, SGID | DGID, &q, &p), 0);
    assert_int_equal(sa_records(&r, &bytes), 4);
    for (unsigned i = 0; i < 4; i++) {
        mad_path_record_decode(sa_record(&r, i), &p);
        assert_int_equal(p.dlid, sa_lid_of(&r, z) + i);
        assert_int_equal(p.slid, sa_lid_of(&r, a) + i);
        assert_int_equal(p.reversible, 1);
    }
    q.numb_path = 3;
    assert_int_equal(path(&r, TABLE, SGID | DGID | 1 << 12, &q, &p), 0);
    assert_int_equal(sa_records(&r, &bytes), 3);
    q.dlid += 2; // any LID of it names it
    assert_int_equal(path(&r, TABLE, SGID | DLID, &q, &p), 0);
    assert_int_equal(sa_records(&r, &bytes), 4);
    for (unsigned i = 0; i < 4; i++) {
        mad_path_record_decode(sa_record(&r, i), &p);
        assert_int_equal(p.dlid, q.dlid);
        assert_int_equal(p.slid, sa_lid_of(&r, a) + i);
    }
    assert_int_equal(path(&r, GET, SLID | DLID, &q, &p), 0);
    assert_int_equal(p.dlid, q.dlid);
    assert_int_equal(p.slid, q.slid);
    q = between(&r, a, sw); // a switch has one LID
    assert_int_equal(path(&r, TABLE, SGID | DGID, &q, &p), 0);
    assert_int_equal(sa_records(&r, &bytes), 4);
    mad_path_record_decode(sa_record(&r, 3), &p);
    assert_int_equal(p.dlid, sa_lid_of(&r, sw));
    assert_int_equal(p.slid, sa_lid_of(&r, a) + 3);
    sa_rig_done(&r);
}

static void test_path_selectors(void **state)
{
    struct sa_rig r;
    struct mad_path_record p;
    (void)state;
    start(&r);
    struct mad_path_record q = between(&r, sa_adapter(&r, 0), sa_adapter(&r, 40));
    static const struct {
        uint64_t mask;
        uint8_t selector, value;
        int status;
        uint8_t mtu, rate;
    } c[] = {
        {MTU, 0, 3, 0, 4, 17},                  // more than 1024
        {MTU, 0, 4, MAD_SA_NO_RECORDS, 0, 0},   // more than 2048
        {MTU, 1, 4, 0, 3, 17},                  // less than 2048: 1024
        {MTU, 1, 1, MAD_SA_NO_RECORDS, 0, 0},   // less than 256
        {MTU, 2, 3, 0, 3, 17},                  // 1024 exactly
        {MTU, 2, 5, MAD_SA_NO_RECORDS, 0, 0},   // 4096
        {MTU, 3, 0, 0, 4, 17},                  // the largest
        {1ull << 17, 0, 5, 0, 4, 17},           // a value without a selector
        {1ull << 16, 0, 5, 0, 4, 17},           // a selector without a value
        {RATE, 0, 16, 0, 4, 17},                // more than 100 Gb/s
        {RATE, 0, 17, MAD_SA_NO_RECORDS, 0, 0}, // more than 200
        {RATE, 1, 17, 0, 4, 14},                // less than 200: 168
        {RATE, 2, 3, 0, 4, 3},                  // 10 Gb/s exactly
        {RATE, 2, 18, MAD_SA_NO_RECORDS, 0, 0}, // 300
        {RATE, 3, 0, 0, 4, 17},                 //
        {RATE, 2, 63, MAD_SA_NO_RECORDS, 0, 0}, // no rate
        {LIFE, 0, 17, 0, 4, 17},                //
        {LIFE, 0, 18, MAD_SA_NO_RECORDS, 0, 0}, //
        {LIFE, 1, 19, 0, 4, 17},                //
        {LIFE, 2, 18, 0, 4, 17},                //
    };
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        q.mtu_selector = q.rate_selector = q.packet_life_time_selector = c[i].selector;
        q.mtu = q.rate = q.packet_life_time = c[i].value;
        int status = path(&r, GET, SGID | DGID | c[i].mask, &q, &p);
        if (status != c[i].status || (status == 0 && (p.mtu != c[i].mtu || p.rate != c[i].rate)))
            fail_msg("case %zu: status 0x%x, MTU %u, rate %u", i, (unsigned)status, p.mtu, p.rate);
    }
    sa_rig_done(&r);
}

// A slow cable, and one with a small MTU, at one spine each: who crosses it, there or back, and nobody else.
static void test_path_figures(void **state)
{
    struct sa_rig r;
    struct err e;
    unsigned slow = 0, fast = 0;
    (void)state;
    const struct fabric *f = rig_named("rail-256");
    struct builder *b = builder_from(f);
    uint32_t bad[2] = {ID_NONE, ID_NONE}, found = 0;
    for (uint32_t i = 0; i < f->num_ports && found < 2; i++) {
        const struct port *p = &f->port[i];
        const struct node *n = fabric_node(f, p->node);
        if (n->role != ROLE_SPINE || !port_valid(p->peer) || p->num != 5 + found)
            continue;
        struct port_attrs a = p->a;
        if (found == 0)
            a.width_active = 16; // 2x
        else
            a.mtu_active = 2; // 512
        builder_port(b, p->node, p->num, &a);
        bad[found++] = i;
    }
    fabric_unref(f);
    sa_rig_init(&r, builder_seal(b, 3, NULL));
    uint32_t n = sa_num_adapters(&r);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t a = sa_adapter(&r, i * 7 % n), z = sa_adapter(&r, (i * 31 + 5) % n);
        struct mad_path_record q = between(&r, a, z), p;
        bool crosses[2] = {false, false};
        for (int way = 0; way < 2; way++) {
            struct route_hop hop[ROUTE_MAX_HOPS];
            uint32_t hops;
            assert_true(route_trace(r.fabric, r.sm->tables, (port_id){way ? z : a},
                                    sa_lid_of(&r, way ? a : z), hop, &hops, &e) >= 0);
            for (uint32_t k = 0; k < hops; k++)
                for (int w = 0; w < 2; w++) {
                    const struct port *p1 = &r.fabric->port[bad[w]];
                    crosses[w] |=
                        hop[k].node == p1->node.i && (hop[k].in == p1->num || hop[k].out == p1->num);
                }
        }
        assert_int_equal(path(&r, GET, SLID | DLID, &q, &p), 0);
        assert_int_equal(p.rate, crosses[0] ? 16 : 17); // 100 or 200 Gb/s
        assert_int_equal(p.mtu, crosses[1] ? 2 : 4);
        slow += crosses[0];
        fast += !crosses[0];
    }
    assert_true(slow > 0 && fast > 0);
    sa_rig_done(&r);
}

static void test_no_path(void **state)
{
    struct sa_rig r;
    struct mad_path_record p;
    (void)state;
    start(&r);
    uint32_t a = sa_adapter(&r, 0), z = sa_adapter(&r, 40);
    struct mad_path_record q = between(&r, a, z);
    struct fabric_tables *t = tables_copy_for(r.sm->tables, r.fabric, r.fabric, r.fabric->top_lid);
    for (uint32_t sw = 0; sw < r.fabric->num_switches; sw++)
        tables_row(t, sw)[sa_lid_of(&r, a)] = LFT_DROP; // the way back is missing
    tables_unref(r.sm->tables);
    r.sm->tables = t;
    sm_mcast_fabric_changed(r.sm);
    assert_int_equal(path(&r, GET, SLID | DLID, &q, &p), MAD_SA_NO_RECORDS);
    for (uint32_t sw = 0; sw < r.fabric->num_switches; sw++)
        memset(tables_row(t, sw), (int)(sw % 40 + 1), t->lids); // round in circles, or to nowhere
    (void)path(&r, GET, SLID | DLID, &q, &p);
    sa_rig_done(&r);
}

static void test_path_tables(void **state)
{
    struct sa_rig r;
    struct mad_path_record p;
    size_t bytes;
    (void)state;
    start(&r);
    struct mad_path_record q = between(&r, sa_adapter(&r, 0), sa_adapter(&r, 40));
    uint32_t ends = r.sm->sa->num_ends;
    assert_int_equal(path(&r, TABLE, SGID | DGID, &q, &p), 0);
    assert_true(r.rmpp);
    assert_int_equal(sa_records(&r, &bytes), 1);
    assert_int_equal(bytes, 64);
    assert_int_equal(path(&r, TABLE, DGID, &q, &p), 0); // from everywhere
    assert_int_equal(sa_records(&r, &bytes), ends);
    assert_int_equal(path(&r, TABLE, 0, &q, &p), 0); // all there is
    assert_int_equal(sa_records(&r, &bytes), ends * ends);
    mad_path_record_decode(sa_record(&r, ends * ends - 1), &p);
    assert_int_equal(p.dlid, p.slid);
    q.sl = 1;
    assert_int_equal(path(&r, TABLE, DGID | SL, &q, &p), 0); // none is no error in a table
    assert_int_equal(r.len, 56);
    // Without RMPP: whole records, as many as fit.
    r.no_rmpp = true;
    assert_int_equal(path(&r, TABLE, DGID, &q, &p), 0);
    assert_int_equal(r.mad[26], 7);
    assert_int_equal(r.mad[35], 20 + 192);
    sa_rig_done(&r);
}

// --- records of the fabric ---

static void test_nodes(void **state)
{
    struct sa_rig r;
    struct mad_node_record q = {0}, rec;
    uint8_t wire[112];
    (void)state;
    start(&r);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_NODE_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), r.sm->sa->num_ends);
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_NODE_RECORD, 0, NULL, 0), MAD_SA_TOO_MANY_RECORDS);
    uint32_t a = sa_adapter(&r, 5);
    q.lid = sa_lid_of(&r, a);
    mad_node_record_encode(&q, wire);
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_NODE_RECORD, 1, wire, sizeof(wire)), 0);
    mad_node_record_decode(r.mad + 56, &rec);
    assert_int_equal(rec.lid, q.lid);
    assert_int_equal(rec.port_guid, r.fabric->port[a].guid);
    assert_string_equal(rec.node_string,
                        fabric_desc(r.fabric, fabric_node(r.fabric, r.fabric->port[a].node)));
    q.lid = 4711;
    mad_node_record_encode(&q, wire);
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_NODE_RECORD, 1, wire, sizeof(wire)), MAD_SA_NO_RECORDS);
    q.node_type = MAD_NODE_SWITCH;
    mad_node_record_encode(&q, wire);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_NODE_RECORD, 1 << 4, wire, sizeof(wire)), 0);
    assert_int_equal(sa_records(&r, NULL), r.fabric->num_switches);
    sa_rig_done(&r);
}

static void test_port_infos(void **state)
{
    struct sa_rig r;
    struct mad_port_info_record q = {0};
    uint8_t wire[72];
    size_t bytes;
    (void)state;
    start(&r);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_PORT_INFO_RECORD, 0, NULL, 0), 0);
    uint32_t all = sa_records(&r, &bytes), expect = 0;
    assert_int_equal(bytes, 72);
    for (uint32_t i = 0; i < r.fabric->num_ports; i++)
        expect += sa_port_lid(r.fabric, &r.fabric->port[i]) != 0;
    assert_int_equal(all, expect);
    // A switch's port by LID and number.
    const struct node *sw = fabric_switch(r.fabric, 1);
    q.endport_lid = r.fabric->port[sw->first_port].a.lid;
    q.port_num = 7;
    mad_port_info_record_encode(&q, wire);
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_PORT_INFO_RECORD, 3, wire, sizeof(wire)), 0);
    assert_int_equal(r.mad[56] << 8 | r.mad[57], q.endport_lid);
    assert_int_equal(r.mad[58], 7);
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_PORT_INFO_RECORD, 1, wire, sizeof(wire)),
                     MAD_SA_TOO_MANY_RECORDS);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_PORT_INFO_RECORD, 1, wire, sizeof(wire)), 0);
    assert_int_equal(sa_records(&r, NULL), sw->num_ports + 1);
    // CapabilityMask: as it is, or, with bit 31, all bits asked for.
    q.capability_mask = MAD_CAP_IS_CLIENT_REREGISTRATION_SUPPORTED;
    mad_port_info_record_encode(&q, wire);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_PORT_INFO_RECORD, 1 << 7, wire, sizeof(wire)), 0);
    assert_true(r.len < 56 + (size_t)all * 72);
    r.attr_mod = 0x80000000u;
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_PORT_INFO_RECORD, 1 << 7, wire, sizeof(wire)), 0);
    assert_int_equal(sa_records(&r, NULL), all);
    q.capability_mask = MAD_CAP_IS_SM;
    mad_port_info_record_encode(&q, wire);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_PORT_INFO_RECORD, 1 << 7, wire, sizeof(wire)), 0);
    assert_int_equal(r.len, 56);
    sa_rig_done(&r);
}

static void test_other_records(void **state)
{
    struct sa_rig r;
    uint8_t q[72] = {0};
    (void)state;
    start(&r);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_LINK_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), 2 * r.fabric->num_links);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_SWITCH_INFO_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), r.fabric->num_switches);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_LINEAR_FORWARDING_TABLE_RECORD, 0, NULL, 0), 0);
    assert_int_equal(sa_records(&r, NULL), r.fabric->num_switches * r.sm->tables->lids / 64);
    uint16_t lid = r.fabric->port[fabric_switch(r.fabric, 3)->first_port].a.lid;
    q[0] = (uint8_t)(lid >> 8);
    q[1] = (uint8_t)lid;
    q[3] = 1; // block
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_LINEAR_FORWARDING_TABLE_RECORD, 3, q, sizeof(q)), 0);
    assert_memory_equal(r.mad + 56 + 8, tables_row(r.sm->tables, 3) + 64, 64);
    assert_int_equal(sa_ask(&r, TABLE, MAD_SA_ATTR_MULTICAST_FORWARDING_TABLE_RECORD, 0, NULL, 0), 0);
    assert_int_equal(r.len, 56); // nobody has joined
    assert_int_equal(sa_ask(&r, GET, MAD_SA_ATTR_SM_INFO_RECORD, 0, NULL, 0), 0);
    assert_int_equal(r.mad[56] << 8 | r.mad[57], 1);
    sa_rig_done(&r);
}

// --- anything at all ---

// Whatever comes is answered once or dropped, and counted so.
static void test_noise(void **state)
{
    struct sa_rig r;
    struct rng g;
    struct sm_sa_stats s;
    static const uint16_t attr[] = {1,    2,    3,    0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x18,  0x20,
                                    0x30, 0x31, 0x33, 0x35, 0x36, 0x38, 0x39, 0x3a, 0xf3, 0x1234};
    static const uint8_t method[] = {1, 2, 3, 5, 6, 0x12, 0x12, 0x13, 0x14, 0x15};
    (void)state;
    start(&r);
    rng_init(&g, 21);
    uint32_t n = sa_num_adapters(&r);
    for (int i = 0; i < 40000; i++) {
        uint8_t data[200];
        for (size_t k = 0; k < sizeof(data); k++)
            data[k] = (uint8_t)rng_below(&g, 256);
        uint8_t gid[16];
        sa_gid_of(&r, sa_adapter(&r, rng_below(&g, n)), gid);
        if (rng_below(&g, 2)) // something that hits
            memcpy(data + (rng_below(&g, 2) ? 16 : 8), gid, 16);
        if (rng_below(&g, 3) == 0)
            data[0] = 0xff;
        if (rng_below(&g, 3) == 0)
            data[1] = 0x12;
        uint64_t mask = rng_u64(&g) & (rng_below(&g, 2) ? rng_u64(&g) & rng_u64(&g) & rng_u64(&g) : ~0ull);
        uint16_t a = attr[rng_below(&g, sizeof(attr) / sizeof(attr[0]))];
        if (a == MAD_SA_ATTR_MC_MEMBER_RECORD && rng_below(&g, 2)) { // may well be a join
            memcpy(data + 16, gid, 16);
            memset(data + 40, 0xff, 2);
            memset(data + 3, (int)rng_below(&g, 2), 11);
            mask = 0x130c7;
        }
        r.lid = rng_below(&g, 10) ? sa_lid_of(&r, sa_adapter(&r, rng_below(&g, n)))
                                  : (uint16_t)rng_below(&g, 65536);
        r.sm_key = rng_below(&g, 4) ? 0 : 1;
        r.attr_mod = rng_below(&g, 2) ? 0 : (uint32_t)rng_u64(&g);
        sa_send(&r, method[rng_below(&g, sizeof(method))], a, mask, data, sizeof(data));
        if (i % 50 == 0)
            sa_run(&r, 10 * MONO_MS);
    }
    sa_run(&r, 5 * MONO_S);
    sm_sa_stats(r.sm, &s);
    assert_int_equal(s.requests, 40000);
    assert_int_equal(s.waiting, 0);
    assert_int_equal(s.answered + s.refused + s.merged + s.dropped_not_ready + s.dropped_sm_key +
                         s.dropped_method + s.dropped_stale + s.dropped_full + s.dropped_unknown,
                     40000);
    assert_int_equal(r.answers, s.answered + s.refused);
    assert_true(s.groups > 10 && s.answered > 1000); // some of it made sense
    sa_rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readiness),       cmocka_unit_test(test_sm_key),
        cmocka_unit_test(test_headers),         cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_class_port_info), cmocka_unit_test(test_path_bytes),
        cmocka_unit_test(test_path_names),      cmocka_unit_test(test_path_lids),
        cmocka_unit_test(test_path_selectors),  cmocka_unit_test(test_path_figures),
        cmocka_unit_test(test_no_path),         cmocka_unit_test(test_path_tables),
        cmocka_unit_test(test_nodes),           cmocka_unit_test(test_port_infos),
        cmocka_unit_test(test_other_records),   cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
