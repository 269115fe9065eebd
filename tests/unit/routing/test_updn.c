// SPDX-License-Identifier: Apache-2.0
// Engines by their properties: on every fabric every switch reaches every LID without a credit loop, and
// traffic between hosts keeps to the shortest ways up and down the tree.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "tests/unit/routing/rig.h"

static void check(const struct fabric *f)
{
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    assert_string_equal(t->engine, "updn");
    rig_prove(f, t);
    tables_unref(t);
    fabric_unref(f);
}

static const char *const names[] = {"rail-64",  "rail-256", "rail-1024", "ft3-4-2",
                                    "ft3-16-2", "ft3-16-8", "ft3-32-4",  "superpod-2"};
#define NUM_NAMES (sizeof(names) / sizeof(names[0]))

static void generated(void **state)
{
    for (size_t i = 0; i < NUM_NAMES; i++)
        check(rig_named(names[i]));
}

// Links of a path between two hosts' leaves; -1 when it does not arrive.
static int hops(const struct fabric *f, const struct fabric_tables *t, const struct node *from,
                const struct node *to)
{
    uint16_t lid = f->port[to->first_port].a.lid;
    const struct node *n = from;
    for (int i = 0; i < 64; i++) {
        if (n == to)
            return i;
        uint8_t out = tables_port(t, n->sw, lid);
        if (out == LFT_DROP || out == 0 || out > n->num_ports)
            return -1;
        n = fabric_peer_node(f, &f->port[n->first_port + out]);
        if (!n || n->type != NODE_SWITCH)
            return -1;
    }
    return -1;
}

// The same for a host LID: must run as far as the host's leaf.
static int host_hops(const struct fabric *f, const struct fabric_tables *t, const struct node *from,
                     const struct port *host)
{
    const struct node *n = from;
    for (int i = 0; i < 64; i++) {
        const struct port *out = &f->port[n->first_port + tables_port(t, n->sw, host->a.lid)];
        if (out->peer.i == host - f->port)
            return i;
        n = fabric_peer_node(f, out);
    }
    return -1;
}

// Shortest ways that go up in tiers and then down, from one switch to all: state 0 still going up, 1 down.
static void plain_distances(const struct fabric *f, uint32_t from, int *dist)
{
    uint32_t *queue = calloc(2 * f->num_switches, sizeof(*queue)), head = 0, tail = 0;
    for (uint32_t i = 0; i < 2 * f->num_switches; i++)
        dist[i] = -1;
    dist[2 * from] = 0;
    queue[tail++] = 2 * from;
    while (head < tail) {
        uint32_t x = queue[head++];
        const struct node *n = fabric_switch(f, x / 2);
        for (unsigned p = 1; p <= n->num_ports; p++) {
            const struct node *w = fabric_peer_node(f, &f->port[n->first_port + p]);
            if (!w || w->type != NODE_SWITCH || w->tier == n->tier || (w->tier > n->tier && x % 2))
                continue;
            uint32_t y = 2 * w->sw + (w->tier < n->tier);
            if (dist[y] < 0) {
                dist[y] = dist[x] + 1;
                queue[tail++] = y;
            }
        }
    }
    free(queue);
}

static int plain(const int *dist, uint32_t to)
{
    int up = dist[2 * to], down = dist[2 * to + 1];
    return up < 0 ? down : down < 0 ? up : up < down ? up : down;
}

// Hosts' paths against the plain tree. Returns the number of pairs that have a plain path.
static unsigned compare_with_plain(const struct fabric *f, const struct fabric_tables *t,
                                   unsigned *ret_longer)
{
    unsigned pairs = 0;
    int *dist = calloc(2 * f->num_switches, sizeof(*dist));
    *ret_longer = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        if (fabric_switch(f, s)->tier != 0)
            continue;
        plain_distances(f, s, dist);
        for (uint32_t i = 0; i < f->num_ports; i++) {
            const struct port *h = &f->port[i];
            const struct node *leaf = fabric_peer_node(f, h), *n = fabric_node(f, h->node);
            if (n->role != ROLE_HOST || !leaf || leaf->type != NODE_SWITCH || plain(dist, leaf->sw) < 0)
                continue;
            pairs++;
            *ret_longer += host_hops(f, t, fabric_switch(f, s), h) != plain(dist, leaf->sw);
        }
    }
    free(dist);
    return pairs;
}

