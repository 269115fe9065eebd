// SPDX-License-Identifier: Apache-2.0
// The blueprint: what is learnt in either state, what is growth, and what is asked for: accepted, learnt
// again, given, struck from, balanced anew; with restarts in between.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/compare.h"
#include "fabric/merge.h"
#include "lib/rng.h"
#include "mad/mad.h"
#include "sm/drain.h"
#include "tests/whole/odd.h"

#define MAX_LIDS 70
#define FABRIC "rail-512" // 8 rails, 2 units of 32 hosts

static bool coming[512]; // per host of the plan

// --- helpers ---

static struct sm_blueprint now(const struct odd *o)
{
    struct sm_blueprint b;
    sm_get_blueprint(o->r.sm, &b);
    return b;
}

static void settle(struct odd *o)
{
    struct sm_status st;
    for (int i = 0; i < 600; i++) {
        rig_run(&o->r, MONO_S / 10);
        sm_get_status(o->r.sm, &st);
        if (!st.sweeping && i > 30)
            break;
    }
    assert_true(rig_last(&o->r)->ok);
    assert_true(whole(o));
}

static void hidden(struct odd *o, const char *name)
{
    memset(o, 0, sizeof(*o));
    memset(coming, 0, sizeof(coming));
    rig_init(&o->r, name, &odd_wire);
}

static void begin(struct odd *o)
{
    rig_up(&o->r);
    rig_sweeps(&o->r, 1, 300);
    settle(o);
    o->lids = 2048;
    o->before = tables(o);
    mark(o);
}

static void begin_whole(struct odd *o)
{
    hidden(o, FABRIC);
    begin(o);
}

static void ask(struct odd *o, enum sm_blueprint_op op, const struct fabric *given)
{
    mark(o);
    sm_blueprint_ask(o->r.sm, op, given, "the test");
    rig_sweeps(&o->r, 1, 60);
    settle(o);
    assert_int_equal(now(o).asked, SM_BLUEPRINT_NONE);
}

static void accept(struct odd *o)
{
    ask(o, SM_BLUEPRINT_ACCEPT, NULL);
    assert_int_equal(now(o).state, SM_BLUEPRINT_ACCEPTED);
    assert_string_equal(now(o).by, "the test");
    assert_int_equal(rig_events_of(&o->r, "blueprint-changed"), 1);
}

static void restart(struct odd *o)
{
    rig_down(&o->r);
    rig_up(&o->r);
    mark(o); // a new engine counts from nothing
    rig_sweeps(&o->r, 1, 300);
    settle(o);
}

// What the restart finds is right: nothing is written, and the blueprint is what it was.
static void restart_in_peace(struct odd *o)
{
    struct sm_blueprint was = now(o);
    uint32_t nodes = was.known->num_nodes, links = was.known->num_links;
    enum sm_blueprint_state state = was.state;
    int64_t since = was.since_wall_ns;
    restart(o);
    assert_int_equal(lft_sets(o), 0);
    assert_int_equal(info_sets(o), 0);
    assert_int_equal(now(o).known->num_nodes, nodes);
    assert_int_equal(now(o).known->num_links, links);
    assert_int_equal(now(o).state, state);
    assert_true(now(o).since_wall_ns == since);
    assert_string_equal(now(o).by, since != 0 ? "the test" : "");
}

static bool has(const struct fabric *f, uint64_t guid)
{
    return fabric_by_guid(f, guid) != NULL;
}

static const struct node *hosts_leaf(const struct odd *o, unsigned nth_one)
{
    const struct node *l = nth(o, ROLE_LEAF, nth_one);
    assert_ptr_not_equal(l, own_leaf(o));
    return l;
}

// Leaf and hosts; the leaf's cables to spines too.
static unsigned leaf_links(struct odd *o, const struct node *leaf, bool up)
{
    unsigned hosts = 0;
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = peer_of(o, leaf, num, NULL);
        hosts += z != NULL && z->type == NODE_CA;
    }
    all_links(o, leaf, up);
    return hosts;
}

