// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric_priv.h"

#include <stdatomic.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/arena.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

// The count and the arena handle stay writable beside the sealed arrays.
struct fabric_box {
    struct fabric f;       // first: a fabric pointer is a box pointer
    _Atomic unsigned refs; // workers take references too
    struct arena *arena;
};

const struct fabric *fabric_publish(const struct fabric *f, struct arena *arena)
{
    struct fabric_box *box = xmalloc(sizeof(*box));
    *box = (struct fabric_box){.f = *f, .refs = 1, .arena = arena};
#ifdef NDEBUG
    arena_seal(arena, 0);
#else
    arena_seal(arena, 1);
#endif
    return &box->f;
}

struct fabric *fabric_ref(const struct fabric *f)
{
    struct fabric_box *box = (struct fabric_box *)(uintptr_t)f;
    assert(box->refs > 0);
    atomic_fetch_add(&box->refs, 1);
    return &box->f;
}

void fabric_unref(const struct fabric *f)
{
    struct fabric_box *box = (struct fabric_box *)(uintptr_t)f;
    if (!box)
        return;
    assert(box->refs > 0);
    if (atomic_fetch_sub(&box->refs, 1) > 1)
        return;
    arena_free(box->arena);
    free(box);
}

size_t fabric_bytes(const struct fabric *f)
{
    const struct fabric_box *box = (const struct fabric_box *)f;
    return sizeof(*box) + arena_bytes(box->arena);
}

port_id fabric_port_at(const struct fabric *f, const struct node *n, unsigned num)
{
    unsigned first = node_first_num(n);
    (void)f;
    if (num < first || num > n->num_ports)
        return PORT_NONE;
    return (port_id){n->first_port + num - first};
}

const struct node *fabric_by_guid(const struct fabric *f, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&f->by_guid, guid, &i) ? &f->node[i] : NULL;
}

port_id fabric_by_port_guid(const struct fabric *f, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&f->by_port_guid, guid, &i) ? (port_id){i} : PORT_NONE;
}

port_id fabric_by_lid(const struct fabric *f, uint16_t lid)
{
    return lid <= LID_UCAST_MAX ? (port_id){f->lid_port[lid]} : PORT_NONE;
}

const struct node *fabric_peer_node(const struct fabric *f, const struct port *p)
{
    return port_valid(p->peer) ? &f->node[f->port[p->peer.i].node.i] : NULL;
}

bool fabric_same_switches(const struct fabric *a, const struct fabric *b)
{
    if (a->num_switches != b->num_switches)
        return false;
    for (uint32_t sw = 0; sw < a->num_switches; sw++)
        if (fabric_switch(a, sw)->guid != fabric_switch(b, sw)->guid)
            return false;
    return true;
}

uint32_t fabric_port_room(const struct fabric *f)
{
    uint32_t most = 1;
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        uint32_t ports = fabric_switch(f, sw)->num_ports + 1u;
        most = ports > most ? ports : most;
    }
    return most;
}

bool fabric_has_ends(const struct fabric *f, uint32_t sw)
{
    const struct node *n = fabric_switch(f, sw);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *far = fabric_peer_node(f, &f->port[n->first_port + num]);
        if (far && far->type != NODE_SWITCH)
            return true;
    }
    return false;
}

const char *fabric_node_name(const struct fabric *f, const struct node *n, char *buf, size_t size)
{
    const char *name = fabric_desc(f, n);
    if (!*name)
        snprintf(buf, size, GUID_FMT, GUID_ARG(n->guid));
    else if (n->name_repeats)
        snprintf(buf, size, "%s (" GUID_FMT ")", name, GUID_ARG(n->guid));
    else
        snprintf(buf, size, "%s", name);
    return buf;
}

const char *fabric_port_name(const struct fabric *f, port_id p, char *buf, size_t size)
{
    char name[200];
    if (!port_valid(p) || p.i >= f->num_ports) {
        snprintf(buf, size, "no port");
        return buf;
    }
    const struct port *port = &f->port[p.i];
    fabric_node_name(f, &f->node[port->node.i], name, sizeof(name));
    snprintf(buf, size, "%s[%u]", name, port->num);
    return buf;
}

uint32_t port_rate_mbps(const struct port_attrs *a)
{
    // Lane rates as products are named (4xFDR is 56 Gb/s, 4xEDR 100), not the line's symbol rate.
    uint32_t lane = 0, lanes = 0;
    switch (a->width_active) { // codes of PortInfo.LinkWidthActive, IBA 14.2.5.6
    case 1:
        lanes = 1;
        break;
    case 2:
        lanes = 4;
        break;
    case 4:
        lanes = 8;
        break;
    case 8:
        lanes = 12;
        break;
    case 16:
        lanes = 2;
        break;
    }
    static const uint32_t ext[] = {[1] = 14000, [2] = 25000, [4] = 50000, [8] = 100000};
    if (a->speed_ext_active == 16)
        lane = 200000;
    else if (a->speed_ext_active && a->speed_ext_active < sizeof(ext) / sizeof(ext[0]))
        lane = ext[a->speed_ext_active];
    else if (a->speed_active == 1)
        lane = 2500;
    else if (a->speed_active == 2)
        lane = 5000;
    else if (a->speed_active == 4)
        lane = 10000;
    return lane * lanes;
}

const char *node_role_name(enum node_role r)
{
    static const char *const name[] = {"unknown", "host",  "aggregation", "gateway", "router",
                                       "leaf",    "spine", "core",        "switch"};
    return (unsigned)r < sizeof(name) / sizeof(name[0]) ? name[r] : "unknown";
}

const char *port_state_name(enum port_state s)
{
    static const char *const name[] = {"nop", "down", "init", "armed", "active"};
    return (unsigned)s < sizeof(name) / sizeof(name[0]) ? name[s] : "unknown";
}

const char *port_excluded_name(enum port_excluded e)
{
    static const char *const name[] = {"included",  "peer-silent", "self-link",  "duplicate",
                                       "one-sided", "unsupported", "by-operator"};
    return (unsigned)e < sizeof(name) / sizeof(name[0]) ? name[e] : "unknown";
}
