// SPDX-License-Identifier: Apache-2.0
// Agents that are slow, dead, deaf to what they are told, or protected: what it costs the fabric around them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/odd.h"

// --- agents ---

// Slow and dead agents cost themselves: a trunk elsewhere is repaired as ever.
static void test_slow_and_dead(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *slow = nth(&o, ROLE_HOST, 20), *dead = nth(&o, ROLE_HOST, 41), *leaf;
    leaf = nth(&o, ROLE_LEAF, 6);
    assert_int_equal(sim_node_delay(o.r.sim, slow->guid, 300 * MONO_MS), 0);
    assert_int_equal(sim_node_kill(o.r.sim, dead->guid, true), 0);
    rig_run(&o.r, 30 * MONO_S);
    show(&o, "a slow and a dead adapter, links kept", 0);
    assert_int_equal(o.r.events, o.events); // their links are up, nobody asked them
    mark(&o);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 5), false), 0);
    int64_t ns = repaired(&o, 2 * MONO_S);
    show(&o, "a trunk beside them", ns);
    assert_true(ns < MONO_S / 5);

    // Their links flap: the dead one is left out, the slow one is configured.
    mark(&o);
    assert_int_equal(sim_link_flap(o.r.sim, slow->guid, 1, 10 * MONO_MS, MONO_MS, 1), 0);
    assert_int_equal(sim_link_flap(o.r.sim, dead->guid, 1, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, MONO_S);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 6), false), 0);
    mono_t t0 = loop_now(o.r.loop);
    uint8_t port = 0;
    for (unsigned gone = uplink(&o, leaf, 6);;) {
        bool used = false;
        for (uint16_t lid = 1; lid < sm_fabric(o.r.sm)->top_lid; lid++)
            used |= sim_lft(o.r.sim, leaf->guid, lid, &port) == 0 && port == gone;
        if (!used)
            break;
        rig_run(&o.r, MONO_MS);
        assert_true(mono_sub(loop_now(o.r.loop), t0) < 3 * MONO_S);
    }
    show(&o, "a trunk while they come up", mono_sub(loop_now(o.r.loop), t0));
    rig_run(&o.r, 40 * MONO_S);
    show(&o, "slow and dead after 40 s", 0);
    assert_int_equal(state_of(&o, slow->guid, 1), PORT_ACTIVE);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_true(whole(&o));
    unsigned sweeps = o.r.sweeps;
    rig_run(&o.r, 60 * MONO_S);
    assert_in_range(o.r.sweeps - sweeps, 0, 3);

    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, dead->guid, false), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "dead one alive", 0);
    assert_int_equal(state_of(&o, dead->guid, 1), PORT_ACTIVE);
    assert_int_equal(findings_of(&o, "peer-silent"), 0);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

static void audits(struct sm_opts *o)
{
    o->audit_interval_ns = 60 * MONO_S;
}

