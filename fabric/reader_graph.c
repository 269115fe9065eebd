// SPDX-License-Identifier: Apache-2.0
// From port lines to a fabric. What the lines of both ends say is laid side by side:
//  - both name each other: a link;
//  - one names a port that has no line of its own: a link all the same (dumps do not list unused ports, and
//    a node that answered too late has no record at all), with a finding;
//  - one names a port whose own line says otherwise, or that is taken: no link, the port is excluded.
// Links that both ends name are made first, so that a false claim never displaces a good link.
//
// What no file says is set to what today's devices have: 4096-byte MTU, VL0-7, LFTs of 48 K LIDs, MFTs of
// 1024, 128 partitions in an adapter and 32 in a switch. Speeds and widths supported and enabled are those up
// to the active ones; a port without link gets the best of its node's.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/reader_priv.h"
#include "lib/arena.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define MTU_4096 5
#define VL_0_7 4
#define PHYS_POLLING 2
#define PHYS_LINK_UP 5
#define CAP_MASK 0x0050c048 // traps, SL mapping, extended speeds, vendor class, notices, CapabilityMask2
#define CAP_MASK_PORT0 0x0000c048
#define CAP_MASK2 0x0030 // 2x width, HDR
#define LID_UNSET 0xffff // PERMISSIVE_LID; what adapters show before a manager came by

static bool graph_full(struct reader *r, unsigned file, uint32_t line, const char *what, unsigned max)
{
    if (!r->g.full)
        reader_note(r, FINDING_ERROR, "too-large", file, line, "more than %u %s; the rest is not read", max,
                    what);
    r->g.full = true;
    return true;
}

struct raw_node *graph_add_node(struct reader *r, unsigned file, uint32_t line)
{
    struct graph *g = &r->g;
    if (g->num_nodes == GRAPH_MAX_NODES && graph_full(r, file, line, "nodes", GRAPH_MAX_NODES))
        return NULL;
    if (g->num_nodes == g->cap_nodes) {
        g->cap_nodes = g->cap_nodes ? 2 * g->cap_nodes : 256;
        g->node = xreallocarray(g->node, g->cap_nodes, sizeof(*g->node));
        g->order = xreallocarray(g->order, g->cap_nodes, sizeof(*g->order));
    }
    struct raw_node *n = &g->node[g->num_nodes++];
    *n = (struct raw_node){.line = line, .file = (uint16_t)file};
    return n;
}

struct raw_edge *graph_add_edge(struct reader *r, unsigned file, uint32_t line)
{
    struct graph *g = &r->g;
    if (g->num_edges == GRAPH_MAX_EDGES && graph_full(r, file, line, "port lines", GRAPH_MAX_EDGES))
        return NULL;
    if (g->num_edges == g->cap_edges) {
        g->cap_edges = g->cap_edges ? 2 * g->cap_edges : 1024;
        g->edge = xreallocarray(g->edge, g->cap_edges, sizeof(*g->edge));
    }
    struct raw_edge *e = &g->edge[g->num_edges++];
    *e = (struct raw_edge){.far = ID_NONE, .line = line, .file = (uint16_t)file};
    return e;
}

uint32_t graph_node_by_guid(struct reader *r, uint64_t guid, enum node_type type, unsigned file,
                            uint32_t line)
{
    uint32_t i;
    if (u64map_get(&r->g.by_guid, guid, &i))
        return i;
    struct raw_node *n = graph_add_node(r, file, line);
    if (!n)
        return ID_NONE;
    n->guid = guid;
    n->type = (uint8_t)type;
    i = r->g.num_nodes - 1;
    u64map_set(&r->g.by_guid, guid, i);
    return i;
}

void graph_record(struct reader *r, uint32_t node)
{
    if (r->g.node[node].record)
        return;
    r->g.node[node].record = true;
    r->g.order[r->g.num_order++] = node;
}

// ---- from here on: after the last line was read

