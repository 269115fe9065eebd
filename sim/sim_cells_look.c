// SPDX-License-Identifier: Apache-2.0
// What was measured: rates and shares of time; and who is to blame for a wait.
//
// Blame: at each sample, from each link that waits a walk begins: it picks at chance one of the cells that
// fill the buffer at its far end and goes to the link that this cell wants to leave by. A link that hardly
// ever waits is the end of the walk: it cannot send faster. One that waits too passes the blame on, the more
// surely the more it waits. A host that does not take its cells makes the link to it the end; a link that the
// walk comes back to stands in a circle.
#include "sim/sim_cells_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define PASSES_NEVER 0.02 // share of waiting below which a link is itself the end
#define PASSES_ALWAYS 0.10
#define WAITS_LITTLE 0.01 // a wait that nobody would look at
#define WALK_MAX 1024

static double waits(const struct cells *c, uint32_t l)
{
    const struct wire *w = &c->wire[l];
    int64_t t = w->waited + (w->waiting ? c->now - w->since : 0), all = c->now - c->begin;
    return all > 0 ? (double)t / (double)all : 0;
}

// The link that a cell of the buffer behind lane `la` wants to leave by; CELLS_NONE when none stands there.
static uint32_t wanted(struct cells *c, uint32_t la)
{
    uint32_t total = 0;
    for (uint32_t q = c->lane[la].fed; q != CELLS_NONE; q = c->queue[q].next_of_input)
        total += c->queue[q].n;
    if (total == 0)
        return CELLS_NONE;
    uint32_t pick = rng_below(&c->rng, total);
    for (uint32_t q = c->lane[la].fed; q != CELLS_NONE; q = c->queue[q].next_of_input) {
        if (pick < c->queue[q].n)
            return c->queue[q].out / c->net.lanes;
        pick -= c->queue[q].n;
    }
    return CELLS_NONE;
}

// A lane of the link whose buffer is as full as any.
static uint32_t fullest(const struct cells *c, uint32_t l)
{
    uint32_t first = l * c->net.lanes, best = first;
    for (unsigned k = 1; k < c->net.lanes; k++) {
        bool wants = c->lane[first + k].ring != CELLS_NONE, best_wants = c->lane[best].ring != CELLS_NONE;
        if (c->lane[first + k].credits < c->lane[best].credits || (wants && !best_wants))
            best = first + k;
    }
    return best;
}

static bool passes_on(struct cells *c, uint32_t l)
{
    double p = (waits(c, l) - PASSES_NEVER) / (PASSES_ALWAYS - PASSES_NEVER);
    return p >= 1 || (p > 0 && rng_double(&c->rng) < p);
}

static uint32_t walk(struct cells *c, uint32_t l)
{
    uint32_t at = l;
    c->stamp++;
    for (unsigned i = 0; i < WALK_MAX; i++) {
        if (c->wire[at].stamp == c->stamp) {
            for (uint32_t k = wanted(c, fullest(c, at)); i > 0 && k != CELLS_NONE && k != at; i--) {
                c->wire[k].circles++;
                k = wanted(c, fullest(c, k));
            }
            c->wire[at].circles++;
            return at;
        }
        c->wire[at].stamp = c->stamp;
        if (c->wire[at].taken != CELLS_NONE && c->net.link[at].drain < 1)
            return at;
        uint32_t next = wanted(c, fullest(c, at));
        if (next == CELLS_NONE)
            return at;
        if (next != at && !passes_on(c, next))
            return next;
        at = next;
    }
    return at;
}

static void blame(struct cells *c, uint32_t l, uint32_t root)
{
    struct wire *w = &c->wire[l];
    w->seen++;
    for (uint32_t b = w->first_blame; b != CELLS_NONE; b = c->blame[b].next)
        if (c->blame[b].root == root) {
            c->blame[b].count++;
            return;
        }
    if (c->num_blames == c->cap_blames) {
        c->cap_blames = c->cap_blames ? c->cap_blames * 2 : 256;
        c->blame = xreallocarray(c->blame, c->cap_blames, sizeof(*c->blame));
    }
    c->blame[c->num_blames] = (struct blame){root, 1, w->first_blame};
    w->first_blame = c->num_blames++;
}

void look_sample(struct cells *c)
{
    c->samples++;
    for (uint32_t i = 0; i < c->num_used; i++) {
        uint32_t l = c->used[i];
        struct wire *w = &c->wire[l];
        for (unsigned k = 0; k < c->net.lanes; k++)
            w->fill += c->net.buffer - c->lane[l * c->net.lanes + k].credits;
        w->queued += w->cells;
        if (w->waiting)
            blame(c, l, walk(c, l));
    }
}

