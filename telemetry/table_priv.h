// SPDX-License-Identifier: Apache-2.0
// How the table is filled; for telemetry/ alone.
#ifndef WEFT_TELEMETRY_TABLE_PRIV_H
#define WEFT_TELEMETRY_TABLE_PRIV_H

#include "lib/hash.h"
#include "telemetry/table.h"

struct tele_node {
    uint64_t guid;
    uint32_t *slot; // by port number, 0..num_ports; TELE_SLOT_NONE
    uint32_t agent; // of a switch: who is asked for its ports (collect.c); TELE_SLOT_NONE
    uint16_t room;
    uint8_t num_ports;
};
struct tele_index {
    struct u64map by_guid; // into node
    struct tele_node *node;
    uint32_t num, room;
    uint32_t cap; // slots that the table's arrays have room for
};

void tele_table_init(struct tele_table *t);
void tele_table_done(struct tele_table *t);
struct tele_node *tele_node_find(const struct tele_table *t, uint64_t guid);
// Finds or makes it; room for ports up to that number. The pointer is good until the next one is added.
struct tele_node *tele_node_add(struct tele_table *t, uint64_t guid, uint8_t num_ports);
// Slot `slot` is that port from now on; slots below that nobody has named yet are gone ones. The caller does
// not name a port twice.
void tele_slot_set(struct tele_table *t, uint32_t slot, uint64_t node_guid, uint8_t num);

// Of a node that is not in the snapshot; a port of one that is there may have no link.
static inline bool tele_is_away(const struct tele_table *t, uint32_t slot)
{
    const struct tele_port *p = &t->port[slot];
    return p->port == ID_NONE && t->fabric != NULL && fabric_by_guid(t->fabric, p->node_guid) == NULL;
}

#endif
