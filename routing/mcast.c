// SPDX-License-Identifier: Apache-2.0
// The multicast tree: candidates for its root, the tree of each, and the proof with the unicast tables.
//
// A channel is a switch's port towards another switch; one depends on the next where a packet may hold the
// first while it waits for the second. Dependencies are those of packets that start at a switch with end
// nodes, so that entries which nobody's packets meet do not count; where tables have virtual lanes, of those
// on the lane that multicast goes by, too. 64 LIDs are walked at a time, from a copy
// of their entries that fits a cache.
//
// What the proof of the tables left behind has all of these, and some that no packet makes any more. A tree
// that makes no cycle with those makes none; before one is refused for it, they are gathered after all.
#include "routing/mcast.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "routing/route_priv.h"
#include "routing/verify_priv.h"

#define CANDIDATES 64 // switches whose routes are compared
#define TRIES 8       // of them whose tree is made, beside those of the last tree and the top switch

struct deps {
    const struct fabric *f;
    uint32_t *channel;   // by port: its number, ID_NONE where the far end is no switch
    uint32_t *port;      // by channel
    uint64_t (*next)[4]; // by channel: ports of the switch it leads to; bit 0 is port 1
    uint32_t n, added, cap_undo;
    bool exact; // not more than packets make
    struct undo {
        uint32_t channel;
        uint8_t port;
    } * undo;
};

struct make {
    const struct fabric *f;
    const struct fabric_tables *t;
    const struct mcast_opts *o;
    struct deps d;
    bool *needed, *starts;     // by switch: it has end nodes
    struct mcast_step *kept;   // by switch: as in the last tree, where that link is there; NULL
    uint32_t *part, num_parts; // by switch: connected part
    uint32_t *path;            // scratch: switches
    struct mcast_tree *tree;
};

static bool is_switch(const struct fabric *f, uint32_t node)
{
    return f->node[node].type == NODE_SWITCH;
}

// The switch at the far end of a switch's port; ID_NONE when there is none.
static uint32_t beyond(const struct fabric *f, uint32_t sw, unsigned num, uint8_t *ret_num)
{
    const struct node *n = fabric_switch(f, sw);
    if (num == 0 || num > n->num_ports)
        return ID_NONE;
    const struct port *p = &f->port[n->first_port + num];
    if (!port_valid(p->peer) || p->excluded != PORT_INCLUDED)
        return ID_NONE;
    const struct port *z = &f->port[p->peer.i];
    *ret_num = z->num;
    return is_switch(f, z->node.i) ? f->node[z->node.i].sw : ID_NONE;
}

// --- dependencies ---

static void deps_init(struct deps *d, const struct fabric *f)
{
    uint8_t num;
    *d = (struct deps){.f = f};
    d->channel = xreallocarray(NULL, f->num_ports ? f->num_ports : 1, sizeof(uint32_t));
    d->port = xreallocarray(NULL, f->num_ports ? f->num_ports : 1, sizeof(uint32_t));
    memset(d->channel, 0xff, f->num_ports * sizeof(uint32_t));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw);
        for (unsigned i = 1; i <= n->num_ports; i++)
            if (beyond(f, sw, i, &num) != ID_NONE) {
                d->channel[n->first_port + i] = d->n;
                d->port[d->n++] = n->first_port + i;
            }
    }
    d->next = xcalloc(d->n ? d->n : 1, sizeof(*d->next));
}

static void deps_done(struct deps *d)
{
    free(d->channel);
    free(d->port);
    free(d->next);
    free(d->undo);
}

// One LID from one switch on, as far as nobody has walked it. entry: 64 a switch, k the LID's column.
static void walk(struct make *m, const uint8_t *entry, unsigned k, uint32_t sw, uint32_t *stamp, uint32_t now)
{
    const struct fabric *f = m->f;
    uint32_t from = ID_NONE;

    for (;;) {
        const struct node *n = fabric_switch(f, sw);
        unsigned out = entry[(size_t)sw * LFT_BLOCK + k];
        if (out == 0 || out > n->num_ports)
            return;
        uint32_t c = m->d.channel[n->first_port + out];
        if (c == ID_NONE)
            return;
        if (from != ID_NONE)
            m->d.next[from][(out - 1) / 64] |= 1ull << ((out - 1) % 64);
        if (stamp[sw] == now)
            return;
        stamp[sw] = now;
        from = c;
        sw = f->node[f->port[f->port[m->d.port[c]].peer.i].node.i].sw;
    }
}

