// SPDX-License-Identifier: Apache-2.0
// Truth about waits, for tests: what the simulation of credits saw.
#include "sim/sim_flow_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/xalloc.h"

#define HELD_LITTLE 0.01 // a wait that nobody would look at

int sim_flow_view(struct sim *s, uint64_t node_guid, unsigned port, struct sim_flow_view *ret)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    *ret = (struct sim_flow_view){0};
    sim_flow_settle(s);
    if (!flows_moved(s))
        return 0;
    const struct cells_use *u = &s->flows->use[port_index(s, p)];
    const struct flow_dir *d = &s->flows->dir[port_index(s, p)];
    *ret = (struct sim_flow_view){.used = u->used,
                                  .held = u->held,
                                  .bytes_s = d->packets * s->flows->packet,
                                  .discards_s = d->discards,
                                  .fill = u->fill,
                                  .queued = u->queued,
                                  .stuck = u->stuck,
                                  .circle = u->circle,
                                  .root_share = u->root_share};
    if (u->root != CELLS_NONE && u->root_share > 0) {
        ret->root_guid = node_of(s, &s->port[u->root])->label;
        ret->root_port = s->port[u->root].num;
    }
    return 0;
}

static const char *const kinds[] = {
    [SIM_ROOT_RECEIVER] = "receiver",   [SIM_ROOT_INCAST] = "incast",       [SIM_ROOT_TRUNK] = "trunk",
    [SIM_ROOT_IMBALANCE] = "imbalance", [SIM_ROOT_SLOW_LINK] = "slow link", [SIM_ROOT_CIRCLE] = "circle",
};

const char *sim_root_kind_name(enum sim_root_kind k)
{
    return k <= SIM_ROOT_CIRCLE ? kinds[k] : "?";
}

// A cable between switches that could do as well as p: the same way up or down, or for want of tiers between
// the same two. Up, it is one of the switch's own; down, one into the same switch.
static bool sibling(const struct sim *s, const struct sim_port *p, const struct sim_port *q)
{
    const struct sim_port *pz = peer_of(s, p), *qz = q ? peer_of(s, q) : NULL;
    if (!qz || !is_switch(node_of(s, q)) || !is_switch(node_of(s, qz)) || p == q || !link_passes(s, q, false))
        return false;
    unsigned a = node_of(s, p)->tier, z = node_of(s, pz)->tier;
    unsigned b = node_of(s, q)->tier, y = node_of(s, qz)->tier;
    if (a == z)
        return p->node == q->node && pz->node == qz->node;
    return a < z ? b < y : b > y;
}

static double siblings_used(const struct sim *s, const struct sim_port *p)
{
    const struct sim_port *z = peer_of(s, p);
    bool down = node_of(s, p)->tier > node_of(s, z)->tier;
    const struct sim_node *at = node_of(s, down ? z : p);
    double sum = 0;
    unsigned n = 0;
    for (unsigned num = 1; num <= at->num_ports; num++) {
        const struct sim_port *own = port_at(s, at, num), *q = down ? peer_of(s, own) : own;
        if (sibling(s, p, q)) {
            sum += s->flows->use[port_index(s, q)].used;
            n++;
        }
    }
    return n ? sum / n : 1;
}

static enum sim_root_kind kind_of(const struct sim *s, uint32_t i)
{
    const struct sim_port *p = &s->port[i], *z = peer_of(s, p);
    const struct cells_use *u = &s->flows->use[i];
    bool to_host = z && !is_switch(node_of(s, z));
    if (u->circle)
        return SIM_ROOT_CIRCLE;
    if (to_host && s->flows->drain && s->flows->drain[p->peer] < 1 && u->root == i)
        return SIM_ROOT_RECEIVER;
    if (port_bytes_s(p) < 0.99 * port_best_bytes_s(s, p))
        return SIM_ROOT_SLOW_LINK;
    if (to_host)
        return SIM_ROOT_INCAST;
    return siblings_used(s, p) < 0.5 * u->used ? SIM_ROOT_IMBALANCE : SIM_ROOT_TRUNK;
}

static int most_lost(const void *a, const void *b)
{
    const struct sim_flow_root *x = a, *y = b;
    if (x->lost_bps != y->lost_bps)
        return x->lost_bps > y->lost_bps ? -1 : 1;
    if (x->node_guid != y->node_guid)
        return x->node_guid < y->node_guid ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

unsigned sim_flow_roots(struct sim *s, struct sim_flow_root *ret, unsigned room)
{
    unsigned n = 0;
    sim_flow_settle(s);
    if (!flows_moved(s))
        return 0;
    struct sim_flow_root *all = xcalloc(s->num_ports + 1, sizeof(*all));
    for (uint32_t i = 0; i < s->num_ports; i++) {
        const struct cells_use *u = &s->flows->use[i];
        if (u->root == CELLS_NONE || u->held < HELD_LITTLE || u->root >= s->num_ports)
            continue;
        all[u->root].waiting += u->root != i;
    }
    for (uint32_t i = 0; i < s->num_ports; i++) {
        if (!(s->flows->use[i].lost > 0))
            continue;
        const struct sim_port *p = &s->port[i];
        struct sim_flow_root r = {.node_guid = node_of(s, p)->label,
                                  .port = p->num,
                                  .kind = kind_of(s, i),
                                  .waiting = all[i].waiting,
                                  .used = s->flows->use[i].used,
                                  .held = s->flows->use[i].held,
                                  .lost_bps = s->flows->use[i].lost * cell_on_link(s->flows->packet)};
        all[n++] = r; // n <= i
    }
    qsort(all, n, sizeof(*all), most_lost);
    for (unsigned i = 0; i < n && i < room; i++)
        ret[i] = all[i];
    free(all);
    return n;
}
