// SPDX-License-Identifier: Apache-2.0
#include "fabric/edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/builder_priv.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/rng.h"
#include "lib/xalloc.h"

void fabric_edit_init(struct fabric_edit *x, const struct fabric *f)
{
    *x = (struct fabric_edit){.f = f};
    x->cut = xcalloc(f->num_ports + 1, sizeof(*x->cut));
    x->dead = xcalloc(f->num_nodes + 1, sizeof(*x->dead));
    u64map_init(&x->used, NULL, 16);
    u64map_init(&x->guids, NULL, 16);
}

void fabric_edit_done(struct fabric_edit *x)
{
    for (uint32_t i = 0; i < x->num_node; i++)
        free(x->node[i].name);
    free(x->node);
    free(x->link);
    free(x->cut);
    free(x->dead);
    u64map_done(&x->used);
    u64map_done(&x->guids);
    *x = (struct fabric_edit){0};
}

// --- taking away ---

int fabric_edit_cut(struct fabric_edit *x, port_id p)
{
    port_id peer = fabric_port(x->f, p)->peer;
    if (!port_valid(peer))
        return -ENOENT;
    x->num_cut += !x->cut[p.i];
    x->cut[p.i] = x->cut[peer.i] = true;
    return 0;
}

void fabric_edit_kill(struct fabric_edit *x, node_id id)
{
    const struct node *n = fabric_node(x->f, id);
    x->num_dead += !x->dead[id.i];
    x->dead[id.i] = true;
    for (unsigned num = node_first_num(n); num <= n->num_ports; num++)
        fabric_edit_cut(x, fabric_port_at(x->f, n, num));
}

struct trunk {
    uint64_t guid;
    uint32_t port;
    uint8_t num;
};

static int by_end(const void *a, const void *b)
{
    const struct trunk *x = a, *y = b;
    if (x->guid != y->guid)
        return x->guid < y->guid ? -1 : 1;
    return (x->num > y->num) - (x->num < y->num);
}

// Links between switches, each by its end of the smaller GUID and number, in this order.
static struct trunk *trunks(const struct fabric *f, size_t *ret_n)
{
    struct trunk *t = xcalloc(f->num_links + 1, sizeof(*t));
    size_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *a = fabric_node(f, p->node), *z = fabric_peer_node(f, p);
        if (z == NULL || a->type != NODE_SWITCH || z->type != NODE_SWITCH)
            continue;
        const struct port *q = fabric_port(f, p->peer);
        if (a->guid < z->guid || (a->guid == z->guid && p->num < q->num))
            t[n++] = (struct trunk){a->guid, i, p->num};
    }
    qsort(t, n, sizeof(*t), by_end);
    *ret_n = n;
    return t;
}

void fabric_edit_cut_share(struct fabric_edit *x, double percent, uint64_t seed)
{
    size_t n;
    struct trunk *t = trunks(x->f, &n);
    struct rng rng;
    rng_init(&rng, seed);
    size_t k = percent >= 100 ? n : percent > 0 ? (size_t)((double)n * percent / 100 + 0.5) : 0;
    for (size_t i = 0; i < k; i++) { // the first k of a shuffle
        size_t j = i + rng_below(&rng, (uint32_t)(n - i));
        struct trunk one = t[i];
        t[i] = t[j];
        t[j] = one;
        fabric_edit_cut(x, (port_id){t[i].port});
    }
    free(t);
}

// --- adding ---

int fabric_edit_add_node(struct fabric_edit *x, uint32_t like, uint64_t guid, uint64_t sys_guid,
                         const char *name, uint32_t *ret, struct err *e)
{
    char text[GUID_STR_SIZE];
    uint32_t one;
    if (guid == 0 || fabric_by_guid(x->f, guid) != NULL || u64map_get(&x->guids, guid, &one))
        return err_set(e, -EEXIST, guid_str(guid, text), "a node with this GUID is there already");
    if (x->f->num_nodes + x->num_node >= BUILDER_MAX_NODES)
        return err_set(e, -E2BIG, name, "the fabric would have more than %u nodes", BUILDER_MAX_NODES);
    const struct node *n = &x->f->node[like];
    uint32_t ports = n->num_ports + (n->type == NODE_SWITCH);
    if (x->f->num_ports + x->num_port + ports > BUILDER_MAX_PORTS)
        return err_set(e, -E2BIG, name, "the fabric would have more than %u ports", BUILDER_MAX_PORTS);
    if (x->num_node == x->cap_node) {
        x->cap_node = x->cap_node ? x->cap_node * 2 : 16;
        x->node = xreallocarray(x->node, x->cap_node, sizeof(*x->node));
    }
    u64map_set(&x->guids, guid, 1);
    x->num_port += ports;
    *ret = x->f->num_nodes + x->num_node;
    x->node[x->num_node++] = (struct edit_node){like, guid, sys_guid, xstrdup(name)};
    return 0;
}

static const struct node *kind_of(const struct fabric_edit *x, uint32_t node)
{
    return &x->f->node[node < x->f->num_nodes ? node : x->node[node - x->f->num_nodes].like];
}

static uint64_t end_key(uint32_t node, unsigned num)
{
    return (uint64_t)node << 8 | num;
}