// Whether what starts there goes by the lane that multicast goes by, too.
static bool same_lane(const struct make *m, uint32_t sw, uint32_t end)
{
    if (m->t->lanes == NULL)
        return m->starts[sw];
    return end != ID_NONE && lanes_get(m->t->lanes, sw, end) == MCAST_LANE;
}

static void unicast(struct make *m)
{
    const struct fabric *f = m->f;
    uint32_t n = f->num_switches, now = 0;
    uint8_t *entry = xcalloc(n ? n : 1, LFT_BLOCK);
    uint32_t *stamp = xcalloc(n ? n : 1, sizeof(*stamp));

    for (uint32_t base = 0; base < m->t->lids && base <= f->top_lid; base += LFT_BLOCK) {
        for (uint32_t sw = 0; sw < n; sw++)
            memcpy(entry + (size_t)sw * LFT_BLOCK, tables_row(m->t, sw) + base, LFT_BLOCK);
        for (unsigned k = 0; k < LFT_BLOCK; k++) {
            if (base + k > LID_UCAST_MAX || f->lid_port[base + k] == ID_NONE)
                continue;
            uint32_t end = ID_NONE;
            uint8_t port;
            now++;
            rattachment(f, f->lid_port[base + k], &end, &port);
            for (uint32_t sw = 0; sw < n; sw++)
                if (same_lane(m, sw, end))
                    walk(m, entry, k, sw, stamp, now);
        }
    }
    free(entry);
    free(stamp);
}

static void gather(struct make *m)
{
    m->d.exact = true;
    memset(m->d.next, 0, m->d.n * sizeof(*m->d.next));
    unicast(m);
}

// The dependencies as the proof has them, without those over cables that are gone; false when it has not all.
static bool inherit(struct make *m, const struct route_proof_state *proof)
{
    const struct fabric *f = m->f;
    uint64_t(*there)[4] = NULL;
    uint32_t words;

    if (proof == NULL || m->t->lanes != NULL || !vstate_covers(proof, f))
        return false;
    there = xcalloc(f->num_switches ? f->num_switches : 1, sizeof(*there));
    for (uint32_t c = 0; c < m->d.n; c++) {
        const struct port *p = &f->port[m->d.port[c]];
        there[f->node[p->node.i].sw][(p->num - 1u) / 64] |= 1ull << ((p->num - 1u) % 64);
    }
    for (uint32_t c = 0; c < m->d.n; c++) {
        const struct port *p = &f->port[m->d.port[c]];
        const uint64_t *dep = vstate_deps(proof, f->node[p->node.i].sw, p->num, &words);
        const uint64_t *ports = there[f->node[f->port[p->peer.i].node.i].sw];
        for (uint32_t w = 0; w < words && w < 4; w++)
            m->d.next[c][w] = dep[w] & ports[w];
    }
    free(there);
    return true;
}

struct visit {
    uint32_t channel, at; // the port after which to go on
};

// The next channel that depends on it; ID_NONE when there is none left.
static uint32_t next_of(const struct deps *d, struct visit *v)
{
    const struct fabric *f = d->f;
    while (v->at < 256) {
        uint64_t bits = d->next[v->channel][v->at / 64] >> (v->at % 64);
        if (bits == 0) {
            v->at = (v->at / 64 + 1) * 64;
            continue;
        }
        v->at += (uint32_t)__builtin_ctzll(bits) + 1;
        uint32_t peer = f->port[d->port[v->channel]].peer.i;
        return d->channel[f->node[f->port[peer].node.i].first_port + v->at];
    }
    return ID_NONE;
}

