// SPDX-License-Identifier: Apache-2.0
// Nodes are matched by GUID, ports by number, links by both their ends; one pass over either generation.
#include "fabric/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"

struct maker {
    struct fabric_diff *d;
    size_t cap;
    const struct fabric *old, *new_fabric;
};

static struct change *change_add(struct maker *m, enum change_kind kind, uint64_t guid, uint8_t port)
{
    struct fabric_diff *d = m->d;
    if (d->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        d->item = xreallocarray(d->item, m->cap, sizeof(*d->item));
    }
    struct change *c = &d->item[d->n++];
    *c = (struct change){.kind = kind, .guid_a = guid, .port_a = port};
    d->count[kind]++;
    return c;
}

static void link_add(struct maker *m, enum change_kind kind, const struct fabric *f, const struct port *p,
                     uint32_t old_rate, uint32_t new_rate)
{
    const struct port *z = &f->port[p->peer.i];
    struct change *c = change_add(m, kind, f->node[p->node.i].guid, p->num);
    c->guid_z = f->node[z->node.i].guid;
    c->port_z = z->num;
    c->old_value = old_rate;
    c->new_value = new_rate;
}

// The port of `in` that is the same node's port of the same number; NULL when it has none.
static const struct port *port_in(const struct fabric *in, const struct fabric *f, const struct port *p)
{
    if (!in)
        return NULL;
    const struct node *n = fabric_by_guid(in, f->node[p->node.i].guid);
    port_id id = n ? fabric_port_at(in, n, p->num) : PORT_NONE;
    return port_valid(id) ? &in->port[id.i] : NULL;
}

// Whether the link at p of f exists in `in` too; q is p's counterpart there.
static bool link_in(const struct fabric *in, const struct port *q, const struct fabric *f,
                    const struct port *p)
{
    if (!q || !port_valid(q->peer))
        return false;
    const struct port *z = &f->port[p->peer.i], *w = &in->port[q->peer.i];
    return z->num == w->num && f->node[z->node.i].guid == in->node[w->node.i].guid;
}

static bool link_first_end(const struct fabric *f, uint32_t i)
{
    return port_valid(f->port[i].peer) && f->port[i].peer.i > i;
}

// Both ends say the rate; where they differ (a file) or one does not know, the lower known one counts.
static uint32_t link_rate(const struct fabric *f, const struct port *p)
{
    uint32_t a = port_rate_mbps(&p->a), z = port_rate_mbps(&f->port[p->peer.i].a);
    return a && (a < z || !z) ? a : z;
}

static void links_gone(struct maker *m)
{
    const struct fabric *o = m->old;
    for (uint32_t i = 0; i < o->num_ports; i++) {
        const struct port *p = &o->port[i];
        if (link_first_end(o, i) && !link_in(m->new_fabric, port_in(m->new_fabric, o, p), o, p))
            link_add(m, CHANGE_LINK_REMOVED, o, p, link_rate(o, p), 0);
    }
}

static void links_new(struct maker *m)
{
    const struct fabric *f = m->new_fabric;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (!link_first_end(f, i))
            continue;
        const struct port *q = port_in(m->old, f, p);
        uint32_t rate = link_rate(f, p);
        if (!link_in(m->old, q, f, p))
            link_add(m, CHANGE_LINK_ADDED, f, p, 0, rate);
        else if (link_rate(m->old, q) != rate)
            link_add(m, CHANGE_LINK_RATE, f, p, link_rate(m->old, q), rate);
    }
}

static void value_change(struct maker *m, enum change_kind kind, const struct node *n, uint8_t num,
                         uint32_t old, uint32_t new_value)
{
    struct change *c = change_add(m, kind, n->guid, num);
    c->old_value = old;
    c->new_value = new_value;
}

static bool was_configured(uint8_t state)
{
    return state == PORT_ARMED || state == PORT_ACTIVE;
}

// A device that restarted has lost what was written to it: its LID is 0 and links that carried data wait to
// be configured again.
static bool looks_reset(const struct fabric *o, const struct node *on, const struct fabric *f,
                        const struct node *n)
{
    bool lid_lost = false, to_init = false;
    for (unsigned num = node_first_num(n); num <= n->num_ports && num <= on->num_ports; num++) {
        const struct port *p = fabric_port(f, fabric_port_at(f, n, num));
        const struct port *q = fabric_port(o, fabric_port_at(o, on, num));
        bool init = was_configured(q->a.state) && p->a.state == PORT_INIT;
        bool lost = port_is_end(f, p) && q->a.lid && !p->a.lid;
        if (n->type != NODE_SWITCH && init && lost)
            return true;
        lid_lost |= lost;
        to_init |= init;
    }
    return n->type == NODE_SWITCH && lid_lost && to_init;
}

static void ports_compare(struct maker *m, const struct node *on, const struct node *n)
{
    const struct fabric *o = m->old, *f = m->new_fabric;
    for (unsigned num = node_first_num(n); num <= n->num_ports && num <= on->num_ports; num++) {
        const struct port *p = fabric_port(f, fabric_port_at(f, n, num));
        const struct port *q = fabric_port(o, fabric_port_at(o, on, num));
        if (p->a.state != q->a.state)
            value_change(m, CHANGE_PORT_STATE, n, p->num, q->a.state, p->a.state);
        if (port_is_end(f, p) && p->a.lid != q->a.lid)
            value_change(m, CHANGE_LID, n, p->num, q->a.lid, p->a.lid);
    }
}

