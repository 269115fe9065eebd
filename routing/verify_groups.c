// SPDX-License-Identifier: Apache-2.0
// The proof of adaptive-routing groups: whatever a switch chooses of a group, each time anew, packets arrive,
// and do not wait for each other in a circle. Like verify.c it shares nothing with what makes tables and
// groups.
//
// Per LID the ports that each switch may send by make a graph. Walking it from every source must meet no
// switch that it is coming from, no dead port, and no end but the right one. On the way it notes after which
// channel which others may be entered: those dependencies, of all choices together, must have no cycle on any
// lane, those of the multicast trees included, which may go by any lane.
//
// LIDs on one switch for which all switches may choose the same are walked once: who goes with whom is found
// by a hash of all entries, and then compared entry by entry.
//
// Parallel over such classes, each task with sets of its own. Cost: O(switches x LIDs) for the comparison,
// and the ports of all groups together for each class.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "routing/groups.h"
#include "routing/mcast.h"
#include "routing/verify_priv.h"

struct kind {
    uint16_t lid; // the lowest, which stands for all
    uint32_t num;
    uint32_t end;
    uint8_t end_port;
};

struct ports { // bit p % 64 of word p / 64
    uint64_t w[4];
};

struct task {
    struct arena *a;
    uint64_t *dep[LANES_MAX]; // as in vtask: [channel * words], bit 0 is port 1
    struct ports *outs;       // per switch, of the class
    uint8_t *seen;            // per switch
    uint32_t *depth, *path, *order;
    struct ports *left; // per place on the path: ports not yet gone
    uint8_t *lanes;
    uint32_t num_order, max_hops;
    uint64_t pairs;
    enum groups_fault fault;
    uint16_t fault_lid;
    char *text; // room for words about a fault, or NULL
    size_t size;
};
enum { UNSEEN, ON_PATH, DONE };

struct job {
    struct vcables c;
    const struct fabric_groups *g;
    struct task *task;
    uint32_t num_tasks;
    struct key {
        uint64_t hash;
        uint32_t end; // ID_NONE: not walked to
        uint16_t lid;
        uint8_t end_port;
        bool own; // by itself, whatever the hash says
    } * key;
    uint32_t num_keys;
    uint32_t *first; // per key: the one that stands for it
    struct kind *kind;
    uint32_t num_kinds, lanes;
    _Atomic uint32_t taken;
};

// --- shape ---

static bool shape_text(const struct vcables *c, const struct fabric_groups *g, const uint16_t *cap,
                       struct groups_proof *r)
{
    char name[160];
    r->fault = GROUPS_MALFORMED;
    if (g->num_switches != c->n || c->t->num_switches != c->n || g->ports < c->ports) {
        snprintf(r->counter_example, sizeof(r->counter_example),
                 "the groups are of another fabric: %u switches, %u here", g->num_switches, c->n);
        return false;
    }
    for (uint32_t lid = 0; lid < g->lids; lid++) {
        if (g->lid_switch[lid] < c->n || g->lid_switch[lid] == ID_NONE)
            continue;
        snprintf(r->counter_example, sizeof(r->counter_example), "LID %u is said to hang on switch %u of %u",
                 lid, g->lid_switch[lid], c->n);
        return false;
    }
    for (uint32_t s = 0; s < c->n; s++) {
        uint32_t num = groups_of(g, s), holds = cap ? cap[s] : GROUPS_CAP_MAX;
        bool sound = g->first[s] <= g->first[s + 1] && num < GROUP_NONE;
        for (uint32_t i = 0; i < c->n && sound; i++) {
            uint16_t to = g->to[(size_t)s * c->n + i];
            sound = to < num || to == GROUP_NONE;
        }
        for (uint32_t p = 0; p < g->ports && sound; p++) {
            uint16_t to = g->beside[(size_t)s * g->ports + p];
            sound = to < num || to == GROUP_NONE;
        }
        for (uint32_t i = 0; i < num && sound; i++) {
            const struct fabric_group *x = &g->group[g->first[s] + i];
            sound = (i == 0 || x[-1].id < x->id) && !(x->ports.w[0] & 1);
        }
        bool over = sound && num > 0 && (num > holds || g->group[g->first[s] + num - 1].id >= holds);
        if (sound && !over)
            continue;
        fabric_node_name(c->f, fabric_switch(c->f, s), name, sizeof(name));
        if (over) {
            r->fault = GROUPS_OVER_CAP;
            snprintf(r->counter_example, sizeof(r->counter_example),
                     "%s: %u groups, the highest id %u; it holds %u", name, num,
                     g->group[g->first[s] + num - 1].id, holds);
            return false;
        }
        snprintf(r->counter_example, sizeof(r->counter_example),
                 "%s: its %u groups have a position out of bounds, port 0, or ids that are not in order",
                 name, num);
        return false;
    }
    r->fault = GROUPS_OK;
    return true;
}

