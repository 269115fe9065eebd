// SPDX-License-Identifier: Apache-2.0
// Gathers nodes, ports and links in growing arrays of the snapshot's own structs, so that starting from the
// last generation is a flat copy. Strings go to one pool; equal ones added to the same builder share their
// place. A removed node stays in the arrays, marked, until sealing closes the gaps. Everything here is fed
// from wires and files: refused with an errno, never asserted.
#include "fabric/builder_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/guid.h"
#include "lib/text.h"
#include "lib/xalloc.h"

static struct builder *builder_alloc(uint32_t expected_nodes)
{
    struct builder *b = xcalloc(1, sizeof(*b));
    u64map_init(&b->by_guid, NULL, expected_nodes);
    u64map_init(&b->interned, NULL, 64);
    b->sm_port = PORT_NONE;
    return b;
}

struct builder *builder_new(void)
{
    struct builder *b = builder_alloc(64);
    b->strings_cap = 4096;
    b->strings = xmalloc(b->strings_cap);
    b->strings[0] = '\0';
    b->strings_len = 1;
    return b;
}

struct builder *builder_from(const struct fabric *prev)
{
    struct builder *b = builder_alloc(prev->num_nodes);
    b->num_nodes = prev->num_nodes;
    b->cap_nodes = prev->num_nodes + 64;
    b->node = xreallocarray(NULL, b->cap_nodes, sizeof(*b->node));
    b->removed = xcalloc(b->cap_nodes, sizeof(*b->removed));
    b->num_ports = prev->num_ports;
    b->cap_ports = prev->num_ports + 256;
    b->port = xreallocarray(NULL, b->cap_ports, sizeof(*b->port));
    if (prev->num_nodes)
        memcpy(b->node, prev->node, prev->num_nodes * sizeof(*b->node));
    if (prev->num_ports)
        memcpy(b->port, prev->port, prev->num_ports * sizeof(*b->port));
    b->strings_len = prev->strings_size;
    b->strings_cap = prev->strings_size + 4096;
    b->strings = xmalloc(b->strings_cap);
    memcpy(b->strings, prev->strings, prev->strings_size);
    for (uint32_t i = 0; i < b->num_nodes; i++)
        u64map_set(&b->by_guid, b->node[i].guid, i);
    b->sm_port = prev->sm_port;
    return b;
}

void builder_free(struct builder *b)
{
    if (!b)
        return;
    free(b->node);
    free(b->port);
    free(b->removed);
    free(b->strings);
    u64map_done(&b->by_guid);
    u64map_done(&b->interned);
    free(b);
}

// What a device or a file calls something, as printable UTF-8: ends at NUL or BUILDER_MAX_STRING, what is
// not printable becomes '?'. Returns the length; out has room for BUILDER_MAX_STRING + 1.
static size_t clean_string(const char *s, size_t len, char *out)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = 0, i = 0;
    len = strnlen(s, len);
    while (i < len) {
        size_t k = text_char_len(u + i, len - i);
        bool bad = k == 0 || (k == 1 && (u[i] < 0x20 || u[i] == 0x7f)) ||
                   (k == 2 && u[i] == 0xc2 && u[i + 1] < 0xa0); // C1 controls
        size_t put = bad ? 1 : k;
        if (n + put > BUILDER_MAX_STRING)
            break;
        if (bad)
            out[n] = '?';
        else
            memcpy(out + n, u + i, k);
        n += put;
        i += k ? k : 1;
    }
    out[n] = '\0';
    return n;
}

static uint32_t string_add(struct builder *b, const char *raw, size_t raw_len)
{
    char s[BUILDER_MAX_STRING + 1];
    size_t len = raw ? clean_string(raw, raw_len, s) : 0;
    uint64_t h = 0xcbf29ce484222325ULL;
    uint32_t at;

    if (len == 0)
        return 0;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * 0x100000001b3ULL;
    h = hash_mix64(h);
    if (u64map_get(&b->interned, h, &at) && strcmp(b->strings + at, s) == 0)
        return at;
    if (b->strings_len + len + 1 > b->strings_cap) {
        b->strings_cap = 2 * b->strings_cap + len + 1;
        b->strings = xreallocarray(b->strings, b->strings_cap, 1);
    }
    at = (uint32_t)b->strings_len;
    memcpy(b->strings + at, s, len + 1);
    b->strings_len += len + 1;
    u64map_set(&b->interned, h, at);
    return at;
}

static void string_replace(struct builder *b, uint32_t *field, const char *s, size_t len)
{
    if (*field && strlen(b->strings + *field) == len && s && memcmp(b->strings + *field, s, len) == 0)
        return;
    *field = string_add(b, s, len);
}

