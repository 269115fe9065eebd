// SPDX-License-Identifier: Apache-2.0
// fabric_merge(): what is learnt, what gives way, and that nothing is learnt twice.
#include "test_model_help.h"

#include "fabric/merge.h"
#include "fabric/topogen.h"
#include "lib/err.h"

#define LEAF 0x10
#define SPINE 0x20
#define HOST 0x30
#define OTHER 0x40

// leaf.1 - host, leaf.2 - other, leaf.3 - spine.3; LIDs 1, 4, 2, 3.
static struct builder *base_builder(void)
{
    struct builder *b = builder_new();
    node_id o = add_ca(b, OTHER, "other"), s = add_switch(b, LEAF, 8, "leaf");
    node_id t = add_switch(b, SPINE, 8, "spine"), h = add_ca(b, HOST, "host");
    add_link(b, s, 1, h, 1);
    add_link(b, s, 2, o, 1);
    add_link(b, s, 3, t, 3);
    set_lid(b, s, 0, 1, 0, PORT_ACTIVE);
    set_lid(b, h, 1, 2, 0, PORT_ACTIVE);
    set_lid(b, o, 1, 3, 0, PORT_ACTIVE);
    set_lid(b, t, 0, 4, 0, PORT_ACTIVE);
    return b;
}

static const struct fabric *base(void)
{
    return builder_seal(base_builder(), 1, NULL);
}

static node_id find(struct builder *b, uint64_t guid)
{
    node_id id = NODE_NONE;
    assert_int_equal(builder_find(b, guid, &id), 0);
    return id;
}

static const struct port *at(const struct fabric *f, uint64_t guid, unsigned num)
{
    const struct node *n = fabric_by_guid(f, guid);
    assert_non_null(n);
    port_id p = fabric_port_at(f, n, num);
    assert_true(port_valid(p));
    return fabric_port(f, p);
}

static uint64_t peer(const struct fabric *f, uint64_t guid, unsigned num)
{
    const struct node *z = fabric_peer_node(f, at(f, guid, num));
    return z != NULL ? z->guid : 0;
}

static void assert_sorted(const struct fabric *f)
{
    for (uint32_t i = 1; i < f->num_nodes; i++)
        assert_true(f->node[i - 1].guid < f->node[i].guid);
}

// Merges and gives both back.
static const struct fabric *merged(const struct fabric *known, const struct fabric *seen)
{
    const struct fabric *m = fabric_merge(known, seen);
    assert_sorted(m);
    assert_ptr_equal(fabric_merge(m, seen), m); // learnt is learnt
    fabric_unref(m);
    fabric_unref(known);
    fabric_unref(seen);
    return m;
}

static void test_one_alone(void **state)
{
    const struct fabric *f = base();
    (void)state;
    assert_true(f->node[0].guid == OTHER); // not in order
    for (int i = 0; i < 2; i++) {
        const struct fabric *m = i ? fabric_merge(f, NULL) : fabric_merge(NULL, f);
        assert_sorted(m);
        assert_int_equal(m->num_nodes, 4);
        assert_int_equal(m->num_links, 3);
        assert_int_equal(m->generation, 1);
        for (uint32_t k = 0; k < f->num_ports; k++) {
            const struct port *p = &f->port[k];
            uint64_t guid = fabric_node(f, p->node)->guid;
            assert_true(peer(m, guid, p->num) == peer(f, guid, p->num));
            assert_int_equal(at(m, guid, p->num)->a.lid, p->a.lid);
            assert_true(at(m, guid, p->num)->guid == p->guid);
        }
        assert_ptr_equal(fabric_merge(m, f), m);
        fabric_unref(m);
        fabric_unref(m);
    }
    fabric_unref(f);
}

// A node without a cable has lost none.
static void test_lone_node(void **state)
{
    struct builder *b = builder_new();
    (void)state;
    add_ca(b, HOST, "alone");
    const struct fabric *f = builder_seal(b, 1, NULL), *m = fabric_merge(f, NULL);
    assert_int_equal(m->num_nodes, 1);
    fabric_unref(m);
    m = merged(f, base());
    assert_int_equal(m->num_nodes, 4);
    fabric_unref(m);
}