// --- classes ---

// What a switch may do with a LID, as one number.
static uint32_t may(const struct job *j, uint32_t s, uint16_t lid, uint8_t port)
{
    const struct fabric_group *x = groups_at(j->g, s, lid, port);
    return x ? (uint32_t)(x - j->g->group) << 8 | 0xff : port | 0x80000000u;
}

static void share(const struct job *j, unsigned i, uint32_t *ret_from, uint32_t *ret_to)
{
    *ret_from = (uint32_t)((uint64_t)j->num_keys * i / j->num_tasks);
    *ret_to = (uint32_t)((uint64_t)j->num_keys * (i + 1) / j->num_tasks);
}

// Keys are still in the order of LIDs here.
static void hash_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t from, to;
    share(j, i, &from, &to);
    for (uint32_t s = 0; s < j->c.n; s++) {
        for (uint32_t k = from; k < to; k++) {
            struct key *x = &j->key[k];
            uint8_t port = tables_port(j->c.t, s, x->lid);
            uint32_t m = may(j, s, x->lid, port);
            if (s == x->end && m == (x->end_port | 0x80000000u)) // which differs in any case
                continue;
            x->hash = (x->hash ^ m) * 0x9e3779b97f4a7c15ULL + (x->hash >> 29) + s;
        }
    }
}

static void compare_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t from, to;
    share(j, i, &from, &to);
    for (uint32_t s = 0; s < j->c.n; s++) {
        for (uint32_t k = from; k < to; k++) {
            struct key *x = &j->key[k];
            const struct key *y = &j->key[j->first[k]];
            if (x == y)
                continue;
            uint32_t m = may(j, s, x->lid, tables_port(j->c.t, s, x->lid));
            uint32_t z = may(j, s, y->lid, tables_port(j->c.t, s, y->lid));
            if (s == x->end)
                x->own |= m != (x->end_port | 0x80000000u) || z != (y->end_port | 0x80000000u);
            else
                x->own |= m != z;
        }
    }
}

static int key_cmp(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (int)x->lid - (int)y->lid;
}

static void run(struct par *par, struct job *j, void (*task)(void *arg, unsigned i))
{
    if (par) {
        par->run(par, j->num_tasks, task, j);
        return;
    }
    for (uint32_t i = 0; i < j->num_tasks; i++)
        task(j, i);
}

static void find_kinds(struct job *j, struct par *par, struct arena *a)
{
    const struct fabric *f = j->c.f;
    j->key = ARENA_NEW_N(a, (size_t)f->top_lid + 1, struct key);
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        struct key *x = &j->key[j->num_keys];
        if (vpresent(f, lid) && vend_of(f, lid, &x->end, &x->end_port)) {
            x->lid = (uint16_t)lid;
            j->num_keys++;
        }
    }
    j->first = ARENA_NEW_N(a, j->num_keys + 1, uint32_t);
    j->kind = ARENA_NEW_N(a, j->num_keys + 1, struct kind);
    run(par, j, hash_task);
    qsort(j->key, j->num_keys, sizeof(*j->key), key_cmp);
    for (uint32_t k = 0; k < j->num_keys; k++) {
        bool same = k > 0 && j->key[k].end == j->key[k - 1].end && j->key[k].hash == j->key[k - 1].hash;
        j->first[k] = same ? j->first[k - 1] : k;
    }
    run(par, j, compare_task);
    uint32_t at = 0;
    for (uint32_t k = 0; k < j->num_keys; k++) {
        const struct key *x = &j->key[k];
        if (j->first[k] == k)
            at = j->num_kinds;
        if (j->first[k] == k || x->own)
            j->kind[j->num_kinds++] = (struct kind){x->lid, 1, x->end, x->end_port};
        else
            j->kind[at].num++;
    }
}

