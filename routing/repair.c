// SPDX-License-Identifier: Apache-2.0
// Repair: the tables of a damaged fabric from those of the whole one. See route.h for what is promised.
//
//   repair.c         base and live fabric side by side; which LIDs are touched; the copy
//   repair_column.c  one destination under up*/down*
//   repair_plain.c   one destination without an order: shortest paths, and tables from elsewhere
//
// The order of switches is the base's, so that a failure changes no rank. Only in a connected component where
// it has more than one local maximum (its top is dead, or cut off from something that has no other way up) an
// order is built anew, from the base's ranks.
//
// A port is suspect when the ideal means it to lead to another switch and it does not lead there now, or the
// order of the two has changed. A destination without an entry over a suspect port is as it was: all its
// paths are alive and go up and down as they did. So only rows of switches with suspect ports are searched.
//
// Memory: the base is the caller's; everything else is an arena that dies with the call, and the tables.
#include "routing/repair_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"

// --- the base ---

static uint32_t *read_links(const struct fabric *f, struct arena *a, uint32_t *ret_ports)
{
    uint32_t n = f->num_switches, ports = 1;
    for (uint32_t s = 0; s < n; s++) {
        if (fabric_switch(f, s)->num_ports + 1u > ports)
            ports = fabric_switch(f, s)->num_ports + 1u;
    }
    uint32_t *link = ARENA_NEW_N(a, (size_t)n * ports + 1, uint32_t);
    memset(link, 0xff, (size_t)n * ports * sizeof(*link));
    for (uint32_t s = 0; s < n; s++) {
        const struct node *nd = fabric_switch(f, s);
        for (unsigned num = 1; num <= nd->num_ports; num++)
            rswitch_peer(f, &f->port[nd->first_port + num], &link[(size_t)s * ports + num]);
    }
    *ret_ports = ports;
    return link;
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
    b->ordered = ideal->engine == ROUTE_UPDN || ideal->engine == ROUTE_AUTO;
    memcpy(b->why, ideal->why, sizeof(b->why));
    b->top_lid = blueprint->top_lid;
    b->link = read_links(blueprint, a, &b->ports);
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
        if (v->renewed[v->g.comp[s]])
            v->o.top[v->g.comp[s]] = o.top[g.comp[s]];
    }
    v->o.by_pos = by_pos;
    v->reordered = true;
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
    set_positions(v);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t at = v->to_base[s];
        v->o.foot[s] = at != ID_NONE ? v->b->foot[at] : ranks.tiered[s];
        for (uint32_t i = v->g.goff[s]; at == ID_NONE && i < v->g.goff[s + 1]; i++)
            v->o.foot[s] &= ranks.rank[v->g.g[i].peer] >= ranks.rank[s];
    }
    if (find_renewed(v) && v->ordered)
        renew(v, &ranks);
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

static struct rlive *live_new(const struct route_base *b, const struct fabric *f, struct arena *a)
{
    struct rlive *v = ARENA_NEW(a, struct rlive);
    *v = (struct rlive){.b = b, .f = f, .a = a, .g = {.f = f, .n = f->num_switches}};
    v->ordered = b->ordered;
    v->top_lid = b->top_lid > f->top_lid ? b->top_lid : f->top_lid;
    v->g.guid = ARENA_NEW_N(a, v->g.n + 1, uint64_t);
    for (uint32_t s = 0; s < v->g.n; s++)
        v->g.guid[s] = fabric_switch(f, s)->guid;
    v->link = read_links(f, a, &v->ports);
    match_switches(v);
    light_groups(v);
    rgraph_components(&v->g, a);
    make_order(v);
    bool more_switches = v->extra;
    find_suspects(v);
    v->gaps = more_switches || (v->extra && b->num_comps > 1);
    return v;
}

// --- touched LIDs ---

struct job {
    struct rlive *v;
    struct fabric_tables *out; // NULL: only look whether there is work
    uint32_t blocks, tasks;
    struct outcome {
        uint64_t displaced;
        uint32_t columns, anew;
        bool work;
    } * done; // per task
};

enum work {
    WORK_NONE,
    WORK_REPAIR,
    WORK_ALL,
};

