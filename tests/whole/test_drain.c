// SPDX-License-Identifier: Apache-2.0
// Cables and switches that are drained: the simulator's own tables are walked from a host on every leaf to
// every LID, after each block that is written too. Nothing that has another way crosses what is drained, and
// no pair is without a way at any moment.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mad/mad.h"
#include "sm/drain.h"
#include "tests/whole/rig.h"

#define TIMED                                                                                                \
    &(struct sim_opts)                                                                                       \
    {                                                                                                        \
        .seed = 3, .link_latency_ns = 1000, .service_ns = 5000                                               \
    }

struct drill {
    struct rig r;
    uint64_t *source; // a port on every leaf
    unsigned num_sources;
    uint16_t *lid; // every LID
    uint64_t *owner;
    unsigned num_lids;
    bool watching;   // a block was answered: walk
    unsigned walked; // whole walks
    uint8_t *before; // entries when it began
};

// --- walking ---

struct crossing {
    const struct drill *d;
    uint64_t guid; // of a switch
    unsigned port; // 0: any
    unsigned n;
};

static void on_hop(void *arg, uint64_t guid, unsigned port, unsigned vl)
{
    struct crossing *x = arg;
    (void)vl;
    x->n += guid == x->guid && (x->port == 0 || x->port == port);
}

// Packets from a host on every leaf to every LID; fails when one is lost. How many leave by that port, or are
// sent on by that switch; without those for its own LID. ends: only to those of adapters.
static unsigned walk_to(struct drill *d, uint64_t guid, unsigned port, bool ends)
{
    struct crossing x = {.d = d, .guid = guid, .port = port};
    char where[200];
    for (unsigned s = 0; s < d->num_sources; s++)
        for (unsigned i = 0; i < d->num_lids; i++) {
            unsigned had = x.n;
            if (ends && fabric_by_guid(d->r.plan, d->owner[i])->type == NODE_SWITCH)
                continue;
            if (sim_trace_sl(d->r.sim, d->source[s], d->lid[i], 0, on_hop, &x, where, sizeof(where)) < 0)
                fail_msg("LID %u is not reached from source %u: %s", d->lid[i], s, where);
            if (d->owner[i] == guid)
                x.n = had;
        }
    d->walked++;
    return x.n;
}

static unsigned walk(struct drill *d, uint64_t guid, unsigned port)
{
    return walk_to(d, guid, port, false);
}

// What goes to a switch's own LID may have to be dropped for the moment of a wave: no traffic of hosts.
static bool on_recv(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct drill *d = (struct drill *)r;
    struct mad_hdr h;
    (void)from;
    mad_hdr_decode(mad, &h);
    if (d->watching && status == 0 && h.attr_id == MAD_ATTR_LINEAR_FORWARDING_TABLE)
        walk_to(d, 0, 0, true);
    return false;
}

// --- bringing up ---

static void gather(struct drill *d)
{
    const struct fabric *f = d->r.plan;
    bool *seen = calloc(f->num_switches + 1, 1);
    struct sim_port_view v;
    d->source = calloc(f->num_switches + 1, sizeof(*d->source));
    d->lid = calloc(f->num_ports, sizeof(*d->lid));
    d->owner = calloc(f->num_ports, sizeof(*d->owner));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *n = fabric_node(f, p->node), *z = fabric_peer_node(f, p);
        if (!port_is_end(f, p) || (n->type != NODE_SWITCH && z == NULL))
            continue;
        assert_int_equal(sim_port_view(d->r.sim, n->guid, p->num, &v), 0);
        assert_int_not_equal(v.lid, 0);
        d->owner[d->num_lids] = n->guid;
        d->lid[d->num_lids++] = v.lid;
        if (n->type != NODE_SWITCH && z->type == NODE_SWITCH && !seen[z->sw]) {
            seen[z->sw] = true;
            d->source[d->num_sources++] = p->guid;
        }
    }
    free(seen);
}

