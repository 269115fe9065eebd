// SPDX-License-Identifier: Apache-2.0
// What repair works on: the base (blueprint and ideal, prepared), and the live fabric beside it.
#include "routing/repair_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"

// --- the base ---

struct reading {
    const struct fabric *f;
    uint32_t *link, ports, tasks;
};

static void read_task(void *arg, unsigned i)
{
    const struct reading *r = arg;
    const struct fabric *f = r->f;
    uint64_t n = f->num_switches;
    uint32_t from = (uint32_t)(n * i / r->tasks), to = (uint32_t)(n * (i + 1) / r->tasks);
    memset(r->link + (size_t)from * r->ports, 0xff, (size_t)(to - from) * r->ports * sizeof(*r->link));
    for (uint32_t s = from; s < to; s++) {
        const struct node *nd = fabric_switch(f, s);
        for (unsigned num = 1; num <= nd->num_ports; num++)
            rswitch_peer(f, &f->port[nd->first_port + num], &r->link[(size_t)s * r->ports + num]);
    }
}

static uint32_t *read_links(const struct fabric *f, struct par *par, struct arena *a, uint32_t *ret_ports)
{
    uint32_t n = f->num_switches, ports = fabric_port_room(f);
    struct reading r = {f, ARENA_NEW_N(a, (size_t)n * ports + 1, uint32_t), ports, par ? 4 * par->width : 1};
    rpar_run(par, r.tasks, read_task, &r);
    *ret_ports = ports;
    return r.link;
}

static void read_places(struct route_base *b)
{
    uint32_t lids = (uint32_t)b->top_lid + 1;
    b->at_sw = ARENA_NEW_N(b->a, lids, uint32_t);
    b->at_port = ARENA_NEW_N(b->a, lids, uint8_t);
    for (uint32_t lid = 0; lid < lids; lid++) {
        b->at_sw[lid] = ID_NONE;
        if (lid > 0 && b->f->lid_port[lid] != ID_NONE)
            rattachment(b->f, b->f->lid_port[lid], &b->at_sw[lid], &b->at_port[lid]);
    }
}

static int base_order(struct route_base *b, struct err *e)
{
    struct arena *a = arena_new();
    struct rgraph g;
    struct rorder o = {.source = ""};
    int rc = 0;
    rgraph_build(b->f, a, &g);
    b->hosts = arena_memdup(b->a, g.hosts, (b->n + 1) * sizeof(*g.hosts));
    b->num_comps = g.num_comps;
    b->pos = ARENA_NEW_N(b->a, b->n + 1, uint32_t);
    b->rank = ARENA_NEW_N(b->a, b->n + 1, uint32_t);
    b->foot = ARENA_NEW_N(b->a, b->n + 1, bool);
    b->tiered = ARENA_NEW_N(b->a, b->n + 1, bool);
    if (b->ordered)
        rc = rorder_build(&g, &b->opts, a, &o, e);
    b->source = o.source;
    for (uint32_t s = 0; s < b->n && rc == 0; s++) {
        b->pos[s] = b->ordered ? o.pos[s] : s;
        if (!b->ordered)
            continue;
        b->rank[s] = o.rank[s];
        b->foot[s] = o.foot[s];
        b->tiered[s] = o.tiered[g.comp[s]];
    }
    if (b->ordered && rc == 0)
        rshares_find(b, &g, &o, a);
    arena_free(a);
    return rc;
}

int route_base_new(const struct fabric *blueprint, const struct route_result *ideal,
                   const struct route_opts *o, struct route_base **ret, struct err *e)
{
    uint32_t n = blueprint->num_switches;
    if (ideal->tables->num_switches != n)
        return err_set(e, -EINVAL, NULL, "ideal tables of %u switches for a blueprint of %u",
                       ideal->tables->num_switches, n);
    struct arena *a = arena_new();
    struct route_base *b = ARENA_NEW(a, struct route_base);
    *b = (struct route_base){.a = a, .f = blueprint, .ideal = ideal->tables, .engine = ideal->engine, .n = n};
    b->opts = *o;
    b->opts.par = NULL;
    b->opts.engine = ideal->engine; // not what it was chosen by
    b->ordered = rengine_is_ordered(ideal->engine);
    memcpy(b->why, ideal->why, sizeof(b->why));
    b->top_lid = blueprint->top_lid;
    b->link = read_links(blueprint, o->par, a, &b->ports);
    b->guid = ARENA_NEW_N(a, n + 1, uint64_t);
    for (uint32_t s = 0; s < n; s++)
        b->guid[s] = fabric_switch(blueprint, s)->guid;
    read_places(b);
    int rc = base_order(b, e);
    if (rc) {
        arena_free(a);
        return rc;
    }
    *ret = b;
    return 0;
}

