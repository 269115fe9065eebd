// SPDX-License-Identifier: Apache-2.0
// What groups are good for: the load on cables when every switch spreads what it has for a destination evenly
// over its group. Flows are taken as water: per destination, switches from the sources on, each hands on its
// share.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "routing/groups.h"

struct spread {
    const struct fabric *f;
    const struct fabric_tables *t;
    const struct fabric_groups *g; // NULL: static
    uint32_t ports;
    double *load;    // [switch * ports + port]
    double *in;      // per switch
    uint32_t *stamp; // per switch: of the LID that it was seen for
    uint8_t *port;   // per switch on the path: the port that is looked at
    uint32_t *path, *order, num;
};

static uint32_t beyond(const struct fabric *f, uint32_t s, unsigned port)
{
    const struct node *n = fabric_switch(f, s);
    const struct node *far =
        port > 0 && port <= n->num_ports ? fabric_peer_node(f, &f->port[n->first_port + port]) : NULL;
    return far && far->type == NODE_SWITCH ? far->sw : ID_NONE;
}

static bool may_take(const struct spread *x, uint32_t s, uint16_t lid, unsigned port)
{
    uint8_t entry = tables_port(x->t, s, lid);
    const struct fabric_group *g = x->g ? groups_at(x->g, s, lid, entry) : NULL;
    return g ? port_set_has(&g->ports, (uint8_t)port) : port == entry;
}

// Switches that s leads to, those behind before those in front.
static void find_order(struct spread *x, uint32_t s, uint16_t lid)
{
    uint32_t n = 0;
    x->path[n] = s;
    x->port[n++] = 0;
    x->stamp[s] = lid;
    while (n > 0) {
        uint32_t v = x->path[n - 1], w = ID_NONE;
        while (w == ID_NONE && ++x->port[n - 1] < x->ports) {
            if (may_take(x, v, lid, x->port[n - 1]))
                w = beyond(x->f, v, x->port[n - 1]);
        }
        if (w == ID_NONE) {
            x->order[x->num++] = v;
            n--;
        } else if (x->stamp[w] != lid) {
            x->stamp[w] = lid;
            x->path[n] = w;
            x->port[n++] = 0;
        }
    }
}

static void pour(struct spread *x, uint16_t lid)
{
    for (uint32_t i = x->num; i-- > 0;) {
        uint32_t s = x->order[i], ways = 0;
        for (unsigned p = 1; p < x->ports; p++)
            ways += may_take(x, s, lid, p);
        for (unsigned p = 1; p < x->ports && x->in[s] > 0; p++) {
            uint32_t w = may_take(x, s, lid, p) ? beyond(x->f, s, p) : ID_NONE;
            if (w == ID_NONE)
                continue;
            x->load[(size_t)s * x->ports + p] += x->in[s] / ways;
            x->in[w] += x->in[s] / ways;
        }
        x->in[s] = 0;
    }
}

static int flow_cmp(const void *a, const void *b)
{
    const struct groups_flow *x = a, *y = b;
    return (int)x->to - (int)y->to;
}

static void spread_init(struct spread *x)
{
    uint32_t n = x->f->num_switches + 1;
    x->ports = fabric_port_room(x->f);
    x->load = xcalloc((size_t)n * x->ports, sizeof(*x->load));
    x->in = xcalloc(n, sizeof(*x->in));
    x->stamp = xcalloc(n, sizeof(*x->stamp));
    x->port = xcalloc(n, sizeof(*x->port));
    x->path = xcalloc(n, sizeof(*x->path));
    x->order = xcalloc(n, sizeof(*x->order));
}

static struct groups_spread figures(const struct spread *x)
{
    struct groups_spread r = {0};
    uint32_t used = 0;
    for (size_t i = 0; i < (size_t)x->f->num_switches * x->ports; i++) {
        r.max = x->load[i] > r.max ? x->load[i] : r.max;
        r.mean += x->load[i];
        used += x->load[i] > 0;
    }
    r.cables = used;
    r.mean = used > 0 ? r.mean / used : 0;
    return r;
}

struct groups_spread route_groups_spread(const struct fabric *f, const struct fabric_tables *t,
                                         const struct fabric_groups *g, const struct groups_flow *flow,
                                         size_t num)
{
    struct spread x = {.f = f, .t = t, .g = g};
    struct groups_flow *sorted = xreallocarray(NULL, num + 1, sizeof(*sorted));
    if (num > 0)
        memcpy(sorted, flow, num * sizeof(*sorted));
    qsort(sorted, num, sizeof(*sorted), flow_cmp);
    spread_init(&x);
    for (size_t i = 0; i < num;) {
        uint16_t lid = sorted[i].to;
        x.num = 0;
        for (; i < num && sorted[i].to == lid; i++) {
            const struct groups_flow *w = &sorted[i];
            if (lid == 0 || w->from >= f->num_switches)
                continue;
            x.in[w->from] += w->flows;
            if (x.stamp[w->from] != lid)
                find_order(&x, w->from, lid);
        }
        pour(&x, lid);
    }
    struct groups_spread r = figures(&x);
    free(sorted);
    free(x.load);
    free(x.in);
    free(x.stamp);
    free(x.port);
    free(x.path);
    free(x.order);
    return r;
}
