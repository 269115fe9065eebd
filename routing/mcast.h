// SPDX-License-Identifier: Apache-2.0
// Multicast routing: one spanning tree for all groups, in each connected part of the fabric; a group uses the
// part of the tree between its members. Pure.
//
// The tree is the union of the unicast routes of the switches that are needed to one root's own LID, and
// their reverse. Where unicast routes go up and then down an order of the switches, and nothing is above the
// root, each of these routes only goes up, and a packet that climbs the tree and descends it again does what
// unicast packets do. The engine's order is not known here, so that is proved and not assumed: the tree's
// turns are added to the dependencies between buffers that the unicast tables make on its lane, and a cycle
// refuses the root. Roots that are tried, best first: those of the last tree; switches of the highest tier,
// by how many of the needed switches come to them going up tiers only, then by the length of the routes; the
// engine's top switch.
//
// Where no root's routes will do, as happens where tables have virtual lanes and routes of all lanes meet, a
// tree is grown from a root cable by cable, each only if the proof still holds with it.
//
// A tree that is there stays: under the same root, what can climb to it by links of the last tree that are
// still there does, and only the others go by the unicast routes to it, up to where they meet the tree. Where
// that proof fails, the routes alone count, then other roots.
#ifndef WEFT_ROUTING_MCAST_H
#define WEFT_ROUTING_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/tables.h"
#include "lib/hash.h"

struct route_proof_state;

#define MCAST_LANE 0       // by which all multicast goes: service level 0 of groups
#define MCAST_ROOTS_MAX 16 // connected parts with a tree; further ones have none

struct mcast_opts {
    const bool *needed;    // by switch: must be in the tree; NULL = those with end nodes
    const uint64_t *roots; // NodeGUIDs of the last tree's roots; kept while they serve
    uint32_t num_roots;
    uint64_t top_guid;             // the engine's top switch; 0 = not known
    const struct mcast_tree *last; // of last_fabric; NULL: no link is kept
    const struct fabric *last_fabric;
    // What a proof of these very tables left behind; NULL is fine. Changes the cost only: the dependencies
    // need not be gathered, unless it has too many or is of other cables.
    const struct route_proof_state *proof;
};
struct mcast_tree {
    uint32_t num_switches;
    uint32_t num_roots;
    uint32_t root[MCAST_ROOTS_MAX]; // dense switch numbers
    uint32_t num_in;                // switches in the tree
    uint32_t num_unreached;         // needed ones without a route to a root
    bool proved;                    // no cycle with the unicast tables
    bool unicast_cycle;             // they have one by themselves: nothing can be proved
    struct mcast_step {
        uint32_t parent; // ID_NONE: a root, or not in the tree
        uint8_t out;     // port towards it
        uint8_t back;    // its port towards us
        bool in;         // in the tree
    } * step;            // by switch
};
// In which order switches are tried as roots where nothing else speaks for one, the least first, and how many
// of a part before that is given up.
#define MCAST_GROWN_TRIES 64
static inline uint64_t mcast_rank(uint64_t guid)
{
    return hash_mix64(guid ^ 0x6d63617374ULL);
}
// Never trusts the tables. The tree is the caller's: mcast_tree_free(). Deterministic. Cost: O(switches x
// LIDs) for gathering, else of the order of the switches' ports.
struct mcast_tree *mcast_tree_make(const struct fabric *f, const struct fabric_tables *t,
                                   const struct mcast_opts *o);
void mcast_tree_free(struct mcast_tree *tree);

// The proof of a tree, which shares no code with what makes it: that its steps are cables between switches,
// lead to a root and in no circle, that all switches which are needed and joined by cables are in one tree
// together, and that its turns make no cycle with what unicast sends by the same lane.
struct mcast_proof {
    bool ok;
    bool cycle;       // of buffers; of the unicast tables alone, too
    uint32_t missing; // needed switches that are not in the tree of their part: ok is false
    uint32_t parts;   // parts with needed switches
    char counter_example[600];
};
// needed, proof: as in mcast_opts. Trusts neither tables nor tree. Cost: as of making one.
bool mcast_verify(const struct fabric *f, const struct fabric_tables *t, const struct mcast_tree *tree,
                  const bool *needed, const struct route_proof_state *proof, struct mcast_proof *ret);

// A member: the switch port behind which it is; port 0 is the switch itself.
struct mcast_member {
    uint32_t sw;
    uint8_t port;
    bool receives; // false: only sends to the group
};
struct mcast_mask {
    uint32_t sw;
    uint64_t port[4]; // bit p of word p / 64: forwarded to port p
};
// The masks of all switches that carry the group, ordered by switch; *ret is malloc'd, the caller's. Members
// on switches outside of the tree are reached by nobody else than members on the same switch. Returns their
// number.
uint32_t mcast_masks(const struct mcast_tree *tree, const struct mcast_member *member, uint32_t n,
                     struct mcast_mask **ret);
// The switch port an end port hangs on; false when there is none (no cable, or no switch).
bool mcast_place(const struct fabric *f, port_id end, uint32_t *ret_sw, uint8_t *ret_port);

#endif
