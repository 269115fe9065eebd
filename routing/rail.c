// SPDX-License-Identifier: Apache-2.0
// The engine `rail`: which of the legal ports a destination gets, on trees. Costs, candidates and the order
// that makes paths free of credit loops are updn's (order.c, rows.c, column.c); only the choice differs.
//
// A destination has a way of its own up from where it hangs: at its switch its sequence number
// (rail_number.c) picks one cable up, what the number has left picks one at the next switch, and so on
// (Dmodc's digits, read from the destination's end). The switches on it are its chain. Every other switch
// goes up towards that switch of the chain where the shortest path turns, and what comes down takes the
// chain. So each cable carries down what was dealt out to it, and no more, whatever is missing elsewhere: a
// switch that has fewer cables than others does not shift the numbers of all that it leads to.
//
// Where several cables of a switch lead up to where it must turn, it takes the one of the same rank as the
// destination's own among those that lead there from its end: the path up mirrors the path down, so that what
// does not meet on the way down does not meet on the way up. On a complete tree all this is Dmodc's closed
// form.
//
// Steps "up" are to a switch of the next higher rank. Where that is not a legal candidate (column.c's rule),
// or no chain leads there (roots of the order, ends above the leaves, damaged trees), the number's digit
// picks among all legal ports. All is decided by GUIDs, port numbers, names and ranks: not by how nodes are
// numbered.
//
// Memory: bytes for every pair of switches, and about 20 bytes a destination and level.
#include "routing/rail_priv.h"

#include <stdlib.h>
#include <string.h>

// --- switches in order, ways up ---

struct place_ctx {
    const struct rrail *r;
    const uint32_t *key; // per switch: the first place above it
};

static int place_cmp(const void *a, const void *b, void *arg)
{
    const struct place_ctx *c = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint32_t *rank = c->r->o->rank;
    if (rank[x] != rank[y])
        return rank[x] > rank[y] ? -1 : 1;
    if (c->key && c->key[x] != c->key[y])
        return c->key[x] < c->key[y] ? -1 : 1;
    return c->r->g->guid[x] < c->r->g->guid[y] ? -1 : c->r->g->guid[x] > c->r->g->guid[y];
}

static bool is_up(const struct rrail *r, uint32_t s, uint32_t w)
{
    return r->o->rank[w] == r->o->rank[s] + 1;
}

// Higher ranks first; within a rank those side by side that lead to the same switches (a plane), so that the
// same cable of switches alike leads into the same plane.
static void find_places(struct rrail *r, struct arena *a)
{
    const struct rgraph *g = r->g;
    uint32_t *key = ARENA_NEW_N(a, r->n + 1, uint32_t);
    struct place_ctx c = {r, NULL};
    for (uint32_t s = 0; s < r->n; s++)
        r->sw_at[s] = s;
    qsort_r(r->sw_at, r->n, sizeof(*r->sw_at), place_cmp, &c);
    c.key = key;
    for (uint32_t from = 0, to; from < r->n; from = to) {
        uint32_t rank = r->o->rank[r->sw_at[from]];
        for (to = from; to < r->n && r->o->rank[r->sw_at[to]] == rank; to++) {
            uint32_t s = r->sw_at[to];
            key[s] = ID_NONE;
            for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
                uint32_t w = g->g[i].peer;
                if (is_up(r, s, w) && r->place[w] < key[s])
                    key[s] = r->place[w];
            }
        }
        qsort_r(r->sw_at + from, to - from, sizeof(*r->sw_at), place_cmp, &c);
        for (uint32_t i = from; i < to; i++) {
            r->place[r->sw_at[i]] = i;
            r->above[r->sw_at[i]] = from;
        }
    }
}

static int group_cmp(const void *a, const void *b, void *arg)
{
    const struct rrail *r = arg;
    uint32_t x = r->place[r->g->g[*(const uint32_t *)a].peer],
             y = r->place[r->g->g[*(const uint32_t *)b].peer];
    return x < y ? -1 : x > y;
}