static void test_not_kept(void **state)
{
    struct odd o;
    struct sm_audit_stats a;
    unsigned num;
    (void)state;
    memset(&o, 0, sizeof(o));
    rig_init(&o.r, "rail-16", &odd_wire);
    audits(&o.r.opts);
    const struct node *host = nth(&o, ROLE_HOST, 9), *leaf = peer_of(&o, host, 1, &num);
    assert_int_equal(sim_set_field_not_kept(o.r.sim, leaf->guid, MAD_ATTR_PORT_INFO, "hoq_life", true), 0);
    rig_up(&o.r);
    rig_sweeps(&o.r, 1, 300);
    assert_true(rig_last(&o.r)->ok);
    assert_int_equal(rig_events_of(&o.r, "settings-not-kept"), 1);
    assert_non_null(strstr(o.r.log.data, "ports answer Set(PortInfo) with success but do not keep"));
    rig_run(&o.r, 3 * MONO_S);
    mark(&o);
    rig_run(&o.r, 130 * MONO_S); // light sweeps and an audit round
    show(&o, "a Set that is not kept, 130 s", 0);
    sm_audit_stats(o.r.sm, &a);
    assert_true(a.rounds >= 1);
    assert_int_equal(info_sets(&o), 0);
    assert_int_equal(o.r.events, o.events);

    mark(&o); // its port is reset: it may keep it now
    assert_int_equal(sim_set_field_not_kept(o.r.sim, leaf->guid, MAD_ATTR_PORT_INFO, "hoq_life", false), 0);
    assert_int_equal(sim_link_flap(o.r.sim, leaf->guid, num, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "after the port's reset", 0);
    uint64_t hoq = 0;
    assert_int_equal(sim_port_field(o.r.sim, leaf->guid, num, "hoq_life", &hoq), 0);
    assert_int_equal(hoq, o.r.opts.hoq_life_host);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

// Somebody has set an M_Key with protection on an adapter: it gives no answer, and the finding says why that
// may be.
static void test_m_key(void **state)
{
    struct odd o;
    unsigned num;
    (void)state;
    up_on(&o, "rail-16");
    const struct node *host = nth(&o, ROLE_HOST, 9), *leaf = peer_of(&o, host, 1, &num);
    assert_int_equal(sim_m_key_set(o.r.sim, host->guid, 1, 0x1234567, 3, 0), 0);
    assert_int_equal(sim_link_flap(o.r.sim, leaf->guid, num, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, 15 * MONO_S);
    show(&o, "M_Key set by somebody", 0);
    const struct findings *f = sm_findings(o.r.sm);
    bool named = false;
    for (size_t i = 0; i < f->n; i++) {
        printf("# finding %s at %s: %s\n", f->item[i].code, f->item[i].where, f->item[i].text);
        named |= strstr(f->item[i].text, "M_Key") != NULL && f->item[i].severity > FINDING_INFO;
    }
    assert_true(named);
    assert_true(whole(&o));
    unsigned sweeps = o.r.sweeps;
    rig_run(&o.r, 60 * MONO_S);
    assert_in_range(o.r.sweeps - sweeps, 0, 3);
    mark(&o);
    assert_int_equal(sim_m_key_set(o.r.sim, host->guid, 1, 0, 0, 0), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "M_Key taken away", 0);
    assert_int_equal(state_of(&o, host->guid, 1), PORT_ACTIVE);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

// A switch has forgotten its tables, no port has changed: only its LinearFDBTop tells.
static void test_lft_lost(void **state)
{
    struct odd o;
    static uint8_t nothing[128];
    (void)state;
    up_on(&o, "rail-64");
    memset(nothing, LFT_DROP, sizeof(nothing));
    const struct node *spine = nth(&o, ROLE_SPINE, 1);
    mark(&o);
    assert_int_equal(sim_set_lft(o.r.sim, spine->guid, nothing, sizeof(nothing), 0), 0);
    assert_false(whole(&o));
    int64_t ns = repaired(&o, 3 * MONO_S);
    rig_run(&o.r, MONO_S);
    show(&o, "table lost", ns);
    assert_true(ns < 1500 * MONO_MS);
    assert_false(any_full(&o));
    assert_int_equal(changed_blocks(&o), 0);
    assert_int_equal(lft_sets(&o), sm_fabric(o.r.sm)->top_lid / LFT_BLOCK + 1u);
    assert_in_range(mads(&o), 65, 64 + 30);
    assert_int_equal(rig_events_of(&o.r, "node-reset"), 1);
    assert_int_equal(info_sets(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);
    done(&o);
}

// A thousand hosts at once: power comes back.
static void test_thousand(void **state)
{
    struct odd o;
    struct sim_stats before, after;
    uint64_t timeouts = 0;
    (void)state;
    up_on(&o, "rail-1024");
    for (int up = 0; up < 2; up++) {
        mark(&o);
        sim_get_stats(o.r.sim, &before);
        for (uint32_t i = 0; i < o.r.plan->num_nodes; i++) {
            const struct node *n = &o.r.plan->node[i];
            if (n->type == NODE_CA && o.r.plan->port[o.r.plan->sm_port.i].node.i != i)
                assert_int_equal(sim_link_set(o.r.sim, n->guid, 1, up), 0);
        }
        uint32_t nodes = up ? o.r.plan->num_nodes : o.r.plan->num_switches + 1;
        while (sm_fabric(o.r.sm)->num_nodes != nodes || sm_fabric(o.r.sm)->num_links == 0) {
            rig_run(&o.r, MONO_MS);
            assert_true(mono_sub(loop_now(o.r.loop), o.at) < 10 * MONO_S);
        }
        int64_t ns = repaired(&o, 10 * MONO_S);
        sim_get_stats(o.r.sim, &after);
        for (unsigned i = 0; i < o.r.sweeps - o.sweeps; i++)
            timeouts += sm_history(o.r.sm, i)->timeouts;
        show(&o, up ? "1023 hosts up" : "1023 hosts down", ns);
        assert_int_equal(after.dropped_vl15, before.dropped_vl15);
        assert_int_equal(timeouts, 0);
        assert_false(any_full(&o));
        assert_int_equal(lft_sets(&o), 0);
        rig_run(&o.r, 3 * MONO_S);
        assert_in_range(o.r.events - o.events, 21, 44);
    }
    assert_int_equal(changed_blocks(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 10, 0);
    done(&o);
}

// A leaf's agent dies, and what it forwards goes on: hosts behind it keep their traffic.
static void test_leaf_mute(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *leaf = nth(&o, ROLE_LEAF, 5), *there = NULL, *here = nth(&o, ROLE_HOST, 0);
    for (unsigned num = 1; num <= leaf->num_ports && there == NULL; num++)
        there = peer_of(&o, leaf, num, NULL);
    assert_ptr_not_equal(peer_of(&o, here, 1, NULL), leaf);
    uint64_t a = port_of(&o, here, 1)->guid, z = port_of(&o, there, 1)->guid;
    uint16_t a_lid = lid_of(&o, a), z_lid = lid_of(&o, z);
    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, true), 0);
    for (int i = 0; i < 300; i++) {
        rig_run(&o.r, 100 * MONO_MS);
        assert_true(sim_trace(o.r.sim, a, z_lid, NULL, 0) >= 0);
        assert_true(sim_trace(o.r.sim, z, a_lid, NULL, 0) >= 0);
    }
    show(&o, "leaf's agent dead", 0);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, false), 0);
    rig_run(&o.r, 5 * MONO_S);
    show(&o, "leaf's agent alive", 0);
    assert_int_equal(findings_of(&o, "peer-silent"), 0);
    assert_int_equal(changed_blocks(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);
    done(&o);
}

// --- our own place ---

static void test_own_link(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct port *own = fabric_port(o.r.plan, o.r.plan->sm_port);
    const struct node *node = fabric_node(o.r.plan, own->node), *leaf = own_leaf(&o);
    static const int64_t down[] = {0, 20 * MONO_MS, 3 * MONO_S};
    for (unsigned i = 0; i < 3; i++) {
        mark(&o);
        assert_int_equal(sim_link_flap(o.r.sim, node->guid, own->num, down[i], MONO_MS, 1), 0);
        rig_run(&o.r, down[i]);
        int64_t ns = repaired(&o, 5 * MONO_S);
        rig_run(&o.r, 3 * MONO_S);
        show(&o, "our own link was down", ns);
        assert_int_equal(changed_blocks(&o), 0);
        assert_int_equal(lft_sets(&o), 0);
        assert_true(ns < down[i] + 2 * MONO_S);
        rig_judge(&o.r, NULL, 0);
        quiet(&o, 20, 0);
    }
    mark(&o);
    assert_int_equal(sim_switch_reboot(o.r.sim, leaf->guid), 0);
    rig_run(&o.r, 5 * MONO_S);
    show(&o, "our own leaf has rebooted", 0);
    assert_int_equal(changed_blocks(&o), 0);
    assert_int_equal(rig_events_of(&o.r, "node-reset"), 1);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 20, 0);
    done(&o);
}

// --- a slow switch ---

static void test_slow_switch(void **state)
{
    struct odd o;
    unsigned num;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *spine = nth(&o, ROLE_SPINE, 1), *leaf = nth(&o, ROLE_LEAF, 4);
    assert_int_equal(sim_node_delay(o.r.sim, spine->guid, 300 * MONO_MS), 0);
    rig_run(&o.r, 60 * MONO_S);
    show(&o, "a slow spine, 60 s", 0);
    assert_int_equal(o.r.events, o.events);
    assert_int_equal(lft_sets(&o), 0);
    assert_in_range(o.r.sweeps - o.sweeps, 0, 3);
    for (unsigned i = 0; i < 2; i++) { // elsewhere; its own
        for (num = 1; num <= leaf->num_ports; num++) {
            const struct node *z = peer_of(&o, leaf, num, NULL);
            if (z != NULL && z->type == NODE_SWITCH && (z == spine) == (i == 1))
                break;
        }
        for (int up = 0; up < 2; up++) {
            mark(&o);
            assert_int_equal(sim_link_set(o.r.sim, leaf->guid, num, up), 0);
            int64_t ns = -1;
            for (int k = 0; k < 6000 && ns < 0; k++) {
                rig_run(&o.r, 10 * MONO_MS);
                struct sm_status st;
                sm_get_status(o.r.sm, &st);
                if (whole(&o) && o.r.sweeps > o.sweeps &&
                    (!up || state_of(&o, leaf->guid, num) == PORT_ACTIVE))
                    ns = mono_sub(loop_now(o.r.loop), o.at);
            }
            show(&o, i ? "a trunk of the slow spine" : "a trunk beside the slow spine", ns);
            assert_true(ns >= 0);
            assert_true(ns < (i ? 40 * MONO_S : up ? 2 * MONO_S : MONO_S / 2));
            rig_run(&o.r, 60 * MONO_S);
            show(&o, "a minute later", 0);
            assert_true(whole(&o));
        }
    }
    rig_judge(&o.r, NULL, 0);
    assert_int_equal(sim_node_delay(o.r.sim, spine->guid, 0), 0);
    rig_run(&o.r, 70 * MONO_S);
    assert_int_equal(changed_blocks(&o), 0);
    quiet(&o, 10, 0);
    done(&o);
}

// --- an agent dies between question and order ---

struct killer {
    struct odd *o;
    uint64_t guid;
    bool done;
};

static void kill_at_set(struct rig *r, const uint8_t *mad)
{
    struct killer *k = r->user;
    if (!k->done && mad[3] == MAD_METHOD_SET && mad[17] == MAD_ATTR_PORT_INFO) {
        k->done = true;
        assert_int_equal(sim_node_kill(r->sim, k->guid, true), 0);
    }
}

static void test_dies_midway(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20), *leaf = nth(&o, ROLE_LEAF, 6);
    struct killer k = {&o, host->guid, false};
    o.r.user = &k;
    assert_int_equal(sim_link_set(o.r.sim, host->guid, 1, false), 0);
    rig_run(&o.r, 3 * MONO_S);
    o.r.on_send = kill_at_set;
    mark(&o);
    assert_int_equal(sim_link_set(o.r.sim, host->guid, 1, true), 0);
    rig_run(&o.r, 300 * MONO_MS);
    assert_true(k.done);
    unsigned gone = uplink(&o, leaf, 3);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, gone, false), 0);
    mono_t t0 = loop_now(o.r.loop);
    for (bool used = true; used;) {
        uint8_t port;
        rig_run(&o.r, MONO_MS);
        used = false;
        for (uint16_t lid = 1; lid <= sm_fabric(o.r.sm)->top_lid; lid++)
            used |= sim_lft(o.r.sim, leaf->guid, lid, &port) == 0 && port == gone;
        assert_true(mono_sub(loop_now(o.r.loop), t0) < 30 * MONO_S);
    }
    int64_t ns = mono_sub(loop_now(o.r.loop), t0);
    show(&o, "a trunk while a host dies in configuring", ns);
    assert_true(ns < MONO_S / 2);
    rig_run(&o.r, 20 * MONO_S);
    show(&o, "20 s later", 0);
    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, host->guid, false), 0);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, gone, true), 0);
    rig_run(&o.r, 5 * MONO_S);
    show(&o, "host answers again", 0);
    assert_int_equal(state_of(&o, host->guid, 1), PORT_ACTIVE);
    rig_judge(&o.r, NULL, 0);
    assert_int_equal(changed_blocks(&o), 0);
    done(&o);
}

