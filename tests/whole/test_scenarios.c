// SPDX-License-Identifier: Apache-2.0
// What fabrics and operators do to a manager: odd cabling and devices, changes in the middle of a bring-up,
// restarts at any moment, fabrics that somebody else has set up.
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/rig.h"

#define TIMED                                                                                                \
    &(struct sim_opts)                                                                                       \
    {                                                                                                        \
        .seed = 3, .link_latency_ns = 1000, .service_ns = 5000                                               \
    }

static void up(struct rig *r)
{
    rig_up(r);
    rig_sweeps(r, 1, 300);
    if (!rig_last(r)->ok)
        fail_msg("%s", rig_last(r)->text);
}

// Until nothing has happened for ten seconds; then all must be as it should.
static void settle(struct rig *r)
{
    unsigned before = r->sweeps;
    for (int i = 0; i < 60; i++) {
        rig_run(r, 10 * MONO_S);
        if (r->sweeps == before)
            break;
        before = r->sweeps;
    }
    assert_true(rig_last(r)->ok);
    rig_judge(r, NULL, 0);
}

static bool finding(const struct rig *r, const char *code)
{
    const struct findings *f = sm_findings(r->sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, code) == 0)
            return true;
    return false;
}

static const struct node *with_role(const struct rig *r, enum node_role role, unsigned nth)
{
    for (uint32_t i = 0; i < r->plan->num_nodes; i++)
        if (r->plan->node[i].role == role && nth-- == 0)
            return &r->plan->node[i];
    fail_msg("no such node");
    return NULL;
}

// --- fabrics by hand ---

static node_id add(struct builder *b, uint64_t guid, enum node_type type, unsigned ports, uint16_t lft_cap)
{
    struct node_attrs a = {.guid = guid,
                           .sys_guid = guid,
                           .type = type,
                           .num_ports = (uint8_t)ports,
                           .partition_cap = 32,
                           .lft_cap = type == NODE_SWITCH ? lft_cap : 0,
                           .vendor_id = 0x2c9};
    struct port_attrs p = {.state = PORT_INIT,
                           .phys_state = 5,
                           .width_active = 2,
                           .width_supported = 3,
                           .width_enabled = 3,
                           .speed_active = 4,
                           .speed_supported = 7,
                           .speed_enabled = 7,
                           .mtu_cap = 5,
                           .vl_cap = 4};
    char name[32];
    node_id n;
    snprintf(name, sizeof(name), "%s-%llx", type == NODE_SWITCH ? "sw" : "host", (unsigned long long)guid);
    assert_int_equal(builder_node(b, &a, name, strlen(name), &n, NULL), 0);
    for (unsigned i = type == NODE_SWITCH ? 0 : 1; i <= ports; i++)
        builder_port(b, n, i, &p);
    for (unsigned i = 1; i <= ports && type != NODE_SWITCH; i++)
        builder_port_guid(b, n, i, guid + i);
    if (type == NODE_SWITCH)
        builder_port_guid(b, n, 0, guid);
    return n;
}

static void cable(struct builder *b, node_id a, unsigned an, node_id z, unsigned zn)
{
    assert_int_equal(builder_link(b, a, an, z, zn), 0);
}

// Two switches with a trunk, n hosts on each.
static const struct fabric *dumbbell(unsigned n, uint16_t cap_a, uint16_t cap_z)
{
    struct builder *b = builder_new();
    node_id a = add(b, 0x1000, NODE_SWITCH, 36, cap_a), z = add(b, 0x2000, NODE_SWITCH, 36, cap_z);
    cable(b, a, 36, z, 36);
    for (unsigned i = 0; i < n; i++) {
        node_id x = add(b, 0x10000 + i * 16, NODE_CA, 1, 0), y = add(b, 0x20000 + i * 16, NODE_CA, 1, 0);
        cable(b, a, i + 1, x, 1);
        cable(b, z, i + 1, y, 1);
        if (i == 0)
            builder_sm_port(b, x, 1);
    }
    return builder_seal(b, 1, NULL);
}

