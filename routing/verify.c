// SPDX-License-Identifier: Apache-2.0
// The proof of forwarding tables. It shares no code with what makes them: it reads cables from the snapshot
// and entries from the tables, and follows every entry itself.
//
// Per destination the entries of all switches are a graph with one edge out of each: walking from each source
// with memory visits every switch once (verify_walk.c). On the way it notes which channel (a directed cable
// between switches) is entered after which; those dependencies must have no cycle (Dally and Seitz), or
// packets that wait for each other's buffers can wait for ever. Injection from and delivery to end ports adds
// channels at which no cycle can pass, so they are left out.
//
// Parallel over parts of the LIDs, each task with scratch memory of its own; the result does not depend on
// how many there are, nor on which takes what. Cost: O(switches x LIDs).
#include "routing/verify_priv.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct job {
    struct vcables c;
    struct vtask *task;
    uint32_t num_tasks, num_parts;
    _Atomic uint32_t taken; // parts: who has time takes the next
};

// --- the cables ---

void vread_cables(struct vcables *c, const struct verify_opts *o, struct arena *a)
{
    const struct fabric *f = c->f;
    c->n = f->num_switches;
    for (uint32_t s = 0; s < c->n; s++) {
        uint32_t ports = f->node[f->switch_node[s]].num_ports + 1u;
        c->ports = ports > c->ports ? ports : c->ports;
    }
    c->words = (c->ports + 62) / 64;
    c->link = ARENA_NEW_N(a, (size_t)c->n * c->ports + 1, uint32_t);
    c->source = ARENA_NEW_N(a, c->n + 1, bool);
    for (size_t i = 0; i < (size_t)c->n * c->ports; i++)
        c->link[i] = i % c->ports == 0 ? LINK_END : LINK_DEAD;
    for (uint32_t s = 0; s < c->n; s++) {
        const struct node *n = &f->node[f->switch_node[s]];
        bool ends = false;
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct port *p = &f->port[n->first_port + num];
            if (!port_valid(p->peer))
                continue;
            const struct node *far = &f->node[f->port[p->peer.i].node.i];
            bool is_switch = far->type == NODE_SWITCH;
            c->link[(size_t)s * c->ports + num] = is_switch ? far->sw : LINK_END;
            ends |= !is_switch;
        }
        c->source[s] = ends || o->all_switches;
        c->num_sources += c->source[s];
    }
}

void vfind_parts(struct vcables *c, struct arena *a)
{
    uint32_t *stack = ARENA_NEW_N(a, c->n + 1, uint32_t);
    c->part = ARENA_NEW_N(a, c->n + 1, uint32_t);
    memset(c->part, 0xff, c->n * sizeof(*c->part));
    for (uint32_t s = 0; s < c->n; s++) {
        if (c->part[s] != ID_NONE)
            continue;
        uint32_t top = 0;
        c->part[s] = s;
        stack[top++] = s;
        while (top > 0) {
            uint32_t v = stack[--top];
            for (uint32_t p = 1; p < c->ports; p++) {
                uint32_t w = c->link[(size_t)v * c->ports + p];
                if (w < c->n && c->part[w] == ID_NONE) {
                    c->part[w] = s;
                    stack[top++] = w;
                }
            }
        }
    }
}

// The switch and port where a LID's end port hangs; false when on none.
bool vend_of(const struct fabric *f, uint32_t lid, uint32_t *ret_sw, uint8_t *ret_port)
{
    const struct port *p = &f->port[f->lid_port[lid]];
    const struct node *n = &f->node[p->node.i];
    *ret_port = 0;
    if (n->type != NODE_SWITCH) {
        if (!port_valid(p->peer))
            return false;
        const struct port *far = &f->port[p->peer.i];
        n = &f->node[far->node.i];
        *ret_port = far->num;
    }
    *ret_sw = n->sw;
    return n->type == NODE_SWITCH;
}

// --- the walk ---

static void prove_task(void *arg, unsigned i)
{
    struct job *j = arg;
    struct vtask *k = &j->task[i];
    uint32_t part;
    while ((part = atomic_fetch_add_explicit(&j->taken, 1, memory_order_relaxed)) < j->num_parts) {
        k->num_lids = 0;
        for (uint32_t lid = part * VLIDS; lid < (part + 1) * VLIDS; lid++) {
            if (vpresent(j->c.f, lid))
                k->lid[k->num_lids++] = (uint16_t)lid;
        }
        vwalk_to(&j->c, k);
    }
    vwalk_end(&j->c, k);
}