struct finish {
    struct reader *r;
    struct graph *g;
    struct builder *b;
    node_id *id;     // by raw node; NODE_NONE: not in the fabric
    uint32_t *first; // by raw node: its slot 0 in slot[]
    uint32_t *slot;  // by node and port number: edge index, ID_NONE
    uint32_t
        *mirror; // the same: the edge of the far end that names this port, when it has no line of its own
    uint32_t lids_unset;
};

static const char *node_name(const struct raw_node *n, char buf[96])
{
    struct span s = n->desc.len ? n->desc : n->name;
    char guid[GUID_STR_SIZE];
    if (s.len) {
        struct scan text = {s.p, s.p + (s.len < 60 ? s.len : 60)};
        char plain[72];
        snprintf(buf, 96, "\"%s\"", excerpt(&text, plain));
    } else {
        snprintf(buf, 96, "%s", guid_str(n->guid, guid));
    }
    return buf;
}

static struct node_attrs node_attrs_of(const struct raw_node *n)
{
    bool sw = n->type == NODE_SWITCH;
    return (struct node_attrs){
        .guid = n->guid,
        .sys_guid = n->sys_guid,
        .type = (enum node_type)n->type,
        .num_ports = n->num_ports,
        .partition_cap = sw ? 32 : 128,
        .device_id = n->device_id,
        .vendor_id = n->vendor_id,
        .revision = n->revision,
        .lft_cap = sw ? 49152 : 0,
        .mft_cap = sw ? 1024 : 0,
        .partition_enforcement_cap = sw ? 32 : 0,
        .enhanced_port0 = sw && n->enhanced,
    };
}

static int make_node(struct finish *f, uint32_t i, struct err *e)
{
    struct raw_node *n = &f->g->node[i];
    char name[96], guid[GUID_STR_SIZE];

    if (!n->record) {
        if (f->g->names_only)
            return 0; // said where it was named
        n->num_ports = n->top_port;
        reader_note(f->r, FINDING_WARNING, "node-without-record", n->file, n->line,
                    "%s is named here but has no record of its own; made from the lines that name it",
                    node_name(n, name));
    } else if (!n->num_ports) {
        n->num_ports = n->top_port;
    }
    struct node_attrs a = node_attrs_of(n);
    struct err why = {0};
    int rc = builder_node(f->b, &a, n->desc.p, n->desc.len, &f->id[i], &why);
    if (rc == -E2BIG) {
        if (e)
            *e = why;
        return rc;
    }
    if (rc) {
        f->id[i] = NODE_NONE;
        reader_note(f->r, FINDING_ERROR, rc == -EEXIST ? "duplicate-guid" : "bad-record", n->file, n->line,
                    "%s (GUID %s) is left out: %s", node_name(n, name), guid_str(n->guid, guid), why.text);
    }
    return 0;
}

static int make_nodes(struct finish *f, struct err *e)
{
    struct graph *g = f->g;
    for (uint32_t i = 0; i < g->num_nodes; i++)
        f->id[i] = NODE_NONE;
    for (uint32_t k = 0; k < g->num_order; k++) {
        int rc = make_node(f, g->order[k], e);
        if (rc)
            return rc;
    }
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        int rc = g->node[i].record ? 0 : make_node(f, i, e);
        if (rc)
            return rc;
    }
    return 0;
}

// Port 0 has no slot of its own use, but counting it keeps the index plain.
static uint32_t slot_of(const struct finish *f, uint32_t node, unsigned num)
{
    return f->first[node] + num;
}

static bool port_exists(const struct finish *f, uint32_t node, unsigned num)
{
    return node_valid(f->id[node]) && num >= 1 && num <= f->g->node[node].num_ports;
}

static bool same_peer(const struct raw_edge *a, const struct raw_edge *b)
{
    return a->far == b->far && a->far_num == b->far_num;
}