static void test_dual_port_adapter(void **state)
{
    struct rig r;
    struct builder *b = builder_new();
    struct sim_port_view v1, v2;
    (void)state;
    node_id a = add(b, 0x1000, NODE_SWITCH, 8, 1024), z = add(b, 0x2000, NODE_SWITCH, 8, 1024);
    node_id own = add(b, 0x100, NODE_CA, 2, 0), two = add(b, 0x200, NODE_CA, 2, 0);
    node_id same = add(b, 0x300, NODE_CA, 2, 0);
    cable(b, a, 8, z, 8);
    cable(b, a, 1, own, 1);
    cable(b, z, 1, own, 2);
    cable(b, a, 2, two, 1);
    cable(b, z, 2, two, 2);
    cable(b, a, 3, same, 1);
    cable(b, a, 4, same, 2);
    builder_sm_port(b, own, 1);
    rig_init_fabric(&r, builder_seal(b, 1, NULL), TIMED);
    up(&r);
    rig_judge(&r, NULL, 0);
    assert_int_equal(sim_port_view(r.sim, 0x300, 1, &v1), 0);
    assert_int_equal(sim_port_view(r.sim, 0x300, 2, &v2), 0);
    assert_int_not_equal(v1.lid, v2.lid);
    assert_int_equal(sm_findings(r.sm)->total, 0);
    rig_done(&r);
}

static void test_manager_on_a_switch(void **state)
{
    struct rig r;
    struct builder *b = builder_new();
    (void)state;
    node_id a = add(b, 0x1000, NODE_SWITCH, 8, 1024), z = add(b, 0x2000, NODE_SWITCH, 8, 1024);
    node_id x = add(b, 0x100, NODE_CA, 1, 0), y = add(b, 0x200, NODE_CA, 1, 0);
    cable(b, a, 8, z, 8);
    cable(b, a, 1, x, 1);
    cable(b, z, 1, y, 1);
    builder_sm_port(b, a, 0);
    rig_init_fabric(&r, builder_seal(b, 1, NULL), TIMED);
    up(&r);
    rig_judge(&r, NULL, 0);
    assert_int_equal(sm_fabric(r.sm)->num_nodes, 4);
    assert_int_equal(sim_link_set(r.sim, 0x1000, 8, false), 0);
    rig_run(&r, 3 * MONO_S);
    assert_int_equal(sm_fabric(r.sm)->num_nodes, 2);
    assert_int_equal(sim_link_set(r.sim, 0x1000, 8, true), 0);
    settle(&r);
    rig_done(&r);
}

