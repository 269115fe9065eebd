// SPDX-License-Identifier: Apache-2.0
// Subnet administration over the wire of a simulated fabric: a client on another adapter asks, joins and
// leaves; what the switches were given is walked here, by the simulator's own tables.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "sm/sa.h"
#include "tests/whole/rig.h"

static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
                                      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};

struct client {
    struct rig *r;
    struct transport *t;
    struct mad_engine *e;
    uint64_t guid;
    // of the last answer
    bool done;
    int status;
    uint16_t mad_status;
    uint8_t mad[MAD_SIZE];
};

static void client_init(struct client *c, struct rig *r, uint64_t port_guid)
{
    struct err e;
    *c = (struct client){.r = r, .guid = port_guid};
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
    memset(c->mad, 0, sizeof(c->mad));
    if (r->mad != NULL)
        memcpy(c->mad, r->mad, MAD_SIZE);
}

static void send(struct client *c, uint8_t method, uint16_t attr, uint64_t mask, const void *data, size_t len,
                 uint64_t sm_key)
{
    c->done = false;
    mad_engine_send(c->e, &(struct mad_request){.mgmt_class = MAD_CLASS_SA,
                                                .method = method,
                                                .attr_id = attr,
                                                .comp_mask = mask,
                                                .m_key = sm_key,
                                                .lid = (uint16_t)({
                                                    struct sm_status s;
                                                    sm_get_status(c->r->sm, &s);
                                                    s.lid;
                                                }),
                                                .data = data,
                                                .data_len = (uint8_t)len,
                                                .prio = MAD_PRIO_SA,
                                                .device = 1,
                                                .timeout_ns = 3 * MONO_S,
                                                .retries = 0,
                                                .done = on_answer,
                                                .arg = c});
}

// The MAD's status; fails the test when no answer comes.
static uint16_t ask(struct client *c, uint8_t method, uint16_t attr, uint64_t mask, const void *data,
                    size_t len)
{
    send(c, method, attr, mask, data, len, 0);
    assert_true(loop_run_until(c->r->loop, &c->done, 10 * MONO_S));
    assert_int_equal(c->status, 0);
    return c->mad_status;
}

static void gid(uint64_t guid, uint8_t ret[16])
{
    memset(ret, 0, 16);
    ret[0] = 0xfe;
    ret[1] = 0x80;
    for (int i = 0; i < 8; i++)
        ret[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
}

#define JOIN_MASK (1ull << 0 | 1ull << 1 | 1ull << 16)
#define CREATE_MASK (JOIN_MASK | 1ull << 2 | 1ull << 6 | 1ull << 7 | 1ull << 12 | 1ull << 13)

static uint16_t join_as(struct client *c, const uint8_t mgid[16], uint64_t port, uint8_t state, uint64_t mask)
{
    struct mad_mc_member_record m = {.q_key = 0x0b1b, .p_key = 0xffff, .join_state = state};
    uint8_t wire[56];
    memcpy(m.mgid, mgid, 16);
    gid(port, m.port_gid);
    mad_mc_member_record_encode(&m, wire);
    return ask(c, MAD_METHOD_SET, MAD_SA_ATTR_MC_MEMBER_RECORD, mask, wire, sizeof(wire));
}

static uint16_t leave(struct client *c, const uint8_t mgid[16], uint64_t port, uint8_t state)
{
    struct mad_mc_member_record m = {.join_state = state};
    uint8_t wire[56];
    memcpy(m.mgid, mgid, 16);
    gid(port, m.port_gid);
    mad_mc_member_record_encode(&m, wire);
    return ask(c, MAD_METHOD_DELETE, MAD_SA_ATTR_MC_MEMBER_RECORD, JOIN_MASK, wire, sizeof(wire));
}

static struct mad_mc_member_record member_of(const struct client *c)
{
    struct mad_mc_member_record m;
    mad_mc_member_record_decode(c->mad + MAD_SA_DATA_OFFSET, &m);
    return m;
}

// Adapters of the plan, by their first port's GUID.
static uint32_t adapters(const struct rig *r, uint64_t *ret, uint32_t max)
{
    const struct fabric *f = r->plan;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_nodes && n < max; i++)
        if (f->node[i].type == NODE_CA && f->port[f->node[i].first_port].guid != 0 &&
            port_valid(f->port[f->node[i].first_port].peer))
            ret[n++] = f->port[f->node[i].first_port].guid;
    return n;
}

