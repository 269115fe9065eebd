// SPDX-License-Identifier: Apache-2.0
// Every host to every other, exactly. The tables make a tree towards each destination; the flows that enter a
// switch of it are the hosts there and what its branches bring, so that counting costs a step per switch and
// not one per pair. A second walk, when the loads are known, gives each flow its bandwidth.
#include "routing/quality_priv.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 64

enum state {
    UNKNOWN,
    ON_PATH,
    ARRIVES,
    FAILS,
};

struct a2a {
    const struct qgraph *g;
    const uint32_t *on; // class of each end, ID_NONE: takes no part; NULL: all in class 0
    uint32_t classes;
    uint32_t **hosts; // per class, per switch: ends
    uint32_t *size;   // per class
    uint32_t num_dests;
    uint32_t *dest; // ends by LID
    uint32_t *source, num_sources;
    const uint32_t *load; // second walk: of all
    uint32_t tasks;
    struct atask *task;
};

struct atask {
    uint8_t *tile;   // entries by destination of a block, then switch
    uint8_t *state;  // per switch
    uint32_t *order; // of the tree, nearest first
    uint32_t *path;
    uint32_t *out;   // per switch: its channel
    uint32_t *value; // per switch: flows that pass; then the most on the way
    uint32_t *load;  // per channel
    uint64_t flows, failed;
    double *sum; // per destination; shared, each writes its own
    double least;
};

static uint32_t class_of(const struct a2a *w, uint32_t end)
{
    return w->on ? w->on[end] : 0;
}

// --- one destination ---

// Follows the entries from one switch to where the outcome is known, and notes it on the way.
static void follow(const struct qgraph *g, struct atask *k, const uint8_t *entry, const struct qend *to,
                   uint32_t from, uint32_t *num)
{
    uint32_t n = 0, s = from;
    enum state r;
    for (;;) {
        if (k->state[s] != UNKNOWN) {
            r = k->state[s] == ON_PATH ? FAILS : (enum state)k->state[s];
            break;
        }
        k->state[s] = ON_PATH;
        k->path[n++] = s;
        uint32_t port = entry[s];
        k->out[s] = s * g->stride + port;
        if (s == to->sw) {
            r = port == to->port ? ARRIVES : FAILS;
            break;
        }
        if (port >= g->stride || g->peer[k->out[s]] == ID_NONE) {
            r = FAILS;
            break;
        }
        s = g->peer[k->out[s]];
    }
    while (n > 0) {
        s = k->path[--n];
        k->state[s] = (uint8_t)r;
        if (r == ARRIVES)
            k->order[(*num)++] = s;
    }
}

static uint32_t tree(const struct a2a *w, struct atask *k, const uint8_t *entry, const struct qend *to)
{
    uint32_t num = 0;
    memset(k->state, UNKNOWN, w->g->n);
    for (uint32_t i = 0; i < w->num_sources; i++) {
        if (k->state[w->source[i]] == UNKNOWN)
            follow(w->g, k, entry, to, w->source[i], &num);
    }
    return num;
}

static void count_dest(const struct a2a *w, struct atask *k, const uint8_t *entry, uint32_t dest)
{
    const struct qgraph *g = w->g;
    const struct qend *to = &g->end[dest];
    uint32_t num = tree(w, k, entry, to), class = class_of(w, dest);
    uint64_t all = 0;
    for (uint32_t i = 0; i < num; i++)
        k->value[k->order[i]] = w->hosts[class][k->order[i]];
    for (uint32_t i = num; i-- > 0;) {
        uint32_t s = k->order[i];
        if (s == to->sw) {
            all = k->value[s] - 1; // without itself
            continue;
        }
        k->load[k->out[s]] += k->value[s];
        k->value[g->peer[k->out[s]]] += k->value[s];
    }
    k->flows += all;
    k->failed += w->size[class] - 1 - all;
}

static void see_dest(const struct a2a *w, struct atask *k, const uint8_t *entry, uint32_t dest)
{
    const struct qgraph *g = w->g;
    const struct qend *to = &g->end[dest];
    uint32_t num = tree(w, k, entry, to), class = class_of(w, dest), own = w->size[class] - 1;
    double sum = 0;
    for (uint32_t i = 0; i < num; i++) {
        uint32_t s = k->order[i], most = own, hosts = w->hosts[class][s];
        if (s == to->sw) {
            hosts--;
        } else {
            uint32_t load = w->load[k->out[s]], before = k->value[g->peer[k->out[s]]];
            most = load > before ? load : before;
        }
        k->value[s] = most;
        if (hosts == 0)
            continue;
        sum += most == own ? hosts : (double)hosts * own / most;
        double least = (double)own / most;
        k->least = least < k->least ? least : k->least;
    }
    k->sum[dest] = sum;
}

