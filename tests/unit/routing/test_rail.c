// SPDX-License-Identifier: Apache-2.0
// The engine rail by its properties: nothing meets where nothing must, on complete trees; on all others
// everything arrives that cables allow, without a credit loop; no host path turns down and up where the tree
// has a way; tables depend on GUIDs, names, ports and LIDs only. (What an order must have, the fast way
// against the general one, and repair are in test_any.c, which is built for rail too.)
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "routing/quality.h"
#include "tests/unit/routing/rig.h"

static void expect_one(const char *fabric, const char *name, const struct quality_flows *q)
{
    if (q->absent)
        return;
    if (q->failed > 0 || q->max_load > 1)
        fail_msg("%s, %s: %llu failed, load %u, mean %f", fabric, name, (unsigned long long)q->failed,
                 q->max_load, q->mean);
}

// Complete trees: each pattern of a shift finds every cable alone, and all-to-all is even.
static void nothing_meets(void **state)
{
    static const char *const names[] = {"rail-256", "rail-1024", "superpod-4", "superpod-8",
                                        "ft3-16-8", "ft3-32-4",  "ft3-16-16"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct fabric *f = rig_named(names[i]);
        struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
        assert_string_equal(t->engine, "rail");
        struct quality_opts o = {.all_shifts = true, .par = &rig_par};
        struct route_quality q;
        rig_prove(f, t);
        route_quality(f, t, &o, &q);
        expect_one(names[i], "same-rail shift", &q.same_rail_shift);
        expect_one(names[i], "slot shift", &q.slot_shift);
        expect_one(names[i], "ring", &q.ring);
        if (strncmp(names[i], "superpod", 8) != 0) // its last leaves lack a slot
            expect_one(names[i], "shift", &q.shift);
        if (q.alltoall.failed > 0 || q.alltoall.max_over_mean > 1.05)
            fail_msg("%s: all-to-all %f of the mean", names[i], q.alltoall.max_over_mean);
        tables_unref(t);
        fabric_unref(f);
    }
}

// --- paths ---

// Whether a host's path from a leaf goes down and later up; -1 when it does not arrive.
static int turns(const struct fabric *f, const struct fabric_tables *t, const struct node *from,
                 const struct port *host)
{
    const struct node *n = from;
    int turn = 0;
    bool down = false;
    for (int i = 0; i < 64; i++) {
        const struct port *out = &f->port[n->first_port + tables_port(t, n->sw, host->a.lid)];
        if (out->num > n->num_ports || !port_valid(out->peer))
            return -1;
        if (out->peer.i == host - f->port)
            return turn;
        const struct node *next = fabric_peer_node(f, out);
        if (next->type != NODE_SWITCH)
            return -1;
        turn |= down && next->tier > n->tier;
        down |= next->tier < n->tier;
        n = next;
    }
    return -1;
}

// Switches from which one gets to `to` by going up in tiers and then down: bit 1 up to there, bit 0 down.
static void plain_ways(const struct fabric *f, uint32_t to, bool *ret)
{
    uint32_t *queue = calloc(2 * f->num_switches + 1, sizeof(*queue)), head = 0, tail = 0;
    bool *seen = calloc(2 * f->num_switches + 1, sizeof(*seen)); // [2 * switch + went up already]
    queue[tail++] = 2 * to;
    seen[2 * to] = true;
    while (head < tail) { // backwards: first what comes down to it, then what goes up to that
        uint32_t x = queue[head++];
        const struct node *n = fabric_switch(f, x / 2);
        for (unsigned p = 1; p <= n->num_ports; p++) {
            const struct node *w = fabric_peer_node(f, &f->port[n->first_port + p]);
            if (!w || w->type != NODE_SWITCH || w->tier == n->tier || (w->tier > n->tier && x % 2))
                continue;
            uint32_t y = 2 * w->sw + (w->tier < n->tier);
            if (!seen[y]) {
                seen[y] = true;
                queue[tail++] = y;
            }
        }
    }
    for (uint32_t s = 0; s < f->num_switches; s++)
        ret[s] = seen[2 * s] || seen[2 * s + 1];
    free(queue);
    free(seen);
}

