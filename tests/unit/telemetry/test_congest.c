// SPDX-License-Identifier: Apache-2.0
// Congestion trees of cases made by hand: four leaves of four hosts under two spines, chains, a ring.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"
#include "tests/unit/telemetry/congest_rig.h"

#define LEAVES 4
#define SPINES 2
#define HOSTS 4

static char *leaf(unsigned i)
{
    static char name[4][16];
    static unsigned k;
    k = (k + 1) % 4;
    snprintf(name[k], sizeof(name[k]), "leaf%u", i);
    return name[k];
}

static char *spine(unsigned i)
{
    static char name[4][16];
    static unsigned k;
    k = (k + 1) % 4;
    snprintf(name[k], sizeof(name[k]), "spine%u", i);
    return name[k];
}

static char *host(unsigned l, unsigned h)
{
    static char name[4][24];
    static unsigned k;
    k = (k + 1) % 4;
    snprintf(name[k], sizeof(name[k]), "h%u-%u mlx5_0", l, h);
    return name[k];
}

static void two_levels(struct congest_rig *r)
{
    struct rig b;
    node_id l[LEAVES], s[SPINES];
    rig_start(&b);
    for (unsigned i = 0; i < SPINES; i++)
        s[i] = rig_switch(&b, 40, spine(i));
    for (unsigned i = 0; i < LEAVES; i++) {
        l[i] = rig_switch(&b, 40, leaf(i));
        for (unsigned k = 0; k < HOSTS; k++)
            rig_cable(&b, l[i], rig_ca(&b, 1, host(i, k)));
        for (unsigned k = 0; k < SPINES; k++)
            rig_cable(&b, l[i], s[k]);
    }
    const struct fabric *f = rig_done(&b);
    congest_rig_new(r, f, rig_route(f, ROUTE_UPDN));
}

// By which spine the leaf reaches a host.
static unsigned spine_for(const struct congest_rig *r, unsigned l, const char *to)
{
    uint32_t dest = congest_rig_to(r, to, to[1] == '0' ? "leaf0" : leaf((unsigned)(to[1] - '0')));
    uint16_t lid = r->f->port[r->t.port[dest].port].a.lid;
    for (unsigned k = 0; k < SPINES; k++) {
        uint32_t up = congest_rig_to(r, leaf(l), spine(k));
        const struct node *n = fabric_by_guid(r->f, r->t.port[up].node_guid);
        if (tables_port(r->tables, n->sw, lid) == r->t.port[up].num)
            return k;
    }
    fail_msg("no way from leaf%u to %s", l, to);
    return 0;
}

// All that is on the way from h<l>-<h> to `to` waits.
static void hold_way(struct congest_rig *r, unsigned l, unsigned h, const char *to, double used, double held)
{
    unsigned far = (unsigned)(to[1] - '0'), k = spine_for(r, l, to);
    uint32_t down = congest_rig_to(r, spine(k), leaf(far));
    congest_rig_set(r, congest_rig_to(r, host(l, h), leaf(l)), used, held / 4);
    congest_rig_set(r, congest_rig_to(r, leaf(l), spine(k)), used, held / 2);
    congest_rig_set(r, down, r->used[down] + used, held);
}

static const struct congest_tree *tree_at(const struct congest_rig *r, uint32_t root)
{
    const struct congest_tree *const *t;
    uint32_t n = congest_trees(r->c, &t);
    for (uint32_t i = 0; i < n; i++)
        if (t[i]->root == root)
            return t[i];
    return NULL;
}

static const struct congest_tree *only(const struct congest_rig *r)
{
    const struct congest_tree *const *t;
    assert_int_equal(congest_trees(r->c, &t), 1);
    return t[0];
}

static bool has_member(const struct congest_tree *t, uint32_t slot, unsigned *ret_depth, bool *ret_victim)
{
    for (uint32_t i = 0; i < t->num_members; i++)
        if (t->member[i].slot == slot) {
            *ret_depth = t->member[i].depth;
            *ret_victim = t->member[i].victim;
            return true;
        }
    return false;
}

// --- receivers and incast ---

static uint32_t slow_receiver(struct congest_rig *r)
{
    uint32_t root = congest_rig_to(r, "leaf0", host(0, 1));
    for (unsigned l = 1; l < 4; l++)
        hold_way(r, l, 0, host(0, 1), 0.1, 0.7);
    congest_rig_set(r, root, 0.2, 0.79);
    return root;
}