static void test_nothing_new(void **state)
{
    const struct fabric *f = base(), *known = fabric_merge(NULL, f);
    (void)state;
    assert_ptr_equal(fabric_merge(known, f), known);
    fabric_unref(known);
    struct builder *b = builder_from(f); // less of it
    builder_remove(b, find(b, OTHER));
    builder_unlink(b, find(b, LEAF), 3);
    const struct fabric *less = builder_seal(b, 2, NULL);
    assert_ptr_equal(fabric_merge(known, less), known);
    fabric_unref(known);
    b = builder_from(f); // the same, in other states
    set_lid(b, find(b, HOST), 1, 2, 0, PORT_INIT);
    const struct fabric *init = builder_seal(b, 3, NULL);
    assert_ptr_equal(fabric_merge(known, init), known);
    fabric_unref(known);
    fabric_unref(init);
    fabric_unref(less);
    fabric_unref(known);
    fabric_unref(f);
}

static void test_grows(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    node_id n = add_ca(b, 0x25, "new");
    add_link(b, find(b, LEAF), 4, n, 1);
    set_lid(b, n, 1, 5, 0, PORT_ACTIVE);
    add_link(b, find(b, LEAF), 5, find(b, SPINE), 5); // one more trunk
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(m->num_nodes, 5);
    assert_int_equal(m->num_links, 5);
    assert_true(peer(m, LEAF, 4) == 0x25);
    assert_true(peer(m, SPINE, 5) == LEAF);
    assert_int_equal(at(m, 0x25, 1)->a.lid, 5);
    assert_int_equal(m->generation, 2);
    fabric_unref(m);
}

// What is missing stays, with its cables and LID, while something else is learnt.
static void test_missing_stays(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_remove(b, find(b, SPINE));
    builder_remove(b, find(b, HOST));
    node_id n = add_ca(b, 0x50, "new");
    add_link(b, find(b, LEAF), 7, n, 1);
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(m->num_nodes, 5);
    assert_int_equal(m->num_links, 4);
    assert_true(peer(m, LEAF, 3) == SPINE);
    assert_int_equal(at(m, SPINE, 3)->a.state, PORT_ACTIVE);
    assert_true(peer(m, LEAF, 1) == HOST);
    assert_int_equal(at(m, HOST, 1)->a.lid, 2);
    assert_int_equal(at(m, SPINE, 0)->a.lid, 4);
    assert_true(at(m, HOST, 1)->guid == HOST + 1);
    fabric_unref(m);
}

static void test_cable_moves(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_unlink(b, find(b, LEAF), 1);
    add_link(b, find(b, SPINE), 1, find(b, HOST), 1);
    set_lid(b, find(b, HOST), 1, 2, 0, PORT_ACTIVE);
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(m->num_links, 3);
    assert_true(peer(m, SPINE, 1) == HOST);
    assert_true(peer(m, LEAF, 1) == 0);
    assert_int_equal(at(m, HOST, 1)->a.lid, 2);
    fabric_unref(m);
}

static void test_cables_swapped(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_unlink(b, find(b, LEAF), 1);
    builder_unlink(b, find(b, LEAF), 2);
    assert_int_equal(builder_link(b, find(b, LEAF), 1, find(b, OTHER), 1), 0);
    assert_int_equal(builder_link(b, find(b, LEAF), 2, find(b, HOST), 1), 0);
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(m->num_links, 3);
    assert_true(peer(m, LEAF, 1) == OTHER);
    assert_true(peer(m, LEAF, 2) == HOST);
    fabric_unref(m);
}

// Another adapter on the same cable: the old one leaves, and its LID is free.
static void test_adapter_replaced(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_remove(b, find(b, HOST));
    node_id n = add_ca(b, 0x35, "host");
    add_link(b, find(b, LEAF), 1, n, 1);
    set_lid(b, n, 1, 9, 0, PORT_ACTIVE);
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(m->num_nodes, 4);
    assert_null(fabric_by_guid(m, HOST));
    assert_true(peer(m, LEAF, 1) == 0x35);
    assert_false(port_valid(fabric_by_lid(m, 2)));
    fabric_unref(m);
}