// --- dependencies ---

// The next channel after chan that is not done with: LINK_DEAD at the end.
static uint32_t next_dep(const struct vcables *c, const uint64_t *dep, const uint64_t *done, size_t chan)
{
    uint32_t v = c->link[chan];
    for (uint32_t i = 0; i < c->words && v < c->n; i++) {
        uint64_t left = dep[chan * c->words + i] & ~done[(size_t)v * c->words + i];
        if (left != 0) // bit 0 is port 1
            return v * c->ports + i * 64 + (uint32_t)__builtin_ctzll(left) + 1;
    }
    return LINK_DEAD;
}

static uint64_t *channel_word(const struct vcables *c, uint64_t *set, size_t chan, uint64_t *ret_bit)
{
    size_t port = chan % c->ports - 1;
    *ret_bit = 1ULL << (port % 64);
    return set + chan / c->ports * c->words + port / 64;
}

// A cycle of channels, its length in *ret_n, or NULL.
uint32_t *vfind_cycle(const struct vcables *c, const uint64_t *dep, struct arena *a, uint32_t *ret_n)
{
    size_t words = (size_t)c->n * c->words;
    uint64_t *done = ARENA_NEW_N(a, words + 1, uint64_t), *on_stack = ARENA_NEW_N(a, words + 1, uint64_t);
    uint32_t *stack = ARENA_NEW_N(a, (size_t)c->n * c->ports + 1, uint32_t);
    uint64_t bit;
    for (uint32_t start = 0; start < c->n * c->ports; start++) {
        if (c->link[start] >= c->n || (*channel_word(c, done, start, &bit) & bit))
            continue;
        uint32_t top = 0, y;
        stack[0] = start;
        *channel_word(c, on_stack, start, &bit) |= bit;
        for (;;) {
            if ((y = next_dep(c, dep, done, stack[top])) == LINK_DEAD) {
                *channel_word(c, done, stack[top], &bit) |= bit;
                *channel_word(c, on_stack, stack[top], &bit) &= ~bit;
                if (top-- == 0)
                    break;
            } else if (*channel_word(c, on_stack, y, &bit) & bit) {
                uint32_t i = top;
                while (stack[i] != y)
                    i--;
                *ret_n = top + 1 - i;
                return stack + i;
            } else {
                *channel_word(c, on_stack, y, &bit) |= bit;
                stack[++top] = y;
            }
        }
    }
    return NULL;
}

// --- words ---

static void add_text(char *buf, size_t size, const char *text)
{
    size_t n = strlen(buf), m = strlen(text);
    if (n + m + 1 > size) {
        if (n + 6 <= size || n >= 5)
            memcpy(buf + (n + 6 <= size ? n : size - 6), " ...", 5);
        return;
    }
    memcpy(buf + n, text, m + 1);
}

// "name[in/out]"; either number may be 0.
static void hop_text(const struct fabric *f, uint32_t sw, unsigned in, unsigned out, char *buf, size_t size)
{
    char name[160];
    const struct node *n = &f->node[f->switch_node[sw]];
    fabric_port_name(f, (port_id){n->first_port}, name, sizeof(name));
    char *bracket = strrchr(name, '[');
    if (bracket)
        *bracket = 0;
    snprintf(buf, size, "%s[%u/%u]", name, in, out);
}

static unsigned far_port(const struct fabric *f, uint32_t sw, unsigned out)
{
    const struct port *p = &f->port[f->node[f->switch_node[sw]].first_port + out];
    return port_valid(p->peer) ? f->port[p->peer.i].num : 0;
}

static unsigned start_text(const struct fabric *f, uint32_t sw, char *buf, size_t size)
{
    const struct node *n = &f->node[f->switch_node[sw]];
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct port *p = &f->port[n->first_port + num];
        if (port_valid(p->peer) && f->node[f->port[p->peer.i].node.i].type != NODE_SWITCH) {
            char name[160];
            snprintf(buf, size, "%s -> ", fabric_port_name(f, p->peer, name, sizeof(name)));
            return num;
        }
    }
    return 0;
}