// --- the walk: a packet to an MLID from an end port, by what the simulated switches hold ---

struct flood {
    const struct rig *r;
    uint16_t mlid;
    uint32_t *copies; // by port: those that reached it
    uint32_t hops;
};

static bool linked(const struct rig *r, uint64_t node, unsigned port)
{
    struct sim_port_view v;
    assert_int_equal(sim_port_view(r->sim, node, port, &v), 0);
    return v.linked;
}

static void arrive(struct flood *w, uint32_t port)
{
    const struct fabric *f = w->r->plan;
    const struct port *in = &f->port[port];
    const struct node *n = &f->node[in->node.i];

    if (n->type != NODE_SWITCH) {
        w->copies[port]++;
        return;
    }
    if (++w->hops > 4 * f->num_switches)
        fail_msg("a packet to 0x%04x goes round in circles", w->mlid);
    for (unsigned num = 0; num <= n->num_ports; num++) {
        bool set;
        assert_int_equal(sim_mft(w->r->sim, n->guid, w->mlid, num, &set), 0);
        if (!set || num == in->num)
            continue;
        const struct port *out = &f->port[n->first_port + num];
        if (num == 0)
            w->copies[n->first_port]++;
        else if (port_valid(out->peer) && linked(w->r, n->guid, num))
            arrive(w, out->peer.i);
    }
}

// Every receiver but the sender gets one copy, and nobody else any.
static void walk(const struct rig *r, uint16_t mlid, uint64_t from, const uint64_t *receiver, uint32_t n)
{
    const struct fabric *f = r->plan;
    struct flood w = {.r = r, .mlid = mlid, .copies = calloc(f->num_ports, sizeof(uint32_t))};
    const struct port *p = fabric_port(f, fabric_by_port_guid(f, from));

    arrive(&w, p->peer.i);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        bool wanted = false;
        for (uint32_t k = 0; k < n; k++)
            wanted |= receiver[k] == f->port[i].guid && receiver[k] != from && f->port[i].guid != 0;
        if (f->port[i].guid == from)
            continue;
        if (w.copies[i] != wanted)
            fail_msg("0x%016llx gets %u copies from 0x%016llx", (unsigned long long)f->port[i].guid,
                     w.copies[i], (unsigned long long)from);
    }
    free(w.copies);
}

static void walk_all(const struct rig *r, uint16_t mlid, const uint64_t *receiver, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        walk(r, mlid, receiver[i], receiver, n);
}

// Time goes on in small steps: whatever mix of old and new the switches hold, no packet goes round.
static void run_without_circles(struct rig *r, uint16_t mlid, const uint64_t *from, uint32_t n, int64_t step,
                                int steps)
{
    struct flood w = {.r = r, .mlid = mlid, .copies = calloc(r->plan->num_ports, sizeof(uint32_t))};
    for (int i = 0; i < steps; i++) {
        const struct port *p = fabric_port(r->plan, fabric_by_port_guid(r->plan, from[(uint32_t)i % n]));
        w.hops = 0;
        arrive(&w, p->peer.i);
        rig_run(r, step);
    }
    free(w.copies);
}

static void up(struct rig *r)
{
    rig_up(r);
    rig_sweeps(r, 1, 300);
    assert_true(rig_last(r)->ok);
    rig_judge(r, NULL, 0);
}

#define SIM                                                                                                  \
    &(struct sim_opts)                                                                                       \
    {                                                                                                        \
        .seed = 5, .link_latency_ns = 500, .service_ns = 2000                                                \
    }

static uint64_t members_of(const struct rig *r)
{
    struct sm_sa_stats s;
    sm_sa_stats(r->sm, &s);
    return s.members;
}

