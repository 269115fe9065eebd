// SPDX-License-Identifier: Apache-2.0
// Groups along an order of the switches. The entries say whether a switch goes down or up to a destination;
// with that settled, a switch that goes down may take any lower one that goes down (or is the end), one that
// goes up any higher one: whatever is chosen, paths go up and then down and never in a circle, as in
// repair_column.c. Of those the ports on shortest ways are taken, counted as column.c does.
//
// What is settled holds for all LIDs of a column: that which most of their entries say. A LID with an entry
// that does not fit (repairs of fabrics that are no trees make such) has no part in the column's groups.
//
// Tables of which no order is known may keep to one all the same: that which updn would have, if no packet
// goes down and up again in it.
//
// Costs are bytes in rows [switch][column], as in rows.c: additions, minima and comparisons of whole rows.
// One that does not fit leaves entries static.
#include <stdio.h>
#include <string.h>

#include "routing/groups_priv.h"

#define NO_PATH 255
#define COST_MAX 189 // greater ones could overflow with the next step

enum {
    NOWHERE,
    DOWN,
    UP,
};

struct along {
    struct gmake *m;
    const struct rorder *o;
    struct gtask *task;
    uint32_t tasks;
    uint8_t *label;       // [switch * stride + column]
    uint8_t *sure;        // the same: all entries go up
    uint8_t *down, *cost; // the same; down: of going down only
    uint32_t *peer;       // [switch * 256 + port]: switch there, ID_NONE
};

static uint8_t *row_of(const struct along *x, uint8_t *rows, uint32_t s)
{
    return rows + (size_t)s * x->m->stride;
}

// --- directions ---

static void read_peers(struct along *x)
{
    const struct rgraph *g = x->m->g;
    x->peer = ARENA_NEW_N(x->m->a, (size_t)g->n * 256 + 1, uint32_t);
    memset(x->peer, 0xff, (size_t)g->n * 256 * sizeof(*x->peer));
    for (uint32_t s = 0; s < g->n; s++) {
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            for (uint32_t k = 0; k < g->g[i].num_ports; k++)
                x->peer[(size_t)s * 256 + g->ports[g->g[i].first_port + k]] = g->g[i].peer;
        }
    }
}

static void label_switch(struct along *x, uint32_t s)
{
    const struct gmake *m = x->m;
    const uint32_t *peer = x->peer + (size_t)s * 256;
    const uint8_t *entry = tables_row(m->t, s);
    uint8_t *label = row_of(x, x->label, s), *sure = row_of(x, x->sure, s);
    uint32_t way[256]; // what counts: those down, and above them those up
    for (uint32_t p = 0; p < 256; p++)
        way[p] = peer[p] == ID_NONE ? 0 : x->o->pos[peer[p]] < x->o->pos[s] ? 1 : 1u << 16;
    for (uint32_t k = 0; k < m->cols; k++) {
        uint32_t count = 0;
        for (uint32_t i = m->coff[k]; i < m->coff[k + 1]; i++)
            count += way[entry[m->lid[i].lid]];
        uint32_t down = count & 0xffff, up = count >> 16;
        label[k] = count == 0 ? NOWHERE : down >= up ? DOWN : UP;
        sure[k] = up == m->coff[k + 1] - m->coff[k];
        if (m->col_switch[k] == s)
            label[k] = DOWN;
    }
}

// LIDs whose entry at s does not fit what is settled.
static void check_switch(struct along *x, uint32_t s)
{
    struct gmake *m = x->m;
    const uint32_t *peer = x->peer + (size_t)s * 256, *pos = x->o->pos;
    const uint8_t *entry = tables_row(m->t, s), *label = row_of(x, x->label, s);
    const uint8_t *sure = row_of(x, x->sure, s);
    for (uint32_t k = 0; k < m->cols; k++) {
        uint32_t t = m->col_switch[k];
        if (t == s || sure[k] || label[k] == NOWHERE || m->g->comp[s] != m->g->comp[t])
            continue;
        for (uint32_t i = m->coff[k]; i < m->coff[k + 1]; i++) {
            uint32_t w = peer[entry[m->lid[i].lid]];
            bool fits = w != ID_NONE &&
                        (label[k] == UP ? pos[w] > pos[s]
                                        : pos[w] < pos[s] && x->label[(size_t)w * m->stride + k] == DOWN);
            if (!fits)
                atomic_store_explicit(&m->odd[i], GODD_BESIDE, memory_order_relaxed);
        }
    }
}