static void test_254_ports(void **state)
{
    struct rig r;
    struct builder *b = builder_new();
    (void)state;
    node_id a = add(b, 0x1000, NODE_SWITCH, 254, 49152), z = add(b, 0x2000, NODE_SWITCH, 254, 49152);
    for (unsigned i = 1; i <= 254; i++) {
        if (i > 250) {
            cable(b, a, i, z, i);
            continue;
        }
        node_id h = add(b, 0x10000 + i * 16, NODE_CA, 1, 0);
        cable(b, i & 1 ? a : z, i, h, 1);
        if (i == 1)
            builder_sm_port(b, h, 1);
    }
    rig_init_fabric(&r, builder_seal(b, 1, NULL), TIMED);
    up(&r);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// All tables are too small: as many ports as fit have a LID and reach each other.
static void test_small_tables(void **state)
{
    struct rig r;
    unsigned with = 0;
    (void)state;
    rig_init_fabric(&r, dumbbell(10, 16, 16), TIMED);
    up(&r);
    assert_true(finding(&r, "lids-exhausted"));
    assert_int_equal(sm_fabric(r.sm)->top_lid, 15);
    for (uint32_t i = 0; i < r.plan->num_nodes; i++) {
        struct sim_port_view v;
        assert_int_equal(sim_port_view(r.sim, r.plan->node[i].guid, r.plan->node[i].type != NODE_SWITCH, &v),
                         0);
        assert_in_range(v.lid, 0, 15);
        with += v.lid != 0;
    }
    assert_int_equal(with, 15);
    unsigned sweeps = r.sweeps;
    rig_run(&r, 100 * MONO_S);
    assert_in_range(r.sweeps - sweeps, 0, 3);
    rig_done(&r);
}

// One spine's table is too small: it is left out, nobody loses a LID.
static void test_one_small_table(void **state)
{
    struct rig r;
    struct builder *b = builder_new();
    node_id sw[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        sw[i] = add(b, 0x1000 * (i + 1), NODE_SWITCH, 36, i == 3 ? 8 : 1024);
    for (unsigned i = 0; i < 20; i++) {
        node_id h = add(b, 0x10000 + i * 16, NODE_CA, 1, 0);
        cable(b, sw[i % 2], 1 + i, h, 1);
        if (i == 0)
            builder_sm_port(b, h, 1);
    }
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 2; k < 4; k++)
            cable(b, sw[i], 30 + k, sw[k], 1 + i);
    rig_init_fabric(&r, builder_seal(b, 1, NULL), TIMED);
    up(&r);
    assert_true(finding(&r, "table-too-small"));
    uint64_t small = 0x4000;
    rig_judge(&r, &small, 1);
    unsigned sweeps = r.sweeps;
    rig_run(&r, 100 * MONO_S);
    assert_in_range(r.sweeps - sweeps, 0, 3);
    rig_done(&r);
}

static void test_self_cable(void **state)
{
    struct rig r;
    (void)state;
    rig_init_fabric(&r, dumbbell(4, 1024, 1024), TIMED);
    assert_int_equal(sim_recable(r.sim, 0x1000, 20, 0x1000, 21), 0);
    up(&r);
    assert_true(finding(&r, "self-link"));
    unsigned sweeps = r.sweeps;
    rig_run(&r, 60 * MONO_S);
    assert_int_equal(r.sweeps, sweeps);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// Gives the host at leaf port 2 an M_Key, as an earlier manager would have.
static void lock_host(struct rig *r, uint64_t m_key, uint8_t protect)
{
    struct mad_port_info pi = {
        .m_key = m_key, .m_key_protect_bits = protect, .neighbor_mtu = 5, .lid = 9, .master_sm_lid = 9};
    uint8_t mad[MAD_SIZE] = {0};
    struct transport *t = sim_attach(r->sim, 0, NULL);
    struct mad_smp_to to = {.dr = true, .hops = 2, .path = {0, 1, 2}};
    assert_int_equal(mad_smp_build(mad, &to, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 1, 77, 0, NULL, NULL), 0);
    mad_port_info_encode(&pi, mad + MAD_SMP_DATA_OFFSET);
    assert_int_equal(t->ops->send(t, mad, &(struct mad_addr){.lid = 0xffff}, 0), 0);
    rig_run(r, MONO_S);
    t->ops->free(t);
}

// A host that somebody else's M_Key protects is silent; the others come up, and it does when it is freed.
static void test_m_key(void **state)
{
    struct rig r;
    uint64_t locked = 0x10010;
    (void)state;
    rig_init_fabric(&r, dumbbell(4, 1024, 1024), TIMED);
    lock_host(&r, 0x1234, 2);
    up(&r);
    assert_true(finding(&r, "peer-silent"));
    rig_judge(&r, &locked, 1);
    unsigned sweeps = r.sweeps;
    rig_run(&r, 60 * MONO_S);
    assert_in_range(r.sweeps - sweeps, 0, 2);
    assert_int_equal(sim_node_reboot(r.sim, locked), 0); // which loses the key
    settle(&r);
    rig_done(&r);
}

// A key that can be read is used, kept and told.
static void test_readable_m_key(void **state)
{
    struct rig r;
    uint64_t key;
    (void)state;
    rig_init_fabric(&r, dumbbell(4, 1024, 1024), TIMED);
    lock_host(&r, 0x1234, 0);
    up(&r);
    assert_true(finding(&r, "m-key"));
    rig_judge(&r, NULL, 0);
    assert_int_equal(sim_port_field(r.sim, 0x10010, 1, "m_key", &key), 0);
    assert_int_equal(key, 0x1234);
    rig_done(&r);
}

// An agent that takes longer than every time-out of the first tries.
static void test_slow_agent(void **state)
{
    struct rig r;
    (void)state;
    rig_init_fabric(&r, dumbbell(4, 1024, 1024), TIMED);
    sim_node_slow(r.sim, 0x20010, 60000); // 300 ms a request
    sim_node_slow(r.sim, 0x2000, 2000);   // 10 ms, a switch
    up(&r);
    settle(&r);
    rig_done(&r);
}

// Our own cable is out for minutes: nothing is done meanwhile, and all is well at once when it is back.
static void test_own_port_down(void **state)
{
    struct rig r;
    (void)state;
    rig_init_fabric(&r, dumbbell(4, 1024, 1024), TIMED);
    up(&r);
    assert_int_equal(sim_link_set(r.sim, 0x1000, 1, false), 0);
    rig_run(&r, 200 * MONO_S);
    struct sm_status st;
    sm_get_status(r.sm, &st);
    assert_int_equal(st.error.code, -ENETDOWN);
    assert_in_range(r.sweeps, 2, 4);
    assert_int_equal(sim_link_set(r.sim, 0x1000, 1, true), 0);
    rig_run(&r, 2 * MONO_S);
    rig_judge(&r, NULL, 0);
    sm_get_status(r.sm, &st);
    assert_int_equal(st.error.code, 0);
    rig_done(&r);
    // Out from the start.
    rig_init_fabric(&r, dumbbell(4, 1024, 1024), TIMED);
    assert_int_equal(sim_link_set(r.sim, 0x1000, 1, false), 0);
    rig_up(&r);
    rig_run(&r, 200 * MONO_S);
    assert_int_equal(r.sweeps, 1);
    assert_int_equal(sim_link_set(r.sim, 0x1000, 1, true), 0);
    rig_run(&r, 2 * MONO_S);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// --- changes in the middle ---

struct in_phase {
    const char *phase;
    uint64_t guid;
    unsigned port;
    bool reboot, done;
    struct loop_timer back;
    struct rig *r;
};

static void back_up(void *arg)
{
    struct in_phase *p = arg;
    sim_link_set(p->r->sim, p->guid, p->port, true);
}

static void act_in_phase(struct rig *r, const uint8_t *mad)
{
    struct in_phase *p = r->user;
    struct sm_status st;
    (void)mad;
    if (p->done)
        return;
    sm_get_status(r->sm, &st);
    if (strcmp(st.phase, p->phase) != 0)
        return;
    p->done = true;
    if (p->reboot) {
        assert_int_equal(sim_switch_reboot(r->sim, p->guid), 0);
    } else {
        assert_int_equal(sim_link_set(r->sim, p->guid, p->port, false), 0);
        loop_timer_after(&p->back, 100 * 1000);
    }
}

static void change_in(const char *phase, bool reboot, enum node_role role, bool cold)
{
    struct rig r;
    struct in_phase p = {.phase = phase, .port = 33, .reboot = reboot, .r = &r};
    rig_init(&r, "rail-16",
             &(struct sim_opts){.seed = 3, .link_latency_ns = 1000, .service_ns = 5000, .train_ns = 50000});
    loop_timer_init(&p.back, r.loop, "test", back_up, &p);
    p.guid = with_role(&r, role, 1)->guid;
    if (role == ROLE_SPINE)
        p.port = 1;
    r.user = &p;
    if (!cold)
        up(&r);
    r.on_send = act_in_phase;
    if (cold)
        rig_up(&r);
    else
        sm_resweep(r.sm, "operator", true);
    rig_sweeps(&r, 1, 300);
    if (cold)
        assert_true(p.done);
    settle(&r);
    assert_int_equal(sm_fabric(r.sm)->num_links, r.plan->num_links);
    rig_done(&r);
}

static const char *const phases[] = {"discover", "route", "configure", "tables", "links", "hosts"};

static void test_flap_in_each_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (strcmp(phases[i], "configure") == 0)
            continue; // runs beside "route" and "tables" and bears its name only when it ends last
        change_in(phases[i], false, ROLE_LEAF, true);
        change_in(phases[i], false, ROLE_SPINE, false);
    }
}

static void test_reboot_in_each_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (strcmp(phases[i], "configure") == 0)
            continue;
        change_in(phases[i], true, ROLE_SPINE, true);
        change_in(phases[i], true, ROLE_LEAF, false);
    }
}

