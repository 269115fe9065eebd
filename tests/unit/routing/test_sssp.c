// SPDX-License-Identifier: Apache-2.0
// Engine sssp: every pair that cables join by a shortest path, each lane without a cycle of dependencies
// (judged here, by a walk of its own), the same whatever the numbering, and small changes that stay small.
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
#include "lib/hash.h"
#include "lib/xalloc.h"
#include "routing/route_priv.h"
#include "tests/unit/routing/rig.h"

// --- fabrics ---

struct make {
    struct builder *b;
    unsigned num, cap;
    unsigned *next_port;
    uint64_t salt;
    uint8_t vl_cap;
};

static void start(struct make *m, uint64_t salt)
{
    *m = (struct make){.b = builder_new(), .salt = salt, .vl_cap = 4};
}

static node_id add(struct make *m, enum node_type type, unsigned ports)
{
    char name[40];
    if (m->num == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->next_port = xreallocarray(m->next_port, m->cap, sizeof(*m->next_port));
    }
    uint64_t guid = hash_mix64(m->num + (m->salt << 32) + 1) & ~0xffULL;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = (uint8_t)ports};
    node_id id;
    a.lft_cap = type == NODE_SWITCH ? LID_UCAST_MAX : 0;
    snprintf(name, sizeof(name), "%s%u", type == NODE_SWITCH ? "sw" : "host", m->num);
    assert_int_equal(builder_node(m->b, &a, name, strlen(name), &id, NULL), 0);
    assert_int_equal(id.i, m->num);
    m->next_port[m->num++] = 1;
    builder_port_guid(m->b, id, type == NODE_SWITCH ? 0 : 1, guid + (type != NODE_SWITCH));
    return id;
}

static void join(struct make *m, node_id a, node_id b)
{
    unsigned pa = m->next_port[a.i]++, pb = m->next_port[b.i]++;
    struct port_attrs at = {.vl_cap = m->vl_cap, .state = PORT_ACTIVE};
    assert_int_equal(builder_port(m->b, a, pa, &at), 0);
    assert_int_equal(builder_port(m->b, b, pb, &at), 0);
    assert_int_equal(builder_link(m->b, a, pa, b, pb), 0);
}

static void hosts(struct make *m, node_id sw, unsigned num)
{
    for (unsigned i = 0; i < num; i++)
        join(m, sw, add(m, NODE_CA, 1));
}

static const struct fabric *done(struct make *m)
{
    free(m->next_port);
    return rig_lids(builder_seal(m->b, 1, NULL), 0);
}

// Dimensions k[0 .. d - 1]; wrap: a torus.
static void add_grid(struct make *m, unsigned d, const unsigned *k, bool wrap, unsigned num_hosts)
{
    unsigned n = 1, first = m->num;
    for (unsigned i = 0; i < d; i++)
        n *= k[i];
    for (unsigned i = 0; i < n; i++)
        add(m, NODE_SWITCH, 2 * d + num_hosts);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned j = 0, step = 1; j < d; step *= k[j++]) {
            unsigned c = i / step % k[j];
            if (c + 1 < k[j])
                join(m, (node_id){first + i}, (node_id){first + i + step});
            else if (wrap && k[j] > 2)
                join(m, (node_id){first + i}, (node_id){first + i - c * step});
        }
    }
    for (unsigned i = 0; i < n; i++)
        hosts(m, (node_id){first + i}, num_hosts);
}

static const struct fabric *grid(unsigned d, const unsigned *k, bool wrap, unsigned num_hosts)
{
    struct make m;
    start(&m, d);
    add_grid(&m, d, k, wrap, num_hosts);
    return done(&m);
}