// --- tests ---

static void test_records(void **state)
{
    struct rig r;
    struct client c;
    uint64_t a[300];
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    uint32_t n = adapters(&r, a, 300);
    client_init(&c, &r, a[n - 1]);

    assert_int_equal(ask(&c, MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, 0, NULL, 0), 0);
    struct mad_class_port_info ci;
    mad_class_port_info_decode(c.mad + MAD_SA_DATA_OFFSET, &ci);
    assert_int_equal(ci.class_version, 2);
    assert_true(ci.capability_mask2 & 1u << 12);

    for (uint32_t i = 0; i < n; i += 7) {
        struct mad_path_record q = {.reversible = 1, .numb_path = 1, .p_key = 0xffff}, p;
        uint8_t wire[64];
        gid(a[n - 1], q.sgid);
        gid(a[i], q.dgid);
        mad_path_record_encode(&q, wire);
        assert_int_equal(ask(&c, MAD_METHOD_GET, MAD_SA_ATTR_PATH_RECORD,
                             1 << 2 | 1 << 3 | 1 << 11 | 1 << 12 | 1 << 13, wire, sizeof(wire)),
                         0);
        mad_path_record_decode(c.mad + MAD_SA_DATA_OFFSET, &p);
        assert_int_equal(sim_trace(r.sim, a[n - 1], p.dlid, NULL, 0) >= 0, 1);
        const struct port *z = fabric_port(r.plan, fabric_by_port_guid(r.plan, a[i]));
        struct sim_port_view v;
        sim_port_view(r.sim, fabric_node(r.plan, z->node)->guid, z->num, &v);
        assert_int_equal(v.lid, p.dlid);
        assert_int_equal(p.packet_life_time, a[i] == a[n - 1] ? 0 : 18);
    }
    client_done(&c);
    rig_done(&r);
}

static void test_join_and_leave(void **state)
{
    struct rig r;
    struct client c;
    uint64_t a[300], in[40] = {0};
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    uint32_t n = adapters(&r, a, 300), k = 0;
    client_init(&c, &r, a[n - 1]);
    for (uint32_t i = 0; i < n && k < 40; i += 3) {
        assert_int_equal(join_as(&c, broadcast, a[i], 1, JOIN_MASK), 0);
        struct mad_mc_member_record m = member_of(&c);
        assert_int_equal(m.mlid, 0xc000);
        assert_int_equal(m.q_key, 0x0b1b);
        in[k++] = a[i];
        walk_all(&r, 0xc000, in, k); // the answer comes when the tables are there
    }
    walk(&r, 0xc000, in[0], in, k);
    while (k > 0) {
        assert_int_equal(leave(&c, broadcast, in[k - 1], 1), 0);
        k--;
        rig_run(&r, 100 * MONO_MS);
        if (k > 0)
            walk_all(&r, 0xc000, in, k);
    }
    assert_int_equal(members_of(&r), 0);
    // A full member and a non-member receive; who only sends reaches both and gets nothing.
    assert_int_equal(join_as(&c, broadcast, a[1], 1, JOIN_MASK), 0);
    assert_int_equal(join_as(&c, broadcast, a[12], 2, JOIN_MASK), 0);
    assert_int_equal(join_as(&c, broadcast, a[23], 4, JOIN_MASK), 0);
    assert_int_equal(join_as(&c, broadcast, a[34], 8, JOIN_MASK), 0);
    const uint64_t two[] = {a[1], a[12]};
    walk_all(&r, 0xc000, two, 2);
    walk(&r, 0xc000, a[23], two, 2);
    walk(&r, 0xc000, a[34], two, 2);
    assert_int_not_equal(leave(&c, broadcast, in[0], 1), 0);
    client_done(&c);
    rig_done(&r);
}

