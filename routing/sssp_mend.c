// SPDX-License-Identifier: Apache-2.0
// Lanes for repaired tables: what is said of lanes once entries have been kept and re-homed (repair.c).
//
// Pairs whose paths, both ways and to all LIDs, are those that the ideal tables have keep their lanes: less
// than what was in a lane makes no cycle. Each other pair keeps its lane, too, if that gets no cycle by it
// (those that talk already go on in the lane that they know), else takes the first other that gets none. They
// are taken by GUIDs, so that the lanes depend on nothing but blueprint, ideal and live fabric. When a pair
// finds no lane, all is computed anew.
#include "routing/sssp_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/err.h"

struct mend {
    const struct fabric *was, *f;
    const struct fabric_tables *ideal;
    struct sgraph x;
    struct slayers k;
    struct fabric_lanes *old, *now; // by live switch numbers
    uint32_t *base;                 // per switch, by GUID order: its number in `was`, ID_NONE
    bool *same;                     // [switch * 256 + port]: leads where it led
};

static void match(struct mend *m, struct arena *a)
{
    const struct sgraph *x = &m->x;
    m->base = ARENA_NEW_N(a, x->n + 1, uint32_t);
    m->same = ARENA_NEW_N(a, (size_t)x->n * 256 + 1, bool);
    for (uint32_t s = 0; s < x->n; s++) {
        const struct node *n = fabric_by_guid(m->was, sgraph_guid(x, s));
        m->base[s] = n && n->type == NODE_SWITCH ? n->sw : ID_NONE;
        for (unsigned p = 1; m->base[s] != ID_NONE && p <= n->num_ports; p++) {
            uint32_t c = m->k.chan[(size_t)s * 256 + p], far;
            m->same[(size_t)s * 256 + p] = c != ID_NONE &&
                                           rswitch_peer(m->was, &m->was->port[n->first_port + p], &far) &&
                                           fabric_switch(m->was, far)->guid == sgraph_guid(x, x->peer[c]);
        }
    }
}

static bool as_it_was(const struct mend *m, uint32_t from, uint32_t to)
{
    const struct sgraph *x = &m->x;
    const struct rgraph *g = x->g;
    for (uint32_t i = g->doff[x->sw[to]]; i < g->doff[x->sw[to] + 1]; i++) {
        for (uint32_t s = from; s != to;) {
            uint8_t out = tables_port(m->k.t, x->sw[s], g->d[i].lid);
            if (!m->same[(size_t)s * 256 + out] || tables_port(m->ideal, m->base[s], g->d[i].lid) != out)
                return false;
            s = x->peer[m->k.chan[(size_t)s * 256 + out]];
        }
    }
    return true;
}

// Whether it is in a lane then.
static bool place(struct mend *m, uint32_t a, uint32_t b, uint32_t max)
{
    const struct sgraph *x = &m->x;
    unsigned own = lanes_get(m->old, x->sw[a], x->sw[b]), lane = 0;
    if (own < m->k.num && slayers_try(&m->k, own)) {
        lane = own;
    } else {
        while (lane < m->k.num && (lane == own || !slayers_try(&m->k, lane)))
            lane++;
        if (lane == max)
            return false;
        if (lane == m->k.num) {
            slayers_begin(&m->k);
            slayers_try(&m->k, lane);
        }
    }
    lanes_set(m->now, x->sw[a], x->sw[b], lane);
    return true;
}

// Pairs as they were first, then (changed) the others. -EINVAL: entries that do not lead there; -ENOSPC.
static int place_all(struct mend *m, bool changed, uint32_t max, uint64_t *ret_moved)
{
    const struct sgraph *x = &m->x;
    for (uint32_t a = 0; a < x->n; a++) {
        lanes_set(m->now, x->sw[a], x->sw[a], 0);
        for (uint32_t b = a + 1; b < x->n; b++) {
            unsigned old = lanes_get(m->old, x->sw[a], x->sw[b]), now = lanes_get(m->now, x->sw[a], x->sw[b]);
            bool talks = spair_talks(x, a, b);
            if (now != LANE_NONE || x->comp[a] != x->comp[b] || (!talks && (changed || old == LANE_NONE)))
                continue;
            if (!slayers_pair(&m->k, a, b)) {
                if (talks)
                    return -EINVAL;
                continue;
            }
            bool was = old != LANE_NONE && as_it_was(m, a, b) && as_it_was(m, b, a);
            if (was == changed)
                continue;
            if (!place(m, a, b, max))
                return -ENOSPC;
            *ret_moved += changed && lanes_get(m->now, x->sw[a], x->sw[b]) != old;
        }
    }
    return 0;
}

int rsssp_mend(const struct fabric *was, const struct fabric_tables *ideal, const struct fabric *live,
               const struct fabric_tables *t, uint32_t max, struct fabric_lanes **ret, uint64_t *ret_moved,
               struct err *e)
{
    struct arena *a = arena_new();
    struct mend m = {.was = was, .f = live, .ideal = ideal};
    struct rgraph g;
    uint64_t moved = 0;
    rgraph_build(live, a, &g);
    sgraph_build(&m.x, &g, a);
    slayers_init(&m.k, &m.x, t, a);
    match(&m, a);
    m.old = ideal->lanes ? lanes_copy_for(ideal->lanes, was, live) : lanes_new(live->num_switches);
    m.now = lanes_new(live->num_switches);
    while (m.k.num < m.old->num_lanes && m.k.num < max)
        slayers_begin(&m.k);
    int rc = place_all(&m, false, max, &moved);
    rc = rc ? rc : place_all(&m, true, max, &moved);
    if (rc == 0) {
        m.now->num_lanes = m.k.num;
        *ret = lanes_ref(m.now);
        *ret_moved = moved;
    } else if (rc == -EINVAL) {
        err_set(e, rc, NULL, "lanes for tables that do not lead everywhere");
    } else {
        err_set(e, rc, NULL, "the repaired paths would need more than %u virtual lanes", max);
    }
    lanes_unref(m.now);
    lanes_unref(m.old);
    arena_free(a);
    return rc;
}