// Of a LID of an end node of `of` that is no adapter of a host that may be on its way.
static bool is_of_others(const struct odd *o, const struct fabric *of, uint32_t lid)
{
    if (lid > of->top_lid || of->lid_port[lid] == ID_NONE)
        return false;
    const struct node *n = fabric_node(of, of->port[of->lid_port[lid]].node);
    const struct node *p = fabric_by_guid(o->r.plan, n->guid);
    return n->type != NODE_SWITCH && (p == NULL || p->host > 511 || !coming[p->host]);
}

// Entries of LIDs of `of`, on switches of `of`, that are others than at the last call.
static unsigned moved_entries(struct odd *o, const struct fabric *of)
{
    uint8_t *t = tables(o);
    unsigned n = 0;
    for (uint32_t sw = 0; sw < o->r.plan->num_switches; sw++)
        for (uint32_t lid = 1; lid < o->lids && has(of, fabric_switch(o->r.plan, sw)->guid); lid++)
            if (is_of_others(o, of, lid))
                n += t[sw * o->lids + lid] != o->before[sw * o->lids + lid];
    free(o->before);
    o->before = t;
    return n;
}

static const char *finding_text(const struct odd *o, const char *code)
{
    const struct findings *f = sm_findings(o->r.sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, code) == 0)
            return f->item[i].text;
    fail_msg("no finding %s", code);
    return "";
}

// --- growth ---

static void test_learning(void **state)
{
    struct odd o;
    (void)state;
    hidden(&o, FABRIC);
    const struct node *leaf = hosts_leaf(&o, 3);
    leaf_links(&o, leaf, false);
    begin(&o);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_LEARNING);
    assert_false(has(now(&o).known, leaf->guid));
    leaf_links(&o, leaf, true);
    settle(&o);
    assert_true(has(now(&o).known, leaf->guid));
    assert_int_equal(now(&o).known->num_links, o.r.plan->num_links);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    restart_in_peace(&o);
    done(&o);
}

// A leaf with 32 hosts comes to a blueprint that was accepted: it is routed, nobody else's routes move, and
// it stays growth, over a restart too, until it is accepted.
static void test_growth(void **state)
{
    struct odd o;
    (void)state;
    hidden(&o, FABRIC);
    const struct node *leaf = hosts_leaf(&o, 3);
    unsigned hosts = leaf_links(&o, leaf, false);
    assert_int_equal(hosts, 32);
    begin(&o);
    accept(&o);
    assert_int_equal(lft_sets(&o), 0);
    const struct fabric *small = fabric_ref(now(&o).known);
    moved_entries(&o, small);

    leaf_links(&o, leaf, true);
    settle(&o);
    assert_ptr_equal(now(&o).known, small);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 1);
    assert_non_null(strstr(finding_text(&o, "blueprint-growth"), "1 switch, "));
    assert_non_null(strstr(finding_text(&o, "blueprint-growth"), "32 end nodes are not in the blueprint"));
    assert_non_null(strstr(finding_text(&o, "blueprint-growth"), "weft blueprint accept"));
    assert_int_equal(rig_events_of(&o.r, "blueprint-growth"), 1);
    assert_int_equal(moved_entries(&o, small), 0);
    assert_int_equal(sm_fabric(o.r.sm)->num_links, o.r.plan->num_links);
    restart_in_peace(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 1);

    accept(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    assert_true(has(now(&o).known, leaf->guid));
    assert_int_equal(now(&o).known->num_links, o.r.plan->num_links);
    restart_in_peace(&o);
    fabric_unref(small);
    done(&o);
}

