// SPDX-License-Identifier: Apache-2.0
// Cables that traffic is to keep off, though they are alive: which of them can be spared, and how.
//
// The fabric without them falls into parts. A cable whose two ends are in one part is left out of the graph:
// then repair does what it would do if the cable were dead. Where a cable joins two parts it depends:
//
//   - A part of one switch, which hangs only on avoided cables (a spine that is avoided as a whole, a leaf
//     all of whose uplinks are), is *sunk*: it goes to the bottom of the order, below whatever it hangs on.
//     All its own LIDs can then be reached (down to it, at the end of any path) and it reaches all (up from
//     it, at the start of any path), and nothing passes through it, as that would be going down and up. What
//     hangs on sunk switches alone lies below these. A cable between two that are sunk equally deep is left
//     out.
//   - Parts of several switches each that only avoided cables join (or chains of single switches between
//     them): those cables carry on as if nobody had asked, for everybody. To spare them for all but the pairs
//     that need them would take an order of each part within that of the other, at the cost of its balance.
//
// Cables may be of two grades: those of the first are judged by themselves, and what of them can be spared is
// as if dead for the others. So the one cable of a sunk switch that is about to be pulled carries nothing.
//
// So every pair that a cable joins has a path, whatever is avoided; and a path crosses an avoided cable only
// where it begins or ends on a sunk switch, or over cables that carry on.
//
// Tables with lanes are kept off what is spared, but what is re-homed or computed anew for want of lanes may
// pass a sunk switch.
//
// A function of the live fabric and of what is avoided, not of the order in which either came about.
#include <stdlib.h>
#include <string.h>

#include "fabric/edit.h"
#include "lib/xalloc.h"
#include "routing/repair_priv.h"

struct parts {
    const struct fabric *f;
    struct route_avoid *x;
    uint32_t *comp, *size, *region, *queue; // per switch
};

static uint32_t far_switch(const struct fabric *f, uint32_t sw, unsigned num)
{
    uint32_t w;
    const struct node *n = fabric_switch(f, sw);
    return rswitch_peer(f, &f->port[n->first_port + num], &w) ? w : ID_NONE;
}

// Connected parts over cables that are not avoided.
static void find_parts(struct parts *p)
{
    const struct fabric *f = p->f;
    memset(p->comp, 0xff, f->num_switches * sizeof(*p->comp));
    memset(p->size, 0, f->num_switches * sizeof(*p->size));
    for (uint32_t first = 0; first < f->num_switches; first++) {
        uint32_t n = 0;
        if (p->comp[first] != ID_NONE)
            continue;
        p->comp[first] = first;
        p->queue[n++] = first;
        for (uint32_t i = 0; i < n; i++) {
            const struct node *nd = fabric_switch(f, p->queue[i]);
            for (unsigned num = 1; num <= nd->num_ports; num++) {
                uint32_t w = far_switch(f, p->queue[i], num);
                uint8_t how = p->x->how[nd->first_port + num];
                if (w == ID_NONE || p->comp[w] != ID_NONE || how == AVOID_WANTED || how == AVOID_SPARED)
                    continue;
                p->comp[w] = first;
                p->queue[n++] = w;
            }
        }
        p->size[first] = n;
    }
}

static bool is_single(const struct parts *p, uint32_t s)
{
    return p->size[p->comp[s]] == 1;
}

// Single switches belong to the part of several from which the fewest avoided cables lead to them.
static void find_regions(struct parts *p)
{
    const struct fabric *f = p->f;
    uint32_t n = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        p->x->depth[s] = 0;
        p->region[s] = is_single(p, s) ? ID_NONE : p->comp[s];
        if (p->region[s] != ID_NONE)
            p->queue[n++] = s;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = p->queue[i];
        const struct node *nd = fabric_switch(f, s);
        for (unsigned num = 1; num <= nd->num_ports; num++) {
            uint32_t w = far_switch(f, s, num);
            if (w == ID_NONE || p->region[w] != ID_NONE || p->x->how[nd->first_port + num] != AVOID_WANTED)
                continue;
            p->region[w] = p->region[s];
            p->x->depth[w] = p->x->depth[s] + 1;
            p->queue[n++] = w;
        }
    }
}

