// SPDX-License-Identifier: Apache-2.0
// Several LIDs a port (LMC): they are for taking different ways.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "routing/quality.h"
#include "tests/unit/routing/rig.h"

struct spread {
    uint64_t ranges, apart; // (leaf, port elsewhere); all its LIDs by as many ports as can be
    uint64_t ports, most;   // sums: of different ports, and of what can be
    double fullest;         // of leaves' cables up: LIDs over it, beside the mean of its leaf
};

static const struct node *beyond(const struct fabric *f, const struct node *n, unsigned num)
{
    const struct node *w = fabric_peer_node(f, &f->port[n->first_port + num]);
    return w && w->type == NODE_SWITCH ? w : NULL;
}

// Steps from every switch to one leaf, up and then down by tiers.
static void distances(const struct fabric *f, uint32_t leaf, uint32_t *ret)
{
    memset(ret, 0x3f, f->num_switches * sizeof(*ret));
    ret[leaf] = 0;
    for (unsigned pass = 0; pass < 2;
         pass++) { // those that go down, from below; those that go up, from above
        for (unsigned level = 0; level < 4; level++) {
            for (uint32_t s = 0; s < f->num_switches; s++) {
                const struct node *n = fabric_switch(f, s);
                if (n->tier != (pass == 0 ? level : 3 - level))
                    continue;
                for (unsigned num = 1; num <= n->num_ports; num++) {
                    const struct node *w = beyond(f, n, num);
                    if (w && (pass == 0 ? w->tier < n->tier : w->tier > n->tier) && ret[w->sw] + 1 < ret[s])
                        ret[s] = ret[w->sw] + 1;
                }
            }
        }
    }
}

static void look_at(const struct fabric *f, const struct fabric_tables *t, const struct port *p, uint32_t end,
                    const uint32_t *dist, struct spread *x)
{
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *leaf = fabric_switch(f, s);
        bool used[256] = {false};
        uint32_t lids = 1u << p->a.lmc, ports = 0, most = 0;
        if (leaf->tier != 0 || s == end || dist[s] > 100)
            continue;
        for (unsigned num = 1; num <= leaf->num_ports; num++) {
            const struct node *w = beyond(f, leaf, num);
            most += w && w->tier > leaf->tier && dist[w->sw] + 1 == dist[s];
        }
        most = lids < most ? lids : most;
        for (uint32_t k = 0; k < lids; k++) {
            uint8_t out = tables_port(t, s, (uint16_t)(p->a.lid + k));
            ports += !used[out];
            used[out] = true;
        }
        x->ranges++;
        x->apart += ports >= most;
        x->ports += ports;
        x->most += most;
    }
}

static double fullest(const struct fabric *f, const struct fabric_tables *t, const struct node *leaf)
{
    uint32_t load[256] = {0}, ups = 0, most = 0, sum = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (fabric_node(f, p->node)->role != ROLE_HOST || fabric_peer_node(f, p) == leaf)
            continue;
        for (uint32_t k = 0; k < 1u << p->a.lmc; k++)
            load[tables_port(t, leaf->sw, (uint16_t)(p->a.lid + k))]++;
    }
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *w = beyond(f, leaf, num);
        ups += w && w->tier > leaf->tier;
        sum += load[num];
        most = load[num] > most ? load[num] : most;
    }
    return ups > 0 ? (double)most * ups / sum : 0;
}

static struct spread look(const struct fabric *f, const struct fabric_tables *t)
{
    struct spread x = {0};
    for (uint32_t s = 0; s < f->num_switches; s++) {
        double full = fabric_switch(f, s)->tier == 0 ? fullest(f, t, fabric_switch(f, s)) : 0;
        x.fullest = full > x.fullest ? full : x.fullest;
    }
    uint32_t *dist = calloc(f->num_switches + 1, sizeof(*dist)), of = ID_NONE;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *at = fabric_peer_node(f, p);
        if (fabric_node(f, p->node)->role != ROLE_HOST || !at || at->type != NODE_SWITCH)
            continue;
        if (of != at->sw)
            distances(f, at->sw, dist);
        of = at->sw;
        look_at(f, t, p, at->sw, dist, &x);
    }
    free(dist);
    return x;
}

static const enum route_engine engines[] = {ROUTE_RAIL, ROUTE_UPDN};

static void expect(const struct spread *x, double share, double full, const char *what, enum route_engine e,
                   unsigned lmc)
{
    assert_true(x->ranges > 100);
    if ((double)x->apart < share * (double)x->ranges)
        fail_msg("%s, %s, LMC %u: %lu of %lu ranges by fewer ports than they could: %lu of %lu", what,
                 route_engine_name(e), lmc, (unsigned long)(x->ranges - x->apart), (unsigned long)x->ranges,
                 (unsigned long)x->ports, (unsigned long)x->most);
    if (x->fullest > full)
        fail_msg("%s, %s, LMC %u: a cable up with %.3f of the mean", what, route_engine_name(e), lmc,
                 x->fullest);
}

static void whole(void **state)
{
    static const char *const names[] = {"rail-64", "rail-256", "ft3-8-4", "ft3-16-4", "superpod-2"};
    for (unsigned k = 0; k < 2 * 3 * sizeof(names) / sizeof(names[0]); k++) {
        enum route_engine e = engines[k % 2];
        unsigned lmc = 1 + k / 2 % 3;
        const struct fabric *f = rig_lids(rig_named(names[k / 6]), lmc);
        struct fabric_tables *t = rig_route(f, e);
        rig_prove(f, t);
        struct spread x = look(f, t);
        expect(&x, 1, 1.15, names[k / 6], e, lmc);
        tables_unref(t);
        fabric_unref(f);
    }
}

// Cables dead: made anew all are apart that can be; kept to, those that moved keep away from those that did
// not, and seldom meet each other.
static void damaged(void **state)
{
    struct rng r;
    rng_init(&r, 41);
    for (unsigned k = 0; k < 12; k++) {
        enum route_engine e = engines[k % 2];
        unsigned lmc = 1 + k / 2 % 3;
        const struct fabric *f = rig_lids(rig_named(k < 6 ? "ft3-16-4" : "rail-256"), lmc);
        struct route_opts o = {.engine = e};
        struct route_result ideal, kept;
        struct err err;
        assert_int_equal(route_compute(f, &o, &ideal, &err), 0);
        const struct fabric *live = rig_degrade(fabric_ref(f), 3, &r);
        assert_int_equal(route_repair(f, &ideal, live, &o, &kept, &err), 0);
        rig_prove(live, kept.tables);
        assert_true(kept.displaced > 100);
        struct spread x = look(live, kept.tables);
        expect(&x, 0.99, 1.6, "kept to", e, lmc);
        struct fabric_tables *t = rig_route(live, e);
        rig_prove(live, t);
        x = look(live, t);
        expect(&x, 1, 1.6, "made anew", e, lmc);
        tables_unref(t);
        tables_unref(kept.tables);
        tables_unref(ideal.tables);
        fabric_unref(live);
        fabric_unref(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests_name("routing/lmc", tests, NULL, NULL);
}
