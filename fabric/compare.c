// SPDX-License-Identifier: Apache-2.0
// Nodes are matched by GUID, ports by number. One pass over the live cables tells moved ones, replaced
// devices and what is more; one over the blueprint what is missing and not explained by these.
#include "fabric/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/merge.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

struct comparing {
    struct blueprint_compare *c;
    const struct fabric *b, *live;
    uint32_t max, cap;
    struct blueprint_item beyond;
    uint32_t *to_b, *to_live; // per node: its number in the other one, ID_NONE when it is not there as it is
    bool *stands_in;          // per live node: in another's place
    uint32_t *stood_in;       // per node of the blueprint: who stands there now, ID_NONE: nobody else
};

static struct blueprint_item *add(struct comparing *m, enum blueprint_diff kind)
{
    struct blueprint_compare *c = m->c;
    if (c->count[kind]++ >= m->max)
        return &m->beyond;
    if (c->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 32;
        c->item = xreallocarray(c->item, m->cap, sizeof(*c->item));
    }
    c->item[c->n] = (struct blueprint_item){.kind = kind};
    return &c->item[c->n++];
}

static uint32_t *numbers_in(const struct fabric *in, const struct fabric *f)
{
    uint32_t *to = xreallocarray(NULL, f->num_nodes + 1, sizeof(*to));
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i], *k = fabric_by_guid(in, n->guid);
        bool same = k != NULL && k->type == n->type && k->num_ports == n->num_ports;
        to[i] = same ? (uint32_t)(k - in->node) : ID_NONE;
    }
    return to;
}

// The same port of the same node; NULL where there is none. to: of f's nodes.
static const struct port *same_port(const struct fabric *in, const uint32_t *to, const struct fabric *f,
                                    const struct port *p)
{
    uint32_t k = to[p->node.i];
    return k != ID_NONE
               ? &in->port[in->node[k].first_port + ((uint32_t)(p - f->port) - f->node[p->node.i].first_port)]
               : NULL;
}

// Whether the live cable at p is the one that the blueprint has at k.
static bool same_link(const struct comparing *m, const struct port *k, const struct port *p)
{
    if (k == NULL || !port_valid(k->peer))
        return false;
    const struct port *z = &m->live->port[p->peer.i], *kz = &m->b->port[k->peer.i];
    return z->num == kz->num && m->to_b[z->node.i] == kz->node.i;
}

static bool linked(const struct port *p)
{
    return p != NULL && port_valid(p->peer);
}

static bool of_switches(const struct fabric *f, const struct port *p)
{
    return fabric_node(f, p->node)->type == NODE_SWITCH && fabric_peer_node(f, p)->type == NODE_SWITCH;
}

// Whether the live cable at p leads to a device that stands where one of the blueprint stood. k: p there.
static bool replaced(struct comparing *m, const struct port *p, const struct port *k)
{
    const struct node *now = fabric_peer_node(m->live, p), *was = fabric_peer_node(m->b, k);
    uint32_t i = (uint32_t)(now - m->live->node);
    if (m->to_b[i] != ID_NONE || now->type != was->type)
        return false;
    bool other = fabric_by_guid(m->b, now->guid) != NULL; // with other ports
    if (other ? now->guid != was->guid : fabric_by_guid(m->live, was->guid) != NULL)
        return false;
    if (!m->stands_in[i]) {
        struct blueprint_item *x = add(m, BLUEPRINT_REPLACED);
        x->guid = now->guid;
        x->was_guid = was->guid;
        x->far_guid = fabric_node(m->live, p->node)->guid;
        x->far_port = p->num;
    }
    m->stands_in[i] = true;
    m->stood_in[was - m->b->node] = i;
    return true;
}

// The cable at p, whose port the blueprint has with another cable.
static void add_moved(struct comparing *m, const struct port *p, const struct port *k)
{
    struct blueprint_item *x = add(m, BLUEPRINT_MOVED);
    x->guid = fabric_node(m->live, p->node)->guid;
    x->port = p->num;
    x->far_guid = fabric_peer_node(m->live, p)->guid;
    x->far_port = fabric_port(m->live, p->peer)->num;
    x->was_guid = fabric_peer_node(m->b, k)->guid;
    x->was_port = fabric_port(m->b, k->peer)->num;
}

