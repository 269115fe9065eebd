// SPDX-License-Identifier: Apache-2.0
// One destination repaired under up*/down*. Every switch has one entry; it goes down when it leads to a lower
// switch that goes down itself (or is the end), up when it leads to a higher one. What goes down passes only
// lower and lower switches that go down, what goes up only higher ones until it goes down: so whatever the
// entries, paths go up and then down, and never in a circle.
//
// Therefore two passes find what must change, each looking only at what is decided already. Going down, from
// below: an entry that leads down to a switch which does not go down any more takes another lower one, or
// goes up from now on, and then those above that came down to it are looked at. Going up, from above: an
// entry that leads up to nowhere, or over a foot where another way does not, takes another higher one; where
// it stays a way over a foot, those below that go up to it are looked at. An entry that nobody told to be
// looked at stays.
//
// A switch that went up stays so, though it may be able to go down; in fabrics where all go down that can,
// that costs nothing. Elsewhere it may leave a switch without a way, or with one over a foot: then the
// directions are those of column.c, on the live fabric, and all entries are looked at with them.
#include "routing/repair_priv.h"

#include <string.h>

void rrepair_init(struct rrepair *r, const struct rlive *v, struct fabric_tables *out, struct arena *a)
{
    uint32_t words = v->g.n / 64 + 1;
    *r = (struct rrepair){.v = v, .out = out, .rc_for = ID_NONE, .up_for = ID_NONE};
    r->down_todo = ARENA_NEW_N(a, words, uint64_t);
    r->up_todo = ARENA_NEW_N(a, words, uint64_t);
    r->seen = ARENA_NEW_N(a, 2 * v->g.n + 1, uint32_t);
    r->path = ARENA_NEW_N(a, v->g.n + 1, uint32_t);
    r->cost = ARENA_NEW_N(a, v->g.n + 1, uint32_t);
    r->cost_of = ARENA_NEW_N(a, v->g.n + 1, uint32_t);
    r->up_of = ARENA_NEW_N(a, v->g.n + 1, uint32_t);
    r->from = ARENA_NEW_N(a, v->g.n + 1, uint32_t);
    r->climb = ARENA_NEW_N(a, v->g.n + 1, uint32_t);
    rcolumn_init(&r->rc, &v->g, v->ordered, a);
}

static uint32_t next_of(const struct rrepair *r, uint32_t s)
{
    return rfar(r->v, s, tables_row(r->out, s)[r->lid]);
}

static void mark(uint64_t *todo, const struct rlive *v, uint32_t s)
{
    todo[v->o.pos[s] / 64] |= 1ULL << (v->o.pos[s] % 64);
}

static bool goes_down(const struct rrepair *r, uint32_t s)
{
    if (s == r->t)
        return true;
    if (r->label)
        return r->label[s];
    uint32_t w = next_of(r, s);
    return w != ID_NONE && r->v->o.pos[w] < r->v->o.pos[s];
}

static uint32_t step_to(const struct rrepair *r, uint32_t w)
{
    return w != r->t && r->v->o.foot[w] ? 1 + RCOST_FOOT : 1;
}

// Of the path along the entries as they are; RCOST_NONE when it does not arrive. Asked only of switches from
// which everything is decided, so it can be remembered.
static uint32_t cost_of(struct rrepair *r, uint32_t s)
{
    uint32_t cost = 0, n = 0;
    while (s != r->t && r->cost_of[s] != r->column && n < r->v->g.n) {
        r->path[n++] = s;
        s = next_of(r, s);
        if (s == ID_NONE)
            break;
    }
    if (s == ID_NONE || n == r->v->g.n)
        cost = RCOST_NONE;
    else if (s != r->t)
        cost = r->cost[s];
    while (n > 0) {
        if (cost != RCOST_NONE)
            cost += step_to(r, s);
        s = r->path[--n];
        r->cost[s] = cost;
        r->cost_of[s] = r->column;
    }
    return cost;
}

// Whether s may go to w, in the direction it is to go.
static bool may_go(const struct rrepair *r, uint32_t s, uint32_t w, bool down)
{
    const uint32_t *pos = r->v->o.pos;
    return down ? pos[w] < pos[s] && goes_down(r, w) : pos[w] > pos[s];
}