void route_base_free(struct route_base *b)
{
    if (b)
        arena_free(b->a);
}

// --- the live fabric ---

static void match_switches(struct rlive *v)
{
    const struct route_base *b = v->b;
    uint32_t n = v->g.n;
    v->to_base = ARENA_NEW_N(v->a, n + 1, uint32_t);
    v->from_base = ARENA_NEW_N(v->a, b->n + 1, uint32_t);
    memset(v->from_base, 0xff, (b->n + 1) * sizeof(*v->from_base));
    v->same_numbers = n == b->n;
    for (uint32_t s = 0; s < n; s++) {
        v->to_base[s] = ID_NONE;
        if (s < b->n && b->guid[s] == v->g.guid[s]) {
            v->to_base[s] = s;
        } else {
            const struct node *nd = fabric_by_guid(b->f, v->g.guid[s]);
            v->same_numbers = false;
            if (nd && nd->type == NODE_SWITCH)
                v->to_base[s] = nd->sw;
        }
        if (v->to_base[s] == ID_NONE)
            v->extra = true;
        else
            v->from_base[v->to_base[s]] = s;
    }
}

// Groups by the lowest port to each neighbour.
static void light_groups(struct rlive *v)
{
    struct rgraph *g = &v->g;
    uint32_t slots = g->n * v->ports, np = 0, group[256];
    uint32_t *stamp = ARENA_NEW_N(v->a, g->n + 1, uint32_t), *slot = ARENA_NEW_N(v->a, g->n + 1, uint32_t);
    g->goff = ARENA_NEW_N(v->a, g->n + 1, uint32_t);
    g->g = ARENA_NEW_N(v->a, slots + 1, struct rgroup);
    g->ports = ARENA_NEW_N(v->a, slots + 1, uint8_t);
    for (uint32_t s = 0; s < g->n; s++) {
        const uint32_t *link = v->link + (size_t)s * v->ports;
        uint32_t first = g->goff[s] = g->num_groups;
        for (uint32_t p = 1; p < v->ports; p++) {
            uint32_t w = link[p];
            if (w == ID_NONE)
                continue;
            if (stamp[w] != s + 1) {
                stamp[w] = s + 1;
                slot[w] = g->num_groups++ - first;
                g->g[first + slot[w]] = (struct rgroup){.peer = w};
            }
            group[p] = first + slot[w];
            g->g[group[p]].num_ports++;
        }
        for (uint32_t i = first; i < g->num_groups; i++) {
            g->g[i].first_port = np;
            np += g->g[i].num_ports;
            g->g[i].num_ports = 0;
        }
        for (uint32_t p = 1; p < v->ports; p++) {
            if (link[p] != ID_NONE)
                g->ports[g->g[group[p]].first_port + g->g[group[p]].num_ports++] = (uint8_t)p;
        }
    }
    g->goff[g->n] = g->num_groups;
}

// Ranks by GUID; a switch that the base has not takes its tier, where that is what ranks are.
static struct rranks base_ranks(const struct rlive *v)
{
    const struct route_base *b = v->b;
    uint32_t *rank = ARENA_NEW_N(v->a, v->g.n + 1, uint32_t);
    bool *tiered = ARENA_NEW_N(v->a, v->g.n + 1, bool);
    for (uint32_t s = 0; s < v->g.n; s++) {
        uint32_t at = v->to_base[s], tier = fabric_switch(v->f, s)->tier;
        rank[s] = at != ID_NONE ? b->rank[at] : tier != TIER_NONE ? tier : 0;
        tiered[s] = at != ID_NONE ? b->tiered[at] : tier != TIER_NONE;
    }
    return (struct rranks){rank, tiered, b->source};
}