// New hosts on leaves that are known are learnt, and nobody else's entry moves for them: one adapter, then
// others on several leaves; also when they came while nobody looked.
static void test_new_hosts(void **state)
{
    struct odd o;
    (void)state;
    hidden(&o, FABRIC);
    const struct node *host[20];
    for (unsigned i = 0; i < 20; i++) {
        host[i] = nth(&o, ROLE_HOST, 7 + 23 * i);
        coming[host[i]->host] = true;
        all_links(&o, host[i], false);
    }
    begin(&o);
    accept(&o);
    for (unsigned i = 0, n = 1; i < 20; i += n, n = i < 12 ? i + 1 : 20 - i) {
        const struct fabric *before = fabric_ref(now(&o).known);
        moved_entries(&o, before);
        if (i == 3)
            rig_down(&o.r);
        for (unsigned k = i; k < i + n; k++)
            all_links(&o, host[k], true);
        if (i == 3) {
            rig_up(&o.r);
            rig_sweeps(&o.r, 1, 300);
        }
        settle(&o);
        for (unsigned k = i; k < i + n; k++)
            assert_true(has(now(&o).known, host[k]->guid));
        assert_int_equal(now(&o).known->num_nodes, before->num_nodes + n);
        assert_int_equal(now(&o).state, SM_BLUEPRINT_ACCEPTED);
        assert_int_equal(moved_entries(&o, before), 0);
        assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
        fabric_unref(before);
    }
    restart_in_peace(&o);
    done(&o);
}

// A trunk that was not in the blueprint when that was accepted.
// Where a new host would move others (sssp weighs cables in the order of destinations) it is routed, told,
// and left out until somebody takes it in.
static void test_host_that_moves_others(void **state)
{
    struct odd o;
    const struct node *host[4];
    (void)state;
    hidden(&o, "ft3-8-4");
    o.r.opts.engine = ROUTE_SSSP;
    for (unsigned i = 0; i < 4; i++) {
        host[i] = nth(&o, ROLE_HOST, 5 + 11 * i);
        coming[host[i]->host] = true;
        all_links(&o, host[i], false);
    }
    begin(&o);
    accept(&o);
    const struct fabric *small = fabric_ref(now(&o).known);
    for (unsigned i = 0; i < 4; i++) {
        all_links(&o, host[i], true);
        settle(&o);
        assert_false(has(now(&o).known, host[i]->guid));
        assert_int_equal(moved_entries(&o, small), 0);
        assert_int_equal(findings_of(&o, "blueprint-growth"), 1);
    }
    restart_in_peace(&o);
    ask(&o, SM_BLUEPRINT_ACCEPT, NULL);
    for (unsigned i = 0; i < 4; i++)
        assert_true(has(now(&o).known, host[i]->guid));
    assert_true(moved_entries(&o, small) > 0);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    fabric_unref(small);
    done(&o);
}

static void test_new_trunk(void **state)
{
    struct odd o;
    (void)state;
    hidden(&o, FABRIC);
    const struct node *leaf = hosts_leaf(&o, 2);
    unsigned up = uplink(&o, leaf, 1);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, up, false), 0);
    begin(&o);
    accept(&o);
    const struct fabric *small = fabric_ref(now(&o).known);
    moved_entries(&o, small);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, up, true), 0);
    settle(&o);
    assert_ptr_equal(now(&o).known, small);
    assert_int_equal(moved_entries(&o, small), 0);
    assert_non_null(
        strstr(finding_text(&o, "blueprint-growth"), "1 cable between switches is not in the blueprint"));
    ask(&o, SM_BLUEPRINT_LEARN, NULL);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_LEARNING);
    assert_int_equal(now(&o).known->num_links, small->num_links + 1);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    assert_in_range(moved_entries(&o, small), 1, 1u << 20); // it carries its share
    restart_in_peace(&o);
    fabric_unref(small);
    done(&o);
}

// --- what hangs elsewhere ---

static void test_moved_cable(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    accept(&o);
    const struct fabric *known = fabric_ref(now(&o).known);
    const struct node *a = hosts_leaf(&o, 2), *b = hosts_leaf(&o, 4);
    unsigned pa = uplink(&o, a, 0), pb = uplink(&o, b, 0);
    moved_entries(&o, known);
    assert_int_equal(sim_swap_cables(o.r.sim, a->guid, pa, b->guid, pb), 0);
    settle(&o);
    assert_ptr_equal(now(&o).known, known);
    assert_true(findings_of(&o, "blueprint-moved") >= 1);
    assert_non_null(strstr(finding_text(&o, "blueprint-moved"), "in the blueprint to "));
    restart_in_peace(&o);
    assert_int_equal(sim_swap_cables(o.r.sim, a->guid, pa, b->guid, pb), 0);
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-moved"), 0);
    assert_int_equal(moved_entries(&o, known), 0); // all is where it was
    fabric_unref(known);
    done(&o);
}