// Whether there is a cycle among what can be reached from one channel. colour: 1 on the way, 2 done.
static bool cycle_from(const struct deps *d, uint32_t start, uint8_t *colour, struct visit *stack)
{
    uint32_t top = 0;

    if (colour[start] != 0)
        return false;
    stack[0] = (struct visit){.channel = start};
    colour[start] = 1;
    for (;;) {
        uint32_t z = next_of(d, &stack[top]);
        if (z == ID_NONE) {
            colour[stack[top].channel] = 2;
            if (top-- == 0)
                return false;
        } else if (colour[z] == 1) {
            return true;
        } else if (colour[z] == 0) {
            colour[z] = 1;
            stack[++top] = (struct visit){.channel = z};
        }
    }
}

// all: from every channel; else only cycles that a turn is part of which was added after `from` others, which
// are all when there was none before.
static bool has_cycle(const struct deps *d, bool all, uint32_t from)
{
    uint8_t *colour = xcalloc(d->n + 1, 1);
    struct visit *stack = xreallocarray(NULL, d->n + 1, sizeof(*stack));
    uint32_t n = all ? d->n : d->added;
    bool found = false;

    for (uint32_t i = all ? 0 : from; i < n && !found; i++)
        found = cycle_from(d, all ? i : d->undo[i].channel, colour, stack);
    free(colour);
    free(stack);
    return found;
}

static void add_turn(struct deps *d, uint32_t channel, unsigned out)
{
    unsigned i = out - 1;
    uint64_t bit = 1ull << (i % 64);
    if (d->next[channel][i / 64] & bit)
        return;
    d->next[channel][i / 64] |= bit;
    if (d->added == d->cap_undo) {
        d->cap_undo = d->cap_undo ? d->cap_undo * 2 : 256;
        d->undo = xreallocarray(d->undo, d->cap_undo, sizeof(*d->undo));
    }
    d->undo[d->added++] = (struct undo){channel, (uint8_t)out};
}

static void take_turns_back(struct deps *d, uint32_t to)
{
    while (d->added > to) {
        const struct undo *u = &d->undo[--d->added];
        d->next[u->channel][(u->port - 1u) / 64] &= ~(1ull << ((u->port - 1u) % 64));
    }
}

// Every turn between two ports of the tree at one switch.
static void add_tree(struct make *m)
{
    const struct fabric *f = m->f;
    uint32_t n = f->num_switches;
    uint64_t(*port)[4] = xcalloc(n ? n : 1, sizeof(*port));

    for (uint32_t sw = 0; sw < n; sw++) {
        const struct mcast_step *s = &m->tree->step[sw];
        if (!s->in || s->parent == ID_NONE)
            continue;
        port[sw][s->out / 64] |= 1ull << (s->out % 64);
        port[s->parent][s->back / 64] |= 1ull << (s->back % 64);
    }
    for (uint32_t sw = 0; sw < n; sw++) {
        uint32_t base = fabric_switch(f, sw)->first_port;
        for (unsigned i = 1; i <= fabric_switch(f, sw)->num_ports; i++) {
            if (!(port[sw][i / 64] >> (i % 64) & 1))
                continue;
            uint32_t c = m->d.channel[f->port[base + i].peer.i];
            for (unsigned k = 1; k <= fabric_switch(f, sw)->num_ports && c != ID_NONE; k++)
                if (k != i && (port[sw][k / 64] >> (k % 64) & 1))
                    add_turn(&m->d, c, k);
        }
    }
    free(port);
}

// Whether the tree as it is makes no cycle with the unicast tables, nor with the trees of other parts, which
// it shares no channel with.
static bool proves(struct make *m)
{
    if (m->tree->unicast_cycle)
        return false;
    for (;;) {
        add_tree(m);
        bool cycle = m->d.added > 0 && has_cycle(&m->d, false, 0);
        take_turns_back(&m->d, 0);
        if (!cycle || m->d.exact)
            return !cycle;
        gather(m);
    }
}

// --- one root's tree ---

struct climb {
    uint32_t hops;
    bool up; // every step goes a tier up
};