static void test_receiver(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    // One more host behind leaf 1 sends elsewhere by another spine, and waits for nobody here.
    congest_rig_feed(&r);
    const struct congest_tree *const *none;
    assert_int_equal(congest_trees(r.c, &none), 0); // one sample says nothing yet
    congest_rig_feed(&r);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_RECEIVER);
    assert_true(t->root_read);
    assert_float_equal(t->held, 0.79, 0.01);
    assert_float_equal(t->used, 0.2, 0.01);
    assert_true(t->explained > 0.95);
    assert_true(t->share > 0.95);
    assert_int_equal(t->num_adapters, 3);
    unsigned depth;
    bool victim;
    assert_true(has_member(t, root, &depth, &victim));
    assert_int_equal(depth, 0);
    assert_true(has_member(t, congest_rig_to(&r, host(2, 0), "leaf2"), &depth, &victim));
    assert_int_equal(depth, 3);
    assert_false(victim);
    struct congest_totals totals;
    congest_totals(r.c, &totals);
    assert_int_equal(totals.held, t->num_members);
    assert_int_equal(totals.unread, 0);
    assert_float_equal(totals.lost_bps, t->lost_bps, totals.lost_bps * 0.01);
    congest_rig_free(&r);
}

static uint32_t incast(struct congest_rig *r)
{
    uint32_t root = congest_rig_to(r, "leaf0", host(0, 2));
    for (unsigned l = 1; l < 3; l++)
        hold_way(r, l, 1, host(0, 2), 0.33, 0.3);
    congest_rig_set(r, congest_rig_to(r, host(0, 0), "leaf0"), 0.33, 0.6);
    congest_rig_set(r, root, 0.98, 0);
    return root;
}

static void test_incast(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = incast(&r);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_INCAST);
    assert_true(t->explained > 0.9);
    assert_true(t->num_members >= 6);
    assert_true(t->member[0].depth == 1); // the root itself does not wait
    congest_rig_free(&r);
}

// All other cables carry much too: that a port waits for most of the time is not theirs.
static void test_incast_under_load(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    for (uint32_t s = 0; s < r.t.num; s++)
        congest_rig_set(&r, s, 0.89, 0);
    uint32_t root = congest_rig_to(&r, "leaf0", host(0, 1));
    congest_rig_set(&r, root, 0.998, 0);
    for (unsigned l = 1; l < 4; l++) {
        unsigned k = spine_for(&r, l, host(0, 1));
        uint32_t down = congest_rig_to(&r, spine(k), "leaf0");
        congest_rig_set(&r, congest_rig_to(&r, leaf(l), spine(k)), 0.25, 0.74);
        congest_rig_set(&r, down, (r.held[down] > 0 ? r.used[down] : 0) + 0.25, 0.24);
        for (unsigned h = 0; h < HOSTS; h++)
            congest_rig_set(&r, congest_rig_to(&r, host(l, h), leaf(l)), 0.06, 0.93);
    }
    congest_rig_set(&r, congest_rig_to(&r, host(0, 2), "leaf0"), 0.248, 0.75);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = tree_at(&r, root);
    assert_non_null(t);
    assert_int_equal(t->kind, CONGEST_INCAST);
    assert_true(t->explained > 0.7);
    congest_rig_free(&r);
}

static void test_two_roots(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t a = slow_receiver(&r), z = congest_rig_to(&r, "leaf3", host(3, 3));
    // Hosts of the same leaf to one of them: the way is one hop.
    for (unsigned h = 0; h < 3; h++)
        congest_rig_set(&r, congest_rig_to(&r, host(3, h), "leaf3"), 0.33, 0.6);
    congest_rig_set(&r, z, 0.99, 0);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *ta = tree_at(&r, a), *tz = tree_at(&r, z);
    assert_non_null(ta);
    assert_non_null(tz);
    assert_int_equal(ta->kind, CONGEST_RECEIVER);
    assert_int_equal(tz->kind, CONGEST_INCAST);
    assert_true(ta->lost_bps > tz->lost_bps);
    congest_rig_free(&r);
}

// A victim sends by the same cables to somebody else.
static void test_victims(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    unsigned k = spine_for(&r, 1, host(0, 1));
    // A spine's cable down to another leaf does not lead to the root, yet it waits (with whatever is in front
    // of it): it must be in no tree of this root.
    uint32_t other = congest_rig_to(&r, spine(k), "leaf2");
    congest_rig_set(&r, other, 0.3, 0.03);
    // Hosts of leaf 1 that send something all wait.
    uint32_t beside = congest_rig_to(&r, host(1, 3), "leaf1");
    congest_rig_set(&r, beside, 0.2, 0.2);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = tree_at(&r, root);
    unsigned depth;
    bool victim;
    assert_non_null(t);
    assert_false(has_member(t, other, &depth, &victim));
    assert_true(has_member(t, beside, &depth, &victim));
    congest_rig_free(&r);
}

// --- trunks ---

static uint32_t full_trunk(struct congest_rig *r, double siblings)
{
    uint32_t root = congest_rig_to(r, "leaf1", spine(0));
    congest_rig_set(r, root, 0.98, 0);
    congest_rig_set(r, congest_rig_to(r, "leaf1", spine(1)), siblings, 0);
    for (unsigned h = 0; h < HOSTS; h++)
        congest_rig_set(r, congest_rig_to(r, host(1, h), "leaf1"), 0.3 + siblings / 5, 0.3);
    return root;
}

