// SPDX-License-Identifier: Apache-2.0
// Cells: the net at work, made from links and flows: lanes and their buffers, queues between lanes, the way
// of each flow as far as it has no choice.
#include "sim/sim_cells_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define BUFFER 8
#define WARM 400
#define MEASURE 800
#define PATH_MAX_HOPS 64

// --- queues and ways ---

static void use_link(struct cells *c, uint32_t l)
{
    if (c->wire[l].listed)
        return;
    c->wire[l].listed = true;
    if (c->num_used == c->cap_used) {
        c->cap_used = c->cap_used ? c->cap_used * 2 : 256;
        c->used = xreallocarray(c->used, c->cap_used, sizeof(*c->used));
    }
    c->used[c->num_used++] = l;
}

static uint32_t queue_new(struct cells *c, uint32_t in, uint32_t out)
{
    if (c->num_queues == c->cap_queues) {
        c->cap_queues = c->cap_queues ? c->cap_queues * 2 : 256;
        c->queue = xreallocarray(c->queue, c->cap_queues, sizeof(*c->queue));
    }
    uint32_t q = c->num_queues++;
    c->queue[q] = (struct queue){.head = CELLS_NONE,
                                 .tail = CELLS_NONE,
                                 .in = in,
                                 .out = out,
                                 .next_in_ring = CELLS_NONE,
                                 .next_of_input = CELLS_NONE};
    use_link(c, out / c->net.lanes);
    if (in != CELLS_NONE) {
        c->queue[q].next_of_input = c->lane[in].fed;
        c->lane[in].fed = q;
    }
    return q;
}

uint32_t cells_queue_of(struct cells *c, uint32_t in, uint32_t out)
{
    uint64_t key = (uint64_t)in << 32 | out;
    uint32_t q;
    if (u64map_get(&c->by_lanes, key, &q))
        return q;
    q = queue_new(c, in, out);
    u64map_set(&c->by_lanes, key, q);
    return q;
}

uint32_t cells_choices(struct cells *c, uint32_t vertex, uint32_t f)
{
    uint64_t key = (uint64_t)vertex << 32 | c->net.flow[f].dest;
    uint32_t i, link[256];
    if (u64map_get(&c->by_choice, key, &i))
        return i;
    unsigned n = c->net.next(c->net.arg, vertex, f, link), room = n == CELLS_HERE ? 1 : n + 1;
    if (c->num_choice + room > c->cap_choice) {
        c->cap_choice = 2 * c->cap_choice + 512;
        c->choice = xreallocarray(c->choice, c->cap_choice, sizeof(*c->choice));
    }
    i = c->num_choice;
    c->choice[i] = n;
    memcpy(c->choice + i + 1, link, (room - 1) * sizeof(link[0]));
    c->num_choice += room;
    u64map_set(&c->by_choice, key, i);
    return i;
}

// --- flows, links ---

static void path_add(struct cells *c, uint32_t q)
{
    if (c->num_path == c->cap_path) {
        c->cap_path = c->cap_path ? c->cap_path * 2 : 1024;
        c->path = xreallocarray(c->path, c->cap_path, sizeof(*c->path));
    }
    c->path[c->num_path++] = q;
}

// From the source on while there is but one way; a flow that has a choice, or comes back to where it was,
// goes hop by hop.
static void find_path(struct cells *c, uint32_t f, uint32_t first_lane)
{
    struct stream *s = &c->stream[f];
    uint32_t in = first_lane;
    s->path = c->num_path;
    path_add(c, s->queue);
    for (unsigned hops = 0; hops < PATH_MAX_HOPS; hops++) {
        uint32_t l = in / c->net.lanes, i = cells_choices(c, c->net.link[l].to, f), n = c->choice[i];
        s->len = c->num_path - s->path;
        s->end_link = l;
        s->end = n == CELLS_HERE ? END_HERE : END_UNROUTED;
        if (n == CELLS_HERE || n == 0)
            return;
        if (n > 1)
            break;
        uint32_t out = c->choice[i + 1];
        unsigned vl = c->net.lane(c->net.arg, l, out, f);
        if (c->net.link[out].rate <= 0 || vl == CELLS_DROP) {
            s->end_link = out;
            s->end = END_DEAD;
            return;
        }
        uint32_t next = out * c->net.lanes + vl;
        path_add(c, cells_queue_of(c, in, next));
        in = next;
    }
    c->num_path = s->path;
    s->len = 0;
}

