// SPDX-License-Identifier: Apache-2.0
// The proof of adaptive-routing groups: whatever a switch chooses of a group, each time anew, packets arrive,
// and do not wait for each other in a circle. Like verify.c it shares nothing with what makes tables and
// groups.
//
// Per LID the ports that each switch may send by make a graph. Walking it from every source must meet no
// switch that it is coming from, no dead port, and no end but the right one. On the way it notes after which
// channel which others may be entered: those dependencies, of all choices together, must have no cycle on any
// lane, those of the multicast trees included, which go by lane 0.
//
// LIDs on one switch for which all switches may choose the same are walked once. To find them, at each switch
// those of one end are looked at together: mostly they have one group, or one port. Only where they do not, a
// hash of what they have tells who may go with whom, and then it is compared.
//
// Parallel over such kinds, each task with sets of its own. Cost: O(switches x LIDs) for the comparison, and
// the ports of all groups together for each kind.
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

struct task {
    struct arena *a;
    uint64_t *dep[LANES_MAX]; // as in vtask: [channel * words], bit 0 is port 1
    struct port_set *outs;    // per switch, of the kind walked
    uint8_t *seen;            // per switch
    uint32_t *depth, *path, *order;
    struct port_set *left; // per place on the path: ports not yet gone
    uint8_t *lanes;
    uint32_t num_order, max_hops;
    uint64_t pairs;
    enum groups_fault fault;
    uint16_t fault_lid;
    char *text; // room for words about a fault, or NULL
    size_t size;
};
enum { UNSEEN, ON_PATH, DONE };

// What the switches hold: the new, or, with mixes, the new and the old.
struct view {
    const struct fabric_tables *t;
    const struct fabric_groups *g; // NULL: none
};

struct key {
    uint64_t hash;
    uint32_t end;
    uint16_t lid;
    uint8_t end_port;
    bool own; // by itself, whatever the hash says
};

struct bunch { // keys of one end that are treated alike
    uint32_t first, num;
    bool alike;      // groups_at() goes by the same for all, but for the port
    uint64_t *mixed; // a bit per switch: they differ there
};

struct job {
    struct vcables c;
    struct view view[2];
    uint32_t num_views;
    struct task *task;
    uint32_t num_tasks;
    struct key *key;
    uint32_t num_keys;
    struct bunch *bunch;
    uint32_t num_bunches;
    uint32_t *first; // per key: the one that stands for it
    struct kind *kind;
    uint32_t num_kinds, lanes;
    _Atomic uint32_t taken;
};

// --- shape ---

static bool numbers_hold(const struct fabric_groups *g, uint32_t s)
{
    uint32_t n = g->num_switches, num = groups_of(g, s);
    if (g->first[s] > g->first[s + 1] || num >= GROUP_NONE)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint16_t to = g->to[(size_t)s * n + i];
        if (to >= num && to != GROUP_NONE)
            return false;
    }
    for (uint32_t p = 0; p < g->ports; p++) {
        uint16_t to = g->beside[(size_t)s * g->ports + p];
        if (to >= num && to != GROUP_NONE)
            return false;
    }
    for (uint32_t i = 0; i < num; i++) {
        const struct fabric_group *x = &g->group[g->first[s] + i];
        if ((i > 0 && x[-1].id >= x->id) || (x->ports.w[0] & 1))
            return false;
    }
    return true;
}

