// SPDX-License-Identifier: Apache-2.0
// A lane for each pair of switches; see sssp.c. Pairs whose paths are all legal in some designed lane go by
// that. Each other one goes by the first lane whose dependencies, as the pairs assigned so far make them, get
// no cycle by it: every lane keeps an order of channels that its dependencies rise in, which is mended by
// each new one (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006).
#include "routing/sssp_priv.h"

#include <stdlib.h>
#include <string.h>

struct dep {
    uint32_t from, index; // channel; which of its end's channels follows
};

struct lanes {
    const struct sgraph *x;
    const struct fabric_tables *t;
    uint32_t *chan;                    // [switch * 256 + port], ID_NONE
    size_t *base;                      // per channel: first of its dependencies
    uint32_t *has, *never;             // per dependency: a bit per lane; never: would close a cycle
    uint32_t *order[SSSP_COUNTED_MAX]; // per channel
    uint32_t num;                      // lanes begun
    // one pair's
    struct dep *dep;
    uint32_t num_deps;
    uint32_t *stamp_of, stamp; // per dependency
    // search
    uint32_t *stack, *fore, *back, *slots;
    uint8_t *seen;
    struct arena *a;
};

static size_t id_of(const struct lanes *k, struct dep d)
{
    return k->base[d.from] + d.index;
}

static uint32_t to_of(const struct lanes *k, struct dep d)
{
    return k->x->off[k->x->peer[d.from]] + d.index;
}

// --- what depends on what ---

static void one_way(struct lanes *k, uint32_t from, uint32_t to)
{
    const struct sgraph *x = k->x;
    const struct rgraph *g = x->g;
    for (uint32_t i = g->doff[x->sw[to]]; i < g->doff[x->sw[to] + 1]; i++) {
        uint16_t lid = g->d[i].lid;
        uint32_t before = ID_NONE;
        for (uint32_t s = from; s != to; s = x->peer[before]) {
            uint32_t c = k->chan[(size_t)s * 256 + tables_port(k->t, x->sw[s], lid)];
            if (before != ID_NONE) {
                struct dep d = {before, c - x->off[s]};
                size_t id = id_of(k, d);
                if (k->stamp_of[id] != k->stamp) {
                    k->stamp_of[id] = k->stamp;
                    k->dep[k->num_deps++] = d;
                }
            }
            before = c;
        }
    }
}

static void both_ways(struct lanes *k, uint32_t a, uint32_t b)
{
    k->stamp++;
    k->num_deps = 0;
    one_way(k, a, b);
    one_way(k, b, a);
}

// --- one lane's order ---

static bool forward(struct lanes *k, uint32_t lane, uint32_t from, uint32_t stop, uint32_t *ret_n)
{
    const struct sgraph *x = k->x;
    const uint32_t *order = k->order[lane];
    uint32_t top = 0, n = 0;
    bool cycle = false;
    k->seen[from] = 1;
    k->stack[top++] = from;
    while (top > 0) {
        uint32_t c = k->stack[--top], v = x->peer[c];
        k->fore[n++] = c;
        for (uint32_t i = 0; i < x->off[v + 1] - x->off[v]; i++) {
            uint32_t y = x->off[v] + i;
            if (!(k->has[k->base[c] + i] >> lane & 1))
                continue;
            cycle |= y == stop;
            if (!k->seen[y] && order[y] < order[stop]) {
                k->seen[y] = 1;
                k->stack[top++] = y;
            }
        }
    }
    *ret_n = n;
    return !cycle;
}

static uint32_t backward(struct lanes *k, uint32_t lane, uint32_t to, uint32_t stop)
{
    const struct sgraph *x = k->x;
    const uint32_t *order = k->order[lane];
    uint32_t top = 0, n = 0;
    k->seen[to] = 1;
    k->stack[top++] = to;
    while (top > 0) {
        uint32_t c = k->stack[--top], u = x->tail[c];
        k->back[n++] = c;
        for (uint32_t i = x->off[u]; i < x->off[u + 1]; i++) {
            uint32_t y = x->rev[i];
            if (!(k->has[k->base[y] + (c - x->off[u])] >> lane & 1))
                continue;
            if (!k->seen[y] && order[y] > order[stop]) {
                k->seen[y] = 1;
                k->stack[top++] = y;
            }
        }
    }
    return n;
}