static const char *fault_text(enum route_fault r)
{
    switch (r) {
    case ROUTE_OK:
        return "arrives";
    case ROUTE_NO_ENTRY:
        return "no entry there";
    case ROUTE_DEAD_PORT:
        return "that port has no usable cable";
    case ROUTE_WRONG_END:
        return "which is another node";
    case ROUTE_LOOP:
        return "which was passed before: a loop";
    case ROUTE_CREDIT_LOOP:
        return "credit loop";
    case ROUTE_NO_LANE:
        return "no lane";
    }
    return "?";
}

static void path_text(const struct vcables *c, const struct vfault *at, char *buf, size_t size,
                      struct arena *a)
{
    char hop[300], name[160];
    uint32_t sw = ID_NONE, v = at->sw, w;
    uint8_t port = 0;
    if (!vend_of(c->f, at->lid, &sw, &port))
        sw = ID_NONE;
    snprintf(buf, size, "to LID %u (%s): ", at->lid,
             fabric_port_name(c->f, (port_id){c->f->lid_port[at->lid]}, name, sizeof(name)));
    hop[0] = 0;
    unsigned in = start_text(c->f, v, hop, sizeof(hop));
    add_text(buf, size, hop);
    bool *seen = ARENA_NEW_N(a, c->n + 1, bool);
    for (;;) {
        uint8_t out = tables_port(c->t, v, at->lid);
        hop_text(c->f, v, in, out == LFT_DROP ? 0 : out, hop, sizeof(hop));
        add_text(buf, size, hop);
        if (seen[v])
            break;
        seen[v] = true;
        w = v == sw && out == port ? LINK_ARRIVES : vfar_end(c, v, out);
        if (w >= c->n)
            break;
        add_text(buf, size, " -> ");
        in = far_port(c->f, v, out);
        v = w;
    }
    snprintf(hop, sizeof(hop), ", %s", fault_text(at->fault));
    add_text(buf, size, hop);
}

static void cycle_text(const struct vcables *c, const uint32_t *cycle, uint32_t n, char *buf, size_t size)
{
    char hop[300];
    snprintf(buf, size, "credit loop over %u cables: ", n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = cycle[(i + n - 1) % n];
        hop_text(c->f, cycle[i] / c->ports, far_port(c->f, before / c->ports, before % c->ports),
                 cycle[i] % c->ports, hop, sizeof(hop));
        add_text(buf, size, hop);
        add_text(buf, size, " -> ");
    }
    add_text(buf, size, "back to the first");
}

// --- together ---

static uint32_t ones(uint64_t x) // without a processor's own: this is built for any
{
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    return (uint32_t)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}

uint32_t vmerge_bits(uint64_t *to, const uint64_t *from, size_t words)
{
    uint32_t n = 0;
    for (size_t i = 0; i < words; i++) {
        to[i] |= from[i];
        n += ones(to[i]);
    }
    return n;
}

static void merge(struct job *j, struct route_proof *r, struct vfault *first)
{
    const struct vcables *c = &j->c;
    struct vtask *k0 = &j->task[0];
    size_t chans = (size_t)c->n * c->ports;
    for (uint32_t i = 0; i < j->num_tasks; i++) {
        struct vtask *k = &j->task[i];
        r->pairs += k->pairs;
        r->disconnected += k->disconnected;
        r->unreached += k->unreached;
        r->max_hops = k->max_hops > r->max_hops ? k->max_hops : r->max_hops;
        if (k->first.fault != ROUTE_OK && (first->fault == ROUTE_OK || k->first.lid < first->lid))
            *first = k->first;
        r->dependencies = vmerge_bits(k0->dep, k->dep, chans * c->words);
        r->channels = vmerge_bits(k0->used, k->used, chans / 64 + 1);
        if (i > 0 && k0->turns)
            vmerge_bits(k0->turns, k->turns, chans * c->words);
    }
}

