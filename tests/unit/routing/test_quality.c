// SPDX-License-Identifier: Apache-2.0
// Quality figures against paths walked one by one, on fabrics of any shape and tables of any kind; and what
// they must not depend on.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/xalloc.h"
#include "routing/quality.h"
#include "tests/unit/routing/rig.h"

static void near(const char *what, double a, double b)
{
    if (fabs(a - b) > 1e-9 * (1 + fabs(b)))
        fail_msg("%s: %.12g, should be %.12g", what, a, b);
}

// --- all-to-all, path by path ---

struct recount {
    uint64_t *load; // by port index
    uint64_t flows, failed, max;
    double mean, worst;
};

static uint32_t hosts_of(const struct fabric *f, uint32_t *ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *z = fabric_peer_node(f, p);
        if (f->node[p->node.i].type == NODE_CA && f->node[p->node.i].role != ROLE_AGGREGATION && z &&
            z->type == NODE_SWITCH)
            ret[n++] = i;
    }
    return n;
}

// Walks one path; adds 1 to what it crosses, or finds the most.
static bool walk(const struct fabric *f, const struct fabric_tables *t, uint32_t from, uint32_t to,
                 uint64_t *load, uint64_t *most)
{
    struct route_hop hop[ROUTE_MAX_HOPS];
    uint32_t n = 0;
    struct err e = {0};
    if (route_trace(f, t, (port_id){from}, f->port[to].a.lid, hop, &n, &e) != 0)
        return false;
    for (uint32_t i = 1; i + 2 < n; i++) { // ends, and the last switch, send over no trunk
        uint32_t c = f->node[hop[i].node].first_port + hop[i].out;
        if (most)
            *most = load[c] > *most ? load[c] : *most;
        else
            load[c]++;
    }
    return true;
}

static void recount(const struct fabric *f, const struct fabric_tables *t, struct recount *r)
{
    uint32_t *host = xcalloc(f->num_ports, sizeof(*host)), n = hosts_of(f, host);
    *r = (struct recount){.load = xcalloc(f->num_ports, sizeof(uint64_t)), .worst = 1};
    for (uint32_t i = 0; i < n * n; i++) {
        bool there = i / n != i % n && walk(f, t, host[i / n], host[i % n], r->load, NULL);
        r->flows += there;
        r->failed += i / n != i % n && !there;
    }
    for (uint32_t i = 0; i < n * n; i++) {
        uint64_t most = n - 1;
        if (i / n == i % n || !walk(f, t, host[i / n], host[i % n], r->load, &most))
            continue;
        double bw = (double)(n - 1) / (double)most;
        r->mean += bw / (double)r->flows;
        r->worst = bw < r->worst ? bw : r->worst;
        r->max = most > n - 1 ? most : r->max;
    }
    for (uint32_t i = 0; i < f->num_ports; i++)
        r->max = r->load[i] > r->max ? r->load[i] : r->max;
    free(host);
}

static void check_alltoall(const struct fabric *f, const struct fabric_tables *t)
{
    struct quality_opts o = {.par = &rig_par};
    struct route_quality q;
    struct recount r;
    recount(f, t, &r);
    route_quality(f, t, &o, &q);
    if (q.hosts < 2) {
        assert_non_null(q.alltoall.absent);
        assert_non_null(q.shift.absent);
    } else {
        assert_null(q.alltoall.absent);
        assert_int_equal(q.alltoall.flows, r.flows);
        assert_int_equal(q.alltoall.failed, r.failed);
        assert_int_equal(q.alltoall.max, r.max);
        near("mean", q.alltoall.mean, r.flows ? r.mean : 0);
        near("worst", q.alltoall.worst, r.flows ? r.worst : 0);
        if (r.max > 0)
            assert_int_equal(r.load[f->node[q.alltoall.link.node].first_port + q.alltoall.link.port], r.max);
        else
            assert_int_equal(q.alltoall.link.node, ID_NONE);
    }
    free(r.load);
}

