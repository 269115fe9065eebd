// SPDX-License-Identifier: Apache-2.0
// Groups of ports for adaptive routing, beside forwarding tables: where a switch may choose for itself by
// which of several ports a packet goes on. Each switch has a list of groups; an entry of its table has one of
// them, or none: then it is static, and goes by the table's port alone. An entry with a group has the table's
// port in it.
//
// All LIDs that hang on one switch have the same group at another one, where the entry's port is in it;
// others of them have the cables beside the entry's port. So what is kept is small (2 bytes for each pair of
// switches), and groups_at() puts it together with the table's port.
//
// Ids are those that a switch knows its groups by: 0 .. its capacity - 1. They stay over changes where they
// can.
//
// Sealed once made, reference-counted; any thread reads while it holds a reference. Of one fabric and of
// tables with the same destinations: switch numbers are that fabric's.
#ifndef WEFT_FABRIC_GROUPS_H
#define WEFT_FABRIC_GROUPS_H

#include "fabric/fabric.h"
#include "fabric/tables.h"

struct port_set { // bit p % 64 of word p / 64: port p; port 0 is never in
    uint64_t w[4];
};
static inline bool port_set_has(const struct port_set *s, uint8_t port)
{
    return s->w[port / 64] >> (port % 64) & 1;
}
static inline void port_set_add(struct port_set *s, uint8_t port)
{
    s->w[port / 64] |= 1ULL << (port % 64);
}

struct fabric_group {
    struct port_set ports; // two at least
    uint32_t lids;         // entries of the switch that have it
    uint16_t id;
};
#define GROUP_NONE 0xffff

struct fabric_groups {
    uint32_t num_switches, lids, ports; // lids as of the tables; port numbers 0 .. ports - 1
    uint64_t generation;                // of the fabric
    uint32_t *first;                    // [switch]: its groups are group[first[s]] .. [first[s + 1] - 1]
    struct fabric_group *group;         // of each switch by id
    // What follows is for groups_at(). Numbers are positions in a switch's list, GROUP_NONE for none.
    uint32_t *lid_switch; // [lid]: where it hangs; ID_NONE: its entries are static everywhere
    bool *lid_whole;      // [lid]: whether `to` counts for it
    uint16_t *to;         // [switch * num_switches + switch where the LID hangs]
    uint16_t *beside;     // [switch * ports + port]
};

// The group of a switch's entry for a LID, or NULL when that is static. port: the table's entry.
static inline const struct fabric_group *groups_at(const struct fabric_groups *g, uint32_t sw, uint16_t lid,
                                                   uint8_t port)
{
    if (lid >= g->lids || g->lid_switch[lid] == ID_NONE || port >= g->ports)
        return NULL;
    const struct fabric_group *own = g->group + g->first[sw];
    uint16_t i = g->lid_whole[lid] ? g->to[(size_t)sw * g->num_switches + g->lid_switch[lid]] : GROUP_NONE;
    if (i != GROUP_NONE && port_set_has(&own[i].ports, port))
        return &own[i];
    i = g->beside[(size_t)sw * g->ports + port];
    return i == GROUP_NONE ? NULL : &own[i];
}

static inline uint32_t groups_of(const struct fabric_groups *g, uint32_t sw)
{
    return g->first[sw + 1] - g->first[sw];
}

// No groups; all entries static; one reference; writable until sealed. num_groups: room for so many.
struct fabric_groups *groups_new(const struct fabric *f, uint32_t lids, uint32_t num_groups);
void groups_seal(struct fabric_groups *g, bool protect);
struct fabric_groups *groups_ref(const struct fabric_groups *g);
void groups_unref(const struct fabric_groups *g); // NULL is fine

#endif
