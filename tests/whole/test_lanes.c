// SPDX-License-Identifier: Apache-2.0
// Virtual lanes, whole: a torus and rings, brought up by engine sssp. What counts is what stands on the
// devices: every pair is asked for its path, and a packet of the level that the answer says is followed
// through the simulator's forwarding and SLtoVL tables; what waits for what on the way makes one graph of
// (port, lane), and that has no cycle.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "lib/hash.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "tests/whole/meddler.h"

// --- fabrics ---

struct make {
    struct builder *b;
    unsigned num, next_port[1024];
};

static node_id add(struct make *m, enum node_type type, unsigned ports)
{
    char name[40];
    uint64_t guid = 0x10000 + 0x100 * (uint64_t)m->num;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = (uint8_t)ports};
    node_id id;
    a.lft_cap = type == NODE_SWITCH ? LID_UCAST_MAX : 0;
    snprintf(name, sizeof(name), "%s%u", type == NODE_SWITCH ? "sw" : "host", m->num);
    assert_int_equal(builder_node(m->b, &a, name, strlen(name), &id, NULL), 0);
    m->next_port[m->num++] = 1;
    builder_port_guid(m->b, id, type == NODE_SWITCH ? 0 : 1, guid + (type != NODE_SWITCH));
    return id;
}

static void join_at(struct make *m, node_id a, node_id b, uint8_t vl_cap)
{
    unsigned pa = m->next_port[a.i]++, pb = m->next_port[b.i]++;
    struct port_attrs at = {.vl_cap = 4, .state = PORT_ACTIVE}, bt = at;
    bt.vl_cap = vl_cap;
    assert_int_equal(builder_port(m->b, a, pa, &at), 0);
    assert_int_equal(builder_port(m->b, b, pb, &bt), 0);
    assert_int_equal(builder_link(m->b, a, pa, b, pb), 0);
}

static void join(struct make *m, node_id a, node_id b)
{
    join_at(m, a, b, 4);
}

// x by y switches, each with one adapter; y 1: a ring. weak: VLCap of the last adapter.
static const struct fabric *torus_of(unsigned x, unsigned y, uint8_t weak)
{
    struct make m = {.b = builder_new()};
    for (unsigned i = 0; i < x * y; i++)
        add(&m, NODE_SWITCH, 5);
    for (unsigned i = 0; i < x * y; i++) {
        join(&m, (node_id){i}, (node_id){i - i % x + (i + 1) % x});
        if (y > 1)
            join(&m, (node_id){i}, (node_id){(i + x) % (x * y)});
    }
    for (unsigned i = 0; i < x * y; i++)
        join_at(&m, (node_id){i}, add(&m, NODE_CA, 1), i + 1 < x * y ? 4 : weak);
    builder_sm_port(m.b, (node_id){x * y}, 1);
    return builder_seal(m.b, 1, NULL);
}

static const struct fabric *torus(unsigned x, unsigned y)
{
    return torus_of(x, y, 4);
}

static void up(struct rig *r)
{
    rig_up(r);
    rig_sweeps(r, 1, 300);
    if (!rig_last(r)->ok)
        fail_msg("%s", rig_last(r)->text);
}

static void init(struct rig *r, const struct fabric *f, const struct sim_opts *o)
{
    rig_init_fabric(r, f, o);
    r->opts.engine = ROUTE_SSSP;
}

static unsigned lanes(const struct rig *r)
{
    const struct fabric_tables *t = sm_tables(r->sm);
    return t->lanes != NULL ? t->lanes->num_lanes : 1;
}

// --- asking for paths ---

struct client {
    struct rig *r;
    struct transport *t;
    struct mad_engine *e;
    bool done;
    int status;
    uint16_t mad_status;
    uint8_t mad[MAD_SIZE];
};

static void client_init(struct client *c, struct rig *r, uint64_t port_guid)
{
    struct err e;
    *c = (struct client){.r = r};
    c->t = sim_attach(r->sim, port_guid, &e);
    assert_non_null(c->t);
    c->e = mad_engine_new(r->loop, c->t, NULL);
}