// Groups of `a` switches, all joined; each switch with h cables to other groups, one between any two groups.
static const struct fabric *dragonfly(unsigned a, unsigned h, unsigned num_hosts)
{
    struct make m;
    unsigned groups = a * h + 1;
    start(&m, a);
    for (unsigned i = 0; i < groups * a; i++)
        add(&m, NODE_SWITCH, a - 1 + h + num_hosts);
    for (unsigned g = 0; g < groups; g++) {
        for (unsigned x = 0; x < a; x++) {
            for (unsigned y = x + 1; y < a; y++)
                join(&m, (node_id){g * a + x}, (node_id){g * a + y});
        }
        for (unsigned o = g + 1; o < groups; o++) {
            unsigned out = o - g - 1, in = groups - (o - g) - 1;
            join(&m, (node_id){g * a + out / h}, (node_id){o * a + in / h});
        }
    }
    for (unsigned i = 0; i < groups * a; i++)
        hosts(&m, (node_id){i}, num_hosts);
    return done(&m);
}

// --- the judgement ---

struct judge {
    const struct fabric *f;
    uint32_t n;
    uint32_t *far;  // [switch * 256 + port]
    uint32_t *dist; // [switch * n + switch]
    bool *ends;
    uint64_t (*dep)[4]; // per channel: ports by which the next switch is left
};

static void judge_init(struct judge *j, const struct fabric *f)
{
    *j = (struct judge){.f = f, .n = f->num_switches};
    size_t n = j->n;
    j->far = xmalloc((n * 256 + 1) * sizeof(*j->far));
    j->dist = xmalloc((n * n + 1) * sizeof(*j->dist));
    j->ends = xcalloc(n + 1, sizeof(*j->ends));
    j->dep = xcalloc(n * 256 + 1, sizeof(*j->dep));
    memset(j->far, 0xff, n * 256 * sizeof(*j->far));
    memset(j->dist, 0xff, n * n * sizeof(*j->dist));
    uint32_t *queue = xcalloc(n + 1, sizeof(*queue));
    for (uint32_t s = 0; s < n; s++) {
        const struct node *sw = fabric_switch(f, s);
        for (unsigned p = 1; p <= sw->num_ports; p++) {
            const struct node *peer = fabric_peer_node(f, &f->port[sw->first_port + p]);
            if (peer && peer->type == NODE_SWITCH && peer->sw != s)
                j->far[s * 256 + p] = peer->sw;
            j->ends[s] |= peer && peer->type != NODE_SWITCH;
        }
    }
    for (uint32_t s = 0; s < n; s++) {
        uint32_t head = 0, tail = 0, *dist = j->dist + s * n;
        dist[s] = 0;
        queue[tail++] = s;
        while (head < tail) {
            uint32_t v = queue[head++];
            for (unsigned p = 1; p < 256; p++) {
                uint32_t w = j->far[v * 256 + p];
                if (w != ID_NONE && dist[w] == ID_NONE) {
                    dist[w] = dist[v] + 1;
                    queue[tail++] = w;
                }
            }
        }
    }
    free(queue);
}

static void judge_done(struct judge *j)
{
    free(j->far);
    free(j->dist);
    free(j->ends);
    free(j->dep);
}

// From each switch to a LID; what one lane carries there and back is noted.
static void judge_lid(struct judge *j, const struct fabric_tables *t, uint16_t lid, int lane)
{
    const struct port *p = &j->f->port[j->f->lid_port[lid]];
    const struct node *at = fabric_node(j->f, p->node);
    uint8_t last = 0;
    if (at->type != NODE_SWITCH) {
        if (!port_valid(p->peer))
            return;
        last = j->f->port[p->peer.i].num;
        at = fabric_node(j->f, j->f->port[p->peer.i].node);
    }
    if (at->type != NODE_SWITCH)
        return;
    for (uint32_t s = 0; s < j->n; s++) {
        uint32_t hops = 0, before = ID_NONE, want = j->dist[(size_t)s * j->n + at->sw];
        bool noted = lane >= 0 && lanes_get(t->lanes, s, at->sw) == (unsigned)lane;
        if (want == ID_NONE)
            continue;
        for (uint32_t v = s; v != at->sw; hops++) {
            uint8_t out = tables_port(t, v, lid);
            if (j->far[v * 256 + out] == ID_NONE || hops > want)
                fail_msg("from switch %u to LID %u: ends at switch %u", s, lid, v);
            if (noted && before != ID_NONE)
                j->dep[before][out / 64] |= 1ULL << (out % 64);
            before = v * 256 + out;
            v = j->far[before];
        }
        if (hops != want)
            fail_msg("from switch %u to LID %u: %u hops, %u would do", s, lid, hops, want);
        assert_int_equal(tables_port(t, at->sw, lid), last);
    }
}