struct place {
    uint32_t sw;
    uint8_t port;
};

// Where a LID hangs, or false; *ret_moved: its entries are not the ideal's to tell.
static bool place_of(const struct rlive *v, uint16_t lid, struct place *ret, bool *ret_moved)
{
    const struct route_base *b = v->b;
    uint32_t base_sw = lid <= b->top_lid ? b->at_sw[lid] : ID_NONE;
    uint32_t from = base_sw == ID_NONE ? ID_NONE : v->from_base[base_sw];
    *ret_moved = false;
    if (lid <= v->f->top_lid && v->f->lid_port[lid] != ID_NONE &&
        rattachment(v->f, v->f->lid_port[lid], &ret->sw, &ret->port)) {
        *ret_moved = from != ret->sw;
        return true;
    }
    if (from == ID_NONE)
        return false;
    *ret = (struct place){from, b->at_port[lid]};
    if (rfar(v, ret->sw, ret->port) != ID_NONE) // another switch sits there now
        ret->port = LFT_DROP;
    return true;
}

static enum work work_of(const struct rlive *v, uint16_t lid, uint32_t seeds, const struct place *at,
                         bool moved)
{
    if (moved)
        return WORK_ALL;
    bool many = v->gaps || (v->extra && !v->ordered);
    return seeds > 0 || many || rideal(v, at->sw, lid) != at->port ? WORK_REPAIR : WORK_NONE;
}

static void column(struct rrepair *r, uint16_t lid, const struct place *at, const uint32_t *seed,
                   uint32_t seeds, bool all)
{
    const struct rlive *v = r->v;
    uint8_t before = rideal(v, at->sw, lid);
    r->lid = lid;
    r->t = at->sw;
    rput(r, at->sw, at->port);
    r->displaced += before != LFT_DROP && before != at->port;
    switch (v->b->engine) {
    case ROUTE_AUTO:
    case ROUTE_UPDN:
        rrepair_column(r, lid, at->sw, seed, seeds, all);
        break;
    case ROUTE_MINHOP:
        rrepair_minhop(r, lid, at->sw);
        break;
    case ROUTE_FILE:
        rrepair_found(r, lid, at->sw, at->port);
        break;
    }
}

// Switches with an entry over a suspect port, by LID of the block.
struct seeds {
    uint32_t num[LFT_BLOCK];
    uint32_t *sw; // [64][switches]
};

static void find_seeds(const struct rlive *v, uint32_t lid0, struct seeds *x)
{
    uint32_t n = v->g.n;
    memset(x->num, 0, sizeof(x->num));
    if (lid0 >= v->b->ideal->lids)
        return;
    for (uint32_t i = 0; i < v->num_suspects; i++) {
        const struct rsuspect *k = &v->suspect[i];
        const uint8_t *row = tables_row(v->b->ideal, v->to_base[k->sw]) + lid0;
        for (uint32_t l = 0; l < LFT_BLOCK; l++) {
            x->sw[(size_t)l * n + x->num[l]] = k->sw;
            x->num[l] += k->port[row[l]];
        }
    }
}

// Those that have no entry though they may have a way.
static void add_gaps(const struct rlive *v, uint16_t lid, const struct place *at, struct seeds *x, uint32_t l)
{
    for (uint32_t s = 0; s < v->g.n; s++) {
        if (s != at->sw && rideal(v, s, lid) == LFT_DROP)
            x->sw[(size_t)l * v->g.n + x->num[l]++] = s;
    }
}

