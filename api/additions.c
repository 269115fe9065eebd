// SPDX-License-Identifier: Apache-2.0
// What is added in a question: cables, nodes like others, scalable units. All of one addition, or nothing of
// it: what is missing is counted first, at every neighbour, and said.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/elements.h"
#include "lib/buf.h"
#include "lib/xalloc.h"

#define GUID_FIRST 0x0200000000010000ull // locally administered
#define MISSING_SHOWN 5

// --- a cable ---

struct end {
    uint32_t node;
    unsigned num;
};

// "name[3]" of n bytes, a node that is there or one that was added before.
static int parse_end(const struct elements *el, const struct fabric_edit *x, const char *text, size_t n,
                     const char *whole, struct end *ret, struct err *e)
{
    char name[200], *open, *after;
    const struct node *node;
    if (n < 4 || n >= sizeof(name) || text[n - 1] != ']')
        return err_set(e, -EINVAL, whole, "must be link:A[PORT]-B[PORT], such as link:leaf-1[33]-spine-2[7]");
    snprintf(name, sizeof(name), "%.*s", (int)n - 1, text);
    open = strrchr(name, '[');
    if (open == NULL || open == name)
        return err_set(e, -EINVAL, whole, "must be link:A[PORT]-B[PORT], such as link:leaf-1[33]-spine-2[7]");
    *open = 0;
    unsigned long num = strtoul(open + 1, &after, 10);
    if (after == open + 1 || *after != 0 || open[1] == '-' || num < 1 || num > 254)
        return err_set(e, -EINVAL, whole, "\"%.20s\" is no number of a port", open + 1);
    ret->num = (unsigned)num;
    for (uint32_t i = 0; i < x->num_node; i++)
        if (strcmp(x->node[i].name, name) == 0) {
            ret->node = x->f->num_nodes + i;
            return 0;
        }
    int rc = elements_node(el, name, &node, e);
    if (rc == 0)
        ret->node = (uint32_t)(node - el->f->node);
    else
        snprintf(e->where, sizeof(e->where), "%s", whole);
    return rc;
}

static const char *node_text(const struct fabric_edit *x, uint32_t node, char *buf, size_t size)
{
    if (node < x->f->num_nodes)
        return fabric_node_name(x->f, &x->f->node[node], buf, size);
    snprintf(buf, size, "%s", x->node[node - x->f->num_nodes].name);
    return buf;
}

// Why no cable can go there.
static int check_end(const struct fabric_edit *x, const struct end *at, const char *whole, struct err *e)
{
    char name[200], far[200];
    uint32_t like = at->node < x->f->num_nodes ? at->node : x->node[at->node - x->f->num_nodes].like;
    const struct node *n = &x->f->node[like];
    if (fabric_edit_is_free(x, at->node, at->num))
        return 0;
    node_text(x, at->node, name, sizeof(name));
    if (at->num > n->num_ports)
        return err_set(e, -ENOENT, whole, "%s has no port %u; it has %u", name, at->num, n->num_ports);
    port_id p = fabric_port_at(x->f, n, at->num);
    const struct node *peer =
        at->node < x->f->num_nodes ? fabric_peer_node(x->f, fabric_port(x->f, p)) : NULL;
    unsigned next = fabric_edit_next_free(x, at->node, 0);
    char hint[40] = "no port of it is free";
    if (next > 0)
        snprintf(hint, sizeof(hint), "port %u is free", next);
    if (peer == NULL)
        return err_set(e, -EBUSY, whole, "port %u of %s is in use; %s", at->num, name, hint);
    return err_set(e, -EBUSY, whole, "port %u of %s has a cable to %s; %s", at->num, name,
                   fabric_node_name(x->f, peer, far, sizeof(far)), hint);
}

static int add_link(struct elements *el, struct fabric_edit *x, const char *text, struct err *e)
{
    const char *body = text + strlen("link:"), *mid = strstr(body, "]-");
    struct end a, z;
    if (mid == NULL)
        return err_set(e, -EINVAL, text, "must be link:A[PORT]-B[PORT], such as link:leaf-1[33]-spine-2[7]");
    int rc = parse_end(el, x, body, (size_t)(mid - body) + 1, text, &a, e);
    if (rc == 0)
        rc = parse_end(el, x, mid + 2, strlen(mid + 2), text, &z, e);
    if (rc == 0 && a.node == z.node)
        rc = err_set(e, -EINVAL, text, "a cable from a node to itself carries nothing");
    if (rc == 0)
        rc = check_end(x, &a, text, e);
    if (rc == 0)
        rc = check_end(x, &z, text, e);
    return rc ? rc : fabric_edit_add_link(x, a.node, a.num, z.node, z.num);
}