static void test_replaced(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    accept(&o);
    const struct node *h = nth(&o, ROLE_HOST, 9);
    const struct fabric *known = fabric_ref(now(&o).known);
    assert_int_equal(sim_node_replace(o.r.sim, h->guid, 0xfeed0000, MONO_S), 0);
    settle(&o);
    assert_true(has(sm_fabric(o.r.sm), 0xfeed0000));
    assert_false(has(now(&o).known, 0xfeed0000));
    assert_true(has(now(&o).known, h->guid));
    assert_int_equal(findings_of(&o, "blueprint-replaced"), 1);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    assert_non_null(strstr(finding_text(&o, "blueprint-replaced"), "0x00000000feed0000) at "));
    restart_in_peace(&o);
    accept(&o);
    assert_true(has(now(&o).known, 0xfeed0000));
    assert_false(has(now(&o).known, h->guid));
    assert_int_equal(now(&o).known->num_nodes, known->num_nodes);
    assert_int_equal(findings_of(&o, "blueprint-replaced"), 0);
    fabric_unref(known);
    done(&o);
}

// Another spine in the place of one: one finding, and after it is accepted the old one is forgotten.
static void test_replaced_spine(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    accept(&o);
    const struct node *s = nth(&o, ROLE_SPINE, 1);
    uint32_t nodes = now(&o).known->num_nodes;
    assert_int_equal(sim_node_replace(o.r.sim, s->guid, 0xfeed0000, MONO_S), 0);
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-replaced"), 1);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    accept(&o);
    assert_true(has(now(&o).known, 0xfeed0000));
    assert_false(has(now(&o).known, s->guid));
    assert_int_equal(now(&o).known->num_nodes, nodes);
    restart_in_peace(&o);
    done(&o);
}

// --- given, struck ---

static void test_set(void **state)
{
    struct odd o;
    (void)state;
    hidden(&o, FABRIC);
    const struct node *leaf = hosts_leaf(&o, 3);
    leaf_links(&o, leaf, false);
    begin(&o);
    const struct fabric *small = fabric_ref(now(&o).known);
    ask(&o, SM_BLUEPRINT_SET, o.r.plan); // planned growth: the leaf is in it before it is there
    assert_int_equal(now(&o).state, SM_BLUEPRINT_ACCEPTED);
    assert_int_equal(now(&o).known->num_links, o.r.plan->num_links);
    for (uint32_t i = 0; i < small->num_ports; i++) { // LIDs are what they were
        port_id p =
            small->port[i].guid != 0 ? fabric_by_port_guid(now(&o).known, small->port[i].guid) : PORT_NONE;
        if (port_valid(p))
            assert_int_equal(fabric_port(now(&o).known, p)->a.lid, small->port[i].a.lid);
    }
    restart_in_peace(&o);
    moved_entries(&o, small);
    leaf_links(&o, leaf, true);
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    assert_int_equal(moved_entries(&o, small), 0);
    restart_in_peace(&o);
    fabric_unref(small);
    done(&o);
}

static void test_strike(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    accept(&o);
    const struct node *leaf = hosts_leaf(&o, 3);
    leaf_links(&o, leaf, false);
    settle(&o);
    assert_true(has(now(&o).known, leaf->guid));
    struct builder *b = builder_from(now(&o).known);
    node_id id;
    assert_int_equal(builder_find(b, leaf->guid, &id), 0);
    builder_remove(b, id);
    const struct fabric *less = builder_seal(b, 1, NULL);
    ask(&o, SM_BLUEPRINT_STRIKE, less);
    assert_false(has(now(&o).known, leaf->guid));
    assert_int_equal(now(&o).state, SM_BLUEPRINT_ACCEPTED);
    restart_in_peace(&o);
    leaf_links(&o, leaf, true); // it was not gone for good
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 1);
    fabric_unref(less);
    done(&o);
}