// --- words ---

static void add_hop(const struct vcables *c, uint32_t sw, unsigned in, unsigned out, char *buf, size_t size)
{
    char name[160];
    size_t n = strlen(buf);
    fabric_node_name(c->f, fabric_switch(c->f, sw), name, sizeof(name));
    if (n + 24 < size)
        snprintf(buf + n, size - n, "%s[%u/%u] -> ", name, in, out);
}

static unsigned far_num(const struct vcables *c, uint32_t sw, unsigned out)
{
    const struct node *n = fabric_switch(c->f, sw);
    if (out == 0 || out > n->num_ports)
        return 0;
    const struct port *p = &c->f->port[n->first_port + out];
    return port_valid(p->peer) ? c->f->port[p->peer.i].num : 0;
}

static void finish_text(char *buf, size_t size, const char *words)
{
    size_t at = strlen(buf), room = strlen(words) + 1;
    if (at + room > size)
        at = size - room;
    snprintf(buf + at, size - at, "%s", words);
}

static const char *fault_words(enum groups_fault x)
{
    switch (x) {
    case GROUPS_OK:
        return "arrives";
    case GROUPS_MALFORMED:
        return "malformed";
    case GROUPS_OVER_CAP:
        return "more than it holds";
    case GROUPS_NO_ENTRY:
        return "no entry there";
    case GROUPS_DEAD_PORT:
        return "that port has no usable cable";
    case GROUPS_WRONG_END:
        return "which is another node";
    case GROUPS_LOOP:
        return "which was passed before: a loop";
    case GROUPS_CREDIT_LOOP:
        return "credit loop";
    }
    return "?";
}

// The path with the last step by `out`, n switches on it; what it came to: `to`, a switch, or ID_NONE.
static void path_text(const struct job *j, struct task *k, const struct kind *x, uint32_t n, unsigned out,
                      uint32_t to, enum groups_fault fault)
{
    char name[160];
    const struct vcables *c = &j->c;
    unsigned in = 0;
    snprintf(k->text, k->size, "to LID %u (%s), by choices: ", x->lid,
             fabric_port_name(c->f, (port_id){c->f->lid_port[x->lid]}, name, sizeof(name)));
    for (uint32_t i = 0; i < n; i++) {
        unsigned by = out;
        for (unsigned p = 1; p < c->ports && i + 1 < n; p++) {
            // The port taken: one to the next switch that is no longer left.
            if (c->link[(size_t)k->path[i] * c->ports + p] == k->path[i + 1] &&
                (k->outs[k->path[i]].w[p / 64] & ~k->left[i].w[p / 64]) >> (p % 64) & 1)
                by = p;
        }
        add_hop(c, k->path[i], in, by, k->text, k->size);
        in = far_num(c, k->path[i], by);
    }
    if (to != ID_NONE)
        add_hop(c, to, in, 0, k->text, k->size);
    finish_text(k->text, k->size, fault_words(fault));
}

// --- the walk ---