// It goes with its last cable, not before.
static void test_last_cable(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        struct builder *b = base_builder(), *c = base_builder();
        node_id two = add_node(b, NODE_CA, 0x60, 2, "dual");
        add_link(b, find(b, LEAF), 5, two, 1);
        add_link(b, find(b, SPINE), 5, two, 2);
        node_id n = add_ca(c, 0x70, "new"), x = add_ca(c, 0x80, "newer");
        add_link(c, find(c, LEAF), 5, n, 1);
        if (both)
            add_link(c, find(c, SPINE), 5, x, 1);
        const struct fabric *m = merged(builder_seal(b, 1, NULL), builder_seal(c, 2, NULL));
        assert_true((fabric_by_guid(m, 0x60) == NULL) == both);
        assert_true(peer(m, LEAF, 5) == 0x70);
        assert_true(peer(m, SPINE, 5) == (both ? 0x80 : 0x60));
        fabric_unref(m);
    }
}

// Another kind of device under the same GUID takes nothing over.
static void test_another_kind(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_remove(b, find(b, SPINE));
    node_id t = add_switch(b, SPINE, 16, "bigger");
    add_link(b, find(b, LEAF), 4, t, 12);
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(fabric_by_guid(m, SPINE)->num_ports, 16);
    assert_string_equal(fabric_desc(m, fabric_by_guid(m, SPINE)), "bigger");
    assert_true(peer(m, LEAF, 4) == SPINE);
    assert_true(peer(m, LEAF, 3) == 0);
    assert_int_equal(at(m, SPINE, 0)->a.lid, 0);
    fabric_unref(m);
}

static void test_lids(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_remove(b, find(b, HOST)); // away; its LID is another's now
    set_lid(b, find(b, OTHER), 1, 2, 0, PORT_ACTIVE);
    set_lid(b, find(b, SPINE), 0, 0, 0, PORT_ACTIVE); // not read
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_int_equal(at(m, OTHER, 1)->a.lid, 2);
    assert_int_equal(at(m, HOST, 1)->a.lid, 0);
    assert_int_equal(at(m, SPINE, 0)->a.lid, 4);
    assert_true(fabric_port(m, fabric_by_lid(m, 2))->guid == OTHER + 1);
    assert_false(port_valid(fabric_by_lid(m, 3)));
    fabric_unref(m);

    struct builder *c = base_builder(); // a range that would cover another's
    builder_remove(c, find(c, HOST));
    set_lid(c, find(c, OTHER), 1, 2, 1, PORT_ACTIVE);
    m = merged(base(), builder_seal(c, 2, NULL));
    assert_int_equal(at(m, OTHER, 1)->a.lmc, 1);
    assert_int_equal(at(m, HOST, 1)->a.lid, 0);
    fabric_unref(m);
}

// Routes are numbered by switches' names; those of end nodes follow.
static void test_names(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_desc(b, find(b, SPINE), "renamed", 7);
    builder_desc(b, find(b, HOST), "renamed", 7);
    const struct fabric *f = base(), *seen = builder_seal(b, 2, NULL);
    assert_ptr_equal(fabric_merge(f, seen), f); // a name alone is no news
    fabric_unref(f);
    b = builder_from(seen);
    add_link(b, find(b, LEAF), 6, find(b, SPINE), 6);
    fabric_unref(seen);
    const struct fabric *m = merged(f, builder_seal(b, 3, NULL));
    assert_string_equal(fabric_desc(m, fabric_by_guid(m, SPINE)), "spine");
    assert_string_equal(fabric_desc(m, fabric_by_guid(m, HOST)), "renamed");
    fabric_unref(m);

    b = base_builder(); // the first name is learnt
    builder_desc(b, find(b, SPINE), "", 0);
    m = merged(builder_seal(b, 1, NULL), base());
    assert_string_equal(fabric_desc(m, fabric_by_guid(m, SPINE)), "spine");
    fabric_unref(m);
}

static void test_sm_port(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_sm_port(b, find(b, OTHER), 1);
    add_link(b, find(b, LEAF), 6, find(b, SPINE), 6);
    const struct fabric *m = merged(base(), builder_seal(b, 2, NULL));
    assert_true(fabric_node(m, fabric_port(m, m->sm_port)->node)->guid == OTHER);
    fabric_unref(m);
}