static void assert_missing(const struct odd *o, enum finding_severity severity, const char *text)
{
    const struct findings *f = sm_findings(o->r.sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, "blueprint-missing") == 0) {
            assert_int_equal(f->item[i].severity, severity);
            if (strstr(f->item[i].text, text) == NULL)
                fail_msg("\"%s\" is not in \"%s\"", text, f->item[i].text);
            return;
        }
    fail_msg("no finding blueprint-missing");
}

// What is away of an accepted blueprint is a warning, of a learning one an info; so are hosts that are down.
// What is drained is no finding.
static void test_missing(void **state)
{
    struct odd o;
    struct err e = {0};
    (void)state;
    begin_whole(&o);
    const struct node *leaf = hosts_leaf(&o, 3), *spine = nth(&o, ROLE_SPINE, 1),
                      *host = nth(&o, ROLE_HOST, 12);
    for (int accepted = 0; accepted < 2; accepted++) {
        enum finding_severity severity = accepted ? FINDING_WARNING : FINDING_INFO;
        if (accepted)
            accept(&o);
        assert_int_equal(findings_of(&o, "blueprint-missing"), 0);
        all_links(&o, host, false);
        settle(&o);
        if (accepted)
            assert_missing(&o, FINDING_INFO, "1 end of the blueprint is down");
        else
            assert_int_equal(findings_of(&o, "blueprint-missing"), 0);
        leaf_links(&o, leaf, false);
        settle(&o);
        char text[200];
        snprintf(text, sizeof(text), "1 switch, 32 ends, 64 cables of the blueprint are away: %s%s",
                 fabric_desc(o.r.plan, leaf), accepted ? "; besides, 1 end is down" : ";");
        assert_missing(&o, severity, text);
        leaf_links(&o, leaf, true);
        assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 2), false), 0);
        settle(&o);
        assert_missing(&o, severity, "1 cable of the blueprint is away: ");
        assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 2), true), 0);
        all_links(&o, host, true);
        settle(&o);
    }
    assert_int_equal(rig_drain(&o.r, &(struct sm_drain_place){spine->guid, 0}, "the test", "", &e), 0);
    settle(&o);
    all_links(&o, spine, false);
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-missing"), 0);
    done(&o);
}

// --- balanced anew ---

static unsigned kill_trunks(struct odd *o, unsigned percent, bool up)
{
    struct rng rng;
    unsigned n = 0;
    rng_init(&rng, 3);
    for (uint32_t i = 0; i < o->r.plan->num_ports; i++) {
        const struct port *p = &o->r.plan->port[i];
        const struct node *a = fabric_node(o->r.plan, p->node), *z = fabric_peer_node(o->r.plan, p);
        if (z == NULL || a->type != NODE_SWITCH || z->type != NODE_SWITCH || p->peer.i < i ||
            rng_below(&rng, 100) >= percent)
            continue;
        assert_int_equal(sim_link_set(o->r.sim, a->guid, p->num, up), 0);
        n++;
    }
    return n;
}