// The switches from sw on its way to the root's LID go into m->path, without the root, or without the first
// one that is in the tree. False: it does not get there.
static bool route(const struct make *m, uint32_t sw, uint32_t root, uint16_t lid, struct climb *ret)
{
    uint8_t num;
    *ret = (struct climb){.up = true};
    while (sw != root && !m->tree->step[sw].in) {
        if (ret->hops >= m->f->num_switches)
            return false;
        m->path[ret->hops++] = sw;
        uint32_t next = beyond(m->f, sw, tables_port(m->t, sw, lid), &num);
        if (next == ID_NONE)
            return false;
        ret->up &= fabric_switch(m->f, next)->tier > fabric_switch(m->f, sw)->tier;
        sw = next;
    }
    return true;
}

static uint16_t switch_lid(const struct fabric *f, uint32_t sw)
{
    return f->port[fabric_switch(f, sw)->first_port].a.lid;
}

// What can climb to the root by links of the last tree does.
static void plant_kept(struct make *m, uint32_t part)
{
    struct mcast_step *step = m->tree->step;
    for (uint32_t first = 0; first < m->f->num_switches; first++) {
        uint32_t n = 0, sw = first;
        if (m->part[sw] != part || !m->needed[sw])
            continue;
        while (!step[sw].in && m->kept[sw].in && n < m->f->num_switches) {
            m->path[n++] = sw;
            sw = m->kept[sw].parent;
        }
        for (uint32_t i = 0; i < n && step[sw].in; i++)
            step[m->path[i]] = m->kept[m->path[i]];
    }
}

// Adds the part's tree; returns needed switches that do not get to the root.
static uint32_t plant(struct make *m, uint32_t part, uint32_t root, bool keep)
{
    struct mcast_tree *t = m->tree;
    uint16_t lid = switch_lid(m->f, root);
    uint32_t missing = 0;

    t->step[root].in = true;
    if (keep)
        plant_kept(m, part);
    for (uint32_t sw = 0; sw < m->f->num_switches; sw++) {
        struct climb c;
        if (m->part[sw] != part || !m->needed[sw] || t->step[sw].in)
            continue;
        if (lid == 0 || !route(m, sw, root, lid, &c)) {
            missing++;
            continue;
        }
        for (uint32_t i = 0; i < c.hops; i++) {
            struct mcast_step *s = &t->step[m->path[i]];
            s->in = true;
            s->out = tables_port(m->t, m->path[i], lid);
            s->parent = beyond(m->f, m->path[i], s->out, &s->back);
        }
    }
    return missing;
}

static void fell(struct make *m, uint32_t part)
{
    for (uint32_t sw = 0; sw < m->f->num_switches; sw++)
        if (m->part[sw] == part)
            m->tree->step[sw] = (struct mcast_step){.parent = ID_NONE};
}

// --- a tree that is grown ---

struct growth {
    uint64_t (*port)[4]; // by switch: of the tree
    uint32_t *reached, num;
};

// Takes one more cable into the tree, from v on, if the turns at v make no cycle.
static bool reach(struct make *m, struct growth *w, uint32_t v, unsigned out)
{
    const struct fabric *f = m->f;
    uint32_t base = fabric_switch(f, v)->first_port, mark = m->d.added;
    struct mcast_step s = {.parent = v, .back = (uint8_t)out, .in = true};
    uint32_t z = beyond(f, v, out, &s.out),
             up = z == ID_NONE ? ID_NONE : m->d.channel[f->port[base + out].peer.i];

    if (z == ID_NONE || up == ID_NONE || m->tree->step[z].in)
        return false;
    for (unsigned k = 1; k <= fabric_switch(f, v)->num_ports; k++) {
        if (!(w->port[v][k / 64] >> (k % 64) & 1))
            continue;
        add_turn(&m->d, up, k);
        add_turn(&m->d, m->d.channel[f->port[base + k].peer.i], out);
    }
    if (m->d.added > mark && has_cycle(&m->d, false, mark)) {
        take_turns_back(&m->d, mark);
        return false;
    }
    m->tree->step[z] = s;
    w->port[v][out / 64] |= 1ull << (out % 64);
    w->port[z][s.out / 64] |= 1ull << (s.out % 64);
    w->reached[w->num++] = z;
    return true;
}