// Cables up from s: first one to each neighbour, then the second ones, and so on.
static uint32_t list_up(struct rrail *r, uint32_t s, uint32_t at)
{
    const struct rgraph *g = r->g;
    uint32_t group[256], n = 0, most = 0;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        for (uint32_t k = 0; k < g->g[i].num_ports; k++)
            r->group_of[(size_t)s * 256 + g->ports[g->g[i].first_port + k]] = (uint8_t)(i - g->goff[s]);
        if (!is_up(r, s, g->g[i].peer))
            continue;
        group[n++] = i;
        most = g->g[i].num_ports > most ? g->g[i].num_ports : most;
        r->up_mask[4 * s + (i - g->goff[s]) / 64] |= 1ULL << ((i - g->goff[s]) % 64);
    }
    qsort_r(group, n, sizeof(*group), group_cmp, r);
    for (uint32_t round = 0; round < most; round++) {
        for (uint32_t k = 0; k < n; k++) {
            const struct rgroup *x = &g->g[group[k]];
            if (round < x->num_ports)
                r->up[at++] = (struct rup){x->peer, g->ports[x->first_port + round], (uint8_t)round,
                                           (uint8_t)x->num_ports};
        }
    }
    return at;
}

static void merge_row(uint8_t *restrict to, const uint8_t *restrict from, uint32_t n, uint8_t port)
{
    for (uint32_t x = 0; x < n; x++) {
        uint8_t v = to[x] ? VIA_SEVERAL : port;
        to[x] = from[x] ? v : to[x];
    }
}

// From the top down: what each switch reaches by going up only.
static void find_vias(struct rrail *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t s = r->sw_at[i];
        uint8_t *row = r->via + (size_t)s * r->n;
        for (uint32_t k = r->uoff[s]; k < r->uoff[s + 1]; k++) {
            const struct rup *u = &r->up[k];
            uint8_t *own = &row[r->place[u->peer]];
            *own = *own ? VIA_SEVERAL : u->port;
            merge_row(row, r->via + (size_t)u->peer * r->n, r->above[u->peer], u->port);
        }
    }
}

static bool leads(const struct rrail *r, const struct rup *u, uint32_t place)
{
    return r->place[u->peer] == place || r->via[(size_t)u->peer * r->n + place];
}

// --- chains ---

// Rank of the destination's own cable at level l among those that lead to level k; further on with every
// round, so that switches with more such cables use them all.
static uint32_t mirror_of(const struct rrail *r, uint32_t i, uint32_t k, uint32_t l)
{
    uint32_t s = r->sw_at[r->chain[l][i]], to = r->chain[k][i], num = r->uoff[s + 1] - r->uoff[s];
    const struct rup *up = r->up + r->uoff[s];
    uint32_t own = r->digit[l][i] % num, before = 0, all = 0;
    if (r->via[(size_t)s * r->n + to] != VIA_SEVERAL)
        return r->digit[l][i] / num;
    for (uint32_t j = 0; j < num; j++) {
        bool there = leads(r, &up[j], to);
        before += there && j < own;
        all += there;
    }
    return before + all * (r->digit[l][i] / num);
}

static void find_chain(struct rrail *r, uint32_t s, uint32_t i)
{
    const struct fabric *f = r->g->f;
    uint32_t q = r->g->d[i].seq, k = 0;
    for (;; k++) {
        uint32_t num = r->uoff[s + 1] - r->uoff[s];
        r->chain[k][i] = (uint16_t)r->place[s];
        r->digit[k][i] = q;
        if (num == 0 || k == r->levels)
            break;
        const struct rup *u = &r->up[r->uoff[s] + q % num];
        const struct port *p = &f->port[fabric_switch(f, s)->first_port + u->port];
        r->back[k][i] = f->port[p->peer.i].num;
        q = q / num * u->cables + u->round;
        s = u->peer;
    }
    for (uint32_t j = k + 1; j <= r->levels; j++) {
        r->chain[j][i] = CHAIN_NONE;
        r->digit[j][i] = q;
    }
    for (uint32_t j = 1; j <= k; j++) {
        for (uint32_t l = 0; l < j; l++)
            r->mirror[j][l][i] = mirror_of(r, i, j, l);
    }
}

