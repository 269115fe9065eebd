// SPDX-License-Identifier: Apache-2.0
// The difference of two generations as a value: events, routing and the API read the same one.
#ifndef WEFT_FABRIC_DIFF_H
#define WEFT_FABRIC_DIFF_H

#include "fabric/fabric.h"

enum change_kind {
    CHANGE_NODE_ADDED,
    CHANGE_NODE_REMOVED,
    CHANGE_NODE_DESC,  // description changed
    CHANGE_NODE_RESET, // was configured, now looks factory-new (a port went from Armed/Active to Init, LID
                       // lost)
    CHANGE_LINK_ADDED,
    CHANGE_LINK_REMOVED,
    CHANGE_LINK_RATE, // width or speed of a link changed
    CHANGE_PORT_STATE,
    CHANGE_LID,
};

struct change {
    enum change_kind kind;
    uint64_t guid_a, guid_z; // nodes; z only for links
    uint8_t port_a, port_z;
    uint32_t old_value, new_value; // state, LID, or rate in Gb/s x 1000 as the kind says
};

struct fabric_diff {
    struct change *item;
    size_t n;
    size_t count[CHANGE_LID + 1];
};

// old may be NULL: then everything is added. Freed by diff_free(). Links are reported once.
struct fabric_diff *diff_make(const struct fabric *old, const struct fabric *new_fabric);
void diff_free(struct fabric_diff *d);
const char *change_kind_name(enum change_kind k);
// One line for people, names from whichever generation has the node.
const char *change_text(const struct change *c, const struct fabric *old, const struct fabric *new_fabric,
                        char *buf, size_t size);

#endif