static void make_stream(struct cells *c, uint32_t f)
{
    const struct cells_flow *d = &c->net.flow[f];
    struct stream *s = &c->stream[f];
    unsigned vl = c->net.lane(c->net.arg, CELLS_NONE, d->link, f);
    *s = (struct stream){.queue = CELLS_NONE};
    if (c->net.link[d->link].rate <= 0 || vl == CELLS_DROP || !(d->rate > 0))
        return;
    uint32_t lane = d->link * c->net.lanes + vl;
    c->alive++;
    s->queue = queue_new(c, CELLS_NONE, lane);
    c->queue[s->queue].head = f;
    find_path(c, f, lane);
    if (!isinf(d->rate)) {
        s->gap_fp = (uint64_t)(65536 / (d->rate * c->tick_s)) + 1;
        cells_at(c, 2 * c->net.num_links + f,
                 1 + (int64_t)(rng_double(&c->rng) * (double)s->gap_fp / 65536) % (1ll << 40));
    } else { // its first cell comes up at some time
        s->gap_fp = 0;
    }
}

static void set_times(struct cells *c)
{
    double fastest = 0;
    for (uint32_t l = 0; l < c->net.num_links; l++)
        fastest = fmax(fastest, c->net.link[l].rate);
    c->tick_s = fastest > 0 ? 1 / (fastest * TICKS) : 1;
    c->begin = (int64_t)(c->net.warm ? c->net.warm : WARM) * TICKS;
    c->end = c->begin + (int64_t)(c->net.measure ? c->net.measure : MEASURE) * TICKS;
    c->sample_every = (c->end - c->begin) / SAMPLES;
    c->sample_every = c->sample_every > 0 ? c->sample_every : 1;
    c->next_sample = c->sample_every;
    c->last = LONGER * c->begin;
}

static uint32_t fixed(double v) // a link 2000 times slower than the fastest is as slow as any
{
    return (uint32_t)fmin(v + 0.5, UINT32_MAX);
}

static void make_wires(struct cells *c)
{
    for (uint32_t l = 0; l < c->net.num_links; l++) {
        const struct cells_link *d = &c->net.link[l];
        double per = d->rate > 0 ? 65536 / (d->rate * c->tick_s) : 0;
        c->wire[l] = (struct wire){.ticks_fp = fixed(per),
                                   .drain_fp = d->drain > 0 ? fixed(per / (double)d->drain) : 0,
                                   .cell = CELLS_NONE,
                                   .taken = CELLS_NONE,
                                   .first_blame = CELLS_NONE};
        for (unsigned k = 0; k < c->net.lanes; k++)
            c->lane[l * c->net.lanes + k] =
                (struct lane){.credits = c->net.buffer, .ring = CELLS_NONE, .fed = CELLS_NONE, .since = -1};
    }
}

// Flows that always have something begin in an order of chance, each link's first ones.
static void begin_flows(struct cells *c)
{
    uint32_t n = c->net.num_flows, *order = xcalloc(n + 1, sizeof(*order));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = rng_below(&c->rng, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        if (c->stream[order[i]].gap_fp == 0)
            cells_flow_moves(c, order[i]);
    free(order);
}

struct cells *cells_new(const struct cells_net *net)
{
    struct cells *c = xcalloc(1, sizeof(*c));
    c->net = *net;
    c->net.buffer = net->buffer ? net->buffer : BUFFER;
    rng_init(&c->rng, net->seed);
    c->free_cell = CELLS_NONE;
    size_t links = net->num_links, events = 2 * links + net->num_flows;
    c->wire = aligned_alloc(64, (links + 1) * sizeof(*c->wire));
    if (!c->wire)
        abort();
    c->lane = xcalloc(links * net->lanes + 1, sizeof(*c->lane));
    c->stream = xcalloc(net->num_flows + 1u, sizeof(*c->stream));
    c->due = xcalloc(events + 1, sizeof(*c->due));
    c->after = xcalloc(events + 1, sizeof(*c->after));
    memset(c->slot_head, 0xff, sizeof(c->slot_head));
    memset(c->slot_tail, 0xff, sizeof(c->slot_tail));
    u64map_init(&c->by_lanes, NULL, net->num_flows);
    u64map_init(&c->by_choice, NULL, net->num_flows);
    set_times(c);
    make_wires(c);
    for (uint32_t f = 0; f < net->num_flows; f++)
        make_stream(c, f);
    begin_flows(c);
    return c;
}

void cells_free(struct cells *c)
{
    if (!c)
        return;
    u64map_done(&c->by_lanes);
    u64map_done(&c->by_choice);
    free(c->wire);
    free(c->lane);
    free(c->stream);
    free(c->queue);
    free(c->path);
    free(c->cell);
    free(c->choice);
    free(c->used);
    free(c->due);
    free(c->after);
    free(c->blame);
    free(c);
}