struct at_mad {
    unsigned n, at;
    uint16_t attr; // 0 = any; Sets of it are counted
    uint64_t reboot;
    bool stop;
};

static void count_mads(struct rig *r, const uint8_t *mad)
{
    struct at_mad *a = r->user;
    struct mad_smp s;
    mad_smp_decode(mad, &s);
    if (a->attr != 0 && (s.attr_id != a->attr || s.method != MAD_METHOD_SET))
        return;
    if (a->n++ != a->at)
        return;
    a->stop = true;
    if (a->reboot != 0)
        assert_int_equal(sim_switch_reboot(r->sim, a->reboot), 0);
}

// A switch reboots between two of its table blocks, between the blocks and LinearFDBTop, ...
static void test_reboot_at_each_set(void **state)
{
    static const uint16_t attr[] = {MAD_ATTR_LINEAR_FORWARDING_TABLE, MAD_ATTR_SWITCH_INFO,
                                    MAD_ATTR_PORT_INFO};
    (void)state;
    for (unsigned k = 0; k < 36; k++) {
        struct rig r;
        struct at_mad a = {.attr = attr[k % 3], .at = k / 3 * (k % 3 == 2 ? 60 : 2)};
        rig_init(
            &r, "rail-16",
            &(struct sim_opts){
                .seed = k, .link_latency_ns = 1000, .service_ns = 5000, .train_ns = k & 1 ? 1000 : 3000000});
        a.reboot = with_role(&r, k & 2 ? ROLE_SPINE : ROLE_LEAF, 1)->guid;
        r.user = &a;
        r.on_send = count_mads;
        rig_up(&r);
        rig_sweeps(&r, 1, 300);
        r.on_send = NULL;
        settle(&r);
        rig_done(&r);
    }
}

