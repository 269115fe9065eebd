// SPDX-License-Identifier: Apache-2.0
// Who waits for whom. Vertices are ports' directions out: those that wait ("held"), those that are full, and
// those of which it is not known although a waiting port's routes lead there. An edge leads from a waiting
// port a->b to ports of b by which routes take on what comes over it.
//
// Which of them it waits for cannot be read anywhere, so its wait is divided (edge.share) by how much each of
// them may hold others up (press, 0..1):
//   - one that waits itself: the share of time for which it does. Behind it packets stand for at least as
//     long.
//   - one that does not: the mean queue of a server as busy (M/D/1, Pollaczek and Khinchine:
//     r^2 / 2 (1 - r)), of that at 99 % use. Ports far from full take their small part too (open): under even
//     load all of a switch's ports explain a wait together, and none is its root. Together they explain no
//     more than bursts do (BURSTS): a sender that stands still does not wait for ports that others get
//     through.
//   - a full one only as far as its bytes come from ports that wait, or may (balance): when one that does not
//     wait feeds it freely, it holds nobody up. It is busy, which is no fault.
// … and by how much the waiting one sends there (congest_mix.c): who waits for a port gets as much there as
// anybody.
//
// Ports behind a waiting one together explain no more of its time than they are blocked themselves (union
// bound); what is left is put on ports that were not read (fit), else it ends at the waiting port itself.
//
// A port that was not read fits by what it would explain (fit): of those that wait upstream, the share that
// leads to it by routes; how much is sent by it; whether it is full, by the far end or by what goes into its
// switch and must come out (congest_mix.c); and, where routes go on behind it, how much is pressed there.
// Then its weight becomes what it was found to explain, and shares are made anew, a few times: expectation
// and maximisation of a mixture (Dempster, Laird and Rubin, 1977) whose causes are meant to be few, so that
// one which explains next to nothing is dropped (FEW).
//
// What needs no cause: on large fabrics some port always waits a little. Waits within what is usual now among
// ports that carry something (Tukey's fence, at most BURSTS of the time) do not count. BURSTS is also where a
// full port stops being the end itself: full is from 90 % on, so what waits for a tenth cannot be.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"

#define MAX_HELD 4096 // of those that wait most; beyond it, a fabric is one jam
#define MAX_VERTICES 65536
#define COVERED 0.9     // explained by what was read: what was not read is not looked at
#define FULL_QUEUE 50.0 // r^2 / 2 (1 - r) at 0.99
#define SINGLE 0.95     // of a full port's bytes: from one cable only
#define ROUNDS 8
#define FEW 0.05        // of what waits upstream
#define BURSTS 0.1F     // share of time that bursts alone may make a port wait
#define USED 0.01F      // carries something
#define PRIOR 0.02      // that a port of which nothing is known waits
#define STUCK_HELD 0.5  // a circle in which nothing moves: waits so much …
#define STUCK_USED 0.01 // … and carries no more
#define WEIGHT_LEAST 0.01
#define BACKLOGGED                                                                                           \
    2.0            // times what it gets, of the most that anybody gets: from a half on it may wait for that
#define LIKELY 0.1 // a port that was not read may hold others up so much by itself: no doubt of that

double congest_pressure(double used)
{
    if (!(used > 0))
        return 0;
    double r = used < 0.99 ? used : 0.99, q = r * r / (2 * (1 - r)) / FULL_QUEUE;
    return q < 1 ? q : 1;
}

void congest_graph_free(struct congest_graph *g)
{
    free(g->v);
    free(g->e);
    free(g->by_order);
    free(g->into);
    free(g->first_into);
    free(g->cycle);
    *g = (struct congest_graph){0};
}

// --- vertices and edges ---

