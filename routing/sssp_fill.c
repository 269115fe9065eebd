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
    uint64_t *key;          // per cable
    struct stree r;
    uint32_t *taken; // per switch: channel
    uint64_t *flow;
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

static uint64_t lid_key(const struct fabric *f, const struct rdest *d)
{
    const struct port *p = &f->port[f->lid_port[d->lid]];
    return hash_mix64(p->guid ? p->guid + d->lid_offset : d->lid);
}

struct best {
    uint32_t chan, cable;
    uint64_t hash;
    bool full;
};

static void choose(struct fill *k, uint32_t s, uint64_t key, uint64_t flow, struct best *ret)
{
    const struct sgraph *x = k->x;
    const struct stree *r = &k->r;
    *ret = (struct best){.chan = ID_NONE};
    for (uint32_t j = r->coff[s]; j < r->coff[s] + r->cnum[s]; j++) {
        uint32_t c = r->cand[j];
        for (uint32_t i = x->first_port[c]; i < x->first_port[c] + x->num_ports[c]; i++) {
            uint64_t hash = (key ^ k->key[i]) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 32;
            hash *= 0xd6e8feb86659fd93u;
            bool full = flow > 0 && k->load[i] + flow > SLACK(k->share[i]);
            // Among those that have their share already, the one with least more than that.
            if (full)
                hash = UINT64_MAX - k->load[i] * 16 / (k->share[i] / ONE + 1);
            if (ret->chan == ID_NONE || (full != ret->full ? ret->full : hash > ret->hash))
                *ret = (struct best){c, i, hash, full};
        }
    }
}

static void put_lid(struct fill *k, const struct rdest *d)
{
    const struct sgraph *x = k->x;
    struct stree *r = &k->r;
    uint64_t key = lid_key(x->g->f, d);
    for (uint32_t i = 0; i < r->num; i++)
        r->flow[r->order[i]] = (uint64_t)x->ends[r->order[i]] * ONE;
    for (uint32_t i = r->num; i-- > 1;) {
        uint32_t s = r->order[i];
        struct best b;
        choose(k, s, key, r->flow[s], &b);
        k->load[b.cable] += r->flow[s];
        r->flow[x->peer[b.chan]] += r->flow[s];
        k->taken[s] = b.chan;
        tables_row(k->t, x->sw[s])[d->lid] = x->g->ports[b.cable];
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

void sfill(const struct sgraph *x, struct fabric_tables *t, uint8_t *pair, struct par *par, struct arena *a)
{
    (void)par;
    struct fill k = {.x = x, .t = t, .pair = pair};
    uint32_t cables = 0;
    for (uint32_t c = 0; c < x->num_chans; c++)
        cables += x->num_ports[c];
    k.share = ARENA_NEW_N(a, cables + 1, uint64_t);
    k.load = ARENA_NEW_N(a, cables + 1, uint64_t);
    k.key = ARENA_NEW_N(a, cables + 1, uint64_t);
    k.taken = ARENA_NEW_N(a, x->n + 1, uint32_t);
    for (uint32_t c = 0; c < x->num_chans; c++) {
        for (uint32_t i = x->first_port[c]; i < x->first_port[c] + x->num_ports[c]; i++)
            k.key[i] = hash_mix64(hash_mix64(sgraph_guid(x, x->tail[c])) + x->g->ports[i]);
    }
    stree_init(&k.r, x, a);
    for (uint32_t s = 0; s < x->n; s++) {
        if (x->lids[s] == 0)
            continue;
        stree_paths(&k.r, s);
        stree_choose(&k.r);
        count_shares(&k);
    }
    memset(pair, x->lanes, (size_t)x->n * x->n);
    for (uint32_t s = 0; s < x->n; s++) {
        if (x->lids[s] == 0)
            continue;
        stree_paths(&k.r, s);
        stree_choose(&k.r);
        for (uint32_t i = x->g->doff[x->sw[s]]; i < x->g->doff[x->sw[s] + 1]; i++)
            put_lid(&k, &x->g->d[i]);
    }
}