struct sorting {
    const struct rlive *v;
    const uint32_t *rank;
};

// The base's order; switches that it has not are lowest.
static int order_cmp(const void *x, const void *y, void *arg)
{
    const struct sorting *c = arg;
    uint32_t a = *(const uint32_t *)x, z = *(const uint32_t *)y;
    uint32_t ba = c->v->to_base[a], bz = c->v->to_base[z];
    if ((ba == ID_NONE) != (bz == ID_NONE))
        return ba == ID_NONE ? -1 : 1;
    if (ba != ID_NONE)
        return c->v->b->pos[ba] < c->v->b->pos[bz] ? -1 : 1;
    if (c->rank[a] != c->rank[z])
        return c->rank[a] < c->rank[z] ? -1 : 1;
    return c->v->g.guid[a] < c->v->g.guid[z] ? -1 : 1;
}

// Local maxima of the order: components with more than one are marked. Returns whether there are any.
static bool find_renewed(struct rlive *v)
{
    const struct rgraph *g = &v->g;
    uint32_t *tops = ARENA_NEW_N(v->a, g->num_comps + 1, uint32_t);
    v->renewed = ARENA_NEW_N(v->a, g->num_comps + 1, bool);
    bool any = false;
    for (uint32_t s = 0; s < g->n; s++) {
        bool max = true;
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1] && max; i++)
            max = v->o.pos[g->g[i].peer] < v->o.pos[s];
        if (max && tops[g->comp[s]]++ > 0)
            any = v->renewed[g->comp[s]] = true;
        if (max)
            v->o.top[g->comp[s]] = s;
    }
    return any;
}

static void set_positions(struct rlive *v)
{
    for (uint32_t k = 0; k < v->g.n; k++)
        v->o.pos[v->o.by_pos[k]] = k;
}

// Components that keep the order first, then the others in an order of their own.
static void renew(struct rlive *v, const struct rranks *ranks)
{
    struct rgraph g;
    struct rorder o;
    uint32_t n = v->g.n, k = 0, *by_pos = ARENA_NEW_N(v->a, n + 1, uint32_t);
    rgraph_build(v->f, v->a, &g);
    if (v->avoid)
        ravoid_prune(v->avoid, &g, v->a);
    for (uint32_t s = 0; s < n; s++) { // a host that is down must not move the root
        if (v->to_base[s] != ID_NONE)
            g.hosts[s] = v->b->hosts[v->to_base[s]];
    }
    rorder_build_ranked(&g, ranks, v->a, &o);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t s = pass == 0 ? v->o.by_pos[i] : o.by_pos[i];
            if (v->renewed[v->g.comp[s]] == (pass == 1))
                by_pos[k++] = s;
        }
    }
    for (uint32_t s = 0; s < n; s++) {
        if (v->renewed[v->g.comp[s]] && !(v->depth && v->depth[s] > 0))
            v->o.top[v->g.comp[s]] = o.top[g.comp[s]];
    }
    v->o.by_pos = by_pos;
    v->reordered = true;
    if (v->depth)
        ravoid_sink(v->avoid, v->o.by_pos, n);
    set_positions(v);
}

static void make_order(struct rlive *v)
{
    uint32_t n = v->g.n;
    struct rranks ranks = base_ranks(v);
    v->o.rank = arena_memdup(v->a, ranks.rank, (n + 1) * sizeof(*ranks.rank));
    v->o.pos = ARENA_NEW_N(v->a, n + 1, uint32_t);
    v->o.by_pos = ARENA_NEW_N(v->a, n + 1, uint32_t);
    v->o.top = ARENA_NEW_N(v->a, v->g.num_comps + 1, uint32_t);
    v->o.foot = ARENA_NEW_N(v->a, n + 1, bool);
    for (uint32_t s = 0; s < n; s++)
        v->o.by_pos[s] = s;
    struct sorting c = {v, ranks.rank};
    qsort_r(v->o.by_pos, n, sizeof(*v->o.by_pos), order_cmp, &c);
    if (v->depth)
        ravoid_sink(v->avoid, v->o.by_pos, n);
    set_positions(v);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t at = v->to_base[s];
        v->o.foot[s] = at != ID_NONE ? v->b->foot[at] : ranks.tiered[s];
        for (uint32_t i = v->g.goff[s]; at == ID_NONE && i < v->g.goff[s + 1]; i++)
            v->o.foot[s] &= ranks.rank[v->g.g[i].peer] >= ranks.rank[s];
    }
    if (find_renewed(v) && v->ordered)
        renew(v, &ranks);
    for (uint32_t s = 0; s < n && v->depth; s++)
        v->renewed[v->g.comp[s]] |= v->depth[s] > 0;
}