static void hosts_keep_to_the_tree(void **state)
{
    for (size_t i = 0; i < NUM_NAMES; i++) {
        const struct fabric *f = rig_named(names[i]);
        struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
        unsigned longer;
        assert_true(compare_with_plain(f, t, &longer) > 0);
        assert_int_equal(longer, 0);
        tables_unref(t);
        fabric_unref(f);
    }
}

static void degraded(void **state)
{
    struct rng r;
    rng_init(&r, 7);
    static const char *const some[] = {"rail-256", "ft3-8-4", "ft3-16-4", "ft3-16-8"};
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_degrade(rig_named(some[i % 4]), 1 + rng_below(&r, 40), &r);
        struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
        unsigned longer, pairs = compare_with_plain(f, t, &longer);
        rig_prove(f, t);
        // A path may be longer than a plain one only where two parts that were joined by a turned edge would
        // need it twice; it must stay rare.
        if (longer * 1000 > pairs)
            fail_msg("%s, round %u: %u of %u host paths longer than in the tree", some[i % 4], i, longer,
                     pairs);
        tables_unref(t);
        fabric_unref(f);
    }
}

static void irregular(void **state)
{
    struct rng r;
    rng_init(&r, 11);
    for (unsigned i = 0; i < 150; i++)
        check(rig_random(&r, 1 + rng_below(&r, 40), rng_below(&r, 60)));
}

static void long_line(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id last = rig_switch(&r, 4, "sw0");
    rig_host(&r, last);
    for (unsigned i = 1; i < 180; i++) {
        node_id s = rig_switch(&r, 4, "sw");
        rig_cable(&r, last, s);
        last = s;
    }
    rig_host(&r, last);
    check(rig_done(&r));
}

