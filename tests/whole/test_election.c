// SPDX-License-Identifier: Apache-2.0
// Two whole managers on one simulated fabric: the rig's and a second one on another adapter, which ranks
// above or below it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/rig.h"

struct second {
    struct rig *r;
    struct transport *transport;
    struct mad_engine *engine;
    struct sm *sm;
    struct sm_opts opts;
};

static uint64_t last_adapter(const struct fabric *f)
{
    uint64_t guid = 0;
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (fabric_node(f, f->port[i].node)->type == NODE_CA && port_valid(f->port[i].peer))
            guid = f->port[i].guid;
    return guid;
}

static void second_up(struct second *s, struct rig *r, uint8_t priority)
{
    struct err e = {0};
    *s = (struct second){.r = r};
    sm_opts_default(&s->opts);
    s->opts.priority = priority;
    s->transport = sim_attach(r->sim, last_adapter(r->plan), &e);
    assert_non_null(s->transport);
    assert_int_equal(s->transport->ops->issm(s->transport, true, &e), 0);
    s->engine = mad_engine_new(r->loop, s->transport, NULL);
    s->sm = sm_new(r->loop, s->engine, s->transport, r->pool, NULL, &s->opts, NULL);
    sm_start(s->sm);
}

static void second_dies(struct second *s)
{
    mad_engine_free(s->engine);
    sm_free(s->sm);
    s->transport->ops->free(s->transport);
}

static enum sm_state state_of(const struct sm *sm)
{
    struct sm_status st;
    sm_get_status(sm, &st);
    return st.state;
}

static uint16_t *lids(const struct rig *r)
{
    uint16_t *lid = calloc(r->plan->num_ports, sizeof(*lid));
    for (uint32_t i = 0; i < r->plan->num_ports; i++) {
        struct sim_port_view v;
        const struct port *p = &r->plan->port[i];
        if (sim_port_view(r->sim, fabric_node(r->plan, p->node)->guid, p->num, &v) == 0)
            lid[i] = v.lid;
    }
    return lid;
}

static uint64_t sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
}

// The rig's manager is up; the second comes, and is killed.
static void two(uint8_t priority)
{
    bool above = priority > 8;
    struct rig r;
    struct second s;

    rig_init(&r, "rail-16", &(struct sim_opts){.link_latency_ns = 1000, .service_ns = 5000});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    uint16_t *before = lids(&r);
    uint64_t written = sets(&r);
    second_up(&s, &r, priority);
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(state_of(r.sm), above ? SM_STANDBY : SM_MASTER);
    assert_int_equal(state_of(s.sm), above ? SM_MASTER : SM_STANDBY);
    assert_int_equal(rig_events_of(&r, "gives-way"), above);
    assert_int_equal(sets(&r), written); // nothing is done to the fabric on the way
    rig_judge(&r, NULL, 0);
    unsigned sweeps = r.sweeps;
    rig_run(&r, 30 * MONO_S);
    if (above)
        assert_int_equal(r.sweeps, sweeps); // a standby polls
    second_dies(&s);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(state_of(r.sm), SM_MASTER);
    assert_int_equal(rig_events_of(&r, "foreign-sm-gone"), 1);
    rig_judge(&r, NULL, 0);
    uint16_t *after = lids(&r);
    assert_memory_equal(before, after, r.plan->num_ports * sizeof(*before));
    free(before);
    free(after);
    rig_done(&r);
}

static void test_second_ranks_above(void **state)
{
    (void)state;
    two(12);
}

static void test_second_ranks_below(void **state)
{
    (void)state;
    two(3);
}

// Started at the same time on a cold fabric: one brings it up, the other has set nothing.
static void test_together(void **state)
{
    (void)state;
    for (unsigned above = 0; above < 2; above++) {
        struct rig r;
        struct second s;
        rig_init(&r, "rail-16", &(struct sim_opts){.link_latency_ns = 1000, .service_ns = 5000});
        rig_up(&r);
        second_up(&s, &r, above ? 12 : 3);
        rig_run(&r, 20 * MONO_S);
        assert_int_equal(state_of(r.sm), above ? SM_STANDBY : SM_MASTER);
        assert_int_equal(state_of(s.sm), above ? SM_MASTER : SM_STANDBY);
        assert_int_equal(sets(&r) > 0, !above);
        rig_judge(&r, NULL, 0);
        second_dies(&s);
        rig_run(&r, 10 * MONO_S);
        assert_int_equal(state_of(r.sm), SM_MASTER);
        rig_judge(&r, NULL, 0);
        rig_done(&r);
    }
}

