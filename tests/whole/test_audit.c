// SPDX-License-Identifier: Apache-2.0
// The slow audit: what is changed behind the manager's back is found, told once and repaired within a round;
// where nothing is wrong nothing is written.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/whole/meddler.h"

#define ROUND (60 * MONO_S)
static const struct sim_opts wire = {.seed = 3, .link_latency_ns = 1000, .service_ns = 5000};

static void up_on(struct rig *r, const char *name, const struct sim_opts *o)
{
    rig_init(r, name, o);
    r->opts.audit_interval_ns = ROUND;
    rig_up(r);
    rig_sweeps(r, 1, 300);
    assert_true(rig_last(r)->ok);
    rig_run(r, 3 * MONO_S);
}

static struct sm_audit_stats stats(const struct rig *r)
{
    struct sm_audit_stats s;
    sm_audit_stats(r->sm, &s);
    return s;
}

// Until so many rounds have ended.
static void rounds(struct rig *r, uint64_t n)
{
    uint64_t until = stats(r).rounds + n;
    for (unsigned s = 0; stats(r).rounds < until; s++) {
        assert_true(s < 3 * n * ROUND / MONO_S);
        rig_run(r, MONO_S);
    }
    rig_run(r, 3 * MONO_S); // and what it led to
}

static uint64_t sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_MULTICAST_FORWARDING_TABLE);
}

static const struct node *of_role(const struct rig *r, enum node_role role)
{
    for (uint32_t i = 0; i < r->plan->num_nodes; i++) // not the manager's own
        if (r->plan->node[i].role == role &&
            !(port_valid(r->plan->sm_port) && r->plan->port[r->plan->sm_port.i].node.i == i))
            return &r->plan->node[i];
    fail();
    return NULL;
}

static uint16_t lid_of(const struct rig *r, const struct node *n)
{
    struct sim_port_view v;
    unsigned num = n->type == NODE_SWITCH ? 0 : 1;
    while (n->type != NODE_SWITCH && !port_valid(fabric_port(r->plan, fabric_port_at(r->plan, n, num))->peer))
        num++;
    assert_int_equal(sim_port_view(r->sim, n->guid, num, &v), 0);
    return v.lid;
}

// Nothing is wrong: two rounds read everything and write nothing.
static void healthy(const char *name, const struct sim_opts *o, const char *not_kept)
{
    struct rig r;
    rig_init(&r, name, o);
    if (not_kept != NULL)
        for (uint32_t i = 0; i < r.plan->num_nodes; i++)
            assert_int_equal(
                sim_set_field_not_kept(r.sim, r.plan->node[i].guid, MAD_ATTR_PORT_INFO, not_kept, true), 0);
    r.opts.audit_interval_ns = ROUND;
    rig_up(&r);
    rig_sweeps(&r, 1, 300);
    rig_run(&r, 3 * MONO_S);
    uint64_t written = sets(&r), lft = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE),
             info = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), sweeps = r.sweeps, events = r.events;
    rounds(&r, 3); // two of them from begin to end
    assert_int_equal(sets(&r), written);
    assert_int_equal(r.sweeps, sweeps);
    assert_int_equal(r.events, events);
    assert_int_equal(stats(&r).drifted, 0);
    assert_int_equal(stats(&r).devices, sm_fabric(r.sm)->num_nodes);
    assert_in_range(stats(&r).last_round_ns, ROUND / 2, ROUND + 5 * MONO_S);
    uint64_t blocks = 0, ports = 0;
    for (uint32_t i = 0; i < sm_fabric(r.sm)->num_nodes; i++) {
        const struct node *n = &sm_fabric(r.sm)->node[i];
        blocks += n->type == NODE_SWITCH ? sm_fabric(r.sm)->top_lid / 64u + 1 : 0;
        ports += n->type == NODE_SWITCH ? n->num_ports + 1u : 0;
        for (unsigned num = 1; n->type != NODE_SWITCH && num <= n->num_ports; num++)
            ports += port_valid(fabric_port(sm_fabric(r.sm), fabric_port_at(sm_fabric(r.sm), n, num))->peer);
    }
    assert_true(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE) - lft >= 2 * blocks);
    assert_true(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) - info >= 2 * ports);
    rig_done(&r);
}

static void test_healthy(void **state)
{
    (void)state;
    healthy("rail-64", NULL, NULL);
    healthy("ft3-16-8", &wire, NULL);
    healthy("rail-16",
            &(struct sim_opts){.seed = 4, .link_latency_ns = 1000, .service_ns = 5000, .loss = 0.02}, NULL);
    healthy("rail-16",
            &(struct sim_opts){.seed = 4, .service_ns = 5000, .auto_active = 0.5, .auto_active_ns = 100000},
            NULL);
}

static void test_not_kept(void **state)
{
    (void)state;
    healthy("rail-16", &wire, "subnet_timeout");
    healthy("rail-16", &wire, "hoq_life");
    healthy("rail-16", &wire, "neighbor_mtu");
}

