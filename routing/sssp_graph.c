// SPDX-License-Identifier: Apache-2.0
// The switch graph of sssp: switches by GUID, channels, and the dimensions of grids.
#include "routing/sssp_priv.h"

#include <stdlib.h>
#include <string.h>

static int guid_cmp(const void *a, const void *b, void *arg)
{
    const struct rgraph *g = arg;
    uint64_t x = g->guid[*(const uint32_t *)a], y = g->guid[*(const uint32_t *)b];
    return x < y ? -1 : x > y;
}

static uint32_t ends_of(const struct fabric *f, uint32_t sw)
{
    const struct node *n = fabric_switch(f, sw);
    uint32_t ends = 0;
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *far = fabric_peer_node(f, &f->port[n->first_port + num]);
        ends += far && far->type != NODE_SWITCH;
    }
    return ends;
}

uint32_t sgraph_chan(const struct sgraph *x, uint32_t from, uint32_t to)
{
    uint32_t lo = x->off[from], hi = x->off[from + 1];
    while (lo < hi) {
        uint32_t m = (lo + hi) / 2;
        if (x->peer[m] < to)
            lo = m + 1;
        else
            hi = m;
    }
    return lo < x->off[from + 1] && x->peer[lo] == to ? lo : ID_NONE;
}

void sgraph_build(struct sgraph *x, const struct rgraph *g, struct arena *a)
{
    uint32_t n = g->n, m = g->num_groups;
    *x = (struct sgraph){.g = g, .n = n, .num_chans = m};
    x->sw = ARENA_NEW_N(a, n + 1, uint32_t);
    x->at = ARENA_NEW_N(a, n + 1, uint32_t);
    x->off = ARENA_NEW_N(a, n + 1, uint32_t);
    x->tail = ARENA_NEW_N(a, m + 1, uint32_t);
    x->peer = ARENA_NEW_N(a, m + 1, uint32_t);
    x->rev = ARENA_NEW_N(a, m + 1, uint32_t);
    x->first_port = ARENA_NEW_N(a, m + 1, uint32_t);
    x->num_ports = ARENA_NEW_N(a, m + 1, uint32_t);
    x->colour = ARENA_NEW_N(a, m + 1, uint8_t);
    x->up = ARENA_NEW_N(a, m + 1, uint8_t);
    x->comp = ARENA_NEW_N(a, n + 1, uint32_t);
    x->ends = ARENA_NEW_N(a, n + 1, uint32_t);
    x->lids = ARENA_NEW_N(a, n + 1, uint32_t);
    for (uint32_t s = 0; s < n; s++)
        x->sw[s] = s;
    qsort_r(x->sw, n, sizeof(*x->sw), guid_cmp, (void *)(uintptr_t)g);
    for (uint32_t s = 0; s < n; s++)
        x->at[x->sw[s]] = s;
    for (uint32_t s = 0, c = 0; s < n; s++) {
        uint32_t d = x->sw[s];
        x->comp[s] = g->comp[d];
        x->ends[s] = ends_of(g->f, d);
        x->lids[s] = g->doff[d + 1] - g->doff[d];
        for (uint32_t i = g->goff[d]; i < g->goff[d + 1]; i++, c++) { // by GUID of the neighbour
            x->tail[c] = s;
            x->peer[c] = x->at[g->g[i].peer];
            x->first_port[c] = g->g[i].first_port;
            x->num_ports[c] = g->g[i].num_ports;
        }
        x->off[s + 1] = c;
    }
    for (uint32_t c = 0; c < m; c++)
        x->rev[c] = sgraph_chan(x, x->peer[c], x->tail[c]);
}

// --- colours: the dimensions of a grid ---
//
// Opposite sides of a square (four switches in a ring) belong to one class; in a mesh or torus a class is a
// cut across one dimension. Classes that meet at a square's corner are different dimensions, so colouring
// them with few colours gives the dimensions back. Paths that take colours in order then make no turn back,
// as dimension order has it. Only where most pairs have such a shortest path; elsewhere all is one
// colour.

#define COLOURS_MAX 32
#define CLASSES_MAX 4096
#define SQUARES_MAX 100000000u // looks

struct classes {
    struct sgraph *x;
    uint32_t *of; // per channel: union-find, then class number
    uint32_t num, words;
    uint32_t *size;  // channels
    uint64_t *cross; // [class * words]
};

static uint32_t find(uint32_t *of, uint32_t c)
{
    while (of[c] != c) {
        of[c] = of[of[c]];
        c = of[c];
    }
    return c;
}

static void unite(uint32_t *of, uint32_t a, uint32_t b)
{
    a = find(of, a);
    b = find(of, b);
    if (a < b)
        of[b] = a;
    else
        of[a] = b;
}

static uint32_t edge(const struct sgraph *x, uint32_t c)
{
    return c < x->rev[c] ? c : x->rev[c];
}

// Calls for every square u - v - z - w with the side u - v given.
static void squares(struct classes *k, uint32_t c,
                    void (*found)(struct classes *k, uint32_t c, uint32_t side, uint32_t opposite))
{
    const struct sgraph *x = k->x;
    uint32_t u = x->tail[c], v = x->peer[c];
    for (uint32_t i = x->off[u]; i < x->off[u + 1]; i++) {
        uint32_t w = x->peer[i];
        for (uint32_t j = x->off[v]; w != v && j < x->off[v + 1]; j++) {
            uint32_t z = x->peer[j], o = z == u || z == w ? ID_NONE : sgraph_chan(x, w, z);
            if (o != ID_NONE)
                found(k, c, i, o);
        }
    }
}

