// SPDX-License-Identifier: Apache-2.0
// The orders of channels that lanes are designed by.
//
// In each lane channels are ordered by colour, then those that go up before those that go down, up being
// towards a root of the lane's own. A path whose channels rise in that order is legal; such paths together
// can have no cycle of dependencies, whatever they are. What remains is to find roots such that every pair
// has a shortest path that is legal in some lane: one after the other, the one that helps most.
#include "routing/sssp_priv.h"

#include <string.h>

#define SAMPLE 64       // destinations that roots are judged by
#define LOOKS 10000000u // at a lane, about

struct design {
    struct sgraph *x;
    struct stree r;
    uint32_t *sample, num_samples;
    uint8_t *covered; // [sample * n]
    uint32_t *root;   // candidates
    uint64_t *gain;   // of each
    bool roots_given;
    uint8_t *trial;
    uint32_t *scratch;
};

void sgraph_direct(struct sgraph *x, uint32_t root, uint32_t lane, uint32_t *scratch)
{
    uint32_t head = 0, tail = 0, *dist = scratch, *queue = scratch + x->n;
    memset(dist, 0xff, x->n * sizeof(*dist));
    dist[root] = 0;
    queue[tail++] = root;
    while (head < tail) {
        uint32_t v = queue[head++];
        for (uint32_t c = x->off[v]; c < x->off[v + 1]; c++) {
            if (dist[x->peer[c]] == ID_NONE) {
                dist[x->peer[c]] = dist[v] + 1;
                queue[tail++] = x->peer[c];
            }
        }
    }
    uint8_t bit = (uint8_t)(1u << lane);
    for (uint32_t i = 0; i < tail; i++) {
        uint32_t v = queue[i];
        for (uint32_t c = x->off[v]; c < x->off[v + 1]; c++) {
            uint32_t w = x->peer[c];
            bool up = dist[w] != dist[v] ? dist[w] < dist[v] : w < v;
            x->up[c] = (uint8_t)((x->up[c] & ~bit) | (up ? bit : 0));
        }
    }
}

static void take_order(struct sgraph *x, const struct rorder *o, uint32_t comp)
{
    for (uint32_t c = 0; c < x->num_chans; c++) {
        if (x->comp[x->tail[c]] == comp && o->pos[x->sw[x->peer[c]]] > o->pos[x->sw[x->tail[c]]])
            x->up[c] |= 1;
    }
}

// Marks what a lane covers; returns what is left.
static uint64_t cover(struct design *k, uint32_t comp, uint32_t lane)
{
    uint64_t left = 0;
    struct sgraph *x = k->x;
    x->lanes = (uint8_t)(1u << lane);
    for (uint32_t i = 0; i < k->num_samples; i++) {
        if (x->comp[k->sample[i]] != comp)
            continue;
        stree_paths(&k->r, k->sample[i]);
        for (uint32_t j = 1; j < k->r.num; j++) {
            uint32_t s = k->r.order[j];
            uint8_t *c = &k->covered[(size_t)i * x->n + s];
            *c |= k->r.any[s] != 0 || (x->ends[s] == 0 && x->ends[k->sample[i]] == 0);
            left += !*c;
        }
    }
    return left;
}

static void judge(struct design *k, uint32_t comp, uint32_t num, uint64_t gain[LANES_MAX])
{
    struct sgraph *x = k->x;
    memset(gain, 0, LANES_MAX * sizeof(*gain));
    x->lanes = (uint8_t)((1u << num) - 1);
    for (uint32_t i = 0; i < k->num_samples; i++) {
        if (x->comp[k->sample[i]] != comp)
            continue;
        stree_paths(&k->r, k->sample[i]);
        for (uint32_t j = 1; j < k->r.num; j++) {
            uint32_t s = k->r.order[j];
            for (uint8_t m = k->covered[(size_t)i * x->n + s] ? 0 : k->r.any[s]; m; m &= (uint8_t)(m - 1))
                gain[__builtin_ctz(m)]++;
        }
    }
}