static void test_imbalance(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = full_trunk(&r, 0.2);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_IMBALANCE);
    assert_float_equal(t->siblings_used, 0.2, 0.01);
    congest_rig_free(&r);
}

// Parking lot: everybody sends to the end of a chain; each trunk on the way is fuller, and waits for the
// next.
static void test_parking_lot(void **state)
{
    struct congest_rig r;
    struct rig b;
    node_id s[4];
    rig_start(&b);
    for (unsigned i = 0; i < 4; i++) {
        s[i] = rig_switch(&b, 8, leaf(i));
        rig_cable(&b, s[i], rig_ca(&b, 1, host(i, 0)));
        if (i)
            rig_cable(&b, s[i - 1], s[i]);
    }
    const struct fabric *f = rig_done(&b);
    congest_rig_new(&r, f, rig_route(f, ROUTE_UPDN));
    uint32_t root = congest_rig_to(&r, "leaf3", host(3, 0));
    congest_rig_set(&r, root, 0.99, 0);
    congest_rig_set(&r, congest_rig_to(&r, "leaf2", "leaf3"), 0.98, 0.02);
    congest_rig_set(&r, congest_rig_to(&r, "leaf1", "leaf2"), 0.5, 0.5);
    congest_rig_set(&r, congest_rig_to(&r, "leaf0", "leaf1"), 0.25, 0.74);
    congest_rig_set(&r, congest_rig_to(&r, host(0, 0), "leaf0"), 0.25, 0.74);
    congest_rig_set(&r, congest_rig_to(&r, host(1, 0), "leaf1"), 0.25, 0.74);
    congest_rig_set(&r, congest_rig_to(&r, host(2, 0), "leaf2"), 0.5, 0.5);
    congest_rig_feeds(&r, 3);
    // Two cables are full one behind the other, and all goes over both: either is the root.
    const struct congest_tree *const *all;
    assert_true(congest_trees(r.c, &all) >= 1);
    assert_true(all[0]->root == root || all[0]->root == congest_rig_to(&r, "leaf2", "leaf3"));
    congest_rig_free(&r);
}

// The root's cable runs at 1x, where both ends enable 4x; `all`: so do all others.
static void slow_cable(bool all)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = full_trunk(&r, 0.2);
    struct builder *b = builder_from(r.f);
    uint32_t port = r.t.port[root].port;
    for (uint32_t p = 0; p < r.f->num_ports; p++) {
        bool slow = all || p == port || r.f->port[p].peer.i == port;
        struct port_attrs a = {.width_active = slow ? 1 : 2,
                               .width_enabled = 3,
                               .width_supported = 3,
                               .speed_ext_active = 4,
                               .speed_ext_supported = 6,
                               .state = PORT_ACTIVE};
        a.lid = r.f->port[p].a.lid;
        builder_port(b, r.f->port[p].node, r.f->port[p].num, &a);
    }
    const struct fabric *g = builder_seal(b, r.f->generation + 1, NULL);
    fabric_unref(r.f);
    r.f = r.t.fabric = g;
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_SLOW_LINK);
    congest_rig_free(&r);
}

static void test_slow_link(void **state)
{
    slow_cable(false);
    slow_cable(true);
}

// --- nothing to name ---

// Everything busy, nobody waits; or waits little and everywhere alike.
static void test_busy(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    for (uint32_t s = 0; s < r.t.num; s++)
        congest_rig_set(&r, s, 0.97, 0.002);
    congest_rig_feeds(&r, 4);
    const struct congest_tree *const *all;
    assert_int_equal(congest_trees(r.c, &all), 0);
    for (uint32_t s = 0; s < r.t.num; s++) {
        bool end = !r.t.port[r.t.port[s].peer].of_switch;
        congest_rig_set(&r, s, 0.85 + 0.01 * (s % 3), end ? 0 : 0.03 + 0.01 * (s % 4));
    }
    congest_rig_feeds(&r, 4);
    uint32_t n = congest_trees(r.c, &all);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(all[i]->kind, CONGEST_UNCLEAR);
    congest_rig_free(&r);
}

// A full port beside the root, fed by somebody who does not wait, is busy and no more.
static void test_busy_beside(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    congest_rig_set(&r, congest_rig_to(&r, host(0, 0), "leaf0"), 0.98, 0);
    congest_rig_set(&r, congest_rig_to(&r, "leaf0", host(0, 3)), 0.98, 0);
    congest_rig_feeds(&r, 3);
    assert_int_equal(only(&r)->root, root);
    congest_rig_free(&r);
}

// --- what is not read ---

