// SPDX-License-Identifier: Apache-2.0
// What the routing tests share: fabrics with LIDs, made by name, from a file, by hand or at random.
#ifndef WEFT_TESTS_ROUTING_RIG_H
#define WEFT_TESTS_ROUTING_RIG_H

#include "fabric/builder.h"
#include "fabric/fabric.h"
#include "fabric/tables.h"
#include "lib/rng.h"
#include "routing/route.h"

// f with a LID on every end port (switches first, then adapters leaf by leaf); takes f's reference.
const struct fabric *rig_lids(const struct fabric *f, unsigned lmc);
const struct fabric *rig_named(const char *name);
// A file of the shared samples, or NULL (the test then skips).
const struct fabric *rig_sample(const char *file);
// Without `percent` of its cables between switches; takes f's reference.
const struct fabric *rig_degrade(const struct fabric *f, unsigned percent, struct rng *r);

// The same fabric with its nodes in another order, LIDs as they are. Borrows f.
const struct fabric *rig_renumber(const struct fabric *f, struct rng *r);

// Fabrics by hand.
struct rig {
    struct builder *b;
    unsigned next_port[400]; // per node
    uint64_t next_guid;
};
void rig_start(struct rig *r);
node_id rig_switch(struct rig *r, unsigned ports, const char *name);
node_id rig_ca(struct rig *r, unsigned ports, const char *name);
void rig_cable(struct rig *r, node_id a, node_id z); // next free ports
node_id rig_host(struct rig *r, node_id sw);         // a host on sw
node_id rig_an(struct rig *r, node_id sw);           // an aggregation node on sw
const struct fabric *rig_done(struct rig *r);        // with LIDs
// Connected, irregular: n switches, extra cables, hosts and aggregation nodes anywhere.
const struct fabric *rig_random(struct rng *r, unsigned n, unsigned extra);

extern struct par rig_par; // three tasks at once, on threads, the last ones first

struct fabric_tables *rig_route(const struct fabric *f, enum route_engine e);
// Verified from every switch, no credit loop, nothing unreached; fails the test otherwise.
void rig_prove(const struct fabric *f, const struct fabric_tables *t);

// Things that fail: a cable (named by one end), or a whole node.
struct rig_fault {
    enum { RIG_CABLE, RIG_NODE } kind;
    uint64_t guid;
    unsigned num;
};
// f without them, and without what no cable joins to anything then.
const struct fabric *rig_live(const struct fabric *f, const struct rig_fault *x, uint32_t n);
// Cables between switches mostly, now and then a switch or a host.
void rig_fault_make(const struct fabric *f, struct rng *r, struct rig_fault *ret);

#endif
