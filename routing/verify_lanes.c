// SPDX-License-Identifier: Apache-2.0
// The proof of virtual lanes: packets of one lane wait only for buffers of that lane, so each lane's channel
// dependencies by themselves must have no cycle. Like verify.c it shares nothing with what makes tables and
// lanes.
//
// Lanes are those of pairs of switches. Per destination every switch that has a lane for it, with end ports
// or without, is a source; what it sends passes on to the next switch, so from the farthest inwards each
// switch knows the lanes of all that comes by. A packet's answer goes by the packet's lane: where the two
// directions of a pair have different lanes, both count for both. Two switches between which there may be
// traffic (either has end ports) must have a lane that exists.
//
// Parallel over blocks of 64 LIDs, each task with sets of its own. Cost: O(switches x LIDs).
#include "routing/verify_priv.h"

#include <stdio.h>
#include <string.h>

struct task {
    struct arena *a;
    uint64_t *dep[LANES_MAX]; // as in vtask
    uint8_t *next;            // [64][switch]
    uint32_t *to, *path, *order;
    uint16_t *depth; // 0 not known, else hops + 1; AWAY: does not arrive
    uint8_t *lanes;  // what comes by
    uint32_t *count;
    uint32_t bad_from, bad_to; // a pair without a lane; ID_NONE
};
#define AWAY 0xffff
#define DEEP 0xfffe

struct job {
    const struct vcables *c;
    const struct fabric_lanes *l;
    bool *ends; // per switch
    struct task *task;
    uint32_t num_tasks, num_blocks;
};

static void task_new(const struct job *j, struct task *k)
{
    const struct vcables *c = j->c;
    k->a = arena_new();
    for (uint32_t i = 0; i < j->l->num_lanes; i++)
        k->dep[i] = ARENA_NEW_N(k->a, ((size_t)c->n * c->ports + 1) * c->words, uint64_t);
    k->next = ARENA_NEW_N(k->a, (size_t)c->n * BLOCK + 1, uint8_t);
    k->to = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->path = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->order = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->count = ARENA_NEW_N(k->a, c->n + 2, uint32_t);
    k->depth = ARENA_NEW_N(k->a, c->n + 1, uint16_t);
    k->lanes = ARENA_NEW_N(k->a, c->n + 1, uint8_t);
    k->bad_from = k->bad_to = ID_NONE;
}

static void turn_block(const struct vcables *c, uint8_t *restrict next, uint32_t lid0)
{
    for (uint32_t s = 0; s < c->n; s++) {
        for (uint32_t l = 0; l < BLOCK; l++)
            next[l * (size_t)c->n + s] = tables_port(c->t, s, (uint16_t)(lid0 + l));
    }
}

// How far each switch's packets have to go, for those that arrive; switches by that in `order`, their number.
static uint32_t sort_by_depth(const struct vcables *c, struct task *k)
{
    uint32_t deepest = 0, num = 0;
    memset(k->depth, 0, c->n * sizeof(*k->depth));
    for (uint32_t s = 0; s < c->n; s++) {
        uint32_t n = 0, v = s, d;
        while (v < c->n && k->depth[v] == 0) {
            k->depth[v] = AWAY; // until known: so a loop ends here, too
            k->path[n++] = v;
            v = k->to[v];
        }
        d = v == LINK_ARRIVES ? 0 : v < c->n ? k->depth[v] : AWAY;
        while (n > 0) {
            d = d >= DEEP ? AWAY : d + 1;
            k->depth[k->path[--n]] = (uint16_t)d;
        }
    }
    memset(k->count, 0, (c->n + 2) * sizeof(*k->count));
    for (uint32_t s = 0; s < c->n; s++) {
        if (k->depth[s] == AWAY)
            continue;
        k->count[k->depth[s]]++;
        deepest = k->depth[s] > deepest ? k->depth[s] : deepest;
        num++;
    }
    for (uint32_t d = 1; d <= deepest; d++)
        k->count[d] += k->count[d - 1];
    for (uint32_t s = 0; s < c->n; s++) {
        if (k->depth[s] != AWAY)
            k->order[--k->count[k->depth[s]]] = s;
    }
    return num;
}

static void bring_lanes(const struct job *j, struct task *k, uint32_t from, uint32_t to)
{
    unsigned there = lanes_get(j->l, from, to), back = lanes_get(j->l, to, from);
    if (there < j->l->num_lanes && back < j->l->num_lanes) {
        k->lanes[from] |= (uint8_t)(1u << there | 1u << back);
        return;
    }
    bool none = there == LANE_NONE && back == LANE_NONE;
    if (from == to || (none && !j->ends[from] && !j->ends[to]))
        return;
    if (k->bad_from == ID_NONE) {
        k->bad_from = from;
        k->bad_to = to;
    }
}

static void prove_lid(const struct job *j, struct task *k, const uint8_t *next, uint32_t lid)
{
    const struct vcables *c = j->c;
    uint32_t sw;
    uint8_t port;
    if (!vend_of(c->f, lid, &sw, &port))
        return;
    for (uint32_t v = 0; v < c->n; v++)
        k->to[v] = vfar_end(c, v, next[v]);
    if (next[sw] == port)
        k->to[sw] = LINK_ARRIVES;
    memset(k->lanes, 0, c->n);
    uint32_t num = sort_by_depth(c, k);
    while (num > 0) {
        uint32_t v = k->order[--num], w = k->to[v];
        bring_lanes(j, k, v, sw);
        if (w >= c->n)
            continue;
        k->lanes[w] |= k->lanes[v];
        if (k->to[w] >= c->n)
            continue;
        size_t at = ((size_t)v * c->ports + next[v]) * c->words + (next[w] - 1u) / 64;
        for (uint32_t m = k->lanes[v]; m != 0; m &= m - 1)
            k->dep[__builtin_ctz(m)][at] |= 1ULL << ((next[w] - 1u) % 64);
    }
}

