// SPDX-License-Identifier: Apache-2.0
// Trees: which ends of waits are roots, what kind they are, who is in them.
//
// Roots are taken one by one, most lost bandwidth first; what a root explains no other one needs to
// (explaining away): a port that merely could explain the same waits is not named. So a busy port beside a
// real root stays unnamed, and two roots that each have waits of their own are two trees.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"

#define MAX_ROOTS 128    // that are looked at, by lost bandwidth
#define MEMBER 0.25      // share of a port's wait from which it is in the tree
#define MOST 0.5         // … and from which nobody else needs to explain it
#define CLEAR 0.5        // share of its members' waits that a tree must explain
#define UNCLEAR_FROM 0.1 // … and waits that nothing explains are shown from
#define BELIEVED 0.2     // of its link's rate: lost for the sake of a root that was not read
#define BALANCED 0.5     // of a full port's bytes come from ports that wait, else it is no root
#define SPARE 0.5        // of its use: siblings that carry less could have taken a part
#define KEEP 1.1         // a root that was one is kept against one that is hardly better

struct upstream {
    uint32_t vertex, depth;
    float share; // of its wait: what ends at the root
};
struct candidate {
    uint32_t root, num;
    struct upstream *up;
    bool taken;
    uint32_t *beside, num_beside; // vertices
};

static int by_order(const void *a, const void *b)
{
    const struct upstream *x = a, *y = b;
    return x->share < y->share ? -1 : x->share > y->share;
}

// All that waits upstream of the root; share is the vertex' order until it is computed.
static void gather(const struct congest_graph *g, struct candidate *x, uint32_t *place)
{
    uint32_t cap = 16;
    x->up = xcalloc(cap, sizeof(*x->up));
    x->up[x->num++] = (struct upstream){.vertex = x->root, .share = (float)g->v[x->root].order};
    place[x->root] = 0;
    for (uint32_t i = 0; i < x->num; i++)
        for (uint32_t v = x->up[i].vertex, k = g->first_into[v]; k < g->first_into[v + 1]; k++) {
            uint32_t p = g->into[k];
            if (place[p] != ID_NONE)
                continue;
            if (x->num == cap)
                x->up = xreallocarray(x->up, cap *= 2, sizeof(*x->up));
            place[p] = x->num;
            x->up[x->num++] = (struct upstream){p, x->up[i].depth + 1, (float)g->v[p].order};
        }
    qsort(x->up, x->num, sizeof(*x->up), by_order);
    for (uint32_t i = 0; i < x->num; i++)
        place[x->up[i].vertex] = i;
}

static void follow(const struct congest_graph *g, struct candidate *x, uint32_t *place)
{
    gather(g, x, place);
    for (uint32_t i = 0; i < x->num; i++) {
        const struct congest_vertex *v = &g->v[x->up[i].vertex];
        float s = x->up[i].vertex == x->root ? v->self : 0;
        for (uint32_t k = v->edge; k < v->edge + v->num_edges; k++)
            if (g->e[k].to != ID_NONE && place[g->e[k].to] != ID_NONE)
                s += g->e[k].share * x->up[place[g->e[k].to]].share;
        x->up[i].share = s;
    }
    for (uint32_t i = 0; i < x->num; i++)
        place[x->up[i].vertex] = ID_NONE;
}

struct end {
    uint32_t vertex, slot;
    double ends;
};
static int by_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->ends != y->ends)
        return x->ends < y->ends ? 1 : -1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static uint32_t candidates(const struct congest *c, struct candidate *ret)
{
    const struct congest_graph *g = &c->g;
    struct end *v = xcalloc(g->num_v + 1, sizeof(*v));
    uint32_t n = 0;
    uint32_t *place = xmalloc((g->num_v + 1) * sizeof(*place));
    memset(place, 0xff, (g->num_v + 1) * sizeof(*place));
    for (uint32_t i = 0; i < g->num_v; i++)
        if (g->v[i].ends >= c->o.held_on * tele_capacity(c->t, g->v[i].slot) && g->v[i].ends > 0)
            v[n++] = (struct end){i, g->v[i].slot, g->v[i].ends};
    qsort(v, n, sizeof(*v), by_ends);
    n = n < MAX_ROOTS ? n : MAX_ROOTS;
    for (uint32_t i = 0; i < n; i++) {
        ret[i] = (struct candidate){.root = v[i].vertex};
        follow(g, &ret[i], place);
    }
    free(v);
    free(place);
    return n;
}

