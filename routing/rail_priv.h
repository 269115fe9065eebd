// SPDX-License-Identifier: Apache-2.0
// For rail*.c only; see rail.c.
#ifndef WEFT_ROUTING_RAIL_PRIV_H
#define WEFT_ROUTING_RAIL_PRIV_H

#include "routing/route_priv.h"

#define RAIL_LEVELS 6          // steps up of the longest chain
#define RAIL_SWITCHES_MAX 8192 // beyond, choices are by digits only: memory goes with the square
#define VIA_SEVERAL 255

struct rup { // a cable up
    uint32_t peer;
    uint8_t port;          // 0: others alike have one here
    uint8_t round, cables; // round: which of those to the same neighbour, cables: of how many
};

struct rrail {
    const struct rgraph *g;
    const struct rorder *o;
    uint32_t n, levels;
    bool several;            // some port has more than one LID
    uint32_t *place, *sw_at; // switches in an order of their own, higher ranks first; the inverse
    uint32_t *above;         // per switch: how many have a higher rank, that is the first place of its own
    uint32_t *uoff, *uend;   // cables up of s: up[uoff[s] .. uend[s] - 1]
    uint32_t *udeal;         // the first so many are dealt out to numbers
    struct rup *up;
    uint32_t num_up;
    uint32_t *taken;   // per up: hosts' chains over it
    uint64_t *up_mask; // [4 * switch]: groups that lead up
    uint32_t *quota;   // per switch: chains for each cable up, while they are found
    uint8_t *group_of; // [256 * switch + port]: which of its groups
    uint8_t *via; // [switch * (n + 1) + place]: the port that leads up there; 0 none, or VIA_SEVERAL; NULL:
                  // no chains
    // Per destination as in rgraph.d, by level: 0 is where it hangs.
    uint16_t *chain[RAIL_LEVELS + 1];               // place of the switch, or n
    uint8_t *back[RAIL_LEVELS + 1];                 // port of the next switch down to this one
    uint16_t *pick[RAIL_LEVELS + 1];                // the cable up it takes, counted from uoff
    uint32_t *digit[RAIL_LEVELS + 1];               // what is left of the number
    uint16_t *spread[RAIL_LEVELS + 1];              // for choices that follow no chain
    uint32_t *mirror[RAIL_LEVELS + 1][RAIL_LEVELS]; // [to level][at level]; see mirror_of()
};

#endif