// Branches that lead to no needed switch.
static void prune(struct make *m, const struct growth *w)
{
    uint32_t *children = xcalloc(m->f->num_switches ? m->f->num_switches : 1, sizeof(*children));
    for (uint32_t i = 1; i < w->num; i++)
        children[m->tree->step[w->reached[i]].parent]++;
    for (uint32_t i = w->num; i-- > 1;) {
        struct mcast_step *s = &m->tree->step[w->reached[i]];
        if (children[w->reached[i]] > 0 || m->needed[w->reached[i]])
            continue;
        children[s->parent]--;
        *s = (struct mcast_step){.parent = ID_NONE};
    }
    free(children);
}

// The part's tree, cable by cable, the nearest to the root first and links of the last tree before others,
// each only if it makes no cycle. Returns needed switches that are not reached.
static uint32_t grow(struct make *m, uint32_t part, uint32_t root, bool keep)
{
    const struct fabric *f = m->f;
    size_t cells = f->num_switches ? f->num_switches : 1;
    struct growth w = {.port = xcalloc(cells, sizeof(*w.port)),
                       .reached = xcalloc(cells, sizeof(*w.reached))};
    uint32_t missing = 0;

    m->tree->step[root].in = true;
    w.reached[w.num++] = root;
    for (int others = !keep; others < 2; others++)
        for (uint32_t i = 0; i < w.num; i++) {
            uint32_t v = w.reached[i];
            for (unsigned out = 1; out <= fabric_switch(f, v)->num_ports; out++) {
                uint8_t num;
                uint32_t z = beyond(f, v, out, &num);
                if (others ||
                    (z != ID_NONE && m->kept[z].in && m->kept[z].parent == v && m->kept[z].back == out))
                    reach(m, &w, v, out);
            }
        }
    prune(m, &w);
    take_turns_back(&m->d, 0);
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        missing += m->part[sw] == part && m->needed[sw] && !m->tree->step[sw].in;
    free(w.port);
    free(w.reached);
    return missing;
}

// --- which root ---

struct candidate {
    uint32_t sw, missing, up, hops;
};

static int by_merit(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->missing != y->missing)
        return x->missing < y->missing ? -1 : 1;
    if (x->up != y->up)
        return x->up > y->up ? -1 : 1;
    if (x->hops != y->hops)
        return x->hops < y->hops ? -1 : 1;
    return x->sw < y->sw ? -1 : x->sw > y->sw;
}

static struct candidate weigh(const struct make *m, uint32_t part, uint32_t root)
{
    struct candidate c = {.sw = root};
    uint16_t lid = switch_lid(m->f, root);
    for (uint32_t sw = 0; sw < m->f->num_switches; sw++) {
        struct climb w;
        if (m->part[sw] != part || !m->needed[sw] || sw == root)
            continue;
        if (lid == 0 || !route(m, sw, root, lid, &w)) {
            c.missing++;
            continue;
        }
        c.up += w.up;
        c.hops += w.hops;
    }
    return c;
}

static int highest_tier(const struct make *m, uint32_t part)
{
    int tier = -1;
    for (uint32_t sw = 0; sw < m->f->num_switches; sw++) {
        const struct node *n = fabric_switch(m->f, sw);
        if (m->part[sw] == part && n->tier != TIER_NONE && n->tier > tier)
            tier = n->tier;
    }
    return tier;
}

static uint32_t switch_by_guid(const struct make *m, uint32_t part, uint64_t guid)
{
    const struct node *n = guid != 0 ? fabric_by_guid(m->f, guid) : NULL;
    return n != NULL && n->type == NODE_SWITCH && m->part[n->sw] == part ? n->sw : ID_NONE;
}

// Best first; returns their number. list holds CANDIDATES + 1.
static uint32_t candidates(const struct make *m, uint32_t part, struct candidate *list)
{
    int tier = highest_tier(m, part);
    uint32_t n = 0, sw;

    for (sw = 0; sw < m->f->num_switches && n < CANDIDATES; sw++)
        if (m->part[sw] == part && (tier < 0 || fabric_switch(m->f, sw)->tier == tier))
            list[n++] = weigh(m, part, sw);
    qsort(list, n, sizeof(*list), by_merit);
    if (n > TRIES)
        n = TRIES;
    if ((sw = switch_by_guid(m, part, m->o->top_guid)) != ID_NONE)
        list[n++].sw = sw;
    return n;
}

