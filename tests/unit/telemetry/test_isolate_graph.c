// SPDX-License-Identifier: Apache-2.0
// Isolation: the decision against brute force on random graphs, and caps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/isolate.h"

static struct isolate_opts defaults(void)
{
    struct isolate_opts o;
    isolate_opts_default(&o);
    return o;
}

static uint32_t root_of(uint32_t *up, uint32_t n)
{
    while (up[n] != n)
        n = up[n];
    return n;
}

// Parts that usable links make, without e; end nodes pass nothing on.
static bool joined(const struct isolate_graph *g, uint32_t e, uint32_t a, uint32_t b)
{
    uint32_t up[64];
    for (uint32_t n = 0; n < g->num_nodes; n++)
        up[n] = n;
    for (uint32_t i = 0; i < g->num_edges; i++) {
        const struct isolate_edge *x = &g->edge[i];
        if (i != e && x->usable && g->node[x->a].forwards && g->node[x->b].forwards)
            up[root_of(up, x->a)] = root_of(up, x->b);
    }
    return root_of(up, a) == root_of(up, b);
}

static void random_graph(struct rng *r, struct isolate_graph *g)
{
    uint32_t switches = 2 + rng_below(r, 12), hosts = rng_below(r, 12);
    *g = (struct isolate_graph){.num_nodes = switches + hosts};
    g->node = xcalloc(g->num_nodes, sizeof(*g->node));
    g->edge = xcalloc(400, sizeof(*g->edge));
    for (uint32_t n = 0; n < g->num_nodes; n++)
        g->node[n] = (struct isolate_node){
            .forwards = n < switches,
            .tier = n < switches ? (uint8_t)(rng_below(r, 8) ? rng_below(r, 3) : TIER_NONE) : TIER_NONE,
            .host = n < switches      ? ID_NONE
                    : rng_below(r, 4) ? rng_below(r, 4)
                                      : ID_NONE};
    for (uint32_t n = switches; n < g->num_nodes; n++)
        g->edge[g->num_edges++] = (struct isolate_edge){n, rng_below(r, switches), rng_below(r, 6) > 0, true};
    for (uint32_t i = 0, m = switches - 1 + rng_below(r, 3 * switches); i < m; i++) {
        uint32_t a = rng_below(r, switches), b = rng_below(r, switches);
        g->edge[g->num_edges++] = (struct isolate_edge){a, b, rng_below(r, 6) > 0, rng_below(r, 9) > 0};
    }
    g->isolated = rng_below(r, 12);
    isolate_graph_index(g);
}

static bool uplink(const struct isolate_graph *g, uint32_t i, uint32_t n)
{
    const struct isolate_edge *x = &g->edge[i];
    if (x->a != n && x->b != n)
        return false;
    const struct isolate_node *far = &g->node[x->a == n ? x->b : x->a], *own = &g->node[n];
    return far->forwards && (own->tier == TIER_NONE || far->tier > own->tier);
}

// What decide() must say, by looking at everything.
static enum isolate_verdict expected(const struct isolate_graph *g, uint32_t e, const struct isolate_opts *o)
{
    const struct isolate_edge *x = &g->edge[e];
    uint32_t end[2] = {x->a, x->b}, cap = o->cap_links;
    for (int i = 0; i < 2; i++) {
        const struct isolate_node *n = &g->node[end[i]];
        uint32_t others = 0;
        if (n->forwards)
            continue;
        if (o->hosts == ISOLATE_HOSTS_NEVER)
            return ISOLATE_HOST;
        for (uint32_t k = 0; k < g->num_edges; k++)
            for (int s = 0; s < 2; s++) {
                uint32_t v = s ? g->edge[k].a : g->edge[k].b;
                others += k != e && g->edge[k].usable &&
                          (v == end[i] || (n->host != ID_NONE && g->node[v].host == n->host));
            }
        if (o->hosts == ISOLATE_HOSTS_SPARE && others == 0)
            return ISOLATE_LAST;
    }
    bool trunk = g->node[x->a].forwards && g->node[x->b].forwards;
    if (trunk && !joined(g, e, x->a, x->b))
        return ISOLATE_SPLITS;
    for (int i = 0; i < 2 && trunk; i++) {
        double all = 0, left = 0;
        for (uint32_t k = 0; k < g->num_edges; k++) {
            if (!uplink(g, k, end[i]))
                continue;
            // A link from a switch to itself is seen from both its ends.
            int times = g->edge[k].a == g->edge[k].b ? 2 : 1;
            all += times * (g->edge[k].counts || g->edge[k].usable);
            left += times * (k != e && g->edge[k].usable);
        }
        if (uplink(g, e, end[i]) && left < o->keep_uplinks * all - 1e-9)
            return ISOLATE_UPLINKS;
    }
    if (o->cap_share * g->num_edges > cap)
        cap = (uint32_t)(o->cap_share * g->num_edges);
    return g->isolated >= cap ? ISOLATE_CAP : ISOLATE_YES;
}