static void client_done(struct client *c)
{
    mad_engine_free(c->e);
    c->t->ops->free(c->t);
}

static void on_answer(void *arg, uint64_t user, const struct mad_result *r)
{
    struct client *c = arg;
    (void)user;
    c->done = true;
    c->status = r->status;
    c->mad_status = r->mad_status;
    if (r->mad != NULL)
        memcpy(c->mad, r->mad, MAD_SIZE);
}

#define PR_DLID (1ull << 4)
#define PR_SLID (1ull << 5)
#define PR_SL (1ull << 15)

// The MAD's status.
static uint16_t path(struct client *c, uint8_t sl_of_client, uint64_t mask, const struct mad_path_record *q,
                     struct mad_path_record *ret)
{
    struct sm_status st;
    uint8_t wire[64];
    sm_get_status(c->r->sm, &st);
    mad_path_record_encode(q, wire);
    c->done = false;
    mad_engine_send(c->e, &(struct mad_request){.mgmt_class = MAD_CLASS_SA,
                                                .method = MAD_METHOD_GET,
                                                .attr_id = MAD_SA_ATTR_PATH_RECORD,
                                                .comp_mask = mask,
                                                .lid = st.lid,
                                                .sl = sl_of_client,
                                                .data = wire,
                                                .data_len = sizeof(wire),
                                                .prio = MAD_PRIO_SA,
                                                .device = 1,
                                                .timeout_ns = 3 * MONO_S,
                                                .retries = 0,
                                                .done = on_answer,
                                                .arg = c});
    assert_true(loop_run_until(c->r->loop, &c->done, 10 * MONO_S));
    assert_int_equal(c->status, 0);
    mad_path_record_decode(c->mad + MAD_SA_DATA_OFFSET, ret);
    return c->mad_status;
}

// --- the judge ---

struct channels {
    struct u64map by_key; // (node, port, lane) -> number
    uint32_t num, edges, cap;
    struct {
        uint32_t from, to;
    } * edge;
    bool other;    // the packet under way has changed its lane
    uint32_t last; // where it was
    unsigned vl;   // the lane it left its adapter by
};

static void hop(void *arg, uint64_t node_guid, unsigned port, unsigned vl)
{
    struct channels *c = arg;
    uint64_t key = hash_mix64(node_guid) ^ ((uint64_t)port << 8 | vl);
    uint32_t i;
    if (!u64map_get(&c->by_key, key, &i)) {
        i = c->num++;
        u64map_set(&c->by_key, key, i);
    }
    if (c->last == UINT32_MAX) {
        c->vl = vl;
        c->other = false;
    } else {
        if (c->edges == c->cap) {
            c->cap = c->cap ? 2 * c->cap : 4096;
            c->edge = xreallocarray(c->edge, c->cap, sizeof(*c->edge));
        }
        c->edge[c->edges].from = c->last;
        c->edge[c->edges++].to = i;
    }
    c->other |= vl != c->vl;
    c->last = i;
}

// Takes away what nothing waits for, until nothing is left or a cycle.
static bool has_cycle(const struct channels *c)
{
    uint32_t *in = xcalloc(c->num + 1u, sizeof(*in));
    bool *gone = xcalloc(c->num + 1u, sizeof(*gone));
    uint32_t left = c->num;
    for (uint32_t i = 0; i < c->edges; i++)
        in[c->edge[i].to]++;
    for (bool some = true; some;) {
        some = false;
        for (uint32_t i = 0; i < c->num; i++) {
            if (gone[i] || in[i] > 0)
                continue;
            gone[i] = some = true;
            left--;
            for (uint32_t k = 0; k < c->edges; k++)
                in[c->edge[k].to] -= c->edge[k].from == i;
        }
    }
    free(in);
    free(gone);
    return left > 0;
}

struct end {
    uint64_t guid, node;
    uint16_t lid;
    uint8_t num;
    bool adapter;
};

