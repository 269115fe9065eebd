// SPDX-License-Identifier: Apache-2.0
// For groups*.c only; see groups.c.
#ifndef WEFT_ROUTING_GROUPS_PRIV_H
#define WEFT_ROUTING_GROUPS_PRIV_H

#include <stdatomic.h>

#include "routing/groups.h"
#include "routing/repair_priv.h"

// What one switch's groups are made of: sets of ports, each once. In a task's arena.
struct gsets {
    struct port_set *set;
    uint32_t num, room;
    uint16_t *slot; // open addressing, a power of two: index into set, GROUP_NONE
    uint32_t slots;
    uint32_t *lids; // per set: entries that have it
};

// A LID that may have groups, and the column it is in.
struct glid {
    uint16_t lid;
    uint8_t port; // where it hangs
};

struct gmake {
    const struct fabric *f;
    const struct fabric_tables *t;
    const struct groups_opts *o;
    struct arena *a;
    struct rlive *v;        // with a base
    const struct rgraph *g; // groups of cables; no destinations
    uint32_t n, ports;
    // Columns: switches on which end nodes hang.
    uint32_t cols, stride;         // stride: cols, rounded up to whole chunks
    uint32_t *col_switch, *column; // column: per switch, ID_NONE without
    uint32_t *coff;                // cols + 1
    struct glid *lid;              // of column c: lid[coff[c]] .. lid[coff[c + 1] - 1]
    _Atomic uint8_t *odd;          // per entry of lid: not to have its column's groups: GODD_*
    bool beside;                   // cables side by side may stand for each other
    // Filled by either way:
    uint16_t *to; // [switch * stride + column]: index into the switch's sets, GROUP_NONE
    struct gsets *sets;
    uint32_t *was; // per switch: its number in o->last_fabric, ID_NONE; with o->last only
    char why[200];
};
#define GCHUNK 128 // columns
// Values of odd:
#define GODD_BESIDE 1 // only the cables beside the table's port
#define GODD_STATIC 2

struct gtask { // scratch of one task; its arena lives as long as the call
    struct arena *a;
};

// Index of a set among a switch's; GROUP_NONE for one of less than two ports.
uint16_t gsets_intern(struct gsets *x, const struct port_set *s, struct arena *a);

// groups_order.c: along an order that the entries keep to. False, with nothing filled, when most do not.
bool gorder_fill(struct gmake *m, const struct rorder *o, struct gtask *task, uint32_t tasks);
// Whether all packets go up and then down by it.
bool gorder_holds(struct gmake *m, const struct rorder *o, uint32_t tasks);
// groups_level.c: between the dependencies that the tables make. What it can, down to nothing.
void glevel_fill(struct gmake *m, struct gtask *task, uint32_t tasks);
// groups_ids.c: which of a switch's sets it gets, and their ids. Sorted by id; to[] and *ret_beside (per
// port) are positions in that then. Returns their number.
struct gchosen {
    struct fabric_group *group;
    uint32_t num;
    uint16_t *beside;
    uint64_t adaptive, choices;
    bool over_cap;
};
void gids_choose(struct gmake *m, uint32_t s, struct arena *a, struct gchosen *ret);

#endif
