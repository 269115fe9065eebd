// SPDX-License-Identifier: Apache-2.0
// Engines with an order (ENGINE: updn, or rail in a build of its own) on any graph at all: one top in each connected part, every switch reaches every LID, no credit
// loop; whatever the ranks are taken from (tiers that fit or contradict the graph, given roots). And the fast
// way of filling tables against the general one, byte for byte.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "routing/route_priv.h"
#include "tests/unit/routing/rig.h"

#ifndef ENGINE
#define ENGINE ROUTE_UPDN
#endif

// --- graphs: switches 0 .. n - 1, made abstractly, then cabled under shuffled GUIDs ---

#define MAX_SWITCHES 60
#define MAX_CABLES 400
#define MAX_PORTS 60

struct graph {
    struct rng *rng;
    unsigned n, cables;
    unsigned end[MAX_CABLES][2];
    unsigned hosts[MAX_SWITCHES], ans[MAX_SWITCHES], degree[MAX_SWITCHES];
};

static unsigned below(struct graph *g, unsigned n)
{
    return rng_below(g->rng, n);
}

static void join(struct graph *g, unsigned a, unsigned z)
{
    if (a == z || g->cables == MAX_CABLES || g->degree[a] + 12 > MAX_PORTS || g->degree[z] + 12 > MAX_PORTS)
        return;
    g->end[g->cables][0] = a;
    g->end[g->cables++][1] = z;
    g->degree[a]++;
    g->degree[z]++;
}

static void joins_at_random(struct graph *g, unsigned num)
{
    while (num-- > 0)
        join(g, below(g, g->n), below(g, g->n));
}

// Hosts on one switch in `every`, up to `most` of them.
static void hosts_at_random(struct graph *g, unsigned from, unsigned to, unsigned every, unsigned most)
{
    for (unsigned i = from; i < to; i++) {
        if (below(g, every) == 0)
            g->hosts[i] += 1 + below(g, most);
    }
}

// Switches from .. to - 1 as a random tree: `near` makes it deep, as each hangs on one of the last so many.
static void tree(struct graph *g, unsigned from, unsigned to, unsigned near)
{
    for (unsigned i = from + 1; i < to; i++) {
        unsigned back = i - from < near ? i - from : near;
        join(g, i, i - 1 - below(g, back));
    }
}

// A tree of tiers among from .. to - 1, leaves first; returns how many leaves.
static unsigned fat_tree(struct graph *g, unsigned from, unsigned to)
{
    unsigned n = to - from, leaves = n < 4 ? n - 1 : n / 2,
             spines = n < 12 ? n - leaves : (n - leaves) * 2 / 3;
    for (unsigned l = 0; l < leaves; l++) {
        join(g, from + l, from + leaves + l % spines);
        for (unsigned k = below(g, 4); k > 0; k--)
            join(g, from + l, from + leaves + below(g, spines));
    }
    for (unsigned s = 0; s < spines && leaves + spines < n; s++) {
        for (unsigned c = leaves + spines; c < n; c++) {
            if (c == leaves + spines || below(g, 3) > 0)
                join(g, from + leaves + s, from + c);
        }
    }
    return leaves;
}

static void random_tree(struct graph *g)
{
    tree(g, 0, g->n, 1 + below(g, 6));
    joins_at_random(g, below(g, 8));
    hosts_at_random(g, 0, g->n, 1 + below(g, 12), 3);
}

static void sparse_tree(struct graph *g)
{
    tree(g, 0, g->n, 3 + below(g, 5));
    joins_at_random(g, below(g, 3));
    g->hosts[below(g, g->n)] = 1;
    g->hosts[below(g, g->n)] = 1;
}

static void dense(struct graph *g)
{
    tree(g, 0, g->n, g->n);
    joins_at_random(g, below(g, 4 * g->n));
    hosts_at_random(g, 0, g->n, 1 + below(g, 4), 5);
}

