// SPDX-License-Identifier: Apache-2.0
// What the manager believes of a fabric without having asked just now, and how it is put right where that is
// wrong: one rule a test. Each of them was found by storms (test_storm.c) first.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "tests/whole/odd.h"
#include "tests/whole/storm.h"

// Takes the reference to f.
static void up_with(struct odd *o, const struct fabric *f, const struct sim_opts *sim)
{
    memset(o, 0, sizeof(*o));
    rig_init_fabric(&o->r, f, sim);
    o->r.in_order = true;
    bring_up(o);
}

static const struct fabric *made(const char *name)
{
    struct err e = {0};
    struct findings fs = {0};
    const struct fabric *f = topogen_or_file(name, &fs, &e);
    findings_done(&fs);
    assert_non_null(f);
    return f;
}

// What the sweeps since the mark have been about, for whoever looks at a failure.
static void tell_sweeps(const struct odd *o)
{
    for (unsigned i = o->r.sweeps - o->sweeps; i-- > 0;) {
        const struct sm_sweep *s = sm_history(o->r.sm, i);
        printf("# %s, %s, %u devices, %llu MADs, %llu times out, %.1f ms: %s\n", s->cause,
               s->full ? "full" : "partial", s->devices, (unsigned long long)s->mads,
               (unsigned long long)s->timeouts, (double)s->ns / 1e6, s->text);
    }
}

// --- the death of a switch is one event ---

// Hops from us to each node when `without` is not there; UINT32_MAX: no way. Returns how
// many nodes have none.
static unsigned hops_without(const struct fabric *f, uint32_t without, uint32_t *ret_hops)
{
    uint32_t *queue = xcalloc(f->num_nodes, sizeof(*queue)), n = 0;
    memset(ret_hops, 0xff, f->num_nodes * sizeof(*ret_hops));
    queue[n++] = f->port[f->sm_port.i].node.i;
    ret_hops[queue[0]] = 0;
    for (uint32_t head = 0; head < n; head++) {
        const struct node *x = &f->node[queue[head]];
        for (unsigned num = 1; num <= x->num_ports && (x->type == NODE_SWITCH || head == 0); num++) {
            const struct node *z = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, x, num)));
            uint32_t i = z != NULL ? (uint32_t)(z - f->node) : without;
            if (i == without || ret_hops[i] != UINT32_MAX)
                continue;
            ret_hops[i] = ret_hops[x - f->node] + 1;
            queue[n++] = i;
        }
    }
    free(queue);
    return f->num_nodes - n;
}

enum death { BY_LINKS, BY_BOOT, UNTOLD, DEATHS };

// Events since the mark are those of `n` nodes, each once, and nothing else.
static void told_once(const struct odd *o, const struct fabric *f, const uint32_t *hops, unsigned n,
                      bool gone, const char *what)
{
    const char *kind = gone ? "node-removed" : "node-added";
    if (rig_events_of(&o->r, kind) != n || o->r.events - o->events != n) {
        tell_sweeps(o);
        fail_msg("%s: not %u events %s but\n%s", what, n, kind, o->r.log.len ? o->r.log.data : "none");
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const char *desc = fabric_desc(f, &f->node[i]);
        bool here = hops[i] != UINT32_MAX;
        if (!here && strstr(o->r.log.data, desc) == NULL)
            fail_msg("%s: no event of %s but\n%s", what, desc, o->r.log.data);
        assert_int_equal(fabric_by_guid(sm_fabric(o->r.sm), f->node[i].guid) != NULL, here || !gone);
    }
}

static void dies_once(struct odd *o, const char *name, uint32_t i, enum death how)
{
    const struct fabric *f = o->r.plan;
    const struct node *sw = &f->node[i];
    uint32_t *hops = xcalloc(f->num_nodes, sizeof(*hops));
    unsigned n = hops_without(f, i, hops);
    char what[200];
    snprintf(what, sizeof(what), "%s, %s, %u", name, fabric_desc(f, sw), how);

    if (n <= 20) { // more are summed up
        if (how == UNTOLD)
            sim_trap_loss(o->r.sim, 1);
        mark(o);
        if (how == BY_BOOT)
            assert_int_equal(sim_node_boot(o->r.sim, sw->guid, 6 * MONO_S, 6500 * MONO_MS), 0);
        else
            all_links(o, sw, false);
        rig_run(&o->r, 5 * MONO_S);
        told_once(o, f, hops, n, true, what);
        mark(o);
        if (how != BY_BOOT)
            all_links(o, sw, true);
        rig_run(&o->r, 10 * MONO_S);
        sim_trap_loss(o->r.sim, 0);
        told_once(o, f, hops, n, false, what);
        rig_judge(&o->r, NULL, 0);
        assert_int_equal(changed_blocks(o), 0);
    }
    free(hops);
}