static void carry_on(struct parts *p, uint32_t port)
{
    p->x->how[port] = AVOID_CARRIES_ON;
    p->x->how[p->f->port[port].peer.i] = AVOID_CARRIES_ON;
}

static void carry_on_all(struct parts *p, uint32_t s)
{
    const struct node *n = fabric_switch(p->f, s);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        if (p->x->how[n->first_port + num] == AVOID_WANTED)
            carry_on(p, n->first_port + num);
    }
}

// Avoided cables that join what nothing else joins; returns whether there were any.
static bool give_up_joins(struct parts *p)
{
    const struct fabric *f = p->f;
    bool any = false;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            uint32_t w = far_switch(f, s, num);
            if (w == ID_NONE || p->x->how[n->first_port + num] != AVOID_WANTED ||
                (p->region[s] == p->region[w] && p->region[s] != ID_NONE))
                continue;
            any = true;
            carry_on(p, n->first_port + num);
            if (is_single(p, s))
                carry_on_all(p, s);
            if (is_single(p, w))
                carry_on_all(p, w);
        }
    }
    return any;
}

// Adds cables, and settles which are spared.
static void avoid(struct parts *p, const port_id *port, size_t n)
{
    const struct fabric *f = p->f;
    struct route_avoid *x = p->x;
    uint32_t w;
    for (size_t i = 0; i < n; i++) {
        const struct port *q = port[i].i < f->num_ports ? &f->port[port[i].i] : NULL;
        if (q == NULL || f->node[q->node.i].type != NODE_SWITCH || !rswitch_peer(f, q, &w) ||
            x->how[port[i].i] == AVOID_SPARED)
            continue;
        x->how[port[i].i] = x->how[q->peer.i] = AVOID_WANTED;
        x->any = true;
    }
    if (!x->any)
        return;
    do {
        find_parts(p);
        find_regions(p);
    } while (give_up_joins(p));
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *nd = fabric_switch(f, s);
        for (unsigned num = 1; num <= nd->num_ports; num++) {
            if (x->how[nd->first_port + num] == AVOID_WANTED)
                x->how[nd->first_port + num] =
                    x->depth[s] == x->depth[far_switch(f, s, num)] ? AVOID_SPARED : AVOID_OWN;
        }
    }
}

struct route_avoid *route_avoid_graded(const struct fabric *f, const port_id *port, size_t n, size_t first)
{
    size_t cells = f->num_switches + 1u;
    struct route_avoid *x = xcalloc(1, sizeof(*x));
    struct parts p = {.f = f, .x = x};

    x->f = f;
    x->how = xcalloc(f->num_ports + 1u, 1);
    x->depth = xcalloc(cells, sizeof(*x->depth));
    p.comp = xcalloc(4 * cells, sizeof(*p.comp));
    p.size = p.comp + cells;
    p.region = p.size + cells;
    p.queue = p.region + cells;
    if (first > 0 && first < n) {
        avoid(&p, port, first);
        for (uint32_t i = 0; i < f->num_ports; i++)
            x->how[i] = x->how[i] == AVOID_SPARED ? AVOID_SPARED : AVOID_NOTHING;
    }
    avoid(&p, port, n);
    free(p.comp);
    for (uint32_t s = 0; s < f->num_switches && x->any; s++) {
        x->sunk |= x->depth[s] > 0;
        x->deepest = x->depth[s] > x->deepest ? x->depth[s] : x->deepest;
    }
    return x;
}

struct route_avoid *route_avoid_new(const struct fabric *f, const port_id *port, size_t n)
{
    return route_avoid_graded(f, port, n, 0);
}

void route_avoid_free(struct route_avoid *x)
{
    if (x == NULL)
        return;
    free(x->how);
    free(x->depth);
    free(x);
}

enum route_avoided route_avoid_how(const struct route_avoid *x, port_id p)
{
    switch (x->how[p.i]) {
    case AVOID_SPARED:
        return ROUTE_AVOID_SPARED;
    case AVOID_OWN:
        return ROUTE_AVOID_OWN;
    case AVOID_CARRIES_ON:
        return ROUTE_AVOID_CARRIES_ON;
    }
    return ROUTE_AVOID_NOT;
}

// --- for repair ---