static void chains_on_leaves(struct graph *g)
{
    unsigned core = g->n / 2 > 2 ? g->n / 2 : 2, leaves = fat_tree(g, 0, core), at = core;
    hosts_at_random(g, 0, leaves, 1 + below(g, 2), 6);
    while (at < g->n) {
        unsigned on = below(g, leaves), len = 1 + below(g, 7);
        for (; len > 0 && at < g->n; len--, at++) {
            join(g, at, on);
            on = at;
        }
    }
    hosts_at_random(g, core, g->n, 3, 2);
}

static void leaves_below_leaves(struct graph *g)
{
    unsigned core = g->n / 2 > 2 ? g->n / 2 : 2, leaves = fat_tree(g, 0, core);
    hosts_at_random(g, 0, leaves, 1, 4);
    for (unsigned i = core; i < g->n; i++) {
        unsigned k = 1 + below(g, 3);
        join(g, i, below(g, leaves));
        while (--k > 0)
            join(g, i, below(g, 2) ? below(g, leaves) : below(g, i));
        g->hosts[i] = below(g, 6);
    }
}

static void hosts_on_any_tier(struct graph *g)
{
    fat_tree(g, 0, g->n);
    hosts_at_random(g, 0, g->n, 1 + below(g, 3), 8);
}

static void spines_to_spines(struct graph *g)
{
    unsigned leaves = fat_tree(g, 0, g->n);
    hosts_at_random(g, 0, leaves, 1, 4);
    for (unsigned k = below(g, 6); k > 0; k--)
        join(g, leaves + below(g, g->n - leaves), leaves + below(g, g->n - leaves));
    for (unsigned k = below(g, 3); k > 0; k--)
        join(g, below(g, leaves), below(g, leaves));
}

static void two_trees_joined_at_leaves(struct graph *g)
{
    unsigned half = g->n / 2 > 2 ? g->n / 2 : 2, a, b;
    if (g->n < 4) {
        tree(g, 0, g->n, 1);
        return;
    }
    a = fat_tree(g, 0, half);
    b = fat_tree(g, half, g->n);
    hosts_at_random(g, 0, a, 1, 6);
    hosts_at_random(g, half, half + b, 1 + below(g, 3), 6);
    for (unsigned k = 1 + below(g, 3); k > 0; k--)
        join(g, below(g, a), half + below(g, b));
}

static void ring(struct graph *g)
{
    tree(g, 0, g->n, 1);
    join(g, 0, g->n - 1);
    joins_at_random(g, below(g, 3));
    hosts_at_random(g, 0, g->n, 1 + below(g, 5), 2);
}

static void star_of_trees(struct graph *g)
{
    for (unsigned at = 1; at < g->n;) {
        unsigned end = at + 2 + below(g, 12) < g->n ? at + 2 + below(g, 12) : g->n;
        end = end > g->n ? g->n : end;
        unsigned leaves = below(g, 2) && end - at > 3 ? fat_tree(g, at, end) : (tree(g, at, end, 3), 1);
        join(g, 0, at + below(g, leaves));
        if (below(g, 3) == 0)
            join(g, 0, end - 1);
        at = end;
    }
    hosts_at_random(g, 0, g->n, 1 + below(g, 4), 4);
}

static void cut_tree(struct graph *g) // several parts
{
    unsigned leaves = fat_tree(g, 0, g->n);
    hosts_at_random(g, 0, leaves, 1 + below(g, 2), 4);
    for (unsigned k = below(g, g->cables); k > 0; k--) {
        unsigned i = below(g, g->cables);
        memcpy(g->end[i], g->end[--g->cables], sizeof(g->end[i]));
    }
}