static void test_reroute(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    const struct node *away = nth(&o, ROLE_HOST, 12);
    unsigned dead = kill_trunks(&o, 10, false);
    assert_in_range(dead, 10, 60);
    all_links(&o, away, false);
    settle(&o);
    uint32_t links = now(&o).known->num_links;
    assert_int_equal(links, o.r.plan->num_links);

    ask(&o, SM_BLUEPRINT_REROUTE, NULL);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_ACCEPTED);
    assert_int_equal(now(&o).known->num_links, links - dead);
    assert_true(has(now(&o).known, away->guid)); // it has a place on a leaf that is there
    assert_true(lft_sets(&o) > 0);
    struct sm_status st;
    sm_get_status(o.r.sm, &st);
    assert_true(st.proof.ok);
    assert_int_equal(st.route.displaced, 0);
    restart_in_peace(&o);

    const struct fabric *known = fabric_ref(now(&o).known);
    moved_entries(&o, known);
    all_links(&o, away, true);
    settle(&o);
    assert_int_equal(moved_entries(&o, known), 0);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    kill_trunks(&o, 10, true); // they are back, and growth
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 1);
    assert_int_equal(moved_entries(&o, known), 0);
    assert_ptr_equal(now(&o).known, known);
    restart_in_peace(&o);

    ask(&o, SM_BLUEPRINT_REROUTE, NULL);
    assert_int_equal(now(&o).known->num_links, links);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    fabric_unref(known);
    done(&o);
}

// A leaf that is dead when routes are balanced anew is dropped with its hosts, and is growth when it is back.
static void test_reroute_without_leaf(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    const struct node *leaf = hosts_leaf(&o, 2);
    uint32_t nodes = now(&o).known->num_nodes;
    unsigned hosts = leaf_links(&o, leaf, false);
    settle(&o);
    ask(&o, SM_BLUEPRINT_REROUTE, NULL);
    assert_int_equal(now(&o).known->num_nodes, nodes - hosts - 1);
    assert_non_null(strstr(o.r.log.data, "dropped: "));
    leaf_links(&o, leaf, true);
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 1);
    done(&o);
}

// The LIDs of the leaf and of what hangs on it.
static unsigned lids_at(const struct odd *o, const struct node *leaf, uint16_t lid[MAX_LIDS])
{
    unsigned n = 0;
    lid[n++] = lid_of(o, port_of(o, leaf, 0)->guid);
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = peer_of(o, leaf, num, NULL);
        if (z != NULL && z->type == NODE_CA)
            lid[n++] = lid_of(o, fabric_port(o->r.plan, port_of(o, leaf, num)->peer)->guid);
    }
    return n;
}

// Entries for them on other switches.
static unsigned ways_to(const struct odd *o, const struct node *leaf, const uint16_t *lid, unsigned lids)
{
    uint8_t *t = tables(o);
    unsigned n = 0;
    for (uint32_t sw = 0; sw < o->r.plan->num_switches; sw++)
        for (unsigned i = 0; i < lids; i++)
            n += fabric_switch(o->r.plan, sw) != leaf && t[sw * o->lids + lid[i]] != LFT_DROP;
    free(t);
    return n;
}

// A leaf whose agent is dead forwards as ever: it and its hosts keep their place, and nobody is cut off.
static void test_reroute_with_silent_leaf(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    const struct node *leaf = hosts_leaf(&o, 2);
    uint32_t nodes = now(&o).known->num_nodes, links = now(&o).known->num_links;
    uint16_t lid[MAX_LIDS];
    unsigned lids = lids_at(&o, leaf, lid), ways = ways_to(&o, leaf, lid, lids);
    assert_int_equal(lids, 33);
    assert_int_equal(ways, lids * (o.r.plan->num_switches - 1));
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, true), 0);
    rig_run(&o.r, 12 * MONO_S);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_non_null(strstr(finding_text(&o, "peer-silent"), "goes on over it"));
    assert_int_equal(ways_to(&o, leaf, lid, lids), ways);
    assert_true(kill_trunks(&o, 5, false) > 0);
    rig_run(&o.r, 5 * MONO_S);
    sm_blueprint_ask(o.r.sm, SM_BLUEPRINT_REROUTE, NULL, "the test");
    rig_run(&o.r, 10 * MONO_S);
    assert_int_equal(now(&o).asked, SM_BLUEPRINT_NONE);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_ACCEPTED);
    assert_int_equal(now(&o).known->num_nodes, nodes);
    assert_true(now(&o).known->num_links < links);
    assert_int_equal(ways_to(&o, leaf, lid, lids), ways);
    assert_non_null(strstr(o.r.log.data, "though its cables are up: leaf-"));
    assert_non_null(strstr(o.r.log.data, " and 32 ends"));
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, false), 0);
    settle(&o);
    assert_int_equal(findings_of(&o, "blueprint-growth"), 0);
    done(&o);
}