bool fabric_edit_is_free(const struct fabric_edit *x, uint32_t node, unsigned num)
{
    uint32_t one;
    if (num == 0 || num > kind_of(x, node)->num_ports || u64map_get(&x->used, end_key(node, num), &one))
        return false;
    if (node >= x->f->num_nodes)
        return true;
    port_id p = fabric_port_at(x->f, &x->f->node[node], num);
    const struct port *have = fabric_port(x->f, p);
    if (x->dead[node])
        return false;
    return x->cut[p.i] || (!port_valid(have->peer) && have->excluded == PORT_INCLUDED);
}

unsigned fabric_edit_next_free(const struct fabric_edit *x, uint32_t node, unsigned after)
{
    for (unsigned num = after + 1; num <= kind_of(x, node)->num_ports; num++)
        if (fabric_edit_is_free(x, node, num))
            return num;
    return 0;
}

int fabric_edit_add_link(struct fabric_edit *x, uint32_t a, unsigned a_num, uint32_t z, unsigned z_num)
{
    if (a == z)
        return -EINVAL;
    if (!fabric_edit_is_free(x, a, a_num) || !fabric_edit_is_free(x, z, z_num))
        return -EBUSY;
    if (x->num_link == x->cap_link) {
        x->cap_link = x->cap_link ? x->cap_link * 2 : 64;
        x->link = xreallocarray(x->link, x->cap_link, sizeof(*x->link));
    }
    x->link[x->num_link++] = (struct edit_link){a, z, (uint8_t)a_num, (uint8_t)z_num};
    u64map_set(&x->used, end_key(a, a_num), 1);
    u64map_set(&x->used, end_key(z, z_num), 1);
    return 0;
}

// --- applying ---

static void take_away(const struct fabric_edit *x, struct builder *b)
{
    const struct fabric *f = x->f;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (x->cut[i])
            builder_exclude(b, p->node, p->num, PORT_EXCLUDED_BY_OPERATOR);
        if (x->dead[p->node.i] && p->a.lid != 0) { // what is dead is no destination
            struct port_attrs a = p->a;
            a.lid = 0;
            builder_port(b, p->node, p->num, &a);
        }
    }
}

// A PortGUID of its own: the NodeGUID, and for further ports what follows it.
static void add_node(const struct fabric_edit *x, struct builder *b, const struct edit_node *new)
{
    const struct node *like = &x->f->node[new->like];
    struct node_attrs a = node_attrs_like(like);
    a.guid = new->guid;
    a.sys_guid = new->sys_guid;
    a.lft_top = 0;
    node_id id;
    if (builder_node(b, &a, new->name, strlen(new->name), &id, NULL) != 0)
        return; // not so: all that it refuses was looked at when the node was added
    for (unsigned num = node_first_num(like); num <= like->num_ports; num++) {
        const struct port *p = fabric_port(x->f, fabric_port_at(x->f, like, num));
        struct port_attrs pa = p->a;
        pa.lid = 0;
        pa.lmc = 0;
        builder_port(b, id, num, &pa);
        if (like->type != NODE_SWITCH || num == 0)
            builder_port_guid(b, id, num, new->guid + num - node_first_num(like));
    }
}

// What a port with a cable says, of some other one on the node where it has none itself.
static struct port_attrs attrs_in_use(const struct fabric_edit *x, uint32_t node, unsigned num)
{
    const struct node *n = kind_of(x, node);
    const struct port *own = fabric_port(x->f, fabric_port_at(x->f, n, num));
    struct port_attrs a = own->a;
    for (unsigned k = 1; k <= n->num_ports && !port_valid(own->peer); k++) {
        const struct port *p = fabric_port(x->f, fabric_port_at(x->f, n, k));
        if (!port_valid(p->peer))
            continue;
        a = p->a;
        break;
    }
    a.lid = node < x->f->num_nodes ? own->a.lid : 0;
    a.lmc = node < x->f->num_nodes ? own->a.lmc : 0;
    a.state = PORT_ACTIVE;
    a.phys_state = 5; // LinkUp
    return a;
}

static void plug_in(const struct fabric_edit *x, struct builder *b, uint32_t node, unsigned num)
{
    struct port_attrs a = attrs_in_use(x, node, num);
    builder_exclude(b, (node_id){node}, num, PORT_INCLUDED); // where a cable was taken out before
    builder_port(b, (node_id){node}, num, &a);
}

const struct fabric *fabric_edit_apply(const struct fabric_edit *x, struct findings *ret_findings)
{
    struct builder *b = builder_from(x->f);
    take_away(x, b);
    for (uint32_t i = 0; i < x->num_node; i++)
        add_node(x, b, &x->node[i]);
    for (uint32_t i = 0; i < x->num_link; i++) {
        const struct edit_link *l = &x->link[i];
        plug_in(x, b, l->a, l->a_num);
        plug_in(x, b, l->z, l->z_num);
        builder_link(b, (node_id){l->a}, l->a_num, (node_id){l->z}, l->z_num);
    }
    builder_numbers_from(b, x->f); // rails are told by the numbers that they have
    return builder_seal(b, x->f->generation, ret_findings);
}

const struct fabric *fabric_without_links(const struct fabric *f, const port_id *port, size_t n)
{
    struct fabric_edit x;
    fabric_edit_init(&x, f);
    for (size_t i = 0; i < n; i++)
        fabric_edit_cut(&x, port[i]);
    const struct fabric *without = fabric_edit_apply(&x, NULL);
    fabric_edit_done(&x);
    return without;
}