// Two adapters with one GUID: one LID, read at either place. The place without a cable is left without.
static void test_lid_of_two(void **state)
{
    struct builder *b = base_builder();
    (void)state;
    builder_unlink(b, find(b, LEAF), 1);
    set_lid(b, find(b, HOST), 1, 3, 0, PORT_INIT); // that is OTHER's
    const struct fabric *known = base(), *seen = builder_seal(b, 2, NULL);
    // `known` has a cable for HOST, so that it keeps LID and cable: nobody may settle that here.
    const struct fabric *m = merged(known, seen);
    assert_true(peer(m, LEAF, 1) == HOST);
    fabric_unref(m);

    b = base_builder(); // nor is there a cable that was known
    builder_unlink(b, find(b, LEAF), 1);
    known = builder_seal(b, 1, NULL);
    b = builder_from(known);
    set_lid(b, find(b, HOST), 1, 3, 0, PORT_INIT);
    m = merged(known, builder_seal(b, 2, NULL));
    assert_int_equal(at(m, HOST, 1)->a.lid, 0);
    assert_int_equal(at(m, OTHER, 1)->a.lid, 3);
    assert_true(fabric_port(m, fabric_by_lid(m, 3))->guid == OTHER + 1);
    fabric_unref(m);
}

// --- other rules ---

static const struct fabric *by_rule(enum merge_rule rule, const struct fabric *known, struct builder *b)
{
    const struct fabric *seen = builder_seal(b, 2, NULL), *m = fabric_merge_by(rule, known, seen);
    if (rule != MERGE_LIVE) {
        const struct fabric *again = fabric_merge_by(rule, m, seen);
        assert_ptr_equal(again, m);
        fabric_unref(again);
    }
    assert_sorted(m);
    fabric_unref(seen);
    return m;
}

// A new host on a leaf, a new switch with a host, a new trunk, a moved host: only the first one is taken in.
static void test_fixed(void **state)
{
    const struct fabric *known = base(), *m;
    (void)state;
    for (int hosts = 0; hosts < 2; hosts++) {
        struct builder *b = builder_from(known);
        node_id s = find(b, LEAF), n = add_ca(b, 0x50, "new"), t = add_switch(b, 0x60, 8, "second");
        node_id u = add_ca(b, 0x70, "far");
        add_link(b, s, 5, n, 1);
        add_link(b, s, 6, t, 6);
        add_link(b, t, 1, u, 1);
        add_link(b, s, 4, find(b, SPINE), 4);
        builder_unlink(b, s, 2);
        add_link(b, find(b, SPINE), 1, find(b, OTHER), 1);
        set_lid(b, n, 1, 9, 0, PORT_ACTIVE);
        set_lid(b, find(b, OTHER), 1, 8, 0, PORT_ACTIVE);
        set_lid(b, u, 1, 2, 0, PORT_ACTIVE); // what HOST had
        set_lid(b, find(b, HOST), 1, 7, 0, PORT_ACTIVE);
        m = by_rule(hosts ? MERGE_HOSTS : MERGE_FIXED, known, b);
        assert_int_equal(m->num_nodes, 4 + hosts);
        assert_int_equal(m->num_links, 3 + hosts);
        assert_true(peer(m, LEAF, 5) == (hosts ? 0x50 : 0));
        assert_true(peer(m, LEAF, 6) == 0 && peer(m, LEAF, 4) == 0);
        assert_true(peer(m, LEAF, 2) == OTHER);
        assert_int_equal(at(m, OTHER, 1)->a.lid, 8);
        assert_int_equal(at(m, HOST, 1)->a.lid, 7);
        assert_false(port_valid(fabric_by_lid(m, 2)));
        fabric_unref(m);
    }
    fabric_unref(known);
}