static void test_dead_link(void **state)
{
    struct rig r;
    struct client c;
    uint64_t a[300], in[64] = {0};
    struct sm_sa_stats s;
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    uint32_t n = adapters(&r, a, 300), k = 0;
    client_init(&c, &r, a[n - 1]);
    for (uint32_t i = 0; i < n && k < 32; i += 2) {
        assert_int_equal(join_as(&c, broadcast, a[i], 1, JOIN_MASK), 0);
        in[k++] = a[i];
    }
    // Cut cables of the root, one after the other.
    sm_sa_stats(r.sm, &s);
    assert_true(s.tree_proved);
    const struct node *root = fabric_by_guid(r.plan, s.root_guid);
    assert_non_null(root);
    for (unsigned num = 1; num <= root->num_ports; num += 3) {
        if (!port_valid(r.plan->port[root->first_port + num].peer))
            continue;
        assert_int_equal(sim_link_set(r.sim, root->guid, num, false), 0);
        run_without_circles(&r, 0xc000, in, k, 10 * MONO_US, 500);
        rig_run(&r, 20 * MONO_S);
        walk_all(&r, 0xc000, in, k);
    }
    // They come back: the old ways are alive beside the new ones, and half of the switches are slow, so that
    // the others are ahead.
    for (uint32_t sw = 0; sw < r.plan->num_switches; sw += 2)
        assert_int_equal(sim_node_slow(r.sim, fabric_switch(r.plan, sw)->guid, 200), 0);
    for (unsigned num = 1; num <= root->num_ports; num++)
        sim_link_set(r.sim, root->guid, num, true);
    run_without_circles(&r, 0xc000, in, k, 100 * MONO_US, 20000);
    for (uint32_t sw = 0; sw < r.plan->num_switches; sw += 2)
        sim_node_slow(r.sim, fabric_switch(r.plan, sw)->guid, 1);
    rig_run(&r, 20 * MONO_S);
    walk_all(&r, 0xc000, in, k);
    // The root switch loses all it had.
    assert_int_equal(sim_switch_reboot(r.sim, root->guid), 0);
    run_without_circles(&r, 0xc000, in, k, MONO_MS, 3000);
    rig_run(&r, 30 * MONO_S);
    walk_all(&r, 0xc000, in, k);
    // And is no more: the tree gets another root.
    for (unsigned num = 1; num <= root->num_ports; num++)
        if (port_valid(r.plan->port[root->first_port + num].peer))
            sim_link_set(r.sim, root->guid, num, false);
    run_without_circles(&r, 0xc000, in, k, 100 * MONO_US, 10000);
    rig_run(&r, 20 * MONO_S);
    sm_sa_stats(r.sm, &s);
    assert_true(s.root_guid != root->guid);
    walk_all(&r, 0xc000, in, k);
    for (unsigned num = 1; num <= root->num_ports; num++)
        sim_link_set(r.sim, root->guid, num, true);
    run_without_circles(&r, 0xc000, in, k, MONO_MS, 3000);
    rig_run(&r, 20 * MONO_S);
    walk_all(&r, 0xc000, in, k);
    client_done(&c);
    rig_done(&r);
}

static struct sm_sa_stats stats(const struct rig *r)
{
    struct sm_sa_stats s;
    sm_sa_stats(r->sm, &s);
    return s;
}

// The last port of a switch by which it reaches another switch.
static unsigned trunk_of(const struct rig *r, const struct node *n)
{
    for (unsigned num = n->num_ports; num >= 1; num--) {
        const struct port *p = &r->plan->port[n->first_port + num];
        if (port_valid(p->peer) && fabric_node(r->plan, r->plan->port[p->peer.i].node)->type == NODE_SWITCH)
            return num;
    }
    fail_msg("the switch has no trunk");
    return 0;
}