// A silent device answers while the light sweep waits for one that has just died: more of the first kind may
// come, but a trap is acted upon at once.
static void test_trap_beside_the_silent(void **state)
{
    struct odd o;
    struct sm_status st;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 41), *spine = nth(&o, ROLE_SPINE, 1),
                      *leaf = nth(&o, ROLE_LEAF, 6);
    assert_int_equal(sim_node_kill(o.r.sim, host->guid, true), 0);
    assert_int_equal(sim_link_flap(o.r.sim, host->guid, 1, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, 20 * MONO_S);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    sm_get_status(o.r.sm, &st);
    for (uint64_t before = st.light_sweeps; st.light_sweeps == before; sm_get_status(o.r.sm, &st))
        rig_run(&o.r, MONO_MS);
    assert_int_equal(sim_node_kill(o.r.sim, spine->guid, true), 0);
    assert_int_equal(sim_node_kill(o.r.sim, host->guid, false), 0);
    rig_run(&o.r,
            MONO_S + 10 * MONO_MS); // the next light sweep has the host's answer and waits for the spine's
    mark(&o);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 5), false), 0);
    int64_t ns = repaired(&o, 4 * MONO_S);
    show(&o, "a trunk while the light sweep waits", ns);
    assert_true(ns < MONO_S / 5);
    assert_int_equal(sim_node_kill(o.r.sim, spine->guid, false), 0);
    rig_run(&o.r, 20 * MONO_S);
    done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_and_dead), cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_m_key),         cmocka_unit_test(test_lft_lost),
        cmocka_unit_test(test_thousand),      cmocka_unit_test(test_leaf_mute),
        cmocka_unit_test(test_own_link),      cmocka_unit_test(test_slow_switch),
        cmocka_unit_test(test_dies_midway),   cmocka_unit_test(test_trap_beside_the_silent),
    };
    if (getenv("ODD") != NULL)
        cmocka_set_test_filter(getenv("ODD"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
