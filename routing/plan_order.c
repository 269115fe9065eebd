// SPDX-License-Identifier: Apache-2.0
// In which wave a block is written. Blocks with the same LIDs on different switches are a graph of their own:
//
//   a destination with loops     a switch comes after the next one on its new path that changes too. Then a
//                                switch with its new entry has its whole new path before it, and a packet
//                                runs along old entries until it meets a new one: never in a circle;
//   a destination with bad turns where old-then-new is one, the first switch comes before the second; where
//                                new-then-old is, after it.
//
// A block's wave is the length of the longest chain before it. Destinations are added one by one; one that
// would close a cycle or make the chain too long is taken back, and dropped first. In the end each is looked
// at wave by wave, whether it keeps what the order promises.
#include "routing/plan_priv.h"

#include <string.h>

struct edge {
    uint32_t to, next; // next edge from the same switch; 0 = none
};

struct ordering {
    struct planning *p;
    uint8_t *level; // per switch, of this block
    uint32_t *head; // per switch: its edges; 0 = none
    struct edge *edge;
    uint32_t num_edges, cap_edges;
    uint32_t *from; // per edge, to take it back
    uint32_t *stack, num_stack, cap_stack;
    struct raised {
        uint32_t sw;
        uint8_t level;
    } * raised;
    uint32_t num_raised, cap_raised;
    struct plan_lanes lanes; // of the destination at hand
    struct arena *a;
};

// Grows an array of the arena's to hold one more.
static void *grow(struct arena *a, void *old, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return old;
    uint32_t wide = *cap ? *cap * 2 : 256;
    void *x = arena_array(a, wide, size);
    if (old)
        memcpy(x, old, n * size);
    *cap = wide;
    return x;
}

static void push(struct ordering *o, uint32_t s)
{
    o->stack = grow(o->a, o->stack, o->num_stack, &o->cap_stack, sizeof(*o->stack));
    o->stack[o->num_stack++] = s;
}

// Whether z can be lifted above a, with all that comes after it.
static bool lift(struct ordering *o, uint32_t a, uint32_t z)
{
    if (o->level[z] > o->level[a])
        return true;
    o->num_stack = 0;
    push(o, a);
    while (o->num_stack > 0) {
        uint32_t s = o->stack[--o->num_stack];
        for (uint32_t i = o->head[s]; i; i = o->edge[i].next) {
            uint32_t x = o->edge[i].to;
            if (o->level[x] > o->level[s])
                continue;
            if (o->level[s] + 1 >= LEVELS_MAX)
                return false;
            o->raised = grow(o->a, o->raised, o->num_raised, &o->cap_raised, sizeof(*o->raised));
            o->raised[o->num_raised++] = (struct raised){x, o->level[x]};
            o->level[x] = (uint8_t)(o->level[s] + 1);
            push(o, x);
        }
    }
    return true;
}

static bool put_before(struct ordering *o, uint32_t a, uint32_t z)
{
    uint32_t cap = o->cap_edges;
    o->edge = grow(o->a, o->edge, o->num_edges, &o->cap_edges, sizeof(*o->edge));
    o->from = grow(o->a, o->from, o->num_edges, &cap, sizeof(*o->from));
    o->edge[o->num_edges] = (struct edge){z, o->head[a]};
    o->from[o->num_edges] = a;
    o->head[a] = o->num_edges++;
    return lift(o, a, z);
}

static void take_back(struct ordering *o, uint32_t edges)
{
    while (o->num_edges > edges) {
        o->num_edges--;
        o->head[o->from[o->num_edges]] = o->edge[o->num_edges].next;
    }
    while (o->num_raised > 0) {
        o->num_raised--;
        o->level[o->raised[o->num_raised].sw] = o->raised[o->num_raised].level;
    }
}

static bool changes(const struct planning *p, uint32_t s, uint32_t lid)
{
    return plan_old(p, s, lid) != plan_new(p, s, lid);
}

// After the next switch on the new path that changes too.
static bool order_outward(struct ordering *o, uint32_t v, uint32_t lid)
{
    const struct planning *p = o->p;
    uint32_t x = plan_far(p, v, plan_new(p, v, lid));
    for (uint32_t hops = 0; x != NO_SWITCH && !changes(p, x, lid); hops++) {
        if (hops > p->n)
            return false;
        x = plan_far(p, x, plan_new(p, x, lid));
    }
    return x == NO_SWITCH || put_before(o, x, v);
}

