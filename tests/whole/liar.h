// SPDX-License-Identifier: Apache-2.0
// A liar on the wire: takes answers of honest devices and makes them what a broken or hostile device could
// answer. Where and how comes from a seeded generator, or from bytes (fuzzing).
#ifndef WEFT_TESTS_WHOLE_LIAR_H
#define WEFT_TESTS_WHOLE_LIAR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/rng.h"

struct liar {
    struct rng rng;
    const uint8_t *byte; // instead of rng, until they are used up; then the liar is honest
    size_t num_bytes, at;
    uint32_t chance;  // of a lie, in 1000
    uint32_t kinds;   // bits of enum lie that may be told; 0 = all
    uint64_t victim;  // NodeGUID last seen: an answer can claim it
    uint8_t last[64]; // data of an earlier answer
    uint64_t told;    // lies so far
};

enum lie {
    LIE_FLIP,     // bytes of the data
    LIE_ZERO,     // all of the data, or its end
    LIE_STATUS,   // an error status
    LIE_DROP,     // no answer
    LIE_TWICE,    // the answer comes twice
    LIE_OLD,      // the data of another answer
    LIE_FIELDS,   // what this attribute can say that makes no sense
    LIE_IDENTITY, // NodeInfo: GUIDs, type, number of ports, LocalPortNum
    LIE_HEADER,   // method, attribute, TID, class
    LIES,
};

enum liar_does {
    LIAR_PASSES, // deliver the (perhaps changed) MAD
    LIAR_DROPS,
    LIAR_REPEATS,
};
uint32_t liar_below(struct liar *l, uint32_t n);
enum liar_does liar_answer(struct liar *l, uint8_t *mad);

#endif