static void any_shape(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 11);
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_random(&r, 1 + rng_below(&r, 12), rng_below(&r, 20));
        if (i % 3 == 0)
            f = rig_degrade(f, 30, &r);
        struct fabric_tables *t = rig_route(f, i % 2 ? ROUTE_UPDN : ROUTE_MINHOP);
        check_alltoall(f, t);
        tables_unref(t);
        fabric_unref(f);
    }
}

// Entries that lead nowhere, in circles, to other hosts, to ports there are not.
static void broken_tables(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 12);
    for (unsigned i = 0; i < 60; i++) {
        const struct fabric *f = rig_random(&r, 2 + rng_below(&r, 8), rng_below(&r, 10));
        struct fabric_tables *good = rig_route(f, ROUTE_UPDN);
        struct fabric_tables *t = tables_copy_for(good, f, f, i % 5 == 0 ? 1 : f->top_lid);
        for (unsigned k = 0; k < (i % 3 == 0 ? 5000 : 4); k++)
            t->lft[rng_below(&r, t->num_switches * t->lids)] = (uint8_t)rng_below(&r, 256);
        tables_seal(t, false);
        check_alltoall(f, t);
        tables_unref(t);
        tables_unref(good);
        fabric_unref(f);
    }
}

// --- what figures must not depend on ---

static void same_link(const struct fabric *f, const struct quality_link *a, const struct fabric *g,
                      const struct quality_link *b)
{
    assert_int_equal(a->node == ID_NONE, b->node == ID_NONE);
    assert_int_equal(a->load, b->load);
    if (a->node == ID_NONE)
        return;
    assert_int_equal(f->node[a->node].guid, g->node[b->node].guid);
    assert_int_equal(a->port, b->port);
}

static void same_flows(const struct fabric *f, const struct quality_flows *a, const struct fabric *g,
                       const struct quality_flows *b)
{
    assert_int_equal(a->absent == NULL, b->absent == NULL);
    assert_int_equal(a->patterns, b->patterns);
    assert_int_equal(a->flows, b->flows);
    assert_int_equal(a->max_load, b->max_load);
    assert_true(a->mean == b->mean && a->worst == b->worst && a->worst_flow == b->worst_flow);
    same_link(f, &a->link, g, &b->link);
}

static void same_quality(const struct fabric *f, const struct route_quality *a, const struct fabric *g,
                         const struct route_quality *b)
{
    same_flows(f, &a->same_rail_shift, g, &b->same_rail_shift);
    same_flows(f, &a->slot_shift, g, &b->slot_shift);
    same_flows(f, &a->ring, g, &b->ring);
    same_flows(f, &a->shift, g, &b->shift);
    same_flows(f, &a->permutation, g, &b->permutation);
    assert_int_equal(a->alltoall.max, b->alltoall.max);
    assert_true(a->alltoall.max_over_mean == b->alltoall.max_over_mean);
    near("all-to-all", a->alltoall.mean, b->alltoall.mean);
    same_link(f, &a->alltoall.link, g, &b->alltoall.link);
}

static void depends_on_nothing_else(void **state)
{
    static const char *const name[] = {"rail-512", "ft3-8-4", "ft3-16-4"};
    struct rng r;
    (void)state;
    rng_init(&r, 13);
    for (unsigned i = 0; i < 3; i++) {
        const struct fabric *f = rig_degrade(rig_named(name[i]), 5, &r), *g = rig_renumber(f, &r);
        struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
        struct fabric_tables *u = tables_copy_for(t, f, g, t->top_lid);
        struct quality_opts serial = {.par = NULL}, wide = {.par = &rig_par};
        struct route_quality a, b;
        tables_seal(u, false);
        route_quality(f, t, &serial, &a);
        route_quality(f, t, &wide, &b);
        same_quality(f, &a, f, &b);
        route_quality(g, u, &wide, &b);
        same_quality(f, &a, g, &b);
        assert_true(a.permutation.mean < 1);
        assert_true(a.permutation.link.node != ID_NONE);
        wide.seed = 5;
        route_quality(f, t, &wide, &b);
        assert_true(a.permutation.mean != b.permutation.mean);
        tables_unref(t);
        tables_unref(u);
        fabric_unref(f);
        fabric_unref(g);
    }
}

// --- patterns ---