// One event, and all is as it was at the latest one round later.
static void repaired(struct rig *r, const char *text)
{
    rounds(r, 2);
    assert_int_equal(rig_events_of(r, "drift"), 1);
    if (strstr(r->log.data, text) == NULL)
        fail_msg("no \"%s\" in:\n%s", text, r->log.data);
    assert_int_equal(stats(r).drifted, 1);
    uint64_t written = sets(r);
    unsigned sweeps = r->sweeps;
    rounds(r, 2);
    assert_int_equal(sets(r), written);
    assert_int_equal(r->sweeps, sweeps);
    assert_int_equal(rig_events_of(r, "drift"), 1);
    rig_judge(r, NULL, 0);
}

static void test_table_entry(void **state)
{
    struct rig r;
    struct meddler m;
    uint8_t block[MAD_SMP_DATA_SIZE], was, is;
    (void)state;
    up_on(&r, "rail-64", &wire);
    meddler_init(&m, &r);
    const struct node *spine = of_role(&r, ROLE_SPINE), *host = of_role(&r, ROLE_HOST);
    uint16_t lid = lid_of(&r, host);
    assert_int_equal(sim_lft(r.sim, spine->guid, lid, &was), 0);
    memcpy(block, meddler_get(&m, lid_of(&r, spine), MAD_ATTR_LINEAR_FORWARDING_TABLE, lid / 64),
           sizeof(block));
    assert_int_equal(block[lid % 64], was);
    block[lid % 64] = was == 1 ? 2 : 1;
    meddler_set(&m, lid_of(&r, spine), MAD_ATTR_LINEAR_FORWARDING_TABLE, lid / 64, block);
    assert_int_equal(sim_lft(r.sim, spine->guid, lid, &is), 0);
    assert_int_not_equal(is, was);
    repaired(&r, "drift: the table sends LID ");
    assert_int_equal(sim_lft(r.sim, spine->guid, lid, &is), 0);
    assert_int_equal(is, was);
    meddler_done(&m);
    rig_done(&r);
}