static uint32_t vertex_add(struct congest *c, uint32_t slot, enum congest_vertex_type type)
{
    struct congest_graph *g = &c->g;
    if (c->vertex[slot] != ID_NONE)
        return c->vertex[slot];
    if (g->num_v == MAX_VERTICES)
        return ID_NONE;
    if (g->num_v == g->cap_v) {
        g->cap_v = g->cap_v ? g->cap_v * 2 : 256;
        g->v = xreallocarray(g->v, g->cap_v, sizeof(*g->v));
    }
    const struct congest_track *k = &c->track[slot];
    g->v[g->num_v] = (struct congest_vertex){
        .slot = slot,
        .type = type,
        .end = congest_switch_behind(&c->routes, c->t, slot) == ID_NONE,
        .h = k->presumed ? k->guess_h : k->h,
        .u = k->u,
        .lost = k->presumed  ? k->guess_h * tele_capacity(c->t, slot)
                : k->is_held ? k->lost_bps
                             : 0,
        .order = ID_NONE,
    };
    return c->vertex[slot] = g->num_v++;
}

static double weight_of(const struct congest_turn *t);

static void edge_add(struct congest_graph *g, uint32_t from, uint32_t to, const struct congest_turn *t)
{
    if (to == ID_NONE || to == from)
        return;
    if (g->num_e == g->cap_e) {
        g->cap_e = g->cap_e ? g->cap_e * 2 : 1024;
        g->e = xreallocarray(g->e, g->cap_e, sizeof(*g->e));
    }
    g->e[g->num_e++] =
        (struct congest_edge){.to = to, .weight = (float)weight_of(t), .of_most = (float)t->of_most};
    g->v[from].num_edges++;
}

// Who sends into a switch, and sends on by a port of it.
struct feeder {
    double part; // bytes/s to the port
    bool waits, unknown;
    bool alike;  // it is no faster than the port
    double free; // waits_little()
};

// 1: it does not wait; 0: no burst makes it wait so much.
static double waits_little(const struct congest *c, double h)
{
    return fmin(1, fmax(0, (BURSTS - h) / (BURSTS - c->o.held_on)));
}

static bool feeder_at(struct congest *c, uint32_t sw, unsigned num, uint32_t to, struct feeder *ret)
{
    uint32_t own = congest_slot_at(&c->routes, sw, num),
             in = own == TELE_SLOT_NONE ? own : c->t->port[own].peer;
    if (in >= c->t->num || num == c->t->port[to].num || !c->t->port[in].up)
        return false;
    const struct congest_track *k = &c->track[in];
    double part = congest_rate(c, sw, num, c->t->port[to].num),
           used = isnan(k->u) ? part / tele_capacity(c->t, in) : k->u;
    *ret = (struct feeder){.part = part,
                           .waits = k->may_hold,
                           .unknown = isnan(k->h),
                           .free = waits_little(c, isnan(k->h) ? 1 - used : k->h),
                           .alike = tele_capacity(c->t, in) <= tele_capacity(c->t, to) * 1.05};
    return part > 0;
}

// Share of a full port's bytes that is as it must be when it holds others up: from ports that wait, or may;
// from those that do not, no more than one that waits gets, since all are served in turn.
static float balance(struct congest *c, uint32_t slot)
{
    uint32_t sw = congest_switch_of(&c->routes, c->t, slot);
    if (sw == ID_NONE)
        return 0; // an adapter that sends all it can
    const struct node *n = fabric_switch(c->routes.fabric, sw);
    double sum = 0, most = 0, single = 0, out = c->track[slot].u * tele_capacity(c->t, slot);
    struct feeder f;
    for (unsigned i = 1; i <= n->num_ports; i++)
        if (feeder_at(c, sw, i, slot, &f) && (f.waits || f.unknown)) {
            sum += f.part;
            single = f.alike ? fmax(single, f.part * f.free) : single;
            most = fmax(most, f.part);
        }
    for (unsigned i = 1; i <= n->num_ports; i++)
        if (feeder_at(c, sw, i, slot, &f) && !f.waits && !f.unknown)
            sum += fmin(f.part, most);
    // What comes by a single cable as fast, which does not wait, has had its wait before.
    double alone = fmin(1, fmax(0, (SINGLE - single / out) / (SINGLE - 2.0 / 3)));
    return out > 0 ? (float)fmin(alone, sum / out) : 0;
}