static uint16_t *lids_now(const struct rig *r)
{
    uint16_t *lid = calloc(r->plan->num_nodes, sizeof(*lid));
    for (uint32_t i = 0; i < r->plan->num_nodes; i++) {
        struct sim_port_view v;
        unsigned num = r->plan->node[i].type != NODE_SWITCH;
        assert_int_equal(sim_port_view(r->sim, r->plan->node[i].guid, num, &v), 0);
        lid[i] = v.lid;
    }
    return lid;
}

// The manager is gone after any number of MADs of a bring-up and comes again: no LID ever moves.
static void test_restart_at_any_mad(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 1600; at += 40) {
        struct rig r;
        struct at_mad a = {.at = at};
        rig_init(&r, "ft3-4-2", TIMED);
        r.user = &a;
        r.on_send = count_mads;
        rig_up(&r);
        if (!loop_run_until(r.loop, &a.stop, MONO_S))
            at = 1600; // the bring-up takes no more
        rig_down(&r);
        r.on_send = NULL;
        uint16_t *before = lids_now(&r);
        up(&r);
        settle(&r);
        uint16_t *after = lids_now(&r);
        for (uint32_t i = 0; i < r.plan->num_nodes; i++)
            if (before[i] != 0)
                assert_int_equal(before[i], after[i]);
        free(before);
        free(after);
        rig_done(&r);
    }
}

// The same while tables are being rewritten because a trunk has gone.
static void test_restart_while_rerouting(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 400; at += 20) {
        struct rig r;
        struct at_mad a = {.at = at};
        rig_init(&r, "ft3-4-4", TIMED);
        up(&r);
        uint16_t *before = lids_now(&r);
        r.user = &a;
        r.on_send = count_mads;
        const struct node *spine = with_role(&r, ROLE_SPINE, at / 20 % 8);
        assert_int_equal(sim_link_set(r.sim, spine->guid, 1 + at / 20 % 4, false), 0);
        bool all = !loop_run_until(r.loop, &a.stop, MONO_S);
        rig_down(&r);
        r.on_send = NULL;
        up(&r);
        rig_run(&r, 5 * MONO_S);
        rig_judge(&r, NULL, 0);
        assert_int_equal(sim_link_set(r.sim, spine->guid, 1 + at / 20 % 4, true), 0);
        settle(&r);
        uint16_t *after = lids_now(&r);
        assert_memory_equal(before, after, r.plan->num_nodes * sizeof(*before));
        free(before);
        free(after);
        rig_done(&r);
        if (all)
            break;
    }
}

