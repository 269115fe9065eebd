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

// An end port of the result that has a LID.
struct end {
    node_id node;
    uint8_t num;
    bool linked;
    struct port_attrs a;
};

struct merging {
    enum merge_rule rule;
    const struct fabric *known, *seen; // either may be NULL
    struct both *node;
    uint32_t n;
    struct builder *b;
    bool *silent;      // per node of known, under MERGE_LIVE; NULL otherwise
    uint8_t *lid_seen; // a bit per LID that a seen port has
    struct end *end;
    uint32_t num_ends, cap_ends;
};

static bool same_shape(const struct node *a, const struct node *b)
{
    return a->type == b->type && a->num_ports == b->num_ports;
}

static uint64_t peer_guid(const struct fabric *f, const struct port *p)
{
    return port_valid(p->peer) ? f->node[f->port[p->peer.i].node.i].guid : 0;
}

// --- what may be learnt ---

// The same port of the same node in the other fabric, NULL where there is none.
static const struct port *counterpart(const struct fabric *in, const struct fabric *f, const struct port *p)
{
    const struct node *n = &f->node[p->node.i], *k = in ? fabric_by_guid(in, n->guid) : NULL;
    return k != NULL && same_shape(k, n) ? &in->port[k->first_port + p->num - node_first_num(k)] : NULL;
}

static bool same_link(const struct fabric *known, const struct port *k, const struct fabric *seen,
                      const struct port *s)
{
    return k != NULL && port_valid(k->peer) && peer_guid(known, k) == peer_guid(seen, s) &&
           known->port[k->peer.i].num == seen->port[s->peer.i].num;
}

// Of a link of an end node: whether it goes to a place of the known fabric that was kept for it, on a switch
// that is a leaf already (so that no switch gets another tier), at a port without a cable.
static bool new_host_link(const struct fabric *known, const struct fabric *seen, const struct port *s)
{
    const struct port *end = s, *place = fabric_port(seen, s->peer);
    if (seen->node[end->node.i].type == NODE_SWITCH) {
        end = place;
        place = s;
    }
    const struct node *n = fabric_node(seen, end->node), *z = fabric_node(seen, place->node);
    const struct node *had = fabric_by_guid(known, n->guid);
    if (n->type != NODE_CA || n->role != ROLE_HOST || z->type != NODE_SWITCH || (had && !same_shape(had, n)))
        return false;
    const struct port *k = counterpart(known, seen, end), *kp = counterpart(known, seen, place);
    return kp != NULL && fabric_node(known, kp->node)->role == ROLE_LEAF && !port_valid(kp->peer) &&
           (k == NULL || !port_valid(k->peer));
}

static bool may_link(enum merge_rule rule, const struct fabric *known, const struct fabric *seen,
                     const struct port *s)
{
    switch (rule) {
    case MERGE_LEARN:
    case MERGE_LIVE:
        return true;
    case MERGE_HOSTS:
        if (new_host_link(known, seen, s))
            return true;
        return same_link(known, counterpart(known, seen, s), seen, s);
    case MERGE_FIXED:
        return same_link(known, counterpart(known, seen, s), seen, s);
    }
    return false;
}

static bool may_come(enum merge_rule rule, const struct fabric *known, const struct fabric *seen,
                     const struct node *s)
{
    const struct node *k = known != NULL ? fabric_by_guid(known, s->guid) : NULL;
    if (rule == MERGE_LEARN || rule == MERGE_LIVE || (k != NULL && same_shape(k, s)))
        return true;
    for (unsigned num = 1; rule == MERGE_HOSTS && k == NULL && num <= s->num_ports; num++) {
        const struct port *p = &seen->port[fabric_port_at(seen, s, num).i];
        if (port_valid(p->peer) && new_host_link(known, seen, p))
            return true;
    }
    return false;
}

// --- up, and silent ---

static bool is_silent(const struct fabric *known, const struct fabric *seen, const struct port *k)
{
    const struct port *s = counterpart(seen, known, k);
    return s != NULL && s->excluded == PORT_EXCLUDED_PEER_SILENT;
}