static uint32_t ends(const struct rig *r, struct end *ret)
{
    const struct fabric *f = r->plan;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *nd = fabric_node(f, p->node);
        struct sim_port_view v;
        if (!port_is_end(f, p))
            continue;
        assert_int_equal(sim_port_view(r->sim, nd->guid, p->num, &v), 0);
        ret[n++] = (struct end){.guid = p->guid,
                                .node = nd->guid,
                                .num = p->num,
                                .lid = v.lid,
                                .adapter = nd->type != NODE_SWITCH};
    }
    return n;
}

static void follow(struct rig *r, struct channels *ch, const struct end *a, const struct end *z, unsigned sl)
{
    char where[200];
    ch->last = UINT32_MAX;
    if (sim_trace_sl(r->sim, a->guid, z->lid, sl, hop, ch, where, sizeof(where)) < 0)
        fail_msg("from 0x%llx to LID %u on level %u: %s", (unsigned long long)a->guid, z->lid, sl, where);
    assert_true(ch->last == UINT32_MAX || (ch->vl == sl && !ch->other)); // by one lane all the way
}

// levels (may be NULL): of each pair of ends, [a * n + z]; 255: not asked.
static void judge(struct rig *r, uint8_t *levels)
{
    struct end *e = xcalloc(r->plan->num_ports, sizeof(*e));
    uint32_t n = ends(r, e);
    struct channels ch = {0};
    struct client c;
    struct sm_status st;

    rig_judge(r, NULL, 0);
    sm_get_status(r->sm, &st);
    assert_true(st.proof.ok);
    u64map_init(&ch.by_key, NULL, 4096);
    const struct node *n1 = fabric_by_guid(r->plan, e[n - 1].node);
    client_init(&c, r, e[n - 1].guid);
    uint64_t own_sl;
    assert_int_equal(sim_port_field(r->sim, n1->guid, 1, "master_sm_sl", &own_sl), 0);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            struct mad_path_record q = {.slid = e[i].lid, .dlid = e[k].lid}, p;
            if (levels != NULL)
                levels[i * n + k] = 255;
            if (i == k || !e[i].adapter)
                continue;
            if (path(&c, (uint8_t)own_sl, PR_SLID | PR_DLID, &q, &p) != 0)
                fail_msg("no path from LID %u to LID %u", q.slid, q.dlid);
            if (levels != NULL)
                levels[i * n + k] = p.sl;
            follow(r, &ch, &e[i], &e[k], p.sl);
            if (e[k].adapter) // the answer, on the level that the question came by
                follow(r, &ch, &e[k], &e[i], p.sl);
            if (e[k].lid == st.lid) { // the manager's
                uint64_t sl;
                assert_int_equal(sim_port_field(r->sim, e[i].node, e[i].num, "master_sm_sl", &sl), 0);
                assert_int_equal(sl, p.sl);
            }
        }
    }
    assert_false(has_cycle(&ch));
    client_done(&c);
    u64map_done(&ch.by_key);
    free(ch.edge);
    free(e);
}

// Were everything on one lane, these paths would have a cycle: so lanes are what keeps them free of it.
static bool cycle_on_one_lane(struct rig *r)
{
    struct end *e = xcalloc(r->plan->num_ports, sizeof(*e));
    uint32_t n = ends(r, e);
    struct channels ch = {0};

    u64map_init(&ch.by_key, NULL, 4096);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (i != k && e[i].adapter)
                follow(r, &ch, &e[i], &e[k], 0);
    bool cycle = has_cycle(&ch);
    u64map_done(&ch.by_key);
    free(ch.edge);
    free(e);
    return cycle;
}

static uint64_t lane_sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, MAD_ATTR_SLTOVL_MAPPING_TABLE) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_VL_ARBITRATION_TABLE);
}

static uint64_t lane_gets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_GET, MAD_ATTR_SLTOVL_MAPPING_TABLE) +
           rig_count(r, MAD_METHOD_GET, MAD_ATTR_VL_ARBITRATION_TABLE);
}

// --- tests ---

