// SPDX-License-Identifier: Apache-2.0
// Entries of sssp: which of the kept channels, and which of their cables, a destination takes.
//
// Highest random weight with bounded loads: a destination goes by the cable of highest hash, unless that has
// its share already; a cable's share is what it would carry if every switch spread all it sends evenly over
// the cables that it may use, and a little more. So most entries depend on nothing but the cables there are,
// and yet no cable carries much more than another that could stand in for it.
#include "routing/sssp_priv.h"

#include <string.h>

#define ONE 65536u // of flow: a path from one end node to one LID
#define SLACK(e) ((e) + (e) / 32 + 16 * ONE)

struct fill {
    const struct sgraph *x;
    struct fabric_tables *t;
    uint8_t *pair;
    uint64_t *share, *load; // per cable, as in rgraph.ports
    uint32_t *key;          // per cable
    struct stree r;
    // Of the tree at hand: cables that a switch may take, side by side, and the channel each is of.
    uint32_t *first, *cable, *chan, *cable_key;
    uint32_t *taken; // per switch: channel
};

static void count_shares(struct fill *k)
{
    const struct sgraph *x = k->x;
    struct stree *r = &k->r;
    for (uint32_t i = 0; i < r->num; i++)
        r->flow[r->order[i]] = (uint64_t)x->ends[r->order[i]] * ONE;
    for (uint32_t i = r->num; i-- > 1;) {
        uint32_t s = r->order[i], cables = 0;
        for (uint32_t j = r->coff[s]; j < r->coff[s] + r->cnum[s]; j++)
            cables += x->num_ports[r->cand[j]];
        uint64_t each = r->flow[s] / cables;
        for (uint32_t j = r->coff[s]; j < r->coff[s] + r->cnum[s]; j++) {
            uint32_t c = r->cand[j];
            r->flow[x->peer[c]] += each * x->num_ports[c];
            for (uint32_t p = 0; p < x->num_ports[c]; p++)
                k->share[x->first_port[c] + p] += each * x->lids[r->t];
        }
    }
}

static void gather(struct fill *k)
{
    const struct sgraph *x = k->x;
    const struct stree *r = &k->r;
    uint32_t n = 0;
    for (uint32_t i = 1; i < r->num; i++) {
        uint32_t s = r->order[i];
        k->first[i] = n;
        for (uint32_t j = r->coff[s]; j < r->coff[s] + r->cnum[s]; j++) {
            uint32_t c = r->cand[j], p = x->first_port[c];
            for (uint32_t m = 0; m < x->num_ports[c]; m++, n++) {
                k->cable[n] = p + m;
                k->chan[n] = c;
                k->cable_key[n] = k->key[p + m];
            }
        }
    }
    k->first[r->num] = n;
}

static uint64_t lid_key(const struct fabric *f, const struct rdest *d)
{
    const struct port *p = &f->port[f->lid_port[d->lid]];
    return hash_mix64(p->guid ? p->guid + d->lid_offset : d->lid);
}

static inline uint32_t weight(uint32_t lid, uint32_t cable)
{
    uint32_t h = (lid ^ cable) * 0x9e3779b1u;
    return (h ^ h >> 15) * 0x85ebca77u;
}

// Where the cable of highest hash has its share already: the highest of those that have not; or the one that
// has least more than that.
static uint32_t choose_room(const struct fill *k, uint32_t from, uint32_t to, uint32_t key, uint64_t flow)
{
    uint64_t best_hash = 0;
    uint32_t best = ID_NONE;
    bool best_full = true;
    for (uint32_t i = from; i < to; i++) {
        uint32_t p = k->cable[i];
        uint64_t hash = weight(key, k->cable_key[i]);
        bool full = k->load[p] + flow > SLACK(k->share[p]);
        if (full)
            hash = UINT64_MAX - k->load[p] * 16 / (k->share[p] / ONE + 1);
        if (best == ID_NONE || (full != best_full ? best_full : hash > best_hash)) {
            best = i;
            best_hash = hash;
            best_full = full;
        }
    }
    return best;
}