// A whole table, and more than one switch: one event each.
static void test_whole_tables(void **state)
{
    struct rig r;
    uint8_t none[1024];
    unsigned n = 0;
    (void)state;
    up_on(&r, "rail-64", &wire);
    memset(none, LFT_DROP, sizeof(none));
    uint16_t top = sm_fabric(r.sm)->top_lid;
    for (uint32_t i = 0; i < r.plan->num_nodes && n < 2; i++)
        if (r.plan->node[i].role == ROLE_SPINE) {
            assert_int_equal(sim_set_lft(r.sim, r.plan->node[i].guid, none, top + 1u, top), 0);
            n++;
        }
    assert_int_equal(n, 2);
    rounds(&r, 2);
    assert_int_equal(rig_events_of(&r, "drift"), 2);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

static void setting(const char *name, enum node_role role, unsigned num, const char *field, uint64_t value)
{
    struct rig r;
    struct meddler m;
    uint64_t was, is;
    char text[100];
    up_on(&r, name, &wire);
    meddler_init(&m, &r);
    const struct node *n = of_role(&r, role);
    if (num == 1)
        while (!port_valid(fabric_port(r.plan, fabric_port_at(r.plan, n, num))->peer))
            num++;
    assert_int_equal(sim_port_field(r.sim, n->guid, num, field, &was), 0);
    meddler_change(&m, lid_of(&r, n), MAD_ATTR_PORT_INFO, num, field, value);
    assert_int_equal(sim_port_field(r.sim, n->guid, num, field, &is), 0);
    assert_true(is == value && was != value);
    snprintf(text, sizeof(text), "drift: port %u: %s is ", num, field);
    repaired(&r, text);
    assert_int_equal(sim_port_field(r.sim, n->guid, num, field, &is), 0);
    assert_int_equal(is, was);
    meddler_done(&m);
    rig_done(&r);
}

static void test_settings(void **state)
{
    (void)state;
    setting("rail-16", ROLE_LEAF, 1, "hoq_life", 3);
    setting("rail-16", ROLE_SPINE, 0, "subnet_timeout", 9);
    setting("rail-16", ROLE_HOST, 1, "gid_prefix", 0xfec0000000000000);
    setting("rail-16", ROLE_HOST, 1, "master_sm_lid", 99);
}

static void p_keys(enum node_role role)
{
    struct rig r;
    struct meddler m;
    uint8_t block[MAD_SMP_DATA_SIZE] = {0x7f, 0xff}; // limited: two of them cannot talk
    uint16_t key;
    up_on(&r, "rail-16", &wire);
    meddler_init(&m, &r);
    const struct node *n = of_role(&r, role);
    unsigned num = n->type == NODE_SWITCH ? 0 : 1;
    meddler_set(&m, lid_of(&r, n), MAD_ATTR_P_KEY_TABLE, 0, block);
    assert_int_equal(sim_p_key(r.sim, n->guid, num, 0, &key), 0);
    assert_int_equal(key, 0x7fff);
    repaired(&r, "P_Key 0 is 0x7fff instead of 0xffff");
    assert_int_equal(sim_p_key(r.sim, n->guid, num, 0, &key), 0);
    assert_int_equal(key, 0xffff);
    meddler_done(&m);
    rig_done(&r);
}

static void test_p_keys(void **state)
{
    (void)state;
    p_keys(ROLE_HOST);
    p_keys(ROLE_LEAF);
}

// A device that answers Set with what was asked and Get with something else.
struct two_faced {
    uint32_t set[4096]; // TIDs of Sets, the last ones
    unsigned n;
};
#define FALSE_PORT 2
#define FALSE_HOQ_LIFE 3

static uint32_t tid_of(const uint8_t *mad)
{
    struct mad_hdr h;
    mad_hdr_decode(mad, &h);
    return (uint32_t)h.tid;
}

static bool note_sets(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct two_faced *f = r->user;
    (void)to;
    if (mad[3] == MAD_METHOD_SET)
        f->set[f->n++ % 4096] = tid_of(mad);
    return false;
}

static bool lie(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct two_faced *f = r->user;
    struct mad_port_info pi;
    struct mad_smp s;
    uint8_t copy[MAD_SIZE];

    mad_smp_decode(mad, &s);
    if (status != 0 || s.method != MAD_METHOD_GET_RESP || s.attr_id != MAD_ATTR_PORT_INFO ||
        (s.attr_mod & 0xff) != FALSE_PORT)
        return false;
    for (unsigned i = 0; i < 4096; i++)
        if (f->set[i] == tid_of(mad))
            return false;
    memcpy(copy, mad, MAD_SIZE);
    mad_port_info_decode(copy + MAD_SMP_DATA_OFFSET, &pi);
    if (pi.port_state <= MAD_PORT_DOWN)
        return false;
    pi.hoq_life = FALSE_HOQ_LIFE;
    mad_port_info_encode(&pi, copy + MAD_SMP_DATA_OFFSET);
    rig_deliver(r, copy, from, status);
    return true;
}

// It is not written to for ever: told twice as drift, then once as not kept.
static void test_two_faced(void **state)
{
    struct rig r;
    static struct two_faced f;
    (void)state;
    memset(&f, 0, sizeof(f));
    rig_init(&r, "rail-16", &wire);
    r.opts.audit_interval_ns = ROUND;
    r.user = &f;
    r.take_send = note_sets;
    r.take_recv = lie;
    rig_up(&r);
    rig_sweeps(&r, 1, 300);
    rounds(&r, 4);
    uint64_t drift = rig_events_of(&r, "drift"), given_up = rig_events_of(&r, "settings-not-kept"),
             written = sets(&r);
    assert_true(given_up > 0);
    assert_int_equal(drift, 2 * given_up);
    rounds(&r, 4);
    assert_int_equal(rig_events_of(&r, "drift"), drift);
    assert_int_equal(rig_events_of(&r, "settings-not-kept"), given_up);
    assert_int_equal(sets(&r), written);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A link that dies while the audit goes round is no drift, and a round ends in spite of sweeps.
static void test_changes(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-64", &wire);
    const struct node *spine = of_role(&r, ROLE_SPINE);
    uint64_t before = stats(&r).rounds;
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(sim_link_set(r.sim, spine->guid, 1 + i / 2 % 4, i & 1), 0);
        rig_run(&r, 5 * MONO_S + i * 17 * MONO_MS);
    }
    assert_true(stats(&r).rounds >= before + 2);
    assert_int_equal(rig_events_of(&r, "drift"), 0);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A dead agent holds nothing up.
static void test_silent(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-16", &wire);
    const struct node *host = of_role(&r, ROLE_HOST);
    sim_node_kill(r.sim, host->guid, true);
    rounds(&r, 2);
    sim_node_kill(r.sim, host->guid, false);
    rounds(&r, 2);
    assert_int_equal(rig_events_of(&r, "drift"), 0);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

static void test_off(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-16", &wire);
    r.opts.audit_interval_ns = 0;
    rig_up(&r);
    rig_sweeps(&r, 1, 300);
    uint64_t lft = rig_count(&r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
    rig_run(&r, 3 * ROUND);
    assert_int_equal(stats(&r).rounds, 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE), lft);
    rig_done(&r);
}

// After a restart tables are adopted as they are found: no drift either.
static void test_restart(void **state)
{
    struct rig r;
    (void)state;
    up_on(&r, "rail-64", &wire);
    rig_down(&r);
    rig_up(&r);
    rig_sweeps(&r, 1, 300);
    uint64_t written = sets(&r);
    rounds(&r, 2);
    assert_int_equal(sets(&r), written);
    assert_int_equal(stats(&r).drifted, 0);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),     cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_table_entry), cmocka_unit_test(test_whole_tables),
        cmocka_unit_test(test_settings),    cmocka_unit_test(test_p_keys),
        cmocka_unit_test(test_changes),     cmocka_unit_test(test_silent),
        cmocka_unit_test(test_off),         cmocka_unit_test(test_two_faced),
        cmocka_unit_test(test_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