static uint32_t cost_by(struct rrepair *r, uint32_t s, uint32_t w, bool down)
{
    if (!may_go(r, s, w, down))
        return RCOST_NONE;
    uint32_t c = cost_of(r, w);
    return c == RCOST_NONE ? c : c + step_to(r, w);
}

// The ports that the ideal gives to the other LIDs of the same end port: several LIDs are for taking several
// ways. Only what leads nowhere else goes there. The ideal alone says it, so that no good entry has to
// change.
static void find_siblings(const struct rrepair *r, uint32_t s, bool taken[256])
{
    const struct fabric *f = r->v->f;
    if (r->lid > f->top_lid || f->lid_port[r->lid] == ID_NONE)
        f = r->v->b->f;
    if (r->lid > f->top_lid || f->lid_port[r->lid] == ID_NONE)
        return;
    const struct port *p = &f->port[f->lid_port[r->lid]];
    for (uint32_t i = 0; p->a.lmc > 0 && i < 1u << (p->a.lmc & 7); i++) {
        if (p->a.lid + i != r->lid && p->a.lid + i <= UINT16_MAX)
            taken[rideal(r->v, s, (uint16_t)(p->a.lid + i))] = true;
    }
}

// The heaviest port of s so far, by shares.
struct heaviest {
    struct rhash x;
    uint32_t to; // ID_NONE: none yet
    uint8_t port;
    bool taken;      // a sibling's
    bool other[256]; // all that are
};

static void weigh(const struct rrepair *r, uint32_t s, const struct rgroup *group, struct heaviest *best)
{
    struct rhash x = {0, rshare(r->v, group->peer, r->t)};
    for (uint32_t k = 0; k < group->num_ports; k++) {
        uint8_t p = r->v->g.ports[group->first_port + k];
        x.hash = rweight(r->v, s, r->lid, p);
        bool taken = best->other[p];
        if (best->to != ID_NONE && (taken != best->taken ? taken : !rheavier(x, best->x)))
            continue;
        best->x = x;
        best->to = group->peer;
        best->port = p;
        best->taken = taken;
    }
}

// What it cost in the whole fabric, than which nothing is cheaper now: that has all the ways that are left,
// and a switch that goes down now did so there. RCOST_NONE: not known.
static uint32_t least_cost(const struct rrepair *r, uint32_t s)
{
    const struct rlive *v = r->v;
    const struct route_base *b = v->b;
    uint32_t x = v->to_base[s], t = v->to_base[r->t], cost = 0;
    bool part = !v->extra && !v->depth && !v->renewed[v->g.comp[s]] && !r->label;
    if (!part || t == ID_NONE || r->lid > b->top_lid || b->at_sw[r->lid] != t)
        return RCOST_NONE;
    for (uint32_t n = 0; x != t && n < b->n; n++) {
        uint8_t port = tables_port(b->ideal, x, r->lid);
        x = port < b->ports ? b->link[(size_t)x * b->ports + port] : ID_NONE;
        if (x == ID_NONE)
            return RCOST_NONE;
        cost += x != t && b->foot[x] ? 1 + RCOST_FOOT : 1;
    }
    return x == t ? cost : RCOST_NONE;
}

// The heaviest of all, which is it if it costs no more than that: mostly so, and the others' paths need not
// be walked. RCOST_NONE: it may be another.
static uint32_t choose_at_once(struct rrepair *r, uint32_t s, bool down, struct heaviest *best)
{
    const struct rgraph *g = &r->v->g;
    uint32_t least = least_cost(r, s);
    if (least >= RCOST_FOOT)
        return RCOST_NONE;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (may_go(r, s, g->g[i].peer, down))
            weigh(r, s, &g->g[i], best);
    }
    return best->to != ID_NONE && cost_by(r, s, best->to, down) == least ? least : RCOST_NONE;
}