static void random_graphs(void **state)
{
    struct rng r;
    unsigned seen[ISOLATE_REFUSED + 1] = {0};
    char why[240];
    (void)state;
    rng_init(&r, 21);
    for (int round = 0; round < 4000; round++) {
        struct isolate_graph g;
        struct isolate_opts o = defaults();
        o.hosts = (enum isolate_hosts)rng_below(&r, 3);
        o.keep_uplinks = rng_below(&r, 2) ? 0.75 : 0.3;
        o.cap_links = rng_below(&r, 2) ? 10 : 6;
        o.cap_share = rng_below(&r, 3) ? 0.005 : 0.3;
        random_graph(&r, &g);
        for (uint32_t e = 0; e < g.num_edges; e++) {
            if (!g.edge[e].usable)
                continue;
            enum isolate_verdict v = isolate_decide(&g, e, &o, why, sizeof(why)), want = expected(&g, e, &o);
            if (v != want)
                fail_msg("round %d, edge %u: %s, not %s", round, e, isolate_verdict_name(v),
                         isolate_verdict_name(want));
            assert_true((why[0] != 0) == (v != ISOLATE_YES));
            seen[v]++;
        }
        isolate_graph_done(&g);
    }
    assert_true(seen[ISOLATE_YES] > 100 && seen[ISOLATE_HOST] > 100 && seen[ISOLATE_LAST] > 100 &&
                seen[ISOLATE_SPLITS] > 100 && seen[ISOLATE_UPLINKS] > 100 && seen[ISOLATE_CAP] > 100);
}

// Taking out everything that may be taken out, one by one, leaves who was joined joined.
static void one_after_the_other(void **state)
{
    struct rng r;
    char why[240];
    (void)state;
    rng_init(&r, 22);
    for (int round = 0; round < 500; round++) {
        struct isolate_graph g;
        struct isolate_opts o = defaults();
        bool before[64][64];
        o.keep_uplinks = 0;
        o.cap_links = 1000;
        random_graph(&r, &g);
        for (uint32_t a = 0; a < g.num_nodes; a++)
            for (uint32_t b = 0; b < g.num_nodes; b++)
                before[a][b] = joined(&g, ID_NONE, a, b);
        for (uint32_t e = 0; e < g.num_edges; e++) {
            if (!g.edge[e].usable || isolate_decide(&g, e, &o, why, sizeof(why)) != ISOLATE_YES)
                continue;
            g.edge[e].usable = false;
            g.isolated++;
        }
        for (uint32_t a = 0; a < g.num_nodes; a++)
            for (uint32_t b = 0; b < g.num_nodes; b++)
                assert_int_equal(joined(&g, ID_NONE, a, b), before[a][b]);
        isolate_graph_done(&g);
    }
}

static void caps(void **state)
{
    struct isolate_opts o = defaults();
    (void)state;
    assert_int_equal(isolate_cap(&o, 0), 10);
    assert_int_equal(isolate_cap(&o, 2000), 10);
    assert_int_equal(isolate_cap(&o, 2048), 10);
    assert_int_equal(isolate_cap(&o, 4000), 20);
    assert_int_equal(isolate_cap(&o, 65536), 327);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(caps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
