// SPDX-License-Identifier: Apache-2.0
// What stands against taking a link out of traffic: a pure function of the links there are.
#include <stdio.h>
#include <stdlib.h>

#include "fabric/fabric.h"
#include "lib/xalloc.h"
#include "telemetry/isolate.h"

void isolate_graph_index(struct isolate_graph *g)
{
    g->first = xcalloc(g->num_nodes + 2, sizeof(uint32_t));
    g->of = xcalloc(2 * (size_t)g->num_edges + 1, sizeof(uint32_t));
    g->mark = xcalloc(g->num_nodes + 1, sizeof(uint32_t));
    g->queue = xcalloc(g->num_nodes + 1, sizeof(uint32_t));
    for (uint32_t e = 0; e < g->num_edges; e++) {
        g->first[g->edge[e].a + 2]++;
        g->first[g->edge[e].b + 2]++;
    }
    for (uint32_t n = 2; n < g->num_nodes + 2; n++)
        g->first[n] += g->first[n - 1];
    for (uint32_t e = 0; e < g->num_edges; e++) { // first[n + 1] runs up to its end
        g->of[g->first[g->edge[e].a + 1]++] = e;
        g->of[g->first[g->edge[e].b + 1]++] = e;
    }
}

void isolate_graph_done(struct isolate_graph *g)
{
    free(g->node);
    free(g->edge);
    free(g->first);
    free(g->of);
    free(g->mark);
    free(g->queue);
    *g = (struct isolate_graph){0};
}

uint32_t isolate_cap(const struct isolate_opts *o, uint32_t links)
{
    double share = o->cap_share * links;
    return share > o->cap_links ? (uint32_t)share : o->cap_links;
}

// Over links that work, without e, through switches alone.
static bool still_joined(struct isolate_graph *g, uint32_t e)
{
    uint32_t n = 0, at = 0, from = g->edge[e].a, to = g->edge[e].b;
    if (from == to)
        return true;
    g->stamp++;
    g->mark[from] = g->stamp;
    g->queue[n++] = from;
    while (at < n) {
        uint32_t v = g->queue[at++];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            const struct isolate_edge *x = &g->edge[g->of[i]];
            uint32_t w = x->a == v ? x->b : x->a;
            if (!x->usable || g->of[i] == e || g->mark[w] == g->stamp)
                continue;
            if (w == to)
                return true;
            g->mark[w] = g->stamp;
            if (g->node[w].forwards)
                g->queue[n++] = w;
        }
    }
    return false;
}

// Links that work of the end's host, besides e.
static bool host_has_another(const struct isolate_graph *g, uint32_t n, uint32_t e)
{
    for (uint32_t v = 0; v < g->num_nodes; v++) {
        if (v != n && (g->node[n].host == ID_NONE || g->node[v].host != g->node[n].host))
            continue;
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            if (g->of[i] != e && g->edge[g->of[i]].usable)
                return true;
    }
    return false;
}

// Towards the tier above; where there are no tiers every link between switches is one.
static bool is_uplink(const struct isolate_graph *g, const struct isolate_edge *x, uint32_t n)
{
    const struct isolate_node *own = &g->node[n], *far = &g->node[x->a == n ? x->b : x->a];
    return far->forwards && (own->tier == TIER_NONE || far->tier > own->tier);
}

static bool keeps_uplinks(const struct isolate_graph *g, uint32_t n, uint32_t e, double keep,
                          uint32_t *ret_left, uint32_t *ret_all)
{
    uint32_t left = 0, all = 0;
    if (!g->node[n].forwards || !is_uplink(g, &g->edge[e], n))
        return true;
    for (uint32_t i = g->first[n]; i < g->first[n + 1]; i++) {
        const struct isolate_edge *x = &g->edge[g->of[i]];
        if (!is_uplink(g, x, n))
            continue;
        all += x->counts || x->usable;
        left += x->usable && g->of[i] != e;
    }
    *ret_left = left;
    *ret_all = all;
    return left >= keep * all - 1e-9;
}

enum isolate_verdict isolate_decide(struct isolate_graph *g, uint32_t e, const struct isolate_opts *o,
                                    char *why, size_t size)
{
    const struct isolate_edge *x = &g->edge[e];
    uint32_t ends[2] = {x->a, x->b}, left = 0, all = 0, cap = isolate_cap(o, g->num_edges);
    why[0] = 0;
    for (int i = 0; i < 2; i++) {
        if (g->node[ends[i]].forwards)
            continue;
        if (o->hosts == ISOLATE_HOSTS_NEVER) {
            snprintf(why, size, "links of hosts are left alone (health.isolation_hosts)");
            return ISOLATE_HOST;
        }
        if (o->hosts == ISOLATE_HOSTS_SPARE && !host_has_another(g, ends[i], e)) {
            snprintf(why, size, "the host has no other link");
            return ISOLATE_LAST;
        }
    }
    bool trunk = g->node[x->a].forwards && g->node[x->b].forwards;
    if (trunk && !still_joined(g, e)) {
        snprintf(why, size, "nothing else joins its two ends");
        return ISOLATE_SPLITS;
    }
    for (int i = 0; i < 2 && trunk; i++) {
        if (!keeps_uplinks(g, ends[i], e, o->keep_uplinks, &left, &all)) {
            snprintf(why, size, "%u of %u links to the tier above would be left, %.0f %% must stay", left,
                     all, o->keep_uplinks * 100);
            return ISOLATE_UPLINKS;
        }
    }
    if (g->isolated >= cap) {
        snprintf(why, size, "%u links are isolated already, %u at most of %u", g->isolated, cap,
                 g->num_edges);
        return ISOLATE_CAP;
    }
    return ISOLATE_YES;
}
