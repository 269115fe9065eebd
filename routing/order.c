// SPDX-License-Identifier: Apache-2.0
// The total order of switches for up*/down*. Any total order is free of deadlock on one VL; every pair has a
// path when each connected component has exactly one local maximum, its top; and paths within the tree stay
// what they are as long as few edges are turned round. Those three are what is built here.
//
// Base order: (rank, GUID). Rank is the tier, or the distance from given roots, or, where there are no
// tiers, the distance from the centre of the graph. It has many local maxima: all cores, or all spines.
//
// place() puts a set K of switches into the order so that all of it has an up-path to a set Y of switches
// that are in the order already:
//   C  = what has, within K, an up-path in base order to a neighbour of Y; keeps its base order;
//   the rest falls into connected parts; each hangs on some neighbours in C, all of lower base order. It is
//   placed (by the same rule) immediately below those of them that have the highest rank, which therefore
//   move to the end of their rank, and with them what they go up to within that rank, so that no edge in C
//   turns. So the only edges turned round are those between a part and what it hangs on. Where the part hangs
//   on switches next to Y whose own edge to Y was turned round, it hangs on all of them: a path that comes
//   down from Y goes on down through any of them, and none loses balance.
// So every switch of K but the root has a neighbour above it: in C the next one on its up-path, or a switch
// of Y; in a part, by the same argument, one in the part or what the part hangs on. There is one local
// maximum in each component, whatever the ranks.
//
// It starts with Y = {root}. With one local maximum of the highest rank that is the root. With several, the
// root is a common lower neighbour: the switch from which the most of them are reached by going up, of the
// highest rank, in no more ways than need be (so a leaf of one pod, not one cabled to several), with the
// fewest hosts. In a two-level tree: one leaf ranked above all spines. In three
// levels: one leaf above the spines of its pod, these above all cores, these above the other pods' spines.
// Traffic between hosts still goes up and down the tree; only ends above the leaves turn at the root.
#include "routing/route_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/guid.h"

struct part {
    uint32_t first, num; // members: members[first ..]
    uint32_t before;     // insert before this switch in the list; n = at the end
    uint32_t first_y, num_y;
    bool turned; // the edges to Y are turned round against base order
};

struct placing {
    const struct rgraph *g;
    const uint32_t *rank;
    uint32_t *next, *prev; // the order as a ring from low to high; n is its head
    uint32_t *label;       // which part a switch is in
    uint32_t labels;
    bool *in_c, *attach, *near_y;
    uint32_t *members, *rest; // of all parts, side by side
    uint32_t *ys, num_ys;
    uint32_t *stack, *sorted, *seq, *count, *stamp;
    struct part *part;
    uint32_t num_parts;
    bool whole; // the root is to have all neighbours that others like it have, rather than few hosts
};

static bool base_less(const struct placing *p, uint32_t a, uint32_t b)
{
    return p->rank[a] != p->rank[b] ? p->rank[a] < p->rank[b] : p->g->guid[a] < p->g->guid[b];
}

// Marks C: everything of the part that has an up-path to a switch marked near_y.
static void close_downwards(struct placing *p, const struct part *part, uint32_t label, uint32_t root)
{
    const struct rgraph *g = p->g;
    uint32_t top = 0;
    for (uint32_t i = 0; i < part->num; i++) {
        uint32_t v = p->members[part->first + i];
        if (p->near_y[v]) {
            p->in_c[v] = true;
            p->stack[top++] = v;
        }
    }
    while (top > 0) {
        uint32_t v = p->stack[--top];
        for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++) {
            uint32_t w = g->g[i].peer;
            if (p->label[w] == label && !p->in_c[w] && (v == root || base_less(p, w, v))) {
                p->in_c[w] = true;
                p->stack[top++] = w;
            }
        }
    }
}

// The connected parts of what is left: appended to p->part, their members at the front of the old part's.
static void split_rest(struct placing *p, const struct part *part, uint32_t label)
{
    const struct rgraph *g = p->g;
    uint32_t n = 0;
    for (uint32_t i = 0; i < part->num; i++) {
        uint32_t v = p->members[part->first + i];
        if (p->in_c[v] || p->label[v] != label)
            continue;
        uint32_t first = n, id = ++p->labels;
        p->label[v] = id;
        p->rest[n++] = v;
        for (uint32_t j = first; j < n; j++) {
            uint32_t x = p->rest[j];
            for (uint32_t e = g->goff[x]; e < g->goff[x + 1]; e++) {
                uint32_t w = g->g[e].peer;
                if (p->label[w] == label && !p->in_c[w]) {
                    p->label[w] = id;
                    p->rest[n++] = w;
                }
            }
        }
        p->part[p->num_parts++] = (struct part){.first = part->first + first, .num = n - first};
    }
    memcpy(p->members + part->first, p->rest, n * sizeof(*p->rest));
}