static uint8_t *entries(const struct drill *d)
{
    const struct fabric *f = d->r.plan;
    uint8_t *e = calloc(f->num_switches, 0x1000);
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (unsigned i = 0; i < d->num_lids; i++)
            sim_lft(d->r.sim, fabric_switch(f, sw)->guid, d->lid[i], &e[(size_t)sw * 0x1000 + d->lid[i]]);
    return e;
}

static void as_before(const struct drill *d)
{
    uint8_t *now = entries(d);
    assert_memory_equal(now, d->before, (size_t)d->r.plan->num_switches * 0x1000);
    free(now);
}

static void settle(struct drill *d)
{
    for (unsigned i = 0, before = UINT32_MAX; i < 60 && before != d->r.sweeps; i++) {
        before = d->r.sweeps;
        rig_run(&d->r, 10 * MONO_S);
    }
    assert_true(rig_last(&d->r)->ok);
}

static void start(struct drill *d, const char *name)
{
    memset(d, 0, sizeof(*d));
    rig_init(&d->r, name, TIMED);
    rig_up(&d->r);
    rig_sweeps(&d->r, 1, 300);
    settle(d);
    gather(d);
    d->before = entries(d);
    d->r.take_recv = on_recv;
    d->watching = true;
}

static void finish(struct drill *d)
{
    rig_done(&d->r);
    free(d->source);
    free(d->lid);
    free(d->owner);
    free(d->before);
}

static const struct node *with_role(const struct drill *d, enum node_role role, unsigned nth)
{
    const struct fabric *f = d->r.plan;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->node[i].role == role && nth-- == 0)
            return &f->node[i];
    fail_msg("no such node");
    return NULL;
}

// The nth port of a switch that leads to another one (or to none, `trunk` false).
static struct sm_drain_place port_of(const struct drill *d, const struct node *n, unsigned nth, bool trunk)
{
    const struct fabric *f = d->r.plan;
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *z = fabric_peer_node(f, &f->port[n->first_port + num]);
        if (z != NULL && (z->type == NODE_SWITCH) == trunk && nth-- == 0)
            return (struct sm_drain_place){n->guid, (uint8_t)num};
    }
    fail_msg("no such port");
    return (struct sm_drain_place){0};
}

static struct sm_drain_place far_end(const struct drill *d, struct sm_drain_place at)
{
    const struct fabric *f = d->r.plan;
    const struct node *n = fabric_by_guid(f, at.guid);
    const struct port *z = &f->port[f->port[n->first_port + at.port].peer.i];
    return (struct sm_drain_place){fabric_node(f, z->node)->guid, z->num};
}

static const struct sm_drain *drain(struct drill *d, struct sm_drain_place at)
{
    struct err e = {0};
    unsigned before = d->r.sweeps;
    int rc = rig_drain(&d->r, &at, "user id 0", "optics\tare\nbad", &e);
    if (rc != 0)
        fail_msg("%d: %s", rc, e.text);
    assert_int_equal(sm_drain_find(d->r.sm, &at)->state, SM_DRAIN_MOVING);
    rig_sweeps(&d->r, 1, 10);
    assert_true(d->r.sweeps > before);
    assert_true(rig_last(&d->r)->ok);
    assert_string_equal(rig_last(&d->r)->cause, "drain");
    assert_int_equal(rig_last(&d->r)->devices, 0); // nothing is read for it
    return sm_drain_find(d->r.sm, &at);
}

static void undrain(struct drill *d, struct sm_drain_place at)
{
    struct err e = {0};
    if (rig_undrain(&d->r, &at, "user id 0", &e) != 0)
        fail_msg("%s", e.text);
    rig_sweeps(&d->r, 1, 10);
    assert_true(rig_last(&d->r)->ok);
}

// --- a cable ---