// Two spines, three leaves, an aggregation node on every switch: those of the spines must meet at a leaf.
static void aggregation_nodes_everywhere(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id spine[3], leaf[4];
    for (unsigned i = 0; i < 3; i++) {
        spine[i] = rig_switch(&r, 20, "spine");
        rig_an(&r, spine[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        leaf[i] = rig_switch(&r, 20, "leaf");
        rig_an(&r, leaf[i]);
        for (unsigned h = 0; h < 6 - i; h++)
            rig_host(&r, leaf[i]);
        for (unsigned k = 0; k < 3; k++)
            rig_cable(&r, leaf[i], spine[k]);
    }
    const struct fabric *f = rig_done(&r);
    struct route_opts o = {.engine = ROUTE_UPDN};
    struct route_result res;
    assert_int_equal(route_compute(f, &o, &res, NULL), 0);
    rig_prove(f, res.tables);
    // The turn is at the leaf with the fewest hosts, the last.
    assert_int_equal(res.top_guid, f->node[leaf[3].i].guid);
    assert_int_equal(hops(f, res.tables, &f->node[spine[0].i], &f->node[spine[2].i]), 2);
    unsigned longer;
    compare_with_plain(f, res.tables, &longer);
    assert_int_equal(longer, 0);
    tables_unref(res.tables);
    fabric_unref(f);
}

static void disconnected(void **state)
{
    struct rig r;
    rig_start(&r);
    for (unsigned part = 0; part < 3; part++) {
        node_id a = rig_switch(&r, 8, "a"), b = rig_switch(&r, 8, "b"), c = rig_switch(&r, 8, "c");
        rig_cable(&r, a, b);
        rig_cable(&r, b, c);
        rig_cable(&r, c, a);
        rig_host(&r, a);
        rig_host(&r, c);
    }
    const struct fabric *f = rig_done(&r);
    struct route_opts o = {.engine = ROUTE_AUTO};
    struct route_result res;
    assert_int_equal(route_compute(f, &o, &res, NULL), 0);
    assert_non_null(strstr(res.why, "3 parts"));
    struct verify_opts vo = {.all_switches = true};
    struct route_proof p;
    assert_true(route_verify(f, res.tables, &vo, &p));
    assert_int_equal(p.unreached, 0);
    assert_int_equal(p.pairs, 9 * 15);
    assert_int_equal(p.disconnected, 9 * 10);
    tables_unref(res.tables);
    fabric_unref(f);
}

static void no_switch(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_ca(&r, 1, "one mlx5_0"), b = rig_ca(&r, 1, "two mlx5_0");
    rig_cable(&r, a, b);
    check(rig_done(&r));
}

static void one_switch(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id s = rig_switch(&r, 8, "sw");
    rig_host(&r, s);
    rig_host(&r, s);
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = rig_route(f, ROUTE_AUTO);
    // Golden: LID 1 the switch, 2 and 3 its hosts.
    const uint8_t want[6] = {LFT_DROP, 0, 1, 2, LFT_DROP, LFT_DROP};
    assert_memory_equal(tables_row(t, 0), want, sizeof(want));
    rig_prove(f, t);
    tables_unref(t);
    fabric_unref(f);
}

static void self_link(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, 8, "a"), b = rig_switch(&r, 8, "b");
    rig_cable(&r, a, b);
    builder_link(r.b, a, 5, a, 6);
    rig_host(&r, a);
    rig_host(&r, b);
    check(rig_done(&r));
}

// Golden: two leaves, two spines, two cables each way; hosts on ports 1-4 of the leaves, cables from 5.
static void parallel_cables(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id leaf[2], spine[2];
    for (unsigned i = 0; i < 2; i++)
        spine[i] = rig_switch(&r, 8, "spine");
    for (unsigned i = 0; i < 2; i++) {
        leaf[i] = rig_switch(&r, 8, i ? "leaf2" : "leaf1");
        for (unsigned h = 0; h < 4; h++)
            rig_host(&r, leaf[i]);
        for (unsigned k = 0; k < 4; k++)
            rig_cable(&r, leaf[i], spine[k / 2]);
    }
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    rig_prove(f, t);
    // LIDs: spines 1 2, leaves 3 4, hosts of leaf1 5-8, of leaf2 9-12. Slots 0..3 take spine 0 1 0 1, then
    // the second cable of each.
    const uint8_t leaf1[13] = {LFT_DROP, 5, 7, 0, 0, 1, 2, 3, 4, 5, 7, 6, 8};
    const uint8_t *row = tables_row(t, f->node[leaf[0].i].sw);
    for (unsigned lid = 5; lid < 13; lid++)
        assert_int_equal(row[lid], leaf1[lid]);
    tables_unref(t);
    fabric_unref(f);
}

static void lmc(void **state)
{
    const struct fabric *f = rig_lids(rig_named("rail-64"), 2);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    rig_prove(f, t);
    // The four LIDs of a host leave a far leaf by different ports.
    unsigned different = 0;
    for (uint32_t lid = 1; lid < f->top_lid; lid++) {
        if (f->lid_port[lid] != ID_NONE && f->lid_port[lid] == f->lid_port[lid + 1])
            different += tables_port(t, 0, (uint16_t)lid) != tables_port(t, 0, (uint16_t)(lid + 1));
    }
    assert_true(different > 0);
    tables_unref(t);
    fabric_unref(f);
}

static void same_snapshot_same_tables(void **state)
{
    struct rng r;
    rng_init(&r, 5);
    const struct fabric *f = rig_degrade(rig_named("ft3-16-4"), 10, &r);
    struct fabric_tables *a = rig_route(f, ROUTE_UPDN), *b = rig_route(f, ROUTE_UPDN);
    assert_int_equal(tables_compare(a, b).entries, 0);
    tables_unref(a);
    tables_unref(b);
    fabric_unref(f);
}

// All-to-all traffic on a full tree: every cable between two tiers carries as much as any other.
static void full_tree_is_balanced(void **state)
{
    const struct fabric *f = rig_named("ft3-16-8");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    uint32_t *load = calloc(f->num_ports, sizeof(*load)), max[3] = {0}, min[3];
    memset(min, 0xff, sizeof(min));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *h = &f->port[i];
        if (fabric_node(f, h->node)->role != ROLE_HOST)
            continue;
        for (uint32_t s = 0; s < f->num_switches; s++) {
            const struct node *n = fabric_switch(f, s);
            if (n->tier != 0)
                continue;
            const struct port *out = &f->port[n->first_port + tables_port(t, n->sw, h->a.lid)];
            while (out->peer.i != i) {
                load[out - f->port]++;
                n = fabric_peer_node(f, out);
                out = &f->port[n->first_port + tables_port(t, n->sw, h->a.lid)];
            }
        }
    }
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = fabric_node(f, f->port[i].node), *w = fabric_peer_node(f, &f->port[i]);
        if (n->type != NODE_SWITCH || !w || w->type != NODE_SWITCH || w->tier < n->tier)
            continue;
        max[n->tier] = load[i] > max[n->tier] ? load[i] : max[n->tier];
        min[n->tier] = load[i] < min[n->tier] ? load[i] : min[n->tier];
    }
    assert_true(min[0] > 0);
    assert_true(max[0] - min[0] <= 1);
    assert_true(min[1] > 0);
    assert_int_equal(max[1], min[1]);
    free(load);
    tables_unref(t);
    fabric_unref(f);
}