// Neighbours of part k in C of the part labelled label, each once, of the highest rank among them; those
// next to Y only, when turned and they have that rank. Returned in p->stack.
static uint32_t hooks_of(struct placing *p, const struct part *k, uint32_t label, bool turned, uint32_t stamp,
                         bool *ret_all)
{
    const struct rgraph *g = p->g;
    uint32_t n = 0, best = 0;
    bool near = false;
    for (uint32_t i = 0; i < k->num; i++) {
        uint32_t v = p->members[k->first + i];
        for (uint32_t e = g->goff[v]; e < g->goff[v + 1]; e++) {
            uint32_t w = g->g[e].peer;
            if (p->label[w] != label || !p->in_c[w] || p->stamp[w] == stamp)
                continue;
            p->stamp[w] = stamp;
            bool w_near = turned && p->near_y[w];
            if (n > 0 && p->rank[w] == best && near && !w_near)
                continue;
            if (n == 0 || p->rank[w] > best || (p->rank[w] == best && w_near && !near)) {
                n = 0;
                best = p->rank[w];
                near = w_near;
            }
            if (p->rank[w] == best)
                p->stack[n++] = w;
        }
    }
    *ret_all = near;
    return n;
}

static bool better_hook(const struct placing *p, uint32_t a, uint32_t b)
{
    if (p->count[a] != p->count[b])
        return p->count[a] > p->count[b];
    if (p->g->hosts[a] != p->g->hosts[b])
        return p->g->hosts[a] < p->g->hosts[b];
    return p->g->guid[a] < p->g->guid[b];
}

// Decides what each new part hangs on; one switch that serves many parts is preferred.
static void choose_hooks(struct placing *p, uint32_t first_new, uint32_t label, bool turned, uint32_t *stamp)
{
    bool all;
    for (uint32_t k = first_new; k < p->num_parts; k++) {
        uint32_t n = hooks_of(p, &p->part[k], label, turned, ++*stamp, &all);
        for (uint32_t i = 0; i < n; i++)
            p->count[p->stack[i]]++;
    }
    for (uint32_t k = first_new; k < p->num_parts; k++) {
        struct part *part = &p->part[k];
        uint32_t n = hooks_of(p, part, label, turned, ++*stamp, &all);
        part->first_y = p->num_ys;
        part->turned = true;
        if (!all) {
            for (uint32_t i = 1; i < n; i++) {
                if (better_hook(p, p->stack[i], p->stack[0]))
                    p->stack[0] = p->stack[i];
            }
            n = 1;
        }
        for (uint32_t i = 0; i < n; i++) {
            p->ys[p->num_ys++] = p->stack[i];
            p->attach[p->stack[i]] = true;
        }
        part->num_y = n;
    }
}

// What a switch that others hang on goes up to within its rank moves to the end of the rank together with it:
// every edge between two switches of C then still leads the way it does in base order, and the up-paths by
// which they are in C stay.
static void attach_upwards(struct placing *p, uint32_t first_y, uint32_t label)
{
    const struct rgraph *g = p->g;
    for (uint32_t i = first_y; i < p->num_ys; i++) {
        uint32_t top = 0;
        p->stack[top++] = p->ys[i];
        while (top > 0) {
            uint32_t v = p->stack[--top];
            for (uint32_t e = g->goff[v]; e < g->goff[v + 1]; e++) {
                uint32_t w = g->g[e].peer;
                if (p->rank[w] != p->rank[v] || p->label[w] != label || !p->in_c[w] || p->attach[w] ||
                    !base_less(p, v, w))
                    continue;
                p->attach[w] = true;
                p->stack[top++] = w;
            }
        }
    }
}

struct sort_ctx {
    const struct placing *p;
    uint32_t root;
};