struct choice {
    uint32_t root, missing;
    bool keep;
};

// Whether a tree that is grown from there reaches all; if not it is felled.
static bool attempt_grown(struct make *m, uint32_t part, uint32_t root, bool keep)
{
    if (!m->d.exact)
        gather(m);
    if (!m->tree->unicast_cycle && grow(m, part, root, keep) == 0 && proves(m)) {
        m->tree->root[m->tree->num_roots++] = root;
        return true;
    }
    fell(m, part);
    return false;
}

// Whether that tree is the one; if not it is felled, and *best is the best so far.
static bool attempt(struct make *m, uint32_t part, uint32_t root, bool keep, struct choice *best)
{
    uint32_t missing = plant(m, part, root, keep);
    if (missing < best->missing)
        *best = (struct choice){.root = root, .missing = missing, .keep = keep};
    if (missing == 0 && (m->tree->unicast_cycle || proves(m))) {
        m->tree->root[m->tree->num_roots++] = root;
        return true;
    }
    fell(m, part);
    return false;
}

struct ranked {
    uint64_t rank;
    uint32_t sw;
};

static int by_rank(const void *a, const void *b)
{
    uint64_t x = ((const struct ranked *)a)->rank, y = ((const struct ranked *)b)->rank;
    return x < y ? -1 : x > y;
}

// From every switch, or from as many as there is time for: those of which mcast_rank() is least, as the
// engine sssp keeps room for such a tree from one of these.
static bool choose_any(struct make *m, uint32_t part)
{
    struct ranked *list = xcalloc(m->f->num_switches ? m->f->num_switches : 1, sizeof(*list));
    uint32_t n = 0;
    bool found = false;

    for (uint32_t sw = 0; sw < m->f->num_switches; sw++)
        if (m->part[sw] == part)
            list[n++] = (struct ranked){mcast_rank(fabric_switch(m->f, sw)->guid), sw};
    qsort(list, n, sizeof(*list), by_rank);
    for (uint32_t i = 0; i < n && i < MCAST_GROWN_TRIES && !found; i++)
        found = attempt_grown(m, part, list[i].sw, false);
    free(list);
    return found;
}

static bool choose_grown(struct make *m, uint32_t part, const struct candidate *list, uint32_t n)
{
    uint32_t sw;

    for (uint32_t i = 0; i < m->o->num_roots && i < MCAST_ROOTS_MAX; i++)
        if ((sw = switch_by_guid(m, part, m->o->roots[i])) != ID_NONE &&
            ((m->kept != NULL && attempt_grown(m, part, sw, true)) || attempt_grown(m, part, sw, false)))
            return true;
    for (uint32_t i = 0; i < n; i++)
        if (attempt_grown(m, part, list[i].sw, false))
            return true;
    return m->t->lanes != NULL && choose_any(m, part);
}

static void choose(struct make *m, uint32_t part)
{
    struct candidate list[CANDIDATES + 1];
    struct choice best = {.root = ID_NONE, .missing = UINT32_MAX};
    struct mcast_tree *t = m->tree;
    uint32_t sw;

    for (uint32_t i = 0; i < m->o->num_roots && i < MCAST_ROOTS_MAX; i++)
        if ((sw = switch_by_guid(m, part, m->o->roots[i])) != ID_NONE &&
            ((m->kept != NULL && attempt(m, part, sw, true, &best)) || attempt(m, part, sw, false, &best)))
            return;
    uint32_t n = candidates(m, part, list);
    for (uint32_t i = 0; i < n; i++)
        if (attempt(m, part, list[i].sw, false, &best))
            return;
    if (choose_grown(m, part, list, n))
        return;
    if (best.root == ID_NONE)
        return;
    t->num_unreached += plant(m, part, best.root, best.keep);
    t->proved &= proves(m);
    t->root[t->num_roots++] = best.root;
}