static bool order_turns(struct ordering *o, uint32_t v, uint32_t lid)
{
    const struct planning *p = o->p;
    uint8_t ports[2] = {plan_old(p, v, lid), plan_new(p, v, lid)};
    for (unsigned i = 0; i < 2; i++) {
        uint32_t w = plan_far(p, v, ports[i]);
        if (w == NO_SWITCH)
            continue;
        uint8_t out[2] = {plan_old(p, w, lid), plan_new(p, w, lid)};
        if (out[0] == out[1] || plan_far(p, w, out[1 - i]) == NO_SWITCH ||
            !plan_bad_turn(p, o->lanes.mix[v], v, ports[i], w, out[1 - i]))
            continue;
        if (!(i == 0 ? put_before(o, v, w) : put_before(o, w, v)))
            return false;
    }
    return true;
}

static bool order_lid(struct ordering *o, uint32_t lid)
{
    const struct planning *p = o->p;
    for (uint32_t k = 0, v; (v = plan_changing(p, lid, &k)) != NO_SWITCH;) {
        if (p->loops[lid] && !order_outward(o, v, lid))
            return false;
        if (p->turns[lid] && !order_turns(o, v, lid))
            return false;
    }
    return true;
}

// Whether the waves keep what they promise, looked at without the reasoning above.
static bool keeps(const struct planning *p, struct plan_search *w, const struct plan_lanes *l, uint32_t lid,
                  uint32_t levels)
{
    const uint8_t *level = p->level + (size_t)(lid / LFT_BLOCK) * p->n;
    for (uint32_t i = 0; i < levels; i++) {
        if (plan_has_loop(p, w, lid, i))
            return false;
    }
    for (uint32_t k = 0, v; (v = plan_changing(p, lid, &k)) != NO_SWITCH;) {
        uint8_t ports[2] = {plan_old(p, v, lid), plan_new(p, v, lid)};
        for (unsigned i = 0; i < 2; i++) {
            uint32_t x = plan_far(p, v, ports[i]);
            if (x == NO_SWITCH || !changes(p, x, lid))
                continue;
            uint8_t out = i == 0 ? plan_new(p, x, lid) : plan_old(p, x, lid);
            bool never = i == 0 ? level[v] < level[x] : level[x] < level[v];
            if (!never && plan_far(p, x, out) != NO_SWITCH &&
                plan_bad_turn(p, l->mix[v], v, ports[i], x, out))
                return false;
        }
    }
    return true;
}

static bool ordered(const struct planning *p, uint32_t lid)
{
    return (p->loops[lid] || p->turns[lid]) && !p->dropped[lid];
}

static void order_task(void *arg, unsigned block)
{
    struct planning *p = arg;
    uint32_t lid0 = block * LFT_BLOCK, levels = 1;
    bool any = false;
    for (uint32_t lid = lid0; lid < lid0 + LFT_BLOCK; lid++)
        any |= ordered(p, lid);
    if (!any)
        return;
    struct arena *a = arena_new();
    struct ordering o = {.p = p, .level = p->level + (size_t)block * p->n, .a = a, .num_edges = 1};
    struct plan_search w;
    plan_search_init(p, &w, a);
    plan_lanes_init(p, &o.lanes, a);
    o.head = ARENA_NEW_N(a, p->n + 1, uint32_t);
    for (uint32_t lid = lid0; lid < lid0 + LFT_BLOCK; lid++) {
        if (!ordered(p, lid))
            continue;
        uint32_t edges = o.num_edges;
        o.num_raised = 0;
        plan_lanes_at(p, &o.lanes, lid);
        if (!order_lid(&o, lid)) {
            take_back(&o, edges);
            p->dropped[lid] = true;
        }
    }
    for (uint32_t s = 0; s < p->n; s++) {
        if (o.level[s] != LEVEL_SAME && o.level[s] + 1u > levels)
            levels = o.level[s] + 1u;
    }
    for (uint32_t lid = lid0; lid < lid0 + LFT_BLOCK; lid++) {
        if (!ordered(p, lid))
            continue;
        plan_lanes_at(p, &o.lanes, lid);
        p->dropped[lid] = !keeps(p, &w, &o.lanes, lid, levels);
    }
    arena_free(a);
}

void plan_order(struct planning *p)
{
    plan_run(p, p->blocks, order_task);
}