static int by_order(const void *a, const void *b, void *arg)
{
    const uint32_t *order = arg, x = order[*(const uint32_t *)a], y = order[*(const uint32_t *)b];
    return x < y ? -1 : x > y;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Puts what reaches the new dependency before what it reaches, in the places that they had together.
static void reorder(struct lanes *k, uint32_t lane, uint32_t back, uint32_t fore)
{
    uint32_t *order = k->order[lane], n = 0;
    qsort_r(k->back, back, sizeof(*k->back), by_order, order);
    qsort_r(k->fore, fore, sizeof(*k->fore), by_order, order);
    for (uint32_t i = 0; i < back; i++)
        k->slots[n++] = order[k->back[i]];
    for (uint32_t i = 0; i < fore; i++)
        k->slots[n++] = order[k->fore[i]];
    qsort(k->slots, n, sizeof(*k->slots), by_number);
    n = 0;
    for (uint32_t i = 0; i < back; i++)
        order[k->back[i]] = k->slots[n++];
    for (uint32_t i = 0; i < fore; i++)
        order[k->fore[i]] = k->slots[n++];
}

// Whether the lane takes it; its order then rises over it.
static bool admit(struct lanes *k, uint32_t lane, struct dep d)
{
    uint32_t c = d.from, y = to_of(k, d), *order = k->order[lane], fore, back = 0;
    if (order[c] < order[y])
        return true;
    bool fits = forward(k, lane, y, c, &fore);
    if (fits)
        back = backward(k, lane, c, y);
    for (uint32_t i = 0; i < fore; i++)
        k->seen[k->fore[i]] = 0;
    for (uint32_t i = 0; i < back; i++)
        k->seen[k->back[i]] = 0;
    if (fits)
        reorder(k, lane, back, fore);
    return fits;
}

static void begin_lane(struct lanes *k)
{
    const struct sgraph *x = k->x;
    k->order[k->num] = ARENA_NEW_N(k->a, x->num_chans + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++)
        k->order[k->num][c] = c;
    k->num++;
}

static bool try_lane(struct lanes *k, uint32_t lane)
{
    uint32_t bit = 1u << lane, added = 0;
    for (uint32_t i = 0; i < k->num_deps; i++) {
        if (k->never[id_of(k, k->dep[i])] & bit)
            return false;
    }
    uint32_t i = 0;
    for (; i < k->num_deps; i++) {
        struct dep d = k->dep[i];
        if (k->has[id_of(k, d)] & bit)
            continue;
        if (!admit(k, lane, d))
            break;
        k->has[id_of(k, d)] |= bit;
        k->dep[i] = k->dep[added]; // those added first
        k->dep[added++] = d;
    }
    if (i == k->num_deps)
        return true;
    for (uint32_t j = 0; j < added; j++)
        k->has[id_of(k, k->dep[j])] &= ~bit;
    if (added == 0 || !admit(k, lane, k->dep[i]))
        k->never[id_of(k, k->dep[i])] |= bit;
    return false;
}

// --- together ---

static void lanes_init(struct lanes *k, struct arena *a)
{
    const struct sgraph *x = k->x;
    size_t deps = 0;
    uint32_t m = x->num_chans;
    k->a = a;
    k->base = ARENA_NEW_N(a, m + 1, size_t);
    for (uint32_t c = 0; c < m; c++) {
        k->base[c] = deps;
        deps += x->off[x->peer[c] + 1] - x->off[x->peer[c]];
    }
    k->has = ARENA_NEW_N(a, deps + 1, uint32_t);
    k->never = ARENA_NEW_N(a, deps + 1, uint32_t);
    k->stamp_of = ARENA_NEW_N(a, deps + 1, uint32_t);
    k->dep = ARENA_NEW_N(a, deps + 1, struct dep);
    k->chan = ARENA_NEW_N(a, (size_t)x->n * 256 + 1, uint32_t);
    memset(k->chan, 0xff, (size_t)x->n * 256 * sizeof(*k->chan));
    for (uint32_t c = 0; c < m; c++) {
        for (uint32_t i = 0; i < x->num_ports[c]; i++)
            k->chan[(size_t)x->tail[c] * 256 + x->g->ports[x->first_port[c] + i]] = c;
    }
    k->stack = ARENA_NEW_N(a, m + 1, uint32_t);
    k->fore = ARENA_NEW_N(a, m + 1, uint32_t);
    k->back = ARENA_NEW_N(a, m + 1, uint32_t);
    k->slots = ARENA_NEW_N(a, m + 1, uint32_t);
    k->seen = arena_alloc(a, m + 1);
}

static uint8_t legal(const struct sgraph *x, const uint8_t *pair, uint32_t a, uint32_t b)
{
    return pair[(size_t)a * x->n + b] & pair[(size_t)b * x->n + a];
}

static bool talks(const struct sgraph *x, uint32_t a, uint32_t b)
{
    return x->comp[a] == x->comp[b] && (x->ends[a] > 0 || x->ends[b] > 0) && x->lids[a] + x->lids[b] > 0;
}

// The order that a designed lane has by what is in it: by colour, up before down, nearer the root later or
// earlier. Found by inserting instead: the dependencies are acyclic, so each is admitted.
static void load_designed(struct lanes *k, const struct fabric_lanes *l)
{
    const struct sgraph *x = k->x;
    for (uint32_t a = 0; a < x->n; a++) {
        for (uint32_t b = a; b < x->n; b++) {
            unsigned lane = lanes_get(l, x->sw[a], x->sw[b]);
            if (lane == LANE_NONE)
                continue;
            both_ways(k, a, b);
            for (uint32_t i = 0; i < k->num_deps; i++) {
                struct dep d = k->dep[i];
                if (!(k->has[id_of(k, d)] >> lane & 1)) {
                    admit(k, lane, d);
                    k->has[id_of(k, d)] |= 1u << lane;
                }
            }
        }
    }
}

// The pairs that fit no designed lane, one after the other.
static uint32_t search(struct lanes *k, struct fabric_lanes *l, const uint8_t *pair, uint32_t max)
{
    const struct sgraph *x = k->x;
    bool over = false;
    for (uint32_t s = 0; s < x->n; s++) {
        for (uint32_t d = s + 1; d < x->n; d++) {
            if (!talks(x, s, d) || legal(x, pair, s, d))
                continue;
            both_ways(k, s, d);
            uint32_t lane = 0;
            while (lane < k->num && !try_lane(k, lane))
                lane++;
            if (lane == k->num && lane < SSSP_COUNTED_MAX) {
                begin_lane(k);
                try_lane(k, lane);
            }
            over |= lane == SSSP_COUNTED_MAX;
            if (lane < max)
                lanes_set(l, x->sw[s], x->sw[d], lane);
        }
    }
    return k->num + over;
}

// Numbers the lanes that are used without gaps; how many.
static uint32_t close_ranks(struct fabric_lanes *l)
{
    uint8_t to[16];
    bool used[16] = {false};
    uint32_t num = 0;
    size_t size = l->stride * l->num_switches;
    for (size_t i = 0; i < size; i++)
        used[l->pair[i] & 15] = used[l->pair[i] >> 4] = true;
    for (uint8_t i = 0; i < 16; i++)
        to[i] = used[i] && i != LANE_NONE ? (uint8_t)num++ : i;
    for (size_t i = 0; i < size; i++)
        l->pair[i] = (uint8_t)(to[l->pair[i] & 15] | to[l->pair[i] >> 4] << 4);
    return num > 0 ? num : 1;
}

struct fabric_lanes *sassign(const struct sgraph *x, const struct fabric_tables *t, const uint8_t *pair,
                             uint32_t max, struct arena *a, uint32_t *ret_needed)
{
    struct fabric_lanes *l = lanes_new(x->n);
    bool left = false;
    for (uint32_t s = 0; s < x->n; s++) {
        for (uint32_t d = s; d < x->n; d++) {
            uint8_t fits = legal(x, pair, s, d);
            if (x->comp[s] == x->comp[d] && fits)
                lanes_set(l, x->sw[s], x->sw[d], (unsigned)__builtin_ctz(fits));
            else
                left |= talks(x, s, d);
        }
    }
    *ret_needed = x->num_lanes > 0 ? x->num_lanes : 1;
    if (left) {
        struct lanes k = {.x = x, .t = t};
        lanes_init(&k, a);
        while (k.num < x->num_lanes)
            begin_lane(&k);
        load_designed(&k, l);
        *ret_needed = search(&k, l, pair, max);
    }
    if (*ret_needed <= max) {
        l->num_lanes = *ret_needed = close_ranks(l);
        return l;
    }
    lanes_unref(l);
    return NULL;
}
