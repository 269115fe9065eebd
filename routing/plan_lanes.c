// SPDX-License-Identifier: Apache-2.0
// By which lanes packets may come while tables are written, and after.
//
// A host goes by the lane that PathRecord told it when it asked, for as long as it does not ask again. It is
// told new lanes when all waves are written: so while they are, over old entries, new ones and mixes, all
// goes by the old lanes; after them, over the new entries, by the old or the new one. A pair whose lane stays
// is no matter. One whose lane moves counts in both over the new entries.
//
// That cannot always be: the lane may have moved just because the new path closes a cycle in the old one.
// Such a pair is stale. Its old lane is left out of the order that the waves keep to, and the plan says so:
// to take its entries away first would cut it off for the time of the waves and help nobody, as the old lane
// is in use after them too, until the hosts are told.
//
// What comes by a switch is what the switches before it send on: the lanes of all sources spread along the
// entries, for mixes along old and new ones together, which is more than any one mix does.
#include <string.h>

#include "routing/plan_priv.h"
#include "routing/route_priv.h"

// Between two switches without end nodes goes nothing but management on VL15.
static unsigned lane_bit(const struct planning *p, const struct fabric_lanes *l, uint32_t a, uint32_t b)
{
    unsigned lane = l ? lanes_get(l, a, b) : 0;
    return lane < LANES_MAX && (p->ends[a] || p->ends[b]) ? 1u << lane : 0;
}

void plan_lanes_init(const struct planning *p, struct plan_lanes *l, struct arena *a)
{
    *l = (struct plan_lanes){0};
    for (unsigned i = 0; i < 3; i++)
        l->by[i] = arena_alloc(a, p->n + 1);
    l->old = l->by[0];
    l->new = l->by[1];
    l->mix = l->by[2];
    if (!p->lanes) {
        for (unsigned i = 0; i < 3; i++)
            memset(l->by[i], 1, p->n);
        return;
    }
    l->waiting = arena_alloc(a, p->n + 1);
    l->queue = ARENA_NEW_N(a, p->n + 1, uint32_t);
}

// A LID that is no port's has no packets to speak of: what comes to it ends soon.
static uint32_t end_of(const struct planning *p, uint32_t lid)
{
    uint32_t sw;
    uint8_t port;
    bool there = lid <= p->f->top_lid && p->f->lid_port[lid] != ID_NONE;
    return there && rattachment(p->f, p->f->lid_port[lid], &sw, &port) ? sw : NO_SWITCH;
}

static void spread(const struct planning *p, struct plan_lanes *l, uint32_t lid, uint8_t *by, bool old,
                   bool new)
{
    uint32_t num = p->n;
    for (uint32_t s = 0; s < p->n; s++)
        l->queue[s] = s;
    memset(l->waiting, 1, p->n);
    while (num > 0) {
        uint32_t v = l->queue[--num];
        l->waiting[v] = 0;
        uint32_t far[2] = {old ? plan_far(p, v, plan_old(p, v, lid)) : NO_SWITCH,
                           new ? plan_far(p, v, plan_new(p, v, lid)) : NO_SWITCH};
        for (unsigned i = 0; i < 2; i++) {
            uint32_t w = far[i];
            if (w == NO_SWITCH || (by[w] | by[v]) == by[w])
                continue;
            by[w] |= by[v];
            if (!l->waiting[w])
                l->queue[num++] = w;
            l->waiting[w] = 1;
        }
    }
}

void plan_lanes_at(const struct planning *p, struct plan_lanes *l, uint32_t lid)
{
    if (!p->lanes)
        return;
    uint32_t t = p->end[lid];
    if (t == NO_SWITCH) {
        for (unsigned i = 0; i < 3; i++)
            memset(l->by[i], 0, p->n);
        return;
    }
    for (uint32_t s = 0; s < p->n; s++) {
        size_t at = (size_t)s * p->n + t;
        unsigned old = lane_bit(p, p->old_lanes, s, t);
        l->by[0][s] = (uint8_t)old;
        if (p->stale_pair && p->stale_pair[at / 64] >> (at % 64) & 1)
            old = 0;
        l->by[1][s] = (uint8_t)(old | lane_bit(p, p->new_lanes, s, t));
        l->by[2][s] = (uint8_t)old;
    }
    spread(p, l, lid, l->by[0], true, false);
    spread(p, l, lid, l->by[1], false, true);
    spread(p, l, lid, l->by[2], true, true);
}

static void find_stale(struct planning *p)
{
    size_t cells = (size_t)p->n * p->n;
    for (uint32_t a = 0; a < p->n; a++) {
        for (uint32_t b = a + 1; b < p->n; b++) {
            unsigned old = lane_bit(p, p->old_lanes, a, b), now = lane_bit(p, p->new_lanes, a, b);
            p->lanes_changed += old && now && old != now;
        }
    }
    if (p->lanes_changed == 0)
        return;
    p->stale_pair = ARENA_NEW_N(p->a, cells / 64 + 1, uint64_t);
    uint64_t num = rsssp_stale(p->f, p->new_tables, p->old_lanes, p->stale_pair);
    p->stale_list = ARENA_NEW_N(p->a, num + 1, struct route_pair);
    for (uint32_t a = 0; a < p->n; a++) {
        for (uint32_t b = a + 1; b < p->n; b++) {
            size_t at = (size_t)a * p->n + b;
            if (p->stale_pair[at / 64] >> (at % 64) & 1)
                p->stale_list[p->num_stale++] = (struct route_pair){a, b};
        }
    }
}

void plan_lanes_find(struct planning *p)
{
    p->old_lanes = p->old->lanes;
    p->new_lanes = p->new_tables->lanes;
    p->lanes = p->old_lanes || p->new_lanes;
    p->num_lanes = p->lanes ? LANES_MAX : 1;
    if (!p->lanes)
        return;
    p->ends = ARENA_NEW_N(p->a, p->n + 1, bool);
    for (uint32_t s = 0; s < p->n; s++)
        p->ends[s] = fabric_has_ends(p->f, s);
    p->end = ARENA_NEW_N(p->a, p->lids + 1, uint32_t);
    for (uint32_t lid = 0; lid < p->lids; lid++)
        p->end[lid] = end_of(p, lid);
    find_stale(p);
}
