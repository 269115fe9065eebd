// SPDX-License-Identifier: Apache-2.0
// Flows of patterns, one pattern a piece of work: made, walked to count what each cable carries, walked again
// to see what each flow gets.
#include "routing/quality_priv.h"

#include <string.h>

#include "lib/hash.h"

#define SHIFTS 24
#define PERMUTATIONS 8
#define STEP 0x9e3779b97f4a7c15ULL // between draws; hash_mix64() then is splitmix64
#define SEED_RAIL 0x5eed0000ULL    // + size of the rail
#define SEED_SHIFT 0xc0ffeeULL
#define SEED_PERMUTATION 0xbeefULL

enum kind {
    RAIL_SHIFT,
    SLOT_SHIFT,
    SHIFT,
    PERMUTATION,
};

struct pattern {
    enum kind kind;
    uint32_t by; // places; or which permutation
    // what came out
    uint64_t flows, failed;
    double sum, worst;
    uint32_t max, channel; // channel: the first that holds max, ID_NONE when that is 1 or less
};

struct step { // of a flow over a cable
    uint32_t flow, channel;
};

struct target {
    uint32_t sw;
    uint16_t lid;
    uint8_t port;
};

struct work {
    const struct qgraph *g;
    uint64_t seed;
    struct pattern *p;
    uint32_t num, tasks;
    struct scratch {
        uint32_t *load;    // per channel; 0 between patterns
        uint32_t *dst;     // per flow, which is the number of its source: destination, ID_NONE
        uint32_t *at;      // per flow: the switch it has come to
        struct target *to; // per flow
        struct step *step;
    } * scratch;
};

// --- making them ---

static void make_rail_shift(const struct qgraph *g, uint32_t by, uint32_t *dst)
{
    memset(dst, 0xff, g->num_ends * sizeof(*dst));
    for (uint32_t r = 0; r < g->num_rails; r++) {
        const uint32_t *rail = g->rail + g->rail_first[r];
        uint32_t n = g->rail_first[r + 1] - g->rail_first[r];
        if (n < 2)
            continue;
        uint32_t s = 1 + (by - 1) % (n - 1);
        for (uint32_t i = 0; i < n; i++)
            dst[rail[i]] = rail[i + s < n ? i + s : i + s - n];
    }
}

// The host in a slot of a cell, or ID_NONE.
static uint32_t in_slot(const struct qgraph *g, const struct qcell *c, uint32_t slot)
{
    uint32_t low = c->first, high = c->first + c->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        uint32_t s = g->end[g->by_cell[mid]].slot;
        if (s == slot)
            return g->by_cell[mid];
        if (s < slot)
            low = mid + 1;
        else
            high = mid;
    }
    return ID_NONE;
}

static void make_slot_shift(const struct qgraph *g, uint32_t by, uint32_t *dst)
{
    for (uint32_t i = 0; i < g->num_ends; i++) {
        const struct qend *e = &g->end[i];
        dst[i] = ID_NONE;
        if (e->cell == ID_NONE || g->cell[e->cell].next == e->cell)
            continue;
        const struct qcell *c = &g->cell[g->cell[e->cell].next];
        dst[i] = in_slot(g, c, (e->slot + by) % c->slots);
    }
}

static void make_permutation(const struct qgraph *g, uint64_t seed, uint32_t which, uint32_t *dst)
{
    seed += SEED_PERMUTATION + STEP * (g->num_ends - 1) * which;
    for (uint32_t i = 0; i < g->num_ends; i++)
        dst[i] = i;
    for (uint32_t i = g->num_ends - 1; i > 0; i--, seed += STEP) {
        uint32_t z = (uint32_t)(hash_mix64(seed) % (i + 1)), t = dst[i];
        dst[i] = dst[z];
        dst[z] = t;
    }
}

static void make(const struct qgraph *g, uint64_t seed, const struct pattern *p, uint32_t *dst)
{
    switch (p->kind) {
    case RAIL_SHIFT:
        make_rail_shift(g, p->by, dst);
        return;
    case SLOT_SHIFT:
        make_slot_shift(g, p->by, dst);
        return;
    case SHIFT:
        for (uint32_t i = 0; i < g->num_ends; i++)
            dst[i] = (i + p->by) % g->num_ends;
        return;
    case PERMUTATION:
        make_permutation(g, seed, p->by, dst);
        return;
    }
}