// --- copies of nodes ---

struct copy {
    struct elements *el;
    struct fabric_edit *x;
    const char *text;  // for errors
    uint32_t *made;    // per node: its copy; ID_NONE
    struct u64map sys; // SystemImageGUIDs that have a copy: -> node whose copy's GUID it is
};

static void copy_init(struct copy *c, struct elements *el, struct fabric_edit *x, const char *text)
{
    *c = (struct copy){.el = el, .x = x, .text = text};
    c->made = xreallocarray(NULL, el->f->num_nodes + 1, sizeof(*c->made));
    memset(c->made, 0xff, (el->f->num_nodes + 1) * sizeof(*c->made));
    u64map_init(&c->sys, NULL, 16);
}

static void copy_done(struct copy *c)
{
    free(c->made);
    u64map_done(&c->sys);
}

// Room for a PortGUID of each port.
static uint64_t next_guid(struct elements *el)
{
    if (el->next_guid == 0)
        el->next_guid = GUID_FIRST;
    while (fabric_by_guid(el->f, el->next_guid) != NULL ||
           port_valid(fabric_by_port_guid(el->f, el->next_guid)))
        el->next_guid += 256;
    el->next_guid += 256;
    return el->next_guid - 256;
}

static int copy_node(struct copy *c, uint32_t node, const char *name, struct err *e)
{
    const struct node *n = &c->el->f->node[node];
    uint64_t guid = next_guid(c->el), sys = guid;
    uint32_t first;
    if (n->sys_guid != 0 && u64map_get(&c->sys, n->sys_guid, &first))
        sys = c->x->node[c->made[first] - c->el->f->num_nodes].guid;
    else if (n->sys_guid != 0)
        u64map_set(&c->sys, n->sys_guid, node);
    int rc = fabric_edit_add_node(c->x, node, guid, sys, name, &c->made[node], e);
    if (rc != 0)
        snprintf(e->where, sizeof(e->where), "%s", c->text);
    return rc;
}

// The far end of a cable of `node` that its copy needs too; false when it needs none. A copied switch has no
// hosts of its own unless they are copied with it.
static bool needs(const struct copy *c, uint32_t port, uint32_t *ret_far)
{
    const struct fabric *f = c->el->f;
    const struct port *p = &f->port[port];
    if (!port_valid(p->peer))
        return false;
    *ret_far = f->port[p->peer.i].node.i;
    return f->node[*ret_far].type == NODE_SWITCH || c->made[*ret_far] != ID_NONE;
}

static unsigned count_free(const struct fabric_edit *x, uint32_t node)
{
    unsigned n = 0;
    for (unsigned num = 0; (num = fabric_edit_next_free(x, node, num)) != 0;)
        n++;
    return n;
}

// Whether the neighbours that are not copied have enough free ports. wanted: per node, whether it is copied.
static int check_room(const struct copy *c, const bool *wanted, struct err *e)
{
    const struct fabric *f = c->el->f;
    uint32_t *need = xcalloc(f->num_nodes + 1, sizeof(*need));
    struct buf b = {0};
    unsigned missing = 0;
    char name[200];
    for (uint32_t i = 0; i < f->num_ports; i++) {
        port_id peer = f->port[i].peer;
        if (!wanted[f->port[i].node.i] || !port_valid(peer))
            continue;
        uint32_t far = f->port[peer.i].node.i;
        need[far] += !wanted[far] && f->node[far].type == NODE_SWITCH;
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        unsigned have = need[i] ? count_free(c->x, i) : 0;
        if (have >= need[i])
            continue;
        if (missing++ < MISSING_SHOWN)
            buf_printf(&b, "%s%s has %u free ports of %u needed", b.len ? ", " : "",
                       node_text(c->x, i, name, sizeof(name)), have, need[i]);
    }
    free(need);
    if (missing > MISSING_SHOWN)
        buf_printf(&b, ", and %u more switches", missing - MISSING_SHOWN);
    int rc = missing ? err_set(e, -ENOSPC, c->text, "there is no room: %s", b.data) : 0;
    buf_done(&b);
    return rc;
}