// A destination out of reach keeps the ideal's entries, which go by the base's order. Where that was made
// anew, a turn over a cable whose two ends have changed places may go down and up: that entry is dropped.
static void tame(struct rrepair *r, uint16_t lid, const struct place *at, const uint32_t *seed, uint32_t num)
{
    const struct rlive *v = r->v;
    const uint32_t *pos = v->o.pos;
    r->lid = lid;
    for (uint32_t i = 0; i < num; i++) {
        uint32_t s = seed[i], w = rideal_next(v, s, lid), x = w == ID_NONE ? ID_NONE : rideal_next(v, w, lid);
        if (w == ID_NONE || !v->renewed[v->g.comp[s]] || (at && v->g.comp[s] == v->g.comp[at->sw]))
            continue;
        bool bad = pos[w] < pos[s] && x != ID_NONE && pos[x] > pos[w];
        for (uint32_t k = v->g.goff[s]; k < v->g.goff[s + 1] && pos[w] > pos[s]; k++) {
            x = v->g.g[k].peer;
            bad |= pos[x] > pos[s] && rideal_next(v, x, lid) == s;
        }
        if (bad) {
            rput(r, s, LFT_DROP);
            r->displaced++;
        }
    }
}

static void block(struct job *j, struct rrepair *r, uint32_t lid0, struct seeds *x, struct outcome *done)
{
    const struct rlive *v = j->v;
    find_seeds(v, lid0, x);
    for (uint32_t l = 0; l < LFT_BLOCK; l++) {
        uint16_t lid = (uint16_t)(lid0 + l);
        struct place at;
        bool moved;
        if (lid == 0 || lid > v->top_lid)
            continue;
        bool placed = place_of(v, lid, &at, &moved);
        if (v->reordered && x->num[l] > 0) {
            done->work = true;
            if (j->out)
                tame(r, lid, placed ? &at : NULL, x->sw + (size_t)l * v->g.n, x->num[l]);
        }
        if (!placed)
            continue;
        enum work w = work_of(v, lid, x->num[l], &at, moved);
        if (w == WORK_NONE)
            continue;
        done->work = true;
        if (!j->out)
            return;
        if (v->gaps)
            add_gaps(v, lid, &at, x, l);
        column(r, lid, &at, x->sw + (size_t)l * v->g.n, x->num[l], w == WORK_ALL);
        done->columns++;
    }
}

static void copy_rows(struct job *j, uint32_t from, uint32_t to)
{
    const struct rlive *v = j->v;
    uint32_t lids = v->b->ideal->lids < j->out->lids ? v->b->ideal->lids : j->out->lids;
    for (uint32_t s = from; s < to; s++) {
        uint8_t *row = tables_row(j->out, s);
        uint32_t known = v->to_base[s] != ID_NONE ? lids : 0;
        if (known)
            memcpy(row, tables_row(v->b->ideal, v->to_base[s]), known);
        memset(row + known, LFT_DROP, j->out->lids - known);
    }
}

static void copy_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t n = j->v->g.n;
    copy_rows(j, (uint32_t)((uint64_t)n * i / j->tasks), (uint32_t)((uint64_t)n * (i + 1) / j->tasks));
}

static void block_task(void *arg, unsigned i)
{
    struct job *j = arg;
    const struct rlive *v = j->v;
    struct arena *a = arena_new();
    struct outcome *done = &j->done[i];
    struct rrepair r;
    struct seeds x;
    x.sw = ARENA_NEW_N(a, (size_t)LFT_BLOCK * v->g.n + 1, uint32_t);
    rrepair_init(&r, v, j->out, a);
    uint32_t from = (uint32_t)((uint64_t)j->blocks * i / j->tasks);
    uint32_t to = (uint32_t)((uint64_t)j->blocks * (i + 1) / j->tasks);
    *done = (struct outcome){0};
    for (uint32_t b = from; b < to && (j->out || !done->work); b++)
        block(j, &r, b * LFT_BLOCK, &x, done);
    done->displaced = r.displaced;
    done->anew = r.anew;
    arena_free(a);
}

static struct outcome run(struct job *j, struct par *par)
{
    struct outcome sum = {0};
    rpar_run(par, j->tasks, block_task, j);
    for (uint32_t i = 0; i < j->tasks; i++) {
        sum.displaced += j->done[i].displaced;
        sum.columns += j->done[i].columns;
        sum.anew += j->done[i].anew;
        sum.work |= j->done[i].work;
    }
    return sum;
}

// --- together ---

