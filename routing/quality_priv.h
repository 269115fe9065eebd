// SPDX-License-Identifier: Apache-2.0
// For routing/quality*.c only. Everything lives in one call's arena.
//
// Switches are numbered here in the order of their GUIDs, so that "the first of the fullest cables" is the
// same one however the fabric's nodes are numbered. A channel is a switch's out port: number * stride + port.
#ifndef WEFT_ROUTING_QUALITY_PRIV_H
#define WEFT_ROUTING_QUALITY_PRIV_H

#include "lib/arena.h"
#include "routing/quality.h"

#define QUALITY_HOPS 64 // cables that a flow may cross; beyond it circles

struct qend { // a host adapter's port on a switch
    uint32_t sw, port_id;
    uint16_t lid;
    uint16_t rail, su;
    uint8_t port;  // of the switch
    uint32_t slot; // within its rail; only with a cell
    uint32_t cell; // ID_NONE without a rail or an SU
};

struct qcell {         // the hosts of one rail in one SU
    uint32_t first, n; // in qgraph.by_cell, ascending slots
    uint32_t next;     // the cell of the next SU on the rail
    uint32_t slots;    // of the rail
};

struct qgraph {
    const struct fabric *f;
    const struct fabric_tables *t;
    uint32_t n, stride;
    uint32_t *node;      // node index of each switch
    const uint8_t **row; // its table
    uint32_t *peer;      // per channel: switch at the far end, ID_NONE
    uint32_t *hosts;     // host ports on each switch
    struct qend *end;    // in the order of the patterns
    uint32_t num_ends;
    uint32_t *rail;       // ends by rail, each rail in the patterns' order
    uint32_t *rail_first; // num_rails + 1, in rail[]
    uint32_t *rail_pos;   // per end: index in rail[]; ID_NONE
    uint32_t num_rails;   // that have ends
    uint32_t rail_most;   // ends of the largest rail
    struct qcell *cell;
    uint32_t *by_cell;
    uint32_t num_cells, slots; // slots: most of any rail
    uint32_t num_sus;          // most of any rail
};
void qgraph_build(const struct fabric *f, const struct fabric_tables *t, struct arena *a, struct qgraph *ret);

// The channel that a switch's entry for a LID (below tables.lids) leads to; ID_NONE where it leads to no
// switch.
static inline uint32_t qchannel_at(const struct qgraph *g, uint32_t sw, uint16_t lid)
{
    uint32_t port = g->row[sw][lid];
    if (port >= g->stride)
        return ID_NONE;
    uint32_t c = sw * g->stride + port;
    return g->peer[c] == ID_NONE ? ID_NONE : c;
}

void quality_patterns(const struct qgraph *g, const struct quality_opts *o, struct arena *a,
                      struct route_quality *ret);
void quality_alltoall(const struct qgraph *g, struct par *par, struct arena *a, struct quality_alltoall *ret);
// The same among ends of one class only, and all classes at once. on: per end its class, below `classes`;
// ID_NONE for ends that take no part. *ret_load: flows on each channel, in the arena.
#define QUALITY_CLASSES_MAX 256
void quality_alltoall_of(const struct qgraph *g, const uint32_t *on, uint32_t classes, struct par *par,
                         struct arena *a, struct quality_alltoall *ret, const uint32_t **ret_load);

// n tasks over par, or one after the other where there is none.
void quality_spread(struct par *par, uint32_t n, void (*task)(void *arg, unsigned i), void *arg);
struct quality_link quality_link_of(const struct qgraph *g, uint32_t channel, uint64_t load);

#endif