static void read_outs(const struct job *j, struct task *k, const struct kind *x)
{
    for (uint32_t s = 0; s < j->c.n; s++) {
        uint8_t port = tables_port(j->c.t, s, x->lid);
        const struct fabric_group *own = groups_at(j->g, s, x->lid, port);
        struct ports *o = &k->outs[s];
        *o = (struct ports){{0}};
        if (own) {
            memcpy(o->w, own->ports.w, sizeof(o->w));
            o->w[port / 64] |= 1ULL << (port % 64);
        } else if (port != LFT_DROP) {
            o->w[port / 64] |= 1ULL << (port % 64);
        }
    }
    memset(k->seen, UNSEEN, j->c.n);
    memset(k->lanes, 0, j->c.n);
    memset(k->depth, 0, j->c.n * sizeof(*k->depth));
    k->num_order = 0;
}

static bool is_empty(const struct ports *o)
{
    return (o->w[0] | o->w[1] | o->w[2] | o->w[3]) == 0;
}

static unsigned take_first(struct ports *o)
{
    unsigned i = 0;
    while (o->w[i] == 0)
        i++;
    unsigned p = i * 64 + (unsigned)__builtin_ctzll(o->w[i]);
    o->w[i] &= o->w[i] - 1;
    return p;
}

static bool fail(const struct job *j, struct task *k, const struct kind *x, uint32_t n, unsigned out,
                 uint32_t to, enum groups_fault fault)
{
    if (k->text) {
        path_text(j, k, x, n, out, to, fault);
    }
    if (k->fault == GROUPS_OK || x->lid < k->fault_lid) {
        k->fault = fault;
        k->fault_lid = x->lid;
    }
    return false;
}

// All that packets may do from s on. Switches that are done with are in k->order, those behind them first.
static bool walk_from(const struct job *j, struct task *k, const struct kind *x, uint32_t s)
{
    const struct vcables *c = &j->c;
    uint32_t n = 0;
    k->path[n] = s;
    k->left[n++] = k->outs[s];
    k->seen[s] = ON_PATH;
    while (n > 0) {
        uint32_t v = k->path[n - 1];
        if (is_empty(&k->left[n - 1])) {
            k->seen[v] = DONE;
            k->order[k->num_order++] = v;
            if (--n > 0 && k->depth[v] + 1 > k->depth[k->path[n - 1]])
                k->depth[k->path[n - 1]] = k->depth[v] + 1;
            continue;
        }
        unsigned p = take_first(&k->left[n - 1]);
        uint32_t w = p < c->ports ? c->link[(size_t)v * c->ports + p] : LINK_DEAD;
        if (v == x->end && p == x->end_port)
            continue;
        if (w >= c->n)
            return fail(j, k, x, n, p, ID_NONE, w == LINK_END ? GROUPS_WRONG_END : GROUPS_DEAD_PORT);
        if (is_empty(&k->outs[w]))
            return fail(j, k, x, n, p, w, GROUPS_NO_ENTRY);
        if (k->seen[w] == ON_PATH)
            return fail(j, k, x, n, p, w, GROUPS_LOOP);
        if (k->seen[w] == DONE) {
            k->depth[v] = k->depth[w] + 1 > k->depth[v] ? k->depth[w] + 1 : k->depth[v];
            continue;
        }
        k->seen[w] = ON_PATH;
        k->path[n] = w;
        k->left[n++] = k->outs[w];
    }
    return true;
}

// Lanes of what a switch itself sends to t, or gets from there.
static uint8_t lanes_from(const struct job *j, uint32_t s, uint32_t t)
{
    const struct fabric_lanes *l = j->c.t->lanes;
    if (!l)
        return j->c.source[s];
    unsigned there = lanes_get(l, s, t), back = lanes_get(l, t, s);
    return (uint8_t)((there < j->lanes ? 1u << there : 0) | (back < j->lanes ? 1u << back : 0));
}