static void label_task(void *arg, unsigned i)
{
    struct along *x = arg;
    uint32_t n = x->m->n;
    for (uint32_t s = (uint32_t)((uint64_t)n * i / x->tasks); s < (uint64_t)n * (i + 1) / x->tasks; s++)
        label_switch(x, s);
}

static void check_task(void *arg, unsigned i)
{
    struct along *x = arg;
    uint32_t n = x->m->n;
    for (uint32_t s = (uint32_t)((uint64_t)n * i / x->tasks); s < (uint64_t)n * (i + 1) / x->tasks; s++)
        check_switch(x, s);
}

// --- costs, for a chunk of columns ---

static void chunk_min(uint8_t *restrict to, const uint8_t *restrict from, uint8_t step)
{
    uint8_t limit = (uint8_t)(NO_PATH - step);
    for (uint32_t j = 0; j < GCHUNK; j++) {
        uint8_t c = (uint8_t)((from[j] < limit ? from[j] : limit) + step);
        to[j] = c < to[j] ? c : to[j];
    }
}

static void chunk_keep(uint8_t *restrict to, const uint8_t *restrict label, uint8_t which)
{
    for (uint32_t j = 0; j < GCHUNK; j++)
        to[j] = label[j] == which ? to[j] : NO_PATH;
}

static void chunk_take(uint8_t *restrict to, const uint8_t *restrict from, const uint8_t *restrict label,
                       uint8_t which)
{
    for (uint32_t j = 0; j < GCHUNK; j++)
        to[j] = label[j] == which ? from[j] : to[j];
}

static uint8_t step_of(const struct along *x, uint32_t w)
{
    return x->o->foot[w] ? 1 + RCOST_FOOT : 1;
}

// The row `to`, for s, by what its neighbour w offers in row `from`; w itself is one step away, foot or not.
static void relax(const struct along *x, uint8_t *to, uint8_t *from, uint32_t w, uint32_t chunk)
{
    uint32_t own = x->m->column[w] - chunk * GCHUNK; // wraps below, and for none
    chunk_min(to, from, step_of(x, w));
    if (own < GCHUNK)
        to[own] = 1;
}

static void cost_task(void *arg, unsigned chunk)
{
    struct along *x = arg;
    const struct rgraph *g = x->m->g;
    const uint32_t *pos = x->o->pos;
    size_t at = (size_t)chunk * GCHUNK;
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t s = x->o->by_pos[k], own = x->m->column[s] - chunk * GCHUNK;
        uint8_t *down = row_of(x, x->down, s) + at;
        memset(down, NO_PATH, GCHUNK);
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            uint32_t w = g->g[i].peer;
            if (pos[w] < k)
                relax(x, down, row_of(x, x->down, w) + at, w, chunk);
        }
        chunk_keep(down, row_of(x, x->label, s) + at, DOWN);
        if (own < GCHUNK)
            down[own] = 0;
    }
    for (uint32_t k = g->n; k-- > 0;) {
        uint32_t s = x->o->by_pos[k];
        uint8_t *cost = row_of(x, x->cost, s) + at, up[GCHUNK];
        memset(up, NO_PATH, GCHUNK);
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            uint32_t w = g->g[i].peer;
            if (pos[w] > k)
                relax(x, up, row_of(x, x->cost, w) + at, w, chunk);
        }
        memcpy(cost, row_of(x, x->down, s) + at, GCHUNK);
        chunk_take(cost, up, row_of(x, x->label, s) + at, UP);
    }
}

// --- sets ---

struct scratch {
    uint8_t *plane; // [8 groups][column]: which are on a shortest way
    uint8_t *from_down, *from_up, *changes;
};

static void mark_step(uint8_t *restrict plane, const uint8_t *restrict from, const uint8_t *restrict to,
                      uint8_t step, uint8_t bit, uint32_t num)
{
    for (uint32_t j = 0; j < num; j++)
        plane[j] |= (((uint8_t)(to[j] + step) == from[j]) & (to[j] <= COST_MAX)) ? bit : 0;
}