static void test_unread_root(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    r.unread[root] = true; // the host tells how much arrives
    congest_rig_feeds(&r, 6);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_RECEIVER);
    assert_false(t->root_read);
    assert_true(isnan(t->held));
    assert_float_equal(t->used, 0.2, 0.01);
    congest_rig_free(&r);
}

// Neither end of the root is read, nor is another cable to a host of that leaf: routes of those that wait
// tell.
static void test_unread_both_ends(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    r.unread[root] = r.unread[r.t.port[root].peer] = true;
    r.unread[congest_rig_to(&r, "leaf0", host(0, 0))] = true;
    congest_rig_feeds(&r, 6);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_true(isnan(t->used));
    congest_rig_free(&r);
}

static void test_full_by_far_end(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = incast(&r);
    r.unread[root] = true;
    congest_rig_feeds(&r, 6);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_INCAST);
    congest_rig_free(&r);
}

static void test_unread_between(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    for (unsigned k = 0; k < SPINES; k++) // both cables into the root's leaf
        r.unread[congest_rig_to(&r, spine(k), "leaf0")] = true;
    congest_rig_feeds(&r, 6);
    const struct congest_tree *t = tree_at(&r, root);
    assert_non_null(t);
    unsigned depth;
    bool victim;
    assert_true(has_member(t, congest_rig_to(&r, host(2, 0), "leaf2"), &depth, &victim));
    congest_rig_free(&r);
}

// A sweep that misses a port forgets nothing at once; three and more do.
static void test_holes(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    congest_rig_feeds(&r, 3);
    uint64_t id = only(&r)->id;
    r.unread[root] = true;
    congest_rig_feeds(&r, 2);
    assert_true(only(&r)->root_read);
    assert_int_equal(only(&r)->id, id);
    congest_rig_feeds(&r, 3);
    assert_false(only(&r)->root_read);
    assert_int_equal(only(&r)->id, id);
    struct congest_totals totals;
    congest_totals(r.c, &totals);
    assert_int_equal(totals.unread, 1);
    congest_rig_free(&r);
}

// Two hosts are all that a full port carries, and neither was read: that they wait is known, how long is not.
static void test_presumed(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = congest_rig_to(&r, "leaf0", host(0, 1));
    uint32_t sender[2] = {congest_rig_to(&r, host(0, 0), "leaf0"), congest_rig_to(&r, host(0, 2), "leaf0")};
    congest_rig_set(&r, root, 0.99, 0);
    r.unread[root] = true; // the host tells how much arrives
    for (unsigned i = 0; i < 2; i++) {
        congest_rig_set(&r, sender[i], 0.495, 0.5);
        r.unread[sender[i]] = true;
    }
    congest_rig_feeds(&r, 4);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_INCAST);
    assert_false(t->root_read);
    assert_true(isnan(t->held));
    assert_int_equal(t->num_members, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(t->member[i].slot == sender[0] || t->member[i].slot == sender[1]);
        assert_true(isnan(t->member[i].held));
        assert_float_equal(t->member[i].used, 0.495, 0.01);
        assert_true(t->member[i].lost_bps > 0);
    }
    assert_float_equal(t->share, 1, 0.01); // of what is presumed too
    struct congest_totals totals;
    congest_totals(r.c, &totals);
    assert_int_equal(totals.held, 0);
    congest_rig_free(&r);
}

static void test_no_tables(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    tables_unref(r.tables);
    r.tables = NULL;
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = tree_at(&r, root);
    assert_non_null(t);
    assert_int_equal(t->kind, CONGEST_RECEIVER);
    assert_int_equal(t->num_members, 1);
    r.t.fabric = NULL; // not even that
    congest_rig_feeds(&r, 1);
    congest_rig_free(&r);
}

// Slots that are gone, or whose far end is.
static void test_stale(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    congest_rig_feeds(&r, 3);
    for (uint32_t s = 0; s < r.t.num; s += 3) {
        r.t.port[s].port = ID_NONE;
        r.t.port[s].up = false;
    }
    for (uint32_t s = 0; s < r.t.num; s++)
        if (r.t.port[r.t.port[s].peer].port == ID_NONE)
            r.t.port[s].peer = TELE_SLOT_NONE;
    for (uint32_t s = 0; s < r.t.num; s++) // what the rig itself follows
        if (r.t.port[s].peer == TELE_SLOT_NONE)
            r.t.port[s].peer = s;
    congest_rig_feeds(&r, 5);
    (void)root;
    congest_rig_free(&r);
}