// One line per port: the first, but a line that was written before one that was only implied.
static void place_edge(struct finish *f, uint32_t ei)
{
    struct raw_edge *e = &f->g->edge[ei];
    struct raw_node *n = &f->g->node[e->node];
    char name[96];

    if (!node_valid(f->id[e->node]))
        return;
    if (!port_exists(f, e->node, e->num)) {
        reader_note(f->r, FINDING_WARNING, "bad-port", e->file, e->line, "%s has %u ports, not a port %u",
                    node_name(n, name), n->num_ports, e->num);
        return;
    }
    uint32_t *slot = &f->slot[slot_of(f, e->node, e->num)];
    if (*slot == ID_NONE) {
        *slot = ei;
        return;
    }
    struct raw_edge *old = &f->g->edge[*slot];
    if (old->implied && !e->implied && same_peer(old, e)) {
        *slot = ei;
        return;
    }
    if (e->implied && same_peer(old, e))
        return;
    reader_note(f->r, FINDING_WARNING, same_peer(old, e) ? "duplicate-link" : "duplicate-port", e->file,
                e->line, "port %u of %s has a line already (line %u); this one is not used", e->num,
                node_name(n, name), old->line);
}

static void link_note(struct finish *f, const struct raw_edge *e, const char *code, const char *what)
{
    char a[96], z[96];
    reader_note(f->r, FINDING_WARNING, code, e->file, e->line, "%s[%u] to %s[%u]: %s",
                node_name(&f->g->node[e->node], a), e->num, node_name(&f->g->node[e->far], z), e->far_num,
                what);
}

static void exclude(struct finish *f, const struct raw_edge *e)
{
    builder_exclude(f->b, f->id[e->node], e->num, PORT_EXCLUDED_ONE_SIDED);
}

static int link_edge(struct finish *f, const struct raw_edge *e)
{
    int rc = builder_link(f->b, f->id[e->node], e->num, f->id[e->far], e->far_num);
    return rc == -EEXIST ? 0 : rc;
}

// The links that both ends name.
static void link_mutual(struct finish *f, uint32_t ei)
{
    const struct raw_edge *e = &f->g->edge[ei];
    if (e->far == ID_NONE || !port_exists(f, e->far, e->far_num))
        return;
    uint32_t pi = f->slot[slot_of(f, e->far, e->far_num)];
    if (pi == ID_NONE || pi < ei)
        return; // seen from the other end already
    const struct raw_edge *peer = &f->g->edge[pi];
    if (peer->far == e->node && peer->far_num == e->num)
        link_edge(f, e); // fails only for a port cabled to itself, which the builder marks
}

// Those that only this end names.
static void link_one_sided(struct finish *f, uint32_t ei)
{
    const struct raw_edge *e = &f->g->edge[ei];
    if (e->far == ID_NONE)
        return;
    if (!node_valid(f->id[e->far])) {
        if (f->g->names_only && !f->g->node[e->far].record)
            link_note(f, e, "unknown-node", "there is no node of that name");
        exclude(f, e);
        return;
    }
    if (!port_exists(f, e->far, e->far_num)) {
        link_note(f, e, "bad-port", "the far node has no such port");
        exclude(f, e);
        return;
    }
    uint32_t slot = slot_of(f, e->far, e->far_num);
    if (f->slot[slot] != ID_NONE) {
        const struct raw_edge *peer = &f->g->edge[f->slot[slot]];
        if (peer->far == e->node && peer->far_num == e->num)
            return;
        link_note(f, e, "link-disagrees", "the far port's own line says otherwise; not linked");
        exclude(f, e);
        return;
    }
    if (link_edge(f, e)) {
        link_note(f, e, "duplicate-link", "the far port is linked elsewhere; not linked");
        exclude(f, e);
        return;
    }
    f->mirror[slot] = ei;
    if (f->g->node[e->far].record)
        link_note(f, e, "one-sided-link", "named by this end only; linked");
}

static uint8_t best_width(uint8_t mask)
{
    static const uint8_t order[] = {8, 4, 2, 16, 1}; // 12x 8x 4x 2x 1x
    for (size_t i = 0; i < sizeof(order); i++)
        if (mask & order[i])
            return order[i];
    return 0;
}

static uint8_t best_bit(uint8_t mask)
{
    return mask ? (uint8_t)(1u << (31 - __builtin_clz(mask))) : 0;
}

