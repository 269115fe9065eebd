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
};

struct lid_port {
    uint64_t guid;
    uint16_t had; // LID that the port has now, as read; not 1..0xbfff = none
    // results
    uint16_t lid; // 0 = none
    uint8_t got;  // enum lid_got
};

// Ports in the order in which new LIDs are handed out. recorded: PortGUID -> LID, value 0 = none. max: the
// highest LID that may be given. Every LID is given once; O(n + recorded).
void lids_assign(struct lid_port *port, size_t n, const struct u64map *recorded, uint16_t max);

#endif