static bool cyclic_from(struct judge *j, uint32_t start, uint8_t *seen, uint32_t *stack, uint16_t *at)
{
    uint32_t top = 0;
    stack[0] = start;
    at[0] = 0;
    seen[start] = 1;
    for (;;) {
        uint32_t c = stack[top], i = at[top];
        if (i == 256) {
            seen[c] = 2;
            if (top-- == 0)
                return false;
            continue;
        }
        at[top]++;
        if (!(j->dep[c][i / 64] >> (i % 64) & 1))
            continue;
        uint32_t y = j->far[c] * 256 + i;
        if (seen[y] == 1)
            return true;
        if (seen[y] == 0) {
            seen[y] = 1;
            stack[++top] = y;
            at[top] = 0;
        }
    }
}

static bool cyclic(struct judge *j)
{
    size_t chans = (size_t)j->n * 256;
    uint8_t *seen = xcalloc(chans + 1, 1);
    uint32_t *stack = xcalloc(chans + 1, sizeof(*stack));
    uint16_t *at = xcalloc(chans + 1, sizeof(*at));
    bool found = false;
    for (uint32_t c = 0; c < chans && !found; c++)
        found = seen[c] == 0 && cyclic_from(j, c, seen, stack, at);
    free(seen);
    free(stack);
    free(at);
    return found;
}

static void judge_lanes(struct judge *j, const struct fabric_tables *t)
{
    const struct fabric_lanes *l = t->lanes;
    assert_non_null(l);
    assert_int_equal(l->num_switches, j->n);
    assert_in_range(l->num_lanes, 1, LANES_MAX);
    for (uint32_t a = 0; a < j->n; a++) {
        for (uint32_t b = 0; b < j->n; b++) {
            unsigned lane = lanes_get(l, a, b);
            assert_int_equal(lane, lanes_get(l, b, a));
            if (j->dist[(size_t)a * j->n + b] != ID_NONE && (j->ends[a] || j->ends[b]))
                assert_true(lane < l->num_lanes);
            else
                assert_true(lane < l->num_lanes || lane == LANE_NONE);
        }
    }
}

static void judge_all(const struct fabric *f, const struct fabric_tables *t)
{
    struct judge j;
    judge_init(&j, f);
    judge_lanes(&j, t);
    for (int lane = 0; lane < (int)t->lanes->num_lanes; lane++) {
        memset(j.dep, 0, (size_t)j.n * 256 * sizeof(*j.dep));
        for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
            if (f->lid_port[lid] != ID_NONE)
                judge_lid(&j, t, (uint16_t)lid, lane);
        }
        if (cyclic(&j))
            fail_msg("lane %d has a cycle", lane);
    }
    judge_done(&j);
    struct verify_opts o = {.par = &rig_par};
    for (int all = 0; all < 2; all++) {
        struct route_proof p;
        o.all_switches = all;
        if (!route_verify(f, t, &o, &p))
            fail_msg("fault %d: %s", p.fault, p.counter_example);
        assert_false(p.credit_loop);
        assert_int_equal(p.unreached, 0);
    }
}

static unsigned route_and_judge(const struct fabric *f, const char *name)
{
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP);
    judge_all(f, t);
    unsigned lanes = t->lanes->num_lanes;
    if (name)
        print_message("%s: %u lanes\n", name, lanes);
    tables_unref(t);
    fabric_unref(f);
    return lanes;
}