// While nobody is a member no tree is made, whatever happens to the fabric; the first join makes it.
static void test_nobody(void **state)
{
    struct rig r;
    struct client c;
    uint64_t a[300], in[3];
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    adapters(&r, a, 300);
    client_init(&c, &r, a[60]);
    const struct node *leaf = fabric_node(
        r.plan, fabric_port(r.plan, fabric_port(r.plan, fabric_by_port_guid(r.plan, a[0]))->peer)->node);
    unsigned trunk = trunk_of(&r, leaf);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, trunk, false), 0);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(rig_last(&r)->links_removed, 1);
    assert_int_equal(stats(&r).tree_jobs, 0);
    assert_int_equal(stats(&r).tree_switches, 0);
    assert_int_equal(stats(&r).mft_blocks_set, 0);
    for (unsigned i = 0; i < 3; i++) {
        in[i] = a[i * 20];
        assert_int_equal(join_as(&c, broadcast, in[i], 1, JOIN_MASK), 0);
        walk_all(&r, 0xc000, in, i + 1);
    }
    assert_int_equal(stats(&r).tree_jobs, 1);
    assert_true(stats(&r).tree_proved);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(leave(&c, broadcast, in[i], 1), 0);
    rig_run(&r, MONO_S);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, trunk, true), 0);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(stats(&r).tree_jobs, 1);
    assert_int_equal(stats(&r).tree_switches, 0);
    struct flood w = {.r = &r, .mlid = 0xc000, .copies = calloc(r.plan->num_ports, sizeof(uint32_t))};
    arrive(&w, fabric_port(r.plan, fabric_by_port_guid(r.plan, in[0]))->peer.i);
    for (uint32_t i = 0; i < r.plan->num_ports; i++)
        assert_int_equal(w.copies[i], 0); // nothing was left behind
    free(w.copies);
    assert_int_equal(join_as(&c, broadcast, in[2], 1, JOIN_MASK), 0);
    assert_int_equal(join_as(&c, broadcast, in[1], 1, JOIN_MASK), 0);
    walk_all(&r, 0xc000, in + 1, 2);
    client_done(&c);
    rig_done(&r);
}

// A host that goes and comes changes nothing about the tree; a cable of the tree that dies is replaced soon
// after the routes are.
static void test_soon(void **state)
{
    struct rig r;
    struct client c;
    uint64_t a[300], in[64];
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    uint32_t n = adapters(&r, a, 300), k = 0;
    client_init(&c, &r, a[n - 1]);
    for (uint32_t i = 0; i < n && k < 32; i += 2) {
        assert_int_equal(join_as(&c, broadcast, a[i], 1, JOIN_MASK), 0);
        in[k++] = a[i];
    }
    struct sm_sa_stats s = stats(&r);
    const struct port *host = fabric_port(r.plan, fabric_by_port_guid(r.plan, a[1]));
    const struct port *at = fabric_port(r.plan, host->peer);
    uint64_t leaf = fabric_node(r.plan, at->node)->guid;
    for (int on = 0; on < 2; on++) {
        uint64_t sweeps = r.sweeps;
        assert_int_equal(sim_link_set(r.sim, leaf, at->num, on), 0);
        rig_run(&r, 10 * MONO_S);
        assert_true(r.sweeps > sweeps);
    }
    assert_int_equal(stats(&r).tree_jobs, s.tree_jobs);
    assert_int_equal(stats(&r).mft_blocks_set, s.mft_blocks_set);
    walk_all(&r, 0xc000, in, k);

    const struct node *root = fabric_by_guid(r.plan, s.root_guid);
    for (unsigned num = 1; num <= root->num_ports; num += 2) {
        uint64_t sets = stats(&r).mft_blocks_set;
        const struct port *p = &r.plan->port[root->first_port + num];
        bool set, far_set;
        assert_int_equal(sim_mft(r.sim, root->guid, 0xc000, num, &set), 0);
        if (!port_valid(p->peer) || !set)
            continue;
        assert_int_equal(sim_link_set(r.sim, root->guid, num, false), 0);
        rig_run(&r, 300 * MONO_MS);
        walk_all(&r, 0xc000, in, k);
        const struct port *z = fabric_port(r.plan, p->peer);
        const struct node *far = fabric_node(r.plan, z->node);
        assert_int_equal(sim_mft(r.sim, root->guid, 0xc000, num, &set), 0);
        assert_int_equal(sim_mft(r.sim, far->guid, 0xc000, z->num, &far_set), 0);
        assert_false(set || far_set);
        // One switch hangs elsewhere: few blocks, and none when the cable is back.
        assert_in_range(stats(&r).mft_blocks_set - sets, 1, 16);
        sets = stats(&r).mft_blocks_set;
        assert_int_equal(sim_link_set(r.sim, root->guid, num, true), 0);
        rig_run(&r, 5 * MONO_S);
        assert_int_equal(stats(&r).mft_blocks_set, sets);
        walk_all(&r, 0xc000, in, k);
    }
    assert_true(stats(&r).tree_jobs > s.tree_jobs);
    assert_int_equal(stats(&r).root_guid, s.root_guid);
    assert_int_equal(stats(&r).mft_failures, 0);
    client_done(&c);
    rig_done(&r);
}

