// SPDX-License-Identifier: Apache-2.0
// Lanes by the dependencies that are in them. Every lane keeps an order of channels that its dependencies
// rise in, which is mended by each new one (Pearce and Kelly, "A dynamic topological sort algorithm for
// directed acyclic graphs", 2006). A dependency that once would have closed a cycle always will.
#include "routing/sssp_priv.h"

#include <stdlib.h>
#include <string.h>

static size_t id_of(const struct slayers *k, struct sdep d)
{
    return k->base[d.from] + d.index;
}

static uint32_t to_of(const struct slayers *k, struct sdep d)
{
    return k->x->off[k->x->peer[d.from]] + d.index;
}

// --- what depends on what ---

void slayers_clear(struct slayers *k)
{
    k->stamp++;
    k->num_deps = 0;
}

void slayers_add(struct slayers *k, uint32_t from, uint32_t to)
{
    struct sdep d = {from, to - k->x->off[k->x->tail[to]]};
    size_t id = id_of(k, d);
    if (k->stamp_of[id] != k->stamp) {
        k->stamp_of[id] = k->stamp;
        k->dep[k->num_deps++] = d;
    }
}

// False when some entries do not lead there.
static bool one_way(struct slayers *k, uint32_t from, uint32_t to)
{
    const struct sgraph *x = k->x;
    const struct rgraph *g = x->g;
    bool arrive = true;
    for (uint32_t i = g->doff[x->sw[to]]; i < g->doff[x->sw[to] + 1]; i++) {
        uint16_t lid = g->d[i].lid;
        uint32_t before = ID_NONE, hops = 0;
        for (uint32_t s = from; s != to; s = x->peer[before]) {
            uint32_t c = k->chan[(size_t)s * 256 + tables_port(k->t, x->sw[s], lid)];
            if (c == ID_NONE || hops++ == x->n) {
                arrive = false;
                break;
            }
            if (before != ID_NONE)
                slayers_add(k, before, c);
            before = c;
        }
    }
    return arrive;
}

bool slayers_pair(struct slayers *k, uint32_t a, uint32_t b)
{
    slayers_clear(k);
    bool there = one_way(k, a, b);
    return one_way(k, b, a) && there;
}

// --- one lane's order ---

static bool forward(struct slayers *k, uint32_t lane, uint32_t from, uint32_t stop, uint32_t *ret_n)
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

static uint32_t backward(struct slayers *k, uint32_t lane, uint32_t to, uint32_t stop)
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
static void reorder(struct slayers *k, uint32_t lane, uint32_t back, uint32_t fore)
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
static bool admit(struct slayers *k, uint32_t lane, struct sdep d)
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

void slayers_begin(struct slayers *k)
{
    const struct sgraph *x = k->x;
    k->order[k->num] = ARENA_NEW_N(k->a, x->num_chans + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++)
        k->order[k->num][c] = c;
    k->num++;
}

// Room for one more.
static struct slog *log_room(struct slayers *k)
{
    if (k->num_log < k->cap_log)
        return k->log;
    k->cap_log = k->cap_log ? 2 * k->cap_log : 1024;
    struct slog *log = arena_array(k->a, k->cap_log, sizeof(*log));
    if (k->num_log > 0)
        memcpy(log, k->log, k->num_log * sizeof(*log));
    return log;
}

void slayers_back(struct slayers *k, uint32_t to)
{
    while (k->num_log > to) {
        k->num_log--;
        k->has[k->log[k->num_log].id] &= ~k->log[k->num_log].bit;
    }
}

bool slayers_try(struct slayers *k, uint32_t lane)
{
    uint32_t bit = 1u << lane, added = 0;
    for (uint32_t i = 0; i < k->num_deps; i++) {
        if (k->never[id_of(k, k->dep[i])] & bit)
            return false;
    }
    uint32_t i = 0;
    for (; i < k->num_deps; i++) {
        struct sdep d = k->dep[i];
        if (k->has[id_of(k, d)] & bit)
            continue;
        if (!admit(k, lane, d))
            break;
        k->has[id_of(k, d)] |= bit;
        k->dep[i] = k->dep[added]; // those added first
        k->dep[added++] = d;
    }
    if (i == k->num_deps) {
        for (uint32_t j = 0; k->trial && j < added; j++) {
            k->log = log_room(k);
            k->log[k->num_log++] = (struct slog){id_of(k, k->dep[j]), bit};
        }
        return true;
    }
    for (uint32_t j = 0; j < added; j++)
        k->has[id_of(k, k->dep[j])] &= ~bit;
    if (k->trial)
        return false;
    if (added == 0 || !admit(k, lane, k->dep[i]))
        k->never[id_of(k, k->dep[i])] |= bit;
    return false;
}

// --- together ---

void slayers_init(struct slayers *k, const struct sgraph *x, const struct fabric_tables *t, struct arena *a)
{
    *k = (struct slayers){.x = x, .t = t};
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
    k->dep = ARENA_NEW_N(a, deps + 1, struct sdep);
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
