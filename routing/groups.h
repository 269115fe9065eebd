// SPDX-License-Identifier: Apache-2.0
// Adaptive-routing groups for forwarding tables, and their proof. Pure, like route.h.
//
// A group has the ports by which a switch may send on what it got for a destination, whatever other switches
// choose: every mix of choices arrives, turns only as the engine's tables may, and closes no cycle of
// dependencies, on any lane. The table's port is in it, and is what a switch that does not adapt goes by.
//
//   rail, updn     all ports on a shortest way up and then down the order of switches that the tables keep
//                  to, also where they are repaired
//   other engines  ports on a shortest way, as far as they fit between the dependencies that the tables make
//                  already; at least the cables beside the table's port, where these do
//
// Entries for switches' own LIDs, and at the switch where a LID hangs, are static.
#ifndef WEFT_ROUTING_GROUPS_H
#define WEFT_ROUTING_GROUPS_H

#include "fabric/groups.h"
#include "routing/route.h"

struct mcast_tree;
struct route_avoid;

#define GROUPS_CAP_MAX 4096 // 12 bits of group number

struct groups_opts {
    // What the tables were made by: base for those of route_repair_from() (they keep to its order), else NULL
    // and what was given to route_compute(), for its roots. engine: of the result of either.
    const struct route_base *base;
    const struct route_opts *route;
    enum route_engine engine;
    const struct route_avoid *avoid; // as given to route_repair_avoiding(); NULL: nothing; with base only
    // What there was before, for its ids; NULL: none. Switches are matched by GUID.
    const struct fabric_groups *last;
    const struct fabric *last_fabric;
    // Per switch: how many groups it can hold; 0: it does not adapt. NULL: GROUPS_CAP_MAX each.
    const uint16_t *cap;
    struct par *par; // NULL = serial
};
struct groups_result {
    struct fabric_groups *groups; // sealed, one reference, the caller's
    uint64_t entries, adaptive;   // entries from one switch to what hangs on another; those with a group
    uint64_t choices;             // ports of all of the adaptive ones together
    uint32_t most_groups;         // of a switch
    uint32_t over_cap;            // switches that could use more groups than they hold
    uint32_t static_lids; // LIDs that are static, or have cables side by side at most, for their entries
                          // fit no group
    char why[200];        // what was gone by, in words
};
// 0, or negative errno with *e. Deterministic; independent of par. Where there are more groups than a switch
// holds, those with the fewest entries are left out and become static. Ids: a group keeps that which most of
// its entries had before, so that where a port is gone, or back, one group is written and no entry; a group
// of the same ports keeps its own; new ones take the lowest that was not in use before, and only then that of
// another one that is no more.
int route_groups(const struct fabric *f, const struct fabric_tables *t, const struct groups_opts *o,
                 struct groups_result *ret, struct err *e);

// --- the proof: verify_groups.c, which shares nothing with what makes tables and groups ---
enum groups_fault {
    GROUPS_OK,
    GROUPS_MALFORMED,   // of another fabric; a position or id out of bounds, or twice
    GROUPS_OVER_CAP,    // a switch has more groups, or a higher id, than it can hold
    GROUPS_NO_ENTRY,    // a choice leads to a switch that has no entry
    GROUPS_DEAD_PORT,   // a choice has no usable cable
    GROUPS_WRONG_END,   // a choice leads to another node
    GROUPS_LOOP,        // choices that lead round in a circle
    GROUPS_CREDIT_LOOP, // cycle of dependencies, of one lane where the tables have lanes
};
struct groups_proof {
    bool ok;
    enum groups_fault fault; // of the lowest LID
    uint64_t pairs;          // (switch with end ports, LID) that were walked with all choices
    uint32_t max_hops;       // of the longest choice of ways
    uint64_t dependencies;   // of the channel dependency graph, all lanes
    char counter_example[600];
};
struct groups_verify {
    const uint16_t *cap;            // as in groups_opts
    const struct mcast_tree *trees; // whose turns, on lane 0, must close no cycle either; NULL = none
    // What the switches hold now, of the same fabric; held NULL: no groups. With held_tables any mix of the
    // two is proved, entry by entry and group by group, so that they may be written in any order; what gets
    // lost meanwhile is no fault then.
    const struct fabric_tables *held_tables;
    const struct fabric_groups *held;
    struct par *par;
};
// Trusts neither tables nor groups. A pair that the tables give no way at all (LFT_DROP at its first switch,
// or parts without cables between them) is no fault here: route_verify() says what there is to it. Returns
// proof->ok.
bool route_verify_groups(const struct fabric *f, const struct fabric_tables *t, const struct fabric_groups *g,
                         const struct groups_verify *o, struct groups_proof *ret);

// --- what they are good for ---
struct groups_flow {
    uint32_t from;  // switch where it starts
    uint16_t to;    // LID
    uint32_t flows; // so many alike
};
struct groups_spread { // over cables between switches, each direction for itself
    double max, mean;  // flows on the most loaded one; on those that carry anything
    uint32_t cables;   // that carry anything
};
// Load when every switch spreads what it has for a LID evenly over its group; g NULL: by the tables alone. Of
// tables and groups that are proved. Cost: for each LID, the ports of all switches that packets to it may
// pass.
struct groups_spread route_groups_spread(const struct fabric *f, const struct fabric_tables *t,
                                         const struct fabric_groups *g, const struct groups_flow *flow,
                                         size_t num);

#endif