const struct fabric *ravoid_fabric(const struct route_avoid *x)
{
    const struct fabric *f = x->f;
    port_id *port = xcalloc(f->num_ports + 1u, sizeof(*port));
    size_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        if (x->how[i] == AVOID_SPARED)
            port[n++] = (port_id){i};
    }
    const struct fabric *open = fabric_without_links(f, port, n);
    free(port);
    return open;
}

void ravoid_links(const struct route_avoid *x, uint32_t ports, uint32_t *link)
{
    const struct fabric *f = x->f;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            if (x->how[n->first_port + num] == AVOID_SPARED)
                link[(size_t)s * ports + num] = ID_NONE;
        }
    }
}

// The deepest first; else as they were.
void ravoid_sink(const struct route_avoid *x, uint32_t *by_pos, uint32_t n)
{
    uint32_t *was = xcalloc(n + 1u, sizeof(*was)), k = 0;
    memcpy(was, by_pos, n * sizeof(*was));
    for (uint32_t d = x->deepest + 1; d-- > 0;) {
        for (uint32_t i = 0; i < n; i++) {
            if (x->depth[was[i]] == d)
                by_pos[k++] = was[i];
        }
    }
    free(was);
}

void ravoid_prune(const struct route_avoid *x, struct rgraph *g, struct arena *a)
{
    uint32_t kept = 0;
    for (uint32_t s = 0; s < g->n; s++) {
        const struct node *nd = fabric_switch(x->f, s);
        uint32_t first = g->goff[s], end = g->goff[s + 1];
        g->goff[s] = kept;
        for (uint32_t i = first; i < end; i++) {
            struct rgroup c = g->g[i];
            uint32_t np = 0;
            for (uint32_t k = 0; k < c.num_ports; k++) {
                uint8_t port = g->ports[c.first_port + k], how = x->how[nd->first_port + port];
                if (how != AVOID_SPARED && how != AVOID_OWN)
                    g->ports[c.first_port + np++] = port;
            }
            c.num_ports = np;
            if (np > 0)
                g->g[kept++] = c;
        }
        // goff[s + 1] is still the old one: it is read as the next switch's first
    }
    g->goff[g->n] = g->num_groups = kept;
    rgraph_components(g, a);
}

// Hops to t over next hops that are not barred; work: n cells.
void ravoid_hops(const struct rlive *v, uint32_t t, uint32_t *cost, uint32_t *work)
{
    const struct rgraph *g = &v->g;
    uint32_t n = 0;
    memset(cost, 0xff, g->n * sizeof(*cost));
    cost[t] = 0;
    work[n++] = t;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = work[i];
        for (uint32_t k = g->goff[x]; k < g->goff[x + 1]; k++) {
            uint32_t w = g->g[k].peer;
            if (cost[w] != RCOST_NONE || rbarred(v->depth, w, x, t))
                continue;
            cost[w] = cost[x] + 1;
            work[n++] = w;
        }
    }
}

const struct fabric *route_avoid_open(const struct route_avoid *x)
{
    const struct fabric *f = x->f;
    port_id *port = xcalloc(f->num_ports + 1u, sizeof(*port));
    size_t n = 0;
    for (uint32_t s = 0; s < f->num_switches && x->any; s++) {
        const struct node *nd = fabric_switch(f, s);
        bool shut = x->deepest == 1 && x->depth[s] == 1 && !fabric_has_ends(f, s);
        for (unsigned num = 1; num <= nd->num_ports; num++) {
            uint8_t how = x->how[nd->first_port + num];
            if (how == AVOID_SPARED || (how == AVOID_OWN && shut))
                port[n++] = (port_id){nd->first_port + num};
        }
    }
    const struct fabric *open = n > 0 ? fabric_without_links(f, port, n) : fabric_ref(f);
    free(port);
    return open;
}

// --- who uses a cable ---

struct users {
    const struct fabric *f;
    const struct fabric_tables *t;
    bool *ends;     // per switch: end nodes hang on it
    uint32_t *seen; // per switch: memo of `now`, and the answer
    bool *is;
    uint32_t now;
};

