// SPDX-License-Identifier: Apache-2.0
// Groups for tables of which no order of switches is known. A packet that holds one channel (a cable, in one
// direction) waits for the next; where the tables' dependencies have no cycle, each channel has a level, the
// longest way of dependencies that leads to it, and all packets go from lower levels to higher ones. Choices
// that do so too can close no cycle, nor can packets that choose ever come back: so per column, from the
// destination outwards, a switch gets those ports on a shortest way
//   above all by which the tables bring packets of that column to it, and
//   below all by which packets go on at the next switch,
// where the next is a switch all of whose entries for the column lead from lower to higher levels, too: the
// tables may bring nothing of the kind there, by that lane, so that their dependencies say nothing of it. So
// packets that chose once never meet anything that does not fit. With lanes there are levels for each, and
// what is chosen must fit all lanes that are in use to the destination.
//
// All cables from one switch to another count as one channel; then any of them may stand for any other. Where
// that makes a cycle, each counts for itself. Where there is one still, nothing can be chosen.
//
// Memory: 32 bytes for each group of cables, lane and task; 32 bytes for each switch and each of 128 columns.
#include <stdio.h>
#include <string.h>

#include "routing/groups_priv.h"

#define NO_NODE 255
#define LIDS 64 // walked side by side

struct walker {                    // scratch of one task
    uint64_t (*dep[LANES_MAX])[4]; // per node: groups of the switch that it leads to
    uint8_t *used;                 // per node: lanes
    uint8_t *next;                 // [64][switch]: group of the switch, NO_NODE
    uint8_t *lanes;                // per switch
    uint32_t *in, *queue;
};

struct levels {
    struct gmake *m;
    struct rgraph g; // whose groups are the nodes
    struct gtask *task;
    uint32_t tasks;
    uint8_t *node_at; // [switch * 256 + port]: position among the switch's groups
    uint32_t lanes;
    bool *ends;
    struct walker *w; // of each walking task
    uint32_t walkers;
    uint32_t *level[LANES_MAX]; // per node, 0: not in use
    uint32_t *col_of;           // per LID: position in m->lid, ID_NONE
    _Atomic uint8_t *carries;   // [switch * stride + column]: the tables bring something there
    struct port_set *set;       // [column of the chunk * n + switch]
    uint32_t chunk;
};

// --- nodes ---

// Each cable for itself.
static void split_groups(const struct rgraph *from, struct rgraph *to, struct arena *a)
{
    uint32_t ports = 0, n = 0;
    for (uint32_t i = 0; i < from->num_groups; i++)
        ports += from->g[i].num_ports;
    *to = *from;
    to->goff = ARENA_NEW_N(a, from->n + 1, uint32_t);
    to->g = ARENA_NEW_N(a, ports + 1, struct rgroup);
    for (uint32_t s = 0; s < from->n; s++) {
        to->goff[s] = n;
        for (uint32_t i = from->goff[s]; i < from->goff[s + 1]; i++) {
            for (uint32_t k = 0; k < from->g[i].num_ports; k++)
                to->g[n++] = (struct rgroup){from->g[i].peer, from->g[i].first_port + k, 1};
        }
    }
    to->goff[from->n] = to->num_groups = n;
}

static void read_nodes(struct levels *x)
{
    const struct rgraph *g = &x->g;
    memset(x->node_at, NO_NODE, (size_t)g->n * 256);
    for (uint32_t s = 0; s < g->n; s++) {
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            for (uint32_t k = 0; k < g->g[i].num_ports; k++)
                x->node_at[(size_t)s * 256 + g->ports[g->g[i].first_port + k]] = (uint8_t)(i - g->goff[s]);
        }
    }
}

static void find_ends(struct levels *x)
{
    x->ends = ARENA_NEW_N(x->m->a, x->m->n + 1, bool);
    for (uint32_t s = 0; s < x->m->n; s++)
        x->ends[s] = fabric_has_ends(x->m->f, s);
}

