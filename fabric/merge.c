// SPDX-License-Identifier: Apache-2.0
#include "fabric/merge.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/xalloc.h"

// Of one GUID: its node in either fabric, and what it has become.
struct both {
    uint64_t guid;
    const struct node *known, *seen;
    node_id id;
    bool linked;
};

struct merging {
    const struct fabric *known, *seen; // either may be NULL
    struct both *node;
    uint32_t n;
    struct builder *b;
    uint8_t *lid_seen; // a bit per LID that a seen port has
};

static bool same_shape(const struct node *a, const struct node *b)
{
    return a->type == b->type && a->num_ports == b->num_ports;
}

static uint64_t peer_guid(const struct fabric *f, const struct port *p)
{
    return port_valid(p->peer) ? f->node[f->port[p->peer.i].node.i].guid : 0;
}

// --- is there anything to learn? ---

static bool port_is_news(const struct fabric *known, const struct port *k, const struct fabric *seen,
                         const struct port *s)
{
    if (port_valid(s->peer) && (peer_guid(known, k) != peer_guid(seen, s) ||
                                known->port[k->peer.i].num != seen->port[s->peer.i].num))
        return true;
    return port_is_end(seen, s) && s->a.lid != 0 &&
           (k->a.lid != s->a.lid || k->a.lmc != s->a.lmc || k->guid != s->guid);
}

static bool is_news(const struct fabric *known, const struct fabric *seen)
{
    for (uint32_t i = 0; i < seen->num_nodes; i++) {
        const struct node *s = &seen->node[i], *k = fabric_by_guid(known, s->guid);
        if (k == NULL || !same_shape(k, s) || (k->desc == 0 && s->desc != 0))
            return true;
        uint32_t ports = s->num_ports + (s->type == NODE_SWITCH);
        for (uint32_t j = 0; j < ports; j++)
            if (port_is_news(known, &known->port[k->first_port + j], seen, &seen->port[s->first_port + j]))
                return true;
    }
    return false;
}

// --- both together ---