// --- all of a task ---

// The entries of one block of LIDs by destination: rows are far apart, so a block of each is read once.
static void turn(const struct qgraph *g, struct atask *k, uint32_t lid0)
{
    if (lid0 >= g->t->lids) {
        memset(k->tile, LFT_DROP, (size_t)BLOCK * g->n);
        return;
    }
    for (uint32_t s0 = 0; s0 < g->n; s0 += BLOCK) {
        uint32_t m = g->n - s0 < BLOCK ? g->n - s0 : BLOCK;
        for (uint32_t l = 0; l < BLOCK; l++) {
            for (uint32_t i = 0; i < m; i++)
                k->tile[(size_t)l * g->n + s0 + i] = g->row[s0 + i][lid0 + l];
        }
    }
}

static void task_run(struct a2a *w, uint32_t i)
{
    const struct qgraph *g = w->g;
    struct atask *k = &w->task[i];
    uint32_t from = (uint32_t)((uint64_t)w->num_dests * i / w->tasks);
    uint32_t to = (uint32_t)((uint64_t)w->num_dests * (i + 1) / w->tasks);
    uint32_t block = ID_NONE;
    for (uint32_t d = from; d < to; d++) {
        uint32_t lid = g->end[w->dest[d]].lid;
        if (lid / BLOCK != block) {
            block = lid / BLOCK;
            turn(g, k, block * BLOCK);
        }
        const uint8_t *entry = k->tile + (size_t)(lid % BLOCK) * g->n;
        if (w->load)
            see_dest(w, k, entry, w->dest[d]);
        else
            count_dest(w, k, entry, w->dest[d]);
    }
}

static void task_start(void *arg, unsigned i)
{
    task_run(arg, i);
}

static int lid_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void prepare(struct a2a *w, struct par *par, struct arena *a)
{
    const struct qgraph *g = w->g;
    uint64_t *by = ARENA_NEW_N(a, g->num_ends + 1, uint64_t);
    w->dest = ARENA_NEW_N(a, g->num_ends + 1, uint32_t);
    w->source = ARENA_NEW_N(a, g->n + 1, uint32_t);
    bool *sends = ARENA_NEW_N(a, g->n + 1, bool);
    w->hosts = ARENA_NEW_N(a, w->classes, uint32_t *);
    w->size = ARENA_NEW_N(a, w->classes, uint32_t);
    for (uint32_t c = 0; c < w->classes; c++)
        w->hosts[c] = ARENA_NEW_N(a, g->n + 1, uint32_t);
    for (uint32_t i = 0; i < g->num_ends; i++) {
        uint32_t c = class_of(w, i);
        if (c == ID_NONE)
            continue;
        by[w->num_dests++] = (uint64_t)g->end[i].lid << 32 | i;
        w->hosts[c][g->end[i].sw]++;
        w->size[c]++;
        sends[g->end[i].sw] = true;
    }
    qsort(by, w->num_dests, sizeof(*by), lid_order);
    for (uint32_t i = 0; i < w->num_dests; i++)
        w->dest[i] = (uint32_t)by[i];
    for (uint32_t s = 0; s < g->n; s++) {
        if (sends[s])
            w->source[w->num_sources++] = s;
    }
    w->tasks = par && par->width > 1 ? par->width : 1;
    w->task = ARENA_NEW_N(a, w->tasks, struct atask);
    double *sum = ARENA_NEW_N(a, g->num_ends + 1, double);
    for (uint32_t i = 0; i < w->tasks; i++)
        w->task[i] = (struct atask){.tile = arena_alloc(a, (size_t)BLOCK * g->n + 1),
                                    .state = arena_alloc(a, g->n + 1),
                                    .order = ARENA_NEW_N(a, g->n + 1, uint32_t),
                                    .path = ARENA_NEW_N(a, g->n + 1, uint32_t),
                                    .out = ARENA_NEW_N(a, g->n + 1, uint32_t),
                                    .value = ARENA_NEW_N(a, g->n + 1, uint32_t),
                                    .load = ARENA_NEW_N(a, (size_t)g->n * g->stride + 1, uint32_t),
                                    .sum = sum,
                                    .least = 1};
}

// --- what it amounts to ---

