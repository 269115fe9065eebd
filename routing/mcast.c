// SPDX-License-Identifier: Apache-2.0
// The multicast tree: candidates for its root, the tree of each, and the proof with the unicast tables.
//
// A channel is a switch's port towards another switch; one depends on the next where a packet may hold the
// first while it waits for the second. Dependencies are those of packets that start at a switch with end
// nodes, so that entries which nobody's packets meet do not count. 64 LIDs are walked at a time, from a copy
// of their entries that fits a cache.
#include "routing/mcast.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define CANDIDATES 64 // switches whose routes are compared
#define TRIES 8       // of them whose tree is made, beside those of the last tree and the top switch

struct deps {
    const struct fabric *f;
    uint32_t *channel;   // by port: its number, ID_NONE where the far end is no switch
    uint32_t *port;      // by channel
    uint64_t (*next)[4]; // by channel: ports of the switch it leads to
    uint32_t n, added, cap_undo;
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
    bool *needed;
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
            m->d.next[from][out / 64] |= 1ull << (out % 64);
        if (stamp[sw] == now)
            return;
        stamp[sw] = now;
        from = c;
        sw = f->node[f->port[f->port[m->d.port[c]].peer.i].node.i].sw;
    }
}

static void unicast(struct make *m, const bool *starts)
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
            now++;
            for (uint32_t sw = 0; sw < n; sw++)
                if (starts[sw])
                    walk(m, entry, k, sw, stamp, now);
        }
    }
    free(entry);
    free(stamp);
}

static uint32_t first_next(const struct deps *d, uint32_t c)
{
    const struct fabric *f = d->f;
    return f->node[f->port[f->port[d->port[c]].peer.i].node.i].first_port;
}

// Takes channels away that nothing leads to; what stays is a cycle, or hangs on one.
static bool has_cycle(const struct deps *d)
{
    uint32_t *in = xcalloc(d->n ? d->n : 1, sizeof(*in));
    uint32_t *free_now = xcalloc(d->n ? d->n : 1, sizeof(*free_now));
    uint32_t num = 0, gone = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; pass == 1 && i < d->n; i++)
            if (in[i] == 0)
                free_now[num++] = i;
        for (uint32_t i = 0; pass == 0 ? i < d->n : gone < num; i++) {
            uint32_t c = pass == 0 ? i : free_now[gone++];
            uint32_t base = first_next(d, c);
            for (int w = 0; w < 4; w++)
                for (uint64_t bits = d->next[c][w]; bits != 0; bits &= bits - 1) {
                    uint32_t z = d->channel[base + (uint32_t)w * 64 + (uint32_t)__builtin_ctzll(bits)];
                    if (pass == 0)
                        in[z]++;
                    else if (--in[z] == 0)
                        free_now[num++] = z;
                }
        }
    }
    free(in);
    free(free_now);
    return gone < d->n;
}

static void add_turn(struct deps *d, uint32_t channel, unsigned out)
{
    uint64_t bit = 1ull << (out % 64);
    if (d->next[channel][out / 64] & bit)
        return;
    d->next[channel][out / 64] |= bit;
    if (d->added == d->cap_undo) {
        d->cap_undo = d->cap_undo ? d->cap_undo * 2 : 256;
        d->undo = xreallocarray(d->undo, d->cap_undo, sizeof(*d->undo));
    }
    d->undo[d->added++] = (struct undo){channel, (uint8_t)out};
}