// Two leaves of two hosts of one adapter each, one cable between them.
static const struct fabric *pair(void)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, 8, "leaf-1"), z = rig_switch(&r, 8, "leaf-2");
    rig_host(&r, a);
    rig_host(&r, a);
    rig_host(&r, z);
    rig_host(&r, z);
    rig_an(&r, z); // sends nothing
    rig_cable(&r, a, z);
    return rig_done(&r);
}

static void one_trunk(void **state)
{
    struct quality_opts o = {0};
    struct route_quality q;
    (void)state;
    const struct fabric *f = pair();
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    route_quality(f, t, &o, &q);
    assert_int_equal(q.hosts, 4);
    assert_int_equal(q.alltoall.flows, 12);
    assert_int_equal(q.alltoall.max, 4); // two hosts to two, each way
    near("worst", q.alltoall.worst, 3.0 / 4);
    near("mean", q.alltoall.mean, (4 + 8 * 3.0 / 4) / 12);
    near("even", q.alltoall.max_over_mean, 1);
    assert_string_equal(fabric_desc(f, &f->node[q.alltoall.link.node]), "leaf-1"); // the lower GUID of two
    assert_int_equal(q.alltoall.link.port, 3);
    assert_int_equal(q.shift.max_load, 2); // shift 2 sends both hosts over the cable
    near("shift", q.shift.worst, 0.5);
    tables_unref(t);
    fabric_unref(f);
}

static void what_a_fabric_has_not(void **state)
{
    struct quality_opts o = {0};
    struct route_quality q;
    (void)state;
    const struct fabric *f = rig_named("rail-64"); // one scalable unit
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    route_quality(f, t, &o, &q);
    assert_null(q.same_rail_shift.absent);
    assert_int_equal(q.same_rail_shift.patterns, 7);
    assert_non_null(strstr(q.ring.absent, "one scalable unit"));
    assert_non_null(q.slot_shift.absent);
    assert_int_equal(q.ring.patterns, 0);
    tables_unref(t);
    fabric_unref(f);

    f = pair();
    t = rig_route(f, ROUTE_UPDN);
    route_quality(f, t, &o, &q);
    assert_non_null(strstr(q.same_rail_shift.absent, "no rails"));
    assert_non_null(strstr(q.ring.absent, "no rails"));
    assert_null(q.shift.absent);

    const struct fabric *other = rig_named("rail-64"); // tables of another
    route_quality(other, t, &o, &q);
    assert_non_null(strstr(q.alltoall.absent, "another fabric"));
    assert_non_null(q.permutation.absent);
    tables_unref(t);
    fabric_unref(f);
    fabric_unref(other);
}

// A host that is missing leaves its slot empty: the others still meet no one.
static void holes_keep_their_slot(void **state)
{
    struct quality_opts o = {0};
    struct route_quality whole, q;
    (void)state;
    const struct fabric *f = rig_named("rail-1024");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    route_quality(f, t, &o, &whole);
    assert_int_equal(whole.sus, 4);
    assert_int_equal(whole.slot_shift.patterns, 32);
    assert_int_equal(whole.slot_shift.flows, 32 * 1024);
    assert_int_equal(whole.slot_shift.max_load, 1);
    assert_int_equal(whole.ring.flows, 1024);
    assert_int_equal(whole.ring.max_load, 1);
    assert_int_equal(whole.ring.link.node, ID_NONE);
    near("ring", whole.ring.mean, 1);

    struct builder *b = builder_from(f);
    for (uint32_t i = 0, k = 0; i < f->num_nodes && k < 8; i++) {
        if (f->node[i].type == NODE_CA && f->node[i].su == 1 && f->node[i].host % 32 == 5) {
            builder_unlink(b, (node_id){i}, 1);
            k++;
        }
    }
    const struct fabric *g = builder_seal(b, f->generation + 1, NULL);
    struct fabric_tables *u = tables_copy_for(t, f, g, t->top_lid);
    tables_seal(u, false);
    route_quality(g, u, &o, &q);
    assert_int_equal(q.hosts, 1024 - 8);
    assert_int_equal(q.ring.flows, 1024 - 16); // neither to nor from what is missing
    assert_int_equal(q.slot_shift.flows, 32 * (1024 - 16));
    assert_int_equal(q.slot_shift.max_load, 1);
    assert_int_equal(q.slot_shift.failed, 0);
    tables_unref(t);
    tables_unref(u);
    fabric_unref(f);
    fabric_unref(g);
}

