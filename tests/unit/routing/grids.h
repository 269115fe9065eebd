// SPDX-License-Identifier: Apache-2.0
// Fabrics that are no trees, and the judgement of tables with lanes, which shares no code with the engines or
// the proof.
#ifndef WEFT_TESTS_ROUTING_GRIDS_H
#define WEFT_TESTS_ROUTING_GRIDS_H

#include "tests/unit/routing/rig.h"

struct grids {
    struct builder *b;
    unsigned num, cap;
    unsigned *next_port;
    uint64_t salt;
    uint8_t vl_cap;
};
void grids_start(struct grids *m, uint64_t salt); // GUIDs by a hash, so that they say nothing of places
node_id grids_add(struct grids *m, enum node_type type, unsigned ports);
void grids_join(struct grids *m, node_id a, node_id b); // next free ports
void grids_hosts(struct grids *m, node_id sw, unsigned num);
// Dimensions k[0 .. d - 1]; wrap: a torus.
void grids_add_grid(struct grids *m, unsigned d, const unsigned *k, bool wrap, unsigned num_hosts);
const struct fabric *grids_done(struct grids *m); // with LIDs

const struct fabric *grids_grid(unsigned d, const unsigned *k, bool wrap, unsigned num_hosts);
// Groups of `a` switches, all joined; each switch with h cables to other groups, one between any two groups.
const struct fabric *grids_dragonfly(unsigned a, unsigned h, unsigned num_hosts);

// Every pair that cables join by a path at most so much longer than the shortest, all lanes there and without
// a cycle; the proof says the same. Fails the test otherwise.
void grids_judge(const struct fabric *f, const struct fabric_tables *t, uint32_t longer);
// Whether no lane has a cycle, whatever the tables are good for, with these bits of lanes in use from switch
// (row) to LIDs on another.
bool grids_lanes_hold(const struct fabric *f, const struct fabric_tables *t, const uint8_t *may);

#endif