// --- what somebody else has set up ---

static const struct fabric *with_lids(const char *name, unsigned first, unsigned step)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    struct builder *b = builder_from(f);
    unsigned lid = first;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        struct port_attrs a = p->a;
        if (p->num > 0 && !port_valid(p->peer))
            continue;
        if (p->num > 0)
            a.state = PORT_ACTIVE;
        if (port_is_end(f, p)) {
            a.lid = (uint16_t)lid;
            lid += step;
        }
        assert_int_equal(builder_port(b, p->node, p->num, &a), 0);
    }
    const struct fabric *g = builder_seal(b, 2, NULL);
    fabric_unref(f);
    return g;
}

static void preload(struct rig *r, const struct fabric_tables *t, uint32_t hole_sw, uint16_t hole_lid)
{
    for (uint32_t sw = 0; sw < r->plan->num_switches; sw++) {
        uint8_t *row = malloc(t->lids);
        memcpy(row, tables_row(t, sw), t->lids);
        if (sw == hole_sw)
            row[hole_lid] = LFT_DROP;
        assert_int_equal(sim_set_lft(r->sim, fabric_switch(r->plan, sw)->guid, row, t->lids, t->top_lid), 0);
        free(row);
    }
}

struct foreign {
    unsigned state_sets, lft_sets, lid_sets;
};

static void watch_foreign(struct rig *r, const uint8_t *mad)
{
    struct foreign *w = r->user;
    struct mad_smp s;
    struct mad_port_info pi;
    mad_smp_decode(mad, &s);
    if (s.method != MAD_METHOD_SET)
        return;
    w->lft_sets += s.attr_id == MAD_ATTR_LINEAR_FORWARDING_TABLE;
    if (s.attr_id != MAD_ATTR_PORT_INFO)
        return;
    mad_port_info_decode(mad + MAD_SMP_DATA_OFFSET, &pi);
    w->state_sets += pi.port_state != MAD_PORT_NO_CHANGE || pi.port_physical_state != MAD_PHYS_NO_CHANGE;
}

// as: the engine that they are taken for; those that are what would be computed are nobody else's.
static void adopt(enum route_engine engine, unsigned first, unsigned step, const char *as)
{
    struct rig r;
    struct foreign w = {0};
    struct err e = {0};
    struct route_result res = {0};
    rig_init_fabric(&r, with_lids("rail-16", first, step),
                    &(struct sim_opts){.keep_state = true, .link_latency_ns = 1000, .service_ns = 5000});
    assert_int_equal(route_compute(r.plan, &(struct route_opts){.engine = engine}, &res, &e), 0);
    preload(&r, res.tables, UINT32_MAX, 0);
    tables_unref(res.tables);
    uint16_t *before = lids_now(&r);
    r.user = &w;
    r.on_send = watch_foreign;
    up(&r);
    assert_int_equal(w.lft_sets, 0);
    assert_int_equal(w.state_sets, 0);
    assert_string_equal(sm_tables(r.sm)->engine, as);
    uint16_t *after = lids_now(&r);
    assert_memory_equal(before, after, r.plan->num_nodes * sizeof(*before));
    rig_judge(&r, NULL, 0);
    rig_run(&r, 60 * MONO_S);
    assert_int_equal(w.lft_sets, 0);
    free(before);
    free(after);
    rig_done(&r);
}

static void test_adopt_foreign(void **state)
{
    (void)state;
    adopt(ROUTE_MINHOP, 1, 1, "adopted");
    adopt(ROUTE_MINHOP, 7, 3, "adopted");
    adopt(ROUTE_RAIL, 100, 2, "rail");
    adopt(ROUTE_UPDN, 3, 2, "adopted");
}

