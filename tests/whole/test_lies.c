// SPDX-License-Identifier: Apache-2.0
// One device that tells one lie for ever, or falls silent: what it costs, and what becomes of all others.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/guid.h"
#include "mad/mad.h"
#include "tests/whole/rig.h"

#define LONG_S 300 // of virtual time: no sweep of a small fabric takes longer, whatever is answered

// --- one lie for ever: how much work does it cost? ---

struct one_lie {
    uint64_t guid; // informative: whose
    uint16_t attr;
    uint8_t method; // of the request; 0 = any
    uint8_t hop2;   // the device: second hop of its path; 0 = the leaf itself (one hop)
    bool only_sets; // lies in answers to Sets
    void (*lie)(uint8_t *mad);
    unsigned told, asked;
    uint8_t set[256]; // by the low byte of the TID: the last request was a Set
};

static bool is_of(const struct one_lie *o, const struct mad_smp *s)
{
    return s->mgmt_class == MAD_CLASS_SM_DR && s->attr_id == o->attr &&
           (o->hop2 ? s->hop_count == 2 && s->initial_path[2] == o->hop2 : s->hop_count == 1);
}

static void watch_one(struct rig *r, const uint8_t *mad)
{
    struct one_lie *o = r->user;
    struct mad_smp s;
    mad_smp_decode(mad, &s);
    if (is_of(o, &s) && (o->method == 0 || s.method == o->method))
        o->asked++;
    o->set[s.tid & 0xff] = s.method == MAD_METHOD_SET;
}

static bool take_one(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct one_lie *o = r->user;
    uint8_t copy[MAD_SIZE];
    struct mad_smp s;
    mad_smp_decode(mad, &s);
    if (status != 0 || s.method != MAD_METHOD_GET_RESP || !is_of(o, &s) ||
        (o->only_sets && !o->set[s.tid & 0xff]))
        return false;
    memcpy(copy, mad, MAD_SIZE);
    o->lie(copy);
    o->told++;
    rig_deliver(r, copy, from, 0);
    return true;
}

// Ten minutes of it after a bring-up, or from the first MAD on. Returns the sweeps.
static unsigned endure(struct rig *r, struct one_lie *o, bool from_start)
{
    rig_init(r, "rail-16", &(struct sim_opts){.seed = 1, .link_latency_ns = 1000, .service_ns = 5000});
    r->user = o;
    r->on_send = watch_one;
    if (from_start)
        r->take_recv = take_one;
    rig_up(r);
    rig_sweeps(r, 1, LONG_S);
    r->take_recv = take_one;
    sm_resweep(r->sm, "operator", false);
    rig_sweeps(r, 1, LONG_S);
    unsigned before = r->sweeps;
    o->asked = 0;
    rig_run(r, 600 * MONO_S);
    return r->sweeps - before;
}

static void lie_state_change(uint8_t *mad)
{
    mad[MAD_SMP_DATA_OFFSET + 11] |= 4; // bit 93
}

static void test_always_changed(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_SWITCH_INFO, .lie = lie_state_change};
    (void)state;
    unsigned sweeps = endure(&r, &o, false);
    assert_in_range(sweeps, 1, 25);
    rig_heals(&r, 1);
    rig_done(&r);
}

static void lie_refuse(uint8_t *mad)
{
    mad[5] = MAD_STATUS_BAD_VALUE;
}

// Everything about PortInfo of one host is refused for ever.
static void test_refused_for_ever(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_PORT_INFO, .method = MAD_METHOD_SET, .hop2 = 2, .lie = lie_refuse};
    (void)state;
    unsigned sweeps = endure(&r, &o, true);
    assert_in_range(sweeps, 0, 25);
    assert_in_range(o.asked, 0, 25);
    rig_heals(&r, 2);
    rig_done(&r);
    // Only the Sets: it can be read.
    o = (struct one_lie){.attr = MAD_ATTR_PORT_INFO,
                         .method = MAD_METHOD_SET,
                         .hop2 = 2,
                         .only_sets = true,
                         .lie = lie_refuse};
    sweeps = endure(&r, &o, true);
    assert_in_range(sweeps, 0, 25);
    rig_heals(&r, 2);
    rig_done(&r);
}

// The state ACTIVE alone is refused; the port stays ARMED as far as it tells.
static void lie_armed(uint8_t *mad)
{
    uint8_t *b = &mad[MAD_SMP_DATA_OFFSET + 32];
    if ((*b & 0x0f) == MAD_PORT_ACTIVE)
        *b = (uint8_t)((*b & 0xf0) | MAD_PORT_ARMED);
}