static bool is_unread(const struct congest *c, uint32_t slot)
{
    return isnan(c->track[slot].h) && !c->track[slot].presumed;
}

// Time in which nobody else's packets get through a port that waits: it waits, or sends those of others.
static double blocked(float h, float u)
{
    return isnan(u) ? 1 : fmin(1, h + u);
}

// How likely what v waits for is a port of the switch behind it. Above all by whether it gets as much there
// as anybody does: who waits is served in turn, so all of them get the same, and who gets less has no more to
// send there. How much of its own traffic goes there says less: what stands is slow, whatever else would
// move.
static double weight_of(const struct congest_turn *t)
{
    return sqrt(sqrt(t->of_in + WEIGHT_LEAST)) * (t->of_most * t->of_most + WEIGHT_LEAST);
}

static struct congest_turn turn_of(struct congest *c, uint32_t v, uint32_t sw, const struct congest_ways *w,
                                   unsigned out)
{
    uint32_t peer = c->t->port[c->g.v[v].slot].peer;
    struct congest_turn t;
    if (peer >= c->t->num || !congest_turn(c, sw, c->t->port[peer].num, out, &t))
        return (struct congest_turn){1.0 / w->num, 1}; // nothing is known: all alike
    return t;
}

// Of the time, a full port's share in which it holds up who gets so much there.
static double holds_up(const struct congest_vertex *full, double of_most)
{
    return full->balance * fmin(1, BACKLOGGED * of_most);
}

// What those that were read explain of the time that v waits.
static double add_read(struct congest *c, uint32_t v, const struct congest_ways *w, uint32_t sw)
{
    double bound = 0, open = 0;
    for (uint32_t i = 0; w && i < w->num; i++) {
        uint32_t to = congest_slot_at(&c->routes, sw, w->way[i].num);
        if (to == TELE_SLOT_NONE)
            continue;
        const struct congest_track *k = &c->track[to];
        struct congest_turn turn = turn_of(c, v, sw, w, w->way[i].num);
        if (k->may_hold || k->presumed) {
            edge_add(&c->g, v, vertex_add(c, to, VERTEX_HELD), &turn);
            bound += blocked(k->presumed ? k->guess_h : k->h, k->u);
        } else if (k->may_fill) {
            bool is_new = c->vertex[to] == ID_NONE;
            uint32_t x = vertex_add(c, to, VERTEX_FULL);
            if (x != ID_NONE && is_new)
                c->g.v[x].balance = balance(c, to);
            if (x != ID_NONE)
                bound += holds_up(&c->g.v[x], turn.of_most);
            edge_add(&c->g, v, x, &turn);
        } else {
            open += congest_pressure(k->u) * weight_of(&turn);
        }
    }
    open = fmin(open, BURSTS);
    c->g.v[v].open = (float)open;
    return bound + open;
}

static void add_unread(struct congest *c, uint32_t v, const struct congest_ways *w, uint32_t sw)
{
    for (uint32_t i = 0; w && i < w->num; i++) {
        uint32_t to = congest_slot_at(&c->routes, sw, w->way[i].num);
        if (to == TELE_SLOT_NONE || !is_unread(c, to) || c->track[to].may_fill)
            continue;
        struct congest_turn turn = turn_of(c, v, sw, w, w->way[i].num);
        edge_add(&c->g, v, vertex_add(c, to, VERTEX_UNREAD), &turn);
    }
}

// Vertices grow while they are walked over.
static void grow(struct congest *c)
{
    struct congest_graph *g = &c->g;
    for (uint32_t i = 0; i < g->num_v; i++) {
        g->v[i].edge = g->num_e;
        uint32_t sw = congest_switch_behind(&c->routes, c->t, g->v[i].slot);
        if (g->v[i].type == VERTEX_FULL || sw == ID_NONE)
            continue;
        const struct congest_ways *w = congest_ways(&c->routes, c->t, g->v[i].slot);
        double h = isnan(g->v[i].h) ? STUCK_HELD : g->v[i].h;
        if (add_read(c, i, w, sw) < COVERED * h)
            add_unread(c, i, w, sw);
    }
}

