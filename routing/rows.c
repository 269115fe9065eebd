// SPDX-License-Identifier: Apache-2.0
// The fast way to fill tables on trees. Costs are bytes, in rows [switch][column] where a column is a
// destination switch, so that all steps are additions, minima and comparisons of whole rows; work is cut into
// chunks of columns that fit a cache and know nothing of each other.
//
// Per chunk: costs of going down only, from below in the order; costs of any legal path, from above; then per
// switch the candidate sets as bits, the dividers, and the entries. A switch that can go down, does. Where
// that is not also shortest (fabrics that are no trees), or where a cost does not fit a byte, the column is
// left to column.c, whose rule is the same otherwise.
#include "routing/route_priv.h"

#include <string.h>

#define CHUNK 128    // columns
#define NO_PATH 255  // as a cost
#define COST_MAX 189 // greater ones could overflow with the next step
#define PLANES 32    // of 8 candidate groups each

struct chunk {
    const struct rgraph *g;
    const struct rorder *o;
    const struct rrows *r;
    uint32_t first, num;  // columns
    uint8_t *down, *cost; // [switch * CHUNK + column]
    int16_t *divider;     // the same
    uint16_t *width;      // [cost * CHUNK + column]: switches that go down at that cost
    uint8_t odd[CHUNK];   // column is not for this way
    struct rrail_at at;   // under rail
    uint8_t plane[PLANES][CHUNK];
};

// One way to leave a switch: its ports in the order in which destinations take them.
struct ports {
    uint64_t mask[4]; // the candidate groups it was made from
    bool plain;       // see fill.c
    uint32_t num;
    uint8_t port[256];
};

static uint8_t *row_of(uint8_t *rows, uint32_t s)
{
    return rows + (size_t)s * CHUNK;
}

static uint32_t column_of(const struct chunk *c, uint32_t s)
{
    uint32_t k = c->r->column[s] - c->first; // wraps below
    return k < c->num ? k : ID_NONE;
}

static void row_min(uint8_t *restrict to, const uint8_t *restrict from, uint8_t step)
{
    uint8_t limit = (uint8_t)(NO_PATH - step);
    for (uint32_t j = 0; j < CHUNK; j++) {
        uint8_t x = (uint8_t)((from[j] < limit ? from[j] : limit) + step);
        to[j] = x < to[j] ? x : to[j];
    }
}

static uint8_t step_of(const struct chunk *c, uint32_t s)
{
    return c->o->foot[s] ? 1 + RCOST_FOOT : 1;
}

// Lowers the row of s by what its neighbour w offers; w itself is one step away, foot or not.
static void relax(const struct chunk *c, uint8_t *rows, uint32_t s, uint32_t w)
{
    uint32_t own = column_of(c, w);
    row_min(row_of(rows, s), row_of(rows, w), step_of(c, w));
    if (own != ID_NONE)
        row_of(rows, s)[own] = 1;
}

static void find_costs(struct chunk *c)
{
    const struct rgraph *g = c->g;
    const uint32_t *pos = c->o->pos;
    memset(c->down, NO_PATH, (size_t)g->n * CHUNK);
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t s = c->o->by_pos[k], own = column_of(c, s);
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            if (pos[g->g[i].peer] < k)
                relax(c, c->down, s, g->g[i].peer);
        }
        if (own != ID_NONE)
            row_of(c->down, s)[own] = 0;
    }
    memcpy(c->cost, c->down, (size_t)g->n * CHUNK);
    for (uint32_t k = g->n; k-- > 0;) {
        uint32_t s = c->o->by_pos[k], own = column_of(c, s);
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            if (pos[g->g[i].peer] > k)
                relax(c, c->cost, s, g->g[i].peer);
        }
        if (own != ID_NONE)
            row_of(c->cost, s)[own] = 0;
    }
}

