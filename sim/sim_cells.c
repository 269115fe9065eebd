// SPDX-License-Identifier: Apache-2.0
// Movement of cells: the wheel of events, what happens when a cell has crossed a link.
//
// Three kinds of events, each at most once under way for its owner: a link has sent its cell, a slow host has
// taken one, a flow has another one to send. A cell is in exactly one place: in a queue, on a link, with a
// slow host. It holds a credit of the lane by which it came until it has left the next link.
#include "sim/sim_cells_priv.h"

#include "lib/xalloc.h"

#define BACKLOG_MAX 256 // cells that a flow has ready: who makes them waits then too
#define CELLS_WARM 12   // that each flow has sent, on average, before it is measured
#define CELLS_MEASURED 50

// --- events ---

void cells_at(struct cells *c, uint32_t ev, int64_t due)
{
    uint32_t slot = (uint32_t)due % SLOTS;
    c->due[ev] = due;
    c->after[ev] = CELLS_NONE;
    if (c->slot_head[slot] == CELLS_NONE)
        c->slot_head[slot] = ev;
    else
        c->after[c->slot_tail[slot]] = ev;
    c->slot_tail[slot] = ev;
    c->slot_used[slot / 64] |= 1ull << (slot % 64);
}

// Whole ticks of a step of so many (16 bits below the point); what is left over goes into the next one.
static int64_t ticks(uint64_t step_fp, uint32_t *left)
{
    uint64_t all = *left + step_fp;
    int64_t n = (int64_t)(all >> 16);
    *left = (uint32_t)all & 0xffff;
    return n > 0 ? n : 1;
}

// The first time after now at which a slot has something; limit when there is none before.
static int64_t next_slot(const struct cells *c, int64_t limit)
{
    int64_t t = c->now + 1;
    while (t < limit) {
        uint32_t slot = (uint32_t)t % SLOTS;
        uint64_t w = c->slot_used[slot / 64] >> (slot % 64);
        if (w != 0)
            return t + __builtin_ctzll(w) < limit ? t + __builtin_ctzll(w) : limit;
        t += 64 - slot % 64;
        if (t > c->now + SLOTS)
            return limit;
    }
    return limit;
}

// --- queues and links ---

static void start(struct cells *c, uint32_t l);

static void lane_blocks(const struct cells *c, struct lane *la)
{
    if (c->net.lanes > 1 && la->ring != CELLS_NONE && la->credits == 0 && la->since < 0)
        la->since = c->now;
}

static void lane_frees(const struct cells *c, struct lane *la)
{
    if (la->since >= 0)
        la->waited += c->now - la->since;
    la->since = -1;
}

static void ring_add(struct cells *c, uint32_t q)
{
    struct queue *e = &c->queue[q];
    struct lane *la = &c->lane[e->out];
    if (e->next_in_ring != CELLS_NONE)
        return;
    if (la->ring == CELLS_NONE) {
        e->next_in_ring = q;
        wire_of_lane(c, e->out)->rings++;
    } else {
        e->next_in_ring = c->queue[la->ring].next_in_ring;
        c->queue[la->ring].next_in_ring = q;
    }
    la->ring = q;
    lane_blocks(c, la);
}

// Its first is taken out, or goes to the end of the line.
static uint32_t ring_take(struct cells *c, uint32_t lane)
{
    return c->queue[c->lane[lane].ring].next_in_ring;
}

static void ring_next(struct cells *c, uint32_t lane, uint32_t q, bool stays)
{
    struct lane *la = &c->lane[lane];
    if (stays) {
        la->ring = q;
        return;
    }
    if (la->ring == q) {
        la->ring = CELLS_NONE;
        wire_of_lane(c, lane)->rings--;
    } else {
        c->queue[la->ring].next_in_ring = c->queue[q].next_in_ring;
    }
    c->queue[q].next_in_ring = CELLS_NONE;
}

static uint32_t cell_new(struct cells *c)
{
    uint32_t i = c->free_cell;
    if (i != CELLS_NONE) {
        c->free_cell = c->cell[i].next;
        return i;
    }
    if (c->num_cells == c->cap_cells) {
        c->cap_cells = c->cap_cells ? c->cap_cells * 2 : 1024;
        c->cell = xreallocarray(c->cell, c->cap_cells, sizeof(*c->cell));
    }
    return c->num_cells++;
}

static void cell_free(struct cells *c, uint32_t i)
{
    c->cell[i].next = c->free_cell;
    c->free_cell = i;
}

static void enqueue(struct cells *c, uint32_t q, uint32_t cell)
{
    struct queue *e = &c->queue[q];
    uint32_t l = e->out / c->net.lanes;
    c->cell[cell].next = CELLS_NONE;
    if (e->n++ == 0)
        e->head = cell;
    else
        c->cell[e->tail].next = cell;
    e->tail = cell;
    c->wire[l].cells++;
    ring_add(c, q);
    start(c, l);
}

