// SPDX-License-Identifier: Apache-2.0
// Lanes for repaired tables: what is said of lanes once entries have been kept and re-homed (repair.c).
//
// Hosts go on by the lane that they were told until they ask anew, so that lanes stay is worth more than the
// shortest detour. What the ideal's entries make, still, goes into the lanes where it was: less than what was
// in a lane makes no cycle. Then comes room for multicast (sssp_reserve.c), and entries that are not the
// ideal's may take another way if pairs keep their lanes by it (sssp_rehome.c). Each pair that is not as it
// was keeps its lane if that gets no cycle by it, else takes the first other that gets none. All is taken by
// GUIDs, so that it depends on nothing but blueprint, ideal and live fabric. When a pair finds no lane, all
// is computed anew.
#include "routing/sssp_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/err.h"

static void match(struct smend *m, struct arena *a)
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

// The dependencies that a way keeps of those that it had; whether it is as it was.
static bool kept_way(struct smend *m, uint32_t from, uint32_t to)
{
    const struct sgraph *x = &m->x;
    const struct rgraph *g = x->g;
    bool whole = true;
    for (uint32_t i = g->doff[x->sw[to]]; i < g->doff[x->sw[to] + 1]; i++) {
        uint32_t before = ID_NONE, hops = 0;
        for (uint32_t s = from; s != to; hops++) {
            uint32_t c = m->k.chan[(size_t)s * 256 + tables_port(m->t, x->sw[s], g->d[i].lid)];
            if (c == ID_NONE || hops == x->n)
                return false;
            bool kept = smend_kept(m, s, g->d[i].lid);
            if (kept && before != ID_NONE)
                slayers_add(&m->k, before, c);
            before = kept ? c : ID_NONE;
            whole &= kept;
            s = x->peer[c];
        }
    }
    return whole;
}

// Whether it is in a lane then.
static bool place(struct smend *m, uint32_t a, uint32_t b, uint32_t max)
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

// What is as it was goes into its lanes, where it fits as it did; pairs that are as they were have theirs.
static void keep_all(struct smend *m, uint32_t max)
{
    const struct sgraph *x = &m->x;
    for (uint32_t a = 0; a < x->n; a++) {
        lanes_set(m->now, x->sw[a], x->sw[a], 0);
        for (uint32_t b = a + 1; b < x->n; b++) {
            unsigned old = lanes_get(m->old, x->sw[a], x->sw[b]);
            if (old >= max || old >= m->k.num || x->comp[a] != x->comp[b])
                continue;
            slayers_clear(&m->k);
            bool there = kept_way(m, a, b), back = kept_way(m, b, a);
            if (slayers_try(&m->k, old) && there && back)
                lanes_set(m->now, x->sw[a], x->sw[b], old);
        }
    }
}

// The others. -EINVAL: entries that do not lead there; -ENOSPC.
static int place_rest(struct smend *m, uint32_t max, uint64_t *ret_moved)
{
    const struct sgraph *x = &m->x;
    for (uint32_t a = 0; a < x->n; a++) {
        for (uint32_t b = a + 1; b < x->n; b++) {
            unsigned old = lanes_get(m->old, x->sw[a], x->sw[b]);
            if (lanes_get(m->now, x->sw[a], x->sw[b]) != LANE_NONE || !spair_talks(x, a, b))
                continue;
            if (!slayers_pair(&m->k, a, b))
                return -EINVAL;
            if (!place(m, a, b, max))
                return -ENOSPC;
            *ret_moved += lanes_get(m->now, x->sw[a], x->sw[b]) != old;
        }
    }
    return 0;
}

// As their entries stay the ideal's, too.
static void keep_unconnected(struct smend *m, uint32_t max)
{
    const struct sgraph *x = &m->x;
    for (uint32_t a = 0; a < x->n; a++) {
        for (uint32_t b = a + 1; b < x->n; b++) {
            unsigned old = lanes_get(m->old, x->sw[a], x->sw[b]);
            if (x->comp[a] != x->comp[b] && old < max)
                lanes_set(m->now, x->sw[a], x->sw[b], old);
        }
    }
}

// --- together ---

static bool absent(const struct fabric *was, const struct fabric *live, uint32_t lid, uint32_t *ret_sw)
{
    uint32_t sw;
    uint8_t port;
    if (was->lid_port[lid] == ID_NONE || (lid <= live->top_lid && live->lid_port[lid] != ID_NONE) ||
        !rattachment(was, was->lid_port[lid], &sw, &port))
        return false;
    const struct node *n = fabric_by_guid(live, fabric_switch(was, sw)->guid);
    *ret_sw = n && n->type == NODE_SWITCH ? n->sw : ID_NONE;
    return *ret_sw != ID_NONE;
}