static void find_odd(struct chunk *c)
{
    memset(c->odd, 0, sizeof(c->odd));
    memset(c->width, 0, (size_t)(COST_MAX + 1) * CHUNK * sizeof(*c->width));
    for (uint32_t s = 0; s < c->g->n; s++) {
        const uint8_t *down = row_of(c->down, s), *cost = row_of(c->cost, s);
        for (uint32_t j = 0; j < CHUNK; j++) {
            c->odd[j] |= (down[j] != NO_PATH) & (cost[j] < down[j]);
            c->odd[j] |= (cost[j] != NO_PATH) & (cost[j] > COST_MAX);
        }
        for (uint32_t j = 0; j < c->num; j++) {
            if (down[j] <= COST_MAX)
                c->width[(size_t)down[j] * CHUNK + j]++;
        }
    }
}

// Sets `bit` in `plane` where s, at cost `from`, is one step behind its neighbour at cost `to`.
static void mark_step(uint8_t *restrict plane, const uint8_t *restrict from, const uint8_t *restrict to,
                      uint8_t step, uint8_t bit)
{
    for (uint32_t j = 0; j < CHUNK; j++)
        plane[j] |= (((uint8_t)(to[j] + step) == from[j]) & (to[j] <= COST_MAX)) ? bit : 0;
}

// Candidate groups of s for all columns as bits. Going down, the costs compared are those of going down only,
// which are NO_PATH in the columns where s goes up; upwards the other way round.
static void find_candidates(struct chunk *c, uint32_t s)
{
    const struct rgraph *g = c->g;
    uint32_t groups = g->goff[s + 1] - g->goff[s];
    uint8_t down[CHUNK], up[CHUNK];
    const uint8_t *d = row_of(c->down, s), *all = row_of(c->cost, s);
    // 0 is nobody's cost plus a step, so it never matches.
    for (uint32_t j = 0; j < CHUNK; j++) {
        down[j] = d[j] == NO_PATH ? 0 : d[j];
        up[j] = d[j] != NO_PATH || all[j] == NO_PATH ? 0 : all[j];
    }
    memset(c->plane, 0, ((groups + 7) / 8) * sizeof(c->plane[0]));
    for (uint32_t k = 0; k < groups; k++) {
        uint32_t w = g->g[g->goff[s] + k].peer, own = column_of(c, w);
        bool below = c->o->pos[w] < c->o->pos[s];
        uint8_t bit = (uint8_t)(1u << (k & 7)), *plane = c->plane[k / 8];
        const uint8_t *from = below ? down : up;
        mark_step(plane, from, row_of(below ? c->down : c->cost, w), step_of(c, w), bit);
        if (own != ID_NONE)
            plane[own] = (uint8_t)((plane[own] & ~bit) | (from[own] == 1 ? bit : 0));
    }
}

// The choices made at s are handed on to the candidates above it; see fill.c.
static void hand_on_row(struct chunk *c, uint32_t s)
{
    const struct rgraph *g = c->g;
    uint32_t groups = g->goff[s + 1] - g->goff[s];
    uint8_t count[CHUNK] = {0};
    int16_t total[CHUNK], *mine = c->divider + (size_t)s * CHUNK;
    const uint8_t *down = row_of(c->down, s);
    for (uint32_t k = 0; k < groups; k++) {
        const uint8_t *plane = c->plane[k / 8];
        for (uint32_t j = 0; j < CHUNK; j++)
            count[j] += plane[j] >> (k & 7) & 1;
    }
    for (uint32_t j = 0; j < CHUNK; j++) {
        int32_t d = mine[j] * count[j];
        total[j] = (int16_t)(down[j] != NO_PATH || d > RDIVIDER_MAX ? 0 : d);
    }
    for (uint32_t k = 0; k < groups; k++) {
        uint32_t w = g->g[g->goff[s] + k].peer;
        if (c->o->pos[w] < c->o->pos[s])
            continue;
        const uint8_t *plane = c->plane[k / 8];
        int16_t *to = c->divider + (size_t)w * CHUNK;
        uint8_t bit = (uint8_t)(1u << (k & 7));
        for (uint32_t j = 0; j < CHUNK; j++) {
            int16_t d = plane[j] & bit ? total[j] : 0;
            to[j] = d > to[j] ? d : to[j];
        }
    }
}

