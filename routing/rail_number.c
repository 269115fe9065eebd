// SPDX-License-Identifier: Apache-2.0
// Sequence numbers for the engine rail.
#include "routing/rail_priv.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/names.h"

struct naming {
    const struct rgraph *g;
    const struct rorder *o;
    const bool *leaf;
    uint32_t *pod;
    int mode;
};

// Leaves first, then by level, name and GUID.
static int switch_cmp(const void *a, const void *b, void *arg)
{
    const struct naming *c = arg;
    const struct fabric *f = c->g->f;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (c->leaf[x] != c->leaf[y])
        return c->leaf[x] ? -1 : 1;
    if (c->o->tiered[c->g->comp[x]] && c->o->tiered[c->g->comp[y]] && c->o->rank[x] != c->o->rank[y])
        return c->o->rank[x] < c->o->rank[y] ? -1 : 1;
    int r = name_compare(fabric_desc(f, fabric_switch(f, x)), fabric_desc(f, fabric_switch(f, y)));
    if (r)
        return r;
    return c->g->guid[x] < c->g->guid[y] ? -1 : c->g->guid[x] > c->g->guid[y];
}

static int leaf_cmp(const void *a, const void *b, void *arg)
{
    const struct naming *c = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct node *m = fabric_switch(c->g->f, x), *n = fabric_switch(c->g->f, y);
    if ((c->mode & 1) == 0 && c->pod[x] != c->pod[y])
        return c->pod[x] < c->pod[y] ? -1 : 1;
    if ((c->mode & 2) == 0 && m->rail != n->rail)
        return m->rail < n->rail ? -1 : 1;
    if (m->su != n->su)
        return m->su < n->su ? -1 : 1;
    return switch_cmp(a, b, arg);
}

// Takes the leaves in order; with each, those that share most of their neighbours with it.
static void find_pods(const struct rgraph *g, const uint32_t *order, uint32_t num, struct arena *a,
                      uint32_t *pod)
{
    uint32_t *mark = ARENA_NEW_N(a, g->n + 1, uint32_t);
    for (uint32_t i = 0; i < num; i++)
        pod[order[i]] = ID_NONE;
    for (uint32_t i = 0, pods = 0; i < num; i++) {
        uint32_t v = order[i];
        if (pod[v] != ID_NONE)
            continue;
        pods++;
        for (uint32_t e = g->goff[v]; e < g->goff[v + 1]; e++)
            mark[g->g[e].peer] = pods;
        for (uint32_t k = i; k < num; k++) {
            uint32_t x = order[k], shared = 0, all = g->goff[x + 1] - g->goff[x];
            for (uint32_t e = g->goff[x]; e < g->goff[x + 1]; e++)
                shared += mark[g->g[e].peer] == pods;
            if (pod[x] == ID_NONE && (x == v || shared * 2 > all))
                pod[x] = pods;
        }
    }
}

static uint32_t width_of(const struct rgraph *g, uint32_t s)
{
    uint32_t w = 0;
    for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
        if (g->d[i].is_host && g->d[i].slot + 1 > w)
            w = g->d[i].slot + 1;
    }
    return w;
}

static uint32_t uplinks_of(const struct rgraph *g, const struct rorder *o, uint32_t s)
{
    uint32_t n = 0;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (o->rank[g->g[i].peer] > o->rank[s])
            n += g->g[i].num_ports;
    }
    return n < 255 ? n : 255;
}

static uint32_t most_common(const uint32_t hist[256])
{
    uint32_t best = 1;
    for (uint32_t i = 1; i < 256; i++) {
        if (hist[i] > hist[best] || (hist[i] == hist[best] && hist[i] > 0))
            best = i;
    }
    return best;
}

static void number_hosts(struct rgraph *g, const struct rorder *o, const uint32_t *leaf, uint32_t num,
                         int mode)
{
    uint32_t widths[256] = {0}, ups[256] = {0};
    for (uint32_t i = 0; i < num; i++) {
        widths[width_of(g, leaf[i]) & 255]++;
        ups[uplinks_of(g, o, leaf[i])]++;
    }
    uint32_t w = most_common(widths), u = most_common(ups), base = 0;
    uint32_t unit = w * 8 < u * 7 ? w : u;
    for (uint32_t l = 0; l < num; l++) {
        uint32_t s = leaf[l], n = 0;
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            if (!g->d[i].is_host)
                continue;
            if (mode & 4)
                g->d[i].seq = base + n;
            else
                g->d[i].seq = base + g->d[i].slot + g->d[i].lid_offset;
            n++;
        }
        if (mode & 8)
            base += n;
        else
            base += ((mode & 4 ? n : width_of(g, s)) + unit - 1) / unit * unit;
    }
}

static void number_others(struct rgraph *g, const uint32_t *order, const bool *leaf)
{
    uint32_t ends = 0, own = 0;
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t s = order[k], *seq;
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            struct rdest *d = &g->d[i];
            if (d->is_host && leaf[s])
                continue;
            seq = d->port == 0 ? &own : &ends;
            if (d->lid_offset == 0)
                ++*seq;
            d->seq = *seq - 1 + d->lid_offset;
        }
    }
}

uint32_t *rrail_numbers(struct rgraph *g, const struct rorder *o, struct arena *a)
{
    bool *leaf = ARENA_NEW_N(a, g->n + 1, bool);
    uint32_t *order = ARENA_NEW_N(a, g->n + 1, uint32_t), num = 0;
    for (uint32_t s = 0; s < g->n; s++) {
        leaf[s] = g->hosts[s] > 0 && (o->foot[s] || !o->tiered[g->comp[s]]);
        num += leaf[s];
        order[s] = s;
    }
    struct naming c = {g, o, leaf, ARENA_NEW_N(a, g->n + 1, uint32_t), 12};
    qsort_r(order, g->n, sizeof(*order), switch_cmp, &c);
    find_pods(g, order, num, a, c.pod);
    qsort_r(order, num, sizeof(*order), leaf_cmp, &c);
    number_hosts(g, o, order, num, c.mode);
    number_others(g, order, leaf);
    return order;
}