// Pairs of a leaf and a host between which the tree has a way, and those of them that do not take one.
static uint64_t count_turns(const struct fabric *f, const struct fabric_tables *t, uint64_t *ret_pairs)
{
    uint64_t bad = 0;
    bool *plain = calloc(f->num_switches + 1, sizeof(*plain));
    *ret_pairs = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *leaf = fabric_switch(f, s);
        if (leaf->tier != 0)
            continue;
        plain_ways(f, s, plain);
        for (unsigned k = 1; k <= leaf->num_ports; k++) {
            const struct port *out = &f->port[leaf->first_port + k];
            const struct node *host = fabric_peer_node(f, out);
            if (!host || host->role != ROLE_HOST)
                continue;
            for (uint32_t x = 0; x < f->num_switches; x++) {
                if (fabric_switch(f, x)->tier != 0 || !plain[x])
                    continue;
                ++*ret_pairs;
                bad += turns(f, t, fabric_switch(f, x), &f->port[out->peer.i]) != 0;
            }
        }
    }
    free(plain);
    return bad;
}

static void no_turn_on_complete_trees(void **state)
{
    static const char *const names[] = {"rail-64", "rail-1024", "superpod-2", "ft3-8-8", "ft3-16-4"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct fabric *f = rig_named(names[i]);
        struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
        uint64_t pairs;
        assert_int_equal(count_turns(f, t, &pairs), 0);
        assert_true(pairs > 0);
        tables_unref(t);
        fabric_unref(f);
    }
}

static void degraded(void **state)
{
    static const char *const names[] = {"rail-256", "ft3-8-4", "ft3-16-8", "superpod-2"};
    struct rng r;
    rng_init(&r, 31);
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_degrade(rig_named(names[i % 4]), 1 + rng_below(&r, 30), &r);
        struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
        uint64_t pairs, bad;
        rig_prove(f, t);
        bad = count_turns(f, t, &pairs);
        // Only where the one edge that is turned round for the top would be needed twice.
        if (bad * 1000 > pairs)
            fail_msg("%s, round %u: %llu of %llu host paths turn down and up", names[i % 4], i,
                     (unsigned long long)bad, (unsigned long long)pairs);
        tables_unref(t);
        fabric_unref(f);
    }
}

static void spines_and_leaves_dead(void **state)
{
    static const char *const names[] = {"rail-256", "ft3-8-4", "ft3-16-8"};
    struct rng r;
    rng_init(&r, 32);
    for (unsigned i = 0; i < 45; i++) {
        const struct fabric *f = rig_named(names[i % 3]);
        struct rig_fault fault[6];
        unsigned n = 1 + rng_below(&r, 6);
        for (unsigned k = 0; k < n; k++) {
            const struct node *sw = fabric_switch(f, rng_below(&r, f->num_switches));
            fault[k] = (struct rig_fault){.kind = RIG_NODE, .guid = sw->guid};
        }
        const struct fabric *live = rig_live(f, fault, n);
        struct fabric_tables *t = rig_route(live, ROUTE_RAIL);
        rig_prove(live, t);
        tables_unref(t);
        fabric_unref(live);
        fabric_unref(f);
    }
}

// Some cables end at another port than they should.
static void miscabled(void **state)
{
    static const char *const names[] = {"rail-256", "ft3-8-4", "ft3-16-8"};
    struct rng r;
    rng_init(&r, 33);
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_named(names[i % 3]);
        struct builder *b = builder_from(f);
        for (unsigned k = 0; k < 1 + rng_below(&r, 8); k++) {
            struct rig_fault x[2];
            port_id end[4];
            for (unsigned e = 0; e < 2; e++) {
                do {
                    rig_fault_make(f, &r, &x[e]);
                } while (x[e].kind != RIG_CABLE);
                end[2 * e] = fabric_port_at(f, fabric_by_guid(f, x[e].guid), x[e].num);
                end[2 * e + 1] = fabric_port(f, end[2 * e])->peer;
            }
            if (end[0].i == end[2].i || end[0].i == end[3].i)
                continue;
            for (unsigned e = 0; e < 4; e++)
                builder_unlink(b, fabric_port(f, end[e])->node, fabric_port(f, end[e])->num);
            for (unsigned e = 0; e < 2; e++) { // crossed
                const struct port *p = fabric_port(f, end[e]), *q = fabric_port(f, end[3 - e]);
                if (p->node.i != q->node.i)
                    builder_link(b, p->node, p->num, q->node, q->num);
            }
        }
        const struct fabric *g = builder_seal(b, 2, NULL);
        struct fabric_tables *t = rig_route(g, ROUTE_RAIL);
        rig_prove(g, t);
        tables_unref(t);
        fabric_unref(g);
        fabric_unref(f);
    }
}