// Devices whose levels go by the lanes of the same number already are only told how to share the wire.
static void test_torus(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(5, 5), NULL);
    up(&r);
    assert_string_equal(sm_tables(r.sm)->engine, "sssp");
    assert_in_range(lanes(&r), 2, 8);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_SLTOVL_MAPPING_TABLE), 0);
    // 25 switches with five ports that are joined: the ways from the switch itself and from the others; an
    // adapter has one.
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_SLTOVL_MAPPING_TABLE), 25 * 5 * 5 + 25);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_VL_ARBITRATION_TABLE), 25 * 6);
    judge(&r, NULL);
    assert_true(cycle_on_one_lane(&r));
    uint64_t gets = lane_gets(&r), sets = lane_sets(&r);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(lane_gets(&r), gets); // all of it is known
    assert_int_equal(lane_sets(&r), sets);
    rig_done(&r);
}

// Devices that come with all levels on one lane.
static void test_programmed(void **state)
{
    (void)state;
    for (int optimized = 0; optimized < 2; optimized++) {
        struct rig r;
        init(&r, torus(5, 4), &(struct sim_opts){.sltovl_zero = true, .optimized_sltovl = optimized});
        up(&r);
        assert_in_range(lanes(&r), 2, 8);
        uint64_t sets = rig_count(&r, MAD_METHOD_SET, MAD_ATTR_SLTOVL_MAPPING_TABLE);
        assert_int_equal(sets, optimized ? 20 * 5 + 20 : 20 * 5 * 5 + 20);
        judge(&r, NULL);
        rig_done(&r);
    }
}

// One lane is enough for tables without cycles: nothing is read or written for it.
static void test_one_lane(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(4, 3), NULL);
    r.opts.engine = ROUTE_UPDN;
    up(&r);
    assert_int_equal(lane_gets(&r) + lane_sets(&r), 0);
    judge(&r, NULL);
    rig_done(&r);
}

// An adapter with fewer lanes than are in use: every level reaches it and leaves it, on those that it has.
static void test_weak_adapter(void **state)
{
    (void)state;
    for (uint8_t vl_cap = 1; vl_cap <= 2; vl_cap++) {
        struct rig r;
        struct end e[64];
        char where[200];
        init(&r, torus_of(5, 5, vl_cap), &(struct sim_opts){.sltovl_zero = true});
        up(&r);
        unsigned levels = lanes(&r);
        assert_in_range(levels, 3, 8);
        uint32_t n = ends(&r, e);
        const struct end *weak = &e[n - 1];
        for (uint32_t i = 0; i + 1 < n; i++)
            for (unsigned sl = 0; sl < levels && e[i].adapter; sl++) {
                struct channels ch = {.last = UINT32_MAX};
                u64map_init(&ch.by_key, NULL, 64);
                if (sim_trace_sl(r.sim, e[i].guid, weak->lid, sl, hop, &ch, where, sizeof(where)) < 0)
                    fail_msg("on level %u: %s", sl, where);
                assert_int_equal(ch.vl, sl);
                ch.last = UINT32_MAX;
                if (sim_trace_sl(r.sim, weak->guid, e[i].lid, sl, hop, &ch, where, sizeof(where)) < 0)
                    fail_msg("on level %u: %s", sl, where);
                assert_int_equal(ch.vl, sl % vl_cap);
                u64map_done(&ch.by_key);
                free(ch.edge);
            }
        rig_down(&r);
        up(&r);
        assert_int_equal(lane_sets(&r), 0);
        rig_done(&r);
    }
}

static void test_too_few(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(6, 6), NULL);
    r.opts.lanes = 1;
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_false(rig_last(&r)->ok);
    assert_non_null(strstr(rig_last(&r)->text, "virtual lanes"));
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE), 0);
    rig_done(&r);
}

// How often each adapter was told to register anew.
static void reregisters(const struct rig *r, uint64_t *ret)
{
    struct end e[64];
    uint32_t n = ends(r, e);
    for (uint32_t i = 0; i < n; i++)
        if (e[i].adapter)
            assert_int_equal(sim_reregisters(r->sim, e[i].node, e[i].num, &ret[i]), 0);
}