static struct quality_level *level_of(struct quality_alltoall *r, uint8_t tier, enum quality_dir dir)
{
    for (uint32_t i = 0; i < r->num_levels; i++) {
        if (r->level[i].tier == tier && r->level[i].dir == dir)
            return &r->level[i];
    }
    if (r->num_levels == QUALITY_LEVELS_MAX)
        return &r->level[QUALITY_LEVELS_MAX - 1];
    r->level[r->num_levels] = (struct quality_level){.tier = tier, .dir = dir};
    return &r->level[r->num_levels++];
}

static struct quality_level *level_at(struct quality_alltoall *r, const struct qgraph *g, uint32_t from,
                                      uint32_t to)
{
    uint8_t a = g->f->node[g->node[from]].tier, z = g->f->node[g->node[to]].tier;
    if (a == TIER_NONE || z == TIER_NONE)
        return level_of(r, TIER_NONE, QUALITY_SIDE);
    return level_of(r, a < z ? a : z, z > a ? QUALITY_UP : z < a ? QUALITY_DOWN : QUALITY_SIDE);
}

static int level_order(const void *a, const void *b)
{
    const struct quality_level *x = a, *y = b;
    return x->tier != y->tier ? x->tier - y->tier : (int)x->dir - (int)y->dir;
}

static void levels_sum(const struct qgraph *g, const uint32_t *load, struct quality_alltoall *r)
{
    uint64_t channels = 0, all = 0;
    uint32_t at = ID_NONE;
    for (uint32_t c = 0; c < g->n * g->stride; c++) {
        if (g->peer[c] == ID_NONE)
            continue;
        struct quality_level *v = level_at(r, g, c / g->stride, g->peer[c]);
        v->channels++;
        v->unused += load[c] == 0;
        v->mean += load[c];
        v->max = load[c] > v->max ? load[c] : v->max;
        channels++;
        all += load[c];
        if (load[c] > r->max) {
            r->max = load[c];
            at = c;
        }
    }
    for (uint32_t i = 0; i < r->num_levels; i++) {
        struct quality_level *v = &r->level[i];
        v->mean /= v->channels;
        v->max_over_mean = v->mean > 0 ? (double)v->max / v->mean : 0;
        r->max_over_mean = v->max_over_mean > r->max_over_mean ? v->max_over_mean : r->max_over_mean;
    }
    qsort(r->level, r->num_levels, sizeof(r->level[0]), level_order);
    r->mean_load = channels ? (double)all / (double)channels : 0;
    r->link = quality_link_of(g, at, r->max);
}

static void flows_see(struct a2a *w, struct par *par, struct quality_alltoall *ret)
{
    double sum = 0;
    ret->worst = 1;
    quality_spread(par, w->tasks, task_start, w);
    for (uint32_t i = 0; i < w->tasks; i++)
        ret->worst = w->task[i].least < ret->worst ? w->task[i].least : ret->worst;
    for (uint32_t i = 0; i < w->g->num_ends; i++)
        sum += w->task[0].sum[i];
    ret->mean = sum / (double)ret->flows;
}

void quality_alltoall_of(const struct qgraph *g, const uint32_t *on, uint32_t classes, struct par *par,
                         struct arena *a, struct quality_alltoall *ret, const uint32_t **ret_load)
{
    struct a2a w = {.g = g, .on = on, .classes = classes};
    uint32_t least = UINT32_MAX;
    prepare(&w, par, a);
    quality_spread(par, w.tasks, task_start, &w);
    for (uint32_t i = 0; i < w.tasks; i++) {
        ret->flows += w.task[i].flows;
        ret->failed += w.task[i].failed;
        for (uint32_t c = 0; i > 0 && c < g->n * g->stride; c++)
            w.task[0].load[c] += w.task[i].load[c];
    }
    w.load = w.task[0].load;
    levels_sum(g, w.load, ret);
    *ret_load = w.load;
    if (ret->flows + ret->failed == 0)
        ret->absent = "no host has another to send to";
    if (ret->flows == 0)
        return;
    for (uint32_t c = 0; c < classes; c++)
        least = w.size[c] > 1 && w.size[c] < least ? w.size[c] : least;
    ret->mean = ret->worst = 1;
    if (ret->max > least - 1) // else no cable is worse than the hosts' own
        flows_see(&w, par, ret);
}

void quality_alltoall(const struct qgraph *g, struct par *par, struct arena *a, struct quality_alltoall *ret)
{
    const uint32_t *load;
    quality_alltoall_of(g, NULL, 1, par, a, ret, &load);
}