static enum groups_fault shape_of(const struct vcables *c, const struct view *v, const uint16_t *cap,
                                  char *text, size_t size)
{
    char name[160];
    const struct fabric_groups *g = v->g;
    if (v->t->num_switches != c->n || (g && (g->num_switches != c->n || g->ports < c->ports))) {
        snprintf(text, size, "the groups are of another fabric: %u switches, %u here",
                 g ? g->num_switches : v->t->num_switches, c->n);
        return GROUPS_MALFORMED;
    }
    for (uint32_t lid = 0; g && lid < g->lids; lid++) {
        if (g->lid_switch[lid] < c->n || g->lid_switch[lid] == ID_NONE)
            continue;
        snprintf(text, size, "LID %u is said to hang on switch %u of %u", lid, g->lid_switch[lid], c->n);
        return GROUPS_MALFORMED;
    }
    for (uint32_t s = 0; g && s < c->n; s++) {
        uint32_t num = groups_of(g, s), holds = cap ? cap[s] : GROUPS_CAP_MAX;
        fabric_node_name(c->f, fabric_switch(c->f, s), name, sizeof(name));
        if (!numbers_hold(g, s)) {
            snprintf(text, size,
                     "%s: its %u groups have a position out of bounds, port 0, or ids that are not in order",
                     name, num);
            return GROUPS_MALFORMED;
        }
        uint32_t last = num > 0 ? g->group[g->first[s] + num - 1].id : 0;
        if (num > holds || (num > 0 && last >= holds)) {
            snprintf(text, size, "%s: %u groups, the highest id %u; it holds %u", name, num, last, holds);
            return GROUPS_OVER_CAP;
        }
    }
    return GROUPS_OK;
}

// --- kinds ---

static const struct fabric_group *group_of(const struct view *v, uint32_t s, uint16_t lid, uint8_t port)
{
    return v->g ? groups_at(v->g, s, lid, port) : NULL;
}

// What a switch may do with a LID, as one number.
static uint32_t may(const struct view *v, uint32_t s, uint16_t lid)
{
    uint8_t port = tables_port(v->t, s, lid);
    const struct fabric_group *x = group_of(v, s, lid, port);
    return x ? (uint32_t)(x - v->g->group) : port | 0x80000000u;
}

// At the end itself each LID has its own port.
static bool may_alike(const struct view *v, uint32_t s, const struct key *x, const struct key *y)
{
    uint32_t m = may(v, s, x->lid), z = may(v, s, y->lid);
    if (s == x->end)
        return m == (x->end_port | 0x80000000u) && z == (y->end_port | 0x80000000u);
    return m == z;
}

static bool is_mixed(const struct job *j, const struct view *v, uint32_t s, const struct bunch *b)
{
    const struct key *x = &j->key[b->first];
    uint8_t port = tables_port(v->t, s, x->lid);
    const struct fabric_group *g = group_of(v, s, x->lid, port);
    uint32_t bad = 0;
    for (uint32_t i = 1; i < b->num && (s == x->end || !b->alike); i++) {
        if (!may_alike(v, s, x, &x[i]))
            return true;
    }
    if (s == x->end || !b->alike)
        return false;
    if (!g) {
        for (uint32_t i = 1; i < b->num; i++)
            bad |= tables_port(v->t, s, x[i].lid) != port;
        return bad != 0;
    }
    // `beside` would be asked for a port that is not in the group of the first.
    const struct port_set all = g->ports;
    for (uint32_t i = 1; i < b->num; i++)
        bad |= !port_set_has(&all, tables_port(v->t, s, x[i].lid));
    if (bad)
        return true;
    return v->g->to[(size_t)s * v->g->num_switches + v->g->lid_switch[x->lid]] !=
               (uint16_t)(g - (v->g->group + v->g->first[s])) ||
           !v->g->lid_whole[x->lid];
}