// Lanes of what s sends to t, and of the answers.
static uint8_t lanes_of(const struct levels *x, uint32_t s, uint32_t t)
{
    const struct fabric_lanes *l = x->m->t->lanes;
    if (!l)
        return x->ends[s];
    unsigned there = lanes_get(l, s, t), back = lanes_get(l, t, s);
    return (uint8_t)((there < x->lanes ? 1u << there : 0) | (back < x->lanes ? 1u << back : 0));
}

// --- what the tables make ---

static void walk_lid(struct levels *x, struct walker *w, const uint8_t *next, uint32_t lid, uint32_t t)
{
    const struct rgraph *g = &x->g;
    uint32_t n = g->n, head = 0, tail = 0, at = lid < x->m->t->lids ? x->col_of[lid] : ID_NONE, ways = 0;
    uint32_t column = x->m->column[t];
    memset(w->in, 0, n * sizeof(*w->in));
    for (uint32_t s = 0; s < n; s++) {
        w->lanes[s] = s == t ? 0 : lanes_of(x, s, t);
        if (next[s] == NO_NODE)
            continue;
        w->in[g->g[g->goff[s] + next[s]].peer]++;
        ways++;
    }
    for (uint32_t s = 0; s < n; s++) {
        if (w->in[s] == 0)
            w->queue[tail++] = s;
    }
    while (head < tail) {
        uint32_t s = w->queue[head++];
        if (w->lanes[s] && at != ID_NONE)
            atomic_store_explicit(&x->carries[(size_t)s * x->m->stride + column], 1, memory_order_relaxed);
        if (next[s] == NO_NODE)
            continue;
        uint32_t node = g->goff[s] + next[s], v = g->g[node].peer;
        ways--;
        w->used[node] |= w->lanes[s];
        w->lanes[v] |= w->lanes[s];
        for (uint32_t k = w->lanes[s]; k != 0 && next[v] != NO_NODE; k &= k - 1)
            w->dep[__builtin_ctz(k)][node][next[v] / 64] |= 1ULL << (next[v] % 64);
        if (--w->in[v] == 0)
            w->queue[tail++] = v;
    }
    if (ways > 0 && at != ID_NONE) // some go in a circle
        atomic_store_explicit(&x->m->odd[at], GODD_STATIC, memory_order_relaxed);
}

static void walk_task(void *arg, unsigned i)
{
    struct levels *x = arg;
    struct walker *w = &x->w[i];
    const struct fabric_tables *t = x->m->t;
    uint32_t n = x->g.n, blocks = (x->m->f->top_lid + LIDS) / LIDS, sw;
    uint8_t port;
    for (uint32_t b = i; b < blocks; b += x->walkers) {
        for (uint32_t s = 0; s < n; s++) {
            for (uint32_t l = 0; l < LIDS; l++)
                w->next[l * (size_t)n + s] =
                    x->node_at[(size_t)s * 256 + tables_port(t, s, (uint16_t)(b * LIDS + l))];
        }
        for (uint32_t l = 0; l < LIDS; l++) {
            uint32_t lid = b * LIDS + l;
            if (lid == 0 || lid > x->m->f->top_lid || x->m->f->lid_port[lid] == ID_NONE ||
                !rattachment(x->m->f, x->m->f->lid_port[lid], &sw, &port))
                continue;
            walk_lid(x, w, w->next + l * (size_t)n, lid, sw);
        }
    }
}

static void walk_all(struct levels *x, struct arena *a)
{
    size_t nodes = x->g.num_groups + 1;
    for (uint32_t i = 0; i < x->walkers; i++) {
        struct walker *w = &x->w[i];
        *w = (struct walker){.used = ARENA_NEW_N(a, nodes, uint8_t)};
        for (uint32_t k = 0; k < x->lanes; k++)
            w->dep[k] = arena_array(a, nodes, sizeof(*w->dep[k]));
        w->next = ARENA_NEW_N(a, (size_t)x->g.n * LIDS + 1, uint8_t);
        w->lanes = ARENA_NEW_N(a, x->g.n + 1, uint8_t);
        w->in = ARENA_NEW_N(a, x->g.n + 1, uint32_t);
        w->queue = ARENA_NEW_N(a, x->g.n + 1, uint32_t);
    }
    rpar_run(x->m->o->par, x->walkers, walk_task, x);
    for (uint32_t i = 1; i < x->walkers; i++) {
        for (size_t k = 0; k < nodes; k++)
            x->w[0].used[k] |= x->w[i].used[k];
        for (uint32_t l = 0; l < x->lanes; l++) {
            for (size_t k = 0; k < 4 * nodes; k++)
                x->w[0].dep[l][k / 4][k % 4] |= x->w[i].dep[l][k / 4][k % 4];
        }
    }
}

