// SPDX-License-Identifier: Apache-2.0
// Paths from every switch to one destination switch, on a total order or without one: the general and slow
// way (a bucket queue), right for any graph. Each switch gets one next direction per destination, as a
// linear table can hold no more: it is decided by the shortest legal path, and what lies above a switch that
// goes up may not come down to it. So each path goes up and then down, never up again.
#include "routing/route_priv.h"

#include <string.h>

#define BUCKETS 128 // more than the greatest step, RCOST_FOOT + 1; a power of two

void rcolumn_init(struct rcolumn *c, const struct rgraph *g, bool ordered, struct arena *a)
{
    *c = (struct rcolumn){.ordered = ordered};
    c->cost = ARENA_NEW_N(a, g->n + 1, uint32_t);
    c->down = ARENA_NEW_N(a, g->n + 1, bool);
    c->key = ARENA_NEW_N(a, g->n + 1, uint32_t);
    c->bucket = ARENA_NEW_N(a, 2 * BUCKETS, uint32_t);
    // A switch is queued again only for a better key, and for each group at most once.
    c->entry_next = ARENA_NEW_N(a, g->num_groups + 2, uint32_t);
    c->entry_node = ARENA_NEW_N(a, g->num_groups + 2, uint32_t);
}

// Key: cost * 2, plus 1 when going up; so going down wins among equals.
static void push(struct rcolumn *c, uint32_t v, uint32_t key)
{
    if (key >= c->key[v])
        return;
    c->key[v] = key;
    uint32_t i = c->num_entries++, b = key % (2 * BUCKETS);
    c->entry_node[i] = v;
    c->entry_next[i] = c->bucket[b];
    c->bucket[b] = i;
}

static uint32_t step_from(const struct rorder *o, uint32_t v, uint32_t t)
{
    return v != t && o->foot[v] ? 1 + RCOST_FOOT : 1;
}

static void relax(struct rcolumn *c, const struct rgraph *g, const struct rorder *o, uint32_t v, uint32_t t)
{
    uint32_t step = c->ordered ? step_from(o, v, t) : 1;
    uint32_t key = (c->cost[v] + step) * 2, pos = o->pos[v];
    for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++) {
        uint32_t w = g->g[i].peer;
        if (c->cost[w] != RCOST_NONE)
            continue;
        if (!c->ordered)
            push(c, w, key);
        else if (o->pos[w] < pos)
            push(c, w, key + 1);
        else if (c->down[v])
            push(c, w, key);
    }
}

void rcolumn_run(struct rcolumn *c, const struct rgraph *g, const struct rorder *o, uint32_t t)
{
    memset(c->cost, 0xff, g->n * sizeof(*c->cost));
    memset(c->key, 0xff, g->n * sizeof(*c->key));
    memset(c->bucket, 0xff, 2 * BUCKETS * sizeof(*c->bucket));
    c->num_entries = 0;
    push(c, t, 0);
    for (uint32_t key = 0, idle = 0; idle < 2 * BUCKETS; key++, idle++) {
        uint32_t b = key % (2 * BUCKETS), i = c->bucket[b];
        c->bucket[b] = ID_NONE;
        for (; i != ID_NONE; i = c->entry_next[i]) {
            uint32_t v = c->entry_node[i];
            if (c->cost[v] != RCOST_NONE)
                continue;
            c->cost[v] = key / 2;
            c->down[v] = key % 2 == 0;
            relax(c, g, o, v, t);
            idle = 0;
        }
    }
}

bool rcolumn_candidate(const struct rcolumn *c, const struct rgraph *g, const struct rorder *o, uint32_t t,
                       uint32_t s, uint32_t i)
{
    uint32_t w = g->g[i].peer;
    if (c->cost[w] == RCOST_NONE || c->cost[w] >= c->cost[s])
        return false;
    if (!c->ordered)
        return c->cost[w] + 1 == c->cost[s];
    if (c->cost[w] + step_from(o, w, t) != c->cost[s])
        return false;
    return c->down[s] ? o->pos[w] < o->pos[s] && c->down[w] : o->pos[w] > o->pos[s];
}