static bool suspect_port(const struct rlive *v, uint32_t s, uint32_t p)
{
    const struct route_base *b = v->b;
    uint32_t at = v->to_base[s];
    uint32_t far = p < b->ports ? b->link[(size_t)at * b->ports + p] : ID_NONE;
    if (far == ID_NONE)
        return false;
    uint32_t w = rfar(v, s, (uint8_t)p);
    if (w == ID_NONE || v->to_base[w] != far)
        return true;
    if (!v->ordered && v->depth && (v->depth[s] > 0 || v->depth[w] > 0)) // it may be passed
        return true;
    return v->ordered && (b->pos[at] < b->pos[far]) != (v->o.pos[s] < v->o.pos[w]);
}

// A cable between two switches that the base has not.
static bool extra_port(const struct rlive *v, uint32_t s, uint32_t p)
{
    const struct route_base *b = v->b;
    uint32_t w = rfar(v, s, (uint8_t)p), at = v->to_base[s];
    return w != ID_NONE && (p >= b->ports || b->link[(size_t)at * b->ports + p] != v->to_base[w]);
}

static void find_suspects(struct rlive *v)
{
    uint32_t ports = v->ports > v->b->ports ? v->ports : v->b->ports;
    v->suspect = ARENA_NEW_N(v->a, v->g.n + 1, struct rsuspect);
    for (uint32_t s = 0; s < v->g.n; s++) {
        struct rsuspect *x = &v->suspect[v->num_suspects];
        bool any = false;
        if (v->to_base[s] == ID_NONE)
            continue;
        for (uint32_t p = 1; p < ports; p++) {
            x->port[p] = suspect_port(v, s, p);
            any |= x->port[p];
            v->extra |= extra_port(v, s, p);
        }
        x->sw = s;
        v->num_suspects += any;
    }
}

uint32_t rideal_next(const struct rlive *v, uint32_t s, uint16_t lid)
{
    const struct route_base *b = v->b;
    uint32_t at = v->to_base[s];
    uint8_t port = rideal(v, s, lid);
    if (at == ID_NONE || port >= b->ports)
        return ID_NONE;
    uint32_t w = rfar(v, s, port);
    return w != ID_NONE && v->to_base[w] == b->link[(size_t)at * b->ports + port] ? w : ID_NONE;
}

struct rlive *rlive_new(const struct route_base *b, const struct fabric *f, const struct route_avoid *x,
                        struct par *par, struct arena *a)
{
    struct rlive *v = ARENA_NEW(a, struct rlive);
    *v = (struct rlive){.b = b, .f = f, .a = a, .g = {.f = f, .n = f->num_switches}};
    v->ordered = b->ordered;
    v->top_lid = b->top_lid > f->top_lid ? b->top_lid : f->top_lid;
    v->g.guid = ARENA_NEW_N(a, v->g.n + 1, uint64_t);
    for (uint32_t s = 0; s < v->g.n; s++)
        v->g.guid[s] = fabric_switch(f, s)->guid;
    v->link = read_links(f, par, a, &v->ports);
    if (x && x->any) {
        v->avoid = x;
        v->depth = x->sunk ? x->depth : NULL;
        ravoid_links(x, v->ports, v->link);
    }
    match_switches(v);
    light_groups(v);
    rgraph_components(&v->g, a);
    make_order(v);
    bool more_switches = v->extra;
    find_suspects(v);
    v->gaps = more_switches || (v->extra && b->num_comps > 1);
    return v;
}