static uint8_t widths_up_to(uint8_t active)
{
    switch (active) {
    case 1:
        return 1;
    case 2:
        return 1 | 2;
    case 4:
        return 1 | 2 | 4;
    case 8:
        return 1 | 2 | 8;
    case 16:
        return 1 | 16;
    default:
        return 0;
    }
}

static void rate_set(struct port_attrs *a, const struct raw_link *l)
{
    a->width_active = l->width;
    a->speed_active = l->speed;
    a->speed_ext_active = l->ext;
    a->fdr10 = l->fdr10;
}

static void rate_from_active(struct port_attrs *a, const struct raw_link *l)
{
    rate_set(a, l);
    a->width_supported = a->width_enabled = widths_up_to(l->width);
    a->speed_supported = a->speed_enabled = l->speed ? (uint8_t)(2 * l->speed - 1) : 0;
    a->speed_ext_supported = a->speed_ext_enabled = l->ext ? (uint8_t)(2 * l->ext - 1) : 0;
}

// What two ends that may do this and that agree on: the best of what is enabled at both.
static void rate_from_masks(struct port_attrs *a, const struct raw_link *own, const struct raw_link *far)
{
    struct raw_link on = {best_width(own->width & far->width), best_bit(own->speed & far->speed),
                          best_bit(own->ext & far->ext), own->fdr10 && far->fdr10};
    if (on.ext)
        on.fdr10 = false;
    rate_set(a, &on);
    a->width_supported = a->width_enabled = own->width;
    a->speed_supported = a->speed_enabled = own->speed;
    a->speed_ext_supported = a->speed_ext_enabled = own->ext;
}

static uint16_t lid_clean(struct finish *f, uint16_t lid)
{
    if (lid != LID_UNSET)
        return lid;
    f->lids_unset++;
    return 0;
}

static void rate_check(struct finish *f, const struct raw_edge *e, const struct raw_edge *peer)
{
    if (f->g->masks || !peer || peer < e)
        return;
    if (e->link.width != peer->link.width || e->link.speed != peer->link.speed ||
        e->link.ext != peer->link.ext || e->link.fdr10 != peer->link.fdr10)
        link_note(f, e, "rate-disagrees",
                  "the two ends print different widths or speeds; each keeps its own");
}

// Attributes of one port from its own line, or the far end's line when it has none.
static void port_linked(struct finish *f, uint32_t node, unsigned num, const struct raw_edge *own,
                        const struct raw_edge *far)
{
    const struct raw_node *n = &f->g->node[node];
    const struct raw_edge *src = own ? own : far;
    struct port_attrs a = {.mtu_cap = MTU_4096, .mtu_active = MTU_4096};

    a.state = src->state ? src->state : f->g->link_state;
    a.phys_state = a.state == PORT_DOWN ? PHYS_POLLING : PHYS_LINK_UP;
    a.vl_cap = a.vl_oper = own && own->vl_cap ? own->vl_cap : VL_0_7;
    if (f->g->masks)
        rate_from_masks(&a, own ? &own->link : &n->defaults,
                        far ? &far->link : &f->g->node[src->far].defaults);
    else
        rate_from_active(&a, &src->link);
    if (n->type != NODE_SWITCH) {
        a.cap_mask = CAP_MASK;
        a.cap_mask2 = CAP_MASK2;
        a.lid = lid_clean(f, own && (own->has_lid || !far) ? own->lid : far ? far->far_lid : own->lid);
        a.lmc = own ? own->lmc : 0;
    }
    builder_port(f->b, f->id[node], num, &a);
    if (own)
        rate_check(f, own, far);
}

static void port_unlinked(struct finish *f, uint32_t node, unsigned num, const struct raw_edge *own,
                          const struct raw_link *best)
{
    const struct raw_node *n = &f->g->node[node];
    struct port_attrs a = {
        .state = PORT_DOWN, .phys_state = PHYS_POLLING, .mtu_cap = MTU_4096, .vl_cap = VL_0_7};
    struct raw_link none = {0};

    if (f->g->masks) {
        rate_from_masks(&a, own ? &own->link : &n->defaults, &none);
    } else {
        rate_from_active(&a, best);
        rate_set(&a, &none);
    }
    if (n->type != NODE_SWITCH) {
        a.cap_mask = CAP_MASK;
        a.cap_mask2 = CAP_MASK2;
    }
    if (own && n->type != NODE_SWITCH) {
        a.lid = lid_clean(f, own->lid);
        a.lmc = own->lmc;
    }
    builder_port(f->b, f->id[node], num, &a);
}

