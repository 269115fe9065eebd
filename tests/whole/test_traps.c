// SPDX-License-Identifier: Apache-2.0
// Traps of simulated devices and floods of forged ones, at a whole manager: answered with the right key,
// bounded, and no more is read than what they are about.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/whole/meddler.h"

static const struct sim_opts wire = {.seed = 3, .link_latency_ns = 1000, .service_ns = 5000};

struct answers { // TrapRepress by destination
    unsigned of[65536], all;
};

static bool count_sent(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct answers *a = r->user;
    if (mad[3] == MAD_METHOD_TRAP_REPRESS) {
        a->of[to->lid]++;
        a->all++;
    }
    return false;
}

static void up_on(struct rig *r, const char *name)
{
    rig_init(r, name, &wire);
    rig_up(r);
    rig_sweeps(r, 1, 300);
    assert_true(rig_last(r)->ok);
    rig_run(r, 3 * MONO_S);
}

static struct sm_trap_stats stats(const struct rig *r)
{
    struct sm_trap_stats s;
    sm_trap_stats(r->sm, &s);
    return s;
}

static const struct node *nth(const struct rig *r, enum node_role role, unsigned n)
{
    for (uint32_t i = 0; i < r->plan->num_nodes; i++) // not the manager's own
        if (r->plan->node[i].role == role &&
            !(port_valid(r->plan->sm_port) && r->plan->port[r->plan->sm_port.i].node.i == i) && n-- == 0)
            return &r->plan->node[i];
    fail();
    return NULL;
}

static uint16_t lid_of(const struct rig *r, const struct node *n)
{
    port_id p = fabric_by_port_guid(sm_fabric(r->sm), r->plan->port[n->first_port].guid);
    assert_true(port_valid(p));
    return fabric_port(sm_fabric(r->sm), p)->a.lid;
}

static void make_trap(uint8_t *mad, uint8_t producer, uint16_t number, uint16_t issuer)
{
    struct mad_notice n = {
        .is_generic = 1, .type = 1, .producer_type = producer, .trap_number = number, .issuer_lid = issuer};
    memset(mad, 0, MAD_SIZE);
    mad[0] = mad[2] = 1;
    mad[1] = MAD_CLASS_SM_LID;
    mad[3] = MAD_METHOD_TRAP;
    mad[17] = MAD_ATTR_NOTICE;
    mad_notice_encode(&n, mad + MAD_SMP_DATA_OFFSET);
}

// --- floods ---

struct flood {
    struct rig *r;
    struct loop_timer timer;
    unsigned left, first, lids; // sources: first .. first + lids - 1
    uint8_t mad[MAD_SIZE];
};

static void flood_tick(void *arg)
{
    struct flood *f = arg;
    for (unsigned i = 0; i < 100 && f->left > 0; i++, f->left--) {
        f->mad[15] = (uint8_t)f->left;
        f->mad[14] = (uint8_t)(f->left >> 8);
        rig_deliver(f->r, f->mad, &(struct mad_addr){.lid = (uint16_t)(f->first + f->left % f->lids)}, 0);
    }
    if (f->left > 0)
        loop_timer_after(&f->timer, MONO_MS);
}

static void flood_starts(struct flood *f, struct rig *r, unsigned n, uint16_t first, unsigned lids)
{
    f->r = r;
    f->left = n;
    f->first = first;
    f->lids = lids;
    loop_timer_init(&f->timer, r->loop, "test", flood_tick, f);
    loop_timer_after(&f->timer, 0);
}

static uint64_t link_events(const struct rig *r)
{
    return rig_events_of(r, "link-removed") + rig_events_of(r, "link-added");
}

// A port of the leaf to a spine, but not to that one: its trap may have to tell.
static unsigned link_to_spine(const struct rig *r, const struct node *leaf, const struct node * not )
{
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = fabric_peer_node(r->plan, &r->plan->port[leaf->first_port + num]);
        if (z != NULL && z != not &&z->role == ROLE_SPINE)
            return num;
    }
    fail();
    return 0;
}

