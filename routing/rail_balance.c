// SPDX-License-Identifier: Apache-2.0
// Where a tree is irregular: ends of a leaf exchange their sequence numbers, so that less meets.
//
// From every leaf a destination goes up by the cable that has the place of its own in the list (rail.c), so
// what a leaf sends to two ends at once meets there when their numbers lead to the same place. Numbers by
// slot (rail_number.c) keep apart all that a shift sends from one leaf, as long as leaves are alike. Where
// cables are missing, or are more than the slots so that numbers run on, with leaves of other widths and
// hosts of other sorts among them, it is left to chance. Here it is counted in how many patterns two ends are
// sent to from one leaf at once:
//
//   - all ends shift, in the order of the leaves' names and of ports: ends d apart are so in as many of all
//     shifts as there are pairs of senders d apart on a leaf;
//   - those of one sort do, and no others: of one rail, and of hosts with as many adapters;
//   - all sorts do, by the same distance, each in a line of its own: ends of two sorts, by how far apart
//     their places in their lines are. Jobs leave hosts out, which moves lines against each other: so places
//     near by count too, the farther the less;
//   - anybody sends to anybody: any two ends, as often as two senders share a leaf.
//
// A rail alone counts most, being what most jobs use. Two ends on one place cost what the patterns that use
// both weigh. Leaf after leaf, ends exchange numbers, or take free ones of their leaf, whenever that costs
// less, until nothing changes, or SWEEPS times. A leaf keeps its numbers, so switches above lead to as many
// ends as before, and what they make of the rest of a number stays as it is.
//
// It changes nothing where all leaves have all cables of their families and numbers begin anew at each: there
// numbers by slot stay whoever is missing, and nobody moves when he comes. Nor where less than a
// thirty-second meets of what would by chance. All is decided by names, GUIDs, ports and adapters.
//
// Cost: a sweep looks, for each end, at those within reach in each line, some hundreds. Where that is more
// than WORK_MAX in all, numbers stay as they are.
#include "routing/rail_priv.h"

#include <string.h>

#define SORTS_MAX 64
#define WAYS_MAX 256
#define NO_WAY 0xffff
#define SWEEPS 8
#define ROUNDS 4                       // of exchanges within a leaf, a sweep
#define NEAR 4                         // places by which lines may have moved
#define UNIT ((NEAR + 1) * (NEAR + 1)) // that spread over 2 * NEAR + 1 places
#define ALONE 3                        // weight of a sort alone; of the other patterns: 1
#define CHANCE 32
#define WORK_MAX (64u << 20)

struct line { // ends in the order in which they shift
    uint32_t *at, num;
    uint32_t *first, *count; // per leaf
};

struct meets { // of an end with others in a line: how far on from its own place, and how much it weighs
    int32_t *by;
    uint32_t *weight, num;
};

struct balance {
    const struct rrail *r;
    struct rgraph *g;
    const struct rnumbers *n;
    struct arena *a;
    uint32_t ends, sorts;
    uint32_t *dest, *leaf, *sort, *pos; // per end; pos: in the line of its sort
    uint16_t *way;                      // per end: its place in the list of cables up, or NO_WAY
    uint32_t *from;                     // per leaf: its first end; leaves in the order of names
    struct line all, *line;             // line: per sort
    struct meets whole, *pair;          // pair: [sort * sorts + sort of the other]
    uint64_t any;                       // what any two weigh
    uint32_t used[WAYS_MAX];            // ends on each place
    // Of the ends of one leaf, which others do not change:
    uint32_t *holder;           // per number: which of them has it, or ID_NONE
    uint64_t (*cost)[WAYS_MAX]; // on each place
    uint64_t *chance;           // without one
};

static uint16_t way_of(const struct rrail *r, uint32_t s, uint32_t number)
{
    uint32_t k = r->udeal[s] ? number % r->udeal[s] : WAYS_MAX;
    return k < WAYS_MAX && r->up[r->uoff[s] + k].port ? (uint16_t)k : NO_WAY;
}

static bool is_irregular(const struct rrail *r, const struct rnumbers *n)
{
    for (uint32_t l = 0; l < n->leaves; l++) {
        uint32_t s = n->by_name[l];
        for (uint32_t k = r->uoff[s]; k < r->uoff[s] + r->udeal[s]; k++) {
            if (r->up[k].port == 0)
                return true;
        }
    }
    return n->run_on;
}