// The next cell of a flow at its source.
static uint32_t source_cell(struct cells *c, uint32_t q, bool *ret_more)
{
    uint32_t f = c->queue[q].head, cell = cell_new(c);
    struct stream *s = &c->stream[f];
    c->cell[cell] = (struct cell){.flow = f, .lane = CELLS_NONE};
    s->under_way++;
    if (s->gap_fp)
        s->backlog--;
    *ret_more = (s->gap_fp == 0 || s->backlog > 0) &&
                (c->net.flow[f].window == 0 || s->under_way < c->net.flow[f].window);
    return cell;
}

static uint32_t take(struct cells *c, uint32_t q, bool *ret_more)
{
    struct queue *e = &c->queue[q];
    if (e->in == CELLS_NONE)
        return source_cell(c, q, ret_more);
    uint32_t cell = e->head;
    e->head = c->cell[cell].next;
    e->n--;
    wire_of_lane(c, e->out)->cells--;
    *ret_more = e->n > 0;
    return cell;
}

static void wait_ends(struct cells *c, struct wire *w)
{
    if (w->waiting)
        w->waited += c->now - w->since;
    w->waiting = false;
}

// The link sends what it can: the next lane that has something and credits, its queues in turn.
static void start(struct cells *c, uint32_t l)
{
    struct wire *w = &c->wire[l];
    unsigned lanes = c->net.lanes;
    if (w->cell != CELLS_NONE)
        return;
    if (w->rings == 0) {
        wait_ends(c, w);
        return;
    }
    for (unsigned i = 1; i <= lanes; i++) {
        unsigned k = w->turn + i < lanes ? w->turn + i : w->turn + i - lanes;
        struct lane *la = &c->lane[l * lanes + k];
        if (la->ring == CELLS_NONE || la->credits == 0)
            continue;
        wait_ends(c, w);
        la->credits--;
        w->turn = k;
        w->lane = l * lanes + k;
        w->queue = ring_take(c, w->lane);
        bool more;
        w->cell = take(c, w->queue, &more);
        ring_next(c, w->lane, w->queue, more);
        lane_blocks(c, la);
        w->since = c->now;
        cells_at(c, l, c->now + ticks(w->ticks_fp, &w->left_fp));
        return;
    }
    if (!w->waiting) {
        w->waiting = true;
        w->since = c->now;
    }
}

static void give_credit(struct cells *c, uint32_t lane)
{
    if (lane == CELLS_NONE)
        return;
    c->lane[lane].credits++;
    lane_frees(c, &c->lane[lane]);
    if (c->lane[lane].ring != CELLS_NONE)
        start(c, lane / c->net.lanes);
}

// --- where a cell ends ---

void cells_flow_moves(struct cells *c, uint32_t f)
{
    struct stream *s = &c->stream[f];
    uint32_t window = c->net.flow[f].window;
    if (s->queue == CELLS_NONE || (s->gap_fp && s->backlog == 0) || (window && s->under_way >= window))
        return;
    ring_add(c, s->queue);
    start(c, c->queue[s->queue].out / c->net.lanes);
}

// Wherever it ended: arrived or lost, its flow may send another one.
static void ended(struct cells *c, uint32_t cell)
{
    uint32_t f = c->cell[cell].flow, lane = c->cell[cell].lane;
    c->ended++;
    c->stream[f].done++;
    c->stream[f].under_way--;
    cell_free(c, cell);
    give_credit(c, lane);
    if (c->net.flow[f].window)
        cells_flow_moves(c, f);
}

static void drain(struct cells *c, uint32_t l)
{
    struct wire *w = &c->wire[l];
    if (w->draining || w->taken == CELLS_NONE || w->drain_fp == 0)
        return;
    w->draining = true;
    cells_at(c, c->net.num_links + l, c->now + ticks(w->drain_fp, &w->drain_left));
}

static void drained(struct cells *c, uint32_t l)
{
    struct wire *w = &c->wire[l];
    uint32_t cell = w->taken;
    w->taken = c->cell[cell].next;
    w->draining = false;
    ended(c, cell);
    drain(c, l);
}

static void here(struct cells *c, uint32_t l, uint32_t cell)
{
    struct wire *w = &c->wire[l];
    if (c->net.link[l].drain >= 1) {
        ended(c, cell);
        return;
    }
    c->cell[cell].next = CELLS_NONE;
    if (w->taken == CELLS_NONE)
        w->taken = cell;
    else
        c->cell[w->taken_last].next = cell;
    w->taken_last = cell;
    drain(c, l);
}

static void lost(struct cells *c, uint32_t cell, uint32_t *counted)
{
    if (c->measuring)
        (*counted)++;
    ended(c, cell);
}

// --- choices ---

// The link with least to send; of equal ones the next in turn.
static uint32_t least(struct cells *c, const uint32_t *link, uint32_t n)
{
    uint32_t best = 0, load = UINT32_MAX, from = n > 1 ? c->spin++ % n : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = from + i < n ? from + i : from + i - n;
        const struct wire *w = &c->wire[link[k]];
        uint32_t here_load = 2 * w->cells + (w->cell != CELLS_NONE);
        if (here_load < load) {
            load = here_load;
            best = k;
        }
    }
    return link[best];
}