// Neither end of a trunk is read; all that goes into its leaf and does not come out elsewhere goes by it.
static void test_guess(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = congest_rig_to(&r, "leaf1", spine(0));
    for (unsigned h = 0; h < HOSTS; h++)
        congest_rig_set(&r, congest_rig_to(&r, host(1, h), "leaf1"), 0.3, 0.5);
    congest_rig_set(&r, congest_rig_to(&r, "leaf1", spine(1)), 0.22, 0);
    congest_rig_set(&r, root, 0.98, 0);
    for (unsigned l = 2; l < 4; l++) // where it goes on
        for (unsigned h = 0; h < HOSTS; h++) {
            congest_rig_set(&r, congest_rig_to(&r, "leaf2", host(2, h)), 0.3, 0);
            congest_rig_set(&r, congest_rig_to(&r, spine(0), "leaf2"), 0.49, 0);
            congest_rig_set(&r, congest_rig_to(&r, spine(0), "leaf3"), 0.49, 0);
        }
    r.unread[root] = r.unread[r.t.port[root].peer] = true;
    congest_rig_feeds(&r, 4);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->kind, CONGEST_IMBALANCE);
    assert_false(t->root_read);
    congest_rig_free(&r);
}

// Everybody waits a little all the time; that some ports are not read makes none of them a root.
static void test_bursts(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    for (uint32_t s = 0; s < r.t.num; s++) {
        bool end = !r.t.port[r.t.port[s].peer].of_switch;
        congest_rig_set(&r, s, 0.5, end ? 0 : 0.02 + 0.01 * (s * 7 % 6));
        r.unread[s] = s * 13 % 10 < 3;
    }
    const struct congest_tree *const *all;
    for (unsigned i = 0; i < 6; i++) {
        congest_rig_feed(&r);
        uint32_t n = congest_trees(r.c, &all);
        for (uint32_t k = 0; k < n; k++)
            assert_int_equal(all[k]->kind, CONGEST_UNCLEAR);
    }
    congest_rig_free(&r);
}

// A host that sends all it can makes nobody wait, whatever is on its cable.
static void test_sender(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    congest_rig_set(&r, congest_rig_to(&r, host(1, 0), "leaf1"), 0.93, 0.06);
    congest_rig_feeds(&r, 4);
    const struct congest_tree *const *all;
    uint32_t n = congest_trees(r.c, &all);
    for (uint32_t k = 0; k < n; k++)
        assert_int_equal(all[k]->kind, CONGEST_UNCLEAR);
    congest_rig_free(&r);
}

// All cables up are full: one tree, which names them all.
static void test_beside(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t a = full_trunk(&r, 0.97), z = congest_rig_to(&r, "leaf1", spine(1));
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->kind, CONGEST_OVERSUBSCRIBED);
    assert_int_equal(t->num_beside, 1);
    assert_int_equal(t->beside[0], t->root == a ? z : a);
    assert_true(t->explained > 0.9);
    congest_rig_free(&r);
}

// Readings that are missed make the next one tell of a longer time: what the far end tells is newer.
static void test_far_end_is_newer(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = congest_rig_to(&r, "leaf0", host(0, 2));
    congest_rig_feeds(&r, 2);
    r.unread[root] = true;
    incast(&r);
    congest_rig_feeds(&r, 3);
    r.unread[root] = false; // tells of 40 s, the first of them before it began
    congest_rig_feed(&r);
    struct congest_port p;
    congest_port(r.c, root, &p);
    assert_true(p.used > 0.95);
    assert_int_equal(only(&r)->root, root);
    congest_rig_free(&r);
}

// More wait than are looked at.
static void test_jam(void **state)
{
    struct congest_rig r;
    const struct fabric *f = rig_named("ft3-16-16");
    congest_rig_new(&r, f, rig_route(f, ROUTE_UPDN));
    for (uint32_t s = 0; s < r.t.num; s++)
        congest_rig_set(&r, s, 0.1, 0.6);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *const *all;
    assert_true(congest_trees(r.c, &all) > 0);
    assert_int_equal(all[0]->kind, CONGEST_RECEIVER);
    struct congest_totals totals;
    congest_totals(r.c, &totals);
    assert_int_equal(totals.held, r.t.num);
    congest_rig_free(&r);
}

// Tables that are wrong: entries beyond the ports, of another number of switches, loops.
static void test_wrong_tables(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    struct fabric_tables *t = tables_copy_for(r.tables, r.f, r.f, r.tables->top_lid);
    tables_unref(r.tables);
    r.tables = t;
    slow_receiver(&r);
    for (unsigned turn = 0; turn < 4; turn++) {
        struct rng g;
        rng_init(&g, turn);
        for (uint32_t i = 0; i < t->num_switches * t->lids; i++)
            t->lft[i] = (uint8_t)rng_below(&g, turn < 2 ? 256 : 7);
        for (uint32_t s = 0; s < r.t.num; s++)
            congest_rig_set(&r, s, rng_double(&g), turn % 2 ? rng_double(&g) : 1);
        r.tables->generation++;
        congest_free(r.c);
        r.c = congest_new(NULL);
        congest_rig_feeds(&r, 3);
    }
    t->num_switches--;
    congest_rig_feeds(&r, 1);
    t->num_switches++;
    congest_rig_free(&r);
}