// All cables of the copies.
static int copy_cables(const struct copy *c, const bool *wanted, struct err *e)
{
    const struct fabric *f = c->el->f;
    int rc = 0;
    for (uint32_t i = 0; i < f->num_ports && rc == 0; i++) {
        uint32_t from = f->port[i].node.i, far;
        if (!wanted[from] || !needs(c, i, &far))
            continue;
        unsigned num = f->port[f->port[i].peer.i].num;
        if (wanted[far] && f->port[i].peer.i < i) // made from the other end
            continue;
        uint32_t to = wanted[far] ? c->made[far] : far;
        if (!wanted[far])
            num = fabric_edit_next_free(c->x, far, 0);
        rc = fabric_edit_add_link(c->x, c->made[from], f->port[i].num, to, num);
    }
    return rc ? err_set(e, rc, c->text, "a cable of it finds no free port") : 0;
}

// --- a node, or a host ---

// A host is called what its adapters are: "gpu-0412" of "gpu-0412 mlx5_3".
static bool is_adapter_of(const struct fabric *f, const struct node *n, const char *host)
{
    size_t len = strlen(host);
    const char *desc = fabric_desc(f, n);
    return n->type == NODE_CA && len > 0 && strncmp(desc, host, len) == 0 && desc[len] == ' ';
}

static bool name_is_new(const struct elements *el, const struct fabric_edit *x, const char *name)
{
    const struct fabric *f = el->f;
    for (uint32_t i = 0; i < x->num_node; i++)
        if (strcmp(x->node[i].name, name) == 0)
            return false;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), name) == 0)
            return false;
    return true;
}

// Adapters on switch n too. The copy of "gpu-0001 mlx5_0" is "name-gpu-0001 mlx5_0".
static void want_ends(const struct fabric *f, const struct node *n, bool *wanted)
{
    for (unsigned num = 1; num <= n->num_ports && n->type == NODE_SWITCH; num++) {
        const struct node *peer = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, num)));
        if (peer != NULL && peer->type != NODE_SWITCH)
            wanted[peer - f->node] = true;
    }
}

// ends: a switch with what hangs on it.
static int copy_named(struct copy *c, const char *like, const char *name, bool ends, bool *wanted,
                      struct err *e)
{
    const struct fabric *f = c->el->f;
    const struct node *n = NULL;
    bool host = false;
    int rc = 0;
    for (uint32_t i = 0; i < f->num_nodes && !ends; i++)
        host |= wanted[i] = is_adapter_of(f, &f->node[i], like);
    if (!host) {
        rc = elements_node(c->el, like, &n, e);
        if (rc != 0) {
            snprintf(e->where, sizeof(e->where), "%s", c->text);
            return rc;
        }
        wanted[n - f->node] = true;
        if (ends)
            want_ends(f, n, wanted);
    }
    rc = check_room(c, wanted, e);
    for (uint32_t i = 0; i < f->num_nodes && rc == 0; i++) {
        if (!wanted[i])
            continue;
        const char *desc = fabric_desc(f, &f->node[i]);
        char *called = host               ? xasprintf("%s%s", name, desc + strlen(like))
                       : &f->node[i] == n ? xstrdup(name)
                                          : xasprintf("%s-%s", name, desc);
        rc = name_is_new(c->el, c->x, called)
                 ? copy_node(c, i, called, e)
                 : err_set(e, -EEXIST, c->text, "there is a \"%s\" already", called);
        free(called);
    }
    return rc ? rc : copy_cables(c, wanted, e);
}