static void make_ports(const struct rgraph *g, const uint32_t *rank, uint32_t s, const uint64_t mask[4],
                       struct ports *p)
{
    struct rchoice ch;
    rchoice_init(&ch);
    for (uint32_t w = 0; w < 4; w++) {
        for (uint64_t m = mask[w]; m; m &= m - 1)
            rchoice_add(&ch, g, g->goff[s] + w * 64 + (uint32_t)__builtin_ctzll(m));
    }
    memcpy(p->mask, mask, sizeof(p->mask));
    p->plain = ch.num_groups == 1 || rank[g->g[ch.group[0]].peer] > rank[s];
    p->num = ch.num_ports;
    rchoice_ports(&ch, g, p->port);
}

// Entries of one switch for the destinations of another, going up; digits() of fill.c. Sequence numbers
// mostly rise by one, so there is hardly a division.
static void put_up(const struct rrows *r, uint32_t from, uint32_t to, const struct ports *p, uint32_t divider,
                   uint8_t *row)
{
    uint32_t seq = 0, rest = 0, at = 0;
    for (uint32_t i = from; i < to; i++) {
        if (i == from || r->seq[i] != seq + 1) {
            at = r->seq[i] / divider % p->num;
            rest = r->seq[i] % divider;
        } else if (++rest == divider) {
            rest = 0;
            at = at + 1 == p->num ? 0 : at + 1;
        }
        seq = r->seq[i];
        row[r->lid[i]] = p->port[at];
    }
}

// The same, going down.
static void put_down(const struct rrows *r, uint32_t from, uint32_t to, const struct ports *p, uint32_t width,
                     uint8_t *row)
{
    if (p->num == 1) {
        for (uint32_t i = from; i < to; i++)
            row[r->lid[i]] = p->port[0];
        return;
    }
    for (uint32_t i = from; i < to; i++)
        row[r->lid[i]] = p->port[(r->seq[i] / width + (p->plain ? 0 : r->seq[i] % width)) % p->num];
}

static void fill_switch(struct chunk *c, uint32_t s)
{
    const struct rgraph *g = c->g;
    const struct rrows *r = c->r;
    uint32_t planes = (g->goff[s + 1] - g->goff[s] + 7) / 8;
    const uint8_t *cost = row_of(c->cost, s), *down = row_of(c->down, s);
    uint8_t *row = tables_row(r->tables, s);
    struct ports p = {.num = 0};
    for (uint32_t j = 0; j < c->num; j++) {
        uint32_t t = r->sw[c->first + j];
        if (c->odd[j] || cost[j] == NO_PATH)
            continue;
        if (s == t) {
            for (uint32_t i = g->doff[t]; i < g->doff[t + 1]; i++)
                row[g->d[i].lid] = g->d[i].port;
            continue;
        }
        uint64_t mask[4] = {0};
        for (uint32_t b = 0; b < planes; b++)
            mask[b / 8] |= (uint64_t)c->plane[b][j] << (b % 8 * 8);
        if (p.num == 0 || memcmp(mask, p.mask, sizeof(mask)) != 0)
            make_ports(g, c->o->rank, s, mask, &p);
        if (down[j] != NO_PATH)
            put_down(r, g->doff[t], g->doff[t + 1], &p, c->width[(size_t)down[j] * CHUNK + j], row);
        else
            put_up(r, g->doff[t], g->doff[t + 1], &p, (uint32_t)c->divider[(size_t)s * CHUNK + j], row);
    }
}