// A cell of a flow that chooses is at a vertex.
static void choose(struct cells *c, uint32_t l, uint32_t cell)
{
    uint32_t f = c->cell[cell].flow, in = c->cell[cell].lane;
    uint32_t i = cells_choices(c, c->net.link[l].to, f), n = c->choice[i];
    if (n == CELLS_HERE) {
        here(c, l, cell);
        return;
    }
    if (n == 0) {
        lost(c, cell, &c->wire[l].unrouted);
        return;
    }
    uint32_t out = least(c, c->choice + i + 1, n);
    unsigned vl = c->net.lane(c->net.arg, l, out, f);
    if (c->net.link[out].rate <= 0 || vl == CELLS_DROP)
        lost(c, cell, &c->wire[out].discarded);
    else
        enqueue(c, cells_queue_of(c, in, out * c->net.lanes + vl), cell);
}

static void arrive(struct cells *c, uint32_t l, uint32_t lane, uint32_t cell)
{
    struct cell *e = &c->cell[cell];
    const struct stream *s = &c->stream[e->flow];
    e->lane = lane;
    if (s->len == 0) {
        c->lane[lane].moved += c->measuring;
        choose(c, l, cell);
        return;
    }
    if (++e->hop < s->len) {
        enqueue(c, c->path[s->path + e->hop], cell);
        return;
    }
    switch (s->end) {
    case END_HERE:
        here(c, l, cell);
        return;
    case END_UNROUTED:
        lost(c, cell, &c->wire[s->end_link].unrouted);
        return;
    case END_DEAD:
        lost(c, cell, &c->wire[s->end_link].discarded);
        return;
    }
}

static void sent(struct cells *c, uint32_t l)
{
    struct wire *w = &c->wire[l];
    uint32_t cell = w->cell, lane = w->lane, from = c->cell[cell].lane;
    w->cell = CELLS_NONE;
    c->cell[cell].lane = CELLS_NONE; // it is not held there any more
    give_credit(c, from);
    arrive(c, l, lane, cell);
    start(c, l);
}

static void born(struct cells *c, uint32_t f)
{
    struct stream *s = &c->stream[f];
    double jitter = 0.75 + 0.5 * rng_double(&c->rng); // no two flows march in step
    uint32_t left = 0;
    s->born++;
    if (s->backlog < BACKLOG_MAX)
        s->backlog++;
    cells_at(c, 2 * c->net.num_links + f, c->now + ticks((uint64_t)((double)s->gap_fp * jitter), &left));
    cells_flow_moves(c, f);
}

static void fire(struct cells *c, uint32_t ev)
{
    uint32_t links = c->net.num_links;
    c->events++;
    if (ev < links)
        sent(c, ev);
    else if (ev < 2 * links)
        drained(c, ev - links);
    else
        born(c, ev - 2 * links);
}

static void run_slot(struct cells *c)
{
    uint32_t slot = (uint32_t)c->now % SLOTS, ev = c->slot_head[slot];
    c->slot_head[slot] = c->slot_tail[slot] = CELLS_NONE;
    c->slot_used[slot / 64] &= ~(1ull << (slot % 64));
    while (ev != CELLS_NONE) {
        uint32_t next = c->after[ev];
        if (c->due[ev] == c->now)
            fire(c, ev);
        else
            cells_at(c, ev, c->due[ev]);
        ev = next;
    }
}

static void measure(struct cells *c)
{
    int64_t shortest = c->end - c->begin;
    c->measuring = true;
    c->begin = c->now;
    c->end = c->now + shortest;
    c->last = c->now + LONGER * shortest;
    c->ended = 0;
    for (uint32_t l = 0; l < c->net.num_links; l++) {
        struct wire *w = &c->wire[l];
        w->waited = 0;
        if (w->waiting || w->cell != CELLS_NONE)
            w->since = c->now;
    }
    for (uint32_t i = 0; i < c->net.num_links * c->net.lanes; i++) {
        struct lane *la = &c->lane[i];
        la->waited = 0;
        la->since = la->since >= 0 ? c->now : -1;
    }
    for (uint32_t f = 0; f < c->net.num_flows; f++) {
        struct stream *s = &c->stream[f];
        s->done = s->born = 0;
        s->backlog_before = s->backlog;
    }
}

// Whether flows have had so many cells each through; what is slow is given more time, up to a limit.
static bool enough(const struct cells *c, uint64_t cells)
{
    return c->now >= c->last || c->ended >= cells * c->alive;
}

static void look(struct cells *c)
{
    if (c->measuring) {
        look_sample(c);
        if (c->samples % SAMPLES == 0) // longer than the shortest: half as often from now on
            c->sample_every *= 2;
        c->done = c->now >= c->end && enough(c, CELLS_MEASURED);
    } else if (c->now >= c->begin && enough(c, CELLS_WARM)) {
        measure(c);
    }
    c->next_sample = c->now + c->sample_every;
}

bool cells_run(struct cells *c, uint64_t events)
{
    uint64_t until = c->events + events;
    while (!c->done && c->events < until) {
        c->now = next_slot(c, c->next_sample);
        run_slot(c);
        if (c->now >= c->next_sample)
            look(c);
    }
    return c->done;
}

uint64_t cells_events(const struct cells *c)
{
    return c->events;
}