static void test_active_refused(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_PORT_INFO, .method = MAD_METHOD_SET, .hop2 = 2, .lie = lie_armed};
    (void)state;
    unsigned sweeps = endure(&r, &o, true);
    assert_in_range(sweeps, 1, 25);
    assert_in_range(o.asked, 1, 25);
    rig_heals(&r, 2);
    rig_done(&r);
    // On a trunk of our leaf: no table counts on it.
    o = (struct one_lie){.attr = MAD_ATTR_PORT_INFO, .method = MAD_METHOD_SET, .hop2 = 33, .lie = lie_armed};
    sweeps = endure(&r, &o, true);
    assert_in_range(sweeps, 1, 25);
    const struct fabric *f = sm_fabric(r.sm);
    assert_true(f->num_links < r.plan->num_links);
    rig_heals(&r, 3);
    rig_done(&r);
}

// One switch says that its table holds two entries: it is left out, and nobody's LID changes.
static void lie_cap(uint8_t *mad)
{
    mad[MAD_SMP_DATA_OFFSET] = 0;
    mad[MAD_SMP_DATA_OFFSET + 1] = 2;
}

static void test_small_cap(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_SWITCH_INFO, .hop2 = 33, .lie = lie_cap};
    struct sim_port_view v;
    (void)state;
    unsigned sweeps = endure(&r, &o, false);
    assert_in_range(sweeps, 0, 5);
    assert_true(rig_last(&r)->ok);
    uint64_t spine = 0;
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        if (r.plan->node[i].role == ROLE_SPINE && spine == 0)
            spine = r.plan->node[i].guid;
    rig_judge(&r, &spine, 1);
    for (uint32_t i = 0; i < r.plan->num_nodes; i++) {
        const struct node *n = &r.plan->node[i];
        assert_int_equal(sim_port_view(r.sim, n->guid, n->type != NODE_SWITCH, &v), 0);
        assert_in_range(v.lid, 1, r.plan->num_nodes);
    }
    rig_heals(&r, 2);
    rig_done(&r);
}

// --- somebody else's identity ---

struct thief {
    uint8_t hop2;                  // the second hop of the device that lies
    uint64_t node_guid, port_guid; // what it says it is; 0 = the truth
};

static bool take_stolen(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct thief *t = r->user;
    uint8_t copy[MAD_SIZE];
    struct mad_node_info ni;
    struct mad_smp s;
    mad_smp_decode(mad, &s);
    if (status != 0 || s.attr_id != MAD_ATTR_NODE_INFO || s.hop_count != 2 || s.initial_path[2] != t->hop2)
        return false;
    memcpy(copy, mad, MAD_SIZE);
    mad_node_info_decode(copy + MAD_SMP_DATA_OFFSET, &ni);
    if (t->node_guid != 0)
        ni.node_guid = t->node_guid;
    if (t->port_guid != 0)
        ni.port_guid = t->port_guid;
    mad_node_info_encode(&ni, copy + MAD_SMP_DATA_OFFSET);
    rig_deliver(r, copy, from, 0);
    return true;
}

// The others come up and stay up; the thief gets nothing that is theirs. Returns what is said about it.
static void theft(uint64_t node_guid, uint64_t port_guid, const char *code)
{
    struct rig r;
    struct thief t = {.hop2 = 2, .node_guid = node_guid, .port_guid = port_guid};
    rig_init(&r, "rail-16", NULL);
    const struct port *own = fabric_port(r.plan, r.plan->sm_port);
    const struct fabric *f = r.plan;
    const struct node *leaf = fabric_peer_node(f, own);
    uint64_t liar = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, leaf, 2)))->guid;
    if (t.port_guid == 1)
        t.port_guid = own->guid;
    if (t.node_guid == 1)
        t.node_guid = fabric_node(f, own->node)->guid;
    if (t.node_guid == 2)
        t.node_guid = leaf->guid;
    r.user = &t;
    r.take_recv = take_stolen;
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    rig_run(&r, 10 * MONO_S);
    assert_true(rig_last(&r)->ok);
    uint64_t odd[] = {liar, node_guid > 2   ? node_guid
                            : port_guid > 1 ? port_guid - 1
                                            : liar}; // either may be taken for the owner
    rig_judge(&r, odd, 2);
    bool found = false;
    for (size_t i = 0; i < sm_findings(r.sm)->n; i++)
        found |= strcmp(sm_findings(r.sm)->item[i].code, code) == 0;
    if (!found)
        fail_msg("no finding %s", code);
    unsigned before = r.sweeps;
    rig_run(&r, 100 * MONO_S);
    assert_in_range(r.sweeps - before, 0, 3);
    rig_heals(&r, 2);
    rig_done(&r);
}