// --- switches that adapt ---

// A leaf may choose among its spines: whoever waits there may wait for either.
static void test_groups(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    struct fabric_groups *g = groups_new(r.f, r.tables->lids, r.f->num_switches);
    uint32_t n = 0;
    for (uint32_t s = 0; s < r.f->num_switches; s++) {
        const struct node *sw = fabric_switch(r.f, s);
        g->first[s] = n;
        if (strncmp(fabric_desc(r.f, sw), "leaf", 4) == 0) {
            struct fabric_group *x = &g->group[n++];
            x->id = 0;
            for (unsigned i = HOSTS + 1; i <= HOSTS + SPINES; i++)
                port_set_add(&x->ports, (uint8_t)i);
            for (uint32_t to = 0; to < r.f->num_switches; to++)
                if (to != s && strncmp(fabric_desc(r.f, fabric_switch(r.f, to)), "leaf", 4) == 0)
                    g->to[(size_t)s * g->num_switches + to] = 0;
        }
    }
    g->first[r.f->num_switches] = n;
    for (uint32_t l = 1; l < g->lids; l++) {
        port_id p = fabric_by_lid(r.f, (uint16_t)l);
        const struct node *leaf_of = port_valid(p) ? fabric_peer_node(r.f, fabric_port(r.f, p)) : NULL;
        if (leaf_of && leaf_of->type == NODE_SWITCH && fabric_port(r.f, p)->num) {
            g->lid_switch[l] = leaf_of->sw;
            g->lid_whole[l] = true;
        }
    }
    groups_seal(g, false);
    r.groups = g;
    uint32_t root = congest_rig_to(&r, "leaf0", host(0, 1));
    congest_rig_set(&r, root, 0.2, 0.79);
    for (unsigned k = 0; k < SPINES; k++) {
        congest_rig_set(&r, congest_rig_to(&r, spine(k), "leaf0"), 0.1, 0.6);
        congest_rig_set(&r, congest_rig_to(&r, "leaf2", spine(k)), 0.1, 0.3);
    }
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->num_members, 1 + 2 * SPINES);
    assert_int_equal(t->num_victims, 0); // either cable may carry what goes there
    congest_rig_free(&r);
    groups_unref(g);
}

// --- circles ---

static void ring_of_four(struct congest_rig *r)
{
    struct rig b;
    node_id s[4];
    rig_start(&b);
    for (unsigned i = 0; i < 4; i++) {
        s[i] = rig_switch(&b, 8, leaf(i));
        rig_cable(&b, s[i], rig_ca(&b, 1, host(i, 0)));
    }
    for (unsigned i = 0; i < 4; i++)
        rig_cable(&b, s[i], s[(i + 1) % 4]);
    const struct fabric *f = rig_done(&b);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    struct fabric_tables *own = tables_copy_for(t, f, f, t->top_lid);
    tables_unref(t);
    congest_rig_new(r, f, own);
    for (unsigned i = 0; i < 4; i++) // everything goes round
        for (unsigned k = 0; k < 4; k++) {
            uint32_t up = congest_rig_to(r, leaf(i), leaf((i + 1) % 4));
            const struct node *n = fabric_by_guid(f, r->t.port[up].node_guid);
            uint32_t dest = congest_rig_to(r, host(k, 0), leaf(k));
            if (i != k)
                tables_row(own, n->sw)[f->port[r->t.port[dest].port].a.lid] = r->t.port[up].num;
        }
}

static void test_deadlock(void **state)
{
    struct congest_rig r;
    ring_of_four(&r);
    for (unsigned i = 0; i < 4; i++) {
        congest_rig_set(&r, congest_rig_to(&r, leaf(i), leaf((i + 1) % 4)), 0, 1);
        congest_rig_set(&r, congest_rig_to(&r, host(i, 0), leaf(i)), 0, 1);
    }
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->kind, CONGEST_DEADLOCK);
    assert_int_equal(t->num_cycle, 4);
    for (unsigned i = 0; i < 4; i++) { // each leads to the next
        uint32_t a = t->cycle[i], z = t->cycle[(i + 1) % 4];
        assert_true(r.t.port[r.t.port[a].peer].node_guid == r.t.port[z].node_guid);
    }
    assert_int_equal(t->num_members, 8);
    // One of the four is not read: the circle is as plain.
    r.unread[t->cycle[2]] = true;
    congest_rig_feeds(&r, 5);
    assert_int_equal(only(&r)->kind, CONGEST_DEADLOCK);
    // It moves: no deadlock.
    congest_rig_clear(&r);
    for (unsigned i = 0; i < 4; i++)
        congest_rig_set(&r, congest_rig_to(&r, leaf(i), leaf((i + 1) % 4)), 0.4, 0.55);
    congest_rig_feeds(&r, 6);
    const struct congest_tree *const *all;
    uint32_t n = congest_trees(r.c, &all);
    for (uint32_t i = 0; i < n; i++)
        assert_int_not_equal(all[i]->kind, CONGEST_DEADLOCK);
    congest_rig_free(&r);
}