// The port for s in one direction: the ideal's where that is legal, else the heaviest of the cheapest;
// LFT_DROP when there is none. Returns its cost.
static uint32_t choose(struct rrepair *r, uint32_t s, bool down, uint8_t *ret_port)
{
    const struct rgraph *g = &r->v->g;
    uint32_t w = rideal_next(r->v, s, r->lid), best = RCOST_NONE, kept = RCOST_NONE;
    struct heaviest h = {.to = ID_NONE};
    *ret_port = rideal(r->v, s, r->lid);
    if (w != ID_NONE)
        kept = cost_by(r, s, w, down);
    if (kept < RCOST_FOOT)
        return kept;
    find_siblings(r, s, h.other);
    uint32_t least = choose_at_once(r, s, down, &h);
    if (least != RCOST_NONE) {
        *ret_port = h.port;
        return least;
    }
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        uint32_t c = cost_by(r, s, g->g[i].peer, down);
        if (c == RCOST_NONE || c > best)
            continue;
        if (c < best)
            h.to = ID_NONE;
        best = c;
        weigh(r, s, &g->g[i], &h);
    }
    if (kept != RCOST_NONE && best >= RCOST_FOOT)
        return kept;
    *ret_port = best == RCOST_NONE ? LFT_DROP : h.port;
    return best;
}

static void look_above(struct rrepair *r, uint32_t s)
{
    const struct rlive *v = r->v;
    for (uint32_t i = v->g.goff[s]; i < v->g.goff[s + 1]; i++) {
        uint32_t x = v->g.g[i].peer;
        if (v->o.pos[x] > v->o.pos[s] && next_of(r, x) == s)
            mark(r->down_todo, v, x);
    }
}

static void look_below(struct rrepair *r, uint32_t s)
{
    const struct rlive *v = r->v;
    for (uint32_t i = v->g.goff[s]; i < v->g.goff[s + 1]; i++) {
        uint32_t x = v->g.g[i].peer;
        if (v->o.pos[x] < v->o.pos[s] && x != r->t && next_of(r, x) == s)
            mark(r->up_todo, v, x);
    }
}

// Whether the ideal has s go up; one without an entry tries to go down first.
static bool ideal_up(const struct rrepair *r, uint32_t s)
{
    const struct rlive *v = r->v;
    uint8_t port = rideal(v, s, r->lid);
    uint32_t w = rideal_next(v, s, r->lid);
    if (w != ID_NONE)
        return v->o.pos[w] > v->o.pos[s];
    uint32_t b = v->to_base[s];
    if (b == ID_NONE || port >= v->b->ports || v->b->link[(size_t)b * v->b->ports + port] == ID_NONE)
        return false;
    return v->b->pos[v->b->link[(size_t)b * v->b->ports + port]] > v->b->pos[b];
}

static void decide_down(struct rrepair *r, uint32_t s)
{
    uint8_t port;
    bool up = r->label ? !r->label[s] : ideal_up(r, s);
    if (!up && choose(r, s, true, &port) != RCOST_NONE) {
        rput(r, s, port);
        r->seen[r->num_seen++] = s;
        return;
    }
    if (!up || r->label || rideal_next(r->v, s, r->lid) == ID_NONE) // a port may lead elsewhere by now
        rput(r, s, LFT_DROP);
    mark(r->up_todo, r->v, s);
    if (!r->label)
        look_above(r, s);
}

static void decide_up(struct rrepair *r, uint32_t s)
{
    uint8_t port;
    uint32_t cost = choose(r, s, false, &port);
    rput(r, s, cost == RCOST_NONE ? LFT_DROP : port);
    r->seen[r->num_seen++] = s;
    if (cost >= RCOST_FOOT && !r->label)
        look_below(r, s);
}

static void run_down(struct rrepair *r)
{
    for (uint32_t i = 0; i <= r->v->g.n / 64; i++) {
        while (r->down_todo[i]) {
            uint32_t bit = (uint32_t)__builtin_ctzll(r->down_todo[i]);
            r->down_todo[i] &= r->down_todo[i] - 1;
            decide_down(r, r->v->o.by_pos[i * 64 + bit]);
        }
    }
}

static void run_up(struct rrepair *r)
{
    for (uint32_t i = r->v->g.n / 64 + 1; i-- > 0;) {
        while (r->up_todo[i]) {
            uint32_t bit = 63 - (uint32_t)__builtin_clzll(r->up_todo[i]);
            r->up_todo[i] &= ~(1ULL << bit);
            decide_up(r, r->v->o.by_pos[i * 64 + bit]);
        }
    }
}

