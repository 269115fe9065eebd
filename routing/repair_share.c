// SPDX-License-Identifier: Apache-2.0
// What a cable finds beyond the switch that it leads to: how much of it that switch can hand on towards a
// leaf, in the blueprint. What has lost its own port goes to the others by these shares, so that a spine with
// fewer cables than its likes, up or down, is not given as much as they are.
//
// A leaf takes all that comes. Down from a switch: what its cables towards the leaf carry, beside what those
// to its leaves carry on average. Up: what its cables up carry, beside all that comes from below. In both
// cables count for what they find in turn, and more than all of it is not needed. On trees where switches of
// a level are alike all is even, and there is nothing to keep.
//
// The blueprint alone says it, by ranks: dead cables do not count, for a share that changed would have
// entries change whose ports are good.
#include "routing/repair_priv.h"

#include <stdlib.h>
#include <string.h>

struct shares {
    const struct rgraph *g;
    const struct rorder *o;
    uint32_t cols;
    uint8_t *row;                   // [switch * cols + column]; 0: does not lead there
    uint16_t *sum;                  // one switch's; 254 cables of 255 fit
    uint32_t *by_rank, *from, *end; // switches by rank; per switch: columns that it reaches downwards
};

static int rank_cmp(const void *a, const void *b, void *arg)
{
    const struct rorder *o = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (o->rank[x] != o->rank[y])
        return o->rank[x] < o->rank[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void add_row(uint16_t *restrict sum, const uint8_t *restrict row, uint32_t num, uint16_t cables)
{
    for (uint32_t i = 0; i < num; i++)
        sum[i] = (uint16_t)(sum[i] + row[i] * cables);
}

static void down(struct shares *x, uint32_t s)
{
    const struct rgraph *g = x->g;
    uint8_t *row = x->row + (size_t)s * x->cols;
    uint64_t all = 0, num = 0;
    memset(x->sum, 0, x->cols * sizeof(*x->sum));
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        uint32_t w = g->g[i].peer, from = x->from[w];
        if (x->o->rank[w] >= x->o->rank[s] || from >= x->end[w])
            continue;
        add_row(x->sum + from, x->row + (size_t)w * x->cols + from, x->end[w] - from,
                (uint16_t)g->g[i].num_ports);
        x->from[s] = from < x->from[s] ? from : x->from[s];
        x->end[s] = x->end[w] > x->end[s] ? x->end[w] : x->end[s];
    }
    for (uint32_t c = x->from[s]; c < x->end[s]; c++) {
        all += x->sum[c];
        num += x->sum[c] > 0;
    }
    for (uint32_t c = x->from[s]; c < x->end[s]; c++) {
        uint64_t share = x->sum[c] > 0 ? (x->sum[c] * 255ULL * num + all / 2) / all : 0;
        row[c] = x->sum[c] == 0 ? 0 : share > 255 ? 255 : share < 1 ? 1 : (uint8_t)share;
    }
}

static void up(struct shares *x, uint32_t s)
{
    const struct rgraph *g = x->g;
    uint8_t *row = x->row + (size_t)s * x->cols;
    uint32_t below = 0;
    memset(x->sum, 0, x->cols * sizeof(*x->sum));
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        uint32_t w = g->g[i].peer;
        if (x->o->rank[w] < x->o->rank[s])
            below += g->g[i].num_ports;
        else if (x->o->rank[w] > x->o->rank[s])
            add_row(x->sum, x->row + (size_t)w * x->cols, x->cols, (uint16_t)g->g[i].num_ports);
    }
    below = below > 0 ? below : 1;
    for (uint32_t c = 0; c < x->cols; c++) {
        uint32_t share = (x->sum[c] + below / 2) / below;
        if (row[c] == 0 && x->sum[c] > 0)
            row[c] = share > 255 ? 255 : share < 1 ? 1 : (uint8_t)share;
    }
}