static void explain(const struct rlive *v, struct route_result *r)
{
    snprintf(r->why, sizeof(r->why), "%s", v->b->why);
    if (!v->ordered || v->g.n == 0)
        return;
    uint32_t *size = ARENA_NEW_N(v->a, v->g.num_comps + 1, uint32_t), best = 0;
    for (uint32_t s = 0; s < v->g.n; s++)
        size[v->g.comp[s]]++;
    for (uint32_t c = 1; c < v->g.num_comps; c++) {
        if (size[c] > size[best])
            best = c;
    }
    r->top_guid = v->g.guid[v->o.top[best]];
}

static void repair(struct rlive *v, struct par *par, struct route_result *ret)
{
    const struct fabric_tables *ideal = v->b->ideal;
    struct job j = {.v = v, .blocks = v->top_lid / LFT_BLOCK + 1u};
    struct route_result r = {.engine = v->b->engine, .reordered = v->reordered};
    bool same = v->same_numbers && v->top_lid < ideal->lids && v->top_lid == ideal->top_lid;
    j.tasks = par && par->width > 1 ? par->width * 4 : 1;
    j.tasks = j.tasks < j.blocks ? j.tasks : j.blocks;
    j.done = ARENA_NEW_N(v->a, j.tasks, struct outcome);
    explain(v, &r);
    struct outcome sum = run(&j, par);
    if (sum.work || !same) {
        j.out = tables_new_unset(v->f, v->top_lid, ideal->engine);
        rpar_run(par, j.tasks, copy_task, &j);
        sum = run(&j, par);
        r.displaced = sum.displaced;
        r.columns = sum.columns;
        r.anew = sum.anew;
    }
    if (same && sum.displaced == 0 && j.out && tables_compare(j.out, ideal).entries == 0) {
        tables_unref(j.out);
        j.out = NULL;
    }
    if (j.out)
        tables_seal(j.out, false);
    r.tables = j.out ? j.out : tables_ref(ideal);
    *ret = r;
}

static int repair_found(const struct route_base *b, const struct fabric *live, struct par *par,
                        struct route_result *r, struct err *e);

int route_repair_from(const struct route_base *b, const struct fabric *live, struct par *par,
                      struct route_result *ret, struct err *e)
{
    struct arena *a = arena_new();
    struct route_result r;
    repair(live_new(b, live, a), par, &r);
    arena_free(a);
    int rc = b->engine == ROUTE_FILE && r.displaced > 0 ? repair_found(b, live, par, &r, e) : 0;
    if (rc == 0)
        *ret = r;
    return rc;
}

static bool has_credit_loop(const struct fabric *f, const struct fabric_tables *t, struct par *par)
{
    struct verify_opts o = {.par = par};
    struct route_proof p;
    route_verify(f, t, &o, &p);
    return p.credit_loop;
}

// Tables without an order may get a credit loop by what is put in place of dead entries. If they had none,
// they are given up for updn's, kept to in the same way.
static int repair_found(const struct route_base *b, const struct fabric *live, struct par *par,
                        struct route_result *r, struct err *e)
{
    if (!has_credit_loop(live, r->tables, par) || has_credit_loop(b->f, b->ideal, par))
        return 0;
    struct route_opts o = b->opts;
    struct route_result ideal, updn;
    char had[sizeof(ideal.why)];
    memcpy(had, r->why, sizeof(had));
    tables_unref(r->tables);
    o.engine = ROUTE_UPDN;
    o.par = par;
    int rc = route_compute(b->f, &o, &ideal, e);
    if (rc)
        return rc;
    rc = route_repair(b->f, &ideal, live, &o, &updn, e);
    tables_unref(ideal.tables);
    if (rc)
        return rc;
    *r = updn;
    r->replaced = true;
    snprintf(r->why, sizeof(r->why),
             "given up, as repairing them would make a credit loop: %.60s; now up*/down* in their place",
             had);
    return 0;
}

int route_repair(const struct fabric *blueprint, const struct route_result *ideal, const struct fabric *live,
                 const struct route_opts *o, struct route_result *ret, struct err *e)
{
    struct route_base *b;
    int rc = route_base_new(blueprint, ideal, o, &b, e);
    if (rc)
        return rc;
    rc = route_repair_from(b, live, o->par, ret, e);
    route_base_free(b);
    return rc;
}