struct held {
    uint32_t slot;
    double lost;
};
static int by_lost(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    if (x->lost != y->lost)
        return x->lost < y->lost ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

static void add_held(struct congest *c)
{
    struct held *h = xcalloc(c->t->num + 1, sizeof(*h));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->t->num; i++)
        if (c->track[i].is_held || c->track[i].presumed)
            h[n++] = (struct held){i, c->track[i].lost_bps};
    if (n > MAX_HELD)
        qsort(h, n, sizeof(*h), by_lost);
    for (uint32_t i = 0; i < n && i < MAX_HELD; i++)
        vertex_add(c, h[i].slot, VERTEX_HELD);
    free(h);
}

// --- order; circles ---

// Depth first, without recursion: ways are as long as somebody's tables make them. Edges that close a circle
// are cut.
static void set_order(struct congest_graph *g)
{
    enum { NEW, OPEN, DONE };
    uint8_t *state = xcalloc(g->num_v + 1, 1);
    uint32_t *stack = xcalloc(g->num_v + 1, sizeof(*stack)), *at = xcalloc(g->num_v + 1, sizeof(*at));
    uint32_t order = 0;
    g->by_order = xreallocarray(g->by_order, g->num_v + 1, sizeof(*g->by_order));
    for (uint32_t s = 0; s < g->num_v; s++) {
        uint32_t depth = 0;
        if (state[s] == NEW) {
            state[s] = OPEN;
            stack[depth++] = s;
        }
        while (depth) {
            uint32_t v = stack[depth - 1];
            struct congest_vertex *x = &g->v[v];
            if (at[v] == x->num_edges) {
                state[v] = DONE;
                g->by_order[order] = v;
                x->order = order++;
                depth--;
                continue;
            }
            struct congest_edge *e = &g->e[x->edge + at[v]++];
            if (e->to != ID_NONE && state[e->to] == OPEN) {
                e->to = ID_NONE;
            } else if (e->to != ID_NONE && state[e->to] == NEW) {
                state[e->to] = OPEN;
                stack[depth++] = e->to;
            }
        }
    }
    free(state);
    free(stack);
    free(at);
}

static void set_reverse(struct congest_graph *g)
{
    g->first_into = xreallocarray(g->first_into, g->num_v + 2, sizeof(uint32_t));
    g->into = xreallocarray(g->into, g->num_e + 1, sizeof(uint32_t));
    memset(g->first_into, 0, (g->num_v + 2) * sizeof(uint32_t));
    for (uint32_t i = 0; i < g->num_e; i++)
        if (g->e[i].to != ID_NONE)
            g->first_into[g->e[i].to + 2]++;
    for (uint32_t i = 0; i < g->num_v; i++)
        g->first_into[i + 2] += g->first_into[i + 1];
    for (uint32_t v = 0; v < g->num_v; v++)
        for (uint32_t k = g->v[v].edge; k < g->v[v].edge + g->v[v].num_edges; k++)
            if (g->e[k].to != ID_NONE)
                g->into[g->first_into[g->e[k].to + 1]++] = v;
}

static bool may_be_stuck(const struct congest_vertex *v)
{
    if (v->type == VERTEX_FULL || v->end)
        return false;
    return (isnan(v->h) || v->h >= STUCK_HELD) && (isnan(v->u) || v->u <= STUCK_USED);
}

struct tarjan {
    struct congest_graph *g;
    uint32_t *index, *low, *stack, *call, *at, *set; // set: of each vertex, ID_NONE before it is closed
    uint32_t next, depth, calls, sets;
};

static void tarjan_close(struct tarjan *t, uint32_t v)
{
    uint32_t w;
    do {
        w = t->stack[--t->depth];
        t->set[w] = t->sets;
    } while (w != v);
    t->sets++;
}

static void tarjan_open(struct tarjan *t, uint32_t v)
{
    t->index[v] = t->low[v] = t->next++;
    t->stack[t->depth++] = v;
    t->call[t->calls++] = v;
}