// A hundred thousand a second from one port, while a link dies elsewhere: that is repaired, the flood costs
// some reads and answers and is one event.
static void one_port(uint16_t number, enum node_role role)
{
    static struct answers a;
    struct rig r;
    struct flood f;
    up_on(&r, "rail-64");
    memset(&a, 0, sizeof(a));
    r.user = &a;
    r.take_send = count_sent;
    const struct node *loud = nth(&r, role, 0), *leaf = nth(&r, ROLE_LEAF, 2);
    unsigned uplink = link_to_spine(&r, leaf, loud);
    uint16_t lid = lid_of(&r, loud);
    uint64_t asked = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
    unsigned sweeps = r.sweeps;

    make_trap(f.mad, loud->type, number, lid);
    flood_starts(&f, &r, 200000, lid, 1);
    rig_run(&r, 400 * MONO_MS);
    assert_int_equal(link_events(&r), 0);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, uplink, false), 0);
    rig_run(&r, MONO_S + 100 * MONO_MS); // after sweeps that brought nothing a trap may wait as long
    assert_int_equal(link_events(&r), 1);
    assert_true(f.left > 0);
    rig_judge(&r, NULL, 0);
    rig_run(&r, 520 * MONO_MS);
    assert_int_equal(f.left, 0);
    assert_in_range(a.of[lid], 32, 3 * 32);
    assert_in_range(r.sweeps - sweeps, 2, 8);
    // The flood's own reads: at most six times its ports; and those of the link's two ends.
    assert_in_range(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) - asked, 1,
                    6 * (loud->num_ports + 1u) + 4 * 66u);
    assert_int_equal(stats(&r).floods, 1);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(rig_events_of(&r, "trap-flood"), 2);
    assert_non_null(strstr(r.log.data, "trap-flood: sends 100000 traps a second"));
    assert_non_null(strstr(r.log.data, "trap-flood: the flood of traps is over"));
    assert_int_equal(stats(&r).flooding, 0);
    sweeps = r.sweeps;
    rig_run(&r, 100 * MONO_S);
    assert_int_equal(r.sweeps, sweeps);
    rig_done(&r);
}

static void test_flood_of_one(void **state)
{
    (void)state;
    one_port(MAD_TRAP_LINK_STATE_CHANGE, ROLE_SPINE);
    one_port(MAD_TRAP_LOCAL_CHANGES, ROLE_HOST);
    one_port(MAD_TRAP_SYSTEM_IMAGE_GUID, ROLE_HOST);
}

// From LIDs that nobody has: nothing is read at all.
static void test_flood_of_nobody(void **state)
{
    static struct answers a;
    struct rig r;
    struct flood f;
    (void)state;
    up_on(&r, "rail-16");
    memset(&a, 0, sizeof(a));
    r.user = &a;
    r.take_send = count_sent;
    unsigned sweeps = r.sweeps, first = sm_fabric(r.sm)->top_lid + 1u;
    uint64_t asked = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
    make_trap(f.mad, MAD_PRODUCER_SWITCH, MAD_TRAP_LINK_STATE_CHANGE, 7);
    flood_starts(&f, &r, 100000, (uint16_t)first, MAD_LID_UNICAST_MAX - first);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(f.left, 0);
    assert_int_equal(r.sweeps, sweeps);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), asked);
    assert_in_range(a.all, 32, 96);
    assert_int_equal(stats(&r).unknown, 100000);
    assert_int_equal(rig_events_of(&r, "trap-flood"), 2);
    rig_done(&r);
}