// Whether the candidates of a column are others than those of the column before.
static void find_changes(const struct chunk *c, uint32_t planes, uint8_t ret[CHUNK])
{
    memset(ret, 0, CHUNK);
    ret[0] = 1;
    for (uint32_t b = 0; b < planes; b++) {
        const uint8_t *plane = c->plane[b];
        for (uint32_t j = 1; j < CHUNK; j++)
            ret[j] |= plane[j] ^ plane[j - 1];
    }
}

// Where there is one way only.
static void put_only(const struct rrows *r, uint32_t t, uint8_t port, uint8_t *row)
{
    uint32_t from = r->g->doff[t], to = r->g->doff[t + 1];
    row[r->lid[from++]] = port;
    if (from < to && r->side_by_side[t]) {
        memset(row + r->lid[from], port, to - from);
        return;
    }
    for (; from < to; from++)
        row[r->lid[from]] = port;
}

// fill_switch() under rail.
static void fill_switch_rail(struct chunk *c, uint32_t s)
{
    const struct rgraph *g = c->g;
    const struct rrows *r = c->r;
    uint32_t planes = (g->goff[s + 1] - g->goff[s] + 7) / 8;
    const uint8_t *cost = row_of(c->cost, s);
    uint8_t *row = tables_row(r->tables, s), changes[CHUNK];
    struct ports p;
    struct rways ways = {.port = p.port};
    bool stale = true;
    find_changes(c, planes, changes);
    for (uint32_t j = 0; j < c->num; j++) {
        uint32_t t = r->sw[c->first + j];
        stale |= changes[j] != 0;
        if (c->odd[j] || cost[j] == NO_PATH)
            continue;
        if (s == t) {
            for (uint32_t i = g->doff[t]; i < g->doff[t + 1]; i++)
                row[g->d[i].lid] = g->d[i].port;
            continue;
        }
        if (stale) {
            memset(ways.mask, 0, sizeof(ways.mask));
            for (uint32_t b = 0; b < planes; b++)
                ways.mask[b / 8] |= (uint64_t)c->plane[b][j] << (b % 8 * 8);
            make_ports(g, c->o->rank, s, ways.mask, &p);
            ways.num = p.num;
            ways.inverse = rways_inverse(p.num);
            stale = false;
        }
        if (p.num == 1)
            put_only(r, t, p.port[0], row);
        else
            rrail_put(&c->at, s, t, cost[j], &ways, r->lid, row);
    }
}

static void chunk_task(void *arg, unsigned i)
{
    struct rrows *r = arg;
    struct arena *a = arena_new();
    struct chunk *c = ARENA_NEW(a, struct chunk);
    uint32_t n = r->g->n;
    *c = (struct chunk){.g = r->g, .o = r->o, .r = r, .first = i * CHUNK};
    c->num = r->num - c->first < CHUNK ? r->num - c->first : CHUNK;
    c->down = ARENA_NEW_N(a, (size_t)n * CHUNK, uint8_t);
    c->cost = ARENA_NEW_N(a, (size_t)n * CHUNK, uint8_t);
    if (r->rail)
        rrail_at_init(&c->at, r->rail, a);
    else
        c->divider = ARENA_NEW_N(a, (size_t)n * CHUNK, int16_t);
    c->width = ARENA_NEW_N(a, (size_t)(COST_MAX + 1) * CHUNK, uint16_t);
    find_costs(c);
    find_odd(c);
    for (size_t k = 0; k < (size_t)n * CHUNK && !r->rail; k++)
        c->divider[k] = 1;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = r->o->by_pos[k];
        find_candidates(c, s);
        if (r->rail) {
            fill_switch_rail(c, s);
            continue;
        }
        hand_on_row(c, s);
        fill_switch(c, s);
    }
    memcpy(r->odd + c->first, c->odd, c->num);
    arena_free(a);
}

void rrows_fill(struct rrows *r, struct par *par)
{
    rpar_run(par, (r->num + CHUNK - 1) / CHUNK, chunk_task, r);
}
