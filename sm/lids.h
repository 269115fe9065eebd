// SPDX-License-Identifier: Apache-2.0
// Pure: who gets which LID.
#ifndef WEFT_SM_LIDS_H
#define WEFT_SM_LIDS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/hash.h"

enum lid_got {
    LID_GOT_NONE, // none is left
    LID_GOT_RECORDED,
    LID_GOT_OWN,       // the one it came with, now to be recorded
    LID_GOT_NEW,       // to be recorded
    LID_GOT_RECLAIMED, // to be recorded: it was an absent port's, nothing else was left
    LID_GOT_TWIN,      // none: another port with the same PortGUID came first, or has the recorded LID
    LID_GOT_MOVED,     // to be recorded: the one before cannot be the first of so many
};

struct lid_port {
    uint64_t guid;
    uint16_t had; // LID that the port has now, as read; not 1..0xbfff = none
    uint8_t lmc;  // it is to have 2^lmc LIDs, 0..7
    // results
    uint16_t lid; // 0 = none; else a multiple of 2^lmc, the first of them
    uint8_t got;  // enum lid_got
};

// A record as a value of a map: the LID, and how many there are from it on.
#define LID_RECORD(lid, lmc) ((uint32_t)(lid) | (uint32_t)(lmc) << 16)
#define LID_RECORD_LID(v) ((uint16_t)((v)&0xffff))
#define LID_RECORD_LMC(v) ((uint8_t)((v) >> 16 & 7))
#define LID_RECORD_OK(v) ((v) >> 19 == 0)

// Ports in the order in which new LIDs are handed out. recorded: PortGUID -> LID_RECORD(), value 0 = none.
// max: the highest LID that may be given. Every LID is given once; O(n + recorded) for one LID each, with
// 2^lmc of them that much more.
//
// A port that is to have more LIDs than it had keeps its own when it can be the first of so many and nobody
// has, or has reserved, any of the others: no LID means another port than before. Else all of them are new
// ones.
void lids_assign(struct lid_port *port, size_t n, const struct u64map *recorded, uint16_t max);

#endif