static void alloc_chains(struct rrail *r, struct arena *a)
{
    uint32_t dests = r->g->doff[r->n] + 1;
    for (uint32_t k = 0; k <= r->levels; k++) {
        r->chain[k] = ARENA_NEW_N(a, dests, uint16_t);
        r->digit[k] = ARENA_NEW_N(a, dests, uint32_t);
        r->back[k] = ARENA_NEW_N(a, dests, uint8_t);
        for (uint32_t l = 0; l < k; l++)
            r->mirror[k][l] = ARENA_NEW_N(a, dests, uint32_t);
    }
}

static uint32_t count_levels(const struct rgraph *g, const struct rorder *o)
{
    uint32_t low = ID_NONE, high = 0;
    for (uint32_t s = 0; s < g->n; s++) {
        if (!o->tiered[g->comp[s]])
            continue;
        low = o->rank[s] < low ? o->rank[s] : low;
        high = o->rank[s] > high ? o->rank[s] : high;
    }
    uint32_t n = low == ID_NONE ? 0 : high - low;
    return n < RAIL_LEVELS ? n : RAIL_LEVELS;
}

struct rrail *rrail_new(const struct rgraph *g, const struct rorder *o, struct arena *a)
{
    struct rrail *r = ARENA_NEW(a, struct rrail);
    *r = (struct rrail){.g = g, .o = o, .n = g->n, .levels = count_levels(g, o)};
    if (r->n > RAIL_SWITCHES_MAX)
        return r;
    uint32_t ports = 0;
    for (uint32_t i = 0; i < g->num_groups; i++)
        ports += g->g[i].num_ports;
    r->place = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->sw_at = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->above = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->uoff = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->up = ARENA_NEW_N(a, ports + 1, struct rup);
    r->up_mask = ARENA_NEW_N(a, 4 * r->n + 4, uint64_t);
    r->group_of = ARENA_NEW_N(a, (size_t)r->n * 256 + 1, uint8_t);
    r->via = ARENA_NEW_N(a, (size_t)r->n * r->n + 1, uint8_t);
    find_places(r, a);
    for (uint32_t s = 0; s < r->n; s++)
        r->uoff[s + 1] = list_up(r, s, r->uoff[s]);
    find_vias(r);
    alloc_chains(r, a);
    for (uint32_t s = 0; s < r->n; s++) {
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++)
            find_chain(r, s, i);
    }
    return r;
}

// --- entries ---

void rrail_at_init(struct rrail_at *w, const struct rrail *r, struct arena *a)
{
    *w = (struct rrail_at){.r = r, .s = ID_NONE};
    if (!r->via)
        return;
    w->list = ARENA_NEW_N(a, r->n + 1, uint32_t);
    w->list_of = ARENA_NEW_N(a, r->n + 1, uint32_t);
    w->pool = ARENA_NEW_N(a, (size_t)(r->n + 1) * 256, uint8_t);
}

// Cables of s that lead up to a place: their number, then they.
static const uint8_t *list_to(struct rrail_at *w, uint32_t s, uint32_t place)
{
    const struct rrail *r = w->r;
    if (w->s != s) {
        w->s = s;
        w->stamp++;
        w->used = 0;
    }
    if (w->list_of[place] == w->stamp)
        return w->pool + w->list[place];
    uint8_t *to = w->pool + w->used;
    to[0] = 0;
    for (uint32_t k = r->uoff[s]; k < r->uoff[s + 1]; k++) {
        if (leads(r, &r->up[k], place))
            to[++to[0]] = r->up[k].port;
    }
    w->list_of[place] = w->stamp;
    w->list[place] = w->used;
    w->used += 1u + to[0];
    return to;
}

static bool legal(const struct rrail *r, uint32_t s, uint8_t port, const uint64_t mask[4])
{
    uint8_t group = r->group_of[(size_t)s * 256 + port];
    return mask[group / 64] >> (group % 64) & 1;
}

static uint8_t pick_up(struct rrail_at *w, uint32_t s, uint32_t place, uint32_t mirror,
                       const uint64_t mask[4])
{
    const uint8_t *list = list_to(w, s, place);
    for (uint32_t j = 0; j < list[0]; j++) {
        uint8_t port = list[1 + (mirror + j) % list[0]];
        if (legal(w->r, s, port, mask))
            return port;
    }
    return 0;
}