// From everybody at once: no port costs more than its share.
static void test_flood_of_all(void **state)
{
    static struct answers a;
    struct rig r;
    struct flood f;
    (void)state;
    up_on(&r, "rail-64");
    memset(&a, 0, sizeof(a));
    r.user = &a;
    r.take_send = count_sent;
    unsigned sweeps = r.sweeps, lids = sm_fabric(r.sm)->top_lid;
    make_trap(f.mad, MAD_PRODUCER_SWITCH, MAD_TRAP_LINK_STATE_CHANGE, 7);
    flood_starts(&f, &r, 300000, 1, lids);
    rig_run(&r, 3 * MONO_S);
    assert_int_equal(f.left, 0);
    for (unsigned lid = 1; lid <= lids; lid++)
        assert_in_range(a.of[lid], 1, 4 * 32);
    assert_in_range(r.sweeps - sweeps, 2, 20);
    rig_run(&r, 30 * MONO_S);
    assert_in_range(rig_events_of(&r, "trap-flood"), 17, 33); // 16 by name, one for the rest
    assert_int_equal(stats(&r).flooding, 0);
    sweeps = r.sweeps;
    rig_run(&r, 100 * MONO_S);
    assert_int_equal(r.sweeps, sweeps);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// --- what real ones lead to ---

// Every trap of the standard is repressed, whoever sends it.
static void test_repressed(void **state)
{
    static const uint16_t number[] = {128, 129, 130, 131, 144, 145, 256, 257, 258, 259};
    struct rig r;
    (void)state;
    up_on(&r, "rail-16");
    const struct node *leaf = nth(&r, ROLE_LEAF, 0), *host = nth(&r, ROLE_HOST, 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(sim_raise_trap(r.sim, leaf->guid, number[i] == 259 ? 1 : 0, number[i]), 0);
        if (number[i] != 128 && number[i] != 259)
            assert_int_equal(sim_raise_trap(r.sim, host->guid, 1, number[i]), 0);
    }
    assert_true(sim_traps_pending(r.sim) > 0);
    rig_run(&r, 500 * MONO_MS);
    assert_int_equal(sim_traps_pending(r.sim), 0);
    struct sm_trap_stats s = stats(&r);
    assert_int_equal(s.received, 18);
    assert_int_equal(s.repressed, 18);
    assert_int_equal(s.unknown + s.nonsense, 0);
    for (unsigned i = 0; i < SM_TRAP_NUMBERS; i++)
        assert_int_equal(s.by_number[i].count, number[i] == 128 || number[i] == 259 ? 1 : 2);
    rig_done(&r);
}

// With the key of the port that sent it, or the device would not take it.
static void test_keys(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-16");
    const struct node *host[2] = {nth(&r, ROLE_HOST, 0), nth(&r, ROLE_HOST, 1)},
                      *leaf = nth(&r, ROLE_LEAF, 0);
    assert_int_equal(sim_m_key_set(r.sim, host[0]->guid, 1, 0x1111, 0, 0), 0);
    assert_int_equal(sim_m_key_set(r.sim, host[1]->guid, 1, 0x2222, 0, 0), 0);
    assert_int_equal(sim_m_key_set(r.sim, leaf->guid, 0, 0x3333, 0, 0), 0);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 10);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(sim_raise_trap(r.sim, host[i]->guid, 1, MAD_TRAP_BAD_Q_KEY), 0);
    assert_int_equal(sim_raise_trap(r.sim, leaf->guid, 0, MAD_TRAP_LINK_STATE_CHANGE), 0);
    rig_run(&r, MONO_S);
    assert_int_equal(sim_traps_pending(r.sim), 0);
    assert_int_equal(stats(&r).received, 3);
    assert_int_equal(rig_events_of(&r, "m-key-violation"), 0);
    rig_done(&r);
}

// Hides PortStateChange (bit 2 of the byte that begins with LifeTimeValue).
static bool hide_change(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    uint8_t copy[MAD_SIZE];
    struct mad_hdr h;
    if (status != 0)
        return false;
    mad_hdr_decode(mad, &h);
    if (h.attr_id != MAD_ATTR_SWITCH_INFO)
        return false;
    memcpy(copy, mad, sizeof(copy));
    struct mad_switch_info si;
    mad_switch_info_decode(copy + MAD_SMP_DATA_OFFSET, &si);
    si.port_state_change = false;
    mad_switch_info_encode(&si, copy + MAD_SMP_DATA_OFFSET);
    rig_deliver(r, copy, from, status);
    return true;
}