// The manager may end at any moment, also while a worker makes a tree.
static void test_end(void **state)
{
    struct rig r;
    struct client c;
    uint64_t a[300];
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    uint32_t n = adapters(&r, a, 300);
    for (int i = 0; i < 12; i++) {
        client_init(&c, &r, a[n - 1]);
        struct mad_mc_member_record m = {.q_key = 0x0b1b, .p_key = 0xffff, .join_state = 1};
        uint8_t wire[56];
        memcpy(m.mgid, broadcast, 16);
        gid(a[i], m.port_gid);
        mad_mc_member_record_encode(&m, wire);
        send(&c, MAD_METHOD_SET, MAD_SA_ATTR_MC_MEMBER_RECORD, JOIN_MASK, wire, sizeof(wire), 0);
        rig_run(&r, i * MONO_US);
        client_done(&c);
        rig_down(&r);
        up(&r);
    }
    rig_done(&r);
}

static void test_restart(void **state)
{
    struct rig r;
    struct client c;
    struct sm_sa_stats s;
    uint64_t a[300], in[64] = {0};
    const uint8_t own[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    (void)state;

    rig_init(&r, "rail-64", SIM);
    up(&r);
    uint32_t n = adapters(&r, a, 300), k = 0;
    client_init(&c, &r, a[n - 1]);
    for (uint32_t i = 0; i < n && k < 32; i += 2) {
        assert_int_equal(join_as(&c, broadcast, a[i], 1, JOIN_MASK), 0);
        assert_int_equal(join_as(&c, own, a[i], 1, CREATE_MASK), 0);
        in[k++] = a[i];
    }
    uint16_t mlid = member_of(&c).mlid;
    rig_down(&r);
    up(&r);
    rig_run(&r, MONO_S);
    assert_int_equal(members_of(&r), 2 * k);
    sm_sa_stats(r.sm, &s);
    assert_false(s.mft_held);
    assert_int_equal(s.mft_blocks_set, 0); // all is there
    walk_all(&r, 0xc000, in, k);
    walk_all(&r, mlid, in, k);
    assert_int_equal(leave(&c, own, in[0], 1), 0);
    rig_down(&r);
    up(&r);
    assert_int_equal(members_of(&r), 2 * k - 1);

    // Without the database the groups are lost: the tables stay until members have joined again.
    rig_down(&r);
    char cmd[300];
    snprintf(cmd, sizeof(cmd), "%s/meta.db", r.dir);
    remove(cmd);
    up(&r);
    rig_run(&r, MONO_S);
    walk_all(&r, 0xc000, in, k);
    for (uint32_t i = 0; i < k; i++) {
        assert_int_equal(join_as(&c, broadcast, in[i], 1, JOIN_MASK), 0);
        sm_sa_stats(r.sm, &s);
        assert_true(s.mft_held);
        walk_all(&r, 0xc000, in, k);
    }
    walk_all(&r, 0xc000, in, k);
    rig_run(&r, 40 * MONO_S);
    sm_sa_stats(r.sm, &s);
    assert_false(s.mft_held);
    walk_all(&r, 0xc000, in, k);
    client_done(&c);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),   cmocka_unit_test(test_join_and_leave),
        cmocka_unit_test(test_dead_link), cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_soon),      cmocka_unit_test(test_end),
        cmocka_unit_test(test_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