struct put {                          // one switch, one switch's destinations
    uint32_t s, from, to, level, own; // level of the chain to go to; own: of s, for digits
    const struct rways *ways;
    const uint16_t *lid;
    uint8_t *row;
};

// Without a chain to follow.
static uint8_t by_digit(const struct rrail *r, const struct put *p, uint32_t i)
{
    uint32_t q = r->via ? r->digit[p->own][i] : r->g->d[i].seq;
    return p->ways->port[q % p->ways->num];
}

static void put_digits(const struct rrail *r, const struct put *p)
{
    for (uint32_t i = p->from; i < p->to; i++)
        p->row[r->g->d[i].lid] = by_digit(r, p, i);
}

static void put_up(struct rrail_at *w, const struct put *p)
{
    const struct rrail *r = w->r;
    const uint8_t *via = r->via + (size_t)p->s * r->n;
    const uint16_t *chain = r->chain[p->level];
    const uint32_t *mirror = p->own < p->level ? r->mirror[p->level][p->own] : r->digit[p->own];
    const uint64_t *up = r->up_mask + 4 * p->s, *mask = p->ways->mask;
    bool all = true;
    for (uint32_t k = 0; k < 4; k++)
        all &= (up[k] & ~mask[k]) == 0;
    for (uint32_t i = p->from; i < p->to; i++) {
        uint8_t port = chain[i] == CHAIN_NONE ? 0 : via[chain[i]];
        if (port == VIA_SEVERAL)
            port = pick_up(w, p->s, chain[i], mirror[i], mask);
        else if (port && !all && !legal(r, p->s, port, mask))
            port = 0;
        p->row[p->lid[i]] = port ? port : by_digit(r, p, i);
    }
}

static uint8_t pick_down(const struct rrail *r, const struct put *p, uint32_t i)
{
    const struct rgraph *g = r->g;
    uint32_t s = p->s, k = p->level;
    if (r->chain[k][i] == CHAIN_NONE)
        return 0;
    if (r->chain[k + 1][i] == r->place[s])
        return legal(r, s, r->back[k][i], p->ways->mask) ? r->back[k][i] : 0;
    for (uint32_t x = g->goff[s]; x < g->goff[s + 1]; x++) {
        if (r->place[g->g[x].peer] != r->chain[k][i])
            continue;
        uint8_t port = g->ports[g->g[x].first_port + r->digit[k][i] % g->g[x].num_ports];
        return legal(r, s, port, p->ways->mask) ? port : 0;
    }
    return 0;
}

static void put_down(const struct rrail *r, const struct put *p)
{
    for (uint32_t i = p->from; i < p->to; i++) {
        uint8_t port = pick_down(r, p, i);
        p->row[p->lid[i]] = port ? port : by_digit(r, p, i);
    }
}

void rrail_put(struct rrail_at *w, uint32_t s, uint32_t t, uint32_t cost, const struct rways *ways,
               const uint16_t *lid, uint8_t *row)
{
    const struct rrail *r = w->r;
    struct put p = {
        .s = s, .from = r->g->doff[t], .to = r->g->doff[t + 1], .ways = ways, .lid = lid, .row = row};
    if (ways->num == 1) {
        for (uint32_t i = p.from; i < p.to; i++)
            row[lid[i]] = ways->port[0];
        return;
    }
    // A path of so many steps from rank to rank turns that far up the chain.
    int64_t rise = (int64_t)r->o->rank[s] - r->o->rank[t], turn = ((int64_t)cost + rise) / 2;
    bool tree = r->via && cost < RCOST_FOOT && ((int64_t)cost + rise) % 2 == 0 && turn >= 0 &&
                turn <= r->levels && rise <= r->levels;
    p.own = rise > 0 && tree ? (uint32_t)rise : 0;
    if (!tree) {
        put_digits(r, &p);
    } else if (turn > rise) {
        p.level = (uint32_t)turn;
        put_up(w, &p);
    } else {
        p.level = cost - 1;
        put_down(r, &p);
    }
}