static void swap_cable(const char *name, enum node_role role, unsigned nth)
{
    struct drill d;
    start(&d, name);
    struct sm_drain_place at = port_of(&d, with_role(&d, role, nth), 1, true), far = far_end(&d, at);
    assert_true(walk(&d, at.guid, at.port) + walk(&d, far.guid, far.port) > 0); // it is used

    unsigned walked = d.walked;
    const struct sm_drain *x = drain(&d, at);
    assert_true(rig_last(&d.r)->paths_moved > 0);
    assert_true(d.walked > walked);
    assert_int_equal(x->state, SM_DRAIN_DRAINED);
    assert_int_equal(x->cables, 1);
    assert_string_equal(x->reason, "optics are bad");
    assert_int_equal(walk(&d, at.guid, at.port) + walk(&d, far.guid, far.port), 0);
    assert_int_equal(rig_events_of(&d.r, "link-drained"), 1);

    // Pulled: nothing has to move, and nobody is alarmed.
    assert_int_equal(sim_link_set(d.r.sim, at.guid, at.port, false), 0);
    settle(&d);
    for (unsigned i = 0; sm_history(d.r.sm, i) != NULL && strcmp(sm_history(d.r.sm, i)->cause, "drain") != 0;
         i++) {
        assert_int_equal(sm_history(d.r.sm, i)->lft_blocks_set, 0);
        assert_int_equal(sm_history(d.r.sm, i)->paths_moved, 0);
    }
    assert_int_equal(rig_events_of(&d.r, "drained-link-down"), 1);
    assert_int_equal(rig_events_of(&d.r, "link-removed"), 0);
    walk(&d, 0, 0);

    // Another one is plugged in: up, and still unused.
    assert_int_equal(sim_link_set(d.r.sim, at.guid, at.port, true), 0);
    settle(&d);
    struct sim_port_view v;
    assert_int_equal(sim_port_view(d.r.sim, at.guid, at.port, &v), 0);
    assert_int_equal(v.state, PORT_ACTIVE);
    assert_int_equal(rig_events_of(&d.r, "drained-link-up"), 1);
    assert_int_equal(walk(&d, at.guid, at.port) + walk(&d, far.guid, far.port), 0);

    undrain(&d, far); // by the other end
    assert_null(sm_drain_nth(d.r.sm, 0));
    as_before(&d);
    finish(&d);
}

static void test_cable(void **state)
{
    (void)state;
    swap_cable("rail-256", ROLE_LEAF, 2);
    swap_cable("rail-256", ROLE_LEAF, 0);
    swap_cable("ft3-8-4", ROLE_SPINE, 3);
    swap_cable("ft3-8-4", ROLE_CORE, 1);
}

// --- a switch ---

static void restart(struct drill *d)
{
    rig_down(&d->r);
    rig_up(&d->r);
    d->r.take_recv = on_recv;
    rig_sweeps(&d->r, 1, 300);
    settle(d);
}

static void swap_switch(const char *name, enum node_role role, unsigned which)
{
    struct drill d;
    start(&d, name);
    const struct node *n = with_role(&d, role, which);
    struct sm_drain_place at = {n->guid, 0};
    assert_true(walk(&d, n->guid, 0) > 0);

    const struct sm_drain *x = drain(&d, at);
    assert_int_equal(x->state, SM_DRAIN_DRAINED);
    assert_true(x->cables > 1);
    assert_int_equal(walk(&d, n->guid, 0), 0);
    assert_int_equal(rig_events_of(&d.r, "node-drained"), 1);

    restart(&d); // the drain holds, and the tables that it made are known again
    assert_int_equal(rig_count(&d.r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE), 0);
    x = sm_drain_find(d.r.sm, &at);
    assert_non_null(x);
    assert_int_equal(x->state, SM_DRAIN_DRAINED);
    assert_string_equal(x->by, "user id 0");
    assert_string_equal(x->reason, "optics are bad");

    d.watching = false; // while it boots its own LID is out of reach
    buf_clear(&d.r.log);
    assert_int_equal(sim_node_boot(d.r.sim, n->guid, 5 * MONO_S, 5 * MONO_S), 0);
    settle(&d);
    d.watching = true;
    assert_int_equal(rig_events_of(&d.r, "node-removed"), 0);
    assert_int_equal(rig_events_of(&d.r, "drained-node-down"), 1);
    assert_int_equal(rig_events_of(&d.r, "drained-node-up"), 1);
    assert_int_equal(walk(&d, n->guid, 0), 0);

    undrain(&d, at);
    as_before(&d);
    finish(&d);
}