// Whether packets to the LID come by the switch, from any end node: those that hang on it, or on what leads
// to it. The walk is bounded by the memo: each switch is asked once.
static bool comes_by(struct users *u, uint32_t s, uint16_t lid)
{
    if (u->seen[s] == u->now)
        return u->is[s];
    u->seen[s] = u->now;
    u->is[s] = u->ends[s];
    const struct node *n = fabric_switch(u->f, s);
    for (unsigned num = 1; num <= n->num_ports && !u->is[s]; num++) {
        const struct port *p = &u->f->port[n->first_port + num];
        uint32_t w = far_switch(u->f, s, num);
        if (w != ID_NONE && tables_port(u->t, w, lid) == u->f->port[p->peer.i].num && comes_by(u, w, lid))
            u->is[s] = true;
    }
    return u->is[s];
}

// What is out of reach keeps entries that lead nowhere: nobody uses these.
static bool arrives(const struct users *u, uint32_t s, uint16_t lid)
{
    for (uint32_t hops = 0; hops <= u->f->num_switches; hops++) {
        const struct node *n = fabric_switch(u->f, s);
        uint8_t out = tables_port(u->t, s, lid);
        if (out > n->num_ports)
            return false;
        const struct port *p = &u->f->port[n->first_port + out];
        if (out == 0 || !port_valid(p->peer))
            return out == 0 && u->f->lid_port[lid] == n->first_port;
        if (p->peer.i == u->f->lid_port[lid])
            return true;
        s = far_switch(u->f, s, out);
        if (s == ID_NONE)
            return false;
    }
    return false;
}

// Whether packets to the LID leave by one of these ports, or come in by it.
static bool crosses(struct users *u, const port_id *port, size_t n, bool into, uint16_t lid)
{
    for (size_t i = 0; i < n; i++) {
        const struct port *p = &u->f->port[port[i].i];
        if (!port_valid(p->peer))
            continue;
        p = into ? &u->f->port[p->peer.i] : p;
        const struct node *nd = &u->f->node[p->node.i];
        if (nd->type == NODE_SWITCH && tables_port(u->t, nd->sw, lid) == p->num && comes_by(u, nd->sw, lid) &&
            arrives(u, nd->sw, lid))
            return true;
    }
    return false;
}

void route_users(const struct fabric *f, const struct fabric_tables *t, const port_id *port, size_t n,
                 struct route_users *ret)
{
    free(route_users_list(f, t, port, n, ret));
}

port_id *route_users_list(const struct fabric *f, const struct fabric_tables *t, const port_id *port,
                          size_t n, struct route_users *ret)
{
    struct users u = {.f = f, .t = t};
    uint32_t sw;
    uint8_t num;

    u.ends = xcalloc(f->num_switches + 1u, sizeof(*u.ends));
    u.seen = xcalloc(f->num_switches + 1u, sizeof(*u.seen));
    u.is = xcalloc(f->num_switches + 1u, sizeof(*u.is));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        if (f->node[f->port[i].node.i].type != NODE_SWITCH && rattachment(f, i, &sw, &num))
            u.ends[sw] = true;
    }
    struct route_users by[2] = {{0}, {0}}; // out of the ports, and into them
    port_id *list[2];
    for (unsigned i = 0; i < 2; i++)
        list[i] = xcalloc(f->top_lid + 1u, sizeof(**list));
    uint32_t last_end[2] = {ID_NONE, ID_NONE};
    for (uint32_t lid = 1; lid <= f->top_lid && t->num_switches == f->num_switches; lid++) {
        uint32_t end = f->lid_port[lid];
        if (end == ID_NONE)
            continue;
        u.now++;
        for (unsigned into = 0; into < 2; into++) {
            if (last_end[into] == end || !crosses(&u, port, n, into, (uint16_t)lid))
                continue;
            last_end[into] = end;
            if (f->node[f->port[end].node.i].type == NODE_SWITCH)
                by[into].switches++;
            else
                list[into][by[into].ends++] = (port_id){end};
        }
    }
    uint32_t out = by[0].ends + by[0].switches, in = by[1].ends + by[1].switches;
    unsigned fewer = out == 0 || (in > 0 && in < out);
    *ret = by[fewer];
    free(list[!fewer]);
    free(u.ends);
    free(u.seen);
    free(u.is);
    return list[fewer];
}