static void tarjan_from(struct tarjan *t, uint32_t s)
{
    tarjan_open(t, s);
    while (t->calls) {
        uint32_t v = t->call[t->calls - 1];
        const struct congest_vertex *x = &t->g->v[v];
        if (t->at[v] == x->num_edges) {
            t->calls--;
            if (t->low[v] == t->index[v])
                tarjan_close(t, v);
            if (t->calls && t->low[v] < t->low[t->call[t->calls - 1]])
                t->low[t->call[t->calls - 1]] = t->low[v];
            continue;
        }
        uint32_t to = t->g->e[x->edge + t->at[v]++].to;
        if (!may_be_stuck(&t->g->v[to]))
            continue;
        if (t->index[to] == ID_NONE)
            tarjan_open(t, to);
        else if (t->set[to] == ID_NONE && t->index[to] < t->low[v])
            t->low[v] = t->index[to];
    }
}

// The shortest circle through s within its set.
static uint32_t circle(const struct congest_graph *g, const uint32_t *set, uint32_t s, uint32_t *ret)
{
    uint32_t *from = xmalloc((g->num_v + 1) * sizeof(*from)), *queue = xcalloc(g->num_v + 1, sizeof(*queue));
    memset(from, 0xff, (g->num_v + 1) * sizeof(*from));
    uint32_t head = 0, tail = 0, n = 0, last = ID_NONE;
    queue[tail++] = s;
    while (head < tail && last == ID_NONE) {
        uint32_t v = queue[head++];
        for (uint32_t k = g->v[v].edge; k < g->v[v].edge + g->v[v].num_edges && last == ID_NONE; k++) {
            uint32_t to = g->e[k].to;
            if (to == s) {
                last = v;
            } else if (set[to] == set[s] && from[to] == ID_NONE) {
                from[to] = v;
                queue[tail++] = to;
            }
        }
    }
    for (uint32_t v = last; v != ID_NONE; v = v == s ? ID_NONE : from[v])
        ret[n++] = v;
    for (uint32_t i = 0; i < n / 2; i++) { // from s on
        uint32_t x = ret[i];
        ret[i] = ret[n - 1 - i];
        ret[n - 1 - i] = x;
    }
    free(from);
    free(queue);
    return n;
}

// A set of ports that wait for each other: most of them must be known to. The largest is the one that is
// shown; its first port, by slot, stands for it.
static void choose_stuck(struct congest_graph *g, const uint32_t *set, uint32_t sets)
{
    uint32_t *all = xcalloc(sets + 1, sizeof(*all)), *known = xcalloc(sets + 1, sizeof(*known));
    uint32_t best = ID_NONE, first = ID_NONE;
    for (uint32_t v = 0; v < g->num_v; v++)
        if (set[v] != ID_NONE) {
            all[set[v]]++;
            known[set[v]] += g->v[v].type == VERTEX_HELD;
        }
    for (uint32_t s = 0; s < sets; s++)
        if (all[s] > 1 && known[s] * 2 > all[s] && (best == ID_NONE || all[s] > all[best]))
            best = s;
    for (uint32_t v = 0; v < g->num_v && best != ID_NONE; v++)
        if (set[v] == best && g->v[v].type == VERTEX_HELD &&
            (first == ID_NONE || g->v[v].slot < g->v[first].slot))
            first = v;
    if (first != ID_NONE) {
        g->cycle = xreallocarray(g->cycle, g->num_v + 1, sizeof(*g->cycle));
        g->num_cycle = circle(g, set, first, g->cycle);
        for (uint32_t v = 0; v < g->num_v; v++)
            g->v[v].stuck = set[v] == best;
    }
    free(all);
    free(known);
}

static void find_stuck(struct congest_graph *g)
{
    uint32_t n = g->num_v + 1;
    struct tarjan t = {.g = g};
    uint32_t *room = xmalloc(6 * (size_t)n * sizeof(*room));
    memset(room, 0xff, 6 * (size_t)n * sizeof(*room));
    t.index = room, t.low = room + n, t.stack = room + 2 * n, t.call = room + 3 * n, t.set = room + 4 * n;
    t.at = room + 5 * n;
    memset(t.at, 0, n * sizeof(*t.at));
    g->num_cycle = 0;
    for (uint32_t v = 0; v < g->num_v; v++)
        if (may_be_stuck(&g->v[v]) && t.index[v] == ID_NONE)
            tarjan_from(&t, v);
    choose_stuck(g, t.set, t.sets);
    free(room);
}