static void test_switch(void **state)
{
    (void)state;
    swap_switch("rail-256", ROLE_SPINE, 1);
    swap_switch("ft3-8-4", ROLE_SPINE, 5); // not of the pod of the order's top
    swap_switch("ft3-8-4", ROLE_CORE, 1);
}

// --- with something else ---

static void test_fault_beside(void **state)
{
    struct drill d;
    (void)state;
    start(&d, "rail-256");
    const struct node *leaf = with_role(&d, ROLE_LEAF, 3);
    struct sm_drain_place at = port_of(&d, leaf, 0, true), other = port_of(&d, leaf, 5, true);
    drain(&d, at);
    d.watching = false; // a cable that dies loses what is on it
    assert_int_equal(sim_link_set(d.r.sim, other.guid, other.port, false), 0);
    settle(&d);
    assert_int_equal(rig_events_of(&d.r, "link-removed"), 1);
    assert_int_equal(walk(&d, at.guid, at.port) + walk(&d, other.guid, other.port), 0);
    d.watching = false; // tables lead over it a moment before it is ACTIVE
    assert_int_equal(sim_link_set(d.r.sim, other.guid, other.port, true), 0);
    settle(&d);
    d.watching = true;
    assert_int_equal(walk(&d, at.guid, at.port), 0);
    assert_true(walk(&d, other.guid, other.port) > 0);
    undrain(&d, at);
    as_before(&d);
    finish(&d);
}

static bool finding(const struct drill *d, const char *code, const char *text)
{
    const struct findings *f = sm_findings(d->r.sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, code) == 0 && strstr(f->item[i].text, text) != NULL)
            return true;
    return false;
}

// Another device comes in its place: the drain is of the old one, and ends when the blueprint has lost that.
static void test_replaced(void **state)
{
    struct drill d;
    (void)state;
    start(&d, "rail-64");
    const struct node *spine = with_role(&d, ROLE_SPINE, 1);
    struct sm_drain_place at = {spine->guid, 0};
    sm_blueprint_ask(d.r.sm, SM_BLUEPRINT_ACCEPT, NULL, "me");
    settle(&d);
    drain(&d, at);
    d.watching = false;
    assert_int_equal(sim_node_replace(d.r.sim, spine->guid, 0xfeed0000, MONO_S), 0);
    settle(&d);
    const struct sm_drain *x = sm_drain_find(d.r.sm, &at);
    assert_non_null(x);
    assert_true(sm_drain_away(d.r.sm, x));
    char text[60];
    snprintf(text, sizeof(text), "weft node undrain 0x%016llx", (unsigned long long)spine->guid);
    assert_true(finding(&d, "drained-away", text));
    sm_blueprint_ask(d.r.sm, SM_BLUEPRINT_ACCEPT, NULL, "me");
    settle(&d);
    assert_null(sm_drain_nth(d.r.sm, 0));
    assert_int_equal(rig_events_of(&d.r, "node-undrained"), 1);
    unsigned sweeps = d.r.sweeps;
    rig_run(&d.r, 2 * MONO_S);
    assert_int_equal(d.r.sweeps, sweeps);
    finish(&d);
}

// A switch that is away is drained before it comes.
static void test_away(void **state)
{
    struct drill d;
    struct err e = {0};
    (void)state;
    start(&d, "rail-256");
    const struct node *spine = with_role(&d, ROLE_SPINE, 1);
    struct sm_drain_place at = {spine->guid, 0};
    d.watching = false;
    assert_int_equal(sim_node_boot(d.r.sim, spine->guid, 120 * MONO_S, MONO_S), 0);
    rig_run(&d.r, 30 * MONO_S);
    assert_null(fabric_by_guid(sm_fabric(d.r.sm), spine->guid));
    assert_int_equal(rig_drain(&d.r, &at, "me", NULL, &e), 0);
    rig_run(&d.r, 10 * MONO_S);
    assert_true(sm_drain_away(d.r.sm, sm_drain_nth(d.r.sm, 0)));
    rig_run(&d.r, 300 * MONO_S);
    assert_non_null(fabric_by_guid(sm_fabric(d.r.sm), spine->guid));
    assert_false(sm_drain_away(d.r.sm, sm_drain_nth(d.r.sm, 0)));
    assert_int_equal(walk(&d, spine->guid, 0), 0);
    undrain(&d, at);
    as_before(&d);
    finish(&d);
}