static int layout_cmp(const void *a, const void *b, void *arg)
{
    const struct sort_ctx *c = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (x == c->root || y == c->root)
        return (x == c->root) - (y == c->root);
    if (c->p->rank[x] != c->p->rank[y])
        return c->p->rank[x] < c->p->rank[y] ? -1 : 1;
    if (c->p->attach[x] != c->p->attach[y])
        return c->p->attach[x] ? 1 : -1;
    return c->p->g->guid[x] < c->p->g->guid[y] ? -1 : 1;
}

static void insert_before(struct placing *p, uint32_t v, uint32_t where)
{
    p->prev[v] = p->prev[where];
    p->next[v] = where;
    p->next[p->prev[where]] = v;
    p->prev[where] = v;
}

// root: of this part, above everything in it; ID_NONE for a part that hangs on others.
static void place(struct placing *p, uint32_t idx, uint32_t root, uint32_t *stamp)
{
    struct part part = p->part[idx];
    const struct rgraph *g = p->g;
    uint32_t label = p->label[p->members[part.first]];
    if (root != ID_NONE)
        p->near_y[root] = true;
    for (uint32_t i = 0; i < part.num_y; i++) {
        uint32_t y = p->ys[part.first_y + i];
        for (uint32_t e = g->goff[y]; e < g->goff[y + 1]; e++)
            p->near_y[g->g[e].peer] |= p->label[g->g[e].peer] == label;
    }
    close_downwards(p, &part, label, root);
    uint32_t n = 0;
    for (uint32_t i = 0; i < part.num; i++) {
        uint32_t v = p->members[part.first + i];
        if (p->in_c[v])
            p->sorted[n++] = v;
    }
    uint32_t first_new = p->num_parts, first_y = p->num_ys;
    split_rest(p, &part, label);
    if (root != ID_NONE) { // the root takes the part of Y, its neighbours that of what lies next to it
        p->near_y[root] = false;
        for (uint32_t e = g->goff[root]; e < g->goff[root + 1]; e++)
            p->near_y[g->g[e].peer] = base_less(p, root, g->g[e].peer);
    }
    choose_hooks(p, first_new, label, part.turned || root != ID_NONE, stamp);
    attach_upwards(p, first_y, label);
    struct sort_ctx ctx = {p, root};
    qsort_r(p->sorted, n, sizeof(*p->sorted), layout_cmp, &ctx);
    for (uint32_t i = 0; i < n; i++) {
        p->seq[p->sorted[i]] = i;
        insert_before(p, p->sorted[i], part.before);
    }
    for (uint32_t k = first_new; k < p->num_parts; k++) {
        const uint32_t *ys = p->ys + p->part[k].first_y;
        p->part[k].before = ys[0];
        for (uint32_t i = 1; i < p->part[k].num_y; i++) {
            if (p->seq[ys[i]] < p->seq[p->part[k].before])
                p->part[k].before = ys[i];
        }
    }
}

// --- the root ---

struct reach {
    uint32_t tops;   // switches of highest rank that going up reaches
    uint32_t ways;   // last steps to them: more than tops where several of what would lie above a top lead to
                     // it, between which no path could go over that top any more
    uint32_t missed; // under p->whole
};

// Switches above which do not lie next to v, though they lead down to the same as those that do: what lies
// above both would have to choose between going down through the one kind and up through the other.
static uint32_t missed_by(struct placing *p, uint32_t v, uint32_t *stamp)
{
    const struct rgraph *g = p->g;
    uint32_t n = 0, missed = 0, near = ++*stamp, seen = ++*stamp;
    for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++)
        p->stamp[g->g[i].peer] = near;
    for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++) {
        uint32_t y = g->g[i].peer;
        for (uint32_t k = g->goff[y]; k < g->goff[y + 1] && p->rank[y] > p->rank[v]; k++) {
            uint32_t x = g->g[k].peer;
            if (p->rank[x] >= p->rank[y] || p->stamp[x] == seen || p->stamp[x] == near)
                continue;
            p->stamp[x] = seen;
            p->stack[n++] = x;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = p->stack[i];
        for (uint32_t k = g->goff[x]; k < g->goff[x + 1]; k++) {
            uint32_t w = g->g[k].peer;
            if (p->rank[w] <= p->rank[x] || p->stamp[w] == near || p->stamp[w] == seen)
                continue;
            p->stamp[w] = seen;
            missed++;
        }
    }
    return missed;
}