// Columns are the leaves, side by side by the neighbour of lowest GUID, so that rows are short.
static void find_columns(struct route_base *b, const struct rgraph *g, const struct rorder *o)
{
    b->share_of = ARENA_NEW_N(b->a, b->n + 1, uint32_t);
    memset(b->share_of, 0xff, (b->n + 1) * sizeof(*b->share_of));
    for (uint32_t s = 0; s < b->n; s++) {
        if (!o->foot[s] || g->doff[s] == g->doff[s + 1] || b->share_of[s] != ID_NONE)
            continue;
        b->share_of[s] = b->shares++;
        if (g->goff[s] == g->goff[s + 1])
            continue;
        uint32_t w = g->g[g->goff[s]].peer;
        for (uint32_t k = g->goff[w]; k < g->goff[w + 1]; k++) {
            uint32_t y = g->g[k].peer;
            if (o->foot[y] && g->doff[y] != g->doff[y + 1] && b->share_of[y] == ID_NONE)
                b->share_of[y] = b->shares++;
        }
    }
}

// Whether all that lead somewhere hand on as much as any other of the same rank.
static bool all_even(const struct shares *x)
{
    const struct rorder *o = x->o;
    uint32_t n = x->g->n;
    uint8_t level = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = x->by_rank[k];
        const uint8_t *row = x->row + (size_t)s * x->cols;
        if (k == 0 || o->rank[s] != o->rank[x->by_rank[k - 1]])
            level = 0;
        for (uint32_t c = 0; c < x->cols && !o->foot[s]; c++) {
            if (row[c] == 0)
                continue;
            level = level ? level : row[c];
            if (row[c] != level)
                return false;
        }
    }
    return true;
}

void rshares_find(struct route_base *b, const struct rgraph *g, const struct rorder *o, struct arena *a)
{
    struct shares x = {.g = g, .o = o};
    if (b->n > SHARE_SWITCHES_MAX)
        return;
    find_columns(b, g, o);
    x.cols = b->shares;
    x.row = ARENA_NEW_N(a, (size_t)b->n * x.cols + 1, uint8_t);
    x.sum = ARENA_NEW_N(a, x.cols + 1, uint16_t);
    x.by_rank = ARENA_NEW_N(a, b->n + 1, uint32_t);
    x.from = ARENA_NEW_N(a, b->n + 1, uint32_t);
    x.end = ARENA_NEW_N(a, b->n + 1, uint32_t);
    for (uint32_t s = 0; s < b->n; s++) {
        x.by_rank[s] = s;
        x.from[s] = ID_NONE;
        if (b->share_of[s] != ID_NONE) {
            x.from[s] = b->share_of[s];
            x.end[s] = x.from[s] + 1;
            x.row[(size_t)s * x.cols + x.from[s]] = 255;
        }
    }
    qsort_r(x.by_rank, b->n, sizeof(*x.by_rank), rank_cmp, (void *)o);
    for (uint32_t k = 0; k < b->n; k++) {
        if (!o->foot[x.by_rank[k]])
            down(&x, x.by_rank[k]);
    }
    for (uint32_t k = b->n; k-- > 0;) {
        if (!o->foot[x.by_rank[k]])
            up(&x, x.by_rank[k]);
    }
    if (!all_even(&x))
        b->share = arena_memdup(b->a, x.row, (size_t)b->n * x.cols + 1);
}

// log2 of x >= 1, in 1/65536, by squaring: whole numbers only, the same with every compiler.
static uint32_t log2_of(uint64_t x)
{
    uint32_t n = 63 - (uint32_t)__builtin_clzll(x), r = n;
    uint64_t m = x << (63 - n) >> 32; // 1.31
    for (uint32_t i = 0; i < 16; i++) {
        m = m * m >> 31;
        r = r << 1 | (uint32_t)(m >> 32);
        m >>= m >> 32;
    }
    return r;
}

// Of equal shares the greater hash; with shares -log(hash) / share, the less the better, so that each gets
// what its share says, and one that goes leaves what the others had among themselves as it was.
bool rheavier(struct rhash a, struct rhash b)
{
    if (a.share == b.share)
        return a.hash > b.hash;
    uint64_t x = ((64ULL << 16) - log2_of(a.hash | 1)) * b.share,
             y = ((64ULL << 16) - log2_of(b.hash | 1)) * a.share;
    return x != y ? x < y : a.hash > b.hash;
}