static void all_die_once(const struct fabric *f, const char *name)
{
    struct odd o;
    up_with(&o, f, &odd_wire);
    const struct node *own = own_leaf(&o);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->node[i].type == NODE_SWITCH && &f->node[i] != own)
            for (enum death how = BY_LINKS; how < DEATHS; how++)
                dies_once(&o, name, i, how);
    done(&o);
}

static void test_death_is_one_event(void **state)
{
    (void)state;
    all_die_once(made("rail-16"), "rail-16");
    all_die_once(made("ft3-4-4"), "ft3-4-4");
    all_die_once(made("ft3-8-2"), "ft3-8-2");
}

static void test_death_in_a_mesh_is_one_event(void **state)
{
    (void)state;
    for (uint64_t seed = 1, n = 0; n < 12; seed++) {
        struct rng rng;
        const char *name;
        char text[40];
        rng_init(&rng, seed);
        const struct fabric *f = plan_of(&rng, &name);
        snprintf(text, sizeof(text), "%s %llu", name, (unsigned long long)seed);
        if (strcmp(name, "mesh") != 0 && strcmp(name, "two aggs") != 0) {
            fabric_unref(f);
            continue;
        }
        n++;
        all_die_once(f, text);
    }
}

// --- a meddler on the wire ---

// The device that a directed route leads to, along the cables as they were planned.
static const struct node *at_end_of(const struct fabric *f, const uint8_t *mad)
{
    const struct node *n = fabric_node(f, f->port[f->sm_port.i].node);
    for (unsigned i = 1; i <= mad[7] && n != NULL; i++)
        n = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, mad[128 + i])));
    return n;
}

static bool is_smp(const uint8_t *mad, uint8_t method, uint16_t attr_id)
{
    return mad[1] == MAD_CLASS_SM_DR && mad[3] == method && (mad[16] << 8 | mad[17]) == attr_id;
}

struct meddler { // rig.user
    struct odd *o;
    const struct node *node, *leaf;
    unsigned num; // port of the leaf
    uint64_t guid;
    mono_t until;
    unsigned met, max;
    uint8_t tid[4]; // the engine's part of the last one's
};

static unsigned sweeps_for(const struct odd *o, const char *cause)
{
    unsigned n = 0;
    for (unsigned i = 0; i < o->r.sweeps - o->sweeps; i++)
        n += strcmp(sm_history(o->r.sm, i)->cause, cause) == 0;
    return n;
}

// --- nobody answers at all ---

static bool swallow(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    (void)r;
    (void)to;
    return mad[1] != MAD_CLASS_SM_DR || mad[7] > 0; // what goes to ourselves arrives
}