// --- tests ---

static void test_grids(void **state)
{
    (void)state;
    assert_int_equal(route_and_judge(grid(2, (unsigned[]){7, 5}, false, 2), "mesh 7x5"), 1);
    assert_int_equal(route_and_judge(grid(3, (unsigned[]){4, 3, 4}, false, 1), "mesh 4x3x4"), 1);
    assert_int_equal(route_and_judge(grid(6, (unsigned[]){2, 2, 2, 2, 2, 2}, false, 2), "6-dimensional cube"),
                     1);
    for (unsigned k = 3; k < 12; k++)
        assert_in_range(route_and_judge(grid(1, (unsigned[]){k}, true, 2), NULL), 1, 2);
    assert_in_range(route_and_judge(grid(2, (unsigned[]){8, 8}, true, 2), "torus 8x8"), 2, 5);
    assert_in_range(route_and_judge(grid(2, (unsigned[]){9, 5}, true, 2), "torus 9x5"), 2, 5);
    assert_in_range(route_and_judge(grid(2, (unsigned[]){10, 10}, true, 1), "torus 10x10"), 2, 5);
    assert_in_range(route_and_judge(grid(3, (unsigned[]){5, 5, 5}, true, 1), "torus 5x5x5"), 2, 8);
    assert_in_range(route_and_judge(grid(3, (unsigned[]){6, 6, 6}, true, 1), "torus 6x6x6"), 2, 8);
}

static void test_damaged_torus(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 7);
    for (unsigned i = 0; i < 6; i++)
        route_and_judge(rig_degrade(grid(2, (unsigned[]){8, 7}, true, 2), 1 + i, &r), "torus 8x7, damaged");
    route_and_judge(rig_degrade(grid(3, (unsigned[]){5, 4, 5}, true, 1), 2, &r), "torus 5x4x5, damaged");
}

static void test_irregular(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 11);
    for (unsigned i = 0; i < 40; i++)
        route_and_judge(rig_random(&r, 2 + rng_below(&r, 40), rng_below(&r, 60)), NULL);
    route_and_judge(dragonfly(4, 2, 2), "dragonfly 4, 2");
    route_and_judge(dragonfly(6, 1, 1), "dragonfly 6, 1");
}

static void test_trees(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 13);
    assert_int_equal(route_and_judge(rig_named("ft3-8-4"), "ft3-8-4"), 1);
    assert_int_equal(route_and_judge(rig_named("rail-256"), "rail-256"), 1);
    for (unsigned i = 0; i < 6; i++)
        route_and_judge(rig_degrade(rig_named("ft3-8-4"), 2 + 4 * i, &r), "ft3-8-4, damaged");
}

static void test_parts(void **state)
{
    (void)state;
    struct make m;
    start(&m, 99);
    add_grid(&m, 2, (unsigned[]){6, 6}, true, 1);
    add_grid(&m, 1, (unsigned[]){7}, true, 1);
    add_grid(&m, 3, (unsigned[]){3, 2, 2}, false, 1);
    hosts(&m, add(&m, NODE_SWITCH, 3), 2);
    add(&m, NODE_SWITCH, 4); // with nothing at all
    route_and_judge(done(&m), "parts");
    start(&m, 100);
    route_and_judge(done(&m), "nothing");
}

static void same_entries(const struct fabric *f, const struct fabric_tables *a, const struct fabric *g,
                         const struct fabric_tables *b)
{
    assert_int_equal(a->lanes->num_lanes, b->lanes->num_lanes);
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t gs = fabric_by_guid(g, fabric_switch(f, s)->guid)->sw;
        assert_memory_equal(tables_row(a, s), tables_row(b, gs), a->lids);
        for (uint32_t d = 0; d < f->num_switches; d++) {
            uint32_t gd = fabric_by_guid(g, fabric_switch(f, d)->guid)->sw;
            assert_int_equal(lanes_get(a->lanes, s, d), lanes_get(b->lanes, gs, gd));
        }
    }
}