// --- ends and lines ---

static uint32_t sort_of(struct balance *b, uint32_t key[SORTS_MAX], uint32_t sort)
{
    uint32_t k = 0;
    while (k < b->sorts && key[k] != sort)
        k++;
    if (k == SORTS_MAX)
        return k - 1;
    if (k == b->sorts)
        key[b->sorts++] = sort;
    return k;
}

static void find_ends(struct balance *b)
{
    const struct rgraph *g = b->g;
    uint32_t dests = g->doff[g->n] + 1, key[SORTS_MAX];
    b->dest = ARENA_NEW_N(b->a, dests, uint32_t);
    b->leaf = ARENA_NEW_N(b->a, dests, uint32_t);
    b->sort = ARENA_NEW_N(b->a, dests, uint32_t);
    b->pos = ARENA_NEW_N(b->a, dests, uint32_t);
    b->way = ARENA_NEW_N(b->a, dests, uint16_t);
    b->from = ARENA_NEW_N(b->a, b->n->leaves + 1, uint32_t);
    for (uint32_t l = 0; l < b->n->leaves; l++) {
        uint32_t s = b->n->by_name[l];
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            if (g->d[i].few || g->d[i].lid_offset > 0)
                continue;
            b->dest[b->ends] = i;
            b->leaf[b->ends] = l;
            b->sort[b->ends] = sort_of(b, key, b->n->sort[i]);
            b->way[b->ends++] = way_of(b->r, s, g->d[i].seq);
        }
        b->from[l + 1] = b->ends;
    }
    for (uint32_t e = 0; e < b->ends; e++) {
        if (b->way[e] != NO_WAY)
            b->used[b->way[e]]++;
    }
}

static void line_new(const struct balance *b, struct line *x, uint32_t ends)
{
    x->at = ARENA_NEW_N(b->a, ends + 1, uint32_t);
    x->first = ARENA_NEW_N(b->a, b->n->leaves + 1, uint32_t);
    x->count = ARENA_NEW_N(b->a, b->n->leaves + 1, uint32_t);
}

static void append(const struct balance *b, struct line *x, uint32_t e)
{
    if (x->count[b->leaf[e]]++ == 0)
        x->first[b->leaf[e]] = x->num;
    x->at[x->num++] = e;
}

static void line_up(struct balance *b)
{
    uint32_t ends[SORTS_MAX] = {0};
    for (uint32_t e = 0; e < b->ends; e++)
        ends[b->sort[e]]++;
    b->line = ARENA_NEW_N(b->a, b->sorts + 1, struct line);
    line_new(b, &b->all, b->ends);
    for (uint32_t k = 0; k < b->sorts; k++)
        line_new(b, &b->line[k], ends[k]);
    for (uint32_t e = 0; e < b->ends; e++) {
        append(b, &b->all, e);
        b->pos[e] = b->line[b->sort[e]].num;
        append(b, &b->line[b->sort[e]], e);
    }
}

// --- how often two ends are sent to from one leaf ---

// Counts senders of line x and of line y that share a leaf, by how far on in their lines the latter are.
static void count_senders(const struct balance *b, const struct line *x, const struct line *y, uint32_t near,
                          uint32_t times, uint32_t *by)
{
    for (uint32_t l = 0; l < b->n->leaves; l++) {
        uint32_t last = x->first[l] + x->count[l];
        for (uint32_t i = x->first[l]; i < last; i++) {
            for (uint32_t j = y->first[l]; j < y->first[l] + y->count[l]; j++) {
                uint32_t *at = by + (x->num + j - i);
                for (uint32_t d = 0; d <= 2 * near; d++)
                    at[d] += times * (1 + (d < near ? d : 2 * near - d));
            }
        }
    }
}