// How often PortInfo is asked for a trap of the leaf that tells of nothing new.
static uint64_t info_for_nothing(struct rig *r, const struct node *leaf)
{
    uint64_t info = rig_count(r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
    rig_run(r, 3 * MONO_S);
    assert_int_equal(sim_raise_trap(r->sim, leaf->guid, 0, MAD_TRAP_LINK_STATE_CHANGE), 0);
    rig_sweeps(r, 1, 2);
    return rig_count(r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) - info;
}

// A switch that shows that a port has changed and tells of a change once more is asked no more than whether
// there is one; one that never shows it is read.
static void test_told_again(void **state)
{
    struct rig r;
    (void)state;
    for (int hidden = 0; hidden < 2; hidden++) {
        rig_init(&r, "rail-64", NULL);
        r.take_recv = hidden ? hide_change : NULL;
        rig_up(&r);
        rig_sweeps(&r, 1, 100);
        const struct node *leaf = nth(&r, ROLE_LEAF, 1);
        unsigned all = leaf->num_ports + 2u, num = 1; // port 0 is asked by two ways at once
        assert_int_equal(info_for_nothing(&r, leaf), hidden ? all : 2);
        while (!port_valid(fabric_port(r.plan, fabric_port_at(r.plan, leaf, num))->peer))
            num++;
        uint64_t info = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
        assert_int_equal(sim_link_set(r.sim, leaf->guid, num, false), 0);
        rig_run(&r, 2 * MONO_S);
        assert_true(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) >= info + all);
        assert_int_equal(info_for_nothing(&r, leaf), hidden ? all : 2);
        // Told again, and something has happened: in the same instant, so that one trap tells of both.
        info = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
        assert_int_equal(sim_raise_trap(r.sim, leaf->guid, 0, MAD_TRAP_LINK_STATE_CHANGE), 0);
        assert_int_equal(sim_link_set(r.sim, leaf->guid, num, true), 0);
        rig_run(&r, 2 * MONO_S);
        assert_true(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) >= info + all);
        assert_int_equal(rig_events_of(&r, "node-added") + rig_events_of(&r, "link-added"), 1);
        rig_done(&r);
    }
}

// A description is one Get, a port of an adapter its PortInfo and P_Keys, a switch that has nothing new its
// port 0, by two ways at once.
static void test_little_is_read(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-64");
    const struct node *host = nth(&r, ROLE_HOST, 5), *leaf = nth(&r, ROLE_LEAF, 1);
    uint64_t desc = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION),
             info = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO),
             node = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO);
    assert_int_equal(sim_node_desc(r.sim, host->guid, "renamed"), 0);
    rig_sweeps(&r, 1, 2);
    assert_false(rig_last(&r)->full);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION), desc + 1);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), info);
    assert_string_equal(fabric_desc(sm_fabric(r.sm), fabric_by_guid(sm_fabric(r.sm), host->guid)), "renamed");

    rig_run(&r, 3 * MONO_S);
    assert_int_equal(sim_raise_change(r.sim, host->guid, 1, SIM_CHANGE_LINK_WIDTH_ENABLED), 0);
    rig_sweeps(&r, 1, 2);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION), desc + 1);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), info + 1);

    rig_run(&r, 3 * MONO_S);
    assert_int_equal(sim_raise_trap(r.sim, leaf->guid, 0, MAD_TRAP_LINK_STATE_CHANGE), 0);
    rig_sweeps(&r, 1, 2);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), info + 1 + 2);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO), node);

    rig_run(&r, 3 * MONO_S);
    assert_int_equal(sim_sys_guid(r.sim, host->guid, 0x77), 0);
    rig_sweeps(&r, 1, 2);
    assert_true(fabric_by_guid(sm_fabric(r.sm), host->guid)->sys_guid == 0x77);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO), node + 1);
    rig_done(&r);
}

