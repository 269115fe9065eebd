// SPDX-License-Identifier: Apache-2.0
// The compact switch graph that the engines work on.
#include "routing/route_priv.h"

#include <stdlib.h>
#include <string.h>

// The switch and port at the far end of a switch's port, when both are usable for switch-to-switch traffic.
bool rswitch_peer(const struct fabric *f, const struct port *p, uint32_t *ret_sw)
{
    if (!port_valid(p->peer))
        return false;
    const struct port *q = fabric_port(f, p->peer);
    const struct node *n = fabric_node(f, q->node);
    if (n->type != NODE_SWITCH || q->num == 0 || q->node.i == p->node.i)
        return false;
    *ret_sw = n->sw;
    return true;
}

struct cable {
    uint64_t guid; // of the peer
    uint32_t peer;
    uint8_t port;
};

static int cable_cmp(const void *a, const void *b)
{
    const struct cable *x = a, *y = b;
    if (x->guid != y->guid)
        return x->guid < y->guid ? -1 : 1;
    return (int)x->port - (int)y->port;
}

static uint32_t cables_of(const struct rgraph *g, uint32_t s, struct cable *ret)
{
    const struct node *n = fabric_switch(g->f, s);
    uint32_t k = 0;
    for (unsigned num = 1; num <= n->num_ports; num++) {
        uint32_t peer;
        const struct port *p = &g->f->port[n->first_port + num];
        if (rswitch_peer(g->f, p, &peer))
            ret[k++] = (struct cable){.guid = g->guid[peer], .peer = peer, .port = (uint8_t)num};
    }
    qsort(ret, k, sizeof(*ret), cable_cmp);
    return k;
}

static void build_groups(struct rgraph *g, struct arena *a)
{
    uint32_t ports = 0;
    for (uint32_t s = 0; s < g->n; s++)
        ports += fabric_switch(g->f, s)->num_ports;
    g->goff = ARENA_NEW_N(a, g->n + 1, uint32_t);
    g->g = ARENA_NEW_N(a, ports + 1, struct rgroup);
    g->ports = ARENA_NEW_N(a, ports + 1, uint8_t);
    uint32_t np = 0;
    struct cable c[256];
    for (uint32_t s = 0; s < g->n; s++) {
        g->goff[s] = g->num_groups;
        uint32_t k = cables_of(g, s, c);
        for (uint32_t i = 0; i < k; i++) {
            if (i == 0 || c[i].peer != c[i - 1].peer)
                g->g[g->num_groups++] = (struct rgroup){.peer = c[i].peer, .first_port = np};
            g->g[g->num_groups - 1].num_ports++;
            g->ports[np++] = c[i].port;
        }
    }
    g->goff[g->n] = g->num_groups;
}

void rgraph_components(struct rgraph *g, struct arena *a)
{
    g->comp = ARENA_NEW_N(a, g->n + 1, uint32_t);
    uint32_t *queue = ARENA_NEW_N(a, g->n + 1, uint32_t);
    memset(g->comp, 0xff, g->n * sizeof(*g->comp));
    for (uint32_t s = 0; s < g->n; s++) {
        if (g->comp[s] != ID_NONE)
            continue;
        uint32_t head = 0, tail = 0;
        g->comp[s] = g->num_comps;
        queue[tail++] = s;
        while (head < tail) {
            uint32_t v = queue[head++];
            for (uint32_t i = g->goff[v]; i < g->goff[v + 1]; i++) {
                if (g->comp[g->g[i].peer] == ID_NONE) {
                    g->comp[g->g[i].peer] = g->num_comps;
                    queue[tail++] = g->g[i].peer;
                }
            }
        }
        g->num_comps++;
    }
}

// Where a LID's end port hangs: false when on no switch.
bool rattachment(const struct fabric *f, uint32_t port, uint32_t *ret_sw, uint8_t *ret_port)
{
    const struct port *p = &f->port[port];
    const struct node *n = fabric_node(f, p->node);
    if (n->type == NODE_SWITCH) {
        *ret_sw = n->sw;
        *ret_port = 0;
        return true;
    }
    if (!port_valid(p->peer))
        return false;
    const struct port *q = fabric_port(f, p->peer);
    const struct node *sw = fabric_node(f, q->node);
    if (sw->type != NODE_SWITCH || q->num == 0)
        return false;
    *ret_sw = sw->sw;
    *ret_port = q->num;
    return true;
}

static bool is_host(const struct node *n)
{
    return n->type == NODE_CA && (n->role == ROLE_HOST || n->role == ROLE_UNKNOWN);
}

static int dest_cmp(const void *a, const void *b)
{
    const struct rdest *x = a, *y = b;
    return x->port != y->port ? (int)x->port - (int)y->port : (int)x->lid - (int)y->lid;
}

// Slots count the ports that lead to no other switch, cabled or not, so that a missing host leaves a hole.
static void number_slots(const struct rgraph *g, uint32_t s)
{
    const struct node *n = fabric_switch(g->f, s);
    uint32_t slot_of[256] = {0}, slot = 0, peer;
    for (unsigned num = 1; num <= n->num_ports; num++) {
        slot_of[num] = slot;
        if (!rswitch_peer(g->f, &g->f->port[n->first_port + num], &peer))
            slot++;
    }
    for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++)
        g->d[i].slot = slot_of[g->d[i].port];
}

static void build_dests(struct rgraph *g, struct arena *a)
{
    const struct fabric *f = g->f;
    g->doff = ARENA_NEW_N(a, g->n + 2, uint32_t);
    g->hosts = ARENA_NEW_N(a, g->n + 1, uint32_t);
    uint32_t total = 0, sw;
    uint8_t port;
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] != ID_NONE && rattachment(f, f->lid_port[lid], &sw, &port)) {
            g->doff[sw + 1]++;
            total++;
        }
    }
    for (uint32_t s = 0; s < g->n; s++)
        g->doff[s + 1] += g->doff[s];
    g->d = ARENA_NEW_N(a, total + 1, struct rdest);
    uint32_t *fill = arena_memdup(a, g->doff, (g->n + 1) * sizeof(*fill));
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] == ID_NONE || !rattachment(f, f->lid_port[lid], &sw, &port))
            continue;
        const struct port *p = &f->port[f->lid_port[lid]];
        struct rdest *d = &g->d[fill[sw]++];
        d->lid = (uint16_t)lid;
        d->port = port;
        d->lid_offset = (uint8_t)(lid - p->a.lid);
        d->is_host = is_host(fabric_node(f, p->node));
        g->hosts[sw] += d->is_host && d->lid_offset == 0;
    }
    for (uint32_t s = 0; s < g->n; s++) {
        qsort(g->d + g->doff[s], g->doff[s + 1] - g->doff[s], sizeof(*g->d), dest_cmp);
        number_slots(g, s);
    }
}

void rgraph_build(const struct fabric *f, struct arena *a, struct rgraph *ret)
{
    *ret = (struct rgraph){.f = f, .n = f->num_switches};
    ret->guid = ARENA_NEW_N(a, ret->n + 1, uint64_t);
    for (uint32_t s = 0; s < ret->n; s++)
        ret->guid[s] = fabric_switch(f, s)->guid;
    build_groups(ret, a);
    rgraph_components(ret, a);
    build_dests(ret, a);
}