// From the sources on: lanes, and what depends on what.
static void note_deps(const struct job *j, struct task *k)
{
    const struct vcables *c = &j->c;
    for (uint32_t i = k->num_order; i-- > 0;) {
        uint32_t v = k->order[i];
        struct ports left = k->outs[v];
        while (!is_empty(&left)) {
            unsigned p = take_first(&left);
            uint32_t w = p < c->ports ? c->link[(size_t)v * c->ports + p] : LINK_DEAD;
            if (w >= c->n)
                continue;
            const struct ports *o = &k->outs[w];
            uint64_t after[4] = {o->w[0] >> 1 | o->w[1] << 63, o->w[1] >> 1 | o->w[2] << 63,
                                 o->w[2] >> 1 | o->w[3] << 63, o->w[3] >> 1};
            k->lanes[w] |= k->lanes[v];
            for (uint32_t m = k->lanes[v]; m != 0; m &= m - 1) {
                uint64_t *dep = k->dep[__builtin_ctz(m)] + ((size_t)v * c->ports + p) * c->words;
                for (uint32_t q = 0; q < c->words && q < 4; q++)
                    dep[q] |= after[q] & c->onward[(size_t)w * c->words + q];
            }
        }
    }
}

static bool walk_kind(const struct job *j, struct task *k, const struct kind *x)
{
    const struct vcables *c = &j->c;
    uint32_t sources = 0;
    read_outs(j, k, x);
    for (uint32_t s = 0; s < c->n; s++) {
        uint8_t lanes = lanes_from(j, s, x->end);
        if (lanes == 0 || c->part[s] != c->part[x->end] || is_empty(&k->outs[s]))
            continue;
        k->lanes[s] |= lanes;
        sources += c->source[s];
        if (k->seen[s] == UNSEEN && !walk_from(j, k, x, s))
            return false;
        k->max_hops = k->depth[s] > k->max_hops ? k->depth[s] : k->max_hops;
    }
    k->pairs += (uint64_t)sources * x->num;
    note_deps(j, k);
    return true;
}

static void walk_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t at;
    while ((at = atomic_fetch_add_explicit(&j->taken, 1, memory_order_relaxed)) < j->num_kinds)
        walk_kind(j, &j->task[i], &j->kind[at]);
}

// --- multicast ---

// At each switch of the tree what comes by one of its links may go on by any other.
static void note_trees(struct job *j, const struct mcast_tree *t, struct arena *a)
{
    const struct vcables *c = &j->c;
    struct ports *links = ARENA_NEW_N(a, c->n + 1, struct ports);
    for (uint32_t s = 0; s < c->n && s < t->num_switches; s++) {
        const struct mcast_step *x = &t->step[s];
        if (!x->in || x->parent >= c->n)
            continue;
        links[s].w[x->out / 64] |= 1ULL << (x->out % 64);
        links[x->parent].w[x->back / 64] |= 1ULL << (x->back % 64);
    }
    for (uint32_t s = 0; s < c->n; s++) {
        struct ports left = links[s];
        while (!is_empty(&left)) {
            unsigned p = take_first(&left), in = far_num(c, s, p);
            uint32_t w = p < c->ports ? c->link[(size_t)s * c->ports + p] : LINK_DEAD;
            if (w >= c->n || in == 0)
                continue;
            struct ports on = links[w];
            on.w[in / 64] &= ~(1ULL << (in % 64));
            while (!is_empty(&on)) {
                unsigned q = take_first(&on) - 1;
                for (uint32_t l = 0; l < j->lanes && q + 1 < c->ports; l++)
                    j->task[0].dep[l][((size_t)s * c->ports + p) * c->words + q / 64] |= 1ULL << (q % 64);
            }
        }
    }
}

// --- together ---

static void task_new(const struct job *j, struct task *k)
{
    const struct vcables *c = &j->c;
    k->a = arena_new();
    for (uint32_t i = 0; i < j->lanes; i++)
        k->dep[i] = ARENA_NEW_N(k->a, ((size_t)c->n * c->ports + 1) * c->words, uint64_t);
    k->outs = ARENA_NEW_N(k->a, c->n + 1, struct ports);
    k->left = ARENA_NEW_N(k->a, c->n + 1, struct ports);
    k->seen = ARENA_NEW_N(k->a, c->n + 1, uint8_t);
    k->lanes = ARENA_NEW_N(k->a, c->n + 1, uint8_t);
    k->depth = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->path = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->order = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
}