static void mark_groups(struct along *x, uint32_t s, struct scratch *w)
{
    const struct rgraph *g = x->m->g;
    uint32_t stride = x->m->stride, groups = g->goff[s + 1] - g->goff[s];
    const uint8_t *label = row_of(x, x->label, s), *cost = row_of(x, x->cost, s);
    // 0 is nobody's cost plus a step.
    for (uint32_t j = 0; j < stride; j++) {
        w->from_down[j] = label[j] == DOWN && cost[j] != NO_PATH ? cost[j] : 0;
        w->from_up[j] = label[j] == UP && cost[j] != NO_PATH ? cost[j] : 0;
    }
    memset(w->plane, 0, (size_t)(groups + 7) / 8 * stride);
    for (uint32_t k = 0; k < groups; k++) {
        uint32_t v = g->g[g->goff[s] + k].peer, own = x->m->column[v];
        bool below = x->o->pos[v] < x->o->pos[s];
        uint8_t bit = (uint8_t)(1u << (k & 7)), *plane = w->plane + (size_t)(k / 8) * stride;
        const uint8_t *from = below ? w->from_down : w->from_up;
        mark_step(plane, from, row_of(x, below ? x->down : x->cost, v), step_of(x, v), bit, stride);
        if (own != ID_NONE)
            plane[own] = (uint8_t)((plane[own] & ~bit) | (from[own] == 1 ? bit : 0));
    }
}

static void find_changes(const struct scratch *w, uint32_t planes, uint32_t stride)
{
    uint8_t *restrict changes = w->changes;
    memset(changes, 0, stride);
    changes[0] = 1;
    for (uint32_t b = 0; b < planes; b++) {
        const uint8_t *restrict plane = w->plane + (size_t)b * stride;
        for (uint32_t j = 1; j < stride; j++)
            changes[j] |= plane[j] ^ plane[j - 1];
    }
}

static uint16_t intern_column(struct along *x, uint32_t s, const struct scratch *w, uint32_t planes,
                              uint32_t k, struct arena *a)
{
    const struct rgraph *g = x->m->g;
    struct port_set set = {{0}};
    for (uint32_t b = 0; b < planes; b++) {
        for (uint32_t bits = w->plane[(size_t)b * x->m->stride + k]; bits; bits &= bits - 1) {
            const struct rgroup *r = &g->g[g->goff[s] + b * 8 + (uint32_t)__builtin_ctz(bits)];
            for (uint32_t i = 0; i < r->num_ports; i++)
                port_set_add(&set, g->ports[r->first_port + i]);
        }
    }
    return gsets_intern(&x->m->sets[s], &set, a);
}

static void fill_switch(struct along *x, uint32_t s, struct scratch *w, struct arena *a)
{
    struct gmake *m = x->m;
    uint32_t planes = (m->g->goff[s + 1] - m->g->goff[s] + 7) / 8;
    uint16_t *to = m->to + (size_t)s * m->stride, last = GROUP_NONE;
    mark_groups(x, s, w);
    find_changes(w, planes, m->stride);
    for (uint32_t k = 0; k < m->cols; k++) {
        if (w->changes[k])
            last = intern_column(x, s, w, planes, k, a);
        to[k] = last;
    }
}

static void fill_task(void *arg, unsigned i)
{
    struct along *x = arg;
    uint32_t n = x->m->n, stride = x->m->stride;
    struct arena *a = arena_new();
    struct scratch w = {ARENA_NEW_N(a, 32 * (size_t)stride, uint8_t), ARENA_NEW_N(a, stride, uint8_t),
                        ARENA_NEW_N(a, stride, uint8_t), ARENA_NEW_N(a, stride, uint8_t)};
    for (uint32_t s = (uint32_t)((uint64_t)n * i / x->tasks); s < (uint64_t)n * (i + 1) / x->tasks; s++)
        fill_switch(x, s, &w, x->task[i].a);
    arena_free(a);
}

// --- tables of which no order is known ---

#define LIDS 64 // walked side by side

