// SPDX-License-Identifier: Apache-2.0
// A lane for each pair of switches; see sssp.c. Pairs whose paths are all legal in some designed lane go by
// the first such. Each other one goes by the first lane whose dependencies, as the pairs assigned so far make
// them, get no cycle by it.
#include "routing/sssp_priv.h"

static uint8_t legal(const struct sgraph *x, const uint8_t *pair, uint32_t a, uint32_t b)
{
    return pair[(size_t)a * x->n + b] & pair[(size_t)b * x->n + a];
}

bool spair_talks(const struct sgraph *x, uint32_t a, uint32_t b)
{
    return x->comp[a] == x->comp[b] && (x->ends[a] > 0 || x->ends[b] > 0) && x->lids[a] + x->lids[b] > 0;
}

static void load_designed(struct slayers *k, const struct fabric_lanes *l)
{
    const struct sgraph *x = k->x;
    for (uint32_t a = 0; a < x->n; a++) {
        for (uint32_t b = a + 1; b < x->n; b++) {
            unsigned lane = lanes_get(l, x->sw[a], x->sw[b]);
            if (lane != LANE_NONE && slayers_pair(k, a, b))
                slayers_try(k, lane); // it fits: so the lane was designed
        }
    }
}

// The pairs that fit no designed lane, one after the other.
static uint32_t search(struct slayers *k, struct fabric_lanes *l, const uint8_t *pair, uint32_t max)
{
    const struct sgraph *x = k->x;
    bool over = false;
    for (uint32_t s = 0; s < x->n; s++) {
        for (uint32_t d = s + 1; d < x->n; d++) {
            if (!spair_talks(x, s, d) || legal(x, pair, s, d))
                continue;
            slayers_pair(k, s, d);
            uint32_t lane = 0;
            while (lane < k->num && !slayers_try(k, lane))
                lane++;
            if (lane == k->num && lane < SSSP_COUNTED_MAX) {
                slayers_begin(k);
                slayers_try(k, lane);
            }
            over |= lane == SSSP_COUNTED_MAX;
            if (lane < max)
                lanes_set(l, x->sw[s], x->sw[d], lane);
        }
    }
    return k->num + over;
}

// Numbers the lanes that are used without gaps; how many.
uint32_t slanes_close(struct fabric_lanes *l)
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
                left |= spair_talks(x, s, d);
        }
    }
    *ret_needed = x->num_lanes > 0 ? x->num_lanes : 1;
    if (left) {
        struct slayers k;
        slayers_init(&k, x, t, a);
        while (k.num < x->num_lanes)
            slayers_begin(&k);
        load_designed(&k, l);
        sreserve(&k, a);
        *ret_needed = search(&k, l, pair, max);
    }
    if (*ret_needed <= max) {
        l->num_lanes = *ret_needed = slanes_close(l);
        return l;
    }
    lanes_unref(l);
    return NULL;
}