static uint32_t choose(const struct fill *k, uint32_t from, uint32_t to, uint32_t key, uint64_t flow)
{
    uint32_t best = from, highest = weight(key, k->cable_key[from]);
    for (uint32_t i = from + 1; i < to; i++) {
        uint32_t h = weight(key, k->cable_key[i]);
        best = h > highest ? i : best;
        highest = h > highest ? h : highest;
    }
    uint32_t p = k->cable[best];
    return flow == 0 || k->load[p] + flow <= SLACK(k->share[p]) ? best : choose_room(k, from, to, key, flow);
}

static void put_lid(struct fill *k, const struct rdest *d)
{
    const struct sgraph *x = k->x;
    struct stree *r = &k->r;
    uint32_t key = (uint32_t)(lid_key(x->g->f, d) >> 32);
    for (uint32_t i = 0; i < r->num; i++)
        r->flow[r->order[i]] = (uint64_t)x->ends[r->order[i]] * ONE;
    for (uint32_t i = r->num; i-- > 1;) {
        uint32_t s = r->order[i], b = choose(k, k->first[i], k->first[i + 1], key, r->flow[s]);
        k->load[k->cable[b]] += r->flow[s];
        r->flow[x->peer[k->chan[b]]] += r->flow[s];
        k->taken[s] = k->chan[b];
        tables_row(k->t, x->sw[s])[d->lid] = x->g->ports[k->cable[b]];
    }
    tables_row(k->t, x->sw[r->t])[d->lid] = d->port;
    // The lanes of what was taken in the end.
    uint8_t *any = r->need, *down = r->need_down;
    any[r->t] = down[r->t] = x->lanes;
    for (uint32_t i = 1; i < r->num; i++) {
        uint32_t s = r->order[i];
        any[s] = stree_step(r, k->taken[s], any, down, &down[s]);
        k->pair[(size_t)s * x->n + r->t] &= any[s];
    }
}

static void fill_init(struct fill *k, struct arena *a)
{
    const struct sgraph *x = k->x;
    uint32_t cables = 0;
    for (uint32_t c = 0; c < x->num_chans; c++)
        cables += x->num_ports[c];
    k->share = ARENA_NEW_N(a, cables + 1, uint64_t);
    k->load = ARENA_NEW_N(a, cables + 1, uint64_t);
    k->key = ARENA_NEW_N(a, cables + 1, uint32_t);
    k->cable = ARENA_NEW_N(a, cables + 1, uint32_t);
    k->chan = ARENA_NEW_N(a, cables + 1, uint32_t);
    k->cable_key = ARENA_NEW_N(a, cables + 1, uint32_t);
    k->first = ARENA_NEW_N(a, x->n + 2, uint32_t);
    k->taken = ARENA_NEW_N(a, x->n + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++) {
        uint64_t guid = hash_mix64(sgraph_guid(x, x->tail[c]));
        for (uint32_t i = x->first_port[c]; i < x->first_port[c] + x->num_ports[c]; i++)
            k->key[i] = (uint32_t)(hash_mix64(guid + x->g->ports[i]) >> 32);
    }
    stree_init(&k->r, x, a);
}

void sfill(const struct sgraph *x, struct fabric_tables *t, uint8_t *pair, struct arena *a)
{
    struct fill k = {.x = x, .t = t, .pair = pair};
    fill_init(&k, a);
    memset(pair, x->lanes, (size_t)x->n * x->n);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t s = 0; s < x->n; s++) {
            if (x->lids[s] == 0)
                continue;
            stree_paths(&k.r, s);
            stree_choose(&k.r);
            if (pass == 0) {
                count_shares(&k);
                continue;
            }
            gather(&k);
            for (uint32_t i = x->g->doff[x->sw[s]]; i < x->g->doff[x->sw[s] + 1]; i++)
                put_lid(&k, &x->g->d[i]);
        }
    }
}