static void same_tables(const struct fabric *f, const struct fabric *g)
{
    struct route_opts o = {.engine = ROUTE_RAIL};
    struct route_result a, b;
    assert_int_equal(route_compute(f, &o, &a, NULL), 0);
    o.par = &rig_par;
    assert_int_equal(route_compute(g, &o, &b, NULL), 0);
    struct fabric_tables *c = tables_copy_for(b.tables, g, f, g->top_lid);
    assert_int_equal(tables_compare(a.tables, c).entries, 0);
    assert_int_equal(a.top_guid, b.top_guid);
    tables_unref(a.tables);
    tables_unref(b.tables);
    tables_unref(c);
}

static void numbering_of_nodes_does_not_matter(void **state)
{
    static const char *const names[] = {"rail-256", "ft3-8-8", "superpod-2", "ft3-16-4"};
    struct rng r;
    rng_init(&r, 34);
    for (unsigned i = 0; i < 24; i++) {
        const struct fabric *f = rig_degrade(rig_named(names[i % 4]), i < 4 ? 0 : rng_below(&r, 30), &r);
        const struct fabric *g = rig_renumber(f, &r);
        same_tables(f, g);
        fabric_unref(f);
        fabric_unref(g);
    }
}

// --- odd fabrics ---

static void prove(const struct fabric *f)
{
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    rig_prove(f, t);
    tables_unref(t);
    fabric_unref(f);
}

static void no_hosts(void **state)
{
    struct rig r;
    rig_start(&r);
    prove(rig_done(&r)); // nothing at all
    rig_start(&r);
    prove((rig_switch(&r, 4, "lonely"), rig_done(&r)));
    rig_start(&r);
    node_id sw[6];
    for (unsigned i = 0; i < 6; i++)
        sw[i] = rig_switch(&r, 8, i < 4 ? "leaf" : "spine");
    for (unsigned i = 0; i < 4; i++) {
        rig_cable(&r, sw[i], sw[4]);
        rig_cable(&r, sw[i], sw[5]);
    }
    prove(rig_done(&r));
}

static void hosts_on_spines(void **state)
{
    struct rng rng;
    rng_init(&rng, 35);
    for (unsigned round = 0; round < 20; round++) {
        struct rig r;
        node_id leaf[8], spine[4], core[2];
        rig_start(&r);
        for (unsigned i = 0; i < 2; i++)
            core[i] = rig_switch(&r, 40, "core");
        for (unsigned i = 0; i < 4; i++)
            spine[i] = rig_switch(&r, 40, "spine");
        for (unsigned i = 0; i < 8; i++)
            leaf[i] = rig_switch(&r, 40, "leaf");
        for (unsigned i = 0; i < 8; i++) {
            for (unsigned k = 0; k < 2; k++)
                rig_cable(&r, leaf[i], spine[i / 4 * 2 + k]);
            for (unsigned k = 0; k < 4; k++)
                rig_host(&r, leaf[i]);
            if (rng_below(&rng, 2))
                rig_an(&r, leaf[i]);
        }
        for (unsigned i = 0; i < 4; i++) {
            for (unsigned k = 0; k < 1 + rng_below(&rng, 4); k++)
                rig_cable(&r, spine[i], core[rng_below(&rng, 2)]);
            rig_cable(&r, spine[i], core[i % 2]);
            rig_cable(&r, spine[i], core[1 - i % 2]);
            for (unsigned k = 0; k < rng_below(&rng, 3); k++)
                rig_host(&r, spine[i]);
            rig_an(&r, spine[i]);
        }
        for (unsigned i = 0; i < 2; i++) {
            rig_an(&r, core[i]);
            if (rng_below(&rng, 2))
                rig_host(&r, core[i]);
        }
        prove(rig_done(&r));
    }
}