// --- results ---

static double seconds(const struct cells *c)
{
    return (double)(c->now - c->begin) * c->tick_s;
}

// What a flow carries: what comes up when nothing holds it up, else what ended.
static double flow_rate(const struct cells *c, uint32_t f)
{
    const struct stream *s = &c->stream[f];
    double rate = s->done / seconds(c);
    if (s->queue == CELLS_NONE || s->gap_fp == 0)
        return s->queue == CELLS_NONE ? 0 : rate;
    double way = c->net.buffer * (s->len ? s->len : 8); // cells that may be under way
    bool free_flow = s->backlog <= 3 && s->done + fmin(way, 3 + 0.02 * s->born) >= s->born;
    return free_flow ? c->net.flow[f].rate : rate;
}

static void add_paths(const struct cells *c, const double *rate, struct cells_use *use)
{
    for (uint32_t f = 0; f < c->net.num_flows; f++) {
        const struct stream *s = &c->stream[f];
        for (uint32_t i = 0; i < s->len; i++)
            use[c->queue[c->path[s->path + i]].out / c->net.lanes].sent += rate[f];
    }
}

// No link carries more than it can: flows over one that would are all cut by as much.
static void cut_to_fit(const struct cells *c, double *rate, struct cells_use *use)
{
    add_paths(c, rate, use);
    for (uint32_t f = 0; f < c->net.num_flows; f++) {
        const struct stream *s = &c->stream[f];
        double most = 1;
        for (uint32_t i = 0; i < s->len; i++) {
            uint32_t l = c->queue[c->path[s->path + i]].out / c->net.lanes;
            most = fmax(most, use[l].sent / c->net.link[l].rate);
        }
        rate[f] /= most;
    }
    for (uint32_t l = 0; l < c->net.num_links; l++)
        use[l].sent = 0;
    add_paths(c, rate, use);
}

static void ends_of_flows(const struct cells *c, const double *rate, struct cells_use *use)
{
    for (uint32_t f = 0; f < c->net.num_flows; f++) {
        const struct stream *s = &c->stream[f];
        if (s->len > 0 && s->end == END_DEAD)
            use[s->end_link].discarded += rate[f];
        else if (s->len > 0 && s->end == END_UNROUTED)
            use[s->end_link].unrouted += rate[f];
    }
}

static void root_of(const struct cells *c, uint32_t l, struct cells_use *ret)
{
    const struct wire *w = &c->wire[l];
    uint32_t most = 0;
    for (uint32_t b = w->first_blame; b != CELLS_NONE; b = c->blame[b].next)
        if (c->blame[b].count > most) {
            most = c->blame[b].count;
            ret->root = c->blame[b].root;
        }
    ret->root_share = w->seen ? (double)most / w->seen : 0;
}

static void use_of(const struct cells *c, uint32_t l, struct cells_use *ret)
{
    const struct wire *w = &c->wire[l];
    double t = seconds(c), samples = c->samples ? c->samples : 1;
    bool static_lost = ret->discarded > 0 || ret->unrouted > 0;
    for (unsigned k = 0; k < c->net.lanes; k++)
        ret->sent += c->lane[l * c->net.lanes + k].moved / t;
    ret->used = c->net.link[l].rate > 0 ? fmin(1, ret->sent / c->net.link[l].rate) : 0;
    ret->held = fmin(waits(c, l), 1 - ret->used);
    if (!static_lost) { // of flows that choose on their way
        ret->discarded = w->discarded / t;
        ret->unrouted = w->unrouted / t;
    }
    ret->fill = (double)w->fill / (samples * c->net.buffer * c->net.lanes);
    ret->queued = (double)w->queued / samples;
    ret->root = CELLS_NONE;
    root_of(c, l, ret);
    ret->stuck = waits(c, l) > 0.999;
    ret->circle = ret->stuck && w->circles > 0;
}

// A link's wait belongs to all that it was seen to lead to, by how often.
static void divide_wait(const struct cells *c, uint32_t l, struct cells_use *use)
{
    const struct wire *w = &c->wire[l];
    for (uint32_t b = w->first_blame; b != CELLS_NONE && use[l].held >= WAITS_LITTLE; b = c->blame[b].next)
        use[c->blame[b].root].lost += use[l].held * c->net.link[l].rate * c->blame[b].count / w->seen;
}

