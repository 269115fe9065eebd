// SPDX-License-Identifier: Apache-2.0
// The fabric as traffic sees it: a link for each port's direction out, a vertex for each switch and each
// adapter port, ways as the tables have them now.
#include "sim/sim_flow_priv.h"

#include <math.h>
#include <stdlib.h>

#include "lib/xalloc.h"

double port_bytes_s(const struct sim_port *p)
{
    const struct mad_port_info *pi = &p->pi;
    unsigned ext = pi->link_speed_ext_active | (pi->link_speed_ext_active2 ? MAD_SPEED_EXT_XDR : 0u);
    return (double)mad_link_data_bps(pi->link_width_active, pi->link_speed_active, (uint8_t)ext, p->fdr10) /
           8;
}

static unsigned highest(unsigned mask)
{
    while (mask & (mask - 1))
        mask &= mask - 1;
    return mask;
}

double port_best_bytes_s(const struct sim *s, const struct sim_port *p)
{
    const struct sim_port *z = peer_of(s, p);
    double best = 0;
    if (!z)
        return 0;
    const struct mad_port_info *a = &p->pi, *b = &z->pi;
    unsigned widths = a->link_width_supported & b->link_width_supported & p->lanes & z->lanes;
    unsigned ext = highest(a->link_speed_ext_supported & b->link_speed_ext_supported);
    if (a->link_speed_ext_supported2 & b->link_speed_ext_supported2 & 1)
        ext = MAD_SPEED_EXT_XDR;
    for (unsigned w = 1; w <= 16; w *= 2)
        if (widths & w)
            best = fmax(best,
                        (double)mad_link_data_bps(
                            (uint8_t)w, (uint8_t)highest(a->link_speed_supported & b->link_speed_supported),
                            (uint8_t)ext, p->fdr10) /
                            8);
    return best;
}

static uint32_t vertex_of(const struct sim *s, const struct sim_port *p)
{
    return is_switch(node_of(s, p)) ? p->node : s->num_nodes + port_index(s, p);
}

static unsigned next_links(void *arg, uint32_t vertex, uint32_t f, uint32_t *ret)
{
    const struct flow_net *n = arg;
    const struct sim *s = n->sim;
    uint16_t lid = n->who[f].dlid;
    uint8_t port[256];

    if (vertex >= s->num_nodes) // an adapter passes nothing on
        return has_lid(&s->port[vertex - s->num_nodes], lid) ? CELLS_HERE : 0;
    const struct sim_node *node = &s->node[vertex];
    if (has_lid(&s->port[node->first_port], lid))
        return CELLS_HERE;
    unsigned count = adaptive_choices(s, &s->sw[node->sw], lid, MAD_AR_RC, port), k = 0;
    for (unsigned i = 0; i < count; i++)
        if (port[i] != 0 && port[i] <= node->num_ports)
            ret[k++] = port_index(s, port_at(s, node, port[i]));
    return k;
}

static unsigned lane_of(void *arg, uint32_t in, uint32_t out, uint32_t f)
{
    struct flow_net *n = arg;
    const struct sim *s = n->sim;
    const struct sim_port *o = &s->port[out], *z = in == CELLS_NONE ? NULL : peer_of(s, &s->port[in]);
    unsigned in_num = z && is_switch(node_of(s, o)) ? z->num : 0;
    unsigned vl = port_vl(s, o, in_num, n->flow[f].sl);
    if (vl == VL_DROP)
        return CELLS_DROP;
    n->top_vl = vl > n->top_vl ? vl : n->top_vl;
    return vl < n->lanes ? vl : n->lanes - 1;
}

