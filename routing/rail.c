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
// picks among all legal ports; where just the destination's own cable is missing on a leaf, one near it in
// the list. All is decided by GUIDs, port numbers, names and ranks: not by how nodes are numbered.
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

// --- families: switches that lead up to nearly the same neighbours ---

struct family {
    uint32_t *member, num;
    uint32_t *peer, peers; // in order
    uint8_t *cables;       // of most members to that peer, at least
};

struct kin { // work space for families
    const struct rrail *r;
    uint32_t *count, *member, *peer, *touched;
    uint8_t *cables;
    bool *done;
};

static uint32_t ups(const struct rrail *r, uint32_t s)
{
    uint32_t n = 0;
    for (uint32_t i = r->g->goff[s]; i < r->g->goff[s + 1]; i++)
        n += is_up(r, s, r->g->g[i].peer);
    return n;
}

static uint32_t cables_to(const struct rgraph *g, uint32_t s, uint32_t peer)
{
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (g->g[i].peer == peer)
            return g->g[i].num_ports;
    }
    return 0;
}

static int place_of_cmp(const void *a, const void *b, void *arg)
{
    const struct rrail *r = arg;
    uint32_t x = r->place[*(const uint32_t *)a], y = r->place[*(const uint32_t *)b];
    return x < y ? -1 : x > y;
}

// Those that share more than half of their neighbours above with s, and are in no family yet.
static void find_family(struct kin *k, uint32_t s, struct family *f)
{
    const struct rrail *r = k->r;
    const struct rgraph *g = r->g;
    uint32_t own = ups(r, s), n = 0;
    *f = (struct family){.member = k->member, .peer = k->peer, .cables = k->cables};
    f->member[f->num++] = s;
    k->done[s] = true;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        uint32_t w = g->g[i].peer;
        for (uint32_t j = g->goff[w]; j < g->goff[w + 1] && is_up(r, s, w); j++) {
            uint32_t x = g->g[j].peer;
            if (k->done[x] || r->o->rank[x] != r->o->rank[s])
                continue;
            if (k->count[x]++ == 0)
                k->touched[n++] = x;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = k->touched[i], all = ups(r, x);
        if (k->count[x] * 2 > (all > own ? all : own)) {
            f->member[f->num++] = x;
            k->done[x] = true;
        }
        k->count[x] = 0;
    }
}

// For each neighbour of any member as many cables as at least half of the members have.
static void find_peers(struct kin *k, struct family *f)
{
    const struct rrail *r = k->r;
    const struct rgraph *g = r->g;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num; i++) {
        uint32_t s = f->member[i];
        for (uint32_t e = g->goff[s]; e < g->goff[s + 1]; e++) {
            uint32_t w = g->g[e].peer;
            if (is_up(r, s, w) && k->count[w]++ == 0)
                k->touched[n++] = w;
        }
    }
    qsort_r(k->touched, n, sizeof(*k->touched), place_of_cmp, (void *)r);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = k->touched[i], hist[256] = {0}, have = 0, c = 255;
        bool half = k->count[w] * 2 >= f->num;
        k->count[w] = 0;
        if (!half)
            continue;
        for (uint32_t m = 0; m < f->num; m++)
            hist[cables_to(g, f->member[m], w)]++;
        for (; c > 0; c--) {
            have += hist[c];
            if (have * 2 >= f->num)
                break;
        }
        f->peer[f->peers] = w;
        f->cables[f->peers++] = (uint8_t)c;
    }
}

static uint8_t port_to(const struct rgraph *g, uint32_t s, uint32_t peer, uint32_t round)
{
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (g->g[i].peer == peer)
            return round < g->g[i].num_ports ? g->ports[g->g[i].first_port + round] : 0;
    }
    return 0;
}

// Cables up from s as its family has them: first one to each neighbour, then the second ones, and so on, with
// gaps where this one has none; then what it has beyond.
static uint32_t list_up(struct rrail *r, uint32_t s, const struct family *f, uint32_t at)
{
    const struct rgraph *g = r->g;
    uint32_t most = 0;
    for (uint32_t k = 0; k < f->peers; k++)
        most = f->cables[k] > most ? f->cables[k] : most;
    r->uoff[s] = at;
    for (uint32_t round = 0; round < most; round++) {
        for (uint32_t k = 0; k < f->peers; k++) {
            if (round < f->cables[k])
                r->up[at++] =
                    (struct rup){f->peer[k], port_to(g, s, f->peer[k], round), (uint8_t)round, f->cables[k]};
        }
    }
    r->udeal[s] = at - r->uoff[s];
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        const struct rgroup *x = &g->g[i];
        uint32_t known = 0;
        if (!is_up(r, s, x->peer))
            continue;
        for (uint32_t k = 0; k < f->peers; k++)
            known = f->peer[k] == x->peer ? f->cables[k] : known;
        for (uint32_t round = known; round < x->num_ports; round++)
            r->up[at++] =
                (struct rup){x->peer, g->ports[x->first_port + round], (uint8_t)round, (uint8_t)x->num_ports};
    }
    r->uend[s] = at;
    return at;
}