// Those whose levels have changed were told so, once, and nobody else; how many.
static uint32_t only_concerned(const struct rig *r, const uint8_t *before, const uint8_t *after,
                               const uint64_t *asked)
{
    struct end e[64];
    uint32_t n = ends(r, e), told = 0;
    uint64_t now[64];
    reregisters(r, now);
    for (uint32_t i = 0; i < n; i++) {
        if (!e[i].adapter)
            continue;
        bool changed = memcmp(before + i * n, after + i * n, n) != 0;
        for (uint32_t k = 0; k < n; k++)
            changed |= before[k * n + i] != after[k * n + i];
        assert_int_equal(now[i] - asked[i], changed);
        told += changed;
    }
    return told;
}

// A cable that dies and comes back: level by level without cycles in between, and as before at the end.
static void test_cable(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(5, 5), &(struct sim_opts){.sltovl_zero = true});
    up(&r);
    uint32_t n = 50, told = 0;
    uint8_t *before = xcalloc(n * n, 1), *after = xcalloc(n * n, 1);
    uint64_t *asked = xcalloc(n, sizeof(*asked));
    judge(&r, before);
    reregisters(&r, asked);
    uint64_t guid = fabric_switch(r.plan, 7)->guid;
    assert_int_equal(sim_link_set(r.sim, guid, 1, false), 0);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 5 * MONO_S);
    assert_true(rig_last(&r)->ok);
    judge(&r, after);
    told = only_concerned(&r, before, after, asked);
    assert_int_equal(rig_events_of(&r, "lanes-changed"), told > 0);
    assert_int_equal(sim_link_set(r.sim, guid, 1, true), 0);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 5 * MONO_S);
    judge(&r, after);
    assert_memory_equal(before, after, n * n);
    free(before);
    free(after);
    free(asked);
    rig_done(&r);
}

// After a restart pairs have the lanes that they had, and nothing is written.
static void test_restart(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(5, 5), &(struct sim_opts){.sltovl_zero = true});
    up(&r);
    uint32_t n = 50;
    uint8_t *before = xcalloc(n * n, 1), *after = xcalloc(n * n, 1);
    judge(&r, before);
    rig_down(&r);
    up(&r);
    assert_int_equal(lane_sets(&r), 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE), 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), 0);
    judge(&r, after);
    assert_memory_equal(before, after, n * n);
    free(before);
    free(after);
    rig_done(&r);
}

// From tables that need one lane to tables with lanes: who used level 0 is told.
static void test_other_engine(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(5, 5), &(struct sim_opts){.sltovl_zero = true});
    r.opts.engine = ROUTE_UPDN;
    up(&r);
    uint8_t *before = xcalloc(50 * 50, 1), *after = xcalloc(50 * 50, 1);
    uint64_t asked[64];
    judge(&r, before);
    reregisters(&r, asked);
    rig_down(&r);
    r.opts.engine = ROUTE_SSSP;
    r.opts.adopt = false;
    up(&r);
    rig_run(&r, 5 * MONO_S);
    judge(&r, after);
    assert_in_range(only_concerned(&r, before, after, asked), 1, 25);
    rig_down(&r);
    r.opts.engine = ROUTE_UPDN; // and back
    up(&r);
    rig_run(&r, 5 * MONO_S);
    judge(&r, after);
    assert_memory_equal(before, after, 50 * 50);
    free(before);
    free(after);
    rig_done(&r);
}