// --- levels ---

// The next node that one leads on to, from bit `from` on; NO_NODE at the end.
static uint32_t next_bit(const uint64_t set[4], uint32_t from)
{
    for (uint32_t i = from / 64; i < 4; i++) {
        uint64_t left = set[i] & (i == from / 64 ? ~0ULL << (from % 64) : ~0ULL);
        if (left)
            return i * 64 + (uint32_t)__builtin_ctzll(left);
    }
    return NO_NODE;
}

// False when there is a cycle.
static bool find_levels(struct levels *x, uint32_t lane, struct arena *a)
{
    const struct rgraph *g = &x->g;
    const struct walker *w = &x->w[0];
    uint32_t nodes = g->num_groups, head = 0, tail = 0, used = 0;
    uint32_t *in = ARENA_NEW_N(a, nodes + 1, uint32_t), *queue = ARENA_NEW_N(a, nodes + 1, uint32_t);
    uint32_t *level = x->level[lane] = ARENA_NEW_N(a, nodes + 1, uint32_t);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t first = g->goff[g->g[i].peer];
        for (uint32_t k = 0; (k = next_bit(w->dep[lane][i], k)) != NO_NODE; k++)
            in[first + k]++;
        used += w->used[i] >> lane & 1;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        if (in[i] == 0 && (w->used[i] >> lane & 1)) {
            level[i] = 1;
            queue[tail++] = i;
        }
    }
    while (head < tail) {
        uint32_t i = queue[head++], first = g->goff[g->g[i].peer];
        for (uint32_t k = 0; (k = next_bit(w->dep[lane][i], k)) != NO_NODE; k++) {
            uint32_t j = first + k;
            level[j] = level[i] + 1 > level[j] ? level[i] + 1 : level[j];
            if (--in[j] == 0)
                queue[tail++] = j;
        }
    }
    return tail == used;
}

// --- one column ---

struct column {
    uint32_t t, lanes; // in use to it
    uint32_t *dist, *queue, num;
    bool *ok; // may be chosen to go to
    // [switch * LANES_MAX + lane]
    uint32_t *above, *below; // levels by which it is come to, at most; by which is gone on, at least
};

static void find_dist(const struct rgraph *g, struct column *c)
{
    memset(c->dist, 0xff, g->n * sizeof(*c->dist));
    c->num = 0;
    c->queue[c->num++] = c->t;
    c->dist[c->t] = 0;
    for (uint32_t head = 0; head < c->num; head++) {
        uint32_t v = c->queue[head];
        for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++) {
            uint32_t u = g->g[i].peer;
            if (c->dist[u] == ID_NONE) {
                c->dist[u] = c->dist[v] + 1;
                c->queue[c->num++] = u;
            }
        }
    }
}

static bool carries(const struct levels *x, uint32_t s, uint32_t k)
{
    return atomic_load_explicit(&x->carries[(size_t)s * x->m->stride + k], memory_order_relaxed) != 0;
}

// Nodes of the entries of s for the column, each once, in *ret; false when some LID has none.
static bool entries_of(const struct levels *x, uint32_t s, uint32_t k, uint64_t ret[4])
{
    const struct gmake *m = x->m;
    const uint8_t *row = tables_row(m->t, s);
    bool all = true;
    memset(ret, 0, 4 * sizeof(*ret));
    for (uint32_t i = m->coff[k]; i < m->coff[k + 1]; i++) {
        uint8_t node = x->node_at[(size_t)s * 256 + row[m->lid[i].lid]];
        if (m->odd[i] == GODD_STATIC)
            continue;
        if (node == NO_NODE)
            all = false;
        else
            ret[node / 64] |= 1ULL << (node % 64);
    }
    return all;
}