static const struct kind {
    const char *name;
    void (*make)(struct graph *g);
} kinds[] = {
    {"random tree", random_tree},
    {"tree with two hosts", sparse_tree},
    {"dense", dense},
    {"chains on leaves", chains_on_leaves},
    {"leaves below leaves", leaves_below_leaves},
    {"hosts on any tier", hosts_on_any_tier},
    {"spines to spines", spines_to_spines},
    {"two trees joined at leaves", two_trees_joined_at_leaves},
    {"ring", ring},
    {"star of trees", star_of_trees},
    {"cut tree", cut_tree},
};
#define NUM_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct fabric *cable(const struct graph *g)
{
    struct rig r;
    node_id sw[MAX_SWITCHES];
    unsigned name[MAX_SWITCHES];
    rig_start(&r);
    for (unsigned i = 0; i < g->n; i++)
        name[i] = i;
    for (unsigned i = g->n; i > 1; i--) {
        unsigned k = rng_below(g->rng, i), x = name[i - 1];
        name[i - 1] = name[k];
        name[k] = x;
    }
    for (unsigned i = 0; i < g->n; i++) {
        char text[20];
        snprintf(text, sizeof(text), "sw%u", name[i]);
        sw[name[i]] = rig_switch(&r, MAX_PORTS, text);
    }
    for (unsigned i = 0; i < g->cables; i++)
        rig_cable(&r, sw[g->end[i][0]], sw[g->end[i][1]]);
    for (unsigned i = 0; i < g->n; i++) {
        for (unsigned h = 0; h < g->hosts[i]; h++)
            rig_host(&r, sw[i]);
        for (unsigned h = 0; h < g->ans[i]; h++)
            rig_an(&r, sw[i]);
    }
    return rig_done(&r);
}

static const struct fabric *make(const struct kind *k, struct rng *rng)
{
    struct graph g = {.rng = rng, .n = 5 + rng_below(rng, MAX_SWITCHES - 4)};
    k->make(&g);
    for (unsigned c = 0, n = g.cables; rng_below(rng, 3) == 0 && c < n; c++) { // parallel cables
        if (rng_below(rng, 3) == 0)
            join(&g, g.end[c][0], g.end[c][1]);
    }
    unsigned every = 1 + rng_below(rng, 6);
    for (unsigned i = 0; i < g.n; i++)
        g.ans[i] = rng_below(rng, every) == 0;
    for (unsigned i = 0, left = 280; i < g.n; i++) { // a rig holds 400 nodes
        g.hosts[i] = g.hosts[i] < left ? g.hosts[i] : left;
        g.hosts[i] = g.hosts[i] < 10 ? g.hosts[i] : 10;
        left -= g.hosts[i];
    }
    return cable(&g);
}

// --- what must hold ---

static void expect_one_top(const struct rgraph *g, const struct rorder *o, const char *what)
{
    for (uint32_t s = 0; s < g->n; s++) {
        bool up = false;
        assert_int_equal(o->by_pos[o->pos[s]], s);
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++)
            up |= o->pos[g->g[i].peer] > o->pos[s];
        if (up == (o->top[g->comp[s]] == s))
            fail_msg("%s: switch %u, rank %u, %s", what, s, o->rank[s],
                     up ? "is the top and has one above" : "has none above and is not the top");
    }
}

// One top; the fast tables equal to the general ones; all of it proved.
static void expect_routed(const struct fabric *f, const struct route_opts *opts, const char *what)
{
    struct arena *a = arena_new();
    struct rgraph g = {0};
    struct rorder o = {0};
    rgraph_build(f, a, &g);
    assert_int_equal(rorder_build(&g, opts, a, &o, NULL), 0);
    expect_one_top(&g, &o, what);
    struct fabric_tables *fast = tables_new(f, f->top_lid, "updn"),
                         *general = tables_new(f, f->top_lid, "updn");
    rfill(&g, &o, opts->engine, NULL, a, fast);
    rfill_general(&g, &o, opts->engine, a, general);
    uint64_t differ = tables_compare(fast, general).entries;
    if (differ != 0)
        fail_msg("%s: %llu entries differ between the fast way and the general", what,
                 (unsigned long long)differ);
    struct verify_opts v = {.all_switches = true};
    struct route_proof p;
    if (!route_verify(f, fast, &v, &p) || p.unreached != 0)
        fail_msg("%s: fault %d, %llu unreached: %s", what, p.fault, (unsigned long long)p.unreached,
                 p.counter_example);
    struct route_result r;
    assert_int_equal(route_compute(f, opts, &r, NULL), 0);
    assert_int_equal(tables_compare(fast, r.tables).entries, 0);
    tables_unref(fast);
    tables_unref(general);
    tables_unref(r.tables);
    arena_free(a);
}