// Follows every LID from every switch through the tables as they stand: a circle is never right.
static void no_loops(struct rig *r)
{
    const struct fabric *f = r->plan;
    uint16_t top = sm_fabric(r->sm) != NULL ? sm_fabric(r->sm)->top_lid : f->top_lid;
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (uint16_t lid = 1; lid <= top; lid++) {
            const struct node *n = fabric_switch(f, sw);
            uint32_t hops = 0;
            while (n != NULL && n->type == NODE_SWITCH) {
                uint8_t out = LFT_DROP;
                uint64_t sw_top = 0;
                assert_int_equal(sim_switch_field(r->sim, n->guid, "linear_fdb_top", &sw_top), 0);
                if (lid > sw_top || sim_lft(r->sim, n->guid, lid, &out) != 0 || out == 0 || out == LFT_DROP)
                    break;
                port_id p = fabric_port_at(f, n, out);
                struct sim_port_view v;
                if (!port_valid(p) || sim_port_view(r->sim, n->guid, out, &v) != 0 || !v.linked)
                    break;
                n = fabric_peer_node(f, fabric_port(f, p));
                if (++hops > f->num_switches)
                    fail_msg("LID %u goes round from switch %u", lid, sw);
            }
        }
}

static bool look_after_each_block(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct mad_smp s;
    (void)from;
    (void)status;
    mad_smp_decode(mad, &s);
    if (s.attr_id == MAD_ATTR_LINEAR_FORWARDING_TABLE)
        no_loops(r);
    return false;
}

static void test_foreign_hole(void **state)
{
    struct rig r;
    struct foreign w = {0};
    struct err e = {0};
    struct route_result res = {0};
    (void)state;
    rig_init_fabric(&r, with_lids("rail-16", 1, 1),
                    &(struct sim_opts){.keep_state = true, .link_latency_ns = 1000, .service_ns = 5000});
    assert_int_equal(route_compute(r.plan, &(struct route_opts){.engine = ROUTE_MINHOP}, &res, &e), 0);
    preload(&r, res.tables, 2, 5);
    tables_unref(res.tables);
    r.user = &w;
    r.on_send = watch_foreign;
    r.take_recv = look_after_each_block;
    up(&r);
    assert_true(w.lft_sets > 0);
    assert_int_equal(w.state_sets, 0);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// Trunks go and come back on a tree with a choice of ways; every mix of old and new tables is looked at.
static void test_mixed_tables(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "ft3-4-4", TIMED);
    up(&r);
    r.take_recv = look_after_each_block;
    const struct fabric *f = r.plan;
    for (uint32_t i = 0, n = 0; i < f->num_ports && n < 10; i++) {
        const struct port *p = &f->port[i];
        const struct node *peer = p->num > 0 ? fabric_peer_node(f, p) : NULL;
        if (peer == NULL || peer->type != NODE_SWITCH || f->node[p->node.i].type != NODE_SWITCH || i % 3 != 0)
            continue;
        n++;
        assert_int_equal(sim_link_set(r.sim, f->node[p->node.i].guid, p->num, false), 0);
        rig_run(&r, 2 * MONO_S);
        assert_int_equal(sm_fabric(r.sm)->num_links, f->num_links - 1);
        rig_judge(&r, NULL, 0);
        assert_int_equal(sim_link_set(r.sim, f->node[p->node.i].guid, p->num, true), 0);
        rig_run(&r, 5 * MONO_S);
    }
    r.take_recv = NULL;
    settle(&r);
    rig_done(&r);
}

static bool refuse_blocks(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    unsigned *refused = r->user;
    uint8_t copy[MAD_SIZE];
    struct mad_smp s;
    mad_smp_decode(mad, &s);
    if (status != 0 || s.attr_id != MAD_ATTR_LINEAR_FORWARDING_TABLE || s.hop_count != 3 || *refused > 0)
        return false;
    memcpy(copy, mad, MAD_SIZE);
    copy[5] = MAD_STATUS_BAD_VALUE;
    ++*refused;
    rig_deliver(r, copy, from, 0);
    return true;
}