// The links of the last tree that are there.
static void find_kept(struct make *m)
{
    const struct fabric *f = m->f, *was = m->o->last_fabric;
    const struct mcast_tree *last = m->o->last;
    uint8_t num;

    if (last == NULL || was == NULL || last->num_switches != was->num_switches)
        return;
    m->kept = xcalloc(f->num_switches ? f->num_switches : 1, sizeof(*m->kept));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw), *o;
        o = sw < was->num_switches && fabric_switch(was, sw)->guid == n->guid ? fabric_switch(was, sw)
                                                                              : fabric_by_guid(was, n->guid);
        if (o == NULL || o->type != NODE_SWITCH || last->step[o->sw].parent == ID_NONE)
            continue;
        struct mcast_step s = last->step[o->sw];
        uint64_t parent = fabric_switch(was, s.parent)->guid;
        s.parent = beyond(f, sw, s.out, &num);
        if (s.parent != ID_NONE && num == s.back && fabric_switch(f, s.parent)->guid == parent)
            m->kept[sw] = s;
    }
}

// --- parts ---

static void find_parts(struct make *m)
{
    const struct fabric *f = m->f;
    uint8_t num;
    memset(m->part, 0xff, f->num_switches * sizeof(*m->part));
    for (uint32_t first = 0; first < f->num_switches; first++) {
        if (m->part[first] != ID_NONE)
            continue;
        uint32_t n = 0, done = 0;
        m->part[first] = m->num_parts;
        m->path[n++] = first;
        while (done < n) {
            uint32_t sw = m->path[done++];
            for (unsigned i = 1; i <= fabric_switch(f, sw)->num_ports; i++) {
                uint32_t z = beyond(f, sw, i, &num);
                if (z != ID_NONE && m->part[z] == ID_NONE) {
                    m->part[z] = m->num_parts;
                    m->path[n++] = z;
                }
            }
        }
        m->num_parts++;
    }
}

struct mcast_tree *mcast_tree_make(const struct fabric *f, const struct fabric_tables *t,
                                   const struct mcast_opts *o)
{
    uint32_t n = f->num_switches;
    size_t cells = n ? n : 1;
    struct make m = {.f = f, .t = t, .o = o, .tree = xcalloc(1, sizeof(*m.tree))};

    m.tree->num_switches = n;
    m.tree->proved = true;
    m.tree->step = xcalloc(cells, sizeof(*m.tree->step));
    for (uint32_t sw = 0; sw < n; sw++)
        m.tree->step[sw].parent = ID_NONE;
    m.part = xcalloc(cells, sizeof(*m.part));
    m.path = xcalloc(cells, sizeof(*m.path));
    m.needed = xcalloc(cells, sizeof(*m.needed));
    m.starts = xcalloc(cells, sizeof(*m.starts));
    for (uint32_t sw = 0; sw < n; sw++)
        m.starts[sw] = fabric_has_ends(f, sw);
    memcpy(m.needed, o->needed != NULL ? o->needed : m.starts, n * sizeof(*m.needed));
    find_parts(&m);
    find_kept(&m);
    deps_init(&m.d, f);
    if (t->num_switches == n) {
        if (!inherit(&m, o->proof)) {
            gather(&m);
            m.tree->unicast_cycle = has_cycle(&m.d, true, 0);
            m.tree->proved = !m.tree->unicast_cycle;
        }
        for (uint32_t part = 0; part < m.num_parts && m.tree->num_roots < MCAST_ROOTS_MAX; part++) {
            bool any = false;
            for (uint32_t sw = 0; sw < n; sw++)
                any |= m.part[sw] == part && m.needed[sw];
            if (any)
                choose(&m, part);
        }
    }
    for (uint32_t sw = 0; sw < n; sw++)
        m.tree->num_in += m.tree->step[sw].in;
    deps_done(&m.d);
    free(m.starts);
    free(m.kept);
    free(m.part);
    free(m.path);
    free(m.needed);
    return m.tree;
}

void mcast_tree_free(struct mcast_tree *tree)
{
    if (tree == NULL)
        return;
    free(tree->step);
    free(tree);
}