// Some of it fails: the repaired tables are proved, and are the ideal again when all is back.
static void expect_repaired(const struct fabric *f, const struct route_opts *opts, struct rng *rng,
                            const char *what)
{
    struct route_result ideal, r;
    struct route_base *b;
    struct rig_fault fault[4];
    struct verify_opts v = {.all_switches = true};
    struct route_proof p;
    assert_int_equal(route_compute(f, opts, &ideal, NULL), 0);
    assert_int_equal(route_base_new(f, &ideal, opts, &b, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        rig_fault_make(f, rng, &fault[i]);
        const struct fabric *live = rig_live(f, fault, i + 1);
        assert_int_equal(route_repair_from(b, live, NULL, &r, NULL), 0);
        if (!route_verify(live, r.tables, &v, &p) || p.unreached != 0)
            fail_msg("%s, %u faults: fault %d, %llu unreached: %s", what, i + 1, p.fault,
                     (unsigned long long)p.unreached, p.counter_example);
        tables_unref(r.tables);
        fabric_unref(live);
    }
    assert_int_equal(route_repair_from(b, f, NULL, &r, NULL), 0);
    assert_ptr_equal(r.tables, ideal.tables);
    tables_unref(r.tables);
    tables_unref(ideal.tables);
    route_base_free(b);
}

// Up to three roots anywhere.
static void expect_routed_from_roots(const struct fabric *f, struct rng *rng, const char *what)
{
    uint64_t roots[3];
    struct route_opts o = {.engine = ENGINE, .root_guids = roots};
    for (o.num_roots = 0; o.num_roots < 1 + rng_below(rng, 3);)
        roots[o.num_roots++] = fabric_switch(f, rng_below(rng, f->num_switches))->guid;
    expect_routed(f, &o, what);
    if (rng_below(rng, 3) == 0 && f->num_links > f->num_end_nodes)
        expect_repaired(f, &o, rng, what);
}

// A copy of the fabric whose tiers are anything.
static void expect_routed_on_tiers(const struct fabric *f, struct rng *rng, const char *what)
{
    struct fabric g = *f;
    struct node *node = malloc(f->num_nodes * sizeof(*node));
    unsigned tiers = 2 + rng_below(rng, 4);
    memcpy(node, f->node, f->num_nodes * sizeof(*node));
    g.node = node;
    for (uint32_t s = 0; s < f->num_switches; s++)
        node[f->switch_node[s]].tier = (uint8_t)rng_below(rng, tiers);
    expect_routed(&g, &(struct route_opts){.engine = ENGINE}, what);
    free(node);
}

#define SEEDS 150

static void any_graph(void **state)
{
    char what[100];
    for (unsigned k = 0; k < NUM_KINDS; k++) {
        for (unsigned seed = 0; seed < SEEDS; seed++) {
            struct rng rng;
            rng_init(&rng, k * 100000 + seed);
            const struct fabric *f = make(&kinds[k], &rng);
            snprintf(what, sizeof(what), "%s, seed %u", kinds[k].name, seed);
            expect_routed(f, &(struct route_opts){.engine = ENGINE}, what);
            if (seed % 3 == 0 && f->num_links > f->num_end_nodes)
                expect_repaired(f, &(struct route_opts){.engine = ENGINE}, &rng, what);
            strcat(what, ", roots");
            expect_routed_from_roots(f, &rng, what);
            strcpy(strrchr(what, ','), ", tiers at random");
            expect_routed_on_tiers(f, &rng, what);
            fabric_unref(f);
        }
    }
}

// The fast way on trees large enough for several chunks of columns.
static void fast_is_general(void **state)
{
    static const char *const names[] = {"ft3-32-4", "rail-1024", "ft3-16-8", "superpod-2"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct fabric *f = rig_named(names[i]);
        expect_routed(f, &(struct route_opts){.engine = ENGINE}, names[i]);
        fabric_unref(f);
    }
}

static void fast_is_general_when_degraded(void **state)
{
    struct rng r;
    char what[60];
    static const char *const names[] = {"ft3-16-4", "rail-256", "ft3-16-8"};
    rng_init(&r, 21);
    for (unsigned i = 0; i < 30; i++) {
        const struct fabric *f = rig_degrade(rig_named(names[i % 3]), 1 + rng_below(&r, 50), &r);
        snprintf(what, sizeof(what), "%s, round %u", names[i % 3], i);
        expect_routed(f, &(struct route_opts){.engine = ENGINE}, what);
        fabric_unref(f);
    }
}

// --- fabrics on which an earlier order had two tops ---

// Two leaves cabled to each other; what hangs on the farther one's spine must not be cut off.
static void joined_leaves(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id spine1 = rig_switch(&r, 20, "spine1"), stub = rig_switch(&r, 20, "stub"),
            spine2 = rig_switch(&r, 20, "spine2"), leaf2 = rig_switch(&r, 20, "leaf2"),
            leaf1 = rig_switch(&r, 20, "leaf1");
    for (unsigned i = 0; i < 4; i++) {
        rig_cable(&r, spine1, stub);
        rig_cable(&r, spine1, leaf1);
        rig_cable(&r, spine2, leaf2);
    }
    rig_cable(&r, leaf1, leaf2);
    for (unsigned i = 0; i < 3; i++)
        rig_host(&r, leaf1);
    for (unsigned i = 0; i < 2; i++)
        rig_host(&r, leaf2);
    const struct fabric *f = rig_done(&r);
    assert_int_equal(f->node[leaf1.i].tier, 0); // the case hangs on them
    assert_int_equal(f->node[leaf2.i].tier, 0);
    assert_int_equal(f->node[spine1.i].tier, 1);
    assert_int_equal(f->node[spine2.i].tier, 1);
    expect_routed(f, &(struct route_opts){.engine = ENGINE}, "joined leaves");
    fabric_unref(f);
}

// Two trees of many switches with one host each: in the first a switch whose only way up is one of its own
// tier, and on which a long branch hangs.
static void odd_trees(void **state)
{
    static const unsigned char edge[][2] = {
        {2, 4},  {2, 9},  {2, 17},  {2, 28},  {9, 23},  {23, 19}, {0, 5},   {0, 10},  {0, 19},  {10, 8},
        {8, 20}, {8, 24}, {24, 11}, {11, 15}, {15, 18}, {19, 12}, {28, 6},  {17, 14}, {14, 21}, {14, 27},
        {6, 31}, {22, 3}, {22, 7},  {22, 30}, {3, 26},  {26, 13}, {26, 16}, {30, 25}, {16, 1},  {13, 29},
    };
    struct rig r;
    node_id sw[32];
    rig_start(&r);
    for (unsigned i = 0; i < 32; i++)
        sw[i] = rig_switch(&r, 64, "sw");
    for (unsigned i = 0; i < sizeof(edge) / sizeof(edge[0]); i++)
        rig_cable(&r, sw[edge[i][0]], sw[edge[i][1]]);
    rig_host(&r, sw[25]);
    rig_host(&r, sw[31]);
    const struct fabric *f = rig_done(&r);
    assert_int_equal(f->node[sw[0].i].tier, 1); // the case hangs on them
    assert_int_equal(f->node[sw[19].i].tier, 1);
    assert_int_equal(f->node[sw[10].i].tier, 2);
    expect_routed(f, &(struct route_opts){.engine = ENGINE}, "odd trees");
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_leaves),
        cmocka_unit_test(odd_trees),
        cmocka_unit_test(any_graph),
        cmocka_unit_test(fast_is_general),
        cmocka_unit_test(fast_is_general_when_degraded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