static void find_meets(const struct balance *b, const struct line *x, const struct line *y, uint32_t near,
                       uint32_t times, struct meets *ret)
{
    struct arena *scratch = arena_new();
    uint32_t span = x->num + y->num + 2 * near + 1, num = 0;
    uint32_t *by = ARENA_NEW_N(scratch, span, uint32_t);
    count_senders(b, x, y, near, times, by);
    if (x == y)
        by[x->num + near] = 0; // itself
    for (uint32_t k = 0; k < span; k++)
        num += by[k] > 0;
    *ret = (struct meets){.by = ARENA_NEW_N(b->a, num + 1, int32_t),
                          .weight = ARENA_NEW_N(b->a, num + 1, uint32_t)};
    for (uint32_t k = 0; k < span; k++) {
        if (by[k] == 0)
            continue;
        ret->by[ret->num] = (int32_t)k - (int32_t)(x->num + near);
        ret->weight[ret->num++] = by[k];
    }
    arena_free(scratch);
}

static void weigh_lines(struct balance *b)
{
    b->pair = ARENA_NEW_N(b->a, (size_t)b->sorts * b->sorts + 1, struct meets);
    find_meets(b, &b->all, &b->all, 0, UNIT, &b->whole);
    for (uint32_t k = 0; k < b->sorts; k++)
        find_meets(b, &b->line[k], &b->line[k], 0, (1 + ALONE) * UNIT, &b->pair[k * b->sorts + k]);
}

static void weigh_others(struct balance *b)
{
    uint64_t pairs = 0;
    for (uint32_t x = 0; x < b->sorts; x++) {
        for (uint32_t y = 0; y < b->sorts; y++) {
            if (x != y)
                find_meets(b, &b->line[x], &b->line[y], NEAR, 1, &b->pair[x * b->sorts + y]);
        }
    }
    for (uint32_t l = 0; l < b->n->leaves; l++)
        pairs += (uint64_t)b->all.count[l] * b->all.count[l];
    b->any = UNIT * pairs / b->ends;
}

static uint64_t work(const struct balance *b)
{
    uint64_t n = (uint64_t)b->ends * b->whole.num;
    for (uint32_t x = 0; x < b->sorts; x++) {
        for (uint32_t y = 0; y < b->sorts; y++)
            n += (uint64_t)b->line[x].num * b->pair[x * b->sorts + y].num;
    }
    return n;
}

// --- what an end costs on each place ---

static void add(const struct balance *b, uint32_t e, uint32_t pos, const struct meets *m,
                const struct line *x, uint64_t cost[WAYS_MAX], uint64_t *sum)
{
    for (uint32_t k = 0; k < m->num; k++) {
        int64_t p = (int64_t)pos + m->by[k];
        p += p < 0 ? x->num : p >= x->num ? -(int64_t)x->num : 0;
        if (p < 0 || p >= x->num || b->leaf[x->at[p]] == b->leaf[e])
            continue;
        *sum += m->weight[k];
        if (b->way[x->at[p]] != NO_WAY)
            cost[b->way[x->at[p]]] += m->weight[k];
    }
}

static void find_costs(struct balance *b, uint32_t l)
{
    uint32_t own[WAYS_MAX] = {0}, deal = b->r->udeal[b->n->by_name[l]];
    for (uint32_t e = b->from[l]; e < b->from[l + 1]; e++) {
        if (b->way[e] != NO_WAY)
            own[b->way[e]]++;
    }
    for (uint32_t e = b->from[l]; e < b->from[l + 1]; e++) {
        uint64_t *cost = b->cost[e - b->from[l]], sum = 0;
        for (uint32_t k = 0; k < WAYS_MAX; k++) {
            cost[k] = b->any * (b->used[k] - own[k]);
            sum += cost[k];
        }
        add(b, e, e, &b->whole, &b->all, cost, &sum);
        for (uint32_t k = 0; k < b->sorts; k++)
            add(b, e, b->pos[e], &b->pair[b->sort[e] * b->sorts + k], &b->line[k], cost, &sum);
        b->chance[e - b->from[l]] = deal ? sum / deal : 0;
    }
}

static uint64_t cost_at(const struct balance *b, uint32_t x, uint16_t way)
{
    return way == NO_WAY ? b->chance[x] : b->cost[x][way];
}

// Whether enough meets that it is worth to move anybody.
static bool is_uneven(struct balance *b)
{
    uint64_t cost = 0, chance = 0;
    for (uint32_t l = 0; l < b->n->leaves; l++) {
        find_costs(b, l);
        for (uint32_t e = b->from[l]; e < b->from[l + 1]; e++) {
            if (b->way[e] == NO_WAY) // whatever is done, as many of them are without one
                continue;
            cost += b->cost[e - b->from[l]][b->way[e]];
            chance += b->chance[e - b->from[l]];
        }
    }
    return cost > chance / CHANCE;
}