// LIDs that are down count where they hung: they come back to the entries that they have now.
static void add_absent(struct rgraph *g, const struct fabric *was, struct arena *a)
{
    uint32_t *more = ARENA_NEW_N(a, g->n + 2, uint32_t), num = 0, sw;
    for (uint32_t lid = 1; lid <= was->top_lid; lid++) {
        if (absent(was, g->f, lid, &sw)) {
            more[sw]++;
            num++;
        }
    }
    if (num == 0)
        return;
    uint32_t *off = ARENA_NEW_N(a, g->n + 1, uint32_t), *fill = ARENA_NEW_N(a, g->n + 1, uint32_t);
    struct rdest *d = ARENA_NEW_N(a, g->doff[g->n] + num + 1, struct rdest);
    for (uint32_t s = 0, at = 0; s < g->n; s++) {
        uint32_t has = g->doff[s + 1] - g->doff[s];
        memcpy(d + at, g->d + g->doff[s], has * sizeof(*d));
        fill[s] = at + has;
        at += has + more[s];
        off[s + 1] = at;
    }
    for (uint32_t lid = 1; lid <= was->top_lid; lid++) {
        if (absent(was, g->f, lid, &sw))
            d[fill[sw]++] = (struct rdest){.lid = (uint16_t)lid};
    }
    g->doff = off;
    g->d = d;
}

// So do their cables.
static void add_ends(struct smend *m)
{
    struct sgraph *x = &m->x;
    for (uint32_t i = 0; i < m->was->num_ports; i++) {
        const struct port *p = &m->was->port[i];
        const struct node *sw = fabric_peer_node(m->was, p);
        if (!sw || sw->type != NODE_SWITCH || fabric_node(m->was, p->node)->type == NODE_SWITCH)
            continue;
        const struct node *n = fabric_by_guid(m->f, sw->guid);
        if (n && n->type == NODE_SWITCH)
            x->ends[x->at[n->sw]]++;
    }
}

int rsssp_mend(const struct fabric *was, const struct fabric_tables *ideal, const struct fabric *live,
               const uint32_t *depth, struct fabric_tables *t, uint32_t max, struct fabric_lanes **ret,
               uint64_t *ret_moved, struct err *e)
{
    struct arena *a = arena_new();
    struct smend m = {.was = was, .f = live, .depth = depth, .ideal = ideal, .t = t};
    struct rgraph g;
    uint64_t moved = 0;
    rgraph_build(live, a, &g);
    add_absent(&g, was, a);
    sgraph_build(&m.x, &g, a);
    add_ends(&m);
    slayers_init(&m.k, &m.x, t, a);
    match(&m, a);
    m.old = ideal->lanes ? lanes_copy_for(ideal->lanes, was, live) : lanes_new(live->num_switches);
    m.now = lanes_new(live->num_switches);
    while (m.k.num < m.old->num_lanes && m.k.num < max)
        slayers_begin(&m.k);
    keep_all(&m, max);
    sreserve(&m.k, a);
    srehome(&m, a);
    int rc = place_rest(&m, max, &moved);
    if (rc == 0)
        keep_unconnected(&m, max);
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

// --- lanes of before over tables of now ---

uint64_t rsssp_stale(const struct fabric *f, const struct fabric_tables *t, const struct fabric_lanes *old,
                     uint64_t *ret)
{
    struct arena *a = arena_new();
    struct rgraph g;
    struct sgraph x;
    struct slayers k;
    uint64_t num = 0;
    rgraph_build(f, a, &g);
    sgraph_build(&x, &g, a);
    slayers_init(&k, &x, t, a);
    while (k.num < LANES_MAX)
        slayers_begin(&k);
    for (int pass = 0; pass < 2; pass++) { // all by their own lanes, then those that moved by the old one
        for (uint32_t s = 0; s < x.n; s++) {
            for (uint32_t d = s + 1; d < x.n; d++) {
                unsigned now = t->lanes ? lanes_get(t->lanes, x.sw[s], x.sw[d]) : 0;
                unsigned was = old ? lanes_get(old, x.sw[s], x.sw[d]) : 0, lane = pass == 0 ? now : was;
                if (!spair_talks(&x, s, d) || lane >= LANES_MAX || now >= LANES_MAX ||
                    (pass == 1 && was == now))
                    continue;
                slayers_pair(&k, s, d);
                if (slayers_try(&k, lane) || pass == 0)
                    continue;
                size_t there = (size_t)x.sw[s] * x.n + x.sw[d], back = (size_t)x.sw[d] * x.n + x.sw[s];
                ret[there / 64] |= 1ULL << (there % 64);
                ret[back / 64] |= 1ULL << (back % 64);
                num++;
            }
        }
    }
    arena_free(a);
    return num;
}