// --- identity ---

static void test_identity(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    congest_rig_feeds(&r, 3);
    const struct congest_tree *t = only(&r);
    uint64_t id = t->id;
    int64_t since = t->since;
    assert_true(id != 0);
    congest_rig_feeds(&r, 2);
    assert_int_equal(only(&r)->id, id);
    assert_int_equal(only(&r)->sweeps, 4);
    assert_int_equal(only(&r)->since, since);
    congest_rig_clear(&r);
    congest_rig_feeds(&r, 2); // two samples of three below: gone, in its grace
    t = only(&r);
    assert_int_equal(t->id, id);
    assert_int_equal(t->missed, 1);
    struct congest_port p;
    congest_port(r.c, root, &p);
    assert_int_equal(p.tree, 0);
    slow_receiver(&r);
    congest_rig_feeds(&r, 2); // comes back: the same
    assert_int_equal(only(&r)->id, id);
    assert_int_equal(only(&r)->missed, 0);
    congest_rig_clear(&r);
    congest_rig_feeds(&r, 6);
    const struct congest_tree *const *all;
    assert_int_equal(congest_trees(r.c, &all), 0);
    slow_receiver(&r);
    congest_rig_feeds(&r, 3);
    assert_true(only(&r)->id != id); // another one
    congest_rig_free(&r);
}

static struct congest_tree *hand_made(uint32_t root, uint32_t beside, double lost)
{
    struct congest_tree *t = xcalloc(1, sizeof(*t));
    uint32_t *slot = xcalloc(1, sizeof(*slot));
    slot[0] = beside;
    *t = (struct congest_tree){.root = root,
                               .lost_bps = lost,
                               .member = xcalloc(1, sizeof(*t->member)),
                               .cycle = xcalloc(1, sizeof(*t->cycle)),
                               .beside = slot,
                               .num_beside = beside != root};
    return t;
}

static void ended_with(struct congest_rig *r, struct congest_tree *a, struct congest_tree *z)
{
    struct congest_tree **made = xcalloc(3, sizeof(*made));
    made[0] = a;
    made[1] = z;
    congest_trees_begin(r->c, &r->t, r->tables, r->groups);
    r->c->made = made;
    r->c->num_made = z != NULL ? 2 : 1;
    congest_trees_end(r->c, r->now);
}

// A tree goes on as that of the same root; only one that has none may go on as that of a cable beside it.
static void test_identity_of_the_same_root(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t a = congest_rig_to(&r, "leaf1", spine(0)), z = congest_rig_to(&r, "leaf1", spine(1));
    congest_rig_feeds(&r, 1);
    ended_with(&r, hand_made(a, a, 1e9), NULL);
    uint64_t id = only(&r)->id;
    ended_with(&r, hand_made(z, a, 2e9), hand_made(a, a, 1e9));
    assert_int_equal(tree_at(&r, a)->id, id);
    assert_true(tree_at(&r, z)->id != id);
    id = tree_at(&r, z)->id;
    ended_with(&r, hand_made(a, z, 1e9), hand_made(z, a, 3e9));
    assert_int_equal(tree_at(&r, z)->id, id);
    ended_with(&r, hand_made(z, z, 1e9), NULL);
    assert_int_equal(tree_at(&r, z)->id, id);
    congest_rig_clear(&r);
    for (unsigned i = 0; i < 5; i++)
        ended_with(&r, hand_made(z, z, 1e9), NULL);
    ended_with(&r, hand_made(a, z, 1e9), NULL); // the other one of the two
    assert_int_equal(only(&r)->id, id);
    congest_rig_free(&r);
}

// What work has made is not shown before its end, and not at all when another one begins.
static void test_published_at_the_end(void **state)
{
    struct congest_rig r;
    const struct congest_tree *const *all;
    two_levels(&r);
    uint32_t root = slow_receiver(&r);
    congest_rig_feeds(&r, 1);
    uint32_t before = congest_trees(r.c, &all);
    for (unsigned i = 0; i < 2; i++) {
        congest_rig_read(&r);
        congest_feed_begin(r.c, &r.t);
        assert_true(congest_feed_ports(r.c, &r.t, UINT32_MAX));
        congest_trees_begin(r.c, &r.t, r.tables, r.groups);
        congest_trees_work(r.c);
        assert_int_equal(congest_trees(r.c, &all), before);
    }
    assert_int_equal(before, 0);
    congest_trees_end(r.c, r.now);
    const struct congest_tree *t = only(&r);
    assert_int_equal(t->root, root);
    assert_int_equal(t->sweeps, 1);
    congest_trees_begin(r.c, &r.t, r.tables, r.groups);
    congest_trees_work(r.c);
    congest_rig_free(&r); // with trees that nobody saw
}