static void find_above(const struct levels *x, struct column *c, uint32_t k)
{
    const struct rgraph *g = &x->g;
    uint64_t set[4];
    memset(c->above, 0, (size_t)g->n * LANES_MAX * sizeof(*c->above));
    for (uint32_t s = 0; s < g->n; s++) {
        if (s == c->t || !carries(x, s, k))
            continue;
        entries_of(x, s, k, set);
        for (uint32_t i = 0; (i = next_bit(set, i)) != NO_NODE; i++) {
            uint32_t node = g->goff[s] + i, v = g->g[node].peer;
            for (uint32_t l = 0; l < x->lanes; l++) {
                uint32_t *a = &c->above[v * LANES_MAX + l], level = x->level[l][node];
                *a = level > *a ? level : *a;
            }
        }
    }
}

// Whether a step by a node fits between what brings packets to it, when asked, and what goes on behind it.
static bool fits(const struct levels *x, const struct column *c, uint32_t s, uint32_t node, bool behind)
{
    uint32_t v = x->g.g[node].peer;
    if (!c->ok[v] || c->dist[v] >= c->dist[s])
        return false;
    for (uint32_t m = c->lanes; m != 0; m &= m - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(m), level = x->level[l][node];
        if (level == 0 || level >= c->below[v * LANES_MAX + l] ||
            (behind && level <= c->above[s * LANES_MAX + l]))
            return false;
    }
    return true;
}

static void put_below(const struct levels *x, struct column *c, uint32_t s, uint32_t node)
{
    for (uint32_t l = 0; l < x->lanes; l++) {
        uint32_t *b = &c->below[s * LANES_MAX + l], level = x->level[l][node];
        *b = level < *b ? level : *b;
    }
}

static void column_switch(const struct levels *x, struct column *c, uint32_t k, uint32_t s,
                          struct port_set *ret)
{
    const struct rgraph *g = &x->g;
    uint64_t set[4];
    memset(&c->below[s * LANES_MAX], 0xff, LANES_MAX * sizeof(*c->below));
    c->ok[s] = entries_of(x, s, k, set);
    for (uint32_t i = 0; (i = next_bit(set, i)) != NO_NODE; i++) {
        c->ok[s] &= fits(x, c, s, g->goff[s] + i, false);
        put_below(x, c, s, g->goff[s] + i);
    }
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (!fits(x, c, s, i, true))
            continue;
        put_below(x, c, s, i);
        for (uint32_t p = 0; p < g->g[i].num_ports; p++)
            port_set_add(ret, g->ports[g->g[i].first_port + p]);
    }
}

static void column_init(struct column *c, uint32_t n, struct arena *a)
{
    c->dist = ARENA_NEW_N(a, n + 1, uint32_t);
    c->queue = ARENA_NEW_N(a, n + 1, uint32_t);
    c->ok = ARENA_NEW_N(a, n + 1, bool);
    c->above = ARENA_NEW_N(a, ((size_t)n + 1) * LANES_MAX, uint32_t);
    c->below = ARENA_NEW_N(a, ((size_t)n + 1) * LANES_MAX, uint32_t);
}

static void column_task(void *arg, unsigned i)
{
    const struct levels *x = arg;
    struct arena *a = arena_new();
    struct column c;
    uint32_t n = x->g.n, first = x->chunk * GCHUNK;
    column_init(&c, n, a);
    for (uint32_t k = first + i; k < first + GCHUNK && k < x->m->cols; k += x->tasks) {
        struct port_set *set = x->set + (size_t)(k - first) * n;
        c.t = x->m->col_switch[k];
        c.lanes = 0;
        memset(set, 0, n * sizeof(*set));
        memset(c.ok, 0, n * sizeof(*c.ok));
        for (uint32_t s = 0; s < n; s++)
            c.lanes |= s == c.t ? 0 : lanes_of(x, s, c.t);
        find_dist(&x->g, &c);
        find_above(x, &c, k);
        c.ok[c.t] = true;
        memset(&c.below[c.t * LANES_MAX], 0xff, LANES_MAX * sizeof(*c.below));
        for (uint32_t q = 1; q < c.num; q++)
            column_switch(x, &c, k, c.queue[q], &set[c.queue[q]]);
    }
    arena_free(a);
}