// Rows that somebody else has written are found by the audit, told once, and put right.
static void test_drift(void **state)
{
    struct rig r;
    struct meddler m;
    uint8_t data[MAD_SMP_DATA_SIZE] = {0}, vl;
    struct sim_port_view v;
    (void)state;
    init(&r, torus(5, 4), NULL);
    r.opts.audit_interval_ns = 60 * MONO_S;
    up(&r);
    rig_run(&r, 150 * MONO_S);
    uint64_t sets = lane_sets(&r);
    assert_int_equal(rig_events_of(&r, "drift"), 0);
    meddler_init(&m, &r);
    const struct node *sw = fabric_switch(r.plan, 6), *host = &r.plan->node[25];
    assert_int_equal(host->type, NODE_CA);
    assert_int_equal(sim_port_view(r.sim, sw->guid, 0, &v), 0);
    meddler_set(&m, v.lid, MAD_ATTR_SLTOVL_MAPPING_TABLE, 1 << 8 | 2, data);
    assert_int_equal(sim_sl2vl(r.sim, sw->guid, 1, 2, 1, &vl), 0);
    assert_int_equal(vl, 0);
    assert_int_equal(sim_port_view(r.sim, host->guid, 1, &v), 0);
    data[1] = 1; // lane 0 alone
    meddler_set(&m, v.lid, MAD_ATTR_VL_ARBITRATION_TABLE, 1 << 16, data);
    rig_run(&r, 150 * MONO_S);
    assert_int_equal(rig_events_of(&r, "drift"), 2);
    assert_int_equal(lane_sets(&r) - sets, 2);
    assert_int_equal(sim_sl2vl(r.sim, sw->guid, 1, 2, 1, &vl), 0);
    assert_int_equal(vl, 1);
    judge(&r, NULL);
    meddler_done(&m);
    rig_done(&r);
}

static uint64_t findings_of(const struct rig *r, const char *code)
{
    const struct findings *fs = sm_findings(r->sm);
    uint64_t n = 0;
    for (size_t i = 0; i < fs->n; i++)
        n += strcmp(fs->item[i].code, code) == 0;
    return n;
}

// A switch that says yes and keeps what it has: told as long as it is so, and not asked again and again.
static void test_not_kept(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(5, 4), &(struct sim_opts){.sltovl_zero = true});
    r.opts.audit_interval_ns = 60 * MONO_S;
    uint64_t guid = fabric_switch(r.plan, 3)->guid;
    assert_int_equal(sim_set_not_kept(r.sim, guid, MAD_ATTR_SLTOVL_MAPPING_TABLE, true), 0);
    up(&r);
    uint64_t sets = lane_sets(&r);
    assert_int_equal(findings_of(&r, "lanes-not-kept"), 1);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 200 * MONO_S);
    assert_int_equal(lane_sets(&r), sets);
    assert_int_equal(findings_of(&r, "lanes-not-kept"), 1);
    assert_int_equal(rig_events_of(&r, "drift"), 0);
    assert_int_equal(sim_set_not_kept(r.sim, guid, MAD_ATTR_SLTOVL_MAPPING_TABLE, false), 0);
    assert_int_equal(sim_switch_reboot(r.sim, guid), 0);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 30 * MONO_S);
    assert_int_equal(findings_of(&r, "lanes-not-kept"), 0);
    judge(&r, NULL);
    rig_done(&r);
}

// One to three things at once: cables that are cut or mended, switches that are reset.
static void some_faults(struct rig *r, struct rng *g)
{
    const struct fabric *f = r->plan;
    for (unsigned n = 1 + rng_below(g, 3); n > 0; n--) {
        uint64_t guid = fabric_switch(f, rng_below(g, f->num_switches))->guid;
        unsigned port = 1 + rng_below(g, 4), what = rng_below(g, 5);
        if (what == 0)
            assert_int_equal(sim_switch_reboot(r->sim, guid), 0);
        else
            assert_int_equal(sim_link_set(r->sim, guid, port, what < 3), 0);
        if (rng_below(g, 3) == 0)
            rig_run(r, rng_below(g, 3000) * MONO_MS);
    }
}

static void mend_all(struct rig *r)
{
    for (uint32_t sw = 0; sw < r->plan->num_switches; sw++)
        for (unsigned port = 1; port <= 4; port++)
            assert_int_equal(sim_link_set(r->sim, fabric_switch(r->plan, sw)->guid, port, true), 0);
}