static void test_renumbered(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 17);
    for (unsigned i = 0; i < 8; i++) {
        const struct fabric *f = i < 2   ? grid(2, (unsigned[]){7, 6 + i}, true, 2)
                                 : i < 4 ? dragonfly(3 + i, 1, 1)
                                 : i < 5 ? rig_named("ft3-8-4")
                                         : rig_random(&r, 30, 40);
        const struct fabric *g = rig_renumber(f, &r);
        struct fabric_tables *a = rig_route(f, ROUTE_SSSP), *b = rig_route(g, ROUTE_SSSP);
        same_entries(f, a, g, b);
        struct fabric_tables *c = tables_copy_for(a, f, g, g->top_lid);
        assert_true(lanes_equal(b->lanes, c->lanes));
        tables_unref(c);
        tables_unref(a);
        tables_unref(b);
        fabric_unref(f);
        fabric_unref(g);
    }
}

// One cable between switches less, each in turn of a sample: how many entries change.
static void small_change(const struct fabric *f, const char *name, double mean_at_most, double at_most)
{
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP);
    struct rng r;
    double sum = 0, worst = 0, all = (double)f->num_switches * f->top_lid;
    rng_init(&r, 19);
    for (unsigned i = 0; i < 10; i++) {
        struct rig_fault x;
        do
            rig_fault_make(f, &r, &x);
        while (x.kind != RIG_CABLE);
        const struct fabric *g = rig_live(f, &x, 1);
        struct fabric_tables *u = rig_route(g, ROUTE_SSSP);
        double share = 100.0 * (double)tables_compare(t, u).entries / all;
        sum += share / 10;
        worst = share > worst ? share : worst;
        tables_unref(u);
        fabric_unref(g);
    }
    print_message("%s, a cable less: %.2f %% of entries changed, at most %.2f %%\n", name, sum, worst);
    assert_true(sum <= mean_at_most);
    assert_true(worst <= at_most);
    tables_unref(t);
    fabric_unref(f);
}

static void test_small_changes(void **state)
{
    (void)state;
    small_change(grid(2, (unsigned[]){10, 10}, true, 1), "torus 10x10", 3, 10);
    small_change(grid(2, (unsigned[]){10, 10}, false, 1), "mesh 10x10", 3, 10);
    small_change(grid(6, (unsigned[]){2, 2, 2, 2, 2, 2}, false, 1), "6-dimensional cube", 3, 10);
    small_change(rig_named("ft3-8-4"), "ft3-8-4", 3, 10);
}

static int try_lanes(const struct fabric *f, unsigned lanes, struct err *e)
{
    struct route_opts o = {.engine = ROUTE_SSSP, .lanes = (uint8_t)lanes};
    struct route_result r = {0};
    int rc = route_compute(f, &o, &r, e);
    if (rc == 0) {
        assert_true(r.tables->lanes->num_lanes <= lanes);
        tables_unref(r.tables);
    } else {
        assert_null(r.tables);
    }
    return rc;
}