static void attrs_store(struct node *n, const struct node_attrs *a)
{
    n->sys_guid = a->sys_guid;
    n->partition_cap = a->partition_cap;
    n->device_id = a->device_id;
    n->vendor_id = a->vendor_id;
    n->revision = a->revision;
    n->lft_cap = a->lft_cap;
    n->lft_top = a->lft_top;
    n->mft_cap = a->mft_cap;
    n->partition_enforcement_cap = a->partition_enforcement_cap;
    n->enhanced_port0 = a->enhanced_port0;
}

struct node_attrs node_attrs_like(const struct node *n)
{
    return (struct node_attrs){.guid = n->guid,
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
}

static int attrs_check(const struct node_attrs *a, struct err *e)
{
    char where[GUID_STR_SIZE];
    guid_str(a->guid, where);
    if (a->guid == 0)
        return err_set(e, -EINVAL, "", "a node with GUID 0");
    if (a->type != NODE_CA && a->type != NODE_SWITCH && a->type != NODE_ROUTER)
        return err_set(e, -EINVAL, where, "node type %d is neither CA, switch nor router", (int)a->type);
    if (a->num_ports > SWITCH_MAX_PORTS)
        return err_set(e, -EINVAL, where, "%d ports; a node has at most %d", a->num_ports, SWITCH_MAX_PORTS);
    return 0;
}

static void grow(struct builder *b, uint32_t nports)
{
    if (b->num_nodes == b->cap_nodes) {
        uint32_t cap = b->cap_nodes ? 2 * b->cap_nodes : 64;
        b->node = xreallocarray(b->node, cap, sizeof(*b->node));
        b->removed = xreallocarray(b->removed, cap, sizeof(*b->removed));
        memset(b->removed + b->cap_nodes, 0, (cap - b->cap_nodes) * sizeof(*b->removed));
        b->cap_nodes = cap;
    }
    if (b->num_ports + nports > b->cap_ports) {
        b->cap_ports = 2 * b->cap_ports + nports;
        b->port = xreallocarray(b->port, b->cap_ports, sizeof(*b->port));
    }
}

static void ports_create(struct builder *b, uint32_t node, uint32_t nports)
{
    const struct node *n = &b->node[node];
    for (uint32_t k = 0; k < nports; k++) {
        b->port[n->first_port + k] = (struct port){
            .node = {node},
            .peer = PORT_NONE,
            .num = (uint8_t)(k + node_first_num(n)),
            .rail = RAIL_NONE,
            .a = {.state = PORT_DOWN},
        };
    }
    if (n->type == NODE_SWITCH)
        b->port[n->first_port].guid = n->guid; // the PortGUID of port 0 unless the device says otherwise
    b->num_ports += nports;
}

int builder_node(struct builder *b, const struct node_attrs *a, const char *desc, size_t desc_len,
                 node_id *ret_node, struct err *e)
{
    int r = attrs_check(a, e);
    if (r)
        return r;
    char where[GUID_STR_SIZE];
    node_id old;
    if (builder_find(b, a->guid, &old) == 0) {
        *ret_node = old;
        return err_set(e, -EEXIST, guid_str(a->guid, where), "this GUID is in the fabric already");
    }
    if (b->num_nodes >= BUILDER_MAX_NODES)
        return err_set(e, -E2BIG, guid_str(a->guid, where), "more than %u nodes", BUILDER_MAX_NODES);
    uint32_t nports = a->num_ports + (a->type == NODE_SWITCH);
    if (b->num_ports + nports > BUILDER_MAX_PORTS)
        return err_set(e, -E2BIG, guid_str(a->guid, where), "more than %u ports", BUILDER_MAX_PORTS);

    grow(b, nports);
    uint32_t id = b->num_nodes++;
    struct node *n = &b->node[id];
    *n = (struct node){
        .guid = a->guid,
        .type = (uint8_t)a->type,
        .num_ports = a->num_ports,
        .first_port = b->num_ports,
        .sw = ID_NONE,
        .host = ID_NONE,
        .tier = TIER_NONE,
        .su = SU_NONE,
        .rail = RAIL_NONE,
    };
    attrs_store(n, a);
    n->desc = string_add(b, desc, desc_len);
    b->removed[id] = false;
    ports_create(b, id, nports);
    u64map_set(&b->by_guid, a->guid, id);
    *ret_node = (node_id){id};
    return 0;
}

int builder_find(const struct builder *b, uint64_t guid, node_id *ret_node)
{
    uint32_t i;
    if (!u64map_get(&b->by_guid, guid, &i) || i == ID_NONE)
        return -ENOENT;
    *ret_node = (node_id){i};
    return 0;
}

static struct node *node_get(const struct builder *b, node_id n)
{
    return n.i < b->num_nodes && !b->removed[n.i] ? &b->node[n.i] : NULL;
}

static struct port *port_get(const struct builder *b, node_id id, unsigned num)
{
    const struct node *n = node_get(b, id);
    if (!n || num < node_first_num(n) || num > n->num_ports)
        return NULL;
    return &b->port[n->first_port + num - node_first_num(n)];
}

void builder_node_attrs(struct builder *b, node_id id, const struct node_attrs *a)
{
    struct node *n = node_get(b, id);
    if (n)
        attrs_store(n, a);
}

void builder_desc(struct builder *b, node_id id, const char *desc, size_t len)
{
    struct node *n = node_get(b, id);
    if (n)
        string_replace(b, &n->desc, desc, len);
}

int builder_port(struct builder *b, node_id n, unsigned num, const struct port_attrs *a)
{
    struct port *p = port_get(b, n, num);
    if (!p)
        return -EINVAL;
    p->a = *a;
    return 0;
}

int builder_port_guid(struct builder *b, node_id n, unsigned num, uint64_t guid)
{
    struct port *p = port_get(b, n, num);
    if (!p || (num > 0 && b->node[n.i].type == NODE_SWITCH)) // IBA: a switch has one PortGUID, port 0's
        return -EINVAL;
    p->guid = guid;
    return 0;
}

int builder_port_label(struct builder *b, node_id n, unsigned num, const char *label, size_t len)
{
    struct port *p = port_get(b, n, num);
    if (!p)
        return -EINVAL;
    string_replace(b, &p->label, label, len);
    return 0;
}

static void port_unlink(struct builder *b, struct port *p)
{
    if (!port_valid(p->peer))
        return;
    b->port[p->peer.i].peer = PORT_NONE;
    p->peer = PORT_NONE;
}

int builder_exclude(struct builder *b, node_id n, unsigned num, enum port_excluded why)
{
    struct port *p = port_get(b, n, num);
    if (!p)
        return -EINVAL;
    if (why != PORT_INCLUDED && port_valid(p->peer)) {
        b->port[p->peer.i].excluded = (uint8_t)why;
        port_unlink(b, p);
    }
    p->excluded = (uint8_t)why;
    return 0;
}

static bool port_refuses(const struct port *p)
{
    return p->excluded == PORT_EXCLUDED_BY_OPERATOR || p->excluded == PORT_EXCLUDED_UNSUPPORTED;
}

int builder_link(struct builder *b, node_id a, unsigned a_num, node_id z, unsigned z_num)
{
    struct port *pa = port_get(b, a, a_num), *pz = port_get(b, z, z_num);
    if (!pa || !pz || a_num == 0 || z_num == 0)
        return -EINVAL;
    port_id ia = {(uint32_t)(pa - b->port)}, iz = {(uint32_t)(pz - b->port)};
    if (pa->peer.i == iz.i)
        return -EEXIST;
    if (port_valid(pa->peer) || port_valid(pz->peer))
        return -EBUSY;
    if (port_refuses(pa) || port_refuses(pz))
        return -EPERM;
    if (a.i == z.i) {
        pa->excluded = pz->excluded = PORT_EXCLUDED_SELF_LINK;
        return ia.i == iz.i ? -EINVAL : 0;
    }
    pa->peer = iz;
    pz->peer = ia;
    pa->excluded = pz->excluded = PORT_INCLUDED;
    return 0;
}

void builder_unlink(struct builder *b, node_id n, unsigned num)
{
    struct port *p = port_get(b, n, num);
    if (p)
        port_unlink(b, p);
}

void builder_remove(struct builder *b, node_id id)
{
    struct node *n = node_get(b, id);
    if (!n)
        return;
    uint32_t nports = n->num_ports + (n->type == NODE_SWITCH);
    for (uint32_t k = 0; k < nports; k++) {
        port_unlink(b, &b->port[n->first_port + k]);
        if (b->sm_port.i == n->first_port + k)
            b->sm_port = PORT_NONE;
    }
    b->removed[id.i] = true;
    b->num_removed++;
    u64map_set(&b->by_guid, n->guid, ID_NONE);
}

void builder_sm_port(struct builder *b, node_id n, unsigned num)
{
    const struct port *p = port_get(b, n, num);
    b->sm_port = p ? (port_id){(uint32_t)(p - b->port)} : PORT_NONE;
}

void builder_numbers_from(struct builder *b, const struct fabric *known)
{
    b->known = known;
}