// All uplinks of a leaf: what hangs on it has no other way, keeps it, and that is said.
static void test_no_other_way(void **state)
{
    struct drill d;
    struct err e = {0};
    (void)state;
    start(&d, "rail-64");
    const struct node *leaf = with_role(&d, ROLE_LEAF, 1);
    unsigned n = 0;
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = fabric_peer_node(d.r.plan, &d.r.plan->port[leaf->first_port + num]);
        struct sm_drain_place at = {leaf->guid, (uint8_t)num};
        if (z == NULL || z->type != NODE_SWITCH)
            continue;
        assert_int_equal(rig_drain(&d.r, &at, "me", NULL, &e), 0); // together
        n++;
    }
    settle(&d);
    walk(&d, 0, 0);
    as_before(&d); // nothing had to move
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(sm_drain_nth(d.r.sm, i)->state, SM_DRAIN_IN_USE);
    assert_true(finding(&d, "drained-in-use", "have no other way and still use it"));
    assert_true(rig_events_of(&d.r, "link-drain-in-force") > 0);
    // One of them comes back: it takes it all.
    struct sm_drain_place last = sm_drain_nth(d.r.sm, n - 1)->at;
    undrain(&d, last);
    for (unsigned i = 0; i + 1 < n; i++) {
        const struct sm_drain *x = sm_drain_nth(d.r.sm, i);
        assert_int_equal(x->state, SM_DRAIN_DRAINED);
        assert_int_equal(walk(&d, x->at.guid, x->at.port), 0);
    }
    while (sm_drain_nth(d.r.sm, 0) != NULL)
        undrain(&d, sm_drain_nth(d.r.sm, 0)->at);
    as_before(&d);
    finish(&d);
}

static void test_refused(void **state)
{
    struct drill d;
    struct err e = {0};
    (void)state;
    start(&d, "rail-64");
    const struct node *leaf = with_role(&d, ROLE_LEAF, 0), *host = with_role(&d, ROLE_HOST, 0);
    struct sm_drain_place at = port_of(&d, leaf, 0, false); // a host's
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), -EINVAL);
    assert_non_null(strstr(e.text, "nothing else leads there"));
    at = (struct sm_drain_place){host->guid, 0};
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), -EINVAL);
    at = (struct sm_drain_place){host->guid, 1};
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), -EINVAL);
    at = (struct sm_drain_place){0x4242, 1};
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), -ENOENT);
    at = (struct sm_drain_place){leaf->guid, 250};
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), -ENOENT);
    assert_int_equal(rig_undrain(&d.r, &at, "me", &e), 1);
    at = port_of(&d, leaf, 0, true);
    drain(&d, at);
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), 1); // it is already
    at = far_end(&d, at);
    assert_int_equal(rig_drain(&d.r, &at, "me", "", &e), 1);
    assert_null(sm_drain_nth(d.r.sm, 1));
    finish(&d);
}

// Another manager is the master: it is named, and nothing is drained here.
static void test_not_master(void **state)
{
    struct drill d;
    struct err e = {0};
    struct sim_sm other = {.state = SM_MASTER, .priority = 15, .sm_key = 1};
    char lid[40];
    struct sim_sm_view v;
    (void)state;
    start(&d, "rail-64");
    struct sm_drain_place at = port_of(&d, with_role(&d, ROLE_LEAF, 0), 0, true);
    drain(&d, at);
    uint64_t guid = d.source[d.num_sources - 1];
    assert_int_equal(sim_sm_add(d.r.sim, guid, &other), 0);
    rig_run(&d.r, 30 * MONO_S);
    struct sm_status st;
    sm_get_status(d.r.sm, &st);
    assert_int_equal(st.state, SM_STANDBY);
    assert_int_equal(sim_sm_view(d.r.sim, guid, &v), 0);
    struct sm_drain_place far = port_of(&d, with_role(&d, ROLE_LEAF, 1), 0, true);
    assert_int_equal(rig_drain(&d.r, &far, "me", "", &e), -EPERM);
    snprintf(lid, sizeof(lid), "LID %u): ask that one", v.lid);
    assert_non_null(strstr(e.text, lid));
    assert_int_equal(rig_undrain(&d.r, &at, "me", &e), -EPERM);
    struct sm_drain_check *c;
    assert_int_equal(sm_drain_check_new(d.r.sm, &far, 1, false, &c, &e), -EPERM);
    assert_non_null(sm_drain_nth(d.r.sm, 0)); // it is remembered
    finish(&d);
}

