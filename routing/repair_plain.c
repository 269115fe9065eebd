// SPDX-License-Identifier: Apache-2.0
// One destination repaired without an order of switches: shortest paths, and tables that came from elsewhere.
#include "routing/repair_priv.h"

#include <string.h>

// Of the neighbours at the given cost the port of highest weight.
static uint8_t heaviest(const struct rrepair *r, uint32_t s, uint32_t cost)
{
    const struct rgraph *g = &r->v->g;
    uint8_t port = LFT_DROP;
    uint64_t best = 0;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (r->rc.cost[g->g[i].peer] != cost || rbarred(r->v->depth, s, g->g[i].peer, r->t))
            continue;
        for (uint32_t k = 0; k < g->g[i].num_ports; k++) {
            uint8_t p = g->ports[g->g[i].first_port + k];
            uint64_t weight = rweight(r->v, s, r->lid, p);
            if (port == LFT_DROP || weight > best) {
                best = weight;
                port = p;
            }
        }
    }
    return port;
}

static void put_counted(struct rrepair *r, uint32_t s, uint8_t port)
{
    uint8_t ideal = rideal(r->v, s, r->lid);
    r->displaced += ideal != LFT_DROP && ideal != port;
    rput(r, s, port);
}

// What is nearer is legal, and nothing else.
void rrepair_minhop(struct rrepair *r, uint16_t lid, uint32_t t)
{
    const struct rlive *v = r->v;
    r->lid = lid;
    r->t = t;
    if (r->rc_for != t && v->depth)
        ravoid_hops(v, t, r->rc.cost, r->seen);
    else if (r->rc_for != t)
        rcolumn_run(&r->rc, &v->g, &v->o, t);
    r->rc_for = t;
    for (uint32_t s = 0; s < v->g.n; s++) {
        if (s == t || r->rc.cost[s] == RCOST_NONE)
            continue;
        uint32_t w = rideal_next(v, s, lid);
        bool keep = w != ID_NONE && r->rc.cost[w] < r->rc.cost[s] && !rbarred(v->depth, s, w, t);
        put_counted(r, s, keep ? rideal(v, s, lid) : heaviest(r, s, r->rc.cost[s] - 1));
    }
}

// Entries from which the walk arrives stay, each costing what its walk is long; the others go where they are
// nearest to these.
void rrepair_found(struct rrepair *r, uint16_t lid, uint32_t t, uint8_t port)
{
    const struct rlive *v = r->v;
    const struct rgraph *g = &v->g;
    uint32_t *cost = r->rc.cost, *path = r->seen, *todo = r->seen + g->n;
    (void)port;
    r->lid = lid;
    r->t = t;
    r->rc_for = ID_NONE;
    memset(cost, 0xff, g->n * sizeof(*cost));
    memset(r->rc.key, 0, g->n * sizeof(*r->rc.key)); // 1: walked over
    cost[t] = 0;
    r->rc.key[t] = 1;
    for (uint32_t s = 0; s < g->n; s++) {
        uint32_t n = 0, w = s;
        while (w != ID_NONE && r->rc.key[w] == 0) {
            r->rc.key[w] = 1;
            path[n++] = w;
            uint32_t next = rideal_next(v, w, lid);
            w = next != ID_NONE && rbarred(v->depth, w, next, t) ? ID_NONE : next;
        }
        uint32_t c = w == ID_NONE ? RCOST_NONE : cost[w];
        while (n > 0 && c != RCOST_NONE)
            cost[path[--n]] = ++c;
    }
    // Level by level; a switch is settled at the first level that has a neighbour one below it.
    uint32_t left = 0;
    for (uint32_t s = 0; s < g->n; s++) {
        if (cost[s] == RCOST_NONE && g->comp[s] == g->comp[t])
            todo[left++] = s;
    }
    for (uint32_t level = 0; left > 0 && level <= g->n; level++) {
        uint32_t keep = 0;
        for (uint32_t i = 0; i < left; i++) {
            uint32_t s = todo[i];
            uint8_t p = heaviest(r, s, level);
            if (p == LFT_DROP) {
                todo[keep++] = s;
                continue;
            }
            put_counted(r, s, p);
            cost[s] = level + 1; // not looked for at this level any more
        }
        left = keep;
    }
}