// What each knows of the other.
static void test_peers(void **state)
{
    struct rig r;
    struct second s;
    struct sm_peer peer[SM_PEERS_MAX];
    struct sm_status st;
    (void)state;

    rig_init(&r, "rail-16", &(struct sim_opts){.link_latency_ns = 1000, .service_ns = 5000});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(sm_peers(r.sm, peer), 0);
    second_up(&s, &r, 3);
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(sm_peers(r.sm, peer), 1);
    port_id id = fabric_by_lid(sm_fabric(r.sm), peer[0].lid);
    assert_true(port_valid(id));
    const struct port *p = fabric_port(sm_fabric(r.sm), id);
    const struct node *n = fabric_node(sm_fabric(r.sm), p->node);
    assert_true(peer[0].guid == last_adapter(r.plan) && peer[0].guid == p->guid);
    assert_true(peer[0].node_guid == n->guid && peer[0].port == p->num);
    assert_string_equal(peer[0].node, fabric_desc(sm_fabric(r.sm), n));
    assert_int_equal(peer[0].priority, 3);
    assert_int_equal(peer[0].state, SM_STANDBY);
    assert_false(peer[0].above);
    assert_false(peer[0].other_key);
    assert_int_equal(peer[0].missed, 0);
    assert_true(peer[0].heard_ns >= 0 && peer[0].heard_ns <= 2 * MONO_S);
    assert_int_equal(sm_peers(s.sm, peer), 1);
    sm_get_status(r.sm, &st);
    assert_true(peer[0].guid == st.port_guid && peer[0].above);
    assert_int_equal(peer[0].state, SM_MASTER);
    second_dies(&s);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(sm_peers(r.sm, peer), 0);
    rig_done(&r);
}

// The operator moves the fabric from one to the other and back, by priority alone.
static void test_priority_changes(void **state)
{
    struct rig r;
    struct second s;
    struct sm_status st;
    (void)state;

    rig_init(&r, "rail-16", &(struct sim_opts){.link_latency_ns = 1000, .service_ns = 5000});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    second_up(&s, &r, 6);
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(state_of(r.sm), SM_MASTER);
    uint16_t *before = lids(&r);
    uint64_t written = sets(&r);
    sm_election_priority(r.sm, 2); // below: the master hands over
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(state_of(r.sm), SM_STANDBY);
    assert_int_equal(state_of(s.sm), SM_MASTER);
    sm_get_status(r.sm, &st);
    assert_int_equal(st.priority, 2);
    sm_election_priority(r.sm, 12); // above: the standby asks for it
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(state_of(r.sm), SM_MASTER);
    assert_int_equal(state_of(s.sm), SM_STANDBY);
    assert_int_equal(rig_events_of(&r, "second-master"), 0);
    uint16_t *after = lids(&r);
    assert_memory_equal(before, after, r.plan->num_ports * sizeof(*before));
    assert_true(sets(&r) >= written);
    rig_judge(&r, NULL, 0);
    free(before);
    free(after);
    second_dies(&s);
    rig_done(&r);
}

static bool found(const struct rig *r, const char *code)
{
    const struct findings *f = sm_findings(r->sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, code) == 0)
            return true;
    return false;
}

// A lower master that keeps its part is named as long as it is there; when it is gone, all is looked at
// again.
static void test_second_master(void **state)
{
    struct rig r;
    struct sim_sm other = {.state = MAD_SM_MASTER, .priority = 3, .sm_key = 1};
    (void)state;

    rig_init(&r, "rail-16", &(struct sim_opts){.link_latency_ns = 1000, .service_ns = 5000});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(sim_sm_add(r.sim, last_adapter(r.plan), &other), 0);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(rig_events_of(&r, "second-master"), 1);
    assert_int_equal(state_of(r.sm), SM_MASTER);
    assert_true(found(&r, "second-master"));
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    assert_true(found(&r, "second-master"));
    other.silent = true;
    assert_int_equal(sim_sm_set(r.sim, last_adapter(r.plan), &other), 0);
    rig_run(&r, 10 * MONO_S);
    assert_int_equal(rig_events_of(&r, "foreign-sm-gone"), 1);
    assert_false(found(&r, "second-master"));
    bool looked = false;
    for (unsigned i = 0; sm_history(r.sm, i) != NULL; i++)
        looked |= sm_history(r.sm, i)->full && strcmp(sm_history(r.sm, i)->cause, "second-master-gone") == 0;
    assert_true(looked);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_ranks_above), cmocka_unit_test(test_second_ranks_below),
        cmocka_unit_test(test_together),           cmocka_unit_test(test_peers),
        cmocka_unit_test(test_priority_changes),   cmocka_unit_test(test_second_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
