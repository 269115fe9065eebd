// SPDX-License-Identifier: Apache-2.0
// What cables join, whatever the tables: who is cut off when a fabric becomes another one, and where a single
// further failure would cut somebody off. Packets pass through switches only. End ports here are ports of
// adapters and routers that are cabled to a switch; aggregation nodes are part of their switch and none.
// Pure; O(ports).
#ifndef WEFT_FABRIC_REACH_H
#define WEFT_FABRIC_REACH_H

#include "fabric/fabric.h"

// From `before` to `after`, which has the same nodes and may have more behind them (fabric/edit.h). Of each
// connected part what stays with most of its end ports is where it was; the others are cut off. Nodes in
// `dead` (per node of before; NULL: none) are no concern.
struct reach_change {
    uint64_t pairs_before, pairs_after; // ordered pairs of end ports that are joined
    uint32_t ends_before, ends_after;   // end ports
    uint32_t *end;                      // ports cut off
    uint32_t *sw;                       // switches cut off (node indices)
    uint32_t num_end, num_sw;
    uint32_t hosts_touched, hosts_lost; // hosts with an end port cut off; with none left that is not
};
void reach_compare(const struct fabric *before, const struct fabric *after, const bool *dead,
                   struct reach_change *ret);
void reach_change_done(struct reach_change *c);

// A switch, or a cable between switches, whose loss alone cuts off end ports that do not hang on it.
struct reach_single {
    uint32_t node;
    uint8_t port;  // of the cable's end at node; 0: the switch
    uint32_t ends; // cut off
};
// The worst first, at most max of them; returns how many there are.
uint32_t reach_singles(const struct fabric *f, struct reach_single *ret, uint32_t max);

#endif