void cells_result(struct cells *c, struct cells_use *ret_use, double *ret_delivered)
{
    memset(ret_use, 0, c->net.num_links * sizeof(*ret_use));
    if (!c->measuring || c->now <= c->begin) {
        memset(ret_delivered, 0, c->net.num_flows * sizeof(*ret_delivered));
        return;
    }
    for (uint32_t f = 0; f < c->net.num_flows; f++)
        ret_delivered[f] = flow_rate(c, f);
    cut_to_fit(c, ret_delivered, ret_use);
    ends_of_flows(c, ret_delivered, ret_use);
    for (uint32_t l = 0; l < c->net.num_links; l++)
        use_of(c, l, &ret_use[l]);
    for (uint32_t l = 0; l < c->net.num_links; l++)
        divide_wait(c, l, ret_use);
    for (uint32_t f = 0; f < c->net.num_flows; f++)
        if (c->stream[f].len > 0 && c->stream[f].end != END_HERE)
            ret_delivered[f] = 0;
}

double cells_lane_held(const struct cells *c, uint32_t link, unsigned lane)
{
    const struct lane *la = &c->lane[link * c->net.lanes + lane];
    int64_t all = c->now - c->begin;
    if (!c->measuring || all <= 0)
        return 0;
    if (c->net.lanes == 1)
        return waits(c, link);
    return (double)(la->waited + (la->since >= 0 ? c->now - la->since : 0)) / (double)all;
}

// --- for tests ---

// Each lane's buffer holds what its credits say, counted from the other side.
bool cells_sane(const struct cells *c)
{
    uint32_t lanes = c->net.num_links * c->net.lanes, *held = xcalloc(lanes + 1, sizeof(*held));
    uint32_t cells = 0, free_cells = 0;
    bool ok = true;

    for (uint32_t q = 0; q < c->num_queues; q++) {
        const struct queue *e = &c->queue[q];
        cells += e->n;
        if (e->in != CELLS_NONE)
            held[e->in] += e->n;
    }
    for (uint32_t l = 0; l < c->net.num_links; l++) {
        const struct wire *w = &c->wire[l];
        for (uint32_t i = w->taken; i != CELLS_NONE; i = c->cell[i].next) {
            held[c->cell[i].lane]++;
            cells++;
        }
        if (w->cell == CELLS_NONE) {
            for (unsigned k = 0; k < c->net.lanes; k++) // whoever can send, sends
                ok &= c->lane[l * c->net.lanes + k].ring == CELLS_NONE ||
                      c->lane[l * c->net.lanes + k].credits == 0;
            continue;
        }
        cells++;
        held[w->lane]++; // room is kept for it
        if (c->cell[w->cell].lane != CELLS_NONE)
            held[c->cell[w->cell].lane]++;
    }
    for (uint32_t i = 0; i < lanes; i++)
        ok &= held[i] + c->lane[i].credits == c->net.buffer;
    for (uint32_t i = c->free_cell; i != CELLS_NONE; i = c->cell[i].next)
        free_cells++;
    free(held);
    return ok && cells + free_cells == c->num_cells;
}

// --- the same as before? ---

static uint64_t mix_double(uint64_t h, double v)
{
    union {
        double d;
        uint64_t u;
    } x = {.d = v};
    return hash_mix64(h ^ x.u);
}

bool cells_choose(const struct cells *c)
{
    for (uint32_t f = 0; f < c->net.num_flows; f++)
        if (c->stream[f].queue != CELLS_NONE && c->stream[f].len == 0)
            return true;
    return false;
}

uint64_t cells_signature(const struct cells *c)
{
    uint64_t h = c->net.lanes;
    for (uint32_t f = 0; f < c->net.num_flows; f++) {
        const struct stream *s = &c->stream[f];
        const struct cells_flow *d = &c->net.flow[f];
        h = mix_double(hash_mix64(h ^ d->link ^ (uint64_t)d->dest << 32), d->rate);
        h = hash_mix64(h ^ d->window ^ (uint64_t)s->end << 32 ^ (uint64_t)s->end_link << 34);
        for (uint32_t i = 0; i < s->len; i++)
            h = hash_mix64(h ^ c->queue[c->path[s->path + i]].out);
    }
    for (uint32_t l = 0; l < c->net.num_links; l++)
        h = mix_double(mix_double(h, c->net.link[l].rate), (double)c->net.link[l].drain);
    return h ? h : 1;
}