static void nodes_compare(struct maker *m)
{
    const struct fabric *o = m->old, *f = m->new_fabric;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i], *on = o ? fabric_by_guid(o, n->guid) : NULL;
        if (!on) {
            change_add(m, CHANGE_NODE_ADDED, n->guid, 0);
            continue;
        }
        if (strcmp(fabric_desc(f, n), fabric_desc(o, on)) != 0)
            change_add(m, CHANGE_NODE_DESC, n->guid, 0);
        if (on->type != n->type) // another device under the same GUID: its ports compare to nothing
            continue;
        if (looks_reset(o, on, f, n))
            change_add(m, CHANGE_NODE_RESET, n->guid, 0);
        ports_compare(m, on, n);
    }
}

struct fabric_diff *diff_make(const struct fabric *old, const struct fabric *new_fabric)
{
    struct maker m = {.d = xcalloc(1, sizeof(*m.d)), .old = old, .new_fabric = new_fabric};
    if (old) {
        for (uint32_t i = 0; i < old->num_nodes; i++) {
            if (!fabric_by_guid(new_fabric, old->node[i].guid))
                change_add(&m, CHANGE_NODE_REMOVED, old->node[i].guid, 0);
        }
        links_gone(&m);
    }
    nodes_compare(&m);
    links_new(&m);
    return m.d;
}

void diff_free(struct fabric_diff *d)
{
    if (!d)
        return;
    free(d->item);
    free(d);
}

const char *change_kind_name(enum change_kind k)
{
    static const char *const name[] = {"node-added", "node-removed", "node-desc",
                                       "node-reset", "link-added",   "link-removed",
                                       "link-rate",  "port-state",   "lid"};
    return (unsigned)k < sizeof(name) / sizeof(name[0]) ? name[k] : "unknown";
}

static const char *name_of(uint64_t guid, const struct fabric *first, const struct fabric *second, char *buf,
                           size_t size)
{
    const struct fabric *f = first;
    const struct node *n = f ? fabric_by_guid(f, guid) : NULL;
    if (!n && second) {
        f = second;
        n = fabric_by_guid(f, guid);
    }
    if (n)
        return fabric_node_name(f, n, buf, size);
    snprintf(buf, size, GUID_FMT, GUID_ARG(guid));
    return buf;
}

static void rate_text(uint32_t mbps, char *buf, size_t size)
{
    if (mbps == 0)
        snprintf(buf, size, "unknown rate");
    else if (mbps % 1000)
        snprintf(buf, size, "%u.%u Gb/s", mbps / 1000, mbps % 1000 / 100);
    else
        snprintf(buf, size, "%u Gb/s", mbps / 1000);
}

static void link_text(const struct change *c, const char *a, const char *z, char *buf, size_t size)
{
    char was[32], is[32];
    rate_text(c->old_value, was, sizeof(was));
    rate_text(c->new_value, is, sizeof(is));
    if (c->kind == CHANGE_LINK_ADDED)
        snprintf(buf, size, "link %s[%u] - %s[%u] added, %s", a, c->port_a, z, c->port_z, is);
    else if (c->kind == CHANGE_LINK_REMOVED)
        snprintf(buf, size, "link %s[%u] - %s[%u] removed", a, c->port_a, z, c->port_z);
    else
        snprintf(buf, size, "link %s[%u] - %s[%u] went from %s to %s", a, c->port_a, z, c->port_z, was, is);
}

static void desc_text(const struct change *c, const struct fabric *old, const struct fabric *new_fabric,
                      char *buf, size_t size)
{
    const struct node *on = old ? fabric_by_guid(old, c->guid_a) : NULL;
    const struct node *n = new_fabric ? fabric_by_guid(new_fabric, c->guid_a) : NULL;
    snprintf(buf, size, "node " GUID_FMT " renamed from \"%s\" to \"%s\"", GUID_ARG(c->guid_a),
             on ? fabric_desc(old, on) : "", n ? fabric_desc(new_fabric, n) : "");
}

const char *change_text(const struct change *c, const struct fabric *old, const struct fabric *new_fabric,
                        char *buf, size_t size)
{
    char a[200], z[200];
    bool gone = c->kind == CHANGE_NODE_REMOVED || c->kind == CHANGE_LINK_REMOVED;
    const struct fabric *first = gone ? old : new_fabric, *second = gone ? new_fabric : old;
    name_of(c->guid_a, first, second, a, sizeof(a));
    name_of(c->guid_z, first, second, z, sizeof(z));
    switch (c->kind) {
    case CHANGE_NODE_ADDED:
        snprintf(buf, size, "node %s added", a);
        break;
    case CHANGE_NODE_REMOVED:
        snprintf(buf, size, "node %s removed", a);
        break;
    case CHANGE_NODE_DESC:
        desc_text(c, old, new_fabric, buf, size);
        break;
    case CHANGE_NODE_RESET:
        snprintf(buf, size, "node %s has been reset", a);
        break;
    case CHANGE_LINK_ADDED:
    case CHANGE_LINK_REMOVED:
    case CHANGE_LINK_RATE:
        link_text(c, a, z, buf, size);
        break;
    case CHANGE_PORT_STATE:
        snprintf(buf, size, "port %s[%u] went from %s to %s", a, c->port_a,
                 port_state_name((enum port_state)c->old_value),
                 port_state_name((enum port_state)c->new_value));
        break;
    case CHANGE_LID:
        snprintf(buf, size, "port %s[%u] LID %u is now %u", a, c->port_a, c->old_value, c->new_value);
        break;
    }
    return buf;
}