static void bunch_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t from = (uint32_t)((uint64_t)j->num_bunches * i / j->num_tasks);
    uint32_t to = (uint32_t)((uint64_t)j->num_bunches * (i + 1) / j->num_tasks);
    for (uint32_t s = 0; s < j->c.n; s++) {
        for (uint32_t k = from; k < to; k++) {
            struct bunch *b = &j->bunch[k];
            bool mixed = false;
            for (uint32_t v = 0; v < j->num_views && b->num > 1; v++)
                mixed |= is_mixed(j, &j->view[v], s, b);
            if (!mixed)
                continue;
            b->mixed[s / 64] |= 1ULL << (s % 64);
            for (uint32_t m = b->first; m < b->first + b->num; m++) {
                struct key *x = &j->key[m];
                for (uint32_t v = 0; v < j->num_views; v++) {
                    uint32_t what = may(&j->view[v], s, x->lid);
                    if (s != x->end || what != (x->end_port | 0x80000000u))
                        x->hash = hash_mix64(x->hash ^ ((uint64_t)s << 32 | what)) + v;
                }
            }
        }
    }
}

static void compare_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t from = (uint32_t)((uint64_t)j->num_bunches * i / j->num_tasks);
    uint32_t to = (uint32_t)((uint64_t)j->num_bunches * (i + 1) / j->num_tasks);
    for (uint32_t s = 0; s < j->c.n; s++) {
        for (uint32_t k = from; k < to; k++) {
            const struct bunch *b = &j->bunch[k];
            if (!(b->mixed[s / 64] >> (s % 64) & 1))
                continue;
            for (uint32_t m = b->first; m < b->first + b->num; m++) {
                struct key *x = &j->key[m];
                const struct key *y = &j->key[j->first[m]];
                for (uint32_t v = 0; v < j->num_views && x != y; v++)
                    x->own |= !may_alike(&j->view[v], s, x, y);
            }
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

// What groups_at() goes by, beside the port.
static uint64_t treated(const struct fabric_groups *g, uint16_t lid)
{
    if (!g || lid >= g->lids || g->lid_switch[lid] == ID_NONE)
        return 0;
    return 2 + (uint64_t)g->lid_switch[lid] * 2 + g->lid_whole[lid];
}

static void read_keys(struct job *j, struct arena *a)
{
    const struct fabric *f = j->c.f;
    j->key = ARENA_NEW_N(a, (size_t)f->top_lid + 1, struct key);
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        struct key *x = &j->key[j->num_keys];
        if (vpresent(f, lid) && vend_of(f, lid, &x->end, &x->end_port)) {
            x->lid = (uint16_t)lid;
            for (uint32_t v = 0; v < j->num_views; v++)
                x->hash = hash_mix64(x->hash) ^ treated(j->view[v].g, x->lid);
            j->num_keys++;
        }
    }
    qsort(j->key, j->num_keys, sizeof(*j->key), key_cmp);
    j->bunch = ARENA_NEW_N(a, j->num_keys + 1, struct bunch);
    for (uint32_t k = 0; k < j->num_keys; k++) {
        const struct key *x = &j->key[k];
        if (k == 0 || x->end != x[-1].end || x->hash != x[-1].hash) {
            j->bunch[j->num_bunches++] = (struct bunch){.first = k, .alike = true};
            j->bunch[j->num_bunches - 1].mixed = ARENA_NEW_N(a, j->c.n / 64 + 1, uint64_t);
        }
        struct bunch *b = &j->bunch[j->num_bunches - 1];
        b->num++;
        for (uint32_t v = 0; v < j->num_views; v++)
            b->alike &= treated(j->view[v].g, x->lid) == treated(j->view[v].g, j->key[b->first].lid);
    }
}

static void find_kinds(struct job *j, struct par *par, struct arena *a)
{
    read_keys(j, a);
    j->first = ARENA_NEW_N(a, j->num_keys + 1, uint32_t);
    j->kind = ARENA_NEW_N(a, j->num_keys + 1, struct kind);
    run(par, j, bunch_task);
    for (uint32_t b = 0; b < j->num_bunches; b++) {
        uint32_t from = j->bunch[b].first, to = from + j->bunch[b].num;
        qsort(j->key + from, to - from, sizeof(*j->key), key_cmp);
        for (uint32_t k = from; k < to; k++)
            j->first[k] = k > from && j->key[k].hash == j->key[k - 1].hash ? j->first[k - 1] : k;
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

static const struct fabric_group *group_by_id(const struct fabric_groups *g, uint32_t s, uint16_t id)
{
    const struct fabric_group *x = g->group + g->first[s];
    uint32_t from = 0, to = groups_of(g, s);
    while (from < to) {
        uint32_t mid = (from + to) / 2;
        if (x[mid].id == id)
            return &x[mid];
        if (x[mid].id < id)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

static void add_group(struct port_set *o, const struct fabric_group *x)
{
    for (uint32_t i = 0; i < 4 && x; i++)
        o->w[i] |= x->ports.w[i];
}

// Of each view the entry's port and group; with mixes also what the other view has by that id.
static struct port_set outs_of(const struct job *j, uint32_t s, uint16_t lid)
{
    struct port_set o = {{0}};
    for (uint32_t v = 0; v < j->num_views; v++) {
        const struct view *x = &j->view[v], *other = &j->view[1 - v];
        uint8_t port = tables_port(x->t, s, lid);
        const struct fabric_group *own = group_of(x, s, lid, port);
        if (port != LFT_DROP)
            port_set_add(&o, port);
        add_group(&o, own);
        if (own && j->num_views > 1 && other->g)
            add_group(&o, group_by_id(other->g, s, own->id));
    }
    return o;
}

static void read_outs(const struct job *j, struct task *k, const struct kind *x)
{
    for (uint32_t s = 0; s < j->c.n; s++)
        k->outs[s] = outs_of(j, s, x->lid);
    memset(k->seen, UNSEEN, j->c.n);
    memset(k->lanes, 0, j->c.n);
    memset(k->depth, 0, j->c.n * sizeof(*k->depth));
    k->num_order = 0;
}

static bool is_empty(const struct port_set *o)
{
    return (o->w[0] | o->w[1] | o->w[2] | o->w[3]) == 0;
}

static unsigned take_first(struct port_set *o)
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
    if (k->text)
        path_text(j, k, x, n, out, to, fault);
    if (k->fault == GROUPS_OK || x->lid < k->fault_lid) {
        k->fault = fault;
        k->fault_lid = x->lid;
    }
    return false;
}

// What is sent to w by a port of v may go on by any port that w has for it.
static inline void note_dep(const struct job *j, const struct task *k, uint64_t *dep, uint32_t v, unsigned p,
                            uint32_t w)
{
    const struct vcables *c = &j->c;
    const uint64_t *o = k->outs[w].w, *onward = c->onward + (size_t)w * c->words;
    dep += ((size_t)v * c->ports + p) * c->words;
    dep[0] |= (o[0] >> 1 | o[1] << 63) & onward[0];
    for (uint32_t q = 1; q < c->words; q++)
        dep[q] |= (o[q] >> 1 | (q < 3 ? o[q + 1] << 63 : 0)) & onward[q];
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
        if (j->num_views > 1 && (w >= c->n || is_empty(&k->outs[w]))) // lost, for a while
            continue;
        if (w >= c->n)
            return fail(j, k, x, n, p, ID_NONE, w == LINK_END ? GROUPS_WRONG_END : GROUPS_DEAD_PORT);
        if (is_empty(&k->outs[w]))
            return fail(j, k, x, n, p, w, GROUPS_NO_ENTRY);
        if (k->seen[w] == ON_PATH)
            return fail(j, k, x, n, p, w, GROUPS_LOOP);
        if (j->lanes == 1)
            note_dep(j, k, k->dep[0], v, p, w);
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

// From the sources on: lanes, and what depends on what on each.
static void note_lanes(const struct job *j, struct task *k)
{
    const struct vcables *c = &j->c;
    for (uint32_t i = k->num_order; i-- > 0;) {
        uint32_t v = k->order[i];
        struct port_set left = k->outs[v];
        while (!is_empty(&left)) {
            unsigned p = take_first(&left);
            uint32_t w = p < c->ports ? c->link[(size_t)v * c->ports + p] : LINK_DEAD;
            if (w >= c->n)
                continue;
            k->lanes[w] |= k->lanes[v];
            for (uint32_t m = k->lanes[v]; m != 0; m &= m - 1)
                note_dep(j, k, k->dep[__builtin_ctz(m)], v, p, w);
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
    if (j->lanes > 1)
        note_lanes(j, k);
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
    struct port_set *links = ARENA_NEW_N(a, c->n + 1, struct port_set);
    for (uint32_t s = 0; s < c->n && s < t->num_switches; s++) {
        const struct mcast_step *x = &t->step[s];
        if (!x->in || x->parent >= c->n)
            continue;
        port_set_add(&links[s], x->out);
        port_set_add(&links[x->parent], x->back);
    }
    for (uint32_t s = 0; s < c->n; s++) {
        struct port_set left = links[s];
        while (!is_empty(&left)) {
            unsigned p = take_first(&left), in = far_num(c, s, p);
            uint32_t w = p < c->ports ? c->link[(size_t)s * c->ports + p] : LINK_DEAD;
            if (w >= c->n || in == 0)
                continue;
            struct port_set on = links[w];
            on.w[in / 64] &= ~(1ULL << (in % 64));
            while (!is_empty(&on)) {
                unsigned q = take_first(&on) - 1;
                if (q + 1 < c->ports)
                    j->task[0].dep[0][((size_t)s * c->ports + p) * c->words + q / 64] |= 1ULL << (q % 64);
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
    k->outs = ARENA_NEW_N(k->a, c->n + 1, struct port_set);
    k->left = ARENA_NEW_N(k->a, c->n + 1, struct port_set);
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

static void prove(struct job *j, const struct groups_verify *o, struct groups_proof *ret, struct arena *a)
{
    vfind_parts(&j->c, a);
    vwalk_prepare(&j->c, a);
    j->num_tasks = o->par && o->par->width > 1 ? o->par->width : 1;
    j->task = ARENA_NEW_N(a, j->num_tasks, struct task);
    find_kinds(j, o->par, a);
    for (uint32_t i = 0; i < j->num_tasks; i++)
        task_new(j, &j->task[i]);
    run(o->par, j, walk_task);
    conclude(j, o, ret, a);
    for (uint32_t i = 0; i < j->num_tasks; i++)
        arena_free(j->task[i].a);
}

bool route_verify_groups(const struct fabric *f, const struct fabric_tables *t, const struct fabric_groups *g,
                         const struct groups_verify *o, struct groups_proof *ret)
{
    struct arena *a = arena_new();
    struct job j = {.c = {.f = f, .t = t}, .view = {{t, g}, {o->held_tables, o->held}}, .lanes = 1};
    struct verify_opts v = {.par = NULL};
    *ret = (struct groups_proof){.fault = GROUPS_OK};
    j.num_views = o->held_tables ? 2 : 1;
    vread_cables(&j.c, &v, a);
    for (uint32_t i = 0; i < j.num_views && ret->fault == GROUPS_OK; i++)
        ret->fault = shape_of(&j.c, &j.view[i], i == 0 ? o->cap : NULL, ret->counter_example,
                              sizeof(ret->counter_example));
    if (t->lanes)
        j.lanes = t->lanes->num_lanes;
    if (ret->fault == GROUPS_OK && (t->lanes && (t->lanes->num_switches != j.c.n || j.lanes > LANES_MAX))) {
        ret->fault = GROUPS_MALFORMED;
        snprintf(ret->counter_example, sizeof(ret->counter_example), "the lanes are of another fabric");
    }
    if (ret->fault == GROUPS_OK && j.c.n > 0)
        prove(&j, o, ret, a);
    arena_free(a);
    ret->ok = ret->fault == GROUPS_OK;
    return ret->ok;
}
