// SPDX-License-Identifier: Apache-2.0
// From the builder's arrays to a sealed snapshot: close the gaps of removed nodes, number the switches, make
// the maps, derive (roles*.c), report what contradicts itself.
#include "fabric/builder_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric_priv.h"
#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/guid.h"

static uint32_t node_num_ports(const struct node *n)
{
    return n->num_ports + (n->type == NODE_SWITCH);
}

// Copies what is not removed; ids shift, so peers are renumbered by the place their port moved to.
static void nodes_compact(struct draft *d, const struct builder *b)
{
    uint32_t *moved = ARENA_NEW_N(d->scratch, b->num_ports + 1, uint32_t);
    uint32_t nn = 0, np = 0;
    for (uint32_t i = 0; i < b->num_nodes; i++) {
        uint32_t k = node_num_ports(&b->node[i]), first = b->node[i].first_port;
        if (b->removed[i])
            continue;
        d->node[nn] = b->node[i];
        d->node[nn].first_port = np;
        memcpy(&d->port[np], &b->port[first], k * sizeof(struct port));
        for (uint32_t j = 0; j < k; j++) {
            moved[first + j] = np + j;
            d->port[np + j].node.i = nn;
        }
        nn++;
        np += k;
    }
    for (uint32_t i = 0; i < np; i++) {
        if (port_valid(d->port[i].peer))
            d->port[i].peer.i = moved[d->port[i].peer.i];
    }
    d->f.num_nodes = nn;
    d->f.num_ports = np;
    d->f.sm_port = port_valid(b->sm_port) ? (port_id){moved[b->sm_port.i]} : PORT_NONE;
}

static void arrays_copy(struct draft *d, const struct builder *b)
{
    uint32_t nodes = b->num_nodes - b->num_removed, ports = b->num_ports;
    if (b->num_removed) {
        ports = 0;
        for (uint32_t i = 0; i < b->num_nodes; i++)
            ports += b->removed[i] ? 0 : node_num_ports(&b->node[i]);
    }
    d->node = ARENA_NEW_N(d->arena, nodes + 1, struct node);
    d->port = ARENA_NEW_N(d->arena, ports + 1, struct port);
    d->f.node = d->node;
    d->f.port = d->port;
    if (b->num_removed) {
        nodes_compact(d, b);
        return;
    }
    if (nodes)
        memcpy(d->node, b->node, nodes * sizeof(struct node));
    if (ports)
        memcpy(d->port, b->port, ports * sizeof(struct port));
    d->f.num_nodes = nodes;
    d->f.num_ports = ports;
    d->f.sm_port = b->sm_port;
}

static uint32_t string_move(const struct builder *b, char *pool, size_t *len, uint32_t *place, uint32_t old)
{
    if (old == 0)
        return 0;
    if (place[old] == 0) {
        size_t n = strlen(b->strings + old) + 1;
        memcpy(pool + *len, b->strings + old, n);
        place[old] = (uint32_t)*len;
        *len += n;
    }
    return place[old];
}

// Only the strings that are still named: over the generations renaming would pile up dead ones.
static void strings_copy(struct draft *d, const struct builder *b)
{
    char *pool = arena_alloc(d->arena, b->strings_len);
    uint32_t *place = ARENA_NEW_N(d->scratch, b->strings_len, uint32_t);
    size_t len = 1;
    for (uint32_t i = 0; i < d->f.num_nodes; i++)
        d->node[i].desc = string_move(b, pool, &len, place, d->node[i].desc);
    for (uint32_t i = 0; i < d->f.num_ports; i++)
        d->port[i].label = string_move(b, pool, &len, place, d->port[i].label);
    d->f.strings = pool;
    d->f.strings_size = len;
}

static void switches_number(struct draft *d)
{
    struct fabric *f = &d->f;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        f->num_switches += d->node[i].type == NODE_SWITCH;
    f->num_end_nodes = f->num_nodes - f->num_switches;
    uint32_t *sw_node = ARENA_NEW_N(d->arena, f->num_switches + 1, uint32_t), n = 0;
    f->lft_cap_min = 0xffff;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        struct node *nd = &d->node[i];
        nd->sw = ID_NONE;
        if (nd->type != NODE_SWITCH)
            continue;
        nd->sw = n;
        sw_node[n++] = i;
        // 0 is what a file that does not know leaves; a switch without a linear table could route nothing.
        if (nd->lft_cap && nd->lft_cap < f->lft_cap_min)
            f->lft_cap_min = nd->lft_cap;
    }
    f->switch_node = sw_node;
}

static void port_guid_add(struct draft *d, uint32_t i)
{
    char where[200], other[200], guid[GUID_STR_SIZE];
    uint32_t first;
    uint64_t g = d->port[i].guid;
    if (!g)
        return;
    if (!u64map_get(&d->f.by_port_guid, g, &first)) {
        u64map_set(&d->f.by_port_guid, g, i);
        return;
    }
    findings_add(d->findings, FINDING_ERROR, "duplicate-guid",
                 fabric_port_name(&d->f, (port_id){i}, where, sizeof(where)),
                 "port GUID %s is that of %s too; the first one is used", guid_str(g, guid),
                 fabric_port_name(&d->f, (port_id){first}, other, sizeof(other)));
}