static void take_turns_back(struct deps *d, uint32_t added)
{
    while (d->added > added) {
        const struct undo *u = &d->undo[--d->added];
        d->next[u->channel][u->port / 64] &= ~(1ull << (u->port % 64));
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

// --- one root's tree ---

struct climb {
    uint32_t hops;
    bool up; // every step goes a tier up
};

// The switches from sw on its way to the root's LID go into m->path, without the root. False: it does not get
// there.
static bool route(const struct make *m, uint32_t sw, uint32_t root, uint16_t lid, struct climb *ret)
{
    uint8_t num;
    *ret = (struct climb){.up = true};
    while (sw != root) {
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

// Adds the part's tree; returns needed switches that do not get to the root.
static uint32_t plant(struct make *m, uint32_t part, uint32_t root)
{
    struct mcast_tree *t = m->tree;
    uint16_t lid = switch_lid(m->f, root);
    uint32_t missing = 0;

    t->step[root].in = true;
    for (uint32_t sw = 0; sw < m->f->num_switches; sw++) {
        struct climb c;
        if (m->part[sw] != part || !m->needed[sw])
            continue;
        if (lid == 0 || !route(m, sw, root, lid, &c)) {
            missing += sw != root;
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

// Best first; returns their number. list holds CANDIDATES + MCAST_ROOTS_MAX + 1.
static uint32_t candidates(const struct make *m, uint32_t part, struct candidate *list)
{
    int tier = highest_tier(m, part);
    uint32_t n = 0, kept, sw;

    for (uint32_t i = 0; i < m->o->num_roots && n < MCAST_ROOTS_MAX; i++)
        if ((sw = switch_by_guid(m, part, m->o->roots[i])) != ID_NONE)
            list[n++].sw = sw;
    kept = n;
    for (sw = 0; sw < m->f->num_switches && n - kept < CANDIDATES; sw++)
        if (m->part[sw] == part && (tier < 0 || fabric_switch(m->f, sw)->tier == tier))
            list[n++] = weigh(m, part, sw);
    qsort(list + kept, n - kept, sizeof(*list), by_merit);
    if (n - kept > TRIES)
        n = kept + TRIES;
    if ((sw = switch_by_guid(m, part, m->o->top_guid)) != ID_NONE)
        list[n++].sw = sw;
    return n;
}

static void choose(struct make *m, uint32_t part)
{
    struct candidate list[CANDIDATES + MCAST_ROOTS_MAX + 1];
    uint32_t n = candidates(m, part, list), best = ID_NONE, fewest = UINT32_MAX, before = m->d.added;
    struct mcast_tree *t = m->tree;
    bool proved = false;

    for (uint32_t i = 0; i < n && !proved; i++) {
        uint32_t missing = plant(m, part, list[i].sw);
        if (missing < fewest) {
            fewest = missing;
            best = list[i].sw;
        }
        if (!t->unicast_cycle && missing == 0) {
            add_tree(m);
            proved = m->d.added == before || !has_cycle(&m->d);
        }
        if (proved)
            best = list[i].sw;
        else {
            take_turns_back(&m->d, before);
            fell(m, part);
        }
        if (t->unicast_cycle && missing == 0)
            break;
    }
    if (!proved && best != ID_NONE) {
        fewest = plant(m, part, best);
        t->num_unreached += fewest;
        add_tree(m);
        bool cycle = t->unicast_cycle || has_cycle(&m->d);
        t->proved &= !cycle;
        if (cycle)
            take_turns_back(&m->d, before);
    }
    if (best != ID_NONE)
        t->root[t->num_roots++] = best;
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

static void with_end_nodes(const struct fabric *f, bool *ret)
{
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (is_switch(f, p->node.i) || !port_valid(p->peer))
            continue;
        const struct node *z = &f->node[f->port[p->peer.i].node.i];
        if (z->type == NODE_SWITCH)
            ret[z->sw] = true;
    }
}

struct mcast_tree *mcast_tree_make(const struct fabric *f, const struct fabric_tables *t,
                                   const struct mcast_opts *o)
{
    uint32_t n = f->num_switches;
    size_t cells = n ? n : 1;
    struct make m = {.f = f, .t = t, .o = o, .tree = xcalloc(1, sizeof(*m.tree))};
    bool *starts = xcalloc(cells, sizeof(*starts));

    m.tree->num_switches = n;
    m.tree->proved = true;
    m.tree->step = xcalloc(cells, sizeof(*m.tree->step));
    for (uint32_t sw = 0; sw < n; sw++)
        m.tree->step[sw].parent = ID_NONE;
    m.part = xcalloc(cells, sizeof(*m.part));
    m.path = xcalloc(cells, sizeof(*m.path));
    m.needed = xcalloc(cells, sizeof(*m.needed));
    with_end_nodes(f, starts);
    memcpy(m.needed, o->needed != NULL ? o->needed : starts, n * sizeof(*m.needed));
    find_parts(&m);
    deps_init(&m.d, f);
    if (t->num_switches == n) {
        unicast(&m, starts);
        m.tree->unicast_cycle = has_cycle(&m.d);
        m.tree->proved = !m.tree->unicast_cycle;
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
    free(starts);
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