static void live_link(struct comparing *m, const struct port *p)
{
    const struct port *z = fabric_port(m->live, p->peer);
    const struct port *k = same_port(m->b, m->to_b, m->live, p);
    if (same_link(m, k, p))
        return;
    const struct port *kz = same_port(m->b, m->to_b, m->live, z);
    bool a = linked(k) && replaced(m, p, k), b = linked(kz) && replaced(m, z, kz);
    if (a || b)
        return;
    // Said of the end that moved, where one can be told from the other: an adapter, else the lower one.
    if (linked(k) && (!linked(kz) || fabric_node(m->live, z->node)->type == NODE_SWITCH)) {
        add_moved(m, p, k);
    } else if (linked(kz)) {
        add_moved(m, z, kz);
    } else if (of_switches(m->live, p)) {
        struct blueprint_item *x = add(m, BLUEPRINT_EXTRA_LINK);
        x->guid = fabric_node(m->live, p->node)->guid;
        x->port = p->num;
        x->far_guid = fabric_node(m->live, z->node)->guid;
        x->far_port = z->num;
    }
}

// Switches first: of many a list shows the first ones only.
static void live_nodes(struct comparing *m, bool switches)
{
    for (uint32_t i = 0; i < m->live->num_nodes; i++) {
        const struct node *n = &m->live->node[i];
        if (m->to_b[i] != ID_NONE || (n->type == NODE_SWITCH) != switches || m->stands_in[i] ||
            fabric_by_guid(m->b, n->guid) != NULL)
            continue;
        struct blueprint_item *x = add(m, BLUEPRINT_EXTRA_NODE);
        x->guid = n->guid;
        x->is_switch = switches;
        m->c->extra_switches += switches;
    }
}

static void missing_nodes(struct comparing *m, bool switches)
{
    for (uint32_t i = 0; i < m->b->num_nodes; i++) {
        const struct node *n = &m->b->node[i];
        if (m->to_live[i] != ID_NONE || (n->type == NODE_SWITCH) != switches || m->stood_in[i] != ID_NONE ||
            fabric_by_guid(m->live, n->guid) != NULL)
            continue;
        struct blueprint_item *x = add(m, BLUEPRINT_MISSING_NODE);
        x->guid = n->guid;
        x->is_switch = switches;
        m->c->missing_switches += switches;
    }
}

// Where the cable at p of the blueprint would be now, in another's place too; NULL: the node is missing.
static const struct port *place_of(const struct comparing *m, const struct port *p)
{
    uint32_t other = m->stood_in[p->node.i];
    if (other == ID_NONE)
        return same_port(m->live, m->to_live, m->b, p);
    port_id id = fabric_port_at(m->live, &m->live->node[other], p->num);
    return port_valid(id) ? fabric_port(m->live, id) : NULL;
}

static void missing_links(struct comparing *m)
{
    for (uint32_t i = 0; i < m->b->num_ports; i++) {
        const struct port *p = &m->b->port[i];
        if (!port_valid(p->peer) || p->peer.i < i)
            continue;
        const struct port *z = fabric_port(m->b, p->peer);
        const struct port *s = place_of(m, p);
        if (s == NULL || linked(s)) // the node is missing, or it was told as moved
            continue;
        const struct port *sz = place_of(m, z);
        if (sz == NULL || linked(sz))
            continue;
        struct blueprint_item *x = add(m, BLUEPRINT_MISSING_LINK);
        x->guid = fabric_node(m->b, p->node)->guid;
        x->port = p->num;
        x->far_guid = fabric_node(m->b, z->node)->guid;
        x->far_port = z->num;
    }
}

static int by_kind(const void *a, const void *b)
{
    const struct blueprint_item *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->is_switch != y->is_switch)
        return x->is_switch ? -1 : 1;
    if (x->guid != y->guid)
        return x->guid < y->guid ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

struct blueprint_compare *blueprint_compare(const struct fabric *blueprint, const struct fabric *live,
                                            uint32_t max)
{
    struct comparing m = {.c = xcalloc(1, sizeof(*m.c)), .b = blueprint, .live = live, .max = max};

    m.to_b = numbers_in(blueprint, live);
    m.to_live = numbers_in(live, blueprint);
    m.stands_in = xcalloc(live->num_nodes + 1, sizeof(bool));
    m.stood_in = xreallocarray(NULL, blueprint->num_nodes + 1, sizeof(*m.stood_in));
    memset(m.stood_in, 0xff, blueprint->num_nodes * sizeof(*m.stood_in));
    for (uint32_t i = 0; i < live->num_ports; i++)
        if (port_valid(live->port[i].peer) && live->port[i].peer.i > i)
            live_link(&m, &live->port[i]);
    for (int hosts = 0; hosts < 2; hosts++) {
        live_nodes(&m, !hosts);
        missing_nodes(&m, !hosts);
    }
    missing_links(&m);
    if (m.c->n > 0)
        qsort(m.c->item, m.c->n, sizeof(*m.c->item), by_kind);
    free(m.to_b);
    free(m.to_live);
    free(m.stands_in);
    free(m.stood_in);
    return m.c;
}

void blueprint_compare_free(struct blueprint_compare *c)
{
    if (c == NULL)
        return;
    free(c->item);
    free(c);
}