// Faults at random on grids at random, restarts in between; no cycle whenever everybody is there.
static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct rig r;
        struct rng g;
        rng_init(&g, seed);
        struct sim_opts o = {.sltovl_zero = rng_below(&g, 2), .optimized_sltovl = rng_below(&g, 2)};
        init(&r, torus(3 + rng_below(&g, 3), 3 + rng_below(&g, 3)), &o);
        r.opts.lmc = (uint8_t)rng_below(&g, 2);
        up(&r);
        for (unsigned i = 0; i < 6; i++) {
            some_faults(&r, &g);
            if (rng_below(&g, 6) == 0) {
                rig_down(&r);
                rig_up(&r);
            }
            rig_run(&r, 20 * MONO_S);
            if (rig_last(&r)->ok && sm_fabric(r.sm)->num_nodes == r.plan->num_nodes)
                judge(&r, NULL);
        }
        mend_all(&r);
        rig_run(&r, 60 * MONO_S);
        if (!rig_last(&r)->ok)
            fail_msg("seed %llu: %s", (unsigned long long)seed, rig_last(&r)->text);
        judge(&r, NULL);
        rig_done(&r);
    }
}

// Another engine would do it otherwise now, but the tables on the switches are ours and proved: they are
// kept, and the lanes with them, without which they would not be. They hold through faults, too.
static void test_kept_tables(void **state)
{
    struct rig r;
    (void)state;
    init(&r, torus(5, 5), &(struct sim_opts){.sltovl_zero = true});
    up(&r);
    uint8_t *before = xcalloc(50 * 50, 1), *after = xcalloc(50 * 50, 1);
    judge(&r, before);
    rig_down(&r);
    r.opts.engine = ROUTE_UPDN;
    up(&r);
    assert_string_equal(sm_tables(r.sm)->engine, "sssp");
    assert_int_equal(lane_sets(&r) + rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) +
                         rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE),
                     0);
    judge(&r, after);
    assert_memory_equal(before, after, 50 * 50);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sim_link_set(r.sim, fabric_switch(r.plan, 4 + 7 * i)->guid, 1 + i, false), 0);
        rig_sweeps(&r, 1, 60);
        rig_run(&r, 10 * MONO_S);
        if (!rig_last(&r)->ok)
            fail_msg("%s", rig_last(&r)->text);
        judge(&r, after);
    }
    sm_resweep(r.sm, "operator", true);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 10 * MONO_S);
    assert_string_equal(sm_tables(r.sm)->engine, "updn");
    assert_int_equal(lanes(&r), 1);
    judge(&r, after);
    free(before);
    free(after);
    rig_done(&r);
}

// A level that is asked for is the path's, or there is no path.
static void test_level_asked(void **state)
{
    struct rig r;
    struct client c;
    struct mad_path_record p;
    uint64_t own_sl;
    (void)state;
    init(&r, torus(7, 1), NULL);
    up(&r);
    struct end e[64];
    uint32_t n = ends(&r, e);
    client_init(&c, &r, e[n - 1].guid);
    assert_int_equal(sim_port_field(r.sim, e[n - 1].node, 1, "master_sm_sl", &own_sl), 0);
    for (uint32_t i = 7; i + 1 < n; i++) {
        struct mad_path_record q = {.slid = e[i].lid, .dlid = e[n - 1].lid};
        assert_int_equal(path(&c, (uint8_t)own_sl, PR_SLID | PR_DLID, &q, &p), 0);
        unsigned sl = p.sl;
        for (unsigned k = 0; k < 4; k++) {
            q.sl = (uint8_t)k;
            uint16_t status = path(&c, (uint8_t)own_sl, PR_SLID | PR_DLID | PR_SL, &q, &p);
            assert_int_equal(status, k == sl ? 0 : MAD_SA_NO_RECORDS);
        }
    }
    client_done(&c);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torus),        cmocka_unit_test(test_programmed),
        cmocka_unit_test(test_one_lane),     cmocka_unit_test(test_weak_adapter),
        cmocka_unit_test(test_too_few),      cmocka_unit_test(test_cable),
        cmocka_unit_test(test_restart),      cmocka_unit_test(test_level_asked),
        cmocka_unit_test(test_drift),        cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_faults),       cmocka_unit_test(test_kept_tables),
        cmocka_unit_test(test_other_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