static void find_groups(struct rrail *r, uint32_t s)
{
    const struct rgraph *g = r->g;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        uint32_t k = i - g->goff[s];
        for (uint32_t j = 0; j < g->g[i].num_ports; j++)
            r->group_of[(size_t)s * 256 + g->ports[g->g[i].first_port + j]] = (uint8_t)k;
        if (is_up(r, s, g->g[i].peer))
            r->up_mask[4 * s + k / 64] |= 1ULL << (k % 64);
    }
}

static void find_ups(struct rrail *r, struct arena *a)
{
    uint32_t n = r->n + 1, at = 0, ports = 0;
    struct kin k = {.r = r};
    k.count = ARENA_NEW_N(a, n, uint32_t);
    k.member = ARENA_NEW_N(a, n, uint32_t);
    k.peer = ARENA_NEW_N(a, n, uint32_t);
    k.touched = ARENA_NEW_N(a, n, uint32_t);
    k.cables = ARENA_NEW_N(a, n, uint8_t);
    k.done = ARENA_NEW_N(a, n, bool);
    for (uint32_t i = 0; i < r->g->num_groups; i++)
        ports += r->g->g[i].num_ports;
    // A family's list may be longer than a member's, but at least half of the members have each cable.
    r->up = ARENA_NEW_N(a, 3 * (size_t)ports + 1, struct rup);
    for (uint32_t i = 0; i < r->n; i++) {
        struct family f;
        if (k.done[r->sw_at[i]])
            continue;
        find_family(&k, r->sw_at[i], &f);
        find_peers(&k, &f);
        for (uint32_t m = 0; m < f.num; m++) {
            find_groups(r, f.member[m]);
            at = list_up(r, f.member[m], &f, at);
        }
    }
    r->num_up = at;
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
        uint8_t *row = r->via + (size_t)s * (r->n + 1);
        for (uint32_t k = r->uoff[s]; k < r->uend[s]; k++) {
            const struct rup *u = &r->up[k];
            uint8_t *own = &row[r->place[u->peer]], port = u->port ? u->port : VIA_SEVERAL;
            *own = *own ? VIA_SEVERAL : port;
            merge_row(row, r->via + (size_t)u->peer * (r->n + 1), r->above[u->peer], port);
        }
    }
}

static bool leads(const struct rrail *r, const struct rup *u, uint32_t place)
{
    return (r->place[u->peer] == place || r->via[(size_t)u->peer * (r->n + 1) + place]);
}

// --- chains ---

// Rank of the destination's own cable at level l among those that lead to level k; further on with every
// round, so that switches with more such cables use them all.
static uint32_t mirror_of(const struct rrail *r, uint32_t i, uint32_t k, uint32_t l)
{
    uint32_t s = r->sw_at[r->chain[l][i]], to = r->chain[k][i], before = 0, all = 0;
    uint32_t round = r->digit[l][i] / r->udeal[s];
    if (r->via[(size_t)s * (r->n + 1) + to] != VIA_SEVERAL)
        return round;
    for (uint32_t j = r->uoff[s]; j < r->uend[s]; j++) {
        bool there = leads(r, &r->up[j], to);
        before += there && j - r->uoff[s] < r->pick[l][i];
        all += there;
    }
    return before + all * round;
}

static void step(struct rrail *r, uint32_t i, uint32_t k, uint32_t pick)
{
    const struct fabric *f = r->g->f;
    uint32_t s = r->sw_at[r->chain[k][i]], q = r->digit[k][i];
    const struct rup *u = &r->up[r->uoff[s] + pick];
    const struct port *p = &f->port[fabric_switch(f, s)->first_port + u->port];
    r->pick[k][i] = (uint16_t)pick;
    r->back[k][i] = f->port[p->peer.i].num;
    r->chain[k + 1][i] = (uint16_t)r->place[u->peer];
    r->digit[k + 1][i] = q / r->udeal[s] * u->cables + u->round;
    r->taken[r->uoff[s] + pick] += r->g->d[i].is_host;
}