// A host on a spine would make a leaf of it; another adapter in a place is for somebody to accept; a LID that
// went to one who is not taken in is gone all the same.
static void test_not_hosts(void **state)
{
    const struct fabric *f = base(), *known = fabric_merge(f, NULL), *m;
    struct builder *b = builder_from(known);
    (void)state;
    fabric_unref(f);
    node_id n = add_ca(b, 0x50, "new"), r = add_ca(b, 0x55, "host");
    add_link(b, find(b, SPINE), 1, n, 1);
    builder_remove(b, find(b, HOST));
    add_link(b, find(b, LEAF), 1, r, 1);
    set_lid(b, r, 1, 2, 0, PORT_ACTIVE);
    m = by_rule(MERGE_HOSTS, known, b);
    assert_int_equal(m->num_nodes, 4);
    assert_true(peer(m, LEAF, 1) == HOST);
    assert_int_equal(at(m, HOST, 1)->a.lid, 0);
    fabric_unref(m);
    b = builder_from(known);
    builder_remove(b, find(b, SPINE));
    add_link(b, find(b, LEAF), 3, add_switch(b, SPINE, 16, "bigger"), 3);
    m = by_rule(MERGE_HOSTS, known, b);
    assert_ptr_equal(m, known);
    fabric_unref(m);
    fabric_unref(known);
}

// What is there, and hosts that are away in their places.
static void test_live(void **state)
{
    const struct fabric *known = base();
    (void)state;
    struct builder *b = builder_from(known);
    builder_remove(b, find(b, HOST));
    builder_remove(b, find(b, OTHER));
    builder_unlink(b, find(b, LEAF), 3);
    node_id n = add_ca(b, 0x50, "new"), t = find(b, SPINE);
    add_link(b, find(b, LEAF), 2, n, 1); // in the place of OTHER
    add_link(b, find(b, LEAF), 4, t, 4);
    set_lid(b, n, 1, 2, 0, PORT_ACTIVE);
    const struct fabric *m = by_rule(MERGE_LIVE, known, b);
    assert_int_equal(m->num_nodes, 4);
    assert_true(peer(m, LEAF, 1) == HOST && peer(m, LEAF, 2) == 0x50);
    assert_true(peer(m, LEAF, 3) == 0 && peer(m, LEAF, 4) == SPINE);
    assert_int_equal(at(m, HOST, 1)->a.lid, 0);
    assert_int_equal(at(m, 0x50, 1)->a.lid, 2);
    fabric_unref(m);
    b = builder_from(known);
    builder_remove(b, find(b, LEAF)); // with all that hangs on it
    builder_remove(b, find(b, HOST));
    m = by_rule(MERGE_LIVE, known, b);
    assert_int_equal(m->num_nodes, 2);
    assert_int_equal(m->num_links, 0);
    assert_null(fabric_by_guid(m, HOST));
    fabric_unref(m);
    fabric_unref(known);
}

// A switch whose cable is up and behind which nobody answers stays, with what hangs on it; not so the cable
// of it that is down, nor one whose cables are all down.
static void test_live_silent(void **state)
{
    (void)state;
    struct builder *b = base_builder();
    node_id second = add_switch(b, 0x60, 8, "second"), dead = add_switch(b, 0x70, 8, "dead");
    node_id far = add_ca(b, 0x50, "far");
    add_link(b, find(b, SPINE), 4, find(b, LEAF), 4);
    add_link(b, find(b, SPINE), 5, second, 5);
    add_link(b, find(b, SPINE), 6, dead, 6);
    add_link(b, find(b, LEAF), 6, dead, 7);
    add_link(b, second, 1, far, 1);
    add_link(b, second, 6, dead, 8);
    set_lid(b, far, 1, 9, 0, PORT_ACTIVE);
    set_lid(b, second, 0, 8, 0, PORT_ACTIVE);
    const struct fabric *known = builder_seal(b, 1, NULL);
    for (int up = 1; up >= 0; up--) {
        b = builder_from(known);
        builder_remove(b, find(b, LEAF));
        builder_remove(b, find(b, HOST));
        builder_remove(b, find(b, OTHER));
        builder_remove(b, find(b, 0x70));
        if (up)
            builder_exclude(b, find(b, SPINE), 3, PORT_EXCLUDED_PEER_SILENT);
        const struct fabric *m = by_rule(MERGE_LIVE, known, b);
        assert_int_equal(m->num_nodes, up ? 6 : 3);
        assert_null(fabric_by_guid(m, 0x70));
        assert_true(peer(m, SPINE, 3) == (up ? LEAF : 0));
        assert_true(peer(m, SPINE, 4) == 0 && peer(m, SPINE, 6) == 0);
        for (uint16_t lid = 1; lid <= 3; lid++) // leaf, host, other
            assert_true(port_valid(fabric_by_lid(m, lid)) == up);
        assert_true(!up || (peer(m, LEAF, 1) == HOST && peer(m, LEAF, 2) == OTHER));
        fabric_unref(m);
    }
    b = builder_from(known); // what hangs on silent ones alone is out of sight; what does not is gone
    for (uint64_t guid = 0x50; guid <= 0x70; guid += 0x10)
        builder_remove(b, find(b, guid));
    builder_remove(b, find(b, SPINE));
    builder_exclude(b, find(b, LEAF), 3, PORT_EXCLUDED_PEER_SILENT);
    const struct fabric *m = by_rule(MERGE_LIVE, known, b);
    assert_true(peer(m, SPINE, 5) == 0x60 && peer(m, 0x60, 1) == 0x50);
    assert_null(fabric_by_guid(m, 0x70));
    assert_true(peer(m, LEAF, 3) == SPINE && peer(m, LEAF, 4) == 0);
    assert_int_equal(at(m, 0x50, 1)->a.lid, 9);
    fabric_unref(m);
    fabric_unref(known);
}