// What would move is what moves.
static void test_check(void **state)
{
    struct drill d;
    struct err e = {0};
    struct sm_drain_check *c;
    struct sm_drain_effect x;
    (void)state;
    start(&d, "rail-256");
    struct sm_drain_place at = {with_role(&d, ROLE_SPINE, 0)->guid, 0};
    for (int undrained = 0; undrained < 2; undrained++) {
        assert_int_equal(sm_drain_check_new(d.r.sm, &at, 1, undrained, &c, &e), 0);
        assert_int_equal(sm_drain_check_run(c, NULL, &x, &e), 0);
        sm_drain_check_free(c);
        assert_true(x.proved && x.entries > 0 && x.waves > 0);
        assert_int_equal(x.ends + x.switches, 0);
        unsigned sweeps = d.r.sweeps;
        rig_run(&d.r, MONO_S);
        assert_int_equal(d.r.sweeps, sweeps); // asking changes nothing
        if (undrained)
            undrain(&d, at);
        else
            drain(&d, at);
        assert_int_equal(rig_last(&d.r)->lft_entries, x.entries);
        assert_int_equal(rig_last(&d.r)->paths_moved, x.paths);
        assert_int_equal(rig_last(&d.r)->lft_blocks_set, x.blocks);
        assert_int_equal(sm_drain_check_new(d.r.sm, &at, 1, undrained, &c, &e), 1);
    }
    as_before(&d);
    finish(&d);
}

// --- multicast ---

static unsigned mft_ports(const struct drill *d, const struct node *n, unsigned port)
{
    bool set;
    unsigned found = 0;
    for (unsigned num = port ? port : 1; num <= (port ? port : n->num_ports); num++)
        for (uint16_t mlid = 0xc000; mlid < 0xc004; mlid++)
            found += sim_mft(d->r.sim, n->guid, mlid, num, &set) == 0 && set;
    return found;
}

static void test_multicast(void **state)
{
    struct drill d;
    struct sim_hosts_stats s;
    (void)state;
    start(&d, "rail-64");
    sim_hosts_start(d.r.sim, NULL);
    rig_run(&d.r, 20 * MONO_S);
    const struct node *root = NULL;
    for (unsigned i = 0; i < 4 && root == NULL; i++) {
        const struct node *n = with_role(&d, ROLE_SPINE, i);
        if (mft_ports(&d, n, 0) > 0)
            root = n;
    }
    assert_non_null(root);
    struct sm_drain_place at = {root->guid, 0};
    drain(&d, at);
    rig_run(&d.r, 20 * MONO_S);
    assert_int_equal(mft_ports(&d, root, 0), 0); // another switch is the root
    sim_hosts_stats(d.r.sim, &s);
    assert_int_equal(s.joined, s.active);
    int got = sim_multicast(d.r.sim, d.source[0], 0xc000, NULL, NULL);
    assert_int_equal(got, (int)s.ipoib_up - 1);
    sim_hosts_stop(d.r.sim);
    finish(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cable),        cmocka_unit_test(test_switch),
        cmocka_unit_test(test_fault_beside), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_master),   cmocka_unit_test(test_check),
        cmocka_unit_test(test_no_other_way), cmocka_unit_test(test_multicast),
        cmocka_unit_test(test_replaced),     cmocka_unit_test(test_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