static void test_duplicate_guids(void **state)
{
    (void)state;
    theft(0x0002c90300000002, 0, "duplicate-guid");      // another adapter's
    theft(1, 0, "duplicate-guid");                       // ours
    theft(2, 0, "duplicate-guid");                       // the leaf's
    theft(0, 0x0002c90300000003, "duplicate-port-guid"); // another adapter's PortGUID
    theft(0, 1, "duplicate-port-guid");                  // ours
}

static void lie_init(uint8_t *mad)
{
    uint8_t *b = &mad[MAD_SMP_DATA_OFFSET + 32];
    *b = (uint8_t)((*b & 0xf0) | MAD_PORT_INIT);
}

// ... or it says that all is well and stays in INIT.
static void test_init_for_ever(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_PORT_INFO, .method = MAD_METHOD_SET, .hop2 = 2, .lie = lie_init};
    (void)state;
    unsigned sweeps = endure(&r, &o, true);
    assert_in_range(sweeps, 1, 25);
    assert_in_range(o.asked, 1, 80);
    rig_heals(&r, 2);
    rig_done(&r);
}

static void lie_lid(uint8_t *mad)
{
    mad[MAD_SMP_DATA_OFFSET + 16] = mad[MAD_SMP_DATA_OFFSET + 17] = 0;
}

// ... or it never takes its LID: told, tried again at leisure, and healed when it does.
static void test_lid_not_kept(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_PORT_INFO, .method = MAD_METHOD_SET, .hop2 = 2, .lie = lie_lid};
    (void)state;
    unsigned sweeps = endure(&r, &o, true);
    assert_in_range(sweeps, 1, 25);
    assert_in_range(o.asked, 1, 80);
    assert_true(sm_findings(r.sm)->total > 0);
    rig_heals(&r, 2);
    rig_done(&r);
}

static void lie_top(uint8_t *mad)
{
    mad[MAD_SMP_DATA_OFFSET + 6] = mad[MAD_SMP_DATA_OFFSET + 7] = 0;
}

// A switch whose LinearFDBTop never rises: it is told, and not written without end.
static void test_top_not_kept(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_SWITCH_INFO, .method = MAD_METHOD_SET, .lie = lie_top};
    (void)state;
    unsigned sweeps = endure(&r, &o, false);
    assert_in_range(sweeps, 1, 25);
    assert_in_range(o.asked, 1, 50);
    rig_heals(&r, 1);
    rig_done(&r);
}

// A device that says PartitionCap 65535 and answers no P_Key table: a sweep still ends soon.
static void lie_p_key_cap(uint8_t *mad)
{
    mad[MAD_SMP_DATA_OFFSET + 28] = mad[MAD_SMP_DATA_OFFSET + 29] = 0xff;
}
static bool drop_p_key(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct mad_smp s;
    (void)r;
    (void)to;
    mad_smp_decode(mad, &s);
    return s.attr_id == MAD_ATTR_P_KEY_TABLE && s.hop_count == 2 && s.initial_path[2] == 2;
}