// The stuck set has no end: all its waits end at the port that stands for it.
static void bind_stuck(struct congest_graph *g)
{
    for (uint32_t v = 0; v < g->num_v && g->num_cycle; v++) {
        if (!g->v[v].stuck)
            continue;
        for (uint32_t k = 0; k < g->v[v].num_edges; k++)
            g->e[g->v[v].edge + k].to = k == 0 && v != g->cycle[0] ? g->cycle[0] : ID_NONE;
    }
}

// --- shares ---

// Of those that wait upstream of an unread port, by lost bandwidth: how much leads to it. Adapters' ports
// lead everywhere and say nothing.
static float fit_routes(struct congest *c, uint32_t v, uint32_t *mark)
{
    struct congest_graph *g = &c->g;
    struct congest_behind to;
    congest_behind(&c->routes, c->t, g->v[v].slot, &to);
    uint32_t *queue = xcalloc(g->num_v + 1, sizeof(*queue)), head = 0, tail = 0;
    double all = 0, led = 0;
    queue[tail++] = v;
    mark[v] = v;
    while (head < tail) {
        uint32_t x = queue[head++];
        for (uint32_t k = g->first_into[x]; k < g->first_into[x + 1]; k++) {
            uint32_t p = g->into[k];
            if (mark[p] == v)
                continue;
            mark[p] = v;
            queue[tail++] = p;
            g->v[v].all += g->v[p].counts;
            if (g->v[p].type != VERTEX_HELD || congest_switch_of(&c->routes, c->t, g->v[p].slot) == ID_NONE)
                continue;
            all += g->v[p].lost;
            if (congest_leads(&c->routes, c->t, g->v[p].slot, &to))
                led += g->v[p].lost;
        }
    }
    free(queue);
    return all > 0 ? (float)(led / all) : 1;
}

static float used_of(struct congest *c, const struct congest_vertex *x)
{
    return isnan(x->u) ? congest_estimate(c, x->slot) : x->u;
}

// How likely a port of which only its use is known holds others up by itself, against others like it: a cable
// that is full does more often than not; one that may be full, by all that is known, might; a host that takes
// too little is rare.
static double fit_alone(struct congest *c, const struct congest_vertex *x)
{
    float used = fmaxf(used_of(c, x), x->fed);
    for (uint32_t i = 0; i < c->num_trees; i++)
        if (c->tree[i]->root == x->slot && c->tree[i]->kind != CONGEST_UNCLEAR)
            return 0.5; // it was, when it was read
    if (x->end)
        return 0.2;
    if (isnan(used))
        return 0.1;
    if (!isnan(x->u) && used >= c->o.full) // told: it waits no more than what is left
        return waits_little(c, 1 - used);
    if (isnan(x->u) && used >= c->o.full - 0.05)
        return 1;
    // Not told: the guess may be off.
    bool may = isnan(x->u) && c->guess_most[x->slot] >= c->o.full;
    return fmax(congest_pressure(used), may ? 0.2 * (double)used * (double)used : 0);
}

// What is sent more to is more likely to be what is waited for. One that is sent nothing at all is only when
// nothing moves before it either.
static double fit_traffic(struct congest *c, uint32_t v)
{
    const struct congest_graph *g = &c->g;
    float used = used_of(c, &g->v[v]);
    bool stands = false;
    for (uint32_t k = g->first_into[v]; k < g->first_into[v + 1]; k++) {
        float before = used_of(c, &g->v[g->into[k]]);
        stands |= isnan(before) || before <= STUCK_USED;
    }
    return isnan(used) ? 0.3 : (stands ? PRIOR : PRIOR / 10) + (double)used;
}