// A root that helps where nothing covers yet: of those that help about as much as the best, the one of
// highest hash, so that a lost cable seldom makes another of it. ID_NONE: none helps.
static uint32_t best_root(struct design *k, uint32_t comp, uint32_t num, uint64_t margin, uint64_t *ret_gain)
{
    struct sgraph *x = k->x;
    uint8_t *designed = x->up;
    uint64_t most = 0, highest = 0;
    uint32_t best = ID_NONE;
    x->up = k->trial;
    for (uint32_t i = 0; i < num; i += LANES_MAX) {
        uint32_t m = num - i < LANES_MAX ? num - i : LANES_MAX;
        for (uint32_t l = 0; l < m; l++)
            sgraph_direct(x, k->root[i + l], l, k->scratch);
        judge(k, comp, m, k->gain + i);
    }
    x->up = designed;
    for (uint32_t i = 0; i < num; i++)
        most = k->gain[i] > most ? k->gain[i] : most;
    for (uint32_t i = 0; i < num && most > 0; i++) {
        uint64_t hash = hash_mix64(sgraph_guid(x, k->root[i]) + 1 + x->attempt);
        if (k->gain[i] >= most - most / margin && (best == ID_NONE || hash > highest)) {
            best = k->root[i];
            highest = hash;
        }
    }
    *ret_gain = most;
    return best;
}

// Candidates: all switches, or as many as there is time for, evenly by a hash of their GUIDs.
uint32_t spick(const struct sgraph *x, uint32_t comp, uint32_t most, uint32_t *ret)
{
    uint32_t size = 0, n = 0;
    for (uint32_t s = 0; s < x->n; s++)
        size += x->comp[s] == comp;
    uint64_t share = size <= most ? UINT64_MAX : UINT64_MAX / size * most;
    for (uint32_t s = 0; s < x->n; s++) {
        if (x->comp[s] == comp && hash_mix64(sgraph_guid(x, s)) <= share)
            ret[n++] = s;
    }
    return n;
}

static void design_part(struct design *k, const struct rorder *o, uint32_t comp, uint32_t max)
{
    struct sgraph *x = k->x;
    uint64_t each = (uint64_t)(k->num_samples + 1) * (2u * x->num_chans + x->n + 1);
    uint64_t roots = LOOKS * (uint64_t)LANES_MAX / each;
    uint32_t num = spick(x, comp,
                         roots < LANES_MAX ? LANES_MAX
                         : roots > x->n    ? x->n
                                           : (uint32_t)roots,
                         k->root);
    uint64_t gain = 0, blind_gain = 0;
    if (o->tiered[comp] || k->roots_given)
        take_order(x, o, comp);
    else {
        uint32_t root = best_root(k, comp, num, 8, &gain);
        sgraph_direct(x, root == ID_NONE ? x->at[o->top[comp]] : root, 0, k->scratch);
    }
    uint64_t left = cover(k, comp, 0);
    uint32_t lanes = 1;
    for (; left > 0 && lanes < max; lanes++) {
        gain = blind_gain = 0;
        uint8_t had = x->blind;
        x->blind = 0;
        uint32_t root = best_root(k, comp, num, 16, &gain), blind = ID_NONE;
        x->blind = 0xff;
        if (x->coloured)
            blind = best_root(k, comp, num, 16, &blind_gain);
        x->blind = had;
        if (root == ID_NONE && blind == ID_NONE)
            break;
        if (blind_gain > gain) {
            x->blind |= (uint8_t)(1u << lanes);
            root = blind;
        }
        sgraph_direct(x, root, lanes, k->scratch);
        left = cover(k, comp, lanes);
    }
    x->num_lanes = lanes > x->num_lanes ? lanes : x->num_lanes;
    // In lanes that it needs not, a part is directed as in the first: any will do.
    for (uint32_t c = 0; c < x->num_chans; c++) {
        if (x->comp[x->tail[c]] == comp && x->up[c] & 1)
            x->up[c] |= (uint8_t)(0xff << lanes);
    }
}

void sdesign(struct sgraph *x, const struct rorder *o, bool roots_given, uint32_t max, struct arena *a)
{
    struct design k = {.x = x, .roots_given = roots_given};
    memset(x->up, 0, x->num_chans);
    x->blind = 0;
    x->num_lanes = 0;
    stree_init(&k.r, x, a);
    k.scratch = ARENA_NEW_N(a, 2 * (size_t)x->n + 1, uint32_t);
    k.root = ARENA_NEW_N(a, x->n + 1, uint32_t);
    k.gain = ARENA_NEW_N(a, (size_t)x->n + LANES_MAX, uint64_t);
    k.sample = ARENA_NEW_N(a, x->n + 1, uint32_t);
    k.trial = arena_alloc(a, x->num_chans + 1);
    for (uint32_t comp = 0; comp < x->g->num_comps; comp++) {
        k.num_samples = spick(x, comp, SAMPLE, k.sample);
        k.covered = arena_alloc(a, (size_t)k.num_samples * x->n + 1);
        design_part(&k, o, comp, max);
    }
    x->lanes = (uint8_t)((1u << x->num_lanes) - 1);
}
