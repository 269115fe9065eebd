// SPDX-License-Identifier: Apache-2.0
// What a fabric is meant to be, learnt from what is seen of it.
#ifndef WEFT_FABRIC_MERGE_H
#define WEFT_FABRIC_MERGE_H

#include "fabric/fabric.h"

// All that was ever seen: `known` with what `seen` has more or other, nodes in order of GUID. What is missing
// in `seen` stays. Where both disagree, `seen` is right: a port's cable leads where it is seen to lead, a LID
// is whose it is seen to be. A cable that has moved leaves nothing behind, nor does an end node that has lost
// its last cable to another one. Only a switch's name stays what it was when it was first known, since routes
// are numbered by it. Returns another reference to `known` when there is nothing to learn; one reference
// otherwise. known may be NULL (then it is `seen`, sorted), so may seen (then it is `known`, sorted). Any
// thread. O(ports).
const struct fabric *fabric_merge(const struct fabric *known, const struct fabric *seen);

// The same by another rule. What is not taken over from `seen` does not give its cables; but a LID that is
// seen is whose it is seen to be under all of them.
enum merge_rule {
    MERGE_LEARN, // as above
    MERGE_FIXED, // known as it is, with the LIDs and PortGUIDs that its ports are seen to have
    MERGE_HOSTS, // besides, host adapters that are new, on leaf switches of known, at ports that have no
                 // cable there
    MERGE_LIVE,  // seen as it is; besides, what is silent (fabric_silent()) with its cables, but for those
                 // that are seen to be down; and end nodes of known that are missing in seen, where the
                 // switch that they hang on stays and nobody else has their place
};
const struct fabric *fabric_merge_by(enum merge_rule rule, const struct fabric *known,
                                     const struct fabric *seen);

// Per node of known: it is missing in seen though a cable of it is up there, and nobody answers behind that
// (PORT_EXCLUDED_PEER_SILENT): traffic may well go through it. Also what hangs on such nodes alone, which
// nobody could see. To be freed. Any thread; O(ports).
bool *fabric_silent(const struct fabric *known, const struct fabric *seen);

// f with the LIDs that its end ports have in `from` (by PortGUID, or where f does not know that by node and
// number), the others without any: a file's LIDs are of the day when it was written. One reference.
const struct fabric *fabric_with_lids(const struct fabric *f, const struct fabric *from);

#endif