static void test_too_few_lanes(void **state)
{
    (void)state;
    struct err e = {0};
    const struct fabric *torus = grid(2, (unsigned[]){9, 9}, true, 1),
                        *mesh = grid(2, (unsigned[]){9, 9}, false, 1);
    assert_int_equal(try_lanes(torus, 1, &e), -ENOSPC);
    assert_non_null(strstr(e.text, "sssp would need "));
    assert_non_null(strstr(e.text, "and may use 1;"));
    assert_int_equal(try_lanes(torus, 8, &e), 0);
    assert_int_equal(try_lanes(torus, 9, &e), -EINVAL);
    assert_int_equal(try_lanes(mesh, 1, &e), 0);
    fabric_unref(torus);
    fabric_unref(mesh);
    // One cable that has two lanes only, whatever is asked for.
    for (unsigned code = 1; code <= 5; code++) {
        struct make m;
        start(&m, 5);
        add_grid(&m, 2, (unsigned[]){6, 6}, true, 1);
        m.vl_cap = (uint8_t)code;
        node_id a = add(&m, NODE_SWITCH, 3), b = add(&m, NODE_SWITCH, 3);
        join(&m, a, b);
        hosts(&m, a, 1);
        hosts(&m, b, 1);
        const struct fabric *f = done(&m);
        int rc = try_lanes(f, 8, &e);
        assert_int_equal(rc, code <= 1 ? -ENOSPC : rc);
        if (rc)
            assert_non_null(strstr(e.text, "as this port has no more"));
        assert_int_equal(code < 4 || rc == 0, 1);
        fabric_unref(f);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    struct make m;
    // More than 10,000 parallel cables: 42 switches in a ring, 250 between each two.
    start(&m, 1);
    for (unsigned i = 0; i < 82; i++)
        add(&m, NODE_SWITCH, 254);
    for (unsigned i = 0; i < 82; i++) {
        for (unsigned k = 0; k < 126; k++)
            join(&m, (node_id){i}, (node_id){(i + 1) % 82});
        hosts(&m, (node_id){i}, 1);
    }
    route_and_judge(done(&m), "10,332 cables side by side");
    // All switches joined to all, every port in use.
    start(&m, 2);
    for (unsigned i = 0; i < 255; i++)
        add(&m, NODE_SWITCH, 254);
    for (unsigned i = 0; i < 255; i++) {
        for (unsigned k = i + 1; k < 255; k++)
            join(&m, (node_id){i}, (node_id){k});
    }
    route_and_judge(done(&m), "255 switches of 254 ports");
    // A star of end nodes, and a chain longer than 8 bits count.
    start(&m, 3);
    hosts(&m, add(&m, NODE_SWITCH, 254), 254);
    for (unsigned i = 0; i < 300; i++) {
        node_id s = add(&m, NODE_SWITCH, 3);
        if (i > 0)
            join(&m, (node_id){s.i - 1}, s);
    }
    hosts(&m, (node_id){m.num - 1}, 1);
    route_and_judge(done(&m), "a star and a chain");
}

// Lanes that are wrong are found out.
static void test_proof(void **state)
{
    (void)state;
    const struct fabric *f = grid(1, (unsigned[]){8}, true, 1);
    struct fabric_tables *t = rig_route(f, ROUTE_SSSP);
    struct verify_opts o = {0};
    struct route_proof p;
    assert_true(route_verify(f, t, &o, &p));
    for (int wrong = 0; wrong < 5; wrong++) {
        struct fabric_tables *bad = tables_copy_for(t, f, f, f->top_lid);
        struct fabric_lanes *l = lanes_new(wrong == 0 ? 7 : 8);
        for (uint32_t a = 0; a < l->num_switches; a++) {
            for (uint32_t b = 0; b < l->num_switches; b++)
                lanes_set(l, a, b, wrong == 1 ? 1 : lanes_get(t->lanes, a, b));
        }
        l->num_lanes = wrong == 4 ? 9 : t->lanes->num_lanes;
        if (wrong == 2)
            lanes_set(l, 2, 5, LANE_NONE);
        if (wrong == 3)
            lanes_set(l, 2, 5, 7);
        tables_set_lanes(bad, l);
        assert_false(route_verify(f, bad, &o, &p));
        assert_int_equal(p.fault, wrong == 1 ? ROUTE_CREDIT_LOOP : ROUTE_NO_LANE);
        assert_int_equal(p.credit_loop, wrong == 1);
        const char *says[] = {"of another fabric",
                              "credit loop on lane 1 over 8 cables: ", "no lane for this pair",
                              ": lane 7, there are 2", "too many"};
        if (!strstr(p.counter_example, says[wrong]))
            fail_msg("%s", p.counter_example);
        if (wrong == 1) {
            assert_non_null(strstr(p.counter_example, "sw3["));
            assert_non_null(strstr(p.counter_example, "back to the first"));
            o.allow_credit_loops = true;
            assert_true(route_verify(f, bad, &o, &p));
            assert_true(p.credit_loop);
            o.allow_credit_loops = false;
        }
        tables_unref(bad);
    }
    // Without its lanes it is one lane, with a cycle.
    struct fabric_tables *one = tables_copy_for(t, f, f, f->top_lid);
    tables_set_lanes(one, NULL);
    assert_false(route_verify(f, one, &o, &p));
    assert_int_equal(p.fault, ROUTE_CREDIT_LOOP);
    tables_unref(one);
    tables_unref(t);
    fabric_unref(f);
}

// Tables that keep to the whole fabric's while it is damaged, and lanes for them.
static void repair(const struct fabric *f, unsigned faults, struct rng *r, unsigned *anew)
{
    struct route_opts o = {.engine = ROUTE_SSSP};
    struct route_result ideal, now;
    struct rig_fault x[8];
    struct err e = {0};
    assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
    for (unsigned i = 0; i < faults; i++)
        rig_fault_make(f, r, &x[i]);
    const struct fabric *live = rig_live(f, x, faults);
    assert_int_equal(route_repair(f, &ideal, live, &o, &now, &e), 0);
    struct fabric_tables *t = tables_copy_for(now.tables, live, live, now.tables->top_lid);
    struct fabric_lanes *l = NULL;
    uint64_t moved = 0;
    int rc = rsssp_mend(f, ideal.tables, live, t, rsssp_lanes(live, &o), &l, &moved, &e);
    if (rc == 0) {
        tables_set_lanes(t, l);
        judge_all(live, t);
        if (faults == 0) {
            assert_true(lanes_equal(l, ideal.tables->lanes));
            assert_int_equal(moved, 0);
        }
        uint64_t other = 0, pairs = 0;
        for (uint32_t a = 0; a < live->num_switches; a++) {
            for (uint32_t b = 0; b < a; b++) {
                uint32_t fa = fabric_by_guid(f, fabric_switch(live, a)->guid)->sw;
                uint32_t fb = fabric_by_guid(f, fabric_switch(live, b)->guid)->sw;
                unsigned lane = lanes_get(l, a, b);
                pairs += lane != LANE_NONE;
                other += lane != LANE_NONE && lane != lanes_get(ideal.tables->lanes, fa, fb);
            }
        }
        assert_int_equal(other, moved);
        assert_true(moved * 4 <= pairs);
    } else {
        assert_int_equal(rc, -ENOSPC);
        assert_null(l);
        assert_non_null(strstr(e.text, "virtual lanes"));
        (*anew)++;
    }
    tables_unref(t);
    tables_unref(now.tables);
    tables_unref(ideal.tables);
    fabric_unref(live);
    fabric_unref(f);
}

static void test_mended(void **state)
{
    (void)state;
    struct rng r;
    unsigned anew = 0;
    rng_init(&r, 23);
    for (unsigned i = 0; i < 8; i++) {
        repair(grid(2, (unsigned[]){8, 7}, true, 2), i, &r, &anew);
        repair(grid(3, (unsigned[]){4, 4, 3}, false, 1), i, &r, &anew);
        repair(rig_random(&r, 30, 40), i, &r, &anew);
        repair(dragonfly(4, 1, 2), i, &r, &anew);
        repair(rig_named("ft3-8-4"), i, &r, &anew);
    }
    print_message("repairs for which 8 lanes do not suffice: %u of 40\n", anew);
    assert_true(anew <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids),         cmocka_unit_test(test_damaged_torus),
        cmocka_unit_test(test_irregular),     cmocka_unit_test(test_trees),
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_renumbered),
        cmocka_unit_test(test_small_changes), cmocka_unit_test(test_too_few_lanes),
        cmocka_unit_test(test_hostile),       cmocka_unit_test(test_proof),
        cmocka_unit_test(test_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