static void prove_task(void *arg, unsigned i)
{
    const struct job *j = arg;
    struct task *k = &j->task[i];
    uint32_t from = (uint32_t)((uint64_t)j->num_blocks * i / j->num_tasks);
    uint32_t to = (uint32_t)((uint64_t)j->num_blocks * (i + 1) / j->num_tasks);
    for (uint32_t b = from; b < to; b++) {
        turn_block(j->c, k->next, b * BLOCK);
        for (uint32_t l = 0; l < BLOCK; l++) {
            if (vpresent(j->c->f, b * BLOCK + l))
                prove_lid(j, k, k->next + l * (size_t)j->c->n, b * BLOCK + l);
        }
    }
}

// --- words ---

static void add_hop(const struct vcables *c, uint32_t before, uint32_t chan, char *buf, size_t size)
{
    char name[160];
    uint32_t sw = chan / c->ports, prev = before / c->ports;
    const struct port *p = &c->f->port[c->f->node[c->f->switch_node[prev]].first_port + before % c->ports];
    size_t n = strlen(buf);
    fabric_node_name(c->f, &c->f->node[c->f->switch_node[sw]], name, sizeof(name));
    if (n + 20 < size)
        snprintf(buf + n, size - n, "%s[%u/%u] -> ", name,
                 port_valid(p->peer) ? c->f->port[p->peer.i].num : 0, chan % c->ports);
}

static void cycle_text(const struct vcables *c, uint32_t lane, const uint32_t *cycle, uint32_t n, char *buf,
                       size_t size)
{
    snprintf(buf, size, "credit loop on lane %u over %u cables: ", lane, n);
    for (uint32_t i = 0; i < n; i++)
        add_hop(c, cycle[(i + n - 1) % n], cycle[i], buf, size);
    size_t at = strlen(buf), room = sizeof("back to the first");
    if (at + room > size)
        at = size - room;
    snprintf(buf + at, size - at, "back to the first");
}

static void pair_text(const struct job *j, const struct task *k, char *buf, size_t size)
{
    const struct fabric *f = j->c->f;
    char a[160], b[160];
    unsigned lane = lanes_get(j->l, k->bad_from, k->bad_to);
    if (lane < j->l->num_lanes)
        lane = lanes_get(j->l, k->bad_to, k->bad_from);
    fabric_node_name(f, &f->node[f->switch_node[k->bad_from]], a, sizeof(a));
    fabric_node_name(f, &f->node[f->switch_node[k->bad_to]], b, sizeof(b));
    if (lane == LANE_NONE)
        snprintf(buf, size, "%s to %s: no lane for this pair", a, b);
    else
        snprintf(buf, size, "%s to %s: lane %u, there are %u", a, b, lane, j->l->num_lanes);
}

// --- together ---

static void merge(struct job *j)
{
    const struct vcables *c = j->c;
    struct task *k0 = &j->task[0];
    for (uint32_t i = 1; i < j->num_tasks; i++) {
        const struct task *k = &j->task[i];
        for (uint32_t l = 0; l < j->l->num_lanes; l++) {
            for (size_t x = 0; x < (size_t)c->n * c->ports * c->words; x++)
                k0->dep[l][x] |= k->dep[l][x];
        }
        if (k0->bad_from == ID_NONE) {
            k0->bad_from = k->bad_from;
            k0->bad_to = k->bad_to;
        }
    }
}

enum route_fault vlanes_prove(const struct vcables *c, struct par *par, char *text, size_t size)
{
    const struct fabric_lanes *l = c->t->lanes;
    if (l->num_switches != c->n || l->num_lanes > LANES_MAX || l->num_lanes == 0) {
        snprintf(text, size, "the lanes are of another fabric, or too many: %u switches, %u lanes",
                 l->num_switches, l->num_lanes);
        return ROUTE_NO_LANE;
    }
    struct arena *a = arena_new();
    struct job j = {.c = c, .l = l, .num_blocks = c->f->top_lid / BLOCK + 1u};
    j.ends = ARENA_NEW_N(a, c->n + 1, bool);
    for (size_t i = 0; i < (size_t)c->n * c->ports; i++)
        j.ends[i / c->ports] |= i % c->ports != 0 && c->link[i] == LINK_END;
    j.num_tasks = par && par->width > 1 ? par->width : 1;
    j.task = ARENA_NEW_N(a, j.num_tasks, struct task);
    for (uint32_t i = 0; i < j.num_tasks; i++)
        task_new(&j, &j.task[i]);
    if (par)
        par->run(par, j.num_tasks, prove_task, &j);
    else
        prove_task(&j, 0);
    merge(&j);
    enum route_fault r = ROUTE_OK;
    if (j.task[0].bad_from != ID_NONE) {
        pair_text(&j, &j.task[0], text, size);
        r = ROUTE_NO_LANE;
    }
    for (uint32_t i = 0; r == ROUTE_OK && i < l->num_lanes; i++) {
        uint32_t n, *cycle = vfind_cycle(c, j.task[0].dep[i], a, &n);
        if (cycle) {
            cycle_text(c, i, cycle, n, text, size);
            r = ROUTE_CREDIT_LOOP;
        }
    }
    for (uint32_t i = 0; i < j.num_tasks; i++)
        arena_free(j.task[i].a);
    arena_free(a);
    return r;
}
