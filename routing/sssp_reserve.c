// SPDX-License-Identifier: Apache-2.0
// Room for multicast: all of it goes by one lane, over one spanning tree in each part. Before pairs that have
// no lane yet fill that lane up, the turns of such a tree are put into it, so that what comes after leaves a
// tree to be found. It is grown as mcast.c grows one: ports in turn, from the same roots in the same order;
// what the lane gets later closes no cycle with it, so mcast.c comes to the same tree.
#include "routing/mcast.h"
#include "routing/sssp_priv.h"

#include <stdlib.h>
#include <string.h>

struct reserve {
    struct slayers *k;
    bool *in;      // per switch
    uint8_t *tree; // per channel, both directions
    uint32_t *reached, num;
};

static void reach(struct reserve *r, uint32_t c)
{
    const struct sgraph *x = r->k->x;
    uint32_t v = x->tail[c], z = x->peer[c];
    if (r->in[z])
        return;
    slayers_clear(r->k);
    for (uint32_t i = x->off[v]; i < x->off[v + 1]; i++) {
        if (r->tree[i]) {
            slayers_add(r->k, x->rev[i], c);
            slayers_add(r->k, x->rev[c], i);
        }
    }
    if (!slayers_try(r->k, MCAST_LANE))
        return;
    r->in[z] = true;
    r->tree[c] = r->tree[x->rev[c]] = 1;
    r->reached[r->num++] = z;
}

static uint32_t grow(struct reserve *r, uint32_t root)
{
    const struct sgraph *x = r->k->x;
    memset(r->in, 0, x->n);
    memset(r->tree, 0, x->num_chans);
    r->num = 0;
    r->in[root] = true;
    r->reached[r->num++] = root;
    for (uint32_t i = 0; i < r->num; i++) {
        for (unsigned port = 1; port < 256; port++) {
            uint32_t c = r->k->chan[(size_t)r->reached[i] * 256 + port];
            if (c != ID_NONE)
                reach(r, c);
        }
    }
    return r->num;
}

static int by_rank(const void *a, const void *b, void *arg)
{
    const struct sgraph *x = arg;
    uint64_t p = mcast_rank(sgraph_guid(x, *(const uint32_t *)a)),
             q = mcast_rank(sgraph_guid(x, *(const uint32_t *)b));
    return p < q ? -1 : p > q;
}

void sreserve(struct slayers *k, struct arena *a)
{
    const struct sgraph *x = k->x;
    struct reserve r = {.k = k};
    uint32_t *list = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r.in = ARENA_NEW_N(a, x->n + 1, bool);
    r.tree = arena_alloc(a, x->num_chans + 1);
    r.reached = ARENA_NEW_N(a, x->n + 1, uint32_t);
    k->trial = true;
    for (uint32_t comp = 0; comp < x->g->num_comps; comp++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < x->n; s++) {
            if (x->comp[s] == comp)
                list[n++] = s;
        }
        qsort_r(list, n, sizeof(*list), by_rank, (void *)(uintptr_t)x);
        for (uint32_t i = 0; i < n && i < MCAST_GROWN_TRIES; i++) {
            if (grow(&r, list[i]) == n)
                break;
            slayers_back(k, 0);
        }
        k->num_log = 0;
    }
    k->trial = false;
}
