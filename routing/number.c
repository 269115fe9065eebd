// SPDX-License-Identifier: Apache-2.0
// Sequence numbers of destinations, of which the engines take the modulo (Dmodc: Gliksberg et al., IEEE Micro
// 40(1), 2020).
//
// Hosts: leaf by leaf, leaves that are near each other (a pod) side by side, within that by name; on a leaf
// by slot, so that hosts which are absent leave holes and the slots of all leaves stay aligned with the
// uplinks. Other end nodes (aggregation nodes, gateways) and the switches' own LIDs have sequences of their
// own, so that they do not skew the hosts'. The further LIDs of an LMC range follow their base.
#include "routing/route_priv.h"

#include <stdlib.h>
#include <string.h>

struct naming {
    const struct rgraph *g;
    const struct rorder *o;
    const bool *leaf;
};

// Leaves first, then by level, name (numbers as numbers) and GUID.
static int switch_cmp(const void *a, const void *b, void *arg)
{
    const struct naming *c = arg;
    const struct fabric *f = c->g->f;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (c->leaf[x] != c->leaf[y])
        return c->leaf[x] ? -1 : 1;
    if (c->o->tiered[c->g->comp[x]] && c->o->tiered[c->g->comp[y]] && c->o->rank[x] != c->o->rank[y])
        return c->o->rank[x] < c->o->rank[y] ? -1 : 1;
    int r = strverscmp(fabric_desc(f, fabric_switch(f, x)), fabric_desc(f, fabric_switch(f, y)));
    if (r)
        return r;
    return c->g->guid[x] < c->g->guid[y] ? -1 : c->g->guid[x] > c->g->guid[y];
}

// Takes the leaves in order; with each, those that share a neighbour with it.
static void cluster(const struct rgraph *g, const bool *leaf, const uint32_t *order, uint32_t num,
                    struct arena *a, uint32_t *ret)
{
    uint32_t *mark = ARENA_NEW_N(a, g->n + 1, uint32_t), n = 0;
    bool *done = ARENA_NEW_N(a, g->n + 1, bool);
    for (uint32_t i = 0; i < num; i++) {
        uint32_t v = order[i];
        if (done[v])
            continue;
        mark[v] = i + 1;
        for (uint32_t e = g->goff[v]; e < g->goff[v + 1]; e++) {
            uint32_t w = g->g[e].peer;
            for (uint32_t k = g->goff[w]; k < g->goff[w + 1]; k++)
                mark[g->g[k].peer] = i + 1;
        }
        for (uint32_t k = i; k < num; k++) {
            uint32_t x = order[k];
            if (leaf[x] && !done[x] && mark[x] == i + 1) {
                done[x] = true;
                ret[n++] = x;
            }
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

// Numbers a leaf's hosts may take: where they fill its uplinks, so many that each leaf begins at the same
// uplink; where they leave some over, just as many as there are, so that all uplinks get a turn.
static uint32_t stride_unit(const struct rgraph *g, const struct rorder *o, const uint32_t *leaf,
                            uint32_t num)
{
    uint32_t widths[256] = {0}, ups[256] = {0};
    for (uint32_t i = 0; i < num; i++) {
        widths[width_of(g, leaf[i]) & 255]++;
        ups[uplinks_of(g, o, leaf[i])]++;
    }
    uint32_t w = most_common(widths), u = most_common(ups);
    return w * 8 < u * 7 ? w : u;
}

static void number_hosts(struct rgraph *g, const struct rorder *o, const uint32_t *leaf, uint32_t num)
{
    uint32_t unit = stride_unit(g, o, leaf, num), base = 0;
    for (uint32_t l = 0; l < num; l++) {
        uint32_t s = leaf[l];
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            if (g->d[i].is_host)
                g->d[i].seq = base + g->d[i].slot + g->d[i].lid_offset;
        }
        base += (width_of(g, s) + unit - 1) / unit * unit;
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

uint32_t *rnumbers_assign(struct rgraph *g, const struct rorder *o, struct arena *a)
{
    bool *leaf = ARENA_NEW_N(a, g->n + 1, bool);
    uint32_t *order = ARENA_NEW_N(a, g->n + 1, uint32_t), num = 0;
    for (uint32_t s = 0; s < g->n; s++) {
        leaf[s] = g->hosts[s] > 0 && (o->foot[s] || !o->tiered[g->comp[s]]);
        num += leaf[s];
        order[s] = s;
    }
    struct naming c = {g, o, leaf};
    qsort_r(order, g->n, sizeof(*order), switch_cmp, &c);
    uint32_t *ret = arena_memdup(a, order, (g->n + 1) * sizeof(*order));
    cluster(g, leaf, order, num, a, ret);
    number_hosts(g, o, ret, num);
    number_others(g, ret, leaf);
    return ret;
}