static void finish_unread(struct congest *c, uint32_t v, uint32_t *mark)
{
    struct congest_graph *g = &c->g;
    struct congest_vertex *x = &g->v[v];
    double behind = 0;
    for (uint32_t k = x->edge; k < x->edge + x->num_edges; k++) {
        const struct congest_edge *e = &g->e[k];
        if (e->to == ID_NONE)
            continue;
        const struct congest_vertex *y = &g->v[e->to];
        behind = fmax(behind, y->type == VERTEX_UNREAD ? y->behind : y->press);
    }
    double own = fit_alone(c, x) * fit_traffic(c, v);
    if (x->mass < 0) { // the first time
        x->routes = fit_routes(c, v, mark);
        x->behind = (float)fmax(own, behind);
        x->fit = x->behind;
    } else {
        // What explains next to nothing of what could be its own is not there: few causes are likelier than
        // many.
        x->fit = g->lost > 0 ? (float)(fmax(x->mass - FEW * x->all, 1e-6 * x->mass) / g->lost) : 0;
        x->fit *= (float)fmin(1, x->behind / LIKELY);
    }
    x->fit *= x->routes * x->routes;
    // What goes on behind it: as much as is pressed there.
    x->self = x->end ? 1 : own + behind > 0 ? (float)(own / (own + behind)) : 0.5F;
    x->press = (float)(PRIOR * x->fit);
}

// Waits of this share of time need no cause that lasts: bursts far shorter than a sweep make them wherever
// there is traffic. What is usual now (Tukey's fence over ports that carry something), but no more than a
// tenth: when all that carry something wait, it is no burst.
static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static float usual_wait(const struct congest *c)
{
    float *h = xcalloc(c->t->num + 1, sizeof(*h));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->t->num; i++)
        if (c->track[i].u > USED && !isnan(c->track[i].h) &&
            congest_switch_behind(&c->routes, c->t, i) != ID_NONE)
            h[n++] = c->track[i].h;
    qsort(h, n, sizeof(*h), by_size);
    float low = n ? h[n / 4] : 0, high = n ? h[n - 1 - n / 4] : 0, fence = high + 1.5F * (high - low);
    free(h);
    return fence > c->o.held_on ? fminf(fence, BURSTS) : 0;
}

static void share_out(struct congest *c, struct congest_vertex *x, double h)
{
    struct congest_graph *g = &c->g;
    double press = x->open, bound = x->open, fit = 0, given = 0;
    for (uint32_t k = x->edge; k < x->edge + x->num_edges; k++) {
        const struct congest_vertex *y = g->e[k].to == ID_NONE ? NULL : &g->v[g->e[k].to];
        if (!y)
            continue;
        double weight = g->e[k].weight;
        press += y->press * weight;
        fit += y->type == VERTEX_UNREAD ? y->fit * weight : 0;
        bound += y->type == VERTEX_HELD   ? blocked(y->h, y->u)
                 : y->type == VERTEX_FULL ? holds_up(y, g->e[k].of_most)
                                          : 0;
    }
    double covered = fmin(1, bound / h);
    for (uint32_t k = x->edge; k < x->edge + x->num_edges; k++) {
        const struct congest_vertex *y = g->e[k].to == ID_NONE ? NULL : &g->v[g->e[k].to];
        if (!y)
            continue;
        double s = press > 0 ? covered * y->press * g->e[k].weight / press : 0;
        if (y->type == VERTEX_UNREAD && fit > 0)
            s += (1 - covered) * y->fit * g->e[k].weight / fit;
        g->e[k].share = (float)(s * (1 - x->self));
        given += g->e[k].share;
    }
    // The part of open ports is nobody's; what is left ends here.
    double open = press > 0 ? covered * x->open / press : 0;
    x->self = (float)fmax(0, 1 - given - open * (1 - x->self));
}