// --- exchange ---

static void take(struct balance *b, uint32_t e, uint32_t number, uint16_t way)
{
    if (b->way[e] != NO_WAY)
        b->used[b->way[e]]--;
    if (way != NO_WAY)
        b->used[way]++;
    b->way[e] = way;
    b->g->d[b->dest[e]].seq = number;
}

// Gives end x of a leaf, the first of which is `from`, the number that costs least, y getting its own, if any
// has that one.
static bool move(struct balance *b, uint32_t s, uint32_t from, uint32_t x)
{
    uint32_t base = b->n->base[s], best = ID_NONE, old = b->g->d[b->dest[from + x]].seq - base;
    uint16_t own = b->way[from + x];
    int64_t least = 0;
    for (uint32_t k = 0; k < b->n->room[s]; k++) {
        uint16_t way = way_of(b->r, s, base + k);
        uint32_t y = b->holder[k];
        int64_t more = (int64_t)cost_at(b, x, way) - (int64_t)cost_at(b, x, own);
        if (y != ID_NONE)
            more += (int64_t)cost_at(b, y, own) - (int64_t)cost_at(b, y, way);
        if (more < least) {
            least = more;
            best = k;
        }
    }
    if (best == ID_NONE)
        return false;
    uint32_t y = b->holder[best];
    b->holder[old] = y;
    b->holder[best] = x;
    take(b, from + x, base + best, way_of(b->r, s, base + best));
    if (y != ID_NONE)
        take(b, from + y, base + old, own);
    return true;
}

static bool settle(struct balance *b, uint32_t l)
{
    uint32_t s = b->n->by_name[l], from = b->from[l], ends = b->from[l + 1] - from;
    bool moved = false, again = true;
    find_costs(b, l);
    for (uint32_t k = 0; k < b->n->room[s]; k++)
        b->holder[k] = ID_NONE;
    for (uint32_t x = 0; x < ends; x++)
        b->holder[b->g->d[b->dest[from + x]].seq - b->n->base[s]] = x;
    for (unsigned i = 0; i < ROUNDS && again; i++) {
        again = false;
        for (uint32_t x = 0; x < ends; x++)
            again |= move(b, s, from, x);
        moved |= again;
    }
    return moved;
}

// The further LIDs of a port follow its base, as they did.
static void follow(struct rgraph *g)
{
    for (uint32_t i = 1; i < g->doff[g->n]; i++) {
        if (!g->d[i].few && g->d[i].lid_offset > 0)
            g->d[i].seq = g->d[i - 1].seq + 1;
    }
}

static void make_room(struct balance *b)
{
    typedef uint64_t costs[WAYS_MAX];
    uint32_t ends = 0, room = 0;
    for (uint32_t l = 0; l < b->n->leaves; l++) {
        uint32_t n = b->from[l + 1] - b->from[l], have = b->n->room[b->n->by_name[l]];
        ends = n > ends ? n : ends;
        room = have > room ? have : room;
    }
    b->cost = ARENA_NEW_N(b->a, ends + 1, costs);
    b->chance = ARENA_NEW_N(b->a, ends + 1, uint64_t);
    b->holder = ARENA_NEW_N(b->a, room + 1, uint32_t);
}

void rrail_balance(const struct rrail *r, struct rgraph *g, const struct rnumbers *n)
{
    if (!is_irregular(r, n))
        return;
    struct arena *a = arena_new();
    struct balance b = {.r = r, .g = g, .n = n, .a = a};
    find_ends(&b);
    line_up(&b);
    weigh_lines(&b);
    make_room(&b);
    if (work(&b) <= WORK_MAX && is_uneven(&b)) {
        weigh_others(&b);
        bool moved = work(&b) <= WORK_MAX;
        for (unsigned i = 0; i < SWEEPS && moved; i++) {
            moved = false;
            for (uint32_t l = 0; l < n->leaves; l++)
                moved |= settle(&b, l);
        }
        follow(g);
    }
    arena_free(a);
}