// Five spines, 45 cables to each: 10,125 ways from leaf to leaf.
static void ten_thousand_paths(void **state)
{
    struct rig r;
    node_id spine[5], leaf[3];
    rig_start(&r);
    for (unsigned i = 0; i < 5; i++)
        spine[i] = rig_switch(&r, 254, "spine");
    for (unsigned i = 0; i < 3; i++) {
        leaf[i] = rig_switch(&r, 254, "leaf");
        for (unsigned k = 0; k < 5; k++) {
            for (unsigned c = 0; c < 45; c++)
                rig_cable(&r, leaf[i], spine[k]);
        }
        for (unsigned k = 0; k < 20; k++)
            rig_host(&r, leaf[i]);
    }
    prove(rig_done(&r));
}

// All 254 ports in use, with cables to one neighbour.
static void widest_switches(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, SWITCH_MAX_PORTS, "a"), z = rig_switch(&r, SWITCH_MAX_PORTS, "z");
    for (unsigned i = 0; i < 250; i++)
        rig_cable(&r, a, z);
    for (unsigned i = 0; i < 4; i++) {
        rig_host(&r, a);
        rig_host(&r, z);
    }
    prove(rig_done(&r));
}

static void parts(void **state)
{
    struct rig r;
    rig_start(&r);
    for (unsigned part = 0; part < 3; part++) {
        node_id spine[2] = {rig_switch(&r, 30, "spine"), rig_switch(&r, 30, "spine")};
        for (unsigned i = 0; i < 3 + part; i++) {
            node_id leaf = rig_switch(&r, 30, "leaf");
            rig_cable(&r, leaf, spine[0]);
            rig_cable(&r, leaf, spine[1]);
            for (unsigned k = 0; k < 2 + part; k++)
                rig_host(&r, leaf);
        }
    }
    node_id alone = rig_switch(&r, 30, "alone");
    rig_host(&r, alone);
    rig_host(&r, alone);
    prove(rig_done(&r));
}

static void many_lids_a_port(void **state)
{
    struct err e = {0};
    const struct fabric *f = rig_named("rail-256");
    f = rig_lids(f, 3);
    struct fabric_tables *t = rig_route(f, ROUTE_RAIL);
    rig_prove(f, t);
    // LIDs of a port take different ways from a leaf that it is not on.
    const struct node *leaf = fabric_switch(f, 0);
    uint32_t differ = 0, ports = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *at = fabric_peer_node(f, p);
        if (fabric_node(f, p->node)->role != ROLE_HOST || at == leaf)
            continue;
        ports++;
        differ += tables_port(t, leaf->sw, p->a.lid) != tables_port(t, leaf->sw, p->a.lid + 1);
    }
    assert_true(ports > 0 && e.code == 0);
    assert_int_equal(differ, ports);
    tables_unref(t);
    fabric_unref(f);
}

static void without_tiers(void **state)
{
    struct rng r;
    rng_init(&r, 36);
    for (unsigned i = 0; i < 60; i++) { // meshes too: parts without tiers are routed as under updn
        const struct fabric *f = rig_random(&r, 1 + rng_below(&r, 40), rng_below(&r, 60));
        prove(f);
    }
}

static void real_ones(void **state)
{
    static const char *const files[] = {
        "hdr-superpod-compute-4341ca.txt", "hdr-director-cs8500-2328ca-puttylog-crlf.txt",
        "ndr-dgx-rail-582ca.txt", "ndr-rail8-256ca-ibdiagnet-port-labels.txt", "qdr-fdr10-sx6036-144ca.txt"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct fabric *f = rig_sample(files[i]);
        if (!f)
            skip();
        prove(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_meets),
        cmocka_unit_test(no_turn_on_complete_trees),
        cmocka_unit_test(degraded),
        cmocka_unit_test(spines_and_leaves_dead),
        cmocka_unit_test(miscabled),
        cmocka_unit_test(numbering_of_nodes_does_not_matter),
        cmocka_unit_test(no_hosts),
        cmocka_unit_test(hosts_on_spines),
        cmocka_unit_test(ten_thousand_paths),
        cmocka_unit_test(widest_switches),
        cmocka_unit_test(parts),
        cmocka_unit_test(many_lids_a_port),
        cmocka_unit_test(without_tiers),
        cmocka_unit_test(real_ones),
    };
    return cmocka_run_group_tests_name("routing/rail", tests, NULL, NULL);
}