// The cable that fewest take, the next of several from there.
static uint32_t spare(const struct rrail *r, uint32_t s, uint32_t from)
{
    uint32_t n = r->uend[s] - r->uoff[s], best = from, best_taken = UINT32_MAX;
    for (uint32_t j = 1; j <= n; j++) {
        uint32_t x = (from + j) % n, at = r->uoff[s] + x;
        if (r->up[at].port && r->taken[at] < best_taken) {
            best = x;
            best_taken = r->taken[at];
        }
    }
    return best;
}

// Which cable up destination i takes at level k, or false. later: when all have chosen that find room on
// theirs. Others take one that has some left; where none has, their own, so that they stay apart from their
// likes. But at its leaf such a destination gets no chain: then it comes in now by one cable, now by another,
// and does not make one carry more than its share.
static bool choose(const struct rrail *r, uint32_t i, uint32_t k, bool later, uint32_t *ret_pick)
{
    uint32_t s = r->sw_at[r->chain[k][i]], pick = r->digit[k][i] % r->udeal[s], at = r->uoff[s];
    bool there = r->up[at + pick].port != 0;
    *ret_pick = pick;
    if (!later)
        return there && (!r->g->d[i].is_host || r->taken[at + pick] < r->quota[s]);
    uint32_t other = spare(r, s, pick);
    if (!there || r->taken[at + other] < r->quota[s])
        *ret_pick = other;
    return r->up[at + *ret_pick].port && (k > 0 || r->taken[at + *ret_pick] < r->quota[s]);
}

static void climb(struct rrail *r, const uint32_t *order, uint32_t k, bool few, bool later)
{
    const struct rgraph *g = r->g;
    for (uint32_t x = 0; x < r->n; x++) {
        for (uint32_t i = g->doff[order[x]]; i < g->doff[order[x] + 1]; i++) {
            uint32_t pick;
            if (g->d[i].few != few || r->chain[k][i] == r->n || r->chain[k + 1][i] != r->n ||
                r->udeal[r->sw_at[r->chain[k][i]]] == 0)
                continue;
            if (choose(r, i, k, later, &pick))
                step(r, i, k, pick);
        }
    }
}

// A cable's share of the hosts' chains that pass a switch.
static void find_quotas(struct rrail *r, uint32_t k)
{
    memset(r->quota, 0, r->n * sizeof(*r->quota));
    for (uint32_t i = 0; i < r->g->doff[r->n]; i++) {
        if (r->chain[k][i] != r->n && r->g->d[i].is_host)
            r->quota[r->sw_at[r->chain[k][i]]]++;
    }
    for (uint32_t s = 0; s < r->n; s++) {
        uint32_t cables = 0;
        for (uint32_t j = r->uoff[s]; j < r->uend[s]; j++)
            cables += r->up[j].port != 0;
        r->quota[s] = cables > 0 && r->quota[s] > cables ? r->quota[s] / cables : 1;
    }
}

// Digits where there is no chain: those that one by the numbers alone would have. At its own level a
// destination that a switch has no cable for is to go now here, now there; above, all of a leaf that come by
// another way than their own are to stay together.
static void extend(struct rrail *r, uint32_t i)
{
    uint32_t s = r->sw_at[r->chain[0][i]], q = r->digit[0][i], deal = r->udeal[s];
    r->spread[0][i] = (uint16_t)(deal ? q / deal + q % deal : q);
    for (uint32_t k = 1; k <= r->levels; k++) {
        deal = r->udeal[s];
        if (r->chain[k][i] != r->n) {
            q = r->digit[k][i];
            s = r->sw_at[r->chain[k][i]];
        } else if (deal) {
            const struct rup *u = &r->up[r->uoff[s] + q % deal];
            q = q / deal * u->cables + u->round;
            s = u->peer;
        }
        r->digit[k][i] = q;
        r->spread[k][i] = (uint16_t)q;
    }
}

static void find_chains(struct rrail *r, const uint32_t *order)
{
    const struct rgraph *g = r->g;
    for (uint32_t s = 0; s < r->n; s++) {
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            r->chain[0][i] = (uint16_t)r->place[s];
            r->digit[0][i] = g->d[i].seq;
        }
    }
    for (uint32_t k = 0; k < r->levels; k++) {
        find_quotas(r, k);
        for (unsigned pass = 0; pass < 4; pass++) // the many first: what is few takes what they leave
            climb(r, order, k, pass >= 2, pass % 2 == 1);
    }
    for (uint32_t i = 0; i < g->doff[r->n]; i++) {
        extend(r, i);
        for (uint32_t k = 1; k <= r->levels && r->chain[k][i] != r->n; k++) {
            for (uint32_t l = 0; l < k; l++)
                r->mirror[k][l][i] = mirror_of(r, i, k, l);
        }
    }
}