// --- random ---

static uint64_t next_random(uint64_t *x)
{
    *x += 0x9e3779b97f4a7c15u;
    return hash_mix64(*x);
}

static void random_step(struct builder *b, const struct fabric *f, uint64_t *x, uint64_t *fresh)
{
    const struct node *n = &f->node[next_random(x) % f->num_nodes];
    unsigned num = 1 + (unsigned)(next_random(x) % n->num_ports);
    node_id id, z;
    if (builder_find(b, n->guid, &id) != 0)
        return;
    switch (next_random(x) % 6) {
    case 0:
        builder_unlink(b, id, num);
        break;
    case 1:
        if (f->num_nodes > 8)
            builder_remove(b, id);
        break;
    case 2:
        if (n->type == NODE_SWITCH)
            builder_desc(b, id, "another", 7);
        else
            builder_desc(b, id, "", 0);
        break;
    case 3: // new, or back under a GUID that was there before
        z = add_ca(b, *fresh += 16, "fresh");
        builder_unlink(b, id, num);
        builder_link(b, id, num, z, 1);
        break;
    case 4: {
        const struct node *other = &f->node[next_random(x) % f->num_nodes];
        unsigned onum = 1 + (unsigned)(next_random(x) % other->num_ports);
        if (other == n || builder_find(b, other->guid, &z) != 0)
            break;
        builder_unlink(b, id, num);
        builder_unlink(b, z, onum);
        builder_link(b, id, num, z, onum);
        break;
    }
    default: {
        struct port_attrs a = {.lid = (uint16_t)(1 + next_random(x) % 200), .lmc = next_random(x) % 8 == 0};
        builder_port(b, id, n->type == NODE_SWITCH ? 0 : num, &a);
        break;
    }
    }
}

static bool has_owner(const struct fabric *m, const struct port_attrs *a)
{
    for (uint32_t lid = a->lid; lid < a->lid + (1u << a->lmc); lid++)
        if (port_valid(fabric_by_lid(m, (uint16_t)lid)))
            return true;
    return false;
}

