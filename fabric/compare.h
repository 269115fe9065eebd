// SPDX-License-Identifier: Apache-2.0
// A fabric beside its blueprint: what is missing, what is more, what hangs elsewhere.
#ifndef WEFT_FABRIC_COMPARE_H
#define WEFT_FABRIC_COMPARE_H

#include "fabric/fabric.h"

enum blueprint_diff {
    BLUEPRINT_MISSING_NODE, // of the blueprint, not there now; its cables go without saying
    BLUEPRINT_MISSING_LINK, // a cable whose ends are there
    BLUEPRINT_EXTRA_NODE,   // there, not in the blueprint
    BLUEPRINT_EXTRA_LINK,   // a cable between switches, those of extra switches too
    BLUEPRINT_MOVED,        // a cable leads elsewhere
    BLUEPRINT_REPLACED, // another device where one of the blueprint was, or the same GUID with other ports
};
#define BLUEPRINT_DIFFS 6

struct blueprint_item {
    enum blueprint_diff kind;
    bool is_switch; // of BLUEPRINT_MISSING_NODE and _EXTRA_NODE
    uint64_t guid;  // the node; of a cable one end, of BLUEPRINT_REPLACED the one that is there now
    uint8_t port;
    uint64_t far_guid; // the cable's other end as it is; of BLUEPRINT_MISSING_LINK as it was
    uint8_t far_port;
    uint64_t was_guid; // BLUEPRINT_MOVED: where it led; BLUEPRINT_REPLACED: who was there
    uint8_t was_port;
};

struct blueprint_compare {
    uint32_t count[BLUEPRINT_DIFFS];
    uint32_t missing_switches, extra_switches; // of the nodes
    struct blueprint_item *item;               // the first ones of each kind, sorted by kind, switches first
    uint32_t n;
};

// At most max items of each kind. Any thread; O(ports). Freed by blueprint_compare_free().
struct blueprint_compare *blueprint_compare(const struct fabric *blueprint, const struct fabric *live,
                                            uint32_t max);
void blueprint_compare_free(struct blueprint_compare *c); // NULL is fine
// One line for people. Returns buf.
const char *blueprint_item_text(const struct blueprint_item *x, const struct fabric *blueprint,
                                const struct fabric *live, char *buf, size_t size);
// "leaf-7, leaf-9 and 32 ends", which fabric_silent() tells; "" when there is none. Returns buf.
const char *blueprint_silent_text(const struct fabric *blueprint, const struct fabric *live, char *buf,
                                  size_t size);
const char *blueprint_diff_name(enum blueprint_diff k);

#endif