static void run_costs(struct rrepair *r)
{
    if (r->rc_for == r->t)
        return;
    rcolumn_run(&r->rc, &r->v->g, &r->v->o, r->t);
    r->rc_for = r->t;
}

// Upwards from `from`: marks what is reached with num, not beyond feet. Or, looking for what is marked with
// find: whether some of it is, other than feet on the way.
static bool climb(struct rrepair *r, uint32_t from, uint32_t *mark, uint32_t num, const uint32_t *find)
{
    const struct rlive *v = r->v;
    uint32_t n = 0;
    r->climb[n++] = from;
    mark[from] = num;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t x = r->climb[k];
        if (find && find[x] == r->up_num)
            return true;
        for (uint32_t i = v->g.goff[x]; i < v->g.goff[x + 1]; i++) {
            uint32_t w = v->g.g[i].peer;
            if (v->o.pos[w] < v->o.pos[x] || mark[w] == num)
                continue;
            mark[w] = num;
            if (!v->o.foot[w] || w == r->t)
                r->climb[n++] = w;
        }
    }
    return false;
}

// Whether there may be a way from s up and then down that crosses no foot. Much less than rcolumn_run(),
// where there is none: it looks at what lies above s and above the end.
static bool without_feet(struct rrepair *r, uint32_t s)
{
    if (r->up_for != r->t) {
        r->up_for = r->t;
        climb(r, r->t, r->up_of, ++r->up_num, NULL);
    }
    return climb(r, s, r->from, ++r->from_num, r->up_of);
}

// Whether some switch looked at has no way, or one over a foot, though there is a better one.
static bool lacks(struct rrepair *r)
{
    for (uint32_t i = 0; i < r->num_seen; i++) {
        uint32_t s = r->seen[i], cost = cost_of(r, s);
        if (cost < RCOST_FOOT || (cost != RCOST_NONE && !without_feet(r, s)))
            continue;
        run_costs(r);
        if (r->rc.cost[s] != RCOST_NONE && (cost == RCOST_NONE || r->rc.cost[s] < RCOST_FOOT))
            return true;
    }
    return false;
}

static void all_anew(struct rrepair *r)
{
    const struct rlive *v = r->v;
    run_costs(r);
    r->label = r->rc.down;
    r->column++;
    r->num_seen = 0;
    for (uint32_t s = 0; s < v->g.n; s++) {
        if (s != r->t && r->rc.cost[s] != RCOST_NONE)
            mark(r->down_todo, v, s);
    }
    run_down(r);
    run_up(r);
    r->label = NULL;
    r->anew++;
}

// A suspect entry is looked at, but for one whose cable is alive and only its two ends have changed places in
// the order: if it leads down now to a switch that goes down it stays, until that one is found not to; if it
// leads up now it stays, and those that came down to it are looked at.
static void plant(struct rrepair *r, uint32_t s)
{
    const struct rlive *v = r->v;
    const uint32_t *pos = v->o.pos;
    uint32_t w = rideal_next(v, s, r->lid);
    if (w != ID_NONE && pos[w] > pos[s]) {
        look_above(r, s);
        return;
    }
    if (w != ID_NONE && w != r->t) {
        uint32_t x = rideal_next(v, w, r->lid);
        if (x != ID_NONE && pos[x] < pos[w])
            return;
    }
    if (w != r->t)
        mark(r->down_todo, v, s);
}

void rrepair_column(struct rrepair *r, uint16_t lid, uint32_t t, const uint32_t *seed, uint32_t num, bool all)
{
    const struct rlive *v = r->v;
    r->lid = lid;
    r->t = t;
    r->num_seen = 0;
    r->column++;
    if (!all) {
        for (uint32_t i = 0; i < num; i++) {
            if (seed[i] != t && v->g.comp[seed[i]] == v->g.comp[t])
                plant(r, seed[i]);
        }
        run_down(r);
        run_up(r);
    }
    if (all || lacks(r))
        all_anew(r);
    for (uint32_t i = 0; i < r->num_seen; i++) {
        uint8_t ideal = rideal(v, r->seen[i], lid);
        r->displaced += ideal != LFT_DROP && ideal != tables_row(r->out, r->seen[i])[lid];
    }
}