static void port_names(struct finish *f, uint32_t node, unsigned num, const struct raw_edge *own,
                       const struct raw_edge *far)
{
    if (f->g->node[node].type != NODE_SWITCH) {
        uint64_t guid = own && own->guid ? own->guid : far ? far->far_guid : 0;
        if (guid)
            builder_port_guid(f->b, f->id[node], num, guid);
    }
    if (own && own->label.len)
        builder_port_label(f->b, f->id[node], num, own->label.p, own->label.len);
}

static const struct raw_edge *edge_at(const struct finish *f, uint32_t i)
{
    return i == ID_NONE ? NULL : &f->g->edge[i];
}

static const struct raw_edge *far_edge(const struct finish *f, const struct raw_edge *own)
{
    if (own->far == ID_NONE || !port_exists(f, own->far, own->far_num))
        return NULL;
    const struct raw_edge *far = edge_at(f, f->slot[slot_of(f, own->far, own->far_num)]);
    return far && far->far == own->node && far->far_num == own->num ? far : NULL;
}

static bool better(const struct raw_link *a, const struct raw_link *b)
{
    if (a->ext != b->ext)
        return a->ext > b->ext;
    if (a->speed != b->speed)
        return a->speed > b->speed;
    return widths_up_to(a->width) > widths_up_to(b->width);
}

static struct raw_link node_best(const struct finish *f, uint32_t node)
{
    struct raw_link best = {0};
    for (unsigned num = 1; num <= f->g->node[node].num_ports; num++) {
        uint32_t s = slot_of(f, node, num);
        const struct raw_edge *e = edge_at(f, f->slot[s] != ID_NONE ? f->slot[s] : f->mirror[s]);
        if (e && e->far != ID_NONE && better(&e->link, &best))
            best = e->link;
    }
    return best;
}

static void port0(struct finish *f, uint32_t node)
{
    const struct raw_node *n = &f->g->node[node];
    struct port_attrs a = {
        .lid = lid_clean(f, n->lid),
        .lmc = n->lmc,
        .state = PORT_ACTIVE,
        .phys_state = PHYS_LINK_UP,
        .width_active = 2, // 4x SDR, as management ports say that have no wire
        .width_supported = 2,
        .width_enabled = 2,
        .speed_active = 1,
        .speed_supported = 1,
        .speed_enabled = 1,
        .mtu_cap = MTU_4096,
        .mtu_active = MTU_4096,
        .vl_cap = 1,
        .vl_oper = 1,
        .cap_mask = CAP_MASK_PORT0,
        .cap_mask2 = CAP_MASK2,
    };
    builder_port(f->b, f->id[node], 0, &a);
    if (n->port0_guid)
        builder_port_guid(f->b, f->id[node], 0, n->port0_guid);
}

static void node_ports(struct finish *f, uint32_t node)
{
    const struct raw_node *n = &f->g->node[node];
    struct raw_link best = {0};

    if (!f->g->masks)
        best = node_best(f, node);
    if (n->type == NODE_SWITCH)
        port0(f, node);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        uint32_t s = slot_of(f, node, num);
        const struct raw_edge *own = edge_at(f, f->slot[s]);
        const struct raw_edge *far = own ? far_edge(f, own) : edge_at(f, f->mirror[s]);
        if ((own && own->far != ID_NONE) || far) {
            port_linked(f, node, num, own, far);
        } else {
            port_unlinked(f, node, num, own, &best);
        }
        port_names(f, node, num, own, far);
    }
}