static void alloc_chains(struct rrail *r, struct arena *a)
{
    uint32_t dests = r->g->doff[r->n] + 1;
    for (uint32_t k = 0; k <= r->levels; k++) {
        r->chain[k] = ARENA_NEW_N(a, dests, uint16_t);
        r->digit[k] = ARENA_NEW_N(a, dests, uint32_t);
        r->spread[k] = ARENA_NEW_N(a, dests, uint16_t);
        for (uint32_t i = 0; i < dests; i++)
            r->chain[k][i] = (uint16_t)r->n;
        r->back[k] = ARENA_NEW_N(a, dests, uint8_t);
        r->pick[k] = ARENA_NEW_N(a, dests, uint16_t);
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

struct rrail *rrail_new(const struct rgraph *g, const struct rorder *o, const uint32_t *order,
                        struct arena *a)
{
    struct rrail *r = ARENA_NEW(a, struct rrail);
    *r = (struct rrail){.g = g, .o = o, .n = g->n, .levels = count_levels(g, o)};
    for (uint32_t i = 0; i < g->doff[g->n]; i++)
        r->several |= g->d[i].lid_offset > 0;
    if (r->n > RAIL_SWITCHES_MAX) {
        r->spread[0] = ARENA_NEW_N(a, g->doff[r->n] + 1, uint16_t);
        for (uint32_t i = 0; i < g->doff[r->n]; i++)
            r->spread[0][i] = (uint16_t)g->d[i].seq;
        return r;
    }
    r->place = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->sw_at = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->above = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->uoff = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->uend = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->udeal = ARENA_NEW_N(a, r->n + 1, uint32_t);
    r->up_mask = ARENA_NEW_N(a, 4 * r->n + 4, uint64_t);
    r->group_of = ARENA_NEW_N(a, (size_t)r->n * 256 + 1, uint8_t);
    r->via = ARENA_NEW_N(a, (size_t)r->n * (r->n + 1) + 1, uint8_t);
    find_places(r, a);
    find_ups(r, a);
    find_vias(r);
    alloc_chains(r, a);
    r->taken = ARENA_NEW_N(a, r->num_up + 1, uint32_t);
    r->quota = ARENA_NEW_N(a, r->n + 1, uint32_t);
    find_chains(r, order);
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
    for (uint32_t k = r->uoff[s]; k < r->uend[s]; k++) {
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
    uint8_t port = list[1 + mirror % list[0]];
    return port && legal(w->r, s, port, mask) ? port : 0;
}

struct put { // one switch, one switch's destinations
    uint32_t s, from, to;
    uint32_t level, own; // of the chain: to go to, and of s
    const struct rways *ways;
    const uint16_t *lid;
    uint8_t *row;
    const uint16_t *spread;
    uint32_t turn, inverse; // of s, for by_digit()
};

// Without a chain to follow. Both terms are below 2^16, so the product gives the exact remainder.
static inline uint8_t by_digit(const struct put *p, uint32_t i)
{
    uint32_t q = (uint16_t)(p->spread[i] + p->turn), num = p->ways->num;
    return p->ways->port[q - (uint32_t)((uint64_t)q * p->inverse >> 32) * num];
}

static void put_digits(const struct put *p)
{
    for (uint32_t i = p->from; i < p->to; i++)
        p->row[p->lid[i]] = by_digit(p, i);
}

// Where all ways up are legal and lead there alone: whether it was so.
static bool put_up_plain(const struct put *p, const uint8_t *via, const uint16_t *chain)
{
    bool plain = true;
    for (uint32_t i = p->from; i < p->to; i++) {
        uint8_t port = via[chain[i]];
        plain &= (uint8_t)(port - 1) < VIA_SEVERAL - 1;
        p->row[p->lid[i]] = port;
    }
    return plain;
}

// At a switch that lacks the cable of destination i: another one, near it in the list, on this side or on
// that, within a quarter of the list, so that these share the load. What a leaf sends at once goes mostly to
// neighbours in number. So it is one of them that meets it going up, and mostly the same one meets it where
// it comes down on a cable that is another's; farther off there would be two. Destinations of two leaves in a
// row give way alike, since that is how far what is sent at once reaches: they do not meet each other.
static uint8_t aside(const struct rrail *r, const struct put *p, uint32_t i)
{
    const struct rup *up = r->up + r->uoff[p->s];
    uint32_t deal = r->udeal[p->s], own = r->pick[0][i], step;
    if (r->chain[1][i] == r->n || own >= deal || up[own].port)
        return 0;
    step = (r->digit[0][i] / deal / 2 + p->turn) % (deal > 1 ? deal / 2 : 1);
    for (uint32_t k = step; k < step + deal; k++) {
        uint32_t off = k / 2 % deal + 1, at = (k % 2 ? own + off : own + deal - off) % deal;
        if (up[at].port && legal(r, p->s, up[at].port, p->ways->mask))
            return up[at].port;
    }
    return 0;
}

static void put_up(struct rrail_at *w, const struct put *p)
{
    const struct rrail *r = w->r;
    const uint8_t *via = r->via + (size_t)p->s * (r->n + 1);
    const uint16_t *chain = r->chain[p->level];
    const uint32_t *mirror = p->own < p->level ? r->mirror[p->level][p->own] : r->digit[p->own];
    const uint64_t *up = r->up_mask + 4 * p->s, *mask = p->ways->mask;
    bool all = true;
    for (uint32_t k = 0; k < 4; k++)
        all &= (up[k] & ~mask[k]) == 0;
    if (all && p->own == 0 && put_up_plain(p, via, chain))
        return;
    for (uint32_t i = p->from; i < p->to; i++) {
        uint8_t port = via[chain[i]];
        if (port == VIA_SEVERAL)
            port = pick_up(w, p->s, chain[i], mirror[i], mask);
        else if (port && !all && !legal(r, p->s, port, mask))
            port = 0;
        if (port == 0 && p->own == 0)
            port = aside(r, p, i);
        p->row[p->lid[i]] = port ? port : by_digit(p, i);
    }
}

static uint8_t pick_down(const struct rrail *r, const struct put *p, uint32_t i)
{
    const struct rgraph *g = r->g;
    uint32_t s = p->s, k = p->level;
    if (r->chain[k + 1][i] == r->place[s])
        return legal(r, s, r->back[k][i], p->ways->mask) ? r->back[k][i] : 0;
    for (uint32_t b = 0; b < 4; b++) {
        for (uint64_t m = p->ways->mask[b]; m; m &= m - 1) {
            const struct rgroup *x = &g->g[g->goff[s] + b * 64 + (uint32_t)__builtin_ctzll(m)];
            if (r->place[x->peer] == r->chain[k][i])
                return g->ports[x->first_port + (r->digit[k][i] + p->turn) % x->num_ports];
        }
    }
    return 0;
}

// The group that all ways are in; NULL when there are several.
static const struct rgroup *only_group(const struct rrail *r, const struct put *p)
{
    const struct rgroup *only = NULL;
    for (uint32_t b = 0; b < 4; b++) {
        uint64_t m = p->ways->mask[b];
        if (m == 0)
            continue;
        if (only || (m & (m - 1)))
            return NULL;
        only = &r->g->g[r->g->goff[p->s] + b * 64 + (uint32_t)__builtin_ctzll(m)];
    }
    return only;
}

static void put_down(const struct rrail *r, const struct put *p)
{
    const struct rgroup *only = only_group(r, p);
    const uint16_t *chain = r->chain[p->level];
    uint32_t place = only ? r->place[only->peer] : 0;
    for (uint32_t i = p->from; i < p->to; i++) {
        uint8_t port = only && chain[i] != place ? 0 : pick_down(r, p, i);
        p->row[p->lid[i]] = port ? port : by_digit(p, i);
    }
}

// LIDs of one end port that go up by one cable, though there is another that none of them takes: the later
// one moves. Where all is there they are apart by their numbers; elsewhere digits and chains may coincide.
static void part_siblings(const struct rrail *r, const struct put *p)
{
    const struct rdest *d = r->g->d;
    bool used[256];
    for (uint32_t i = p->from; i < p->to; i++) {
        if (d[i].lid_offset == 0 || i == p->from)
            memset(used, 0, sizeof(used));
        uint8_t *port = &p->row[p->lid[i]];
        for (uint32_t k = 0; k < p->ways->num && used[*port]; k++) {
            uint8_t other = p->ways->port[(i + k) % p->ways->num];
            *port = used[other] ? *port : other;
        }
        used[*port] = true;
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
    p.spread = r->spread[p.own];
    p.turn = r->via && p.own == 0 ? r->place[s] : 0;
    p.inverse = ways->inverse;
    if (!tree) {
        put_digits(&p);
    } else if (turn > rise) {
        p.level = (uint32_t)turn;
        put_up(w, &p);
        if (r->several && p.own == 0)
            part_siblings(r, &p);
    } else {
        p.level = cost - 1;
        put_down(r, &p);
    }
}