// Another manager appears: its port's trap tells, and it is asked.
static void test_manager_appears(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-16");
    const struct node *host = nth(&r, ROLE_HOST, 3);
    uint64_t asked = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_SM_INFO);
    struct sim_sm other = {.state = MAD_SM_STANDBY, .priority = 1};
    assert_int_equal(sim_sm_add(r.sim, r.plan->port[host->first_port].guid, &other), 0);
    rig_run(&r, 2 * MONO_S);
    assert_true(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_SM_INFO) > asked);
    rig_done(&r);
}

static void test_port_errors(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-16");
    const struct node *leaf = nth(&r, ROLE_LEAF, 0);
    uint64_t info = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
    unsigned sweeps = r.sweeps;
    for (unsigned i = 0; i < 30; i++) {
        assert_int_equal(sim_raise_trap(r.sim, leaf->guid, 2, MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN), 0);
        rig_run(&r, 3 * MONO_S);
        assert_int_equal(rig_events_of(&r, "port-errors"), i >= 10);
    }
    assert_int_equal(r.sweeps, sweeps);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), info);
    rig_run(&r, 301 * MONO_S);
    assert_int_equal(rig_events_of(&r, "port-errors"), 2);
    rig_done(&r);
}

// Somebody tries keys: one event says who and what.
static void test_m_key_violation(void **state)
{
    struct rig r;
    struct meddler m;
    (void)state;
    up_on(&r, "rail-16");
    const struct node *host = nth(&r, ROLE_HOST, 0);
    assert_int_equal(sim_m_key_set(r.sim, host->guid, 1, 0x1111, 1, 0), 0);
    meddler_init(&m, &r);
    m.m_key = 0x9999;
    uint8_t data[MAD_SMP_DATA_SIZE] = {0};
    for (unsigned i = 0; i < 3; i++)
        meddler_try(&m, lid_of(&r, host), MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 1, data);
    rig_run(&r, MONO_S);
    assert_int_equal(rig_events_of(&r, "m-key-violation"), 1);
    assert_non_null(strstr(r.log.data, "m-key-violation: was asked Set(PortInfo)"));
    assert_non_null(strstr(r.log.data, "by this manager")); // from its own port
    meddler_done(&m);
    rig_done(&r);
}

// Until we are the master traps are left alone.
static void test_not_master(void **state)
{
    static struct answers a;
    struct rig r;
    uint8_t mad[MAD_SIZE];
    (void)state;
    rig_init(&r, "rail-16", &wire);
    memset(&a, 0, sizeof(a));
    r.user = &a;
    r.take_send = count_sent;
    rig_up(&r);
    make_trap(mad, MAD_PRODUCER_SWITCH, MAD_TRAP_LINK_STATE_CHANGE, 3);
    rig_deliver(&r, mad, &(struct mad_addr){.lid = 3}, 0);
    assert_int_equal(a.all, 0);
    assert_int_equal(stats(&r).not_master, 1);
    rig_sweeps(&r, 1, 300);
    rig_deliver(&r, mad, &(struct mad_addr){.lid = 3}, 0);
    assert_int_equal(a.all, 1);
    rig_run(&r, MONO_S);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flood_of_one),   cmocka_unit_test(test_flood_of_nobody),
        cmocka_unit_test(test_flood_of_all),   cmocka_unit_test(test_repressed),
        cmocka_unit_test(test_keys),           cmocka_unit_test(test_told_again),
        cmocka_unit_test(test_little_is_read), cmocka_unit_test(test_manager_appears),
        cmocka_unit_test(test_port_errors),    cmocka_unit_test(test_m_key_violation),
        cmocka_unit_test(test_not_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