// Our own link's fault, not everybody's death.
static void test_nobody_answers(void **state)
{
    struct odd o;
    (void)state;
    up_with(&o, made("rail-16"), &odd_wire);
    o.r.take_send = swallow;
    while (rig_events_of(&o.r, "sweep-failed") == 0) {
        rig_run(&o.r, 10 * MONO_MS);
        assert_int_equal(sm_fabric(o.r.sm)->num_nodes, o.r.plan->num_nodes);
        assert_true(mono_sub(loop_now(o.r.loop), o.at) < 30 * MONO_S);
    }
    assert_non_null(strstr(o.r.log.data, "nobody answers any more"));
    rig_run(&o.r, 100 * MONO_S); // everything has been read, in vain
    assert_int_equal(sm_fabric(o.r.sm)->num_nodes, o.r.plan->num_nodes);
    assert_non_null(strstr(o.r.log.data, "nobody answers behind it"));
    o.r.take_send = NULL;
    rig_run(&o.r, 100 * MONO_S);
    assert_true(any_full(&o));
    assert_int_equal(o.r.events - o.events, 3); // failed, failed otherwise, recovered
    assert_int_equal(changed_blocks(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 70, 0);
    done(&o);
}

// --- an adapter is replaced after it was asked who it is ---

static void replace_at_arming(struct rig *r, const uint8_t *mad)
{
    struct meddler *m = r->user;
    if (m->met > 0 || !is_smp(mad, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) ||
        at_end_of(r->plan, mad) != m->leaf || mad[23] != m->num)
        return;
    m->met++;
    assert_int_equal(sim_node_replace(r->sim, m->node->guid, m->guid, 0), 0);
}

static void test_replaced_in_between(void **state)
{
    struct odd o;
    (void)state;
    up_with(&o, made("rail-16"), &odd_wire);
    struct meddler m = {.o = &o, .node = nth(&o, ROLE_HOST, 9), .guid = 0x00abcdef00000010};
    m.leaf = peer_of(&o, m.node, 1, &m.num);
    uint16_t lid = lid_of(&o, port_of(&o, m.node, 1)->guid);
    o.r.user = &m;
    o.r.on_send = replace_at_arming;
    sim_trap_loss(o.r.sim, 1);
    assert_int_equal(sim_link_flap(o.r.sim, m.node->guid, 1, 0, MONO_MS, 1), 0);
    rig_run(&o.r, 5 * MONO_S);
    assert_int_equal(m.met, 1);
    assert_null(fabric_by_guid(sm_fabric(o.r.sm), m.node->guid));
    const struct node *fresh = fabric_by_guid(sm_fabric(o.r.sm), m.guid);
    assert_non_null(fresh);
    assert_int_equal(state_of(&o, m.guid, 1), PORT_ACTIVE);
    uint16_t now = fabric_port(sm_fabric(o.r.sm), fabric_port_at(sm_fabric(o.r.sm), fresh, 1))->a.lid;
    assert_true(now != 0 && now != lid);
    assert_true(whole(&o));
    assert_int_equal(rig_events_of(&o.r, "node-removed"), 1);
    assert_int_equal(rig_events_of(&o.r, "node-added"), 1);
    assert_int_equal(o.r.events - o.events, 2);
    assert_false(any_full(&o));
    quiet(&o, 70, 0);
    done(&o);
}

// --- a host is met at a new place, and the old one says nothing ---

static void test_moved_from_a_silent_place(void **state)
{
    struct odd o;
    unsigned old_num;
    (void)state;
    up_with(&o, made("rail-64"), &odd_wire);
    const struct node *host = nth(&o, ROLE_HOST, 20), *dead = nth(&o, ROLE_HOST, 41);
    const struct node *old = peer_of(&o, host, 1, &old_num);
    const struct node *to = nth(&o, ROLE_LEAF, old == nth(&o, ROLE_LEAF, 5) ? 4 : 5);
    assert_null(peer_of(&o, to, 20, NULL));
    assert_int_equal(sim_trap_lose(o.r.sim, old->guid, UINT32_MAX), 0);
    assert_int_equal(sim_node_kill(o.r.sim, dead->guid, true), 0);
    assert_int_equal(sim_recable(o.r.sim, host->guid, 1, to->guid, 20), 0);
    assert_int_equal(sim_recable(o.r.sim, dead->guid, 1, old->guid, old_num), 0);
    while (peer_now(&o, host->guid, 1) == NULL || peer_now(&o, host->guid, 1)->guid != to->guid ||
           !whole(&o) || state_of(&o, host->guid, 1) != PORT_ACTIVE) {
        rig_run(&o.r, MONO_MS);
        if (mono_sub(loop_now(o.r.loop), o.at) > 20 * MONO_S) {
            tell_sweeps(&o);
            fail_msg("it is not at its new place");
        }
    }
    show(&o, "moved from a silent place", mono_sub(loop_now(o.r.loop), o.at));
    rig_run(&o.r, 20 * MONO_S);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    assert_false(any_full(&o));
    quiet(&o, 70, 0);
    done(&o);
}

// --- reading on leads to nothing ---

static bool mute_until_full(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct meddler *m = r->user;
    (void)to;
    if (mad[1] == MAD_CLASS_SM_DR && mad[7] == 0 && is_smp(mad, MAD_METHOD_GET, MAD_ATTR_NODE_INFO))
        m->guid = 1; // a full sweep begins so
    if (m->guid == 1 || !is_smp(mad, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO) ||
        at_end_of(r->plan, mad) != m->node)
        return false;
    m->met++;
    return true;
}

static void test_reading_on_in_vain(void **state)
{
    struct odd o;
    (void)state;
    up_with(&o, made("rail-16"), &odd_wire);
    struct meddler m = {.o = &o, .node = nth(&o, ROLE_SPINE, 1)};
    o.r.user = &m;
    o.r.take_send = mute_until_full;
    assert_int_equal(sim_raise_trap(o.r.sim, m.node->guid, 0, 128), 0);
    rig_run(&o.r, 120 * MONO_S);
    assert_true(m.met > 0);
    assert_true(any_full(&o));
    assert_in_range(sweeps_for(&o, "unread"), 2, 20);
    assert_int_equal(o.r.events, o.events);
    assert_int_equal(changed_blocks(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 70, 0);
    done(&o);
}

// --- a switch answers in an adapter's place ---

// SwitchInfo never tells of a change.
static bool hide_change(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct mad_switch_info si;
    uint8_t lie[MAD_SIZE];
    if (status != 0 || !is_smp(mad, MAD_METHOD_GET_RESP, MAD_ATTR_SWITCH_INFO))
        return false;
    memcpy(lie, mad, sizeof(lie));
    mad_switch_info_decode(mad + 64, &si);
    si.port_state_change = false;
    mad_switch_info_encode(&si, lie + 64);
    rig_deliver(r, lie, from, status);
    return true;
}

static const struct node *other_leaf(const struct odd *o, const struct node *leaf)
{
    const struct node *x = nth(o, ROLE_LEAF, 3);
    return x != leaf ? x : nth(o, ROLE_LEAF, 4);
}

static void swap_at_set(struct rig *r, const uint8_t *mad)
{
    struct meddler *m = r->user;
    const struct node *other = other_leaf(m->o, m->leaf);
    if (m->met > 0 || !is_smp(mad, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) ||
        at_end_of(r->plan, mad) != m->leaf || mad[23] != m->num)
        return;
    m->met++;
    sim_trap_loss(r->sim, 1);
    assert_int_equal(sim_swap_cables(r->sim, m->leaf->guid, m->num, other->guid, uplink(m->o, other, 1)), 0);
}

static void test_a_switch_in_its_place(void **state)
{
    struct odd o;
    (void)state;
    memset(&o, 0, sizeof(o));
    rig_init_fabric(&o.r, made("rail-16"), &odd_wire);
    o.r.in_order = true;
    o.r.take_recv = hide_change;
    bring_up(&o);
    struct meddler m = {.o = &o, .node = nth(&o, ROLE_HOST, 9)};
    m.leaf = peer_of(&o, m.node, 1, &m.num);
    const struct node *other = other_leaf(&o, m.leaf);
    unsigned far = uplink(&o, other, 1);
    const struct node *spine = peer_of(&o, other, far, NULL);
    o.r.user = &m;
    o.r.on_send = swap_at_set;
    assert_int_equal(sim_link_flap(o.r.sim, m.node->guid, 1, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, 20 * MONO_S);
    assert_int_equal(m.met, 1);
    assert_true(peer_now(&o, m.leaf->guid, m.num) != NULL);
    assert_int_equal(peer_now(&o, m.leaf->guid, m.num)->guid, spine->guid);
    assert_true(peer_now(&o, m.node->guid, 1) != NULL);
    assert_int_equal(peer_now(&o, m.node->guid, 1)->guid, other->guid);
    assert_int_equal(state_of(&o, m.leaf->guid, m.num), PORT_ACTIVE);
    assert_int_equal(state_of(&o, m.node->guid, 1), PORT_ACTIVE);
    assert_true(whole(&o));
    quiet(&o, 70, 0);
    done(&o);
}

// --- a restart while the first switch is silent ---

// A trunk has failed, and is back by the time of the restart: the tables are ours and not what they should
// be.
static void repaired_and_down(struct odd *o, uint8_t **ret_home)
{
    up_with(o, made("ft3-4-4"), &odd_wire);
    *ret_home = tables(o);
    const struct node *leaf = nth(o, ROLE_LEAF, 5);
    assert_int_equal(sim_link_set(o->r.sim, leaf->guid, uplink(o, leaf, 0), false), 0);
    repaired(o, 2 * MONO_S);
    rig_run(&o->r, 5 * MONO_S);
    rig_down(&o->r);
    assert_int_equal(sim_link_set(o->r.sim, leaf->guid, uplink(o, leaf, 0), true), 0);
}

// They have been brought to what they should be; frees it.
static void ours_again(struct odd *o, uint8_t *home)
{
    struct sm_status st;
    sm_get_status(o->r.sm, &st);
    assert_true(st.up);
    assert_string_equal(sm_tables(o->r.sm)->engine, "rail");
    assert_null(strstr(st.route.why, "adopted"));
    changed_blocks(o);
    assert_memory_equal(home, o->before, (size_t)o->r.plan->num_switches * o->lids);
    free(home);
    rig_judge(&o->r, NULL, 0);
    quiet(o, 70, 0);
}

static void kill_at_nth(struct rig *r, const uint8_t *mad)
{
    struct meddler *m = r->user;
    if (mad[1] == MAD_CLASS_SM_DR && at_end_of(r->plan, mad) == m->leaf && ++m->met == m->num)
        assert_int_equal(sim_node_kill(r->sim, m->leaf->guid, true), 0);
}

// The first switch is silent from the nth question on, up to the end of the first sweep or for long.
static void restart_behind_silence(unsigned nth_mad, bool for_long)
{
    struct odd o;
    uint8_t *home;
    repaired_and_down(&o, &home);
    struct meddler m = {.o = &o, .leaf = own_leaf(&o), .num = nth_mad};
    o.r.user = &m;
    o.r.on_send = kill_at_nth;
    rig_up(&o.r);
    if (for_long)
        rig_run(&o.r, 20 * MONO_S);
    else
        rig_sweeps(&o.r, 1, 60);
    o.r.on_send = NULL;
    assert_int_equal(sim_node_kill(o.r.sim, m.leaf->guid, false), 0);
    rig_run(&o.r, 20 * MONO_S);
    ours_again(&o, home);
    done(&o);
}

// The first switch, or all behind it, are silent at a restart, and not at the next.
static void restart_twice(bool first)
{
    struct odd o;
    uint8_t *home;
    repaired_and_down(&o, &home);
    for (int dead = 1; dead >= 0; dead--) {
        for (uint32_t i = 0; i < o.r.plan->num_nodes; i++) {
            const struct node *n = &o.r.plan->node[i];
            if (n->type == NODE_SWITCH && (n == own_leaf(&o)) == first)
                assert_int_equal(sim_node_kill(o.r.sim, n->guid, dead), 0);
        }
        rig_down(&o.r);
        rig_up(&o.r);
        rig_run(&o.r, 20 * MONO_S);
    }
    ours_again(&o, home);
    done(&o);
}

static void test_restart_twice(void **state)
{
    (void)state;
    restart_twice(false);
    restart_twice(true);
}

static void test_restart_behind_silence(void **state)
{
    (void)state;
    for (unsigned n = 1; n < 80; n++)
        restart_behind_silence(n % 40, n > 40);
}

// --- a link that stays idle ---

// A port that is asked to be ARMED says that it is Down, and stays in INIT.
static bool do_not_arm(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct meddler *m = r->user;
    struct mad_port_info pi;
    uint8_t lie[MAD_SIZE];
    if (!is_smp(mad, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) || mad[23] != m->num ||
        at_end_of(r->plan, mad) != m->leaf || m->met == m->max)
        return false;
    memcpy(lie, mad, sizeof(lie));
    mad_port_info_decode(mad + 64, &pi);
    if (pi.port_state != MAD_PORT_ARMED)
        return false;
    pi.port_state = MAD_PORT_NO_CHANGE;
    mad_port_info_encode(&pi, lie + 64);
    memcpy(m->tid, mad + 12, sizeof(m->tid));
    m->met++;
    return r->transport->ops->send(r->transport, lie, to, MONO_S) == 0;
}

static bool say_down(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct meddler *m = r->user;
    struct mad_port_info pi;
    uint8_t lie[MAD_SIZE];
    if (status != 0 || m->met == 0 || !is_smp(mad, MAD_METHOD_GET_RESP, MAD_ATTR_PORT_INFO) ||
        memcmp(mad + 12, m->tid, sizeof(m->tid)) != 0)
        return false;
    memcpy(lie, mad, sizeof(lie));
    mad_port_info_decode(mad + 64, &pi);
    pi.port_state = MAD_PORT_DOWN;
    mad_port_info_encode(&pi, lie + 64);
    rig_deliver(r, lie, from, status);
    return true;
}

static void test_idle_link(void **state)
{
    struct odd o;
    (void)state;
    up_with(&o, made("rail-16"), &odd_wire);
    struct meddler m = {.o = &o};
    const struct node *leaf = nth(&o, ROLE_LEAF, 3);
    unsigned num = uplink(&o, leaf, 1);
    m.leaf = peer_of(&o, leaf, num, &m.num);
    o.r.user = &m;
    o.r.take_send = do_not_arm;
    o.r.take_recv = say_down;
    static const struct {
        unsigned refusals, seconds, looks;
    } row[] = {{1, 3, 1}, {4, 30, 4}, {UINT32_MAX, 100, 8}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        bool forever = row[i].refusals == UINT32_MAX;
        mark(&o);
        m.met = 0;
        m.max = row[i].refusals;
        assert_int_equal(sim_link_flap(o.r.sim, leaf->guid, num, 10 * MONO_MS, MONO_MS, 1), 0);
        rig_run(&o.r, row[i].seconds * MONO_S);
        assert_true(m.met > 0);
        assert_in_range(sweeps_for(&o, "not-active"), 1, row[i].looks);
        assert_int_equal(state_of(&o, leaf->guid, num) == PORT_ACTIVE, !forever);
        if (!forever)
            quiet(&o, 70, 0);
    }
    mark(&o);
    rig_run(&o.r, 640 * MONO_S);
    assert_in_range(sweeps_for(&o, "not-active"), 1, 11);
    done(&o);
}

// --- tables that a switch does not take ---

static bool lose_tables(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct meddler *m = r->user;
    (void)to;
    if (mono_sub(loop_now(r->loop), m->until) > 0 ||
        !is_smp(mad, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE))
        return false;
    if (m->node == NULL)
        m->node = at_end_of(r->plan, mad);
    if (m->node != at_end_of(r->plan, mad))
        return false;
    m->met++;
    return true;
}

static void test_unfinished(void **state)
{
    struct odd o;
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        up_with(&o, made("ft3-4-4"), &odd_wire);
        uint8_t *home = tables(&o);
        const struct node *leaf = nth(&o, ROLE_LEAF, 5);
        unsigned num = uplink(&o, leaf, 0);
        struct meddler m = {.o = &o}; // node: the first that is written to
        m.until = mono_add(o.at, forever ? 100 * MONO_S : MONO_S);
        o.r.user = &m;
        o.r.take_send = lose_tables;
        assert_int_equal(sim_link_set(o.r.sim, leaf->guid, num, false), 0);
        rig_run(&o.r, forever ? 100 * MONO_S : 20 * MONO_S);
        assert_true(m.met > 0);
        assert_int_equal(any_full(&o), forever);
        assert_in_range(rig_events_of(&o.r, "sweep-failed"), forever, 2 * forever); // not at every try
        rig_run(&o.r, 70 * MONO_S);
        assert_true(whole(&o));
        assert_int_equal(sim_link_set(o.r.sim, leaf->guid, num, true), 0);
        rig_run(&o.r, 10 * MONO_S);
        changed_blocks(&o);
        assert_memory_equal(home, o.before, (size_t)o.r.plan->num_switches * o.lids);
        rig_judge(&o.r, NULL, 0);
        free(home);
        done(&o);
    }
}

int main(void)
{
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death_is_one_event),
        cmocka_unit_test(test_death_in_a_mesh_is_one_event),
        cmocka_unit_test(test_nobody_answers),
        cmocka_unit_test(test_replaced_in_between),
        cmocka_unit_test(test_moved_from_a_silent_place),
        cmocka_unit_test(test_reading_on_in_vain),
        cmocka_unit_test(test_a_switch_in_its_place),
        cmocka_unit_test(test_restart_behind_silence),
        cmocka_unit_test(test_idle_link),
        cmocka_unit_test(test_restart_twice),
        cmocka_unit_test(test_unfinished),
    };
    if (getenv("ODD") != NULL)
        cmocka_set_test_filter(getenv("ODD"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