// Hosts that are absent leave holes: the others keep their uplinks, and all slots of all leaves stay aligned.
static void holes_are_kept(void **state)
{
    const struct fabric *f = rig_named("rail-256");
    struct fabric_tables *before = rig_route(f, ROUTE_UPDN);
    struct builder *b = builder_from(f);
    const struct node *leaf = fabric_switch(f, 0);
    assert_int_equal(leaf->tier, 0);
    unsigned removed = 0;
    for (unsigned num = 1; num <= leaf->num_ports && removed < 3; num += 2) {
        const struct node *w = fabric_peer_node(f, &f->port[leaf->first_port + num]);
        if (w && w->type == NODE_CA) {
            builder_unlink(b, (node_id){(uint32_t)(leaf - f->node)}, num);
            removed++;
        }
    }
    assert_int_equal(removed, 3);
    const struct fabric *g = builder_seal(b, 9, NULL);
    struct fabric_tables *after = rig_route(g, ROUTE_UPDN);
    assert_int_equal(tables_compare(before, after).entries, removed * f->num_switches);
    tables_unref(before);
    tables_unref(after);
    fabric_unref(f);
    fabric_unref(g);
}

// Two pods that share a management leaf, which has the fewest hosts: ranked above both pods' spines it would
// cut the ways over the cores between them. Hosts' paths keep to the cores.
static void no_transit_through_leaves(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id core[2], spine[4], leaf[4], mgmt = rig_switch(&r, 20, "mgmt");
    for (unsigned i = 0; i < 2; i++)
        core[i] = rig_switch(&r, 20, "core");
    for (unsigned i = 0; i < 4; i++) {
        spine[i] = rig_switch(&r, 20, "spine");
        rig_cable(&r, spine[i], core[i % 2]);
        rig_cable(&r, spine[i], mgmt);
    }
    for (unsigned i = 0; i < 4; i++) {
        leaf[i] = rig_switch(&r, 20, "leaf");
        for (unsigned h = 0; h < 3; h++)
            rig_host(&r, leaf[i]);
        for (unsigned k = 0; k < 2; k++)
            rig_cable(&r, leaf[i], spine[i / 2 * 2 + k]);
    }
    rig_host(&r, mgmt);
    const struct fabric *f = rig_done(&r);
    uint64_t roots[2] = {f->node[core[0].i].guid, f->node[core[1].i].guid};
    struct route_opts o = {.engine = ROUTE_UPDN, .root_guids = roots, .num_roots = 2};
    struct route_result res;
    assert_int_equal(route_compute(f, &o, &res, NULL), 0);
    assert_int_not_equal(res.top_guid, f->node[mgmt.i].guid);
    struct fabric_tables *t = res.tables;
    rig_prove(f, t);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *h = &f->port[i];
        const struct node *own = fabric_peer_node(f, h);
        if (fabric_node(f, h->node)->role != ROLE_HOST || own == &f->node[mgmt.i])
            continue;
        for (unsigned k = 0; k < 4; k++) {
            const struct node *s = &f->node[spine[k].i];
            const struct port *out = &f->port[s->first_port + tables_port(t, s->sw, h->a.lid)];
            assert_ptr_not_equal(fabric_peer_node(f, out), &f->node[mgmt.i]);
        }
    }
    tables_unref(t);
    fabric_unref(f);
}