// A node's LID as others print it: used when the node did not say, compared when it did.
static void far_lids(struct finish *f, const struct raw_edge *e)
{
    if (e->far == ID_NONE || !e->far_lid || !node_valid(f->id[e->far]))
        return;
    struct raw_node *n = &f->g->node[e->far];
    uint16_t lid = n->lid;
    if (n->type != NODE_SWITCH) {
        const struct raw_edge *far =
            port_exists(f, e->far, e->far_num) ? edge_at(f, f->slot[slot_of(f, e->far, e->far_num)]) : NULL;
        lid = far ? far->lid : 0;
    } else if (!n->record && !n->lid) {
        n->lid = lid = e->far_lid;
    }
    if (lid && lid != e->far_lid) {
        char name[96];
        reader_note(f->r, FINDING_WARNING, "lid-disagrees", e->file, e->line,
                    "the LID of %s is %u here and %u in its own record; its own is used", node_name(n, name),
                    e->far_lid, lid);
    }
}

static void sm_port(struct finish *f)
{
    struct graph *g = f->g;
    uint32_t n = g->sm_index;
    if (n == ID_NONE && (!g->sm_node || !u64map_get(&g->by_guid, g->sm_node, &n)))
        return;
    if (n >= g->num_nodes || !node_valid(f->id[n]))
        return;
    if (g->node[n].type == NODE_SWITCH) {
        builder_sm_port(f->b, f->id[n], 0);
        return;
    }
    for (unsigned num = 1; num <= g->node[n].num_ports; num++) {
        uint32_t s = slot_of(f, n, num);
        const struct raw_edge *own = edge_at(f, f->slot[s]), *far = edge_at(f, f->mirror[s]);
        uint64_t guid = own && own->guid ? own->guid : far ? far->far_guid : 0;
        // ibsim attaches to the first port whether or not it is cabled; a dump names it by GUID.
        if (g->names_only || (guid && guid == g->sm_port)) {
            builder_sm_port(f->b, f->id[n], num);
            return;
        }
    }
}

static void finish_ports(struct finish *f)
{
    struct graph *g = f->g;
    uint32_t total = 0;
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        f->first[i] = total;
        total += node_valid(f->id[i]) ? g->node[i].num_ports + 1u : 0;
    }
    f->slot = arena_array(f->r->arena, total + 1, sizeof(*f->slot));
    f->mirror = arena_array(f->r->arena, total + 1, sizeof(*f->mirror));
    memset(f->slot, 0xff, total * sizeof(*f->slot));
    memset(f->mirror, 0xff, total * sizeof(*f->mirror));

    for (uint32_t i = 0; i < g->num_edges; i++)
        place_edge(f, i);
    // Edges that lost their place take no further part.
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < g->num_edges; i++) {
            const struct raw_edge *e = &g->edge[i];
            if (!port_exists(f, e->node, e->num) || f->slot[slot_of(f, e->node, e->num)] != i)
                continue;
            if (pass == 0) {
                link_mutual(f, i);
            } else {
                far_lids(f, e);
                link_one_sided(f, i);
            }
        }
    }
    for (uint32_t i = 0; i < g->num_nodes; i++)
        if (node_valid(f->id[i]))
            node_ports(f, i);
    sm_port(f);
    if (f->lids_unset)
        reader_note(f->r, FINDING_INFO, "lid-unset", 0, 0,
                    "LID 65535 on %u port%s: not yet configured; taken as none", f->lids_unset,
                    f->lids_unset == 1 ? "" : "s");
}

const struct fabric *graph_finish(struct reader *r, struct err *e)
{
    struct graph *g = &r->g;
    struct finish f = {.r = r, .g = g, .b = builder_new()};
    f.id = ARENA_NEW_N(r->arena, g->num_nodes + 1, node_id);
    f.first = ARENA_NEW_N(r->arena, g->num_nodes + 1, uint32_t);

    int rc = make_nodes(&f, e);
    if (rc == 0) {
        bool any = false;
        for (uint32_t i = 0; i < g->num_nodes && !any; i++)
            any = node_valid(f.id[i]);
        if (!any)
            rc = err_set(e, -EINVAL, r->file_name[0], "no node in it that could be used");
    }
    if (rc) {
        builder_free(f.b);
        return NULL;
    }
    finish_ports(&f);
    return builder_seal(f.b, 1, r->out);
}