static int add_node_like(struct elements *el, struct fabric_edit *x, const char *text, struct err *e)
{
    const char *body = strchr(text, ':') + 1, *eq = strrchr(body, '=');
    bool ends = strncmp(text, "node-like-hosts:", strlen("node-like-hosts:")) == 0;
    struct copy c;
    if (eq == NULL || eq == body || eq[1] == 0 || strlen(eq + 1) > 64)
        return err_set(
            e, -EINVAL, text,
            "must be node-like:NODE=NEWNAME, such as node-like:gpu-0001=gpu-0033, the name at most 64 bytes");
    char *like = xasprintf("%.*s", (int)(eq - body), body);
    bool *wanted = xcalloc(el->f->num_nodes + 1, sizeof(*wanted));
    copy_init(&c, el, x, text);
    int rc = copy_named(&c, like, eq + 1, ends, wanted, e);
    copy_done(&c);
    free(wanted);
    free(like);
    return rc;
}

// --- a scalable unit ---

static bool is_of_su(const struct fabric *f, uint32_t node, uint16_t su)
{
    const struct node *n = &f->node[node];
    if (n->type == NODE_SWITCH)
        return n->su == su;
    for (unsigned k = 0; k < n->num_ports; k++) { // what hangs on its leaves
        const struct node *peer = fabric_peer_node(f, &f->port[n->first_port + k]);
        if (peer != NULL && peer->type == NODE_SWITCH && peer->su == su)
            return true;
    }
    return false;
}

// The unit with the most nodes, the last of several.
static uint16_t largest_su(const struct fabric *f)
{
    uint32_t *nodes = xcalloc(f->num_sus + 1, sizeof(*nodes)), best = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->node[i].su < f->num_sus)
            nodes[f->node[i].su]++;
    for (uint32_t s = 1; s < f->num_sus; s++)
        best = nodes[s] >= nodes[best] ? s : best;
    free(nodes);
    return (uint16_t)best;
}

static int copy_su(struct copy *c, uint16_t su, bool *wanted, struct err *e)
{
    const struct fabric *f = c->el->f;
    int rc;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        wanted[i] = is_of_su(f, i, su) && !c->x->dead[i];
    rc = check_room(c, wanted, e);
    c->el->added_sus += rc == 0;
    for (uint32_t i = 0; i < f->num_nodes && rc == 0; i++) {
        if (!wanted[i])
            continue;
        char *name = xasprintf("new%u-%s", c->el->added_sus, fabric_desc(f, &f->node[i]));
        rc = copy_node(c, i, name, e);
        free(name);
    }
    return rc ? rc : copy_cables(c, wanted, e);
}

static int add_su(struct elements *el, struct fabric_edit *x, const char *text, struct err *e)
{
    const struct fabric *f = el->f;
    unsigned long su = f->num_sus > 0 ? largest_su(f) : 0;
    struct copy c;
    if (f->num_sus == 0)
        return err_set(e, -ENOENT, text,
                       "the fabric has no scalable units (leaves that share hosts) to copy");
    if (text[2] == ':') {
        size_t digits = strspn(text + 3, "0123456789");
        su = strtoul(text + 3, NULL, 10);
        if (digits == 0 || digits > 5 || text[3 + digits] != 0 || su >= f->num_sus)
            return err_set(e, -ENOENT, text, "there is no such scalable unit; they are su:0 to su:%u",
                           f->num_sus - 1);
    }
    bool *wanted = xcalloc(f->num_nodes + 1, sizeof(*wanted));
    copy_init(&c, el, x, text);
    int rc = copy_su(&c, (uint16_t)su, wanted, e);
    copy_done(&c);
    free(wanted);
    return rc;
}

int elements_add(struct elements *el, struct fabric_edit *x, const char *text, struct err *e)
{
    if (++el->wide > ELEMENTS_WIDE_MAX)
        return err_set(e, -E2BIG, text, "more than %d additions", ELEMENTS_WIDE_MAX);
    if (strncmp(text, "link:", 5) == 0)
        return add_link(el, x, text, e);
    if (strncmp(text, "node-like:", 10) == 0 || strncmp(text, "node-like-hosts:", 16) == 0)
        return add_node_like(el, x, text, e);
    if (strcmp(text, "su") == 0 || strncmp(text, "su:", 3) == 0)
        return add_su(el, x, text, e);
    return err_set(e, -EINVAL, text,
                   "what is added must be link:A[PORT]-B[PORT], node-like:NODE=NEWNAME, "
                   "node-like-hosts:SWITCH=NEWNAME, su or su:NUMBER");
}