// Whether n, which is not seen, has a cable to somebody who is.
static bool touches_seen(const struct fabric *known, const struct fabric *seen, const struct node *n)
{
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *z = fabric_peer_node(known, fabric_port(known, fabric_port_at(known, n, num)));
        if (z != NULL && fabric_by_guid(seen, z->guid) != NULL)
            return true;
    }
    return false;
}

bool *fabric_silent(const struct fabric *known, const struct fabric *seen)
{
    bool *silent = xcalloc(known->num_nodes + 1, sizeof(*silent));
    uint32_t *list = xreallocarray(NULL, known->num_nodes + 1, sizeof(*list)), n = 0;

    for (uint32_t i = 0; i < known->num_ports; i++) {
        const struct port *p = &known->port[i];
        if (!port_valid(p->peer) || !is_silent(known, seen, &known->port[p->peer.i]) || silent[p->node.i] ||
            fabric_by_guid(seen, known->node[p->node.i].guid) != NULL)
            continue;
        silent[p->node.i] = true;
        list[n++] = p->node.i;
    }
    for (uint32_t done = 0; done < n; done++) {
        const struct node *x = &known->node[list[done]];
        for (unsigned num = 1; x->type == NODE_SWITCH && num <= x->num_ports; num++) {
            const struct node *z = fabric_peer_node(known, fabric_port(known, fabric_port_at(known, x, num)));
            if (z == NULL || silent[z - known->node] || fabric_by_guid(seen, z->guid) != NULL ||
                touches_seen(known, seen, z))
                continue;
            silent[z - known->node] = true;
            list[n++] = (uint32_t)(z - known->node);
        }
    }
    free(list);
    return silent;
}

// A link of the known fabric, under MERGE_LIVE, at p: only those of end nodes that are missing now, at their
// place, and those of silent nodes that are not seen to be down.
static bool keeps_link(const struct merging *m, const struct both *a, const struct both *z,
                       const struct port *p)
{
    if (m->rule != MERGE_LIVE || m->seen == NULL)
        return true;
    bool a_silent = m->silent[a->known - m->known->node], z_silent = m->silent[z->known - m->known->node];
    if ((a_silent && (z->seen == NULL || is_silent(m->known, m->seen, &m->known->port[p->peer.i]))) ||
        (z_silent && (a->seen == NULL || is_silent(m->known, m->seen, p))))
        return true;
    const struct both *end = a->known->type != NODE_SWITCH ? a : z, *place = end == a ? z : a;
    return end->known->type != NODE_SWITCH && place->known->type == NODE_SWITCH && place->seen != NULL;
}

// --- is there anything to learn? ---

// A port without a cable may still say that it has a LID that went to another one.
static bool lid_is_anothers(const struct fabric *known, const struct port *k, const struct port *s)
{
    if (port_valid(s->peer) || port_valid(k->peer) || k->a.lid != 0)
        return false;
    for (uint32_t lid = s->a.lid; lid < s->a.lid + (1u << (s->a.lmc & 7)) && lid <= known->top_lid; lid++)
        if (known->lid_port[lid] != ID_NONE)
            return true;
    return false;
}

static bool port_is_news(enum merge_rule rule, const struct fabric *known, const struct port *k,
                         const struct fabric *seen, const struct port *s)
{
    if (port_valid(s->peer) && !same_link(known, k, seen, s) && may_link(rule, known, seen, s))
        return true;
    return port_is_end(seen, s) && s->a.lid != 0 && !lid_is_anothers(known, k, s) &&
           (k->a.lid != s->a.lid || k->a.lmc != s->a.lmc || k->guid != s->guid);
}

static bool lid_is_news(enum merge_rule rule, const struct fabric *known, const struct fabric *seen,
                        const struct node *s)
{
    for (unsigned num = node_first_num(s); rule != MERGE_LEARN && num <= s->num_ports; num++) {
        const struct port *p = &seen->port[fabric_port_at(seen, s, num).i];
        if (port_is_end(seen, p) && p->a.lid != 0 && seen->lid_port[p->a.lid] == (uint32_t)(p - seen->port) &&
            p->a.lid <= known->top_lid && known->lid_port[p->a.lid] != ID_NONE)
            return true;
    }
    return false;
}