const char *blueprint_diff_name(enum blueprint_diff k)
{
    static const char *const name[] = {"missing-node", "missing-link", "extra-node",
                                       "extra-link",   "moved-cable",  "replaced-node"};
    return (unsigned)k < BLUEPRINT_DIFFS ? name[k] : "?";
}

// "leaf-1[33]", from whichever of the two knows the node.
static const char *place(const struct fabric *first, const struct fabric *second, uint64_t guid, unsigned num,
                         char *buf, size_t size)
{
    const struct fabric *f = fabric_by_guid(first, guid) != NULL ? first : second;
    const struct node *n = fabric_by_guid(f, guid);
    if (n == NULL)
        snprintf(buf, size, GUID_FMT, GUID_ARG(guid));
    else if (num == 0)
        fabric_node_name(f, n, buf, size);
    else if (port_valid(fabric_port_at(f, n, num)))
        fabric_port_name(f, fabric_port_at(f, n, num), buf, size);
    else
        snprintf(buf, size, "%s[%u]", fabric_desc(f, n), num);
    return buf;
}

// "leaf-1 (0x...)"; a name that is there twice has its GUID already.
static const char *who(const struct fabric *first, const struct fabric *second, uint64_t guid, char *buf,
                       size_t size)
{
    char text[24];
    place(first, second, guid, 0, buf, size);
    snprintf(text, sizeof(text), GUID_FMT, GUID_ARG(guid));
    if (strstr(buf, text) == NULL) {
        size_t used = strlen(buf);
        snprintf(buf + used, size - used, " (%s)", text);
    }
    return buf;
}

const char *blueprint_item_text(const struct blueprint_item *x, const struct fabric *blueprint,
                                const struct fabric *live, char *buf, size_t size)
{
    char a[180], b[180], c[180];
    const struct fabric *f = live, *g = blueprint;

    switch (x->kind) {
    case BLUEPRINT_MISSING_NODE:
        snprintf(buf, size, "%s is away", who(g, f, x->guid, a, sizeof(a)));
        break;
    case BLUEPRINT_MISSING_LINK:
        snprintf(buf, size, "the cable %s - %s is away", place(g, f, x->guid, x->port, a, sizeof(a)),
                 place(g, f, x->far_guid, x->far_port, b, sizeof(b)));
        break;
    case BLUEPRINT_EXTRA_NODE:
        snprintf(buf, size, "%s is new", who(f, g, x->guid, a, sizeof(a)));
        break;
    case BLUEPRINT_EXTRA_LINK:
        snprintf(buf, size, "the cable %s - %s is new", place(f, g, x->guid, x->port, a, sizeof(a)),
                 place(f, g, x->far_guid, x->far_port, b, sizeof(b)));
        break;
    case BLUEPRINT_MOVED:
        snprintf(buf, size, "the cable at %s leads to %s; in the blueprint to %s",
                 place(f, g, x->guid, x->port, a, sizeof(a)),
                 place(f, g, x->far_guid, x->far_port, b, sizeof(b)),
                 place(g, f, x->was_guid, x->was_port, c, sizeof(c)));
        break;
    case BLUEPRINT_REPLACED:
        snprintf(buf, size, "%s at %s is where %s was", who(f, g, x->guid, a, sizeof(a)),
                 place(f, g, x->far_guid, x->far_port, b, sizeof(b)), who(g, f, x->was_guid, c, sizeof(c)));
        break;
    }
    return buf;
}

static void put(char *buf, size_t size, const char *text)
{
    size_t used = strlen(buf);
    snprintf(buf + used, size - used, "%s", text);
}

const char *blueprint_silent_text(const struct fabric *blueprint, const struct fabric *live, char *buf,
                                  size_t size)
{
    bool *silent = fabric_silent(blueprint, live);
    uint32_t switches = 0, ends = 0, shown = 3;
    char name[180];

    buf[0] = 0;
    for (uint32_t i = 0; i < blueprint->num_nodes; i++) {
        const struct node *n = &blueprint->node[i];
        if (!silent[i] || n->type != NODE_SWITCH) {
            ends += silent[i];
        } else if (switches++ < shown) {
            put(buf, size, switches > 1 ? ", " : "");
            put(buf, size, fabric_node_name(blueprint, n, name, sizeof(name)));
        }
    }
    if (switches > shown) {
        snprintf(name, sizeof(name), "%s %u more switches", ends > 0 ? "," : " and", switches - shown);
        put(buf, size, name);
    }
    if (ends > 0) {
        snprintf(name, sizeof(name), "%s%u end%s", switches > 0 ? " and " : "", ends, ends > 1 ? "s" : "");
        put(buf, size, name);
    }
    free(silent);
    return buf;
}