// On a ring half the routes turn round when a link goes, so that entries have to be dropped first. A switch
// refuses that, the sweep fails with some dropped; then the link is back, and the old tables are right again.
static void test_first_wave_fails(void **state)
{
    unsigned failed = 0;
    (void)state;
    for (unsigned cut = 0; cut < 6; cut++) {
        struct rig r;
        struct builder *b = builder_new();
        node_id sw[6];
        unsigned refused = 0;
        for (unsigned i = 0; i < 6; i++) {
            sw[i] = add(b, 0x1000 * (i + 1), NODE_SWITCH, 8, 1024);
            node_id h = add(b, 0x10000 + i * 16, NODE_CA, 1, 0);
            cable(b, sw[i], 1, h, 1);
            if (i == 0)
                builder_sm_port(b, h, 1);
        }
        for (unsigned i = 0; i < 6; i++)
            cable(b, sw[i], 2, sw[(i + 1) % 6], 3);
        rig_init_fabric(&r, builder_seal(b, 1, NULL), TIMED);
        up(&r);
        rig_judge(&r, NULL, 0);
        r.user = &refused;
        r.take_recv = refuse_blocks;
        assert_int_equal(sim_link_set(r.sim, 0x1000 * (cut + 1), 2, false), 0);
        rig_sweeps(&r, 1, 10);
        if (!rig_last(&r)->ok)
            failed++;
        assert_int_equal(sim_link_set(r.sim, 0x1000 * (cut + 1), 2, true), 0);
        settle(&r);
        rig_done(&r);
    }
    assert_true(failed > 0); // or the test tests nothing
}

// A leaf is away for a while, without a reset, and the tables change meanwhile.
static void test_switch_away(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "ft3-4-4", TIMED);
    up(&r);
    const struct node *leaf = with_role(&r, ROLE_LEAF, 5), *core = with_role(&r, ROLE_CORE, 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 1; i <= leaf->num_ports; i++) {
            const struct node *peer =
                fabric_peer_node(r.plan, fabric_port(r.plan, fabric_port_at(r.plan, leaf, i)));
            if (peer != NULL && peer->type == NODE_SWITCH)
                assert_int_equal(sim_link_set(r.sim, leaf->guid, i, round == 1), 0);
        }
        if (round == 0)
            for (unsigned i = 1; i <= core->num_ports / 2; i++)
                sim_link_set(r.sim, core->guid, i, false);
        rig_run(&r, 10 * MONO_S);
    }
    settle(&r);
    rig_done(&r);
}

// --- for long ---

static void test_thousand_sweeps(void **state)
{
    struct rig r;
    size_t at_100 = 0;
    (void)state;
    rig_init(&r, "ft3-4-2", NULL);
    up(&r);
    for (unsigned i = 1; i <= 1000; i++) {
        sm_resweep(r.sm, "operator", i % 7 == 0);
        rig_sweeps(&r, 1, 60);
        if (i == 100)
            at_100 = mallinfo2().uordblks;
    }
    size_t now = mallinfo2().uordblks;
    assert_true(now < at_100 + 64 * 1024);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dual_port_adapter),
        cmocka_unit_test(test_manager_on_a_switch),
        cmocka_unit_test(test_254_ports),
        cmocka_unit_test(test_small_tables),
        cmocka_unit_test(test_one_small_table),
        cmocka_unit_test(test_self_cable),
        cmocka_unit_test(test_m_key),
        cmocka_unit_test(test_readable_m_key),
        cmocka_unit_test(test_slow_agent),
        cmocka_unit_test(test_own_port_down),
        cmocka_unit_test(test_flap_in_each_phase),
        cmocka_unit_test(test_reboot_in_each_phase),
        cmocka_unit_test(test_reboot_at_each_set),
        cmocka_unit_test(test_restart_at_any_mad),
        cmocka_unit_test(test_restart_while_rerouting),
        cmocka_unit_test(test_adopt_foreign),
        cmocka_unit_test(test_foreign_hole),
        cmocka_unit_test(test_mixed_tables),
        cmocka_unit_test(test_first_wave_fails),
        cmocka_unit_test(test_switch_away),
        cmocka_unit_test(test_thousand_sweeps),
    };
    if (getenv("ONLY"))
        cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