// --- kinds ---

static bool is_slow(const struct fabric *f, uint32_t port)
{
    return f && port < f->num_ports && tele_is_slow(f, &f->port[port], NULL, 0);
}

// Ports that could carry the same: up, other ports of the switch to that tier; down, other ports into the
// same switch from that tier; without tiers, parallel cables. At most `room`; how many.
static uint32_t siblings(const struct congest *c, uint32_t root, uint32_t *ret, uint32_t room)
{
    const struct congest_routes *r = &c->routes;
    uint32_t a = congest_switch_of(r, c->t, root), b = congest_switch_behind(r, c->t, root), num = 0;
    if (a == ID_NONE || b == ID_NONE)
        return 0;
    const struct node *na = fabric_switch(r->fabric, a), *nb = fabric_switch(r->fabric, b);
    bool tiers = na->tier != TIER_NONE && nb->tier != TIER_NONE, down = tiers && nb->tier < na->tier;
    const struct node *at = down ? nb : na, *other = down ? na : nb;
    for (unsigned i = 1; i <= at->num_ports && num < room; i++) {
        uint32_t slot = congest_slot_at(r, at->sw, i), far = slot < c->t->num ? c->t->port[slot].peer : slot;
        uint32_t peer = slot < c->t->num ? congest_switch_behind(r, c->t, slot) : ID_NONE;
        if (peer == ID_NONE || far >= c->t->num)
            continue;
        const struct node *p = fabric_switch(r->fabric, peer);
        uint32_t x = down ? far : slot;
        if (x != root && (tiers ? p->tier == other->tier : p == other))
            ret[num++] = x;
    }
    return num;
}

static double siblings_used(const struct congest *c, uint32_t root)
{
    uint32_t slot[SWITCH_MAX_PORTS], num = siblings(c, root, slot, SWITCH_MAX_PORTS), known = 0;
    double sum = 0;
    for (uint32_t i = 0; i < num; i++)
        if (!isnan(c->track[slot[i]].u)) {
            sum += c->track[slot[i]].u;
            known++;
        }
    return known ? sum / known : NAN;
}

// What feeds a port, in bytes/s, as far as its waits end there.
static double fed(const struct congest *c, const struct candidate *x)
{
    double sum = 0;
    for (uint32_t i = 0; i < x->num; i++) {
        const struct congest_vertex *v = &c->g.v[x->up[i].vertex];
        if (x->up[i].depth == 1 && !isnan(v->u))
            sum += v->u * tele_capacity(c->t, v->slot) * x->up[i].share;
    }
    return sum;
}

static enum congest_kind end_kind(const struct congest *c, const struct candidate *x, bool slow)
{
    const struct congest_vertex *v = &c->g.v[x->root];
    bool full = v->u >= c->o.full;
    if (isnan(v->u)) // what it waits it cannot carry; else by what comes
        full = isnan(v->h) ? fed(c, x) >= c->o.full * tele_capacity(c->t, v->slot) : v->h < 1 - c->o.full;
    if (!full)
        return CONGEST_RECEIVER;
    return slow ? CONGEST_SLOW_LINK : CONGEST_INCAST;
}

