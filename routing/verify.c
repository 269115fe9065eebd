// SPDX-License-Identifier: Apache-2.0
// The proof of forwarding tables. It shares no code with what makes them: it reads cables from the snapshot
// and entries from the tables, and follows every entry itself.
//
// Per destination the entries of all switches are a graph with one edge out of each: walking from each source
// with memory visits every switch once. On the way it notes which channel (a directed cable between switches)
// is entered after which; those dependencies must have no cycle (Dally and Seitz), or packets that wait for
// each other's buffers can wait for ever. Injection from and delivery to end ports adds channels at which no
// cycle can pass, so they are left out.
//
// Parallel over blocks of 64 LIDs, each task with scratch memory of its own; the result does not depend on
// how many there are. Cost: O(switches x LIDs).
#include "routing/verify_priv.h"

#include <stdio.h>
#include <string.h>

#define PENDING 0xff

struct job {
    struct vcables c;
    struct vtask *task;
    uint32_t num_tasks, num_blocks;
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

// Where each switch's entry leads, for the destination that hangs on port `port` of switch `sw`. By itself,
// as loads that do not wait for each other are several times faster than a walk over them.
static void resolve(const struct vcables *c, const struct vtask *k, const uint8_t *restrict next, uint32_t sw,
                    uint8_t port)
{
    uint32_t *restrict to = k->to, n = c->n;
    for (uint32_t v = 0; v < n; v++)
        to[v] = vfar_end(c, v, next[v]);
    if (sw != ID_NONE && next[sw] == port)
        to[sw] = LINK_ARRIVES;
}

static enum route_fault walk(const struct vcables *c, struct vtask *k, uint32_t from)
{
    uint32_t n = 0, v = from;
    enum route_fault r;
    uint16_t depth = 0;
    for (;;) {
        if (k->state[v] != 0) {
            r = k->state[v] == PENDING ? ROUTE_LOOP : (enum route_fault)(k->state[v] - 1);
            depth = k->state[v] == PENDING ? 0 : (uint16_t)(k->depth[v] + 1);
            break;
        }
        k->state[v] = PENDING;
        k->path[n++] = v;
        if (k->to[v] >= c->n) {
            r = (enum route_fault)(k->to[v] - LINK_STOP);
            break;
        }
        v = k->to[v];
    }
    while (n > 0) {
        v = k->path[--n];
        k->state[v] = (uint8_t)(r + 1);
        k->depth[v] = depth++;
    }
    return r;
}

// The turns that the visited switches' entries make.
static void note_turns(const struct vcables *c, const struct vtask *k, const uint8_t *restrict next)
{
    const uint32_t *restrict to = k->to, n = c->n, words = c->words;
    const uint8_t *restrict state = k->state;
    uint64_t *restrict dep = k->dep, *restrict used = k->used;
    size_t chan = 0;
    for (uint32_t v = 0; v < n; v++, chan += c->ports) {
        uint32_t w = to[v];
        if (state[v] == 0 || w >= n)
            continue;
        size_t out = chan + next[v];
        uint32_t bit = next[w] - 1u;
        used[out / 64] |= 1ULL << (out % 64);
        if (to[w] < n)
            dep[out * words + bit / 64] |= 1ULL << (bit % 64);
    }
}

// The turns that all entries make, walked over or not: what packets can do that start or change over midway.
static void note_all(const struct vcables *c, const struct vtask *k, const uint8_t *restrict next)
{
    const uint32_t *restrict to = k->to, n = c->n, words = c->words;
    uint64_t *restrict turns = k->turns;
    size_t chan = 0;
    for (uint32_t v = 0; v < n; v++, chan += c->ports) {
        uint32_t w = to[v];
        if (w >= n || to[w] >= n)
            continue;
        uint32_t bit = next[w] - 1u;
        turns[(chan + next[v]) * words + bit / 64] |= 1ULL << (bit % 64);
    }
}

static void note_fault(struct vtask *k, enum route_fault fault, uint32_t sw, uint16_t lid)
{
    if (k->first.fault == ROUTE_OK)
        k->first = (struct vfault){fault, sw, lid};
}

void vprove_lid(const struct vcables *c, struct vtask *k, const uint8_t *next, uint16_t lid)
{
    uint32_t sw = ID_NONE;
    uint8_t port = 0;
    bool attached = vend_of(c->f, lid, &sw, &port);
    if (!attached)
        sw = ID_NONE;
    memset(k->state, 0, c->n);
    resolve(c, k, next, sw, port);
    k->pairs += c->num_sources;
    for (uint32_t s = 0; s < c->n; s++) {
        if (!c->source[s])
            continue;
        enum route_fault r = k->state[s] != 0 ? (enum route_fault)(k->state[s] - 1) : walk(c, k, s);
        if (r == ROUTE_OK) {
            if (k->depth[s] > k->max_hops)
                k->max_hops = k->depth[s];
            if (c->hist && k->depth[s] < VHOPS)
                c->hist[(size_t)lid * VHOPS + k->depth[s]]++;
            continue;
        }
        bool wired = attached && c->part[s] == c->part[sw];
        if (wired)
            k->unreached++;
        else
            k->disconnected++;
        // Without a path of cables nothing can arrive; but nothing may circle either.
        if (wired || r == ROUTE_LOOP)
            note_fault(k, r, s, lid);
    }
    note_turns(c, k, next);
    if (k->turns)
        note_all(c, k, next);
    for (uint32_t v = 0; c->keep && v < c->n; v++) {
        if (k->state[v] == ROUTE_OK + 1)
            tables_row(c->keep, v)[lid] = next[v];
    }
}

// The entries of one block of LIDs, destination by destination.
static void turn_block(const struct vcables *c, uint8_t *restrict next, uint32_t lid0)
{
    uint8_t tile[BLOCK][BLOCK];
    for (uint32_t s0 = 0; s0 < c->n; s0 += BLOCK) {
        uint32_t m = c->n - s0 < BLOCK ? c->n - s0 : BLOCK;
        for (uint32_t i = 0; i < m; i++) {
            if (lid0 < c->t->lids)
                memcpy(tile[i], tables_row(c->t, s0 + i) + lid0, BLOCK);
            else
                memset(tile[i], LFT_DROP, BLOCK);
        }
        for (uint32_t l = 0; l < BLOCK; l++) {
            for (uint32_t i = 0; i < m; i++)
                next[l * (size_t)c->n + s0 + i] = tile[i][l];
        }
    }
}

static void prove_task(void *arg, unsigned i)
{
    struct job *j = arg;
    struct vtask *k = &j->task[i];
    const struct vcables *c = &j->c;
    uint32_t from = (uint32_t)((uint64_t)j->num_blocks * i / j->num_tasks);
    uint32_t to = (uint32_t)((uint64_t)j->num_blocks * (i + 1) / j->num_tasks);
    for (uint32_t b = from; b < to; b++) {
        uint32_t lid0 = b * BLOCK, present = 0;
        for (uint32_t l = 0; l < BLOCK; l++)
            present += vpresent(c->f, lid0 + l);
        if (present == 0)
            continue;
        turn_block(c, k->next, lid0);
        for (uint32_t l = 0; l < BLOCK; l++) {
            if (vpresent(c->f, lid0 + l))
                vprove_lid(c, k, k->next + l * (size_t)c->n, (uint16_t)(lid0 + l));
        }
    }
}

// --- dependencies ---

// The next channel after `from` bits of channel chan's set: LINK_DEAD at the end.
static uint32_t next_dep(const struct vcables *c, const uint64_t *dep, size_t chan, uint32_t *at)
{
    while (*at < c->words * 64) {
        uint64_t w = dep[chan * c->words + *at / 64] >> (*at % 64);
        if (w == 0) {
            *at = (*at / 64 + 1) * 64;
            continue;
        }
        *at += (uint32_t)__builtin_ctzll(w) + 1;
        uint32_t v = c->link[chan];
        return v * c->ports + *at; // bit 0 is port 1
    }
    return LINK_DEAD;
}

// A cycle of channels, its length in *ret_n, or NULL.
uint32_t *vfind_cycle(const struct vcables *c, const uint64_t *dep, struct arena *a, uint32_t *ret_n)
{
    size_t chans = (size_t)c->n * c->ports;
    uint8_t *colour = arena_alloc(a, chans + 1); // 1 on the stack, 2 done
    uint32_t *stack = ARENA_NEW_N(a, chans + 1, uint32_t);
    uint32_t *at = ARENA_NEW_N(a, chans + 1, uint32_t);
    for (uint32_t start = 0; start < chans; start++) {
        if (colour[start] != 0 || c->link[start] >= c->n)
            continue;
        uint32_t top = 0;
        stack[0] = start;
        at[0] = 0;
        colour[start] = 1;
        for (;;) {
            uint32_t y = next_dep(c, dep, stack[top], &at[top]);
            if (y == LINK_DEAD) {
                colour[stack[top]] = 2;
                if (top-- == 0)
                    break;
                continue;
            }
            if (colour[y] == 2)
                continue;
            if (colour[y] == 1) {
                uint32_t i = top;
                while (stack[i] != y)
                    i--;
                *ret_n = top + 1 - i;
                return stack + i;
            }
            colour[y] = 1;
            stack[++top] = y;
            at[top] = 0;
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

void vtask_new(const struct vcables *c, struct vtask *k)
{
    size_t chans = (size_t)c->n * c->ports + 1;
    k->a = arena_new();
    k->dep = ARENA_NEW_N(k->a, chans * c->words, uint64_t);
    k->used = ARENA_NEW_N(k->a, chans / 64 + 1, uint64_t);
    if (c->hist)
        k->turns = ARENA_NEW_N(k->a, chans * c->words, uint64_t);
    k->next = ARENA_NEW_N(k->a, (size_t)c->n * BLOCK + 1, uint8_t);
    k->state = ARENA_NEW_N(k->a, c->n + 1, uint8_t);
    k->to = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->depth = ARENA_NEW_N(k->a, c->n + 1, uint16_t);
    k->path = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
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
        if (first->fault == ROUTE_OK)
            *first = k->first;
        for (size_t x = 0; i > 0 && x < chans * c->words; x++)
            k0->dep[x] |= k->dep[x];
        for (size_t x = 0; i > 0 && k0->turns && x < chans * c->words; x++)
            k0->turns[x] |= k->turns[x];
        for (size_t x = 0; i > 0 && x <= chans / 64; x++)
            k0->used[x] |= k->used[x];
    }
    for (size_t x = 0; x < chans * c->words; x++)
        r->dependencies += (uint32_t)__builtin_popcountll(k0->dep[x]);
    for (size_t x = 0; x <= chans / 64; x++)
        r->channels += (uint32_t)__builtin_popcountll(k0->used[x]);
}

static void conclude(struct job *j, const struct verify_opts *o, struct route_proof *r, struct arena *a)
{
    struct vfault first = {.fault = ROUTE_OK};
    uint32_t n = 0;
    merge(j, r, &first);
    uint32_t *cycle = vfind_cycle(&j->c, j->task[0].dep, a, &n);
    r->fault = first.fault;
    r->credit_loop = cycle != NULL;
    if (r->fault == ROUTE_OK && cycle && !o->allow_credit_loops)
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
    struct job j = {.c = {.f = f, .t = t, .keep = keep}, .num_blocks = f->top_lid / BLOCK + 1u};
    vread_cables(&j.c, o, a);
    vfind_parts(&j.c, a);
    if (ret_state)
        j.c.hist = ARENA_NEW_N(a, ((size_t)f->top_lid + 1) * VHOPS, uint16_t);
    j.num_tasks = o->par && o->par->width > 1 ? o->par->width : 1;
    if (j.num_tasks > j.num_blocks)
        j.num_tasks = j.num_blocks;
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
    if (ret_state && ret->ok && !ret->credit_loop && ret->max_hops < VHOPS)
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
    tables_seal(keep, false);
    route_verify(f, keep, o, ret);
    bool sound = ret->ok || ret->fault == ROUTE_NO_ENTRY;
    if (sound && (!ret->credit_loop || o->allow_credit_loops) &&
        ret->pairs > ret->disconnected + ret->unreached)
        return keep;
    tables_unref(keep);
    return NULL;
}