static void finish_held(struct congest *c, struct congest_vertex *x)
{
    struct congest_graph *g = &c->g;
    // In the time that is left to it it is as busy as that.
    x->press = (float)fmax(x->h, congest_pressure(x->u / fmax(1 - x->h, 0.01)));
    if (x->stuck) {
        x->self = x->num_edges && g->e[x->edge].to != ID_NONE ? 0 : 1;
        if (!(x->self > 0))
            g->e[x->edge].share = 1;
        return;
    }
    if (x->end) {
        x->self = 1;
        return;
    }
    // Full but for short waits: it is itself what others wait for. Nobody waits for an adapter.
    bool own = x->u >= c->o.full && congest_switch_of(&c->routes, c->t, x->slot) != ID_NONE;
    x->self = own ? (float)waits_little(c, x->h) : 0;
    share_out(c, x, x->h);
}

static void set_shares(struct congest *c)
{
    struct congest_graph *g = &c->g;
    uint32_t *mark = xmalloc((g->num_v + 1) * sizeof(*mark));
    memset(mark, 0xff, (g->num_v + 1) * sizeof(*mark));
    for (uint32_t i = 0; i < g->num_v; i++) {
        struct congest_vertex *x = &g->v[g->by_order[i]];
        switch (x->type) {
        case VERTEX_HELD:
            finish_held(c, x);
            break;
        case VERTEX_FULL:
            x->press = (float)congest_pressure(x->u) * x->balance * x->balance;
            x->self = 1;
            break;
        case VERTEX_UNREAD:
            finish_unread(c, g->by_order[i], mark);
            if (!x->end)
                share_out(c, x, STUCK_HELD);
            break;
        }
    }
    free(mark);
}

// Lost bandwidth runs down the edges and stays where it ends.
static void run_down(struct congest_graph *g)
{
    double *mass = xcalloc(g->num_v + 1, sizeof(*mass));
    g->lost = 0;
    for (uint32_t i = g->num_v; i-- > 0;) {
        struct congest_vertex *x = &g->v[g->by_order[i]];
        double m = mass[g->by_order[i]] + x->counts;
        g->lost += x->counts;
        x->mass = m;
        x->ends = m * x->self;
        for (uint32_t k = x->edge; k < x->edge + x->num_edges; k++)
            if (g->e[k].to != ID_NONE)
                mass[g->e[k].to] += m * g->e[k].share;
    }
    free(mass);
}

// At least what those send to an unread port whose waits lead there.
static void feed_unread(struct congest *c)
{
    struct congest_graph *g = &c->g;
    for (uint32_t i = 0; i < g->num_v; i++)
        g->v[i].fed = 0;
    for (uint32_t i = 0; i < g->num_v; i++) {
        const struct congest_vertex *x = &g->v[i];
        double rate = isnan(x->u) ? 0 : x->u * tele_capacity(c->t, x->slot);
        for (uint32_t k = x->edge; k < x->edge + x->num_edges && x->type == VERTEX_HELD; k++)
            if (g->e[k].to != ID_NONE && isnan(g->v[g->e[k].to].u))
                g->v[g->e[k].to].fed +=
                    (float)(rate * g->e[k].share / fmax(1, tele_capacity(c->t, g->v[g->e[k].to].slot)));
    }
}

// Behind what lasts, a port has something to send all the time: what it does not send it waits.
static double lasting(const struct congest_vertex *x)
{
    return isnan(x->u) ? 1 : fmin(1, x->h / fmax(1 - x->u, 0.01));
}

void congest_graph_make(struct congest *c)
{
    struct congest_graph *g = &c->g;
    for (uint32_t i = 0; i < g->num_v; i++)
        c->vertex[g->v[i].slot] = ID_NONE;
    g->num_v = g->num_e = 0;
    add_held(c);
    grow(c);
    find_stuck(g);
    bind_stuck(g);
    set_order(g);
    set_reverse(g);
    double usual = usual_wait(c);
    for (uint32_t i = 0; i < g->num_v; i++) {
        struct congest_vertex *x = &g->v[i];
        x->mass = -1;
        x->counts = x->lost > 0 ? x->lost * (1 - fmin(1, usual / x->h)) * lasting(x) : 0;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        set_shares(c);
        run_down(g);
        feed_unread(c);
    }
}