static bool is_news(enum merge_rule rule, const struct fabric *known, const struct fabric *seen)
{
    for (uint32_t i = 0; i < seen->num_nodes; i++) {
        const struct node *s = &seen->node[i], *k = fabric_by_guid(known, s->guid);
        if (k == NULL || !same_shape(k, s)) {
            // Who may not come takes its LID all the same.
            if (may_come(rule, known, seen, s) || lid_is_news(rule, known, seen, s))
                return true;
            continue;
        }
        if (k->desc == 0 && s->desc != 0)
            return true;
        uint32_t ports = s->num_ports + (s->type == NODE_SWITCH);
        for (uint32_t j = 0; j < ports; j++)
            if (port_is_news(rule, known, &known->port[k->first_port + j], seen,
                             &seen->port[s->first_port + j]))
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
        if (m->known != NULL && !may_come(m->rule, m->known, m->seen, s))
            continue;
        m->node[m->n++] =
            (struct both){.guid = s->guid, .seen = s, .known = k != NULL && same_shape(k, s) ? k : NULL};
    }
    for (uint32_t i = 0; m->known && i < m->known->num_nodes; i++) {
        const struct node *k = &m->known->node[i];
        const struct node *s = m->seen != NULL ? fabric_by_guid(m->seen, k->guid) : NULL;
        bool stays = m->silent == NULL || k->type != NODE_SWITCH || m->silent[i];
        if (s == NULL ? stays : !may_come(m->rule, m->known, m->seen, s))
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

static void add_end(struct merging *m, const struct both *x, unsigned num, const struct port_attrs *a)
{
    if (m->num_ends == m->cap_ends) {
        m->cap_ends = m->cap_ends ? 2 * m->cap_ends : 256;
        m->end = xreallocarray(m->end, m->cap_ends, sizeof(*m->end));
    }
    m->end[m->num_ends++] = (struct end){.node = x->id, .num = (uint8_t)num, .linked = num == 0, .a = *a};
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
        if (a.lid != 0)
            add_end(m, x, num, &a);
    }
    builder_port(m->b, x->id, num, &a);
}

static void add_node(struct merging *m, struct both *x)
{
    const struct node *n = x->seen != NULL ? x->seen : x->known;
    const struct fabric *named = m->seen;
    const struct node *name = x->seen;
    struct node_attrs a = node_attrs_like(n);

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

// Of an end port, found by the order in which they were added.
static void mark_linked(struct merging *m, const struct both *x, unsigned num)
{
    uint32_t lo = 0, hi = m->num_ends;
    x = x->id.i == ID_NONE ? NULL : x;
    while (x != NULL && lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        struct end *e = &m->end[mid];
        if (e->node.i == x->id.i && e->num == num) {
            e->linked = true;
            return;
        }
        if (e->node.i < x->id.i || (e->node.i == x->id.i && e->num < num))
            lo = mid + 1;
        else
            hi = mid;
    }
}

// Links of one fabric; a port that has one already keeps it.
static void add_links(struct merging *m, const struct fabric *f)
{
    for (uint32_t i = 0; f && i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (!port_valid(p->peer) || p->peer.i < i)
            continue;
        struct both *a = find(m, f->node[p->node.i].guid), *z = find(m, peer_guid(f, p));
        if (a == NULL || z == NULL || !node_valid(a->id) || !node_valid(z->id))
            continue;
        if (f == m->known && ((a->seen && !a->known) || (z->seen && !z->known))) // another kind of node now
            continue;
        if (f == m->known ? !keeps_link(m, a, z, p)
                          : m->known != NULL && !may_link(m->rule, m->known, m->seen, p))
            continue;
        if (builder_link(m->b, a->id, p->num, z->id, f->port[p->peer.i].num) == 0) {
            a->linked = z->linked = true;
            mark_linked(m, a, p->num);
            mark_linked(m, z, f->port[p->peer.i].num);
        }
    }
}

// A LID that a port with a cable has is not also that of one without: an adapter that another one with its
// GUID has taken the place of, say.
static void settle_lids(struct merging *m)
{
    uint32_t *owner = xcalloc(LID_UCAST_MAX + 1 + 128, sizeof(*owner)); // index + 1
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < m->num_ends; i++) {
            struct end *e = &m->end[i];
            uint32_t n = 1u << (e->a.lmc & 7), k = 0;
            if (e->linked != (pass == 0) || e->a.lid > LID_UCAST_MAX)
                continue;
            while (k < n && owner[e->a.lid + k] == 0)
                k++;
            if (k < n && pass == 1) {
                e->a.lid = e->a.lmc = 0;
                builder_port(m->b, e->node, e->num, &e->a);
                continue;
            }
            for (k = 0; k < n; k++)
                owner[e->a.lid + k] = i + 1;
        }
    free(owner);
}

static bool has_cable(const struct fabric *f, const struct node *n)
{
    for (unsigned num = 1; num <= n->num_ports; num++)
        if (port_valid(f->port[fabric_port_at(f, n, num).i].peer))
            return true;
    return false;
}

// Where the manager is seen to sit, or where it was known to.
static void set_sm_port(struct merging *m)
{
    const struct fabric *from[] = {m->seen, m->known};
    for (int i = 0; i < 2; i++) {
        const struct fabric *f = from[i];
        if (f == NULL || !port_valid(f->sm_port))
            continue;
        const struct port *p = fabric_port(f, f->sm_port);
        const struct both *x = find(m, f->node[p->node.i].guid);
        if (x != NULL && node_valid(x->id)) {
            builder_sm_port(m->b, x->id, p->num);
            return;
        }
    }
}

const struct fabric *fabric_merge(const struct fabric *known, const struct fabric *seen)
{
    return fabric_merge_by(MERGE_LEARN, known, seen);
}

const struct fabric *fabric_merge_by(enum merge_rule rule, const struct fabric *known,
                                     const struct fabric *seen)
{
    struct merging m = {.rule = rule, .known = known, .seen = seen};

    if (rule != MERGE_LIVE && known != NULL && seen != NULL && !is_news(rule, known, seen))
        return fabric_ref(known);
    m.b = builder_new();
    if (rule == MERGE_LIVE && known != NULL && seen != NULL)
        m.silent = fabric_silent(known, seen);
    list_nodes(&m);
    mark_lids(&m);
    for (uint32_t i = 0; i < m.n; i++)
        add_node(&m, &m.node[i]);
    add_links(&m, seen);
    add_links(&m, known);
    for (uint32_t i = 0; i < m.n; i++)
        if (m.node[i].seen == NULL && !m.node[i].linked && node_valid(m.node[i].id) &&
            (rule == MERGE_LIVE || has_cable(known, m.node[i].known)))
            builder_remove(m.b, m.node[i].id);
    settle_lids(&m);
    set_sm_port(&m);
    free(m.end);
    free(m.node);
    free(m.silent);
    free(m.lid_seen);
    return builder_seal(m.b, seen ? seen->generation : known->generation, NULL);
}

const struct fabric *fabric_with_lids(const struct fabric *f, const struct fabric *from)
{
    struct builder *b = builder_from(f);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        struct port_attrs a = p->a;
        if (!port_is_end(f, p))
            continue;
        port_id id = p->guid != 0 ? fabric_by_port_guid(from, p->guid) : PORT_NONE;
        const struct port *k = port_valid(id) ? fabric_port(from, id) : counterpart(from, f, p);
        a.lid = k != NULL ? k->a.lid : 0;
        a.lmc = k != NULL ? k->a.lmc : 0;
        builder_port(b, p->node, p->num, &a);
    }
    return builder_seal(b, f->generation, NULL);
}