static void conclude(struct job *j, const struct verify_opts *o, struct route_proof *r, struct arena *a)
{
    struct vfault first = {.fault = ROUTE_OK};
    uint32_t n = 0;
    merge(j, r, &first);
    enum route_fault lanes = ROUTE_OK;
    uint32_t *cycle = NULL;
    if (j->c.t->lanes)
        lanes = vlanes_prove(&j->c, o->par, r->counter_example, sizeof(r->counter_example));
    else
        cycle = vfind_cycle(&j->c, j->task[0].dep, a, &n);
    r->fault = first.fault != ROUTE_OK || lanes != ROUTE_NO_LANE ? first.fault : lanes;
    r->credit_loop = cycle != NULL || lanes == ROUTE_CREDIT_LOOP;
    if (r->fault == ROUTE_OK && r->credit_loop && !o->allow_credit_loops)
        r->fault = ROUTE_CREDIT_LOOP;
    r->ok = r->fault == ROUTE_OK;
    if (first.fault != ROUTE_OK)
        path_text(&j->c, &first, r->counter_example, sizeof(r->counter_example), a);
    else if (cycle)
        cycle_text(&j->c, cycle, n, r->counter_example, sizeof(r->counter_example));
}

// keep, ret_state: may be NULL.
static void prove(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                  struct fabric_tables *keep, struct route_proof *ret, struct route_proof_state **ret_state)
{
    struct arena *a = arena_new();
    struct job j = {.c = {.f = f, .t = t, .keep = keep}, .num_parts = f->top_lid / VLIDS + 1u};
    vread_cables(&j.c, o, a);
    vfind_parts(&j.c, a);
    vwalk_prepare(&j.c, a);
    if (ret_state)
        j.c.hist = ARENA_NEW_N(a, ((size_t)f->top_lid + 1) * VHOPS, uint16_t);
    j.num_tasks = o->par && o->par->width > 1 ? o->par->width : 1;
    if (j.num_tasks > j.num_parts)
        j.num_tasks = j.num_parts;
    j.task = ARENA_NEW_N(a, j.num_tasks, struct vtask);
    for (uint32_t i = 0; i < j.num_tasks; i++)
        vtask_new(&j.c, &j.task[i]);
    if (o->par) {
        o->par->run(o->par, j.num_tasks, prove_task, &j);
    } else {
        for (uint32_t i = 0; i < j.num_tasks; i++)
            prove_task(&j, i);
    }
    conclude(&j, o, ret, a);
    if (ret_state && ret->ok && !ret->credit_loop && ret->max_hops < VHOPS && !t->lanes)
        *ret_state = vstate_new(&j.c, &j.task[0], o->all_switches);
    for (uint32_t i = 0; i < j.num_tasks; i++)
        arena_free(j.task[i].a);
    arena_free(a);
}

bool route_verify(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                  struct route_proof *ret)
{
    return route_verify_keep(f, t, o, ret, NULL);
}

bool route_verify_keep(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                       struct route_proof *ret, struct route_proof_state **ret_state)
{
    if (ret_state)
        *ret_state = NULL;
    *ret = (struct route_proof){.ok = true};
    if (t->num_switches != f->num_switches) {
        ret->ok = false;
        ret->fault = ROUTE_NO_ENTRY;
        snprintf(ret->counter_example, sizeof(ret->counter_example),
                 "the tables are of another fabric: %u switches, %u here", t->num_switches, f->num_switches);
        return false;
    }
    if (f->num_switches > 0)
        prove(f, t, o, NULL, ret, ret_state);
    return ret->ok;
}

struct fabric_tables *route_salvage(const struct fabric *f, const struct fabric_tables *t,
                                    const struct verify_opts *o, struct route_proof *ret)
{
    if (t->num_switches != f->num_switches || f->num_switches == 0)
        return NULL;
    struct verify_opts all = *o;
    all.all_switches = true;
    struct fabric_tables *keep = tables_new(f, f->top_lid, t->engine);
    *ret = (struct route_proof){.ok = true};
    prove(f, t, &all, keep, ret, NULL);
    if (t->lanes)
        tables_set_lanes(keep, lanes_ref(t->lanes));
    tables_seal(keep, false);
    route_verify(f, keep, o, ret);
    bool sound = ret->ok || ret->fault == ROUTE_NO_ENTRY;
    if (sound && (!ret->credit_loop || o->allow_credit_loops) &&
        ret->pairs > ret->disconnected + ret->unreached)
        return keep;
    tables_unref(keep);
    return NULL;
}