// --- walking them ---

static struct target target_of(const struct qend *e)
{
    return (struct target){.sw = e->sw, .lid = e->lid, .port = e->port};
}

// One flow over one more cable, unless it has arrived, or does not.
static inline void load_step(const struct qgraph *g, struct scratch *k, struct pattern *p, uint32_t flow,
                             bool last, size_t *n)
{
    const struct target to = k->to[flow];
    uint32_t s = k->at[flow], c = ID_NONE;
    if (to.lid < g->t->lids) {
        if (s == to.sw && g->row[s][to.lid] == to.port)
            return;
        c = s == to.sw || last ? ID_NONE : qchannel_at(g, s, to.lid);
    }
    if (c == ID_NONE) {
        k->dst[flow] = ID_NONE;
        p->failed++;
        return;
    }
    k->load[c]++;
    k->step[(*n)++] = (struct step){flow, c};
    k->at[flow] = g->peer[c];
}

// All flows at once, cable by cable: what one waits for in the tables then keeps no other waiting. Leaves the
// steps in the order of hops; a flow that does not arrive loses its destination.
static size_t load_flows(const struct qgraph *g, struct scratch *k, struct pattern *p)
{
    size_t n = 0, from = 0;
    for (uint32_t i = 0; i < g->num_ends; i++) {
        k->at[i] = g->end[i].sw;
        k->to[i] = k->dst[i] == ID_NONE ? (struct target){.sw = ID_NONE} : target_of(&g->end[k->dst[i]]);
        if (k->dst[i] != ID_NONE)
            load_step(g, k, p, i, false, &n);
    }
    for (unsigned hop = 1; from < n; hop++) {
        size_t end = n;
        for (; from < end; from++)
            load_step(g, k, p, k->step[from].flow, hop == QUALITY_HOPS, &n);
    }
    return n;
}

static void see_flows(const struct qgraph *g, struct scratch *k, struct pattern *p, size_t steps)
{
    uint32_t *most = k->at;
    p->max = 1;     // a load of 1 names nobody
    p->channel = 0; // below all that tie with it
    for (uint32_t i = 0; i < g->num_ends; i++)
        most[i] = 1;
    for (size_t x = 0; x < steps; x++) {
        uint32_t flow = k->step[x].flow, c = k->step[x].channel, load = k->load[c];
        if (k->dst[flow] == ID_NONE)
            continue;
        most[flow] = load > most[flow] ? load : most[flow];
        if (load > p->max || (load == p->max && c < p->channel)) {
            p->max = load;
            p->channel = c;
        }
    }
    for (uint32_t i = 0; i < g->num_ends; i++) {
        if (k->dst[i] == ID_NONE)
            continue;
        p->flows++;
        p->sum += 1.0 / most[i];
    }
    if (p->max == 1)
        p->channel = ID_NONE;
    if (p->flows == 0)
        p->max = 0;
}

static void walk(const struct work *w, struct scratch *k, struct pattern *p)
{
    const struct qgraph *g = w->g;
    make(g, w->seed, p, k->dst);
    for (uint32_t i = 0; i < g->num_ends; i++)
        k->dst[i] = k->dst[i] == i ? ID_NONE : k->dst[i];
    size_t steps = load_flows(g, k, p);
    see_flows(g, k, p, steps);
    for (size_t x = 0; x < steps; x++)
        k->load[k->step[x].channel] = 0;
}

static void walk_task(void *arg, unsigned i)
{
    struct work *w = arg;
    for (uint32_t k = i; k < w->num; k += w->tasks)
        walk(w, &w->scratch[i], &w->p[k]);
}

// --- which ones ---

static uint32_t rail_shifts(const struct qgraph *g, const struct quality_opts *o, struct arena *a,
                            struct pattern *p)
{
    uint32_t n = g->rail_most, num = 1;
    if (n < 2)
        return 0;
    if (o->all_shifts || n - 1 <= SHIFTS) {
        for (uint32_t s = 1; s < n; s++)
            p[s - 1] = (struct pattern){.kind = RAIL_SHIFT, .by = s};
        return n - 1;
    }
    bool *taken = ARENA_NEW_N(a, n, bool);
    p[0] = (struct pattern){.kind = RAIL_SHIFT, .by = 1};
    taken[1] = true;
    for (uint64_t draw = o->seed + SEED_RAIL + n; num < SHIFTS; draw += STEP) {
        uint32_t s = 1 + (uint32_t)(hash_mix64(draw) % (n - 1));
        if (!taken[s])
            p[num++] = (struct pattern){.kind = RAIL_SHIFT, .by = s};
        taken[s] = true;
    }
    return num;
}