static void roots_given(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    uint64_t roots[64], none = 0x1234;
    struct route_opts o = {.engine = ROUTE_UPDN, .root_guids = roots};
    for (uint32_t s = 0; s < f->num_switches; s++) {
        if (fabric_switch(f, s)->tier == 1)
            roots[o.num_roots++] = fabric_switch(f, s)->guid;
    }
    struct route_result res;
    struct err e;
    assert_int_equal(route_compute(f, &o, &res, &e), 0);
    assert_non_null(strstr(res.why, "given roots"));
    rig_prove(f, res.tables);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    assert_int_equal(tables_compare(t, res.tables).entries, 0);
    tables_unref(t);
    tables_unref(res.tables);
    o.root_guids = &none;
    o.num_roots = 1;
    assert_int_equal(route_compute(f, &o, &res, &e), -ENOENT);
    assert_non_null(strstr(e.text, "0x0000000000001234"));
    fabric_unref(f);
}

static void minhop(void **state)
{
    struct rng r;
    rng_init(&r, 3);
    struct verify_opts vo = {.all_switches = true, .allow_credit_loops = true};
    struct route_proof p;
    unsigned loops = 0;
    for (unsigned i = 0; i < 40; i++) {
        const struct fabric *f = rig_random(&r, 2 + rng_below(&r, 30), 30);
        struct fabric_tables *t = rig_route(f, ROUTE_MINHOP);
        assert_true(route_verify(f, t, &vo, &p));
        loops += p.counter_example[0] != 0;
        tables_unref(t);
        fabric_unref(f);
    }
    assert_true(loops > 0);
}

static void expect_auto(const struct fabric *f, const struct route_opts *given, enum route_engine engine,
                        const char *word)
{
    struct route_opts o = given ? *given : (struct route_opts){0};
    struct route_result res, same;
    o.engine = ROUTE_AUTO;
    assert_int_equal(route_compute(f, &o, &res, NULL), 0);
    if (res.engine != engine)
        fail_msg("%u switches: engine %s: %s", f->num_switches, route_engine_name(res.engine), res.why);
    assert_string_equal(res.tables->engine, route_engine_name(engine));
    assert_non_null(strstr(res.why, "auto: "));
    assert_non_null(strstr(res.why, word));
    rig_prove(f, res.tables);
    o.engine = engine;
    assert_int_equal(route_compute(f, &o, &same, NULL), 0);
    assert_int_equal(tables_compare(res.tables, same.tables).entries, 0);
    assert_int_equal(res.top_guid, same.top_guid);
    tables_unref(res.tables);
    tables_unref(same.tables);
    fabric_unref(f);
}

static node_id mesh(struct rig *r, unsigned n)
{
    node_id first = {0}, last = {0};
    for (unsigned i = 0; i < n; i++) {
        node_id s = rig_switch(r, 8, "mesh");
        rig_host(r, s);
        if (i > 0)
            rig_cable(r, last, s);
        else
            first = s;
        last = s;
    }
    rig_cable(r, first, last);
    return first;
}

static void tree(struct rig *r, unsigned leaves)
{
    node_id spine[2] = {rig_switch(r, 40, "spine"), rig_switch(r, 40, "spine")};
    for (unsigned i = 0; i < leaves; i++) {
        node_id leaf = rig_switch(r, 40, "leaf");
        rig_host(r, leaf);
        rig_host(r, leaf);
        rig_cable(r, leaf, spine[0]);
        rig_cable(r, leaf, spine[1]);
    }
}