static struct reach reach_up(struct placing *p, uint32_t v, uint32_t max_rank, uint32_t stamp)
{
    const struct rgraph *g = p->g;
    uint32_t top = 0;
    struct reach r = {0};
    p->stack[top++] = v;
    p->stamp[v] = stamp;
    while (top > 0) {
        uint32_t x = p->stack[--top];
        r.tops += p->rank[x] == max_rank;
        for (uint32_t i = g->goff[x]; i < g->goff[x + 1]; i++) {
            uint32_t w = g->g[i].peer;
            r.ways += p->rank[w] == max_rank && p->rank[x] < max_rank;
            if (p->stamp[w] != stamp && p->rank[w] > p->rank[x]) {
                p->stamp[w] = stamp;
                p->stack[top++] = w;
            }
        }
    }
    return r;
}

static bool better_root(const struct placing *p, uint32_t a, struct reach ra, uint32_t b, struct reach rb)
{
    const struct rgraph *g = p->g;
    if (ra.tops != rb.tops)
        return ra.tops > rb.tops;
    if (p->rank[a] != p->rank[b])
        return p->rank[a] > p->rank[b];
    if (ra.missed != rb.missed)
        return ra.missed < rb.missed;
    if (ra.ways != rb.ways)
        return ra.ways < rb.ways;
    if (g->hosts[a] != g->hosts[b])
        return g->hosts[a] < g->hosts[b];
    uint32_t da = g->goff[a + 1] - g->goff[a], db = g->goff[b + 1] - g->goff[b];
    if (da != db)
        return da > db;
    return g->guid[a] < g->guid[b];
}

// The same neighbours above: then all that going up reaches is the same.
static bool same_ups(const struct placing *p, uint32_t a, uint32_t b)
{
    const struct rgraph *g = p->g;
    uint32_t i = g->goff[a], k = g->goff[b];
    if (p->rank[a] != p->rank[b])
        return false;
    for (;;) {
        while (i < g->goff[a + 1] && p->rank[g->g[i].peer] <= p->rank[a])
            i++;
        while (k < g->goff[b + 1] && p->rank[g->g[k].peer] <= p->rank[b])
            k++;
        if (i == g->goff[a + 1] || k == g->goff[b + 1])
            return i == g->goff[a + 1] && k == g->goff[b + 1];
        if (g->g[i++].peer != g->g[k++].peer)
            return false;
    }
}

static uint32_t choose_root(struct placing *p, const struct part *part, uint32_t *stamp)
{
    uint32_t max_rank = 0, tops = 0, top = ID_NONE;
    for (uint32_t i = 0; i < part->num; i++) {
        uint32_t v = p->members[part->first + i];
        if (top == ID_NONE || p->rank[v] > max_rank) {
            max_rank = p->rank[v];
            tops = 0;
        }
        if (p->rank[v] == max_rank) {
            tops++;
            top = v;
        }
    }
    struct reach none = {0}, best_reach = {0};
    if (tops == 1 || max_rank == 0) {
        for (uint32_t i = 0; i < part->num; i++) {
            uint32_t v = p->members[part->first + i];
            if (p->rank[v] == max_rank && better_root(p, v, none, top, none))
                top = v;
        }
        return top;
    }
    uint32_t best = ID_NONE, last = ID_NONE;
    struct reach r = none;
    for (uint32_t i = 0; i < part->num; i++) {
        uint32_t v = p->members[part->first + i];
        if (p->rank[v] == max_rank)
            continue;
        if (last == ID_NONE || !same_ups(p, last, v)) { // leaves of a pod come one after the other mostly
            r = reach_up(p, v, max_rank, ++*stamp);
            if (p->whole)
                r.missed = missed_by(p, v, stamp);
        }
        last = v;
        if (best == ID_NONE || better_root(p, v, r, best, best_reach)) {
            best = v;
            best_reach = r;
        }
    }
    return best == ID_NONE ? top : best;
}

// --- ranks ---

// Distances from the switches in queue[0..n-1]; only reached ones are written. Returns the greatest.
static uint32_t bfs(const struct rgraph *g, uint32_t *queue, uint32_t n, uint32_t *dist)
{
    uint32_t far = 0;
    for (uint32_t i = 0; i < n; i++)
        dist[queue[i]] = 0;
    for (uint32_t head = 0; head < n; head++) {
        uint32_t v = queue[head];
        far = dist[v];
        for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++) {
            if (dist[g->g[i].peer] == ID_NONE) {
                dist[g->g[i].peer] = far + 1;
                queue[n++] = g->g[i].peer;
            }
        }
    }
    return far;
}