static void gather(const struct qgraph *g, const struct pattern *p, uint32_t n, struct quality_flows *ret)
{
    uint32_t channel = ID_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].flows + p[i].failed == 0)
            continue;
        double mean = p[i].flows ? p[i].sum / (double)p[i].flows : 0;
        ret->worst = ret->patterns == 0 || mean < ret->worst ? mean : ret->worst;
        ret->patterns++;
        ret->mean += mean;
        ret->sum += p[i].sum;
        ret->flows += p[i].flows;
        ret->failed += p[i].failed;
        if (p[i].max > ret->max_load || (p[i].max == ret->max_load && p[i].channel < channel)) {
            ret->max_load = p[i].max;
            channel = p[i].channel;
        }
    }
    if (ret->patterns == 0) {
        ret->absent = "no host has another to send to";
        return;
    }
    ret->mean /= ret->patterns;
    ret->worst_flow = ret->max_load ? 1.0 / ret->max_load : 0;
    ret->link = quality_link_of(g, channel, ret->max_load);
}

struct span {
    uint32_t first, n;
};

void quality_patterns(const struct qgraph *g, const struct quality_opts *o, struct arena *a,
                      struct route_quality *ret)
{
    struct work w = {.g = g, .seed = o->seed};
    struct span rail, slot, shift, perm;
    uint32_t rails = o->all_shifts ? g->rail_most : SHIFTS;
    w.p = ARENA_NEW_N(a, rails + g->slots + SHIFTS + PERMUTATIONS + 1, struct pattern);
    rail = (struct span){0, rail_shifts(g, o, a, w.p)};
    slot = (struct span){rail.n, g->num_sus > 1 ? g->slots : 0};
    for (uint32_t i = 0; i < slot.n; i++)
        w.p[slot.first + i] = (struct pattern){.kind = SLOT_SHIFT, .by = i};
    shift = (struct span){slot.first + slot.n, g->num_ends > 1 ? SHIFTS : 0};
    for (uint32_t i = 0; i < shift.n; i++) {
        uint64_t draw = hash_mix64(o->seed + SEED_SHIFT + STEP * i);
        w.p[shift.first + i] =
            (struct pattern){.kind = SHIFT, .by = 1 + (uint32_t)(draw % (g->num_ends - 1))};
    }
    perm = (struct span){shift.first + shift.n, g->num_ends > 1 ? PERMUTATIONS : 0};
    for (uint32_t i = 0; i < perm.n; i++)
        w.p[perm.first + i] = (struct pattern){.kind = PERMUTATION, .by = i};
    w.num = perm.first + perm.n;
    w.tasks = o->par && o->par->width > 1 ? o->par->width : 1;
    w.scratch = ARENA_NEW_N(a, w.tasks, struct scratch);
    for (uint32_t i = 0; i < w.tasks; i++) {
        size_t channels = (size_t)g->n * g->stride + 1;
        w.scratch[i] =
            (struct scratch){.load = ARENA_NEW_N(a, channels, uint32_t),
                             .dst = ARENA_NEW_N(a, g->num_ends + 1, uint32_t),
                             .at = ARENA_NEW_N(a, g->num_ends + 1, uint32_t),
                             .to = ARENA_NEW_N(a, g->num_ends + 1, struct target),
                             .step = ARENA_NEW_N(a, (size_t)g->num_ends * QUALITY_HOPS + 1, struct step)};
    }
    quality_spread(o->par, w.tasks, walk_task, &w);
    gather(g, w.p, rail.n, &ret->same_rail_shift);
    gather(g, w.p + slot.first, slot.n, &ret->slot_shift);
    gather(g, w.p + slot.first, slot.n > 0, &ret->ring);
    gather(g, w.p + shift.first, shift.n, &ret->shift);
    gather(g, w.p + perm.first, perm.n, &ret->permutation);
}