static void make_links(struct sim *s, struct flow_net *n, const bool *stalled)
{
    n->packet = 4096;
    for (uint32_t i = 0; i < s->num_ports; i++) {
        const struct sim_port *p = &s->port[i], *z = peer_of(s, p);
        n->link[i] = (struct cells_link){.drain = 1};
        if (!z || p->num == 0 || !link_passes(s, p, false))
            continue;
        unsigned mtu = p->pi.neighbor_mtu >= 1 && p->pi.neighbor_mtu <= 5 ? 128u << p->pi.neighbor_mtu : 4096;
        n->packet = mtu < n->packet ? mtu : n->packet;
        n->link[i].to = vertex_of(s, z);
        n->link[i].rate = port_bytes_s(p);
        if (s->flows->drain)
            n->link[i].drain = s->flows->drain[p->peer];
    }
    for (uint32_t i = 0; i < s->num_ports; i++)
        n->link[i].rate = stalled && stalled[i] ? 0 : n->link[i].rate / cell_on_link(n->packet);
}

static uint8_t level_of(const struct sim *s, const struct pattern *p, const struct pair *x)
{
    const struct sim_flows *w = s->flows;
    if (p->sl_given || !w->level)
        return p->sl;
    return w->level(w->level_arg, s->port[x->from].guid, s->port[x->to].guid) & 15;
}

// Flows of one pattern; a sender's load is shared by its flows.
static void add_flows(struct sim *s, struct flow_net *n, uint32_t k, uint32_t *of_sender)
{
    const struct pattern *p = &s->flows->pattern[k];
    for (uint32_t i = 0; i < p->num_pairs; i++)
        of_sender[p->pair[i].from]++;
    for (uint32_t i = 0; i < p->num_pairs; i++) {
        const struct pair *x = &p->pair[i];
        const struct sim_port *to = &s->port[x->to];
        double rate = n->link[x->from].rate;
        if (rate <= 0 || to->pi.lid == 0)
            continue;
        n->flow[n->num_flows] = (struct cells_flow){
            .link = x->from,
            .dest = to->pi.lid,
            .rate = p->load >= 1 ? INFINITY : rate * p->load / of_sender[x->from],
            .window = p->window,
            .sl = level_of(s, p, x),
        };
        n->who[n->num_flows++] = (struct flow_who){.pattern = k, .pair = i, .dlid = to->pi.lid};
    }
    for (uint32_t i = 0; i < p->num_pairs; i++)
        of_sender[p->pair[i].from] = 0;
}

struct flow_net *net_new(struct sim *s, const bool *stalled)
{
    uint32_t flows = 0;
    for (uint32_t k = 0; k < s->flows->num_patterns; k++)
        flows += s->flows->pattern[k].on ? s->flows->pattern[k].num_pairs : 0;
    if (flows == 0)
        return NULL;
    struct flow_net *n = xcalloc(1, sizeof(*n));
    n->sim = s;
    n->link = xcalloc(s->num_ports + 1, sizeof(*n->link));
    n->flow = xcalloc(flows + 1, sizeof(*n->flow));
    n->who = xcalloc(flows + 1, sizeof(*n->who));
    make_links(s, n, stalled);
    uint32_t *of_sender = xcalloc(s->num_ports + 1, sizeof(*of_sender));
    for (uint32_t k = 0; k < s->flows->num_patterns; k++)
        if (s->flows->pattern[k].on)
            add_flows(s, n, k, of_sender);
    free(of_sender);
    struct cells_net net = {.num_links = s->num_ports,
                            .num_flows = n->num_flows,
                            .link = n->link,
                            .flow = n->flow,
                            .next = next_links,
                            .lane = lane_of,
                            .arg = n,
                            .seed = s->o.seed ^ 0x666c6f77};
    do { // the second time when lanes beyond the first are used
        n->lanes = net.lanes = n->top_vl + 1;
        cells_free(n->cells);
        n->cells = cells_new(&net);
    } while (n->top_vl >= n->lanes);
    return n;
}

void net_free(struct flow_net *n)
{
    if (!n)
        return;
    net_free(n->before);
    cells_free(n->cells);
    free(n->link);
    free(n->flow);
    free(n->who);
    free(n->use);
    free(n->delivered);
    free(n);
}