// --- when it cannot be ---

// A weftd that is stopped before what was asked for is done has not done it.
static void test_asked_and_stopped(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    sm_blueprint_ask(o.r.sm, SM_BLUEPRINT_SET, o.r.plan, "the test");
    restart(&o);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_LEARNING);
    assert_true(now(&o).since_wall_ns == 0);
    done(&o);
}

static void change_blob(struct odd *o, char *(*change)(char *text, size_t *n))
{
    void *p;
    size_t n;
    db_flush(o->r.db);
    assert_int_equal(db_blob_get(o->r.db, "default", "blueprint", &p, &n), 0);
    char *text = change(p, &n);
    db_blob_put(o->r.db, "default", "blueprint", text, n, NULL, NULL);
    db_flush(o->r.db);
    free(p);
}

static char *without_sum(char *text, size_t *n)
{
    char *head = strstr(text, "# blueprint nodes ");
    assert_non_null(head);
    assert_true(head > text);
    *n -= (size_t)(head - text);
    return head;
}

static char *without_state(char *text, size_t *n)
{
    text = without_sum(text, n);
    char *line = strstr(text, "# state accepted since ");
    assert_non_null(line);
    char *end = strchr(line, '\n');
    memset(line + 1, ' ', (size_t)(end - line - 1));
    return text;
}

static char *flipped(char *text, size_t *n)
{
    for (size_t i = 200; i < *n; i += 997)
        if (text[i] >= '0' && text[i] <= '8')
            text[i]++;
    return text;
}

static char *flipped_head(char *text, size_t *n)
{
    text[3] ^= 1;
    return text;
}

// A damaged one is told and learned anew; it is not taken for what was built.
static void test_damaged_blob(void **state)
{
    static char *(*const change[])(char *, size_t *) = {flipped, flipped_head};
    for (int i = 0; i < 2; i++) {
        struct odd o;
        begin_whole(&o);
        accept(&o);
        change_blob(&o, change[i]);
        rig_down(&o.r);
        rig_up(&o.r);
        assert_int_equal(rig_events_of(&o.r, "blueprint-not-read"), 1);
        rig_sweeps(&o.r, 1, 300);
        settle(&o);
        assert_int_equal(rig_events_of(&o.r, "blueprint-missing"), 0);
        assert_int_equal(now(&o).state, SM_BLUEPRINT_LEARNING);
        assert_int_equal(now(&o).known->num_nodes, o.r.plan->num_nodes);
        done(&o);
    }
}

static void test_blob_without_sum(void **state)
{
    struct odd o;
    begin_whole(&o);
    accept(&o);
    change_blob(&o, without_sum);
    restart(&o);
    assert_int_equal(lft_sets(&o), 0);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_ACCEPTED);
    done(&o);
}

// What an earlier version kept has no sum, and no line about its state.
static void test_old_blob(void **state)
{
    struct odd o;
    (void)state;
    begin_whole(&o);
    accept(&o);
    change_blob(&o, without_state);
    restart(&o);
    assert_int_equal(lft_sets(&o), 0);
    assert_int_equal(now(&o).state, SM_BLUEPRINT_LEARNING);
    assert_int_equal(now(&o).known->num_nodes, o.r.plan->num_nodes);
    done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_new_hosts),
        cmocka_unit_test(test_host_that_moves_others),
        cmocka_unit_test(test_new_trunk),
        cmocka_unit_test(test_moved_cable),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_replaced_spine),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_strike),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_reroute),
        cmocka_unit_test(test_reroute_without_leaf),
        cmocka_unit_test(test_reroute_with_silent_leaf),
        cmocka_unit_test(test_asked_and_stopped),
        cmocka_unit_test(test_old_blob),
        cmocka_unit_test(test_blob_without_sum),
        cmocka_unit_test(test_damaged_blob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