static void intern_task(void *arg, unsigned i)
{
    const struct levels *x = arg;
    struct gmake *m = x->m;
    uint32_t n = m->n, first = x->chunk * GCHUNK;
    for (uint32_t s = (uint32_t)((uint64_t)n * i / x->tasks); s < (uint64_t)n * (i + 1) / x->tasks; s++) {
        for (uint32_t k = first; k < first + GCHUNK && k < m->cols; k++)
            m->to[(size_t)s * m->stride + k] =
                gsets_intern(&m->sets[s], &x->set[(size_t)(k - first) * n + s], x->task[i].a);
    }
}

// --- together ---

static bool all_levels(struct levels *x, struct arena *a)
{
    bool acyclic = true;
    read_nodes(x);
    walk_all(x, a);
    for (uint32_t l = 0; l < x->lanes && acyclic; l++)
        acyclic = find_levels(x, l, a);
    return acyclic;
}

static void none_at_all(struct gmake *m)
{
    for (uint32_t i = 0; i < m->coff[m->cols]; i++)
        m->odd[i] = GODD_STATIC;
    snprintf(m->why, sizeof(m->why), "the tables have a credit loop: no choice can be added to them");
}

static void fill(struct levels *x, struct arena *a)
{
    struct gmake *m = x->m;
    size_t lids = m->t->lids;
    x->node_at = ARENA_NEW_N(a, (size_t)m->n * 256 + 1, uint8_t);
    x->carries = (_Atomic uint8_t *)ARENA_NEW_N(a, (size_t)m->n * m->stride + 1, uint8_t);
    x->col_of = ARENA_NEW_N(a, lids + 1, uint32_t);
    memset(x->col_of, 0xff, lids * sizeof(*x->col_of));
    for (uint32_t i = 0; i < m->coff[m->cols]; i++)
        x->col_of[m->lid[i].lid] = i;
    x->walkers = m->o->par && m->o->par->width > 1 ? m->o->par->width : 1;
    x->w = ARENA_NEW_N(a, x->walkers, struct walker);
    find_ends(x);
    m->beside = all_levels(x, a);
    if (!m->beside) {
        split_groups(m->g, &x->g, a);
        if (!all_levels(x, a)) {
            none_at_all(m);
            return;
        }
    }
    x->set = ARENA_NEW_N(a, (size_t)m->n * GCHUNK + 1, struct port_set);
    for (x->chunk = 0; x->chunk < m->stride / GCHUNK; x->chunk++) {
        rpar_run(m->o->par, x->tasks, column_task, x);
        rpar_run(m->o->par, x->tasks, intern_task, x);
    }
    snprintf(m->why, sizeof(m->why), "shortest ways that fit between the dependencies of the tables%s%s",
             x->lanes > 1 ? ", on all lanes" : "", m->beside ? "" : "; not all cables side by side do");
}

void glevel_fill(struct gmake *m, struct gtask *task, uint32_t tasks)
{
    struct levels x = {.m = m, .g = *m->g, .task = task, .tasks = tasks, .lanes = 1};
    const struct fabric_lanes *l = m->t->lanes;
    if (l && (l->num_switches != m->n || l->num_lanes > LANES_MAX)) {
        none_at_all(m);
        snprintf(m->why, sizeof(m->why), "the lanes are of another fabric");
        return;
    }
    if (l)
        x.lanes = l->num_lanes;
    struct arena *a = arena_new();
    fill(&x, a);
    arena_free(a);
}