static void assert_consistent(const struct fabric *m, const struct fabric *seen)
{
    for (uint32_t i = 0; i < seen->num_ports; i++) {
        const struct port *p = &seen->port[i];
        const struct node *n = fabric_node(seen, p->node);
        if (port_valid(p->peer)) {
            assert_true(peer(m, n->guid, p->num) == fabric_peer_node(seen, p)->guid);
            assert_int_equal(fabric_port(m, at(m, n->guid, p->num)->peer)->num,
                             fabric_port(seen, p->peer)->num);
        }
        const struct port *q = at(m, n->guid, p->num);
        if (!port_is_end(seen, p) || p->a.lid == 0)
            continue;
        if (p->num > 0 && !port_valid(q->peer) && q->a.lid == 0)
            assert_true(has_owner(m, &p->a));
        else
            assert_int_equal(q->a.lid, p->a.lid);
    }
    for (uint32_t i = 0; i < m->num_ports; i++) {
        const struct port *p = &m->port[i];
        if (port_valid(p->peer))
            assert_int_equal(m->port[p->peer.i].peer.i, i);
        for (uint32_t k = 0; p->num > 0 && port_is_end(m, p) && p->a.lid != 0 && !port_valid(p->peer); k++) {
            assert_int_equal(m->lid_port[p->a.lid + k], i); // its own, or none
            if (k + 1 == 1u << p->a.lmc)
                break;
        }
    }
}

// Whether all links of f are in `in`.
static uint32_t links_in(const struct fabric *f, const struct fabric *in)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *k = fabric_by_guid(in, fabric_node(f, p->node)->guid);
        if (!port_valid(p->peer) || p->peer.i < i || k == NULL || p->num > k->num_ports)
            continue;
        const struct port *q = fabric_port(in, fabric_port_at(in, k, p->num));
        n += port_valid(q->peer) && fabric_peer_node(in, q)->guid == fabric_peer_node(f, p)->guid &&
             fabric_port(in, q->peer)->num == fabric_port(f, p->peer)->num;
    }
    return n;
}

static void assert_rules(const struct fabric *known, const struct fabric *now)
{
    for (enum merge_rule rule = MERGE_FIXED; rule <= MERGE_LIVE; rule++) {
        const struct fabric *m = by_rule(rule, known, builder_from(now));
        if (rule == MERGE_LIVE) {
            assert_int_equal(links_in(now, m), now->num_links);
        } else {
            assert_int_equal(links_in(known, m), known->num_links);
            assert_true(rule == MERGE_HOSTS || m->num_links == known->num_links);
            assert_true(rule == MERGE_HOSTS || m->num_nodes == known->num_nodes);
            assert_int_equal(m->num_switches, known->num_switches);
        }
        fabric_unref(m);
    }
}

static void test_random(void **state)
{
    uint64_t x = 7, fresh = 0x900000;
    struct err e = {0};
    (void)state;
    const struct fabric *first = topogen_make("rail-16", &e);
    assert_non_null(first);
    for (int run = 0; run < 40; run++) {
        const struct fabric *seen = fabric_ref(first), *known = fabric_merge(NULL, seen);
        for (int step = 0; step < 25; step++) {
            struct builder *b = builder_from(next_random(&x) % 4 ? seen : known);
            for (uint64_t n = 1 + next_random(&x) % 6; n > 0; n--)
                random_step(b, seen, &x, &fresh);
            const struct fabric *now = builder_seal(b, (uint64_t)step, NULL);
            const struct fabric *m = fabric_merge(known, now), *again = fabric_merge(m, now);
            assert_ptr_equal(again, m);
            fabric_unref(again);
            assert_sorted(m);
            assert_consistent(m, now);
            const struct fabric *self = fabric_merge(m, m);
            assert_ptr_equal(self, m);
            fabric_unref(self);
            assert_rules(known, now);
            fabric_unref(known);
            fabric_unref(seen);
            known = m;
            seen = now;
        }
        fabric_unref(known);
        fabric_unref(seen);
    }
    fabric_unref(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_alone),      cmocka_unit_test(test_lone_node),
        cmocka_unit_test(test_nothing_new),    cmocka_unit_test(test_grows),
        cmocka_unit_test(test_missing_stays),  cmocka_unit_test(test_cable_moves),
        cmocka_unit_test(test_cables_swapped), cmocka_unit_test(test_adapter_replaced),
        cmocka_unit_test(test_last_cable),     cmocka_unit_test(test_another_kind),
        cmocka_unit_test(test_lids),           cmocka_unit_test(test_names),
        cmocka_unit_test(test_sm_port),        cmocka_unit_test(test_lid_of_two),
        cmocka_unit_test(test_fixed),          cmocka_unit_test(test_not_hosts),
        cmocka_unit_test(test_live),           cmocka_unit_test(test_live_silent),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