static void cycle_text(const struct vcables *c, bool lanes, uint32_t lane, const uint32_t *cycle, uint32_t n,
                       char *buf, size_t size)
{
    snprintf(buf, size, "credit loop over %u cables: ", n);
    if (lanes)
        snprintf(buf, size, "credit loop on lane %u over %u cables: ", lane, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = cycle[(i + n - 1) % n];
        add_hop(c, cycle[i] / c->ports, far_num(c, before / c->ports, before % c->ports), cycle[i] % c->ports,
                buf, size);
    }
    finish_text(buf, size, "back to the first");
}

static void merge(struct job *j, struct groups_proof *r, uint16_t *ret_lid)
{
    size_t size = (size_t)j->c.n * j->c.ports * j->c.words;
    for (uint32_t i = 0; i < j->num_tasks; i++) {
        struct task *k = &j->task[i];
        r->pairs += k->pairs;
        r->max_hops = k->max_hops > r->max_hops ? k->max_hops : r->max_hops;
        if (k->fault != GROUPS_OK && (r->fault == GROUPS_OK || k->fault_lid < *ret_lid)) {
            r->fault = k->fault;
            *ret_lid = k->fault_lid;
        }
        for (uint32_t l = 0; l < j->lanes && i > 0; l++)
            vmerge_bits(j->task[0].dep[l], k->dep[l], size);
    }
}

static void conclude(struct job *j, const struct groups_verify *o, struct groups_proof *r, struct arena *a)
{
    uint16_t lid = 0;
    struct task *k0 = &j->task[0];
    merge(j, r, &lid);
    for (uint32_t x = 0; r->fault != GROUPS_OK && x < j->num_kinds; x++) {
        if (j->kind[x].lid != lid)
            continue;
        k0->text = r->counter_example;
        k0->size = sizeof(r->counter_example);
        walk_kind(j, k0, &j->kind[x]);
        return;
    }
    if (o->trees)
        note_trees(j, o->trees, a);
    for (uint32_t l = 0; l < j->lanes; l++) {
        uint32_t n, *cycle;
        r->dependencies += vmerge_bits(k0->dep[l], k0->dep[l], (size_t)j->c.n * j->c.ports * j->c.words);
        if (r->fault == GROUPS_OK && (cycle = vfind_cycle(&j->c, k0->dep[l], a, &n))) {
            cycle_text(&j->c, j->c.t->lanes != NULL, l, cycle, n, r->counter_example,
                       sizeof(r->counter_example));
            r->fault = GROUPS_CREDIT_LOOP;
        }
    }
}

bool route_verify_groups(const struct fabric *f, const struct fabric_tables *t, const struct fabric_groups *g,
                         const struct groups_verify *o, struct groups_proof *ret)
{
    struct arena *a = arena_new();
    struct job j = {.c = {.f = f, .t = t}, .g = g, .lanes = 1};
    struct verify_opts v = {.par = NULL};
    *ret = (struct groups_proof){.fault = GROUPS_OK};
    vread_cables(&j.c, &v, a);
    if (t->lanes && t->lanes->num_switches == j.c.n && t->lanes->num_lanes <= LANES_MAX)
        j.lanes = t->lanes->num_lanes;
    else if (t->lanes)
        ret->fault = GROUPS_MALFORMED;
    if (ret->fault == GROUPS_OK && shape_text(&j.c, g, o->cap, ret) && j.c.n > 0) {
        vfind_parts(&j.c, a);
        vwalk_prepare(&j.c, a);
        j.num_tasks = o->par && o->par->width > 1 ? o->par->width : 1;
        j.task = ARENA_NEW_N(a, j.num_tasks, struct task);
        find_kinds(&j, o->par, a);
        for (uint32_t i = 0; i < j.num_tasks; i++)
            task_new(&j, &j.task[i]);
        run(o->par, &j, walk_task);
        conclude(&j, o, ret, a);
        for (uint32_t i = 0; i < j.num_tasks; i++)
            arena_free(j.task[i].a);
    }
    arena_free(a);
    ret->ok = ret->fault == GROUPS_OK;
    return ret->ok;
}