struct turns {
    struct along x;
    const bool *from; // per switch: packets start there
    _Atomic bool down_up;
};

// From every source; whether some packet goes down and up again.
static bool turns_up(const struct turns *u, const uint32_t *next, uint32_t *stamp, uint32_t now)
{
    const uint32_t *pos = u->x.o->pos;
    for (uint32_t s = 0; s < u->x.m->n; s++) {
        bool down = false;
        for (uint32_t v = u->from[s] ? s : ID_NONE; v != ID_NONE && next[v] != ID_NONE; v = next[v]) {
            bool goes_down = pos[next[v]] < pos[v];
            if (down && !goes_down)
                return true;
            if (stamp[v] == now)
                break;
            stamp[v] = now;
            down = goes_down;
        }
    }
    return false;
}

static void turns_task(void *arg, unsigned i)
{
    struct turns *u = arg;
    const struct gmake *m = u->x.m;
    uint32_t n = m->n, blocks = m->f->top_lid / LIDS + 1u;
    struct arena *a = arena_new();
    uint32_t *next = ARENA_NEW_N(a, (size_t)n * LIDS + 1, uint32_t), *stamp = ARENA_NEW_N(a, n + 1, uint32_t);
    for (uint32_t b = i; b < blocks && !u->down_up; b += u->x.tasks) {
        for (uint32_t s = 0; s < n; s++) {
            for (uint32_t l = 0; l < LIDS; l++)
                next[l * (size_t)n + s] =
                    u->x.peer[(size_t)s * 256 + tables_port(m->t, s, (uint16_t)(b * LIDS + l))];
        }
        for (uint32_t l = 0; l < LIDS && !u->down_up; l++) {
            uint32_t lid = b * LIDS + l;
            if (lid <= m->f->top_lid && m->f->lid_port[lid] != ID_NONE &&
                turns_up(u, next + l * (size_t)n, stamp, lid + 1))
                u->down_up = true;
        }
    }
    arena_free(a);
}

bool gorder_holds(struct gmake *m, const struct rorder *o, uint32_t tasks)
{
    bool *from = ARENA_NEW_N(m->a, m->n + 1, bool);
    struct turns u = {.x = {.m = m, .o = o, .tasks = tasks}, .from = from};
    for (uint32_t s = 0; s < m->n; s++) // with lanes, who sends is a matter of these
        from[s] = m->t->lanes != NULL || fabric_has_ends(m->f, s);
    read_peers(&u.x);
    rpar_run(m->o->par, tasks, turns_task, &u);
    return !u.down_up;
}

// --- together ---

bool gorder_fill(struct gmake *m, const struct rorder *o, struct gtask *task, uint32_t tasks)
{
    struct along x = {.m = m, .o = o, .task = task, .tasks = tasks};
    size_t size = (size_t)m->n * m->stride;
    uint32_t odd = 0, all = m->coff[m->cols];
    if (m->cols == 0) {
        snprintf(m->why, sizeof(m->why), "no end nodes, nothing to choose");
        return true;
    }
    x.label = ARENA_NEW_N(m->a, size, uint8_t);
    x.sure = ARENA_NEW_N(m->a, size, uint8_t);
    x.down = ARENA_NEW_N(m->a, size, uint8_t);
    x.cost = ARENA_NEW_N(m->a, size, uint8_t);
    read_peers(&x);
    rpar_run(m->o->par, tasks, label_task, &x);
    rpar_run(m->o->par, tasks, check_task, &x);
    for (uint32_t i = 0; i < all; i++)
        odd += m->odd[i] != 0;
    if (2 * odd > all) { // not the order that these tables keep to
        memset((void *)m->odd, 0, all);
        return false;
    }
    rpar_run(m->o->par, m->stride / GCHUNK, cost_task, &x);
    rpar_run(m->o->par, tasks, fill_task, &x);
    m->beside = true;
    snprintf(m->why, sizeof(m->why), "all shortest ways up and then down the order of the switches");
    if (odd > 0)
        snprintf(m->why + strlen(m->why), sizeof(m->why) - strlen(m->why),
                 "; %u LIDs with entries on other ways have cables side by side only", odd);
    return true;
}