static void join_opposite(struct classes *k, uint32_t c, uint32_t side, uint32_t opposite)
{
    (void)side;
    unite(k->of, edge(k->x, c), edge(k->x, opposite));
}

static void note_cross(struct classes *k, uint32_t c, uint32_t side, uint32_t opposite)
{
    (void)opposite;
    uint32_t a = k->of[c], b = k->of[side];
    k->cross[a * k->words + b / 64] |= 1ULL << (b % 64);
}

static bool number_classes(struct classes *k, struct arena *a)
{
    const struct sgraph *x = k->x;
    uint32_t *number = ARENA_NEW_N(a, x->num_chans + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++) {
        if (edge(x, c) == c && find(k->of, c) == c)
            number[c] = k->num++;
    }
    if (k->num > CLASSES_MAX)
        return false;
    for (uint32_t c = 0; c < x->num_chans; c++) {
        if (edge(x, c) == c)
            number[c] = number[find(k->of, c)];
    }
    k->size = ARENA_NEW_N(a, k->num + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++) {
        k->of[c] = number[edge(x, c)];
        k->size[k->of[c]]++;
    }
    k->words = (k->num + 63) / 64;
    k->cross = ARENA_NEW_N(a, (size_t)k->num * k->words + 1, uint64_t);
    for (uint32_t c = 0; c < x->num_chans; c++)
        squares(k, c, note_cross);
    return true;
}

// Colours in an order that a lost cable seldom changes: by the least hash of any of their channels.
static void name_colours(struct classes *k, const uint8_t *colour)
{
    struct sgraph *x = k->x;
    uint64_t least[COLOURS_MAX];
    memset(least, 0xff, sizeof(least));
    for (uint32_t c = 0; c < x->num_chans; c++) {
        uint64_t hash = hash_mix64(sgraph_guid(x, x->tail[c]) ^ hash_mix64(sgraph_guid(x, x->peer[c])));
        if (hash < least[colour[k->of[c]]])
            least[colour[k->of[c]]] = hash;
    }
    for (uint32_t c = 0; c < x->num_chans; c++) {
        uint8_t before = 0;
        for (uint32_t i = 0; i < COLOURS_MAX; i++)
            before += least[i] < least[colour[k->of[c]]];
        x->colour[c] = before;
    }
}

// The greatest classes first.
static bool colour_classes(struct classes *k, struct arena *a)
{
    uint8_t *colour = arena_alloc(a, k->num + 1);
    memset(colour, 0xff, k->num + 1);
    for (uint32_t done = 0; done < k->num; done++) {
        uint32_t best = ID_NONE, used = 0;
        for (uint32_t i = 0; i < k->num; i++) {
            if (colour[i] == 0xff && (best == ID_NONE || k->size[i] > k->size[best]))
                best = i;
        }
        for (uint32_t i = 0; i < k->num; i++) {
            if (colour[i] != 0xff && k->cross[best * k->words + i / 64] >> (i % 64) & 1)
                used |= 1u << colour[i];
        }
        if (used == UINT32_MAX)
            return false;
        colour[best] = (uint8_t)__builtin_ctz(~used);
    }
    name_colours(k, colour);
    return true;
}

// Share of pairs, of a sample of destinations, that have a shortest path of rising colour: at least 17 in 20.
static bool colours_help(struct sgraph *x, struct arena *a)
{
    struct stree r;
    uint64_t pairs = 0, good = 0;
    uint32_t step = x->n / 64 + 1;
    stree_init(&r, x, a);
    memset(x->up, 0xff, x->num_chans);
    x->lanes = 1;
    for (uint32_t t = 0; t < x->n; t += step) {
        stree_paths(&r, t);
        for (uint32_t i = 1; i < r.num; i++) {
            pairs++;
            good += r.any[r.order[i]];
        }
    }
    memset(x->up, 0, x->num_chans);
    x->lanes = 0;
    return good * 20 >= pairs * 17;
}

void scolours_find(struct sgraph *x, const struct rorder *o, struct arena *a)
{
    uint64_t looks = 0;
    for (uint32_t c = 0; c < x->num_chans; c++) {
        uint32_t u = x->tail[c], v = x->peer[c];
        looks += (uint64_t)(x->off[u + 1] - x->off[u]) * (x->off[v + 1] - x->off[v]);
    }
    for (uint32_t s = 0; s < x->n; s++) {
        if (o->tiered[x->comp[s]])
            return;
    }
    if (looks > SQUARES_MAX)
        return;
    struct classes k = {.x = x};
    k.of = ARENA_NEW_N(a, x->num_chans + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++)
        k.of[c] = c;
    for (uint32_t c = 0; c < x->num_chans; c++)
        squares(&k, c, join_opposite);
    x->coloured = number_classes(&k, a) && colour_classes(&k, a) && colours_help(x, a);
    bool several = false;
    for (uint32_t c = 0; c < x->num_chans; c++)
        several |= x->colour[c] != 0;
    x->coloured &= several;
    if (!x->coloured)
        memset(x->colour, 0, x->num_chans);
}