static enum congest_kind kind_of(const struct congest *c, const struct candidate *x, double siblings)
{
    const struct congest_vertex *v = &c->g.v[x->root];
    bool slow = is_slow(c->routes.fabric, c->t->port[v->slot].port);
    if (v->stuck)
        return CONGEST_DEADLOCK;
    if (v->end)
        return end_kind(c, x, slow);
    if (slow)
        return CONGEST_SLOW_LINK;
    if (v->u < c->o.full || congest_switch_of(&c->routes, c->t, v->slot) == ID_NONE)
        return CONGEST_UNCLEAR;
    return siblings < SPARE * (isnan(v->u) ? 1 : v->u) ? CONGEST_IMBALANCE : CONGEST_OVERSUBSCRIBED;
}

// --- cables that are full together ---

static bool was_root(const struct congest *c, uint32_t vertex)
{
    for (uint32_t i = 0; i < c->num_trees; i++)
        if (c->tree[i]->root == c->g.v[vertex].slot)
            return true;
    return false;
}

// x explains what y does as well; y is nothing by itself any more.
static void join(const struct congest *c, struct candidate *x, struct candidate *y, uint32_t *place)
{
    for (uint32_t i = 0; i < x->num; i++)
        place[x->up[i].vertex] = i;
    x->up = xreallocarray(x->up, x->num + y->num, sizeof(*x->up));
    for (uint32_t i = 0; i < y->num; i++) {
        uint32_t *at = &place[y->up[i].vertex];
        if (*at == ID_NONE) {
            *at = x->num;
            x->up[x->num++] = y->up[i];
            continue;
        }
        struct upstream *u = &x->up[*at];
        u->share += y->up[i].share;
        u->depth = u->depth < y->up[i].depth ? u->depth : y->up[i].depth;
    }
    for (uint32_t i = 0; i < x->num; i++)
        place[x->up[i].vertex] = ID_NONE;
    x->beside = xreallocarray(x->beside, x->num_beside + 1, sizeof(*x->beside));
    x->beside[x->num_beside++] = y->root;
    y->taken = true;
}

// Whether one waits for the other.
static bool in_line(const struct congest_graph *g, uint32_t from, uint32_t to)
{
    bool yes = false;
    for (uint32_t k = g->v[from].edge; k < g->v[from].edge + g->v[from].num_edges; k++)
        yes |= g->e[k].to == to;
    return yes;
}

// Full siblings are one cause: all of them together carry less than is sent. So are two full cables between
// switches of which one waits for the other: all goes over both.
static void join_siblings(const struct congest *c, struct candidate *x, uint32_t n)
{
    uint32_t *place = xmalloc((c->g.num_v + 1) * sizeof(*place));
    memset(place, 0xff, (c->g.num_v + 1) * sizeof(*place));
    for (uint32_t i = 0; i < n; i++) {
        const struct congest_vertex *v = &c->g.v[x[i].root];
        uint32_t slot[SWITCH_MAX_PORTS], num = 0;
        if (!x[i].taken && !v->end && v->u >= c->o.full)
            num = siblings(c, v->slot, slot, SWITCH_MAX_PORTS);
        for (uint32_t k = i + 1; k < n && !x[i].taken && v->u >= c->o.full; k++) {
            const struct congest_vertex *y = &c->g.v[x[k].root];
            bool beside = in_line(&c->g, x[i].root, x[k].root) || in_line(&c->g, x[k].root, x[i].root);
            if (x[k].taken || !(y->u >= c->o.full))
                continue;
            for (uint32_t m = 0; m < num; m++)
                beside |= slot[m] == y->slot;
            if (beside)
                join(c, &x[i], &x[k], place);
        }
    }
    free(place);
}

// --- members ---