// Between the two limits a port stays what it was; one sample decides nothing.
static void test_hysteresis(void **state)
{
    static const struct {
        double held;
        unsigned sweeps;
        bool is_held;
    } row[] = {{0.015, 3, false}, {0.05, 1, false}, {0.05, 1, true},  {0.015, 4, true},
               {0, 1, true},      {0, 1, false},    {0.015, 3, false}};
    struct congest_rig r;
    struct congest_port p;
    two_levels(&r);
    uint32_t port = congest_rig_to(&r, "leaf0", host(0, 1));
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        congest_rig_set(&r, port, 0.1, row[i].held);
        congest_rig_feeds(&r, row[i].sweeps);
        congest_port(r.c, port, &p);
        if (p.is_held != row[i].is_held)
            fail_msg("row %zu", i);
    }
    congest_rig_free(&r);
}

// --- shown ---

static void test_levels(void **state)
{
    struct congest_rig r;
    two_levels(&r);
    uint32_t root = incast(&r);
    congest_rig_feeds(&r, 3);
    struct congest_level *l;
    uint32_t n = congest_levels(only(&r), &r.t, &l);
    assert_int_equal(n, 4);
    assert_int_equal(l[0].depth, 0);
    assert_int_equal(l[0].ports, 1);
    char want[40];
    snprintf(want, sizeof(want), "leaf0/%u", r.t.port[root].num);
    assert_string_equal(l[0].from, want);
    assert_string_equal(l[0].to, host(0, 2));
    assert_float_equal(l[0].used_min, 0.98, 0.01);
    assert_string_equal(l[1].to, "leaf0");
    assert_string_equal(l[3].from, "2 adapters");
    free(l);
    struct congest_port p;
    congest_port(r.c, root, &p);
    assert_true(p.is_full && !p.is_held);
    assert_int_equal(p.tree, only(&r)->id);
    assert_true(p.score > 0.4);
    congest_port(r.c, r.t.num + 7, &p);
    assert_true(isnan(p.score));
    for (unsigned k = 0; k <= CONGEST_UNCLEAR; k++) {
        assert_non_null(congest_kind_name(k));
        assert_non_null(congest_kind_title(k));
        assert_non_null(congest_kind_advice(k));
    }
    congest_rig_free(&r);
}

static void test_parts(void **state)
{
    struct congest_rig r;
    const struct fabric *f = rig_named("rail-128");
    congest_rig_new(&r, f, rig_route(f, ROUTE_AUTO));
    for (uint32_t s = 0; s < r.t.num; s++) {
        const struct port *p = &f->port[r.t.port[s].port];
        uint16_t rail = fabric_node(f, p->node)->rail;
        congest_rig_set(&r, s, rail == 3 ? 0.5 : 0.25, rail == 3 ? 0.1 : 0);
    }
    congest_rig_feeds(&r, 2);
    struct congest_part *part;
    struct congest_sums *s = congest_sums_new();
    while (!congest_sums_some(s, &r.t, 100)) {
    }
    uint32_t n = congest_sums_by_rail(s, &part);
    assert_int_equal(n, f->num_rails);
    for (uint32_t i = 0; i < n; i++) {
        assert_float_equal(part[i].max_used, part[i].number == 3 ? 0.5 : 0.25, 0.01);
        assert_float_equal(part[i].max_held, part[i].number == 3 ? 0.1 : 0, 0.01);
        assert_true((part[i].lost_bps > 0) == (part[i].number == 3));
        assert_true((part[i].held > 0) == (part[i].number == 3));
        assert_true(part[i].imbalance >= 1 && part[i].imbalance < 2);
    }
    free(part);
    assert_int_equal(congest_sums_by_su(s, &part), f->num_sus);
    free(part);
    congest_sums_free(s);
    congest_rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_receiver),
        cmocka_unit_test(test_incast),
        cmocka_unit_test(test_incast_under_load),
        cmocka_unit_test(test_two_roots),
        cmocka_unit_test(test_victims),
        cmocka_unit_test(test_imbalance),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_parking_lot),
        cmocka_unit_test(test_slow_link),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_busy_beside),
        cmocka_unit_test(test_unread_root),
        cmocka_unit_test(test_unread_both_ends),
        cmocka_unit_test(test_full_by_far_end),
        cmocka_unit_test(test_unread_between),
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_presumed),
        cmocka_unit_test(test_no_tables),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_sender),
        cmocka_unit_test(test_far_end_is_newer),
        cmocka_unit_test(test_jam),
        cmocka_unit_test(test_wrong_tables),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_deadlock),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_identity_of_the_same_root),
        cmocka_unit_test(test_published_at_the_end),
        cmocka_unit_test(test_hysteresis),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