static int by_guid(const void *a, const void *b)
{
    const struct both *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static void list_nodes(struct merging *m)
{
    uint32_t cap = (m->known ? m->known->num_nodes : 0) + (m->seen ? m->seen->num_nodes : 0);
    m->node = xcalloc(cap ? cap : 1, sizeof(*m->node));
    for (uint32_t i = 0; m->seen && i < m->seen->num_nodes; i++) {
        const struct node *s = &m->seen->node[i];
        const struct node *k = m->known ? fabric_by_guid(m->known, s->guid) : NULL;
        m->node[m->n++] =
            (struct both){.guid = s->guid, .seen = s, .known = k != NULL && same_shape(k, s) ? k : NULL};
    }
    for (uint32_t i = 0; m->known && i < m->known->num_nodes; i++) {
        const struct node *k = &m->known->node[i];
        if (m->seen == NULL || fabric_by_guid(m->seen, k->guid) == NULL)
            m->node[m->n++] = (struct both){.guid = k->guid, .known = k};
    }
    qsort(m->node, m->n, sizeof(*m->node), by_guid);
}

static void mark_lids(struct merging *m)
{
    m->lid_seen = xcalloc((LID_UCAST_MAX + 8) / 8, 1);
    for (uint32_t lid = 1; m->seen && lid <= m->seen->top_lid; lid++)
        if (m->seen->lid_port[lid] != ID_NONE)
            m->lid_seen[lid / 8] |= (uint8_t)(1u << (lid % 8));
}

static bool lid_taken(const struct merging *m, const struct port_attrs *a)
{
    for (uint32_t lid = a->lid; lid < a->lid + (1u << (a->lmc & 7)); lid++)
        if (lid > LID_UCAST_MAX || (m->lid_seen[lid / 8] >> (lid % 8) & 1))
            return true;
    return false;
}

static void add_port(struct merging *m, const struct both *x, unsigned num, const struct port *k,
                     const struct port *s)
{
    const struct port *from = s != NULL && (port_valid(s->peer) || k == NULL || !port_valid(k->peer)) ? s : k;
    struct port_attrs a = from->a;

    if (port_is_end(from == s ? m->seen : m->known, from)) {
        a.lid = s != NULL ? s->a.lid : 0;
        a.lmc = s != NULL ? s->a.lmc : 0;
        if (a.lid == 0 && k != NULL && !lid_taken(m, &k->a)) {
            a.lid = k->a.lid;
            a.lmc = k->a.lmc;
        }
        builder_port_guid(m->b, x->id, num, s != NULL && s->guid != 0 ? s->guid : k != NULL ? k->guid : 0);
    }
    builder_port(m->b, x->id, num, &a);
}

static void add_node(struct merging *m, struct both *x)
{
    const struct node *n = x->seen != NULL ? x->seen : x->known;
    const struct fabric *named = m->seen;
    const struct node *name = x->seen;
    struct node_attrs a = {.guid = n->guid,
                           .sys_guid = n->sys_guid,
                           .type = (enum node_type)n->type,
                           .num_ports = n->num_ports,
                           .partition_cap = n->partition_cap,
                           .device_id = n->device_id,
                           .vendor_id = n->vendor_id,
                           .revision = n->revision,
                           .lft_cap = n->lft_cap,
                           .lft_top = n->lft_top,
                           .mft_cap = n->mft_cap,
                           .partition_enforcement_cap = n->partition_enforcement_cap,
                           .enhanced_port0 = n->enhanced_port0};

    if (name == NULL ||
        (x->known != NULL && x->known->desc != 0 && (n->type == NODE_SWITCH || name->desc == 0))) {
        name = x->known;
        named = m->known;
    }
    const char *desc = fabric_desc(named, name);
    if (builder_node(m->b, &a, desc, strlen(desc), &x->id, NULL) != 0) {
        x->id = NODE_NONE; // beyond what a fabric may have
        return;
    }
    uint32_t ports = n->num_ports + (n->type == NODE_SWITCH);
    for (uint32_t j = 0; j < ports; j++)
        add_port(m, x, j + node_first_num(n), x->known ? &m->known->port[x->known->first_port + j] : NULL,
                 x->seen ? &m->seen->port[x->seen->first_port + j] : NULL);
}

static struct both *find(const struct merging *m, uint64_t guid)
{
    return bsearch(&(struct both){.guid = guid}, m->node, m->n, sizeof(*m->node), by_guid);
}

// Links of one fabric; a port that has one already keeps it.
static void add_links(struct merging *m, const struct fabric *f)
{
    for (uint32_t i = 0; f && i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (!port_valid(p->peer) || p->peer.i < i)
            continue;
        struct both *a = find(m, f->node[p->node.i].guid), *z = find(m, peer_guid(f, p));
        if (a == NULL || z == NULL || !node_valid(a->id) || !node_valid(z->id) ||
            (f == m->known && ((a->seen && !a->known) || (z->seen && !z->known)))) // another kind of node now
            continue;
        if (builder_link(m->b, a->id, p->num, z->id, f->port[p->peer.i].num) == 0)
            a->linked = z->linked = true;
    }
}

static bool has_cable(const struct fabric *f, const struct node *n)
{
    for (unsigned num = 1; num <= n->num_ports; num++)
        if (port_valid(f->port[fabric_port_at(f, n, num).i].peer))
            return true;
    return false;
}

static void set_sm_port(struct merging *m)
{
    const struct fabric *f = m->seen != NULL ? m->seen : m->known;
    if (!port_valid(f->sm_port))
        return;
    const struct port *p = fabric_port(f, f->sm_port);
    const struct both *x = find(m, f->node[p->node.i].guid);
    if (x != NULL && node_valid(x->id))
        builder_sm_port(m->b, x->id, p->num);
}

const struct fabric *fabric_merge(const struct fabric *known, const struct fabric *seen)
{
    struct merging m = {.known = known, .seen = seen};

    if (known != NULL && seen != NULL && !is_news(known, seen))
        return fabric_ref(known);
    m.b = builder_new();
    list_nodes(&m);
    mark_lids(&m);
    for (uint32_t i = 0; i < m.n; i++)
        add_node(&m, &m.node[i]);
    add_links(&m, seen);
    add_links(&m, known);
    for (uint32_t i = 0; i < m.n; i++)
        if (m.node[i].seen == NULL && !m.node[i].linked && node_valid(m.node[i].id) &&
            has_cable(known, m.node[i].known))
            builder_remove(m.b, m.node[i].id);
    set_sm_port(&m);
    free(m.node);
    free(m.lid_seen);
    return builder_seal(m.b, seen ? seen->generation : known->generation, NULL);
}
