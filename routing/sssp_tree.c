// SPDX-License-Identifier: Apache-2.0
// Shortest paths to one switch and the lanes that they fit; see sssp.c.
#include "routing/sssp_priv.h"

#include <string.h>

#define RUN_LEGAL 1 // channels of one colour, from here on, are legal in the first lane
#define RUN_DOWN 2  // and begin downwards

void stree_init(struct stree *r, const struct sgraph *x, struct arena *a)
{
    *r = (struct stree){.x = x};
    r->dist = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r->order = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r->first = ARENA_NEW_N(a, x->n + 1, uint8_t);
    r->run = ARENA_NEW_N(a, x->n + 1, uint8_t);
    r->any = ARENA_NEW_N(a, x->n + 1, uint8_t);
    r->down = ARENA_NEW_N(a, x->n + 1, uint8_t);
    r->need = ARENA_NEW_N(a, x->n + 1, uint8_t);
    r->need_down = ARENA_NEW_N(a, x->n + 1, uint8_t);
    r->coff = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r->cnum = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r->cand = ARENA_NEW_N(a, x->num_chans + 1, uint32_t);
    r->flow = ARENA_NEW_N(a, x->n + 1, uint64_t);
}

static void spread(struct stree *r)
{
    const struct sgraph *x = r->x;
    memset(r->dist, 0xff, x->n * sizeof(*r->dist));
    r->num = 0;
    r->dist[r->t] = 0;
    r->order[r->num++] = r->t;
    for (uint32_t head = 0; head < r->num; head++) {
        uint32_t v = r->order[head], d = r->dist[v] + 1;
        for (uint32_t c = x->off[v]; c < x->off[v + 1]; c++) {
            uint32_t w = x->peer[c];
            if (r->dist[w] == ID_NONE) {
                r->dist[w] = d;
                r->order[r->num++] = w;
            }
        }
    }
}

// In grids a switch half a ring away has two ways round. Both directions of a pair must take the same, or no
// lane may fit both; so it is the one that is legal in the first lane, whatever comes before and after.
static void settle_ties(struct stree *r, uint32_t s, uint32_t at, uint32_t *n)
{
    const struct sgraph *x = r->x;
    uint8_t legal = 0, all = 0;
    uint32_t kept = 0;
    for (int keep = 0; keep < 2; keep++) {
        for (uint32_t k = at; k < at + *n; k++) {
            uint32_t c = r->cand[k], w = x->peer[c];
            uint8_t run = w == r->t || r->first[w] != x->colour[c] ? RUN_LEGAL | RUN_DOWN : r->run[w];
            if (x->up[c] & 1)
                run &= RUN_LEGAL;
            else
                run = run & RUN_DOWN ? RUN_LEGAL | RUN_DOWN : 0;
            if (keep && (run & RUN_LEGAL || !legal))
                r->cand[at + kept++] = c;
            if (!keep)
                legal |= run & RUN_LEGAL;
            else if (run & RUN_LEGAL || !legal)
                all |= run;
        }
    }
    r->run[s] = all;
    *n = kept;
}

// Channels of one colour that lead nearer: of the least that some lane takes, or the least at all.
static void candidates(struct stree *r, uint32_t s, uint32_t at)
{
    const struct sgraph *x = r->x;
    uint32_t d = r->dist[s] - 1, least = 0, n;
    for (uint32_t from = 0;;) {
        uint32_t colour = 0xff;
        for (uint32_t c = x->off[s]; c < x->off[s + 1]; c++) {
            if (r->dist[x->peer[c]] == d && x->colour[c] >= from && x->colour[c] < colour)
                colour = x->colour[c];
        }
        if (from == 0)
            least = colour;
        uint8_t any = 0, down = 0, one;
        r->first[s] = (uint8_t)(colour == 0xff ? least : colour);
        n = 0;
        for (uint32_t c = x->off[s]; c < x->off[s + 1]; c++) {
            if (r->dist[x->peer[c]] != d || x->colour[c] != r->first[s])
                continue;
            r->cand[at + n++] = c;
        }
        if (x->coloured)
            settle_ties(r, s, at, &n);
        for (uint32_t k = at; k < at + n; k++) {
            any |= stree_step(r, r->cand[k], r->any, r->down, &one);
            down |= one;
        }
        r->any[s] = any;
        r->down[s] = down;
        if (any || colour == 0xff || !x->coloured)
            break;
        from = colour + 1;
    }
    r->coff[s] = at;
    r->cnum[s] = n;
}

void stree_paths(struct stree *r, uint32_t t)
{
    uint32_t at = 0;
    r->t = t;
    spread(r);
    r->any[t] = r->down[t] = r->x->lanes;
    r->cnum[t] = 0;
    r->coff[t] = 0;
    for (uint32_t i = 1; i < r->num; i++) {
        candidates(r, r->order[i], at);
        at += r->cnum[r->order[i]];
    }
}

// Which lanes each candidate fits, given what those behind can go by; all of them together.
static uint8_t fit(const struct stree *r, uint32_t s, uint8_t *fits)
{
    const uint32_t *cand = r->cand + r->coff[s];
    uint8_t some = 0, down;
    for (uint32_t k = 0; k < r->cnum[s]; k++) {
        uint8_t any = stree_step(r, cand[k], r->any, r->down, &down);
        fits[k] = (uint8_t)(r->need[s] & ((any & ~r->need_down[s]) | (down & r->need_down[s])));
        some |= fits[k];
    }
    return some;
}

static void choose_at(struct stree *r, uint32_t s)
{
    const struct sgraph *x = r->x;
    uint32_t *cand = r->cand + r->coff[s], n = r->cnum[s], kept = 0;
    uint8_t fits[256], some = fit(r, s, fits), all = 0xff;
    if (some == 0) { // those behind it find no common lane; at least its own
        r->need[s] = x->lanes;
        r->need_down[s] = 0;
        some = fit(r, s, fits);
    }
    if (some == 0)
        return;
    // The lowest, so that both directions of a pair, and all LIDs of a switch, find the same.
    uint8_t lane = some & (uint8_t)-some;
    for (uint32_t k = 0; k < n; k++) {
        if (fits[k] & lane) {
            all &= fits[k];
            cand[kept++] = cand[k];
        }
    }
    r->cnum[s] = kept;
    for (uint32_t k = 0; k < kept; k++) {
        uint32_t c = cand[k], w = x->peer[c];
        r->need[w] &= all;
        if (w != r->t)
            r->need_down[w] |= all & (uint8_t)~x->up[c] & (r->first[w] == x->colour[c] ? 0xff : x->blind);
    }
}

// From afar: who is farther has fewer lanes to go by, those nearer keep to what suits them.
void stree_choose(struct stree *r)
{
    memset(r->need, r->x->lanes, r->x->n);
    memset(r->need_down, 0, r->x->n);
    for (uint32_t i = r->num; i-- > 1;)
        choose_at(r, r->order[i]);
}