// rail wherever most switches are in a tree, whole or not; updn where there is none.
static void auto_chooses(void **state)
{
    struct rng rng;
    struct rig r;
    rng_init(&rng, 12);
    for (size_t i = 0; i < NUM_NAMES; i++)
        expect_auto(rig_named(names[i]), NULL, ROUTE_RAIL, "ranks from tiers");
    for (unsigned i = 0; i < 10; i++)
        expect_auto(rig_degrade(rig_named("ft3-16-4"), 1 + 3 * i, &rng), NULL, ROUTE_RAIL, "tree");
    rig_start(&r);
    node_id root = mesh(&r, 7);
    const struct fabric *f = rig_done(&r);
    const uint64_t guid = f->node[root.i].guid;
    expect_auto(fabric_ref(f), NULL, ROUTE_UPDN, "no tiers, so up*/down*");
    expect_auto(f, &(struct route_opts){.root_guids = &guid, .num_roots = 1}, ROUTE_RAIL, "given roots");
    rig_start(&r);
    tree(&r, 4);
    tree(&r, 3);
    expect_auto(rig_done(&r), NULL, ROUTE_RAIL, "2 parts");
    rig_start(&r);
    tree(&r, 4);
    mesh(&r, 9);
    expect_auto(rig_done(&r), NULL, ROUTE_UPDN, "no tiers");
}

static void names_of_engines(void **state)
{
    enum route_engine e;
    for (int i = ROUTE_AUTO; i <= ROUTE_SSSP; i++) {
        assert_int_equal(route_engine_parse(route_engine_name((enum route_engine)i), &e), 0);
        assert_int_equal(e, i);
    }
    assert_int_equal(route_engine_parse("ftree", &e), -EINVAL);
}

static void real_dumps(void **state)
{
    static const char *const files[] = {
        "hdr-superpod-compute-4341ca.txt",
        "hdr-director-cs8500-2328ca-puttylog-crlf.txt",
        "ndr-dgx-rail-582ca.txt",
        "ndr-rail8-256ca-ibdiagnet-port-labels.txt",
        "qdr-fdr10-sx6036-144ca.txt",
        "ddr-qdr-voltaire4036-89ca-generic-names.txt",
        "edr-synthetic-k4n3-fattree-128ca.txt",
        "hdr-director-faked-suffix-10ca.txt",
        "sdr-2ca.txt",
        "sdr-voltaire-manpage-4ca.txt",
    };
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct fabric *f = rig_sample(files[i]);
        if (!f)
            continue;
        seen++;
        struct fabric_tables *t = rig_route(f, ROUTE_AUTO);
        struct verify_opts o = {.all_switches = true};
        struct route_proof p;
        if (!route_verify(f, t, &o, &p))
            fail_msg("%s: %s", files[i], p.counter_example);
        assert_int_equal(p.unreached, 0);
        tables_unref(t);
        fabric_unref(f);
    }
    if (seen == 0) {
        print_message("the shared samples are absent: skipped\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated),
        cmocka_unit_test(auto_chooses),
        cmocka_unit_test(hosts_keep_to_the_tree),
        cmocka_unit_test(degraded),
        cmocka_unit_test(irregular),
        cmocka_unit_test(long_line),
        cmocka_unit_test(aggregation_nodes_everywhere),
        cmocka_unit_test(disconnected),
        cmocka_unit_test(no_switch),
        cmocka_unit_test(one_switch),
        cmocka_unit_test(self_link),
        cmocka_unit_test(parallel_cables),
        cmocka_unit_test(lmc),
        cmocka_unit_test(same_snapshot_same_tables),
        cmocka_unit_test(full_tree_is_balanced),
        cmocka_unit_test(holes_are_kept),
        cmocka_unit_test(no_transit_through_leaves),
        cmocka_unit_test(roots_given),
        cmocka_unit_test(minhop),
        cmocka_unit_test(names_of_engines),
        cmocka_unit_test(real_dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