#define CENTRE_EXACT 512 // parts with more switches than this try only as many candidates

// The switch from which the farthest other is nearest; among equals the best connected.
static uint32_t centre(const struct rgraph *g, const uint32_t *member, uint32_t num, uint32_t *queue,
                       uint32_t *dist)
{
    uint32_t best = member[0], best_far = ID_NONE, step = num / CENTRE_EXACT + 1;
    for (uint32_t i = 0; i < num; i += step) {
        uint32_t v = member[i], deg = g->goff[v + 1] - g->goff[v];
        for (uint32_t j = 0; j < num; j++)
            dist[member[j]] = ID_NONE;
        queue[0] = v;
        uint32_t far = bfs(g, queue, 1, dist), best_deg = g->goff[best + 1] - g->goff[best];
        if (far < best_far || (far == best_far && deg > best_deg) ||
            (far == best_far && deg == best_deg && g->guid[v] < g->guid[best])) {
            best = v;
            best_far = far;
        }
    }
    return best;
}

struct ranking {
    const struct rgraph *g;
    const uint32_t *roots;
    uint32_t num_roots;
    uint32_t *queue, *dist;
};

// Ranks of one component; returns its source in words.
static const char *rank_part(struct ranking *r, const uint32_t *member, uint32_t num, uint32_t *rank,
                             bool *ret_tiered)
{
    const struct rgraph *g = r->g;
    uint32_t n = 0;
    for (uint32_t i = 0; i < num; i++)
        r->dist[member[i]] = ID_NONE;
    for (uint32_t i = 0; i < r->num_roots; i++) {
        if (g->comp[r->roots[i]] == g->comp[member[0]])
            r->queue[n++] = r->roots[i];
    }
    *ret_tiered = true;
    const char *source = "distance from the given roots";
    if (n == 0) {
        for (uint32_t i = 0; i < num; i++) {
            rank[member[i]] = fabric_switch(g->f, member[i])->tier;
            *ret_tiered &= rank[member[i]] != TIER_NONE;
        }
        bool levels = num == 1;
        for (uint32_t i = 1; i < num; i++)
            levels |= rank[member[i]] != rank[member[0]];
        *ret_tiered &= levels;
        if (*ret_tiered)
            return "tiers";
        r->queue[n++] = centre(g, member, num, r->queue, r->dist);
        source = "distance from the centre of the graph";
        for (uint32_t i = 0; i < num; i++)
            r->dist[member[i]] = ID_NONE;
    }
    uint32_t far = bfs(g, r->queue, n, r->dist);
    for (uint32_t i = 0; i < num; i++)
        rank[member[i]] = far - r->dist[member[i]];
    return source;
}

static int find_roots(const struct rgraph *g, const struct route_opts *o, uint32_t *roots, uint32_t *ret_n,
                      struct err *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->num_roots && o->root_guids; i++) {
        const struct node *nd = fabric_by_guid(g->f, o->root_guids[i]);
        if (!nd || nd->type != NODE_SWITCH)
            continue;
        bool seen = false;
        for (uint32_t j = 0; j < n; j++)
            seen |= roots[j] == nd->sw;
        if (!seen)
            roots[n++] = nd->sw;
    }
    if (n == 0 && o->num_roots > 0 && o->root_guids)
        return err_set(e, -ENOENT, NULL,
                       "none of the %u root switches given is in the fabric (the first is " GUID_FMT
                       "); correct the list, or leave it out to take roots from the tiers",
                       o->num_roots, GUID_ARG(o->root_guids[0]));
    *ret_n = n;
    return 0;
}

static void placing_init(struct placing *p, const struct rgraph *g, const uint32_t *rank, struct arena *a)
{
    uint32_t n = g->n + 1;
    *p = (struct placing){.g = g, .rank = rank, .labels = 0};
    p->next = ARENA_NEW_N(a, n, uint32_t);
    p->prev = ARENA_NEW_N(a, n, uint32_t);
    p->label = ARENA_NEW_N(a, n, uint32_t);
    p->in_c = ARENA_NEW_N(a, n, bool);
    p->attach = ARENA_NEW_N(a, n, bool);
    p->near_y = ARENA_NEW_N(a, n, bool);
    p->members = ARENA_NEW_N(a, n, uint32_t);
    p->rest = ARENA_NEW_N(a, n, uint32_t);
    p->ys = ARENA_NEW_N(a, g->num_groups + 1, uint32_t);
    p->part = ARENA_NEW_N(a, n, struct part);
    p->stack = ARENA_NEW_N(a, n, uint32_t);
    p->sorted = ARENA_NEW_N(a, n, uint32_t);
    p->seq = ARENA_NEW_N(a, n, uint32_t);
    p->count = ARENA_NEW_N(a, n, uint32_t);
    p->stamp = ARENA_NEW_N(a, n, uint32_t);
    p->next[g->n] = p->prev[g->n] = g->n;
}