// With every shift looked at the worst cannot be better, and a sound table has none that meet.
static void all_shifts(void **state)
{
    struct quality_opts some = {.par = &rig_par}, all = {.par = &rig_par, .all_shifts = true};
    struct route_quality a, b;
    (void)state;
    const struct fabric *f = rig_named("rail-512");
    struct fabric_tables *t = rig_route(f, ROUTE_MINHOP);
    route_quality(f, t, &some, &a);
    route_quality(f, t, &all, &b);
    assert_int_equal(a.same_rail_shift.patterns, 24);
    assert_int_equal(b.same_rail_shift.patterns, 63);
    assert_true(b.same_rail_shift.worst <= a.same_rail_shift.worst);
    assert_true(b.same_rail_shift.max_load >= a.same_rail_shift.max_load);
    tables_unref(t);
    t = rig_route(f, ROUTE_UPDN);
    route_quality(f, t, &all, &b);
    assert_int_equal(b.same_rail_shift.max_load, 1);
    near("pristine", b.same_rail_shift.worst, 1);
    tables_unref(t);
    fabric_unref(f);
}

// --- a job ---

// On the pair: ranks that alternate between the leaves send everything over the one cable.
static void job_on_one_trunk(void **state)
{
    struct route_job_quality q;
    uint32_t host[10], port[10];
    (void)state;
    const struct fabric *f = pair();
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    assert_int_equal(hosts_of(f, host), 4);
    for (unsigned i = 0; i < 4; i++) // twice the same, a switch's port, one there is not: left out
        port[i] = host[i % 2 ? 2 + i / 2 : i / 2];
    port[4] = host[0];
    port[5] = f->node[f->switch_node[0]].first_port;
    port[6] = f->num_ports + 7;
    route_quality_job(f, t, port, 7, &rig_par, &q);
    assert_int_equal(q.adapters, 4);
    assert_int_equal(q.rails, 1);
    assert_int_equal(q.ring.flows, 4);
    assert_int_equal(q.ring.max_load, 2);
    near("ring", q.ring.mean, 0.5);
    assert_int_equal(q.ring.blamed, 2); // the cable, each way
    assert_int_equal(q.ring.num_links, 2);
    assert_string_equal(fabric_desc(f, &f->node[q.ring.link[0].node]), "leaf-1");
    assert_int_equal(q.ring.link[0].port, 3);
    assert_int_equal(q.ring.link[0].load, 2);
    // Two trees of three edges, both ways; whoever sends over the cable has a fuller one of its own.
    assert_int_equal(q.tree.flows, 12);
    assert_int_equal(q.tree.max_load, 4);
    near("tree", q.tree.worst, 1);
    assert_int_equal(q.tree.blamed, 0);
    assert_int_equal(q.alltoall.max_load, 4);
    near("all-to-all", q.alltoall.worst, 3.0 / 4);
    assert_int_equal(q.alltoall.num_links, 2);
    near("all-to-all of the rail", q.rail_alltoall.mean, q.alltoall.mean);

    port[1] = host[1]; // neighbours next to each other: one flow over the cable, and one back
    port[2] = host[2];
    port[3] = host[3];
    route_quality_job(f, t, port, 4, NULL, &q);
    assert_int_equal(q.ring.max_load, 1);
    assert_int_equal(q.ring.blamed, 0);
    near("ring", q.ring.mean, 1);
    route_quality_job(f, t, port, 1, NULL, &q);
    assert_non_null(q.ring.absent);
    tables_unref(t);
    fabric_unref(f);
}