static void maps_make(struct draft *d)
{
    struct fabric *f = &d->f;
    u64map_init(&f->by_guid, d->arena, f->num_nodes + 1);
    u64map_init(&f->by_port_guid, d->arena, f->num_nodes + f->num_end_nodes / 4 + 1);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        u64map_set(&f->by_guid, d->node[i].guid, i);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        f->num_links += port_valid(d->port[i].peer) && d->port[i].peer.i > i;
        if (port_is_end(f, &d->port[i]))
            port_guid_add(d, i);
    }
}

static void lid_claim(struct draft *d, uint32_t *lid_port, uint32_t i, uint32_t lid)
{
    char where[200], other[200];
    if (lid_port[lid] != ID_NONE) {
        findings_add(d->findings, FINDING_ERROR, "duplicate-lid",
                     fabric_port_name(&d->f, (port_id){i}, where, sizeof(where)), "LID %u is that of %s too",
                     lid, fabric_port_name(&d->f, (port_id){lid_port[lid]}, other, sizeof(other)));
        return;
    }
    lid_port[lid] = i;
    if (lid > d->f.top_lid)
        d->f.top_lid = (uint16_t)lid;
}

static void lids_make(struct draft *d)
{
    struct fabric *f = &d->f;
    uint32_t *lid_port = ARENA_NEW_N(d->arena, LID_UCAST_MAX + 1, uint32_t);
    memset(lid_port, 0xff, (LID_UCAST_MAX + 1) * sizeof(*lid_port));
    f->lid_port = lid_port;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &d->port[i];
        if (!port_is_end(f, p) || p->a.lid == 0)
            continue;
        if (p->a.lid > LID_UCAST_MAX) { // 0xffff is what an adapter says that was never configured
            findings_add(d->findings, FINDING_INFO, "lid-not-unicast", "",
                         "LID %u of %s is no unicast LID; taken as none", p->a.lid,
                         fabric_desc(f, &d->node[p->node.i]));
            continue;
        }
        uint32_t n = 1u << (p->a.lmc & 7);
        for (uint32_t k = 0; k < n && p->a.lid + k <= LID_UCAST_MAX; k++)
            lid_claim(d, lid_port, i, p->a.lid + k);
    }
}

static uint64_t desc_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
    return hash_mix64(h);
}

// A 64-bit hash stands for the name: should two names ever share one, people see a GUID too many.
static void names_mark(struct draft *d)
{
    struct u64map seen;
    u64map_init(&seen, d->scratch, d->f.num_nodes + 1);
    for (uint32_t i = 0; i < d->f.num_nodes; i++) {
        struct node *n = &d->node[i];
        uint32_t first;
        n->name_repeats = false;
        if (!n->desc)
            continue;
        uint64_t h = desc_hash(fabric_desc(&d->f, n));
        if (u64map_get(&seen, h, &first))
            n->name_repeats = d->node[first].name_repeats = true;
        else
            u64map_set(&seen, h, i);
    }
}

static void names_report(struct draft *d)
{
    for (uint32_t i = 0; i < d->f.num_nodes; i++) {
        const struct node *n = &d->node[i];
        if (n->name_repeats && n->role != ROLE_AGGREGATION)
            findings_add(d->findings, FINDING_INFO, "repeated-name", fabric_desc(&d->f, n),
                         "several nodes are called \"%s\"; they are told apart by GUID",
                         fabric_desc(&d->f, n));
    }
}

// One finding a node, at its first such port: a cable has two of them.
static void self_links_report(struct draft *d, const struct node *n)
{
    struct buf ports = {0};
    char where[200];
    unsigned first = 0;

    for (unsigned num = 1; num <= n->num_ports; num++)
        if (d->port[fabric_port_at(&d->f, n, num).i].excluded == PORT_EXCLUDED_SELF_LINK) {
            buf_printf(&ports, "%s%u", first ? ", " : "", num);
            first = first ? first : num;
        }
    if (first)
        findings_add(d->findings, FINDING_WARNING, "self-link",
                     fabric_port_name(&d->f, fabric_port_at(&d->f, n, first), where, sizeof(where)),
                     "cables lead from the node to itself; these ports are not used: %s", ports.data);
    buf_done(&ports);
}

static void exclusions_report(struct draft *d)
{
    for (uint32_t i = 0; i < d->f.num_nodes; i++)
        self_links_report(d, &d->node[i]);
}

const struct fabric *builder_seal(struct builder *b, uint64_t generation, struct findings *ret_findings)
{
    struct draft d = {.arena = arena_new(), .scratch = arena_new(), .findings = ret_findings, .known = b->known};
    d.f.generation = generation;
    arrays_copy(&d, b);
    strings_copy(&d, b);
    builder_free(b);
    switches_number(&d);
    names_mark(&d);
    maps_make(&d);
    lids_make(&d);
    roles_planes(&d);
    roles_end_nodes(&d);
    roles_tiers(&d);
    roles_hosts(&d);
    roles_rails(&d);
    names_report(&d);
    exclusions_report(&d);
    const struct fabric *f = fabric_publish(&d.f, d.arena);
    arena_free(d.scratch);
    return f;
}