static void mark_feet(const struct rgraph *g, struct rorder *o)
{
    for (uint32_t s = 0; s < g->n; s++) {
        o->foot[s] = o->tiered[g->comp[s]];
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++)
            o->foot[s] &= o->rank[g->g[i].peer] >= o->rank[s];
    }
}

static const char *given_ranks(const struct rranks *given, const uint32_t *member, uint32_t num,
                               uint32_t *rank, bool *ret_tiered)
{
    *ret_tiered = true;
    for (uint32_t i = 0; i < num; i++) {
        rank[member[i]] = given->rank[member[i]];
        *ret_tiered &= given->tiered[member[i]];
    }
    return given->source;
}

// given: ranks to keep to; NULL = from o.
static int build(const struct rgraph *g, const struct route_opts *o, const struct rranks *given,
                 struct arena *a, struct rorder *ret, struct err *e)
{
    uint32_t *roots = ARENA_NEW_N(a, g->n + 1, uint32_t), num_roots = 0;
    int rc = given ? 0 : find_roots(g, o, roots, &num_roots, e);
    if (rc)
        return rc;
    ret->rank = ARENA_NEW_N(a, g->n + 1, uint32_t);
    ret->pos = ARENA_NEW_N(a, g->n + 1, uint32_t);
    ret->by_pos = ARENA_NEW_N(a, g->n + 1, uint32_t);
    ret->foot = ARENA_NEW_N(a, g->n + 1, bool);
    ret->top = ARENA_NEW_N(a, g->num_comps + 1, uint32_t);
    ret->tiered = ARENA_NEW_N(a, g->num_comps + 1, bool);
    ret->source = "nothing: there is no switch";
    struct ranking r = {.g = g, .roots = roots, .num_roots = num_roots};
    r.queue = ARENA_NEW_N(a, g->n + 1, uint32_t);
    r.dist = ARENA_NEW_N(a, g->n + 1, uint32_t);
    struct placing p;
    placing_init(&p, g, ret->rank, a);
    p.whole = o && o->engine == ROUTE_RAIL;
    uint32_t stamp = 0, largest = 0;
    for (uint32_t c = 0; c < g->num_comps; c++) {
        uint32_t num = 0;
        for (uint32_t s = 0; s < g->n; s++) {
            if (g->comp[s] == c)
                p.members[num++] = s;
        }
        const char *source = given ? given_ranks(given, p.members, num, ret->rank, &ret->tiered[c])
                                   : rank_part(&r, p.members, num, ret->rank, &ret->tiered[c]);
        if (num > largest) {
            largest = num;
            ret->source = source;
        }
        p.labels++;
        for (uint32_t i = 0; i < num; i++)
            p.label[p.members[i]] = p.labels;
        p.part[0] = (struct part){.num = num, .before = g->n};
        ret->top[c] = choose_root(&p, &p.part[0], &stamp);
        p.num_parts = 1;
        p.num_ys = 0;
        for (uint32_t i = 0; i < p.num_parts; i++)
            place(&p, i, i == 0 ? ret->top[c] : ID_NONE, &stamp);
    }
    uint32_t pos = 0;
    for (uint32_t v = p.next[g->n]; v != g->n; v = p.next[v]) {
        ret->by_pos[pos] = v;
        ret->pos[v] = pos++;
    }
    mark_feet(g, ret);
    return 0;
}

int rorder_build(const struct rgraph *g, const struct route_opts *o, struct arena *a, struct rorder *ret,
                 struct err *e)
{
    return build(g, o, NULL, a, ret, e);
}

void rorder_build_ranked(const struct rgraph *g, const struct rranks *given, struct arena *a,
                         struct rorder *ret)
{
    build(g, NULL, given, a, ret, NULL);
}