// A job of all hosts is what the fabric's own figures are of.
static void job_of_all(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 14);
    for (unsigned i = 0; i < 4; i++) {
        const struct fabric *f = rig_degrade(rig_named(i % 2 ? "ft3-8-4" : "rail-512"), i < 2 ? 0 : 10, &r);
        struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
        uint32_t *host = xcalloc(f->num_ports, sizeof(*host)), n = hosts_of(f, host);
        struct quality_opts o = {.par = NULL};
        struct route_quality all;
        struct route_job_quality q, serial;
        route_quality(f, t, &o, &all);
        route_quality_job(f, t, host, n, &rig_par, &q);
        route_quality_job(f, t, host, n, NULL, &serial);
        assert_int_equal(q.adapters, n);
        assert_int_equal(q.rails, 8);
        assert_int_equal(q.alltoall.max_load, all.alltoall.max);
        near("mean", q.alltoall.mean, all.alltoall.mean);
        near("worst", q.alltoall.worst, all.alltoall.worst);
        assert_int_equal(q.rail_alltoall.flows, (uint64_t)n * (n / 8 - 1));
        assert_true(q.rail_alltoall.mean <= 1 && q.rail_alltoall.worst <= q.rail_alltoall.mean);
        assert_int_equal(q.tree.flows, 4 * (n - 8));
        near("tree", q.tree.mean, serial.tree.mean);
        assert_memory_equal(q.alltoall.link, serial.alltoall.link, sizeof(q.alltoall.link));
        if (i < 2) {
            near("ring", q.ring.worst, 1);
            assert_int_equal(q.rail_alltoall.blamed + q.alltoall.blamed + q.ring.blamed, 0);
        } else {
            assert_true(q.alltoall.blamed > 0 && q.alltoall.link[0].load == q.alltoall.max_load);
            for (uint32_t k = 1; k < q.alltoall.num_links; k++)
                assert_true(q.alltoall.link[k].load <= q.alltoall.link[k - 1].load);
        }
        free(host);
        tables_unref(t);
        fabric_unref(f);
    }
}

// Loads of the ring and the rails' all-to-all, path by path, over tables of any kind.
static void job_on_any_tables(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 15);
    for (unsigned i = 0; i < 40; i++) {
        const struct fabric *f = rig_degrade(rig_named("ft3-8-4"), 10, &r);
        struct fabric_tables *good = rig_route(f, ROUTE_MINHOP);
        struct fabric_tables *t = tables_copy_for(good, f, f, f->top_lid);
        uint32_t *host = xcalloc(f->num_ports, sizeof(*host)), n = hosts_of(f, host) / 2;
        struct route_job_quality q;
        for (unsigned k = 0; k < i; k++)
            t->lft[rng_below(&r, t->num_switches * t->lids)] = (uint8_t)rng_below(&r, 256);
        tables_seal(t, false);
        route_quality_job(f, t, host, n, &rig_par, &q);
        uint64_t *load = xcalloc(f->num_ports, sizeof(*load)), flows = 0, failed = 0, most = 0;
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t z = 0; z < n; z++) {
                if (a == z || f->port[host[a]].rail != f->port[host[z]].rail)
                    continue;
                bool there = walk(f, t, host[a], host[z], load, NULL);
                flows += there;
                failed += !there;
            }
        }
        for (uint32_t k = 0; k < f->num_ports; k++)
            most = load[k] > most ? load[k] : most;
        assert_int_equal(q.rail_alltoall.flows, flows);
        assert_int_equal(q.rail_alltoall.failed, failed);
        assert_int_equal(q.rail_alltoall.max_load, most);
        assert_int_equal(q.ring.flows + q.ring.failed, n);
        free(load);
        free(host);
        tables_unref(t);
        tables_unref(good);
        fabric_unref(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape),
        cmocka_unit_test(broken_tables),
        cmocka_unit_test(depends_on_nothing_else),
        cmocka_unit_test(one_trunk),
        cmocka_unit_test(what_a_fabric_has_not),
        cmocka_unit_test(holes_keep_their_slot),
        cmocka_unit_test(all_shifts),
        cmocka_unit_test(job_on_one_trunk),
        cmocka_unit_test(job_of_all),
        cmocka_unit_test(job_on_any_tables),
    };
    return cmocka_run_group_tests_name("quality", tests, NULL, NULL);
}