static int by_depth(const void *a, const void *b)
{
    const struct congest_member *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    if (x->lost_bps != y->lost_bps)
        return x->lost_bps < y->lost_bps ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void count_members(const struct congest *c, struct congest_tree *t)
{
    uint32_t *sw = xcalloc(t->num_members + 1, sizeof(*sw)), n = 0;
    for (uint32_t i = 0; i < t->num_members; i++) {
        uint32_t s = congest_switch_of(&c->routes, c->t, t->member[i].slot);
        t->num_victims += t->member[i].victim;
        if (s == ID_NONE)
            t->num_adapters++;
        else
            sw[n++] = s;
    }
    qsort(sw, n, sizeof(*sw), by_number);
    for (uint32_t i = 0; i < n; i++)
        t->num_switches += i == 0 || sw[i] != sw[i - 1];
    free(sw);
}

static void set_members(const struct congest *c, const struct candidate *x, struct congest_tree *t)
{
    struct congest_member *m = xcalloc(x->num + 1, sizeof(*m));
    struct congest_behind root;
    congest_behind(&c->routes, c->t, t->root, &root);
    double lost = 0, explained = 0;
    for (uint32_t i = 0; i < x->num; i++) {
        const struct congest_vertex *v = &c->g.v[x->up[i].vertex];
        if (v->type != VERTEX_HELD || (x->up[i].share < MEMBER && v->slot != t->root))
            continue;
        lost += v->counts;
        explained += v->counts * x->up[i].share;
        m[t->num_members++] = (struct congest_member){
            .slot = v->slot,
            .depth = x->up[i].depth,
            .held = c->track[v->slot].h,
            .used = v->u,
            .lost_bps = v->lost,
            .victim = c->routes.tables && !congest_leads(&c->routes, c->t, v->slot, &root),
        };
    }
    qsort(m, t->num_members, sizeof(*m), by_depth);
    t->member = m;
    t->explained = lost > 0 ? fmin(1, explained / lost) : 0;
    count_members(c, t);
}

// --- one after the other ---

static double gain(const struct congest *c, const struct candidate *x, const double *left)
{
    double sum = 0;
    for (uint32_t i = 0; i < x->num; i++)
        sum += left[x->up[i].vertex] * x->up[i].share;
    return was_root(c, x->root) ? sum * KEEP : sum;
}

// What it explains most of is its own; of other waits its share. Bytes/s that were lost so, usual waits
// included; and without these.
static double take(const struct congest *c, const struct candidate *x, double *left, double *ret_counts)
{
    double sum = 0;
    *ret_counts = 0;
    for (uint32_t i = 0; i < x->num; i++) {
        const struct congest_vertex *v = &c->g.v[x->up[i].vertex];
        double *l = &left[x->up[i].vertex], part = x->up[i].share >= MOST ? *l : *l * x->up[i].share;
        sum += v->counts > 0 ? part * v->lost / v->counts : 0;
        *ret_counts += part;
        *l -= part;
    }
    return sum;
}

static bool may_be_root(const struct congest_vertex *v)
{
    return v->type != VERTEX_FULL || v->balance >= BALANCED;
}

static void set_cycle(const struct congest *c, struct congest_tree *t)
{
    uint32_t *slot = xcalloc(c->g.num_cycle + 1, sizeof(*slot));
    for (uint32_t i = 0; i < c->g.num_cycle; i++)
        slot[i] = c->g.v[c->g.cycle[i]].slot;
    t->cycle = slot;
    t->num_cycle = c->g.num_cycle;
}

// Those that were not read are named too when all others of the switch leave no other way for its traffic.
static void set_beside(const struct congest *c, const struct candidate *x, struct congest_tree *t)
{
    uint32_t near[SWITCH_MAX_PORTS], num = 0;
    uint32_t *slot = xcalloc(x->num_beside + SWITCH_MAX_PORTS, sizeof(*slot));
    for (uint32_t i = 0; i < x->num_beside; i++)
        slot[t->num_beside++] = c->g.v[x->beside[i]].slot;
    if (c->g.v[x->root].u >= c->o.full && !c->g.v[x->root].end)
        num = siblings(c, t->root, near, SWITCH_MAX_PORTS);
    for (uint32_t i = 0; i < num; i++)
        if (isnan(c->track[near[i]].u) && c->guess[near[i]] >= c->o.full - 0.05)
            slot[t->num_beside++] = near[i];
    t->beside = slot;
}

// Of all that wait, those included that must though nobody read it.
static double share_of_lost(const struct congest *c, double lost)
{
    double all = c->totals.lost_bps;
    for (uint32_t i = 0; i < c->g.num_v; i++)
        if (c->track[c->g.v[i].slot].presumed)
            all += c->g.v[i].lost;
    return all > 0 ? fmin(1, lost / all) : 0;
}

// second: the one that would come next, had this one not been taken; NULL.
static struct congest_tree *make_tree(const struct congest *c, const struct candidate *x, double taken,
                                      const struct candidate *second)
{
    const struct congest_vertex *v = &c->g.v[x->root];
    struct congest_tree *t = xcalloc(1, sizeof(*t));
    t->root = v->slot;
    t->held = c->track[v->slot].h; // v->h may be a guess
    t->root_read = !isnan(t->held);
    t->used = v->u;
    t->lost_bps = taken;
    t->share = share_of_lost(c, taken);
    t->siblings_used = siblings_used(c, v->slot);
    t->second_root = TELE_SLOT_NONE;
    set_members(c, x, t);
    set_beside(c, x, t);
    t->kind = kind_of(c, x, t->siblings_used);
    bool seen = t->kind == CONGEST_DEADLOCK || (v->type == VERTEX_HELD && v->end);
    if (t->explained < CLEAR && !seen)
        t->kind = CONGEST_UNCLEAR;
    if (t->kind == CONGEST_DEADLOCK)
        set_cycle(c, t);
    if (t->kind == CONGEST_UNCLEAR && second)
        t->second_root = c->g.v[second->root].slot;
    return t;
}

static struct candidate *best_of(const struct congest *c, struct candidate *x, uint32_t n, const double *left,
                                 const struct candidate *but)
{
    struct candidate *best = NULL;
    double most = 0;
    for (uint32_t i = 0; i < n; i++) {
        double g = &x[i] == but || x[i].taken || !may_be_root(&c->g.v[x[i].root]) ? 0 : gain(c, &x[i], left);
        if (g > most) {
            most = g;
            best = &x[i];
        }
    }
    return best;
}

// Waits that nothing explains are worth a line when they are many; a root that was not read is believed when
// what waits for it is more than bursts here and there.
static bool worth_showing(const struct congest *c, const struct congest_tree *t, double counts)
{
    double all = tele_capacity(c->t, t->root);
    if (t->kind == CONGEST_UNCLEAR)
        return t->share >= UNCLEAR_FROM;
    return t->lost_bps >= c->o.held_on * all && (t->root_read || counts >= BELIEVED * all);
}

uint32_t congest_trees_make(struct congest *c, struct congest_tree ***ret)
{
    struct candidate *x = xcalloc(MAX_ROOTS, sizeof(*x));
    struct congest_tree **tree = xcalloc(MAX_ROOTS + 1, sizeof(struct congest_tree *));
    double *left = xcalloc(c->g.num_v + 1, sizeof(*left));
    uint32_t n = candidates(c, x), num = 0;
    if (c->routes.looks)
        *c->routes.looks = 0; // victims are told from others whatever was looked at before
    for (uint32_t i = 0; i < c->g.num_v; i++)
        left[i] = c->g.v[i].counts;
    join_siblings(c, x, n);
    for (uint32_t i = 0; i < n; i++) {
        struct candidate *best = best_of(c, x, n, left, NULL);
        if (!best || gain(c, best, left) < c->o.held_on * tele_capacity(c->t, c->g.v[best->root].slot))
            break;
        struct candidate *second = best_of(c, x, n, left, best);
        best->taken = true;
        double counts, lost = take(c, best, left, &counts);
        struct congest_tree *t = make_tree(c, best, lost, second);
        if (worth_showing(c, t, counts))
            tree[num++] = t;
        else
            congest_tree_free(t);
    }
    for (uint32_t i = 0; i < n; i++) {
        free(x[i].up);
        free(x[i].beside);
    }
    free(x);
    free(left);
    *ret = tree;
    return num;
}