static void test_endless_p_keys(void **state)
{
    struct rig r;
    struct one_lie o = {.attr = MAD_ATTR_NODE_INFO, .hop2 = 2, .lie = lie_p_key_cap};
    (void)state;
    rig_init(&r, "rail-16", NULL);
    r.user = &o;
    r.take_recv = take_one;
    r.take_send = drop_p_key;
    rig_up(&r);
    rig_sweeps(&r, 1, 20);
    assert_true(rig_last(&r)->ok);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A spine dies as soon as it has told how many ports it has.
static bool drop_ports(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct mad_smp s;
    (void)r;
    (void)to;
    mad_smp_decode(mad, &s);
    return s.hop_count == 2 && s.initial_path[2] == 33 &&
           (s.method == MAD_METHOD_SET || (s.attr_id == MAD_ATTR_PORT_INFO && s.attr_mod != 0));
}

static void test_switch_falls_silent(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-16", NULL);
    r.take_send = drop_ports;
    rig_up(&r);
    rig_sweeps(&r, 1, 20);
    assert_true(rig_last(&r)->ok);
    rig_heals(&r, 3);
    rig_done(&r);
}

// --- silence ---

static void test_silent_for_ever(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-16", &(struct sim_opts){.seed = 1, .link_latency_ns = 1000, .service_ns = 5000});
    uint64_t dead = r.plan->node[5].guid;
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        if (r.plan->node[i].type == NODE_CA &&
            r.plan->node[i].guid != fabric_node(r.plan, fabric_port(r.plan, r.plan->sm_port)->node)->guid)
            dead = r.plan->node[i].guid;
    sim_node_kill(r.sim, dead, true);
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    struct mad_engine_stats a, b;
    mad_engine_stats(r.engine, &a);
    rig_run(&r, 600 * MONO_S);
    mad_engine_stats(r.engine, &b);
    assert_in_range(r.sweeps, 1, 3);
    assert_in_range(b.sent - a.sent, 1, 600 * (12 + 1) + 4000); // one a switch and one for the silent device
    // It does not hold up what has to be done for the others.
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, LONG_S);
    assert_in_range(rig_last(&r)->ns, 0, MONO_S);
    // It comes back as a slow one: 300 ms an answer.
    sim_node_kill(r.sim, dead, false);
    sim_node_slow(r.sim, dead, 60000);
    rig_run(&r, 20 * MONO_S);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A device that answers some questions only: it is caught up with when it answers the rest, unasked.
struct mute {
    uint16_t attr;
    uint8_t hops, port; // the last hop of its path
    bool first_only;    // PortInfo of port 0 is answered
};

static bool drop_mute(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct mute *m = r->user;
    struct mad_smp s;
    (void)to;
    mad_smp_decode(mad, &s);
    return s.attr_id == m->attr && s.hop_count == m->hops && s.initial_path[m->hops] == m->port &&
           !(m->first_only && (s.attr_mod & 0xff) == 0);
}

static void test_mute(void **state)
{
    static const struct mute what[] = {
        {MAD_ATTR_PORT_INFO, 2, 2, false},
        {MAD_ATTR_PORT_INFO, 2, 33, false},
        {MAD_ATTR_PORT_INFO, 2, 33, true},
        {MAD_ATTR_SWITCH_INFO, 2, 33, false},
        {MAD_ATTR_NODE_INFO, 2, 33, false},
        {MAD_ATTR_NODE_DESCRIPTION, 2, 2, false},
        {MAD_ATTR_P_KEY_TABLE, 2, 2, false},
        {MAD_ATTR_LINEAR_FORWARDING_TABLE, 2, 33, false},
        {MAD_ATTR_LINEAR_FORWARDING_TABLE, 1, 1, false},
    };
    (void)state;
    for (unsigned i = 0; i < 2 * sizeof(what) / sizeof(what[0]); i++) {
        struct rig r;
        struct mute m = what[i / 2];
        rig_init(&r, "rail-16", &(struct sim_opts){.seed = 1, .link_latency_ns = 1000, .service_ns = 5000});
        r.user = &m;
        if (i & 1) { // from the start, or after a restart on a fabric that is up
            rig_up(&r);
            rig_sweeps(&r, 1, LONG_S);
            rig_down(&r);
        }
        r.take_send = drop_mute;
        rig_up(&r);
        rig_sweeps(&r, 1, LONG_S);
        rig_run(&r, 20 * MONO_S);
        r.take_send = NULL;
        rig_run(&r, 90 * MONO_S);
        assert_true(rig_last(&r)->ok);
        assert_int_equal(sm_fabric(r.sm)->num_links, r.plan->num_links);
        rig_judge(&r, NULL, 0);
        rig_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_always_changed),  cmocka_unit_test(test_refused_for_ever),
        cmocka_unit_test(test_active_refused),  cmocka_unit_test(test_small_cap),
        cmocka_unit_test(test_duplicate_guids), cmocka_unit_test(test_init_for_ever),
        cmocka_unit_test(test_lid_not_kept),    cmocka_unit_test(test_top_not_kept),
        cmocka_unit_test(test_endless_p_keys),  cmocka_unit_test(test_switch_falls_silent),
        cmocka_unit_test(test_silent_for_ever), cmocka_unit_test(test_mute),
    };
    if (getenv("ONLY"))
        cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
